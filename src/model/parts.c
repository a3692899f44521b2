/* Several targets, each with a likelihood and a model of its own: one fit for each, with what it costs. */
#include "model/parts.h"

#include <string.h>

#include "model/specify.h"

/* --- how many --------------------------------------------------------------------------------------------------------
 */

/* Whether a likelihood that is given once is one of all targets together, or goes to each of them. */
static thiele_status is_of_all(thiele_context *ctx, const thiele_fit_options *options, bool *all)
{
    static const char plugin[] = "plugin:";
    const thi_likelihood_ops *ops;
    thiele_likelihood *loaded = NULL;
    thiele_status status = THIELE_OK;
    *all = true;
    if (options->model.own != NULL) {
        *all = options->model.own->outputs > 1;
    } else if (options->model.likelihood != NULL && strncmp(options->model.likelihood, plugin, strlen(plugin)) == 0) {
        THI_TRY(thiele_likelihood_load(&loaded, ctx, options->model.likelihood + strlen(plugin)));
        *all = loaded->outputs > 1;
    } else if (options->model.likelihood != NULL) {
        THI_TRY(thi_likelihood_find(ctx, options->model.likelihood, &ops));
        *all = ops->several;
    }
out:
    thiele_likelihood_destroy(loaded);
    return status;
}

thiele_status thi_parts_count(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options,
                              int *parts)
{
    int targets = thi_count_targets(table, options->columns.target);
    int texts = options->model.likelihood != NULL ? thi_count_texts(options->model.likelihood) : 1;
    bool all = true;
    *parts = 0;
    if (texts > 1 && texts != targets) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "%d likelihoods were given for %d target%s: give one for all, or one for each, separated "
                        "by ';'",
                        texts, targets, targets == 1 ? "" : "s");
    }
    thiele_status status = targets > 1 && texts == 1 ? is_of_all(ctx, options, &all) : THIELE_OK;
    *parts = texts > 1 || !all ? targets : 0;
    return status;
}

/* --- the whole -------------------------------------------------------------------------------------------------------
 */

thiele_status thi_parts_alloc(thiele_model **out, thiele_context *ctx, int parts)
{
    thiele_model *model = NULL;
    thiele_status status;
    *out = NULL;
    THI_TRY(thi_alloc(ctx, &model, 1, sizeof *model));
    THI_TRY(thi_alloc(ctx, &model->part, (size_t)parts, sizeof(thiele_model *)));
    model->parts = parts;
    THI_TRY(thi_alloc(ctx, &model->holdout, (size_t)parts, sizeof *model->holdout));
    THI_TRY(thi_alloc(ctx, &model->stream.all, (size_t)parts, sizeof *model->stream.all));
    THI_TRY(thi_alloc(ctx, &model->stream.recent, (size_t)parts, sizeof *model->stream.recent));
    *out = model;
    model = NULL;
out:
    thiele_model_destroy(model);
    return status;
}

/* A fit that was stopped was stopped in all of its parts; else one that did not converge stands for all. */
static thiele_stop worse(thiele_stop a, thiele_stop b)
{
    static const int rank[] = {[THIELE_STOP_FIXED] = 0,
                               [THIELE_STOP_CONVERGED] = 1,
                               [THIELE_STOP_ITERATIONS] = 2,
                               [THIELE_STOP_DEADLINE] = 3,
                               [THIELE_STOP_CANCELLED] = 4};
    return rank[a] > rank[b] ? a : b;
}

thiele_status thi_parts_gather(thiele_model *model, thiele_context *ctx)
{
    thi_stream_report *all = &model->stream;
    model->stop = THIELE_STOP_FIXED;
    model->latents = 0;
    all->rows = all->skipped = 0;
    all->stop = THIELE_STOP_CONVERGED;
    for (int p = 0; p < model->parts; p++) {
        const thiele_model *part = model->part[p];
        const thi_stream_report *own = &part->stream;
        if (part->encoder.targets != 1) {
            return thi_fail(ctx, THIELE_ERROR_FORMAT, "one of its parts does not have exactly one target");
        }
        model->stop = worse(model->stop, part->stop);
        model->latents += part->latents;
        model->holdout[p] = part->holdout[0];
        all->rows = own->rows > all->rows ? own->rows : all->rows; /* each row once, whichever targets it has */
        all->skipped = own->skipped > all->skipped ? own->skipped : all->skipped;
        all->forget = own->forget;
        all->stop = worse(all->stop, own->stop);
        all->all[p] = own->all != NULL ? own->all[0] : (thiele_scores){0};
        all->recent[p] = own->recent != NULL ? own->recent[0] : (thiele_scores){0};
    }
    return THIELE_OK;
}

thiele_status thi_parts_refuse(const thiele_model *model, thiele_context *ctx, const char *what)
{
    return model->parts == 0 ? THIELE_OK
                             : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                                        "%s, but each of the %d targets here has a model of its own: fit one "
                                        "target alone (in a program: thiele_model_part)",
                                        what, model->parts);
}

/* --- fitting ---------------------------------------------------------------------------------------------------------
 */

static thiele_status check_options(thiele_context *ctx, const thiele_fit_options *o)
{
    const char *what = o->prior.share_kernel             ? "share a kernel (that is for Gaussian noise)"
                       : o->result.snapshot_file != NULL ? "save snapshots before all of them are there"
                                                         : NULL;
    return what == NULL ? THIELE_OK
                        : thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                                   "targets with separate likelihoods are fitted one by one, and cannot %s", what);
}

/* What is wrong with the options of any part is said before the first is fitted. */
static thiele_status check_parts(const thi_choice *c, const thiele_fit_options *options)
{
    thiele_status status = THIELE_OK;
    for (int p = 0; p < c->targets && status == THIELE_OK; p++) {
        thi_part_options part;
        status = thi_part_options_make(&part, c, options, p);
        thi_part_options_clear(&part);
        status =
            status == THIELE_OK ? status : thi_fail_in(c->ctx, status, "target '%s'", c->table->name[c->target[p]]);
    }
    return status;
}

static thiele_status fit_part(thiele_model *model, const thi_choice *c, const thiele_fit_options *options, int p,
                              double until)
{
    static const double NEVER_LESS = 0.01; /* seconds */
    thi_part_options part = {0};
    thiele_context *ctx = c->ctx;
    const char *name = c->table->name[c->target[p]];
    thiele_status status = thi_part_options_make(&part, c, options, p);
    if (until > 0.0) {
        double left = (until - thi_seconds()) / (model->parts - p);
        part.fit.stopping.deadline = left > NEVER_LESS ? left : NEVER_LESS;
    }
    if (status == THIELE_OK) {
        ctx->about = name;
        status = thi_fit_one(&model->part[p], ctx, c->table, &part.fit, true);
        ctx->about = NULL;
    }
    thi_part_options_clear(&part);
    return status == THIELE_OK ? status : thi_fail_in(ctx, status, "target '%s'", name);
}

thiele_status thi_parts_fit(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                            const thiele_fit_options *options, int parts)
{
    double until = options->stopping.deadline > 0.0 ? thi_seconds() + options->stopping.deadline : 0.0;
    thi_choice choice = {.table = table, .ctx = ctx};
    thi_column_options columns = thi_columns_of(options);
    thiele_model *model = NULL;
    thiele_status status;
    columns.partition = NULL;
    THI_TRY(check_options(ctx, options));
    THI_TRY(thi_choose_columns(&choice, &columns));
    THI_TRY(check_parts(&choice, options));
    THI_TRY(thi_parts_alloc(&model, ctx, parts));
    for (int p = 0; p < parts; p++) {
        THI_TRY(fit_part(model, &choice, options, p, until));
    }
    THI_TRY(thi_parts_gather(model, ctx));
    *out = model;
    model = NULL;
out:
    thiele_model_destroy(model);
    thi_choice_free(&choice);
    return status;
}
