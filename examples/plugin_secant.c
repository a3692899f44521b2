/*
 * A likelihood by its augmentation alone, as a plug-in: y = f + e where e has the hyperbolic secant density
 * 1/(2 s cosh(pi e/(2 s))), tails like exp(-|e|) and a round top. With r = (f - y)^2 it is
 *
 *     log p(y | f) = -log(2 s) + log phi(r),  phi(r) = 1/cosh(pi sqrt(r)/(2 s)),
 *
 * and phi is the Laplace transform of a positive variable. The density, the closed-form method and the Gibbs sampler
 * follow from these two functions.
 */
#include <complex.h>
#include <math.h>
#include <thiele/likelihood.h>

static void coefficients(const double *y, const double *parameters, thiele_likelihood_coefficients *out, void *user)
{
    (void)user;
    *out = (thiele_likelihood_coefficients){
        .log_c = -log(2.0 * parameters[0]), .g = 0.0, .alpha = y[0] * y[0], .beta = 2.0 * y[0], .gamma = 1.0};
}

/* -log cosh w = log 2 - w - log(1 + exp(-2 w)), which does not overflow. */
static void log_phi(const double *y, const double *parameters, const double *r, double *out, void *user)
{
    (void)y;
    (void)user;
    double complex w = 0.5 * M_PI / parameters[0] * csqrt(r[0] + r[1] * I);
    double complex value = M_LN2 - w - clog(1.0 + cexp(-2.0 * w));
    out[0] = creal(value);
    out[1] = cimag(value);
}

static void moments(const double *f, const double *parameters, double *mean, double *variance, void *user)
{
    (void)user;
    *mean = f[0];
    *variance = parameters[0] * parameters[0];
}

const thiele_likelihood_spec *thiele_likelihood_plugin(void);
const thiele_likelihood_spec *thiele_likelihood_plugin(void)
{
    static const thiele_likelihood_parameter scale = {"scale", 1, 1};
    static const thiele_likelihood_spec spec = {
        .size = sizeof spec,
        .version = THIELE_LIKELIHOOD_VERSION,
        .name = "hyperbolic-secant",
        .outputs = 1,
        .latents = 1,
        .parameters = 1,
        .parameter = &scale,
        .moments = moments,
        .support = THIELE_SUPPORT_REAL,
        .coefficients = coefficients,
        .log_phi = log_phi,
    };
    return &spec;
}
