/* y ~ N(f_1, exp(f_2)), from its log density alone. */
#include "batch.h"

static inline double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double rest = y[0] - f[0];
    return -0.918938533204672741780 - 0.5 * f[1] - 0.5 * rest * rest * exp(-f[1]);
}

BATCH(1, 2)

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_spec spec = {
        VERSION,      .name = "black-heteroscedastic", .outputs = 1,
        .latents = 2, .log_density = log_density,      .log_densities = DENSITIES};
    return &spec;
}
