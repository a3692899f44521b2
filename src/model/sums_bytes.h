/* What sums.c and sums_bytes.c share: sums of rows for one model, and how they travel. */
#ifndef THI_SUMS_BYTES_H
#define THI_SUMS_BYTES_H

#include "fit/online_tally.h"
#include "model/model.h"
#include <thiele/sums.h>

struct thiele_sums {
    thiele_model *model; /* a copy, in the form that is frozen */
    thi_online online;   /* of its latent functions */
    thi_tally *tally;    /* one each */
    uint64_t mark;       /* a fingerprint of all that what a row adds depends on, but for the row */
};

/* Finds the fingerprint. */
thiele_status thi_sums_mark(thiele_sums *sums, thiele_context *ctx);
/* Error: DATA; sums of another model. */
thiele_status thi_sums_refuse_mark(thiele_context *ctx);
/* Adds one tally for each latent function, or, after an error, none. */
thiele_status thi_sums_join(thiele_sums *sums, thiele_context *ctx, const thi_tally *tally);

#endif
