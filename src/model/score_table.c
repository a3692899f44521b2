/* Scores of the predictions of a table, and losses row by row. */
#include <math.h>
#include <string.h>

#include "model/predict_pass.h"
#include "model/score.h"

typedef struct scoring {
    thi_scorer scorer;
    thi_losses to;
} scoring;

static thiele_status collect(void *arg, thi_predict_pass *p, int passes)
{
    scoring *s = arg;
    (void)passes;
    int P = s->scorer.outputs.outputs;
    int64_t before = s->scorer.rows * P;
    thiele_status status = thi_scorer_add(&s->scorer, p->ctx, p->kept, p->y, p->mu, p->v);
    for (int64_t i = 0; status == THIELE_OK && s->to.loss != NULL && i < p->kept * P; i++) {
        int64_t at = p->row[i / P] * s->to.stride + i % P;
        s->to.loss[at] = thi_scorer_loss(&s->scorer, before + i);
        if (s->to.square != NULL) {
            s->to.square[at] = thi_scorer_square(&s->scorer, before + i);
        }
    }
    return status;
}

/* One model with one likelihood. */
static thiele_status score_table(scoring *s, const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_predict_options *options, thi_scoring how)
{
    thi_predict_pass p = {0};
    thiele_status status;
    THI_TRY(thi_predict_pass_open(&p, model, ctx, table, options, true));
    THI_TRY(thi_scorer_open(&s->scorer, ctx, model, table->rows, how));
    THI_TRY(thi_predict_each_block(&p, 1, collect, s));
out:
    thi_predict_pass_close(&p);
    return status;
}

/* The losses of the table and, where they are wanted, the scores. */
static thiele_status find_losses(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_predict_options *options, thi_losses to, thiele_scores *scores)
{
    scoring s = {.to = to};
    thi_scoring how = scores != NULL ? THI_SCORE_ALL : to.square != NULL ? THI_SCORE_QUICKLY : THI_SCORE_LOSSES;
    thiele_status status;
    THI_TRY(score_table(&s, model, ctx, table, options, how));
    if (scores != NULL) {
        THI_TRY(thi_scorer_finish(&s.scorer, ctx, scores));
    }
out:
    thi_scorer_close(&s.scorer);
    return status;
}

thiele_status thi_model_losses(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                               const thiele_predict_options *options, double *loss, double *square,
                               thiele_scores *scores)
{
    int64_t targets = thiele_model_targets(model);
    thi_losses to = {loss, square, targets};
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < table->rows * targets && loss != NULL; i++) {
        loss[i] = NAN;
    }
    if (model->parts == 0) {
        return find_losses(model, ctx, table, options, to, scores);
    }
    for (int i = 0; i < model->parts && status == THIELE_OK; i++) {
        to.loss = loss != NULL ? loss + i : NULL;
        to.square = square != NULL ? square + i : NULL;
        status = find_losses(model->part[i], ctx, table, options, to, scores != NULL ? scores + i : NULL);
    }
    return status;
}

thiele_status thiele_model_score(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                 const thiele_predict_options *options, thiele_scores *scores)
{
    THI_NEED(ctx, model && ctx && table && scores);
    thiele_predict_options taken;
    thiele_status status = thi_predict_take(ctx, options, &taken);
    return status == THIELE_OK ? thi_model_losses(model, ctx, table, &taken, NULL, NULL, scores) : status;
}

thiele_status thiele_model_confusion(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                     const thiele_predict_options *options, thiele_scores *scores, int64_t *confusion)
{
    THI_NEED(ctx, model && ctx && table && scores && confusion);
    scoring s = {0};
    thiele_predict_options taken;
    thiele_status status;
    if (thiele_model_classes(model) == 0) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "the target '%s' does not have labels, and so no confusion matrix",
                        thiele_model_target(model, 0));
    }
    THI_TRY(thi_predict_take(ctx, options, &taken));
    THI_TRY(score_table(&s, model, ctx, table, &taken, THI_SCORE_ALL));
    THI_TRY(thi_scorer_finish(&s.scorer, ctx, scores));
    thi_scorer_confusion(&s.scorer, confusion);
out:
    thi_scorer_close(&s.scorer);
    return status;
}

thiele_status thiele_model_log_densities(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                         const thiele_predict_options *options, double *out)
{
    THI_NEED(ctx, model && ctx && table && out);
    thiele_predict_options taken;
    thiele_status status = thi_predict_take(ctx, options, &taken);
    if (status != THIELE_OK) {
        return status;
    }
    status = thi_model_losses(model, ctx, table, &taken, out, NULL, NULL);
    for (int64_t i = 0; i < table->rows * thiele_model_targets(model); i++) {
        out[i] = -out[i];
    }
    return status;
}

thiele_status thi_model_score_rows(const thiele_model *model, thiele_context *ctx, const thi_rows *rows,
                                   thi_scoring how, thiele_scores *scores)
{
    size_t latents = (size_t)rows->n * (size_t)(model->latents * model->components);
    thi_scorer scorer = {0};
    double *mu = NULL;
    double *v = NULL;
    int64_t clipped = 0;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &mu, latents, sizeof *mu));
    THI_TRY(thi_alloc(ctx, &v, latents, sizeof *v));
    THI_TRY(thi_scorer_open(&scorer, ctx, model, rows->n, how));
    THI_TRY(thi_model_marginals(model, ctx, rows->n, rows->X, rows->offset, mu, v, &clipped));
    THI_TRY(thi_scorer_add(&scorer, ctx, rows->n, rows->y, mu, v));
    THI_TRY(thi_scorer_finish(&scorer, ctx, scores));
out:
    thi_scorer_close(&scorer);
    thi_free(mu);
    thi_free(v);
    return status;
}
