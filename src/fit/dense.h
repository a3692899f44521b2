/*
 * Any likelihood with a Gaussian posterior at all n rows: q factorises over the latents, each by n sites (lambda, nu),
 * which natural-gradient steps bring to their fixed point (math.md section 3; savigp-jmlr Theorem 2 and section 6.1.1):
 *   lambda = -2 h,  nu = g - 2 h mu      (E, g, h) at N(mu + o, v),  o = prior mean + offset
 * The bound E - KL at the fixed point is what the hyperparameters are learned by. Where the
 * specification has other expectations for steps (those of auxiliary variables, which are safe from anywhere) the first
 * sites are theirs.
 */
#ifndef THI_FIT_DENSE_H
#define THI_FIT_DENSE_H

#include "expect/parallel.h"
#include "fit/spec.h"
#include "optim/anderson.h"
#include "posterior/dense.h"

typedef struct thi_dense_fit {
    const thi_spec *spec;           /* borrowed; its values may change between calls */
    const thi_rows *rows;           /* borrowed */
    thi_providers providers, first; /* of expectations; of those that the first sites are made by */
    bool leads, leading;            /* these are others, bounds; and are asked now */
    void **latent;                  /* Q workspaces of the engine */
    bool *fresh;                    /* Q: the values of its prior changed */
    /* lambda and then nu, each n x Q with the latent slowest: the sites, the step to those asked for, what is tried. */
    double *sites, *step, *trial;
    double *measure;    /* 2 n Q: the step in units of what it changes */
    double *o, *mu, *v; /* n x Q; marginals of f - o */
    /* Q x n, as expectations have it, and n and parameters x n. */
    double *f_mu, *f_v, *g, *h, *E, *dphi;
    thi_anderson anderson;
    bool warm;    /* sites are there from an earlier call */
    bool noisy;   /* expectations are */
    double bound; /* of the sites last conditioned on */
} thi_dense_fit;

typedef struct thi_converge_options {
    double tolerance; /* stop when a whole step changes the bound by less: nats */
    int steps;        /* at most */
    bool cold;        /* start afresh even when there are sites */
} thi_converge_options;

typedef struct thi_converge_result {
    int steps;      /* times that all latents were conditioned */
    bool converged; /* within the tolerance, or no step of any size helps; else the limit of steps ended it */
    bool stuck;     /* no step of any size helps, far from the fixed point */
} thi_converge_result;

/* Bytes held for n rows and so many groups of latents: a matrix for each of them and one for all. */
double thi_dense_fit_bytes(int64_t n, int groups);
thiele_status thi_dense_fit_open(thi_dense_fit *fit, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows);
void thi_dense_fit_close(thi_dense_fit *fit);
/*
 * The sites at the specification's present values, from those of the last call or (the first time, or where those are
 * of no use) from the likelihood's guess. The bound never falls by more than the tolerance; a step that would lower it,
 * or make q improper or E infinite, is halved. 2 n^3/3 flops a latent and step. Error: NUMERIC when not even the first
 * bound can be computed.
 */
thiele_status thi_dense_converge(thi_dense_fit *fit, thiele_context *ctx, const thi_converge_options *options,
                                 thi_converge_result *result);
/*
 * After thi_dense_converge: adds the bound's gradient at fixed sites, which at their fixed point is all of it. In turn
 * for each group: the logs of the kernel's parameters, the mean's; then phi (logs of
 * positive ones). n^3 flops a latent, and 3 n^3 more far from the fixed point.
 */
thiele_status thi_dense_fit_gradient(thi_dense_fit *fit, thiele_context *ctx, double *gradient);

#endif
