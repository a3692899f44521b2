/*
 * What lies under everything: the context, errors, allocation, ordered parallel blocks, random streams, growing text,
 * atomic files. See the .c file of each for the reasons.
 */
#ifndef THI_BASE_H
#define THI_BASE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <thiele/context.h>

#if defined(__GNUC__)
#define THI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define THI_MUST_CHECK        __attribute__((warn_unused_result))
#else
#define THI_PRINTF(fmt, args)
#define THI_MUST_CHECK
#endif

#define THI_MESSAGE_MAX 1024

typedef struct thi_heap thi_heap;
typedef struct thi_stop thi_stop;

/* Work that looks up now and then (progress.c); what: NULL when there is none. Seconds as of thi_seconds. */
typedef struct thi_watch {
    const char *what;
    double began, next, until;
} thi_watch;

/* Where large matrices are worked on: what was asked for, and what was found when it was first needed. */
typedef enum thi_device_wish { THI_DEVICE_AUTO, THI_DEVICE_CPU, THI_DEVICE_CUDA } thi_device_wish;
typedef struct thi_device {
    thi_device_wish wish;
    int card;                         /* its number */
    bool tried;                       /* posterior/device.c has looked */
    int double_slowdown;              /* of the card; 0: not known */
    const struct thi_device_ops *ops; /* of what was found; NULL: nothing, or it has failed */
    void *session;
    void (*end)(void *session); /* NULL: there is no session */
} thi_device;

struct thiele_context {
    int threads;
    uint64_t seed;
    thiele_log_fn log;
    void *log_user;
    thiele_progress_fn progress;
    void *progress_user;
    thi_heap *heap;
    struct thi_pool *pool; /* of threads; made when it is first needed */
    thi_device device;
    thiele_ranks ranks; /* count 1: this process alone */
    thi_watch watch;
    thi_stop *stop;    /* of a prediction that is under way; NULL: there is none to be stopped */
    const char *about; /* the target that lines to the log are about, where there are several; NULL: no need to say */
    char message[THI_MESSAGE_MAX];
};

/* --- status.c ----------------------------------------------------------------------------------------------------- */

/* Sets the context's message and returns status. The innermost caller knows best: those above only pass status on. */
thiele_status thi_fail(thiele_context *ctx, thiele_status status, const char *format, ...) THI_PRINTF(3, 4);
/* Puts "where: " before the message that is already there. */
thiele_status thi_fail_in(thiele_context *ctx, thiele_status status, const char *format, ...) THI_PRINTF(3, 4);
/* ARGUMENT: `function` was given NULL where it needs something. ctx may be what is NULL. */
thiele_status thi_fail_null(thiele_context *ctx, const char *function);
/* A failure was dealt with: its message is no longer the context's last word. */
void thi_recover(thiele_context *ctx);
void thi_log(thiele_context *ctx, thiele_log_level level, const char *format, ...) THI_PRINTF(3, 4);

/* --- take_options.c ----------------------------------------------------------------------------------------------- */

/*
 * Takes options of type `name` from a program that was compiled with any header: out, of `known` bytes, has what was
 * given, and zeros where that ends. NULL: the defaults. ctx may be NULL: then without a sentence. Error: ARGUMENT.
 */
thiele_status thi_take_options(thiele_context *ctx, const char *name, void *out, size_t known, const void *given);
/* The sentence of options that only a newer library knows. */
thiele_status thi_newer_options(thiele_context *ctx, const char *name);

/* Leaves the function through its `out:` label when a call failed; the function has a `status` variable. */
#define THI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != THIELE_OK) {                                                                                     \
            goto out;                                                                                                  \
        }                                                                                                              \
    } while (0)

/*
 * The first line of every public function: leaves it unless the pointers that it needs are there. _OUT: one that hands
 * something out, which is NULL until it succeeds; _OR: one that has no status returns `value`.
 */
#define THI_NEED(ctx, pointers)                                                                                        \
    do {                                                                                                               \
        if (!(pointers)) {                                                                                             \
            return thi_fail_null(ctx, __func__);                                                                       \
        }                                                                                                              \
    } while (0)
#define THI_NEED_OUT(out, ctx, pointers)                                                                               \
    do {                                                                                                               \
        if ((out) != NULL) {                                                                                           \
            *(out) = NULL;                                                                                             \
        }                                                                                                              \
        THI_NEED(ctx, (out) != NULL && (pointers));                                                                    \
    } while (0)
#define THI_NEED_OR(value, pointers)                                                                                   \
    do {                                                                                                               \
        if (!(pointers)) {                                                                                             \
            return value;                                                                                              \
        }                                                                                                              \
    } while (0)

/* --- alloc.c ------------------------------------------------------------------------------------------------------ */

/*
 * count * size zeroed bytes at a multiple of 64, counted against the context's limit. A zero count gives a valid
 * pointer. Errors: MEMORY, LIMIT (with the amounts); *out is then NULL.
 */
thiele_status thi_alloc(thiele_context *ctx, void *out, size_t count, size_t size) THI_MUST_CHECK;
/* The same not zeroed: for work spaces that are written before they are read. */
thiele_status thi_alloc_bare(thiele_context *ctx, void *out, size_t count, size_t size) THI_MUST_CHECK;
/* As realloc, for blocks of thi_alloc or NULL; new bytes are zero. On failure the block is as it was. */
thiele_status thi_grow(thiele_context *ctx, void *block, size_t count, size_t size) THI_MUST_CHECK;
thiele_status thi_strdup(thiele_context *ctx, char **out, const char *text) THI_MUST_CHECK;
thiele_status thi_strndup(thiele_context *ctx, char **out, const char *text, size_t length) THI_MUST_CHECK;
void thi_free(void *block);
/* Counts bytes that a dependency allocates on the context's behalf against the limit, and takes them off again. */
thiele_status thi_count(thiele_context *ctx, size_t bytes) THI_MUST_CHECK;
void thi_uncount(thiele_context *ctx, size_t bytes);
size_t thi_memory_held(const thiele_context *ctx);
size_t thi_memory_limit(const thiele_context *ctx);
/* For tests: the n-th allocation from now on (from 1) fails, and all after it while `sticky`; 0 switches it off. */
void thi_fail_allocation(thiele_context *ctx, int64_t nth, bool sticky);
/* Allocations asked for since the context was made. */
int64_t thi_allocations(const thiele_context *ctx);

/* --- blocks.c ----------------------------------------------------------------------------------------------------- */

/*
 * Calls fn(arg, block, thread) for every block in 0..blocks-1 on the context's threads, in no particular order; thread
 * in 0..threads-1 names a workspace. What a block computes may depend on its index only, never on thread. Of several
 * failing blocks the status of the lowest index is returned.
 */
typedef thiele_status (*thi_block_fn)(void *arg, int64_t block, int thread);
thiele_status thi_parallel(thiele_context *ctx, int64_t blocks, thi_block_fn fn, void *arg);
/*
 * The same on the calling thread alone when all blocks together are less than THI_PARALLEL_FLOPS, some 0.1 ms: waking
 * threads takes 5 to 20 microseconds, and milliseconds on a busy machine.
 */
#define THI_PARALLEL_FLOPS 4e6
thiele_status thi_parallel_work(thiele_context *ctx, int64_t blocks, double flops, thi_block_fn fn, void *arg);
/* out[i] += sum over blocks of part[block * length + i], by a tree over the block index that is fixed by `blocks`. part
 * is overwritten. */
void thi_reduce(int64_t blocks, int64_t length, double *part, double *out);

/* --- progress.c --------------------------------------------------------------------------------------------------- */

/* What the callback is told: all that is not said here is NaN. */
thiele_progress thi_progress(const char *phase, int64_t done, int64_t total, double seconds);
/* True when there is a callback and it asks to stop. */
bool thi_tell(const thiele_context *ctx, const thiele_progress *progress);

/*
 * From begin to end thi_look_up asks the progress callback (phase "read") and compares the clock with `until` (0: with
 * that of the watch before it, if there is one), twenty times a second at most and never within the first of these:
 * what takes no time is not stopped. `what` is what is read, for messages. Outside of them it does nothing, so that a
 * method that streams its rows ends by its own rules.
 */
thi_watch thi_watch_begin(thiele_context *ctx, const char *what, double until);
void thi_watch_end(thiele_context *ctx, thi_watch old);
/* Error: CANCELLED. done, total: rows or bytes, for the callback; total 0: not known. */
thiele_status thi_look_up(thiele_context *ctx, int64_t done, int64_t total) THI_MUST_CHECK;

/* Between begin and end the loops below, on any thread, see within 0.1 s that the progress callback asks to stop. */
struct thi_stop {
    thiele_progress progress; /* what the callback is told; brought up to date by the one who began */
    pthread_t caller;
    double began, asked;
    atomic_bool asked_for;
};
void thi_stop_begin(thi_stop *stop, thiele_context *ctx, const thiele_progress *progress);
void thi_stop_end(thiele_context *ctx);
/* For loops that may be long, every millisecond or so: CANCELLED when the work is to stop. Takes 50 ns. */
thiele_status thi_stop_ask(thiele_context *ctx) THI_MUST_CHECK;

/* --- random.c ----------------------------------------------------------------------------------------------------- */

/* A stream of draws: what comes out depends on (seed, purpose, row, index) only, never on who draws it or when. */
typedef enum thi_purpose {
    THI_RANDOM_SPLIT = 1,
    THI_RANDOM_START,
    THI_RANDOM_SAMPLE,
    THI_RANDOM_DEMO,
    THI_RANDOM_SUBSET,
    THI_RANDOM_EXPECT
} thi_purpose;
typedef struct thi_stream {
    uint64_t seed, purpose, row;
} thi_stream;
uint64_t thi_random_bits(thi_stream stream, uint64_t index);
double thi_random_uniform(thi_stream stream, uint64_t index); /* in (0, 1) */
/* All that an index has, the first as above: for the price of one. */
void thi_random_uniforms(thi_stream stream, uint64_t index, double out[4]);
double thi_random_normal(thi_stream stream, uint64_t index);
/* order[0..n-1] becomes a random permutation of 0..n-1. */
void thi_random_permutation(thi_stream stream, int64_t n, int64_t *order);

/* --- text.c ------------------------------------------------------------------------------------------------------- */

/* Text that grows. After a failed append (status kept inside) further appends do nothing; thi_text_take reports it. */
typedef struct thi_text {
    thiele_context *ctx;
    char *data;
    size_t length, capacity;
    thiele_status status;
} thi_text;
void thi_text_init(thi_text *text, thiele_context *ctx);
void thi_text_add(thi_text *text, const char *format, ...) THI_PRINTF(2, 3);
void thi_text_add_bytes(thi_text *text, const char *bytes, size_t length);
/* The shortest decimal that reads back as the same double. */
void thi_text_add_number(thi_text *text, double value);
/* Hands the text (never NULL on success) to the caller. */
thiele_status thi_text_take(thi_text *text, char **out);
void thi_text_clear(thi_text *text);
#define THI_NUMBER_MAX 32
/* The same into a buffer of THI_NUMBER_MAX bytes; returns the length. */
int thi_format_number(char *buffer, double value);
/*
 * Calls fn for each trimmed part of a comma-separated list, stopping on an error. Commas inside (), [] and "" do not
 * count; quotes around a whole part are taken off.
 */
thiele_status thi_split_list(const char *list, thiele_status (*fn)(void *arg, const char *part, size_t length),
                             void *arg);
/*
 * The bytes of the character at `text` (UTF-8, before a zero byte) when it can be shown as it is; 0 when it is a
 * control character, which a terminal would obey, or no UTF-8.
 */
int thi_printable(const char *text);
/* How many single-character edits apart two texts are, ASCII case ignored; at most `limit` + 1. */
int thi_edit_distance(const char *a, const char *b, int limit);

/* --- near.c ------------------------------------------------------------------------------------------------------- */

/* A word of other libraries or of books, and what it is called here; {NULL, NULL} ends a list. */
typedef struct thi_synonym {
    const char *word, *name;
} thi_synonym;

/* A search for the name that a word was meant to be. */
enum { THI_NEAR_MOST = 2 };
typedef struct thi_near {
    char word[40];
    const char *name; /* the best so far, borrowed; NULL: none is near */
    int distance;
} thi_near;
/* Synonyms are compared without case, hyphens and underscores, and go before spelling. */
void thi_near_begin(thi_near *near, const char *word, size_t length, const thi_synonym *synonyms);
/* A name that there is; of several that are equally near the first one counts. */
void thi_near_try(thi_near *near, const char *candidate);

/* --- number.c ----------------------------------------------------------------------------------------------------- */

/*
 * Reads a decimal number (also inf, infinity, nan in any case, with a sign) that fills text[0..length-1] exactly;
 * correctly rounded whatever the locale. False when it is no number.
 */
bool thi_parse_number(const char *text, size_t length, double *value);

/* --- file.c ------------------------------------------------------------------------------------------------------- */

/* Which file it is, and which of its contents. */
typedef struct thi_stamp {
    uint64_t device, inode;
    int64_t size, seconds, nanoseconds; /* when it was written */
} thi_stamp;
/* Of an open file; false when it can't be had. */
bool thi_stamp_take(thi_stamp *stamp, int descriptor);

/* A file that appears whole or not at all: written without a name in the same folder, synced, named and renamed. */
typedef struct thi_file {
    FILE *stream; /* write here; a file, unlike a device, can be read back too */
    char *path, *temporary;
    bool named;       /* there is a file by the temporary name */
    int folder;       /* its descriptor */
    thi_stamp *stamp; /* may be set after the beginning: of the file that is to be replaced. Another one is not, and the
                         commit fails with IO; else it becomes that of the new one. */
} thi_file;
/* "-" writes to standard output. */
thiele_status thi_file_begin(thi_file *file, thiele_context *ctx, const char *path);
thiele_status thi_file_commit(thi_file *file, thiele_context *ctx);
/* Right after a write that failed: says why (from errno) and abandons the file. Returns IO. */
thiele_status thi_file_failed(thi_file *file, thiele_context *ctx);
/* Drops the file unless it was committed; harmless after a commit or on a zeroed struct. */
void thi_file_abandon(thi_file *file);

/* --- clock.c: seconds on a clock that never goes back. -------------------------------------------------------------
 */
double thi_seconds(void);

/* The lesser and the greater of two numbers. */
static inline int64_t thi_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t thi_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
