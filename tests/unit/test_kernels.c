/*
 * What every kernel must do, for each row of the list, by itself, with a length-scale a column, over some of the
 * columns and within sums and products: adjoints in theta and in X' against central differences, identities of the
 * filled matrices (symmetric, positive semidefinite, diagonal, blocks of any width, bits on any number of threads),
 * text and back. A toy kernel (tests/toy) is on the list by one file and one row, and goes through all of it.
 */
#include "testing_context.h"

#include "kernel/kernel.h"

enum { D = 3, PARAMETERS = 64, TEXT = 120 };

/* Beside the members by themselves: sums, products and parentheses as deep as one writes them. */
static const char *const composites[] = {
    "matern52(ard) + linear*periodic(p~7, dims=1)",
    "(se + constant(variance~0.3))*(matern32(dims=2) + linear(dims=1))*rq + white",
    "((se + linear)*(matern32 + constant) + rq)*periodic",
};
enum { COMPOSITES = sizeof composites / sizeof *composites, VARIANTS = 4 };

/* Text number i; false behind the last. Every member comes alone in three ways, and joined with its neighbours. */
static bool text_of(int i, char *text)
{
    int members = 0;
    while (thi_kinds[members].name != NULL) {
        members++;
    }
    const thi_kind *kind = &thi_kinds[i / VARIANTS < members ? i / VARIANTS : 0];
    const char *next = thi_kinds[(i / VARIANTS + 1) % members].name,
               *after = thi_kinds[(i / VARIANTS + 2) % members].name;
    if (i >= VARIANTS * members) {
        snprintf(text, TEXT, "%s", i < VARIANTS * members + COMPOSITES ? composites[i - VARIANTS * members] : "");
    } else if (i % VARIANTS == 0) {
        snprintf(text, TEXT, "%s", kind->name);
    } else if (i % VARIANTS == 1) {
        snprintf(text, TEXT, "%s%s", kind->name, kind->lengthscale ? "(ard)" : "(variance~1.7)");
    } else if (i % VARIANTS == 2) {
        snprintf(text, TEXT, "%s(dims=[1,3])", kind->name);
    } else {
        snprintf(text, TEXT, "(%s(dims=2) + %s)*%s", kind->name, next, after);
    }
    return text[0] != '\0';
}

/* Values away from 1 and below the first zero of no profile, so that no derivative hides behind a symmetry. */
static thiele_kernel *make(const char *text, int dims)
{
    thiele_kernel *kernel = NULL;
    double theta[PARAMETERS];
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, text, dims, NULL));
    assert_true(thiele_kernel_parameters(kernel) <= PARAMETERS);
    thiele_kernel_get(kernel, theta);
    for (int p = 0; p < thiele_kernel_parameters(kernel); p++) {
        theta[p] += 0.3 + 0.2 * sin(1.0 + p);
    }
    thiele_kernel_set(kernel, theta);
    return kernel;
}

/* Calls the check for every text. */
static void for_all(void (*check)(const char *text))
{
    char text[TEXT];
    for (int i = 0; text_of(i, text); i++) {
        print_message("%s\n", text);
        check(text);
    }
}

/* --- adjoints -------------------------------------------------------------------------------------------------------
 */

enum { ROWS = 9, COLS = 7 };

/* F = sum_ij Kbar_ij K_ij of k(X, X2), or of k(X, X) where X2 is NULL. */
typedef struct problem {
    thiele_kernel *kernel;
    int n, cols;
    double X[D * ROWS], X2[D * ROWS], Kbar[ROWS * ROWS];
    const double *second;
} problem;

static double value(const problem *p)
{
    double K[ROWS * ROWS], sum = 0.0;
    assert_ok(ctx, thiele_kernel_matrix(p->kernel, ctx, p->n, p->X, p->cols, p->second, K));
    for (int i = 0; i < p->n * p->cols; i++) {
        sum += p->Kbar[i] * K[i];
    }
    return sum;
}

static void open_problem(problem *p, const char *text, bool symmetric)
{
    *p = (problem){make(text, D), symmetric ? COLS : ROWS, COLS, {0}, {0}, {0}, symmetric ? NULL : p->X2};
    test_normals(D * ROWS, 1, p->X);
    test_normals(D * ROWS, 2, p->X2);
    test_normals(ROWS * ROWS, 3, p->Kbar);
    for (int i = 0; symmetric && i < COLS; i++) {
        for (int j = 0; j < i; j++) {
            p->Kbar[j + i * COLS] = p->Kbar[i + j * COLS];
        }
    }
}

/* Central differences with h = 1e-5 are good to about h^2 and eps/h: 1e-9 of the size of the terms. */
static void check_adjoint(const char *text, bool symmetric)
{
    const double h = 1e-5, slack = 1e-8 * ROWS * COLS;
    double theta[PARAMETERS], theta_bar[PARAMETERS] = {0}, Xbar[D * COLS] = {0};
    problem p;
    open_problem(&p, text, symmetric);
    assert_ok(ctx, thiele_kernel_adjoint(p.kernel, ctx, p.n, p.X, p.cols, p.second, p.Kbar, theta_bar, Xbar));
    thiele_kernel_get(p.kernel, theta);
    for (int i = 0; i < thiele_kernel_parameters(p.kernel); i++) {
        double kept = theta[i], at[2];
        for (int side = 0; side < 2; side++) {
            theta[i] = kept + (side ? h : -h);
            thiele_kernel_set(p.kernel, theta);
            at[side] = value(&p);
        }
        theta[i] = kept;
        thiele_kernel_set(p.kernel, theta);
        assert_near(theta_bar[i], (at[1] - at[0]) / (2 * h), 1e-6, slack);
    }
    for (int i = 0; i < D * COLS; i++) {
        double *moved = symmetric ? &p.X[i] : &p.X2[i], kept = *moved, at[2];
        for (int side = 0; side < 2; side++) {
            *moved = kept + (side ? h : -h);
            at[side] = value(&p);
        }
        *moved = kept;
        assert_near(Xbar[i], (at[1] - at[0]) / (2 * h), 1e-6, slack);
    }
    thiele_kernel_destroy(p.kernel);
}

static void adjoints_of(const char *text)
{
    check_adjoint(text, false);
    check_adjoint(text, true);
}

static void test_adjoints(void **state)
{
    (void)state;
    for_all(adjoints_of);
}

/* --- many rows: X of MANY, tiles in both directions ------------------------------------------------------------------
 */

enum { MANY = THI_TILE_ROWS + 2 * THI_TILE_COLS + 3 };
static double X[D * MANY], K[MANY * MANY], Kbar[MANY * MANY];

static void fill_rows(void)
{
    test_normals(D * MANY, 4, X);
    test_normals(MANY * MANY, 5, Kbar);
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < i; j++) {
            Kbar[j + i * MANY] = Kbar[i + j * MANY];
        }
    }
}

/* The adjoint of the diagonal is that of a matrix with nothing beside it; without inputs' gradients there is a short
 * cut over the lower triangle. */
static void short_cuts_of(const char *text)
{
    static double diagonal[MANY], kbar[MANY], only[MANY * MANY], Xbar[2][D * MANY];
    double theta_bar[4][PARAMETERS] = {{0}};
    thiele_kernel *kernel = make(text, D);
    thi_inputs inputs;
    memset(Xbar, 0, sizeof Xbar);
    test_normals(MANY, 6, kbar);
    assert_ok(ctx, thiele_kernel_diagonal(kernel, ctx, MANY, X, diagonal));
    assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, MANY, X, 0, NULL, K));
    for (int i = 0; i < MANY; i++) {
        only[i + i * MANY] = kbar[i];
        assert_near(diagonal[i], K[i + i * MANY], 1e-13, 1e-13);
        for (int j = 0; j < i; j++) {
            assert_true(K[i + j * MANY] == K[j + i * MANY]);
        }
    }
    assert_ok(ctx, thi_inputs_make(&inputs, ctx, kernel, MANY, X));
    assert_ok(ctx, thi_kernel_pull_diagonal(kernel, ctx, &inputs, kbar, theta_bar[0], Xbar[0]));
    assert_ok(ctx, thiele_kernel_adjoint(kernel, ctx, MANY, X, 0, NULL, only, theta_bar[1], Xbar[1]));
    assert_ok(ctx, thiele_kernel_adjoint(kernel, ctx, MANY, X, 0, NULL, Kbar, theta_bar[2], NULL));
    assert_ok(ctx, thiele_kernel_adjoint(kernel, ctx, MANY, X, 0, NULL, Kbar, theta_bar[3], Xbar[1]));
    int parameters = thiele_kernel_parameters(kernel);
    assert_all_near(theta_bar[0], theta_bar[1], parameters, 1e-10, 1e-10 * MANY);
    assert_all_near(theta_bar[2], theta_bar[3], parameters, 1e-9, 1e-9 * MANY);
    thi_inputs_clear(&inputs);
    thiele_kernel_destroy(kernel);
}

/* Columns of k(X, X2) are the same however many are filled at once, but for rounding of the products that distances are
 * made of; on any number of threads all has the same bits. */
static void bits_of(const char *text)
{
    enum { WIDE = THI_TILE_COLS + 5 };
    static const int widths[] = {1, 3, THI_TILE_COLS - 1};
    static double again[MANY * MANY];
    thiele_kernel *kernel = make(text, D);
    double theta_bar[2][PARAMETERS] = {{0}};
    assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, MANY, X, WIDE, X + D, K));
    for (int w = 0; w < 3; w++) {
        for (int first = 0; first < WIDE; first += widths[w]) {
            int width = first + widths[w] < WIDE ? widths[w] : WIDE - first;
            assert_ok(ctx,
                      thiele_kernel_matrix(kernel, ctx, MANY, X, width, X + D * (first + 1), again + first * MANY));
        }
        assert_all_near(again, K, MANY * WIDE, 1e-13, 1e-13);
    }
    for (int run = 0; run < 2; run++) {
        thiele_context *own = test_context(run == 0 ? 1 : 3);
        assert_ok(own, thiele_kernel_matrix(kernel, own, MANY, X, 0, NULL, run == 0 ? K : again));
        assert_ok(own, thiele_kernel_adjoint(kernel, own, MANY, X, MANY, X, Kbar, theta_bar[run], NULL));
        thiele_context_destroy(own);
    }
    assert_memory_equal(K, again, sizeof K);
    assert_memory_equal(theta_bar[0], theta_bar[1], sizeof theta_bar[0]);
    thiele_kernel_destroy(kernel);
}

static void test_many_rows(void **state)
{
    (void)state;
    fill_rows();
    for_all(short_cuts_of);
    for_all(bits_of);
}

/* A Cholesky decomposition with 1e-12 of the diagonal's sum, far above what rounding takes from an eigenvalue. */
static void semidefinite_of(const char *text)
{
    enum { N = 40 };
    double L[N * N], sum = 0.0;
    thiele_kernel *kernel = make(text, D);
    assert_ok(ctx, thiele_kernel_matrix(kernel, ctx, N, X, 0, NULL, L));
    for (int i = 0; i < N; i++) {
        sum += L[i + i * N];
    }
    for (int j = 0; j < N; j++) {
        double pivot = L[j + j * N] + 1e-12 * sum;
        for (int k = 0; k < j; k++) {
            pivot -= L[j + k * N] * L[j + k * N];
        }
        assert_true(pivot > 0.0);
        for (int i = j + 1; i < N; i++) {
            for (int k = 0; k < j; k++) {
                L[i + j * N] -= L[i + k * N] * L[j + k * N];
            }
            L[i + j * N] /= sqrt(pivot);
        }
        L[j + j * N] = sqrt(pivot);
    }
    thiele_kernel_destroy(kernel);
}

static void test_semidefinite(void **state)
{
    (void)state;
    fill_rows();
    for_all(semidefinite_of);
}

/* --- columns and text ------------------------------------------------------------------------------------------------
 */

/* Over columns 1 and 3 a member is what it is over a table that has no others. */
static void test_columns(void **state)
{
    (void)state;
    enum { N = 20 };
    double some[2 * N], fewer[N * N];
    fill_rows();
    for (int i = 0; i < N; i++) {
        some[2 * i] = X[D * i];
        some[2 * i + 1] = X[D * i + 2];
    }
    for (const thi_kind *kind = thi_kinds; kind->name != NULL; kind++) {
        char text[TEXT];
        snprintf(text, sizeof text, "%s(dims=[1,3])", kind->name);
        thiele_kernel *all = make(text, D), *two = make(kind->name, 2);
        assert_ok(ctx, thiele_kernel_matrix(all, ctx, N, X, 0, NULL, K));
        assert_ok(ctx, thiele_kernel_matrix(two, ctx, N, some, 0, NULL, fewer));
        assert_memory_equal(K, fewer, sizeof fewer);
        thiele_kernel_destroy(all);
        thiele_kernel_destroy(two);
    }
}

/* What is printed makes the same kernel, value by value and bit by bit, and is printed alike. */
static void text_and_back(const char *text)
{
    thiele_kernel *kernel = make(text, D), *again = NULL;
    char *printed[2] = {NULL};
    double theta[2][PARAMETERS];
    assert_ok(ctx, thiele_kernel_print(kernel, ctx, 1, &printed[0]));
    assert_ok(ctx, thiele_kernel_parse(&again, ctx, printed[0], D, NULL));
    assert_ok(ctx, thiele_kernel_print(again, ctx, 1, &printed[1]));
    assert_string_equal(printed[0], printed[1]);
    assert_int_equal(thiele_kernel_parameters(kernel), thiele_kernel_parameters(again));
    thiele_kernel_get(kernel, theta[0]);
    thiele_kernel_get(again, theta[1]);
    for (int p = 0; p < thiele_kernel_parameters(kernel); p++) {
        assert_near(theta[1][p], theta[0][p], 1e-15, 1e-15);
        assert_string_equal(thiele_kernel_parameter_name(kernel, p), thiele_kernel_parameter_name(again, p));
    }
    thiele_free(printed[0]);
    thiele_free(printed[1]);
    thiele_kernel_destroy(kernel);
    thiele_kernel_destroy(again);
}

static void test_text(void **state)
{
    (void)state;
    thiele_kernel *kernel = NULL;
    for_all(text_and_back);
    assert_fails(ctx, thiele_kernel_parse(&kernel, ctx, "nonsense", D, NULL), THIELE_ERROR_ARGUMENT,
                 "toy, se, matern12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adjoints), cmocka_unit_test(test_many_rows), cmocka_unit_test(test_semidefinite),
        cmocka_unit_test(test_columns),  cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
