/*
 * What every engine must do, for each row of the list and each variant of its fixture, as far as it has the operations.
 * A toy engine (tests/toy) is on the list by one file and one row, and goes through all of it; it also has expectations
 * inside.
 */
#include "engine_trial.h"
#include "testing_context.h"

#include "fit/pass.h"

enum { LARGE = 40 };

/* Calls check for all rows and variants. */
static void each(void (*check)(int row, int variant))
{
    for (int row = 0; row < ROWS; row++) {
        const thi_engine *engine = rows[row].engine;
        if (engine->ready != NULL && !engine->ready(ctx)) {
            print_message("%s: skipped, as there is no card\n", engine->name);
            continue;
        }
        for (int variant = 0; variant < rows[row].fixture->variants; variant++) {
            print_message("%s %d\n", rows[row].engine->name, variant);
            check(row, variant);
        }
    }
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static void test_list(void **state)
{
    (void)state;
    for (int row = 0; row < ROWS; row++) {
        const thi_engine *e = rows[row].engine;
        assert_ptr_equal(thi_engines[row], e);
        assert_true(e->open != NULL && e->close != NULL && e->begin != NULL && e->end != NULL && e->freeze != NULL);
        assert_true((e->marginals == NULL) == (e->pull == NULL));
        assert_true((e->expects == NULL) == (e->expect == NULL));
        assert_true(e->step == NULL || e->pull != NULL);
        assert_true((e->residual == NULL) == (e->relieve == NULL));
        e->close(NULL);
    }
    assert_null(thi_engines[ROWS]);
}

/* A workspace grows with its problem and holds no more than it says, but for what is the same for any size. */
static void check_bytes(int row, int variant)
{
    const thi_engine *engine = rows[row].engine;
    double small = 0.0;
    for (int size = 1; engine->bytes != NULL && size <= LARGE; size += LARGE - 1) {
        trial t;
        prepare(&t, ctx, row, variant, size);
        size_t before = thi_memory_held(ctx);
        double bytes = engine->bytes(t.p.shape, 2);
        assert_true(bytes > small);
        small = bytes;
        assert_ok(ctx, engine->open(&t.self, ctx, t.p.shape));
        assert_true((double)(thi_memory_held(ctx) - before) <= bytes + 4096.0);
        finish(&t);
    }
}

static void check_begun(int row, int variant)
{
    trial t;
    double sum = 0.0;
    start(&t, ctx, row, variant, 1);
    assert_ok(ctx, t.engine->begin(t.self, ctx, t.p.prior, t.p.q));
    for (int k = 0; k < t.p.components; k++) {
        sum += weight(&t, k);
        assert_true(weight(&t, k) > 0.0);
    }
    assert_near(sum, 1.0, 1e-14, 0.0);
    assert_true(t.engine->jitter == NULL || t.engine->jitter(t.self) >= 0.0);
    finish(&t);
}

/* Adjoints against central differences: truncation is some 1e-9, rounding of F ~ 100 as much. */
static void check_gradient(int row, int variant)
{
    const double move_by = 1e-5;
    trial t;
    start(&t, ctx, row, variant, 1);
    value_of(&t, ctx, 1, t.p.adjoints);
    for (int64_t i = 0; i < t.p.numbers; i++) {
        double at = t.p.x[i], side[2];
        for (int s = 0; s < 2; s++) {
            t.p.x[i] = at + (s == 0 ? move_by : -move_by);
            move(&t);
            side[s] = value_of(&t, ctx, 1, NULL);
        }
        t.p.x[i] = at;
        assert_near(t.p.bar[i], (side[0] - side[1]) / (2.0 * move_by), 1e-6, 1e-6);
    }
    finish(&t);
}

/* Rows in two pulls give what they give in one. */
static void check_parts(int row, int variant)
{
    trial t;
    start(&t, ctx, row, variant, 1);
    if (t.p.any_rows) {
        double *bar = fixture_numbers(t.p.numbers);
        double whole = value_of(&t, ctx, 1, t.p.adjoints);
        memcpy(bar, t.p.bar, (size_t)t.p.numbers * sizeof *bar);
        memset(t.p.bar, 0, (size_t)t.p.numbers * sizeof *bar);
        assert_near(value_of(&t, ctx, 2, t.p.adjoints), whole, 1e-10, 1e-10);
        assert_all_near(t.p.bar, bar, t.p.numbers, 1e-10, 1e-10);
        free(bar);
    }
    finish(&t);
}

/* Marginals by the predictor of each latent, Q x n x K as the engine has them. */
static thiele_status predict(trial *t, thiele_context *c, double *mu, double *v)
{
    int64_t n = t->p.n, K = t->p.components, clipped = 0;
    double *mean = fixture_numbers(n * K), *variance = fixture_numbers(n * K);
    thi_predictor predictor = {0};
    thiele_status status = THIELE_OK;
    for (int q = 0; q < t->p.latents; q++) {
        THI_TRY(t->engine->freeze(t->self, c, q, &predictor));
        THI_TRY(thi_predictor_marginals(&predictor, c, n, t->p.X, mean, variance, &clipped));
        thi_predictor_clear(&predictor);
        for (int64_t i = 0; i < n * K; i++) {
            mu[q + i * t->p.latents] = mean[i];
            v[q + i * t->p.latents] = variance[i];
        }
    }
out:
    thi_predictor_clear(&predictor);
    free(mean);
    free(variance);
    return status;
}

/* A predictor is the same after begin and after a gradient, and says what the engine says. */
static void check_freeze(int row, int variant)
{
    trial t;
    start(&t, ctx, row, variant, 1);
    double *mu = fixture_numbers(2 * t.members), *v = fixture_numbers(2 * t.members);
    assert_ok(ctx, t.engine->begin(t.self, ctx, t.p.prior, t.p.q));
    assert_ok(ctx, predict(&t, ctx, mu, v));
    value_of(&t, ctx, 1, t.p.adjoints);
    assert_ok(ctx, predict(&t, ctx, mu + t.members, v + t.members));
    assert_all_near(mu + t.members, mu, t.members, 1e-8, 1e-8);
    assert_all_near(v + t.members, v, t.members, 1e-8, 1e-8);
    if (t.engine->marginals != NULL) {
        assert_all_near(mu, t.mu, t.members, 1e-8, 1e-8);
        assert_all_near(v, t.v, t.members, 1e-8, 1e-8);
    }
    free(mu);
    free(v);
    finish(&t);
}

/* One natural step of size 1 ends at the optimum when the noise is Gaussian, and one of size 0 stays. */
static void check_steps(int row, int variant)
{
    trial t;
    start(&t, ctx, row, variant, 1);
    if (t.p.steps) {
        double *mu = fixture_numbers(t.members), *v = fixture_numbers(t.members);
        size_t bytes = (size_t)t.members * sizeof *mu;
        t.gaussian = true;
        double first = value_of(&t, ctx, 1, NULL);
        memcpy(mu, t.mu, bytes);
        memcpy(v, t.v, bytes);
        t.engine->step(t.self, 0.0, t.p.q);
        assert_near(value_of(&t, ctx, 1, NULL), first, 1e-14, 1e-14);
        assert_all_near(t.mu, mu, t.members, 1e-14, 1e-14);
        assert_all_near(t.v, v, t.members, 1e-14, 1e-14);
        t.engine->step(t.self, 1.0, t.p.q);
        double second = value_of(&t, ctx, 1, NULL);
        memcpy(mu, t.mu, bytes);
        memcpy(v, t.v, bytes);
        assert_true(second >= first);
        t.engine->step(t.self, 1.0, t.p.q);
        assert_near(value_of(&t, ctx, 1, NULL), second, 1e-10, 1e-10);
        assert_all_near(t.mu, mu, t.members, 1e-8, 1e-8);
        assert_all_near(t.v, v, t.members, 1e-8, 1e-8);
        free(mu);
        free(v);
    }
    finish(&t);
}

/* All that an engine says of a large problem: F, adjoints, marginals, those of a predictor, F after a step. */
static double *everything(int row, int variant, int threads, int64_t *count)
{
    thiele_context *own = test_context(threads);
    trial t;
    start(&t, own, row, variant, LARGE);
    double *said = fixture_numbers(2 + t.p.numbers + 4 * t.members), *at = said + 2 + t.p.numbers;
    *count = 2 + t.p.numbers + 4 * t.members;
    said[0] = value_of(&t, own, 1, t.p.adjoints);
    memcpy(said + 2, t.p.bar, (size_t)t.p.numbers * sizeof *said);
    memcpy(at, t.mu, (size_t)t.members * sizeof *said);
    memcpy(at + t.members, t.v, (size_t)t.members * sizeof *said);
    assert_ok(own, predict(&t, own, at + 2 * t.members, at + 3 * t.members));
    if (t.p.steps) {
        t.gaussian = true;
        value_of(&t, own, 1, NULL);
        t.engine->step(t.self, 0.5, t.p.q);
        said[1] = value_of(&t, own, 1, NULL);
    }
    finish(&t);
    assert_int_equal(thi_memory_held(own), 0);
    thiele_context_destroy(own);
    return said;
}

static void check_threads(int row, int variant)
{
    int64_t count;
    double *one = everything(row, variant, 1, &count);
    for (int threads = 2; threads <= 5; threads += 3) {
        double *many = everything(row, variant, threads, &count);
        assert_memory_equal(many, one, (size_t)count * sizeof *one);
        free(many);
    }
    free(one);
}

/* A whole life of a workspace. */
static thiele_status live(trial *t, thiele_context *c)
{
    double value;
    thiele_status status;
    THI_TRY(t->engine->open(&t->self, c, t->p.shape));
    THI_TRY(evaluate(t, c, 1, t->p.adjoints, &value));
    THI_TRY(predict(t, c, t->mu, t->v));
    THI_TRY(t->engine->begin(t->self, c, t->p.prior, t->p.q));
out:
    t->engine->close(t->self);
    t->self = NULL;
    return status;
}

/* Each allocation in turn fails: that is an error, and nothing is lost. */
static void check_allocations(int row, int variant)
{
    thiele_context *own = test_context(1);
    trial t;
    prepare(&t, own, row, variant, 1);
    size_t held = thi_memory_held(own);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status != THIELE_OK; nth++) {
        int64_t asked = thi_allocations(own);
        move(&t);
        thi_fail_allocation(own, nth, nth % 2 == 0);
        status = live(&t, own);
        thi_fail_allocation(own, 0, false);
        assert_int_equal(thi_memory_held(own), held);
        assert_int_equal(status, thi_allocations(own) - asked < nth ? THIELE_OK : THIELE_ERROR_MEMORY);
    }
    finish(&t);
    thiele_context_destroy(own);
}

/* --- expectations inside an engine -------------------------------------------------------------------------------- */

static bool expects_nothing(const void *self, const thiele_likelihood *lik, const char *method)
{
    (void)self;
    (void)lik;
    (void)method;
    return false;
}

/* What a pass over Gaussian noise says, in two blocks of rows: bound, slope in the noise, those of thi_pass_again. */
static void run_pass(trial *t, const thi_engine *engine, double *offset, bool inside, double *said)
{
    thiele_likelihood *lik = NULL;
    thi_hyper noise = {.name = "noise", .log = true};
    thi_hypers hypers = {.count = 1, .hyper = &noise, .groups = 1, .first = (int[2]){0, 0}, .noise = 0};
    thi_rows data = {t->p.n, FIXTURE_DIMS, 1, t->p.X, t->p.y, offset, NULL};
    thi_spec spec = {.latents = {.prior = t->p.prior}};
    thi_source source;
    thi_problem problem = {.ctx = ctx, .spec = &spec, .source = &source, .hypers = &hypers};
    thi_pass pass = {0};
    thi_wanted all = {true, true, true, true};
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "gaussian", 1, 0));
    lik->value[0] = NOISE;
    spec.lik = lik;
    thi_source_of_rows(&source, &data);
    assert_ok(ctx, thi_pass_open(&pass, &problem, engine, t->p.shape, &(thi_pass_shape){1, 1, t->p.n - 5}));
    assert_int_equal(pass.inside, inside);
    assert_ok(ctx, thi_pass_begin(&pass, t->p.q, t->p.adjoints));
    assert_ok(ctx, thi_pass_over(&pass, &thi_all_rows, all));
    assert_ok(ctx, thi_pass_end(&pass, &said[1]));
    said[0] = pass.at.bound;
    assert_ok(ctx, thi_pass_again(&pass, &said[3]));
    said[2] = pass.at.expected;
    thi_pass_close(&pass);
    thiele_likelihood_destroy(lik);
}

/* The road inside the engine and that over the host; rows with an offset take the latter whatever the engine can. */
static void check_inside(int row, int variant)
{
    trial t;
    prepare(&t, ctx, row, variant, 1);
    thi_engine outside = *t.engine;
    outside.expects = expects_nothing;
    double *offset = fixture_numbers(t.p.n), *bar = fixture_numbers(t.p.numbers);
    test_normals(t.p.n, 7, offset);
    for (int with = 0; with < 2 && t.engine->expects != NULL; with++) {
        double here[4], there[4];
        memset(t.p.bar, 0, (size_t)t.p.numbers * sizeof *bar);
        run_pass(&t, t.engine, with == 1 ? offset : NULL, true, there);
        memcpy(bar, t.p.bar, (size_t)t.p.numbers * sizeof *bar);
        memset(t.p.bar, 0, (size_t)t.p.numbers * sizeof *bar);
        run_pass(&t, &outside, with == 1 ? offset : NULL, false, here);
        assert_all_near(there, here, 4, 1e-12, 1e-12);
        assert_all_near(bar, t.p.bar, t.p.numbers, 1e-12, 1e-12);
    }
    free(offset);
    free(bar);
    finish(&t);
}

/* --- docs/methods.md has the table that the rows make, but for the toy -------------------------------------------- */

static void test_docs(void **state)
{
    (void)state;
    char *table = NULL, page[20000];
    FILE *file = fopen(TESTS_FOLDER "/../docs/methods.md", "r");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "| engine | what it is | bytes | marginals | expect | step | weights | jitter |\n"
                        "|---|---|:-:|:-:|:-:|:-:|:-:|:-:|\n");
    for (int row = 0; row < ROWS; row++) {
        const thi_engine *e = rows[row].engine;
        const bool has[] = {e->bytes != NULL, e->marginals != NULL, e->expect != NULL,
                            e->step != NULL,  e->weights != NULL,   e->jitter != NULL};
        for (size_t i = 0; rows[row].fixture != &fixture_toy && i < sizeof has / sizeof *has; i++) {
            if (i == 0) {
                thi_text_add(&text, "| `%s` | %s |", e->name, e->words);
            }
            thi_text_add(&text, " %s |%s", has[i] ? "yes" : "", i + 1 == sizeof has / sizeof *has ? "\n" : "");
        }
    }
    assert_ok(ctx, thi_text_take(&text, &table));
    if (strstr(page, table) == NULL) {
        fputs(table, stderr);
        fail_msg("docs/methods.md should have the table above");
    }
    thi_free(table);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

#define EACH(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        each(check_##name);                                                                                            \
    }
EACH(bytes)
EACH(begun)
EACH(gradient)
EACH(parts)
EACH(freeze)
EACH(steps)
EACH(threads)
EACH(allocations)
EACH(inside)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),     cmocka_unit_test(test_bytes),       cmocka_unit_test(test_begun),
        cmocka_unit_test(test_gradient), cmocka_unit_test(test_parts),       cmocka_unit_test(test_freeze),
        cmocka_unit_test(test_steps),    cmocka_unit_test(test_allocations), cmocka_unit_test(test_inside),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_docs),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
