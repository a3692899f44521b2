/*
 * Mixtures of Gaussians as posteriors, by whole fits. A likelihood that sees f^2 has modes on either side of zero: two
 * components take one each. Where the likelihood tells the sign of some rows, the modes predict differently. Elsewhere
 * a mixture is never behind one component. Joint predictions are those of the components together, and updates weigh
 * the components by what new rows say.
 */
#include "model_testing.h"

enum { ROWS = 60, TESTS = 80 };
static const double NOISE = 0.3, AMPLITUDE = 1000.0;

/* Rows tell f^2 or, AMPLITUDE above, f itself; half of them each. */
static double square_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    double r = y[0] < 0.5 * AMPLITUDE ? y[0] - f[0] * f[0] : y[0] - AMPLITUDE - f[0];
    return -0.5 * log(6.283185307179586 * phi[0]) - 0.5 * r * r / phi[0] - log(2.0);
}

static void square_moments(const double *f, const double *phi, double *mean, double *variance, void *user)
{
    (void)user;
    double power = f[0] * f[0], amplitude = AMPLITUDE + f[0];
    mean[0] = 0.5 * (power + amplitude);
    variance[0] = phi[0] + 0.25 * (power - amplitude) * (power - amplitude);
}

static thiele_likelihood *square(thiele_context *ctx)
{
    static const thiele_likelihood_parameter noise = {"noise", 0.1, 1};
    static thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    thiele_likelihood *lik = NULL;
    spec.name = "square";
    spec.outputs = spec.latents = spec.parameters = 1;
    spec.parameter = &noise;
    spec.log_density = square_density;
    spec.moments = square_moments;
    spec.support = THIELE_SUPPORT_REAL;
    assert_ok(ctx, thiele_likelihood_custom(&lik, ctx, &spec));
    return lik;
}

static const char *const names[] = {"x", "y"};

/* crossing: f passes through zero; amplitude: rows tell `sign` times f itself. */
static thiele_table *signal(thiele_context *ctx, int64_t n, uint64_t row, bool crossing, bool amplitude, double sign)
{
    thiele_table *table = NULL;
    double *z = calloc((size_t)(4 * n), sizeof *z), *values = z + 2 * n;
    assert_non_null(z);
    test_normals(2 * n, row, z);
    for (int64_t i = 0; i < n; i++) {
        double x = 10.0 * 0.5 * erfc(-z[2 * i] / sqrt(2.0)), f = (crossing ? 0.3 : 2.0) + 1.3 * sin(x);
        values[2 * i] = x;
        values[2 * i + 1] = (amplitude ? AMPLITUDE + sign * f : f * f) + NOISE * z[2 * i + 1];
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, n, 2, values, names));
    free(z);
    return table;
}

static thiele_model *fit_square(thiele_context *ctx, const thiele_table *table, const char *posterior,
                                const char *entropy)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_likelihood *lik = square(ctx);
    thiele_model *model = NULL;
    options.columns.target = "y";
    options.model.own = lik;
    options.model.method = "variational";
    options.prior.kernel = "matern52";
    options.columns.raw = 1;
    options.inducing.inducing = 20;
    options.inducing.posterior = posterior;
    options.inducing.entropy = entropy;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
    thiele_likelihood_destroy(lik);
    return model;
}

static double nlpd(thiele_context *ctx, const thiele_model *model, const thiele_table *table)
{
    thiele_scores scores;
    assert_ok(ctx, thiele_model_score(model, ctx, table, NULL, &scores));
    return scores.nlpd;
}

static double cell(thiele_context *ctx, const thiele_table *table, int64_t row)
{
    char text[64];
    assert_ok(ctx, thiele_table_cell(table, ctx, row, 0, text, sizeof text));
    return strtod(text, NULL);
}

static double normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

/* P(f > 0) at x, which the model has as it is. */
static double positive(thiele_context *ctx, const thiele_model *model, double x)
{
    double mu[3], v[3], sum = 0.0;
    int64_t clipped;
    assert_ok(ctx, thi_predictor_marginals(model->latent, ctx, 1, &x, mu, v, &clipped));
    for (int k = 0; k < model->components; k++) {
        sum += model->weight[k] * normal_cdf(mu[k] / sqrt(v[k]));
    }
    return sum;
}

/* The bound grows by log 2, the sign is open at every row, and f^2 is predicted as before. */
static void test_two_signs(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int crossing = 0; crossing < 2; crossing++) {
        thiele_table *table = signal(ctx, ROWS, 1, crossing, false, 1.0),
                     *test = signal(ctx, TESTS, 2, crossing, false, 1.0);
        thiele_model *one = fit_square(ctx, table, "full", NULL), *two = fit_square(ctx, table, "mixture-full:2", NULL),
                     *diagonal = fit_square(ctx, table, "mixture:2", NULL);
        assert_true(two->value > one->value + 0.5);
        assert_near(nlpd(ctx, two, test), nlpd(ctx, one, test), 0.0, 1e-3);
        for (int64_t i = 0; i < ROWS; i++) {
            double x = cell(ctx, table, i), P = positive(ctx, two, x);
            assert_true(P > 0.4 && P < 0.6);
            P = positive(ctx, diagonal, x);
            assert_true(P > 0.4 && P < 0.6);
        }
        assert_true(diagonal->value < two->value);
        assert_survives(ctx, two);
        thiele_model_destroy(one);
        thiele_model_destroy(two);
        thiele_model_destroy(diagonal);
        thiele_table_destroy(table);
        thiele_table_destroy(test);
    }
    thiele_context_destroy(ctx);
}

/* Rows that tell the sign, of f and of -f, for the data are the same: one Gaussian is sure of a sign. */
static void test_modes_predict_differently(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = signal(ctx, ROWS, 1, false, false, 1.0), *test[2];
    thiele_model *one = fit_square(ctx, table, "full", NULL), *two = fit_square(ctx, table, "mixture-full:2", NULL);
    double of_one = 0.0, of_two = 0.0;
    for (int i = 0; i < 2; i++) {
        test[i] = signal(ctx, TESTS, 2, false, true, i == 0 ? 1.0 : -1.0);
        of_one += 0.5 * nlpd(ctx, one, test[i]);
        of_two += 0.5 * nlpd(ctx, two, test[i]);
        thiele_table_destroy(test[i]);
    }
    print_message("NLPD of the sign: %.4g by one component, %.4g by two\n", of_one, of_two);
    assert_true(of_two < of_one - 0.1);
    thiele_model_destroy(one);
    thiele_model_destroy(two);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

/* New rows that tell the sign leave one component. */
static void test_update_tells_the_sign(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = signal(ctx, ROWS, 1, false, false, 1.0), *more = signal(ctx, 10, 3, false, false, 1.0);
    thiele_model *two = fit_square(ctx, table, "mixture-full:2", NULL), *open = NULL, *told = NULL;
    assert_ok(ctx, thiele_model_update(&open, ctx, two, more, NULL));
    assert_near(open->weight[0], 0.5, 0.0, 0.01);
    for (int side = -1; side <= 1; side += 2) {
        thiele_table *sign = signal(ctx, 10, 4, false, true, side);
        assert_ok(ctx, thiele_model_update(&told, ctx, open, sign, NULL));
        double P = positive(ctx, told, 5.0);
        assert_true(side > 0 ? P > 0.999 : P < 0.001);
        assert_true(fmax(told->weight[0], told->weight[1]) > 1.0 - 1e-9);
        assert_near(told->weight[0] + told->weight[1], 1.0, 1e-15, 0.0);
        assert_string_equal(told->posterior, "mixture-full:2");
        assert_survives(ctx, told);
        thiele_model_destroy(told);
        thiele_table_destroy(sign);
    }
    thiele_model_destroy(two);
    thiele_model_destroy(open);
    thiele_table_destroy(table);
    thiele_table_destroy(more);
    thiele_context_destroy(ctx);
}

/* Moments of the mixture by hand from those of its components; the diagonal is what rows have by themselves. */
static void test_joint(void **state)
{
    (void)state;
    enum { N = 7 };
    thiele_context *ctx = test_context(1);
    thiele_table *table = signal(ctx, ROWS, 1, true, false, 1.0), *few = signal(ctx, N, 5, true, false, 1.0);
    thiele_model *two = fit_square(ctx, table, "mixture:2", NULL);
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    double mean[N], C[N * N], own_mean[2][N], own[2][N * N], X[N], single[N], variance[N];
    options.latent = 1;
    two->weight[0] = 0.3; /* symmetric components would hide mistakes */
    two->weight[1] = 0.7;
    assert_ok(ctx, thiele_model_predict_joint(two, ctx, few, &options, mean, C));
    for (int64_t i = 0; i < N; i++) {
        X[i] = cell(ctx, few, i);
    }
    for (int k = 0; k < 2; k++) {
        assert_ok(ctx, thi_predictor_joint(two->latent, ctx, k, N, X, own_mean[k], own[k]));
    }
    assert_ok(ctx, thiele_model_predict_rows(two, ctx, N, X, 1, single, variance));
    for (int i = 0; i < N; i++) {
        double want_mean = 0.3 * own_mean[0][i] + 0.7 * own_mean[1][i];
        assert_near(mean[i], want_mean, 1e-10, 1e-12);
        assert_near(mean[i], single[i], 1e-10, 1e-12);
        assert_near(C[i * (N + 1)], variance[i], 1e-9, 1e-12);
        for (int j = 0; j < N; j++) {
            double apart = (own_mean[0][i] - own_mean[1][i]) * (own_mean[0][j] - own_mean[1][j]);
            assert_near(C[i + j * N], 0.3 * own[0][i + j * N] + 0.7 * own[1][i + j * N] + 0.21 * apart, 1e-9, 1e-12);
        }
    }
    thiele_model_destroy(two);
    thiele_table_destroy(table);
    thiele_table_destroy(few);
    thiele_context_destroy(ctx);
}

/* Two components, full or diagonal, are never behind one, but for rounding: by all rows at a time and by batches. */
static void test_never_behind(void **state)
{
    (void)state;
    static const char *const likelihoods[] = {"gaussian", "student-t", "warped", "poisson", "bernoulli", "softmax"};
    static const char *const families[][2] = {{"full", "mixture-full:2"}, {"diag", "mixture:2"}};
    enum { N = 40 };
    thiele_context *ctx = test_context(1);
    double z[2 * N], values[2 * N];
    test_normals(2 * N, 9, z);
    for (int l = 0; l < 6; l++) {
        thiele_table *table = NULL;
        for (int i = 0; i < N; i++) {
            double f = sin(2.0 * z[2 * i]) + 0.3 * z[2 * i + 1];
            values[2 * i] = z[2 * i];
            values[2 * i + 1] = l < 3 ? f : l == 3 ? floor(exp(1.0 + f)) : l == 4 ? f > 0.0 : floor(fmin(2.9, f + 1.5));
            values[2 * i + 1] = l == 5 ? fmax(0.0, values[2 * i + 1]) : values[2 * i + 1];
        }
        assert_ok(ctx, thiele_table_from_rows(&table, ctx, N, 2, values, names));
        for (int way = 0; way < 4; way++) {
            thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
            const char *const *family = families[way % 2];
            double value[2];
            for (int k = 0; k < 2; k++) {
                thiele_model *model = NULL;
                options.columns.target = "y";
                options.model.likelihood = likelihoods[l];
                options.model.method = "variational";
                options.prior.kernel = "se";
                options.inducing.inducing = 10;
                options.inducing.fix_inducing = 1;
                options.inducing.posterior = family[k];
                options.optimiser.batch = way < 2 ? 0 : 10;
                options.stopping.epochs = way < 2 ? 0 : 20;
                assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
                value[k] = model->value;
                thiele_model_destroy(model);
            }
            print_message("%s, %s%s: %.6f, two %.6f\n", likelihoods[l], family[0], way < 2 ? "" : " by batches",
                          value[0], value[1]);
            assert_true(value[1] > value[0] - 1e-7);
        }
        thiele_table_destroy(table);
    }
    thiele_context_destroy(ctx);
}

/* Eq. 14 is there, says so, and loses M (1 - log 2)/2 for components far apart too. */
static void test_jensen(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = signal(ctx, ROWS, 1, false, false, 1.0);
    thiele_model *pairwise = fit_square(ctx, table, "mixture-full:2", "pairwise"),
                 *jensen = fit_square(ctx, table, "mixture-full:2", "jensen");
    assert_string_equal(pairwise->entropy, "pairwise");
    assert_string_equal(jensen->entropy, "jensen");
    assert_near(pairwise->value - jensen->value, 20 * (1.0 - log(2.0)) / 2, 0.0, 0.02);
    thiele_model_destroy(pairwise);
    thiele_model_destroy(jensen);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    thiele_model *model = NULL;
    options.columns.target = "y";
    options.model.method = "variational";
    options.inducing.entropy = "exact";
    options.inducing.posterior = "mixture:2";
    assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_ARGUMENT, "pairwise or jensen");
    options.inducing.entropy = "jensen";
    options.inducing.posterior = "diag";
    assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_ARGUMENT, "one Gaussian is exact");
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

static void test_threads(void **state)
{
    (void)state;
    double value[2], a[2][2 * 20];
    for (int threads = 1; threads <= 3; threads += 2) {
        thiele_context *ctx = test_context(threads);
        thiele_table *table = signal(ctx, ROWS, 1, true, false, 1.0);
        thiele_model *model = fit_square(ctx, table, "mixture-full:2", NULL);
        value[threads / 2] = model->value;
        memcpy(a[threads / 2], model->latent->a, sizeof a[0]);
        thiele_model_destroy(model);
        thiele_table_destroy(table);
        thiele_context_destroy(ctx);
    }
    assert_true(value[0] == value[1]);
    assert_memory_equal(a[0], a[1], sizeof a[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_signs),
        cmocka_unit_test(test_modes_predict_differently),
        cmocka_unit_test(test_update_tells_the_sign),
        cmocka_unit_test(test_joint),
        cmocka_unit_test(test_never_behind),
        cmocka_unit_test(test_jensen),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
