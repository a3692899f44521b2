/* The model behind the public API: how columns become inputs, the frozen predictor, and what is known about the fit. */
#ifndef THI_MODEL_H
#define THI_MODEL_H

#include "fit/diagnostics.h"
#include "fit/kept.h"
#include "fit/schedule.h"
#include "fit/search.h"
#include "model/calibration.h"
#include <thiele/model.h>

enum { THI_WORST_MAX = 5 };

/* A hyperparameter as it is reported, in the units of the data. */
typedef struct thi_learned {
    char *name;
    char *prior; /* "gamma(2, 0.5)"; NULL: none */
    double value;
    bool fixed;
    bool redundant;    /* fixed because another parameter does the same */
    bool standardised; /* shared by columns of different units: in their standard deviations */
} thi_learned;

/* How a posterior was sampled; sampler NULL: it was not. */
typedef struct thi_sampling {
    char *sampler;
    int64_t chains, draws, kept; /* draws: of each chain */
    thi_mixing mixing;
    double acceptance, step;
    int64_t divergences;
} thi_sampling;

/* How a fit by blocks went; blocks 0: it was none. */
typedef struct thi_blocks_report {
    bool anytime;
    int64_t blocks, largest, inducing;
    double passes, held_out;          /* NaN: no rows were held out; else in the units of the data */
    int64_t evidence_rows;            /* that the model's value is of */
    bool estimate;                    /* the value, because some rows stand for others */
    int64_t borders;                  /* points where blocks meet that were looked at; 0: none were */
    double jump_median, jump_largest; /* of predictions there, in their standard deviations */
} thi_blocks_report;

/* What was learned since the fit; rows and skipped 0: nothing. */
typedef struct thi_stream_report {
    int64_t rows, skipped;
    double forget;
    char *time;              /* column of times by which is forgotten too; NULL: none */
    double half_life, clock; /* in their units; the last time, NaN: not known */
    thiele_stop stop;
    thiele_scores *all, *recent; /* prequential, one a target; NULL: none */
} thi_stream_report;

/* The file that a model was read from or saved to; path NULL: none. */
typedef struct thi_origin {
    char *path;
    thi_stamp stamp;
} thi_origin;

/* Scaled residuals of rows that the model had not seen: how many are beyond three times their typical size. */
typedef struct thi_tails {
    int64_t rows, beyond; /* rows 0: not known */
    double expected;      /* beyond, were the model's law true */
    bool heavy;           /* more than chance explains */
} thi_tails;

struct thiele_model {
    thi_origin origin;
    int parts;           /* targets that have a model each (parts.h); 0: this is one model */
    thiele_model **part; /* in their order; of the rest the whole has holdout, stream, stop and the sum of latents */
    thi_encoder encoder;
    thiele_likelihood *lik; /* units of the model; NULL: the user's own, not attached yet */
    char *own;              /* the name of the user's own likelihood; NULL: a built-in one */
    int own_count;          /* its parameters */
    double *own_value;
    char *expectation;     /* how (E, g, h) were had: "closed", "quadrature", ... */
    int latents, groups;   /* groups of latent functions share one prior */
    thi_predictor *latent; /* standardised units */
    int components;
    double *weight;               /* of the components; one of 1 for a posterior that is no mixture */
    char *method;                 /* "exact", "dense", ... */
    char *why;                    /* why this method, one clause */
    char *kernel_why, *noise_why; /* how the fit chose them; NULL: it did not */
    char *kernel;                 /* as given, without values; several with ';' between them */
    char *
        posterior; /* of sparse methods: the family of q, the optimizer, rows a step, passes over the rows; else NULL */
    char *entropy; /* of a mixture: the bound on its entropy; NULL: there is none, or the file says nothing of it */
    char *optimizer;
    int64_t batch;
    double epochs;
    thi_sampling sampling;
    thi_blocks_report blocks;
    thi_stream_report stream;
    thi_kept kept;         /* rows that updates learn parameters from; none: they stay */
    thi_schedule schedule; /* when they do */
    thiele_stop stop;
    int64_t rows, evaluations;
    int iterations;
    double value;  /* the log evidence of the targets in the units of the data, or the bound on it */
    double jitter; /* added to the diagonal, standardised units */
    int learned_count;
    thi_learned *learned;
    double *loo_mean, *loo_variance; /* leave-one-out predictions, units of the data; rows numbers; NULL: none */
    thiele_scores loo;
    int worst_count; /* the table's rows (from 0) that they miss by most, and by how many standard deviations */
    int64_t worst_row[THI_WORST_MAX];
    double worst_z[THI_WORST_MAX];
    thiele_scores *holdout; /* one a target; rows 0: none. Before calibration, as is loo */
    thi_tails *tails;       /* one a target; NULL: of labels */
    thi_calibration calibration;
};

/* The encoder's columns as the kernel's texts count and name them. */
typedef struct thi_kernel_columns {
    thi_columns view;
    int *column;
    bool *joined;
    const char **column_name; /* borrowed names */
    char **dim_name;
} thi_kernel_columns;
thiele_status thi_kernel_columns_make(thi_kernel_columns *columns, thiele_context *ctx, const thi_encoder *encoder);
void thi_kernel_columns_clear(thi_kernel_columns *columns);
/* Parses a model from bytes in memory. */
thiele_status thi_model_parse(thiele_model **out, thiele_context *ctx, const char *source, const unsigned char *bytes,
                              size_t length);
/*
 * Saves a model that has learned since it was loaded. The file that it came from is replaced only as long as it is
 * still the one that was read or saved last: else what another has learned would be lost. Error: IO.
 */
thiele_status thi_model_save_again(thiele_model *model, thiele_context *ctx, const char *path);
/* All rows of the table in memory, units of the model; row: the table's row of each (may be NULL). */
thiele_status thi_read_all(thiele_context *ctx, thi_reader *reader, thi_rows *rows, int64_t **row);
/* Forgets the learned parameters that are reported. */
void thi_model_clear_learned(thiele_model *model);
/* Whether the targets are labels. */
bool thi_model_has_classes(const thiele_model *model);
/* Whether they stand in an order: numbers do, and the labels of some likelihoods. */
bool thi_model_has_order(const thiele_model *model);
/* The draws that its expectations were had by, for predictions to take as many; NULL: none. */
const char *thi_model_draws(const thiele_model *model);
bool thi_model_is_gaussian(const thiele_model *model);
/* Refuses, naming the remedy, when the user's own likelihood is not attached. */
thiele_status thi_model_need_likelihood(const thiele_model *model, thiele_context *ctx);

/* --- copy.c --- */
/* Of a model that can be updated, which has no leave-one-out predictions and no local parts. */
thiele_status thi_model_copy(thiele_model **out, thiele_context *ctx, const thiele_model *model);

/* --- marginals.c --- */
/*
 * Marginals of the latent functions at the n columns of X: mu, v are Q x n x K. offset (n, or NULL) is added to the
 * first one. v may be NULL.
 */
thiele_status thi_model_marginals(const thiele_model *model, thiele_context *ctx, int64_t n, const double *X,
                                  const double *offset, double *mu, double *v, int64_t *clipped);
/* The same of a table of so many rows that comes in windows. Closed also when opening it fails. */
typedef struct thi_model_batch {
    const thiele_model *model; /* borrowed */
    thi_batch *latent;
} thi_model_batch;
thiele_status thi_model_batch_open(thi_model_batch *batch, thiele_context *ctx, const thiele_model *model, int64_t rows,
                                   thi_sight sight);
thiele_status thi_model_batch_next(thi_model_batch *batch, thiele_context *ctx, int64_t n, const double *X,
                                   const double *offset, double *mu, double *v, int64_t *clipped);
void thi_model_batch_close(thi_model_batch *batch);

/* --- outputs.c: from marginals to predictions in the units of the data --- */
/* How many numbers a row of predictions has: the targets, or the latent functions. */
int thi_model_outputs(const thiele_model *model, bool latent);

/* --- predict.c --- */
/* Where rows count once each, weights must not be passed over in silence. what: "an update". */
thiele_status thi_refuse_weights(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const char *what);
/* How a table is read for this model. */
thi_reading thi_model_reading(const thiele_model *model, bool with_target, int unseen, bool drop_missing);
/*
 * How much of scores: all; without the coverage of intervals where that takes quantiles, and CRPS where that takes
 * integrals; or what comes from losses alone, -log p(y), without moments where these take integrals.
 */
typedef enum thi_scoring { THI_SCORE_ALL, THI_SCORE_QUICKLY, THI_SCORE_LOSSES } thi_scoring;
/* Scores of all targets (scores: one each) of rows in memory. */
thiele_status thi_model_score_rows(const thiele_model *model, thiele_context *ctx, const thi_rows *rows,
                                   thi_scoring how, thiele_scores *scores);

#endif
