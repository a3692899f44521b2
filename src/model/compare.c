/*
 * Models side by side on the same rows. What separates two of them is the mean over rows of the difference of their
 * losses: most of what makes a row easy or hard is the same for both and leaves it, so that its standard error is far
 * smaller than that of either mean. Memory: two numbers per row and model.
 */
#include <thiele/compare.h>

#include <math.h>
#include <string.h>

#include "model/predict_pass.h"
#include "model/score.h"

/* The losses of all models, a row of the table each; NaN: not predicted. */
typedef struct field {
    int64_t rows;
    double *loss, *square; /* rows x models */
} field;

static int find_target(const thiele_model *model, const char *name)
{
    for (int p = 0; p < thiele_model_targets(model); p++) {
        if (strcmp(thiele_model_target(model, p), name) == 0) {
            return p;
        }
    }
    return -1;
}

static bool has_labels(const thiele_model *model, int target)
{
    return thi_model_has_classes(model->parts > 0 ? model->part[target] : model);
}

static thiele_status find_targets(thiele_context *ctx, int count, const thiele_model *const *models, const char *name,
                                  int *target)
{
    for (int k = 0; k < count; k++) {
        target[k] = find_target(models[k], name);
        if (target[k] < 0) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                            "model %d predicts '%s', not '%s': models are compared on a target that all of them "
                            "predict",
                            k + 1, thiele_model_target(models[k], 0), name);
        }
        if (has_labels(models[k], target[k]) != has_labels(models[0], target[0])) {
            return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                            "for '%s', model %d predicts %s and model 1 %s: probabilities and densities cannot be "
                            "compared",
                            name, k + 1, has_labels(models[k], target[k]) ? "labels" : "numbers",
                            has_labels(models[0], target[0]) ? "labels" : "numbers");
        }
    }
    return THIELE_OK;
}

/* Of the k-th model, through losses of all its targets. */
static thiele_status add_model(field *all, thiele_context *ctx, int k, const thiele_model *model, int target,
                               const thiele_table *table, const thiele_predict_options *options, thiele_scores *scores)
{
    int targets = thiele_model_targets(model);
    size_t numbers = (size_t)(all->rows > 0 ? all->rows : 1) * (size_t)targets;
    double *loss = NULL, *square = NULL;
    thiele_scores *each = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &loss, numbers, sizeof *loss));
    THI_TRY(thi_alloc(ctx, &square, numbers, sizeof *square));
    THI_TRY(thi_alloc(ctx, &each, (size_t)targets, sizeof *each));
    THI_TRY(thi_model_losses(model, ctx, table, options, loss, square, each));
    *scores = each[target];
    for (int64_t i = 0; i < all->rows; i++) {
        all->loss[k * all->rows + i] = loss[i * targets + target];
        all->square[k * all->rows + i] = square[i * targets + target];
    }
out:
    thi_free(loss);
    thi_free(square);
    thi_free(each);
    return status;
}

/* Rows that a model does not predict count for none; the others move to the front of each column. */
static void keep_common(field *all, int count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < all->rows; i++) {
        bool common = true;
        for (int k = 0; k < count; k++) {
            common = common && !isnan(all->loss[k * all->rows + i]);
        }
        for (int k = 0; k < count && common; k++) {
            all->loss[k * all->rows + kept] = all->loss[k * all->rows + i];
            all->square[k * all->rows + kept] = all->square[k * all->rows + i];
        }
        kept += common;
    }
    for (int k = 1; k < count; k++) {
        memmove(all->loss + k * kept, all->loss + k * all->rows, (size_t)kept * sizeof *all->loss);
        memmove(all->square + k * kept, all->square + k * all->rows, (size_t)kept * sizeof *all->square);
    }
    all->rows = kept;
}

/* The mean of one - other, and its error: that of n independent rows; unknown for one row. */
static thiele_difference difference(int64_t n, const double *one, const double *other)
{
    double mean = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n; i++) {
        mean += (one[i] - other[i]) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        double off = one[i] - other[i] - mean;
        squares += off * off;
    }
    return (thiele_difference){mean, one == other ? 0.0 : sqrt(squares / (double)n / (double)(n - 1))};
}

static double mean_of(int64_t n, const double *value)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += value[i];
    }
    return sum / (double)n;
}

static void judge(const field *all, int count, thiele_comparison *comparisons)
{
    int64_t n = all->rows;
    int best = 0;
    for (int k = 1; k < count; k++) {
        best = mean_of(n, all->loss + k * n) < mean_of(n, all->loss + best * n) ? k : best;
    }
    for (int k = 0; k < count; k++) {
        comparisons[k].rows = n;
        comparisons[k].best = k == best;
        comparisons[k].loss = difference(n, all->loss + k * n, all->loss + best * n);
        comparisons[k].square = difference(n, all->square + k * n, all->square + best * n);
    }
}

thiele_status thiele_compare(thiele_context *ctx, int count, const thiele_model *const *models,
                             const thiele_table *table, const thiele_predict_options *options, const char *target,
                             thiele_comparison *comparisons)
{
    THI_NEED(ctx, ctx && count > 0 && models && table && comparisons);
    for (int k = 0; k < count; k++) {
        THI_NEED(ctx, models[k]);
    }
    const char *name = target != NULL ? target : thiele_model_target(models[0], 0);
    field all = {.rows = table->rows};
    size_t numbers = (size_t)(all.rows > 0 ? all.rows : 1) * (size_t)count;
    int *which = NULL;
    thiele_predict_options taken;
    thiele_status status;
    THI_TRY(thi_predict_take(ctx, options, &taken));
    THI_TRY(thi_alloc(ctx, &which, (size_t)count, sizeof *which));
    THI_TRY(find_targets(ctx, count, models, name, which));
    THI_TRY(thi_alloc(ctx, &all.loss, numbers, sizeof *all.loss));
    THI_TRY(thi_alloc(ctx, &all.square, numbers, sizeof *all.square));
    for (int k = 0; k < count; k++) {
        comparisons[k] = (thiele_comparison){0};
        THI_TRY(add_model(&all, ctx, k, models[k], which[k], table, &taken, &comparisons[k].scores));
    }
    keep_common(&all, count);
    if (all.rows == 0) {
        status =
            thi_fail(ctx, THIELE_ERROR_DATA, "the %d models have no row of the table that all of them predict", count);
        goto out;
    }
    judge(&all, count, comparisons);
out:
    thi_free(all.loss);
    thi_free(all.square);
    thi_free(which);
    return status;
}
