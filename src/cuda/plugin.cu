/* The table of libthiele-cuda, and the one name that leaves it. */
#include "cuda/plugin.h"

#include <thiele/version.h>

static const thi_device_ops operations = {
    THI_DEVICE_INTERFACE,      THIELE_VERSION,       thi_cuda_count,
    thi_cuda_describe,         thi_cuda_begin,       thi_cuda_end,
    thi_cuda_exact_open,       thi_cuda_exact_close, thi_cuda_exact_factor,
    thi_cuda_exact_solve,      thi_cuda_exact_pull,  thi_cuda_exact_diagonal,
    thi_cuda_exact_factor_out,
};

extern "C" __attribute__((visibility("default"))) const thi_device_ops *thiele_device_plugin(void)
{
    return &operations;
}
