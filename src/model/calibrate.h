/* What a fit learns from rows that the model has not seen: whether its residuals have heavy tails, and calibration. */
#ifndef THI_CALIBRATE_H
#define THI_CALIBRATE_H

#include "model/specify.h"

/* Refuses `calibrate` for targets that it is not made for. */
thiele_status thi_check_calibrate(const thi_fitting *f);
/*
 * How many rows are held out, and how often in turn: what was asked for, or what calibration takes where there will be
 * no leave-one-out residuals (exact). Error: DATA when the rows are too few.
 */
thiele_status thi_held_rows(thi_fitting *f, bool exact);

/* Whether quantiles of its predictions cost no more than their moments. */
bool thi_has_quantiles(const thiele_model *model);

/* Predictions of rows that models of this fit were made without, against what was observed. */
typedef struct thi_unseen {
    int64_t rows;
    double *t, *reach; /* targets x rows: scaled residuals, and how far 99.73% of the model's law reach; NaN: missing */
    double *size;      /* work space */
    int *label;        /* of labels in place of these, with */
    double *probability; /* classes x rows */
} thi_unseen;

/* Room for so many rows. Closed also when opening it fails. */
thiele_status thi_unseen_open(thi_unseen *unseen, const thi_fitting *f, int64_t capacity);
void thi_unseen_close(thi_unseen *unseen);
/* Rows that the model, as it stands, was made without, with their marginals. */
thiele_status thi_unseen_add(thi_unseen *unseen, const thi_fitting *f, const thi_rows *rows, const double *mu,
                             const double *v);
/* Their tails and, where it was asked for, the calibration, into the model. */
thiele_status thi_unseen_learn(thi_unseen *unseen, thi_fitting *f, bool left_out);
/* The same from the leave-one-out predictions of the model; target: in their units. */
thiele_status thi_calibrate_left_out(thi_fitting *f, const double *target);

#endif
