/* The model behind the public API: how columns become inputs, the frozen predictor, and what is known about the fit. */
#ifndef THI_MODEL_H
#define THI_MODEL_H

#include "data/data.h"
#include "posterior/predictor.h"
#include <thiele/model.h>

enum { THI_WORST_MAX = 5 };

/* A hyperparameter as it is reported, in the units of the data. */
typedef struct thi_learned {
    char *name;
    double value;
    bool fixed;
    bool redundant;    /* fixed because another parameter does the same */
    bool standardised; /* shared by columns of different units: in their standard deviations */
} thi_learned;

struct thiele_model {
    thi_encoder encoder;
    thi_predictor predictor; /* standardised units */
    double noise;            /* variance, standardised units */
    char *method;            /* "exact" */
    char *why;               /* why this method, one clause */
    char *kernel;            /* as given, without values */
    thiele_stop stop;
    int64_t rows, evaluations;
    int iterations;
    double log_marginal; /* of the targets in the units of the data */
    double jitter;       /* added to the diagonal, standardised units */
    int learned_count;
    thi_learned *learned;
    double *loo_mean, *loo_variance; /* leave-one-out predictions, units of the data; rows numbers */
    thiele_scores loo;
    int worst_count; /* the table's rows (from 0) that they miss by most, and by how many standard deviations */
    int64_t worst_row[THI_WORST_MAX];
    double worst_z[THI_WORST_MAX];
    thiele_scores holdout; /* rows 0: none */
};

/* The encoder's columns as the kernel's texts count and name them. */
typedef struct thi_kernel_columns {
    thi_columns view;
    int *column;
    const char **column_name; /* borrowed names */
    char **dim_name;
} thi_kernel_columns;
thiele_status thi_kernel_columns_make(thi_kernel_columns *columns, thiele_context *ctx, const thi_encoder *encoder);
void thi_kernel_columns_clear(thi_kernel_columns *columns);
/* Refuses fit options that make no sense. */
thiele_status thi_check_fit_options(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options);
/* Parses a model from bytes in memory. */
thiele_status thi_model_parse(thiele_model **out, thiele_context *ctx, const char *source, const unsigned char *bytes,
                              size_t length);
/* From (mean, variance) of f in the model's units to those of y or f in the units of the data, in place. */
void thi_model_to_data_units(const thiele_model *model, bool latent, int64_t n, double *mean, double *variance);
/* All rows of the table in memory: X (D x n) and y (NULL when without target), owned by the caller, units of the model.
 */
thiele_status thi_read_all(thiele_context *ctx, thi_reader *reader, double **X, double **y, int64_t **row, int64_t *n);

#endif
