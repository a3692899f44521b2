/*
 * A variational fit that goes on from where a model is: hyperparameters and Z by L-BFGS from their present values, q at
 * its optimum (variational_nested.c), on rows in memory. With Gaussian noise the noise that is best for these rows
 * comes first: it may have changed by factors.
 */
#include <math.h>
#include <string.h>

#include "fit/variational_state.h"

enum { BLOCK = 1024 };

thiele_status thi_fit_variational_again(const thi_problem *problem, const thi_variational_settings *settings,
                                        thi_variational_result *result, thi_fitted *fitted)
{
    int64_t n = problem->source->n;
    const char *way = problem->spec->expectation;
    thi_vfit fit = {.problem = *problem,
                    .settings = settings,
                    .result = result,
                    .natural = true,
                    .conjugate = problem->hypers->noise >= 0 && (way == NULL || strcmp(way, "closed") == 0),
                    .tolerance = settings->tolerance,
                    .passes = INFINITY};
    thiele_status status;
    *result = (thi_variational_result){.inducing = settings->Z_count, .batch = n};
    THI_TRY(thi_vfit_open(&fit, settings->Z_count, settings->Z, n < BLOCK ? n : BLOCK, true));
    if (fit.conjugate) {
        THI_TRY(thi_vfit_profile(&fit, thi_vfit_size(&fit) > 0));
    }
    THI_TRY(thi_vfit_nested(&fit, "learn", settings->iterations, false));
    THI_TRY(thi_vfit_freeze(&fit, fitted));
out:
    result->fit.evaluations += fit.pass.evaluations;
    thi_vfit_close(&fit);
    return status;
}
