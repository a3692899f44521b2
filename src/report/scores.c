/*
 * How good the predictions are, beside two that anybody can make: the mean (the shares of labels) of the training rows,
 * and a linear model. The latter is ridge regression on a sample of the rows, each predicted by a fit to four fifths of
 * the others: it learns from the new rows, the model does not. Intervals are bootstrapped: rows fall into at most
 * BLOCKS groups, which are drawn again a thousand times; each row is one where there are few.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "linalg/linalg.h"
#include "model/describe.h"
#include "report/report.h"
#include "report/statistic.h"

enum { BLOCKS = 5000, DRAWS = 1000, FOLDS = 5, LINEAR_DIMS = 300, BOOTSTRAP = 111, FOLD };
static const double LOG_TWO_PI = 1.8378770664093454836;
static const double RIDGE = 1e-3; /* of the rows: what a column of noise would be given */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- intervals ------------------------------------------------------------------------------------------------------
 */

/* A mean over rows; root: the square root of it. */
typedef struct thi_mean_score {
    const char *name;
    double (*row)(const thi_report_rows *rows, int64_t i);
    bool root;
} thi_mean_score;

static double absolute(const thi_report_rows *rows, int64_t i)
{
    return sqrt(thi_rows_square(rows, i));
}

/* Of labels the scorer keeps whether the guess is wrong. */
static double wrong(const thi_report_rows *rows, int64_t i)
{
    return thi_rows_mean(rows, i);
}

static const thi_mean_score of_numbers[] = {
    {"rmse", thi_rows_square, true}, {"mae", absolute, false}, {"nlpd", thi_rows_loss, false}, {0}};
static const thi_mean_score of_labels[] = {
    {"error_rate", wrong, false}, {"nlp", thi_rows_loss, false}, {"brier", thi_rows_square, false}, {0}};

static double finish(const thi_mean_score *score, double sum, double count)
{
    return score->root ? sqrt(sum / count) : sum / count;
}

static thiele_status bootstrap(thi_report *r, json_t *section, const thi_mean_score *score)
{
    const thi_report_rows *rows = r->rows;
    int64_t blocks = rows->rows < BLOCKS ? rows->rows : BLOCKS, seen = 0;
    double *sum = NULL, *count = NULL, draw[DRAWS], all = 0.0;
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &sum, (size_t)blocks, sizeof *sum));
    THI_TRY(thi_alloc(r->ctx, &count, (size_t)blocks, sizeof *count));
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        if (thi_rows_have(rows, i)) {
            sum[seen % blocks] += score->row(rows, i);
            count[seen++ % blocks] += 1.0;
        }
    }
    for (int64_t b = 0; b < blocks; b++) {
        all += sum[b];
    }
    for (int d = 0; d < DRAWS; d++) {
        const thi_stream stream = {0, BOOTSTRAP, (uint64_t)d};
        double total = 0.0, rows_drawn = 0.0;
        for (int64_t b = 0; b < blocks; b++) {
            int64_t which = (int64_t)(thi_random_uniform(stream, (uint64_t)b) * (double)blocks);
            total += sum[which];
            rows_drawn += count[which];
        }
        draw[d] = finish(score, total, rows_drawn);
    }
    qsort(draw, DRAWS, sizeof *draw, by_size);
    json_t *own = thi_put_object(r, section, score->name);
    thi_put_number(r, own, "value", finish(score, all, (double)seen));
    thi_put_number(r, own, "low", thi_sorted_quantile(DRAWS, draw, 0.025));
    thi_put_number(r, own, "high", thi_sorted_quantile(DRAWS, draw, 0.975));
out:
    thi_free(sum);
    thi_free(count);
    return status;
}

/* --- the mean -------------------------------------------------------------------------------------------------------
 */

static bool has_density(const thi_report *r)
{
    return r->model->lik->ops->support <= THI_SUPPORT_UNIT;
}

/* N(mean, variance) of the training targets. */
static void mean_of_numbers(thi_report *r, json_t *own)
{
    const thi_target *target = &r->model->encoder.target[r->target];
    double square = 0.0, off = 0.0;
    for (int64_t i = 0; i < r->rows->scorer.rows; i++) {
        if (thi_rows_have(r->rows, i)) {
            double error = thi_rows_y(r->rows, i) - target->mean;
            square += error * error;
            off += fabs(error);
        }
    }
    square /= (double)r->rows->rows;
    thi_put_number(r, own, "rmse", sqrt(square));
    thi_put_number(r, own, "mae", off / (double)r->rows->rows);
    if (has_density(r)) {
        thi_put_number(r, own, "nlpd", 0.5 * (LOG_TWO_PI + log(target->variance) + square / target->variance));
    }
}

/*
 * The shares of labels in the rows themselves: the best that can be said without inputs, since models do not hold those
 * of training.
 */
static void shares_of_labels(thi_report *r, json_t *own)
{
    int classes = thi_rows_classes(r->rows);
    int64_t count[THI_LEVELS_MAX] = {0}, most = 0;
    double n = (double)r->rows->scorer.rows, nlp = 0.0, brier = 1.0;
    for (int64_t i = 0; i < r->rows->scorer.rows; i++) {
        count[(int)thi_rows_y(r->rows, i)]++;
    }
    for (int c = 0; c < classes; c++) {
        double share = (double)count[c] / n;
        most = thi_most(most, count[c]);
        nlp -= count[c] > 0 ? share * log(share) : 0.0;
        brier -= share * share;
    }
    thi_put_number(r, own, "error_rate", 1.0 - (double)most / n);
    thi_put_number(r, own, "nlp", nlp);
    thi_put_number(r, own, "brier", brier);
}

/* --- a linear model -------------------------------------------------------------------------------------------------
 */

/* Least squares of the sample, K columns of targets (indicators, of labels). */
typedef struct linear {
    int64_t n;
    int D, K;        /* D with the constant */
    double *x, *t;   /* D x n, K x n */
    double *A, *B;   /* D x D, D x K: all rows' */
    double *own, *w; /* the same less a fold's; then the weights in w */
    double *guess;   /* K x n */
} linear;

static int fold_of(int64_t i)
{
    return (int)(thi_random_uniform((thi_stream){0, FOLD, (uint64_t)i}, 0) * FOLDS);
}

static void add_row(const linear *l, int64_t i, double sign, double *A, double *B)
{
    const double *x = l->x + i * l->D;
    for (int a = 0; a < l->D; a++) {
        for (int b = 0; b < l->D; b++) {
            A[a * l->D + b] += sign * x[a] * x[b];
        }
        for (int k = 0; k < l->K; k++) {
            B[k * l->D + a] += sign * x[a] * l->t[i * l->K + k];
        }
    }
}

static thiele_status solve_fold(linear *l, thiele_context *ctx, int fold)
{
    size_t D = (size_t)l->D, K = (size_t)l->K;
    double jitter;
    memcpy(l->own, l->A, D * D * sizeof *l->own);
    memcpy(l->w, l->B, D * K * sizeof *l->w);
    for (int64_t i = 0; i < l->n; i++) {
        if (fold_of(i) == fold) {
            add_row(l, i, -1.0, l->own, l->w);
        }
    }
    for (int d = 1; d < l->D; d++) {
        l->own[d * (l->D + 1)] += RIDGE * (double)l->n;
    }
    thi_matrix A = thi_matrix_view(l->own, l->D, l->D, l->D);
    thiele_status status = thi_chol_jitter(ctx, A, &jitter);
    for (int k = 0; k < l->K && status == THIELE_OK; k++) {
        thi_blas_trsv(THI_N, A, l->w + k * l->D);
        thi_blas_trsv(THI_T, A, l->w + k * l->D);
    }
    for (int64_t i = 0; i < l->n && status == THIELE_OK; i++) {
        for (int k = 0; fold_of(i) == fold && k < l->K; k++) {
            l->guess[i * l->K + k] = thi_blas_dot(l->D, l->x + i * l->D, l->w + k * l->D);
        }
    }
    return status;
}

static void score_linear_numbers(thi_report *r, const linear *l, json_t *own)
{
    double square = 0.0, off = 0.0;
    for (int64_t i = 0; i < l->n; i++) {
        double error = l->t[i] - l->guess[i];
        square += error * error / (double)l->n;
        off += fabs(error) / (double)l->n;
    }
    thi_put_number(r, own, "rmse", sqrt(square));
    thi_put_number(r, own, "mae", off);
    if (has_density(r)) {
        thi_put_number(r, own, "nlpd", 0.5 * (LOG_TWO_PI + log(square) + 1.0));
    }
}

static void score_linear_labels(thi_report *r, const linear *l, json_t *own)
{
    int64_t wrong_ones = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const double *guess = l->guess + i * l->K, *t = l->t + i * l->K;
        int best = 0;
        for (int k = 1; k < l->K; k++) {
            best = guess[k] > guess[best] ? k : best;
        }
        wrong_ones += t[best] == 0.0;
    }
    thi_put_number(r, own, "error_rate", (double)wrong_ones / (double)l->n);
}

static thiele_status linear_model(thi_report *r, json_t *section)
{
    const thi_row_sample *s = &r->rows->sample;
    int dims = r->model->encoder.dims, classes = thi_rows_classes(r->rows);
    linear l = {.n = s->n, .D = dims + 1, .K = classes > 0 ? classes : 1};
    size_t D = (size_t)l.D, K = (size_t)l.K, n = (size_t)l.n;
    thiele_status status = THIELE_OK;
    if (dims > LINEAR_DIMS || s->n < 2 * l.D) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(r->ctx, &l.x, D * n, sizeof *l.x));
    THI_TRY(thi_alloc(r->ctx, &l.t, K * n, sizeof *l.t));
    THI_TRY(thi_alloc(r->ctx, &l.guess, K * n, sizeof *l.guess));
    THI_TRY(thi_alloc(r->ctx, &l.A, D * D, sizeof *l.A));
    THI_TRY(thi_alloc(r->ctx, &l.own, D * D, sizeof *l.own));
    THI_TRY(thi_alloc(r->ctx, &l.B, D * K, sizeof *l.B));
    THI_TRY(thi_alloc(r->ctx, &l.w, D * K, sizeof *l.w));
    for (size_t i = 0; i < n; i++) {
        double y = thi_rows_y(r->rows, s->at[i]);
        l.x[i * D] = 1.0;
        memcpy(l.x + i * D + 1, s->X + i * (D - 1), (D - 1) * sizeof *l.x);
        l.t[i * K + (classes > 0 ? (size_t)y : 0)] = classes > 0 ? 1.0 : y;
        add_row(&l, (int64_t)i, 1.0, l.A, l.B);
    }
    for (int fold = 0; fold < FOLDS; fold++) {
        THI_TRY(solve_fold(&l, r->ctx, fold));
    }
    json_t *own = thi_put_object(r, section, "linear");
    if (classes > 0) {
        score_linear_labels(r, &l, own);
    } else {
        score_linear_numbers(r, &l, own);
    }
    thi_put_count(r, own, "rows", s->n);
out:
    thi_free(l.x);
    thi_free(l.t);
    thi_free(l.guess);
    thi_free(l.A);
    thi_free(l.own);
    thi_free(l.B);
    thi_free(l.w);
    if (status == THIELE_ERROR_NUMERIC) { /* columns that are sums of others, far apart: there is no such model */
        thi_recover(r->ctx);
        status = THIELE_OK;
    }
    return status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------
 */

thiele_status thi_section_scores(thi_report *r, json_t *section)
{
    int targets = r->model->encoder.targets;
    bool labels = thi_rows_classes(r->rows) > 0;
    thiele_scores *scores = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &scores, (size_t)targets, sizeof *scores));
    THI_TRY(thi_scorer_finish(&r->rows->scorer, r->ctx, scores));
    thi_put(r, section, "all", thi_scores_to_json(&scores[r->target]));
    for (const thi_mean_score *score = labels ? of_labels : of_numbers; score->name != NULL; score++) {
        THI_TRY(bootstrap(r, section, score));
    }
    json_t *own = thi_put_object(r, section, "mean");
    if (labels) {
        shares_of_labels(r, own);
    } else {
        mean_of_numbers(r, own);
    }
    THI_TRY(linear_model(r, section));
out:
    thi_free(scores);
    return status;
}
