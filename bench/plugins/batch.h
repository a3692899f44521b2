/*
 * What the plug-ins of the black-box bench share: log_densities over log_density. Each is one inline function of a
 * point; -DVERSION_1 makes a plug-in of the first version of the interface, which has calls of single points only.
 */
#ifndef BATCH_H
#define BATCH_H

#include <math.h>
#include <stddef.h>
#include <thiele/likelihood.h>

/* The sizes that a model has at compile time. */
#define BATCH(P, Q)                                                                                                    \
    __attribute__((unused)) static void log_densities(int64_t n, const double *y, const double *f, const double *phi,  \
                                                      double *out, void *user)                                         \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = log_density(y + i * (P), f + i * (Q), phi, user);                                                 \
        }                                                                                                              \
    }

#ifdef VERSION_1
#define VERSION   .size = offsetof(thiele_likelihood_spec, log_densities), .version = 1
#define DENSITIES 0
#else
#define VERSION   .size = sizeof(thiele_likelihood_spec), .version = THIELE_LIKELIHOOD_VERSION
#define DENSITIES log_densities
#endif

#endif
