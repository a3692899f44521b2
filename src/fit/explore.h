/* The first phases that sparse fits share: hyperparameters explored on some rows, inducing inputs chosen among some. */
#ifndef THI_EXPLORE_H
#define THI_EXPLORE_H

#include "fit/variational.h"

/* Which sample of the rows serves what; basis.h numbers its own streams below these. */
enum {
    THI_SAMPLE_EXPLORE = 1 << 24,
    THI_SAMPLE_BASIS,
    THI_SAMPLE_WARM,
    THI_SAMPLE_PHI,
    THI_SAMPLE_BLOCKS,
    THI_SAMPLE_JUDGE,
    THI_SAMPLE_KEEP,
    THI_SAMPLE_NEAR /* and the one after it */
};

/*
 * First guesses, improved by a dense method on some rows within a share of the time that is left; a length-scale that
 * so few rows let run away is held back. spec and hypers have the values; starts (NULL: not wanted; owned by the
 * caller) gets all that were found, these first.
 */
thiele_status thi_first_explore(const thi_problem *problem, const thi_objective *objective,
                                const thi_variational_settings *settings, thi_fit_result *result, thi_starts *starts);
/*
 * Where one y can decide a fit by inducing inputs, which have no place for it: of the values that were learned and
 * those that exploring found, the ones by which some rows predict others far better. *others: not those that were
 * learned.
 */
thiele_status thi_keep_better(const thi_problem *problem, const thi_objective *objective, const thi_starts *starts,
                              bool *others);
/*
 * Rows that see what changes over short distances: of many those that are nearest to the first of them; with several
 * anchors half of the rows are random and half near to these. They come in the order of the source.
 */
thiele_status thi_sample_near(thiele_context *ctx, const thi_source *source, int64_t count, int anchors, thi_rows *out);
/* Inducing inputs where nobody said how many: for so many latents, and so many that a pass over all rows has time for.
 */
int64_t thi_first_inducing(const thi_driver *driver, const thi_source *source, int latents);
/*
 * *Z (D x *M, the caller's): given, or `wanted` of them chosen among some of the rows. *complete (may be NULL): every
 * row is one.
 */
thiele_status thi_first_basis(const thi_problem *problem, const thi_variational_settings *settings, int64_t wanted,
                              double **Z, int64_t *M, bool *complete);

#endif
