/*
 * Scores against what was observed: of Gaussian predictions by thiele_score_gaussian, of labels by
 * thiele_brier and their probabilities, of others from their log predictive densities, distribution functions and
 * quantiles.
 */
#include "model/score.h"

#include <math.h>
#include <string.h>

#include "expect/crps.h"
#include "expect/parallel.h"

/* Ends of the central 50%, 90% and 95% intervals. */
static const double ends[] = {0.25, 0.75, 0.05, 0.95, 0.025, 0.975};
enum { ENDS = sizeof ends / sizeof *ends, INTERVALS = ENDS / 2 };

thiele_status thi_scorer_open(thi_scorer *s, thiele_context *ctx, const thiele_model *model, int64_t capacity,
                              thi_scoring how)
{
    bool classes = thi_model_has_classes(model);
    size_t numbers = (size_t)capacity * (size_t)model->encoder.targets;
    *s = (thi_scorer){.model = model, .options = THIELE_PREDICT_OPTIONS_INIT, .capacity = capacity};
    bool exact = thi_model_is_gaussian(model) && model->components == 1 && model->calibration.rows == 0;
    s->densities = !classes && !exact;
    s->quick = how != THI_SCORE_ALL;
    s->bare = how == THI_SCORE_LOSSES && s->densities && model->calibration.rows == 0;
    if (s->densities && !s->quick) {
        s->options.quantiles = ends;
        s->options.quantile_count = ENDS;
    }
    thiele_status status;
    THI_TRY(thi_outputs_open(&s->outputs, ctx, model, &s->options, capacity));
    THI_TRY(thi_alloc(ctx, &s->y, numbers, sizeof *s->y));
    THI_TRY(thi_alloc(ctx, &s->mean, numbers, sizeof *s->mean));
    THI_TRY(thi_alloc(ctx, &s->variance, numbers, sizeof *s->variance));
    THI_TRY(thi_alloc(ctx, &s->loss, numbers, sizeof *s->loss));
    THI_TRY(thi_alloc(ctx, &s->crps, numbers, sizeof *s->crps));
    THI_TRY(thi_alloc(ctx, &s->inside, numbers, sizeof *s->inside));
    if (classes && !s->quick) {
        THI_TRY(thi_alloc(ctx, &s->probability, numbers * (size_t)s->outputs.classes, sizeof *s->probability));
        THI_TRY(thi_alloc(ctx, &s->label, numbers, sizeof *s->label));
    }
out:
    return status;
}

void thi_scorer_close(thi_scorer *s)
{
    thi_outputs_close(&s->outputs);
    thi_free(s->y);
    thi_free(s->mean);
    thi_free(s->variance);
    thi_free(s->loss);
    thi_free(s->crps);
    thi_free(s->inside);
    thi_free(s->probability);
    thi_free(s->label);
    *s = (thi_scorer){0};
}

/* --- one block -------------------------------------------------------------------------------------------------------
 */

/* P x n, of each target by itself: loss = -log p; crps in the units of the model, NaN where it is not asked for. */
typedef struct density_job {
    thi_scorer *s;
    int64_t n;
    const double *y, *mu, *v;
    double *loss, *crps;
} density_job;

/* The block's loss; one has room for its targets, density for its rows. */
static thiele_status losses(const density_job *j, thi_expect *expect, thiele_context *ctx, const thi_marginals *part,
                            int64_t first, double *one, double *density)
{
    const thiele_model *model = j->s->model;
    int P = model->encoder.targets;
    thiele_status status = THIELE_OK;
    for (int p = 0; p < P && status == THIELE_OK; p++) {
        for (int64_t i = 0; i < part->n * P; i++) {
            one[i] = i % P == p ? j->y[first * P + i] : NAN;
        }
        status = thi_mixture_log_predictive(expect, ctx, part, one, density);
        for (int64_t i = 0; i < part->n && status == THIELE_OK; i++) {
            j->loss[(first + i) * P + p] = log(model->encoder.target[p].scale) - density[i];
        }
    }
    return status;
}

static thiele_status densities(thi_expect *expect, thiele_context *ctx, int64_t first, int64_t n, const void *arg)
{
    const density_job *j = arg;
    const thiele_model *model = j->s->model;
    int P = model->encoder.targets;
    double *one = NULL;
    double *density = NULL;
    thi_marginals part;
    thi_marginals_part(&part, model, j->n, j->mu, j->v, first, n, thi_gathered_part(&j->s->outputs, first));
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &one, (size_t)(n * P), sizeof *one));
    THI_TRY(thi_alloc(ctx, &density, (size_t)n, sizeof *density));
    THI_TRY(losses(j, expect, ctx, &part, first, one, density));
    if (j->s->quick) {
        for (int64_t i = first * P; i < (first + n) * P; i++) {
            j->crps[i] = NAN;
        }
    } else {
        THI_TRY(thi_mixture_crps(expect, ctx, &part, j->y + first * P, j->crps + first * P));
    }
out:
    thi_free(one);
    thi_free(density);
    return status;
}

/* The same after calibration, whose law is known by its spread. */
static thiele_status calibrated_densities(const density_job *j, thiele_context *ctx)
{
    const thiele_model *model = j->s->model;
    int P = model->encoder.targets;
    thi_support support = model->lik->ops->support;
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < j->n * P && status == THIELE_OK; i++) {
        const thi_residual_law *law = &model->calibration.law[i % P];
        const thi_spread *spread = &j->s->outputs.spread[i];
        double density = thi_calibrated_log_density(law, spread, support, j->y[i]);
        j->loss[i] = log(model->encoder.target[i % P].scale) - density;
        j->crps[i] = NAN;
        if (!isnan(j->y[i])) {
            status = thi_calibrated_crps(law, spread, support, ctx, j->y[i], &j->crps[i]);
        }
    }
    return status;
}

static void keep_number(thi_scorer *s, int64_t from, int64_t at, double y)
{
    const thi_outputs *o = &s->outputs;
    const thi_target *target = &s->model->encoder.target[at % o->outputs];
    const double *quantile = o->quantiles + from * s->options.quantile_count;
    s->y[at] = target->center + target->scale * y;
    s->mean[at] = s->bare ? NAN : o->mean[from];
    s->variance[at] = s->bare ? NAN : o->variance[from];
    s->crps[at] *= target->scale;
    for (int i = 0; i < INTERVALS && s->options.quantile_count > 0; i++) {
        bool inside = s->y[at] >= quantile[2 * i] && s->y[at] <= quantile[2 * i + 1];
        s->inside[at] |= (unsigned char)(inside << i);
    }
}

/* The CRPS of the number of a class: the sum over classes of (P(Y <= c) - [c >= label])^2. */
static double ranked(int classes, int label, const double *probability)
{
    double below = 0.0;
    double sum = 0.0;
    for (int c = 0; c < classes - 1; c++) {
        below += probability[c];
        double off = below - (c >= label);
        sum += off * off;
    }
    return sum;
}

/* The most probable class, the lowest on a tie. */
static int best_class(int classes, const double *probability)
{
    int best = 0;
    for (int c = 1; c < classes; c++) {
        best = probability[c] > probability[best] ? c : best;
    }
    return best;
}

/* Of a label: mean holds whether the guess is wrong, variance its Brier score. */
static void keep_label(thi_scorer *s, int64_t from, int64_t at, double y)
{
    const thi_outputs *o = &s->outputs;
    const double *probability = o->probability + from * o->classes;
    int label = s->model->encoder.signs ? y > 0.0 : (int)y;
    s->mean[at] = best_class(o->classes, probability) != label;
    s->variance[at] = thiele_brier(o->classes, label, probability);
    s->crps[at] = thi_model_has_order(s->model) ? ranked(o->classes, label, probability) : NAN;
    s->loss[at] = -log(probability[label]);
    if (s->label != NULL) {
        s->label[at] = label;
        memcpy(s->probability + at * o->classes, probability, (size_t)o->classes * sizeof *probability);
    }
}

thiele_status thi_scorer_add(thi_scorer *s, thiele_context *ctx, int64_t n, const double *y, const double *mu,
                             const double *v)
{
    const thi_outputs *o = &s->outputs;
    int P = o->outputs;
    int64_t first = s->rows * P;
    density_job job = {s, n, y, mu, v, s->loss + first, s->crps + first};
    thiele_status status = s->bare ? THIELE_OK : thi_outputs_make(&s->outputs, ctx, n, NULL, mu, v);
    bool calibrated = s->densities && !s->bare && thi_outputs_calibrated(o);
    if (status == THIELE_OK && calibrated) {
        status = calibrated_densities(&job, ctx);
    } else if (status == THIELE_OK && s->densities) {
        status = thi_providers_rows(&s->outputs.providers, ctx, n, densities, &job);
    }
    for (int64_t i = 0; status == THIELE_OK && i < n * P; i++) {
        if (o->classes > 0) {
            keep_label(s, i, first + i, y[i]);
        } else {
            keep_number(s, i, first + i, y[i]);
        }
    }
    s->rows += status == THIELE_OK ? n : 0;
    return status;
}

double thi_scorer_loss(const thi_scorer *s, int64_t at)
{
    const double LOG_TWO_PI = 1.8378770664093454836;
    if (s->densities || s->outputs.classes > 0) {
        return s->loss[at];
    }
    double error = s->y[at] - s->mean[at];
    return 0.5 * (LOG_TWO_PI + log(s->variance[at]) + error * error / s->variance[at]);
}

double thi_scorer_square(const thi_scorer *s, int64_t at)
{
    double error = s->y[at] - s->mean[at];
    return s->outputs.classes > 0 ? s->variance[at] : error * error;
}

/* --- all of them -----------------------------------------------------------------------------------------------------
 */

const thiele_scores thi_no_scores = {0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};

static double average(int64_t n, int stride, const double *value)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += value[i * stride];
    }
    return sum / (double)n;
}

/* Drops the rows where target p is missing; returns how many are left, contiguous in the first places of each array. */
static int64_t compact(thi_scorer *s, int p, double *y, double *mean, double *variance, double *loss, double *crps,
                       unsigned char *inside)
{
    int P = s->outputs.outputs;
    int64_t n = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t at = i * P + p;
        if (!isnan(s->y[at])) {
            y[n] = s->y[at];
            mean[n] = s->mean[at];
            variance[n] = s->variance[at];
            loss[n] = s->loss[at];
            crps[n] = s->crps[at];
            inside[n++] = s->inside[at];
        }
    }
    return n;
}

/* Whether a density of y can be compared with that of a Gaussian. */
static bool continuous(const thiele_model *model)
{
    return model->lik->ops->support <= THI_SUPPORT_UNIT;
}

static thiele_status score_numbers(thi_scorer *s, thiele_context *ctx, int p, thiele_scores *scores)
{
    size_t rows = (size_t)s->rows;
    const thi_target *target = &s->model->encoder.target[p];
    double *block = NULL;
    unsigned char *inside = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &block, 5 * rows, sizeof *block));
    THI_TRY(thi_alloc(ctx, &inside, rows, sizeof *inside));
    double *y = block;
    double *mean = block + rows;
    double *variance = block + 2 * rows;
    double *loss = block + 3 * rows;
    double *crps = block + 4 * rows;
    int64_t n = compact(s, p, y, mean, variance, loss, crps, inside);
    *scores = thi_no_scores;
    if (n == 0) {
        goto out;
    }
    if (!s->densities) {
        status = thiele_score_gaussian(ctx, n, y, mean, variance, target->mean, target->variance, scores);
        goto out;
    }
    thi_score_errors(n, y, mean, target->mean, continuous(s->model) ? target->variance : NAN, scores);
    scores->nlpd = average(n, 1, loss);
    scores->msll += scores->nlpd;
    scores->crps = average(n, 1, crps);
    double *coverage[INTERVALS] = {&scores->coverage50, &scores->coverage90, &scores->coverage95};
    for (int i = 0; i < INTERVALS && s->options.quantile_count > 0; i++) {
        int64_t count = 0;
        for (int64_t j = 0; j < n; j++) {
            count += inside[j] >> i & 1;
        }
        *coverage[i] = (double)count / (double)n;
    }
out:
    thi_free(block);
    thi_free(inside);
    return status;
}

void thi_scorer_confusion(const thi_scorer *s, int64_t *confusion)
{
    int classes = s->outputs.classes;
    memset(confusion, 0, (size_t)classes * (size_t)classes * sizeof *confusion);
    for (int64_t i = 0; i < s->rows; i++) {
        confusion[s->label[i] + classes * best_class(classes, s->probability + i * classes)]++;
    }
}

static thiele_status score_classes(const thi_scorer *s, thiele_context *ctx, thiele_scores *scores)
{
    *scores = thi_no_scores;
    scores->rows = s->rows;
    scores->error_rate = average(s->rows, 1, s->mean);
    scores->nlp = average(s->rows, 1, s->loss);
    scores->brier = average(s->rows, 1, s->variance);
    scores->crps = average(s->rows, 1, s->crps);
    if (s->label == NULL) {
        return THIELE_OK;
    }
    return thiele_score_auc(ctx, s->rows, s->outputs.classes, s->label, s->probability, &scores->auc);
}

thiele_status thi_scorer_finish(thi_scorer *s, thiele_context *ctx, thiele_scores *scores)
{
    if (s->rows == 0) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "no row is left to score");
    }
    if (s->outputs.classes > 0) {
        return score_classes(s, ctx, scores);
    }
    thiele_status status = THIELE_OK;
    for (int p = 0; p < s->outputs.outputs && status == THIELE_OK; p++) {
        status = score_numbers(s, ctx, p, &scores[p]);
    }
    return status;
}
