/*
 * Whether inference did its work, from the model alone: why the search ended, jitter and condition, how much of f the
 * inducing inputs leave unexplained, leave-one-out predictions of the rows that the model keeps, how much each of them
 * weighs, chains and blocks.
 *
 * Leave-one-out by cavities. At the fixed point of the posterior each row has a site with precision -2 h and a pull of
 * g, the derivatives of E[log p(y | f)] under its marginal N(mu, v) (math.md section 1). Without it the marginal is
 *   v' = v/(1 + 2 h v),   mu' = mu - v' g,
 * which for Gaussian noise is exact leave-one-out at fixed parameters. With inducing inputs sites are of what those
 * explain: v is the variance of that, and what they leave is added again. The same rows have importance weights 1/p(y |
 * f) for f ~ N(mu, v), whose tail says how much a row weighs (pareto.h).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "likelihood/normal_quantile.h"
#include "model/describe.h"
#include "model/methods.h"
#include "posterior/local.h"
#include "report/pareto.h"
#include "report/report.h"
#include "report/statistic.h"

enum { RESIDUAL_ROWS = 500, LOO_ROWS = 2000, DRAWS = 1000, WEIGHTS = 131 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- conditioning ---------------------------------------------------------------------------------------------------
 */

/* The noise variance of predictions of a Gaussian, units of the model; NaN: there is no such number. */
static double noise_of(const thiele_model *model)
{
    bool gaussian = model->lik != NULL && thi_model_is_gaussian(model) && model->lik->parameters == 1;
    return gaussian ? model->lik->value[0] : NAN;
}

/* The square of the ratio of the largest to the smallest diagonal entry of a Cholesky factor: at most the condition
 * number, and near it in practice (Higham 2002, section 8.4). */
static double condition_of(thi_matrix L)
{
    double least = INFINITY, most = 0.0;
    for (int64_t i = 0; i < L.rows; i++) {
        least = fmin(least, fabs(L.data[i + i * L.ld]));
        most = fmax(most, fabs(L.data[i + i * L.ld]));
    }
    return L.rows > 0 ? (most / least) * (most / least) : NAN;
}

static void put_condition(thi_report *r, json_t *section)
{
    const thiele_model *model = r->model;
    double most = NAN, noise = noise_of(model);
    json_t *own = thi_put_object(r, section, "condition");
    for (int j = 0; j < model->latents; j++) {
        most = fmax(most, condition_of(model->latent[j].L));
    }
    thi_put_number(r, own, "number", most);
    thi_put_number(r, own, "jitter", model->jitter);
    thi_put_number(r, own, "jitter_noise", noise > 0.0 ? model->jitter / noise : NAN);
}

/* --- what inducing inputs leave -------------------------------------------------------------------------------------
 */

/* Points among the rows, and no rows that correct what they miss. */
static bool is_sparse(const thiele_model *model)
{
    const thi_predictor *p = model->latent;
    bool rows = model->optimizer == NULL && model->blocks.blocks == 0;
    return !rows && p->n > 0 && p->scale == NULL && p->log_c == NULL && p->mean_basis == NULL && p->local == NULL;
}

/* Of n rows: k(x, x) - |L^-1 k(Z, x)|^2, and k(x, x). */
static thiele_status residuals(const thiele_model *model, thiele_context *ctx, int64_t n, const double *X, double *left,
                               double *prior)
{
    const thi_predictor *p = model->latent;
    thi_inputs rows = {0};
    thi_matrix K = {0};
    thiele_status status;
    THI_TRY(thi_inputs_make(&rows, ctx, p->kernel, n, X));
    THI_TRY(thi_matrix_alloc(&K, ctx, p->n, n));
    THI_TRY(thi_kernel_fill(p->kernel, ctx, &p->inputs, &rows, K, false));
    THI_TRY(thi_tri_solve(ctx, THI_N, p->L, K));
    THI_TRY(thi_kernel_fill_diagonal(p->kernel, ctx, &rows, prior));
    for (int64_t i = 0; i < n; i++) {
        left[i] = fmax(prior[i] - thi_blas_dot(p->n, K.data + i * K.ld, K.data + i * K.ld), 0.0);
    }
out:
    thi_inputs_clear(&rows);
    thi_free(K.data);
    return status;
}

/*
 * Of new rows where there are some, else of training rows. Against the noise: half of it is, in nats per row, what the
 * variational bound loses by it (Titsias 2009), and the divergence from the exact posterior is at most that (Burt,
 * Rasmussen and van der Wilk 2020).
 */
static thiele_status put_inducing(thi_report *r, json_t *section)
{
    const thiele_model *model = r->model;
    const thi_held held = thi_find_held(model);
    const double *X = r->rows != NULL ? r->rows->sample.X : held.X;
    int64_t all = r->rows != NULL ? r->rows->sample.n : held.training ? held.n : 0, n = thi_least(all, RESIDUAL_ROWS);
    double *left = NULL, *prior = NULL, sum = 0.0, of = 0.0, noise = noise_of(model);
    thiele_status status = THIELE_OK;
    if (!is_sparse(model) || n == 0) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(r->ctx, &left, (size_t)n, sizeof *left));
    THI_TRY(thi_alloc(r->ctx, &prior, (size_t)n, sizeof *prior));
    THI_TRY(residuals(model, r->ctx, n, X, left, prior));
    for (int64_t i = 0; i < n; i++) {
        sum += left[i] / (double)n;
        of += prior[i] / (double)n;
    }
    qsort(left, (size_t)n, sizeof *left, by_size);
    json_t *own = thi_put_object(r, section, "inducing");
    thi_put_count(r, own, "inducing", model->latent->n);
    thi_put_count(r, own, "rows", n);
    thi_put_number(r, own, "unexplained", sum / of);
    thi_put_number(r, own, "unexplained_noise", sum / noise);
    thi_put_number(r, own, "worst_noise", left[n - 1] / noise);
out:
    thi_free(left);
    thi_free(prior);
    return status;
}

/* --- leave-one-out --------------------------------------------------------------------------------------------------
 */

/* Kept rows and their marginals; one latent function, one component. */
typedef struct cavities {
    int64_t n;
    const double *y, *offset;
    double *mu, *v, *E, *g, *h;
    double *left, *prior; /* of each row: what the inducing inputs do not explain, and k(x, x) */
} cavities;

static bool has_cavities(const thiele_model *model)
{
    bool plain = model->latents == 1 && model->components == 1 && model->encoder.targets == 1;
    return plain && is_sparse(model) && model->lik != NULL && model->kept.rows.n >= 10 &&
           model->latent->conditional == THI_CONDITIONAL_FULL && model->latent->mean_basis == NULL;
}

/* Predictions may count with another noise and a part of the variances; sites are those of the posterior itself. */
static void to_posterior(const thiele_model *model, cavities *c)
{
    double noise = model->latent->noise, tau = thi_predictor_tau(model->latent);
    for (int64_t i = 0; i < c->n; i++) {
        c->v[i] /= tau;
        if (noise > 0.0 && !isnan(noise_of(model))) {
            c->g[i] = (c->y[i] - c->mu[i]) / noise;
            c->h[i] = -0.5 / noise;
        }
    }
}

static thiele_status open_cavities(cavities *c, const thi_report *r)
{
    const thiele_model *model = r->model;
    const thi_rows *rows = &model->kept.rows;
    int64_t clipped = 0;
    thi_providers providers = {.lik = model->lik, .method = thi_model_draws(model)};
    *c = (cavities){.n = thi_least(rows->n, LOO_ROWS), .y = rows->y, .offset = rows->offset};
    size_t n = (size_t)c->n;
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &c->mu, n, sizeof *c->mu));
    THI_TRY(thi_alloc(r->ctx, &c->v, n, sizeof *c->v));
    THI_TRY(thi_alloc(r->ctx, &c->E, n, sizeof *c->E));
    THI_TRY(thi_alloc(r->ctx, &c->g, n, sizeof *c->g));
    THI_TRY(thi_alloc(r->ctx, &c->h, n, sizeof *c->h));
    THI_TRY(thi_alloc(r->ctx, &c->left, n, sizeof *c->left));
    THI_TRY(thi_alloc(r->ctx, &c->prior, n, sizeof *c->prior));
    THI_TRY(residuals(model, r->ctx, c->n, rows->X, c->left, c->prior));
    THI_TRY(thi_model_marginals(model, r->ctx, c->n, rows->X, c->offset, c->mu, c->v, &clipped));
    const thi_asked asked = {.n = c->n, .y = c->y, .mu = c->mu, .v = c->v, .E = c->E, .g = c->g, .h = c->h};
    THI_TRY(thi_providers_expect(&providers, r->ctx, &asked));
    to_posterior(model, c);
out:
    thi_providers_close(&providers);
    return status;
}

static void close_cavities(cavities *c)
{
    thi_free(c->mu);
    thi_free(c->v);
    thi_free(c->E);
    thi_free(c->g);
    thi_free(c->h);
    thi_free(c->left);
    thi_free(c->prior);
}

/* The largest k-hats, and how many are above the threshold. */
static thiele_status put_weights(thi_report *r, json_t *own, const cavities *c)
{
    const thiele_likelihood *lik = r->model->lik;
    double *f = NULL, *y = NULL, *w = NULL, *k = NULL;
    int64_t above = 0;
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &f, DRAWS, sizeof *f));
    THI_TRY(thi_alloc(r->ctx, &y, DRAWS, sizeof *y));
    THI_TRY(thi_alloc(r->ctx, &w, DRAWS, sizeof *w));
    THI_TRY(thi_alloc(r->ctx, &k, (size_t)c->n, sizeof *k));
    for (int64_t i = 0; i < c->n; i++) {
        const thi_stream stream = {0, WEIGHTS, (uint64_t)i};
        for (int d = 0; d < DRAWS; d++) {
            f[d] = c->mu[i] +
                   sqrt(fmax(c->v[i] - c->left[i], 0.0)) * thi_normal_quantile(thi_random_uniform(stream, (uint64_t)d));
            y[d] = c->y[i];
        }
        lik->ops->log_density(lik, DRAWS, y, f, w);
        for (int d = 0; d < DRAWS; d++) {
            w[d] = -w[d];
        }
        k[i] = thi_pareto_smooth(DRAWS, w);
        above += k[i] > thi_pareto_threshold(DRAWS);
    }
    qsort(k, (size_t)c->n, sizeof *k, by_size);
    thi_put_number(r, own, "khat_largest", k[c->n - 1]);
    thi_put_number(r, own, "khat_median", thi_sorted_quantile(c->n, k, 0.5));
    thi_put_number(r, own, "khat_threshold", thi_pareto_threshold(DRAWS));
    thi_put_count(r, own, "khat_above", above);
out:
    thi_free(f);
    thi_free(y);
    thi_free(w);
    thi_free(k);
    return status;
}

/* Scores of the rows without themselves. A site that takes more than there is leaves no marginal: such rows are left
 * out and counted. */
static thiele_status put_cavities(thi_report *r, json_t *own, const cavities *c)
{
    thi_scorer scorer = {0};
    thiele_scores scores;
    double *y = NULL;
    int64_t n = 0;
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &y, (size_t)c->n, sizeof *y));
    THI_TRY(thi_scorer_open(&scorer, r->ctx, r->model, c->n, false));
    for (int64_t i = 0; i < c->n; i++) {
        double known = fmax(c->v[i] - c->left[i], 0.0), rest = 1.0 + 2.0 * c->h[i] * known;
        if (rest > 0.0) {
            double v = known / rest;
            y[n] = c->y[i];
            c->E[n] = c->mu[i] - v * c->g[i]; /* E and h are not needed any more */
            c->h[n++] = (v + c->left[i]) * thi_predictor_tau(r->model->latent);
        }
    }
    if (n > 0) {
        THI_TRY(thi_scorer_add(&scorer, r->ctx, n, y, c->E, c->h));
        THI_TRY(thi_scorer_finish(&scorer, r->ctx, &scores));
        thi_put(r, own, "scores", thi_scores_to_json(&scores));
    }
    thi_put_count(r, own, "rows", n);
    thi_put_count(r, own, "without", c->n - n);
out:
    thi_free(y);
    thi_scorer_close(&scorer);
    return status;
}

static thiele_status put_loo(thi_report *r, json_t *section)
{
    const thiele_model *model = r->model;
    cavities c = {0};
    thiele_status status = THIELE_OK;
    if (model->loo_mean != NULL) {
        json_t *own = thi_put_object(r, section, "loo");
        thi_put_text(r, own, "by", "exact");
        thi_put(r, own, "scores", thi_scores_to_json(&model->loo));
        thi_put_count(r, own, "rows", model->rows);
        return status;
    }
    if (!has_cavities(model)) {
        return status;
    }
    json_t *own = thi_put_object(r, section, "loo");
    thi_put_text(r, own, "by", "cavities");
    THI_TRY(open_cavities(&c, r));
    THI_TRY(put_weights(r, own, &c));
    THI_TRY(put_cavities(r, own, &c));
out:
    close_cavities(&c);
    return status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------
 */

static void put_chains(thi_report *r, json_t *section)
{
    const thi_sampling *s = &r->model->sampling;
    if (s->sampler == NULL) {
        return;
    }
    json_t *own = thi_put_object(r, section, "chains");
    thi_put_text(r, own, "sampler", s->sampler);
    thi_put_count(r, own, "chains", s->chains);
    thi_put_count(r, own, "draws", s->draws);
    thi_put_number(r, own, "rhat", s->mixing.rhat);
    thi_put_number(r, own, "not_mixed", s->mixing.share);
    thi_put_number(r, own, "effective_least", s->mixing.ess_least);
    thi_put_number(r, own, "effective_median", s->mixing.ess_median);
    thi_put_count(r, own, "divergences", s->divergences);
}

static void put_blocks(thi_report *r, json_t *section)
{
    const thi_blocks_report *b = &r->model->blocks;
    const thi_local *local = r->model->latent->local;
    if (b->blocks == 0) {
        return;
    }
    json_t *own = thi_put_object(r, section, "blocks");
    thi_put_count(r, own, "blocks", b->blocks);
    thi_put_count(r, own, "largest", b->largest);
    thi_put_number(r, own, "passes", b->passes);
    if (b->borders > 0) {
        thi_put_number(r, own, "jump_median", b->jump_median);
        thi_put_number(r, own, "jump_largest", b->jump_largest);
    }
    if (local != NULL) {
        json_t *sizes = thi_put_list(r, own, "sizes");
        for (int64_t k = 0; k < local->partition.blocks && k < 200; k++) {
            thi_append(r, sizes, json_integer((json_int_t)(local->partition.start[k + 1] - local->partition.start[k])));
        }
    }
}

thiele_status thi_section_inference(thi_report *r, json_t *section)
{
    const thiele_model *model = r->model;
    const thi_method *method = thi_method_named(model->method);
    thiele_status status;
    thi_put_text(r, section, "stop", thi_stop_names[model->stop]);
    thi_put_count(r, section, "iterations", model->iterations);
    thi_put_count(r, section, "evaluations", model->evaluations);
    thi_put_number(r, section, "value", model->value);
    thi_put_text(r, section, "value_is", method != NULL ? method->evidence : NULL);
    put_condition(r, section);
    put_chains(r, section);
    put_blocks(r, section);
    THI_TRY(put_inducing(r, section));
    THI_TRY(put_loo(r, section));
out:
    return status;
}
