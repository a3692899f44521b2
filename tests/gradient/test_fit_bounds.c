/*
 * The bounds that variational fits learn by. Gaussian noise: the tighter one, row by row, over minibatches and for any
 * q: its place between that of 2009 and the evidence in a thousand random cases, and its gradient. Auxiliary variables:
 * first steps are theirs while value and gradient are those of the likelihood at the same q. Gradients against central
 * differences.
 */
#include "testing_context.h"

#include "fit/variational_state.h"
#include "posterior/exact.h"

enum { N = 36, M = 5, BATCH = 12, CASES = 1000 };

typedef struct setting {
    thi_spec spec;
    thi_hypers hypers;
    thi_rows rows;
    thi_source source;
    thi_driver driver;
    thi_variational_settings settings;
    thi_variational_result result;
    thi_vfit fit;
} setting;

/* q and everything else from the numbers of a stream; targets are a wave with noise. */
static void open_setting(setting *s, const char *likelihood, const char *steps, bool natural, bool diagonal, int seed)
{
    static double unit = 1.0;
    thi_target target = {.scale = 1.0};
    thi_encoder encoder = {.dims = 1, .scale = &unit, .targets = 1, .target = &target};
    thi_columns columns = {.dims = 1, .columns = 1};
    double Z[M];
    *s = (setting){.settings = {.components = 1, .diagonal = diagonal}};
    assert_ok(ctx, thiele_likelihood_parse(&s->spec.lik, ctx, likelihood, 1, 0));
    s->spec.steps = steps;
    assert_ok(ctx, thi_latents_make(&s->spec.latents, ctx, "matern32", "zero", &columns, 1, false));
    assert_ok(ctx, thi_hypers_make(&s->hypers, ctx, &s->spec, &encoder, NULL, NULL));
    assert_ok(ctx, thi_hypers_apply(&s->hypers, ctx, &s->spec));
    assert_ok(ctx, thi_rows_alloc(&s->rows, ctx, N, 1, 1, (thi_aside){0}));
    test_normals(N, 3 * (uint64_t)seed + 1, s->rows.X);
    test_normals(N, 3 * (uint64_t)seed + 2, s->rows.y);
    test_normals(M, 3 * (uint64_t)seed + 3, Z);
    for (int i = 0; i < N; i++) {
        s->rows.y[i] = 0.3 * s->rows.y[i] + sin(2.0 * s->rows.X[i]);
    }
    for (int j = 0; j < M; j++) {
        Z[j] = j - 2.0 + 0.1 * Z[j];
    }
    thi_source_of_rows(&s->source, &s->rows);
    thi_driver_start(&s->driver, ctx, 0.0);
    s->fit = (thi_vfit){.problem = {ctx, &s->driver, &s->spec, &s->source, &s->hypers},
                        .settings = &s->settings,
                        .result = &s->result,
                        .natural = natural,
                        .tolerance = 1e-5,
                        .passes = INFINITY};
    assert_ok(ctx, thi_vfit_open(&s->fit, M, Z, BATCH, true));
}

static void close_setting(setting *s)
{
    thi_vfit_close(&s->fit);
    thi_hypers_clear(&s->hypers);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
    thi_rows_free(&s->rows);
}

static double *numbers(int64_t n)
{
    double *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    return x;
}

/* All numbers of the vector a little off where they are. */
static void scatter(thi_vfit *fit, double by, uint64_t seed)
{
    int64_t size = thi_vfit_size(fit);
    double *z = numbers(size);
    test_normals(size, seed, z);
    for (int64_t i = 0; i < size; i++) {
        z[i] = fit->vector.x[i] + by * z[i];
    }
    assert_ok(ctx, thi_vfit_take(fit, z));
    free(z);
}

static double bound_at(thi_vfit *fit, const thi_part *part, const double *x)
{
    assert_ok(ctx, thi_vfit_take(fit, x));
    assert_ok(ctx, thi_vfit_evaluate(fit, part, (thi_wanted){0}));
    return fit->pass.at.bound + fit->pass.at.log_prior;
}

/* The gradient of an evaluation that was asked for all this. */
static void check_gradient(thi_vfit *fit, const thi_part *part, thi_wanted wanted, double step, double tolerance)
{
    int64_t size = thi_vfit_size(fit), from = wanted.q ? 0 : fit->vector.first[THI_PART_KERNEL];
    double *x = numbers(size), *bar = numbers(size);
    memcpy(x, fit->vector.x, (size_t)size * sizeof *x);
    assert_ok(ctx, thi_vfit_evaluate(fit, part, wanted));
    memcpy(bar, fit->vector.bar, (size_t)size * sizeof *bar);
    for (int64_t i = from; i < size; i++) {
        double at = x[i];
        x[i] = at + step;
        double above = bound_at(fit, part, x);
        x[i] = at - step;
        double below = bound_at(fit, part, x);
        x[i] = at;
        assert_near(bar[i], (above - below) / (2.0 * step), tolerance, tolerance);
    }
    assert_ok(ctx, thi_vfit_take(fit, x));
    free(x);
    free(bar);
}

/* --- Gaussian noise ----------------------------------------------------------------------------------------------- */

static void test_tight_gradient(void **state)
{
    (void)state;
    const thi_wanted all = {.q = true, .prior = true, .phi = true};
    int64_t row[BATCH];
    for (int i = 0; i < BATCH; i++) {
        row[i] = 2 * i + 1;
    }
    const thi_part parts[] = {thi_all_rows, {BATCH, row, 0}};
    for (int family = 0; family < 4; family++) {
        setting s;
        open_setting(&s, "gaussian", NULL, false, family > 1, family);
        assert_true(s.fit.pass.tight);
        scatter(&s.fit, 0.3, 7);
        check_gradient(&s.fit, &parts[family % 2], all, 1e-5, 1e-5);
        close_setting(&s);
    }
}

static double evidence_of(const setting *s)
{
    thi_exact exact;
    assert_ok(ctx, thi_exact_open(&exact, ctx, N, s->rows.X, s->rows.y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, s->spec.latents.prior, s->spec.lik->value[0]));
    double evidence = exact.log_marginal;
    thi_exact_close(&exact);
    return evidence;
}

/* Batches that make an epoch have the bound of all rows on average. */
static double epoch_bound(thi_vfit *fit)
{
    double sum = 0.0;
    for (int64_t first = 0; first < N; first += BATCH) {
        int64_t row[BATCH];
        for (int64_t i = 0; i < BATCH; i++) {
            row[i] = first + i;
        }
        assert_ok(ctx, thi_vfit_evaluate(fit, &(thi_part){BATCH, row, 0}, (thi_wanted){0}));
        sum += fit->pass.at.bound * BATCH / N;
    }
    return sum;
}

static void test_between(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        setting s;
        open_setting(&s, "gaussian", NULL, false, i % 3 == 0, i);
        scatter(&s.fit, 0.7, 20000 + (uint64_t)i);
        assert_ok(ctx, thi_vfit_evaluate(&s.fit, &thi_all_rows, (thi_wanted){0}));
        double tight = s.fit.pass.at.bound, evidence = evidence_of(&s);
        assert_near(epoch_bound(&s.fit), tight, 1e-10, 1e-10);
        s.fit.pass.tight = false;
        assert_ok(ctx, thi_vfit_evaluate(&s.fit, &thi_all_rows, (thi_wanted){0}));
        assert_true(s.fit.pass.at.bound <= tight && tight <= evidence + 1e-9 * fabs(evidence));
        s.fit.pass.tight = true;
        close_setting(&s);
    }
}

/* --- auxiliary variables ------------------------------------------------------------------------------------------ */

static const char *const augmented[] = {"student-t", "laplace", "matern32"};

/* At the fixed point of auxiliary variables, with sites that stay in w and in u. */
static void test_augmented_gradient(void **state)
{
    (void)state;
    const thi_wanted both = {.step = true, .prior = true, .phi = true};
    for (int i = 0; i < 6; i++) {
        setting s;
        thi_sites_work work;
        open_setting(&s, augmented[i % 3], "augmented", true, false, i);
        assert_true(s.fit.pass.leads && s.fit.pass.leading);
        s.fit.white = i < 3;
        assert_ok(ctx, thi_sites_work_open(&work, &s.fit));
        assert_ok(ctx, thi_sites_converge(&s.fit, &thi_all_rows, &work, 1e-9, 200));
        assert_ok(ctx, thi_vfit_evaluate(&s.fit, &thi_all_rows, (thi_wanted){.step = true}));
        double bound = s.fit.pass.at.bound;
        assert_ok(ctx, thi_vfit_evaluate(&s.fit, &thi_all_rows, (thi_wanted){0}));
        assert_true(s.fit.pass.at.bound > bound);
        /* Adaptive quadrature leaves some 1e-8 in E, which wider differences hide. */
        check_gradient(&s.fit, &thi_all_rows, both, 1e-3, 1e-4);
        thi_sites_work_close(&work);
        close_setting(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tight_gradient),
        cmocka_unit_test(test_between),
        cmocka_unit_test(test_augmented_gradient),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
