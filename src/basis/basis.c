/* The table of methods that choose inducing inputs, and the smallest of them: a nested random subset. */
#include "basis/basis.h"

#include <string.h>

#include "data/batches.h"

static const struct {
    const char *name;
    thi_basis_fn choose;
} methods[] = {{"kmeans", thi_basis_kmeans}, {"random", thi_basis_random}, {"greedy", thi_basis_greedy}};
enum { METHODS = sizeof methods / sizeof *methods };

thiele_status thi_basis_choose(thiele_context *ctx, const char *name, const thi_basis_source *source, int64_t M,
                               double *Z, int64_t *chosen)
{
    *chosen = 0;
    if (M < 1 || source->n < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "cannot choose %lld inducing inputs from %lld rows", (long long)M,
                        (long long)source->n);
    }
    for (int m = 0; m < METHODS; m++) {
        if (strcmp(methods[m].name, name) == 0) {
            return methods[m].choose(ctx, source, M < source->n ? M : source->n, Z, chosen);
        }
    }
    return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                    "unknown way to choose inducing inputs, '%.40s': use kmeans, random or greedy", name);
}

/* Rows in one random order that does not depend on M, leaving out those that were there before. */
thiele_status thi_basis_random(thiele_context *ctx, const thi_basis_source *source, int64_t M, double *Z,
                               int64_t *chosen)
{
    const int D = source->D;
    thi_shuffle order;
    thi_distinct set;
    thiele_status status = thi_distinct_open(&set, ctx, D, M);
    thi_shuffle_open(&order, thi_basis_stream(ctx->seed, THI_BASIS_NESTED), source->n);
    for (int64_t i = 0; status == THIELE_OK && i < source->n && *chosen < M; i++) {
        const double *x = source->X + thi_shuffle_at(&order, i) * D;
        if (thi_distinct_add(&set, x)) {
            memcpy(Z + *chosen * D, x, (size_t)D * sizeof *Z);
            ++*chosen;
        }
    }
    thi_distinct_close(&set);
    return status;
}
