/*
 * Status codes. Every fallible function returns one: THIELE_OK (zero) or a negative code. The code says what kind of
 * thing went wrong; the context's message (thiele_context_message) says what, where and what to do about it.
 */
#ifndef THIELE_STATUS_H
#define THIELE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(THIELE_BUILDING) && defined(__GNUC__)
#define THIELE_API __attribute__((visibility("default")))
#else
#define THIELE_API
#endif

/* X(name, value, meaning): the one list from which the enum, the names and the default messages are made. */
#define THIELE_STATUS_LIST(X)                                                                                          \
    X(THIELE_OK, 0, "no error")                                                                                        \
    X(THIELE_ERROR_ARGUMENT, -1, "an argument or option is invalid")                                                   \
    X(THIELE_ERROR_MEMORY, -2, "out of memory")                                                                        \
    X(THIELE_ERROR_LIMIT, -3, "the work would exceed the memory limit")                                                \
    X(THIELE_ERROR_IO, -4, "a file could not be read or written")                                                      \
    X(THIELE_ERROR_FORMAT, -5, "a file is not in the expected format")                                                 \
    X(THIELE_ERROR_DATA, -6, "the data cannot be used as they are")                                                    \
    X(THIELE_ERROR_COLUMN, -7, "a column is not in the table")                                                         \
    X(THIELE_ERROR_NUMERIC, -8, "a numerical operation failed")                                                        \
    X(THIELE_ERROR_UNSUPPORTED, -9, "this build or method cannot do it")                                               \
    X(THIELE_ERROR_CANCELLED, -10, "cancelled before there was a result")

typedef enum thiele_status {
#define THIELE_STATUS_ENUM(name, value, meaning) name = (value),
    THIELE_STATUS_LIST(THIELE_STATUS_ENUM)
#undef THIELE_STATUS_ENUM
} thiele_status;

/* The name of a code ("THIELE_ERROR_IO") and what it means in general. Never NULL, also for unknown codes. */
THIELE_API const char *thiele_status_name(thiele_status status);
THIELE_API const char *thiele_status_meaning(thiele_status status);

#ifdef __cplusplus
}
#endif

/*
 * What a struct of options begins with: its size, by which a library tells what an older or a newer header knows, and
 * zeros, which are the defaults. A program compiled with an older header works with this library. One compiled with a
 * newer header does too, unless it sets an option that this library does not know: that is refused with a sentence.
 */
#ifdef __cplusplus
template <typename options> inline options thiele_options_init()
{
    options made = options();
    made.size = sizeof(options);
    return made;
}
#define THIELE_OPTIONS_INIT(type) thiele_options_init<type>()
#else
#define THIELE_OPTIONS_INIT(type)                                                                                      \
    {                                                                                                                  \
        .size = sizeof(type)                                                                                           \
    }
#endif

#endif
