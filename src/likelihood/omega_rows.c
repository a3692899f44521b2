/*
 * Auxiliary variables of many rows at once: the logarithms, normals and distribution functions of all rows go through
 * vector loops, one index of each row's stream serves its first try, and rows that it does not settle go on one by one
 * (omega_draws.c).
 */
#include <math.h>

#include "likelihood/omega_draws.h"
#include "likelihood/polya_gamma_hat.h"
#include "linalg/vector.h"

enum { ROWS = 64 };

static thi_stream row_of(thi_stream first, int64_t row)
{
    first.row += (uint64_t)row;
    return first;
}

/* --- Polya-Gamma(1, c) ----------------------------------------------------------------------------------------------
 */

/* The share of the hat right of the cut, as thi_hat_right. */
static void right_shares(int64_t n, const double *z, double *share)
{
    const thi_vector_ops *vector = thi_vector();
    const double root = 1.0 / sqrt(THI_HAT_CUT);
    double near[ROWS], far[ROWS], rate[ROWS];
    for (int64_t i = 0; i < n; i++) {
        rate[i] = thi_hat_rate(z[i]);
        near[i] = root * (THI_HAT_CUT * z[i] - 1.0);
        far[i] = -root * (THI_HAT_CUT * z[i] + 1.0);
    }
    vector->log(n, rate, share);
    vector->log_phi(n, near, near);
    vector->log_phi(n, far, far);
    for (int64_t i = 0; i < n; i++) {
        double top = share[i] + rate[i] * THI_HAT_CUT;
        near[i] += top - z[i];
        far[i] += top + z[i];
    }
    vector->exp(n, near, near);
    vector->exp(n, far, far);
    for (int64_t i = 0; i < n; i++) {
        share[i] = 1.0 / (1.0 + 4.0 / M_PI * (near[i] + far[i]));
    }
}

/*
 * One round below the hat from four uniforms, of which the second and third also come as exponentials e and e'. NaN:
 * another round is due; *left: and it begins left of the cut, where this one did not end. The uniform that chose the
 * side is, stretched, as good as a new one.
 */
static double try_hat(double z, double share, const double *u, double e, double other, bool *left)
{
    bool right = u[0] < share;
    double again = right ? u[0] / share : (u[0] - share) / (1.0 - share), x = THI_HAT_CUT + e / thi_hat_rate(z);
    *left = false;
    if (!right) {
        double by = 1.0 + THI_HAT_CUT * e, fall = 0.5 * z * z * THI_HAT_CUT / (by * by);
        x = THI_HAT_CUT / (by * by);
        if (z * THI_HAT_CUT > 1.0 || e * e > 2.0 * other / THI_HAT_CUT || (u[3] > 1.0 - fall && u[3] > exp(-fall))) {
            *left = true;
            return NAN;
        }
    }
    return thi_hat_accepts(again, x) ? 0.25 * x : NAN;
}

static void polya_gammas(thi_stream stream, uint64_t draw, int64_t n, const double *c, double *out)
{
    double z[ROWS], share[ROWS], u[ROWS][4], log_u[2][ROWS];
    for (int64_t i = 0; i < n; i++) {
        z[i] = 0.5 * fabs(c[i]);
        thi_random_uniforms(row_of(stream, i), draw * THI_OMEGA, u[i]);
        log_u[0][i] = u[i][1];
        log_u[1][i] = u[i][2];
    }
    right_shares(n, z, share);
    thi_vector()->log(n, log_u[0], log_u[0]);
    thi_vector()->log(n, log_u[1], log_u[1]);
    for (int64_t i = 0; i < n; i++) {
        bool left;
        out[i] = try_hat(z[i], share[i], u[i], -log_u[0][i], -log_u[1][i], &left);
        if (isnan(out[i])) {
            out[i] = thi_draw_polya_gamma_again(row_of(stream, i), draw * THI_OMEGA + 1, z[i], share[i], left);
        }
    }
}

void thi_draw_polya_gamma_rows(thi_stream stream, uint64_t draw, int64_t n, const double *c, double *out)
{
    for (int64_t i = 0; i < n; i += ROWS) {
        polya_gammas(row_of(stream, i), draw, n - i < ROWS ? n - i : ROWS, c + i, out + i);
    }
}

/* --- inverse Gaussian -----------------------------------------------------------------------------------------------
 */

static void inverse_gaussians(thi_stream stream, uint64_t draw, int64_t n, const double *over, double shape,
                              double *out)
{
    double u[ROWS], v[ROWS], z[ROWS], other[ROWS], which[ROWS];
    for (int64_t i = 0; i < n; i++) {
        double four[4];
        thi_random_uniforms(row_of(stream, i), draw * THI_OMEGA, four);
        u[i] = four[0];
        v[i] = four[1];
        which[i] = four[2];
    }
    thi_vector()->normals(n, u, v, z, other);
    for (int64_t i = 0; i < n; i++) {
        out[i] = thi_inverse_gaussian_of(over[i], shape, z[i], which[i]);
    }
}

void thi_draw_inverse_gaussian_rows(thi_stream stream, uint64_t draw, int64_t n, const double *over, double shape,
                                    double *out)
{
    for (int64_t i = 0; i < n; i += ROWS) {
        inverse_gaussians(row_of(stream, i), draw, n - i < ROWS ? n - i : ROWS, over + i, shape, out + i);
    }
}
