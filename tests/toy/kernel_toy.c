/* A kernel that was not there: Matern 5/2 of u_d = tanh(x_d) / l_d, by a feature map of its own. */
#include <math.h>

#include "kernel/kernel.h"

static int count(int dims)
{
    return dims;
}

static void forward(const thi_leaf *leaf, int64_t n, int D, const double *x, double *u)
{
    for (int64_t i = 0; i < n * leaf->features; i++) {
        int d = (int)(i % leaf->features);
        u[i] = tanh(x[i / leaf->features * D + leaf->dim[d]]) / thi_leaf_lengthscale(leaf, d);
    }
}

static void adjoint(const thi_leaf *leaf, int64_t n, int D, const double *x, const double *u, const double *ubar,
                    double *theta_bar, double *xbar)
{
    for (int64_t i = 0; i < n * leaf->features; i++) {
        int d = (int)(i % leaf->features);
        int64_t at = i / leaf->features * D + leaf->dim[d];
        double warped = tanh(x[at]);
        theta_bar[leaf->lengthscales > 1 ? d : 0] -= ubar[i] * u[i];
        if (xbar != NULL) {
            xbar[at] += ubar[i] * (1.0 - warped * warped) / thi_leaf_lengthscale(leaf, d);
        }
    }
}

const thi_feature_map thi_features_toy = {count, forward, adjoint, false};
