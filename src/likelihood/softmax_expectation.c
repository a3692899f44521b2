/*
 * Averages of a softmax under f_c ~ N(mu_c, v_c), independent, for any number of classes. With S = sum_c exp(f_c) and a
 * standard exponential variate T, log(T/S) has the survival function G(s) = prod_c phi_c(s) and the density G R,
 *   phi_c(s) = E[exp(-exp(f_c + s))],  r_c = -phi_c'/phi_c,  R = sum_c r_c,
 * from which, E[log T] being minus Euler's constant,
 *   E[log S] = -0.577... - int s G R ds,  E[p_c] = int G r_c ds,  E[p_c (1 - p_c)] = int G r_c (R - r_c) ds.
 * All terms are positive: small probabilities keep their digits. The trapezoid rule in s of step h is off by the
 * factors |Gamma(1 + i w)| and |Gamma(2 + i w)|, w = 2 pi/h, relative to E[p_c] and E[p_c (1 - p_c)] whatever mu and v
 * are: 3e-12 and 6e-11 for h = 1/3. Some 120 places a row, each with C averages phi_c over a normal variable, the costs
 * of which are in the functions that compute them.
 */
#include "likelihood/softmax_expectation.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "likelihood/rows.h"
#include "linalg/vector.h"

/* Places s a row; lattice places of a class within the window, and of a normal density; values r_c kept. */
enum { PLACES = 1024, WINDOW = 640, WEIGHTS = 6784, KEPT = 8192, RULE = 5 };

static const double STEP = 1.0 / 3.0;
static const double EULER = 0.577215664901532860607;
/* exp(-exp(x)) is 1 to all digits left of the window, and zero right of it. */
static const double WINDOW_LEFT = -40.0, WINDOW_RIGHT = 4.5;
/* Standard deviations up to which normal distributions are followed: beyond are 6e-14; more for small probabilities. */
static const double USUAL = 7.5, FAR = 14.0;
/* Rules for phi: five Gauss-Hermite nodes below NARROW, a lattice up to BROAD, cumulants of log T above. */
static const double NARROW = 0.01, BROAD = 1600.0;
/* Beyond this standard deviation f is scaled down: the softmax of such an f differs from a maximum by 1/sd only. */
static const double MOST_SPREAD = 1e4;

/* One row. Places are s_k = right + at_k h, with at_k <= 0 whole numbers. */
typedef struct row {
    int C, count;
    const double *mu, *v; /* C each */
    double top, scale;    /* f is used as (f - top)/scale */
    int raised;           /* the class whose mean is raised by lift; -1: none */
    double lift;
    double deviations;
    double right;
    int64_t lowest; /* of at */
    int64_t at[PLACES];
    double weight[PLACES], e[PLACES]; /* e: exp(s_k - right) */
    double G[PLACES], most[PLACES], rest[PLACES];
    double kept[KEPT];
} row;

/* phi and -phi' of a class at the places of a row. */
typedef struct survival {
    double value[PLACES], slope[PLACES];
} survival;

static double mean_of(const row *r, int c)
{
    return (r->mu[c] + (c == r->raised ? r->lift : 0.0) - r->top) / r->scale;
}

static double variance_of(const row *r, int c)
{
    return r->v[c] / (r->scale * r->scale);
}

/* --- places ------------------------------------------------------------------------------------------------------- */

/*
 * How far left of -mu a class still has phi < 1 to the digits that count: 1 - phi is at most exp(s + mu + v/2), and
 * like the tail of a normal distribution where v is large.
 */
static double reach_left(double v, double deviations)
{
    double decay = 0.5 * deviations * deviations;
    return v < 2.0 * decay ? decay + 0.5 * v : deviations * sqrt(v);
}

/*
 * Steps of h, 2h, 4h, ... further and further left of the right end. A class whose phi changes at a distance d from
 * where some phi has ended for good has a standard deviation of at least (d - 4)/7.5, and steps of 0.8 of those are
 * fine enough. The levels are joined by windows of the shape of an error function.
 */
enum { JOINT = 50, BLEND = 20, SINGLE = 140 }; /* in steps of the finer one; no levels up to SINGLE steps */

/* The share that level and those after it have at a distance d. */
static double joint(double d, int level)
{
    double unit = ldexp(1.0, level - 1), x = (d / unit - JOINT) / 3.6;
    return level == 0 ? 1.0 : x > 5.5 ? 1.0 : x < -5.5 ? 0.0 : 0.5 * erfc(-x);
}

/* reach: in steps, each of `stride` times h. 56 places a level, and no more than 16 levels: FAR, MOST_SPREAD. */
static void add_places(row *r, int64_t reach, int64_t stride)
{
    int64_t step = 1;
    bool last = reach <= SINGLE;
    r->count = 0;
    r->lowest = -reach * stride;
    for (int level = 0;; level++, step *= 2) {
        last = last || (JOINT - BLEND) * step > reach;
        int64_t stop = last ? reach : (JOINT + BLEND) * step;
        for (int64_t d = level == 0 ? 0 : (JOINT - BLEND) * (step / 2); d <= stop && d <= reach; d += step) {
            double share = joint((double)d, level) - (last ? 0.0 : joint((double)d, level + 1));
            r->at[r->count] = -d * stride;
            r->e[r->count] = (double)r->at[r->count] * STEP;
            r->weight[r->count++] = share * (double)(step * stride) * STEP;
        }
        if (last) {
            break;
        }
    }
    thi_vector()->exp(r->count, r->e, r->e);
}

/*
 * How many h a step may be. All f_c have a normal variable of variance b = 1/sum(1/v_c) in common, as f_c has v_c >= b;
 * p does not depend on it, and it multiplies the error by exp(-w^2 b/2): w solves pi w/2 + w^2 b/2 = 27.
 */
static int64_t stride(double b)
{
    static const double half_pi = 1.57079632679489661923, digits = 27.0;
    double w = 2.0 * digits / (half_pi + sqrt(half_pi * half_pi + 2.0 * digits * b));
    return (int64_t)(4.0 * half_pi / (w * STEP));
}

/* From where one phi is zero to where all of them are one. */
static void set_places(row *r)
{
    double right = INFINITY, left = INFINITY, precision = 0.0;
    for (int c = 0; c < r->C; c++) {
        double m = mean_of(r, c), v = variance_of(r, c);
        right = fmin(right, -m + 3.5 + r->deviations * sqrt(v));
        left = fmin(left, -m - reach_left(v, r->deviations));
        precision += 1.0 / fmax(v, DBL_MIN);
    }
    r->right = right;
    int64_t wide = stride(1.0 / precision);
    add_places(r, (int64_t)ceil((right - left + log(r->C)) / (STEP * (double)wide)), wide);
}

/* --- phi ---------------------------------------------------------------------------------------------------------- */

/* Five nodes: an error of v^5/30240 times the tenth derivative of exp(-exp(x)), 3e-11 at v = 0.01. */
static void by_nodes(const row *r, double m, double v, survival *phi)
{
    double inner = sqrt(5.0 - sqrt(10.0)), outer = sqrt(5.0 + sqrt(10.0));
    const double z[RULE] = {-outer, -inner, 0.0, inner, outer};
    const double side = (7.0 - 2.0 * sqrt(10.0)) / 60.0, near = (7.0 + 2.0 * sqrt(10.0)) / 60.0;
    const double w[RULE] = {side, near, 8.0 / 15.0, near, side};
    double x[PLACES], density[PLACES];
    memset(phi->value, 0, (size_t)r->count * sizeof *phi->value);
    memset(phi->slope, 0, (size_t)r->count * sizeof *phi->slope);
    for (int j = 0; j < RULE; j++) {
        double factor = exp(m + r->right + sqrt(v) * z[j]);
        for (int k = 0; k < r->count; k++) {
            x[k] = -factor * r->e[k];
        }
        thi_vector()->exp(r->count, x, density);
        for (int k = 0; k < r->count; k++) {
            phi->value[k] += w[j] * density[k];
            phi->slope[k] -= w[j] * x[k] * density[k];
        }
    }
}

/*
 * A sum over the lattice x_j = m + right + j d, d = h/p, on which all places of the row lie (j = p at_k): the normal
 * density is a table w of j' - j alone, and exp(-exp(x)) is one of j. The error is 2 exp(-2 pi^2 v/d^2), 3e-12 at
 * d = 0.85 sd, or that of steps of at most h where the density is broader. Left of the window the sums of w and of
 * w exp(x) are sums of tables: below[i] = sum of w up to i, tilted[i] the same of w_i' exp((i' - i) d).
 */
typedef struct lattice {
    int64_t reach; /* w_i, i = -reach .. reach */
    int64_t p, first, last;
    double d, left; /* x of the place before the window */
    double w[WEIGHTS + 1], below[WEIGHTS + 1], tilted[WEIGHTS + 1];
    double value[WINDOW], slope[WINDOW]; /* exp(-exp(x)) and exp(x - exp(x)), j = first .. last */
} lattice;

static void set_weights(lattice *l, int64_t reach, double v)
{
    int64_t n = 2 * reach + 1;
    l->reach = reach;
    double sum = 0.0, decay = exp(-l->d), tilted = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(i - l->reach) * l->d;
        l->w[i] = -0.5 * x * x / v;
    }
    thi_vector()->exp(n, l->w, l->w);
    for (int64_t i = 0; i < n; i++) {
        sum += l->w[i];
    }
    double below = 0.0;
    for (int64_t i = 0; i < n; i++) {
        l->w[i] /= sum;
        below += l->w[i];
        tilted = tilted * decay + l->w[i];
        l->below[i] = below;
        l->tilted[i] = tilted;
    }
}

static void set_window(lattice *l, const row *r, double m)
{
    double origin = m + r->right, x[WINDOW];
    int64_t lowest = l->p * r->lowest - l->reach;
    double first = fmax(ceil((WINDOW_LEFT - origin) / l->d), (double)lowest);
    double last = fmin(floor((WINDOW_RIGHT - origin) / l->d), (double)l->reach);
    l->first = (int64_t)fmin(first, (double)l->reach + 1.0);
    l->last = (int64_t)last;
    l->left = origin + (double)(l->first - 1) * l->d;
    int64_t n = l->last - l->first + 1;
    for (int64_t j = 0; j < n; j++) {
        x[j] = origin + (double)(l->first + j) * l->d;
    }
    thi_vector()->exp(n, x, x);
    for (int64_t j = 0; j < n; j++) {
        l->value[j] = -x[j];
    }
    thi_vector()->exp(n, l->value, l->value);
    for (int64_t j = 0; j < n; j++) {
        l->slope[j] = x[j] * l->value[j];
    }
}

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Sums of w value and w slope, eight of each at a time. */
static void window_sums(int64_t n, const double *w, const double *value, const double *slope, double *sums)
{
    pair a[4] = {{0}}, b[4] = {{0}};
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {
        for (int i = 0; i < 4; i++) {
            pair at = *(const pair *)(w + j + 2 * i);
            a[i] += at * *(const pair *)(value + j + 2 * i);
            b[i] += at * *(const pair *)(slope + j + 2 * i);
        }
    }
    pair s = (a[0] + a[1]) + (a[2] + a[3]), t = (b[0] + b[1]) + (b[2] + b[3]);
    sums[0] = s[0] + s[1];
    sums[1] = t[0] + t[1];
    for (; j < n; j++) {
        sums[0] += w[j] * value[j];
        sums[1] += w[j] * slope[j];
    }
}

static void by_lattice(const row *r, double m, double v, survival *phi)
{
    lattice l;
    double sd = sqrt(v), tail = r->deviations * sd;
    l.p = (int64_t)ceil(STEP / fmin(STEP, 0.85 * sd));
    l.d = STEP / (double)l.p;
    set_weights(&l, (int64_t)ceil((tail + fmin(v, tail)) / l.d), v); /* at most 2 FAR sqrt(BROAD)/h = 3360 places */
    set_window(&l, r, m);
    /* The root: of itself it could overflow, and not with e. */
    double far = exp(0.5 * (m + r->right + (double)l.reach * l.d)), near = exp(l.left);
    for (int k = 0; k < r->count; k++) {
        int64_t j = l.p * r->at[k], before = l.first - 1 - j + l.reach;
        int64_t from = l.first > j - l.reach ? l.first : j - l.reach;
        int64_t to = l.last < j + l.reach ? l.last : j + l.reach;
        double sums[2] = {0.0, 0.0};
        if (from <= to) {
            window_sums(to - from + 1, l.w + (from - j + l.reach), l.value + (from - l.first),
                        l.slope + (from - l.first), sums);
        }
        if (before > 2 * l.reach) {
            sums[0] += 1.0;
            sums[1] += l.tilted[2 * l.reach] * far * (far * r->e[k]);
        } else if (before >= 0) {
            sums[0] += l.below[before];
            sums[1] += near * l.tilted[before];
        }
        phi->value[k] = sums[0];
        phi->slope[k] = sums[1];
    }
}

/*
 * P(f + s < log T) by the normal law with the mean and variance of f - log T, and the corrections by its third to fifth
 * cumulant (Edgeworth): the next are of order v^-3.
 */
static void by_cumulants(const row *r, double m, double v, survival *phi)
{
    double variance = v + 1.64493406684822643647, sd = sqrt(variance);
    const double third = -2.40411380631918857080 / (6.0 * variance * sd);
    const double fourth = 6.49393940226682914910 / (24.0 * variance * variance);
    const double fifth = -24.8862661234408782 / (120.0 * variance * variance * sd);
    for (int k = 0; k < r->count; k++) {
        double x = fmax(-40.0, fmin((m + EULER + r->right + (double)r->at[k] * STEP) / sd, 40.0)), xx = x * x;
        double density = 0.398942280401432677940 * exp(-0.5 * xx);
        double he3 = x * (xx - 3.0), he4 = xx * (xx - 6.0) + 3.0, he5 = x * (xx * (xx - 10.0) + 15.0);
        double tail = third * (xx - 1.0) + fourth * he3 + fifth * he4;
        phi->value[k] = fmax(0.0, 0.5 * erfc(x * 0.707106781186547524401) + density * tail);
        phi->slope[k] = fmax(0.0, density / sd * (1.0 + third * he3 + fourth * he4 + fifth * he5));
    }
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

/* r_c and phi_c at the places. Where phi has all but vanished, so has the integrand. */
static void hazard(const row *r, int c, double *rate, double *value)
{
    survival phi;
    double m = mean_of(r, c), v = variance_of(r, c);
    if (v < NARROW) {
        by_nodes(r, m, v, &phi);
    } else if (v < BROAD) {
        by_lattice(r, m, v, &phi);
    } else {
        by_cumulants(r, m, v, &phi);
    }
    for (int k = 0; k < r->count; k++) {
        bool gone = phi.value[k] < 1e-290;
        rate[k] = gone ? 0.0 : phi.slope[k] / phi.value[k];
        value[k] = gone ? 0.0 : phi.value[k];
    }
}

static double *kept(row *r, int c)
{
    return (c + 1) * r->count <= KEPT ? r->kept + c * r->count : NULL;
}

/* G, the largest of the r_c and the sum of the others. */
static void gather(row *r)
{
    double own[PLACES], value[PLACES];
    for (int k = 0; k < r->count; k++) {
        r->G[k] = 1.0;
        r->most[k] = r->rest[k] = 0.0;
    }
    for (int c = 0; c < r->C; c++) {
        double *rate = kept(r, c);
        if (rate == NULL) {
            rate = own;
        }
        hazard(r, c, rate, value);
        for (int k = 0; k < r->count; k++) {
            r->G[k] *= value[k];
            bool more = rate[k] > r->most[k];
            r->rest[k] += more ? r->most[k] : rate[k];
            r->most[k] = more ? rate[k] : r->most[k];
        }
    }
}

static void start(row *r, const thiele_likelihood *lik, int64_t i, const double *mu, const double *v)
{
    r->C = lik->classes;
    r->mu = mu + i * r->C;
    r->v = v + i * r->C;
    r->raised = -1;
    r->lift = 0.0;
}

static void prepare(row *r, double deviations)
{
    double spread = 0.0;
    r->top = -INFINITY;
    for (int c = 0; c < r->C; c++) {
        r->top = fmax(r->top, r->mu[c]);
        spread = fmax(spread, sqrt(r->v[c]));
    }
    r->scale = fmax(1.0, spread / MOST_SPREAD);
    r->deviations = deviations;
    set_places(r);
    gather(r);
}

/* E[log S] */
static double log_sum(const row *r)
{
    double mass = 0.0, sum = 0.0;
    for (int k = 0; k < r->count; k++) {
        double density = r->weight[k] * r->G[k] * (r->most[k] + r->rest[k]);
        mass += density;
        sum += density * (double)r->at[k];
    }
    return r->top - r->scale * (EULER + r->right + STEP * sum / mass);
}

/* E[p_c] and E[p_c (1 - p_c)] */
static double class_moments(row *r, int c, double *spread)
{
    double own[PLACES], value[PLACES], p = 0.0, q = 0.0;
    const double *rate = kept(r, c);
    if (rate == NULL) {
        hazard(r, c, own, value);
        rate = own;
    }
    for (int k = 0; k < r->count; k++) {
        double density = r->weight[k] * r->G[k] * rate[k];
        double others = rate[k] == r->most[k] ? r->rest[k] : r->most[k] - rate[k] + r->rest[k];
        p += density;
        q += density * others;
    }
    *spread = q;
    return p;
}

/* -log p >= 1 - p: where p is nearly 1, rounding must not take E above that. */
static double expect_row(row *r, int y, double *g, double *h)
{
    double others = 0.0;
    prepare(r, USUAL);
    for (int c = 0; c < r->C; c++) {
        double spread, p = class_moments(r, c, &spread);
        g[c] = -p;
        h[c] = -0.5 * spread / r->scale;
        others += c == y ? 0.0 : p;
    }
    g[y] = others;
    return fmin(r->mu[y] - log_sum(r), -others);
}

void thi_softmax_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                             const double *v, double *E, double *g, double *h, double *dphi)
{
    (void)dphi;
    int64_t C = lik->classes;
    row r;
    for (int64_t i = 0; i < n; i++) {
        if (thi_is_class(lik->classes, y[i])) {
            start(&r, lik, i, mu, v);
            E[i] = expect_row(&r, (int)y[i], g + i * C, h + i * C);
            continue;
        }
        E[i] = isnan(y[i]) ? 0.0 : -INFINITY;
        memset(g + i * C, 0, (size_t)C * sizeof *g);
        memset(h + i * C, 0, (size_t)C * sizeof *h);
    }
}

/* --- what is predicted -------------------------------------------------------------------------------------------- */

void thi_softmax_probabilities(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v,
                               double *probability)
{
    int C = lik->classes;
    row r;
    for (int64_t i = 0; i < n; i++) {
        double *p = probability + i * C, spread, sum = 0.0;
        start(&r, lik, i, mu, v);
        prepare(&r, USUAL);
        for (int c = 0; c < C; c++) {
            p[c] = class_moments(&r, c, &spread);
            sum += p[c];
        }
        for (int c = 0; c < C; c++) {
            p[c] /= sum;
        }
    }
}

/*
 * Where f_y is so low that it adds nothing to S, P(y) is proportional to exp(mu_y): how much mu_y may be raised within
 * that range, so that P(y) does not underflow.
 */
static double headroom(const row *r, int y)
{
    double lowest = -INFINITY;
    for (int c = 0; c < r->C; c++) {
        lowest = c == y ? lowest : fmax(lowest, r->mu[c] - r->v[c] - FAR * sqrt(r->v[c]));
    }
    return lowest - 40.0 - (r->mu[y] + r->v[y] + FAR * sqrt(r->v[y]));
}

/* Far tails are followed further out, and bounded from below by Jensen's inequality where they underflow. */
static double log_probability(row *r, int y)
{
    double spread;
    prepare(r, USUAL);
    double p = class_moments(r, y, &spread);
    if (p > 1e-8) {
        return fmin(log(p), 0.0);
    }
    double least = r->mu[y] - log_sum(r);
    r->raised = y;
    r->lift = fmax(0.0, headroom(r, y));
    prepare(r, FAR);
    return fmax(log(class_moments(r, y, &spread)) - r->lift, least);
}

void thi_softmax_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                const double *v, double *out)
{
    row r;
    for (int64_t i = 0; i < n; i++) {
        out[i] = isnan(y[i]) ? 0.0 : -INFINITY;
        if (thi_is_class(lik->classes, y[i])) {
            start(&r, lik, i, mu, v);
            out[i] = log_probability(&r, (int)y[i]);
        }
    }
}
