/*
 * Decoupled fits of several latent functions and targets: together they are what each is alone where nothing but the
 * kernel is shared; classes and heteroscedastic noise end above the variational fit that they begin with;
 * every provider of expectations; the same bits on any number of threads; deadlines; failing allocations.
 */
#include "testing_context.h"

#include "data/data.h"
#include "fit/decoupled.h"

enum { D = 2, TESTS = 300, MOST_LATENTS = 8, MOST_OUTPUTS = 2 };

typedef struct setting {
    thiele_context *ctx;
    thi_spec spec;
    thi_hypers hypers;
    thi_rows rows;
    bool condition;
    double tolerance;
    thi_predictor latent[MOST_LATENTS];
    thi_decoupled_result result;
    thi_fitted fitted;
} setting;

typedef struct kind {
    const char *likelihood;
    int outputs, classes;
    bool shared;
    const char *set;
} kind;

static double wave(const double *x, int k)
{
    return k == 0 ? sin(5.0 * x[0]) * cos(4.0 * x[1]) : cos(4.0 * x[0] + x[1]);
}

static double draw(uint64_t stream, int64_t i)
{
    return thi_random_normal((thi_stream){7, THI_RANDOM_DEMO, stream}, (uint64_t)i);
}

/* y of a row: labels 0 .. classes - 1; a noise that depends on x; or waves. */
static void make_row(const kind *k, int64_t i, const double *x, double *y)
{
    if (k->classes > 0) {
        double best = -INFINITY;
        for (int c = 0; c < k->classes; c++) {
            double u = thi_random_uniform((thi_stream){7, THI_RANDOM_DEMO, 20 + (uint64_t)c}, (uint64_t)i);
            double f = (c < 2 ? 3.0 * wave(x, c) : 0.0) - log(-log(u));
            *y = f > best ? c : *y;
            best = fmax(best, f);
        }
        return;
    }
    for (int p = 0; p < k->outputs; p++) {
        bool uneven = strncmp(k->likelihood, "hetero", 6) == 0;
        y[p] = wave(x, p) + (uneven ? 0.1 * exp(x[1]) : 0.1) * draw(2 + (uint64_t)p, i);
    }
}

static void open_setting(setting *s, thiele_context *c, const kind *k, int64_t n)
{
    static double scale[D] = {1.0, 1.0};
    thi_target target[MOST_OUTPUTS] = {{.scale = 1.0, .name = "y1"}, {.scale = 1.0, .name = "y2"}};
    thi_encoder encoder = {.dims = D, .scale = scale, .targets = k->outputs, .target = target};
    thi_columns columns = {.dims = D, .columns = D};
    memset(s, 0, sizeof *s);
    s->ctx = c;
    assert_ok(c, thiele_likelihood_parse(&s->spec.lik, c, k->likelihood, k->outputs, k->classes));
    assert_ok(c, thi_latents_make(&s->spec.latents, c, "se(ard)", "zero", &columns, s->spec.lik->latents, k->shared));
    assert_ok(c, thi_hypers_make(&s->hypers, c, &s->spec, &encoder, k->set, NULL));
    assert_ok(c, thi_rows_alloc(&s->rows, c, n, D, k->outputs, (thi_aside){0}));
    for (int64_t i = 0; i < n; i++) {
        double *x = s->rows.X + i * D;
        for (int d = 0; d < D; d++) {
            x[d] = 2.0 * thi_random_uniform((thi_stream){7, THI_RANDOM_DEMO, 1}, (uint64_t)(i * D + d)) - 1.0;
        }
        make_row(k, i, x, s->rows.y + i * k->outputs);
    }
}

static void clear_latents(setting *s)
{
    for (int q = 0; q < MOST_LATENTS; q++) {
        thi_predictor_clear(&s->latent[q]);
    }
}

static void close_setting(setting *s)
{
    clear_latents(s);
    thi_hypers_clear(&s->hypers);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
    thi_rows_free(&s->rows);
}

static thiele_status try_fit(setting *s, const thi_decoupled_settings *settings, int iterations, double deadline)
{
    thi_source source;
    thi_driver driver;
    thi_variational_settings sparse = {.iterations = iterations, .condition = s->condition, .tolerance = s->tolerance};
    clear_latents(s);
    s->fitted = (thi_fitted){.latent = s->latent};
    thi_source_of_rows(&source, &s->rows);
    thi_driver_start(&driver, s->ctx, deadline);
    return thi_fit_decoupled(&(thi_problem){s->ctx, &driver, &s->spec, &source, &s->hypers}, &sparse, settings,
                             &s->result, &s->fitted);
}

static void predict(const setting *s, int q, double *mean, double *variance)
{
    double X[D * TESTS];
    int64_t clipped = 0;
    for (int64_t i = 0; i < D * TESTS; i++) {
        X[i] = 2.0 * thi_random_uniform((thi_stream){7, THI_RANDOM_DEMO, 5}, (uint64_t)i) - 1.0;
    }
    assert_ok(s->ctx, thi_predictor_marginals(&s->latent[q], s->ctx, TESTS, X, mean, variance, &clipped));
    for (int64_t i = 0; i < TESTS; i++) {
        assert_true(isfinite(mean[i]) && variance[i] >= 0.0);
    }
}

/* --- identities --------------------------------------------------------------------------------------------------- */

#define GIVEN "lengthscale=0.4, variance=0.8, "

static const kind both = {"gaussians", 2, 0, true, GIVEN "noise1=0.02, noise2=0.02"},
                  one = {"gaussian", 1, 0, true, GIVEN "noise=0.02"};

/*
 * Two targets that share a kernel and its given values, and each of them alone, by sweeps and by steps. With the rates
 * of Adam, whose steps are of the size of the sign of a slope, rounding grows by a factor a step.
 */
static void check_alone(const thi_decoupled_settings *settings, double tolerance)
{
    setting s, alone;
    double sum = 0.0;
    open_setting(&s, ctx, &both, 600);
    s.condition = true;
    s.tolerance = 1e-12;
    assert_ok(ctx, try_fit(&s, settings, 20, 0.0));
    for (int q = 0; q < 2; q++) {
        double mean[2][TESTS], variance[2][TESTS];
        open_setting(&alone, ctx, &one, 600);
        alone.condition = true;
        alone.tolerance = 1e-12;
        for (int64_t i = 0; i < 600; i++) {
            alone.rows.y[i] = s.rows.y[q + 2 * i];
        }
        assert_ok(ctx, try_fit(&alone, settings, 20, 0.0));
        predict(&s, q, mean[0], variance[0]);
        predict(&alone, 0, mean[1], variance[1]);
        assert_int_equal(alone.result.alpha, s.result.alpha);
        assert_all_near(mean[0], mean[1], TESTS, tolerance, tolerance);
        assert_all_near(variance[0], variance[1], TESTS, tolerance, tolerance);
        sum += alone.fitted.value;
        close_setting(&alone);
    }
    assert_near(s.fitted.value, sum, tolerance, 0.0);
    close_setting(&s);
}

static void test_targets_alone(void **state)
{
    (void)state;
    check_alone(&(thi_decoupled_settings){.alpha = 150, .beta = 20, .batch = 200, .sweeps = 8}, 1e-8);
    check_alone(&(thi_decoupled_settings){.alpha = 150, .beta = 20, .batch = 200, .sweeps = -1, .rate = 0.01}, 1e-7);
    check_alone(
        &(thi_decoupled_settings){
            .alpha = 60, .beta = 20, .batch = 200, .sweeps = -1, .rate = 0.01, .form = THI_DECOUPLED_PLAIN},
        1e-7);
}

/* A target that some rows lack: they tell nothing of it, so that it is learned from the others alone. */
static void test_missing(void **state)
{
    (void)state;
    enum { N = 600 };
    setting s, alone;
    double mean[2][TESTS], variance[2][TESTS], basis[40 * D];
    thi_decoupled_settings settings = {.alpha = N, .beta = 40, .batch = N, .added = N, .sweeps = 60};
    open_setting(&s, ctx, &both, N);
    open_setting(&alone, ctx, &one, N);
    for (int64_t i = 0; i < N; i++) {
        alone.rows.y[i] = s.rows.y[1 + 2 * i];
        s.rows.y[1 + 2 * i] = i % 3 == 0 ? NAN : s.rows.y[1 + 2 * i];
    }
    s.condition = alone.condition = true;
    s.tolerance = alone.tolerance = 1e-12;
    assert_ok(ctx, try_fit(&s, &settings, 20, 0.0));
    memcpy(basis, s.latent[1].basis, sizeof basis);
    predict(&s, 1, mean[0], variance[0]);
    /* Rows of no weight at all in its place. */
    thi_rows some = {0};
    int64_t order[N], count = 0;
    for (int64_t i = 0; i < N; i++) {
        order[count] = i;
        count += i % 3 != 0;
    }
    assert_ok(ctx, thi_rows_take(&some, ctx, &alone.rows, count, order));
    thi_rows_free(&alone.rows);
    alone.rows = some;
    thi_source source;
    thi_driver driver;
    thi_variational_settings sparse = {
        .condition = true, .tolerance = 1e-12, .Z = basis, .Z_count = settings.beta, .iterations = 20};
    alone.fitted = (thi_fitted){.latent = alone.latent};
    thi_source_of_rows(&source, &alone.rows);
    thi_driver_start(&driver, ctx, 0.0);
    assert_ok(ctx, thi_fit_decoupled(&(thi_problem){ctx, &driver, &alone.spec, &source, &alone.hypers}, &sparse,
                                     &settings, &alone.result, &alone.fitted));
    predict(&alone, 0, mean[1], variance[1]);
    /* With functions at all rows, and at those that have it, the mean is that of exact regression but for what sweeps
     * leave. */
    assert_all_near(mean[0], mean[1], TESTS, 1e-3, 1e-3);
    assert_all_near(variance[0], variance[1], TESTS, 1e-8, 1e-8);
    close_setting(&alone);
    close_setting(&s);
}

/* --- likelihoods -------------------------------------------------------------------------------------------------- */

static const kind kinds[] = {
    {"softmax", 1, 3, false, "lengthscale~0.4, variance~3"},
    {"softmax", 1, 3, true, "lengthscale~0.4, variance~3"},
    {"heteroscedastic", 1, 0, false, "lengthscale~0.4"},
    {"gaussians", 2, 0, false, "lengthscale~0.4, noise1~0.05, noise2~0.05"},
    {"gaussians", 2, 0, true, "lengthscale~0.4, noise1~0.05, noise2~0.05"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The bound of the variational fit that a decoupled one begins with is below its own, at least where nothing is held
 * out of its rows in the end. */
static void test_kinds(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        setting s;
        thi_source source;
        thi_driver driver;
        thi_variational_settings small = {.inducing = 15, .optimizer = "natural", .iterations = 60};
        thi_variational_result result;
        thi_decoupled_settings settings = {.alpha = 200, .beta = 15};
        open_setting(&s, ctx, &kinds[k], 800);
        s.fitted = (thi_fitted){.latent = s.latent};
        thi_source_of_rows(&source, &s.rows);
        thi_driver_start(&driver, ctx, 0.0);
        assert_ok(ctx, thi_fit_variational(&(thi_problem){ctx, &driver, &s.spec, &source, &s.hypers}, &small, &result,
                                           &s.fitted));
        double floor = s.fitted.value;
        close_setting(&s);
        open_setting(&s, ctx, &kinds[k], 800);
        assert_ok(ctx, try_fit(&s, &settings, 60, 0.0));
        print_message("%s: bound %.2f, of the small basis %.2f\n", kinds[k].likelihood, s.fitted.value, floor);
        assert_true(s.fitted.value > floor);
        for (int q = 0; q < s.spec.lik->latents; q++) {
            double mean[TESTS], variance[TESTS];
            predict(&s, q, mean, variance);
            assert_int_equal(s.latent[q].mean_n, 215);
        }
        close_setting(&s);
    }
}

/* Expectations by other means end near to the closed ones: of draws as near as these are many. */
static void test_providers(void **state)
{
    (void)state;
    static const struct {
        const char *expectation;
        double near;
    } ways[] = {{"closed", 0.0}, {"quadrature", 1e-3}, {"qmc:256", 0.05}, {"mc:400", 0.1}};
    double first[TESTS], mean[TESTS], variance[TESTS];
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        const kind uneven = {"heteroscedastic", 1, 0, false, "f1.lengthscale=0.4, f2.lengthscale=1"};
        setting s;
        open_setting(&s, ctx, &uneven, 500);
        s.spec.expectation = ways[w].expectation;
        s.condition = true;
        assert_ok(ctx, try_fit(&s, &(thi_decoupled_settings){.alpha = 120, .beta = 20}, 20, 0.0));
        predict(&s, 0, w == 0 ? first : mean, variance);
        for (int i = 0; i < TESTS && w > 0; i++) {
            assert_near(mean[i], first[i], 0.0, ways[w].near);
        }
        close_setting(&s);
    }
}

/* --- conduct ------------------------------------------------------------------------------------------------------ */

static void test_threads(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        double value[2], mean[2][TESTS], variance[2][TESTS];
        for (int i = 0; i < 2; i++) {
            thiele_context *own = test_context(i + 1);
            setting s;
            open_setting(&s, own, &kinds[k], 700);
            s.condition = kinds[k].classes > 0; /* exploring by a dense method is tested elsewhere, and slow */
            assert_ok(own, try_fit(&s, &(thi_decoupled_settings){.alpha = 300, .beta = 20, .batch = 300}, 8, 0.0));
            value[i] = s.fitted.value;
            predict(&s, s.spec.lik->latents - 1, mean[i], variance[i]);
            close_setting(&s);
            assert_int_equal(thi_memory_held(own), 0);
            thiele_context_destroy(own);
        }
        assert_true(value[0] == value[1]);
        assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
        assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
    }
}

/* A deadline in the past still ends with a model, by every form; one of a second is kept. */
static void test_deadline(void **state)
{
    (void)state;
    const thi_decoupled_settings ways[] = {
        {.alpha = 100, .beta = 15, .batch = 100},
        {.alpha = 100, .beta = 15, .batch = 100, .sweeps = -1, .form = THI_DECOUPLED_PLAIN},
        {.beta = 15, .batch = 100, .sweeps = -1, .shared = true, .median = true},
    };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        setting s;
        double mean[TESTS], variance[TESTS];
        open_setting(&s, ctx, &kinds[0], 300);
        assert_ok(ctx, try_fit(&s, &ways[w], 40, 1e-9));
        assert_int_equal(s.result.fit.stop, THIELE_STOP_DEADLINE);
        for (int q = 0; q < 3; q++) {
            predict(&s, q, mean, variance);
        }
        close_setting(&s);
    }
}

static void test_failing_allocations(void **state)
{
    (void)state;
    static const int tried[] = {1, 4};
    for (size_t t = 0; t < sizeof tried / sizeof *tried; t++) {
        thiele_context *own = test_context(1);
        setting s;
        open_setting(&s, own, &kinds[tried[t]], 40);
        s.condition = true;
        size_t held = thi_memory_held(own);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth += nth < 120 ? 1 : 37) {
            thi_fail_allocation(own, nth, false);
            status = try_fit(&s, &(thi_decoupled_settings){.alpha = 20, .beta = 5, .batch = 20}, 4, 0.0);
            thi_fail_allocation(own, 0, false);
            if (status == THIELE_ERROR_MEMORY) {
                clear_latents(&s);
                assert_int_equal(thi_memory_held(own), held);
            }
        }
        assert_ok(own, status);
        close_setting(&s);
        assert_int_equal(thi_memory_held(own), 0);
        thiele_context_destroy(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_alone),       cmocka_unit_test(test_missing), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_providers),           cmocka_unit_test(test_threads), cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
