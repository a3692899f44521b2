/* y1 = f0 f1 + e, y2 = f0 f2 + e: as likely when all three change their signs, so that f = 0 is a saddle. */
#include <math.h>
#include <thiele/likelihood.h>

static double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    double sum = 0.0;
    for (int p = 0; p < 2; p++) {
        double z = (y[p] - f[0] * f[p + 1]) / phi[0];
        sum += isnan(y[p]) ? 0.0 : -0.5 * z * z - log(phi[0]) - 0.5 * log(2.0 * M_PI);
    }
    return sum;
}

static void moments(const double *f, const double *phi, double *mean, double *variance, void *user)
{
    (void)user;
    for (int p = 0; p < 2; p++) {
        mean[p] = f[0] * f[p + 1];
        variance[p] = phi[0] * phi[0];
    }
}

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_parameter sigma = {"sigma", 0.3, 1};
    static const thiele_likelihood_spec spec = {.size = sizeof spec,
                                                .version = THIELE_LIKELIHOOD_VERSION,
                                                .name = "product",
                                                .outputs = 2,
                                                .latents = 3,
                                                .parameters = 1,
                                                .parameter = &sigma,
                                                .log_density = log_density,
                                                .moments = moments};
    return &spec;
}
