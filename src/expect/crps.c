/*
 * CRPS of any law. From a place m in its middle, with the tail t = F to the left of m and 1 - F to the right,
 *   CRPS = |y - m| + int t(x)^2 dx - 2 int_{between m and y} t(x) dx,
 * integrals of what falls off on both sides. They are taken outwards on the axis of y that has no ends (y, log y, log
 * odds; counts as they are), in cells of 16 nodes that grow by a factor of 4, begin or end at y, and are halved until
 * the halves agree with the whole.
 */
#include "expect/crps.h"

#include <math.h>

#include "expect/predictive_cdf.h"

/* Relative to the scale of the score: halves and a whole agree; a cell, and what is beyond it, does not matter. */
static const double TOLERANCE = 1e-7, NEGLIGIBLE = 1e-10;
/* Of the law's widths, the first cell; how cells grow. */
static const double FIRST = 4, GROWTH = 4;
/* Halvings of a cell; cells on one side: GROWTH^512 is beyond any double. */
enum { HALVINGS = 48, CELLS = 512 };
/* Fewer counts than this are taken one by one (predictive_distribution.c says why). */
enum { FEW_COUNTS = 128 };

typedef struct side {
    const thi_known_law *law;
    thiele_context *ctx;
    int sign;            /* of the way from the middle */
    double middle, mark; /* on the axis; the mark is that of y */
    double scale;        /* of the score */
    double sum;
} side;

/* Adds the sum over the nodes of a cell, or over counts that are no more than its nodes. */
static thiele_status add_nodes(const side *s, double low, double high, bool between, double *sum)
{
    thi_support support = s->law->support;
    thiele_status status = THIELE_OK;
    thi_cell_rule rule;
    thi_cell_rule_make(&rule, support, low, high);
    for (int j = 0; j < rule.count && status == THIELE_OK; j++) {
        double y = thi_to_support(support, rule.x[j]), F = 0;
        status = s->law->cdf(s->law->law, s->ctx, y, &F);
        double tail = s->sign > 0 ? 1 - F : F;
        *sum += rule.w[j] * thi_support_slope(support, y) * tail * (tail - (between ? 2 : 0));
    }
    return status;
}

static bool has_few(const side *s, double low, double high)
{
    return s->law->support == THI_SUPPORT_COUNT && high - low < FEW_COUNTS;
}

/* The cell from low to high, on one side of m and of y. */
static thiele_status cell_sum(const side *s, double low, double high, double *sum)
{
    bool between = s->sign > 0 ? high <= s->mark : low >= s->mark;
    double step = has_few(s, low, high) ? THI_CELL_NODES : high - low;
    thiele_status status = THIELE_OK;
    *sum = 0;
    for (double at = low; at < high && status == THIELE_OK; at += step) {
        status = add_nodes(s, at, fmin(at + step, high), between, sum);
    }
    return status;
}

static double middle_of(const side *s, double low, double high)
{
    double middle = low + 0.5 * (high - low);
    return s->law->support == THI_SUPPORT_COUNT ? floor(middle) : middle;
}

/* Adds the cell to the sum: its halves, or theirs. */
static thiele_status add_cell(side *s, double low, double high, double whole, int halvings)
{
    double half[2], middle = middle_of(s, low, high);
    if (has_few(s, low, high) || fabs(whole) <= NEGLIGIBLE * s->scale) {
        s->sum += whole;
        return THIELE_OK;
    }
    thiele_status status;
    THI_TRY(cell_sum(s, low, middle, &half[0]));
    THI_TRY(cell_sum(s, middle, high, &half[1]));
    if (halvings == 0 || fabs(half[0] + half[1] - whole) <= TOLERANCE * s->scale) {
        s->sum += half[0] + half[1];
        goto out;
    }
    THI_TRY(add_cell(s, low, middle, half[0], halvings - 1));
    THI_TRY(add_cell(s, middle, high, half[1], halvings - 1));
out:
    return status;
}

/* The far end of a cell that begins at `near`: no farther than y, nor than the axis goes. */
static double far_end(const side *s, double near, double width)
{
    double ends[2], far = near + s->sign * width;
    thi_support_ends(s->law->support, &ends[0], &ends[1]);
    far = fmin(fmax(far, ends[0]), ends[1]);
    bool crosses = s->sign * (s->mark - near) > 0 && s->sign * (far - s->mark) > 0;
    return crosses ? s->mark : far;
}

/* Outwards until y is passed and a cell does not matter. */
static thiele_status add_side(side *s, double width)
{
    double near = s->middle;
    thiele_status status = THIELE_OK;
    for (int k = 0; k < CELLS && status == THIELE_OK; k++) {
        double far = far_end(s, near, width), low = fmin(near, far), high = fmax(near, far), whole = 0;
        bool past = s->sign * (near - s->mark) >= 0;
        if (near == far) {
            break;
        }
        THI_TRY(cell_sum(s, low, high, &whole));
        THI_TRY(add_cell(s, low, high, whole, HALVINGS));
        s->scale = fmax(s->scale, fabs(s->sum));
        if (past && fabs(whole) <= NEGLIGIBLE * s->scale) {
            break;
        }
        width *= far == s->mark ? 1 : GROWTH;
        near = far;
    }
out:
    return status;
}

thiele_status thi_crps(const thi_known_law *law, thiele_context *ctx, double y, double *crps)
{
    bool counts = law->support == THI_SUPPORT_COUNT;
    double middle = thi_from_support(law->support, law->mid);
    double way = thi_from_support(law->support, law->high) - thi_from_support(law->support, law->low);
    double width = FIRST * fmax(0.5 * way, 1e-12 * (1 + fabs(middle)));
    width = counts ? ceil(width) : width;
    side s = {.law = law, .ctx = ctx, .sign = -1, .middle = middle, .mark = thi_from_support(law->support, y)};
    s.scale = fabs(y - law->mid) + fabs(law->high - law->low);
    thiele_status status = THIELE_OK;
    THI_TRY(add_side(&s, width));
    s.sign = 1;
    THI_TRY(add_side(&s, width));
    *crps = fabs(y - law->mid) + s.sum;
out:
    return status;
}

/* --- rows of a likelihood ----------------------------------------------------------------------------------------- */

static thiele_status row_cdf(void *law, thiele_context *ctx, double y, double *p)
{
    thi_row_cdf *cdf = law;
    cdf->again = false; /* far from the last value another number of nodes may be right */
    return thi_row_cdf_at(cdf, ctx, y, p);
}

/* quantile: three of each output. */
static thiele_status row_crps(thi_expect *expect, thiele_context *ctx, const thi_marginals *row, const double *y,
                              const double *quantile, double *out)
{
    thiele_status status = THIELE_OK;
    for (int p = 0; p < expect->lik->outputs && status == THIELE_OK; p++) {
        const double *own = quantile + 3 * (int64_t)p;
        thi_row_cdf cdf = {.expect = expect, .row = *row, .output = p};
        thi_known_law law = {row_cdf, &cdf, expect->lik->ops->support, own[0], own[1], own[2]};
        out[p] = NAN;
        if (!isnan(y[p])) {
            THI_TRY(thi_row_cdf_prepare(&cdf, ctx));
            THI_TRY(thi_crps(&law, ctx, y[p], &out[p]));
        }
    }
out:
    return status;
}

static void closed(const thiele_likelihood *lik, const thi_marginals *m, const double *y, double *out)
{
    int64_t P = lik->outputs, Q = lik->latents;
    for (int64_t k = 0; k < m->n * P; k++) {
        const double *mu = m->mu + k / P * Q, *v = m->v + k / P * Q;
        out[k] = isnan(y[k]) ? NAN : lik->ops->predictive_crps(lik, (int)(k % P), y[k], mu, v);
    }
}

thiele_status thi_mixture_crps(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, const double *y,
                               double *out)
{
    /* Phi(-1), 1/2, Phi(1) */
    static const double levels[] = {0.15865525393145705, 0.5, 0.84134474606854295};
    enum { LEVELS = sizeof levels / sizeof *levels };
    const thiele_likelihood *lik = expect->lik;
    double *quantile = NULL;
    thiele_status status = THIELE_OK;
    if (lik->ops->support >= THI_SUPPORT_BINARY) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "the labels of likelihood '%s' have no CRPS",
                        thiele_likelihood_name(lik));
    }
    if (lik->ops->predictive_crps != NULL && m->components == 1) {
        closed(lik, m, y, out);
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(ctx, &quantile, (size_t)(LEVELS * lik->outputs * m->n), sizeof *quantile));
    THI_TRY(thi_mixture_quantiles(expect, ctx, m, LEVELS, levels, quantile));
    for (int64_t i = 0; i < m->n; i++) {
        int64_t first = i * lik->outputs;
        thi_marginals row;
        THI_TRY(thi_gather(expect->space, ctx, m, i, &row));
        THI_TRY(row_crps(expect, ctx, &row, y + first, quantile + LEVELS * first, out + first));
    }
out:
    thi_free(quantile);
    return status;
}
