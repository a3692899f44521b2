/*
 * The document of a report and its page. Sections are filled in the order of the table, then the lamps, which judge by
 * them; the page is drawn from the document and sees nothing else.
 */
#include "report/report.h"

#include <string.h>
#include <thiele/report.h>

#include "model/json.h"

static const thi_section sections[] = {
    {"scores", true, thi_section_scores},   {"calibration", true, thi_section_calibration},
    {"classes", true, thi_section_classes}, {"counts", true, thi_section_counts},
    {"errors", true, thi_section_errors},   {"effects", true, thi_section_effects},
    {"domain", true, thi_section_domain},   {"inference", false, thi_section_inference},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static thiele_status out_of_memory(thiele_context *ctx)
{
    return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while the report was written");
}

/* The part of this target, and which of the part's targets it is. */
static thiele_status find_target(thi_report *r, const thiele_model *model, const char *name)
{
    int targets = thiele_model_targets(model), p = 0;
    while (name != NULL && p < targets && strcmp(thiele_model_target(model, p), name) != 0) {
        p++;
    }
    if (p == targets) {
        return thi_fail(r->ctx, THIELE_ERROR_ARGUMENT, "the model predicts '%s', not '%s'",
                        thiele_model_target(model, 0), name);
    }
    r->model = model->parts > 0 ? model->part[p] : model;
    r->target = model->parts > 0 ? 0 : p;
    return THIELE_OK;
}

/* What the model says of itself. */
static thiele_status add_description(thi_report *r)
{
    char *text = NULL;
    thiele_status status = thiele_model_describe(r->model, r->ctx, &text);
    if (status == THIELE_OK) {
        thi_put(r, r->json, "model", json_loads(text, 0, NULL));
        r->describe = json_object_get(r->json, "model");
    }
    thiele_free(text);
    return status;
}

static void add_origin(thi_report *r, const thiele_model *whole)
{
    thi_put_count(r, r->json, "report", 1);
    thi_put_text(r, r->json, "version", thiele_version());
    thi_put_text(r, r->json, "target", r->model->encoder.target[r->target].name);
    json_t *targets = thi_put_list(r, r->json, "targets");
    for (int p = 0; p < thiele_model_targets(whole); p++) {
        thi_append(r, targets, json_string(thiele_model_target(whole, p)));
    }
    thi_put_text(r, r->json, "command", r->command);
    thi_put_count(r, r->json, "seed", (int64_t)r->ctx->seed);
}

static void add_table(thi_report *r)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->rows->hash);
    json_t *own = thi_put_object(r, r->json, "data");
    thi_put_text(r, own, "source", thi_table_source(r->table));
    thi_put_count(r, own, "rows", r->rows->rows);
    thi_put_count(r, own, "left_out", r->table->rows - r->rows->rows);
    thi_put_count(r, own, "looked_at", r->rows->sample.n);
    thi_put_text(r, own, "hash", hash);
}

static thiele_status fill(thi_report *r, const thiele_model *whole)
{
    thiele_status status;
    add_origin(r, whole);
    THI_TRY(add_description(r));
    if (r->rows != NULL) {
        add_table(r);
    }
    for (int k = 0; k < SECTIONS; k++) {
        if (r->rows != NULL || !sections[k].data) {
            json_t *own = thi_put_object(r, r->json, sections[k].name);
            THI_TRY(r->short_of_memory ? out_of_memory(r->ctx) : sections[k].fill(r, own));
            if (json_object_size(own) == 0) {
                json_object_del(r->json, sections[k].name);
            }
        }
    }
    thi_report_lamps(r);
    THI_TRY(r->short_of_memory ? out_of_memory(r->ctx) : THIELE_OK);
out:
    return status;
}

static thiele_status write_page(const thi_report *r, const char *path)
{
    thi_file file = {0};
    thiele_status status = thi_file_begin(&file, r->ctx, path);
    if (status != THIELE_OK) {
        return status;
    }
    thi_report_page(r->json, file.stream);
    status = ferror(file.stream) ? thi_file_failed(&file, r->ctx) : thi_file_commit(&file, r->ctx);
    thi_file_abandon(&file);
    return status;
}

thiele_status thiele_model_report(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                  const thiele_report_options *options, const char *path, char **json)
{
    if (json != NULL) {
        *json = NULL;
    }
    THI_NEED(ctx, model && ctx);
    thiele_report_options taken;
    thiele_predict_options predict;
    thi_report_rows rows = {0};
    thi_report r = {.ctx = ctx, .table = table};
    thiele_status status;
    THI_TRY(thi_take_options(ctx, "thiele_report_options", &taken, sizeof taken, options));
    THI_TRY(thi_predict_take(ctx, taken.predict, &predict));
    r.command = taken.command;
    THI_TRY(find_target(&r, model, taken.target));
    THI_TRY(thi_model_need_likelihood(r.model, ctx));
    if (table != NULL) {
        THI_TRY(thi_report_rows_make(&rows, ctx, r.model, r.target, table, &predict));
        r.rows = &rows;
    }
    r.json = json_object();
    THI_TRY(r.json == NULL ? out_of_memory(ctx) : fill(&r, model));
    if (path != NULL) {
        THI_TRY(write_page(&r, path));
    }
    if (json != NULL) {
        THI_TRY(thi_json_text(ctx, r.json, JSON_INDENT(2), json));
    }
out:
    json_decref(r.json);
    thi_report_rows_clear(&rows);
    return status;
}
