/* The prior of one latent function: f ~ GP(m, k). Everything is borrowed. */
#ifndef THI_PRIOR_H
#define THI_PRIOR_H

#include "kernel/kernel.h"
#include "kernel/mean.h"

typedef struct thi_prior {
    const thiele_kernel *kernel;
    thi_mean mean;
    const double *mean_parameter;
} thi_prior;

#endif
