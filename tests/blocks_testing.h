/* What the tests of fits by blocks share: a problem with everything that a fit needs, and what it ends with. */
#ifndef THI_BLOCKS_TESTING_H
#define THI_BLOCKS_TESTING_H

#include "testing_context.h"

#include "fit/blocks.h"
#include "fit/explore.h"

enum { D = 2, TESTS = 40 };

typedef struct setting {
    thiele_context *ctx;
    thi_spec spec;
    thi_hypers hypers;
    thi_rows rows;
    double Xtest[D * TESTS];
    thi_predictor latent;
    thi_blocks_result result;
    thi_fitted fitted;
    thi_source source; /* of the rows; a test may put its own in place */
    thi_driver driver;
} setting;

static inline double wave(const double *x)
{
    return 1.5 * sin(1.7 * x[0]) + 0.4 * x[1];
}

/* Rows of the wave with noise of variance 0.09; of another likelihood, their sign. */
static inline void open_setting_of(setting *s, thiele_context *c, const char *likelihood, const char *kernel, int64_t n,
                                   const char *set)
{
    static double scale[D] = {1.0, 1.0};
    thi_target target = {.scale = 1.0};
    thi_encoder encoder = {.dims = D, .scale = scale, .targets = 1, .target = &target};
    thi_columns columns = {.dims = D, .columns = D};
    memset(s, 0, sizeof *s);
    s->ctx = c;
    assert_ok(c, thiele_likelihood_parse(&s->spec.lik, c, likelihood, 1, 0));
    assert_ok(c, thi_latents_make(&s->spec.latents, c, kernel, "zero", &columns, 1, false));
    assert_ok(c, thi_hypers_make(&s->hypers, c, &s->spec, &encoder, set, NULL));
    assert_ok(c, thi_rows_alloc(&s->rows, c, n, D, 1, (thi_aside){0}));
    test_normals(D * n, 1, s->rows.X);
    test_normals(n, 2, s->rows.y);
    test_normals(D * TESTS, 3, s->Xtest);
    for (int64_t i = 0; i < n; i++) {
        s->rows.y[i] = wave(s->rows.X + i * D) + 0.3 * s->rows.y[i];
        s->rows.y[i] = s->hypers.noise >= 0 ? s->rows.y[i] : copysign(1.0, s->rows.y[i]);
    }
    thi_source_of_rows(&s->source, &s->rows);
}

static inline void open_setting(setting *s, thiele_context *c, const char *kernel, int64_t n, const char *set)
{
    open_setting_of(s, c, "gaussian", kernel, n, set);
}

static inline void close_setting(setting *s)
{
    thi_predictor_clear(&s->latent);
    thi_hypers_clear(&s->hypers);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
    thi_rows_free(&s->rows);
}

static inline thiele_status try_fit(setting *s, const char *form, thi_variational_settings sparse,
                                    thi_blocks_settings settings, double deadline)
{
    thi_predictor_clear(&s->latent);
    s->latent = (thi_predictor){0};
    s->fitted = (thi_fitted){.latent = &s->latent};
    thiele_status status = thi_blocks_form_parse(&settings.form, s->ctx, form);
    if (status != THIELE_OK) {
        return status;
    }
    thi_driver_start(&s->driver, s->ctx, deadline);
    return thi_fit_blocks(&(thi_problem){s->ctx, &s->driver, &s->spec, &s->source, &s->hypers}, &sparse, &settings,
                          &s->result, &s->fitted);
}

static inline double fit(setting *s, const char *form, thi_variational_settings sparse, thi_blocks_settings settings)
{
    assert_ok(s->ctx, try_fit(s, form, sparse, settings, 0.0));
    return s->fitted.value;
}

typedef struct answer {
    double mean[TESTS], variance[TESTS];
} answer;

static inline answer ask(setting *s)
{
    answer a;
    int64_t clipped = 0;
    assert_ok(s->ctx, thi_predictor_marginals(&s->latent, s->ctx, TESTS, s->Xtest, a.mean, a.variance, &clipped));
    for (int i = 0; i < TESTS; i++) {
        assert_true(isfinite(a.mean[i]) && isfinite(a.variance[i]) && a.variance[i] >= 0.0);
    }
    assert_true(isfinite(s->fitted.value));
    return a;
}

static inline void assert_same_answer(const answer *got, const answer *want, double tolerance)
{
    assert_all_near(got->mean, want->mean, TESTS, tolerance, tolerance);
    assert_all_near(got->variance, want->variance, TESTS, tolerance, tolerance);
}

/* The root of the mean squared difference of two answers' means. */
static inline double distance(const answer *a, const answer *b)
{
    double sum = 0.0;
    for (int i = 0; i < TESTS; i++) {
        sum += (a->mean[i] - b->mean[i]) * (a->mean[i] - b->mean[i]);
    }
    return sqrt(sum / TESTS);
}

static const char *const fixed = "lengthscale=0.9, variance=1.5, noise=0.09";
static const char *const every_form[] = {"sor", "dtc", "fitc", "fic", "pitc", "pic", "0.2 dtc + 0.3 fitc + 0.5 pitc"};
enum { FORMS = sizeof every_form / sizeof *every_form };

#endif
