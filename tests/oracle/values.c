/*
 * Reading numbers, lists and nested lists out of a case, and comparing results with those in it. The files are data
 * from elsewhere: every type and length is checked before use.
 */
#include "oracle.h"

#include <math.h>

/* The longest "field[i][j]" that fits a message. */
enum { PLACE_MAX = 200 };

static thiele_status find(oracle_case *c, const json_t *object, const char *field, const json_t **out)
{
    *out = json_object_get(object, field);
    if (*out == NULL) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "the field '%s' is missing", field);
    }
    return THIELE_OK;
}

static thiele_status number_of(oracle_case *c, const json_t *json, const char *field, double *out)
{
    if (!json_is_number(json)) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'%s' holds something that is no number", field);
    }
    *out = json_number_value(json);
    return THIELE_OK;
}

static thiele_status length_of(oracle_case *c, const json_t *json, const char *field, size_t *out)
{
    *out = json_array_size(json);
    if (*out == 0) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'%s' is no list or an empty one where a list is needed", field);
    }
    return THIELE_OK;
}

/* Fills column `column` of out with the numbers of a list. */
static thiele_status read_list(oracle_case *c, const json_t *list, const char *field, thi_matrix out, int64_t column)
{
    if (json_array_size(list) != (size_t)out.rows) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'%s' has lists of different lengths", field);
    }
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < out.rows && status == THIELE_OK; i++) {
        status = number_of(c, json_array_get(list, (size_t)i), field, &out.data[i + column * out.ld]);
    }
    return status;
}

/* n lists of m numbers as m x n. */
static thiele_status read_rows(oracle_case *c, const json_t *json, const char *field, thi_matrix *out)
{
    size_t n = 0, m = 0;
    thiele_status status = length_of(c, json, field, &n);
    if (status == THIELE_OK) {
        status = length_of(c, json_array_get(json, 0), field, &m);
    }
    if (status == THIELE_OK) {
        status = thi_matrix_alloc(out, c->ctx, (int64_t)m, (int64_t)n);
    }
    for (size_t i = 0; i < n && status == THIELE_OK; i++) {
        status = read_list(c, json_array_get(json, i), field, *out, (int64_t)i);
    }
    return status;
}

static thiele_status read_matrix(oracle_case *c, const json_t *json, const char *field, thi_matrix *out)
{
    thi_matrix rows = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(read_rows(c, json, field, &rows));
    THI_TRY(thi_matrix_alloc(out, c->ctx, rows.cols, rows.rows));
    for (int64_t j = 0; j < out->cols; j++) {
        for (int64_t i = 0; i < out->rows; i++) {
            out->data[i + j * out->ld] = rows.data[j + i * rows.ld];
        }
    }
out:
    thi_free(rows.data);
    return status;
}

static thiele_status read_vector(oracle_case *c, const json_t *json, const char *field, thi_matrix *out)
{
    size_t n = 0;
    thiele_status status = length_of(c, json, field, &n);
    if (status == THIELE_OK) {
        status = thi_matrix_alloc(out, c->ctx, (int64_t)n, 1);
    }
    return status == THIELE_OK ? read_list(c, json, field, *out, 0) : status;
}

static thiele_status read_scalar(oracle_case *c, const json_t *json, const char *field, thi_matrix *out)
{
    thiele_status status = thi_matrix_alloc(out, c->ctx, 1, 1);
    return status == THIELE_OK ? number_of(c, json, field, out->data) : status;
}

thiele_status oracle_read(oracle_case *c, const json_t *object, const char *field, oracle_shape shape, thi_matrix *out)
{
    static thiele_status (*const readers[])(oracle_case *, const json_t *, const char *, thi_matrix *) = {
        [ORACLE_SCALAR] = read_scalar,
        [ORACLE_VECTOR] = read_vector,
        [ORACLE_MATRIX] = read_matrix,
        [ORACLE_ROWS] = read_rows,
    };
    const json_t *json = NULL;
    *out = (thi_matrix){0};
    thiele_status status = find(c, object, field, &json);
    if (status == THIELE_OK) {
        status = readers[shape](c, json, field, out);
    }
    if (status != THIELE_OK) {
        thi_free(out->data);
        *out = (thi_matrix){0};
    }
    return status;
}

thiele_status oracle_read_number(oracle_case *c, const json_t *object, const char *field, double *out)
{
    const json_t *json = NULL;
    thiele_status status = find(c, object, field, &json);
    return status == THIELE_OK ? number_of(c, json, field, out) : status;
}

thiele_status oracle_read_string(oracle_case *c, const json_t *object, const char *field, const char **out)
{
    const json_t *json = NULL;
    thiele_status status = find(c, object, field, &json);
    if (status == THIELE_OK && !json_is_string(json)) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'%s' is no text", field);
    }
    *out = json_string_value(json);
    return status;
}

thiele_status oracle_expect_shape(oracle_case *c, const char *field, thi_matrix A, int64_t rows, int64_t cols)
{
    if (A.rows == rows && A.cols == cols) {
        return THIELE_OK;
    }
    return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'%s' is %lld x %lld where %lld x %lld is needed", field,
                    (long long)A.rows, (long long)A.cols, (long long)rows, (long long)cols);
}

/* "K[2][3]": the element's place as the file counts it, rows of lists from zero. */
static void place_of(char *place, const char *field, oracle_shape shape, int64_t i, int64_t j)
{
    if (shape == ORACLE_SCALAR) {
        snprintf(place, PLACE_MAX, "%s", field);
    } else if (shape == ORACLE_VECTOR) {
        snprintf(place, PLACE_MAX, "%s[%lld]", field, (long long)i);
    } else if (shape == ORACLE_MATRIX) {
        snprintf(place, PLACE_MAX, "%s[%lld][%lld]", field, (long long)i, (long long)j);
    } else {
        snprintf(place, PLACE_MAX, "%s[%lld][%lld]", field, (long long)j, (long long)i);
    }
}

static thiele_status compare(oracle_case *c, const char *field, oracle_shape shape, thi_matrix got, thi_matrix want)
{
    for (int64_t j = 0; j < want.cols; j++) {
        for (int64_t i = 0; i < want.rows; i++) {
            double g = got.data[i + j * got.ld], w = want.data[i + j * want.ld];
            if (!(fabs(g - w) <= c->abs + c->rel * fabs(w))) {
                char place[PLACE_MAX];
                place_of(place, field, shape, i, j);
                return thi_fail(c->ctx, THIELE_ERROR_NUMERIC, "%s: got %.17g want %.17g (differs by %.3g)", place, g, w,
                                g - w);
            }
        }
    }
    return THIELE_OK;
}

thiele_status oracle_check(oracle_case *c, const char *field, oracle_shape shape, thi_matrix got)
{
    thi_matrix want = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->expected, field, shape, &want));
    THI_TRY(oracle_expect_shape(c, field, want, got.rows, got.cols));
    THI_TRY(compare(c, field, shape, got, want));
    json_object_del(c->expected, field);
out:
    thi_free(want.data);
    return status;
}

thiele_status oracle_check_number(oracle_case *c, const char *field, double got)
{
    return oracle_check(c, field, ORACLE_SCALAR, thi_matrix_view(&got, 1, 1, 1));
}
