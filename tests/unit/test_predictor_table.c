/*
 * Tables of rows: variances by one triangle against those by two, for every kind of predictor and on both sides of the
 * number of rows that pays; windows and threads, which no bit depends on; bases and posteriors that one triangle is not
 * good for; failing allocations.
 */
#include "points_testing.h"

#include "posterior/triangle.h"

enum { BASIS = 70, FEW = 1300, MANY = 6100 };

typedef struct kind {
    const char *name, *kernel;
    thi_plus plus;
    int64_t rank; /* rows of R */
    int components;
    thi_conditional conditional;
    bool scaled, apart, stretched;
    bool one; /* whether many rows are had by one triangle */
} kind;

static const kind kinds[] = {
    {"exact", KERNEL, THI_PLUS_NONE, 0, 1, THI_CONDITIONAL_FULL, false, false, false, false},
    {"sparse", KERNEL, THI_PLUS_TRIANGLE, BASIS, 1, THI_CONDITIONAL_FULL, false, false, false, true},
    {"sor", KERNEL, THI_PLUS_TRIANGLE, BASIS, 1, THI_CONDITIONAL_NONE, false, false, false, true},
    {"fic", KERNEL, THI_PLUS_TRIANGLE, BASIS, 1, THI_CONDITIONAL_DIAGONAL, false, false, false, true},
    {"precision", KERNEL, THI_PLUS_PRECISION, BASIS, 1, THI_CONDITIONAL_FULL, false, false, false, true},
    {"precision, sor", KERNEL, THI_PLUS_PRECISION, BASIS, 1, THI_CONDITIONAL_NONE, false, false, false, true},
    {"full mixture", KERNEL, THI_PLUS_TRIANGLE, BASIS, 2, THI_CONDITIONAL_FULL, false, false, false, true},
    {"mixture", KERNEL, THI_PLUS_WHITE, BASIS, 3, THI_CONDITIONAL_FULL, false, false, false, true},
    {"low rank", KERNEL, THI_PLUS_WHITE, 40, 1, THI_CONDITIONAL_FULL, false, false, false, true},
    {"lower rank", KERNEL, THI_PLUS_WHITE, 3, 1, THI_CONDITIONAL_FULL, false, false, false, false},
    {"sites", KERNEL, THI_PLUS_NONE, 0, 1, THI_CONDITIONAL_FULL, true, false, false, false},
    {"sites, root on w", KERNEL, THI_PLUS_WHITE, BASIS, 1, THI_CONDITIONAL_FULL, true, false, false, true},
    {"sites of either sign", KERNEL, THI_PLUS_KERNEL, 20, 1, THI_CONDITIONAL_FULL, true, false, false, false},
    {"decoupled", KERNEL, THI_PLUS_TRIANGLE, BASIS, 1, THI_CONDITIONAL_FULL, false, true, false, true},
    {"own scales", "se(ard)", THI_PLUS_TRIANGLE, BASIS, 1, THI_CONDITIONAL_FULL, false, true, true, true},
};

static void fill_root(thi_predictor *p)
{
    for (int k = 0; k < p->components; k++) {
        thi_matrix R = p->R[k];
        test_normals(R.rows * R.cols, 30 + (uint64_t)k, R.data);
        for (int64_t i = 0; i < R.rows * R.cols; i++) {
            R.data[i] *= 0.04; /* singular values up to 0.04 (sqrt(70) + sqrt(70)) < 1 */
        }
    }
}

static void open_kind(const kind *what, world *w, thi_predictor *p)
{
    world_open(w, what->kernel, BASIS);
    predictor_open(w, p, what->components);
    if (what->plus != THI_PLUS_NONE) {
        add_root(p, what->plus, what->rank);
    }
    if (thi_plus_is_triangle(what->plus)) {
        p->plus = THI_PLUS_TRIANGLE;
        fill_triangle(p, 0.9);
    } else if (what->plus != THI_PLUS_NONE) {
        fill_root(p);
    }
    if (what->plus == THI_PLUS_PRECISION) {
        assert_ok(ctx, thi_predictor_to_precision(p, ctx));
    }
    p->conditional = what->conditional;
    if (what->scaled) {
        assert_ok(ctx, thi_alloc(ctx, &p->scale, BASIS, sizeof *p->scale));
        for (int i = 0; i < BASIS; i++) {
            p->scale[i] = 0.012 * i;
        }
    }
    if (what->apart) {
        separate_mean(p, 130, what->stretched);
    }
}

/* Mean and variance of a table, components x n each, and k(x, x). */
typedef struct table {
    int64_t n;
    double *x, *mean, *variance, *unit;
} table;

static table table_open(const thi_predictor *p, int64_t n)
{
    table t = {.n = n};
    thi_inputs rows;
    size_t all = (size_t)n * (size_t)p->components;
    assert_ok(ctx, thi_alloc(ctx, &t.x, (size_t)(D * n), sizeof *t.x));
    assert_ok(ctx, thi_alloc(ctx, &t.mean, all, sizeof *t.mean));
    assert_ok(ctx, thi_alloc(ctx, &t.variance, all, sizeof *t.variance));
    assert_ok(ctx, thi_alloc(ctx, &t.unit, (size_t)n, sizeof *t.unit));
    test_normals(D * n, 50, t.x);
    memcpy(t.x + 600 * D, p->basis, 10 * D * sizeof *t.x); /* some on the basis, one far out */
    t.x[700 * D] = 1e3;
    assert_ok(ctx, thi_inputs_make(&rows, ctx, p->kernel, n, t.x));
    assert_ok(ctx, thi_kernel_fill_diagonal(p->kernel, ctx, &rows, t.unit));
    thi_inputs_clear(&rows);
    return t;
}

static void table_close(table *t)
{
    thi_free(t->x);
    thi_free(t->mean);
    thi_free(t->variance);
    thi_free(t->unit);
}

/* The table in windows of so many rows; with `rows` that of a block, none of them knows of the others. */
static bool predict(const thi_predictor *p, thiele_context *own, int64_t window, int64_t rows, table *t)
{
    thi_batch batch = {.p = p, .rows = rows};
    int64_t clipped = 0;
    double *out;
    int K = p->components;
    assert_ok(own, thi_alloc(own, &out, (size_t)(2 * window * K), sizeof *out));
    for (int64_t first = 0; first < t->n; first += window) {
        int64_t count = t->n - first < window ? t->n - first : window;
        double *variance = out + window * K;
        assert_ok(own, thi_batch_marginals(&batch, own, count, t->x + first * D, out, variance, &clipped));
        for (int k = 0; k < K; k++) {
            memcpy(t->mean + k * t->n + first, out + k * count, (size_t)count * sizeof *out);
            memcpy(t->variance + k * t->n + first, variance + k * count, (size_t)count * sizeof *out);
        }
    }
    bool one = batch.C != NULL;
    thi_batch_clear(&batch);
    thi_free(out);
    return one;
}

static void assert_same(const thi_predictor *p, const table *a, const table *b)
{
    size_t bytes = (size_t)(a->n * p->components) * sizeof *a->mean;
    assert_memory_equal(a->mean, b->mean, bytes);
    assert_memory_equal(a->variance, b->variance, bytes);
}

/* By one triangle the mean has the same bits, and the variance what its test allows and a little more. */
static void assert_agree(const thi_predictor *p, const table *a, const table *b)
{
    assert_memory_equal(a->mean, b->mean, (size_t)(a->n * p->components) * sizeof *a->mean);
    for (int64_t i = 0; i < a->n * p->components; i++) {
        assert_near(a->variance[i], b->variance[i], 0.0, 1e-10 * a->unit[i % a->n]);
    }
}

static void check_kind(const kind *what)
{
    world w;
    thi_predictor p;
    open_kind(what, &w, &p);
    for (int many = 0; many < 2; many++) {
        int64_t n = many ? MANY : FEW;
        table want = table_open(&p, n), whole = table_open(&p, n), got = table_open(&p, n);
        bool one = many && what->one;
        assert_false(predict(&p, ctx, n, THI_PREDICT_BLOCK, &want));
        assert_int_equal(predict(&p, ctx, n, n, &whole), one);
        assert_agree(&p, &whole, &want);
        if (!one) {
            assert_same(&p, &whole, &want);
        }
        assert_int_equal(predict(&p, ctx, 2 * THI_PREDICT_BLOCK, n, &got), one);
        assert_same(&p, &got, &whole);
        table_close(&want);
        table_close(&whole);
        table_close(&got);
    }
    thi_predictor_clear(&p);
    world_close(&w);
}

static void test_kinds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        print_message("%s\n", kinds[i].name);
        check_kind(&kinds[i]);
    }
}

/* On one thread, on several that take turns, or by all together. */
static void test_threads(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 5, 9};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        world w;
        thi_predictor p;
        open_kind(&kinds[i], &w, &p);
        table want = table_open(&p, MANY), got = table_open(&p, MANY);
        for (size_t j = 0; j < sizeof threads / sizeof *threads; j++) {
            thiele_context *own = test_context(threads[j]);
            predict(&p, own, MANY, MANY, j == 0 ? &want : &got);
            assert_same(&p, j == 0 ? &want : &got, &want);
            assert_int_equal(thi_memory_held(own), 0);
            thiele_context_destroy(own);
        }
        table_close(&want);
        table_close(&got);
        thi_predictor_clear(&p);
        world_close(&w);
    }
}

/*
 * most: of S. pivot: factor of the last one of L, below what jitter leaves of it. far: the table begins with rows that
 * tell nothing about the basis, of which k is zero.
 */
static void check_refused(double most, double pivot, bool far)
{
    world w;
    thi_predictor p;
    world_open(&w, "se(lengthscale~10)", 100);
    predictor_open(&w, &p, 1);
    add_root(&p, THI_PLUS_TRIANGLE, p.n);
    fill_triangle(&p, most);
    p.L.data[p.n * p.n - 1] *= pivot;
    table want = table_open(&p, MANY), got = table_open(&p, MANY);
    for (int i = 0; far && i < D * THI_PREDICT_BLOCK; i++) {
        want.x[i] = got.x[i] = 1e6 + i;
    }
    assert_false(predict(&p, ctx, MANY, THI_PREDICT_BLOCK, &want));
    assert_false(predict(&p, ctx, MANY, MANY, &got));
    assert_string_equal(thiele_context_message(ctx), "no error");
    assert_same(&p, &got, &want);
    table_close(&want);
    table_close(&got);
    thi_predictor_clear(&p);
    world_close(&w);
}

/* A posterior that is wider than its prior, and a basis that is nearly singular. */
static void test_refused(void **state)
{
    (void)state;
    check_refused(1.5, 1.0, false);
    check_refused(0.9, 1e-3, false);
    check_refused(0.9, 1e-3, true);
}

/* Bases as singular as jitter lets them be: whichever way it is, the variance keeps its digits. */
static void test_near_singular(void **state)
{
    (void)state;
    static const char *const text[] = {"se(lengthscale~3)", "se(lengthscale~40)", "se(dims=1, lengthscale~1)",
                                       "matern52(dims=1, lengthscale~10)", "linear + se(lengthscale~30)"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        world w;
        thi_predictor p;
        world_open(&w, text[i], 100);
        predictor_open(&w, &p, 1);
        add_root(&p, THI_PLUS_TRIANGLE, p.n);
        fill_triangle(&p, 0.8);
        table want = table_open(&p, MANY), got = table_open(&p, MANY);
        predict(&p, ctx, MANY, THI_PREDICT_BLOCK, &want);
        predict(&p, ctx, MANY, MANY, &got);
        assert_agree(&p, &got, &want);
        table_close(&want);
        table_close(&got);
        thi_predictor_clear(&p);
        world_close(&w);
    }
}

/* Where the memory is short, the triangle is not what takes it. */
static void test_memory(void **state)
{
    (void)state;
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *own;
    world w;
    thi_predictor p;
    options.threads = 1;
    options.memory_limit = 1100000; /* one thread's block fits, three matrices are more than a tenth */
    assert_ok(NULL, thiele_context_create(&own, &options));
    open_kind(&kinds[1], &w, &p);
    table t = table_open(&p, MANY);
    assert_false(predict(&p, own, THI_PREDICT_BLOCK, MANY, &t));
    table_close(&t);
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(own);
}

/* The nth allocation and all after it, or it alone, on threads that take turns. */
static void check_failures(const kind *what, bool sticky)
{
    world w;
    thi_predictor p;
    thiele_context *own = test_context(3);
    thiele_status status = THIELE_ERROR_MEMORY;
    open_kind(what, &w, &p);
    table t = table_open(&p, MANY);
    for (int64_t nth = 1; status != THIELE_OK; nth += nth < 40 ? 1 : 23) {
        int64_t clipped = 0;
        thi_fail_allocation(own, nth, sticky);
        status = thi_predictor_marginals(&p, own, MANY, t.x, t.mean, t.variance, &clipped);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_true(status == THIELE_OK || strstr(thiele_context_message(own), "out of memory") != NULL);
        assert_int_equal(thi_memory_held(own), 0);
        assert_true(status != THIELE_OK || nth > 20);
    }
    thiele_context_destroy(own);
    table_close(&t);
    thi_predictor_clear(&p);
    world_close(&w);
}

static void test_failures(void **state)
{
    (void)state;
    check_failures(&kinds[0], true);
    check_failures(&kinds[4], false);
    check_failures(&kinds[4], true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),         cmocka_unit_test(test_threads), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_near_singular), cmocka_unit_test(test_memory),  cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
