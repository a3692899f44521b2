/*
 * thiele plot: a slice through a model as a picture. SVG is written here; PNG by a converter that reads SVG, where one
 * is installed.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slice.h"

static const cli_option plot_options[] = {
    {"over", 0, cli_parse_text, CLI_AT(plot.over), "COL", "the input that moves (default: the only one)", 0, 0},
    {"at", 0, cli_parse_list, CLI_AT(plot.at), "VALUES",
     "where other inputs are held, such as 'age=40, site=north' (default: medians and most frequent values of DATA, or "
     "the "
     "means of the training rows)",
     0, 0},
    {"range", 0, cli_parse_text, CLI_AT(plot.range), "FROM,TO",
     "of the input that varies (default: as far as DATA goes, or two standard deviations around the mean)", 0, 0},
    {"target", 0, cli_parse_text, CLI_AT(which), "COL", "which of several targets (default: the first)", 0, 0},
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

/* Programs that read SVG on standard input and write PNG on standard output, the best first. */
static char *const converters[][8] = {
    {"rsvg-convert", "--format=png", "--zoom=2", NULL},
    {"inkscape", "--pipe", "--export-type=png", "--export-filename=-", "--export-dpi=192", NULL},
    {"magick", "-density", "192", "svg:-", "png:-", NULL},
    {"convert", "-density", "192", "svg:-", "png:-", NULL},
};
enum { CONVERTERS = sizeof converters / sizeof *converters };

typedef enum conversion { CONVERTED, FAILED, ABSENT } conversion;

/* Runs a converter from one open file to another, without what it has to say. */
static conversion convert(char *const *arguments, FILE *from, FILE *to)
{
    enum { NOT_FOUND = 127 };
    posix_spawn_file_actions_t actions;
    pid_t child;
    int ended = -1;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return FAILED;
    }
    rewind(from);
    posix_spawn_file_actions_adddup2(&actions, fileno(from), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, fileno(to), STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int failed = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (failed == 0 && waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    if (failed != 0 || (WIFEXITED(ended) && WEXITSTATUS(ended) == NOT_FOUND)) {
        return ABSENT;
    }
    return WIFEXITED(ended) && WEXITSTATUS(ended) == 0 ? CONVERTED : FAILED;
}

/* Whether a converter has written a PNG; if not, the file is empty again. */
static bool has_png(FILE *file)
{
    static const unsigned char signature[] = {0x89, 'P', 'N', 'G'};
    unsigned char start[sizeof signature];
    int descriptor = fileno(file);
    bool read = lseek(descriptor, 0, SEEK_SET) == 0 && pread(descriptor, start, sizeof start, 0) == sizeof start;
    bool there = read && memcmp(start, signature, sizeof start) == 0;
    if (!there && ftruncate(descriptor, 0) != 0) {
        return false;
    }
    return there;
}

static int copy(FILE *from, FILE *to)
{
    char buffer[1 << 14];
    size_t count;
    rewind(from);
    while ((count = fread(buffer, 1, sizeof buffer, from)) > 0) {
        if (fwrite(buffer, 1, count, to) != count) {
            return cli_fail("cannot write the picture: %s", strerror(errno));
        }
    }
    return ferror(from) ? cli_fail("cannot read a temporary file: %s", strerror(errno)) : CLI_DONE;
}

static int convert_somehow(FILE *svg, FILE *png)
{
    const char *failed = NULL;
    if (fflush(svg) != 0) {
        return cli_fail("cannot write a temporary file: %s", strerror(errno));
    }
    for (int i = 0; i < CONVERTERS; i++) {
        conversion result = convert(converters[i], svg, png);
        if (has_png(png) && result == CONVERTED) {
            return CLI_DONE;
        }
        failed = result != ABSENT ? converters[i][0] : failed;
    }
    if (failed != NULL) {
        return cli_fail(
            "%s could not make a PNG: write .svg, or install rsvg-convert (Debian: apt install librsvg2-bin)", failed);
    }
    return cli_fail(
        "PNG needs a converter (rsvg-convert, inkscape or ImageMagick), and none was found (Debian: apt install "
        "librsvg2-bin): write .svg, or install one");
}

/* The SVG as it is or, for a PNG, through a converter. */
static int write_picture(const cli_slice *slice, const char *data, cli_file *file, bool png)
{
    if (!png) {
        return slice_draw(slice, data, file->stream);
    }
    FILE *svg = tmpfile();
    FILE *pixels = tmpfile(); /* what a converter that fails has written stays here */
    int result = CLI_FAILED;
    if (svg == NULL || pixels == NULL) {
        cli_fail("cannot make a temporary file: %s", strerror(errno));
        goto out;
    }
    result = slice_draw(slice, data, svg);
    result = result == CLI_DONE ? convert_somehow(svg, pixels) : result;
    result = result == CLI_DONE ? copy(pixels, file->stream) : result;
out:
    if (svg != NULL) {
        fclose(svg);
    }
    if (pixels != NULL) {
        fclose(pixels);
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
        CLI_TRY(cli_open_like_training(&table, settings, model, &settings->operand[1], 1));
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
        "Draws what a model predicts as one input varies and the others are held, with how sure it is, as SVG (or PNG, "
        "where rsvg-convert, inkscape or ImageMagick is installed). With DATA, usually the training table, the picture "
        "has the rows near the "
        "slice too, and how many rows there are where.",
    .operand = {"MODEL", "DATA"},
    .optional = 1,
    .groups = groups,
    .examples = "  thiele plot model.thiele train.csv --over x1\n"
                "  thiele plot model.thiele train.csv --over x1 --at 'x2=0, site=north'\n"
                "  thiele plot model.thiele --over age --range 20,80 -o age.png\n",
    .run = run,
};
