/*
 * Prediction of one row. n = 500, D = 8: the mean takes a kernel against n points (1 microsecond), the variance one
 * triangle of 1 MB more.
 */
#include "posterior/single.h"

#include <math.h>
#include <string.h>

#include "kernel/anchors.h"
#include "linalg/panels.h"
#include "posterior/triangle.h"

struct thi_single {
    const thi_predictor *p;
    thi_single_way way;
    thi_anchors anchors, mean_anchors; /* the second of separate bases only */
    thi_panels *factor;                /* one a component: C or, for solves, R */
    double *k, *w, *u;                 /* work space: k(basis, x), or (mean_basis, x); L^-1 k; a factor's product */
};

/* --- the factors -----------------------------------------------------------------------------------------------------
 */

/* C of one component, in panels. */
static thiele_status make_one(const thi_predictor *p, thiele_context *ctx, int component, thi_panels *out)
{
    thi_matrix C;
    thiele_status status = thi_triangle_make(&C, ctx, p, component);
    if (status == THIELE_OK) {
        status = thi_panels_make(out, ctx, THI_PANELS_LOWER, THI_N, C);
        thi_free(C.data);
    }
    return status;
}

static thiele_status make_root(const thi_predictor *p, thiele_context *ctx, int component, thi_panels *out)
{
    bool triangle = p->plus == THI_PLUS_TRIANGLE;
    thi_matrix N = {0};
    thiele_status status;
    if (p->plus != THI_PLUS_PRECISION) {
        return thi_panels_make(out, ctx, triangle ? THI_PANELS_UPPER : THI_PANELS_WHOLE, triangle ? THI_T : THI_N,
                               p->R[component]);
    }
    THI_TRY(thi_predictor_invert_root(p, ctx, component, &N));
    THI_TRY(thi_panels_make(out, ctx, THI_PANELS_LOWER, THI_N, N));
out:
    thi_free(N.data);
    return status;
}

static void clear_factors(thi_single *s)
{
    for (int k = 0; k < s->p->components; k++) {
        thi_panels_clear(&s->factor[k]);
    }
}

/* One triangle a component; *fits says whether that is possible. */
static thiele_status try_one(thi_single *s, thiele_context *ctx, bool *fits)
{
    thiele_status status = THIELE_OK;
    s->way = THI_SINGLE_ONE;
    for (int k = 0; k < s->p->components && status == THIELE_OK; k++) {
        status = make_one(s->p, ctx, k, &s->factor[k]);
    }
    *fits = status != THIELE_ERROR_NUMERIC;
    if (!*fits) {
        thi_recover(ctx);
        return THIELE_OK;
    }
    return status;
}

static thiele_status make_solve(thi_single *s, thiele_context *ctx)
{
    thiele_status status = THIELE_OK;
    clear_factors(s);
    s->way = THI_SINGLE_SOLVE;
    for (int k = 0; s->p->plus != THI_PLUS_NONE && k < s->p->components && status == THIELE_OK; k++) {
        status = make_root(s->p, ctx, k, &s->factor[k]);
    }
    return status;
}

/* --- one row ---------------------------------------------------------------------------------------------------------
 */

/* |P x|^2 */
static double norm_of(const thi_single *s, const thi_panels *P, const double *x)
{
    thi_panels_multiply(P, x, s->u);
    return thi_blas_dot(P->rows, s->u, s->u);
}

/* w = L^-1 (scale . k) */
static void whiten(const thi_single *s)
{
    const thi_predictor *p = s->p;
    for (int64_t i = 0; i < p->n; i++) {
        s->w[i] = p->scale != NULL ? p->scale[i] * s->k[i] : s->k[i];
    }
    thi_blas_trsv(THI_N, p->L, s->w);
}

/* variance (components), with k(basis, x) in s->k. */
static void variances(const thi_single *s, const double *x, double *variance)
{
    const thi_predictor *p = s->p;
    bool keeps = p->conditional != THI_CONDITIONAL_NONE;
    double prior = keeps ? thi_anchors_diagonal(&s->anchors, x) : 0.0;
    if (s->way == THI_SINGLE_SOLVE && p->n > 0) {
        whiten(s);
        prior -= keeps ? thi_blas_dot(p->n, s->w, s->w) : 0.0;
    }
    for (int k = 0; k < p->components; k++) {
        double more = 0.0;
        if (p->n > 0 && s->way == THI_SINGLE_ONE) {
            more = (keeps ? -1.0 : 1.0) * norm_of(s, &s->factor[k], s->k);
        } else if (p->n > 0 && p->plus != THI_PLUS_NONE) {
            more = norm_of(s, &s->factor[k], p->plus == THI_PLUS_KERNEL ? s->k : s->w);
        }
        double sum = thi_predictor_tau(p) * (prior + more);
        variance[k] = sum < 0.0 ? 0.0 : sum;
    }
}

thiele_status thi_single_marginals(const thi_single *single, thiele_context *ctx, const double *x, double *mean,
                                   double *variance)
{
    const thi_single *s = single;
    const thi_predictor *p = s->p;
    int64_t clipped = 0;
    if (s->way == THI_SINGLE_GENERAL) {
        return thi_predictor_marginals(p, ctx, 1, x, mean, variance, &clipped);
    }
    bool apart = p->mean_basis != NULL;
    int64_t n = apart ? p->mean_n : p->n;
    thi_anchors_fill(apart ? &s->mean_anchors : &s->anchors, x, s->k);
    thi_mean_fill(p->mean, p->mean_parameter, 1, p->kernel->dims, x, mean);
    for (int k = p->components - 1; k >= 0; k--) {
        mean[k] = mean[0] + thi_blas_dot(n, s->k, p->a + k * n);
    }
    if (variance != NULL) {
        if (apart) {
            thi_anchors_fill(&s->anchors, x, s->k);
        }
        variances(s, x, variance);
    }
    return THIELE_OK;
}

/* --- whether one triangle is good enough -----------------------------------------------------------------------------
 */

static bool agree(const thi_single *s, thiele_context *ctx, int64_t n, const double *X, const double *want,
                  double *mean, double *got)
{
    const thi_predictor *p = s->p;
    bool all = true;
    for (int64_t i = 0; i < n && all; i++) {
        const double *x = X + i * p->kernel->dims;
        double unit = thi_anchors_diagonal(&s->anchors, x);
        all = thi_single_marginals(s, ctx, x, mean, got) == THIELE_OK;
        for (int k = 0; k < p->components; k++) {
            all = all && fabs(got[k] - want[k * n + i]) <= THI_TRIANGLE_LOSS * unit;
        }
    }
    return all;
}

static thiele_status test_one(const thi_single *s, thiele_context *ctx, bool *good)
{
    const thi_predictor *p = s->p;
    size_t K = (size_t)p->components;
    double *X = NULL, *out = NULL;
    int64_t clipped = 0;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &X, THI_TRIANGLE_PROBES * (size_t)p->kernel->dims, sizeof *X));
    THI_TRY(thi_alloc(ctx, &out, 2 * (THI_TRIANGLE_PROBES + 1) * K, sizeof *out));
    int64_t n = thi_triangle_probes(p, X);
    double *want = out + THI_TRIANGLE_PROBES * K, *own = out + 2 * THI_TRIANGLE_PROBES * K;
    THI_TRY(thi_predictor_marginals(p, ctx, n, X, out, want, &clipped));
    *good = agree(s, ctx, n, X, want, own, own + K);
out:
    thi_free(X);
    thi_free(out);
    return status;
}

static thiele_status make_factors(thi_single *s, thiele_context *ctx)
{
    bool good = s->p->plus != THI_PLUS_KERNEL;
    thiele_status status = THIELE_OK;
    THI_TRY(thi_alloc(ctx, &s->factor, (size_t)s->p->components, sizeof *s->factor));
    if (s->p->n == 0) {
        s->way = THI_SINGLE_ONE;
        return THIELE_OK;
    }
    if (good) {
        THI_TRY(try_one(s, ctx, &good));
    }
    if (good) {
        THI_TRY(test_one(s, ctx, &good));
    }
    if (!good) {
        THI_TRY(make_solve(s, ctx));
    }
out:
    return status;
}

/* --- making one ------------------------------------------------------------------------------------------------------
 */

static thiele_status make_space(thi_single *s, thiele_context *ctx)
{
    const thi_predictor *p = s->p;
    int64_t most = p->n > p->mean_n ? p->n : p->mean_n;
    size_t length = (size_t)thi_panel_length(most);
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &s->k, length, sizeof *s->k));
    THI_TRY(thi_alloc(ctx, &s->w, length, sizeof *s->w));
    THI_TRY(thi_alloc(ctx, &s->u, length, sizeof *s->u));
    THI_TRY(thi_anchors_make(&s->anchors, ctx, p->kernel, p->n, p->basis));
    if (p->mean_basis != NULL) {
        THI_TRY(thi_anchors_make(&s->mean_anchors, ctx, p->kernel, p->mean_n, p->mean_basis));
    }
out:
    return status;
}

thiele_status thi_single_open(thi_single **out, thiele_context *ctx, const thi_predictor *predictor, bool variance)
{
    thi_single *s = NULL;
    thiele_status status;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &s, 1, sizeof *s));
    *s = (thi_single){.p = predictor, .way = THI_SINGLE_MEAN};
    if (predictor->local != NULL || predictor->mean_log_c != NULL) {
        s->way = THI_SINGLE_GENERAL;
        *out = s;
        return THIELE_OK;
    }
    THI_TRY(make_space(s, ctx));
    if (variance) {
        THI_TRY(make_factors(s, ctx));
    }
    *out = s;
    return THIELE_OK;
out:
    thi_single_close(s);
    return status;
}

void thi_single_close(thi_single *single)
{
    if (single == NULL) {
        return;
    }
    if (single->factor != NULL) {
        clear_factors(single);
    }
    thi_free(single->factor);
    thi_anchors_clear(&single->anchors);
    thi_anchors_clear(&single->mean_anchors);
    thi_free(single->k);
    thi_free(single->w);
    thi_free(single->u);
    thi_free(single);
}

thi_single_way thi_single_way_of(const thi_single *single)
{
    return single->way;
}
