/*
 * The posterior of blocks for any likelihood: each row has a Gaussian site per latent function, which natural steps
 * bring to their fixed point (MATH.md section 8; posterior/sparse.h), some blocks at a time, so that there is a model
 * after each of them. Sites are kept by row.
 */
#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "expect/parallel.h"
#include "fit/blocks_state.h"
#include "fit/budget.h"

enum { PASSES = 20, ROUNDS = 12, JOINED = 10 /* rounds of blocks that more rows have joined */, FIRST_STEPS = 3 };
static const double ENOUGH = 2e-3; /* nats per row: a pass that has less to gain is the last, and takes most of it */
static const double CLOSE = 3e-5;  /* likewise, of some blocks whose bound has its gradient taken */
static const double ENOUGH_JOINED = 1e-6;
static const double MOMENT = 0.1; /* seconds */

struct thi_bsites {
    int64_t N, room;             /* rows of the table, and of THI_SPARSE_LANES blocks */
    double *all_lambda, *all_nu; /* of all rows of the table, N x Q, the latent function slowest */
    thi_providers providers;
    thi_block *here; /* THI_SPARSE_LANES x Q: the blocks at hand, those of a latent function side by side */
    double *desk;    /* what follows, in one piece */
    /* Of the blocks at hand: room x Q, the latent function slowest; o: prior mean and offset. */
    double *lambda, *nu, *mu, *v, *g, *h, *o;
    double *f_mu, *f_v, *f_g, *f_h; /* Q x room, as expectations have it */
    double *E;
    double bound;
    int64_t left;    /* blocks that a pass left as they were, because expectations of theirs are no numbers */
    int64_t settled; /* the first so many rows of the table keep their sites */
};

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

/* The blocks at hand as a latent function sees them. */
static void look_at(const thi_bfit *fit, int64_t count, int q, thi_block *block)
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
        look_at(fit, count, q + k, here + k * count);
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

/* Rows of some blocks, with their sites. */
static thiele_status bring(thi_bfit *fit, int64_t count, const int64_t *block, int64_t *rows)
{
    thi_bsites *s = fit->sites;
    thiele_status status = thi_bfit_load(fit, count, block, rows);
    if (status == THIELE_OK) {
        carry(fit, count, block, s->all_lambda, s->lambda, false);
        carry(fit, count, block, s->all_nu, s->nu, false);
    }
    return status;
}

static const thi_prior *prior_of(const thi_bfit *fit, int q)
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
        const thi_prior *prior = prior_of(fit, q);
        double *o = s->o + q * s->room;
        thi_mean_fill(prior->mean, prior->mean_parameter, rows, fit->problem.source->dims, fit->buffer.X, o);
        for (int64_t i = 0; q == 0 && fit->problem.source->offset && i < rows; i++) {
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
    const thi_asked asked = {number, rows, fit->buffer.y, s->f_mu, s->f_v, s->E, s->f_g, s->f_h, NULL};
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
        look_at(fit, count, q, block);
        for (int64_t i = 0; i < count; E = E != NULL ? E + block[i].n : NULL, i++) {
            sum += thi_block_slack(&block[i], E);
        }
    }
    return sum;
}

static int64_t lanes_from(int64_t count, int64_t first)
{
    return thi_least(count - first, THI_SPARSE_LANES);
}

/* --- the posterior of all rows ------------------------------------------------------------------------------------ */

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

/* The size of steps, and what the last rounds (of the same turn) had to gain. */
typedef struct pace {
    double rho, before[2];
} pace;

static const pace first_pace = {1.0, {INFINITY, INFINITY}};

/* Where there is more to gain than before steps were too long. */
static void adapt(const thi_bfit *fit, int64_t round, double gains, pace *p)
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

/*
 * Some blocks, one step or, of those that have no sites yet, a few: the covariances of their rows are there. What the
 * last had to gain is added to *gains.
 */
static thiele_status visit(thi_bfit *fit, int64_t count, const int64_t *block, int64_t round, double rho, double *gains)
{
    thi_bsites *s = fit->sites;
    int64_t rows;
    double own = 0.0;
    thiele_status status;
    THI_TRY(bring(fit, count, block, &rows));
    for (int k = 0; k < (round == 0 ? FIRST_STEPS : 1); k++) {
        THI_TRY(step(fit, count, block, rows, round + k, k > 0, rho, &own));
    }
    *gains += own;
    carry(fit, count, block, s->all_lambda, s->lambda, true);
    carry(fit, count, block, s->all_nu, s->nu, true);
out:
    return status;
}

static bool goes_on(const thi_bfit *fit, bool first, double began)
{
    const thi_driver *driver = fit->problem.driver;
    bool moment = driver->stopped && driver->reason == THIELE_STOP_CANCELLED && thi_seconds() - began < MOMENT;
    return first || moment ||
           (!thi_driver_stopped(fit->problem.driver) &&
            thi_bfit_affords(fit, thi_bfit_sum_flops(fit, THI_SPARSE_LANES)));
}

/* Of the sites so far: what progress shows. */
static double log_z(const thi_bfit *fit)
{
    double sum = 0.0;
    for (int q = 0; q < fit->latents; q++) {
        sum += thi_sparse_evidence(&fit->engine[q], &fit->sums[q]);
    }
    return sum;
}

/* All blocks once, in a random order. False in *whole: time was up before. */
static thiele_status pass_over(thi_bfit *fit, int64_t pass, double rho, double *gains, bool *whole)
{
    int64_t P = fit->partition.blocks, block[THI_SPARSE_LANES], done = 0;
    double began = thi_seconds();
    thi_shuffle order;
    thiele_status status = THIELE_OK;
    thi_bfit_order(fit, pass, &order);
    *gains = 0.0;
    while (done < P && goes_on(fit, pass == 0 && done == 0, began)) {
        int64_t count = lanes_from(P, done);
        double before = thi_seconds();
        for (int64_t i = 0; i < count; i++) {
            block[i] = thi_shuffle_at(&order, done + i);
        }
        THI_TRY(visit(fit, count, block, pass, rho, gains));
        done += count;
        thi_budget_took(fit->problem.driver, thi_bfit_sum_flops(fit, count), thi_seconds() - before);
        thi_driver_count(fit->problem.driver, count * fit->typical);
        fit->result->passes += (double)count / (double)P;
        THI_TRY(thi_bfit_look(fit));
    }
    *whole = done == P;
out:
    return status;
}

/* The part of the bound of some blocks beside log Z, another look at each. */
static thiele_status look_again(thi_bfit *fit, int64_t count, const int64_t *block, double *own)
{
    int64_t rows;
    bool asked;
    thiele_status status = THIELE_OK;
    THI_TRY(bring(fit, count, block, &rows));
    THI_TRY(find_marginals(fit, count, rows, false, false));
    THI_TRY(ask_or_leave(fit, count, rows, fit->partition.start[block[0]], false, &asked));
    *own += asked ? slack(fit, count) : 0.0;
out:
    return status;
}

/* The bound at the sites that there are: another look at all blocks, or at those that there is time for. */
static thiele_status final_bound(thi_bfit *fit)
{
    int64_t P = fit->partition.blocks, block[THI_SPARSE_LANES], done = 0;
    double own = 0.0, began = thi_seconds();
    thi_shuffle order;
    thiele_status status = THIELE_OK;
    fit->sites->left = 0;
    thi_bfit_order(fit, 0, &order);
    while (done < P && goes_on(fit, done == 0, began)) {
        int64_t count = lanes_from(P, done);
        for (int64_t i = 0; i < count; i++) {
            block[i] = thi_shuffle_at(&order, done + i);
        }
        THI_TRY(look_again(fit, count, block, &own));
        done += count;
    }
    int64_t left = fit->sites->left, seen = done - left;
    if (seen == 0) {
        THI_TRY(thi_fail(fit->problem.ctx, THIELE_ERROR_NUMERIC,
                         "the likelihood overflows in every block of rows: targets that are out of all proportion, or "
                         "the values that were set, do not suit it"));
    }
    fit->sites->bound = own * fmin(fit->result->passes, 1.0) * (double)P / (double)seen + log_z(fit);
    fit->result->estimate = ((double)done < fit->result->passes * (double)P && done < P) || left > 0;
    if (left > 0) {
        thi_log(fit->problem.ctx, THIELE_LOG_WARNING,
                "the likelihood overflows in %lld of %lld blocks of rows, which were left as they were: targets that "
                "are out of all proportion may be among them",
                (long long)left, (long long)done);
    }
out:
    return status;
}

/* --- the bound of some blocks ------------------------------------------------------------------------------------- */

/* q of these blocks at their present sites. */
static thiele_status sum_again(thi_bfit *fit, int64_t count, const int64_t *block)
{
    thi_block here[THI_SPARSE_LANES];
    int64_t rows;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < fit->latents; q++) {
        thi_natural_zero(&fit->sums[q]);
    }
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        int64_t lanes = lanes_from(count, first);
        THI_TRY(bring(fit, lanes, block + first, &rows));
        for (int q = 0; q < fit->latents; q++) {
            look_at(fit, lanes, q, here);
            THI_TRY(thi_sparse_sum(&fit->engine[q], fit->problem.ctx, lanes, here, 1.0, &fit->sums[q]));
        }
    }
    for (int q = 0; q < fit->latents; q++) {
        THI_TRY(thi_sparse_set(&fit->engine[q], fit->problem.ctx, &fit->sums[q]));
    }
out:
    return status;
}

thiele_status thi_bsites_converge(thi_bfit *fit, int64_t count, const int64_t *block, double *value)
{
    double gains = 0.0;
    pace p = first_pace;
    thiele_status status;
    THI_TRY(sum_again(fit, count, block));
    for (int round = 0; round < ROUNDS && (round < 2 || gains > CLOSE * (double)(count * fit->typical)); round++) {
        gains = 0.0;
        for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
            THI_TRY(visit(fit, lanes_from(count, first), block + first, round, p.rho, &gains));
        }
        adapt(fit, round, gains, &p);
    }
    *value = log_z(fit);
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        THI_TRY(look_again(fit, lanes_from(count, first), block + first, value));
    }
out:
    return status;
}

thiele_status thi_bsites_pull(thi_bfit *fit, int64_t count, const int64_t *block, double *gradient)
{
    const thi_hypers *hypers = fit->problem.hypers;
    thi_block here[THI_SPARSE_LANES];
    int64_t rows;
    double bound = 0.0, none = 0.0;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < count; first += THI_SPARSE_LANES) {
        int64_t lanes = lanes_from(count, first);
        THI_TRY(bring(fit, lanes, block + first, &rows));
        for (int q = 0; q < fit->latents; q++) {
            double *own = gradient + hypers->first[fit->problem.spec->latents.group[q]];
            thi_sparse_bar bar = {.theta = own, .mean = own + prior_of(fit, q)->kernel->parameters, .log_noise = &none};
            look_at(fit, lanes, q, here);
            for (int64_t i = 0; i < lanes; i++) {
                here[i].at.g = here[i].at.h = NULL; /* the sites are at their fixed point */
            }
            THI_TRY(thi_sparse_pull(&fit->engine[q], fit->problem.ctx, lanes, here, 1.0, &bound, &bar));
        }
    }
out:
    return status;
}

thiele_status thi_bsites_steps(thi_bfit *fit)
{
    thi_bsites *s = fit->sites;
    size_t bytes = (size_t)(s->N * fit->latents) * sizeof *s->all_lambda;
    double gains;
    pace p = first_pace;
    bool whole = true;
    thiele_status status;
    memset(s->all_lambda, 0, bytes);
    memset(s->all_nu, 0, bytes);
    fit->result->passes = 0.0;
    thi_driver_phase(fit->problem.driver, "blocks", PASSES);
    THI_TRY(thi_bfit_prepare(fit));
    for (int q = 0; q < fit->latents; q++) {
        thi_natural_zero(&fit->sums[q]);
        THI_TRY(thi_sparse_set(&fit->engine[q], fit->problem.ctx, &fit->sums[q]));
    }
    for (int64_t pass = 0; pass < PASSES && whole; pass++) {
        THI_TRY(pass_over(fit, pass, p.rho, &gains, &whole));
        thi_driver_report(fit->problem.driver, log_z(fit));
        if (pass > 0 && whole && gains < ENOUGH * (double)fit->partition.n) {
            break;
        }
        if (pass > 0) { /* what the first had to gain was seen at guesses */
            adapt(fit, pass, gains, &p);
        }
    }
    fit->result->rows = fmin(1.0, fit->result->passes) * (double)fit->partition.n;
    if (!whole) {
        fit->result->fit.stop = THIELE_STOP_DEADLINE;
    }
    THI_TRY(final_bound(fit));
out:
    return status;
}

thiele_status thi_bsites_lend(thi_bfit *fit)
{
    const thi_bsites *s = fit->sites;
    for (int q = 0; q < fit->latents; q++) {
        thi_local *local = fit->local[q];
        thiele_status status = local->lambda == NULL ? thi_local_hold_sites(local, fit->problem.ctx) : THIELE_OK;
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t i = 0; i < fit->partition.n; i++) {
            local->lambda[i] = s->all_lambda[q * s->N + fit->partition.order[i]];
            local->nu[i] = s->all_nu[q * s->N + fit->partition.order[i]];
        }
    }
    return THIELE_OK;
}

/* --- more rows ---------------------------------------------------------------------------------------------------- */

void thi_bsites_take(thi_bfit *fit, const thi_predictor *from, int64_t settled)
{
    thi_bsites *s = fit->sites;
    for (int q = 0; q < fit->latents; q++) {
        const thi_local *local = from[q].local;
        size_t bytes = (size_t)local->partition.n * sizeof *local->nu;
        memcpy(s->all_lambda + q * s->N, local->lambda, bytes);
        memcpy(s->all_nu + q * s->N, local->nu, bytes);
    }
    s->settled = settled;
}

/* Adds what some blocks say at the sites that they have. */
static thiele_status add_blocks(thi_bfit *fit, int64_t count, const int64_t *block)
{
    thi_block here[THI_SPARSE_LANES];
    int64_t rows;
    thiele_status status = bring(fit, count, block, &rows);
    for (int q = 0; q < fit->latents && status == THIELE_OK; q++) {
        look_at(fit, count, q, here);
        status = thi_sparse_sum(&fit->engine[q], fit->problem.ctx, count, here, 1.0, &fit->sums[q]);
    }
    return status;
}

thiele_status thi_bsites_join(thi_bfit *fit, int64_t count, const int64_t *block)
{
    double gains;
    pace p = first_pace;
    int64_t rows = 0;
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < count; i += THI_SPARSE_LANES) {
        THI_TRY(add_blocks(fit, lanes_from(count, i), block + i));
    }
    for (int q = 0; q < fit->latents; q++) {
        THI_TRY(thi_sparse_set(&fit->engine[q], fit->problem.ctx, &fit->sums[q]));
    }
    for (int64_t i = 0; i < count; i++) {
        rows += fit->partition.start[block[i] + 1] - fit->partition.start[block[i]];
    }
    for (int round = 0; round < JOINED; round++) {
        gains = 0.0;
        for (int64_t i = 0; i < count; i += THI_SPARSE_LANES) {
            THI_TRY(visit(fit, lanes_from(count, i), block + i, round, p.rho, &gains));
        }
        if (round > 0 && gains < ENOUGH_JOINED * (double)rows) {
            break;
        }
        adapt(fit, round, gains, &p);
    }
out:
    return status;
}
