/*
 * An engine that was not there, and its fixture: all it takes to add one. One inducing input z, u = f(z) - m(z) =
 * sqrt(k(z, z)) w, q(w) = N(m, s^2), V = k(z, x) / sqrt(k(z, z)):
 *   mu = m(x) + V m      v = k(x, x) - V^2 (1 - s^2)      KL = (s^2 + m^2 - 1)/2 - log s
 * It knows the expectations of Gaussian noise, which then never leave it.
 */
#include "engine_fixtures.h"

#include "fit/spec.h"

typedef struct toy_shape {
    int64_t capacity;
} toy_shape;

typedef struct toy_q {
    const double *z;
    double *m, *log_s;
} toy_q;

typedef struct toy_bar {
    double *theta, *mean, *z, *m, *log_s;
} toy_bar;

typedef struct toy {
    thi_prior prior;
    toy_q q;
    thi_inputs z, rows;
    double kzz;
    const double *X;
    double *mu, *v, *g, *h, *V, *Vbar; /* capacity each; V of the present rows, then k(z, x) no more */
    double gV, hVV;                    /* sum g V, sum h V^2 since begin */
} toy;

static double toy_bytes(const void *shape, int threads)
{
    (void)threads;
    return (double)sizeof(toy) + 6.0 * 8.0 * (double)((const toy_shape *)shape)->capacity;
}

static void toy_close(void *self)
{
    toy *t = self;
    if (t != NULL) {
        thi_inputs_clear(&t->z);
        thi_inputs_clear(&t->rows);
        thi_free(t->mu);
        thi_free(t);
    }
}

static thiele_status toy_open(void **self, thiele_context *ctx, const void *shape)
{
    size_t n = (size_t)((const toy_shape *)shape)->capacity;
    toy *t;
    *self = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &t, 1, sizeof *t));
    *self = t;
    THI_TRY(thi_alloc(ctx, &t->mu, 6 * n, sizeof *t->mu));
    t->v = t->mu + n;
    t->g = t->v + n;
    t->h = t->g + n;
    t->V = t->h + n;
    t->Vbar = t->V + n;
out:
    return status;
}

static thiele_status toy_begin(void *self, thiele_context *ctx, const thi_prior *prior, const void *q)
{
    toy *t = self;
    thiele_status status;
    t->prior = *prior;
    t->q = *(const toy_q *)q;
    t->gV = t->hVV = 0.0;
    thi_inputs_clear(&t->z);
    THI_TRY(thi_inputs_make(&t->z, ctx, prior->kernel, 1, t->q.z));
    THI_TRY(thi_kernel_fill_diagonal(prior->kernel, ctx, &t->z, &t->kzz));
out:
    return status;
}

static thiele_status toy_marginals(void *self, thiele_context *ctx, int64_t n, const double *X, double *mu, double *v)
{
    toy *t = self;
    const thi_prior *prior = &t->prior;
    double m = *t->q.m, less = 1.0 - exp(2.0 * *t->q.log_s);
    thiele_status status;
    t->X = X;
    thi_inputs_clear(&t->rows);
    THI_TRY(thi_inputs_make(&t->rows, ctx, prior->kernel, n, X));
    THI_TRY(thi_kernel_fill(prior->kernel, ctx, &t->rows, &t->z, thi_matrix_view(t->V, n, 1, n), false));
    THI_TRY(thi_kernel_fill_diagonal(prior->kernel, ctx, &t->rows, t->v));
    thi_mean_fill(prior->mean, prior->mean_parameter, n, prior->kernel->dims, X, t->mu);
    for (int64_t i = 0; i < n; i++) {
        t->V[i] /= sqrt(t->kzz);
        t->mu[i] += t->V[i] * m;
        t->v[i] -= t->V[i] * t->V[i] * less;
    }
    if (mu != NULL) {
        memcpy(mu, t->mu, (size_t)n * sizeof *mu);
        memcpy(v, t->v, (size_t)n * sizeof *v);
    }
out:
    return status;
}

static bool toy_expects(const void *self, const thiele_likelihood *lik, const char *method)
{
    (void)self;
    return thi_is_gaussian(lik) && (method == NULL || strcmp(method, "closed") == 0);
}

/* E = -(log(2 pi s2) + ((y - mu)^2 + v)/s2)/2 */
static thiele_status toy_expect(void *self, thiele_context *ctx, const thi_engine_question *question)
{
    const double two_pi = 6.283185307179586;
    toy *t = self;
    double s2 = question->lik->value[0], weight = question->weight;
    (void)ctx;
    for (int64_t i = 0; i < t->rows.n; i++) {
        double gap = question->y[i] - t->mu[i], misfit = (gap * gap + t->v[i]) / s2;
        question->expected[0] -= 0.5 * weight * (log(two_pi * s2) + misfit);
        if (question->phi_bar != NULL) {
            question->phi_bar[0] += 0.5 * weight * (misfit - 1.0);
        }
        t->g[i] = weight * gap / s2;
        t->h[i] = -0.5 * weight / s2;
    }
    return THIELE_OK;
}

/* What is known of V and k(x, x) to the kernel, z and the mean. */
static thiele_status toy_give(const toy *t, thiele_context *ctx, const double *g, const double *h, const toy_bar *bar)
{
    const thi_prior *prior = &t->prior;
    int64_t n = t->rows.n;
    double m = *t->q.m, less = 1.0 - exp(2.0 * *t->q.log_s), kzz_bar = 0.0;
    thiele_status status;
    for (int64_t i = 0; i < n; i++) {
        double slope = g[i] * m - 2.0 * h[i] * t->V[i] * less;
        t->Vbar[i] = slope / sqrt(t->kzz);
        kzz_bar -= 0.5 * slope * t->V[i] / t->kzz;
    }
    thi_mean_pull(prior->mean, prior->mean_parameter, n, prior->kernel->dims, t->X, g, bar->mean, NULL);
    THI_TRY(thi_kernel_pull(prior->kernel, ctx, &t->rows, &t->z, thi_matrix_view(t->Vbar, n, 1, n), false, bar->theta,
                            bar->z));
    THI_TRY(thi_kernel_pull_diagonal(prior->kernel, ctx, &t->rows, h, bar->theta, NULL));
    THI_TRY(thi_kernel_pull_diagonal(prior->kernel, ctx, &t->z, &kzz_bar, bar->theta, bar->z));
out:
    return status;
}

static thiele_status toy_pull(void *self, thiele_context *ctx, const double *g, const double *h, const void *bar)
{
    toy *t = self;
    g = g != NULL ? g : t->g;
    h = h != NULL ? h : t->h;
    for (int64_t i = 0; i < t->rows.n; i++) {
        t->gV += g[i] * t->V[i];
        t->hVV += h[i] * t->V[i] * t->V[i];
    }
    return bar == NULL ? THIELE_OK : toy_give(t, ctx, g, h, bar);
}

static thiele_status toy_end(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar)
{
    const toy *t = self;
    const toy_bar *to = bar;
    double m = *t->q.m, s2 = exp(2.0 * *t->q.log_s);
    (void)ctx;
    (void)expected;
    *kl = 0.5 * (s2 + m * m - 1.0) - *t->q.log_s;
    if (to != NULL) {
        *to->m += t->gV - m;
        *to->log_s += 2.0 * s2 * t->hVV - s2 + 1.0;
    }
    return THIELE_OK;
}

/* 1/s^2 and m/s^2 towards 1 - 2 sum h V^2 and sum g V - 2 m sum h V^2 (math.md section 3). */
static void toy_step(void *self, double rho, const void *q)
{
    const toy *t = self;
    const toy_q *to = q;
    double before = exp(-2.0 * *to->log_s), after = (1.0 - rho) * before + rho * (1.0 - 2.0 * t->hVV);
    double along = t->gV - 2.0 * *to->m * t->hVV;
    *to->m = ((1.0 - rho) * *to->m * before + rho * along) / after;
    *to->log_s = -0.5 * log(after);
}

static thiele_status toy_freeze(void *self, thiele_context *ctx, int latent, thi_predictor *out)
{
    const toy *t = self;
    thiele_status status;
    (void)latent;
    THI_TRY(thi_predictor_begin(out, ctx, &t->prior, 1, t->q.z, 1));
    THI_TRY(thi_alloc(ctx, &out->R, 1, sizeof *out->R));
    THI_TRY(thi_matrix_alloc(&out->R[0], ctx, 1, 1));
    out->plus = THI_PLUS_TRIANGLE;
    out->R[0].data[0] = exp(*t->q.log_s);
    out->L.data[0] = sqrt(t->kzz);
    out->a[0] = *t->q.m / sqrt(t->kzz);
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(out);
    }
    return status;
}

const thi_engine thi_engine_toy = {
    .name = "toy",
    .words = "a Gaussian over one inducing variable",
    .bytes = toy_bytes,
    .open = toy_open,
    .close = toy_close,
    .begin = toy_begin,
    .marginals = toy_marginals,
    .expects = toy_expects,
    .expect = toy_expect,
    .pull = toy_pull,
    .end = toy_end,
    .step = toy_step,
    .freeze = toy_freeze,
};

/* --- its fixture: x ends with z, m and log s ---------------------------------------------------------------------- */

typedef struct toy_own {
    toy_shape shape;
    toy_q q;
    toy_bar bar;
} toy_own;

static void open_toy(engine_problem *p, thiele_context *ctx, int variant, int size)
{
    static toy_own own;
    (void)variant;
    int64_t z = fixture_begin(p, ctx, 12 * size, 1, FIXTURE_DIMS + 2), m = z + FIXTURE_DIMS;
    own.shape = (toy_shape){p->n};
    own.q = (toy_q){p->x + z, p->x + m, p->x + m + 1};
    own.bar = (toy_bar){p->bar, p->bar + fixture_mean(p, 0), p->bar + z, p->bar + m, p->bar + m + 1};
    p->steps = true;
    p->own = &own;
    p->shape = &own.shape;
    p->q = &own.q;
    p->adjoints = &own.bar;
}

const engine_fixture fixture_toy = {.variants = 1, .open = open_toy};
