/*
 * Where predictions are off: predicted against observed (single rows up to POINTS, above these a grid of counts, so
 * that a page has the same size whatever the table), mean residuals along each input, and the ten rows that are least
 * likely under their predictions, with what is unusual about them. Residuals are on the scale of a standard normal law;
 * of labels, whether the guess is wrong less the probability that it is.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "likelihood/normal_quantile.h"
#include "report/report.h"
#include "report/statistic.h"

enum { POINTS = 2000, CELLS = 40, BINS = 12, LEAST = 5 };
static const double ALPHA = 0.05;
/* Of training standard deviations: a normal law has one row in 16,000 beyond it. */
static const double FAR_OUT = 4.0;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- predicted against observed -------------------------------------------------------------------------------------
 */

static void put_points(thi_report *r, json_t *own)
{
    const thi_report_rows *rows = r->rows;
    json_t *y = thi_put_list(r, own, "observed"), *mean = thi_put_list(r, own, "predicted");
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        if (thi_rows_have(rows, i) && isfinite(thi_rows_mean(rows, i))) {
            thi_append(r, y, json_real(thi_rows_y(rows, i)));
            thi_append(r, mean, json_real(thi_rows_mean(rows, i)));
        }
    }
}

static int cell_of(double value, double low, double high)
{
    double at = (value - low) / (high - low) * CELLS;
    return (int)fmin(fmax(at, 0.0), CELLS - 1.0);
}

/* The range of nearly all of them; what lies outside counts in the cells at the edge. */
static thiele_status put_grid(thi_report *r, json_t *own)
{
    static const double OUTSIDE = 0.001;
    const thi_report_rows *rows = r->rows;
    int64_t count[CELLS * CELLS] = {0}, n = 0;
    double *all = NULL;
    thiele_status status = thi_alloc(r->ctx, &all, 2 * (size_t)rows->rows, sizeof *all);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        if (thi_rows_have(rows, i) && isfinite(thi_rows_mean(rows, i))) {
            all[n++] = thi_rows_y(rows, i);
            all[n++] = thi_rows_mean(rows, i);
        }
    }
    qsort(all, (size_t)n, sizeof *all, by_size);
    double low = thi_sorted_quantile(n, all, OUTSIDE), high = thi_sorted_quantile(n, all, 1.0 - OUTSIDE);
    high = high > low ? high : low + 1.0;
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        if (thi_rows_have(rows, i) && isfinite(thi_rows_mean(rows, i))) {
            count[cell_of(thi_rows_y(rows, i), low, high) + CELLS * cell_of(thi_rows_mean(rows, i), low, high)]++;
        }
    }
    thi_put_number(r, own, "low", low);
    thi_put_number(r, own, "high", high);
    thi_put_count(r, own, "cells", CELLS);
    thi_put_counts(r, own, "counts", (int64_t)CELLS * CELLS, count);
    thi_free(all);
    return THIELE_OK;
}

/* --- residuals by input ---------------------------------------------------------------------------------------------
 */

typedef struct place {
    double x, z;
} place;

static int by_place(const void *a, const void *b)
{
    const place *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/* Bins of about equally many rows, equal values together; of categories one a level. */
static void put_input(thi_report *r, json_t *own, int64_t n, const place *places, const thi_input *input)
{
    bool levels = input->levels > 0;
    json_t *list = thi_put_list(r, own, "bins");
    int64_t each = thi_most((n + BINS - 1) / BINS, LEAST);
    int64_t most = levels ? n : (n + each - 1) / each;
    for (int64_t i = 0; i < n;) {
        double x = 0.0, z = 0.0, square = 0.0;
        int64_t first = i;
        while (i < n && (i == first || (!levels && i - first < each) || places[i].x == places[i - 1].x)) {
            x += places[i].x;
            z += places[i].z;
            square += places[i].z * places[i].z;
            i++;
        }
        double rows = (double)(i - first), mean = z / rows;
        double sd = sqrt(fmax(square / rows - mean * mean, 0.0));
        json_t *bin = thi_append_object(r, list);
        thi_put_number(r, bin, "x", x / rows);
        if (levels) {
            int level = (int)places[first].x;
            thi_put_text(r, bin, "level", level < input->levels ? input->level[level] : "other");
        }
        thi_put_count(r, bin, "rows", i - first);
        thi_put_number(r, bin, "mean", mean);
        thi_put_number(r, bin, "sd", sd);
        /* All bins of the input together stay within it with probability 95% where there is nothing to be seen. */
        thi_put_number(r, bin, "band",
                       thi_normal_quantile(1.0 - 0.5 * ALPHA / (double)(levels ? BINS : most)) *
                           (thi_rows_classes(r->rows) > 0 ? sd : 1.0) / sqrt(rows));
    }
}

static thiele_status put_residuals(thi_report *r, json_t *section)
{
    const thi_row_sample *s = &r->rows->sample;
    const thi_encoder *encoder = &r->model->encoder;
    int shown[THI_REPORT_INPUTS], count = thi_report_inputs(r, shown);
    place *places = NULL;
    thiele_status status = thi_alloc(r->ctx, &places, (size_t)s->n, sizeof *places);
    json_t *list = thi_put_list(r, section, "residuals");
    for (int k = 0; k < count && status == THIELE_OK; k++) {
        const thi_input *input = &encoder->input[shown[k]];
        int64_t n = 0;
        for (int64_t i = 0; i < s->n; i++) {
            double z = thi_rows_score(r->rows, s->at[i]);
            if (isfinite(z)) {
                places[n++] = (place){thi_input_value(encoder, shown[k], s->X + i * encoder->dims), z};
            }
        }
        qsort(places, (size_t)n, sizeof *places, by_place);
        json_t *own = thi_append_object(r, list);
        thi_put_text(r, own, "input", input->name);
        put_input(r, own, n, places, input);
    }
    thi_free(places);
    return status;
}

/* --- the worst rows -------------------------------------------------------------------------------------------------
 */

/* The number that lies furthest from the mean of the training rows. */
static int furthest_input(const thi_encoder *encoder, const double *x, double *sds)
{
    int furthest = -1;
    *sds = 0.0;
    for (int i = 0; i < encoder->inputs; i++) {
        const thi_input *input = &encoder->input[i];
        if (input->levels == 0 && fabs(x[input->first]) > fabs(*sds)) {
            *sds = x[input->first];
            furthest = i;
        }
    }
    return furthest;
}

/* What is unusual about it, the most telling first. */
static const char *reason_of(double share, double sds, bool standardised, double distance, double usual)
{
    return standardised && fabs(sds) >= FAR_OUT ? "an input is far out"
           : share >= THI_ALONE                 ? "no training row tells anything of it"
           : distance > usual                   ? "no training row is near"
                                                : "its inputs are ordinary: the target itself is unusual for them";
}

static void put_seen(thi_report *r, json_t *own, int64_t i)
{
    const thi_report_rows *rows = r->rows;
    const thi_target *target = r->model->encoder.target;
    if (thi_rows_classes(rows) == 0) {
        thi_put_number(r, own, "observed", thi_rows_y(rows, i));
        thi_put_number(r, own, "predicted", thi_rows_mean(rows, i));
        thi_put_number(r, own, "sd", sqrt(thi_rows_variance(rows, i)));
        return;
    }
    int label = (int)thi_rows_y(rows, i);
    thi_put_text(r, own, "observed", target->level[label]);
    thi_put_number(r, own, "probability", rows->scorer.probability[i * thi_rows_classes(rows) + label]);
}

/* Distances beyond those of 99 in 100 rows of the sample are unusual; infinite where nothing is known. */
static thiele_status usual_distance(thi_report *r, double *usual)
{
    enum { ROWS = 1000 };
    static const double SHARE = 0.99;
    const thi_row_sample *s = &r->rows->sample;
    int64_t n = s->n < ROWS ? s->n : ROWS;
    double *least = NULL;
    thiele_status status = thi_alloc(r->ctx, &least, (size_t)n, sizeof *least);
    if (status == THIELE_OK) {
        status = thi_held_nearest(r->model, r->ctx, n, s->X, least, NULL);
    }
    if (status == THIELE_OK) {
        qsort(least, (size_t)n, sizeof *least, by_size);
        *usual = sqrt(thi_sorted_quantile(n, least, SHARE));
    }
    thi_free(least);
    return status;
}

static thiele_status put_worst(thi_report *r, json_t *section)
{
    const thi_report_rows *rows = r->rows;
    const thi_worst_rows *w = &rows->worst;
    const thi_encoder *encoder = &r->model->encoder;
    json_t *list = thi_put_list(r, section, "worst");
    double least[THI_WORST_ROWS], usual = INFINITY, sds;
    thiele_status status;
    THI_TRY(usual_distance(r, &usual));
    THI_TRY(thi_held_nearest(r->model, r->ctx, w->n, w->X, least, NULL));
    for (int k = 0; k < w->n; k++) {
        const double *x = w->X + (size_t)k * (size_t)encoder->dims;
        int input = furthest_input(encoder, x, &sds);
        bool standardised = input >= 0 && encoder->scale[encoder->input[input].first] != 1.0;
        json_t *own = thi_append_object(r, list);
        thi_put_count(r, own, "row", thi_table_row_number(r->table, rows->number[w->at[k]]));
        put_seen(r, own, w->at[k]);
        thi_put_number(r, own, "loss", w->loss[k]);
        thi_put_number(r, own, "z", thi_rows_score(rows, w->at[k]));
        thi_put_text(r, own, "why", reason_of(rows->share[w->at[k]], sds, standardised, sqrt(least[k]), usual));
        thi_put_number(r, own, "distance", sqrt(least[k]));
        if (input >= 0) {
            thi_put_text(r, own, "input", encoder->input[input].name);
            thi_put_number(r, own, "value", thi_input_value(encoder, input, x));
            thi_put_number(r, own, "sds", standardised ? sds : NAN);
        }
    }
    thi_put_number(r, section, "usual_distance", usual);
out:
    return status;
}

thiele_status thi_section_errors(thi_report *r, json_t *section)
{
    thiele_status status = THIELE_OK;
    if (thi_rows_classes(r->rows) == 0) {
        json_t *own = thi_put_object(r, section, "predictions");
        thi_put_count(r, own, "rows", r->rows->rows);
        if (r->rows->rows <= POINTS) {
            put_points(r, own);
        } else {
            THI_TRY(put_grid(r, own));
        }
    }
    THI_TRY(put_residuals(r, section));
    THI_TRY(put_worst(r, section));
    THI_TRY(thi_put_neighbours(r, section));
out:
    return status;
}
