/*
 * (E, g, h) of rows by designs (design.c): E = c_0, g = c_1/sd and h = c_2/(sqrt2 sd^2) where l ~ c_0 + c_1 z + c_2
 * He_2/ sqrt2 + .... Which design a row takes, with which signs and how far turned, follows from its number. A row
 * costs its evaluations and (1 + 2Q) products for two of them.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"

/* Rows with consecutive numbers share a design, while it is in the cache; pairs that are evaluated in one call. */
enum { TOGETHER = 32, PIECE = THI_POINTS / 2 };

/*
 * How a row sees its design: latent q is the design's dimension (q + shift) mod Q, times the sign of bit q mod 64. A
 * design that knows which latents go together is not shifted.
 */
typedef struct view {
    const thi_design *design;
    int64_t shift;
    uint64_t signs;
} view;

/* Few long designs, several short ones. */
static int designs_of(int64_t count)
{
    int64_t several = THI_DESIGNS * THI_POINTS / (2 * count);
    return several < 1 ? 1 : several > THI_DESIGNS ? THI_DESIGNS : (int)several;
}

/* The design, with the terms that the density has where there is no room for all. */
static thiele_status make(thi_space *space, thiele_context *ctx, const thi_draws *draws, int number)
{
    int64_t points = draws->count + draws->count % 2;
    thiele_status status = THIELE_OK;
    if (space->coupled == NULL && !thi_designs_whole(points, space->Q)) {
        status = thi_couplings_find(space, ctx);
    }
    return status == THIELE_OK ? thi_design_make(&space->designs[number], ctx, draws->seed, number, draws->quasi,
                                                 points, space->Q, space->apart ? space->coupled : NULL)
                               : status;
}

static thiele_status view_of(thi_space *space, thiele_context *ctx, const thi_draws *draws, int64_t i, view *out)
{
    int64_t row = draws->first + i, Q = space->Q;
    thi_stream stream = {draws->seed, THI_RANDOM_EXPECT, (uint64_t)row};
    uint64_t bits = thi_random_bits(stream, 0);
    int number = (int)(row / TOGETHER % designs_of(draws->count));
    thi_design *d = &space->designs[number];
    thiele_status status = d->pairs > 0 ? THIELE_OK : make(space, ctx, draws, number);
    *out = (view){d, space->apart ? 0 : (int64_t)(bits % (uint64_t)Q), bits >> 8 | bits << 56};
    return status;
}

static double sign_of(const view *w, int64_t q)
{
    return (w->signs >> (q % 64)) & 1u ? -1 : 1;
}

/* f = mu + sd z and mu - sd z at a stride: inlined with a stride of 1, a loop over vectors. */
static inline void spread_out(int64_t count, int64_t stride, double mu, double sd, const double *z, double *f)
{
    double *mirror = f + count * stride;
    for (int64_t k = 0; k < count; k++) {
        f[k * stride] = mu + sd * z[k * stride];
        mirror[k * stride] = mu - sd * z[k * stride];
    }
}

/* Points of `count` pairs from `from` on, then their mirror images; y repeated. */
static void place(thi_space *space, const thi_block_rows *rows, int64_t i, const view *w, int64_t from, int64_t count)
{
    int64_t P = space->P, Q = space->Q;
    for (int64_t q = 0; q < Q; q++) {
        double mu = rows->mu[i * Q + q], sd = sign_of(w, q) * rows->sd[i * Q + q];
        const double *z = w->design->z + from * Q + (q + w->shift) % Q;
        if (Q == 1) {
            spread_out(count, 1, mu, sd, z, space->f);
        } else {
            spread_out(count, Q, mu, sd, z, space->f + q);
        }
    }
    thi_repeat(P, rows->y + i * P, 2 * count, space->y);
}

/* In place: halves of sums less `base`, and halves of differences. */
static void fold(int64_t count, double base, double *l)
{
    for (int64_t k = 0; k < count; k++) {
        double up = l[k], down = l[count + k];
        l[k] = 0.5 * (up + down) - base;
        l[count + k] = 0.5 * (up - down);
    }
}

/* Adds the coefficients of some pairs: c_0 in E, c_1 in g and c_2 in h. */
static void add_piece(const view *w, int64_t Q, int64_t from, int64_t count, const double *l, double *E, double *g,
                      double *h)
{
    const thi_design *d = w->design;
    *E += thi_weigh(count, d->even + from, l);
    for (int64_t q = 0; q < Q; q++) {
        int64_t at = (q + w->shift) % Q;
        g[q] += thi_weigh(count, d->odd + at * d->pairs + from, l + count);
        h[q] += thi_weigh(count, d->even + (1 + at) * d->pairs + from, l);
    }
}

/* From coefficients to (E, g, h), and from the spread that was used back to the row's own. */
static void finish(const view *w, int64_t Q, const double *sd, const double *v, double *E, double *g, double *h)
{
    for (int64_t q = 0; q < Q; q++) {
        double used = sd[q] * sd[q];
        g[q] *= sign_of(w, q) / sd[q];
        h[q] *= M_SQRT1_2 / used;
        *E -= fmax(0, used - v[q]) * h[q];
    }
}

static void regress_row(thi_space *space, const thi_block_rows *rows, int64_t i, const view *w, double *E, double *g,
                        double *h)
{
    int64_t Q = space->Q, pairs = w->design->pairs;
    double base = 0, *l = space->value;
    *E = 0;
    memset(g, 0, (size_t)Q * sizeof *g);
    memset(h, 0, (size_t)Q * sizeof *h);
    for (int64_t from = 0; from < pairs; from += PIECE) {
        int64_t count = pairs - from < PIECE ? pairs - from : PIECE;
        place(space, rows, i, w, from, count);
        space->lik->ops->log_density(space->lik, 2 * count, space->y, space->f, l);
        base = from == 0 ? 0.5 * (l[0] + l[count]) : base;
        fold(count, base, l);
        add_piece(w, Q, from, count, l, E, g, h);
    }
    *E += base;
}

thiele_status thi_regress(thi_space *space, thiele_context *ctx, const thi_draws *draws, const thi_block_rows *rows,
                          const double *v, double *E, double *g, double *h)
{
    int64_t Q = space->Q;
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t i = rows->row[r];
        view w;
        thiele_status status = view_of(space, ctx, draws, i, &w);
        if (status != THIELE_OK) {
            return status;
        }
        regress_row(space, rows, i, &w, E + i, g + i * Q, h + i * Q);
        finish(&w, Q, rows->sd + i * Q, v + i * Q, E + i, g + i * Q, h + i * Q);
    }
    return THIELE_OK;
}

thiele_status thi_design_sweep(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_draws *draws,
                               const thi_block_rows *rows, double *result)
{
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t i = rows->row[r];
        double *own = result + i * in->results;
        view w;
        thiele_status status = view_of(space, ctx, draws, i, &w);
        if (status != THIELE_OK) {
            return status;
        }
        memset(own, 0, (size_t)in->results * sizeof *own);
        for (int64_t from = 0; from < w.design->pairs; from += PIECE) {
            int64_t count = w.design->pairs - from < PIECE ? w.design->pairs - from : PIECE;
            place(space, rows, i, &w, from, count);
            in->evaluate(in, 2 * count, space->y, space->f, space->value);
            for (int side = 0; side < 2; side++) {
                thi_points points = {2 * count, side * count, count, space->value, NULL, w.design->half + from, NULL};
                in->reduce(in, &points, own);
            }
        }
    }
    return THIELE_OK;
}
