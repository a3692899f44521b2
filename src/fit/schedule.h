/*
 * When the parameters of a stream's model are learned again: often while what the rows come from is new, then less and
 * less often, and often again when the loss of rows before they are learned says that something has changed. By numbers
 * of rows alone, so that the same rows give the same model.
 */
#ifndef THI_FIT_SCHEDULE_H
#define THI_FIT_SCHEDULE_H

#include "base/base.h"

typedef struct thi_schedule {
    int64_t rows;  /* of the stream so far */
    int64_t begun; /* rows before the present regime */
    int64_t last;  /* rows when parameters were learned last */
    double loss;   /* nats a row, running mean since then; NaN: not known */
} thi_schedule;

/* At the beginning of a stream, or where one is gone on with. */
void thi_schedule_begin(thi_schedule *schedule, int64_t rows, int64_t begun, int64_t last);
/* After a batch of n rows with this mean loss, NaN where it has none; true: something has changed. */
bool thi_schedule_batch(thi_schedule *schedule, int64_t n, double loss);
/* Whether parameters are due; thi_schedule_done: they have been learned. */
bool thi_schedule_due(const thi_schedule *schedule);
void thi_schedule_done(thi_schedule *schedule);

#endif
