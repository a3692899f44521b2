/* How much each input matters to what a model predicts (relevance.h). Cost: pairs x (inputs + 1) predictions. */
#include "model/relevance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/batches.h"
#include "model/outputs.h"
#include "posterior/local.h"

enum { PAIRS_MOST = 1024, PAIRS_LEAST = 32 };
/* Operations, of some nanoseconds each, that it may take: about a second. */
static const double WORK = 1e9;
/* What one of a matrix product costs beside those. */
static const double FLOP = 0.1;

thi_held thi_find_held(const thiele_model *model)
{
    const thi_predictor *p = model->latent;
    bool training = model->optimizer == NULL && model->blocks.blocks == 0;
    if (model->kept.rows.n > 0) {
        return (thi_held){model->kept.rows.n, model->kept.rows.X, "kept rows", true};
    }
    if (p->local != NULL) {
        return (thi_held){p->local->partition.n, p->local->X, "training rows", true};
    }
    if (p->mean_basis != NULL) {
        return (thi_held){p->mean_n, p->mean_basis, "basis inputs", false};
    }
    return (thi_held){p->n, p->basis, training ? "training rows" : "inducing inputs", training};
}

/* Predictions of some rows at a time. */
typedef struct probe {
    const thiele_model *model;
    thiele_context *ctx;
    thiele_predict_options options;
    thi_outputs outputs;
    int64_t pairs;
    int values; /* g: numbers of a row */
    bool plain; /* means of a Gaussian need no variances */
    double *X, *mu, *v;
    double *weight; /* of each value: 1 / s_o^2 */
} probe;

static int64_t affordable(const thiele_model *model, int64_t rows, bool plain)
{
    const thi_predictor *p = model->latent;
    double n = (double)(p->n + p->mean_n), D = model->encoder.dims;
    double functions = (double)model->latents * model->components;
    double each = functions * (n * (D + 20.0) + (plain ? 0.0 : n * n));
    double work = WORK / (model->encoder.inputs + 1);
    if (p->local != NULL) {
        /* Each prediction sees a block, which is factorised once for all of them. */
        double block = (double)rows / (double)p->local->partition.blocks;
        each += functions * block * (D + 20.0 + n + block);
        work -= functions * (double)rows * block * (block / 3.0 + n) * FLOP;
    }
    double pairs = fmin(work / each, PAIRS_MOST);
    return pairs >= PAIRS_LEAST ? (int64_t)pairs : 0;
}

static thiele_status probe_open(probe *p, const thiele_model *model, thiele_context *ctx, int64_t rows)
{
    size_t functions = (size_t)model->latents * (size_t)model->components;
    thiele_status status = THIELE_OK;
    *p = (probe){.model = model, .ctx = ctx, .options = THIELE_PREDICT_OPTIONS_INIT};
    /* What a likelihood of the user's own makes of f may take any time. */
    p->options.latent = model->lik == NULL || model->lik->spec != NULL;
    p->plain = p->options.latent || (thi_model_is_gaussian(model) && model->components == 1);
    p->pairs = rows < 2 ? 0 : affordable(model, rows, p->plain);
    if (p->pairs == 0) {
        return THIELE_OK;
    }
    size_t pairs = (size_t)p->pairs;
    THI_TRY(thi_outputs_open(&p->outputs, ctx, model, &p->options, p->pairs));
    p->values = p->outputs.classes > 0 ? p->outputs.classes : p->outputs.outputs;
    THI_TRY(thi_alloc(ctx, &p->X, pairs * (size_t)model->encoder.dims, sizeof *p->X));
    THI_TRY(thi_alloc(ctx, &p->mu, pairs * functions, sizeof *p->mu));
    THI_TRY(thi_alloc(ctx, &p->v, pairs * functions, sizeof *p->v));
    THI_TRY(thi_alloc(ctx, &p->weight, (size_t)p->values, sizeof *p->weight));
    for (int o = 0; o < p->values; o++) {
        bool target = !p->options.latent && p->outputs.classes == 0;
        double variance = target ? model->encoder.target[o].variance : 1.0;
        p->weight[o] = variance > 0.0 ? 1.0 / variance : 1.0;
    }
out:
    return status;
}

static void probe_close(probe *p)
{
    thi_outputs_close(&p->outputs);
    thi_free(p->X);
    thi_free(p->mu);
    thi_free(p->v);
    thi_free(p->weight);
}

/* g (values x pairs) at the rows in X. */
static thiele_status predict(probe *p, double *g)
{
    int64_t clipped = 0;
    double *v = p->plain ? NULL : p->v;
    thiele_status status = thi_model_marginals(p->model, p->ctx, p->pairs, p->X, NULL, p->mu, v, &clipped);
    if (status == THIELE_OK) {
        status = thi_outputs_make(&p->outputs, p->ctx, p->pairs, NULL, p->mu, p->v);
    }
    if (status == THIELE_OK) {
        const double *from = p->outputs.classes > 0 ? p->outputs.probability : p->outputs.mean;
        memcpy(g, from, (size_t)p->pairs * (size_t)p->values * sizeof *g);
    }
    return status;
}

/* The rows of pair k: neighbours in a random order, then those two apart, and so on where there are more pairs than
 * rows. */
static void pair_of(const thi_shuffle *order, int64_t rows, int64_t k, int64_t *row, int64_t *other)
{
    int64_t at = k % rows, apart = 1 + k / rows % (rows - 1);
    *row = thi_shuffle_at(order, at);
    *other = thi_shuffle_at(order, (at + apart) % rows);
}

/* The first rows of all pairs, with input i (-1: none) of the second. */
static void place(probe *p, const thi_held *rows, const thi_shuffle *order, int i)
{
    const thi_encoder *encoder = &p->model->encoder;
    const size_t D = (size_t)encoder->dims;
    for (int64_t k = 0; k < p->pairs; k++) {
        int64_t row, other;
        double *x = p->X + (size_t)k * D;
        pair_of(order, rows->n, k, &row, &other);
        memcpy(x, rows->X + (size_t)row * D, D * sizeof *x);
        if (i >= 0) {
            const size_t first = (size_t)encoder->input[i].first, width = (size_t)thi_input_width(&encoder->input[i]);
            memcpy(x + first, rows->X + (size_t)other * D + first, width * sizeof *x);
        }
    }
}

static double moved(const probe *p, const double *before, const double *after)
{
    double sum = 0.0;
    for (int64_t k = 0; k < p->pairs; k++) {
        for (int o = 0; o < p->values; o++) {
            double step = after[k * p->values + o] - before[k * p->values + o];
            sum += p->weight[o] * step * step;
        }
    }
    return 0.5 * sum / (double)p->pairs;
}

thiele_status thi_relevance(const thiele_model *model, thiele_context *ctx, double *share, int64_t *pairs)
{
    static const uint64_t seed = 19;
    const thi_held rows = thi_find_held(model);
    const int inputs = model->encoder.inputs;
    double *before = NULL, *after = NULL;
    double sum = 0.0;
    thi_shuffle order;
    probe p;
    thiele_status status;
    *pairs = 0;
    THI_TRY(probe_open(&p, model, ctx, rows.n));
    if (p.pairs == 0) {
        goto out;
    }
    size_t numbers = (size_t)p.pairs * (size_t)p.values;
    THI_TRY(thi_alloc(ctx, &before, numbers, sizeof *before));
    THI_TRY(thi_alloc(ctx, &after, numbers, sizeof *after));
    thi_shuffle_open(&order, (thi_stream){.seed = seed}, rows.n);
    place(&p, &rows, &order, -1);
    THI_TRY(predict(&p, before));
    for (int i = 0; i < inputs; i++) {
        place(&p, &rows, &order, i);
        THI_TRY(predict(&p, after));
        share[i] = moved(&p, before, after);
        sum += share[i];
    }
    for (int i = 0; i < inputs; i++) {
        share[i] = sum > 0.0 ? share[i] / sum : 0.0;
    }
    *pairs = isfinite(sum) ? p.pairs : 0;
out:
    thi_free(before);
    thi_free(after);
    probe_close(&p);
    return status;
}

/* --- the description ---------------------------------------------------------------------------------------------- */

typedef struct ranked {
    double share;
    int input;
} ranked;

/* The largest first; equal ones as they stand in the table. */
static int compare(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->share != y->share ? (x->share < y->share) - (x->share > y->share) : x->input - y->input;
}

/* From these shares on; the first of all matters most, unless nothing does. */
static const char *word_of(double share, bool first)
{
    static const double much = 0.1, little = 0.01;
    return share >= little && first ? "most" : share >= much ? "much" : share >= little ? "little" : "hardly";
}

static json_t *list_inputs(const thi_encoder *encoder, const ranked *rank)
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (int i = 0; i < encoder->inputs && !failed; i++) {
        failed = json_array_append_new(list,
                                       json_pack("{s:s, s:f, s:s}", "name", encoder->input[rank[i].input].name, "share",
                                                 rank[i].share, "matters", word_of(rank[i].share, i == 0))) != 0;
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

thiele_status thi_relevance_to_json(const thiele_model *model, thiele_context *ctx, json_t *json)
{
    const size_t inputs = (size_t)model->encoder.inputs;
    double *share = NULL;
    ranked *rank = NULL;
    int64_t pairs;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &share, inputs, sizeof *share));
    THI_TRY(thi_alloc(ctx, &rank, inputs, sizeof *rank));
    status = thi_relevance(model, ctx, share, &pairs);
    if (status == THIELE_ERROR_NUMERIC || status == THIELE_ERROR_UNSUPPORTED) {
        thi_recover(ctx); /* a model that cannot predict has no relevance of its inputs */
        status = THIELE_OK;
        pairs = 0;
    }
    THI_TRY(status);
    for (size_t i = 0; i < inputs; i++) {
        rank[i] = (ranked){share[i], (int)i};
    }
    qsort(rank, inputs, sizeof *rank, compare);
    if (pairs > 0 &&
        json_object_set_new(json, "relevance",
                            json_pack("{s:I, s:s, s:o}", "pairs", (json_int_t)pairs, "of", thi_find_held(model).what,
                                      "inputs", list_inputs(&model->encoder, rank))) != 0) {
        status = thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while the model was described");
    }
out:
    thi_free(share);
    thi_free(rank);
    return status;
}
