/*
 * Pictures as SVG: panels with axes, and in them bands, lines, points, bars and whiskers. What is drawn goes to the
 * stream at once and in that order, so that nothing is kept or allocated and a picture takes as many bytes as it must.
 * Colours are those of a style sheet in the picture, which knows light and dark screens; they are told apart by people
 * who see few colours, and lines have dashes of their own too. The module depends on nothing but the C library.
 */
#ifndef DRAW_H
#define DRAW_H

#include <stdbool.h>
#include <stdio.h>

/* Colours by number go round: DRAW_COLOURS of them. */
enum { DRAW_COLOURS = 6, DRAW_LINE_HEIGHT = 18 };

typedef struct draw_picture {
    FILE *stream;
    double width, height; /* in pixels, y downwards */
    int panels;           /* so far, for names */
} draw_picture;

typedef struct draw_axis {
    const char *label;        /* NULL: none */
    double from, to;          /* what it shows; from < to */
    const char *const *names; /* of the places 0, 1, ... in place of numbers; NULL: numbers */
    int count;                /* how many names */
    bool bare;                /* no ticks */
    bool whole;               /* ticks at whole numbers only */
} draw_axis;

/* Where the data go: the axes' labels are outside of it, for which draw_margin says how much room they take. */
typedef struct draw_panel {
    double left, top, width, height;
    draw_axis x, y;
} draw_panel;

/* What stands beside a text in a legend. */
typedef enum draw_mark { DRAW_LINE, DRAW_BAND, DRAW_POINT, DRAW_BAR, DRAW_WHISKER } draw_mark;
typedef struct draw_entry {
    draw_mark mark;
    int colour;
    const char *text;
} draw_entry;

/* title and description are what is read aloud in place of the picture. */
void draw_begin(draw_picture *picture, FILE *stream, double width, double height, const char *title,
                const char *description);
void draw_end(draw_picture *picture);
/*
 * One of several pictures in a page of HTML, which has the style sheet once: without one, and with a number of its own
 * for names. Less than ten panels.
 */
void draw_begin_part(draw_picture *picture, FILE *stream, int number, double width, double height, const char *title,
                     const char *description);
void draw_style(FILE *stream);

/* Room for the labels of a y axis at the left of a panel of this height. */
double draw_margin(const draw_axis *y, double height);
/* The frame, grid, ticks and labels of a panel. What follows, until draw_close, is drawn in it and clipped by it. */
void draw_open(draw_picture *picture, const draw_panel *panel);
void draw_close(draw_picture *picture);

/* n points each; a NaN leaves a gap. */
void draw_band(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *low,
               const double *high);
void draw_line(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *y);
void draw_points(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *y);
/* The same, larger and opaque: for the few that are the matter of the picture. */
void draw_dots(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *x, const double *y);
/* From low to high at each x: thick or, for the ends of a law, thin. */
void draw_whiskers(draw_picture *picture, const draw_panel *panel, int colour, bool thick, int n, const double *x,
                   const double *low, const double *high);
/* A histogram: bar i goes from edge[i] to edge[i + 1] and from 0 to height[i]. */
void draw_bars(draw_picture *picture, const draw_panel *panel, int colour, int n, const double *edge,
               const double *height);

/* The panel in columns x rows cells, the lowest row first: the more of the colour the larger the share, from 0 (none)
 * to 1, in DRAW_SHADES steps. */
enum { DRAW_SHADES = 10 };
void draw_cells(draw_picture *picture, const draw_panel *panel, int colour, int columns, int rows, const double *share);

/* Text at (left, top); a title is larger. Folded to `width` where that is positive; returns the lines it took. */
int draw_title(draw_picture *picture, double left, double top, double width, const char *text);
int draw_note(draw_picture *picture, double left, double top, double width, const char *text);
int draw_legend(draw_picture *picture, double left, double top, double width, const draw_entry *entries, int count);
/* The same without drawing: for what has to be known before. */
int draw_note_lines(double width, const char *text);
int draw_legend_lines(double width, const draw_entry *entries, int count);

/* --- ticks.c ------------------------------------------------------------------------------------------------------ */

/* Ticks at first, first + step, ..., count of them, where step is 1, 2 or 5 times a power of 10. */
typedef struct draw_ticks {
    double first, step;
    int count;
} draw_ticks;
/* At most `most` (2 at least) ticks within [from, to]. */
draw_ticks draw_choose_ticks(double from, double to, int most);
/* The i-th of them. */
double draw_tick(const draw_ticks *ticks, int i);
enum { DRAW_NUMBER_MAX = 32 };
/* A tick's number, with as many decimals as the step needs. Returns buffer. */
char *draw_tick_text(const draw_ticks *ticks, int i, char buffer[DRAW_NUMBER_MAX]);
/* [from, to] somewhat widened, so that data do not touch the frame; [-1, 1] around a single value. */
void draw_widen(double *from, double *to, double share);

/* --- text.c ------------------------------------------------------------------------------------------------------- */

/* Text as XML has it: markup escaped; what is no UTF-8, or may not stand in XML, becomes the replacement character. */
void draw_put(FILE *stream, const char *text, int bytes);
/* About how wide a text is, in pixels, at the size of labels. */
double draw_text_width(const char *text, int bytes);
/* How many bytes of the text fit into a line of this width, cut at a space where there is one; at least one character.
 * *next: where the next line begins. */
int draw_fit(const char *text, double width, int *next);

#endif
