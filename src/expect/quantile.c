/*
 * Quantiles of y, an output by itself. Where the likelihood has them in closed form, that; else the distribution
 * function of y (predictive_cdf.h) is
 * inverted on a scale where its argument is unbounded (log for positive y, log odds for y in (0, 1)) by bracketing and
 * the Illinois form of the secant rule, some ten averages a quantile. Counts are searched by doubling and halving,
 * classes by adding up; without a distribution function the density is integrated over y (predictive_distribution.h).
 */
#include <math.h>
#include <string.h>

#include "expect/predictive_cdf.h"
#include "likelihood/normal_quantile.h"

typedef struct search {
    thi_row_cdf cdf;
    thiele_context *ctx;
    double p;
    thiele_status status;
} search;

/* P(Y <= y) - p */
static double excess(search *s, double y)
{
    double below = 0;
    if (s->status == THIELE_OK) {
        s->status = thi_row_cdf_at(&s->cdf, s->ctx, y, &below);
    }
    return below - s->p;
}

/* --- continuous y ------------------------------------------------------------------------------------------------- */

typedef struct bracket {
    double low, high, at_low, at_high; /* places on the line, and the excess there */
} bracket;

static thiele_status find_bracket(search *s, thi_support support, double centre, double width, bracket *b)
{
    *b = (bracket){centre, centre, excess(s, thi_to_support(support, centre)), 0};
    b->at_high = b->at_low;
    for (int doubling = 0; doubling < 200 && s->status == THIELE_OK; doubling++, width *= 2) {
        if (b->at_low > 0) {
            b->high = b->low;
            b->at_high = b->at_low;
            b->low -= width;
            b->at_low = excess(s, thi_to_support(support, b->low));
        } else if (b->at_high < 0) {
            b->low = b->high;
            b->at_low = b->at_high;
            b->high += width;
            b->at_high = excess(s, thi_to_support(support, b->high));
        } else {
            return THIELE_OK;
        }
        /* What is left beyond the last double belongs to that. */
        if (support != THI_SUPPORT_REAL && (b->low < -750 || b->high > 750)) {
            b->at_low = fmin(b->at_low, 0);
            b->at_high = fmax(b->at_high, 0);
        }
    }
    return s->status != THIELE_OK
               ? s->status
               : thi_fail(s->ctx, THIELE_ERROR_NUMERIC, "likelihood '%s': no quantile %g was found around %g",
                          thiele_likelihood_name(s->cdf.expect->lik), s->p, thi_to_support(support, centre));
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
        double at = excess(s, thi_to_support(support, x));
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
 * A place to begin, and a first step: around the quantile of a normal with the same moments. A variance that is far
 * beyond that at the mean of f says where the tails are and nothing about the middle.
 */
static double first_place(search *s, thi_support support, double *width)
{
    const thiele_likelihood *lik = s->cdf.expect->lik;
    double place = s->cdf.row.mu[0];
    *width = 1;
    if (lik->ops->predictive == NULL && lik->ops->conditional == NULL) {
        return place;
    }
    double *mean = s->cdf.expect->space->gathered + s->cdf.row.components * 2 * (int64_t)lik->latents;
    double *variance = mean + lik->outputs;
    s->status = thi_mixture_predict(s->cdf.expect, s->ctx, &s->cdf.row, mean, variance);
    double at = thi_from_support(support, mean[s->cdf.output]), spread = variance[s->cdf.output];
    place = isfinite(at) ? at : place;
    if (lik->ops->conditional != NULL) {
        lik->ops->conditional(lik, 1, s->cdf.row.mu, mean, variance);
    }
    double usual = variance[s->cdf.output];
    if (support == THI_SUPPORT_REAL && spread > 0 && spread < 1e6 * usual) {
        place += sqrt(spread) * thi_normal_quantile(s->p);
        *width = 0.1 * sqrt(spread);
    } else if (support == THI_SUPPORT_REAL && usual > 0 && isfinite(usual)) {
        *width = sqrt(usual);
    }
    return place;
}

/*
 * The level of the ladder is that of the first place; if the answer does not hold there at a level of its own, the
 * search is done again from it.
 */
static thiele_status continuous(search *s, double *out)
{
    thi_support support = s->cdf.expect->lik->ops->support;
    double width, centre = first_place(s, support, &width), x = centre;
    s->status = s->status == THIELE_OK ? thi_row_cdf_prepare(&s->cdf, s->ctx) : s->status;
    for (int round = 0; round < 3 && s->status == THIELE_OK; round++) {
        bracket b;
        s->cdf.again = false;
        s->status = find_bracket(s, support, centre, width, &b);
        if (s->status == THIELE_OK) {
            x = secant(s, support, b);
        }
        s->cdf.again = false;
        if (fabs(excess(s, thi_to_support(support, x))) <= 1e-5 * fmin(s->p, 1 - s->p)) {
            break;
        }
        centre = x;
        width *= 0.1;
    }
    *out = thi_to_support(support, x);
    return s->status;
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

/* P(Y <= low) < p <= P(Y <= high), with the excess at both. */
typedef struct count_bracket {
    double low, high, at_low, at_high;
} count_bracket;

/* From 1 on by squaring: any double in eleven steps. */
static thiele_status bracket_count(search *s, count_bracket *b)
{
    *b = (count_bracket){-1, 0, -s->p, excess(s, 0)};
    while (s->status == THIELE_OK && b->at_high < 0) {
        b->low = b->high;
        b->at_low = b->at_high;
        b->high = b->low < 2 ? b->low + 1 : b->low * b->low;
        if (b->high > 1e300) {
            return thi_fail(s->ctx, THIELE_ERROR_NUMERIC, "likelihood '%s': the quantile %g is beyond 1e300",
                            thiele_likelihood_name(s->cdf.expect->lik), s->p);
        }
        b->at_high = excess(s, b->high);
    }
    return s->status;
}

/* The next count to look at: where a straight line in log(2 + y) has no excess, every third time the middle of that. */
static double next_count(const count_bracket *b, int step)
{
    double low = log(b->low + 2), high = log(b->high + 2);
    double share = step % 3 < 2 ? -b->at_low / (b->at_high - b->at_low) : 0.5;
    double guess = b->high < 2 * b->low + 4 ? b->low + share * (b->high - b->low) : exp(low + share * (high - low)) - 2;
    return fmin(fmax(floor(guess), b->low + 1), b->high - 1);
}

/*
 * A line that passes one end closely tells where the other one is, and the count next to it is looked at, so that both
 * ends close in. Beyond 1e12 to that many digits.
 */
static thiele_status count_at(search *s, double *out)
{
    count_bracket b;
    s->status = bracket_count(s, &b);
    double last = 0;
    for (int step = 0; s->status == THIELE_OK && b.high - b.low > 1 + 1e-12 * b.high; step++) {
        double y = next_count(&b, step), at = excess(s, y);
        double reach = fmax(1, 0.01 * fabs(y - last));
        bool below = at < 0;
        last = y;
        *(below ? &b.low : &b.high) = y;
        *(below ? &b.at_low : &b.at_high) = at;
        double beside = floor(below ? y + reach : y - reach);
        if (s->status == THIELE_OK && beside > b.low && beside < b.high) {
            at = excess(s, beside);
            *(at < 0 ? &b.low : &b.high) = beside;
            *(at < 0 ? &b.at_low : &b.at_high) = at;
        }
    }
    *out = b.high;
    return s->status;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static thiele_status by_classes(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, int count,
                                const double *p, double *out)
{
    bool binary = expect->lik->ops->support == THI_SUPPORT_BINARY;
    int classes = binary ? 2 : expect->lik->classes;
    double *probability = NULL;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_alloc(ctx, &probability, (size_t)(classes * m->n), sizeof *probability));
    THI_TRY(thi_mixture_probabilities(expect, ctx, m, probability));
    for (int64_t i = 0; i < m->n * count; i++) {
        double sum = 0;
        int c = 0;
        while (c < classes - 1 && (sum += probability[i / count * classes + c]) < p[i % count]) {
            c++;
        }
        out[i] = binary ? 2 * c - 1 : c;
    }
out:
    thi_free(probability);
    return status;
}

static thiele_status in_closed_form(const thiele_likelihood *lik, thiele_context *ctx, const thi_marginals *m,
                                    int count, const double *p, double *out)
{
    double *z = NULL;
    thiele_status status = thi_alloc(ctx, &z, (size_t)count, sizeof *z);
    for (int j = 0; j < count && status == THIELE_OK; j++) {
        z[j] = thi_normal_quantile(p[j]);
    }
    if (status == THIELE_OK) {
        lik->ops->quantiles(lik, m->n, m->mu, m->v, count, z, out);
    }
    thi_free(z);
    return status;
}

static thiele_status search_row(thi_expect *expect, thiele_context *ctx, const thi_marginals *row, int count,
                                const double *p, double *out)
{
    bool counts = expect->lik->ops->support == THI_SUPPORT_COUNT;
    thiele_status status = THIELE_OK;
    for (int k = 0; k < expect->lik->outputs * count && status == THIELE_OK; k++) {
        search s = {{.expect = expect, .row = *row, .output = k / count}, ctx, p[k % count], THIELE_OK};
        status = thi_row_cdf_prepare(&s.cdf, ctx);
        if (status == THIELE_OK) {
            status = counts ? count_at(&s, &out[k]) : continuous(&s, &out[k]);
        }
    }
    return status;
}

static thiele_status by_density(thi_expect *expect, thiele_context *ctx, const thi_marginals *row, int count,
                                const double *p, double *out)
{
    thi_law *law;
    thiele_status status = thi_space_law(expect, ctx, &law);
    for (int k = 0; k < expect->lik->outputs * count && status == THIELE_OK; k++) {
        if (k % count == 0) {
            status = thi_law_fit(law, ctx, row, k / count, NULL, false);
        }
        if (status == THIELE_OK) {
            status = thi_law_quantile(law, p[k % count], &out[k]);
        }
    }
    return status;
}

static thiele_status check(const thi_expect *expect, thiele_context *ctx, const thi_marginals *m, int count,
                           const double *p)
{
    for (int j = 0; j < count; j++) {
        if (!(p[j] > 0 && p[j] < 1)) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a quantile must be between 0 and 1, not %g", p[j]);
        }
    }
    if (m->components > THI_EXPECT_BLOCK) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "quantiles need a mixture of at most %d components, not %d",
                        THI_EXPECT_BLOCK, m->components);
    }
    return thi_space_spread(expect->space, ctx, m->n, m->mu, m->v);
}

thiele_status thi_mixture_quantiles(thi_expect *expect, thiele_context *ctx, const thi_marginals *m, int count,
                                    const double *p, double *out)
{
    const thiele_likelihood *lik = expect->lik;
    bool classes = lik->ops->support == THI_SUPPORT_BINARY || lik->ops->support == THI_SUPPORT_CLASS;
    bool known = thi_has_cdf(lik);
    thi_marginals row;
    thiele_status status = check(expect, ctx, m, count, p);
    if (status != THIELE_OK || classes) {
        return status != THIELE_OK ? status : by_classes(expect, ctx, m, count, p, out);
    }
    if (lik->ops->quantiles != NULL && m->components == 1) {
        return in_closed_form(lik, ctx, m, count, p, out);
    }
    for (int64_t i = 0; i < m->n && status == THIELE_OK; i++) {
        double *own = out + i * lik->outputs * count;
        status = thi_gather(expect->space, ctx, m, i, &row);
        if (status == THIELE_OK) {
            status =
                known ? search_row(expect, ctx, &row, count, p, own) : by_density(expect, ctx, &row, count, p, own);
        }
    }
    return status;
}

thiele_status thi_quantile_block(thi_expect *expect, thiele_context *ctx, int64_t n, const double *mu, const double *v,
                                 int count, const double *p, double *out)
{
    thi_marginals m = {n, 1, NULL, mu, v};
    return thi_mixture_quantiles(expect, ctx, &m, count, p, out);
}

thiele_status thi_likelihood_quantile(thi_expect *expect, thiele_context *ctx, const double *mu, const double *v,
                                      double p, double *out)
{
    return thi_quantile_block(expect, ctx, 1, mu, v, 1, &p, out);
}
