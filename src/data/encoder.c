/*
 * Learns from a table how its columns become the matrix X: which are inputs, the levels of text columns, means and
 * standard deviations. What cannot be used is refused here, with what to do about it. One pass over the table, and one
 * more over each column of texts or labels.
 */
#include "data/encoder.h"

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
out:
    return status;
}

static void free_levels(char **level, int levels)
{
    for (int l = 0; l < levels; l++) {
        thi_free(level[l]);
    }
    thi_free(level);
}

void thi_encoder_clear(thi_encoder *encoder)
{
    for (int i = 0; i < encoder->inputs; i++) {
        free_levels(encoder->input[i].level, encoder->input[i].levels);
        thi_free(encoder->input[i].name);
    }
    for (int p = 0; p < encoder->targets; p++) {
        free_levels(encoder->target[p].level, encoder->target[p].levels);
        thi_free(encoder->target[p].level_value);
        thi_free(encoder->target[p].name);
    }
    thi_free(encoder->input);
    thi_free(encoder->target);
    thi_free(encoder->center);
    thi_free(encoder->scale);
    thi_free(encoder->missing);
    thi_free(encoder->exposure);
    *encoder = (thi_encoder){0};
}

void thi_encoder_dim_name(const thi_encoder *encoder, int dim, thi_text *text)
{
    int i = 0;
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
    if (input->levels > 0) {
        thi_text_add(text, "=%s", input->level[dim - input->first]);
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
        if (c->categorical[column] || thi_table_is_text(c->table, column)) {
            THI_TRY(thi_learn_levels(&encoder->input[i], c->ctx, c->table, column));
        }
    }
    THI_TRY(thi_encoder_place(encoder, c->ctx));
out:
    return status;
}

static thiele_status says_nothing(thiele_context *ctx, const char *name, const char *value)
{
    return thi_fail(ctx, THIELE_ERROR_DATA,
                    "column '%s' is the same (%s) in every row and says nothing: leave it out with --ignore %s", name,
                    value, name);
}

/* What dimension `from` of the spread says becomes dimension input->first. */
static thiele_status set_numeric(thi_encoder *encoder, thiele_context *ctx, const thi_spread *spread, int from,
                                 const thi_input *input, bool raw, bool partial)
{
    double mean, deviation;
    if (spread->low[from] == spread->high[from]) {
        char value[THI_NUMBER_MAX];
        thi_format_number(value, spread->low[from]);
        if (!partial) {
            return says_nothing(ctx, input->name, value);
        }
        /* Constant in these rows only: harmless here, and the other rows may need it. */
        encoder->center[input->first] = raw ? 0 : spread->low[from];
        encoder->scale[input->first] = 1;
        return THIELE_OK;
    }
    thiele_status status = thi_find_spread(spread, ctx, from, input->name, &mean, &deviation);
    encoder->center[input->first] = raw ? 0 : mean;
    encoder->scale[input->first] = raw ? 1 : deviation;
    return status;
}

/* Levels that stand only in rows left out are none. */
static thiele_status set_levels(thiele_context *ctx, const thi_spread *spread, int from, thi_input *input, bool partial)
{
    const int levels = input->levels;
    input->levels = 0;
    for (int l = 0; l < levels; l++) {
        if (spread->high[from + l] > 0) {
            input->level[input->levels++] = input->level[l];
        } else {
            thi_free(input->level[l]);
        }
    }
    return input->levels > 1 || partial ? THIELE_OK : says_nothing(ctx, input->name, input->level[0]);
}

/* Dimensions may move down as levels fall away; from counts them before, encoder->dims after. */
static thiele_status set_inputs(thi_encoder *encoder, thiele_context *ctx, const thi_spread *spread, bool raw,
                                bool partial)
{
    thiele_status status = THIELE_OK;
    int from = 0;
    encoder->dims = 0;
    for (int i = 0; i < encoder->inputs && status == THIELE_OK; i++) {
        thi_input *input = &encoder->input[i];
        input->first = encoder->dims;
        if (input->levels > 0) {
            int before = input->levels;
            status = set_levels(ctx, spread, from, input, partial);
            from += before;
            encoder->dims += input->levels;
        } else {
            status = set_numeric(encoder, ctx, spread, from++, input, raw, partial);
            encoder->dims++;
        }
    }
    return status;
}

static thiele_status learn_scales(thi_encoder *encoder, const thi_choice *c, const thiele_fit_options *options,
                                  const thi_target_rule *rule)
{
    const thi_reading how = {.target = true,
                             .drop_missing = options->drop_missing != 0,
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
    if (status == THIELE_OK) {
        status = set_inputs(encoder, c->ctx, &moments.inputs, options->raw != 0, c->table->whole != NULL);
    }
    thi_moments_clear(&moments);
    return status;
}

thiele_status thi_encoder_learn(thi_encoder *encoder, thiele_context *ctx, const thiele_table *table,
                                const thiele_fit_options *options, const thi_target_rule *rule)
{
    static const thi_target_rule numbers = {.likelihood = "gaussian", .standardise = true};
    thi_choice c = {.table = table, .ctx = ctx};
    thiele_status status;
    rule = rule != NULL ? rule : &numbers;
    *encoder = (thi_encoder){0};
    THI_TRY(thi_choose_columns(&c, options));
    THI_TRY(thi_learn_targets(encoder, &c, options, rule));
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
