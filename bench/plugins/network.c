/* A regression network of two nodes (gprn) with a noise for each output, from its log density alone; -DOUTPUTS=P. */
#include "batch.h"

enum { NODES = 2, LATENTS = NODES + NODES * OUTPUTS };

static inline double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)user;
    double square = 0, scale = 1;
    for (int p = 0; p < OUTPUTS; p++) {
        const double *w = f + NODES + NODES * p;
        double rest = y[p] - w[0] * f[0] - w[1] * f[1];
        square += isnan(rest) ? 0 : rest * rest / phi[p];
        scale *= isnan(rest) ? 1 : 2 * M_PI * phi[p];
    }
    return -0.5 * (log(scale) + square);
}

BATCH(OUTPUTS, LATENTS)

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_parameter noise[] = {{"noise1", 0.1, 1}, {"noise2", 0.1, 1}, {"noise3", 0.1, 1},
                                                        {"noise4", 0.1, 1}, {"noise5", 0.1, 1}, {"noise6", 0.1, 1},
                                                        {"noise7", 0.1, 1}};
    static const thiele_likelihood_spec spec = {VERSION,
                                                .name = "black-network",
                                                .outputs = OUTPUTS,
                                                .latents = LATENTS,
                                                .parameters = OUTPUTS,
                                                .parameter = noise,
                                                .log_density = log_density,
                                                .log_densities = DENSITIES};
    return &spec;
}
