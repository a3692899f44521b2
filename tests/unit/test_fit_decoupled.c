/*
 * Decoupled fits: a large mean basis learns what as many functions of the covariance cannot; growing bases, rates,
 * forms, other likelihoods; the same bits on any number of threads; failing allocations.
 */
#include "testing_context.h"

#include "data/data.h"
#include "fit/decoupled.h"
#include "posterior/exact.h"

enum { D = 2, MOST = 3000, TESTS = 500 };

typedef struct setting {
    thiele_context *ctx;
    thi_spec spec;
    thi_hypers hypers;
    thi_rows rows;
    double tolerance;
    thi_predictor latent;
    thi_decoupled_result result;
    thi_fitted fitted;
} setting;

/* Some ten waves across the data: more than a few dozen functions can follow. */
static double wave(const double *x)
{
    return sin(9.0 * x[0]) * cos(8.0 * x[1]);
}

static void open_setting(setting *s, thiele_context *c, const char *likelihood, int64_t n, const char *set)
{
    static double scale[D] = {1.0, 1.0};
    thi_target target = {.scale = 1.0};
    thi_encoder encoder = {.dims = D, .scale = scale, .targets = 1, .target = &target};
    thi_columns columns = {.dims = D, .columns = D};
    memset(s, 0, sizeof *s);
    s->ctx = c;
    assert_ok(c, thiele_likelihood_parse(&s->spec.lik, c, likelihood, 1, 0));
    assert_ok(c, thi_latents_make(&s->spec.latents, c, "se(ard)", "zero", &columns, s->spec.lik->latents, false));
    assert_ok(c, thi_hypers_make(&s->hypers, c, &s->spec, &encoder, set, NULL));
    assert_ok(c, thi_rows_alloc(&s->rows, c, n, D, 1, (thi_aside){0}));
    for (int64_t i = 0; i < n; i++) {
        double *x = s->rows.X + i * D, noise = thi_random_normal((thi_stream){7, THI_RANDOM_DEMO, 2}, (uint64_t)i);
        for (int d = 0; d < D; d++) {
            x[d] = 2.0 * thi_random_uniform((thi_stream){7, THI_RANDOM_DEMO, 1}, (uint64_t)(i * D + d)) - 1.0;
        }
        bool classes = strncmp(likelihood, "bernoulli", 9) == 0;
        s->rows.y[i] = classes ? (3.0 * wave(x) + noise > 0.0 ? 1.0 : -1.0) : wave(x) + 0.1 * noise;
    }
}

static void close_setting(setting *s)
{
    thi_predictor_clear(&s->latent);
    thi_hypers_clear(&s->hypers);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
    thi_rows_free(&s->rows);
}

static thiele_status try_fit(setting *s, int iterations, const thi_decoupled_settings *settings, double deadline)
{
    thi_source source;
    thi_driver driver;
    thi_variational_settings sparse = {.iterations = iterations, .tolerance = s->tolerance};
    thi_predictor_clear(&s->latent);
    s->fitted = (thi_fitted){.latent = &s->latent};
    thi_source_of_rows(&source, &s->rows);
    thi_driver_start(&driver, s->ctx, deadline);
    return thi_fit_decoupled(&(thi_problem){s->ctx, &driver, &s->spec, &source, &s->hypers}, &sparse, settings,
                             &s->result, &s->fitted);
}

/* Mean square error at new points over the variance of the function, 1/4. */
static double error_of(const thi_predictor *p, thiele_context *c)
{
    double X[D * TESTS], mean[TESTS], variance[TESTS], sum = 0.0;
    int64_t clipped = 0;
    for (int64_t i = 0; i < D * TESTS; i++) {
        X[i] = 2.0 * thi_random_uniform((thi_stream){7, THI_RANDOM_DEMO, 5}, (uint64_t)i) - 1.0;
    }
    assert_ok(c, thi_predictor_marginals(p, c, TESTS, X, mean, variance, &clipped));
    for (int64_t i = 0; i < TESTS; i++) {
        double gap = mean[i] - wave(X + i * D);
        sum += gap * gap;
        assert_true(isfinite(mean[i]) && variance[i] >= 0.0);
    }
    return sum / TESTS / 0.25;
}

static const char *const near_values = "lengthscale~0.2, variance~0.5, noise~0.02";

/* --- learning ----------------------------------------------------------------------------------------------------- */

/* With few functions of the covariance, many of the mean are ahead of a variational fit with as many inducing inputs.
 */
static void test_ahead(void **state)
{
    (void)state;
    enum { FEW = 20 };
    setting s;
    thi_source source;
    thi_driver driver;
    thi_variational_settings svi = {.inducing = FEW, .optimizer = "natural", .batch = 500, .iterations = 300};
    thi_variational_result result;
    open_setting(&s, ctx, "gaussian", MOST, near_values);
    s.fitted = (thi_fitted){.latent = &s.latent};
    thi_source_of_rows(&source, &s.rows);
    thi_driver_start(&driver, ctx, 0.0);
    assert_ok(ctx,
              thi_fit_variational(&(thi_problem){ctx, &driver, &s.spec, &source, &s.hypers}, &svi, &result, &s.fitted));
    double shared = error_of(&s.latent, ctx), bound = s.fitted.value;
    close_setting(&s);
    open_setting(&s, ctx, "gaussian", MOST, near_values);
    thi_decoupled_settings settings = {.alpha = 600, .beta = FEW, .batch = 500, .learn_hypers = true};
    assert_ok(ctx, try_fit(&s, 300, &settings, 0.0));
    assert_true(s.result.orthogonal);
    assert_int_equal(s.result.alpha, 600);
    assert_int_equal(s.result.beta, FEW);
    assert_int_equal(s.latent.mean_n, 600 + FEW);
    double own = error_of(&s.latent, ctx);
    print_message("nMSE %.4f against %.4f, bound %.1f against %.1f, rate %g\n", own, shared, s.fitted.value, bound,
                  s.result.rate);
    assert_true(own < 0.1 * shared);
    assert_true(s.fitted.value > bound);
    /* Without sweeps it is further behind, but ahead of it still. */
    double swept = s.fitted.value;
    settings.sweeps = -1;
    close_setting(&s);
    open_setting(&s, ctx, "gaussian", MOST, near_values);
    assert_ok(ctx, try_fit(&s, 300, &settings, 0.0));
    assert_true(error_of(&s.latent, ctx) < 0.5 * shared);
    assert_true(s.fitted.value < swept);
    close_setting(&s);
}

/*
 * As the command has it: values on the way between two, a noise of the mean, rows held out for that of predictions. The
 * bound is above that of the small basis, and 90% intervals hold about as much (1,000 new rows: three standard errors
 * are 3%, and the noise is from 300).
 */
static void test_default(void **state)
{
    (void)state;
    enum { FEW = 20, NEW = 1000 };
    setting s, new;
    thi_source source;
    thi_driver driver;
    thi_variational_settings svi = {.inducing = FEW, .optimizer = "natural"};
    thi_variational_result result;
    thi_decoupled_settings settings = {.alpha = 600, .beta = FEW};
    double mean[MOST], variance[MOST];
    int64_t clipped = 0, inside = 0;
    open_setting(&s, ctx, "gaussian", MOST - NEW, near_values);
    s.fitted = (thi_fitted){.latent = &s.latent};
    thi_source_of_rows(&source, &s.rows);
    thi_driver_start(&driver, ctx, 0.0);
    assert_ok(ctx,
              thi_fit_variational(&(thi_problem){ctx, &driver, &s.spec, &source, &s.hypers}, &svi, &result, &s.fitted));
    double bound = s.fitted.value;
    close_setting(&s);
    open_setting(&s, ctx, "gaussian", MOST - NEW, near_values);
    assert_ok(ctx, try_fit(&s, 0, &settings, 0.0));
    assert_true(s.result.judged && s.fitted.value > bound);
    open_setting(&new, ctx, "gaussian", MOST, near_values);
    assert_ok(ctx, thi_predictor_marginals(&s.latent, ctx, MOST, new.rows.X, mean, variance, &clipped));
    for (int i = MOST - NEW; i < MOST; i++) {
        inside += fabs(new.rows.y[i] - mean[i]) < 1.6449 * sqrt(variance[i] + s.spec.lik->value[0]);
    }
    print_message("bound %.1f against %.1f, nMSE %.4f, %lld of %d inside, noise %.4f and %.4f, factor %.3f\n",
                  s.fitted.value, bound, error_of(&s.latent, ctx), (long long)inside, (int)NEW, s.spec.lik->value[0],
                  s.latent.noise, s.latent.tau);
    assert_true(error_of(&s.latent, ctx) < 0.02);
    assert_true(inside > 85 * NEW / 100 && inside < 95 * NEW / 100);
    close_setting(&new);
    close_setting(&s);
}

/* With a function at every row, sweeps end at the mean of exact regression, whatever the form. */
static void check_exact(const thi_decoupled_settings *settings)
{
    enum { SMALL = 200 };
    setting s;
    thi_exact exact;
    thi_predictor predictor;
    double mean[2][SMALL], variance[SMALL];
    int64_t clipped = 0;
    open_setting(&s, ctx, "gaussian", SMALL, "lengthscale=0.3, variance=0.5, noise=0.05");
    s.tolerance = 1e-12;
    assert_ok(ctx, try_fit(&s, 10, settings, 0.0));
    assert_ok(ctx, thi_predictor_marginals(&s.latent, ctx, SMALL, s.rows.X, mean[0], variance, &clipped));
    assert_ok(ctx, thi_exact_open(&exact, ctx, SMALL, s.rows.X, s.rows.y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, s.spec.latents.prior, 0.05));
    assert_true(s.fitted.value < exact.log_marginal);
    assert_ok(ctx, thi_predictor_freeze(&predictor, ctx, &exact, s.spec.latents.prior));
    assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, SMALL, s.rows.X, mean[1], variance, &clipped));
    /* What so many sweeps leave is in directions that the rows hardly tell apart; the mean is some 0.5 in size. */
    assert_all_near(mean[0], mean[1], SMALL, 0.0, 2e-3);
    thi_predictor_clear(&predictor);
    close_setting(&s);
}

static void test_exact(void **state)
{
    (void)state;
    check_exact(
        &(thi_decoupled_settings){.alpha = 200, .beta = 30, .batch = 100, .added = 100, .rate = 0.01, .sweeps = 200});
    check_exact(&(thi_decoupled_settings){.alpha = 200,
                                          .beta = 30,
                                          .batch = 100,
                                          .added = 100,
                                          .rate = 0.01,
                                          .sweeps = 200,
                                          .form = THI_DECOUPLED_PLAIN});
}

/* Every way gets somewhere by steps alone: the bound is above that of few, the error below that of the mean of y. */
static void test_ways(void **state)
{
    (void)state;
    const thi_decoupled_settings ways[] = {
        {.form = THI_DECOUPLED_PLAIN, .rate = 0.05},
        {.form = THI_DECOUPLED_PLAIN, .rate = 0.05, .generalised = true, .learn_basis = true},
        {.form = THI_DECOUPLED_ORTHOGONAL, .rate = 0.05, .learn_basis = true},
        {.form = THI_DECOUPLED_ORTHOGONAL, .rate = 0.05, .generalised = true, .learn_basis = true, .median = true},
        {.rate = 0.05, .beta = -1},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        setting s;
        thi_decoupled_settings settings = ways[i];
        open_setting(&s, ctx, "gaussian", 1000, near_values);
        settings.alpha = 250;
        settings.beta = settings.beta < 0 ? -1 : 25;
        settings.batch = 250;
        settings.columns = 100;
        settings.sweeps = -1;
        assert_ok(ctx, try_fit(&s, 5, &settings, 0.0));
        double first = s.fitted.value;
        assert_ok(ctx, try_fit(&s, 120, &settings, 0.0));
        double error = error_of(&s.latent, ctx);
        print_message("way %d: bound %.1f from %.1f, nMSE %.4f\n", (int)i, s.fitted.value, first, error);
        assert_true(s.fitted.value > first);
        assert_true(error < 0.7);
        assert_int_equal(s.result.alpha, 250);
        assert_int_equal(s.result.beta, settings.beta < 0 ? 0 : 25);
        close_setting(&s);
    }
}

static void test_classes(void **state)
{
    (void)state;
    setting s;
    int64_t clipped = 0, wrong = 0;
    double mean[TESTS], variance[TESTS];
    thi_decoupled_settings settings = {.alpha = 400, .beta = 30, .batch = 400, .rate = 0.05};
    open_setting(&s, ctx, "bernoulli-logit", 1500, "lengthscale~0.2, variance~4");
    assert_ok(ctx, try_fit(&s, 150, &settings, 0.0));
    assert_ok(ctx, thi_predictor_marginals(&s.latent, ctx, TESTS, s.rows.X, mean, variance, &clipped));
    for (int i = 0; i < TESTS; i++) {
        wrong += mean[i] * wave(s.rows.X + i * D) < 0.0;
    }
    print_message("%lld of %d on the wrong side of the function\n", (long long)wrong, TESTS);
    /* Of the function itself: 18% of the labels are on the wrong side of it. */
    assert_true(wrong < TESTS / 8);
    close_setting(&s);
}

/* Hyperparameters that are given stay, and a deadline in the past still ends with a model. */
static void test_conduct(void **state)
{
    (void)state;
    setting s;
    thi_decoupled_settings settings = {.alpha = 100, .beta = 20, .batch = 100};
    open_setting(&s, ctx, "gaussian", 300, "lengthscale=0.2, variance=0.5, noise=0.02");
    assert_ok(ctx, try_fit(&s, 40, &settings, 0.0));
    assert_true(s.spec.lik->value[0] == 0.02);
    assert_ok(ctx, try_fit(&s, 40, &settings, 1e-9));
    assert_int_equal(s.result.fit.stop, THIELE_STOP_DEADLINE);
    error_of(&s.latent, ctx);
    close_setting(&s);
    open_setting(&s, ctx, "gaussian", 3, near_values);
    settings.rate = 0.01;
    assert_ok(ctx, try_fit(&s, 3, &settings, 0.0));
    error_of(&s.latent, ctx);
    close_setting(&s);
    open_setting(&s, ctx, "gaussian", 50, near_values);
    thi_latents_clear(&s.spec.latents);
    thi_columns columns = {.dims = D, .columns = D};
    assert_ok(ctx, thi_latents_make(&s.spec.latents, ctx, "rq(ard)", "zero", &columns, 1, false));
    settings.generalised = true;
    assert_fails(ctx, try_fit(&s, 3, &settings, 0.0), THIELE_ERROR_ARGUMENT, "separate length-scales");
    close_setting(&s);
}

/*
 * One basis that grows: as good as a variational fit with as many inducing inputs that hold still, and an ordinary
 * sparse model. Steps whose batches add functions leave q as it was: the bound of a full batch does not fall.
 */
static void test_incremental(void **state)
{
    (void)state;
    setting s;
    thi_decoupled_settings settings = {
        .shared = true, .beta = 200, .batch = 500, .added = 50, .sweeps = -1, .rate = 0.01};
    open_setting(&s, ctx, "gaussian", MOST, "lengthscale=0.2, variance=0.5, noise=0.02");
    assert_ok(ctx, try_fit(&s, 100, &settings, 0.0));
    assert_int_equal(s.result.alpha, 0);
    assert_int_equal(s.result.beta, 200);
    assert_int_equal(s.latent.n, 200);
    assert_null(s.latent.mean_basis);
    double own = error_of(&s.latent, ctx), bound = s.fitted.value;
    thi_source source;
    thi_driver driver;
    double Z[200 * D];
    memcpy(Z, s.latent.basis, sizeof Z);
    thi_variational_settings collapsed = {.Z = Z, .Z_count = 200, .fixed_Z = true, .collapsed = true};
    thi_variational_result result;
    thi_predictor_clear(&s.latent);
    thi_source_of_rows(&source, &s.rows);
    thi_driver_start(&driver, ctx, 0.0);
    assert_ok(ctx, thi_fit_variational(&(thi_problem){ctx, &driver, &s.spec, &source, &s.hypers}, &collapsed, &result,
                                       &s.fitted));
    print_message("incremental: nMSE %.4f, bound %.3f; collapsed with its points %.3f\n", own, bound, s.fitted.value);
    assert_true(own < 0.02);
    /* The last step over all rows is the optimum of q for Gaussian noise, where both bounds are the tighter one. */
    assert_true(fabs(own - error_of(&s.latent, ctx)) < 1e-6 * own);
    assert_near(bound, s.fitted.value, 1e-8, 0.0);
    close_setting(&s);
}

static void test_threads(void **state)
{
    (void)state;
    double value[4], mean[4][TESTS], variance[TESTS];
    int64_t clipped = 0;
    for (int i = 0; i < 4; i++) {
        thiele_context *own = test_context(i % 2 + 1);
        setting s;
        bool general = i < 2;
        thi_decoupled_settings settings = {
            .alpha = 700, .beta = 60, .batch = 500, .rate = 0.05, .generalised = general, .learn_basis = general};
        open_setting(&s, own, "gaussian", 1500, near_values);
        assert_ok(own, try_fit(&s, 15, &settings, 0.0));
        value[i] = s.fitted.value;
        assert_ok(own, thi_predictor_marginals(&s.latent, own, TESTS, s.rows.X, mean[i], variance, &clipped));
        close_setting(&s);
        assert_int_equal(thi_memory_held(own), 0);
        thiele_context_destroy(own);
    }
    for (int i = 0; i < 4; i += 2) {
        assert_true(value[i] == value[i + 1]);
        assert_memory_equal(mean[i], mean[i + 1], sizeof mean[i]);
    }
}

static void check_allocations(const thi_decoupled_settings *settings, const char *set, int64_t far)
{
    thiele_context *own = test_context(1);
    setting s;
    open_setting(&s, own, "gaussian", 40, set);
    size_t held = thi_memory_held(own);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth += nth < 80 ? 1 : far) {
        thi_fail_allocation(own, nth, false);
        status = try_fit(&s, 12, settings, 0.0);
        thi_fail_allocation(own, 0, false);
        if (status == THIELE_ERROR_MEMORY) {
            assert_int_equal(thi_memory_held(own), held);
        }
    }
    assert_ok(own, status);
    close_setting(&s);
    assert_int_equal(thi_memory_held(own), 0);
    thiele_context_destroy(own);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    check_allocations(
        &(thi_decoupled_settings){.alpha = 20, .beta = 5, .batch = 20, .generalised = true, .learn_basis = true},
        "lengthscale=0.2, variance=0.5, noise=0.02", 37);
    check_allocations(&(thi_decoupled_settings){.alpha = 20, .beta = 5, .batch = 20}, near_values, 397);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ahead),       cmocka_unit_test(test_default), cmocka_unit_test(test_exact),
        cmocka_unit_test(test_ways),        cmocka_unit_test(test_classes), cmocka_unit_test(test_conduct),
        cmocka_unit_test(test_incremental), cmocka_unit_test(test_threads), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
