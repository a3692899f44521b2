/*
 * Covariance functions. A kernel is made from text,
 *   matern52(ard) + linear*periodic(p=7, dims=1)
 * a sum of products of the kernels below, each with its arguments in parentheses: `ard` (one length-scale per column
 * instead of one for all), `dims` (columns, 1-based: dims=2, dims=[1,3], dims=2:5, or names where the caller gives
 * them), and values: `name=value` fixes a parameter, `name~value` gives its first guess.
 *
 *   with r^2 = sum_d (x_d - x'_d)^2 / lengthscale_d^2 and s2 the variance:
 *   se          s2 exp(-r^2/2)
 *   matern12    s2 exp(-r)
 *   matern32    s2 (1 + sqrt3 r) exp(-sqrt3 r)
 *   matern52    s2 (1 + sqrt5 r + 5 r^2/3) exp(-sqrt5 r)
 *   rq          s2 (1 + r^2/(2 alpha))^-alpha
 *   periodic    s2 exp(-2 sum_d sin^2(pi (x_d - x'_d)/period) / lengthscale_d^2)
 *   cosine      s2 cos(2 pi sum_d (x_d - x'_d)/lengthscale_d)
 *   linear      s2 sum_d x_d x'_d / lengthscale_d^2
 *   polynomial  s2 (sum_d x_d x'_d / lengthscale_d^2 + offset)^degree
 *   constant    s2
 *   white       s2 when x and x' are the same row of the same table, else 0
 *
 * All parameters but the integer `degree` are positive and handled as logs. Their order: length-scales, variance, then
 * alpha, period or offset; the parts of a sum or product in turn.
 */
#ifndef THIELE_KERNEL_H
#define THIELE_KERNEL_H

#include <thiele/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_kernel thiele_kernel;

/*
 * Parses a kernel over `dims` input columns; names (one per column) may be NULL. Error: ARGUMENT, with the position and
 * what is expected there.
 */
THIELE_API thiele_status thiele_kernel_parse(thiele_kernel **out, thiele_context *ctx, const char *text, int dims,
                                             const char *const *names);
THIELE_API void thiele_kernel_destroy(thiele_kernel *kernel);

/* The kernel as text that parses back to the same kernel, with its values if with_values is not zero. Free it with
 * thiele_free. */
THIELE_API thiele_status thiele_kernel_print(const thiele_kernel *kernel, thiele_context *ctx, int with_values,
                                             char **text);

THIELE_API int thiele_kernel_dims(const thiele_kernel *kernel);
THIELE_API int thiele_kernel_parameters(const thiele_kernel *kernel);
/* "matern52.lengthscale[2]"; borrowed; NULL when out of range. */
THIELE_API const char *thiele_kernel_parameter_name(const thiele_kernel *kernel, int index);
/* log theta: one number per parameter. */
THIELE_API void thiele_kernel_get(const thiele_kernel *kernel, double *log_theta);
THIELE_API void thiele_kernel_set(thiele_kernel *kernel, const double *log_theta);

/*
 * Matrices are column-major; inputs are dims x n, one row of data per column.
 *
 * matrix: K (n x n2, leading dimension n) = k(X, X2); X2 == NULL means K(X, X).
 * adjoint: for the scalar F = sum_ij Kbar_ij K_ij, with Kbar n x n2, adds dF/d log theta to theta_bar and, unless it is
 * NULL, dF/dX2 to X2_bar (dims x n2). With X2 == NULL (Kbar then symmetric), X2_bar is dF/dX through both arguments.
 * Cost: O(n n2 dims), by tiles, on the context's threads; the same bits on any number of them.
 */
THIELE_API thiele_status thiele_kernel_matrix(const thiele_kernel *kernel, thiele_context *ctx, int64_t n,
                                              const double *X, int64_t n2, const double *X2, double *K);
THIELE_API thiele_status thiele_kernel_diagonal(const thiele_kernel *kernel, thiele_context *ctx, int64_t n,
                                                const double *X, double *diagonal);
THIELE_API thiele_status thiele_kernel_adjoint(const thiele_kernel *kernel, thiele_context *ctx, int64_t n,
                                               const double *X, int64_t n2, const double *X2, const double *Kbar,
                                               double *theta_bar, double *X2_bar);

#ifdef __cplusplus
}
#endif
#endif
