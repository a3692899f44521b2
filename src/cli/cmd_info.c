/* thiele info: what a model is, what it learned and how much to trust it. */
#include <string.h>

#include "cli.h"

static const cli_option info_options[] = {
    {"json", 0, NULL, CLI_AT(json), NULL, "the description as JSON, in full precision", 0, 0},
    {0},
};

static const cli_group groups[] = {{"Output", info_options}, {0}};

static int run(cli_settings *settings)
{
    thiele_model *model = NULL;
    char *description = NULL;
    int result = CLI_DONE;
    thiele_status status;
    CLI_TRY(thiele_model_load(&model, settings->ctx, settings->operand[0]));
    CLI_TRY(thiele_model_describe(model, settings->ctx, &description));
    if (settings->json) {
        size_t length = strlen(description);
        cli_put_json(stdout, description);
        fputs(length > 0 && description[length - 1] == '\n' ? "" : "\n", stdout);
    } else {
        result = cli_report(description);
    }
out:
    result = status != THIELE_OK ? cli_finish(settings, status) : result;
    thiele_free(description);
    thiele_model_destroy(model);
    return result;
}

const cli_command cmd_info = {
    .name = "info",
    .usage = "MODEL [--json]",
    .summary = "show what a model is and learned",
    .about =
        "Shows what a model was fitted to, what it learned in the units of the data, and how well it predicts rows "
        "that were left out.",
    .operand = {"MODEL"},
    .groups = groups,
    .examples = "  thiele info model.thiele\n"
                "  thiele info model.thiele --json\n",
    .run = run,
};
