/*
 * Decoupled posteriors: with one basis for both they are the variational ones; the two forms agree; without a basis of
 * the covariance the mean is that of kernel ridge regression; natural steps, predictors, memory, threads, failures.
 */
#include "decoupled_testing.h"

#include "posterior/variational.h"
#include "testing_context.h"

/* --- helpers ------------------------------------------------------------------------------------------------------ */

/* chol(k(beta, beta)) with zeros above the diagonal. */
static void factor_beta(const world *w, double *Lb)
{
    thi_functions f;
    thi_matrix K = thi_matrix_view(Lb, BETA, BETA, BETA);
    assert_ok(ctx, thi_functions_make(&f, ctx, w->kernel, BETA, w->beta, w->general ? w->log_c_beta : NULL));
    assert_ok(ctx, thi_functions_cross(&f, &f, ctx, K, true));
    assert_ok(ctx, thi_chol(ctx, K));
    for (int j = 0; j < BETA; j++) {
        memset(Lb + j * BETA, 0, (size_t)j * sizeof *Lb);
    }
    thi_functions_clear(&f);
}

/* L with B = L L' = Lb^-T T Lb^-1, from the T that w->factor holds. */
static void factor_of_sites(const world *w, const double *Lb, double *L)
{
    thi_matrix T = thi_matrix_view(L, BETA, BETA, BETA), factor = thi_matrix_view((double *)Lb, BETA, BETA, BETA);
    memcpy(L, w->factor, BETA * BETA * sizeof *L);
    thi_symmetrise(T);
    thi_blas_trsm(THI_LEFT, THI_T, 1.0, factor, T);
    thi_blas_trsm(THI_RIGHT, THI_N, 1.0, factor, T);
    assert_ok(ctx, thi_chol(ctx, T));
}

/* m = (I + T)^-1 t */
static void mean_of_sites(const world *w, double *m)
{
    double B[BETA * BETA];
    thi_matrix root = thi_matrix_view(B, BETA, BETA, BETA);
    memcpy(B, w->factor, sizeof B);
    memcpy(m, w->t, BETA * sizeof *m);
    for (int i = 0; i < BETA; i++) {
        B[i + i * BETA] += 1.0;
    }
    assert_ok(ctx, thi_chol(ctx, root));
    thi_blas_trsv(THI_N, root, m);
    thi_blas_trsv(THI_T, root, m);
}

typedef struct answer {
    double mu[ROWS * LATENTS], v[ROWS * LATENTS], g[ROWS * LATENTS], h[ROWS * LATENTS], kl;
} answer;

static void ask(world *w, answer *a)
{
    thi_prior prior = world_prior(w);
    thi_decoupled_q q = world_q(w);
    thi_decoupled_columns columns = all_columns(w);
    assert_ok(ctx, thi_decoupled_begin(w->engine, ctx, &prior, &q));
    assert_ok(ctx, thi_decoupled_marginals(w->engine, ctx, ROWS, w->X, a->mu, a->v));
    assert_ok(ctx, thi_decoupled_end(w->engine, ctx, &columns, &a->kl, NULL));
}

/* The variational posterior with inducing inputs beta and these sites; a predictor for each latent. */
static void ask_variational(const world *w, const double *Lb, answer *a, thi_predictor *predictor)
{
    static const int same[LATENTS];
    int Q = w->latents;
    thi_shape shape = {.latents = Q,
                       .components = 1,
                       .dims = DIMS,
                       .inducing = BETA,
                       .capacity = ROWS,
                       .whitened = true,
                       .group = same};
    double mu[ROWS * LATENTS], variance[ROWS * LATENTS];
    thi_variational *v = NULL;
    thi_sites sites[LATENTS];
    thi_prior prior = world_prior(w);
    const double *Z = w->beta;
    assert_ok(ctx, thi_variational_open(&v, ctx, &shape));
    for (int p = 0; p < Q; p++) {
        assert_ok(ctx, thi_sites_alloc(&sites[p], ctx, BETA));
        memcpy(sites[p].sum.T.data, w->factor + p * BETA * BETA, BETA * BETA * sizeof(double));
        memcpy(sites[p].L.data, Lb, BETA * BETA * sizeof(double));
        memcpy(sites[p].sum.t, w->t + p * BETA, BETA * sizeof(double));
    }
    assert_ok(ctx, thi_variational_begin(v, ctx, &prior, &Z, NULL, sites, true));
    assert_ok(ctx, thi_variational_marginals(v, ctx, ROWS, w->X, mu, variance));
    for (int i = 0; i < ROWS * Q; i++) {
        a->mu[i / Q + i % Q * ROWS] = mu[i];
        a->v[i / Q + i % Q * ROWS] = variance[i];
    }
    assert_ok(ctx, thi_variational_end(v, ctx, NULL, &a->kl, NULL));
    for (int p = 0; p < Q; p++) {
        assert_ok(ctx, thi_variational_freeze(v, ctx, p, &predictor[p]));
        thi_sites_free(&sites[p]);
    }
    thi_variational_close(v);
}

static void compare(const world *w, const answer *got, const answer *want)
{
    assert_all_near(got->mu, want->mu, ROWS * w->latents, 1e-9, 1e-9);
    assert_all_near(got->v, want->v, ROWS * w->latents, 1e-9, 1e-9);
    assert_near(got->kl, want->kl, 1e-9, 1e-9);
}

static void predict(const thi_predictor *p, double *mean, double *variance)
{
    double covariance[TESTS * TESTS], again[TESTS], X[DIMS * TESTS];
    int64_t clipped = 0;
    test_normals(DIMS * TESTS, 3, X);
    assert_ok(ctx, thi_predictor_marginals(p, ctx, TESTS, X, mean, variance, &clipped));
    assert_ok(ctx, thi_predictor_joint(p, ctx, 0, TESTS, X, again, covariance));
    assert_all_near(again, mean, TESTS, 1e-12, 1e-12);
    for (int i = 0; i < TESTS; i++) {
        assert_near(covariance[i * (TESTS + 1)], variance[i], 1e-10, 1e-12);
    }
}

/* --- identities --------------------------------------------------------------------------------------------------- */

/* Both predict the same. */
static void compare_predictors(thi_predictor *one, thi_predictor *other)
{
    double mean[2][TESTS], variance[2][TESTS];
    predict(one, mean[0], variance[0]);
    predict(other, mean[1], variance[1]);
    assert_all_near(mean[1], mean[0], TESTS, 1e-9, 1e-9);
    assert_all_near(variance[1], variance[0], TESTS, 1e-9, 1e-9);
    thi_predictor_clear(one);
    thi_predictor_clear(other);
}

/* An empty mean basis, and one that lies within beta, leave the variational posterior, of each latent. */
static void test_orthogonal_is_variational(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        world w;
        answer got, want;
        double Lb[BETA * BETA];
        thi_predictor predictor[LATENTS], own;
        world_open_many(&w, ctx, SE_KERNEL, true, false, k < 2 ? 1 : LATENTS);
        factor_beta(&w, Lb);
        ask_variational(&w, Lb, &want, predictor);
        w.n_alpha = k % 2 == 1 ? BETA : 0;
        memcpy(w.alpha, w.beta, sizeof w.beta);
        ask(&w, &got);
        compare(&w, &got, &want);
        for (int p = 0; p < w.latents; p++) {
            assert_ok(ctx, thi_decoupled_freeze(w.engine, ctx, p, &own));
            compare_predictors(&predictor[p], &own);
        }
        world_close(&w);
    }
}

/* Several latents that share bases are what each is alone: marginals, KL, natural steps. */
static void test_many_are_each(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        world all, one;
        answer got, alone;
        double kl = 0.0;
        bool orthogonal = k % 2 == 1, general = k >= 2;
        world_open_many(&all, ctx, SE_KERNEL, orthogonal, general, LATENTS);
        ask(&all, &got);
        expect_gaussian(&all, got.mu, got.v, got.g, got.h);
        assert_ok(ctx, thi_decoupled_pull(all.engine, ctx, got.g, got.h, &(thi_decoupled_bar){0}));
        for (int p = 0; p < LATENTS; p++) {
            size_t square = BETA * BETA * sizeof(double);
            world_open(&one, ctx, SE_KERNEL, orthogonal, general);
            memcpy(one.a, all.a + p * ALPHA, ALPHA * sizeof(double));
            memcpy(one.factor, all.factor + p * BETA * BETA, square);
            memcpy(one.t, all.t + p * BETA, BETA * sizeof(double));
            ask(&one, &alone);
            assert_all_near(got.mu + p * ROWS, alone.mu, ROWS, 1e-11, 1e-11);
            assert_all_near(got.v + p * ROWS, alone.v, ROWS, 1e-11, 1e-11);
            kl += alone.kl;
            if (orthogonal) {
                assert_ok(ctx, thi_decoupled_pull(one.engine, ctx, got.g + p * ROWS, got.h + p * ROWS,
                                                  &(thi_decoupled_bar){0}));
                thi_decoupled_step(one.engine, 0.3, one.sites);
            }
            thi_predictor predictor[2];
            assert_ok(ctx, thi_decoupled_freeze(all.engine, ctx, p, &predictor[0]));
            assert_ok(ctx, thi_decoupled_freeze(one.engine, ctx, 0, &predictor[1]));
            compare_predictors(&predictor[0], &predictor[1]);
            if (orthogonal && p == LATENTS - 1) {
                thi_decoupled_step(all.engine, 0.3, all.sites);
                assert_all_near(all.t + p * BETA, one.t, BETA, 1e-10, 1e-10);
            }
            world_close(&one);
        }
        assert_near(got.kl, kl, 1e-11, 1e-11);
        world_close(&all);
    }
}

/* alpha = beta = Z, a = Kzz^-1 u, B from S: the variational bound and predictions. */
static void test_plain_is_variational(void **state)
{
    (void)state;
    world w;
    answer got, want;
    double Lb[BETA * BETA], L[BETA * BETA], mean[2][TESTS], variance[2][TESTS];
    thi_predictor predictor[2];
    world_open(&w, ctx, SE_KERNEL, true, false);
    factor_beta(&w, Lb);
    ask_variational(&w, Lb, &want, &predictor[0]);
    factor_of_sites(&w, Lb, L);
    mean_of_sites(&w, w.a);
    thi_blas_trsv(THI_T, thi_matrix_view(Lb, BETA, BETA, BETA), w.a);
    memcpy(w.alpha, w.beta, sizeof w.beta);
    memcpy(w.factor, L, sizeof L);
    w.n_alpha = BETA;
    thi_decoupled_close(w.engine);
    w.orthogonal = false;
    thi_decoupled_shape shape = world_shape(&w);
    assert_ok(ctx, thi_decoupled_open(&w.engine, ctx, &shape));
    ask(&w, &got);
    compare(&w, &got, &want);
    assert_ok(ctx, thi_decoupled_freeze(w.engine, ctx, 0, &predictor[1]));
    for (int i = 0; i < 2; i++) {
        predict(&predictor[i], mean[i], variance[i]);
        thi_predictor_clear(&predictor[i]);
    }
    assert_all_near(mean[1], mean[0], TESTS, 1e-9, 1e-9);
    assert_all_near(variance[1], variance[0], TESTS, 1e-9, 1e-9);
    world_close(&w);
}

/* Any orthogonal posterior is a plain one over alpha and beta together; of both the predictor is the posterior. */
static void check_forms(bool general)
{
    world w;
    answer got, want;
    double Lb[BETA * BETA], L[BETA * BETA], mean[ROWS], variance[ROWS];
    int64_t clipped = 0;
    thi_predictor p;
    enum { FEWER = ALPHA - BETA };
    world_open(&w, ctx, SE_KERNEL, true, general);
    w.n_alpha = FEWER;
    ask(&w, &want);
    assert_ok(ctx, thi_decoupled_freeze(w.engine, ctx, 0, &p));
    assert_int_equal(p.mean_n, ALPHA);
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, ROWS, w.X, mean, variance, &clipped));
    assert_all_near(mean, want.mu, ROWS, 1e-9, 1e-9);
    assert_all_near(variance, want.v, ROWS, 1e-9, 1e-9);
    memcpy(w.alpha, p.mean_basis, sizeof w.alpha);
    memcpy(w.a, p.a, ALPHA * sizeof *w.a);
    if (general) {
        memcpy(w.log_c_alpha, p.mean_log_c, sizeof w.log_c_alpha);
    }
    thi_predictor_clear(&p);
    factor_beta(&w, Lb);
    factor_of_sites(&w, Lb, L);
    memcpy(w.factor, L, sizeof L);
    w.n_alpha = ALPHA;
    thi_decoupled_close(w.engine);
    w.orthogonal = false;
    thi_decoupled_shape shape = world_shape(&w);
    assert_ok(ctx, thi_decoupled_open(&w.engine, ctx, &shape));
    ask(&w, &got);
    compare(&w, &got, &want);
    assert_ok(ctx, thi_decoupled_freeze(w.engine, ctx, 0, &p));
    assert_ok(ctx, thi_predictor_marginals(&p, ctx, ROWS, w.X, mean, variance, &clipped));
    assert_all_near(mean, want.mu, ROWS, 1e-9, 1e-9);
    assert_all_near(variance, want.v, ROWS, 1e-9, 1e-9);
    thi_predictor_clear(&p);
    world_close(&w);
}

static void test_forms(void **state)
{
    (void)state;
    check_forms(false);
    check_forms(true);
}

static const char *const stretched[] = {SE_KERNEL, "matern12(ard)", "matern32", "matern52(ard, variance~1.3)"};
enum { STRETCHED = sizeof stretched / sizeof *stretched };

/*
 * Functions with scales from a tenth to ten times the kernel's have a covariance that can be factored as it is: nothing
 * but rounding, some 1e-14, could make an eigenvalue negative, and the least one of these is far above it.
 */
static void test_stretched(void **state)
{
    (void)state;
    enum { MANY = 60 };
    for (int k = 0; k < STRETCHED; k++) {
        double X[DIMS * MANY], log_c[DIMS * MANY], K[MANY * MANY], diagonal[MANY];
        thi_matrix view = thi_matrix_view(K, MANY, MANY, MANY);
        thiele_kernel *kernel;
        thi_functions f;
        assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, stretched[k], DIMS, NULL));
        test_normals(DIMS * MANY, 21, X);
        test_normals(DIMS * MANY, 22, log_c);
        for (int i = 0; i < DIMS * MANY; i++) {
            X[i] *= 6.0;
        }
        assert_ok(ctx, thi_functions_make(&f, ctx, kernel, MANY, X, log_c));
        assert_ok(ctx, thi_functions_cross(&f, &f, ctx, view, true));
        assert_ok(ctx, thi_functions_diagonal(&f, ctx, diagonal));
        for (int i = 0; i < MANY; i++) {
            assert_near(K[i + i * MANY], diagonal[i], 1e-13, 0.0);
        }
        assert_ok(ctx, thi_chol(ctx, view));
        thi_functions_clear(&f);
        thiele_kernel_destroy(kernel);
    }
}

/* Factors c = 1 are plain points. */
static void test_unit_factors(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * STRETCHED; k++) {
        world w;
        answer got, want;
        world_open(&w, ctx, stretched[k / 2], k % 2 == 1, false);
        ask(&w, &want);
        memset(w.log_c_alpha, 0, sizeof w.log_c_alpha);
        memset(w.log_c_beta, 0, sizeof w.log_c_beta);
        w.general = true;
        ask(&w, &got);
        assert_all_near(got.mu, want.mu, ROWS, 1e-11, 1e-11);
        assert_all_near(got.v, want.v, ROWS, 1e-11, 1e-11);
        assert_near(got.kl, want.kl, 1e-11, 1e-11);
        world_close(&w);
    }
}

/* Without beta the bound is highest at the mean of kernel ridge regression, (K + noise)^-1 (y - m). */
static void test_ridge(void **state)
{
    (void)state;
    for (int orthogonal = 0; orthogonal < 2; orthogonal++) {
        world w;
        gradient g = {0};
        answer got;
        thi_inputs inputs;
        double K[ALPHA * ALPHA], mean[ALPHA];
        thi_matrix view = thi_matrix_view(K, ALPHA, ALPHA, ALPHA);
        world_open(&w, ctx, SE_KERNEL, orthogonal, false);
        w.n_beta = 0;
        /* The rows are the basis; those beyond it tell nothing. */
        memcpy(w.alpha, w.X, sizeof w.alpha);
        for (int i = ALPHA; i < ROWS; i++) {
            w.noise[i] = 1e30;
        }
        assert_ok(ctx, thi_inputs_make(&inputs, ctx, w.kernel, ALPHA, w.alpha));
        assert_ok(ctx, thi_kernel_fill(w.kernel, ctx, &inputs, &inputs, view, true));
        thi_inputs_clear(&inputs);
        thi_mean_fill(THI_MEAN_LINEAR, w.mean_parameter, ALPHA, DIMS, w.alpha, mean);
        for (int i = 0; i < ALPHA; i++) {
            K[i + i * ALPHA] += w.noise[i];
            w.a[i] = w.y[i] - mean[i];
        }
        assert_ok(ctx, thi_chol(ctx, view));
        thi_blas_trsv(THI_N, view, w.a);
        thi_blas_trsv(THI_T, view, w.a);
        thi_decoupled_bar bar = {.a = thi_matrix_view(g.a, ALPHA, 1, ALPHA)};
        world_bound(&w, ctx, &bar);
        for (int i = 0; i < ALPHA; i++) {
            assert_near(g.a[i], 0.0, 0.0, 1e-10);
        }
        ask(&w, &got);
        for (int i = 0; i < ROWS; i++) {
            assert_near(got.v[i], 1.3, 1e-14, 0.0);
        }
        thi_predictor p;
        double variance[TESTS];
        assert_ok(ctx, thi_decoupled_freeze(w.engine, ctx, 0, &p));
        predict(&p, mean, variance);
        assert_near(variance[0], 1.3, 1e-14, 0.0);
        thi_predictor_clear(&p);
        world_close(&w);
    }
}

/*
 * With a function at every row, at the mean of kernel ridge regression and the best sites, the tighter bound is
 *   -y'(K + N)^-1 y/2 - log|Q + N|/2 - sum log(1 + r_i/N_i)/2 - n/2 log 2 pi
 * (decoupled_noise.c), by dense matrices. Rows beyond the basis have no weight, and tell -log(2 pi N_i)/2 each.
 */
static void test_collapsed(void **state)
{
    (void)state;
    world w;
    answer a;
    thi_inputs rows, beta;
    double K[ALPHA * ALPHA], Q[ALPHA * ALPHA], V[BETA * ALPHA], Lb[BETA * BETA], y[ALPHA], want = 0.0;
    thi_matrix Kview = thi_matrix_view(K, ALPHA, ALPHA, ALPHA), Qview = thi_matrix_view(Q, ALPHA, ALPHA, ALPHA);
    thi_matrix Vview = thi_matrix_view(V, BETA, ALPHA, BETA);
    world_open(&w, ctx, SE_KERNEL, true, false);
    w.tight = true;
    memcpy(w.alpha, w.X, sizeof w.alpha);
    factor_beta(&w, Lb);
    assert_ok(ctx, thi_inputs_make(&rows, ctx, w.kernel, ALPHA, w.alpha));
    assert_ok(ctx, thi_inputs_make(&beta, ctx, w.kernel, BETA, w.beta));
    assert_ok(ctx, thi_kernel_fill(w.kernel, ctx, &rows, &rows, Kview, false));
    assert_ok(ctx, thi_kernel_fill(w.kernel, ctx, &beta, &rows, Vview, false));
    thi_inputs_clear(&rows);
    thi_inputs_clear(&beta);
    assert_ok(ctx, thi_tri_solve(ctx, THI_N, thi_matrix_view(Lb, BETA, BETA, BETA), Vview));
    assert_ok(ctx, thi_multiply(ctx, THI_T, THI_N, 1.0, Vview, Vview, 0.0, Qview, false));
    thi_mean_fill(THI_MEAN_LINEAR, w.mean_parameter, ALPHA, DIMS, w.alpha, y);
    for (int i = 0; i < ROWS; i++) {
        w.noise[i] = i < ALPHA ? w.noise[i] : 1e30;
        want -= 0.5 * log(6.283185307179586 * (i < ALPHA ? 1.0 : w.noise[i]));
    }
    for (int i = 0; i < ALPHA; i++) {
        int at = i + i * ALPHA;
        want -= 0.5 * log1p((K[at] - Q[at]) / w.noise[i]);
        K[at] += w.noise[i];
        Q[at] += w.noise[i];
        w.a[i] = w.y[i] - y[i];
    }
    assert_ok(ctx, thi_chol(ctx, Qview));
    want -= 0.5 * thi_chol_logdet(Qview);
    assert_ok(ctx, thi_chol(ctx, Kview));
    thi_blas_trsv(THI_N, Kview, w.a);
    want -= 0.5 * thi_blas_dot(ALPHA, w.a, w.a);
    thi_blas_trsv(THI_T, Kview, w.a);
    ask(&w, &a);
    expect_gaussian(&w, a.mu, a.v, a.g, a.h);
    assert_ok(ctx, thi_decoupled_pull(w.engine, ctx, a.g, a.h, &(thi_decoupled_bar){0}));
    thi_natural sites = {.T = thi_matrix_view(w.factor, BETA, BETA, BETA), .t = w.t};
    thi_decoupled_step(w.engine, 1.0, &sites);
    assert_near(world_bound(&w, ctx, NULL), want, 1e-10, 1e-10);
    world_close(&w);
}

/* With Gaussian noise one natural step over all rows is the optimum: a second one changes nothing. */
static void test_natural_step(void **state)
{
    (void)state;
    world w;
    answer a;
    double before[BETA * BETA + BETA];
    thi_decoupled_bar none = {0};
    world_open(&w, ctx, SE_KERNEL, true, true);
    double first = world_bound(&w, ctx, NULL);
    for (int round = 0; round < 2; round++) {
        ask(&w, &a);
        expect_gaussian(&w, a.mu, a.v, a.g, a.h);
        assert_ok(ctx, thi_decoupled_pull(w.engine, ctx, a.g, a.h, &none));
        memcpy(before, w.factor, BETA * BETA * sizeof *before);
        memcpy(before + BETA * BETA, w.t, BETA * sizeof *before);
        thi_natural sites = {.T = thi_matrix_view(w.factor, BETA, BETA, BETA), .t = w.t};
        thi_decoupled_step(w.engine, 1.0, &sites);
    }
    for (int j = 0; j < BETA; j++) {
        assert_all_near(w.factor + j + j * BETA, before + j + j * BETA, BETA - j, 1e-10, 1e-10);
    }
    assert_all_near(w.t, before + BETA * BETA, BETA, 1e-9, 1e-9);
    double best = world_bound(&w, ctx, NULL);
    assert_true(best > first);
    /* Any other t is worse. */
    for (int i = 0; i < BETA; i++) {
        double kept = w.t[i];
        w.t[i] = kept + 0.1;
        assert_true(world_bound(&w, ctx, NULL) < best);
        w.t[i] = kept - 0.1;
        assert_true(world_bound(&w, ctx, NULL) < best);
        w.t[i] = kept;
    }
    world_close(&w);
}

/* --- cost and conduct --------------------------------------------------------------------------------------------- */

/* A large mean basis of several portions within a limit that M_alpha^2 numbers would break a hundred times over. */
static void test_memory(void **state)
{
    (void)state;
    enum { MANY = 20000, COLUMNS = 64 };
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    options.memory_limit = (size_t)24 << 20;
    thiele_context *small = NULL;
    assert_int_equal(thiele_context_create(&small, &options), THIELE_OK);
    world w;
    double *points = malloc(sizeof(double) * MANY * (4 * DIMS + 2)), *a = points + MANY * DIMS, *abar = a + MANY;
    double *bars = abar + MANY, mu[ROWS], v[ROWS], g[ROWS], h[ROWS], kl, theta[PARAMETERS] = {0};
    int64_t index[COLUMNS];
    test_normals(MANY * DIMS, 1, points);
    test_normals(MANY, 2, a);
    memset(abar, 0, sizeof(double) * MANY * (1 + DIMS));
    for (int64_t i = 0; i < COLUMNS; i++) {
        index[i] = i * 311;
    }
    world_open(&w, small, SE_KERNEL, true, false);
    thi_decoupled_close(w.engine);
    thi_decoupled_shape shape = world_shape(&w);
    shape.columns = COLUMNS;
    assert_ok(small, thi_decoupled_open(&w.engine, small, &shape));
    thi_prior prior = world_prior(&w);
    thi_decoupled_q q = world_q(&w);
    thi_decoupled_bar bar = {.theta = theta, .a = thi_matrix_view(abar, MANY, 1, MANY), .alpha = bars};
    q.alpha = (thi_decoupled_basis){MANY, points, NULL};
    q.a = thi_matrix_view(a, MANY, 1, MANY);
    assert_ok(small, thi_decoupled_begin(w.engine, small, &prior, &q));
    assert_ok(small, thi_decoupled_marginals(w.engine, small, ROWS, w.X, mu, v));
    expect_gaussian(&w, mu, v, g, h);
    assert_ok(small, thi_decoupled_pull(w.engine, small, g, h, &bar));
    assert_ok(small, thi_decoupled_end(w.engine, small, &(thi_decoupled_columns){COLUMNS, index}, &kl, &bar));
    world_close(&w);
    free(points);
    assert_int_equal(thi_memory_held(small), 0);
    thiele_context_destroy(small);
}

static void test_threads(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        double value[2];
        gradient g[2];
        memset(g, 0, sizeof g);
        for (int i = 0; i < 2; i++) {
            thiele_context *own = test_context(i + 1);
            world w;
            world_open_many(&w, own, SE_KERNEL, k % 2 == 1, k > 1, 1 + k % 3);
            thi_decoupled_bar bar = gradient_bar(&g[i], &w);
            value[i] = world_bound(&w, own, &bar);
            world_close(&w);
            thiele_context_destroy(own);
        }
        assert_true(value[0] == value[1]);
        assert_memory_equal(&g[0], &g[1], sizeof g[0]);
    }
}

static thiele_status everything(world *w, thiele_context *own)
{
    gradient g = {0};
    thi_decoupled_bar bar = gradient_bar(&g, w);
    thi_predictor p = {0};
    double value, mean[TESTS], variance[TESTS];
    int64_t clipped = 0;
    thiele_status status;
    THI_TRY(world_value(w, own, all_columns(w), &value, &bar));
    THI_TRY(thi_decoupled_freeze(w->engine, own, 0, &p));
    THI_TRY(thi_predictor_marginals(&p, own, TESTS, w->Xtest, mean, variance, &clipped));
out:
    thi_predictor_clear(&p);
    return status;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *own = test_context(1);
    world w;
    thi_decoupled_shape shape = {
        .D = DIMS, .latents = 2, .orthogonal = true, .beta = BETA, .rows = ROWS, .columns = ALPHA};
    thi_decoupled *engine = NULL;
    for (int64_t nth = 1; thi_fail_allocation(own, nth, false), engine == NULL; nth++) {
        thiele_status status = thi_decoupled_open(&engine, own, &shape);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_true((status == THIELE_OK) == (engine != NULL));
    }
    thi_fail_allocation(own, 0, false);
    thi_decoupled_close(engine);
    world_open_many(&w, own, SE_KERNEL, true, true, 2);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth++) {
        thi_fail_allocation(own, nth, false);
        status = everything(&w, own);
        thi_fail_allocation(own, 0, false);
    }
    assert_ok(own, status);
    world_close(&w);
    assert_int_equal(thi_memory_held(own), 0);
    thiele_context_destroy(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orthogonal_is_variational),
        cmocka_unit_test(test_many_are_each),
        cmocka_unit_test(test_plain_is_variational),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_stretched),
        cmocka_unit_test(test_unit_factors),
        cmocka_unit_test(test_collapsed),
        cmocka_unit_test(test_ridge),
        cmocka_unit_test(test_natural_step),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
