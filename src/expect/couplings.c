/*
 * What a log density says of itself at made-up values. Which latents it has terms of together, found from its values
 * alone: l is a sum of a function without f_q and one without f_r where l(f + a e_q + b e_r) - l(f + a e_q) - l(f + b
 * e_r) + l(f) = 0 wherever it is looked at: a few random places, with values of y of every kind and the likelihood's
 * parameters moved from where one may be zero. A density of many latents is most often a sum over its outputs, each of
 * which sees some of them: designs (design.c) then need not tell apart what does not occur. A coupling that was not
 * seen costs accuracy and no more. 4 evaluations a pair and place, once; it depends on the likelihood alone.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"

enum { PLACES = 8, MOST_PLACES = 32, MOST_LATENTS = 64 };
/* A difference of less than this share of the values is rounding. */
static const double ROUNDING = 1e-11;
/* And this is rounding of sums over draws. */
static const double AGREE = 1e-9;

static double value_of(const thiele_likelihood *lik, int64_t i)
{
    static const double counts[] = {0, 1, 3, 2, 7};
    double u = thi_random_uniform((thi_stream){1, THI_RANDOM_EXPECT, 0}, (uint64_t)i);
    switch (lik->ops->support) {
    case THI_SUPPORT_POSITIVE:
        return 2.0 * u + 0.1;
    case THI_SUPPORT_UNIT:
        return 0.05 + 0.9 * u;
    case THI_SUPPORT_COUNT:
        return counts[i % 5];
    case THI_SUPPORT_BINARY:
        return i % 2 == 0 ? 1.0 : -1.0;
    case THI_SUPPORT_CLASS:
        return (double)(i % lik->classes);
    default:
        return 4.0 * u - 2.0;
    }
}

/* The likelihood with its free parameters elsewhere. */
static void move_parameters(thi_space *space)
{
    const thiele_likelihood *lik = space->lik;
    for (int p = 0; p < lik->parameters; p++) {
        const thi_phi *phi = &lik->phi[p];
        space->copy.phi[p] = *phi;
        space->copy.value[p] = lik->value[p];
        if (!phi->fixed) {
            space->copy.value[p] = phi->positive ? 1.3 * lik->value[p] : lik->value[p] + 0.3;
        }
        space->copy.phi[p].value = space->copy.value[p];
    }
}

/* Whether the mixed difference at a place is seen; one that is not finite counts. */
static bool is_seen(thi_space *space, int q, int r, const double *f, const double *step)
{
    int64_t Q = space->Q;
    double *l = space->value, size = 0;
    for (int k = 0; k < 4; k++) {
        double *to = space->f + k * Q;
        memcpy(to, f, (size_t)Q * sizeof *f);
        to[q] += (k & 1) != 0 ? step[q] : 0;
        to[r] += (k & 2) != 0 ? step[r] : 0;
    }
    space->copy.ops->log_density(&space->copy, 4, space->y, space->f, l);
    for (int k = 0; k < 4; k++) {
        size = fmax(size, fabs(l[k]));
    }
    return !(fabs(l[0] - l[1] - l[2] + l[3]) <= ROUNDING * size);
}

void thi_couplings_place(thi_space *space, int place, int64_t points, double *f)
{
    int64_t P = space->P;
    thi_stream stream = {2, THI_RANDOM_EXPECT, (uint64_t)place};
    for (int64_t q = 0; q < space->Q; q++) {
        f[q] = thi_random_normal(stream, (uint64_t)q);
    }
    for (int64_t p = 0; p < points * P; p++) {
        space->y[p] = value_of(space->lik, place + p % P);
    }
}

/* Looks at a place for couplings that were not seen before; true when none is left. */
static bool look(thi_space *space, int place)
{
    int64_t Q = space->Q;
    double f[MOST_LATENTS], step[MOST_LATENTS];
    bool all = true;
    thi_couplings_place(space, place, 4, f);
    for (int64_t q = 0; q < Q; q++) {
        step[q] = 0.5 + thi_random_uniform((thi_stream){2, THI_RANDOM_EXPECT, (uint64_t)place}, (uint64_t)(Q + q));
    }
    for (int q = 0; q < Q; q++) {
        for (int r = 0; r < q; r++) {
            if (!space->coupled[q * Q + r]) {
                space->coupled[q * Q + r] = space->coupled[r * Q + q] = is_seen(space, q, r, f, step);
                all = all && space->coupled[q * Q + r];
            }
        }
    }
    return all;
}

thiele_status thi_couplings_find(thi_space *space, thiele_context *ctx)
{
    int64_t Q = space->Q;
    int places = space->lik->classes < PLACES ? PLACES : (int)thi_least(space->lik->classes, MOST_PLACES);
    thiele_status status = thi_alloc(ctx, &space->coupled, (size_t)(Q * Q), sizeof *space->coupled);
    if (status != THIELE_OK) {
        return status;
    }
    move_parameters(space);
    space->apart = Q <= MOST_LATENTS;
    for (int place = 0; place < places && space->apart; place++) {
        space->apart = !look(space, place);
    }
    return THIELE_OK;
}

/* --- noise -------------------------------------------------------------------------------------------------------- */

/* E, g and h of a place, by the points of the row with this number: out (1 + 2Q). */
static thiele_status ask_place(thi_expect *expect, thiele_context *ctx, int place, int64_t row, double *out)
{
    enum { MOST_OUTPUTS = 64 };
    const thiele_likelihood *lik = expect->lik;
    int Q = lik->latents;
    double y[MOST_OUTPUTS], mu[MOST_LATENTS], v[MOST_LATENTS];
    thi_stream stream = {2, THI_RANDOM_EXPECT, (uint64_t)place};
    if (lik->outputs > MOST_OUTPUTS || Q > MOST_LATENTS) {
        out[0] = (double)row;
        return THIELE_OK;
    }
    for (int p = 0; p < lik->outputs; p++) {
        y[p] = value_of(lik, place + p);
    }
    for (int q = 0; q < Q; q++) {
        mu[q] = thi_random_normal(stream, (uint64_t)q);
        v[q] = 0.2;
    }
    return thi_expect_block(expect, ctx, row, 1, y, mu, v, out, out + 1, out + 1 + Q, NULL);
}

static bool agree(int64_t n, const double *a, const double *b)
{
    double size = 0, apart = 0;
    for (int64_t i = 0; i < n; i++) {
        size = fmax(size, fabs(a[i]));
        apart = fmax(apart, fabs(a[i] - b[i]));
    }
    return apart <= AGREE * size;
}

thiele_status thi_expect_noise(thiele_context *ctx, const thiele_likelihood *lik, const char *method, bool *noisy)
{
    enum { PLACES_LOOKED_AT = 3, OTHER_ROW = 32 };
    int64_t numbers = 1 + 2 * (int64_t)lik->latents;
    double *out = NULL;
    thi_expect expect = {0};
    thiele_status status;
    *noisy = thi_expect_is_drawn(lik, method);
    if (!*noisy) {
        return THIELE_OK;
    }
    THI_TRY(thi_expect_open(&expect, ctx, lik, method));
    THI_TRY(thi_alloc(ctx, &out, 2 * (size_t)numbers, sizeof *out));
    *noisy = false;
    for (int place = 0; place < PLACES_LOOKED_AT && !*noisy; place++) {
        THI_TRY(ask_place(&expect, ctx, place, 0, out));
        THI_TRY(ask_place(&expect, ctx, place, OTHER_ROW, out + numbers));
        *noisy = !agree(numbers, out, out + numbers);
    }
out:
    thi_free(out);
    thi_expect_close(&expect);
    if (status == THIELE_ERROR_NUMERIC) { /* of a density that is not finite there nothing is known */
        thi_recover(ctx);
        *noisy = true;
        status = THIELE_OK;
    }
    return status;
}
