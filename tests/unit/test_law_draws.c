/*
 * Predictions of models that were fitted by draws, from the log density alone: with one latent they are quadrature's
 * own; with two the law of y is the mean of 128 laws given f, those of scrambled Sobol points, and its log density
 * that of as many points as the fit had, against closed forms and quadrature. Of a mean and a variance 128 independent
 * draws would leave 0.088 and 0.125 of a deviation and a variance open, of the quantiles of a normal law 0.15 on
 * average and 0.187 at the outermost, sqrt(p (1 - p)/128) over the density there. A third of that is allowed, and as
 * much as that in the worst row. Of a log density, which 16 points make up at least, independent ones leave 0.25: a
 * tenth and a third.
 */
#include "testing_context.h"

#include "expect/crps.h"

enum { ROWS = 12, LEVELS = 5 };
static const double levels[LEVELS] = {0.05, 0.25, 0.5, 0.75, 0.95};

static double borrowed(const double *y, const double *f, const double *phi, void *user)
{
    const thiele_likelihood *lik = user;
    double out;
    (void)phi;
    lik->ops->log_density(lik, 1, y, f, &out);
    return out;
}

typedef struct answer {
    double mean[ROWS], variance[ROWS], quantile[ROWS * LEVELS], log_p[ROWS], crps[ROWS];
} answer;

typedef struct rows {
    double y[ROWS], mu[ROWS * 2], v[ROWS * 2];
} rows;

static void fill(rows *r, const thiele_likelihood *lik)
{
    for (uint64_t i = 0; i < ROWS; i++) {
        thi_stream stream = {11, THI_RANDOM_DEMO, i};
        r->y[i] = lik->ops->support == THI_SUPPORT_POSITIVE ? exp(thi_random_normal(stream, 4))
                                                            : 0.8 * thi_random_normal(stream, 4);
        for (int q = 0; q < lik->latents; q++) {
            r->mu[(int64_t)i * lik->latents + q] = 0.7 * thi_random_normal(stream, (uint64_t)q);
            r->v[(int64_t)i * lik->latents + q] = 0.15 * exp(0.5 * thi_random_normal(stream, 2 + (uint64_t)q));
        }
    }
}

static void ask(const thiele_likelihood *lik, const char *method, const rows *r, answer *a)
{
    thi_expect expect;
    thi_marginals m = {ROWS, 1, NULL, r->mu, r->v};
    assert_ok(ctx, thi_expect_open(&expect, ctx, lik, method));
    assert_ok(ctx, thi_mixture_predict(&expect, ctx, &m, a->mean, a->variance));
    assert_ok(ctx, thi_mixture_quantiles(&expect, ctx, &m, LEVELS, levels, a->quantile));
    assert_ok(ctx, thi_mixture_log_predictive(&expect, ctx, &m, r->y, a->log_p));
    assert_ok(ctx, thi_mixture_crps(&expect, ctx, &m, r->y, a->crps));
    thi_expect_close(&expect);
}

/* In standard deviations of y; of the variance relative, of log p absolute: the root mean square and the largest. */
typedef struct off {
    double square, most;
} off;

static void add(off *to, double error)
{
    to->square += error * error;
    to->most = fmax(to->most, fabs(error));
}

static void check(const char *what, const off *o, int count, double usual, double largest)
{
    double root = sqrt(o->square / count);
    print_message("  %s: %.4f, at most %.4f\n", what, root, o->most);
    assert_true(root < usual && o->most < largest);
}

static void compare(const char *text, const char *method)
{
    static rows r;
    static answer want, got;
    thiele_likelihood *known = NULL, *lik = NULL;
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    assert_ok(ctx, thiele_likelihood_parse(&known, ctx, text, 1, 0));
    spec.name = "dressed";
    spec.outputs = 1;
    spec.latents = known->latents;
    spec.log_density = borrowed;
    spec.support = (thiele_support)known->ops->support;
    spec.user = known;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    fill(&r, known);
    ask(known->latents == 1 ? lik : known, NULL, &r, &want);
    ask(lik, method, &r, &got);
    if (known->latents == 1) {
        assert_memory_equal(&want, &got, sizeof want);
        goto done;
    }
    off mean = {0, 0}, variance = {0, 0}, quantile = {0, 0}, log_p = {0, 0}, crps = {0, 0};
    for (int i = 0; i < ROWS; i++) {
        double sd = sqrt(want.variance[i]);
        add(&mean, (got.mean[i] - want.mean[i]) / sd);
        add(&variance, got.variance[i] / want.variance[i] - 1);
        add(&log_p, got.log_p[i] - want.log_p[i]);
        add(&crps, (got.crps[i] - want.crps[i]) / sd);
        for (int j = 0; j < LEVELS; j++) {
            add(&quantile, (got.quantile[i * LEVELS + j] - want.quantile[i * LEVELS + j]) / sd);
        }
    }
    print_message("%s by %s\n", text, method);
    check("mean", &mean, ROWS, 0.088 / 3, 0.088);
    check("variance", &variance, ROWS, 0.125 / 3, 0.125);
    check("quantiles", &quantile, ROWS * LEVELS, 0.15 / 3, 0.187);
    check("log density", &log_p, ROWS, 0.25 / 10, 0.25 / 3);
    check("CRPS", &crps, ROWS, 0.01, 0.03);
done:
    thiele_likelihood_destroy(lik);
    thiele_likelihood_destroy(known);
}

static void one_latent(void **state)
{
    (void)state;
    compare("student-t(nu=5, scale=0.3)", "mc:500");
    compare("gamma(shape=3)", "qmc:512");
}

/* Noise that varies, and a product of functions. */
static void two_latents(void **state)
{
    (void)state;
    static const char *const methods[] = {"mc:500", "qmc:512"};
    for (int m = 0; m < 2; m++) {
        compare("heteroscedastic", methods[m]);
        compare("gprn(nodes=1, noise=0.05)", methods[m]);
    }
}

/* A law that was kept is the one that would be made: what was asked for before, and in which order, is of no matter. */
static void kept_laws(void **state)
{
    (void)state;
    thiele_likelihood *lik = NULL, *own = NULL;
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, "heteroscedastic", 1, 0));
    spec.name = "borrowed";
    spec.outputs = 1;
    spec.latents = 2;
    spec.log_density = borrowed;
    spec.user = lik;
    assert_ok(ctx, thiele_likelihood_custom(&own, ctx, &spec));
    rows r;
    answer all, some;
    fill(&r, lik);
    ask(own, "mc:500", &r, &all);
    for (int first = 0; first < ROWS; first += ROWS / 2) {
        thi_expect expect;
        thi_marginals half = {ROWS / 2, 1, NULL, r.mu + 2 * first, r.v + 2 * first};
        assert_ok(ctx, thi_expect_open(&expect, ctx, own, "mc:500"));
        assert_ok(ctx, thi_mixture_crps(&expect, ctx, &half, r.y + first, some.crps + first));
        assert_ok(ctx, thi_mixture_quantiles(&expect, ctx, &half, LEVELS, levels, some.quantile + first * LEVELS));
        assert_ok(ctx, thi_mixture_predict(&expect, ctx, &half, some.mean + first, some.variance + first));
        thi_expect_close(&expect);
    }
    assert_memory_equal(some.crps, all.crps, sizeof all.crps);
    assert_memory_equal(some.quantile, all.quantile, sizeof all.quantile);
    assert_memory_equal(some.mean, all.mean, sizeof all.mean);
    assert_memory_equal(some.variance, all.variance, sizeof all.variance);
    thiele_likelihood_destroy(own);
    thiele_likelihood_destroy(lik);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_latent), cmocka_unit_test(two_latents),
                                       cmocka_unit_test(kept_laws)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
