/*
 * The data set of the demonstration: a known function of two inputs and a level, with noise that grows with |x1|, and a
 * column that has nothing to do with it. Written as CSV and read back, so that it is a table like any other. A row
 * depends on the seed and its number only.
 */
#include <math.h>
#include <string.h>

#include "data/data.h"

/* To four decimals, so that numbers are short and text and table are the same. */
static double rounded(double value)
{
    return round(value * 1e4) / 1e4;
}

static void add_row(thi_text *text, uint64_t seed, int64_t row)
{
    static const char *const sites[] = {"north", "south", "east"};
    const thi_stream stream = {seed, THI_RANDOM_DEMO, (uint64_t)row};
    double x1 = rounded(6 * thi_random_uniform(stream, 0) - 3);
    double x2 = rounded(4 * thi_random_uniform(stream, 1) - 2);
    int site = (int)(3 * thi_random_uniform(stream, 2));
    double noise = (0.8 + 0.5 * fabs(x1)) * thi_random_normal(stream, 3);
    double strength = 40 + 12 * sin(1.5 * x1) + 4 * x2 + 3 * (site == 0) + noise;
    thi_text_add(text, "%lld,", (long long)row + 1);
    thi_text_add_number(text, x1);
    thi_text_add(text, ",");
    thi_text_add_number(text, x2);
    thi_text_add(text, ",%s,", sites[site]);
    thi_text_add_number(text, rounded(strength));
    thi_text_add(text, "\n");
}

thiele_status thiele_table_generate(thiele_table **out, thiele_context *ctx, int64_t rows, uint64_t seed)
{
    *out = NULL;
    if (rows < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a table needs at least one row, not %lld", (long long)rows);
    }
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "row,x1,x2,site,strength\n");
    for (int64_t row = 0; row < rows && text.status == THIELE_OK; row++) {
        add_row(&text, seed, row);
    }
    thiele_status status = text.status;
    if (status == THIELE_OK) {
        status = thi_table_parse_csv(out, ctx, text.data, text.length, "", NULL);
    }
    thi_text_clear(&text);
    return status;
}
