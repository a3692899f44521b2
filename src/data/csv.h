/*
 * The grammar of CSV (RFC 4180, any line ending, blanks around fields forgiven) and the reading of text files.
 * All functions here work on text with a zero byte behind its end and none inside.
 */
#ifndef THI_CSV_H
#define THI_CSV_H

#include <string.h>

#include "data/data.h"

typedef struct thi_csv_format {
    char delimiter;
    bool stop[256]; /* bytes that end an unquoted field: the delimiter, line feed, carriage return, zero */
} thi_csv_format;

typedef enum thi_csv_fault { THI_CSV_FINE = 0, THI_CSV_UNCLOSED, THI_CSV_AFTER_QUOTE } thi_csv_fault;

/* The content of a field: without blanks around it, or what is between its quotes. */
typedef struct thi_csv_field {
    const char *start;
    size_t length;
    bool escaped; /* holds "" for each quote */
    thi_csv_fault fault;
} thi_csv_field;

/*
 * The delimiter that occurs most in the first record, of those that occur as often in the second where there are any.
 */
char thi_csv_guess_delimiter(const char *text, const char *end);
void thi_csv_set_delimiter(thi_csv_format *format, char delimiter);
/* Reads the field at `at`; returns the byte that ended it, or NULL with field->fault set and field->start there. */
const char *thi_csv_read_field(const thi_csv_format *format, const char *at, const char *end, thi_csv_field *field);
/* How many fields the record at `at` has; 0 and *field tells the fault when there is one. */
int64_t thi_csv_count_fields(const thi_csv_format *format, const char *at, const char *end, thi_csv_field *field);
/* Behind the line ending at `at`, if there is one. */
const char *thi_csv_next_line(const char *at);
/*
 * The first record that is not blank: blanks and line endings are skipped, but blanks only with a line ending or the
 * end.
 */
const char *thi_csv_skip_blank_lines(const thi_csv_format *format, const char *at);
/* Appends the content with "" as one quote. */
void thi_csv_unescape(const thi_csv_field *field, thi_text *text);
/* Line endings in at[0..end-at-1]; CR LF is one. */
int64_t thi_csv_count_lines(const char *at, const char *end);

/* --- the table -------------------------------------------------------------------------------------------------- */

typedef struct thi_csv_table {
    thiele_table base;
    thi_csv_format format;
    char *text;
    size_t length;
    double *value;                       /* value[row * columns + column]; missing: NaN, text: THI_CSV_TEXT */
    size_t *start;                       /* where each row begins in text */
    int64_t *text_cells, *missing_cells; /* of each column */
    int64_t rows_before, lines_before;   /* of a part of a longer text, for messages */
} thi_csv_table;

extern const thi_table_ops thi_csv_ops;

/* A cell that is not a number is kept as a quiet NaN that no arithmetic makes. */
#define THI_CSV_TEXT UINT64_C(0x7FF8000074657874)

static inline bool thi_csv_is_text(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == THI_CSV_TEXT;
}

/* A part of a longer text behind its header: what came before it, for messages. */
typedef struct thi_csv_part {
    int64_t rows, lines;
} thi_csv_part;
/*
 * Makes a table of text (a block of thi_alloc with a zero byte behind it), which it owns from then on, also on failure.
 */
thiele_status thi_csv_take_text(thiele_table **out, thiele_context *ctx, char *text, size_t length, const char *source,
                                const thiele_table_options *options);
thiele_status thi_csv_take_part(thiele_table **out, thiele_context *ctx, char *text, size_t length, const char *source,
                                const thiele_table_options *options, thi_csv_part before);

/*
 * text_file.c: the whole of a file, plain or gzipped, or standard input ("-"), with a zero byte behind it. Errors: IO,
 * FORMAT (damaged gzip), LIMIT, MEMORY.
 */
thiele_status thi_read_text(thiele_context *ctx, const char *path, char **text, size_t *length);

#endif
