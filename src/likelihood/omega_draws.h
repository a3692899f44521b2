/*
 * Exact draws of the auxiliary variables, by counter: a draw reads at most THI_OMEGA indices of its stream from `first`
 * on. Rejections accept within a few rounds; one that ever ran out of indices would give the middle of its law.
 */
#ifndef THI_OMEGA_DRAWS_H
#define THI_OMEGA_DRAWS_H

#include "base/base.h"

enum { THI_OMEGA = 1 << 12 };

/*
 * Polya-Gamma(b, c), b >= 0 (0 gives 0): the law with the Laplace transform E[exp(-t w)] = (cosh(c/2)/cosh(sqrt(c^2/4 +
 * t/2)))^b. Whole b up to 8 is a sum of draws by Devroye's method; any other b a sum of gammas, nearly exact.
 */
double thi_draw_polya_gamma(thi_stream stream, uint64_t first, double b, double c);
/* PG(1, 2 z) where the share of the hat (polya_gamma_hat.h) right of its cut is known, and whether it is to begin left
 * of it. */
double thi_draw_polya_gamma_again(thi_stream stream, uint64_t first, double z, double share, bool left);
/* Gamma with this shape and rate. */
double thi_draw_gamma(thi_stream stream, uint64_t first, double shape, double rate);
/* Inverse Gaussian with the mean 1/over; over may be 0 (a Levy law, that of shape/chi^2). */
double thi_draw_inverse_gaussian(thi_stream stream, uint64_t first, double over, double shape);
/*
 * Generalised inverse Gaussian: density proportional to x^(p-1) exp(-a x - b/x), p > 0, a > 0, b >= 0 (0: gamma). A
 * negative p is one over the draw for -p with a and b swapped.
 */
double thi_draw_inverse_gaussian_general(thi_stream stream, uint64_t first, double p, double a, double b);

/*
 * Of n rows at once (omega_rows.c), the i-th from the stream of row stream.row + i and its indices from draw THI_OMEGA
 * on: Polya-Gamma(1, c_i), and inverse Gaussian with the means 1/over_i.
 */
void thi_draw_polya_gamma_rows(thi_stream stream, uint64_t draw, int64_t n, const double *c, double *out);
void thi_draw_inverse_gaussian_rows(thi_stream stream, uint64_t draw, int64_t n, const double *over, double shape,
                                    double *out);

#endif
