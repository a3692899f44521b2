/*
 * KL between decoupled posteriors with different bases (posterior/decoupled_divergence.h): against the dense KL of both
 * at all functions of both, where given them the rest of the two processes is the same; gradients by central
 * differences; the same bits on any number of threads.
 */
#include <math.h>
#include <string.h>

#include "posterior/decoupled_divergence.h"
#include "testing.h"

enum { DIMS = 2, MOST = 600, UNION = 64, PARAMETERS = 4 };

/* One law's numbers. */
typedef struct numbers {
    int64_t alpha_n, beta_n;
    double alpha[DIMS * MOST], alpha_c[DIMS * MOST], a[MOST];
    double beta[DIMS * MOST], beta_c[DIMS * MOST], L[MOST];
} numbers;

typedef struct pair {
    thiele_kernel *kernel;
    bool general;
    numbers q, p;
} pair;

static void scale(double *x, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] *= factor;
    }
}

static void fill(numbers *x, int64_t alpha, int64_t beta, uint64_t seed)
{
    x->alpha_n = alpha;
    x->beta_n = beta;
    test_normals(DIMS * alpha, seed, x->alpha);
    test_normals(DIMS * beta, seed + 1, x->beta);
    test_normals(alpha, seed + 2, x->a);
    test_normals(beta * beta, seed + 3, x->L);
    test_normals(DIMS * alpha, seed + 4, x->alpha_c);
    test_normals(DIMS * beta, seed + 5, x->beta_c);
    scale(x->alpha_c, DIMS * alpha, 0.2);
    scale(x->beta_c, DIMS * beta, 0.2);
    scale(x->a, alpha, 3.0 / sqrt((double)alpha));
    for (int64_t i = 0; i < beta * beta; i++) {
        x->L[i] = i % beta < i / beta ? 0.0 : x->L[i];
    }
}

static void pair_open(pair *w, thiele_context *ctx, const char *kernel, bool general)
{
    w->general = general;
    assert_ok(ctx, thiele_kernel_parse(&w->kernel, ctx, kernel, DIMS, NULL));
    fill(&w->q, 11, 6, 1);
    fill(&w->p, 8, 9, 20);
}

static thi_functions functions_of(const pair *w, thiele_context *ctx, int64_t n, const double *X, const double *log_c)
{
    thi_functions f = {0};
    assert_ok(ctx, thi_functions_make(&f, ctx, w->kernel, n, X, w->general ? log_c : NULL));
    return f;
}

static thi_decoupled_law law_of(const pair *w, thiele_context *ctx, numbers *x)
{
    return (thi_decoupled_law){.alpha = functions_of(w, ctx, x->alpha_n, x->alpha, x->alpha_c),
                               .beta = functions_of(w, ctx, x->beta_n, x->beta, x->beta_c),
                               .a = x->a,
                               .L = thi_matrix_view(x->L, x->beta_n, x->beta_n, x->beta_n)};
}

static void law_clear(thi_decoupled_law *law)
{
    thi_functions_clear(&law->alpha);
    thi_functions_clear(&law->beta);
}

static double divergence(pair *w, thiele_context *ctx, const thi_decoupled_law_bar *bar)
{
    thi_decoupled_law q = law_of(w, ctx, &w->q), p = law_of(w, ctx, &w->p);
    double value = NAN;
    assert_ok(ctx, thi_decoupled_divergence(ctx, &q, &p, &value, bar));
    law_clear(&q);
    law_clear(&p);
    return value;
}

/* --- dense -----------------------------------------------------------------------------------------------------------
 */

/* Mean and the Cholesky factor of the covariance at all functions: K - k(., beta) L H^-1 L' k(beta, .). */
static void dense_law(thiele_context *ctx, const thi_functions *all, const thi_decoupled_law *law, double *mean,
                      thi_matrix S)
{
    double KA[UNION * UNION], KB[UNION * UNION], KBL[UNION * UNION], H[UNION * UNION], KL[UNION * UNION],
        K[UNION * UNION];
    int64_t n = all->n, A = law->alpha.n, B = law->beta.n;
    thi_matrix a = thi_matrix_view(KA, n, A, n), b = thi_matrix_view(KB, n, B, n), u = thi_matrix_view(KBL, n, B, n);
    thi_matrix h = thi_matrix_view(H, B, B, B), kl = thi_matrix_view(KL, B, B, B), k = thi_matrix_view(K, B, B, B);
    assert_ok(ctx, thi_functions_cross(all, &law->alpha, ctx, a, false));
    thi_blas_gemv(THI_N, 1.0, a, law->a, 0.0, mean);
    assert_ok(ctx, thi_functions_cross(all, &law->beta, ctx, b, false));
    assert_ok(ctx, thi_functions_cross(&law->beta, &law->beta, ctx, k, true));
    thi_blas_gemm(THI_N, THI_N, 1.0, k, law->L, 0.0, kl);
    thi_blas_gemm(THI_T, THI_N, 1.0, law->L, kl, 0.0, h);
    for (int64_t i = 0; i < B; i++) {
        H[i + i * B] += 1.0;
    }
    assert_ok(ctx, thi_chol(ctx, h));
    thi_blas_gemm(THI_N, THI_N, 1.0, b, law->L, 0.0, u);
    thi_blas_trsm(THI_RIGHT, THI_T, 1.0, h, u);
    assert_ok(ctx, thi_functions_cross(all, all, ctx, S, true));
    thi_blas_gemm(THI_N, THI_T, -1.0, u, u, 1.0, S);
    assert_ok(ctx, thi_chol(ctx, S));
}

static double dense_divergence(pair *w, thiele_context *ctx)
{
    const numbers *parts[2] = {&w->q, &w->p};
    double X[DIMS * UNION], log_c[DIMS * UNION], mean[2][UNION], S[2][UNION * UNION];
    int64_t n = 0;
    for (int s = 0; s < 2; s++) {
        const numbers *x = parts[s];
        memcpy(X + DIMS * n, x->alpha, (size_t)(DIMS * x->alpha_n) * sizeof *X);
        memcpy(log_c + DIMS * n, x->alpha_c, (size_t)(DIMS * x->alpha_n) * sizeof *X);
        n += x->alpha_n;
        memcpy(X + DIMS * n, x->beta, (size_t)(DIMS * x->beta_n) * sizeof *X);
        memcpy(log_c + DIMS * n, x->beta_c, (size_t)(DIMS * x->beta_n) * sizeof *X);
        n += x->beta_n;
    }
    thi_functions all = functions_of(w, ctx, n, X, log_c);
    thi_decoupled_law q = law_of(w, ctx, &w->q), p = law_of(w, ctx, &w->p);
    thi_matrix Sq = thi_matrix_view(S[0], n, n, n), Sp = thi_matrix_view(S[1], n, n, n);
    dense_law(ctx, &all, &q, mean[0], Sq);
    dense_law(ctx, &all, &p, mean[1], Sp);
    double value = thi_chol_logdet(Sp) - thi_chol_logdet(Sq) - (double)n;
    for (int64_t j = 0; j < n; j++) {
        mean[0][j] -= mean[1][j];
        for (int64_t i = 0; i < j; i++) {
            S[0][i + j * n] = 0.0;
        }
    }
    thi_blas_trsm(THI_LEFT, THI_N, 1.0, Sp, Sq);
    thi_blas_trsv(THI_N, Sp, mean[0]);
    value += thi_blas_dot(n * n, S[0], S[0]) + thi_blas_dot(n, mean[0], mean[0]);
    thi_functions_clear(&all);
    law_clear(&q);
    law_clear(&p);
    return 0.5 * value;
}

/* Kernels whose functions are far from linearly dependent: the dense KL loses as many digits as its matrices. */
static const struct {
    const char *kernel;
    bool general;
} cases[] = {
    {"matern12(ard, lengthscale~[0.5,0.7], variance~1.3)", false}, {"matern32(lengthscale~0.3, variance~0.8)", false},
    {"se(ard, lengthscale~[0.2,0.3], variance~1.3)", true},        {"matern12(lengthscale~0.4)", true},
    {"matern12(lengthscale~0.5) + linear(variance~0.3)", false},
};

static void test_dense(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static pair w;
        pair_open(&w, ctx, cases[i].kernel, cases[i].general);
        double value = divergence(&w, ctx, NULL);
        assert_near(value, dense_divergence(&w, ctx), 1e-10, 1e-10);
        assert_true(value > 0.0);
        w.p = w.q;
        assert_near(divergence(&w, ctx, NULL), 0.0, 0.0, 1e-11);
        thiele_kernel_destroy(w.kernel);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* --- gradients -------------------------------------------------------------------------------------------------------
 */

#define STEP 1e-5
/* Of differences: rounding of the value over the step, and the third derivative times its square. */
#define NEAR 1e-6

static void check(pair *w, thiele_context *ctx, int64_t count, double *x, const double *bar, int64_t triangle)
{
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i];
        if (triangle > 0 && i % triangle < i / triangle) {
            continue;
        }
        x[i] = kept + STEP;
        double above = divergence(w, ctx, NULL);
        x[i] = kept - STEP;
        double below = divergence(w, ctx, NULL);
        x[i] = kept;
        assert_near(bar[i], (above - below) / (2.0 * STEP), NEAR, NEAR);
    }
}

static void check_theta(pair *w, thiele_context *ctx, const double *bar)
{
    double theta[PARAMETERS];
    thiele_kernel_get(w->kernel, theta);
    for (int i = 0; i < thiele_kernel_parameters(w->kernel); i++) {
        double kept = theta[i], value[2];
        for (int side = 0; side < 2; side++) {
            theta[i] = kept + (side == 0 ? STEP : -STEP);
            thiele_kernel_set(w->kernel, theta);
            value[side] = divergence(w, ctx, NULL);
        }
        theta[i] = kept;
        thiele_kernel_set(w->kernel, theta);
        assert_near(bar[i], (value[0] - value[1]) / (2.0 * STEP), NEAR, NEAR);
    }
}

typedef struct gradient {
    double a[MOST], L[MOST], theta[PARAMETERS], alpha[DIMS * MOST], alpha_c[DIMS * MOST], beta[DIMS * MOST],
        beta_c[DIMS * MOST];
} gradient;

static thi_decoupled_law_bar bar_of(gradient *g, bool general)
{
    return (thi_decoupled_law_bar){.a = g->a,
                                   .L = g->L,
                                   .theta = g->theta,
                                   .alpha = {.X = g->alpha, .log_c = general ? g->alpha_c : NULL},
                                   .beta = {.X = g->beta, .log_c = general ? g->beta_c : NULL}};
}

static void test_gradients(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static pair w;
        static gradient g;
        memset(&g, 0, sizeof g);
        pair_open(&w, ctx, cases[i].kernel, cases[i].general);
        thi_decoupled_law_bar bar = bar_of(&g, w.general);
        divergence(&w, ctx, &bar);
        check(&w, ctx, w.q.alpha_n, w.q.a, g.a, 0);
        check(&w, ctx, w.q.beta_n * w.q.beta_n, w.q.L, g.L, w.q.beta_n);
        check(&w, ctx, DIMS * w.q.alpha_n, w.q.alpha, g.alpha, 0);
        check(&w, ctx, DIMS * w.q.beta_n, w.q.beta, g.beta, 0);
        if (w.general) {
            check(&w, ctx, DIMS * w.q.alpha_n, w.q.alpha_c, g.alpha_c, 0);
            check(&w, ctx, DIMS * w.q.beta_n, w.q.beta_c, g.beta_c, 0);
        }
        check_theta(&w, ctx, g.theta);
        thiele_kernel_destroy(w.kernel);
    }
    thiele_context_destroy(ctx);
}

/* --- portions, threads, memory ---------------------------------------------------------------------------------------
 */

/* More functions than a portion has: a law does not change by a second part of its basis that has no weights. */
static void test_threads(void **state)
{
    (void)state;
    static pair w, few;
    static gradient g[2];
    thiele_context *one = test_context(1), *many = test_context(3);
    pair_open(&w, one, cases[0].kernel, false);
    few = w;
    fill(&w.q, MOST, 6, 1);
    memcpy(w.q.alpha, few.q.alpha, (size_t)(DIMS * few.q.alpha_n) * sizeof *w.q.alpha);
    memcpy(w.q.beta, few.q.beta, (size_t)(DIMS * few.q.beta_n) * sizeof *w.q.beta);
    memcpy(w.q.L, few.q.L, sizeof w.q.L);
    memcpy(w.q.a, few.q.a, sizeof w.q.a);
    thi_decoupled_law_bar bar[2] = {bar_of(&g[0], false), bar_of(&g[1], false)};
    double first = divergence(&w, one, &bar[0]);
    assert_near(first, divergence(&few, one, NULL), 1e-12, 1e-12);
    memset(g, 0, sizeof g);
    fill(&w.q, MOST, 6, 1);
    first = divergence(&w, one, &bar[0]);
    double second = divergence(&w, many, &bar[1]);
    assert_memory_equal(&first, &second, sizeof first);
    assert_memory_equal(&g[0], &g[1], sizeof g[0]);
    thiele_kernel_destroy(w.kernel);
    thiele_context_destroy(one);
    thiele_context_destroy(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
