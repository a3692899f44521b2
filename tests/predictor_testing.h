/* Predictors by way of a file, for the tests of those that have parts of their own. */
#ifndef THI_PREDICTOR_TESTING_H
#define THI_PREDICTOR_TESTING_H

#include "testing.h"

#include "model/predictors.h"

/* Writes predictors and text, one object or a list of them, as a file, and reads what the file holds. */
static inline thiele_status through_file(thiele_context *ctx, thi_prior prior, thi_tensor_list *list,
                                         const json_t *json, thi_predictor *out)
{
    thiele_status status = THIELE_OK;
    char path[] = "/tmp/thiele-predictor-XXXXXX";
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
    thi_file file = {0};
    thi_tensors tensors;
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    close(handle);
    assert_ok(ctx, thi_file_begin(&file, ctx, path));
    assert_ok(ctx, thi_tensors_write(ctx, &file, text, list->count, thi_tensor_list_named(list)));
    assert_ok(ctx, thi_file_commit(&file, ctx));
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    size_t length = (size_t)ftell(stream);
    rewind(stream);
    unsigned char *bytes = malloc(length);
    assert_int_equal(fread(bytes, 1, length, stream), length);
    fclose(stream);
    unlink(path);
    assert_ok(ctx, thi_tensors_read(&tensors, ctx, path, bytes, length));
    json_t *back = json_loads(tensors.model_json, 0, NULL);
    size_t count = json_is_array(back) ? json_array_size(back) : 1;
    for (size_t i = 0; i < count && status == THIELE_OK; i++) {
        const json_t *one = json_is_array(back) ? json_array_get(back, i) : back;
        status = thi_predictor_read(out, ctx, &tensors, (int)i, &prior, 1, one);
    }
    json_decref(back);
    thi_tensors_clear(&tensors);
    free(bytes);
    free(text);
    return status;
}

#endif
