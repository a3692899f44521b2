/*
 * Maximising a method's log evidence (or bound) over the hyperparameters: several starts are tried on a random subset
 * of the rows, which costs little; the best of them is polished on all rows.
 */
#ifndef THI_SEARCH_H
#define THI_SEARCH_H

#include "fit/problem.h"
#include "posterior/predictor.h"

/* What a fit ends with. */
typedef struct thi_fitted {
    thi_predictor *latent;           /* one a latent function, allocated by the caller */
    double *weight;                  /* of the components of a mixture; NULL: one component. Owned by the caller */
    double *loo_mean, *loo_variance; /* room for leave-one-out predictions of y, or NULL when they are not wanted */
    double value;                    /* log evidence, or the bound on it */
    double jitter;
} thi_fitted;

/* What is done with a complete fit at some moment, every `every` seconds at most; NULL: it is not wanted. */
typedef struct thi_snapshot {
    thiele_status (*save)(void *arg, thi_fitted *fitted);
    void *arg;
    double every;
} thi_snapshot;

/* What a search maximises, with a gradient, and the posterior that it ends with. */
typedef struct thi_objective {
    const char *name;
    int64_t subset; /* rows to explore with, at most */
    double cubes;   /* flops of an evaluation, over rows^3 and latents */
    /* State for some rows; rows and spec are borrowed and outlive it. */
    thiele_status (*open)(void **state, thiele_context *ctx, const thi_spec *spec, const thi_rows *rows);
    void (*close)(void *state);
    /*
     * The objective at the specification's present values. gradient (all hypers, in the numbers, logs of positive ones;
     * NULL: not wanted) is added to. NUMERIC where it cannot be had.
     */
    thiele_status (*evaluate)(void *state, thiele_context *ctx, const thi_hypers *hypers, double *value,
                              double *gradient);
    /* Freezes the posterior at the present values. */
    thiele_status (*freeze)(void *state, thiele_context *ctx, thi_fitted *fitted);
} thi_objective;

typedef struct thi_fit_settings {
    int restarts;     /* further random starts */
    int iterations;   /* of L-BFGS on all rows; negative: keep the first guesses */
    double tolerance; /* nats that five iterations must gain; 0: next to nothing */
} thi_fit_settings;

typedef struct thi_fit_result {
    thiele_stop stop;
    int iterations;      /* on all rows */
    int64_t evaluations; /* of all phases */
} thi_fit_result;

/*
 * hypers gets the learned values, and spec has them too at the end. fitted (NULL: not wanted) gets the posterior of the
 * rows, from where the search ended: a bound with several optima is frozen at the one that was found.
 */
thiele_status thi_search(const thi_problem *problem, const thi_objective *objective, const thi_rows *rows,
                         const thi_fit_settings *settings, thi_fit_result *result, thi_fitted *fitted);
/*
 * L-BFGS alone, from the present values of hypers, on a state that the caller has opened (objective: its evaluate
 * only), until five iterations together gain less than `tolerance` nats. result is added to.
 */
thiele_status thi_search_climb(const thi_problem *problem, const thi_objective *objective, void *state, int iterations,
                               double tolerance, thi_fit_result *result);
/* Where a search may begin: values of all hypers, one set after the other. */
typedef struct thi_starts {
    int count;
    double *value; /* owned */
} thi_starts;

/*
 * hypers gets where the best of the starts led after a short climb. The noise is searched first, among some that are
 * factors apart: it may be that of other rows or of another model, and a slope of millions of nats would throw
 * everything else about. State as above.
 */
thiele_status thi_search_starts(const thi_problem *problem, const thi_objective *objective, void *state,
                                const thi_starts *starts, thi_fit_result *result);
/* Opens a state on these rows, freezes it at the specification's present values and closes it. */
thiele_status thi_freeze(thiele_context *ctx, const thi_objective *objective, const thi_spec *spec,
                         const thi_rows *rows, thi_fitted *fitted);

/* exact.c: whether exact regression on so many rows works on a card, of which the log may say why it cannot. */
bool thi_exact_on_card(thiele_context *ctx, int64_t n);

extern const thi_objective thi_objective_exact, thi_objective_dense;

#endif
