/*
 * A user's augmentation of several latents: y in the plane, y = f + e with phi of |f - y|^2. Its bound is the density
 * where v = 0 and lies below its expectation elsewhere, its slopes are those of the bound, its sites have the right
 * mean, Gibbs finds the posterior that Hamiltonian moves find, and a wrong constant is seen.
 */
#include "testing_context.h"

#include <complex.h>
#include <thiele/likelihood.h>

#include "chains_testing.h"

/* phi = exp(-sqrt(r)/s): the density exp(-|f - y|/s)/(2 pi s^2), all that belongs to no latent in the first entry. */
static void coefficients(const double *y, const double *parameters, thiele_likelihood_coefficients *out, void *user)
{
    out[0].log_c = *(const double *)user - log(2 * M_PI * parameters[0] * parameters[0]);
    out[0].alpha = y[0] * y[0] + y[1] * y[1];
    for (int q = 0; q < 2; q++) {
        out[q].beta = 2 * y[q];
        out[q].gamma = 1;
    }
}

static void log_phi(const double *y, const double *parameters, const double *r, double *out, void *user)
{
    (void)y;
    (void)user;
    double complex value = -csqrt(r[0] + r[1] * I) / parameters[0];
    out[0] = creal(value);
    out[1] = cimag(value);
}

static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    return -log(2 * M_PI * phi[0] * phi[0]) - hypot(y[0] - f[0], y[1] - f[1]) / phi[0];
}

static const thiele_likelihood_parameter only = {"scale", 0.4, 1};

static thiele_likelihood *open_plane(thiele_likelihood_spec *spec, double *shift)
{
    thiele_likelihood *lik = NULL;
    *spec = (thiele_likelihood_spec)THIELE_LIKELIHOOD_SPEC_INIT;
    spec->name = "plane";
    spec->outputs = spec->latents = 2;
    spec->parameters = 1;
    spec->parameter = &only;
    spec->user = shift;
    spec->coefficients = coefficients;
    spec->log_phi = log_phi;
    spec->log_density = log_density;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, spec));
    assert_true(thi_is_augmented(lik));
    return lik;
}

static double bound_at(const thiele_likelihood *lik, const double *y, const double *mu, const double *v)
{
    double E, g[2], h[2];
    thi_augmented_expectation(lik, 1, y, mu, v, &E, g, h, NULL);
    return E;
}

static void bound_and_slopes(void **state)
{
    (void)state;
    double shift = 0, y[6] = {0.3, -1, NAN, NAN, 2, 0.5}, mu[6] = {0.1, 0.5, 1, 1, 1.5, 1},
           v[6] = {0.2, 0.5, 1, 1, 2, 0.1};
    double E[3], g[6], h[6], dphi[3], zero[2] = {0, 0};
    thiele_likelihood_spec spec;
    thiele_likelihood *lik = open_plane(&spec, &shift);
    thi_augmented_expectation(lik, 3, y, mu, v, E, g, h, dphi);
    assert_true(E[1] == 0 && g[2] == 0 && h[3] == 0 && dphi[1] == 0);
    for (int i = 0; i < 3; i += 2) {
        const double *at = y + 2 * i, step = 1e-6;
        double phi = 0.4, exact, slopes[2], bends[2];
        assert_near(bound_at(lik, at, mu + 2 * i, zero), log_density(at, mu + 2 * i, &phi, NULL), 1e-12, 0);
        assert_ok(ctx, thiele_likelihood_expect(lik, ctx, "quadrature:40", 1, at, mu + 2 * i, v + 2 * i, &exact, slopes,
                                                bends, NULL));
        assert_true(E[i] < exact && E[i] > exact - 1.5);
        for (int q = 0; q < 2; q++) {
            double m[2] = {mu[2 * i], mu[2 * i + 1]}, w[2] = {v[2 * i], v[2 * i + 1]};
            m[q] += step;
            double above = bound_at(lik, at, m, w);
            m[q] -= 2 * step;
            assert_near((above - bound_at(lik, at, m, w)) / (2 * step), g[2 * i + q], 1e-7, 1e-8);
            m[q] += step;
            w[q] += step;
            above = bound_at(lik, at, m, w);
            w[q] -= 2 * step;
            assert_near((above - bound_at(lik, at, m, w)) / (2 * step), h[2 * i + q], 1e-7, 1e-8);
        }
        lik->value[0] = 0.4 * exp(step);
        double above = bound_at(lik, at, mu + 2 * i, v + 2 * i);
        lik->value[0] = 0.4 * exp(-step);
        assert_near((above - bound_at(lik, at, mu + 2 * i, v + 2 * i)) / (2 * step), dphi[i], 1e-7, 1e-8);
        lik->value[0] = 0.4;
    }
    thiele_likelihood_destroy(lik);
}

/* The mean of lambda is -2 h at v = 0, and nu = lambda y. */
static void sites(void **state)
{
    (void)state;
    enum { DRAWS = 3000 };
    double shift = 0, y[2] = {0.3, -1}, f[2] = {1.1, -0.4}, lambda[2], nu[2], sum = 0, square = 0;
    thiele_likelihood_spec spec;
    thiele_likelihood *lik = open_plane(&spec, &shift);
    for (int i = 0; i < DRAWS; i++) {
        thi_augmented_sites(lik, 1, (thi_stream){1, THI_RANDOM_DEMO, 0}, (uint64_t)i, y, f, lambda, nu);
        assert_true(lambda[0] == lambda[1]);
        assert_near(nu[1], lambda[1] * y[1], 1e-12, 0);
        sum += lambda[0] / DRAWS;
        square += lambda[0] * lambda[0] / DRAWS;
    }
    assert_near(sum, 1 / 0.4, 0, 4 * sqrt((square - sum * sum) / DRAWS));
    thiele_likelihood_destroy(lik);
}

static void gibbs_finds_the_posterior(void **state)
{
    (void)state;
    enum { N = 8 };
    double shift = 0;
    thiele_likelihood_spec spec;
    chain_setting s;
    thi_chains_result a, b;
    open_chain_setting(&s, ctx, "gaussian", 2, 0, "se(lengthscale=1, variance=1)", "zero", N, 2);
    thiele_likelihood_destroy(s.spec.lik);
    thi_latents_clear(&s.spec.latents);
    s.spec.lik = open_plane(&spec, &shift);
    thi_columns columns = {.dims = 2, .columns = 2};
    assert_ok(ctx, thi_latents_make(&s.spec.latents, ctx, "se(lengthscale=1, variance=1)", "zero", &columns, 2, false));
    test_normals(2 * N, 5, s.rows.y);
    s.rows.y[6] = s.rows.y[7] = NAN;
    thi_chains_settings gibbs = keep_all("gibbs", 2500), hmc = keep_all("hmc", 4000);
    assert_ok(ctx, run_chains(&s, ctx, &gibbs, &a));
    assert_ok(ctx, run_chains(&s, ctx, &hmc, &b));
    double zero[2 * N] = {0};
    for (int64_t i = 0; i < 2 * N; i++) {
        for (int64_t j = -1; j <= i; j += i + 1) {
            double e1, e2, m1 = estimate(&a, zero, i, j, &e1), m2 = estimate(&b, zero, i, j, &e2);
            assert_near(m1, m2, 0.0, 4.0 * hypot(e1, e2));
        }
    }
    thi_chains_clear(&a);
    thi_chains_clear(&b);
    close_chain_setting(&s);
}

static void wrong_constants_are_seen(void **state)
{
    (void)state;
    double shift = 0, y[4] = {0.3, -1, 2, 0.5};
    thiele_likelihood_spec spec;
    thiele_likelihood *lik = open_plane(&spec, &shift);
    assert_ok(ctx, thiele_likelihood_try(lik, ctx, 2, y));
    shift = 0.1;
    assert_fails(ctx, thiele_likelihood_try(lik, ctx, 2, y), THIELE_ERROR_ARGUMENT, "differs from its log_density");
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_and_slopes),
        cmocka_unit_test(sites),
        cmocka_unit_test(gibbs_finds_the_posterior),
        cmocka_unit_test(wrong_constants_are_seen),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
