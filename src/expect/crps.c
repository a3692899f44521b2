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
/* Each value of F is a sum over components: of the draws of a chain there are too many. */
enum { MOST_COMPONENTS = 16 };
/* Where a law lies: Phi(-1), 1/2, Phi(1). */
static const double levels[] = {0.15865525393145705, 0.5, 0.84134474606854295};
enum { LEVELS = sizeof levels / sizeof *levels };

typedef struct side {
    const thi_known_law *law;
    thiele_context *ctx;
    int sign;            /* of the way from the middle */
    double middle, mark; /* on the axis; the mark is that of y */
    double scale;        /* of the score */
    double sum;
} side;

/* On one side of m and of y. */
typedef struct cell {
    double low, high, sum;
    double missed; /* what steps at its ends, nearer than any node, may be worth */
} cell;

/* The integrand at a place on the axis. */
static thiele_status integrand(const side *s, double x, bool between, double *value)
{
    double y = thi_to_support(s->law->support, x), F = 0;
    thiele_status status = s->law->cdf(s->law->law, s->ctx, y, &F);
    double tail = s->sign > 0 ? 1 - F : F;
    *value = thi_support_slope(s->law->support, y) * tail * (tail - (between ? 2 : 0));
    return status;
}

/* The polynomial through the nodes at an end of the cell, barycentric (Wang and Xiang 2012). */
static double extrapolated(const thi_cell_rule *rule, const double *value, const cell *c, double end)
{
    double sum = 0, weights = 0;
    for (int j = 0; j < rule->count; j++) {
        double weight = sqrt((rule->x[j] - c->low) * (c->high - rule->x[j]) * rule->w[j]) / (rule->x[j] - end);
        weight = j % 2 == 0 ? weight : -weight;
        sum += weight * value[j];
        weights += weight;
    }
    return sum / weights;
}

/* Adds the sum over the nodes; of counts no more than there are nodes, or many. */
static thiele_status add_nodes(const side *s, cell *c, double low, double high, bool between)
{
    double value[THI_CELL_NODES], at_end;
    bool counts = s->law->support == THI_SUPPORT_COUNT;
    thiele_status status = THIELE_OK;
    thi_cell_rule rule;
    thi_cell_rule_make(&rule, s->law->support, low, high);
    if (s->law->anew != NULL) {
        s->law->anew(s->law->law);
    }
    for (int j = 0; j < rule.count; j++) {
        THI_TRY(integrand(s, rule.x[j], between, &value[j]));
        c->sum += rule.w[j] * value[j];
    }
    for (int e = 0; e < 2 && !counts; e++) {
        double end = e == 0 ? low : high, gap = fabs(rule.x[e == 0 ? 0 : rule.count - 1] - end);
        if (gap > 0) {
            THI_TRY(integrand(s, end, between, &at_end));
            c->missed += gap * fabs(at_end - extrapolated(&rule, value, c, end));
        }
    }
out:
    return status;
}

static bool has_few(const side *s, const cell *c)
{
    return s->law->support == THI_SUPPORT_COUNT && c->high - c->low < FEW_COUNTS;
}

/* Fills in sum and missed. */
static thiele_status evaluate(const side *s, cell *c)
{
    bool between = s->sign > 0 ? c->high <= s->mark : c->low >= s->mark;
    bool few = has_few(s, c);
    thiele_status status = THIELE_OK;
    c->sum = c->missed = 0;
    for (double at = c->low, end; at < c->high && status == THIELE_OK; at = end) {
        end = few ? fmin(at + THI_CELL_NODES, c->high) : c->high;
        status = add_nodes(s, c, at, end, between);
    }
    return status;
}

static bool matters(const side *s, const cell *c)
{
    return fabs(c->sum) + c->missed > NEGLIGIBLE * s->scale;
}

/* Adds the cell to the sum: its halves, or theirs. */
static thiele_status add_cell(side *s, const cell *whole, int halvings)
{
    double middle = whole->low + 0.5 * (whole->high - whole->low);
    middle = s->law->support == THI_SUPPORT_COUNT ? floor(middle) : middle;
    cell half[2] = {{.low = whole->low, .high = middle}, {.low = middle, .high = whole->high}};
    thiele_status status = THIELE_OK;
    if (has_few(s, whole) || !matters(s, whole)) {
        s->sum += whole->sum;
        return THIELE_OK;
    }
    THI_TRY(evaluate(s, &half[0]));
    THI_TRY(evaluate(s, &half[1]));
    double off = fabs(half[0].sum + half[1].sum - whole->sum) + half[0].missed + half[1].missed;
    if (halvings == 0 || off <= TOLERANCE * s->scale) {
        s->sum += half[0].sum + half[1].sum;
        return THIELE_OK;
    }
    THI_TRY(add_cell(s, &half[0], halvings - 1));
    THI_TRY(add_cell(s, &half[1], halvings - 1));
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
    for (int k = 0; k < CELLS; k++) {
        double far = far_end(s, near, width);
        cell c = {.low = fmin(near, far), .high = fmax(near, far)};
        bool past = s->sign * (near - s->mark) >= 0;
        if (near == far) {
            break;
        }
        THI_TRY(evaluate(s, &c));
        THI_TRY(add_cell(s, &c, HALVINGS));
        s->scale = fmax(s->scale, fabs(s->sum));
        if (past && !matters(s, &c)) {
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
    return thi_row_cdf_at(law, ctx, y, p);
}

/* Each cell finds its own number of nodes over f. */
static void row_anew(void *law)
{
    ((thi_row_cdf *)law)->again = false;
}

/* The quantiles that an integral over y has, in place of those that were looked for. */
static thiele_status take_quantiles(thi_row_cdf *cdf, thi_known_law *law)
{
    thiele_status status = THIELE_OK;
    double *const place[LEVELS] = {&law->low, &law->mid, &law->high};
    for (int j = 0; j < LEVELS && status == THIELE_OK; j++) {
        status = thi_law_quantile(cdf->law, levels[j], place[j]);
    }
    return status;
}

/* quantile: three of each output; NULL where the law is had by its density. */
static thiele_status row_crps(thi_expect *expect, thiele_context *ctx, const thi_marginals *row, const double *y,
                              const double *quantile, double *out)
{
    thiele_status status = THIELE_OK;
    for (int p = 0; p < expect->lik->outputs && status == THIELE_OK; p++) {
        thi_row_cdf cdf = {.expect = expect, .row = *row, .output = p};
        thi_known_law law = {row_cdf, row_anew, &cdf, expect->lik->ops->support, NAN, NAN, NAN};
        out[p] = NAN;
        if (quantile != NULL) {
            const double *own = quantile + LEVELS * (int64_t)p;
            law.low = own[0];
            law.mid = own[1];
            law.high = own[2];
        }
        if (!isnan(y[p])) {
            THI_TRY(thi_row_cdf_prepare(&cdf, ctx));
            THI_TRY(quantile != NULL ? THIELE_OK : take_quantiles(&cdf, &law));
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
    const thiele_likelihood *lik = expect->lik;
    double *quantile = NULL;
    thiele_status status = THIELE_OK;
    if (lik->ops->support >= THI_SUPPORT_BINARY) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "likelihood '%s' has no CRPS for its labels",
                        thiele_likelihood_name(lik));
    }
    if (m->components > MOST_COMPONENTS) {
        for (int64_t k = 0; k < m->n * lik->outputs; k++) {
            out[k] = NAN;
        }
        return THIELE_OK;
    }
    if (lik->ops->predictive_crps != NULL && m->components == 1) {
        closed(lik, m, y, out);
        return THIELE_OK;
    }
    if (thi_has_cdf(lik)) {
        THI_TRY(thi_alloc(ctx, &quantile, (size_t)(LEVELS * lik->outputs * m->n), sizeof *quantile));
        THI_TRY(thi_mixture_quantiles(expect, ctx, m, LEVELS, levels, quantile));
    }
    for (int64_t i = 0; i < m->n; i++) {
        int64_t first = i * lik->outputs;
        thi_marginals row;
        THI_TRY(thi_gather(expect->space, ctx, m, i, &row));
        const double *own = quantile != NULL ? quantile + LEVELS * first : NULL;
        THI_TRY(row_crps(expect, ctx, &row, y + first, own, out + first));
    }
out:
    thi_free(quantile);
    return status;
}
