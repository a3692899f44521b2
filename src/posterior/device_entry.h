/*
 * One entry of a kernel matrix on another device, and what its adjoint asks for: a kernel's tree as a list of steps
 * over a stack, leaves by features that the host has computed. One text for C, C++ and CUDA (base/pointwise.h).
 * Cost: 2 F flops and one exp for each leaf.
 */
#ifndef THI_DEVICE_ENTRY_H
#define THI_DEVICE_ENTRY_H

#include <stdint.h>

#include "kernel/profile_formulas.h"

/* As many as a kernel's text may have (kernel/kernel.h): nodes, and the depth of the tree. */
enum { THI_ENTRY_LEAVES = 64, THI_ENTRY_STEPS = 128, THI_ENTRY_STACK = 20 };
/* Steps that are no leaf: the two upper values of the stack become one. */
enum { THI_ENTRY_SUM = -1, THI_ENTRY_PRODUCT = -2 };

typedef struct thi_entry_leaf {
    thi_profile_args args;
    int profile, family;
    int features, first; /* its features are lines first .. first + features - 1 of all */
} thi_entry_leaf;

typedef struct thi_entry_kernel {
    int leaves, steps;
    thi_entry_leaf leaf[THI_ENTRY_LEAVES];
    signed char step[THI_ENTRY_STEPS]; /* a leaf's number: its value is put on the stack */
} thi_entry_kernel;

/* The rows: feature f of row i is u[i + f n]. */
typedef struct thi_entry_rows {
    int64_t n;
    const double *u;
} thi_entry_rows;

/* t of rows i and j: distances by differences, which are exact where rows are near. */
THI_POINTWISE double thi_entry_argument(const thi_entry_leaf *leaf, const thi_entry_rows *rows, int64_t i, int64_t j)
{
    const double *u = rows->u + leaf->first * rows->n;
    double t = 0.0;
    for (int f = 0; f < leaf->features; f++, u += rows->n) {
        double apart = u[i] - u[j];
        t += leaf->family == THI_DISTANCE ? apart * apart : u[i] * u[j];
    }
    return t;
}

THI_POINTWISE thi_jet thi_entry_profile(const thi_entry_leaf *leaf, double t)
{
    switch ((thi_profile)leaf->profile) {
    case THI_PROFILE_SE:
        return thi_profile_se(t, &leaf->args);
    case THI_PROFILE_MATERN12:
        return thi_profile_matern12(t, &leaf->args);
    case THI_PROFILE_MATERN32:
        return thi_profile_matern32(t, &leaf->args);
    case THI_PROFILE_MATERN52:
        return thi_profile_matern52(t, &leaf->args);
    case THI_PROFILE_RQ:
        return thi_profile_rq(t, &leaf->args);
    case THI_PROFILE_LINEAR:
        return thi_profile_linear(t, &leaf->args);
    case THI_PROFILE_POLYNOMIAL:
        return thi_profile_polynomial(t, &leaf->args);
    default:
        return thi_profile_one(t, &leaf->args);
    }
}

THI_POINTWISE thi_jet thi_entry_jet(const thi_entry_leaf *leaf, const thi_entry_rows *rows, int64_t i, int64_t j)
{
    if (leaf->family == THI_WHITE && i != j) {
        return thi_jet_of(0.0, 0.0, 0.0);
    }
    return thi_entry_profile(leaf, thi_entry_argument(leaf, rows, i, j));
}

/*
 * k(x_i, x_j); *slope: its derivative in the value of the leaf `which`, whose own jet is *jet. which -1: neither is
 * wanted, and both may be NULL.
 */
THI_POINTWISE double thi_entry_value(const thi_entry_kernel *kernel, const thi_entry_rows *rows, int64_t i, int64_t j,
                                     int which, thi_jet *jet, double *slope)
{
    double value[THI_ENTRY_STACK], tangent[THI_ENTRY_STACK];
    int top = -1;
    value[0] = tangent[0] = 0.0; /* of a kernel without steps, which there is none of */
    for (int s = 0; s < kernel->steps; s++) {
        int step = kernel->step[s];
        if (step >= 0) {
            thi_jet own = thi_entry_jet(&kernel->leaf[step], rows, i, j);
            value[++top] = own.k;
            tangent[top] = step == which ? 1.0 : 0.0;
            if (step == which) {
                *jet = own;
            }
            continue;
        }
        top--;
        if (step == THI_ENTRY_SUM) {
            tangent[top] += tangent[top + 1];
            value[top] += value[top + 1];
        } else {
            tangent[top] = tangent[top] * value[top + 1] + value[top] * tangent[top + 1];
            value[top] *= value[top + 1];
        }
    }
    if (which >= 0) {
        *slope = tangent[0];
    }
    return value[0];
}

/* 2 Kbar_ij of the lower triangle, Kbar_ii on the diagonal, of Kbar = (sum over p of alpha alpha' - P K^-1)/2. */
THI_POINTWISE double thi_entry_adjoint(int64_t n, int targets, const double *alpha, double inverse, int64_t i,
                                       int64_t j)
{
    double outer = 0.0;
    for (int p = 0; p < targets; p++) {
        outer += alpha[i + p * n] * alpha[j + p * n];
    }
    return (i == j ? 0.5 : 1.0) * (outer - targets * inverse);
}

#endif
