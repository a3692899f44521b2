/*
 * kernels_*: covariance matrices, their diagonal, and the adjoint of sum_ij Kbar_ij K(X, X2)_ij in log theta and in X2,
 * all through the public API. The kernel of a case becomes text for thiele_kernel_parse:
 *   {"type": "se", "lengthscales": [0.5, 1.2], "variance": 0.85}  ->  se(ard, lengthscale~[0.5,1.2], variance~0.85)
 * Some files call the type "kind".
 */
#include "oracle.h"

#include <string.h>

/* The parameters a kernel's object may have beside its type and length-scales, in the order of the library's. */
static const char *const parameters[] = {"variance", "alpha", "period"};

/* One number, or a list of one, is a length-scale for all columns; a longer list has one for each. */
static thiele_status add_lengthscales(oracle_case *c, const json_t *json, thi_text *text)
{
    double value = 0.0;
    if (json_is_number(json_object_get(json, "lengthscales"))) {
        thiele_status status = oracle_read_number(c, json, "lengthscales", &value);
        thi_text_add(text, "lengthscale~%.17g", value);
        return status;
    }
    thi_matrix l = {0};
    thiele_status status = oracle_read(c, json, "lengthscales", ORACLE_VECTOR, &l);
    if (status == THIELE_OK && l.rows == 1) {
        thi_text_add(text, "lengthscale~%.17g", l.data[0]);
    } else if (status == THIELE_OK) {
        thi_text_add(text, "ard, lengthscale~");
        for (int64_t i = 0; i < l.rows; i++) {
            thi_text_add(text, "%s%.17g", i == 0 ? "[" : ",", l.data[i]);
        }
        thi_text_add(text, "]");
    }
    thi_free(l.data);
    return status;
}

static thiele_status add_simple(oracle_case *c, const json_t *json, const char *type, thi_text *text)
{
    size_t known = 2;
    thi_text_add(text, "%s(", type);
    thiele_status status = add_lengthscales(c, json, text);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters && status == THIELE_OK; i++) {
        double value = 0.0;
        if (json_object_get(json, parameters[i]) != NULL) {
            status = oracle_read_number(c, json, parameters[i], &value);
            thi_text_add(text, ", %s~%.17g", parameters[i], value);
            known++;
        }
    }
    thi_text_add(text, ")");
    if (status == THIELE_OK && json_object_size(json) != known) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "a kernel of type '%s' has a field that is not known here", type);
    }
    return status;
}

static thiele_status add_kernel(oracle_case *c, const json_t *json, thi_text *text);

/* Parentheses are always right around a part, and needed around a sum within a product. */
static thiele_status add_parts(oracle_case *c, const json_t *json, const char *separator, thi_text *text)
{
    const json_t *parts = json_object_get(json, "parts");
    size_t count = json_array_size(parts);
    if (count == 0 || json_object_size(json) != 2) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "a sum or product has no list of 'parts' or a further field");
    }
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < count && status == THIELE_OK; i++) {
        const json_t *part = json_array_get(parts, i);
        bool composite = json_object_get(part, "parts") != NULL;
        thi_text_add(text, "%s%s", i == 0 ? "" : separator, composite ? "(" : "");
        status = add_kernel(c, part, text);
        thi_text_add(text, "%s", composite ? ")" : "");
    }
    return status;
}

static thiele_status add_kernel(oracle_case *c, const json_t *json, thi_text *text)
{
    const char *type = NULL;
    thiele_status status = oracle_read_string(c, json, json_object_get(json, "kind") != NULL ? "kind" : "type", &type);
    if (status != THIELE_OK) {
        return status;
    }
    if (strcmp(type, "sum") == 0) {
        return add_parts(c, json, " + ", text);
    }
    if (strcmp(type, "product") == 0) {
        return add_parts(c, json, " * ", text);
    }
    return add_simple(c, json, type, text);
}

thiele_status oracle_read_kernel(oracle_case *c, int dims, thiele_kernel **out)
{
    thi_text buffer;
    char *text = NULL;
    const json_t *json = json_object_get(c->inputs, "kernel");
    thi_text_init(&buffer, c->ctx);
    thiele_status status = THIELE_OK;
    *out = NULL;
    if (!json_is_object(json)) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "the field 'kernel' is missing or no object");
        goto out;
    }
    THI_TRY(add_kernel(c, json, &buffer));
    THI_TRY(thi_text_take(&buffer, &text));
    THI_TRY(thiele_kernel_parse(out, c->ctx, text, dims, NULL));
out:
    thi_text_clear(&buffer);
    thi_free(text);
    return status;
}

static thiele_status check_matrices(oracle_case *c, const thiele_kernel *kernel, thi_matrix X, thi_matrix X2)
{
    thi_matrix K12 = {0}, K11 = {0}, diagonal = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&K12, c->ctx, X.cols, X2.cols));
    THI_TRY(thi_matrix_alloc(&K11, c->ctx, X.cols, X.cols));
    THI_TRY(thi_matrix_alloc(&diagonal, c->ctx, X.cols, 1));
    THI_TRY(thiele_kernel_matrix(kernel, c->ctx, X.cols, X.data, X2.cols, X2.data, K12.data));
    THI_TRY(oracle_check(c, "K_X_X2", ORACLE_MATRIX, K12));
    THI_TRY(thiele_kernel_matrix(kernel, c->ctx, X.cols, X.data, X.cols, NULL, K11.data));
    THI_TRY(oracle_check(c, "K_X_X", ORACLE_MATRIX, K11));
    THI_TRY(thiele_kernel_diagonal(kernel, c->ctx, X.cols, X.data, diagonal.data));
    THI_TRY(oracle_check(c, "diag_X", ORACLE_VECTOR, diagonal));
out:
    thi_free(K12.data);
    thi_free(K11.data);
    thi_free(diagonal.data);
    return status;
}

static thiele_status check_adjoint(oracle_case *c, const thiele_kernel *kernel, thi_matrix X, thi_matrix X2)
{
    thi_matrix Kbar = {0}, theta_bar = {0}, X2_bar = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "Kbar", ORACLE_MATRIX, &Kbar));
    THI_TRY(oracle_expect_shape(c, "Kbar", Kbar, X.cols, X2.cols));
    THI_TRY(thi_matrix_alloc(&theta_bar, c->ctx, thiele_kernel_parameters(kernel), 1));
    THI_TRY(thi_matrix_alloc(&X2_bar, c->ctx, X2.rows, X2.cols));
    THI_TRY(thiele_kernel_adjoint(kernel, c->ctx, X.cols, X.data, X2.cols, X2.data, Kbar.data, theta_bar.data,
                                  X2_bar.data));
    THI_TRY(oracle_check(c, "vjp_log_theta", ORACLE_VECTOR, theta_bar));
    THI_TRY(oracle_check(c, "vjp_X2", ORACLE_ROWS, X2_bar));
out:
    thi_free(Kbar.data);
    thi_free(theta_bar.data);
    thi_free(X2_bar.data);
    return status;
}

thiele_status oracle_kernels(oracle_case *c)
{
    thi_matrix X = {0}, X2 = {0};
    thiele_kernel *kernel = NULL;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "X", ORACLE_ROWS, &X));
    THI_TRY(oracle_read(c, c->inputs, "X2", ORACLE_ROWS, &X2));
    THI_TRY(oracle_expect_shape(c, "X2", X2, X.rows, X2.cols));
    THI_TRY(oracle_read_kernel(c, (int)X.rows, &kernel));
    THI_TRY(check_matrices(c, kernel, X, X2));
    THI_TRY(check_adjoint(c, kernel, X, X2));
out:
    thi_free(X.data);
    thi_free(X2.data);
    thiele_kernel_destroy(kernel);
    return status;
}
