/*
 * A context carries what a computation needs from its surroundings: the number of threads, the random seed, a memory
 * limit, where messages go, and the sentence that explains the last error. One thread uses a context at a time.
 * Objects made with a context may outlive it. After a fork, parent and child may both use their copies. Each
 * thread reserves some 20 MB of address space for its matrix products, and touches only what it uses.
 */
#ifndef THIELE_CONTEXT_H
#define THIELE_CONTEXT_H

#include <stddef.h>
#include <stdint.h>
#include <thiele/ranks.h>
#include <thiele/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_context thiele_context;

typedef enum thiele_log_level { THIELE_LOG_INFO = 0, THIELE_LOG_WARNING = 1 } thiele_log_level;

/* Receives one finished line without a newline. The library prints nothing by itself. */
typedef void (*thiele_log_fn)(thiele_log_level level, const char *line, void *user);

/* How far a long piece of work has come. */
typedef struct thiele_progress {
    const char *phase;   /* "read" (a table; done and total in rows or bytes, or 0), "explore" (looking for a start),
                            "starts" (comparing them), "basis", "partition", "warm" (on some rows), "learn", "fit",
                            "blocks", "steps", "rate", "sweeps", "end", "burn-in", "sample", "predict", "stream" */
    int64_t done;        /* evaluations, steps or rows so far */
    int64_t total;       /* out of at most this many; 0 when not known */
    double value;        /* the objective: the best so far or, for noisy steps, a running average. NaN: none */
    double seconds;      /* since the work began */
    double seconds_left; /* estimate; NaN when unknown */
    /* For a step of a variational method, otherwise NaN: the two parts of its bound, E[log p(y | f)] and the
     * divergence of q from the prior; the step length; rows per second. */
    double expected, divergence, step, rows_per_second;
    /* Root mean squared error on held-out rows, in the units of the data; for a stream, the recent prequential
     * error (for labels, the error rate). NaN: none. */
    double held_out;
} thiele_progress;

/* Called now and then from the calling thread; a non-zero result asks the work to stop at the next safe point. */
typedef int (*thiele_progress_fn)(const thiele_progress *progress, void *user);

typedef struct thiele_context_options {
    size_t size;         /* sizeof(thiele_context_options), set by the INIT macro */
    int threads;         /* 0: one per processor available to the process */
    uint64_t seed;       /* for every random draw; default 0 */
    size_t memory_limit; /* bytes the library may hold at once; 0: nine tenths of the machine's memory */
    thiele_log_fn log;   /* NULL: silent */
    void *log_user;
    thiele_progress_fn progress; /* NULL: none */
    void *progress_user;
    /* Where large matrices are computed: NULL or "auto" (a card where one is present and faster), "cpu", "cuda", or
     * "cuda:1" for the second card (device.h). Read by thiele_context_create. */
    const char *device;
    /* Processes that fit together with this one (ranks.h), copied by thiele_context_create; NULL: there is one. */
    const thiele_ranks *ranks;
} thiele_context_options;

#define THIELE_CONTEXT_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_context_options)

/*
 * options may be NULL for the defaults. Errors: ARGUMENT (negative threads, an unknown device, no INIT macro,
 * or an option from a newer header), MEMORY; *out is then NULL and thiele_context_message(NULL) still gives a
 * sentence.
 */
THIELE_API thiele_status thiele_context_create(thiele_context **out, const thiele_context_options *options);
THIELE_API void thiele_context_destroy(thiele_context *ctx);

/* One sentence about the last error of this context; never NULL. Borrowed, valid until the next call with ctx. */
THIELE_API const char *thiele_context_message(const thiele_context *ctx);

/* The number of threads in use. */
THIELE_API int thiele_context_threads(const thiele_context *ctx);

/* Frees text that the library handed over. NULL is fine. */
THIELE_API void thiele_free(void *memory);

/* The version of the library, "major.minor.patch"; THIELE_VERSION (version.h) is that of the headers. */
THIELE_API const char *thiele_version(void);

#ifdef __cplusplus
}
#endif
#endif
