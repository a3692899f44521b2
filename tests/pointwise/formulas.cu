/* Every pointwise formula once, as C++ and as CUDA: that they compile is the test. */
#include "kernel/profile_formulas.h"

#ifndef __CUDACC__
#define __global__
#endif

__global__ void profiles(thi_profile_args args, double t, thi_jet *out)
{
    out[0] = thi_profile_se(t, &args);
    out[1] = thi_profile_matern12(t, &args);
    out[2] = thi_profile_matern32(t, &args);
    out[3] = thi_profile_matern52(t, &args);
    out[4] = thi_profile_rq(t, &args);
    out[5] = thi_profile_linear(t, &args);
    out[6] = thi_profile_polynomial(t, &args);
    out[7] = thi_profile_one(t, &args);
}
