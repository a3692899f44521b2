/* The encoder's columns as kernel texts know them. */
#include "model/model.h"

thiele_status thi_kernel_columns_make(thi_kernel_columns *columns, thiele_context *ctx, const thi_encoder *encoder)
{
    size_t dims = (size_t)encoder->dims;
    thiele_status status;
    *columns = (thi_kernel_columns){.view = {.dims = encoder->dims, .columns = encoder->inputs}};
    THI_TRY(thi_alloc(ctx, &columns->column, dims, sizeof *columns->column));
    THI_TRY(thi_alloc(ctx, &columns->joined, dims, sizeof *columns->joined));
    THI_TRY(thi_alloc(ctx, &columns->column_name, (size_t)encoder->inputs + 1, sizeof *columns->column_name));
    THI_TRY(thi_alloc(ctx, &columns->dim_name, dims, sizeof *columns->dim_name));
    for (int i = 0; i < encoder->inputs; i++) {
        const thi_input *input = &encoder->input[i];
        columns->column_name[i] = input->name;
        for (int l = 0; l < thi_input_width(input); l++) {
            columns->column[input->first + l] = i;
            columns->joined[input->first + l] = input->one_scale && l > 0;
        }
    }
    if (encoder->key.name != NULL) {
        /* A column beyond theirs, and of no name. */
        columns->column[encoder->key.first] = encoder->inputs;
        columns->column_name[encoder->inputs] = "";
    }
    for (int d = 0; d < encoder->dims; d++) {
        thi_text text;
        thi_text_init(&text, ctx);
        const int column = columns->column[d];
        if (column < encoder->inputs && encoder->input[column].one_scale) {
            thi_text_add(&text, "%s", encoder->input[column].name);
        } else {
            thi_encoder_dim_name(encoder, d, &text);
        }
        THI_TRY(thi_text_take(&text, &columns->dim_name[d]));
    }
    columns->view.column = columns->column;
    columns->view.joined = columns->joined;
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
    thi_free(columns->joined);
    thi_free(columns->column_name);
    thi_free(columns->dim_name);
    *columns = (thi_kernel_columns){0};
}
