/* The noise and the factor of the variances that rows want at predictions without them. */
#include "fit/predictive.h"

#include <math.h>
#include <string.h>

#include "fit/explore.h"

enum { ROWS = 2000, FEWEST = 50, GRID = 25, REFINEMENTS = 20, FACTORS = 24 };
/* A factor of the variances must gain this many nats over none: it is one more number. */
static const double WORTH = 3.0;
/* Of the noise: where the basis leaves less unexplained there is nothing to tell apart. */
static const double LITTLE = 1e-3;
/* Degrees of freedom of a function of the mean's own basis: penalised as they are, the first third does most. (Seen on
 * a generated table of 26 inputs, where whole ones made 90% intervals hold 99%.) */
static const double FREEDOM = 1.0 / 3.0;
static const double MOST_LEVERAGE = 0.99, GOLDEN = 0.6180339887498949;

/* -2 log density, up to a constant. */
static double cost(const thi_left_out *rows, double s2, double tau)
{
    double sum = 0.0;
    for (int64_t i = 0; i < rows->n; i++) {
        double variance = s2 + tau * rows->v[i];
        sum += log(variance) + rows->error2[i] / variance;
    }
    return sum;
}

/* The best log noise of a range for one factor, by a grid and a golden section. */
static double best_noise(const thi_left_out *rows, double low, double high, double tau, double *value)
{
    double step = (high - low) / (GRID - 1), best = low;
    *value = INFINITY;
    for (int i = 0; i < GRID; i++) {
        double c = cost(rows, exp(low + i * step), tau);
        best = c < *value ? low + i * step : best;
        *value = fmin(c, *value);
    }
    double a = fmax(low, best - step), b = fmin(high, best + step);
    for (int i = 0; i < REFINEMENTS; i++) {
        double left = b - GOLDEN * (b - a), right = a + GOLDEN * (b - a);
        bool lower = cost(rows, exp(left), tau) < cost(rows, exp(right), tau);
        a = lower ? a : left;
        b = lower ? right : b;
    }
    *value = cost(rows, exp(0.5 * (a + b)), tau);
    return 0.5 * (a + b);
}

/* Both together: factors are tried from 1 downwards. */
static double best_pair(const thi_left_out *rows, double low, double high, double *tau)
{
    double least, value, noise = best_noise(rows, low, high, 1.0, &least);
    *tau = 1.0;
    for (int i = 1; i < FACTORS; i++) {
        double factor = pow(0.7, i), other = best_noise(rows, low, high, factor, &value);
        if (value < least - 2.0 * WORTH) {
            least = value;
            noise = other;
            *tau = factor;
        }
    }
    return noise;
}

/*
 * What rows look like without themselves. The posterior saw row i with the noise s2, so that its own variance at the
 * row c_i and residual e_i are those without it times 1 - c_i/s2; k(x, x) less what the basis explains is the same. A
 * second basis for the mean has some degrees of freedom more, shared by all rows.
 */
static thiele_status leave_out(thi_left_out *out, thiele_context *ctx, const thi_rows *rows,
                               const thi_predictor *latent, double s2, int64_t all, double *unexplained)
{
    thi_predictor bare = *latent; /* a view */
    int64_t n = rows->n, clipped = 0;
    double *mu = NULL, *left = NULL;
    double more = latent->mean_basis != NULL ? fmin(0.5, FREEDOM * (double)latent->mean_n / (double)all) : 0.0;
    thiele_status status;
    bare.plus = THI_PLUS_NONE;
    THI_TRY(thi_alloc(ctx, &mu, (size_t)n, sizeof *mu));
    THI_TRY(thi_alloc(ctx, &left, (size_t)n, sizeof *left));
    THI_TRY(thi_predictor_marginals(latent, ctx, n, rows->X, mu, out->v, &clipped));
    THI_TRY(thi_predictor_marginals(&bare, ctx, n, rows->X, out->error2, left, &clipped));
    *unexplained = 0.0;
    out->n = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = fmax(left[i], 0.0), c = fmax(out->v[i] - d, 0.0), kept = 1.0 - fmin(c / s2, MOST_LEVERAGE);
        double gap = (rows->y[i] - mu[i] - (rows->offset != NULL ? rows->offset[i] : 0.0)) / (kept * (1.0 - more));
        if (!isnan(gap)) {
            out->error2[out->n] = gap * gap;
            out->v[out->n++] = d + c / kept;
            *unexplained += d / (double)n;
        }
    }
out:
    thi_free(mu);
    thi_free(left);
    return status;
}

thiele_status thi_predictive_undo(thiele_context *ctx, thi_spec *spec, thi_hypers *hypers)
{
    bool undone = false;
    for (int i = 0; i < hypers->count; i++) {
        thi_hyper *noise = &hypers->hyper[i];
        undone = undone || noise->apart;
        noise->value = noise->apart ? noise->made : noise->value;
        noise->apart = false;
    }
    return undone ? thi_hypers_apply(hypers, ctx, spec) : THIELE_OK;
}

double thi_left_out_error(const thi_left_out *rows)
{
    double sum = 0.0;
    for (int64_t i = 0; i < rows->n; i++) {
        sum += rows->error2[i] / (double)rows->n;
    }
    return sum;
}

thiele_status thi_predictive_choose(thiele_context *ctx, const thi_left_out *rows, thi_spec *spec, thi_hypers *hypers,
                                    int target, thi_predictor *latent)
{
    thi_hyper *noise = &hypers->hyper[hypers->first[hypers->groups] + target];
    double s2 = thi_hyper_number(noise), tau;
    latent->noise = latent->tau = 0.0;
    noise->apart = false;
    if (noise->fixed || rows->n == 0) {
        return THIELE_OK;
    }
    /* From a thousandth of the noise that there is to more than all of the error. */
    double best = best_pair(rows, log(s2) - 7.0, fmax(log(s2), log(thi_left_out_error(rows) + s2)) + 1.0, &tau);
    latent->noise = s2;
    latent->tau = tau;
    noise->apart = true;
    noise->made = noise->value;
    noise->value = log(fmax(exp(best) - noise->floor, 1e-3 * noise->floor));
    return thi_hypers_apply(hypers, ctx, spec);
}

thiele_status thi_predictive_noise(thiele_context *ctx, const thi_source *source, thi_spec *spec, thi_hypers *hypers,
                                   thi_predictor *latent)
{
    double s2 = thi_hyper_number(&hypers->hyper[hypers->noise]), unexplained;
    thi_rows rows = {0};
    thi_left_out out = {0};
    thiele_status status;
    latent->noise = latent->tau = 0.0;
    if (source->beside.weight) {
        return THIELE_OK; /* what rows of several noises look like without themselves is not one number */
    }
    THI_TRY(thi_source_sample(source, ctx, ROWS, THI_SAMPLE_JUDGE, &rows));
    THI_TRY(thi_alloc(ctx, &out.error2, (size_t)rows.n, sizeof *out.error2));
    THI_TRY(thi_alloc(ctx, &out.v, (size_t)rows.n, sizeof *out.v));
    THI_TRY(leave_out(&out, ctx, &rows, latent, s2, source->n, &unexplained));
    out.n = unexplained < LITTLE * s2 || out.n < FEWEST ? 0 : out.n;
    THI_TRY(thi_predictive_choose(ctx, &out, spec, hypers, 0, latent));
out:
    thi_rows_free(&rows);
    thi_free(out.error2);
    thi_free(out.v);
    return status;
}
