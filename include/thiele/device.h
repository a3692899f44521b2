/*
 * Devices that can work on large matrices: always the processor, and any CUDA cards where libthiele-cuda of the same
 * version is installed. It is loaded when first needed; docs/cuda.md says more. A context uses one device
 * (thiele_context_options, `device`).
 */
#ifndef THIELE_DEVICE_H
#define THIELE_DEVICE_H

#include <thiele/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_device {
    char name[16];   /* for the context's options: "cpu", "cuda:0" */
    char model[128]; /* "NVIDIA H200"; empty for the processor */
    uint64_t memory; /* bytes: what a card has; for the processor, what the library may hold at once */
    uint64_t available;
    int threads;         /* of the processor; 0 for cards */
    int major, minor;    /* compute capability of a card, 0 for the processor */
    int double_slowdown; /* how many times slower a card is in double than in single precision: 2, or 32 and more */
    int driver;          /* newest CUDA that a card's driver runs: 13000 is 13.0; 0 for the processor */
} thiele_device;

/* The number of devices; the first is the processor. If it is the only one, the context's message says why. */
THIELE_API int thiele_device_count(thiele_context *ctx);
/* Describes the index-th. Errors: ARGUMENT (no such device), UNSUPPORTED (a card does not answer). */
THIELE_API thiele_status thiele_device_describe(thiele_context *ctx, int index, thiele_device *out);

#ifdef __cplusplus
}
#endif
#endif
