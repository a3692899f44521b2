/* Rows that a fit keeps back: scored, and asked how wide intervals have to be and whether tails are heavy. */
#ifndef THI_HELD_OUT_H
#define THI_HELD_OUT_H

#include "model/specify.h"

/*
 * Learns without the held-out rows, scores them, and leaves what they say of tails and calibration in the model. What
 * was learned stands in f; the model is the one without them.
 */
thiele_status thi_learn_with_holdout(thi_fitting *f);

#endif
