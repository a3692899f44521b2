/*
 * Missing inputs: what stands for them, in tables, in selections of rows and in rows of numbers; through JSON; refused
 * and dropped; and models that were fitted with them.
 */
#include <math.h>
#include <thiele/thiele.h>

#include "encoder_testing.h"

static const char *const holes = "x,site,day,y\n"
                                 "1,a,2024-01-01,1\n"
                                 ",b,2024-01-02,3\n"
                                 "3,,,2\n"
                                 "8,b,2024-01-06,7\n"
                                 "4,a,2024-01-03,9\n";

static thi_column_options filling(void)
{
    thi_column_options options = options_for("y");
    options.missing = THI_MISSING_MEAN;
    options.one_scale = true;
    return options;
}

static thiele_status read_rows(const thi_encoder *encoder, const char *text, thi_reading how, double *X, int64_t *kept)
{
    thi_reader reader;
    thiele_table *table = parse(text);
    assert_ok(ctx, thi_reader_open(&reader, ctx, encoder, table, &how));
    thiele_status status = thi_reader_read(&reader, ctx, 0, table->rows, X, NULL, NULL, NULL, kept);
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    return status;
}

/* The mean is that of the values that are there: 4 for x, 2 days; it is 0 when standardised. */
static void test_filled(void **state)
{
    (void)state;
    for (int raw = 0; raw < 2; raw++) {
        thi_encoder learned, encoder;
        thi_column_options options = filling();
        thiele_table *table = parse(holes);
        double X[5 * 8], one[8];
        int64_t kept;
        options.raw = raw;
        assert_ok(ctx, thi_encoder_learn(&learned, ctx, table, &options, NULL));
        json_t *json = thi_encoder_to_json(&learned);
        assert_ok(ctx, thi_encoder_from_json(&encoder, ctx, json));
        json_decref(json);
        assert_dims(&encoder, "x x=(missing) site=a site=b site=(other) site=(missing) day day=(missing)");
        assert_near(encoder.input[0].fill, 4, 1e-15, 0);
        assert_near(encoder.input[2].fill, 2, 1e-15, 0);
        assert_ok(ctx, read_rows(&encoder, holes, (thi_reading){0}, X, &kept));
        assert_int_equal(kept, 5);
        const double mean = raw ? 4 : 0, day = raw ? 2 : 0;
        assert_true(X[1] == 0 && X[8] == mean && X[8 + 1] == 1 && X[8 + 3] == 1);
        assert_true(X[16 + 2] + X[16 + 3] + X[16 + 4] == 0 && X[16 + 5] == 1 && X[16 + 6] == day && X[16 + 7] == 1);
        assert_true(X[24 + 5] == 0 && X[24 + 7] == 0);
        assert_ok(ctx, thi_encode_row(&encoder, ctx, (const double[]){3, NAN, NAN}, one));
        assert_memory_equal(one, X + 16, sizeof one);
        assert_fails(ctx, thi_encode_row(&encoder, ctx, (const double[]){INFINITY, 0, 0}, one), THIELE_ERROR_ARGUMENT,
                     "missing or infinite");
        /* Rows can be dropped all the same. */
        assert_ok(ctx, read_rows(&encoder, holes, (thi_reading){.drop_missing = true}, X, &kept));
        assert_int_equal(kept, 3);
        thi_encoder_clear(&encoder);
        thi_encoder_clear(&learned);
        thiele_table_destroy(table);
    }
}

/* What training always had is asked for; a column that is constant but for missing values says where these are. */
static void test_others(void **state)
{
    (void)state;
    thi_encoder encoder;
    thi_column_options options = filling();
    double X[16];
    int64_t kept;
    thiele_table *table = parse("a,b,none,y\n1,5,,1\n2,,,3\n3,5,,2\n");
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL));
    assert_dims(&encoder, "a b b=(missing)");
    assert_int_equal(encoder.dropped, 1);
    assert_true(encoder.center[1] == 5 && encoder.scale[1] == 1);
    assert_fails(ctx, read_rows(&encoder, "a,b\n1,\n,5\n", (thi_reading){0}, X, &kept), THIELE_ERROR_DATA,
                 "column 'a', row 2: no value (fill it in, or use `drop_missing`");
    assert_fails(ctx, thi_encode_row(&encoder, ctx, (const double[]){NAN, 5}, X), THIELE_ERROR_ARGUMENT, "column 'a'");
    thi_encoder_clear(&encoder);
    options.missing = THI_MISSING_REFUSE;
    assert_fails(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL), THIELE_ERROR_DATA,
                 "column 'none', row 1: no value");
    options.missing = THI_MISSING_DROP;
    options.ignore = "none";
    thiele_table_destroy(table);
    table = parse("a,b,none,y\n1,5,,1\n2,,,3\n3,6,,2\n");
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL));
    assert_dims(&encoder, "a b");
    assert_near(encoder.center[0], 2, 1e-15, 0);
    assert_near(encoder.target[0].mean, 1.5, 1e-15, 0);
    thi_encoder_clear(&encoder);
    thiele_table_destroy(table);
}

/* A fold knows what the whole table lacks, though its own rows lack nothing, or everything. */
static void test_selection(void **state)
{
    (void)state;
    const double values[] = {1, 5, 1, 2, NAN, 4, 3, 7, 2, 4, 9, 8};
    const int64_t full[] = {0, 2, 3}, hollow[] = {1, 1};
    thiele_table *table, *some;
    thi_encoder encoder;
    thi_column_options options = filling();
    options.target = "x3";
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, 4, 3, values, NULL));
    assert_ok(ctx, thiele_table_select(&some, ctx, table, full, 3));
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, some, &options, NULL));
    assert_dims(&encoder, "x1 x2 x2=(missing)");
    assert_near(encoder.input[1].fill, 7, 1e-15, 0);
    thi_encoder_clear(&encoder);
    thiele_table_destroy(some);
    assert_ok(ctx, thiele_table_select(&some, ctx, table, hollow, 2));
    options.raw = true;
    const thi_target_rule rule = {.likelihood = "gaussian"};
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, some, &options, &rule));
    assert_true(encoder.input[1].fill == 0 && encoder.scale[1] == 1);
    thi_encoder_clear(&encoder);
    thiele_table_destroy(some);
    thiele_table_destroy(table);
}

static void test_hostile(void **state)
{
    (void)state;
    static const char *const lies[] = {"\"fill\":\"1\"", "\"fill\":true", "\"fill\":1e200",
                                       "\"levels\":[\"a\"],\"fill\":1", "\"levels\":[\"a\"],\"fill\":false"};
    assert_lies_refused(lies, sizeof lies / sizeof *lies);
}

/* --- models ------------------------------------------------------------------------------------------------------ */

/* 60 rows of y = 2 x + 3 [site = b]; every ninth lacks x, every eleventh site. */
static thiele_table *make_table(void)
{
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "x,site,y\n");
    for (int i = 0; i < 60; i++) {
        double x = 3 * sin(i), y = 2 * x + 3 * (i % 2) + 0.1 * cos(7 * i);
        if (i % 9 == 4) {
            thi_text_add(&text, ",%s,%g\n", i % 2 ? "b" : "a", y);
        } else {
            thi_text_add(&text, "%.17g,%s,%g\n", x, i % 11 == 3 ? "" : i % 2 ? "b" : "a", y);
        }
    }
    thiele_table *table = parse(text.data);
    thi_text_clear(&text);
    return table;
}

/* Scores, cross-validation, updates, and single rows. */
static void test_model(void **state)
{
    (void)state;
    static const char *const methods[] = {"exact", "collapsed"};
    thiele_table *table = make_table();
    for (int m = 0; m < 2; m++) {
        thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
        thiele_model *model;
        thiele_scores scores;
        thiele_predictor *predictor;
        const double x[] = {NAN, 0, 1, 0}; /* a row that lacks x, and one that does not */
        double mean[2], variance[2], one, spread;
        options.columns.target = "y";
        options.model.method = methods[m];
        options.prior.kernel = "matern52(ard)";
        options.stopping.iterations = 30;
        assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
        assert_ok(ctx, thiele_model_score(model, ctx, table, NULL, &scores));
        assert_int_equal(scores.rows, 60);
        assert_ok(ctx, thiele_model_predict_rows(model, ctx, 2, x, 0, mean, variance));
        assert_ok(ctx, thiele_predictor_open(&predictor, ctx, model, THIELE_PREDICT_OBSERVATION));
        assert_ok(ctx, thiele_predictor_row(predictor, x, &one, &spread));
        assert_near(one, mean[0], 1e-8, 1e-8);
        assert_near(spread, variance[0], 1e-7, 1e-7);
        thiele_predictor_destroy(predictor);
        if (m == 1) {
            thiele_model *updated;
            assert_ok(ctx, thiele_model_update(&updated, ctx, model, table, NULL));
            thiele_model_destroy(updated);
        }
        thiele_model_destroy(model);
        assert_ok(ctx, thiele_cross_validate(ctx, table, &options, 3, NULL, &scores));
        assert_int_equal(scores.rows, 60);
    }
    thiele_table_destroy(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filled),  cmocka_unit_test(test_others), cmocka_unit_test(test_selection),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
