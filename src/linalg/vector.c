/* Picks the vector loops for this processor. */
#include "linalg/vector.h"

extern const thi_vector_ops thi_vector_portable;
#if defined(__x86_64__)
extern const thi_vector_ops thi_vector_avx2;
extern const thi_vector_ops thi_vector_avx512;
#endif

const thi_vector_ops *thi_vector(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        return &thi_vector_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &thi_vector_avx2;
    }
#endif
    return &thi_vector_portable;
}
