/* Panels, marks and texts of a picture: draw.h says what each does. */
#include "draw/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * After Okabe and Ito's palette, darkened where it stands as a thin line on white and lightened on black. Whoever reads
 * the file without a style sheet for dark screens gets the light one.
 */
static const struct {
    const char *light, *dark, *dashes;
} colours[DRAW_COLOURS] = {
    {"#0072b2", "#56b4e9", "none"},     {"#d55e00", "#ff8f4d", "8 3"},         {"#00825f", "#3ccf9f", "2 3"},
    {"#b0478a", "#e59cc8", "10 3 2 3"}, {"#8a6500", "#e8c24a", "5 2 1 2 1 2"}, {"#56606b", "#b3bec9", "14 4"},
};

static const char style[] = "text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#2b2f33}"
                            ".t{font-size:16px;font-weight:600}"
                            ".n{fill:#5a626a}"
                            ".e{text-anchor:end}.m{text-anchor:middle}"
                            ".f{fill:#fff}"
                            ".a{fill:none;stroke:#8a9299}"
                            ".g{fill:none;stroke:#e8eaec}"
                            ".l{fill:none;stroke-width:2;stroke-linejoin:round}"
                            ".b{stroke:none;fill-opacity:.18}"
                            ".h{stroke:none;fill-opacity:.5}"
                            ".p{fill:none;stroke-width:5;stroke-linecap:round;stroke-opacity:.6}"
                            ".d{fill:none;stroke-width:9;stroke-linecap:round}"
                            ".k{fill:none;stroke-width:6;stroke-opacity:.45}"
                            ".w{fill:none;stroke-width:1.5}";
static const char dark_style[] =
    "text{fill:#e3e6e9}.n{fill:#a4acb4}.f{fill:#15181b}.a{stroke:#737b83}.g{stroke:#2a2f34}.b{fill-opacity:.28}";

/* A coordinate to a tenth of a pixel, without a decimal that says nothing. */
static void put_number(FILE *stream, double value)
{
    static const double FAR = 1e5; /* well outside any picture: what is clipped anyway needs no digits */
    value = fmax(-FAR, fmin(FAR, value));
    long tenths = lround(10.0 * value);
    if (tenths % 10 == 0) {
        fprintf(stream, "%ld", tenths / 10);
    } else {
        fprintf(stream, "%s%ld.%ld", tenths < 0 ? "-" : "", labs(tenths) / 10, labs(tenths) % 10);
    }
}

static void put_point(draw_picture *picture, char command, double x, double y)
{
    fputc(command, picture->stream);
    put_number(picture->stream, x);
    fputc(' ', picture->stream);
    put_number(picture->stream, y);
}

static double place_x(const draw_panel *panel, double x)
{
    return panel->left + panel->width * (x - panel->x.from) / (panel->x.to - panel->x.from);
}

static double place_y(const draw_panel *panel, double y)
{
    return panel->top + panel->height * (panel->y.to - y) / (panel->y.to - panel->y.from);
}

/* --- the picture ---------------------------------------------------------------------------------------------------
 */

void draw_style(FILE *stream)
{
    fputs(style, stream);
    for (int i = 0; i < DRAW_COLOURS; i++) {
        fprintf(stream, ".s%d{stroke:%s}.c%d{fill:%s}", i, colours[i].light, i, colours[i].light);
        if (strcmp(colours[i].dashes, "none") != 0) {
            fprintf(stream, ".l.s%d{stroke-dasharray:%s}", i, colours[i].dashes);
        }
    }
    fprintf(stream, "@media screen and (prefers-color-scheme:dark){%s", dark_style);
    for (int i = 0; i < DRAW_COLOURS; i++) {
        fprintf(stream, ".s%d{stroke:%s}.c%d{fill:%s}", i, colours[i].dark, i, colours[i].dark);
    }
    fputs("}", stream);
}

void draw_begin_part(draw_picture *picture, FILE *stream, int number, double width, double height, const char *title,
                     const char *description)
{
    enum { PANELS = 10 };
    *picture = (draw_picture){.stream = stream, .width = width, .height = height, .panels = PANELS * number};
    fprintf(stream,
            "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" "
            "aria-labelledby=\"title%d description%d\">\n<title id=\"title%d\">",
            width, height, width, height, number, number, number);
    draw_put(stream, title, (int)strlen(title));
    fprintf(stream, "</title>\n<desc id=\"description%d\">", number);
    draw_put(stream, description, (int)strlen(description));
    fputs("</desc>\n", stream);
}

void draw_begin(draw_picture *picture, FILE *stream, double width, double height, const char *title,
                const char *description)
{
    *picture = (draw_picture){.stream = stream, .width = width, .height = height};
    fprintf(stream,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
            "role=\"img\" aria-labelledby=\"title description\">\n<title id=\"title\">",
            width, height, width, height);
    draw_put(stream, title, (int)strlen(title));
    fputs("</title>\n<desc id=\"description\">", stream);
    draw_put(stream, description, (int)strlen(description));
    fputs("</desc>\n", stream);
    fputs("<style>", stream);
    draw_style(stream);
    fputs("</style>\n<path class=\"f\" d=\"M0 0", stream);
    fprintf(stream, "H%.0fV%.0fH0z\"/>\n", width, height);
}

void draw_end(draw_picture *picture)
{
    fputs("</svg>\n", picture->stream);
}

/* --- texts ---------------------------------------------------------------------------------------------------------
 */

static void put_text(draw_picture *picture, const char *class, double x, double y, const char *text, int bytes)
{
    FILE *stream = picture->stream;
    fputs("<text", stream);
    if (*class != '\0') {
        fprintf(stream, " class=\"%s\"", class);
    }
    fputs(" x=\"", stream);
    put_number(stream, x);
    fputs("\" y=\"", stream);
    put_number(stream, y);
    fputs("\">", stream);
    draw_put(stream, text, bytes);
    fputs("</text>\n", stream);
}

/* picture NULL: nothing is drawn. */
static int put_folded(draw_picture *picture, const char *class, double left, double top, double width, const char *text)
{
    enum { BASELINE = 13 };
    int lines = 0;
    while (*text != '\0') {
        int next = (int)strlen(text);
        int bytes = width > 0.0 ? draw_fit(text, width, &next) : next;
        if (picture != NULL) {
            put_text(picture, class, left, top + BASELINE + lines * DRAW_LINE_HEIGHT, text, bytes);
        }
        text += next;
        lines++;
    }
    return lines;
}

int draw_title(draw_picture *picture, double left, double top, double width, const char *text)
{
    static const double LARGER = 1.3; /* than labels, for which widths are known */
    return put_folded(picture, "t", left, top + 3.0, width / LARGER, text);
}

int draw_note(draw_picture *picture, double left, double top, double width, const char *text)
{
    return put_folded(picture, "n", left, top, width, text);
}

int draw_note_lines(double width, const char *text)
{
    return put_folded(NULL, "n", 0.0, 0.0, width, text);
}

/* The sign of an entry, SIGN pixels wide. */
enum { SIGN = 26, SIGN_GAP = 6, ENTRY_GAP = 18 };

static void put_sign(draw_picture *picture, const draw_entry *entry, double x, double y)
{
    static const char *const class[] = {"l s", "b c", "p s", "h c", "w s"};
    fprintf(picture->stream, "<path class=\"%s%d\" d=\"", class[entry->mark], entry -> colour % DRAW_COLOURS);
    double middle = x + SIGN / 2.0;
    switch (entry->mark) {
    case DRAW_LINE:
        put_point(picture, 'M', x, y);
        fprintf(picture->stream, "h%d", SIGN);
        break;
    case DRAW_POINT:
        put_point(picture, 'M', middle, y);
        fputs("h0", picture->stream);
        break;
    case DRAW_WHISKER:
        put_point(picture, 'M', middle, y - 7.0);
        fputs("v14", picture->stream);
        break;
    default:
        put_point(picture, 'M', x, y - 5.0);
        fprintf(picture->stream, "h%dv10h-%dz", SIGN, SIGN);
    }
    fputs("\"/>", picture->stream);
}

static int put_legend(draw_picture *picture, double left, double top, double width, const draw_entry *entries,
                      int count)
{
    double x = 0.0;
    int line = 0;
    for (int i = 0; i < count; i++) {
        int bytes = (int)strlen(entries[i].text);
        double needed = SIGN + SIGN_GAP + draw_text_width(entries[i].text, bytes);
        if (x > 0.0 && x + needed > width) {
            x = 0.0;
            line++;
        }
        if (picture != NULL) {
            double y = top + line * DRAW_LINE_HEIGHT;
            put_sign(picture, &entries[i], left + x, y + 8.5);
            put_text(picture, "", left + x + SIGN + SIGN_GAP, y + 13.0, entries[i].text, bytes);
        }
        x += needed + ENTRY_GAP;
    }
    return count > 0 ? line + 1 : 0;
}

int draw_legend(draw_picture *picture, double left, double top, double width, const draw_entry *entries, int count)
{
    return put_legend(picture, left, top, width, entries, count);
}

int draw_legend_lines(double width, const draw_entry *entries, int count)
{
    return put_legend(NULL, 0.0, 0.0, width, entries, count);
}

/* --- axes ----------------------------------------------------------------------------------------------------------
 */

enum { X_TICK_ROOM = 78, Y_TICK_ROOM = 38, LABEL_GAP = 8 };

static draw_ticks ticks_of(const draw_axis *axis, double length, int room)
{
    int most = (int)(length / room) + 1;
    double whole = floor(axis->to) - ceil(axis->from) + 1.0;
    if (axis->bare) {
        return (draw_ticks){axis->from, 1.0, 0};
    }
    return draw_choose_ticks(axis->from, axis->to, axis->whole && whole < most ? (int)whole : most);
}

double draw_margin(const draw_axis *y, double height)
{
    char buffer[DRAW_NUMBER_MAX];
    double widest = 0.0;
    draw_ticks ticks = ticks_of(y, height, Y_TICK_ROOM);
    for (int i = 0; i < ticks.count; i++) {
        draw_tick_text(&ticks, i, buffer);
        widest = fmax(widest, draw_text_width(buffer, (int)strlen(buffer)));
    }
    return widest + 2 * LABEL_GAP;
}

/* The label of a y axis stands above it and need not be read sideways. */
static void put_y_axis(draw_picture *picture, const draw_panel *panel)
{
    char text[DRAW_NUMBER_MAX];
    draw_ticks ticks = ticks_of(&panel->y, panel->height, Y_TICK_ROOM);
    fputs("<path class=\"g\" d=\"", picture->stream);
    for (int i = 0; i < ticks.count; i++) {
        put_point(picture, 'M', panel->left, place_y(panel, draw_tick(&ticks, i)));
        fputc('h', picture->stream);
        put_number(picture->stream, panel->width);
    }
    fputs("\"/>\n", picture->stream);
    for (int i = 0; i < ticks.count; i++) {
        draw_tick_text(&ticks, i, text);
        put_text(picture, "e", panel->left - LABEL_GAP, place_y(panel, draw_tick(&ticks, i)) + 4.5, text,
                 (int)strlen(text));
    }
    if (panel->y.label != NULL) {
        put_text(picture, "", panel->left, panel->top - LABEL_GAP, panel->y.label, (int)strlen(panel->y.label));
    }
}

static void put_x_label(draw_picture *picture, const draw_panel *panel, double y)
{
    if (panel->x.label != NULL) {
        put_text(picture, "m", panel->left + panel->width / 2.0, y, panel->x.label, (int)strlen(panel->x.label));
    }
}

/* Names as wide as their places, cut where they are longer. */
static void put_names(draw_picture *picture, const draw_panel *panel, double y)
{
    double room = panel->width / (panel->x.to - panel->x.from) - LABEL_GAP;
    for (int i = 0; i < panel->x.count; i++) {
        const char *name = panel->x.names[i];
        int next, bytes = (int)strlen(name);
        if (draw_text_width(name, bytes) > room) {
            bytes = draw_fit(name, room, &next);
        }
        put_text(picture, "m", place_x(panel, i), y, name, bytes);
    }
}

static void put_x_axis(draw_picture *picture, const draw_panel *panel)
{
    enum { TICK = 5, BELOW = 20 };
    char text[DRAW_NUMBER_MAX];
    double bottom = panel->top + panel->height;
    bool numbers = panel->x.names == NULL;
    draw_ticks ticks = ticks_of(&panel->x, panel->width, X_TICK_ROOM);
    fputs("<path class=\"a\" d=\"", picture->stream);
    put_point(picture, 'M', panel->left, bottom);
    fputc('h', picture->stream);
    put_number(picture->stream, panel->width);
    for (int i = 0; i < ticks.count && numbers; i++) {
        put_point(picture, 'M', place_x(panel, draw_tick(&ticks, i)), bottom);
        fprintf(picture->stream, "v%d", TICK);
    }
    fputs("\"/>\n", picture->stream);
    for (int i = 0; i < ticks.count && numbers; i++) {
        draw_tick_text(&ticks, i, text);
        put_text(picture, "m", place_x(panel, draw_tick(&ticks, i)), bottom + BELOW, text, (int)strlen(text));
    }
    if (panel->x.names != NULL) {
        put_names(picture, panel, bottom + BELOW);
    }
    put_x_label(picture, panel, bottom + (panel->x.bare ? BELOW : 2 * BELOW));
}

void draw_open(draw_picture *picture, const draw_panel *panel)
{
    int number = picture->panels++;
    put_y_axis(picture, panel);
    put_x_axis(picture, panel);
    fprintf(picture->stream, "<clipPath id=\"panel%d\"><path d=\"", number);
    put_point(picture, 'M', panel->left, panel->top);
    fputc('h', picture->stream);
    put_number(picture->stream, panel->width);
    fputc('v', picture->stream);
    put_number(picture->stream, panel->height);
    fputc('h', picture->stream);
    put_number(picture->stream, -panel->width);
    fprintf(picture->stream, "z\"/></clipPath>\n<g clip-path=\"url(#panel%d)\">\n", number);
}

void draw_close(draw_picture *picture)
{
    fputs("</g>\n", picture->stream);
}

/* --- marks ---------------------------------------------------------------------------------------------------------
 */

static void begin_path(draw_picture *picture, const char *class, int colour)
{
    fprintf(picture->stream, "<path class=\"%s%d\" d=\"", class, colour % DRAW_COLOURS);
}

static void end_path(draw_picture *picture)
{
    fputs("\"/>\n", picture->stream);
}

/* One past the last of the points from `first` on that all are numbers. */
static int run_end(int first, int n, const double *x, const double *a, const double *b)
{
    int end = first;
    while (end < n && isfinite(x[end]) && !isnan(a[end]) && !isnan(b[end])) {
        end++;
    }
    return end;
}

void draw_band(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *low,
               const double *high)
{
    begin_path(picture, "b c", colour);
    for (int first = 0; first < n;) {
        int end = run_end(first, n, x, low, high);
        for (int i = first; i < end; i++) {
            put_point(picture, i == first ? 'M' : 'L', place_x(panel, x[i]), place_y(panel, high[i]));
        }
        for (int i = end - 1; i >= first; i--) {
            put_point(picture, 'L', place_x(panel, x[i]), place_y(panel, low[i]));
        }
        fputs(end > first ? "z" : "", picture->stream);
        first = end + 1;
    }
    end_path(picture);
}

void draw_line(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *y)
{
    begin_path(picture, "l s", colour);
    for (int first = 0; first < n;) {
        int end = run_end(first, n, x, y, y);
        for (int i = first; i < end; i++) {
            put_point(picture, i == first ? 'M' : 'L', place_x(panel, x[i]), place_y(panel, y[i]));
        }
        first = end + 1;
    }
    end_path(picture);
}

/* Lines of no length with round ends are dots, at 10 bytes each. */
static void put_dots(draw_picture *picture, const draw_panel *panel, const char *class, int colour, int n,
                     const double *x, const double *y)
{
    begin_path(picture, class, colour);
    for (int i = 0; i < n; i++) {
        if (isfinite(x[i]) && isfinite(y[i])) {
            put_point(picture, 'M', place_x(panel, x[i]), place_y(panel, y[i]));
            fputs("h0", picture->stream);
        }
    }
    end_path(picture);
}

void draw_points(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *y)
{
    put_dots(picture, panel, "p s", colour, n, x, y);
}

void draw_dots(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *y)
{
    put_dots(picture, panel, "d s", colour, n, x, y);
}

void draw_whiskers(draw_picture *picture, const draw_panel *panel, int colour, bool thick, int n, const double *x,
                   const double *low, const double *high)
{
    begin_path(picture, thick ? "k s" : "w s", colour);
    for (int i = 0; i < n; i++) {
        if (isfinite(x[i]) && !isnan(low[i]) && !isnan(high[i])) {
            put_point(picture, 'M', place_x(panel, x[i]), place_y(panel, low[i]));
            fputc('V', picture->stream);
            put_number(picture->stream, place_y(panel, high[i]));
        }
    }
    end_path(picture);
}

void draw_bars(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *edge,
               const double *height)
{
    begin_path(picture, "h c", colour);
    for (int i = 0; i < n; i++) {
        double left = place_x(panel, edge[i]), right = place_x(panel, edge[i + 1]);
        if (height[i] > 0.0) {
            put_point(picture, 'M', left, place_y(panel, 0.0));
            fputc('V', picture->stream);
            put_number(picture->stream, place_y(panel, height[i]));
            fputc('H', picture->stream);
            put_number(picture->stream, right);
            fputc('V', picture->stream);
            put_number(picture->stream, place_y(panel, 0.0));
            fputc('z', picture->stream);
        }
    }
    end_path(picture);
}

void draw_cells(draw_picture *picture, const draw_panel *panel, int colour, int columns, int rows, const double *share)
{
    double width = (panel->x.to - panel->x.from) / columns, height = (panel->y.to - panel->y.from) / rows;
    for (int shade = 1; shade <= DRAW_SHADES; shade++) {
        bool any = false;
        for (int i = 0; i < columns * rows; i++) {
            if (!(share[i] > 0.0) || (int)ceil(fmin(share[i], 1.0) * DRAW_SHADES) != shade) {
                continue;
            }
            if (!any) {
                fprintf(picture->stream, "<path class=\"c%d\" fill-opacity=\"%.2f\" d=\"", colour % DRAW_COLOURS,
                        (double)shade / DRAW_SHADES);
                any = true;
            }
            double left = panel->x.from + width * (i % columns), low = panel->y.from + height * (i / columns);
            put_point(picture, 'M', place_x(panel, left), place_y(panel, low + height));
            fputc('H', picture->stream);
            put_number(picture->stream, place_x(panel, left + width));
            fputc('V', picture->stream);
            put_number(picture->stream, place_y(panel, low));
            fputc('H', picture->stream);
            put_number(picture->stream, place_x(panel, left));
            fputc('z', picture->stream);
        }
        fputs(any ? "\"/>\n" : "", picture->stream);
    }
}
