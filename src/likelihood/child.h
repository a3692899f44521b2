/*
 * A function run in a child process with a limit on its time: code that nobody vouches for (a user's density, the
 * loading of a plug-in) takes only the child with it when it crashes, hangs or ends the process.
 */
#ifndef THI_CHILD_H
#define THI_CHILD_H

#include "base/base.h"

typedef enum thi_fate { THI_CHILD_RETURNED, THI_CHILD_LATE, THI_CHILD_CRASHED, THI_CHILD_LEFT } thi_fate;

/* Fills *finding, of a size below that of a pipe's buffer. */
typedef void (*thi_child_fn)(const void *arg, void *finding);

/*
 * Runs fn in a child. THI_CHILD_RETURNED: *finding is what it found; otherwise *words says what happened: "crashed with
 * a bus error (signal 7)", "did not return within 10 seconds", "ended the process" (at least 100 bytes). Called on the
 * main thread, outside parallel work. Errors: IO, when no process could be started.
 */
thiele_status thi_child_run(thiele_context *ctx, thi_child_fn fn, const void *arg, void *finding, size_t size,
                            double seconds, thi_fate *fate, char *words, size_t length);

#endif
