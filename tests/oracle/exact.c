/* exact_gpr_*: the log marginal likelihood of exact regression, its gradient, and predictions at Xtest. */
#include "oracle.h"

#include "posterior/exact.h"
#include "posterior/predictor.h"

static thiele_status check_gradient(oracle_case *c, thi_exact *exact, const thi_prior *prior)
{
    thi_matrix theta_bar = {0};
    double log_noise_bar = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&theta_bar, c->ctx, thiele_kernel_parameters(prior->kernel), 1));
    THI_TRY(thi_exact_gradient(exact, c->ctx, prior, theta_bar.data, NULL, &log_noise_bar));
    THI_TRY(oracle_check(c, "grad_log_theta", ORACLE_VECTOR, theta_bar));
    THI_TRY(oracle_check_number(c, "grad_log_noise", log_noise_bar));
out:
    thi_free(theta_bar.data);
    return status;
}

static thiele_status check_marginals(oracle_case *c, const thi_predictor *predictor, thi_matrix X, double noise)
{
    thi_matrix mean = {0}, variance = {0};
    int64_t clipped = 0;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, X.cols, 1));
    THI_TRY(thi_matrix_alloc(&variance, c->ctx, X.cols, 1));
    THI_TRY(thi_predictor_marginals(predictor, c->ctx, X.cols, X.data, mean.data, variance.data, &clipped));
    THI_TRY(oracle_check(c, "pred_mean", ORACLE_VECTOR, mean));
    THI_TRY(oracle_check(c, "pred_var_latent", ORACLE_VECTOR, variance));
    for (int64_t i = 0; i < X.cols; i++) {
        variance.data[i] += noise;
    }
    THI_TRY(oracle_check(c, "pred_var_noisy", ORACLE_VECTOR, variance));
out:
    thi_free(mean.data);
    thi_free(variance.data);
    return status;
}

static thiele_status check_joint(oracle_case *c, const thi_predictor *predictor, thi_matrix X)
{
    thi_matrix mean = {0}, covariance = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, X.cols, 1));
    THI_TRY(thi_matrix_alloc(&covariance, c->ctx, X.cols, X.cols));
    THI_TRY(thi_predictor_joint(predictor, c->ctx, 0, X.cols, X.data, mean.data, covariance.data));
    THI_TRY(oracle_check(c, "pred_cov_latent", ORACLE_MATRIX, covariance));
out:
    thi_free(mean.data);
    thi_free(covariance.data);
    return status;
}

/* The gradient uses up the factor, so the regression is conditioned once more before it is frozen. */
static thiele_status check_regression(oracle_case *c, const thi_prior *prior, double noise, thi_matrix X, thi_matrix y,
                                      thi_matrix Xtest)
{
    thi_exact exact = {0};
    thi_predictor predictor = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_exact_open(&exact, c->ctx, X.cols, X.data, y.data));
    THI_TRY(thi_exact_condition(&exact, c->ctx, prior, noise));
    THI_TRY(oracle_check_number(c, "log_marginal_likelihood", exact.log_marginal));
    THI_TRY(check_gradient(c, &exact, prior));
    THI_TRY(thi_exact_condition(&exact, c->ctx, prior, noise));
    THI_TRY(thi_predictor_freeze(&predictor, c->ctx, &exact, prior));
    THI_TRY(check_marginals(c, &predictor, Xtest, noise));
    THI_TRY(check_joint(c, &predictor, Xtest));
out:
    thi_exact_close(&exact);
    thi_predictor_clear(&predictor);
    return status;
}

thiele_status oracle_exact_gpr(oracle_case *c)
{
    thi_matrix X = {0}, y = {0}, Xtest = {0};
    thiele_kernel *kernel = NULL;
    thi_prior prior = {.mean = THI_MEAN_ZERO};
    double noise = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "X", ORACLE_ROWS, &X));
    THI_TRY(oracle_read(c, c->inputs, "y", ORACLE_VECTOR, &y));
    THI_TRY(oracle_read(c, c->inputs, "Xtest", ORACLE_ROWS, &Xtest));
    THI_TRY(oracle_expect_shape(c, "y", y, X.cols, 1));
    THI_TRY(oracle_expect_shape(c, "Xtest", Xtest, X.rows, Xtest.cols));
    THI_TRY(oracle_read_number(c, c->inputs, "noise_variance", &noise));
    THI_TRY(oracle_read_kernel(c, (int)X.rows, &kernel));
    prior.kernel = kernel;
    THI_TRY(check_regression(c, &prior, noise, X, y, Xtest));
out:
    thi_free(X.data);
    thi_free(y.data);
    thi_free(Xtest.data);
    thiele_kernel_destroy(kernel);
    return status;
}
