/*
 * What the main library does with one for another device: finds it, says what is wrong with it, agrees with the CPU in
 * value, gradient, leave-one-out predictions and predictor for every kernel, and goes on with the CPU where a card
 * fails. The library is THIELE_CUDA_LIBRARY of the environment: a toy (tests/toy/device_toy.c), or libthiele-cuda.
 */
#include "testing.h"

#include <thiele/device.h>

#include "fit/search.h"
#include "posterior/device.h"
#include "posterior/engine.h"

enum { D = 3, TARGETS = 2, BARS = 40, LOG_LENGTH = 2000 };

static char told[LOG_LENGTH];

static void hear(thiele_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    strncat(told, line, sizeof told - strlen(told) - 1);
}

static thiele_context *context_on(const char *device)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx = NULL;
    options.threads = 2;
    options.device = device;
    options.log = hear;
    told[0] = '\0';
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
    return ctx;
}

static bool is_toy(void)
{
    const char *library = getenv("THIELE_CUDA_LIBRARY");
    return library != NULL && strstr(library, "device_toy") != NULL;
}

/* A context on a card; where there is none the test says so and is skipped. */
static thiele_context *need_card(void)
{
    thiele_context *ctx = context_on("cuda");
    if (!thi_engine_exact_device.ready(ctx)) {
        thiele_context_destroy(ctx);
        print_message("skipped, as there is no card\n");
        skip();
    }
    return ctx;
}

static void need_toy(void)
{
    if (!is_toy()) {
        print_message("skipped: for the toy only\n");
        skip();
    }
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static void test_words(void **state)
{
    (void)state;
    static const char *const good[] = {"auto", "cpu", "cuda", "cuda:0", "cuda:12", NULL};
    static const char *const bad[] = {"",        "gpu",   "cuda:", "cuda:x",   "cuda:1x",
                                      "cuda::1", "cpu:0", "auto:", "cuda:1000"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        thiele_context_destroy(context_on(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
        thiele_context *ctx;
        options.device = bad[i];
        assert_int_equal(thiele_context_create(&ctx, &options), THIELE_ERROR_ARGUMENT);
        assert_null(ctx);
    }
}

static void test_list(void **state)
{
    (void)state;
    thiele_context *ctx = context_on(NULL);
    thiele_device device;
    int count = thiele_device_count(ctx);
    assert_true(count >= 1);
    for (int i = 0; i < count; i++) {
        assert_ok(ctx, thiele_device_describe(ctx, i, &device));
        assert_true(device.available <= device.memory && device.memory > 0);
        assert_true(strncmp(device.name, i == 0 ? "cpu" : "cuda:", i == 0 ? 4 : 5) == 0);
    }
    assert_fails(ctx, thiele_device_describe(ctx, count, &device),
                 count == 1 ? THIELE_ERROR_UNSUPPORTED : THIELE_ERROR_ARGUMENT, "");
    assert_fails(ctx, thiele_device_describe(ctx, -1, &device), THIELE_ERROR_ARGUMENT, "there is no device number -1");
    thiele_context_destroy(ctx);
}

/* --- agreement ---------------------------------------------------------------------------------------------------- */

typedef struct said {
    double value, bar[BARS], *mean, *variance, *mu, *v;
} said;

typedef struct rows {
    int64_t n;
    double *X, *y;
} rows;

static double *numbers(int64_t n)
{
    double *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    return x;
}

/* Far from the origin in one column, and with two rows that are equal but for rounding. */
static rows make_rows(int64_t n)
{
    rows r = {n, numbers(n * D), numbers(n * TARGETS)};
    test_normals(n * D, 1, r.X);
    test_normals(n * TARGETS, 2, r.y);
    for (int64_t i = 0; i < n; i++) {
        r.X[i * D + 1] += 1000.0;
        r.y[i * TARGETS] += 2.0 * sin(2.0 * r.X[i * D]);
    }
    for (int d = 0; n > 5 && d < D; d++) {
        r.X[5 * D + d] = r.X[3 * D + d];
    }
    return r;
}

static void ask(thiele_context *ctx, const thi_engine *engine, const thiele_kernel *kernel, const rows *r, int targets,
                said *out)
{
    double mean[D + 1] = {0.1, 0.2, 0.0, -0.1}, noise = 0.2, kl;
    thi_prior prior = {kernel, THI_MEAN_LINEAR, mean};
    thi_exact_shape shape = {r->n, targets, r->X, r->y, NULL};
    thi_exact_bar bar = {out->bar, out->bar + kernel->parameters, out->bar + BARS - 1};
    thi_predictor predictor = {0};
    int64_t clipped;
    void *self;
    memset(out->bar, 0, sizeof out->bar);
    assert_true(kernel->parameters + D + 2 <= BARS);
    assert_ok(ctx, engine->open(&self, ctx, &shape));
    assert_ok(ctx, engine->begin(self, ctx, &prior, &noise));
    assert_ok(ctx, engine->end(self, ctx, NULL, &kl, targets > 1 ? &bar : NULL));
    if (targets == 1) {
        assert_ok(ctx, engine->leave_out(self, ctx, out->mean, out->variance));
        assert_ok(ctx, engine->end(self, ctx, NULL, &kl, &bar));
        assert_ok(ctx, engine->freeze(self, ctx, 0, &predictor));
        assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, r->n / 2, r->X, out->mu, out->v, &clipped));
        thi_predictor_clear(&predictor);
    }
    out->value = -kl;
    engine->close(self);
}

static void compare(thiele_context *ctx, const char *text, const rows *r, int targets)
{
    thiele_kernel *kernel;
    said here, there;
    said *const both[] = {&here, &there};
    double largest = 0.0;
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, text, D, NULL));
    for (int i = 0; i < 2; i++) {
        *both[i] =
            (said){.mean = numbers(r->n * targets), .variance = numbers(r->n), .mu = numbers(r->n), .v = numbers(r->n)};
        ask(ctx, i == 0 ? &thi_engine_exact : &thi_engine_exact_device, kernel, r, targets, both[i]);
    }
    for (int i = 0; i < BARS; i++) {
        largest = fmax(largest, fabs(here.bar[i]));
    }
    print_message("%s, %lld rows: value %.1e\n", text, (long long)r->n, fabs(there.value - here.value));
    assert_near(there.value, here.value, 1e-10, 1e-10 * (double)r->n);
    assert_all_near(there.bar, here.bar, BARS, 0.0, 1e-8 * largest);
    assert_all_near(there.mean, here.mean, r->n, 1e-8, 1e-8);
    assert_all_near(there.variance, here.variance, r->n, 1e-8, 1e-8);
    assert_all_near(there.mu, here.mu, r->n, 1e-8, 1e-8);
    assert_all_near(there.v, here.v, r->n, 1e-8, 1e-8);
    for (int i = 0; i < 2; i++) {
        free(both[i]->mean);
        free(both[i]->variance);
        free(both[i]->mu);
        free(both[i]->v);
    }
    thiele_kernel_destroy(kernel);
}

/* Every kind of leaf, and trees of them. */
static void test_kernels(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "se(ard, lengthscale~[1,0.8,2])",
        "matern12(ard, lengthscale~1.5)",
        "matern32(lengthscale~0.7, dims=[1,3])",
        "matern52(ard)",
        "rq(ard, alpha~0.8)",
        "periodic(period~2, dims=[1])",
        "cosine(dims=[1,3])",
        "linear(ard, dims=[1,3]) + constant",
        "polynomial(dims=[1,3], offset~0.5, degree=2)",
        "white(variance~0.1) + matern52",
        "(matern32 + periodic(dims=[1])) * (se(dims=[3]) + linear(dims=[1])) + white(variance~0.01)",
    };
    thiele_context *ctx = need_card();
    rows small = make_rows(40);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        compare(ctx, texts[i], &small, 1);
    }
    compare(ctx, "matern52(ard) * rq + linear(dims=[1])", &small, TARGETS);
    free(small.X);
    free(small.y);
    thiele_context_destroy(ctx);
}

/* Sizes around those of tiles and panels; thousands of rows on a card only. */
static void test_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 100, 511, 512, 513, 1100, 4200};
    thiele_context *ctx = need_card();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && (sizes[i] <= 100 || !is_toy()); i++) {
        rows r = make_rows(sizes[i]);
        compare(ctx, "matern52(ard) + linear(dims=[1])", &r, 1);
        compare(ctx, "matern52(ard, lengthscale~2)", &r, TARGETS);
        free(r.X);
        free(r.y);
    }
    thiele_context_destroy(ctx);
}

/* The same bits from run to run. */
static void test_bits(void **state)
{
    (void)state;
    thiele_context *ctx = need_card();
    thiele_kernel *kernel;
    rows r = make_rows(is_toy() ? 50 : 1500);
    said first = {.mean = NULL}, second = {.mean = NULL};
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "matern52(ard)", D, NULL));
    ask(ctx, &thi_engine_exact_device, kernel, &r, TARGETS, &first);
    ask(ctx, &thi_engine_exact_device, kernel, &r, TARGETS, &second);
    assert_memory_equal(&first.value, &second.value, sizeof first.value);
    assert_memory_equal(first.bar, second.bar, sizeof first.bar);
    thiele_kernel_destroy(kernel);
    free(r.X);
    free(r.y);
    thiele_context_destroy(ctx);
}

/* A matrix that cannot be factored gets jitter, and one that is not finite is refused. */
static void test_hard(void **state)
{
    (void)state;
    thiele_context *ctx = need_card();
    thiele_kernel *kernel;
    double noise = 0.0;
    void *self;
    rows r = make_rows(40);
    thi_exact_shape shape = {r.n, 1, r.X, r.y, NULL};
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "se(lengthscale~1e4)", D, NULL));
    thi_prior prior = {kernel, THI_MEAN_ZERO, NULL};
    assert_ok(ctx, thi_engine_exact_device.open(&self, ctx, &shape));
    assert_ok(ctx, thi_engine_exact_device.begin(self, ctx, &prior, &noise));
    assert_true(thi_engine_exact_device.jitter(self) > 0.0);
    thi_engine_exact_device.close(self);
    r.X[7] = NAN;
    assert_ok(ctx, thi_engine_exact_device.open(&self, ctx, &shape));
    assert_fails(ctx, thi_engine_exact_device.begin(self, ctx, &prior, &noise), THIELE_ERROR_NUMERIC, "factored");
    thi_engine_exact_device.close(self);
    thiele_kernel_destroy(kernel);
    free(r.X);
    free(r.y);
    thiele_context_destroy(ctx);
}

/* --- what is missing or fails ------------------------------------------------------------------------------------- */

/* Says what the log and the choice are where the toy has this wrong with it. */
static void check_refused(const char *wrong, const char *device, const char *part)
{
    setenv("TOY_DEVICE", wrong, 1);
    thiele_context *ctx = context_on(device);
    for (int twice = 0; twice < 2; twice++) { /* it is said once */
        assert_false(thi_device_takes(ctx, true));
    }
    if (part == NULL) {
        assert_string_equal(told, "");
    } else if (strstr(told, part) == NULL || strstr(told, "going on with the CPU") == NULL ||
               strstr(strstr(told, "going on") + 1, "going on") != NULL) {
        fail_msg("the log has: %s", told);
    }
    thiele_context_destroy(ctx);
    unsetenv("TOY_DEVICE");
}

static void test_refused(void **state)
{
    (void)state;
    need_toy();
    check_refused("version", "cuda", "differ in version");
    check_refused("none", "cuda", "there is no toy");
    check_refused("", "cuda:3", "there is no card cuda:3: the last one is cuda:0");
    check_refused("none", "auto", NULL);
    check_refused("slow", "auto", NULL);
    check_refused("", "cpu", NULL);
    thiele_context *ctx = context_on("auto");
    assert_false(thi_device_takes(ctx, false));
    assert_true(thi_device_takes(ctx, true));
    assert_true(thi_engine_exact_device.ready(ctx));
    thi_device_lost(ctx);
    assert_false(thi_device_takes(ctx, true));
    assert_false(thi_engine_exact_device.ready(ctx));
    thiele_context_destroy(ctx);
}

/* A fit whose card fails says so and ends on the CPU, where one that never had a card ends. */
static void fit_on(const char *device, const char *wrong, double *value)
{
    thiele_context *ctx = context_on(device);
    thiele_kernel *kernel;
    thiele_likelihood *lik;
    rows r = make_rows(40);
    for (int64_t i = 0; i < r.n; i++) {
        r.y[i] = sin(2.0 * r.X[i * D]);
    }
    setenv("TOY_DEVICE", wrong, 1);
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "matern52(ard)", D, NULL));
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "gaussian", 1, 0));
    thi_prior prior = {kernel, THI_MEAN_ZERO, NULL};
    thi_spec spec = {.latents = {.prior = &prior, .kernel = &kernel}, .lik = lik};
    thi_hypers hypers = {.noise = kernel->parameters};
    const thi_rows data = {.n = r.n, .dims = D, .outputs = 1, .X = r.X, .y = r.y};
    double bar[BARS] = {0.0};
    void *exact = NULL;
    assert_ok(ctx, thi_objective_exact.open(&exact, ctx, &spec, &data));
    for (int i = 0; i < 3; i++) {
        assert_ok(ctx, thi_objective_exact.evaluate(exact, ctx, &hypers, value, bar));
    }
    thi_objective_exact.close(exact);
    unsetenv("TOY_DEVICE");
    thiele_likelihood_destroy(lik);
    thiele_kernel_destroy(kernel);
    free(r.X);
    free(r.y);
    thiele_context_destroy(ctx);
}

static void test_lost(void **state)
{
    (void)state;
    need_toy();
    double alone, lost;
    fit_on("cpu", "", &alone);
    assert_string_equal(told, "");
    fit_on("cuda", "full", &lost);
    assert_non_null(strstr(told, "the toy has no room: going on with the CPU"));
    assert_memory_equal(&lost, &alone, sizeof lost);
    fit_on("cuda", "breaks:2", &lost);
    assert_non_null(strstr(told, "the toy broke: going on with the CPU"));
    assert_memory_equal(&lost, &alone, sizeof lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words), cmocka_unit_test(test_list),    cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_bits),    cmocka_unit_test(test_hard),
        cmocka_unit_test(test_lost),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
