/*
 * sparse_{sor,dtc,fitc,pitc,pic}: q*(u), the evidence with its gradients, predictions. sparse_snga_*: three steps of
 * the stochastic natural gradient from a given q(u).
 */
#include "oracle.h"

#include <string.h>

#include "posterior/local.h"
#include "posterior/sparse.h"

typedef struct regression {
    thi_matrix X, y, Z, Xtest; /* rows by blocks: D x N, N x 1; D x M, D x n */
    thi_matrix test_block;
    thiele_kernel *kernel;
    double noise;
    int64_t blocks;
    int64_t *start;
    thi_block *block;
    thi_conditional conditional;
    bool local;
    thi_sparse sparse;
    thi_natural sums;
} regression;

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static const struct method {
    const char *name;
    thi_residual residual;
    thi_conditional conditional;
    bool local;
} methods[] = {
    {"sor", THI_RESIDUAL_NONE, THI_CONDITIONAL_NONE, false},
    {"dtc", THI_RESIDUAL_NONE, THI_CONDITIONAL_FULL, false},
    {"fitc", THI_RESIDUAL_DIAGONAL, THI_CONDITIONAL_FULL, false},
    {"pitc", THI_RESIDUAL_BLOCK, THI_CONDITIONAL_FULL, false},
    {"pic", THI_RESIDUAL_BLOCK, THI_CONDITIONAL_FULL, true},
};

/* A list of block numbers, all of them below `blocks`. */
static thiele_status read_blocks(oracle_case *c, const char *field, int64_t n, int64_t blocks, thi_matrix *out)
{
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, field, ORACLE_VECTOR, out));
    THI_TRY(oracle_expect_shape(c, field, *out, n, 1));
    for (int64_t i = 0; i < n; i++) {
        if (!(out->data[i] >= 0.0 && out->data[i] < (double)blocks)) {
            THI_TRY(thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'%s' names block %g", field, out->data[i]));
        }
    }
out:
    return status;
}

/* Rows of one block stand together afterwards, in the order that they had. */
static thiele_status sort_rows(oracle_case *c, regression *r, thi_matrix X, thi_matrix y)
{
    thi_matrix of = {0};
    int64_t D = X.rows, at = 0;
    thiele_status status = THIELE_OK;
    THI_TRY(read_blocks(c, "train_blocks", X.cols, r->blocks, &of));
    THI_TRY(thi_matrix_alloc(&r->X, c->ctx, D, X.cols));
    THI_TRY(thi_matrix_alloc(&r->y, c->ctx, X.cols, 1));
    THI_TRY(thi_alloc(c->ctx, &r->start, (size_t)r->blocks + 1, sizeof *r->start));
    THI_TRY(thi_alloc(c->ctx, &r->block, (size_t)r->blocks, sizeof *r->block));
    for (int64_t b = 0; b < r->blocks; b++) {
        r->block[b] = (thi_block){.n = 0, .X = r->X.data + at * D, .y = r->y.data + at};
        for (int64_t i = 0; i < X.cols; i++) {
            if ((int64_t)of.data[i] == b) {
                memcpy(r->X.data + at * D, X.data + i * D, (size_t)D * sizeof(double));
                r->y.data[at++] = y.data[i];
                r->block[b].n++;
            }
        }
        r->start[b + 1] = at;
    }
out:
    thi_free(of.data);
    return status;
}

static thiele_status read_rows(oracle_case *c, regression *r)
{
    thi_matrix X = {0}, y = {0};
    double blocks = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "X", ORACLE_ROWS, &X));
    THI_TRY(oracle_read(c, c->inputs, "y", ORACLE_VECTOR, &y));
    THI_TRY(oracle_read(c, c->inputs, "Z", ORACLE_ROWS, &r->Z));
    THI_TRY(oracle_read(c, c->inputs, "Xtest", ORACLE_ROWS, &r->Xtest));
    THI_TRY(oracle_expect_shape(c, "y", y, X.cols, 1));
    THI_TRY(oracle_expect_shape(c, "Z", r->Z, X.rows, r->Z.cols));
    THI_TRY(oracle_expect_shape(c, "Xtest", r->Xtest, X.rows, r->Xtest.cols));
    THI_TRY(oracle_read_number(c, c->inputs, "noise_variance", &r->noise));
    THI_TRY(oracle_read_number(c, c->inputs, "n_blocks", &blocks));
    if (!(blocks >= 1.0 && blocks <= (double)X.cols)) {
        THI_TRY(thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'n_blocks' is %g", blocks));
    }
    r->blocks = (int64_t)blocks;
    THI_TRY(sort_rows(c, r, X, y));
    THI_TRY(read_blocks(c, "test_blocks", r->Xtest.cols, r->blocks, &r->test_block));
    THI_TRY(oracle_read_kernel(c, (int)X.rows, &r->kernel));
out:
    thi_free(X.data);
    thi_free(y.data);
    return status;
}

static thiele_status open_method(oracle_case *c, regression *r)
{
    const char *name = NULL;
    thiele_status status = oracle_read_string(c, c->inputs, "method", &name);
    for (size_t i = 0; status == THIELE_OK && i < sizeof methods / sizeof *methods; i++) {
        if (strcmp(name, methods[i].name) == 0) {
            thi_sparse_shape shape = {.M = r->Z.cols, .largest = r->X.cols, .gradients = true};
            shape.weight[methods[i].residual] = 1.0;
            r->conditional = methods[i].conditional;
            r->local = methods[i].local;
            return thi_sparse_open(&r->sparse, c->ctx, &shape, (int)r->X.rows);
        }
    }
    return status != THIELE_OK ? status : thi_fail(c->ctx, THIELE_ERROR_FORMAT, "method '%s' is not known", name);
}

static thiele_status regression_open(oracle_case *c, regression *r)
{
    *r = (regression){0};
    thiele_status status = THIELE_OK;
    THI_TRY(read_rows(c, r));
    THI_TRY(open_method(c, r));
    THI_TRY(thi_natural_open(&r->sums, c->ctx, r->Z.cols));
    thi_prior prior = {r->kernel, THI_MEAN_ZERO, NULL};
    THI_TRY(thi_sparse_prepare(&r->sparse, c->ctx, &prior, r->Z.data, r->noise));
out:
    return status;
}

static void regression_close(regression *r)
{
    thi_sparse_close(&r->sparse);
    thi_natural_close(&r->sums);
    thi_free(r->X.data);
    thi_free(r->y.data);
    thi_free(r->Z.data);
    thi_free(r->Xtest.data);
    thi_free(r->test_block.data);
    thi_free(r->start);
    thi_free(r->block);
    thiele_kernel_destroy(r->kernel);
}

/* --- q*, evidence, gradients -------------------------------------------------------------------------------------- */

/* u = L w */
static thiele_status check_q(oracle_case *c, const regression *r, const char *first, const char *second)
{
    int64_t M = r->Z.cols;
    thi_matrix mean = {0}, S = {0}, LS = {0}, L = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, M, 1));
    THI_TRY(thi_matrix_alloc(&S, c->ctx, M, M));
    THI_TRY(thi_matrix_alloc(&LS, c->ctx, M, M));
    THI_TRY(thi_matrix_alloc(&L, c->ctx, M, M));
    for (int64_t j = 0; j < M; j++) {
        memcpy(L.data + j + j * M, r->sparse.L.data + j + j * M, (size_t)(M - j) * sizeof(double));
    }
    thi_blas_gemv(THI_N, 1.0, L, r->sparse.m, 0.0, mean.data);
    thi_blas_gemm(THI_N, THI_N, 1.0, L, r->sparse.S, 0.0, LS);
    thi_blas_gemm(THI_N, THI_T, 1.0, LS, L, 0.0, S);
    THI_TRY(oracle_check(c, first, ORACLE_VECTOR, mean));
    THI_TRY(oracle_check(c, second, ORACLE_MATRIX, S));
out:
    thi_free(mean.data);
    thi_free(S.data);
    thi_free(LS.data);
    thi_free(L.data);
    return status;
}

static thiele_status check_evidence(oracle_case *c, regression *r)
{
    thi_matrix theta = {0}, Z = {0};
    double value = 0.0, log_noise = 0.0, none = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&theta, c->ctx, thiele_kernel_parameters(r->kernel), 1));
    THI_TRY(thi_matrix_alloc(&Z, c->ctx, r->Z.rows, r->Z.cols));
    thi_sparse_bar bar = {theta.data, &none, &log_noise, Z.data};
    THI_TRY(thi_sparse_pull(&r->sparse, c->ctx, r->blocks, r->block, 1.0, &value, &bar));
    THI_TRY(oracle_check_number(c, "log_marginal_likelihood", thi_sparse_evidence(&r->sparse, &r->sums)));
    THI_TRY(oracle_check(c, "grad_log_theta", ORACLE_VECTOR, theta));
    THI_TRY(oracle_check_number(c, "grad_log_noise", log_noise));
    THI_TRY(oracle_check(c, "grad_Z", ORACLE_ROWS, Z));
out:
    thi_free(theta.data);
    thi_free(Z.data);
    return status;
}

/* --- predictions -------------------------------------------------------------------------------------------------- */

/* Test rows are of the blocks that the case says, not those of the nearest centres. */
static thiele_status predict_local(oracle_case *c, const regression *r, thi_predictor *predictor, double *mean,
                                   double *variance)
{
    int64_t M = r->Z.cols, n = r->Xtest.cols;
    thi_matrix B = {0}, SB = {0}, centre = {0};
    double scale[16] = {0};
    int64_t *block = NULL;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&B, c->ctx, M, n));
    THI_TRY(thi_matrix_alloc(&SB, c->ctx, M, n));
    THI_TRY(thi_matrix_alloc(&centre, c->ctx, r->X.rows, r->blocks));
    THI_TRY(thi_alloc(c->ctx, &block, (size_t)n, sizeof *block));
    for (int64_t i = 0; i < n; i++) {
        block[i] = (int64_t)r->test_block.data[i];
    }
    thi_partition partition = {(int)r->X.rows, r->X.cols, r->blocks, scale, centre.data, r->start, NULL, NULL};
    THI_TRY(thi_local_attach(predictor, c->ctx, &partition, r->X.data, r->y.data, r->noise));
    THI_TRY(thi_local_project(predictor, c->ctx, n, r->Xtest.data, block, mean, B, variance));
    thi_blas_gemv(THI_T, 1.0, B, r->sparse.m, 1.0, mean);
    thi_blas_gemm(THI_N, THI_N, 1.0, r->sparse.S, B, 0.0, SB);
    for (int64_t j = 0; j < n; j++) {
        variance[j] += thi_blas_dot(M, B.data + j * M, SB.data + j * M);
    }
out:
    thi_free(B.data);
    thi_free(SB.data);
    thi_free(centre.data);
    thi_free(block);
    return status;
}

static thiele_status check_predictions(oracle_case *c, const regression *r)
{
    thi_predictor predictor = {0};
    thi_matrix mean = {0}, variance = {0};
    int64_t clipped = 0, n = r->Xtest.cols;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, n, 1));
    THI_TRY(thi_matrix_alloc(&variance, c->ctx, n, 1));
    THI_TRY(thi_sparse_freeze(&r->sparse, c->ctx, r->conditional, &predictor));
    if (r->local) {
        THI_TRY(predict_local(c, r, &predictor, mean.data, variance.data));
    } else {
        THI_TRY(thi_predictor_marginals(&predictor, c->ctx, n, r->Xtest.data, mean.data, variance.data, &clipped));
    }
    THI_TRY(oracle_check(c, "pred_mean", ORACLE_VECTOR, mean));
    THI_TRY(oracle_check(c, "pred_var_latent", ORACLE_VECTOR, variance));
    for (int64_t i = 0; i < n; i++) {
        variance.data[i] += r->noise;
    }
    THI_TRY(oracle_check(c, "pred_var_noisy", ORACLE_VECTOR, variance));
out:
    thi_predictor_clear(&predictor);
    thi_free(mean.data);
    thi_free(variance.data);
    return status;
}

thiele_status oracle_sparse(oracle_case *c)
{
    regression r;
    thiele_status status;
    THI_TRY(regression_open(c, &r));
    THI_TRY(thi_sparse_sum(&r.sparse, c->ctx, r.blocks, r.block, 1.0, &r.sums));
    THI_TRY(thi_sparse_set(&r.sparse, c->ctx, &r.sums));
    THI_TRY(check_q(c, &r, "qu_mean", "qu_cov"));
    THI_TRY(check_evidence(c, &r));
    THI_TRY(check_predictions(c, &r));
out:
    regression_close(&r);
    return status;
}

/* --- stochastic natural gradient ---------------------------------------------------------------------------------- */

/* The sums whose q is N(mu0, Sigma0): T = L' Sigma0^-1 L - I, t = L' Sigma0^-1 mu0. */
static thiele_status start_sums(oracle_case *c, regression *r)
{
    int64_t M = r->Z.cols;
    thi_matrix mu = {0}, F = {0}, A = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "mu0", ORACLE_VECTOR, &mu));
    THI_TRY(oracle_read(c, c->inputs, "Sigma0", ORACLE_MATRIX, &F));
    THI_TRY(oracle_expect_shape(c, "mu0", mu, M, 1));
    THI_TRY(oracle_expect_shape(c, "Sigma0", F, M, M));
    THI_TRY(thi_chol(c->ctx, F));
    THI_TRY(thi_matrix_alloc(&A, c->ctx, M, M));
    for (int64_t j = 0; j < M; j++) {
        memcpy(A.data + j + j * M, r->sparse.L.data + j + j * M, (size_t)(M - j) * sizeof(double));
    }
    thi_blas_trsm(THI_LEFT, THI_N, 1.0, F, A);
    thi_blas_trsv(THI_N, F, mu.data);
    thi_blas_gemm(THI_T, THI_N, 1.0, A, A, 0.0, r->sums.T);
    thi_blas_gemv(THI_T, 1.0, A, mu.data, 0.0, r->sums.t);
    for (int64_t j = 0; j < M; j++) {
        r->sums.T.data[j + j * M] -= 1.0;
    }
out:
    thi_free(mu.data);
    thi_free(F.data);
    thi_free(A.data);
    return status;
}

/* theta1 = L^-T t, theta2 = -L^-T (I + T) L^-1 / 2, in the object that c->expected is now. */
static thiele_status check_natural(oracle_case *c, const regression *r, const char *first, const char *second)
{
    int64_t M = r->Z.cols;
    thi_matrix theta1 = {0}, theta2 = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&theta1, c->ctx, M, 1));
    THI_TRY(thi_matrix_alloc(&theta2, c->ctx, M, M));
    memcpy(theta1.data, r->sums.t, (size_t)M * sizeof(double));
    memcpy(theta2.data, r->sums.T.data, (size_t)(M * M) * sizeof(double));
    for (int64_t j = 0; j < M; j++) {
        theta2.data[j + j * M] += 1.0;
    }
    thi_symmetrise(theta2);
    thi_blas_trsv(THI_T, r->sparse.L, theta1.data);
    thi_blas_trsm(THI_LEFT, THI_T, -0.5, r->sparse.L, theta2);
    thi_blas_trsm(THI_RIGHT, THI_N, 1.0, r->sparse.L, theta2);
    THI_TRY(oracle_check(c, first, ORACLE_VECTOR, theta1));
    THI_TRY(oracle_check(c, second, ORACLE_MATRIX, theta2));
out:
    thi_free(theta1.data);
    thi_free(theta2.data);
    return status;
}

/* q(u) of the present sums. */
static thiele_status check_step(oracle_case *c, regression *r, json_t *expected)
{
    json_t *all = c->expected;
    thiele_status status = THIELE_OK;
    c->expected = expected;
    THI_TRY(check_natural(c, r, "theta1", "theta2"));
    THI_TRY(thi_sparse_set(&r->sparse, c->ctx, &r->sums));
    THI_TRY(check_q(c, r, "mu", "Sigma"));
    if (json_object_size(expected) > 0) {
        const char *field = json_object_iter_key(json_object_iter(expected));
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "field '%s' of a step is not one that is computed", field);
    }
out:
    c->expected = all;
    return status;
}

/* (T, t) = (1 - rho)(T, t) + rho P/n sum over the drawn blocks. */
static thiele_status take_step(oracle_case *c, regression *r, const json_t *drawn, double rho, thi_natural *part)
{
    size_t n = json_array_size(drawn);
    thi_natural_zero(part);
    for (size_t i = 0; i < n; i++) {
        double b = json_number_value(json_array_get(drawn, i));
        if (!(b >= 0.0 && b < (double)r->blocks)) {
            return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'block_samples' names block %g", b);
        }
        thiele_status status =
            thi_sparse_sum(&r->sparse, c->ctx, 1, &r->block[(int64_t)b], (double)r->blocks / (double)n, part);
        if (status != THIELE_OK) {
            return status;
        }
    }
    thi_natural_mix(&r->sums, 1.0 - rho, part, rho);
    return THIELE_OK;
}

thiele_status oracle_sparse_steps(oracle_case *c)
{
    regression r;
    thi_natural part = {0};
    thi_matrix rho = {0};
    const json_t *drawn = json_object_get(c->inputs, "block_samples");
    json_t *steps = json_object_get(c->expected, "steps");
    thiele_status status;
    THI_TRY(regression_open(c, &r));
    THI_TRY(thi_natural_open(&part, c->ctx, r.Z.cols));
    THI_TRY(oracle_read(c, c->inputs, "step_sizes", ORACLE_VECTOR, &rho));
    if (json_array_size(drawn) != (size_t)rho.rows || json_array_size(steps) != (size_t)rho.rows) {
        THI_TRY(thi_fail(c->ctx, THIELE_ERROR_FORMAT, "the case has not as many steps as step sizes"));
    }
    THI_TRY(start_sums(c, &r));
    THI_TRY(check_natural(c, &r, "theta1_0", "theta2_0"));
    for (int64_t t = 0; t < rho.rows; t++) {
        THI_TRY(take_step(c, &r, json_array_get(drawn, (size_t)t), rho.data[t], &part));
        THI_TRY(check_step(c, &r, json_array_get(steps, (size_t)t)));
    }
    json_object_del(c->expected, "steps");
out:
    thi_natural_close(&part);
    thi_free(rho.data);
    regression_close(&r);
    return status;
}
