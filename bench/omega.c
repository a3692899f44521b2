/*
 * bench-omega [DRAWS]: draws of auxiliary variables a second on one thread, exact and by inversion of the transform,
 * and rows of the augmented bound (E, g, h) a second. Medians of five.
 */
#include <stdio.h>
#include <stdlib.h>

#include "likelihood/augment.h"
#include "likelihood/inversion.h"
#include "likelihood/omega_draws.h"

enum { REPEATS = 5 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct law {
    const thiele_likelihood *lik;
    double y, r;
} law;

static double complex log_phi(const void *arg, double complex r)
{
    const law *l = arg;
    return l->lik->ops->augmentation->form->log_phi(l->lik, l->y, r);
}

/* r differs from draw to draw, as in a Gibbs sampler. */
static double exact(const law *l, uint64_t i, double r)
{
    return thi_augmented_omega_draw(l->lik, l->y, r, (thi_stream){1, THI_RANDOM_DEMO, 0}, i);
}

static double inverted(const law *l, uint64_t i, double r)
{
    thi_omega_law at;
    thi_omega_law_open(&at, log_phi, l, r);
    return thi_omega_law_at(&at, thi_random_normal((thi_stream){1, THI_RANDOM_DEMO, 0}, i));
}

static double bound(const law *l, uint64_t i, double r)
{
    double E, g, h, mu = 0.1 * (double)(i % 16), v = r;
    thi_augmented_expectation(l->lik, 1, &l->y, &mu, &v, &E, &g, &h, NULL);
    return E + g + h;
}

static double rate(const law *l, int64_t n, double (*fn)(const law *l, uint64_t i, double r))
{
    double seconds[REPEATS], sum = 0;
    for (int k = 0; k < REPEATS; k++) {
        double start = thi_seconds();
        for (int64_t i = 0; i < n; i++) {
            sum += fn(l, (uint64_t)i, 0.01 + 4.0 * (double)(i % 97) / 97.0);
        }
        seconds[k] = thi_seconds() - start;
    }
    qsort(seconds, REPEATS, sizeof *seconds, ascending);
    return sum > 0 || sum <= 0 ? (double)n / seconds[REPEATS / 2] : 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *text;
        double y;
    } cases[] = {{"student-t", 0.5},
                 {"laplace", 0.5},
                 {"svm", 1},
                 {"matern32", 0.5},
                 {"bernoulli", 1},
                 {"binomial(trials=10)", 3},
                 {"binomial(trials=200)", 30},
                 {"binomial(trials=201)", 30},
                 {"binomial(trials=1000)", 300},
                 {"negative-binomial(r=2)", 5},
                 {"negative-binomial(r=2.5)", 5}};
    int64_t n = argc > 1 ? atoll(argv[1]) : 200000;
    thiele_context *ctx = NULL;
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    if (thiele_context_create(&ctx, &options) != THIELE_OK) {
        return 1;
    }
    printf("%-26s %12s %12s %12s\n", "per second", "draws", "by inversion", "bounds");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        thiele_likelihood *lik = NULL;
        if (thiele_likelihood_parse(&lik, ctx, cases[i].text, 1, 0) != THIELE_OK) {
            fprintf(stderr, "bench-omega: %s\n", thiele_context_message(ctx));
            return 1;
        }
        law l = {lik, cases[i].y, 0};
        printf("%-26s %12.0f %12.0f %12.0f\n", cases[i].text, rate(&l, n / 20, exact), rate(&l, n / 200, inverted),
               rate(&l, n, bound));
        thiele_likelihood_destroy(lik);
    }
    thiele_context_destroy(ctx);
    return 0;
}
