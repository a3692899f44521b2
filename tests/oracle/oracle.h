/*
 * What the kinds of oracle cases share. A case is {"case", "description", "inputs", "expected", "tolerance"} as in
 * vectors/README.md. A kind is one function: it reads the inputs, calls the library, and checks every field of
 * "expected". All of them fail by thi_fail, with a sentence that names the field.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <jansson.h>

#include "base/base.h"
#include "linalg/linalg.h"
#include <thiele/kernel.h>
#include <thiele/likelihood.h>

typedef struct oracle_case {
    thiele_context *ctx;
    json_t *inputs;
    json_t *expected; /* fields leave it as they are checked: what is left at the end was never looked at */
    double rel, abs;
} oracle_case;

/* How a value lies in the JSON, and in memory. */
typedef enum oracle_shape {
    ORACLE_SCALAR, /* a number: 1 x 1 */
    ORACLE_VECTOR, /* a list of n numbers: n x 1 */
    ORACLE_MATRIX, /* n lists of m numbers: n x m, column-major */
    ORACLE_ROWS    /* the same, n rows of data of m columns each: m x n, one row of data a column */
} oracle_shape;

/*
 * values.c. A field of an object, any of the shapes above, into a new matrix to be freed by thi_free(out->data).
 * Errors: FORMAT when it is absent, empty, ragged or holds anything but numbers.
 */
thiele_status oracle_read(oracle_case *c, const json_t *object, const char *field, oracle_shape shape, thi_matrix *out);
thiele_status oracle_read_number(oracle_case *c, const json_t *object, const char *field, double *out);
/* The text is borrowed from the object. */
thiele_status oracle_read_string(oracle_case *c, const json_t *object, const char *field, const char **out);
/* FORMAT unless the matrix has this shape; name is that of the field. */
thiele_status oracle_expect_shape(oracle_case *c, const char *field, thi_matrix A, int64_t rows, int64_t cols);

/* Compares with a field of "expected": NUMERIC at the first element with |got - want| > abs + rel |want|. */
thiele_status oracle_check(oracle_case *c, const char *field, oracle_shape shape, thi_matrix got);
thiele_status oracle_check_number(oracle_case *c, const char *field, double got);

/* kernels.c. The kernel described by inputs.kernel, over `dims` columns, with its values. */
thiele_status oracle_read_kernel(oracle_case *c, int dims, thiele_kernel **out);

/* likelihood.c. The likelihood that a JSON object describes. */
thiele_status oracle_read_likelihood(oracle_case *c, json_t *json, thiele_likelihood **out);

/* The kinds, one function each. */
thiele_status oracle_kernels(oracle_case *c);
thiele_status oracle_exact_gpr(oracle_case *c);
thiele_status oracle_metrics(oracle_case *c);
thiele_status oracle_likelihood(oracle_case *c);
thiele_status oracle_svgp(oracle_case *c);
thiele_status oracle_vfe(oracle_case *c);
thiele_status oracle_sites(oracle_case *c);
thiele_status oracle_mog(oracle_case *c);
thiele_status oracle_entropy(oracle_case *c);
thiele_status oracle_diagnostics(oracle_case *c);
thiele_status oracle_omega(oracle_case *c);
thiele_status oracle_omega_cdf(oracle_case *c);
thiele_status oracle_cavi(oracle_case *c);
thiele_status oracle_svi(oracle_case *c);
thiele_status oracle_posterior(oracle_case *c);
thiele_status oracle_sparse(oracle_case *c);
thiele_status oracle_sparse_steps(oracle_case *c);
thiele_status oracle_decoupled(oracle_case *c);
thiele_status oracle_blocksites(oracle_case *c);
thiele_status oracle_tightbound(oracle_case *c);

#endif
