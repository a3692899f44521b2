/* What the model takes from the encoder: a whole table in memory, and its columns as kernel texts know them. */
#include <string.h>

#include "model/model.h"

thiele_status thi_read_all(thiele_context *ctx, thi_reader *reader, double **X, double **y, int64_t **row, int64_t *n)
{
    int64_t rows = reader->table->rows;
    int64_t D = reader->encoder->dims;
    int64_t *local = NULL;
    *X = *y = NULL;
    *n = 0;
    thiele_status status;
    THI_TRY(thi_alloc(ctx, X, (size_t)rows * (size_t)D, sizeof **X));
    if (reader->target >= 0) {
        THI_TRY(thi_alloc(ctx, y, (size_t)rows, sizeof **y));
    }
    THI_TRY(thi_alloc(ctx, &local, (size_t)rows, sizeof *local));
    for (int64_t first = 0; first < rows; first += THI_TABLE_BLOCK) {
        int64_t count = rows - first < THI_TABLE_BLOCK ? rows - first : THI_TABLE_BLOCK;
        int64_t kept;
        THI_TRY(
            thi_reader_read(reader, ctx, first, count, *X + *n * D, *y != NULL ? *y + *n : NULL, local + *n, &kept));
        *n += kept;
    }
out:
    if (status != THIELE_OK) {
        thi_free(*X);
        thi_free(*y);
        *X = *y = NULL;
    }
    if (status == THIELE_OK && row != NULL) {
        *row = local;
    } else {
        thi_free(local);
    }
    return status;
}

thiele_status thi_kernel_columns_make(thi_kernel_columns *columns, thiele_context *ctx, const thi_encoder *encoder)
{
    size_t dims = (size_t)encoder->dims;
    thiele_status status;
    *columns = (thi_kernel_columns){.view = {.dims = encoder->dims, .columns = encoder->inputs}};
    THI_TRY(thi_alloc(ctx, &columns->column, dims, sizeof *columns->column));
    THI_TRY(thi_alloc(ctx, &columns->column_name, (size_t)encoder->inputs, sizeof *columns->column_name));
    THI_TRY(thi_alloc(ctx, &columns->dim_name, dims, sizeof *columns->dim_name));
    for (int i = 0; i < encoder->inputs; i++) {
        const thi_input *input = &encoder->input[i];
        columns->column_name[i] = input->name;
        for (int l = 0; l < (input->levels > 0 ? input->levels : 1); l++) {
            columns->column[input->first + l] = i;
        }
    }
    for (int d = 0; d < encoder->dims; d++) {
        thi_text text;
        thi_text_init(&text, ctx);
        thi_encoder_dim_name(encoder, d, &text);
        THI_TRY(thi_text_take(&text, &columns->dim_name[d]));
    }
    columns->view.column = columns->column;
    columns->view.column_name = columns->column_name;
    columns->view.dim_name = (const char *const *)columns->dim_name;
out:
    if (status != THIELE_OK) {
        thi_kernel_columns_clear(columns);
    }
    return status;
}

void thi_kernel_columns_clear(thi_kernel_columns *columns)
{
    for (int d = 0; columns->dim_name != NULL && d < columns->view.dims; d++) {
        thi_free(columns->dim_name[d]);
    }
    thi_free(columns->column);
    thi_free(columns->column_name);
    thi_free(columns->dim_name);
    *columns = (thi_kernel_columns){0};
}
