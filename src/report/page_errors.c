/* Where predictions are off, what matters to them, and where not to trust them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "report/report.h"

enum { DATA = 0, TRUTH = 5, BAND = 5, CELLS_MOST = 64 };

/* --- errors ---------------------------------------------------------------------------------------------------------
 */

static void draw_cloud(thi_page *page)
{
    enum { POINTS = 2000 };
    static const draw_entry entries[] = {{DRAW_POINT, DATA, "rows"}, {DRAW_LINE, TRUTH, "as predicted"}};
    const json_t *own = thi_value_at(page->report, "errors.predictions");
    double *y = calloc(2 * POINTS, sizeof *y), from, to;
    thi_chart chart;
    if (y == NULL) {
        return;
    }
    int n = thi_numbers_at(own, "predicted", POINTS, y), m = thi_numbers_at(own, "observed", POINTS, y + n);
    thi_chart_range(n + m, y, &from, &to);
    thi_chart_open(&chart, page, "Observed against predicted",
                   "A point for each row; on the line predictions were right.", THI_CHART_HIGH,
                   (draw_axis){.label = "predicted", .from = from, .to = to},
                   (draw_axis){.label = "observed", .from = from, .to = to}, 2, entries);
    draw_points(&chart.picture, &chart.panel, DATA, n, y, y + n);
    thi_chart_diagonal(&chart, TRUTH);
    thi_chart_close(&chart, page);
    free(y);
}

/* Cells of counts; more rows, on the scale of logarithms, are darker. */
static void draw_density(thi_page *page)
{
    static const draw_entry entries[] = {{DRAW_BAR, DATA, "more rows are darker"}, {DRAW_LINE, TRUTH, "as predicted"}};
    const json_t *own = thi_value_at(page->report, "errors.predictions");
    double most = 0.0, low = thi_number_at(own, "low"), high = thi_number_at(own, "high");
    int side = (int)thi_number_at(own, "cells"), count;
    double *all = calloc((size_t)CELLS_MOST * CELLS_MOST * 2, sizeof *all);
    thi_chart chart;
    if (all == NULL || side < 1 || side > CELLS_MOST) {
        free(all);
        return;
    }
    count = thi_numbers_at(own, "counts", side * side, all);
    double *share = all + CELLS_MOST * CELLS_MOST;
    for (int i = 0; i < count; i++) {
        most = fmax(most, log1p(all[i]));
    }
    for (int i = 0; i < count; i++) { /* observed is fastest in the document, predicted goes to the right here */
        share[(i / side) + side * (i % side)] = log1p(all[i]) / most;
    }
    thi_chart_open(&chart, page, "Observed against predicted",
                   "How many rows there are where; on the line predictions were right. Rows outside stand at the edge.",
                   THI_CHART_HIGH, (draw_axis){.label = "predicted", .from = low, .to = high},
                   (draw_axis){.label = "observed", .from = low, .to = high}, 2, entries);
    draw_cells(&chart.picture, &chart.panel, DATA, side, side, share);
    thi_chart_diagonal(&chart, TRUTH);
    thi_chart_close(&chart, page);
    free(all);
}

static void draw_residuals(thi_page *page, const json_t *own)
{
    enum { BINS = 64 };
    static const draw_entry entries[] = {{DRAW_WHISKER, BAND, "95% by chance"}, {DRAW_POINT, DATA, "mean of rows"}};
    const json_t *bins = json_object_get(own, "bins");
    double x[BINS], mean[BINS], low[BINS], high[BINS], all[3 * BINS], from, to, left, right;
    char title[120], text[240];
    int n = 0;
    thi_chart chart;
    const char *names[BINS];
    for (; n < BINS && n < (int)json_array_size(bins); n++) {
        const json_t *bin = json_array_get(bins, (size_t)n);
        names[n] = json_string_value(json_object_get(bin, "level"));
        x[n] = names[n] != NULL ? n : thi_number_at(bin, "x");
        mean[n] = thi_number_at(bin, "mean");
        high[n] = thi_number_at(bin, "band");
        low[n] = -high[n];
        all[3 * n] = mean[n];
        all[3 * n + 1] = low[n];
        all[3 * n + 2] = high[n];
    }
    thi_chart_range(3 * n, all, &from, &to);
    thi_chart_range(n, x, &left, &right);
    draw_axis over = {.label = thi_text_at(own, "input"), .from = left, .to = right};
    if (n > 0 && names[0] != NULL) {
        over = (draw_axis){.label = over.label, .from = -0.5, .to = n - 0.5, .names = names, .count = n};
    }
    snprintf(title, sizeof title, "Residuals over %.60s", thi_text_at(own, "input"));
    snprintf(text, sizeof text,
             "Mean residuals of rows in %d bins of %.60s, in standard deviations of their predictions, "
             "with how far chance takes them.",
             n, thi_text_at(own, "input"));
    thi_chart_open(&chart, page, title, text, THI_CHART_LOW, over,
                   (draw_axis){.label = "mean residual", .from = from, .to = to}, 2, entries);
    thi_chart_level(&chart, TRUTH, 0.0);
    draw_whiskers(&chart.picture, &chart.panel, BAND, true, n, x, low, high);
    draw_dots(&chart.picture, &chart.panel, DATA, n, x, mean);
    thi_chart_close(&chart, page);
}

static void put_worst(thi_page *page)
{
    const json_t *worst = thi_value_at(page->report, "errors.worst");
    bool labels = thi_value_at(page->report, "classes") != NULL;
    char a[THI_PAGE_NUMBER], b[THI_PAGE_NUMBER], c[THI_PAGE_NUMBER];
    thi_page_put(page,
                 "<h3>The rows that were least expected</h3>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\" "
                 "class=\"r\">Row</th><th scope=\"col\">Observed</th><th scope=\"col\">%s</th><th "
                 "scope=\"col\">What is unusual</th><th scope=\"col\">Furthest input</th></tr></thead><tbody>\n",
                 labels ? "Its probability" : "Predicted");
    for (size_t k = 0; k < json_array_size(worst); k++) {
        const json_t *own = json_array_get(worst, k);
        thi_page_put(page, "<tr><td class=\"r\">%.0f</td><td>", thi_number_at(own, "row"));
        if (labels) {
            thi_page_say(page, "%.60s", thi_text_at(own, "observed"));
            thi_page_put(page, "</td><td>%s", thi_page_number(thi_number_at(own, "probability"), a));
        } else {
            thi_page_put(page, "%s</td><td>%s \xc2\xb1 %s", thi_page_number(thi_number_at(own, "observed"), a),
                         thi_page_number(thi_number_at(own, "predicted"), b),
                         thi_page_number(thi_number_at(own, "sd"), c));
        }
        fputs("</td><td class=\"long\">", page->stream);
        thi_page_text(page, thi_text_at(own, "why"));
        fputs("</td><td class=\"long\">", page->stream);
        if (*thi_text_at(own, "input") != '\0') {
            thi_page_say(page, "%.60s = %s", thi_text_at(own, "input"),
                         thi_page_number(thi_number_at(own, "value"), a));
            if (!isnan(thi_number_at(own, "sds"))) {
                thi_page_say(page, " (%.1f sd from the mean)", fabs(thi_number_at(own, "sds")));
            }
        }
        fputs("</td></tr>\n", page->stream);
    }
    fputs("</tbody></table></div>\n", page->stream);
}

void thi_page_errors(thi_page *page)
{
    const json_t *residuals = thi_value_at(page->report, "errors.residuals");
    if (thi_value_at(page->report, "errors") == NULL) {
        return;
    }
    fputs("<section>\n<h2>Where are they off?</h2>\n<div class=\"figures\">\n", page->stream);
    if (thi_value_at(page->report, "errors.predictions.cells") != NULL) {
        draw_density(page);
    } else if (thi_value_at(page->report, "errors.predictions") != NULL) {
        draw_cloud(page);
    }
    for (size_t k = 0; k < json_array_size(residuals); k++) {
        const json_t *own = json_array_get(residuals, k);
        size_t bins = json_array_size(json_object_get(own, "bins"));
        if (bins > 1 && bins <= 64) {
            draw_residuals(page, own);
        }
    }
    fputs("</div>\n", page->stream);
    put_worst(page);
    fputs("</section>\n", page->stream);
}

/* --- what matters ---------------------------------------------------------------------------------------------------
 */

static void put_permutation(thi_page *page)
{
    const json_t *list = thi_value_at(page->report, "effects.permutation");
    const json_t *relevance = thi_value_at(page->report, "model.relevance.inputs");
    double most = 1e-12;
    for (size_t k = 0; k < json_array_size(list); k++) {
        most = fmax(most, thi_number_at(json_array_get(list, k), "rise"));
    }
    thi_page_put(
        page,
        "<p class=\"soft\">By how much the loss rises, in nats per row, when an input takes the values of other "
        "rows (of %.0f rows), with its standard error; and the share of how far predictions move with it.</p>\n"
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Input</th><th scope=\"col\" colspan=\"2\">Rise"
        "</th><th scope=\"col\" class=\"r\">Moves predictions</th></tr></thead><tbody>\n",
        thi_number_at(page->report, "effects.permutation_rows"));
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *own = json_array_get(list, k);
        char a[THI_PAGE_NUMBER], b[THI_PAGE_NUMBER];
        double rise = thi_number_at(own, "rise"), share = NAN;
        for (size_t i = 0; i < json_array_size(relevance); i++) {
            if (strcmp(thi_text_at(json_array_get(relevance, i), "name"), thi_text_at(own, "input")) == 0) {
                share = thi_number_at(json_array_get(relevance, i), "share");
            }
        }
        fputs("<tr><th scope=\"row\">", page->stream);
        thi_page_say(page, "%.80s", thi_text_at(own, "input"));
        thi_page_put(page,
                     "</th><td class=\"r\">%s \xc2\xb1 %s</td><td class=\"bar\"><div "
                     "style=\"width:%.1f%%\"></div></td><td class=\"r\">",
                     thi_page_number(rise, a), thi_page_number(thi_number_at(own, "error"), b),
                     100.0 * fmax(rise, 0.0) / most);
        thi_page_put(page, isnan(share) ? "-" : "%.1f%%", 100.0 * share);
        fputs("</td></tr>\n", page->stream);
    }
    fputs("</tbody></table></div>\n", page->stream);
}

enum { PLACES = 32 };

/* The places of an axis; names where they are texts. Returns how many. */
static int places_of(const json_t *list, double *at, const char **names)
{
    int n = 0;
    for (; n < PLACES && n < (int)json_array_size(list); n++) {
        const json_t *one = json_array_get(list, (size_t)n);
        names[n] = json_string_value(one);
        at[n] = names[n] != NULL ? n : json_number_value(one);
    }
    return n;
}

static void draw_dependence(thi_page *page, const json_t *own)
{
    enum { CURVES = DRAW_COLOURS };
    const json_t *curves = json_object_get(own, "curves");
    double at[PLACES], mean[CURVES][PLACES], low[CURVES][PLACES], high[CURVES][PLACES], all[3 * CURVES * PLACES];
    double from, to, left, right;
    const char *names[PLACES];
    int n = places_of(json_object_get(own, "at"), at, names), count = (int)json_array_size(curves), numbers = 0;
    bool levels = n > 0 && names[0] != NULL, labels = thi_value_at(page->report, "classes") != NULL;
    draw_entry entries[CURVES];
    char title[120], text[300];
    thi_chart chart;
    count = count < CURVES ? count : CURVES;
    for (int c = 0; c < count; c++) {
        const json_t *curve = json_array_get(curves, (size_t)c);
        thi_numbers_at(curve, "mean", n, mean[c]);
        thi_numbers_at(curve, "low", n, low[c]);
        thi_numbers_at(curve, "high", n, high[c]);
        for (int k = 0; k < n; k++) {
            all[numbers++] = mean[c][k];
            all[numbers++] = low[c][k];
            all[numbers++] = high[c][k];
        }
        entries[c] = (draw_entry){levels ? DRAW_POINT : DRAW_LINE, c, thi_text_at(curve, "label")};
    }
    if (n < 2 || count == 0) {
        return;
    }
    thi_chart_range(numbers, all, &from, &to);
    thi_chart_range(n, at, &left, &right);
    snprintf(title, sizeof title, "%.60s", thi_text_at(own, "input"));
    snprintf(text, sizeof text,
             "As %.60s goes from left to right, the mean prediction goes from %.4g to %.4g; the band "
             "holds the middle 80%% of the rows.",
             title, mean[0][0], mean[0][n - 1]);
    draw_axis x = {.label = title, .from = left, .to = right};
    if (levels) {
        x = (draw_axis){.label = title, .from = -0.5, .to = n - 0.5, .names = names, .count = n};
    }
    thi_chart_open(
        &chart, page, title, text, THI_CHART_LOW + 30, x,
        (draw_axis){.label = labels ? "probability" : thi_text_at(page->report, "target"), .from = from, .to = to},
        labels ? count : 0, entries);
    for (int c = 0; c < count; c++) {
        if (levels) {
            for (int k = 0; k < n; k++) {
                at[k] = k + 0.5 * ((c + 0.5) / count - 0.5);
            }
            draw_whiskers(&chart.picture, &chart.panel, c, true, n, at, low[c], high[c]);
            draw_dots(&chart.picture, &chart.panel, c, n, at, mean[c]);
        } else {
            if (count == 1) {
                draw_band(&chart.picture, &chart.panel, c, n, at, low[c], high[c]);
            }
            draw_line(&chart.picture, &chart.panel, c, n, at, mean[c]);
        }
    }
    thi_chart_close(&chart, page);
}

static void draw_pair(thi_page *page)
{
    static const draw_entry entry = {DRAW_BAR, DATA, "larger predictions are darker"};
    const json_t *own = thi_value_at(page->report, "effects.pair");
    double x[PLACES], y[PLACES], mean[PLACES * PLACES], low = INFINITY, high = -INFINITY;
    const char *names[PLACES];
    int nx = places_of(json_object_get(own, "x_at"), x, names), ny = places_of(json_object_get(own, "y_at"), y, names);
    char title[200], text[300];
    thi_chart chart;
    if (nx < 2 || ny < 2) {
        return;
    }
    int n = thi_numbers_at(own, "mean", nx * ny, mean);
    for (int i = 0; i < n; i++) {
        low = fmin(low, mean[i]);
        high = fmax(high, mean[i]);
    }
    for (int i = 0; i < n; i++) {
        mean[i] = high > low ? 0.05 + 0.95 * (mean[i] - low) / (high - low) : 0.5;
    }
    double dx = 0.5 * (x[1] - x[0]), dy = 0.5 * (y[1] - y[0]);
    snprintf(title, sizeof title, "%.60s and %.60s together", thi_text_at(own, "x"), thi_text_at(own, "y"));
    snprintf(text, sizeof text,
             "Mean predictions from %.4g (light) to %.4g (dark). Of how they vary, %.2g%% is no sum of "
             "what each input does alone.",
             low, high, 100.0 * pow(thi_number_at(own, "strength"), 2.0));
    thi_chart_open(&chart, page, title, text, THI_CHART_HIGH,
                   (draw_axis){.label = thi_text_at(own, "x"), .from = x[0] - dx, .to = x[nx - 1] + dx},
                   (draw_axis){.label = thi_text_at(own, "y"), .from = y[0] - dy, .to = y[ny - 1] + dy}, 1, &entry);
    draw_cells(&chart.picture, &chart.panel, DATA, nx, ny, mean);
    thi_chart_close(&chart, page);
    fputs("<p class=\"soft\">", page->stream);
    thi_page_text(page, text);
    fputs("</p>\n", page->stream);
}

void thi_page_effects(thi_page *page)
{
    const json_t *list = thi_value_at(page->report, "effects.dependence");
    if (thi_value_at(page->report, "effects") == NULL) {
        return;
    }
    fputs("<section>\n<h2>What matters?</h2>\n", page->stream);
    put_permutation(page);
    fputs("<h3>How predictions go with inputs</h3>\n<p class=\"soft\">", page->stream);
    thi_page_say(page,
                 "The mean prediction of %.0f rows as one input moves; the band holds the middle 80%% of the rows' "
                 "own curves.",
                 thi_number_at(page->report, "effects.dependence_rows"));
    fputs("</p>\n<div class=\"figures\">\n", page->stream);
    for (size_t k = 0; k < json_array_size(list); k++) {
        draw_dependence(page, json_array_get(list, k));
    }
    fputs("</div>\n", page->stream);
    if (thi_value_at(page->report, "effects.pair") != NULL) {
        fputs("<h3>The inputs that matter most together</h3>\n<div class=\"figures\"><div>\n", page->stream);
        draw_pair(page);
        fputs("</div></div>\n", page->stream);
    }
    fputs("</section>\n", page->stream);
}

/* --- where not to trust it ------------------------------------------------------------------------------------------
 */

void thi_page_domain(thi_page *page)
{
    const json_t *columns = thi_value_at(page->report, "domain.columns");
    char a[THI_PAGE_NUMBER];
    if (thi_value_at(page->report, "domain") == NULL) {
        return;
    }
    fputs("<section>\n<h2>Where should it not be trusted?</h2>\n<p>", page->stream);
    thi_page_say(page,
                 "Of %.3g%% of the rows the training rows tell nothing: predictions there are those of the prior.",
                 100.0 * thi_number_at(page->report, "domain.alone"));
    if (thi_value_at(page->report, "domain.seen") != NULL) {
        thi_page_say(page, " %.3g%% have the very inputs of a training row.",
                     100.0 * thi_number_at(page->report, "domain.seen"));
    }
    fputs("</p>\n<p class=\"soft\">Columns against those of the training rows: the share of rows that lie elsewhere at "
          "least, how probable as much is by chance, and the shift of the mean in training standard deviations.</p>\n"
          "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Column</th><th scope=\"col\" "
          "class=\"r\">Elsewhere</th>"
          "<th scope=\"col\" class=\"r\">By chance</th><th scope=\"col\" class=\"r\">Shift</th></tr></thead><tbody>\n",
          page->stream);
    for (size_t k = 0; k < json_array_size(columns); k++) {
        const json_t *own = json_array_get(columns, k);
        double distance = thi_number_at(own, "distance"), p = thi_number_at(own, "p"),
               shift = thi_number_at(own, "shift");
        fputs("<tr><th scope=\"row\">", page->stream);
        thi_page_say(page, "%.80s", thi_text_at(own, "input"));
        fputs("</th><td class=\"r\">", page->stream);
        thi_page_put(page, isnan(distance) ? "-" : "%.1f%%", 100.0 * distance);
        thi_page_put(page, "</td><td class=\"r\">%s</td><td class=\"r\">",
                     p < 1e-4 ? "&lt; 0.0001" : thi_page_number(round(1e4 * p) / 1e4, a));
        thi_page_put(page, isnan(shift) ? "-" : "%+.2f", shift);
        fputs("</td></tr>\n", page->stream);
    }
    fputs("</tbody></table></div>\n</section>\n", page->stream);
}
