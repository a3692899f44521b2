/*
 * Variational fits by identities: with Z = X and Gaussian noise they are exact regression; optimisers that climb the
 * same bound end at the same one, whatever the family; wide priors; minibatches end near all rows; hard data (few rows,
 * equal rows, constant targets, one class) and an early end give a proper predictor; threads, failing allocations.
 */
#include "testing_context.h"

#include "data/data.h"
#include "fit/variational.h"
#include "posterior/exact.h"

enum { D = 2, MOST_LATENTS = 3, MOST_COMPONENTS = 2 };

/* A problem with everything that a fit needs, and what it ends with. */
typedef struct setting {
    thiele_context *ctx;
    thi_spec spec;
    thi_hypers hypers;
    thi_rows rows;
    thi_predictor latent[MOST_LATENTS];
    double weight[MOST_COMPONENTS];
    thi_variational_result result;
    thi_fitted fitted;
} setting;

static double wave(const double *x)
{
    return 1.5 * sin(1.7 * x[0]) + 0.4 * x[1];
}

static double coin(int64_t i)
{
    return thi_random_uniform((thi_stream){7, THI_RANDOM_DEMO, 3}, (uint64_t)i);
}

/* y of any of the likelihoods used here. */
static double draw(const char *likelihood, int64_t i, const double *x, double noise)
{
    double f = wave(x);
    if (strncmp(likelihood, "bernoulli", 9) == 0) {
        return coin(i) < 1.0 / (1.0 + exp(-2.0 * f)) ? 1.0 : -1.0;
    }
    if (strncmp(likelihood, "softmax", 7) == 0) {
        return f + 0.5 * noise > 0.6 ? 2.0 : x[1] > 0.0 ? 1.0 : 0.0;
    }
    if (strncmp(likelihood, "poisson", 7) == 0) {
        return floor(exp(0.5 + 0.8 * f) + coin(i));
    }
    if (strncmp(likelihood, "student-t", 9) == 0) {
        return f + 0.2 * noise + (i % 9 == 4 ? 5.0 : 0.0);
    }
    return f + 0.3 * noise;
}

static void open_setting(setting *s, thiele_context *c, const char *likelihood, const char *kernel, int64_t n,
                         const char *set)
{
    static double scale[D] = {1.0, 1.0};
    thi_target target = {.scale = 1.0};
    thi_encoder encoder = {.dims = D, .scale = scale, .targets = 1, .target = &target};
    thi_columns columns = {.dims = D, .columns = D};
    memset(s, 0, sizeof *s);
    s->ctx = c;
    assert_ok(c, thiele_likelihood_parse(&s->spec.lik, c, likelihood, 1, strcmp(likelihood, "softmax") == 0 ? 3 : 0));
    assert_ok(c, thi_latents_make(&s->spec.latents, c, kernel, "zero", &columns, s->spec.lik->latents, false));
    assert_ok(c, thi_hypers_make(&s->hypers, c, &s->spec, &encoder, set, NULL));
    assert_ok(c, thi_rows_alloc(&s->rows, c, n, D, 1, (thi_aside){0}));
    test_normals(D * n, 1, s->rows.X);
    for (int64_t i = 0; i < n; i++) {
        double noise = thi_random_normal((thi_stream){7, THI_RANDOM_DEMO, 2}, (uint64_t)i);
        s->rows.y[i] = draw(likelihood, i, s->rows.X + i * D, noise);
    }
}

static void clear_latents(setting *s)
{
    for (int j = 0; j < s->spec.latents.count; j++) {
        thi_predictor_clear(&s->latent[j]);
    }
}

static void close_setting(setting *s)
{
    clear_latents(s);
    thi_hypers_clear(&s->hypers);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
    thi_rows_free(&s->rows);
}

static thiele_status try_fit(setting *s, const thi_variational_settings *settings, double deadline)
{
    thi_source source;
    thi_driver driver;
    clear_latents(s);
    s->fitted = (thi_fitted){.latent = s->latent, .weight = s->weight};
    thi_source_of_rows(&source, &s->rows);
    thi_driver_start(&driver, s->ctx, deadline);
    return thi_fit_variational(&(thi_problem){s->ctx, &driver, &s->spec, &source, &s->hypers}, settings, &s->result,
                               &s->fitted);
}

static double fit(setting *s, thi_variational_settings settings)
{
    assert_ok(s->ctx, try_fit(s, &settings, 0.0));
    return s->fitted.value;
}

/* Finite means and variances at the rows. */
static void check_predictor(setting *s)
{
    int64_t n = s->rows.n < 50 ? s->rows.n : 50, clipped = 0;
    int K = s->latent[0].components;
    double mean[50 * MOST_COMPONENTS], variance[50 * MOST_COMPONENTS];
    assert_true(isfinite(s->fitted.value));
    for (int j = 0; j < s->spec.latents.count; j++) {
        assert_ok(s->ctx, thi_predictor_marginals(&s->latent[j], s->ctx, n, s->rows.X, mean, variance, &clipped));
        for (int64_t i = 0; i < n * K; i++) {
            assert_true(isfinite(mean[i]) && variance[i] >= 0.0 && isfinite(variance[i]));
        }
    }
}

static const char *const fixed = "lengthscale=0.9, variance=1.5";
static const char *const fixed_noise = "lengthscale=0.9, variance=1.5, noise=0.09";
/* First guesses of all: nothing is explored. */
static const char *const guessed = "lengthscale~1.2, variance~1";

/* --- exact regression --------------------------------------------------------------------------------------------- */

enum { SMALL = 60 };

/* Log marginal likelihood, mean and variance of f at the rows with the present values. */
static double regress(setting *s, double *mean, double *variance)
{
    thi_exact exact;
    thi_predictor predictor;
    int64_t clipped = 0;
    const thi_prior *prior = s->spec.latents.prior;
    assert_ok(ctx, thi_exact_open(&exact, ctx, s->rows.n, s->rows.X, s->rows.y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, prior, s->spec.lik->value[0]));
    double value = exact.log_marginal;
    assert_ok(ctx, thi_predictor_freeze(&predictor, ctx, &exact, prior));
    assert_ok(ctx, thi_predictor_marginals(&predictor, ctx, s->rows.n, s->rows.X, mean, variance, &clipped));
    thi_predictor_clear(&predictor);
    return value;
}

static void test_exact(void **state)
{
    (void)state;
    setting s;
    double mean[SMALL], variance[SMALL], m[SMALL], v[SMALL];
    int64_t clipped = 0;
    open_setting(&s, ctx, "gaussian", "matern32", SMALL, fixed_noise);
    const thi_variational_settings ways[] = {
        {.optimizer = "natural"},
        {.collapsed = true},
        {.optimizer = "natural", .batch = 16, .inducing = 1000},
        {.Z = s.rows.X, .Z_count = SMALL, .fixed_Z = true, .optimizer = "natural"},
    };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        double bound = fit(&s, ways[w]);
        assert_int_equal(s.result.inducing, SMALL);
        assert_near(bound, regress(&s, mean, variance), 1e-6, 0.0);
        assert_ok(ctx, thi_predictor_marginals(s.latent, ctx, SMALL, s.rows.X, m, v, &clipped));
        assert_all_near(m, mean, SMALL, 1e-6, 1e-6);
        assert_all_near(v, variance, SMALL, 1e-6, 1e-7);
        assert_true(s.weight[0] == 1.0);
    }
    close_setting(&s);
}

/* The collapsed bound never exceeds the evidence, and learning comes as far as exact regression's own search. */
static void test_collapsed(void **state)
{
    (void)state;
    enum { N = 300 };
    setting s, own;
    double mean[N], variance[N];
    thi_driver driver;
    thi_fit_result found;
    thi_fit_settings search = {.iterations = 100};
    open_setting(&s, ctx, "gaussian", "se(ard)", N, "");
    open_setting(&own, ctx, "gaussian", "se(ard)", N, "");
    thi_driver_start(&driver, ctx, 0.0);
    assert_ok(ctx, thi_search(&(thi_problem){ctx, &driver, &own.spec, NULL, &own.hypers}, &thi_objective_exact,
                              &own.rows, &search, &found, NULL));
    double best = regress(&own, mean, variance);
    double bound = fit(&s, (thi_variational_settings){.collapsed = true, .inducing = 40});
    assert_true(bound <= regress(&s, mean, variance) + 1e-6);
    /* Forty points are enough for so smooth a function. */
    assert_true(bound > best - 0.5 && bound < best + 1e-3);
    assert_string_equal(s.result.optimizer, "collapsed");
    /* Z as chosen is worse than Z learned. */
    double chosen = fit(&s, (thi_variational_settings){.collapsed = true, .inducing = 40, .fixed_Z = true});
    assert_true(chosen < bound);
    close_setting(&own);
    close_setting(&s);
}

/* --- optimisers against each other -------------------------------------------------------------------------------- */

static void test_bernoulli(void **state)
{
    (void)state;
    enum { N = 200, M = 15 };
    setting s;
    open_setting(&s, ctx, "bernoulli", "se", N, fixed);
    double natural = fit(&s, (thi_variational_settings){.inducing = M, .fixed_Z = true});
    assert_string_equal(s.result.optimizer, "natural");
    check_predictor(&s);
    double lbfgs =
        fit(&s, (thi_variational_settings){
                    .inducing = M, .fixed_Z = true, .optimizer = "lbfgs", .iterations = 500, .tolerance = 1e-9});
    assert_near(lbfgs, natural, 1e-4, 0.0);
    double plain = fit(&s, (thi_variational_settings){
                               .inducing = M, .fixed_Z = true, .optimizer = "lbfgs", .plain = true, .iterations = 500});
    assert_near(plain, natural, 0.0, 0.2);
    double turns = fit(&s, (thi_variational_settings){.inducing = M, .fixed_Z = true, .optimizer = "alternate"});
    assert_near(turns, natural, 1e-4, 0.0);
    double adam = fit(&s, (thi_variational_settings){
                              .inducing = M, .fixed_Z = true, .optimizer = "adam", .rate = 0.03, .iterations = 1500});
    assert_near(adam, natural, 0.0, 0.1);
    double diagonal = fit(&s, (thi_variational_settings){.inducing = M, .fixed_Z = true, .diagonal = true});
    assert_true(diagonal < natural);
    close_setting(&s);
}

/* Rules of savigp-jmlr and others come near from minibatches. */
static void test_rules(void **state)
{
    (void)state;
    enum { N = 400, M = 15 };
    setting s;
    open_setting(&s, ctx, "bernoulli", "se", N, fixed);
    double natural = fit(&s, (thi_variational_settings){.inducing = M, .fixed_Z = true});
    const thi_variational_settings rules[] = {
        {.inducing = M, .fixed_Z = true, .optimizer = "adam", .batch = 100, .iterations = 800, .rate = 0.02},
        {.inducing = M, .fixed_Z = true, .optimizer = "adadelta", .batch = 100, .iterations = 800},
        {.inducing = M, .fixed_Z = true, .optimizer = "momentum", .batch = 100, .iterations = 800, .rate = 0.03},
    };
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        double bound = fit(&s, rules[r]);
        assert_int_equal(s.result.bound_rows, N);
        check_predictor(&s);
        assert_true(bound < natural + 1e-3 && bound > natural - 0.02 * fabs(natural));
    }
    close_setting(&s);
}

/* savigp-jmlr eq. 14 leaves a mixture the constant M/2 (1 - log 2) a latent below its only component. */
static void test_mixture(void **state)
{
    (void)state;
    enum { N = 100, M = 8 };
    setting s;
    open_setting(&s, ctx, "bernoulli", "se", N, fixed);
    double one = fit(&s, (thi_variational_settings){.inducing = M, .fixed_Z = true});
    double two =
        fit(&s, (thi_variational_settings){.inducing = M, .fixed_Z = true, .components = 2, .iterations = 400});
    double lost = 0.5 * M * (1.0 - log(2.0));
    assert_int_equal(s.latent[0].components, 2);
    assert_near(s.weight[0] + s.weight[1], 1.0, 1e-12, 0.0);
    assert_true(two > one - lost - 1e-2 && two < one + 1e-2);
    check_predictor(&s);
    const thi_variational_settings others[] = {
        {.inducing = M, .components = 2, .diagonal = true, .iterations = 20},
        {.inducing = M, .components = 2, .diagonal = true, .plain = true, .iterations = 20},
        {.inducing = M, .components = 2, .plain = true, .optimizer = "alternate", .iterations = 2},
        {.inducing = M, .components = 2, .optimizer = "adadelta", .batch = 30, .iterations = 100},
    };
    for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
        fit(&s, others[o]);
        check_predictor(&s);
    }
    close_setting(&s);
}

/*
 * Families that are diagonal in w or in u, crowded inducing inputs too: L-BFGS comes as far as the paper's turns, which
 * climb the same bound from another side, and never above the full family.
 */
static void test_diagonal(void **state)
{
    (void)state;
    enum { N = 120 };
    static const char *const likelihoods[] = {"gaussian", "bernoulli"};
    for (int l = 0; l < 2; l++) {
        setting s;
        open_setting(&s, ctx, likelihoods[l], "se", N, l == 0 ? fixed_noise : fixed);
        for (int M = 10; M <= 40; M += 30) {
            double full = fit(&s, (thi_variational_settings){.inducing = M, .fixed_Z = true});
            for (int how = 0; how < 4; how++) {
                thi_variational_settings way = {.inducing = M,
                                                .fixed_Z = true,
                                                .diagonal = true,
                                                .plain = how % 2 != 0,
                                                .components = how < 2 ? 1 : 2,
                                                .optimizer = "alternate"};
                double turns = fit(&s, way);
                way.optimizer = "lbfgs";
                double lbfgs = fit(&s, way);
                check_predictor(&s);
                assert_true(lbfgs < full + 1e-6 && lbfgs > turns - 0.05);
            }
        }
        close_setting(&s);
    }
}

/* Under a prior so wide that E[exp f] overflows at q = p every optimiser finds a place to begin. (The best is -166.) */
static void test_wide_prior(void **state)
{
    (void)state;
    static const char *const names[] = {"natural", "lbfgs", "alternate", "adam", "adadelta", "momentum"};
    setting s;
    open_setting(&s, ctx, "poisson", "se", 100, "lengthscale=6, variance=3000");
    for (int o = 0; o < 6; o++) {
        for (int diagonal = 0; diagonal < (o == 0 ? 1 : 2); diagonal++) {
            double bound = fit(&s, (thi_variational_settings){.inducing = 20,
                                                              .fixed_Z = true,
                                                              .optimizer = names[o],
                                                              .diagonal = diagonal != 0,
                                                              .iterations = 30});
            assert_true(bound > -300.0);
            check_predictor(&s);
        }
    }
    close_setting(&s);
}

/* `epochs` are passes over the rows whatever the optimiser, but for the few that begin and end a fit. */
static void test_epochs(void **state)
{
    (void)state;
    const thi_variational_settings ways[] = {{.optimizer = "natural"},
                                             {.optimizer = "lbfgs"},
                                             {.optimizer = "lbfgs", .diagonal = true},
                                             {.optimizer = "alternate"},
                                             {.optimizer = "adam"},
                                             {.optimizer = "adam", .batch = 50},
                                             {.optimizer = "natural", .batch = 50}};
    setting s;
    open_setting(&s, ctx, "bernoulli", "se", 200, guessed);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        thi_variational_settings way = ways[w];
        way.inducing = 20;
        way.epochs = 12;
        fit(&s, way);
        check_predictor(&s);
        assert_int_equal(s.result.fit.stop, THIELE_STOP_ITERATIONS);
        /* Natural minibatches end with up to 20 natural steps over all rows. */
        assert_true(s.result.epochs >= 10.0 && s.result.epochs < (way.batch > 0 ? 40.0 : 18.0));
    }
    close_setting(&s);
}

/* Several latents, each with its own Z; negative sites. */
static void test_others(void **state)
{
    (void)state;
    static const char *const likelihoods[] = {"softmax", "poisson", "student-t(nu=4)", "heteroscedastic"};
    for (int l = 0; l < 4; l++) {
        setting s;
        open_setting(&s, ctx, likelihoods[l], "se", 100, l == 2 ? "lengthscale~1.2, variance~1, scale~0.2" : guessed);
        double first = fit(&s, (thi_variational_settings){.inducing = 20, .iterations = -1});
        check_predictor(&s);
        double learned = fit(&s, (thi_variational_settings){.inducing = 20, .iterations = 30});
        check_predictor(&s);
        assert_true(learned > first);
        close_setting(&s);
    }
}

/* --- minibatches -------------------------------------------------------------------------------------------------- */

static void test_minibatch(void **state)
{
    (void)state;
    enum { N = 20000 };
    setting s;
    open_setting(&s, ctx, "gaussian", "se", N, "lengthscale~1.2, variance~1, noise~0.1");
    double all = fit(&s, (thi_variational_settings){.inducing = 30, .collapsed = true});
    double some = fit(&s, (thi_variational_settings){.inducing = 30, .batch = 500, .epochs = 10});
    assert_int_equal(s.result.bound_rows, N);
    assert_int_equal(s.result.batch, 500);
    assert_near(some, all, 0.01, 0.0);
    close_setting(&s);
}

/* --- hard cases --------------------------------------------------------------------------------------------------- */

static void hard_rows(setting *s, const char *what)
{
    for (int64_t i = 0; i < s->rows.n; i++) {
        if (strcmp(what, "equal rows") == 0) {
            memcpy(s->rows.X + i * D, s->rows.X + i % 5 * D, D * sizeof(double));
        } else if (strcmp(what, "one row") == 0) {
            memcpy(s->rows.X + i * D, s->rows.X, D * sizeof(double));
        } else {
            s->rows.y[i] = 1.0;
        }
    }
}

static void test_hard(void **state)
{
    (void)state;
    static const char *const likelihoods[] = {"gaussian", "bernoulli", "poisson"}, *const whats[] = {"equal rows",
                                                                                                     "one row",
                                                                                                     "equal targets"};
    const thi_variational_settings ways[] = {{.inducing = 20, .iterations = 60},
                                             {.inducing = 20, .batch = 16, .iterations = 60},
                                             {.inducing = 20, .optimizer = "adam", .iterations = 60, .batch = 1000},
                                             {.inducing = 20, .optimizer = "lbfgs", .iterations = 60}};
    for (int l = 0; l < 3; l++) {
        for (int w = 0; w < 3; w++) {
            for (int how = 0; how < 4; how++) {
                setting s;
                open_setting(&s, ctx, likelihoods[l], "se", 40, "");
                hard_rows(&s, whats[w]);
                fit(&s, ways[how]);
                check_predictor(&s);
                close_setting(&s);
            }
        }
    }
}

/* One row, two rows, and more inducing inputs and rows in a batch than there are rows. */
static void test_few(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        setting s;
        open_setting(&s, ctx, "bernoulli", "matern52", n, guessed);
        fit(&s, (thi_variational_settings){.inducing = 50, .batch = 100, .iterations = 20});
        assert_int_equal(s.result.inducing, n);
        check_predictor(&s);
        close_setting(&s);
    }
}

/* Given inputs that coincide: Kzz needs jitter. */
static void test_equal_Z(void **state)
{
    (void)state;
    double Z[D * 6] = {0.1, 0.2, 0.1, 0.2, -0.5, 1.0, -0.5, 1.0, 0.8, -0.3, 0.1, 0.2};
    setting s;
    open_setting(&s, ctx, "gaussian", "se", 100, "");
    fit(&s, (thi_variational_settings){.Z = Z, .Z_count = 6, .fixed_Z = true});
    assert_true(s.fitted.jitter > 0.0);
    check_predictor(&s);
    fit(&s, (thi_variational_settings){.Z = Z, .Z_count = 6, .batch = 30, .iterations = 100});
    check_predictor(&s);
    close_setting(&s);
}

static void test_deadline(void **state)
{
    (void)state;
    const thi_variational_settings ways[] = {{.inducing = 50},
                                             {.inducing = 50, .batch = 100},
                                             {.inducing = 50, .optimizer = "adam", .batch = 100},
                                             {.inducing = 50, .optimizer = "alternate"}};
    for (int w = 0; w < 4; w++) {
        setting s;
        open_setting(&s, ctx, "bernoulli", "se", 3000, "");
        double began = thi_seconds();
        assert_ok(ctx, try_fit(&s, &ways[w], 1e-3));
        assert_int_equal(s.result.fit.stop, THIELE_STOP_DEADLINE);
        assert_true(s.result.bound_rows > 0);
        /* Far less than it takes without; a busy machine needs room. */
        assert_true(thi_seconds() - began < 5.0);
        check_predictor(&s);
        close_setting(&s);
    }
}

/* --- bits and errors ---------------------------------------------------------------------------------------------- */

static void test_threads(void **state)
{
    (void)state;
    const thi_variational_settings ways[] = {{.inducing = 40, .iterations = 10},
                                             {.inducing = 40, .batch = 300, .iterations = 40},
                                             {.inducing = 40, .batch = 300, .optimizer = "adam", .iterations = 40}};
    for (int w = 0; w < 3; w++) {
        double value[3], a[3][40];
        for (int threads = 1; threads <= 3; threads++) {
            thiele_context *c = test_context(threads);
            setting s;
            open_setting(&s, c, "bernoulli", "se", 900, guessed);
            value[threads - 1] = fit(&s, ways[w]);
            memcpy(a[threads - 1], s.latent[0].a, sizeof a[0]);
            close_setting(&s);
            assert_int_equal(thi_memory_held(c), 0);
            thiele_context_destroy(c);
        }
        assert_true(value[0] == value[1] && value[0] == value[2]);
        assert_memory_equal(a[0], a[1], sizeof a[0]);
        assert_memory_equal(a[0], a[2], sizeof a[0]);
    }
}

static void test_refused(void **state)
{
    (void)state;
    setting s;
    open_setting(&s, ctx, "bernoulli", "se", 50, guessed);
    thi_variational_settings bad = {.optimizer = "newton"};
    assert_fails(ctx, try_fit(&s, &bad, 0.0), THIELE_ERROR_ARGUMENT, "no optimiser 'newton'");
    bad = (thi_variational_settings){.collapsed = true};
    assert_fails(ctx, try_fit(&s, &bad, 0.0), THIELE_ERROR_ARGUMENT, "Gaussian noise");
    bad = (thi_variational_settings){.basis = "nearest"};
    assert_fails(ctx, try_fit(&s, &bad, 0.0), THIELE_ERROR_ARGUMENT, "nearest");
    close_setting(&s);
}

/* Every allocation in turn fails: an error, and nothing is left behind. */
static void test_allocations(void **state)
{
    (void)state;
    const thi_variational_settings ways[] = {
        {.inducing = 5, .iterations = 2},
        {.inducing = 5, .batch = 8, .iterations = 2},
        {.inducing = 5, .optimizer = "adam", .batch = 8, .iterations = 2},
        {.inducing = 5, .optimizer = "alternate", .plain = true, .components = 2, .iterations = 1}};
    for (int w = 0; w < 4; w++) {
        thiele_context *c = test_context(1);
        thiele_status status = THIELE_ERROR_MEMORY;
        /* All of the beginning, where what is kept is opened; of the steps, which repeat, some. */
        for (int64_t nth = 1; status != THIELE_OK; nth += 1 + nth / 40) {
            setting s;
            open_setting(&s, c, "bernoulli", "se", 20, fixed);
            thi_fail_allocation(c, nth, true);
            status = try_fit(&s, &ways[w], 0.0);
            thi_fail_allocation(c, 0, false);
            assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
            close_setting(&s);
            assert_int_equal(thi_memory_held(c), 0);
        }
        thiele_context_destroy(c);
    }
}

/* Rows whose fetches are counted; with the last of `most` the time is up. */
typedef struct counted {
    thi_source rows;
    thi_driver *driver;
    int64_t count, most;
} counted;

static thiele_status counted_fetch(void *arg, thiele_context *c, int64_t count, const int64_t *row, thi_rows *out)
{
    counted *all = arg;
    all->count++;
    if (all->count == all->most) {
        all->driver->deadline = 1e-9;
    }
    return all->rows.fetch(all->rows.arg, c, count, row, out);
}

/* A fit on minibatches that is ended wherever: once it has learned something it never ends with less than that. */
static void test_ends(void **state)
{
    (void)state;
    enum { N = 12000 }; /* several blocks of a pass over all rows */
    static double mean[N];
    setting s;
    counted all = {0};
    thi_variational_settings settings = {.inducing = 10, .optimizer = "natural", .batch = 20, .iterations = 12};
    open_setting(&s, ctx, "gaussian", "se", N, "lengthscale=1, variance=2, noise=0.1");
    int64_t ends = 1000;
    for (int64_t most = 0; most <= ends; most++) {
        thi_driver driver;
        thi_source source;
        double sum = 0.0, whole = 0.0;
        clear_latents(&s);
        s.fitted = (thi_fitted){.latent = s.latent, .weight = s.weight};
        thi_source_of_rows(&all.rows, &s.rows);
        source = all.rows;
        source.arg = &all;
        source.fetch = counted_fetch;
        all.driver = &driver;
        all.count = 0;
        all.most = most;
        thi_driver_start(&driver, ctx, 0.0);
        assert_ok(ctx, thi_fit_variational(&(thi_problem){ctx, &driver, &s.spec, &source, &s.hypers}, &settings,
                                           &s.result, &s.fitted));
        assert_ok(ctx, thi_predictor_marginals(s.latent, ctx, N, s.rows.X, mean, NULL, NULL));
        for (int64_t i = 0; i < N; i++) {
            sum += (s.rows.y[i] - mean[i]) * (s.rows.y[i] - mean[i]);
            whole += s.rows.y[i] * s.rows.y[i];
        }
        ends = most == 0 ? all.count : ends;
        assert_true(most != 0 || sum < 0.5 * whole);
        assert_true(most < 6 || sum < 0.8 * whole);
    }
    print_message("%lld places to end at\n", (long long)ends);
    close_setting(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),      cmocka_unit_test(test_collapsed),   cmocka_unit_test(test_bernoulli),
        cmocka_unit_test(test_rules),      cmocka_unit_test(test_mixture),     cmocka_unit_test(test_diagonal),
        cmocka_unit_test(test_wide_prior), cmocka_unit_test(test_epochs),      cmocka_unit_test(test_others),
        cmocka_unit_test(test_minibatch),  cmocka_unit_test(test_hard),        cmocka_unit_test(test_few),
        cmocka_unit_test(test_equal_Z),    cmocka_unit_test(test_deadline),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_allocations), cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
