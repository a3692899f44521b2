/*
 * Modes of a posterior, for the components of a mixture to begin at: where natural steps of one Gaussian lead from the
 * optimum that was found, with the signs of its functions turned around (a likelihood that sees f^2 cannot tell f from
 * -f), and from draws of the prior and their mirror images. They end when several starts have brought nothing new. Of a
 * posterior with one mode that takes some dozen passes.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

enum {
    STARTS = 6,  /* draws of the prior and their mirror images, at most */
    IN_VAIN = 2, /* as many that bring nothing new are the last */
    STEPS = 40
};
/* Modes are told apart from this on: (m - m')'S^-1 (m - m')/8, which is Bhattacharyya's distance for equal S. */
static const double APART = 0.5;

void thi_modes_close(thi_modes *modes)
{
    thi_free(modes->q);
    thi_free(modes->bound);
}

/* |Ls^-1 (m - other)|^2 of one member, Ls packed by columns with the logs of its diagonal. d: room for M. */
static double square_distance(int64_t M, const double *own, const double *other, double *d)
{
    const double *column = own + M;
    double sum = 0.0;
    for (int64_t i = 0; i < M; i++) {
        d[i] = own[i] - other[i];
    }
    for (int64_t j = 0; j < M; j++) {
        double at = d[j] * exp(-column[0]);
        sum += at * at;
        for (int64_t i = 1; i < M - j; i++) {
            d[j + i] -= at * column[i];
        }
        column += M - j;
    }
    return sum;
}

static double distance(const thi_vfit *one, const double *a, const double *b, double *room)
{
    double sum = 0.0;
    for (int j = 0; j < one->shape.latents; j++) {
        int64_t at = thi_variational_offset(&one->shape, 0, j);
        sum += square_distance(one->shape.inducing, a + at, b + at, room);
    }
    return sum / 8.0;
}

/* The present q, unless it is there already; of more than there is room for, the worst goes. */
static thiele_status add(thi_vfit *one, thi_modes *modes, int most, double *room, bool *is_new)
{
    int64_t size = thi_variational_size(&one->shape);
    double bound = one->pass.at.bound;
    int at = modes->count;
    thiele_status status;
    *is_new = false;
    THI_TRY(thi_white_take(one));
    for (int k = 0; k < modes->count; k++) {
        if (distance(one, modes->q + k * size, one->whitened.q, room) < APART) {
            return THIELE_OK;
        }
    }
    while (at > 0 && modes->bound[at - 1] < bound) {
        at--;
    }
    if (at == most) {
        return THIELE_OK;
    }
    modes->count += modes->count < most;
    for (int k = modes->count - 1; k > at; k--) {
        modes->bound[k] = modes->bound[k - 1];
        memcpy(modes->q + k * size, modes->q + (k - 1) * size, (size_t)size * sizeof(double));
    }
    modes->bound[at] = bound;
    memcpy(modes->q + at * size, one->whitened.q, (size_t)size * sizeof(double));
    *is_new = true;
out:
    return status;
}

thiele_status thi_modes_lead(thi_vfit *one, double bound, thi_modes *modes)
{
    int64_t size = thi_variational_size(&one->shape);
    double *room = NULL, nearest = INFINITY;
    int at = 0;
    thiele_status status;
    THI_TRY(thi_alloc(one->problem.ctx, &room, (size_t)one->shape.inducing, sizeof *room));
    THI_TRY(thi_white_take(one));
    for (int k = 0; k < modes->count; k++) {
        double apart = distance(one, modes->q + k * size, one->whitened.q, room);
        at = apart < nearest ? k : at;
        nearest = fmin(nearest, apart);
    }
    memmove(modes->q + size, modes->q, (size_t)(at * size) * sizeof(double));
    memmove(modes->bound + 1, modes->bound, (size_t)at * sizeof(double));
    memcpy(modes->q, one->whitened.q, (size_t)size * sizeof(double));
    modes->bound[0] = bound;
    modes->count = modes->count > 0 ? modes->count : 1;
out:
    thi_free(room);
    return status;
}

void thi_modes_draw(thi_vfit *one, int start)
{
    int64_t M = one->shape.inducing;
    thi_sites_clear(one);
    for (int j = 0; j < one->shape.latents; j++) {
        thi_stream stream = {one->problem.ctx->seed, THI_RANDOM_START,
                             (UINT64_C(1) << 33) + (uint64_t)(start * one->shape.latents + j)};
        for (int64_t i = 0; i < M; i++) {
            one->sites[j].sum.t[i] = thi_random_normal(stream, (uint64_t)i);
        }
    }
}

/* The means change their signs, the covariances stay. */
static void mirror(thi_vfit *one)
{
    for (int j = 0; j < one->shape.latents; j++) {
        for (int64_t i = 0; i < one->shape.inducing; i++) {
            one->sites[j].sum.t[i] = -one->sites[j].sum.t[i];
        }
    }
}

/* Natural steps from the present sites to a mode, which is added. A start that leads nowhere is none. */
static thiele_status climb(thi_vfit *one, thi_modes *modes, int most, const thi_sites_work *work, double *room,
                           bool *is_new)
{
    double tolerance = 0.1 * fmax(1e-3, one->tolerance * (double)one->problem.source->n);
    *is_new = false;
    thiele_status status = thi_sites_converge(one, &thi_all_rows, work, tolerance, STEPS);
    if (status == THIELE_OK) {
        status = thi_vfit_evaluate(one, &thi_all_rows, (thi_wanted){0});
    }
    if (status == THIELE_OK) {
        status = add(one, modes, most, room, is_new);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(one->problem.ctx);
        status = THIELE_OK;
    }
    return status;
}

thiele_status thi_modes_find(thi_vfit *one, int most, thi_modes *modes)
{
    thiele_context *ctx = one->problem.ctx;
    size_t size = (size_t)thi_variational_size(&one->shape);
    thi_sites_work work = {0};
    double *room = NULL;
    bool found, mirrored;
    thiele_status status;
    *modes = (thi_modes){0};
    THI_TRY(thi_alloc(ctx, &modes->q, (size_t)most * size, sizeof *modes->q));
    THI_TRY(thi_alloc(ctx, &modes->bound, (size_t)most, sizeof *modes->bound));
    THI_TRY(thi_alloc(ctx, &room, (size_t)one->shape.inducing, sizeof *room));
    THI_TRY(thi_sites_work_open(&work, one));
    one->white = true;
    if (most == 1 && !one->settings->even) {
        THI_TRY(add(one, modes, most, room, &found));
        goto out;
    }
    for (int start = -1, in_vain = 0; start < STARTS && in_vain < IN_VAIN; start++) {
        if (start >= 0) {
            thi_modes_draw(one, start);
        }
        THI_TRY(climb(one, modes, most, &work, room, &found));
        if (one->conjugate || thi_vfit_stopped(one)) {
            break;
        }
        one->pass.may_stop = true; /* there is one to begin at */
        mirror(one);
        THI_TRY(climb(one, modes, most, &work, room, &mirrored));
        in_vain = start < 0 || found || mirrored ? 0 : in_vain + 1;
    }
out:
    one->pass.may_stop = false;
    thi_free(room);
    thi_sites_work_close(&work);
    return status;
}
