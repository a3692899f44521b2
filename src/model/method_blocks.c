/*
 * Fits by blocks: their settings from the options, and snapshots while they run. A snapshot is the whole model at that
 * moment, saved by a temporary name and a rename: whoever reads the file finds the old one or the new one.
 */
#include <math.h>
#include <string.h>

#include "model/specify.h"

static const double SNAPSHOT_EVERY = 1.0; /* seconds */

/* "1, 1, 0.7" */
static thiele_status read_number(void *arg, const char *part, size_t length)
{
    double **next = arg;
    bool positive = *next != NULL && thi_parse_number(part, length, *next) && **next > 0.0 && isfinite(**next);
    *next = positive ? *next + 1 : NULL;
    return positive ? THIELE_OK : THIELE_ERROR_ARGUMENT;
}

static thiele_status read_schedule(thi_fitting *f)
{
    double value[4] = {0}, *next = value;
    const char *text = f->options->schedule;
    thi_blocks_settings *s = &f->block_settings;
    if (text == NULL) {
        return THIELE_OK;
    }
    int commas = 0;
    for (const char *c = text; *c != '\0'; c++) {
        commas += *c == ',';
    }
    if (commas != 2 || thi_split_list(text, read_number, &next) != THIELE_OK || value[0] > 1.0 || value[2] > 1.0) {
        return thi_fail(
            f->ctx, THIELE_ERROR_ARGUMENT,
            "'%s' is no schedule: give rho_0, tau, kappa such as '1, 1, 0.7', all positive, rho_0 and kappa "
            "at most 1",
            text);
    }
    s->rho_0 = value[0];
    s->tau = value[1];
    s->kappa = value[2];
    return THIELE_OK;
}

static thiele_status snapshot(void *arg, thi_fitted *fitted)
{
    thi_fitting *f = arg;
    thiele_model *model = f->model;
    thi_predictor final = model->latent[0];
    thiele_status status;
    model->latent[0] = *fitted->latent;
    /* The density of y in its own units: each target was divided by its scale. */
    model->value = fitted->value - f->block_outcome.rows * log(model->encoder.target->scale);
    model->jitter = fitted->jitter;
    f->result = f->block_outcome.fit;
    THI_TRY(thi_report(f));
    thi_report_blocks(f);
    THI_TRY(thiele_model_save(model, f->ctx, f->options->snapshot));
out:
    model->latent[0] = final;
    return status;
}

thiele_status thi_specify_blocks(thi_fitting *f, const char *method)
{
    const thiele_fit_options *o = f->options;
    thi_blocks_settings *s = &f->block_settings;
    bool gradient = o->optimizer != NULL && strcmp(o->optimizer, "gradient") == 0;
    *s = (thi_blocks_settings){.blocks = o->blocks,
                               .anytime = o->anytime != 0,
                               .gradient = gradient,
                               .step_blocks = o->step_blocks,
                               .every = o->snapshot_every > 0.0 ? o->snapshot_every : SNAPSHOT_EVERY};
    if (o->optimizer != NULL && !gradient && strcmp(o->optimizer, "natural") != 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' has no optimizer '%s': its steps are natural or, for comparison, gradient", method,
                        o->optimizer);
    }
    if (!s->anytime && (gradient || o->schedule != NULL || o->step_blocks > 0 || o->snapshot != NULL)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "steps, their schedule and snapshots are those of anytime fits: add --anytime");
    }
    if (o->blocks < 0 || o->step_blocks < 0 || !(o->snapshot_every >= 0.0)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "blocks, blocks a step and the seconds between snapshots must not be negative");
    }
    if (o->snapshot != NULL) {
        s->snapshot = snapshot;
        s->snapshot_arg = f;
    }
    thiele_status status = thi_blocks_form_parse(&s->form, f->ctx, method);
    return status == THIELE_OK ? read_schedule(f) : status;
}

thiele_status thi_run_blocks(thi_fitting *f, const thi_source *source, bool learn, thi_fitted *fitted)
{
    thi_variational_settings sparse = f->settings;
    sparse.condition = !learn;
    f->driver.unit = f->model->encoder.target[f->output].scale;
    thiele_status status = thi_fit_blocks(f->ctx, &f->driver, &f->spec, source, &f->hypers, &sparse, &f->block_settings,
                                          &f->block_outcome, fitted);
    if (learn || f->driver.stopped) {
        f->result = f->block_outcome.fit;
    }
    /* The units of all rows will be taken into account: not those of rows that it is not of. */
    fitted->value += ((double)source->n - f->block_outcome.rows) * log(f->driver.unit);
    return status;
}

void thi_report_blocks(thi_fitting *f)
{
    const thi_blocks_result *r = &f->block_outcome;
    f->model->blocks = (thi_blocks_report){.anytime = f->block_settings.anytime,
                                           .blocks = r->blocks,
                                           .largest = r->largest,
                                           .inducing = r->inducing,
                                           .passes = r->passes,
                                           .evidence_rows = (int64_t)round(r->rows),
                                           .estimate = r->estimate,
                                           .held_out = r->held_error * f->driver.unit};
}
