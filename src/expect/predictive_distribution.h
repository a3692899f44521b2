/*
 * The predictive distribution of one output of one row from its density alone: where its mass lies, its moments, its
 * quantiles. For a user's own likelihood, which has nothing else. The density over y,
 *   p(y) = sum_k pi_k int p(y | f) N(f; mu_k, diag v_k) df,
 * is integrated by cells of 16 nodes on an axis that has no ends (y, log y or the log odds of y; counts as they are).
 * Some 1000 densities a row, each an integral over f.
 */
#ifndef THI_PREDICTIVE_DISTRIBUTION_H
#define THI_PREDICTIVE_DISTRIBUTION_H

#include "expect/integrate.h"

enum {
    THI_CELL_NODES = 16,
    THI_CELL_BATCH = THI_EXPECT_BLOCK / THI_CELL_NODES,
    THI_CELLS_MAX = 2048,
    THI_LAW_BORDERS = 2720,
    THI_LAW_PEAKS = 8,
    THI_LAWS_KEPT = 1024
};

/* How far below the highest log density the floor lies: twice of what can't be seen in a sum. */
#define THI_LAW_FLOOR 64.0
/* Log odds beyond this are those of y = 1 in doubles. */
#define THI_UNIT_REACH 36.0

/* predictive_nodes.c. The axis: from its places to values of y and back. */
double thi_to_support(thi_support support, double x);
double thi_from_support(thi_support support, double y);
/* dy/dx of the axis, at a value of y. */
double thi_support_slope(thi_support support, double y);
/* The first and the last place where y is neither an end of its support nor infinite in doubles. */
void thi_support_ends(thi_support support, double *low, double *high);

/* Where a cell of the axis, or of the counts low, ..., high - 1, is looked at, and the weights of a sum over it. */
typedef struct thi_cell_rule {
    int count;
    double x[THI_CELL_NODES], w[THI_CELL_NODES];
} thi_cell_rule;
void thi_cell_rule_make(thi_cell_rule *rule, thi_support support, double low, double high);

/* The axis from low to high, or the counts low, ..., high - 1. Densities are relative to that at the highest peak. */
typedef struct thi_cell {
    double low, high;
    double before;                /* the mass of all cells to the left */
    double sum[3];                /* mass, and first and second moment about the highest peak */
    double value[THI_CELL_NODES]; /* the density at the nodes (of each count, where there are no more than nodes) */
} thi_cell;

typedef struct thi_peak {
    double at, top; /* on the axis, and the log density there */
    double width;   /* within which it is flat */
} thi_peak;

/* A law, and what it was made from. */
typedef struct thi_kept_law {
    double *key; /* NULL: there is none */
    size_t bytes;
    int output, cells;
    thi_peak peak;
    double floor, tail, mean, variance;
    thi_cell *cell;
} thi_kept_law;

typedef struct thi_law {
    thi_expect *expect;
    thiele_context *ctx;
    thi_support support;
    thi_marginals row; /* one row */
    int output;
    bool moments; /* are wanted: the tails count with the square of y */
    double *y;    /* P: the outputs that are known, NaN for the others */
    thi_peak peak;
    double floor; /* log densities far below this need not be exact */
    double tail;  /* the density falls as |y|^tail at worst; minus infinity when faster than any power */
    int cells;
    thi_cell *cell; /* ascending */
    double mean, variance;
    double projection[THI_CELL_NODES][THI_CELL_NODES]; /* from values at nodes to Legendre coefficients */
    /* work space */
    thi_cell *stack;
    double *points, *mu, *v, *log_p, *border;
    thi_kept_law kept[THI_LAWS_KEPT]; /* of draws; kept_laws.c */
    int next, asked;                  /* where the next is kept, and is likely to be found */
} thi_law;

thiele_status thi_law_create(thi_law **out, thi_expect *expect, thiele_context *ctx);
void thi_law_destroy(thi_law *law);
/* The one of a work space, made when it is first asked for. */
thiele_status thi_space_law(thi_expect *expect, thiele_context *ctx, thi_law **law);
/*
 * The distribution of an output. known: P values, NaN where there is none (the output's own is not used); the
 * distribution is that of the output given the others. Without moments only quantiles can be had, sooner; by draws
 * moments are always there, and the law is kept for whoever asks for it next. Errors: NUMERIC when no mass is found or
 * a density is NaN.
 */
thiele_status thi_law_fit(thi_law *law, thiele_context *ctx, const thi_marginals *row, int output, const double *known,
                          bool moments);
/* kept_laws.c: the one of this row and output, if it is there; keeping it; giving one up. */
bool thi_law_recall(thi_law *law);
thiele_status thi_law_remember(thi_law *law);
void thi_law_forget(thi_kept_law *kept);
/* The y with P(Y <= y) = p, or the smallest count with P(Y <= y) >= p. */
thiele_status thi_law_quantile(thi_law *law, double p, double *y);
/* P(Y <= y). */
thiele_status thi_law_cdf(thi_law *law, double y, double *p);

/*
 * conditional.c: mean and variance of an output of a row with one latent function. Not found: the moments do not vary
 * smoothly with f, or there is no mean.
 */
thiele_status thi_conditional_moments(thi_expect *expect, thiele_context *ctx, const double *mu, double v, int output,
                                      double *mean, double *variance, bool *found);

/* predictive_nodes.c: log densities along the axis, at most THI_EXPECT_BLOCK places; minus infinity beyond its ends. */
thiele_status thi_law_densities(thi_law *law, int count, const double *x, double *log_p);
/* Values and sums of up to THI_CELL_BATCH cells whose ends are set. */
thiele_status thi_law_evaluate(thi_law *law, int count, thi_cell *cell);
/* Whether a cell holds each of its counts. */
bool thi_cell_exact(const thi_law *law, const thi_cell *cell);
/*
 * peaks.c: finds the peaks; sets law->peak to the highest, law->tail, and law->border to ascending places between which
 * all mass lies, dense around each peak; their number in *borders.
 */
thiele_status thi_law_borders(thi_law *law, int *borders);

#endif
