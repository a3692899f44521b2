/* What a model has learned since it was fitted, in its description and its file. */
#include <math.h>
#include <string.h>

#include "model/describe.h"
#include <thiele/stream.h>

void thiele_model_stream(const thiele_model *model, thiele_stream_facts *facts)
{
    THI_NEED_OR(, model && facts);
    const thi_stream_report *s = &model->stream, *own = model->parts > 0 ? &model->part[0]->stream : s;
    bool any = model->parts == 0 || s->rows > 0;
    *facts = (thiele_stream_facts){.rows = s->rows,
                                   .skipped = s->skipped,
                                   .forget = s->forget,
                                   .stop = s->stop,
                                   .time = own->time,
                                   .half_life = own->half_life,
                                   .clock = own->time != NULL ? own->clock : NAN,
                                   .all = any ? s->all : NULL,
                                   .recent = any ? s->recent : NULL};
}

/* One of each target. NULL when memory is out. */
static json_t *list_to_json(const thiele_scores *scores, int targets)
{
    json_t *list = json_array();
    int failed = list == NULL;
    for (int p = 0; p < targets; p++) {
        failed |= json_array_append_new(list, thi_scores_to_json(&scores[p]));
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

int thi_stream_to_json(const thiele_model *model, json_t *json)
{
    const thi_stream_report *s = &model->stream;
    int targets = model->encoder.targets;
    if (s->all == NULL) {
        return 0;
    }
    json_t *stream =
        json_pack("{s:I, s:I, s:f, s:s, s:o, s:o}", "rows", (json_int_t)s->rows, "skipped", (json_int_t)s->skipped,
                  "forget", s->forget, "stop", thi_stop_names[s->stop], "prequential", list_to_json(s->all, targets),
                  "recent", list_to_json(s->recent, targets));
    if (stream != NULL && s->time != NULL) {
        json_t *time = json_pack("{s:s, s:f, s:o}", "column", s->time, "half_life", s->half_life, "clock",
                                 isfinite(s->clock) ? json_real(s->clock) : json_null());
        if (json_object_set_new(stream, "time", time) != 0) {
            json_decref(stream);
            stream = NULL;
        }
    }
    return json_object_set_new(json, "stream", stream);
}

static thiele_status bad(thiele_context *ctx)
{
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field 'stream' makes no sense");
}

static thiele_status take_scores(thiele_context *ctx, const json_t *list, int targets, thiele_scores **out)
{
    if (json_array_size(list) != (size_t)targets) {
        return bad(ctx);
    }
    thiele_status status = thi_alloc(ctx, out, (size_t)targets, sizeof **out);
    for (int p = 0; status == THIELE_OK && p < targets; p++) {
        status = thi_scores_from_json(json_array_get(list, (size_t)p), &(*out)[p]) ? THIELE_OK : bad(ctx);
    }
    return status;
}

/* The column by whose times the model forgets; absent: none. */
static thiele_status take_time(thi_stream_report *s, thiele_context *ctx, const json_t *time)
{
    const char *column = json_string_value(json_object_get(time, "column"));
    const json_t *half_life = json_object_get(time, "half_life"), *clock = json_object_get(time, "clock");
    s->clock = NAN;
    if (time == NULL) {
        return THIELE_OK;
    }
    if (column == NULL || !json_is_number(half_life) || !(json_number_value(half_life) > 0.0) ||
        !(json_is_number(clock) || json_is_null(clock))) {
        return bad(ctx);
    }
    s->half_life = json_number_value(half_life);
    s->clock = json_is_number(clock) ? json_number_value(clock) : NAN;
    return thi_strdup(ctx, &s->time, column);
}

thiele_status thi_stream_from_json(thiele_model *model, thiele_context *ctx, const json_t *json)
{
    const json_t *from = json_object_get(json, "stream");
    const json_t *rows = json_object_get(from, "rows"), *skipped = json_object_get(from, "skipped");
    const json_t *forget = json_object_get(from, "forget");
    const char *stop = json_string_value(json_object_get(from, "stop"));
    thi_stream_report *s = &model->stream;
    int targets = model->encoder.targets;
    thiele_status status;
    if (from == NULL) {
        return THIELE_OK;
    }
    s->rows = json_integer_value(rows);
    s->skipped = json_integer_value(skipped);
    s->forget = json_number_value(forget);
    int known = 0;
    while (stop != NULL && known <= THIELE_STOP_FIXED && strcmp(stop, thi_stop_names[known]) != 0) {
        known++;
    }
    if (!json_is_integer(rows) || !json_is_integer(skipped) || s->rows < 0 || s->skipped < 0 ||
        !json_is_number(forget) || !(s->forget >= 0.0) || stop == NULL || known > THIELE_STOP_FIXED) {
        return bad(ctx);
    }
    s->stop = (thiele_stop)known;
    THI_TRY(take_time(s, ctx, json_object_get(from, "time")));
    THI_TRY(take_scores(ctx, json_object_get(from, "prequential"), targets, &s->all));
    THI_TRY(take_scores(ctx, json_object_get(from, "recent"), targets, &s->recent));
out:
    return status;
}
