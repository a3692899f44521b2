/*
 * The last rows of a stream, with their sites as they are in what was learned: what the parameters of a model are
 * learned from again, at constant memory. A new row takes the place of the oldest. Rows without one of their targets
 * are not kept.
 */
#ifndef THI_FIT_KEPT_H
#define THI_FIT_KEPT_H

#include "fit/spec.h"

typedef struct thi_kept {
    int64_t most, next; /* rows at most; where the next one goes: the oldest is there once there are so many */
    int latents;        /* Q */
    bool fixed_basis;   /* the inducing inputs are not to be learned */
    thi_rows rows;
    double *weight;      /* most: what forgetting has left of each; NULL: all of them count in full */
    double *lambda, *nu; /* Q x most, by as much fainter; NULL: not known yet */
} thi_kept;

/* Rows of so many numbers that are kept unless more are asked for: a file has to hold them. */
int64_t thi_kept_default(int64_t numbers);
/* Copies of rows, at most so many, in their order; sites are not known. To be closed after an error too. */
thiele_status thi_kept_take(thi_kept *kept, thiele_context *ctx, const thi_rows *rows, int64_t most);
/* Room for `most` rows of Q sites each: the last ones stay. */
thiele_status thi_kept_resize(thi_kept *kept, thiele_context *ctx, int64_t most, int dims, int outputs, int latents);
thiele_status thi_kept_copy(thi_kept *out, thiele_context *ctx, const thi_kept *kept);
void thi_kept_close(thi_kept *kept);
/* All of some rows and their sites (Q x n), in their order. */
void thi_kept_add(thi_kept *kept, const thi_rows *rows, const double *lambda, const double *nu);
/* Weights and sites are multiplied by a factor: what was learned is forgotten by as much. */
void thi_kept_fade(thi_kept *kept, double factor);
/* Moves the rows such that the oldest comes first. */
thiele_status thi_kept_sort(thi_kept *kept, thiele_context *ctx);
/* Of sorted rows, those in front that weigh less than this are no longer kept, but so many rows stay at least. */
void thi_kept_drop(thi_kept *kept, double weight, int64_t least);
/* What the oldest row weighs; 1 where there is none. */
double thi_kept_oldest(const thi_kept *kept);

#endif
