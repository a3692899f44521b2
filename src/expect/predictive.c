/*
 * The log of the integral of p(y | f) N(f; mu, diag v) over f, however far in the tails: all sums are of exponentials
 * relative to their largest. First the ladder of Gauss-Hermite rules around mu. Rows that do not settle there (the mass
 * of the product lies elsewhere or is narrow) are done around the mode of
 *   psi(z) = log p(y | mu + sd z) - |z|^2/2,
 * found by search, not by derivatives: with one latent by panels that shrink towards the mode and the bends, with two
 * or three by the ladder again, recentred at the mode and scaled by the width of psi along each axis. More latents, and
 * models whose expectations are had by draws: quasi-random points around mu; where few of them count, the mode again,
 * or more points.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "expect/integrate.h"
#include "expect/parallel.h"
#include "linalg/vector.h"

/* A drop of psi by this much can't be seen in the integral. */
static const double DROP = 60;
/* The most latents of a row that is done around its mode. */
enum { MOST_PEAKED = 3 };

/* --- sums of exponentials: results M (the largest exponent) and sum of w exp(. - M); a zero sum means nothing yet - */

static void evaluate_density(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    in->lik->ops->log_density(in->lik, n, y, f, value);
}

/* l - |z|^2/2 + |t|^2/2 at z = m + s t, where the centre is (-, m, s); l itself when there is none. */
static double exponent(int64_t Q, double l, const double *t, const double *centre)
{
    for (int64_t q = 0; q < Q && centre != NULL; q++) {
        double z = centre[1 + q] + centre[1 + Q + q] * t[q];
        l += 0.5 * (t[q] - z) * (t[q] + z);
    }
    return l;
}

static void reduce_exponentials(const thi_integrand *in, const thi_points *p, double *result)
{
    int64_t Q = in->lik->latents;
    double largest = result[1] > 0 ? result[0] : -INFINITY, *e = in->scratch;
    bool wrong = isnan(result[1]);
    for (int64_t k = 0; k < p->count; k++) {
        e[k] = exponent(Q, p->value[p->at + k], p->z + k * Q, p->centre);
        largest = e[k] > largest ? e[k] : largest;
        wrong = wrong || e[k] != e[k];
    }
    result[1] = wrong ? NAN : result[1];
    if (!(largest > -INFINITY) || wrong) {
        return;
    }
    double sum = result[1] > 0 ? result[1] * exp(result[0] - largest) : 0;
    for (int64_t k = 0; k < p->count; k++) {
        e[k] -= largest;
    }
    thi_vector()->exp(p->count, e, e);
    result[0] = largest;
    result[1] = sum + thi_weigh(p->count, p->w, e);
}

static double log_sum(const double *result)
{
    return result[1] > 0 ? result[0] + log(result[1]) : isnan(result[1]) ? NAN : -INFINITY;
}

static bool settled_exponentials(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                                 const double *now)
{
    (void)in;
    (void)centre;
    return fabs(log_sum(now) - log_sum(before)) <= tolerance;
}

static thi_integrand exponentials(const thi_space *space)
{
    return (thi_integrand){.lik = space->lik,
                           .values = 1 + 2 * (int64_t)space->Q,
                           .results = 2,
                           .scratch = space->scratch,
                           .evaluate = evaluate_density,
                           .reduce = reduce_exponentials,
                           .settled = settled_exponentials};
}

/* Over panels: w exp(psi - psi at the mode), which is centre[0]. */
static void reduce_panel(const thi_integrand *in, const thi_points *p, double *result)
{
    (void)in;
    for (int64_t k = 0; k < p->count; k++) {
        result[0] += p->w[k] * exp(p->value[p->at + k] - 0.5 * p->z[k] * p->z[k] - p->centre[0]);
    }
}

/* --- the mode of psi ---------------------------------------------------------------------------------------------- */

typedef struct peak {
    thi_space *space;
    const double *y, *mu, *sd;
    double m[MOST_PEAKED], s[MOST_PEAKED]; /* the mode in z, and its width along each axis */
    double top;                            /* psi there */
} peak;

/* psi at `count` places along axis q, the other coordinates being those of the mode. NaN counts as impossible here:
 * the sums will find it. */
static void along(const peak *p, int q, int count, const double *place, double *psi)
{
    thi_space *space = p->space;
    int Q = space->Q;
    double rest = 0;
    for (int r = 0; r < Q; r++) {
        rest += r == q ? 0 : 0.5 * p->m[r] * p->m[r];
    }
    for (int k = 0; k < count; k++) {
        for (int r = 0; r < Q; r++) {
            space->f[k * Q + r] = p->mu[r] + p->sd[r] * (r == q ? place[k] : p->m[r]);
        }
    }
    space->lik->ops->log_density(space->lik, count, space->y, space->f, space->value);
    for (int k = 0; k < count; k++) {
        double here = space->value[k] - 0.5 * place[k] * place[k] - rest;
        psi[k] = isnan(here) ? -INFINITY : here;
    }
}

static int best_of(int count, const double *psi)
{
    int best = 0;
    for (int k = 1; k < count; k++) {
        best = psi[k] > psi[best] ? k : best;
    }
    return best;
}

enum { STEPS = 81, ZOOM = 33, OFFSETS = 64 };

/* Places to look first: doubling steps from 0, the bends, and where the likelihood guesses f to be. */
static int first_places(const peak *p, int q, double *place)
{
    const thiele_likelihood *lik = p->space->lik;
    thi_bend bend[THI_BENDS_MAX];
    int count = 0, bends = thi_bends(lik, p->y, bend);
    place[count++] = 0;
    place[count++] = p->m[q];
    for (int k = 0; k < STEPS; k++) {
        double step = 0.25 * exp2(0.5 * k);
        place[count++] = step;
        place[count++] = -step;
    }
    for (int b = 0; b < bends; b++) {
        place[count++] = (bend[b].at - p->mu[0]) / p->sd[0];
    }
    if (lik->ops->guess != NULL) {
        double *guess = p->space->scratch;
        lik->ops->guess(lik, p->y, guess);
        place[count++] = (guess[q] - p->mu[q]) / p->sd[q];
    }
    return thi_borders_sort(count, place, -1e15, 1e15);
}

/* Moves the mode along axis q to the best place, zooming in until psi is flat around it. */
static void climb_axis(peak *p, int q)
{
    double place[2 * STEPS + 8 + THI_BENDS_MAX], psi[2 * STEPS + 8 + THI_BENDS_MAX];
    int count = first_places(p, q, place);
    for (int round = 0; round < 14; round++) {
        along(p, q, count, place, psi);
        int best = best_of(count, psi);
        p->m[q] = place[best];
        p->top = psi[best];
        double low = place[best > 0 ? best - 1 : 0], high = place[best + 1 < count ? best + 1 : best];
        double drop = psi[best] - fmin(psi[best > 0 ? best - 1 : 0], psi[best + 1 < count ? best + 1 : best]);
        if (!(psi[best] > -INFINITY) || drop < 1e-3) {
            return;
        }
        count = ZOOM;
        for (int k = 0; k < ZOOM; k++) {
            place[k] = low + (high - low) * k / (ZOOM - 1);
        }
    }
}

/*
 * psi at m -+ 2^k, k = -OFFSETS/2 .. OFFSETS/2 - 1: drop[side][j] below the top. Returns the smallest j with a drop of
 * 0.05 on a side: the scale of the peak.
 */
static int measure(const peak *p, int q, double drop[2][OFFSETS])
{
    double place[OFFSETS];
    int scale = OFFSETS - 1;
    for (int side = 0; side < 2; side++) {
        for (int j = 0; j < OFFSETS; j++) {
            place[j] = p->m[q] + (side == 0 ? -1 : 1) * exp2(j - OFFSETS / 2);
        }
        along(p, q, OFFSETS, place, drop[side]);
        for (int j = OFFSETS - 1; j >= 0; j--) {
            drop[side][j] = p->top - drop[side][j];
            scale = drop[side][j] > 0.05 && j < scale ? j : scale;
        }
    }
    return scale;
}

static void find_peak(peak *p)
{
    int Q = p->space->Q;
    thi_repeat(p->space->P, p->y, THI_POINTS, p->space->y);
    for (int round = 0; round < (Q == 1 ? 1 : 4); round++) {
        for (int q = 0; q < Q; q++) {
            climb_axis(p, q);
        }
    }
}

/* --- one row around its peak -------------------------------------------------------------------------------------- */

/* Borders at m +- 2^k from the scale of the peak to where psi has dropped for good, and around the bends in sight. */
static int peak_borders(const peak *p, double *border)
{
    double drop[2][OFFSETS], low = p->m[0], high = p->m[0];
    int scale = measure(p, 0, drop), borders = 0;
    border[borders++] = p->m[0];
    for (int side = 0; side < 2; side++) {
        int last = OFFSETS - 1;
        while (last > scale && !(drop[side][last - 1] < DROP)) {
            last--;
        }
        for (int j = scale > 0 ? scale - 1 : 0; j <= last; j++) {
            double at = p->m[0] + (side == 0 ? -1 : 1) * exp2(j - OFFSETS / 2);
            border[borders++] = at;
            low = fmin(low, at);
            high = fmax(high, at);
        }
    }
    thi_bend bend[THI_BENDS_MAX];
    int bends = thi_bends(p->space->lik, p->y, bend);
    for (int b = 0; b < bends; b++) {
        double z = (bend[b].at - p->mu[0]) / p->sd[0], width = bend[b].width / p->sd[0], psi;
        along(p, 0, 1, &z, &psi);
        if (p->top - psi < DROP || (z > low && z < high)) {
            borders = thi_borders_around(borders, border, z, width, high - low);
            low = fmin(low, z - 64 * width);
            high = fmax(high, z + 64 * width);
        }
    }
    return thi_borders_sort(borders, border, low, high);
}

static thiele_status by_panels(const peak *p, thiele_context *ctx, double *out)
{
    double border[THI_BORDERS_MAX], sum = 0;
    int borders = peak_borders(p, border);
    thi_integrand in = {.lik = p->space->lik, .values = 1, .results = 1, .raw = true, .evaluate = evaluate_density};
    in.reduce = reduce_panel;
    thi_line line = {p->y, &p->top, p->mu[0], p->sd[0]};
    thiele_status status = thi_panels(p->space, ctx, &in, &line, borders, border, &sum);
    *out = p->top + log(sum) - 0.918938533204672741780; /* log sqrt(2 pi) */
    return status;
}

/* The width at which psi has dropped by 1/2, as it would for a normal; no more than the prior's. */
static double axis_width(const peak *p, int q)
{
    double drop[2][OFFSETS], width = 1;
    measure(p, q, drop);
    for (int side = 0; side < 2; side++) {
        for (int j = 0; j < OFFSETS; j++) {
            if (drop[side][j] > 0.5) {
                width = fmin(width, exp2(j - OFFSETS / 2) * sqrt(0.5 / drop[side][j]));
                break;
            }
        }
    }
    return width;
}

static thiele_status recentred(peak *p, thiele_context *ctx, double *out)
{
    thi_space *space = p->space;
    int Q = space->Q, none = 0, level;
    double mu[3], sd[3], centre[7] = {0}, result[2], width = 0;
    for (int q = 0; q < Q; q++) {
        p->s[q] = axis_width(p, q);
    }
    for (int q = 0; q < Q; q++) {
        mu[q] = p->mu[q] + p->sd[q] * p->m[q];
        sd[q] = p->sd[q] * p->s[q];
        centre[1 + q] = p->m[q];
        centre[1 + Q + q] = p->s[q];
        width += log(p->s[q]);
    }
    thi_integrand in = exponentials(space);
    thi_block_rows one = {1, &none, p->y, mu, sd, centre};
    thiele_status status = thi_climb(space, ctx, &in, &one, result, &level);
    *out = log_sum(result) + width;
    return status;
}

static thiele_status around_peak(thi_space *space, thiele_context *ctx, const double *y, const double *mu,
                                 const double *sd, double *out)
{
    peak p = {.space = space, .y = y, .mu = mu, .sd = sd, .top = -INFINITY};
    thiele_status status = thi_stop_ask(ctx);
    if (status != THIELE_OK) {
        return status;
    }
    find_peak(&p);
    /* The integral is below the highest point times the width of the normal, some e^3. */
    if (!isfinite(p.top) || p.top + 3 < space->floor) {
        *out = p.top;
        return THIELE_OK;
    }
    return space->Q == 1 ? by_panels(&p, ctx, out) : recentred(&p, ctx, out);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/*
 * Rules about mu agree with each other where log p is a straight line, and all of them miss a peak many standard
 * deviations away. The integrand on the way to where y itself points (guess) tells: it can't be far above the integral
 * of it. missed[r] of row rows->row[r]: whether it is.
 */
static void find_missed(thi_space *space, const thi_block_rows *rows, const double *log_integral, bool *missed)
{
    enum { LOOKS = 8, TOGETHER = THI_POINTS / LOOKS };
    const thiele_likelihood *lik = space->lik;
    double guess[TOGETHER];
    for (int64_t first = 0; first < rows->count; first += TOGETHER) {
        int64_t count = thi_least(TOGETHER, rows->count - first);
        const int *row = rows->row + first;
        for (int64_t r = 0; r < count; r++) {
            guess[r] = rows->mu[row[r]];
            space->y[r] = rows->y[row[r]];
        }
        thi_likelihood_guesses(lik, count, space->y, guess);
        for (int64_t k = 0; k < count * LOOKS; k++) {
            double mu = rows->mu[row[k / LOOKS]];
            space->f[k] = mu + (guess[k / LOOKS] - mu) * (double)(k % LOOKS + 1) / LOOKS;
            space->y[k] = rows->y[row[k / LOOKS]];
        }
        lik->ops->log_density(lik, count * LOOKS, space->y, space->f, space->value);
        for (int64_t r = 0; r < count; r++) {
            missed[first + r] = false;
            for (int64_t k = r * LOOKS; k < (r + 1) * LOOKS; k++) {
                double z = (space->f[k] - rows->mu[row[r]]) / rows->sd[row[r]];
                missed[first + r] = missed[first + r] || space->value[k] - 0.5 * z * z > log_integral[row[r]] + 2.0;
            }
        }
    }
}

/* A sum that fewer points than this make up is not to be trusted. */
static const double LEAST_SEEN = 16;

/* Rows that few points made up, into space->pending; returns how many. */
static int64_t find_unseen(thi_space *space, const thi_block_rows *rows)
{
    int64_t count = 0;
    for (int64_t r = 0; r < rows->count && !space->coarse; r++) {
        int i = rows->row[r];
        if (space->result[2 * i + 1] * (double)space->scattered < LEAST_SEEN) {
            space->pending[count++] = i;
        }
    }
    return count;
}

/* Few latents have a peak to go to, many have more points. */
static thiele_status by_draws(thi_space *space, thiele_context *ctx, const thi_block_rows *rows, double *out)
{
    int64_t P = space->P, Q = space->Q;
    thi_integrand in = exponentials(space);
    thiele_status status = thi_average(space, ctx, &in, rows, space->result);
    thi_block_rows again = *rows;
    again.row = space->pending;
    again.count = status == THIELE_OK && Q > MOST_PEAKED ? find_unseen(space, rows) : 0;
    if (again.count > 0) {
        status = thi_average_again(space, ctx, &in, &again, space->result);
    }
    for (int64_t r = 0; r < rows->count && status == THIELE_OK; r++) {
        int64_t i = rows->row[r];
        thi_block_rows one = {1, rows->row + r, rows->y, rows->mu, rows->sd, NULL};
        out[i] = log_sum(space->result + 2 * i);
        if (Q <= MOST_PEAKED && find_unseen(space, &one) > 0) {
            status = around_peak(space, ctx, rows->y + i * P, rows->mu + i * Q, rows->sd + i * Q, &out[i]);
        }
    }
    return status;
}

static thiele_status by_points(thi_space *space, thiele_context *ctx, const thi_block_rows *rows, double *out)
{
    int64_t P = space->P, Q = space->Q;
    if (space->scattered > 0) {
        return by_draws(space, ctx, rows, out);
    }
    thi_integrand in = exponentials(space);
    for (int64_t r = 0; r < rows->count; r++) {
        /* A row that goes straight to its peak is not summed here. */
        space->result[2 * rows->row[r]] = space->result[2 * rows->row[r] + 1] = 0.0;
    }
    thiele_status status = thi_climb(space, ctx, &in, rows, space->result, space->level);
    bool missed[THI_EXPECT_BLOCK] = {false};
    for (int64_t r = 0; r < rows->count && status == THIELE_OK; r++) {
        /* NaN where the density is at fault: no other points would mend it */
        out[rows->row[r]] = log_sum(space->result + 2 * (int64_t)rows->row[r]);
    }
    if (status == THIELE_OK && Q == 1 && P == 1 && space->lik->ops->guess != NULL) {
        find_missed(space, rows, out, missed);
    }
    for (int64_t r = 0; r < rows->count && status == THIELE_OK; r++) {
        int64_t i = rows->row[r];
        bool flat = true;
        for (int64_t q = 0; q < Q; q++) {
            flat = flat && rows->sd[i * Q + q] < DBL_MIN;
        }
        if (!isnan(space->result[2 * i + 1]) && !flat && (space->level[i] == THI_LEVELS || missed[r])) {
            status = around_peak(space, ctx, rows->y + i * P, rows->mu + i * Q, rows->sd + i * Q, &out[i]);
        }
    }
    return status;
}

thiele_status thi_log_predictive_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *y,
                                       const double *mu, const double *v, double *out)
{
    const thiele_likelihood *lik = expect->lik;
    thi_space *space = expect->space;
    thiele_status status = thi_space_spread(space, ctx, n, mu, v);
    if (status != THIELE_OK) {
        return status;
    }
    thi_block_rows rows = {thi_space_rows(space, n, y), space->row, y, mu, space->sd, NULL};
    if (lik->ops->log_predictive != NULL) {
        lik->ops->log_predictive(lik, n, y, mu, v, out);
    } else {
        for (int64_t i = 0; i < n; i++) {
            out[i] = 0.0; /* a row without outputs says nothing */
        }
        status = by_points(space, ctx, &rows, out);
    }
    for (int64_t r = 0; r < rows.count && status == THIELE_OK; r++) {
        int64_t i = rows.row[r];
        if (isnan(out[i])) {
            status =
                thi_fail(ctx, THIELE_ERROR_NUMERIC,
                         "likelihood '%s': the predictive density of y = %g at mean %g, variance %g is not a number",
                         thiele_likelihood_name(lik), y[i * space->P], mu[i * space->Q], v[i * space->Q]);
        }
    }
    return status;
}

typedef struct job {
    const double *y, *mu, *v;
    double *out;
} job;

static thiele_status run_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const void *arg)
{
    const job *j = arg;
    int64_t P = expect->lik->outputs, Q = expect->lik->latents;
    return thi_log_predictive_block(expect, ctx, n, j->y + row * P, j->mu + row * Q, j->v + row * Q, j->out + row);
}

thiele_status thiele_likelihood_log_predictive(const thiele_likelihood *likelihood, thiele_context *ctx, int64_t n,
                                               const double *y, const double *mu, const double *v, double *out)
{
    THI_NEED(ctx, likelihood && ctx && (n < 1 || (y && mu && v && out)));
    job j = {y, mu, v, out};
    return thi_expect_rows(likelihood, ctx, NULL, n, run_block, &j);
}
