/*
 * Rows to learn from, in memory or streamed from a table that does not fit there: an algorithm asks for rows by number,
 * a batch at a time.
 */
#ifndef THI_SOURCE_H
#define THI_SOURCE_H

#include "fit/spec.h"

typedef struct thi_source {
    int64_t n;
    int dims, outputs; /* D, P */
    thi_aside beside;  /* what rows have */
    int64_t run;       /* rows that are best read together; 1: any */
    void *arg;
    /* out has room for count rows; out->n <= count of them are filled: rows with missing values are left out. */
    thiele_status (*fetch)(void *arg, thiele_context *ctx, int64_t count, const int64_t *row, thi_rows *out);
} thi_source;

/* rows is borrowed. */
void thi_source_of_rows(thi_source *source, const thi_rows *rows);
/*
 * At most `count` rows drawn at random by the context's seed, another set for each `use`; all of them, in their order,
 * when there are no more. Of streamed rows short runs are drawn, from 256 places at least. Error: DATA when each of
 * them has a missing value.
 */
thiele_status thi_source_sample(const thi_source *source, thiele_context *ctx, int64_t count, uint64_t use,
                                thi_rows *out);

#endif
