/* The softmax of as many latents as there are classes, from its log density alone; -DCLASSES=C. */
#include "batch.h"

static inline double log_density(const double *y, const double *f, const double *phi, void *user)
{
    (void)phi;
    (void)user;
    double most = f[0], sum = 0;
    for (int c = 1; c < CLASSES; c++) {
        most = f[c] > most ? f[c] : most;
    }
    for (int c = 0; c < CLASSES; c++) {
        sum += exp(f[c] - most);
    }
    return f[(int)y[0]] - most - log(sum);
}

BATCH(1, CLASSES)

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_spec spec = {VERSION,
                                                .name = "black-softmax",
                                                .outputs = 1,
                                                .latents = CLASSES,
                                                .support = THIELE_SUPPORT_CLASS,
                                                .classes = CLASSES,
                                                .log_density = log_density,
                                                .log_densities = DENSITIES};
    return &spec;
}
