/*
 * thiele predict: predictions for the rows of a table, as CSV or JSON, and on request their joint covariance. The CSV
 * is the library's; JSON is written here, one row of the table on a line, and appears whole or not at all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const cli_option predict_options[] = {
    {"output", 'o', cli_parse_text, CLI_AT(output), "OUT", "file to write (default: standard output)", 0, 0},
    {"quantiles", 0, cli_parse_quantiles, CLI_AT(predict.quantiles), "LIST",
     "add quantiles of the prediction, such as 0.05,0.95", 0, 0},
    {"samples", 0, cli_parse_int, CLI_AT(predict.samples), "S", "add S independent draws for each row", 0, 100000},
    {"latent", 0, NULL, CLI_AT(predict.latent), NULL, "predict the function, without the noise of an observation", 0,
     0},
    {"id", 0, cli_parse_list, CLI_AT(predict.id), "COLS", "columns of DATA to copy to the output", 0, 0},
    {"unseen", 0, cli_parse_choice, CLI_AT(predict.unseen), "other|zero|error",
     "how to treat a category that training never saw: as other, as none (if the model has no other), or as an "
     "error (default: other, or error if the model has no other)",
     0, 0},
    {"drop-missing", 0, NULL, CLI_AT(predict.drop_missing), NULL,
     "leave out rows with missing inputs (default: refuse them)", 0, 0},
    {"blend", 0, NULL, CLI_AT(predict.blend), NULL,
     "pic: blend the nearest blocks, so that predictions do not jump where blocks meet", 0, 0},
    {"own-block", 0, NULL, CLI_AT(predict.own_block), NULL,
     "pic: predict from the training rows of a row's own block, which is faster (default: from the nearest ones)", 0,
     0},
    {"joint", 0, cli_parse_text, CLI_AT(joint), "FILE",
     "also write the joint distribution of all rows as CSV: mean, then the covariance c1, c2, ...", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Predictions", predict_options}, {"Model", cli_own_options},     {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options}, {"Output", cli_output_options}, {0},
};

/* --- JSON --------------------------------------------------------------------------------------------------------- */

typedef struct json_sink {
    const cli_settings *settings;
    const thiele_table *table;
    const thiele_model *model, *own; /* own: whose predictions are being written, the model or a part of it */
    cli_json json;
    int *id; /* columns to copy */
    int ids;
    char *cell; /* text of one of them, capacity bytes */
    size_t capacity;
} json_sink;

/* Turns the list of --id into column numbers. */
static thiele_status find_ids(json_sink *sink, char *list)
{
    size_t most = 1;
    for (const char *c = list; *c != '\0'; c++) {
        most += *c == ',';
    }
    sink->id = calloc(most, sizeof *sink->id);
    if (sink->id == NULL) {
        return THIELE_ERROR_MEMORY;
    }
    for (char *rest = list; rest != NULL;) {
        char *name = strsep(&rest, ",");
        name += strspn(name, " ");
        for (size_t end = strlen(name); end > 0 && name[end - 1] == ' '; end--) {
            name[end - 1] = '\0';
        }
        thiele_status status = thiele_table_find_column(sink->table, sink->settings->ctx, name, &sink->id[sink->ids]);
        if (status != THIELE_OK) {
            return status;
        }
        sink->ids++;
    }
    return THIELE_OK;
}

/* The whole text of a cell in sink->cell, which grows as needed. */
static thiele_status read_cell(json_sink *sink, int64_t row, int column)
{
    while (true) {
        if (sink->cell != NULL) {
            thiele_status status =
                thiele_table_cell(sink->table, sink->settings->ctx, row, column, sink->cell, sink->capacity);
            if (status != THIELE_OK || strlen(sink->cell) + 1 < sink->capacity) {
                return status;
            }
        }
        size_t capacity = sink->capacity == 0 ? 256 : 2 * sink->capacity;
        char *cell = realloc(sink->cell, capacity);
        if (cell == NULL) {
            return THIELE_ERROR_MEMORY;
        }
        sink->cell = cell;
        sink->capacity = capacity;
    }
}

static void write_array(cli_json *json, const char *key, const double *values, int count)
{
    if (count == 0) {
        return;
    }
    cli_json_open(json, key, '[');
    for (int i = 0; i < count; i++) {
        cli_json_number(json, NULL, values[i]);
    }
    cli_json_close(json, ']');
}

static thiele_status write_ids(json_sink *sink, int64_t row)
{
    if (sink->ids == 0) {
        return THIELE_OK;
    }
    cli_json_open(&sink->json, "id", '{');
    for (int i = 0; i < sink->ids; i++) {
        thiele_status status = read_cell(sink, row, sink->id[i]);
        if (status != THIELE_OK) {
            return status;
        }
        cli_json_text(&sink->json, thiele_table_column_name(sink->table, sink->id[i]), sink->cell);
    }
    cli_json_close(&sink->json, '}');
    return THIELE_OK;
}

/* Numbers of classes as their labels. */
static void write_labels(json_sink *sink, const char *key, const double *codes, int count)
{
    if (count == 0) {
        return;
    }
    cli_json_open(&sink->json, key, '[');
    for (int i = 0; i < count; i++) {
        cli_json_text(&sink->json, NULL, thiele_model_class(sink->own, (int)codes[i]));
    }
    cli_json_close(&sink->json, ']');
}

static void write_classes(json_sink *sink, const thiele_prediction *block, int64_t i)
{
    const thiele_predict_options *options = &sink->settings->predict;
    const double *probability = block->probability + i * block->classes;
    int best = 0;
    for (int c = 1; c < block->classes; c++) {
        best = probability[c] > probability[best] ? c : best;
    }
    cli_json_text(&sink->json, "label", thiele_model_class(sink->own, best));
    cli_json_open(&sink->json, "probability", '{');
    for (int c = 0; c < block->classes; c++) {
        cli_json_number(&sink->json, thiele_model_class(sink->own, c), probability[c]);
    }
    cli_json_close(&sink->json, '}');
    if (block->quantiles != NULL) {
        write_labels(sink, "quantiles", block->quantiles + i * options->quantile_count, options->quantile_count);
    }
    write_labels(sink, "samples", block->samples + i * options->samples, options->samples);
}

static void write_output(json_sink *sink, const thiele_prediction *block, int64_t at)
{
    const thiele_predict_options *options = &sink->settings->predict;
    cli_json_number(&sink->json, "mean", block->mean[at]);
    cli_json_number(&sink->json, "sd", sqrt(block->variance[at]));
    if (block->quantiles != NULL) {
        write_array(&sink->json, "quantiles", block->quantiles + at * options->quantile_count, options->quantile_count);
    }
    write_array(&sink->json, "samples", block->samples + at * options->samples, options->samples);
}

/* One output as it is; several under their names. */
static void write_outputs(json_sink *sink, const thiele_prediction *block, int64_t i)
{
    char name[32];
    bool latent = sink->settings->predict.latent != 0;
    for (int p = 0; p < block->outputs; p++) {
        if (block->outputs == 1) {
            write_output(sink, block, i);
            continue;
        }
        snprintf(name, sizeof name, "f%d", p + 1);
        cli_json_open(&sink->json, latent ? name : thiele_model_target(sink->own, p), '{');
        write_output(sink, block, i * block->outputs + p);
        cli_json_close(&sink->json, '}');
    }
}

static void write_row(json_sink *sink, const thiele_prediction *block, int64_t i)
{
    if (block->classes > 0) {
        write_classes(sink, block, i);
    } else {
        write_outputs(sink, block, i);
    }
}

/* Targets that have a model each, under their names. */
static void write_parts(json_sink *sink, const thiele_prediction *block, int64_t i)
{
    for (int p = 0; p < block->parts; p++) {
        sink->own = thiele_model_part(sink->model, p);
        cli_json_open(&sink->json, thiele_model_target(sink->model, p), '{');
        write_row(sink, &block->part[p], i);
        cli_json_close(&sink->json, '}');
    }
}

/* A thiele_prediction_fn. Rows are counted from 1, as in messages. */
static thiele_status write_block(const thiele_prediction *block, void *user)
{
    json_sink *sink = user;
    for (int64_t i = 0; i < block->rows; i++) {
        cli_json_open(&sink->json, NULL, '{');
        cli_json_integer(&sink->json, "row", block->row[i] + 1);
        thiele_status status = write_ids(sink, block->row[i]);
        if (status != THIELE_OK) {
            return status;
        }
        if (block->parts > 0) {
            write_parts(sink, block, i);
        } else {
            write_row(sink, block, i);
        }
        cli_json_close(&sink->json, '}');
    }
    return THIELE_OK;
}

static thiele_status write_document(json_sink *sink, const thiele_model *model)
{
    const thiele_predict_options *options = &sink->settings->predict;
    cli_json_open(&sink->json, NULL, '{');
    for (int p = 0; p < thiele_model_targets(model); p++) {
        if (p == 0 && thiele_model_targets(model) > 1) {
            cli_json_open(&sink->json, "targets", '[');
        }
        cli_json_text(&sink->json, thiele_model_targets(model) == 1 ? "target" : NULL, thiele_model_target(model, p));
    }
    if (thiele_model_targets(model) > 1) {
        cli_json_close(&sink->json, ']');
    }
    write_array(&sink->json, "quantiles", options->quantiles, options->quantile_count);
    cli_json_open(&sink->json, "predictions", '[');
    thiele_status status = thiele_model_predict(model, sink->settings->ctx, sink->table, options, write_block, sink);
    if (status == THIELE_OK) {
        cli_json_close(&sink->json, ']');
        cli_json_close(&sink->json, '}');
    }
    return status;
}

static int predict_json(cli_settings *settings, const thiele_model *model, const thiele_table *table)
{
    cli_file file;
    int result = cli_file_begin(&file, settings->output);
    if (result != CLI_DONE) {
        return result;
    }
    json_sink sink = {.settings = settings,
                      .table = table,
                      .model = model,
                      .own = model,
                      .json = {.stream = file.stream, .inline_from = 3}};
    char *list = settings->predict.id != NULL ? strdup(settings->predict.id) : NULL;
    thiele_status status = list != NULL ? find_ids(&sink, list) : THIELE_OK;
    if (status == THIELE_OK) {
        status = write_document(&sink, model);
    }
    result = list == NULL && settings->predict.id != NULL ? cli_fail("out of memory") : cli_finish(settings, status);
    if (result == CLI_DONE) {
        result = cli_file_commit(&file);
    }
    cli_file_abandon(&file);
    free(list);
    free(sink.id);
    free(sink.cell);
    return result;
}

/* --- the joint distribution -----------------------------------------------------------------------------------------
 */

/* A table with the columns mean, c1 ... cn is the joint distribution; writing tables is the library's job. */
static thiele_status write_joint(cli_settings *settings, int n, const double *mean, const double *covariance)
{
    enum { NAME_MAX_LENGTH = 24 };
    size_t columns = (size_t)n + 1;
    double *values = malloc((size_t)n * columns * sizeof *values);
    char(*text)[NAME_MAX_LENGTH] = malloc(columns * sizeof *text);
    const char **name = malloc(columns * sizeof *name);
    thiele_table *table = NULL;
    thiele_status status = THIELE_ERROR_MEMORY;
    if (values == NULL || text == NULL || name == NULL) {
        goto out;
    }
    for (size_t j = 0; j < columns; j++) {
        snprintf(text[j], sizeof text[j], j == 0 ? "mean" : "c%zu", j);
        name[j] = text[j];
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        values[i * columns] = mean[i];
        memcpy(values + i * columns + 1, covariance + i * (size_t)n, (size_t)n * sizeof *values);
    }
    CLI_TRY(thiele_table_from_rows(&table, settings->ctx, n, n + 1, values, name));
    CLI_TRY(thiele_table_write(table, settings->ctx, settings->joint));
out:
    thiele_table_destroy(table);
    free(name);
    free(text);
    free(values);
    return status;
}

static int predict_joint(cli_settings *settings, const thiele_model *model, const thiele_table *table)
{
    enum { ROWS_MOST = 1000000 };
    int64_t rows = thiele_table_rows(table);
    if (rows > ROWS_MOST) {
        return cli_fail("--joint: the covariance of %lld rows is too large to write: select fewer rows",
                        (long long)rows);
    }
    size_t n = (size_t)rows;
    double *mean = malloc(n * sizeof *mean), *covariance = malloc(n * n * sizeof *covariance);
    int result;
    if (mean == NULL || covariance == NULL) {
        result =
            cli_fail("--joint: the covariance of %zu rows takes %.1f GB, more than this machine has: select fewer rows",
                     n, 8e-9 * (double)n * (double)n);
    } else {
        thiele_status status =
            thiele_model_predict_joint(model, settings->ctx, table, &settings->predict, mean, covariance);
        if (status == THIELE_OK) {
            status = write_joint(settings, (int)rows, mean, covariance);
        }
        result = cli_finish(settings, status);
    }
    free(covariance);
    free(mean);
    return result;
}

/* --- the command ----------------------------------------------------------------------------------------------------
 */

static int predict(cli_settings *settings)
{
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    int result = CLI_DONE;
    thiele_status status;
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    CLI_TRY(cli_open_like_training(&table, settings, model, settings->operand + 1, settings->operands - 1));
    if (settings->joint != NULL) {
        result = predict_joint(settings, model, table);
    }
    if (result == CLI_DONE && settings->json) {
        result = predict_json(settings, model, table);
    } else if (result == CLI_DONE) {
        const char *output = settings->output != NULL ? settings->output : "-";
        CLI_TRY(thiele_model_predict_file(model, settings->ctx, table, &settings->predict, output));
    }
out:
    result = status != THIELE_OK ? cli_finish(settings, status) : result;
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    return result;
}

static int run(cli_settings *settings)
{
    int result = cli_check_plugin(settings);
    if (result == CLI_DONE) {
        result = cli_check_output(settings->output, settings->operand);
    }
    if (result == CLI_DONE) {
        result = cli_check_output(settings->joint, settings->operand);
    }
    if (result != CLI_DONE) {
        return result;
    }
    if (settings->joint != NULL && settings->predict.drop_missing) {
        return cli_misuse("--joint covers all rows of the table and cannot be combined with --drop-missing");
    }
    bool same =
        settings->joint != NULL && strcmp(settings->joint, settings->output != NULL ? settings->output : "-") == 0;
    return same ? cli_misuse("--joint and -o name the same file: give two different ones") : predict(settings);
}

const cli_command cmd_predict = {
    .name = "predict",
    .usage = "MODEL DATA... [-o OUT] [OPTIONS]",
    .summary = "predict the rows of a table",
    .about =
        "Writes the mean and standard deviation of the target for each row of DATA (- reads CSV from standard input). "
        "Columns are matched by name; others are ignored.",
    .operand = {"MODEL", "DATA"},
    .repeated = "DATA",
    .many = CLI_OPERANDS,
    .groups = groups,
    .examples = "  thiele predict model.thiele new.csv --quantiles 0.05,0.95 -o out.csv\n"
                "  thiele predict model.thiele new.csv --id row,site --samples 10 --json\n"
                "  thiele predict model.thiele new.csv --latent --joint cov.csv -o out.csv\n",
    .run = run,
};
