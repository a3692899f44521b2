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

thiele_status thi_dcover_open(thi_dcover *cover, const thi_dfit *fit, int64_t n, double weight)
{
    thiele_status status;
    cover->n = n;
    cover->weight = weight;
    THI_TRY(thi_alloc(fit->problem.ctx, &cover->r, (size_t)n, sizeof *cover->r));
    THI_TRY(thi_natural_open(&cover->sum, fit->problem.ctx, fit->n_beta));
    THI_TRY(thi_matrix_alloc(&cover->work, fit->problem.ctx, fit->n_beta, fit->n_beta));
out:
    return status;
}

void thi_dcover_close(thi_dcover *cover)
{
    thi_free(cover->r);
    thi_natural_close(&cover->sum);
    thi_free(cover->work.data);
    *cover = (thi_dcover){0};
}

/* h = -weight/2 for every row makes what a natural step adds up to weight V V'. */
thiele_status thi_dcover_add(thi_dcover *cover, const thi_dfit *fit, int64_t first, int64_t count)
{
    const thi_pass *pass = &fit->pass;
    pass->engine->residual(pass->self, cover->r + first);
    for (int64_t i = 0; i < count; i++) {
        pass->g[i] = 0.0;
        pass->h[i] = -0.5 * cover->weight;
    }
    return pass->engine->pull(pass->self, fit->problem.ctx, pass->g, pass->h, NULL);
}

void thi_dcover_end(thi_dcover *cover, thi_dfit *fit)
{
    if (fit->n_beta > 0) {
        thi_pass_step(&fit->pass, 1.0, &(thi_decoupled_q){.factor = cover->sum.T, .t = cover->sum.t});
    }
}

/* *lost: infinite where I + G/s2 cannot be factored. */
static thiele_status lost_at(const thi_dcover *cover, const thi_dfit *fit, double s2, double *lost)
{
    thi_matrix G = cover->sum.T, work = cover->work;
    double sum = 0.0;
    for (int64_t i = 0; i < cover->n; i++) {
        sum += log1p(cover->r[i] / s2);
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
    return lost_at(cover, fit, fit->problem.spec->lik->value[0], &cover->lost);
}

typedef struct profile {
    const thi_dcover *cover;
    const thi_dfit *fit;
    double squares; /* weighted */
} profile;

/* F, and log p(noise), at a value of the hyperparameter, which it then has. */
static thiele_status value_at(void *arg, double x, double *value)
{
    const profile *p = arg;
    thi_hypers *hypers = p->fit->problem.hypers;
    hypers->hyper[hypers->noise].value = x;
    double s2 = thi_hyper_number(&hypers->hyper[hypers->noise]), lost;
    double rows = p->cover->weight * (double)p->cover->n, *unused = p->fit->pass.hyper_bar;
    thiele_status status = lost_at(p->cover, p->fit, s2, &lost);
    memset(unused, 0, (size_t)hypers->count * sizeof *unused);
    *value = -0.5 * (rows * log(TWO_PI * s2) + p->squares / s2) - lost + thi_hypers_log_prior(hypers, unused);
    return status;
}

thiele_status thi_dcover_profile(thi_dcover *cover, thi_dfit *fit, double squares)
{
    thi_hypers *hypers = fit->problem.hypers;
    thi_hyper *noise = hypers->noise >= 0 ? &hypers->hyper[hypers->noise] : NULL;
    profile p = {cover, fit, cover->weight * squares};
    double low, high, best, left = 0.0;
    thiele_status status = THIELE_OK;
    if (noise != NULL && !noise->fixed && !fit->sparse->condition && fit->sparse->iterations >= 0) {
        for (int64_t i = 0; i < cover->n; i++) {
            left += cover->r[i];
        }
        best = noise->value;
        thi_hyper_limits(noise, fit->vector.base[hypers->noise], &low, &high);
        high = fmax(best, fmin(high, log((squares + left) / (double)cover->n + thi_hyper_number(noise)) + 1.0));
        low = fmin(best, fmax(low, high - DEEPEST));
        THI_TRY(thi_scalar_search(value_at, &p, low, high, &best));
        noise->value = best;
        if (fit->learn) {
            thi_hypers_pack(hypers, thi_dfit_part(fit, THI_DPART_HYPER));
        }
        THI_TRY(thi_hypers_apply(hypers, fit->problem.ctx, fit->problem.spec));
    }
    THI_TRY(thi_dcover_look(cover, fit));
out:
    return status;
}
