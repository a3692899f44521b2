/* Every pointwise formula once, as C++ and as CUDA: that they compile is the test. */
#include "kernel/profile_formulas.h"
#include "likelihood/formulas.h"

#ifndef __CUDACC__
#define __global__
#endif

__global__ void profiles(thi_profile_args args, double t, thi_jet *out)
{
    out[0] = thi_profile_se(t, &args);
    out[1] = thi_profile_matern12(t, &args);
    out[2] = thi_profile_matern32(t, &args);
    out[3] = thi_profile_matern52(t, &args);
    out[4] = thi_profile_rq(t, &args);
    out[5] = thi_profile_linear(t, &args);
    out[6] = thi_profile_polynomial(t, &args);
    out[7] = thi_profile_one(t, &args);
}

__global__ void rows_of_reals(thi_values phi, double y, double f, double v, double *d, thi_row *out)
{
    double a = phi.value[0], u = thi_matern_size(a, y, f);
    d[0] = thi_gaussian_density(thi_gaussian_constant(a), 0.5 / a, y, f);
    d[1] = thi_student_density(thi_student_constant(a, a), a, log1p(thi_student_ratio(a, a, y, f)));
    d[2] = thi_laplace_constant(a) - thi_laplace_size(a, y, f);
    d[3] = thi_matern_density(a, u, log1p(u));
    d[4] = thi_warped_density(phi, thi_warped_constant(phi, y), y, f);
    thi_student_derivatives(a, a, y, f, d + 5);
    thi_student_phi(phi, y, f, d + 7);
    thi_matern_derivatives(a, y, f, d + 9);
    thi_warped_derivatives(phi, y, f, d + 11);
    thi_warped_phi(phi, y, f, d + 13);
    out[0] = thi_gaussian_expectation(a, a, y, f, v);
    out[1] = thi_laplace_expectation(phi, y, f, v, d);
    out[2] = thi_warped_expectation(phi, y, f, v, d);
}

__global__ void rows_of_positives(thi_values phi, double y, double f, double v, double *d, thi_row *out)
{
    d[0] = thi_gamma_density(phi, thi_gamma_constant(phi, y), y, f);
    d[1] = thi_beta_density(phi, thi_beta_constant(phi, y), y, f);
    thi_gamma_derivatives(phi, y, f, d + 2);
    thi_gamma_phi(phi, y, f, d + 4);
    thi_beta_derivatives(phi, y, f, d + 5);
    thi_beta_phi(phi, y, f, d + 7);
    out[0] = thi_gamma_expectation(phi, y, f, v, d);
}

__global__ void rows_of_classes(thi_values phi, double y, double f, double v, double *d, thi_row *out)
{
    d[0] = thi_logit_density(y, f);
    d[1] = thi_probit_density(y, f);
    d[2] = thi_svm_density(y, f);
    d[3] = thi_ordinal_density(phi, phi.value[0], y, f);
    thi_ordinal_derivatives(phi, y, f, d + 4);
    thi_ordinal_phi(phi, y, f, d + 6);
    out[0] = thi_svm_expectation(phi, y, f, v, d);
}

__global__ void rows_of_counts(thi_values phi, double y, double f, double v, double *d, thi_row *out)
{
    d[0] = thi_poisson_density(phi, thi_poisson_constant(phi, y), y, f);
    d[1] = thi_negbin_density(phi, thi_negbin_constant(phi, y), y, f);
    d[2] = thi_binomial_density(phi, thi_binomial_constant(phi, y), y, f);
    d[3] = thi_sigmoid_poisson_density(phi, thi_sigmoid_poisson_constant(phi, y), y, f);
    thi_poisson_derivatives(phi, y, f, d + 4);
    thi_negbin_derivatives(phi, y, f, d + 6);
    thi_binomial_derivatives(phi, y, f, d + 8);
    thi_sigmoid_poisson_derivatives(phi, y, f, d + 10);
    thi_poisson_phi(phi, y, f, d + 12);
    thi_negbin_phi(phi, y, f, d + 13);
    thi_binomial_phi(phi, y, f, d + 14);
    thi_sigmoid_poisson_phi(phi, y, f, d + 15);
    out[0] = thi_poisson_expectation(phi, y, f, v, d);
    out[1] = thi_sigmoid_poisson_bound(phi, y, f, v, d);
}

#define BOUND(family, k)                                                                                               \
    {                                                                                                                  \
        thi_coefficients c = thi_##family##_coefficients(phi, y);                                                      \
        thi_omega omega = thi_##family##_omega(phi, y, thi_expected_square(&c, mu, v));                                \
        out[k] = thi_form_row(&c, &omega, mu);                                                                         \
    }

__global__ void bounds(thi_values phi, double y, double mu, double v, double *d, thi_row *out)
{
    BOUND(student, 0)
    BOUND(laplace, 1)
    BOUND(svm, 2)
    BOUND(matern, 3)
    BOUND(logit, 4)
    BOUND(binomial, 5)
    BOUND(negbin, 6)
    thi_student_bound_phi(phi, y, mu, v, d);
    thi_laplace_bound_phi(phi, y, mu, v, d + 2);
    thi_matern_bound_phi(phi, y, mu, v, d + 3);
    thi_binomial_bound_phi(phi, y, mu, v, d + 4);
    thi_negbin_bound_phi(phi, y, mu, v, d + 5);
}
