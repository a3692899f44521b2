/*
 * Integrals over f ~ N(mu, diag sd^2), one row of data or many: what is integrated (an integrand), where it is
 * evaluated (a rule, or panels on the line), and the work space that both use.
 *
 * Points of several rows are evaluated in one call, those of a row next to each other: vectorised densities run at full
 * speed however few rows there are, and what depends on y alone needs to be computed once a row.
 */
#ifndef THI_INTEGRATE_H
#define THI_INTEGRATE_H

#include "expect/expect.h"

/*
 * Points a call: few enough for the first-level cache, enough for long vectors. A user's own function of many points,
 * which may be one of Python, is called with more of them: by then what a call costs is shared by enough.
 */
enum { THI_POINTS = 512, THI_POINTS_OF_OWN = 8192 };

/*
 * E[f(Z)] ~ sum_k weight_k f(z_k) for Z ~ N(0, I) in Q dimensions; z: Q x count. Each point may have several weights,
 * for several means at once: weight is columns x count.
 */
typedef struct thi_rule {
    int64_t count, columns;
    double *z, *weight;
} thi_rule;
void thi_rule_clear(thi_rule *rule);
/*
 * rules.c. Gauss-Legendre with 16 points: nodes on (0, 1) of the rule for (-1, 1), which is symmetric, from the largest
 * down, and their weights (Abramowitz and Stegun, table 25.4).
 */
extern const double thi_legendre[8][2];
/* The tensor product of Gauss-Hermite rules, without points of negligible weight when Q > 1. */
thiele_status thi_rule_hermite(thi_rule *rule, thiele_context *ctx, int nodes, int Q);
/* sobol.c: scrambled Sobol points at the normal's quantiles; equal weights. `number`: of the scrambling. */
thiele_status thi_rule_sobol(thi_rule *rule, thiele_context *ctx, uint64_t seed, int number, int64_t count, int Q);

/*
 * Pairs of points z, -z with weights that turn the values of a function there into its mean and its coefficients on the
 * scores, by least squares (design.c). One design serves many rows: a row sees it with signs of its own and, where all
 * latents are alike to it, its dimensions turned, so that the errors of rows are as good as independent.
 */
typedef struct thi_design {
    int64_t pairs;
    double *z;    /* Q x pairs */
    double *even; /* pairs x (1 + Q): for the mean, and for the coefficients of (z_q^2 - 1)/sqrt 2 */
    double *odd;  /* pairs x Q: for those of z_q */
    double *half; /* pairs: half the mean's, for z and for -z */
    double *rest; /* pairs x 2: at right angles to all even and all odd terms, of length 1 */
} thi_design;

/* The points of one row among n that were evaluated together: numbers at .. at + count - 1. */
typedef struct thi_points {
    int64_t n, at, count;
    const double *value;  /* as thi_integrand.evaluate left it */
    const double *z, *w;  /* Q x count, columns x count */
    const double *centre; /* the row's values at f = mu, or NULL */
} thi_points;

/* A row and its results, from which (E, g, h) are made. */
typedef struct thi_moments {
    const double *y, *mu, *v;
    const double *sd; /* the spread that was used: larger than sqrt(v) when narrow */
    const double *centre, *result;
} thi_moments;

typedef struct thi_integrand thi_integrand;
struct thi_integrand {
    const thiele_likelihood *lik;
    int64_t values;      /* doubles a point */
    int64_t results;     /* doubles a row: sums over its points */
    int64_t judged;      /* panels: so many of them must agree, from the first; 0: all */
    bool centred;        /* the values at f = mu are wanted too */
    bool raw;            /* panels: the weight does not contain the normal density */
    bool control, pairs; /* montecarlo.c: with the control variate; the draws are antithetic */
    double noise;        /* rounding of a value, relative to 1 + |first value at the centre| */
    double *scratch;     /* as many doubles as points */
    void *extra;
    /* n <= space->points, y: P x n, f: Q x n. */
    void (*evaluate)(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value);
    /* result += sum_k w_k ... over the points of a row */
    void (*reduce)(const thi_integrand *in, const thi_points *points, double *result);
    /* Whether two rules agree for a row, up to `tolerance`. */
    bool (*settled)(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                    const double *now);
    /* Returns E, sets g and h (Q each). */
    double (*finish)(const thi_integrand *in, const thi_moments *row, double *g, double *h);
};

/* Rows `row[0..count-1]` of a block. y: P x n, mu and sd: Q x n, centre: values x n, for all rows of the block. */
typedef struct thi_block_rows {
    int64_t count;
    const int *row;
    const double *y, *mu, *sd;
    const double *centre;
} thi_block_rows;

enum { THI_LEVELS = 5, THI_BORDERS_MAX = 256, THI_PANEL_STACK = 1536, THI_CONTROL_SUMS = 10, THI_DESIGNS = 16 };

struct thi_space {
    const thiele_likelihood *lik;
    int P, Q;
    int64_t values, results; /* the most that an integrand may have */
    int64_t points;          /* a call */
    /* as many of each */
    double *y, *f, *value, *z, *w, *scratch;
    /* THI_EXPECT_BLOCK of each */
    double *sd, *centre, *result, *before, *now, *label;
    int *row, *pending, *group, *level;
    thi_rule ladder[THI_LEVELS];     /* made when first needed */
    thi_rule fixed;                  /* "quadrature:n", "qmc:n" */
    thi_design designs[THI_DESIGNS]; /* "mc:n", "qmc:n"; made when first needed */
    thi_design brief[THI_DESIGNS];   /* of fewer points, that are enough for some polynomials */
    int64_t brief_points;            /* of one; 0: not known yet; -1: there are none */
    bool *coupled;                   /* Q x Q: latents that log p has terms of together; found when first needed */
    bool apart;                      /* some are not */
    int64_t scattered;               /* draws a prediction takes; 0: quadrature */
    bool coarse;                     /* a few of them are enough for now */
    thi_rule sobol, few, many;       /* of predictions by draws; made when first needed */
    double *stack, *border;          /* adaptive_panels.c; made when first needed */
    double *mixed, *gathered;        /* mixture.c; made when first needed */
    int components;                  /* that `gathered` has room for */
    double floor;                    /* log predictive densities far below this need not be exact; usually none */
    struct thi_law *law;             /* predictions from the density alone; made when first needed */
    thiele_likelihood copy;          /* with values of its own, for differences in phi */
};
thiele_status thi_space_open(thi_space **out, thiele_context *ctx, const thiele_likelihood *lik);
void thi_space_close(thi_space *space);
/* The rule of a level of the ladder; NULL in *rule above the top. */
thiele_status thi_space_level(thi_space *space, thiele_context *ctx, int level, const thi_rule **rule);

/* Fills space->row with the rows that have an output (all when y is NULL) and returns their number. */
int64_t thi_space_rows(thi_space *space, int64_t n, const double *y);
/* space->sd from v, n rows; ARGUMENT when a marginal is not a Gaussian. */
thiele_status thi_space_spread(thi_space *space, thiele_context *ctx, int64_t n, const double *mu, const double *v);
/* centre = values at f = mu of the rows. */
void thi_space_centre(thi_space *space, const thi_integrand *in, const thi_block_rows *rows, double *centre);

/* --- quadrature.c ------------------------------------------------------------------------------------------------- */
/* result (results x n, those of the rows) = sums over the rule. */
void thi_sweep(thi_space *space, const thi_integrand *in, const thi_rule *rule, const thi_block_rows *rows,
               double *result);
/* result += sums over at most space->points of them, for row i alone. */
void thi_sweep_add(thi_space *space, const thi_integrand *in, const thi_rule *rule, const thi_block_rows *rows,
                   int64_t i, double *result);
/* Copies the P outputs of a row `count` times. */
void thi_repeat(int64_t P, const double *y, int64_t count, double *out);
/*
 * More and more nodes until a row settles. level (n): where it did; THI_LEVELS for rows that did not (their result is
 * that of the last rule) or have a kink (they have no result).
 */
thiele_status thi_climb(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_block_rows *rows,
                        double *result, int *level);
/*
 * The same, but rows that do not settle are split into panels when Q = 1 and keep the last rule otherwise. `again`: at
 * the levels given.
 */
thiele_status thi_ladder(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_block_rows *rows,
                         double *result, int *level, bool again);

/* Predictions: the ladder, or quasi-random points (space->scattered). */
thiele_status thi_average(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_block_rows *rows,
                          double *result);
/* The same by points only, most of which there may be, for rows of which the others have seen too little. */
thiele_status thi_average_again(thi_space *space, thiele_context *ctx, const thi_integrand *in,
                                const thi_block_rows *rows, double *result);

/*
 * mixture.c: row i of a block by itself, its components one behind the other; 2 P doubles are free behind its mu and v.
 * It lasts until the next is asked for.
 */
thiele_status thi_gather(thi_space *space, thiele_context *ctx, const thi_marginals *m, int64_t i, thi_marginals *row);

/* --- adaptive_panels.c: Q = 1
 * ----------------------------------------------------------------------------------------------- */
/* One row: y (P), mu, sd, centre. */
typedef struct thi_line {
    const double *y, *centre;
    double mu, sd;
} thi_line;
/* Adaptive panels between ascending borders on the axis of z = (f - mu)/sd; result (results) is set. */
thiele_status thi_panels(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_line *line,
                         int borders, const double *border, double *result);
/* The same over all that the normal weight reaches, with borders at and around the bends. */
thiele_status thi_split(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_line *line,
                        double *result);
/* The bends of log p(y | f), none when Q > 1 or there is no y. */
int thi_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend);
/* Whether log p has a kink or a feature too narrow for Gauss-Hermite nodes within reach of the marginal. */
bool thi_has_kink(const thiele_likelihood *lik, const double *y, double mu, double sd);
/* Adds `at` and points around it at distances width, 8 width, ... < reach; returns the new number. */
int thi_borders_around(int borders, double *border, double at, double width, double reach);
/* Ascending, without near-duplicates and outside (low, high); returns how many are left. */
int thi_borders_sort(int borders, double *border, double low, double high);

/* --- montecarlo.c ------------------------------------------------------------------------------------------------- */
typedef struct thi_draws {
    uint64_t seed;
    int64_t first; /* number of the block's first row */
    int64_t count;
    bool antithetic;
    bool quasi; /* designs of Sobol points */
} thi_draws;
void thi_draw_sweep(thi_space *space, const thi_integrand *in, const thi_draws *draws, const thi_block_rows *rows,
                    double *result);

/* (E, g, h) from the results of thi_integrand_control. */
double thi_finish_control(const thi_integrand *in, const thi_moments *row, double *g, double *h);

/* --- design.c ----------------------------------------------------------------------------------------------------- */

void thi_design_clear(thi_design *design);
typedef struct thi_design_plan {
    uint64_t seed;
    int number; /* tells the designs of a seed apart */
    bool quasi;
    int64_t points; /* an even number */
    int Q;
    const bool *coupled; /* Q x Q: which latents occur together; NULL: all do */
    bool exact;          /* for densities that the terms span: they may be nearly as many as there are pairs */
} thi_design_plan;
thiele_status thi_design_make(thi_design *design, thiele_context *ctx, const thi_design_plan *plan);
/* Whether the draws of a row can be cut into designs: there are enough, and not too many. */
bool thi_designs_fit(int64_t count, int Q);
/* Whether they have room for the terms of all latents together. */
bool thi_designs_whole(int64_t count, int Q);

/* --- couplings.c -------------------------------------------------------------------------------------------------- */

/* Sets space->coupled and space->apart. The buffers of points are overwritten. */
thiele_status thi_couplings_find(thi_space *space, thiele_context *ctx);
/* Values that it looks at, with y in space->y for so many points: f (Q), and the likelihood is space->copy. */
void thi_couplings_place(thi_space *space, int place, int64_t points, double *f);

/* --- regress.c ---------------------------------------------------------------------------------------------------- */

/*
 * E, g, h (1, Q, Q a row) of the rows by designs, from log densities alone; rows->sd is the spread that is used, v what
 * it stands for. What a row gets depends on its number and itself.
 */
thiele_status thi_regress(thi_space *space, thiele_context *ctx, const thi_draws *draws, const thi_block_rows *rows,
                          const double *v, double *E, double *g, double *h);
/* The means of an integrand, which does not ask for z, at the same points. */
thiele_status thi_design_sweep(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_draws *draws,
                               const thi_block_rows *rows, double *result);

/* --- integrands.c: log p and its derivatives or scores ------------------------------------------------------------ */
/* E[l], E[l'], E[l''] */
thi_integrand thi_integrand_slopes(const thi_space *space);
/* E[(l - l(mu)) He_j(z)], j = 0 .. 2, or .. 4 when narrow */
thi_integrand thi_integrand_scores(const thi_space *space, bool narrow);
/* The moments of l and of the scores that the control variate needs. */
thi_integrand thi_integrand_control(const thi_space *space);
/* sum_k w_k x_k, in an order that depends on n alone */
double thi_weigh(int64_t n, const double *w, const double *x);
/* The derivatives in phi. */
thi_integrand thi_integrand_phi(thi_space *space);

/* The spread at which scores are taken: sd, or more where rounding would drown them (integrands.c). */
double thi_score_spread(const thiele_likelihood *lik, const double *y, double mu, double sd);

#endif
