/*
 * aaci_omega_*, aaci_cdf_*: the auxiliary variable, its moments and its law by numerical inversion. aaci_cavi_*:
 * coordinate ascent on a dense model, which natural steps of size 1 over Z = X are. aaci_svi_*: its stochastic form.
 * aaci_posterior_*: the fixed point's bound, and the Gibbs sampler within its Monte Carlo error.
 */
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit/chains.h"
#include "likelihood/augment.h"
#include "likelihood/inversion.h"

/* The forms of these cases have the same phi for every y. */
static const double ANY_Y = 1.0;

static thiele_status read_form(oracle_case *c, thiele_likelihood **lik, const thi_form **form)
{
    thiele_status status = oracle_read_likelihood(c, json_object_get(c->inputs, "likelihood"), lik);
    if (status != THIELE_OK) {
        return status;
    }
    *form = thi_is_augmented(*lik) ? (*lik)->ops->augmentation->form : NULL;
    return *form != NULL
               ? THIELE_OK
               : thi_fail(c->ctx, THIELE_ERROR_FORMAT, "the likelihood '%s' has no form", thiele_likelihood_name(*lik));
}

/* --- omega -------------------------------------------------------------------------------------------------------- */

/* The same moments in other conventions, where the case has them: a Polya-Gamma variable is twice omega. */
static thiele_status check_scaled(oracle_case *c, const char *field, double scale, thi_matrix moment)
{
    if (json_object_get(c->expected, field) == NULL) {
        return THIELE_OK;
    }
    for (int64_t i = 0; i < moment.rows; i++) {
        moment.data[i] *= scale;
    }
    return oracle_check(c, field, ORACLE_VECTOR, moment);
}

/* Moments of omega at a list of r, or of their roots; a field that is NULL is not looked at. */
static thiele_status check_moments(oracle_case *c, const thiele_likelihood *lik, const thi_form *form,
                                   const char *input, bool squared, const char *const *field)
{
    thi_matrix at = {0}, out[3] = {{0}};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, input, ORACLE_VECTOR, &at));
    for (int k = 0; k < 3; k++) {
        THI_TRY(thi_matrix_alloc(&out[k], c->ctx, at.rows, 1));
    }
    for (int64_t i = 0; i < at.rows; i++) {
        thi_omega omega;
        form->omega(lik, ANY_Y, squared ? at.data[i] : at.data[i] * at.data[i], &omega);
        out[0].data[i] = omega.log_phi;
        out[1].data[i] = omega.mean;
        out[2].data[i] = omega.variance;
    }
    for (int k = 0; k < 3; k++) {
        if (field[k] != NULL) {
            THI_TRY(oracle_check(c, field[k], ORACLE_VECTOR, out[k]));
        }
    }
    THI_TRY(check_scaled(c, "polya_gamma_mean", 2.0, out[1]));
    THI_TRY(check_scaled(c, "polya_gamma_variance", 4.0, out[2]));
    THI_TRY(check_scaled(c, "omega_bar_if_h_is_half_f", 4.0, out[1]));
out:
    thi_free(at.data);
    for (int k = 0; k < 3; k++) {
        thi_free(out[k].data);
    }
    return status;
}

thiele_status oracle_omega(oracle_case *c)
{
    static const char *const field[] = {"log_phi", "omega_bar", "omega_var"};
    thiele_likelihood *lik = NULL;
    const thi_form *form = NULL;
    thiele_status status = read_form(c, &lik, &form);
    if (status == THIELE_OK) {
        status = check_moments(c, lik, form, "c2", true, field);
    }
    thiele_likelihood_destroy(lik);
    return status;
}

static double complex log_phi(const void *arg, double complex r)
{
    const thiele_likelihood *lik = arg;
    return lik->ops->augmentation->form->log_phi(lik, ANY_Y, r);
}

static thiele_status check_law(oracle_case *c, const thiele_likelihood *lik)
{
    thi_matrix x = {0}, at = {0}, F = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "x", ORACLE_VECTOR, &x));
    THI_TRY(oracle_read(c, c->inputs, "c", ORACLE_VECTOR, &at));
    THI_TRY(oracle_expect_shape(c, "c", at, x.rows, 1));
    THI_TRY(thi_matrix_alloc(&F, c->ctx, x.rows, 1));
    for (int64_t i = 0; i < x.rows; i++) {
        thi_omega_law law;
        thi_omega_law_open(&law, log_phi, lik, at.data[i] * at.data[i]);
        F.data[i] = thi_omega_law_cdf(&law, x.data[i], NULL, NULL);
    }
    THI_TRY(oracle_check(c, "F", ORACLE_VECTOR, F));
out:
    thi_free(x.data);
    thi_free(at.data);
    thi_free(F.data);
    return status;
}

thiele_status oracle_omega_cdf(oracle_case *c)
{
    static const char *const field[] = {NULL, "mean", "variance"};
    thiele_likelihood *lik = NULL;
    const thi_form *form = NULL;
    thiele_status status = read_form(c, &lik, &form);
    if (status == THIELE_OK) {
        status = check_moments(c, lik, form, "c_moments", false, field);
    }
    if (status == THIELE_OK) {
        status = check_law(c, lik);
    }
    thiele_likelihood_destroy(lik);
    return status;
}

/* --- coordinate ascent -------------------------------------------------------------------------------------------- */

/* How E is had from now on: "augmented", or NULL for the true one. */
static thiele_status use(oracle_case *c, problem *p, const char *method)
{
    thi_expect_close(&p->expect);
    return thi_expect_open(&p->expect, c->ctx, p->lik, method);
}

/* Both bounds of the present sites. */
static thiele_status check_bounds(oracle_case *c, problem *p, thi_sites *sites, const char *augmented,
                                  const char *original)
{
    static const char *const method[] = {"augmented", NULL};
    const char *const field[] = {augmented, original};
    thiele_status status = THIELE_OK;
    for (int i = 0; i < 2; i++) {
        THI_TRY(use(c, p, method[i]));
        THI_TRY(problem_begin(c, p, sites));
        THI_TRY(problem_rows(c, p, p->X.cols, p->X.data, p->y.data, 1.0, false));
        THI_TRY(thi_variational_end(p->v, c->ctx, NULL, &p->kl, NULL));
        THI_TRY(oracle_check_number(c, field[i], problem_bound(p)));
    }
    THI_TRY(use(c, p, "augmented"));
out:
    return status;
}

/* One step of size rho with these rows; omega (rows of them) is what it used: -h/gamma. */
static thiele_status ascend(oracle_case *c, problem *p, thi_sites *sites, double rho, int64_t n, const double *X,
                            const double *y, double *omega)
{
    double scale = (double)p->X.cols / (double)n;
    thiele_status status = THIELE_OK;
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_rows(c, p, n, X, y, scale, true));
    THI_TRY(thi_variational_end(p->v, c->ctx, NULL, &p->kl, NULL));
    for (int64_t i = 0; i < n; i++) {
        thi_coefficients of;
        p->lik->ops->augmentation->form->coefficients(p->lik, y[i], &of);
        omega[i] = -p->h.data[i] / scale / of.gamma;
    }
    thi_variational_step(p->v, rho, sites);
out:
    return status;
}

static thiele_status check_after(oracle_case *c, problem *p, thi_sites *sites, const double *omega)
{
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_check(c, "omega_bar", ORACLE_VECTOR, thi_matrix_view((double *)omega, p->X.cols, 1, p->X.cols)));
    THI_TRY(check_bounds(c, p, sites, "elbo_augmented", "elbo_original"));
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_check_q(c, p, "m", "S"));
    if (json_object_size(c->expected) > 0) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'after' has a field that is not computed");
    }
out:
    return status;
}

/* Iterates, checking where the case has numbers: "after" maps numbers of iterations, in any order, to them. */
static thiele_status check_ascent(oracle_case *c, problem *p, thi_sites *sites)
{
    json_t *after = json_object_get(c->expected, "after");
    thi_matrix omega = {0};
    thiele_status status = THIELE_OK;
    size_t left = json_object_size(after);
    THI_TRY(thi_matrix_alloc(&omega, c->ctx, p->X.cols, 1));
    for (int k = 1; left > 0 && k <= 100000; k++) {
        char number[16];
        snprintf(number, sizeof number, "%d", k);
        THI_TRY(ascend(c, p, sites, 1.0, p->X.cols, p->X.data, p->y.data, omega.data));
        oracle_case then = *c;
        then.expected = json_object_get(after, number);
        if (then.expected != NULL) {
            THI_TRY(check_after(&then, p, sites, omega.data));
            left--;
        }
    }
    if (left > 0) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'after' has a name that is no number of iterations");
        goto out;
    }
    json_object_del(c->expected, "after");
out:
    thi_free(omega.data);
    return status;
}

thiele_status oracle_cavi(oracle_case *c)
{
    problem p;
    thi_sites sites = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(problem_open(c, &p, 1, false, true));
    THI_TRY(thi_sites_alloc(&sites, c->ctx, p.shape.inducing));
    THI_TRY(check_bounds(c, &p, &sites, "elbo_augmented_start", "elbo_original_start"));
    THI_TRY(check_ascent(c, &p, &sites));
out:
    thi_sites_free(&sites);
    problem_close(&p);
    return status;
}

/* --- minibatches -------------------------------------------------------------------------------------------------- */

/* S^-1 m and -S^-1/2 of q(u), from sites in w = L^-1 u: L^-T t and -L^-T (I + T) L^-1 / 2. */
static thiele_status check_natural(oracle_case *c, const thi_sites *sites, const char *first, const char *second)
{
    int64_t M = sites->sum.T.rows;
    thi_matrix eta1 = {0}, eta2 = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&eta1, c->ctx, M, 1));
    THI_TRY(thi_matrix_alloc(&eta2, c->ctx, M, M));
    memcpy(eta1.data, sites->sum.t, (size_t)M * sizeof(double));
    memcpy(eta2.data, sites->sum.T.data, (size_t)(M * M) * sizeof(double));
    thi_symmetrise(eta2);
    for (int64_t i = 0; i < M; i++) {
        eta2.data[i + i * M] += 1.0;
    }
    thi_blas_trsv(THI_T, sites->L, eta1.data);
    thi_blas_trsm(THI_LEFT, THI_T, 1.0, sites->L, eta2);
    thi_blas_trsm(THI_RIGHT, THI_N, -0.5, sites->L, eta2);
    THI_TRY(oracle_check(c, first, ORACLE_VECTOR, eta1));
    THI_TRY(oracle_check(c, second, ORACLE_MATRIX, eta2));
out:
    thi_free(eta1.data);
    thi_free(eta2.data);
    return status;
}

static thiele_status check_batch(oracle_case *c, problem *p, thi_sites *sites, double rho, json_t *batch)
{
    int64_t n = (int64_t)json_array_size(batch), D = p->X.rows;
    thi_matrix X = {0}, y = {0}, omega = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&X, c->ctx, D, n));
    THI_TRY(thi_matrix_alloc(&y, c->ctx, n, 1));
    THI_TRY(thi_matrix_alloc(&omega, c->ctx, n, 1));
    for (int64_t i = 0; i < n; i++) {
        double row = json_number_value(json_array_get(batch, (size_t)i));
        if (!(row >= 0.0 && row < (double)p->X.cols)) {
            status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'batches' names row %g", row);
            goto out;
        }
        memcpy(X.data + i * D, p->X.data + (int64_t)row * D, (size_t)D * sizeof(double));
        y.data[i] = p->y.data[(int64_t)row];
    }
    THI_TRY(ascend(c, p, sites, rho, n, X.data, y.data, omega.data));
    THI_TRY(oracle_check(c, "omega_bar", ORACLE_VECTOR, omega));
    THI_TRY(check_natural(c, sites, "eta1", "eta2"));
    THI_TRY(check_bounds(c, p, sites, "elbo_augmented_all_data", "elbo_original_all_data"));
    THI_TRY(problem_begin(c, p, sites));
    THI_TRY(problem_check_q(c, p, "m", "S"));
    if (json_object_size(c->expected) > 0) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "a step has a field that is not computed");
    }
out:
    thi_free(X.data);
    thi_free(y.data);
    thi_free(omega.data);
    return status;
}

static thiele_status check_batches(oracle_case *c, problem *p, thi_sites *sites)
{
    json_t *batches = json_object_get(c->inputs, "batches"), *steps = json_object_get(c->expected, "steps");
    thi_matrix sizes = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "step_sizes", ORACLE_VECTOR, &sizes));
    if (json_array_size(steps) != (size_t)sizes.rows || json_array_size(batches) != (size_t)sizes.rows) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'steps', 'batches' and 'step_sizes' differ in length");
        goto out;
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        oracle_case step = *c;
        step.expected = json_array_get(steps, i);
        THI_TRY(check_batch(&step, p, sites, sizes.data[i], json_array_get(batches, i)));
    }
    json_object_del(c->expected, "steps");
out:
    thi_free(sizes.data);
    return status;
}

thiele_status oracle_svi(oracle_case *c)
{
    problem p;
    thi_sites sites = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(problem_open(c, &p, 1, false, true));
    THI_TRY(use(c, &p, "augmented"));
    THI_TRY(thi_sites_alloc(&sites, c->ctx, p.shape.inducing));
    THI_TRY(problem_begin(c, &p, &sites));
    THI_TRY(check_natural(c, &sites, "eta1_0", "eta2_0"));
    THI_TRY(check_batches(c, &p, &sites));
out:
    thi_sites_free(&sites);
    problem_close(&p);
    return status;
}

/* --- Gibbs -------------------------------------------------------------------------------------------------------- */

enum { CHAINS = 4, DRAWS = 20000 };

/* |got - want| within so many standard errors of as many independent draws. */
static thiele_status check_near(oracle_case *c, const char *field, int64_t i, double got, double want, double error)
{
    const double errors = 5.0;
    return fabs(got - want) <= errors * error + c->abs + c->rel * fabs(want)
               ? THIELE_OK
               : thi_fail(c->ctx, THIELE_ERROR_NUMERIC,
                          "%s[%lld]: the sampler got %.6g, want %.6g (standard error %.2g)", field, (long long)i, got,
                          want, error);
}

static thiele_status check_draws(oracle_case *c, const thi_chains_result *r)
{
    thi_matrix mean = {0}, variance = {0}, covariance = {0};
    int64_t n = r->n;
    double effective = r->mixing.ess_least;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->expected, "posterior_mean", ORACLE_VECTOR, &mean));
    THI_TRY(oracle_read(c, c->expected, "posterior_var", ORACLE_VECTOR, &variance));
    THI_TRY(oracle_read(c, c->expected, "posterior_cov", ORACLE_MATRIX, &covariance));
    THI_TRY(oracle_expect_shape(c, "posterior_cov", covariance, n, n));
    for (int64_t i = 0; i < n * n; i++) {
        int64_t a = i % n, b = i / n;
        double sum_a = 0.0, sum_b = 0.0, sum_ab = 0.0, kept = (double)r->kept;
        for (int64_t s = 0; s < r->kept; s++) {
            sum_a += r->f[a + s * n];
            sum_b += r->f[b + s * n];
            sum_ab += r->f[a + s * n] * r->f[b + s * n];
        }
        double cov = sum_ab / kept - sum_a / kept * (sum_b / kept), spread = sqrt(variance.data[a] * variance.data[b]);
        if (a == b) {
            THI_TRY(check_near(c, "posterior_mean", a, sum_a / kept, mean.data[a], spread / sqrt(effective)));
            THI_TRY(check_near(c, "posterior_var", a, cov, variance.data[a], 2.0 * spread / sqrt(effective)));
        }
        THI_TRY(check_near(c, "posterior_cov", i, cov, covariance.data[i], 2.0 * spread / sqrt(effective)));
    }
    json_object_del(c->expected, "posterior_mean");
    json_object_del(c->expected, "posterior_var");
    json_object_del(c->expected, "posterior_cov");
out:
    thi_free(mean.data);
    thi_free(variance.data);
    thi_free(covariance.data);
    return status;
}

static thiele_status check_gibbs(oracle_case *c, problem *p)
{
    thi_prior prior = {p->kernel, THI_MEAN_ZERO, NULL};
    int group = 0;
    thi_spec spec = {.latents = {.count = 1, .groups = 1, .group = &group, .kernel = &p->kernel, .prior = &prior},
                     .lik = p->lik};
    thi_rows rows = {p->X.cols, (int)p->X.rows, 1, p->X.data, p->y.data, NULL, NULL};
    thi_chains_settings settings = {.sampler = "gibbs", .chains = CHAINS, .draws = DRAWS, .keep = CHAINS * DRAWS};
    thi_chains_result result = {0};
    thi_driver driver;
    thi_driver_start(&driver, c->ctx, 0.0);
    thiele_status status = thi_chains_run(c->ctx, &driver, &spec, &rows, &settings, &result);
    if (status == THIELE_OK) {
        status = check_draws(c, &result);
        thi_chains_clear(&result);
    }
    return status;
}

/* The bound at the fixed point, which is below the evidence. */
static thiele_status check_fixed_point(oracle_case *c, problem *p)
{
    thi_sites sites = {0};
    double omega[THI_EXPECT_BLOCK], evidence, bound = -INFINITY, before;
    int step = 0;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read_number(c, c->expected, "log_evidence", &evidence));
    THI_TRY(use(c, p, "augmented"));
    THI_TRY(thi_sites_alloc(&sites, c->ctx, p->shape.inducing));
    do {
        before = bound;
        THI_TRY(ascend(c, p, &sites, 1.0, p->X.cols, p->X.data, p->y.data, omega));
        bound = problem_bound(p);
    } while (step++ < 10000 && !(bound - before < 1e-13 && step > 2));
    if (bound > evidence) {
        status = thi_fail(c->ctx, THIELE_ERROR_NUMERIC, "the bound %.17g is above log_evidence", bound);
        goto out;
    }
    json_object_del(c->expected, "log_evidence");
    THI_TRY(oracle_check_number(c, "cavi_fixed_point_elbo", bound));
out:
    thi_sites_free(&sites);
    return status;
}

thiele_status oracle_posterior(oracle_case *c)
{
    problem p;
    thiele_status status = THIELE_OK;
    THI_TRY(problem_open(c, &p, 1, false, true));
    THI_TRY(check_fixed_point(c, &p));
    THI_TRY(check_gibbs(c, &p));
out:
    problem_close(&p);
    return status;
}
