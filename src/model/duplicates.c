/* Finds equal rows by sorting; which of them is named does not depend on the sort. */
#include "model/duplicates.h"

#include <stdlib.h>
#include <string.h>

typedef struct sort_key {
    const double *x;
    int64_t index;
    int D;
} sort_key;

static int compare_inputs(const sort_key *a, const sort_key *b)
{
    for (int d = 0; d < a->D; d++) {
        if (a->x[d] != b->x[d]) {
            return a->x[d] < b->x[d] ? -1 : 1;
        }
    }
    return 0;
}

static int compare(const void *left, const void *right)
{
    const sort_key *a = left;
    const sort_key *b = right;
    int order = compare_inputs(a, b);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

thiele_status thi_check_replicates(thiele_context *ctx, int64_t n, int D, const double *X, const double *y,
                                   const int64_t *row, bool allowed)
{
    sort_key *key;
    thiele_status status = thi_alloc(ctx, &key, (size_t)n, sizeof *key);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        key[i] = (sort_key){X + i * D, i, D};
    }
    qsort(key, (size_t)n, sizeof *key, compare);
    int64_t count = 0;
    int64_t first[2] = {n, n};
    for (int64_t i = 1; i < n; i++) {
        int64_t a = key[i - 1].index;
        int64_t b = key[i].index;
        if (compare_inputs(&key[i - 1], &key[i]) == 0 && y[a] != y[b]) {
            count++;
            if (a < first[0]) {
                first[0] = a;
                first[1] = b;
            }
        }
    }
    long long one = count > 0 ? (long long)row[first[0]] + 1 : 0;
    long long other = count > 0 ? (long long)row[first[1]] + 1 : 0;
    if (count > 0 && allowed) {
        thi_log(
            ctx, THIELE_LOG_WARNING,
            "rows %lld and %lld have the same inputs and different targets (%lld such pair%s in all): the noise has to "
            "explain the difference",
            one, other, (long long)count, count == 1 ? "" : "s");
    } else if (count > 0) {
        status =
            thi_fail(ctx, THIELE_ERROR_DATA,
                     "rows %lld and %lld have the same inputs and different targets (%lld such pair%s in all): correct "
                     "them, or say with --replicates that they are repeated measurements",
                     one, other, (long long)count, count == 1 ? "" : "s");
    }
    thi_free(key);
    return status;
}
