/*
 * The options of a fit in groups: options.columns.target. Written by `make options` from src/model/options.def, and
 * explained in docs/options.md. What is 0 or NULL is left at its default; where the default is the fit's to choose,
 * a number that is to be 0 itself is -1. A flag is 1 or 0. Texts are borrowed.
 *
 * Every option takes eight bytes, and new ones take the place of what is reserved at the end of their group: a program
 * works with later libraries without being compiled again.
 */
#ifndef THIELE_FIT_OPTIONS_H
#define THIELE_FIT_OPTIONS_H

#include <thiele/likelihood.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Columns. Lists are comma-separated. A column is given by its name or, where no column has that name, by its position:
 * 1 is the first, -1 the last.
 */
typedef struct thiele_columns_options {
    /* Columns to predict, by name or position (-1: the last). Required. */
    const char *target;
    /* Columns to predict from. Default: all others. */
    const char *inputs;
    /* Columns that are not inputs. Default: none. */
    const char *ignore;
    /* Columns of numbers that name categories. Default: columns of text. */
    const char *categorical;
    /* A length-scale for each level of a category. Default: one for all levels of a column. */
    int64_t level_scales;
    /*
     * Pool levels of a category that have fewer rows than this as other; 0: none. Default: auto (5, at most a hundredth
     * of all rows). -1 stands for 0.
     */
    int64_t rare_levels;
    /* Labels of a class target in their order, such as low,mid,high. Default: those in the table, sorted. */
    const char *classes;
    /* Column of exposures (time, area, people) that multiply the rates of counts. Default: none. */
    const char *exposure;
    /*
     * For pitc and pic: column whose values define the blocks of rows (site, patient). Default: blocks group nearby
     * rows.
     */
    const char *partition;
    /*
     * What to do with missing inputs: mean (use the column's mean, with an indicator), refuse, or drop. Default: mean.
     */
    const char *missing_inputs;
    /* Leave out rows with missing inputs or targets. Default: rows without a target are refused. */
    int64_t drop_missing;
    /* Do not standardise inputs and target. */
    int64_t raw;
    /*
     * Column of weights: a row of weight 2 counts as that row twice, one of weight 0 not at all. Default: 1 in every
     * row.
     */
    const char *weights;
    int64_t reserved[11]; /* zeros */
} thiele_columns_options;

/* Model. How targets scatter around a function with a Gaussian-process prior, and by which method it is inferred. */
typedef struct thiele_model_options {
    /*
     * How targets scatter around the function; parameters in parentheses, as in student-t(nu=4). Default: auto
     * (gaussian; bernoulli or softmax for labels).
     */
    const char *likelihood;
    /* A likelihood object instead of text; it is copied. Default: none. */
    const thiele_likelihood *own;
    /*
     * Noise of a target that is a number: gaussian, student-t (with outliers) or heteroscedastic (varying with the
     * inputs). Default: auto (whichever suits the rows).
     */
    const char *noise;
    /* How the expectation of log p(y | f) is computed. Default: auto (the best that the likelihood offers). */
    const char *expectation;
    /*
     * How the posterior is found; block methods can be mixed, as in '0.3 fitc + 0.7 dtc'. Default: auto (what suits
     * table and likelihood).
     */
    const char *method;
    int64_t reserved[19]; /* zeros */
} thiele_model_options;

/* Prior. The Gaussian-process prior of the latent functions and its parameters, in the units of the data. */
typedef struct thiele_prior_options {
    /*
     * Covariance function: a sum of products of kernels; with ';', one for each latent function. Default: auto (the
     * best of a few on some of the rows).
     */
    const char *kernel;
    /* One kernel, with one set of parameters, for all latent functions. */
    int64_t share_kernel;
    /* Mean function; linear is mean.constant + mean.slope x. Default: auto (what suits the likelihood). */
    const char *mean;
    /* name=value fixes a parameter, name~value gives a first guess. Default: nothing. */
    const char *set;
    /* Priors of parameters, as in 'lengthscale lognormal(0, 1), noise gamma(2, 0.5)'. Default: none. */
    const char *prior;
    int64_t reserved[19]; /* zeros */
} thiele_prior_options;

/* Inducing inputs. For methods whose posterior is over function values at inducing inputs. */
typedef struct thiele_inducing_options {
    /* A small model with fast updates: only inducing inputs, where auto would keep all rows. */
    int64_t compact;
    /*
     * Number of inducing inputs; 0: none (decoupled only). Default: auto (500, fewer with several latent functions). -1
     * stands for 0.
     */
    int64_t inducing;
    /* Where inducing inputs come from: kmeans, random, greedy, or a table file. Default: auto (kmeans). */
    const char *inducing_from;
    /* Keep inducing inputs fixed. Default: they are learned. */
    int64_t fix_inducing;
    /* Family of the approximate posterior: one Gaussian, full or diagonal, or a mixture of K. Default: auto (full). */
    const char *posterior;
    /* Lower bound on the entropy of a mixture. Default: auto (pairwise). */
    const char *entropy;
    /* A diagonal posterior over function values instead of whitened coordinates. Default: whitened coordinates. */
    int64_t plain;
    int64_t reserved[17]; /* zeros */
} thiele_inducing_options;

/* Optimiser. How hyperparameters and posterior are learned. */
typedef struct thiele_optimiser_options {
    /* How the bound is maximised; gradient is for blocks only. Default: auto (what suits method and posterior). */
    const char *optimiser;
    /* Rows per step. Default: auto (all rows up to 4096, else 1024). */
    int64_t batch;
    /* Step length of adam, adadelta or momentum. Default: auto (adam 0.01, adadelta 1, momentum 0.001). */
    double rate;
    /* Additional random starting points. Default: none. */
    int64_t restarts;
    int64_t reserved[20]; /* zeros */
} thiele_optimiser_options;

/* Stopping. When a fit ends, and how much work it may take. */
typedef struct thiele_stopping_options {
    /* Stop after this time and keep the best model found. In seconds. Default: none. */
    double deadline;
    /* How much work to do where no deadline decides. Default: normal. */
    const char *effort;
    /* Maximum optimiser iterations; 0 keeps the first guesses. Default: auto (200, lbfgs 500). -1 stands for 0. */
    int64_t iterations;
    /* Maximum passes over the rows; an evaluation on all rows counts as one. Default: auto (by method). */
    int64_t epochs;
    /* Stop when the gain falls below this. In nats per row. Default: auto (1e-5). */
    double tolerance;
    int64_t reserved[19]; /* zeros */
} thiele_stopping_options;

/*
 * Sampling. For the methods that draw from the posterior at the learned parameters. At most 256 of the draws, evenly
 * spaced, are kept in the model, and predictions are mixtures over them. With a deadline, three tenths of the time go
 * to learning the parameters. thiele info says how well the chains mixed.
 */
typedef struct thiele_sampling_options {
    /* Independent chains. Default: auto (4). */
    int64_t chains;
    /* Draws per chain. Default: auto (1000). */
    int64_t draws;
    /* Steps before the first draw. Default: auto (half as many as follow). -1 stands for 0. */
    int64_t burn_in;
    /* Steps between draws. Default: auto (1). */
    int64_t thin;
    /* Step length of hmc and mh. Default: auto (found during burn-in). */
    double step;
    /* Leapfrog steps per HMC move. Default: auto (what suits the step). */
    int64_t leaps;
    int64_t reserved[18]; /* zeros */
} thiele_sampling_options;

/* Blocks. For sparse regression by blocks of rows: sor, dtc, fitc, fic, pitc, pic, and sums of them. */
typedef struct thiele_blocks_options {
    /* Number of blocks of rows. Default: auto (some 500 rows each). */
    int64_t blocks;
    /* Learn block by block, with a complete model after each step. */
    int64_t anytime;
    /* Blocks per step of an anytime fit. Default: auto (some 2,000 rows). */
    int64_t step_blocks;
    /*
     * Steps of rho/(1 + tau rho t)^kappa towards the estimate from a few blocks. Default: the posterior is that of the
     * blocks so far.
     */
    const char *schedule;
    int64_t reserved[20]; /* zeros */
} thiele_blocks_options;

/*
 * Decoupled bases. For the methods decoupled (a large basis for the mean, a small one for the covariance) and
 * incremental (one basis that grows). inducing is the basis of the covariance: 500 by default, at most half of the
 * rows.
 */
typedef struct thiele_decoupled_options {
    /* Basis functions of the mean. Default: auto (4096). */
    int64_t mean_inducing;
    /* New basis functions per step, at rows of its batch. Default: auto (128). */
    int64_t growth;
    /* Form of the decoupled bases. Default: auto (orthogonal). */
    const char *decoupled;
    /* Learn separate length-scales for each basis function. */
    int64_t own_scales;
    int64_t reserved[20]; /* zeros */
} thiele_decoupled_options;

/* Result. What is scored, corrected, kept and saved. */
typedef struct thiele_result_options {
    /*
     * Score on this part of the rows first, then condition the model on all of them. In fraction of the rows. Default:
     * none.
     */
    double holdout;
    /* Correct intervals or label probabilities by rows left or held out. */
    int64_t calibrate;
    /*
     * Rows that a sparse model keeps, from which streams and updates learn its parameters; 0: none. Default: auto
     * (4096, fewer with many columns, none if compact). -1 stands for 0.
     */
    int64_t keep;
    /*
     * Time between snapshots, which save the model while it is being fitted. In seconds. Default: auto (at the end
     * only).
     */
    double snapshot;
    /* Where snapshots are saved, every second unless snapshot says otherwise. Default: none. */
    const char *snapshot_file;
    int64_t reserved[19]; /* zeros */
} thiele_result_options;

typedef struct thiele_fit_options {
    size_t size; /* set by the INIT macro */
    thiele_columns_options columns;
    thiele_model_options model;
    thiele_prior_options prior;
    thiele_inducing_options inducing;
    thiele_optimiser_options optimiser;
    thiele_stopping_options stopping;
    thiele_sampling_options sampling;
    thiele_blocks_options blocks;
    thiele_decoupled_options decoupled;
    thiele_result_options result;
} thiele_fit_options;

#define THIELE_FIT_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_fit_options)

#ifdef __cplusplus
}
#endif
#endif
