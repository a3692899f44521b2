/*
 * Rows that arrive over time: a feed turns lines of standard input, of a pipe or of a growing file into small tables,
 * in bounded memory; a learner takes a fitted model's posterior as prior and learns each row of such tables once:
 * the row is first predicted (scores are prequential: always for rows not yet learned), then learned.
 */
#ifndef THIELE_STREAM_H
#define THIELE_STREAM_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- feeds -------------------------------------------------------------------------------------------------------- */

typedef struct thiele_feed thiele_feed;

typedef struct thiele_feed_options {
    size_t size;
    int follow;   /* 1: at the end of the file, wait for it to grow; 0: stop there */
    int skip_bad; /* 1: lines that are not rows are left out and counted, records cannot span lines; 0: error */
    int64_t skip; /* leave out this many rows at the beginning */
} thiele_feed_options;

#define THIELE_FEED_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_feed_options)

/*
 * Opens a CSV file, a pipe or, for "-", standard input. Nothing is read yet. Lines end in LF or CR LF. Either options
 * may be NULL. Errors: IO, ARGUMENT, MEMORY.
 */
THIELE_API thiele_status thiele_feed_open(thiele_feed **out, thiele_context *ctx, const char *path,
                                          const thiele_table_options *table_options,
                                          const thiele_feed_options *options);
THIELE_API void thiele_feed_close(thiele_feed *feed);
/*
 * The next rows as a table (to be destroyed by the caller): as soon as there are `most` of them; after `seconds`, or a
 * signal, those that have come, if at least `least`; at the end, the rest. *table is NULL if there are fewer, and at
 * the end (thiele_feed_ended). Rows and lines in messages are counted from the beginning of the feed. Errors: IO (also
 * for a file that became shorter), FORMAT (a bad line: the next call skips it), DATA (no header, no rows), MEMORY.
 */
THIELE_API thiele_status thiele_feed_next(thiele_feed *feed, thiele_context *ctx, int64_t least, int64_t most,
                                          double seconds, thiele_table **table);
/* Whether all rows have been handed out. */
THIELE_API int thiele_feed_ended(const thiele_feed *feed);
/* Rows handed out, including those left out at the beginning; and bad lines left out. */
THIELE_API int64_t thiele_feed_rows(const thiele_feed *feed);
THIELE_API int64_t thiele_feed_skipped(const thiele_feed *feed);

/* --- learners ----------------------------------------------------------------------------------------------------- */

typedef struct thiele_learner thiele_learner;

typedef struct thiele_update_options {
    size_t size;
    int64_t batch;  /* rows learned together; 0: 1024, and at most a quarter of `forget` */
    double forget;  /* roughly how many of the last rows count: older ones fade as exp(-age/forget); 0: all count */
    int64_t window; /* rows that the recent scores cover; 0: 10,000 */
    thiele_unseen unseen;      /* as in thiele_predict_options */
    int drop_missing;          /* likewise, for inputs and target */
    int skip_bad;              /* 1: rows that cannot be used are left out and counted; 0: an error */
    double deadline;           /* seconds after the learner is opened; 0: none */
    const char *snapshot_file; /* where the model is saved now and then; NULL: nowhere */
    double snapshot;           /* seconds between snapshots; 0: 10 */
    int freeze;                /* 1: kernel, likelihood and inducing inputs stay as they are; 0: they are learned too */
    int64_t keep;              /* number of last rows they are learned from; 0: 4096, or fewer with many columns;
                                  negative: none, which freezes */
    const char *time;          /* column of the rows' times, numbers or dates, for half_life; NULL: none */
    double half_life;          /* after this time what was learned counts half as much, in the units of the times
                                  (days for dates); 0: time takes nothing away */
} thiele_update_options;

#define THIELE_UPDATE_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_update_options)

/*
 * Opens a model to learn further rows: one by a method that can be updated (docs/methods.md lists them; augmented only
 * with inducing inputs). The scaling of columns stays as it is. Hyperparameters and bases are also learned now and
 * then, from the last rows, unless frozen; those of blocks, of mixtures and of basis functions with length-scales of
 * their own stay as they are. The model is copied; options may be NULL. Errors: UNSUPPORTED (another kind of model: the
 * message says what to fit instead), ARGUMENT, MEMORY.
 */
THIELE_API thiele_status thiele_learner_open(thiele_learner **out, thiele_context *ctx, const thiele_model *model,
                                             const thiele_update_options *options);
THIELE_API void thiele_learner_close(thiele_learner *learner);
/*
 * Learns the rows of a table, in order, until the deadline or until the progress callback asks to stop. Columns are
 * matched by name. table NULL: no rows came; only a snapshot that is due is written. After an error, the rows before
 * the one that it names are learned, and the learner remains usable. Errors: COLUMN, DATA (naming the row),
 * NUMERIC, IO (the snapshot), MEMORY.
 */
THIELE_API thiele_status thiele_learner_add(thiele_learner *learner, thiele_context *ctx, const thiele_table *table);
/*
 * Call it after the last row: learns parameters once more if many rows have come since the last time. thiele_model_
 * update does it too. Errors: NUMERIC, MEMORY.
 */
THIELE_API thiele_status thiele_learner_settle(thiele_learner *learner, thiele_context *ctx);
/* Rows learned together: tables whose size is a multiple of it divide evenly. */
THIELE_API int64_t thiele_learner_batch(const thiele_learner *learner);
/* CONVERGED (all rows so far were learned), DEADLINE or CANCELLED. */
THIELE_API thiele_stop thiele_learner_stop(const thiele_learner *learner);
/* The model as it is now. */
THIELE_API thiele_status thiele_learner_model(thiele_learner *learner, thiele_context *ctx, thiele_model **out);
/* Saves the model as it is now. */
THIELE_API thiele_status thiele_learner_save(thiele_learner *learner, thiele_context *ctx, const char *path);

/*
 * All of the above in one call: a new model that has learned the table's rows too. A snapshot is also written at the
 * end. Errors as above; *out is then NULL.
 */
THIELE_API thiele_status thiele_model_update(thiele_model **out, thiele_context *ctx, const thiele_model *model,
                                             const thiele_table *table, const thiele_update_options *options);

typedef struct thiele_stream_facts {
    int64_t rows;     /* learned since the fit */
    int64_t skipped;  /* that could not be used */
    double forget;    /* in the last update; 0: nothing was forgotten */
    thiele_stop stop; /* why the last update ended */
    /* Prequential scores, one per target: for all those rows, and for the last 10,000 or so (`window`). Borrowed. */
    const thiele_scores *all, *recent;
    const char *time; /* column of times by which the last update forgot; NULL: none. Borrowed */
    double half_life; /* in their units */
    double clock;     /* the time up to which it has learned (of dates: days since 1970); NaN: not known */
} thiele_stream_facts;
/* What a model has learned since the fit; 0 rows and no scores: nothing. */
THIELE_API void thiele_model_stream(const thiele_model *model, thiele_stream_facts *facts);
/* The same for a learner. */
THIELE_API void thiele_learner_facts(const thiele_learner *learner, thiele_stream_facts *facts);

#ifdef __cplusplus
}
#endif
#endif
