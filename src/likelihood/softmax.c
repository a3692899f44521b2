/*
 * Classes 0 .. C-1 with a latent each: p(y | f) = exp(f_y) / sum_c exp(f_c), with the largest f taken out. What is
 * predicted are the class probabilities; a class has no mean. C exponentials a row, many rows a call.
 */
#include <math.h>

#include "likelihood/families.h"
#include "likelihood/rows.h"
#include "likelihood/softmax_expectation.h"
#include "linalg/vector.h"

enum { MOST_CLASSES = 1000, BUFFER = 1024 };

/* e = exp(f - top) for a few rows, C x rows; sum: of each row, at least 1. */
static void exponentials(int C, int64_t rows, const double *f, double *e, double *top, double *sum)
{
    for (int64_t i = 0; i < rows; i++) {
        double most = f[i * C];
        for (int c = 1; c < C; c++) {
            most = fmax(most, f[i * C + c]);
        }
        for (int c = 0; c < C; c++) {
            e[i * C + c] = f[i * C + c] - most;
        }
        top[i] = most;
    }
    thi_vector()->exp(rows * C, e, e);
    for (int64_t i = 0; i < rows; i++) {
        sum[i] = 0;
        for (int c = 0; c < C; c++) {
            sum[i] += e[i * C + c];
        }
    }
}

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    double e[BUFFER], top[BUFFER], sum[BUFFER];
    int C = lik->classes;
    int64_t rows = BUFFER / C;
    for (int64_t i = 0; i < n; i += rows) {
        int64_t m = n - i < rows ? n - i : rows;
        exponentials(C, m, f + i * C, e, top, sum);
        thi_vector()->log(m, sum, sum);
        for (int64_t r = 0; r < m; r++) {
            double at = y[i + r];
            out[i + r] = isnan(at)                        ? 0
                         : thi_is_class(lik->classes, at) ? f[(i + r) * C + (int)at] - top[r] - sum[r]
                                                          : -INFINITY;
        }
    }
}

static void probabilities(const thiele_likelihood *lik, int64_t n, const double *f, double *prob)
{
    double top[BUFFER], sum[BUFFER];
    int C = lik->classes;
    for (int64_t i = 0; i < n; i += BUFFER) {
        int64_t m = n - i < BUFFER ? n - i : BUFFER;
        exponentials(C, m, f + i * C, prob + i * C, top, sum);
        for (int64_t k = i * C; k < (i + m) * C; k++) {
            prob[k] /= sum[k / C - i];
        }
    }
}

/* From p in d1: d1_c = [c = y] - p_c, d2_c = -p_c (1 - p_c); for the largest, 1 - p_c is the sum of the others. */
static void derivatives_row(int C, int y, double *d1, double *d2)
{
    int most = 0;
    for (int c = 1; c < C; c++) {
        most = d1[c] > d1[most] ? c : most;
    }
    double others = 0;
    for (int c = 0; c < C; c++) {
        others += c == most ? 0 : d1[c];
    }
    for (int c = 0; c < C; c++) {
        double p = d1[c], rest = c == most ? others : 1 - p;
        d1[c] = c == y ? rest : -p;
        d2[c] = -p * rest;
    }
}

static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    int C = lik->classes;
    probabilities(lik, n, f, d1);
    for (int64_t i = 0; i < n; i++) {
        if (thi_is_class(lik->classes, y[i])) {
            derivatives_row(C, (int)y[i], d1 + i * C, d2 + i * C);
            continue;
        }
        for (int c = 0; c < C; c++) {
            d1[i * C + c] = d2[i * C + c] = 0;
        }
    }
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    double e[BUFFER], top, sum;
    int C = lik->classes, c = 0;
    exponentials(C, 1, f, e, &top, &sum);
    double left = thi_random_uniform(stream, draw) * sum - e[0];
    while (left >= 0 && c < C - 1) {
        left -= e[++c];
    }
    y[0] = c;
}

static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    for (int c = 0; c < lik->classes; c++) {
        f[c] = isnan(y[0]) ? 0 : (y[0] == c ? 1.0 : 0.0) - 1.0 / lik->classes;
    }
}

const thi_likelihood_ops thi_lik_softmax = {
    .name = "softmax",
    .support = THI_SUPPORT_CLASS,
    .log_density = log_density,
    .derivatives = derivatives,
    .expectation = thi_softmax_expectation,
    .log_predictive = thi_softmax_log_predictive,
    .sample = sample,
    .guess = guess,
    .probabilities = probabilities,
    .predictive_probabilities = thi_softmax_probabilities,
};

thiele_status thi_make_softmax(thiele_likelihood *lik, thiele_context *ctx)
{
    if (lik->classes < 2 || lik->classes > MOST_CLASSES) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood 'softmax' needs a target with 2 to %d classes; this one has %d", MOST_CLASSES,
                        lik->classes);
    }
    lik->outputs = 1;
    lik->latents = lik->classes;
    return THIELE_OK;
}
