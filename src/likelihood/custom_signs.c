/*
 * Signs that a user's density cannot tell: of all latents (y = f^2), of the functions of a network, of two factors
 * beside the log of a noise. Where the latents of such a set S vanish so do all slopes along them, and a fit would stay
 * there. Found from values of the density; a first guess of such a row is somewhere else.
 */
#include <math.h>
#include <string.h>

#include "likelihood/custom.h"

static double density_at(const thiele_likelihood *lik, const double *y, const double *f)
{
    double value;
    lik->ops->log_density(lik, 1, y, f, &value);
    return value;
}

static bool is_same(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1.0 + fabs(a));
}

/* A coordinate between 0.5 and 2.5; their sequence has no order: those of a class between others would be balanced. */
static double coordinate(int q)
{
    static const double GOLDEN = 0.61803398874989485;
    double turn = GOLDEN * (q + 1.0), share = turn - floor(turn);
    return 0.5 + share * (1.0 + share);
}

/* Whether the density is the same at both signs of latent q, those of S being zero and the others where they are. */
static bool is_flat(const thiele_likelihood *lik, const double *y, int q, double *f)
{
    double there[2], before = f[q];
    for (int side = 0; side < 2; side++) {
        f[q] = side == 0 ? 0.4 : -0.4;
        there[side] = density_at(lik, y, f);
    }
    f[q] = before;
    return is_same(there[0], there[1]);
}

/* S: f is zero in it and a coordinate outside. Who is not flat leaves, after which others may not be either. */
static bool find_set(const thiele_likelihood *lik, const double *y, double *f)
{
    bool left = true, any = true;
    for (int q = 0; q < lik->latents; q++) {
        f[q] = 0.0;
    }
    while (left && any) {
        left = any = false;
        for (int q = 0; q < lik->latents; q++) {
            bool leaves = f[q] == 0.0 && !is_flat(lik, y, q, f);
            f[q] = leaves ? coordinate(q) : f[q];
            left = left || leaves;
            any = any || f[q] == 0.0;
        }
    }
    return any;
}

/* Puts the latents of S at a size; those outside are where they are. */
static void put(const thiele_likelihood *lik, double size, double *f)
{
    for (int q = 0; q < lik->latents; q++) {
        f[q] = f[q] == coordinate(q) ? f[q] : size * coordinate(q);
    }
}

/* At two places, which no density is by chance; a row that does not depend on S says nothing. */
bool thi_custom_even(const thiele_likelihood *lik, const double *y, double *f)
{
    bool seen = false;
    for (int p = 0; p < lik->outputs; p++) {
        seen = seen || !isnan(y[p]);
    }
    if (!seen || !find_set(lik, y, f)) {
        return false;
    }
    double middle = density_at(lik, y, f);
    for (double size = 0.4; size < 2.0; size *= 3.0) {
        double there[2];
        for (int side = 0; side < 2; side++) {
            put(lik, side == 0 ? size : -size, f);
            there[side] = density_at(lik, y, f);
        }
        if (!is_same(there[0], there[1]) || is_same(there[0], middle)) {
            return false;
        }
    }
    for (int q = 0; q < lik->latents; q++) {
        f[q] = f[q] == coordinate(q) ? 0.0 : 1.0;
    }
    return true;
}

/* f[q] becomes the likeliest of some values of both signs, of the last latent positive ones. */
static void climb_latent(const thiele_likelihood *lik, const double *y, int q, double *f)
{
    static const double sizes[] = {0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0};
    double best = f[q], top = density_at(lik, y, f);
    for (int sign = 1; sign >= (q == lik->latents - 1 ? 1 : -1); sign -= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            f[q] = sign * sizes[i];
            double value = density_at(lik, y, f);
            best = value > top ? f[q] : best;
            top = fmax(top, value);
        }
    }
    f[q] = best;
}

/*
 * Somewhat on the positive side, by coordinates, from the first latent on: with those that come first (the nodes of a
 * network) following y, the last keep their size. Of others nothing is known: 0.
 */
void thi_custom_guess(const thiele_likelihood *lik, const double *y, double *f)
{
    static const double CAUTION = 0.3;
    bool even = thi_custom_even(lik, y, f);
    for (int q = 0; q < lik->latents && !even; q++) {
        f[q] = 0.0;
    }
    for (int round = 0; even && round < 2; round++) {
        for (int q = 0; q < lik->latents; q++) {
            if (f[q] != 0.0) {
                climb_latent(lik, y, q, f);
            }
        }
    }
    for (int q = 0; q < lik->latents; q++) {
        f[q] *= CAUTION;
    }
}

/* Whether the densities of n rows are the same at both signs of the only latent: as is_flat, in one call. */
static void find_flat(const thiele_likelihood *lik, int64_t n, const double *y, double *room, bool *flat)
{
    int64_t P = lik->outputs;
    double *twice = room, *f = room + 2 * n * P, *value = f + 2 * n;
    for (int64_t i = 0; i < 2 * n; i++) {
        memcpy(twice + i * P, y + i / 2 * P, (size_t)P * sizeof *y);
        f[i] = i % 2 == 0 ? 0.4 : -0.4;
    }
    lik->ops->log_density(lik, 2 * n, twice, f, value);
    for (int64_t i = 0; i < n; i++) {
        flat[i] = is_same(value[2 * i], value[2 * i + 1]);
    }
}

void thi_likelihood_guesses(const thiele_likelihood *lik, int64_t n, const double *y, double *f)
{
    enum { ROWS = 256, OUTPUTS = 4 };
    double room[2 * ROWS * (OUTPUTS + 2)];
    bool flat[ROWS], many = thi_likelihood_is_batched(lik) && lik->latents == 1 && lik->outputs <= OUTPUTS;
    int64_t P = lik->outputs, Q = lik->latents;
    for (int64_t first = 0; first < n; first += ROWS) {
        int64_t count = thi_least(ROWS, n - first);
        if (many) {
            find_flat(lik, count, y + first * P, room, flat);
        }
        for (int64_t i = 0; i < count; i++) {
            if (many && !flat[i]) {
                f[first + i] = 0.0; /* nothing is known of it */
            } else {
                lik->ops->guess(lik, y + (first + i) * P, f + (first + i) * Q);
            }
        }
    }
}
