/* y = f^2 + e: as likely with -f as with f, so that f = 0 is a saddle. */
#include <math.h>
#include <thiele/likelihood.h>

static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    double z = (y[0] - f[0] * f[0]) / phi[0];
    return -0.5 * z * z - log(phi[0]) - 0.5 * log(2.0 * M_PI);
}

static void moments(const double *f, const double *phi, double *mean, double *variance, void *user)
{
    (void)user;
    mean[0] = f[0] * f[0];
    variance[0] = phi[0] * phi[0];
}

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_parameter sigma = {"sigma", 0.3, 1};
    static const thiele_likelihood_spec spec = {.size = sizeof spec,
                                                .version = THIELE_LIKELIHOOD_VERSION,
                                                .name = "square",
                                                .outputs = 1,
                                                .latents = 1,
                                                .parameters = 1,
                                                .parameter = &sigma,
                                                .log_density = log_density,
                                                .moments = moments};
    return &spec;
}
