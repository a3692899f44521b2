/* Exploring hyperparameters and choosing inducing inputs on samples of the rows. */
#include "fit/first.h"

#include <math.h>
#include <string.h>

#include "basis/basis.h"
#include "fit/start.h"

enum { BASIS_ROWS = 20000, EXPLORE_ITERATIONS = 50 };
static const double FURTHEST = 10.0;
static const double BASIS_SHARE = 0.05; /* of what is left until the deadline */

static bool all_given(const thi_hypers *hypers)
{
    for (int i = 0; i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed && !hypers->hyper[i].given) {
            return false;
        }
    }
    return true;
}

/*
 * A few hundred rows may not see what a column does and let its length-scale run away, where all rows have no slope to
 * bring it back by: such ones begin at FURTHEST times their first guess.
 */
static void hold_lengthscales(const thi_spec *spec, thi_hypers *hypers, const double *guess)
{
    for (int g = 0; g < hypers->groups; g++) {
        const thiele_kernel *kernel = spec->latents.kernel[g];
        for (int i = 0; i < kernel->parameters; i++) {
            const thi_leaf *leaf = thi_kernel_leaf_of(kernel, i);
            int at = hypers->first[g] + i;
            thi_hyper *h = &hypers->hyper[at];
            bool lengthscale = leaf->kind->family == THI_DISTANCE && i - leaf->first < leaf->lengthscales;
            if (lengthscale && !h->fixed && !h->given) {
                h->value = fmin(h->value, guess[at] + log(FURTHEST));
            }
        }
    }
}

/* Whether the deadline comes before sites at these rows could converge from a few starts: first guesses must do then.
 */
static bool is_hurried(const thi_driver *driver, const thi_method *method, int64_t rows)
{
    enum { STARTS = 3, STEPS = 10 };
    double left = driver->started + driver->deadline - thi_seconds();
    double seconds = STARTS * STEPS * pow((double)rows, 3.0) / 2e10;
    return driver->deadline > 0.0 && method != &thi_method_exact && left < seconds;
}

/* The search on these rows. guess: room for all hypers. */
static thiele_status search(thiele_context *ctx, thi_driver *driver, thi_spec *spec, thi_hypers *hypers,
                            const thi_method *method, const thi_rows *rows, double *guess,
                            const thi_variational_settings *s, thi_fit_result *result)
{
    thi_fit_settings settings = {s->restarts, all_given(hypers) || s->iterations < 0 ? -1 : EXPLORE_ITERATIONS};
    double spread;
    thiele_status status;
    THI_TRY(thi_start_guess(hypers, ctx, spec, rows, &spread));
    if (is_hurried(driver, method, rows->n)) {
        return thi_hypers_apply(hypers, ctx, spec);
    }
    for (int i = 0; i < hypers->count; i++) {
        guess[i] = hypers->hyper[i].value;
    }
    THI_TRY(thi_search(ctx, driver, method, spec, rows, hypers, &settings, result, NULL));
    result->iterations = 0; /* those of the fit itself are counted */
    hold_lengthscales(spec, hypers, guess);
    THI_TRY(thi_hypers_apply(hypers, ctx, spec));
out:
    return status;
}

thiele_status thi_first_explore(thiele_context *ctx, thi_driver *driver, thi_spec *spec, const thi_source *source,
                                thi_hypers *hypers, const thi_method *method, int64_t rows, double share,
                                const thi_variational_settings *settings, thi_fit_result *result)
{
    thi_rows sample = {0};
    double *guess = NULL;
    thiele_status status;
    double deadline = thi_driver_lend(driver, share);
    THI_TRY(thi_alloc(ctx, &guess, (size_t)hypers->count, sizeof *guess));
    THI_TRY(thi_source_sample(source, ctx, rows, THI_SAMPLE_EXPLORE, &sample));
    THI_TRY(search(ctx, driver, spec, hypers, method, &sample, guess, settings, result));
out:
    thi_driver_restore(driver, deadline);
    thi_rows_free(&sample);
    thi_free(guess);
    return status;
}

/* Rows to choose among: fewer when a deadline is near, of which k-means with its 20 rounds may take a fifth. */
static int64_t basis_rows(const thi_driver *driver, int64_t M, int D)
{
    double rows = BASIS_ROWS;
    if (driver->deadline > 0.0) {
        double left = driver->deadline - (thi_seconds() - driver->started);
        double seconds_a_row = 2.0 * (double)M * D * 20.0 / 2e10;
        rows = fmin(rows, BASIS_SHARE * fmax(left, 0.0) / seconds_a_row);
    }
    return (int64_t)fmax(rows, 4.0 * (double)M);
}

thiele_status thi_first_basis(thiele_context *ctx, thi_driver *driver, const thi_spec *spec, const thi_source *source,
                              const thi_variational_settings *s, int64_t wanted, double **Z, int64_t *M, bool *complete)
{
    int D = source->dims;
    thi_rows sample = {0};
    thiele_status status;
    bool all = false;
    size_t sets = s->Z != NULL && s->all_Z ? (size_t)spec->latents.groups : 1;
    wanted = s->Z != NULL ? s->Z_count : wanted > source->n ? source->n : wanted;
    THI_TRY(thi_alloc(ctx, Z, (size_t)wanted * (size_t)D * sets, sizeof **Z));
    if (s->Z != NULL) {
        *M = wanted;
        memcpy(*Z, s->Z, (size_t)wanted * (size_t)D * sets * sizeof **Z);
        goto out;
    }
    int64_t rows = basis_rows(driver, wanted, D);
    THI_TRY(thi_source_sample(source, ctx, rows, THI_SAMPLE_BASIS, &sample));
    thi_basis_source from = {D, sample.n, sample.X, spec->latents.kernel[0]};
    wanted = wanted > sample.n ? sample.n : wanted;
    thi_driver_phase(driver, "basis", 1);
    THI_TRY(thi_basis_choose(ctx, s->basis != NULL ? s->basis : "kmeans", &from, wanted, *Z, M));
    all = rows >= source->n && (*M < wanted || wanted == sample.n);
out:
    if (complete != NULL) {
        *complete = all;
    }
    thi_rows_free(&sample);
    return status;
}
