/* From fit options and a table to rows, a specification and its hyperparameters. */
#ifndef THI_SPECIFY_H
#define THI_SPECIFY_H

#include "model/model.h"

/* Everything that a fit holds until the model owns it. */
typedef struct thi_fitting {
    thiele_context *ctx;
    const thiele_fit_options *options;
    thiele_model *model;
    thi_driver driver;
    const thi_method *method;
    thi_rows rows;
    int64_t *row; /* the table's row of each */
    thi_spec spec;
    thi_hypers hypers;
    thi_fit_result result;
} thi_fitting;

/* Refuses fit options that make no sense. */
thiele_status thi_check_fit_options(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options);
/* The likelihood, the encoder, and the table's rows. */
thiele_status thi_specify_data(thi_fitting *f, const thiele_table *table);
/* The method: the one that was asked for, or what suits the rows and the likelihood. */
thiele_status thi_specify_method(thi_fitting *f);
/* Kernels, means and hyperparameters. */
thiele_status thi_specify_prior(thi_fitting *f);
/* Whether a likelihood is plain Gaussian noise. */
bool thi_is_gaussian(const thiele_likelihood *lik);

#endif
