/* Pareto-smoothed importance weights: pareto.h has the sources. */
#include "report/pareto.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { POINTS_MAX = 1024 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double thi_pareto_threshold(int64_t n)
{
    return fmin(1.0 - 1.0 / log10((double)n), 0.7);
}

/* mean log(1 - b x) */
static double profile(int64_t n, const double *x, double b)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += log1p(-b * x[i]);
    }
    return sum / (double)n;
}

/* x: n exceedances, ascending. The posterior mean of b = -k/sigma on a grid, and what follows from it. */
static void fit_tail(int64_t n, const double *x, double *k, double *sigma)
{
    static const double PRIOR_B = 3.0, PRIOR_ROWS = 10.0;
    double b[POINTS_MAX], length[POINTS_MAX], weight[POINTS_MAX], total = 0.0, mean = 0.0;
    int points = 30 + (int)sqrt((double)n);
    double quarter = x[(int64_t)((double)n / 4.0 + 0.5) - 1];
    points = points < POINTS_MAX ? points : POINTS_MAX;
    for (int m = 0; m < points; m++) {
        b[m] = (1.0 - sqrt(points / (m + 0.5))) / (PRIOR_B * quarter) + 1.0 / x[n - 1];
        double own = profile(n, x, b[m]);
        length[m] = (double)n * (log(-b[m] / own) - own - 1.0);
    }
    for (int m = 0; m < points; m++) {
        double sum = 0.0;
        for (int other = 0; other < points; other++) {
            sum += exp(length[other] - length[m]);
        }
        weight[m] = 1.0 / sum >= 10.0 * DBL_EPSILON ? 1.0 / sum : 0.0;
        total += weight[m];
    }
    for (int m = 0; m < points; m++) {
        mean += b[m] * weight[m] / total;
    }
    double own = profile(n, x, mean);
    *sigma = -own / mean;
    *k = ((double)n * own + PRIOR_ROWS * 0.5) / ((double)n + PRIOR_ROWS);
}

double thi_pareto_smooth(int64_t n, double *w)
{
    int64_t tail = (int64_t)ceil(fmin(0.2 * (double)n, 3.0 * sqrt((double)n)));
    double k, sigma;
    qsort(w, (size_t)n, sizeof *w, by_size);
    double most = w[n - 1];
    for (int64_t i = 0; i < n; i++) {
        w[i] -= most;
    }
    if (tail + 1 > n) {
        return INFINITY;
    }
    double cut = fmax(w[n - tail - 1], log(DBL_MIN)), from = exp(cut);
    int64_t first = n - tail;
    while (first < n && w[first] <= cut) { /* ties with the border are no tail */
        first++;
    }
    int64_t length = n - first;
    if (length <= 4) {
        return INFINITY;
    }
    double *x = w + first;
    for (int64_t i = 0; i < length; i++) {
        x[i] = exp(x[i]) - from;
    }
    fit_tail(length, x, &k, &sigma);
    if (!isfinite(k) || !(sigma > 0.0)) { /* weights that differ by rounding alone */
        k = INFINITY;
    }
    for (int64_t i = 0; i < length && isinf(k); i++) {
        x[i] = log(x[i] + from);
    }
    for (int64_t i = 0; i < length && !isinf(k); i++) {
        double p = ((double)i + 0.5) / (double)length, q = log1p(-p);
        double quantile = fabs(k) < DBL_EPSILON ? -q : expm1(-k * q) / k;
        x[i] = fmin(log(sigma * quantile + from), 0.0);
    }
    return k;
}
