/* Whether a model beats a constant at its own rows, and which limits its fit ran into. */
#include "model/worth.h"

#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/explore.h"
#include "model/units.h"
#include "posterior/local.h"

enum { ROWS = 1000, BLOCKS = 4, FEW = 100 };
/* Of a model with a local part, whose predictions take time by the column. */
enum { ROWS_OF_WIDE = 300, WIDE = 100 };
/*
 * Nats per row: a model of pure noise is as good as the constant, but for chance, and for what it costs to call
 * Gaussian noise by another name (0.07 for laplace).
 */
static const double CHANCE = 0.05, OTHER_NOISE = 0.1;

/* -sum p log p of the labels: what their frequencies score. */
static double label_entropy(const thi_rows *rows, int output)
{
    double entropy = 0.0;
    for (int64_t i = 0; i < rows->n; i++) {
        int64_t same = 0;
        for (int64_t j = 0; j < rows->n; j++) {
            same += rows->y[j * rows->outputs + output] == rows->y[i * rows->outputs + output];
        }
        entropy -= log((double)same / (double)rows->n) / (double)rows->n;
    }
    return entropy;
}

/*
 * Nats per row of counts by a geometric law whose rate is the same for each unit of exposure: tails long enough that no
 * sound model of counts is worse.
 */
static double geometric_loss(const thi_rows *rows, int output)
{
    double total = 0.0, exposure = 0.0, loss = 0.0, counted = 0.0;
    for (int64_t i = 0; i < rows->n; i++) {
        double y = rows->y[i * rows->outputs + output];
        if (!isnan(y)) {
            total += y;
            exposure += rows->offset != NULL ? exp(rows->offset[i]) : 1.0;
        }
    }
    for (int64_t i = 0; i < rows->n; i++) {
        double y = rows->y[i * rows->outputs + output];
        double mean = (rows->offset != NULL ? exp(rows->offset[i]) : 1.0) * total / exposure;
        if (!isnan(y)) {
            loss += log1p(mean) + (y > 0.0 ? y * log1p(1.0 / mean) : 0.0);
            counted += 1.0;
        }
    }
    return loss / counted;
}

/* What a model without inputs would lose more, or less, per row; NaN where there is no yardstick. */
static double excess_of(const thiele_model *model, const thi_rows *rows, int p, const thiele_scores *scores)
{
    if (thi_model_has_classes(model)) {
        return scores->nlp - label_entropy(rows, p);
    }
    return model->lik->ops->support == THI_SUPPORT_COUNT ? scores->nlpd - geometric_loss(rows, p) : scores->msll;
}

/* Rows of a few blocks: a model with a local part makes a factor of every block that it is asked about. */
static thiele_status sample_blocks(const thi_local *local, thiele_context *ctx, thi_rows *out)
{
    const thi_partition *p = &local->partition;
    const thi_rows all = {.n = p->n, .dims = p->D, .outputs = 1, .X = local->X, .y = local->y};
    int64_t *row = NULL, count = 0, most = p->D < WIDE ? ROWS : ROWS_OF_WIDE;
    thi_shuffle order;
    thiele_status status = thi_alloc(ctx, &row, (size_t)most, sizeof *row);
    if (status != THIELE_OK) {
        return status;
    }
    thi_shuffle_open(&order, (thi_stream){ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_JUDGE}, p->blocks);
    for (int64_t b = 0; b < p->blocks && b < BLOCKS; b++) {
        const int64_t *start = p->start + thi_shuffle_at(&order, b);
        for (int64_t i = start[0]; i < start[1] && count < most; i++) {
            row[count++] = i;
        }
    }
    status = thi_rows_take(out, ctx, &all, count, row);
    thi_free(row);
    return status;
}

static thiele_status sample_rows(thi_fitting *f, thi_rows *out)
{
    const thi_local *local = f->model->latent[0].local;
    thi_source memory;
    bool several = f->model->encoder.targets > 1;
    if (local != NULL && !several && f->rows.offset == NULL) { /* blocks do not keep offsets */
        return sample_blocks(local, f->ctx, out);
    }
    thi_source_of_rows(&memory, &f->rows);
    return thi_source_sample(f->streamed ? &f->stream.source : &memory, f->ctx, local != NULL ? FEW : ROWS,
                             THI_SAMPLE_JUDGE, out);
}

thiele_status thi_is_worse_than_constant(thi_fitting *f, bool *worse)
{
    const thiele_model *model = f->model;
    int targets = model->encoder.targets;
    bool labels = thi_model_has_classes(model);
    double margin = CHANCE + (labels || thi_is_gaussian(model->lik) ? 0.0 : OTHER_NOISE);
    thi_rows rows = {0};
    thiele_scores *scores = NULL;
    thiele_status status;
    *worse = false;
    THI_TRY(thi_alloc(f->ctx, &scores, (size_t)targets, sizeof *scores));
    THI_TRY(sample_rows(f, &rows));
    THI_TRY(thi_model_score_rows(model, f->ctx, &rows, THI_SCORE_LOSSES, scores));
    for (int p = 0; p < targets; p++) {
        *worse = *worse || excess_of(model, &rows, p, &scores[p]) > margin;
    }
out:
    thi_rows_free(&rows);
    thi_free(scores);
    return status;
}

/* --- limits ----------------------------------------------------------------------------------------------------------
 */

static void report_parameter(const thi_fitting *f, int i)
{
    static const double NEAR = 1e-3; /* of a logarithm */
    const thi_hyper *h = &f->hypers.hyper[i];
    if (h->fixed || !h->log) {
        return;
    }
    if (h->ceiling != 0.0 && h->value > h->ceiling - NEAR) {
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "%s ended at its upper limit, %.4g: the rows say only that it is large; set it, or give it a prior",
                h->name, thi_units_value(f, i));
    } else if (strncmp(h->name, "noise", 5) == 0 && thi_hyper_number(h) < 2.0 * h->floor) {
        thi_log(
            f->ctx, THIELE_LOG_WARNING,
            "%s ended at its lower limit, %.4g: the targets seem to be free of noise; if they are not, set it, or give "
            "it a prior",
            h->name, thi_units_value(f, i));
    }
}

void thi_report_limits(const thi_fitting *f)
{
    for (int i = 0; i < f->hypers.count; i++) {
        report_parameter(f, i);
    }
    if (f->result.stop == THIELE_STOP_ITERATIONS && f->options->stopping.iterations == 0 &&
        f->options->stopping.epochs == 0 && !f->options->blocks.schedule && !f->method->limited) {
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "the fit ended at its step limit and not at an optimum: give it a longer "
                "deadline, or more iterations or epochs");
    }
}
