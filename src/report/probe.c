/* Predictions at inputs that no table has: one of them changed, a grid, other rows' values. */
#include <math.h>
#include <string.h>

#include "posterior/local.h"
#include "report/rows.h"

/* Operations, of some nanoseconds each: two or three seconds of one thread. */
static const double WORK = 3e9;
static const double FLOP = 0.1;

int thi_probe_values(const thiele_model *model)
{
    return thi_model_has_classes(model) ? model->encoder.target->levels : 1;
}

int64_t thi_probe_affordable(const thiele_model *model, int64_t most, double times)
{
    const thi_predictor *p = model->latent;
    double n = (double)(p->n + p->mean_n), D = model->encoder.dims, functions = model->latents;
    double each = n * (D + 20.0) + FLOP * n * n * model->components;
    if (p->local != NULL) {
        double block = (double)p->local->partition.n / (double)p->local->partition.blocks;
        each += block * (D + 20.0) + FLOP * block * (n + block);
    }
    double rows = WORK / (each * functions * times + 200.0 * times * model->components);
    return rows < (double)most ? (int64_t)fmax(rows, 100.0) : most;
}

/* Values of a block whose outputs are there. */
static void take(const thi_probe *probe, const thi_outputs *outputs)
{
    int values = thi_probe_values(probe->model);
    for (int64_t i = 0; i < probe->n && probe->value != NULL; i++) {
        if (outputs->classes > 0) {
            memcpy(probe->value + i * values, outputs->probability + i * values, (size_t)values * sizeof *probe->value);
        } else {
            probe->value[i] = outputs->mean[i * outputs->outputs + probe->target];
        }
    }
}

thiele_status thi_probe_run(const thi_probe *probe, thiele_context *ctx)
{
    const thiele_model *model = probe->model;
    size_t functions = (size_t)model->latents * (size_t)model->components * (size_t)probe->n;
    const thiele_predict_options plain = THIELE_PREDICT_OPTIONS_INIT;
    double *mu = NULL, *v = NULL;
    int64_t clipped = 0;
    int P = model->encoder.targets;
    thi_model_batch batch = {0};
    thi_scorer scorer = {0};
    thi_outputs outputs = {0};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &mu, functions, sizeof *mu));
    THI_TRY(thi_alloc(ctx, &v, functions, sizeof *v));
    THI_TRY(thi_model_batch_open(&batch, ctx, model, probe->n, THI_SEES_BLOCK));
    THI_TRY(thi_model_batch_next(&batch, ctx, probe->n, probe->X, probe->offset, mu, v, &clipped));
    if (probe->y == NULL) {
        THI_TRY(thi_outputs_open(&outputs, ctx, model, &plain, probe->n));
        THI_TRY(thi_outputs_make(&outputs, ctx, probe->n, NULL, mu, v));
        take(probe, &outputs);
        goto out;
    }
    THI_TRY(thi_scorer_open(&scorer, ctx, model, probe->n, true));
    THI_TRY(thi_scorer_add(&scorer, ctx, probe->n, probe->y, mu, v));
    take(probe, &scorer.outputs);
    for (int64_t i = 0; i < probe->n && probe->loss != NULL; i++) {
        probe->loss[i] = thi_scorer_loss(&scorer, i * P + probe->target);
    }
out:
    thi_model_batch_close(&batch);
    thi_outputs_close(&outputs);
    thi_scorer_close(&scorer);
    thi_free(mu);
    thi_free(v);
    return status;
}
