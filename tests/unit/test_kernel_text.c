/* Kernels from text and back: round trips, names, units, and texts that must be refused with a sentence. */
#include "testing.h"

#include "kernel/kernel.h"

enum { D = 4 };
static const char *const names[D] = {"age", "site=north", "site=south", "income per head"};

/* Four dimensions of three columns: a text column has two. */
static const char *const column_names[] = {"age", "site", "income per head"};
static const int column_of[D] = {0, 1, 1, 2};
static const thi_columns columns = {
    .dims = D, .columns = 3, .column = column_of, .column_name = column_names, .dim_name = names};

static void test_round_trip(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    static const struct {
        const char *text, *printed;
    } cases[] = {
        {"se", "se"},
        {" matern52( ard ) + linear*periodic(p=7, dims=1)", "matern52(ard) + linear*periodic(dims=1, period=7)"},
        {"(se+rq)*white", "(se + rq)*white"},
        {"se+(rq*white)", "se + rq*white"},
        {"se+(rq+white)", "se + (rq + white)"},
        {"se(dims=[3,1])", "se(dims=[1,3])"},
        {"se(dims=2:3, l~0.5)", "se(dims=[2,3], lengthscale~0.5)"},
        {"se(dims=site)", "se(dims=2)"},
        {"se(dims=\"income per head\")", "se(dims=3)"},
        {"se(lengthscale~[1,2,3,4])", "se(ard, lengthscale~[1,2,3,4])"},
        {"polynomial(degree=3, offset=0.25)", "polynomial(degree=3, offset=0.25)"},
        {"constant(variance=2)", "constant(variance=2)"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        thiele_kernel *kernel = NULL;
        thiele_kernel *again = NULL;
        char *printed = NULL;
        char *values = NULL;
        char *values_again = NULL;
        assert_ok(ctx, thi_kernel_parse(&kernel, ctx, cases[c].text, &columns));
        assert_ok(ctx, thiele_kernel_print(kernel, ctx, 0, &printed));
        assert_string_equal(printed, cases[c].printed);
        assert_ok(ctx, thiele_kernel_print(kernel, ctx, 1, &values));
        assert_ok(ctx, thi_kernel_parse(&again, ctx, values, &columns));
        assert_ok(ctx, thiele_kernel_print(again, ctx, 1, &values_again));
        assert_string_equal(values, values_again);
        assert_int_equal(thiele_kernel_parameters(kernel), thiele_kernel_parameters(again));
        thiele_kernel_destroy(kernel);
        thiele_kernel_destroy(again);
        thiele_free(printed);
        thiele_free(values);
        thiele_free(values_again);
    }
    thiele_context_destroy(ctx);
}

static void test_parameters(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_kernel *kernel = NULL;
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "se(dims=1, ard) + se(variance=3)*periodic(p~2)", D, names));
    static const char *const want[] = {"se.lengthscale[age]",  "se.variance",       "se#2.lengthscale", "se#2.variance",
                                       "periodic.lengthscale", "periodic.variance", "periodic.period"};
    assert_int_equal(thiele_kernel_parameters(kernel), 7);
    for (int p = 0; p < 7; p++) {
        assert_string_equal(thiele_kernel_parameter_name(kernel, p), want[p]);
    }
    assert_null(thiele_kernel_parameter_name(kernel, 7));
    assert_null(thiele_kernel_parameter_name(kernel, -1));
    assert_true(kernel->parameter[3].fixed && !kernel->parameter[6].fixed && kernel->parameter[6].given);
    /* Only the first part of a product keeps its variance free. */
    thi_kernel_fix_redundant(kernel);
    assert_true(kernel->parameter[5].fixed && !kernel->parameter[1].fixed);
    thiele_kernel_destroy(kernel);
    /* A sum behind the first part keeps the ratios of its terms. */
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "se*(rq + matern12 + white)", D, names));
    thi_kernel_fix_redundant(kernel);
    static const bool fixed[] = {false, false, false, true, false, false, false, false};
    for (int p = 0; p < 8; p++) {
        assert_int_equal(kernel->parameter[p].fixed, fixed[p]);
    }
    thiele_kernel_destroy(kernel);
    thiele_context_destroy(ctx);
}

/* k(x, x') in data units equals target^2 k in standardised ones, for every kernel whose parameters have units. */
static void test_units(void **state)
{
    (void)state;
    enum { N = 6 };
    thiele_context *ctx = test_context(1);
    static const char *const texts[] = {"matern52(ard, lengthscale~[0.5,1,2,3], variance~1.3)",
                                        "rq(dims=2, alpha~0.7)",
                                        "periodic(dims=3, p~1.9, l~0.6)",
                                        "linear(ard)*se(ard, variance=2) + constant",
                                        "polynomial(ard, degree=2)",
                                        "cosine(ard) + white"};
    double scale[D] = {2.0, 30.0, 0.25, 7.0};
    double target = 5.0;
    double X[D * N];
    double Xraw[D * N];
    test_normals(D * N, 1, X);
    for (int i = 0; i < D * N; i++) {
        Xraw[i] = X[i] * scale[i % D];
    }
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        thiele_kernel *kernel = NULL;
        double K[N * N];
        double Kraw[N * N];
        assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, texts[t], D, names));
        assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, X, 0, NULL, K));
        thi_kernel_rescale(kernel, scale, target, 1);
        assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, Xraw, 0, NULL, Kraw));
        for (int i = 0; i < N * N; i++) {
            assert_near(Kraw[i], target * target * K[i], 1e-12, 1e-12);
        }
        thi_kernel_rescale(kernel, scale, target, -1);
        assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, X, 0, NULL, Kraw));
        assert_all_near(Kraw, K, N * N, 1e-13, 1e-13);
        thiele_kernel_destroy(kernel);
    }
    thiele_context_destroy(ctx);
}

static void test_refused(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "a kernel was expected"},
        {"matern", "matern12"},
        {"se +", "a kernel was expected"},
        {"rbf", "did you mean 'se'?"},
        {"linear + RBF(ard)", "position 10: a kernel was expected; did you mean 'se'?"},
        {"Matern", "did you mean 'matern52'?"},
        {"perodic", "did you mean 'periodic'?"},
        {"zzz", "a kernel was expected: se"},
        {"se se", "'+' or '*'"},
        {"(se", "')'"},
        {"se(", "'ard'"},
        {"se(p=3)", "no such parameter"},
        {"se(foo=1)", "kernel se has no such parameter: it takes ard, dims= and, with '=value' (fixed) or '~value' "
                      "(first guess), lengthscale, variance"},
        {"constant(ard)", "kernel constant has no such parameter: it takes dims= and"},
        {"polynomial(x)", "it takes ard, degree=, dims= and, with '=value' (fixed) or '~value' (first guess), "
                          "lengthscale, variance, offset"},
        {"se(variance=1, variance=2)", "position 16: this is given twice"},
        {"se(l=1, lengthscale~2)", "given twice"},
        {"se(ard, ard)", "given twice"},
        {"se(dims=1, dims=2)", "given twice"},
        {"polynomial(degree=2, degree=2)", "given twice"},
        {"se(lengthscale=0)", "positive"},
        {"se(lengthscale=-1)", "positive"},
        {"se(lengthscale=nan)", "number"},
        {"se(lengthscale=[1,2])", "does not match"},
        {"se(lengthscale=[1,2,3,4,5,6])", "more values"},
        {"se(dims=0)", "counted from 1 to 4"},
        {"se(dims=5)", "counted from 1 to 4"},
        {"se(dims=1.5)", "counted from 1"},
        {"se(dims=weight)", "no input column"},
        {"se(dims=\"age)", "closing quote"},
        {"polynomial(degree=0)", "degree"},
        {"polynomial(degree=99)", "degree"},
        {"((((((((((((((((((se))))))))))))))))))", "deeply"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        thiele_kernel *kernel = NULL;
        assert_fails(ctx, thiele_kernel_parse(&kernel, ctx, cases[c].text, D, names), THIELE_ERROR_ARGUMENT,
                     cases[c].why);
        assert_null(kernel);
    }
    char many[8 * 80] = "se";
    for (int i = 0; i < 70; i++) {
        strcat(many, "+se");
    }
    thiele_kernel *kernel = NULL;
    assert_fails(ctx, thiele_kernel_parse(&kernel, ctx, many, D, names), THIELE_ERROR_ARGUMENT, "too many");
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
