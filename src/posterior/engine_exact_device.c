/*
 * Exact regression on another device (exact.h has the formulas, device_plugin.h the operations): what is of order n^2
 * and more happens there, features of the kernel and their adjoints here, so that every kernel of kinds.def is known.
 * The factor stays on the card through a gradient; a predictor gets a copy. Bits are the same from run to run on one
 * card and library, and differ from the CPU's.
 */
#include <math.h>
#include <string.h>

#include "posterior/device.h"
#include "posterior/engine.h"

#define LOG_2PI 1.837877066409345483561

typedef struct remote {
    thi_exact_shape shape;
    thi_prior prior; /* of begin */
    const thi_device_ops *ops;
    void *card;     /* the device's workspace */
    double *alpha;  /* n x P */
    double *middle; /* D x n: X less the mean of each column, for distances; D long sums follow */
    double *u;      /* of the leaves in turn, each features x n */
    double *wire;   /* the same as the device has them, n x features */
    size_t numbers; /* in each of the two */
    double noise, jitter, log_marginal;
    thi_entry_kernel kernel;
    bool begun; /* there is a factor */
} remote;

static double bytes(const void *shape, int threads)
{
    const thi_exact_shape *s = shape;
    (void)threads;
    return (double)sizeof(remote) + 8.0 * ((double)s->n * s->targets + 16.0);
}

static void close(void *self)
{
    remote *e = self;
    if (e != NULL) {
        if (e->card != NULL) {
            e->ops->exact_close(e->card);
        }
        thi_free(e->alpha);
        thi_free(e->middle);
        thi_free(e->u);
        thi_free(e->wire);
        thi_free(e);
    }
}

static bool ready(thiele_context *ctx)
{
    bool can = thi_device_open(ctx) == THIELE_OK;
    thi_recover(ctx);
    return can;
}

/* What a failure leaves is closed by the caller. */
static thiele_status open(void **self, thiele_context *ctx, const void *shape)
{
    const thi_exact_shape *s = shape;
    thi_device_said said = {""};
    remote *e;
    *self = NULL;
    thiele_status status;
    THI_TRY(thi_device_open(ctx));
    THI_TRY(thi_alloc(ctx, &e, 1, sizeof *e));
    *self = e;
    e->shape = *s;
    e->ops = ctx->device.ops;
    THI_TRY(thi_alloc(ctx, &e->alpha, (size_t)s->n * (size_t)s->targets, sizeof *e->alpha));
    if (e->ops->exact_open(&e->card, ctx->device.session, s->n, s->targets, &said) != THIELE_OK) {
        return thi_device_fail(ctx, &said);
    }
out:
    return status;
}

/* --- the kernel as the device has it ------------------------------------------------------------------------------ */

static void add_steps(const thi_node *node, thi_entry_kernel *kernel)
{
    if (node->type == THI_NODE_LEAF) {
        kernel->step[kernel->steps++] = (signed char)node->leaf;
        return;
    }
    add_steps(node->child[0], kernel);
    for (int c = 1; c < node->children; c++) {
        add_steps(node->child[c], kernel);
        kernel->step[kernel->steps++] = node->type == THI_NODE_SUM ? THI_ENTRY_SUM : THI_ENTRY_PRODUCT;
    }
}

_Static_assert((int)THI_ENTRY_LEAVES >= (int)THI_KERNEL_NODES_MAX && (int)THI_ENTRY_STEPS >= 2 * THI_KERNEL_NODES_MAX,
               "a kernel fits");
_Static_assert((int)THI_ENTRY_STACK > (int)THI_KERNEL_DEPTH_MAX + 1, "its values fit");

/* Returns the number of features of all leaves. */
static int translate(const thiele_kernel *kernel, thi_entry_kernel *out)
{
    int features = 0;
    *out = (thi_entry_kernel){.leaves = kernel->leaves};
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        out->leaf[l] = (thi_entry_leaf){.args = {thi_leaf_variance(leaf), thi_leaf_extra(leaf), leaf->degree},
                                        .profile = (int)leaf->kind->profile,
                                        .family = (int)leaf->kind->family,
                                        .features = leaf->features,
                                        .first = features};
        features += leaf->features;
    }
    add_steps(kernel->root, out);
    return features;
}

/* Distances of scaled inputs lose no digits far from the origin: they are taken from centred rows. */
static const double *rows_of(const remote *e, const thi_leaf *leaf)
{
    return leaf->kind->map->linear && leaf->kind->family == THI_DISTANCE ? e->middle : e->shape.X;
}

static thiele_status centre(remote *e, thiele_context *ctx, int D)
{
    size_t count = (size_t)D * (size_t)e->shape.n;
    thiele_status status = thi_alloc(ctx, &e->middle, count + (size_t)D, sizeof *e->middle);
    if (status == THIELE_OK) {
        double *mean = e->middle + count;
        for (int64_t i = 0; i < e->shape.n; i++) {
            for (int d = 0; d < D; d++) {
                mean[d] += e->shape.X[i * D + d] / (double)e->shape.n;
            }
        }
        for (int64_t i = 0; i < e->shape.n; i++) {
            for (int d = 0; d < D; d++) {
                e->middle[i * D + d] = e->shape.X[i * D + d] - mean[d];
            }
        }
    }
    return status;
}

/* features x n of one leaf to n x features, or back. */
static void turn(int64_t n, int features, double *rows, double *columns, bool back)
{
    for (int64_t i = 0; i < n; i++) {
        for (int f = 0; f < features; f++) {
            double *from = back ? &columns[i + f * n] : &rows[i * features + f];
            double *to = back ? &rows[i * features + f] : &columns[i + f * n];
            *to = *from;
        }
    }
}

static thiele_status make_features(remote *e, thiele_context *ctx)
{
    const thiele_kernel *kernel = e->prior.kernel;
    int64_t n = e->shape.n;
    size_t numbers = (size_t)n * (size_t)translate(kernel, &e->kernel);
    thiele_status status = THIELE_OK;
    if (e->middle == NULL) {
        THI_TRY(centre(e, ctx, kernel->dims));
    }
    if (e->u == NULL || numbers != e->numbers) {
        thi_free(e->u);
        thi_free(e->wire);
        e->u = e->wire = NULL;
        THI_TRY(thi_alloc_bare(ctx, &e->u, numbers, sizeof *e->u));
        THI_TRY(thi_alloc_bare(ctx, &e->wire, numbers, sizeof *e->wire));
        e->numbers = numbers;
    }
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        int64_t at = e->kernel.leaf[l].first * n;
        leaf->kind->map->forward(leaf, n, kernel->dims, rows_of(e, leaf), e->u + at);
        turn(n, leaf->features, e->u + at, e->wire + at, false);
    }
out:
    return status;
}

/* --- value -------------------------------------------------------------------------------------------------------- */

/* The mean of k(x, x) + noise. */
static double mean_diagonal(const remote *e)
{
    const thi_entry_rows rows = {e->shape.n, e->wire};
    double sum = 0.0;
    for (int64_t i = 0; i < e->shape.n; i++) {
        sum += thi_entry_value(&e->kernel, &rows, i, i, -1, NULL, NULL) / (double)e->shape.n;
    }
    return sum + e->noise;
}

/* Climbs the ladder of linalg/chol.c, filling anew at each rung. */
static thiele_status factor(remote *e, thiele_context *ctx, double *log_det)
{
    thi_device_said said = {""};
    int64_t bad = 0;
    double mean = mean_diagonal(e);
    for (int rung = 0; isfinite(mean) && rung < THI_JITTER_RUNGS; rung++) {
        e->jitter = thi_jitter_rung(rung) * mean;
        if (e->ops->exact_factor(e->card, &e->kernel, e->wire, e->noise + e->jitter, &bad, log_det, &said) !=
            THIELE_OK) {
            return thi_device_fail(ctx, &said);
        }
        if (bad == 0 && isfinite(*log_det)) {
            return THIELE_OK;
        }
    }
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "the kernel matrix could not be factored, even with %g added to its diagonal (pivot %lld of "
                    "%lld): the usual causes are equal or nearly equal rows with a noise fixed near zero, or a "
                    "length-scale far beyond the range of the data",
                    e->jitter, (long long)bad, (long long)e->shape.n);
}

/* alpha of every target from y - m. */
static thiele_status solve(remote *e, thiele_context *ctx, double *fit)
{
    const thi_exact_shape *s = &e->shape;
    const thi_prior *prior = &e->prior;
    thi_device_said said = {""};
    for (int p = 0; p < s->targets; p++) {
        double *alpha = e->alpha + p * s->n;
        thi_mean_fill(prior->mean, prior->mean_parameter, s->n, prior->kernel->dims, s->X, alpha);
        for (int64_t i = 0; i < s->n; i++) {
            alpha[i] = s->y[i * s->targets + p] - alpha[i];
        }
    }
    return e->ops->exact_solve(e->card, e->alpha, fit, &said) == THIELE_OK ? THIELE_OK : thi_device_fail(ctx, &said);
}

static thiele_status begin(void *self, thiele_context *ctx, const thi_prior *prior, const void *q)
{
    remote *e = self;
    double log_det, fit;
    thiele_status status;
    e->prior = *prior;
    e->noise = *(const double *)q;
    e->begun = false;
    THI_TRY(make_features(e, ctx));
    THI_TRY(factor(e, ctx, &log_det));
    THI_TRY(solve(e, ctx, &fit));
    e->log_marginal = -0.5 * (fit + e->shape.targets * (log_det + (double)e->shape.n * LOG_2PI));
    e->begun = true;
out:
    return status;
}

/* --- gradient ----------------------------------------------------------------------------------------------------- */

/* The adjoints of the features, which `wire` holds now, by the maps that made them. */
static void pull_features(remote *e, const double *leaf_bar, double *theta_bar)
{
    const thiele_kernel *kernel = e->prior.kernel;
    int64_t n = e->shape.n;
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        const double *X = rows_of(e, leaf);
        double *own = theta_bar + leaf->first, *u = e->u + e->kernel.leaf[l].first * n;
        double *u_bar = e->wire + e->kernel.leaf[l].first * n;
        own[leaf->lengthscales] += leaf_bar[2 * l];
        if (leaf->kind->extra != NULL) {
            own[leaf->lengthscales + 1] += leaf_bar[2 * l + 1];
        }
        leaf->kind->map->adjoint(leaf, n, kernel->dims, X, u, u_bar, own, NULL);
    }
}

static thiele_status gradient(remote *e, thiele_context *ctx, const thi_exact_bar *to)
{
    const thi_exact_shape *s = &e->shape;
    const thi_prior *prior = &e->prior;
    thi_device_said said = {""};
    double leaf_bar[2 * THI_ENTRY_LEAVES], added, *came = NULL;
    thiele_status status;
    THI_TRY(thi_alloc_bare(ctx, &came, e->numbers, sizeof *came));
    if (e->ops->exact_pull(e->card, &e->kernel, came, leaf_bar, &added, &said) != THIELE_OK) {
        status = thi_device_fail(ctx, &said);
        goto out;
    }
    for (int l = 0; l < e->kernel.leaves; l++) {
        const thi_entry_leaf *leaf = &e->kernel.leaf[l];
        turn(s->n, leaf->features, e->wire + leaf->first * s->n, came + leaf->first * s->n, true);
    }
    pull_features(e, leaf_bar, to->theta);
    for (int p = 0; p < s->targets; p++) {
        thi_mean_pull(prior->mean, prior->mean_parameter, s->n, prior->kernel->dims, s->X, e->alpha + p * s->n,
                      to->mean, NULL);
    }
    *to->log_noise += e->noise * added;
out:
    thi_free(came);
    return status;
}

static thiele_status end(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar)
{
    remote *e = self;
    (void)expected;
    *kl = -e->log_marginal;
    return bar == NULL ? THIELE_OK : gradient(e, ctx, bar);
}

/* --- what stays --------------------------------------------------------------------------------------------------- */

static thiele_status freeze(void *self, thiele_context *ctx, int latent, thi_predictor *out)
{
    remote *e = self;
    thi_prior prior = e->prior;
    thi_device_said said = {""};
    (void)latent;
    thiele_status status = e->begun ? THIELE_OK : begin(e, ctx, &prior, &e->noise);
    if (status == THIELE_OK) {
        status = thi_predictor_begin(out, ctx, &prior, e->shape.n, e->shape.X, 1);
    }
    if (status == THIELE_OK && e->ops->exact_factor_out(e->card, out->L.data, &said) != THIELE_OK) {
        thi_predictor_clear(out);
        status = thi_device_fail(ctx, &said);
    }
    if (status == THIELE_OK) {
        memcpy(out->a, e->alpha, (size_t)e->shape.n * sizeof *out->a);
    }
    return status;
}

static thiele_status leave_out(void *self, thiele_context *ctx, double *mean, double *variance)
{
    const remote *e = self;
    const thi_exact_shape *s = &e->shape;
    thi_device_said said = {""};
    if (e->ops->exact_diagonal(e->card, variance, &said) != THIELE_OK) {
        return thi_device_fail(ctx, &said);
    }
    for (int64_t i = 0; i < s->n; i++) {
        double c = variance[i];
        for (int p = 0; p < s->targets; p++) {
            mean[i * s->targets + p] = s->y[i * s->targets + p] - e->alpha[i + p * s->n] / c;
        }
        variance[i] = 1.0 / c;
    }
    return THIELE_OK;
}

static double jitter(const void *self)
{
    return ((const remote *)self)->jitter;
}

const thi_engine thi_engine_exact_device = {
    .name = "exact-device",
    .words = "the same on a CUDA card",
    .ready = ready,
    .bytes = bytes,
    .open = open,
    .close = close,
    .begin = begin,
    .end = end,
    .freeze = freeze,
    .leave_out = leave_out,
    .jitter = jitter,
};
