/* A slice as a picture: the law as bands or whiskers, its mean, the rows that belong to it, and how many rows there are
 * where. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/draw.h"
#include "slice.h"

enum { WIDTH = 720, MAIN_HEIGHT = 320, STRIP_HEIGHT = 34, LANE_HEIGHT = 13, EDGE = 16, GAP = 6, TEXT_MAX = 1024 };

typedef struct slice_picture {
    const cli_slice *slice;
    const char *data; /* the table's name; NULL: none was given */
    char title[TEXT_MAX], note[2 * TEXT_MAX], y_label[TEXT_MAX], count[64], all[64];
    draw_entry entry[DRAW_COLOURS + 4];
    int entries;
    const char *level[SLICE_LEVELS];
    draw_panel main, strip;
    bool has_strip;
} slice_picture;

static bool over_levels(const cli_slice *slice)
{
    return slice->column[slice->over].levels != NULL;
}

static const char *class_name(const cli_slice *slice, int c)
{
    return thiele_model_class(slice->model, c);
}

/* Rows of several classes have a strip of their own, which levels have not. */
static bool dots_shown(const cli_slice *slice)
{
    return slice->classes <= 2 || !over_levels(slice);
}

/* Of two classes the second says all; of many the first few are drawn. */
static int first_series(const cli_slice *slice)
{
    return slice->classes == 2;
}

static int last_series(const cli_slice *slice)
{
    return slice->series < DRAW_COLOURS ? slice->series : DRAW_COLOURS;
}

static int colour_of(const cli_slice *slice, int series)
{
    return series - first_series(slice);
}

/* One series of a law, or of its quantiles, as an array by itself. */
static void take(const cli_slice *slice, const double *value, int series, double *out)
{
    for (int i = 0; i < slice->law.n; i++) {
        out[i] = value[i * slice->series + series];
    }
}

/* --- words ----------------------------------------------------------------------------------------------------------
 */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash != NULL ? slash + 1 : path;
}

/* " (the middle of train.csv)": where values come from that nobody gave. */
static const char *origin(const slice_picture *p, char *text, size_t capacity)
{
    bool all_chosen = true;
    for (int i = 0; i < p->slice->columns; i++) {
        all_chosen = all_chosen && (i == p->slice->over || p->slice->column[i].chosen);
    }
    if (all_chosen) {
        *text = '\0';
    } else if (p->data != NULL) {
        snprintf(text, capacity, " (medians and most frequent values of %.100s%s)", base_name(p->data),
                 p->slice->settings->plot.at != NULL ? ", and --at" : "");
    } else {
        snprintf(text, capacity, " (means of the training rows and first levels%s)",
                 p->slice->settings->plot.at != NULL ? ", and --at" : "");
    }
    return text;
}

static void write_words(slice_picture *p)
{
    const cli_slice *slice = p->slice;
    const char *over = slice->column[slice->over].name;
    char setting[TEXT_MAX], from[160];
    int known = (int)json_array_size(slice->column[slice->over].levels);
    size_t length = 0;
    slice_setting(slice, setting, sizeof setting);
    snprintf(p->title, sizeof p->title, "%.300s over %.300s", slice->target, over);
    if (slice->classes == 2) {
        snprintf(p->y_label, sizeof p->y_label, "probability of %.300s = %.300s", slice->target, class_name(slice, 1));
    } else {
        snprintf(p->y_label, sizeof p->y_label, slice->classes > 0 ? "probability" : "%.300s", slice->target);
    }
    if (*setting != '\0') {
        length = (size_t)snprintf(p->note, sizeof p->note, "At %.900s%s%s. ", setting,
                                  strlen(setting) > 900 ? " ..." : "", origin(p, from, sizeof from));
    }
    if (known > SLICE_LEVELS) {
        length += (size_t)snprintf(p->note + length, sizeof p->note - length, "The first %d of %d levels. ",
                                   (int)SLICE_LEVELS, known);
    }
    if (slice->classes > DRAW_COLOURS) {
        length += (size_t)snprintf(p->note + length, sizeof p->note - length, "The first %d of %d classes. ",
                                   (int)DRAW_COLOURS, slice->classes);
    }
    if (slice->nears > 0 && *setting != '\0' && dots_shown(slice)) {
        snprintf(p->note + length, sizeof p->note - length, "Dots: rows %s the curve at their %.100s.",
                 slice->classes > 0 ? "whose predicted probabilities are within 0.1 of"
                                    : "whose own prediction is within half a standard deviation of",
                 over);
    }
}

static void add_entry(slice_picture *p, draw_mark mark, int colour, const char *text)
{
    p->entry[p->entries++] = (draw_entry){mark, colour, text};
}

static bool has_band(const cli_slice *slice)
{
    return !isnan(slice->law.quantile[0][first_series(slice)]);
}

static void list_entries(slice_picture *p)
{
    const cli_slice *slice = p->slice;
    if (slice->classes > 2) {
        for (int c = 0; c < last_series(slice); c++) {
            add_entry(p, over_levels(slice) ? DRAW_POINT : DRAW_LINE, c, class_name(slice, c));
        }
    } else {
        add_entry(p, over_levels(slice) ? DRAW_POINT : DRAW_LINE, 0, slice->classes > 0 ? "predicted" : "mean");
    }
    if (has_band(slice)) {
        add_entry(p, over_levels(slice) ? DRAW_WHISKER : DRAW_BAND, 0,
                  slice->classes > 0 ? "where the probability is, with 90% certainty"
                                     : "90% and 50% of new observations");
    }
    if (slice->nears > 0 && dots_shown(slice)) {
        snprintf(p->count, sizeof p->count, slice->columns > 1 ? "%d rows near the slice" : "%d rows", slice->nears);
        add_entry(p, DRAW_POINT, slice->classes > 2 ? DRAW_COLOURS - 1 : 1, p->count);
    }
    if (slice->rows > 0 && slice->classes < 3 && !over_levels(slice)) {
        snprintf(p->all, sizeof p->all, "where all %d rows are", slice->rows);
        add_entry(p, DRAW_BAR, DRAW_COLOURS - 1, p->all);
    }
}

/* --- layout ---------------------------------------------------------------------------------------------------------
 */

static void include(double value, double *from, double *to)
{
    if (isfinite(value)) {
        *from = value < *from ? value : *from;
        *to = value > *to ? value : *to;
    }
}

/* Whether all of the law's quantiles are whole numbers: those of counts are. */
static bool is_whole(const cli_slice *slice)
{
    bool whole = slice->classes == 0;
    for (int i = 0; i < slice->law.n * slice->series && whole; i++) {
        for (int q = 0; q < SLICE_QUANTILES; q++) {
            whole = whole && slice->law.quantile[q][i] == round(slice->law.quantile[q][i]);
        }
    }
    return whole;
}

static void choose_y(slice_picture *p)
{
    const cli_slice *slice = p->slice;
    double from = INFINITY, to = -INFINITY;
    for (int i = 0; i < slice->law.n && slice->classes == 0; i++) {
        include(slice->law.mean[i], &from, &to);
        include(slice->law.quantile[0][i], &from, &to);
        include(slice->law.quantile[SLICE_QUANTILES - 1][i], &from, &to);
    }
    for (int i = 0; i < slice->nears && slice->classes == 0; i++) {
        include(slice->near_y[i], &from, &to);
    }
    if (slice->classes > 0 || from > to) {
        from = 0.0;
        to = 1.0;
    }
    draw_widen(&from, &to, 0.05);
    p->main.y = (draw_axis){.label = p->y_label, .from = from, .to = to, .whole = is_whole(slice)};
}

static void choose_x(slice_picture *p)
{
    const cli_slice *slice = p->slice;
    const slice_column *over = &slice->column[slice->over];
    draw_axis x = {.label = over->name, .from = slice->from, .to = slice->to};
    if (over->levels != NULL) {
        x.from = -0.5;
        x.to = slice->law.n - 0.5;
        x.names = p->level;
        x.count = slice->law.n;
        for (int l = 0; l < slice->law.n; l++) {
            p->level[l] = json_string_value(json_array_get(over->levels, (size_t)l));
        }
    }
    if (!(x.from < x.to)) {
        draw_widen(&x.from, &x.to, 0.05);
    }
    p->main.x = x;
}

/* What is above the panel, the panel, what is below. Returns the height of the picture. */
static double lay_out(slice_picture *p)
{
    enum { TITLE_HEIGHT = 24, LABEL_HEIGHT = 26, AXIS_HEIGHT = 46 };
    const cli_slice *slice = p->slice;
    double inner = WIDTH - 2 * EDGE;
    int above = draw_note_lines(inner, p->note) + draw_legend_lines(inner, p->entry, p->entries);
    double top = EDGE + TITLE_HEIGHT + above * DRAW_LINE_HEIGHT + GAP + LABEL_HEIGHT;
    choose_y(p);
    choose_x(p);
    double margin = draw_margin(&p->main.y, MAIN_HEIGHT) + EDGE;
    p->main.left = margin;
    p->main.top = top;
    p->main.width = WIDTH - margin - 2 * EDGE;
    p->main.height = MAIN_HEIGHT;
    p->has_strip = slice->rows > 0 && !over_levels(slice);
    if (!p->has_strip) {
        return top + MAIN_HEIGHT + AXIS_HEIGHT + EDGE / 2;
    }
    bool lanes = slice->classes > 2;
    double height = lanes ? LANE_HEIGHT * last_series(slice) : STRIP_HEIGHT;
    p->strip = p->main;
    p->strip.top = top + MAIN_HEIGHT + GAP;
    p->strip.height = height;
    p->strip.y = (draw_axis){.bare = true, .from = lanes ? last_series(slice) - 0.5 : 0.0, .to = lanes ? -0.5 : 1.0};
    p->main.x.bare = true;
    p->main.x.label = NULL;
    return top + MAIN_HEIGHT + GAP + height + AXIS_HEIGHT + EDGE / 2;
}

/* --- marks ----------------------------------------------------------------------------------------------------------
 */

/* Between -1/2 and 1/2, from the number of a row: points on top of each other are moved aside, always by as much. */
static double aside(int row)
{
    static const double GOLDEN = 0.6180339887498949;
    return fmod((row + 1) * GOLDEN, 1.0) - 0.5;
}

/* Values of one series at all places. */
typedef struct one_series {
    double mean[SLICE_POINTS], quantile[SLICE_QUANTILES][SLICE_POINTS], x[SLICE_POINTS];
} one_series;

static void draw_series(draw_picture *picture, const slice_picture *p, int series)
{
    const cli_slice *slice = p->slice;
    one_series s = {0};
    int n = slice->law.n, colour = colour_of(slice, series), last = SLICE_QUANTILES - 1;
    int count = last_series(slice) - first_series(slice);
    take(slice, slice->law.mean, series, s.mean);
    for (int q = 0; q < SLICE_QUANTILES; q++) {
        take(slice, slice->law.quantile[q], series, s.quantile[q]);
    }
    for (int i = 0; i < n; i++) {
        double shift = over_levels(slice) ? 0.6 * ((colour + 0.5) / count - 0.5) : 0.0;
        s.x[i] = slice->x[i] + shift;
    }
    if (over_levels(slice)) {
        draw_whiskers(picture, &p->main, colour, false, n, s.x, s.quantile[0], s.quantile[last]);
        draw_whiskers(picture, &p->main, colour, true, n, s.x, s.quantile[1], s.quantile[2]);
        draw_dots(picture, &p->main, colour, n, s.x, s.mean);
        return;
    }
    draw_band(picture, &p->main, colour, n, s.x, s.quantile[0], s.quantile[last]);
    if (slice->classes == 0) {
        draw_band(picture, &p->main, colour, n, s.x, s.quantile[1], s.quantile[2]);
    }
    draw_line(picture, &p->main, colour, n, s.x, s.mean);
}

/* Labels of two classes stand at the ends of the scale; over levels the rows beside the whiskers. */
static void draw_near(draw_picture *picture, const slice_picture *p)
{
    static const double BESIDE = 0.38, SPREAD = 0.12, ENDS = 0.05, COUNTS = 0.2;
    const cli_slice *slice = p->slice;
    if (slice->classes > 2) {
        return;
    }
    for (int i = 0; i < slice->nears; i++) {
        slice->near_x[i] += over_levels(slice) ? BESIDE + SPREAD * aside(i) : 0.0;
        slice->near_y[i] += (slice->classes == 2 ? ENDS : p->main.y.whole ? COUNTS : 0.0) * aside(i);
    }
    draw_points(picture, &p->main, 1, slice->nears, slice->near_x, slice->near_y);
}

static void draw_lanes(draw_picture *picture, const slice_picture *p)
{
    const cli_slice *slice = p->slice;
    double x[SLICE_ROWS], y[SLICE_ROWS];
    for (int c = 0; c < last_series(slice); c++) {
        int count = 0;
        for (int i = 0; i < slice->nears; i++) {
            if (slice->near_y[i] == c) {
                x[count] = slice->near_x[i];
                y[count++] = c + 0.6 * aside(i);
            }
        }
        draw_points(picture, &p->strip, c, count, x, y);
    }
}

/* How many of all sampled rows there are where. */
static void draw_counts(draw_picture *picture, const slice_picture *p)
{
    const cli_slice *slice = p->slice;
    double edge[SLICE_BINS + 1], height[SLICE_BINS] = {0.0}, most = 1.0;
    for (int b = 0; b <= SLICE_BINS; b++) {
        edge[b] = slice->from + (slice->to - slice->from) * b / SLICE_BINS;
    }
    for (int i = 0; i < slice->rows; i++) {
        double x = slice->cell[i * slice->columns + slice->over];
        double at = (x - slice->from) / (slice->to - slice->from) * SLICE_BINS;
        if (at >= 0.0 && at <= SLICE_BINS) {
            int b = at < SLICE_BINS ? (int)at : SLICE_BINS - 1;
            height[b] += 1.0;
            most = height[b] > most ? height[b] : most;
        }
    }
    for (int b = 0; b < SLICE_BINS; b++) {
        height[b] /= most;
    }
    draw_bars(picture, &p->strip, DRAW_COLOURS - 1, SLICE_BINS, edge, height);
}

/* What is read aloud: the course of the mean in numbers. */
static void describe(const slice_picture *p, char *text, size_t capacity)
{
    const cli_slice *slice = p->slice;
    char first[CLI_NUMBER_MAX], last[CLI_NUMBER_MAX], from[CLI_NUMBER_MAX], to[CLI_NUMBER_MAX];
    int series = first_series(slice), end = (slice->law.n - 1) * slice->series + series;
    if (over_levels(slice)) {
        snprintf(text, capacity, "%.300s at the %d levels of %.300s. %.900s", p->y_label, slice->law.n,
                 slice->column[slice->over].name, p->note);
        return;
    }
    snprintf(text, capacity, "As %.300s goes from %s to %s, %s %.300s goes from %s to %s. %.900s",
             slice->column[slice->over].name, cli_short(slice->from, from), cli_short(slice->to, to),
             slice->classes > 0 ? "the" : "the mean of", p->y_label, cli_short(slice->law.mean[series], first),
             cli_short(slice->law.mean[end], last), p->note);
}

int slice_draw(const cli_slice *slice, const char *data, FILE *stream)
{
    slice_picture *p = calloc(1, sizeof *p);
    draw_picture picture;
    char description[3 * TEXT_MAX];
    double top = EDGE, inner = WIDTH - 2 * EDGE;
    if (p == NULL) {
        return cli_fail("out of memory");
    }
    p->slice = slice;
    p->data = data;
    write_words(p);
    list_entries(p);
    double height = lay_out(p);
    describe(p, description, sizeof description);
    draw_begin(&picture, stream, WIDTH, height, p->title, description);
    draw_title(&picture, EDGE, top, inner, p->title);
    top += 24;
    top += draw_note(&picture, EDGE, top, inner, p->note) * DRAW_LINE_HEIGHT + GAP;
    draw_legend(&picture, EDGE, top, inner, p->entry, p->entries);
    draw_open(&picture, &p->main);
    draw_near(&picture, p);
    for (int s = first_series(slice); s < last_series(slice); s++) {
        draw_series(&picture, p, s);
    }
    draw_close(&picture);
    if (p->has_strip) {
        draw_open(&picture, &p->strip);
        (slice->classes > 2 ? draw_lanes : draw_counts)(&picture, p);
        draw_close(&picture);
    }
    draw_end(&picture);
    free(p);
    return CLI_DONE;
}
