/*
 * Scores of Gaussian and class predictions: include/thiele/metrics.h has the definitions.
 * MSLL and SMSE: Rasmussen and Williams (2006), section 2.5. Two passes over the targets and one over the predictions,
 * O(n); all sums are compensated, so that the error does not grow with n.
 */
#include <thiele/metrics.h>

#include <math.h>

#include "likelihood/special.h"
#include "model/score.h"

#define LOG_TWO_PI 1.8378770664093454836

/* Quantiles of the standard normal: the central interval is mean +- z sd. */
#define Z_50 0.67448975019608171
#define Z_90 1.6448536269514722
#define Z_95 1.9599639845400545

/* A sum and the rounding error it has made so far (Neumaier's form of Kahan's summation). */
typedef struct total {
    double sum, lost;
} total;

static void add(total *t, double x)
{
    double s = t->sum + x;
    t->lost += fabs(t->sum) >= fabs(x) ? (t->sum - s) + x : (x - s) + t->sum;
    t->sum = s;
}

/* The error of an infinite sum is infinite - infinite: of no use. */
static double mean_of(total t, int64_t n)
{
    return (isfinite(t.sum) ? t.sum + t.lost : t.sum) / (double)n;
}

/* Population variance. Differences from the first value make that of a constant exactly zero. */
static double variance_of(int64_t n, const double *y)
{
    total shift = {0.0, 0.0}, squares = {0.0, 0.0};
    for (int64_t i = 0; i < n; i++) {
        add(&shift, y[i] - y[0]);
    }
    double center = mean_of(shift, n);
    for (int64_t i = 0; i < n; i++) {
        double d = (y[i] - y[0]) - center;
        add(&squares, d * d);
    }
    return mean_of(squares, n);
}

/* -log N(y; mean, variance), from z = (y - mean)/sd. */
static double gaussian_nlp(double z, double variance)
{
    return 0.5 * (LOG_TWO_PI + log(variance) + z * z);
}

double thiele_crps_gaussian(double y, double mean, double variance)
{
    return thi_normal_crps(y - mean, variance);
}

static thiele_status check_gaussian(thiele_context *ctx, int64_t n, const double *y, const double *mean,
                                    const double *variance)
{
    if (n < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "there are no predictions to score");
    }
    for (int64_t i = 0; i < n; i++) {
        long long row = (long long)i + 1;
        if (!(variance[i] > 0.0) || !isfinite(variance[i])) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                            "prediction %lld: the variance %g is not a positive, finite number", row, variance[i]);
        }
        if (!isfinite(mean[i]) || !isfinite(y[i])) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "prediction %lld: the mean %g or the target %g is not finite",
                            row, mean[i], y[i]);
        }
    }
    return THIELE_OK;
}

thiele_status thiele_score_gaussian(thiele_context *ctx, int64_t n, const double *y, const double *mean,
                                    const double *variance, double train_mean, double train_variance,
                                    thiele_scores *scores)
{
    THI_NEED(ctx, ctx && scores && (n < 1 || (y && mean && variance)));
    thiele_status status = check_gaussian(ctx, n, y, mean, variance);
    if (status != THIELE_OK) {
        return status;
    }
    total squared = {0.0, 0.0}, absolute = {0.0, 0.0}, nlp = {0.0, 0.0}, trivial = {0.0, 0.0}, crps = {0.0, 0.0};
    int64_t in50 = 0, in90 = 0, in95 = 0;
    double train_sd = sqrt(train_variance);
    for (int64_t i = 0; i < n; i++) {
        double error = y[i] - mean[i], sd = sqrt(variance[i]), distance = fabs(error);
        add(&squared, error * error);
        add(&absolute, distance);
        add(&nlp, gaussian_nlp(error / sd, variance[i]));
        add(&trivial, gaussian_nlp((y[i] - train_mean) / train_sd, train_variance));
        add(&crps, thiele_crps_gaussian(y[i], mean[i], variance[i]));
        in50 += distance <= Z_50 * sd;
        in90 += distance <= Z_90 * sd;
        in95 += distance <= Z_95 * sd;
    }
    double mse = mean_of(squared, n), spread = variance_of(n, y), rows = (double)n;
    *scores = (thiele_scores){.rows = n,
                              .error_rate = NAN,
                              .nlp = NAN,
                              .brier = NAN,
                              .auc = NAN,
                              .rmse = sqrt(mse),
                              .mae = mean_of(absolute, n),
                              .smse = spread > 0.0 ? mse / spread : NAN,
                              .nlpd = mean_of(nlp, n),
                              .msll = train_variance > 0.0 ? mean_of(nlp, n) - mean_of(trivial, n) : NAN,
                              .crps = mean_of(crps, n),
                              .coverage50 = (double)in50 / rows,
                              .coverage90 = (double)in90 / rows,
                              .coverage95 = (double)in95 / rows};
    return THIELE_OK;
}

void thi_score_errors(int64_t n, const double *y, const double *mean, double train_mean, double train_variance,
                      thiele_scores *scores)
{
    total squared = {0.0, 0.0}, absolute = {0.0, 0.0}, trivial = {0.0, 0.0};
    double train_sd = sqrt(train_variance);
    for (int64_t i = 0; i < n; i++) {
        double error = y[i] - mean[i];
        add(&squared, error * error);
        add(&absolute, fabs(error));
        add(&trivial, gaussian_nlp((y[i] - train_mean) / train_sd, train_variance));
    }
    double mse = mean_of(squared, n), spread = variance_of(n, y);
    scores->rows = n;
    scores->rmse = sqrt(mse);
    scores->mae = mean_of(absolute, n);
    scores->smse = spread > 0.0 ? mse / spread : NAN;
    scores->msll = train_variance > 0.0 ? -mean_of(trivial, n) : NAN;
}

/* Probabilities may pass 1 by the rounding of whoever normalised them. */
#define PROBABILITY_MAX (1.0 + 1e-9)

/* The most probable class of one row, or -1 when the row holds something that is no probability. */
static int best_class(int classes, const double *probability)
{
    int best = 0;
    for (int c = 0; c < classes; c++) {
        if (!(probability[c] >= 0.0 && probability[c] <= PROBABILITY_MAX)) {
            return -1;
        }
        best = probability[c] > probability[best] ? c : best;
    }
    return best;
}

thiele_status thiele_score_classes(thiele_context *ctx, int64_t n, int classes, const int *label,
                                   const double *probability, double *error_rate, double *nlp)
{
    THI_NEED(ctx, ctx && error_rate && nlp && (n < 1 || (label && probability)));
    if (n < 1 || classes < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "there are no predictions to score");
    }
    total sum = {0.0, 0.0};
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *p = probability + i * classes;
        if (label[i] < 0 || label[i] >= classes) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "prediction %lld: the label %d is not in 0..%d",
                            (long long)i + 1, label[i], classes - 1);
        }
        int best = best_class(classes, p);
        if (best < 0) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "prediction %lld: a probability is not between 0 and 1",
                            (long long)i + 1);
        }
        wrong += best != label[i];
        add(&sum, -log(p[label[i]]));
    }
    *error_rate = (double)wrong / (double)n;
    *nlp = mean_of(sum, n);
    return THIELE_OK;
}

double thiele_brier(int classes, int label, const double *probability)
{
    double sum = 0.0;
    for (int c = 0; c < classes; c++) {
        double off = probability[c] - (c == label);
        sum += off * off;
    }
    return sum;
}
