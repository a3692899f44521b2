/*
 * Where the mass of a predictive density lies, when nothing is known but the density: places far and near are looked
 * at, the highest of them are climbed by zooming in, and from each peak the axis is scanned outwards in steps that
 * double, until the density, times the square that a variance needs, has dropped for good.
 */
#include <math.h>
#include <string.h>

#include "expect/predictive_distribution.h"

enum { PLACES = 256, ZOOM = 17, OFFSETS = 168, CHUNK = 12 };
/* Borders double their distance; of cells that need not be exact every third one is enough. */
enum { BY_DRAWS = 3 };
/* A drop of the log density that can't be seen in a sum. */
static const double DROP = 32;

static bool is_count(const thi_law *law)
{
    return law->support == THI_SUPPORT_COUNT;
}

static double whole(const thi_law *law, double x)
{
    return is_count(law) ? floor(x + 0.5) : x;
}

/* --- climbing ----------------------------------------------------------------------------------------------------- */

/* Places on the axis at all scales about 0, and where the usual links would take the means of the latents. */
static int first_places(const thi_law *law, double *place)
{
    int count = 0, Q = law->expect->lik->latents;
    int components = law->row.components < 4 ? law->row.components : 4;
    place[count++] = 0;
    for (int k = -2; k < 22; k++) {
        place[count++] = whole(law, exp2(k));
        place[count++] = -exp2(k);
    }
    for (int k = 0; k < components; k++) {
        for (int q = 0; q < Q && q < 8; q++) {
            double mu = law->row.mu[k * Q + q];
            bool plain = law->support == THI_SUPPORT_REAL || is_count(law);
            double other = plain ? exp(fmin(mu, 36)) : thi_from_support(law->support, mu);
            place[count++] = whole(law, mu);
            place[count++] = isfinite(other) ? whole(law, other) : 0;
        }
    }
    return thi_borders_sort(count, place, is_count(law) ? 0 : -1e15, 1e15);
}

/*
 * Zooms in on the highest of 17 places between low and high, peak->at being one of them, by a factor of 8 each time.
 * One that is still far below the others after three times will not reach them.
 */
static thiele_status climb(thi_law *law, double low, double high, thi_peak *peak)
{
    double flat = law->expect->space->scattered > 0 ? 0.1 : 1e-3;
    for (int round = 0; round < 16; round++) {
        double place[ZOOM], log_p[ZOOM];
        int best = ZOOM / 2;
        for (int k = 0; k < ZOOM; k++) {
            double share = (double)(k - ZOOM / 2) / (ZOOM / 2);
            place[k] = whole(law, peak->at + share * (share < 0 ? peak->at - low : high - peak->at));
        }
        thiele_status status = thi_law_densities(law, ZOOM, place, log_p);
        if (status != THIELE_OK) {
            return status;
        }
        for (int k = 0; k < ZOOM; k++) {
            best = log_p[k] > log_p[best] ? k : best;
        }
        *peak = (thi_peak){place[best], log_p[best], 0};
        int left = best > 0 ? best - 1 : 0, right = best < ZOOM - 1 ? best + 1 : best;
        low = place[left];
        high = place[right];
        peak->width = 0.5 * (high - low);
        law->floor = fmax(law->floor, peak->top - THI_LAW_FLOOR);
        if (log_p[best] - fmin(log_p[left], log_p[right]) < flat || (is_count(law) && high - low <= 2) ||
            (round >= 2 && peak->top < law->floor)) {
            break;
        }
    }
    return THIELE_OK;
}

/* The highest place below `last` that is no lower than its neighbours, or the first of several; -1: there is none. */
static int next_summit(int count, const double *log_p, int last)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        bool summit = (i == 0 || log_p[i] > log_p[i - 1]) && (i == count - 1 || log_p[i] >= log_p[i + 1]);
        bool below = last < 0 || log_p[i] < log_p[last] || (i > last && log_p[i] == log_p[last]);
        if (summit && below && log_p[i] > -INFINITY && (best < 0 || log_p[i] > log_p[best])) {
            best = i;
        }
    }
    return best;
}

/* From the means of the latents outwards, so that what is far below what was found need not be exact. */
static thiele_status look(thi_law *law, int count, const double *place, double *log_p)
{
    thiele_status status = THIELE_OK;
    int middle = 0;
    if (law->expect->space->scattered > 0) { /* none is more exact than the others */
        return thi_law_densities(law, count, place, log_p);
    }
    for (int i = 0; i < count; i++) {
        middle = fabs(place[i] - law->row.mu[0]) < fabs(place[middle] - law->row.mu[0]) ? i : middle;
    }
    for (int i = middle; i < count && status == THIELE_OK; i++) {
        status = thi_law_densities(law, 1, &place[i], &log_p[i]);
        law->floor = fmax(law->floor, log_p[i] - THI_LAW_FLOOR);
    }
    for (int i = middle - 1; i >= 0 && status == THIELE_OK; i--) {
        status = thi_law_densities(law, 1, &place[i], &log_p[i]);
        law->floor = fmax(law->floor, log_p[i] - THI_LAW_FLOOR);
    }
    return status;
}

static thiele_status find_peaks(thi_law *law, thi_peak *peak, int *peaks)
{
    double place[PLACES], log_p[PLACES];
    int count = first_places(law, place), best = -1;
    *peaks = 0;
    thiele_status status = look(law, count, place, log_p);
    for (int k = 0; k < THI_LAW_PEAKS && status == THIELE_OK; k++) {
        best = next_summit(count, log_p, best);
        if (best < 0) {
            break;
        }
        peak[k] = (thi_peak){place[best], log_p[best], 0};
        double step = fmax(1, fabs(place[best]));
        status = climb(law, best > 0 ? place[best - 1] : place[best] - step,
                       best < count - 1 ? place[best + 1] : place[best] + step, &peak[k]);
        *peaks = k + 1;
    }
    if (status == THIELE_OK && *peaks == 0) {
        return thi_fail(law->ctx, THIELE_ERROR_NUMERIC,
                        "likelihood '%s': no y with positive density was found: declare the values of y (support)",
                        thiele_likelihood_name(law->expect->lik));
    }
    return status;
}

/* --- from a peak outwards ----------------------------------------------------------------------------------------- */

/* One side of a peak: drop[j] of the log density at a distance of unit 2^j. */
typedef struct flank {
    double unit, sign;
    int count;       /* how many were looked at */
    int first, last; /* from the scale of the peak to where nothing is left */
    double drop[OFFSETS];
} flank;

static double place_of(const thi_peak *peak, const flank *f, int j)
{
    return peak->at + f->sign * f->unit * exp2(j);
}

/* How far the density times y^2, as it counts on a doubling scale, lies below its value at the scale of the peak. */
static double weighted_drop(const thi_law *law, const thi_peak *peak, const flank *f, int j)
{
    double centre = thi_to_support(law->support, peak->at);
    double here = fabs(thi_to_support(law->support, place_of(peak, f, j)) - centre);
    double scale = fabs(thi_to_support(law->support, place_of(peak, f, f->first)) - centre);
    double gain = law->moments && here > scale && scale > 0 ? 2 * log(here / scale) : 0;
    return f->drop[j] - gain - (j - f->first) * 0.693147180559945;
}

/* Sets first and last from what was looked at; false when the end is not yet in sight. */
static bool settle(const thi_law *law, const thi_peak *peak, flank *f)
{
    f->first = 0;
    while (f->first < f->count && !(f->drop[f->first] > 0.05)) {
        f->first++;
    }
    if (f->first == f->count) {
        return false;
    }
    f->last = f->count;
    while (f->last > f->first && weighted_drop(law, peak, f, f->last - 1) > DROP) {
        f->last--;
    }
    return f->count - f->last >= (f->count < OFFSETS ? 4 : 1);
}

static thiele_status scan(thi_law *law, const thi_peak *peak, flank *f)
{
    bool done = false;
    int most = is_count(law) ? 52 : OFFSETS;
    while (!done && f->count < most) {
        double place[CHUNK];
        int some = most - f->count < CHUNK ? most - f->count : CHUNK;
        for (int j = 0; j < some; j++) {
            place[j] = place_of(peak, f, f->count + j);
        }
        thiele_status status = thi_law_densities(law, some, place, f->drop + f->count);
        if (status != THIELE_OK) {
            return status;
        }
        for (int j = f->count; j < f->count + some; j++) {
            f->drop[j] = peak->top - f->drop[j];
        }
        f->count += some;
        done = settle(law, peak, f);
    }
    if (!done) {
        /* As a power of the distance, from the last two places. */
        double fall = (f->drop[f->count - 1] - f->drop[f->count - 2]) / 0.693147180559945;
        law->tail = fmax(law->tail, -fall);
        f->last = f->count - 1;
        f->first = f->first < f->count ? f->first : 0;
    }
    return THIELE_OK;
}

static thiele_status add_borders(thi_law *law, const thi_peak *peak, int *borders)
{
    bool spike = true;
    int stride = law->expect->space->scattered > 0 && !is_count(law) ? BY_DRAWS : 1;
    law->border[(*borders)++] = peak->at;
    for (int side = 0; side < 2; side++) {
        flank f = {.unit = is_count(law) ? 1 : fmax(peak->width, 0x1p-44 * fmax(1, fabs(peak->at))),
                   .sign = side == 0 ? -1 : 1};
        thiele_status status = scan(law, peak, &f);
        if (status != THIELE_OK) {
            return status;
        }
        spike = spike && f.drop[0] > DROP;
        int end = f.last < f.count ? f.last : f.count - 1;
        for (int j = f.first > 0 ? f.first - 1 : 0; j <= end; j = j < end && j + stride > end ? end : j + stride) {
            law->border[(*borders)++] = place_of(peak, &f, j);
        }
    }
    if (spike && !is_count(law)) {
        return thi_fail(law->ctx, THIELE_ERROR_NUMERIC,
                        "likelihood '%s': y = %g is possible but nothing around it is: declare the values of y "
                        "(support)",
                        thiele_likelihood_name(law->expect->lik), thi_to_support(law->support, peak->at));
    }
    return THIELE_OK;
}

/* From 0 to beyond the last, because a cell ends before its upper border; a few counts are cut into pieces of 16. */
static int count_borders(thi_law *law, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++) {
        law->border[i] = fmax(0, law->border[i]);
        most = fmax(most, law->border[i]);
    }
    law->border[count++] = 0;
    law->border[count++] = most + 1;
    count = thi_borders_sort(count, law->border, 0, 0x1p53);
    int cuts = count;
    for (int i = 0; i + 1 < count; i++) {
        double low = law->border[i], high = law->border[i + 1];
        for (double at = low + 16; high - low < 128 && at < high && cuts < THI_LAW_BORDERS; at += 16) {
            law->border[cuts++] = at;
        }
    }
    return thi_borders_sort(cuts, law->border, 0, 0x1p53);
}

thiele_status thi_law_borders(thi_law *law, int *borders)
{
    thi_peak peak[THI_LAW_PEAKS];
    int peaks = 0, count = 0;
    law->floor = -INFINITY;
    thiele_status status = find_peaks(law, peak, &peaks);
    law->tail = -INFINITY;
    law->peak = peak[0];
    for (int k = 1; k < peaks && status == THIELE_OK; k++) {
        law->peak = peak[k].top > law->peak.top ? peak[k] : law->peak;
    }
    for (int k = 0; k < peaks && status == THIELE_OK; k++) {
        if (peak[k].top > law->peak.top - DROP) {
            status = add_borders(law, &peak[k], &count);
        }
    }
    if (status != THIELE_OK) {
        return status;
    }
    *borders = is_count(law) ? count_borders(law, count) : thi_borders_sort(count, law->border, -1e300, 1e300);
    return status;
}
