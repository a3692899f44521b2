/*
 * A cheaper draw of r given its sites, for priors few of whose directions the data tell much about. With an orthonormal
 * Q (n x m) in the whitened space, K = L L' and U = L Q,
 *   r = U a + d,   a ~ N(0, I),  d ~ N(0, K - U U'),
 * and the two take turns, both under the sites exp(nu r - lambda r^2/2):
 *   a given d: Gaussian of precision I + U'Lambda U, drawn beyond its mean by a little; n m^2 + m^3/3.
 *   d given a: proposed from the prior tilted by the linear part of the sites and by the squares of the heavy ones,
 *              accepted by the squares of the others (Metropolis and Hastings), which are small; 2 n^2 + 8 n m flops.
 * Q spans the leading directions of L'Lambda L at typical sites, so that little of d is accepted or refused and neither
 * holds the other. Whatever Q is, the posterior stays as it is. A dense draw takes n^3/3 flops (gibbs.c).
 */
#ifndef THI_GIBBS_SPLIT_H
#define THI_GIBBS_SPLIT_H

#include "fit/chain.h"

typedef struct thi_split {
    thi_matrix K, L; /* borrowed */
    int64_t rank;    /* m; 0: there is none, as a dense draw would be no dearer */
    thi_matrix Q, U; /* n x m */
    double *left;    /* n: the diagonal of K - U U' */
    double *a, *d;   /* m and n: where the chain stands */
    double *x, *z;   /* n each: work */
    double *trial;   /* n */
    int64_t *heavy;  /* n: rows */
    int64_t moved;   /* how often d did so far */
} thi_split;

/*
 * For latent q of a chain and typical lambda (n), from r where the chain stands. work: n x n, free again afterwards, as
 * in the draws. Some 4 n^3 flops. split comes zeroed; close it also after a failure.
 */
thiele_status thi_split_open(thi_split *split, thi_chain *chain, int q, const double *lambda, thi_matrix work);
void thi_split_close(thi_split *split);
/* One turn; nu: for r, not f. accepted: 1 or 0, whether d moved. */
thiele_status thi_split_draw(thi_split *split, thi_chain *chain, const double *lambda, const double *nu,
                             thi_matrix work, double *r, double *accepted);

#endif
