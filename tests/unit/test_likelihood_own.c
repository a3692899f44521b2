/*
 * Likelihoods from text and back, from a user's function and from a plug-in (examples/plugin_censored.c): round trips,
 * what is refused and with which sentence, and densities that crash, hang or return NaN.
 */
#include <stddef.h>

#include "testing_context.h"

#include <dlfcn.h>
#include <signal.h>

#include "expect/expect.h"
#include "likelihood/likelihood.h"

/* --- text ------------------------------------------------------------------------------------------------------------
 */

typedef struct text_case {
    const char *text;
    int outputs, classes;
    const char *printed;
} text_case;

static const text_case texts[] = {
    {"gaussian", 1, 0, "gaussian(noise~0.1)"},
    {"gaussian", 2, 0, "gaussians(noise~[0.1,0.1])"},
    {" Gaussian ( noise = 2.5e-1 ) ", 1, 0, "gaussian(noise=0.25)"},
    {"student_t(nu=4, scale~0.5)", 1, 0, "student-t(nu=4, scale~0.5)"},
    {"student-t(scale=3)", 1, 0, "student-t(nu~4, scale=3)"},
    {"laplace()", 1, 0, "laplace(beta~0.2)"},
    {"matern32(rho~2)", 1, 0, "matern32(rho~2)"},
    {"heteroscedastic", 1, 0, "heteroscedastic"},
    {"bernoulli_logit", 1, 0, "bernoulli"},
    {"bernoulli_probit", 1, 0, "bernoulli-probit"},
    {"bayesian_svm", 1, 0, "svm"},
    {"softmax", 1, 3, "softmax"},
    {"softmax(classes=4)", 1, 0, "softmax"},
    {"ordinal_probit(sigma=0.6, cutpoints=[-1,0,1.5])", 1, 4, "ordinal(sigma=0.6, cut1=-1, gap=[1,1.5])"},
    {"ordinal(cuts~[-1,1])", 1, 0, NULL},
    {"negative_binomial(r~2)", 1, 0, NULL},
    {"poisson(offset=0.5)", 1, 0, "poisson(offset=0.5)"},
    {"binomial(trials=12)", 1, 0, "binomial(trials=12)"},
    {"gamma(shape~3)", 1, 0, "gamma(shape~3)"},
    {"exponential", 1, 0, "exponential"},
    {"beta(precision~7)", 1, 0, "beta(precision~7)"},
    {"warped(noise=0.1, a=[1,2], b~[0.5,0.6], c=[-1,1])", 1, 0,
     "warped(terms=2, noise=0.1, a=[1,2], b~[0.5,0.6], c=[-1,1])"},
    {"warped(terms=3, a1=5, b=2)", 1, 0, NULL},
    {"warped(a=0.5, terms=3)", 1, 0,
     "warped(terms=3, noise~0.1, a=[0.5,0.5,0.5], b~[1,1,1], c~[-0.6666666666666667,0,0.6666666666666667])"},
    {"warped(a=0.5)", 1, 0, NULL},
    {"gprn(nodes=2, noise~0.2)", 3, 0, "gprn(nodes=2, noise~[0.2,0.2,0.2])"},
    {"mixing(latents=2)", 3, 0, NULL},
};

static char *print(const thiele_likelihood *lik)
{
    thi_text text;
    char *out = NULL;
    thi_text_init(&text, ctx);
    thi_likelihood_print(lik, &text);
    assert_ok(ctx, thi_text_take(&text, &out));
    return out;
}

/* What is printed reads back as the same likelihood. */
static void text_round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        thiele_likelihood *lik = NULL, *again = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, texts[i].text, texts[i].outputs, texts[i].classes));
        char *first = print(lik);
        if (texts[i].printed != NULL) {
            assert_string_equal(first, texts[i].printed);
        }
        assert_ok(ctx, thiele_likelihood_parse(&again, ctx, first, texts[i].outputs, lik->classes));
        char *second = print(again);
        assert_string_equal(first, second);
        assert_int_equal(again->latents, lik->latents);
        for (int k = 0; k < lik->parameters; k++) {
            assert_true(lik->value[k] == again->value[k] && lik->value[k] == lik->phi[k].value);
            assert_true(lik->phi[k].fixed == again->phi[k].fixed);
        }
        thi_free(first);
        thi_free(second);
        thiele_likelihood_destroy(lik);
        thiele_likelihood_destroy(again);
    }
}

static void bad_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int outputs, classes;
        const char *part;
    } cases[] = {
        {"", 1, 0, "there is no likelihood ''"},
        {"gausian", 1, 0, "did you mean 'gaussian'"},
        {"neg_bin", 1, 0, "did you mean 'negative-binomial'?"},
        {"Poison", 1, 0, "did you mean 'poisson'?"},
        {"something", 1, 0, "there are: gaussian, heteroscedastic, student-t"},
        {"averyveryveryveryveryveryveryveryveryveryverylongname", 1, 0, "there is no likelihood"},
        {"plugin:./mine.so", 1, 0, "plug-in"},
        {"gaussian(", 1, 0, "position 10"},
        {"gaussian(noise)", 1, 0, "'=value' (fixed) or '~value' (first guess)"},
        {"gaussian(noise=)", 1, 0, "a number was expected"},
        {"gaussian(noise=1", 1, 0, "',' or ')' was expected"},
        {"gaussian(noise=1) x", 1, 0, "nothing more was expected"},
        {"gaussian(noise=[1", 1, 0, "',' or ']' was expected"},
        {"gaussian(noise=[1,2])", 1, 0, "1 values are needed, not 2"},
        {"gaussian(noise=1, noise=2)", 1, 0, "given twice"},
        {"gaussian(noise=-1)", 1, 0, "is positive"},
        {"gaussian(noise=1e200)", 1, 0, "is positive"},
        {"gaussian(beta=1)", 1, 0, "there are: noise"},
        {"gaussian(nodes=2)", 1, 0, "no parameter has that name"},
        {"bernoulli(p=1)", 1, 0, "there are: none"},
        {"student-t", 2, 0, "has 1 output, but there are 2 target columns"},
        {"gaussian", 0, 0, "target columns"},
        {"softmax(classes=3)", 1, 5, "not the number that the target column has"},
        {"softmax(classes=2.5)", 1, 0, "whole number from 1 to 1024"},
        {"gprn(nodes=100000)", 2, 0, "whole number from 1 to 1024"},
        {"ordinal(cuts=[0,0])", 1, 0, "must increase"},
        {"ordinal(cuts=[0,1])", 1, 4, "3 values are needed, not 2"},
        {"binomial(trials=2.5)", 1, 0, "trials"},
        {"warped(a=[1,2], terms=3)", 1, 0, "3 values are needed, not 2"},
        {"warped(a=1, a2=3)", 1, 0, "position 13: parameter 'a2' is given twice"},
        {"warped(a2=3, a=1)", 1, 0, "parameter 'a2' is given twice"},
        {"ordinal(cuts=[0,1], cut1=2)", 1, 0, "parameter 'cut1' is given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        thiele_likelihood *lik = NULL;
        assert_fails(ctx, thiele_likelihood_parse(&lik, ctx, cases[i].text, cases[i].outputs, cases[i].classes),
                     THIELE_ERROR_ARGUMENT, cases[i].part);
        assert_null(lik);
    }
}

static void parameters_are_set(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "student-t", 1, 0));
    assert_string_equal(thiele_likelihood_name(lik), "student-t");
    assert_int_equal(thiele_likelihood_parameters(lik), 2);
    assert_int_equal(thiele_likelihood_outputs(lik), 1);
    assert_int_equal(thiele_likelihood_latents(lik), 1);
    assert_string_equal(thiele_likelihood_parameter_name(lik, 1), "scale");
    assert_ok(ctx, thiele_likelihood_set_parameter(lik, ctx, 1, 0.75));
    assert_near(thiele_likelihood_get_parameter(lik, 1), 0.75, 0, 0);
    assert_fails(ctx, thiele_likelihood_set_parameter(lik, ctx, 1, 0), THIELE_ERROR_ARGUMENT, "'scale'");
    assert_fails(ctx, thiele_likelihood_set_parameter(lik, ctx, 2, 1), THIELE_ERROR_ARGUMENT, "2 parameters");
    assert_near(thiele_likelihood_get_parameter(lik, 1), 0.75, 0, 0);
    assert_null(thiele_likelihood_parameter_name(lik, -1));
    assert_true(isnan(thiele_likelihood_get_parameter(lik, 2)));
    thiele_likelihood_destroy(lik);
    thiele_likelihood_destroy(NULL);
}

static void values_outside_the_support(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double fine, bad;
        const char *part;
    } cases[] = {{"gaussian", -3, INFINITY, "finite"},
                 {"bernoulli", -1, 0, "-1 or +1"},
                 {"svm", 1, 2, "-1 or +1"},
                 {"poisson", 0, -1, "0, 1, 2"},
                 {"poisson", 7, 2.5, "0, 1, 2"},
                 {"gamma", 1e-9, 0, "positive"},
                 {"beta", 0.5, 1, "between 0 and 1"},
                 {"softmax(classes=5)", 4, 7, "number of classes"},
                 {"binomial(trials=5)", 5, 6, "trials"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, cases[i].text, 1, 0));
        assert_null(thi_likelihood_refuses(lik, cases[i].fine));
        assert_null(thi_likelihood_refuses(lik, NAN));
        const char *why = thi_likelihood_refuses(lik, cases[i].bad);
        assert_true(why != NULL && strstr(why, cases[i].part) != NULL);
        thiele_likelihood_destroy(lik);
    }
}

/* --- a user's own ----------------------------------------------------------------------------------------------------
 */

static double logistic_noise(const double *y, const double *f, const double *phi, void *user)
{
    *(int *)user += 1;
    double z = fabs(y[0] - f[0]) / phi[0];
    return -z - 2 * log1p(exp(-z)) - log(phi[0]);
}

static void logistic_moments(const double *f, const double *phi, double *mean, double *variance, void *user)
{
    (void)user;
    *mean = f[0];
    *variance = M_PI * M_PI / 3 * phi[0] * phi[0];
}

static const thiele_likelihood_parameter scale = {"scale", 0.5, 1};

static thiele_likelihood_spec logistic_spec(int *calls)
{
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "logistic-noise";
    spec.parameters = 1;
    spec.parameter = &scale;
    spec.log_density = logistic_noise;
    spec.moments = logistic_moments;
    spec.user = calls;
    return spec;
}

static void own_function(void **state)
{
    (void)state;
    int calls = 0;
    thiele_likelihood_spec spec = logistic_spec(&calls);
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    double y[3] = {0.5, NAN, 2}, f[3] = {0.5, 0, 0}, out[3], mean, variance;
    thiele_likelihood_log_density(lik, 3, y, f, out);
    assert_int_equal(calls, 2);
    assert_near(out[0], -log(4) - log(0.5), 1e-15, 0);
    assert_near(out[1], 0, 0, 0);
    lik->ops->conditional(lik, 1, f, &mean, &variance);
    assert_near(variance, M_PI * M_PI / 12, 1e-15, 0);
    assert_string_equal(thiele_likelihood_name(lik), "logistic-noise");
    assert_ok(ctx, thiele_likelihood_set_parameter(lik, ctx, 0, 2));
    thiele_likelihood_log_density(lik, 1, y, f, out);
    assert_near(out[0], -log(8), 1e-15, 0);
    assert_ok(ctx, thiele_likelihood_try(lik, ctx, 3, y));
    thiele_likelihood_destroy(lik);
}

/* Two outputs, two latents; `user` counts the calls, and is negative where the second point of a call is wrong. */
static void pair_densities(int64_t n, const double *y, const double *f, const double *phi, double *out, void *user)
{
    int *calls = user;
    (void)phi;
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0;
        for (int p = 0; p < 2; p++) {
            double rest = y[2 * i + p] - f[2 * i + p];
            out[i] -= isnan(rest) ? 0 : 0.5 * rest * rest + 0.5 * log(2 * M_PI);
        }
        out[i] += *calls < 0 && i > 0 ? 1 : 0;
    }
    *calls += *calls < 0 ? 0 : 1;
}

/* Version 2: many points a call, of which those without outputs are left out; all that follows from a density does. */
static void batches(void **state)
{
    (void)state;
    int calls = 0, wrong = -1;
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "pair";
    spec.outputs = spec.latents = 2;
    spec.log_densities = pair_densities;
    spec.user = &calls;
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    double y[8] = {0.5, NAN, 1, 2, NAN, NAN, 3, 4}, f[8] = {0}, out[4], E, g[2], h[2], v[2] = {0.3, 0.4};
    thiele_likelihood_log_density(lik, 4, y, f, out);
    assert_int_equal(calls, 2);
    assert_near(out[0], -0.125 - 0.5 * log(2 * M_PI), 1e-15, 0);
    assert_near(out[2], 0, 0, 0);
    assert_near(out[3], -12.5 - log(2 * M_PI), 1e-15, 0);
    thi_expect expect;
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, "mc:500"));
    for (int i = 0; i < 2; i++) { /* the first also looks at made-up values, once */
        calls = 0;
        assert_ok(ctx, thi_expect_block(&expect, ctx, 0, 1, y + 2, f, v, &E, g, h, NULL));
    }
    thi_expect_close(&expect);
    assert_int_equal(calls, 1);
    assert_near(E, -2.5 - 0.35 - log(2 * M_PI), 1e-12, 0);
    assert_near(g[1], 2, 1e-12, 0);
    assert_near(h[0], -0.5, 1e-11, 0);
    assert_ok(ctx, thiele_likelihood_try(lik, ctx, 4, y));
    spec.user = &wrong;
    assert_fails(ctx, thiele_likelihood_try(lik, ctx, 4, y), THIELE_ERROR_NUMERIC, "as one of two points");
    thiele_likelihood_destroy(lik);
}

/* A spec of version 1 ends where log_densities begins: what stands there is not looked at. */
static void first_version(void **state)
{
    (void)state;
    int calls = 0;
    thiele_likelihood_spec spec = logistic_spec(&calls);
    spec.version = 1;
    spec.size = offsetof(thiele_likelihood_spec, log_densities);
    spec.log_densities = pair_densities;
    thiele_likelihood *lik = NULL;
    double y = 0.5, f = 0.5, out;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    thiele_likelihood_log_density(lik, 1, &y, &f, &out);
    assert_near(out, -log(4) - log(0.5), 1e-15, 0);
    thiele_likelihood_destroy(lik);
    spec.version = 2;
    lik = NULL;
    assert_fails(ctx, thiele_likelihood_custom(&lik, ctx, &spec), THIELE_ERROR_FORMAT, "version 2");
}

static void own_function_is_checked(void **state)
{
    (void)state;
    int calls = 0;
    thiele_likelihood_parameter wrong = {"scale", -1, 1}, nameless = {NULL, 1, 1};
    thiele_likelihood_spec good = logistic_spec(&calls), cases[7];
    for (int i = 0; i < 7; i++) {
        cases[i] = good;
    }
    cases[0].version = 7;
    cases[1].size = 8;
    cases[2].log_density = NULL;
    cases[3].latents = 0;
    cases[4].parameter = NULL;
    cases[5].parameter = &wrong;
    cases[6].parameter = &nameless;
    static const char *const part[] = {"version 7",    "recompile it", "log_density", "0 latents",
                                       "1 parameters", "is positive",  "has no name"};
    for (int i = 0; i < 7; i++) {
        thiele_likelihood *lik = NULL;
        thiele_status want = i < 2 ? THIELE_ERROR_FORMAT : THIELE_ERROR_ARGUMENT;
        assert_fails(ctx, thiele_likelihood_custom(&lik, ctx, &cases[i]), want, part[i]);
        assert_null(lik);
    }
}

static void names_of_parameters(void **state)
{
    (void)state;
    int calls = 0;
    static const struct {
        const char *names[2];
        const char *part; /* of the message, or NULL when they are fine */
    } cases[] = {{{"scale", "rate"}, NULL},
                 {{"decay-rate", "a_2"}, NULL},
                 {{"scale", "scale"}, "two parameters called 'scale'"},
                 {{"Scale", "rate"}, "'Scale', is not a word"},
                 {{"scale", ""}, "parameter 2, '', is not a word"},
                 {{"2nd", "rate"}, "'2nd', is not a word"},
                 {{"scale", "b=1"}, "'b=1', is not a word"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        thiele_likelihood_parameter own[] = {{cases[i].names[0], 1, 1}, {cases[i].names[1], 1, 1}};
        thiele_likelihood_spec spec = logistic_spec(&calls);
        thiele_likelihood *lik = NULL;
        spec.parameters = 2;
        spec.parameter = own;
        if (cases[i].part != NULL) {
            assert_fails(ctx, thiele_likelihood_custom(&lik, ctx, &spec), THIELE_ERROR_ARGUMENT, cases[i].part);
            continue;
        }
        assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
        char text[64];
        snprintf(text, sizeof text, "(%s=3, %s~4)", own[1].name, own[0].name);
        assert_ok(ctx, thi_likelihood_arguments(lik, ctx, text));
        assert_near(lik->value[0], 4, 0, 0);
        assert_near(lik->value[1], 3, 0, 0);
        assert_true(lik->phi[1].fixed && lik->phi[1].given && !lik->phi[0].fixed);
        thiele_likelihood_destroy(lik);
    }
}

/* A word that is a name means that parameter alone, though others are numbered behind it. */
static void numbered_names(void **state)
{
    (void)state;
    int calls = 0;
    thiele_likelihood_parameter own[] = {{"a", 1, 1}, {"a1", 2, 1}, {"a2", 3, 1}, {"b1", 4, 1}, {"b2", 5, 1}};
    thiele_likelihood_spec spec = logistic_spec(&calls);
    thiele_likelihood *lik = NULL;
    spec.parameters = 5;
    spec.parameter = own;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    assert_ok(ctx, thi_likelihood_arguments(lik, ctx, "(a=7, b~[8,9])"));
    static const double want[] = {7, 2, 3, 8, 9};
    assert_all_near(lik->value, want, 5, 0, 0);
    char *text = print(lik);
    assert_string_equal(text, "logistic-noise(a=7, a1~2, a2~3, b~[8,9])");
    assert_ok(ctx, thi_likelihood_arguments(lik, ctx, text + strlen("logistic-noise")));
    thi_free(text);
    thiele_likelihood_destroy(lik);
}

/* --- families, units and copies ---------------------------------------------------------------------------------- */

static void families_are_found(void **state)
{
    (void)state;
    const thi_likelihood_ops *ops = NULL;
    assert_ok(ctx, thi_likelihood_find(ctx, " Student_T(nu=4, junk", &ops));
    assert_string_equal(ops->name, "student-t");
    assert_true(ops->standardise && !ops->log_link);
    assert_ok(ctx, thi_likelihood_find(ctx, "poisson", &ops));
    assert_true(!ops->standardise && ops->log_link);
    assert_ok(ctx, thi_likelihood_find(ctx, "plugin:./mine.so(a=2)", &ops));
    assert_null(ops);
    assert_fails(ctx, thi_likelihood_find(ctx, "nothing", &ops), THIELE_ERROR_ARGUMENT, "there are: gaussian");
    assert_fails(ctx, thi_likelihood_find(ctx, "gaussian)", &ops), THIELE_ERROR_ARGUMENT, "position 9");
}

/*
 * y = center + scale u: with the parameters taken to the units of y, the density of y at the f in those units is that
 * of u divided by the scale, for each output.
 */
static void units_of_parameters(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "gaussian(noise=0.3)", "student-t(nu=5, scale=0.4)",
        "laplace(beta=0.2)",   "matern32(rho=0.7)",
        "heteroscedastic",     "warped(noise=0.2, a=[0.4,0.7], b=[1.5,0.6], c=[-0.3,1])",
        "mixing(latents=2)",   "gprn(nodes=1, noise=0.2)"};
    static const double center = 7, unit = 3;
    for (size_t t = 0; t < sizeof cases / sizeof cases[0]; t++) {
        int P = t < 6 ? 1 : 2;
        bool mixed = strncmp(cases[t], "mixing", 6) == 0, network = strncmp(cases[t], "gprn", 4) == 0;
        thiele_likelihood *model = NULL, *data = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&model, ctx, cases[t], P, 0));
        assert_ok(ctx, thi_likelihood_copy(&data, ctx, model));
        assert_true(model->ops->standardise);
        /* Several outputs are scaled here, not shifted: f has no shift of its own. */
        double shift = P > 1 ? 0 : center;
        for (int i = 0; i < model->parameters; i++) {
            const thi_phi *phi = &model->phi[i];
            double value = phi->shifted ? unit * phi->value - shift : pow(unit, phi->power) * phi->value;
            data->value[i] = data->phi[i].value = value;
        }
        double u[] = {0.6, -0.8}, f[] = {0.2, -0.5, 0.9}, y[2], g[3], one, other;
        for (int p = 0; p < P; p++) {
            y[p] = shift + unit * u[p];
        }
        for (int q = 0; q < model->latents; q++) {
            bool variance = model->ops->log_variance == q && q > 0;
            /* Mixing has the units in its weights; the weights of a network are latents without units. */
            bool plain = mixed || (network && q > 0);
            g[q] = variance ? f[q] + 2 * log(unit) : plain ? f[q] : shift + unit * f[q];
        }
        thiele_likelihood_log_density(model, 1, u, f, &one);
        thiele_likelihood_log_density(data, 1, y, g, &other);
        assert_near(other, one - P * log(unit), 1e-12, 0);
        thiele_likelihood_destroy(model);
        thiele_likelihood_destroy(data);
    }
}

static void copies_stand_alone(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL, *copy = NULL, *again = NULL;
    assert_ok(ctx, thiele_likelihood_load(&lik, ctx, PLUGIN_CENSORED "(off=-2.5)"));
    assert_string_equal(lik->path, PLUGIN_CENSORED);
    assert_ok(ctx, thi_likelihood_copy(&copy, ctx, lik));
    thiele_likelihood_destroy(lik);
    assert_ok(ctx, thi_likelihood_copy(&again, ctx, copy));
    thiele_likelihood_destroy(copy);
    assert_near(thiele_likelihood_get_parameter(again, 0), -2.5, 0, 0);
    assert_true(again->phi[0].fixed);
    assert_string_equal(thiele_likelihood_name(again), "censored-count");
    double y = 3, f = 1, out; /* the library is still there */
    thiele_likelihood_log_density(again, 1, &y, &f, &out);
    assert_near(out, -log1p(exp(-2.5)) + 3 - exp(1) - log(6), 1e-12, 0);
    thiele_likelihood_destroy(again);
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "ordinal(cuts=[0,1,3])", 1, 0));
    assert_ok(ctx, thi_likelihood_copy(&copy, ctx, lik));
    char *first = print(lik), *second = print(copy);
    assert_string_equal(first, second);
    copy->value[0] = 9;
    assert_near(lik->value[0], 1, 0, 0);
    thi_free(first);
    thi_free(second);
    thiele_likelihood_destroy(lik);
    thiele_likelihood_destroy(copy);
}

/* --- densities that misbehave ----------------------------------------------------------------------------------------
 */

static double nan_beyond_five(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    return fabs(f[0]) > 5 && y[0] > 1 ? NAN : -fabs(y[0] - f[0]) * phi[0];
}

static double crashing(const double *y, const double *f, const double *phi, void *user)
{
    raise(y[0] > 0 ? SIGSEGV : SIGFPE);
    return f[0] * phi[0] + *(double *)user;
}

static double leaving(const double *y, const double *f, const double *phi, void *user)
{
    (void)y, (void)f, (void)phi, (void)user;
    _exit(0);
}

static double hanging(const double *y, const double *f, const double *phi, void *user)
{
    (void)y, (void)f, (void)phi, (void)user;
    while (pause() != 0) {
    }
    return 0;
}

static void nan_moments(const double *f, const double *phi, double *mean, double *variance, void *user)
{
    (void)f, (void)phi, (void)user;
    *mean = 0;
    *variance = -1;
}

static void misbehaviour_becomes_a_sentence(void **state)
{
    (void)state;
    static const struct {
        double (*density)(const double *, const double *, const double *, void *);
        double y;
        double seconds;
        const char *part;
    } cases[] = {{nan_beyond_five, 2.5, 10, "log_density gave NaN for y = 2.5 (row 2) and f = 10"},
                 {crashing, 1, 10, "segmentation fault"},
                 {crashing, -1, 10, "arithmetic error"},
                 {leaving, 1, 10, "ended the process"},
                 {hanging, 1, 0.1, "did not return within 0.1 seconds"},
                 {logistic_noise, 1, 10, "moments gave -1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int calls = 0;
        thiele_likelihood_spec spec = logistic_spec(&calls);
        spec.log_density = cases[i].density;
        spec.moments = cases[i].density == logistic_noise ? nan_moments : NULL;
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
        double y[2] = {cases[i].y > 2 ? 0 : cases[i].y, cases[i].y};
        assert_fails(ctx, thi_likelihood_try(lik, ctx, 2, y, cases[i].seconds), THIELE_ERROR_NUMERIC, cases[i].part);
        thiele_likelihood_destroy(lik);
    }
}

/* --- plug-ins --------------------------------------------------------------------------------------------------------
 */

static void plugin_works(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_load(&lik, ctx, PLUGIN_CENSORED));
    assert_string_equal(thiele_likelihood_name(lik), "censored-count");
    double y[22];
    for (int k = 0; k <= 21; k++) {
        y[k] = k;
    }
    assert_ok(ctx, thiele_likelihood_try(lik, ctx, 22, y));
    for (double f = -30; f <= 30; f += 2.5) {
        double at[22], out[22], total = 0, first = 0, second = 0, mean, variance;
        for (int k = 0; k <= 21; k++) {
            at[k] = f;
        }
        thiele_likelihood_log_density(lik, 22, y, at, out);
        for (int k = 0; k <= 21; k++) {
            total += exp(out[k]);
            first += k * exp(out[k]);
            second += k * k * exp(out[k]);
        }
        assert_near(total, 1, 0, 1e-13);
        assert_true(out[21] == -INFINITY);
        lik->ops->conditional(lik, 1, &f, &mean, &variance);
        assert_near(mean, first, 1e-12, 0);
        assert_near(variance, second - first * first, 1e-10, 1e-12);
    }
    thiele_likelihood_destroy(lik);
}

static void plugin_takes_arguments(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_load(&lik, ctx, PLUGIN_CENSORED "(off=-2.5)"));
    assert_near(thiele_likelihood_get_parameter(lik, 0), -2.5, 0, 0);
    assert_true(lik->phi[0].fixed);
    thiele_likelihood_destroy(lik);
    assert_fails(ctx, thiele_likelihood_load(&lik, ctx, PLUGIN_CENSORED "(on=1)"), THIELE_ERROR_ARGUMENT,
                 "there are: off");
    assert_null(lik);
}

/* Quantiles and draws of a plug-in come from its density alone. */
static void plugin_predicts(void **state)
{
    (void)state;
    enum { DRAWS = 3000 };
    static double y[DRAWS];
    thiele_likelihood *lik = NULL;
    thi_expect expect;
    double mu = 1.8, v = 0.3, probability[21], cumulative = 0, share[21] = {0};
    assert_ok(ctx, thiele_likelihood_load(&lik, ctx, PLUGIN_CENSORED));
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    for (int k = 0; k <= 20; k++) {
        double at = k;
        assert_ok(ctx, thi_log_predictive_block(&expect, ctx, 1, &at, &mu, &v, &probability[k]));
        probability[k] = exp(probability[k]);
    }
    for (int k = 0; k <= 20; k++) {
        double q;
        assert_ok(ctx, thi_likelihood_quantile(&expect, ctx, &mu, &v, cumulative + 0.5 * probability[k], &q));
        assert_near(q, k, 0, 0);
        cumulative += probability[k];
    }
    assert_near(cumulative, 1, 1e-8, 0);
    assert_ok(ctx, thi_likelihood_sample(&expect, ctx, 0, &mu, &v, 0, DRAWS, y));
    for (int i = 0; i < DRAWS; i++) {
        assert_null(thi_likelihood_refuses(lik, y[i]));
        share[(int)y[i]] += 1.0 / DRAWS;
    }
    for (int k = 0; k <= 20; k++) {
        assert_near(share[k], probability[k], 0, 4.5 * sqrt(probability[k] / DRAWS));
    }
    assert_non_null(thi_likelihood_refuses(lik, 2.5));
    thi_expect_close(&expect);
    thiele_likelihood_destroy(lik);
}

/* Libraries that crash, leave or hang while they are loaded; made here, where there is a compiler. */
static void loading_may_crash(void **state)
{
    (void)state;
    static const struct {
        const char *source, *part;
    } cases[] = {
        {"#include <signal.h>\n__attribute__((constructor)) static void begin(void) { raise(SIGSEGV); }",
         "loading it crashed with a segmentation fault"},
        {"#include <stdlib.h>\nconst void *thiele_likelihood_plugin(void) { abort(); }",
         "loading it crashed with an abort"},
        {"#include <unistd.h>\nconst void *thiele_likelihood_plugin(void) { _exit(3); }",
         "loading it ended the process"},
        {"const void *thiele_likelihood_plugin(void) { return (const void *)8; }", "loading it crashed with"},
        {"const void *thiele_likelihood_plugin(void) { return 0; }", "returned no likelihood (NULL)"},
    };
    char folder[] = "/tmp/thiele-plugin-XXXXXX", command[400], source[64], library[64];
    assert_non_null(mkdtemp(folder));
    snprintf(source, sizeof source, "%s/bad.c", folder);
    int compiled = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        thiele_likelihood *lik = NULL;
        snprintf(library, sizeof library, "%s/bad%zu.so", folder, i);
        FILE *file = fopen(source, "w");
        assert_non_null(file);
        fputs(cases[i].source, file);
        fclose(file);
        snprintf(command, sizeof command, "cc -shared -fPIC -o %s %s 2>/dev/null", library, source);
        if (system(command) == 0) {
            compiled++;
            assert_fails(ctx, thiele_likelihood_load(&lik, ctx, library), THIELE_ERROR_FORMAT, cases[i].part);
            assert_null(lik);
        }
        unlink(library);
    }
    unlink(source);
    rmdir(folder);
    if (compiled == 0) {
        print_message("no compiler was found\n");
        skip();
    }
}

static void bad_plugins_are_refused(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL;
    Dl_info mathematics;
    double (*some)(double) = cos;
    assert_int_not_equal(dladdr(*(void **)&some, &mathematics), 0);
    assert_fails(ctx, thiele_likelihood_load(&lik, ctx, ""), THIELE_ERROR_ARGUMENT, "path");
    assert_fails(ctx, thiele_likelihood_load(&lik, ctx, "nowhere.so"), THIELE_ERROR_IO, "./nowhere.so");
    char folder[] = "/tmp/thiele-plugin-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/text.so", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("this is no library", file);
    fclose(file);
    assert_fails(ctx, thiele_likelihood_load(&lik, ctx, path), THIELE_ERROR_FORMAT, "cannot be loaded");
    unlink(path);
    rmdir(folder);
    if (strstr(mathematics.dli_fname, ".so") != NULL) {
        assert_fails(ctx, thiele_likelihood_load(&lik, ctx, mathematics.dli_fname), THIELE_ERROR_FORMAT,
                     "has no function 'thiele_likelihood_plugin'");
    }
    assert_null(lik);
}

/* Whichever allocation fails, what was made is freed. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] + 1; i++) {
        bool plugin = i == sizeof texts / sizeof texts[0];
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status != THIELE_OK; nth++) {
            thiele_likelihood *lik = NULL;
            thi_fail_allocation(ctx, nth, false);
            status = plugin ? thiele_likelihood_load(&lik, ctx, PLUGIN_CENSORED "(off~1)")
                            : thiele_likelihood_parse(&lik, ctx, texts[i].text, texts[i].outputs, texts[i].classes);
            thi_fail_allocation(ctx, 0, false);
            assert_true(status == THIELE_OK || (status == THIELE_ERROR_MEMORY && lik == NULL));
            thiele_likelihood_destroy(lik);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_round_trips),
        cmocka_unit_test(bad_texts_are_refused),
        cmocka_unit_test(parameters_are_set),
        cmocka_unit_test(values_outside_the_support),
        cmocka_unit_test(own_function),
        cmocka_unit_test(batches),
        cmocka_unit_test(first_version),
        cmocka_unit_test(own_function_is_checked),
        cmocka_unit_test(names_of_parameters),
        cmocka_unit_test(numbered_names),
        cmocka_unit_test(families_are_found),
        cmocka_unit_test(units_of_parameters),
        cmocka_unit_test(copies_stand_alone),
        cmocka_unit_test(misbehaviour_becomes_a_sentence),
        cmocka_unit_test(plugin_works),
        cmocka_unit_test(plugin_takes_arguments),
        cmocka_unit_test(plugin_predicts),
        cmocka_unit_test(loading_may_crash),
        cmocka_unit_test(bad_plugins_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
