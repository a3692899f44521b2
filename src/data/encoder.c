/*
 * Learns from a table how its columns become the matrix X: which are inputs, the levels of text columns, means and
 * standard deviations. What cannot be used is refused here, with what to do about it. One pass over the table, and one
 * more over each text column.
 */
#include <math.h>
#include <string.h>

#include "data/encoder.h"

/* What is known of a table's columns while choosing. */
typedef struct choice {
    const thiele_table *table;
    thiele_context *ctx;
    int target;
    int *order; /* the inputs' columns */
    int inputs;
    bool *ignored, *categorical;
} choice;

/* --- choosing columns ------------------------------------------------------------------------------------------- */

static thiele_status find_part(const choice *c, const char *part, size_t length, int *column)
{
    char *name;
    thiele_status status = thi_strndup(c->ctx, &name, part, length);
    if (status == THIELE_OK) {
        status = thiele_table_find_column(c->table, c->ctx, name, column);
        thi_free(name);
    }
    return status;
}

static thiele_status mark_part(const choice *c, const char *part, size_t length, bool *mark)
{
    int column;
    thiele_status status = length > 0 ? find_part(c, part, length, &column) : THIELE_OK;
    if (status == THIELE_OK && length > 0) {
        mark[column] = true;
    }
    return status;
}

static thiele_status ignore_part(void *arg, const char *part, size_t length)
{
    return mark_part(arg, part, length, ((choice *)arg)->ignored);
}

static thiele_status categorical_part(void *arg, const char *part, size_t length)
{
    return mark_part(arg, part, length, ((choice *)arg)->categorical);
}

static thiele_status input_part(void *arg, const char *part, size_t length)
{
    choice *c = arg;
    int column;
    thiele_status status = length > 0 ? find_part(c, part, length, &column) : THIELE_OK;
    if (status != THIELE_OK || length == 0) {
        return status;
    }
    if (column == c->target) {
        return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "column '%s' is the target and cannot be an input as well",
                        c->table->name[column]);
    }
    for (int i = 0; i < c->inputs; i++) {
        if (c->order[i] == column) {
            return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "column '%s' is listed twice among the inputs",
                            c->table->name[column]);
        }
    }
    c->order[c->inputs++] = column;
    return THIELE_OK;
}

/* The inputs in the order they are listed or, without a list, as they stand in the table. */
static thiele_status choose_inputs(choice *c, const char *list)
{
    thiele_status status = THIELE_OK;
    if (list != NULL) {
        status = thi_split_list(list, input_part, c);
    } else {
        for (int column = 0; column < c->table->columns; column++) {
            if (column != c->target) {
                c->order[c->inputs++] = column;
            }
        }
    }
    int kept = 0;
    for (int i = 0; i < c->inputs; i++) {
        if (!c->ignored[c->order[i]]) {
            c->order[kept++] = c->order[i];
        }
    }
    c->inputs = kept;
    if (status == THIELE_OK && kept == 0) {
        return thi_fail(c->ctx, THIELE_ERROR_DATA, "no input columns are left in %s", thi_table_source(c->table));
    }
    return status;
}

static thiele_status choose_columns(choice *c, const thiele_fit_options *options)
{
    const size_t columns = (size_t)c->table->columns;
    thiele_status status;
    THI_TRY(thi_alloc(c->ctx, &c->order, columns, sizeof *c->order));
    THI_TRY(thi_alloc(c->ctx, &c->ignored, columns, sizeof *c->ignored));
    THI_TRY(thi_alloc(c->ctx, &c->categorical, columns, sizeof *c->categorical));
    if (options->target == NULL) {
        return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "no target column was named");
    }
    THI_TRY(thiele_table_find_column(c->table, c->ctx, options->target, &c->target));
    THI_TRY(thi_split_list(options->ignore, ignore_part, c));
    THI_TRY(thi_split_list(options->categorical, categorical_part, c));
    THI_TRY(choose_inputs(c, options->inputs));
out:
    return status;
}

static void free_choice(choice *c)
{
    thi_free(c->order);
    thi_free(c->ignored);
    thi_free(c->categorical);
}

/* --- making ----------------------------------------------------------------------------------------------------- */

thiele_status thi_encoder_alloc(thi_encoder *encoder, thiele_context *ctx, int inputs)
{
    thiele_status status = thi_alloc(ctx, &encoder->input, (size_t)inputs, sizeof *encoder->input);
    if (status == THIELE_OK) {
        encoder->inputs = inputs;
    }
    return status;
}

thiele_status thi_encoder_place(thi_encoder *encoder, thiele_context *ctx)
{
    encoder->dims = 0;
    for (int i = 0; i < encoder->inputs; i++) {
        encoder->input[i].first = encoder->dims;
        encoder->dims += encoder->input[i].levels > 0 ? encoder->input[i].levels : 1;
    }
    const size_t D = (size_t)encoder->dims;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &encoder->center, D, sizeof *encoder->center));
    THI_TRY(thi_alloc(ctx, &encoder->scale, D, sizeof *encoder->scale));
    for (size_t d = 0; d < D; d++) {
        encoder->scale[d] = 1;
    }
    encoder->target_scale = 1;
out:
    return status;
}

void thi_encoder_clear(thi_encoder *encoder)
{
    for (int i = 0; i < encoder->inputs; i++) {
        for (int l = 0; l < encoder->input[i].levels; l++) {
            thi_free(encoder->input[i].level[l]);
        }
        thi_free(encoder->input[i].level);
        thi_free(encoder->input[i].name);
    }
    thi_free(encoder->input);
    thi_free(encoder->center);
    thi_free(encoder->scale);
    thi_free(encoder->target);
    thi_free(encoder->missing);
    *encoder = (thi_encoder){0};
}

void thi_encoder_dim_name(const thi_encoder *encoder, int dim, thi_text *text)
{
    int i = encoder->inputs - 1;
    while (i > 0 && encoder->input[i].first > dim) {
        i--;
    }
    const thi_input *input = &encoder->input[i];
    thi_text_add(text, "%s", input->name);
    if (input->levels > 0) {
        thi_text_add(text, "=%s", input->level[dim - input->first]);
    }
}

static thiele_status copy_name(char **out, thiele_context *ctx, const char *name, int column)
{
    if (!thi_is_utf8(name, strlen(name))) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "the name of column %d is not UTF-8: convert the file first",
                        column + 1);
    }
    return thi_strdup(ctx, out, name);
}

/* --- learning --------------------------------------------------------------------------------------------------- */

static thiele_status learn_columns(thi_encoder *encoder, const choice *c)
{
    const thiele_table *table = c->table;
    thiele_status status;
    if (thi_table_is_text(table, c->target)) {
        return thi_fail(c->ctx, THIELE_ERROR_DATA,
                        "the target '%s' is text: regression needs numbers, and there is no likelihood for classes yet",
                        table->name[c->target]);
    }
    THI_TRY(copy_name(&encoder->target, c->ctx, table->name[c->target], c->target));
    THI_TRY(thi_encoder_alloc(encoder, c->ctx, c->inputs));
    for (int i = 0; i < c->inputs; i++) {
        const int column = c->order[i];
        THI_TRY(copy_name(&encoder->input[i].name, c->ctx, table->name[column], column));
        if (c->categorical[column] || thi_table_is_text(table, column)) {
            THI_TRY(thi_learn_levels(&encoder->input[i], c->ctx, table, column));
        }
    }
    THI_TRY(thi_encoder_place(encoder, c->ctx));
out:
    return status;
}

/* The mean and standard deviation of dimension d, which must be numbers to be divided by. */
static thiele_status find_spread(const thi_moments *moments, thiele_context *ctx, int d, const char *name, double *mean,
                                 double *spread)
{
    const double least = 1e-150; /* its square is still a normal number */
    *mean = moments->mean[d];
    *spread = sqrt(moments->square[d] / (double)moments->count);
    if (!isfinite(*mean) || !isfinite(*spread)) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s' has numbers too large to work with: change its unit",
                        name);
    }
    if (!(*spread >= least)) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s' varies too little to work with: change its unit", name);
    }
    return THIELE_OK;
}

static thiele_status says_nothing(thiele_context *ctx, const char *name, const char *value)
{
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s' is the same (%s) in every row and says nothing: leave it out with --ignore %s", name,
                    value, name);
}

/* What dimension `from` of the moments says becomes dimension input->first. */
static thiele_status set_numeric(thi_encoder *encoder, thiele_context *ctx, const thi_moments *moments, int from,
                                 const thi_input *input, bool raw, bool partial)
{
    double mean, spread;
    if (moments->low[from] == moments->high[from]) {
        char value[THI_NUMBER_MAX];
        thi_format_number(value, moments->low[from]);
        if (!partial) {
            return says_nothing(ctx, input->name, value);
        }
        /* Constant in these rows only: harmless here, and the other rows may need it. */
        encoder->center[input->first] = raw ? 0 : moments->low[from];
        encoder->scale[input->first] = 1;
        return THIELE_OK;
    }
    thiele_status status = find_spread(moments, ctx, from, input->name, &mean, &spread);
    encoder->center[input->first] = raw ? 0 : mean;
    encoder->scale[input->first] = raw ? 1 : spread;
    return status;
}

/* Levels that stand only in rows left out are none. */
static thiele_status set_levels(thiele_context *ctx, const thi_moments *moments, int from, thi_input *input,
                                bool partial)
{
    const int levels = input->levels;
    input->levels = 0;
    for (int l = 0; l < levels; l++) {
        if (moments->high[from + l] > 0) {
            input->level[input->levels++] = input->level[l];
        } else {
            thi_free(input->level[l]);
        }
    }
    return input->levels > 1 || partial ? THIELE_OK : says_nothing(ctx, input->name, input->level[0]);
}

static thiele_status set_target(thi_encoder *encoder, thiele_context *ctx, const thi_moments *moments, bool raw)
{
    const int d = moments->dims - 1;
    double spread;
    if (moments->low[d] == moments->high[d]) {
        char value[THI_NUMBER_MAX];
        thi_format_number(value, moments->low[d]);
        return thi_fail(ctx, THIELE_ERROR_DATA,
                        "the target '%s' is the same (%s) in every row: there is nothing to learn", encoder->target,
                        value);
    }
    thiele_status status = find_spread(moments, ctx, d, encoder->target, &encoder->target_mean, &spread);
    encoder->target_variance = spread * spread;
    encoder->target_center = raw ? 0 : encoder->target_mean;
    encoder->target_scale = raw ? 1 : spread;
    return status;
}

/* Dimensions may move down as levels fall away; from counts them before, encoder->dims after. */
static thiele_status set_scales(thi_encoder *encoder, thiele_context *ctx, const thi_moments *moments, bool raw,
                                bool partial)
{
    thiele_status status = set_target(encoder, ctx, moments, raw);
    int from = 0;
    encoder->dims = 0;
    for (int i = 0; i < encoder->inputs && status == THIELE_OK; i++) {
        thi_input *input = &encoder->input[i];
        input->first = encoder->dims;
        if (input->levels > 0) {
            int before = input->levels;
            status = set_levels(ctx, moments, from, input, partial);
            from += before;
            encoder->dims += input->levels;
        } else {
            status = set_numeric(encoder, ctx, moments, from++, input, raw, partial);
            encoder->dims++;
        }
    }
    return status;
}

static thiele_status learn_scales(thi_encoder *encoder, const choice *c, const thiele_fit_options *options)
{
    thi_moments moments;
    thiele_status status = thi_learn_moments(&moments, c->ctx, encoder, c->table, options->drop_missing != 0);
    if (status != THIELE_OK) {
        return status;
    }
    if (moments.count < 2) {
        status = thi_fail(c->ctx, THIELE_ERROR_DATA, "%s has %lld row%s%s: at least two are needed",
                          thi_table_source(c->table), (long long)moments.count, moments.count == 1 ? "" : "s",
                          moments.count < c->table->rows ? " without missing values" : "");
    } else {
        status = set_scales(encoder, c->ctx, &moments, options->raw != 0, c->table->whole != NULL);
    }
    thi_moments_clear(&moments);
    return status;
}

thiele_status thi_encoder_learn(thi_encoder *encoder, thiele_context *ctx, const thiele_table *table,
                                const thiele_fit_options *options)
{
    choice c = {.table = table, .ctx = ctx};
    thiele_status status;
    *encoder = (thi_encoder){0};
    THI_TRY(choose_columns(&c, options));
    THI_TRY(learn_columns(encoder, &c));
    THI_TRY(learn_scales(encoder, &c, options));
    if (thi_table_missing(table) != NULL) {
        THI_TRY(thi_strdup(ctx, &encoder->missing, thi_table_missing(table)));
    }
out:
    free_choice(&c);
    if (status != THIELE_OK) {
        thi_encoder_clear(encoder);
    }
    return status;
}
