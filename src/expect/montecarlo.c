/*
 * Monte Carlo: independent draws for every row, in antithetic pairs, with or without derivatives of log p. Without them
 * the scores s = z/sd (for g) and t = (z^2 - 1)/(2v) (for h) are averaged against l = log p; the score itself, whose
 * mean is zero, is the control variate (Bonilla, Krauth and Dezfouli, "Generic Inference in Latent Gaussian Process
 * Models", appendix F):
 *   g = mean[s l] - a mean[s],   a = cov[s l, s] / var[s],
 * and likewise h with t, a estimated from the same draws, row by row and latent by latent (a bias of order 1/draws).
 * An antithetic pair cancels mean[s] and the even part of l in g by itself, but its two draws say the same about the
 * rest; there t is the control variate of g, and t^2 a second one of h, which makes both exact for a quadratic l.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"

/* Draws from .. from + count - 1 of a row; with pairs, draw 2k + 1 is the mirror image of 2k. */
static void draw(const thi_draws *draws, int64_t row, int64_t from, int64_t count, int Q, double *z)
{
    thi_stream stream = {draws->seed, THI_RANDOM_EXPECT, (uint64_t)(draws->first + row)};
    for (int64_t k = 0; k < count; k++) {
        bool mirror = draws->antithetic && (from + k) % 2 == 1;
        for (int q = 0; q < Q; q++) {
            z[k * Q + q] = mirror ? -z[(k - 1) * Q + q] : thi_random_normal(stream, (uint64_t)((from + k) * Q + q));
        }
    }
}

void thi_draw_sweep(thi_space *space, const thi_integrand *in, const thi_draws *draws, const thi_block_rows *rows,
                    double *result)
{
    for (int64_t r = 0; r < rows->count; r++) {
        int i = rows->row[r];
        double *own = result + i * in->results;
        memset(own, 0, (size_t)in->results * sizeof *own);
        for (int64_t from = 0; from < draws->count; from += THI_POINTS) {
            int64_t count = draws->count - from < THI_POINTS ? draws->count - from : THI_POINTS;
            draw(draws, i, from, count, space->Q, space->z);
            for (int64_t k = 0; k < count; k++) {
                space->w[k] = 1.0 / (double)draws->count;
            }
            thi_rule rule = {count, 1, space->z, space->w};
            thi_sweep_add(space, in, &rule, rows, i, result);
        }
    }
}

/* mean[u] - a mean[c], a = cov[u, c] / var[c], from the means of u, u c, c and c^2. */
static double controlled(double u, double uc, double c, double cc)
{
    double variance = cc - c * c;
    return variance > 0 ? u - (uc - u * c) / variance * c : u;
}

/* The means over a row's draws, in the order of reduce_control; d = l - l(mu), t = z^2 - 1. */
typedef struct sums {
    double zd, td, ttd, tttd, ztd, z, t, tt, ttt, tttt;
} sums;
_Static_assert(sizeof(sums) == THI_CONTROL_SUMS * sizeof(double), "one number a sum");

/* mean[t d] with the control variates t and t^2, whose means are 0 and 2: the two coefficients solve a 2 x 2 system. */
static double twice_controlled(const sums *m)
{
    double a11 = m->tt - m->t * m->t, a12 = m->ttt - m->t * m->tt, a22 = m->tttt - m->tt * m->tt;
    double b1 = m->ttd - m->td * m->t, b2 = m->tttd - m->td * m->tt, det = a11 * a22 - a12 * a12;
    if (!(det > 1e-9 * a11 * a22)) {
        return controlled(m->td, m->ttd, m->t, m->tt);
    }
    return m->td - (b1 * a22 - b2 * a12) / det * m->t - (b2 * a11 - b1 * a12) / det * (m->tt - 2);
}

double thi_finish_control(const thi_integrand *in, const thi_moments *row, double *g, double *h)
{
    double l0 = row->centre[0], E = l0 + row->result[0];
    for (int q = 0; q < in->lik->latents; q++) {
        const sums *m = (const sums *)(row->result + 1 + THI_CONTROL_SUMS * q);
        double first = m->zd + l0 * m->z, second = m->td + l0 * m->t, sd = row->sd[q];
        if (in->control && in->pairs) {
            first = controlled(m->zd, m->ztd, m->t, m->tt);
            second = twice_controlled(m);
        } else if (in->control) {
            first = controlled(m->zd, m->td + row->result[0], m->z, m->t + 1);
            second = controlled(m->td, m->ttd, m->t, m->tt);
        }
        g[q] = first / sd;
        h[q] = 0.5 * second / (sd * sd);
        E -= fmax(0, sd * sd - row->v[q]) * h[q];
    }
    return E;
}
