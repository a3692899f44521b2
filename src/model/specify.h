/* From fit options and a table to rows, a specification and its hyperparameters. */
#ifndef THI_SPECIFY_H
#define THI_SPECIFY_H

#include "fit/blocks.h"
#include "fit/decoupled.h"
#include "fit/method.h"
#include "model/model.h"
#include "model/table_stream.h"

/* Values of parameters by their names, in the units of the model (choose.h). */
typedef struct thi_named {
    char **name;
    double *value;
    int count;
} thi_named;

/* Another kind of noise that may suit the rows better, as it was learned on some of them. */
typedef struct thi_rival {
    const char *likelihood;
    char *kernels;
    thi_named values;
    double score;   /* on these rows, nats per row */
    bool augmented; /* it has auxiliary variables */
} thi_rival;
enum { THI_RIVALS = 2 };

/* Everything that a fit holds until the model owns it. */
struct thi_fitting {
    thiele_context *ctx;
    const thiele_fit_options *options;
    thiele_model *model;
    thi_driver *driver; /* borrowed */
    const thi_method *method;
    bool open_noise;     /* Gaussian noise is a guess that may be changed */
    const char *kernels; /* their text, borrowed */
    bool shared_kernel;  /* one for all latent functions, with its parameters */
    bool tied;           /* length-scales of a kernel are learned as one */
    thi_rival rival[THI_RIVALS];
    int rivals;
    const thi_named *begins;      /* of a rival: where it begins; NULL: it is none. Borrowed */
    const thi_fitting *favourite; /* and whom it must beat */
    double *loss;                 /* of each row that was held out: rival.c; NaN: not known */
    bool partial;                 /* rows without the only target are left out */
    bool goes_on;                 /* until the deadline: what is made again in a part of the time is not as good */
    const char *steps;            /* expectations of natural steps, as the method has them; NULL: the options say all */
    thi_variational_settings settings;
    thi_variational_result outcome;
    thi_decoupled_settings decoupled_settings;
    bool each;  /* several targets, and the method fits each by itself */
    int output; /* of such a fit: which one */
    thi_blocks_settings block_settings;
    thi_blocks_result block_outcome;
    double *Z; /* given inducing inputs */
    /* The rows are in memory, or in the table, which is then read again and again. */
    bool streamed;
    thi_table_stream stream;
    thi_rows rows;
    int64_t *row; /* the table's row of each */
    int64_t held; /* so many of them are held out first; 0: none */
    int folds;    /* and as many others in turn, so often in all */
    bool keeps;   /* the model without them is the last one */
    thi_spec spec;
    thi_hypers hypers;
    double *written; /* of each: its value in the units of the data as it was given */
    thi_fit_result result;
};

/* --- fit.c --- */
/* All of it: f has a model at the end. */
thiele_status thi_fit_table(thi_fitting *f, const thiele_table *table);
/* The model is left to whoever took it. */
void thi_fitting_clear(thi_fitting *f);
/* What a model, whose value is there, says of itself at the present values of the hyperparameters. */
thiele_status thi_report(const thi_fitting *f, const thi_fit_result *result, thiele_model *model);

/* The rows, or the table that they are read from. */
const thi_source *thi_fitting_source(const thi_fitting *f, const thi_rows *rows, thi_source *memory);
thi_problem thi_fitting_problem(thi_fitting *f, const thi_source *source);
/* How a sparse method went about it, with a family of posteriors. */
thiele_status thi_report_sparse(thi_fitting *f, const char *posterior);
/* Whether snapshots were asked for, and then how often; save: see below. */
thi_snapshot thi_fitting_snapshot(thi_fitting *f, thiele_status (*save)(void *arg, thi_fitted *fitted));
/*
 * Saves the posterior of this moment. model: a copy of the fit's own, which borrows what the fit has made so far, with
 * its value and what else the method says of itself.
 */
thiele_status thi_save_snapshot(const thi_fitting *f, const thi_fit_result *result, const thi_fitted *fitted,
                                thiele_model *model);
/* A log density in the units of the data: each target was divided by its scale. */
double thi_fitting_value(const thi_fitting *f, double value);

/* Learns from rows, or only conditions on them at the values learned before. */
thiele_status thi_run_one(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted);
/* The same for all targets, into the model's predictors; leave-one-out predictions where the method has them. */
thiele_status thi_run_method(thi_fitting *f, const thi_rows *rows, bool learn, double *loo_mean, double *loo_variance);

/* --- method_per_target.c --- */
/* The same target by target; fitted->latent has room for all of them. */
thiele_status thi_run_each(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted);
/*
 * The group and the noise of one output, from rows that have it alone and with the first of so many parts of the time
 * that is left; hypers have what was learned, not yet applied.
 */
thiele_status thi_run_target(thi_fitting *f, const thi_rows *rows, int output, int parts, thi_fitted *fitted);
/* Refuses rows that are equal while one of their targets differs, or warns of them. */
thiele_status thi_check_each(thi_fitting *f);

/* --- specify.c --- */
/* Whether an option is left to the fit. */
bool thi_is_auto(const char *option);
/* What becomes of missing inputs, a thi_missing; -1: there is no such thing. */
int thi_missing_of(const thiele_fit_options *options);
/* How much work is worth it without a deadline, beside the normal; 0: no such effort. */
double thi_effort(const char *name);
/* Refuses fit options that make no sense. */
thiele_status thi_check_fit_options(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options);
/* Which columns play which part. */
thi_column_options thi_columns_of(const thiele_fit_options *options);
/* How many columns the text names; a text that is itself the name of a column names one. */
int thi_count_targets(const thiele_table *table, const char *text);
/* The likelihood and the encoder. */
thiele_status thi_specify_columns(thi_fitting *f, const thiele_table *table);
/* The method: the one that was asked for, or what suits the table and the likelihood. */
thiele_status thi_specify_method(thi_fitting *f, const thiele_table *table);
/* Whether the choice of a method is left to it, by all options. */
bool thi_method_is_open(const thi_fitting *f);
/* Whether a method that may be asked for works with Gaussian noise only. */
bool thi_method_is_gaussian(const char *name);
/* The rows: read, or a stream of them when a sparse method works on a table that would fill the memory. */
thiele_status thi_specify_rows(thi_fitting *f, const thiele_table *table);
/* --- ranks.c --- */
/* Refuses what several processes cannot do together, or where they are not about the same rows. */
thiele_status thi_check_ranks(const thi_fitting *f);
/* --- far_rows.c --- */
/* Warns of a row whose target is out of all proportion, where one such decides the fit. */
thiele_status thi_report_far(const thi_fitting *f, const thiele_table *table);

/* --- specify.c --- */
/* Kernels, means and hyperparameters from the kernels' text. */
thiele_status thi_make_prior(thi_fitting *f, const char *kernels);
/* The same by what was asked for, or suits the rows. */
thiele_status thi_specify_prior(thi_fitting *f);

#endif
