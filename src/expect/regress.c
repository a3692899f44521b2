/*
 * (E, g, h) of rows by designs (design.c): E = c_0, g = c_1/sd and h = c_2/(sqrt2 sd^2) where l ~ c_0 + c_1 z + c_2
 * He_2/ sqrt2 + .... Which design a row takes, with which signs and how far turned, follows from its number. A row
 * costs its evaluations and (1 + 2Q) products for two of them.
 *
 * Of a density that is a polynomial fewer points tell everything. Whether there are so few is found at made-up values;
 * whether they were enough for a row is seen from what its values have at right angles to all terms, and where that is
 * more than rounding, the row has all points.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"

/* Rows with consecutive numbers share a design, while it is in the cache; pairs that are evaluated in one call. */
enum { TOGETHER = 32, PIECE = THI_POINTS / 2 };
/* Shares of all points that may be enough, and made-up places that they must be enough at. */
static const double BRIEF[] = {0.2, 1.0 / 3.0, 0.5, 0.75};
enum { BRIEFS = sizeof BRIEF / sizeof *BRIEF, PLACES = 4, MOST_LATENTS = 64 };
/* Of the largest value: what is at right angles to the terms is rounding, of sums with weights of some tens. */
static const double ROUNDING = 1e-10;

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
static thiele_status make(thi_space *space, thiele_context *ctx, const thi_draws *draws, bool brief, int number)
{
    int64_t points = brief ? space->brief_points : draws->count + draws->count % 2;
    thiele_status status = THIELE_OK;
    if (space->coupled == NULL && (brief || !thi_designs_whole(points, space->Q))) {
        status = thi_couplings_find(space, ctx);
    }
    thi_design_plan plan = {draws->seed, number, draws->quasi, points, space->Q, space->apart ? space->coupled : NULL,
                            brief};
    thi_design *d = brief ? &space->brief[number] : &space->designs[number];
    return status == THIELE_OK ? thi_design_make(d, ctx, &plan) : status;
}

static thiele_status view_of(thi_space *space, thiele_context *ctx, const thi_draws *draws, int64_t i, bool brief,
                             view *out)
{
    int64_t row = draws->first + i, Q = space->Q;
    thi_stream stream = {draws->seed, THI_RANDOM_EXPECT, (uint64_t)row};
    uint64_t bits = thi_random_bits(stream, 0);
    int number = (int)(row / TOGETHER % designs_of(draws->count));
    thi_design *d = brief ? &space->brief[number] : &space->designs[number];
    thiele_status status = d->pairs > 0 ? THIELE_OK : make(space, ctx, draws, brief, number);
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

/* Adds what pairs have at right angles to all terms; *largest: of their values. */
static void add_rest(const view *w, int64_t from, int64_t count, const double *l, double rest[2], double *largest)
{
    for (int parity = 0; parity < 2; parity++) {
        rest[parity] += thi_weigh(count, w->design->rest + parity * w->design->pairs + from, l + parity * count);
    }
    for (int64_t k = 0; k < 2 * count; k++) {
        *largest = fmax(*largest, fabs(l[k]));
    }
}

/* The coefficients of a row; false: the terms of a brief design were not all there is. */
static bool regress_row(thi_space *space, const thiele_likelihood *lik, const thi_block_rows *rows, int64_t i,
                        const view *w, bool brief, double *E, double *g, double *h)
{
    int64_t Q = space->Q, pairs = w->design->pairs;
    double base = 0, rest[2] = {0, 0}, largest = 0, *l = space->value;
    *E = 0;
    memset(g, 0, (size_t)Q * sizeof *g);
    memset(h, 0, (size_t)Q * sizeof *h);
    for (int64_t from = 0; from < pairs; from += PIECE) {
        int64_t count = pairs - from < PIECE ? pairs - from : PIECE;
        place(space, rows, i, w, from, count);
        lik->ops->log_density(lik, 2 * count, space->y, space->f, l);
        base = from == 0 ? 0.5 * (l[0] + l[count]) : base;
        fold(count, base, l);
        add_piece(w, Q, from, count, l, E, g, h);
        if (brief) {
            add_rest(w, from, count, l, rest, &largest);
        }
    }
    *E += base;
    return !brief || (fabs(rest[0]) <= ROUNDING * largest && fabs(rest[1]) <= ROUNDING * largest);
}

/* Whether a brief design is enough at made-up places. */
static thiele_status is_enough(thi_space *space, thiele_context *ctx, const thi_draws *draws, bool *enough)
{
    double f[MOST_LATENTS], sd[MOST_LATENTS], y[THI_POINTS], E, g[MOST_LATENTS], h[MOST_LATENTS];
    view w;
    thiele_status status = view_of(space, ctx, draws, -draws->first, true, &w);
    for (int p = 0; p < PLACES && status == THIELE_OK && *enough; p++) {
        thi_couplings_place(space, p, 1, f);
        memcpy(y, space->y, (size_t)space->P * sizeof *y);
        for (int q = 0; q < space->Q; q++) {
            sd[q] = 0.5;
        }
        thi_block_rows row = {.y = y, .mu = f, .sd = sd};
        *enough = regress_row(space, &space->copy, &row, 0, &w, true, &E, g, h);
    }
    return status;
}

/* The fewest points that are enough, or none: -1. */
static thiele_status find_brief(thi_space *space, thiele_context *ctx, const thi_draws *draws)
{
    thiele_status status = THIELE_OK;
    bool enough = false;
    for (int b = 0; b < BRIEFS && status == THIELE_OK && !enough && space->Q > 1 && space->Q <= MOST_LATENTS; b++) {
        space->brief_points = 2 * (int64_t)(0.5 * BRIEF[b] * (double)draws->count);
        enough = thi_designs_fit(space->brief_points, space->Q) && space->P <= THI_POINTS;
        if (enough) {
            status = is_enough(space, ctx, draws, &enough);
        }
        for (int i = 0; i < THI_DESIGNS && !enough; i++) {
            thi_design_clear(&space->brief[i]);
        }
    }
    space->brief_points = enough && status == THIELE_OK ? space->brief_points : -1;
    return status;
}

thiele_status thi_regress(thi_space *space, thiele_context *ctx, const thi_draws *draws, const thi_block_rows *rows,
                          const double *v, double *E, double *g, double *h)
{
    int64_t Q = space->Q;
    thiele_status status = space->brief_points == 0 ? find_brief(space, ctx, draws) : THIELE_OK;
    for (int64_t r = 0; r < rows->count && status == THIELE_OK; r++) {
        int64_t i = rows->row[r];
        bool brief = space->brief_points > 0, done = false;
        for (view w; !done; brief = false) {
            THI_TRY(view_of(space, ctx, draws, i, brief, &w));
            done = regress_row(space, space->lik, rows, i, &w, brief, E + i, g + i * Q, h + i * Q);
            if (done) {
                finish(&w, Q, rows->sd + i * Q, v + i * Q, E + i, g + i * Q, h + i * Q);
            }
        }
    }
out:
    return status;
}

thiele_status thi_design_sweep(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_draws *draws,
                               const thi_block_rows *rows, double *result)
{
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t i = rows->row[r];
        double *own = result + i * in->results;
        view w;
        thiele_status status = view_of(space, ctx, draws, i, false, &w);
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
