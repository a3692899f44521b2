/*
 * Samplers over the latents at the data rows: each against posteriors that are known exactly (Gaussian noise; three
 * points by quadrature, from the reference values aaci_posterior_*), and against each other with several latents; the
 * frozen predictor; threads, stopping, wrong settings, failing allocations.
 */
#include "testing_context.h"

#include "chains_testing.h"
#include "posterior/dense.h"

static const char *const names[] = {"gibbs", "ess", "hmc", "mh"};
enum { SAMPLERS = sizeof names / sizeof *names };

/* --- three points
 * ----------------------------------------------------------------------------------------------------- */

typedef struct three {
    const char *likelihood;
    double lengthscale[2], variance, X[6], y[3], mean[3], covariance[9];
} three;

static const three threes[] = {
    {"bernoulli",
     {1.0335, 1.0622},
     1.42,
     {0.4603, -1.0821, -1.2367, -1.2886, 0.781, -0.0064},
     {1, 1, 1},
     {0.8757599, 0.6735980, 0.7902835},
     {1.0552078, 0.2229378, 0.5153315, 0.2229378, 1.1069657, 0.0378715, 0.5153315, 0.0378715, 1.0634900}},
    {"student-t(nu=3.9356, scale=0.5907)",
     {0.8992, 0.7781},
     1.3277,
     {0.9063, 1.1691, 1.3923, 1.3808, -0.9244, 0.3573},
     {-0.0635, -0.9874, -0.2902},
     {-0.2896683, -0.5907507, -0.2058273},
     {0.2685415, 0.1262213, 0.0090135, 0.1262213, 0.2886650, -0.0047786, 0.0090135, -0.0047786, 0.3474930}},
    {"laplace(beta=0.4145)",
     {0.7072, 1.3525},
     1.781,
     {0.8059, 0.7584, -0.1626, 0.2773, -0.9028, 0.3938},
     {0.6432, 0.4761, -0.6637},
     {0.5895669, 0.3576016, -0.5115947},
     {0.2353043, 0.0166567, -0.0067232, 0.0166567, 0.2199661, 0.0282216, -0.0067232, 0.0282216, 0.2368810}},
    {"matern32(rho=0.8528)",
     {0.7317, 0.9229},
     1.0716,
     {-0.1332, 0.0105, 0.2569, -0.6157, 1.357, -1.1571},
     {-0.1837, 0.0724, -0.0408},
     {-0.0818477, -0.0021269, -0.0152238},
     {0.3574993, 0.1364250, -0.0121347, 0.1364250, 0.3467748, 0.0509205, -0.0121347, 0.0509205, 0.4174139}},
    {"svm",
     {1.368, 0.9518},
     1.1692,
     {0.5653, -0.1663, 0.5385, -1.4703, -0.6835, -0.0128},
     {1, -1, -1},
     {0.3485805, -0.8926893, -0.6434508},
     {0.5380548, 0.1080659, 0.2147454, 0.1080659, 0.5050671, 0.0267233, 0.2147454, 0.0267233, 0.4992303}},
};

static void three_points(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof threes / sizeof *threes; k++) {
        const three *t = &threes[k];
        char kernel[80];
        chain_setting s;
        snprintf(kernel, sizeof kernel, "se(lengthscale=1, variance=%.17g)", t->variance);
        open_chain_setting(&s, ctx, t->likelihood, 1, 0, kernel, "zero", 3, 2);
        for (int i = 0; i < 6; i++) {
            s.rows.X[i] = t->X[i] / t->lengthscale[i % 2];
        }
        memcpy(s.rows.y, t->y, sizeof t->y);
        for (int m = thi_is_augmented(s.spec.lik) ? 0 : 1; m < SAMPLERS; m++) {
            thi_chains_settings settings = keep_all(names[m], 5000);
            thi_chains_result r;
            assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
            assert_int_equal(r.kept, 20000);
            assert_true(r.mixing.rhat < 1.05 && r.divergences == 0);
            assert_moments(&r, t->mean, t->covariance, NULL);
            thi_chains_clear(&r);
        }
        close_chain_setting(&s);
    }
}

/* --- Gaussian noise
 * ----------------------------------------------------------------------------------------------------- */

enum { N = 7 };

/* A mean, offsets and a missing row. */
static void open_gaussian(chain_setting *s, thiele_context *c, int64_t n)
{
    open_chain_setting(s, c, "gaussian(noise=0.3)", 1, 0, "matern32(lengthscale=1.2, variance=2)", "constant", n, 2);
    test_normals(n, 2, s->rows.y);
    test_normals(n, 3, s->rows.offset);
    s->rows.y[n / 2] = NAN;
    s->spec.latents.mean_parameter[0] = 0.7;
    augment_gaussian(s);
}

/* The posterior of f by the site engine: lambda = 1/noise, nu = (y - o)/noise. */
static void gaussian_moments(const chain_setting *s, double *lambda, double *nu, double *mean, double *v)
{
    thi_dense dense;
    assert_ok(ctx, thi_dense_open(&dense, ctx, s->rows.n, s->rows.X, NULL, NULL));
    assert_ok(ctx, thi_dense_prior(&dense, ctx, &s->spec.latents.prior[0]));
    for (int64_t i = 0; i < s->rows.n; i++) {
        bool missing = isnan(s->rows.y[i]);
        lambda[i] = missing ? 0.0 : 1.0 / 0.3;
        nu[i] = missing ? 0.0 : (s->rows.y[i] - 0.7 - s->rows.offset[i]) / 0.3;
    }
    assert_ok(ctx, thi_dense_condition(&dense, ctx, lambda, nu, mean, v));
    for (int64_t i = 0; i < s->rows.n; i++) {
        mean[i] += 0.7 + s->rows.offset[i];
    }
    thi_dense_close(&dense);
}

static void gaussian_noise(void **state)
{
    (void)state;
    chain_setting s;
    double lambda[N], nu[N], mean[N], v[N];
    open_gaussian(&s, ctx, N);
    gaussian_moments(&s, lambda, nu, mean, v);
    for (int m = 0; m < SAMPLERS; m++) {
        thi_chains_settings settings = keep_all(names[m], 5000);
        thi_chains_result r;
        assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
        assert_moments(&r, mean, NULL, v);
        if (m == 0) {
            /* Nothing is left to alternate with: the draws are independent. */
            assert_near(r.mixing.lag1, 0.0, 0.0, 0.02);
            assert_near(r.acceptance, 1.0, 0.0, 0.0);
        }
        if (m == 2) {
            assert_near(r.acceptance, 0.8, 0.0, 0.15);
        }
        if (m == 3) {
            assert_near(r.acceptance, 0.234, 0.0, 0.1);
        }
        thi_chains_clear(&r);
    }
    close_chain_setting(&s);
}

/* The paper's grid: a step and a number of leaps as given, and no burn-in. */
static void given_steps(void **state)
{
    (void)state;
    chain_setting s;
    double lambda[N], nu[N], mean[N], v[N];
    open_gaussian(&s, ctx, N);
    gaussian_moments(&s, lambda, nu, mean, v);
    thi_chains_settings settings = keep_all("hmc", 5000);
    thi_chains_result r;
    settings.step = 0.2;
    settings.leaps = 5;
    settings.burn_in = -1;
    assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
    assert_near(r.step, 0.2, 0.0, 0.0);
    assert_int_equal(r.steps, 5000);
    assert_moments(&r, mean, NULL, v);
    thi_chains_clear(&r);
    settings.step = 50.0;
    assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
    assert_true(r.divergences == 20000); /* no leap of that length stays on its orbit */
    assert_true(r.mixing.share == 1.0 && r.mixing.ess_least <= 1.0);
    thi_chains_clear(&r);
    close_chain_setting(&s);
}

/* --- several latents
 * ---------------------------------------------------------------------------------------------------- */

/* Two samplers that share nothing but the density say the same. */
static void several_latents(void **state)
{
    (void)state;
    static const struct {
        const char *likelihood;
        int classes;
        double y[N];
    } cases[] = {
        {"softmax", 3, {0, 1, 2, 2, 1, 0, NAN}},
        {"heteroscedastic", 0, {0.3, -1.0, 2.0, 0.1, NAN, -0.4, 0.8}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        chain_setting s;
        thi_chains_result a, b;
        open_chain_setting(&s, ctx, cases[k].likelihood, 1, cases[k].classes, "se(lengthscale=1, variance=1)", "zero",
                           N, 2);
        memcpy(s.rows.y, cases[k].y, sizeof cases[k].y);
        thi_chains_settings ess = keep_all("ess", 4000), hmc = keep_all("hmc", 4000);
        ess.thin = 3;
        assert_ok(ctx, run_chains(&s, ctx, &ess, &a));
        assert_ok(ctx, run_chains(&s, ctx, &hmc, &b));
        int64_t all = N * s.spec.lik->latents;
        double zero[3 * N] = {0};
        for (int64_t i = 0; i < all; i++) {
            double e1, e2, m1 = estimate(&a, zero, i, -1, &e1), m2 = estimate(&b, zero, i, -1, &e2);
            assert_near(m1, m2, 0.0, 4.0 * hypot(e1, e2));
            m1 = estimate(&a, zero, i, i, &e1);
            m2 = estimate(&b, zero, i, i, &e2);
            assert_near(m1, m2, 0.0, 4.0 * hypot(e1, e2));
        }
        thi_chains_clear(&a);
        thi_chains_clear(&b);
        close_chain_setting(&s);
    }
}

/* --- the predictor
 * ------------------------------------------------------------------------------------------------------ */

static void predictor(void **state)
{
    (void)state;
    enum { NEW = 5 };
    chain_setting s;
    double lambda[N], nu[N], mean[N], v[N], X[2 * NEW], exact_mean[NEW], exact_v[NEW];
    thi_dense dense;
    thi_predictor frozen, exact;
    open_gaussian(&s, ctx, N);
    gaussian_moments(&s, lambda, nu, mean, v);
    test_normals(2 * NEW, 9, X);
    /* What regression says at the new rows. */
    assert_ok(ctx, thi_dense_open(&dense, ctx, N, s.rows.X, NULL, NULL));
    assert_ok(ctx, thi_dense_prior(&dense, ctx, &s.spec.latents.prior[0]));
    assert_ok(ctx, thi_dense_condition(&dense, ctx, lambda, nu, mean, v));
    assert_ok(ctx, thi_dense_freeze(&dense, ctx, &s.spec.latents.prior[0], &exact));
    int64_t clipped = 0;
    assert_ok(ctx, thi_predictor_marginals(&exact, ctx, NEW, X, exact_mean, exact_v, &clipped));

    thi_chains_settings settings = {.sampler = "gibbs", .draws = 2500, .keep = 10000};
    thi_chains_result r;
    assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
    assert_ok(ctx, thi_chains_freeze(&r, ctx, &s.spec, &s.rows, &frozen));
    assert_int_equal(frozen.components, 10000);
    double *m = malloc((size_t)(N * r.kept) * sizeof *m), *w = malloc((size_t)(N * r.kept) * sizeof *w);
    /* At the training rows: the draws themselves, without their offsets, and no variance. */
    assert_ok(ctx, thi_predictor_marginals(&frozen, ctx, N, s.rows.X, m, w, &clipped));
    for (int64_t d = 0; d < r.kept; d++) {
        for (int64_t i = 0; i < N; i++) {
            assert_near(m[i + d * N], r.f[i + d * N] - s.rows.offset[i], 0.0, 1e-9);
            assert_near(w[i + d * N], 0.0, 0.0, 1e-9);
        }
    }
    /* At new ones: regression's mean and variance, within four standard errors of independent draws. */
    assert_ok(ctx, thi_predictor_marginals(&frozen, ctx, NEW, X, m, w, &clipped));
    for (int64_t i = 0; i < NEW; i++) {
        double sum = 0.0, square = 0.0, S = (double)r.kept;
        for (int64_t d = 0; d < r.kept; d++) {
            sum += m[i + d * NEW] / S;
            square += pow(m[i + d * NEW] - exact_mean[i], 2.0) / S;
        }
        assert_near(sum, exact_mean[i], 0.0, 4.0 * sqrt(exact_v[i] / S));
        assert_near(square + w[i], exact_v[i], 0.0, 4.0 * exact_v[i] * sqrt(2.0 / S));
    }
    free(m);
    free(w);
    thi_predictor_clear(&frozen);
    thi_predictor_clear(&exact);
    thi_dense_close(&dense);
    thi_chains_clear(&r);
    close_chain_setting(&s);
}

/* --- threads, stopping, errors
 * ------------------------------------------------------------------------------------------ */

/* More rows than a factorisation on one thread has, and more chains than threads. */
static void threads(void **state)
{
    (void)state;
    enum { BIG = 330 };
    for (int m = 0; m < SAMPLERS; m++) {
        for (int chains = 1; chains <= 3; chains += 2) {
            thi_chains_result result[3];
            for (int t = 0; t < 3; t++) {
                thiele_context *c = test_context(t + 1);
                chain_setting s;
                open_gaussian(&s, c, BIG);
                thi_chains_settings settings = {
                    .sampler = names[m], .chains = chains, .draws = 6, .burn_in = 4, .thin = 2, .keep = 6};
                assert_ok(c, run_chains(&s, c, &settings, &result[t]));
                close_chain_setting(&s);
                assert_memory_equal(result[t].f, result[0].f, (size_t)(result[0].kept * BIG) * sizeof *result[0].f);
                assert_memory_equal(&result[t].mixing, &result[0].mixing, sizeof result[0].mixing);
                thiele_context_destroy(c);
            }
            assert_int_equal(result[0].kept, 6);
            assert_int_equal(result[0].steps, 16);
            for (int t = 0; t < 3; t++) {
                thi_chains_clear(&result[t]);
            }
        }
    }
}

static int stop_after(const thiele_progress *progress, void *user)
{
    int64_t *left = user;
    assert_true(progress->done <= progress->total && progress->done > 0);
    return --*left <= 0;
}

static void stopping(void **state)
{
    (void)state;
    for (int phase = 0; phase < 2; phase++) {
        int64_t left = phase == 0 ? 3 : 12;
        thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
        options.threads = 2;
        options.progress = stop_after;
        options.progress_user = &left;
        thiele_context *c;
        assert_int_equal(thiele_context_create(&c, &options), THIELE_OK);
        chain_setting s;
        thi_driver driver;
        thi_chains_result r;
        open_gaussian(&s, c, N);
        /* Burn-in of 10 steps takes rounds of 1, 2, 4 and 3. */
        thi_chains_settings settings = {.sampler = "ess", .draws = 1000000, .burn_in = 10, .keep = 100000};
        thi_driver_start(&driver, c, 0.0);
        assert_ok(c, thi_chains_run(c, &driver, &s.spec, &s.rows, &settings, &r));
        assert_int_equal(driver.reason, THIELE_STOP_CANCELLED);
        assert_true(driver.stopped && r.early == (phase == 0));
        assert_true(phase == 0 ? r.draws == 0 && r.kept == 4 && isnan(r.mixing.rhat) : r.draws > 0 && r.kept >= 4);
        assert_true(r.steps < 1000010);
        thi_chains_clear(&r);
        /* A deadline that has passed leaves the chains where they start. */
        thi_driver_start(&driver, c, 1e-9);
        assert_ok(c, thi_chains_run(c, &driver, &s.spec, &s.rows, &settings, &r));
        assert_int_equal(driver.reason, THIELE_STOP_DEADLINE);
        assert_true(r.early && r.kept == 4);
        thi_chains_clear(&r);
        close_chain_setting(&s);
        thiele_context_destroy(c);
    }
}

/* No f makes a negative count possible. */
static void refusals(void **state)
{
    (void)state;
    chain_setting s;
    thi_chains_result r;
    open_chain_setting(&s, ctx, "poisson", 1, 0, "se", "zero", N, 2);
    const struct {
        thi_chains_settings settings;
        thiele_status status;
        const char *part;
    } cases[] = {
        {{.sampler = "nuts"}, THIELE_ERROR_ARGUMENT, "'nuts' is not a sampler"},
        {{.sampler = "gibbs"}, THIELE_ERROR_UNSUPPORTED, "'poisson' has no auxiliary variables"},
        {{.sampler = "ess", .chains = 65}, THIELE_ERROR_ARGUMENT, "1 to 64"},
        {{.sampler = "ess", .draws = -1}, THIELE_ERROR_ARGUMENT, "must be positive"},
        {{.sampler = "ess", .burn_in = -2}, THIELE_ERROR_ARGUMENT, "-1 for none"},
        {{.sampler = "hmc", .step = NAN}, THIELE_ERROR_ARGUMENT, "step length"},
        {{.sampler = "mh"}, THIELE_ERROR_NUMERIC, "no finite density"},
    };
    for (int64_t i = 0; i < N; i++) {
        s.rows.y[i] = -1.0;
    }
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_fails(ctx, run_chains(&s, ctx, &cases[k].settings, &r), cases[k].status, cases[k].part);
    }
    close_chain_setting(&s);
}

static void allocations(void **state)
{
    (void)state;
    for (int m = 0; m < SAMPLERS; m++) {
        for (int chains = 1; chains <= 3; chains += 2) {
            thiele_context *c = test_context(1);
            chain_setting s;
            open_gaussian(&s, c, N);
            size_t held = thi_memory_held(c);
            thi_chains_settings settings = {.sampler = names[m], .chains = chains, .draws = 5, .burn_in = 2};
            thiele_status status = THIELE_ERROR_MEMORY;
            for (int64_t nth = 1; status != THIELE_OK; nth++) {
                thi_chains_result r = {0};
                thi_predictor frozen = {0};
                thi_fail_allocation(c, nth, false);
                status = run_chains(&s, c, &settings, &r);
                if (status == THIELE_OK) {
                    status = thi_chains_freeze(&r, c, &s.spec, &s.rows, &frozen);
                    thi_chains_clear(&r);
                    thi_predictor_clear(&frozen);
                }
                thi_fail_allocation(c, 0, false);
                assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
                assert_true(status == THIELE_OK || strlen(thiele_context_message(c)) > 0);
                assert_int_equal(thi_memory_held(c), held);
                assert_true(nth < 200);
            }
            close_chain_setting(&s);
            thiele_context_destroy(c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_points),    cmocka_unit_test(gaussian_noise), cmocka_unit_test(given_steps),
        cmocka_unit_test(several_latents), cmocka_unit_test(predictor),      cmocka_unit_test(threads),
        cmocka_unit_test(stopping),        cmocka_unit_test(refusals),       cmocka_unit_test(allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
