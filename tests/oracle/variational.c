/*
 * svgp_elbo_*: the bound of one full Gaussian q(u), its parts, gradients and predictions. vfe_*: the collapsed bound of
 * Titsias, which a natural step of size 1 reaches. sites_*: q(u) from given sites, and three natural steps.
 */
#include "problem.h"

#include <string.h>

/* A column of results as a list of the file. */
static thiele_status check_vector(oracle_case *c, const char *field, thi_matrix A)
{
    return oracle_check(c, field, ORACLE_VECTOR, thi_matrix_view(A.data, A.rows, 1, A.rows));
}

/* The sum over rows of the first parameter's derivative: of the log noise. */
static double noise_gradient(const problem *p)
{
    double sum = 0.0;
    for (int64_t i = 0; i < p->dphi.cols; i++) {
        sum += p->dphi.data[i * p->dphi.rows];
    }
    return sum;
}

static thiele_status check_kernel_gradients(oracle_case *c, const problem *p)
{
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_check(c, "grad_log_theta", ORACLE_VECTOR, p->theta_bar));
    THI_TRY(oracle_check(c, "grad_Z", ORACLE_ROWS, p->Z_bar));
    if (json_object_get(c->expected, "grad_log_noise") != NULL) {
        THI_TRY(oracle_check_number(c, "grad_log_noise", noise_gradient(p)));
    }
out:
    return status;
}

/* --- svgp_elbo_* -------------------------------------------------------------------------------------------------- */

static thiele_status check_minibatch(oracle_case *c, problem *p)
{
    thi_matrix rows = {0}, X = {0}, y = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "minibatch", ORACLE_VECTOR, &rows));
    THI_TRY(thi_matrix_alloc(&X, c->ctx, p->X.rows, rows.rows));
    THI_TRY(thi_matrix_alloc(&y, c->ctx, rows.rows, 1));
    for (int64_t i = 0; i < rows.rows; i++) {
        int64_t row = (int64_t)rows.data[i];
        if (row < 0 || row >= p->X.cols) {
            status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'minibatch' names row %lld", (long long)row);
            goto out;
        }
        memcpy(X.data + i * X.ld, p->X.data + row * p->X.ld, (size_t)X.rows * sizeof(double));
        y.data[i] = p->y.data[row];
    }
    THI_TRY(problem_begin(c, p, NULL));
    THI_TRY(problem_rows(c, p, rows.rows, X.data, y.data, (double)p->X.cols / (double)rows.rows, false));
    THI_TRY(thi_variational_end(p->v, c->ctx, p->expected, &p->kl, NULL));
    THI_TRY(oracle_check_number(c, "elbo_minibatch", problem_bound(p)));
out:
    thi_free(rows.data);
    thi_free(X.data);
    thi_free(y.data);
    return status;
}

static thiele_status check_bound(oracle_case *c, problem *p)
{
    int64_t M = p->shape.inducing;
    thi_matrix S_bar = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(problem_begin(c, p, NULL));
    THI_TRY(problem_rows(c, p, p->X.cols, p->X.data, p->y.data, 1.0, true));
    THI_TRY(problem_end(c, p, false));
    THI_TRY(check_vector(c, "marginal_mean", p->mu));
    THI_TRY(check_vector(c, "marginal_var", p->variance));
    THI_TRY(oracle_check_number(c, "elbo", problem_bound(p)));
    THI_TRY(oracle_check_number(c, "ell", problem_expected(p)));
    THI_TRY(oracle_check_number(c, "kl", p->kl));
    THI_TRY(oracle_check(c, "grad_m", ORACLE_VECTOR, thi_matrix_view(p->q_bar.data, M, 1, M)));
    THI_TRY(thi_matrix_alloc(&S_bar, c->ctx, M, M));
    THI_TRY(problem_unpack(c, p, 0, p->q_bar.data, S_bar));
    THI_TRY(oracle_check(c, "grad_S", ORACLE_MATRIX, S_bar));
    THI_TRY(check_kernel_gradients(c, p));
out:
    thi_free(S_bar.data);
    return status;
}

thiele_status oracle_svgp(oracle_case *c)
{
    problem p;
    thi_matrix m = {0}, S = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(problem_open(c, &p, 1, false, false));
    THI_TRY(oracle_read(c, c->inputs, "m", ORACLE_VECTOR, &m));
    THI_TRY(oracle_read(c, c->inputs, "S", ORACLE_MATRIX, &S));
    THI_TRY(oracle_expect_shape(c, "m", m, p.shape.inducing, 1));
    THI_TRY(problem_pack(c, &p, 0, m.data, S));
    THI_TRY(check_bound(c, &p));
    THI_TRY(problem_check_predictions(c, &p, 0.0));
    THI_TRY(check_minibatch(c, &p));
out:
    thi_free(m.data);
    thi_free(S.data);
    problem_close(&p);
    return status;
}

/* --- vfe_* -------------------------------------------------------------------------------------------------------- */

/* One step from q = p leads to the optimum, where the gradient at fixed sites is that of the collapsed bound. */
static thiele_status check_collapsed(oracle_case *c, problem *p, thi_sites *sites)
{
    double noise = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read_number(c, c->inputs, "noise_variance", &noise));
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_rows(c, p, p->X.cols, p->X.data, p->y.data, 1.0, true));
    thi_variational_step(p->v, 1.0, sites);
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_rows(c, p, p->X.cols, p->X.data, p->y.data, 1.0, true));
    THI_TRY(problem_end(c, p, true));
    THI_TRY(oracle_check_number(c, "bound", problem_bound(p)));
    THI_TRY(check_kernel_gradients(c, p));
    THI_TRY(problem_check_q(c, p, "qu_mean", "qu_cov"));
    THI_TRY(problem_check_predictions(c, p, noise));
out:
    return status;
}

thiele_status oracle_vfe(oracle_case *c)
{
    problem p;
    thi_sites sites = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(problem_open(c, &p, 1, false, true));
    THI_TRY(thi_sites_alloc(&sites, c->ctx, p.shape.inducing));
    THI_TRY(check_collapsed(c, &p, &sites));
out:
    thi_sites_free(&sites);
    problem_close(&p);
    return status;
}

/* --- sites_* ------------------------------------------------------------------------------------------------------ */

static void clear_sites(thi_sites *sites)
{
    int64_t M = sites->sum.T.rows;
    memset(sites->sum.T.data, 0, (size_t)(M * M) * sizeof(double));
    memset(sites->sum.t, 0, (size_t)M * sizeof(double));
}

/* From zero sites, where m = 0, a step of size 1 with g = nu and h = -lambda/2 has these sites. */
static thiele_status check_given(oracle_case *c, problem *p, thi_sites *sites)
{
    thi_matrix lambda = {0}, nu = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "given_lambda", ORACLE_VECTOR, &lambda));
    THI_TRY(oracle_read(c, c->inputs, "given_nu", ORACLE_VECTOR, &nu));
    THI_TRY(oracle_expect_shape(c, "given_lambda", lambda, p->X.cols, 1));
    THI_TRY(oracle_expect_shape(c, "given_nu", nu, p->X.cols, 1));
    for (int64_t i = 0; i < lambda.rows; i++) {
        lambda.data[i] *= -0.5;
    }
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(thi_variational_marginals(p->v, c->ctx, p->X.cols, p->X.data, p->mu.data, p->variance.data));
    THI_TRY(thi_variational_pull(p->v, c->ctx, nu.data, lambda.data));
    thi_variational_step(p->v, 1.0, sites);
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_check_q(c, p, "given_m", "given_S"));
out:
    thi_free(lambda.data);
    thi_free(nu.data);
    return status;
}

/* The rows' own sites, which the library does not keep on a minibatch. */
static void step_rows(const problem *p, double rho, thi_matrix lambda, thi_matrix nu)
{
    for (int64_t i = 0; i < lambda.rows; i++) {
        double g = p->g.data[i], h = p->h.data[i];
        lambda.data[i] = (1.0 - rho) * lambda.data[i] - 2.0 * rho * h;
        nu.data[i] = (1.0 - rho) * nu.data[i] + rho * (g - 2.0 * h * p->mu.data[i]);
    }
}

/* One natural step; c->expected is that of the step. */
static thiele_status check_step(oracle_case *c, problem *p, thi_sites *sites, double rho, thi_matrix lambda,
                                thi_matrix nu)
{
    thiele_status status = THIELE_OK;
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_rows(c, p, p->X.cols, p->X.data, p->y.data, 1.0, true));
    THI_TRY(check_vector(c, "marginal_mean_before", p->mu));
    THI_TRY(check_vector(c, "marginal_var_before", p->variance));
    THI_TRY(check_vector(c, "E", p->E));
    THI_TRY(check_vector(c, "dE_dmean", p->g));
    THI_TRY(check_vector(c, "dE_dvar", p->h));
    step_rows(p, rho, lambda, nu);
    THI_TRY(check_vector(c, "site_lambda", lambda));
    THI_TRY(check_vector(c, "site_nu", nu));
    thi_variational_step(p->v, rho, sites);
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_check_q(c, p, "m", "S"));
    THI_TRY(problem_rows(c, p, p->X.cols, p->X.data, p->y.data, 1.0, false));
    THI_TRY(thi_variational_end(p->v, c->ctx, NULL, &p->kl, NULL));
    THI_TRY(oracle_check_number(c, "elbo", problem_bound(p)));
    if (json_object_size(c->expected) > 0) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "a step has a field that is not computed");
    }
out:
    return status;
}

static thiele_status check_steps(oracle_case *c, problem *p, thi_sites *sites)
{
    thi_matrix sizes = {0}, lambda = {0}, nu = {0};
    thiele_status status = THIELE_OK;
    json_t *steps = json_object_get(c->expected, "steps");
    THI_TRY(oracle_read(c, c->inputs, "step_sizes", ORACLE_VECTOR, &sizes));
    THI_TRY(thi_matrix_alloc(&lambda, c->ctx, p->X.cols, 1));
    THI_TRY(thi_matrix_alloc(&nu, c->ctx, p->X.cols, 1));
    if (json_array_size(steps) != (size_t)sizes.rows) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'steps' and 'step_sizes' differ in length");
        goto out;
    }
    clear_sites(sites);
    for (int64_t i = 0; i < sizes.rows; i++) {
        oracle_case step = *c;
        step.expected = json_array_get(steps, (size_t)i);
        THI_TRY(check_step(&step, p, sites, sizes.data[i], lambda, nu));
    }
    json_object_del(c->expected, "steps");
out:
    thi_free(sizes.data);
    thi_free(lambda.data);
    thi_free(nu.data);
    return status;
}

thiele_status oracle_sites(oracle_case *c)
{
    problem p;
    thi_sites sites = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(problem_open(c, &p, 1, false, true));
    THI_TRY(thi_sites_alloc(&sites, c->ctx, p.shape.inducing));
    THI_TRY(check_given(c, &p, &sites));
    THI_TRY(check_steps(c, &p, &sites));
out:
    thi_sites_free(&sites);
    problem_close(&p);
    return status;
}
