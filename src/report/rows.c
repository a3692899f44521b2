/*
 * The pass over the table of a report: predictions, probability integral transforms, how far f is known, and a random
 * sample of rows. Memory: some 70 bytes per row and target, and the sample.
 */
#include "report/rows.h"

#include <math.h>
#include <string.h>

#include "expect/predictive_cdf.h"
#include "likelihood/normal_quantile.h"
#include "likelihood/special.h"

/* Purposes of random numbers, apart from those of fits. */
enum { CHOOSE_SAMPLE = 101, CHOOSE_PIT, WITHIN_STEP };

typedef struct collector {
    thi_report_rows *rows;
    double *prior; /* k(x, x) of a block */
    double pit_share;
    bool normal;
} collector;

/* --- probability integral transforms --------------------------------------------------------------------------------
 */

typedef struct pit_job {
    const thi_report_rows *r;
    const thi_predict_pass *p;
    double share;
    double *pit; /* of the block's rows */
} pit_job;

/* F(y), of counts between F(y - 1) and F(y) at random (Czado, Gneiting and Held 2009). */
static thiele_status transform(thi_row_cdf *cdf, thiele_context *ctx, double y, int64_t row, double *pit)
{
    bool count = cdf->expect->lik->ops->support == THI_SUPPORT_COUNT;
    const thi_stream stream = {0, WITHIN_STEP, (uint64_t)row};
    double below = 0.0;
    thiele_status status = thi_row_cdf_at(cdf, ctx, y, pit);
    if (status == THIELE_OK && count) {
        if (y >= 1.0) {
            status = thi_row_cdf_at(cdf, ctx, y - 1.0, &below);
        }
        *pit = below + thi_random_uniform(stream, 0) * (*pit - below);
    }
    return status;
}

static bool is_chosen(double share, uint64_t purpose, int64_t row)
{
    return share >= 1.0 || thi_random_uniform((thi_stream){0, purpose, (uint64_t)row}, 0) < share;
}

static thiele_status transform_block(thi_expect *expect, thiele_context *ctx, int64_t first, int64_t n, const void *arg)
{
    const pit_job *j = arg;
    const thiele_model *model = j->r->model;
    int P = model->encoder.targets;
    thi_marginals part;
    thi_marginals_part(&part, model, j->p->kept, j->p->mu, j->p->v, first, n,
                       thi_gathered_part(&j->r->scorer.outputs, first));
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < n; i++) {
        double y = j->p->y[(first + i) * P + j->r->target];
        thi_row_cdf cdf = {.expect = expect, .output = j->r->target};
        if (isnan(y) || !is_chosen(j->share, CHOOSE_PIT, j->p->row[first + i])) {
            continue;
        }
        THI_TRY(thi_gather(expect->space, ctx, &part, i, &cdf.row));
        THI_TRY(thi_row_cdf_prepare(&cdf, ctx));
        THI_TRY(transform(&cdf, ctx, y, j->p->row[first + i], &j->pit[first + i]));
    }
out:
    return status;
}

/* The block's rows, which the scorer has from `first` on. */
static thiele_status add_transforms(collector *c, thi_predict_pass *p, int64_t first)
{
    thi_report_rows *r = c->rows;
    const thiele_model *model = r->model;
    int P = model->encoder.targets;
    double *pit = r->pit + first;
    for (int64_t i = 0; i < p->kept; i++) {
        pit[i] = NAN;
    }
    if (thi_rows_classes(r) > 0) {
        return THIELE_OK;
    }
    if (model->calibration.rows > 0) {
        const thi_residual_law *law = &model->calibration.law[r->target];
        thi_support support = model->lik->ops->support;
        for (int64_t i = 0; i < p->kept; i++) {
            double y = p->y[i * P + r->target];
            const thi_spread *spread = &r->scorer.outputs.spread[i * P + r->target];
            if (!isnan(y)) {
                pit[i] = thi_normal_cdf(thi_residual_score(law, thi_spread_residual(spread, support, y)));
            }
        }
        return THIELE_OK;
    }
    if (c->normal) {
        for (int64_t i = 0; i < p->kept; i++) {
            double off = thi_rows_y(r, first + i) - thi_rows_mean(r, first + i);
            pit[i] = thi_normal_cdf(off / sqrt(thi_rows_variance(r, first + i)));
        }
        return THIELE_OK;
    }
    pit_job job = {r, p, c->pit_share, pit};
    return thi_providers_rows(&r->scorer.outputs.providers, p->ctx, p->kept, transform_block, &job);
}

/* --- one block ------------------------------------------------------------------------------------------------------
 */

/* Variances of the latent functions against the prior's; of a mixture all of it, between its components too. */
static thiele_status add_shares(collector *c, thi_predict_pass *p, int64_t first)
{
    thi_report_rows *r = c->rows;
    const thiele_model *model = r->model;
    int Q = model->latents, K = model->components;
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < p->kept; i++) {
        r->share[first + i] = 0.0;
    }
    for (int q = 0; q < Q; q++) {
        const thi_predictor *predictor = &model->latent[q];
        thi_inputs inputs;
        THI_TRY(thi_inputs_make(&inputs, p->ctx, predictor->kernel, p->kept, p->X));
        status = thi_kernel_fill_diagonal(predictor->kernel, p->ctx, &inputs, c->prior);
        thi_inputs_clear(&inputs);
        THI_TRY(status);
        for (int64_t i = 0; i < p->kept; i++) {
            double mean = 0.0, second = 0.0;
            for (int k = 0; k < K; k++) {
                double mu = p->mu[(k * p->kept + i) * Q + q];
                mean += model->weight[k] * mu;
                second += model->weight[k] * (p->v[(k * p->kept + i) * Q + q] + mu * mu);
            }
            double variance = fmax(second - mean * mean, 0.0);
            double share = variance / (thi_predictor_tau(predictor) * c->prior[i]);
            r->share[first + i] = fmax(r->share[first + i], share);
            r->own[first + i] = q == 0 ? variance : r->own[first + i];
        }
    }
out:
    return status;
}

static void add_inputs(thi_report_rows *r, const thi_predict_pass *p)
{
    const uint64_t prime = 1099511628211ULL;
    int D = r->model->encoder.dims, P = r->model->encoder.targets;
    for (int64_t i = 0; i < p->kept; i++) {
        for (int d = 0; d < D; d++) {
            double x = p->X[i * D + d];
            uint64_t bits;
            memcpy(&bits, &x, sizeof bits);
            r->hash = (r->hash ^ bits) * prime;
            r->sum[d] += x;
            r->square[d] += x * x;
            r->low[d] = fmin(r->low[d], x);
            r->high[d] = fmax(r->high[d], x);
        }
        for (int o = 0; o < P; o++) {
            uint64_t bits;
            memcpy(&bits, &p->y[i * P + o], sizeof bits);
            r->hash = (r->hash ^ bits) * prime;
        }
    }
}

static void add_sample(thi_report_rows *r, const thi_predict_pass *p, int64_t first)
{
    size_t D = (size_t)r->model->encoder.dims, P = (size_t)r->model->encoder.targets;
    double share = (double)THI_SAMPLE_ROWS / (double)r->read;
    thi_row_sample *s = &r->sample;
    for (int64_t i = 0; i < p->kept; i++) {
        if (s->n == THI_SAMPLE_ROWS || isnan(p->y[(size_t)i * P + (size_t)r->target]) ||
            !is_chosen(share, CHOOSE_SAMPLE, p->row[i])) {
            continue;
        }
        size_t n = (size_t)s->n++;
        s->at[n] = first + i;
        s->offset[n] = p->offset[i];
        memcpy(s->X + n * D, p->X + (size_t)i * D, D * sizeof *s->X);
        memcpy(s->y + n * P, p->y + (size_t)i * P, P * sizeof *s->y);
    }
}

/* Into its place among the worst, where it belongs there. */
static void add_worst(thi_report_rows *r, const double *x, int64_t i)
{
    thi_worst_rows *w = &r->worst;
    size_t D = (size_t)r->model->encoder.dims;
    double loss = thi_rows_loss(r, i);
    int at = w->n;
    while (at > 0 && loss > w->loss[at - 1]) {
        at--;
    }
    if (at == THI_WORST_ROWS) {
        return;
    }
    int moved = (w->n < THI_WORST_ROWS ? w->n++ : THI_WORST_ROWS - 1) - at;
    memmove(w->at + at + 1, w->at + at, (size_t)moved * sizeof *w->at);
    memmove(w->loss + at + 1, w->loss + at, (size_t)moved * sizeof *w->loss);
    memmove(w->X + (size_t)(at + 1) * D, w->X + (size_t)at * D, (size_t)moved * D * sizeof *w->X);
    w->at[at] = i;
    w->loss[at] = loss;
    memcpy(w->X + (size_t)at * D, x, D * sizeof *w->X);
}

static thiele_status collect(void *arg, thi_predict_pass *p, int passes)
{
    collector *c = arg;
    thi_report_rows *r = c->rows;
    int64_t first = r->scorer.rows;
    thiele_status status;
    (void)passes;
    THI_TRY(thi_scorer_add(&r->scorer, p->ctx, p->kept, p->y, p->mu, p->v));
    THI_TRY(add_transforms(c, p, first));
    THI_TRY(add_shares(c, p, first));
    add_inputs(r, p);
    add_sample(r, p, first);
    memcpy(r->number + first, p->row, (size_t)p->kept * sizeof *r->number);
    for (int64_t i = 0; i < p->kept; i++) {
        if (thi_rows_have(r, first + i)) {
            r->rows++;
            add_worst(r, p->X + i * r->model->encoder.dims, first + i);
        }
    }
out:
    return status;
}

/* --- all of them ----------------------------------------------------------------------------------------------------
 */

static thiele_status make_room(thi_report_rows *r, thiele_context *ctx)
{
    size_t D = (size_t)r->model->encoder.dims, P = (size_t)r->model->encoder.targets, n = (size_t)r->read;
    size_t most = n < THI_SAMPLE_ROWS ? n : THI_SAMPLE_ROWS;
    thi_row_sample *s = &r->sample;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &r->number, n, sizeof *r->number));
    THI_TRY(thi_alloc(ctx, &r->pit, n, sizeof *r->pit));
    THI_TRY(thi_alloc(ctx, &r->share, n, sizeof *r->share));
    THI_TRY(thi_alloc(ctx, &r->own, n, sizeof *r->own));
    THI_TRY(thi_alloc(ctx, &r->sum, D, sizeof *r->sum));
    THI_TRY(thi_alloc(ctx, &r->square, D, sizeof *r->square));
    THI_TRY(thi_alloc(ctx, &r->low, D, sizeof *r->low));
    THI_TRY(thi_alloc(ctx, &r->high, D, sizeof *r->high));
    THI_TRY(thi_alloc(ctx, &s->at, most, sizeof *s->at));
    THI_TRY(thi_alloc(ctx, &s->X, most * D, sizeof *s->X));
    THI_TRY(thi_alloc(ctx, &s->y, most * P, sizeof *s->y));
    THI_TRY(thi_alloc(ctx, &s->offset, most, sizeof *s->offset));
    THI_TRY(thi_alloc(ctx, &r->worst.X, THI_WORST_ROWS * D, sizeof *r->worst.X));
    for (size_t d = 0; d < D; d++) {
        r->low[d] = INFINITY;
        r->high[d] = -INFINITY;
    }
out:
    return status;
}

/* How many rows have their transform: all where that is a formula. */
static double pit_share(const thiele_model *model, int64_t rows)
{
    bool formula = model->lik->ops->predictive_cdf != NULL && model->components == 1;
    double most = model->components > THI_PIT_MANY / 10 ? THI_PIT_MANY : THI_PIT_ROWS;
    return formula ? 1.0 : most / (double)rows;
}

thiele_status thi_report_rows_make(thi_report_rows *r, thiele_context *ctx, const thiele_model *model, int target,
                                   const thiele_table *table, const thiele_predict_options *options)
{
    *r = (thi_report_rows){.model = model, .target = target, .read = table->rows, .hash = 14695981039346656037ULL};
    thi_predict_pass p = {0};
    collector c = {.rows = r};
    bool quick = !thi_model_has_classes(model) && table->rows > THI_PIT_ROWS;
    thiele_status status;
    THI_TRY(thi_model_need_likelihood(model, ctx));
    THI_TRY(make_room(r, ctx));
    THI_TRY(thi_predict_pass_open(&p, model, ctx, table, options, true));
    THI_TRY(thi_scorer_open(&r->scorer, ctx, model, table->rows, quick));
    THI_TRY(thi_alloc(ctx, &c.prior, (size_t)p.block, sizeof *c.prior));
    c.normal = thi_model_is_normal(model);
    c.pit_share = pit_share(model, table->rows > 0 ? table->rows : 1);
    THI_TRY(thi_predict_each_block(&p, 1, collect, &c));
    if (r->rows < 10) {
        status = thi_fail(ctx, THIELE_ERROR_DATA,
                          "%lld row%s of the table can be scored: a report needs 10 at least; without a table it is "
                          "about the model alone",
                          (long long)r->rows, r->rows == 1 ? "" : "s");
    }
out:
    thi_free(c.prior);
    thi_predict_pass_close(&p);
    return status;
}

void thi_report_rows_clear(thi_report_rows *r)
{
    thi_scorer_close(&r->scorer);
    thi_free(r->number);
    thi_free(r->pit);
    thi_free(r->share);
    thi_free(r->own);
    thi_free(r->sum);
    thi_free(r->square);
    thi_free(r->low);
    thi_free(r->high);
    thi_free(r->worst.X);
    thi_free(r->sample.at);
    thi_free(r->sample.X);
    thi_free(r->sample.y);
    thi_free(r->sample.offset);
    *r = (thi_report_rows){0};
}

static int64_t place(const thi_report_rows *r, int64_t i)
{
    return i * r->model->encoder.targets + r->target;
}

/* Of the transform where the law is no normal one; it cannot tell more than 8 standard deviations. */
double thi_rows_score(const thi_report_rows *r, int64_t i)
{
    static const double LEAST = 1e-15;
    if (thi_rows_classes(r) > 0) {
        double most = 0.0;
        for (int c = 0; c < thi_rows_classes(r); c++) {
            most = fmax(most, r->scorer.probability[i * thi_rows_classes(r) + c]);
        }
        return thi_rows_mean(r, i) - (1.0 - most);
    }
    double z = (thi_rows_y(r, i) - thi_rows_mean(r, i)) / sqrt(thi_rows_variance(r, i));
    bool normal = thi_model_is_normal(r->model) && r->model->calibration.rows == 0;
    return normal || isnan(r->pit[i]) ? z : thi_normal_quantile(fmin(fmax(r->pit[i], LEAST), 1.0 - LEAST));
}

int thi_rows_classes(const thi_report_rows *r)
{
    return r->scorer.outputs.classes;
}

double thi_rows_y(const thi_report_rows *r, int64_t i)
{
    return thi_rows_classes(r) > 0 ? r->scorer.label[i] : r->scorer.y[place(r, i)];
}

double thi_rows_mean(const thi_report_rows *r, int64_t i)
{
    return r->scorer.mean[place(r, i)];
}

double thi_rows_variance(const thi_report_rows *r, int64_t i)
{
    return r->scorer.variance[place(r, i)];
}

double thi_rows_loss(const thi_report_rows *r, int64_t i)
{
    return thi_scorer_loss(&r->scorer, place(r, i));
}

double thi_rows_square(const thi_report_rows *r, int64_t i)
{
    return thi_scorer_square(&r->scorer, place(r, i));
}

bool thi_rows_have(const thi_report_rows *r, int64_t i)
{
    return thi_rows_classes(r) > 0 || !isnan(thi_rows_y(r, i));
}
