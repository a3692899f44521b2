/*
 * A likelihood that no library has, as a plug-in: counts from a device that counts no further than 20 (a 20 says "20 or
 * more") and that is switched off some of the time, when it says 0. The rate is exp(f); the share of the time that it
 * is off is learned, as log odds. Quantiles and samples follow from the density, once it is said that y is a count.
 * Compiled to a shared library it is loaded by
 *
 *     thiele_likelihood_load(&likelihood, ctx, "./plugin_censored.so");
 */
#include <math.h>
#include <thiele/likelihood.h>

enum { LIMIT = 20 };

/* log of e^-rate rate^k / k! */
static double log_poisson(int k, double f)
{
    double sum = k * f - exp(f);
    for (int j = 2; j <= k; j++) {
        sum -= log(j);
    }
    return sum;
}

/* log P(N >= LIMIT): the terms from LIMIT on when they are the small part, one minus those below otherwise. */
static double log_at_least_limit(double f)
{
    double rate = exp(f), sum = 1, term = 1;
    if (rate < LIMIT) {
        for (int k = LIMIT + 1; term > 1e-17 * sum; k++) {
            term *= rate / k;
            sum += term;
        }
        return log_poisson(LIMIT, f) + log(sum);
    }
    for (int k = 0; k < LIMIT; k++) {
        sum -= exp(log_poisson(k, f));
    }
    return log(sum);
}

static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    double on = -log1p(exp(phi[0])), off = -log1p(exp(-phi[0]));
    if (y[0] < 0 || y[0] > LIMIT || y[0] != floor(y[0])) {
        return -INFINITY;
    }
    double counted = on + (y[0] == LIMIT ? log_at_least_limit(f[0]) : log_poisson((int)y[0], f[0]));
    if (y[0] > 0) {
        return counted;
    }
    double most = fmax(off, counted);
    return most + log(exp(off - most) + exp(counted - most));
}

static void moments(const double *f, const double *phi, double *mean, double *variance, void *user)
{
    double square = *mean = 0;
    for (int k = 1; k <= LIMIT; k++) {
        double y = k, p = exp(log_density(&y, f, phi, user));
        *mean += p * k;
        square += p * k * k;
    }
    *variance = fmax(0, square - *mean * *mean);
}

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_parameter off = {"off", -1, 0};
    static const thiele_likelihood_spec spec = {
        .size = sizeof spec,
        .version = THIELE_LIKELIHOOD_VERSION,
        .name = "censored-count",
        .outputs = 1,
        .latents = 1,
        .parameters = 1,
        .parameter = &off,
        .log_density = log_density,
        .moments = moments,
        .support = THIELE_SUPPORT_COUNT,
    };
    return &spec;
}
