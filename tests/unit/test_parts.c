/*
 * Targets with likelihoods of their own: a model each in one. Each is what a fit of that target alone gives, whatever
 * is asked goes target by target, and every allocation fails in turn.
 */
#include "model/model.h"
#include "testing.h"

#include "thiele/thiele.h"

enum { ROWS = 40, COLUMNS = 4 };
static const char *const names[COLUMNS] = {"x", "height", "count", "ok"};

static double x_of(int i)
{
    return 6.0 * thi_random_uniform((thi_stream){1, 2, 3}, (uint64_t)i) - 3.0;
}

/* Every fifth height and every seventh label are missing; x of the last row in the second case. */
static thiele_table *make_table(thiele_context *ctx, bool hole)
{
    double values[ROWS][COLUMNS];
    thiele_table *table = NULL;
    for (int i = 0; i < ROWS; i++) {
        double x = x_of(i);
        double u = thi_random_uniform((thi_stream){1, 2, 5}, (uint64_t)i);
        values[i][0] = hole && i == ROWS - 1 ? NAN : x;
        values[i][1] = i % 5 == 0 ? NAN : 10.0 + sin(x) + 0.1 * thi_random_normal((thi_stream){1, 2, 4}, (uint64_t)i);
        values[i][2] = floor(5.0 * u * exp(0.3 * x));
        values[i][3] = i % 7 == 0 ? NAN : u < 1.0 / (1.0 + exp(-2.0 * x)) ? 1.0 : 0.0;
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, ROWS, COLUMNS, &values[0][0], names));
    return table;
}

static thiele_fit_options three_targets(void)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "height,count,ok";
    options.model.likelihood = "gaussian; poisson ;bernoulli";
    options.prior.kernel = "se";
    options.inducing.inducing = 6;
    options.stopping.iterations = 2;
    return options;
}

typedef struct seen {
    const thiele_model *model;
    int64_t rows, last;
    double mean[ROWS];
} seen;

static thiele_status look(const thiele_prediction *block, void *user)
{
    seen *s = user;
    assert_int_equal(block->parts, 3);
    assert_true(block->mean == NULL && block->probability == NULL);
    assert_true(block->part[0].outputs == 1 && block->part[0].classes == 0 && block->part[0].quantiles != NULL);
    assert_true(block->part[2].classes == 2 && block->part[2].mean == NULL && block->part[2].quantiles == NULL);
    for (int64_t i = 0; i < block->rows; i++) {
        const double *p = block->part[2].probability + 2 * i;
        assert_true(fabs(p[0] + p[1] - 1.0) < 1e-12);
        s->mean[s->rows + i] = block->part[1].mean[i];
        s->last = block->row[i];
    }
    s->rows += block->rows;
    return THIELE_OK;
}

static void test_parts(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = make_table(ctx, false), *hole = make_table(ctx, true);
    thiele_model *model = NULL, *alone = NULL;
    thiele_fit_options options = three_targets();
    thiele_scores scores[3], own;
    double mean[ROWS], x[ROWS], p[2];
    seen s = {0};
    const double half = 0.5;
    thiele_predict_options predict = THIELE_PREDICT_OPTIONS_INIT;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
    assert_true(thiele_model_targets(model) == 3 && thiele_model_latents(model) == 3);
    assert_string_equal(thiele_model_target(model, 1), "count");
    assert_true(thiele_model_classes(model) == 0 && thiele_model_classes(thiele_model_part(model, 2)) == 2);
    assert_null(thiele_model_part(model, 3));
    assert_null(thiele_model_part(thiele_model_part(model, 0), 0));
    assert_int_equal(thiele_model_inputs(model), 1);

    options.columns.target = "count";
    options.model.likelihood = "poisson";
    options.columns.ignore = "height,ok";
    assert_ok(ctx, thiele_model_fit(&alone, ctx, table, &options));
    assert_ok(ctx, thiele_model_score(model, ctx, table, NULL, scores));
    assert_ok(ctx, thiele_model_score(alone, ctx, table, NULL, &own));
    assert_true(scores[0].rows == 32 && scores[1].rows == ROWS && scores[2].rows == 34);
    assert_true(scores[1].nlpd == own.nlpd && scores[2].error_rate < 0.5);

    predict.quantiles = &half;
    predict.quantile_count = 1;
    predict.drop_missing = 1;
    assert_ok(ctx, thiele_model_predict(model, ctx, hole, &predict, look, &s));
    assert_true(s.rows == ROWS - 1 && s.last == ROWS - 2);
    for (int i = 0; i < ROWS - 1; i++) {
        x[i] = x_of(i);
    }
    assert_ok(ctx, thiele_model_predict_rows(thiele_model_part(model, 1), ctx, ROWS - 1, x, 0, mean, NULL));
    for (int i = 0; i < ROWS - 1; i++) {
        assert_true(fabs(mean[i] - s.mean[i]) < 1e-10 * (1.0 + fabs(mean[i])));
    }
    assert_fails(ctx, thiele_model_predict_rows(model, ctx, 1, x, 0, mean, NULL), THIELE_ERROR_UNSUPPORTED,
                 "thiele_model_part");
    assert_fails(ctx, thiele_model_predict_probabilities(model, ctx, 1, x, p), THIELE_ERROR_UNSUPPORTED,
                 "thiele_model_part");
    thiele_model_destroy(model);
    thiele_model_destroy(alone);
    thiele_table_destroy(table);
    thiele_table_destroy(hole);
    thiele_context_destroy(ctx);
}

/* Fit, file, description, scores, an update and the model of it; everything is released whatever happens. */
static thiele_status whole_run(thiele_context *ctx, const thiele_table *table, const char *path)
{
    thiele_model *model = NULL, *loaded = NULL, *updated = NULL;
    thiele_fit_options options = three_targets();
    thiele_scores scores[3];
    thiele_update_options update = THIELE_UPDATE_OPTIONS_INIT;
    thiele_stream_facts facts;
    char *text = NULL;
    thiele_status status;
    options.stopping.iterations = -1;
    update.freeze = 1; /* learning has failing allocations of its own (test_learning) */
    THI_TRY(thiele_model_fit(&model, ctx, table, &options));
    THI_TRY(thiele_model_save(model, ctx, path));
    THI_TRY(thiele_model_load(&loaded, ctx, path));
    THI_TRY(thiele_model_describe(loaded, ctx, &text));
    assert_non_null(strstr(text, "\"parts\""));
    THI_TRY(thiele_model_predict_file(loaded, ctx, table, NULL, path));
    THI_TRY(thiele_model_update(&updated, ctx, loaded, table, &update));
    thiele_model_stream(updated, &facts);
    assert_true(facts.rows == ROWS && facts.all[0].rows == 32 && facts.all[2].rows == 34);
    THI_TRY(thiele_model_score(updated, ctx, table, NULL, scores));
out:
    thiele_free(text);
    thiele_model_destroy(model);
    thiele_model_destroy(loaded);
    thiele_model_destroy(updated);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    char path[] = "/tmp/thiele-test-parts-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    thiele_context *ctx = test_context(1);
    thiele_table *table = make_table(ctx, false);
    int64_t before = thi_allocations(ctx);
    assert_ok(ctx, whole_run(ctx, table, path));
    int64_t count = thi_allocations(ctx) - before;
    size_t held = thi_memory_held(ctx);
    for (int64_t nth = 1; nth <= count; nth += 1 + nth % 3) { /* two of three, and both kinds of failure */
        thi_fail_allocation(ctx, nth, nth % 2 == 0);
        thiele_status status = whole_run(ctx, table, path);
        thi_fail_allocation(ctx, 0, false);
        if (status != THIELE_ERROR_MEMORY) {
            fail_msg("allocation %lld: %s: %s", (long long)nth, thiele_status_name(status),
                     thiele_context_message(ctx));
        }
        assert_int_equal(thi_memory_held(ctx), held);
    }
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
