/*
 * Predictors of single rows against those of blocks: every kind of predictor, bases that are nearly singular, q near
 * the prior and beyond it; no allocation in a call; failing allocations. And what they stand on: kernels of one point,
 * products with matrices in panels.
 */
#include "points_testing.h"

#include "kernel/anchors.h"
#include "linalg/panels.h"
#include "posterior/single.h"

enum { ROWS = 40 };

/* --- panels ----------------------------------------------------------------------------------------------------------
 */

static void check_panels(thi_panel_shape shape, thi_trans ta, int64_t rows, int64_t cols)
{
    double data[30 * 30], x[32] = {0.0}, y[32], want[32];
    thi_matrix A = thi_matrix_view(data, ta == THI_N ? rows : cols, ta == THI_N ? cols : rows, 30);
    thi_panels panels;
    test_normals(30 * 30, 1, data);
    test_normals(cols, 2, x);
    assert_ok(ctx, thi_panels_make(&panels, ctx, shape, ta, A));
    thi_panels_multiply(&panels, x, y);
    for (int64_t i = 0; i < rows; i++) {
        want[i] = 0.0;
        for (int64_t j = 0; j < cols; j++) {
            bool inside = shape == THI_PANELS_WHOLE || (shape == THI_PANELS_LOWER ? j <= i : j >= i);
            want[i] += inside ? x[j] * data[ta == THI_N ? i + j * 30 : j + i * 30] : 0.0;
        }
    }
    assert_all_near(y, want, rows, 1e-14, 1e-13);
    for (int64_t i = rows; i < thi_panel_length(rows); i++) {
        assert_true(y[i] == 0.0);
    }
    thi_panels_clear(&panels);
}

static void test_panels(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 30; n++) {
        for (int ta = 0; ta < 2; ta++) {
            check_panels(THI_PANELS_LOWER, (thi_trans)ta, n, n);
            check_panels(THI_PANELS_UPPER, (thi_trans)ta, n, n);
            check_panels(THI_PANELS_WHOLE, (thi_trans)ta, n, 31 - n);
        }
    }
}

/* --- kernels ---------------------------------------------------------------------------------------------------------
 */

static const char *const kernels[] = {
    "se(ard)",
    "matern12(lengthscale~0.7)",
    "matern32(ard)",
    "matern52(dims=[1,3])",
    "rq",
    "periodic",
    "cosine",
    "linear",
    "polynomial(degree=3)",
    "constant",
    "se + white",
    "se(dims=1)*periodic(dims=2) + linear*(matern12 + constant) + white",
};

/* shift: how far from the origin the data are; a GEMM of features would lose the digits that are before it. */
static void check_kernel(const char *text, double shift)
{
    enum { N = 61 };
    double X[D * N], x[D * ROWS], k[64], own[ROWS], want[N * ROWS];
    thiele_kernel *kernel;
    thi_inputs A, B;
    thi_anchors anchors;
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, text, D, NULL));
    test_normals(D * N, 3, X);
    test_normals(D * ROWS, 4, x);
    for (int i = 0; i < D * N; i++) {
        X[i] += shift;
    }
    for (int i = 0; i < D * ROWS; i++) {
        x[i] += shift;
    }
    memcpy(x, X, 2 * D * sizeof *x); /* two rows that are points, and one that is nearly */
    x[2 * D] = X[2 * D] + 1e-9;
    assert_ok(ctx, thi_inputs_make(&A, ctx, kernel, N, X));
    assert_ok(ctx, thi_inputs_make(&B, ctx, kernel, ROWS, x));
    assert_ok(ctx, thi_kernel_fill(kernel, ctx, &A, &B, thi_matrix_view(want, N, ROWS, N), false));
    assert_ok(ctx, thi_kernel_fill_diagonal(kernel, ctx, &B, own));
    assert_ok(ctx, thi_anchors_make(&anchors, ctx, kernel, N, X));
    for (int i = 0; i < ROWS; i++) {
        thi_anchors_fill(&anchors, x + i * D, k);
        /* Tiles have distances to 1e-12 of their size (leaf.c): that is what they may differ by. */
        assert_all_near(k, want + i * N, N, 1e-10, 1e-12);
        assert_true(k[N] == 0.0 && k[63] == 0.0);
        assert_near(thi_anchors_diagonal(&anchors, x + i * D), own[i], 1e-13, 1e-13);
    }
    thi_anchors_clear(&anchors);
    thi_inputs_clear(&A);
    thi_inputs_clear(&B);
    thiele_kernel_destroy(kernel);
}

static void test_kernels(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        check_kernel(kernels[i], 0.0);
    }
    check_kernel("se(ard)", 1e4);
    check_kernel("matern52", 1e4);
    check_kernel("periodic", 10.0);
}

/* --- predictors ------------------------------------------------------------------------------------------------------
 */

/* Rows here and there, on the basis, near it and far out. */
static void take_rows(const thi_predictor *p, double *x)
{
    test_normals(D * ROWS, 8, x);
    for (int i = 0; i < 10 && i < p->n; i++) {
        for (int d = 0; d < D; d++) {
            x[i * D + d] = p->basis[i * D + d] + (i % 2 == 0 ? 0.0 : 1e-4);
        }
    }
    x[D * ROWS - 1] = 50.0;
}

/* Which way it is need not matter. */
#define ANY_WAY THI_SINGLE_MEAN

static void check_single(const thi_predictor *p, thi_single_way way)
{
    enum { MOST = 4 };
    double x[D * ROWS], mean[MOST], variance[MOST], alone[MOST], want[2][MOST * ROWS];
    int64_t clipped = 0;
    thi_single *single;
    thi_inputs rows;
    double prior[ROWS];
    take_rows(p, x);
    assert_ok(ctx, thi_predictor_marginals(p, ctx, ROWS, x, want[0], want[1], &clipped));
    assert_ok(ctx, thi_inputs_make(&rows, ctx, p->kernel, ROWS, x));
    assert_ok(ctx, thi_kernel_fill_diagonal(p->kernel, ctx, &rows, prior));
    thi_inputs_clear(&rows);
    assert_ok(ctx, thi_single_open(&single, ctx, p, true));
    assert_true(way == ANY_WAY || thi_single_way_of(single) == way);
    way = thi_single_way_of(single);
    int64_t before = thi_allocations(ctx);
    for (int i = 0; i < ROWS; i++) {
        assert_ok(ctx, thi_single_marginals(single, ctx, x + i * D, mean, variance));
        assert_ok(ctx, thi_single_marginals(single, ctx, x + i * D, alone, NULL));
        for (int k = 0; k < p->components; k++) {
            assert_near(mean[k], want[0][k * ROWS + i], 1e-9, 1e-9);
            assert_true(alone[k] == mean[k]);
            assert_near(variance[k], want[1][k * ROWS + i], 0.0, 1e-9 * prior[i]);
        }
    }
    if (way != THI_SINGLE_GENERAL) {
        assert_int_equal(thi_allocations(ctx), before);
    }
    thi_single_close(single);
}

/* Exact regression: neither scale nor R. */
static void test_exact(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 65; n += 16) {
        world w;
        thi_predictor p;
        world_open(&w, KERNEL, n);
        predictor_open(&w, &p, 1);
        check_single(&p, THI_SINGLE_ONE);
        thi_predictor_clear(&p);
        world_close(&w);
    }
}

/* The same posterior by what its rows say. */
static void check_precision(thi_predictor *p, thi_single_way way)
{
    double mean[2], want, got;
    int64_t clipped = 0;
    assert_ok(ctx, thi_predictor_marginals(p, ctx, 1, p->basis + 1, mean, &want, &clipped));
    assert_ok(ctx, thi_predictor_to_precision(p, ctx));
    assert_ok(ctx, thi_predictor_marginals(p, ctx, 1, p->basis + 1, mean + 1, &got, &clipped));
    assert_near(mean[1], mean[0], 0.0, 0.0);
    assert_near(got, want, 1e-12, 1e-12);
    check_single(p, way);
}

/* Full q with S below I, up to I but for rounding, and beyond it; of one component and several. */
static void test_triangle(void **state)
{
    (void)state;
    static const struct {
        double most;
        thi_single_way way;
    } cases[] = {{0.01, THI_SINGLE_ONE},         {0.9, THI_SINGLE_ONE},         {1.0 - 1e-14, THI_SINGLE_ONE},
                 {1.0, THI_SINGLE_ONE},          {1.0 + 1e-15, THI_SINGLE_ONE}, {1.0 + 1e-11, THI_SINGLE_ONE},
                 {1.0 + 1e-6, THI_SINGLE_SOLVE}, {1.5, THI_SINGLE_SOLVE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int components = 1; components <= 3; components += 2) {
            world w;
            thi_predictor p;
            world_open(&w, KERNEL, 50);
            predictor_open(&w, &p, components);
            add_root(&p, THI_PLUS_TRIANGLE, p.n);
            fill_triangle(&p, cases[i].most);
            check_single(&p, cases[i].way);
            if (components == 1 && fabs(cases[i].most - 1.0) > 1e-8) {
                check_precision(&p, cases[i].way);
            }
            thi_predictor_clear(&p);
            world_close(&w);
        }
    }
}

/* What the conditional keeps: all, nothing, variances. */
static void test_conditionals(void **state)
{
    (void)state;
    for (int kind = 0; kind < THI_CONDITIONAL_KINDS; kind++) {
        world w;
        thi_predictor p;
        world_open(&w, KERNEL, 50);
        predictor_open(&w, &p, 1);
        add_root(&p, THI_PLUS_TRIANGLE, p.n);
        fill_triangle(&p, 0.7);
        p.conditional = (thi_conditional)kind;
        check_single(&p, THI_SINGLE_ONE);
        assert_ok(ctx, thi_predictor_to_precision(&p, ctx));
        check_single(&p, THI_SINGLE_ONE);
        thi_predictor_clear(&p);
        world_close(&w);
    }
}

/* R of fewer rows than the basis has points, on w and on k; with weights of sites. */
static void test_sites(void **state)
{
    (void)state;
    for (int scaled = 0; scaled < 2; scaled++) {
        for (int plus = THI_PLUS_WHITE; plus <= THI_PLUS_KERNEL; plus++) {
            world w;
            thi_predictor p;
            world_open(&w, KERNEL, 45);
            predictor_open(&w, &p, 2);
            add_root(&p, (thi_plus)plus, 12);
            for (int k = 0; k < 2; k++) {
                test_normals(12 * 45, 30 + (uint64_t)k, p.R[k].data);
                for (int i = 0; i < 12 * 45; i++) {
                    p.R[k].data[i] *= 0.05;
                }
            }
            if (scaled) {
                assert_ok(ctx, thi_alloc(ctx, &p.scale, 45, sizeof *p.scale));
                for (int i = 0; i < 45; i++) {
                    p.scale[i] = 0.02 * i;
                }
            }
            check_single(&p, plus == THI_PLUS_WHITE ? THI_SINGLE_ONE : THI_SINGLE_SOLVE);
            thi_predictor_clear(&p);
            world_close(&w);
        }
    }
}

/* A basis that a smooth kernel can hardly tell apart: whichever way it is, the variance keeps its digits. */
static void test_near_singular(void **state)
{
    (void)state;
    static const char *const text[] = {
        "se(ard, lengthscale~1)",    "se(ard, lengthscale~3)",           "se(ard, lengthscale~10)",
        "se(ard, lengthscale~40)",   "se(dims=1, lengthscale~0.2)",      "se(dims=1, lengthscale~1)",
        "se(dims=1, lengthscale~5)", "matern52(dims=1, lengthscale~10)", "linear + se(lengthscale~30, variance~1000)",
    };
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        for (int full = 0; full < 2; full++) {
            world w;
            thi_predictor p;
            world_open(&w, text[i], 200);
            predictor_open(&w, &p, 1);
            if (full) {
                add_root(&p, THI_PLUS_TRIANGLE, p.n);
                fill_triangle(&p, 0.99);
            }
            check_single(&p, ANY_WAY);
            thi_predictor_clear(&p);
            world_close(&w);
        }
    }
}

/* The mean on a basis of its own; of the covariance's basis there may be nothing. */
static void test_decoupled(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 30; n += 30) {
        for (int stretched = 0; stretched < 2; stretched++) {
            world w;
            thi_predictor p;
            world_open(&w, stretched ? "se(ard)" : KERNEL, n);
            predictor_open(&w, &p, 1);
            if (n > 0) {
                add_root(&p, THI_PLUS_TRIANGLE, p.n);
                fill_triangle(&p, 0.8);
            }
            separate_mean(&p, 77, stretched != 0);
            check_single(&p, stretched ? THI_SINGLE_GENERAL : THI_SINGLE_ONE);
            thi_predictor_clear(&p);
            world_close(&w);
        }
    }
}

/* most: of S, for one triangle or for solves. */
static void check_failures(double most)
{
    world w;
    thi_predictor p;
    thiele_status status = THIELE_ERROR_MEMORY;
    world_open(&w, KERNEL, 20);
    predictor_open(&w, &p, 2);
    add_root(&p, THI_PLUS_TRIANGLE, p.n);
    fill_triangle(&p, most);
    size_t held = thi_memory_held(ctx);
    for (int64_t nth = 1; status != THIELE_OK; nth++) {
        thi_single *single;
        thi_fail_allocation(ctx, nth, false);
        status = thi_single_open(&single, ctx, &p, true);
        assert_true(status == THIELE_OK || (status == THIELE_ERROR_MEMORY && single == NULL));
        thi_single_close(single);
        assert_int_equal(thi_memory_held(ctx), held);
        assert_true(status != THIELE_OK || nth > 10);
    }
    thi_fail_allocation(ctx, 0, false);
    thi_predictor_clear(&p);
    world_close(&w);
}

static void test_failures(void **state)
{
    (void)state;
    check_failures(0.5);
    check_failures(1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_panels),        cmocka_unit_test(test_kernels),      cmocka_unit_test(test_exact),
        cmocka_unit_test(test_triangle),      cmocka_unit_test(test_conditionals), cmocka_unit_test(test_sites),
        cmocka_unit_test(test_near_singular), cmocka_unit_test(test_decoupled),    cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
