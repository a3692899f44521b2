/* For programs whose tests share one context: it lives for the group, and must hold nothing at the end. */
#ifndef THI_TESTING_CONTEXT_H
#define THI_TESTING_CONTEXT_H

#include "testing.h"

static thiele_context *ctx;

static int set_up(void **state)
{
    (void)state;
    ctx = test_context(2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    return 0;
}

#endif
