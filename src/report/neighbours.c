/*
 * Whether signal is left in the residuals: those of neighbouring rows are alike by as much as f is uncertain, v_f/v_y
 * at most, and no more where all of the signal was found. Neighbours are the next rows along one input, for each input
 * that is a number, and the nearest row in all inputs, each weighed by how far predictions move with it. Products z_i
 * z_j, z within +-3 so that no outlier decides. What counts is the largest excess over its own error; p is that of
 * chance times the number of tests (Bonferroni). Of targets that are a function plus noise. O(rows^2 D).
 */
#include <math.h>
#include <stdlib.h>

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

/* One test: products of neighbours over squares, and how many independent products they are worth. */
typedef struct test {
    int input; /* -1: all of them together */
    double correlation, worth;
} test;

typedef struct place {
    double x, z;
} place;

static int by_place(const void *a, const void *b)
{
    const place *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

static test along(const thi_report *r, int input, int64_t n, const double *z, place *places)
{
    const thi_encoder *encoder = &r->model->encoder;
    double both = 0.0, square = 0.0;
    for (int64_t i = 0; i < n; i++) {
        places[i] = (place){thi_input_value(encoder, input, r->rows->sample.X + i * encoder->dims), z[i]};
    }
    qsort(places, (size_t)n, sizeof *places, by_place);
    for (int64_t i = 0; i < n; i++) {
        both += i > 0 ? places[i - 1].z * places[i].z : 0.0;
        square += places[i].z * places[i].z;
    }
    return (test){input, both / square, (double)n};
}

/* Pairs that are each other's nearest count twice. */
static test nearest(const thi_report *r, int64_t n, const double *z, const double *weight)
{
    const double *X = r->rows->sample.X;
    int D = r->model->encoder.dims;
    double both = 0.0, square = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double least = INFINITY;
        int64_t which = 0;
        for (int64_t j = 0; j < n; j++) {
            double own = j != i ? distance(D, weight, X + i * D, X + j * D, least) : INFINITY;
            which = own < least ? j : which;
            least = fmin(least, own);
        }
        both += z[i] * z[which];
        square += z[i] * z[i];
    }
    return (test){-1, both / square, 0.5 * (double)n};
}

/* v_f/v_y, the mean over rows, and their residuals. */
static double take_residuals(const thi_report *r, int64_t n, double *z)
{
    const thi_row_sample *s = &r->rows->sample;
    double scale = r->model->encoder.target[r->target].scale, expected = 0.0;
    for (int64_t i = 0; i < n; i++) {
        z[i] = limited(thi_rows_score(r->rows, s->at[i]));
        expected += r->rows->own[s->at[i]] / (thi_rows_variance(r->rows, s->at[i]) / (scale * scale));
    }
    return fmin(expected / (double)n, 1.0);
}

static double excess_of(const test *t, double expected)
{
    return (t->correlation - expected) * sqrt(t->worth);
}

thiele_status thi_put_neighbours(thi_report *r, json_t *section)
{
    const thiele_model *model = r->model;
    const thi_encoder *encoder = &model->encoder;
    int shown[THI_REPORT_INPUTS], count = thi_report_inputs(r, shown), tests = 1;
    int64_t n = thi_least(r->rows->sample.n, ROWS);
    double *weight = NULL, *z = NULL;
    place *places = NULL;
    thiele_status status = THIELE_OK;
    if (thi_rows_classes(r->rows) > 0 || !model->lik->ops->standardise || encoder->targets > 1 || n < LEAST) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(r->ctx, &weight, (size_t)encoder->dims, sizeof *weight));
    THI_TRY(thi_alloc(r->ctx, &z, (size_t)n, sizeof *z));
    THI_TRY(thi_alloc(r->ctx, &places, (size_t)n, sizeof *places));
    take_weights(r, weight);
    double expected = take_residuals(r, n, z);
    test worst = nearest(r, n, z, weight);
    for (int k = 0; k < count; k++) {
        if (encoder->input[shown[k]].levels == 0) {
            test own = along(r, shown[k], n, z, places);
            worst = excess_of(&own, expected) > excess_of(&worst, expected) ? own : worst;
            tests++;
        }
    }
    json_t *own = thi_put_object(r, section, "neighbours");
    thi_put_count(r, own, "rows", n);
    thi_put_text(r, own, "along", worst.input >= 0 ? encoder->input[worst.input].name : NULL);
    thi_put_number(r, own, "correlation", worst.correlation);
    thi_put_number(r, own, "expected", expected);
    thi_put_number(r, own, "excess", worst.correlation - expected);
    thi_put_number(r, own, "p", fmin(1.0, tests * thi_normal_cdf(-excess_of(&worst, expected))));
out:
    thi_free(weight);
    thi_free(z);
    thi_free(places);
    return status;
}
