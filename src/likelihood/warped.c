/*
 * The warped Gaussian of Snelson, Rasmussen and Ghahramani (2004): t(y) = y + sum_i a_i tanh(b_i (y + c_i)), a and b
 * positive, is increasing, and t(y) given f is N(f, noise). All is closed but the moments of y itself, for which the
 * Gaussian of t is integrated piece by piece over y: no inverse of t is needed but at the ends of the pieces. Some
 * 300 tanh a row and term for the moments, one otherwise.
 */
#include <float.h>
#include <math.h>

#include "likelihood/families.h"
#include "likelihood/formulas/warped.h"
#include "likelihood/rows.h"
#include "likelihood/special.h"

enum { MOST_TERMS = 16, NODES = 8, HALF_RANGE = 9, BEND_EDGES = 8 };
enum { MOST_EDGES = 2 * HALF_RANGE + 1 + MOST_TERMS * BEND_EDGES };

/* y with t(y) = t: Newton inside the bracket t -+ sum a, bisection where a step leaves it or fails to halve the last.
 */
static double unwarp(const thiele_likelihood *lik, double t)
{
    double reach = 0, slope;
    for (int i = 0; i < lik->nodes; i++) {
        reach += thi_warped_a(thi_values_of(lik))[i];
    }
    double low = t - reach, high = t + reach, y = t, last = 4 * reach;
    for (int step = 0; step < 200; step++) {
        double excess = thi_warp(thi_values_of(lik), y, &slope) - t, next = y - excess / slope;
        if (excess > 0) {
            high = y;
        } else {
            low = y;
        }
        bool good = next >= low && next <= high && fabs(next - y) <= 0.5 * last;
        next = good ? next : 0.5 * (low + high);
        last = fabs(next - y);
        y = next;
        if (last <= 2 * DBL_EPSILON * (fabs(y) + reach)) {
            break;
        }
    }
    return y;
}

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    thi_rows_density(lik, n, y, f, out, thi_warped_constant, thi_warped_density);
}

static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    thi_rows_derivatives(lik, n, y, f, d1, d2, thi_warped_derivatives);
}

static void expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                        double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, thi_warped_expectation);
}

static void phi_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    thi_rows_phi(lik, n, y, f, dphi, thi_warped_phi);
}

/* --- moments of y --- */

/* Adds an edge to an increasing list, keeping its order; those outside its ends are left out. */
static int insert_edge(double *edge, int count, double at)
{
    if (!(at > edge[0] && at < edge[count - 1])) {
        return count;
    }
    int k = count;
    for (; edge[k - 1] > at; k--) {
        edge[k] = edge[k - 1];
    }
    edge[k] = at;
    return count + 1;
}

/* Pieces of y: a standard deviation of t each, out to nine, and cut again around each bend of t. */
static int make_edges(const thiele_likelihood *lik, double mu, double sd, double *edge)
{
    static const double around[BEND_EDGES] = {-10, -4.5, -2, -0.7, 0.7, 2, 4.5, 10};
    const double *b = thi_warped_b(thi_values_of(lik)), *c = thi_warped_c(thi_values_of(lik));
    int count = 0;
    for (int k = -HALF_RANGE; k <= HALF_RANGE; k++) {
        edge[count++] = unwarp(lik, mu + k * sd);
    }
    for (int i = 0; i < lik->nodes * BEND_EDGES; i++) {
        int term = i / BEND_EDGES;
        count = insert_edge(edge, count, around[i % BEND_EDGES] / b[term] - c[term]);
    }
    return count;
}

/* Gauss-Legendre, the positive half of the eight nodes on (-1, 1). */
static const double legendre_node[NODES / 2] = {0.18343464249564980494, 0.52553240991632898582, 0.79666647741362673959,
                                                0.96028985649753623168};
static const double legendre_weight[NODES / 2] = {0.36268378337836198297, 0.31370664587788728734,
                                                  0.22238103445337447054, 0.10122853629037625915};

/* Mass, mean and second moment about `centre` of t ~ N(mu, sd^2) seen in y, over one piece. */
static void add_piece(const thiele_likelihood *lik, double mu, double sd, double low, double high, double centre,
                      double *sum)
{
    double middle = 0.5 * (low + high), half = 0.5 * (high - low);
    for (int k = 0; k < NODES; k++) {
        double y = middle + (k % 2 ? half : -half) * legendre_node[k / 2], slope;
        double z = (thi_warp(thi_values_of(lik), y, &slope) - mu) / sd;
        double weight = half * legendre_weight[k / 2] * thi_normal_density(z) * slope / sd;
        sum[0] += weight;
        sum[1] += weight * (y - centre);
        sum[2] += weight * (y - centre) * (y - centre);
    }
}

static void moments(const thiele_likelihood *lik, double mu, double sd, double *mean, double *variance)
{
    double edge[MOST_EDGES], sum[3] = {0, 0, 0}, slope, centre = unwarp(lik, mu);
    int edges = make_edges(lik, mu, sd, edge);
    for (int k = 1; k < edges; k++) {
        add_piece(lik, mu, sd, edge[k - 1], edge[k], centre, sum);
    }
    if (!(sum[0] > 0.99)) { /* sd is within the rounding of mu, or there is no number there at all */
        thi_warp(thi_values_of(lik), centre, &slope);
        *mean = centre;
        *variance = sd / slope * (sd / slope);
        return;
    }
    double off = sum[1] / sum[0];
    *mean = centre + off;
    *variance = fmax(0, sum[2] / sum[0] - off * off);
}

static void predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                       double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        moments(lik, mu[i], sqrt(lik->value[THI_WARPED_NOISE] + (v ? v[i] : 0)), &mean[i], &variance[i]);
    }
}

static void conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    predictive(lik, n, f, NULL, mean, variance);
}

static void log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                           double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double slope, rest = thi_warp(thi_values_of(lik), y[i], &slope) - mu[i],
                      total = lik->value[THI_WARPED_NOISE] + v[i];
        out[i] = isnan(y[i]) ? 0 : log(slope) - 0.5 * log(2 * M_PI * total) - 0.5 * rest * rest / total;
    }
}

static double predictive_cdf(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v)
{
    double slope;
    (void)output;
    return thi_normal_cdf((thi_warp(thi_values_of(lik), y, &slope) - mu[0]) /
                          sqrt(lik->value[THI_WARPED_NOISE] + v[0]));
}

static void quantiles(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, int count,
                      const double *z, double *out)
{
    for (int64_t i = 0; i < n * count; i++) {
        out[i] = unwarp(lik, mu[i / count] + z[i % count] * sqrt(lik->value[THI_WARPED_NOISE] + v[i / count]));
    }
}

static double cdf(const thiele_likelihood *lik, double y, const double *f)
{
    double slope;
    return thi_normal_cdf((thi_warp(thi_values_of(lik), y, &slope) - f[0]) / sqrt(lik->value[THI_WARPED_NOISE]));
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    y[0] = unwarp(lik, f[0] + sqrt(lik->value[THI_WARPED_NOISE]) * thi_random_normal(stream, draw));
}

static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    double slope;
    f[0] = isnan(y[0]) ? 0 : thi_warp(thi_values_of(lik), y[0], &slope);
}

const thi_likelihood_ops thi_lik_warped = {
    .name = "warped",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .log_density = log_density,
    .derivatives = derivatives,
    .phi_derivatives = phi_derivatives,
    .expectation = expectation,
    .conditional = conditional,
    .predictive = predictive,
    .log_predictive = log_predictive,
    .predictive_cdf = predictive_cdf,
    .quantiles = quantiles,
    .cdf = cdf,
    .sample = sample,
    .guess = guess,
};

/*
 * noise, then a1 .., b1 .., c1 ..: weak bends at places spread over the standardised y, no two the same. In the units
 * of the data, t_data(y) = center + scale t((y - center)/scale) has a scale, b/scale and c scale - center.
 */
thiele_status thi_make_warped(thiele_likelihood *lik, thiele_context *ctx)
{
    static const int power[] = {1, -1, 1};
    lik->outputs = lik->latents = 1;
    lik->nodes = lik->nodes == 0 ? 2 : lik->nodes;
    if (lik->nodes > MOST_TERMS) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "likelihood 'warped' takes 1 to %d terms, not %d", MOST_TERMS,
                        lik->nodes);
    }
    thiele_status status;
    THI_TRY(thi_likelihood_add_scaled(lik, ctx, "noise", 0.1, true, 2));
    for (int k = 0; k < 3 * lik->nodes; k++) {
        int group = k / lik->nodes, term = k % lik->nodes;
        double place = 2 * (term + 0.5) / lik->nodes - 1;
        char name[32];
        snprintf(name, sizeof name, "%c%d", "abc"[group], term + 1);
        double value = group == 0 ? 0.1 : group == 1 ? 1 : place;
        THI_TRY(thi_likelihood_add_scaled(lik, ctx, name, value, group < 2, power[group]));
        lik->phi[lik->parameters - 1].shifted = group == 2;
    }
out:
    return status;
}
