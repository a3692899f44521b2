/* Prediction and scoring stop soon after the progress callback asks for it, however long a row takes; what a sink says
 * comes back with a sentence. */
#include "model_testing.h"

typedef struct watcher {
    double began, asked; /* asked: when it said stop */
    double after;        /* seconds until it says so */
    int64_t calls;
} watcher;

static int watch(const thiele_progress *progress, void *user)
{
    watcher *w = user;
    assert_non_null(progress->phase);
    w->calls++;
    bool stop = w->began > 0 && thi_seconds() - w->began > w->after;
    w->asked = stop && w->asked == 0 ? thi_seconds() : w->asked;
    return stop;
}

/* A Laplace density that takes its time. */
static double slow_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    volatile double *waste = user;
    for (int i = 0; i < 200; i++) {
        *waste += 1e-9;
    }
    return -fabs(y[0] - f[0]);
}

static thiele_status count_rows(const thiele_prediction *block, void *user)
{
    *(int64_t *)user += block->rows;
    return THIELE_OK;
}

static void test_stop_within(void **state)
{
    (void)state;
    static double waste[1];
    static const double levels[] = {0.1, 0.9};
    watcher w = {.after = 0.3};
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 2;
    options.progress = watch;
    options.progress_user = &w;
    thiele_context *ctx;
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "slow";
    spec.log_density = slow_density;
    spec.user = waste;
    thiele_likelihood *lik;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    thiele_table *few = demo(ctx, 12, 1), *many = demo(ctx, 4000, 2);
    thiele_fit_options fit = demo_options();
    fit.model.own = lik;
    fit.model.method = "variational";
    fit.model.expectation = "quadrature:8";
    fit.inducing.inducing = 4;
    fit.stopping.iterations = 1;
    thiele_model *model = fitted(ctx, few, &fit);
    thiele_predict_options predict = THIELE_PREDICT_OPTIONS_INIT;
    predict.quantiles = levels;
    predict.quantile_count = 2;
    thiele_scores scores;
    int64_t rows = 0;
    for (int what = 0; what < 2; what++) {
        w = (watcher){.after = 0.3, .began = thi_seconds()};
        thiele_status status = what == 0 ? thiele_model_predict(model, ctx, many, &predict, count_rows, &rows)
                                         : thiele_model_score(model, ctx, many, NULL, &scores);
        double late = thi_seconds() - w.asked;
        assert_int_equal(status, THIELE_ERROR_CANCELLED);
        assert_non_null(strstr(thiele_context_message(ctx), "stopped after"));
        /* 0.1 s, and some room for a busy machine. */
        if (late > 0.5) {
            fail_msg("stopped %.2f s after it was asked to", late);
        }
    }
    thiele_model_destroy(model);
    thiele_table_destroy(few);
    thiele_table_destroy(many);
    thiele_likelihood_destroy(lik);
    thiele_context_destroy(ctx);
}

static thiele_status refuse(const thiele_prediction *block, void *user)
{
    (void)block;
    return *(thiele_status *)user;
}

static void test_sink_status(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = demo(ctx, 20, 1);
    thiele_fit_options options = demo_options();
    options.stopping.iterations = -1;
    thiele_model *model = fitted(ctx, table, &options);
    thiele_status codes[] = {THIELE_ERROR_IO, THIELE_ERROR_CANCELLED, (thiele_status)-77, (thiele_status)3};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        thiele_status status = thiele_model_predict(model, ctx, table, NULL, refuse, &codes[i]);
        assert_int_equal(status, codes[i]);
        assert_non_null(strstr(thiele_context_message(ctx), "receiver of the predictions"));
    }
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

typedef struct counter {
    int64_t calls, most;
} counter;

static int count_calls(const thiele_progress *progress, void *user)
{
    (void)progress;
    counter *c = user;
    return ++c->calls >= c->most;
}

/* Fitted until the call number `most`; *calls there were. */
static double smse_when_stopped(int64_t most, int64_t *calls)
{
    counter c = {.most = INT64_MAX};
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.progress = count_calls;
    options.progress_user = &c;
    thiele_context *ctx;
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
    thiele_table *table = demo(ctx, 1000, 3), *test = demo(ctx, 200, 4);
    thiele_fit_options fit = demo_options();
    fit.model.method = "decoupled";
    fit.inducing.inducing = 12;
    fit.decoupled.mean_inducing = 800;
    fit.stopping.iterations = 5;
    fit.prior.kernel = "se";
    fit.prior.set = "lengthscale=1, variance=1, noise=1";
    c = (counter){.most = most};
    thiele_model *model = fitted(ctx, table, &fit);
    *calls = c.calls;
    c.most = INT64_MAX;
    thiele_scores scores;
    assert_ok(ctx, thiele_model_score(model, ctx, test, NULL, &scores));
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_table_destroy(test);
    thiele_context_destroy(ctx);
    return scores.smse;
}

/* Wherever a decoupled fit is stopped, between blocks of functions too, what it has is better than a constant. */
static void test_stop_anywhere(void **state)
{
    (void)state;
    int64_t all, calls;
    double best = smse_when_stopped(INT64_MAX, &all);
    assert_true(best < 0.5);
    for (int64_t most = 2; most < all; most += 5) {
        double smse = smse_when_stopped(most, &calls);
        assert_true(calls <= most + 1);
        if (!(smse < 0.9)) {
            fail_msg("stopped at call %d of %d: smse %g", (int)most, (int)all, smse);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_stop_within), cmocka_unit_test(test_stop_anywhere),
                                       cmocka_unit_test(test_sink_status)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
