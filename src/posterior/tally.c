/* Sums over rows in whole numbers: see tally.h. */
#include "posterior/tally.h"

#include <math.h>
#include <string.h>

/* Bits behind the point of x, z, and of what is added up as it is; bits of a digit. */
enum { X_BITS = 40, Z_BITS = 42, SUM_BITS = 40, DIGIT = 21 };
/* In units: |x| < 2^46, |z| < 2^62. */
static const double X_MOST = 70368744177664.0, Z_MOST = 4611686018427387904.0;

static int64_t packed(int64_t M)
{
    return M * (M + 1) / 2;
}

static double power_of_two(double scale)
{
    int exponent;
    double mantissa = frexp(scale, &exponent);
    return ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
}

static thi_whole shifted(double whole, int bits)
{
    return (thi_whole)whole * ((thi_whole)1 << bits);
}

/* --- opening and closing ------------------------------------------------------------------------------------------ */

thiele_status thi_tally_open(thi_tally *tally, thiele_context *ctx, int64_t M, double unit, double target)
{
    *tally = (thi_tally){.M = M, .unit = power_of_two(unit), .target = power_of_two(target)};
    thiele_status status = thi_alloc(ctx, &tally->t, (size_t)M, sizeof *tally->t);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &tally->T, (size_t)packed(M), sizeof *tally->T);
    }
    return status;
}

void thi_tally_close(thi_tally *tally)
{
    thi_free(tally->t);
    thi_free(tally->T);
    *tally = (thi_tally){0};
}

void thi_tally_zero(thi_tally *tally)
{
    tally->rows = 0;
    tally->square = tally->weight = tally->spared = 0;
    memset(tally->t, 0, (size_t)tally->M * sizeof *tally->t);
    memset(tally->T, 0, (size_t)packed(tally->M) * sizeof *tally->T);
}

thiele_status thi_tally_desk_open(thi_tally_desk *desk, thiele_context *ctx, int64_t M, int64_t capacity)
{
    thiele_status status;
    *desk = (thi_tally_desk){.capacity = capacity};
    for (int d = 0; d < THI_TALLY_DIGITS; d++) {
        THI_TRY(thi_matrix_alloc(&desk->digit[d], ctx, M, capacity));
    }
    THI_TRY(thi_matrix_alloc(&desk->product, ctx, M, M));
    THI_TRY(thi_alloc(ctx, &desk->z, (size_t)capacity, sizeof *desk->z));
out:
    return status;
}

void thi_tally_desk_close(thi_tally_desk *desk)
{
    for (int d = 0; d < THI_TALLY_DIGITS; d++) {
        thi_free(desk->digit[d].data);
    }
    thi_free(desk->product.data);
    thi_free(desk->z);
    *desk = (thi_tally_desk){0};
}

/* --- adding rows -------------------------------------------------------------------------------------------------- */

static thiele_status refuse(thiele_context *ctx)
{
    return thi_fail(ctx, THIELE_ERROR_DATA, "a row is too far out for the model's sums");
}

static thiele_status check_count(thiele_context *ctx, int64_t rows)
{
    return rows <= THI_TALLY_MOST
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_LIMIT, "sums hold at most %lld rows", (long long)THI_TALLY_MOST);
}

/* z of every row and what is a number a row. The range of x is checked as well. */
static thiele_status take_scalars(thi_tally *tally, thiele_context *ctx, thi_tally_desk *desk,
                                  const thi_tally_rows *rows, int64_t *bad)
{
    double to_x = ldexp(1.0, X_BITS) / tally->unit, to_z = ldexp(1.0, Z_BITS) / tally->target;
    for (int64_t i = 0; i < rows->n; i++) {
        const double *v = rows->V.data + i * rows->V.ld;
        double omega = rows->weight[i], root = sqrt(omega) * to_x, most = 0.0;
        double z = sqrt(omega) * rows->residual[i];
        desk->z[i] = 0;
        *bad = i;
        if (omega == 0.0) {
            continue;
        }
        for (int64_t k = 0; k < tally->M; k++) {
            most = fmax(most, fabs(v[k]));
        }
        double unexplained = log1p(rows->unexplained[i]);
        if (!(most * root < X_MOST) || !(fabs(z * to_z) < Z_MOST) || !isfinite(unexplained) ||
            !isfinite(thi_blas_dot(tally->M, v, v))) {
            return refuse(ctx);
        }
        desk->z[i] = (int64_t)rint(z * to_z);
        z /= tally->target;
        tally->square += (thi_whole)rint(ldexp(z * z, SUM_BITS));
        tally->weight += (thi_whole)rint(ldexp(-log(omega), SUM_BITS));
        tally->spared += (thi_whole)rint(ldexp(unexplained, SUM_BITS));
        tally->rows++;
    }
    return THIELE_OK;
}

typedef struct cut {
    thi_tally *tally;
    thi_tally_desk *desk;
    const thi_tally_rows *rows;
} cut;
enum { STRIP = 32 };

/* Some numbers of x of every row: their digits, -2^20 to 2^20 each, and what they add to t. */
static thiele_status cut_strip(void *arg, int64_t block, int thread)
{
    (void)thread;
    const cut *c = arg;
    const int64_t half = INT64_C(1) << (DIGIT - 1), mask = (INT64_C(1) << DIGIT) - 1;
    double to_x = ldexp(1.0, X_BITS) / c->tally->unit;
    int64_t M = c->tally->M, from = block * STRIP, to = thi_least(M, from + STRIP);
    bool over = false;
    for (int64_t i = 0; i < c->rows->n; i++) {
        const double *v = c->rows->V.data + i * c->rows->V.ld;
        double root = sqrt(c->rows->weight[i]) * to_x;
        for (int64_t k = from; k < to; k++) {
            int64_t x = root > 0.0 ? (int64_t)rint(root * v[k]) : 0;
            thi_whole part = (thi_whole)x * c->desk->z[i];
            over = __builtin_add_overflow(c->tally->t[k], part, &c->tally->t[k]) || over;
            for (int d = 0; d < THI_TALLY_DIGITS; d++) {
                int64_t low = ((x + half) & mask) - half;
                c->desk->digit[d].data[k + i * M] = (double)low;
                x = (x - low) / (INT64_C(1) << DIGIT);
            }
        }
    }
    return over ? THIELE_ERROR_DATA : THIELE_OK;
}

/* T += the products of digits a and b, both ways round, which are whole numbers below 2^53. */
static thiele_status add_product(thi_tally *tally, thiele_context *ctx, thi_tally_desk *desk, int64_t n, int a, int b)
{
    int64_t M = tally->M, at = 0;
    thi_matrix A = thi_matrix_view(desk->digit[a].data, M, n, M), B = thi_matrix_view(desk->digit[b].data, M, n, M);
    thiele_status status;
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, A, B, 0.0, desk->product, true));
    if (a != b) {
        THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1.0, B, A, 1.0, desk->product, true));
    }
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = j; i < M; i++) {
            tally->T[at++] += shifted(desk->product.data[i + j * M], DIGIT * (a + b));
        }
    }
out:
    return status;
}

thiele_status thi_tally_add(thi_tally *tally, thiele_context *ctx, thi_tally_desk *desk, const thi_tally_rows *rows,
                            int64_t *bad)
{
    int64_t M = tally->M, n = rows->n;
    cut c = {tally, desk, rows};
    thiele_status status;
    THI_TRY(check_count(ctx, tally->rows + n));
    THI_TRY(take_scalars(tally, ctx, desk, rows, bad));
    if (thi_parallel(ctx, (M + STRIP - 1) / STRIP, cut_strip, &c) != THIELE_OK) {
        THI_TRY(refuse(ctx));
    }
    for (int a = 0; a < THI_TALLY_DIGITS; a++) {
        if (thi_matrix_is_zero(thi_matrix_view(desk->digit[a].data, M, n, M))) {
            continue; /* the first digit, unless a row is beyond the scale */
        }
        for (int b = 0; b <= a; b++) {
            THI_TRY(add_product(tally, ctx, desk, n, a, b));
        }
    }
out:
    return status;
}

static void mix(thi_tally *tally, const thi_tally *other, int sign)
{
    tally->rows += sign * other->rows;
    tally->square += sign * other->square;
    tally->weight += sign * other->weight;
    tally->spared += sign * other->spared;
    for (int64_t k = 0; k < tally->M; k++) {
        tally->t[k] += sign * other->t[k];
    }
    for (int64_t k = 0; k < packed(tally->M); k++) {
        tally->T[k] += sign * other->T[k];
    }
}

thiele_status thi_tally_join(thi_tally *tally, thiele_context *ctx, const thi_tally *other)
{
    thiele_status status = check_count(ctx, tally->rows + other->rows);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t k = 0; k < tally->M; k++) {
        thi_whole sum;
        if (__builtin_add_overflow(tally->t[k], other->t[k], &sum)) {
            return thi_fail(ctx, THIELE_ERROR_LIMIT, "the sums of so many rows are out of range");
        }
    }
    mix(tally, other, 1);
    return THIELE_OK;
}

void thi_tally_leave(thi_tally *tally, const thi_tally *other)
{
    mix(tally, other, -1);
}

/* --- what they say ------------------------------------------------------------------------------------------------ */

void thi_tally_natural(const thi_tally *tally, double noise, thi_natural *sum, double *spared)
{
    int64_t M = tally->M, at = 0;
    double T = ldexp(tally->unit * tally->unit, -2 * X_BITS) / noise;
    double t = ldexp(tally->unit * tally->target, -X_BITS - Z_BITS) / noise;
    double square = ldexp((double)tally->square, -SUM_BITS) * tally->target * tally->target;
    double rows = (double)tally->rows;
    for (int64_t j = 0; j < M; j++) {
        sum->t[j] = t * (double)tally->t[j];
        for (int64_t i = j; i < M; i++) {
            sum->T.data[i + j * sum->T.ld] = T * (double)tally->T[at++];
        }
    }
    sum->rows = rows;
    sum->constant = -0.5 * (square / noise + ldexp((double)tally->weight, -SUM_BITS) + rows * log(2.0 * M_PI * noise));
    *spared = ldexp((double)tally->spared, -SUM_BITS);
}

/* --- bytes --------------------------------------------------------------------------------------------------------
 */

enum { WHOLE = sizeof(thi_whole), SCALARS = 3 };

size_t thi_tally_bytes(int64_t M)
{
    return sizeof(int64_t) + WHOLE * (size_t)(SCALARS + M + packed(M));
}

static unsigned char *put(unsigned char *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return to + bytes;
}

void thi_tally_pack(const thi_tally *tally, unsigned char *to)
{
    to = put(to, &tally->rows, sizeof tally->rows);
    to = put(to, &tally->square, WHOLE);
    to = put(to, &tally->weight, WHOLE);
    to = put(to, &tally->spared, WHOLE);
    to = put(to, tally->t, WHOLE * (size_t)tally->M);
    put(to, tally->T, WHOLE * (size_t)packed(tally->M));
}

static const unsigned char *take(const unsigned char *from, void *to, size_t bytes)
{
    memcpy(to, from, bytes);
    return from + bytes;
}

/* Whether |entry| is at most what so many rows can add up to. */
static bool is_within(thi_whole entry, thi_whole most)
{
    return entry >= -most && entry <= most;
}

/* No sum is larger than its rows allow: further ones can be added without a look at their size, t apart. */
static bool is_possible(const thi_tally *tally)
{
    enum { PRODUCT = 92, SQUARE = 80, LOGARITHM = 51 };
    thi_whole rows = tally->rows, most = rows << PRODUCT;
    int64_t M = tally->M, at = 0;
    bool possible = tally->square >= 0 && tally->square <= rows << SQUARE && tally->weight >= 0 &&
                    tally->weight <= rows << LOGARITHM && tally->spared >= 0 && tally->spared <= rows << LOGARITHM;
    for (int64_t j = 0; j < M && possible; j++) {
        possible = tally->T[at] >= 0;
        for (int64_t i = j; i < M; i++) {
            possible = possible && is_within(tally->T[at++], most);
        }
    }
    return possible;
}

thiele_status thi_tally_unpack(thi_tally *tally, thiele_context *ctx, const unsigned char *from)
{
    from = take(from, &tally->rows, sizeof tally->rows);
    from = take(from, &tally->square, WHOLE);
    from = take(from, &tally->weight, WHOLE);
    from = take(from, &tally->spared, WHOLE);
    from = take(from, tally->t, WHOLE * (size_t)tally->M);
    take(from, tally->T, WHOLE * (size_t)packed(tally->M));
    return tally->rows >= 0 && tally->rows <= THI_TALLY_MOST && is_possible(tally)
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_FORMAT, "sums over rows make no sense: they are damaged or forged");
}
