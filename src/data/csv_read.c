/*
 * Reads CSV text into a table (RFC 4180): one pass that turns each field into a number where it stands, after a count
 * of lines that says how much room to make. A field that does not at once turn out to be a number and nothing else is
 * read again with all the care that quotes, blanks and missing values need.
 */
#include <math.h>

#include "base/number.h"
#include "data/csv.h"

/* Bytes after which it is asked whether to go on: of rows, and of text that is only looked through. */
enum { LOOK = 1 << 18, PIECE = 1 << 25 };

typedef struct token {
    const char *text;
    size_t length;
} token;

/* What is needed only while a text is read. */
typedef struct parser {
    thiele_context *ctx;
    thi_csv_table *csv;
    const char *source; /* for messages */
    const char *at, *end;
    token *missing; /* tokens that mean "no value" beside the empty one */
    size_t tokens;
    bool numeric_token; /* some of them look like numbers */
} parser;

/* --- values ----------------------------------------------------------------------------------------------------- */

static thiele_status add_token(void *arg, const char *part, size_t length)
{
    parser *p = arg;
    double value;
    if (length == 0) {
        return THIELE_OK;
    }
    thiele_status status = thi_grow(p->ctx, &p->missing, p->tokens + 1, sizeof *p->missing);
    if (status == THIELE_OK) {
        p->missing[p->tokens++] = (token){part, length};
        p->numeric_token = p->numeric_token || thi_scan_number(part, part + length, &value) == part + length;
    }
    return status;
}

static bool is_missing(const parser *p, const char *text, size_t length)
{
    for (size_t i = 0; i < p->tokens; i++) {
        if (p->missing[i].length == length && *p->missing[i].text == *text &&
            memcmp(p->missing[i].text, text, length) == 0) {
            return true;
        }
    }
    return length == 0;
}

/* Whether a number, inf or nan can begin with c: most texts are told by that. */
static bool begins_number(char c)
{
    return (unsigned char)(c - '0') < 10 || c == '-' || c == '+' || c == '.' || (c | 0x20) == 'i' || (c | 0x20) == 'n';
}

/* The value of any field: number, missing (NaN) or text (THI_CSV_TEXT). */
static double field_value(const parser *p, thi_csv_field field)
{
    const uint64_t bits = THI_CSV_TEXT;
    double value;
    thi_trim(&field.start, &field.length);
    if (is_missing(p, field.start, field.length)) {
        return NAN;
    }
    if (!begins_number(*field.start) || !thi_parse_number(field.start, field.length, &value)) {
        memcpy(&value, &bits, sizeof value);
    }
    return value;
}

/* Everything but the common case of read_value; counts what is not a number. */
static const char *read_odd_value(const parser *p, const char *at, int column, double *value, thi_csv_field *field)
{
    at = thi_csv_read_field(&p->csv->format, at, p->end, field);
    if (at != NULL) {
        *value = field_value(p, *field);
        if (isnan(*value)) {
            (thi_csv_is_text(*value) ? p->csv->text_cells : p->csv->missing_cells)[column]++;
        }
    }
    return at;
}

/*
 * A plain number whose field and end are within eight bytes, digits with or without a point: most of what tables hold,
 * read in one word without a call. Returns its end, NULL for anything else. Both parts of the quotient are doubles, so
 * that it is rounded once.
 */
static inline const char *read_short(const parser *p, const char *at, double *value)
{
    static const double ten[8] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    if (p->end - at < 9) {
        return NULL;
    }
    /* A column of digits: where the next field begins is then guessed before this one is worked out. */
    const unsigned digit = (unsigned char)(*at - '0');
    if (digit < 10 && p->csv->format.stop[(unsigned char)at[1]]) {
        *value = digit;
        return at + 1;
    }
    const int sign = *at == '-';
    uint64_t t = thi_load_eight(at + sign) ^ 0x3030303030303030u;
    int count = thi_leading_digits(t);
    if (count == 0 || count == 8) {
        return NULL;
    }
    double sum = (double)(int64_t)thi_join_digits(thi_keep_digits(t, count));
    at += sign + count;
    if (*at == '.' && count < 7) {
        t = t >> 8 * count >> 8 | UINT64_C(0x8080808080808080) << 8 * (7 - count);
        count = thi_leading_digits(t);
        sum = (sum * ten[count] + (double)(int64_t)thi_join_digits(thi_keep_digits(t, count))) / ten[count];
        at += 1 + count;
    }
    *value = sign ? -sum : sum;
    return p->csv->format.stop[(unsigned char)*at] ? at : NULL;
}

/* Reads the field at `at` into *value; returns its end, or NULL when *field tells a fault. */
static const char *read_value(const parser *p, const char *at, int column, double *value, thi_csv_field *field)
{
    if (p->csv->format.stop[(unsigned char)*at]) {
        *value = NAN;
        p->csv->missing_cells[column]++;
        return at;
    }
    if (!p->numeric_token && (*at == '"' || *at == ' ' || begins_number(*at))) {
        const bool quoted = *at == '"';
        const char *stop = thi_scan_number(at + (quoted || *at == ' '), p->end, value);
        if (stop != NULL && quoted) {
            stop = *stop == '"' ? stop + 1 : NULL;
        }
        if (stop != NULL && p->csv->format.stop[(unsigned char)*stop]) {
            return stop;
        }
    }
    return read_odd_value(p, at, column, value, field);
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static long long line_of(const parser *p, const char *at)
{
    return 1 + (long long)(p->csv->lines_before + thi_csv_count_lines(p->csv->text, at));
}

static thiele_status bad_quote(const parser *p, const thi_csv_field *field)
{
    long long line = line_of(p, field->start);
    return thi_fail(p->ctx, THIELE_ERROR_FORMAT,
                    field->fault == THI_CSV_UNCLOSED ? "%s, line %lld: a quote opens here and is never closed"
                                                     : "%s, line %lld: text after a closing quote",
                    p->source, line);
}

static thiele_status ragged_row(const parser *p)
{
    const thiele_table *table = &p->csv->base;
    thi_csv_field field;
    int64_t fields = thi_csv_count_fields(&p->csv->format, p->at, p->end, &field);
    if (fields == 0) {
        return bad_quote(p, &field);
    }
    return thi_fail(p->ctx, THIELE_ERROR_FORMAT, "%s, row %lld (line %lld): %lld field%s, but %d %s expected",
                    p->source, (long long)(p->csv->rows_before + table->rows) + 1, line_of(p, p->at), (long long)fields,
                    fields == 1 ? "" : "s", table->columns, table->columns == 1 ? "is" : "are");
}

/* Reads the record at p->at as the next row and moves behind it. */
static thiele_status read_row(parser *p)
{
    thi_csv_table *csv = p->csv;
    const int columns = csv->base.columns;
    const char *at = p->at;
    double *value = csv->value + csv->base.rows * columns;
    const bool plain = !p->numeric_token;
    thi_csv_field field;
    for (int c = 0; c < columns; c++) {
        const char *stop = plain ? read_short(p, at, &value[c]) : NULL;
        at = stop != NULL ? stop : read_value(p, at, c, &value[c], &field);
        if (at == NULL) {
            return bad_quote(p, &field);
        }
        const bool more = c < columns - 1;
        if ((*at == csv->format.delimiter) != more) {
            return ragged_row(p);
        }
        at += more;
    }
    csv->start[csv->base.rows++] = (size_t)(p->at - csv->text);
    p->at = thi_csv_next_line(at);
    return THIELE_OK;
}

/*
 * Blank lines are skipped, except that in a table of one column they are missing values unless only blank lines follow.
 */
static thiele_status read_rows(parser *p)
{
    const bool skip = p->csv->base.columns > 1;
    const char *behind = p->at, *look = p->at;
    thiele_status status = THIELE_OK;
    while (status == THIELE_OK) {
        if (p->at >= look) {
            status = thi_look_up(p->ctx, p->at - p->csv->text, (int64_t)p->csv->length);
            look = p->at + (p->end - p->at < LOOK ? p->end - p->at : LOOK);
        }
        if (p->at >= behind) {
            bool blank = (unsigned char)*p->at <= ' ';
            behind = blank ? thi_csv_skip_blank_lines(&p->csv->format, p->at) : p->at;
        }
        if (behind == p->end) {
            break;
        }
        p->at = skip ? behind : p->at;
        status = status == THIELE_OK ? read_row(p) : status;
    }
    return status;
}

/* No fewer than there are; one that is cut in two by a piece of the text counts twice. */
static thiele_status count_lines(const parser *p, size_t *lines)
{
    thiele_status status = THIELE_OK;
    *lines = 0;
    for (const char *at = p->at; at < p->end && status == THIELE_OK;) {
        const char *stop = p->end - at < PIECE ? p->end : at + PIECE;
        *lines += (size_t)thi_csv_count_lines(at, stop);
        at = stop;
        status = thi_look_up(p->ctx, 0, 0);
    }
    return status;
}

/*
 * Room for the rows that can come: no more than there are lines, nor than fit when each field takes a byte with what
 * ends it; one more, where a row that turns out to be none may be begun.
 */
static thiele_status make_room(parser *p)
{
    thi_csv_table *csv = p->csv;
    const size_t columns = (size_t)csv->base.columns;
    size_t lines;
    thiele_status status;
    THI_TRY(count_lines(p, &lines));
    size_t fitting = (size_t)(p->end - p->at) / columns;
    size_t rows = (lines < fitting ? lines : fitting) + 1;
    /* Bare: of what no row fills nothing is ever read. */
    THI_TRY(thi_alloc_bare(p->ctx, &csv->start, rows, sizeof *csv->start));
    THI_TRY(thi_alloc_bare(p->ctx, &csv->value, rows, columns * sizeof *csv->value));
    THI_TRY(thi_alloc(p->ctx, &csv->text_cells, columns, sizeof *csv->text_cells));
    THI_TRY(thi_alloc(p->ctx, &csv->missing_cells, columns, sizeof *csv->missing_cells));
out:
    return status;
}

/* --- the header ------------------------------------------------------------------------------------------------- */

static bool has_header(const parser *p, thiele_header header)
{
    if (header != THIELE_HEADER_AUTO) {
        return header == THIELE_HEADER_YES;
    }
    const char *at = p->at;
    for (int c = 0; c < p->csv->base.columns; c++) {
        thi_csv_field field;
        at = thi_csv_read_field(&p->csv->format, at, p->end, &field) + 1;
        if (thi_csv_is_text(field_value(p, field))) {
            return true;
        }
    }
    return false;
}

/* Names columns by the record at p->at and moves behind it; an empty name becomes x1, x2, ... by its place. */
static thiele_status read_names(parser *p)
{
    thiele_table *table = &p->csv->base;
    const char *at = p->at - 1;
    for (int c = 0; c < table->columns; c++) {
        thi_csv_field field;
        thi_text name;
        thi_text_init(&name, p->ctx);
        at = thi_csv_read_field(&p->csv->format, at + 1, p->end, &field);
        thi_trim(&field.start, &field.length);
        thi_csv_unescape(&field, &name);
        if (field.length == 0) {
            thi_text_add(&name, "x%d", c + 1);
        }
        thiele_status status = thi_text_take(&name, &table->name[c]);
        if (status != THIELE_OK) {
            return status;
        }
    }
    p->at = thi_csv_next_line(at);
    return thi_table_check_names(table, p->ctx);
}

static thiele_status read_header(parser *p, const char *source, thiele_header header)
{
    thi_csv_table *csv = p->csv;
    thi_csv_field field;
    int64_t columns = thi_csv_count_fields(&csv->format, p->at, p->end, &field);
    if (columns == 0) {
        return bad_quote(p, &field);
    }
    thiele_status status = thi_table_init(&csv->base, p->ctx, source, 1, columns);
    csv->base.rows = 0;
    if (status != THIELE_OK) {
        return status;
    }
    return has_header(p, header) ? read_names(p) : thi_table_number_names(&csv->base, p->ctx);
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

static thiele_status check_options(thiele_context *ctx, const thiele_table_options *options)
{
    if (options->delimiter != 0 && strchr(",;:|\t", options->delimiter) == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "fields can be separated by , ; : | or a tab, not by '%c'",
                        options->delimiter);
    }
    if ((unsigned)options->header > THIELE_HEADER_NO) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "table options: header is none of auto, yes and no");
    }
    return THIELE_OK;
}

/* Refuses what is no UTF-8 text, and moves over the byte order mark. */
static thiele_status check_text(parser *p)
{
    const char *text = p->at;
    size_t length = (size_t)(p->end - text);
    const char *zero = memchr(text, '\0', length);
    if (length >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0)) {
        return thi_fail(p->ctx, THIELE_ERROR_FORMAT, "%s is text in UTF-16: save it as UTF-8", p->source);
    }
    if (zero != NULL) {
        return thi_fail(p->ctx, THIELE_ERROR_FORMAT,
                        "%s, line %lld: a zero byte, which text never contains (is it a CSV, NPY or HDF5 file?)",
                        p->source, line_of(p, zero));
    }
    p->at += length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    return THIELE_OK;
}

static thiele_status read_table(parser *p, const char *source, const thiele_table_options *options)
{
    thi_csv_table *csv = p->csv;
    thiele_status status;
    THI_TRY(thi_split_list("NA, NaN, nan, null", add_token, p));
    THI_TRY(thi_split_list(options->missing, add_token, p));
    if (options->missing != NULL) {
        THI_TRY(thi_strdup(p->ctx, &p->csv->base.missing, options->missing));
    }
    THI_TRY(check_text(p));
    thi_csv_set_delimiter(&csv->format, ',');
    p->at = thi_csv_skip_blank_lines(&csv->format, p->at);
    if (p->at == p->end) {
        return thi_fail(p->ctx, THIELE_ERROR_DATA, "%s is empty", p->source);
    }
    thi_csv_set_delimiter(&csv->format,
                          options->delimiter != 0 ? options->delimiter : thi_csv_guess_delimiter(p->at, p->end));
    THI_TRY(read_header(p, source, options->header));
    THI_TRY(make_room(p));
    THI_TRY(read_rows(p));
    if (csv->base.rows == 0) {
        return thi_fail(p->ctx, THIELE_ERROR_DATA, "%s has a header and no rows", p->source);
    }
out:
    return status;
}

thiele_status thi_csv_take_text(thiele_table **out, thiele_context *ctx, char *text, size_t length, const char *source,
                                const thiele_table_options *options)
{
    return thi_csv_take_part(out, ctx, text, length, source, options, (thi_csv_part){0, 0});
}

thiele_status thi_csv_take_part(thiele_table **out, thiele_context *ctx, char *text, size_t length, const char *source,
                                const thiele_table_options *options, thi_csv_part before)
{
    parser p = {.ctx = ctx, .source = *source != '\0' ? source : "the table", .at = text, .end = text + length};
    *out = NULL;
    thiele_status status = check_options(ctx, options);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &p.csv, 1, sizeof *p.csv);
    }
    if (status != THIELE_OK) {
        thi_free(text);
        return status;
    }
    p.csv->base.ops = &thi_csv_ops;
    p.csv->text = text;
    p.csv->rows_before = before.rows;
    p.csv->lines_before = before.lines;
    p.csv->length = length;
    status = read_table(&p, source, options);
    thi_free(p.missing);
    if (status != THIELE_OK) {
        thiele_table_destroy(&p.csv->base);
        return status;
    }
    *out = &p.csv->base;
    return THIELE_OK;
}
