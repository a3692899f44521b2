/*
 * Learning from rows that arrive: what update and fit --stream share. Whatever ends it (the end of the rows, a
 * deadline, a signal, a line that is no row), what was learned by then is saved.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* How long rows are waited for before the ones that came are learned, and signals are looked at; seconds. */
static const double PATIENCE = 0.1;
/* Of the time until a deadline, what may be spent on waiting for all the rows of the first fit; then these are enough.
 */
static const double WAITING_SHARE = 0.3;
enum { LEAST = 20 };
/* Rows that are asked for at a time, about. */
enum { CHUNK = 4096 };

thiele_status cli_open_feed(thiele_feed **feed, cli_settings *settings, const char *path)
{
    settings->feed.skip_bad = settings->update.skip_bad;
    return thiele_feed_open(feed, settings->ctx, path, &settings->table, &settings->feed);
}

thiele_status cli_wait_for_rows(thiele_feed *feed, cli_settings *settings, int64_t rows, thiele_table **table)
{
    double deadline = settings->update.deadline;
    *table = NULL;
    thiele_status status = THIELE_OK;
    while (status == THIELE_OK && *table == NULL && !thiele_feed_ended(feed) && cli_signal() == NULL &&
           (deadline == 0.0 || cli_running() < deadline)) {
        bool enough = deadline > 0.0 && cli_running() > WAITING_SHARE * deadline;
        status = thiele_feed_next(feed, settings->ctx, enough ? LEAST : rows, rows, PATIENCE, table);
    }
    return status;
}

/* Batch after batch from a feed. */
static thiele_status learn_feed(cli_settings *settings, thiele_learner *learner, thiele_feed *feed)
{
    int64_t batch = thiele_learner_batch(learner);
    int64_t most = batch < CHUNK ? CHUNK / batch * batch : batch;
    thiele_status status = THIELE_OK;
    while (status == THIELE_OK && !thiele_feed_ended(feed) && thiele_learner_stop(learner) == THIELE_STOP_CONVERGED) {
        thiele_table *table = NULL;
        status = thiele_feed_next(feed, settings->ctx, 1, most, PATIENCE, &table);
        if (status == THIELE_OK) {
            status = thiele_learner_add(learner, settings->ctx, table);
        }
        thiele_table_destroy(table);
    }
    return status;
}

typedef struct outcome {
    const char *output;
    int64_t rows, skipped;
    double seconds;
} outcome;

static thiele_status print_outcome(cli_settings *settings, const thiele_model *model, const outcome *o)
{
    char *description = NULL;
    double rate = (double)o->rows / (o->seconds + 1e-9);
    thiele_status status = thiele_model_describe(model, settings->ctx, &description);
    if (status != THIELE_OK) {
        return status;
    }
    if (settings->json) {
        cli_json json = {.stream = stdout, .inline_from = 2};
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "saved", o->output);
        cli_json_number(&json, "seconds", o->seconds);
        cli_json_integer(&json, "rows", o->rows);
        cli_json_number(&json, "rows_per_second", rate);
        cli_json_integer(&json, "skipped", o->skipped);
        cli_json_raw(&json, "model", description);
        cli_json_close(&json, '}');
    } else {
        char duration[32], number[CLI_NUMBER_MAX];
        cli_duration(o->seconds, duration, sizeof duration);
        cli_report(description);
        cli_row("learned", "%lld rows in %s (%s rows/s)", (long long)o->rows, duration, cli_short(rate, number));
        if (o->skipped > 0) {
            cli_row(NULL, "%lld rows were left out because they could not be used", (long long)o->skipped);
        }
        cli_row("saved to", "%s", o->output);
    }
    thiele_free(description);
    return THIELE_OK;
}

/* Saves what the learner has and says so; sentence: why it ended before the last row, or NULL. */
static int conclude(cli_settings *settings, thiele_learner *learner, outcome *o, const char *sentence)
{
    thiele_model *model = NULL;
    thiele_status status;
    CLI_TRY(thiele_learner_save(learner, settings->ctx, o->output));
    cli_progress_clear();
    if (sentence == NULL) {
        CLI_TRY(thiele_learner_model(learner, settings->ctx, &model));
        CLI_TRY(print_outcome(settings, model, o));
    }
out:;
    int result = cli_finish(settings, status);
    thiele_model_destroy(model);
    if (result == CLI_DONE && sentence != NULL) {
        result = cli_fail("%s; the %lld rows before it are learned and saved to %s", sentence, (long long)o->rows,
                          o->output);
    } else if (result == CLI_DONE && thiele_learner_stop(learner) == THIELE_STOP_CANCELLED && !settings->feed.follow) {
        result = cli_fail("stopped by %s: the %lld rows learned so far are in %s", cli_signal(), (long long)o->rows,
                          o->output);
    }
    return result;
}

int cli_learn(cli_settings *settings, const thiele_model *model, thiele_feed *feed, const thiele_table *table,
              const char *output)
{
    thiele_learner *learner = NULL;
    thiele_stream_facts before, after;
    char *sentence = NULL;
    double start = cli_seconds();
    int result;
    settings->update.snapshot_file = settings->update.snapshot > 0.0 ? output : NULL;
    thiele_model_stream(model, &before);
    thiele_status status = thiele_learner_open(&learner, settings->ctx, model, &settings->update);
    if (status != THIELE_OK) {
        return cli_finish(settings, status);
    }
    status = feed != NULL ? learn_feed(settings, learner, feed) : thiele_learner_add(learner, settings->ctx, table);
    if (status == THIELE_OK) {
        status = thiele_learner_settle(learner, settings->ctx);
    }
    thiele_learner_facts(learner, &after);
    outcome o = {.output = output,
                 .rows = after.rows - before.rows,
                 .skipped = after.skipped - before.skipped + (feed != NULL ? thiele_feed_skipped(feed) : 0),
                 .seconds = cli_seconds() - start};
    sentence = status != THIELE_OK ? strdup(thiele_context_message(settings->ctx)) : NULL;
    bool keep = status == THIELE_OK || (o.rows > 0 && sentence != NULL);
    result = keep ? conclude(settings, learner, &o, sentence) : cli_finish(settings, status);
    free(sentence);
    thiele_learner_close(learner);
    return result;
}
