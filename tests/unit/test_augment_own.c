/*
 * A user's augmentation: coefficients and log phi give the same bound and draws as the built-in form, a density where
 * none is given, specs of the earlier header stay valid, and functions that are no augmentation are refused with a
 * sentence.
 */
#include "testing_context.h"

#include <complex.h>
#include <stddef.h>
#include <thiele/likelihood.h>

#include "likelihood/augment.h"
#include "likelihood/plane.h"

typedef double complex (*phi_fn)(double complex r, double scale);

/* What a test's spec does: y = f + e with log phi of (f - y)^2. */
typedef struct setting {
    phi_fn phi;
    double log_c, g, alpha;
    double gamma;
} setting;

static void coefficients(const double *y, const double *parameters, thiele_likelihood_coefficients *out, void *user)
{
    const setting *s = user;
    out->log_c = s->log_c - log(parameters[0]);
    out->g = s->g;
    out->alpha = y[0] * y[0] + s->alpha;
    out->beta = 2 * y[0];
    out->gamma = s->gamma;
}

static void log_phi(const double *y, const double *parameters, const double *r, double *out, void *user)
{
    (void)y;
    const setting *s = user;
    double complex value = s->phi(thi_plane_at(r[0], r[1]), parameters[0]);
    out[0] = creal(value);
    out[1] = cimag(value);
}

static double complex laplace(double complex r, double scale)
{
    return -csqrt(r) / scale;
}

static double laplace_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    return -log(2 * phi[0]) - fabs(y[0] - f[0]) / phi[0];
}

static const thiele_likelihood_parameter only = {"scale", 0.4, 1};

static thiele_likelihood_spec spec_of(setting *s)
{
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "mine";
    spec.parameters = 1;
    spec.parameter = &only;
    spec.user = s;
    spec.coefficients = coefficients;
    spec.log_phi = log_phi;
    return spec;
}

static void same_as_built_in(void **state)
{
    (void)state;
    setting s = {laplace, -M_LN2, 0, 0, 1};
    thiele_likelihood_spec spec = spec_of(&s);
    spec.log_density = laplace_density;
    thiele_likelihood *mine = NULL, *known = NULL;
    assert_ok(ctx, thiele_likelihood_custom(&mine, ctx, &spec));
    assert_ok(ctx, thiele_likelihood_parse(&known, ctx, "laplace(beta~0.4)", 1, 0));
    assert_true(thi_is_augmented(mine));
    double y[4] = {0.3, -2, NAN, 250}, mu[4] = {0.1, 0.5, 1, 249}, v[4] = {0.2, 1e-6, 1, 3}, E[8], g[8], h[8], dphi[8];
    thi_augmented_expectation(mine, 4, y, mu, v, E, g, h, dphi);
    thi_augmented_expectation(known, 4, y, mu, v, E + 4, g + 4, h + 4, dphi + 4);
    assert_all_near(E, E + 4, 4, 1e-13, 1e-14);
    assert_all_near(g, g + 4, 4, 1e-13, 1e-14);
    assert_all_near(h, h + 4, 4, 1e-13, 1e-14);
    assert_all_near(dphi, dphi + 4, 4, 1e-8, 1e-9);
    assert_ok(ctx, thiele_likelihood_try(mine, ctx, 4, y));
    thi_omega one, two;
    thi_augmented_omega(mine, 0, 1.7, &one);
    thi_augmented_omega(known, 0, 1.7, &two);
    assert_near(one.mean, two.mean, 1e-13, 0);
    assert_near(one.variance, two.variance, 1e-8, 0);
    /* Sites by inversion: the mean of lambda is -2 h at v = 0. */
    enum { DRAWS = 3000 };
    double f = 1.1, lambda, nu, sum = 0, square = 0;
    for (int i = 0; i < DRAWS; i++) {
        thi_augmented_sites(mine, 1, (thi_stream){1, THI_RANDOM_DEMO, 0}, (uint64_t)i, y, &f, &lambda, &nu);
        assert_near(nu, lambda * y[0], 1e-12, 0);
        sum += lambda / DRAWS;
        square += lambda * lambda / DRAWS;
    }
    assert_near(sum, 1 / (0.4 * 0.8), 0, 4 * sqrt((square - sum * sum) / DRAWS));
    thiele_likelihood_destroy(mine);
    thiele_likelihood_destroy(known);
}

static void density_follows(void **state)
{
    (void)state;
    setting s = {laplace, -M_LN2, 0, 0, 1};
    thiele_likelihood_spec spec = spec_of(&s);
    thiele_likelihood *mine = NULL, *copy = NULL;
    assert_ok(ctx, thiele_likelihood_custom(&mine, ctx, &spec));
    assert_ok(ctx, thi_likelihood_copy(&copy, ctx, mine));
    double y[4] = {0.3, -2, NAN, 1}, f[4] = {0.1, 5, 0, 1}, got[4], phi = 0.4;
    thiele_likelihood_log_density(copy, 4, y, f, got);
    for (int i = 0; i < 4; i++) {
        assert_near(got[i], isnan(y[i]) ? 0 : laplace_density(&y[i], &f[i], &phi, NULL), 1e-13, 1e-15);
    }
    assert_ok(ctx, thiele_likelihood_try(copy, ctx, 4, y));
    double E, g, h, mu = 0.2, v = 0.5;
    assert_ok(ctx, thiele_likelihood_expect(copy, ctx, NULL, 1, y, &mu, &v, &E, &g, &h, NULL));
    thiele_likelihood_destroy(mine);
    thiele_likelihood_destroy(copy);
}

/* examples/plugin_secant.c: a density by the augmentation alone. It adds up to one, with the variance it says. */
static void plugin_by_augmentation(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_load(&lik, ctx, PLUGIN_SECANT "(scale~0.7)"));
    assert_true(thi_is_augmented(lik));
    double y[2] = {0.4, -30}, f = 0.4, total = 0, second = 0, value;
    assert_ok(ctx, thiele_likelihood_try(lik, ctx, 2, y));
    for (double at = -20; at <= 20; at += 0.01) {
        double latent = 0;
        thiele_likelihood_log_density(lik, 1, &at, &latent, &value);
        total += 0.01 * exp(value);
        second += 0.01 * at * at * exp(value);
    }
    assert_near(total, 1, 1e-10, 0);
    assert_near(second, 0.49, 1e-8, 0);
    thiele_likelihood_log_density(lik, 1, y, &f, &value);
    assert_near(value, -log(1.4), 1e-14, 0);
    double E, g, h, dphi, mu = 0.1, v = 0.3, F, G, H;
    thi_augmented_expectation(lik, 1, y, &mu, &v, &E, &g, &h, &dphi);
    assert_ok(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, y, &mu, &v, &F, &G, &H, NULL));
    assert_true(E < F && F - E < 0.2);
    /* omega of 1/cosh(pi sqrt(r)/2s) is (pi/s)^2 times that of 1/cosh(sqrt(r)/2), with the mean 1/8 at r = 0. */
    thi_omega omega;
    thi_augmented_omega(lik, 0, 0, &omega);
    assert_near(omega.mean, M_PI * M_PI / 0.49 / 8, 1e-6, 0);
    thiele_likelihood_destroy(lik);
}

/* --- what is refused ------------------------------------------------------------------------------------------------
 */

static double complex growing(double complex r, double scale)
{
    return csqrt(r) / scale;
}

static double complex half(double complex r, double scale)
{
    return -csqrt(r) / scale - M_LN2;
}

/* exp(-r^2): falls, but its log bends downwards. */
static double complex bell(double complex r, double scale)
{
    return -r * r / scale;
}

/* (1 + 1.2 r)/(1 + r)^2 falls and is convex in the log, but comes from the signed measure e^-x (1.2 - 0.2 x). */
static double complex signed_measure(double complex r, double scale)
{
    (void)scale;
    return clog(1 + 1.2 * r) - 2 * clog(1 + r);
}

/* (1 + r)^-1 with a ripple that is far too small to spoil slope or bend: cos transforms of e^-x (1 + 2 cos(8x))... */
static double complex ripple(double complex r, double scale)
{
    (void)scale;
    double complex s = 1 + r;
    return clog((1 / s + 1.8 * s / (s * s + 64)) / (1 + 1.8 / 65));
}

static double complex not_a_number(double complex r, double scale)
{
    (void)scale;
    return creal(r) > 5 ? NAN : -r;
}

/* A Gaussian: phi = exp(-r/(2 s)), omega one point; and 1/(1 + r), an exponential. Both are completely monotone. */
static double complex gauss(double complex r, double scale)
{
    return -0.5 * r / (scale * scale);
}

static double complex geometric(double complex r, double scale)
{
    (void)scale;
    return -clog(1 + r);
}

/* Jumps: omega is one more than a Poisson variable. */
static double complex lattice(double complex r, double scale)
{
    (void)scale;
    return -r + cexp(-r) - 1;
}

static double complex matern(double complex r, double scale)
{
    double complex u = csqrt(3 * r) / scale;
    return clog(1 + u) - u;
}

static double complex secant(double complex r, double scale)
{
    (void)scale;
    return -clog(ccosh(0.5 * csqrt(r)));
}

static void wrong_ones_are_refused(void **state)
{
    (void)state;
    const struct {
        setting s;
        bool density;
        const char *part; /* NULL: it is fine */
    } cases[] = {
        {{growing, 0, 0, 0, 1}, false, "grows"},
        {{half, 0, 0, 0, 1}, false, "must be 1 at r = 0"},
        {{bell, 0, 0, 0, 1}, false, "bends downwards"},
        {{signed_measure, 0, 0, 0, 1}, false, "not completely monotone"},
        {{ripple, 0, 0, 0, 1}, false, "not completely monotone"},
        {{not_a_number, 0, 0, 0, 1}, false, "not finite at r"},
        {{laplace, 0, 0, 0, 1}, true, "differs from its log_density: at f = 0"},
        {{laplace, -M_LN2, 0.1, 0, 1}, true, "differs from its log_density: at f = 0.3"},
        {{laplace, NAN, 0, 0, 1}, true, "coefficients"},
        {{laplace, -M_LN2, 0, 0, -1}, true, "gamma is above zero"},
        {{laplace, -M_LN2, 0, -0.25, 1}, true, "below zero"},
        {{laplace, -M_LN2, 0, 0, 1}, true, NULL},
        {{laplace, -M_LN2, 0, 0, 1}, false, NULL},
        {{gauss, -0.5 * log(2 * M_PI), 0, 0, 1}, false, NULL},
        {{geometric, log(0.4 / M_PI), 0, 0, 1}, false, NULL},
        {{lattice, log(0.4 / 1.370448301), 0, 0, 1}, false, NULL}, /* e^-1 sum_k sqrt(pi/(1 + k))/k! */
        {{matern, log(sqrt(3) / 4), 0, 0, 1}, false, NULL},
        {{secant, log(0.2 / M_PI), 0, 0, 1}, false, NULL},
        {{laplace, 0, 0, 0, 1}, false, "the sum is 2. Its log_c is wrong"},
        {{gauss, -0.5 * log(2 * M_PI) - 0.01, 0, 0, 1}, false, "does not add up to 1"},
        {{matern, log(sqrt(3) / 2), 0, 0, 1}, false, "does not add up to 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setting s = cases[i].s;
        thiele_likelihood_spec spec = spec_of(&s);
        thiele_likelihood *lik = NULL;
        double y[3] = {NAN, 0.7, -1};
        spec.log_density = cases[i].density ? laplace_density : NULL;
        assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
        if (cases[i].part == NULL) {
            assert_ok(ctx, thiele_likelihood_try(lik, ctx, 3, y));
        } else if (i == 5 || i == 8) { /* the density derived from it is NaN: that is seen first, or this */
            assert_int_not_equal(thiele_likelihood_try(lik, ctx, 3, y), THIELE_OK);
        } else {
            assert_fails(ctx, thiele_likelihood_try(lik, ctx, 3, y), THIELE_ERROR_ARGUMENT, cases[i].part);
        }
        thiele_likelihood_destroy(lik);
    }
}

static void specs_are_checked(void **state)
{
    (void)state;
    setting s = {laplace, -M_LN2, 0, 0, 1};
    thiele_likelihood *lik = NULL;
    thiele_likelihood_spec spec = spec_of(&s);
    spec.log_phi = NULL;
    assert_fails(ctx, thiele_likelihood_custom(&lik, ctx, &spec), THIELE_ERROR_ARGUMENT, "log_density");
    spec.log_density = laplace_density;
    assert_fails(ctx, thiele_likelihood_custom(&lik, ctx, &spec), THIELE_ERROR_ARGUMENT,
                 "both coefficients and log_phi");
    spec.log_phi = log_phi;
    spec.latents = 65;
    assert_fails(ctx, thiele_likelihood_custom(&lik, ctx, &spec), THIELE_ERROR_ARGUMENT, "at most 64 latents");
    spec.latents = 1;
    spec.size = sizeof spec + 8;
    assert_fails(ctx, thiele_likelihood_custom(&lik, ctx, &spec), THIELE_ERROR_FORMAT, "recompile it");
}

/* The struct of the header before augmentations: nothing behind it is read. */
static void earlier_specs_stay_valid(void **state)
{
    (void)state;
    size_t size = offsetof(thiele_likelihood_spec, coefficients);
    setting s = {laplace, -M_LN2, 0, 0, 1};
    thiele_likelihood_spec now = spec_of(&s), *earlier = malloc(size);
    thiele_likelihood *lik = NULL;
    assert_non_null(earlier);
    now.size = size;
    now.version = 1;
    now.log_density = laplace_density;
    memcpy(earlier, &now, size);
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, earlier));
    assert_false(thi_is_augmented(lik));
    double y = 0.5;
    assert_ok(ctx, thiele_likelihood_try(lik, ctx, 1, &y));
    thiele_likelihood_destroy(lik);
    free(earlier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_built_in),         cmocka_unit_test(density_follows),
        cmocka_unit_test(wrong_ones_are_refused),   cmocka_unit_test(specs_are_checked),
        cmocka_unit_test(earlier_specs_stay_valid), cmocka_unit_test(plugin_by_augmentation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
