/*
 * Fits by blocks: their settings from the options, and snapshots while they run. A snapshot is the whole model at that
 * moment, saved by a temporary name and a rename: whoever reads the file finds the old one or the new one.
 */
#include <math.h>
#include <string.h>

#include "fit/predictive.h"
#include "model/methods.h"
#include "model/specify.h"

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
    const char *text = f->options->blocks.schedule;
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
            "'%s' is not a schedule: give rho_0, tau, kappa such as '1, 1, 0.7', all positive, rho_0 and kappa "
            "at most 1",
            text);
    }
    s->rho_0 = value[0];
    s->tau = value[1];
    s->kappa = value[2];
    return THIELE_OK;
}

static thi_blocks_report describe(const thi_fitting *f)
{
    const thi_blocks_result *r = &f->block_outcome;
    return (thi_blocks_report){.anytime = f->block_settings.anytime,
                               .blocks = r->blocks,
                               .largest = r->largest,
                               .inducing = r->inducing,
                               .passes = r->passes,
                               .evidence_rows = (int64_t)round(r->rows),
                               .estimate = r->estimate,
                               .held_out = r->held_error * f->driver->unit,
                               .borders = r->borders,
                               .jump_median = r->jump_median,
                               .jump_largest = r->jump_largest};
}

static thiele_status snapshot(void *arg, thi_fitted *fitted)
{
    const thi_fitting *f = arg;
    thiele_model model = *f->model;
    /* The density of y in its own units: each target was divided by its scale. */
    model.value = fitted->value - f->block_outcome.rows * log(model.encoder.target->scale);
    model.blocks = describe(f);
    return thi_save_snapshot(f, &f->block_outcome.fit, fitted, &model);
}

static thiele_status configure(thi_fitting *f)
{
    /* A sum of models has no name of its own. */
    const char *asked = f->options->model.method,
               *method = asked != NULL && thi_blocks_is_form(asked) ? asked : f->method->name;
    const thiele_fit_options *o = f->options;
    thi_blocks_settings *s = &f->block_settings;
    bool gradient = o->optimiser.optimiser != NULL && strcmp(o->optimiser.optimiser, "gradient") == 0;
    *s = (thi_blocks_settings){.blocks = o->blocks.blocks,
                               .column = f->model->encoder.key.name,
                               .anytime = o->blocks.anytime != 0,
                               .gradient = gradient,
                               .step_blocks = o->blocks.step_blocks,
                               .snapshot = thi_fitting_snapshot(f, snapshot)};
    if (o->optimiser.optimiser != NULL && !gradient && strcmp(o->optimiser.optimiser, "natural") != 0) {
        return thi_fail(
            f->ctx, THIELE_ERROR_ARGUMENT,
            "method '%s' does not have the optimiser '%s': its steps are natural or, for comparison, gradient", method,
            o->optimiser.optimiser);
    }
    if (!s->anytime &&
        (gradient || o->blocks.schedule != NULL || o->blocks.step_blocks > 0 || o->result.snapshot_file != NULL)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "only anytime fits have steps, a schedule and snapshots: add `anytime`");
    }
    if (o->columns.partition != NULL && o->blocks.blocks > 0) {
        return thi_fail(
            f->ctx, THIELE_ERROR_ARGUMENT,
            "blocks are either the values of column '%s' (`partition`) or as many as `blocks` says, not both",
            o->columns.partition);
    }
    f->goes_on = s->anytime;
    thiele_status status = thi_blocks_form_parse(&s->form, f->ctx, method);
    if (status == THIELE_OK && o->columns.partition != NULL && s->form.weight[THI_RESIDUAL_BLOCK] == 0.0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "blocks of method '%s' are only portions of work: a partition is for pitc and pic", method);
    }
    return status == THIELE_OK ? read_schedule(f) : status;
}

/* Whether the noise of q stands for what its basis leaves unexplained, which predictions count once more. */
static bool counts_twice(const thi_blocks_form *form)
{
    return form->weight[THI_RESIDUAL_NONE] == 1.0 && form->conditional == THI_CONDITIONAL_FULL;
}

static thiele_status run(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted)
{
    thi_variational_settings sparse = f->settings;
    thi_source memory;
    const thi_source *source = thi_fitting_source(f, rows, &memory);
    thi_problem problem = thi_fitting_problem(f, source);
    thiele_status status;
    sparse.condition = !learn;
    f->driver->unit = f->model->encoder.target[f->output].scale;
    THI_TRY(thi_predictive_undo(f->ctx, &f->spec, &f->hypers));
    status = thi_fit_blocks(&problem, &sparse, &f->block_settings, &f->block_outcome, fitted);
    if (learn || f->driver->stopped) {
        f->result = f->block_outcome.fit;
    }
    THI_TRY(status);
    /* The units of all rows will be taken into account: not those of rows that it is not of. */
    fitted->value += ((double)source->n - f->block_outcome.rows) * log(f->driver->unit);
    if (counts_twice(&f->block_settings.form)) {
        THI_TRY(thi_predictive_noise(f->ctx, source, &f->spec, &f->hypers, fitted->latent));
    }
out:
    return status;
}

static thiele_status report(thi_fitting *f)
{
    f->model->blocks = describe(f);
    if (f->model->blocks.passes == 0.0) {
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "the deadline came before any block was learned: the model is little more than its first guesses");
    }
    return THIELE_OK;
}

enum {
    CAN = THI_CAN_STREAM | THI_CAN_SNAPSHOT | THI_CAN_JOINT | THI_CAN_DEADLINE,
    TAKES = THI_TAKES_BASIS | THI_TAKES_OPTIMIZER | THI_TAKES_EPOCHS | THI_TAKES_BLOCKS | THI_TAKES_SNAPSHOT |
            THI_TAKES_EXPECTATION
};

/* Those with a block prior take any likelihood by sites. */
enum { ANY = THI_CAN_LIKELIHOODS | THI_CAN_LATENTS | THI_CAN_WEIGHTS };

static const thi_lack lacks[] = {{THI_CAN_LIKELIHOODS, THI_WHY_VARIATIONAL},
                                 {THI_CAN_LATENTS, THI_WHY_ONE_FUNCTION},
                                 {THI_CAN_TARGETS, THI_WHY_APART},
                                 {THI_CAN_LEAVE_OUT, THI_WHY_EXACT},
                                 {THI_CAN_WEIGHTS, THI_WHY_ONCE},
                                 {THI_CAN_RANKS, THI_WHY_ONE_PROCESS},
                                 {0}};

/* A model with a local part keeps all rows; blocks may be half as large again as they are on average. */
static double bytes(const thi_fitting *f, int64_t n)
{
    enum { INDUCING = 300, LARGEST = 750 };
    thi_sparse_shape shape = {
        .M = thi_least(n, INDUCING), .largest = thi_least(n, LARGEST), .gradients = true, .sites = true};
    shape.weight[THI_RESIDUAL_BLOCK] = 1.0;
    return 4.0 * sizeof(double) * (double)n * (f->model->encoder.dims + 4.0) +
           f->spec.lik->latents * thi_sparse_bytes(&shape, f->ctx->threads);
}

#define BLOCK_METHOD(symbol, ability, value, text)                                                                     \
    const thi_method thi_method_##symbol = {.name = #symbol,                                                           \
                                            .words = text,                                                             \
                                            .can = CAN | (ability),                                                    \
                                            .lacks = lacks,                                                            \
                                            .takes = TAKES,                                                            \
                                            .evidence = value,                                                         \
                                            .partial = true,                                                           \
                                            .configure = configure,                                                    \
                                            .run = run,                                                                \
                                            .report = report}
BLOCK_METHOD(sor, THI_CAN_UPDATE, "bound", "a subset of regressors: no variance beyond the basis");
BLOCK_METHOD(dtc, THI_CAN_UPDATE, "bound", "the same with the whole variance in predictions");
BLOCK_METHOD(fitc, ANY | THI_CAN_UPDATE, "approximate_log_evidence", "each row has what the basis leaves unexplained");
BLOCK_METHOD(fic, ANY | THI_CAN_UPDATE, "approximate_log_evidence", "the same for rows and predictions alike");
BLOCK_METHOD(pitc, ANY | THI_CAN_UPDATE, "approximate_log_evidence",
             "blocks of rows share what the basis leaves unexplained");
const thi_method thi_method_pic = {.name = "pic",
                                   .words = "and predictions see the rows of their block",
                                   .can = CAN | ANY | THI_CAN_UPDATE,
                                   .lacks = lacks,
                                   .takes = TAKES,
                                   .most = INT64_MAX,
                                   .why = "the table is large, and rows near a prediction say most about it",
                                   .evidence = "approximate_log_evidence",
                                   .partial = true,
                                   .bytes = bytes,
                                   .configure = configure,
                                   .run = run,
                                   .report = report};
