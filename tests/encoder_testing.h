/* What the tests of the encoder share: tables of a text, and options with a target. */
#ifndef THI_ENCODER_TESTING_H
#define THI_ENCODER_TESTING_H

#include "data/data.h"
#include "testing_context.h"

static inline thiele_table *parse(const char *text)
{
    thiele_table *table;
    assert_ok(ctx, thi_table_parse_csv(&table, ctx, text, strlen(text), "t.csv", NULL));
    return table;
}

static inline thi_column_options options_for(const char *target)
{
    thi_column_options options = {0};
    options.target = target;
    return options;
}

/* The names of the numbers of a row, with spaces between them. */
static inline void assert_dims(const thi_encoder *encoder, const char *expected)
{
    thi_text text;
    thi_text_init(&text, ctx);
    for (int d = 0; d < encoder->dims; d++) {
        thi_text_add(&text, "%s", d > 0 ? " " : "");
        thi_encoder_dim_name(encoder, d, &text);
    }
    assert_string_equal(text.data, expected);
    thi_text_clear(&text);
}

/* Fields that no input of a model file may have: each is refused. */
static inline void assert_lies_refused(const char *const *lies, size_t count)
{
    static const char *const target =
        "\"targets\":[{\"name\":\"y\",\"center\":0,\"scale\":1,\"mean\":0,\"variance\":1}],"
        "\"signs\":false,\"partial\":false";
    for (size_t i = 0; i < count; i++) {
        char text[512];
        thi_encoder encoder;
        snprintf(text, sizeof text, "{\"inputs\":[{\"name\":\"x\",\"center\":0,\"scale\":1,%s}],%s}", lies[i], target);
        json_t *json = json_loads(text, 0, NULL);
        assert_non_null(json);
        assert_int_equal(thi_encoder_from_json(&encoder, ctx, json), THIELE_ERROR_FORMAT);
        json_decref(json);
    }
}

#endif
