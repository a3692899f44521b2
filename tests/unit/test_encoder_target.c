/*
 * Targets of the encoder: numbers of several columns with some missing, what a likelihood's rule refuses and in which
 * words, exposures, and the way of all targets through JSON and back.
 */
#include "target_testing.h"

/* --- numbers ----------------------------------------------------------------------------------------------------- */

/* u: 1, 3, 5 in rows 1, 3, 4; v: 10, 20 in rows 1, 2; row 5 has neither. */
static const char *const two = "x,u,v\n"
                               "1,1,10\n"
                               "2,,20\n"
                               "3,3,\n"
                               "4,5,NA\n"
                               "5,,\n";

static void test_several(void **state)
{
    (void)state;
    thi_column_options options = options_for("u, v");
    assert_refused(two, options, &gaussian, THIELE_ERROR_DATA,
                   "row 5: all 2 targets ('u' and the others) are missing (fill one in, or use `drop_missing`");
    options.drop_missing = 1;
    thi_encoder encoder = learn(two, options, &gaussian);
    assert_true(encoder.targets == 2 && encoder.partial && !encoder.signs && encoder.inputs == 1);
    assert_string_equal(encoder.target[1].name, "v");
    assert_near(encoder.target[0].center, 3, 1e-15, 0);
    assert_near(encoder.target[0].scale, sqrt(8.0 / 3), 1e-15, 0);
    assert_near(encoder.target[1].mean, 15, 1e-15, 0);
    assert_near(encoder.target[1].variance, 25, 1e-14, 0);
    /* the row with no target at all counts nowhere */
    assert_near(encoder.center[0], 2.5, 1e-15, 0);
    double y[10];
    assert_int_equal(read_targets(&encoder, two, true, y, NULL), 4);
    const double unit = sqrt(8.0 / 3);
    const double want[8] = {-2 / unit, -1, NAN, 1, 0, NAN, 2 / unit, NAN};
    for (int i = 0; i < 8; i++) {
        assert_true(isnan(want[i]) == isnan(y[i]));
        assert_near(isnan(y[i]) ? 0 : y[i], isnan(want[i]) ? 0 : want[i], 1e-15, 1e-15);
    }
    thi_encoder_clear(&encoder);
    options.raw = 1;
    encoder = learn(two, options, &gaussian);
    read_targets(&encoder, two, true, y, NULL);
    assert_true(y[0] == 1 && y[1] == 10 && encoder.target[0].scale == 1 && encoder.target[1].mean == 15);
    thi_encoder_clear(&encoder);
}

/* A missing value of a single target is as it ever was. */
static void test_single_missing(void **state)
{
    (void)state;
    thi_column_options options = options_for("y");
    assert_refused("x,y\n1,1\n2,\n3,4\n", options, &gaussian, THIELE_ERROR_DATA, "column 'y', row 2: no value");
    assert_refused("x,y\n1,a\n2,\n3,b\n", options, &bernoulli, THIELE_ERROR_DATA, "column 'y', row 2: no value");
    assert_refused("x,y\n1,0\n2,\n3,1\n", options, &bernoulli, THIELE_ERROR_DATA, "column 'y', row 2: no value");
    options.drop_missing = 1;
    thi_encoder encoder = learn("x,y\n1,a\n2,\n3,b\n", options, &bernoulli);
    double y[3];
    assert_int_equal(read_targets(&encoder, "x,y\n1,a\n2,\n3,b\n", true, y, NULL), 2);
    assert_true(!encoder.partial && y[0] == -1 && y[1] == 1);
    thi_encoder_clear(&encoder);
}

/* Blocks that have no value of a target at all, and means far from 0 over several blocks. */
static void test_long_gaps(void **state)
{
    (void)state;
    enum { ROWS = 3 * THI_TABLE_BLOCK };
    double *values = malloc(ROWS * 3 * sizeof *values);
    test_normals(ROWS * 3, 1, values);
    double sum = 0, square = 0;
    for (int i = 0; i < ROWS; i++) {
        values[3 * i + 2] = i >= THI_TABLE_BLOCK && i < 2 * THI_TABLE_BLOCK ? NAN : 1e6 + values[3 * i + 2];
        sum += isnan(values[3 * i + 2]) ? 0 : values[3 * i + 2] - 1e6;
    }
    const double count = 2 * THI_TABLE_BLOCK, mean = sum / count;
    for (int i = 0; i < ROWS; i++) {
        double distance = values[3 * i + 2] - 1e6 - mean;
        square += isnan(distance) ? 0 : distance * distance;
    }
    thiele_table *table;
    thi_encoder encoder;
    const thi_column_options options = options_for("x2,x3");
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, ROWS, 3, values, NULL));
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL));
    /* means near 1e6 are known to 1e6 eps = 2e-10 */
    assert_near(encoder.target[1].mean, 1e6 + mean, 0, 1e-9);
    assert_near(encoder.target[1].variance, square / count, 1e-9, 0);
    thi_encoder_clear(&encoder);
    thiele_table_destroy(table);
    free(values);
}

static void test_choice(void **state)
{
    (void)state;
    const char *text = "\"a,b\",a,b,c\n1,2,3,4\n2,4,5,7\n3,1,1,1\n";
    thi_encoder encoder = learn(text, options_for("a,b"), NULL);
    assert_int_equal(encoder.targets, 1);
    assert_string_equal(encoder.target[0].name, "a,b");
    thi_encoder_clear(&encoder);
    encoder = learn(text, options_for("b,-1"), NULL);
    assert_int_equal(encoder.targets, 2);
    assert_string_equal(encoder.target[0].name, "b");
    assert_string_equal(encoder.target[1].name, "c");
    assert_string_equal(encoder.input[0].name, "a,b");
    thi_encoder_clear(&encoder);
    encoder = learn(text, options_for("c,\"a,b\""), NULL);
    assert_string_equal(encoder.target[1].name, "a,b");
    thi_encoder_clear(&encoder);
    assert_refused(text, options_for("b,c,3"), NULL, THIELE_ERROR_ARGUMENT,
                   "column 'b' is listed twice among the targets");
    assert_refused(text, options_for("b,z"), NULL, THIELE_ERROR_COLUMN, "no column 'z'");
    assert_refused(text, options_for(" , "), NULL, THIELE_ERROR_ARGUMENT, "no target column was named");
    thi_column_options options = options_for("b,c");
    options.inputs = "a,c";
    assert_refused(text, options, NULL, THIELE_ERROR_ARGUMENT,
                   "column 'c' is already a target and cannot also be an input");
    options.inputs = NULL;
    options.exposure = "c";
    assert_refused(text, options, &poisson, THIELE_ERROR_ARGUMENT,
                   "column 'c' is already a target and cannot also be the exposure");
    options.target = "b";
    options.inputs = "a,c";
    assert_refused(text, options, &poisson, THIELE_ERROR_ARGUMENT,
                   "column 'c' is already the exposure and cannot also be an input");
}

static void test_numbers_refused(void **state)
{
    (void)state;
    assert_refused("x,u,v\n1,1,\n2,2,\n", options_for("u,v"), NULL, THIELE_ERROR_DATA,
                   "the target 'v' has no value in any row");
    assert_refused("x,u,v\n1,1,7\n2,2,\n3,3,7\n", options_for("u,v"), NULL, THIELE_ERROR_DATA,
                   "the target 'v' is the same (7) in every row: there is nothing to learn");
    assert_refused("x,u,v\n1,1,7\n2,2,inf\n3,3,7\n", options_for("u,v"), NULL, THIELE_ERROR_DATA,
                   "column 'v', row 2: the value is infinite");
    assert_refused("x,u,v\n1,1,a\n2,2,b\n3,3,7\n", options_for("u,v"), &poisson, THIELE_ERROR_DATA,
                   "the target 'v' is text, but likelihood 'poisson' needs numbers, without units such as "
                   "$ or %; for text as classes use `likelihood` bernoulli (two labels) or softmax (more)");
    assert_refused("x,y\n1,1e200\n2,-1e200\n3,1e200\n", options_for("y"), &(thi_target_rule){.likelihood = "own"},
                   THIELE_ERROR_DATA, "column 'y' holds numbers too large to work with");
    thi_column_options options = options_for("y");
    options.classes = "a,b";
    assert_refused("x,y\n1,1\n2,2\n", options, &poisson, THIELE_ERROR_ARGUMENT,
                   "likelihood 'poisson' does not take classes: its targets are numbers");
}

/* A count may be the same everywhere, and is left as it is. */
static void test_counts(void **state)
{
    (void)state;
    thi_encoder encoder = learn("x,n\n1,4\n2,4\n3,4\n", options_for("n"), &poisson);
    const thi_target *target = &encoder.target[0];
    assert_true(target->center == 0 && target->scale == 1 && target->mean == 4 && target->variance == 0);
    double y[3];
    read_targets(&encoder, "x,n\n1,0\n2,9\n3,2\n", false, y, NULL);
    assert_true(y[0] == 0 && y[1] == 9 && y[2] == 2);
    assert_unreadable(&encoder, "x,n\n1,0\n2,2.5\n", (thi_reading){.refuses = refuse_no_count},
                      "column 'n', row 2: 2.5: a count must be 0, 1, 2, ...");
    thi_encoder_clear(&encoder);
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "x,y,visits\n");
    for (int i = 1; i <= 20; i++) {
        thi_text_add(&text, "%d,1,%d\n", i, i == 12 ? -3 : i);
    }
    assert_refused(text.data, options_for("visits"), &poisson, THIELE_ERROR_DATA,
                   "column 'visits', row 12: -3: a count must be 0, 1, 2, ... (likelihood 'poisson')");
    /* every target is looked at */
    assert_refused(text.data, options_for("y,visits"), &poisson, THIELE_ERROR_DATA, "column 'visits', row 12: -3: a");
    thi_text_clear(&text);
}

/* --- exposure ---------------------------------------------------------------------------------------------------- */

static void count_warning(thiele_log_level level, const char *message, void *user)
{
    *(int *)user += level == THIELE_LOG_WARNING &&
                    strstr(message, "t.csv has no column 'hours' (the exposure): it counts as 1 in every row") != NULL;
}

static void test_exposure(void **state)
{
    (void)state;
    const char *text = "x,n,hours\n1,4,2\n2,0,0.5\n3,7,1\n";
    thi_column_options options = options_for("n");
    options.exposure = "hours";
    thi_encoder encoder = learn(text, options, &poisson);
    assert_string_equal(encoder.exposure, "hours");
    assert_true(encoder.inputs == 1 && encoder.targets == 1);
    double X[3], y[3], offset[3];
    assert_int_equal(read_targets(&encoder, text, false, y, offset), 3);
    assert_true(y[0] == 4 && y[2] == 7);
    assert_true(offset[0] == log(2) && offset[1] == log(0.5) && offset[2] == 0);
    assert_unreadable(&encoder, "hours,n,x\n1,1,1\n-2,1,2\n", (thi_reading){0},
                      "column 'hours', row 2: -2: an exposure must be a positive number");
    /* without targets it is used where it is there, and 1 with a warning where it is not */
    int warnings = 0;
    int64_t kept;
    thi_reader reader;
    thiele_table *table = parse("hours,x\n8,1\n");
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){0}));
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, 1, X, NULL, offset, NULL, &kept));
    assert_true(offset[0] == log(8));
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    table = parse("n,x\n8,1\n");
    ctx->log = count_warning;
    ctx->log_user = &warnings;
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){0}));
    ctx->log = NULL;
    assert_int_equal(warnings, 1);
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, 1, X, NULL, offset, NULL, &kept));
    assert_true(offset[0] == 0 && kept == 1);
    thi_reader_close(&reader);
    assert_fails(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){.target = true}),
                 THIELE_ERROR_COLUMN, "t.csv has no column 'hours' (the exposure): the model needs it");
    thiele_table_destroy(table);
    thi_encoder_clear(&encoder);
}

static void test_exposure_refused(void **state)
{
    (void)state;
    thi_column_options options = options_for("n");
    options.exposure = "e";
    assert_refused("x,n,e\n1,1,1\n2,2,0\n", options, &poisson, THIELE_ERROR_DATA,
                   "column 'e', row 2: 0: an exposure must be a positive number");
    assert_refused("x,n,e\n1,1,1\n2,2,-1\n", options, &poisson, THIELE_ERROR_DATA,
                   "column 'e', row 2: -1: an exposure must be a positive number");
    assert_refused("x,n,e\n1,1,1\n2,2,\n", options, &poisson, THIELE_ERROR_DATA, "column 'e', row 2: no value");
    assert_refused("x,n,e\n1,1,1\n2,2,inf\n", options, &poisson, THIELE_ERROR_DATA,
                   "column 'e', row 2: the value is infinite");
    assert_refused("x,n,e\n1,1,1\n2,2,long\n", options, &poisson, THIELE_ERROR_DATA,
                   "column 'e', row 2: 'long' is not a number");
    assert_refused("x,n,e\n1,0,1\n2,1,2\n", options, &bernoulli, THIELE_ERROR_ARGUMENT,
                   "likelihood 'bernoulli' does not take an exposure column");
    assert_refused("x,n,e\n1,0,1\n2,1,2\n", options, NULL, THIELE_ERROR_ARGUMENT,
                   "likelihood 'gaussian' does not take an exposure column");
    options.drop_missing = 1;
    thi_encoder encoder = learn("x,n,e\n1,1,1\n2,2,\n3,5,9\n", options, &poisson);
    double y[3], offset[3];
    assert_int_equal(read_targets(&encoder, "x,n,e\n1,1,1\n2,2,\n3,5,9\n", true, y, offset), 2);
    assert_true(y[1] == 5 && offset[1] == log(9));
    thi_encoder_clear(&encoder);
    options.exposure = "hours";
    assert_refused("x,n,e\n1,0,1\n2,1,2\n", options, &poisson, THIELE_ERROR_COLUMN, "no column 'hours' in t.csv");
}

static void test_absent(void **state)
{
    (void)state;
    thi_encoder encoder = learn("x,u,v\n1,1,2\n2,2,1\n", options_for("u,v"), NULL);
    thi_reader reader;
    thiele_table *table = parse("x,w\n1,2\n");
    assert_fails(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){.target = true}),
                 THIELE_ERROR_COLUMN, "t.csv has no column 'u' (a target), 'v' (a target): the model needs them");
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){0}));
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    thi_encoder_clear(&encoder);
}

/* --- JSON -------------------------------------------------------------------------------------------------------- */

static void test_json(void **state)
{
    (void)state;
    thi_column_options options = options_for("y");
    assert_round_trip(learn("x,y,z\n1,1.5,2\n2,2,\n3,7,4\n", options_for("y,z"), NULL));
    assert_round_trip(learn("x,y\n1,0.1\n2,0.30000000000000004\n", options, &bernoulli));
    assert_round_trip(learn("x,y\n1,\"a \"\"b\"\", c\"\n2,\xC3\xA9t\xC3\xA9\n3,c\n", options, &softmax));
    options.classes = "3,2,1";
    assert_round_trip(learn("x,y\n1,3\n2,1\n", options, &ordinal));
    options.classes = NULL;
    options.exposure = "e";
    assert_round_trip(learn("x,y,e\n1,3,1\n2,3,2\n", options, &poisson));
}

#define INPUTS  "\"inputs\": [{\"name\": \"a\", \"center\": 0, \"scale\": 1}]"
#define NUMBERS "\"center\": 0, \"scale\": 1, \"mean\": 0, \"variance\": 1"
#define FLAGS   "\"signs\": false, \"partial\": false"
#define ONE     "\"targets\": [{\"name\": \"y\", " NUMBERS "}]"
#define LABELLED(list, numeric)                                                                                        \
    "{" INPUTS ", " FLAGS ", \"targets\": [{\"name\": \"y\", " NUMBERS ", \"labels\": " list ", \"numeric\": " numeric \
    "}]}"

static void test_bad_json(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{" INPUTS ", " FLAGS ", " ONE "}",
        LABELLED("[\"b\", \"a\"]", "false"),
        LABELLED("[\"2\", \"1\"]", "true"),
    };
    static const char *const texts[] = {
        "{" INPUTS ", " FLAGS "}",
        "{" INPUTS ", " ONE "}",
        "{" INPUTS ", \"signs\": false, " ONE "}",
        "{" INPUTS ", \"signs\": 0, \"partial\": false, " ONE "}",
        "{" INPUTS ", \"signs\": true, \"partial\": false, " ONE "}",
        "{" INPUTS ", " FLAGS ", \"targets\": []}",
        "{" INPUTS ", " FLAGS ", \"targets\": 1}",
        "{" INPUTS ", " FLAGS ", \"targets\": [1]}",
        "{" INPUTS ", " FLAGS ", \"targets\": {\"name\": \"y\", " NUMBERS "}}",
        "{" INPUTS ", " FLAGS ", \"targets\": [{" NUMBERS "}]}",
        "{" INPUTS ", " FLAGS ", \"targets\": [{\"name\": \"\", " NUMBERS "}]}",
        "{" INPUTS ", " FLAGS ", \"targets\": [{\"name\": \"a\", " NUMBERS "}]}",
        "{" INPUTS ", " FLAGS ", \"targets\": [{\"name\": \"y\", " NUMBERS "}, {\"name\": \"y\", " NUMBERS "}]}",
        "{" INPUTS ", " FLAGS ", \"targets\": [{\"name\": \"y\", \"center\": 0}]}",
        "{" INPUTS ", " FLAGS
        ", \"targets\": [{\"name\": \"y\", \"center\": 0, \"scale\": 0, \"mean\": 0, \"variance\": 1}]}",
        "{" INPUTS ", " FLAGS
        ", \"targets\": [{\"name\": \"y\", \"center\": 0, \"scale\": 1, \"mean\": 0, \"variance\": -1}]}",
        "{" INPUTS ", " FLAGS
        ", \"targets\": [{\"name\": \"y\", \"center\": 0, \"scale\": 2, \"mean\": 0, \"variance\": 1, \"labels\": "
        "[\"a\", \"b\"], \"numeric\": false}]}",
        "{" INPUTS ", " FLAGS ", \"targets\": [{\"name\": \"y\", " NUMBERS ", \"labels\": [\"a\", \"b\"]}]}",
        "{" INPUTS ", " FLAGS ", \"targets\": [{\"name\": \"z\", " NUMBERS "}, {\"name\": \"y\", " NUMBERS
        ", \"labels\": [\"a\", \"b\"], \"numeric\": false}]}",
        "{" INPUTS ", " FLAGS ", " ONE ", \"exposure\": 1}",
        "{" INPUTS ", " FLAGS ", " ONE ", \"exposure\": \"\"}",
        "{" INPUTS ", " FLAGS ", " ONE ", \"exposure\": \"a\"}",
        "{" INPUTS ", " FLAGS ", " ONE ", \"exposure\": \"y\"}",
        LABELLED("[]", "false"),
        LABELLED("[\"a\"]", "false"),
        LABELLED("null", "false"),
        LABELLED("\"ab\"", "false"),
        LABELLED("[\"a\", 1]", "false"),
        LABELLED("[\"a\", \"\"]", "false"),
        LABELLED("[\"a\", \"b\", \"a\"]", "false"),
        LABELLED("[\"a\", \"b\\u0000c\"]", "false"),
        LABELLED("[\"1\", \"b\"]", "true"),
        LABELLED("[\"1\", \"inf\"]", "true"),
        LABELLED("[\"1\", \"nan\"]", "true"),
        LABELLED("[\"1\", \"2\", \"1.0\"]", "true"),
        LABELLED("[\"1\", \"2\"]", "1"),
    };
    thi_encoder encoder;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        json_t *json = json_loads(good[i], 0, NULL);
        assert_ok(ctx, thi_encoder_from_json(&encoder, ctx, json));
        thi_encoder_clear(&encoder);
        json_decref(json);
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *json = json_loads(texts[i], JSON_ALLOW_NUL, NULL);
        assert_non_null(json);
        if (thi_encoder_from_json(&encoder, ctx, json) != THIELE_ERROR_FORMAT) {
            fail_msg("accepted: %s", texts[i]);
        }
        assert_true(encoder.input == NULL && encoder.target == NULL);
        json_decref(json);
    }
}

/* 101 labels, and signs with three. */
static void test_bad_json_counts(void **state)
{
    (void)state;
    thi_encoder encoder;
    json_t *json = json_loads(LABELLED("[\"1\", \"2\", \"3\"]", "true"), 0, NULL);
    json_object_set_new(json, "signs", json_true());
    assert_fails(ctx, thi_encoder_from_json(&encoder, ctx, json), THIELE_ERROR_FORMAT, "contradict");
    json_object_set_new(json, "signs", json_false());
    assert_ok(ctx, thi_encoder_from_json(&encoder, ctx, json));
    thi_encoder_clear(&encoder);
    json_t *labels = json_object_get(json_array_get(json_object_get(json, "targets"), 0), "labels");
    for (int l = 3; l < THI_LEVELS_MAX + 1; l++) {
        json_array_append_new(labels, json_sprintf("%d", l + 1));
    }
    assert_fails(ctx, thi_encoder_from_json(&encoder, ctx, json), THIELE_ERROR_FORMAT, "labels");
    json_decref(json);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

typedef struct failing_case {
    const char *text;
    thi_column_options options;
    const thi_target_rule *rule;
} failing_case;

static thiele_status whole_way(thiele_context *own, const thiele_table *table, const failing_case *c)
{
    thi_encoder encoder = {0}, back = {0};
    thi_reader reader = {0};
    double X[16], y[16], offset[8];
    int64_t kept;
    json_t *json = NULL;
    thiele_status status;
    THI_TRY(thi_encoder_learn(&encoder, own, table, &c->options, c->rule));
    THI_TRY(thi_reader_open(&reader, own, &encoder, table, &(thi_reading){.target = true}));
    THI_TRY(thi_reader_read(&reader, own, 0, table->rows, X, y, offset, NULL, &kept));
    json = thi_encoder_to_json(&encoder);
    THI_TRY(thi_encoder_from_json(&back, own, json));
out:
    json_decref(json);
    thi_reader_close(&reader);
    thi_encoder_clear(&encoder);
    thi_encoder_clear(&back);
    return status;
}

/* Every allocation failing in turn while learning, reading and loading. */
static void test_allocations(void **state)
{
    (void)state;
    failing_case cases[] = {
        {"x,u,v\n1,1,2\n2,,1\n3,3,\n", options_for("u,v"), NULL},
        {"x,u\n1,\"a\"\"b\"\n2,b\n3,c\n", options_for("u"), &softmax},
        {"x,u\n1,2\n2,1\n3,2\n", options_for("u"), &bernoulli},
        {"x,u\n1,2\n2,1\n3,2\n", options_for("u"), &ordinal},
        {"x,u,e\n1,2,1\n2,1,1\n3,2,2\n", options_for("u"), &poisson},
    };
    cases[3].options.classes = "2,1";
    cases[4].options.exposure = "e";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_context *own = test_context(1);
        thiele_table *table = parse(cases[i].text);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t n = 1; status != THIELE_OK; n++) {
            assert_true(n < 1000);
            thi_fail_allocation(own, n, false);
            status = whole_way(own, table, &cases[i]);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
            assert_int_equal(thi_memory_held(own), 0);
        }
        thiele_table_destroy(table);
        thiele_context_destroy(own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several),         cmocka_unit_test(test_single_missing),
        cmocka_unit_test(test_long_gaps),       cmocka_unit_test(test_choice),
        cmocka_unit_test(test_numbers_refused), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_exposure),        cmocka_unit_test(test_exposure_refused),
        cmocka_unit_test(test_absent),          cmocka_unit_test(test_json),
        cmocka_unit_test(test_bad_json),        cmocka_unit_test(test_bad_json_counts),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
