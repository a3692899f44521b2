/*
 * A likelihood of your own in one function: measurements with a detection limit. A true value f + noise below the limit
 * is reported as the limit itself. The library needs nothing else to compute what inference asks for: the expected log
 * density E under f ~ N(mu, v), and its derivatives g in mu and h in v.
 */
#include <math.h>
#include <stdio.h>
#include <thiele/likelihood.h>

static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    double limit = *(const double *)user, z = (y[0] - f[0]) / phi[0];
    if (y[0] > limit)
        return -0.5 * z * z - log(phi[0]) - 0.5 * log(2 * M_PI);
    return log(fmax(0.5 * erfc(-z / sqrt(2)), 1e-300));
}

int main(void)
{
    double limit = 0.5, y[] = {0.5, 0.5, 1.7}, mu[] = {0.2, 1.5, 1.5}, v[] = {0.1, 0.1, 0.4}, E[3], g[3], h[3];
    thiele_likelihood_parameter sigma = {"sigma", 0.3, 1};
    thiele_likelihood_spec spec = THIELE_LIKELIHOOD_SPEC_INIT;
    spec.name = "detection-limit";
    spec.parameters = 1;
    spec.parameter = &sigma;
    spec.log_density = log_density;
    spec.user = &limit;
    thiele_context *ctx;
    thiele_likelihood *own;
    if (thiele_context_create(&ctx, NULL) || thiele_likelihood_custom(&own, ctx, &spec) ||
        thiele_likelihood_expect(own, ctx, NULL, 3, y, mu, v, E, g, h, NULL))
        return fprintf(stderr, "%s\n", thiele_context_message(ctx)), 1;
    for (int i = 0; i < 3; i++)
        printf("y = %.1f, f ~ N(%.1f, %.1f): E = %.4f, g = %.4f, h = %.4f\n", y[i], mu[i], v[i], E[i], g[i], h[i]);
    thiele_likelihood_destroy(own), thiele_context_destroy(ctx);
}
