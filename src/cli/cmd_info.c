/* thiele info: what a model is, what it learned and how much to trust it. */
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli.h"

static const cli_option info_options[] = {
    {"json", 0, NULL, CLI_AT(json), NULL, "the description as JSON, in full precision", 0, 0},
    {0},
};

static const cli_group groups[] = {{"Output", info_options}, {0}};

/* The description with the size of the file, which only a file has. NULL: out of memory. */
static char *with_size(const char *description, const char *path)
{
    struct stat file;
    json_t *json = json_loads(description, 0, NULL);
    if (json != NULL && stat(path, &file) == 0) {
        json_object_set_new(json, "file_bytes", json_integer(file.st_size));
    }
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    return text;
}

static int run(cli_settings *settings)
{
    thiele_model *model = NULL;
    char *description = NULL, *text = NULL;
    int result = CLI_DONE;
    thiele_status status;
    CLI_TRY(thiele_model_load(&model, settings->ctx, settings->operand[0]));
    CLI_TRY(thiele_model_describe(model, settings->ctx, &description));
    text = with_size(description, settings->operand[0]);
    if (text == NULL) {
        result = cli_fail("the model's description cannot be read: out of memory");
    } else if (settings->json) {
        cli_put_json(stdout, text);
        fputs("\n", stdout);
    } else {
        result = cli_report(text);
    }
out:
    result = status != THIELE_OK ? cli_finish(settings, status) : result;
    free(text);
    thiele_free(description);
    thiele_model_destroy(model);
    return result;
}

const cli_command cmd_info = {
    .name = "info",
    .usage = "MODEL [--json]",
    .summary = "show what a model is and what it learned",
    .about =
        "Shows what a model was fitted to, what it learned in the units of the data, and how well it predicts rows "
        "that were left out.",
    .operand = {"MODEL"},
    .groups = groups,
    .examples = "  thiele info model.thiele\n"
                "  thiele info model.thiele --json\n",
    .run = run,
};
