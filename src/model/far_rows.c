/*
 * Where the mean of y is proportional to exp(f), one y that is out of all proportion decides the whole fit: no prior
 * that suits the others lets f reach it. Whoever has such a row is told which it is. O(N log N).
 */
#include <math.h>
#include <stdlib.h>

#include "model/specify.h"

/* Of the medians' distance, as that of a normal law, and of this much of a logarithm at least. */
static const double FAR = 10.0, MAD_TO_SD = 1.4826, LEAST_SD = 0.5;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *number, int64_t n)
{
    qsort(number, (size_t)n, sizeof *number, by_size);
    return number[n / 2];
}

thiele_status thi_report_far(const thi_fitting *f, const thiele_table *table)
{
    const thiele_likelihood *lik = f->spec.lik;
    int64_t n = f->rows.n, furthest = 0;
    double *guess = NULL, *sorted, largest = -INFINITY;
    if (!lik->ops->log_link || lik->ops->guess == NULL || lik->latents != 1 || n == 0) {
        return THIELE_OK;
    }
    thiele_status status = thi_alloc(f->ctx, &guess, 2 * (size_t)n, sizeof *guess);
    if (status != THIELE_OK) {
        return status;
    }
    sorted = guess + n;
    for (int64_t i = 0; i < n; i++) {
        lik->ops->guess(lik, f->rows.y + i, &guess[i]);
        guess[i] -= f->rows.offset != NULL ? f->rows.offset[i] : 0.0;
        sorted[i] = guess[i];
        furthest = guess[i] > largest ? i : furthest;
        largest = fmax(largest, guess[i]);
    }
    double centre = median(sorted, n);
    for (int64_t i = 0; i < n; i++) {
        sorted[i] = fabs(guess[i] - centre);
    }
    double sd = fmax(MAD_TO_SD * median(sorted, n), LEAST_SD);
    if (largest > centre + FAR * sd) {
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "column '%s', row %s: %g is out of all proportion to the other rows and may dominate the fit: "
                "correct it or leave it out (for counts, `likelihood` negative-binomial copes best)",
                f->model->encoder.target->name, THI_ROW(table, f->row[furthest]), f->rows.y[furthest]);
    }
    thi_free(guess);
    return THIELE_OK;
}
