/* Mean functions: at most D + 1 multiplications a row. */
#include "kernel/mean.h"

#include <string.h>

static const char *const names[THI_MEAN_COUNT] = {"zero", "constant", "linear"};

const char *thi_mean_name(thi_mean mean)
{
    return names[mean];
}

thiele_status thi_mean_find(thiele_context *ctx, const char *name, thi_mean *mean)
{
    for (int m = 0; m < THI_MEAN_COUNT; m++) {
        if (strcmp(name, names[m]) == 0) {
            *mean = (thi_mean)m;
            return THIELE_OK;
        }
    }
    return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no mean function '%s': it is zero, constant or linear", name);
}

int thi_mean_parameters(thi_mean mean, int D)
{
    return mean == THI_MEAN_ZERO ? 0 : (mean == THI_MEAN_CONSTANT ? 1 : D + 1);
}

void thi_mean_fill(thi_mean mean, const double *parameter, int64_t n, int D, const double *X, double *out)
{
    int weights = thi_mean_parameters(mean, D) - 1;
    for (int64_t i = 0; i < n; i++) {
        double sum = weights >= 0 ? parameter[0] : 0.0;
        for (int d = 0; d < weights; d++) {
            sum += parameter[1 + d] * X[i * D + d];
        }
        out[i] = sum;
    }
}

void thi_mean_pull(thi_mean mean, const double *parameter, int64_t n, int D, const double *X, const double *mbar,
                   double *parameter_bar, double *Xbar)
{
    int weights = thi_mean_parameters(mean, D) - 1;
    for (int64_t i = 0; weights >= 0 && i < n; i++) {
        parameter_bar[0] += mbar[i];
        for (int d = 0; d < weights; d++) {
            parameter_bar[1 + d] += mbar[i] * X[i * D + d];
            if (Xbar != NULL) {
                Xbar[i * D + d] += mbar[i] * parameter[1 + d];
            }
        }
    }
}
