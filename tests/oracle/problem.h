/* What the variational kinds share: inputs X, y, Z, a kernel and a likelihood, and the evaluation of a bound on them.
 */
#ifndef ORACLE_PROBLEM_H
#define ORACLE_PROBLEM_H

#include "oracle.h"

#include "expect/expect.h"
#include "posterior/variational.h"

typedef struct problem {
    thi_shape shape;
    thi_matrix X, y, Z; /* D x N, N x 1, D x M */
    thiele_kernel *kernel;
    thiele_likelihood *lik;
    thi_expect expect;
    thi_variational *v;
    thi_matrix mu, variance, E, g, h; /* N x K */
    thi_matrix dphi;                  /* parameters x N, of the last component */
    thi_matrix theta_bar, Z_bar;
    thi_matrix q, q_bar; /* a vector each */
    double expected[8];  /* of each component, scaled as the rows are */
    double kl;
} problem;

thiele_status problem_open(oracle_case *c, problem *p, int components, bool diagonal, bool whitened);
void problem_close(problem *p);
thiele_status problem_begin(oracle_case *c, problem *p, thi_sites *sites);
/*
 * Marginals and expectations of n rows; each counts `scale` times. pull: their adjoints too.
 */
thiele_status problem_rows(oracle_case *c, problem *p, int64_t n, const double *X, const double *y, double scale,
                           bool pull);
/* kl and the gradients of the bound, from zero. */
thiele_status problem_end(oracle_case *c, problem *p, bool by_sites);
/* sum_k pi_k expected_k - kl */
double problem_bound(const problem *p);
/* sum_k pi_k expected_k */
double problem_expected(const problem *p);
/* Writes a mean and a covariance (M x M) as the numbers of component k. */
thiele_status problem_pack(oracle_case *c, problem *p, int component, const double *m, thi_matrix S);
/* Turns the gradient in the factor of S into that in S, the symmetric one of README.md. */
thiele_status problem_unpack(oracle_case *c, const problem *p, int component, const double *bar, thi_matrix S_bar);
/* Predictions at Xtest: pred_mean, pred_var_latent, and where they are there pred_cov_latent and pred_var_noisy. */
thiele_status problem_check_predictions(oracle_case *c, const problem *p, double noise);
/* Mean and covariance of q(u) against two fields of `expected`. */
thiele_status problem_check_q(oracle_case *c, const problem *p, const char *mean, const char *covariance);

#endif
