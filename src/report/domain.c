/*
 * Where not to trust predictions: rows of which the training rows say nothing (the variance of f is near the prior's);
 * columns whose values are other ones than in training; and inputs that give the target away.
 *
 * A column is compared with the training rows that the model holds by the largest distance of their distribution
 * functions (Kolmogorov and Smirnov), categories by half the sum of differences of their shares: both are lower bounds
 * on how many rows lie elsewhere. A model that holds none knows means and standard deviations, and
 * delta^2/(delta^2 + (s + s')^2) is a lower bound too. p: of chance, times the number of columns (Bonferroni).
 *
 * An input gives the target away if it alone leaves next to nothing of its variance: R^2 of a line, or of the means of
 * bins with equally many rows, whichever is larger, less what chance gives bins.
 */
#include <math.h>
#include <stdlib.h>

#include "likelihood/special.h"
#include "report/report.h"
#include "report/statistic.h"

enum { HELD = 5000, BINS = 20 };
/* Multiply-adds of the search for equal rows. */
static const double WORK = 1e9;
/* A predicted row whose squared distance to a training row is this is that row. */
static const double SAME = 1e-18;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- drift ----------------------------------------------------------------------------------------------------------
 */

typedef struct drift {
    double distance, p, shift, spread; /* shift: of the mean, in training standard deviations; spread: ratio of them */
} drift;

static void take_column(double *to, int64_t n, const double *X, int D, int d, int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = X[i * step * D + d];
    }
    qsort(to, (size_t)n, sizeof *to, by_size);
}

/* By shares of levels, chi-square for two samples. */
static drift compare_levels(const thi_encoder *encoder, int input, int64_t n, const double *X, int64_t m,
                            const double *held, int64_t step)
{
    int levels = encoder->input[input].levels + encoder->input[input].others, df = -1;
    double a[THI_LEVELS_MAX + 1] = {0.0}, b[THI_LEVELS_MAX + 1] = {0.0}, distance = 0.0, square = 0.0;
    for (int64_t i = 0; i < n; i++) {
        a[(int)thi_input_value(encoder, input, X + i * encoder->dims)] += 1.0;
    }
    for (int64_t i = 0; i < m; i++) {
        b[(int)thi_input_value(encoder, input, held + i * step * encoder->dims)] += 1.0;
    }
    for (int l = 0; l < levels; l++) {
        double both = a[l] + b[l], expected = both * (double)n / (double)(n + m);
        distance += 0.5 * fabs(a[l] / (double)n - b[l] / (double)m);
        if (both > 0.0) {
            double off = a[l] - expected;
            square += off * off / (expected * (double)m / (double)(n + m));
            df++;
        }
    }
    return (drift){distance, df > 0 ? thi_chi_square_tail(df, square) : 1.0, NAN, NAN};
}

static void add_moments(const thi_report_rows *rows, int d, drift *own)
{
    double n = (double)rows->scorer.rows, mean = rows->sum[d] / n;
    own->shift = mean;
    own->spread = sqrt(fmax(rows->square[d] / n - mean * mean, 0.0));
}

/* Of what training left behind: mean 0, variance 1. */
static drift compare_moments(const thi_report_rows *rows, int d)
{
    drift own;
    add_moments(rows, d, &own);
    double delta = own.shift, both = 1.0 + own.spread, n = (double)rows->scorer.rows;
    own.distance = delta * delta / (delta * delta + both * both);
    own.p = 2.0 * thi_normal_cdf(-fabs(delta) * sqrt(n) / fmax(own.spread, 1e-12));
    return own;
}

static thiele_status find_drift(const thi_report *r, int input, double *room, drift *out)
{
    const thi_row_sample *s = &r->rows->sample;
    const thi_encoder *encoder = &r->model->encoder;
    const thi_held held = thi_find_held(r->model);
    int d = encoder->input[input].first, D = encoder->dims;
    int64_t step = held.n > HELD ? held.n / HELD : 1, m = thi_least(held.n / step, HELD);
    bool standardised = encoder->scale[d] != 1.0 || encoder->center[d] != 0.0;
    *out = (drift){NAN, NAN, NAN, NAN};
    if (encoder->input[input].levels > 0) {
        if (held.training) {
            *out = compare_levels(encoder, input, s->n, s->X, m, held.X, step);
        }
        return THIELE_OK;
    }
    if (held.training) {
        double *other = room + THI_SAMPLE_ROWS;
        take_column(room, s->n, s->X, D, d, 1);
        take_column(other, m, held.X, D, d, step);
        out->distance = thi_ks_two(s->n, room, m, other);
        out->p = thi_kolmogorov_tail((double)s->n * (double)m / (double)(s->n + m), out->distance);
        if (standardised) {
            add_moments(r->rows, d, out);
        }
    } else if (standardised) {
        *out = compare_moments(r->rows, d);
    }
    return THIELE_OK;
}

static thiele_status put_drift(thi_report *r, json_t *section)
{
    const thi_encoder *encoder = &r->model->encoder;
    int shown[THI_REPORT_INPUTS], count = thi_report_inputs(r, shown), worst = -1;
    double *room = NULL, furthest = -1.0;
    thiele_status status = thi_alloc(r->ctx, &room, THI_SAMPLE_ROWS + HELD, sizeof *room);
    json_t *list = thi_put_list(r, section, "columns");
    for (int k = 0; k < count && status == THIELE_OK; k++) {
        drift own;
        status = find_drift(r, shown[k], room, &own);
        json_t *column = thi_append_object(r, list);
        thi_put_text(r, column, "input", encoder->input[shown[k]].name);
        thi_put_number(r, column, "distance", own.distance);
        thi_put_number(r, column, "p", fmin(own.p * count, 1.0));
        thi_put_number(r, column, "shift", own.shift);
        thi_put_number(r, column, "spread", own.spread);
        if (own.distance > furthest) {
            furthest = own.distance;
            worst = k;
            thi_put_number(r, section, "distance", own.distance);
            thi_put_number(r, section, "p", fmin(own.p * count, 1.0));
        }
    }
    if (worst >= 0) {
        thi_put_text(r, section, "furthest", encoder->input[shown[worst]].name);
    }
    thi_free(room);
    return status;
}

/* --- rows that are nowhere, and rows that were there already ---------------------------------------------------------
 */

static void put_alone(thi_report *r, json_t *section)
{
    const thi_report_rows *rows = r->rows;
    int64_t alone = 0;
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        alone += rows->share[i] >= THI_ALONE;
    }
    thi_put_number(r, section, "alone", (double)alone / (double)rows->scorer.rows);
}

static thiele_status put_seen(thi_report *r, json_t *section)
{
    const thi_row_sample *s = &r->rows->sample;
    const thi_held held = thi_find_held(r->model);
    double most = WORK / ((double)held.n * r->model->encoder.dims);
    int64_t n = most < (double)s->n ? (int64_t)most : s->n, seen = 0;
    double *least = NULL;
    thiele_status status = THIELE_OK;
    if (!held.training || n < 10) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(r->ctx, &least, (size_t)n, sizeof *least));
    THI_TRY(thi_held_nearest(r->model, r->ctx, n, s->X, least, NULL));
    for (int64_t i = 0; i < n; i++) {
        seen += least[i] <= SAME;
    }
    thi_put_number(r, section, "seen", (double)seen / (double)n);
out:
    thi_free(least);
    return status;
}

/* --- inputs that give the target away
 * --------------------------------------------------------------------------------- */

typedef struct point {
    double x, y;
} point;

static int by_place(const void *a, const void *b)
{
    const point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

/* The larger of R^2 of a line and of bins, without what chance gives the latter; points in order of x. */
static double explained(int64_t n, const point *p, bool levels)
{
    double mx = 0.0, my = 0.0, xx = 0.0, yy = 0.0, xy = 0.0, within = 0.0;
    int bins = 0;
    for (int64_t i = 0; i < n; i++) {
        mx += p[i].x / (double)n;
        my += p[i].y / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        xx += (p[i].x - mx) * (p[i].x - mx);
        yy += (p[i].y - my) * (p[i].y - my);
        xy += (p[i].x - mx) * (p[i].y - my);
    }
    for (int64_t i = 0; i < n; bins++) {
        int64_t first = i, each = n / BINS + 1;
        double sum = 0.0, square = 0.0;
        while (i < n && (i == first || (!levels && i - first < each) || p[i].x == p[i - 1].x)) {
            sum += p[i].y - my;
            square += (p[i].y - my) * (p[i].y - my);
            i++;
        }
        within += square - sum * sum / (double)(i - first);
    }
    double binned = n > bins ? 1.0 - within / yy * (double)(n - 1) / (double)(n - bins) : 0.0;
    double line = xx > 0.0 ? xy * xy / (xx * yy) : 0.0;
    return yy > 0.0 ? fmax(binned, line) : 0.0;
}

/* Of labels the mean over them, of those that some rows have and others do not, by their share of the variance. */
static double give_away(const thi_report *r, int input, point *points)
{
    const thi_row_sample *s = &r->rows->sample;
    const thi_encoder *encoder = &r->model->encoder;
    int classes = thi_rows_classes(r->rows);
    double sum = 0.0, weight = 0.0;
    for (int c = 0; c < (classes > 0 ? classes : 1); c++) {
        double share = 0.0;
        for (int64_t i = 0; i < s->n; i++) {
            double y = thi_rows_y(r->rows, s->at[i]);
            points[i] = (point){thi_input_value(encoder, input, s->X + i * encoder->dims), classes > 0 ? y == c : y};
            share += points[i].y / (double)s->n;
        }
        qsort(points, (size_t)s->n, sizeof *points, by_place);
        double own = classes > 0 ? share * (1.0 - share) : 1.0;
        sum += own > 0.0 ? own * explained(s->n, points, encoder->input[input].levels > 0) : 0.0;
        weight += own;
    }
    return weight > 0.0 ? sum / weight : 0.0;
}

static thiele_status put_leak(thi_report *r, json_t *section)
{
    int shown[THI_REPORT_INPUTS], count = thi_report_inputs(r, shown), worst = -1;
    double most = -1.0;
    point *points = NULL;
    thiele_status status = thi_alloc(r->ctx, &points, (size_t)r->rows->sample.n, sizeof *points);
    for (int k = 0; k < count && status == THIELE_OK && r->model->encoder.inputs > 1; k++) {
        double own = give_away(r, shown[k], points);
        worst = own > most ? k : worst;
        most = fmax(most, own);
    }
    if (worst >= 0) {
        thi_put_number(r, section, "given_away", most);
        thi_put_text(r, section, "given_away_by", r->model->encoder.input[shown[worst]].name);
    }
    thi_free(points);
    return status;
}

thiele_status thi_section_domain(thi_report *r, json_t *section)
{
    thiele_status status;
    put_alone(r, section);
    THI_TRY(put_drift(r, section));
    THI_TRY(put_seen(r, section));
    THI_TRY(put_leak(r, section));
out:
    return status;
}
