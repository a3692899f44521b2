/*
 * Mean and variance of y from the density alone, by those given f: at each node f of the ladder the density is
 * integrated over y (predictive_distribution.h), one evaluation a place, and what comes out is smooth in f however
 * narrow the density is. A few dozen integrals over y in place of a thousand over f. With Z(f) the sum of p(y | f) over
 * y, 1 unless it is not normalised, E[y] = E[Z m] / E[Z],  E[y^2] = E[Z (m^2 + s)] / E[Z].
 */
#include <math.h>

#include "expect/predictive_distribution.h"

/* What the integrals over y are good to; from rules of many nodes on, what a density may have lost by rounding. */
static const double TOLERANCE = 1e-7, ROUGH = 1e-4, NORMALISED = 1e-5;
enum { MANY = 200 };

/* A node at which y is beyond all bounds (counts above 2^52) is left out when its weight is below this. */
static const double UNSEEN = 1e-24;

typedef struct given {
    thi_law *law;
    thiele_context *ctx;
    int output;
    double centre, top; /* m and log Z at f = mu */
    bool endless;       /* the variance is infinite there */
    int64_t nodes;      /* evaluated so far */
    thiele_status status;
} given;

static thiele_status law_given(const given *g, const double *f, double *log_sum)
{
    static const double none[3] = {0, 0, 0};
    thi_law *law = g->law;
    thi_marginals row = {1, 1, NULL, f, none};
    thiele_status status = thi_law_fit(law, g->ctx, &row, g->output, NULL, true);
    const thi_cell *last = &law->cell[law->cells - 1];
    *log_sum = status == THIELE_OK ? law->peak.top + log(last->before + last->sum[0]) : 0;
    *log_sum = fabs(*log_sum) < NORMALISED ? 0 : *log_sum;
    return status;
}

/* Z, Z (m - m_0) and Z ((m - m_0)^2 + s) over Z_0. */
static void evaluate_given(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    given *g = in->extra;
    (void)y;
    g->nodes += n;
    for (int64_t i = 0; i < n; i++) {
        double log_sum = 0;
        thiele_status status = g->status == THIELE_OK ? law_given(g, f + i * in->lik->latents, &log_sum) : g->status;
        bool beyond = status == THIELE_ERROR_NUMERIC;
        double Z = beyond ? NAN : exp(log_sum - g->top), away = g->law->mean - g->centre;
        g->status = beyond ? THIELE_OK : status;
        value[3 * i] = Z;
        value[3 * i + 1] = Z * away;
        value[3 * i + 2] = g->endless ? 0 : Z * (g->law->variance + away * away);
    }
}

static void reduce_given(const thi_integrand *in, const thi_points *p, double *result)
{
    (void)in;
    for (int64_t k = 0; k < p->count; k++) {
        const double *value = p->value + 3 * (p->at + k);
        bool unseen = isnan(value[0]) && p->w[k] < UNSEEN;
        for (int j = 0; j < 3 && !unseen; j++) {
            result[j] += p->w[k] * value[j];
        }
    }
}

static double variance_of(const double *result)
{
    double away = result[1] / result[0];
    return fmax(0, result[2] / result[0] - away * away);
}

static bool settled_given(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                          const double *now)
{
    const given *g = in->extra;
    (void)tolerance;
    (void)centre;
    double variance = variance_of(now), away = now[1] / now[0], sd = g->endless ? fabs(away) : sqrt(variance);
    double close = g->nodes < MANY ? TOLERANCE : ROUGH;
    return g->status != THIELE_OK || (fabs(away - before[1] / before[0]) <= close * sd &&
                                      fabs(variance - variance_of(before)) <= close * variance);
}

thiele_status thi_conditional_moments(thi_expect *expect, thiele_context *ctx, const double *mu, double v, int output,
                                      double *mean, double *variance, bool *found)
{
    thi_space *space = expect->space;
    given g = {.ctx = ctx, .output = output};
    int none = 0, level = THI_LEVELS;
    double sd = sqrt(v), result[3];
    thi_integrand in = {.lik = expect->lik, .values = 3, .results = 3, .extra = &g, .evaluate = evaluate_given};
    in.reduce = reduce_given;
    in.settled = settled_given;
    thi_block_rows one = {1, &none, NULL, mu, &sd, NULL};
    *found = false;
    thiele_status status;
    THI_TRY(thi_space_law(expect, ctx, &g.law));
    status = law_given(&g, mu, &g.top);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(ctx); /* too narrow to be found, as it is without the spread of f */
        return THIELE_OK;
    }
    THI_TRY(status);
    g.centre = g.law->mean;
    g.endless = isinf(g.law->variance);
    if (!isfinite(g.centre)) {
        goto out; /* there is no mean */
    }
    THI_TRY(thi_climb(space, ctx, &in, &one, result, &level));
    THI_TRY(g.status);
    thi_recover(ctx); /* a node that was beyond all bounds has left a message */
    *mean = g.centre + result[1] / result[0];
    *variance = g.endless ? INFINITY : variance_of(result);
    *found = level < THI_LEVELS && isfinite(*mean) && !isnan(*variance);
out:
    return status;
}
