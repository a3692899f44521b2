/*
 * A likelihood of your own in one function: measurements with a detection limit. A true value f + noise below the limit
 * is reported as the limit itself. Nothing else is needed to fit a model with it: here to 20 points of a sine of which
 * everything below -0.2 was cut off, which the fitted function looks through.
 */
#include <math.h>
#include <stdio.h>
#include <thiele/thiele.h>

enum { N = 20 };

/* log of the normal distribution function; far out, where erfc is no more, by its asymptotic series. */
static double log_below(double z)
{
    double w = 1 / (z * z);
    return z > -30 ? log(0.5 * erfc(-z / sqrt(2)))
                   : -0.5 * z * z - log(-z) - 0.5 * log(2 * M_PI) + log1p(w * (3 * w - 1));
}

static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    double limit = *(const double *)user, z = (y[0] - f[0]) / phi[0];
    return y[0] > limit ? -0.5 * z * z - log(phi[0]) - 0.5 * log(2 * M_PI) : log_below(z);
}

int main(void)
{
    double limit = -0.2, rows[N][2], x = 4.7, mean, variance;
    for (int i = 0; i < N; i++) {
        rows[i][0] = 0.32 * i;
        rows[i][1] = fmax(sin(rows[i][0]) + 0.05 * cos(37.0 * i), limit);
    }
    thiele_likelihood_parameter sigma = {"sigma", 0.3, 1};
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "detection-limit";
    spec.parameters = 1;
    spec.parameter = &sigma;
    spec.log_density = log_density;
    spec.user = &limit;
    thiele_context *ctx;
    thiele_likelihood *own;
    thiele_table *table;
    thiele_model *model;
    thiele_fit_options fit = {
        .size = sizeof fit, .columns.target = "y", .prior.kernel = "se", .stopping.iterations = 20};
    if (thiele_context_create(&ctx, NULL) || thiele_likelihood_custom(&own, ctx, &spec) ||
        thiele_table_from_rows(&table, ctx, N, 2, rows[0], (const char *const[]){"x", "y"}))
        return fprintf(stderr, "%s\n", thiele_context_message(ctx)), 1;
    fit.model.own = own;
    if (thiele_model_fit(&model, ctx, table, &fit) || thiele_model_predict_rows(model, ctx, 1, &x, 1, &mean, &variance))
        return fprintf(stderr, "%s\n", thiele_context_message(ctx)), 1;
    printf("f(%.1f) = %.2f +- %.2f, far below the limit of %.1f\n", x, mean, sqrt(variance), limit);
    thiele_model_destroy(model), thiele_table_destroy(table);
    thiele_likelihood_destroy(own), thiele_context_destroy(ctx);
}
