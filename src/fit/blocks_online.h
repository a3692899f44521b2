/*
 * More rows for a model with local parts (PIC). A new row joins the block of the nearest centre; what that block said
 * is taken out of the sums T, t (posterior/sparse.h) and what it says now is put in, so that at fixed hyperparameters
 * and inducing inputs the posterior is that of all rows in these blocks, whatever the order and the batches: exactly
 * with Gaussian noise, whose targets are kept, and with any other likelihood as far as sites are at rest, which natural
 * steps of the touched blocks bring about. A block of more than `most` rows is cut.
 *
 * Blocks with targets are one latent function's and its target's own; those with sites are the same for all latent
 * functions. Sites of old rows are found again as long as all is known that they depend on: of several targets, or with
 * an exposure, they stay.
 *
 * Cost of a batch, for each block of n rows that it touches: twice that of thi_sparse_sum, with sites that of
 * thi_sparse_marginals and thi_sparse_step a round; M^3 a latent function; O(N D) for copies of the N rows so far.
 * Memory: the rows twice while a batch is learned. The same bits on any number of threads.
 */
#ifndef THI_BLOCKS_ONLINE_H
#define THI_BLOCKS_ONLINE_H

#include "fit/source.h"
#include "posterior/predictor.h"

typedef struct thi_blocks_online thi_blocks_online;

typedef struct thi_blocks_online_settings {
    const thiele_likelihood *lik; /* borrowed */
    const char *expectation;      /* how (E, g, h) are had; NULL: the best way. Borrowed */
    int64_t most;                 /* rows that a block may have; 0: any number */
    bool exposed;                 /* rows have offsets */
    bool weighted;                /* rows of the fit had weights: their sites stay as they are */
    bool anew; /* the sums are not those of all rows kept (a fit that was cut short): they are made first */
} thi_blocks_online_settings;

/* Why latent functions with local parts cannot learn together, or NULL. */
const char *thi_blocks_online_refuses(int latents, const thi_predictor *latent);
/*
 * The predictors (THI_PLUS_PRECISION, none refused) are borrowed, and are those of all rows learned at any time. M^3
 * flops, with `anew` those of a pass over all rows. Errors: NUMERIC, MEMORY, LIMIT.
 */
thiele_status thi_blocks_online_open(thi_blocks_online **out, thiele_context *ctx, int latents, thi_predictor *latent,
                                     const thi_blocks_online_settings *settings);
/* NULL does nothing. */
void thi_blocks_online_close(thi_blocks_online *online);
/* y of rows may be NaN where one of several targets is missing. After an error all is as it was. */
thiele_status thi_blocks_online_learn(thi_blocks_online *online, thiele_context *ctx, const thi_rows *rows);

#endif
