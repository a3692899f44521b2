/*
 * The library for other devices, loaded when it is first asked for: libthiele-cuda of the same version, which is found
 * beside this library or command, where the system looks, or where THIELE_CUDA_LIBRARY of the environment says. What is
 * missing or does not fit is no error: one sentence, and the work goes on with the CPU.
 */
#ifndef THI_DEVICE_H
#define THI_DEVICE_H

#include "base/base.h"
#include "posterior/device_plugin.h"
#include <thiele/device.h>

/* The table of the library. UNSUPPORTED: there is none that fits, and the message says why. */
thiele_status thi_device_load(thiele_context *ctx, const thi_device_ops **ops);
/* A session on the context's card, begun when it is first asked for. UNSUPPORTED likewise. */
thiele_status thi_device_open(thiele_context *ctx);
/*
 * Whether work of this size goes to the card: it was asked for or is quicker there, and can be had. Where it was asked
 * for and cannot be had, the log says why, once.
 */
bool thi_device_takes(thiele_context *ctx, bool quicker);
/* The card failed with the context's message: the log says so, and the context goes on with the CPU. */
void thi_device_lost(thiele_context *ctx);
/* Turns a failure of the library's into the context's. */
thiele_status thi_device_fail(thiele_context *ctx, const thi_device_said *said);

#endif
