/* thiele score: predictions of a model against a table that has the target. */
#include <stdlib.h>

#include "cli.h"

const cli_option cli_score_options[] = {
    {"unseen", 0, cli_parse_choice, CLI_AT(predict.unseen), "other|zero|error",
     "how to treat a category that training never saw: as other, as none (if the model has no other), or as an "
     "error (default: other, or error if the model has no other)",
     0, 0},
    {"drop-missing", 0, NULL, CLI_AT(predict.drop_missing), NULL,
     "leave out rows with missing values (default: refuse them)", 0, 0},
    {"blend", 0, NULL, CLI_AT(predict.blend), NULL,
     "pic: blend the nearest blocks, so that predictions do not jump where blocks meet", 0, 0},
    {"own-block", 0, NULL, CLI_AT(predict.own_block), NULL,
     "pic: predict from the training rows of a row's own block, which is faster (default: from the nearest ones)", 0,
     0},
    {0},
};

static const cli_group groups[] = {
    {"Rows", cli_score_options},      {"Model", cli_own_options},     {"Reading the table", cli_table_options},
    {"Machine", cli_machine_options}, {"Output", cli_output_options}, {0},
};

static void print_calibration(const cli_settings *settings, const thiele_calibration *by)
{
    if (by->rows > 0 && !settings->json) {
        cli_row("calibrated", "by %lld %s rows", (long long)by->rows, by->left_out ? "left-out" : "held-out");
    }
}

/* The model of a target, its own or one of all, and what came of it. */
typedef struct scored {
    const thiele_model *model;
    bool own;
    thiele_scores *scores;
    cli_confusion confusion;
} scored;

static void print_target(const cli_settings *settings, cli_json *json, const char *key, const scored *s)
{
    thiele_calibration by;
    thiele_model_calibration(s->model, &by);
    if (settings->json) {
        cli_json_model_scores(json, key, s->scores, by.rows, &s->confusion);
        return;
    }
    if (s->own) {
        print_calibration(settings, &by);
    }
    cli_print_scores(s->scores);
    if (s->confusion.rows != NULL) {
        cli_print_confusion(&s->confusion);
    }
}

/* One target's scores as they are; those of several under their names. */
static void print_all(const cli_settings *settings, const thiele_model *model, const scored *s)
{
    int targets = thiele_model_targets(model);
    cli_json json = {.stream = stdout, .inline_from = 2};
    if (targets == 1) {
        print_target(settings, &json, NULL, s);
        return;
    }
    if (settings->json) {
        cli_json_open(&json, NULL, '{');
    } else if (!s->own) {
        thiele_calibration by;
        thiele_model_calibration(model, &by);
        print_calibration(settings, &by);
    }
    for (int p = 0; p < targets; p++) {
        const char *name = thiele_model_target(model, p);
        if (!settings->json) {
            cli_row("target", "%s", name);
        }
        print_target(settings, &json, name, &s[p]);
    }
    if (settings->json) {
        cli_json_close(&json, '}');
    }
}

/* Of labels with the confusion of them. */
static thiele_status score_one(cli_settings *settings, const thiele_table *table, scored *s)
{
    size_t classes = (size_t)thiele_model_classes(s->model);
    s->confusion.model = s->model;
    if (classes == 0) {
        return thiele_model_score(s->model, settings->ctx, table, &settings->predict, s->scores);
    }
    s->confusion.rows = calloc(classes * classes, sizeof *s->confusion.rows);
    return s->confusion.rows == NULL ? THIELE_ERROR_MEMORY
                                     : thiele_model_confusion(s->model, settings->ctx, table, &settings->predict,
                                                              s->scores, s->confusion.rows);
}

static thiele_status score_all(cli_settings *settings, const thiele_model *model, const thiele_table *table,
                               thiele_scores *scores, scored *s)
{
    int targets = thiele_model_targets(model);
    bool parts = thiele_model_part(model, 0) != NULL;
    thiele_status status = THIELE_OK;
    for (int p = 0; p < targets; p++) {
        s[p] = (scored){
            .model = parts ? thiele_model_part(model, p) : model, .own = parts || targets == 1, .scores = &scores[p]};
    }
    if (!parts) { /* one model of all targets */
        return score_one(settings, table, s);
    }
    for (int p = 0; p < targets && status == THIELE_OK; p++) {
        status = score_one(settings, table, &s[p]);
    }
    return status;
}

static int run(cli_settings *settings)
{
    if (cli_check_plugin(settings) != CLI_DONE) {
        return CLI_MISUSED;
    }
    thiele_model *model = NULL;
    thiele_table *table = NULL;
    thiele_scores *scores = NULL;
    scored *each = NULL;
    size_t targets = 0;
    thiele_status status;
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    CLI_TRY(cli_open_like_training(&table, settings, model, settings->operand + 1, settings->operands - 1));
    targets = (size_t)thiele_model_targets(model);
    scores = calloc(targets, sizeof *scores);
    each = calloc(targets, sizeof *each);
    CLI_TRY(scores != NULL && each != NULL ? THIELE_OK : THIELE_ERROR_MEMORY);
    CLI_TRY(score_all(settings, model, table, scores, each));
    cli_progress_clear();
    print_all(settings, model, each);
out:;
    int result = cli_finish(settings, status);
    for (size_t p = 0; each != NULL && p < targets; p++) {
        free(each[p].confusion.rows);
    }
    thiele_table_destroy(table);
    thiele_model_destroy(model);
    free(scores);
    free(each);
    return result;
}

const cli_command cmd_score = {
    .name = "score",
    .usage = "MODEL DATA... [OPTIONS]",
    .summary = "score a model's predictions",
    .about =
        "Predicts a table that has the target column and says how good the predictions and their uncertainties are.",
    .operand = {"MODEL", "DATA"},
    .repeated = "DATA",
    .many = CLI_OPERANDS,
    .groups = groups,
    .examples = "  thiele score model.thiele test.csv\n"
                "  thiele score model.thiele test.csv --json\n",
    .run = run,
};
