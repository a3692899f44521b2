/*
 * thiele plot: a slice through a model as a picture. SVG is written here; PNG by a converter that reads SVG, where one
 * is installed.
 */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slice.h"

static const cli_option plot_options[] = {
    {"over", 0, cli_parse_text, CLI_AT(plot.over), "COL", "the input that moves (default: the only one)", 0, 0},
    {"at", 0, cli_parse_list, CLI_AT(plot.at), "VALUES",
     "where other inputs stay, such as 'age=40, site=north' (default: medians and most frequent values of DATA, or the "
     "means of the training rows)",
     0, 0},
    {"range", 0, cli_parse_text, CLI_AT(plot.range), "FROM,TO",
     "of the input that moves (default: as far as DATA goes, or two standard deviations around the mean)", 0, 0},
    {"target", 0, cli_parse_text, CLI_AT(plot.target), "COL", "which of several targets (default: the first)", 0, 0},
    {"output", 'o', cli_parse_text, CLI_AT(output), "FILE",
     "picture to write, .svg or .png; - for SVG on standard output (default: MODEL's name and that of the input, .svg)",
     0, 0},
    {0},
};

static const cli_option quiet_options[] = {
    {"quiet", 0, NULL, CLI_AT(quiet), NULL, "no progress line and no warnings", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Picture", plot_options},        {"Model", cli_own_options}, {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options}, {"Output", quiet_options},  {0},
};

extern char **environ;

/* "dir/model.thiele" over "x 1" gives "model-x_1.svg". To be freed. */
static char *default_output(const char *model, const char *over)
{
    static const char ending[] = ".thiele";
    const char *slash = strrchr(model, '/'), *base = slash != NULL ? slash + 1 : model;
    size_t length = strlen(base), cut = sizeof ending - 1, capacity = length + strlen(over) + 8;
    char *output = malloc(capacity);
    if (output == NULL) {
        return NULL;
    }
    length -= length > cut && strcmp(base + length - cut, ending) == 0 ? cut : 0;
    snprintf(output, capacity, "%.*s-%s.svg", (int)length, base, over);
    for (char *c = output + length; *c != '\0'; c++) {
        *c = *c == '/' || *c == ' ' || (unsigned char)*c < ' ' ? '_' : *c;
    }
    return output;
}

static bool is_png(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".png") == 0;
}

/* rsvg-convert from one open file to another: its exit status, or -1 when it cannot be started. */
static int convert(FILE *from, FILE *to)
{
    static char program[] = "rsvg-convert", format[] = "--format=png", zoom[] = "--zoom=2";
    char *arguments[] = {program, format, zoom, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int ended = -1;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -1;
    }
    posix_spawn_file_actions_adddup2(&actions, fileno(from), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(to), STDOUT_FILENO);
    int failed = posix_spawnp(&child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (failed == 0 && waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    return failed == 0 && WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

/* The SVG as it is or, for a PNG, through the converter. */
static int write_picture(const cli_slice *slice, const char *data, cli_file *file, bool png)
{
    enum { NOT_FOUND = 127 };
    if (!png) {
        return slice_draw(slice, data, file->stream);
    }
    FILE *svg = tmpfile();
    int result =
        svg != NULL ? slice_draw(slice, data, svg) : cli_fail("cannot make a temporary file: %s", strerror(errno));
    if (result == CLI_DONE) {
        rewind(svg);
        int status = fflush(svg) == 0 ? convert(svg, file->stream) : -1;
        if (status == -1 || status == NOT_FOUND) {
            result = cli_fail("PNG needs the converter rsvg-convert, which was not found (Debian: apt install "
                              "librsvg2-bin): write .svg, or install it");
        } else if (status != 0) {
            result = cli_fail("rsvg-convert could not make a PNG (status %d): write .svg", status);
        }
    }
    if (svg != NULL) {
        fclose(svg);
    }
    return result;
}

static int draw(const cli_slice *slice, const char *data, const char *output)
{
    cli_file file;
    int result = cli_file_begin(&file, output);
    if (result == CLI_DONE) {
        result = write_picture(slice, data, &file, is_png(output));
        if (result == CLI_DONE) {
            result = cli_file_commit(&file);
        }
        cli_file_abandon(&file);
    }
    if (result == CLI_DONE && strcmp(output, "-") != 0) {
        char setting[1024];
        slice_setting(slice, setting, sizeof setting);
        cli_row("saved to", "%s", output);
        if (*setting != '\0') {
            cli_row("slice at", "%s", setting);
        }
        if (slice->rows > 0) {
            cli_row("rows", "%d near the slice, of %d", slice->nears, slice->rows);
        }
    }
    return result;
}

static int plot(cli_settings *settings, thiele_model *model, const thiele_table *table)
{
    const char *const inputs[] = {settings->operand[0], settings->operand[1], NULL};
    cli_slice slice;
    char *chosen = NULL;
    int result = slice_open(&slice, settings, model);
    if (result == CLI_DONE && settings->output == NULL) {
        chosen = default_output(settings->operand[0], slice.column[slice.over].name);
        result = chosen != NULL ? CLI_DONE : cli_fail("out of memory");
    }
    const char *output = settings->output != NULL ? settings->output : chosen;
    result = result == CLI_DONE ? cli_check_output(output, inputs) : result;
    if (result == CLI_DONE && table != NULL) {
        result = slice_read_rows(&slice, table);
    }
    result = result == CLI_DONE ? slice_predict(&slice) : result;
    cli_progress_clear();
    result = result == CLI_DONE ? draw(&slice, settings->operand[1], output) : result;
    slice_close(&slice);
    free(chosen);
    return result;
}

static int run(cli_settings *settings)
{
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    int result = cli_check_plugin(settings);
    if (result != CLI_DONE) {
        return result;
    }
    thiele_status status;
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    if (settings->operand[1] != NULL) {
        CLI_TRY(cli_open_like_training(&table, settings, model, settings->operand[1]));
    }
    result = plot(settings, model, table);
out:
    result = status != THIELE_OK ? cli_finish(settings, status) : result;
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    return result;
}

const cli_command cmd_plot = {
    .name = "plot",
    .usage = "MODEL [DATA] --over COL [-o FILE] [OPTIONS]",
    .summary = "draw what a model learned",
    .about =
        "Draws what a model predicts while one input moves and the others stay, with how sure it is, as SVG (or PNG, "
        "where rsvg-convert is installed). With DATA, usually the training table, the picture has the rows near the "
        "slice too, and how many rows there are where.",
    .operand = {"MODEL", "DATA"},
    .optional = 1,
    .groups = groups,
    .examples = "  thiele plot model.thiele train.csv --over x1\n"
                "  thiele plot model.thiele train.csv --over x1 --at 'x2=0, site=north'\n"
                "  thiele plot model.thiele --over age --range 20,80 -o age.png\n",
    .run = run,
};
