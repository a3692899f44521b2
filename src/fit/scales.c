/*
 * Length-scales that are too many for the rows at hand keep their proportions: the slope of each becomes the mean of
 * all. L-BFGS moves along sums of slopes, and so all of them by the same factor. The same for the kernels of classes: a
 * hundred rows say little about those of each.
 */
#include <math.h>

#include "fit/parameters.h"

int thi_scales_apart(double rows)
{
    static const double ROWS_A_SCALE = 8.0;
    return (int)fmax(1.0, rows / ROWS_A_SCALE);
}

/* `count` slopes, so many numbers apart. */
static void level(int count, int apart, double *slope)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++) {
        sum += slope[i * apart];
    }
    for (int i = 0; i < count; i++) {
        slope[i * apart] = sum / count;
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

bool thi_latents_alike(const thi_latents *latents, const thiele_likelihood *lik)
{
    bool alike = lik->ops->support == THI_SUPPORT_CLASS && lik->latents == lik->classes && latents->groups > 1;
    for (int g = 1; g < latents->groups && alike; g++) {
        const thiele_kernel *first = latents->kernel[0], *own = latents->kernel[g];
        alike = own->parameters == first->parameters && own->leaves == first->leaves;
        for (int l = 0; l < own->leaves && alike; l++) {
            alike =
                own->leaf[l].kind == first->leaf[l].kind && own->leaf[l].lengthscales == first->leaf[l].lengthscales;
        }
    }
    return alike;
}

void thi_scales_tie(const thi_hypers *hypers, const thi_latents *latents, double *gradient)
{
    int most = hypers->tied ? 1 : hypers->most_scales;
    for (int i = 0; hypers->alike && i < latents->kernel[0]->parameters; i++) {
        level(hypers->groups, hypers->first[1] - hypers->first[0], gradient + hypers->first[0] + i);
    }
    for (int g = 0; most > 0 && g < hypers->groups; g++) {
        const thiele_kernel *kernel = latents->kernel[g];
        for (int i = 0; i < kernel->parameters; i++) {
            const thi_leaf *leaf = thi_kernel_leaf_of(kernel, i);
            if (i == leaf->first && leaf->lengthscales > most) {
                level(leaf->lengthscales, 1, gradient + hypers->first[g] + i);
            }
        }
    }
}
