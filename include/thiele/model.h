/*
 * A model: a specification (columns, kernel, mean, method) fitted to a table. It predicts, scores, describes itself,
 * and is saved to and loaded from one file. A fitted model is immutable: any number of threads may use one at the same
 * time, each with a context of its own.
 */
#ifndef THIELE_MODEL_H
#define THIELE_MODEL_H

#include <thiele/fit_options.h>
#include <thiele/metrics.h>
#include <thiele/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_model thiele_model;

/* Why a fit ended. None of them is an error. */
typedef enum thiele_stop {
    THIELE_STOP_CONVERGED = 0, /* no further progress */
    THIELE_STOP_ITERATIONS,    /* the iteration limit */
    THIELE_STOP_DEADLINE,      /* the deadline */
    THIELE_STOP_CANCELLED,     /* the progress callback requested it */
    THIELE_STOP_FIXED          /* there was nothing to learn */
} thiele_stop;

/*
 * Fits a model. Errors: ARGUMENT (unknown kernel, method, parameter), COLUMN, DATA (missing or infinite values, a
 * constant column, text where numbers are needed, too few rows, equal rows with different targets), LIMIT (too many
 * rows for the method: the message says what it would take), NUMERIC, MEMORY. A progress callback that asks to stop
 * ends the search, not the fit: the result is the best model so far.
 */
THIELE_API thiele_status thiele_model_fit(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                                          const thiele_fit_options *options);
THIELE_API void thiele_model_destroy(thiele_model *model);

/*
 * Saving writes a temporary file beside the target, syncs it and renames it: the target is the old file or the new one,
 * never half of either. Loading checks everything and trusts nothing. Errors: IO, FORMAT (what is wrong and where),
 * MEMORY.
 */
THIELE_API thiele_status thiele_model_save(const thiele_model *model, thiele_context *ctx, const char *path);
THIELE_API thiele_status thiele_model_load(thiele_model **out, thiele_context *ctx, const char *path);

/* What the model is and has learned, as JSON; free it with thiele_free. docs/file-format.md lists the fields. */
THIELE_API thiele_status thiele_model_describe(const thiele_model *model, thiele_context *ctx, char **json);
THIELE_API thiele_stop thiele_model_stop(const thiele_model *model);
/* The target columns; NULL when out of range. */
THIELE_API int thiele_model_targets(const thiele_model *model);
THIELE_API const char *thiele_model_target(const thiele_model *model, int index);
/*
 * Several targets without a joint likelihood have a model each, fitted to the rows that have the target: the parts of
 * the whole, in the order of the targets. Parameters, labels, leave-one-out predictions, calibration and predictions
 * without a table are available from the parts. Borrowed; NULL when out of range, or if one model covers all targets.
 */
THIELE_API const thiele_model *thiele_model_part(const thiele_model *model, int target);
/* The labels of a class target in the order of their numbers; 0 when the targets are numbers. */
THIELE_API int thiele_model_classes(const thiele_model *model);
THIELE_API const char *thiele_model_class(const thiele_model *model, int index);
THIELE_API int thiele_model_latents(const thiele_model *model);
/*
 * A model file is data: it never contains code. A model fitted with your own likelihood predicts only latent functions
 * until that likelihood is attached (it is copied; its learned parameters come from the model). Returns the name of
 * the likelihood it needs, or NULL. Errors: ARGUMENT (another likelihood, or none needed).
 */
THIELE_API const char *thiele_model_needs_likelihood(const thiele_model *model);
THIELE_API thiele_status thiele_model_attach(thiele_model *model, thiele_context *ctx,
                                             const thiele_likelihood *likelihood);
/* The missing-value tokens of the training table, for opening others; NULL: none. Borrowed. */
THIELE_API const char *thiele_model_missing(const thiele_model *model);
/* Input columns as named in the table, followed by that of a partition. Borrowed; NULL out of range. */
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
/* The scores on the held-out rows, one per target; rows is 0 if none were held out. */
THIELE_API const thiele_scores *thiele_model_holdout(const thiele_model *model);

/*
 * How a model was calibrated (docs/guide.md has the guarantee). Predictions of observations, their quantiles,
 * variances, draws, class probabilities and scores are calibrated; latent functions, means and the scores of the fit
 * itself (leave-one-out, held-out) are not.
 */
typedef struct thiele_calibration {
    int64_t rows;       /* rows it was learned from; 0: the model is not calibrated */
    int left_out;       /* 1: left out one by one; 0: held out together */
    double temperature; /* labels: probabilities are p^(1/temperature), normalised; 0: the targets are numbers */
} thiele_calibration;
THIELE_API void thiele_model_calibration(const thiele_model *model, thiele_calibration *calibration);
/*
 * How many times wider calibration makes the central interval of a level in (0, 1), in standard deviations of a normal
 * law for a Gaussian model; 1: no change. NaN for labels and when target (from 0) or level are out of range.
 */
THIELE_API double thiele_model_stretch(const thiele_model *model, int target, double level);

/* What to do with a value of a categorical column that training never saw. */
typedef enum thiele_unseen {
    THIELE_UNSEEN_OTHER = 0, /* count it as the column's 'other', with a warning; an error if it has none */
    THIELE_UNSEEN_ZERO,      /* the same without a warning; none of the levels (all zeros) if it has none */
    THIELE_UNSEEN_ERROR      /* an error */
} thiele_unseen;

typedef struct thiele_predict_options {
    size_t size;
    int latent;           /* 1: the latent function; 0: an observation, noise included */
    thiele_unseen unseen; /* values of a categorical column that training never saw */
    int drop_missing; /* 1: leave out rows with missing inputs; 0: refuse gaps in columns that had none in training */
    const double *quantiles; /* each in (0, 1) */
    int quantile_count;
    int samples;    /* independent draws per row */
    const char *id; /* comma-separated columns to copy to the output (thiele_model_predict_file only) */
    int blend;      /* 1: a pic model blends the predictions of the nearest blocks, which makes them continuous
                       in the inputs; other models ignore it */
    int own_block;  /* 1: a pic model predicts each row from the training rows of its own block, as thiele_predictor
                       and joint predictions do: faster; 0: from the nearest ones, in several blocks */
} thiele_predict_options;

#define THIELE_PREDICT_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_predict_options)

/*
 * Predictions for consecutive rows. Arrays are borrowed for the duration of the call; column-major, so the values
 * of one row are adjacent. outputs: the targets, or the latent functions if requested. A class target has
 * probabilities instead of mean and variance, and its quantiles and samples are class numbers (from 0).
 */
typedef struct thiele_prediction {
    int64_t rows;
    int outputs, classes;                 /* classes: 0 unless the target has labels */
    const int64_t *row;                   /* the table row of each, from 0 */
    const double *mean;                   /* outputs x rows, units of the targets; NULL for classes */
    const double *variance;               /* outputs x rows; NULL for classes */
    const double *probability;            /* classes x rows; NULL without */
    const double *quantiles;              /* quantile_count x outputs x rows */
    const double *samples;                /* samples x outputs x rows */
    int parts;                            /* number of targets with models of their own (thiele_model_part), or 0 */
    const struct thiele_prediction *part; /* the predictions of each; above, only rows and row are then set */
} thiele_prediction;

/* Returns anything but THIELE_OK to stop. */
typedef thiele_status (*thiele_prediction_fn)(const thiele_prediction *block, void *user);

/* Predicts a table chunk by chunk, in order. Columns are matched by name. options may be NULL. */
THIELE_API thiele_status thiele_model_predict(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                              const thiele_predict_options *options, thiele_prediction_fn sink,
                                              void *user);
/*
 * The same into a CSV file (by a temporary name and a rename) or, for "-", to standard output: id columns, mean, sd,
 * q0.05 ... for quantiles, s1 ... for samples; with several outputs each is followed by a dot and the target's name.
 * For a class target: label (the most probable), then p.LABEL for each.
 */
THIELE_API thiele_status thiele_model_predict_file(const thiele_model *model, thiele_context *ctx,
                                                   const thiele_table *table, const thiele_predict_options *options,
                                                   const char *path);
/*
 * n rows given as numbers: x is row-major, one value per input column in the model's order, in the units of the data; a
 * categorical column takes the index of its level (from 0, levels in the order of the description), and so does that of
 * a partition, which comes last (-1: an unseen value). mean and variance: outputs x n; variance may be NULL. Error:
 * UNSUPPORTED for a class target (thiele_model_predict_probabilities) unless latent.
 */
THIELE_API thiele_status thiele_model_predict_rows(const thiele_model *model, thiele_context *ctx, int64_t n,
                                                   const double *x, int latent, double *mean, double *variance);
/* The probability of each class: classes x n. Error: UNSUPPORTED when the target is a number. */
THIELE_API thiele_status thiele_model_predict_probabilities(const thiele_model *model, thiele_context *ctx, int64_t n,
                                                            const double *x, double *probability);
/*
 * The joint distribution of all rows of a table: mean (rows) and covariance (rows x rows, symmetric). Rows with missing
 * inputs are refused: drop_missing is an error here. Only for one latent function, and for observations only with
 * Gaussian noise. Error: UNSUPPORTED otherwise.
 */
THIELE_API thiele_status thiele_model_predict_joint(const thiele_model *model, thiele_context *ctx,
                                                    const thiele_table *table, const thiele_predict_options *options,
                                                    double *mean, double *covariance);

/*
 * Scores predictions for a table that has the target columns; scores: one per target. Error: DATA if a row's target
 * is missing (of several, if all are).
 */
THIELE_API thiele_status thiele_model_score(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                            const thiele_predict_options *options, thiele_scores *scores);

/*
 * The log predictive density of each row's targets, or the log probability of its label: targets x rows, for every
 * row of the table; NaN where a target is missing or the row was left out (drop_missing). The negative mean is the
 * NLPD of thiele_model_score. Errors as there.
 */
THIELE_API thiele_status thiele_model_log_densities(const thiele_model *model, thiele_context *ctx,
                                                    const thiele_table *table, const thiele_predict_options *options,
                                                    double *out);

/*
 * The scores of a model with one class target, and which labels it mistakes for which: confusion[label + classes *
 * guess] is the number of rows with a label whose most probable class (the lowest on a tie) is the guess; classes x
 * classes. For a model with parts, pass the part. Error: UNSUPPORTED when the target is a number.
 */
THIELE_API thiele_status thiele_model_confusion(const thiele_model *model, thiele_context *ctx,
                                                const thiele_table *table, const thiele_predict_options *options,
                                                thiele_scores *scores, int64_t *confusion);

/*
 * k-fold cross-validation: rows are dealt to folds at random (by the context's seed); each fold is scored by a model
 * fitted to the others. each (one per fold) may be NULL; overall is their mean, weighted by rows. For several
 * targets, scores without a unit are averaged over them, and those with one are NaN. Errors: those of
 * thiele_model_fit, and CANCELLED when the progress callback asked to stop.
 */
THIELE_API thiele_status thiele_cross_validate(thiele_context *ctx, const thiele_table *table,
                                               const thiele_fit_options *options, int folds, thiele_scores *each,
                                               thiele_scores *overall);

#ifdef __cplusplus
}
#endif
#endif
