/*
 * Simulation-based calibration (Talts et al. 2018): f from the prior, y from the likelihood given f, draws of f given
 * y. Among L draws the rank of the true f is then uniform on 0 .. L, for every proper likelihood and every sampler that
 * is right; the whole chain from density to random draws is in it. Ranks are compared with that by chi-square.
 */
#include "testing_context.h"

#include "chains_testing.h"

enum { N = 5, RANKS = 20, TIMES = 200, MOST = 8 * N };
/* A thousandth of all tables of 20 equally likely cells have a larger chi-square. */
static const double LARGEST = 43.82;

typedef struct family {
    const char *likelihood;
    int outputs, classes;
    bool mirrored; /* f and -f are one posterior: a sampler may stay with either, and only |f| has a rank */
} family;

static const family families[] = {
    {"gaussian(noise=0.4)", 1, 0, false},
    {"heteroscedastic", 1, 0, false},
    {"student-t(nu=4, scale=0.6)", 1, 0, false},
    {"laplace(beta=0.5)", 1, 0, false},
    {"matern32(rho=0.8)", 1, 0, false},
    {"bernoulli", 1, 0, false},
    {"bernoulli-probit", 1, 0, false},
    {"softmax", 1, 3, false},
    {"logistic-softmax", 1, 3, false},
    {"poisson(offset=0.5)", 1, 0, false},
    {"sigmoid-poisson(rate=6)", 1, 0, false},
    {"negative-binomial(r=3)", 1, 0, false},
    {"binomial(trials=6)", 1, 0, false},
    {"gamma(shape=2)", 1, 0, false},
    {"exponential", 1, 0, false},
    {"beta(precision=5)", 1, 0, false},
    {"ordinal(sigma=0.7)", 1, 4, false},
    {"warped(noise=0.3)", 1, 0, false},
    {"gaussian(noise=[0.2,1.5])", 2, 0, true},
    {"gprn(nodes=1, noise=0.2)", 2, 0, true},
    {"mixing(latents=2, noise=0.2)", 2, 0, false},
};

/* A draw of the prior: f_q = o_q + L z by a plain factorisation of K. */
static void draw_prior(const chain_setting *s, uint64_t time, const double *K, double *f)
{
    int Q = s->spec.lik->latents;
    double L[N * N] = {0}, z[MOST];
    test_normals(N * Q, 1000 + time, z);
    for (int j = 0; j < N; j++) {
        for (int i = j; i < N; i++) {
            double sum = K[i + j * N];
            for (int k = 0; k < j; k++) {
                sum -= L[i + k * N] * L[j + k * N];
            }
            L[i + j * N] = i == j ? sqrt(sum) : sum / L[j + j * N];
        }
    }
    for (int q = 0; q < Q; q++) {
        for (int i = 0; i < N; i++) {
            double sum = s->rows.offset[i] * (q == 0);
            for (int k = 0; k <= i; k++) {
                sum += L[i + k * N] * z[k + q * N];
            }
            f[q + i * Q] = sum;
        }
    }
}

static void fill_kernel(const chain_setting *s, double *K)
{
    for (int j = 0; j < N; j++) {
        for (int i = 0; i < N; i++) {
            double d = s->rows.X[i] - s->rows.X[j];
            K[i + j * N] = exp(-0.5 * d * d);
        }
    }
}

/* Of f_1 at the first row, and of the last latent at the last. */
static void add_ranks(const thi_chains_result *r, bool mirrored, const double *f, int64_t count[2][RANKS])
{
    int64_t Q = r->latents, last = N * Q - 1;
    int rank[2] = {0, 0};
    for (int64_t d = 0; d < r->kept; d++) {
        double a = r->f[d * N * Q], b = r->f[d * N * Q + last];
        rank[0] += mirrored ? fabs(a) < fabs(f[0]) : a < f[0];
        rank[1] += mirrored ? fabs(b) < fabs(f[last]) : b < f[last];
    }
    count[0][rank[0]]++;
    count[1][rank[1]]++;
}

static double chi_square(const int64_t *count)
{
    double sum = 0.0, each = (double)TIMES / RANKS;
    for (int k = 0; k < RANKS; k++) {
        sum += ((double)count[k] - each) * ((double)count[k] - each) / each;
    }
    return sum;
}

/* The draws are thinned until they are next to independent, which the ranks ask for. */
static void calibrate(const family *e, const char *sampler, int64_t burn_in, int64_t thin)
{
    chain_setting s;
    double K[N * N], f[MOST];
    int64_t count[2][RANKS] = {{0}};
    open_chain_setting(&s, ctx, e->likelihood, e->outputs, e->classes, "se(lengthscale=1, variance=1)", "zero", N, 1);
    const thiele_likelihood *lik = s.spec.lik;
    if (strcmp(sampler, "gibbs") == 0 && strncmp(e->likelihood, "gaussian", 8) == 0) {
        augment_gaussian(&s);
    }
    if (strcmp(sampler, "gibbs") == 0 && !thi_is_augmented(lik)) {
        close_chain_setting(&s);
        return;
    }
    s.rows.offset[1] = e->mirrored ? 0.0 : 0.5;
    thin *= e->mirrored ? 5 : 1; /* a product of latents is hard to move in */
    fill_kernel(&s, K);
    for (int t = 0; t < TIMES; t++) {
        thi_chains_settings settings = {
            .sampler = sampler, .chains = 1, .draws = RANKS - 1, .burn_in = burn_in, .thin = thin, .keep = RANKS - 1};
        thi_chains_result r;
        draw_prior(&s, (uint64_t)t, K, f);
        for (int i = 0; i < N; i++) {
            thi_stream stream = {5, THI_RANDOM_DEMO, 100000 + (uint64_t)(t * N + i)};
            lik->ops->sample(lik, stream, 0, f + i * lik->latents, s.rows.y + i * lik->outputs);
        }
        ctx->seed = (uint64_t)t;
        assert_ok(ctx, run_chains(&s, ctx, &settings, &r));
        assert_int_equal(r.kept, RANKS - 1);
        add_ranks(&r, e->mirrored, f, count);
        thi_chains_clear(&r);
    }
    for (int k = 0; k < 2; k++) {
        double got = chi_square(count[k]);
        if (!(got < LARGEST)) {
            fail_msg("%s with %s, number %d: chi-square %.1f of 19 degrees", e->likelihood, sampler, k, got);
        }
    }
    close_chain_setting(&s);
}

static void each_family(const char *sampler, int64_t burn_in, int64_t thin)
{
    for (size_t k = 0; k < sizeof families / sizeof *families; k++) {
        calibrate(&families[k], sampler, burn_in, thin);
    }
}

static void elliptical(void **state)
{
    (void)state;
    each_family("ess", 100, 12);
}

static void hamiltonian(void **state)
{
    (void)state;
    each_family("hmc", 100, 2);
}

static void gibbs(void **state)
{
    (void)state;
    each_family("gibbs", 50, 5);
}

/* Walks are slow: two likelihoods. */
static void walks(void **state)
{
    (void)state;
    calibrate(&families[2], "mh", 1000, 100);
    calibrate(&families[5], "mh", 1000, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elliptical),
        cmocka_unit_test(hamiltonian),
        cmocka_unit_test(gibbs),
        cmocka_unit_test(walks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
