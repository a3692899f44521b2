/*
 * The area under the ROC curve: how well the probabilities of a label rank rows that have it above rows that do not.
 * For each label it is the Mann-Whitney statistic over the number of pairs (Hanley and McNeil 1982), ties counting
 * half; of several labels their mean. One sort per label, O(classes n log n), and 16 n bytes.
 */
#include <thiele/metrics.h>

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

typedef struct ranked_row {
    double probability;
    int has; /* the label */
} ranked_row;

static int by_probability(const void *left, const void *right)
{
    double a = ((const ranked_row *)left)->probability;
    double b = ((const ranked_row *)right)->probability;
    return (a > b) - (a < b);
}

/* Of rows that are sorted; NaN where all or none have the label. Counts of pairs are exact up to 2^53. */
static double area(int64_t n, const ranked_row *row)
{
    double below = 0.0; /* rows without the label so far */
    double with = 0.0;
    double pairs = 0.0;
    int64_t end;
    for (int64_t begin = 0; begin < n; begin = end) {
        double ones = 0.0;
        double others = 0.0;
        for (end = begin; end < n && row[end].probability == row[begin].probability; end++) {
            ones += row[end].has;
            others += !row[end].has;
        }
        pairs += ones * (below + 0.5 * others);
        below += others;
        with += ones;
    }
    return with > 0.0 && below > 0.0 ? pairs / (with * below) : NAN;
}

thiele_status thiele_score_auc(thiele_context *ctx, int64_t n, int classes, const int *label, const double *probability,
                               double *auc)
{
    THI_NEED(ctx, ctx && auc && (n < 1 || (label && probability)));
    if (n < 1 || classes < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "there are no predictions to score");
    }
    ranked_row *row = NULL;
    double sum = 0.0;
    int there = 0;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &row, (size_t)n, sizeof *row));
    for (int c = 0; c < classes; c++) {
        for (int64_t i = 0; i < n; i++) {
            row[i] = (ranked_row){probability[i * classes + c], label[i] == c};
        }
        qsort(row, (size_t)n, sizeof *row, by_probability);
        double one = area(n, row);
        sum += isnan(one) ? 0.0 : one;
        there += !isnan(one);
    }
    *auc = there > 0 ? sum / there : NAN;
out:
    thi_free(row);
    return status;
}
