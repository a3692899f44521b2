/*
 * (E, g, h) of rows by designs (design.c): E = c_0, g = c_1/sd and h = c_2/(sqrt2 sd^2) where l ~ c_0 + c_1 z + c_2
 * He_2/ sqrt2 + .... Which design a row takes, with which signs and how far turned, follows from its number. A row
 * costs its evaluations and (1 + 2Q) products for two of them. Rows are evaluated together where a call has room for
 * the points of several.
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

/* Points of `count` pairs from `from` on, then their mirror images, as points at, at + 1, ... of the call; y repeated.
 */
static void place(thi_space *space, const thi_block_rows *rows, int64_t i, const view *w, int64_t from, int64_t count,
                  int64_t at)
{
    int64_t P = space->P, Q = space->Q;
    double *f = space->f + at * Q;
    for (int64_t q = 0; q < Q; q++) {
        double mu = rows->mu[i * Q + q], sd = sign_of(w, q) * rows->sd[i * Q + q];
        const double *z = w->design->z + from * Q + (q + w->shift) % Q;
        if (Q == 1) {
            spread_out(count, 1, mu, sd, z, f);
        } else {
            spread_out(count, Q, mu, sd, z, f + q);
        }
    }
    thi_repeat(P, rows->y + i * P, 2 * count, space->y + at * P);
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

/* --- rows together -------------------------------------------------------------------------------------------------
 */

/* Some rows whose points are evaluated in one call; or a single one whose points take several. */
typedef struct group {
    int64_t rows;
    const int *row;
    view w[TOGETHER];
    int64_t count[TOGETHER], at[TOGETHER]; /* pairs of the present piece, and where their points begin */
    int64_t from, points;
    bool brief;            /* the designs are, and then whether they */
    bool enough[TOGETHER]; /* told everything of a row */
} group;

/* As many rows from `first` on as there is room for, one at least. */
static thiele_status gather(thi_space *space, thiele_context *ctx, const thi_draws *draws, const thi_block_rows *rows,
                            int64_t first, bool brief, group *g)
{
    int64_t points = 0;
    *g = (group){.row = rows->row + first, .brief = brief};
    while (first + g->rows < rows->count && g->rows < TOGETHER) {
        view *w = &g->w[g->rows];
        thiele_status status = view_of(space, ctx, draws, g->row[g->rows], brief, w);
        if (status != THIELE_OK) {
            return status;
        }
        points += 2 * thi_least(w->design->pairs, PIECE);
        if (g->rows > 0 && (points > space->points || w->design->pairs > PIECE || g->w[0].design->pairs > PIECE)) {
            break;
        }
        g->rows++;
    }
    return THIELE_OK;
}

/* The next piece of all rows; false: there is none. */
static bool place_piece(thi_space *space, const thi_block_rows *rows, group *g)
{
    g->points = 0;
    for (int64_t r = 0; r < g->rows; r++) {
        g->count[r] = thi_least(g->w[r].design->pairs - g->from, PIECE);
        if (g->count[r] <= 0) {
            return false;
        }
        g->at[r] = g->points;
        place(space, rows, g->row[r], &g->w[r], g->from, g->count[r], g->points);
        g->points += 2 * g->count[r];
    }
    return true;
}

/* What is found of rows, at the variances v. */
typedef struct answer {
    const double *v;
    double *E, *g, *h;
} answer;

static void regress_rows(thi_space *space, const thiele_likelihood *lik, const thi_block_rows *rows, group *g,
                         const answer *to)
{
    int64_t Q = space->Q;
    double base[TOGETHER] = {0}, rest[TOGETHER][2] = {{0}}, largest[TOGETHER] = {0};
    for (int64_t r = 0; r < g->rows; r++) {
        int64_t i = g->row[r];
        to->E[i] = 0;
        memset(to->g + i * Q, 0, (size_t)Q * sizeof *to->g);
        memset(to->h + i * Q, 0, (size_t)Q * sizeof *to->h);
    }
    for (; place_piece(space, rows, g); g->from += PIECE) {
        lik->ops->log_density(lik, g->points, space->y, space->f, space->value);
        for (int64_t r = 0; r < g->rows; r++) {
            int64_t i = g->row[r], count = g->count[r];
            double *l = space->value + g->at[r];
            base[r] = g->from == 0 ? 0.5 * (l[0] + l[count]) : base[r];
            fold(count, base[r], l);
            add_piece(&g->w[r], Q, g->from, count, l, to->E + i, to->g + i * Q, to->h + i * Q);
            if (g->brief) {
                add_rest(&g->w[r], g->from, count, l, rest[r], &largest[r]);
            }
        }
    }
    for (int64_t r = 0; r < g->rows; r++) {
        double most = ROUNDING * largest[r];
        to->E[g->row[r]] += base[r];
        g->enough[r] = !g->brief || (fabs(rest[r][0]) <= most && fabs(rest[r][1]) <= most);
    }
}

/* --- how many points ------------------------------------------------------------------------------------------------
 */

/* Whether a brief design is enough at made-up places. */
static thiele_status is_enough(thi_space *space, thiele_context *ctx, const thi_draws *draws, bool *enough)
{
    static const int only = 0;
    double f[MOST_LATENTS], sd[MOST_LATENTS], y[THI_POINTS], E, g[MOST_LATENTS], h[MOST_LATENTS];
    const answer to = {.E = &E, .g = g, .h = h};
    group one = {.rows = 1, .row = &only, .brief = true};
    thiele_status status = view_of(space, ctx, draws, -draws->first, true, &one.w[0]);
    for (int q = 0; q < space->Q; q++) {
        sd[q] = 0.5;
    }
    for (int p = 0; p < PLACES && status == THIELE_OK && *enough; p++) {
        thi_couplings_place(space, p, 1, f);
        memcpy(y, space->y, (size_t)space->P * sizeof *y);
        thi_block_rows row = {.y = y, .mu = f, .sd = sd};
        one.from = 0;
        regress_rows(space, &space->copy, &row, &one, &to);
        *enough = one.enough[0];
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

/* --- all rows --------------------------------------------------------------------------------------------------------
 */

/* A group of rows from `first` on; again: of those that brief designs were not enough for, *more of them. */
static thiele_status regress_group(thi_space *space, thiele_context *ctx, const thi_draws *draws,
                                   const thi_block_rows *rows, int64_t first, const answer *to, group *g, int *again,
                                   int64_t *more)
{
    int64_t Q = space->Q;
    thiele_status status = gather(space, ctx, draws, rows, first, again != NULL, g);
    if (status != THIELE_OK) {
        return status;
    }
    regress_rows(space, space->lik, rows, g, to);
    for (int64_t r = 0; r < g->rows; r++) {
        int64_t i = g->row[r];
        if (g->enough[r]) {
            finish(&g->w[r], Q, rows->sd + i * Q, to->v + i * Q, to->E + i, to->g + i * Q, to->h + i * Q);
        } else {
            again[(*more)++] = (int)i;
        }
    }
    return THIELE_OK;
}

thiele_status thi_regress(thi_space *space, thiele_context *ctx, const thi_draws *draws, const thi_block_rows *rows,
                          const double *v, double *E, double *g, double *h)
{
    const answer to = {v, E, g, h};
    int again[TOGETHER];
    group some, rest;
    thiele_status status = space->brief_points == 0 ? find_brief(space, ctx, draws) : THIELE_OK;
    for (int64_t first = 0; first < rows->count && status == THIELE_OK; first += some.rows) {
        thi_block_rows left = *rows;
        left.row = again;
        left.count = 0;
        THI_TRY(regress_group(space, ctx, draws, rows, first, &to, &some, space->brief_points > 0 ? again : NULL,
                              &left.count));
        for (int64_t next = 0; next < left.count; next += rest.rows) {
            THI_TRY(regress_group(space, ctx, draws, &left, next, &to, &rest, NULL, NULL));
        }
    }
out:
    return status;
}

thiele_status thi_design_sweep(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_draws *draws,
                               const thi_block_rows *rows, double *result)
{
    group g;
    for (int64_t first = 0; first < rows->count; first += g.rows) {
        thiele_status status = gather(space, ctx, draws, rows, first, false, &g);
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t r = 0; r < g.rows; r++) {
            memset(result + g.row[r] * in->results, 0, (size_t)in->results * sizeof *result);
        }
        for (; place_piece(space, rows, &g); g.from += PIECE) {
            in->evaluate(in, g.points, space->y, space->f, space->value);
            for (int64_t k = 0; k < 2 * g.rows; k++) {
                int64_t r = k / 2, count = g.count[r];
                thi_points points = {g.points, g.at[r] + k % 2 * count,      count, space->value,
                                     NULL,     g.w[r].design->half + g.from, NULL};
                in->reduce(in, &points, result + g.row[r] * in->results);
            }
        }
    }
    return THIELE_OK;
}
