/*
 * Devices that large matrices may be worked on: the processor, always, and CUDA cards where there are some and
 * libthiele-cuda of the same version is installed. It is loaded when it is first needed; docs/cuda.md says more. A
 * context works on one device (thiele_context_options, `device`).
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
    uint64_t memory; /* bytes: what a card has; of the processor what the library may hold at once */
    uint64_t available;
    int threads;         /* of the processor; 0 for cards */
    int major, minor;    /* compute capability of a card, 0 for the processor */
    int double_slowdown; /* how many times slower than single precision a card is in double: 2, or 32 and more */
    int driver;          /* what a card's driver can run: 13000 is CUDA 13.0; 0 for the processor */
} thiele_device;

/* How many there are; the first is the processor. Where it is the only one, the context's message says why. */
THIELE_API int thiele_device_count(thiele_context *ctx);
/* What the index-th is. Errors: ARGUMENT (there are not so many), UNSUPPORTED (a card does not answer). */
THIELE_API thiele_status thiele_device_describe(thiele_context *ctx, int index, thiele_device *out);

#ifdef __cplusplus
}
#endif
#endif
