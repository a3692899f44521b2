/*
 * Anderson's acceleration. The least squares are solved by normal equations with a small ridge: at most ten unknowns,
 * and a combination that leans on the last digits would be no good anyway.
 */
#include "optim/anderson.h"

#include <math.h>
#include <string.h>

enum { MEMORY = THI_ANDERSON_MEMORY };
static const double RIDGE = 1e-10;

thiele_status thi_anderson_open(thi_anderson *anderson, thiele_context *ctx, int64_t n, int64_t measures)
{
    *anderson = (thi_anderson){.n = n, .measures = measures};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &anderson->x, (size_t)n, sizeof *anderson->x));
    THI_TRY(thi_alloc(ctx, &anderson->f, (size_t)n, sizeof *anderson->f));
    THI_TRY(thi_alloc(ctx, &anderson->measure, (size_t)measures, sizeof *anderson->measure));
    THI_TRY(thi_alloc(ctx, &anderson->dx, (size_t)n * MEMORY, sizeof *anderson->dx));
    THI_TRY(thi_alloc(ctx, &anderson->df, (size_t)n * MEMORY, sizeof *anderson->df));
    THI_TRY(thi_alloc(ctx, &anderson->dmeasure, (size_t)measures * MEMORY, sizeof *anderson->dmeasure));
out:
    if (status != THIELE_OK) {
        thi_anderson_close(anderson);
    }
    return status;
}

void thi_anderson_close(thi_anderson *anderson)
{
    thi_free(anderson->x);
    thi_free(anderson->f);
    thi_free(anderson->measure);
    thi_free(anderson->dx);
    thi_free(anderson->df);
    thi_free(anderson->dmeasure);
    *anderson = (thi_anderson){0};
}

void thi_anderson_reset(thi_anderson *anderson)
{
    anderson->held = anderson->newest = 0;
    anderson->begun = false;
}

/* difference = now - last, last = now */
static void difference(int64_t n, const double *now, double *last, double *difference)
{
    for (int64_t i = 0; i < n; i++) {
        difference[i] = now[i] - last[i];
        last[i] = now[i];
    }
}

void thi_anderson_add(thi_anderson *a, const double *x, const double *f, const double *measure)
{
    int slot = (a->newest + 1) % MEMORY;
    difference(a->n, x, a->x, a->dx + slot * a->n);
    difference(a->n, f, a->f, a->df + slot * a->n);
    difference(a->measures, measure, a->measure, a->dmeasure + slot * a->measures);
    if (a->begun) {
        a->newest = slot;
        a->held += a->held < MEMORY;
    }
    a->begun = true;
}

/* Solves A x = b in place for a symmetric positive definite A (m x m); false when a pivot is not positive. */
static bool solve(int m, double A[MEMORY][MEMORY], double *b)
{
    for (int j = 0; j < m; j++) {
        if (!(A[j][j] > 0.0)) {
            return false;
        }
        for (int i = j + 1; i < m; i++) {
            double ratio = A[i][j] / A[j][j];
            for (int k = j; k < m; k++) {
                A[i][k] -= ratio * A[j][k];
            }
            b[i] -= ratio * b[j];
        }
    }
    for (int j = m - 1; j >= 0; j--) {
        for (int k = j + 1; k < m; k++) {
            b[j] -= A[j][k] * b[k];
        }
        b[j] /= A[j][j];
    }
    return true;
}

bool thi_anderson_next(const thi_anderson *a, double rho, double *next)
{
    double A[MEMORY][MEMORY], gamma[MEMORY];
    for (int i = 0; i < a->held; i++) {
        const double *di = a->dmeasure + (a->newest - i + MEMORY) % MEMORY * a->measures;
        gamma[i] = thi_blas_dot(a->measures, di, a->measure);
        for (int j = 0; j <= i; j++) {
            const double *dj = a->dmeasure + (a->newest - j + MEMORY) % MEMORY * a->measures;
            A[i][j] = A[j][i] = thi_blas_dot(a->measures, di, dj);
        }
        A[i][i] *= 1.0 + RIDGE;
    }
    if (a->held == 0 || !solve(a->held, A, gamma)) {
        return false;
    }
    for (int64_t k = 0; k < a->n; k++) {
        next[k] = a->x[k] + rho * a->f[k];
    }
    for (int i = 0; i < a->held; i++) {
        int64_t at = (a->newest - i + MEMORY) % MEMORY * a->n;
        thi_blas_axpy(a->n, -gamma[i], a->dx + at, next);
        thi_blas_axpy(a->n, -gamma[i] * rho, a->df + at, next);
    }
    return true;
}
