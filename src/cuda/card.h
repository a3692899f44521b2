/* What the files of libthiele-cuda share: a session on one card, memory on it, and failures as sentences. */
#ifndef THI_CUDA_CARD_H
#define THI_CUDA_CARD_H

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include "posterior/device_plugin.h"

struct thi_session {
    int card;
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
    cusolverDnParams_t params;
};

/* Puts the failure of a call into `said`; true when there is one. */
bool thi_cuda_failed(cudaError_t error, const char *what, thi_device_said *said);
bool thi_cuda_failed(cublasStatus_t error, const char *what, thi_device_said *said);
bool thi_cuda_failed(cusolverStatus_t error, const char *what, thi_device_said *said);

/* Leaves the function, which has a `said`, when a call failed. */
#define CUDA_TRY(call)                                                                                                 \
    do {                                                                                                               \
        if (thi_cuda_failed(call, #call, said)) {                                                                      \
            return THIELE_ERROR_UNSUPPORTED;                                                                           \
        }                                                                                                              \
    } while (0)
#define THI_CUDA_TRY(call)                                                                                             \
    do {                                                                                                               \
        thiele_status status_ = (call);                                                                                \
        if (status_ != THIELE_OK) {                                                                                    \
            return status_;                                                                                            \
        }                                                                                                              \
    } while (0)

/* count doubles on the card. */
thiele_status thi_cuda_doubles(double **out, size_t count, thi_device_said *said);

#endif
