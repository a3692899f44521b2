/*
 * blocksites_{pic,pitc,fitc}_*: the block models as priors under Gaussian sites. The posterior at given sites, and the
 * fixed point of natural steps with its bound, gradient and predictions. Blocks of one row each are FITC; test rows of
 * block -1 see Z alone, others their block too.
 */
#include "oracle.h"

#include <string.h>

#include "expect/expect.h"
#include "posterior/local.h"
#include "posterior/sparse.h"

/* Of a natural step, and how many lead from the given sites to the fixed point: 0.5^120 is below any tolerance. */
static const double RHO = 0.5;
enum { STEPS = 120, MOST_DIMS = 16 };

typedef struct scene {
    thi_matrix X, y, Z, Xtest; /* rows by blocks: D x N, N x 1; D x M, D x n */
    thi_matrix lambda, nu, mu, v, E, g, h;
    thi_matrix back; /* of each row of the file: where it stands among the sorted ones */
    thi_matrix test_block;
    thiele_kernel *kernel;
    thiele_likelihood *lik;
    thi_expect expect;
    int64_t blocks, *start;
    thi_block *block;
    thi_sparse sparse;
    thi_natural sums, part;
} scene;

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static thiele_status alloc_rows(oracle_case *c, scene *s, int64_t D, int64_t N)
{
    thi_matrix *const column[] = {&s->y, &s->lambda, &s->nu, &s->mu, &s->v, &s->E, &s->g, &s->h, &s->back};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&s->X, c->ctx, D, N));
    for (size_t i = 0; i < sizeof column / sizeof *column; i++) {
        THI_TRY(thi_matrix_alloc(column[i], c->ctx, N, 1));
    }
    THI_TRY(thi_alloc(c->ctx, &s->start, (size_t)N + 1, sizeof *s->start));
    THI_TRY(thi_alloc(c->ctx, &s->block, (size_t)N, sizeof *s->block));
out:
    return status;
}

/* Rows of one block stand together afterwards. */
static thiele_status sort_rows(oracle_case *c, scene *s, thi_matrix X, thi_matrix of)
{
    int64_t D = X.rows, N = X.cols, at = 0;
    thi_matrix y = {0}, lambda = {0}, nu = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "y", ORACLE_VECTOR, &y));
    THI_TRY(oracle_read(c, c->inputs, "lam", ORACLE_VECTOR, &lambda));
    THI_TRY(oracle_read(c, c->inputs, "nu", ORACLE_VECTOR, &nu));
    THI_TRY(oracle_expect_shape(c, "y", y, N, 1));
    THI_TRY(oracle_expect_shape(c, "lam", lambda, N, 1));
    THI_TRY(oracle_expect_shape(c, "nu", nu, N, 1));
    for (; at < N; s->blocks++) {
        int64_t first = at;
        for (int64_t i = 0; i < N; i++) {
            if (of.data[i] == (double)s->blocks) {
                memcpy(s->X.data + at * D, X.data + i * D, (size_t)D * sizeof(double));
                s->y.data[at] = y.data[i];
                s->lambda.data[at] = lambda.data[i];
                s->nu.data[at] = nu.data[i];
                s->back.data[i] = (double)at++;
            }
        }
        if (at == first) {
            THI_TRY(thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'block' has no row of block %lld", (long long)s->blocks));
        }
        s->start[s->blocks + 1] = at;
        s->block[s->blocks] = (thi_block){
            .n = at - first,
            .X = s->X.data + first * D,
            .at = {s->lambda.data + first, s->nu.data + first, s->mu.data + first, s->v.data + first, s->g.data + first,
                   s->h.data + first},
        };
    }
out:
    thi_free(y.data);
    thi_free(lambda.data);
    thi_free(nu.data);
    return status;
}

static thiele_status read_scene(oracle_case *c, scene *s)
{
    thi_matrix X = {0}, of = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "X", ORACLE_ROWS, &X));
    THI_TRY(oracle_read(c, c->inputs, "block", ORACLE_VECTOR, &of));
    THI_TRY(oracle_read(c, c->inputs, "Z", ORACLE_ROWS, &s->Z));
    THI_TRY(oracle_read(c, c->inputs, "X_test", ORACLE_ROWS, &s->Xtest));
    THI_TRY(oracle_read(c, c->inputs, "block_test", ORACLE_VECTOR, &s->test_block));
    THI_TRY(oracle_expect_shape(c, "block", of, X.cols, 1));
    THI_TRY(oracle_expect_shape(c, "Z", s->Z, X.rows, s->Z.cols));
    THI_TRY(oracle_expect_shape(c, "X_test", s->Xtest, X.rows, s->Xtest.cols));
    THI_TRY(oracle_expect_shape(c, "block_test", s->test_block, s->Xtest.cols, 1));
    if (X.rows > MOST_DIMS || X.cols > THI_EXPECT_BLOCK) {
        THI_TRY(thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'X' is larger than any case of this kind"));
    }
    THI_TRY(alloc_rows(c, s, X.rows, X.cols));
    THI_TRY(sort_rows(c, s, X, of));
    THI_TRY(oracle_read_kernel(c, (int)X.rows, &s->kernel));
    THI_TRY(oracle_read_likelihood(c, json_object_get(c->inputs, "likelihood"), &s->lik));
    THI_TRY(thi_expect_open(&s->expect, c->ctx, s->lik, NULL));
out:
    thi_free(X.data);
    thi_free(of.data);
    return status;
}

static thiele_status scene_open(oracle_case *c, scene *s)
{
    *s = (scene){0};
    thiele_status status = THIELE_OK;
    THI_TRY(read_scene(c, s));
    thi_sparse_shape shape = {.M = s->Z.cols, .largest = s->X.cols, .gradients = true, .sites = true};
    shape.weight[s->blocks == s->X.cols ? THI_RESIDUAL_DIAGONAL : THI_RESIDUAL_BLOCK] = 1.0;
    THI_TRY(thi_sparse_open(&s->sparse, c->ctx, &shape, (int)s->X.rows));
    THI_TRY(thi_natural_open(&s->sums, c->ctx, s->Z.cols));
    THI_TRY(thi_natural_open(&s->part, c->ctx, s->Z.cols));
    thi_prior prior = {s->kernel, THI_MEAN_ZERO, NULL};
    THI_TRY(thi_sparse_prepare(&s->sparse, c->ctx, &prior, s->Z.data, 0.0));
    THI_TRY(thi_sparse_sum(&s->sparse, c->ctx, s->blocks, s->block, 1.0, &s->sums));
    THI_TRY(thi_sparse_set(&s->sparse, c->ctx, &s->sums));
out:
    return status;
}

static void scene_close(scene *s)
{
    thi_matrix *const matrix[] = {&s->X, &s->y, &s->Z, &s->Xtest, &s->lambda, &s->nu,        &s->mu,
                                  &s->v, &s->E, &s->g, &s->h,     &s->back,   &s->test_block};
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) {
        thi_free(matrix[i]->data);
    }
    thi_sparse_close(&s->sparse);
    thi_natural_close(&s->sums);
    thi_natural_close(&s->part);
    thi_expect_close(&s->expect);
    thi_free(s->start);
    thi_free(s->block);
    thiele_kernel_destroy(s->kernel);
    thiele_likelihood_destroy(s->lik);
}

/* --- comparisons -------------------------------------------------------------------------------------------------- */

/* Numbers of the sorted rows, in the order of the file. */
static thiele_status check_rows(oracle_case *c, const scene *s, const char *field, thi_matrix sorted)
{
    thi_matrix A = {0};
    thiele_status status = thi_matrix_alloc(&A, c->ctx, sorted.rows, 1);
    for (int64_t i = 0; status == THIELE_OK && i < sorted.rows; i++) {
        A.data[i] = sorted.data[(int64_t)s->back.data[i]];
    }
    status = status == THIELE_OK ? oracle_check(c, field, ORACLE_VECTOR, A) : status;
    thi_free(A.data);
    return status;
}

/* What a local part says of rows whose blocks are given. */
static thiele_status predict_local(oracle_case *c, scene *s, thi_predictor *p, double *mean, double *variance)
{
    int64_t M = s->Z.cols, n = s->Xtest.cols, N = s->X.cols, *block = NULL;
    thi_matrix B = {0}, SB = {0}, centre = {0};
    double scale[MOST_DIMS] = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&B, c->ctx, M, n));
    THI_TRY(thi_matrix_alloc(&SB, c->ctx, M, n));
    THI_TRY(thi_matrix_alloc(&centre, c->ctx, s->X.rows, s->blocks));
    THI_TRY(thi_alloc(c->ctx, &block, (size_t)n, sizeof *block));
    for (int64_t i = 0; i < n; i++) {
        block[i] = (int64_t)s->test_block.data[i];
    }
    thi_partition partition = {(int)s->X.rows, N, s->blocks, scale, centre.data, s->start, NULL, NULL};
    THI_TRY(thi_local_attach(p, c->ctx, &partition, s->X.data, s->y.data, 0.0));
    THI_TRY(thi_local_hold_sites(p->local, c->ctx));
    memcpy(p->local->lambda, s->lambda.data, (size_t)N * sizeof(double));
    memcpy(p->local->nu, s->nu.data, (size_t)N * sizeof(double));
    THI_TRY(thi_local_project(p, c->ctx, n, s->Xtest.data, block, mean, B, variance));
    thi_blas_gemv(THI_T, 1.0, B, s->sparse.m, 1.0, mean);
    thi_blas_gemm(THI_N, THI_N, 1.0, s->sparse.S, B, 0.0, SB);
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

static thiele_status check_predictions(oracle_case *c, scene *s)
{
    thi_predictor p = {0};
    thi_matrix mean = {0}, variance = {0};
    int64_t clipped = 0, n = s->Xtest.cols;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, n, 1));
    THI_TRY(thi_matrix_alloc(&variance, c->ctx, n, 1));
    THI_TRY(thi_sparse_freeze(&s->sparse, c->ctx, THI_CONDITIONAL_FULL, &p));
    if (s->test_block.data[0] >= 0.0) {
        THI_TRY(predict_local(c, s, &p, mean.data, variance.data));
    } else {
        THI_TRY(thi_predictor_marginals(&p, c->ctx, n, s->Xtest.data, mean.data, variance.data, &clipped));
    }
    THI_TRY(oracle_check(c, "pred_mean", ORACLE_VECTOR, mean));
    THI_TRY(oracle_check(c, "pred_var", ORACLE_VECTOR, variance));
out:
    thi_predictor_clear(&p);
    thi_free(mean.data);
    thi_free(variance.data);
    return status;
}

/* What both parts of a case have. */
static thiele_status check_posterior(oracle_case *c, scene *s)
{
    thiele_status status = THIELE_OK;
    THI_TRY(thi_sparse_marginals(&s->sparse, 1, c->ctx, s->blocks, s->block, NULL));
    THI_TRY(check_rows(c, s, "mu", s->mu));
    THI_TRY(check_rows(c, s, "v", s->v));
    THI_TRY(oracle_check_number(c, "log_z", thi_sparse_evidence(&s->sparse, &s->sums)));
    THI_TRY(check_predictions(c, s));
out:
    return status;
}

static thiele_status check_given(oracle_case *c, scene *s)
{
    thiele_status status = THIELE_OK;
    thi_symmetrise(s->sums.T);
    THI_TRY(oracle_check(c, "T", ORACLE_MATRIX, s->sums.T));
    THI_TRY(oracle_check(c, "t", ORACLE_VECTOR, thi_matrix_view(s->sums.t, s->Z.cols, 1, s->Z.cols)));
    THI_TRY(check_posterior(c, s));
out:
    return status;
}

/* --- the fixed point ---------------------------------------------------------------------------------------------- */

/* Marginals, sums and what the likelihood says there. */
static thiele_status look(oracle_case *c, scene *s)
{
    thi_natural_zero(&s->part);
    thiele_status status = thi_sparse_marginals(&s->sparse, 1, c->ctx, s->blocks, s->block, &s->part);
    return status == THIELE_OK ? thi_expect_block(&s->expect, c->ctx, 0, s->X.cols, s->y.data, s->mu.data, s->v.data,
                                                  s->E.data, s->g.data, s->h.data, NULL)
                               : status;
}

static thiele_status converge(oracle_case *c, scene *s)
{
    double taken = 0.0;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < STEPS; i++) {
        THI_TRY(look(c, s));
        thi_natural_mix(&s->sums, 0.0, &s->part, 1.0);
        THI_TRY(thi_sparse_step(&s->sparse, 1, c->ctx, s->blocks, s->block, RHO, &s->part, &s->sums, &taken));
    }
    THI_TRY(look(c, s));
out:
    return status;
}

static thiele_status check_gradient(oracle_case *c, scene *s)
{
    thi_matrix theta = {0};
    double value = 0.0, none = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&theta, c->ctx, thiele_kernel_parameters(s->kernel), 1));
    thi_sparse_bar bar = {theta.data, &none, &none, NULL};
    THI_TRY(thi_sparse_pull(&s->sparse, c->ctx, s->blocks, s->block, 1.0, &value, &bar));
    THI_TRY(oracle_check(c, "grad_log_theta", ORACLE_VECTOR, theta));
out:
    thi_free(theta.data);
    return status;
}

static thiele_status check_fixed_point(oracle_case *c, scene *s)
{
    thiele_status status = THIELE_OK;
    THI_TRY(converge(c, s));
    double bound = thi_sparse_evidence(&s->sparse, &s->sums);
    for (int64_t b = 0; b < s->blocks; b++) {
        bound += thi_block_slack(&s->block[b], s->E.data + s->start[b]);
    }
    THI_TRY(check_rows(c, s, "lam", s->lambda));
    THI_TRY(check_rows(c, s, "nu", s->nu));
    THI_TRY(oracle_check_number(c, "bound", bound));
    THI_TRY(check_posterior(c, s));
    THI_TRY(check_gradient(c, s));
out:
    return status;
}

/* Does a check with the fields of one part of "expected", all of which it must look at. */
static thiele_status check_part(oracle_case *c, scene *s, const char *part,
                                thiele_status (*check)(oracle_case *c, scene *s))
{
    json_t *all = c->expected;
    c->expected = json_object_get(all, part);
    thiele_status status = check(c, s);
    if (status == THIELE_OK && json_object_size(c->expected) > 0) {
        const char *field = json_object_iter_key(json_object_iter(c->expected));
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "field '%s' of '%s' is not one that is computed", field, part);
    }
    c->expected = all;
    if (status == THIELE_OK) {
        json_object_del(c->expected, part);
    }
    return status;
}

thiele_status oracle_blocksites(oracle_case *c)
{
    scene s;
    thiele_status status = THIELE_OK;
    THI_TRY(scene_open(c, &s));
    THI_TRY(check_part(c, &s, "given", check_given));
    THI_TRY(check_part(c, &s, "fixed_point", check_fixed_point));
out:
    scene_close(&s);
    return status;
}
