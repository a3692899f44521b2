/*
 * Several targets, each a function of its own with Gaussian noise of its own (likelihood gaussians), by a method that
 * knows one: every target is fitted by itself, with the rows that have it and its share of the time that is left, and
 * all of them end in one model. Rows are copied once a target.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "model/replicates.h"
#include "model/specify.h"

/* What one target's fit holds beside what it shares with the others. */
typedef struct part {
    thi_fitting fitting;
    thiele_likelihood *lik;
    thi_hyper *hyper;
    int first[2], group, output;
} part;

/* The rows that have an output p, which is then the only one. row (NULL: not wanted): the table's row of each. */
static thiele_status rows_of(const thi_fitting *f, const thi_rows *rows, int p, thi_rows *own, int64_t *row)
{
    int64_t *order = NULL, count = 0;
    thiele_status status;
    *own = (thi_rows){0};
    THI_TRY(thi_alloc(f->ctx, &order, (size_t)rows->n, sizeof *order));
    for (int64_t i = 0; i < rows->n; i++) {
        order[count] = i;
        count += !isnan(rows->y[i * rows->outputs + p]);
    }
    if (count < 2) {
        status = thi_fail(f->ctx, THIELE_ERROR_DATA, "fewer than two of the %lld rows to learn from have a value",
                          (long long)rows->n);
        goto out;
    }
    THI_TRY(thi_rows_take(own, f->ctx, rows, count, order));
    for (int64_t i = 0; i < count; i++) {
        own->y[i] = own->y[i * rows->outputs + p];
        if (row != NULL) {
            row[i] = f->row[order[i]];
        }
    }
    own->outputs = 1;
out:
    thi_free(order);
    return status;
}

/* Numbers of hypers: those of the target's group, then its noise. */
static int whole_index(const thi_fitting *f, const part *p, int i)
{
    return i < p->first[1] ? f->hypers.first[p->group] + i : f->hypers.first[f->hypers.groups] + p->output;
}

/* The problem of one target: its prior and its noise at the values of the whole, and how the whole is fitted. */
static thi_fitting sub_problem(const thi_fitting *f, part *p)
{
    int count = p->first[1];
    thi_fitting own = {.ctx = f->ctx,
                       .options = f->options,
                       .model = f->model,
                       .driver = f->driver,
                       .method = f->method,
                       .goes_on = f->goes_on,
                       .steps = f->steps,
                       .settings = f->settings,
                       .outcome = f->outcome,
                       .decoupled_settings = f->decoupled_settings,
                       .output = p->output,
                       .block_settings = f->block_settings,
                       .block_outcome = f->block_outcome};
    own.spec = (thi_spec){.latents = thi_latents_view(&f->spec.latents, p->output),
                          .lik = p->lik,
                          .expectation = f->spec.expectation,
                          .steps = f->spec.steps};
    own.hypers = (thi_hypers){.count = count + 1, .hyper = p->hyper, .groups = 1, .first = p->first, .noise = count};
    if (f->settings.Z != NULL && f->settings.all_Z) {
        own.settings.Z = f->settings.Z + (int64_t)p->group * f->settings.Z_count * f->rows.dims;
        own.settings.all_Z = false;
    }
    return own;
}

static thiele_status part_open(part *p, const thi_fitting *f, int output)
{
    int g = f->spec.latents.group[output], count = f->hypers.first[g + 1] - f->hypers.first[g];
    thiele_status status;
    *p = (part){.first = {0, count}, .group = g, .output = output};
    THI_TRY(thiele_likelihood_parse(&p->lik, f->ctx, "gaussian", 1, 0));
    THI_TRY(thi_alloc(f->ctx, &p->hyper, (size_t)count + 1, sizeof *p->hyper));
    for (int i = 0; i <= count; i++) {
        p->hyper[i] = f->hypers.hyper[whole_index(f, p, i)];
    }
    p->fitting = sub_problem(f, p);
    THI_TRY(thi_hypers_apply(&p->fitting.hypers, f->ctx, &p->fitting.spec));
out:
    return status;
}

/* What was learned goes to the whole. */
static void part_close(part *p, thi_fitting *f)
{
    const thi_fitting *own = &p->fitting;
    for (int i = 0; p->hyper != NULL && i <= p->first[1]; i++) {
        f->hypers.hyper[whole_index(f, p, i)] = p->hyper[i];
    }
    if (p->output == 0 || own->block_outcome.rows > f->block_outcome.rows) {
        f->block_outcome = own->block_outcome; /* that of the target with most rows stands for all */
    }
    if (p->output == 0) {
        f->outcome = own->outcome;
    }
    bool stopped = own->result.stop == THIELE_STOP_DEADLINE || own->result.stop == THIELE_STOP_CANCELLED;
    f->result.stop =
        p->output == 0 || stopped || f->result.stop == THIELE_STOP_CONVERGED ? own->result.stop : f->result.stop;
    f->result.iterations = p->output == 0 ? own->result.iterations : f->result.iterations + own->result.iterations;
    f->result.evaluations = p->output == 0 ? own->result.evaluations : f->result.evaluations + own->result.evaluations;
    thiele_likelihood_destroy(p->lik);
    thi_free(p->hyper);
}

/* parts: that share the time that is left, this one with them. */
static thiele_status run_part(part *p, const thi_rows *own, bool learn, int parts, thi_fitted *fitted)
{
    thi_fitting *f = &p->fitting;
    double deadline = thi_budget_split(f->driver, parts);
    f->result = (thi_fit_result){0};
    thiele_status status = thi_run_one(f, own, learn, fitted);
    if (parts > 1) {
        thi_budget_restore(f->driver, deadline);
    }
    return status;
}

static thiele_status run_one_of(thi_fitting *f, const thi_rows *own, int output, bool learn, int parts,
                                thi_fitted *fitted)
{
    part p;
    thiele_status status = part_open(&p, f, output);
    if (status == THIELE_OK) {
        status = run_part(&p, own, learn, parts, fitted);
    }
    part_close(&p, f);
    return status == THIELE_OK ? THIELE_OK
                               : thi_fail_in(f->ctx, status, "target '%s'", f->model->encoder.target[output].name);
}

thiele_status thi_run_target(thi_fitting *f, const thi_rows *rows, int output, int parts, thi_fitted *fitted)
{
    thiele_status status = run_one_of(f, rows, output, true, parts, fitted);
    thi_hyper *noise = &f->hypers.hyper[f->hypers.first[f->hypers.groups] + output];
    if (noise->apart) { /* predictions of that fit alone have another */
        noise->value = noise->made;
        noise->apart = false;
    }
    return status;
}

thiele_status thi_run_each(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted)
{
    int outputs = f->spec.lik->outputs;
    thiele_status status = THIELE_OK;
    for (int j = 0; j < outputs; j++) {
        thi_rows own;
        thi_fitted one = {.latent = &fitted->latent[j], .weight = fitted->weight};
        status = rows_of(f, rows, j, &own, NULL);
        if (status == THIELE_OK) {
            status = run_one_of(f, &own, j, learn, outputs - j, &one);
        } else {
            status = thi_fail_in(f->ctx, status, "target '%s'", f->model->encoder.target[j].name);
        }
        thi_rows_free(&own);
        if (status != THIELE_OK) {
            return status;
        }
        fitted->value += one.value;
        fitted->jitter = fmax(fitted->jitter, one.jitter);
    }
    return thi_hypers_apply(&f->hypers, f->ctx, &f->spec);
}

thiele_status thi_check_each(thi_fitting *f)
{
    thi_rows own = {0};
    int64_t *row = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &row, (size_t)f->rows.n, sizeof *row));
    for (int p = 0; p < f->rows.outputs; p++) {
        status = rows_of(f, &f->rows, p, &own, row);
        if (status == THIELE_OK) {
            status = thi_report_replicates(f->ctx, own.n, own.dims, own.X, own.y, &f->model->encoder.target[p], row);
        }
        thi_rows_free(&own);
        if (status != THIELE_OK) {
            status = thi_fail_in(f->ctx, status, "target '%s'", f->model->encoder.target[p].name);
            break;
        }
    }
out:
    thi_free(row);
    return status;
}
