/*
 * The container of a model file: the safetensors layout (an 8-byte little-endian header length, a JSON header, raw
 * little-endian tensors without gaps). The header's "__metadata__" holds a format name, a version, a checksum and one
 * JSON text for the model. docs/file-format.md has the details.
 */
#ifndef THI_TENSORS_H
#define THI_TENSORS_H

#include "linalg/linalg.h"

enum { THI_TENSORS_MAX = 1000000, THI_TENSOR_DIMS_MAX = 2 };

/* One array of doubles. Shapes are row-major, as the layout wants: our D x n matrix of n rows is {n, D}. */
typedef struct thi_tensor {
    const char *name;
    int dims;
    int64_t shape[THI_TENSOR_DIMS_MAX];
    const double *data; /* borrowed */
    thi_matrix lower;   /* instead of data when writing: a lower triangle, packed column by column */
} thi_tensor;

/* The j-th number on the diagonal of a packed lower triangle of n rows. */
double thi_tensor_diagonal(const thi_tensor *tensor, int64_t n, int64_t j);
/* Refuses numbers that are not finite, which no reader would take. */
thiele_status thi_tensors_check(thiele_context *ctx, int count, const thi_tensor *tensor);
thiele_status thi_tensors_write(thiele_context *ctx, thi_file *file, const char *model_json, int count,
                                const thi_tensor *tensor);

/* A file's bytes after every length, offset, shape and the checksum were found right. */
typedef struct thi_tensors {
    int version; /* of the format */
    char *model_json;
    int count;
    char **name;
    thi_tensor *tensor;
    bool *used;           /* was asked for, and is finite */
    const char *prefix;   /* before the names that are asked for; NULL: none */
    int next;             /* where the search for a name begins: they are asked for in their order */
    const double *values; /* all data, borrowed from the bytes; NULL: see thi_tensors_reread */
} thi_tensors;

/* Never trusts the bytes, which are borrowed and start at a multiple of 8. Error: FORMAT, saying what is wrong; MEMORY,
 * LIMIT. */
thiele_status thi_tensors_read(thi_tensors *tensors, thiele_context *ctx, const char *source,
                               const unsigned char *bytes, size_t length);
/*
 * The header and the table of a file as it has been written, by the same reader; the numbers are those that were
 * written (`tensor`, borrowed), so that nothing large is read or kept twice.
 */
thiele_status thi_tensors_reread(thi_tensors *tensors, thiele_context *ctx, thi_file *file, int count,
                                 const thi_tensor *tensor);
void thi_tensors_clear(thi_tensors *tensors);
bool thi_tensors_have(thi_tensors *tensors, const char *name);
/* The named tensor of exactly this shape, every number finite, borrowed. Error: FORMAT. */
thiele_status thi_tensors_find(thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, const thi_tensor **out);
/* Its numbers as a new copy; none of a triangle that was reread. */
thiele_status thi_tensors_take(thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, double **out);
/* Refuses tensors that nobody asked for. Error: FORMAT. */
thiele_status thi_tensors_all_used(const thi_tensors *tensors, thiele_context *ctx);

#endif
