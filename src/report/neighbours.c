/*
 * Whether signal is left in the residuals: those of neighbouring rows, the nearest in the inputs that matter, are alike
 * by as much as f is uncertain, v_f/v_y at most, and no more where all of the signal was found. z_i z_j of each row and
 * its nearest other one, z within +-3 so that no outlier decides; pairs that are each other's nearest count twice, for
 * which the error is taken sqrt 2 times as large. Of targets that are a function plus noise. O(rows^2 D).
 */
#include <math.h>

#include "likelihood/special.h"
#include "report/report.h"

enum { ROWS = 1500, LEAST = 50 };

/* Of each number of X: the share of its input, as far as that is known. */
static void take_weights(const thi_report *r, double *weight)
{
    const thi_encoder *encoder = &r->model->encoder;
    const json_t *ranked = thi_value_at(r->describe, "relevance.inputs");
    int shown[THI_REPORT_INPUTS], count = thi_report_inputs(r, shown);
    for (int k = 0; k < count; k++) {
        const thi_input *input = &encoder->input[shown[k]];
        double share = ranked != NULL ? thi_number_at(json_array_get(ranked, (size_t)k), "share") : 1.0;
        for (int d = 0; d < thi_input_width(input); d++) {
            weight[input->first + d] = share;
        }
    }
}

static double distance(int D, const double *weight, const double *a, const double *b, double enough)
{
    double sum = 0.0;
    for (int d = 0; d < D && sum < enough; d++) {
        sum += weight[d] * (a[d] - b[d]) * (a[d] - b[d]);
    }
    return sum;
}

static double limited(double z)
{
    return fmax(-3.0, fmin(3.0, z));
}

thiele_status thi_put_neighbours(thi_report *r, json_t *section)
{
    const thi_row_sample *s = &r->rows->sample;
    const thiele_model *model = r->model;
    int D = model->encoder.dims;
    int64_t n = thi_least(s->n, ROWS);
    double scale = model->encoder.target[r->target].scale, *weight = NULL, both = 0.0, square = 0.0, expected = 0.0;
    thiele_status status = THIELE_OK;
    if (thi_rows_classes(r->rows) > 0 || !model->lik->ops->standardise || model->encoder.targets > 1 || n < LEAST) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(r->ctx, &weight, (size_t)D, sizeof *weight));
    take_weights(r, weight);
    for (int64_t i = 0; i < n; i++) {
        double least = INFINITY, z = limited(thi_rows_score(r->rows, s->at[i]));
        int64_t nearest = 0;
        for (int64_t j = 0; j < n; j++) {
            double own = j != i ? distance(D, weight, s->X + i * D, s->X + j * D, least) : INFINITY;
            nearest = own < least ? j : nearest;
            least = fmin(least, own);
        }
        both += z * limited(thi_rows_score(r->rows, s->at[nearest]));
        square += z * z;
        expected += r->rows->own[s->at[i]] / (thi_rows_variance(r->rows, s->at[i]) / (scale * scale));
    }
    json_t *own = thi_put_object(r, section, "neighbours");
    double correlation = both / square, excess = correlation - fmin(expected / (double)n, 1.0);
    thi_put_count(r, own, "rows", n);
    thi_put_number(r, own, "correlation", correlation);
    thi_put_number(r, own, "expected", fmin(expected / (double)n, 1.0));
    thi_put_number(r, own, "excess", excess);
    thi_put_number(r, own, "p", thi_normal_cdf(-excess * sqrt(0.5 * (double)n)));
out:
    thi_free(weight);
    return status;
}
