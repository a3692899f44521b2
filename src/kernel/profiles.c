/* Picks the profiles' loops for this processor. */
#include "kernel/profiles.h"

#include "linalg/vector.h"

extern const thi_profile_ops thi_profiles_portable, thi_profiles_avx2, thi_profiles_avx512;

const thi_profile_ops *thi_profiles(void)
{
    return THI_BEST_ISA(thi_profiles);
}
