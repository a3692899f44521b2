/*
 * Sites at all rows with any likelihood: a Gaussian one is exact regression after one step; the others converge with a
 * bound that never falls; the bound's gradient against central differences, converging anew at each point; missing
 * rows, offsets, warm starts, threads, failing allocations.
 */
#include "testing_context.h"

#include "fit/dense.h"

/* Three latents are integrated over with many points: few rows. */
enum { N = 60, FEW = 10, D = 2, MOST = 32 };

typedef struct setting {
    thi_spec spec;
    thi_rows rows;
    thi_dense_fit fit;
} setting;

static const thi_converge_options tight = {1e-11, 200, false}, usual = {1e-6, 100, false};

/* f_1 is a wave, f_2 a slope. */
static double wave(const double *x)
{
    return 1.5 * sin(1.7 * x[0]) + 0.4 * x[1];
}

typedef struct example {
    int rows;
    const char *likelihood, *kernel, *mean;
    int outputs, classes;
    bool shared;
    void (*draw)(int64_t i, const double *x, const double *noise, double *y);
} example;

static void draw_real(int64_t i, const double *x, const double *noise, double *y)
{
    (void)i;
    y[0] = wave(x) + 0.3 * noise[0];
}

static void draw_outliers(int64_t i, const double *x, const double *noise, double *y)
{
    y[0] = wave(x) + 0.15 * noise[0] + (i % 9 == 4 ? (i % 2 ? 4.0 : -5.0) : 0.0);
}

static void draw_changing(int64_t i, const double *x, const double *noise, double *y)
{
    (void)i;
    y[0] = wave(x) + exp(0.8 * x[0] - 1.0) * noise[0];
}

static void draw_sign(int64_t i, const double *x, const double *noise, double *y)
{
    (void)i;
    y[0] = wave(x) + 0.5 * noise[0] > 0.0 ? 1.0 : -1.0;
}

static void draw_count(int64_t i, const double *x, const double *noise, double *y)
{
    (void)i;
    y[0] = floor(exp(0.5 + 0.8 * wave(x) + 0.1 * noise[0]) + 0.5 * fabs(noise[0]));
}

static void draw_class(int64_t i, const double *x, const double *noise, double *y)
{
    (void)i;
    y[0] = wave(x) + 0.5 * noise[0] > 0.6 ? 2.0 : x[1] > 0.0 ? 1.0 : 0.0;
}

static const example examples[] = {
    {N, "gaussian(noise~0.2)", "matern52(ard)", "constant", 1, 0, false, draw_real},
    {N, "bernoulli", "se(lengthscale~0.9, variance~2)", "constant", 1, 0, false, draw_sign},
    {N, "bernoulli-probit", "matern32", "linear", 1, 0, false, draw_sign},
    {N, "poisson", "matern52(ard)", "constant", 1, 0, false, draw_count},
    {N, "negative-binomial(r~2)", "matern52", "zero", 1, 0, false, draw_count},
    {N, "student-t(nu~4, scale~0.2)", "se(lengthscale~0.8, variance~1.5)", "constant", 1, 0, false, draw_outliers},
    {N, "laplace(beta~0.3)", "se(lengthscale~0.8)", "constant", 1, 0, false, draw_outliers},
    {N, "heteroscedastic", "se(lengthscale~0.9, variance~2)", "constant", 1, 0, false, draw_changing},
    {FEW, "softmax", "se(lengthscale~0.9, variance~2)", "zero", 1, 3, false, draw_class},
    {FEW, "softmax", "matern52(variance~2)", "constant", 1, 3, true, draw_class},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static void open_setting(setting *s, thiele_context *c, const example *e, int64_t n)
{
    memset(s, 0, sizeof *s);
    thi_columns columns = {.dims = D, .columns = D};
    assert_ok(c, thiele_likelihood_parse(&s->spec.lik, c, e->likelihood, e->outputs, e->classes));
    assert_ok(c, thi_latents_make(&s->spec.latents, c, e->kernel, e->mean, &columns, s->spec.lik->latents, e->shared));
    assert_ok(c, thi_rows_alloc(&s->rows, c, n, D, e->outputs, (thi_aside){0}));
    test_normals(D * n, 1, s->rows.X);
    double *noise = calloc((size_t)n, sizeof *noise);
    test_normals(n, 2, noise);
    for (int64_t i = 0; i < n; i++) {
        e->draw(i, s->rows.X + i * D, noise + i, s->rows.y + i * e->outputs);
    }
    free(noise);
    for (int j = 0; j < s->spec.latents.groups * s->spec.latents.mean_parameters; j++) {
        s->spec.latents.mean_parameter[j] = 0.2 * cos(j);
    }
    assert_ok(c, thi_dense_fit_open(&s->fit, c, &s->spec, &s->rows));
}

static void close_setting(setting *s)
{
    thi_dense_fit_close(&s->fit);
    thi_rows_free(&s->rows);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
}

static double converge(setting *s, const thi_converge_options *options)
{
    thi_converge_result result;
    assert_ok(ctx, thi_dense_converge(&s->fit, ctx, options, &result));
    assert_true(result.converged);
    return s->fit.bound;
}

/* --- identities -------------------------------------------------------------------------------------------------- */

static void test_gaussian(void **state)
{
    (void)state;
    setting s;
    thi_exact exact;
    thi_converge_result result;
    double theta_bar[MOST] = {0}, gradient[MOST] = {0};
    open_setting(&s, ctx, &examples[0], N);
    const thi_prior *prior = s.spec.latents.prior;
    int kernel = prior->kernel->parameters;
    assert_ok(ctx, thi_dense_converge(&s.fit, ctx, &tight, &result));
    assert_int_equal(result.steps, 1);
    assert_ok(ctx, thi_exact_open(&exact, ctx, N, s.rows.X, s.rows.y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, prior, 0.2));
    double evidence = exact.log_marginal;
    assert_near(s.fit.bound, evidence, 1e-10, 0.0);
    assert_ok(ctx, thi_exact_gradient(&exact, ctx, prior, theta_bar, theta_bar + kernel, theta_bar + kernel + 1));
    assert_ok(ctx, thi_dense_fit_gradient(&s.fit, ctx, gradient));
    assert_all_near(gradient, theta_bar, kernel + 2, 1e-9, 1e-9);
    thi_exact_close(&exact);
    /* From whatever sites, one step. */
    for (int i = 0; i < N; i++) {
        s.fit.sites[i] = 1.0 + i;
        s.fit.sites[N + i] = sin(i);
    }
    assert_ok(ctx, thi_dense_converge(&s.fit, ctx, &tight, &result));
    assert_true(result.converged);
    assert_int_equal(result.steps, 2);
    assert_near(s.fit.bound, evidence, 1e-10, 1e-10);
    close_setting(&s);
}

/* The bound never falls, and ends where lambda = -2h, nu = g - 2h mu. */
static void test_monotone(void **state)
{
    (void)state;
    for (int e = 0; e < EXAMPLES; e++) {
        setting s;
        thi_converge_options one = {1e-11, 2, false};
        thi_converge_result result = {0};
        double before = -INFINITY;
        int steps = 0, negative = 0;
        open_setting(&s, ctx, &examples[e], examples[e].rows);
        for (; steps < 100 && !result.converged; steps++) {
            assert_ok(ctx, thi_dense_converge(&s.fit, ctx, &one, &result));
            assert_true(s.fit.bound >= before - 1e-11);
            before = s.fit.bound;
        }
        assert_true(result.converged);
        int64_t n = s.rows.n, Q = s.spec.latents.count;
        for (int64_t j = 0; j < n * Q; j++) {
            int64_t at = j / n + j % n * Q;
            negative += s.fit.sites[j] < 0.0;
            assert_near(s.fit.sites[j], -2.0 * s.fit.h[at], 1e-4, 1e-4);
            assert_near(s.fit.sites[n * Q + j], s.fit.g[at] + s.fit.sites[j] * s.fit.mu[j], 1e-4, 1e-4);
        }
        /* Student-t's outliers take back what the prior says. */
        assert_true(strncmp(examples[e].likelihood, "student", 7) != 0 || negative >= 3);
        close_setting(&s);
    }
}

/* --- the gradient ------------------------------------------------------------------------------------------------ */

/* The number behind entry `at` of the gradient is moved by `step` (its log where it is a log there). */
static void move(setting *s, int at, double step)
{
    thi_latents *latents = &s->spec.latents;
    for (int g = 0; g < latents->groups; g++) {
        thiele_kernel *kernel = latents->kernel[g];
        if (at < kernel->parameters) {
            thi_kernel_set_one(kernel, at, kernel->log_value[at] + step);
            return;
        }
        at -= kernel->parameters;
        if (at < latents->mean_parameters) {
            latents->mean_parameter[g * latents->mean_parameters + at] += step;
            return;
        }
        at -= latents->mean_parameters;
    }
    double value = s->spec.lik->value[at];
    assert_ok(ctx, thi_likelihood_set_phi(s->spec.lik, ctx, at,
                                          s->spec.lik->phi[at].positive ? value * exp(step) : value + step));
}

static int gradient_size(const setting *s)
{
    int size = s->spec.lik->parameters;
    for (int g = 0; g < s->spec.latents.groups; g++) {
        size += s->spec.latents.kernel[g]->parameters + s->spec.latents.mean_parameters;
    }
    return size;
}

/* A step of 1e-3 leaves 1e-6 of third derivatives of size 1, and a bound good to 1e-10 another 1e-7. */
static void check_gradient(setting *s, const thi_converge_options *options, double tolerance)
{
    double gradient[MOST] = {0}, step = 1e-3;
    converge(s, options);
    assert_ok(ctx, thi_dense_fit_gradient(&s->fit, ctx, gradient));
    for (int at = 0; at < gradient_size(s); at++) {
        move(s, at, step);
        double up = converge(s, &tight);
        move(s, at, -2.0 * step);
        double down = converge(s, &tight);
        move(s, at, step);
        assert_near(gradient[at], (up - down) / (2.0 * step), tolerance, tolerance);
    }
}

static void test_gradient(void **state)
{
    (void)state;
    for (int e = 0; e < EXAMPLES; e++) {
        setting s;
        open_setting(&s, ctx, &examples[e], examples[e].rows);
        check_gradient(&s, &tight, 2e-5);
        converge(&s, &tight);
        /* What is left out at the tolerance of a fit is of second order. */
        check_gradient(&s, &usual, 2e-3);
        close_setting(&s);
    }
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

/* Rows without outputs say nothing: the others end as if these were not there. */
static void test_missing(void **state)
{
    (void)state;
    static const int which[] = {1, 3, 7, 8};
    for (int k = 0; k < 4; k++) {
        setting all, some;
        int n = examples[which[k]].rows, seen = n * 2 / 3;
        open_setting(&all, ctx, &examples[which[k]], n);
        open_setting(&some, ctx, &examples[which[k]], seen);
        for (int i = seen; i < n; i++) {
            all.rows.y[i] = NAN;
        }
        assert_near(converge(&all, &tight), converge(&some, &tight), 1e-9, 1e-9);
        int Q = all.spec.latents.count;
        for (int q = 0; q < Q; q++) {
            assert_all_near(all.fit.mu + q * n, some.fit.mu + q * seen, seen, 1e-5, 1e-5);
            for (int i = seen; i < n; i++) {
                assert_true(all.fit.sites[i + q * n] == 0.0 && all.fit.sites[i + (q + Q) * n] == 0.0);
            }
        }
        close_setting(&some);
        close_setting(&all);
    }
}

/* An offset is a mean that is known: with the same numbers both end with the same bound. */
static void test_offset(void **state)
{
    (void)state;
    setting mean, offset;
    open_setting(&mean, ctx, &examples[3], N);
    open_setting(&offset, ctx, &examples[3], N);
    double constant = offset.spec.latents.mean_parameter[0], known[N];
    offset.spec.latents.mean_parameter[0] = 0.0;
    for (int i = 0; i < N; i++) {
        known[i] = constant;
    }
    offset.rows.offset = known;
    assert_near(converge(&offset, &tight), converge(&mean, &tight), 1e-12, 1e-10);
    assert_all_near(offset.fit.f_mu, mean.fit.f_mu, N, 1e-6, 1e-6);
    offset.rows.offset = NULL;
    close_setting(&mean);
    close_setting(&offset);
}

/* Sites of a far away prior: the same summit, with none to keep as well. */
static void test_warm(void **state)
{
    (void)state;
    for (int e = 0; e < EXAMPLES; e++) {
        setting s;
        thi_converge_options cold = {1e-11, 200, true};
        open_setting(&s, ctx, &examples[e], examples[e].rows);
        double first = converge(&s, &tight);
        move(&s, 0, 0.7);
        move(&s, 1, 3.0);
        converge(&s, &tight);
        move(&s, 0, -0.7);
        move(&s, 1, -3.0);
        assert_near(converge(&s, &tight), first, 1e-9, 1e-9);
        assert_near(converge(&s, &cold), first, 1e-9, 1e-9);
        close_setting(&s);
    }
}

/* A density that is zero for f <= 0, and does not say so by a guess: halving finds a way or the error says where. */
static double positive_only(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    return f[0] > 0.0 ? log(f[0]) - y[0] * f[0] : -INFINITY;
}

/* Values far out leave sites that no step leads back from: the next values begin afresh. */
static void test_astray(void **state)
{
    (void)state;
    setting s;
    open_setting(&s, ctx, &examples[3], N);
    double *mean = s.spec.latents.mean_parameter, usual_mean = *mean, wanted = converge(&s, &tight);
    thiele_kernel *kernel = s.spec.latents.kernel[0];
    for (int k = 0; k < 20; k++) {
        thi_converge_result result;
        double shift = k % 2 == 0 ? 25.0 : 12.0, lowered = -pow(10.0, 1.0 + 0.8 * k);
        for (int i = 0; i < kernel->parameters; i++) {
            move(&s, i, i == kernel->parameters - 1 ? -shift : shift);
        }
        *mean = lowered;
        if (thi_dense_converge(&s.fit, ctx, &usual, &result) != THIELE_OK) {
            thi_recover(ctx);
        }
        for (int i = 0; i < kernel->parameters; i++) {
            move(&s, i, i == kernel->parameters - 1 ? shift : -shift);
        }
        *mean = usual_mean;
        assert_near(converge(&s, &tight), wanted, 1e-7, 1e-9);
    }
    close_setting(&s);
}

static void test_impossible(void **state)
{
    (void)state;
    thiele_likelihood_spec own = THIELE_LIKELIHOOD_SPEC_INIT;
    own.name = "rate";
    own.log_density = positive_only;
    setting s;
    thi_converge_result result;
    open_setting(&s, ctx, &examples[0], N);
    thiele_likelihood_destroy(s.spec.lik);
    assert_ok(ctx, thiele_likelihood_custom(&s.spec.lik, ctx, &own));
    s.fit.providers.lik = s.spec.lik;
    assert_fails(ctx, thi_dense_converge(&s.fit, ctx, &usual, &result), THIELE_ERROR_NUMERIC, "infinite");
    close_setting(&s);
}

/* --- bits, memory ------------------------------------------------------------------------------------------------ */

static void test_threads(void **state)
{
    (void)state;
    double results[3][MOST + 1] = {{0}};
    for (int threads = 1; threads <= 3; threads++) {
        setting s;
        thi_converge_result result;
        thiele_context *own = test_context(threads);
        open_setting(&s, own, &examples[7], 400);
        assert_ok(own, thi_dense_converge(&s.fit, own, &usual, &result));
        results[threads - 1][MOST] = s.fit.bound;
        assert_ok(own, thi_dense_fit_gradient(&s.fit, own, results[threads - 1]));
        close_setting(&s);
        thiele_context_destroy(own);
    }
    assert_memory_equal(results[0], results[1], sizeof results[0]);
    assert_memory_equal(results[0], results[2], sizeof results[0]);
}

static thiele_status use_all(setting *s)
{
    double gradient[MOST] = {0};
    thi_converge_result result;
    thiele_status status;
    THI_TRY(thi_dense_fit_open(&s->fit, ctx, &s->spec, &s->rows));
    THI_TRY(thi_dense_converge(&s->fit, ctx, &(thi_converge_options){1e-2, 3, false}, &result));
    THI_TRY(thi_dense_fit_gradient(&s->fit, ctx, gradient));
out:
    thi_dense_fit_close(&s->fit);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    setting s;
    open_setting(&s, ctx, &examples[9], 20);
    thi_dense_fit_close(&s.fit);
    size_t held = thi_memory_held(ctx);
    for (int64_t nth = 1;; nth++) {
        thi_fail_allocation(ctx, nth, false);
        thiele_status status = use_all(&s);
        assert_int_equal(thi_memory_held(ctx), held);
        if (status == THIELE_OK) {
            assert_true(nth > 20);
            break;
        }
        assert_int_equal(status, THIELE_ERROR_MEMORY);
    }
    thi_fail_allocation(ctx, 0, false);
    close_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaussian),    cmocka_unit_test(test_monotone),   cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_missing),     cmocka_unit_test(test_offset),     cmocka_unit_test(test_warm),
        cmocka_unit_test(test_astray),      cmocka_unit_test(test_impossible), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
