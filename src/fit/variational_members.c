/*
 * Natural steps of any family of q in its own numbers, over all rows at fixed kernels and Z: every component of a
 * mixture, full or diagonal, is a Gaussian whose natural parameters move by the gradient of the bound in its
 * expectation parameters over its weight, which is the natural gradient of the joint law of component and w (Lin, Khan
 * and Schmidt 2019). With c = rho / pi_k, mbar and Sbar gradients in mean and covariance: S^-1 <- S^-1 - 2 c Sbar m <-
 * m + c S mbar (the new S)        logit_k <- logit_k + rho dF/dpi_k For one component, and wherever components lie far
 * apart, rho = 1 is the step of sites of math.md section 3, and the weights become proportional to exp(bound of each
 * component). From the gradient Lsbar in the factor of S = Ls Ls': with Psi the symmetric matrix whose lower triangle
 * is that of Ls'Lsbar, 2 Sbar = Ls^-T Psi Ls^-1, so that S_new = Ls (I - c Psi)^-1 Ls' Of a diagonal one, in the logs
 * of deviations: s_new = s / (1 - c bar). 10/3 M^3 flops a full member.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

/* A bound that falls by less than this share of itself has not fallen: expectations are rounded too. */
static const double ROUNDING = 1e-10;
/* Steps below this are not worth a pass. */
static const double SMALLEST_STEP = 1.0 / 1024.0;
/* Components of less weight stay where they are: nothing is known of their slope. */
static const double LEAST_WEIGHT = 1e-200;

thiele_status thi_members_open(thi_members *work, const thi_vfit *fit)
{
    thiele_context *ctx = fit->problem.ctx;
    size_t size = (size_t)thi_variational_size(&fit->shape);
    int64_t M = fit->shape.diagonal ? 0 : fit->shape.inducing;
    *work = (thi_members){0};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &work->from, size, sizeof *work->from));
    THI_TRY(thi_alloc(ctx, &work->slope, size, sizeof *work->slope));
    THI_TRY(thi_alloc(ctx, &work->weight, (size_t)fit->shape.components, sizeof *work->weight));
    for (int i = 0; i < 2 && M > 0; i++) {
        THI_TRY(thi_matrix_alloc(&work->square[i], ctx, M, M));
    }
out:
    return status;
}

void thi_members_close(thi_members *work)
{
    thi_free(work->from);
    thi_free(work->slope);
    thi_free(work->weight);
    thi_free(work->square[0].data);
    thi_free(work->square[1].data);
}

/* --- a step of one member ----------------------------------------------------------------------------------------- */

static void step_diagonal(int64_t M, double c, const double *from, const double *slope, double *to, bool *proper)
{
    for (int64_t i = 0; i < M; i++) {
        double shrink = 1.0 - c * slope[M + i];
        *proper = *proper && shrink > 0.0;
        to[M + i] = from[M + i] - 0.5 * log(shrink);
        to[i] = from[i] + c * exp(2.0 * to[M + i]) * slope[i];
    }
}

/* The packed factor, and its gradient where slope is not NULL (else bar is not touched). */
static void unpack(int64_t M, const double *packed, const double *slope, thi_matrix Ls, thi_matrix bar)
{
    for (int64_t j = 0; j < M; j++) {
        int64_t at = j + j * M;
        memset(Ls.data + j * M, 0, (size_t)j * sizeof(double));
        memcpy(Ls.data + at, packed, (size_t)(M - j) * sizeof(double));
        Ls.data[at] = exp(packed[0]);
        packed += M - j;
        if (slope != NULL) {
            memset(bar.data + j * M, 0, (size_t)j * sizeof(double));
            memcpy(bar.data + at, slope, (size_t)(M - j) * sizeof(double));
            bar.data[at] /= Ls.data[at];
            slope += M - j;
        }
    }
}

/* In place, the lower triangle of P: that of J (I - c Psi) J, J the reversal of rows and columns. */
static void reverse(thi_matrix P, double c)
{
    int64_t M = P.rows;
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = j; i < M; i++) {
            /* (i, j) and (M-1-j, M-1-i) change places. */
            int64_t here = i + j * M, there = M - 1 - j + (M - 1 - i) * M;
            double one = i == j ? 1.0 : 0.0;
            if (here <= there) {
                double swap = P.data[here];
                P.data[here] = one - c * P.data[there];
                P.data[there] = here == there ? P.data[here] : one - c * swap;
            }
        }
    }
}

/* In place: the lower triangle N becomes J N'J, zeros above. */
static void reverse_root(thi_matrix N)
{
    int64_t M = N.rows;
    for (int64_t j = 0; j < M; j++) {
        memset(N.data + j * M, 0, (size_t)j * sizeof(double));
        for (int64_t i = j; i < M; i++) {
            int64_t here = i + j * M, there = M - 1 - j + (M - 1 - i) * M;
            if (here < there) {
                double swap = N.data[here];
                N.data[here] = N.data[there];
                N.data[there] = swap;
            }
        }
    }
}

static thiele_status step_full(thi_members *work, thiele_context *ctx, double c, const double *from,
                               const double *slope, double *to, bool *proper)
{
    thi_matrix Ls = work->square[0], P = work->square[1];
    int64_t M = Ls.rows;
    thiele_status status;
    unpack(M, from + M, slope + M, Ls, P);
    THI_TRY(thi_tri_multiply(ctx, THI_T, Ls, P));
    reverse(P, c);
    status = thi_chol(ctx, P);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(ctx);
        *proper = false;
        return THIELE_OK;
    }
    THI_TRY(status);
    THI_TRY(thi_tri_inverse(ctx, P));
    reverse_root(P);
    THI_TRY(thi_tri_multiply(ctx, THI_N, Ls, P));
    thi_matrix move = thi_matrix_view(to, M, 1, M);
    memcpy(to, slope, (size_t)M * sizeof *to);
    thi_blas_trmm(THI_LEFT, THI_T, c, P, move);
    thi_blas_trmm(THI_LEFT, THI_N, 1.0, P, move);
    thi_blas_axpy(M, 1.0, from, to);
    to += M;
    for (int64_t j = 0; j < M; j++) {
        memcpy(to, P.data + j + j * M, (size_t)(M - j) * sizeof *to);
        to[0] = log(to[0]);
        to += M - j;
    }
out:
    return status;
}

/* --- steps of all ------------------------------------------------------------------------------------------------- */

/* x becomes what a step of size rho from work->from leads to; *proper: there is such a q. */
static thiele_status take_step(thi_vfit *fit, thi_members *work, double rho, bool *proper)
{
    const thi_shape *shape = &fit->shape;
    int64_t M = shape->inducing;
    double *x = fit->vector.x;
    thiele_status status = THIELE_OK;
    *proper = true;
    for (int k = 0; k < shape->components; k++) {
        double weight = work->weight[k];
        if (weight < LEAST_WEIGHT) {
            continue;
        }
        if (shape->components > 1) {
            x[k] = work->from[k] + rho * work->slope[k] / weight;
        }
        for (int j = 0; j < shape->latents && *proper; j++) {
            int64_t at = thi_variational_offset(shape, k, j);
            if (shape->diagonal) {
                step_diagonal(M, rho / weight, work->from + at, work->slope + at, x + at, proper);
                continue;
            }
            THI_TRY(step_full(work, fit->problem.ctx, rho / weight, work->from + at, work->slope + at, x + at, proper));
        }
    }
out:
    return status;
}

static const thi_wanted slope_of_q = {.q = true};

static bool was_stopped(const thi_vfit *fit)
{
    return fit->pass.may_stop && fit->problem.driver->stopped;
}

/* A step of size *rho at most from the point that was evaluated last; 0: none was good, and q is there again. */
static thiele_status step(thi_vfit *fit, thi_members *work, double *rho)
{
    double before = fit->pass.at.bound, least = before - ROUNDING * fabs(before);
    size_t size = (size_t)thi_variational_size(&fit->shape) * sizeof(double);
    thiele_status status = THIELE_OK;
    memcpy(work->from, fit->vector.x, size);
    memcpy(work->slope, fit->vector.bar, size);
    memcpy(work->weight, fit->pass.engine->weights(fit->pass.self),
           (size_t)fit->shape.components * sizeof *work->weight);
    for (; *rho >= SMALLEST_STEP; *rho *= 0.5) {
        bool proper;
        THI_TRY(take_step(fit, work, *rho, &proper));
        status = proper ? thi_vfit_evaluate(fit, &thi_all_rows, slope_of_q) : THIELE_OK;
        if (status == THIELE_OK && proper && fit->pass.at.bound >= least) {
            return THIELE_OK;
        }
        if (status == THIELE_ERROR_NUMERIC && !was_stopped(fit)) {
            thi_recover(fit->problem.ctx);
            status = THIELE_OK;
        }
        if (status != THIELE_OK) {
            break;
        }
    }
    status = was_stopped(fit) && status == THIELE_ERROR_NUMERIC ? THIELE_OK : status;
out:
    *rho = 0.0;
    memcpy(fit->vector.x, work->from, size);
    fit->pass.at.bound = before;
    return status;
}

thiele_status thi_members_converge(thi_vfit *fit, thi_members *work, double tolerance, int steps)
{
    double rho = 1.0;
    thiele_status status;
    THI_TRY(thi_vfit_evaluate(fit, &thi_all_rows, slope_of_q));
    for (int taken = 0; taken < steps; taken++) {
        double before = fit->pass.at.bound, tried = rho;
        THI_TRY(step(fit, work, &rho));
        if (rho == 0.0 || fabs(fit->pass.at.bound - before) < tolerance * rho ||
            (fit->pass.may_stop && thi_vfit_stopped(fit))) {
            break;
        }
        rho = rho < tried ? rho : fmin(1.0, 2.0 * rho);
    }
out:
    return status;
}
