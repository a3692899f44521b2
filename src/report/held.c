/* New rows against those that the model holds: the nearest of them. */
#include <math.h>

#include "report/report.h"

enum { BLOCK = 64 };

typedef struct search {
    const thi_held *held;
    int D;
    int64_t n;
    const double *X;
    double *least;
    int64_t *which;
} search;

static double distance(int D, const double *a, const double *b, double enough)
{
    double sum = 0.0;
    for (int d = 0; d < D && sum < enough; d++) {
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    }
    return sum;
}

static thiele_status find_block(void *arg, int64_t block, int thread)
{
    search *s = arg;
    (void)thread;
    for (int64_t i = block * BLOCK; i < thi_least((block + 1) * BLOCK, s->n); i++) {
        double least = INFINITY;
        int64_t which = 0;
        for (int64_t h = 0; h < s->held->n; h++) {
            double own = distance(s->D, s->X + i * s->D, s->held->X + h * s->D, least);
            which = own < least ? h : which;
            least = fmin(least, own);
        }
        if (s->least != NULL) {
            s->least[i] = least;
        }
        if (s->which != NULL) {
            s->which[i] = which;
        }
    }
    return THIELE_OK;
}

thiele_status thi_held_nearest(const thiele_model *model, thiele_context *ctx, int64_t n, const double *X,
                               double *least, int64_t *which)
{
    const thi_held held = thi_find_held(model);
    search s = {&held, model->encoder.dims, n, X, least, which};
    return thi_parallel(ctx, (n + BLOCK - 1) / BLOCK, find_block, &s);
}
