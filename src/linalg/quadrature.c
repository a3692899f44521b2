/*
 * Gauss-Hermite rules for the standard normal weight (Golub and Welsch 1969 for the theory). With p_k the polynomials
 * that are orthonormal under N(0, 1), x p_k = sqrt(k+1) p_{k+1} + sqrt(k) p_{k-1}, the nodes are the roots of p_n and
 * the weights 1 / sum_{k<n} p_k(node)^2. All is done with h_k(x) = p_k(x) exp(-x^2/4), which stay below 1 in size where
 * p_k would overflow. Roots are isolated by counting sign changes in the sequence and polished by Newton: O(n^2) flops
 * in all, times about ten.
 */
#include <float.h>
#include <math.h>

#include "linalg/linalg.h"

enum { MOST_NODES = 512 };

typedef struct hermite {
    double value, slope; /* of h_n */
    double squares;      /* sum over k < n of h_k^2 */
    int above;           /* sign changes: the number of roots larger than x */
} hermite;

static hermite evaluate(int n, double x)
{
    hermite h = {0, 0, 0, 0};
    double before = 0, now = exp(-0.25 * x * x);
    for (int k = 0; k < n; k++) {
        double next = (x * now - sqrt(k) * before) / sqrt(k + 1.0);
        h.squares += now * now;
        h.above += (next < 0) != (now < 0);
        before = now;
        now = next;
    }
    h.value = now;
    h.slope = sqrt(n) * before - 0.5 * x * now;
    return h;
}

/* The root with `above` roots larger than it, in (low, high). */
static double find_root(int n, int above, double low, double high)
{
    double x = 0.5 * (low + high);
    for (int bisection = 0; bisection < 200; bisection++) {
        hermite h = evaluate(n, x);
        double step = h.value / h.slope, newton = x - step;
        if (h.above > above) {
            low = x;
        } else {
            high = x;
        }
        /* Close to this root and no other: the bracket holds the Newton step, and the steps shrink from here on. */
        bool good = (h.above == above || h.above == above + 1) && newton >= low && newton <= high;
        if (good && fabs(step) <= 4 * DBL_EPSILON * x) {
            return newton;
        }
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high) {
            return middle;
        }
        x = good ? newton : middle;
    }
    return x;
}

thiele_status thi_gauss_hermite(thiele_context *ctx, int n, double *node, double *weight)
{
    if (n < 1 || n > MOST_NODES) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a Gauss-Hermite rule has 1 to %d nodes, not %d", MOST_NODES, n);
    }
    double root = 0, sum = 0;
    for (int i = n / 2; i < n; i++) {
        bool centre = n % 2 == 1 && i == n / 2;
        root = centre ? 0 : find_root(n, n - 1 - i, root, sqrt(4.0 * n + 2));
        node[i] = root;
        node[n - 1 - i] = centre ? 0 : -root;
        weight[i] = exp(-0.5 * root * root) / evaluate(n, root).squares;
        sum += centre ? weight[i] : 2 * weight[i];
    }
    for (int i = n / 2; i < n; i++) {
        weight[i] /= sum;
        weight[n - 1 - i] = weight[i];
    }
    return THIELE_OK;
}
