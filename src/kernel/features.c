/*
 * Feature maps and their adjoints. The periodic kernel is a squared exponential on the circle: with
 * u_d = (cos, sin)(2 pi x_d / period) / l_d,  |u - u'|^2 / 2 = sum_d 2 sin^2(pi (x_d - x'_d) / period) / l_d^2.
 * Cost: O(features) an input row.
 */
#include <math.h>

#include "kernel/kernel.h"

#define TWO_PI 6.283185307179586476925

/* Where the adjoint of the length-scale of the leaf's d-th column goes. */
static double *lengthscale_bar(const thi_leaf *leaf, int d, double *theta_bar)
{
    return theta_bar + leaf->scale[d];
}

/* 2 pi x / period up to whole turns; the remainder is exact, so no digits are lost far from the origin. */
static double turn(double x, double period)
{
    return TWO_PI * (remainder(x, period) / period);
}

static int count_same(int dims)
{
    return dims;
}

static int count_double(int dims)
{
    return 2 * dims;
}

static int count_two(int dims)
{
    (void)dims;
    return 2;
}

static int count_none(int dims)
{
    (void)dims;
    return 0;
}

/* Features are worked some at a time, row by row: what belongs to a row lies together. */
enum { SOME = 64 };

/* 1/l of features first .. first + count - 1. */
static int take_inverses(const thi_leaf *leaf, int first, double *inverse)
{
    int count = leaf->features - first < SOME ? leaf->features - first : SOME;
    for (int d = 0; d < count; d++) {
        inverse[d] = 1.0 / thi_leaf_lengthscale(leaf, first + d);
    }
    return count;
}

static void scaled_forward(const thi_leaf *leaf, int64_t n, int D, const double *x, double *u)
{
    int F = leaf->features;
    double inverse[SOME];
    for (int first = 0; first < F; first += SOME) {
        int count = take_inverses(leaf, first, inverse);
        const int *dim = leaf->dim + first;
        for (int64_t i = 0; i < n; i++) {
            const double *from = x + i * D;
            double *to = u + i * F + first;
            for (int d = 0; d < count; d++) {
                to[d] = from[dim[d]] * inverse[d];
            }
        }
    }
}

static void scaled_adjoint(const thi_leaf *leaf, int64_t n, int D, const double *x, const double *u, const double *ubar,
                           double *theta_bar, double *xbar)
{
    (void)x;
    int F = leaf->features;
    double inverse[SOME];
    for (int first = 0; first < F; first += SOME) {
        int count = take_inverses(leaf, first, inverse);
        const int *dim = leaf->dim + first;
        double sum[SOME] = {0.0};
        for (int64_t i = 0; i < n; i++) {
            const double *bar = ubar + i * F + first, *at = u + i * F + first;
            for (int d = 0; d < count; d++) {
                sum[d] += bar[d] * at[d];
            }
            for (int d = 0; xbar != NULL && d < count; d++) {
                xbar[i * D + dim[d]] += bar[d] * inverse[d];
            }
        }
        for (int d = 0; d < count; d++) {
            *lengthscale_bar(leaf, first + d, theta_bar) -= sum[d];
        }
    }
}

static void circle_forward(const thi_leaf *leaf, int64_t n, int D, const double *x, double *u)
{
    int F = leaf->features;
    double period = thi_leaf_extra(leaf);
    for (int d = 0; d < leaf->dims; d++) {
        double inverse = 1.0 / thi_leaf_lengthscale(leaf, d);
        for (int64_t i = 0; i < n; i++) {
            double angle = turn(x[i * D + leaf->dim[d]], period);
            u[i * F + 2 * d] = inverse * cos(angle);
            u[i * F + 2 * d + 1] = inverse * sin(angle);
        }
    }
}

static void circle_adjoint(const thi_leaf *leaf, int64_t n, int D, const double *x, const double *u, const double *ubar,
                           double *theta_bar, double *xbar)
{
    int F = leaf->features;
    double frequency = TWO_PI / thi_leaf_extra(leaf);
    double *period_bar = theta_bar + leaf->lengthscales + 1;
    for (int d = 0; d < leaf->dims; d++) {
        double radial = 0.0;
        for (int64_t i = 0; i < n; i++) {
            const double *c = u + i * F + 2 * d;
            const double *cbar = ubar + i * F + 2 * d;
            int64_t at = i * D + leaf->dim[d];
            double angle_bar = cbar[1] * c[0] - cbar[0] * c[1];
            radial += cbar[0] * c[0] + cbar[1] * c[1];
            *period_bar -= angle_bar * frequency * x[at];
            if (xbar != NULL) {
                xbar[at] += angle_bar * frequency;
            }
        }
        *lengthscale_bar(leaf, d, theta_bar) -= radial;
    }
}

static void phase_forward(const thi_leaf *leaf, int64_t n, int D, const double *x, double *u)
{
    for (int64_t i = 0; i < n; i++) {
        double phase = 0.0;
        for (int d = 0; d < leaf->dims; d++) {
            phase += turn(x[i * D + leaf->dim[d]], thi_leaf_lengthscale(leaf, d));
        }
        u[2 * i] = cos(phase);
        u[2 * i + 1] = sin(phase);
    }
}

static void phase_adjoint(const thi_leaf *leaf, int64_t n, int D, const double *x, const double *u, const double *ubar,
                          double *theta_bar, double *xbar)
{
    for (int64_t i = 0; i < n; i++) {
        double phase_bar = ubar[2 * i + 1] * u[2 * i] - ubar[2 * i] * u[2 * i + 1];
        for (int d = 0; d < leaf->dims; d++) {
            double rate = TWO_PI / thi_leaf_lengthscale(leaf, d);
            int64_t at = i * D + leaf->dim[d];
            *lengthscale_bar(leaf, d, theta_bar) -= phase_bar * rate * x[at];
            if (xbar != NULL) {
                xbar[at] += phase_bar * rate;
            }
        }
    }
}

static void none_forward(const thi_leaf *leaf, int64_t n, int D, const double *x, double *u)
{
    (void)leaf, (void)n, (void)D, (void)x, (void)u;
}

static void none_adjoint(const thi_leaf *leaf, int64_t n, int D, const double *x, const double *u, const double *ubar,
                         double *theta_bar, double *xbar)
{
    (void)leaf, (void)n, (void)D, (void)x, (void)u, (void)ubar, (void)theta_bar, (void)xbar;
}

const thi_feature_map thi_features_scaled = {count_same, scaled_forward, scaled_adjoint, true};
const thi_feature_map thi_features_circle = {count_double, circle_forward, circle_adjoint, false};
const thi_feature_map thi_features_phase = {count_two, phase_forward, phase_adjoint, false};
const thi_feature_map thi_features_none = {count_none, none_forward, none_adjoint, false};
