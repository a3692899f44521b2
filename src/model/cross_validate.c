/* k-fold cross-validation: each fold is predicted by a model fitted to the others. Costs `folds` fits. */
#include <math.h>
#include <string.h>

#include "model/describe.h"
#include "model/options.h"
#include "model/specify.h"

/* Everything that the folds share. */
typedef struct folding {
    thiele_context *ctx;
    const thiele_table *table;
    const thiele_fit_options *options;
    int64_t n;
    int64_t *order, *rows; /* a random order of the table's rows; the rows of one part */
} folding;

/* The mean of one score over folds, each with the weight of its rows; folds that have none are left out. */
static double pooled(const thiele_scores *each, int folds, size_t offset)
{
    double sum = 0.0;
    double rows = 0.0;
    for (int fold = 0; fold < folds; fold++) {
        double value = *(const double *)(const void *)((const char *)&each[fold] + offset);
        if (!isnan(value)) {
            /* Squared errors are what can be averaged. */
            sum += (double)each[fold].rows * (offset == offsetof(thiele_scores, rmse) ? value * value : value);
            rows += (double)each[fold].rows;
        }
    }
    return offset == offsetof(thiele_scores, rmse) ? sqrt(sum / rows) : sum / rows;
}

void thi_scores_pool(const thiele_scores *each, int folds, thiele_scores *overall)
{
    *overall = (thiele_scores){0};
    for (int fold = 0; fold < folds; fold++) {
        overall->rows += each[fold].rows;
    }
    for (int i = 0; i < THI_SCORE_FIELDS; i++) {
        *(double *)(void *)((char *)overall + thi_score_fields[i].offset) =
            pooled(each, folds, thi_score_fields[i].offset);
    }
}

/* Fits on all but fold `fold` of `folds`, and scores it. */
static thiele_status run_fold(folding *f, int fold, int folds, thiele_scores *scores)
{
    thiele_table *train = NULL;
    thiele_table *test = NULL;
    thiele_model *model = NULL;
    thiele_scores *each = NULL;
    int targets;
    int64_t begin = f->n * fold / folds;
    int64_t end = f->n * (fold + 1) / folds;
    size_t before = (size_t)begin;
    size_t after = (size_t)(f->n - end);
    thiele_predict_options predict = THIELE_PREDICT_OPTIONS_INIT;
    predict.drop_missing = f->options->columns.drop_missing || thi_missing_of(f->options) == THI_MISSING_DROP;
    predict.unseen = THIELE_UNSEEN_ZERO;
    thiele_status status;
    memcpy(f->rows, f->order, before * sizeof *f->rows);
    memcpy(f->rows + before, f->order + end, after * sizeof *f->rows);
    THI_TRY(thiele_table_select(&train, f->ctx, f->table, f->rows, (int64_t)(before + after)));
    THI_TRY(thiele_table_select(&test, f->ctx, f->table, f->order + begin, end - begin));
    THI_TRY(thiele_model_fit(&model, f->ctx, train, f->options));
    if (model->stop == THIELE_STOP_CANCELLED) {
        THI_TRY(thi_fail(f->ctx, THIELE_ERROR_CANCELLED, "stopped in fold %d of %d", fold + 1, folds));
    }
    targets = thiele_model_targets(model);
    THI_TRY(thi_alloc(f->ctx, &each, (size_t)targets, sizeof *each));
    THI_TRY(thiele_model_score(model, f->ctx, test, &predict, each));
    thi_scores_pool(each, targets, scores);
    scores->rows = each->rows;
    if (targets > 1) {
        /* Errors in different units have no mean. */
        scores->rmse = scores->mae = scores->crps = NAN;
    }
out:
    thi_free(each);
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_table_destroy(test);
    return status == THIELE_OK ? status : thi_fail_in(f->ctx, status, "fold %d of %d", fold + 1, folds);
}

thiele_status thiele_cross_validate(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options,
                                    int folds, thiele_scores *each, thiele_scores *overall)
{
    THI_NEED(ctx, ctx && overall);
    thiele_scores *scores = NULL;
    thiele_fit_options taken;
    folding f = {.ctx = ctx, .table = table, .options = &taken};
    thiele_status status;
    THI_TRY(thi_fit_options_take(ctx, options, &taken));
    THI_TRY(thi_check_fit_options(ctx, table, &taken));
    f.n = thiele_table_rows(table);
    if (folds < 2 || folds > f.n) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "%lld rows can be divided into 2 to %lld folds, not %d",
                        (long long)f.n, (long long)f.n, folds);
    }
    THI_TRY(thi_alloc(ctx, &f.order, (size_t)f.n, sizeof *f.order));
    THI_TRY(thi_alloc(ctx, &f.rows, (size_t)f.n, sizeof *f.rows));
    THI_TRY(thi_alloc(ctx, &scores, (size_t)folds, sizeof *scores));
    thi_random_permutation((thi_stream){ctx->seed, THI_RANDOM_SPLIT, 1}, f.n, f.order);
    for (int fold = 0; fold < folds; fold++) {
        THI_TRY(run_fold(&f, fold, folds, &scores[fold]));
    }
    thi_scores_pool(scores, folds, overall);
    if (each != NULL) {
        memcpy(each, scores, (size_t)folds * sizeof *scores);
    }
out:
    thi_free(f.order);
    thi_free(f.rows);
    thi_free(scores);
    return status;
}
