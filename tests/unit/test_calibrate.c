/*
 * Calibration: the law of scaled residuals against its definition and by simulation of the guarantee, temperatures that
 * are known, and fits of misspecified models whose intervals must hold afterwards, by every kind of method.
 */
#include "model_testing.h"

#include "likelihood/special.h"
#include "model/calibration.h"

static double draw(uint64_t seed, uint64_t row, uint64_t index)
{
    return thi_random_normal((thi_stream){seed, THI_RANDOM_DEMO, row}, index);
}

/* Student-t with three degrees of freedom. */
static double heavy(uint64_t seed, uint64_t i)
{
    double squares = 0.0;
    for (uint64_t k = 1; k <= 3; k++) {
        double z = draw(seed, i, k);
        squares += z * z;
    }
    return draw(seed, i, 0) / sqrt(squares / 3.0);
}

static thi_residual_law heavy_law(uint64_t seed, int64_t n)
{
    thi_residual_law law;
    double *size = malloc((size_t)n * sizeof *size);
    for (int64_t i = 0; i < n; i++) {
        size[i] = fabs(heavy(seed, (uint64_t)i));
    }
    thi_sort(n, size);
    thi_residual_law_make(&law, n, size);
    free(size);
    return law;
}

/* --- the law ------------------------------------------------------------------------------------------------------ */

static void test_law_is_monotone_and_inverts(void **state)
{
    (void)state;
    const int64_t rows[] = {0, 8, 20, 200, 5000};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        thi_residual_law law = heavy_law(r, rows[r]);
        double before = -INFINITY;
        for (double z = -8.0; z <= 8.0; z += 0.01) {
            double t = thi_residual_quantile(&law, z);
            assert_true(t > before);
            assert_near(thi_residual_score(&law, t), z, 1e-9, 1e-9);
            before = t;
        }
    }
    assert_int_equal(heavy_law(0, 0).count, 0);
    assert_int_equal(heavy_law(0, 5000).count, 10);
}

/* Equal residuals, even none at all, give a law. */
static void test_law_of_ties(void **state)
{
    (void)state;
    double size[100] = {0};
    thi_residual_law law;
    for (int step = 0; step < 2; step++) {
        thi_residual_law_make(&law, 100, size);
        assert_true(law.count > 5 && thi_residual_law_finish(&law));
        for (int i = 0; i < 100; i++) {
            size[i] = 2.0;
        }
    }
}

/* Density, variance and score of the law against sums over its quantile function. */
static void test_law_moments(void **state)
{
    (void)state;
    enum { NODES = 200000 };
    thi_residual_law law = heavy_law(3, 2000);
    double square = 0.0, crps = 0.0, t = 1.3, step = 20.0 / NODES;
    for (int i = 0; i < NODES; i++) {
        double z = -10.0 + (i + 0.5) * step, value = thi_residual_quantile(&law, z);
        double weight = step * exp(-0.5 * z * z) / sqrt(2.0 * 3.14159265358979323846);
        square += weight * value * value;
        crps += weight * (fabs(value - t) - value * (0.5 * erfc(-z / sqrt(2.0)) * 2.0 - 1.0));
    }
    assert_near(law.square, square, 1e-6, 0);
    assert_near(thi_residual_crps(&law, t), crps, 1e-6, 0);
    assert_near(thi_residual_crps(&law, -t), crps, 1e-6, 0);
    thi_residual_law normal = {0};
    assert_true(thi_residual_law_finish(&normal));
    assert_near(normal.square, 1.0, 1e-14, 0);
    assert_near(thi_residual_crps(&normal, t), thiele_crps_gaussian(t, 0.0, 1.0), 1e-12, 0);
}

/*
 * CRPS on each axis: of a law that is log-normal its closed form; of one with knots and two sides, which has none,
 * dCRPS/dy = 2 F(y) - 1.
 */
static void test_crps_of_axes(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    static const thi_spread even = {0.7, 0.4, 0.7}, sides = {0.2, 0.1, 0.9};
    thi_residual_law normal = {0}, law = heavy_law(3, 2000);
    double got, crps[2], h = 1e-4;
    assert_true(thi_residual_law_finish(&normal));
    for (int i = 0; i < 4; i++) {
        double y = exp(0.9 * i - 1.0), z = (log(y) - 0.4) / 0.7;
        double want = y * (2.0 * thi_normal_cdf(z) - 1.0) -
                      2.0 * exp(0.4 + 0.245) * (thi_normal_cdf(z - 0.7) + thi_normal_cdf(0.7 / sqrt(2.0)) - 1.0);
        assert_ok(ctx, thi_calibrated_crps(&normal, &even, THI_SUPPORT_POSITIVE, ctx, y, &got));
        assert_near(got, want, 2e-7, 0);
    }
    for (int support = THI_SUPPORT_REAL; support <= THI_SUPPORT_UNIT; support++) {
        for (double y = 0.2; y < 1.0; y += 0.3) {
            double t = thi_spread_residual(&sides, (thi_support)support, y);
            for (int k = 0; k < 2; k++) {
                double at = y + (k == 0 ? -h : h);
                assert_ok(ctx, thi_calibrated_crps(&law, &sides, (thi_support)support, ctx, at, &crps[k]));
            }
            assert_near((crps[1] - crps[0]) / (2.0 * h), 2.0 * thi_normal_cdf(thi_residual_score(&law, t)) - 1.0, 0,
                        1e-3);
        }
    }
    thiele_context_destroy(ctx);
}

/* The density integrates to 1 on each support, also with sides of different spread. */
static void test_density(void **state)
{
    (void)state;
    enum { NODES = 400000 };
    thi_residual_law law = heavy_law(4, 500);
    thi_spread spread = {.below = 0.2, .centre = -0.3, .above = 0.35};
    for (int support = THI_SUPPORT_REAL; support <= THI_SUPPORT_UNIT; support++) {
        double before = thi_calibrated_value(&law, &spread, support, -8.0), sum = 0.0;
        for (int i = 1; i <= NODES; i++) {
            double y = thi_calibrated_value(&law, &spread, support, -8.0 + 16.0 * i / NODES);
            sum += (y - before) * exp(thi_calibrated_log_density(&law, &spread, support, 0.5 * (y + before)));
            before = y;
        }
        assert_near(sum, 1.0, 1e-4, 0);
    }
}

/*
 * The guarantee: of n scores and one more from the same law, however heavy, the last is inside with a probability from
 * L to L + 1/(n + 1). 20,000 repetitions: four standard deviations of the share are 0.0085 at most.
 */
static void test_finite_sample_coverage(void **state)
{
    (void)state;
    enum { N = 59, TIMES = 20000 };
    const double level[] = {0.5, 0.8, 0.9, 0.95},
                 z[] = {0.67448975019608171, 1.2815515655446004, 1.6448536269514722, 1.9599639845400545};
    int64_t inside[4] = {0};
    for (uint64_t time = 0; time < TIMES; time++) {
        thi_residual_law law = heavy_law(100 + time, N);
        double next = fabs(heavy(100 + time, N));
        for (int l = 0; l < 4; l++) {
            inside[l] += next <= thi_residual_quantile(&law, z[l]);
        }
    }
    for (int l = 0; l < 4; l++) {
        double share = (double)inside[l] / TIMES, away = 4.0 * sqrt(level[l] * (1.0 - level[l]) / TIMES);
        assert_true(share >= level[l] - away && share <= level[l] + 1.0 / (N + 1) + away);
    }
}

/* Labels drawn from probabilities that are then made sharper, or blunter, by a known power. */
static void test_temperature(void **state)
{
    (void)state;
    enum { N = 20000, CLASSES = 3 };
    const double powers[] = {0.4, 1.0, 2.5};
    static double probability[CLASSES * N];
    static int label[N];
    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
        for (uint64_t i = 0; i < N; i++) {
            double *p = probability + CLASSES * i, sum = 0.0;
            for (uint64_t c = 0; c < CLASSES; c++) {
                sum += p[c] = exp(1.5 * draw(5, i, c));
            }
            double left = sum * thi_random_uniform((thi_stream){6, THI_RANDOM_DEMO, i}, 0) - p[0];
            for (label[i] = 0; left >= 0.0 && label[i] < CLASSES - 1;) {
                left -= p[++label[i]];
            }
        }
        thi_temper(1.0 / powers[k], N, CLASSES, probability);
        assert_near(thi_find_temperature(N, CLASSES, label, probability), powers[k], 0.05, 0);
    }
    /* One label without a mistake: as sure as is allowed, and no number beyond. */
    double sure[2 * 50];
    int zero[50] = {0};
    for (int i = 0; i < 50; i++) {
        sure[2 * i] = 1.0;
        sure[2 * i + 1] = 0.0;
    }
    double temperature = thi_find_temperature(50, 2, zero, sure);
    assert_true(temperature > 0.09 && temperature < 10.1);
}

/* --- fits --------------------------------------------------------------------------------------------------------- */

enum { TRAIN = 600, TEST = 4000 };

/* y = sin(3 x) + heavy noise; positive: exp of that. second: a column with another function. */
static thiele_table *make_table(thiele_context *ctx, int64_t rows, uint64_t seed, double noise, bool positive)
{
    static const char *const names[] = {"x", "y", "w"};
    double *values = malloc((size_t)rows * 3 * sizeof *values);
    thiele_table *table = NULL;
    for (int64_t i = 0; i < rows; i++) {
        double x = 4.0 * thi_random_uniform((thi_stream){seed, THI_RANDOM_SPLIT, (uint64_t)i}, 0) - 2.0;
        double y = sin(3.0 * x) + noise * heavy(seed, (uint64_t)i);
        values[3 * i] = x;
        values[3 * i + 1] = positive ? exp(y) : y;
        values[3 * i + 2] = cos(2.0 * x) + noise * draw(seed + 1, (uint64_t)i, 0);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, rows, 3, values, names));
    free(values);
    return table;
}

typedef struct misfit {
    const char *method, *likelihood, *set, *target;
    bool positive;
    double slack; /* around 90%, for the rows that the residuals come from */
} misfit;

/* Noise, shapes and scales that are wrong by far, and held there. */
static const misfit misfits[] = {
    {"exact", "gaussian", "noise=0.001", "y", false, 0.04},
    {"collapsed", "gaussian", "noise=0.001", "y", false, 0.04},
    {"variational", "gaussian", "noise=4", "y", false, 0.04},
    {"pic", "gaussian", "noise=0.002", "y", false, 0.04},
    {"sor", "gaussian", "noise=0.002", "y", false, 0.04},
    {"decoupled", "gaussian", "noise=0.01", "y", false, 0.05},
    {"augmented", "student-t(nu=50)", "scale=0.02", "y", false, 0.04},
    {"variational", "laplace", "beta=1.5", "y", false, 0.04},
    {"dense", "gamma", "shape=400", "y", true, 0.05},
    {"exact", "gaussian", "noise=0.002", "y,w", false, 0.05},
};

static thiele_fit_options misfit_options(const misfit *m, bool calibrate)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.inputs = "x";
    options.columns.target = m->target;
    options.model.method = m->method;
    options.model.likelihood = strchr(m->target, ',') != NULL ? NULL : m->likelihood;
    options.prior.kernel = "se(lengthscale=0.5, variance=1)";
    options.prior.set = strchr(m->target, ',') != NULL ? "noise1=0.002, noise2=0.002" : m->set;
    options.stopping.iterations = strcmp(m->method, "decoupled") == 0 ? 60 : 5;
    options.result.calibrate = calibrate;
    return options;
}

static void test_misspecified(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (size_t k = 0; k < sizeof misfits / sizeof *misfits; k++) {
        const misfit *m = &misfits[k];
        thiele_table *train = make_table(ctx, TRAIN, 17, 0.3, m->positive);
        thiele_table *test = make_table(ctx, m->positive ? TEST / 4 : TEST, 12, 0.3, m->positive);
        thiele_scores plain[2], scores[2];
        for (int calibrate = 0; calibrate < 2; calibrate++) {
            thiele_fit_options options = misfit_options(m, calibrate);
            thiele_model *model = fitted(ctx, train, &options);
            thiele_calibration by;
            thiele_model_calibration(model, &by);
            assert_ok(ctx, thiele_model_score(model, ctx, test, NULL, calibrate ? scores : plain));
            assert_int_equal(by.rows > 0, calibrate);
            thiele_model_destroy(model);
        }
        for (int p = 0; p < (strchr(m->target, ',') != NULL ? 2 : 1); p++) {
            print_message("%s, %s: %.3f before, %.3f (%.3f) after; NLPD %.3f, %.3f\n", m->method, m->likelihood,
                          plain[p].coverage90, scores[p].coverage90, scores[p].coverage50, plain[p].nlpd,
                          scores[p].nlpd);
            assert_true(fabs(plain[p].coverage90 - 0.9) > 0.06);
            assert_true(fabs(scores[p].coverage90 - 0.9) <= m->slack);
            assert_true(fabs(scores[p].coverage50 - 0.5) <= 2.0 * m->slack);
            assert_true(scores[p].nlpd < plain[p].nlpd);
            assert_near(scores[p].rmse, plain[p].rmse, 0.05, 0);
        }
        thiele_table_destroy(train);
        thiele_table_destroy(test);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* A model whose law is true is changed little. */
static void test_identity(void **state)
{
    (void)state;
    enum { ROWS = 1500 };
    static const char *const names[] = {"x", "y"};
    static double values[2 * ROWS];
    thiele_context *ctx = test_context(2);
    thiele_table *table[2] = {NULL};
    for (uint64_t t = 0; t < 2; t++) {
        for (uint64_t i = 0; i < ROWS; i++) {
            values[2 * i] = 4.0 * thi_random_uniform((thi_stream){21 + t, THI_RANDOM_SPLIT, i}, 0) - 2.0;
            values[2 * i + 1] = sin(3.0 * values[2 * i]) + 0.3 * draw(21 + t, i, 0);
        }
        assert_ok(ctx, thiele_table_from_rows(&table[t], ctx, ROWS, 2, values, names));
    }
    thiele_scores scores[2];
    for (int calibrate = 0; calibrate < 2; calibrate++) {
        thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
        options.columns.target = "y";
        options.model.method = "collapsed";
        options.inducing.inducing = 30;
        options.result.calibrate = calibrate;
        thiele_model *model = fitted(ctx, table[0], &options);
        assert_ok(ctx, thiele_model_score(model, ctx, table[1], NULL, &scores[calibrate]));
        /* Quantiles of 1,500 residuals: five standard deviations of that of 95% are 0.13 of it. */
        assert_near(thiele_model_stretch(model, 0, 0.5), 1.0, 0.13, 0);
        assert_near(thiele_model_stretch(model, 0, 0.9), 1.0, 0.1, 0);
        assert_near(thiele_model_stretch(model, 0, 0.95), 1.0, 0.13, 0);
        assert_false(model->tails != NULL && model->tails->heavy);
        thiele_model_destroy(model);
    }
    assert_near(scores[1].nlpd, scores[0].nlpd, 0, 0.02);
    assert_near(scores[1].crps, scores[0].crps, 0.02, 0);
    assert_near(scores[1].coverage90, 0.9, 0, 0.035);
    thiele_table_destroy(table[0]);
    thiele_table_destroy(table[1]);
    thiele_context_destroy(ctx);
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

enum { QUANTILES = 5, SAMPLES = 3 };

typedef struct answers {
    int64_t n;
    double mean[TRAIN], variance[TRAIN], quantile[QUANTILES * TRAIN], sample[SAMPLES * TRAIN];
} answers;

static thiele_status keep(const thiele_prediction *block, void *user)
{
    answers *a = user;
    for (int64_t i = 0; i < block->rows; i++, a->n++) {
        a->mean[a->n] = block->mean[i];
        a->variance[a->n] = block->variance[i];
        memcpy(a->quantile + QUANTILES * a->n, block->quantiles + QUANTILES * i, QUANTILES * sizeof(double));
        memcpy(a->sample + SAMPLES * a->n, block->samples + SAMPLES * i, SAMPLES * sizeof(double));
    }
    return THIELE_OK;
}

static void ask(thiele_context *ctx, const thiele_model *model, const thiele_table *table, answers *a)
{
    static const double levels[QUANTILES] = {0.001, 0.05, 0.5, 0.95, 0.9999};
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    options.quantiles = levels;
    options.quantile_count = QUANTILES;
    options.samples = SAMPLES;
    *a = (answers){0};
    assert_ok(ctx, thiele_model_predict(model, ctx, table, &options, keep, a));
}

static void test_round_trip(void **state)
{
    (void)state;
    static answers before, after;
    thiele_context *ctx = test_context(2);
    for (int robust = 0; robust < 2; robust++) {
        thiele_table *train = make_table(ctx, 300, 31, 0.3, false);
        thiele_fit_options options = misfit_options(&misfits[robust ? 6 : 0], true);
        thiele_model *model = fitted(ctx, train, &options), *loaded = NULL;
        assert_ok(ctx, thiele_model_save(model, ctx, in_folder("c.thiele")));
        assert_ok(ctx, thiele_model_load(&loaded, ctx, in_folder("c.thiele")));
        ask(ctx, model, train, &before);
        ask(ctx, loaded, train, &after);
        assert_int_equal(before.n, 300);
        assert_memory_equal(&before, &after, sizeof before);
        for (int64_t i = 0; i < QUANTILES * 300; i++) {
            assert_true(i % QUANTILES == 0 || before.quantile[i] > before.quantile[i - 1]);
        }
        /* Rows of numbers, single rows and, of a Gaussian, the joint law say the same. */
        static double mean[300], variance[300], joint_mean[300], joint[300 * 300];
        double x = 0.5, one, its;
        thiele_predictor *predictor = NULL;
        assert_ok(ctx, thiele_model_predict_rows(model, ctx, 1, &x, 0, mean, variance));
        assert_ok(ctx, thiele_predictor_open(&predictor, ctx, model, THIELE_PREDICT_OBSERVATION));
        assert_ok(ctx, thiele_predictor_row(predictor, &x, &one, &its));
        assert_near(one, mean[0], 1e-9, 1e-9);
        assert_near(its, variance[0], 1e-6, 0);
        thiele_predictor_destroy(predictor);
        if (!robust) {
            assert_ok(ctx, thiele_model_predict_joint(model, ctx, train, NULL, joint_mean, joint));
            assert_near(joint[0], before.variance[0], 1e-6, 0);
        }
        char *text[2];
        assert_ok(ctx, thiele_model_describe(model, ctx, &text[0]));
        assert_ok(ctx, thiele_model_describe(loaded, ctx, &text[1]));
        assert_string_equal(text[0], text[1]);
        thiele_free(text[0]);
        thiele_free(text[1]);
        thiele_model_destroy(model);
        thiele_model_destroy(loaded);
        thiele_table_destroy(train);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* Two labels of a function that a probit sees with the wrong scale: a temperature, and probabilities that follow it. */
static void test_labels(void **state)
{
    (void)state;
    enum { ROWS = 400 };
    static const char *const names[] = {"x", "y"};
    static double values[2 * ROWS], plain[2 * ROWS], tempered[2 * ROWS];
    thiele_context *ctx = test_context(2);
    thiele_table *table = NULL;
    for (uint64_t i = 0; i < ROWS; i++) {
        values[2 * i] = 4.0 * thi_random_uniform((thi_stream){41, THI_RANDOM_SPLIT, i}, 0) - 2.0;
        values[2 * i + 1] = sin(3.0 * values[2 * i]) + draw(41, i, 0) > 0.0;
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, ROWS, 2, values, names));
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.model.likelihood = "bernoulli";
    options.prior.kernel = "se";
    options.prior.set = "lengthscale=0.02, variance=200";
    options.result.calibrate = 1;
    thiele_model *model = fitted(ctx, table, &options);
    thiele_calibration by;
    thiele_model_calibration(model, &by);
    assert_int_equal(by.rows, ROWS);
    assert_true(by.temperature > 1.2);
    for (int i = 0; i < ROWS; i++) {
        tempered[i] = values[2 * i];
    }
    static double x[ROWS];
    memcpy(x, tempered, sizeof x);
    assert_ok(ctx, thiele_model_predict_probabilities(model, ctx, ROWS, x, tempered));
    model->calibration.rows = 0;
    assert_ok(ctx, thiele_model_predict_probabilities(model, ctx, ROWS, x, plain));
    model->calibration.rows = by.rows;
    for (int i = 0; i < ROWS; i++) {
        double odds = pow(plain[2 * i + 1] / plain[2 * i], 1.0 / by.temperature);
        assert_near(tempered[2 * i + 1], odds / (1.0 + odds), 1e-9, 1e-12);
    }
    assert_true(isnan(thiele_model_stretch(model, 0, 0.9)));
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = make_table(ctx, 15, 51, 0.3, true);
    thiele_model *model = NULL;
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "y";
    options.columns.inputs = "x";
    options.result.calibrate = 1;
    assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_DATA, "too few for `calibrate`");
    options.model.likelihood = "poisson";
    options.columns.target = "x";
    options.columns.inputs = "y";
    assert_int_not_equal(thiele_model_fit(&model, ctx, table, &options), THIELE_OK);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law_is_monotone_and_inverts),
        cmocka_unit_test(test_law_of_ties),
        cmocka_unit_test(test_law_moments),
        cmocka_unit_test(test_crps_of_axes),
        cmocka_unit_test(test_density),
        cmocka_unit_test(test_finite_sample_coverage),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_misspecified),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
