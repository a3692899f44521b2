/*
 * Whether predicted laws of numbers can be believed: u = F(y) of rows is uniform if they can (Dawid 1984; Gneiting,
 * Balabdaoui and Raftery 2007). A histogram with bands that hold all bars together with probability 95% (Bonferroni),
 * the coverage of all central intervals with Kolmogorov's band, rows in the far tails against a binomial law, and
 * whether rows that are said to be uncertain are those with large errors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "likelihood/special.h"
#include "report/report.h"
#include "report/statistic.h"

enum { BINS = 20, LEVELS = 39, GROUPS = 10 };
static const double ALPHA = 0.05;
/* Three standard deviations of a normal law, both sides. */
static const double FAR = 0.0026997960632602;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_histogram(thi_report *r, json_t *section, int64_t n, const double *u)
{
    int64_t count[BINS] = {0}, low, high;
    for (int64_t i = 0; i < n; i++) {
        int bin = (int)(u[i] * BINS);
        count[bin < BINS ? bin : BINS - 1]++;
    }
    thi_binomial_band(n, 1.0 / BINS, ALPHA / BINS, &low, &high);
    json_t *own = thi_put_object(r, section, "pit");
    thi_put_count(r, own, "rows", n);
    thi_put_counts(r, own, "counts", BINS, count);
    thi_put_count(r, own, "low", low);
    thi_put_count(r, own, "high", high);
}

/* u sorted: |2 u - 1| <= level is from (1 - level)/2 to (1 + level)/2. */
static double inside(int64_t n, const double *centred, double level)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (centred[middle] <= level) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (double)low / (double)n;
}

/* centred: |2 u - 1|, sorted. */
static void put_coverage(thi_report *r, json_t *section, int64_t n, const double *centred)
{
    double level[LEVELS], share[LEVELS];
    for (int l = 0; l < LEVELS; l++) {
        level[l] = (l + 1.0) / (LEVELS + 1.0);
        share[l] = inside(n, centred, level[l]);
    }
    json_t *own = thi_put_object(r, section, "coverage");
    thi_put_numbers(r, own, "level", LEVELS, level);
    thi_put_numbers(r, own, "inside", LEVELS, share);
    thi_put_number(r, own, "band", thi_kolmogorov_quantile((double)n, ALPHA));
    thi_put_number(r, section, "coverage50", inside(n, centred, 0.5));
    thi_put_number(r, section, "coverage90", inside(n, centred, 0.9));
    thi_put_number(r, section, "coverage95", inside(n, centred, 0.95));
}

static void put_tails(thi_report *r, json_t *section, int64_t n, const double *centred)
{
    int64_t beyond = n - (int64_t)llround(inside(n, centred, 1.0 - FAR) * (double)n);
    json_t *own = thi_put_object(r, section, "tails");
    thi_put_count(r, own, "beyond", beyond);
    thi_put_number(r, own, "expected", FAR * (double)n);
    thi_put_number(r, own, "p", thi_binomial_upper(n, beyond, FAR));
}

/* --- width against error --------------------------------------------------------------------------------------------
 */

typedef struct pair {
    double sd, square;
} pair;

static int by_sd(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return (x->sd > y->sd) - (x->sd < y->sd);
}

/* Groups of equally many rows by what was predicted: sd, and the root of the mean squared error. */
static thiele_status put_widths(thi_report *r, json_t *section)
{
    const thi_report_rows *rows = r->rows;
    double sd[GROUPS], error[GROUPS];
    pair *all = NULL;
    int64_t n = 0;
    thiele_status status = thi_alloc(r->ctx, &all, (size_t)rows->rows, sizeof *all);
    for (int64_t i = 0; status == THIELE_OK && i < rows->scorer.rows; i++) {
        if (thi_rows_have(rows, i) && isfinite(thi_rows_variance(rows, i)) && isfinite(thi_rows_square(rows, i))) {
            all[n++] = (pair){sqrt(thi_rows_variance(rows, i)), thi_rows_square(rows, i)};
        }
    }
    if (status != THIELE_OK || n < 10 * GROUPS) {
        thi_free(all);
        return status;
    }
    qsort(all, (size_t)n, sizeof *all, by_sd);
    for (int g = 0; g < GROUPS; g++) {
        int64_t first = g * n / GROUPS, end = (g + 1) * n / GROUPS;
        double variance = 0.0, square = 0.0;
        for (int64_t i = first; i < end; i++) {
            variance += all[i].sd * all[i].sd;
            square += all[i].square;
        }
        sd[g] = sqrt(variance / (double)(end - first));
        error[g] = sqrt(square / (double)(end - first));
    }
    json_t *own = thi_put_object(r, section, "width");
    thi_put_numbers(r, own, "predicted", GROUPS, sd);
    thi_put_numbers(r, own, "rmse", GROUPS, error);
    thi_put_number(r, own, "rows", (double)n / GROUPS);
    thi_free(all);
    return THIELE_OK;
}

thiele_status thi_section_calibration(thi_report *r, json_t *section)
{
    const thi_report_rows *rows = r->rows;
    double *u = NULL;
    int64_t n = 0;
    thiele_status status = THIELE_OK;
    if (thi_rows_classes(rows) > 0) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(r->ctx, &u, (size_t)rows->scorer.rows, sizeof *u));
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        if (!isnan(rows->pit[i])) {
            u[n++] = rows->pit[i];
        }
    }
    if (n < 10) {
        goto out;
    }
    put_histogram(r, section, n, u);
    qsort(u, (size_t)n, sizeof *u, by_size);
    double distance = thi_ks_uniform(n, u);
    thi_put_number(r, section, "distance", distance);
    thi_put_number(r, section, "p", thi_kolmogorov_tail((double)n, distance));
    thi_put_number(r, section, "median", thi_sorted_quantile(n, u, 0.5));
    for (int64_t i = 0; i < n; i++) {
        u[i] = fabs(2.0 * u[i] - 1.0);
    }
    qsort(u, (size_t)n, sizeof *u, by_size);
    put_coverage(r, section, n, u);
    put_tails(r, section, n, u);
    THI_TRY(put_widths(r, section));
out:
    thi_free(u);
    return status;
}
