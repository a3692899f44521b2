/* tightbound_*: the tighter collapsed bound with its gradient, beside Titsias' of 2009 and the evidence. */
#include "oracle.h"

#include "posterior/exact.h"
#include "posterior/sparse.h"

typedef struct table {
    thi_matrix X, y, Z; /* D x N, N x 1, D x M */
    thiele_kernel *kernel;
    double noise;
    thi_sparse sparse;
    thi_natural sums;
} table;

static thiele_status table_open(oracle_case *c, table *t)
{
    *t = (table){0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "X", ORACLE_ROWS, &t->X));
    THI_TRY(oracle_read(c, c->inputs, "y", ORACLE_VECTOR, &t->y));
    THI_TRY(oracle_read(c, c->inputs, "Z", ORACLE_ROWS, &t->Z));
    THI_TRY(oracle_expect_shape(c, "y", t->y, t->X.cols, 1));
    THI_TRY(oracle_expect_shape(c, "Z", t->Z, t->X.rows, t->Z.cols));
    THI_TRY(oracle_read_number(c, c->inputs, "noise", &t->noise));
    THI_TRY(oracle_read_kernel(c, (int)t->X.rows, &t->kernel));
    thi_sparse_shape shape = {.M = t->Z.cols, .largest = t->X.cols, .weight = {1.0, 0.0, 0.0}, .gradients = true};
    THI_TRY(thi_sparse_open(&t->sparse, c->ctx, &shape, (int)t->X.rows));
    THI_TRY(thi_natural_open(&t->sums, c->ctx, t->Z.cols));
    thi_prior prior = {t->kernel, THI_MEAN_ZERO, NULL};
    THI_TRY(thi_sparse_prepare(&t->sparse, c->ctx, &prior, t->Z.data, t->noise));
out:
    return status;
}

static void table_close(table *t)
{
    thi_sparse_close(&t->sparse);
    thi_natural_close(&t->sums);
    thi_free(t->X.data);
    thi_free(t->y.data);
    thi_free(t->Z.data);
    thiele_kernel_destroy(t->kernel);
}

static thi_block rows_of(const table *t)
{
    return (thi_block){.n = t->X.cols, .X = t->X.data, .y = t->y.data};
}

static thiele_status check_bound(oracle_case *c, table *t, const char *field, thi_penalty penalty)
{
    thi_block block = rows_of(t);
    thiele_status status = THIELE_OK;
    t->sparse.shape.penalty = penalty;
    thi_natural_zero(&t->sums);
    THI_TRY(thi_sparse_sum(&t->sparse, c->ctx, 1, &block, 1.0, &t->sums));
    THI_TRY(thi_sparse_set(&t->sparse, c->ctx, &t->sums));
    THI_TRY(oracle_check_number(c, field, thi_sparse_evidence(&t->sparse, &t->sums)));
out:
    return status;
}

static thiele_status check_gradient(oracle_case *c, table *t)
{
    thi_block block = rows_of(t);
    thi_matrix theta = {0};
    double value = 0.0, log_noise = 0.0, none = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&theta, c->ctx, thiele_kernel_parameters(t->kernel), 1));
    thi_sparse_bar bar = {theta.data, &none, &log_noise, NULL};
    THI_TRY(thi_sparse_pull(&t->sparse, c->ctx, 1, &block, 1.0, &value, &bar));
    THI_TRY(oracle_check(c, "grad_log_theta", ORACLE_VECTOR, theta));
    THI_TRY(oracle_check_number(c, "grad_log_noise", log_noise));
out:
    thi_free(theta.data);
    return status;
}

static thiele_status check_evidence(oracle_case *c, const table *t)
{
    thi_prior prior = {t->kernel, THI_MEAN_ZERO, NULL};
    thi_exact exact = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_exact_open(&exact, c->ctx, t->X.cols, t->X.data, t->y.data));
    THI_TRY(thi_exact_condition(&exact, c->ctx, &prior, t->noise));
    THI_TRY(oracle_check_number(c, "log_marginal_likelihood", exact.log_marginal));
out:
    thi_exact_close(&exact);
    return status;
}

thiele_status oracle_tightbound(oracle_case *c)
{
    table t;
    thiele_status status = THIELE_OK;
    THI_TRY(table_open(c, &t));
    THI_TRY(check_bound(c, &t, "vfe_bound", THI_PENALTY_TRACE));
    THI_TRY(check_bound(c, &t, "bound", THI_PENALTY_LOG));
    THI_TRY(check_gradient(c, &t));
    THI_TRY(check_evidence(c, &t));
out:
    table_close(&t);
    return status;
}
