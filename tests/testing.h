/* What every test program shares: cmocka, a context, and comparisons that say what differed. */
#ifndef THI_TESTING_H
#define THI_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* A context with the given number of threads (0: all) and seed 1. */
static inline thiele_context *test_context(int threads)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = threads;
    options.seed = 1;
    thiele_context *ctx = NULL;
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
    return ctx;
}

/* Fails with the context's message when a call did not succeed. */
#define assert_ok(ctx, call)                                                                                           \
    do {                                                                                                               \
        thiele_status status_ = (call);                                                                                \
        if (status_ != THIELE_OK) {                                                                                    \
            fail_msg("%s: %s", thiele_status_name(status_), thiele_context_message(ctx));                              \
        }                                                                                                              \
    } while (0)

/* The call fails with this code and a message that contains `part`. */
#define assert_fails(ctx, call, code, part)                                                                            \
    do {                                                                                                               \
        thiele_status status_ = (call);                                                                                \
        if (status_ != (code)) {                                                                                       \
            fail_msg("expected %s, got %s: %s", #code, thiele_status_name(status_), thiele_context_message(ctx));      \
        }                                                                                                              \
        if (strstr(thiele_context_message(ctx), part) == NULL) {                                                       \
            fail_msg("'%s' is not in the message: %s", part, thiele_context_message(ctx));                             \
        }                                                                                                              \
    } while (0)

/* |got - want| <= absolute + relative |want|, both finite. */
static inline void assert_near_at(double got, double want, double relative, double absolute, const char *file, int line)
{
    if (!(fabs(got - want) <= absolute + relative * fabs(want))) {
        print_error("%s:%d: got %.17g, want %.17g, differ by %.3g\n", file, line, got, want, got - want);
        _fail(file, line);
    }
}
#define assert_near(got, want, relative, absolute) assert_near_at(got, want, relative, absolute, __FILE__, __LINE__)

/* Element by element; the first that differs is reported. */
static inline void assert_all_near_at(const double *got, const double *want, int64_t n, double relative,
                                      double absolute, const char *file, int line)
{
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) <= absolute + relative * fabs(want[i]))) {
            print_error("%s:%d: element %lld: got %.17g, want %.17g, differ by %.3g\n", file, line, (long long)i,
                        got[i], want[i], got[i] - want[i]);
            _fail(file, line);
        }
    }
}
#define assert_all_near(got, want, n, relative, absolute)                                                              \
    assert_all_near_at(got, want, n, relative, absolute, __FILE__, __LINE__)

/* n standard normal draws that depend on `row` only. */
static inline void test_normals(int64_t n, uint64_t row, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = thi_random_normal((thi_stream){7, THI_RANDOM_DEMO, row}, (uint64_t)i);
    }
}

#endif
