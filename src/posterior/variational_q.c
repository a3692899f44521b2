/*
 * The numbers of q: as they are packed for an optimiser, and as matrices in w. A full S given in u becomes one in w by
 * two solves: m_w = L^-1 m, Ls_w = L^-1 Ls.
 */
#include "posterior/variational_internal.h"

#include <math.h>
#include <string.h>

/* Numbers of one member. */
static int64_t member_size(const thi_shape *shape)
{
    int64_t M = shape->inducing;
    return shape->diagonal ? 2 * M : M + M * (M + 1) / 2;
}

int64_t thi_variational_offset(const thi_shape *shape, int component, int latent)
{
    int64_t logits = shape->components > 1 ? shape->components : 0;
    return logits + ((int64_t)component * shape->latents + latent) * member_size(shape);
}

int64_t thi_variational_size(const thi_shape *shape)
{
    return thi_variational_offset(shape, shape->components, 0);
}

void thi_q_take_weights(thi_variational *v, const double *q)
{
    int K = v->shape.components;
    double largest = 0.0, sum = 0.0;
    for (int k = 0; K > 1 && k < K; k++) {
        largest = k == 0 || q[k] > largest ? q[k] : largest;
    }
    for (int k = 0; k < K; k++) {
        v->weight[k] = K > 1 ? exp(q[k] - largest) : 1.0;
        sum += v->weight[k];
    }
    for (int k = 0; k < K; k++) {
        v->weight[k] /= sum;
    }
}

/* The lower triangle by columns, its diagonal by logs. */
static void unpack(int64_t M, const double *packed, thi_matrix Ls)
{
    for (int64_t j = 0; j < M; j++) {
        memcpy(Ls.data + j + j * Ls.ld, packed, (size_t)(M - j) * sizeof(double));
        Ls.data[j + j * Ls.ld] = exp(packed[0]);
        packed += M - j;
    }
}

thiele_status thi_q_take(thi_variational *v, thiele_context *ctx, const double *q)
{
    int64_t M = v->shape.inducing;
    thi_q_take_weights(v, q);
    thiele_status status = THIELE_OK;
    for (int i = 0; i < v->members && status == THIELE_OK; i++) {
        thi_member *member = &v->member[i];
        const thi_group *group = &v->group[member->group];
        const double *own = q + thi_variational_offset(&v->shape, member->component, member->latent);
        memcpy(member->m, own, (size_t)M * sizeof(double));
        for (int64_t r = 0; v->shape.diagonal && r < M; r++) {
            member->s[r] = exp(2.0 * own[M + r]);
        }
        if (thi_is_full(v)) {
            unpack(M, own + M, member->Ls);
        }
        if (thi_is_full(v) && !v->shape.whitened) {
            thi_blas_trsv(THI_N, group->L, member->m);
            status = thi_tri_solve(ctx, THI_N, group->L, member->Ls);
        }
    }
    return status;
}

/* Columns of a band of Lsbar into packed numbers. */
typedef struct give_task {
    const thi_variational *v;
    const thi_member *member;
    thi_matrix Lsbar;
    double *packed;
} give_task;

static thiele_status give_band(void *arg, int64_t band, int thread)
{
    (void)thread;
    const give_task *t = arg;
    int64_t M = t->Lsbar.rows, end = thi_band_end(band, M);
    thi_matrix L = t->v->group[t->member->group].L;
    for (int64_t j = band * THI_BAND; j < end; j++) {
        const double *from = t->Lsbar.data + j + j * M;
        double *to = t->packed + j * M - j * (j - 1) / 2;
        /* A log: times the entry of the factor, L Ls in u. */
        to[0] += from[0] * t->member->Ls.data[j + j * M] * (t->v->shape.whitened ? 1.0 : L.data[j + j * M]);
        for (int64_t r = 1; r < M - j; r++) {
            to[r] += from[r];
        }
    }
    return THIELE_OK;
}

thiele_status thi_q_give(const thi_variational *v, thiele_context *ctx, const thi_member *member, thi_matrix Lsbar,
                         double *q_bar)
{
    int64_t M = v->shape.inducing;
    double *to = q_bar + thi_variational_offset(&v->shape, member->component, member->latent);
    thi_blas_axpy(M, 1.0, member->mbar, to);
    for (int64_t r = 0; v->shape.diagonal && r < M; r++) {
        to[M + r] += 2.0 * member->s[r] * member->sbar[r];
    }
    give_task t = {v, member, Lsbar, to + M};
    return thi_is_full(v) ? thi_parallel_work(ctx, thi_bands(M), 8.0 * (double)M * (double)M, give_band, &t)
                          : THIELE_OK;
}

void thi_q_give_weights(const thi_variational *v, double *q_bar)
{
    int K = v->shape.components;
    double sum = 0.0;
    for (int k = 0; k < K; k++) {
        sum += v->weight_bar[k];
    }
    for (int k = 0; K > 1 && k < K; k++) {
        q_bar[k] += v->weight_bar[k] - v->weight[k] * sum;
    }
}
