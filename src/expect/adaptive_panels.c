/*
 * Integrals on the line by adaptive panels: 16-point Gauss-Legendre rules, a panel being accepted when its two halves
 * give the same. Kinks of log p lie on borders; around other bends the first panels shrink geometrically, so that no
 * feature hides between nodes. About 500 evaluations a row for a smooth integrand, 1000 to 2000 with sharp features,
 * whatever their width.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "expect/integrate.h"

enum { NODES = 16, BATCH = THI_POINTS / NODES, MOST_PANELS = 4000 };
/* So many panels are enough for any feature; who needs more is rough from rounding, and is asked for less and less. */
enum { EASY = 128 };

/* Beyond this many standard deviations nothing is evaluated: the weight is below 1e-196. */
static const double REACH = 30;
/* Panels beyond this one matter only when log p grows as exp(5 z) or faster: refined if their sums can be seen. */
static const double USUAL_REACH = 12;

/* Rounding of f makes a rough thing of an integrand over fewer doubles than this: halves would never agree. */
static const double LEAST_DOUBLES = 1024;

/* A panel in memory: its ends, then its results. */
static int64_t stride(const thi_integrand *in)
{
    return 2 + in->results;
}

static int64_t judged(const thi_integrand *in)
{
    return in->judged > 0 ? in->judged : in->results;
}

static void place_nodes(thi_space *space, const thi_integrand *in, const thi_line *line, int64_t at, double a, double b)
{
    double middle = 0.5 * (a + b), half = 0.5 * (b - a);
    for (int k = 0; k < NODES; k++) {
        const double *node = thi_legendre[k < NODES / 2 ? k : NODES - 1 - k];
        double z = middle + (k < NODES / 2 ? -half : half) * node[0];
        space->z[at + k] = z;
        space->w[at + k] = half * node[1] * (in->raw ? 1 : exp(-0.5 * z * z) * 0.398942280401432677940);
        space->f[at + k] = line->mu + line->sd * z;
    }
}

/* The results of up to BATCH panels whose ends are in place. space->y holds the row's y at every point. */
static void evaluate_panels(thi_space *space, const thi_integrand *in, const thi_line *line, int count, double *panel)
{
    int64_t step = stride(in), n = (int64_t)count * NODES;
    for (int p = 0; p < count; p++) {
        place_nodes(space, in, line, (int64_t)p * NODES, panel[p * step], panel[p * step + 1]);
    }
    in->evaluate(in, n, space->y, space->f, space->value);
    for (int p = 0; p < count; p++) {
        int64_t at = (int64_t)p * NODES;
        double *result = panel + p * step + 2;
        thi_points points = {n, at, NODES, space->value, space->z + at, space->w + at, line->centre};
        memset(result, 0, (size_t)in->results * sizeof *result);
        in->reduce(in, &points, result);
    }
}

typedef struct bisection {
    thi_space *space;
    const thi_integrand *in;
    const thi_line *line;
    double *stack;  /* panels waiting for their halves */
    double *halves; /* BATCH of them */
    double *scale;  /* sums of |panel| over the first panels, result by result */
    double thin;    /* a panel is not cut any further: f has too few doubles in it */
    int waiting, done;
    double *result;
} bisection;

/* All results of the panel below a fraction of the scale: it can't be seen in the sum. */
static bool negligible(const bisection *b, const double *panel)
{
    bool small = fmin(fabs(panel[0]), fabs(panel[1])) >= USUAL_REACH && !b->in->raw;
    for (int64_t j = 0; j < judged(b->in) && small; j++) {
        small = fabs(panel[2 + j]) <= 1e-17 * b->scale[j];
    }
    return small;
}

static bool agree(const bisection *b, const double *panel, const double *left, const double *right)
{
    const double *centre = b->line->centre;
    double noise = centre == NULL ? 0 : b->in->noise * (1 + fabs(centre[0]));
    double tolerance = 1e-11 * pow(fmax(1, (double)b->done / EASY), 8);
    bool same = true;
    for (int64_t j = 2; j < 2 + judged(b->in) && same; j++) {
        same = fabs(panel[j] - left[j] - right[j]) <= tolerance * b->scale[j - 2] + noise + DBL_MIN;
    }
    return same;
}

static void accept(bisection *b, const double *panel)
{
    for (int64_t j = 0; j < b->in->results; j++) {
        b->result[j] += panel[2 + j];
    }
}

/* The first panels: on the stack unless they are negligible. False when a sum is not finite: there is nothing to
 * refine. */
static bool begin(bisection *b, int borders, const double *border)
{
    int64_t step = stride(b->in);
    for (int first = 0; first + 1 < borders; first += BATCH) {
        int count = borders - 1 - first < BATCH ? borders - 1 - first : BATCH;
        double *panel = b->stack + first * step;
        for (int p = 0; p < count; p++) {
            panel[p * step] = border[first + p];
            panel[p * step + 1] = border[first + p + 1];
        }
        evaluate_panels(b->space, b->in, b->line, count, panel);
    }
    bool finite = true;
    for (int64_t j = 0; j < b->in->results; j++) {
        b->scale[j] = b->result[j] = 0;
        for (int p = 0; p + 1 < borders; p++) {
            b->scale[j] += fabs(b->stack[p * step + 2 + j]);
        }
        finite = finite && isfinite(b->scale[j]);
    }
    b->waiting = b->done = 0;
    for (int p = 0; p + 1 < borders; p++) {
        double *panel = b->stack + p * step;
        if (!finite || negligible(b, panel)) {
            accept(b, panel);
        } else {
            memmove(b->stack + b->waiting++ * step, panel, (size_t)step * sizeof *panel);
        }
    }
    return finite;
}

/* The halves of the panels on top of the stack, those that do not agree with them going onto the stack in their place.
 */
static void refine(bisection *b)
{
    int64_t step = stride(b->in);
    int count = b->waiting < BATCH / 2 ? b->waiting : BATCH / 2;
    double *top = b->stack + (b->waiting - count) * step;
    for (int p = 0; p < count; p++) {
        double *panel = top + p * step, *left = b->halves + 2 * p * step, *right = left + step;
        left[0] = panel[0];
        left[1] = right[0] = 0.5 * (panel[0] + panel[1]);
        right[1] = panel[1];
    }
    evaluate_panels(b->space, b->in, b->line, 2 * count, b->halves);
    bool same[BATCH / 2];
    for (int p = 0; p < count; p++) {
        double *panel = top + p * step, *left = b->halves + 2 * p * step, *right = left + step;
        bool thin = panel[1] - panel[0] <= fmax(b->thin, 1e-13 * fmax(1, fmax(fabs(panel[0]), fabs(panel[1]))));
        bool full = b->done > MOST_PANELS || b->waiting + count > THI_PANEL_STACK;
        same[p] = thin || full || agree(b, panel, left, right);
        if (same[p]) {
            accept(b, left);
            accept(b, right);
        }
    }
    b->waiting -= count;
    b->done += count;
    for (int p = 0; p < count; p++) {
        if (!same[p]) {
            memcpy(b->stack + b->waiting * step, b->halves + 2 * p * step, (size_t)(2 * step) * sizeof *b->stack);
            b->waiting += 2;
        }
    }
}

thiele_status thi_panels(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_line *line,
                         int borders, const double *border, double *result)
{
    int64_t most = 2 + space->results;
    if (space->stack == NULL) {
        thiele_status status =
            thi_alloc(ctx, &space->stack, (size_t)((THI_PANEL_STACK + BATCH + 1) * most), sizeof *space->stack);
        if (status != THIELE_OK) {
            return status;
        }
    }
    bisection b = {.space = space, .in = in, .line = line, .stack = space->stack, .result = result};
    b.halves = space->stack + THI_PANEL_STACK * most;
    b.scale = b.halves + BATCH * most;
    b.thin = line->sd > 0 ? LEAST_DOUBLES * DBL_EPSILON * fabs(line->mu) / line->sd : 0;
    if (line->y != NULL) {
        thi_repeat(space->P, line->y, THI_POINTS, space->y);
    }
    if (begin(&b, borders, border)) {
        while (b.waiting > 0) {
            refine(&b);
        }
    }
    return THIELE_OK;
}

/* --- borders ------------------------------------------------------------------------------------------------------ */

int thi_borders_around(int borders, double *border, double at, double width, double reach)
{
    enum { EACH = 2 * 16 + 1 };
    if (borders + EACH > THI_BORDERS_MAX) {
        return borders;
    }
    border[borders++] = at;
    for (int k = 0; k < EACH / 2 && width > 0 && width < reach; k++, width *= 8) {
        border[borders++] = at - width;
        border[borders++] = at + width;
    }
    return borders;
}

int thi_borders_sort(int borders, double *border, double low, double high)
{
    int kept = 0;
    for (int i = 0; i < borders; i++) {
        double x = border[i];
        if (!(x >= low && x <= high)) {
            continue;
        }
        int at = kept++;
        for (; at > 0 && border[at - 1] > x; at--) {
            border[at] = border[at - 1];
        }
        border[at] = x;
    }
    int distinct = 0;
    for (int i = 0; i < kept; i++) {
        if (distinct == 0 || border[i] - border[distinct - 1] > 1e-14 * fmax(1, fabs(border[i]))) {
            border[distinct++] = border[i];
        }
    }
    return distinct;
}

int thi_bends(const thiele_likelihood *lik, const double *y, thi_bend *bend)
{
    return lik->ops->bends == NULL || y == NULL || lik->latents != 1 ? 0 : lik->ops->bends(lik, y, bend);
}

bool thi_has_kink(const thiele_likelihood *lik, const double *y, double mu, double sd)
{
    thi_bend bend[THI_BENDS_MAX];
    int bends = thi_bends(lik, y, bend);
    bool found = false;
    for (int b = 0; b < bends; b++) {
        found = found || (bend[b].width <= 0.15 * sd && fabs(bend[b].at - mu) <= USUAL_REACH * sd);
    }
    return found && sd > 0;
}

thiele_status thi_split(thi_space *space, thiele_context *ctx, const thi_integrand *in, const thi_line *line,
                        double *result)
{
    static const double usual[] = {-30, -22, -16, -12, -10, -8, -6, -4, -2, 0, 2, 4, 6, 8, 10, 12, 16, 22, 30};
    if (space->border == NULL) {
        thiele_status status = thi_alloc(ctx, &space->border, THI_BORDERS_MAX, sizeof *space->border);
        if (status != THIELE_OK) {
            return status;
        }
    }
    thi_bend bend[THI_BENDS_MAX];
    int bends = thi_bends(space->lik, line->y, bend), borders = sizeof usual / sizeof *usual;
    memcpy(space->border, usual, sizeof usual);
    for (int b = 0; b < bends && line->sd > 0; b++) {
        borders = thi_borders_around(borders, space->border, (bend[b].at - line->mu) / line->sd,
                                     bend[b].width / line->sd, 2.0);
    }
    borders = thi_borders_sort(borders, space->border, -REACH, REACH);
    return thi_panels(space, ctx, in, line, borders, space->border, result);
}
