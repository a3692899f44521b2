/*
 * Cells of the axis of y, halved until the 16 nodes of a cell and those of its halves agree. A quantile is looked up in
 * its cell by the polynomial through the nodes: no density is evaluated again, except to cut a large cell of counts.
 */
#include "expect/predictive_distribution.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = THI_CELL_NODES, BATCH = THI_CELL_BATCH };
/* Fewer counts than this are taken one by one; the nodes of the rule are distinct from half of it on. */
enum { FEW_COUNTS = 128 };
/* So many cells are enough for any density; one that needs more is rough from rounding, and is asked for less. */
enum { EASY = 256 };

/* --- the polynomial of a cell --------------------------------------------------------------------------------------
 */

/* P_0 .. P_N of Legendre at t. */
static void polynomials(double t, double *P)
{
    P[0] = 1;
    P[1] = t;
    for (int i = 1; i < N; i++) {
        P[i + 1] = ((2 * i + 1) * t * P[i] - i * P[i - 1]) / (i + 1);
    }
}

/* What the values at the nodes of a cell are multiplied with: c_i = sum_j to[i][j] value_j. */
static void make_projection(double to[N][N])
{
    double P[N + 1];
    for (int j = 0; j < N; j++) {
        const double *node = thi_legendre[j < N / 2 ? j : N - 1 - j];
        polynomials(j < N / 2 ? -node[0] : node[0], P);
        for (int i = 0; i < N; i++) {
            to[i][j] = (i + 0.5) * node[1] * P[i];
        }
    }
}

/* The polynomial through the nodes of a cell: g = sum_i c_i P_i on (-1, 1). */
static void coefficients(const thi_law *law, const thi_cell *cell, double *c)
{
    for (int i = 0; i < N; i++) {
        c[i] = 0;
        for (int j = 0; j < N; j++) {
            c[i] += law->projection[i][j] * cell->value[j];
        }
    }
}

/* --- refinement --------------------------------------------------------------------------------------------------- */

/* What the sums of all cells together are good to; what they need be where draws have made the densities. */
static const double TOLERANCE = 1e-9, BY_DRAWS = 1e-3;

static double tolerance_of(const thi_law *law)
{
    return law->expect->space->scattered > 0 ? 0.1 * BY_DRAWS : TOLERANCE;
}

/*
 * Integrals over f are good to this much, by the number of latents, and a y just below 1 has lost digits of 1 - y: more
 * can't be asked of a cell.
 */
static double noise_of(const thi_law *law, const thi_cell *cell)
{
    static const double noise[] = {1e-8, 1e-7, 1e-5};
    int Q = law->expect->lik->latents;
    double lost = law->support == THI_SUPPORT_UNIT ? 4 * DBL_EPSILON * exp(fmin(cell->high, THI_UNIT_REACH)) : 0;
    bool draws = law->expect->space->scattered > 0;
    return (draws ? BY_DRAWS : noise[Q - 1]) + lost;
}

typedef struct refinement {
    thi_law *law;
    int waiting;
    double scale[3]; /* sums of |sum| over the first cells */
} refinement;

static bool agree(const refinement *r, const thi_cell *whole, const thi_cell *left, const thi_cell *right)
{
    double patience = pow(fmax(1, (double)r->law->cells / EASY), 8);
    double noise = noise_of(r->law, whole) * patience;
    bool same = true;
    for (int j = 0; j < (r->law->moments ? 3 : 1) && same; j++) {
        double difference = fabs(whole->sum[j] - left->sum[j] - right->sum[j]);
        same = difference <= noise * fabs(whole->sum[j]) + tolerance_of(r->law) * patience * r->scale[j] + DBL_MIN;
    }
    return same;
}

/*
 * Whether the terms of high degree say that a cell is resolved, as good as draws make it: those that moments shift to
 * the rule's own degree too. Halves, which would cost twice as many densities, need not be asked then.
 */
static bool is_smooth(const refinement *r, const thi_cell *cell)
{
    enum { SHIFTED = 4 };
    const thi_law *law = r->law;
    double c[N], tail = 0, half = 0.5 * (cell->high - cell->low), reach = 1;
    double centre = thi_to_support(law->support, law->peak.at);
    double far = fmax(fabs(thi_to_support(law->support, cell->low) - centre),
                      fabs(thi_to_support(law->support, cell->high) - centre));
    bool smooth = law->expect->space->scattered > 0 && law->support != THI_SUPPORT_COUNT;
    if (!smooth) {
        return false;
    }
    coefficients(law, cell, c);
    for (int i = N - SHIFTED; i < N; i++) {
        tail += fabs(c[i]);
    }
    for (int j = 0; j < (law->moments ? 3 : 1) && smooth; j++, reach *= far) {
        smooth = tail * half * reach <= BY_DRAWS * fabs(cell->sum[j]) + tolerance_of(law) * r->scale[j];
    }
    return smooth;
}

static void accept(thi_law *law, const thi_cell *cell)
{
    if (law->cells < THI_CELLS_MAX) {
        law->cell[law->cells++] = *cell;
    }
}

/* Less than FEW_COUNTS of them, each count by itself. */
static thiele_status accept_counts(thi_law *law, const thi_cell *cell)
{
    thi_cell piece[FEW_COUNTS / N];
    int count = 0;
    for (double low = cell->low; low < cell->high; low += N) {
        piece[count].low = low;
        piece[count++].high = fmin(low + N, cell->high);
    }
    thiele_status status = thi_law_evaluate(law, count, piece);
    for (int c = 0; c < count && status == THIELE_OK; c++) {
        accept(law, &piece[c]);
    }
    return status;
}

static double middle_of(const thi_law *law, const thi_cell *cell)
{
    double middle = 0.5 * (cell->low + cell->high);
    return law->support == THI_SUPPORT_COUNT ? floor(middle) : middle;
}

/* The cells on top of the stack give way to their halves, on the stack again or accepted. */
static thiele_status refine(refinement *r)
{
    thi_law *law = r->law;
    thi_cell half[BATCH];
    int count = r->waiting < BATCH / 2 ? r->waiting : BATCH / 2;
    thi_cell whole[BATCH / 2];
    memcpy(whole, law->stack + r->waiting - count, (size_t)count * sizeof *whole);
    for (int c = 0; c < count; c++) {
        half[2 * c] = half[2 * c + 1] = whole[c];
        half[2 * c].high = half[2 * c + 1].low = middle_of(law, &whole[c]);
    }
    thiele_status status = thi_law_evaluate(law, 2 * count, half);
    r->waiting -= count;
    for (int c = 0; c < count && status == THIELE_OK; c++) {
        double reach = fmax(fabs(whole[c].low), fabs(whole[c].high));
        bool thin = whole[c].high - whole[c].low <= 1e-13 * fmax(1, reach);
        if (law->cells + r->waiting + count > THI_CELLS_MAX - 2 * BATCH) {
            accept(law, &whole[c]); /* no room for more */
            continue;
        }
        bool settled = thin || agree(r, &whole[c], &half[2 * c], &half[2 * c + 1]);
        for (int side = 0; side < 2 && status == THIELE_OK; side++) {
            const thi_cell *one = &half[2 * c + side];
            if (settled) {
                accept(law, one);
            } else if (law->support == THI_SUPPORT_COUNT && one->high - one->low < FEW_COUNTS) {
                status = accept_counts(law, one);
            } else {
                law->stack[r->waiting++] = *one;
            }
        }
    }
    return status;
}

/* The cells between the borders. Those without a mass to be seen are accepted as they are. */
static thiele_status begin(refinement *r, int borders)
{
    thi_law *law = r->law;
    thiele_status status = THIELE_OK;
    int count = borders - 1 < THI_CELLS_MAX / 2 ? borders - 1 : THI_CELLS_MAX / 2;
    for (int first = 0; first < count && status == THIELE_OK; first += BATCH) {
        int some = count - first < BATCH ? count - first : BATCH;
        for (int c = first; c < first + some; c++) {
            law->stack[c].low = law->border[c];
            law->stack[c].high = law->border[c + 1];
        }
        status = thi_law_evaluate(law, some, law->stack + first);
        for (int c = first; c < first + some; c++) {
            for (int j = 0; j < 3; j++) {
                r->scale[j] += fabs(law->stack[c].sum[j]);
            }
        }
    }
    for (int c = 0; c < count; c++) {
        const thi_cell *cell = &law->stack[c];
        double least = 1e-3 * tolerance_of(law);
        bool seen = cell->sum[0] > least * r->scale[0] || (law->moments && cell->sum[2] > least * r->scale[2]);
        if (thi_cell_exact(law, cell) || !seen || is_smooth(r, cell)) {
            accept(law, cell);
        } else {
            law->stack[r->waiting++] = *cell;
        }
    }
    return status;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

thiele_status thi_law_create(thi_law **out, thi_expect *expect, thiele_context *ctx)
{
    int64_t P = expect->lik->outputs, Q = expect->lik->latents;
    thi_law *law = NULL;
    thiele_status status = THIELE_OK;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &law, 1, sizeof *law));
    law->expect = expect;
    law->support = expect->lik->ops->support;
    make_projection(law->projection);
    THI_TRY(thi_alloc(ctx, &law->y, (size_t)P, sizeof *law->y));
    THI_TRY(thi_alloc(ctx, &law->cell, THI_CELLS_MAX, sizeof *law->cell));
    THI_TRY(thi_alloc(ctx, &law->stack, THI_CELLS_MAX, sizeof *law->stack));
    THI_TRY(thi_alloc(ctx, &law->points, (size_t)(THI_EXPECT_BLOCK * P), sizeof *law->points));
    THI_TRY(thi_alloc(ctx, &law->mu, (size_t)(THI_EXPECT_BLOCK * Q), sizeof *law->mu));
    THI_TRY(thi_alloc(ctx, &law->v, (size_t)(THI_EXPECT_BLOCK * Q), sizeof *law->v));
    THI_TRY(thi_alloc(ctx, &law->log_p, THI_EXPECT_BLOCK, sizeof *law->log_p));
    THI_TRY(thi_alloc(ctx, &law->border, THI_LAW_BORDERS, sizeof *law->border));
    *out = law;
    law = NULL;
out:
    thi_law_destroy(law);
    return status;
}

void thi_law_destroy(thi_law *law)
{
    if (law == NULL) {
        return;
    }
    void *const blocks[] = {law->y, law->cell, law->stack, law->points, law->mu, law->v, law->log_p, law->border};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        thi_free(blocks[i]);
    }
    for (int i = 0; i < THI_LAWS_KEPT; i++) {
        thi_law_forget(&law->kept[i]);
    }
    thi_free(law);
}

static int ascending(const void *a, const void *b)
{
    double x = ((const thi_cell *)a)->low, y = ((const thi_cell *)b)->low;
    return (x > y) - (x < y);
}

/* Moments that the tails do not allow are NaN and infinite. */
static thiele_status summarise(thi_law *law)
{
    double sum[3] = {0, 0, 0};
    qsort(law->cell, (size_t)law->cells, sizeof *law->cell, ascending);
    for (int c = 0; c < law->cells; c++) {
        law->cell[c].before = sum[0];
        for (int j = 0; j < 3; j++) {
            sum[j] += law->cell[c].sum[j];
        }
    }
    if (!(sum[0] > 0 && isfinite(sum[0]) && law->tail < -1)) {
        return thi_fail(law->ctx, THIELE_ERROR_NUMERIC,
                        "likelihood '%s': its density has no finite sum over y: declare the values of y (support)",
                        thiele_likelihood_name(law->expect->lik));
    }
    double away = sum[1] / sum[0];
    law->mean = law->tail < -2 ? thi_to_support(law->support, law->peak.at) + away : NAN;
    law->variance = law->tail < -3 ? fmax(0, sum[2] / sum[0] - away * away) : INFINITY;
    return THIELE_OK;
}

thiele_status thi_law_fit(thi_law *law, thiele_context *ctx, const thi_marginals *row, int output, const double *known,
                          bool moments)
{
    refinement r = {.law = law};
    int borders = 0;
    thiele_status status = THIELE_OK;
    law->ctx = ctx;
    law->row = *row;
    law->output = output;
    bool kept = known == NULL && law->expect->space->scattered > 0;
    law->moments = moments || kept;
    law->cells = 0;
    for (int p = 0; p < law->expect->lik->outputs; p++) {
        law->y[p] = known != NULL && p != output ? known[p] : NAN;
    }
    if (kept && thi_law_recall(law)) {
        return THIELE_OK;
    }
    THI_TRY(thi_law_borders(law, &borders));
    THI_TRY(begin(&r, borders));
    while (r.waiting > 0) {
        THI_TRY(thi_stop_ask(ctx));
        THI_TRY(refine(&r));
    }
    THI_TRY(summarise(law));
    THI_TRY(kept ? thi_law_remember(law) : THIELE_OK);
out:
    return status;
}

/* --- quantiles ---------------------------------------------------------------------------------------------------- */

/* Its integral from -1 to t, that of P_i being (P_{i+1} - P_{i-1})/(2i + 1), and its value there. */
static double integral_to(const double *c, double t, double *value)
{
    double P[N + 1], integral = c[0] * (1 + t);
    polynomials(t, P);
    *value = c[0];
    for (int i = 1; i < N; i++) {
        integral += c[i] * (P[i + 1] - P[i - 1]) / (2 * i + 1);
        *value += c[i] * P[i];
    }
    return integral;
}

/* Where that integral is `mass`: Newton, bisection where it leaves the bracket. */
static double within(const thi_law *law, const thi_cell *cell, double mass)
{
    double c[N], half = 0.5 * (cell->high - cell->low), low = -1, high = 1, t = 0;
    coefficients(law, cell, c);
    for (int step = 0; step < 100 && high - low > 1e-15; step++) {
        double slope, excess = half * integral_to(c, t, &slope) - mass;
        low = excess < 0 ? t : low;
        high = excess < 0 ? high : t;
        double next = t - excess / (half * slope);
        next = next > low && next < high ? next : 0.5 * (low + high);
        if (fabs(next - t) <= 1e-15) {
            break;
        }
        t = next;
    }
    return 0.5 * (cell->low + cell->high) + half * t;
}

/* Halves a cell of counts until each count is known. */
static thiele_status count_within(thi_law *law, thi_cell cell, double mass, double *y)
{
    while (!thi_cell_exact(law, &cell)) {
        thi_cell left = cell;
        left.high = middle_of(law, &cell);
        left.high = left.high - left.low < FEW_COUNTS / 2 ? left.low + N : left.high;
        thiele_status status = thi_law_evaluate(law, 1, &left);
        if (status != THIELE_OK) {
            return status;
        }
        if (mass <= left.sum[0]) {
            cell = left;
        } else {
            mass -= left.sum[0];
            cell.low = left.high;
            status = thi_cell_exact(law, &cell) ? thi_law_evaluate(law, 1, &cell) : THIELE_OK;
            if (status != THIELE_OK) {
                return status;
            }
        }
    }
    int k = 0, count = (int)(cell.high - cell.low);
    while (k < count - 1 && mass > cell.value[k]) {
        mass -= cell.value[k++];
    }
    *y = cell.low + k;
    return THIELE_OK;
}

thiele_status thi_law_quantile(thi_law *law, double p, double *y)
{
    const thi_cell *last = &law->cell[law->cells - 1];
    double target = p * (last->before + last->sum[0]);
    int low = 0, high = law->cells - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        const thi_cell *cell = &law->cell[middle];
        if (cell->before + cell->sum[0] < target) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const thi_cell *cell = &law->cell[low];
    if (law->support == THI_SUPPORT_COUNT) {
        return count_within(law, *cell, target - cell->before, y);
    }
    *y = thi_to_support(law->support, within(law, cell, target - cell->before));
    return THIELE_OK;
}

/* --- the distribution function -------------------------------------------------------------------------------------
 */

/* Of a cell of counts, those below `end`: by themselves where they are few. */
static thiele_status counts_below(thi_law *law, const thi_cell *cell, double end, double *mass)
{
    thi_cell part = *cell;
    bool few = end - cell->low < FEW_COUNTS;
    thiele_status status = THIELE_OK;
    *mass = 0;
    for (double low = cell->low; low < end && status == THIELE_OK; low = part.high) {
        part.low = low;
        part.high = few ? fmin(low + N, end) : end;
        status = thi_law_evaluate(law, 1, &part);
        *mass += part.sum[0];
    }
    return status;
}

/* The last cell that begins at or before a place; the first one where there is none. */
static const thi_cell *cell_at(const thi_law *law, double x)
{
    int low = 0, high = law->cells - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        *(law->cell[middle].low <= x ? &low : &high) = law->cell[middle].low <= x ? middle : middle - 1;
    }
    return &law->cell[low];
}

thiele_status thi_law_cdf(thi_law *law, double y, double *p)
{
    const thi_cell *last = &law->cell[law->cells - 1];
    double total = last->before + last->sum[0], x = thi_from_support(law->support, y), mass = 0;
    const thi_cell *cell = cell_at(law, x);
    bool counts = law->support == THI_SUPPORT_COUNT, all = counts ? x + 1 >= cell->high : x >= cell->high;
    thiele_status status = THIELE_OK;
    if (all) {
        mass = cell->sum[0];
    } else if (x >= cell->low && counts) {
        status = counts_below(law, cell, floor(x) + 1, &mass);
    } else if (x >= cell->low) {
        double c[N], value, half = 0.5 * (cell->high - cell->low);
        coefficients(law, cell, c);
        mass = half * integral_to(c, (x - cell->low) / half - 1, &value);
    }
    *p = fmin(fmax((cell->before + mass) / total, 0), 1);
    return status;
}

thiele_status thi_space_law(thi_expect *expect, thiele_context *ctx, thi_law **law)
{
    thi_space *space = expect->space;
    thiele_status status = THIELE_OK;
    if (space->law == NULL) {
        status = thi_law_create(&space->law, expect, ctx);
    }
    *law = space->law;
    if (*law != NULL) {
        (*law)->expect = expect; /* it may have been moved since */
    }
    return status;
}
