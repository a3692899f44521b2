/*
 * Hamiltonian Monte Carlo (Neal 2011) on the whitened latents: U(w) = |w|^2/2 - log p(y | o + L w), unit masses,
 * leapfrog. dU/dw = w - L'd log p/df, so that a leap takes 2 n^2 flops a latent and the likelihood's derivatives once
 * (central differences of its density where it offers none).
 *
 * A step that is not given is found in burn-in by dual averaging (Hoffman and Gelman 2014, section 3.2) for an
 * acceptance of 0.8, and varied by a fifth from move to move, lest a trajectory keep returning to where it began; so is
 * the number of leaps unless it is given.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fit/chain.h"

static const double TARGET = 0.8;
/* Gamma, t0 and kappa of the paper. */
static const double SHRINKAGE = 0.05, DELAY = 10.0, FORGETTING = 0.75;
/* An energy that was lost by more than this is not the leapfrog's usual error (Stan's border too). */
static const double DIVERGED = 1000.0;
static const double VARIED = 0.2;
enum { MOST_LEAPS = 128 };

/* The position, its derivative of log p (L'd log p/df) and the momentum. */
typedef struct point {
    double *w, *slope;
} point;

typedef struct hmc {
    point here, there;
    double *momentum, *z;   /* n x Q */
    double *d1, *d2, *near; /* Q x n: derivatives in f, and f beside itself */
    double *other;          /* n */
    /* Dual averaging of log step. */
    double centre, log_step, log_mean, error;
    int64_t moves;
} hmc;

static void hmc_close(void *state)
{
    hmc *h = state;
    if (h == NULL) {
        return;
    }
    double *const vectors[] = {h->here.w, h->here.slope, h->there.w, h->there.slope, h->momentum,
                               h->z,      h->d1,         h->d2,      h->near,        h->other};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        thi_free(vectors[i]);
    }
    thi_free(h);
}

static int64_t length(const thi_chain *chain)
{
    return chain->model->n * chain->model->latents;
}

/* --- energies and slopes --------------------------------------------------------------------------------------------
 */

/* d1 = d log p/df at f by central differences, with a step that balances rounding against curvature. */
static void differences(thi_chain *chain, hmc *h, const double *f)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n, Q = m->latents;
    const double share = cbrt(DBL_EPSILON);
    memcpy(h->near, f, (size_t)(n * Q) * sizeof *f);
    for (int64_t q = 0; q < Q; q++) {
        for (int side = 1; side >= -1; side -= 2) {
            for (int64_t i = 0; i < n; i++) {
                h->near[q + i * Q] = f[q + i * Q] + side * share * fmax(1.0, fabs(f[q + i * Q]));
            }
            m->lik->ops->log_density(m->lik, n, m->y, h->near, side > 0 ? h->other : chain->density);
        }
        for (int64_t i = 0; i < n; i++) {
            double gap = 2.0 * share * fmax(1.0, fabs(f[q + i * Q]));
            h->d1[q + i * Q] = (h->other[i] - chain->density[i]) / gap;
            h->near[q + i * Q] = f[q + i * Q];
        }
    }
}

/* log p at a position, which becomes the chain's trial, and its slope. */
static double visit(thi_chain *chain, hmc *h, point *at)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n, Q = m->latents;
    thi_chain_colour(m, at->w, chain->trial_r);
    double log_p = thi_chain_density(chain, chain->trial_r, chain->trial_f);
    if (m->lik->ops->derivatives != NULL) {
        m->lik->ops->derivatives(m->lik, n, m->y, chain->trial_f, h->d1, h->d2);
    } else {
        differences(chain, h, chain->trial_f);
    }
    for (int64_t q = 0; q < Q; q++) {
        for (int64_t i = 0; i < n; i++) {
            h->z[i + q * n] = h->d1[q + i * Q];
            if (m->weight != NULL) {
                bool varying = q > 0 && q == m->lik->ops->log_variance && !isnan(m->y[i * m->lik->outputs]);
                h->z[i + q * n] += (m->weight[i] - 1.0) * (h->d1[q + i * Q] + (varying ? 0.5 : 0.0));
            }
        }
    }
    thi_chain_pull(m, h->z, at->slope);
    return log_p;
}

static double kinetic(const thi_chain *chain, const hmc *h, const point *at)
{
    int64_t all = length(chain);
    return 0.5 * (thi_blas_dot(all, at->w, at->w) + thi_blas_dot(all, h->momentum, h->momentum));
}

/*
 * From here, with fresh momenta, `leaps` of this length to there. Returns the energy that was lost (infinite where the
 * density vanishes) and log p at the end. half a kick, then drift and kick in turn, the last kick by half.
 */
static double travel(thi_chain *chain, hmc *h, double step, int64_t leaps, double *log_p)
{
    int64_t all = length(chain);
    point *at = &h->there;
    memcpy(at->w, h->here.w, (size_t)all * sizeof *at->w);
    memcpy(at->slope, h->here.slope, (size_t)all * sizeof *at->slope);
    thi_chain_normals(chain, all, h->momentum);
    double before = kinetic(chain, h, at) - chain->log_p;
    for (int64_t leap = 0; leap < leaps; leap++) {
        double kick = leap == 0 ? 0.5 * step : step;
        for (int64_t i = 0; i < all; i++) {
            h->momentum[i] += kick * (at->slope[i] - at->w[i]);
            at->w[i] += step * h->momentum[i];
        }
        *log_p = visit(chain, h, at);
        if (!(*log_p > -INFINITY)) {
            return INFINITY;
        }
    }
    for (int64_t i = 0; i < all; i++) {
        h->momentum[i] += 0.5 * step * (at->slope[i] - at->w[i]);
    }
    double lost = kinetic(chain, h, at) - *log_p - before;
    return isnan(lost) ? INFINITY : lost;
}

/* --- the length of the step -----------------------------------------------------------------------------------------
 */

/* Doubles or halves a step until one leap of it is accepted about every other time (the paper's Algorithm 4). */
static double first_step(thi_chain *chain, hmc *h)
{
    const double half = log(0.5);
    double step = 1.0, log_p;
    double direction = -travel(chain, h, step, 1, &log_p) > half ? 1.0 : -1.0;
    for (int i = 0; i < 60; i++) {
        step *= direction > 0.0 ? 2.0 : 0.5;
        if (direction * -travel(chain, h, step, 1, &log_p) <= direction * half) {
            break;
        }
    }
    return step;
}

static void adapt(thi_chain *chain, hmc *h, double chance)
{
    if (chain->settings->step > 0.0) {
        return;
    }
    if (chain->burning) {
        double t = (double)++h->moves, share = 1.0 / (t + DELAY), weight = pow(t, -FORGETTING);
        h->error = (1.0 - share) * h->error + share * (TARGET - chance);
        h->log_step = h->centre - sqrt(t) / SHRINKAGE * h->error;
        h->log_mean = weight * h->log_step + (1.0 - weight) * h->log_mean;
    }
    chain->step = exp(chain->burning ? h->log_step : h->log_mean);
}

/*
 * As given, or enough for a time between 0 and half the prior's period, at random: a direction that the data tighten
 * by a factor c turns by up to c pi in it, and whatever c >= 1 is, it is on average forgotten where it began.
 */
static int64_t count_leaps(thi_chain *chain)
{
    if (chain->settings->leaps > 0) {
        return chain->settings->leaps;
    }
    double most = fmin(ceil(M_PI / chain->step), MOST_LEAPS);
    return 1 + (int64_t)(fmax(most, 1.0) * thi_chain_uniform(chain));
}

/* --- the sampler ----------------------------------------------------------------------------------------------------
 */

static thiele_status hmc_open(void **state, thi_chain *chain)
{
    hmc *h = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(chain->ctx, &h, 1, sizeof *h));
    *state = h;
    double **const vectors[] = {&h->here.w, &h->here.slope, &h->there.w, &h->there.slope, &h->momentum,
                                &h->z,      &h->d1,         &h->d2,      &h->near,        &h->other};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        THI_TRY(thi_alloc(chain->ctx, vectors[i], (size_t)length(chain), sizeof(double)));
    }
    memcpy(h->here.w, chain->r, (size_t)length(chain) * sizeof(double));
    thi_chain_whiten(chain->model, h->here.w);
    double log_p = visit(chain, h, &h->here);
    thi_chain_accept(chain, log_p);
    chain->step = chain->settings->step > 0.0 ? chain->settings->step : first_step(chain, h);
    h->log_step = h->log_mean = log(chain->step);
    h->centre = log(10.0 * chain->step);
out:
    return status;
}

static thiele_status hmc_step(thi_chain *chain)
{
    hmc *h = chain->state;
    bool given = chain->settings->step > 0.0;
    if (!given && !chain->burning) {
        chain->step = exp(h->log_mean);
    }
    double vary = given ? 1.0 : 1.0 + VARIED * (2.0 * thi_chain_uniform(chain) - 1.0), log_p = -INFINITY;
    double lost = travel(chain, h, vary * chain->step, count_leaps(chain), &log_p);
    double chance = exp(fmin(0.0, -lost));
    bool taken = thi_chain_uniform(chain) < chance;
    if (taken) {
        point here = h->here;
        h->here = h->there;
        h->there = here;
        thi_chain_accept(chain, log_p);
    }
    chain->divergences += !chain->burning && lost > DIVERGED;
    thi_chain_count(chain, chance, 1);
    adapt(chain, h, chance);
    return THIELE_OK;
}

const thi_sampler thi_sampler_hmc = {.name = "hmc", .open = hmc_open, .step = hmc_step, .close = hmc_close};
