/*
 * Counter-based random numbers: Philox-4x64 (Salmon et al. 2011) from Random123. The key is the seed and the purpose,
 * the counter the row and the index, so that any draw can be made at any time by any thread.
 */
#include <Random123/philox.h>
#include <math.h>

#include "base/base.h"

static philox4x64_ctr_t draw(thi_stream stream, uint64_t index)
{
    philox4x64_ctr_t counter = {{index, stream.row, 0, 0}};
    philox4x64_key_t key = {{stream.seed, stream.purpose}};
    return philox4x64(counter, key);
}

/* 53 random bits at the middle of their cell: never 0, never 1. */
static double unit(uint64_t bits)
{
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

uint64_t thi_random_bits(thi_stream stream, uint64_t index)
{
    return draw(stream, index).v[0];
}

double thi_random_uniform(thi_stream stream, uint64_t index)
{
    return unit(draw(stream, index).v[0]);
}

void thi_random_uniforms(thi_stream stream, uint64_t index, double out[4])
{
    philox4x64_ctr_t bits = draw(stream, index);
    for (int i = 0; i < 4; i++) {
        out[i] = unit(bits.v[i]);
    }
}

double thi_random_normal(thi_stream stream, uint64_t index)
{
    philox4x64_ctr_t bits = draw(stream, index);
    return sqrt(-2.0 * log(unit(bits.v[0]))) * cos(6.283185307179586476925 * unit(bits.v[1]));
}

/* A number in 0..n-1 by the high half of a 128-bit product; its bias of n/2^64 is far below what a test could see. */
static int64_t below(thi_stream stream, uint64_t index, int64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    return (int64_t)(((wide)thi_random_bits(stream, index) * (wide)(uint64_t)n) >> 64);
}

void thi_random_permutation(thi_stream stream, int64_t n, int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = below(stream, (uint64_t)i, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}
