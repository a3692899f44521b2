/*
 * What is predicted: mean and variance of y, by the law of total variance from those given f,
 *   E[y] = E[m(f)],  Var[y] = E[s(f)] + Var[m(f)],
 * and class probabilities. Exact where the likelihood knows, else by quadrature or, where there are more than 3 latents
 * or expectations are had by draws, by quasi-random points; from the density of y alone where there are no moments
 * given f (predictive_distribution.h).
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "expect/integrate.h"
#include "expect/parallel.h"
#include "expect/predictive_distribution.h"

/* Draws of a distribution that is made of hundreds of densities; of a density that few others have seen. */
enum { FEW_DRAWS = 128, MANY_DRAWS = 8192 };

static thiele_status sweep(thi_space *space, thiele_context *ctx, thi_rule *rule, int64_t count,
                           const thi_integrand *in, const thi_block_rows *rows, double *result)
{
    thiele_status status = rule->count > 0 ? THIELE_OK : thi_rule_sobol(rule, ctx, ctx->seed, 0, count, space->Q);
    if (status == THIELE_OK) {
        thi_sweep(space, in, rule, rows, result);
    }
    return status;
}

thiele_status thi_average(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_block_rows *rows,
                          double *result)
{
    if (space->scattered == 0) {
        return thi_ladder(space, ctx, in, rows, result, space->level, false);
    }
    return space->coarse ? sweep(space, ctx, &space->few, FEW_DRAWS, in, rows, result)
                         : sweep(space, ctx, &space->sobol, space->scattered, in, rows, result);
}

thiele_status thi_average_again(thi_space *space, thiele_context *ctx, const thi_integrand *in,
                                const thi_block_rows *rows, double *result)
{
    return sweep(space, ctx, &space->many, MANY_DRAWS, in, rows, result);
}

static bool close_enough(double before, double now, double tolerance, double floor)
{
    return before == now || fabs(now - before) <= tolerance * fabs(now) + floor;
}

/* --- moments: results E[m], E[s], E[(m - m(mu))^2], P each -------------------------------------------------------- */

static void evaluate_moments(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    (void)y;
    in->lik->ops->conditional(in->lik, n, f, value, value + n * in->lik->outputs);
}

static void reduce_moments(const thi_integrand *in, const thi_points *p, double *result)
{
    int64_t P = in->lik->outputs;
    const double *mean = p->value + p->at * P, *variance = mean + p->n * P;
    for (int64_t k = 0; k < p->count; k++) {
        for (int64_t o = 0; o < P; o++) {
            double away = mean[k * P + o] - p->centre[o];
            result[o] += p->w[k] * mean[k * P + o];
            result[P + o] += p->w[k] * variance[k * P + o];
            result[2 * P + o] += p->w[k] * away * away;
        }
    }
}

static double total_variance(int64_t P, int64_t o, const double *centre, const double *result)
{
    double away = result[o] - centre[o];
    return result[P + o] + fmax(0, result[2 * P + o] - away * away);
}

static bool settled_moments(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                            const double *now)
{
    int64_t P = in->lik->outputs;
    bool settled = true;
    for (int64_t o = 0; o < P && settled; o++) {
        double variance = total_variance(P, o, centre, now);
        settled = close_enough(before[o], now[o], tolerance, 0.01 * tolerance * sqrt(variance)) &&
                  close_enough(total_variance(P, o, centre, before), variance, tolerance, DBL_MIN);
    }
    return settled;
}

/* y is -1 or +1. */
static thiele_status sign_moments(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu, const double *v,
                                  double *mean, double *variance)
{
    double probability[2 * THI_EXPECT_BLOCK];
    thiele_status status = thi_probabilities_block(expect, ctx, n, mu, v, probability);
    for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
        mean[i] = probability[2 * i + 1] - probability[2 * i];
        variance[i] = 4 * probability[2 * i] * probability[2 * i + 1];
    }
    return status;
}

/* From the density alone. */
static thiele_status by_law(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu, const double *v,
                            double *mean, double *variance)
{
    const thiele_likelihood *lik = expect->lik;
    int64_t P = lik->outputs, Q = lik->latents;
    if (lik->ops->support == THI_SUPPORT_CLASS) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "likelihood '%s' predicts classes, which have no mean",
                        thiele_likelihood_name(lik));
    }
    if (lik->ops->support == THI_SUPPORT_BINARY) {
        return sign_moments(expect, ctx, n, mu, v, mean, variance);
    }
    thi_law *law = NULL;
    thiele_status status = thi_space_law(expect, ctx, &law);
    for (int64_t k = 0; k < n * P && status == THIELE_OK; k++) {
        thi_marginals row = {1, 1, NULL, mu + k / P * Q, v + k / P * Q};
        bool found = false;
        if (Q == 1) {
            status = thi_conditional_moments(expect, ctx, row.mu, *row.v, (int)(k % P), &mean[k], &variance[k], &found);
        }
        if (status == THIELE_OK && !found) {
            status = thi_law_fit(law, ctx, &row, (int)(k % P), NULL, true);
            mean[k] = law->mean;
            variance[k] = law->variance;
        }
    }
    return status;
}

thiele_status thi_predict_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu, const double *v,
                                double *mean, double *variance)
{
    const thiele_likelihood *lik = expect->lik;
    thi_space *space = expect->space;
    int64_t P = lik->outputs;
    thiele_status status = thi_space_spread(space, ctx, n, mu, v);
    if (status != THIELE_OK) {
        return status;
    }
    if (lik->ops->predictive != NULL) {
        lik->ops->predictive(lik, n, mu, v, mean, variance);
        return THIELE_OK;
    }
    if (lik->ops->conditional == NULL) {
        return by_law(expect, ctx, n, mu, v, mean, variance);
    }
    thi_integrand in = {.lik = lik, .values = 2 * P, .results = 3 * P, .centred = true};
    in.evaluate = evaluate_moments;
    in.reduce = reduce_moments;
    in.settled = settled_moments;
    thi_block_rows rows = {thi_space_rows(space, n, NULL), space->row, NULL, mu, space->sd, space->centre};
    thi_space_centre(space, &in, &rows, space->centre);
    status = thi_average(space, ctx, &in, &rows, space->result);
    for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
        for (int64_t o = 0; o < P; o++) {
            mean[i * P + o] = space->result[i * in.results + o];
            variance[i * P + o] = total_variance(P, o, space->centre + i * in.values, space->result + i * in.results);
        }
    }
    return status;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static void evaluate_classes(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    (void)y;
    in->lik->ops->probabilities(in->lik, n, f, value);
}

static void reduce_classes(const thi_integrand *in, const thi_points *p, double *result)
{
    const double *value = p->value + p->at * in->values;
    for (int64_t k = 0; k < p->count; k++) {
        for (int64_t c = 0; c < in->values; c++) {
            result[c] += p->w[k] * value[k * in->values + c];
        }
    }
}

static bool settled_classes(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                            const double *now)
{
    (void)centre;
    bool settled = true;
    for (int64_t c = 0; c < in->values && settled; c++) {
        settled = close_enough(before[c], now[c], tolerance, 1e-4 * tolerance);
    }
    return settled;
}

/* From the density of each class, exact for those likelihoods that have it; scaled, for pseudo-likelihoods. */
static thiele_status by_density(thi_expect *expect, thiele_context *ctx, int classes, int64_t n, const double *mu,
                                const double *v, double *probability)
{
    thi_space *space = expect->space;
    bool binary = expect->lik->ops->support == THI_SUPPORT_BINARY;
    double density[THI_EXPECT_BLOCK];
    thiele_status status = THIELE_OK;
    for (int c = 0; c < classes && status == THIELE_OK; c++) {
        for (int64_t i = 0; i < n; i++) {
            space->label[i] = binary ? 2 * c - 1 : c;
        }
        status = thi_log_predictive_block(expect, ctx, n, space->label, mu, v, density);
        for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
            probability[i * classes + c] = density[i];
        }
    }
    for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
        double sum = 0, most = -INFINITY, *own = probability + i * classes;
        for (int c = 0; c < classes; c++) {
            most = fmax(most, own[c]);
        }
        if (most == -INFINITY) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC, "likelihood '%s': no class is possible at mean %g, variance %g",
                            thiele_likelihood_name(expect->lik), mu[i * space->Q], v[i * space->Q]);
        }
        for (int c = 0; c < classes; c++) {
            own[c] = exp(own[c] - most);
            sum += own[c];
        }
        for (int c = 0; c < classes; c++) {
            own[c] /= sum;
        }
    }
    return status;
}

thiele_status thi_probabilities_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu,
                                      const double *v, double *probability)
{
    const thiele_likelihood *lik = expect->lik;
    thi_space *space = expect->space;
    bool binary = lik->ops->support == THI_SUPPORT_BINARY;
    int classes = binary ? 2 : lik->classes;
    if (lik->outputs != 1 || (!binary && lik->ops->support != THI_SUPPORT_CLASS)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "likelihood '%s' does not predict classes%s",
                        thiele_likelihood_name(lik), lik->outputs != 1 ? " with a single output" : "");
    }
    thiele_status status = thi_space_spread(space, ctx, n, mu, v);
    if (status != THIELE_OK) {
        return status;
    }
    if (lik->ops->predictive_probabilities != NULL) {
        lik->ops->predictive_probabilities(lik, n, mu, v, probability);
        return THIELE_OK;
    }
    if (lik->ops->log_predictive != NULL || lik->ops->probabilities == NULL) {
        return by_density(expect, ctx, classes, n, mu, v, probability);
    }
    thi_integrand in = {.lik = lik, .values = classes, .results = classes, .evaluate = evaluate_classes};
    in.reduce = reduce_classes;
    in.settled = settled_classes;
    thi_block_rows rows = {thi_space_rows(space, n, NULL), space->row, NULL, mu, space->sd, NULL};
    return thi_average(space, ctx, &in, &rows, probability);
}

/* --- all rows ----------------------------------------------------------------------------------------------------- */

typedef struct job {
    const double *mu, *v;
    double *mean, *variance;
} job;

static thiele_status run_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const void *arg)
{
    const job *j = arg;
    int64_t P = expect->lik->outputs, Q = expect->lik->latents;
    return thi_predict_block(expect, ctx, n, j->mu + row * Q, j->v + row * Q, j->mean + row * P, j->variance + row * P);
}

thiele_status thiele_likelihood_predict(const thiele_likelihood *likelihood, thiele_context *ctx, int64_t n,
                                        const double *mu, const double *v, double *mean, double *variance)
{
    THI_NEED(ctx, likelihood && ctx && (n < 1 || (mu && v && mean && variance)));
    job j = {mu, v, mean, variance};
    return thi_expect_rows(likelihood, ctx, NULL, n, run_block, &j);
}
