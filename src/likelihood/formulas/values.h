/* What the formulas of one row take and give. */
#ifndef THI_VALUES_H
#define THI_VALUES_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/pointwise.h"

/* The values of a likelihood's parameters. */
typedef struct thi_values {
    const double *value;
    int count;
} thi_values;

THI_POINTWISE bool thi_is_class(int classes, double y)
{
    return y >= 0 && y < classes && y == floor(y);
}

/* E[log p(y | f)] under f ~ N(mu, v), or a bound of it, and its derivatives in mu and v. */
typedef struct thi_row {
    double E, g, h;
} thi_row;

THI_POINTWISE thi_row thi_row_of(double E, double g, double h)
{
    thi_row row = {E, g, h};
    return row;
}

/* Of a form of likelihood/augment.h: log p = log C + g f + log phi(r), r = alpha - beta f + gamma f^2. */
typedef struct thi_coefficients {
    double log_C, g, alpha, beta, gamma;
} thi_coefficients;

/* log phi at r, and of omega ~ pi(omega | r) the mean -(log phi)' and the variance (log phi)''; a form that would have
 * to work for the variance leaves NaN. */
typedef struct thi_omega {
    double log_phi, mean, variance;
} thi_omega;

THI_POINTWISE thi_omega thi_omega_of(double log_phi, double mean, double variance)
{
    thi_omega omega = {log_phi, mean, variance};
    return omega;
}

/* A variance of zero is this: the limits come out right and nothing is divided by zero. */
#define THI_LEAST_VARIANCE 1e-280
#define THI_LOG_2PI        1.8378770664093454836

#endif
