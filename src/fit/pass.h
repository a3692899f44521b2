/*
 * One evaluation of a bound over rows, by blocks, whatever the posterior: marginals from the engine, (E, g, h) from the
 * likelihood on all threads (or inside the engine, where it has the formulas), back to the engine with the weights of
 * the rows and of the components (math.md sections 1 and 2; savigp-jmlr eqs. 8 to 13). It is
 *   thi_pass_begin      at a q
 *   thi_pass_over       all rows, or some that stand for all;  or thi_pass_batch as often as there are rows
 *   thi_pass_end        the bound, the gradient in the hyperparameters
 * Where the log density is quadratic in f (Gaussian noise) and the engine has a residual r = k - q, the bound is the
 * tighter one of Titsias (2025) and Bui, Ashman and Turner (2025; math.md section 9): given u, q(f) may be narrower
 * than p, row by row by the factor kappa = 1/(1 + r/s2) that is best, so that each row has E at v - (1 - kappa) r, less
 * (kappa - 1 - log kappa)/2     in all  -log(1 + r/s2)/2 in place of -r/(2 s2) q(u) and predictions stay what they are.
 *
 * Where the specification has other expectations to begin with (those of auxiliary variables, a bound in closed form
 * which natural steps of size 1 never lower), passes that are for a step alone have these while the pass is leading.
 * All that is learned is by the likelihood itself: hyperparameters that such a bound chooses make its gap small, not
 * the error.
 *
 * All rows are summed block by block in a fixed tree (subtotals.h), by all processes of the context together: the
 * blocks are of the capacity, and each process has some that lie together.
 *
 * O(capacity M) memory whatever the number of rows; nothing is allocated after thi_pass_open, providers of expectations
 * and sums of blocks apart, which are opened by the first block and kept.
 */
#ifndef THI_FIT_PASS_H
#define THI_FIT_PASS_H

#include "expect/parallel.h"
#include "fit/problem.h"
#include "fit/spread.h"
#include "fit/subtotals.h"
#include "posterior/engine.h"

/* Some rows, standing for all of them: what they give is weighted by n / count. row NULL: all rows in their order. */
typedef struct thi_part {
    int64_t count;
    const int64_t *row;
    uint64_t draws; /* Monte Carlo numbers its draws from here */
} thi_part;
extern const thi_part thi_all_rows;

/*
 * What an evaluation is to give beyond the bound. step: what a natural step needs; q, prior (kernels, means, points),
 * phi (of the likelihood): gradients.
 */
typedef struct thi_wanted {
    bool step, q, prior, phi;
} thi_wanted;

/* What the last evaluation found. */
typedef struct thi_found {
    double expected, kl, bound, log_prior;
    int64_t seen;  /* rows without missing values */
    double weight; /* and how many they stand for */
    bool empty;    /* there were none, which is no fault of q */
} thi_found;

typedef struct thi_pass {
    const thi_problem *problem;
    const thi_engine *engine;
    void *self; /* the engine's workspace */
    int64_t latents, components, capacity;
    thi_providers providers, first; /* of expectations; of those to begin with */
    bool leads, leading;            /* there are such; and they are asked for steps now */
    bool inside;                    /* the engine itself knows the likelihood */
    thi_rows rows;                  /* of the present block */
    int64_t *row;                   /* their numbers */
    double *mu, *v, *g, *h, *E, *dphi;
    bool tight; /* the tighter bound: */
    double *residual, *narrowed,
        *spared;         /* r times the row's weight, Q x n; v less (1 - kappa) r, and (kappa - 1) h, as v and h */
    double *precision;   /* Q: 1/s2 */
    thi_spread *spread;  /* r of all rows is added to it, where it is not NULL */
    double *hyper_bar;   /* of all hyperparameters */
    double *expected_of; /* K: of each component without its weight */
    const void *bar;     /* adjoints of this evaluation, or NULL */
    thi_found at;
    bool guessing; /* (g, h) are taken at the likelihood's guesses of f: for first sites where q = p gives none */
    bool may_stop; /* a pass over all rows may be given up when the driver says so */
    int64_t evaluations;
    double rows_done;
    thi_subtotals subtotals; /* of a pass over all rows: what each block has summed */
    double *total;           /* and all of them */
} thi_pass;

/* Rows at a time, at most, and how many functions and components the engine has. The problem is borrowed. */
typedef struct thi_pass_shape {
    int64_t latents, components, capacity;
} thi_pass_shape;

/* Whether a fit has the tighter bound. */
bool thi_pass_is_tight(const thi_spec *spec, const thi_engine *engine);
/* shape: the engine's. May be closed after an error. */
thiele_status thi_pass_open(thi_pass *pass, const thi_problem *problem, const thi_engine *engine, const void *shape,
                            const thi_pass_shape *size);
void thi_pass_close(thi_pass *pass);

/* The engine takes q: for freezing. */
thiele_status thi_pass_ready(thi_pass *pass, const void *q);
/* The same, and sums become zero. bar: the adjoints that the evaluation adds to, or NULL. */
thiele_status thi_pass_begin(thi_pass *pass, const void *q, const void *bar);
/* Fetches so many rows; pass->rows.n of them have no missing value. */
thiele_status thi_pass_fetch(thi_pass *pass, int64_t count, const int64_t *row);
/* The rows that were fetched, each with the weight given; draws: the number of the first one. */
thiele_status thi_pass_take(thi_pass *pass, double weight, uint64_t draws, thi_wanted wanted);
/* Both. */
thiele_status thi_pass_batch(thi_pass *pass, int64_t count, const int64_t *row, double weight, uint64_t draws,
                             thi_wanted wanted);
/* All rows or a part. NUMERIC when the driver ended it within a pass, or no row of a part is whole; DATA: of all. */
thiele_status thi_pass_over(thi_pass *pass, const thi_part *part, thi_wanted wanted);
/*
 * KL, bound, and the gradient of bound + log prior in the free hyperparameters to `hypers` unless that is NULL. NUMERIC
 * where they are not finite.
 */
thiele_status thi_pass_end(thi_pass *pass, double *hypers);
/*
 * E of the rows that were taken last, which stand for all, at the same marginals and the present parameters of the
 * likelihood: pass->at.expected, and the gradient in those parameters.
 */
thiele_status thi_pass_again(thi_pass *pass, double *hypers);
/* A natural step of q with what was pulled. */
void thi_pass_step(thi_pass *pass, double rho, const void *q);

#endif
