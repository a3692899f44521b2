/*
 * The memory that BLIS works in. BLIS ends the process when it cannot have memory, so it is given what was had before:
 * who is going to call it reserves for every thread that may, and a reservation that fails is an ordinary error.
 */
#ifndef THI_BLIS_MEMORY_H
#define THI_BLIS_MEMORY_H

#include "base/base.h"

/* Sees to it that so many threads more than before can be inside BLIS at once. False: there is no memory for that. */
bool thi_blis_reserve(int threads) THI_MUST_CHECK;
/* They won't be any more. The memory stays for those who come next. */
void thi_blis_release(int threads);
/* For tests: how often BLIS asked for more than was reserved. */
int64_t thi_blis_shortfalls(void);
/* BLIS, with the kernels that suit the processor. */
void thi_blis_start(void);

#endif
