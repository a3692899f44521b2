/* Options of programs that were compiled with older and newer headers; and what the table of a fit's options makes. */
#include <math.h>
#include <string.h>

#include "model/options.h"
#include "testing.h"
#include "thiele/thiele.h"

/* --- structs of other headers ----------------------------------------------------------------------------------------
 */

/* A struct of options as a newer header has it, and a call that takes it. */
typedef union newer {
    size_t size;
    unsigned char bytes[4096];
} newer;

typedef struct call {
    const char *name;
    size_t size;
    thiele_status (*take)(thiele_context *ctx, const void *options);
    bool silent; /* there is no context for a sentence yet */
} call;

static thiele_table *table;
static thiele_model *model;

static thiele_status take_context(thiele_context *ctx, const void *options)
{
    thiele_context *other;
    (void)ctx;
    thiele_status status = thiele_context_create(&other, options);
    thiele_context_destroy(other);
    return status;
}

static thiele_status take_table(thiele_context *ctx, const void *options)
{
    thiele_table *opened;
    thiele_status status = thiele_table_open(&opened, ctx, TESTS_FOLDER "/museum/rows.csv", options);
    thiele_table_destroy(opened);
    return status;
}

static thiele_status take_feed(thiele_context *ctx, const void *options)
{
    thiele_feed *feed;
    thiele_status status = thiele_feed_open(&feed, ctx, TESTS_FOLDER "/museum/rows.csv", NULL, options);
    thiele_feed_close(feed);
    return status;
}

static thiele_status take_feed_table(thiele_context *ctx, const void *options)
{
    thiele_feed *feed;
    thiele_status status = thiele_feed_open(&feed, ctx, TESTS_FOLDER "/museum/rows.csv", options, NULL);
    thiele_feed_close(feed);
    return status;
}

/* What is there of it stays as it is: a target and a kernel, all other options at their defaults. */
static thiele_status take_fit(thiele_context *ctx, const void *options)
{
    thiele_fit_options taken;
    return thi_fit_options_take(ctx, options, &taken);
}

static thiele_status take_cv(thiele_context *ctx, const void *options)
{
    thiele_scores scores;
    thiele_status status = thiele_cross_validate(ctx, table, options, 2, NULL, &scores);
    /* Without a target it goes no further. */
    return status == THIELE_ERROR_ARGUMENT && strstr(thiele_context_message(ctx), "`target`") != NULL ? THIELE_OK
                                                                                                      : status;
}

static thiele_status take_score(thiele_context *ctx, const void *options)
{
    thiele_scores scores;
    return thiele_model_score(model, ctx, table, options, &scores);
}

static thiele_status take_log_densities(thiele_context *ctx, const void *options)
{
    double out[30];
    return thiele_model_log_densities(model, ctx, table, options, out);
}

static thiele_status take_joint(thiele_context *ctx, const void *options)
{
    static double mean[30], covariance[900];
    return thiele_model_predict_joint(model, ctx, table, options, mean, covariance);
}

static thiele_status nothing(const thiele_prediction *block, void *user)
{
    (void)block, (void)user;
    return THIELE_OK;
}

static thiele_status take_predict(thiele_context *ctx, const void *options)
{
    return thiele_model_predict(model, ctx, table, options, nothing, NULL);
}

static thiele_status take_file(thiele_context *ctx, const void *options)
{
    return thiele_model_predict_file(model, ctx, table, options, "/dev/null");
}

static thiele_status take_compare(thiele_context *ctx, const void *options)
{
    const thiele_model *const models[] = {model, model};
    thiele_comparison comparisons[2];
    return thiele_compare(ctx, 2, models, table, options, NULL, comparisons);
}

static thiele_status take_update(thiele_context *ctx, const void *options)
{
    thiele_learner *learner;
    thiele_status status = thiele_learner_open(&learner, ctx, model, options);
    thiele_learner_close(learner);
    return status;
}

static const call calls[] = {
    {"thiele_context_options", sizeof(thiele_context_options), take_context, true},
    {"thiele_table_options", sizeof(thiele_table_options), take_table, false},
    {"thiele_feed_options", sizeof(thiele_feed_options), take_feed, false},
    {"thiele_table_options", sizeof(thiele_table_options), take_feed_table, false},
    {"thiele_fit_options", sizeof(thiele_fit_options), take_fit, false},
    {"thiele_fit_options", sizeof(thiele_fit_options), take_cv, false},
    {"thiele_predict_options", sizeof(thiele_predict_options), take_score, false},
    {"thiele_predict_options", sizeof(thiele_predict_options), take_log_densities, false},
    {"thiele_predict_options", sizeof(thiele_predict_options), take_joint, false},
    {"thiele_predict_options", sizeof(thiele_predict_options), take_predict, false},
    {"thiele_predict_options", sizeof(thiele_predict_options), take_file, false},
    {"thiele_predict_options", sizeof(thiele_predict_options), take_compare, false},
    {"thiele_update_options", sizeof(thiele_update_options), take_update, false},
};
enum { CALLS = sizeof calls / sizeof *calls };

static void refuses(thiele_context *ctx, const call *c, const newer *options, const char *sentence)
{
    assert_int_equal(c->take(ctx, options), THIELE_ERROR_ARGUMENT);
    if (!c->silent) {
        assert_non_null(strstr(thiele_context_message(ctx), sentence));
        assert_non_null(strstr(thiele_context_message(ctx), c->name));
    }
}

/* Any start of a struct is taken, and so is one of a newer header that sets nothing new. */
static void test_sizes(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < CALLS; i++) {
        const call *c = &calls[i];
        newer options = {.size = 0};
        for (options.size = sizeof(size_t); options.size <= sizeof options; options.size += sizeof(size_t)) {
            assert_ok(ctx, c->take(ctx, &options));
        }
        /* What is behind a smaller struct is the program's own. */
        memset(options.bytes, 0xa5, sizeof options);
        options.size = sizeof(size_t);
        assert_ok(ctx, c->take(ctx, &options));
    }
    thiele_context_destroy(ctx);
}

/* An option that this library does not know, wherever it is; sizes that no header has. */
static void test_unknown(void **state)
{
    (void)state;
    static const size_t wrong[] = {0, 1, 3, 7, 12, (size_t)1 << 20, (size_t)-1};
    thiele_context *ctx = test_context(1);
    for (int i = 0; i < CALLS; i++) {
        for (size_t at = calls[i].size; at < sizeof(newer); at += 61) {
            newer options = {.size = sizeof options};
            options.bytes[at] = 1;
            refuses(ctx, &calls[i], &options, "newer header");
        }
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            newer options = {.size = wrong[k]};
            refuses(ctx, &calls[i], &options, "_OPTIONS_INIT");
        }
    }
    thiele_context_destroy(ctx);
}

/* --- the options of a fit --------------------------------------------------------------------------------------------
 */

/* What a text of a given type may be. */
static const char *text_of(const thiele_option *option, char number[32])
{
    bool whole = option->type == THIELE_OPTION_INTEGER;
    snprintf(number, 32, whole ? "%.0f" : "%.17g", option->high);
    return option->type == THIELE_OPTION_FLAG                                         ? "yes"
           : option->type == THIELE_OPTION_TEXT || option->type == THIELE_OPTION_LIST ? "text"
                                                                                      : number;
}

/* Every option has eight bytes of its own, in its group, and is refused by a struct that ends before them. */
static void test_places(void **state)
{
    (void)state;
    static unsigned char taken[sizeof(thiele_fit_options)];
    thiele_context *ctx = test_context(1);
    size_t group_begins = 0, group_ends = 0;
    const char *group = "";
    for (int i = 0; i < thiele_fit_option_count(); i++) {
        const thiele_option *option = thiele_fit_option_at(i);
        thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
        const unsigned char *bytes = (const unsigned char *)&options;
        char number[32];
        if (option->type == THIELE_OPTION_PROGRAM) {
            assert_fails(ctx, thiele_fit_options_set(&options, ctx, option->name, "1"), THIELE_ERROR_ARGUMENT,
                         "a program");
            continue;
        }
        assert_ok(ctx, thiele_fit_options_set(&options, ctx, option->name, text_of(option, number)));
        size_t first = sizeof(size_t), last = sizeof options - 1;
        while (bytes[first] == 0) {
            first++;
        }
        while (bytes[last] == 0) {
            last--;
        }
        assert_int_equal(first / 8, last / 8);
        size_t begins = first / 8 * 8;
        assert_int_equal(taken[begins], 0);
        taken[begins] = 1;
        if (strcmp(option->group, group) != 0) {
            group = option->group;
            assert_true(begins > group_ends);
            group_begins = begins;
        }
        assert_true(begins >= group_begins);
        group_ends = begins;
        options.size = begins;
        assert_fails(ctx, thiele_fit_options_set(&options, ctx, option->name, number), THIELE_ERROR_ARGUMENT, "older");
    }
    thiele_context_destroy(ctx);
}

/* Numbers of programs are held to the ranges of the table, and so is what is reserved in the groups. */
static void test_numbers(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT, out;
    options.stopping.iterations = -1;
    options.sampling.burn_in = -1;
    options.columns.target = "y";
    assert_ok(ctx, thi_fit_options_take(ctx, &options, &out));
    assert_memory_equal(&options, &out, sizeof out);
    options.stopping.iterations = -2;
    assert_fails(ctx, thi_fit_options_take(ctx, &options, &out), THIELE_ERROR_ARGUMENT,
                 "`iterations`: -2 is out of range");
    options.stopping.iterations = (int64_t)1 << 40;
    assert_fails(ctx, thi_fit_options_take(ctx, &options, &out), THIELE_ERROR_ARGUMENT, "`iterations`");
    options.stopping.iterations = 0;
    options.sampling.chains = -1;
    assert_fails(ctx, thi_fit_options_take(ctx, &options, &out), THIELE_ERROR_ARGUMENT, "`chains`");
    options.sampling.chains = 0;
    options.optimiser.rate = NAN;
    assert_fails(ctx, thi_fit_options_take(ctx, &options, &out), THIELE_ERROR_ARGUMENT, "`rate`");
    options.optimiser.rate = 0.0;
    options.prior.reserved[0] = 1;
    assert_fails(ctx, thi_fit_options_take(ctx, &options, &out), THIELE_ERROR_ARGUMENT, "newer header");
    options.prior.reserved[0] = 0;
    options.result.reserved[sizeof options.result.reserved / sizeof *options.result.reserved - 1] = 1;
    assert_fails(ctx, thi_fit_options_take(ctx, &options, &out), THIELE_ERROR_ARGUMENT, "newer header");
    thiele_context_destroy(ctx);
}

/* A model by a struct that ends behind its group of columns. */
static void test_older(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_model *older;
    options.columns.target = "nowhere";
    options.size = offsetof(thiele_fit_options, model);
    options.model.likelihood = "nonsense";
    assert_fails(ctx, thiele_model_fit(&older, ctx, table, &options), THIELE_ERROR_COLUMN, "nowhere");
    thiele_context_destroy(ctx);
}

static int set_up(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    assert_ok(ctx, thiele_table_generate(&table, ctx, 30, 1));
    options.columns.target = "strength";
    options.columns.inputs = "x1";
    options.model.method = "collapsed";
    options.prior.kernel = "se";
    options.inducing.inducing = 5;
    options.stopping.iterations = 1;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
    thiele_context_destroy(ctx);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),   cmocka_unit_test(test_unknown), cmocka_unit_test(test_places),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_older),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
