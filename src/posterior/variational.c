/*
 * Opening and closing a variational posterior, and the factors of Kzz that an evaluation begins with. Memory: for a
 * full family 2 M^2 a member and 2 M^2 a group (3 each when quick), (members + groups + 1) capacity M for the rows.
 */
#include "posterior/variational_internal.h"

#include <string.h>

/* Rows and columns of M x M, of rows x M, and vectors are taken from here; the first failure stops all further ones. */
typedef struct supply {
    thiele_context *ctx;
    thiele_status status;
} supply;

static void take_matrix(supply *from, thi_matrix *out, int64_t rows, int64_t cols)
{
    if (from->status == THIELE_OK) {
        from->status = thi_matrix_alloc(out, from->ctx, rows, cols);
    }
}

static void take_array(supply *from, void *out, int64_t count, size_t size)
{
    if (from->status == THIELE_OK) {
        from->status = thi_alloc(from->ctx, out, (size_t)count, size);
    }
}

/* A leading dimension that is an odd number of cache lines: columns then do not fall on the same places of a cache. */
static int64_t padded(int64_t rows)
{
    return ((rows + 7) / 8 | 1) * 8;
}

static void open_groups(thi_variational *v, supply *from)
{
    int64_t M = v->shape.inducing, rows = padded(v->shape.capacity);
    for (int g = 0; g < v->groups && from->status == THIELE_OK; g++) {
        thi_group *group = &v->group[g];
        take_matrix(from, &group->L, M, M);
        take_matrix(from, &group->P, M, M);
        take_matrix(from, &group->V, rows, M);
        take_array(from, &group->k, 6 * rows, sizeof(double));
        if (thi_is_plain_diagonal(v) || v->shape.quick) {
            take_matrix(from, &group->N, M, M);
        }
        if (thi_is_plain_diagonal(v)) {
            take_matrix(from, &group->A, rows, M);
            take_array(from, &group->inverse_diagonal, M, sizeof(double));
        }
        if (v->shape.diagonal) {
            take_matrix(from, &group->bar, rows, M);
        }
        if (from->status == THIELE_OK) {
            group->norm = group->k + rows;
            group->offset = group->norm + rows;
            group->g = group->offset + rows;
            group->h = group->g + rows;
            group->c = group->h + rows;
        }
    }
}

/* Vectors of a member; the first of them are the sums. */
enum { SUMS = 2, VECTORS = 7 };

static void open_members(thi_variational *v, supply *from)
{
    int64_t M = v->shape.inducing, rows = padded(v->shape.capacity);
    for (int i = 0; i < v->members && from->status == THIELE_OK; i++) {
        thi_member *member = &v->member[i];
        member->component = i / v->shape.latents;
        member->latent = i % v->shape.latents;
        member->group = v->group_of[member->latent];
        double **vector[] = {&member->g_sum, &member->h_sum, &member->m, &member->s,
                             &member->mbar,  &member->sbar,  &member->a};
        for (int k = 0; k < VECTORS; k++) {
            int64_t place = k < SUMS ? SUMS * i + k : SUMS * v->members + (VECTORS - SUMS) * i + k - SUMS;
            *vector[k] = v->vectors + place * M;
        }
        if (thi_is_full(v)) {
            take_matrix(from, &member->Ls, M, M);
            take_matrix(from, &member->T, M, M);
            take_matrix(from, &member->W, rows, M);
        }
        if (v->shape.quick) {
            take_matrix(from, &member->D, M, M);
        }
        if (thi_is_full(v) && v->shape.components > 1) {
            take_matrix(from, &member->G, M, M);
        }
        thi_group *group = &v->group[member->group];
        group->latents += member->component == 0;
        if (group->first == NULL) {
            group->first = member;
        }
    }
    for (int g = 0; g < v->groups && thi_is_full(v) && from->status == THIELE_OK; g++) {
        v->group[g].bar = v->group[g].first->W;
    }
}

static void open_shared(thi_variational *v, supply *from)
{
    int64_t M = v->shape.inducing, rows = padded(v->shape.capacity), K = v->shape.components;
    int64_t blocks = (v->shape.capacity + THI_ROWS - 1) / THI_ROWS;
    v->sums_size = SUMS * v->members * M;
    take_array(from, &v->weight, 4 * K + K * K, sizeof(double));
    take_array(from, &v->vectors, VECTORS * v->members * M, sizeof(double));
    take_array(from, &v->part, blocks * v->sums_size, sizeof(double));
    take_matrix(from, &v->scaled, rows, M);
    take_matrix(from, &v->work[0], M, M);
    take_matrix(from, &v->work[1], M, M);
    if (from->status == THIELE_OK) {
        v->weight_bar = v->weight + K;
        v->density = v->weight_bar + K;
        v->self = v->density + K;
        v->pair = v->self + K;
        v->sums = v->vectors;
    }
}

thiele_status thi_variational_open(thi_variational **out, thiele_context *ctx, const thi_shape *shape)
{
    *out = NULL;
    thi_variational *v;
    supply from = {ctx, THIELE_OK};
    take_array(&from, &v, 1, sizeof *v);
    if (from.status != THIELE_OK) {
        return from.status;
    }
    v->shape = *shape;
    v->shape.quick = shape->quick && !shape->diagonal && !shape->spares;
    v->members = shape->components * shape->latents;
    take_array(&from, &v->group_of, shape->latents, sizeof *v->group_of);
    for (int j = 0; j < shape->latents && from.status == THIELE_OK; j++) {
        v->group_of[j] = shape->group != NULL ? shape->group[j] : j;
        v->groups = v->group_of[j] + 1;
    }
    v->shape.group = v->group_of;
    take_array(&from, &v->group, v->groups, sizeof *v->group);
    take_array(&from, &v->member, v->members, sizeof *v->member);
    open_shared(v, &from);
    open_groups(v, &from);
    open_members(v, &from);
    if (from.status != THIELE_OK) {
        thi_variational_close(v);
        return from.status;
    }
    *out = v;
    return THIELE_OK;
}

static void close_group(thi_group *group)
{
    thi_inputs_clear(&group->z);
    thi_inputs_clear(&group->x);
    thi_free(group->L.data);
    thi_free(group->N.data);
    thi_free(group->inverse_diagonal);
    thi_free(group->V.data);
    thi_free(group->A.data);
    thi_free(group->P.data);
    thi_free(group->k);
    thi_free(group->theta_bar);
}

void thi_variational_close(thi_variational *v)
{
    if (v == NULL) {
        return;
    }
    for (int g = 0; g < v->groups && v->group != NULL; g++) {
        close_group(&v->group[g]);
        if (v->shape.diagonal) {
            thi_free(v->group[g].bar.data);
        }
    }
    for (int i = 0; i < v->members && v->member != NULL; i++) {
        thi_free(v->member[i].Ls.data);
        thi_free(v->member[i].T.data);
        thi_free(v->member[i].W.data);
        thi_free(v->member[i].D.data);
        thi_free(v->member[i].G.data);
    }
    thi_free(v->group_of);
    thi_free(v->group);
    thi_free(v->member);
    thi_free(v->weight);
    thi_free(v->vectors);
    thi_free(v->part);
    thi_free(v->scaled.data);
    thi_free(v->work[0].data);
    thi_free(v->work[1].data);
    thi_free(v);
}

int thi_variational_groups(const thi_variational *v)
{
    return v->groups;
}

const double *thi_variational_weights(const thi_variational *v)
{
    return v->weight;
}

double thi_variational_jitter(const thi_variational *v)
{
    double largest = 0.0;
    for (int g = 0; g < v->groups; g++) {
        largest = v->group[g].jitter > largest ? v->group[g].jitter : largest;
    }
    return largest;
}

void thi_variational_narrow(thi_variational *v, bool narrow)
{
    v->narrow = narrow;
}

void thi_variational_residual(const thi_variational *v, double *r)
{
    int Q = v->shape.latents;
    for (int j = 0; j < Q; j++) {
        const thi_group *group = &v->group[v->group_of[j]];
        for (int64_t i = 0; i < v->rows; i++) {
            double left = group->k[i] - group->norm[i];
            r[j + i * Q] = left > 0.0 ? left : 0.0;
        }
    }
}

void thi_variational_relieve(thi_variational *v, const double *c)
{
    v->c = c;
}

/* Kzz could not be factored even with jitter: adds what usually makes it so. */
static thiele_status explain(thiele_context *ctx)
{
    char reason[THI_MESSAGE_MAX];
    memcpy(reason, ctx->message, sizeof reason);
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "the kernel matrix of the inducing inputs could not be factored (%.300s): the usual causes are a "
                    "length-scale far beyond the range of the data, or a variance that is not finite",
                    reason);
}

thiele_status thi_group_invert(thiele_context *ctx, thi_group *group)
{
    int64_t M = group->L.rows;
    for (int64_t j = 0; j < M; j++) {
        memcpy(group->N.data + j + j * M, group->L.data + j + j * M, (size_t)(M - j) * sizeof(double));
    }
    thiele_status status = thi_tri_inverse(ctx, group->N);
    for (int64_t j = 0; j < M; j++) {
        memset(group->N.data + j * M, 0, (size_t)j * sizeof(double));
    }
    return status;
}

/* L^-1 and the diagonal of Kzz^-1 = L^-T L^-1. */
static thiele_status invert(thiele_context *ctx, thi_group *group)
{
    thiele_status status = thi_group_invert(ctx, group);
    int64_t M = group->L.rows;
    for (int64_t j = 0; j < M; j++) {
        const double *column = group->N.data + j * M;
        group->inverse_diagonal[j] = thi_blas_dot(M - j, column + j, column + j);
    }
    return status;
}

static thiele_status factor(thi_variational *v, thiele_context *ctx, thi_group *group)
{
    const thiele_kernel *kernel = group->prior.kernel;
    thi_inputs_clear(&group->z);
    thiele_status status = thi_inputs_make(&group->z, ctx, kernel, v->shape.inducing, group->Z);
    if (status == THIELE_OK) {
        status = thi_kernel_fill(kernel, ctx, &group->z, &group->z, group->L, true);
    }
    if (status != THIELE_OK) {
        return status;
    }
    status = thi_chol_jitter(ctx, group->L, &group->jitter);
    if (status == THIELE_ERROR_NUMERIC) {
        return explain(ctx);
    }
    return status == THIELE_OK && thi_is_plain_diagonal(v) ? invert(ctx, group) : status;
}

/* Room for the gradients of a group's kernel, mean and Z: how many there are is known with the prior only. */
static thiele_status make_bars(thi_variational *v, thiele_context *ctx, thi_group *group)
{
    int D = v->shape.dims;
    int64_t theta = thiele_kernel_parameters(group->prior.kernel), mean = thi_mean_parameters(group->prior.mean, D);
    int64_t size = theta + mean + D * v->shape.inducing;
    thi_free(group->theta_bar);
    thiele_status status = thi_alloc(ctx, &group->theta_bar, (size_t)size, sizeof(double));
    if (status == THIELE_OK) {
        group->mean_bar = group->theta_bar + theta;
        group->Z_bar = group->mean_bar + mean;
    }
    return status;
}

thiele_status thi_variational_begin(thi_variational *v, thiele_context *ctx, const thi_prior *prior,
                                    const double *const *Z, const double *q, thi_sites *sites, bool fresh)
{
    bool again = fresh || !v->factored;
    thiele_status status = THIELE_OK;
    v->factored = false;
    v->sites = q == NULL ? sites : NULL;
    v->rows = 0;
    v->pulled = v->relieved = false;
    v->c = NULL;
    for (int g = 0; g < v->groups; g++) {
        thi_group *group = &v->group[g];
        group->prior = prior[g];
        group->Z = group->z.X = Z[g];
        THI_TRY(make_bars(v, ctx, group));
        if (again) {
            THI_TRY(factor(v, ctx, group));
        }
    }
    v->factored = true;
    memset(v->sums, 0, (size_t)v->sums_size * sizeof(double));
    THI_TRY(q != NULL ? thi_q_take(v, ctx, q) : thi_sites_take(v, ctx, sites));
    THI_TRY(thi_quick_begin(v, ctx, again));
out:
    return status;
}
