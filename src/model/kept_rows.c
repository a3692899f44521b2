/*
 * The rows that a model keeps for updates to learn its parameters from (fit/kept.h): those of a fit, or a random part
 * of them, and their way to files and back.
 */
#include <math.h>
#include <string.h>

#include "fit/explore.h"
#include "model/kept_rows.h"
#include "model/learner.h"

thiele_status thi_keep_rows(thi_fitting *f)
{
    thiele_model *model = f->model;
    int64_t asked = f->options->result.keep,
            most = asked > 0 ? asked : thi_kept_default(model->encoder.dims + model->encoder.targets);
    thi_source memory;
    thi_rows some = {0};
    bool none = asked < 0 || model->encoder.weights != NULL || (asked == 0 && f->options->inducing.compact);
    if (none || (f->method->can & THI_CAN_UPDATE) == 0 || !thi_learner_has_parameters(model)) {
        return THIELE_OK;
    }
    thiele_status status =
        thi_source_sample(thi_fitting_source(f, &f->rows, &memory), f->ctx, most, THI_SAMPLE_KEEP, &some);
    if (status == THIELE_OK) {
        status = thi_kept_take(&model->kept, f->ctx, &some, most);
        model->kept.fixed_basis = f->options->inducing.fix_inducing != 0;
    }
    thi_rows_free(&some);
    return status;
}

/* --- files -----------------------------------------------------------------------------------------------------------
 */

int thi_kept_to_json(const thiele_model *model, json_t *json)
{
    const thi_kept *k = &model->kept;
    if (k->rows.n == 0) {
        return 0;
    }
    return json_object_set_new(json, "kept",
                               json_pack("{s:I, s:I, s:I, s:b, s:b, s:I, s:I}", "rows", (json_int_t)k->rows.n, "most",
                                         (json_int_t)k->most, "next", (json_int_t)k->next, "sites", k->lambda != NULL,
                                         "fixed_basis", (int)k->fixed_basis, "begun", (json_int_t)model->schedule.begun,
                                         "last", (json_int_t)model->schedule.last));
}

/* A count up to a limit, or -1. */
static int64_t count_of(const json_t *json, const char *name, int64_t most)
{
    const json_t *field = json_object_get(json, name);
    int64_t count = json_is_integer(field) ? json_integer_value(field) : -1;
    return count > most ? -1 : count;
}

thiele_status thi_kept_from_json(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    static const int64_t LARGEST = INT64_C(1) << 53;
    const json_t *from = json_object_get(json, "kept"), *sites = json_object_get(from, "sites"),
                 *fixed = json_object_get(from, "fixed_basis");
    thi_kept *k = &model->kept;
    if (from == NULL) {
        return THIELE_OK;
    }
    *k = (thi_kept){.most = count_of(from, "most", THI_KEPT_MOST), .latents = json_is_true(sites) ? model->latents : 0};
    k->rows.n = count_of(from, "rows", k->most);
    k->fixed_basis = json_is_true(fixed);
    k->next = count_of(from, "next", k->most - 1);
    model->schedule = (thi_schedule){
        .rows = model->stream.rows, .begun = count_of(from, "begun", LARGEST), .last = count_of(from, "last", LARGEST)};
    bool full = k->rows.n == k->most;
    bool good = k->rows.n >= 1 && k->next >= 0 && (full || k->next == k->rows.n) && json_is_boolean(sites) &&
                json_is_boolean(fixed) && model->schedule.begun >= 0 && model->schedule.last >= 0;
    if (!good) {
        *k = (thi_kept){0};
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field 'kept' makes no sense");
    }
    return THIELE_OK;
}

/* Whether rows have weights to be kept: without forgetting none has. */
static bool is_faded(const thi_kept *k)
{
    bool any = false;
    for (int64_t i = 0; i < k->rows.n && k->weight != NULL; i++) {
        any = any || k->weight[i] != 1.0;
    }
    return any;
}

enum { TENSORS = 6 };
typedef struct part {
    const char *name;
    double **numbers;
    int dims;
    int64_t width;
} part;

/* Those that are there: of sites both or none. */
static int list_parts(thi_kept *k, const thiele_model *model, bool faded, part parts[TENSORS])
{
    const part all[TENSORS] = {{"kept.inputs", &k->rows.X, 2, model->encoder.dims},
                               {"kept.targets", &k->rows.y, 2, model->encoder.targets},
                               {"kept.offsets", &k->rows.offset, 1, 1},
                               {"kept.precisions", &k->lambda, 2, k->latents},
                               {"kept.pulls", &k->nu, 2, k->latents},
                               {"kept.weights", &k->weight, 1, 1}};
    int count = 0;
    for (int i = 0; i < TENSORS && k->rows.n > 0; i++) {
        bool there = all[i].numbers == &k->weight ? faded : all[i].width > 0;
        if (there) {
            parts[count++] = all[i];
        }
    }
    return count;
}

thiele_status thi_kept_list(const thiele_model *model, thi_tensor_list *list)
{
    thi_kept view = model->kept;
    part parts[TENSORS];
    int count = list_parts(&view, model, is_faded(&view), parts);
    thiele_status status = THIELE_OK;
    for (int i = 0; i < count && status == THIELE_OK; i++) {
        thi_tensor tensor = {.dims = parts[i].dims, .shape = {view.rows.n, parts[i].width}, .data = *parts[i].numbers};
        status = thi_tensor_add(list, -1, parts[i].name, tensor);
    }
    return status;
}

/* Room for as many rows as may be kept is made when they are: thi_kept_resize. */
thiele_status thi_kept_read(thiele_model *model, thiele_context *ctx, thi_tensors *tensors)
{
    thi_kept *k = &model->kept;
    part parts[TENSORS];
    int count = list_parts(k, model, thi_tensors_have(tensors, "kept.weights"), parts);
    thiele_status status = THIELE_OK;
    k->rows.dims = model->encoder.dims;
    k->rows.outputs = model->encoder.targets;
    for (int i = 0; i < count && status == THIELE_OK; i++) {
        int64_t shape[] = {k->rows.n, parts[i].width};
        status = thi_tensors_take(tensors, ctx, parts[i].name, parts[i].dims, shape, parts[i].numbers);
    }
    for (int64_t i = 0; status == THIELE_OK && k->weight != NULL && i < k->rows.n; i++) {
        if (!(k->weight[i] >= 0.0 && k->weight[i] <= 1.0)) {
            status = thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor 'kept.weights' has a number that is no weight");
        }
    }
    return status;
}
