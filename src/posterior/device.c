/* Finds and loads the library for other devices, and says what is there. See device.h. */
#include "posterior/device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <thiele/version.h>

#define WORD(x)   #x
#define WORDS(x)  WORD(x)
#define FILE_NAME "libthiele-cuda.so." WORDS(THIELE_VERSION_MAJOR) "." WORDS(THIELE_VERSION_MINOR)
#define VARIABLE  "THIELE_CUDA_LIBRARY"

enum { PATH_LENGTH = 4096 };
/* Cards for games work in double at a 32nd of their speed or less: `auto` leaves them alone. */
enum { SLOWDOWN_MOST = 4 };

/* The library beside the file that this code is in; false: there is no such path. */
static bool beside(char path[PATH_LENGTH])
{
    static const char anchor;
    Dl_info info;
    const char *slash;
    if (dladdr(&anchor, &info) == 0 || info.dli_fname == NULL || (slash = strrchr(info.dli_fname, '/')) == NULL) {
        return false;
    }
    int length = snprintf(path, PATH_LENGTH, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, FILE_NAME);
    return length > 0 && length < PATH_LENGTH;
}

/* It stays loaded: CUDA does not like to be unloaded, and contexts come and go. */
static void *load_library(void)
{
    enum { MODE = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };
    char path[PATH_LENGTH];
    const char *given = secure_getenv(VARIABLE);
    if (given != NULL && given[0] != '\0') {
        return dlopen(given, MODE);
    }
    void *library = beside(path) ? dlopen(path, MODE) : NULL;
    return library != NULL ? library : dlopen(FILE_NAME, MODE);
}

/* Whether it is worth looking for a card that nobody asked for: without a driver loading takes time for nothing. */
static bool has_driver(void)
{
    const char *given = secure_getenv(VARIABLE);
    return (given != NULL && given[0] != '\0') || dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL;
}

thiele_status thi_device_load(thiele_context *ctx, const thi_device_ops **ops)
{
    thi_device_plugin_fn plugin = NULL;
    void *library = load_library();
    *ops = NULL;
    if (library == NULL) {
        const char *why = dlerror();
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "libthiele-cuda, which works on CUDA cards, cannot be loaded (%.300s)",
                        why != NULL ? why : "no reason given");
    }
    /* By copying: C has no cast between pointers to data and to functions. */
    void *symbol = dlsym(library, THI_DEVICE_SYMBOL);
    memcpy(&plugin, &symbol, sizeof symbol);
    const thi_device_ops *found = plugin != NULL ? plugin() : NULL;
    if (found == NULL || found->interface_version != THI_DEVICE_INTERFACE ||
        strcmp(found->version, THIELE_VERSION) != 0) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "libthiele-cuda and this library, %s, differ in version: install both in the same version",
                        THIELE_VERSION);
    }
    *ops = found;
    return THIELE_OK;
}

thiele_status thi_device_fail(thiele_context *ctx, const thi_device_said *said)
{
    return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "%s", said->text);
}

/* A table that has cards. */
static thiele_status find_cards(thiele_context *ctx, const thi_device_ops **ops, int *cards)
{
    thi_device_said said = {""};
    thiele_status status = thi_device_load(ctx, ops);
    *cards = status == THIELE_OK ? (*ops)->count(&said) : 0;
    return status == THIELE_OK && *cards == 0 ? thi_device_fail(ctx, &said) : status;
}

static int describe_doubles(const thi_device_ops *ops, int card)
{
    thi_device_card found;
    thi_device_said said;
    return ops->describe(card, &found, &said) == THIELE_OK ? found.double_slowdown : 0;
}

thiele_status thi_device_open(thiele_context *ctx)
{
    thi_device *device = &ctx->device;
    const thi_device_ops *ops;
    thi_device_said said = {""};
    int cards;
    thiele_status status = THIELE_OK;
    if (device->ops != NULL) {
        return THIELE_OK;
    }
    if (device->end != NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "the card cuda:%d has failed before", device->card);
    }
    THI_TRY(find_cards(ctx, &ops, &cards));
    if (device->card >= cards) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "there is no card cuda:%d: the last one is cuda:%d",
                        device->card, cards - 1);
    }
    if (ops->begin(&device->session, device->card, &said) != THIELE_OK) {
        return thi_device_fail(ctx, &said);
    }
    device->double_slowdown = describe_doubles(ops, device->card);
    device->end = ops->end;
    device->ops = ops;
out:
    return status;
}

bool thi_device_takes(thiele_context *ctx, bool quicker)
{
    thi_device *device = &ctx->device;
    bool asked = device->wish == THI_DEVICE_CUDA;
    if (!asked && (device->wish == THI_DEVICE_CPU || !quicker)) {
        return false;
    }
    if (!device->tried) {
        device->tried = true;
        if (!asked && !has_driver()) {
            return false;
        }
        if (thi_device_open(ctx) != THIELE_OK) {
            if (asked) {
                thi_log(ctx, THIELE_LOG_WARNING, "%s: going on with the CPU", ctx->message);
            }
            thi_recover(ctx);
        }
    }
    return device->ops != NULL && (asked || device->double_slowdown <= SLOWDOWN_MOST);
}

void thi_device_lost(thiele_context *ctx)
{
    thi_log(ctx, THIELE_LOG_WARNING, "%s: going on with the CPU", ctx->message);
    thi_recover(ctx);
    ctx->device.ops = NULL;
    ctx->device.tried = true;
}

int thiele_device_count(thiele_context *ctx)
{
    const thi_device_ops *ops;
    int cards;
    THI_NEED_OR(0, ctx);
    return 1 + (find_cards(ctx, &ops, &cards) == THIELE_OK ? cards : 0);
}

static void describe_processor(const thiele_context *ctx, thiele_device *out)
{
    size_t limit = thi_memory_limit(ctx), held = thi_memory_held(ctx);
    *out = (thiele_device){.name = "cpu", .threads = ctx->threads, .memory = limit, .available = limit - held};
}

thiele_status thiele_device_describe(thiele_context *ctx, int index, thiele_device *out)
{
    THI_NEED(ctx, ctx != NULL && out != NULL);
    const thi_device_ops *ops;
    thi_device_card card;
    thi_device_said said = {""};
    int cards = 0;
    thiele_status status = THIELE_OK;
    if (index == 0) {
        describe_processor(ctx, out);
        return THIELE_OK;
    }
    *out = (thiele_device){.name = ""};
    if (index > 0) {
        THI_TRY(find_cards(ctx, &ops, &cards));
    }
    if (index < 0 || index > cards) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "there is no device number %d: the last one is %d", index, cards);
    }
    if (ops->describe(index - 1, &card, &said) != THIELE_OK) {
        return thi_device_fail(ctx, &said);
    }
    *out = (thiele_device){.memory = card.memory,
                           .available = card.available,
                           .major = card.major,
                           .minor = card.minor,
                           .driver = card.driver,
                           .double_slowdown = card.double_slowdown};
    snprintf(out->name, sizeof out->name, "cuda:%d", index - 1);
    memcpy(out->model, card.model, sizeof out->model);
out:
    return status;
}
