/* Convergence diagnostics of Markov chains; the formulas are in diagnostics.h. */
#include "fit/diagnostics.h"

#include <math.h>
#include <stdlib.h>

#include "linalg/linalg.h"

double thi_centre(int64_t n, double *x)
{
    double sum = 0.0, rest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        rest += x[i] - mean;
    }
    mean += rest / (double)n;
    for (int64_t i = 0; i < n; i++) {
        x[i] -= mean;
    }
    return mean;
}

double thi_autocorrelation(int64_t n, const double *d, int64_t lag)
{
    double all = thi_blas_dot(n, d, d);
    return lag >= n ? 0.0 : all > 0.0 ? thi_blas_dot(n - lag, d, d + lag) / all : 1.0;
}

/* --- agreement -----------------------------------------------------------------------------------------------------
 */

/* Means and variances of the chains, and of these over the chains. */
typedef struct moments {
    double mean, variance;      /* of the chains' means */
    double within, spread;      /* mean and variance of their variances */
    double cross, cross_square; /* covariance of variance with mean, and with its square */
} moments;

/* Chain j has this mean and variance: sums first, then sums about the averages. */
static void gather(int m, const double *mean, const double *variance, moments *out)
{
    double squares = 0.0, f = 1.0 / (m - 1);
    *out = (moments){0};
    for (int j = 0; j < m; j++) {
        out->mean += mean[j] / m;
        out->within += variance[j] / m;
        squares += mean[j] * mean[j] / m;
    }
    for (int j = 0; j < m; j++) {
        double a = mean[j] - out->mean, b = variance[j] - out->within;
        out->variance += f * a * a;
        out->spread += f * b * b;
        out->cross += f * b * a;
        out->cross_square += f * b * (mean[j] * mean[j] - squares);
    }
}

/* var(V) of Gelman and Rubin (1992), whose terms are those of W, of B and of both. */
static double variance_of_spread(int m, double n, double between, const moments *s)
{
    double own = (n - 1.0) / n, other = (m + 1.0) / (m * n);
    double both = s->cross_square - 2.0 * s->mean * s->cross;
    return own * own * s->spread / m + other * other * 2.0 * between * between / (m - 1.0) +
           2.0 * own * other * n / m * both;
}

static void compare(int m, double n, const moments *s, thi_diagnosis *out)
{
    out->within = s->within;
    out->between = n * s->variance;
    out->pooled = (n - 1.0) / n * out->within + out->between / n;
    out->spread = out->pooled + out->between / (m * n);
    out->df = 2.0 * out->spread * out->spread / variance_of_spread(m, n, out->between, s);
    bool still = !(out->within > 0.0), same = still && !(out->between > 0.0);
    out->rhat = still ? (same ? 1.0 : INFINITY) : sqrt(out->spread / out->within);
    out->rhat_plain = still ? out->rhat : sqrt(out->pooled / out->within);
    out->rhat_corrected = still ? out->rhat : out->rhat * sqrt((out->df + 3.0) / (out->df + 1.0));
}

/* R-hat of the two halves of a centred chain; B is not known, and var+ is W. */
static void compare_halves(int64_t n, const double *d, thi_diagnosis *out)
{
    int64_t half = n / 2;
    double mean[2] = {0.0, 0.0}, variance[2] = {0.0, 0.0};
    for (int k = 0; k < 2; k++) {
        const double *x = d + k * (n - half);
        for (int64_t i = 0; i < half; i++) {
            mean[k] += x[i] / (double)half;
        }
        for (int64_t i = 0; i < half; i++) {
            variance[k] += (x[i] - mean[k]) * (x[i] - mean[k]) / (double)(half - 1);
        }
    }
    moments s;
    gather(2, mean, variance, &s);
    compare(2, (double)half, &s, out);
    out->between = 0.0;
    out->within = out->pooled = out->spread = thi_blas_dot(n, d, d) / (double)(n - 1);
    out->rhat_corrected = out->rhat;
    out->df = NAN;
}

/* --- effective draws -----------------------------------------------------------------------------------------------
 */

/* A sum of rho over leading positive pairs, while they last. */
typedef struct geyer {
    double sum;
    bool ended;
} geyer;

static void add_pair(geyer *g, double pair)
{
    g->ended = g->ended || !(pair > 0.0);
    g->sum += g->ended ? 0.0 : pair;
}

/*
 * draws/tau. Chains whose draws alternate can bring tau to zero and below, where it says nothing: no chain is taken to
 * be worth more than log10(n) times its draws.
 */
static double effective(const geyer *g, int64_t n, double draws)
{
    return draws / fmax(2.0 * g->sum - 1.0, 1.0 / log10(fmax((double)n, 10.0)));
}

/* Deviations d (n x m) with sums of squares `square`; each chain's effective draws and those of all. */
static double effective_draws(int m, int64_t n, const double *d, const double *square, const thi_diagnosis *about,
                              double *ess)
{
    geyer own[THI_CHAINS_MAX] = {{0}}, together = {0};
    double all = 0.0;
    int open = m;
    for (int j = 0; j < m; j++) {
        own[j].ended = !(square[j] > 0.0);
        open -= own[j].ended;
        all += square[j];
    }
    together.ended = !(all > 0.0);
    for (int64_t t = 0; t + 1 < n && (open > 0 || !together.ended); t += 2) {
        double pair = 0.0;
        for (int j = 0; j < m; j++) {
            const double *x = d + j * n;
            if (together.ended && own[j].ended) {
                continue;
            }
            double c = thi_blas_dot(n - t, x, x + t) + thi_blas_dot(n - t - 1, x, x + t + 1);
            bool before = own[j].ended;
            add_pair(&own[j], c / square[j]);
            open -= own[j].ended && !before;
            pair += c;
        }
        add_pair(&together, 2.0 - about->within * (2.0 - pair / all) / about->pooled);
    }
    for (int j = 0; j < m; j++) {
        ess[j] = square[j] > 0.0 ? effective(&own[j], n, (double)n) : 1.0;
    }
    return all > 0.0 ? effective(&together, n, (double)n * m) : 1.0;
}

void thi_diagnose(int m, int64_t n, double *x, thi_diagnosis *out, double *ess_per_chain)
{
    double mean[THI_CHAINS_MAX], square[THI_CHAINS_MAX] = {0.0}, variance[THI_CHAINS_MAX], ess[THI_CHAINS_MAX];
    *out = (thi_diagnosis){0};
    for (int j = 0; j < m; j++) {
        double *d = x + j * n;
        mean[j] = thi_centre(n, d);
        square[j] = thi_blas_dot(n, d, d);
        variance[j] = square[j] / (double)(n - 1);
        out->lag1 += thi_autocorrelation(n, d, 1) / m;
    }
    if (m > 1) {
        moments s;
        gather(m, mean, variance, &s);
        compare(m, (double)n, &s, out);
    } else {
        compare_halves(n, x, out);
    }
    out->ess_multichain = effective_draws(m, n, x, square, out, ess);
    for (int j = 0; j < m; j++) {
        out->ess += ess[j];
        if (ess_per_chain != NULL) {
            ess_per_chain[j] = ess[j];
        }
    }
}

/* --- many numbers --------------------------------------------------------------------------------------------------
 */

static int by_ess(const void *a, const void *b)
{
    double x = ((const thi_diagnosis *)a)->ess_multichain, y = ((const thi_diagnosis *)b)->ess_multichain;
    return (x > y) - (x < y);
}

void thi_mixing_of(int64_t count, thi_diagnosis *diagnosis, thi_mixing *out)
{
    int64_t apart = 0;
    *out = (thi_mixing){0};
    for (int64_t i = 0; i < count; i++) {
        const thi_diagnosis *d = &diagnosis[i];
        out->rhat = d->rhat > out->rhat || isnan(d->rhat) ? d->rhat : out->rhat;
        apart += !(d->rhat <= THI_RHAT_MIXED);
        out->lag1 += d->lag1 / (double)count;
    }
    out->share = (double)apart / (double)count;
    qsort(diagnosis, (size_t)count, sizeof *diagnosis, by_ess);
    out->ess_least = diagnosis[0].ess_multichain;
    out->ess_median = 0.5 * (diagnosis[(count - 1) / 2].ess_multichain + diagnosis[count / 2].ess_multichain);
}
