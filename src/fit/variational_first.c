/*
 * Where a search for q itself begins. In the numbers of q the bound is a narrow valley, and from the prior a search
 * flattens the kernels to fit a q that has not moved yet. So natural steps come first, with one component of the family
 * (variational_white.c). The components of a mixture begin at the modes that these lead to (variational_modes.c), with
 * weights by their bounds; where there are fewer modes, the best is shared by several components, whose means lie a
 * standard deviation apart from it on either side of a random direction.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

/* Logarithm of how much less a worse mode's weight is than the best one's, at most: steps decide how far it falls. */
static const double LEAST_LOGIT = -3.0;

/* One member at a mode (m and a packed factor; NULL: zero and the identity), moved by `far` deviations. */
static void start_member(const thi_shape *shape, const double *from, thi_stream stream, double far, double *to)
{
    int64_t M = shape->inducing, at = M;
    double square = 0.0;
    if (from != NULL) {
        memcpy(to, from, (size_t)(shape->diagonal ? M : M + M * (M + 1) / 2) * sizeof *to);
    }
    for (int64_t j = 0; j < M && far != 0.0; j++) {
        double z = thi_random_normal(stream, (uint64_t)j);
        square += z * z;
    }
    for (int64_t j = 0; j < M; j++) {
        double log_sd = from != NULL ? from[at] : 0.0;
        double along = far != 0.0 ? far / sqrt(square) * thi_random_normal(stream, (uint64_t)j) : 0.0;
        to[j] += along * exp(log_sd);
        for (int64_t i = 1; from != NULL && i < M - j; i++) {
            to[j + i] += along * from[at + i];
        }
        at += M - j;
        if (shape->diagonal) {
            to[M + j] = log_sd;
        }
    }
}

/* Component k: at its own mode, or at the best, which `sharing` of them have; these lie on either side of it. */
static void start_component(thi_vfit *fit, const thi_modes *modes, int k, bool apart)
{
    const thi_shape *shape = &fit->shape;
    int64_t M = shape->inducing, size = M + M * (M + 1) / 2;
    int known = modes->count > 0 ? modes->count : 1, own = k < modes->count ? k : 0,
        sharing = shape->components - known + 1, place = k < known ? 0 : k - known + 1;
    bool middle = own != 0 || sharing == 1 || (sharing % 2 == 1 && place == sharing - 1) || !apart;
    double share = own == 0 ? log((double)sharing) : 0.0;
    for (int j = 0; j < shape->latents; j++) {
        thi_stream stream = {fit->problem.ctx->seed, THI_RANDOM_START,
                             (UINT64_C(1) << 32) + (uint64_t)(place / 2 * shape->latents + j)};
        start_member(shape, modes->count > 0 ? modes->q + (own * shape->latents + j) * size : NULL, stream,
                     middle           ? 0.0
                     : place % 2 == 0 ? 1.0
                                      : -1.0,
                     fit->vector.x + thi_variational_offset(shape, k, j));
    }
    if (shape->components > 1) {
        double less = modes->count > 0 && modes->weighed ? modes->bound[own] - modes->bound[0] : 0.0;
        fit->vector.x[k] = fmax(less, LEAST_LOGIT) - share;
    }
}

void thi_vfit_start_q(thi_vfit *fit, const thi_modes *modes)
{
    for (int k = 0; k < fit->shape.components; k++) {
        start_component(fit, modes, k, true);
    }
}

void thi_vfit_start_equal(thi_vfit *fit, const thi_modes *modes)
{
    thi_modes best = *modes;
    best.count = best.count > 1 ? 1 : best.count;
    for (int k = 0; k < fit->shape.components; k++) {
        start_component(fit, &best, k, false);
    }
}
