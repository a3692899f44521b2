/*
 * Learns from a table how its columns become the matrix X: which are inputs, the levels of text columns, means and
 * standard deviations. What cannot be used is refused here, with what to do about it. One pass over the table, and one
 * more over each column of texts or labels.
 */
#include "data/encoder.h"

#include <math.h>
#include <string.h>

/* --- making ----------------------------------------------------------------------------------------------------- */

thiele_status thi_encoder_alloc(thi_encoder *encoder, thiele_context *ctx, int inputs)
{
    thiele_status status = thi_alloc(ctx, &encoder->input, (size_t)inputs, sizeof *encoder->input);
    if (status == THIELE_OK) {
        encoder->inputs = inputs;
    }
    return status;
}

thiele_status thi_encoder_alloc_targets(thi_encoder *encoder, thiele_context *ctx, int targets)
{
    thiele_status status = thi_alloc(ctx, &encoder->target, (size_t)targets, sizeof *encoder->target);
    if (status == THIELE_OK) {
        encoder->targets = targets;
        for (int p = 0; p < targets; p++) {
            encoder->target[p].scale = 1;
        }
    }
    return status;
}

int thi_input_width(const thi_input *input)
{
    return (input->levels > 0 ? input->levels + input->others : 1) + input->fills;
}

/* With room for two more dimensions of each input: what the rows show of it (set_inputs) may take them. */
thiele_status thi_encoder_place(thi_encoder *encoder, thiele_context *ctx)
{
    encoder->dims = 0;
    for (int i = 0; i < encoder->inputs; i++) {
        encoder->input[i].first = encoder->dims;
        encoder->dims += thi_input_width(&encoder->input[i]);
    }
    encoder->key.first = encoder->dims;
    encoder->dims += encoder->key.name != NULL;
    const size_t D = (size_t)encoder->dims + 2 * (size_t)encoder->inputs;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &encoder->center, D, sizeof *encoder->center));
    THI_TRY(thi_alloc(ctx, &encoder->scale, D, sizeof *encoder->scale));
    for (size_t d = 0; d < D; d++) {
        encoder->scale[d] = 1;
    }
    if (encoder->key.name != NULL) {
        encoder->scale[encoder->key.first] = THI_KEY_SCALE;
    }
out:
    return status;
}

void thi_encoder_clear(thi_encoder *encoder)
{
    for (int i = 0; i < encoder->inputs; i++) {
        thi_levels_free(encoder->input[i].level, encoder->input[i].levels);
        thi_free(encoder->input[i].name);
    }
    for (int p = 0; p < encoder->targets; p++) {
        thi_levels_free(encoder->target[p].level, encoder->target[p].levels);
        thi_free(encoder->target[p].level_value);
        thi_free(encoder->target[p].name);
    }
    thi_free(encoder->input);
    thi_free(encoder->target);
    thi_free(encoder->center);
    thi_free(encoder->scale);
    thi_free(encoder->missing);
    thi_free(encoder->exposure);
    thi_free(encoder->weights);
    thi_levels_free(encoder->key.level, encoder->key.levels);
    thi_free(encoder->key.name);
    thi_levels_free(encoder->dropped_name, encoder->dropped);
    *encoder = (thi_encoder){0};
}

void thi_encoder_dim_name(const thi_encoder *encoder, int dim, thi_text *text)
{
    int i = 0;
    if (encoder->key.name != NULL && dim == encoder->key.first) {
        thi_text_add(text, "%s", encoder->key.name);
        return;
    }
    for (int end = encoder->inputs; end - i > 1;) {
        int middle = i + (end - i) / 2;
        if (encoder->input[middle].first <= dim) {
            i = middle;
        } else {
            end = middle;
        }
    }
    const thi_input *input = &encoder->input[i];
    thi_text_add(text, "%s", input->name);
    const int own = dim - input->first;
    if (input->fills && own == thi_input_width(input) - 1) {
        thi_text_add(text, "=(missing)");
    } else if (input->levels > 0) {
        thi_text_add(text, "=%s", own < input->levels ? input->level[own] : "(other)");
    }
}

/* --- learning --------------------------------------------------------------------------------------------------- */

static thiele_status learn_inputs(thi_encoder *encoder, const thi_choice *c)
{
    thiele_status status;
    THI_TRY(thi_encoder_alloc(encoder, c->ctx, c->inputs));
    for (int i = 0; i < c->inputs; i++) {
        const int column = c->input[i];
        THI_TRY(thi_choice_name(c, column, &encoder->input[i].name));
        encoder->input[i].dates = c->dates[column];
        const bool text = thi_table_is_text(c->table, column) && c->dates[column].form == THI_NO_DATE;
        if (text || c->categorical[column]) {
            THI_TRY(thi_learn_levels(&encoder->input[i], c->ctx, c->table, column, THI_LEVELS_MAX));
        }
    }
    if (c->key >= 0) {
        THI_TRY(thi_choice_name(c, c->key, &encoder->key.name));
        THI_TRY(thi_learn_levels(&encoder->key, c->ctx, c->table, c->key, THI_KEYS_MAX));
    }
    THI_TRY(thi_encoder_place(encoder, c->ctx));
out:
    return status;
}

/* How many dimensions an input has in the pass over the rows: no indicators of missing values, and others only where
 * there were too many levels. */
static int read_width(const thi_input *input)
{
    return input->levels > 0 ? input->levels + input->others : 1;
}

/* --- constant columns -------------------------------------------------------------------------------------------- */

/* Whether no row has a value in the input whose first dimension in the spread is `from`. */
static bool is_empty(const thi_column_spread *spread, int from)
{
    return spread->count[from] == 0;
}

/* Whether every row has the same there. */
static bool is_constant(const thi_column_spread *spread, int from, const thi_input *input)
{
    int present = 0;
    for (int l = 0; l < input->levels; l++) {
        present += spread->high[from + l] > 0;
    }
    bool same = input->levels > 0 ? present < 2 : spread->low[from] == spread->high[from];
    return is_empty(spread, from) || (same && !input->fills);
}

/* Says which they are, and makes room for their names; when all are, there is nothing to learn from. */
static thiele_status check_constant(thi_encoder *encoder, thiele_context *ctx, const thi_column_spread *spread)
{
    char **name = NULL;
    int count = 0;
    int from = 0;
    thi_text shown;
    thi_text_init(&shown, ctx);
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &name, (size_t)encoder->inputs, sizeof *name));
    for (int i = 0; i < encoder->inputs; i++) {
        if (is_constant(spread, from, &encoder->input[i])) {
            name[count++] = encoder->input[i].name;
        }
        from += read_width(&encoder->input[i]);
    }
    if (count == encoder->inputs) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_DATA, "every input column is constant: no inputs are left"));
    }
    if (count > 0) {
        thi_text_add_names(&shown, name, count);
        THI_TRY(shown.status);
        thi_log(ctx, THIELE_LOG_WARNING, "%d column%s constant and left out: %s", count, count == 1 ? " is" : "s are",
                shown.data);
        THI_TRY(thi_alloc(ctx, &encoder->dropped_name, (size_t)count, sizeof *encoder->dropped_name));
    }
out:
    thi_text_clear(&shown);
    thi_free(name);
    return status;
}

/* --- scales ------------------------------------------------------------------------------------------------------ */

/* What dimension `from` of the spread says becomes dimension input->first. */
static thiele_status set_numeric(thi_encoder *encoder, thiele_context *ctx, const thi_column_spread *spread, int from,
                                 thi_input *input, bool raw)
{
    double mean = is_empty(spread, from) ? 0 : spread->low[from];
    double deviation = 1;
    /* Constant in these rows only, or wherever it is there: harmless here, and the other rows may need it. */
    bool constant = is_empty(spread, from) || spread->low[from] == spread->high[from];
    thiele_status status = constant ? THIELE_OK : thi_find_spread(spread, ctx, from, input->name, &mean, &deviation);
    encoder->center[input->first] = raw ? 0 : mean;
    encoder->scale[input->first] = raw ? 1 : deviation;
    input->fill = input->fills ? mean : 0;
    return status;
}

/* How many rows have a level. */
static int64_t rows_of(const thi_column_spread *spread, int dim)
{
    return llround(spread->mean[dim] * spread->mass[dim]);
}

/* Fewer rows than this make a level rare. */
static int64_t rare_below(const thi_column_options *options, int64_t rows)
{
    enum { FEW = 5, SHARE = 100 };
    return options->rare != THI_RARE_AUTO ? options->rare : rows / SHARE < FEW ? (rows + SHARE - 1) / SHARE : FEW;
}

static void say_others(thiele_context *ctx, const thi_input *input, int rare, int64_t below)
{
    thi_log(ctx, THIELE_LOG_WARNING,
            "'%s': %d value%s with fewer than %lld rows %s pooled as 'other', as are new values that are "
            "not among the %d that remain (`rare_levels` 0 keeps all)",
            input->name, rare, rare == 1 ? "" : "s", (long long)below, rare == 1 ? "is" : "are", input->levels);
}

/* Levels that stand only in rows left out are none; rare ones go together unless all are. */
static void set_levels(thiele_context *ctx, const thi_column_spread *spread, int from, thi_input *input,
                       const thi_column_options *options)
{
    const int levels = input->levels;
    const int pooled = input->rare;
    const int64_t below = rare_below(options, llround(spread->mass[from]));
    int64_t most = 0;
    int rare = 0;
    for (int l = 0; l < levels; l++) {
        most = rows_of(spread, from + l) > most ? rows_of(spread, from + l) : most;
    }
    input->levels = 0;
    for (int l = 0; l < levels; l++) {
        const int64_t rows = rows_of(spread, from + l);
        const bool own = rows > 0 && (rows >= below || most < below);
        rare += rows > 0 && !own;
        if (own) {
            input->level[input->levels++] = input->level[l];
        } else {
            thi_free(input->level[l]);
        }
    }
    input->one_scale = options->one_scale;
    input->others = rare + pooled > 0 || options->one_scale;
    input->rare = rare + pooled;
    if (rare > 0) {
        say_others(ctx, input, rare, below);
    }
}

/* Its name moves to the list of those left out. */
static void drop_input(thi_encoder *encoder, thi_input *input)
{
    encoder->dropped_name[encoder->dropped++] = input->name;
    thi_levels_free(input->level, input->levels);
    *input = (thi_input){0};
}

/*
 * Inputs move down as constant ones are left out, and dimensions as levels fall away; from counts those before,
 * encoder->dims those after.
 */
static thiele_status set_inputs(thi_encoder *encoder, thiele_context *ctx, const thi_column_spread *spread,
                                const thi_column_options *options, bool partial)
{
    thiele_status status = partial ? THIELE_OK : check_constant(encoder, ctx, spread);
    int from = 0;
    int kept = 0;
    encoder->dims = 0;
    for (int i = 0; i < encoder->inputs && status == THIELE_OK; i++) {
        thi_input *input = &encoder->input[i];
        int width = read_width(input);
        if (!partial && is_constant(spread, from, input)) {
            drop_input(encoder, input);
            from += width;
            continue;
        }
        input->first = encoder->dims;
        if (input->levels > 0) {
            set_levels(ctx, spread, from, input, options);
        } else {
            status = set_numeric(encoder, ctx, spread, from, input, options->raw);
        }
        from += width;
        encoder->dims += thi_input_width(input);
        if (kept < i) {
            encoder->input[kept] = *input;
            *input = (thi_input){0};
        }
        kept++;
    }
    encoder->inputs = status == THIELE_OK ? kept : encoder->inputs;
    if (encoder->key.name != NULL && status == THIELE_OK) {
        encoder->key.first = encoder->dims++;
        encoder->center[encoder->key.first] = 0;
        encoder->scale[encoder->key.first] = THI_KEY_SCALE;
    }
    return status;
}

/* --- missing values ---------------------------------------------------------------------------------------------- */

static thiele_status say_filled(thiele_context *ctx, char *const *name, int count)
{
    thi_text list;
    thi_text_init(&list, ctx);
    thi_text_add_names(&list, name, count);
    thiele_status status = list.status;
    if (status == THIELE_OK) {
        thi_log(ctx, THIELE_LOG_WARNING,
                "%s lack%s values in some rows: the column's mean is used there (no level of a category), with an "
                "indicator beside it (`missing_inputs` can refuse or drop such rows)",
                list.data, count == 1 ? "s" : "");
    }
    thi_text_clear(&list);
    return status;
}

/*
 * Which inputs lacked values in the rows that were kept. A selection fills in what the whole table lacks: the other
 * rows may need it.
 */
static thiele_status find_missing(thi_encoder *encoder, const thi_choice *c, const thi_moments *moments)
{
    const bool partial = c->table->whole != NULL;
    char **name = NULL;
    int count = 0, from = 0;
    thiele_status status;
    THI_TRY(thi_alloc(c->ctx, &name, (size_t)encoder->inputs, sizeof *name));
    for (int i = 0; i < encoder->inputs; i++) {
        thi_input *input = &encoder->input[i];
        bool lacks = moments->inputs.count[from] < moments->rows;
        if (!lacks && partial) {
            THI_TRY(thi_table_lacks(c->table, c->ctx, c->input[i], &lacks));
        }
        if (lacks && (partial || !is_empty(&moments->inputs, from))) {
            name[count++] = input->name;
        }
        from += read_width(input);
        input->fills = lacks;
    }
    if (count > 0) {
        THI_TRY(say_filled(c->ctx, name, count));
    }
out:
    thi_free(name);
    return status;
}

static thiele_status learn_scales(thi_encoder *encoder, const thi_choice *c, const thi_column_options *options,
                                  const thi_target_rule *rule)
{
    const bool fills = options->missing == THI_MISSING_MEAN && !options->drop_missing;
    const thi_reading how = {.target = true,
                             .weighted = true,
                             .drop_missing = options->drop_missing,
                             .drop_inputs = options->missing == THI_MISSING_DROP,
                             .keep_missing = fills,
                             .refuses = rule->refuses,
                             .user = rule->user,
                             .likelihood = rule->likelihood};
    thi_moments moments;
    thiele_status status = thi_learn_moments(&moments, c->ctx, encoder, c->table, &how, options->classes != NULL);
    if (status != THIELE_OK) {
        return status;
    }
    if (moments.rows < 2) {
        status = thi_fail(c->ctx, THIELE_ERROR_DATA, "%s has %lld row%s%s: at least two are needed",
                          thi_table_source(c->table), (long long)moments.rows, moments.rows == 1 ? "" : "s",
                          moments.rows < c->table->rows ? " without missing values" : "");
    } else {
        status = thi_set_targets(encoder, c, &moments, options, rule);
    }
    if (status == THIELE_OK && fills) {
        status = find_missing(encoder, c, &moments);
    }
    if (status == THIELE_OK) {
        status = set_inputs(encoder, c->ctx, &moments.inputs, options, c->table->whole != NULL);
    }
    thi_moments_clear(&moments);
    return status;
}

thiele_status thi_encoder_learn(thi_encoder *encoder, thiele_context *ctx, const thiele_table *table,
                                const thi_column_options *options, const thi_target_rule *rule)
{
    static const thi_target_rule numbers = {.likelihood = "gaussian", .standardise = true};
    thi_choice c = {.table = table, .ctx = ctx};
    thiele_status status;
    rule = rule != NULL ? rule : &numbers;
    *encoder = (thi_encoder){0};
    THI_TRY(thi_choose_columns(&c, options));
    THI_TRY(thi_learn_targets(encoder, &c, options, rule));
    THI_TRY(thi_judge_texts(&c));
    THI_TRY(learn_inputs(encoder, &c));
    THI_TRY(learn_scales(encoder, &c, options, rule));
    const char *missing = thi_table_missing(table);
    if (missing != NULL && !thi_is_utf8(missing, strlen(missing))) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the texts that mean 'no value' are not UTF-8"));
    }
    if (missing != NULL && *missing != '\0') {
        THI_TRY(thi_strdup(ctx, &encoder->missing, missing));
    }
out:
    thi_choice_free(&c);
    if (status != THIELE_OK) {
        thi_encoder_clear(encoder);
    }
    return status;
}
