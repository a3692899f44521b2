/*
 * Fits by blocks when things go wrong or end early: deadlines, cancelled fits, failing allocations, sources that stream
 * and leave rows out, snapshots that cannot be written; rows that are held out, hard data, any number of threads; and
 * through the model file.
 */
#include "blocks_testing.h"

#include <thiele/thiele.h>

#include "basis/partition.h"
#include "fit/blocks_state.h"
#include "model/model.h"

static const char *const guessed = "lengthscale~1.2, variance~1, noise~0.2";

/* --- threads ---------------------------------------------------------------------------------------------------------
 */

static void test_threads(void **state)
{
    (void)state;
    static const char *const forms[] = {"fitc", "pic"};
    for (int f = 0; f < 2; f++) {
        for (int anytime = 0; anytime < 2; anytime++) {
            answer first = {0};
            double value = 0.0;
            for (int threads = 1; threads <= 5; threads += 1 + 2 * (threads == 2)) {
                thiele_context *c = test_context(threads);
                setting s;
                open_setting(&s, c, "se(ard)", 2200, guessed);
                double got = fit(&s, forms[f], (thi_variational_settings){.inducing = 30},
                                 (thi_blocks_settings){.blocks = 9, .anytime = anytime != 0});
                answer a = ask(&s);
                if (threads == 1) {
                    first = a;
                    value = got;
                }
                assert_memory_equal(&a, &first, sizeof a);
                assert_true(got == value);
                close_setting(&s);
                assert_int_equal(thi_memory_held(c), 0);
                thiele_context_destroy(c);
            }
        }
    }
}

/* --- held-out rows ---------------------------------------------------------------------------------------------------
 */

enum { MANY = 2500, BLOCKS = 8 };

/* Their targets change nothing but the error that they show. */
static void test_held_out(void **state)
{
    (void)state;
    setting s;
    thi_partition blocks;
    thi_variational_settings given = {.inducing = 30, .condition = true};
    thi_blocks_settings how = {.blocks = BLOCKS, .anytime = true};
    open_setting(&s, ctx, "se", MANY, fixed);
    double value = fit(&s, "fitc", given, how), error = s.result.held_error;
    answer before = ask(&s);
    assert_near(error, 0.3, 0.2, 0.0); /* the noise */
    assert_ok(ctx, thi_partition_random(&blocks, ctx, MANY, BLOCKS));
    int held = 0;
    for (int64_t b = 0; b < THI_HELD_BLOCKS; b++) {
        for (int64_t i = blocks.start[b] + THI_HELD_EVERY - 1; i < blocks.start[b + 1]; i += THI_HELD_EVERY) {
            s.rows.y[blocks.order[i]] = 1e6;
            held++;
        }
    }
    assert_near(s.result.rows, MANY - held, 0.0, 0.0);
    double again = fit(&s, "fitc", given, how);
    answer after = ask(&s);
    assert_true(again == value && s.result.held_error > 9e5);
    assert_memory_equal(&before, &after, sizeof before);
    thi_partition_clear(&blocks);
    close_setting(&s);
}

/* PIC's predictions do not see them either; an exact fit, or one of few rows, holds none out. */
static void test_held_out_local(void **state)
{
    (void)state;
    setting s;
    thi_variational_settings given = {.inducing = 30, .condition = true};
    open_setting(&s, ctx, "se", MANY, fixed);
    fit(&s, "pic", given, (thi_blocks_settings){.blocks = BLOCKS, .anytime = true});
    assert_true(s.latent.local->partition.n < MANY && s.latent.local->partition.n > MANY - 300);
    assert_near(s.result.held_error, 0.3, 0.2, 0.0);
    fit(&s, "pic", given, (thi_blocks_settings){.blocks = BLOCKS});
    assert_int_equal(s.latent.local->partition.n, MANY);
    assert_true(isnan(s.result.held_error));
    close_setting(&s);
    open_setting(&s, ctx, "se", 200, fixed);
    fit(&s, "pic", given, (thi_blocks_settings){.blocks = BLOCKS, .anytime = true});
    assert_int_equal(s.latent.local->partition.n, 200);
    assert_true(isnan(s.result.held_error));
    close_setting(&s);
}

/* Predictions jump where blocks meet, unless the basis says all; one block has no borders, and other models no local
 * part. Looks at them leave the predictor as it was, and the same fit says the same. */
static void test_borders(void **state)
{
    (void)state;
    setting s;
    thi_variational_settings few = {.inducing = 4, .iterations = 5}, many = {.inducing = 100, .iterations = 5};
    thi_blocks_settings how = {.blocks = BLOCKS};
    open_setting(&s, ctx, "se", 400, NULL);
    fit(&s, "pic", few, how);
    thi_blocks_result seen = s.result;
    assert_true(seen.borders > 0 && seen.jump_median > 0.0 && seen.jump_largest >= seen.jump_median);
    assert_true(seen.jump_largest > 0.02 && thi_local_cache_held(s.latent.local->cache) == 0.0);
    close_setting(&s);
    open_setting(&s, ctx, "se", 400, NULL);
    fit(&s, "pic", few, how);
    assert_true(s.result.borders == seen.borders && s.result.jump_median == seen.jump_median);
    fit(&s, "pic", many, how);
    assert_true(s.result.borders > 0 && s.result.jump_largest < 0.01);
    fit(&s, "pic", few, (thi_blocks_settings){.blocks = 1});
    assert_int_equal(s.result.borders, 0);
    fit(&s, "pitc", few, how);
    assert_int_equal(s.result.borders, 0);
    close_setting(&s);
}

/* --- early ends ------------------------------------------------------------------------------------------------------
 */

static void test_deadline(void **state)
{
    (void)state;
    static const double deadlines[] = {1e-3, 0.2};
    for (int f = 1; f < FORMS; f += 2) {
        for (int i = 0; i < 4; i++) {
            setting s;
            open_setting(&s, ctx, "se", 30000, "");
            double began = thi_seconds();
            assert_ok(ctx, try_fit(&s, every_form[f], (thi_variational_settings){.inducing = 100},
                                   (thi_blocks_settings){.anytime = i < 2}, deadlines[i % 2]));
            /* Far less than it takes without; a busy machine needs room. */
            assert_true(thi_seconds() - began < 5.0);
            /* A fast machine is done with all blocks in the longer time. */
            assert_true(s.result.fit.stop == THIELE_STOP_DEADLINE || (i % 2 == 1 && s.result.passes == 1.0));
            ask(&s);
            close_setting(&s);
        }
    }
}

static int stop_after(const thiele_progress *progress, void *user)
{
    int *left = user;
    assert_non_null(progress->phase);
    return --*left <= 0;
}

/* Whenever it is told to stop, there is a model; once steps were taken, one that has learned something. */
static void test_cancelled(void **state)
{
    (void)state;
    static const int calls[] = {1, 3, 12, 30, 50};
    for (int f = 2; f < FORMS; f += 3) {
        for (int i = 0; i < 5; i++) {
            int left = calls[i];
            thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
            options.threads = 1;
            options.progress = stop_after;
            options.progress_user = &left;
            thiele_context *c = NULL;
            assert_int_equal(thiele_context_create(&c, &options), THIELE_OK);
            setting s;
            open_setting(&s, c, "se", 2500, guessed);
            fit(&s, every_form[f], (thi_variational_settings){.inducing = 20},
                (thi_blocks_settings){.blocks = 50, .anytime = true, .step_blocks = 1});
            assert_int_equal(s.result.fit.stop, THIELE_STOP_CANCELLED);
            answer a = ask(&s);
            double sum = 0.0, none = 0.0;
            for (int t = 0; t < TESTS; t++) {
                double truth = wave(s.Xtest + t * D);
                sum += (a.mean[t] - truth) * (a.mean[t] - truth);
                none += truth * truth;
            }
            assert_true(i < 2 || sum < 0.5 * none);
            close_setting(&s);
            assert_int_equal(thi_memory_held(c), 0);
            thiele_context_destroy(c);
        }
    }
}

/* --- failures --------------------------------------------------------------------------------------------------------
 */

static thiele_status take_nothing(void *arg, thi_fitted *fitted)
{
    int *taken = arg;
    assert_true(fitted->latent->n > 0 && isfinite(fitted->value));
    ++*taken;
    return THIELE_OK;
}

/* Some allocations in turn fail: an error, and nothing is left behind. */
static void test_allocations(void **state)
{
    (void)state;
    static const char *const forms[] = {"fitc", "pic"};
    for (int w = 0; w < 4; w++) {
        thiele_context *c = test_context(1);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status != THIELE_OK; nth += 1 + nth / 30) {
            setting s;
            int taken = 0;
            thi_blocks_settings how = {
                .blocks = 4, .anytime = w >= 2, .gradient = w == 2, .snapshot = {take_nothing, &taken, 0.0}};
            open_setting(&s, c, "se", 24, guessed);
            thi_fail_allocation(c, nth, nth % 2 == 0);
            status = try_fit(&s, forms[w % 2], (thi_variational_settings){.inducing = 5, .iterations = 2}, how, 0.0);
            thi_fail_allocation(c, 0, false);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
            close_setting(&s);
            assert_int_equal(thi_memory_held(c), 0);
        }
        thiele_context_destroy(c);
    }
}

/* --- streams ---------------------------------------------------------------------------------------------------------
 */

typedef struct stream {
    const thi_rows *rows;
    int64_t missing; /* every so many rows is left out; 0: none */
} stream;

static thiele_status fetch_stream(void *arg, thiele_context *c, int64_t count, const int64_t *row, thi_rows *out)
{
    (void)c;
    const stream *from = arg;
    out->n = 0;
    for (int64_t i = 0; i < count; i++) {
        if (from->missing == 0 || row[i] % from->missing != 0) {
            memcpy(out->X + out->n * D, from->rows->X + row[i] * D, D * sizeof(double));
            out->y[out->n++] = from->rows->y[row[i]];
        }
    }
    return THIELE_OK;
}

static void test_streamed(void **state)
{
    (void)state;
    thi_variational_settings learn = {.inducing = 20};
    for (int f = 0; f < FORMS; f++) {
        for (int anytime = 0; anytime < 2; anytime++) {
            setting s;
            thi_blocks_settings how = {.blocks = 6, .anytime = anytime != 0};
            open_setting(&s, ctx, "se", 400, guessed);
            double value = fit(&s, every_form[f], learn, how);
            answer memory = ask(&s);
            close_setting(&s);
            open_setting(&s, ctx, "se", 400, guessed);
            stream from = {&s.rows, 0};
            s.source.arg = &from;
            s.source.fetch = fetch_stream;
            s.source.run = 16;
            assert_true(fit(&s, every_form[f], learn, how) == value);
            answer streamed = ask(&s);
            assert_memory_equal(&memory, &streamed, sizeof memory);
            close_setting(&s);
        }
    }
}

/* Rows with missing values are left out where blocks are portions of work, and refused where they are places. */
static void test_missing(void **state)
{
    (void)state;
    setting s;
    open_setting(&s, ctx, "se", 400, guessed);
    stream from = {&s.rows, 7};
    s.source.arg = &from;
    s.source.fetch = fetch_stream;
    fit(&s, "fitc", (thi_variational_settings){.inducing = 20}, (thi_blocks_settings){.blocks = 6});
    ask(&s);
    assert_fails(
        ctx, try_fit(&s, "pic", (thi_variational_settings){.inducing = 20}, (thi_blocks_settings){.blocks = 6}, 0.0),
        THIELE_ERROR_DATA, "missing values");
    close_setting(&s);
}

/* --- hard data -------------------------------------------------------------------------------------------------------
 */

/* One row, two, a few; more blocks and inducing inputs than rows; equal rows; equal targets. */
static void test_hard(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 5, 40, 40};
    for (int f = 0; f < FORMS; f++) {
        for (int i = 0; i < 5; i++) {
            for (int anytime = 0; anytime < 2; anytime++) {
                setting s;
                int64_t n = counts[i];
                open_setting(&s, ctx, "se", n, "");
                for (int64_t r = 0; i == 3 && r < n; r++) {
                    memcpy(s.rows.X + r * D, s.rows.X + r % 3 * D, D * sizeof(double));
                }
                for (int64_t r = 0; i == 4 && r < n; r++) {
                    s.rows.y[r] = 1.0;
                }
                fit(&s, every_form[f], (thi_variational_settings){.inducing = 60},
                    (thi_blocks_settings){.blocks = 50, .anytime = anytime != 0});
                assert_true(s.result.blocks == n && s.result.inducing <= n);
                ask(&s);
                close_setting(&s);
            }
        }
    }
}

/* --- models and their files ------------------------------------------------------------------------------------------
 */

static char folder[] = "/tmp/thiele-test-blocks-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static thiele_fit_options model_options(const char *method)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "strength";
    options.columns.ignore = "row,site";
    options.model.method = method;
    options.inducing.inducing = 20;
    options.blocks.blocks = 5;
    options.stopping.iterations = 3;
    return options;
}

/* A model predicts the same before it is saved and after it is loaded, all of the rows and one by one. */
static void test_round_trip(void **state)
{
    (void)state;
    enum { ROWS = 300, ASKED = 30 };
    thiele_table *table = NULL;
    double x[2 * ASKED], mean[3][ASKED], variance[3][ASKED];
    assert_ok(ctx, thiele_table_generate(&table, ctx, ROWS, 3));
    test_normals(2 * ASKED, 5, x);
    for (int f = 0; f < FORMS; f++) {
        for (int anytime = 0; anytime < 2; anytime++) {
            thiele_fit_options options = model_options(every_form[f]);
            thiele_model *model = NULL, *loaded = NULL;
            options.blocks.anytime = anytime;
            assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
            assert_ok(ctx, thiele_model_save(model, ctx, in_folder("m.thiele")));
            assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("m.thiele")));
            assert_ok(ctx, thiele_model_predict_rows(model, ctx, ASKED, x, 0, mean[0], variance[0]));
            assert_ok(ctx, thiele_model_predict_rows(loaded, ctx, ASKED, x, 0, mean[1], variance[1]));
            for (int i = 0; i < ASKED; i++) {
                assert_ok(ctx, thiele_model_predict_rows(loaded, ctx, 1, x + 2 * i, 0, &mean[2][i], &variance[2][i]));
            }
            assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
            assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
            assert_all_near(mean[2], mean[0], ASKED, 1e-9, 1e-9);
            assert_all_near(variance[2], variance[0], ASKED, 1e-9, 1e-9);
            thiele_model_destroy(model);
            thiele_model_destroy(loaded);
        }
    }
    thiele_table_destroy(table);
}

/* The evidence in the units of the data: what exact regression has, where every row is an inducing input. */
static void test_units(void **state)
{
    (void)state;
    thiele_table *table = NULL;
    thiele_model *exact = NULL, *fitc = NULL;
    assert_ok(ctx, thiele_table_generate(&table, ctx, 60, 3));
    thiele_fit_options options = model_options("fitc");
    options.prior.set = "lengthscale=1, variance=100, noise=4";
    options.inducing.inducing = 60;
    options.prior.kernel = "matern32";
    for (int anytime = 0; anytime < 2; anytime++) {
        options.blocks.anytime = anytime;
        assert_ok(ctx, thiele_model_fit(&fitc, ctx, table, &options));
        thiele_fit_options dense = options;
        dense.model.method = "exact";
        dense.inducing.inducing = dense.blocks.blocks = dense.blocks.anytime = 0;
        assert_ok(ctx, thiele_model_fit(&exact, ctx, table, &dense));
        assert_near(fitc->value, exact->value, 1e-6, 0.0);
        assert_int_equal(fitc->blocks.evidence_rows, 60);
        assert_false(fitc->blocks.estimate);
        thiele_model_destroy(fitc);
        thiele_model_destroy(exact);
    }
    thiele_table_destroy(table);
}

/* Snapshots are models; where they cannot be written the fit says so. */
static void test_snapshots(void **state)
{
    (void)state;
    thiele_table *table = NULL;
    thiele_model *model = NULL, *snapshot = NULL;
    assert_ok(ctx, thiele_table_generate(&table, ctx, 3000, 3));
    size_t before = thi_memory_held(ctx);
    thiele_fit_options options = model_options("pic");
    options.blocks.blocks = 30;
    options.prior.set = "lengthscale=1, variance=100, noise=4"; /* nothing to learn: the steps are few */
    options.blocks.anytime = 1;
    options.result.snapshot_file = in_folder("s.thiele");
    options.result.snapshot = 0.001;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
    assert_ok(ctx, thiele_model_load(&snapshot, ctx, in_folder("s.thiele")));
    assert_true(snapshot->blocks.anytime && snapshot->blocks.blocks == 30);
    assert_string_equal(snapshot->method, "pic");
    thiele_model_destroy(model);
    thiele_model_destroy(snapshot);
    options.result.snapshot_file = "/nonexistent/folder/s.thiele";
    assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_IO, "/nonexistent/folder");
    assert_null(model);
    assert_int_equal(thi_memory_held(ctx), before);
    thiele_table_destroy(table);
}

static int make_all(void **state)
{
    return mkdtemp(folder) != NULL ? set_up(state) : -1;
}

static int remove_all(void **state)
{
    unlink(in_folder("m.thiele"));
    unlink(in_folder("s.thiele"));
    assert_int_equal(rmdir(folder), 0); /* nothing else is left there */
    return tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_held_out),   cmocka_unit_test(test_held_out_local),
        cmocka_unit_test(test_borders),     cmocka_unit_test(test_deadline),   cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_allocations), cmocka_unit_test(test_streamed),   cmocka_unit_test(test_missing),
        cmocka_unit_test(test_hard),        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_units),
        cmocka_unit_test(test_snapshots),
    };
    return cmocka_run_group_tests(tests, make_all, remove_all);
}
