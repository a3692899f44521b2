/* What libthiele-mpi offers: one function by a fixed name. The two are built apart, and meet when it is loaded. */
#ifndef THI_RANKS_PLUGIN_H
#define THI_RANKS_PLUGIN_H

#include <thiele/ranks.h>

/* Raised whenever thiele_ranks changes. */
enum { THI_RANKS_INTERFACE = 1 };
#define THI_RANKS_SYMBOL "thiele_ranks_plugin"

/* Starts MPI. NULL, or a sentence without a period. */
typedef const char *(*thi_ranks_plugin_fn)(int interface_version, thiele_ranks *out);

#endif
