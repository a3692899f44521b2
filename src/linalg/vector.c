/* Picks the vector loops for this processor. */
#include "linalg/vector.h"

extern const thi_vector_ops thi_vector_portable, thi_vector_avx2, thi_vector_avx512;

const thi_vector_ops *thi_vector(void)
{
    return THI_BEST_ISA(thi_vector);
}
