/*
 * What the tests of targets share: the rules of a few likelihoods, learning and reading by them, and the way through
 * JSON and back.
 */
#ifndef THI_TARGET_TESTING_H
#define THI_TARGET_TESTING_H

#include "encoder_testing.h"

static inline const char *refuse_no_count(const void *user, double y)
{
    (void)user;
    return y >= 0 && y == floor(y) ? NULL : "a count must be 0, 1, 2, ...";
}

static const thi_target_rule gaussian = {.likelihood = "gaussian", .standardise = true};
static const thi_target_rule poisson = {.likelihood = "poisson", .exposure = true, .refuses = refuse_no_count};
static const thi_target_rule bernoulli = {.likelihood = "bernoulli", .labels = true, .signs = true};
static const thi_target_rule softmax = {.likelihood = "softmax", .labels = true};
static const thi_target_rule ordinal = {.likelihood = "ordinal", .labels = true, .ordered = true};

static inline thi_encoder learn(const char *text, thi_column_options options, const thi_target_rule *rule)
{
    thi_encoder encoder;
    thiele_table *table = parse(text);
    assert_ok(ctx, thi_encoder_learn(&encoder, ctx, table, &options, rule));
    thiele_table_destroy(table);
    return encoder;
}

static inline void assert_refused(const char *text, thi_column_options options, const thi_target_rule *rule,
                                  thiele_status code, const char *part)
{
    thi_encoder encoder;
    thiele_table *table = parse(text);
    assert_fails(ctx, thi_encoder_learn(&encoder, ctx, table, &options, rule), code, part);
    assert_true(encoder.input == NULL && encoder.target == NULL && encoder.exposure == NULL);
    thiele_table_destroy(table);
}

static inline void assert_labels(const thi_encoder *encoder, const char *expected)
{
    thi_text text;
    thi_text_init(&text, ctx);
    for (int l = 0; l < encoder->target[0].levels; l++) {
        thi_text_add(&text, "%s%s", l > 0 ? "|" : "", encoder->target[0].level[l]);
    }
    assert_string_equal(text.data, expected);
    thi_text_clear(&text);
}

/* All rows of a text, targets and all; returns how many were kept. offset may be NULL. */
static inline int64_t read_targets(const thi_encoder *encoder, const char *text, bool drop, double *y, double *offset)
{
    double X[64];
    int64_t kept;
    thi_reader reader;
    thiele_table *table = parse(text);
    assert_ok(ctx, thi_reader_open(&reader, ctx, encoder, table, &(thi_reading){.target = true, .drop_missing = drop}));
    assert_true(table->rows * encoder->dims <= 64);
    assert_ok(ctx, thi_reader_read(&reader, ctx, 0, table->rows, X, y, offset, NULL, &kept));
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    return kept;
}

static inline void assert_unreadable(const thi_encoder *encoder, const char *text, thi_reading how, const char *part)
{
    double X[64], y[64], offset[64];
    int64_t kept;
    thi_reader reader;
    thiele_table *table = parse(text);
    how.target = true;
    assert_ok(ctx, thi_reader_open(&reader, ctx, encoder, table, &how));
    assert_fails(ctx, thi_reader_read(&reader, ctx, 0, table->rows, X, y, offset, NULL, &kept), THIELE_ERROR_DATA,
                 part);
    thi_reader_close(&reader);
    thiele_table_destroy(table);
}

static inline void assert_round_trip(thi_encoder encoder)
{
    thi_encoder back;
    json_t *json = thi_encoder_to_json(&encoder);
    char *text = json_dumps(json, 0);
    json_decref(json);
    json = json_loads(text, 0, NULL);
    assert_ok(ctx, thi_encoder_from_json(&back, ctx, json));
    json_t *again = thi_encoder_to_json(&back);
    assert_true(json_equal(json, again));
    assert_true(back.targets == encoder.targets && back.signs == encoder.signs && back.partial == encoder.partial);
    assert_true((back.exposure != NULL) == (encoder.exposure != NULL));
    for (int p = 0; p < back.targets; p++) {
        const thi_target *got = &back.target[p], *want = &encoder.target[p];
        assert_string_equal(got->name, want->name);
        assert_true(got->center == want->center && got->scale == want->scale && got->mean == want->mean &&
                    got->variance == want->variance && got->levels == want->levels);
        assert_true((got->level_value != NULL) == (want->level_value != NULL));
        for (int l = 0; l < got->levels; l++) {
            assert_string_equal(got->level[l], want->level[l]);
            assert_true(got->level_value == NULL || got->level_value[l] == want->level_value[l]);
        }
    }
    free(text);
    json_decref(json);
    json_decref(again);
    thi_encoder_clear(&back);
    thi_encoder_clear(&encoder);
}

#endif
