/* y is -1 or +1: logistic, probit and the Bayesian support vector machine (likelihood/binary.c). */
#ifndef THI_FORMULAS_BINARY_H
#define THI_FORMULAS_BINARY_H

#include "likelihood/formulas/values.h"
#include "likelihood/special.h"

/* y f, and infinity for a missing y, where the likelihood is 1 and flat. */
THI_POINTWISE double thi_margin(double y, double f)
{
    return y == y ? y * f : INFINITY;
}

THI_POINTWISE double thi_logit_density(double y, double f)
{
    return thi_log_sigmoid(thi_margin(y, f));
}

THI_POINTWISE double thi_probit_density(double y, double f)
{
    return thi_log_phi(thi_margin(y, f));
}

THI_POINTWISE double thi_svm_density(double y, double f)
{
    double short_of = 1.0 - y * f;
    return y == y && !(short_of <= 0.0) ? -2.0 * short_of : 0.0;
}

/* With t = 1 - y f ~ N(1 - y mu, v), z its mean over s = sqrt(v): E max(0, t) = s Phi(z) (z + phi(z)/Phi(z)). */
THI_POINTWISE thi_row thi_svm_expectation(thi_values phi, double y, double mu, double v, double *dphi)
{
    (void)phi;
    (void)dphi; /* there are no parameters */
    double s = sqrt(fmax(v, THI_LEAST_VARIANCE)), z = (1.0 - y * mu) / s;
    double beyond = thi_normal_cdf(z);
    double mean = beyond > 0.0 ? s * beyond * thi_mills_excess(z) : 0.0;
    return thi_row_of(-2.0 * mean, 2.0 * y * beyond, -thi_normal_density(z) / s);
}

#endif
