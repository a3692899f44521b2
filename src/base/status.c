/* Names and meanings of the status codes, and the sentence that a context keeps about its last error. */
#include <string.h>

#include "base/base.h"

const char *thiele_status_name(thiele_status status)
{
    switch (status) {
#define THIELE_STATUS_NAME(name, value, meaning)                                                                       \
    case name:                                                                                                         \
        return #name;
        THIELE_STATUS_LIST(THIELE_STATUS_NAME)
#undef THIELE_STATUS_NAME
    }
    return "unknown status";
}

const char *thiele_status_meaning(thiele_status status)
{
    switch (status) {
#define THIELE_STATUS_MEANING(name, value, meaning)                                                                    \
    case name:                                                                                                         \
        return meaning;
        THIELE_STATUS_LIST(THIELE_STATUS_MEANING)
#undef THIELE_STATUS_MEANING
    }
    return "unknown status";
}

/*
 * Names from a file may hold anything, and messages end on terminals: what is not printable becomes \xNN. What does
 * not fit any more is cut off.
 */
static void make_printable(char message[THI_MESSAGE_MAX])
{
    char shown[THI_MESSAGE_MAX];
    size_t length = 0;
    for (const char *at = message; *at != '\0' && length + 5 < sizeof shown;) {
        int bytes = thi_printable(at);
        if (bytes > 0) {
            memcpy(shown + length, at, (size_t)bytes);
            length += (size_t)bytes;
        } else {
            length += (size_t)snprintf(shown + length, sizeof shown - length, "\\x%02X", (unsigned char)*at);
        }
        at += bytes > 0 ? bytes : 1;
    }
    memcpy(message, shown, length);
    message[length] = '\0';
}

thiele_status thi_fail(thiele_context *ctx, thiele_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ctx->message, sizeof ctx->message, format, arguments);
    va_end(arguments);
    make_printable(ctx->message);
    return status;
}

thiele_status thi_fail_in(thiele_context *ctx, thiele_status status, const char *format, ...)
{
    char inner[THI_MESSAGE_MAX];
    memcpy(inner, ctx->message, sizeof inner);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(ctx->message, sizeof ctx->message, format, arguments);
    va_end(arguments);
    int room = (int)sizeof ctx->message - length - 3;
    if (length >= 0 && room > 0) {
        snprintf(ctx->message + length, (size_t)room + 3, ": %.*s", room, inner);
    }
    make_printable(ctx->message);
    return status;
}

thiele_status thi_fail_null(thiele_context *ctx, const char *function)
{
    return ctx == NULL
               ? THIELE_ERROR_ARGUMENT
               : thi_fail(ctx, THIELE_ERROR_ARGUMENT, "%s was given NULL for an argument that it needs", function);
}

void thi_recover(thiele_context *ctx)
{
    ctx->message[0] = '\0';
}

void thi_log(thiele_context *ctx, thiele_log_level level, const char *format, ...)
{
    if (ctx->log == NULL) {
        return;
    }
    char line[THI_MESSAGE_MAX] = "";
    if (ctx->about != NULL) {
        snprintf(line, sizeof line / 2, "target '%s': ", ctx->about);
    }
    size_t prefix = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + prefix, sizeof line - prefix, format, arguments);
    va_end(arguments);
    make_printable(line);
    ctx->log(level, line, ctx->log_user);
}
