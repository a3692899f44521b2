/* Exploring hyperparameters and choosing inducing inputs on samples of the rows. */
#include "fit/first.h"

#include <math.h>
#include <string.h>

#include "basis/basis.h"
#include "fit/budget.h"
#include "fit/start.h"

enum { BASIS_ROWS = 20000, EXPLORE_ITERATIONS = 50 };
static const double FURTHEST = 10.0;

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

/*
 * Rows that can be explored before the share of the time is over, as many evaluations of so many cubes as a search
 * takes; 0: too few to be worth it, first guesses must do.
 */
static int64_t explored_rows(const thi_driver *driver, const thi_method *method, int latents)
{
    enum { EVALUATIONS = 60, LEAST = 100 };
    double most = (double)method->subset / sqrt((double)latents);
    double rows = cbrt(thi_budget_flops(driver, THI_SHARE_EXPLORE) / (EVALUATIONS * method->cubes * latents));
    return rows < LEAST && rows < most ? 0 : (int64_t)fmin(rows, most);
}

/* The search on these rows. guess: room for all hypers. */
static thiele_status search(thiele_context *ctx, thi_driver *driver, thi_spec *spec, thi_hypers *hypers,
                            const thi_method *method, const thi_rows *rows, double *guess,
                            const thi_variational_settings *s, thi_fit_result *result)
{
    thi_fit_settings settings = {s->restarts, all_given(hypers) || s->iterations < 0 ? -1 : EXPLORE_ITERATIONS};
    double begun = thi_seconds(), before = (double)result->evaluations;
    thiele_status status;
    for (int i = 0; i < hypers->count; i++) {
        guess[i] = hypers->hyper[i].value;
    }
    THI_TRY(thi_search(ctx, driver, method, spec, rows, hypers, &settings, result, NULL));
    thi_budget_took(driver, ((double)result->evaluations - before) * method->cubes * pow((double)rows->n, 3.0),
                    thi_seconds() - begun);
    result->iterations = 0; /* those of the fit itself are counted */
    hold_lengthscales(spec, hypers, guess);
    THI_TRY(thi_hypers_apply(hypers, ctx, spec));
out:
    return status;
}

thiele_status thi_first_explore(thiele_context *ctx, thi_driver *driver, thi_spec *spec, const thi_source *source,
                                thi_hypers *hypers, const thi_method *method, const thi_variational_settings *settings,
                                thi_fit_result *result)
{
    int64_t rows = explored_rows(driver, method, spec->latents.count);
    thi_rows sample = {0};
    double *guess = NULL, spread;
    thiele_status status;
    double deadline = thi_budget_lend(driver, THI_SHARE_EXPLORE);
    THI_TRY(thi_alloc(ctx, &guess, (size_t)hypers->count, sizeof *guess));
    THI_TRY(thi_source_sample(source, ctx, rows > 0 ? rows : method->subset, THI_SAMPLE_EXPLORE, &sample));
    THI_TRY(thi_start_guess(hypers, ctx, spec, &sample, &spread));
    THI_TRY(rows > 0 ? search(ctx, driver, spec, hypers, method, &sample, guess, settings, result)
                     : thi_hypers_apply(hypers, ctx, spec));
out:
    thi_budget_restore(driver, deadline);
    thi_rows_free(&sample);
    thi_free(guess);
    return status;
}

int64_t thi_first_inducing(const thi_driver *driver, const thi_source *source, int members)
{
    enum { MOST = 500, LEAST = 100 };
    double most = fmax(LEAST, MOST / sqrt((double)members));
    /* A pass takes some 4 n M^2 flops for each of them. */
    double flops = thi_budget_flops(driver, THI_SHARE_PASS) / (4.0 * members * (double)source->n);
    return (int64_t)fmin(most, fmax(LEAST, sqrt(flops)));
}

/* Rows to choose among: fewer when a deadline is near, of which k-means with its 20 rounds takes a share. */
static int64_t basis_rows(const thi_driver *driver, int64_t M, int D)
{
    double flops = 2.0 * (double)M * D * 20.0;
    double rows = fmin(BASIS_ROWS, thi_budget_flops(driver, THI_SHARE_BASIS) / flops);
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
