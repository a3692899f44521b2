/*
 * For LD_PRELOAD: of a program's allocations, those of all its libraries included, number THIELE_FAIL_AT fails, and
 * with THIELE_FAIL_STICKY set all after it. How many there were is written to the file THIELE_FAIL_REPORT.
 */
#include "failing_malloc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void begin(void)
{
    const char *nth = getenv("THIELE_FAIL_AT");
    failing_start(nth != NULL ? atoll(nth) : 0, getenv("THIELE_FAIL_STICKY") != NULL);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("THIELE_FAIL_REPORT");
    int64_t asked = failing_end();
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        fprintf(file, "%lld\n", (long long)asked);
        fclose(file);
    }
}
