/*
 * What matters to predictions, and how. Permutation: by how much the loss rises when an input takes the values of other
 * rows (Breiman 2001; Fisher, Rudin and Dominici 2019). Partial dependence: the mean prediction of some rows as one
 * input moves, with the band that holds the middle 80% of the rows' own curves (Friedman 2001; Goldstein et al. 2015).
 * The strongest pair of the three inputs that matter most among numbers: the one whose surface is furthest from a sum
 * of its two curves. The work is limited by counting it, so that the numbers are the same on any machine.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/batches.h"
#include "report/report.h"
#include "report/statistic.h"

enum { PANELS = 6, GRID = 25, BACKGROUND = 100, CURVES = 6, PAIR_INPUTS = 3, SIDE = 12, PAIR_ROWS = 40, PERMUTE = 121 };
static const double OUTER = 0.1, EDGE = 0.02;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- permutation ----------------------------------------------------------------------------------------------------
 */

typedef struct effect {
    int input;
    double drop, error;
} effect;

static int by_drop(const void *a, const void *b)
{
    const effect *x = a, *y = b;
    return x->drop != y->drop ? (x->drop < y->drop) - (x->drop > y->drop) : x->input - y->input;
}

/* X with the input of other rows. */
static void permute(const thi_report *r, int64_t n, int input, double *X)
{
    const thi_encoder *encoder = &r->model->encoder;
    const thi_input *own = &encoder->input[input];
    size_t D = (size_t)encoder->dims, first = (size_t)own->first, width = (size_t)thi_input_width(own);
    thi_shuffle order;
    thi_shuffle_open(&order, (thi_stream){0, PERMUTE, (uint64_t)input}, n);
    memcpy(X, r->rows->sample.X, D * (size_t)n * sizeof *X);
    for (int64_t i = 0; i < n; i++) {
        memcpy(X + (size_t)i * D + first, r->rows->sample.X + (size_t)thi_shuffle_at(&order, i) * D + first,
               width * sizeof *X);
    }
}

static thiele_status permutation(thi_report *r, json_t *section, int count, effect *effects)
{
    const thi_row_sample *s = &r->rows->sample;
    int64_t n = thi_least(thi_probe_affordable(r->model, s->n, count + 1.0), s->n);
    double *X = NULL, *before = NULL, *after = NULL;
    thi_probe probe = {r->model, r->target, n, s->X, s->offset, s->y, NULL, NULL};
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &X, (size_t)n * (size_t)r->model->encoder.dims, sizeof *X));
    THI_TRY(thi_alloc(r->ctx, &before, (size_t)n, sizeof *before));
    THI_TRY(thi_alloc(r->ctx, &after, (size_t)n, sizeof *after));
    probe.loss = before;
    THI_TRY(thi_probe_run(&probe, r->ctx));
    probe.X = X;
    probe.loss = after;
    for (int k = 0; k < count; k++) {
        double sum = 0.0, square = 0.0;
        permute(r, n, effects[k].input, X);
        THI_TRY(thi_probe_run(&probe, r->ctx));
        for (int64_t i = 0; i < n; i++) {
            double rise = after[i] - before[i];
            sum += rise;
            square += rise * rise;
        }
        effects[k].drop = sum / (double)n;
        effects[k].error = sqrt(fmax(square / (double)n - effects[k].drop * effects[k].drop, 0.0) / (double)n);
    }
    qsort(effects, (size_t)count, sizeof *effects, by_drop);
    json_t *list = thi_put_list(r, section, "permutation");
    for (int k = 0; k < count; k++) {
        json_t *own = thi_append_object(r, list);
        thi_put_text(r, own, "input", r->model->encoder.input[effects[k].input].name);
        thi_put_number(r, own, "rise", effects[k].drop);
        thi_put_number(r, own, "error", effects[k].error);
    }
    thi_put_count(r, section, "permutation_rows", n);
out:
    thi_free(X);
    thi_free(before);
    thi_free(after);
    return status;
}

/* --- partial dependence ---------------------------------------------------------------------------------------------
 */

/* Places of an input, in the units of the data: quantiles of the sample at even steps, or its levels. */
typedef struct grid {
    int count;
    bool levels;
    double at[GRID];
} grid;

static thiele_status make_grid(const thi_report *r, int input, int most, grid *g)
{
    const thi_row_sample *s = &r->rows->sample;
    const thi_encoder *encoder = &r->model->encoder;
    const thi_input *own = &encoder->input[input];
    double *all = NULL;
    *g = (grid){.levels = own->levels > 0};
    if (g->levels) {
        g->count = own->levels < most ? own->levels : most;
        for (int l = 0; l < g->count; l++) {
            g->at[l] = l;
        }
        return THIELE_OK;
    }
    thiele_status status = thi_alloc(r->ctx, &all, (size_t)s->n, sizeof *all);
    for (int64_t i = 0; i < s->n && status == THIELE_OK; i++) {
        all[i] = thi_input_value(encoder, input, s->X + i * encoder->dims);
    }
    if (status == THIELE_OK) {
        qsort(all, (size_t)s->n, sizeof *all, by_size);
        double low = thi_sorted_quantile(s->n, all, EDGE), high = thi_sorted_quantile(s->n, all, 1.0 - EDGE);
        if (!(low < high)) {
            low = all[0];
            high = all[s->n - 1];
        }
        g->count = low < high ? most : 1;
        for (int k = 0; k < g->count; k++) {
            g->at[k] = g->count > 1 ? low + (high - low) * k / (g->count - 1.0) : low;
        }
    }
    thi_free(all);
    return status;
}

/* value (values x rows x points of the first grid x those of the second): predictions of the first rows of the sample
 * with inputs moved. second NULL: there is one. */
static thiele_status predict_grid(const thi_report *r, int64_t rows, const int input[2], const grid *first,
                                  const grid *second, double *value)
{
    const thi_row_sample *s = &r->rows->sample;
    const thi_encoder *encoder = &r->model->encoder;
    size_t D = (size_t)encoder->dims;
    int64_t n = rows * first->count * (second != NULL ? second->count : 1);
    double *X = NULL, *offset = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(r->ctx, &X, (size_t)n * D, sizeof *X));
    THI_TRY(thi_alloc(r->ctx, &offset, (size_t)n, sizeof *offset));
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i % rows, at = i / rows;
        memcpy(X + (size_t)i * D, s->X + (size_t)row * D, D * sizeof *X);
        offset[i] = s->offset[row];
        thi_input_place(encoder, input[0], first->at[at % first->count], X + (size_t)i * D);
        if (second != NULL) {
            thi_input_place(encoder, input[1], second->at[at / first->count], X + (size_t)i * D);
        }
    }
    const thi_probe probe = {r->model, r->target, n, X, offset, NULL, value, NULL};
    THI_TRY(thi_probe_run(&probe, r->ctx));
out:
    thi_free(X);
    thi_free(offset);
    return status;
}

/* Of the target, or of some labels: of two the second one. */
static void put_curves(thi_report *r, json_t *own, const grid *g, int64_t rows, const double *value, double *one)
{
    int values = thi_probe_values(r->model);
    int first = values == 2, end = values < CURVES ? values : CURVES;
    double mean[GRID], low[GRID], high[GRID];
    json_t *list = thi_put_list(r, own, "curves");
    for (int v = first; v < end; v++) {
        for (int k = 0; k < g->count; k++) {
            double sum = 0.0;
            for (int64_t i = 0; i < rows; i++) {
                one[i] = value[(k * rows + i) * values + v];
                sum += one[i];
            }
            qsort(one, (size_t)rows, sizeof *one, by_size);
            mean[k] = sum / (double)rows;
            low[k] = thi_sorted_quantile(rows, one, OUTER);
            high[k] = thi_sorted_quantile(rows, one, 1.0 - OUTER);
        }
        json_t *curve = thi_append_object(r, list);
        if (values > 1) {
            thi_put_text(r, curve, "label", r->model->encoder.target->level[v]);
        }
        thi_put_numbers(r, curve, "mean", g->count, mean);
        thi_put_numbers(r, curve, "low", g->count, low);
        thi_put_numbers(r, curve, "high", g->count, high);
    }
}

static void put_places(thi_report *r, json_t *own, const char *name, int input, const grid *g)
{
    const thi_input *from = &r->model->encoder.input[input];
    if (!g->levels) {
        thi_put_numbers(r, own, name, g->count, g->at);
        return;
    }
    json_t *list = thi_put_list(r, own, name);
    for (int l = 0; l < g->count; l++) {
        thi_append(r, list, json_string(from->level[l]));
    }
}

static thiele_status dependence(thi_report *r, json_t *section, int count, const effect *effects)
{
    const thi_row_sample *s = &r->rows->sample;
    int panels = count < PANELS ? count : PANELS;
    int64_t rows = thi_least(thi_probe_affordable(r->model, BACKGROUND * GRID, panels) / GRID + 1, BACKGROUND);
    rows = thi_least(rows, s->n);
    double *value = NULL, *one = NULL;
    thiele_status status;
    json_t *list = thi_put_list(r, section, "dependence");
    THI_TRY(thi_alloc(r->ctx, &value, (size_t)(rows * GRID * thi_probe_values(r->model)), sizeof *value));
    THI_TRY(thi_alloc(r->ctx, &one, (size_t)rows, sizeof *one));
    for (int k = 0; k < panels; k++) {
        const int input[2] = {effects[k].input, 0};
        grid g;
        THI_TRY(make_grid(r, input[0], GRID, &g));
        THI_TRY(predict_grid(r, rows, input, &g, NULL, value));
        json_t *own = thi_append_object(r, list);
        thi_put_text(r, own, "input", r->model->encoder.input[input[0]].name);
        put_places(r, own, "at", input[0], &g);
        put_curves(r, own, &g, rows, value, one);
    }
    thi_put_count(r, section, "dependence_rows", rows);
out:
    thi_free(value);
    thi_free(one);
    return status;
}

/* --- the strongest pair ---------------------------------------------------------------------------------------------
 */

typedef struct surface {
    int input[2];
    grid g[2];
    double mean[SIDE * SIDE]; /* first grid fastest */
    double strength;          /* root mean square of what is no sum of two curves, over that of the surface */
} surface;

static void judge_surface(surface *f)
{
    int a = f->g[0].count, b = f->g[1].count;
    double row[SIDE] = {0.0}, column[SIDE] = {0.0}, all = 0.0, apart = 0.0, spread = 0.0;
    for (int i = 0; i < a * b; i++) {
        row[i % a] += f->mean[i] / b;
        column[i / a] += f->mean[i] / a;
        all += f->mean[i] / (a * b);
    }
    for (int i = 0; i < a * b; i++) {
        double rest = f->mean[i] - row[i % a] - column[i / a] + all, off = f->mean[i] - all;
        apart += rest * rest;
        spread += off * off;
    }
    f->strength = spread > 0.0 ? sqrt(apart / spread) : 0.0;
}

static thiele_status make_surface(const thi_report *r, int64_t rows, surface *f, double *value)
{
    int values = thi_probe_values(r->model), v = values == 2;
    thiele_status status;
    THI_TRY(make_grid(r, f->input[0], SIDE, &f->g[0]));
    THI_TRY(make_grid(r, f->input[1], SIDE, &f->g[1]));
    THI_TRY(predict_grid(r, rows, f->input, &f->g[0], &f->g[1], value));
    for (int k = 0; k < f->g[0].count * f->g[1].count; k++) {
        f->mean[k] = 0.0;
        for (int64_t i = 0; i < rows; i++) {
            f->mean[k] += value[(k * rows + i) * values + v] / (double)rows;
        }
    }
    judge_surface(f);
out:
    return status;
}

static thiele_status strongest_pair(thi_report *r, json_t *section, int count, const effect *effects)
{
    int number[PAIR_INPUTS], numbers = 0, values = thi_probe_values(r->model);
    int64_t rows = thi_probe_affordable(r->model, PAIR_ROWS * SIDE * SIDE, PAIR_INPUTS) / (SIDE * SIDE) + 1;
    double *value = NULL;
    surface best = {.strength = -1.0}, own;
    thiele_status status = THIELE_OK;
    rows = thi_least(thi_least(rows, PAIR_ROWS), r->rows->sample.n);
    for (int k = 0; k < count && numbers < PAIR_INPUTS; k++) {
        if (r->model->encoder.input[effects[k].input].levels == 0) {
            number[numbers++] = effects[k].input;
        }
    }
    if (numbers < 2 || values > 2) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(r->ctx, &value, (size_t)(rows * SIDE * SIDE * values), sizeof *value));
    for (int i = 0; i < numbers; i++) {
        for (int j = i + 1; j < numbers; j++) {
            own = (surface){.input = {number[i], number[j]}};
            THI_TRY(make_surface(r, rows, &own, value));
            best = own.strength > best.strength ? own : best;
        }
    }
    json_t *pair = thi_put_object(r, section, "pair");
    thi_put_text(r, pair, "x", r->model->encoder.input[best.input[0]].name);
    thi_put_text(r, pair, "y", r->model->encoder.input[best.input[1]].name);
    put_places(r, pair, "x_at", best.input[0], &best.g[0]);
    put_places(r, pair, "y_at", best.input[1], &best.g[1]);
    thi_put_numbers(r, pair, "mean", best.g[0].count * best.g[1].count, best.mean);
    thi_put_number(r, pair, "strength", best.strength);
    thi_put_count(r, pair, "rows", rows);
out:
    thi_free(value);
    return status;
}

thiele_status thi_section_effects(thi_report *r, json_t *section)
{
    int shown[THI_REPORT_INPUTS], count = thi_report_inputs(r, shown);
    effect effects[THI_REPORT_INPUTS];
    thiele_status status;
    for (int k = 0; k < count; k++) {
        effects[k] = (effect){.input = shown[k]};
    }
    THI_TRY(permutation(r, section, count, effects));
    THI_TRY(dependence(r, section, count, effects));
    THI_TRY(strongest_pair(r, section, count, effects));
out:
    return status;
}
