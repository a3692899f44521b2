/*
 * Several outputs, each a weighted sum of the same node functions plus noise: y_p = sum_q w_pq f_q + e_p. In a Gaussian
 * process regression network (gprn; Wilson, Knowles and Ghahramani 2012; savigp-jmlr section 9.4) the weights are
 * latents too, row by row behind the nodes; in linear mixing they are parameters, behind the noises. Each output has a
 * noise of its own. Expectations are closed because the moments of the products are: with means m and variances u, v of
 * w and f,
 *   Var[w f] = u m_f^2 + m_w^2 v + u v.
 * Missing outputs are left out. O(outputs x nodes) a row.
 */
#include <math.h>
#include <string.h>

#include "likelihood/families.h"
#include "likelihood/special.h"

/* A covariance of so many nodes is kept on the stack. */
enum { MOST_MIXED = 64 };

/* Parameters: the noise of each output, then (mixing) the weights. */
static const double *weights_of(const thiele_likelihood *lik)
{
    return lik->value + lik->outputs;
}

/* One row: f and its variances v (nodes), the weights w and theirs u (outputs x nodes, row by row); NULL is 0. */
typedef struct network {
    int outputs, nodes;
    const double *f, *v, *w, *u;
} network;

static network row_of(const thiele_likelihood *lik, int64_t i, const double *f, const double *v)
{
    int Q = lik->nodes;
    network row = {lik->outputs, Q, f + i * lik->latents, v ? v + i * lik->latents : NULL, weights_of(lik), NULL};
    if (thi_is_network(lik)) {
        row.w = row.f + Q;
        row.u = v ? row.v + Q : NULL;
    }
    return row;
}

/* Mean and variance of output p without its noise. */
static double output_of(const network *row, int p, double *variance)
{
    double mean = 0;
    *variance = 0;
    for (int q = 0; q < row->nodes; q++) {
        int k = p * row->nodes + q;
        double f = row->f[q], v = row->v ? row->v[q] : 0, w = row->w[k], u = row->u ? row->u[k] : 0;
        mean += w * f;
        *variance += u * (f * f + v) + w * w * v;
    }
    return mean;
}

/* E[log p(y | f)], and its derivatives in the logs of the noises (NULL: not wanted). */
static double expected(const network *row, const double *noise, const double *y, double *dnoise)
{
    double sum = 0;
    for (int p = 0; p < row->outputs; p++) {
        if (isnan(y[p])) {
            continue;
        }
        double variance, rest = y[p] - output_of(row, p, &variance), square = (rest * rest + variance) / noise[p];
        sum -= 0.5 * (log(2 * M_PI * noise[p]) + square);
        if (dnoise) {
            dnoise[p] = 0.5 * square - 0.5;
        }
    }
    return sum;
}

/* Derivatives of E in the means (gf, gw) and variances (hf, hw) of nodes and weights, which come zeroed or NULL. */
static void pull_back(const network *row, const double *noise, const double *y, double *gf, double *hf, double *gw,
                      double *hw)
{
    for (int p = 0; p < row->outputs; p++) {
        if (isnan(y[p])) {
            continue;
        }
        double variance, rest = y[p] - output_of(row, p, &variance);
        for (int q = 0; q < row->nodes; q++) {
            int k = p * row->nodes + q;
            double f = row->f[q], v = row->v ? row->v[q] : 0, w = row->w[k], u = row->u ? row->u[k] : 0;
            if (gf) {
                gf[q] += (rest * w - u * f) / noise[p];
                hf[q] -= 0.5 * (w * w + u) / noise[p];
            }
            if (gw) {
                gw[k] = (rest * f - v * w) / noise[p];
            }
            if (hw) {
                hw[k] = -0.5 * (f * f + v) / noise[p];
            }
        }
    }
}

static void log_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        network row = row_of(lik, i, f, NULL);
        out[i] = expected(&row, lik->value, y + i * lik->outputs, NULL);
    }
}

static void latent_slopes(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                          double *g, double *h)
{
    size_t size = (size_t)(n * lik->latents) * sizeof *g;
    memset(g, 0, size);
    memset(h, 0, size);
    for (int64_t i = 0; i < n; i++, g += lik->latents, h += lik->latents) {
        network row = row_of(lik, i, mu, v);
        bool both = thi_is_network(lik);
        pull_back(&row, lik->value, y + i * lik->outputs, g, h, both ? g + lik->nodes : NULL,
                  both ? h + lik->nodes : NULL);
    }
}

/* dE/dv at v = 0 is half the second derivative of log p. */
static void derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                        double *d2)
{
    latent_slopes(lik, n, y, f, NULL, d1, d2);
    for (int64_t k = 0; k < n * lik->latents; k++) {
        d2[k] *= 2;
    }
}

static void phi_slopes(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                       double *dphi)
{
    memset(dphi, 0, (size_t)(n * lik->parameters) * sizeof *dphi);
    for (int64_t i = 0; i < n; i++, dphi += lik->parameters) {
        network row = row_of(lik, i, mu, v);
        expected(&row, lik->value, y + i * lik->outputs, dphi);
        if (!thi_is_network(lik)) {
            pull_back(&row, lik->value, y + i * lik->outputs, NULL, NULL, dphi + lik->outputs, NULL);
        }
    }
}

static void phi_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *dphi)
{
    phi_slopes(lik, n, y, f, NULL, dphi);
}

static void expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                        double *E, double *g, double *h, double *dphi)
{
    for (int64_t i = 0; i < n; i++) {
        network row = row_of(lik, i, mu, v);
        E[i] = expected(&row, lik->value, y + i * lik->outputs, NULL);
    }
    latent_slopes(lik, n, y, mu, v, g, h);
    if (dphi) {
        phi_slopes(lik, n, y, mu, v, dphi);
    }
}

static void predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                       double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        network row = row_of(lik, i, mu, v);
        for (int p = 0; p < lik->outputs; p++) {
            int64_t k = i * lik->outputs + p;
            mean[k] = output_of(&row, p, &variance[k]);
            variance[k] += lik->value[p];
        }
    }
}

/*
 * Each output of a network is a sum of products of independent normal variables and noise. With t for the argument, a
 * product has the characteristic function (1 + t^2 u v)^(-1/2) exp((i t w f - t^2 (w^2 v + u f^2)/2) / (1 + t^2 u v)).
 * Log modulus and phase of the whole at t:
 */
static double log_modulus(const network *row, int p, double noise, double t, double *phase)
{
    double modulus = -0.5 * noise * t * t;
    *phase = 0;
    for (int q = 0; q < row->nodes; q++) {
        int k = p * row->nodes + q;
        double f = row->f[q], v = row->v[q], w = row->w[k], u = row->u ? row->u[k] : 0;
        double over = 1 / (1 + t * t * u * v);
        modulus += 0.5 * log(over) - 0.5 * t * t * (w * w * v + u * f * f) * over;
        *phase += t * w * f * over;
    }
    return modulus;
}

/*
 * Gil-Pelaez by the trapezoidal rule (Davies 1973): with t_k = (k + 1/2) step,
 *   P(Y <= y) = 1/2 - sum_k Im[phi(t_k) exp(-i t_k y)] / (pi (k + 1/2)),
 * wrong by no more than the probability of |Y - y| > 2 pi/step: 80 standard deviations here, the tails being
 * exponential at worst. Absolute error some 1e-12, about 100 sd/sqrt(noise) terms.
 */
static double network_cdf(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v)
{
    enum { MOST = 30000 };
    network row = row_of(lik, 0, mu, v);
    double noise = lik->value[output], variance, mean = output_of(&row, output, &variance), sum = 0;
    double away = fabs(y - mean), sd = sqrt(variance + noise), step = 2 * M_PI / (80 * sd + away);
    if (away > 60 * sd) {
        return y > mean ? 1 : 0;
    }
    for (int k = 0; k < MOST; k++) {
        double phase, modulus = log_modulus(&row, output, noise, (k + 0.5) * step, &phase);
        if (modulus < -32) {
            break;
        }
        sum += exp(modulus) * sin(phase - (k + 0.5) * step * y) / (k + 0.5);
    }
    return fmin(fmax(0.5 - sum / M_PI, 0), 1);
}

static void conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    predictive(lik, n, f, NULL, mean, variance);
}

static void sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    network row = row_of(lik, 0, f, NULL);
    for (int p = 0; p < lik->outputs; p++) {
        double variance, mean = output_of(&row, p, &variance);
        uint64_t index = draw * (uint64_t)lik->outputs + (uint64_t)p;
        y[p] = mean + sqrt(lik->value[p]) * thi_random_normal(stream, index);
    }
}

/* To begin with, output p follows node p mod nodes; nodes beyond the outputs are shared out in the same way. */
static double first_weight(const thiele_likelihood *lik, int k)
{
    int p = k / lik->nodes, q = k % lik->nodes;
    return p % lik->nodes == q || q % lik->outputs == p ? 1 : 0;
}

/*
 * One output y = w'f + e joins those seen: returns its log density under f ~ N(m, C), C being Q x Q, and conditions m
 * and C on it.
 */
static double condition(int Q, const double *w, double y, double noise, double *m, double *C)
{
    double gain[MOST_MIXED], s = 0, rest = y;
    for (int q = 0; q < Q; q++) {
        gain[q] = 0;
        for (int r = 0; r < Q; r++) {
            gain[q] += C[q * Q + r] * w[r];
        }
        s += w[q] * gain[q];
        rest -= w[q] * m[q];
    }
    s = fmax(s, 0) + noise;
    for (int q = 0; q < Q; q++) {
        m[q] += gain[q] * rest / s;
        for (int r = 0; r < Q; r++) {
            C[q * Q + r] -= gain[q] * gain[r] / s;
        }
    }
    return -0.5 * (log(2 * M_PI * s) + rest * rest / s);
}

/*
 * The nodes by least squares from the outputs that are there, given weights: posterior means under a wide prior, of y
 * and then of what is left of it (iterated Tikhonov regularisation), so that what can be explained is.
 */
static void guess_nodes(const thiele_likelihood *lik, const double *w, const double *y, double *f)
{
    enum { ROUNDS = 6 };
    static const double WIDE = 100;
    int Q = lik->nodes;
    double C[MOST_MIXED * MOST_MIXED], m[MOST_MIXED];
    memset(f, 0, (size_t)Q * sizeof *f);
    for (int round = 0; round < ROUNDS; round++) {
        network row = {lik->outputs, Q, f, NULL, w, NULL};
        memset(m, 0, (size_t)Q * sizeof *m);
        for (int k = 0; k < Q * Q; k++) {
            C[k] = k % (Q + 1) == 0 ? WIDE : 0;
        }
        for (int p = 0; p < lik->outputs; p++) {
            double variance, rest = y[p] - output_of(&row, p, &variance);
            if (!isnan(rest)) {
                condition(Q, w + p * Q, rest, lik->value[p], m, C);
            }
        }
        for (int q = 0; q < Q; q++) {
            f[q] += m[q];
        }
    }
}

/* f comes with the means that it has before y; weights of a network begin there, unless those are all zero. */
static void guess(const thiele_likelihood *lik, const double *y, double *f)
{
    double *w = f + lik->nodes;
    bool known = false;
    for (int k = 0; thi_is_network(lik) && k < lik->outputs * lik->nodes; k++) {
        known = known || w[k] != 0;
    }
    for (int k = 0; thi_is_network(lik) && !known && k < lik->outputs * lik->nodes; k++) {
        w[k] = first_weight(lik, k);
    }
    if (lik->nodes <= MOST_MIXED) {
        guess_nodes(lik, thi_is_network(lik) ? w : weights_of(lik), y, f);
    }
}

/* Nodes and weights together. */
static bool even(const thiele_likelihood *lik, const double *y, double *f)
{
    (void)y;
    for (int k = 0; k < lik->latents; k++) {
        f[k] = 1;
    }
    return true;
}

const thi_likelihood_ops thi_lik_gprn = {
    .name = "gprn",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .several = true,
    .log_density = log_density,
    .derivatives = derivatives,
    .phi_derivatives = phi_derivatives,
    .expectation = expectation,
    .conditional = conditional,
    .predictive = predictive,
    .predictive_cdf = network_cdf,
    .sample = sample,
    .even = even,
    .guess = guess,
};

static thiele_status add_noises(thiele_likelihood *lik, thiele_context *ctx)
{
    thiele_status status = THIELE_OK;
    for (int p = 0; p < lik->outputs && status == THIELE_OK; p++) {
        char name[24];
        snprintf(name, sizeof name, "noise%d", p + 1);
        status = thi_likelihood_add_scaled(lik, ctx, name, 0.1, true, 2);
        if (status == THIELE_OK) {
            lik->phi[lik->parameters - 1].output = p + 1;
        }
    }
    return status;
}

thiele_status thi_make_gprn(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->nodes = lik->nodes == 0 ? lik->outputs : lik->nodes;
    lik->latents = lik->nodes * (1 + lik->outputs);
    return add_noises(lik, ctx);
}

/* log N(y; W mu, W diag(v) W' + diag(noise)) of the observed outputs, one at a time: O(outputs Q^2), nothing inverted.
 */
static double mixed_log_density(const thiele_likelihood *lik, const double *y, const double *mu, const double *v)
{
    int Q = lik->nodes;
    double C[MOST_MIXED * MOST_MIXED], m[MOST_MIXED], sum = 0;
    for (int q = 0; q < Q; q++) {
        m[q] = mu[q];
        for (int r = 0; r < Q; r++) {
            C[q * Q + r] = q == r ? v[q] : 0;
        }
    }
    for (int p = 0; p < lik->outputs; p++) {
        if (!isnan(y[p])) {
            sum += condition(Q, weights_of(lik) + p * Q, y[p], lik->value[p], m, C);
        }
    }
    return sum;
}

static void mixing_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                  const double *v, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = mixed_log_density(lik, y + i * lik->outputs, mu + i * lik->latents, v + i * lik->latents);
    }
}

static double mixing_cdf(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v)
{
    network row = row_of(lik, 0, mu, v);
    double variance, mean = output_of(&row, output, &variance);
    return thi_normal_cdf((y - mean) / sqrt(variance + lik->value[output]));
}

static double mixing_crps(const thiele_likelihood *lik, int output, double y, const double *mu, const double *v)
{
    network row = row_of(lik, 0, mu, v);
    double variance, mean = output_of(&row, output, &variance);
    return thi_normal_crps(y - mean, variance + lik->value[output]);
}

static void mixing_quantiles(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, int count,
                             const double *z, double *out)
{
    for (int64_t i = 0; i < n * lik->outputs; i++) {
        network row = row_of(lik, i / lik->outputs, mu, v);
        int p = (int)(i % lik->outputs);
        double variance, mean = output_of(&row, p, &variance);
        for (int j = 0; j < count; j++) {
            out[i * count + j] = mean + z[j] * sqrt(variance + lik->value[p]);
        }
    }
}

const thi_likelihood_ops thi_lik_mixing = {
    .name = "mixing",
    .support = THI_SUPPORT_REAL,
    .standardise = true,
    .several = true,
    .log_density = log_density,
    .derivatives = derivatives,
    .phi_derivatives = phi_derivatives,
    .expectation = expectation,
    .conditional = conditional,
    .predictive = predictive,
    .log_predictive = mixing_log_predictive,
    .predictive_cdf = mixing_cdf,
    .predictive_crps = mixing_crps,
    .quantiles = mixing_quantiles,
    .sample = sample,
    .guess = guess,
};

/* As many latents as outputs unless told, each output following its own to begin with. */
thiele_status thi_make_mixing(thiele_likelihood *lik, thiele_context *ctx)
{
    lik->nodes = lik->nodes == 0 ? lik->outputs : lik->nodes;
    if (lik->nodes > MOST_MIXED) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood 'mixing' takes 1 to %d latents, not %d; write latents=%d", MOST_MIXED, lik->nodes,
                        MOST_MIXED);
    }
    lik->latents = lik->nodes;
    thiele_status status;
    THI_TRY(add_noises(lik, ctx));
    for (int k = 0; k < lik->outputs * lik->nodes; k++) {
        char name[48];
        snprintf(name, sizeof name, "w_%d_%d", k / lik->nodes + 1, k % lik->nodes + 1);
        THI_TRY(thi_likelihood_add_scaled(lik, ctx, name, first_weight(lik, k), false, 1));
    }
out:
    return status;
}
