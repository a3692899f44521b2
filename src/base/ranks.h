/* Numbers between the processes of a context (thiele/ranks.h). With one process they do nothing. */
#ifndef THI_RANKS_H
#define THI_RANKS_H

#include "base/base.h"

static inline bool thi_ranks_many(const thiele_context *with)
{
    return with->ranks.count > 1;
}
/* Errors: IO, when the connection is lost. */
thiele_status thi_ranks_send(thiele_context *ctx, const void *bytes, size_t length, int to);
thiele_status thi_ranks_receive(thiele_context *ctx, void *bytes, size_t length, int from);
/* From rank 0 to all. */
thiele_status thi_ranks_broadcast(thiele_context *ctx, void *bytes, size_t length);
/* Error: ARGUMENT where these bytes are not those of rank 0; `what` they stand for differs, says the message. */
thiele_status thi_ranks_agree(thiele_context *ctx, const void *bytes, size_t length, const char *what);

#endif
