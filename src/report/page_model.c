/* Whether inference did its work, and the model card. */
#include <math.h>
#include <string.h>

#include "report/page.h"
#include "report/report.h"

static void begin_table(thi_page *page)
{
    fputs("<div class=\"wide\"><table><tbody>\n", page->stream);
}

static void end_table(thi_page *page)
{
    fputs("</tbody></table></div>\n", page->stream);
}

/* --- inference ------------------------------------------------------------------------------------------------------
 */

static const char *value_words(const char *name)
{
    return strcmp(name, "log_marginal_likelihood") == 0 ? "log marginal likelihood"
           : strcmp(name, "approximate_log_evidence") == 0
               ? "log marginal likelihood of the approximate model (no bound)"
               : "lower bound of the log marginal likelihood";
}

static void put_loo(thi_page *page)
{
    const json_t *own = thi_value_at(page->report, "inference.loo");
    const json_t *scores = json_object_get(own, "scores");
    char a[THI_PAGE_NUMBER], b[THI_PAGE_NUMBER];
    if (scores == NULL) {
        return;
    }
    bool labels = json_is_number(json_object_get(scores, "nlp"));
    thi_page_row(page, "leave-one-out", "%s %s, of %.0f training rows%s", labels ? "-log p(label)" : "NLPD",
                 thi_page_number(thi_number_at(scores, labels ? "nlp" : "nlpd"), a), thi_number_at(own, "rows"),
                 strcmp(thi_text_at(own, "by"), "exact") == 0 ? "" : " (each without its own site)");
    if (!labels) {
        thi_page_row(page, "", "90%% intervals hold %s%% of them",
                     thi_page_number(round(1e3 * thi_number_at(scores, "coverage90")) / 10.0, a));
    }
    if (!isnan(thi_number_at(own, "khat_largest"))) {
        thi_page_row(page, "weight of single rows",
                     "PSIS k is %s at most (below %.2f a row can be left out by weights); %.0f rows are above",
                     thi_page_number(thi_number_at(own, "khat_largest"), b), thi_number_at(own, "khat_threshold"),
                     thi_number_at(own, "khat_above"));
    }
}

static void put_chains(thi_page *page)
{
    const json_t *own = thi_value_at(page->report, "inference.chains");
    char a[THI_PAGE_NUMBER];
    if (own == NULL) {
        return;
    }
    thi_page_row(page, "chains", "%.0f by %s, %.0f draws each", thi_number_at(own, "chains"),
                 thi_text_at(own, "sampler"), thi_number_at(own, "draws"));
    thi_page_row(page, "R-hat", "%s at most; %.3g%% of the functions' values have not mixed",
                 thi_page_number(thi_number_at(own, "rhat"), a), 100.0 * thi_number_at(own, "not_mixed"));
    thi_page_row(page, "effective draws", "%.0f at least, %.0f in the middle", thi_number_at(own, "effective_least"),
                 thi_number_at(own, "effective_median"));
    thi_page_row(page, "divergences", "%.0f", thi_number_at(own, "divergences"));
}

static void put_blocks(thi_page *page)
{
    const json_t *own = thi_value_at(page->report, "inference.blocks");
    if (own == NULL) {
        return;
    }
    thi_page_row(page, "blocks", "%.0f, of %.0f rows at most", thi_number_at(own, "blocks"),
                 thi_number_at(own, "largest"));
    if (!isnan(thi_number_at(own, "jump_median"))) {
        thi_page_row(page, "", "where they meet predictions jump by %.2g standard deviations (median; at most %.2g)",
                     thi_number_at(own, "jump_median"), thi_number_at(own, "jump_largest"));
    }
}

static void draw_blocks(thi_page *page)
{
    enum { MOST = 200 };
    static const draw_entry entry = {DRAW_BAR, 0, "rows of a block"};
    double size[MOST], edge[MOST + 1], most = 1.0;
    int n = thi_numbers_at(page->report, "inference.blocks.sizes", MOST, size);
    thi_chart chart;
    if (n < 2) {
        return;
    }
    for (int k = 0; k <= n; k++) {
        edge[k] = k + 0.5;
        most = k < n ? fmax(most, size[k]) : most;
    }
    fputs("<div class=\"figures\">\n", page->stream);
    thi_chart_open(&chart, page, "Sizes of blocks", "Rows of each block.", THI_CHART_LOW,
                   (draw_axis){.label = "block", .from = 0.5, .to = n + 0.5, .whole = true},
                   (draw_axis){.label = "rows", .from = 0.0, .to = 1.08 * most, .whole = true}, 1, &entry);
    draw_bars(&chart.picture, &chart.panel, 0, n, edge, size);
    thi_chart_close(&chart, page);
    fputs("</div>\n", page->stream);
}

void thi_page_inference(thi_page *page)
{
    const json_t *own = thi_value_at(page->report, "inference");
    char a[THI_PAGE_NUMBER];
    fputs("<section>\n<h2>Did inference do its work?</h2>\n", page->stream);
    begin_table(page);
    thi_page_row(page, "search", "%s, after %.0f iterations or steps and %.0f evaluations", thi_text_at(own, "stop"),
                 thi_number_at(own, "iterations"), thi_number_at(own, "evaluations"));
    thi_page_row(page, "objective", "%s, %s", thi_page_number(thi_number_at(own, "value"), a),
                 value_words(thi_text_at(own, "value_is")));
    if (!isnan(thi_number_at(own, "inducing.inducing"))) {
        thi_page_row(page, "inducing inputs", "%.0f; of the function's variance they leave %.3g%% unexplained",
                     thi_number_at(own, "inducing.inducing"), 100.0 * thi_number_at(own, "inducing.unexplained"));
    }
    if (!isnan(thi_number_at(page->report, "errors.neighbours.correlation"))) {
        thi_page_row(page, "neighbours", "their residuals correlate by %.2g; the function's uncertainty explains %.2g",
                     thi_number_at(page->report, "errors.neighbours.correlation"),
                     thi_number_at(page->report, "errors.neighbours.expected"));
    }
    if (!isnan(thi_number_at(own, "condition.number"))) {
        thi_page_row(page, "condition", "%.1e at least; jitter %.1e", thi_number_at(own, "condition.number"),
                     thi_number_at(own, "condition.jitter"));
    }
    put_loo(page);
    put_chains(page);
    put_blocks(page);
    end_table(page);
    draw_blocks(page);
    fputs("</section>\n", page->stream);
}

/* --- the model card -------------------------------------------------------------------------------------------------
 */

/* What parts of a kernel mean. */
static void put_kernel_words(thi_page *page)
{
    static const struct {
        const char *name, *words;
    } kinds[] = {
        {"se", "very smooth"},
        {"matern12", "rough, as a random walk that returns"},
        {"matern32", "smooth once"},
        {"matern52", "smooth twice"},
        {"rq", "smooth at several scales"},
        {"periodic", "periodic"},
        {"cosine", "a wave"},
        {"linear", "linear"},
        {"polynomial", "polynomial"},
        {"constant", "a level"},
        {"white", "noise of its own for each row"},
    };
    const char *kernel = thi_text_at(page->report, "model.kernel");
    char text[400] = "";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *found = strstr(kernel, kinds[k].name);
        size_t length = strlen(kinds[k].name), used = strlen(text);
        bool whole = found != NULL && (found == kernel || strchr(" (*+;", found[-1]) != NULL) &&
                     strchr(" (*+;)", found[length]) != NULL;
        if (whole) {
            snprintf(text + used, sizeof text - used, "%s%s: %s", used > 0 ? "; " : "", kinds[k].name, kinds[k].words);
        }
    }
    if (*text != '\0') {
        thi_page_row(page, "", "%s", text);
    }
}

/* "a, b (3 levels), c"; cut where there are many. */
static void put_inputs(thi_page *page)
{
    enum { SHOWN = 20 };
    const json_t *inputs = thi_value_at(page->report, "model.columns.inputs");
    char text[1600] = "";
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *own = json_array_get(inputs, i);
        size_t used = strlen(text), levels = json_array_size(json_object_get(own, "levels"));
        if (i == SHOWN) {
            snprintf(text + used, sizeof text - used, ", ... (%zu in all)", json_array_size(inputs));
            break;
        }
        snprintf(text + used, sizeof text - used, "%s%.60s", used > 0 ? ", " : "", thi_text_at(own, "name"));
        used = strlen(text);
        if (levels > 0) {
            snprintf(text + used, sizeof text - used, " (%zu categories)", levels);
        }
        used = strlen(text);
        if (json_object_get(own, "fill") != NULL) {
            snprintf(text + used, sizeof text - used, " (missing values are filled in)");
        }
    }
    thi_page_row(page, "inputs", "%s", text);
}

static void put_dropped(thi_page *page)
{
    const json_t *dropped = thi_value_at(page->report, "model.columns.dropped");
    char text[800] = "";
    for (size_t i = 0; i < json_array_size(dropped) && i < 10; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.60s", used > 0 ? ", " : "",
                 json_string_value(json_array_get(dropped, i)));
    }
    thi_page_row(page, "left out", "%s", *text != '\0' ? text : "no column");
}

static void put_contents(thi_page *page)
{
    const json_t *rows = thi_value_at(page->report, "model.training_rows");
    if (rows == NULL) {
        thi_page_row(page, "contains", "no training rows");
    } else {
        thi_page_row(page, "contains", "%.0f training rows of %.0f inputs%s: hand it on as you would hand on these",
                     thi_number_at(rows, "rows"), thi_number_at(rows, "inputs"),
                     json_is_true(json_object_get(rows, "targets")) ? " with their targets" : "");
    }
}

static void put_parameters(thi_page *page)
{
    enum { SHOWN = 40 };
    const json_t *list = thi_value_at(page->report, "model.parameters");
    char a[THI_PAGE_NUMBER];
    for (size_t i = 0; i < json_array_size(list) && i < SHOWN; i++) {
        const json_t *own = json_array_get(list, i);
        char name[128];
        snprintf(name, sizeof name, "%.120s", thi_text_at(own, "name"));
        thi_page_row(page, name, "%s%s%s", thi_page_number(thi_number_at(own, "value"), a),
                     json_is_true(json_object_get(own, "fixed")) ? " (fixed)" : "",
                     json_is_true(json_object_get(own, "standardised")) ? " (in standard deviations)" : "");
    }
    if (json_array_size(list) > SHOWN) {
        thi_page_row(page, "", "... (%zu in all)", json_array_size(list));
    }
}

void thi_page_card(thi_page *page)
{
    const json_t *model = thi_value_at(page->report, "model");
    fputs("<section>\n<h2>The model</h2>\n", page->stream);
    begin_table(page);
    thi_page_row(page, "method", "%s%s%s", thi_text_at(model, "method"), *thi_text_at(model, "why") != '\0' ? ": " : "",
                 thi_text_at(model, "why"));
    thi_page_row(page, "likelihood", "%s", thi_text_at(model, "likelihood"));
    thi_page_row(page, "kernel", "%s", thi_text_at(model, "kernel"));
    put_kernel_words(page);
    thi_page_row(page, "mean", "%s", thi_text_at(model, "mean"));
    thi_page_row(page, "training rows", "%.0f", thi_number_at(model, "rows"));
    put_inputs(page);
    put_dropped(page);
    put_contents(page);
    thi_page_row(page, "calibrated", "%s",
                 json_object_get(model, "calibration") != NULL ? "yes, by rows that were held or left out" : "no");
    end_table(page);
    fputs("<h3>Learned values, in the units of the data</h3>\n", page->stream);
    begin_table(page);
    put_parameters(page);
    end_table(page);
    fputs("</section>\n", page->stream);
}
