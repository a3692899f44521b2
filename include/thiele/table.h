/*
 * A table: named columns and numbered rows, from a CSV, NPY or HDF5 file, from memory (arrow.h: of other programs), or
 * a selection of another table's rows. A column holds numbers or text. Rows are served in chunks; callers need not know
 * whether the table is in memory, mapped or read on demand.
 */
#ifndef THIELE_TABLE_H
#define THIELE_TABLE_H

#include <thiele/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_table thiele_table;

typedef enum thiele_header { THIELE_HEADER_AUTO = 0, THIELE_HEADER_YES = 1, THIELE_HEADER_NO = 2 } thiele_header;

typedef struct thiele_table_options {
    size_t size;
    thiele_header header; /* CSV: AUTO takes the first row as names unless all its fields are numbers */
    char delimiter;       /* CSV: 0 guesses among comma, semicolon and tab */
    const char
        *missing; /* comma-separated tokens that mean "no value" besides the empty field, NA, NaN, nan and null */
    const char *dataset; /* HDF5: path of the dataset or group; NULL: the only one in the root */
} thiele_table_options;

#define THIELE_TABLE_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_table_options)

/*
 * Opens a file by its content: HDF5 and NPY by their signatures, anything else as (possibly gzipped) CSV. "-" reads CSV
 * from standard input. options may be NULL.
 *
 * - CSV: RFC 4180 quoting, any line ending, UTF-8 with or without byte order mark. Columns of a table with no header
 *   are named x1, x2, ...
 * - NPY: one or two dimensions of numbers, read on demand; columns are named x1, x2, ...
 * - HDF5: a two-dimensional dataset of numbers (its columns named by the attribute "columns" where there is one), or a
 *   group of one-dimensional datasets of equal length; read chunk by chunk. References to other files
 *   (external storage, external links, virtual datasets) are refused, and so is a size that the file cannot hold.
 *
 * The HDF5 library is not safe for threads, and a damaged file can crash it or keep it busy for ever. Each HDF5 table
 * is therefore read in a child process (fork, no exec) that lives until the table is destroyed: no call here enters the
 * HDF5 library in the caller's process, whatever its other threads do, and a crash is a message. As with any table, one
 * thread at a time uses it; several tables may be used at once. If another thread of the program is inside its own copy
 * of the HDF5 library during this call, the child may hang: cancel, or open the table first.
 *
 * While a table is read the progress callback is called in phase "read" (within 0.1 s) and may ask to stop.
 *
 * Errors: IO (absent, unreadable, no child process), FORMAT (ragged row, bad quoting, truncated or damaged file: the
 * message names the row), DATA (empty, header only), UNSUPPORTED (HDF5 library not installed, references to other
 * files), LIMIT, MEMORY, CANCELLED.
 */
THIELE_API thiele_status thiele_table_open(thiele_table **out, thiele_context *ctx, const char *path,
                                           const thiele_table_options *options);

/*
 * Several files as one table: the rows of the first, then those of the second, and so on. All of them have the same
 * columns in the same order, by name, and are of one kind (all CSV, all NPY or all HDF5). Messages about a row name its
 * file and its row there. Errors: those of thiele_table_open; FORMAT (a file with other columns); ARGUMENT (no file).
 */
THIELE_API thiele_status thiele_table_open_files(thiele_table **out, thiele_context *ctx, const char *const *path,
                                                 int count, const thiele_table_options *options);

/*
 * A table over the caller's numbers, which are copied: row-major, values[row * columns + column]; NaN is a missing
 * value. names (one per column) may be NULL: x1, x2, ...
 */
THIELE_API thiele_status thiele_table_from_rows(thiele_table **out, thiele_context *ctx, int64_t rows, int columns,
                                                const double *values, const char *const *names);

/* One column of a table in the caller's memory: values, or codes with their texts. */
typedef struct thiele_column {
    const char *name;         /* copied */
    const double *values;     /* numbers; NaN is a missing value; NULL: a column of texts */
    ptrdiff_t stride;         /* bytes from one row's value or code to the next; 0: adjacent */
    const int32_t *codes;     /* the index of each row's text; -1 is a missing value; NULL: a column of numbers */
    const char *const *texts; /* the distinct texts, UTF-8; an empty one is a missing value */
    int32_t text_count;
} thiele_column;

/*
 * A table over the caller's columns, which are borrowed and not copied: values, codes and texts must not change until
 * the table is destroyed. Columns of a row-major matrix start at different places and share its stride. Errors:
 * ARGUMENT (no name, neither values nor codes or both, an index without a text), DATA (no rows), FORMAT (two columns
 * with the same name), MEMORY.
 */
THIELE_API thiele_status thiele_table_from_columns(thiele_table **out, thiele_context *ctx, int64_t rows, int columns,
                                                   const thiele_column *column);

/*
 * A built-in data set for demonstrations: `rows` draws of x1, x2 and a level of `site` with
 *   strength = 40 + 12 sin(1.5 x1) + 4 x2 + 3 (site = "north") + noise of sd 0.8 + 0.5 |x1|,
 * x1 in [-3, 3], x2 in [-2, 2], and a column `row` unrelated to it.
 */
THIELE_API thiele_status thiele_table_generate(thiele_table **out, thiele_context *ctx, int64_t rows, uint64_t seed);

/* The rows of another table listed in `rows` (from 0), in that order. That table is borrowed and must live longer. */
THIELE_API thiele_status thiele_table_select(thiele_table **out, thiele_context *ctx, const thiele_table *table,
                                             const int64_t *rows, int64_t count);

THIELE_API void thiele_table_destroy(thiele_table *table);

THIELE_API int64_t thiele_table_rows(const thiele_table *table);
THIELE_API int thiele_table_columns(const thiele_table *table);
/*
 * 1: fits take the column for categories even where they look like numbers, as if `categorical` listed it (dictionaries
 * of Arrow); 0: it is what its values say, or the index is out of range.
 */
THIELE_API int thiele_table_column_is_category(const thiele_table *table, int column);
/* Borrowed; NULL when the index is out of range. */
THIELE_API const char *thiele_table_column_name(const thiele_table *table, int column);
/*
 * Finds a column by name or, where no column has that name, by its 1-based position ("3"; "-1" is the last). Error:
 * COLUMN, with the nearest names in the message.
 */
THIELE_API thiele_status thiele_table_find_column(const thiele_table *table, thiele_context *ctx, const char *name,
                                                  int *column);
/*
 * Text of one cell as in the file (numbers as the shortest text that reads back the same); "" if missing. Written to
 * buffer with a terminating zero, cut at capacity.
 */
THIELE_API thiele_status thiele_table_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column,
                                           char *buffer, size_t capacity);
/*
 * Dates as models read them. form: as in a model's description, "year-month-day", "day-month-year", "month-day-year"
 * or "time"; NULL: the first. days: since 1970-01-01, or since midnight. Returns 1, or 0 for anything but a date of
 * that form.
 */
THIELE_API int thiele_date_read(const char *text, const char *form, double *days);
/* The reverse, to a thousandth of a second ("2024-01-31", "2024-01-31T06:30:00"; for "time", "06:30:00"). Returns 0 if
 * there is no such form. */
THIELE_API int thiele_date_write(double days, const char *form, char *text, size_t capacity);
/* Writes the table as CSV with a header to a file (by a temporary name and a rename) or, for "-", standard output. */
THIELE_API thiele_status thiele_table_write(const thiele_table *table, thiele_context *ctx, const char *path);

#ifdef __cplusplus
}
#endif
#endif
