/*
 * Quasi-random normal draws: Sobol points with the direction numbers of Joe and Kuo (SIAM J. Sci. Comput. 30, 2008, the
 * set new-joe-kuo-6), scrambled as Owen proposed (1995), mapped by the normal's quantile. The error of a smooth mean
 * falls nearly as 1/n, best at powers of two. Dimensions beyond the table are filled with independent draws.
 */
#include "expect/integrate.h"
#include "likelihood/normal_quantile.h"

enum { DIMENSIONS = 64, BITS = 32 };

/* For dimension 2, 3, ...: a primitive polynomial over GF(2), leading and last coefficient included, and m_1, m_2, ...
 */
static const struct {
    uint16_t polynomial, m[9];
} table[DIMENSIONS - 1] = {
    {3, {1}},
    {7, {1, 3}},
    {11, {1, 3, 1}},
    {13, {1, 1, 1}},
    {19, {1, 1, 3, 3}},
    {25, {1, 3, 5, 13}},
    {37, {1, 1, 5, 5, 17}},
    {41, {1, 1, 5, 5, 5}},
    {47, {1, 1, 7, 11, 19}},
    {55, {1, 1, 5, 1, 1}},
    {59, {1, 1, 1, 3, 11}},
    {61, {1, 3, 5, 5, 31}},
    {67, {1, 3, 3, 9, 7, 49}},
    {91, {1, 1, 1, 15, 21, 21}},
    {97, {1, 3, 1, 13, 27, 49}},
    {103, {1, 1, 1, 15, 7, 5}},
    {109, {1, 3, 1, 15, 13, 25}},
    {115, {1, 1, 5, 5, 19, 61}},
    {131, {1, 3, 7, 11, 23, 15, 103}},
    {137, {1, 3, 7, 13, 13, 15, 69}},
    {143, {1, 1, 3, 13, 7, 35, 63}},
    {145, {1, 3, 5, 9, 1, 25, 53}},
    {157, {1, 3, 1, 13, 9, 35, 107}},
    {167, {1, 3, 1, 5, 27, 61, 31}},
    {171, {1, 1, 5, 11, 19, 41, 61}},
    {185, {1, 3, 5, 3, 3, 13, 69}},
    {191, {1, 1, 7, 13, 1, 19, 1}},
    {193, {1, 3, 7, 5, 13, 19, 59}},
    {203, {1, 1, 3, 9, 25, 29, 41}},
    {211, {1, 3, 5, 13, 23, 1, 55}},
    {213, {1, 3, 7, 3, 13, 59, 17}},
    {229, {1, 3, 1, 3, 5, 53, 69}},
    {239, {1, 1, 5, 5, 23, 33, 13}},
    {241, {1, 1, 7, 7, 1, 61, 123}},
    {247, {1, 1, 7, 9, 13, 61, 49}},
    {253, {1, 3, 3, 5, 3, 55, 33}},
    {285, {1, 3, 1, 15, 31, 13, 49, 245}},
    {299, {1, 3, 5, 15, 31, 59, 63, 97}},
    {301, {1, 3, 1, 11, 11, 11, 77, 249}},
    {333, {1, 3, 1, 11, 27, 43, 71, 9}},
    {351, {1, 1, 7, 15, 21, 11, 81, 45}},
    {355, {1, 3, 7, 3, 25, 31, 65, 79}},
    {357, {1, 3, 1, 1, 19, 11, 3, 205}},
    {361, {1, 1, 5, 9, 19, 21, 29, 157}},
    {369, {1, 3, 7, 11, 1, 33, 89, 185}},
    {391, {1, 3, 3, 3, 15, 9, 79, 71}},
    {397, {1, 3, 7, 11, 15, 39, 119, 27}},
    {425, {1, 1, 3, 1, 11, 31, 97, 225}},
    {451, {1, 1, 1, 3, 23, 43, 57, 177}},
    {463, {1, 3, 7, 7, 17, 17, 37, 71}},
    {487, {1, 3, 1, 5, 27, 63, 123, 213}},
    {501, {1, 1, 3, 5, 11, 43, 53, 133}},
    {529, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
    {539, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
    {545, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
    {557, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
    {563, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
    {601, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
    {607, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
    {617, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
    {623, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
    {631, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
    {637, {1, 1, 3, 13, 25, 47, 39, 87, 257}},
};

/* v[b]: the number that bit b of the (Gray-coded) index adds, in BITS bits. */
static void directions(int dimension, uint32_t *v)
{
    if (dimension == 0) {
        for (int b = 0; b < BITS; b++) {
            v[b] = 1u << (BITS - 1 - b);
        }
        return;
    }
    uint32_t polynomial = table[dimension - 1].polynomial;
    int degree = 0;
    while (polynomial >> (degree + 1)) {
        degree++;
    }
    for (int b = 0; b < BITS; b++) {
        if (b < degree) {
            v[b] = (uint32_t)table[dimension - 1].m[b] << (BITS - 1 - b);
            continue;
        }
        v[b] = v[b - degree] ^ (v[b - degree] >> degree);
        for (int k = 1; k < degree; k++) {
            v[b] ^= (polynomial >> (degree - k)) & 1u ? v[b - k] : 0;
        }
    }
}

/*
 * Owen's scrambling: the first bit is flipped at random, the second by a choice that depends on the first, and so on;
 * the choice for a prefix is a random bit at an index that spells the prefix. Below `depth` bits no two points share a
 * prefix, so that all lower bits are random at once.
 */
static double scramble(thi_stream stream, uint32_t x, int depth)
{
    uint64_t prefix = 1, out = 0;
    for (int b = 0; b < depth; b++) {
        uint64_t bit = (x >> (BITS - 1 - b)) & 1u;
        out = out << 1 | (bit ^ (thi_random_bits(stream, prefix) >> 63));
        prefix = prefix << 1 | bit;
    }
    uint64_t rest = thi_random_bits(stream, prefix) >> (11 + depth);
    return ((double)(out << (53 - depth) | rest) + 0.5) * 0x1p-53;
}

static void fill_dimension(thi_rule *rule, thi_stream stream, int Q, int q, int depth)
{
    uint32_t v[BITS], x = 0;
    directions(q, v);
    for (int64_t k = 0; k < rule->count; k++) {
        rule->z[k * Q + q] = thi_normal_quantile(scramble(stream, x, depth));
        x ^= v[__builtin_ctzll((uint64_t)k + 1)];
    }
}

thiele_status thi_rule_sobol(thi_rule *rule, thiele_context *ctx, uint64_t seed, int number, int64_t count, int Q)
{
    thi_rule_clear(rule);
    thiele_status status = thi_alloc(ctx, &rule->z, (size_t)(count * Q), sizeof *rule->z);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &rule->weight, (size_t)count, sizeof *rule->weight);
    }
    if (status != THIELE_OK) {
        thi_rule_clear(rule);
        return status;
    }
    rule->count = count;
    int depth = 0;
    while ((int64_t)1 << depth < count) {
        depth++;
    }
    for (int q = 0; q < Q; q++) {
        /* Rows of this purpose count up from 0 (montecarlo.c): the dimensions count down from the other end. */
        thi_stream stream = {seed, THI_RANDOM_EXPECT, UINT64_MAX - ((uint64_t)number * (uint64_t)Q + (uint64_t)q)};
        if (q < DIMENSIONS) {
            fill_dimension(rule, stream, Q, q, depth);
            continue;
        }
        for (int64_t k = 0; k < count; k++) {
            rule->z[k * Q + q] = thi_random_normal(stream, (uint64_t)k);
        }
    }
    for (int64_t k = 0; k < count; k++) {
        rule->weight[k] = 1.0 / (double)count;
    }
    return THIELE_OK;
}
