/*
 * Metropolis, a plain random walk on the whitened latents as in augmented-aaci: w' = w + step z, z ~ N(0, I). n^2 flops
 * a latent and one evaluation of the likelihood a step. The step's length moves in burn-in, by a Robbins-Monro
 * recursion on its log, until a quarter of the proposals is accepted.
 */
#include <math.h>

#include "fit/chain.h"

/* What is best for a random walk in many dimensions (Roberts, Gelman and Gilks 1997). */
static const double TARGET = 0.234;
/* Gains (1 + t)^-0.6: they sum to infinity, and their squares do not. */
static const double DECAY = 0.6;
/* Even a walk over the whitened prior alone has no use for longer steps. */
static const double LONGEST = 10.0;

typedef struct walk {
    double *z, *w, *trial; /* n x Q */
    double log_step;
    int64_t moves;
} walk;

static void walk_close(void *state)
{
    walk *s = state;
    if (s != NULL) {
        thi_free(s->z);
        thi_free(s->w);
        thi_free(s->trial);
        thi_free(s);
    }
}

static thiele_status walk_open(void **state, thi_chain *chain)
{
    size_t all = (size_t)(chain->model->n * chain->model->latents);
    walk *s = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(chain->ctx, &s, 1, sizeof *s));
    *state = s;
    THI_TRY(thi_alloc(chain->ctx, &s->z, all, sizeof *s->z));
    THI_TRY(thi_alloc(chain->ctx, &s->w, all, sizeof *s->w));
    THI_TRY(thi_alloc(chain->ctx, &s->trial, all, sizeof *s->trial));
    for (size_t i = 0; i < all; i++) {
        s->w[i] = chain->r[i];
    }
    thi_chain_whiten(chain->model, s->w);
    chain->step = chain->settings->step > 0.0 ? chain->settings->step : 2.38 / sqrt((double)all);
    s->log_step = log(chain->step);
out:
    return status;
}

/* Towards the share of accepted proposals that is wanted. */
static void adapt(thi_chain *chain, walk *s, double accepted)
{
    if (chain->burning && chain->settings->step <= 0.0) {
        s->log_step += (accepted - TARGET) * pow(1.0 + (double)s->moves++, -DECAY);
        s->log_step = fmin(s->log_step, log(LONGEST));
        chain->step = exp(s->log_step);
    }
}

static thiele_status walk_step(thi_chain *chain)
{
    walk *s = chain->state;
    int64_t all = chain->model->n * chain->model->latents;
    double change = 0.0;
    thi_chain_normals(chain, all, s->z);
    for (int64_t i = 0; i < all; i++) {
        s->trial[i] = s->w[i] + chain->step * s->z[i];
        change += 0.5 * (s->w[i] - s->trial[i]) * (s->w[i] + s->trial[i]);
    }
    thi_chain_colour(chain->model, s->trial, chain->trial_r);
    double log_p = thi_chain_density(chain, chain->trial_r, chain->trial_f);
    double chance = exp(fmin(0.0, log_p - chain->log_p + change));
    bool taken = thi_chain_uniform(chain) < chance;
    if (taken) {
        double *w = s->w;
        s->w = s->trial;
        s->trial = w;
        thi_chain_accept(chain, log_p);
    }
    thi_chain_count(chain, taken, 1);
    adapt(chain, s, chance);
    return THIELE_OK;
}

const thi_sampler thi_sampler_mh = {.name = "mh", .open = walk_open, .step = walk_step, .close = walk_close};
