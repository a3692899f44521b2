/*
 * A slice through a model: what it predicts while one input moves and the others stay, and the rows of a table that
 * have something to say about it. What `thiele plot` draws.
 */
#ifndef CLI_SLICE_H
#define CLI_SLICE_H

#include <jansson.h>

#include "cli.h"

enum { SLICE_POINTS = 121, SLICE_LEVELS = 24, SLICE_ROWS = 2000, SLICE_BINS = 48, SLICE_QUANTILES = 4 };

/* A column that the model looks at. */
typedef struct slice_column {
    const char *name;
    const json_t *levels; /* of a categorical one; NULL: numbers */
    const char *dates;    /* form of the dates of one that is written as such; NULL: numbers */
    double origin;        /* of dates: what day 0 is */
    double value;         /* where the slice is; of levels the index, of dates the day */
    bool chosen;          /* by --at */
} slice_column;

/*
 * Predictions at n places, series x n: of a number one series, of labels one for each class. quantile: those of 5%,
 * 25%, 75% and 95%; of a class those of its probability, NaN where they are not known.
 */
typedef struct slice_law {
    int n;
    double *mean, *quantile[SLICE_QUANTILES];
} slice_law;

typedef struct cli_slice {
    cli_settings *settings;
    json_t *description;
    const json_t *own;             /* of the target: the description or a part of it */
    const thiele_model *model;     /* likewise */
    const char *target, *exposure; /* exposure NULL: none */
    int output, classes, series;   /* series: classes, or 1 */
    slice_column *column;          /* inputs, and behind them the exposure */
    int columns, over;
    double from, to; /* of the input that moves */
    double *x;       /* places of the law */
    slice_law law;
    /* A sample of the table's rows, where one is given; NaN: missing or of no known level. */
    thiele_table *sample;
    int rows;
    double *cell, *y;  /* columns x rows; targets or numbers of classes */
    slice_law row_law; /* its means only */
    double *near_x, *near_y;
    int nears;
} cli_slice;

/* slice.c: the model's columns, and where the slice is. Each returns an exit status after a sentence. */
int slice_open(cli_slice *slice, cli_settings *settings, const thiele_model *model);
void slice_close(cli_slice *slice);
/* Index of a level or class by its text, -1 when there is none. */
int slice_level(const json_t *levels, const char *text);
/* The number of a cell, the index of its level or the day of its date; NaN: it is none. */
double slice_value(const slice_column *column, const char *text);
/* "x2 = 0.1, site = north", cut at capacity. */
void slice_setting(const cli_slice *slice, char *text, size_t capacity);

/* slice_rows.c: a sample of a table's rows; the others of their medians and most frequent levels. */
int slice_read_rows(cli_slice *slice, const thiele_table *table);
void slice_choose_near(cli_slice *slice);

/* slice_predict.c: the law at the places of the slice, and the means of the sampled rows. */
int slice_predict(cli_slice *slice);

/* slice_picture.c */
int slice_draw(const cli_slice *slice, const char *data, FILE *stream);

#endif
