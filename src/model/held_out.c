/*
 * The held-out part of a fit. The parameters are learned without it, and its predictions give scores, tails and
 * calibration. Held-out rows are predicted once for all of these, a piece at a time. By a deadline they get a share of
 * what is left, since all rows are conditioned on afterwards: they are in random order, so the first are a fair sample.
 */
#include "model/held_out.h"

#include <string.h>

#include "fit/budget.h"
#include "model/calibrate.h"
#include "model/score.h"

enum { PIECE = 256 /* rows */ };

/* Rows first to first + count of them, borrowed. */
static thi_rows some_rows(const thi_rows *rows, int64_t first, int64_t count)
{
    thi_rows some = *rows;
    some.n = count;
    some.X += first * rows->dims;
    some.y += first * rows->outputs;
    some.offset = rows->offset != NULL ? rows->offset + first : NULL;
    some.weight = rows->weight != NULL ? rows->weight + first : NULL;
    return some;
}

/* The learned inducing inputs of each group serve again when the held-out rows join. */
static thiele_status keep_basis(thi_fitting *f)
{
    const thi_latents *latents = &f->spec.latents;
    const thi_predictor *first = f->model->latent;
    size_t numbers = (size_t)first->n * (size_t)first->kernel->dims;
    for (int j = 1; j < latents->count; j++) {
        if (f->model->latent[j].n != first->n) {
            return THIELE_OK; /* each target by itself, some with fewer: they are chosen again */
        }
    }
    thi_free(f->Z);
    f->Z = NULL;
    thiele_status status = thi_alloc(f->ctx, &f->Z, numbers * (size_t)latents->groups, sizeof *f->Z);
    for (int j = 0; status == THIELE_OK && j < latents->count; j++) {
        memcpy(f->Z + numbers * (size_t)latents->group[j], f->model->latent[j].basis, numbers * sizeof *f->Z);
    }
    f->settings.Z = f->Z;
    f->settings.Z_count = first->n;
    f->settings.all_Z = true;
    return status;
}

/* What is made of held-out rows. scorer: NULL where they are not scored. */
typedef struct harvest {
    thi_scorer *scorer;
    thi_unseen *unseen;
    double *mu, *v; /* of a piece */
} harvest;

static thiele_status predict_pieces(thi_fitting *f, const thi_rows *test, const harvest *to)
{
    double until = thi_seconds() + thi_budget_part(f->driver, THI_SHARE_SCORES);
    thi_model_batch batch = {0};
    int64_t clipped = 0, done = 0;
    thiele_status status;
    THI_TRY(thi_model_batch_open(&batch, f->ctx, f->model, thi_least(PIECE, test->n), THI_SEES_NEAREST));
    while (done < test->n && (done == 0 || thi_seconds() < until)) {
        thi_rows piece = some_rows(test, done, thi_least(PIECE, test->n - done));
        THI_TRY(thi_model_batch_next(&batch, f->ctx, piece.n, piece.X, piece.offset, to->mu, to->v, &clipped));
        if (to->scorer != NULL) {
            THI_TRY(thi_scorer_add(to->scorer, f->ctx, piece.n, piece.y, to->mu, to->v));
        }
        THI_TRY(thi_unseen_add(to->unseen, f, &piece, to->mu, to->v));
        done += piece.n;
    }
    if (done < test->n) {
        thi_log(f->ctx, THIELE_LOG_INFO, "the deadline left time for %lld of the %lld held-out rows", (long long)done,
                (long long)test->n);
    }
out:
    thi_model_batch_close(&batch);
    return status;
}

static thiele_status predict_held(thi_fitting *f, const thi_rows *test, bool scores, thi_unseen *unseen)
{
    /* Quantiles by search would take longer than the deadline allows, and calibration makes others of them. */
    thi_scoring how = f->options->result.calibrate && !thi_has_quantiles(f->model) ? THI_SCORE_QUICKLY : THI_SCORE_ALL;
    size_t latents = (size_t)thi_least(PIECE, test->n) * (size_t)(f->model->latents * f->model->components);
    thi_scorer scorer = {0};
    harvest to = {.scorer = scores ? &scorer : NULL, .unseen = unseen};
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &to.mu, latents, sizeof *to.mu));
    THI_TRY(thi_alloc(f->ctx, &to.v, latents, sizeof *to.v));
    if (scores) {
        THI_TRY(thi_scorer_open(&scorer, f->ctx, f->model, test->n, how));
    }
    THI_TRY(predict_pieces(f, test, &to));
    if (scores) {
        THI_TRY(thi_scorer_finish(&scorer, f->ctx, f->model->holdout));
    }
out:
    thi_scorer_close(&scorer);
    thi_free(to.mu);
    thi_free(to.v);
    return status;
}

/* The model without the last `held` of the rows, learned or only conditioned, and its predictions of them. */
static thiele_status learn_and_score(thi_fitting *f, const thi_rows *rows, bool learn, thi_unseen *unseen)
{
    const thi_rows train = some_rows(rows, 0, rows->n - f->held), test = some_rows(rows, train.n, f->held);
    double deadline = f->keeps ? thi_budget_lend(f->driver, THI_SHARE_UNSCORED)
                      : learn  ? thi_budget_lend(f->driver, THI_SHARE_HOLDOUT)
                               : f->driver->deadline;
    thiele_status status = thi_run_method(f, &train, learn, NULL, NULL);
    bool cut = !learn && f->method->partial && thi_driver_stopped(f->driver);
    if (learn) {
        thi_budget_restore(f->driver, deadline);
    }
    if (status != THIELE_OK || cut) {
        return status; /* rows that were not reached say nothing of a posterior of all */
    }
    status = predict_held(f, &test, learn, unseen);
    return status == THIELE_OK && learn && f->method->objective == NULL ? keep_basis(f) : status;
}

/*
 * The parameters are learned without the first part. Further parts, which calibration asks for, are held out in turn at
 * the values that were learned. Of the time that is left, the last posterior gets as much as each of these.
 */
static thiele_status run_fold(thi_fitting *f, int fold, int64_t *order, thi_unseen *unseen)
{
    thi_rows shuffled = {0};
    bool learn = fold == 0;
    double deadline = learn ? f->driver->deadline : thi_budget_split(f->driver, f->folds - fold + 1);
    thiele_status status = thi_rows_take(&shuffled, f->ctx, &f->rows, f->rows.n, order);
    if (status == THIELE_OK) {
        status = learn_and_score(f, &shuffled, learn, unseen);
    }
    if (!learn) {
        thi_budget_restore(f->driver, deadline);
    }
    thi_rows_free(&shuffled);
    return status;
}

thiele_status thi_learn_with_holdout(thi_fitting *f)
{
    int64_t n = f->rows.n;
    int64_t *order = NULL;
    thi_unseen unseen = {0};
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &order, 2 * (size_t)n, sizeof *order));
    THI_TRY(thi_unseen_open(&unseen, f, f->held * f->folds));
    thi_random_permutation((thi_stream){f->ctx->seed, THI_RANDOM_SPLIT, 0}, n, order);
    memcpy(order + n, order, (size_t)n * sizeof *order);
    THI_TRY(run_fold(f, 0, order, &unseen));
    for (int fold = 1; fold < f->folds && !thi_driver_stopped(f->driver); fold++) {
        THI_TRY(run_fold(f, fold, order + fold * f->held, &unseen));
    }
    THI_TRY(thi_unseen_learn(&unseen, f, false));
out:
    thi_unseen_close(&unseen);
    thi_free(order);
    return status;
}
