/* A figure of the page: as wide as a telephone, so that nothing shrinks there, with one panel. */
#include <math.h>
#include <string.h>

#include "report/page.h"

enum { WIDTH = 344, TOP = 26, BOTTOM = 46, RIGHT = 16, LEGEND_GAP = 8 };

void thi_chart_open(thi_chart *c, thi_page *page, const char *title, const char *description, double height,
                    draw_axis x, draw_axis y, int entries, const draw_entry *entry)
{
    int lines = draw_legend_lines(WIDTH, entry, entries);
    double legend = lines > 0 ? lines * DRAW_LINE_HEIGHT + LEGEND_GAP : 0.0, margin = draw_margin(&y, height);
    c->panel = (draw_panel){margin, legend + TOP, WIDTH - margin - RIGHT, height, x, y};
    fputs("<figure><figcaption>", page->stream);
    thi_page_text(page, title);
    fputs("</figcaption>\n", page->stream);
    draw_begin_part(&c->picture, page->stream, ++page->pictures, WIDTH, legend + TOP + height + BOTTOM, title,
                    description);
    draw_legend(&c->picture, 0.0, 0.0, WIDTH, entry, entries);
    draw_open(&c->picture, &c->panel);
}

void thi_chart_close(thi_chart *c, thi_page *page)
{
    draw_close(&c->picture);
    draw_end(&c->picture);
    fputs("</figure>\n", page->stream);
}

void thi_chart_diagonal(thi_chart *c, int colour)
{
    double low = fmax(c->panel.x.from, c->panel.y.from), high = fmin(c->panel.x.to, c->panel.y.to);
    const double ends[] = {low, high};
    draw_line(&c->picture, &c->panel, colour, 2, ends, ends);
}

void thi_chart_level(thi_chart *c, int colour, double y)
{
    const double x[] = {c->panel.x.from, c->panel.x.to}, level[] = {y, y};
    draw_line(&c->picture, &c->panel, colour, 2, x, level);
}

void thi_chart_range(int n, const double *value, double *from, double *to)
{
    *from = INFINITY;
    *to = -INFINITY;
    for (int i = 0; i < n; i++) {
        if (isfinite(value[i])) {
            *from = fmin(*from, value[i]);
            *to = fmax(*to, value[i]);
        }
    }
    if (!(*from <= *to)) {
        *from = *to = 0.0;
    }
    draw_widen(from, to, 0.04);
}
