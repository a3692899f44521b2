/* What writing and reading the layout share. */
#ifndef THI_TENSORS_INTERNAL_H
#define THI_TENSORS_INTERNAL_H

#include "model/tensors.h"

#define THI_FORMAT_NAME    "thiele"
#define THI_FORMAT_VERSION 3

/*
 * The header begins with these bytes, then come the checksum's eight digits and the rest: so the checksum can cover
 * every byte of the file, its own digits as zeros. Version 2 is the same with its own digit.
 */
#define THI_HEADER_VERSION "{\"__metadata__\":{\"format\":\"thiele\",\"version\":\""
#define THI_HEADER_START   THI_HEADER_VERSION "3\",\"crc32\":\""
#define THI_NO_CHECKSUM    "00000000"
#define THI_HEADER_MODEL   "\",\"model\":"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "model files are little-endian: byte swapping is needed on this processor"
#endif

static inline int64_t thi_tensor_elements(const thi_tensor *tensor)
{
    int64_t product = 1;
    for (int d = 0; d < tensor->dims; d++) {
        product *= tensor->shape[d];
    }
    return product;
}

bool thi_tensor_finite(const thi_tensor *tensor);
/* CRC-32 of the header's length and of the header with zeros for its checksum; the tensors' bytes are to follow. */
unsigned long thi_header_crc(const char *header, size_t length);

#endif
