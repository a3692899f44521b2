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

static inline thiele_fit_options options_for(const char *target)
{
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.target = target;
    return options;
}

#endif
