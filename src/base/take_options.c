/*
 * Options that a program hands over, whatever header it was compiled with. Each struct of them begins with its size. A
 * smaller one comes from an older header: what is missing at its end is zero, which is the default. A larger one comes
 * from a newer header, and may set nothing that is not known here.
 */
#include <ctype.h>
#include <string.h>
#include <thiele/version.h>

#include "base/base.h"

/* More than any header will have: a size above it was never set. */
enum { LARGEST = 1 << 16 };

/* "THIELE_FIT_OPTIONS" for thiele_fit_options, cut where it does not fit. */
static void capitals(char *to, size_t capacity, const char *name)
{
    size_t i = 0;
    for (; name[i] != '\0' && i + 1 < capacity; i++) {
        to[i] = (char)toupper((unsigned char)name[i]);
    }
    to[i] = '\0';
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    size_t i = 0;
    while (i < count && bytes[i] == 0) {
        i++;
    }
    return i == count;
}

thiele_status thi_newer_options(thiele_context *ctx, const char *name)
{
    return ctx == NULL ? THIELE_ERROR_ARGUMENT
                       : thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                                  "%s sets an option that version " THIELE_VERSION
                                  " of the library does not know: the program was compiled with a newer header, and "
                                  "needs a library as new, or has left memory uncleared (begin with the INIT macro)",
                                  name);
}

thiele_status thi_take_options(thiele_context *ctx, const char *name, void *out, size_t known, const void *given)
{
    size_t size = known;
    memset(out, 0, known);
    if (given != NULL) {
        memcpy(&size, given, sizeof size);
    }
    if (size < sizeof size || size > LARGEST || size % sizeof size != 0) {
        char macro[64];
        capitals(macro, sizeof macro, name);
        return ctx == NULL ? THIELE_ERROR_ARGUMENT
                           : thi_fail(ctx, THIELE_ERROR_ARGUMENT, "%s must be initialised with %s_INIT", name, macro);
    }
    if (given != NULL) {
        if (size > known && !is_zero((const unsigned char *)given + known, size - known)) {
            return thi_newer_options(ctx, name);
        }
        memcpy(out, given, size < known ? size : known);
    }
    memcpy(out, &known, sizeof known);
    return THIELE_OK;
}
