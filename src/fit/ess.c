/*
 * Elliptical slice sampling (Murray, Adams and MacKay 2010): the state and a draw of the prior span an ellipse that the
 * prior does not tell apart; an angle on it is found by a slice through the likelihood. Nothing to tune. n^2 flops a
 * latent and a few evaluations of the likelihood a step.
 */
#include <math.h>

#include "fit/chain.h"

/* The bracket is then a millionth of a millionth wide: what is not accepted by then is rounding. */
enum { MOST_TRIES = 200 };

typedef struct ess {
    double *z, *nu; /* n x Q: normals, and the prior draw */
} ess;

static void ess_close(void *state)
{
    ess *e = state;
    if (e != NULL) {
        thi_free(e->z);
        thi_free(e->nu);
        thi_free(e);
    }
}

static thiele_status ess_open(void **state, thi_chain *chain)
{
    size_t all = (size_t)(chain->model->n * chain->model->latents);
    ess *e = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(chain->ctx, &e, 1, sizeof *e));
    *state = e;
    THI_TRY(thi_alloc(chain->ctx, &e->z, all, sizeof *e->z));
    THI_TRY(thi_alloc(chain->ctx, &e->nu, all, sizeof *e->nu));
out:
    return status;
}

static thiele_status ess_step(thi_chain *chain)
{
    const ess *e = chain->state;
    int64_t all = chain->model->n * chain->model->latents;
    thi_chain_normals(chain, all, e->z);
    thi_chain_colour(chain->model, e->z, e->nu);
    double least = chain->log_p + log(thi_chain_uniform(chain));
    double angle = 2.0 * M_PI * thi_chain_uniform(chain), low = angle - 2.0 * M_PI, high = angle;
    int64_t tries = 1;
    for (; tries <= MOST_TRIES; tries++) {
        double c = cos(angle), s = sin(angle);
        for (int64_t i = 0; i < all; i++) {
            chain->trial_r[i] = c * chain->r[i] + s * e->nu[i];
        }
        double log_p = thi_chain_density(chain, chain->trial_r, chain->trial_f);
        if (log_p > least) {
            thi_chain_accept(chain, log_p);
            break;
        }
        *(angle < 0.0 ? &low : &high) = angle;
        angle = low + (high - low) * thi_chain_uniform(chain);
    }
    thi_chain_count(chain, tries <= MOST_TRIES, tries);
    return THIELE_OK;
}

const thi_sampler thi_sampler_ess = {.name = "ess", .open = ess_open, .step = ess_step, .close = ess_close};
