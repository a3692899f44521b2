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

#endif
