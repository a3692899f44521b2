/*
 * A model: a specification (columns, kernel, mean, method) fitted to a table. It predicts, scores, describes itself,
 * and is saved to and loaded from one file. A fitted model is immutable: any number of threads may use one at the same
 * time, each with a context of its own.
 */
#ifndef THIELE_MODEL_H
#define THIELE_MODEL_H

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
    const char *target;      /* column to predict, by name or position; required */
    const char *inputs;      /* comma-separated columns; NULL: all but the target and the ignored ones */
    const char *ignore;      /* comma-separated columns that are not inputs */
    const char *categorical; /* comma-separated columns to one-hot encode though they look like numbers */
    int drop_missing;        /* 1: leave out rows with missing values; 0: refuse them */
    int raw;                 /* 1: do not standardise inputs and target */
    const char *method;      /* NULL: "auto". "exact" */
    const char *kernel;      /* NULL: "matern52(ard)"; see kernel.h. Values in the units of the data */
    const char *mean;        /* NULL: "zero" (of the standardised target). "constant", "linear" */
    const char *set;         /* "lengthscale[age]=2, noise~0.1": = fixes, ~ gives a first guess; units of the data */
    const char *prior; /* "lengthscale lognormal(0, 1), noise gamma(2, 0.5)": (mu, sigma) of the log; (shape, rate) */
    int restarts;      /* further random starting points; default 0 */
    int iterations;    /* of the optimiser, at most; 0: 200; -1: none, keep the first guesses */
    double deadline;   /* seconds; 0: none. The best model found by then is returned */
    double holdout;    /* fraction of rows to score on; the final model is then conditioned on all rows; 0: none */
    int replicates;    /* 1: rows with equal inputs and different targets are repeated measurements, which the noise
                          explains; 0: refuse them */
} thiele_fit_options;

#define THIELE_FIT_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(thiele_fit_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0                                 \
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
THIELE_API const char *thiele_model_target(const thiele_model *model);
/* The missing-value tokens that the training table was opened with, for opening others; NULL: none. Borrowed. */
THIELE_API const char *thiele_model_missing(const thiele_model *model);
/* Input columns as they are named in the table. Borrowed; NULL when out of range. */
THIELE_API int thiele_model_inputs(const thiele_model *model);
THIELE_API const char *thiele_model_input_name(const thiele_model *model, int index);
/* Learned parameters in the units of the data. name is borrowed. Error: ARGUMENT when out of range. */
THIELE_API int thiele_model_parameters(const thiele_model *model);
THIELE_API thiele_status thiele_model_parameter(const thiele_model *model, int index, const char **name, double *value);
/* Leave-one-out means and variances of the training targets, in the units of the data; rows in training order.
 * Borrowed. */
THIELE_API int64_t thiele_model_loo(const thiele_model *model, const double **mean, const double **variance);
/* The scores on the held-out rows; rows is 0 when none were held out. */
THIELE_API const thiele_scores *thiele_model_holdout(const thiele_model *model);

typedef struct thiele_predict_options {
    size_t size;
    int latent;       /* 1: the function; 0: an observation, noise included */
    int unseen_zero;  /* 1: a level of a categorical column that training never saw is encoded as all zeros; 0: an error
                       */
    int drop_missing; /* 1: leave out rows with missing inputs; 0: refuse them */
    const double *quantiles; /* each in (0, 1) */
    int quantile_count;
    int samples;    /* independent draws for each row */
    const char *id; /* comma-separated columns to copy to the output (thiele_model_predict_file only) */
} thiele_predict_options;

#define THIELE_PREDICT_OPTIONS_INIT                                                                                    \
    {                                                                                                                  \
        sizeof(thiele_predict_options), 0, 0, 0, 0, 0, 0, 0                                                            \
    }

/* Predictions for a run of rows. Arrays are borrowed for the length of the call. */
typedef struct thiele_prediction {
    int64_t rows;
    const int64_t *row;      /* the table's row of each, from 0 */
    const double *mean;      /* rows numbers, units of the target */
    const double *variance;  /* rows numbers */
    const double *quantiles; /* quantile_count x rows, column-major: those of one row are adjacent */
    const double *samples;   /* samples x rows, likewise */
} thiele_prediction;

/* Returns anything but THIELE_OK to stop. */
typedef thiele_status (*thiele_prediction_fn)(const thiele_prediction *block, void *user);

/* Predicts a table block by block, in order. Columns are matched by name. options may be NULL. */
THIELE_API thiele_status thiele_model_predict(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                              const thiele_predict_options *options, thiele_prediction_fn sink,
                                              void *user);
/*
 * The same into a CSV file (by a temporary name and a rename) or, for "-", to standard output: id columns, mean, sd,
 * q0.05 ... for quantiles, s1 ... for samples.
 */
THIELE_API thiele_status thiele_model_predict_file(const thiele_model *model, thiele_context *ctx,
                                                   const thiele_table *table, const thiele_predict_options *options,
                                                   const char *path);
/*
 * n rows given as numbers: x is row-major, one value per input column in the model's order, in the units of the data; a
 * categorical column takes the index of its level (from 0, levels in the order of the description). variance may be
 * NULL.
 */
THIELE_API thiele_status thiele_model_predict_rows(const thiele_model *model, thiele_context *ctx, int64_t n,
                                                   const double *x, int latent, double *mean, double *variance);
/*
 * The joint distribution of all rows of a table: mean (rows) and covariance (rows x rows, symmetric). Rows with missing
 * inputs are refused: drop_missing is an error here.
 */
THIELE_API thiele_status thiele_model_predict_joint(const thiele_model *model, thiele_context *ctx,
                                                    const thiele_table *table, const thiele_predict_options *options,
                                                    double *mean, double *covariance);

/* Scores predictions for a table that has the target column. Error: DATA where a target is missing. */
THIELE_API thiele_status thiele_model_score(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                            const thiele_predict_options *options, thiele_scores *scores);

/*
 * k-fold cross-validation: rows are dealt to folds at random (by the context's seed); each fold is scored by a model
 * fitted to the others. each (folds scores) may be NULL; overall is their mean, each fold with the weight of its rows.
 * Errors as thiele_model_fit, and CANCELLED when the progress callback asked to stop.
 */
THIELE_API thiele_status thiele_cross_validate(thiele_context *ctx, const thiele_table *table,
                                               const thiele_fit_options *options, int folds, thiele_scores *each,
                                               thiele_scores *overall);

#ifdef __cplusplus
}
#endif
#endif
