/*
 * Models that go on learning (include/thiele/stream.h): batches, tables and files in the middle make no difference;
 * copies; prequential scores; what cannot be updated; bad rows; drift; deadlines; snapshots; failing allocations.
 */
#include "model_testing.h"

#include <jansson.h>
#include <thiele/stream.h>

static thiele_context *ctx;

static int set_up(void **state)
{
    ctx = test_context(2);
    return make_folder(state);
}

static int tear_down(void **state)
{
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    return remove_folder(state);
}

/* y of two inputs, made by a function that changes its sign with `sign`; kinds of target by `kind`. */
static thiele_table *make_table(int64_t rows, uint64_t seed, double sign, const char *kind)
{
    static const char *const names[] = {"x1", "x2", "y"};
    double *values = malloc((size_t)rows * 3 * sizeof *values);
    thiele_table *table = NULL;
    for (int64_t i = 0; i < rows; i++) {
        thi_stream s = {seed, THI_RANDOM_DEMO, (uint64_t)i};
        double *row = values + 3 * i;
        row[0] = 4.0 * thi_random_uniform(s, 0) - 2.0;
        row[1] = 4.0 * thi_random_uniform(s, 1) - 2.0;
        double f = sign * (sin(2.0 * row[0]) + 0.5 * row[1]), u = thi_random_uniform(s, 2);
        row[2] = strcmp(kind, "count") == 0   ? floor(2.0 * u * exp(f) + 0.5)
                 : strcmp(kind, "label") == 0 ? (u < 1.0 / (1.0 + exp(-3.0 * f)))
                 : strcmp(kind, "three") == 0 ? floor(1.5 + fmin(fmax(f + u - 0.5, -1.4), 1.4))
                                              : f + 0.1 * thi_random_normal(s, 3);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, rows, 3, values, names));
    free(values);
    return table;
}

static thiele_model *fit_table(const thiele_table *table, const char *method, const char *likelihood)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.model.method = method;
    options.model.likelihood = likelihood;
    options.inducing.inducing = method == NULL || strcmp(method, "exact") != 0 ? 20 : 0;
    options.stopping.iterations = 12;
    options.inducing.fix_inducing = method == NULL || strcmp(method, "exact") != 0;
    return fitted(ctx, table, &options);
}

/* Decoupled bases: orthogonal, plain, and orthogonal with length-scales of their own. */
enum { FORMS = 3 };
static thiele_model *fit_decoupled(const thiele_table *table, int form, const char *likelihood)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.model.method = "decoupled";
    options.model.likelihood = likelihood;
    options.prior.kernel = "se(ard)";
    options.prior.set = likelihood == NULL ? "lengthscale=1, variance=1, noise=0.01" : NULL;
    options.decoupled.decoupled = form == 1 ? "plain" : NULL;
    options.decoupled.own_scales = form == 2;
    options.inducing.inducing = 12;
    options.decoupled.mean_inducing = 30;
    options.stopping.iterations = form == 0 ? 12 : 300;
    options.optimiser.rate = form == 0 ? 0.0 : 0.05;
    return fitted(ctx, table, &options);
}

static thiele_model *update_by(const thiele_model *model, const thiele_table *table, int64_t batch, bool freeze)
{
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    thiele_model *out = NULL;
    options.batch = batch;
    options.freeze = freeze;
    assert_ok(ctx, thiele_model_update(&out, ctx, model, table, &options));
    return out;
}

static thiele_model *update(const thiele_model *model, const thiele_table *table, int64_t batch)
{
    return update_by(model, table, batch, false);
}

enum { TESTS = 7, LATENTS = 3 };

static void latents_of(const thiele_model *model, double *mean, double *variance)
{
    double x[2 * TESTS];
    for (int i = 0; i < 2 * TESTS; i++) {
        x[i] = 2.0 * sin(3.0 * i);
    }
    assert_ok(ctx, thiele_model_predict_rows(model, ctx, TESTS, x, 1, mean, variance));
}

static void assert_same(const thiele_model *a, const thiele_model *b, double tolerance)
{
    double mean[2][LATENTS * TESTS], variance[2][LATENTS * TESTS];
    int64_t count = TESTS * thiele_model_latents(a);
    latents_of(a, mean[0], variance[0]);
    latents_of(b, mean[1], variance[1]);
    assert_all_near(mean[0], mean[1], count, tolerance, tolerance);
    assert_all_near(variance[0], variance[1], count, tolerance, tolerance);
}

/* --- equal ends --------------------------------------------------------------------------------------------------- */

/* The whole at once, by small batches, and by halves with a file in the middle. Takes the model. */
static void check_ends(thiele_model *model, const thiele_table *more, const thiele_table *head,
                       const thiele_table *tail)
{
    thiele_model *half, *loaded = NULL;
    thiele_model *once = update_by(model, more, 0, true), *small = update_by(model, more, 7, true);
    half = update_by(model, head, 64, true);
    assert_ok(ctx, thiele_model_save(half, ctx, in_folder("half.thiele")));
    assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("half.thiele")));
    assert_same(loaded, half, 0.0);
    thiele_model *both = update_by(loaded, tail, 50, true);
    assert_same(small, once, 1e-7);
    /* The natural parameters pass through the frozen factor and back. */
    assert_same(both, once, 1e-6);
    thiele_stream_facts one, two;
    thiele_model_stream(once, &one);
    thiele_model_stream(both, &two);
    assert_int_equal(one.rows, 300);
    assert_int_equal(two.rows, 300);
    assert_int_equal(two.all->rows, 300);
    assert_int_equal(two.recent->rows, 170);
    assert_true(one.all->rmse > 0.05 && one.all->rmse < 0.3 && two.all->rmse < 0.3);
    thiele_model_destroy(model);
    thiele_model_destroy(half);
    thiele_model_destroy(loaded);
    thiele_model_destroy(both);
    thiele_model_destroy(once);
    thiele_model_destroy(small);
}

/* Gaussian noise: with parameters that stay, the cut into batches, tables and files does not matter. */
static void test_same_ends(void **state)
{
    (void)state;
    static const char *const methods[] = {"collapsed", "variational",       "sor", "fitc", "fic",
                                          "pitc",      "0.3 fitc + 0.7 dtc"};
    thiele_table *first = make_table(200, 1, 1.0, "number"), *more = make_table(300, 2, 1.0, "number");
    int64_t order[300];
    for (int64_t i = 0; i < 300; i++) {
        order[i] = i;
    }
    thiele_table *head = NULL, *tail = NULL;
    assert_ok(ctx, thiele_table_select(&head, ctx, more, order, 130));
    assert_ok(ctx, thiele_table_select(&tail, ctx, more, order + 130, 170));
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        check_ends(fit_table(first, methods[i], NULL), more, head, tail);
    }
    for (int form = 0; form < FORMS; form++) {
        check_ends(fit_decoupled(first, form, NULL), more, head, tail);
    }
    thiele_table_destroy(head);
    thiele_table_destroy(tail);
    thiele_table_destroy(first);
    thiele_table_destroy(more);
}

/* Blocks that are not cut meanwhile: the same; rows that are kept are never forgotten. */
static void test_blocks(void **state)
{
    (void)state;
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_update_options forgetful = THIELE_UPDATE_OPTIONS_INIT;
    thiele_table *first = make_table(400, 1, 1.0, "number"), *more = make_table(300, 2, 1.0, "number");
    thiele_table *head = NULL, *tail = NULL;
    thiele_model *out = NULL;
    int64_t order[300];
    for (int64_t i = 0; i < 300; i++) {
        order[i] = i;
    }
    options.columns.target = "y";
    options.model.method = "pic";
    options.inducing.inducing = 20;
    options.blocks.blocks = 1; /* of up to 800 rows */
    options.stopping.iterations = 12;
    assert_ok(ctx, thiele_table_select(&head, ctx, more, order, 130));
    assert_ok(ctx, thiele_table_select(&tail, ctx, more, order + 130, 170));
    thiele_model *model = fitted(ctx, first, &options);
    forgetful.forget = 100.0;
    assert_fails(ctx, thiele_model_update(&out, ctx, model, more, &forgetful), THIELE_ERROR_UNSUPPORTED,
                 "cannot forget any");
    check_ends(model, more, head, tail);
    thiele_table_destroy(head);
    thiele_table_destroy(tail);
    thiele_table_destroy(first);
    thiele_table_destroy(more);
}

/* A copy predicts as the original does, to the last bit. */
static void test_copies(void **state)
{
    (void)state;
    thiele_table *table = make_table(200, 1, 1.0, "number");
    for (int form = -2; form < FORMS; form++) {
        const char *method = form == -2 ? "pic" : "fitc";
        thiele_model *model = form < 0 ? fit_table(table, method, NULL) : fit_decoupled(table, form, NULL), *copy;
        assert_ok(ctx, thi_model_copy(&copy, ctx, model));
        assert_same(copy, model, 0.0);
        thiele_model_destroy(model);
        assert_ok(ctx, thiele_model_save(copy, ctx, in_folder("copy.thiele")));
        assert_ok(ctx, thiele_model_load(&model, ctx, in_folder("copy.thiele")));
        assert_same(copy, model, 0.0);
        thiele_model_destroy(model);
        thiele_model_destroy(copy);
    }
    thiele_table_destroy(table);
}

/* A diagonal posterior becomes a full one; the description says what was learned, and a file keeps it. */
static void test_description(void **state)
{
    (void)state;
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_table *first = make_table(200, 1, 1.0, "number"), *more = make_table(100, 2, 1.0, "number");
    thiele_model *loaded = NULL;
    char *text[2] = {NULL, NULL};
    options.columns.target = "y";
    options.model.method = "variational";
    options.inducing.posterior = "diag";
    options.inducing.inducing = 15;
    options.stopping.epochs = 20;
    thiele_model *model = fitted(ctx, first, &options), *updated = update(model, more, 0);
    assert_ok(ctx, thiele_model_save(updated, ctx, in_folder("d.thiele")));
    assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("d.thiele")));
    assert_ok(ctx, thiele_model_describe(updated, ctx, &text[0]));
    assert_ok(ctx, thiele_model_describe(loaded, ctx, &text[1]));
    assert_string_equal(text[0], text[1]);
    json_t *json = json_loads(text[0], 0, NULL), *stream = json_object_get(json, "stream");
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "sparse"), "posterior")), "full");
    assert_int_equal(json_integer_value(json_object_get(stream, "rows")), 100);
    assert_true(json_is_real(json_object_get(json_array_get(json_object_get(stream, "prequential"), 0), "nlpd")));
    json_decref(json);
    thiele_free(text[0]);
    thiele_free(text[1]);
    thiele_model_destroy(model);
    thiele_model_destroy(updated);
    thiele_model_destroy(loaded);
    thiele_table_destroy(first);
    thiele_table_destroy(more);
}

/* The covariance's functions are in the mean's basis, once: the plain form gets them there at the first update. */
static void test_decoupled_description(void **state)
{
    (void)state;
    thiele_table *first = make_table(200, 1, 1.0, "number"), *more = make_table(100, 2, 1.0, "number");
    for (int form = 0; form < FORMS; form++) {
        thiele_model *model = fit_decoupled(first, form, NULL);
        for (int round = 0; round < 2; round++) {
            thiele_model *next = update(model, more, 0);
            char *text = NULL;
            thiele_model_destroy(model);
            model = next;
            assert_ok(ctx, thiele_model_describe(model, ctx, &text));
            json_t *json = json_loads(text, 0, NULL), *sparse = json_object_get(json, "sparse");
            assert_string_equal(json_string_value(json_object_get(sparse, "posterior")), "decoupled");
            assert_int_equal(json_integer_value(json_object_get(sparse, "mean_inducing")), 30 + 12);
            json_decref(json);
            thiele_free(text);
        }
        thiele_model_destroy(model);
    }
    thiele_table_destroy(first);
    thiele_table_destroy(more);
}

/* --- other likelihoods -------------------------------------------------------------------------------------------- */

/* Rows that are new make predictions better, whatever the likelihood; several latent functions too. */
static void test_likelihoods(void **state)
{
    (void)state;
    static const struct {
        const char *likelihood, *method, *kind;
    } cases[] = {
        {"poisson", "variational", "count"},
        {"bernoulli", "augmented", "label"},
        {"bernoulli", "variational", "label"},
        {"student-t", "augmented", "number"},
        {"heteroscedastic", "variational", "number"},
        {"softmax", "variational", "three"},
        {NULL, "pic", "number"},
        {"poisson", "pic", "count"},
        {"heteroscedastic", "pic", "number"},
        {"softmax", "pic", "three"},
        {"poisson", "decoupled", "count"},
        {"bernoulli", "decoupled", "label"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_table *first = make_table(60, 1, 1.0, cases[i].kind), *more = make_table(800, 2, 1.0, cases[i].kind);
        thiele_table *test = make_table(400, 3, 1.0, cases[i].kind);
        bool decoupled = strcmp(cases[i].method, "decoupled") == 0;
        thiele_model *model = decoupled ? fit_decoupled(first, 0, cases[i].likelihood)
                                        : fit_table(first, cases[i].method, cases[i].likelihood);
        thiele_model *new = update(model, more, 200);
        thiele_scores before, after;
        thiele_stream_facts facts;
        assert_ok(ctx, thiele_model_score(model, ctx, test, NULL, &before));
        assert_ok(ctx, thiele_model_score(new, ctx, test, NULL, &after));
        thiele_model_stream(new, &facts);
        bool labels = !isnan(after.nlp);
        double old_loss = labels ? before.nlp : before.nlpd, loss = labels ? after.nlp : after.nlpd;
        double seen = labels ? facts.all->nlp : facts.all->nlpd;
        if (!(loss < old_loss)) {
            fail_msg("%s: %g before, %g after", cases[i].likelihood, old_loss, loss);
        }
        /* Prequential: of models between the two. */
        assert_true(seen > loss - 0.1 && seen < old_loss + 0.1);
        thiele_model_destroy(model);
        thiele_model_destroy(new);
        thiele_table_destroy(first);
        thiele_table_destroy(more);
        thiele_table_destroy(test);
    }
}

/* --- what cannot be updated --------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *method, *likelihood, *kind, *part;
    } cases[] = {
        {"exact", NULL, "number", "`inducing` M instead"},
        {"dense", "poisson", "count", "`inducing` M instead"},
        {"ess", "poisson", "count", "set of draws"},
    };
    thiele_table *more = make_table(30, 2, 1.0, "count");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
        thiele_table *table = make_table(60, 1, 1.0, cases[i].kind);
        options.columns.target = "y";
        options.model.method = cases[i].method;
        options.model.likelihood = cases[i].likelihood;
        options.stopping.iterations = 3;
        options.sampling.draws = strcmp(cases[i].method, "ess") == 0 ? 10 : 0;
        thiele_model *model = fitted(ctx, table, &options), *out = NULL;
        assert_fails(ctx, thiele_model_update(&out, ctx, model, more, NULL), THIELE_ERROR_UNSUPPORTED, cases[i].part);
        assert_null(out);
        thiele_model_destroy(model);
        thiele_table_destroy(table);
    }
    thiele_table_destroy(more);
}

static void test_options(void **state)
{
    (void)state;
    thiele_table *table = make_table(60, 1, 1.0, "number");
    thiele_model *model = fit_table(table, "collapsed", NULL);
    thiele_learner *learner = NULL;
    static const thiele_update_options good = THIELE_UPDATE_OPTIONS_INIT;
    thiele_update_options bad = good;
    bad.size = 3;
    assert_fails(ctx, thiele_learner_open(&learner, ctx, model, &bad), THIELE_ERROR_ARGUMENT, "UPDATE_OPTIONS_INIT");
    bad = good;
    bad.forget = 0.5;
    assert_fails(ctx, thiele_learner_open(&learner, ctx, model, &bad), THIELE_ERROR_ARGUMENT, "forget");
    bad = good;
    bad.batch = -1;
    assert_fails(ctx, thiele_learner_open(&learner, ctx, model, &bad), THIELE_ERROR_ARGUMENT, "batch");
    thiele_table *other = demo(ctx, 10, 1);
    assert_ok(ctx, thiele_learner_open(&learner, ctx, model, NULL));
    assert_fails(ctx, thiele_learner_add(learner, ctx, other), THIELE_ERROR_COLUMN, "'y' (the target)");
    thiele_learner_close(learner);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_table_destroy(other);
}

/* --- bad rows ----------------------------------------------------------------------------------------------------- */

/* The rows before a bad one are learned; with skip_bad those behind it too. */
static void test_bad_rows(void **state)
{
    (void)state;
    thiele_table *table = make_table(60, 1, 1.0, "number"), *more = NULL;
    thiele_model *model = fit_table(table, "collapsed", NULL);
    thiele_stream_facts facts;
    double values[3 * 12];
    static const char *const names[] = {"x1", "x2", "y"};
    for (int i = 0; i < 36; i++) {
        values[i] = sin(i);
    }
    values[3 * 5 + 1] = INFINITY;
    values[3 * 8 + 2] = NAN;
    assert_ok(ctx, thiele_table_from_rows(&more, ctx, 12, 3, values, names));
    static const struct {
        int skip_bad, drop_missing;
        int64_t rows, skipped;
        const char *part;
    } cases[] = {{0, 0, 5, 0, "column 'x2', row 6: the value is infinite"},
                 {1, 0, 10, 2, NULL},
                 {1, 1, 10, 1, NULL},
                 {0, 1, 5, 0, "row 6"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
        thiele_learner *learner = NULL;
        options.skip_bad = cases[i].skip_bad;
        options.drop_missing = cases[i].drop_missing;
        assert_ok(ctx, thiele_learner_open(&learner, ctx, model, &options));
        if (cases[i].part != NULL) {
            assert_fails(ctx, thiele_learner_add(learner, ctx, more), THIELE_ERROR_DATA, cases[i].part);
        } else {
            assert_ok(ctx, thiele_learner_add(learner, ctx, more));
        }
        thiele_learner_facts(learner, &facts);
        assert_int_equal(facts.rows, cases[i].rows);
        assert_int_equal(facts.skipped, cases[i].skipped);
        thiele_learner_close(learner);
    }
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_table_destroy(more);
}

/* --- drift -------------------------------------------------------------------------------------------------------- */

/* The recent error after 4,000 rows of one function and 4,000 of another, and what it was before. */
static void drift(const thiele_model *model, double forget, double *before, double *after)
{
    thiele_table *old = make_table(4000, 5, 1.0, "number"), *new = make_table(4000, 6, -1.0, "number");
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    thiele_learner *learner = NULL;
    thiele_stream_facts facts;
    options.forget = forget;
    options.window = 1000;
    options.batch = 100;
    assert_ok(ctx, thiele_learner_open(&learner, ctx, model, &options));
    assert_ok(ctx, thiele_learner_add(learner, ctx, old));
    thiele_learner_facts(learner, &facts);
    *before = facts.recent->rmse;
    assert_ok(ctx, thiele_learner_add(learner, ctx, new));
    thiele_learner_facts(learner, &facts);
    *after = facts.recent->rmse;
    assert_int_equal(facts.recent->rows, 1000);
    thiele_learner_close(learner);
    thiele_table_destroy(old);
    thiele_table_destroy(new);
}

static void test_drift(void **state)
{
    (void)state;
    thiele_table *table = make_table(300, 1, 1.0, "number");
    thiele_model *model = fit_table(table, "collapsed", NULL);
    double before, after;
    drift(model, 400.0, &before, &after);
    assert_true(after < 1.1 * before);
    drift(model, 0.0, &before, &after);
    assert_true(after > 3.0 * before);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
}

/* --- stops and snapshots ------------------------------------------------------------------------------------------ */

static int stop_at(const thiele_progress *progress, void *user)
{
    return progress->done >= *(int64_t *)user;
}

static void test_stops(void **state)
{
    (void)state;
    thiele_table *table = make_table(60, 1, 1.0, "number"), *more = make_table(3000, 2, 1.0, "number");
    thiele_model *model = fit_table(table, "collapsed", NULL), *out = NULL, *loaded = NULL;
    thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
    thiele_stream_facts facts;
    int64_t most = 500;
    options.batch = 100;
    options.snapshot_file = in_folder("s.thiele");
    options.snapshot = 1e-6;
    ctx->progress = stop_at;
    ctx->progress_user = &most;
    assert_ok(ctx, thiele_model_update(&out, ctx, model, more, &options));
    ctx->progress = NULL;
    thiele_model_stream(out, &facts);
    assert_int_equal(facts.rows, 500);
    assert_int_equal(facts.stop, THIELE_STOP_CANCELLED);
    assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("s.thiele")));
    assert_same(out, loaded, 0.0);
    thiele_model_destroy(out);
    options.snapshot_file = NULL;
    options.deadline = 1e-6;
    assert_ok(ctx, thiele_model_update(&out, ctx, model, more, &options));
    thiele_model_stream(out, &facts);
    assert_int_equal(facts.rows, 100);
    assert_int_equal(facts.stop, THIELE_STOP_DEADLINE);
    thiele_model_destroy(out);
    thiele_model_destroy(loaded);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_table_destroy(more);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    static const char *const likelihoods[] = {NULL, "poisson", NULL, NULL, NULL, "poisson"};
    for (int k = 0; k < 6; k++) {
        const char *kind = likelihoods[k] == NULL ? "number" : "count";
        thiele_table *table = make_table(60, 1, 1.0, kind), *more = make_table(50, 2, 1.0, kind);
        thiele_model *model = k < 2   ? fit_table(table, "variational", likelihoods[k])
                              : k < 4 ? fit_decoupled(table, k - 1, NULL)
                                      : fit_table(table, "pic", likelihoods[k]);
        thiele_model *out = NULL;
        thiele_update_options options = THIELE_UPDATE_OPTIONS_INIT;
        options.batch = 20;
        options.skip_bad = 1;
        size_t held = thi_memory_held(ctx);
        int64_t before = thi_allocations(ctx);
        assert_ok(ctx, thiele_model_update(&out, ctx, model, more, &options));
        int64_t count = thi_allocations(ctx) - before;
        thiele_model_destroy(out);
        for (int64_t nth = 1; nth <= count; nth += 1 + nth / 60) {
            thi_fail_allocation(ctx, nth, nth % 2 == 0);
            thiele_status status = thiele_model_update(&out, ctx, model, more, &options);
            thi_fail_allocation(ctx, 0, false);
            assert_int_equal(status, THIELE_ERROR_MEMORY);
            assert_null(out);
            assert_int_equal(thi_memory_held(ctx), held);
        }
        thiele_model_destroy(model);
        thiele_table_destroy(table);
        thiele_table_destroy(more);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_ends),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_decoupled_description),
        cmocka_unit_test(test_likelihoods),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
