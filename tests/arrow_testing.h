/*
 * Arrays and streams of the Arrow C interfaces for tests: a batch owns nothing but a count of how many are still held,
 * so that whoever takes one too often or forgets one is found out. What they point to belongs to the test.
 */
#ifndef THI_ARROW_TESTING_H
#define THI_ARROW_TESTING_H

#include <string.h>
#include <thiele/arrow.h>

enum { ARROW_COLUMNS = 8, ARROW_BUFFERS = 5, ARROW_BATCHES = 3 };

/* One column: its field and, of each batch, its array. Zeroed parts mean what they mean in the interface. */
typedef struct arrow_column {
    const char *name, *format;
    struct arrow_column *dictionary;
    struct {
        int64_t length, nulls, offset, buffers;
        const void *buffer[ARROW_BUFFERS];
    } part[ARROW_BATCHES];
    struct ArrowSchema field;
    struct ArrowArray array[ARROW_BATCHES];
} arrow_column;

typedef struct arrow_source {
    int columns, batches;
    arrow_column *column[ARROW_COLUMNS];
    int64_t offset;  /* of the struct, in each batch */
    int64_t rows;    /* of each batch; 0: those of the first column's arrays */
    int fails_after; /* get_next fails behind so many batches; 0: never */
    int handed_out;  /* batches so far */
    int held;        /* schemas, arrays and streams that are not released */
    struct ArrowSchema *fields[ARROW_COLUMNS];
    struct ArrowArray *arrays[ARROW_BATCHES][ARROW_COLUMNS];
    const void *no_bitmap[1];
} arrow_source;

static inline void arrow_release_schema(struct ArrowSchema *schema)
{
    if (schema->private_data != NULL) {
        ((arrow_source *)schema->private_data)->held--;
    }
    schema->release = NULL;
}

static inline void arrow_release_array(struct ArrowArray *array)
{
    if (array->private_data != NULL) {
        ((arrow_source *)array->private_data)->held--;
    }
    array->release = NULL;
}

static inline void arrow_release_stream(struct ArrowArrayStream *stream)
{
    ((arrow_source *)stream->private_data)->held--;
    stream->release = NULL;
}

static inline struct ArrowSchema *arrow_field(arrow_column *column)
{
    column->field =
        (struct ArrowSchema){.format = column->format,
                             .name = column->name,
                             .flags = ARROW_FLAG_NULLABLE,
                             .dictionary = column->dictionary != NULL ? arrow_field(column->dictionary) : NULL,
                             .release = arrow_release_schema};
    return &column->field;
}

static inline struct ArrowArray *arrow_array(arrow_column *column, int b)
{
    column->array[b] =
        (struct ArrowArray){.length = column->part[b].length,
                            .null_count = column->part[b].nulls,
                            .offset = column->part[b].offset,
                            .n_buffers = column->part[b].buffers,
                            .buffers = column->part[b].buffer,
                            .dictionary = column->dictionary != NULL ? arrow_array(column->dictionary, b) : NULL,
                            .release = arrow_release_array};
    return &column->array[b];
}

static inline void arrow_schema(arrow_source *source, struct ArrowSchema *out)
{
    for (int c = 0; c < source->columns; c++) {
        source->fields[c] = arrow_field(source->column[c]);
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = source->columns,
                                .children = source->fields,
                                .release = arrow_release_schema,
                                .private_data = source};
    source->held++;
}

static inline void arrow_batch(arrow_source *source, int b, struct ArrowArray *out)
{
    for (int c = 0; c < source->columns; c++) {
        source->arrays[b][c] = arrow_array(source->column[c], b);
    }
    *out = (struct ArrowArray){.length = source->rows != 0      ? source->rows
                                         : source->columns == 0 ? 0
                                                                : source->column[0]->part[b].length - source->offset,
                               .offset = source->offset,
                               .n_buffers = 1,
                               .buffers = source->no_bitmap,
                               .n_children = source->columns,
                               .children = source->arrays[b],
                               .release = arrow_release_array,
                               .private_data = source};
    source->held++;
}

static inline int arrow_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    arrow_schema(stream->private_data, out);
    return 0;
}

static inline int arrow_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    arrow_source *source = stream->private_data;
    if (source->fails_after > 0 && source->handed_out == source->fails_after) {
        return 5;
    }
    *out = (struct ArrowArray){0};
    if (source->handed_out < source->batches) {
        arrow_batch(source, source->handed_out++, out);
    }
    return 0;
}

static inline const char *arrow_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the disk is on fire";
}

static inline struct ArrowArrayStream arrow_stream(arrow_source *source)
{
    source->handed_out = 0;
    source->held++;
    return (struct ArrowArrayStream){.get_schema = arrow_get_schema,
                                     .get_next = arrow_get_next,
                                     .get_last_error = arrow_last_error,
                                     .release = arrow_release_stream,
                                     .private_data = source};
}

#endif
