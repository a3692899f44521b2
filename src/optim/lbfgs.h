/* Minimisation by L-BFGS (liblbfgs), guarded against values that are not finite. */
#ifndef THI_LBFGS_H
#define THI_LBFGS_H

#include "base/base.h"

/*
 * Value and gradient at x. Returns NUMERIC (or a value that is not finite) where the function cannot be evaluated: the
 * line search then shortens its step. Any other error ends the minimisation and is passed on.
 */
typedef thiele_status (*thi_objective_fn)(void *arg, const double *x, double *value, double *gradient);

typedef struct thi_lbfgs_options {
    int iterations;
    double gradient_tolerance; /* stop when |g| < this * max(1, |x|) */
    double value_tolerance;    /* stop when five iterations together gained less than this */
    /* Asked before every evaluation but the first; true ends the minimisation. */
    bool (*stop)(void *arg);
    /*
     * Moves the numbers of x that have left their limits back to them; NULL: there are none. The function is evaluated
     * there, and rises gently outside: a minimum on a limit is found, and so are the other numbers of one.
     */
    void (*confine)(void *arg, double *x);
} thi_lbfgs_options;

typedef struct thi_lbfgs_result {
    double value;
    int iterations, evaluations;
    bool converged; /* else the iteration limit or `stop` ended it */
} thi_lbfgs_result;

/*
 * x (n numbers) becomes the best point evaluated. Error: NUMERIC when not even the first point could be evaluated, with
 * the objective's own message; MEMORY.
 */
thiele_status thi_lbfgs(thiele_context *ctx, int n, double *x, thi_objective_fn objective, void *arg,
                        const thi_lbfgs_options *options, thi_lbfgs_result *result);

#endif
