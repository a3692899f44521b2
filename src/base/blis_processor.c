/*
 * Which kernels BLIS uses. It knows processors by family and model, and one that is newer than itself gets portable
 * kernels, at a tenth of the speed (13 GF/s in place of 126 on a core of Zen 5, by BLIS 0.9). bli_env_get_var is
 * all that BLIS has in bli_env.c and is linked in its place: where the environment has nothing to say about kernels, a
 * processor that BLIS does not know is judged by its instructions.
 */
#include "base/blis_memory.h"

#define BLIS_EXPORT /* what stands in for functions of BLIS does not leave the library */
#include <blis.h>
#include <stdlib.h>
#include <string.h>

/* Of kernels that need no more than the processor has, those for the widest vectors. */
static gint_t by_instructions(gint_t fallback)
{
#if defined(__x86_64__) && defined(BLIS_CONFIG_SKX) && defined(BLIS_CONFIG_ZEN)
    __builtin_cpu_init();
    bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (fma && bli_cpuid_query_id() == BLIS_ARCH_GENERIC) {
        return wide ? BLIS_ARCH_SKX : BLIS_ARCH_ZEN;
    }
#endif
    return fallback;
}

gint_t bli_env_get_var(const char *name, gint_t fallback)
{
    const char *text = getenv(name);
    if (text != NULL) {
        return strtol(text, NULL, 10);
    }
    return strcmp(name, "BLIS_ARCH_TYPE") == 0 ? by_instructions(fallback) : fallback;
}

void thi_blis_start(void)
{
    bli_init();
}
