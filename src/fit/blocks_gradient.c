/*
 * The plain stochastic gradient of the bound in (mu, Sigma) of u itself (Hoang, Hoang and Low 2015, equations 14, 17
 * and 18), for comparison with natural gradients:
 *   mu += rho (G - F mu),   Sigma += rho (Sigma^-1 - F) / 2,   F = L^-T (I + T) L^-1,  G = L^-T t
 * In w = L^-1 u, with J = (L'L)^-1 and q(w) = N(m, B^-1):
 *   m += rho J (t - (I + T) m),   S += rho J (B - I - T) J / 2
 * rho is no longer than 1/|F|, beyond which mu would run away, and is halved until S stays positive definite. M^3.
 */
#include <math.h>
#include <string.h>

#include "fit/blocks_state.h"

enum { POWER_ROUNDS = 20, HALVINGS = 60 };

/* x = J x */
static void apply_J(const thi_sparse *e, double *x)
{
    thi_blas_trsv(THI_T, e->L, x);
    thi_blas_trsv(THI_N, e->L, x);
}

/* y = (I + T) x, T full */
static void apply_step(thi_matrix T, const double *x, double *y)
{
    memcpy(y, x, (size_t)T.rows * sizeof *y);
    thi_blas_gemv(THI_N, 1.0, T, x, 1.0, y);
}

/* The largest eigenvalue of F, which has those of J (I + T), from below by powers. */
static double norm(const thi_sparse *e, thi_matrix T, double *x, double *y)
{
    double size = 1.0;
    for (int64_t i = 0; i < T.rows; i++) {
        x[i] = 1.0 + 0.5 * (double)(i % 7);
    }
    for (int round = 0; round < POWER_ROUNDS; round++) {
        apply_step(T, x, y);
        apply_J(e, y);
        size = sqrt(thi_blas_dot(T.rows, y, y) / thi_blas_dot(T.rows, x, x));
        double scale = 1.0 / sqrt(thi_blas_dot(T.rows, y, y));
        for (int64_t i = 0; i < T.rows; i++) {
            x[i] = y[i] * scale;
        }
    }
    return size;
}

static void transpose(thi_matrix A)
{
    for (int64_t j = 0; j < A.cols; j++) {
        for (int64_t i = 0; i < j; i++) {
            double swap = A.data[i + j * A.ld];
            A.data[i + j * A.ld] = A.data[j + i * A.ld];
            A.data[j + i * A.ld] = swap;
        }
    }
}

/* D = J (B - I - T) J / 2, of B - I = `from` and T the lower triangles: J (J A)' = J A J for a symmetric A. */
static thiele_status direction(const thi_bfit *fit, thi_matrix from, thi_matrix T, thi_matrix D)
{
    const thi_sparse *e = fit->engine;
    thiele_status status;
    for (int64_t j = 0; j < D.cols; j++) {
        for (int64_t i = j; i < D.rows; i++) {
            D.data[i + j * D.ld] = 0.5 * (from.data[i + j * D.ld] - T.data[i + j * D.ld]);
        }
    }
    thi_symmetrise(D);
    THI_TRY(thi_tri_solve(fit->problem.ctx, THI_T, e->L, D));
    THI_TRY(thi_tri_solve(fit->problem.ctx, THI_N, e->L, D));
    transpose(D);
    THI_TRY(thi_tri_solve(fit->problem.ctx, THI_T, e->L, D));
    THI_TRY(thi_tri_solve(fit->problem.ctx, THI_N, e->L, D));
out:
    return status;
}

/* fit->sums becomes what has q(w) = N(m, (root root')^-1) as its posterior: T = root root' - I, t = (I + T) m. */
static thiele_status adopt(thi_bfit *fit, thi_matrix S, const double *m)
{
    int64_t M = fit->M;
    thi_matrix T = fit->sums->T;
    thiele_status status = thi_chol_inverse(fit->problem.ctx, S);
    if (status != THIELE_OK) {
        return status;
    }
    thi_symmetrise(S);
    thi_blas_gemv(THI_N, 1.0, S, m, 0.0, fit->sums->t);
    for (int64_t j = 0; j < M; j++) {
        memcpy(T.data + j * M, S.data + j * M, (size_t)M * sizeof(double));
        T.data[j + j * M] -= 1.0;
    }
    return THIELE_OK;
}

/* trial = chol(S + rho D); false: not positive definite. */
static bool factor(thi_bfit *fit, double rho, thi_matrix D, thi_matrix trial)
{
    int64_t M = fit->M;
    for (int64_t i = 0; i < M * M; i++) {
        trial.data[i] = fit->engine->S.data[i] + rho * D.data[i];
    }
    bool proper = thi_chol(fit->problem.ctx, trial) == THIELE_OK;
    if (!proper) {
        thi_recover(fit->problem.ctx);
    }
    return proper;
}

thiele_status thi_bfit_gradient(thi_bfit *fit, double rho)
{
    int64_t M = fit->M;
    thi_sparse *e = fit->engine;
    thi_matrix D = {0}, trial = {0};
    double *x = NULL;
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&D, fit->problem.ctx, M, M));
    THI_TRY(thi_matrix_alloc(&trial, fit->problem.ctx, M, M));
    THI_TRY(thi_alloc(fit->problem.ctx, &x, (size_t)(2 * M), sizeof *x));
    double *y = x + M;
    THI_TRY(thi_sparse_set(e, fit->problem.ctx, fit->sums));
    thi_symmetrise(fit->step->T);
    rho = fmin(rho, 1.0 / norm(e, fit->step->T, x, y));
    THI_TRY(direction(fit, fit->sums->T, fit->step->T, D));
    int halvings = 0;
    while (!factor(fit, rho, D, trial) && halvings++ < HALVINGS) {
        rho *= 0.5;
    }
    if (halvings > HALVINGS) {
        goto out;
    }
    apply_step(fit->step->T, e->m, y);
    for (int64_t i = 0; i < M; i++) {
        y[i] = fit->step->t[i] - y[i];
    }
    apply_J(e, y);
    for (int64_t i = 0; i < M; i++) {
        x[i] = e->m[i] + rho * y[i];
    }
    THI_TRY(adopt(fit, trial, x));
    fit->sums->constant = fit->step->constant;
out:
    thi_free(D.data);
    thi_free(trial.data);
    thi_free(x);
    return status;
}
