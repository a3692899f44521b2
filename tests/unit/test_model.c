/*
 * The model through the public API: learning what the data were made of, units, round trips through the file, damaged
 * files, holdout and cross-validation, deadline and cancellation.
 */
#include "testing.h"

#include "model_testing.h"

/* Predictions of a whole table. */
typedef struct predictions {
    double mean[1000], variance[1000];
    int64_t n;
} predictions;

static thiele_status collect(const thiele_prediction *block, void *user)
{
    predictions *all = user;
    memcpy(all->mean + all->n, block->mean, (size_t)block->rows * sizeof(double));
    memcpy(all->variance + all->n, block->variance, (size_t)block->rows * sizeof(double));
    all->n += block->rows;
    return THIELE_OK;
}

static void predict(thiele_context *ctx, const thiele_model *model, const thiele_table *table, predictions *all)
{
    all->n = 0;
    assert_ok(ctx, thiele_model_predict(model, ctx, table, NULL, collect, all));
}

static double parameter(const thiele_model *model, const char *wanted)
{
    for (int i = 0; i < thiele_model_parameters(model); i++) {
        const char *name;
        double value;
        assert_int_equal(thiele_model_parameter(model, i, &name, &value), THIELE_OK);
        if (strcmp(name, wanted) == 0) {
            return value;
        }
    }
    fail_msg("no parameter %s", wanted);
    return NAN;
}

static void test_learns(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thiele_table *train = demo(ctx, 400, 1);
    thiele_table *test = demo(ctx, 600, 2);
    thiele_fit_options options = demo_options();
    options.model.noise = "gaussian";
    thiele_model *model = fitted(ctx, train, &options);
    thiele_scores scores;
    assert_int_equal(thiele_model_stop(model), THIELE_STOP_CONVERGED);
    assert_ok(ctx, thiele_model_score(model, ctx, test, NULL, &scores));
    /* The noise alone has an RMSE of about 1.6 (sd 0.8 + 0.5 |x1|); three standard errors above it. */
    assert_true(scores.rmse > 1.3 && scores.rmse < 1.95);
    assert_true(scores.coverage90 > 0.83 && scores.coverage90 < 0.97);
    assert_true(scores.msll < -1.0);
    assert_true(parameter(model, "noise") > 1.5 && parameter(model, "noise") < 4.0);
    const double *mean;
    const double *variance;
    assert_int_equal(thiele_model_loo(model, &mean, &variance), 400);
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_table_destroy(test);
    thiele_context_destroy(ctx);
}

/* Options that a program makes without knowing the struct, over columns of its own, are those of one that does. */
static void test_other_languages(void **state)
{
    (void)state;
    enum { N = 60 };
    thiele_context *ctx = test_context(1);
    thiele_fit_options known = THIELE_FIT_OPTIONS_INIT, *made;
    double rows[N][2];
    const char *const names[] = {"x", "y"};
    for (int i = 0; i < N; i++) {
        rows[i][0] = i / 10.0;
        rows[i][1] = sin(i / 10.0) + 0.1 * cos(17.0 * i);
    }
    const thiele_column columns[] = {{.name = "x", .values = &rows[0][0], .stride = sizeof rows[0]},
                                     {.name = "y", .values = &rows[0][1], .stride = sizeof rows[0]}};
    thiele_table *copied, *borrowed;
    known.columns.target = "y";
    known.prior.kernel = "se";
    assert_ok(ctx, thiele_fit_options_create(&made, ctx));
    assert_ok(ctx, thiele_fit_options_set(made, ctx, "target", "y"));
    assert_ok(ctx, thiele_fit_options_set(made, ctx, "kernel", "se"));
    assert_ok(ctx, thiele_table_from_rows(&copied, ctx, N, 2, rows[0], names));
    assert_ok(ctx, thiele_table_from_columns(&borrowed, ctx, N, 2, columns));
    thiele_model *one = fitted(ctx, copied, &known), *other = fitted(ctx, borrowed, made);
    double x = 2.5, mean[2];
    assert_ok(ctx, thiele_model_predict_rows(one, ctx, 1, &x, 0, &mean[0], NULL));
    assert_ok(ctx, thiele_model_predict_rows(other, ctx, 1, &x, 0, &mean[1], NULL));
    assert_true(mean[0] == mean[1]);
    thiele_likelihood *own;
    assert_ok(ctx, thiele_likelihood_parse(&own, ctx, "laplace", 1, 0));
    assert_ok(ctx, thiele_fit_options_set_own(made, ctx, own));
    assert_ptr_equal(made->model.own, own);
    thiele_likelihood_destroy(own);
    thiele_free(made);
    thiele_model_destroy(one);
    thiele_model_destroy(other);
    thiele_table_destroy(copied);
    thiele_table_destroy(borrowed);
    thiele_context_destroy(ctx);
}

/* A model of 3 y + 100 over 10 x is the model of y over x, in other units: parameters and predictions scale. */
static void test_units(void **state)
{
    (void)state;
    enum { N = 80 };
    thiele_context *ctx = test_context(2);
    double plain[N * 3];
    double scaled[N * 3];
    test_normals(N * 3, 1, plain);
    for (int i = 0; i < N; i++) {
        plain[3 * i + 2] = sin(plain[3 * i]) + 0.5 * plain[3 * i + 1] + 0.1 * plain[3 * i + 2];
        scaled[3 * i] = 10.0 * plain[3 * i];
        scaled[3 * i + 1] = plain[3 * i + 1] - 1000.0;
        scaled[3 * i + 2] = 3.0 * plain[3 * i + 2] + 100.0;
    }
    const char *const names[] = {"a", "b", "y"};
    thiele_table *first = NULL;
    thiele_table *second = NULL;
    assert_ok(ctx, thiele_table_from_rows(&first, ctx, N, 3, plain, names));
    assert_ok(ctx, thiele_table_from_rows(&second, ctx, N, 3, scaled, names));
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.prior.mean = "linear";
    options.prior.kernel = "matern52(ard)";
    thiele_model *one = fitted(ctx, first, &options);
    thiele_model *two = fitted(ctx, second, &options);
    predictions p1;
    predictions p2;
    predict(ctx, one, first, &p1);
    predict(ctx, two, second, &p2);
    for (int i = 0; i < N; i++) {
        assert_near(p2.mean[i], 3.0 * p1.mean[i] + 100.0, 1e-5, 1e-5);
        assert_near(p2.variance[i], 9.0 * p1.variance[i], 1e-4, 1e-8);
    }
    assert_near(parameter(two, "matern52.lengthscale[a]"), 10.0 * parameter(one, "matern52.lengthscale[a]"), 1e-3, 0.0);
    assert_near(parameter(two, "noise"), 9.0 * parameter(one, "noise"), 1e-3, 0.0);
    assert_near(parameter(two, "mean.slope[a]"), 0.3 * parameter(one, "mean.slope[a]"), 1e-2, 1e-3);
    thiele_model_destroy(one);
    thiele_model_destroy(two);
    thiele_table_destroy(first);
    thiele_table_destroy(second);
    thiele_context_destroy(ctx);
}

/* y = 3 + 2 x over x = 1000 .. 1030: what is set and shown is the line in the units of the data. */
static thiele_table *line_table(thiele_context *ctx)
{
    enum { N = 31 };
    double cells[2 * N];
    double noise[N];
    test_normals(N, 1, noise);
    for (int i = 0; i < N; i++) {
        cells[2 * i] = 1000.0 + i;
        cells[2 * i + 1] = 3.0 + 2.0 * cells[2 * i] + 0.3 * noise[i];
    }
    const char *const names[] = {"x", "y"};
    thiele_table *table = NULL;
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, N, 2, cells, names));
    return table;
}

static double at_2000(thiele_context *ctx, const thiele_model *model)
{
    double x = 2000.0;
    double mean;
    assert_ok(ctx, thiele_model_predict_rows(model, ctx, 1, &x, 0, &mean, NULL));
    return mean;
}

static void test_line(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = line_table(ctx);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.prior.mean = "linear";
    options.prior.kernel = "se(l=1, variance=0.01)";
    for (int raw = 0; raw < 2; raw++) {
        options.columns.raw = raw;
        options.prior.set = "mean.constant=3, mean.slope=2";
        thiele_model *model = fitted(ctx, table, &options);
        assert_true(parameter(model, "mean.constant") == 3.0);
        assert_true(parameter(model, "mean.slope[x]") == 2.0);
        assert_near(at_2000(ctx, model), 4003.0, 1e-12, 0.0);
        thiele_model_destroy(model);
        /* Learned: constant and slope trade against each other, but the line they make passes through the data. */
        options.prior.set = NULL;
        model = fitted(ctx, table, &options);
        double slope = parameter(model, "mean.slope[x]");
        assert_near(slope, 2.0, 0.02, 0.0);
        assert_near(parameter(model, "mean.constant") + 1015.0 * slope, 2033.0, 1e-4, 0.0);
        assert_near(at_2000(ctx, model), parameter(model, "mean.constant") + 2000.0 * slope, 1e-9, 0.0);
        thiele_model_destroy(model);
        options.prior.set = "mean.slope=2";
        model = fitted(ctx, table, &options);
        assert_near(parameter(model, "mean.constant"), 3.0, 0.05, 0.0);
        thiele_model_destroy(model);
        /* An intercept alone says nothing of the line over these rows, unless the inputs are taken as they are. */
        options.prior.set = "mean.constant=3";
        thiele_status status = thiele_model_fit(&model, ctx, table, &options);
        assert_int_equal(status, raw ? THIELE_OK : THIELE_ERROR_ARGUMENT);
        if (!raw) {
            assert_non_null(strstr(thiele_context_message(ctx), "which depends on mean.slope[x]: fix both of them"));
        }
        thiele_model_destroy(model);
    }
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

/* What was written is shown as it was written, whatever units it went through; priors are remembered. */
static void test_as_written(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *train = demo(ctx, 60, 1);
    thiele_fit_options options = demo_options();
    options.columns.inputs = "x1";
    options.columns.ignore = NULL;
    options.prior.kernel = "periodic(p=7)";
    options.prior.set = "noise=0.3";
    options.prior.prior = "variance gamma(2, 0.5)";
    thiele_model *model = fitted(ctx, train, &options);
    char *text = NULL;
    assert_true(parameter(model, "periodic.period") == 7.0);
    assert_true(parameter(model, "noise") == 0.3);
    assert_ok(ctx, thiele_model_describe(model, ctx, &text));
    assert_non_null(strstr(text, "period=7)"));
    assert_non_null(strstr(text, "\"noise\": 0.29999999999999999"));
    assert_non_null(strstr(text, "\"prior\": \"gamma(2, 0.5)\""));
    /* Nothing was held out. */
    assert_null(strstr(text, "\"holdout\""));
    assert_non_null(strstr(text, "\"loo\""));
    thiele_free(text);
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
}

static void test_set_and_prior(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thiele_table *train = demo(ctx, 120, 1);
    thiele_fit_options options = demo_options();
    options.prior.set = "lengthscale[x1]=1.25, noise=2";
    thiele_model *model = fitted(ctx, train, &options);
    assert_near(parameter(model, "matern52.lengthscale[x1]"), 1.25, 1e-14, 0.0);
    assert_near(parameter(model, "noise"), 2.0, 1e-14, 0.0);
    thiele_model_destroy(model);
    /* A tight prior wins over the data. */
    options.prior.set = NULL;
    options.prior.prior = "noise lognormal(1.0986, 0.001), lengthscale gamma(2, 1)";
    model = fitted(ctx, train, &options);
    assert_near(parameter(model, "noise"), 3.0, 0.01, 0.0);
    thiele_model_destroy(model);
    options.prior.prior = NULL;
    options.stopping.iterations = -1;
    options.prior.set = "variance~50, lengthscale~2, noise~1";
    model = fitted(ctx, train, &options);
    assert_int_equal(thiele_model_stop(model), THIELE_STOP_FIXED);
    assert_near(parameter(model, "matern52.variance"), 50.0, 1e-13, 0.0);
    thiele_model_destroy(model);
    const struct {
        const char *set, *prior, *kernel, *mean, *method, *why;
    } bad[] = {
        {"lengthscael=1", NULL, NULL, NULL, NULL, "no parameter 'lengthscael'"},
        {"noise=-1", NULL, NULL, NULL, NULL, "positive"},
        {"noise", NULL, NULL, NULL, NULL, "name=value"},
        {NULL, "noise", NULL, NULL, NULL, "is not a prior"},
        {NULL, "noise gamma(0, 1)", NULL, NULL, NULL, "is not a prior"},
        {NULL, "noise cauchy(1, 1)", NULL, NULL, NULL, "is not a prior"},
        {NULL, NULL, "matern99", NULL, NULL, "a kernel was expected"},
        {NULL, NULL, NULL, "quadratic", NULL, "zero, constant or linear"},
        {NULL, NULL, NULL, NULL, "magic", "no method 'magic': there are auto, exact"},
        {NULL, NULL, NULL, NULL, "SVGP", "did you mean 'variational'?"},
        {NULL, NULL, NULL, NULL, "fitcc", "did you mean 'fitc'?"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options = demo_options();
        options.prior.set = bad[i].set;
        options.prior.prior = bad[i].prior;
        options.prior.kernel = bad[i].kernel;
        options.prior.mean = bad[i].mean;
        options.model.method = bad[i].method;
        assert_fails(ctx, thiele_model_fit(&model, ctx, train, &options), THIELE_ERROR_ARGUMENT, bad[i].why);
        assert_null(model);
    }
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
}

/* What was saved predicts the same bits after loading; saving twice gives the same bytes; so do other numbers of
 * threads. */
static void test_round_trip(void **state)
{
    (void)state;
    static predictions before;
    static predictions after;
    char *bytes[3] = {NULL};
    long length[3];
    for (int run = 0; run < 3; run++) {
        thiele_context *ctx = test_context(run == 2 ? 3 : 1);
        thiele_table *train = demo(ctx, 300, 1);
        thiele_table *test = demo(ctx, 700, 2);
        thiele_fit_options options = demo_options();
        options.prior.kernel = "matern32(ard) + periodic(dims=x1, p~4)*se";
        options.prior.mean = "constant";
        options.result.holdout = 0.2;
        thiele_model *model = fitted(ctx, train, &options);
        thiele_model *loaded = NULL;
        predict(ctx, model, test, &before);
        assert_ok(ctx, thiele_model_save(model, ctx, in_folder("m.thiele")));
        assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("m.thiele")));
        predict(ctx, loaded, test, &after);
        assert_int_equal(before.n, 700);
        assert_memory_equal(&before, &after, sizeof before);
        char *one = NULL;
        char *two = NULL;
        assert_ok(ctx, thiele_model_describe(model, ctx, &one));
        assert_ok(ctx, thiele_model_describe(loaded, ctx, &two));
        assert_string_equal(one, two);
        assert_int_equal(thiele_model_holdout(loaded)->rows, 60);
        thiele_free(one);
        thiele_free(two);
        FILE *file = fopen(in_folder("m.thiele"), "rb");
        fseek(file, 0, SEEK_END);
        length[run] = ftell(file);
        rewind(file);
        bytes[run] = malloc((size_t)length[run]);
        assert_int_equal(fread(bytes[run], 1, (size_t)length[run], file), length[run]);
        fclose(file);
        thiele_model_destroy(model);
        thiele_model_destroy(loaded);
        thiele_table_destroy(train);
        thiele_table_destroy(test);
        thiele_context_destroy(ctx);
    }
    for (int run = 1; run < 3; run++) {
        assert_int_equal(length[run], length[0]);
        assert_memory_equal(bytes[run], bytes[0], (size_t)length[0]);
    }
    for (int run = 0; run < 3; run++) {
        free(bytes[run]);
    }
}

/* Cut anywhere, or with any byte of its data changed, a file is refused with a sentence. */
static void test_damage(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *train = demo(ctx, 20, 1);
    thiele_fit_options options = demo_options();
    options.stopping.iterations = 1;
    thiele_model *model = fitted(ctx, train, &options);
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("d.thiele")));
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    FILE *file = fopen(in_folder("d.thiele"), "rb");
    static _Alignas(64) unsigned char bytes[100000];
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(length > 1000 && length < sizeof bytes);
    for (size_t cut = 0; cut < length; cut += 1 + length / 211) {
        assert_int_equal(thi_model_parse(&model, ctx, "cut", bytes, cut), THIELE_ERROR_FORMAT);
        assert_null(model);
        assert_true(strlen(thiele_context_message(ctx)) > 20);
    }
    /* Every short length in a block of just that size, so that a sanitizer sees a byte too far. */
    for (size_t cut = 0; cut < 64; cut++) {
        unsigned char *tight = malloc(cut + 1);
        memcpy(tight, bytes, cut);
        tight = realloc(tight, cut > 0 ? cut : 1);
        assert_int_equal(thi_model_parse(&model, ctx, "cut", tight, cut), THIELE_ERROR_FORMAT);
        free(tight);
    }
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    for (size_t at = 8 + header; at < length; at += 1 + length / 211) {
        bytes[at] ^= 0x10;
        assert_fails(ctx, thi_model_parse(&model, ctx, "altered", bytes, length), THIELE_ERROR_FORMAT, "checksum");
        bytes[at] ^= 0x10;
    }
    assert_ok(ctx, thi_model_parse(&model, ctx, "whole", bytes, length));
    thiele_model_destroy(model);
    assert_fails(ctx, thiele_model_load(&model, ctx, in_folder("absent")), THIELE_ERROR_IO, "absent");
    assert_fails(ctx, thiele_model_load(&model, ctx, folder), THIELE_ERROR_IO, "");
    thiele_context_destroy(ctx);
}

static void test_predict_rows(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thiele_table *train = demo(ctx, 100, 1);
    thiele_fit_options options = demo_options();
    options.model.noise = "gaussian";
    thiele_model *model = fitted(ctx, train, &options);
    static predictions all;
    predict(ctx, model, train, &all);
    for (int64_t i = 0; i < 100; i += 7) {
        char text[64];
        double x[3];
        double mean;
        double variance;
        double latent;
        for (int c = 0; c < 2; c++) {
            int column;
            assert_ok(ctx, thiele_table_find_column(train, ctx, thiele_model_input_name(model, c), &column));
            assert_ok(ctx, thiele_table_cell(train, ctx, i, column, text, sizeof text));
            x[c] = atof(text);
        }
        int column;
        assert_ok(ctx, thiele_table_find_column(train, ctx, "site", &column));
        assert_ok(ctx, thiele_table_cell(train, ctx, i, column, text, sizeof text));
        x[2] = strcmp(text, "east") == 0 ? 0.0 : (strcmp(text, "north") == 0 ? 1.0 : 2.0);
        assert_ok(ctx, thiele_model_predict_rows(model, ctx, 1, x, 0, &mean, &variance));
        /* One row and many take sums in other orders; the weights here are large and cancel. */
        assert_near(mean, all.mean[i], 1e-9, 0.0);
        assert_near(variance, all.variance[i], 1e-9, 0.0);
        assert_ok(ctx, thiele_model_predict_rows(model, ctx, 1, x, 1, &mean, &latent));
        assert_near(variance - latent, parameter(model, "noise"), 1e-9, 0.0);
        x[2] = 3.0;
        assert_int_equal(thiele_model_predict_rows(model, ctx, 1, x, 0, &mean, NULL), THIELE_ERROR_ARGUMENT);
    }
    static double mean[100];
    static double covariance[100 * 100];
    assert_ok(ctx, thiele_model_predict_joint(model, ctx, train, NULL, mean, covariance));
    for (int i = 0; i < 100; i++) {
        assert_near(mean[i], all.mean[i], 1e-9, 0.0);
        assert_near(covariance[i * 101], all.variance[i], 1e-9, 0.0);
    }
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
}

static void test_cross_validation(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    thiele_table *table = demo(ctx, 150, 3);
    thiele_fit_options options = demo_options();
    thiele_scores each[5];
    thiele_scores overall;
    assert_ok(ctx, thiele_cross_validate(ctx, table, &options, 5, each, &overall));
    assert_int_equal(overall.rows, 150);
    assert_true(overall.rmse > 1.2 && overall.rmse < 2.2);
    double squares = 0.0;
    for (int fold = 0; fold < 5; fold++) {
        assert_int_equal(each[fold].rows, 30);
        squares += each[fold].rmse * each[fold].rmse / 5.0;
    }
    assert_near(overall.rmse, sqrt(squares), 1e-12, 0.0);
    assert_fails(ctx, thiele_cross_validate(ctx, table, &options, 1, NULL, &overall), THIELE_ERROR_ARGUMENT, "folds");
    assert_fails(ctx, thiele_cross_validate(ctx, table, &options, 151, NULL, &overall), THIELE_ERROR_ARGUMENT, "folds");
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

static int cancel_after(const thiele_progress *progress, void *user)
{
    (void)progress;
    int *left = user;
    return --*left <= 0;
}

static void test_stopping(void **state)
{
    (void)state;
    int left = 3;
    thiele_context_options settings = THIELE_CONTEXT_OPTIONS_INIT;
    settings.threads = 2;
    settings.progress = cancel_after;
    settings.progress_user = &left;
    thiele_context *ctx = NULL;
    assert_int_equal(thiele_context_create(&ctx, &settings), THIELE_OK);
    thiele_table *train = demo(ctx, 700, 1);
    thiele_fit_options options = demo_options();
    /* Cancelled among the starts, then while polishing: a usable model each time. */
    for (int calls = 1; calls < 400; calls = calls * 3 + 1) {
        left = calls;
        thiele_model *model = fitted(ctx, train, &options);
        double x[3] = {0.5, 0.5, 1.0};
        double mean;
        double variance;
        assert_ok(ctx, thiele_model_predict_rows(model, ctx, 1, x, 0, &mean, &variance));
        assert_true(isfinite(mean) && variance > 0.0);
        if (calls < 20) {
            assert_int_equal(thiele_model_stop(model), THIELE_STOP_CANCELLED);
        }
        thiele_model_destroy(model);
    }
    left = 1000000;
    options.stopping.deadline = 0.02;
    double start = thi_seconds();
    thiele_model *model = fitted(ctx, train, &options);
    assert_int_equal(thiele_model_stop(model), THIELE_STOP_DEADLINE);
    assert_true(thi_seconds() - start < 2.0);
    thiele_model_destroy(model);
    options.stopping.deadline = 0.0;
    options.stopping.iterations = 1;
    model = fitted(ctx, train, &options);
    assert_int_equal(thiele_model_stop(model), THIELE_STOP_ITERATIONS);
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
}

static void test_too_many_rows(void **state)
{
    (void)state;
    thiele_context_options settings = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx;
    settings.memory_limit = 1 << 30;
    assert_int_equal(thiele_context_create(&ctx, &settings), THIELE_OK);
    thiele_table *train = demo(ctx, 12000, 1);
    thiele_fit_options options = demo_options();
    thiele_model *model = NULL;
    options.model.method = "exact";
    assert_fails(ctx, thiele_model_fit(&model, ctx, train, &options), THIELE_ERROR_LIMIT, "1.18 GB");
    assert_non_null(strstr(thiele_context_message(ctx), "variational"));
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
}

/* Targets that say little, or in large units: a fit all the same. */
static void test_odd_targets(void **state)
{
    (void)state;
    enum { N = 1500 };
    thiele_context *ctx = test_context(2);
    static double rows[N * 2];
    const char *const names[] = {"x", "y"};
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.stopping.iterations = 5;
    for (int odd = 0; odd < 3; odd++) {
        for (int i = 0; i < N; i++) {
            rows[2 * i] = i;
            /* one row apart from all others; dollars; noise-free */
            rows[2 * i + 1] = odd == 0 ? i == 700 : (odd == 1 ? 1e7 * sin(0.01 * i) : sin(0.01 * i));
        }
        thiele_table *table = NULL;
        options.columns.raw = odd == 1;
        options.result.holdout = odd == 0 ? 0.1 : 0.0;
        assert_ok(ctx, thiele_table_from_rows(&table, ctx, odd == 2 ? 100 : N, 2, rows, names));
        thiele_model *model = fitted(ctx, table, &options);
        assert_string_equal(thiele_context_message(ctx), "no error");
        thiele_model_destroy(model);
        thiele_table_destroy(table);
    }
    thiele_context_destroy(ctx);
}

static void test_misuse(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *train = demo(ctx, 30, 1);
    thiele_fit_options options = demo_options();
    thiele_model *model = NULL;
    thiele_scores scores;
    assert_fails(ctx, thiele_model_fit(&model, ctx, train, NULL), THIELE_ERROR_ARGUMENT, "INIT");
    assert_fails(ctx, thiele_cross_validate(ctx, train, NULL, 3, NULL, &scores), THIELE_ERROR_ARGUMENT, "INIT");
    options.size = 1;
    assert_fails(ctx, thiele_model_fit(&model, ctx, train, &options), THIELE_ERROR_ARGUMENT, "INIT");
    options = demo_options();
    options.result.holdout = 0.95;
    assert_fails(ctx, thiele_model_fit(&model, ctx, train, &options), THIELE_ERROR_ARGUMENT,
                 "`holdout`: 0.95 is out of range");
    options.result.holdout = 0.0;
    options.columns.target = NULL;
    assert_fails(ctx, thiele_model_fit(&model, ctx, train, &options), THIELE_ERROR_ARGUMENT, "target");
    options = demo_options();
    options.stopping.iterations = 1;
    model = fitted(ctx, train, &options);
    thiele_predict_options predict_options = THIELE_PREDICT_OPTIONS_INIT;
    predict_options.drop_missing = 1;
    static double mean[30], covariance[900];
    assert_fails(ctx, thiele_model_predict_joint(model, ctx, train, &predict_options, mean, covariance),
                 THIELE_ERROR_ARGUMENT, "all rows");
    double x[3] = {1e300, 0.0, 0.0};
    assert_fails(ctx, thiele_model_predict_rows(model, ctx, 1, x, 0, mean, NULL), THIELE_ERROR_ARGUMENT, "too large");
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
}

/* What could be fitted can be saved and loaded under the same limit of memory. */
static void test_memory(void **state)
{
    (void)state;
    enum { N = 1000 };
    thiele_context_options settings = THIELE_CONTEXT_OPTIONS_INIT;
    settings.memory_limit = (size_t)(1.2 * 8 * N * N) + (8 << 20);
    thiele_context *ctx = NULL;
    assert_int_equal(thiele_context_create(&ctx, &settings), THIELE_OK);
    thiele_table *train = demo(ctx, N, 1);
    thiele_fit_options options = demo_options();
    options.stopping.iterations = -1;
    thiele_model *model = fitted(ctx, train, &options);
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("memory.thiele")));
    thiele_model_destroy(model);
    thiele_table_destroy(train);
    thiele_context_destroy(ctx);
    settings.memory_limit = (size_t)(1.6 * 8 * N * N) + (8 << 20);
    assert_int_equal(thiele_context_create(&ctx, &settings), THIELE_OK);
    assert_ok(ctx, thiele_model_load(&model, ctx, in_folder("memory.thiele")));
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),       cmocka_unit_test(test_other_languages),
        cmocka_unit_test(test_units),        cmocka_unit_test(test_line),
        cmocka_unit_test(test_as_written),   cmocka_unit_test(test_set_and_prior),
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_damage),
        cmocka_unit_test(test_predict_rows), cmocka_unit_test(test_cross_validation),
        cmocka_unit_test(test_stopping),     cmocka_unit_test(test_too_many_rows),
        cmocka_unit_test(test_odd_targets),  cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
