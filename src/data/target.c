/*
 * What is learned of the target columns: numbers are standardised each by itself or left as they are, labels are
 * numbered, those that no kept row has left out. The likelihood's rule says which; what does not fit it is refused.
 */
#include <math.h>
#include <string.h>

#include "data/encoder.h"

/* --- before the pass --------------------------------------------------------------------------------------------- */

static thiele_status check_rule(const thi_choice *c, const thi_column_options *options, const thi_target_rule *rule)
{
    if (rule->labels && c->targets > 1) {
        return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "likelihood '%s' takes one target column of classes, not %d",
                        rule->likelihood, c->targets);
    }
    if (!rule->labels && options->classes != NULL) {
        return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "likelihood '%s' does not take classes: its targets are numbers",
                        rule->likelihood);
    }
    if (!rule->exposure && c->exposure >= 0) {
        return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "likelihood '%s' does not take an exposure column",
                        rule->likelihood);
    }
    return THIELE_OK;
}

static thiele_status learn_target(thi_target *target, const thi_choice *c, int column,
                                  const thi_column_options *options, const thi_target_rule *rule)
{
    thiele_status status;
    THI_TRY(thi_choice_name(c, column, &target->name));
    if (rule->labels) {
        THI_TRY(thi_learn_labels(target, c->ctx, c->table, column, options->classes, rule));
    } else if (thi_table_is_text(c->table, column)) {
        THI_TRY(thi_check_commas(c->ctx, c->table, column));
        return thi_fail(c->ctx, THIELE_ERROR_DATA,
                        "the target '%s' is text, but likelihood '%s' needs numbers, without units such as $ or %%; "
                        "for text as classes "
                        "use `likelihood` bernoulli (two labels) or softmax (more)",
                        target->name, rule->likelihood);
    }
out:
    return status;
}

thiele_status thi_learn_targets(thi_encoder *encoder, const thi_choice *choice, const thi_column_options *options,
                                const thi_target_rule *rule)
{
    thiele_status status;
    THI_TRY(check_rule(choice, options, rule));
    THI_TRY(thi_encoder_alloc_targets(encoder, choice->ctx, choice->targets));
    for (int p = 0; p < choice->targets; p++) {
        THI_TRY(learn_target(&encoder->target[p], choice, choice->target[p], options, rule));
    }
    if (choice->exposure >= 0) {
        THI_TRY(thi_choice_name(choice, choice->exposure, &encoder->exposure));
    }
    if (choice->weights >= 0 && !choice->table->equal) {
        THI_TRY(thi_choice_name(choice, choice->weights, &encoder->weights));
    }
    encoder->signs = rule->labels && rule->signs;
    encoder->partial = choice->targets > 1 || options->partial;
out:
    return status;
}

/* --- after it ---------------------------------------------------------------------------------------------------- */

static thiele_status same_everywhere(thiele_context *ctx, const char *name, const char *value)
{
    char shown[THI_SHOWN_MAX];
    thi_show_text(shown, value, strlen(value));
    return thi_fail(ctx, THIELE_ERROR_DATA, "the target '%s' is the same (%s) in every row: there is nothing to learn",
                    name, shown);
}

static thiele_status set_standardised(thi_target *target, thiele_context *ctx, const thi_column_spread *spread, int p,
                                      bool raw)
{
    double deviation;
    if (spread->low[p] == spread->high[p]) {
        char value[THI_NUMBER_MAX];
        thi_format_number(value, spread->low[p]);
        return same_everywhere(ctx, target->name, value);
    }
    thiele_status status = thi_find_spread(spread, ctx, p, target->name, &target->mean, &deviation);
    target->variance = deviation * deviation;
    target->center = raw ? 0 : target->mean;
    target->scale = raw ? 1 : deviation;
    return status;
}

/* A number as it is may be the same everywhere: a rate can be learned from equal counts. */
static thiele_status set_plain(thi_target *target, thiele_context *ctx, const thi_column_spread *spread, int p)
{
    target->mean = spread->mean[p];
    target->variance = spread->square[p] / spread->mass[p];
    if (!isfinite(target->mean) || !isfinite(target->variance)) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "column '%s' holds numbers too large to work with: change its unit",
                        target->name);
    }
    return THIELE_OK;
}

/* Keeps the labels that some row has; count becomes theirs. */
static void drop_labels(thi_target *target, double *count)
{
    int kept = 0;
    for (int l = 0; l < target->levels; l++) {
        if (count[l] == 0) {
            thi_free(target->level[l]);
            continue;
        }
        count[kept] = count[l];
        target->level[kept] = target->level[l];
        if (target->level_value != NULL) {
            target->level_value[kept] = target->level_value[l];
        }
        kept++;
    }
    target->levels = kept;
}

/* The user's labels, and those of the whole that a selection was made from, stay without a row of theirs. */
static thiele_status set_labels(thi_target *target, thiele_context *ctx, const thi_moments *moments, bool signs,
                                bool given, bool selection)
{
    double count[THI_LEVELS_MAX];
    int present = 0, some = 0;
    memcpy(count, moments->label, sizeof count);
    for (int l = 0; l < target->levels; l++) {
        present += count[l] > 0;
        some = count[l] > 0 ? l : some;
    }
    if (present < 2 && (!selection || target->levels < 2)) {
        return same_everywhere(ctx, target->name, target->level[some]);
    }
    if (!given && !selection) {
        drop_labels(target, count);
    }
    double sum = 0, square = 0;
    const double rows = moments->mass, step = signs ? 2 : 1;
    for (int l = 0; l < target->levels; l++) {
        sum += l * count[l];
    }
    for (int l = 0; l < target->levels; l++) {
        square += (l - sum / rows) * (l - sum / rows) * count[l];
    }
    target->mean = step * (sum / rows) - (signs ? 1 : 0);
    target->variance = step * step * (square / rows);
    return THIELE_OK;
}

thiele_status thi_set_targets(thi_encoder *encoder, const thi_choice *choice, const thi_moments *moments,
                              const thi_column_options *options, const thi_target_rule *rule)
{
    const thi_column_spread *spread = &moments->targets;
    if (rule->labels) {
        return set_labels(&encoder->target[0], choice->ctx, moments, encoder->signs, options->classes != NULL,
                          choice->table->whole != NULL);
    }
    thiele_status status = THIELE_OK;
    for (int p = 0; p < encoder->targets && status == THIELE_OK; p++) {
        thi_target *target = &encoder->target[p];
        if (spread->count[p] == 0) {
            status = thi_fail(choice->ctx, THIELE_ERROR_DATA, "the target '%s' has no value in any row", target->name);
        } else {
            status = rule->standardise ? set_standardised(target, choice->ctx, spread, p, options->raw)
                                       : set_plain(target, choice->ctx, spread, p);
        }
    }
    return status;
}

/* --- two values, counts ------------------------------------------------------------------------------------------ */

typedef struct pair {
    double *value;
    int64_t count[2];
} pair;

/* Counts a value among the two; false: it is a third one, or no number to go by. */
static bool is_of_two(void *state, double y)
{
    pair *p = state;
    int i = p->count[0] == 0 || y == p->value[0] ? 0 : 1;
    bool fits = isfinite(y) && (p->count[i] == 0 || y == p->value[i]);
    p->value[i] = fits ? y : p->value[i];
    p->count[i] += fits;
    return fits;
}

/* Whether a column holds numbers alone that all pass a test. Of a selection the whole table is looked at. */
static thiele_status all_pass(thiele_context *ctx, const thiele_table *table, int column,
                              bool (*passes)(void *state, double y), void *state, bool *all)
{
    int64_t texts, missing;
    double *y;
    while (table->whole != NULL) {
        table = table->whole;
    }
    thi_table_census(table, column, &texts, &missing);
    *all = texts == 0;
    const int64_t block = thi_table_block(table, 1);
    thiele_status status = thi_alloc(ctx, &y, (size_t)block, sizeof *y);
    for (int64_t first = 0; first < table->rows && *all && status == THIELE_OK; first += block) {
        int64_t rows = table->rows - first < block ? table->rows - first : block;
        status = table->ops->numbers(table, ctx, first, rows, &column, 1, y);
        for (int64_t r = 0; r < rows && *all && status == THIELE_OK; r++) {
            *all = isnan(y[r]) || passes(state, y[r]);
        }
        status = status == THIELE_OK ? thi_look_up(ctx, first, table->rows) : status;
    }
    thi_free(y);
    return status;
}

thiele_status thi_has_two_values(thiele_context *ctx, const thiele_table *table, int column, double value[2], bool *two)
{
    pair found = {.value = value};
    thiele_status status = all_pass(ctx, table, column, is_of_two, &found, two);
    *two = *two && found.count[0] > 1 && found.count[1] > 1;
    return status;
}

static bool is_count(void *zero, double y)
{
    *(bool *)zero = *(bool *)zero || y == 0;
    return isfinite(y) && y >= 0 && y == floor(y);
}

thiele_status thi_has_counts(thiele_context *ctx, const thiele_table *table, int column, bool *counts)
{
    bool zero = false;
    thiele_status status = all_pass(ctx, table, column, is_count, &zero, counts);
    *counts = *counts && zero;
    return status;
}
