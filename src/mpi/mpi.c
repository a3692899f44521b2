/*
 * libthiele-mpi: the processes of MPI_COMM_WORLD as ranks (include/thiele/ranks.h). Built once for each MPI, as these
 * are no more alike than their headers, and loaded at run time by the library that needs it.
 */
#include <mpi.h>

#include "base/ranks_plugin.h"

/* What MPI counts with an int goes in pieces. */
static const size_t PIECE = (size_t)1 << 30;

static MPI_Comm world;

static int piece_of(size_t left)
{
    return (int)(left < PIECE ? left : PIECE);
}

static int send_bytes(void *user, const void *bytes, size_t length, int to)
{
    (void)user;
    const char *at = bytes;
    int failed = 0;
    for (size_t left = length; left > 0 && !failed; left -= (size_t)piece_of(left)) {
        failed = MPI_Send(at + (length - left), piece_of(left), MPI_BYTE, to, 0, world) != MPI_SUCCESS;
    }
    return failed;
}

static int receive_bytes(void *user, void *bytes, size_t length, int from)
{
    (void)user;
    char *at = bytes;
    int failed = 0;
    for (size_t left = length; left > 0 && !failed; left -= (size_t)piece_of(left)) {
        failed =
            MPI_Recv(at + (length - left), piece_of(left), MPI_BYTE, from, 0, world, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    }
    return failed;
}

static int broadcast_bytes(void *user, void *bytes, size_t length, int from)
{
    (void)user;
    char *at = bytes;
    int failed = 0;
    for (size_t left = length; left > 0 && !failed; left -= (size_t)piece_of(left)) {
        failed = MPI_Bcast(at + (length - left), piece_of(left), MPI_BYTE, from, world) != MPI_SUCCESS;
    }
    return failed;
}

static void end(void *user, int failed)
{
    (void)user;
    if (failed) {
        MPI_Abort(world, failed);
    } else {
        MPI_Finalize();
    }
}

__attribute__((visibility("default"))) const char *thiele_ranks_plugin(int interface_version, thiele_ranks *out);

const char *thiele_ranks_plugin(int interface_version, thiele_ranks *out)
{
    int provided, begun;
    if (interface_version != THI_RANKS_INTERFACE) {
        return "it is of another version";
    }
    if (MPI_Initialized(&begun) != MPI_SUCCESS || begun) {
        return "MPI was started before by somebody else";
    }
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        MPI_Comm_dup(MPI_COMM_WORLD, &world) != MPI_SUCCESS) {
        return "MPI does not start";
    }
    *out = (thiele_ranks){.send = send_bytes, .receive = receive_bytes, .broadcast = broadcast_bytes, .end = end};
    MPI_Comm_rank(world, &out->rank);
    MPI_Comm_size(world, &out->count);
    return NULL;
}
