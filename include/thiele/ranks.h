/*
 * Processes that fit one model together. Each runs the same program on the same table and has the number `rank`; passes
 * over all rows are shared: each process works on blocks of rows that lie together, and the blocks' sums are added in a
 * tree over the global numbers of the blocks. Results have the same bits on any number of processes and of threads. A
 * table of a program's own, or one that MPI carries (thiele_ranks_open).
 */
#ifndef THIELE_RANKS_H
#define THIELE_RANKS_H

#include <stddef.h>
#include <thiele/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How numbers travel. Functions return 0, or anything else when the connection is lost; each is called from one thread,
 * by all processes in the same order. A process that fails must end the others (`end`, or a way of the program's own),
 * which would wait for it for ever.
 */
typedef struct thiele_ranks {
    int rank, count; /* 0 .. count - 1; the others are not looked at while count is 1 */
    int (*send)(void *user, const void *bytes, size_t length, int to);
    int (*receive)(void *user, void *bytes, size_t length, int from);
    int (*broadcast)(void *user, void *bytes, size_t length, int from);
    void (*end)(void *user, int failed); /* failed: ends all processes, now. May be NULL */
    void *user;
} thiele_ranks;

/*
 * The processes that mpirun, or another launcher of Open MPI or MPICH, began together with this one: found by the
 * environment that it sets. libthiele-mpi, built for that MPI, is loaded; without a launcher, or where it began one
 * process alone, nothing is loaded and *out has a count of 1. Once per process. why (`length` bytes) gets a sentence
 * after an error. Errors: UNSUPPORTED (no such library, or it cannot start).
 */
THIELE_API thiele_status thiele_ranks_open(thiele_ranks *out, char *why, size_t length);
/* The last call of a process. failed: not 0: it ends all of them. */
THIELE_API void thiele_ranks_close(thiele_ranks *ranks, int failed);

#ifdef __cplusplus
}
#endif
#endif
