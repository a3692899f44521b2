/*
 * The sites of a batch, with the old posterior as prior (math.md section 3): of Gaussian noise at once, of any other
 * likelihood by natural-gradient rounds nu_n = g_n - 2 h_n (mu_n - o_n), lambda_n = -2 h_n. A round that would lower
 * the batch's bound, or leave I + T without a Cholesky factor, is halved. See online.h.
 */
#include <math.h>
#include <string.h>

#include "fit/online.h"
#include "fit/spec.h"

/* Rounds of a batch, at most, and the gain in nats a row that is not worth another. */
enum { ROUNDS = 20 };
static const double ENOUGH = 1e-7;
/* A bound that falls by less than this share of itself has not fallen: expectations are rounded too. */
static const double ROUNDING = 1e-10;

/* --- q with the batch ------------------------------------------------------------------------------------------------
 */

/* V diag(lambda) of the batch, and nu of one latent function in o->E. */
static thi_matrix weighted(thi_online *o, int j, const double *lambda, const double *nu)
{
    thi_online_latent *l = &o->latent[j];
    int64_t M = l->sum.T.rows, n = o->n;
    thi_matrix V = thi_matrix_view(l->V.data, M, n, M), U = thi_matrix_view(l->W.data, M, n, M);
    for (int64_t i = 0; i < n; i++) {
        double site = lambda[i * o->latents + j];
        for (int64_t k = 0; k < M; k++) {
            U.data[k + i * M] = site * V.data[k + i * M];
        }
        o->E[i] = nu[i * o->latents + j];
    }
    return U;
}

/* next = T + V diag(lambda) V', t_next = t + V nu, and q from them. M^2 n + M^3/3 flops. */
static thiele_status add_sites(thi_online *o, thiele_context *ctx, int j, const double *lambda, const double *nu)
{
    thi_online_latent *l = &o->latent[j];
    int64_t M = l->sum.T.rows, n = o->n;
    thi_matrix V = thi_matrix_view(l->V.data, M, n, M), U = weighted(o, j, lambda, nu);
    thi_natural_copy(&l->next, &l->sum);
    thi_blas_gemv(THI_N, 1.0, V, o->E, 1.0, l->next.t);
    thiele_status status = thi_multiply(ctx, THI_N, THI_T, 1.0, U, V, 1.0, l->next.T, true);
    return status == THIELE_OK ? thi_online_factor(l, ctx, &l->next) : status;
}

static thiele_status set_all(thi_online *o, thiele_context *ctx, const double *lambda, const double *nu)
{
    for (int j = 0; j < o->latents; j++) {
        thiele_status status = add_sites(o, ctx, j, lambda, nu);
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

thiele_status thi_online_take_out(thi_online *o, thiele_context *ctx, int latent, const double *lambda,
                                  const double *nu, thi_natural *sum)
{
    thi_online_latent *l = &o->latent[latent];
    int64_t M = l->sum.T.rows, n = o->n;
    thi_matrix V = thi_matrix_view(l->V.data, M, n, M), U = weighted(o, latent, lambda, nu);
    thi_blas_gemv(THI_N, -1.0, V, o->E, 1.0, sum->t);
    return thi_multiply(ctx, THI_N, THI_T, -1.0, U, V, 1.0, sum->T, true);
}

thiele_status thi_online_put(thi_online *o, thiele_context *ctx, int latent, const thi_natural *sum)
{
    thi_online_latent *l = &o->latent[latent];
    thiele_status status = thi_online_factor(l, ctx, sum);
    if (status == THIELE_OK) {
        thi_natural_copy(&l->sum, sum);
    } else {
        (void)thi_online_factor(l, ctx, &l->sum); /* it had a factor before */
    }
    return status;
}

/* The batch becomes part of what is known. */
static void commit(thi_online *o)
{
    for (int j = 0; j < o->latents; j++) {
        thi_online_latent *l = &o->latent[j];
        thi_natural before = l->sum;
        l->sum = l->next;
        l->next = before;
    }
}

/* q without the batch, after something failed. */
static void fall_back(thi_online *o, thiele_context *ctx)
{
    for (int j = 0; j < o->latents; j++) {
        thi_online_latent *l = &o->latent[j];
        char message[THI_MESSAGE_MAX];
        memcpy(message, ctx->message, sizeof message);
        /* It had a factor before. */
        (void)thi_online_factor(l, ctx, &l->sum);
        memcpy(ctx->message, message, sizeof message);
    }
}

double thi_online_share(const thi_online *o)
{
    return o->lasting * (o->settings.forget > 0.0 ? exp(-(double)o->n / o->settings.forget) : 1.0);
}

static void forget(thi_online *o)
{
    double keep = thi_online_share(o);
    for (int j = 0; keep < 1.0 && j < o->latents; j++) {
        thi_natural_mix(&o->latent[j].sum, keep, &o->latent[j].sum, 0.0);
    }
}

/* --- Gaussian noise --------------------------------------------------------------------------------------------------
 */

/* Around one function, or around one for each output. */
static bool is_conjugate(const thi_online *o)
{
    return thi_is_gaussian(o->lik) || o->lik->ops->separate;
}

double thi_online_noise(const thi_online *o, int latent)
{
    double own = o->latent[latent].basis->noise;
    return own > 0.0 ? own : o->lik->value[latent];
}

static void gaussian_sites(thi_online *o, const double *y)
{
    const double *weight = o->settings.weight;
    int Q = o->latents;
    double diagonal = weight[THI_RESIDUAL_DIAGONAL] + weight[THI_RESIDUAL_BLOCK];
    double none = diagonal > 0.0 ? weight[THI_RESIDUAL_NONE] : 1.0;
    for (int64_t k = 0; k < o->n * Q; k++) {
        double noise = thi_online_noise(o, (int)(k % Q)), left = o->latent[k % Q].left[k / Q];
        o->lambda[k] = isnan(y[k]) ? 0.0 : none / noise + diagonal / (noise + left);
        o->nu[k] = isnan(y[k]) ? 0.0 : o->lambda[k] * (y[k] - o->shift[k]);
    }
}

static thiele_status learn_gaussian(thi_online *o, thiele_context *ctx, const double *y)
{
    gaussian_sites(o, y);
    return set_all(o, ctx, o->lambda, o->nu);
}

/* --- other likelihoods -----------------------------------------------------------------------------------------------
 */

/* Sites that the present (g, h) ask for. */
static void aim(thi_online *o)
{
    for (int64_t i = 0; i < o->n * o->latents; i++) {
        o->lambda_to[i] = -2.0 * o->h[i];
        o->nu_to[i] = o->g[i] + o->lambda_to[i] * (o->mu[i] - o->shift[i]);
    }
}

/*
 * KL(q || q_old) of one latent function, sites as given: with B = B_old + V diag(lambda) V' the trace is
 * tr(B_old S) = M - sum lambda_n V_n'S V_n, and V_n'S V_n is v_n less what Z leaves over.
 */
static double divergence(const thi_online *o, int j, const double *lambda)
{
    const thi_online_latent *l = &o->latent[j];
    int64_t M = l->sum.T.rows;
    bool conditional = l->basis->conditional != THI_CONDITIONAL_NONE;
    double trace = 0.0, square = 0.0;
    for (int64_t i = 0; i < o->n; i++) {
        int64_t at = i * o->latents + j;
        trace -= lambda[at] * (o->v[at] - (conditional ? l->left[i] : 0.0));
    }
    for (int64_t k = 0; k < M; k++) {
        double dk = l->m[k] - l->old[k];
        square += dk * dk * (1.0 + l->sum.T.data[k + k * M]);
        for (int64_t i = k + 1; i < M; i++) {
            square += 2.0 * dk * (l->m[i] - l->old[i]) * l->sum.T.data[i + k * M];
        }
    }
    return 0.5 * (trace + square + thi_chol_logdet(l->root) - l->log_det);
}

/* Marginals, expectations and the batch's bound at the present q. */
static thiele_status evaluate(thi_online *o, thiele_context *ctx, const thi_asked *asked, const double *lambda,
                              double *bound)
{
    thiele_status status;
    THI_TRY(thi_online_marginals(o, ctx, o->mu, o->v));
    THI_TRY(thi_providers_expect(&o->providers, ctx, asked));
    *bound = 0.0;
    for (int64_t i = 0; i < o->n; i++) {
        *bound += o->E[i];
    }
    for (int j = 0; j < o->latents; j++) {
        *bound -= divergence(o, j, lambda);
    }
out:
    return status;
}

static void swap(double **a, double **b)
{
    double *kept = *a;
    *a = *b;
    *b = kept;
}

/* A step of size rho towards the aim. *bound: minus infinity where there is no such q. */
static thiele_status try_step(thi_online *o, thiele_context *ctx, const thi_asked *asked, double rho, double *bound)
{
    for (int64_t i = 0; i < o->n * o->latents; i++) {
        o->lambda_try[i] = (1.0 - rho) * o->lambda[i] + rho * o->lambda_to[i];
        o->nu_try[i] = (1.0 - rho) * o->nu[i] + rho * o->nu_to[i];
    }
    thiele_status status = set_all(o, ctx, o->lambda_try, o->nu_try);
    if (status == THIELE_OK) {
        status = evaluate(o, ctx, asked, o->lambda_try, bound);
    }
    if (status == THIELE_ERROR_NUMERIC || (status == THIELE_OK && !isfinite(*bound))) {
        thi_recover(ctx);
        *bound = -INFINITY;
        return THIELE_OK;
    }
    return status;
}

/* The old posterior as the point to begin at. */
static thiele_status begin(thi_online *o, thiele_context *ctx, const thi_asked *asked, double *bound)
{
    size_t numbers = (size_t)(o->n * o->latents);
    thiele_status status = THIELE_OK;
    memset(o->lambda, 0, numbers * sizeof *o->lambda);
    memset(o->nu, 0, numbers * sizeof *o->nu);
    for (int j = 0; j < o->latents; j++) {
        thi_online_latent *l = &o->latent[j];
        THI_TRY(thi_online_factor(l, ctx, &l->sum));
        memcpy(l->old, l->m, (size_t)l->sum.T.rows * sizeof *l->old);
        l->log_det = thi_chol_logdet(l->root);
    }
    THI_TRY(evaluate(o, ctx, asked, o->lambda, bound));
    aim(o);
out:
    return status;
}

static thiele_status learn_rounds(thi_online *o, thiele_context *ctx, const double *y, int64_t row)
{
    const thi_asked asked = {row, o->n, y, o->mu, o->v, o->E, o->g, o->h, NULL, NULL};
    double bound, trial, rho = 1.0;
    bool present = true; /* q is that of the sites */
    thiele_status status;
    THI_TRY(begin(o, ctx, &asked, &bound));
    for (int round = 0; round < ROUNDS; round++) {
        THI_TRY(try_step(o, ctx, &asked, rho, &trial));
        present = trial >= bound - ROUNDING * fabs(bound);
        if (!present) {
            rho *= 0.5;
            continue;
        }
        swap(&o->lambda, &o->lambda_try);
        swap(&o->nu, &o->nu_try);
        bool settled = trial - bound < ENOUGH * rho * (double)o->n;
        bound = trial;
        if (settled) {
            break;
        }
        aim(o);
        rho = fmin(1.0, 2.0 * rho);
    }
    if (!present) {
        THI_TRY(set_all(o, ctx, o->lambda, o->nu));
    }
    o->bound = bound;
out:
    return status;
}

/* Of Gaussian noise, whose sites need no bound to be found. */
static thiele_status learn_weighed(thi_online *o, thiele_context *ctx, const double *y, int64_t row)
{
    const thi_asked asked = {row, o->n, y, o->mu, o->v, o->E, o->g, o->h, NULL, NULL};
    thiele_status status;
    THI_TRY(begin(o, ctx, &asked, &o->bound));
    THI_TRY(learn_gaussian(o, ctx, y));
    THI_TRY(evaluate(o, ctx, &asked, o->lambda, &o->bound));
out:
    return status;
}

thiele_status thi_online_find_sites(thi_online *o, thiele_context *ctx, const double *y, int64_t row)
{
    const thi_asked asked = {row, o->n, y, o->mu, o->v, o->E, o->g, o->h, NULL, NULL};
    thiele_status status = THIELE_OK;
    if (is_conjugate(o)) {
        gaussian_sites(o, y);
        return status;
    }
    THI_TRY(thi_online_marginals(o, ctx, o->mu, o->v));
    THI_TRY(thi_providers_expect(&o->providers, ctx, &asked));
    aim(o);
    swap(&o->lambda, &o->lambda_to);
    swap(&o->nu, &o->nu_to);
out:
    return status;
}

thiele_status thi_online_weigh(thi_online *o, thiele_context *ctx, const double *y, int64_t row)
{
    forget(o);
    return !is_conjugate(o)     ? learn_rounds(o, ctx, y, row)
           : o->settings.weighs ? learn_weighed(o, ctx, y, row)
                                : learn_gaussian(o, ctx, y);
}

void thi_online_settle(thi_online *o, thiele_context *ctx, bool keep)
{
    if (keep) {
        commit(o);
    } else {
        fall_back(o, ctx);
    }
    o->lasting = 1.0;
}

thiele_status thi_online_learn(thi_online *o, thiele_context *ctx, const double *y, int64_t row)
{
    thiele_status status = THIELE_OK;
    if (o->n > 0) {
        status = thi_online_weigh(o, ctx, y, row);
        thi_online_settle(o, ctx, status == THIELE_OK);
    }
    return status;
}
