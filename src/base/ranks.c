/* The processes of a context: what travels between them, and the library that carries it. See ranks.h. */
#include "base/ranks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranks_plugin.h"
#include <thiele/version.h>

#define WORD(x)  #x
#define WORDS(x) WORD(x)
#define ENDING   ".so." WORDS(THIELE_VERSION_MAJOR) "." WORDS(THIELE_VERSION_MINOR)
#define VARIABLE "THIELE_MPI_LIBRARY"

enum { PATH_LENGTH = 4096 };

/* --- what travels ------------------------------------------------------------------------------------------------- */

static thiele_status lost(thiele_context *ctx)
{
    return thi_fail(ctx, THIELE_ERROR_IO, "process %d of %d lost the connection to the others", ctx->ranks.rank + 1,
                    ctx->ranks.count);
}

thiele_status thi_ranks_send(thiele_context *ctx, const void *bytes, size_t length, int to)
{
    return ctx->ranks.send(ctx->ranks.user, bytes, length, to) == 0 ? THIELE_OK : lost(ctx);
}

thiele_status thi_ranks_receive(thiele_context *ctx, void *bytes, size_t length, int from)
{
    return ctx->ranks.receive(ctx->ranks.user, bytes, length, from) == 0 ? THIELE_OK : lost(ctx);
}

thiele_status thi_ranks_broadcast(thiele_context *ctx, void *bytes, size_t length)
{
    return !thi_ranks_many(ctx) || ctx->ranks.broadcast(ctx->ranks.user, bytes, length, 0) == 0 ? THIELE_OK : lost(ctx);
}

thiele_status thi_ranks_agree(thiele_context *ctx, const void *bytes, size_t length, const char *what)
{
    unsigned char *first = NULL;
    thiele_status status;
    if (!thi_ranks_many(ctx)) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(ctx, &first, length, 1));
    memcpy(first, bytes, length);
    THI_TRY(thi_ranks_broadcast(ctx, first, length));
    if (memcmp(first, bytes, length) != 0) {
        status = thi_fail(ctx, THIELE_ERROR_ARGUMENT, "process %d of %d has another %s than the first",
                          ctx->ranks.rank + 1, ctx->ranks.count, what);
    }
out:
    thi_free(first);
    return status;
}

/* --- who carries it ----------------------------------------------------------------------------------------------- */

/* What launchers say to the processes that they begin. */
static const struct {
    const char *variable, *library;
} launchers[] = {{"OMPI_COMM_WORLD_SIZE", "libthiele-mpi-openmpi" ENDING}, {"PMI_SIZE", "libthiele-mpi-mpich" ENDING}};

/* The library for the launcher that began this process with others; NULL: none did. */
static const char *find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *size = getenv(launchers[i].variable);
        if (size != NULL && atoi(size) > 1) {
            return launchers[i].library;
        }
    }
    return NULL;
}

/* Of Open MPI parts of its own are loaded later, which look for its names among those of the whole program. */
static void *load_library(const char *name)
{
    enum { MODE = RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE };
    static const char anchor;
    char path[PATH_LENGTH];
    Dl_info info;
    const char *given = secure_getenv(VARIABLE), *slash;
    if (given != NULL && given[0] != '\0') {
        return dlopen(given, MODE);
    }
    if (dladdr(&anchor, &info) != 0 && info.dli_fname != NULL && (slash = strrchr(info.dli_fname, '/')) != NULL) {
        int length = snprintf(path, sizeof path, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, name);
        void *library = length > 0 && length < PATH_LENGTH ? dlopen(path, MODE) : NULL;
        if (library != NULL) {
            return library;
        }
    }
    return dlopen(name, MODE);
}

thiele_status thiele_ranks_open(thiele_ranks *out, char *why, size_t length)
{
    THI_NEED(NULL, out && why);
    const char *name = find_launcher(), *says;
    thi_ranks_plugin_fn plugin = NULL;
    *out = (thiele_ranks){.count = 1};
    why[0] = '\0';
    if (name == NULL) {
        return THIELE_OK;
    }
    void *library = load_library(name);
    if (library == NULL) {
        says = dlerror();
        snprintf(why, length, "the library that carries numbers between processes cannot be loaded (%.300s)",
                 says != NULL ? says : "no reason given");
        return THIELE_ERROR_UNSUPPORTED;
    }
    /* By copying: C has no cast between pointers to data and to functions. */
    void *symbol = dlsym(library, THI_RANKS_SYMBOL);
    memcpy(&plugin, &symbol, sizeof symbol);
    says = plugin != NULL ? plugin(THI_RANKS_INTERFACE, out) : "it is no library of thiele's";
    if (says != NULL) {
        snprintf(why, length, "%s cannot be used: %.300s", name, says);
        return THIELE_ERROR_UNSUPPORTED;
    }
    return THIELE_OK;
}

void thiele_ranks_close(thiele_ranks *ranks, int failed)
{
    THI_NEED_OR(, ranks);
    if (ranks->count > 1 && ranks->end != NULL) {
        ranks->end(ranks->user, failed);
    }
    *ranks = (thiele_ranks){.count = 1};
}
