/* The list of engines. */
#include "posterior/engine.h"

#ifndef THI_ENGINES
#define THI_ENGINES "posterior/engines.def"
#endif

/* A test has one more. */
#define THI_ENGINE(name) extern const thi_engine thi_engine_##name;
#include THI_ENGINES
#undef THI_ENGINE

#define THI_ENGINE(name) &thi_engine_##name,
const thi_engine *const thi_engines[] = {
#include THI_ENGINES
    NULL};
