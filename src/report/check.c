/*
 * thiele_model_check: simulation-based calibration (sbc.h) of a model's specification at its learned parameters, and
 * what its ranks say. A histogram with a band that holds all bars together with probability 95% (Bonferroni), and the
 * p-value of its chi-square; over the quantities Holm's correction.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <thiele/report.h>

#include "model/json.h"
#include "model/methods.h"
#include "model/predict_pass.h"
#include "model/relevance.h"
#include "report/sbc.h"
#include "report/statistic.h"

enum { SIMULATIONS = 200, FEWEST = 20, MOST = 100000, ROWS = 50, ROWS_FEWEST = 10, ROWS_MOST = 200 };
enum { BINS_MOST = 20, BINS_FEW = 10, RANKS = THI_SBC_DRAWS + 1 };
/* A band holds all bars with 1 - BAND; below LEVEL ranks are not uniform. */
static const double BAND = 0.05, LEVEL = 0.01;

/* --- what is checked ------------------------------------------------------------------------------------------------
 */

static thiele_status find_part(const thiele_model *model, thiele_context *ctx, const char *target,
                               const thiele_model **part)
{
    int targets = thiele_model_targets(model), p = 0;
    while (target != NULL && p < targets && strcmp(thiele_model_target(model, p), target) != 0) {
        p++;
    }
    if (p == targets) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the model predicts '%s' and no '%s'",
                        thiele_model_target(model, 0), target);
    }
    *part = model->parts > 0 ? model->part[p] : model;
    return THIELE_OK;
}

static thiele_status refuse(const thiele_model *model, thiele_context *ctx)
{
    thiele_status status = thi_model_need_likelihood(model, ctx);
    if (status != THIELE_OK) {
        return status;
    }
    bool groups = model->groups == 1 || model->groups == model->latents;
    if (!thi_sbc_can(thi_method_named(model->method)) || model->latent->kernel == NULL || !groups) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "models by method %s cannot be checked by simulation: those on all rows can (exact, dense, "
                        "augmented, and the samplers gibbs, ess, hmc and mh)",
                        model->method);
    }
    return !model->lik->ops->pseudo
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                          "the likelihood '%s' is not normalised over the target: nothing can be simulated from it",
                          model->lik->ops->name);
}

/* The model's priors; all of it but the lists is borrowed. */
static thiele_status borrow_spec(const thiele_model *model, thiele_context *ctx, thi_spec *spec)
{
    const thi_predictor *p = model->latent;
    thi_latents *latents = &spec->latents;
    thiele_status status;
    *spec = (thi_spec){
        .lik = model->lik, .expectation = thi_model_draws(model), .steps = thi_method_named(model->method)->steps};
    latents->count = model->latents;
    latents->groups = model->groups;
    latents->mean = p->mean;
    latents->mean_parameters = thi_mean_parameters(p->mean, model->encoder.dims);
    THI_TRY(thi_alloc(ctx, &latents->group, (size_t)latents->count, sizeof *latents->group));
    THI_TRY(thi_alloc(ctx, &latents->kernel, (size_t)latents->groups, sizeof(thiele_kernel *)));
    THI_TRY(thi_alloc(ctx, &latents->prior, (size_t)latents->groups, sizeof *latents->prior));
    for (int q = 0; q < latents->count; q++) {
        int g = latents->groups == 1 ? 0 : q;
        latents->group[q] = g;
        latents->kernel[g] = p[q].kernel;
        latents->prior[g] = (thi_prior){p[q].kernel, p[q].mean, p[q].mean_parameter};
    }
out:
    return status;
}

static void release_spec(thi_spec *spec)
{
    thi_free(spec->latents.group);
    thi_free(spec->latents.kernel);
    thi_free(spec->latents.prior);
}

/* The inputs that the model holds. */
static thiele_status take_held(const thiele_model *model, thiele_context *ctx, thi_rows *all)
{
    const thi_held held = thi_find_held(model);
    int D = model->encoder.dims;
    thiele_status status = thi_rows_alloc(all, ctx, held.n, D, model->encoder.targets, (thi_aside){0});
    if (status == THIELE_OK && held.n > 0) {
        memcpy(all->X, held.X, (size_t)(held.n * D) * sizeof *all->X);
    }
    return status;
}

static thiele_status take_table(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                const thiele_predict_options *given, thi_rows *all)
{
    thiele_predict_options predict;
    thi_reader reader = {0};
    thiele_status status;
    THI_TRY(thi_predict_take(ctx, given, &predict));
    thi_reading how = thi_predict_reading(model, &predict, false);
    THI_TRY(thi_reader_open(&reader, ctx, &model->encoder, table, &how));
    THI_TRY(thi_read_all(ctx, &reader, all, NULL));
out:
    thi_reader_close(&reader);
    return status;
}

/* Some of the rows, with room for targets. */
static thiele_status take_rows(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                               const thiele_check_options *options, thi_rows *rows)
{
    thi_rows all = {0}, some = {0};
    thiele_status status;
    THI_TRY(table != NULL ? take_table(model, ctx, table, options->predict, &all) : take_held(model, ctx, &all));
    if (all.n < ROWS_FEWEST) {
        THI_TRY(thi_fail(ctx, THIELE_ERROR_DATA, "%lld rows to simulate at: a check needs %d at least%s",
                         (long long)all.n, ROWS_FEWEST,
                         table == NULL ? " (the model holds no more: give it a table)" : ""));
    }
    THI_TRY(thi_rows_sample(&some, ctx, &all, options->rows));
    THI_TRY(thi_rows_alloc(rows, ctx, some.n, model->encoder.dims, model->encoder.targets,
                           (thi_aside){.offset = some.offset != NULL}));
    memcpy(rows->X, some.X, (size_t)(some.n * some.dims) * sizeof *rows->X);
    if (some.offset != NULL) {
        memcpy(rows->offset, some.offset, (size_t)some.n * sizeof *rows->offset);
    }
out:
    thi_rows_free(&all);
    thi_rows_free(&some);
    return status;
}

/* --- what ranks say -------------------------------------------------------------------------------------------------
 */

typedef struct verdict {
    double p[THI_SBC_QUANTITIES];
    double adjusted; /* the least, by Holm */
    int worst;
    double shift, spread; /* of its ranks, on (0, 1): mean less 1/2, variance over that of the uniform law */
} verdict;

/* NULL: out of memory. */
static json_t *describe_ranks(const thi_sbc *sbc, int quantity, verdict *v)
{
    int failed = 0;
    int bins = sbc->simulations >= SIMULATIONS ? BINS_MOST : BINS_FEW;
    double expected = (double)sbc->simulations / bins, square = 0.0;
    int64_t count[BINS_MOST] = {0}, low, high;
    char name[32];
    for (int64_t s = 0; s < sbc->simulations; s++) {
        count[sbc->rank[quantity + s * THI_SBC_QUANTITIES] * bins / RANKS]++;
    }
    json_t *counts = json_array();
    for (int b = 0; b < bins; b++) {
        square += ((double)count[b] - expected) * ((double)count[b] - expected) / expected;
        failed |= json_array_append_new(counts, json_integer((json_int_t)count[b]));
    }
    v->p[quantity] = thi_chi_square_tail(bins - 1.0, square);
    thi_binomial_band(sbc->simulations, 1.0 / bins, BAND / bins, &low, &high);
    thi_sbc_name(sbc, quantity, name);
    if (failed != 0) {
        json_decref(counts);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:I, s:I, s:f, s:f}", "name", name, "counts", counts, "low", (json_int_t)low, "high",
                     (json_int_t)high, "chi_square", square, "p", v->p[quantity]);
}

static void find_worst(const thi_sbc *sbc, verdict *v)
{
    double sum = 0.0, square = 0.0, n = (double)sbc->simulations;
    for (int k = 0; k < THI_SBC_QUANTITIES; k++) {
        v->worst = v->p[k] < v->p[v->worst] ? k : v->worst;
    }
    v->adjusted = fmin(1.0, THI_SBC_QUANTITIES * v->p[v->worst]);
    for (int64_t s = 0; s < sbc->simulations; s++) {
        double u = (sbc->rank[v->worst + s * THI_SBC_QUANTITIES] + 0.5) / RANKS - 0.5;
        sum += u / n;
        square += 12.0 * u * u / n;
    }
    v->shift = sum;
    v->spread = square - 12.0 * sum * sum;
}

static void say(const thi_sbc *sbc, const verdict *v, char *text, size_t size)
{
    static const double APART = 3.0; /* standard errors */
    double n = (double)sbc->simulations;
    char name[32];
    thi_sbc_name(sbc, v->worst, name);
    if (v->adjusted >= LEVEL) {
        snprintf(text, size,
                 "Ranks are uniform as far as %lld simulations can tell: the posterior is right where the model is.",
                 (long long)sbc->simulations);
        return;
    }
    const char *how = fabs(v->shift) > APART / sqrt(12.0 * n) ? v->shift > 0.0 ? "too low" : "too high"
                      : v->spread > 1.0                       ? "too narrow"
                                                              : "too wide";
    snprintf(text, size, "Ranks of %s are not uniform: its posterior is %s, even where the model is right.", name, how);
}

static thiele_status describe(const thi_sbc *sbc, thiele_context *ctx, char **out)
{
    verdict v = {0};
    char text[256];
    int failed = 0;
    json_t *quantities = json_array();
    for (int k = 0; k < THI_SBC_QUANTITIES; k++) {
        failed |= json_array_append_new(quantities, describe_ranks(sbc, k, &v));
    }
    find_worst(sbc, &v);
    say(sbc, &v, text, sizeof text);
    json_t *json = json_pack("{s:s, s:b, s:f, s:s, s:I, s:I, s:i, s:I, s:o}", "verdict", text, "uniform",
                             v.adjusted >= LEVEL, "p", v.adjusted, "method", sbc->method->name, "simulations",
                             (json_int_t)sbc->simulations, "rows", (json_int_t)sbc->rows->n, "draws", THI_SBC_DRAWS,
                             "seed", (json_int_t)ctx->seed, "quantities", quantities);
    thiele_status status = json == NULL
                               ? thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while the check was written")
                               : thi_json_text(ctx, json, JSON_INDENT(2), out);
    json_decref(json);
    return status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------
 */

static thiele_status take_options(thiele_context *ctx, const thiele_check_options *given, thiele_check_options *out)
{
    thiele_status status = thi_take_options(ctx, "thiele_check_options", out, sizeof *out, given);
    if (status != THIELE_OK) {
        return status;
    }
    out->simulations = out->simulations == 0 ? SIMULATIONS : out->simulations;
    out->rows = out->rows == 0 ? ROWS : out->rows;
    if (out->simulations < FEWEST || out->simulations > MOST || out->rows < ROWS_FEWEST || out->rows > ROWS_MOST) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a check takes %d to %d simulations of %d to %d rows", FEWEST, MOST,
                        ROWS_FEWEST, ROWS_MOST);
    }
    return THIELE_OK;
}

thiele_status thiele_model_check(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_check_options *options, char **json)
{
    if (json != NULL) {
        *json = NULL;
    }
    THI_NEED(ctx, model && ctx && json);
    const thiele_model *part = NULL;
    thiele_check_options taken;
    thi_spec spec = {0};
    thi_rows rows = {0};
    thi_sbc sbc = {.truth = &spec, .spec = &spec, .rows = &rows};
    thiele_status status;
    THI_TRY(take_options(ctx, options, &taken));
    THI_TRY(find_part(model, ctx, taken.target, &part));
    THI_TRY(refuse(part, ctx));
    sbc.method = thi_method_named(part->method);
    sbc.simulations = taken.simulations;
    THI_TRY(borrow_spec(part, ctx, &spec));
    THI_TRY(take_rows(part, ctx, table, &taken, &rows));
    THI_TRY(thi_alloc(ctx, &sbc.rank, (size_t)(sbc.simulations * THI_SBC_QUANTITIES), sizeof *sbc.rank));
    THI_TRY(thi_sbc_run(&sbc, ctx));
    THI_TRY(describe(&sbc, ctx, json));
out:
    thi_free(sbc.rank);
    thi_rows_free(&rows);
    release_spec(&spec);
    return status;
}
