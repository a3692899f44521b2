/*
 * Quantiles and draws of one output y under f ~ N(mu, diag v). The distribution function of y is the average over f of
 * the one given f; it is inverted on a scale where its argument is unbounded (log for positive y, log odds for y in
 * (0, 1)) by bracketing and the Illinois form of the secant rule, some ten averages a quantile. Counts are searched by
 * doubling and halving, classes by adding up.
 */
#include <math.h>

#include "expect/integrate.h"
#include "likelihood/gaussian.h"
#include "likelihood/special.h"

static void evaluate_cdf(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    const double *at = in->extra;
    (void)y;
    for (int64_t i = 0; i < n; i++) {
        value[i] = in->lik->ops->cdf(in->lik, *at, f + i * in->lik->latents);
    }
}

static void reduce_cdf(const thi_integrand *in, const thi_points *p, double *result)
{
    (void)in;
    for (int64_t k = 0; k < p->count; k++) {
        result[0] += p->w[k] * p->value[p->at + k];
    }
}

static bool settled_cdf(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                        const double *now)
{
    (void)in;
    (void)centre;
    return fabs(now[0] - before[0]) <= 1000 * tolerance * fmin(now[0], 1 - now[0]) + 0.1 * tolerance;
}

typedef struct search {
    thi_expect *expect;
    thiele_context *ctx;
    const double *mu, *sd;
    double p;
    bool again; /* at the level of the ladder where the first average settled */
    thiele_status status;
} search;

/* P(Y <= y) - p */
static double excess(search *s, double y)
{
    int only = 0;
    double value = 0;
    thi_space *space = s->expect->space;
    thi_integrand in = {.lik = s->expect->lik, .values = 1, .results = 1, .extra = &y, .evaluate = evaluate_cdf};
    in.reduce = reduce_cdf;
    in.settled = settled_cdf;
    thi_rows row = {1, &only, NULL, s->mu, s->sd, NULL};
    if (s->status == THIELE_OK && space->Q <= 3) {
        s->status = thi_ladder(space, s->ctx, &in, &row, &value, space->level, s->again);
        /* The distribution function of a large count is nearly a step in f: each value needs its own number of nodes.
         */
        s->again = s->expect->lik->ops->support != THI_SUPPORT_COUNT;
    } else if (s->status == THIELE_OK) {
        s->status = thi_average(space, s->ctx, &in, &row, &value);
    }
    return value - s->p;
}

/* --- continuous y ------------------------------------------------------------------------------------------------- */

/* From the line to the support and back. */
static double to_support(thi_support support, double x)
{
    return support == THI_SUPPORT_POSITIVE ? exp(x) : support == THI_SUPPORT_UNIT ? thi_sigmoid(x) : x;
}

static double from_support(thi_support support, double y)
{
    return support == THI_SUPPORT_POSITIVE ? log(y) : support == THI_SUPPORT_UNIT ? log(y / (1 - y)) : y;
}

typedef struct bracket {
    double low, high, at_low, at_high; /* places on the line, and the excess there */
} bracket;

static thiele_status find_bracket(search *s, thi_support support, double centre, double width, bracket *b)
{
    *b = (bracket){centre, centre, excess(s, to_support(support, centre)), 0};
    b->at_high = b->at_low;
    for (int doubling = 0; doubling < 200 && s->status == THIELE_OK; doubling++, width *= 2) {
        if (b->at_low > 0) {
            b->low -= width;
            b->at_low = excess(s, to_support(support, b->low));
        } else if (b->at_high < 0) {
            b->high += width;
            b->at_high = excess(s, to_support(support, b->high));
        } else {
            return THIELE_OK;
        }
    }
    return s->status != THIELE_OK
               ? s->status
               : thi_fail(s->ctx, THIELE_ERROR_NUMERIC, "likelihood '%s': no quantile %g was found around %g",
                          thiele_likelihood_name(s->expect->lik), s->p, to_support(support, centre));
}

/* The end that stays twice has its value halved, so that the other one comes over (Illinois). */
static double secant(search *s, thi_support support, bracket b)
{
    double x = 0.5 * (b.low + b.high), last = 0, close = 1e-8 * fmin(s->p, 1 - s->p);
    for (int step = 0; step < 200 && s->status == THIELE_OK; step++) {
        double span = b.high - b.low, guess = b.high - b.at_high * span / (b.at_high - b.at_low);
        if (b.at_low == 0 || b.at_high == 0) {
            return b.at_low == 0 ? b.low : b.high;
        }
        x = step % 8 < 7 && guess > b.low && guess < b.high ? guess : 0.5 * (b.low + b.high);
        double at = excess(s, to_support(support, x));
        if (fabs(at) <= close || span <= 1e-12 * (1 + fabs(x))) {
            return x;
        }
        if (at > 0) {
            b.at_low *= last > 0 ? 0.5 : 1;
            b.high = x;
            b.at_high = at;
        } else {
            b.at_high *= last < 0 ? 0.5 : 1;
            b.low = x;
            b.at_low = at;
        }
        last = at;
    }
    return x;
}

/*
 * Around the quantile of a normal with the same moments. The level of the ladder is that of the first place; if the
 * answer does not hold there at a level of its own, the search is done again from it.
 */
static thiele_status continuous(search *s, const double *v, double *out)
{
    const thiele_likelihood *lik = s->expect->lik;
    thi_support support = lik->ops->support;
    double mean = 0, variance = 0, centre = s->mu[0], width = 1, x = 0;
    if (lik->ops->predictive != NULL || lik->ops->conditional != NULL) {
        s->status = thi_predict_block(s->expect, s->ctx, 1, s->mu, v, &mean, &variance);
        centre = isfinite(from_support(support, mean)) ? from_support(support, mean) : centre;
    }
    if (support == THI_SUPPORT_REAL && variance > 0 && isfinite(variance)) {
        centre += sqrt(variance) * thi_normal_quantile(s->p);
        width = 0.1 * sqrt(variance);
    }
    for (int round = 0; round < 3 && s->status == THIELE_OK; round++) {
        bracket b;
        s->again = false;
        s->status = find_bracket(s, support, centre, width, &b);
        if (s->status == THIELE_OK) {
            x = secant(s, support, b);
        }
        s->again = false;
        if (fabs(excess(s, to_support(support, x))) <= 1e-5 * fmin(s->p, 1 - s->p)) {
            break;
        }
        centre = x;
        width *= 0.1;
    }
    *out = to_support(support, x);
    return s->status;
}

/* --- counts and classes ------------------------------------------------------------------------------------------- */

static thiele_status count(search *s, double *out)
{
    double below = -1, step = 1; /* P(Y <= below) < p */
    while (s->status == THIELE_OK && excess(s, below + step) < 0) {
        below += step;
        step *= 2;
        if (below > 1e15) {
            return thi_fail(s->ctx, THIELE_ERROR_NUMERIC, "likelihood '%s': the quantile %g is beyond 1e15",
                            thiele_likelihood_name(s->expect->lik), s->p);
        }
    }
    double above = below + step;
    while (s->status == THIELE_OK && above - below > 1) {
        double middle = floor(0.5 * (below + above));
        if (excess(s, middle) < 0) {
            below = middle;
        } else {
            above = middle;
        }
    }
    *out = above;
    return s->status;
}

static thiele_status class_at(search *s, const double *v, double *out)
{
    const thiele_likelihood *lik = s->expect->lik;
    bool binary = lik->ops->support == THI_SUPPORT_BINARY;
    int classes = binary ? 2 : lik->classes, c = 0;
    double *probability = NULL, sum = 0;
    thiele_status status = thi_alloc(s->ctx, &probability, (size_t)classes, sizeof *probability);
    if (status == THIELE_OK) {
        status = thi_probabilities_block(s->expect, s->ctx, 1, s->mu, v, probability);
    }
    while (status == THIELE_OK && c < classes - 1 && (sum += probability[c]) < s->p) {
        c++;
    }
    *out = binary ? 2 * c - 1 : c;
    thi_free(probability);
    return status;
}

thiele_status thi_likelihood_quantile(thi_expect *expect, thiele_context *ctx, const double *mu, const double *v,
                                      double p, double *out)
{
    const thiele_likelihood *lik = expect->lik;
    thi_support support = lik->ops->support;
    bool classes = support == THI_SUPPORT_BINARY || support == THI_SUPPORT_CLASS;
    if (!(p > 0 && p < 1)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a quantile must be between 0 and 1, not %g", p);
    }
    if (lik->outputs != 1 || (!classes && lik->ops->cdf == NULL)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "likelihood '%s' has no quantiles: %s",
                        thiele_likelihood_name(lik),
                        lik->outputs != 1 ? "it has several outputs" : "its distribution function is not known");
    }
    thiele_status status = thi_space_spread(expect->space, ctx, 1, mu, v);
    if (status != THIELE_OK) {
        return status;
    }
    search s = {expect, ctx, mu, expect->space->sd, p, false, THIELE_OK};
    if (classes) {
        return class_at(&s, v, out);
    }
    return support == THI_SUPPORT_COUNT ? count(&s, out) : continuous(&s, v, out);
}

thiele_status thi_likelihood_sample(thi_expect *expect, thiele_context *ctx, int64_t row, const double *mu,
                                    const double *v, uint64_t first, int64_t n, double *y)
{
    const thiele_likelihood *lik = expect->lik;
    thi_space *space = expect->space;
    uint64_t Q = (uint64_t)lik->latents;
    if (lik->ops->sample == NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "likelihood '%s' has no samples: it does not say how to draw y",
                        thiele_likelihood_name(lik));
    }
    thiele_status status = thi_space_spread(space, ctx, 1, mu, v);
    for (int64_t i = 0; i < n && status == THIELE_OK; i++) {
        uint64_t draw = first + (uint64_t)i;
        for (uint64_t q = 0; q < Q; q++) {
            thi_stream latent = {expect->seed, THI_RANDOM_EXPECT, (uint64_t)row};
            space->f[q] = mu[q] + space->sd[q] * thi_random_normal(latent, draw * Q + q);
        }
        thi_stream stream = {expect->seed, THI_RANDOM_SAMPLE, (uint64_t)row};
        lik->ops->sample(lik, stream, draw, space->f, y + i * lik->outputs);
    }
    return status;
}
