/*
 * decoupled_*: the plain form with plain and generalised bases: moments, KL, bound, gradients, predictions. Covariances
 * carry s2; where the case says "unit" (basis functions carry none, basis and data its root) its a and L are s times
 * those that give the same process here, and s depends on the log variance: d/dlog s2 has -(a.abar + L.Lbar)/2 beside.
 */
#include "oracle.h"

#include <math.h>
#include <string.h>

#include "expect/expect.h"
#include "posterior/decoupled.h"

typedef struct decoupled {
    thi_matrix X, y, Xtest, alpha, beta, c_alpha, c_beta, a, L;
    thiele_kernel *kernel;
    thiele_likelihood *lik;
    double root; /* sqrt(s2) where the scaling is "unit", else 1 */
    bool general;
    thi_decoupled *engine;
    thi_decoupled_q q;
    thi_natural sites; /* L */
    thi_matrix mu, v, E, g, h, dphi;
    thi_matrix abar, alphabar, calphabar, betabar, cbetabar, Lbar, theta;
} decoupled;

static thiele_status read_basis(oracle_case *c, decoupled *d)
{
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "X", ORACLE_ROWS, &d->X));
    THI_TRY(oracle_read(c, c->inputs, "y", ORACLE_VECTOR, &d->y));
    THI_TRY(oracle_read(c, c->inputs, "Xtest", ORACLE_ROWS, &d->Xtest));
    THI_TRY(oracle_read(c, c->inputs, "alpha", ORACLE_ROWS, &d->alpha));
    THI_TRY(oracle_read(c, c->inputs, "beta", ORACLE_ROWS, &d->beta));
    THI_TRY(oracle_read(c, c->inputs, "c_alpha", ORACLE_ROWS, &d->c_alpha));
    THI_TRY(oracle_read(c, c->inputs, "c_beta", ORACLE_ROWS, &d->c_beta));
    THI_TRY(oracle_read(c, c->inputs, "a", ORACLE_VECTOR, &d->a));
    THI_TRY(oracle_read(c, c->inputs, "L", ORACLE_MATRIX, &d->L));
    THI_TRY(oracle_expect_shape(c, "y", d->y, d->X.cols, 1));
    THI_TRY(oracle_expect_shape(c, "Xtest", d->Xtest, d->X.rows, d->Xtest.cols));
    THI_TRY(oracle_expect_shape(c, "alpha", d->alpha, d->X.rows, d->a.rows));
    THI_TRY(oracle_expect_shape(c, "c_alpha", d->c_alpha, d->X.rows, d->a.rows));
    THI_TRY(oracle_expect_shape(c, "beta", d->beta, d->X.rows, d->L.rows));
    THI_TRY(oracle_expect_shape(c, "c_beta", d->c_beta, d->X.rows, d->L.rows));
    THI_TRY(oracle_expect_shape(c, "L", d->L, d->L.rows, d->L.rows));
out:
    return status;
}

static void take_logs(thi_matrix A)
{
    for (int64_t i = 0; i < A.rows * A.cols; i++) {
        A.data[i] = log(A.data[i]);
    }
}

static void scale_all(thi_matrix A, double by)
{
    for (int64_t i = 0; i < A.rows * A.cols; i++) {
        A.data[i] *= by;
    }
}

static thiele_status open_results(oracle_case *c, decoupled *d)
{
    const struct {
        thi_matrix *matrix;
        int64_t rows, cols;
    } all[] = {
        {&d->mu, d->X.cols, 1},
        {&d->v, d->X.cols, 1},
        {&d->E, d->X.cols, 1},
        {&d->g, d->X.cols, 1},
        {&d->h, d->X.cols, 1},
        {&d->dphi, 1, d->X.cols},
        {&d->abar, d->a.rows, 1},
        {&d->alphabar, d->X.rows, d->a.rows},
        {&d->calphabar, d->X.rows, d->a.rows},
        {&d->betabar, d->X.rows, d->L.rows},
        {&d->cbetabar, d->X.rows, d->L.rows},
        {&d->Lbar, d->L.rows, d->L.rows},
        {&d->theta, thiele_kernel_parameters(d->kernel), 1},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; status == THIELE_OK && i < sizeof all / sizeof *all; i++) {
        status = thi_matrix_alloc(all[i].matrix, c->ctx, all[i].rows, all[i].cols);
    }
    return status;
}

static thiele_status decoupled_open(oracle_case *c, decoupled *d)
{
    const char *basis = NULL, *scaling = NULL;
    thiele_status status = THIELE_OK;
    *d = (decoupled){.root = 1.0};
    THI_TRY(read_basis(c, d));
    THI_TRY(oracle_read_kernel(c, (int)d->X.rows, &d->kernel));
    THI_TRY(oracle_read_likelihood(c, json_object_get(c->inputs, "likelihood"), &d->lik));
    THI_TRY(oracle_read_string(c, c->inputs, "basis", &basis));
    THI_TRY(oracle_read_string(c, c->inputs, "basis_scaling", &scaling));
    d->general = strcmp(basis, "generalized") == 0;
    if (strcmp(scaling, "unit") == 0) {
        d->root = sqrt(thi_leaf_variance(&d->kernel->leaf[0]));
        scale_all(d->a, 1.0 / d->root);
        scale_all(d->L, 1.0 / d->root);
    }
    take_logs(d->c_alpha);
    take_logs(d->c_beta);
    d->q = (thi_decoupled_q){.alpha = {d->a.rows, d->alpha.data, d->general ? d->c_alpha.data : NULL},
                             .beta = {d->L.rows, d->beta.data, d->general ? d->c_beta.data : NULL},
                             .a = thi_matrix_view(d->a.data, d->a.rows, 1, d->a.rows),
                             .sites = &d->sites};
    d->sites.T = d->L;
    thi_decoupled_shape shape = {
        .D = (int)d->X.rows, .latents = 1, .beta = d->L.rows, .rows = d->X.cols, .columns = d->a.rows};
    THI_TRY(open_results(c, d));
    THI_TRY(thi_decoupled_open(&d->engine, c->ctx, &shape));
out:
    return status;
}

static void decoupled_close(decoupled *d)
{
    thi_matrix *all[] = {&d->X,       &d->y,        &d->Xtest, &d->alpha, &d->beta,     &d->c_alpha,
                         &d->c_beta,  &d->a,        &d->L,     &d->mu,    &d->v,        &d->E,
                         &d->g,       &d->h,        &d->dphi,  &d->abar,  &d->alphabar, &d->calphabar,
                         &d->betabar, &d->cbetabar, &d->Lbar,  &d->theta};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        thi_free(all[i]->data);
    }
    thi_decoupled_close(d->engine);
    thiele_kernel_destroy(d->kernel);
    thiele_likelihood_destroy(d->lik);
}

/* E, g, h of all rows, and the gradient of the log noise. */
static thiele_status expect(oracle_case *c, decoupled *d, double *ell)
{
    thi_expect provider = {0};
    thiele_status status = thi_expect_open(&provider, c->ctx, d->lik, NULL);
    if (status == THIELE_OK) {
        status = thi_expect_block(&provider, c->ctx, 0, d->X.cols, d->y.data, d->mu.data, d->v.data, d->E.data,
                                  d->g.data, d->h.data, d->lik->parameters > 0 ? d->dphi.data : NULL);
    }
    *ell = 0.0;
    for (int64_t i = 0; i < d->X.cols; i++) {
        *ell += d->E.data[i];
    }
    thi_expect_close(&provider);
    return status;
}

static thiele_status check_values(oracle_case *c, decoupled *d)
{
    thi_prior prior = {d->kernel, THI_MEAN_ZERO, NULL};
    int64_t all[64];
    thi_decoupled_columns columns = {d->a.rows, all};
    double ell = 0.0, kl = 0.0;
    thi_decoupled_bar bar = {.theta = d->theta.data,
                             .a = thi_matrix_view(d->abar.data, d->a.rows, 1, d->a.rows),
                             .alpha = d->alphabar.data,
                             .log_c_alpha = d->general ? d->calphabar.data : NULL,
                             .beta = d->betabar.data,
                             .log_c_beta = d->general ? d->cbetabar.data : NULL,
                             .L = &d->Lbar};
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < 64; i++) {
        all[i] = i;
    }
    THI_TRY(thi_decoupled_begin(d->engine, c->ctx, &prior, &d->q));
    THI_TRY(thi_decoupled_marginals(d->engine, c->ctx, d->X.cols, d->X.data, d->mu.data, d->v.data));
    THI_TRY(expect(c, d, &ell));
    THI_TRY(thi_decoupled_pull(d->engine, c->ctx, d->g.data, d->h.data, &bar));
    THI_TRY(thi_decoupled_end(d->engine, c->ctx, &columns, &kl, &bar));
    THI_TRY(oracle_check(c, "mean", ORACLE_VECTOR, d->mu));
    THI_TRY(oracle_check(c, "var", ORACLE_VECTOR, d->v));
    THI_TRY(oracle_check_number(c, "ell", ell));
    THI_TRY(oracle_check_number(c, "kl", kl));
    THI_TRY(oracle_check_number(c, "elbo", ell - kl));
out:
    return status;
}

/* From the scaling of the library to that of the case. */
static void rescale_gradients(decoupled *d)
{
    const thi_leaf *leaf = &d->kernel->leaf[0];
    double along = 0.0;
    for (int64_t i = 0; i < d->a.rows; i++) {
        along += d->a.data[i] * d->abar.data[i];
    }
    for (int64_t i = 0; i < d->L.rows * d->L.rows; i++) {
        along += d->L.data[i] * d->Lbar.data[i];
    }
    if (d->root != 1.0) {
        d->theta.data[leaf->first + leaf->lengthscales] -= 0.5 * along;
    }
    scale_all(d->abar, 1.0 / d->root);
    scale_all(d->Lbar, 1.0 / d->root);
}

static thiele_status check_gradients(oracle_case *c, decoupled *d)
{
    double log_noise = 0.0;
    thiele_status status = THIELE_OK;
    rescale_gradients(d);
    THI_TRY(oracle_check(c, "grad_a", ORACLE_VECTOR, d->abar));
    THI_TRY(oracle_check(c, "grad_alpha", ORACLE_ROWS, d->alphabar));
    THI_TRY(oracle_check(c, "grad_L", ORACLE_MATRIX, d->Lbar));
    THI_TRY(oracle_check(c, "grad_beta", ORACLE_ROWS, d->betabar));
    THI_TRY(oracle_check(c, "grad_log_theta", ORACLE_VECTOR, d->theta));
    if (d->general) {
        THI_TRY(oracle_check(c, "grad_log_c_alpha", ORACLE_ROWS, d->calphabar));
        THI_TRY(oracle_check(c, "grad_log_c_beta", ORACLE_ROWS, d->cbetabar));
    }
    for (int64_t i = 0; i < d->X.cols; i++) {
        log_noise += d->dphi.data[i];
    }
    if (d->lik->parameters > 0) {
        THI_TRY(oracle_check_number(c, "grad_log_noise", log_noise));
    }
out:
    return status;
}

static thiele_status check_predictions(oracle_case *c, decoupled *d)
{
    thi_predictor predictor = {0};
    thi_matrix mean = {0}, variance = {0};
    int64_t clipped = 0, n = d->Xtest.cols;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&mean, c->ctx, n, 1));
    THI_TRY(thi_matrix_alloc(&variance, c->ctx, n, 1));
    THI_TRY(thi_decoupled_freeze(d->engine, c->ctx, 0, &predictor));
    THI_TRY(thi_predictor_marginals(&predictor, c->ctx, n, d->Xtest.data, mean.data, variance.data, &clipped));
    THI_TRY(oracle_check(c, "pred_mean", ORACLE_VECTOR, mean));
    THI_TRY(oracle_check(c, "pred_var_latent", ORACLE_VECTOR, variance));
out:
    thi_predictor_clear(&predictor);
    thi_free(mean.data);
    thi_free(variance.data);
    return status;
}

thiele_status oracle_decoupled(oracle_case *c)
{
    decoupled d;
    thiele_status status;
    THI_TRY(decoupled_open(c, &d));
    THI_TRY(check_values(c, &d));
    THI_TRY(check_gradients(c, &d));
    THI_TRY(check_predictions(c, &d));
out:
    decoupled_close(&d);
    return status;
}
