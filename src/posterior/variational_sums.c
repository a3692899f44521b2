/*
 * What the pulls of an evaluation have summed, as numbers that others can be added to: whether there are any, g and h
 * of the members, T of full ones, P, and the adjoints of kernels, means and Z of the groups.
 */
#include "posterior/variational_internal.h"

#include <string.h>

enum { FLAGS = 2 };

static int64_t triangle(const thi_variational *v)
{
    return v->shape.inducing * (v->shape.inducing + 1) / 2;
}

/* theta_bar, mean_bar and Z_bar, which lie behind each other. */
static int64_t bars_of(const thi_variational *v, const thi_group *group)
{
    int D = v->shape.dims;
    return thiele_kernel_parameters(group->prior.kernel) + thi_mean_parameters(group->prior.mean, D) +
           D * v->shape.inducing;
}

int64_t thi_variational_sums(const thi_variational *v)
{
    int64_t size = FLAGS + v->sums_size + (thi_is_full(v) ? v->members * triangle(v) : 0);
    for (int g = 0; g < v->groups; g++) {
        size += triangle(v) + bars_of(v, &v->group[g]);
    }
    return size;
}

/* Numbers go out, and zeros are left. */
static double *take_vector(double *own, int64_t n, double *to)
{
    memcpy(to, own, (size_t)n * sizeof *to);
    memset(own, 0, (size_t)n * sizeof *own);
    return to + n;
}

/* A triangle that nothing was written to counts as zeros. */
static double *take_triangle(thi_matrix A, bool written, double *to)
{
    for (int64_t j = 0; j < A.cols; j++) {
        size_t bytes = (size_t)(A.cols - j) * sizeof *to;
        if (written) {
            memcpy(to, A.data + j + j * A.ld, bytes);
        } else {
            memset(to, 0, bytes);
        }
        to += A.cols - j;
    }
    return to;
}

void thi_variational_take(thi_variational *v, double *to)
{
    bool full = thi_is_full(v), spared = full ? v->relieved : v->pulled && !v->narrow;
    *to++ = v->pulled;
    *to++ = v->relieved;
    to = take_vector(v->sums, v->sums_size, to);
    for (int i = 0; i < v->members && full; i++) {
        to = take_triangle(v->member[i].T, v->pulled, to);
    }
    for (int g = 0; g < v->groups; g++) {
        to = take_triangle(v->group[g].P, spared, to);
        to = take_vector(v->group[g].theta_bar, bars_of(v, &v->group[g]), to);
    }
    v->pulled = v->relieved = v->raw_sums = false;
}

static const double *put_vector(double *own, int64_t n, const double *from)
{
    memcpy(own, from, (size_t)n * sizeof *own);
    return from + n;
}

static const double *put_triangle(thi_matrix A, const double *from)
{
    for (int64_t j = 0; j < A.cols; j++) {
        memcpy(A.data + j + j * A.ld, from, (size_t)(A.cols - j) * sizeof *from);
        from += A.cols - j;
    }
    return from;
}

void thi_variational_put(thi_variational *v, const double *from)
{
    v->pulled = *from++ > 0.0;
    v->relieved = *from++ > 0.0;
    v->raw_sums = v->pulled && v->raw;
    from = put_vector(v->sums, v->sums_size, from);
    for (int i = 0; i < v->members && thi_is_full(v); i++) {
        from = put_triangle(v->member[i].T, from);
    }
    for (int g = 0; g < v->groups; g++) {
        from = put_triangle(v->group[g].P, from);
        from = put_vector(v->group[g].theta_bar, bars_of(v, &v->group[g]), from);
    }
}
