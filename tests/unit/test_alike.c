/*
 * Latent functions that cannot be told apart before any row is seen: the classes of a softmax, whose kernels move
 * together while few rows are looked at, and functions that might have either sign.
 */
#include "testing_context.h"

#include "fit/parameters.h"

enum { INPUTS = 3, MOST = 12 };

static thi_columns columns(void)
{
    return (thi_columns){.dims = INPUTS, .columns = INPUTS};
}

/* The latents of a likelihood with these kernels; whether they are alike. */
static bool alike(const char *text, int outputs, int classes, const char *kernels)
{
    thi_columns inputs = columns();
    thiele_likelihood *lik = NULL;
    thi_latents latents = {0};
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, outputs, classes));
    assert_ok(ctx, thi_latents_make(&latents, ctx, kernels, "zero", &inputs, lik->latents, false));
    bool found = thi_latents_alike(&latents, lik);
    thi_latents_clear(&latents);
    thiele_likelihood_destroy(lik);
    return found;
}

static void classes_are_alike(void **state)
{
    (void)state;
    assert_true(alike("softmax", 1, 4, "se + matern32"));
    assert_true(alike("softmax", 1, 2, "se; se"));
    assert_false(alike("softmax", 1, 2, "se; matern32"));
    assert_false(alike("softmax", 1, 2, "se; se + linear"));
    assert_false(alike("heteroscedastic", 1, 0, "se"));
    assert_false(alike("gprn(nodes=2)", 2, 0, "se"));
}

/* Slopes of each parameter are those of all classes on average; others stay. */
static void slopes_are_shared(void **state)
{
    (void)state;
    enum { CLASSES = 3 };
    thi_columns inputs = columns();
    thi_latents latents = {0};
    assert_ok(ctx, thi_latents_make(&latents, ctx, "se", "constant", &inputs, CLASSES, false));
    int own = latents.kernel[0]->parameters, group = own + latents.mean_parameters, first[CLASSES + 1];
    double slope[64];
    for (int g = 0; g <= CLASSES; g++) {
        first[g] = g * group;
    }
    for (int i = 0; i < CLASSES * group; i++) {
        slope[i] = i + 0.5 * (i / group);
    }
    thi_hypers hypers = {.count = CLASSES * group, .groups = CLASSES, .first = first, .alike = true};
    thi_scales_tie(&hypers, &latents, slope);
    for (int i = 0; i < CLASSES * group; i++) {
        double mine = i + 0.5 * (i / group), mean = i % group + group + 0.5;
        assert_near(slope[i], i % group < own ? mean : mine, 1e-15, 0);
    }
    thi_latents_clear(&latents);
}

/* --- signs ---------------------------------------------------------------------------------------------------------
 */

static double softmax(const double *y, const double *f, const double *phi, void *user)
{
    double sum = 0;
    (void)phi;
    for (int c = 0; c < *(const int *)user; c++) {
        sum += exp(f[c] - f[(int)y[0]]);
    }
    return -log(sum);
}

static double product(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double rest = y[0] - f[0] * f[1];
    return -rest * rest;
}

/* Two factors, and the log of a noise: the signs of the factors alone are open. */
static double noisy_product(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double rest = y[0] - f[0] * f[2];
    return -0.5 * f[1] - 0.5 * rest * rest * exp(-f[1]);
}

static double noisy(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double rest = y[0] - f[0];
    return -0.5 * f[1] - 0.5 * rest * rest * exp(-f[1]);
}

static thiele_likelihood *own(const thiele_likelihood_spec *spec)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, spec));
    return lik;
}

/* No class is as likely at -f as at f, also where it lies between others; a product of functions is, whatever stands
 * beside it. */
static void signs_are_told(void **state)
{
    (void)state;
    double f[MOST];
    for (int classes = 2; classes <= MOST; classes++) {
        thiele_likelihood_spec spec = {.size = sizeof spec, .version = THIELE_LIKELIHOOD_VERSION, .name = "softmax"};
        spec.outputs = 1;
        spec.latents = spec.classes = classes;
        spec.support = THIELE_SUPPORT_CLASS;
        spec.log_density = softmax;
        spec.user = &classes;
        thiele_likelihood *lik = own(&spec);
        for (int c = 0; c < classes; c++) {
            double y = c;
            assert_false(lik->ops->even(lik, &y, f));
        }
        thiele_likelihood_destroy(lik);
    }
    thiele_likelihood_spec spec = {.size = sizeof spec, .version = THIELE_LIKELIHOOD_VERSION, .name = "product"};
    spec.outputs = 1;
    spec.latents = 2;
    spec.log_density = product;
    thiele_likelihood *lik = own(&spec);
    double y = 0.7;
    assert_true(lik->ops->even(lik, &y, f));
    thiele_likelihood_destroy(lik);
    spec.log_density = noisy;
    lik = own(&spec);
    assert_false(lik->ops->even(lik, &y, f));
    thiele_likelihood_destroy(lik);
    spec.latents = 3;
    spec.log_density = noisy_product;
    lik = own(&spec);
    assert_true(lik->ops->even(lik, &y, f));
    assert_true(f[0] == 1.0 && f[1] == 0.0 && f[2] == 1.0);
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes_are_alike), cmocka_unit_test(slopes_are_shared),
                                       cmocka_unit_test(signs_are_told)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
