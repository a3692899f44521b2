/*
 * Every malloc of a small fit, save, load, predict and score failing in turn, those of BLIS, jansson, zlib, liblbfgs
 * and the C library included: each run ends well or with an error and a sentence, and leaves nothing behind.
 */
#include "failing_malloc.h"
#include "model_testing.h"

typedef struct kind {
    const char *target, *likelihood, *method, *posterior;
    int64_t inducing, draws;
} kind;

static const kind kinds[] = {
    {"strength", NULL, "exact", NULL, 0, 0},
    {"site", "softmax", "variational", NULL, 4, 0},
    {"strength", "student-t", "augmented", NULL, 4, 0},
    {"strength", NULL, "pic", NULL, 4, 0},
    {"strength", NULL, "decoupled", NULL, 4, 0},
    {"strength", "student-t", "gibbs", NULL, 0, 4},
};

typedef struct answer {
    thiele_status status;
    char sentence[1024];
} answer;

static thiele_status use(thiele_context *ctx, const thiele_fit_options *options)
{
    thiele_table *table = NULL;
    thiele_model *model = NULL, *loaded = NULL;
    char *text = NULL;
    thiele_scores scores;
    double quantiles[] = {0.05, 0.95};
    thiele_predict_options predict = THIELE_PREDICT_OPTIONS_INIT;
    predict.quantiles = quantiles;
    predict.quantile_count = strcmp(options->columns.target, "site") == 0 ? 0 : 2; /* labels have none */
    predict.samples = 2;
    thiele_status status;
    THI_TRY(thiele_table_open(&table, ctx, in_folder("t.csv"), NULL));
    THI_TRY(thiele_model_fit(&model, ctx, table, options));
    THI_TRY(thiele_model_save(model, ctx, in_folder("m.thiele")));
    THI_TRY(thiele_model_load(&loaded, ctx, in_folder("m.thiele")));
    THI_TRY(thiele_model_describe(loaded, ctx, &text));
    THI_TRY(thiele_model_predict_file(loaded, ctx, table, &predict, in_folder("p.csv")));
    THI_TRY(thiele_model_score(loaded, ctx, table, NULL, &scores));
out:
    thiele_free(text);
    thiele_model_destroy(model);
    thiele_model_destroy(loaded);
    thiele_table_destroy(table);
    return status;
}

static answer run(const kind *k, int threads)
{
    thiele_context_options context = THIELE_CONTEXT_OPTIONS_INIT;
    context.threads = threads;
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = k->target;
    options.columns.inputs = "x1,x2";
    options.model.likelihood = k->likelihood;
    options.model.method = k->method;
    options.inducing.posterior = k->posterior;
    options.inducing.inducing = k->inducing;
    options.stopping.iterations = 1;
    if (k->draws > 0) {
        options.sampling.chains = 2;
        options.sampling.draws = k->draws;
        options.sampling.burn_in = 1;
    }
    thiele_context *ctx;
    answer a = {.status = thiele_context_create(&ctx, &context)};
    if (a.status == THIELE_OK) {
        a.status = use(ctx, &options);
    }
    snprintf(a.sentence, sizeof a.sentence, "%s", thiele_context_message(ctx));
    thiele_context_destroy(ctx);
    return a;
}

/* Out of memory says so; what was no loss is no error. */
static void judge(const kind *k, int64_t nth, const answer *a)
{
    bool memory =
        a->status == THIELE_ERROR_MEMORY || (a->status == THIELE_ERROR_IO && strstr(a->sentence, "memory") != NULL);
    if (a->status != THIELE_OK && !(memory && strlen(a->sentence) > 10)) {
        fail_msg("%s, allocation %lld: %s: %s", k->method, (long long)nth, thiele_status_name(a->status), a->sentence);
    }
}

/* All of the first kind; of the others fewer and fewer. */
static void test_every_malloc(void **state)
{
    (void)state;
    if (!FAILING_WORKS) {
        skip();
    }
    thiele_context *ctx = test_context(1);
    thiele_table *table = demo(ctx, 24, 1);
    assert_ok(ctx, thiele_table_write(table, ctx, in_folder("t.csv")));
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        answer a = run(k, 2); /* what is kept for good, as BLIS's memory and stacks of threads, is there afterwards */
        assert_string_equal(a.status == THIELE_OK ? "" : a.sentence, "");
        failing_start(0, false);
        run(k, 1);
        int64_t count = failing_end();
        print_message("%s: %lld allocations\n", k->method, (long long)count);
        for (int64_t nth = 1; nth <= count; nth += i == 0 ? 1 : 1 + nth / 40) {
            int64_t live = atomic_load(&failing.live);
            failing_start(nth, nth % 2 == 0);
            a = run(k, nth % 3 == 0 ? 2 : 1);
            failing_end();
            judge(k, nth, &a);
            if (atomic_load(&failing.live) != live) {
                fail_msg("%s, allocation %lld: %lld blocks are left", k->method, (long long)nth,
                         (long long)(atomic_load(&failing.live) - live));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_malloc)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
