/*
 * The points of a design and their weights. l(mu + sd z) is fitted by least squares on products of Hermite polynomials
 *   1, z_q, (z_q^2 - 1)/sqrt 2, z_q z_r, ...
 * whose first 1 + 2Q coefficients are E, sd g and sqrt2 v h (the score identities). The further terms are what a
 * control variate is: they take their part of l out of the noise of the others, pairs of latents first, so that E, g
 * and h are exact for polynomials in their span: any quadratic, and any quartic when there are points enough. (SAVIGP,
 * appendix F, has the constant as control variate of one score at a time, which leaves in it the noise of all other
 * latents.)
 *
 * Points come as z and -z, which tells even terms from odd ones without error: two systems of half the size. With C
 * terms of n points C^2 n/2 flops, once; a row then takes (1 + 2Q) n/2 products.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"
#include "linalg/linalg.h"

/*
 * Terms in the order in which they are taken, as degrees in different latents: all kinds that fit. Kinds of
 * one latent come early because whatever else a likelihood is, it is mostly a sum over its latents; from there by
 * degree. Terms of higher degree are so large at a few outlying points that densities with bends would follow them
 * there: E of a Student-t density with v = 1.5 was off by 0.013 with degrees up to 8.
 */
enum { FACTORS = 4, DEGREES = 4 };
static const int8_t kinds[][FACTORS] = {
    {1}, {2}, {1, 1}, {3}, {4}, {2, 1}, {2, 2}, {1, 1, 1}, {3, 1}, {1, 1, 1, 1}, {2, 1, 1},
};
enum { KINDS = sizeof kinds / sizeof *kinds, SCORES = 2 };

/*
 * Of half the points of a design, so many may be spent on terms of one parity: the variance of what is left grows by
 * 1/(1 - share). Chosen with the errors of networks, softmax, and sums of Poisson and Laplace densities at v = 0.1 and
 * 1 in view.
 */
static const double SHARE = 0.6;
/* And of points for densities that the terms span, of which nothing is left. */
static const double EXACT_SHARE = 0.9;
/* Fewer points a coefficient are no regression; more points, or terms of a parity, take long to make. */
enum { LEAST_POINTS = 3, MOST_POINTS = 8192, MOST_TERMS = 320 };

static int degree_of(const int8_t *kind)
{
    int degree = 0;
    for (int k = 0; k < FACTORS; k++) {
        degree += kind[k];
    }
    return degree;
}

/* --- the matrix of terms: terms x pairs --------------------------------------------------------------------------- */

typedef struct filling {
    int Q;
    const bool *coupled; /* Q x Q; NULL: all are */
    double share;
    int64_t pairs;
    const double *he; /* DEGREES x Q x pairs: normalised Hermite polynomials from degree 1 */
    const int8_t *kind;
    thi_matrix to; /* none: terms are counted */
    int64_t term, most;
    int latent[FACTORS];
    bool taken[KINDS];
} filling;

/* He_{d+1} = z He_d - d He_{d-1}, over sqrt d! */
static void hermite(int64_t count, const double *z, double *he)
{
    for (int64_t i = 0; i < count; i++) {
        double before = 1, now = z[i], factorial = 1;
        for (int d = 1; d <= DEGREES; d++) {
            factorial *= d;
            he[i * DEGREES + d - 1] = now / sqrt(factorial);
            double next = z[i] * now - d * before;
            before = now;
            now = next;
        }
    }
}

static void fill_term(filling *f)
{
    for (int64_t k = 0; k < f->pairs && f->to.data != NULL; k++) {
        double product = 1;
        for (int i = 0; i < FACTORS && f->kind[i] > 0; i++) {
            product *= f->he[(k * f->Q + f->latent[i]) * DEGREES + f->kind[i] - 1];
        }
        f->to.data[f->term + k * f->to.ld] = product;
    }
    f->term++;
}

/* Whether latent q may be factor i: it is none of those before, and coupled with all of them. */
static bool may_follow(const filling *f, int i, int q)
{
    for (int k = 0; k < i; k++) {
        if (f->latent[k] == q || (f->coupled != NULL && !f->coupled[f->latent[k] * f->Q + q])) {
            return false;
        }
    }
    return true;
}

/* All choices of latents from factor i on, those of equal degree ascending, as far as there is room. */
static void fill_from(filling *f, int i)
{
    if (i == FACTORS || f->kind[i] == 0) {
        fill_term(f);
        return;
    }
    for (int q = i > 0 && f->kind[i] == f->kind[i - 1] ? f->latent[i - 1] + 1 : 0; q < f->Q && f->term <= f->most;
         q++) {
        if (may_follow(f, i, q)) {
            f->latent[i] = q;
            fill_from(f, i + 1);
        }
    }
}

/* Takes the kinds that fit; terms: the number of even (with the constant) and odd terms in them. */
static void choose_kinds(filling *f, int64_t terms[2])
{
    int64_t room = (int64_t)fmin(f->share * (double)f->pairs, MOST_TERMS);
    terms[0] = 1;
    terms[1] = 0;
    for (int i = 0; i < KINDS; i++) {
        int64_t *of = &terms[degree_of(kinds[i]) % 2];
        f->kind = kinds[i];
        f->term = 0;
        f->most = i < SCORES ? f->Q : room - *of;
        fill_from(f, 0);
        f->taken[i] = f->term <= f->most;
        *of += f->taken[i] ? f->term : 0;
    }
}

static void fill_terms(filling *f, int64_t terms, int parity)
{
    f->term = 0;
    f->most = terms;
    if (parity == 0) {
        for (int64_t k = 0; k < f->pairs; k++) {
            f->to.data[k * f->to.ld] = 1;
        }
        f->term = 1;
    }
    for (int i = 0; i < KINDS; i++) {
        if (f->taken[i] && degree_of(kinds[i]) % 2 == parity) {
            f->kind = kinds[i];
            fill_from(f, 0);
        }
    }
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

/*
 * The first `wanted` rows of W = (B B')^-1 B, turned: out is pairs x wanted. rest: what B's rows do not span of a
 * random vector r, r - W'B r, with length 1. B: terms x pairs is overwritten.
 */
static thiele_status solve(thiele_context *ctx, thi_matrix B, int64_t wanted, thi_stream stream, double *out,
                           double *rest)
{
    thi_matrix G = {0};
    double jitter, length = 0.0, *along = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &along, (size_t)B.rows, sizeof *along));
    for (int64_t k = 0; k < B.cols; k++) {
        rest[k] = thi_random_normal(stream, (uint64_t)k);
        thi_blas_axpy(B.rows, rest[k], B.data + k * B.ld, along);
    }
    THI_TRY(thi_matrix_alloc(&G, ctx, B.rows, B.rows));
    THI_TRY(thi_multiply(ctx, THI_N, THI_T, 1, B, B, 0, G, true));
    THI_TRY(thi_chol_jitter(ctx, G, &jitter));
    THI_TRY(thi_tri_solve(ctx, THI_N, G, B));
    THI_TRY(thi_tri_solve(ctx, THI_T, G, B));
    for (int64_t k = 0; k < B.cols; k++) {
        for (int64_t j = 0; j < wanted; j++) {
            out[j * B.cols + k] = B.data[j + k * B.ld];
        }
        rest[k] -= thi_blas_dot(B.rows, B.data + k * B.ld, along);
        length += rest[k] * rest[k];
    }
    for (int64_t k = 0; k < B.cols; k++) {
        rest[k] /= sqrt(length);
    }
out:
    thi_free(G.data);
    thi_free(along);
    return status;
}

static thiele_status weigh_parity(thi_design *d, thiele_context *ctx, filling *f, int parity, int64_t terms)
{
    /* Beyond all rows and designs, which count towards each other (place_points). */
    thi_stream stream = {1, THI_RANDOM_EXPECT, (UINT64_C(1) << 62) + (uint64_t)parity};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&f->to, ctx, terms, d->pairs));
    fill_terms(f, terms, parity);
    THI_TRY(solve(ctx, f->to, parity == 0 ? 1 + f->Q : f->Q, stream, parity == 0 ? d->even : d->odd,
                  d->rest + parity * d->pairs));
out:
    thi_free(f->to.data);
    f->to = (thi_matrix){0};
    return status;
}

static thiele_status weigh(thi_design *d, thiele_context *ctx, const thi_design_plan *plan)
{
    int64_t terms[2];
    double *he = NULL;
    filling f = {.Q = plan->Q, .coupled = plan->coupled, .share = plan->exact ? EXACT_SHARE : SHARE, .pairs = d->pairs};
    thiele_status status;
    choose_kinds(&f, terms);
    THI_TRY(thi_alloc(ctx, &he, (size_t)(d->pairs * plan->Q * DEGREES), sizeof *he));
    hermite(d->pairs * plan->Q, d->z, he);
    f.he = he;
    for (int parity = 0; parity < 2; parity++) {
        THI_TRY(weigh_parity(d, ctx, &f, parity, terms[parity]));
    }
    for (int64_t k = 0; k < d->pairs; k++) {
        d->half[k] = 0.5 * d->even[k];
    }
out:
    thi_free(he);
    return status;
}

/* --- points ------------------------------------------------------------------------------------------------------- */

/* Numbers of streams: rows count up from 0, designs' dimensions count down from the other end. */
static thiele_status place_points(thi_design *d, thiele_context *ctx, const thi_design_plan *plan)
{
    int64_t numbers = d->pairs * plan->Q;
    if (plan->quasi) {
        thi_rule sobol = {0};
        thiele_status status = thi_rule_sobol(&sobol, ctx, plan->seed, plan->number, d->pairs, plan->Q);
        if (status == THIELE_OK) {
            memcpy(d->z, sobol.z, (size_t)numbers * sizeof *d->z);
        }
        thi_rule_clear(&sobol);
        return status;
    }
    thi_stream stream = {plan->seed, THI_RANDOM_EXPECT, UINT64_MAX - (uint64_t)plan->number};
    for (int64_t i = 0; i < numbers; i++) {
        d->z[i] = thi_random_normal(stream, (uint64_t)i);
    }
    return THIELE_OK;
}

void thi_design_clear(thi_design *d)
{
    thi_free(d->z);
    thi_free(d->even);
    thi_free(d->odd);
    thi_free(d->half);
    thi_free(d->rest);
    *d = (thi_design){0};
}

thiele_status thi_design_make(thi_design *d, thiele_context *ctx, const thi_design_plan *plan)
{
    thiele_status status;
    int64_t pairs = plan->points / 2, Q = plan->Q;
    thi_design_clear(d);
    THI_TRY(thi_alloc(ctx, &d->z, (size_t)(pairs * Q), sizeof *d->z));
    THI_TRY(thi_alloc(ctx, &d->even, (size_t)(pairs * (1 + Q)), sizeof *d->even));
    THI_TRY(thi_alloc(ctx, &d->odd, (size_t)(pairs * Q), sizeof *d->odd));
    THI_TRY(thi_alloc(ctx, &d->half, (size_t)pairs, sizeof *d->half));
    THI_TRY(thi_alloc(ctx, &d->rest, 2 * (size_t)pairs, sizeof *d->rest));
    d->pairs = pairs;
    THI_TRY(place_points(d, ctx, plan));
    THI_TRY(weigh(d, ctx, plan));
out:
    if (status != THIELE_OK) {
        thi_design_clear(d);
    }
    return status;
}

bool thi_designs_whole(int64_t count, int Q)
{
    int64_t terms[2];
    filling f = {.Q = Q, .share = SHARE, .pairs = count / 2};
    choose_kinds(&f, terms);
    for (int i = 0; i < KINDS; i++) {
        if (!f.taken[i]) {
            return false;
        }
    }
    return true;
}

bool thi_designs_fit(int64_t count, int Q)
{
    return count >= LEAST_POINTS * (1 + 2 * (int64_t)Q) && count <= MOST_POINTS;
}
