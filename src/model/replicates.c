/* Finds equal rows by sorting; which of them are named does not depend on the sort. */
#include "model/replicates.h"

#include <math.h>
#include <stdlib.h>

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

typedef struct repeats {
    int64_t rows, freedom; /* of sets whose targets differ; less one for each set */
    double square;         /* sum of squared distances from the means of the sets */
    int64_t first[2];      /* two of them, in the set that begins first */
} repeats;

/* key[0 .. count-1] have the same inputs, in the order of their rows. */
static void add_set(repeats *r, const sort_key *key, int64_t count, const double *y)
{
    double mean = 0.0, square = 0.0;
    int64_t other = -1;
    for (int64_t i = 0; i < count; i++) {
        mean += y[key[i].index] / (double)count;
        other = other < 0 && y[key[i].index] != y[key[0].index] ? key[i].index : other;
    }
    if (other < 0) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        square += (y[key[i].index] - mean) * (y[key[i].index] - mean);
    }
    if (r->rows == 0 || key[0].index < r->first[0]) {
        r->first[0] = key[0].index;
        r->first[1] = other;
    }
    r->rows += count;
    r->freedom += count - 1;
    r->square += square;
}

thiele_status thi_report_replicates(thiele_context *ctx, int64_t n, int D, const double *X, const double *y,
                                    const thi_target *target, const int64_t *row)
{
    sort_key *key;
    repeats r = {0};
    thiele_status status = thi_alloc(ctx, &key, (size_t)n, sizeof *key);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        key[i] = (sort_key){X + i * D, i, D};
    }
    qsort(key, (size_t)n, sizeof *key, compare);
    for (int64_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && compare_inputs(&key[from], &key[to]) == 0; to++) {
        }
        add_set(&r, key + from, to - from, y);
    }
    if (r.rows > 0) {
        thi_log(ctx, THIELE_LOG_WARNING,
                "%lld rows have the inputs of others and a different '%s' (such as rows %lld and %lld): as repeated "
                "measurements they imply noise of standard deviation %.3g",
                (long long)r.rows, target->name, (long long)row[r.first[0]] + 1, (long long)row[r.first[1]] + 1,
                target->scale * sqrt(r.square / (double)r.freedom));
    }
    thi_free(key);
    return THIELE_OK;
}
