/* Scores beside simple models, and whether probabilities can be believed: numbers, labels, counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "report/report.h"

enum { DATA = 0, TRUTH = 5, BAND = 5 };

/* --- scores ---------------------------------------------------------------------------------------------------------
 */

static void put_score(thi_page *page, const char *name, const char *words)
{
    static const char *const others[] = {"mean", "linear"};
    const json_t *scores = thi_value_at(page->report, "scores");
    const json_t *own = json_object_get(scores, name);
    char a[THI_PAGE_NUMBER], b[THI_PAGE_NUMBER], c[THI_PAGE_NUMBER];
    if (own == NULL) {
        return;
    }
    fputs("<tr><th scope=\"row\">", page->stream);
    thi_page_text(page, words);
    thi_page_put(page, "</th><td class=\"r\">%s</td><td>%s to %s</td>", thi_page_number(thi_number_at(own, "value"), a),
                 thi_page_number(thi_number_at(own, "low"), b), thi_page_number(thi_number_at(own, "high"), c));
    for (int k = 0; k < 2; k++) {
        thi_page_put(page, "<td class=\"r\">%s</td>",
                     thi_page_number(thi_number_at(json_object_get(scores, others[k]), name), a));
    }
    fputs("</tr>\n", page->stream);
}

void thi_page_scores(thi_page *page)
{
    static const char *const words[][2] = {{"rmse", "RMSE"},
                                           {"mae", "Mean absolute error"},
                                           {"nlpd", "NLPD, nats per row"},
                                           {"error_rate", "Error rate"},
                                           {"nlp", "-log p(label), nats per row"},
                                           {"brier", "Brier score"}};
    const json_t *scores = thi_value_at(page->report, "scores");
    bool labels = thi_value_at(page->report, "classes") != NULL;
    if (scores == NULL) {
        return;
    }
    fputs("<section>\n<h2>How good are the predictions?</h2>\n<p class=\"soft\">", page->stream);
    thi_page_text(page, labels ? "Lower is better. Beside the model what the shares of the labels in these rows give "
                                 "without any input, and a linear model that learned from four fifths of these rows."
                               : "Lower is better. Beside the model the mean of the training rows, and a linear model "
                                 "that learned from four fifths of these rows.");
    thi_page_put(page,
                 "</p>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">Score</th><th scope=\"col\" "
                 "class=\"r\">Model</th><th scope=\"col\">95%% interval</th><th scope=\"col\" class=\"r\">%s</th><th "
                 "scope=\"col\" class=\"r\">Linear</th></tr></thead><tbody>\n",
                 labels ? "Shares" : "Mean");
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        put_score(page, words[k][0], words[k][1]);
    }
    fputs("</tbody></table></div>\n</section>\n", page->stream);
}

/* --- calibration of numbers -----------------------------------------------------------------------------------------
 */

static void draw_pit(thi_page *page)
{
    enum { BINS = 64 };
    static const draw_entry entries[] = {{DRAW_BAND, BAND, "95% by chance"}, {DRAW_BAR, DATA, "rows"}};
    const json_t *own = thi_value_at(page->report, "calibration.pit");
    double count[BINS], edge[BINS + 1], most = thi_number_at(own, "high");
    int bins = thi_numbers_at(own, "counts", BINS, count);
    char text[256];
    thi_chart chart;
    for (int b = 0; b <= bins; b++) {
        edge[b] = (double)b / bins;
        most = b < bins ? fmax(most, count[b]) : most;
    }
    const double ends[] = {0.0, 1.0}, low[] = {thi_number_at(own, "low"), thi_number_at(own, "low")},
                 high[] = {thi_number_at(own, "high"), thi_number_at(own, "high")};
    snprintf(
        text, sizeof text,
        "Histogram of the places of %.0f rows in their predicted laws: between %.0f and %.0f rows in each of %d bars "
        "would be chance. A hill in the middle means intervals that are too wide, a valley too narrow ones.",
        thi_number_at(own, "rows"), low[0], high[0], bins);
    thi_chart_open(&chart, page, "Where rows fall in their predictions", text, THI_CHART_HIGH,
                   (draw_axis){.label = "P(Y \xe2\x89\xa4 y)", .from = 0.0, .to = 1.0},
                   (draw_axis){.label = "rows", .from = 0.0, .to = 1.08 * most, .whole = true}, 2, entries);
    draw_bars(&chart.picture, &chart.panel, DATA, bins, edge, count);
    draw_band(&chart.picture, &chart.panel, BAND, 2, ends, low, high);
    thi_chart_level(&chart, TRUTH, thi_number_at(own, "rows") / bins);
    thi_chart_close(&chart, page);
}

static void draw_coverage(thi_page *page)
{
    enum { LEVELS = 64 };
    static const draw_entry entries[] = {{DRAW_BAND, BAND, "95% by chance"}, {DRAW_LINE, DATA, "rows"}};
    const json_t *own = thi_value_at(page->report, "calibration.coverage");
    double level[LEVELS], inside[LEVELS], low[LEVELS], high[LEVELS], band = thi_number_at(own, "band");
    int n = thi_numbers_at(own, "level", LEVELS, level);
    char text[256];
    thi_chart chart;
    thi_numbers_at(own, "inside", LEVELS, inside);
    for (int l = 0; l < n; l++) {
        low[l] = fmax(level[l] - band, 0.0);
        high[l] = fmin(level[l] + band, 1.0);
    }
    snprintf(text, sizeof text,
             "Share of rows inside central intervals against their level: %.1f%% in those of 50%%, "
             "%.1f%% in those of 90%%, %.1f%% in those of 95%%.",
             100.0 * thi_number_at(page->report, "calibration.coverage50"),
             100.0 * thi_number_at(page->report, "calibration.coverage90"),
             100.0 * thi_number_at(page->report, "calibration.coverage95"));
    thi_chart_open(&chart, page, "How many rows intervals hold", text, THI_CHART_HIGH,
                   (draw_axis){.label = "level of the interval", .from = 0.0, .to = 1.0},
                   (draw_axis){.label = "share of rows inside", .from = 0.0, .to = 1.0}, 2, entries);
    draw_band(&chart.picture, &chart.panel, BAND, n, level, low, high);
    draw_line(&chart.picture, &chart.panel, DATA, n, level, inside);
    thi_chart_close(&chart, page);
}

static void draw_width(thi_page *page)
{
    enum { GROUPS = 32 };
    static const draw_entry entries[] = {{DRAW_POINT, DATA, "tenths of the rows"}, {DRAW_LINE, TRUTH, "as predicted"}};
    const json_t *own = thi_value_at(page->report, "calibration.width");
    double predicted[GROUPS], error[GROUPS], both[2 * GROUPS], from, to;
    int n = thi_numbers_at(own, "predicted", GROUPS, predicted);
    thi_chart chart;
    if (n == 0) {
        return;
    }
    thi_numbers_at(own, "rmse", GROUPS, error);
    memcpy(both, predicted, (size_t)n * sizeof *both);
    memcpy(both + n, error, (size_t)n * sizeof *both);
    thi_chart_range(2 * n, both, &from, &to);
    thi_chart_open(
        &chart, page, "Are uncertain rows those with errors?",
        "Root mean squared error of tenths of the rows against the standard deviation that was predicted for "
        "them; the line is where both are equal.",
        THI_CHART_HIGH, (draw_axis){.label = "predicted standard deviation", .from = from, .to = to},
        (draw_axis){.label = "RMSE", .from = from, .to = to}, 2, entries);
    thi_chart_diagonal(&chart, TRUTH);
    draw_dots(&chart.picture, &chart.panel, DATA, n, predicted, error);
    thi_chart_close(&chart, page);
}

void thi_page_calibration(thi_page *page)
{
    if (thi_value_at(page->report, "calibration.pit") == NULL) {
        return;
    }
    char a[THI_PAGE_NUMBER], b[THI_PAGE_NUMBER];
    fputs("<section>\n<h2>Are the uncertainties right?</h2>\n<p class=\"soft\">", page->stream);
    thi_page_say(page,
                 "If they are, curves stay within the grey bands. %s rows lie beyond three standard deviations, where "
                 "%s are expected.",
                 thi_page_number(thi_number_at(page->report, "calibration.tails.beyond"), a),
                 thi_page_number(round(10.0 * thi_number_at(page->report, "calibration.tails.expected")) / 10.0, b));
    fputs("</p>\n<div class=\"figures\">\n", page->stream);
    draw_pit(page);
    draw_coverage(page);
    draw_width(page);
    fputs("</div>\n</section>\n", page->stream);
}

/* --- labels ---------------------------------------------------------------------------------------------------------
 */

static void draw_reliability(thi_page *page)
{
    enum { BINS = 32 };
    static const draw_entry entries[] = {{DRAW_WHISKER, BAND, "95% by chance"}, {DRAW_POINT, DATA, "rows"}};
    const json_t *bins = thi_value_at(page->report, "classes.reliability.bins");
    double x[BINS], y[BINS], low[BINS], high[BINS];
    bool two = json_array_size(thi_value_at(page->report, "classes.labels")) == 2;
    int n = 0;
    char label[200];
    thi_chart chart;
    for (; n < BINS && n < (int)json_array_size(bins); n++) {
        const json_t *own = json_array_get(bins, (size_t)n);
        x[n] = thi_number_at(own, "predicted");
        y[n] = thi_number_at(own, "observed");
        low[n] = thi_number_at(own, "low");
        high[n] = thi_number_at(own, "high");
    }
    snprintf(label, sizeof label, "probability of %.40s",
             two ? thi_text_at(json_array_get(thi_value_at(page->report, "classes.labels"), 1), "label")
                 : "the most probable label");
    thi_chart_open(&chart, page, "Does a probability of 0.7 mean 70%?",
                   "Share of rows that have the label against the probability that was predicted, in bins; the line is "
                   "where both are equal.",
                   THI_CHART_HIGH, (draw_axis){.label = label, .from = 0.0, .to = 1.0},
                   (draw_axis){.label = "share of rows", .from = 0.0, .to = 1.0}, 2, entries);
    thi_chart_diagonal(&chart, TRUTH);
    draw_whiskers(&chart.picture, &chart.panel, BAND, true, n, x, low, high);
    draw_dots(&chart.picture, &chart.panel, DATA, n, x, y);
    thi_chart_close(&chart, page);
}

static void draw_roc(thi_page *page)
{
    enum { CURVES = 6, POINTS = 128 };
    const json_t *labels = thi_value_at(page->report, "classes.labels");
    size_t count = json_array_size(labels), first = count == 2;
    draw_entry entries[CURVES];
    char text[CURVES][96];
    int shown = 0;
    thi_chart chart;
    for (size_t c = first; c < count && shown < CURVES; c++) {
        const json_t *own = json_array_get(labels, c);
        if (json_object_get(own, "auc") != NULL) {
            snprintf(text[shown], sizeof text[shown], "%.24s, AUC %.3f", thi_text_at(own, "label"),
                     thi_number_at(own, "auc"));
            entries[shown] = (draw_entry){DRAW_LINE, shown, text[shown]};
            shown++;
        }
    }
    if (shown == 0) {
        return;
    }
    thi_chart_open(&chart, page, "How well are labels told apart?",
                   "ROC curves: share of rows with a label that are found, against the share of others that are taken "
                   "for it. The diagonal is chance.",
                   THI_CHART_HIGH, (draw_axis){.label = "others taken for it", .from = 0.0, .to = 1.0},
                   (draw_axis){.label = "found", .from = 0.0, .to = 1.0}, shown, entries);
    for (size_t c = first, k = 0; c < count && (int)k < shown; c++) {
        const json_t *own = json_array_get(labels, c);
        double x[POINTS], y[POINTS];
        int n = thi_numbers_at(own, "false_positive", POINTS, x);
        thi_numbers_at(own, "true_positive", POINTS, y);
        if (json_object_get(own, "auc") != NULL) {
            draw_line(&chart.picture, &chart.panel, (int)k++, n, x, y);
        }
    }
    thi_chart_close(&chart, page);
}

static void put_confusion(thi_page *page, size_t most)
{
    const json_t *labels = thi_value_at(page->report, "classes.labels");
    const json_t *counts = thi_value_at(page->report, "classes.confusion");
    size_t n = json_array_size(labels), shown = n < most ? n : most;
    fputs(
        "<h3>Which labels are taken for which</h3>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">rows with "
        "label</th>",
        page->stream);
    for (size_t c = 0; c < shown; c++) {
        fputs("<th scope=\"col\" class=\"r\">", page->stream);
        thi_page_say(page, "as %.24s", thi_text_at(json_array_get(labels, c), "label"));
        fputs("</th>", page->stream);
    }
    fputs("</tr></thead><tbody>\n", page->stream);
    for (size_t l = 0; l < shown; l++) {
        fputs("<tr><th scope=\"row\">", page->stream);
        thi_page_say(page, "%.40s", thi_text_at(json_array_get(labels, l), "label"));
        fputs("</th>", page->stream);
        for (size_t g = 0; g < shown; g++) {
            thi_page_put(page, "<td class=\"r\">%lld</td>",
                         (long long)json_integer_value(json_array_get(counts, l + n * g)));
        }
        fputs("</tr>\n", page->stream);
    }
    fputs("</tbody></table></div>\n", page->stream);
    if (shown < n) {
        thi_page_put(page, "<p class=\"soft\">The first %zu of %zu labels.</p>\n", shown, n);
    }
}

static void put_shares(thi_page *page, size_t most)
{
    const json_t *labels = thi_value_at(page->report, "classes.labels");
    fputs(
        "<h3>How many there are, and should be</h3>\n<div class=\"wide\"><table><thead><tr><th scope=\"col\">Label</th>"
        "<th scope=\"col\" class=\"r\">Rows</th><th scope=\"col\" class=\"r\">Predicted</th></tr></thead><tbody>\n",
        page->stream);
    for (size_t c = 0; c < json_array_size(labels) && c < most; c++) {
        const json_t *own = json_array_get(labels, c);
        fputs("<tr><th scope=\"row\">", page->stream);
        thi_page_say(page, "%.40s", thi_text_at(own, "label"));
        thi_page_put(page, "</th><td class=\"r\">%.1f%%</td><td class=\"r\">%.1f%%</td></tr>\n",
                     100.0 * thi_number_at(own, "observed"), 100.0 * thi_number_at(own, "predicted"));
    }
    fputs("</tbody></table></div>\n", page->stream);
}

void thi_page_classes(thi_page *page)
{
    enum { LABELS = 12 };
    if (thi_value_at(page->report, "classes") == NULL) {
        return;
    }
    fputs("<section>\n<h2>Are the probabilities right?</h2>\n<div class=\"figures\">\n", page->stream);
    draw_reliability(page);
    draw_roc(page);
    fputs("</div>\n", page->stream);
    put_confusion(page, LABELS);
    put_shares(page, 2 * LABELS);
    fputs("</section>\n", page->stream);
}

/* --- counts ---------------------------------------------------------------------------------------------------------
 */

void thi_page_counts(thi_page *page)
{
    enum { MOST = 64 };
    static const draw_entry entries[] = {{DRAW_BAR, DATA, "rows"}, {DRAW_POINT, 1, "predicted"}};
    double observed[MOST], expected[MOST], edge[MOST + 1], at[MOST], most = 1.0;
    int n = thi_numbers_at(page->report, "counts.observed", MOST, observed);
    char text[160], label[80];
    thi_chart chart;
    if (n == 0) {
        return;
    }
    thi_numbers_at(page->report, "counts.expected", MOST, expected);
    for (int k = 0; k <= n; k++) {
        edge[k] = k - 0.5;
    }
    for (int k = 0; k < n; k++) {
        at[k] = k;
        observed[k] = sqrt(observed[k]);
        expected[k] = sqrt(expected[k]);
        most = fmax(most, fmax(observed[k], expected[k]));
    }
    snprintf(text, sizeof text,
             "Square roots of how many of %.0f rows have each count, and of how many are predicted to.",
             thi_number_at(page->report, "counts.rows"));
    snprintf(label, sizeof label, "count (the last: %d and more)", n - 1);
    fputs("<section>\n<h2>Are counts spread as predicted?</h2>\n<p class=\"soft\">On the scale of square roots chance "
          "has "
          "the same size everywhere, about a half.</p>\n<div class=\"figures\">\n",
          page->stream);
    thi_chart_open(&chart, page, "Rootogram", text, THI_CHART_HIGH,
                   (draw_axis){.label = label, .from = -0.5, .to = n - 0.5, .whole = true},
                   (draw_axis){.label = "square root of rows", .from = 0.0, .to = 1.08 * most}, 2, entries);
    draw_bars(&chart.picture, &chart.panel, DATA, n, edge, observed);
    draw_dots(&chart.picture, &chart.panel, 1, n, at, expected);
    thi_chart_close(&chart, page);
    fputs("</div>\n</section>\n", page->stream);
}
