/* The table of kernels: a new one is a row of kinds.def, plus a profile or a feature map where none fits. */
#include <string.h>

#include "kernel/kernel.h"

const thi_kind thi_kinds[] = {
#define THI_KIND(name, features, family, profile, lengthscale, extra, degree)                                          \
    {#name, &thi_features_##features, THI_##family, THI_PROFILE_##profile, lengthscale, extra, degree},
#include THI_KINDS
#undef THI_KIND
    {NULL, NULL, THI_WHITE, THI_PROFILE_ONE, false, NULL, false},
};

const thi_kind *thi_kind_find(const char *name, size_t length)
{
    for (const thi_kind *kind = thi_kinds; kind->name != NULL; kind++) {
        if (strlen(kind->name) == length && memcmp(kind->name, name, length) == 0) {
            return kind;
        }
    }
    return NULL;
}

const char *thi_kind_names(void)
{
    static const char names[] = ""
#define THI_KIND(name, ...) ", " #name
#include THI_KINDS
#undef THI_KIND
        ;
    return names + strlen(", ");
}
