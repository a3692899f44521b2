/* Laws of scaled residuals and temperatures (calibration.h has the mathematics). O(n log n) to make, O(1) to use. */
#include "model/calibration.h"

#include <math.h>
#include <stdlib.h>

#include "expect/crps.h"
#include "expect/predictive_distribution.h"
#include "likelihood/normal_quantile.h"
#include "likelihood/special.h"

/* Levels of the central intervals that are exact; the usual ones are among them. */
static const double levels[] = {0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998};
enum { LEVELS = sizeof levels / sizeof *levels };
_Static_assert((int)LEVELS <= (int)THI_KNOTS_MAX, "there is room for all levels");
/* Levels above this need some residuals beyond them: the largest of all says little. */
static const double USUAL = 0.99;
enum { BEYOND = 3 };
/* Intervals never shrink by more, and T never rises more slowly than this share of the ray through the last knot. */
static const double LEAST = 0.01, FLAT = 0.05;

/* --- the law of residuals --------------------------------------------------------------------------------------------
 */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The slope of T in segment k, from knot k - 1 (or 0) to knot k; k = count: beyond the last one. */
static double slope(const thi_residual_law *law, int k)
{
    int last = law->count - 1;
    if (k > last) {
        return fmax(law->t[last] / law->z[last], slope(law, last));
    }
    return k == 0 ? law->t[0] / law->z[0] : (law->t[k] - law->t[k - 1]) / (law->z[k] - law->z[k - 1]);
}

static double start_z(const thi_residual_law *law, int k)
{
    return k == 0 ? 0.0 : law->z[k - 1];
}

static double start_t(const thi_residual_law *law, int k)
{
    return k == 0 ? 0.0 : law->t[k - 1];
}

/* Integrals over z > a of a part T = c + b z of the law, with the weights T N(z), N(z) and (2 Phi(z) - 1) N(z). */
static double square_above(double c, double b, double a)
{
    double tail = thi_normal_cdf(-a), density = thi_normal_density(a);
    return (c * c + b * b) * tail + (density > 0.0 ? (2.0 * c * b + b * b * a) * density : 0.0);
}

static double mean_above(double c, double b, double a)
{
    return c * thi_normal_cdf(-a) + b * thi_normal_density(a);
}

static double distance_above(double c, double b, double a)
{
    static const double INV_SQRT_PI = 0.56418958354775628695, SQRT_2 = 1.41421356237309504880;
    double below = thi_normal_cdf(a), tail = thi_normal_cdf(-a);
    return c * below * tail + b * ((below - tail) * thi_normal_density(a) + INV_SQRT_PI * thi_normal_cdf(-SQRT_2 * a));
}

/* The integral of such a weight over z > from, part by part. */
static double integral(const thi_residual_law *law, double from, double (*above)(double c, double b, double a))
{
    double sum = 0.0;
    if (law->count == 0) {
        return above(0.0, 1.0, from);
    }
    for (int k = 0; k <= law->count; k++) {
        double b = slope(law, k), c = start_t(law, k) - b * start_z(law, k);
        double end = k < law->count ? fmax(law->z[k], from) : INFINITY;
        sum += above(c, b, fmax(start_z(law, k), from)) - above(c, b, end);
    }
    return sum;
}

bool thi_residual_law_finish(thi_residual_law *law)
{
    for (int k = 0; k < law->count; k++) {
        law->z[k] = law->level[k] > 0.0 && law->level[k] < 1.0 ? thi_normal_quantile(0.5 + 0.5 * law->level[k]) : NAN;
        bool higher = law->z[k] > start_z(law, k) && law->t[k] > start_t(law, k);
        if (!higher || !isfinite(law->z[k]) || !isfinite(law->t[k])) {
            return false;
        }
    }
    law->square = 2.0 * integral(law, 0.0, square_above);
    law->distance = 2.0 * integral(law, 0.0, distance_above);
    return isfinite(law->square);
}

void thi_sort(int64_t n, double *x)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
}

void thi_residual_law_make(thi_residual_law *law, int64_t n, const double *size)
{
    *law = (thi_residual_law){0};
    for (int l = 0; l < LEVELS; l++) {
        /* Rounding must not push a whole number over the next. */
        int64_t rank = (int64_t)ceil((double)(n + 1) * levels[l] * (1.0 - 1e-14));
        if (rank > n || (levels[l] > USUAL && n - rank < BEYOND)) {
            break;
        }
        int k = law->count++;
        double z = thi_normal_quantile(0.5 + 0.5 * levels[l]);
        double before = start_t(law, k), way = z - start_z(law, k);
        double least = k == 0 ? LEAST * z : before + FLAT * before / start_z(law, k) * way;
        law->level[k] = levels[l];
        law->z[k] = z;
        law->t[k] = fmax(size[rank - 1], least);
    }
    thi_residual_law_finish(law);
}

double thi_residual_quantile(const thi_residual_law *law, double z)
{
    double away = fabs(z);
    int k = 0;
    if (law->count == 0) {
        return z;
    }
    while (k < law->count && away > law->z[k]) {
        k++;
    }
    return copysign(start_t(law, k) + slope(law, k) * (away - start_z(law, k)), z);
}

/* The segment of T that holds |t|. */
static int segment_of(const thi_residual_law *law, double t)
{
    int k = 0;
    while (k < law->count && fabs(t) > law->t[k]) {
        k++;
    }
    return k;
}

double thi_residual_score(const thi_residual_law *law, double t)
{
    if (law->count == 0) {
        return t;
    }
    int k = segment_of(law, t);
    return copysign(start_z(law, k) + (fabs(t) - start_t(law, k)) / slope(law, k), t);
}

/* E|T - t| - E|T - T'|/2 (Gneiting and Raftery 2007, eq. 21). */
double thi_residual_crps(const thi_residual_law *law, double t)
{
    double z = fabs(thi_residual_score(law, t));
    return fabs(t) * (2.0 * thi_normal_cdf(z) - 1.0) + 2.0 * integral(law, z, mean_above) - law->distance;
}

/* --- one prediction --------------------------------------------------------------------------------------------------
 */

/* Beyond this many spreads a residual is as bad as any. */
static const double FARTHEST = 1e12;

void thi_spread_finish(thi_spread *s, thi_support support)
{
    s->centre = thi_from_support(support, s->centre);
    s->below = s->centre - thi_from_support(support, s->below);
    s->above = thi_from_support(support, s->above) - s->centre;
}

double thi_spread_residual(const thi_spread *s, thi_support support, double y)
{
    double away = thi_from_support(support, y) - s->centre, spread = away < 0.0 ? s->below : s->above;
    double t = away / spread;
    return isnan(t) ? (away == 0.0 ? 0.0 : FARTHEST) : fmax(-FARTHEST, fmin(FARTHEST, t));
}

double thi_calibrated_value(const thi_residual_law *law, const thi_spread *s, thi_support support, double z)
{
    double t = thi_residual_quantile(law, z);
    return thi_to_support(support, s->centre + (t < 0.0 ? s->below : s->above) * t);
}

/* log |dx/dy| of the axis x. */
static double log_stretch(thi_support support, double y)
{
    return support == THI_SUPPORT_POSITIVE ? -log(y) : support == THI_SUPPORT_UNIT ? -log(y) - log1p(-y) : 0.0;
}

double thi_calibrated_log_density(const thi_residual_law *law, const thi_spread *s, thi_support support, double y)
{
    static const double LOG_SQRT_TWO_PI = 0.91893853320467274178;
    double t = thi_spread_residual(s, support, y), z = thi_residual_score(law, t);
    double steep = law->count == 0 ? 1.0 : slope(law, segment_of(law, t));
    return -0.5 * z * z - LOG_SQRT_TWO_PI - log(steep) - log(t < 0.0 ? s->below : s->above) + log_stretch(support, y);
}

/*
 * On the real line that of the law itself; elsewhere, where its tails would be those of an exponential of it, the one
 * before, scaled as the interval of one standard deviation is.
 */
double thi_calibrated_variance(const thi_residual_law *law, const thi_spread *s, thi_support support, double variance)
{
    double one = thi_residual_quantile(law, 1.0);
    return support == THI_SUPPORT_REAL ? 0.5 * law->square * (s->below * s->below + s->above * s->above)
                                       : one * one * variance;
}

/* --- labels ----------------------------------------------------------------------------------------------------------
 */

/* Probabilities of zero count as this. */
static const double SMALLEST = 1e-300;

void thi_temper(double temperature, int64_t n, int classes, double *probability)
{
    for (int64_t i = 0; i < n; i++) {
        double *p = probability + i * classes, most = 0.0, sum = 0.0;
        for (int c = 0; c < classes; c++) {
            most = fmax(most, p[c]);
        }
        for (int c = 0; c < classes; c++) {
            p[c] = pow(p[c] / most, 1.0 / temperature);
            sum += p[c];
        }
        for (int c = 0; c < classes; c++) {
            p[c] /= sum;
        }
    }
}

/* The loss of all rows at a power of the probabilities, with that of the prior, a standard normal of its log. */
static double loss_at(double log_power, int64_t n, int classes, const int *label, const double *probability)
{
    double power = exp(log_power), loss = 0.5 * log_power * log_power;
    for (int64_t i = 0; i < n; i++) {
        const double *p = probability + i * classes;
        int best = 0;
        double others = 0.0;
        for (int c = 1; c < classes; c++) {
            best = p[c] > p[best] ? c : best;
        }
        double most = fmax(p[best], SMALLEST);
        for (int c = 0; c < classes; c++) {
            others += c == best ? 0.0 : pow(fmax(p[c], SMALLEST) / most, power);
        }
        loss += log1p(others) - power * log(fmax(p[label[i]], SMALLEST) / most);
    }
    return loss;
}

/* Golden section: the loss of the labels is convex in the power, so that it has one valley in the log of it. */
double thi_find_temperature(int64_t n, int classes, const int *label, const double *probability)
{
    static const double GOLDEN = 0.61803398874989484820, REACH = 2.302585092994046; /* log 10 */
    enum { STEPS = 40 };
    double low = -REACH, high = REACH;
    double a = high - GOLDEN * (high - low), b = low + GOLDEN * (high - low);
    double at_a = loss_at(a, n, classes, label, probability), at_b = loss_at(b, n, classes, label, probability);
    for (int step = 0; step < STEPS; step++) {
        if (at_a < at_b) {
            high = b;
            b = a;
            at_b = at_a;
            a = high - GOLDEN * (high - low);
            at_a = loss_at(a, n, classes, label, probability);
        } else {
            low = a;
            a = b;
            at_a = at_b;
            b = low + GOLDEN * (high - low);
            at_b = loss_at(b, n, classes, label, probability);
        }
    }
    return exp(-0.5 * (low + high));
}

/* --- CRPS ------------------------------------------------------------------------------------------------------------
 */

typedef struct calibrated_law {
    const thi_residual_law *law;
    const thi_spread *spread;
    thi_support support;
} calibrated_law;

static thiele_status calibrated_cdf(void *arg, thiele_context *ctx, double y, double *p)
{
    const calibrated_law *own = arg;
    (void)ctx;
    *p = thi_normal_cdf(thi_residual_score(own->law, thi_spread_residual(own->spread, own->support, y)));
    return THIELE_OK;
}

thiele_status thi_calibrated_crps(const thi_residual_law *law, const thi_spread *s, thi_support support,
                                  thiele_context *ctx, double y, double *crps)
{
    if (support == THI_SUPPORT_REAL && s->below == s->above && s->above > 0.0) {
        *crps = s->above * thi_residual_crps(law, (y - s->centre) / s->above);
        return THIELE_OK;
    }
    calibrated_law own = {law, s, support};
    const thi_known_law known = {calibrated_cdf,
                                 NULL,
                                 &own,
                                 support,
                                 thi_calibrated_value(law, s, support, -1.0),
                                 thi_calibrated_value(law, s, support, 0.0),
                                 thi_calibrated_value(law, s, support, 1.0)};
    return thi_crps(&known, ctx, y, crps);
}
