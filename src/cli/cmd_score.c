/* thiele score: predictions of a model against a table that has the target. */
#include <stdlib.h>

#include "cli.h"

static const cli_option score_options[] = {
    {"unseen", 0, cli_parse_choice, CLI_AT(predict.unseen_zero), "other|zero|error",
     "a category that training never saw is taken as other, or as none (where the model has no others), or is an error "
     "(default: other, or an error where the model has no others)",
     0, 0},
    {"drop-missing", 0, NULL, CLI_AT(predict.drop_missing), NULL,
     "leave out rows with missing values (default: refuse them)", 0, 0},
    {"blend", 0, NULL, CLI_AT(predict.blend), NULL,
     "pic: mix what the nearest blocks say, so that predictions do not jump where blocks meet", 0, 0},
    {"own-block", 0, NULL, CLI_AT(predict.own_block), NULL,
     "pic: predict by the training rows of a row's own block, which is faster (default: by those nearest to it)", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Rows", score_options},          {"Model", cli_own_options},     {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options}, {"Output", cli_output_options}, {0},
};

static void print_calibration(const cli_settings *settings, const thiele_calibration *by)
{
    if (by->rows > 0 && !settings->json) {
        cli_row("calibrated", "by %lld rows that were %s", (long long)by->rows, by->left_out ? "left out" : "held out");
    }
}

/* One target's scores as they are; those of several under their names. */
static void print_scores(const cli_settings *settings, const thiele_model *model, const thiele_scores *scores)
{
    int targets = thiele_model_targets(model);
    cli_json json = {.stream = stdout, .inline_from = 2};
    bool parts = thiele_model_part(model, 0) != NULL;
    thiele_calibration by;
    thiele_model_calibration(model, &by);
    if (!parts) {
        print_calibration(settings, &by);
    }
    if (targets == 1) {
        if (settings->json) {
            cli_json_calibrated_scores(&json, NULL, scores, by.rows);
        } else {
            cli_print_scores(scores);
        }
        return;
    }
    if (settings->json) {
        cli_json_open(&json, NULL, '{');
    }
    for (int p = 0; p < targets; p++) {
        if (parts) {
            thiele_model_calibration(thiele_model_part(model, p), &by);
        }
        if (settings->json) {
            cli_json_calibrated_scores(&json, thiele_model_target(model, p), &scores[p], by.rows);
        } else {
            cli_row("target", "%s", thiele_model_target(model, p));
            if (parts) {
                print_calibration(settings, &by);
            }
            cli_print_scores(&scores[p]);
        }
    }
    if (settings->json) {
        cli_json_close(&json, '}');
    }
}

static int run(cli_settings *settings)
{
    if (cli_check_plugin(settings) != CLI_DONE) {
        return CLI_MISUSED;
    }
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    thiele_scores *scores = NULL;
    thiele_status status;
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    CLI_TRY(cli_open_like_training(&table, settings, model, settings->operand[1]));
    scores = calloc((size_t)thiele_model_targets(model), sizeof *scores);
    CLI_TRY(scores != NULL ? THIELE_OK : THIELE_ERROR_MEMORY);
    CLI_TRY(thiele_model_score(model, settings->ctx, table, &settings->predict, scores));
    cli_progress_clear();
    print_scores(settings, model, scores);
out:;
    int result = cli_finish(settings, status);
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    free(scores);
    return result;
}

const cli_command cmd_score = {
    .name = "score",
    .usage = "MODEL DATA [OPTIONS]",
    .summary = "score a model's predictions",
    .about =
        "Predicts a table that has the target column and says how good the predictions and their uncertainties are.",
    .operand = {"MODEL", "DATA"},
    .groups = groups,
    .examples = "  thiele score model.thiele test.csv\n"
                "  thiele score model.thiele test.csv --json\n",
    .run = run,
};
