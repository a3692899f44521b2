/*
 * What is averaged to get (E, g, h) (math.md section 1). With derivatives of l = log p, the reparameterised forms
 *   E = E[l],  g = E[l'],  h = E[l'']/2;
 * with the density alone, the score identities, He_j the Hermite polynomials and z = (f - mu)/sd,
 *   g = E[He_1(z) (l - l(mu))]/sd,  h = E[He_2(z) (l - l(mu))]/(2 v).
 *
 * Below a spread of 2e-4 the differences l - l(mu) of a black box are lost to rounding (in h, relative to l'', an error
 * of eps |l|/v). Such a row is computed at that spread and taken back to its own v by Taylor's formula, with
 * dE/dv = h, dg/dv = E[l''']/2 and dh/dv = E[l'''']/4 from He_3 and He_4 at the same nodes: features of log p narrower
 * than 2e-4 are smoothed unless they are known as bends, nothing else is lost. Derivatives need none of this.
 *
 * At a kink, l' jumps and l'' has a point mass that no node sees: h = (E[l''] + jump N(kink; mu, v))/2.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "expect/integrate.h"

/* --- sums --------------------------------------------------------------------------------------------------------- */

typedef double pair __attribute__((vector_size(16)));

static inline pair load(const double *x)
{
    pair v;
    memcpy(&v, x, sizeof v);
    return v;
}

double thi_weigh(int64_t n, const double *w, const double *x)
{
    pair a = {0, 0}, b = {0, 0};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        a += load(w + k) * load(x + k);
        b += load(w + k + 2) * load(x + k + 2);
    }
    a += b;
    double sum = a[0] + a[1];
    for (; k < n; k++) {
        sum += w[k] * x[k];
    }
    return sum;
}

/* result_q += sum_k w_k x_qk; x: Q x n */
static void weigh_each(int64_t Q, int64_t n, const double *w, const double *x, double *result)
{
    if (Q == 1) {
        result[0] += thi_weigh(n, w, x);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        for (int64_t q = 0; q < Q; q++) {
            result[q] += w[k] * x[k * Q + q];
        }
    }
}

/* --- by derivatives: results E, g (Q), 2h (Q) --------------------------------------------------------------------- */

static void evaluate_slopes(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    const thiele_likelihood *lik = in->lik;
    lik->ops->log_density(lik, n, y, f, value);
    lik->ops->derivatives(lik, n, y, f, value + n, value + n + n * lik->latents);
}

static void reduce_slopes(const thi_integrand *in, const thi_points *p, double *result)
{
    int64_t Q = in->lik->latents;
    const double *d1 = p->value + p->n + p->at * Q;
    result[0] += thi_weigh(p->count, p->w, p->value + p->at);
    weigh_each(Q, p->count, p->w, d1, result + 1);
    weigh_each(Q, p->count, p->w, d1 + p->n * Q, result + 1 + Q);
}

static bool close_enough(double before, double now, double tolerance, double floor)
{
    return fabs(now - before) <= tolerance * fabs(now) + floor;
}

/*
 * Rounding is measured in units that do not depend on that of f: l is a pure number, and sqrt|l''| and l' are as good
 * as each other. A hundredth of the tolerance is far above rounding and far below what matters.
 */
static bool settled_slopes(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                           const double *now)
{
    (void)centre;
    int64_t Q = in->lik->latents;
    double fine = 0.01 * tolerance;
    bool settled = close_enough(before[0], now[0], tolerance, 1e-5 * tolerance);
    for (int64_t q = 1; q <= Q && settled; q++) {
        double g = now[q], h = now[Q + q];
        settled = close_enough(before[q], g, tolerance, fine * sqrt(fabs(h)) + DBL_MIN) &&
                  close_enough(before[Q + q], h, tolerance, fine * g * g + DBL_MIN);
    }
    return settled;
}

/* sum over kinks of the jump of l' times N(kink; mu, v): what l'' as a function misses. */
static double point_masses(const thiele_likelihood *lik, const double *y, double mu, double v)
{
    thi_bend bend[THI_BENDS_MAX];
    int bends = lik->ops->bends != NULL && lik->latents == 1 && v > DBL_MIN ? lik->ops->bends(lik, y, bend) : 0;
    double sum = 0, sd = sqrt(v), unused;
    for (int b = 0; b < bends; b++) {
        double at = bend[b].at, z = (at - mu) / sd;
        if (bend[b].width > 0 || !(fabs(z) < 38)) {
            continue;
        }
        double step = 4 * DBL_EPSILON * fabs(at) + DBL_MIN, left = at - step, right = at + step, l1, r1;
        lik->ops->derivatives(lik, 1, y, &left, &l1, &unused);
        lik->ops->derivatives(lik, 1, y, &right, &r1, &unused);
        sum += (r1 - l1) * exp(-0.5 * z * z) / (sd * 2.506628274631000502416);
    }
    return sum;
}

static double finish_slopes(const thi_integrand *in, const thi_moments *row, double *g, double *h)
{
    int Q = in->lik->latents;
    for (int q = 0; q < Q; q++) {
        g[q] = row->result[1 + q];
        h[q] = 0.5 * row->result[1 + Q + q];
    }
    if (Q == 1) {
        h[0] += 0.5 * point_masses(in->lik, row->y, row->mu[0], row->v[0]);
    }
    return row->result[0];
}

thi_integrand thi_integrand_slopes(const thi_space *space)
{
    int64_t results = 1 + 2 * (int64_t)space->Q;
    return (thi_integrand){.lik = space->lik,
                           .values = results,
                           .results = results,
                           .evaluate = evaluate_slopes,
                           .reduce = reduce_slopes,
                           .settled = settled_slopes,
                           .finish = finish_slopes};
}

/* --- by scores: results S_0 = E[l - l(mu)], then S_j (Q each) = E[(l - l(mu)) He_j(z_q)], j = 1 .. 2 or 4 --------- */

static void evaluate_density(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    in->lik->ops->log_density(in->lik, n, y, f, value);
}

/* Q = 1, j <= 2: most of what a black box costs beyond its own evaluations, hence by hand. */
static void reduce_scores_line(const thi_points *p, double *result)
{
    const double *l = p->value + p->at, l0 = p->centre[0];
    pair s0 = {0, 0}, s1 = {0, 0}, s2 = {0, 0};
    int64_t k = 0;
    for (; k + 2 <= p->count; k += 2) {
        pair z = load(p->z + k), d = load(p->w + k) * (load(l + k) - l0);
        s0 += d;
        s1 += d * z;
        s2 += d * (z * z - 1.0);
    }
    for (; k < p->count; k++) {
        double z = p->z[k], d = p->w[k] * (l[k] - l0);
        s0[0] += d;
        s1[0] += d * z;
        s2[0] += d * (z * z - 1.0);
    }
    result[0] += s0[0] + s0[1];
    result[1] += s1[0] + s1[1];
    result[2] += s2[0] + s2[1];
}

static void reduce_scores_any(int64_t Q, const thi_points *p, double *result)
{
    double *s1 = result + 1, *s2 = s1 + Q;
    for (int64_t k = 0; k < p->count; k++) {
        double d = p->w[k] * (p->value[p->at + k] - p->centre[0]);
        const double *z = p->z + k * Q;
        result[0] += d;
        for (int64_t q = 0; q < Q; q++) {
            s1[q] += d * z[q];
            s2[q] += d * (z[q] * z[q] - 1.0);
        }
    }
}

static void reduce_scores(const thi_integrand *in, const thi_points *p, double *result)
{
    int64_t Q = in->lik->latents;
    if (Q == 1) {
        reduce_scores_line(p, result);
    } else {
        reduce_scores_any(Q, p, result);
    }
    double *s3 = result + 1 + 2 * Q, *s4 = s3 + Q;
    for (int64_t k = 0; k < p->count && in->results > 1 + 2 * Q; k++) {
        double d = p->w[k] * (p->value[p->at + k] - p->centre[0]);
        const double *z = p->z + k * Q;
        for (int64_t q = 0; q < Q; q++) {
            double zz = z[q] * z[q];
            s3[q] += d * z[q] * (zz - 3.0);
            s4[q] += d * (zz * (zz - 6.0) + 3.0);
        }
    }
}

/* Each difference l - l(mu) carries a rounding error of eps |l|. */
static bool settled_scores(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                           const double *now)
{
    int64_t results = 1 + 2 * (int64_t)in->lik->latents;
    double size = 0;
    for (int64_t j = 0; j < results; j++) {
        size += fabs(now[j]);
    }
    double floor = 1e-3 * tolerance * size + in->noise * (1.0 + fabs(centre[0]));
    bool settled = true;
    for (int64_t j = 0; j < results && settled; j++) {
        settled = close_enough(before[j], now[j], tolerance, floor);
    }
    return settled;
}

static double finish_scores(const thi_integrand *in, const thi_moments *row, double *g, double *h)
{
    int Q = in->lik->latents;
    const double *s1 = row->result + 1, *s2 = s1 + Q, *s3 = s2 + Q, *s4 = s3 + Q;
    double E = row->centre[0] + row->result[0];
    for (int q = 0; q < Q; q++) {
        double sd = row->sd[q], used = sd * sd, excess = used - row->v[q];
        g[q] = s1[q] / sd;
        h[q] = 0.5 * s2[q] / used;
        if (excess > 1e-9 * used) {
            double dg = 0.5 * s3[q] / (used * sd), dh = 0.25 * s4[q] / (used * used);
            E -= excess * (h[q] - 0.5 * excess * dh);
            g[q] -= excess * dg;
            h[q] -= excess * dh;
        }
    }
    return E;
}

thi_integrand thi_integrand_scores(const thi_space *space, bool narrow)
{
    return (thi_integrand){.lik = space->lik,
                           .values = 1,
                           .results = 1 + (narrow ? 4 : 2) * (int64_t)space->Q,
                           .judged = 1 + 2 * (int64_t)space->Q, /* a narrow row is no matter of the others */
                           .centred = true,
                           .noise = 8 * DBL_EPSILON,
                           .evaluate = evaluate_density,
                           .reduce = reduce_scores,
                           .settled = settled_scores,
                           .finish = finish_scores};
}

/* Not so far that a bend of log p comes within reach that was not before, or a smooth one can't be followed. */
double thi_score_spread(const thiele_likelihood *lik, const double *y, double mu, double sd)
{
    thi_bend bend[THI_BENDS_MAX];
    int bends = sd < 1e-3 ? thi_bends(lik, y, bend) : 0;
    /* f = mu + sd z is rounded to eps |mu|: the spread stays far above that. */
    double least = fmax(2e-4, 1e-9 * fabs(mu));
    for (int b = 0; b < bends; b++) {
        least = fmin(least, fmax(0.02 * bend[b].width, fabs(bend[b].at - mu) / 12));
    }
    return fmax(sd, least);
}

/* --- by scores with the control variate: montecarlo.c has the finish ---------------------------------------------- */

/*
 * S_0 = mean of d = l - l(mu); then for each latent the means of z d, t d, t^2 d, t^3 d, z t d and of z, t, t^2, t^3,
 * t^4, where t = z^2 - 1: an order that montecarlo.c knows.
 */
static void reduce_control(const thi_integrand *in, const thi_points *p, double *result)
{
    int64_t Q = in->lik->latents;
    for (int64_t k = 0; k < p->count; k++) {
        double w = p->w[k], d = w * (p->value[p->at + k] - p->centre[0]);
        const double *z = p->z + k * Q;
        result[0] += d;
        for (int64_t q = 0; q < Q; q++) {
            double t = z[q] * z[q] - 1.0, tt = t * t;
            double *sum = result + 1 + THI_CONTROL_SUMS * q;
            sum[0] += d * z[q];
            sum[1] += d * t;
            sum[2] += d * tt;
            sum[3] += d * tt * t;
            sum[4] += d * z[q] * t;
            sum[5] += w * z[q];
            sum[6] += w * t;
            sum[7] += w * tt;
            sum[8] += w * tt * t;
            sum[9] += w * tt * tt;
        }
    }
}

thi_integrand thi_integrand_control(const thi_space *space)
{
    return (thi_integrand){.lik = space->lik,
                           .values = 1,
                           .results = 1 + THI_CONTROL_SUMS * (int64_t)space->Q,
                           .centred = true,
                           .evaluate = evaluate_density,
                           .reduce = reduce_control,
                           .finish = thi_finish_control};
}

/* --- derivatives in phi ------------------------------------------------------------------------------------------- */

static void evaluate_phi(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    in->lik->ops->phi_derivatives(in->lik, n, y, f, value);
}

/* Central differences of log p in phi, or log phi, through the copy; truncation and rounding are near 1e-10 each. */
static void differentiate(const thi_integrand *in, int64_t p, int64_t n, const double *y, const double *f,
                          double *value)
{
    const thiele_likelihood *lik = in->lik;
    thiele_likelihood *copy = in->extra;
    int64_t count = lik->parameters;
    bool positive = lik->phi[p].positive;
    double now = lik->value[p], step = 6e-6 * (positive ? 1.0 : fmax(1.0, fabs(now)));
    copy->value[p] = copy->phi[p].value = positive ? now * exp(step) : now + step;
    copy->ops->log_density(copy, n, y, f, in->scratch);
    for (int64_t i = 0; i < n; i++) {
        value[i * count + p] = in->scratch[i];
    }
    copy->value[p] = copy->phi[p].value = positive ? now * exp(-step) : now - step;
    copy->ops->log_density(copy, n, y, f, in->scratch);
    for (int64_t i = 0; i < n; i++) {
        value[i * count + p] = (value[i * count + p] - in->scratch[i]) / (2.0 * step);
    }
    copy->value[p] = copy->phi[p].value = now;
}

/* A fixed parameter gets 0: it may be one that can't move, such as a number of trials. */
static void evaluate_phi_differences(const thi_integrand *in, int64_t n, const double *y, const double *f,
                                     double *value)
{
    memset(value, 0, (size_t)(n * in->values) * sizeof *value);
    for (int64_t p = 0; p < in->lik->parameters; p++) {
        if (!in->lik->phi[p].fixed) {
            differentiate(in, p, n, y, f, value);
        }
    }
}

static void reduce_phi(const thi_integrand *in, const thi_points *p, double *result)
{
    weigh_each(in->values, p->count, p->w, p->value + p->at * in->values, result);
}

thi_integrand thi_integrand_phi(thi_space *space)
{
    const thiele_likelihood *lik = space->lik;
    thi_integrand in = {.lik = lik,
                        .values = lik->parameters,
                        .results = lik->parameters,
                        .evaluate = evaluate_phi,
                        .reduce = reduce_phi};
    if (lik->ops->phi_derivatives == NULL) {
        memcpy(space->copy.value, lik->value, (size_t)lik->parameters * sizeof *lik->value);
        memcpy(space->copy.phi, lik->phi, (size_t)lik->parameters * sizeof *lik->phi);
        in.evaluate = evaluate_phi_differences;
        in.scratch = space->scratch;
        in.extra = &space->copy;
    }
    return in;
}
