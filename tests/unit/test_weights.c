/*
 * Weights of rows: a row of weight 2 is that row twice, for every method that knows weights; equal rows are merged
 * whatever their order, and rows of weight 0 are gone. The exact evidence has the gradient of its differences.
 */
#include "expect/parallel.h"
#include "model/methods.h"
#include "model/model.h"
#include "posterior/exact.h"
#include "testing.h"

#include "thiele/thiele.h"

enum { ROWS = 24, COPIES = 3, MOST = ROWS * COPIES, COLUMNS = 4 };
static const char *const names[COLUMNS] = {"x", "y", "label", "w"};

static int copies_of(int i)
{
    return 1 + i % COPIES;
}

static void fill_row(int i, double weight, double *row)
{
    double x = 6.0 * thi_random_uniform((thi_stream){3, 2, 1}, (uint64_t)i) - 3.0;
    double noise = 0.3 * thi_random_normal((thi_stream){3, 2, 2}, (uint64_t)i);
    row[0] = x;
    row[1] = sin(x) + noise;
    row[2] = x + 3.0 * noise > 0.0 ? 1.0 : 0.0;
    row[3] = weight;
}

/* Each row once, with weights. */
static thiele_table *weighted_table(thiele_context *ctx)
{
    double values[ROWS * COLUMNS];
    thiele_table *table = NULL;
    for (int i = 0; i < ROWS; i++) {
        fill_row(i, copies_of(i), values + (ptrdiff_t)i * COLUMNS);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, ROWS, COLUMNS, values, names));
    return table;
}

/* Each row as often as that; backwards, and with a row of weight 0 at the end, where the table has weights. */
static thiele_table *repeated_table(thiele_context *ctx, bool weights)
{
    double values[(MOST + 1) * COLUMNS];
    thiele_table *table = NULL;
    int rows = 0;
    for (int k = 0; k < ROWS; k++) {
        int i = weights ? ROWS - 1 - k : k;
        for (int c = 0; c < copies_of(i); c++) {
            fill_row(i, 1.0, values + (ptrdiff_t)(rows++) * COLUMNS);
        }
    }
    if (weights) {
        fill_row(ROWS, 0.0, values + (ptrdiff_t)(rows++) * COLUMNS);
    }
    assert_ok(ctx, thiele_table_from_rows(&table, ctx, rows, COLUMNS, values, names));
    return table;
}

static void fit(thiele_model **out, thiele_context *ctx, thiele_table *table, thiele_fit_options options,
                const char *weights)
{
    options.columns.inputs = "x";
    options.columns.weights = weights;
    assert_ok(ctx, thiele_model_fit(out, ctx, table, &options));
}

static thiele_fit_options options_of(const char *target, const char *method, const char *likelihood, const char *kernel)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = target;
    options.model.method = method;
    options.model.likelihood = likelihood;
    options.prior.kernel = kernel;
    return options;
}

/* Predictions, latent ones, at four places; and the evidence or bound. */
static void assert_alike(thiele_context *ctx, const thiele_model *a, const thiele_model *b, double value, double latent,
                         double more)
{
    const double x[4] = {-2.5, -0.4, 0.3, 2.0};
    double mean[2][4], variance[2][4];
    const thiele_model *const model[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        assert_ok(ctx, thiele_model_predict_rows(model[k], ctx, 4, x, 1, mean[k], variance[k]));
    }
    for (int i = 0; i < 4; i++) {
        assert_near(mean[0][i], mean[1][i], latent, latent);
        assert_near(variance[0][i], variance[1][i], latent, latent);
    }
    assert_near(a->value, b->value + more, value, value);
}

/* --- a power of the likelihood --------------------------------------------------------------------------------------
 */

/* At fixed hyperparameters, with a basis of all different rows: no row of the repeated table is merged. */
static void test_powers(void **state)
{
    (void)state;
    static const struct {
        const char *target, *method, *likelihood, *set;
        double value, latent; /* how near */
        bool basis;
    } cases[] = {
        {"y", "exact", "gaussian", "noise=0.3", 1e-9, 1e-9, false},
        {"y", "collapsed", "gaussian", "noise=0.3", 1e-4, 1e-5, true},
        {"y", "variational", "gaussian", "noise=0.3", 1e-4, 1e-5, true},
        {"y", "dense", "student-t(nu=4, scale=0.3)", NULL, 1e-5, 1e-3, false},
        {"y", "variational", "student-t(nu=4, scale=0.3)", NULL, 1e-3, 1e-2, true},
        {"y", "augmented", "student-t(nu=4, scale=0.3)", NULL, 1e-5, 1e-3, false},
        {"label", "dense", "bernoulli", NULL, 1e-5, 1e-3, false},
        {"label", "augmented", "bernoulli", NULL, 1e-5, 1e-3, false},
        {"y", "fitc", "gaussian", "noise=0.3", 1e-3, 1e-3, true},
        {"y", "pic", "student-t(nu=4, scale=0.3)", NULL, 1e-3, 1e-2, true},
        {"y", "ess", "student-t(nu=4, scale=0.3)", NULL, 1e-3, 0.12, false},
        {"y", "hmc", "student-t(nu=4, scale=0.3)", NULL, 1e-3, 0.12, false},
    };
    thiele_context *ctx = test_context(1);
    thiele_table *weighted = weighted_table(ctx), *repeated = repeated_table(ctx, false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_fit_options options =
            options_of(cases[i].target, cases[i].method, cases[i].likelihood, "se(variance=0.8, lengthscale=1.2)");
        thiele_model *one = NULL, *other = NULL;
        options.prior.set = cases[i].set;
        options.columns.raw = 1;
        options.prior.mean = "zero";
        options.inducing.inducing = cases[i].basis ? ROWS : 0;
        fit(&one, ctx, weighted, options, "w");
        fit(&other, ctx, repeated, options, NULL);
        const double y = 0.0, f[2] = {0};
        double more = (MOST / 3 * 2 - ROWS) * thi_likelihood_log_scale(one->lik, &y, f);
        assert_alike(ctx, one, other, cases[i].value, cases[i].latent, more);
        assert_int_equal(one->rows, ROWS);
        assert_int_equal(other->rows, repeated->rows);
        thiele_model_destroy(one);
        thiele_model_destroy(other);
    }
    thiele_table_destroy(weighted);
    thiele_table_destroy(repeated);
    thiele_context_destroy(ctx);
}

/* --- merging --------------------------------------------------------------------------------------------------------
 */

/* Fits that learn, by two tables that say the same: the same bits. */
static void test_same_fit(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *weighted = weighted_table(ctx), *repeated = repeated_table(ctx, true);
    static const char *const ways[][3] = {{"y", NULL, NULL}, {"y", "variational", NULL}, {"label", NULL, "bernoulli"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        thiele_model *one = NULL, *other = NULL;
        fit(&one, ctx, weighted, options_of(ways[i][0], ways[i][1], ways[i][2], NULL), "w");
        fit(&other, ctx, repeated, options_of(ways[i][0], ways[i][1], ways[i][2], NULL), "w");
        assert_alike(ctx, one, other, 0.0, 0.0, 0.0);
        assert_string_equal(one->encoder.weights, "w");
        thiele_model_destroy(one);
        thiele_model_destroy(other);
    }
    thiele_table_destroy(weighted);
    thiele_table_destroy(repeated);
    thiele_context_destroy(ctx);
}

static void test_merge(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    const thi_column_options options = {.target = "y", .inputs = "x", .weights = "w"};
    thiele_table *tables[2] = {weighted_table(ctx), repeated_table(ctx, true)}, *merged[2], *all;
    const int column[3] = {3, 0, 1};
    double values[2][ROWS * 3], rows[3 * COLUMNS];
    for (int k = 0; k < 2; k++) {
        assert_ok(ctx, thi_table_merge(&merged[k], ctx, tables[k], &options));
        assert_int_equal(merged[k]->rows, ROWS);
        assert_false(merged[k]->equal);
        assert_ok(ctx, merged[k]->ops->numbers(merged[k], ctx, 0, ROWS, column, 3, values[k]));
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    for (int k = 0; k < 2; k++) {
        thiele_table_destroy(merged[k]);
        thiele_table_destroy(tables[k]);
    }
    /* Different rows of weight 1 stay where they are. */
    for (int i = 0; i < 3; i++) {
        fill_row(i, i == 1 ? 0.0 : 1.0, rows + (ptrdiff_t)i * COLUMNS);
    }
    assert_ok(ctx, thiele_table_from_rows(&all, ctx, 3, COLUMNS, rows, names));
    assert_ok(ctx, thi_table_merge(&merged[0], ctx, all, &options));
    assert_true(merged[0]->equal && merged[0]->rows == 2);
    assert_int_equal(thi_table_row_number(merged[0], 1), 3);
    thiele_table_destroy(merged[0]);
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        thi_fail_allocation(ctx, n, false);
        thiele_status status = thi_table_merge(&merged[0], ctx, all, &options);
        thi_fail_allocation(ctx, 0, false);
        assert_true(n < 100 && (status == THIELE_OK || status == THIELE_ERROR_MEMORY));
        done = status == THIELE_OK;
    }
    thiele_table_destroy(merged[0]);
    thiele_table_destroy(all);
    thiele_context_destroy(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    const double bad[3] = {-1.0, NAN, INFINITY};
    static const char *const why[3] = {"column 'w', row 2: -1: a weight must be a finite number and not negative",
                                       "column 'w', row 2: no weight", "column 'w', row 2: inf"};
    double rows[4 * COLUMNS];
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    thiele_fit_options options = options_of("y", NULL, NULL, "se");
    options.columns.weights = "w";
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 4; i++) {
            fill_row(i, k == 3 ? 0.0 : i == 1 ? bad[k] : 1.0, rows + (ptrdiff_t)i * COLUMNS);
        }
        assert_ok(ctx, thiele_table_from_rows(&table, ctx, 4, COLUMNS, rows, names));
        assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_DATA,
                     k < 3 ? why[k] : "all weights are zero");
        thiele_table_destroy(table);
    }
    table = weighted_table(ctx);
    for (int i = 0; i < thi_method_count; i++) {
        if ((thi_methods[i]->can & THI_CAN_WEIGHTS) == 0 && thi_method_is_first(i)) {
            options.model.method = thi_methods[i]->name;
            options.model.likelihood = thi_methods[i]->steps != NULL ? "student-t" : NULL;
            assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_UNSUPPORTED,
                         "knows no weights of rows: it counts each row once");
        }
    }
    options = options_of("y", NULL, NULL, "se");
    options.columns.weights = "x";
    options.columns.inputs = "x";
    assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_ARGUMENT, "column 'x' is");
    options.columns.inputs = NULL;
    options.columns.weights = "nobody";
    assert_fails(ctx, thiele_model_fit(&model, ctx, table, &options), THIELE_ERROR_COLUMN, "nobody");
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

/* Rows of an update count once each: a column of weights is not passed over in silence. */
static void test_update(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_table *table = weighted_table(ctx), *more = NULL;
    thiele_model *model = NULL, *next = NULL;
    const double row[2] = {0.5, 0.4};
    static const char *const few[2] = {"x", "y"};
    thiele_fit_options options = options_of("y", "collapsed", "gaussian", "se");
    fit(&model, ctx, table, options, "w");
    assert_fails(ctx, thiele_model_update(&next, ctx, model, table, NULL), THIELE_ERROR_UNSUPPORTED,
                 "rows of an update count once each");
    assert_ok(ctx, thiele_table_from_rows(&more, ctx, 1, 2, row, few));
    assert_ok(ctx, thiele_model_update(&next, ctx, model, more, NULL));
    thiele_model_destroy(next);
    thiele_model_destroy(model);
    thiele_table_destroy(more);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

/* --- the exact evidence ----------------------------------------------------------------------------------------------
 */

static double evidence(thiele_context *ctx, const thi_exact_shape *shape, const thi_prior *prior, double noise,
                       double bar[2])
{
    thi_exact exact;
    double theta[2] = {0};
    assert_ok(ctx, thi_exact_open_shape(&exact, ctx, shape));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, prior, noise));
    double value = exact.log_marginal;
    if (bar != NULL) {
        assert_ok(ctx, thi_exact_gradient(&exact, ctx, prior, theta, NULL, &bar[1]));
        bar[0] = theta[0];
    }
    thi_exact_close(&exact);
    return value;
}

static void test_gradient(void **state)
{
    (void)state;
    enum { N = 30 };
    static const double h = 1e-5;
    thiele_context *ctx = test_context(1);
    thiele_kernel *kernel = NULL;
    double X[N], y[N], weight[N], theta[2], bar[2] = {0}, noise = 0.2;
    test_normals(N, 1, X);
    test_normals(N, 2, y);
    for (int i = 0; i < N; i++) {
        weight[i] = 0.3 + 0.2 * (i % 7);
    }
    const thi_exact_shape shape = {N, 1, X, y, weight};
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "se", 1, NULL));
    const thi_prior prior = {kernel, THI_MEAN_ZERO, NULL};
    evidence(ctx, &shape, &prior, noise, bar);
    double up = evidence(ctx, &shape, &prior, noise * exp(h), NULL);
    assert_near(bar[1], (up - evidence(ctx, &shape, &prior, noise * exp(-h), NULL)) / (2.0 * h), 1e-6, 1e-6);
    thiele_kernel_get(kernel, theta);
    theta[0] += h;
    thiele_kernel_set(kernel, theta);
    up = evidence(ctx, &shape, &prior, noise, NULL);
    theta[0] -= 2.0 * h;
    thiele_kernel_set(kernel, theta);
    assert_near(bar[0], (up - evidence(ctx, &shape, &prior, noise, NULL)) / (2.0 * h), 1e-6, 1e-6);
    thiele_kernel_destroy(kernel);
    thiele_context_destroy(ctx);
}

/* E of one row of weight 1.7. */
static double expected(thiele_context *ctx, const thiele_likelihood *lik, const double *mu, double *g, double *dphi)
{
    const double y = 0.4, v[2] = {0.2, 0.1}, weight = 1.7;
    double E, h[2];
    thi_providers providers = {.lik = lik};
    const thi_asked asked = {0, 1, &y, mu, v, &E, g, h, dphi, &weight};
    assert_ok(ctx, thi_providers_expect(&providers, ctx, &asked));
    thi_providers_close(&providers);
    return E;
}

/* In the means and in the logs of the parameters. */
static void test_slopes(void **state)
{
    (void)state;
    static const char *const texts[] = {"gaussian(noise~0.2)", "student-t(nu~4, scale~0.3)", "laplace(beta~0.4)",
                                        "heteroscedastic", "poisson"};
    static const double step = 1e-5;
    thiele_context *ctx = test_context(1);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        thiele_likelihood *lik = NULL;
        double mu[2] = {0.1, -1.0}, g[2], dphi[4] = {0}, other[2], others[4];
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, texts[k], 1, 0));
        expected(ctx, lik, mu, g, dphi);
        for (int q = 0; q < lik->latents; q++) {
            double at = mu[q], side[2];
            for (int i = 0; i < 2; i++) {
                mu[q] = at + (i == 0 ? step : -step);
                side[i] = expected(ctx, lik, mu, other, others);
            }
            mu[q] = at;
            assert_near(g[q], (side[0] - side[1]) / (2.0 * step), 1e-6, 1e-6);
        }
        for (int j = 0; j < lik->parameters; j++) {
            double at = lik->value[j], side[2];
            for (int i = 0; i < 2; i++) {
                double by = i == 0 ? step : -step;
                assert_ok(ctx, thi_likelihood_set_phi(lik, ctx, j, lik->phi[j].positive ? at * exp(by) : at + by));
                side[i] = expected(ctx, lik, mu, other, others);
            }
            assert_ok(ctx, thi_likelihood_set_phi(lik, ctx, j, at));
            assert_near(dphi[j], (side[0] - side[1]) / (2.0 * step), 1e-6, 1e-6);
        }
        thiele_likelihood_destroy(lik);
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_powers),   cmocka_unit_test(test_same_fit), cmocka_unit_test(test_merge),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_update),   cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
