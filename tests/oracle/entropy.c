/*
 * entropy_pairwise_*: both lower bounds on the entropy of a mixture of full Gaussians. The library's KL(q || p) without
 * rows has the bound and the cross term; in w the latter is -sum_k pi_k (|m_k|^2 + tr S_k + M log 2 pi)/2 whatever the
 * kernel is. One component is given as two equal halves: by itself it would be exact whichever bound is asked for.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "oracle.h"
#include "posterior/variational.h"

typedef struct entropy_case {
    thi_shape shape;
    int given;                 /* components in the file: K, or one where K = 2 */
    thi_matrix weights, means; /* given x 1, M x given */
    thi_matrix *S;             /* `given` of M x M */
    double *q, *Z;             /* D = 1 */
    thiele_kernel *kernel;
} entropy_case;

static double cross_term(const entropy_case *e)
{
    static const double LOG_2PI = 1.837877066409345483561;
    int64_t M = e->shape.inducing;
    double sum = 0.0;
    for (int k = 0; k < e->given; k++) {
        const double *m = e->means.data + k * M;
        double own = (double)M * LOG_2PI;
        for (int64_t i = 0; i < M; i++) {
            own += m[i] * m[i] + e->S[k].data[i + i * M];
        }
        sum -= 0.5 * e->weights.data[k] * own;
    }
    return sum;
}

/* Mean and the factor of S, with the logs of its diagonal, as component `to_k`. */
static thiele_status pack(oracle_case *c, entropy_case *e, int k, int to_k)
{
    int64_t M = e->shape.inducing;
    thi_matrix L = {0};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&L, c->ctx, M, M));
    memcpy(L.data, e->S[k].data, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_chol(c->ctx, L));
    double *to = e->q + thi_variational_offset(&e->shape, to_k, 0);
    memcpy(to, e->means.data + k * M, (size_t)M * sizeof(double));
    to += M;
    for (int64_t j = 0; j < M; j++) {
        memcpy(to, L.data + j + j * M, (size_t)(M - j) * sizeof(double));
        to[0] = log(to[0]);
        to += M - j;
    }
out:
    thi_free(L.data);
    return status;
}

static thiele_status read_components(oracle_case *c, entropy_case *e)
{
    int64_t M = e->shape.inducing;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_alloc(c->ctx, &e->S, (size_t)e->given, sizeof *e->S));
    THI_TRY(thi_alloc(c->ctx, &e->q, (size_t)thi_variational_size(&e->shape), sizeof *e->q));
    THI_TRY(thi_alloc(c->ctx, &e->Z, (size_t)M, sizeof *e->Z));
    for (int64_t i = 0; i < M; i++) {
        e->Z[i] = (double)i;
    }
    for (int k = 0; k < e->given; k++) {
        char name[24];
        snprintf(name, sizeof name, "covariances[%d]", k);
        json_object_set(c->inputs, name, json_array_get(json_object_get(c->inputs, "covariances"), (size_t)k));
        THI_TRY(oracle_read(c, c->inputs, name, ORACLE_MATRIX, &e->S[k]));
        THI_TRY(oracle_expect_shape(c, name, e->S[k], M, M));
        e->q[k] = log(e->weights.data[k]);
    }
    for (int k = 0; k < e->shape.components; k++) {
        THI_TRY(pack(c, e, k < e->given ? k : 0, k));
    }
out:
    return status;
}

static thiele_status check_bound(oracle_case *c, entropy_case *e, bool jensen, const char *field)
{
    thi_variational *v = NULL;
    thi_prior prior = {e->kernel, THI_MEAN_ZERO, NULL};
    const double *Z = e->Z;
    double kl;
    thiele_status status;
    e->shape.jensen = jensen;
    THI_TRY(thi_variational_open(&v, c->ctx, &e->shape));
    THI_TRY(thi_variational_begin(v, c->ctx, &prior, &Z, e->q, NULL, true));
    THI_TRY(thi_variational_end(v, c->ctx, NULL, &kl, NULL));
    THI_TRY(oracle_check_number(c, field, -kl - cross_term(e)));
out:
    thi_variational_close(v);
    return status;
}

thiele_status oracle_entropy(oracle_case *c)
{
    entropy_case e = {0};
    thiele_status status;
    THI_TRY(oracle_read(c, c->inputs, "weights", ORACLE_VECTOR, &e.weights));
    THI_TRY(oracle_read(c, c->inputs, "means", ORACLE_ROWS, &e.means));
    e.given = (int)e.weights.rows;
    e.shape = (thi_shape){.latents = 1,
                          .components = e.given > 1 ? e.given : 2,
                          .dims = 1,
                          .inducing = e.means.rows,
                          .capacity = 1,
                          .whitened = true};
    THI_TRY(oracle_expect_shape(c, "means", e.means, e.means.rows, e.weights.rows));
    THI_TRY(thiele_kernel_parse(&e.kernel, c->ctx, "se", 1, NULL));
    THI_TRY(read_components(c, &e));
    THI_TRY(check_bound(c, &e, false, "pairwise"));
    THI_TRY(check_bound(c, &e, true, "jensen"));
out:
    for (int k = 0; e.S != NULL && k < e.given; k++) {
        thi_free(e.S[k].data);
    }
    thi_free(e.S);
    thi_free(e.weights.data);
    thi_free(e.means.data);
    thi_free(e.q);
    thi_free(e.Z);
    thiele_kernel_destroy(e.kernel);
    return status;
}
