/* Values in the units of the data, and the line in them: y = mean.constant + sum_d mean.slope[d] x_d. */
#include "model/units.h"

#include <math.h>
#include <string.h>

#include "linalg/linalg.h"

/* The constant of a group's line, its slopes behind it; NULL where the mean is no line. */
static thi_hyper *line_of(const thi_fitting *f, int group)
{
    const thi_latents *latents = &f->spec.latents;
    if (latents->mean != THI_MEAN_LINEAR) {
        return NULL;
    }
    return f->hypers.hyper + f->hypers.first[group] + latents->kernel[group]->parameters;
}

/* How far the line rises from 0 to the centre of the inputs, units of the data. */
static double rise(const thi_encoder *encoder, const thi_hyper *line)
{
    double sum = 0.0;
    for (int d = 0; d < encoder->dims; d++) {
        sum += encoder->center[d] * thi_hyper_data_value(&line[1 + d]);
    }
    return sum;
}

double thi_as_written(double value, double magnitude)
{
    enum { DIGITS = 15 };
    char text[THI_NUMBER_MAX];
    double rounded;
    double lost = fmax(ceil(log10(magnitude / fabs(value))), 0.0);
    if (!(lost < DIGITS - 1)) {
        return 0.0;
    }
    snprintf(text, sizeof text, "%.*g", DIGITS - (int)lost, value);
    return thi_parse_number(text, strlen(text), &rounded) ? rounded : value;
}

double thi_units_value(const thi_fitting *f, int hyper)
{
    const thi_hyper *h = &f->hypers.hyper[hyper];
    double value = thi_hyper_data_value(h);
    for (int g = 0; g < f->hypers.groups; g++) {
        const thi_hyper *line = line_of(f, g);
        value -= line == h ? rise(&f->model->encoder, line) : 0.0;
    }
    return h->fixed && h->given ? f->written[hyper] : value;
}

/* A given constant needs the slope of every centred column: given too, and fixed where it is. */
static thiele_status check_slopes(const thi_fitting *f, const thi_hyper *line)
{
    const thi_encoder *encoder = &f->model->encoder;
    for (int d = 0; d < encoder->dims; d++) {
        const thi_hyper *slope = &line[1 + d];
        if (encoder->center[d] != 0.0 && (!slope->given || (line->fixed && !slope->fixed))) {
            return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                            "%s is the mean where every input is 0, which depends on %s: %s both of them, or the "
                            "slope alone, or use `raw`",
                            line->name, slope->name, line->fixed ? "fix" : "give");
        }
    }
    return THIELE_OK;
}

thiele_status thi_units_take(thi_fitting *f)
{
    const thi_hypers *hypers = &f->hypers;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &f->written, (size_t)hypers->count, sizeof *f->written));
    for (int i = 0; i < hypers->count; i++) {
        double value = thi_hyper_data_value(&hypers->hyper[i]);
        f->written[i] = thi_as_written(value, fmax(fabs(value), fabs(hypers->hyper[i].offset)));
    }
    for (int g = 0; g < hypers->groups; g++) {
        thi_hyper *line = line_of(f, g);
        if (line != NULL && line->given) {
            THI_TRY(check_slopes(f, line));
            line->number += rise(&f->model->encoder, line) / line->unit;
            line->value = line->number;
        }
    }
    THI_TRY(thi_hypers_apply(hypers, f->ctx, &f->spec));
out:
    return status;
}

/* --- a first guess ---------------------------------------------------------------------------------------------------
 */

/* Takes what is given of the line from y, and its columns from X. */
static void subtract_given(thi_rows *rows, const thi_hyper *line)
{
    int D = rows->dims;
    for (int64_t i = 0; i < rows->n; i++) {
        double *x = rows->X + i * D;
        rows->y[i] -= line->given ? thi_hyper_number(line) : 0.0;
        for (int d = 0; d < D; d++) {
            if (line[1 + d].given) {
                rows->y[i] -= x[d] * thi_hyper_number(&line[1 + d]);
                x[d] = 0.0;
            }
        }
    }
}

/* X (D x n) and y about their means, which are kept behind the last row of each. */
static void centre(thi_rows *rows)
{
    int64_t n = rows->n;
    int D = rows->dims;
    double *mean = rows->X + n * D;
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < D; d++) {
            mean[d] += (rows->X[i * D + d] - mean[d]) / (double)(i + 1);
        }
        rows->y[n] += (rows->y[i] - rows->y[n]) / (double)(i + 1);
    }
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < D; d++) {
            rows->X[i * D + d] -= mean[d];
        }
        rows->y[i] -= rows->y[n];
    }
}

/*
 * slope (D) of least squares; columns that say the same share it by the ladder's jitter, and where there is nothing to
 * solve (every slope is given) it is 0.
 */
static thiele_status regress(thiele_context *ctx, const thi_rows *rows, double *slope)
{
    int D = rows->dims;
    double jitter;
    thi_matrix X = thi_matrix_view(rows->X, D, rows->n, D);
    thi_matrix S = {0};
    thiele_status status = thi_matrix_alloc(&S, ctx, D, D);
    if (status == THIELE_OK) {
        thi_blas_syrk(THI_N, 1.0, X, 0.0, S);
        thi_blas_gemv(THI_N, 1.0, X, rows->y, 0.0, slope);
        status = thi_chol_jitter(ctx, S, &jitter);
    }
    if (status == THIELE_OK) {
        thi_blas_trsv(THI_N, S, slope);
        thi_blas_trsv(THI_T, S, slope);
    } else if (status == THIELE_ERROR_NUMERIC) {
        memset(slope, 0, (size_t)D * sizeof *slope);
        thi_recover(ctx);
        status = THIELE_OK;
    }
    thi_free(S.data);
    return status;
}

static void begin_with(thi_hyper *hyper, double value)
{
    if (!hyper->given) {
        hyper->value = hyper->number = value;
        hyper->given = true;
    }
}

/* Whether the targets are the function itself, and there is a line to begin with. */
static bool is_guessable(const thi_fitting *f)
{
    return f->spec.latents.mean == THI_MEAN_LINEAR && !f->streamed && thi_is_gaussian(f->spec.lik);
}

thiele_status thi_line_guess(thi_fitting *f, const thi_rows *rows)
{
    enum { ENOUGH = 2000 };
    thi_rows sample = {0};
    double *slope = NULL;
    thiele_status status;
    if (!is_guessable(f)) {
        return THIELE_OK;
    }
    int D = rows->dims;
    thi_hyper *line = line_of(f, 0);
    THI_TRY(thi_rows_sample(&sample, f->ctx, rows, ENOUGH));
    THI_TRY(thi_grow(f->ctx, &sample.X, (size_t)(sample.n + 1) * (size_t)D, sizeof *sample.X));
    THI_TRY(thi_grow(f->ctx, &sample.y, (size_t)sample.n + 1, sizeof *sample.y));
    THI_TRY(thi_alloc(f->ctx, &slope, (size_t)D, sizeof *slope));
    subtract_given(&sample, line);
    if (!line->given) {
        centre(&sample);
    }
    THI_TRY(regress(f->ctx, &sample, slope));
    double constant = sample.y[sample.n];
    for (int d = 0; d < D; d++) {
        begin_with(&line[1 + d], slope[d]);
        constant -= slope[d] * sample.X[sample.n * D + d];
    }
    begin_with(line, constant);
out:
    thi_free(slope);
    thi_rows_free(&sample);
    return status;
}
