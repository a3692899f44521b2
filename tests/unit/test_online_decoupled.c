/*
 * Decoupled posteriors that go on learning (fit/online.h): Bayes' rule written out densely, in any order and cut; the
 * bound of a batch has theorem 1, equation 13, of Cheng and Boots 2017 as its KL; what is forgotten, what stays.
 */
#include "decoupled_testing.h"
#include "testing_context.h"

#include "fit/online.h"

/* Plain and orthogonal, of points and of functions with length-scales of their own. */
enum { KINDS = 4, ALL = ROWS + TESTS, MOST = ALPHA + BETA };

static void open_kind(world *w, int kind)
{
    world_open(w, ctx, SE_KERNEL, kind & 1, kind & 2);
}

static void freeze(world *w, thi_predictor *p)
{
    thi_prior prior = world_prior(w);
    thi_decoupled_q q = world_q(w);
    assert_ok(ctx, thi_decoupled_begin(w->engine, ctx, &prior, &q));
    assert_ok(ctx, thi_decoupled_freeze(w->engine, ctx, 0, p));
}

static void prepared(world *w, thi_predictor *p)
{
    freeze(w, p);
    assert_ok(ctx, thi_online_prepare(p, ctx));
}

static thiele_likelihood *parse(const char *text)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, 1, 0));
    return lik;
}

static void predict(const thi_predictor *p, const world *w, double *mean, double *variance)
{
    int64_t clipped = 0;
    assert_ok(ctx, thi_predictor_marginals(p, ctx, TESTS, w->Xtest, mean, variance, &clipped));
}

/* --- preparation -------------------------------------------------------------------------------------------------- */

/* The plain form gets the functions of its covariance as functions of its mean, once; predictions stay. */
static void test_preparation(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        world w;
        thi_predictor p;
        double mean[2][TESTS], variance[2][TESTS];
        open_kind(&w, kind);
        freeze(&w, &p);
        predict(&p, &w, mean[0], variance[0]);
        for (int again = 0; again < 2; again++) {
            assert_ok(ctx, thi_online_prepare(&p, ctx));
            assert_int_equal(p.mean_n, MOST);
            predict(&p, &w, mean[1], variance[1]);
            assert_all_near(mean[1], mean[0], TESTS, 1e-13, 1e-13);
            assert_memory_equal(variance[1], variance[0], sizeof variance[0]);
        }
        assert_null(thi_online_refuses(&p));
        thi_predictor_clear(&p);
        w.n_beta = 0;
        freeze(&w, &p);
        assert_non_null(strstr(thi_online_refuses(&p), "no basis functions (fit with `inducing` M"));
        thi_predictor_clear(&p);
        world_close(&w);
    }
}

/* --- Gaussian noise ----------------------------------------------------------------------------------------------- */

/*
 * Bayes' rule for the part of f in the span of beta, whose covariance under the posterior is C = V'S V, with the rest
 * of the mean as it is: mean* + C*x (Cxx + noise)^-1 (y - mean), and as much less variance.
 */
static void learn_densely(const thi_predictor *p, const world *w, double noise, double *mean, double *variance)
{
    static double X[DIMS * ALL], all[ALL], C[ALL * ALL], full[ALL * ALL], A[ROWS * ROWS], gain[ROWS * TESTS];
    thi_predictor span = *p;
    thi_matrix root = thi_matrix_view(A, ROWS, ROWS, ROWS), G = thi_matrix_view(gain, ROWS, TESTS, ROWS);
    double residual[ROWS];
    memcpy(X, w->X, sizeof w->X);
    memcpy(X + DIMS * ROWS, w->Xtest, sizeof w->Xtest);
    span.conditional = THI_CONDITIONAL_NONE;
    assert_ok(ctx, thi_predictor_joint(p, ctx, 0, ALL, X, all, full));
    assert_ok(ctx, thi_predictor_joint(&span, ctx, 0, ALL, X, all, C));
    for (int j = 0; j < ROWS; j++) {
        memcpy(A + j * ROWS, C + j * ALL, ROWS * sizeof *A);
        A[j + j * ROWS] += noise;
        residual[j] = w->y[j] - all[j];
    }
    assert_ok(ctx, thi_chol(ctx, root));
    for (int k = 0; k < TESTS; k++) {
        memcpy(gain + k * ROWS, C + (ROWS + k) * ALL, ROWS * sizeof *gain);
    }
    thi_blas_trsm(THI_LEFT, THI_N, 1.0, root, G);
    thi_blas_trsv(THI_N, root, residual);
    for (int k = 0; k < TESTS; k++) {
        const double *g = gain + k * ROWS;
        mean[k] = all[ROWS + k] + thi_blas_dot(ROWS, g, residual);
        variance[k] = full[(ROWS + k) * (ALL + 1)] - thi_blas_dot(ROWS, g, g);
    }
}

/* Rows order[0 ..] in batches; the posterior is frozen after each, as for snapshots, into the predictor in use. */
static void learn_rows(thi_online *o, const world *w, const int64_t *order, int64_t size, thi_predictor *p)
{
    double X[DIMS * ROWS], y[ROWS], mu[ROWS], v[ROWS];
    for (int64_t first = 0; first < ROWS; first += size) {
        int64_t n = ROWS - first < size ? ROWS - first : size;
        for (int64_t i = 0; i < n; i++) {
            memcpy(X + i * DIMS, w->X + order[first + i] * DIMS, DIMS * sizeof *X);
            y[i] = w->y[order[first + i]];
        }
        assert_ok(ctx, thi_online_predict(o, ctx, n, X, NULL, mu, v));
        assert_ok(ctx, thi_online_learn(o, ctx, y, first));
        thi_online_freeze(o, 0, p);
    }
}

static void test_gaussian(void **state)
{
    (void)state;
    static const int64_t sizes[] = {ROWS, 20, 7, 1};
    thiele_likelihood *lik = parse("gaussian(noise=0.11)");
    for (int kind = 0; kind < KINDS; kind++) {
        world w;
        thi_predictor p;
        double want[2][TESTS], mean[TESTS], variance[TESTS];
        open_kind(&w, kind);
        freeze(&w, &p);
        learn_densely(&p, &w, 0.11, want[0], want[1]);
        thi_predictor_clear(&p);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            thi_online o;
            thi_online_settings settings = {.capacity = ROWS};
            int64_t order[ROWS];
            thi_random_permutation((thi_stream){1, THI_RANDOM_DEMO, i}, ROWS, order);
            prepared(&w, &p);
            assert_ok(ctx, thi_online_open(&o, ctx, 1, &p, lik, &settings));
            learn_rows(&o, &w, order, sizes[i], &p);
            predict(&p, &w, mean, variance);
            assert_all_near(mean, want[0], TESTS, 1e-9, 1e-9);
            assert_all_near(variance, want[1], TESTS, 1e-9, 1e-9);
            assert_ok(ctx, thi_online_predict(&o, ctx, TESTS, w.Xtest, NULL, mean, variance));
            assert_all_near(mean, want[0], TESTS, 1e-9, 1e-9);
            assert_all_near(variance, want[1], TESTS, 1e-9, 1e-9);
            thi_online_close(&o);
            thi_predictor_clear(&p);
        }
        world_close(&w);
    }
    thiele_likelihood_destroy(lik);
}

/* --- the KL between two decoupled posteriors ---------------------------------------------------------------------- */

static thi_matrix square(double *data)
{
    return thi_matrix_view(data, BETA, BETA, BETA);
}

/* B = L^-T T L^-1 with T = S^-1 - I. */
static void precision_of(const thi_predictor *p, double *B)
{
    double t[BETA], m[BETA] = {0};
    thi_natural sum = {.T = square(B), .t = t};
    assert_ok(ctx, thi_natural_take(&sum, ctx, p->R[0], m));
    thi_symmetrise(square(B));
    thi_blas_trsm(THI_LEFT, THI_T, 1.0, p->L, square(B));
    thi_blas_trsm(THI_RIGHT, THI_N, 1.0, p->L, square(B));
}

/* Inverts a symmetric positive definite matrix in place; log of its determinant. */
static double invert(double *A)
{
    assert_ok(ctx, thi_chol(ctx, square(A)));
    double log_det = thi_chol_logdet(square(A));
    assert_ok(ctx, thi_chol_inverse(ctx, square(A)));
    thi_symmetrise(square(A));
    return log_det;
}

/* log|I + K B|, and R = (B^-1 + K)^-1. */
static double resolvent(const double *K, const double *B, double *R)
{
    memcpy(R, B, BETA * BETA * sizeof *R);
    double log_det = invert(R);
    for (int i = 0; i < BETA * BETA; i++) {
        R[i] += K[i];
    }
    return log_det + invert(R);
}

static double trace_of_product(const double *A, const double *B)
{
    return thi_blas_dot(BETA * BETA, A, B); /* symmetric, both */
}

/* a'(K_alpha,alpha' + K_alpha,beta B K_beta,alpha') a' for the means of two posteriors and the old one's beta and B. */
static double mean_product(const thi_predictor *p, const thi_predictor *q, const thi_predictor *old, const double *B)
{
    double K[MOST * MOST], Ka[MOST], u[BETA], v[BETA], Bv[BETA];
    thi_matrix cross = thi_matrix_view(K, p->mean_n, q->mean_n, p->mean_n);
    assert_ok(ctx, thi_functions_cross(&p->mean_functions, &q->mean_functions, ctx, cross, false));
    thi_blas_gemv(THI_N, 1.0, cross, q->a, 0.0, Ka);
    double product = thi_blas_dot(p->mean_n, p->a, Ka);
    cross = thi_matrix_view(K, BETA, p->mean_n, BETA);
    assert_ok(ctx, thi_functions_cross(&old->functions, &p->mean_functions, ctx, cross, false));
    thi_blas_gemv(THI_N, 1.0, cross, p->a, 0.0, u);
    cross = thi_matrix_view(K, BETA, q->mean_n, BETA);
    assert_ok(ctx, thi_functions_cross(&old->functions, &q->mean_functions, ctx, cross, false));
    thi_blas_gemv(THI_N, 1.0, cross, q->a, 0.0, v);
    thi_blas_gemv(THI_N, 1.0, square((double *)B), v, 0.0, Bv);
    return product + thi_blas_dot(BETA, u, Bv);
}

/* Theorem 1, equation 13, term by term. */
static double equation_13(const thi_predictor *q, const thi_predictor *old)
{
    double K[BETA * BETA], B[BETA * BETA], B_old[BETA * BETA], R[BETA * BETA], KB[BETA * BETA], P[BETA * BETA];
    assert_ok(ctx, thi_functions_cross(&q->functions, &q->functions, ctx, square(K), true));
    precision_of(q, B);
    precision_of(old, B_old);
    double constant = trace_of_product(K, B_old) - resolvent(K, B_old, R) + mean_product(old, old, old, B_old);
    double log_det = resolvent(K, B, R);
    memcpy(P, K, sizeof P);
    thi_blas_gemm(THI_N, THI_N, 1.0, square(K), square(B_old), 0.0, square(KB));
    thi_blas_gemm(THI_N, THI_N, 1.0, square(KB), square(K), 1.0, square(P));
    return 0.5 * (log_det - trace_of_product(P, R) + mean_product(q, q, old, B_old)) -
           mean_product(q, old, old, B_old) + 0.5 * constant;
}

/* sum_n E_n of some rows. */
static double expected(const thi_predictor *p, const thiele_likelihood *lik, int64_t n, const double *X,
                       const double *y)
{
    double mu[ROWS], v[ROWS], E[ROWS], g[ROWS], h[ROWS], sum = 0.0;
    int64_t clipped = 0;
    thi_expect expect = {0};
    assert_ok(ctx, thi_predictor_marginals(p, ctx, n, X, mu, v, &clipped));
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    assert_ok(ctx, thi_expect_block(&expect, ctx, 0, n, y, mu, v, E, g, h, NULL));
    thi_expect_close(&expect);
    for (int64_t i = 0; i < n; i++) {
        sum += E[i];
    }
    return sum;
}

/* Two batches of counts: the bound of each is that of the new posterior, with the one before it as prior. */
static void test_divergence(void **state)
{
    (void)state;
    enum { HALF = ROWS / 2 };
    thiele_likelihood *lik = parse("poisson");
    for (int kind = 0; kind < KINDS; kind++) {
        world w;
        thi_predictor p, old;
        thi_online o;
        thi_online_settings settings = {.capacity = ROWS};
        double mu[ROWS], v[ROWS];
        open_kind(&w, kind);
        for (int i = 0; i < ROWS; i++) {
            w.y[i] = floor(exp(w.y[i]) + 0.3);
        }
        freeze(&w, &old); /* of the plain form with fewer functions than the new one */
        prepared(&w, &p);
        assert_near(equation_13(&p, &old), 0.0, 0.0, 1e-9);
        assert_ok(ctx, thi_online_open(&o, ctx, 1, &p, lik, &settings));
        for (int half = 0; half < 2; half++) {
            const double *X = w.X + half * HALF * DIMS, *y = w.y + half * HALF;
            assert_ok(ctx, thi_online_predict(&o, ctx, HALF, X, NULL, mu, v));
            assert_ok(ctx, thi_online_learn(&o, ctx, y, half * HALF));
            thi_online_freeze(&o, 0, &p);
            double kl = equation_13(&p, &old);
            assert_true(kl > 0.01);
            /* Terms of up to 70 cancel. */
            assert_near(o.bound, expected(&p, lik, HALF, X, y) - kl, 0.0, 1e-11);
            assert_true(o.bound > expected(&old, lik, HALF, X, y));
            assert_ok(ctx, thi_online_prepare(&old, ctx));
            thi_online_freeze(&o, 0, &old);
        }
        thi_online_close(&o);
        thi_predictor_clear(&p);
        thi_predictor_clear(&old);
        world_close(&w);
    }
    thiele_likelihood_destroy(lik);
}

/* --- files and forgetting ----------------------------------------------------------------------------------------- */

/* Opened again from what was frozen: the same q. */
static void test_frozen_and_back(void **state)
{
    (void)state;
    thiele_likelihood *lik = parse("gaussian(noise=0.11)");
    for (int kind = 0; kind < KINDS; kind++) {
        world w;
        thi_predictor p;
        thi_online o, again;
        thi_online_settings settings = {.capacity = ROWS};
        int64_t order[ROWS];
        thi_random_permutation((thi_stream){1, THI_RANDOM_DEMO, 0}, ROWS, order);
        open_kind(&w, kind);
        prepared(&w, &p);
        assert_ok(ctx, thi_online_open(&o, ctx, 1, &p, lik, &settings));
        learn_rows(&o, &w, order, 13, &p);
        assert_ok(ctx, thi_online_open(&again, ctx, 1, &p, lik, &settings));
        for (int c = 0; c < BETA; c++) {
            assert_all_near(again.latent->sum.T.data + c * (BETA + 1), o.latent->sum.T.data + c * (BETA + 1), BETA - c,
                            1e-9, 1e-9);
        }
        assert_all_near(again.latent->sum.t, o.latent->sum.t, BETA, 1e-9, 1e-9);
        assert_memory_equal(again.latent->c, o.latent->c, BETA * sizeof(double));
        thi_online_close(&again);
        thi_online_close(&o);
        thi_predictor_clear(&p);
        world_close(&w);
    }
    thiele_likelihood_destroy(lik);
}

/* All that beta holds is forgotten: the orthogonal posterior without sites is left, whose mean is that of the rest. */
static void test_forgetting(void **state)
{
    (void)state;
    thiele_likelihood *lik = parse("gaussian(noise=0.11)");
    for (int kind = 0; kind < KINDS; kind++) {
        world w, rest;
        thi_predictor p, want;
        thi_online o;
        thi_online_settings settings = {.capacity = ROWS, .forget = 1.0};
        double mean[2][TESTS], variance[2][TESTS], mu[ROWS], v[ROWS], missing[ROWS];
        open_kind(&w, kind);
        open_kind(&rest, kind | 1);
        memset(rest.factor, 0, sizeof rest.factor);
        memset(rest.t, 0, sizeof rest.t);
        freeze(&rest, &want);
        prepared(&w, &p);
        assert_ok(ctx, thi_online_open(&o, ctx, 1, &p, lik, &settings));
        for (int i = 0; i < ROWS; i++) {
            missing[i] = NAN;
        }
        assert_ok(ctx, thi_online_predict(&o, ctx, ROWS, w.X, NULL, mu, v));
        assert_ok(ctx, thi_online_learn(&o, ctx, missing, 0));
        thi_online_freeze(&o, 0, &p);
        predict(&p, &w, mean[0], variance[0]);
        predict(&want, &w, mean[1], variance[1]);
        assert_all_near(mean[0], mean[1], TESTS, 1e-9, 1e-9);
        assert_all_near(variance[0], variance[1], TESTS, 1e-9, 1e-9);
        thi_online_close(&o);
        thi_predictor_clear(&p);
        thi_predictor_clear(&want);
        world_close(&w);
        world_close(&rest);
    }
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_preparation),     cmocka_unit_test(test_gaussian),   cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_frozen_and_back), cmocka_unit_test(test_forgetting),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
