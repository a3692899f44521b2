/*
 * Gaussian noise of a decoupled bound in closed form, at a mean that holds still. With V = Lb^-1 k(beta, x), G = sum of
 * V V' over the rows, r_i = k_ii - |V_i|^2 and e_i = y_i - mu_i, the best q(w) has S = (I + G/s2)^-1 whatever its mean,
 * and the tighter bound (math.md sections 6 and 9) is
 *   F(s2) = -N/2 log 2 pi s2 - sum e_i^2/(2 s2) - log|I + G/s2|/2 - sum log(1 + r_i/s2)/2 - |f|^2/2
 * with |f| the norm of the mean in the kernel's own space. It is raised in s2 here and in f by sweeps, by turns. With a
 * function at every row both end at -y'(K + s2)^-1 y/2 - log|Q + s2|/2 - sum log(1 + r_i/s2)/2 - N/2 log 2 pi: the
 * evidence but for the determinant, of which it has an upper bound. A Cholesky factorisation of M_beta a value.
 */
#include <math.h>
#include <string.h>

#include "fit/decoupled_sweep.h"
#include "optim/scalar.h"

static const double TWO_PI = 6.283185307179586;
/* The noise is searched within so many e-folds below the mean square of errors and what beta leaves. */
static const double DEEPEST = 24.0;

thi_hyper *thi_dfit_noise(const thi_dfit *fit, int target)
{
    const thi_hypers *hypers = fit->problem.hypers;
    return &hypers->hyper[hypers->first[hypers->groups] + target];
}

thiele_status thi_dcover_open(thi_dcover *cover, const thi_dfit *fit, const thi_rows *rows, double weight)
{
    thiele_context *ctx = fit->problem.ctx;
    thiele_status status;
    cover->n = rows->n;
    cover->y = rows->y;
    cover->weight = weight;
    cover->latents = fit->latents->count;
    THI_TRY(thi_alloc(ctx, &cover->r, (size_t)(rows->n * cover->latents), sizeof *cover->r));
    THI_TRY(thi_alloc(ctx, &cover->sum, (size_t)cover->latents, sizeof *cover->sum));
    for (int q = 0; q < cover->latents; q++) {
        THI_TRY(thi_natural_open(&cover->sum[q], ctx, fit->n_beta));
    }
    THI_TRY(thi_matrix_alloc(&cover->work, ctx, fit->n_beta, fit->n_beta));
out:
    return status;
}

void thi_dcover_close(thi_dcover *cover)
{
    for (int q = 0; cover->sum != NULL && q < cover->latents; q++) {
        thi_natural_close(&cover->sum[q]);
    }
    thi_free(cover->r);
    thi_free(cover->sum);
    thi_free(cover->work.data);
    *cover = (thi_dcover){0};
}

/* h = -weight/2 for every row makes what a natural step adds up to weight V V'. */
thiele_status thi_dcover_add(thi_dcover *cover, const thi_dfit *fit, int64_t first, int64_t count)
{
    const thi_pass *pass = &fit->pass;
    int64_t at = first * cover->latents;
    pass->engine->residual(pass->self, cover->r + at);
    for (int64_t i = 0; i < count * cover->latents; i++) {
        pass->g[i] = 0.0;
        pass->h[i] = isnan(cover->y[at + i]) ? 0.0 : -0.5 * cover->weight;
    }
    return pass->engine->pull(pass->self, fit->problem.ctx, pass->g, pass->h, NULL);
}

void thi_dcover_end(thi_dcover *cover, thi_dfit *fit)
{
    if (fit->n_beta == 0) {
        return;
    }
    for (int g = 0; g < fit->latents->groups; g++) {
        thi_decoupled_step(thi_decoupled_group(fit->pass.self, g), 1.0, cover->sum + thi_dfit_first(fit, g));
    }
}

/* *lost: infinite where I + G/s2 cannot be factored. */
static thiele_status lost_at(const thi_dcover *cover, const thi_dfit *fit, int q, double s2, double *lost)
{
    thi_matrix G = cover->sum[q].T, work = cover->work;
    double sum = 0.0;
    for (int64_t i = q; i < cover->n * cover->latents; i += cover->latents) {
        sum += isnan(cover->y[i]) ? 0.0 : log1p(cover->r[i] / s2);
    }
    *lost = 0.5 * cover->weight * sum;
    if (G.rows == 0) {
        return THIELE_OK;
    }
    for (int64_t j = 0; j < G.rows; j++) {
        for (int64_t i = j; i < G.rows; i++) {
            work.data[i + j * work.ld] = G.data[i + j * G.ld] / s2 + (i == j ? 1.0 : 0.0);
        }
    }
    thiele_status status = thi_chol(fit->problem.ctx, work);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        *lost = INFINITY;
        return THIELE_OK;
    }
    *lost += status == THIELE_OK ? 0.5 * thi_chol_logdet(work) : 0.0;
    return status;
}

thiele_status thi_dcover_look(thi_dcover *cover, const thi_dfit *fit)
{
    thiele_status status = THIELE_OK;
    cover->lost = 0.0;
    for (int q = 0; q < cover->latents && status == THIELE_OK; q++) {
        double lost = 0.0;
        status = lost_at(cover, fit, q, fit->problem.spec->lik->value[q], &lost);
        cover->lost += lost;
    }
    return status;
}

typedef struct profile {
    const thi_dcover *cover;
    const thi_dfit *fit;
    int target;
    double rows, squares; /* weighted */
} profile;

/* F, and log p(noise), at a value of the hyperparameter, which it then has. */
static thiele_status value_at(void *arg, double x, double *value)
{
    const profile *p = arg;
    thi_hypers *hypers = p->fit->problem.hypers;
    thi_hyper *noise = thi_dfit_noise(p->fit, p->target);
    noise->value = x;
    double s2 = thi_hyper_number(noise), lost, *unused = p->fit->pass.hyper_bar;
    thiele_status status = lost_at(p->cover, p->fit, p->target, s2, &lost);
    memset(unused, 0, (size_t)hypers->count * sizeof *unused);
    *value = -0.5 * (p->rows * log(TWO_PI * s2) + p->squares / s2) - lost + thi_hypers_log_prior(hypers, unused);
    return status;
}

static thiele_status profile_one(const thi_dcover *cover, const thi_dfit *fit, int target, double squares)
{
    thi_hyper *noise = thi_dfit_noise(fit, target);
    profile p = {cover, fit, target, 0.0, cover->weight * squares};
    double low, high, best = noise->value, left = 0.0, count = 0.0;
    if (noise->fixed) {
        return THIELE_OK;
    }
    for (int64_t i = target; i < cover->n * cover->latents; i += cover->latents) {
        left += isnan(cover->y[i]) ? 0.0 : cover->r[i];
        count += !isnan(cover->y[i]);
    }
    p.rows = cover->weight * count;
    thi_hyper_limits(noise, fit->vector.base[noise - fit->problem.hypers->hyper], &low, &high);
    high = fmax(best, fmin(high, log((squares + left) / fmax(count, 1.0) + thi_hyper_number(noise)) + 1.0));
    low = fmin(best, fmax(low, high - DEEPEST));
    thiele_status status = thi_scalar_search(value_at, &p, low, high, &best);
    noise->value = best;
    return status;
}

thiele_status thi_dcover_profile(thi_dcover *cover, thi_dfit *fit, const double *squares)
{
    thi_hypers *hypers = fit->problem.hypers;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < cover->latents && !fit->sparse->condition && fit->sparse->iterations >= 0; q++) {
        THI_TRY(profile_one(cover, fit, q, squares[q]));
    }
    if (fit->learn) {
        thi_hypers_pack(hypers, thi_dfit_part(fit, THI_DPART_HYPER));
    }
    THI_TRY(thi_hypers_apply(hypers, fit->problem.ctx, fit->problem.spec));
    THI_TRY(thi_dcover_look(cover, fit));
out:
    return status;
}
