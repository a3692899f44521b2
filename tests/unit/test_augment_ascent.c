/*
 * Coordinate ascent of augmented likelihoods (augmented-aaci Algorithm 1), which natural steps of size 1 are, at all
 * rows and with inducing inputs: the bound never falls, the fixed point is a stationary point of it to 1e-8, and there
 * it lies below the bound by quadrature of the same q.
 *
 * What a step would still change is the gradient by the mean parameters of q: with E[f] and E[f^2] of a row
 *   dL/dE[f] = nu' - nu,   dL/dE[f^2] = -(lambda' - lambda)/2,   lambda' = -2h,  nu' = g - 2h mu
 * and with inducing inputs the same of t and T.
 */
#include "likelihood_testing.h"

#include "likelihood/augment.h"
#include "posterior/dense.h"
#include "posterior/variational.h"

enum { N = 30, M = 7, MOST = 3, STEPS = 20000 };
/* The ascent is linear, and slow where the gap is wide: it goes on until this much is left of the gradient. */
static const double ENOUGH = 2e-9, STATIONARY = 1e-8;

typedef struct setting {
    thiele_likelihood *lik;
    thiele_kernel *kernel;
    double X[N], y[N];
    double mu[MOST * N], v[MOST * N], E[N], g[MOST * N], h[MOST * N]; /* Q x N */
} setting;

static void open_setting(setting *s, thiele_likelihood *lik)
{
    s->lik = lik;
    assert_ok(ctx, thiele_kernel_parse(&s->kernel, ctx, "matern52(lengthscale=0.7, variance=1.5)", 1, NULL));
    test_normals(N, 1, s->X);
    for (int i = 0; i < N; i++) {
        double f = sin(2.5 * s->X[i]);
        test_ordinary(lik, i % 7 == 0 ? i % 3 : f > 0.5 ? 2 : f < -0.5 ? 0 : 1, &s->y[i]);
    }
}

static void close_setting(setting *s)
{
    thiele_kernel_destroy(s->kernel);
}

/* At the present marginals. */
static double expected(setting *s)
{
    double sum = 0.0;
    thi_augmented_expectation(s->lik, N, s->y, s->mu, s->v, s->E, s->g, s->h, NULL);
    for (int i = 0; i < N; i++) {
        sum += s->E[i];
    }
    return sum;
}

static double expected_by_quadrature(const setting *s)
{
    double E[N], g[N], h[N], sum = 0.0;
    assert_ok(ctx, thiele_likelihood_expect(s->lik, ctx, NULL, N, s->y, s->mu, s->v, E, g, h, NULL));
    for (int i = 0; i < N; i++) {
        sum += E[i];
    }
    return sum;
}

/* After each step: up to rounding it rises. */
static void assert_rises(const char *text, int step, double before, double bound)
{
    if (!(bound >= before - 1e-12 * (1.0 + fabs(bound)))) {
        fail_msg("%s, step %d: the bound falls from %.17g to %.17g", text, step, before, bound);
    }
}

static void assert_ends(const setting *s, double left, double bound_part)
{
    if (!(left <= STATIONARY)) {
        fail_msg("%s: %g of the gradient is left", thiele_likelihood_name(s->lik), left);
    }
    if (s->lik->latents == 1) {
        double gap = expected_by_quadrature(s) - bound_part;
        assert_true(gap > 0.0 && gap < 0.5 * N);
    }
}

/* --- at all rows ----------------------------------------------------------------------------------------------------
 */

/* Conditions latent q; its marginals go to the setting. Returns its KL. */
static double condition(setting *s, thi_dense *dense, int q, const double *lambda, const double *nu)
{
    double mu[N], v[N];
    int Q = s->lik->latents;
    assert_ok(ctx, thi_dense_condition(dense, ctx, lambda, nu, mu, v));
    for (int i = 0; i < N; i++) {
        s->mu[q + i * Q] = mu[i];
        s->v[q + i * Q] = v[i];
    }
    return thi_dense_kl(dense, lambda, v);
}

/* The sites of one step; returns the largest change. */
static double renew(const setting *s, int q, double *lambda, double *nu)
{
    double largest = 0.0;
    int Q = s->lik->latents;
    for (int i = 0; i < N; i++) {
        int at = q + i * Q;
        double to_lambda = -2.0 * s->h[at], to_nu = s->g[at] - 2.0 * s->h[at] * s->mu[at];
        largest = fmax(largest, fmax(0.5 * fabs(to_lambda - lambda[i]), fabs(to_nu - nu[i])));
        lambda[i] = to_lambda;
        nu[i] = to_nu;
    }
    return largest;
}

static void rows_of(thiele_likelihood *lik)
{
    if (thi_is_augmented(lik)) {
        setting s;
        thi_dense dense[MOST];
        double lambda[MOST][N] = {{0}}, nu[MOST][N] = {{0}}, bound = -INFINITY, part = 0.0, left = INFINITY;
        open_setting(&s, lik);
        int Q = s.lik->latents;
        thi_prior prior = {s.kernel, THI_MEAN_ZERO, NULL};
        for (int q = 0; q < Q; q++) {
            assert_ok(ctx, thi_dense_open(&dense[q], ctx, N, s.X, NULL, NULL));
            assert_ok(ctx, thi_dense_prior(&dense[q], ctx, &prior));
        }
        for (int step = 0; step < STEPS && left > ENOUGH; step++) {
            double before = bound, kl = 0.0;
            for (int q = 0; q < Q; q++) {
                kl += condition(&s, &dense[q], q, lambda[q], nu[q]);
            }
            part = expected(&s);
            bound = part - kl;
            assert_rises(thiele_likelihood_name(lik), step, before, bound);
            left = 0.0;
            for (int q = 0; q < Q; q++) {
                left = fmax(left, renew(&s, q, lambda[q], nu[q]));
            }
        }
        assert_ends(&s, left, part);
        for (int q = 0; q < Q; q++) {
            thi_dense_close(&dense[q]);
        }
        close_setting(&s);
    }
}

static void at_all_rows(void **state)
{
    (void)state;
    test_all_likelihoods(rows_of);
}

/* --- with inducing inputs -------------------------------------------------------------------------------------------
 */

/* A step of size 1 of all sites; returns the largest change, of T by half. */
static double step_sites(thi_variational *v, int Q, thi_sites *sites)
{
    double T[MOST][M * M], t[MOST][M], largest = 0.0;
    for (int q = 0; q < Q; q++) {
        memcpy(T[q], sites[q].sum.T.data, sizeof T[q]);
        memcpy(t[q], sites[q].sum.t, sizeof t[q]);
    }
    thi_variational_step(v, 1.0, sites);
    for (int q = 0; q < Q; q++) {
        for (int j = 0; j < M; j++) {
            for (int i = j; i < M; i++) {
                largest = fmax(largest, 0.5 * fabs(sites[q].sum.T.data[i + j * M] - T[q][i + j * M]));
            }
            largest = fmax(largest, fabs(sites[q].sum.t[j] - t[q][j]));
        }
    }
    return largest;
}

static void inducing_of(thiele_likelihood *lik)
{
    if (thi_is_augmented(lik)) {
        setting s;
        thi_variational *v;
        thi_sites sites[MOST];
        thi_prior prior[MOST];
        double Z[M], bound = -INFINITY, part = 0.0, left = INFINITY;
        const double *Z_of[MOST] = {Z, Z, Z};
        open_setting(&s, lik);
        int Q = s.lik->latents;
        thi_shape shape = {.latents = Q,
                           .components = 1,
                           .dims = 1,
                           .inducing = M,
                           .capacity = N,
                           .whitened = true,
                           .fixed_Z = true,
                           .steps = true};
        for (int i = 0; i < M; i++) {
            Z[i] = -1.8 + 0.6 * i;
        }
        assert_ok(ctx, thi_variational_open(&v, ctx, &shape));
        for (int q = 0; q < Q; q++) {
            prior[q] = (thi_prior){s.kernel, THI_MEAN_ZERO, NULL};
            assert_ok(ctx, thi_sites_alloc(&sites[q], ctx, M));
        }
        for (int step = 0; step < STEPS && left > ENOUGH; step++) {
            double before = bound, kl = 0.0;
            assert_ok(ctx, thi_variational_begin(v, ctx, prior, Z_of, NULL, sites, step == 0));
            assert_ok(ctx, thi_variational_marginals(v, ctx, N, s.X, s.mu, s.v));
            part = expected(&s);
            assert_ok(ctx, thi_variational_pull(v, ctx, s.g, s.h));
            assert_ok(ctx, thi_variational_end(v, ctx, NULL, &kl, NULL));
            bound = part - kl;
            assert_rises(thiele_likelihood_name(lik), step, before, bound);
            left = step_sites(v, Q, sites);
        }
        assert_ends(&s, left, part);
        for (int q = 0; q < Q; q++) {
            thi_sites_free(&sites[q]);
        }
        thi_variational_close(v);
        close_setting(&s);
    }
}

static void with_inducing_inputs(void **state)
{
    (void)state;
    test_all_likelihoods(inducing_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_all_rows), cmocka_unit_test(with_inducing_inputs)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
