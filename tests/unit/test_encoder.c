/*
 * The encoder: which columns become which dimensions, that standardised columns have mean 0 and variance 1, what is
 * refused and in which words, reading new tables by name, and the way through JSON and back.
 */
#include "encoder_testing.h"

static const char *const small = "id,x,site,y\n"
                                 "1,1,south,10\n"
                                 "2,2,north,20\n"
                                 "3,4, south ,30\n"
                                 "4,9,\"east\",60\n";

static thi_encoder learn(const char *text, thi_column_options options)
{
    thi_encoder encoder;
    thiele_table *table = parse(text);
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL));
    thiele_table_destroy(table);
    return encoder;
}

static void assert_refused(const char *text, thi_column_options options, thiele_status code, const char *part)
{
    thi_encoder encoder;
    thiele_table *table = parse(text);
    assert_fails(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL), code, part);
    assert_null(encoder.input);
    thiele_table_destroy(table);
}

/* All rows of a text through an encoder; returns how many were kept. */
static int64_t read_all(const thi_encoder *encoder, const char *text, bool with_target, bool drop, double *X, double *y,
                        int64_t *row)
{
    thi_reader reader;
    int64_t kept;
    thiele_table *table = parse(text);
    assert_ok(ctx, thi_reader_open(&reader, ctx, encoder, table,
                                   &(thi_reading){.target = with_target, .drop_missing = drop}));
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, table->rows, X, y, NULL, row, &kept));
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    return kept;
}

/* --- learning --------------------------------------------------------------------------------------------------- */

static void test_small(void **state)
{
    (void)state;
    thi_column_options options = options_for("y");
    options.ignore = "id";
    thi_encoder encoder = learn(small, options);
    double X[16], y[4];
    int64_t row[4];
    assert_dims(&encoder, "x site=east site=north site=south");
    /* x: mean 4, squares 9 + 4 + 0 + 25; y: mean 30, squares 400 + 100 + 0 + 900 */
    assert_near(encoder.center[0], 4, 1e-15, 0);
    assert_near(encoder.scale[0], sqrt(38.0 / 4), 1e-15, 0);
    assert_near(encoder.target[0].variance, 350, 1e-14, 0);
    assert_int_equal(read_all(&encoder, small, true, false, X, y, row), 4);
    const double want[16] = {-3, 0, 0, 1, -2, 0, 1, 0, 0, 0, 0, 1, 5, 1, 0, 0}, target[4] = {-20, -10, 0, 30};
    for (int i = 0; i < 16; i++) {
        assert_near(X[i], i % 4 == 0 ? want[i] / sqrt(38.0 / 4) : want[i], 1e-15, 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(row[i], i);
        assert_near(y[i], target[i] / sqrt(350), 1e-15, 0);
    }
    thi_encoder_clear(&encoder);
    options.raw = 1;
    encoder = learn(small, options);
    read_all(&encoder, small, true, false, X, y, row);
    assert_true(X[0] == 1 && X[12] == 9 && y[3] == 60 && encoder.target[0].mean == 30);
    thi_encoder_clear(&encoder);
}

static void test_choice(void **state)
{
    (void)state;
    thi_column_options options = options_for("-1");
    options.inputs = "site, 1";
    thi_encoder encoder = learn(small, options);
    assert_dims(&encoder, "site=east site=north site=south id");
    assert_string_equal(encoder.target[0].name, "y");
    thi_encoder_clear(&encoder);
    options.inputs = NULL;
    options.ignore = "3,x";
    options.categorical = "id";
    encoder = learn(small, options);
    assert_dims(&encoder, "id=1 id=2 id=3 id=4");
    thi_encoder_clear(&encoder);
}

/* Inputs, levels and dimensions close up where constant columns were, and their names are kept. */
static void test_drop_constant(void **state)
{
    (void)state;
    thi_column_options options = options_for("y");
    thi_encoder encoder = learn("a,x,k,site,z,y\n7,1,u,n,4,1\n7,2,u,s,5,2\n7,3,u,n,6,3\n", options);
    assert_dims(&encoder, "x site=n site=s z");
    assert_int_equal(encoder.dropped, 2);
    assert_string_equal(encoder.dropped_name[0], "a");
    assert_string_equal(encoder.dropped_name[1], "k");
    assert_near(encoder.center[0], 2.0, 1e-15, 0.0);
    assert_near(encoder.center[3], 5.0, 1e-15, 0.0);
    thi_encoder again;
    json_t *json = thi_encoder_to_json(&encoder);
    assert_non_null(json);
    assert_int_equal(thi_encoder_from_json(&again, ctx, json), THIELE_OK);
    assert_int_equal(again.dropped, 2);
    assert_string_equal(again.dropped_name[1], "k");
    json_decref(json);
    thi_encoder_clear(&encoder);
    thi_encoder_clear(&again);
    assert_refused("a,b,y\n1,2,3\n1,2,4\n", options, THIELE_ERROR_DATA, "no inputs are left");
}

static void test_refusals(void **state)
{
    (void)state;
    thi_column_options options = options_for("strength");
    assert_refused("a,strenght\n1,2\n3,4\n", options, THIELE_ERROR_COLUMN,
                   "no column 'strength' in t.csv; did you mean 'strenght'?");
    options = options_for(NULL);
    assert_refused(small, options, THIELE_ERROR_ARGUMENT, "no target");
    options = options_for("y");
    options.inputs = "x,z";
    assert_refused(small, options, THIELE_ERROR_COLUMN, "no column 'z'");
    options.inputs = "x,y";
    assert_refused(small, options, THIELE_ERROR_ARGUMENT, "'y' is already a target and cannot also be an input");
    options.inputs = "x,2";
    assert_refused(small, options, THIELE_ERROR_ARGUMENT, "'x' is listed twice");
    options.inputs = "x";
    options.ignore = "x";
    assert_refused(small, options, THIELE_ERROR_DATA, "no input columns are left");
    options = options_for("y");
    assert_refused("x,y\n\"1,5\",1\n\"2,5\",2\n", options, THIELE_ERROR_DATA,
                   "column 'x', row 1: '1,5' is not a number (decimal commas");
    assert_refused("x;y\n1;1,25\n2;2,5\n", options, THIELE_ERROR_DATA,
                   "column 'y', row 1: '1,25' is not a number (decimal commas");
    assert_refused("x,y\n1,5\n2,5\n", options, THIELE_ERROR_DATA, "the target 'y' is the same (5) in every row");
    assert_refused("x,y\n1,red\n2,blue\n", options, THIELE_ERROR_DATA,
                   "the target 'y' is text, but likelihood 'gaussian' needs numbers, without units such as "
                   "$ or %; for text as classes use `likelihood` bernoulli (two labels) or softmax (more)");
    assert_refused("x,y\n1,1\n2,n/a\n3,2\n", options, THIELE_ERROR_DATA, "column 'y', row 2: 'n/a' is not a number");
    assert_refused("x,y\n1,1\n2,2\noops,3\n", options, THIELE_ERROR_DATA, "column 'x', row 3: 'oops' is not a number");
    assert_refused("x,y\n1,1\n,2\n3,3\n", options, THIELE_ERROR_DATA,
                   "column 'x', row 2: no value (fill it in, or use `drop_missing` to leave such rows out)");
    assert_refused("x,y\n1,1\n2,\n3,3\n", options, THIELE_ERROR_DATA, "column 'y', row 2: no value");
    assert_refused("x,s,y\n1,a,1\n2,,2\n3,b,3\n", options, THIELE_ERROR_DATA, "column 's', row 2: no value");
    assert_refused("x,y\n1,1\ninf,2\n3,3\n", options, THIELE_ERROR_DATA, "column 'x', row 2: the value is infinite");
    assert_refused("x,y\n1,1\n2,1e999\n3,3\n", options, THIELE_ERROR_DATA, "column 'y', row 2: the value is infinite");
    assert_refused("x,y\n1e300,1\n-1e300,2\n", options, THIELE_ERROR_DATA, "'x', row 1: 1e+300 is too large");
    assert_refused("x,y\n1e-300,1\n-1e-300,2\n", options, THIELE_ERROR_DATA, "'x' varies too little");
    assert_refused("x,y\n1,1\n", options, THIELE_ERROR_DATA, "t.csv has 1 row: at least two are needed");
    assert_refused("s,y\na\xFF,1\nb,2\n", options, THIELE_ERROR_DATA, "column 's', row 1: the text is not UTF-8");
    assert_refused("s\xFF,y\na,1\nb,2\n", options, THIELE_ERROR_DATA, "column 1 is not UTF-8");
    options.drop_missing = 1;
    assert_refused("x,y\n1,1\n,2\n3,\n", options, THIELE_ERROR_DATA, "t.csv has 1 row without missing values");
}

static void test_levels_limit(void **state)
{
    (void)state;
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "name,y\n");
    for (int i = 0; i < THI_LEVELS_MAX; i++) {
        thi_text_add(&text, "p%d,%d\n", i, i);
    }
    thi_column_options options = options_for("y");
    options.inputs = "name";
    thi_encoder encoder = learn(text.data, options);
    assert_int_equal(encoder.dims, THI_LEVELS_MAX);
    for (int l = 1; l < THI_LEVELS_MAX; l++) {
        assert_true(strcmp(encoder.input[0].level[l - 1], encoder.input[0].level[l]) < 0);
    }
    thi_encoder_clear(&encoder);
    thi_text_clear(&text);
}

static char said[8][THI_MESSAGE_MAX];
static int lines;

static void keep_line(thiele_log_level level, const char *line, void *user)
{
    (void)level, (void)user;
    if (lines < 8) {
        snprintf(said[lines], sizeof said[lines], "%s", line);
    }
    lines++;
}

/* Names and doubtful dates are left out with a line each, unless they are listed; dates become numbers; others stay. */
static void test_leave_out(void **state)
{
    (void)state;
    static const char *const notations[] = {"2024-01-%02d", "%02d.02.2024", "%d/3/24 10:15", "%d-Mar-2024",
                                            "2024/11/%d"};
    static const char *const no_dates[] = {"10.0.0.%d", "1.2.%d", "030-123-%d", "2024-13-%d", "45/%d/2024", "%d-2024"};
    enum { ROWS = 24, DATES = sizeof notations / sizeof *notations, NO_DATES = sizeof no_dates / sizeof *no_dates };
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "name,site,d1,d2,d3,d4,d5,n1,n2,n3,n4,n5,n6,x,y\n");
    for (int i = 0; i < ROWS; i++) {
        char cell[32];
        thi_text_add(&text, "p%d,s%d", i, i % 3);
        for (int k = 0; k < DATES + NO_DATES; k++) {
            snprintf(cell, sizeof cell, k < DATES ? notations[k] : no_dates[k - DATES], i % 8 + 1);
            thi_text_add(&text, ",%s", cell);
        }
        thi_text_add(&text, ",%d,%d\n", i, i * i);
    }
    thi_column_options options = options_for("y");
    ctx->log = keep_line;
    lines = 0;
    thi_encoder encoder = learn(text.data, options);
    assert_int_equal(encoder.inputs, 2 + DATES - 1 + NO_DATES);
    assert_string_equal(encoder.input[0].name, "site");
    assert_string_equal(encoder.input[5].name, "n1");
    assert_int_equal(lines, 4 + 2);
    assert_non_null(strstr(said[0], "'d1' holds dates and is used as a number: days since 2024-01-01"));
    assert_non_null(strstr(said[1], "'d2' holds dates and is used as a number: days since 2024-02-01"));
    assert_non_null(strstr(said[4], "'d3' holds ambiguous dates"));
    assert_non_null(strstr(said[5], "'name' is text with a different value in nearly every row"));
    assert_non_null(strstr(said[5], "`categorical`"));
    thi_encoder_clear(&encoder);
    options.categorical = "name,d1";
    encoder = learn(text.data, options);
    assert_int_equal(encoder.inputs, 3 + DATES - 1 + NO_DATES);
    assert_true(encoder.input[2].levels == 8 && encoder.input[2].dates.form == THI_NO_DATE);
    thi_encoder_clear(&encoder);
    options.categorical = NULL;
    options.inputs = "x,d2,d3,name";
    lines = 0;
    encoder = learn(text.data, options);
    assert_int_equal(encoder.inputs, 4);
    assert_true(encoder.input[1].dates.form == THI_DAY_FIRST && encoder.input[2].levels == 8);
    assert_int_equal(lines, 1);
    thi_encoder_clear(&encoder);
    ctx->log = NULL;
    thi_text_clear(&text);
    options = options_for("y");
    assert_refused("when,y\n1/2/24,1\n3/4/24,2\n", options, THIELE_ERROR_DATA, "no input columns are left");
}

/* Of more levels than there may be the most frequent are kept, of equal ones the first; the others go together. */
static void test_too_many_levels(void **state)
{
    (void)state;
    enum { MORE = 7, LEVELS = THI_LEVELS_MAX + MORE };
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "shop,x,y\n");
    for (int i = 0; i < 3 * LEVELS; i++) {
        thi_text_add(&text, "s%03d,%d,%d\n", i % LEVELS, i, i % 5);
    }
    thi_text_add(&text, "s%03d,1,2\n", LEVELS - 1);
    thi_column_options options = options_for("y");
    ctx->log = keep_line;
    lines = 0;
    thi_encoder encoder = learn(text.data, options);
    assert_dims(&encoder, "x");
    assert_int_equal(lines, 1);
    assert_non_null(strstr(said[0], "'shop' is text with more than 100 different values and was left out"));
    thi_encoder_clear(&encoder);
    options.categorical = "shop";
    lines = 0;
    encoder = learn(text.data, options);
    const thi_input *shop = &encoder.input[0];
    assert_int_equal(lines, 1);
    assert_non_null(strstr(said[0], "'shop' has 107 different values: the 100 most frequent"));
    assert_true(shop->levels == THI_LEVELS_MAX && shop->others && shop->rare == MORE);
    assert_string_equal(shop->level[THI_LEVELS_MAX - 2], "s098");
    assert_string_equal(shop->level[THI_LEVELS_MAX - 1], "s106");
    assert_int_equal(encoder.dims, THI_LEVELS_MAX + 2);
    thi_encoder_clear(&encoder);
    ctx->log = NULL;
    thi_text_clear(&text);
}

/* A text with a value for every row is an identifier in a table of six rows too; of five rows it may be categories. */
static void test_identifiers(void **state)
{
    (void)state;
    const char *text = "id,row,site,x,y\na1,1,n,1,1\na2,2,s,4,2\na3,3,n,9,4\na4,4,s,2,3\na5,5,w,7,9\na6,6,w,8,9\n";
    thi_column_options options = options_for("y");
    ctx->log = keep_line;
    lines = 0;
    thi_encoder encoder = learn(text, options);
    assert_dims(&encoder, "row site=n site=s site=w x");
    assert_int_equal(lines, 1);
    assert_non_null(strstr(said[0], "'id' is text with a different value in nearly every row"));
    thi_encoder_clear(&encoder);
    ctx->log = NULL;
    options.categorical = "id";
    encoder = learn(text, options);
    assert_int_equal(encoder.input[0].levels, 6);
    thi_encoder_clear(&encoder);
    options.categorical = NULL;
    encoder = learn("id,x,y\na,1,1\nb,2,2\nc,3,5\nd,5,7\ne,8,9\n", options);
    assert_int_equal(encoder.input[0].levels, 5);
    thi_encoder_clear(&encoder);
}

static void test_two_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool two;
    } cases[] = {
        {"y\n0\n1\n0\n1\n", true},  {"y\n-1\n1\n1\n-1\n\n", true},   {"y\n0\n1\n", false},
        {"y\n0\n1\n1\n", false},    {"y\n0\n1\n2\n1\n0\n", false},   {"y\n3\n3\n3\n", false},
        {"y\na\nb\na\nb\n", false}, {"y\n0\n1\n0\n1\ninf\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_table *table;
        double value[2];
        bool two;
        assert_ok(ctx, thi_table_parse_csv(&table, ctx, cases[i].text, strlen(cases[i].text), "t.csv", NULL));
        assert_ok(ctx, thi_has_two_values(ctx, table, 0, value, &two));
        assert_int_equal(two, cases[i].two);
        thiele_table_destroy(table);
    }
}

/* Rows with something missing anywhere are left out, and so are levels that only they have. */
static void test_drop_missing(void **state)
{
    (void)state;
    const char *text = "s,x,t,y\n"
                       "a,1,u,1\n"
                       "gone,,u,2\n"
                       "b,3,v,3\n"
                       "a,5,v,\n"
                       "a,7,,4\n"
                       ",9,u,5\n"
                       "c,11,w,8\n";
    thi_column_options options = options_for("y");
    options.drop_missing = 1;
    thi_encoder encoder = learn(text, options);
    double X[7 * 7], y[7];
    int64_t row[7];
    assert_dims(&encoder, "s=a s=b s=c x t=u t=v t=w");
    assert_near(encoder.center[3], 5, 1e-15, 0);
    assert_near(encoder.target[0].mean, 4, 1e-15, 0);
    assert_int_equal(read_all(&encoder, text, true, true, X, y, row), 3);
    assert_true(row[0] == 0 && row[1] == 2 && row[2] == 6);
    assert_true(X[1 * 7 + 1] == 1 && X[2 * 7 + 6] == 1 && X[2 * 7 + 0] == 0);
    thi_encoder_clear(&encoder);
}

/* Offset data over several blocks: mean 0 and variance 1 to rounding, the same bits each time. */
static void test_moments(void **state)
{
    (void)state;
    enum { ROWS = 10000, COLUMNS = 3 };
    double *values = malloc(ROWS * COLUMNS * sizeof *values), *X = malloc(THI_TABLE_BLOCK * 2 * sizeof *X);
    double *y = malloc(THI_TABLE_BLOCK * sizeof *y);
    test_normals(ROWS * COLUMNS, 1, values);
    for (int i = 0; i < ROWS; i++) {
        values[i * COLUMNS] += 1e6;
        values[i * COLUMNS + 1] *= 1e-9;
    }
    thiele_table *table;
    thi_encoder encoder, again;
    thi_reader reader;
    const thi_column_options options = options_for("x3");
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, ROWS, COLUMNS, values, NULL));
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, NULL));
    assert_ok(ctx, thi_encoder_learn(&again, ctx, table, &options, NULL));
    assert_memory_equal(encoder.scale, again.scale, 2 * sizeof(double));
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){.target = true}));
    double sum[3] = {0}, square[3] = {0};
    for (int64_t first = 0; first < ROWS; first += THI_TABLE_BLOCK) {
        int64_t count = ROWS - first < THI_TABLE_BLOCK ? ROWS - first : THI_TABLE_BLOCK;
        assert_ok(ctx, thi_reader_read(&reader, ctx, first, count, X, y, NULL, NULL, &count));
        for (int64_t n = 0; n < count; n++) {
            const double v[3] = {X[2 * n], X[2 * n + 1], y[n]};
            for (int d = 0; d < 3; d++) {
                sum[d] += v[d] / ROWS;
                square[d] += v[d] * v[d] / ROWS;
            }
        }
    }
    for (int d = 0; d < 3; d++) {
        /* the mean of numbers near 1e6 is known to 1e6 eps; sums of 10000 terms add to that */
        assert_near(sum[d], 0, 0, 1e-9);
        assert_near(square[d], 1, 1e-9, 0);
    }
    thi_reader_close(&reader);
    thi_encoder_clear(&encoder);
    thi_encoder_clear(&again);
    thiele_table_destroy(table);
    free(values);
    free(X);
    free(y);
}

/* --- reading new tables ----------------------------------------------------------------------------------------- */

static thi_encoder learn_small(void)
{
    thi_column_options options = options_for("y");
    options.ignore = "id";
    options.raw = 1;
    return learn(small, options);
}

static void test_new_table(void **state)
{
    (void)state;
    thi_encoder encoder = learn_small();
    double X[8];
    /* other order, other columns, no target */
    assert_int_equal(read_all(&encoder, "site,extra,x\nnorth,?,7\neast,,8\n", false, false, X, NULL, NULL), 2);
    const double want[8] = {7, 0, 1, 0, 8, 1, 0, 0};
    assert_memory_equal(X, want, sizeof want);
    thi_reader reader;
    thiele_table *table = parse("x,z\n1,2\n");
    assert_fails(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){.target = true}),
                 THIELE_ERROR_COLUMN, "t.csv has no column 'site', 'y' (the target): the model needs them");
    assert_fails(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){0}), THIELE_ERROR_COLUMN,
                 "t.csv has no column 'site': the model needs it");
    thiele_table_destroy(table);
    thi_encoder_clear(&encoder);
}

static void test_unseen(void **state)
{
    (void)state;
    thi_encoder encoder = learn_small();
    thiele_table *table = parse("site,x\nnorth,1\nwest,2\nsout,3\n");
    thi_reader reader;
    double X[12];
    int64_t kept;
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){0}));
    assert_fails(ctx, thi_reader_read(&reader, ctx, 0, 3, X, NULL, NULL, NULL, &kept), THIELE_ERROR_DATA,
                 "column 'site', row 2: level 'west' was not seen in training (known: east, north, south; use `unseen` "
                 "zero to treat it as none of them)");
    assert_fails(ctx, thi_reader_read(&reader, ctx, 2, 1, X, NULL, NULL, NULL, &kept), THIELE_ERROR_DATA,
                 "row 3: level 'sout'");
    thi_reader_close(&reader);
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){.unseen_zero = true}));
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, 3, X, NULL, NULL, NULL, &kept));
    const double want[12] = {1, 0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0};
    assert_memory_equal(X, want, sizeof want);
    thi_reader_close(&reader);
    /* a selection names the file's row */
    const int64_t rows[1] = {1};
    thiele_table *some;
    assert_ok(ctx, thiele_table_select(&some, ctx, table, rows, 1));
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, some, &(thi_reading){0}));
    assert_fails(ctx, thi_reader_read(&reader, ctx, 0, 1, X, NULL, NULL, NULL, &kept), THIELE_ERROR_DATA,
                 "row 2: level 'west'");
    thi_reader_close(&reader);
    thiele_table_destroy(some);
    thiele_table_destroy(table);
    thi_encoder_clear(&encoder);
}

/* Levels that are numbers, read from a table that holds numbers only. */
static void test_numeric_levels(void **state)
{
    (void)state;
    thi_column_options options = options_for("y");
    options.categorical = "k";
    thi_encoder encoder = learn("k,y\n1,1\n2,2\n10,3\n", options);
    assert_dims(&encoder, "k=1 k=10 k=2");
    const double values[2] = {10, 1};
    const char *const names[1] = {"k"};
    thiele_table *table;
    thi_reader reader;
    double X[6];
    int64_t kept;
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, 2, 1, values, names));
    assert_ok(ctx, thi_reader_open(&reader, ctx, &encoder, table, &(thi_reading){0}));
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, 2, X, NULL, NULL, NULL, &kept));
    const double want[6] = {0, 1, 0, 1, 0, 0};
    assert_memory_equal(X, want, sizeof want);
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    thi_encoder_clear(&encoder);
}

static void test_row(void **state)
{
    (void)state;
    thi_encoder encoder = learn_small();
    double X[4];
    assert_ok(ctx, thi_encode_row(&encoder, ctx, ((const double[]){5, 2}), X));
    const double want[4] = {5, 0, 0, 1};
    assert_memory_equal(X, want, sizeof want);
    assert_fails(ctx, thi_encode_row(&encoder, ctx, ((const double[]){NAN, 2}), X), THIELE_ERROR_ARGUMENT, "'x'");
    assert_fails(ctx, thi_encode_row(&encoder, ctx, ((const double[]){1, 3}), X), THIELE_ERROR_ARGUMENT, "no level 3");
    assert_fails(ctx, thi_encode_row(&encoder, ctx, ((const double[]){1, 0.5}), X), THIELE_ERROR_ARGUMENT,
                 "no level 0.5");
    assert_fails(ctx, thi_encode_row(&encoder, ctx, ((const double[]){1, -1}), X), THIELE_ERROR_ARGUMENT,
                 "no level -1");
    thi_encoder_clear(&encoder);
}

/* A column counts as text by the whole table, not by the rows that a selection holds. */
static void test_selection(void **state)
{
    (void)state;
    thiele_table *table = parse("k,y\na,1\nb,2\nc,3\n4,4\n5,5\n"), *some;
    const int64_t rows[3] = {3, 4, 0};
    thi_encoder encoder;
    const thi_column_options options = options_for("y");
    assert_ok(ctx, thiele_table_select(&some, ctx, table, rows, 3));
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, some, &options, NULL));
    assert_dims(&encoder, "k=4 k=5 k=a");
    thi_encoder_clear(&encoder);
    thiele_table_destroy(some);
    thiele_table_destroy(table);
}

/* --- JSON ------------------------------------------------------------------------------------------------------- */

static void test_json(void **state)
{
    (void)state;
    thi_column_options options = options_for("y");
    thi_encoder encoder = learn(small, options), back;
    json_t *json = thi_encoder_to_json(&encoder);
    char *text = json_dumps(json, JSON_SORT_KEYS);
    json_decref(json);
    json = json_loads(text, 0, NULL);
    assert_ok(ctx, thi_encoder_from_json(&back, ctx, json));
    assert_int_equal(back.dims, encoder.dims);
    assert_dims(&back, "id x site=east site=north site=south");
    assert_memory_equal(back.center, encoder.center, (size_t)encoder.dims * sizeof(double));
    assert_memory_equal(back.scale, encoder.scale, (size_t)encoder.dims * sizeof(double));
    assert_string_equal(back.target[0].name, "y");
    assert_true(back.target[0].center == encoder.target[0].center && back.target[0].scale == encoder.target[0].scale &&
                back.target[0].mean == encoder.target[0].mean && back.target[0].variance == encoder.target[0].variance);
    json_t *again = thi_encoder_to_json(&back);
    assert_true(json_equal(json, again));
    json_decref(again);
    json_decref(json);
    free(text);
    thi_encoder_clear(&back);
    thi_encoder_clear(&encoder);
}

static void test_bad_json(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"inputs\": []}",
        "{\"inputs\": {\"name\": 1}}",
        "{\"inputs\": [1]}",
        "{\"inputs\": [{}]}",
        "{\"inputs\": [{\"name\": \"\", \"center\": 0, \"scale\": 1}]}",
        "{\"inputs\": [{\"name\": \"a\", \"center\": 0}]}",
        "{\"inputs\": [{\"name\": \"a\", \"center\": 0, \"scale\": 0}]}",
        "{\"inputs\": [{\"name\": \"a\", \"center\": 0, \"scale\": -1}]}",
        "{\"inputs\": [{\"name\": \"a\", \"center\": \"0\", \"scale\": 1}]}",
        "{\"inputs\": [{\"name\": \"a\", \"levels\": []}]}",
        "{\"inputs\": [{\"name\": \"a\", \"levels\": 3}]}",
        "{\"inputs\": [{\"name\": \"a\", \"levels\": [1, 2]}]}",
        "{\"inputs\": [{\"name\": \"a\", \"levels\": [\"b\", \"a\"]}]}",
        "{\"inputs\": [{\"name\": \"a\", \"levels\": [\"a\", \"a\"]}]}",
        "{\"inputs\": [{\"name\": \"a\", \"levels\": [\"a\", \"b\"]}, {\"name\": \"a\", \"levels\": [\"a\", \"b\"]}]}",
    };
    thi_encoder encoder;
    json_t *rest = json_loads("{\"targets\": [{\"name\": \"y\", \"center\": 0, \"scale\": 1, \"mean\": 0, "
                              "\"variance\": 1}], \"signs\": false, \"partial\": false}",
                              0, NULL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *json = json_loads(texts[i], 0, NULL);
        assert_non_null(json);
        json_object_update(json, rest);
        if (thi_encoder_from_json(&encoder, ctx, json) != THIELE_ERROR_FORMAT) {
            fail_msg("accepted: %s", texts[i]);
        }
        assert_null(encoder.input);
        json_decref(json);
    }
    json_decref(rest);
}

/* Every allocation failing in turn while learning, reading and loading. */
static void test_allocations(void **state)
{
    (void)state;
    thiele_context *own = test_context(1);
    thiele_table *table = parse("s,x,y\n\"a\"\"b\",1,1\nb,2,2\n,3,3\nc,4,5\n");
    thi_column_options options = options_for("y");
    options.drop_missing = 1;
    options.categorical = "s";
    options.inputs = "x,s";
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t n = 1; status != THIELE_OK; n++) {
        thi_encoder encoder = {0}, back = {0};
        thi_reader reader = {0};
        double X[16], y[4];
        int64_t kept;
        assert_true(n < 1000);
        thi_fail_allocation(own, n, false);
        status = thi_encoder_learn(&encoder, own, table, &options, NULL);
        if (status == THIELE_OK) {
            status =
                thi_reader_open(&reader, own, &encoder, table, &(thi_reading){.target = true, .drop_missing = true});
        }
        if (status == THIELE_OK) {
            status = thi_reader_read(&reader, own, 0, 4, X, y, NULL, NULL, &kept);
        }
        if (status == THIELE_OK) {
            json_t *json = thi_encoder_to_json(&encoder);
            status = thi_encoder_from_json(&back, own, json);
            json_decref(json);
        }
        thi_fail_allocation(own, 0, false);
        thi_reader_close(&reader);
        thi_encoder_clear(&encoder);
        thi_encoder_clear(&back);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(own), 0);
    }
    thiele_table_destroy(table);
    thiele_context_destroy(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_drop_constant),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_leave_out),
        cmocka_unit_test(test_identifiers),
        cmocka_unit_test(test_two_values),
        cmocka_unit_test(test_levels_limit),
        cmocka_unit_test(test_too_many_levels),
        cmocka_unit_test(test_drop_missing),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_new_table),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_numeric_levels),
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
