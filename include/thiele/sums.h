/*
 * Sums over rows: all that rows with Gaussian noise say to a model whose parameters and inducing inputs stay as they
 * are. They are made part by part, anywhere, travel as bytes, add up, and a model that is conditioned on them has the
 * same bits whatever the order and the cut of the rows: sums are of whole numbers and have no rounding. Of models by
 * collapsed, variational, sor, dtc, fitc and fic they are exact: a variational model gets the best of all posteriors
 * at its inducing inputs.
 */
#ifndef THIELE_SUMS_H
#define THIELE_SUMS_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_sums thiele_sums;

typedef struct thiele_sums_options {
    size_t size;
    int unseen;       /* as in thiele_predict_options */
    int drop_missing; /* leave out rows with missing values; 0: refuse them */
} thiele_sums_options;

#define THIELE_SUMS_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_sums_options)

/*
 * Sums of no rows for a model, which is copied. The rows that it was fitted to do not count. Errors: UNSUPPORTED (the
 * message says what to fit instead), MEMORY.
 */
THIELE_API thiele_status thiele_sums_open(thiele_sums **out, thiele_context *ctx, const thiele_model *model);
THIELE_API void thiele_sums_close(thiele_sums *sums);
/*
 * Adds the rows of a table, whose columns are matched by name; options may be NULL. After an error the sums are as they
 * were. Errors: COLUMN, DATA (naming the row), CANCELLED, LIMIT, MEMORY.
 */
THIELE_API thiele_status thiele_sums_add(thiele_sums *sums, thiele_context *ctx, const thiele_table *table,
                                         const thiele_sums_options *options);
/* Adds what others hold, which are of the same model. Errors: DATA (another model), LIMIT. */
THIELE_API thiele_status thiele_sums_combine(thiele_sums *sums, thiele_context *ctx, const thiele_sums *other);
/* Rows that they are the sum over. */
THIELE_API int64_t thiele_sums_rows(const thiele_sums *sums);
/*
 * To bytes, to be freed by thiele_free, and back: unpacked sums are added. The same rows give the same bytes. What
 * nobody vouches for is checked. Errors: FORMAT, DATA (sums of another model), LIMIT, MEMORY; the sums are then as
 * they were.
 */
THIELE_API thiele_status thiele_sums_pack(const thiele_sums *sums, thiele_context *ctx, unsigned char **bytes,
                                          size_t *length);
THIELE_API thiele_status thiele_sums_unpack(thiele_sums *sums, thiele_context *ctx, const unsigned char *bytes,
                                            size_t length);
/* The same to a file, which appears whole or not at all, and from one. Errors: IO too. */
THIELE_API thiele_status thiele_sums_save(const thiele_sums *sums, thiele_context *ctx, const char *path);
THIELE_API thiele_status thiele_sums_load(thiele_sums *sums, thiele_context *ctx, const char *path);
/* The model conditioned on these rows alone. Errors: ARGUMENT (there are none), NUMERIC, MEMORY. */
THIELE_API thiele_status thiele_sums_model(thiele_sums *sums, thiele_context *ctx, thiele_model **out);

#ifdef __cplusplus
}
#endif
#endif
