/* Every likelihood of the list, for the programs that go over all of them, and values of y that are ordinary for it. */
#ifndef THI_LIKELIHOOD_TESTING_H
#define THI_LIKELIHOOD_TESTING_H

#include "testing_context.h"

#include <thiele/likelihood.h>

#include "likelihood/likelihood.h"

/* Sets a parameter a little away from its default, to be learned; one that must be known is set to 7. */
static inline void test_move_parameter(thiele_likelihood *lik, int p)
{
    char text[100];
    double from = lik->value[p], to = lik->phi[p].positive ? from * exp(0.4 * sin(1 + p)) : from + 0.2 * cos(p);
    snprintf(text, sizeof text, "(%s~%.17g)", lik->phi[p].name, to);
    if (thi_likelihood_arguments(lik, ctx, text) != THIELE_OK) {
        snprintf(text, sizeof text, "(%s=7)", lik->phi[p].name);
        assert_ok(ctx, thi_likelihood_arguments(lik, ctx, text));
    }
}

/*
 * The next member, *at being 0 at first: every row of the list with one output and, where it takes them, with two;
 * three classes. NULL behind the last. The caller destroys it.
 */
static inline thiele_likelihood *test_next_likelihood(int *at)
{
    thiele_likelihood *lik = NULL;
    while (lik == NULL && thi_family_entries[*at / 2].ops != NULL) {
        const thi_likelihood_ops *ops = thi_family_entries[*at / 2].ops;
        int outputs = 1 + (*at)++ % 2, classes = ops->support == THI_SUPPORT_CLASS ? 3 : 0;
        thiele_status status = thiele_likelihood_parse(&lik, ctx, ops->name, outputs, classes);
        assert_true(status == THIELE_OK || outputs == 2);
        if (status == THIELE_OK && lik->ops != ops) { /* another one serves so many outputs */
            thiele_likelihood_destroy(lik);
            lik = NULL;
        }
    }
    for (int p = 0; lik != NULL && p < lik->parameters; p++) {
        test_move_parameter(lik, p);
    }
    return lik;
}

static inline void test_all_likelihoods(void (*check)(thiele_likelihood *lik))
{
    int at = 0;
    for (thiele_likelihood *lik = test_next_likelihood(&at); lik != NULL; lik = test_next_likelihood(&at)) {
        print_message("%s, %d outputs\n", thiele_likelihood_name(lik), lik->outputs);
        check(lik);
        thiele_likelihood_destroy(lik);
    }
}

/* Ordinary rows of y, P each; of several outputs one is missing in the last. */
enum { TEST_ORDINARY = 3 };
static inline void test_ordinary(const thiele_likelihood *lik, int row, double *y)
{
    static const double values[THI_SUPPORTS][TEST_ORDINARY] = {
        [THI_SUPPORT_REAL] = {-1.3, 0.2, 2.0},  [THI_SUPPORT_POSITIVE] = {0.01, 1.0, 6.0},
        [THI_SUPPORT_UNIT] = {0.02, 0.4, 0.97}, [THI_SUPPORT_COUNT] = {0, 3, 7},
        [THI_SUPPORT_BINARY] = {-1, 1, 1},      [THI_SUPPORT_CLASS] = {0, 1, 2},
    };
    for (int p = 0; p < lik->outputs; p++) {
        y[p] = p > 0 && row == TEST_ORDINARY - 1 ? NAN : values[lik->ops->support][(row + p) % TEST_ORDINARY];
        assert_null(thi_likelihood_refuses(lik, y[p]));
    }
}

#endif
