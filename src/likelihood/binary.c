/*
 * Likelihoods of a y that is -1 or +1: logistic, probit, and the Bayesian support vector machine, whose
 * exp(-2 max(0, 1 - y f)) is a pseudo-likelihood (its sum over y depends on f); where a distribution of y is needed it
 * is divided by that sum. Probit has an exact predictive density, the SVM exact expectations too, by integrals of the
 * normal over either side of the kink.
 */
#include <math.h>

#include "likelihood/families.h"
#include "likelihood/formulas/binary.h"
#include "likelihood/rows.h"
#include "linalg/vector.h"

enum { CHUNK = 256 };

/* --- what all three share --------------------------------------------------------------------------------------------
 */

/* log P(+1) - log P(-1) is `odds`: the mean of y is tanh(odds/2), its variance 4 P(+1) P(-1). */
static void sign_moments(double odds, double *mean, double *variance)
{
    *mean = tanh(0.5 * odds);
    *variance = 4.0 * thi_sigmoid(odds) * thi_sigmoid(-odds);
}

typedef double (*odds_fn)(double f);

static inline void odds_conditional(int64_t n, const double *f, double *mean, double *variance, odds_fn odds)
{
    for (int64_t i = 0; i < n; i++) {
        sign_moments(odds(f[i]), &mean[i], &variance[i]);
    }
}

static inline void odds_probabilities(int64_t n, const double *f, double *prob, odds_fn odds)
{
    for (int64_t i = 0; i < n; i++) {
        prob[2 * i] = thi_sigmoid(-odds(f[i]));
        prob[2 * i + 1] = thi_sigmoid(odds(f[i]));
    }
}

static double sign_cdf(double y, double minus)
{
    return y < -1.0 ? 0.0 : y < 1.0 ? minus : 1.0;
}

static double sign_sample(thi_stream stream, uint64_t draw, double plus)
{
    return thi_random_uniform(stream, draw) < plus ? 1.0 : -1.0;
}

/* Where log p bends, about f = 0 over a unit: its singularities are i pi away (logistic), or nearly 3 (probit). */
static int sign_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    (void)lik;
    (void)y;
    bend[0] = (thi_bend){0.0, 1.0};
    return 1;
}

static void sign_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    (void)lik;
    f[0] = isnan(y[0]) ? 0.0 : y[0];
}

thiele_status thi_make_bernoulli(thiele_likelihood *lik, thiele_context *ctx)
{
    (void)ctx;
    lik->outputs = lik->latents = 1;
    return THIELE_OK;
}

/* out = fn(y f); a missing y is as if it were certain. */
static void by_margins(int64_t n, const double *y, const double *f, void (*fn)(int64_t n, const double *x, double *y),
                       double *out)
{
    double buffer[CHUNK];
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        for (int64_t i = 0; i < count; i++) {
            buffer[i] = thi_margin(y[first + i], f[first + i]);
        }
        fn(count, buffer, out + first);
    }
}

/* --- logistic --------------------------------------------------------------------------------------------------------
 */

static void logit_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    (void)lik;
    by_margins(n, y, f, thi_vector()->log_sigmoid, out);
}

/* d1 = y sigmoid(-y f), d2 = -sigmoid(y f) sigmoid(-y f) */
static void logit_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                              double *d2)
{
    (void)lik;
    double buffer[CHUNK];
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        for (int64_t i = 0; i < count; i++) {
            buffer[i] = -thi_margin(y[first + i], f[first + i]);
        }
        thi_vector()->sigmoid(count, buffer, buffer, d2 + first);
        for (int64_t i = 0; i < count; i++) {
            double sign = y[first + i];
            d1[first + i] = sign == sign ? sign * buffer[i] : 0.0;
            d2[first + i] = -d2[first + i];
        }
    }
}

static double logit_odds(double f)
{
    return f;
}

static void logit_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    (void)lik;
    odds_conditional(n, f, mean, variance, logit_odds);
}

static void logit_probabilities(const thiele_likelihood *lik, int64_t n, const double *f, double *prob)
{
    (void)lik;
    odds_probabilities(n, f, prob, logit_odds);
}

static double logit_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    (void)lik;
    return sign_cdf(y, thi_sigmoid(-f[0]));
}

static void logit_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    (void)lik;
    y[0] = sign_sample(stream, draw, thi_sigmoid(f[0]));
}

const thi_likelihood_ops thi_lik_bernoulli = {
    .name = "bernoulli",
    .support = THI_SUPPORT_BINARY,
    .log_density = logit_density,
    .derivatives = logit_derivatives,
    .bends = sign_bends,
    .conditional = logit_conditional,
    .cdf = logit_cdf,
    .sample = logit_sample,
    .guess = sign_guess,
    .probabilities = logit_probabilities,
    .augmentation = &thi_aug_bernoulli,
};

/* --- probit ----------------------------------------------------------------------------------------------------------
 */

static void probit_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    (void)lik;
    by_margins(n, y, f, thi_vector()->log_phi, out);
}

/* With m = phi/Phi at x = y f: d1 = y m, d2 = -m (x + m) */
static void probit_derivatives(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *d1,
                               double *d2)
{
    (void)lik;
    double buffer[CHUNK];
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        for (int64_t i = 0; i < count; i++) {
            buffer[i] = thi_margin(y[first + i], f[first + i]);
        }
        thi_vector()->mills(count, buffer, buffer, d2 + first);
        for (int64_t i = 0; i < count; i++) {
            double sign = y[first + i];
            d1[first + i] = sign == sign ? sign * buffer[i] : 0.0;
            d2[first + i] = sign == sign ? -buffer[i] * d2[first + i] : 0.0;
        }
    }
}

/* P(+1) = Phi(mu/sqrt(1 + v)); v may be NULL for none. */
static void probit_moments(int64_t n, const double *mu, const double *v, double *mean, double *variance)
{
    for (int64_t i = 0; i < n; i++) {
        double x = mu[i] / sqrt(1.0 + (v != NULL ? v[i] : 0.0));
        mean[i] = erf(x * M_SQRT1_2);
        variance[i] = 4.0 * thi_normal_cdf(x) * thi_normal_cdf(-x);
    }
}

static void probit_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    (void)lik;
    probit_moments(n, f, NULL, mean, variance);
}

static void probit_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                              double *variance)
{
    (void)lik;
    probit_moments(n, mu, v, mean, variance);
}

static void probit_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                                  const double *v, double *out)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        out[i] = isnan(y[i]) ? 0.0 : thi_log_phi(y[i] * mu[i] / sqrt(1.0 + v[i]));
    }
}

static void probit_probabilities(const thiele_likelihood *lik, int64_t n, const double *f, double *prob)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        prob[2 * i] = thi_normal_cdf(-f[i]);
        prob[2 * i + 1] = thi_normal_cdf(f[i]);
    }
}

static double probit_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    (void)lik;
    return sign_cdf(y, thi_normal_cdf(-f[0]));
}

static void probit_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    (void)lik;
    y[0] = sign_sample(stream, draw, thi_normal_cdf(f[0]));
}

const thi_likelihood_ops thi_lik_bernoulli_probit = {
    .name = "bernoulli-probit",
    .support = THI_SUPPORT_BINARY,
    .log_density = probit_density,
    .derivatives = probit_derivatives,
    .bends = sign_bends,
    .conditional = probit_conditional,
    .predictive = probit_predictive,
    .log_predictive = probit_log_predictive,
    .cdf = probit_cdf,
    .sample = probit_sample,
    .guess = sign_guess,
    .probabilities = probit_probabilities,
};

/* --- Bayesian support vector machine ---------------------------------------------------------------------------------
 */

static void svm_density(const thiele_likelihood *lik, int64_t n, const double *y, const double *f, double *out)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        out[i] = thi_svm_density(y[i], f[i]);
    }
}

static void svm_expectation(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu, const double *v,
                            double *E, double *g, double *h, double *dphi)
{
    thi_rows_expectation(lik, n, y, mu, v, E, g, h, dphi, thi_svm_expectation);
}

/* The margin y f = 1 is at f = y. */
static int svm_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    (void)lik;
    bend[0] = (thi_bend){y[0], 0.0};
    return 1;
}

/* log Z(y), Z(y) the integral of the pseudo-likelihood: P(t < 0) and the tilted other side. */
static double svm_log_integral(double y, double mu, double v)
{
    double s = sqrt(fmax(v, THI_LEAST_VARIANCE)), z = (1.0 - y * mu) / s;
    return thi_log_add(thi_log_phi(-z), thi_log_phi_tilted(z, 2.0 * s));
}

static void svm_log_predictive(const thiele_likelihood *lik, int64_t n, const double *y, const double *mu,
                               const double *v, double *out)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        out[i] = isnan(y[i]) ? 0.0 : svm_log_integral(y[i], mu[i], v[i]);
    }
}

static void svm_predictive(const thiele_likelihood *lik, int64_t n, const double *mu, const double *v, double *mean,
                           double *variance)
{
    (void)lik;
    for (int64_t i = 0; i < n; i++) {
        double odds = svm_log_integral(1.0, mu[i], v[i]) - svm_log_integral(-1.0, mu[i], v[i]);
        sign_moments(odds, &mean[i], &variance[i]);
    }
}

static double svm_odds(double f)
{
    return 2.0 * (fmax(0.0, 1.0 + f) - fmax(0.0, 1.0 - f));
}

static void svm_conditional(const thiele_likelihood *lik, int64_t n, const double *f, double *mean, double *variance)
{
    (void)lik;
    odds_conditional(n, f, mean, variance, svm_odds);
}

static void svm_probabilities(const thiele_likelihood *lik, int64_t n, const double *f, double *prob)
{
    (void)lik;
    odds_probabilities(n, f, prob, svm_odds);
}

static double svm_cdf(const thiele_likelihood *lik, double y, const double *f)
{
    (void)lik;
    return sign_cdf(y, thi_sigmoid(-svm_odds(f[0])));
}

static void svm_sample(const thiele_likelihood *lik, thi_stream stream, uint64_t draw, const double *f, double *y)
{
    (void)lik;
    y[0] = sign_sample(stream, draw, thi_sigmoid(svm_odds(f[0])));
}

/* No derivatives: the second one is not a function at the margin, and its mean under a Gaussian would be lost. */
const thi_likelihood_ops thi_lik_svm = {
    .name = "svm",
    .support = THI_SUPPORT_BINARY,
    .pseudo = true,
    .log_density = svm_density,
    .expectation = svm_expectation,
    .bends = svm_bends,
    .conditional = svm_conditional,
    .predictive = svm_predictive,
    .log_predictive = svm_log_predictive,
    .cdf = svm_cdf,
    .sample = svm_sample,
    .guess = sign_guess,
    .probabilities = svm_probabilities,
    .augmentation = &thi_aug_svm,
};
