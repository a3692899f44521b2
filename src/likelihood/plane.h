/* Functions of complex arguments for log phi, without loss near 0 or overflow far out. */
#ifndef THI_PLANE_H
#define THI_PLANE_H

#include <complex.h>
#include <math.h>

/* x + iy with all bits as they are, as CMPLX of C11, which not every compiler's library has. */
static inline double complex thi_plane_at(double x, double y)
{
    union {
        double part[2];
        double complex z;
    } both = {{x, y}};
    return both.z;
}

/* log(1 + z) */
static inline double complex thi_plane_log1p(double complex z)
{
    double x = creal(z), y = cimag(z);
    if (!(cabs(z) < 0.5)) {
        return clog(1.0 + z);
    }
    return thi_plane_at(0.5 * log1p(x * (2.0 + x) + y * y), atan2(y, 1.0 + x));
}

/* log cosh w, for a w with a real part >= 0. */
static inline double complex thi_plane_log_cosh(double complex w)
{
    if (cabs(w) > 0.5) {
        return w + clog(1.0 + cexp(-2.0 * w)) - M_LN2;
    }
    double complex s = csinh(w);
    return 0.5 * thi_plane_log1p(s * s);
}

#endif
