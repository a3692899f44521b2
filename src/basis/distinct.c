/* A hash set of vectors by value, open addressing, at most half full. */
#include "basis/basis.h"

#include <string.h>

thiele_status thi_distinct_open(thi_distinct *set, thiele_context *ctx, int D, int64_t most)
{
    uint64_t slots = 4;
    while (slots < 2 * (uint64_t)most) {
        slots *= 2;
    }
    *set = (thi_distinct){.D = D, .mask = slots - 1};
    return thi_alloc(ctx, &set->slot, slots, sizeof *set->slot);
}

void thi_distinct_close(thi_distinct *set)
{
    thi_free(set->slot);
    *set = (thi_distinct){0};
}

static uint64_t hash(int D, const double *x)
{
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    for (int d = 0; d < D; d++) {
        double value = x[d] + 0.0; /* -0 becomes 0 */
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        h = (h ^ bits) * UINT64_C(0xbf58476d1ce4e5b9);
        h ^= h >> 32;
    }
    return h;
}

static bool equal(int D, const double *a, const double *b)
{
    for (int d = 0; d < D; d++) {
        if (a[d] != b[d]) {
            return false;
        }
    }
    return true;
}

bool thi_distinct_add(thi_distinct *set, const double *x)
{
    uint64_t at = hash(set->D, x) & set->mask;
    while (set->slot[at] != NULL) {
        if (equal(set->D, set->slot[at], x)) {
            return false;
        }
        at = (at + 1) & set->mask;
    }
    set->slot[at] = x;
    return true;
}
