/*
 * Lamps of reports: each fault that is injected on purpose lights its lamp, and no lamp is red on twenty sound models.
 * Tables are y = 2 sin(k x1) + x2 + noise with an input x3 that does not matter, or labels and counts by it.
 */
#include "model_testing.h"

#include <jansson.h>

#include "report/report.h"

typedef enum kind { NUMBER, HEAVY, LEAK, LABEL, RARE, COUNT } kind;

typedef struct world {
    kind kind;
    uint64_t seed;
    int64_t rows;
    double wave;  /* k */
    double shift; /* of x1 */
} world;

static const double NOISE = 0.3;

static double poisson(thi_stream stream, uint64_t index, double mean)
{
    double u = thi_random_uniform(stream, index), p = exp(-mean), below = p, k = 0.0;
    while (u > below && k < 1000.0) {
        k += 1.0;
        p *= mean / k;
        below += p;
    }
    return k;
}

/* One row; false: it is not in the table. */
static bool draw_row(const world *w, uint64_t i, double row[4])
{
    const thi_stream stream = {w->seed, 77, i};
    double x1 = 6.0 * thi_random_uniform(stream, 0) - 3.0 + w->shift, x2 = 4.0 * thi_random_uniform(stream, 1) - 2.0;
    double f = 2.0 * sin(w->wave * x1) + x2, e = NOISE * thi_random_normal(stream, 3);
    row[0] = x1;
    row[1] = x2;
    row[2] = thi_random_normal(stream, 2);
    row[3] = f + e;
    if (w->kind == HEAVY && thi_random_uniform(stream, 4) < 0.03) {
        row[3] += 20.0 * NOISE * thi_random_normal(stream, 5);
    } else if (w->kind == LEAK) {
        row[2] = 3.0 * row[3] + 1.0 + 0.05 * thi_random_normal(stream, 5);
    } else if (w->kind == LABEL || w->kind == RARE) {
        row[3] = thi_random_uniform(stream, 4) < 1.0 / (1.0 + exp(-1.5 * f));
        return w->kind == LABEL || row[3] == 0.0 || thi_random_uniform(stream, 5) < 0.15;
    } else if (w->kind == COUNT) {
        row[3] = poisson(stream, 4, exp(0.5 * f + 0.5));
    }
    return true;
}

static thiele_table *make_table(thiele_context *ctx, const world *w)
{
    static const char *const names[] = {"x1", "x2", "x3", "y"};
    double *all = malloc(4 * (size_t)w->rows * sizeof *all);
    thiele_table *table = NULL;
    int64_t n = 0;
    assert_non_null(all);
    for (uint64_t i = 0; n < w->rows; i++) {
        n += draw_row(w, i, all + 4 * n);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, n, 4, all, names));
    free(all);
    return table;
}

static thiele_fit_options plain_options(void)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.prior.kernel = "se(ard)";
    options.model.noise = "gaussian";
    options.model.method = "exact";
    return options;
}

static thiele_model *learn(thiele_context *ctx, const world *w, const thiele_fit_options *options)
{
    thiele_table *table = make_table(ctx, w);
    thiele_model *model = NULL;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, options));
    thiele_table_destroy(table);
    return model;
}

static json_t *look(thiele_context *ctx, const thiele_model *model, const world *w)
{
    thiele_table *table = make_table(ctx, w);
    char *text = NULL;
    assert_ok(ctx, thiele_model_report(model, ctx, table, NULL, NULL, &text));
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    thiele_free(text);
    thiele_table_destroy(table);
    return json;
}

static const json_t *lamp_of(const json_t *report, const char *name)
{
    const json_t *lamps = thi_value_at(report, "lamps");
    for (size_t k = 0; k < json_array_size(lamps); k++) {
        const json_t *lamp = json_array_get(lamps, k);
        if (strcmp(json_string_value(json_object_get(lamp, "name")), name) == 0) {
            return lamp;
        }
    }
    fail_msg("there is no lamp '%s'", name);
    return NULL;
}

static void print_lamps(const char *of, const json_t *report)
{
    const json_t *lamps = thi_value_at(report, "lamps");
    print_message("%s: %s\n", of, json_string_value(thi_value_at(report, "verdict")));
    for (size_t k = 0; k < json_array_size(lamps); k++) {
        const json_t *lamp = json_array_get(lamps, k);
        print_message("    %s %s: %s\n", json_string_value(json_object_get(lamp, "name")),
                      json_string_value(json_object_get(lamp, "state")),
                      json_string_value(json_object_get(lamp, "says")));
    }
}

/* The lamp is lit (red: it is red), says what to do, and the verdict names it. */
static void assert_lit(const char *of, json_t *report, const char *name, bool red)
{
    const json_t *lamp = lamp_of(report, name);
    const char *state = json_string_value(json_object_get(lamp, "state"));
    print_lamps(of, report);
    assert_true(strcmp(state, "red") == 0 || (!red && strcmp(state, "amber") == 0));
    assert_true(json_is_string(json_object_get(lamp, "do")));
    if (strcmp(state, json_string_value(thi_value_at(report, "state"))) == 0) {
        assert_non_null(strstr(json_string_value(thi_value_at(report, "verdict")), name));
    }
    json_decref(report);
}

/* --- faults ---------------------------------------------------------------------------------------------------------
 */

static const world usual = {NUMBER, 1, 300, 2.0, 0.0}, unseen = {NUMBER, 2, 300, 2.0, 0.0};

static void few_inducing_inputs(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    options.model.method = "collapsed";
    options.inducing.inducing = 4;
    thiele_model *model = learn(ctx, &usual, &options);
    assert_lit("M far too small", look(ctx, model, &unseen), "inducing", true);
    thiele_model_destroy(model);
    /* Where the values are right, what they leave says so. */
    options.inducing.inducing = 10;
    options.prior.set = "lengthscale=0.7,variance=4,noise=0.09";
    model = learn(ctx, &usual, &options);
    assert_lit("M far too small at known values", look(ctx, model, &unseen), "inducing", true);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void little_noise(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    options.prior.set = "lengthscale=1,variance=4,noise=0.002";
    thiele_model *model = learn(ctx, &usual, &options);
    assert_lit("noise fixed too low", look(ctx, model, &unseen), "calibrated", true);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void cut_short(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    options.stopping.iterations = 2;
    thiele_model *model = learn(ctx, &usual, &options);
    assert_lit("a fit cut short", look(ctx, model, &unseen), "converged", false);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void shifted_rows(void **state)
{
    (void)state;
    const world shifted = {NUMBER, 3, 300, 2.0, 2.0};
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    thiele_model *model = learn(ctx, &usual, &options);
    assert_lit("shifted rows", look(ctx, model, &shifted), "domain", true);
    assert_lit("rows of the training table", look(ctx, model, &usual), "domain", false);
    thiele_model_destroy(model);
    /* A model without training rows knows where they were. */
    options.model.method = "collapsed";
    options.inducing.inducing = 40;
    options.result.keep = -1;
    model = learn(ctx, &usual, &options);
    json_t *report = look(ctx, model, &shifted);
    assert_true(thi_value_at(report, "domain.seen") == NULL);
    assert_lit("shifted rows, by moments", report, "domain", false);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void leaked_column(void **state)
{
    (void)state;
    const world train = {LEAK, 1, 300, 2.0, 0.0}, test = {LEAK, 2, 300, 2.0, 0.0};
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    thiele_model *model = learn(ctx, &train, &options);
    json_t *report = look(ctx, model, &test);
    assert_non_null(strstr(json_string_value(json_object_get(lamp_of(report, "leak"), "says")), "x3"));
    assert_lit("a leaked column", report, "leak", false);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void heavy_tails(void **state)
{
    (void)state;
    const world train = {HEAVY, 1, 300, 2.0, 0.0}, test = {HEAVY, 2, 600, 2.0, 0.0};
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    thiele_model *model = learn(ctx, &train, &options);
    json_t *report = look(ctx, model, &test);
    assert_non_null(strstr(json_string_value(json_object_get(lamp_of(report, "calibrated"), "do")), "student-t"));
    assert_lit("heavy tails", report, "calibrated", false);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void labels_out_of_proportion(void **state)
{
    (void)state;
    const world train = {LABEL, 1, 300, 2.0, 0.0}, test = {RARE, 2, 600, 2.0, 0.0};
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    options.model.noise = NULL;
    options.model.method = NULL;
    options.model.likelihood = "bernoulli";
    thiele_model *model = learn(ctx, &train, &options);
    json_t *report = look(ctx, model, &test);
    assert_non_null(strstr(json_string_value(json_object_get(lamp_of(report, "calibrated"), "do")), "proportions"));
    assert_lit("labels out of proportion", report, "calibrated", true);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

static void chains_that_did_not_mix(void **state)
{
    (void)state;
    const world train = {LABEL, 1, 150, 2.0, 0.0}, test = {LABEL, 2, 150, 2.0, 0.0};
    thiele_context *ctx = test_context(1);
    thiele_fit_options options = plain_options();
    options.model.noise = NULL;
    options.model.likelihood = "bernoulli";
    options.model.method = "mh";
    options.sampling.draws = 30;
    options.sampling.burn_in = 3;
    thiele_model *model = learn(ctx, &train, &options);
    assert_lit("chains that did not mix", look(ctx, model, &test), "converged", true);
    thiele_model_destroy(model);
    thiele_context_destroy(ctx);
}

/* --- sound models ---------------------------------------------------------------------------------------------------
 */

/* Another table and another split each. */
static void no_red_lamp_on_sound_models(void **state)
{
    (void)state;
    static const struct {
        kind kind;
        const char *method, *likelihood, *kernel;
        int64_t inducing;
    } models[] = {
        {NUMBER, "exact", NULL, "se(ard)", 0},        {NUMBER, "collapsed", NULL, "se(ard)", 80},
        {NUMBER, "variational", NULL, "se(ard)", 80}, {NUMBER, "pic", NULL, "se(ard)", 40},
        {NUMBER, "fitc", NULL, "se(ard)", 80},        {NUMBER, "dense", "student-t", "se(ard)", 0},
        {HEAVY, "dense", "student-t", "se(ard)", 0},  {LABEL, "dense", "bernoulli", "se(ard)", 0},
        {LABEL, "gibbs", "bernoulli", "se(ard)", 0},  {COUNT, "dense", "poisson", "se(ard)", 0},
    };
    enum { MODELS = sizeof models / sizeof *models, TABLES = 2 };
    thiele_context *ctx = test_context(1);
    int red = 0;
    for (int k = 0; k < MODELS * TABLES; k++) {
        uint64_t seed = 100 + 2 * (uint64_t)k;
        const world train = {models[k % MODELS].kind, seed, 240, 1.5, 0.0},
                    test = {train.kind, seed + 1, 400, 1.5, 0.0};
        thiele_fit_options options = plain_options();
        options.model.method = models[k % MODELS].method;
        options.model.likelihood = models[k % MODELS].likelihood;
        options.model.noise = options.model.likelihood == NULL ? "gaussian" : NULL;
        options.prior.kernel = models[k % MODELS].kernel;
        options.inducing.inducing = models[k % MODELS].inducing;
        thiele_model *model = learn(ctx, &train, &options);
        json_t *report = look(ctx, model, &test);
        if (strcmp(json_string_value(thi_value_at(report, "state")), "red") == 0) {
            red++;
        }
        if (strcmp(json_string_value(thi_value_at(report, "state")), "green") != 0) {
            print_lamps(options.model.method, report);
        }
        json_decref(report);
        thiele_model_destroy(model);
    }
    assert_int_equal(red, 0);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_inducing_inputs),
        cmocka_unit_test(little_noise),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(shifted_rows),
        cmocka_unit_test(leaked_column),
        cmocka_unit_test(heavy_tails),
        cmocka_unit_test(labels_out_of_proportion),
        cmocka_unit_test(chains_that_did_not_mix),
        cmocka_unit_test(no_red_lamp_on_sound_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
