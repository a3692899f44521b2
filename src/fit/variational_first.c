/*
 * Where a search for q itself begins. In the numbers of q the bound is a narrow valley, and from the prior a search
 * flattens the kernels to fit a q that has not moved yet. So natural steps come first, with one component of the family
 * (variational_white.c), and the components of a mixture begin near what they find.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

/* How far apart the means of a mixture begin, in standard deviations. */
static const double SPREAD = 0.1;

/* One component of one latent. from: m and a packed factor; NULL: zero and the identity. */
static void start_member(const thi_shape *shape, const double *from, thi_stream stream, double *to)
{
    int64_t M = shape->inducing, at = M;
    if (from != NULL) {
        memcpy(to, from, (size_t)(shape->diagonal ? M : M + M * (M + 1) / 2) * sizeof *to);
    }
    for (int64_t j = 0; j < M; j++) {
        double log_sd = from != NULL ? from[at] : 0.0;
        at += M - j;
        if (shape->diagonal) {
            to[M + j] = log_sd;
        }
        if (shape->components > 1) {
            to[j] += SPREAD * exp(log_sd) * thi_random_normal(stream, (uint64_t)j);
        }
    }
}

void thi_vfit_start_q(thi_vfit *fit, const double *found)
{
    const thi_shape *shape = &fit->shape;
    int64_t M = shape->inducing, size = M + M * (M + 1) / 2;
    for (int i = 0; i < shape->components * shape->latents; i++) {
        int latent = i % shape->latents;
        thi_stream stream = {fit->problem.ctx->seed, THI_RANDOM_START, (UINT64_C(1) << 32) + (uint64_t)i};
        start_member(shape, found != NULL ? found + latent * size : NULL, stream,
                     fit->vector.x + thi_variational_offset(shape, i / shape->latents, latent));
    }
}
