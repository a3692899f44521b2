/*
 * Counts: how many rows have each count, against how many are predicted to, sum_i P(Y_i = k): a rootogram, on the scale
 * of square roots, where chance has nearly the same size everywhere (Kleiber and Zeileis 2016). Of some of the rows.
 */
#include <math.h>

#include "report/report.h"

enum { MOST = 40, ROWS = 1000 };

thiele_status thi_section_counts(thi_report *r, json_t *section)
{
    const thi_row_sample *s = &r->rows->sample;
    const thiele_model *model = r->model;
    size_t P = (size_t)model->encoder.targets;
    int64_t n = thi_probe_affordable(model, s->n < ROWS ? s->n : ROWS, MOST), most = 0;
    double observed[MOST + 1] = {0.0}, expected[MOST + 1] = {0.0};
    double *y = NULL, *loss = NULL;
    thiele_status status = THIELE_OK;
    if (model->lik->ops->support != THI_SUPPORT_COUNT || P > 1) {
        return THIELE_OK;
    }
    n = thi_least(n, s->n);
    THI_TRY(thi_alloc(r->ctx, &y, (size_t)n, sizeof *y));
    THI_TRY(thi_alloc(r->ctx, &loss, (size_t)n, sizeof *loss));
    for (int64_t i = 0; i < n; i++) {
        int64_t count = (int64_t)fmin(s->y[i], MOST);
        most = thi_most(most, count);
        observed[count] += 1.0;
    }
    most = thi_least(most + 2, MOST); /* the last one is of all counts above */
    for (int64_t k = 0; k < most; k++) {
        for (int64_t i = 0; i < n; i++) {
            y[i] = (double)k;
        }
        const thi_probe probe = {model, r->target, n, s->X, s->offset, y, NULL, loss};
        THI_TRY(thi_probe_run(&probe, r->ctx));
        for (int64_t i = 0; i < n; i++) {
            expected[k] += exp(-loss[i]);
        }
        expected[most] += expected[k];
    }
    expected[most] = fmax((double)n - expected[most], 0.0);
    thi_put_count(r, section, "rows", n);
    thi_put_numbers(r, section, "observed", most + 1, observed);
    thi_put_numbers(r, section, "expected", most + 1, expected);
out:
    thi_free(y);
    thi_free(loss);
    return status;
}
