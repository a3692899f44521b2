/*
 * Tests and bands, each with the exact law where there is one: binomial counts by the incomplete beta function,
 * chi-square by the incomplete gamma function, distribution functions by Kolmogorov's series.
 */
#include "report/statistic.h"

#include <math.h>

#include "likelihood/incomplete.h"

double thi_ks_uniform(int64_t n, const double *sorted)
{
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double above = (double)(i + 1) / (double)n - sorted[i], below = sorted[i] - (double)i / (double)n;
        most = fmax(most, fmax(above, below));
    }
    return most;
}

double thi_ks_two(int64_t n, const double *a, int64_t m, const double *b)
{
    double most = 0.0;
    for (int64_t i = 0, j = 0; i < n && j < m;) {
        double at = fmin(a[i], b[j]);
        while (i < n && a[i] == at) {
            i++;
        }
        while (j < m && b[j] == at) {
            j++;
        }
        most = fmax(most, fabs((double)i / (double)n - (double)j / (double)m));
    }
    return most;
}

/* How Stephens counts n numbers, such that the limit serves small n. */
static double effective(double n)
{
    return sqrt(n) + 0.12 + 0.11 / sqrt(n);
}

double thi_kolmogorov_tail(double n, double d)
{
    enum { TERMS = 100 };
    double x = effective(n) * d, sum = 0.0;
    if (x < 0.2) {
        return 1.0; /* the series has not settled there; the rest is 1e-11 */
    }
    for (int k = 1; k <= TERMS; k++) {
        sum += (k % 2 == 1 ? 2.0 : -2.0) * exp(-2.0 * k * k * x * x);
    }
    return fmin(fmax(sum, 0.0), 1.0);
}

double thi_kolmogorov_quantile(double n, double alpha)
{
    enum { HALVINGS = 60 };
    double low = 0.0, high = 1.0;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = 0.5 * (low + high);
        if (thi_kolmogorov_tail(n, middle) > alpha) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

double thi_binomial_upper(int64_t n, int64_t k, double p)
{
    if (k <= 0) {
        return 1.0;
    }
    return k > n ? 0.0 : thi_beta_lower((double)k, (double)(n - k + 1), p, 1.0 - p);
}

double thi_binomial_lower(int64_t n, int64_t k, double p)
{
    if (k >= n) {
        return 1.0;
    }
    return k < 0 ? 0.0 : thi_beta_lower((double)(n - k), (double)(k + 1), 1.0 - p, p);
}

void thi_binomial_band(int64_t n, double p, double alpha, int64_t *low, int64_t *high)
{
    int64_t from = 0, to = n;
    while (from < to) { /* the first with P(X <= k) > alpha/2 */
        int64_t middle = from + (to - from) / 2;
        if (thi_binomial_lower(n, middle, p) > 0.5 * alpha) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    *low = from;
    to = n;
    while (from < to) { /* the first with P(X > k) <= alpha/2 */
        int64_t middle = from + (to - from) / 2;
        if (thi_binomial_upper(n, middle + 1, p) <= 0.5 * alpha) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    *high = from;
}

double thi_chi_square_tail(double df, double x)
{
    return x <= 0.0 ? 1.0 : thi_gamma_upper(0.5 * df, 0.5 * x);
}

double thi_sorted_quantile(int64_t n, const double *sorted, double p)
{
    double place = p * (double)(n - 1);
    int64_t i = (int64_t)place;
    double part = place - (double)i;
    return i + 1 < n ? (1.0 - part) * sorted[i] + part * sorted[i + 1] : sorted[n - 1];
}
