/*
 * Length-scales that are too many for the rows at hand keep their proportions: the slope of each becomes the mean of
 * all. L-BFGS moves along sums of slopes, and so all of them by the same factor.
 */
#include <math.h>

#include "fit/parameters.h"

int thi_scales_apart(double rows)
{
    static const double ROWS_A_SCALE = 8.0;
    return (int)fmax(1.0, rows / ROWS_A_SCALE);
}

static void level(int count, double *slope)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++) {
        sum += slope[i];
    }
    for (int i = 0; i < count; i++) {
        slope[i] = sum / count;
    }
}

/*
 * All equal in the units of the data, and so that the mean squared distance of rows stays: sum 1/l^2 is as before, of
 * columns that have a variance of one each.
 */
static void share_unit(int count, thi_hyper *scale)
{
    double before = 0.0, after = 0.0;
    for (int i = 0; i < count; i++) {
        before += exp(-2.0 * scale[i].value);
        after += scale[i].unit * scale[i].unit;
    }
    for (int i = 0; i < count; i++) {
        scale[i].value =
            scale[i].fixed || scale[i].given ? scale[i].value : 0.5 * log(after / before) - log(scale[i].unit);
    }
}

bool thi_scales_share_unit(thi_hypers *hypers, const thi_latents *latents, int most)
{
    bool any = false;
    for (int g = 0; g < hypers->groups; g++) {
        const thiele_kernel *kernel = latents->kernel[g];
        for (int i = 0; i < kernel->parameters; i++) {
            const thi_leaf *leaf = thi_kernel_leaf_of(kernel, i);
            if (i == leaf->first && leaf->lengthscales > most) {
                share_unit(leaf->lengthscales, &hypers->hyper[hypers->first[g] + i]);
                any = true;
            }
        }
    }
    return any;
}

void thi_scales_tie(const thi_hypers *hypers, const thi_latents *latents, double *gradient)
{
    int most = hypers->tied ? 1 : hypers->most_scales;
    for (int g = 0; most > 0 && g < hypers->groups; g++) {
        const thiele_kernel *kernel = latents->kernel[g];
        for (int i = 0; i < kernel->parameters; i++) {
            const thi_leaf *leaf = thi_kernel_leaf_of(kernel, i);
            if (i == leaf->first && leaf->lengthscales > most) {
                level(leaf->lengthscales, gradient + hypers->first[g] + i);
            }
        }
    }
}
