/* What a report keeps of a table: one pass over it, with a prediction of each row. */
#ifndef THI_REPORT_ROWS_H
#define THI_REPORT_ROWS_H

#include "model/predict_pass.h"
#include "model/score.h"

/* Rows that are looked at more closely; values of a distribution function that takes averages; the same of a posterior
 * of many components. */
enum { THI_SAMPLE_ROWS = 5000, THI_PIT_ROWS = 20000, THI_PIT_MANY = 1000 };
/* A row whose variance of f is this much of the prior's or more: the training rows say nothing of it. */
#define THI_ALONE 0.9

/* Rows drawn at random, all of them where there are few; in the order of the table. */
typedef struct thi_row_sample {
    int64_t n;
    int64_t *at;            /* where the scorer has them */
    double *X, *y, *offset; /* D x n, P x n, n; units of the model */
} thi_row_sample;

/* Rows that are least likely under their predictions, the worst first. */
enum { THI_WORST_ROWS = 10 };
typedef struct thi_worst_rows {
    int n;
    int64_t at[THI_WORST_ROWS]; /* where the scorer has them */
    double loss[THI_WORST_ROWS];
    double *X; /* D x n */
} thi_worst_rows;

typedef struct thi_report_rows {
    const thiele_model *model; /* borrowed */
    int target;                /* of the model's */
    int64_t read;              /* rows of the table */
    int64_t rows;              /* that were predicted and have the target */
    thi_scorer scorer;
    int64_t *number; /* of each scored row: its number in the table, from 0 */
    double *pit;     /* P(Y <= y), of counts at random within its step; NaN: of another row, or of labels */
    double *share;   /* of each row: the variance of f over the prior's, the largest of the latent functions' */
    double *own;     /* of each row: the variance of the first latent function, units of the model */
    thi_row_sample sample;
    thi_worst_rows worst;
    double *sum, *square, *low, *high; /* D: of the inputs of all rows */
    uint64_t hash;                     /* of all inputs and targets, as they were read (FNV-1a) */
} thi_report_rows;

thiele_status thi_report_rows_make(thi_report_rows *rows, thiele_context *ctx, const thiele_model *model, int target,
                                   const thiele_table *table, const thiele_predict_options *options);
void thi_report_rows_clear(thi_report_rows *rows);

/* Of scored row i and the report's target; NaN where it is missing. */
double thi_rows_y(const thi_report_rows *rows, int64_t i);
double thi_rows_mean(const thi_report_rows *rows, int64_t i);
double thi_rows_variance(const thi_report_rows *rows, int64_t i);
double thi_rows_loss(const thi_report_rows *rows, int64_t i);
double thi_rows_square(const thi_report_rows *rows, int64_t i);
/* How far the target is off, on the scale of a standard normal law; of labels whether the guess is wrong, less the
 * probability that it is. */
double thi_rows_score(const thi_report_rows *rows, int64_t i);
int thi_rows_classes(const thi_report_rows *rows);
bool thi_rows_have(const thi_report_rows *rows, int64_t i);

/* --- probe.c: other inputs than those of the table --- */

/*
 * Predictions of n rows of the model's units: value (values x n: the mean of the target in the units of the data, or
 * the probabilities of classes), and, where y (P x n) is there, loss (n) = -log p(y). Either may be NULL.
 */
typedef struct thi_probe {
    const thiele_model *model;
    int target;
    int64_t n;
    const double *X, *offset, *y;
    double *value, *loss;
} thi_probe;
thiele_status thi_probe_run(const thi_probe *probe, thiele_context *ctx);
/* Numbers of a row of `value`. */
int thi_probe_values(const thiele_model *model);
/* So many rows can be predicted `times` times in some seconds; at most `most`. The same on any machine. */
int64_t thi_probe_affordable(const thiele_model *model, int64_t most, double times);

#endif
