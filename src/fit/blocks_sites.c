/*
 * Some blocks at a time, with the sites of their rows: marginals, expectations and natural steps (math.md section 8;
 * posterior/sparse.h).
 */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "expect/parallel.h"
#include "fit/blocks_sites.h"

/* Steps of a visit, while they gain that many nats per row: the covariances of the rows are at hand. */
enum { FIRST_STEPS = 8, LATER_STEPS = 3 };
static const double WORTH = 5e-3;

enum { WIDE = 11 }; /* arrays of room x Q */

/* --- opening ------------------------------------------------------------------------------------------------------ */

static thiele_status open_rows(thi_bfit *fit)
{
    thi_bsites *s;
    size_t numbers = (size_t)fit->latents * (size_t)fit->problem.source->n;
    const thi_spec *spec = fit->problem.spec;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &s, 1, sizeof *s));
    fit->sites = s;
    s->N = fit->problem.source->n;
    s->providers = (thi_providers){.lik = spec->lik, .method = spec->expectation};
    THI_TRY(thi_alloc(fit->problem.ctx, &s->all_lambda, numbers, sizeof *s->all_lambda));
    THI_TRY(thi_alloc(fit->problem.ctx, &s->all_nu, numbers, sizeof *s->all_nu));
    THI_TRY(thi_alloc(fit->problem.ctx, &s->here, (size_t)(fit->latents * THI_SPARSE_LANES), sizeof *s->here));
out:
    return status;
}

thiele_status thi_bsites_open(thi_bfit *fit)
{
    int64_t Q = fit->latents;
    thiele_status status = THIELE_OK;
    if (fit->sites == NULL) {
        THI_TRY(open_rows(fit));
    }
    thi_bsites *s = fit->sites;
    int64_t room = THI_SPARSE_LANES * fit->result->largest;
    thi_free(s->desk);
    s->desk = NULL;
    THI_TRY(thi_alloc(fit->problem.ctx, &s->desk, (size_t)((WIDE * Q + 1) * room), sizeof *s->desk));
    double *at = s->desk,
           **wide[WIDE] = {&s->lambda, &s->nu, &s->mu, &s->v, &s->g, &s->h, &s->o, &s->f_mu, &s->f_v, &s->f_g, &s->f_h};
    for (int i = 0; i < WIDE; i++, at += room * Q) {
        *wide[i] = at;
    }
    s->room = room;
    s->E = at;
out:
    return status;
}

void thi_bsites_close(thi_bfit *fit)
{
    thi_bsites *s = fit->sites;
    if (s == NULL) {
        return;
    }
    thi_free(s->all_lambda);
    thi_free(s->all_nu);
    thi_free(s->here);
    thi_free(s->desk);
    thi_providers_close(&s->providers);
    thi_free(s);
    fit->sites = NULL;
}

double thi_bsites_bound(const thi_bfit *fit)
{
    return fit->sites->bound;
}

/* --- the blocks at hand ------------------------------------------------------------------------------------------- */

void thi_bsites_look_at(const thi_bfit *fit, int64_t count, int q, thi_block *block)
{
    const thi_bsites *s = fit->sites;
    int64_t at = q * s->room;
    for (int64_t i = 0; i < count; at += fit->block[i].n, i++) {
        block[i] = fit->block[i];
        block[i].at = (thi_block_sites){s->lambda + at, s->nu + at, s->mu + at, s->v + at, s->g + at, s->h + at};
    }
}

/* How many latent functions share a prior and are worked on together: all of them, or one. */
static int together(const thi_bfit *fit)
{
    return fit->latents > 1 && fit->engine[1].shape.twin ? fit->latents : 1;
}

/* The same as that many from the q-th on see them. */
static const thi_block *look_together(const thi_bfit *fit, int64_t count, int q, bool again)
{
    thi_block *here = fit->sites->here;
    int twins = together(fit);
    for (int k = 0; k < twins; k++) {
        thi_bsites_look_at(fit, count, q + k, here + k * count);
    }
    for (int64_t k = 0; k < twins * count; k++) {
        here[k].same = again;
    }
    return here;
}

/* Copies numbers of the rows of some blocks between an array by row and one of the blocks at hand. */
static void carry(const thi_bfit *fit, int64_t count, const int64_t *block, double *by_row, double *at, bool back)
{
    const thi_bsites *s = fit->sites;
    for (int q = 0; q < fit->latents; q++) {
        double *row = by_row + q * s->N, *here = at + q * s->room;
        for (int64_t i = 0; i < count; i++) {
            for (int64_t k = fit->partition.start[block[i]]; k < fit->partition.start[block[i] + 1]; k++, here++) {
                double *there = &row[fit->partition.order[k]];
                *(back ? there : here) = *(back ? here : there);
            }
        }
    }
}

thiele_status thi_bsites_bring(thi_bfit *fit, int64_t count, const int64_t *block, int64_t *rows)
{
    thi_bsites *s = fit->sites;
    thiele_status status = thi_bfit_load(fit, count, block, rows);
    if (status == THIELE_OK) {
        carry(fit, count, block, s->all_lambda, s->lambda, false);
        carry(fit, count, block, s->all_nu, s->nu, false);
    }
    return status;
}

const thi_prior *thi_bsites_prior(const thi_bfit *fit, int q)
{
    const thi_latents *latents = &fit->problem.spec->latents;
    return &latents->prior[latents->group[q]];
}

/* Marginals of the blocks at hand, again or of new ones; sums: fit->step becomes their part of the sums. */
static thiele_status find_marginals(thi_bfit *fit, int64_t count, int64_t rows, bool sums, bool again)
{
    thi_bsites *s = fit->sites;
    int twins = together(fit);
    thiele_status status = THIELE_OK;
    for (int q = 0; q < fit->latents; q++) {
        thi_natural_zero(&fit->step[q]);
    }
    for (int q = 0; q < fit->latents && status == THIELE_OK; q += twins) {
        status = thi_sparse_marginals(&fit->engine[q], twins, fit->problem.ctx, count,
                                      look_together(fit, count, q, again), sums ? &fit->step[q] : NULL);
    }
    for (int q = 0; q < fit->latents; q++) {
        const thi_prior *prior = thi_bsites_prior(fit, q);
        double *o = s->o + q * s->room;
        thi_mean_fill(prior->mean, prior->mean_parameter, rows, fit->problem.source->dims, fit->buffer.X, o);
        for (int64_t i = 0; q == 0 && fit->problem.source->beside.offset && i < rows; i++) {
            o[i] += fit->buffer.offset[i];
        }
    }
    return status;
}

/* The likelihood's guesses in place of the marginals of rows that have no site yet. */
static void take_guesses(thi_bfit *fit, int64_t rows)
{
    const thiele_likelihood *lik = fit->problem.spec->lik;
    thi_bsites *s = fit->sites;
    int64_t Q = fit->latents;
    for (int64_t i = 0; i < rows; i++) {
        double *f = s->f_mu + i * Q, *v = s->f_v + i * Q, *prior = s->f_g + i * Q /* not needed yet */;
        bool bare = true;
        for (int64_t q = 0; q < Q; q++) {
            bare = bare && s->lambda[i + q * s->room] == 0.0 && s->nu[i + q * s->room] == 0.0;
        }
        if (!bare || lik->ops->guess == NULL) {
            continue;
        }
        memcpy(prior, f, (size_t)Q * sizeof *f);
        thi_first_guess(lik, fit->buffer.y + i * lik->outputs, prior, f, v);
        for (int64_t q = 0; q < Q; q++) {
            int64_t at = i + q * s->room;
            s->mu[at] = f[q] - s->o[at];
            s->v[at] = v[q];
        }
    }
}

/* E, g and h of the blocks at hand at their marginals; guess: at guesses, for rows without sites. */
static thiele_status ask(thi_bfit *fit, int64_t rows, int64_t number, bool guess)
{
    thi_bsites *s = fit->sites;
    int64_t Q = fit->latents;
    for (int64_t k = 0; k < rows * Q; k++) {
        int64_t at = k / Q + k % Q * s->room;
        s->f_mu[k] = s->mu[at] + s->o[at];
        s->f_v[k] = s->v[at];
    }
    if (guess) {
        take_guesses(fit, rows);
    }
    const thi_asked asked = {number, rows,   fit->buffer.y, s->f_mu, s->f_v,
                             s->E,   s->f_g, s->f_h,        NULL,    fit->buffer.weight};
    thiele_status status = thi_providers_expect(&s->providers, fit->problem.ctx, &asked);
    for (int64_t k = 0; k < rows * Q && status == THIELE_OK; k++) {
        int64_t at = k / Q + k % Q * s->room;
        s->g[at] = s->f_g[k];
        s->h[at] = s->f_h[k];
    }
    return status;
}

/* The g and h of sites that stay where they are. */
static void hold(const thi_bfit *fit, int64_t count, const int64_t *block)
{
    const thi_bsites *s = fit->sites;
    for (int q = 0; q < fit->latents; q++) {
        int64_t at = q * s->room;
        for (int64_t i = 0; i < count; i++) {
            for (int64_t k = fit->partition.start[block[i]]; k < fit->partition.start[block[i] + 1]; k++, at++) {
                if (fit->partition.order[k] < s->settled) {
                    s->g[at] = s->nu[at] - s->lambda[at] * s->mu[at];
                    s->h[at] = -0.5 * s->lambda[at];
                }
            }
        }
    }
}

/* What a whole step would gain at most, row by row in Fisher's metric: see fit/dense.c. */
static double gain(const thi_bfit *fit, int64_t rows)
{
    const thi_bsites *s = fit->sites;
    double sum = 0.0;
    for (int64_t k = 0; k < rows * fit->latents; k++) {
        int64_t at = k % rows + k / rows * s->room;
        double slope = s->g[at] - s->nu[at] + s->lambda[at] * s->mu[at], bend = s->h[at] + 0.5 * s->lambda[at];
        sum += 0.5 * slope * slope * s->v[at] + bend * bend * s->v[at] * s->v[at];
    }
    return sum;
}

/* The part of the bound beside log Z. */
static double slack(const thi_bfit *fit, int64_t count)
{
    thi_block block[THI_SPARSE_LANES];
    double sum = 0.0;
    for (int q = 0; q < fit->latents; q++) {
        const double *E = q == 0 ? fit->sites->E : NULL;
        thi_bsites_look_at(fit, count, q, block);
        for (int64_t i = 0; i < count; E = E != NULL ? E + block[i].n : NULL, i++) {
            sum += thi_block_slack(&block[i], E);
        }
    }
    return sum;
}

int64_t thi_bsites_lanes(int64_t count, int64_t first)
{
    return thi_least(count - first, THI_SPARSE_LANES);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

/*
 * Blocks whose likelihood overflows at their marginals stay as they are, and the others go on: the next pass finds
 * other marginals. *asked: whether their expectations are there.
 */
static thiele_status ask_or_leave(thi_bfit *fit, int64_t count, int64_t rows, int64_t number, bool guess, bool *asked)
{
    thiele_status status = ask(fit, rows, number, guess);
    *asked = status == THIELE_OK;
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(fit->problem.ctx);
        fit->sites->left += count;
        return THIELE_OK;
    }
    return status;
}

/*
 * Nodes and weights of a network, which are multiplied with each other, take turns after the first round: together both
 * would make up for all that is left, and overshoot by as much.
 */
static bool take_turns(const thi_bfit *fit)
{
    return thi_is_network(fit->problem.spec->lik) && together(fit) == 1;
}

static bool moves(const thi_bfit *fit, int q, int64_t round)
{
    return round == 0 || !take_turns(fit) || (q < fit->problem.spec->lik->nodes) == (round % 2 == 1);
}

void thi_bsites_adapt(const thi_bfit *fit, int64_t round, double gains, thi_bsites_pace *p)
{
    double *before = &p->before[take_turns(fit) ? round % 2 : 0];
    p->rho *= gains > *before ? 0.5 : 1.0;
    *before = gains;
}

/* One step of the blocks at hand; *gains: what it had to gain. */
static thiele_status step(thi_bfit *fit, int64_t count, const int64_t *block, int64_t rows, int64_t round, bool again,
                          double rho, double *gains)
{
    int twins = together(fit);
    double taken;
    bool asked;
    thiele_status status;
    *gains = 0.0;
    THI_TRY(find_marginals(fit, count, rows, true, again));
    THI_TRY(ask_or_leave(fit, count, rows, fit->partition.start[block[0]], round == 0, &asked));
    if (!asked) {
        return THIELE_OK;
    }
    hold(fit, count, block);
    *gains = gain(fit, rows);
    for (int q = 0; q < fit->latents; q += twins) {
        if (moves(fit, q, round)) {
            THI_TRY(thi_sparse_step(&fit->engine[q], twins, fit->problem.ctx, count, look_together(fit, count, q, true),
                                    rho, &fit->step[q], &fit->sums[q], &taken));
        }
    }
    fit->result->fit.evaluations += count;
out:
    return status;
}

thiele_status thi_bsites_visit(thi_bfit *fit, int64_t count, const int64_t *block, int64_t round, double rho,
                               double *gains)
{
    thi_bsites *s = fit->sites;
    int64_t rows;
    double own = 0.0;
    thiele_status status;
    THI_TRY(thi_bsites_bring(fit, count, block, &rows));
    for (int k = 0; k < (round == 0 ? FIRST_STEPS : LATER_STEPS) && (k == 0 || own > WORTH * (double)rows); k++) {
        THI_TRY(step(fit, count, block, rows, round + k, k > 0, rho, &own));
    }
    *gains += own;
    carry(fit, count, block, s->all_lambda, s->lambda, true);
    carry(fit, count, block, s->all_nu, s->nu, true);
out:
    return status;
}

double thi_bsites_log_z(const thi_bfit *fit)
{
    double sum = 0.0;
    for (int q = 0; q < fit->latents; q++) {
        sum += thi_sparse_evidence(&fit->engine[q], &fit->sums[q]);
    }
    return sum;
}

thiele_status thi_bsites_slack(thi_bfit *fit, int64_t count, const int64_t *block, double *own)
{
    int64_t rows;
    bool asked;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_bsites_bring(fit, count, block, &rows));
    THI_TRY(find_marginals(fit, count, rows, false, false));
    THI_TRY(ask_or_leave(fit, count, rows, fit->partition.start[block[0]], false, &asked));
    *own += asked ? slack(fit, count) : 0.0;
out:
    return status;
}
