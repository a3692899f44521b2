/*
 * mog_*: a mixture of Gaussians as q(u), full or diagonal: the bound, its parts and their gradients. The library gives
 * the entropy bound and the cross term as one number; the cross term is computed here from Kzz^-1, and what the library
 * has beyond it is compared with the entropy.
 */
#include "problem.h"

#include <math.h>
#include <string.h>

#define LOG_2PI 1.837877066409345483561

/* A gradient in q in the shapes of the file. */
typedef struct parts {
    thi_matrix logits, m, S[8]; /* K, M x K, M x M each; of a diagonal family S[0] is M x K */
} parts;

static thiele_status parts_open(oracle_case *c, const problem *p, parts *a)
{
    int64_t M = p->shape.inducing, K = p->shape.components;
    *a = (parts){0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&a->logits, c->ctx, K, 1));
    THI_TRY(thi_matrix_alloc(&a->m, c->ctx, M, K));
    for (int64_t k = 0; k < (p->shape.diagonal ? 1 : K); k++) {
        THI_TRY(thi_matrix_alloc(&a->S[k], c->ctx, M, p->shape.diagonal ? K : M));
    }
out:
    return status;
}

static void parts_close(parts *a)
{
    thi_free(a->logits.data);
    thi_free(a->m.data);
    for (int k = 0; k < 8; k++) {
        thi_free(a->S[k].data);
    }
}

static thiele_status take_gradient(oracle_case *c, const problem *p, const double *bar, parts *a)
{
    int64_t M = p->shape.inducing;
    thiele_status status = THIELE_OK;
    memcpy(a->logits.data, bar, (size_t)p->shape.components * sizeof(double));
    for (int k = 0; k < p->shape.components && status == THIELE_OK; k++) {
        int64_t at = thi_variational_offset(&p->shape, k, 0);
        memcpy(a->m.data + k * M, bar + at, (size_t)M * sizeof(double));
        /* The numbers are logs of standard deviations. */
        for (int64_t i = 0; p->shape.diagonal && i < M; i++) {
            a->S[0].data[i + k * M] = bar[at + M + i] / (2.0 * exp(2.0 * p->q.data[at + M + i]));
        }
        if (!p->shape.diagonal) {
            status = problem_unpack(c, p, k, bar, a->S[k]);
        }
    }
    return status;
}

/* a -= b */
static void subtract(parts *a, const parts *b)
{
    thi_blas_axpy(a->logits.rows, -1.0, b->logits.data, a->logits.data);
    thi_blas_axpy(a->m.rows * a->m.cols, -1.0, b->m.data, a->m.data);
    for (int k = 0; k < 8 && a->S[k].data != NULL; k++) {
        thi_blas_axpy(a->S[k].rows * a->S[k].cols, -1.0, b->S[k].data, a->S[k].data);
    }
}

/* "grad_PARTS" of `expected`, a list of K matrices for a full family, becomes fields of their own. */
static thiele_status check_S(oracle_case *c, const problem *p, const char *field, const parts *a)
{
    if (p->shape.diagonal) {
        return oracle_check(c, field, ORACLE_ROWS, a->S[0]);
    }
    json_t *list = json_object_get(c->expected, field);
    if (json_array_size(list) != (size_t)p->shape.components) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'%s' is not a list of a matrix a component", field);
    }
    thiele_status status = THIELE_OK;
    for (int k = 0; k < p->shape.components && status == THIELE_OK; k++) {
        char name[80];
        snprintf(name, sizeof name, "%.60s[%d]", field, k);
        json_object_set(c->expected, name, json_array_get(list, (size_t)k));
        status = oracle_check(c, name, ORACLE_MATRIX, a->S[k]);
    }
    json_object_del(c->expected, field);
    return status;
}

static thiele_status check_parts(oracle_case *c, const problem *p, const char *prefix, const parts *a)
{
    char field[80];
    thiele_status status = THIELE_OK;
    snprintf(field, sizeof field, "grad_%slogits", prefix);
    THI_TRY(oracle_check(c, field, ORACLE_VECTOR, a->logits));
    snprintf(field, sizeof field, "grad_%sm", prefix);
    THI_TRY(oracle_check(c, field, ORACLE_ROWS, a->m));
    snprintf(field, sizeof field, "grad_%sS", prefix);
    THI_TRY(check_S(c, p, field, a));
out:
    return status;
}

/* E_k[log p(u)] of one component, and pi_k times its gradients. Kinv: full. */
static double cross_component(const problem *p, int k, const parts *mean_and_S, thi_matrix Kinv, double log_det,
                              parts *bar)
{
    int64_t M = p->shape.inducing;
    double weight = thi_variational_weights(p->v)[k], sum = (double)M * LOG_2PI + log_det;
    const double *m = mean_and_S->m.data + k * M;
    double *m_bar = bar->m.data + k * M;
    thi_blas_gemv(THI_N, 1.0, Kinv, m, 0.0, m_bar);
    sum += thi_blas_dot(M, m, m_bar);
    for (int64_t i = 0; i < M; i++) {
        m_bar[i] *= -weight;
        for (int64_t j = 0; !p->shape.diagonal && j < M; j++) {
            sum += Kinv.data[i + j * M] * mean_and_S->S[k].data[i + j * M];
            bar->S[k].data[i + j * M] = -0.5 * weight * Kinv.data[i + j * M];
        }
        if (p->shape.diagonal) {
            sum += Kinv.data[i + i * M] * mean_and_S->S[0].data[i + k * M];
            bar->S[0].data[i + k * M] = -0.5 * weight * Kinv.data[i + i * M];
        }
    }
    return -0.5 * sum;
}

static thiele_status cross_term(oracle_case *c, const problem *p, const parts *mean_and_S, double *cross, parts *bar)
{
    int64_t M = p->shape.inducing;
    int K = p->shape.components;
    const double *weight = thi_variational_weights(p->v);
    thi_matrix Kinv = {0};
    double own[8];
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&Kinv, c->ctx, M, M));
    THI_TRY(thiele_kernel_matrix(p->kernel, c->ctx, (int)M, p->Z.data, 0, NULL, Kinv.data));
    THI_TRY(thi_chol(c->ctx, Kinv));
    double log_det = thi_chol_logdet(Kinv);
    THI_TRY(thi_chol_inverse(c->ctx, Kinv));
    thi_symmetrise(Kinv);
    *cross = 0.0;
    for (int k = 0; k < K; k++) {
        own[k] = cross_component(p, k, mean_and_S, Kinv, log_det, bar);
        *cross += weight[k] * own[k];
    }
    for (int k = 0; k < K; k++) {
        bar->logits.data[k] = weight[k] * (own[k] - *cross);
    }
out:
    thi_free(Kinv.data);
    return status;
}

/* The numbers of q from the file; mean_and_S keeps them as they are there. */
static thiele_status read_q(oracle_case *c, problem *p, parts *mean_and_S)
{
    int64_t M = p->shape.inducing;
    int K = p->shape.components;
    thi_matrix logits = {0}, m = {0}, S = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "logits", ORACLE_VECTOR, &logits));
    THI_TRY(oracle_read(c, c->inputs, "m", ORACLE_ROWS, &m));
    THI_TRY(oracle_expect_shape(c, "logits", logits, K, 1));
    THI_TRY(oracle_expect_shape(c, "m", m, M, K));
    memcpy(p->q.data, logits.data, (size_t)K * sizeof(double));
    memcpy(mean_and_S->m.data, m.data, (size_t)(M * K) * sizeof(double));
    if (p->shape.diagonal) {
        THI_TRY(oracle_read(c, c->inputs, "S", ORACLE_ROWS, &S));
        THI_TRY(oracle_expect_shape(c, "S", S, M, K));
        memcpy(mean_and_S->S[0].data, S.data, (size_t)(M * K) * sizeof(double));
    }
    for (int k = 0; k < K; k++) {
        double *to = p->q.data + thi_variational_offset(&p->shape, k, 0);
        memcpy(to, m.data + k * M, (size_t)M * sizeof(double));
        for (int64_t i = 0; p->shape.diagonal && i < M; i++) {
            to[M + i] = 0.5 * log(S.data[i + k * M]);
        }
        if (!p->shape.diagonal) {
            char name[16];
            snprintf(name, sizeof name, "S[%d]", k);
            json_object_set(c->inputs, name, json_array_get(json_object_get(c->inputs, "S"), (size_t)k));
            THI_TRY(oracle_read(c, c->inputs, name, ORACLE_MATRIX, &S));
            THI_TRY(problem_pack(c, p, k, m.data + k * M, S));
            memcpy(mean_and_S->S[k].data, S.data, (size_t)(M * M) * sizeof(double));
            thi_free(S.data);
            S.data = NULL;
        }
    }
out:
    thi_free(logits.data);
    thi_free(m.data);
    thi_free(S.data);
    return status;
}

/* Without rows the gradient is that of entropy and cross term. */
static thiele_status check_prior_parts(oracle_case *c, problem *p, const parts *q, parts *kl, parts *cross_bar)
{
    double cross = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(problem_begin(c, p, NULL));
    THI_TRY(problem_end(c, p, false));
    THI_TRY(take_gradient(c, p, p->q_bar.data, kl));
    THI_TRY(cross_term(c, p, q, &cross, cross_bar));
    THI_TRY(oracle_check_number(c, "cross", cross));
    THI_TRY(oracle_check_number(c, "entropy_bound", -p->kl - cross));
    THI_TRY(check_parts(c, p, "cross_", cross_bar));
    subtract(kl, cross_bar);
    THI_TRY(check_parts(c, p, "entropy_", kl));
out:
    return status;
}

static thiele_status check_whole(oracle_case *c, problem *p, parts *total)
{
    int K = p->shape.components;
    thiele_status status = THIELE_OK;
    THI_TRY(problem_begin(c, p, NULL));
    THI_TRY(problem_rows(c, p, p->X.cols, p->X.data, p->y.data, 1.0, true));
    THI_TRY(problem_end(c, p, false));
    THI_TRY(oracle_check(c, "pi", ORACLE_VECTOR, thi_matrix_view((double *)thi_variational_weights(p->v), K, 1, K)));
    THI_TRY(oracle_check(c, "marginal_mean", ORACLE_ROWS, p->mu));
    THI_TRY(oracle_check(c, "marginal_var", ORACLE_ROWS, p->variance));
    THI_TRY(oracle_check_number(c, "ell", problem_expected(p)));
    THI_TRY(oracle_check_number(c, "elbo", problem_bound(p)));
    THI_TRY(take_gradient(c, p, p->q_bar.data, total));
    THI_TRY(check_parts(c, p, "", total));
    THI_TRY(oracle_check(c, "grad_log_theta", ORACLE_VECTOR, p->theta_bar));
    THI_TRY(oracle_check(c, "grad_Z", ORACLE_ROWS, p->Z_bar));
out:
    return status;
}

thiele_status oracle_mog(oracle_case *c)
{
    problem p = {0};
    parts q = {0}, total = {0}, entropy = {0}, cross = {0};
    const char *covariance = NULL;
    thiele_status status = THIELE_OK;
    int K = (int)json_array_size(json_object_get(c->inputs, "logits"));
    THI_TRY(oracle_read_string(c, c->inputs, "covariance", &covariance));
    THI_TRY(problem_open(c, &p, K, strcmp(covariance, "diag") == 0, false));
    THI_TRY(parts_open(c, &p, &q));
    THI_TRY(parts_open(c, &p, &total));
    THI_TRY(parts_open(c, &p, &entropy));
    THI_TRY(parts_open(c, &p, &cross));
    THI_TRY(read_q(c, &p, &q));
    THI_TRY(check_whole(c, &p, &total));
    THI_TRY(check_prior_parts(c, &p, &q, &entropy, &cross));
    subtract(&total, &entropy);
    subtract(&total, &cross);
    THI_TRY(check_parts(c, &p, "ell_", &total));
out:
    parts_close(&q);
    parts_close(&total);
    parts_close(&entropy);
    parts_close(&cross);
    problem_close(&p);
    return status;
}
