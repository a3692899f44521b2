/* The page of a report: HTML that is drawn from the document alone. */
#ifndef THI_PAGE_H
#define THI_PAGE_H

#include <jansson.h>

#include "base/base.h"
#include "draw/draw.h"

typedef struct thi_page {
    FILE *stream;
    const json_t *report;
    int pictures; /* so far */
} thi_page;

/* --- page.c --- */
void thi_page_text(thi_page *page, const char *text);
/* Text with markup escaped. */
void thi_page_say(thi_page *page, const char *format, ...) THI_PRINTF(2, 3);
/* Markup as it is: no text of the document. */
void thi_page_put(thi_page *page, const char *format, ...) THI_PRINTF(2, 3);
enum { THI_PAGE_NUMBER = 32 };
/* Four digits; "-" for null. */
char *thi_page_number(double value, char buffer[THI_PAGE_NUMBER]);
/* A row of a table of two columns: a name, and a text. */
void thi_page_row(thi_page *page, const char *name, const char *format, ...) THI_PRINTF(3, 4);
const char *thi_text_at(const json_t *json, const char *path);
/* The numbers of a list, at most `most`; null is NaN. Returns how many. */
int thi_numbers_at(const json_t *json, const char *path, int most, double *out);

/* --- page_chart.c --- */
typedef struct thi_chart {
    draw_picture picture;
    draw_panel panel;
} thi_chart;
enum { THI_CHART_HIGH = 190, THI_CHART_LOW = 130 };
/* A figure with axes, in which is drawn until it is closed. description: read aloud in place of it. */
void thi_chart_open(thi_chart *chart, thi_page *page, const char *title, const char *description, double height,
                    draw_axis x, draw_axis y, int entries, const draw_entry *entry);
void thi_chart_close(thi_chart *chart, thi_page *page);
/* y = x over the panel, and a level line. */
void thi_chart_diagonal(thi_chart *chart, int colour);
void thi_chart_level(thi_chart *chart, int colour, double y);
/* The range of some numbers, somewhat widened. */
void thi_chart_range(int n, const double *value, double *from, double *to);

/* --- page_*.c: the parts, each nothing where the document has nothing for it --- */
void thi_page_scores(thi_page *page);
void thi_page_calibration(thi_page *page);
void thi_page_classes(thi_page *page);
void thi_page_counts(thi_page *page);
void thi_page_errors(thi_page *page);
void thi_page_effects(thi_page *page);
void thi_page_domain(thi_page *page);
void thi_page_inference(thi_page *page);
void thi_page_card(thi_page *page);

#endif
