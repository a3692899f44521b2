/*
 * A model: a specification (columns, kernel, mean, method) fitted to a table. It predicts, scores, describes itself,
 * and is saved to and loaded from one file. A fitted model is immutable: any number of threads may use one at the same
 * time, each with a context of its own.
 */
#ifndef THIELE_MODEL_H
#define THIELE_MODEL_H

#include <thiele/likelihood.h>
#include <thiele/metrics.h>
#include <thiele/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_model thiele_model;

/* Why a fit ended. None of them is an error. */
typedef enum thiele_stop {
    THIELE_STOP_CONVERGED = 0, /* no further progress to be had */
    THIELE_STOP_ITERATIONS,    /* the iteration limit */
    THIELE_STOP_DEADLINE,      /* the deadline */
    THIELE_STOP_CANCELLED,     /* the progress callback asked for it */
    THIELE_STOP_FIXED          /* there was nothing to learn */
} thiele_stop;

typedef struct thiele_fit_options {
    size_t size;
    const char *target;      /* comma-separated columns to predict, by name or position; required */
    const char *inputs;      /* comma-separated columns; NULL: all but the target, the ignored ones, and texts with a
                                value of its own in nearly every row (with a warning) */
    const char *ignore;      /* comma-separated columns that are not inputs */
    const char *categorical; /* comma-separated columns to one-hot encode though they look like numbers */
    int drop_missing;        /* 1: leave out rows with missing values; 0: refuse them, but see missing_inputs */
    int drop_constant;       /* no longer needed: inputs that are the same in every row are left out, with a warning */
    int raw;                 /* 1: do not standardise inputs and target */
    const char *method;      /* NULL: "auto"; "exact", "dense", "collapsed", "variational", "augmented";
                                to sample at learned values: "gibbs", "ess", "hmc", "mh"; sparse by blocks: "sor",
                                "dtc", "fitc", "fic", "pitc", "pic", "0.3 fitc + 0.7 dtc"; "decoupled" */
    const char *kernel;      /* NULL: "auto", the one of a few that suits the rows; see kernel.h. Units of the data */
    const char *mean;        /* NULL: "zero" or "constant", as suits the likelihood. "linear" */
    const char *set;         /* "lengthscale[age]=2, noise~0.1": = fixes, ~ gives a first guess; units of the data */
    const char *prior; /* "lengthscale lognormal(0, 1), noise gamma(2, 0.5)": (mu, sigma) of the log; (shape, rate) */
    int restarts;      /* further random starting points; default 0 */
    int iterations;    /* of the optimiser, at most; 0: 200 (lbfgs 500); -1: none, keep the first guesses */
    double deadline;   /* seconds; 0: none. The best model found by then is returned */
    double holdout;    /* fraction of rows to score on; the final model is then conditioned on all rows; 0: none */
    int replicates;    /* no longer needed: rows with equal inputs and different targets are taken as repeated
                          measurements, with a warning that tells the noise they imply */
    const char *likelihood;  /* NULL: "gaussian", or "bernoulli" (with a warning) where the only target has exactly two
                                numbers, each more than once, and nothing asks for Gaussian noise; see likelihood.h.
                                "plugin:FILE.so": your own. Units of the data. Of several targets one for all (each by
                                itself, unless it is one of several outputs), or one for each with ';' between them */
    const char *expectation; /* NULL: the best there is; "closed", "augmented", "quadrature:20", "mc:2000", "qmc:512" */
    const char *classes;     /* comma-separated labels of a class target in their order; NULL: those in the table */
    const char *exposure;    /* column of exposures of counts: the rate is multiplied by it */
    const char *posterior;   /* NULL: "full"; "diag", "mixture:K" (diagonal), "mixture-full:K" */
    int plain;               /* 1: a diagonal q in the coordinates of u itself and not whitened */
    int shared_kernel;       /* 1: all latent functions share one kernel and its parameters */
    int64_t inducing;        /* number of inducing inputs; 0: what suits the table; -1, of decoupled: none */
    const char *basis;       /* where they come from: NULL: "kmeans"; "random", "greedy", or a table file */
    int fixed_basis;         /* 1: they are not learned */
    const char *optimizer;   /* NULL: "auto"; "natural", "lbfgs", "alternate", "adam", "adadelta", "momentum" */
    int64_t batch;           /* rows a step; 0: what suits the table */
    double rate;             /* of adam, adadelta, momentum; 0: their defaults */
    int epochs;              /* passes over the table, at most (an evaluation of all rows is one); 0: default */
    double tolerance;        /* stop when fewer nats a row are gained; 0: default */
    int chains;              /* of a sampler; 0: 4 */
    int64_t draws;           /* of each chain; 0: 1000 */
    int64_t burn_in;         /* steps before the first draw; 0: half as many as follow; -1: none */
    int64_t thin;            /* steps from draw to draw; 0: 1 */
    double step;             /* of hmc and mh; 0: found during burn-in */
    int leaps;               /* of hmc, a step; 0: what suits it */
    const thiele_likelihood *own; /* a likelihood object in place of a text; copied. See thiele_model_attach */
    int64_t blocks;               /* of sor, dtc, fitc, fic, pitc and pic: blocks of rows; 0: what suits the table */
    int anytime;                  /* 1: steps on single blocks, with a complete model after each */
    int64_t step_blocks;          /* blocks a step; 0: what suits the blocks */
    const char *
        schedule; /* "rho_0, tau, kappa" of steps rho_0/(1 + tau rho_0 t)^kappa; NULL: q is that of the blocks so far */
    const char
        *snapshot; /* anytime, decoupled: a file that always has a whole model, from soon after the start; NULL: none */
    double snapshot_every; /* seconds between two of them; 0: 1 */
    int64_t mean_inducing; /* of decoupled: basis functions of the mean (inducing: those of the covariance); 0: 4096 */
    int64_t growth;        /* of decoupled: new basis functions a step; 0: 128, or so many that one pass is enough */
    const char *decoupled; /* its form: NULL: "orthogonal"; "plain" */
    int own_scales;        /* 1: decoupled basis functions have length-scales of their own, learned; se or Matern */
    int calibrate;         /* 1: correct intervals, or class probabilities, by rows that were left or held out; without
                              holdout a fifth of the rows is, at most 2000, unless leave-one-out residuals are there */
    int compact;           /* 1: auto prefers inducing inputs alone, whose models are small and updated fast */
    const char *noise;     /* of a target that is a number, without a likelihood: NULL: "auto", what the rows ask for of
                              "gaussian", "student-t" and "heteroscedastic"; or one of them */
    const char *effort;    /* without a deadline: NULL: "normal", about a minute at most on two cores for 50,000 rows of
                              20 columns; "low", a fifth of that work; "high", five times as much */
    const char *partition; /* of pitc and pic: column each value of which is a block of rows (site, patient); no input
                              unless it is listed in inputs. NULL: blocks are of rows near each other */
    const char *entropy;   /* of a mixture, the bound on its entropy: NULL: "pairwise"; "jensen" */
    int64_t keep;     /* rows kept in the model, for updates to learn parameters from; 0: 4096, or fewer where they have
                         many columns, none if compact; negative: none */
    int level_scales; /* 1: a length-scale for each level of a category; 0: one for all levels of a column */
    int64_t rare_levels; /* levels of fewer rows are taken together as others; 0: of fewer than 5 rows that are less
                            than a hundredth of all; -1: none */
    const char *missing_inputs; /* NULL: "mean", of the column, with an indicator of which rows lack the value;
                                   "refuse"; "drop" such rows */
    const char *weights; /* column of weights: the likelihood of a row is taken to that power, and rows of weight 0 are
                            left out; NULL: 1 in every row */
} thiele_fit_options;

#define THIELE_FIT_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(thiele_fit_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
            0, 0, 0, 0.0, 0, 0.0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
            0                                                                                                          \
    }

/*
 * Fits a model. Errors: ARGUMENT (unknown kernel, method, parameter), COLUMN, DATA (missing or infinite values, a
 * constant column, text where numbers are needed, too few rows, equal rows with different targets), LIMIT (too many
 * rows for the method: the message says what it would take), NUMERIC, MEMORY. A progress callback that asks to stop
 * ends the search, not the fit: the best model so far is made.
 */
THIELE_API thiele_status thiele_model_fit(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                                          const thiele_fit_options *options);
THIELE_API void thiele_model_destroy(thiele_model *model);

/*
 * Saving writes a temporary file beside the target, syncs it and renames it: the target is the old file or the new one,
 * never a half. Loading checks everything and trusts nothing. Errors: IO, FORMAT (what is wrong and where), MEMORY.
 */
THIELE_API thiele_status thiele_model_save(const thiele_model *model, thiele_context *ctx, const char *path);
THIELE_API thiele_status thiele_model_load(thiele_model **out, thiele_context *ctx, const char *path);

/* What the model is and learned, as JSON text; to be freed by thiele_free. docs/file-format.md lists the fields. */
THIELE_API thiele_status thiele_model_describe(const thiele_model *model, thiele_context *ctx, char **json);
THIELE_API thiele_stop thiele_model_stop(const thiele_model *model);
/* The target columns; NULL when out of range. */
THIELE_API int thiele_model_targets(const thiele_model *model);
THIELE_API const char *thiele_model_target(const thiele_model *model, int index);
/*
 * Several targets whose likelihoods are not one of all of them have a model each, fitted to the rows that have the
 * target: parts of the whole, in the order of the targets. Parameters, labels, leave-one-out predictions, calibration
 * and predictions without a table are asked of them. Borrowed; NULL when out of range, or where one model has all.
 */
THIELE_API const thiele_model *thiele_model_part(const thiele_model *model, int target);
/* The labels of a class target in the order of their numbers; 0 when the targets are numbers. */
THIELE_API int thiele_model_classes(const thiele_model *model);
THIELE_API const char *thiele_model_class(const thiele_model *model, int index);
THIELE_API int thiele_model_latents(const thiele_model *model);
/*
 * A model file is data: it never brings code with it. A model that was fitted with your own likelihood predicts latent
 * functions only until that likelihood is attached (it is copied; its learned parameters come from the model). The name
 * of what is needed, or NULL. Errors: ARGUMENT (another likelihood, or nothing to attach to).
 */
THIELE_API const char *thiele_model_needs_likelihood(const thiele_model *model);
THIELE_API thiele_status thiele_model_attach(thiele_model *model, thiele_context *ctx,
                                             const thiele_likelihood *likelihood);
/* The missing-value tokens that the training table was opened with, for opening others; NULL: none. Borrowed. */
THIELE_API const char *thiele_model_missing(const thiele_model *model);
/* Input columns as they are named in the table, and behind them that of a partition. Borrowed; NULL when out of range.
 */
THIELE_API int thiele_model_inputs(const thiele_model *model);
THIELE_API const char *thiele_model_input_name(const thiele_model *model, int index);
/* Learned parameters in the units of the data. name is borrowed. Error: ARGUMENT when out of range. */
THIELE_API int thiele_model_parameters(const thiele_model *model);
THIELE_API thiele_status thiele_model_parameter(const thiele_model *model, int index, const char **name, double *value);
/*
 * Leave-one-out means and variances of the training targets, in the units of the data; rows in training order.
 * Borrowed. Exact regression has them; returns 0 for other methods.
 */
THIELE_API int64_t thiele_model_loo(const thiele_model *model, const double **mean, const double **variance);
/* The scores on the held-out rows, one of each target; rows is 0 when none were held out. */
THIELE_API const thiele_scores *thiele_model_holdout(const thiele_model *model);

/*
 * How a model was calibrated (docs/guide.md has the guarantee). Predictions of observations, their quantiles,
 * variances, draws, class probabilities and scores are those after calibration; latent functions and means have none,
 * and the scores of the fit itself (leave-one-out, held-out) are those before it.
 */
typedef struct thiele_calibration {
    int64_t rows;       /* whose residuals or labels it comes from; 0: the model is not calibrated */
    int left_out;       /* 1: they were left out one by one; 0: held out together */
    double temperature; /* of labels: probabilities are p^(1/temperature), scaled; 0: the targets are numbers */
} thiele_calibration;
THIELE_API void thiele_model_calibration(const thiele_model *model, thiele_calibration *calibration);
/*
 * By how much the central interval of a level in (0, 1) is wider than before, in standard deviations of a normal law
 * for a Gaussian model; 1: not at all. NaN for labels and when target (from 0) or level are out of range.
 */
THIELE_API double thiele_model_stretch(const thiele_model *model, int target, double level);

/* What becomes of a value of a categorical column that training never saw. */
typedef enum thiele_unseen {
    THIELE_UNSEEN_OTHER = 0, /* it is one of the column's other values, with a warning; an error where it has none */
    THIELE_UNSEEN_ZERO,      /* likewise without a warning, and none of the levels (all zeros) where it has none */
    THIELE_UNSEEN_ERROR
} thiele_unseen;

typedef struct thiele_predict_options {
    size_t size;
    int latent;              /* 1: the function; 0: an observation, noise included */
    int unseen_zero;         /* a value of a categorical column that is none of its levels: one of thiele_unseen */
    int drop_missing;        /* 1: leave out rows with missing inputs; 0: refuse them where training lacked none */
    const double *quantiles; /* each in (0, 1) */
    int quantile_count;
    int samples;    /* independent draws for each row */
    const char *id; /* comma-separated columns to copy to the output (thiele_model_predict_file only) */
    int blend;      /* 1: a model by pic mixes what the nearest blocks say, and its predictions are continuous in the
                       inputs. Other models do not look at it. */
    int own_block;  /* 1: a model by pic predicts each row by the training rows of its own block, as a thiele_predictor
                       and joint predictions do: faster; 0: by those nearest to it, of several blocks */
} thiele_predict_options;

#define THIELE_PREDICT_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        sizeof(thiele_predict_options), 0, 0, 0, 0, 0, 0, 0, 0, 0                                                      \
    }

/*
 * Predictions for a run of rows. Arrays are borrowed for the length of the call; column-major, what belongs to one row
 * is adjacent. outputs: the targets, or the latent functions where those were asked for. A class target has
 * probabilities in place of mean and variance, and its quantiles and samples are numbers of classes (from 0).
 */
typedef struct thiele_prediction {
    int64_t rows;
    int outputs, classes;                 /* classes: 0 unless the target is one of labels */
    const int64_t *row;                   /* the table's row of each, from 0 */
    const double *mean;                   /* outputs x rows, units of the targets; NULL for classes */
    const double *variance;               /* outputs x rows; NULL for classes */
    const double *probability;            /* classes x rows; NULL without */
    const double *quantiles;              /* quantile_count x outputs x rows */
    const double *samples;                /* samples x outputs x rows */
    int parts;                            /* targets that have a model each (thiele_model_part); 0: none has */
    const struct thiele_prediction *part; /* the predictions of each; of the fields above rows and row are set */
} thiele_prediction;

/* Returns anything but THIELE_OK to stop. */
typedef thiele_status (*thiele_prediction_fn)(const thiele_prediction *block, void *user);

/* Predicts a table chunk by chunk, in order. Columns are matched by name. options may be NULL. */
THIELE_API thiele_status thiele_model_predict(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                              const thiele_predict_options *options, thiele_prediction_fn sink,
                                              void *user);
/*
 * The same into a CSV file (by a temporary name and a rename) or, for "-", to standard output: id columns, mean, sd,
 * q0.05 ... for quantiles, s1 ... for samples; of several outputs each is followed by a dot and the target's name. Of a
 * class target: label (the most probable), then p.LABEL for each.
 */
THIELE_API thiele_status thiele_model_predict_file(const thiele_model *model, thiele_context *ctx,
                                                   const thiele_table *table, const thiele_predict_options *options,
                                                   const char *path);
/*
 * n rows given as numbers: x is row-major, one value per input column in the model's order, in the units of the data; a
 * categorical column takes the index of its level (from 0, levels in the order of the description), and so does that of
 * a partition, which comes last (-1: a value that was never seen). mean and variance: outputs x n; variance may be
 * NULL. Error: UNSUPPORTED for a class target (thiele_model_predict_probabilities) unless latent.
 */
THIELE_API thiele_status thiele_model_predict_rows(const thiele_model *model, thiele_context *ctx, int64_t n,
                                                   const double *x, int latent, double *mean, double *variance);
/* The probability of each class: classes x n. Error: UNSUPPORTED when the target is a number. */
THIELE_API thiele_status thiele_model_predict_probabilities(const thiele_model *model, thiele_context *ctx, int64_t n,
                                                            const double *x, double *probability);
/*
 * The joint distribution of all rows of a table: mean (rows) and covariance (rows x rows, symmetric). Rows with missing
 * inputs are refused: drop_missing is an error here. One latent function; of observations only when the noise is
 * Gaussian. Error: UNSUPPORTED otherwise.
 */
THIELE_API thiele_status thiele_model_predict_joint(const thiele_model *model, thiele_context *ctx,
                                                    const thiele_table *table, const thiele_predict_options *options,
                                                    double *mean, double *covariance);

/*
 * Scores predictions for a table that has the target columns; scores: one of each target. Error: DATA where a target is
 * missing (of several, where all are).
 */
THIELE_API thiele_status thiele_model_score(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                            const thiele_predict_options *options, thiele_scores *scores);

/*
 * The log predictive density of each row's targets, or the log probability of its label: targets x rows, an entry for
 * every row of the table. NaN where a target is missing, or the row was left out (drop_missing). Minus their mean is
 * the NLPD of thiele_model_score. Errors as there.
 */
THIELE_API thiele_status thiele_model_log_densities(const thiele_model *model, thiele_context *ctx,
                                                    const thiele_table *table, const thiele_predict_options *options,
                                                    double *out);

/*
 * The scores of a model with one target of classes, and which labels it takes for which: confusion[label + classes *
 * guess] is the number of rows with a label whose most probable class (the lowest on a tie) is the guess; classes x
 * classes. Of a model with parts ask the part. Error: UNSUPPORTED when the target is a number.
 */
THIELE_API thiele_status thiele_model_confusion(const thiele_model *model, thiele_context *ctx,
                                                const thiele_table *table, const thiele_predict_options *options,
                                                thiele_scores *scores, int64_t *confusion);

/*
 * k-fold cross-validation: rows are dealt to folds at random (by the context's seed); each fold is scored by a model
 * fitted to the others. each (folds scores) may be NULL; overall is their mean, each fold with the weight of its rows.
 * Of several targets the mean over them is taken of what has no unit; errors in their units are NaN. Errors as
 * thiele_model_fit, and CANCELLED when the progress callback asked to stop.
 */
THIELE_API thiele_status thiele_cross_validate(thiele_context *ctx, const thiele_table *table,
                                               const thiele_fit_options *options, int folds, thiele_scores *each,
                                               thiele_scores *overall);

#ifdef __cplusplus
}
#endif
#endif
