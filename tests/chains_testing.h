/* A dense model with any likelihood, and a run of chains over it. */
#ifndef THI_CHAINS_TESTING_H
#define THI_CHAINS_TESTING_H

#include "testing.h"

#include "fit/chains.h"
#include "likelihood/augment.h"

typedef struct chain_setting {
    thi_spec spec;
    thi_rows rows;
    const thi_likelihood_ops *ops; /* the likelihood's own, while a test has put others in their place */
    thi_likelihood_ops changed;
} chain_setting;

static inline void open_chain_setting(chain_setting *s, thiele_context *c, const char *likelihood, int outputs,
                                      int classes, const char *kernel, const char *mean, int64_t n, int dims)
{
    memset(s, 0, sizeof *s);
    thi_columns columns = {.dims = dims, .columns = dims};
    assert_ok(c, thiele_likelihood_parse(&s->spec.lik, c, likelihood, outputs, classes));
    assert_ok(c, thi_latents_make(&s->spec.latents, c, kernel, mean, &columns, s->spec.lik->latents, false));
    assert_ok(c, thi_rows_alloc(&s->rows, c, n, dims, outputs, (thi_aside){.offset = true}));
    test_normals(dims * n, 1, s->rows.X);
}

static inline void close_chain_setting(chain_setting *s)
{
    thi_rows_free(&s->rows);
    thi_latents_clear(&s->spec.latents);
    s->spec.lik->ops = s->ops != NULL ? s->ops : s->spec.lik->ops;
    thiele_likelihood_destroy(s->spec.lik);
}

/* y = f + e: the site is that of the noise, with nothing to draw. */
static inline void gaussian_site(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *y,
                                 const double *f, double *lambda, double *nu)
{
    (void)stream;
    (void)draw;
    (void)f;
    lambda[0] = 1.0 / lik->value[0];
    nu[0] = y[0] / lik->value[0];
}

static const thi_augmentation gaussian_augmentation = {.site = gaussian_site};

static inline void augment_gaussian(chain_setting *s)
{
    s->ops = s->spec.lik->ops;
    s->changed = *s->ops;
    s->changed.augmentation = &gaussian_augmentation;
    s->spec.lik->ops = &s->changed;
}

static inline thiele_status run_chains(chain_setting *s, thiele_context *c, const thi_chains_settings *settings,
                                       thi_chains_result *result)
{
    thi_driver driver;
    thi_driver_start(&driver, c, 0.0);
    return thi_chains_run(c, &driver, &s->spec, &s->rows, settings, result);
}

/* --- comparing draws with what they should be ------------------------------------------------------------------------
 */

/* The draws of a product of deviations of f_i and f_j (j < 0: of f_i itself), chain by chain; NULL mean: zero. */
static inline double *series(const thi_chains_result *r, const double *mean, int64_t i, int64_t j)
{
    int64_t all = r->n * r->latents;
    double *x = malloc((size_t)r->kept * sizeof *x);
    for (int64_t s = 0; s < r->kept; s++) {
        const double *f = r->f + s * all;
        x[s] = j < 0 ? f[i] : (f[i] - mean[i]) * (f[j] - mean[j]);
    }
    return x;
}

/* Mean of the draws and its standard error by effective draws. */
static inline double estimate(const thi_chains_result *r, const double *mean, int64_t i, int64_t j, double *error)
{
    double *x = series(r, mean, i, j), sum = 0.0;
    thi_diagnosis d;
    for (int64_t s = 0; s < r->kept; s++) {
        sum += x[s] / (double)r->kept;
    }
    thi_diagnose(r->chains, r->kept / r->chains, x, &d, NULL);
    *error = sqrt(d.pooled / d.ess_multichain);
    free(x);
    return sum;
}

/* Means and covariances (n Q x n Q) within four standard errors; NULL covariance: variances v alone. */
static inline void assert_moments(const thi_chains_result *r, const double *mean, const double *covariance,
                                  const double *v)
{
    int64_t all = r->n * r->latents;
    for (int64_t i = 0; i < all; i++) {
        double error, got = estimate(r, mean, i, -1, &error);
        assert_near(got, mean[i], 0.0, 4.0 * error);
        for (int64_t j = covariance != NULL ? 0 : i; j <= i; j++) {
            got = estimate(r, mean, i, j, &error);
            assert_near(got, covariance != NULL ? covariance[i + j * all] : v[i], 0.0, 4.0 * error);
        }
    }
}

/* All draws are kept. Walks are thinned, lest their errors say nothing. */
static inline thi_chains_settings keep_all(const char *sampler, int64_t draws)
{
    bool walk = strcmp(sampler, "mh") == 0;
    return (thi_chains_settings){
        .sampler = sampler, .draws = draws, .burn_in = 500, .thin = walk ? 10 : 1, .keep = 4 * draws};
}

#endif
