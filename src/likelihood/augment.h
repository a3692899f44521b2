/*
 * Likelihoods that auxiliary variables make Gaussian in f (math.md section 4; augmented-aaci). Two things follow from
 * an augmentation, and nothing else of it is seen outside: a closed lower bound of E[log p], which the site engines
 * climb by whole steps (coordinate ascent), and for the Gibbs sampler a draw of the row's Gaussian site given f.
 *
 * Super-Gaussian ones are given by a form,
 *   log p(y | f) = log C + g f + log phi(r),  r = alpha - beta f + gamma f^2,  phi completely monotone, phi(0) = 1,
 * from which both are made here. phi may depend on y (the number of trials of a binomial).
 */
#ifndef THI_AUGMENT_H
#define THI_AUGMENT_H

#include <complex.h>

#include "likelihood/formulas/augmented.h"
#include "likelihood/likelihood.h"

/* The most parameters of an augmented likelihood. */
enum { THI_AUGMENTED_PARAMETERS = 64 };

typedef struct thi_form {
    void (*coefficients)(const thiele_likelihood *lik, double y, thi_coefficients *out);
    void (*omega)(const thiele_likelihood *lik, double y, double r, thi_omega *out);
    /* log phi on complex arguments with a positive real part: what the numerical inversion takes. */
    double complex (*log_phi)(const thiele_likelihood *lik, double y, double complex r);
    /* Optional: an exact draw of omega ~ pi(omega | r). Default: by inversion of the Laplace transform (inversion.h).
     */
    double (*draw)(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw);
    /* Optional: the same for n rows, from the streams of the rows stream.row on. Default: one by one. */
    void (*draws)(const thiele_likelihood *lik, int64_t n, const double *y, const double *r, thi_stream stream,
                  uint64_t draw, double *omega);
    /* Optional: derivatives of log C + g mu + log phi(E[r]) in the parameters; dphi comes zeroed. Default: differences.
     */
    void (*phi_derivatives)(const thiele_likelihood *lik, double y, double mu, double v, double *dphi);
} thi_form;

/* What a likelihood points to (ops->augmentation). Either a form, or both functions. */
struct thi_augmentation {
    const thi_form *form;
    /* As ops->expectation, for the bound at the optimum of q(auxiliary variables). A missing y gives zeros. */
    void (*expectation)(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                        double *E, double *g, double *h, double *dphi);
    /* Draws the auxiliary variables of one row given f (Q); its site exp(nu f - lambda f^2/2): Q numbers each. */
    void (*site)(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *y, const double *f,
                 double *lambda, double *nu);
};

/* E of one row, at the parameters of the likelihood. */
typedef double (*thi_row_bound)(const thiele_likelihood *lik, const void *row);
/* Its central differences in log phi, or phi, through a copy; truncation and rounding are near 1e-10 each. */
void thi_bound_slopes(const thiele_likelihood *lik, thi_row_bound bound, const void *row, double *dphi);

/* Whether there is one. */
bool thi_is_augmented(const thiele_likelihood *lik);
void thi_augmented_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                               const double *v, double *E, double *g, double *h, double *dphi);
/* Of n rows, P x n and Q x n, from the streams of the rows stream.row on; a row without an observation gets zeros. */
void thi_augmented_sites(const thiele_likelihood *lik, int64_t n, thi_stream stream, uint64_t draw, const double *y,
                         const double *f, double *lambda, double *nu);
/* For a form: log phi, mean and variance of omega at r (by differences where the form leaves it), and its distribution
 * function F(x | r) (by inversion). */
void thi_augmented_omega(const thiele_likelihood *lik, double y, double r, thi_omega *out);
double thi_augmented_cdf(const thiele_likelihood *lik, double y, double r, double x);
/* A draw of omega ~ pi(omega | r): the form's own, or by inversion. It reads THI_OMEGA indices (omega_draws.h). */
double thi_augmented_omega_draw(const thiele_likelihood *lik, double y, double r, thi_stream stream, uint64_t draw);

#endif
