/*
 * Predictions along a slice. Its places go to the library as any table does, as CSV in a file without a name, since
 * columns may hold text. The probability of a class has an uncertainty too: that of the latent functions, carried
 * through the likelihood at fixed, evenly spaced values of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "slice.h"

static const double quantiles[SLICE_QUANTILES] = {0.05, 0.25, 0.75, 0.95};

/* --- the table of places --------------------------------------------------------------------------------------------
 */

static void put_field(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const char *c = text; *c != '\0'; c++) {
        fputs(*c == '"' ? "\"" : "", stream);
        fputc(*c, stream);
    }
    fputc('"', stream);
}

static void put_value(FILE *stream, const slice_column *column, double value)
{
    char number[CLI_NUMBER_MAX], date[64];
    if (column->dates != NULL && thiele_date_write(value + column->origin, column->dates, date, sizeof date)) {
        put_field(stream, date);
    } else if (column->levels != NULL) {
        put_field(stream, json_string_value(json_array_get(column->levels, (size_t)value)));
    } else {
        fputs(cli_exact(value, number), stream);
    }
}

static bool write_places(const cli_slice *slice, FILE *stream)
{
    for (int c = 0; c < slice->columns; c++) {
        fputs(c > 0 ? "," : "", stream);
        put_field(stream, slice->column[c].name);
    }
    for (int i = 0; i < slice->law.n; i++) {
        fputc('\n', stream);
        for (int c = 0; c < slice->columns; c++) {
            fputs(c > 0 ? "," : "", stream);
            put_value(stream, &slice->column[c], c == slice->over ? slice->x[i] : slice->column[c].value);
        }
    }
    fputc('\n', stream);
    return fflush(stream) == 0 && !ferror(stream);
}

static thiele_status make_places(cli_slice *slice, thiele_table **table)
{
    char path[64];
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    FILE *stream = tmpfile();
    thiele_status status = THIELE_ERROR_IO;
    options.header = THIELE_HEADER_YES;
    options.delimiter = ',';
    if (stream != NULL && write_places(slice, stream)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(stream));
        status = thiele_table_open(table, slice->settings->ctx, path, &options);
    }
    if (stream != NULL) {
        fclose(stream);
    }
    return status;
}

/* --- numbers and probabilities --------------------------------------------------------------------------------------
 */

typedef struct collecting {
    const cli_slice *slice;
    slice_law *law;
} collecting;

static thiele_status collect(const thiele_prediction *block, void *user)
{
    collecting *c = user;
    int series = c->slice->series, output = c->slice->output;
    for (int64_t i = 0; i < block->rows; i++) {
        for (int s = 0; s < series; s++) {
            int64_t from = c->slice->classes > 0 ? i * series + s : i * block->outputs + output;
            int64_t to = block->row[i] * series + s;
            c->law->mean[to] = c->slice->classes > 0 ? block->probability[from] : block->mean[from];
            for (int q = 0; q < SLICE_QUANTILES && c->slice->classes == 0 && block->quantiles != NULL; q++) {
                c->law->quantile[q][to] = block->quantiles[from * SLICE_QUANTILES + q];
            }
        }
    }
    return THIELE_OK;
}

/* --- how sure a probability is --------------------------------------------------------------------------------------
 */

enum { DRAWS = 400, LATENTS_MOST = 64 };

typedef struct spreading {
    cli_slice *slice;
    thiele_likelihood *likelihood;
    double temperature; /* of a calibrated model, else 1 */
    bool signs;         /* the two classes are -1 and 1 */
    double *z;          /* latents x DRAWS: points of a standard normal */
    double *draw;       /* DRAWS for each class */
} spreading;

/* The inverse of the normal distribution function, by halving. */
static double normal_quantile(double p)
{
    double low = -8.0, high = 8.0;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (0.5 * erfc(-middle * M_SQRT1_2) < p) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return 0.5 * (low + high);
}

/* Points that fill the unit cube evenly: multiples of irrational numbers, the first of them a plain grid. */
static void place_draws(double *z, int latents)
{
    static const double GOLDEN = 0.6180339887498949;
    for (int s = 0; s < DRAWS; s++) {
        for (int q = 0; q < latents; q++) {
            double step = q == 0 ? 1.0 / DRAWS : fmod(GOLDEN * sqrt(1.0 + q), 1.0);
            double u = fmod((s + 0.5) * step, 1.0);
            z[s * latents + q] = normal_quantile(fmin(fmax(u, 1e-9), 1.0 - 1e-9));
        }
    }
}

/* Probabilities of the classes at f, tempered: into p[c * DRAWS]. */
static void class_probabilities(const spreading *s, const double *f, double *p)
{
    int classes = s->slice->classes;
    double most = -INFINITY, sum = 0.0;
    for (int c = 0; c < classes; c++) {
        double y = s->signs ? 2.0 * c - 1.0 : c;
        thiele_likelihood_log_density(s->likelihood, 1, &y, f, &p[c * DRAWS]);
        p[c * DRAWS] /= s->temperature;
        most = fmax(most, p[c * DRAWS]);
    }
    for (int c = 0; c < classes; c++) {
        p[c * DRAWS] = exp(p[c * DRAWS] - most);
        sum += p[c * DRAWS];
    }
    for (int c = 0; c < classes; c++) {
        p[c * DRAWS] /= sum;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static thiele_status spread(const thiele_prediction *block, void *user)
{
    spreading *s = user;
    int latents = block->outputs, classes = s->slice->classes;
    double f[LATENTS_MOST];
    for (int64_t i = 0; i < block->rows; i++) {
        for (int d = 0; d < DRAWS; d++) {
            for (int q = 0; q < latents; q++) {
                int64_t at = i * latents + q;
                f[q] = block->mean[at] + sqrt(block->variance[at]) * s->z[d * latents + q];
            }
            class_probabilities(s, f, s->draw + d);
        }
        for (int c = 0; c < classes; c++) {
            qsort(s->draw + c * DRAWS, DRAWS, sizeof *s->draw, compare);
            for (int q = 0; q < SLICE_QUANTILES; q++) {
                s->slice->law.quantile[q][block->row[i] * classes + c] =
                    s->draw[c * DRAWS + (int)(quantiles[q] * DRAWS)];
            }
        }
    }
    return THIELE_OK;
}

/* Of a likelihood that is not built in nothing is known beyond the probabilities. */
static thiele_status spread_classes(cli_slice *slice, const thiele_table *places)
{
    const char *text = json_string_value(json_object_get(slice->own, "likelihood_text"));
    const json_t *columns = json_object_get(slice->own, "columns");
    int latents = thiele_model_latents(slice->model);
    thiele_calibration calibration;
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    spreading s = {.slice = slice, .signs = json_is_true(json_object_get(columns, "signs")), .temperature = 1.0};
    thiele_status status = THIELE_OK;
    if (text == NULL || latents > LATENTS_MOST) {
        return THIELE_OK;
    }
    thiele_model_calibration(slice->model, &calibration);
    s.temperature = calibration.temperature > 0.0 ? calibration.temperature : 1.0;
    s.z = malloc((size_t)(DRAWS * latents) * sizeof *s.z);
    s.draw = malloc((size_t)(DRAWS * slice->classes) * sizeof *s.draw);
    options.latent = 1;
    CLI_TRY(s.z != NULL && s.draw != NULL ? THIELE_OK : THIELE_ERROR_MEMORY);
    place_draws(s.z, latents);
    CLI_TRY(thiele_likelihood_parse(&s.likelihood, slice->settings->ctx, text, 1, s.signs ? 0 : slice->classes));
    CLI_TRY(thiele_model_predict(slice->model, slice->settings->ctx, places, &options, spread, &s));
out:
    thiele_likelihood_destroy(s.likelihood);
    free(s.z);
    free(s.draw);
    return status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------
 */

static double *numbers(size_t count)
{
    double *value = malloc((count + 1) * sizeof *value);
    for (size_t i = 0; i < count && value != NULL; i++) {
        value[i] = NAN;
    }
    return value;
}

static bool open_law(slice_law *law, int n, int series, bool means_only)
{
    size_t count = (size_t)n * (size_t)series;
    law->n = n;
    law->mean = numbers(count);
    bool there = law->mean != NULL;
    for (int q = 0; q < SLICE_QUANTILES && !means_only; q++) {
        law->quantile[q] = numbers(count);
        there = there && law->quantile[q] != NULL;
    }
    return there;
}

static thiele_status open_laws(cli_slice *slice)
{
    const json_t *levels = slice->column[slice->over].levels;
    int known = (int)json_array_size(levels);
    int n = levels == NULL ? SLICE_POINTS : known < SLICE_LEVELS ? known : SLICE_LEVELS;
    slice->x = numbers((size_t)n);
    slice->near_x = numbers((size_t)slice->rows);
    slice->near_y = numbers((size_t)slice->rows);
    bool there =
        open_law(&slice->law, n, slice->series, false) && open_law(&slice->row_law, slice->rows, slice->series, true);
    if (!there || slice->x == NULL || slice->near_x == NULL || slice->near_y == NULL) {
        return THIELE_ERROR_MEMORY;
    }
    for (int i = 0; i < n; i++) {
        double share = (double)i / (SLICE_POINTS - 1);
        slice->x[i] = levels != NULL ? i : (1.0 - share) * slice->from + share * slice->to;
    }
    return THIELE_OK;
}

static thiele_status predict_rows(cli_slice *slice)
{
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    collecting into = {slice, &slice->row_law};
    options.drop_missing = 1;
    options.unseen = THIELE_UNSEEN_ZERO;
    thiele_status status =
        thiele_model_predict(slice->model, slice->settings->ctx, slice->sample, &options, collect, &into);
    if (status == THIELE_OK) {
        slice_choose_near(slice);
    }
    return status;
}

int slice_predict(cli_slice *slice)
{
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    thiele_table *places = NULL;
    collecting into = {slice, &slice->law};
    int quiet = slice->settings->quiet;
    thiele_status status;
    slice->settings->quiet = 1; /* a slice has no partition, and need not */
    CLI_TRY(open_laws(slice));
    CLI_TRY(make_places(slice, &places));
    if (slice->classes == 0) {
        options.quantiles = quantiles;
        options.quantile_count = SLICE_QUANTILES;
    }
    CLI_TRY(thiele_model_predict(slice->model, slice->settings->ctx, places, &options, collect, &into));
    if (slice->classes > 0) {
        CLI_TRY(spread_classes(slice, places));
    }
    slice->settings->quiet = quiet;
    if (slice->sample != NULL) {
        CLI_TRY(predict_rows(slice));
    }
out:
    slice->settings->quiet = quiet;
    thiele_table_destroy(places);
    return cli_finish(slice->settings, status);
}
