/*
 * The split draw of the Gibbs sampler (fit/gibbs_split.h) on tables that are large enough for it: posteriors that are
 * known exactly (Gaussian sites, some of them heavy), the same moments as Hamiltonian moves where sites are drawn,
 * several latents, threads, failing allocations.
 */
#include "testing_context.h"

#include "chains_testing.h"
#include "posterior/dense.h"

enum { N = 96 };

/* Sites of y = f + e whose noise depends on y: some rows are heavy. */
static double precision_of(double y)
{
    return isnan(y) ? 0.0 : y > 0.8 ? 500.0 : y < -0.8 ? 0.02 : 1.5;
}

static void uneven_site(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *y,
                        const double *f, double *lambda, double *nu)
{
    (void)lik;
    (void)stream;
    (void)draw;
    (void)f;
    lambda[0] = precision_of(y[0]);
    nu[0] = lambda[0] * y[0];
}

static const thi_augmentation uneven = {.site = uneven_site};

/* A mean, offsets and a missing row. */
static void open_uneven(chain_setting *s, thiele_context *c, int64_t n)
{
    open_chain_setting(s, c, "gaussian(noise=1)", 1, 0, "se(lengthscale=3, variance=2)", "constant", n, 2);
    test_normals(n, 2, s->rows.y);
    test_normals(n, 3, s->rows.offset);
    for (int64_t i = 0; i < n; i++) {
        s->rows.y[i] = 0.7 + s->rows.offset[i] + sin(s->rows.X[2 * i]) + 0.03 * s->rows.y[i];
    }
    s->rows.y[n / 2] = NAN;
    s->spec.latents.mean_parameter[0] = 0.7;
    augment_gaussian(s);
    s->changed.augmentation = &uneven;
}

static void exact_moments(const chain_setting *s, double *mean, double *v)
{
    thi_dense dense;
    double lambda[N], nu[N];
    assert_ok(ctx, thi_dense_open(&dense, ctx, s->rows.n, s->rows.X, NULL, NULL));
    assert_ok(ctx, thi_dense_prior(&dense, ctx, &s->spec.latents.prior[0]));
    for (int64_t i = 0; i < s->rows.n; i++) {
        lambda[i] = precision_of(s->rows.y[i]);
        nu[i] = isnan(s->rows.y[i]) ? 0.0 : lambda[i] * (s->rows.y[i] - 0.7 - s->rows.offset[i]);
    }
    assert_ok(ctx, thi_dense_condition(&dense, ctx, lambda, nu, mean, v));
    for (int64_t i = 0; i < s->rows.n; i++) {
        mean[i] += 0.7 + s->rows.offset[i];
    }
    thi_dense_close(&dense);
}

/* Something was refused, so the draw was not a dense one; and most was not. */
static void assert_split(const thi_chains_result *r)
{
    assert_true(r->acceptance < 0.999 && r->acceptance > 0.5);
}

static void known_posterior(void **state)
{
    (void)state;
    chain_setting s;
    double mean[N], v[N];
    thi_chains_result r;
    open_uneven(&s, ctx, N);
    exact_moments(&s, mean, v);
    thi_chains_settings settings = keep_all("gibbs", 5000);
    assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
    assert_split(&r);
    assert_true(r.mixing.rhat < 1.02);
    assert_moments(&r, mean, NULL, v);
    thi_chains_clear(&r);
    close_chain_setting(&s);
}

/* A burn-in too short to see typical sites is followed by dense draws. */
static void short_burn_in(void **state)
{
    (void)state;
    chain_setting s;
    thi_chains_result r;
    open_uneven(&s, ctx, N);
    thi_chains_settings settings = {.sampler = "gibbs", .draws = 100, .burn_in = -1};
    assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
    assert_near(r.acceptance, 1.0, 0.0, 0.0);
    thi_chains_clear(&r);
    close_chain_setting(&s);
}

/* Where no f explains the data proposals are refused, and the chains go back to dense draws. */
static void refused(void **state)
{
    (void)state;
    chain_setting s;
    thi_chains_result r;
    open_uneven(&s, ctx, N);
    test_normals(N, 2, s.rows.y);
    thi_chains_settings settings = {.sampler = "gibbs", .draws = 100, .burn_in = 100};
    assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
    assert_near(r.acceptance, 1.0, 0.0, 0.0);
    thi_chains_clear(&r);
    close_chain_setting(&s);
}

/* First and second moments of two samplers that share nothing but the density. */
static void assert_same_moments(const thi_chains_result *a, const thi_chains_result *b)
{
    int64_t all = a->n * a->latents;
    double *zero = calloc((size_t)all, sizeof *zero);
    for (int64_t i = 0; i < all; i++) {
        for (int64_t j = -1; j <= i; j += i + 1) {
            double e1, e2, m1 = estimate(a, zero, i, j, &e1), m2 = estimate(b, zero, i, j, &e2);
            assert_near(m1, m2, 0.0, 4.2 * hypot(e1, e2));
        }
    }
    free(zero);
}

static double sign_of(double z)
{
    return z > 0.0 ? 1.0 : -1.0;
}

static double class_of(double z)
{
    return z > 0.5 ? 2.0 : z > -0.5 ? 1.0 : 0.0;
}

static double count_of(double z)
{
    return floor(exp(z));
}

/* Every table has some 200 or more moments: 4.2 standard errors are exceeded by chance once in 200 tables. */
static void drawn_sites(void **state)
{
    (void)state;
    static const struct {
        const char *likelihood;
        int classes;
        double (*y)(double z);
    } cases[] = {{"bernoulli", 0, sign_of},
                 {"student-t(nu=3, scale=0.5)", 0, NULL},
                 {"laplace(beta=0.3)", 0, NULL},
                 {"matern32(rho=0.5)", 0, NULL},
                 {"svm", 0, sign_of},
                 {"logistic-softmax", 3, class_of},
                 {"negative-binomial(r=2.5)", 0, count_of}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        chain_setting s;
        thi_chains_result a, b;
        open_chain_setting(&s, ctx, cases[k].likelihood, 1, cases[k].classes, "se(lengthscale=2.5, variance=1)", "zero",
                           N, 2);
        test_normals(N, 2, s.rows.y);
        for (int64_t i = 0; i < N && cases[k].y != NULL; i++) {
            s.rows.y[i] = cases[k].y(s.rows.y[i]);
        }
        thi_chains_settings gibbs = keep_all("gibbs", 2500), hmc = keep_all("hmc", 1200);
        assert_ok(ctx, run_chains(&s, ctx, &gibbs, &a));
        assert_ok(ctx, run_chains(&s, ctx, &hmc, &b));
        assert_split(&a);
        assert_same_moments(&a, &b);
        thi_chains_clear(&a);
        thi_chains_clear(&b);
        close_chain_setting(&s);
    }
}

/* The same bits on any number of threads. */
static void threads(void **state)
{
    (void)state;
    thi_chains_result result[3];
    for (int t = 0; t < 3; t++) {
        thiele_context *c = test_context(t + 1);
        chain_setting s;
        open_uneven(&s, c, 330);
        thi_chains_settings settings = {.sampler = "gibbs", .chains = 3, .draws = 6, .burn_in = 80, .keep = 18};
        assert_ok(c, run_chains(&s, c, &settings, &result[t]));
        close_chain_setting(&s);
        assert_memory_equal(result[t].f, result[0].f, (size_t)(result[0].kept * 330) * sizeof *result[0].f);
        thiele_context_destroy(c);
    }
    assert_true(result[0].acceptance < 1.0);
    for (int t = 0; t < 3; t++) {
        thi_chains_clear(&result[t]);
    }
}

static void allocations(void **state)
{
    (void)state;
    thiele_context *c = test_context(1);
    chain_setting s;
    open_uneven(&s, c, N);
    size_t held = thi_memory_held(c);
    thi_chains_settings settings = {.sampler = "gibbs", .chains = 2, .draws = 5, .burn_in = 60};
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status != THIELE_OK; nth++) {
        thi_chains_result r = {0};
        thi_fail_allocation(c, nth, false);
        status = run_chains(&s, c, &settings, &r);
        thi_chains_clear(&r);
        thi_fail_allocation(c, 0, false);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        assert_int_equal(thi_memory_held(c), held);
        assert_true(nth < 200);
    }
    close_chain_setting(&s);
    thiele_context_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_posterior), cmocka_unit_test(short_burn_in), cmocka_unit_test(refused),
        cmocka_unit_test(drawn_sites),     cmocka_unit_test(threads),       cmocka_unit_test(allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
