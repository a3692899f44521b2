/* The table of kernels: a new one is a row here, plus a profile or a feature map where none fits. */
#include <string.h>

#include "kernel/kernel.h"

const thi_kind thi_kinds[] = {
    /* name, features, family, profile, length-scale, extra parameter, degree */
    {"se", &thi_features_scaled, THI_DISTANCE, THI_PROFILE_SE, true, NULL, false},
    {"matern12", &thi_features_scaled, THI_DISTANCE, THI_PROFILE_MATERN12, true, NULL, false},
    {"matern32", &thi_features_scaled, THI_DISTANCE, THI_PROFILE_MATERN32, true, NULL, false},
    {"matern52", &thi_features_scaled, THI_DISTANCE, THI_PROFILE_MATERN52, true, NULL, false},
    {"rq", &thi_features_scaled, THI_DISTANCE, THI_PROFILE_RQ, true, "alpha", false},
    {"periodic", &thi_features_circle, THI_DISTANCE, THI_PROFILE_SE, true, "period", false},
    {"cosine", &thi_features_phase, THI_DOT, THI_PROFILE_LINEAR, true, NULL, false},
    {"linear", &thi_features_scaled, THI_DOT, THI_PROFILE_LINEAR, true, NULL, false},
    {"polynomial", &thi_features_scaled, THI_DOT, THI_PROFILE_POLYNOMIAL, true, "offset", true},
    {"constant", &thi_features_none, THI_DOT, THI_PROFILE_ONE, false, NULL, false},
    {"white", &thi_features_none, THI_WHITE, THI_PROFILE_ONE, false, NULL, false},
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
    return "se, matern12, matern32, matern52, rq, periodic, cosine, linear, polynomial, constant, white";
}
