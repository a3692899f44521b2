/* thiele combine: files of sums (thiele sums) are added up, and a model is conditioned on them. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const cli_option combine_options[] = {
    {"output", 'o', cli_parse_text, CLI_AT(output), "OUT",
     "the model to write; a name that ends in .sums gets the sum of the sums instead; required", 0, 0},
    {0},
};

static const cli_group groups[] = {
    {"Result", combine_options}, {"Machine", cli_machine_options}, {"Output", cli_output_options}, {0}};

/* FNV-1a of a file's bytes; 0: it cannot be read, which whoever loads it will say. */
static uint64_t mark_file(const char *path)
{
    unsigned char bytes[4096];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return 0;
    }
    for (size_t count; (count = fread(bytes, 1, sizeof bytes, stream)) > 0;) {
        for (size_t i = 0; i < count; i++) {
            hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
        }
    }
    fclose(stream);
    return hash;
}

static bool is_sums(const char *path)
{
    static const char ending[] = ".sums";
    size_t length = strlen(path), own = sizeof ending - 1;
    return length > own && strcmp(path + length - own, ending) == 0;
}

static void print_outcome(const cli_settings *settings, const thiele_sums *sums)
{
    int parts = settings->operands - 1;
    if (settings->json) {
        cli_json json = {.stream = stdout, .inline_from = 1};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "saved", settings->output);
        cli_json_integer(&json, "parts", parts);
        cli_json_integer(&json, "rows", thiele_sums_rows(sums));
        cli_json_close(&json, '}');
        return;
    }
    cli_row("rows", "%lld of %d part%s", (long long)thiele_sums_rows(sums), parts, parts == 1 ? "" : "s");
    cli_row("saved to", "%s", settings->output);
}

/*
 * Parts that are the same to the last bit are one part twice: its rows would count twice, and nobody would notice. Only
 * parts without rows may be alike. *refused: it has been said why.
 */
static thiele_status add_parts(thiele_sums *sums, cli_settings *settings, bool *refused)
{
    int count = settings->operands;
    uint64_t *mark = cli_own(settings, (size_t)count * sizeof *mark);
    thiele_status status = THIELE_OK;
    *refused = mark == NULL;
    for (int i = 1; i < count && !*refused && status == THIELE_OK; i++) {
        int64_t before = thiele_sums_rows(sums);
        mark[i] = mark_file(settings->operand[i]);
        status = thiele_sums_load(sums, settings->ctx, settings->operand[i]);
        if (thiele_sums_rows(sums) == before) {
            mark[i] = 0;
        }
        for (int j = 1; j < i && mark[i] != 0 && !*refused; j++) {
            if (mark[i] == mark[j]) {
                *refused = true;
                cli_fail("%s and %s hold the same rows: leave one of them out", settings->operand[j],
                         settings->operand[i]);
            }
        }
    }
    return status;
}

static thiele_status combine(cli_settings *settings, const thiele_model *model, thiele_sums **sums, bool *refused)
{
    thiele_model *conditioned = NULL;
    thiele_status status;
    CLI_TRY(thiele_sums_open(sums, settings->ctx, model));
    CLI_TRY(add_parts(*sums, settings, refused));
    if (*refused) {
        goto out;
    }
    if (is_sums(settings->output)) {
        CLI_TRY(thiele_sums_save(*sums, settings->ctx, settings->output));
    } else {
        CLI_TRY(thiele_sums_model(*sums, settings->ctx, &conditioned));
        CLI_TRY(thiele_model_save(conditioned, settings->ctx, settings->output));
    }
    print_outcome(settings, *sums);
out:
    thiele_model_destroy(conditioned);
    return status;
}

static int run(cli_settings *settings)
{
    thiele_model *model = NULL;
    thiele_sums *sums = NULL;
    thiele_status status;
    bool refused = false;
    if (settings->output == NULL || strcmp(settings->output, "-") == 0) {
        return cli_misuse("combine needs -o OUT, the file to write");
    }
    const char *const inputs[] = {settings->operand[0], NULL};
    int result = cli_check_output(settings->output, inputs);
    for (int i = 1; i < settings->operands && result == CLI_DONE; i++) {
        const char *const part[] = {settings->operand[i], NULL};
        result = cli_check_output(settings->output, part);
    }
    if (result != CLI_DONE) {
        return result;
    }
    CLI_TRY(cli_load_model(&model, settings, settings->operand[0]));
    CLI_TRY(combine(settings, model, &sums, &refused));
out:
    result = refused ? CLI_FAILED : cli_finish(settings, status);
    thiele_sums_close(sums);
    thiele_model_destroy(model);
    return result;
}

const cli_command cmd_combine = {
    .name = "combine",
    .usage = "MODEL SUMS... -o OUT [OPTIONS]",
    .summary = "condition a model on sums of parts",
    .about = "Adds up what 'thiele sums' wrote for parts of the rows, and conditions the model that it was made with "
             "on all of them, and on nothing else: neither the order of the parts nor where they begin changes a "
             "bit of the result. OUT may be sums again, to add up many parts in steps.",
    .operand = {"MODEL", "SUMS"},
    .repeated = "SUMS",
    .many = CLI_OPERANDS,
    .groups = groups,
    .examples = "  thiele combine model.thiele part-*.sums -o all.thiele\n"
                "  thiele combine model.thiele monday/*.sums -o monday.sums\n",
    .run = run,
};
