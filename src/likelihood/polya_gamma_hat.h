/*
 * The hat of Devroye's Polya-Gamma draw (Polson, Scott and Windle 2013): four times the variable is J*(1, z), z =
 * |c|/2, with the density cosh(z) exp(-z^2 x/2) sum_n (-1)^n a_n(x), below an inverse Gaussian one left of a cut and an
 * exponential one right of it. And the root that both it and the inverse Gaussian draw take.
 */
#ifndef THI_POLYA_GAMMA_HAT_H
#define THI_POLYA_GAMMA_HAT_H

#include <math.h>
#include <stdbool.h>

/* Where the two series for a_n take turns. */
#define THI_HAT_CUT 0.64

/* Of the exponential. */
static inline double thi_hat_rate(double z)
{
    return 0.125 * M_PI * M_PI + 0.5 * z * z;
}

/*
 * Whether u < sum_n (-1)^n a_n(x)/a_0(x), whose partial sums lie on alternating sides of it; the first term left out is
 * nowhere above 3 exp(-4/0.64), so that most u need no series.
 */
static inline bool thi_hat_accepts(double u, double x)
{
    double rate = x > THI_HAT_CUT ? 0.5 * M_PI * M_PI * x : 2.0 / x, sum = 1.0;
    if (u <= 0.994) {
        return true;
    }
    for (int n = 1; n < 100; n++) {
        double term = (2 * n + 1) * exp(-rate * n * (n + 1));
        sum += n % 2 ? -term : term;
        if (n % 2 && u <= sum) {
            return true;
        }
        if (n % 2 == 0 && u > sum) {
            return false;
        }
    }
    return true;
}

/*
 * Inverse Gaussian with the mean 1/over from a normal z and a uniform u (Michael, Schucany and Haas 1976): the smaller
 * root is x; the other, 1/(over^2 x), is taken with probability over x/(1 + over x). over = 0 is fine.
 */
static inline double thi_inverse_gaussian_of(double over, double shape, double z, double u)
{
    double half = 0.5 * z * z / shape, x = 1.0 / (over + half + sqrt(half * (2.0 * over + half)));
    return u * (1.0 + over * x) <= 1.0 ? x : 1.0 / (over * over * x);
}

#endif
