/*
 * The container of a model file: the safetensors layout (an 8-byte little-endian header length, a JSON header, raw
 * little-endian tensors without gaps). The header's "__metadata__" holds a format name, a version, a checksum and one
 * JSON text for the model. docs/file-format.md has the details.
 */
#ifndef THI_TENSORS_H
#define THI_TENSORS_H

#include "linalg/linalg.h"

enum { THI_TENSORS_MAX = 20000, THI_TENSOR_DIMS_MAX = 2 };

/* One array of doubles. Shapes are row-major, as the layout wants: our D x n matrix of n rows is {n, D}. */
typedef struct thi_tensor {
    const char *name;
    int dims;
    int64_t shape[THI_TENSOR_DIMS_MAX];
    const double *data; /* borrowed when writing */
    thi_matrix lower;   /* instead of data when writing: a lower triangle, packed column by column */
} thi_tensor;

/* Refuses numbers that are not finite, which no reader would take. */
thiele_status thi_tensors_check(thiele_context *ctx, int count, const thi_tensor *tensor);
thiele_status thi_tensors_write(thiele_context *ctx, thi_file *file, const char *model_json, int count,
                                const thi_tensor *tensor);

/* A file's bytes after every length, offset, shape and the checksum were found right. */
typedef struct thi_tensors {
    char *model_json;
    int count;
    char **name;
    thi_tensor *tensor;
    const double *values; /* all data, borrowed from the bytes */
} thi_tensors;

/* Never trusts the bytes, which are borrowed and start at a multiple of 8. Error: FORMAT, saying what is wrong; MEMORY,
 * LIMIT. */
thiele_status thi_tensors_read(thi_tensors *tensors, thiele_context *ctx, const char *source,
                               const unsigned char *bytes, size_t length);
void thi_tensors_clear(thi_tensors *tensors);
bool thi_tensors_have(const thi_tensors *tensors, const char *name);
/* The named tensor of exactly this shape, every number finite, borrowed. Error: FORMAT. */
thiele_status thi_tensors_view(const thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, const double **out);
/* The same as a new copy. */
thiele_status thi_tensors_take(const thi_tensors *tensors, thiele_context *ctx, const char *name, int dims,
                               const int64_t *shape, double **out);

#endif
