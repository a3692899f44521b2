/*
 * A large basis for the mean and a small one for the covariance (Cheng and Boots 2017, figure 1): 500 noisy rows of
 * sinc, and three sparse models of them: one small basis for both, a large one for the mean beside the small one, and
 * one large basis for both. The decoupled model follows the function as the large one does, and its band is that of the
 * small one. All have the same kernel and noise, so that nothing but the bases differs.
 *
 *   sinc_decoupled [FOLDER]    writes sinc_rows.csv and sinc_curves.csv there, which bench/sinc_decoupled.py draws
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <thiele/thiele.h>

enum { ROWS = 500, GRID = 401, SMALL = 7, LARGE = 100, MODELS = 3, COLUMNS = 2 + 2 * MODELS };

static const double reach = 6.0, noise = 0.1;

static double sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(M_PI * x) / (M_PI * x);
}

/* In (0, 1): a generator of 2^64 states (Knuth's MMIX), its high bits. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 12) + 0.5) / 4503599627370496.0;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(uniform(state)));
    return radius * cos(2.0 * M_PI * uniform(state));
}

static thiele_status write_csv(thiele_context *ctx, const char *folder, const char *file, int64_t rows, int columns,
                               const double *values, const char *const *names)
{
    char path[4096];
    thiele_table *table;
    thiele_status status = thiele_table_from_rows(&table, ctx, rows, columns, values, names);
    if (status == THIELE_OK) {
        snprintf(path, sizeof path, "%s/%s", folder, file);
        status = thiele_table_write(table, ctx, path);
        thiele_table_destroy(table);
    }
    return status;
}

/* Fits a model, predicts the grid and says how far its mean is from sinc. */
static thiele_status follow(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *fit,
                            const char *name, double grid[GRID][COLUMNS], int at)
{
    double x[GRID], mean[GRID], variance[GRID], error = 0.0, band = 0.0;
    thiele_model *model;
    thiele_status status = thiele_model_fit(&model, ctx, table, fit);
    if (status != THIELE_OK)
        return status;
    for (int i = 0; i < GRID; i++)
        x[i] = grid[i][0];
    status = thiele_model_predict_rows(model, ctx, GRID, x, 1, mean, variance);
    thiele_model_destroy(model);
    for (int i = 0; i < GRID && status == THIELE_OK; i++) {
        grid[i][at] = mean[i], grid[i][at + 1] = sqrt(variance[i]);
        error += (mean[i] - grid[i][1]) * (mean[i] - grid[i][1]) / GRID;
        band += grid[i][at + 1] / GRID;
    }
    if (status == THIELE_OK)
        printf("%-10s mean is off by %.4f (RMSE), its band is %.4f wide (mean standard deviation)\n", name, sqrt(error),
               band);
    return status;
}

int main(int argc, char **argv)
{
    static double rows[ROWS][2], grid[GRID][COLUMNS];
    const char *folder = argc > 1 ? argv[1] : ".";
    const char *const names[MODELS] = {"small", "decoupled", "large"};
    const char *const columns[COLUMNS] = {
        "x", "sinc", "mean.small", "sd.small", "mean.decoupled", "sd.decoupled", "mean.large", "sd.large"};
    uint64_t state = 1;
    for (int i = 0; i < ROWS; i++) {
        rows[i][0] = reach * (2.0 * uniform(&state) - 1.0);
        rows[i][1] = sinc(rows[i][0]) + noise * normal(&state);
    }
    for (int i = 0; i < GRID; i++) {
        grid[i][0] = reach * (2.0 * i / (GRID - 1) - 1.0);
        grid[i][1] = sinc(grid[i][0]);
    }
    thiele_fit_options small = {
        .size = sizeof small, .columns.target = "y", .prior.kernel = "se(lengthscale=0.6, variance=0.1)"};
    small.prior.set = "noise=0.01";
    small.model.method = "collapsed";
    small.inducing.inducing = SMALL;
    thiele_fit_options two_bases = small, large = small;
    two_bases.model.method = "decoupled";
    two_bases.decoupled.decoupled = "orthogonal";
    two_bases.decoupled.mean_inducing = LARGE; /* beside .inducing of the covariance */
    two_bases.decoupled.growth = LARGE;        /* all of them in the first step */
    large.inducing.inducing = LARGE;
    const thiele_fit_options *const fits[MODELS] = {&small, &two_bases, &large};
    thiele_context *ctx;
    thiele_table *table;
    if (thiele_context_create(&ctx, NULL) ||
        thiele_table_from_rows(&table, ctx, ROWS, 2, rows[0], (const char *const[]){"x", "y"}))
        return fprintf(stderr, "%s\n", thiele_context_message(ctx)), 1;
    for (int m = 0; m < MODELS; m++)
        if (follow(ctx, table, fits[m], names[m], grid, 2 + 2 * m))
            return fprintf(stderr, "%s\n", thiele_context_message(ctx)), 1;
    if (write_csv(ctx, folder, "sinc_rows.csv", ROWS, 2, rows[0], (const char *const[]){"x", "y"}) ||
        write_csv(ctx, folder, "sinc_curves.csv", GRID, COLUMNS, grid[0], columns))
        return fprintf(stderr, "%s\n", thiele_context_message(ctx)), 1;
    thiele_table_destroy(table), thiele_context_destroy(ctx);
}
