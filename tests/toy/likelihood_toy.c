/* A likelihood that was not there: y = f + logistic noise, by its density alone, which is all it takes to add one. */
#include <math.h>

#include "likelihood/families.h"

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double z = fabs(y[i] - f[i]) / lik->value[0];
        out[i] = isnan(y[i]) ? 0.0 : -z - 2.0 * log1p(exp(-z)) - log(lik->value[0]);
    }
}

thiele_status thi_make_toy(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->outputs = lik->latents = 1;
    return thi_likelihood_add_scaled(lik, ctx, "scale", 0.5, true, 1);
}

const thi_likelihood_ops thi_lik_toy = {
    .name = "toy", .support = THI_SUPPORT_REAL, .standardise = true, .log_density = log_density};
