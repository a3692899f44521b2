/*
 * (E, g, h): every provider against every other one that a likelihood admits (operations are taken away from a copy to
 * force the poorer ones) and against differences of E; what depends on what; extremes; errors. Sharp features of log p
 * are in test_expect_split.c.
 */
#include "likelihood_testing.h"

#include "expect/expect.h"

static thiele_likelihood *make(const char *text, int classes)
{
    thiele_likelihood *lik = NULL;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, text, 1, classes));
    return lik;
}

/* Rows over a grid of marginals: all combinations of y, mean and variance; latents beyond the first differ a little. */
enum { MOST = THI_EXPECT_BLOCK, MOST_LATENTS = 10 };
typedef struct rows {
    int n;
    double y[2 * MOST], mu[MOST_LATENTS * MOST], v[MOST_LATENTS * MOST];
    double E[MOST], g[MOST_LATENTS * MOST], h[MOST_LATENTS * MOST], dphi[16 * MOST];
} rows;

static void fill(rows *r, const thiele_likelihood *lik, int means, const double *mean, int variances,
                 const double *variance)
{
    int P = lik->outputs, Q = lik->latents;
    r->n = 0;
    for (int a = 0; a < TEST_ORDINARY; a++) {
        for (int b = 0; b < means; b++) {
            for (int c = 0; c < variances; c++, r->n++) {
                assert_true(r->n < MOST && Q <= MOST_LATENTS);
                test_ordinary(lik, a, r->y + r->n * P);
                for (int q = 0; q < Q; q++) {
                    r->mu[r->n * Q + q] = mean[b] * (q % 2 ? -0.7 : 1) + 0.1 * q;
                    r->v[r->n * Q + q] = variance[c] * (1 + 0.2 * q) / (1 + 0.2 * (Q - 1));
                }
            }
        }
    }
}

static void run(rows *r, const thiele_likelihood *lik, const char *method)
{
    assert_ok(ctx, thiele_likelihood_expect(lik, ctx, method, r->n, r->y, r->mu, r->v, r->E, r->g, r->h, r->dphi));
}

static void assert_same(const rows *a, const rows *b, const thiele_likelihood *lik, double relative, double absolute)
{
    assert_all_near(a->E, b->E, a->n, relative, absolute);
    assert_all_near(a->g, b->g, (int64_t)a->n * lik->latents, relative, absolute);
    assert_all_near(a->h, b->h, (int64_t)a->n * lik->latents, relative, absolute);
    for (int j = 0; j < a->n * lik->parameters; j++) {
        if (!lik->phi[j % lik->parameters].fixed) {
            assert_near(a->dphi[j], b->dphi[j], relative, absolute);
        }
    }
}

static const double usual_mean[] = {-2.1, -0.4, 0, 1.7}, usual_variance[] = {1e-6, 0.01, 0.3, 1, 4};

static void test_choice(void **state)
{
    (void)state;
    static const struct {
        const char *text, *best;
        int classes;
        bool poorer; /* without its closed form */
    } table[] = {
        {"gaussian", "closed", 0, false},   {"bernoulli", "quadrature", 0, false}, {"poisson", "closed", 0, false},
        {"softmax", "quadrature", 3, true}, {"softmax", "qmc:512", 4, true},       {"laplace", "closed", 0, false},
        {"softmax", "closed", 4, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, table[i].text, 1, table[i].classes));
        thi_likelihood_ops poorer = *lik->ops;
        poorer.expectation = NULL;
        lik->ops = table[i].poorer ? &poorer : lik->ops;
        assert_string_equal(thiele_likelihood_best_method(lik), table[i].best);
        thiele_likelihood_destroy(lik);
    }
    static const struct {
        const char *method, *part;
    } wrong[] = {
        {"closed", "no expectation in closed form"},
        {"quadrature", "quadrature handles at most 3"},
        {"quadrature:600", "from 1 to 512"},
        {"mc", "give the number"},
        {"mc:1", "from 2"},
        {"qmc:12.5", "from 2"},
        {"qmc:", "from 2"},
        {"closed:3", "takes no number"},
        {"simpson", "is not known"},
        {"", "is not known"},
    };
    thiele_likelihood *lik = NULL;
    thi_expect expect;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "softmax", 1, 4));
    thi_likelihood_ops poorer = *lik->ops;
    poorer.expectation = NULL;
    lik->ops = &poorer;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_fails(ctx, thi_expect_open(&expect, ctx, lik, wrong[i].method), THIELE_ERROR_ARGUMENT, wrong[i].part);
    }
    thiele_likelihood_destroy(lik);
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "softmax", 1, 3));
    assert_fails(ctx, thi_expect_open(&expect, ctx, lik, "quadrature:400"), THIELE_ERROR_ARGUMENT, "use fewer");
    thiele_likelihood_destroy(lik);
}

/*
 * 1e-8 is what the closed forms and quadrature must agree to; kinked densities are split at the kink. With three
 * latents the adaptive rule asks for less, to save time: it is given the nodes here.
 */
static void closed_is_quadrature_of(thiele_likelihood *lik)
{
    static rows a, b;
    if (lik->ops->expectation != NULL && lik->latents <= 3) {
        fill(&a, lik, 4, usual_mean, 5, usual_variance);
        b = a;
        run(&a, lik, "closed");
        run(&b, lik, lik->latents < 3 ? "quadrature" : "quadrature:48");
        assert_same(&b, &a, lik, 1e-8, 1e-9);
    }
}

static void test_closed_is_quadrature(void **state)
{
    (void)state;
    test_all_likelihoods(closed_is_quadrature_of);
}

/*
 * The density alone gives what the derivatives give. Without derivatives in f and phi; l of order 10 has a rounding of
 * 1e-15, which h sees divided by the smallest spread used, 4e-8.
 */
static void scores_are_derivatives_of(thiele_likelihood *lik)
{
    static rows a, b;
    thi_likelihood_ops poorer = *lik->ops;
    if (lik->ops->derivatives != NULL && lik->latents <= 3) {
        fill(&a, lik, 4, usual_mean, 5, usual_variance);
        b = a;
        run(&a, lik, "quadrature");
        poorer.derivatives = NULL;
        poorer.phi_derivatives = NULL;
        lik->ops = &poorer;
        run(&b, lik, "quadrature");
        assert_same(&b, &a, lik, lik->latents == 1 ? 2e-7 : 1e-6, lik->latents == 1 ? 2e-7 : 1e-6);
    }
}

static void test_scores_are_derivatives(void **state)
{
    (void)state;
    test_all_likelihoods(scores_are_derivatives_of);
}

/* A kink that is known, in a likelihood with derivatives: the point mass of l'' at it is added. */
static void sign_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                             double *d2)
{
    for (int64_t i = 0; i < n; i++) {
        d1[i] = (y[i] > f[i] ? 1 : -1) / lik->value[0];
        d2[i] = 0;
    }
}

static void test_point_mass(void **state)
{
    (void)state;
    static rows a, b;
    static const char *const methods[] = {"quadrature", "mc:200000", "qmc:65536"};
    static const double mean[] = {0.2, -1.2}, variance[] = {0.3, 1e-10, 50};
    thiele_likelihood *lik = make("laplace(beta~0.6)", 0);
    thi_likelihood_ops richer = *lik->ops;
    fill(&a, lik, 2, mean, 3, variance);
    run(&a, lik, "closed");
    richer.derivatives = sign_derivatives;
    lik->ops = &richer;
    for (int m = 0; m < 3; m++) {
        b = a;
        run(&b, lik, methods[m]);
        assert_all_near(b.h, a.h, a.n, 1e-10, 1e-300);
        assert_all_near(b.g, a.g, a.n, 0, m == 0 ? 1e-10 : 0.02);
    }
    thiele_likelihood_destroy(lik);
}

/* --- derivatives of E --------------------------------------------------------------------------------------------- */

static double expected(const thiele_likelihood *lik, const double *y, const double *mu, const double *v)
{
    double E, g[MOST_LATENTS], h[MOST_LATENTS];
    assert_ok(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, y, mu, v, &E, g, h, NULL));
    return E;
}

/* (E(x + step) - E(x - step)) / (2 step), x being one of the row's own numbers. */
static double difference(const thiele_likelihood *lik, const double *y, const double *mu, const double *v, double *x,
                         double step)
{
    double here = *x;
    *x = here + step;
    double up = expected(lik, y, mu, v);
    *x = here - step;
    double down = expected(lik, y, mu, v);
    *x = here;
    return (up - down) / (2 * step);
}

static void check_row(thiele_likelihood *lik, rows *r, int i)
{
    int P = lik->outputs, Q = lik->latents;
    double *y = r->y + i * P, *mu = r->mu + i * Q, *v = r->v + i * Q;
    for (int q = 0; q < Q; q++) {
        double size = 1 + fabs(r->E[i]);
        assert_near(r->g[i * Q + q], difference(lik, y, mu, v, mu + q, 1e-4), 2e-6, 2e-6 * size);
        assert_near(r->h[i * Q + q], difference(lik, y, mu, v, v + q, 1e-4 * v[q]), 2e-6, 2e-6 * size / v[q]);
    }
    for (int p = 0; p < lik->parameters; p++) {
        if (lik->phi[p].fixed) {
            continue;
        }
        double *value = lik->value + p, now = *value, step = 1e-4 * (lik->phi[p].positive ? now : 1);
        double slope = difference(lik, y, mu, v, value, step) * (lik->phi[p].positive ? now : 1);
        assert_near(r->dphi[i * lik->parameters + p], slope, 2e-6, 2e-6 * (1 + fabs(r->E[i])));
    }
}

static void differences_of(thiele_likelihood *lik)
{
    static const double mean[] = {-0.8, 0.6}, variance[] = {0.05, 1.5};
    static rows r;
    fill(&r, lik, 2, mean, 2, variance);
    run(&r, lik, NULL);
    for (int j = 0; j < r.n; j++) {
        check_row(lik, &r, j);
    }
}

static void test_differences(void **state)
{
    (void)state;
    test_all_likelihoods(differences_of);
}

/* --- draws -------------------------------------------------------------------------------------------------------- */

enum { REPLICAS = 64 };

/* How draws become E, g and h. */
typedef enum way { CONTROLLED, SLOPES, REGRESSION } way;

/*
 * REPLICAS answers, each with draws of its own: of independent rows, or, where rows share designs, of seeds; r has the
 * row as often.
 */
static void ask_replicas(thiele_likelihood *lik, rows *r, way how)
{
    int P = lik->outputs, Q = lik->latents, together = how == REGRESSION ? 1 : REPLICAS;
    for (int i = 0; i < REPLICAS; i += together) {
        thi_expect expect;
        thiele_context other = *ctx;
        other.seed = 50 + (uint64_t)i;
        assert_ok(&other, thi_expect_open(&expect, &other, lik, "mc:1000"));
        expect.reparameterised = how == SLOPES;
        expect.antithetic = how == REGRESSION;
        assert_ok(&other, thi_expect_block(&expect, &other, 0, together, r->y + i * P, r->mu + i * Q, r->v + i * Q,
                                           r->E + i, r->g + i * Q, r->h + i * Q, r->dphi + i * lik->parameters));
        thi_expect_close(&expect);
    }
}

/*
 * The mean over the replicas lies within 4 standard errors of the best method's answer. Least squares have a bias of
 * order 1/draws beside, where errors go as its root: at most a tenth of the standard deviation of one controlled
 * answer, which `spread` keeps for the ways that follow.
 */
static void check_draws(thiele_likelihood *lik, const double *y, const double *mu, const double *v, way how,
                        double *spread)
{
    int P = lik->outputs, Q = lik->latents;
    double E, g[MOST_LATENTS], h[MOST_LATENTS];
    static rows r;
    assert_ok(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, y, mu, v, &E, g, h, NULL));
    for (int i = 0; i < REPLICAS; i++) {
        memcpy(r.y + i * P, y, (size_t)P * sizeof *y);
        memcpy(r.mu + i * Q, mu, (size_t)Q * sizeof *mu);
        memcpy(r.v + i * Q, v, (size_t)Q * sizeof *v);
    }
    ask_replicas(lik, &r, how);
    for (int k = 0; k < 1 + 2 * Q; k++) {
        const double *x = k == 0 ? r.E : k <= Q ? r.g + k - 1 : r.h + k - 1 - Q;
        double want = k == 0 ? E : k <= Q ? g[k - 1] : h[k - 1 - Q], sum = 0, square = 0;
        for (int i = 0; i < REPLICAS; i++) {
            double away = x[i * (k == 0 ? 1 : Q)] - want;
            sum += away / REPLICAS;
            square += away * away / REPLICAS;
        }
        double deviation = sqrt(fmax(0, square - sum * sum)), error = deviation / sqrt(REPLICAS - 1);
        double bias = how == REGRESSION ? 0.1 * spread[k] : 0;
        spread[k] = how == CONTROLLED ? deviation : spread[k];
        if (!(fabs(sum) <= 4 * error + bias + 1e-7 * (1 + fabs(want)))) {
            fail_msg("%s: number %d is off by %.3g, standard error %.3g, controlled %.3g", thiele_likelihood_name(lik),
                     k, sum, error, spread[k]);
        }
    }
}

static void draws_of(thiele_likelihood *lik)
{
    static const double mean[] = {-0.8, 0.6}, variance[] = {0.05, 1.5};
    static rows r;
    int P = lik->outputs, Q = lik->latents;
    fill(&r, lik, 2, mean, 2, variance);
    for (int j = 0; j < r.n; j += 5) {
        double spread[1 + 2 * MOST_LATENTS];
        for (way how = CONTROLLED; how <= REGRESSION; how++) {
            if (how != SLOPES || lik->ops->derivatives != NULL) {
                check_draws(lik, r.y + j * P, r.mu + j * Q, r.v + j * Q, how, spread);
            }
        }
    }
}

static void test_draws(void **state)
{
    (void)state;
    test_all_likelihoods(draws_of);
}

/* The root mean square of the errors of g. */
static double usual_error(const rows *a, const rows *b, const thiele_likelihood *lik)
{
    double sum = 0;
    int64_t count = (int64_t)a->n * lik->latents;
    for (int64_t i = 0; i < count; i++) {
        sum += (a->g[i] - b->g[i]) * (a->g[i] - b->g[i]);
    }
    return sqrt(sum / (double)count);
}

/*
 * Scrambled Sobol points: the error falls nearly as 1/n for a smooth mean, in one dimension and in ten. With 512 points
 * E, g and h are coefficients of least squares, without derivatives: g has the deviation of what the terms cannot
 * express over the root of v times the points that the terms leave. Of ten latents that was 2e-3, and four times as
 * much the largest of hundreds; a half more is allowed.
 */
static void test_quasi(void **state)
{
    (void)state;
    static const double mean[] = {-0.8, 0.6}, variance[] = {0.05, 1.5};
    static rows a, b, c;
    static const int classes[] = {0, 3, 10};
    for (int i = 0; i < 3; i++) {
        thiele_likelihood *lik = make(i == 0 ? "bernoulli" : "softmax", classes[i]);
        fill(&a, lik, 2, mean, 2, variance);
        b = a;
        c = a;
        run(&a, lik, lik->latents <= 3 ? "quadrature" : "qmc:262144");
        run(&b, lik, "qmc:512");
        run(&c, lik, "qmc:8192");
        assert_same(&b, &a, lik, 0, lik->latents == 1 ? 1e-3 : lik->latents == 3 ? 3e-3 : 1.2e-2);
        assert_true(usual_error(&b, &a, lik) < (lik->latents <= 3 ? 1e-3 : 3e-3));
        assert_same(&c, &a, lik, 0, lik->latents == 1 ? 5e-5 : 1e-3);
        /* By regression on all scores, without derivatives. */
        thi_likelihood_ops poorer = *lik->ops;
        poorer.derivatives = NULL;
        lik->ops = &poorer;
        run(&c, lik, "qmc:8192");
        assert_same(&c, &a, lik, 0, lik->latents == 1 ? 5e-4 : 2e-3);
        thiele_likelihood_destroy(lik);
    }
}

/* --- what depends on what ----------------------------------------------------------------------------------------- */

static void same_bits_of(thiele_likelihood *lik)
{
    static const char *const methods[] = {"quadrature", "quadrature:20", "mc:100", "qmc:64"};
    static const double mean[] = {-50, -0.8, 0, 0.6, 40}, variance[] = {1e-12, 0.05, 1.5, 700};
    static rows all;
    int P = lik->outputs, Q = lik->latents;
    fill(&all, lik, 5, mean, 4, variance);
    for (int m = 0; m < 4 && Q <= 2 && lik->ops->log_variance == 0; m++) {
        thi_expect expect;
        double E, g[2], h[2];
        if (thiele_likelihood_expect(lik, ctx, methods[m], all.n, all.y, all.mu, all.v, all.E, all.g, all.h, NULL) !=
            THIELE_OK) {
            continue; /* the variance is too much for an exponential */
        }
        assert_ok(ctx, thi_expect_open(&expect, ctx, lik, methods[m]));
        for (int j = 0; j < all.n; j += 3) {
            assert_ok(ctx, thi_expect_block(&expect, ctx, j, 1, all.y + j * P, all.mu + j * Q, all.v + j * Q, &E, g, h,
                                            NULL));
            assert_memory_equal(&E, &all.E[j], sizeof E);
            assert_memory_equal(g, &all.g[j * Q], (size_t)Q * sizeof *g);
            assert_memory_equal(h, &all.h[j * Q], (size_t)Q * sizeof *h);
        }
        thi_expect_close(&expect);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    test_all_likelihoods(same_bits_of);
}

enum { MANY = 5000 };

static void test_threads(void **state)
{
    (void)state;
    static double y[MANY], mu[MANY], v[MANY], out[2][3][MANY];
    thiele_context *both[] = {test_context(1), test_context(2)};
    thiele_likelihood *lik = make("bernoulli", 0);
    test_normals(MANY, 1, mu);
    for (int i = 0; i < MANY; i++) {
        y[i] = i % 3 == 0 ? -1 : 1;
        v[i] = 0.1 + mu[i] * mu[i];
    }
    y[17] = NAN;
    for (int m = 0; m < 2; m++) {
        for (int t = 0; t < 2; t++) {
            assert_ok(both[t], thiele_likelihood_expect(lik, both[t], m ? "mc:50" : NULL, MANY, y, mu, v, out[t][0],
                                                        out[t][1], out[t][2], NULL));
        }
        assert_memory_equal(out[0], out[1], sizeof out[0]);
        assert_true(out[0][0][17] == 0 && out[0][1][17] == 0 && out[0][2][17] == 0);
    }
    /* The lowest failing row is the one that is named. */
    v[3000] = -1;
    v[4000] = -2;
    assert_fails(both[1],
                 thiele_likelihood_expect(lik, both[1], NULL, MANY, y, mu, v, out[0][0], out[0][1], out[0][2], NULL),
                 THIELE_ERROR_NUMERIC, "variance -1");
    thiele_likelihood_destroy(lik);
    thiele_context_destroy(both[0]);
    thiele_context_destroy(both[1]);
}

/* A partly missing row is what the likelihood of its other output alone says. */
static void missing_of(thiele_likelihood *lik)
{
    static rows a, b;
    fill(&a, lik, 4, usual_mean, 3, usual_variance);
    for (int j = 0; j < a.n * lik->outputs; j++) {
        a.y[j] = NAN;
    }
    run(&a, lik, NULL);
    memset(&b, 0, sizeof b);
    b.n = a.n;
    assert_same(&a, &b, lik, 0, 0);
}

static void test_missing(void **state)
{
    (void)state;
    test_all_likelihoods(missing_of);
}

/* --- extremes and errors ------------------------------------------------------------------------------------------ */

static void extremes_of(thiele_likelihood *lik)
{
    static const double mean[] = {-50, -8, 0, 8, 50}, variance[] = {1e-12, 1e-6, 1, 30, 1e4};
    static rows r;
    int P = lik->outputs, Q = lik->latents;
    fill(&r, lik, 5, mean, 5, variance);
    for (int j = 0; j < r.n; j++) {
        double E, g[MOST_LATENTS], h[MOST_LATENTS], density;
        thiele_status status =
            thiele_likelihood_expect(lik, ctx, NULL, 1, r.y + j * P, r.mu + j * Q, r.v + j * Q, &E, g, h, NULL);
        /* Only exp(v/2) can overflow, and the sentence says where. */
        assert_true(status == THIELE_OK || (status == THIELE_ERROR_NUMERIC && r.v[j * Q] > 1000 &&
                                            strstr(thiele_context_message(ctx), "variance") != NULL));
        assert_true(status != THIELE_OK || (isfinite(E) && isfinite(g[0]) && isfinite(h[0])));
        assert_ok(ctx, thiele_likelihood_log_predictive(lik, ctx, 1, r.y + j * P, r.mu + j * Q, r.v + j * Q, &density));
        assert_true(isfinite(density));
    }
}

static void test_extremes(void **state)
{
    (void)state;
    test_all_likelihoods(extremes_of);
}

static double nan_above_three(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    return f[0] > 3 ? NAN : -fabs(y[0] - f[0]);
}

static double zero_below_minus_three(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    return f[0] < -3 ? -INFINITY : -fabs(y[0] - f[0]);
}

static void test_errors(void **state)
{
    (void)state;
    static const char *const methods[] = {"quadrature", "quadrature:30", "mc:1000", "qmc:1024"};
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    thiele_likelihood *lik = NULL;
    double y = 1.5, mu = 0.5, v = 4, E, g, h;
    spec.name = "strange";
    for (int kind = 0; kind < 2; kind++) {
        spec.log_density = kind ? zero_below_minus_three : nan_above_three;
        assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
        for (int m = 0; m < 4; m++) {
            assert_fails(ctx, thiele_likelihood_expect(lik, ctx, methods[m], 1, &y, &mu, &v, &E, &g, &h, NULL),
                         THIELE_ERROR_NUMERIC, kind ? "infinite at y = 1.5, f = -" : "not a number at y = 1.5, f = ");
        }
        v = 1e-4;
        assert_ok(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, &y, &mu, &v, &E, &g, &h, NULL));
        v = 4;
        thiele_likelihood_destroy(lik);
    }
    lik = make("gaussian(noise~0.3)", 0);
    v = NAN;
    assert_fails(ctx, thiele_likelihood_expect(lik, ctx, NULL, 1, &y, &mu, &v, &E, &g, &h, NULL), THIELE_ERROR_NUMERIC,
                 "is not a Gaussian");
    thiele_likelihood_destroy(lik);
}

/* Every allocation failing in turn gives an error, never a crash, until none does. */
static void test_allocations(void **state)
{
    (void)state;
    static const char *const methods[] = {"quadrature", "quadrature:20", "mc:100", "qmc:64", "wrong"};
    thiele_likelihood *lik = make("student-t(nu~4, scale~0.5)", 0);
    static rows r;
    fill(&r, lik, 4, usual_mean, 5, usual_variance);
    r.v[0] = 1e4;
    for (int m = 0; m < 5; m++) {
        int64_t held = (int64_t)thi_memory_held(ctx);
        thiele_status status = THIELE_ERROR_MEMORY;
        for (int64_t nth = 1; status == THIELE_ERROR_MEMORY; nth++) {
            thi_fail_allocation(ctx, nth, true);
            status = thiele_likelihood_expect(lik, ctx, methods[m], r.n, r.y, r.mu, r.v, r.E, r.g, r.h, r.dphi);
            thi_fail_allocation(ctx, 0, false);
            assert_int_equal((int64_t)thi_memory_held(ctx), held);
        }
        assert_int_equal(status, m < 4 ? THIELE_OK : THIELE_ERROR_ARGUMENT);
    }
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_closed_is_quadrature),
        cmocka_unit_test(test_scores_are_derivatives),
        cmocka_unit_test(test_point_mass),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_quasi),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
