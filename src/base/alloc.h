/* The heap that a context counts its memory in. */
#ifndef THI_ALLOC_H
#define THI_ALLOC_H

#include "base/base.h"

/* limit 0: nine tenths of the machine's memory. NULL when there is no memory for it. */
thi_heap *thi_heap_create(size_t limit);
/* Drops the context's hold; the heap goes when its last block does. */
void thi_heap_release(thi_heap *heap);

#endif
