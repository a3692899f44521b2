/*
 * What rows with Gaussian noise say of the inducing variables w = L^-1 u (natural.h), summed without rounding. Each row
 * has a weight omega = noise * lambda in [0, 1] (1, or noise/(noise + k - |V|^2) of FITC), x = sqrt(omega) V and
 * z = sqrt(omega) (y - o). x is rounded to a multiple of 2^-40 of the prior's scale, z to one of 2^-42 of the target's:
 * once, row by row. From there on there are whole numbers of 128 bits only,
 *   sum x x',  sum x z,  sum z^2,  sum -log omega,  sum log(1 + (k - |V|^2)/noise)
 * so that they add up to the same bits whatever the order of the rows and the cut into parts, and come apart as well.
 * The sum of squares is that of the rounded x and never has a negative eigenvalue. After Demmel and Nguyen (2015,
 * "Parallel reproducible summation") and, for products by BLAS, Ozaki et al. (2012): x is cut into digits of 21 bits,
 * and a product of digits over up to 4,096 rows fits into the 53 bits of a double. 4 M^2 n flops where a product of
 * doubles takes M^2 n.
 */
#ifndef THI_TALLY_H
#define THI_TALLY_H

#include "posterior/natural.h"

__extension__ typedef __int128 thi_whole;

typedef struct thi_tally {
    int64_t M, rows;
    double unit, target;              /* powers of two: the scales of x and z */
    thi_whole square, weight, spared; /* sum z^2, -log omega, log(1 + r/noise) */
    thi_whole *t;                     /* M */
    thi_whole *T;                     /* lower triangle by columns */
} thi_tally;

/* Rows that one of them may hold, and that may be added at a time. */
#define THI_TALLY_MOST (INT64_C(1) << 34)
enum { THI_TALLY_BATCH = 4096, THI_TALLY_DIGITS = 3 };

/* Work space for rows of M numbers, `capacity` at a time. */
typedef struct thi_tally_desk {
    int64_t capacity;
    thi_matrix digit[THI_TALLY_DIGITS]; /* M x capacity */
    thi_matrix product;                 /* M x M */
    int64_t *z;                         /* capacity */
} thi_tally_desk;

/* Rows to be added: n <= capacity. A weight of 0 is a row that is not there. */
typedef struct thi_tally_rows {
    int64_t n;
    thi_matrix V;                                  /* M x n */
    const double *weight, *residual, *unexplained; /* omega; y - o; (k - |V|^2)/noise */
} thi_tally_rows;

/* unit, target: the scales, any positive numbers; the next power of two is taken. */
thiele_status thi_tally_open(thi_tally *tally, thiele_context *ctx, int64_t M, double unit, double target);
void thi_tally_close(thi_tally *tally);
void thi_tally_zero(thi_tally *tally);
thiele_status thi_tally_desk_open(thi_tally_desk *desk, thiele_context *ctx, int64_t M, int64_t capacity);
void thi_tally_desk_close(thi_tally_desk *desk);
/*
 * Error DATA when a row is too far out for these scales (64 of x, 2^20 of z) or not finite, which *bad names, and LIMIT
 * when there are too many; the tally is then to be zeroed.
 */
thiele_status thi_tally_add(thi_tally *tally, thiele_context *ctx, thi_tally_desk *desk, const thi_tally_rows *rows,
                            int64_t *bad);
/* tally += other, of the same size and scales. Error LIMIT: too many rows; the tally is as it was. */
thiele_status thi_tally_join(thi_tally *tally, thiele_context *ctx, const thi_tally *other);
/* Takes away what was joined. */
void thi_tally_leave(thi_tally *tally, const thi_tally *other);
/* As natural parameters and the constant of the log evidence; *spared: the sum of log(1 + r/noise). */
void thi_tally_natural(const thi_tally *tally, double noise, thi_natural *sum, double *spared);

/* Bytes, little-endian; reading checks that they can be the sums of so many rows. Error: FORMAT. */
size_t thi_tally_bytes(int64_t M);
void thi_tally_pack(const thi_tally *tally, unsigned char *to);
thiele_status thi_tally_unpack(thi_tally *tally, thiele_context *ctx, const unsigned char *from);

#endif
