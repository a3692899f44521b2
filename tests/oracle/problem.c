/* Reading and evaluating what the variational kinds share; the conventions are those of vectors/README.md. */
#include "problem.h"

#include <math.h>
#include <string.h>

static thiele_status read_likelihood(oracle_case *c, problem *p)
{
    json_t *json = json_object_get(c->inputs, "likelihood");
    if (json != NULL) {
        return oracle_read_likelihood(c, json, &p->lik);
    }
    double noise = 0.0;
    thiele_status status = oracle_read_number(c, c->inputs, "noise_variance", &noise);
    if (status == THIELE_OK) {
        json = json_pack("{s:s, s:f}", "name", "gaussian", "noise", noise);
        status = oracle_read_likelihood(c, json, &p->lik);
        json_decref(json);
    }
    return status;
}

static thiele_status read_inputs(oracle_case *c, problem *p)
{
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "X", ORACLE_ROWS, &p->X));
    THI_TRY(oracle_read(c, c->inputs, "y", ORACLE_VECTOR, &p->y));
    /* A dense model: Z = X. */
    THI_TRY(oracle_read(c, c->inputs, json_object_get(c->inputs, "Z") != NULL ? "Z" : "X", ORACLE_ROWS, &p->Z));
    THI_TRY(oracle_expect_shape(c, "y", p->y, p->X.cols, 1));
    THI_TRY(oracle_expect_shape(c, "Z", p->Z, p->X.rows, p->Z.cols));
    THI_TRY(oracle_read_kernel(c, (int)p->X.rows, &p->kernel));
    THI_TRY(read_likelihood(c, p));
out:
    return status;
}

static thiele_status make_room(oracle_case *c, problem *p)
{
    int64_t N = p->X.cols, K = p->shape.components, size = thi_variational_size(&p->shape);
    const struct {
        thi_matrix *matrix;
        int64_t rows, cols;
    } all[] = {
        {&p->mu, N, K},
        {&p->variance, N, K},
        {&p->E, N, K},
        {&p->g, N, K},
        {&p->h, N, K},
        {&p->dphi, thiele_likelihood_parameters(p->lik), N},
        {&p->theta_bar, thiele_kernel_parameters(p->kernel), 1},
        {&p->Z_bar, p->Z.rows, p->Z.cols},
        {&p->q, size, 1},
        {&p->q_bar, size, 1},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == THIELE_OK; i++) {
        status = thi_matrix_alloc(all[i].matrix, c->ctx, all[i].rows, all[i].cols);
    }
    return status;
}

thiele_status problem_open(oracle_case *c, problem *p, int components, bool diagonal, bool whitened)
{
    *p = (problem){0};
    thiele_status status = THIELE_OK;
    THI_TRY(read_inputs(c, p));
    if (components > (int)(sizeof p->expected / sizeof *p->expected) || p->X.cols > THI_EXPECT_BLOCK) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "the case has more components or rows than this program takes");
    }
    p->shape = (thi_shape){.latents = 1,
                           .components = components,
                           .dims = (int)p->X.rows,
                           .inducing = p->Z.cols,
                           .capacity = p->X.cols,
                           .diagonal = diagonal,
                           .jensen = true, /* the files of mixtures are of savigp-jmlr eq. 14 */
                           .whitened = whitened};
    THI_TRY(make_room(c, p));
    THI_TRY(thi_expect_open(&p->expect, c->ctx, p->lik, NULL));
    THI_TRY(thi_variational_open(&p->v, c->ctx, &p->shape));
out:
    return status;
}

void problem_close(problem *p)
{
    double *const data[] = {p->X.data,     p->y.data, p->Z.data,    p->mu.data,   p->variance.data,
                            p->E.data,     p->g.data, p->h.data,    p->dphi.data, p->theta_bar.data,
                            p->Z_bar.data, p->q.data, p->q_bar.data};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        thi_free(data[i]);
    }
    thi_variational_close(p->v);
    thi_expect_close(&p->expect);
    thiele_likelihood_destroy(p->lik);
    thiele_kernel_destroy(p->kernel);
}

thiele_status problem_begin(oracle_case *c, problem *p, thi_sites *sites)
{
    thi_prior prior = {p->kernel, THI_MEAN_ZERO, NULL};
    const double *Z = p->Z.data;
    memset(p->expected, 0, sizeof p->expected);
    return thi_variational_begin(p->v, c->ctx, &prior, &Z, sites == NULL ? p->q.data : NULL, sites, true);
}

thiele_status problem_rows(oracle_case *c, problem *p, int64_t n, const double *X, const double *y, double scale,
                           bool pull)
{
    const double *weight = thi_variational_weights(p->v);
    thiele_status status = THIELE_OK;
    THI_TRY(thi_variational_marginals(p->v, c->ctx, n, X, p->mu.data, p->variance.data));
    for (int k = 0; k < p->shape.components; k++) {
        double *g = p->g.data + k * n, *h = p->h.data + k * n, *E = p->E.data + k * n;
        THI_TRY(thi_expect_block(&p->expect, c->ctx, 0, n, y, p->mu.data + k * n, p->variance.data + k * n, E, g, h,
                                 p->dphi.data));
        for (int64_t i = 0; i < n; i++) {
            p->expected[k] += scale * E[i];
            g[i] *= scale * weight[k];
            h[i] *= scale * weight[k];
        }
    }
    if (pull) {
        THI_TRY(thi_variational_pull(p->v, c->ctx, p->g.data, p->h.data));
    }
out:
    return status;
}

thiele_status problem_end(oracle_case *c, problem *p, bool by_sites)
{
    double *const theta = p->theta_bar.data, *const Z = p->Z_bar.data;
    thi_adjoints adjoints = {by_sites ? NULL : p->q_bar.data, &theta, NULL, &Z};
    memset(theta, 0, (size_t)p->theta_bar.rows * sizeof(double));
    memset(Z, 0, (size_t)(p->Z_bar.rows * p->Z_bar.cols) * sizeof(double));
    memset(p->q_bar.data, 0, (size_t)p->q_bar.rows * sizeof(double));
    return thi_variational_end(p->v, c->ctx, p->expected, &p->kl, &adjoints);
}

double problem_expected(const problem *p)
{
    return thi_blas_dot(p->shape.components, thi_variational_weights(p->v), p->expected);
}

double problem_bound(const problem *p)
{
    return problem_expected(p) - p->kl;
}

thiele_status problem_pack(oracle_case *c, problem *p, int component, const double *m, thi_matrix S)
{
    int64_t M = p->shape.inducing;
    double *to = p->q.data + thi_variational_offset(&p->shape, component, 0);
    thi_matrix L = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_expect_shape(c, "S", S, M, M));
    THI_TRY(thi_matrix_alloc(&L, c->ctx, M, M));
    memcpy(L.data, S.data, (size_t)(M * M) * sizeof(double));
    THI_TRY(thi_chol(c->ctx, L));
    memcpy(to, m, (size_t)M * sizeof(double));
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

thiele_status problem_unpack(oracle_case *c, const problem *p, int component, const double *bar, thi_matrix S_bar)
{
    int64_t M = p->shape.inducing, at = thi_variational_offset(&p->shape, component, 0) + M;
    thi_matrix L = {0}, work = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&L, c->ctx, M, M));
    THI_TRY(thi_matrix_alloc(&work, c->ctx, M, M));
    for (int64_t j = 0; j < M; j++) {
        memcpy(L.data + j + j * M, p->q.data + at, (size_t)(M - j) * sizeof(double));
        memcpy(S_bar.data + j + j * M, bar + at, (size_t)(M - j) * sizeof(double));
        L.data[j + j * M] = exp(L.data[j + j * M]);
        S_bar.data[j + j * M] /= L.data[j + j * M];
        at += M - j;
    }
    THI_TRY(thi_chol_adjoint(c->ctx, L, S_bar, work));
    thi_symmetrise(S_bar);
out:
    thi_free(L.data);
    thi_free(work.data);
    return status;
}

thiele_status problem_check_predictions(oracle_case *c, const problem *p, double noise)
{
    thi_matrix X = {0}, mean = {0}, variance = {0}, covariance = {0};
    thi_predictor predictor = {0};
    int64_t clipped = 0;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "Xtest", ORACLE_ROWS, &X));
    THI_TRY(oracle_expect_shape(c, "Xtest", X, p->X.rows, X.cols));
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, X.cols, 1));
    THI_TRY(thi_matrix_alloc(&variance, c->ctx, X.cols, 1));
    THI_TRY(thi_matrix_alloc(&covariance, c->ctx, X.cols, X.cols));
    THI_TRY(thi_variational_freeze(p->v, c->ctx, 0, &predictor));
    THI_TRY(thi_predictor_marginals(&predictor, c->ctx, X.cols, X.data, mean.data, variance.data, &clipped));
    THI_TRY(oracle_check(c, "pred_mean", ORACLE_VECTOR, mean));
    THI_TRY(oracle_check(c, "pred_var_latent", ORACLE_VECTOR, variance));
    if (json_object_get(c->expected, "pred_cov_latent") != NULL) {
        THI_TRY(thi_predictor_joint(&predictor, c->ctx, 0, X.cols, X.data, mean.data, covariance.data));
        THI_TRY(oracle_check(c, "pred_cov_latent", ORACLE_MATRIX, covariance));
        for (int64_t i = 0; i < X.cols; i++) {
            variance.data[i] += noise;
        }
        THI_TRY(oracle_check(c, "pred_var_noisy", ORACLE_VECTOR, variance));
    }
out:
    thi_predictor_clear(&predictor);
    thi_free(X.data);
    thi_free(mean.data);
    thi_free(variance.data);
    thi_free(covariance.data);
    return status;
}

/* q(u) is what is predicted at Z. */
thiele_status problem_check_q(oracle_case *c, const problem *p, const char *mean_field, const char *covariance_field)
{
    thi_matrix mean = {0}, covariance = {0};
    thi_predictor predictor = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, p->Z.cols, 1));
    THI_TRY(thi_matrix_alloc(&covariance, c->ctx, p->Z.cols, p->Z.cols));
    THI_TRY(thi_variational_freeze(p->v, c->ctx, 0, &predictor));
    THI_TRY(thi_predictor_joint(&predictor, c->ctx, 0, p->Z.cols, p->Z.data, mean.data, covariance.data));
    THI_TRY(oracle_check(c, mean_field, ORACLE_VECTOR, mean));
    THI_TRY(oracle_check(c, covariance_field, ORACLE_MATRIX, covariance));
out:
    thi_predictor_clear(&predictor);
    thi_free(mean.data);
    thi_free(covariance.data);
    return status;
}
