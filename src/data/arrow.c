/*
 * Tables from the Arrow C stream interface and the Arrow C data interface. All batches are taken first, so that the
 * number of rows is known; then each column becomes 64-bit floats, or indices of its different texts, in memory of the
 * table's own, O(rows) for each. 64-bit floats without nulls in a single batch stay where they are, and the batch with
 * them; every other batch is released before the table is used.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "data/arrow.h"
#include "data/encoder.h"

/* What the columns of one table lie in; freed with the table. */
typedef struct memory {
    struct ArrowArray batch; /* the only one, where numbers of it are used; else released */
    int columns;
    double **number;
    int32_t **code;
    thi_texts *texts;
} memory;

/* A table that is being made. */
typedef struct making {
    thiele_context *ctx;
    struct ArrowSchema schema;
    int columns;
    bool fields; /* columns are the fields of a struct; else there is one */
    char **name; /* of each column */
    thi_arrow_type *type;
    struct ArrowArray *batch; /* batches of them, all with release */
    int64_t batches, room, rows;
    memory *kept;
    thi_memory_column *column;
} making;

static void release_array(struct ArrowArray *array)
{
    if (array->release != NULL) {
        array->release(array);
        array->release = NULL;
    }
}

static void free_memory(void *what)
{
    memory *m = what;
    if (m == NULL) {
        return;
    }
    release_array(&m->batch);
    for (int c = 0; c < m->columns; c++) {
        thi_free(m->number != NULL ? m->number[c] : NULL);
        thi_free(m->code != NULL ? m->code[c] : NULL);
        if (m->texts != NULL) {
            thi_texts_clear(&m->texts[c]);
        }
    }
    thi_free(m->number);
    thi_free(m->code);
    thi_free(m->texts);
    thi_free(m);
}

static void clear(making *m)
{
    for (int64_t i = 0; i < m->batches; i++) {
        release_array(&m->batch[i]);
    }
    thi_free(m->batch);
    for (int c = 0; c < m->columns && m->name != NULL; c++) {
        thi_free(m->name[c]);
    }
    thi_free(m->name);
    thi_free(m->type);
    thi_free(m->column);
    free_memory(m->kept);
    if (m->schema.release != NULL) {
        m->schema.release(&m->schema);
    }
}

/* --- the schema -------------------------------------------------------------------------------------------------- */

static const struct ArrowSchema *field_of(const making *m, int column)
{
    return m->fields ? m->schema.children[column] : &m->schema;
}

static thiele_status name_column(making *m, int column)
{
    const struct ArrowSchema *field = field_of(m, column);
    char numbered[16];
    snprintf(numbered, sizeof numbered, "x%d", column + 1);
    const bool named = field != NULL && field->name != NULL && *field->name != '\0';
    return thi_strdup(m->ctx, &m->name[column], named ? field->name : numbered);
}

static thiele_status read_schema(making *m)
{
    const struct ArrowSchema *schema = &m->schema;
    thiele_status status = THIELE_OK;
    if (schema->release == NULL || schema->format == NULL || schema->n_children < 0 || schema->n_children > INT_MAX ||
        (schema->n_children > 0 && schema->children == NULL)) {
        return thi_fail(m->ctx, THIELE_ERROR_FORMAT, "the schema of the Arrow stream makes no sense");
    }
    m->fields = strcmp(schema->format, "+s") == 0;
    const int columns = m->fields ? (int)schema->n_children : 1;
    THI_TRY(thi_alloc(m->ctx, &m->name, (size_t)columns, sizeof *m->name));
    m->columns = columns;
    THI_TRY(thi_alloc(m->ctx, &m->type, (size_t)columns, sizeof *m->type));
    for (int c = 0; c < columns; c++) {
        THI_TRY(name_column(m, c));
        THI_TRY(thi_arrow_read_type(&m->type[c], m->ctx, m->name[c], field_of(m, c)));
    }
out:
    return status;
}

/* --- batches ----------------------------------------------------------------------------------------------------- */

/* A batch that is a struct has the columns as children, and no rows that are null as a whole. */
static thiele_status check_batch(const making *m, const struct ArrowArray *batch)
{
    const bool whole = batch->length >= 0 && batch->offset >= 0 && batch->length <= INT64_MAX / 64 - m->rows &&
                       batch->offset <= INT64_MAX / 64;
    if (!whole || (m->fields && (batch->n_children != m->columns || (m->columns > 0 && batch->children == NULL) ||
                                 batch->dictionary != NULL))) {
        return thi_fail(m->ctx, THIELE_ERROR_FORMAT, "batch %lld of the Arrow stream does not fit its schema",
                        (long long)m->batches + 1);
    }
    const uint8_t *valid = m->fields && batch->null_count != 0 && batch->n_buffers > 0 && batch->buffers != NULL
                               ? batch->buffers[0]
                               : NULL;
    for (int64_t i = batch->offset; i < batch->offset + batch->length && valid != NULL; i++) {
        if ((valid[i / 8] >> (i % 8) & 1) == 0) {
            return thi_fail(m->ctx, THIELE_ERROR_UNSUPPORTED,
                            "batch %lld of the Arrow stream has whole rows that are null: leave them out",
                            (long long)m->batches + 1);
        }
    }
    return THIELE_OK;
}

/* Moves a batch behind the others; it has been released where there is no room for it. */
static thiele_status keep_batch(making *m, struct ArrowArray *batch)
{
    thiele_status status;
    THI_TRY(check_batch(m, batch));
    if (m->batches == m->room) {
        const int64_t room = 2 * m->room + 4;
        THI_TRY(thi_grow(m->ctx, &m->batch, (size_t)room, sizeof *m->batch));
        m->room = room;
    }
    m->rows += batch->length;
    m->batch[m->batches++] = *batch;
    return THIELE_OK;
out:
    release_array(batch);
    return status;
}

static thiele_status stream_failed(thiele_context *ctx, struct ArrowArrayStream *stream, int code)
{
    const char *words = stream->get_last_error != NULL ? stream->get_last_error(stream) : NULL;
    return thi_fail(ctx, THIELE_ERROR_IO, "the Arrow stream failed: %s",
                    words != NULL && *words != '\0' ? words : strerror(code));
}

static thiele_status read_stream(making *m, struct ArrowArrayStream *stream)
{
    thiele_status status;
    int code = stream->get_schema(stream, &m->schema);
    if (code != 0) {
        m->schema.release = NULL;
        return stream_failed(m->ctx, stream, code);
    }
    THI_TRY(read_schema(m));
    for (;;) {
        struct ArrowArray batch = {0};
        code = stream->get_next(stream, &batch);
        if (code != 0) {
            return stream_failed(m->ctx, stream, code);
        }
        if (batch.release == NULL) {
            return THIELE_OK;
        }
        THI_TRY(keep_batch(m, &batch));
        THI_TRY(thi_look_up(m->ctx, m->rows, 0));
    }
out:
    return status;
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

static thiele_status open_part(const making *m, int64_t b, int column, thi_arrow_part *part)
{
    const struct ArrowArray *batch = &m->batch[b];
    const struct ArrowArray *array = m->fields ? batch->children[column] : batch;
    return thi_arrow_open_part(part, m->ctx, m->name[column], &m->type[column], array, m->fields ? batch->offset : 0,
                               batch->length);
}

/* Days beyond the years that are written with four digits would be read as others. */
static thiele_status check_dates(const making *m, int column)
{
    const double first = -719528.0, last = 2932896.0;
    const double *day = m->kept->number[column];
    for (int64_t r = 0; r < m->rows && m->type[column].dates == THI_YEAR_FIRST; r++) {
        if (day[r] < first || day[r] >= last + 1.0) {
            return thi_fail(m->ctx, THIELE_ERROR_DATA,
                            "column '%s', row %lld: a date beyond the years 0 to 9999: correct it or make it null",
                            m->name[column], (long long)r + 1);
        }
    }
    return THIELE_OK;
}

static thiele_status take_numbers(making *m, int column)
{
    thi_arrow_part part;
    double **const number = &m->kept->number[column];
    thiele_column *to = &m->column[column].column;
    thiele_status status = THIELE_OK;
    if (m->batches == 1) {
        THI_TRY(open_part(m, 0, column, &part));
        if (thi_arrow_is_plain(&part)) {
            to->values = (const double *)part.values + part.offset;
            return THIELE_OK;
        }
    }
    THI_TRY(thi_alloc_bare(m->ctx, number, (size_t)m->rows, sizeof **number));
    for (int64_t b = 0, row = 0; b < m->batches; row += m->batch[b++].length) {
        THI_TRY(open_part(m, b, column, &part));
        thi_arrow_numbers(&part, *number + row);
        THI_TRY(thi_look_up(m->ctx, row, m->rows));
    }
    to->values = *number;
    m->column[column].dates = m->type[column].dates;
    status = check_dates(m, column);
out:
    return status;
}

static thiele_status take_texts(making *m, int column)
{
    thi_arrow_part part;
    thi_texts *texts = &m->kept->texts[column];
    int32_t **const code = &m->kept->code[column];
    thiele_column *to = &m->column[column].column;
    thiele_status status;
    THI_TRY(thi_alloc_bare(m->ctx, code, (size_t)m->rows, sizeof **code));
    for (int64_t b = 0, row = 0; b < m->batches; row += m->batch[b++].length) {
        THI_TRY(open_part(m, b, column, &part));
        THI_TRY(thi_arrow_codes(&part, m->ctx, texts, *code + row));
    }
    to->codes = *code;
    to->texts = (const char *const *)texts->text;
    to->text_count = texts->count;
    m->column[column].category = m->type[column].category != NULL;
out:
    return status;
}

static thiele_status take_columns(making *m)
{
    thiele_status status;
    const size_t columns = (size_t)m->columns;
    THI_TRY(thi_alloc(m->ctx, &m->column, columns, sizeof *m->column));
    THI_TRY(thi_alloc(m->ctx, &m->kept, 1, sizeof *m->kept));
    m->kept->columns = m->columns;
    THI_TRY(thi_alloc(m->ctx, &m->kept->number, columns, sizeof *m->kept->number));
    THI_TRY(thi_alloc(m->ctx, &m->kept->code, columns, sizeof *m->kept->code));
    THI_TRY(thi_alloc(m->ctx, &m->kept->texts, columns, sizeof *m->kept->texts));
    for (int c = 0; c < m->columns; c++) {
        const thi_arrow_type *type = &m->type[c];
        m->column[c].column.name = m->name[c];
        THI_TRY((type->category != NULL || type->layout >= THI_ARROW_TEXTS ? take_texts : take_numbers)(m, c));
    }
out:
    return status;
}

static bool borrows(const making *m)
{
    for (int c = 0; c < m->columns; c++) {
        if (m->column[c].column.values != NULL && m->column[c].column.values != m->kept->number[c]) {
            return true;
        }
    }
    return false;
}

/* All has been read. */
static thiele_status make_table(making *m, thiele_table **out)
{
    thiele_status status;
    if (m->rows < 1 || m->columns < 1) {
        return thi_fail(m->ctx, THIELE_ERROR_DATA, "the Arrow stream has no %s", m->columns < 1 ? "columns" : "rows");
    }
    THI_TRY(take_columns(m));
    THI_TRY(thi_table_over_columns(out, m->ctx, m->rows, m->columns, m->column, free_memory, m->kept));
    if (borrows(m)) {
        m->kept->batch = m->batch[0];
        m->batch[0].release = NULL;
    }
    m->kept = NULL; /* the table's */
out:
    return status;
}

thiele_status thiele_table_from_arrow(thiele_table **out, thiele_context *ctx, struct ArrowArrayStream *stream)
{
    THI_NEED_OUT(out, ctx, ctx && stream);
    if (stream->release == NULL || stream->get_schema == NULL || stream->get_next == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the Arrow stream has been released already");
    }
    making m = {.ctx = ctx};
    thi_watch watch = thi_watch_begin(ctx, "the Arrow stream", 0.0);
    thiele_status status = read_stream(&m, stream);
    if (status == THIELE_OK) {
        status = make_table(&m, out);
    }
    thi_watch_end(ctx, watch);
    clear(&m);
    stream->release(stream);
    stream->release = NULL;
    return status;
}

thiele_status thiele_table_from_arrow_batch(thiele_table **out, thiele_context *ctx, struct ArrowSchema *schema,
                                            struct ArrowArray *batch)
{
    THI_NEED_OUT(out, ctx, ctx && schema && batch);
    if (schema->release == NULL || batch->release == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the Arrow %s has been released already",
                        schema->release == NULL ? "schema" : "batch");
    }
    making m = {.ctx = ctx, .schema = *schema};
    struct ArrowArray moved = *batch;
    schema->release = NULL;
    batch->release = NULL;
    thi_watch watch = thi_watch_begin(ctx, "the Arrow batch", 0.0);
    thiele_status status = read_schema(&m);
    if (status == THIELE_OK) {
        status = keep_batch(&m, &moved);
    } else {
        release_array(&moved);
    }
    if (status == THIELE_OK) {
        status = make_table(&m, out);
    }
    thi_watch_end(ctx, watch);
    clear(&m);
    return status;
}
