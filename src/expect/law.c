/*
 * Cells of the axis of y, halved until the 16 nodes of a cell and those of its halves agree: Gauss-Legendre nodes, or,
 * for counts, whole numbers near those, with the weights that add up polynomials exactly (from the discrete Chebyshev
 * polynomials, which are orthogonal on 0, ..., m - 1). A quantile is looked up in its cell by the polynomial through
 * the nodes: no density is evaluated again, except to cut a large cell of counts.
 */
#include "expect/law.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "likelihood/special.h"

enum { N = THI_CELL_NODES, BATCH = THI_EXPECT_BLOCK / N };
/* Beyond these y is 0, 1 or infinite in doubles. */
static const double LOG_REACH = 700, UNIT_REACH = 36, COUNT_REACH = 0x1p52;

static const double legendre[N / 2][2] = {
    {0.989400934991649932596, 0.027152459411754094851}, {0.944575023073232576077, 0.062253523938647892862},
    {0.865631202387831743880, 0.095158511682492784809}, {0.755404408355003033895, 0.124628971255533872052},
    {0.617876244402643748446, 0.149595988816576732081}, {0.458016777657227386342, 0.169156519395002538189},
    {0.281603550779258913230, 0.182603415044923588866}, {0.095012509837637440185, 0.189450610455068496285},
};

/* --- the axis ----------------------------------------------------------------------------------------------------- */

double thi_to_support(thi_support support, double x)
{
    if (support == THI_SUPPORT_POSITIVE) {
        return fmin(fmax(exp(x), DBL_MIN), DBL_MAX);
    }
    return support == THI_SUPPORT_UNIT ? fmin(fmax(thi_sigmoid(x), DBL_MIN), 1 - 0.5 * DBL_EPSILON) : x;
}

double thi_from_support(thi_support support, double y)
{
    return support == THI_SUPPORT_POSITIVE ? log(y) : support == THI_SUPPORT_UNIT ? log(y / (1 - y)) : y;
}

static bool on_axis(thi_support support, double x)
{
    switch (support) {
    case THI_SUPPORT_POSITIVE:
        return fabs(x) <= LOG_REACH;
    case THI_SUPPORT_UNIT:
        return x >= -LOG_REACH && x <= UNIT_REACH;
    case THI_SUPPORT_COUNT:
        return x >= 0 && x <= COUNT_REACH;
    default:
        return isfinite(x);
    }
}

static double log_slope(thi_support support, double x)
{
    if (support == THI_SUPPORT_POSITIVE) {
        return x;
    }
    return support == THI_SUPPORT_UNIT ? thi_log_sigmoid(x) + thi_log_sigmoid(-x) : 0;
}

/* Component k at all points; log_p += pi_k times its density. */
static thiele_status add_component(thi_law *law, int k, int count, double *log_p)
{
    const thi_marginals *row = &law->row;
    int64_t Q = law->expect->lik->latents;
    thi_repeat(Q, row->mu + k * Q, count, law->mu);
    thi_repeat(Q, row->v + k * Q, count, law->v);
    thiele_status status =
        thi_log_predictive_block(law->expect, law->ctx, count, law->points, law->mu, law->v, law->log_p);
    double log_pi = row->components > 1 ? log(row->weight[k]) : 0;
    for (int i = 0; i < count && status == THIELE_OK; i++) {
        double one = law->log_p[i] + log_pi;
        log_p[i] = k == 0 ? one : thi_log_add(log_p[i], one);
    }
    return status;
}

thiele_status thi_law_densities(thi_law *law, int count, const double *x, double *log_p)
{
    int64_t P = law->expect->lik->outputs;
    thi_repeat(P, law->y, count, law->points);
    for (int i = 0; i < count; i++) {
        law->points[i * P + law->output] = on_axis(law->support, x[i]) ? thi_to_support(law->support, x[i]) : 1;
    }
    thiele_status status = THIELE_OK;
    law->expect->space->floor = law->floor;
    for (int k = 0; k < law->row.components && status == THIELE_OK; k++) {
        status = add_component(law, k, count, log_p);
    }
    law->expect->space->floor = -INFINITY;
    for (int i = 0; i < count; i++) {
        log_p[i] = on_axis(law->support, x[i]) ? log_p[i] + log_slope(law->support, x[i]) : -INFINITY;
    }
    return status;
}

/* --- nodes and weights of a cell ---------------------------------------------------------------------------------- */

typedef struct rule {
    int count;
    double x[N], w[N];
} rule;

/*
 * w with sum_j w_j u_i(x_j) = m for i = 0 and 0 for i = 1, ..., N - 1: u_i are the discrete Chebyshev polynomials over
 * 0, ..., m - 1 divided by m^i, (i + 1) u_{i+1} = (2i + 1) (2x - m + 1)/m u_i - i (1 - i^2/m^2) u_{i-1}. By
 * elimination.
 */
static void count_weights(double m, const double *x, double *w)
{
    double A[N][N + 1];
    for (int j = 0; j < N; j++) {
        double s = (2 * x[j] - m + 1) / m, last = 0, now = 1;
        for (int i = 0; i < N; i++) {
            A[i][j] = now;
            double next = ((2 * i + 1) * s * now - i * (1 - i * i / (m * m)) * last) / (i + 1);
            last = now;
            now = next;
        }
    }
    for (int i = 0; i < N; i++) {
        A[i][N] = i == 0 ? m : 0;
    }
    for (int c = 0; c < N; c++) {
        int pivot = c;
        for (int i = c + 1; i < N; i++) {
            pivot = fabs(A[i][c]) > fabs(A[pivot][c]) ? i : pivot;
        }
        for (int j = c; j <= N; j++) {
            double held = A[c][j];
            A[c][j] = A[pivot][j];
            A[pivot][j] = held;
        }
        for (int i = 0; i < N; i++) {
            double factor = i == c ? 0 : A[i][c] / A[c][c];
            for (int j = c; j <= N && factor != 0; j++) {
                A[i][j] -= factor * A[c][j];
            }
        }
    }
    for (int c = 0; c < N; c++) {
        w[c] = A[c][N] / A[c][c];
    }
}

static void continuous_rule(const thi_cell *cell, rule *r)
{
    double middle = 0.5 * (cell->low + cell->high), half = 0.5 * (cell->high - cell->low);
    r->count = N;
    for (int j = 0; j < N; j++) {
        const double *node = legendre[j < N / 2 ? j : N - 1 - j];
        r->x[j] = middle + (j < N / 2 ? -half : half) * node[0];
        r->w[j] = half * node[1];
    }
}

static void count_rule(const thi_cell *cell, rule *r)
{
    double m = cell->high - cell->low;
    r->count = m < N ? (int)m : N;
    for (int j = 0; j < r->count; j++) {
        double side = j < N / 2 ? -legendre[j][0] : legendre[N - 1 - j][0];
        r->x[j] = m > N ? floor(0.5 * (1 + side) * m) : j;
        r->w[j] = 1;
    }
    if (m > N) {
        count_weights(m, r->x, r->w);
    }
    for (int j = 0; j < r->count; j++) {
        r->x[j] += cell->low;
    }
}

/* Fewer counts than this are taken one by one; the nodes of the rule are distinct from half of it on. */
enum { FEW_COUNTS = 128 };

static bool is_exact(const thi_law *law, const thi_cell *cell)
{
    return law->support == THI_SUPPORT_COUNT && cell->high - cell->low <= N;
}

/* Values and sums of up to BATCH cells whose ends are set. */
static thiele_status evaluate(thi_law *law, int count, thi_cell *cell)
{
    rule r[BATCH];
    double x[THI_EXPECT_BLOCK] = {0}, log_p[THI_EXPECT_BLOCK];
    int points = 0;
    for (int c = 0; c < count; c++) {
        if (law->support == THI_SUPPORT_COUNT) {
            count_rule(&cell[c], &r[c]);
        } else {
            continuous_rule(&cell[c], &r[c]);
        }
        memcpy(x + points, r[c].x, (size_t)r[c].count * sizeof *x);
        points += r[c].count;
    }
    thiele_status status = thi_law_densities(law, points, x, log_p);
    double centre = thi_to_support(law->support, law->peak.at);
    points = 0;
    for (int c = 0; c < count && status == THIELE_OK; c++) {
        memset(cell[c].sum, 0, sizeof cell[c].sum);
        for (int j = 0; j < r[c].count; j++, points++) {
            double y = thi_to_support(law->support, x[points]) - centre, p = exp(log_p[points] - law->peak.top);
            cell[c].value[j] = p;
            cell[c].sum[0] += r[c].w[j] * p;
            cell[c].sum[1] += r[c].w[j] * p * y;
            cell[c].sum[2] += r[c].w[j] * p * y * y;
        }
    }
    return status;
}

/* --- refinement --------------------------------------------------------------------------------------------------- */

/*
 * Integrals over f are good to this much, by the number of latents, and a y just below 1 has lost digits of 1 - y: more
 * can't be asked of a cell.
 */
static double noise_of(const thi_law *law, const thi_cell *cell)
{
    static const double noise[] = {1e-8, 1e-7, 1e-5};
    int Q = law->expect->lik->latents;
    double lost = law->support == THI_SUPPORT_UNIT ? 4 * DBL_EPSILON * exp(fmin(cell->high, UNIT_REACH)) : 0;
    return (Q <= 3 ? noise[Q - 1] : 1e-8) + lost;
}

/* What the sums of all cells together are good to. */
static const double TOLERANCE = 1e-9;

typedef struct refinement {
    thi_law *law;
    int waiting;
    double scale[3]; /* sums of |sum| over the first cells */
} refinement;

static bool agree(const refinement *r, const thi_cell *whole, const thi_cell *left, const thi_cell *right)
{
    double noise = noise_of(r->law, whole);
    bool same = true;
    for (int j = 0; j < 3 && same; j++) {
        double difference = fabs(whole->sum[j] - left->sum[j] - right->sum[j]);
        same = difference <= noise * fabs(whole->sum[j]) + TOLERANCE * r->scale[j] + DBL_MIN;
    }
    return same;
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
    thiele_status status = evaluate(law, count, piece);
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
    thiele_status status = evaluate(law, 2 * count, half);
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
        status = evaluate(law, some, law->stack + first);
        for (int c = first; c < first + some; c++) {
            for (int j = 0; j < 3; j++) {
                r->scale[j] += fabs(law->stack[c].sum[j]);
            }
        }
    }
    for (int c = 0; c < count; c++) {
        const thi_cell *cell = &law->stack[c];
        bool seen = cell->sum[0] > 1e-3 * TOLERANCE * r->scale[0] || cell->sum[2] > 1e-3 * TOLERANCE * r->scale[2];
        if (is_exact(law, cell) || !seen) {
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
                        "likelihood '%s': its density has no finite sum over y: say what values y takes (support)",
                        thiele_likelihood_name(law->expect->lik));
    }
    double away = sum[1] / sum[0];
    law->mean = law->tail < -2 ? thi_to_support(law->support, law->peak.at) + away : NAN;
    law->variance = law->tail < -3 ? fmax(0, sum[2] / sum[0] - away * away) : INFINITY;
    return THIELE_OK;
}

thiele_status thi_law_fit(thi_law *law, thiele_context *ctx, const thi_marginals *row, int output, const double *known)
{
    refinement r = {.law = law};
    int borders = 0;
    thiele_status status = THIELE_OK;
    law->ctx = ctx;
    law->row = *row;
    law->output = output;
    law->cells = 0;
    for (int p = 0; p < law->expect->lik->outputs; p++) {
        law->y[p] = known != NULL && p != output ? known[p] : NAN;
    }
    THI_TRY(thi_law_borders(law, &borders));
    THI_TRY(begin(&r, borders));
    while (r.waiting > 0) {
        THI_TRY(refine(&r));
    }
    THI_TRY(summarise(law));
out:
    return status;
}

/* --- quantiles ---------------------------------------------------------------------------------------------------- */

/* P_0 .. P_N of Legendre at t. */
static void polynomials(double t, double *P)
{
    P[0] = 1;
    P[1] = t;
    for (int i = 1; i < N; i++) {
        P[i + 1] = ((2 * i + 1) * t * P[i] - i * P[i - 1]) / (i + 1);
    }
}

/*
 * Where the integral of the polynomial through the nodes, from the left end, is `mass`: with g = sum_i c_i P_i on
 * (-1, 1), the integral of P_i from -1 is (P_{i+1} - P_{i-1})/(2i + 1). Newton, bisection where it leaves the bracket.
 */
static double within(const thi_cell *cell, double mass)
{
    double c[N] = {0}, P[N + 1], half = 0.5 * (cell->high - cell->low), low = -1, high = 1, t = 0;
    for (int j = 0; j < N; j++) {
        const double *node = legendre[j < N / 2 ? j : N - 1 - j];
        polynomials(j < N / 2 ? -node[0] : node[0], P);
        for (int i = 0; i < N; i++) {
            c[i] += (i + 0.5) * node[1] * P[i] * cell->value[j];
        }
    }
    for (int step = 0; step < 100 && high - low > 1e-15; step++) {
        polynomials(t, P);
        double integral = c[0] * (1 + t), slope = c[0];
        for (int i = 1; i < N; i++) {
            integral += c[i] * (P[i + 1] - P[i - 1]) / (2 * i + 1);
            slope += c[i] * P[i];
        }
        double excess = half * integral - mass;
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
    while (!is_exact(law, &cell)) {
        thi_cell left = cell;
        left.high = middle_of(law, &cell);
        left.high = left.high - left.low < FEW_COUNTS / 2 ? left.low + N : left.high;
        thiele_status status = evaluate(law, 1, &left);
        if (status != THIELE_OK) {
            return status;
        }
        if (mass <= left.sum[0]) {
            cell = left;
        } else {
            mass -= left.sum[0];
            cell.low = left.high;
            status = is_exact(law, &cell) ? evaluate(law, 1, &cell) : THIELE_OK;
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
    *y = thi_to_support(law->support, within(cell, target - cell->before));
    return THIELE_OK;
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
