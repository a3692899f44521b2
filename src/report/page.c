/*
 * The frame of the page: style, verdict, lamps, and its parts in order. One file without scripts or links to others;
 * colours for light and dark screens, light on paper, told apart without seeing colours; contrasts of text are 4.5 to 1
 * at least. Its size is bounded because every list in the document is.
 */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "report/report.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1d2125;--soft:#545c64;--paper:#fff;--card:#f6f7f8;--line:#d5d9dd;"
    "--green:#00664b;--amber:#7d5200;--red:#b3261e;--none:#545c64;--bar:#0072b2}"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e8eaed;--soft:#a9b1b9;--paper:#15181b;--card:#1e2226;"
    "--line:#3a4046;--green:#5fd3ab;--amber:#f0c05a;--red:#ff9d94;--none:#a9b1b9;--bar:#56b4e9}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;padding:16px;max-width:1160px;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;overflow-wrap:anywhere}"
    "h1{font-size:1.6rem;line-height:1.25;margin:.4em 0 .2em}h2{font-size:1.2rem;margin:0 0 .3em}"
    "h3{font-size:1rem;margin:1.2em 0 .3em}p{margin:.3em 0 .8em;max-width:75ch}"
    ".soft{color:var(--soft)}"
    "section{border-top:1px solid var(--line);padding:1.2em 0 .6em}"
    ".verdict{font-size:1.25rem;font-weight:600;border-left:6px solid;padding:.1em 0 .1em .7em;margin:.8em 0}"
    ".green{color:var(--green)}.amber{color:var(--amber)}.red{color:var(--red)}.none{color:var(--none)}"
    ".lamps{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(330px,100%),1fr));gap:12px;padding:0;margin:"
    "1em 0;"
    "list-style:none}"
    ".lamps li{background:var(--card);border:1px solid var(--line);border-left:6px "
    "solid;border-radius:6px;padding:.7em .9em}"
    ".lamps p{color:var(--ink);margin:.2em 0}.lamps strong{display:block}"
    ".sign{display:inline-block;min-width:1.5em;font-weight:700}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(344px,100%),1fr));gap:20px 24px}"
    "figure{margin:0;break-inside:avoid}figcaption{font-weight:600;margin-bottom:.3em}"
    "svg{display:block;max-width:100%;height:auto}"
    ".wide{overflow-x:auto;max-width:100%}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.93rem}"
    "th,td{text-align:left;vertical-align:top;padding:.25em .9em .25em 0;border-bottom:1px solid var(--line);"
    "overflow-wrap:normal}"
    "td.free{overflow-wrap:anywhere}td.long{min-width:11em}"
    "th{font-weight:600}td.r,th.r{text-align:right}"
    ".word{font-weight:400}"
    ".bar{min-width:110px}.bar div{height:.8em;margin-top:.35em;background:var(--bar)}"
    "@media print{body{padding:0;max-width:none;font-size:11pt}section{break-inside:auto}h2,h3{break-after:avoid}"
    ".lamps li{break-inside:avoid}.bar div{print-color-adjust:exact;-webkit-print-color-adjust:exact}}";

void thi_page_text(thi_page *page, const char *text)
{
    draw_put(page->stream, text, (int)strlen(text));
}

void thi_page_say(thi_page *page, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    thi_page_text(page, text);
}

void thi_page_put(thi_page *page, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(page->stream, format, arguments);
    va_end(arguments);
}

char *thi_page_number(double value, char buffer[THI_PAGE_NUMBER])
{
    if (isnan(value)) {
        strcpy(buffer, "-");
    } else if (value == 0.0 || fabs(value) < 1e-300) {
        strcpy(buffer, "0");
    } else if (fabs(value) >= 1e4 && fabs(value) < 1e9) {
        snprintf(buffer, THI_PAGE_NUMBER, "%.0f", value);
    } else {
        snprintf(buffer, THI_PAGE_NUMBER, "%.4g", value);
    }
    return buffer;
}

void thi_page_row(thi_page *page, const char *name, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("<tr><th scope=\"row\">", page->stream);
    thi_page_text(page, name);
    fputs("</th><td class=\"free\">", page->stream);
    thi_page_text(page, text);
    fputs("</td></tr>\n", page->stream);
}

const char *thi_text_at(const json_t *json, const char *path)
{
    const char *text = json_string_value(thi_value_at(json, path));
    return text != NULL ? text : "";
}

int thi_numbers_at(const json_t *json, const char *path, int most, double *out)
{
    const json_t *list = thi_value_at(json, path);
    int count = 0;
    for (size_t i = 0; i < json_array_size(list) && count < most; i++) {
        const json_t *value = json_array_get(list, i);
        out[count++] = json_is_number(value) ? json_number_value(value) : NAN;
    }
    return count;
}

/* --- verdict and lamps ----------------------------------------------------------------------------------------------
 */

/* Signs and words, so that no colour has to be seen. */
static const char *sign_of(const char *state)
{
    return strcmp(state, "green") == 0   ? "\xe2\x9c\x93"
           : strcmp(state, "amber") == 0 ? "!"
           : strcmp(state, "red") == 0   ? "\xe2\x9c\x95"
                                         : "\xe2\x80\x93";
}

static const char *word_of(const char *state)
{
    return strcmp(state, "green") == 0   ? "good"
           : strcmp(state, "amber") == 0 ? "look here"
           : strcmp(state, "red") == 0   ? "wrong"
                                         : "not known, or not needed";
}

static void put_lamps(thi_page *page)
{
    const json_t *lamps = thi_value_at(page->report, "lamps");
    fputs("<ul class=\"lamps\">\n", page->stream);
    for (size_t k = 0; k < json_array_size(lamps); k++) {
        const json_t *lamp = json_array_get(lamps, k);
        const char *state = thi_text_at(lamp, "state");
        thi_page_put(page, "<li class=\"%s\"><strong><span class=\"sign\" aria-hidden=\"true\">%s</span>", state,
                     sign_of(state));
        thi_page_text(page, thi_text_at(lamp, "question"));
        thi_page_put(page, " <span class=\"word\">\xe2\x80\x93 %s</span></strong><p>", word_of(state));
        thi_page_text(page, thi_text_at(lamp, "says"));
        fputs("</p>", page->stream);
        if (*thi_text_at(lamp, "do") != '\0') {
            fputs("<p><em>", page->stream);
            thi_page_text(page, thi_text_at(lamp, "do"));
            fputs("</em></p>", page->stream);
        }
        fputs("</li>\n", page->stream);
    }
    fputs("</ul>\n", page->stream);
}

static void put_head(thi_page *page)
{
    const json_t *report = page->report;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Report on ",
          page->stream);
    thi_page_text(page, thi_text_at(report, "target"));
    fputs("</title>\n<style>", page->stream);
    fputs(style, page->stream);
    draw_style(page->stream);
    fputs("</style>\n</head>\n<body>\n<main>\n<h1>Can predictions of ", page->stream);
    thi_page_text(page, thi_text_at(report, "target"));
    fputs(" be trusted?</h1>\n", page->stream);
    thi_page_put(page, "<p class=\"verdict %s\">", thi_text_at(report, "state"));
    thi_page_text(page, thi_text_at(report, "verdict"));
    fputs("</p>\n<p class=\"soft\">", page->stream);
    thi_page_say(page, "A model by method %s of %.0f training rows", thi_text_at(report, "model.method"),
                 thi_number_at(report, "model.rows"));
    if (thi_value_at(report, "data") != NULL) {
        thi_page_say(page, ", on %.0f rows of %s", thi_number_at(report, "data.rows"),
                     *thi_text_at(report, "data.source") != '\0' ? thi_text_at(report, "data.source") : "a table");
    } else {
        thi_page_say(page, ", by itself: rows that it has not seen would say more");
    }
    fputs(".</p>\n", page->stream);
    put_lamps(page);
}

static void put_foot(thi_page *page)
{
    const json_t *report = page->report;
    fputs("</main>\n<footer><section>\n<p class=\"soft\">", page->stream);
    if (*thi_text_at(report, "command") != '\0') {
        fputs("Made by <code>", page->stream);
        thi_page_text(page, thi_text_at(report, "command"));
        fputs("</code>, ", page->stream);
    }
    thi_page_say(page, "Thiele %s, seed %.0f", thi_text_at(report, "version"), thi_number_at(report, "seed"));
    if (thi_value_at(report, "data.hash") != NULL) {
        thi_page_say(page, "; the rows that were read have the hash %s", thi_text_at(report, "data.hash"));
    }
    fputs(".</p>\n</section></footer>\n</body>\n</html>\n", page->stream);
}

void thi_report_page(const json_t *report, FILE *stream)
{
    static void (*const parts[])(thi_page *) = {thi_page_scores, thi_page_calibration, thi_page_classes,
                                                thi_page_counts, thi_page_errors,      thi_page_effects,
                                                thi_page_domain, thi_page_inference,   thi_page_card};
    thi_page page = {.stream = stream, .report = report};
    put_head(&page);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        parts[k](&page);
    }
    put_foot(&page);
}
