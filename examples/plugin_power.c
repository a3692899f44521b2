/*
 * A receiver whose sign is lost: it reports the power f^2 of a signal or, 1000 above, the amplitude f itself, half of
 * the time each, with Gaussian noise of a learned variance. From rows of power alone f and -f are equally likely, and
 * two components (--posterior mixture-full:2) take one of these modes each; rows of the amplitude tell them apart.
 * Compiled to a shared library it is given as --likelihood plugin:./plugin_power.so.
 */
#include <math.h>
#include <thiele/likelihood.h>

static const double ABOVE = 1000;

static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    double r = y[0] < ABOVE / 2 ? y[0] - f[0] * f[0] : y[0] - ABOVE - f[0];
    return -0.5 * log(2 * acos(-1) * phi[0]) - 0.5 * r * r / phi[0] - log(2);
}

static void moments(const double *f, const double *phi, double *mean, double *variance, void *user)
{
    (void)user;
    double power = f[0] * f[0], amplitude = ABOVE + f[0], apart = amplitude - power;
    *mean = (power + amplitude) / 2;
    *variance = phi[0] + apart * apart / 4;
}

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_parameter noise = {"noise", 0.1, 1};
    static const thiele_likelihood_spec spec = {
        .size = sizeof spec,
        .version = THIELE_LIKELIHOOD_VERSION,
        .name = "power",
        .outputs = 1,
        .latents = 1,
        .parameters = 1,
        .parameter = &noise,
        .log_density = log_density,
        .moments = moments,
        .support = THIELE_SUPPORT_REAL,
    };
    return &spec;
}
