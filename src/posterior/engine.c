/* The list of engines. */
#include "posterior/engine.h"

#define THI_ENGINE(name) &thi_engine_##name,
const thi_engine *const thi_engines[] = {
#include THI_ENGINES
    NULL};
