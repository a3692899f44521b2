/*
 * Learning from rows once (fit/online.h): batches in any order end where all rows together do (Gaussian noise), other
 * likelihoods close to it; a frozen posterior comes back; the same bits on any number of threads.
 */
#include "sparse_testing.h"
#include "testing_context.h"

#include "fit/online.h"
#include "posterior/variational.h"

/* The world's posterior before any row: q(w) = N(0, I), and what thi_sparse finds for all of them. */
static void prior_of(world *w, thi_predictor *p)
{
    thi_natural_zero(&w->sums);
    assert_ok(ctx, thi_sparse_set(&w->sparse, ctx, &w->sums));
    assert_ok(ctx, thi_sparse_freeze(&w->sparse, ctx, THI_CONDITIONAL_FULL, p));
}

static thiele_likelihood *parse(const char *text, int classes)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, 1, classes));
    return lik;
}

/* Learns rows order[0 ..] in batches of the given size. */
static void learn_rows(thi_online *o, thiele_context *c, const world *w, const double *y, const int64_t *order,
                       int64_t size)
{
    double X[DIMS * ROWS], part[ROWS], mu[2 * ROWS], v[2 * ROWS];
    for (int64_t first = 0; first < ROWS; first += size) {
        int64_t n = ROWS - first < size ? ROWS - first : size;
        for (int64_t i = 0; i < n; i++) {
            int64_t row = order != NULL ? order[first + i] : first + i;
            memcpy(X + i * DIMS, w->X + row * DIMS, DIMS * sizeof *X);
            part[i] = y[row];
        }
        assert_ok(c, thi_online_predict(o, c, n, X, NULL, mu, v));
        assert_ok(c, thi_online_learn(o, c, part, first));
    }
}

static void assert_same_posterior(const thi_predictor *got, const thi_predictor *want, double tolerance, const world *w)
{
    double mean[2][TESTS], variance[2][TESTS];
    int64_t clipped = 0;
    assert_ok(ctx, thi_predictor_marginals(got, ctx, TESTS, w->Xtest, mean[0], variance[0], &clipped));
    assert_ok(ctx, thi_predictor_marginals(want, ctx, TESTS, w->Xtest, mean[1], variance[1], &clipped));
    assert_all_near(mean[0], mean[1], TESTS, tolerance, tolerance);
    assert_all_near(variance[0], variance[1], TESTS, tolerance, tolerance);
}

/* --- Gaussian noise ----------------------------------------------------------------------------------------------- */

static void check_gaussian(double none, double diagonal)
{
    static const int64_t sizes[] = {ROWS, 20, 7, 1};
    world w;
    thi_predictor prior = {0}, want = {0};
    thiele_likelihood *lik = parse("gaussian(noise=0.11)", 0);
    int64_t order[ROWS];
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, none, diagonal, 0.0);
    prior_of(&w, &prior);
    world_fit(&w, ctx);
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &want));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        thi_online o;
        thi_online_settings settings = {.capacity = ROWS,
                                        .weight = {[THI_RESIDUAL_NONE] = none, [THI_RESIDUAL_DIAGONAL] = diagonal}};
        thi_random_permutation((thi_stream){1, THI_RANDOM_DEMO, i}, ROWS, order);
        assert_ok(ctx, thi_online_open(&o, ctx, 1, &prior, lik, &settings));
        learn_rows(&o, ctx, &w, w.y, i > 0 ? order : NULL, sizes[i]);
        /* Both hold the sums themselves. */
        for (int64_t c = 0; c < w.M; c++) {
            assert_all_near(o.latent->sum.T.data + c + c * w.M, w.sums.T.data + c + c * w.M, w.M - c, 1e-9, 1e-9);
        }
        assert_all_near(o.latent->sum.t, w.sums.t, w.M, 1e-9, 1e-9);
        thi_predictor frozen = {0};
        thi_prior p = world_prior(&w);
        assert_ok(ctx, thi_predictor_begin(&frozen, ctx, &p, w.M, w.Z, 1));
        memcpy(frozen.L.data, prior.L.data, (size_t)(w.M * w.M) * sizeof(double));
        assert_ok(ctx, thi_alloc(ctx, &frozen.R, 1, sizeof *frozen.R));
        assert_ok(ctx, thi_matrix_alloc(frozen.R, ctx, w.M, w.M));
        frozen.plus = THI_PLUS_PRECISION;
        thi_online_freeze(&o, 0, &frozen);
        assert_same_posterior(&frozen, &want, 1e-8, &w);
        thi_predictor_clear(&frozen);
        thi_online_close(&o);
    }
    thi_predictor_clear(&prior);
    thi_predictor_clear(&want);
    thiele_likelihood_destroy(lik);
    world_close(&w);
}

/* From the model of two whole blocks on, other rows one by one: that of all of them in the same blocks. */
static void check_half(double none, double diagonal, double block)
{
    world w;
    thi_predictor half = {0}, want = {0};
    thiele_likelihood *lik = parse("gaussian(noise=0.11)", 0);
    thi_online o;
    thi_online_settings settings = {.capacity = ROWS, .weight = {none, diagonal, block}};
    double mu[ROWS], v[ROWS];
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, none, diagonal, block);
    assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, 2, w.block, 1.0, &w.sums));
    assert_ok(ctx, thi_sparse_set(&w.sparse, ctx, &w.sums));
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &half));
    int64_t first = w.partition.start[2];
    assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, ROWS - first, w.single + first, 1.0, &w.sums));
    assert_ok(ctx, thi_sparse_set(&w.sparse, ctx, &w.sums));
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &want));
    assert_ok(ctx, thi_online_open(&o, ctx, 1, &half, lik, &settings));
    for (int64_t n = 7; first < ROWS; first += n) {
        n = ROWS - first < n ? ROWS - first : n;
        assert_ok(ctx, thi_online_predict(&o, ctx, n, w.X + first * DIMS, NULL, mu, v));
        assert_ok(ctx, thi_online_learn(&o, ctx, w.y + first, first));
    }
    thi_online_freeze(&o, 0, &half);
    assert_same_posterior(&half, &want, 1e-9, &w);
    thi_online_close(&o);
    thi_predictor_clear(&half);
    thi_predictor_clear(&want);
    thiele_likelihood_destroy(lik);
    world_close(&w);
}

static void test_half(void **state)
{
    (void)state;
    check_half(1.0, 0.0, 0.0);
    check_half(0.0, 1.0, 0.0);
    check_half(0.0, 0.0, 1.0);
    check_half(0.4, 0.2, 0.4);
}

static void test_gaussian(void **state)
{
    (void)state;
    check_gaussian(1.0, 0.0);
    check_gaussian(0.0, 1.0);
    check_gaussian(0.4, 0.6);
}

/* --- other likelihoods -------------------------------------------------------------------------------------------- */

/* Rows that a likelihood may have made of the world's function. */
static void make_targets(const world *w, const char *name, double *y)
{
    for (int64_t i = 0; i < ROWS; i++) {
        double f = sin(2.0 * w->X[i * DIMS]) + 0.4 * w->X[i * DIMS + 1];
        double u = thi_random_uniform((thi_stream){3, THI_RANDOM_DEMO, 0}, (uint64_t)i);
        y[i] = strncmp(name, "poisson", 7) == 0     ? floor(2.0 * u * exp(f))
               : strncmp(name, "bernoulli", 9) == 0 ? (u < 1.0 / (1.0 + exp(-2.0 * f)) ? 1.0 : -1.0)
                                                    : w->y[i] + (i % 9 == 0 ? 4.0 : 0.0);
    }
}

/* The batch posterior by damped natural steps of the variational engine on all rows. */
static void fit_batch(const world *w, const thiele_likelihood *lik, const double *y, thi_predictor *out)
{
    thi_shape shape = {.latents = 1,
                       .components = 1,
                       .dims = DIMS,
                       .inducing = w->M,
                       .capacity = ROWS,
                       .whitened = true,
                       .fixed_Z = true,
                       .steps = true};
    thi_variational *engine = NULL;
    thi_sites sites = {0};
    thi_expect expect = {0};
    thi_prior prior = world_prior(w);
    const double *Z = w->Z;
    double mu[ROWS], v[ROWS], E[ROWS], g[ROWS], h[ROWS], kl;
    assert_ok(ctx, thi_variational_open(&engine, ctx, &shape));
    assert_ok(ctx, thi_sites_alloc(&sites, ctx, w->M));
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, NULL));
    for (int step = 0; step <= 200; step++) {
        assert_ok(ctx, thi_variational_begin(engine, ctx, &prior, &Z, NULL, &sites, step == 0));
        assert_ok(ctx, thi_variational_marginals(engine, ctx, ROWS, w->X, mu, v));
        assert_ok(ctx, thi_expect_block(&expect, ctx, 0, ROWS, y, mu, v, E, g, h, NULL));
        assert_ok(ctx, thi_variational_pull(engine, ctx, g, h));
        assert_ok(ctx, thi_variational_end(engine, ctx, NULL, &kl, NULL));
        if (step < 200) {
            thi_variational_step(engine, 0.5, &sites);
        }
    }
    assert_ok(ctx, thi_variational_freeze(engine, ctx, 0, out));
    thi_expect_close(&expect);
    thi_sites_free(&sites);
    thi_variational_close(engine);
}

/* All rows as one batch: the fixed point is the same. In batches: close to it, and closer than the prior is. */
static void check_other(const char *text, double apart)
{
    world w;
    thi_predictor prior = {0}, want = {0};
    thiele_likelihood *lik = parse(text, 0);
    double y[ROWS], mu[TESTS], v[TESTS], mean[TESTS], variance[TESTS];
    int64_t clipped = 0;
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_CONSTANT);
    make_targets(&w, text, y);
    world_engine(&w, ctx, 1.0, 0.0, 0.0);
    prior_of(&w, &prior);
    fit_batch(&w, lik, y, &want);
    assert_ok(ctx, thi_predictor_marginals(&want, ctx, TESTS, w.Xtest, mean, variance, &clipped));
    for (int64_t size = ROWS; size >= 5; size /= 3) {
        thi_online o;
        thi_online_settings settings = {.capacity = ROWS};
        assert_ok(ctx, thi_online_open(&o, ctx, 1, &prior, lik, &settings));
        learn_rows(&o, ctx, &w, y, NULL, size);
        assert_ok(ctx, thi_online_predict(&o, ctx, TESTS, w.Xtest, NULL, mu, v));
        for (int i = 0; i < TESTS; i++) {
            /* Rounds end when they gain less than 1e-7 nats a row: errors of their square root. */
            double tolerance = size == ROWS ? 1e-3 : apart;
            assert_near(mu[i], mean[i], 0.0, tolerance * sqrt(variance[i]));
            assert_near(v[i], variance[i], tolerance, 0.0);
        }
        thi_online_close(&o);
    }
    thi_predictor_clear(&prior);
    thi_predictor_clear(&want);
    thiele_likelihood_destroy(lik);
    world_close(&w);
}

/*
 * Batches that are visited again, what each said before taken away first: the fixed point is that of all rows together.
 * Every visit ends as rounds do, so that the errors are theirs.
 */
static void check_revisits(const char *text)
{
    enum { BATCH = 15, PASSES = 12, PARTS = ROWS / BATCH };
    world w;
    thi_predictor prior = {0}, want = {0};
    thiele_likelihood *lik = parse(text, 0);
    thi_natural said[PARTS];
    thi_online o;
    thi_online_settings settings = {.capacity = ROWS};
    double y[ROWS], mu[ROWS], v[ROWS], mean[TESTS], variance[TESTS];
    int64_t clipped = 0;
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_CONSTANT);
    make_targets(&w, text, y);
    world_engine(&w, ctx, 1.0, 0.0, 0.0);
    prior_of(&w, &prior);
    fit_batch(&w, lik, y, &want);
    assert_ok(ctx, thi_predictor_marginals(&want, ctx, TESTS, w.Xtest, mean, variance, &clipped));
    assert_ok(ctx, thi_online_open(&o, ctx, 1, &prior, lik, &settings));
    for (int b = 0; b < PARTS; b++) {
        assert_ok(ctx, thi_natural_open(&said[b], ctx, w.M));
    }
    for (int visit = 0; visit < PASSES * PARTS; visit++) {
        int b = visit % PARTS;
        thi_natural *sum = &o.latent->sum;
        thi_natural_mix(sum, 1.0, &said[b], -1.0);
        thi_natural_copy(&said[b], sum);
        assert_ok(ctx, thi_online_predict(&o, ctx, BATCH, w.X + b * BATCH * DIMS, NULL, mu, v));
        assert_ok(ctx, thi_online_learn(&o, ctx, y + b * BATCH, b * BATCH));
        thi_natural_mix(&said[b], -1.0, sum, 1.0);
    }
    assert_ok(ctx, thi_online_predict(&o, ctx, TESTS, w.Xtest, NULL, mu, v));
    for (int i = 0; i < TESTS; i++) {
        assert_near(mu[i], mean[i], 0.0, 1e-3 * sqrt(variance[i]));
        assert_near(v[i], variance[i], 1e-3, 0.0);
    }
    for (int b = 0; b < PARTS; b++) {
        thi_natural_close(&said[b]);
    }
    thi_online_close(&o);
    thi_predictor_clear(&prior);
    thi_predictor_clear(&want);
    thiele_likelihood_destroy(lik);
    world_close(&w);
}

static void test_revisits(void **state)
{
    (void)state;
    check_revisits("poisson");
    check_revisits("bernoulli");
    check_revisits("student-t(nu=4, scale=0.4)");
}

static void test_other_likelihoods(void **state)
{
    (void)state;
    check_other("poisson", 0.15);
    check_other("bernoulli", 0.1);
    check_other("student-t(nu=4, scale=0.4)", 0.2);
}

/* --- from predictors and back ------------------------------------------------------------------------------------- */

/* A posterior that was frozen is the same to whoever goes on with it. */
static void test_frozen_and_back(void **state)
{
    (void)state;
    world w;
    thi_predictor prior = {0};
    thiele_likelihood *lik = parse("gaussian(noise=0.11)", 0);
    thi_online o, again;
    thi_online_settings settings = {.capacity = ROWS};
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    world_engine(&w, ctx, 1.0, 0.0, 0.0);
    prior_of(&w, &prior);
    assert_ok(ctx, thi_online_open(&o, ctx, 1, &prior, lik, &settings));
    learn_rows(&o, ctx, &w, w.y, NULL, 13);
    thi_online_freeze(&o, 0, &prior);
    assert_ok(ctx, thi_online_open(&again, ctx, 1, &prior, lik, &settings));
    for (int64_t c = 0; c < w.M; c++) {
        assert_all_near(again.latent->sum.T.data + c + c * w.M, o.latent->sum.T.data + c + c * w.M, w.M - c, 1e-9,
                        1e-9);
    }
    assert_all_near(again.latent->sum.t, o.latent->sum.t, w.M, 1e-9, 1e-9);
    assert_all_near(again.latent->m, o.latent->m, w.M, 1e-9, 1e-9);
    thi_online_close(&again);
    /* The same S as other fits and older files have it: a matrix on w, and a triangle. */
    for (int plus = THI_PLUS_TRIANGLE; plus <= THI_PLUS_WHITE; plus++) {
        thi_matrix R, S;
        assert_ok(ctx, thi_predictor_invert_root(&prior, ctx, 0, &R));
        assert_ok(ctx, thi_matrix_alloc(&S, ctx, w.M, w.M));
        assert_ok(ctx, thi_multiply(ctx, THI_T, THI_N, 1.0, R, R, 0.0, S, true));
        assert_ok(ctx, thi_chol(ctx, S));
        thi_free(prior.R[0].data);
        prior.R[0] = plus == THI_PLUS_WHITE ? R : S;
        prior.plus = (thi_plus)plus;
        thi_free(plus == THI_PLUS_WHITE ? S.data : R.data);
        assert_ok(ctx, thi_online_prepare(&prior, ctx));
        assert_ok(ctx, thi_online_open(&again, ctx, 1, &prior, lik, &settings));
        assert_all_near(again.latent->sum.T.data, o.latent->sum.T.data, w.M, 1e-8, 1e-8);
        thi_online_close(&again);
    }
    thi_online_close(&o);
    thi_predictor_clear(&prior);
    thiele_likelihood_destroy(lik);
    world_close(&w);
}

/* --- threads and forgetting --------------------------------------------------------------------------------------- */

static void test_threads(void **state)
{
    (void)state;
    static const char *const texts[] = {"gaussian(noise=0.11)", "poisson"};
    for (int k = 0; k < 2; k++) {
        world w;
        thi_predictor prior = {0};
        thiele_likelihood *lik = parse(texts[k], 0);
        double y[ROWS], m[2][INDUCING], T[2][INDUCING * INDUCING];
        world_open(&w, ctx, PIC_KERNEL, THI_MEAN_ZERO);
        make_targets(&w, texts[k], y);
        world_engine(&w, ctx, 1.0, 0.0, 0.0);
        prior_of(&w, &prior);
        for (int threads = 1; threads <= 2; threads++) {
            thiele_context *own = test_context(threads);
            thi_online o;
            thi_online_settings settings = {.capacity = ROWS, .forget = 40.0};
            assert_ok(own, thi_online_open(&o, own, 1, &prior, lik, &settings));
            learn_rows(&o, own, &w, y, NULL, 17);
            memcpy(m[threads - 1], o.latent->m, sizeof m[0]);
            memcpy(T[threads - 1], o.latent->sum.T.data, sizeof T[0]);
            thi_online_close(&o);
            thiele_context_destroy(own);
        }
        assert_memory_equal(m[0], m[1], sizeof m[0]);
        assert_memory_equal(T[0], T[1], sizeof T[0]);
        thi_predictor_clear(&prior);
        thiele_likelihood_destroy(lik);
        world_close(&w);
    }
}

/* What was learned fades by exp(-1/forget) a row; rows of one batch count alike. */
static void test_forgetting(void **state)
{
    (void)state;
    world w;
    thi_predictor prior = {0};
    thiele_likelihood *lik = parse("gaussian(noise=0.11)", 0);
    thi_online o;
    thi_online_settings settings = {.capacity = ROWS, .forget = 25.0};
    double want[INDUCING * INDUCING] = {0};
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_ZERO);
    world_engine(&w, ctx, 1.0, 0.0, 0.0);
    prior_of(&w, &prior);
    assert_ok(ctx, thi_online_open(&o, ctx, 1, &prior, lik, &settings));
    learn_rows(&o, ctx, &w, w.y, NULL, 10);
    for (int64_t first = 0; first < ROWS; first += 10) {
        thi_block block = {.n = 10, .X = w.X + first * DIMS, .y = w.y + first};
        thi_natural_zero(&w.sums);
        assert_ok(ctx, thi_sparse_sum(&w.sparse, ctx, 1, &block, 1.0, &w.sums));
        for (int64_t i = 0; i < w.M * w.M; i++) {
            want[i] += exp(-(double)(ROWS - 10 - first) / 25.0) * w.sums.T.data[i];
        }
    }
    for (int64_t c = 0; c < w.M; c++) {
        assert_all_near(o.latent->sum.T.data + c + c * w.M, want + c + c * w.M, w.M - c, 1e-9, 1e-9);
    }
    thi_online_close(&o);
    thi_predictor_clear(&prior);
    thiele_likelihood_destroy(lik);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaussian),        cmocka_unit_test(test_half),
        cmocka_unit_test(test_revisits),        cmocka_unit_test(test_other_likelihoods),
        cmocka_unit_test(test_frozen_and_back), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_forgetting),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
