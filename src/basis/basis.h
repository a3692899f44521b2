/*
 * Choosing inducing inputs: Z (D x M) from rows X (D x n), both in standardised units.
 *
 *   name     what                                                                     cost
 *   kmeans   centres of k-means, seeded by k-means++ (Arthur and Vassilvitskii 2007): O(n M D) an iteration
 *            Lloyd's iterations; beyond 4e9 flops each, minibatches (Sculley 2010)
 *   random   rows at random, nested: those for a smaller M come first in those for   O(M D)
 *            a larger one (savigp-jmlr section 9.3)
 *   greedy   the row whose variance given those chosen is largest, again and again:  O(n M^2), n M numbers of
 *            the pivoted Cholesky factorisation of K(X, X) (Fine and Scheinberg       memory
 *            2001; Burt, Rasmussen and van der Wilk 2020). Of at most 20,000 rows at
 *            random, fewer when n M would exceed 2^24 numbers
 *
 * Results depend on the rows, their order and the context's seed, not on the number of threads.
 */
#ifndef THI_BASIS_H
#define THI_BASIS_H

#include "kernel/kernel.h"

/* The rows to choose from, borrowed. Of a table that is larger than memory the caller gives a sample. */
typedef struct thi_basis_source {
    int D;
    int64_t n;
    const double *X;
    const thiele_kernel *kernel; /* greedy only; with its present parameters */
} thi_basis_source;

/*
 * Z has room for M columns; *chosen <= M of them are filled. Fewer when there are fewer distinct rows (kmeans and
 * random then give each of them, as they stand) or, greedy, when the rest adds less than 1e-10 of the variance.
 * Duplicates are never chosen. Errors: ARGUMENT (no such method, M < 1, no rows, greedy without a kernel), NUMERIC
 * (greedy: the kernel is not finite), MEMORY.
 */
thiele_status thi_basis_choose(thiele_context *ctx, const char *name, const thi_basis_source *source, int64_t M,
                               double *Z, int64_t *chosen);

/* The methods, one file each. */
typedef thiele_status (*thi_basis_fn)(thiele_context *ctx, const thi_basis_source *source, int64_t M, double *Z,
                                      int64_t *chosen);
thiele_status thi_basis_kmeans(thiele_context *ctx, const thi_basis_source *source, int64_t M, double *Z,
                               int64_t *chosen);
thiele_status thi_basis_random(thiele_context *ctx, const thi_basis_source *source, int64_t M, double *Z,
                               int64_t *chosen);
thiele_status thi_basis_greedy(thiele_context *ctx, const thi_basis_source *source, int64_t M, double *Z,
                               int64_t *chosen);

/* Which random numbers serve what: the row of a stream of THI_RANDOM_SUBSET. */
enum { THI_BASIS_NESTED = 1, THI_BASIS_CANDIDATES, THI_BASIS_SAMPLE, THI_BASIS_DRAWS, THI_BASIS_BATCHES = 1 << 20 };
static inline thi_stream thi_basis_stream(uint64_t seed, int use)
{
    return (thi_stream){seed, THI_RANDOM_SUBSET, (uint64_t)use};
}

/* --- distinct.c: a set of different vectors ----------------------------------------------------------------------- */
typedef struct thi_distinct {
    int D;
    uint64_t mask;       /* slots - 1, a power of two */
    const double **slot; /* borrowed vectors, NULL: free */
} thi_distinct;
/* Room for `most` vectors. */
thiele_status thi_distinct_open(thi_distinct *set, thiele_context *ctx, int D, int64_t most);
/* False when an equal vector (0 equals -0) is there already. x must stay where it is. */
bool thi_distinct_add(thi_distinct *set, const double *x);
void thi_distinct_close(thi_distinct *set);

#endif
