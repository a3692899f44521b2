/*
 * Tables that other programs hand over in memory by the Arrow C data interface and the Arrow C stream interface. The
 * structs are those of the specification (Apache Arrow, "The Arrow C data interface" and "The Arrow C stream
 * interface"), which asks for them to be declared like this in every project; the two macros keep declarations of
 * several projects apart.
 */
#ifndef THIELE_ARROW_H
#define THIELE_ARROW_H

#include <thiele/table.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/*
 * All batches of a stream as one table, its rows one after another. The columns are the fields of the stream's struct,
 * or, where it is no struct, the only one; those without a name are x1, x2, ...
 *
 * - Numbers of every width, decimals up to 128 bits and booleans (0 and 1) are numbers. 64-bit floats in a single batch
 *   without nulls are used where they lie and not copied; the batch is kept until the table is destroyed.
 * - Texts (utf8, large and views) are texts.
 * - Dictionaries are categories, also where their values look like numbers, dates or booleans.
 * - Dates and timestamps are dates, to a thousandth of a second, those with a zone in UTC; times are times of day.
 * - Nulls are missing values, and so are NaN and empty texts.
 *
 * Lengths, offsets, indices and sizes are checked as far as the interface says them; the pointers are believed. The
 * stream is moved from: it has been released when this returns, also with an error. While it is read the progress
 * callback is called in phase "read" and may ask to stop.
 *
 * Errors: IO (the stream failed: its own words are in the message), FORMAT (lengths or offsets that make no sense, two
 * columns of one name), UNSUPPORTED (lists, structs, intervals, durations, bytes and other types: the message says
 * what to do), DATA (no rows), LIMIT, MEMORY, CANCELLED.
 */
THIELE_API thiele_status thiele_table_from_arrow(thiele_table **out, thiele_context *ctx,
                                                 struct ArrowArrayStream *stream);
/* The same of one batch and its schema, both of which are moved from. */
THIELE_API thiele_status thiele_table_from_arrow_batch(thiele_table **out, thiele_context *ctx,
                                                       struct ArrowSchema *schema, struct ArrowArray *batch);

#ifdef __cplusplus
}
#endif
#endif
