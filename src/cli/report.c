/*
 * A model for people: what it is, what it learned, how much to trust it. Made from the description that the library
 * gives as JSON (docs/file-format.md lists its fields); a field that is absent is left out.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "cli.h"

static const char *text_of(const json_t *json, const char *field)
{
    const char *text = json_string_value(json_object_get(json, field));
    return text != NULL ? text : "-";
}

static char *number_of(const json_t *json, const char *field, char buffer[CLI_NUMBER_MAX])
{
    const json_t *value = json_object_get(json, field);
    return cli_short(json_is_number(value) ? json_number_value(value) : NAN, buffer);
}

static long long count_of(const json_t *json, const char *field)
{
    return (long long)json_integer_value(json_object_get(json, field));
}

/* Each target with its labels, where it has such. */
static void print_targets(const json_t *targets)
{
    for (size_t p = 0; p < json_array_size(targets); p++) {
        const json_t *target = json_array_get(targets, p);
        const json_t *labels = json_object_get(target, "labels");
        char text[64] = "";
        size_t length = 0;
        for (size_t l = 0; l < json_array_size(labels) && length < sizeof text; l++) {
            const char *label = json_string_value(json_array_get(labels, l));
            const char *quote = strchr(label, ',') != NULL ? "'" : "";
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%s", l > 0 ? ", " : "", quote, label,
                                       quote);
        }
        bool cut = length >= sizeof text;
        cli_row(p == 0 ? "target" : NULL, json_array_size(labels) > 0 ? "%s (%s%s)" : "%s", text_of(target, "name"),
                text, cut ? "..." : "");
    }
}

/* "2 constant columns: a, b" */
static void print_dropped(const json_t *dropped)
{
    enum { SHOWN = 5 };
    size_t count = json_array_size(dropped);
    char text[256] = "";
    size_t length = 0;
    for (size_t i = 0; i < count && i < SHOWN && length < sizeof text; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%.40s", i > 0 ? ", " : "",
                                   json_string_value(json_array_get(dropped, i)));
    }
    if (count > 0) {
        cli_row("left out", "%zu constant column%s: %s%s", count, count == 1 ? "" : "s", text,
                count > SHOWN ? ", ..." : "");
    }
}

/* The inputs as a list that is folded between names, then the target. */
static void print_columns(const json_t *columns)
{
    enum { WIDTH = 79, MOST = 40, SHOWN = 20 };
    const json_t *inputs = json_object_get(columns, "inputs");
    size_t count = json_array_size(inputs);
    int column = printf("%-14s", "inputs");
    for (size_t i = 0; i < (count > MOST ? SHOWN : count); i++) {
        char text[256];
        const json_t *input = json_array_get(inputs, i);
        size_t levels = json_array_size(json_object_get(input, "levels"));
        const char *since = json_string_value(json_object_get(input, "since"));
        int length = levels > 0 ? snprintf(text, sizeof text, "%.200s (%zu levels)", text_of(input, "name"), levels)
                     : since != NULL
                         ? snprintf(text, sizeof text, "%.200s (days since %s)", text_of(input, "name"), since)
                         : snprintf(text, sizeof text, "%.200s", text_of(input, "name"));
        if (i > 0 && column + 2 + length > WIDTH) {
            printf(",\n%-14s", "");
            column = 14;
        } else {
            column += printf("%s", i > 0 ? ", " : "");
        }
        cli_put(stdout, text);
        column += length;
    }
    if (count > MOST) {
        printf(", ... (%zu in all)", count);
    }
    putchar('\n');
    print_dropped(json_object_get(columns, "dropped"));
    print_targets(json_object_get(columns, "targets"));
}

/* "a (12%), b (11%)", of the inputs that matter so much; cut where the line is full. */
static void list_matters(const json_t *inputs, const char *word, char *text, size_t capacity)
{
    enum { FULL = 48 };
    size_t length = 0, more = 0;
    char number[CLI_NUMBER_MAX];
    *text = '\0';
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        const json_t *input = json_array_get(inputs, i);
        double percent = 100.0 * json_number_value(json_object_get(input, "share"));
        if (strcmp(text_of(input, "matters"), word) != 0) {
            continue;
        }
        if (length > FULL) {
            more++;
            continue;
        }
        cli_short(percent < 0.05 ? 0.0 : percent < 10.0 ? round(10.0 * percent) / 10.0 : round(percent), number);
        length += (size_t)snprintf(text + length, capacity - length, "%s%.60s (%s%%)", length > 0 ? ", " : "",
                                   text_of(input, "name"), number);
    }
    if (more > 0) {
        snprintf(text + length, capacity - length, " and %zu more", more);
    }
}

/* Which inputs predictions go with, in words and numbers. */
static void print_relevance(const json_t *relevance)
{
    static const struct {
        const char *word, *said;
    } ranks[] = {
        {"most", "matters most"}, {"much", "matters"}, {"little", "matters little"}, {"hardly", "hardly matters"}};
    const char *label = "relevance";
    char text[512];
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++) {
        list_matters(json_object_get(relevance, "inputs"), ranks[r].word, text, sizeof text);
        if (*text != '\0') {
            cli_row(label, "%s: %s", ranks[r].said, text);
            label = NULL;
        }
    }
    if (label == NULL) {
        cli_row(NULL, "(share of how far predictions move with it, over %lld pairs of %s)",
                count_of(relevance, "pairs"), text_of(relevance, "of"));
    }
}

static void print_parameters(const json_t *parameters)
{
    enum { WIDEST = 48 };
    size_t width = 0;
    for (size_t i = 0; i < json_array_size(parameters); i++) {
        size_t length = strlen(text_of(json_array_get(parameters, i), "name"));
        width = length > width && length <= WIDEST ? length : width;
    }
    for (size_t i = 0; i < json_array_size(parameters); i++) {
        char number[CLI_NUMBER_MAX];
        const json_t *parameter = json_array_get(parameters, i);
        const char *name = text_of(parameter, "name");
        bool fixed = json_is_true(json_object_get(parameter, "fixed"));
        bool redundant = json_is_true(json_object_get(parameter, "redundant"));
        bool standardised = json_is_true(json_object_get(parameter, "standardised"));
        const char *prior = json_string_value(json_object_get(parameter, "prior"));
        bool noise = strncmp(name, "noise", 5) == 0;
        cli_row(i == 0 ? "learned" : NULL, "%-*s  %s%s%s%s%s%s", (int)width, name,
                number_of(parameter, "value", number),
                !noise         ? ""
                : standardised ? "  (variance of the standardised targets)"
                               : "  (variance)",
                standardised && !noise ? "  (standard deviations)" : "",
                redundant ? "  (held: redundant)"
                : fixed   ? "  (fixed)"
                          : "",
                prior != NULL ? "  prior " : "", prior != NULL ? prior : "");
    }
}

/* Where predictions have another noise than the bound: that one, and what they take of the variances. */
static void print_made_with(const json_t *json)
{
    const json_t *latent = json_array_get(json_object_get(json, "latents"), 0);
    const json_t *target = json_array_get(json_object_get(json_object_get(json, "columns"), "targets"), 0);
    double scale = json_number_value(json_object_get(target, "scale"));
    double noise = json_number_value(json_object_get(latent, "noise")) * scale * scale;
    if (noise > 0.0 && json_array_size(json_object_get(json, "latents")) == 1) {
        cli_row(NULL, "for predictions, which scale the variances of f by %.3g; the noise in the bound is %.5g",
                json_number_value(json_object_get(latent, "tau")), noise);
    }
}

/* What the values of kernels that have an origin refer to. */
static void print_origin(const json_t *json)
{
    const char *kernel = text_of(json, "kernel");
    const json_t *inputs = json_object_get(json_object_get(json, "columns"), "inputs");
    bool centred = false;
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        centred = centred || json_number_value(json_object_get(json_array_get(inputs, i), "center")) != 0;
    }
    if (centred && (strstr(kernel, "linear") != NULL || strstr(kernel, "polynomial") != NULL)) {
        cli_row(NULL, "(linear and polynomial kernels see each input minus its mean)");
    }
}

/* Why it stopped, in words. A model with draws was learned before anyone asked to stop. */
static const char *stop_words(const char *stop, bool sampled)
{
    static const struct {
        const char *stop, *words;
    } table[] = {
        {"converged", "converged"},
        {"iterations", "stopped at the iteration limit"},
        {"deadline", "stopped at the deadline"},
        {"cancelled", "cancelled: stopped before it had converged"},
        {"fixed", "none: values were given, already chosen, or kept at their first guesses"},
    };
    if (sampled && strcmp(stop, "cancelled") == 0) {
        return "cancelled: stopped before all draws were taken";
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(stop, table[i].stop) == 0) {
            return table[i].words;
        }
    }
    return stop;
}

/* Of classes one line; of numbers two: errors in the units of the target, and whether the uncertainties can be
 * believed. */
static void print_summary(const char *label, const json_t *scores)
{
    char rmse[CLI_NUMBER_MAX], mae[CLI_NUMBER_MAX], nlpd[CLI_NUMBER_MAX], smse[CLI_NUMBER_MAX];
    if (count_of(scores, "rows") == 0) {
        return;
    }
    if (json_is_number(json_object_get(scores, "error_rate"))) {
        bool ranked = json_is_number(json_object_get(scores, "auc"));
        cli_row(label, "%lld rows: error rate %s, NLP %s%s%s", count_of(scores, "rows"),
                number_of(scores, "error_rate", rmse), number_of(scores, "nlp", nlpd), ranked ? ", AUC " : "",
                ranked ? number_of(scores, "auc", mae) : "");
        return;
    }
    cli_row(label, "%lld rows: RMSE %s, MAE %s, SMSE %s, NLPD %s", count_of(scores, "rows"),
            number_of(scores, "rmse", rmse), number_of(scores, "mae", mae), number_of(scores, "smse", smse),
            number_of(scores, "nlpd", nlpd));
    double inside[3];
    static const char *const fields[] = {"coverage50", "coverage90", "coverage95"};
    for (int i = 0; i < 3; i++) {
        inside[i] = 100 * json_number_value(json_object_get(scores, fields[i]));
    }
    if (json_is_number(json_object_get(scores, fields[0]))) {
        cli_row(NULL, "%.1f%%, %.1f%%, %.1f%% of them lie inside the 50%%, 90%%, 95%% intervals", inside[0], inside[1],
                inside[2]);
    }
}

/* The evidence, the bound on it, or that of the model which stands for the exact one; of how many rows. */
static void print_evidence(const json_t *json)
{
    static const struct {
        const char *field, *words;
    } kinds[] = {
        {"log_marginal_likelihood", "log marginal likelihood"},
        {"approximate_log_evidence", "log marginal likelihood of the approximate model (not a bound)"},
        {"bound", "log marginal likelihood, lower bound"},
    };
    const json_t *blocks = json_object_get(json, "blocks");
    long long rows = count_of(blocks, "evidence_rows");
    char number[CLI_NUMBER_MAX], of[64] = "";
    size_t kind = 0;
    while (kind < 2 && json_object_get(json, kinds[kind].field) == NULL) {
        kind++;
    }
    if (blocks != NULL && json_is_true(json_object_get(blocks, "estimate"))) {
        snprintf(of, sizeof of, ", estimated from the blocks seen");
    } else if (blocks != NULL && rows < count_of(json, "rows")) {
        snprintf(of, sizeof of, ", for the %lld rows that were learned from", rows);
    } else if (json_object_get(json, "stream") != NULL) {
        snprintf(of, sizeof of, ", for the rows of the fit");
    }
    cli_row("evidence", "%s %s%s", kinds[kind].words, number_of(json, kinds[kind].field, number), of);
}

/* The rows that leave-one-out misses by most, where that is more than chance explains. */
static void print_worst(const json_t *worst)
{
    enum { FAR = 3 }; /* standard deviations: 3 in 1000 rows of a true model */
    const char *label = "far off";
    for (size_t i = 0; i < json_array_size(worst); i++) {
        const json_t *entry = json_array_get(worst, i);
        double z = json_number_value(json_object_get(entry, "z"));
        if (fabs(z) > FAR) {
            cli_row(label, "row %lld, %.1f standard deviations %s its prediction", count_of(entry, "row"), fabs(z),
                    z > 0 ? "above" : "below");
            label = NULL;
        }
    }
}

/* Of several targets each under its name. */
static void print_holdout(const json_t *json)
{
    const json_t *holdout = json_object_get(json, "holdout");
    const json_t *targets = json_object_get(json_object_get(json, "columns"), "targets");
    size_t count = json_array_size(holdout);
    for (size_t p = 0; p < count; p++) {
        const json_t *scores = json_array_get(holdout, p);
        if (count > 1 && count_of(scores, "rows") > 0) {
            cli_row(p == 0 ? "held out" : NULL, "target %s:", text_of(json_array_get(targets, p), "name"));
        }
        print_summary(count == 1 ? "held out" : NULL, scores);
    }
}

/* Whether any rows were predicted that the model had not learned. */
static bool is_scored(const json_t *json)
{
    return count_of(json_object_get(json, "loo"), "rows") > 0 ||
           count_of(json_array_get(json_object_get(json, "holdout"), 0), "rows") > 0 ||
           json_is_object(json_object_get(json, "stream"));
}

/* What there was in the residuals that the model's law does not know. */
static void print_tails(const json_t *json)
{
    const json_t *tails = json_object_get(json, "tails");
    const json_t *targets = json_object_get(json_object_get(json, "columns"), "targets");
    bool calibrated = json_object_get(json, "calibration") != NULL;
    bool gaussian = strncmp(text_of(json, "likelihood"), "gaussian", 8) == 0;
    for (size_t p = 0; p < json_array_size(tails); p++) {
        const json_t *own = json_array_get(tails, p);
        char name[128] = "", number[CLI_NUMBER_MAX];
        if (!json_is_true(json_object_get(own, "heavy"))) {
            continue;
        }
        if (json_array_size(tails) > 1) {
            snprintf(name, sizeof name, "%.100s: ", text_of(json_array_get(targets, p), "name"));
        }
        cli_row("heavy tails",
                "%s%lld of %lld residuals are beyond 3 robust standard deviations, where about %s would be expected",
                name, count_of(own, "beyond"), count_of(own, "rows"), number_of(own, "expected", number));
        if (gaussian || !calibrated) {
            cli_row(NULL, "(more than the noise of the model explains: try %s%s%s)",
                    gaussian ? "--likelihood student-t" : "", gaussian && !calibrated ? ", or " : "",
                    calibrated ? "" : "--calibrate");
        }
    }
}

/* T(z)/z at the 90% interval. */
static void print_stretch(const char *label, const char *name, const json_t *law)
{
    static const double Z_90 = 1.6448536269514722;
    const json_t *level = json_object_get(law, "levels"), *scores = json_object_get(law, "scores");
    char number[CLI_NUMBER_MAX];
    for (size_t k = 0; k < json_array_size(level); k++) {
        if (json_number_value(json_array_get(level, k)) == 0.9) {
            cli_row(label, "%s90%% intervals are %s times as wide as without", name,
                    cli_short(json_number_value(json_array_get(scores, k)) / Z_90, number));
        }
    }
}

/* By which rows, and how much it changed; the scores above are those before it. */
static void print_calibration(const json_t *json)
{
    const json_t *own = json_object_get(json, "calibration"), *laws = json_object_get(own, "targets");
    const json_t *targets = json_object_get(json_object_get(json, "columns"), "targets");
    char number[CLI_NUMBER_MAX];
    if (own == NULL) {
        return;
    }
    cli_row("calibrated", "by %lld %s rows (the scores of the fit are from before)", count_of(own, "rows"),
            json_is_true(json_object_get(own, "left_out")) ? "left-out" : "held-out");
    if (laws == NULL) {
        cli_row(NULL, "class probabilities at temperature %s", number_of(own, "temperature", number));
    }
    for (size_t p = 0; p < json_array_size(laws); p++) {
        char name[128] = "";
        if (json_array_size(laws) > 1) {
            snprintf(name, sizeof name, "%.100s: ", text_of(json_array_get(targets, p), "name"));
        }
        print_stretch(NULL, name, json_array_get(laws, p));
    }
}

/* "1.2 MB" */
static const char *size_of(const json_t *json, const char *field, char text[CLI_NUMBER_MAX])
{
    static const char *const unit[] = {"bytes", "kB", "MB", "GB", "TB"};
    double size = json_number_value(json_object_get(json, field));
    size_t k = 0;
    for (; size >= 999.5 && k + 1 < sizeof unit / sizeof *unit; k++) {
        size /= 1000.0;
    }
    snprintf(text, CLI_NUMBER_MAX, "%.3g %s", size, unit[k]);
    return text;
}

/* Rows of the table that go wherever the model goes. */
static void print_contents(const json_t *json)
{
    const json_t *rows = json_object_get(json, "training_rows");
    char size[CLI_NUMBER_MAX];
    if (rows != NULL) {
        cli_row("contains", "%lld training rows of %lld input%s%s (%s)", count_of(rows, "rows"),
                count_of(rows, "inputs"), count_of(rows, "inputs") == 1 ? "" : "s",
                json_is_true(json_object_get(rows, "targets")) ? " with their targets" : "",
                size_of(rows, "bytes", size));
    }
    if (json_object_get(json, "file_bytes") != NULL) {
        cli_row("file", "%s", size_of(json, "file_bytes", size));
    }
}

static void print_sparse(const json_t *sparse)
{
    char number[CLI_NUMBER_MAX];
    if (sparse != NULL) {
        cli_row("sparse", "%lld inducing inputs, posterior %s, optimiser %s", count_of(sparse, "inducing"),
                text_of(sparse, "posterior"), text_of(sparse, "optimizer"));
        if (count_of(sparse, "mean_inducing") > count_of(sparse, "inducing")) {
            cli_row(NULL, "%lld basis functions of the mean", count_of(sparse, "mean_inducing"));
        }
        cli_row(NULL, "%lld rows per step, %s epochs", count_of(sparse, "batch"), number_of(sparse, "epochs", number));
    }
}

static void print_blocks(const json_t *blocks)
{
    char number[CLI_NUMBER_MAX];
    if (blocks == NULL) {
        return;
    }
    const char *column = json_string_value(json_object_get(blocks, "partition"));
    bool once = json_number_value(json_object_get(blocks, "passes")) == 1.0;
    cli_row("blocks", "%lld inducing inputs, %lld blocks of at most %lld rows, %s pass%s over them%s",
            count_of(blocks, "inducing"), count_of(blocks, "blocks"), count_of(blocks, "largest"),
            number_of(blocks, "passes", number), once ? "" : "es",
            json_is_true(json_object_get(blocks, "anytime")) ? " (anytime)" : "");
    if (column != NULL) {
        cli_row(NULL, "one block for each value of '%s'", column);
    }
    if (json_is_number(json_object_get(blocks, "held_out_rmse"))) {
        cli_row(NULL, "RMSE %s on rows held out of some blocks", number_of(blocks, "held_out_rmse", number));
    }
    const json_t *jumps = json_object_get(blocks, "jumps");
    if (jumps != NULL) {
        char largest[CLI_NUMBER_MAX];
        cli_row(NULL,
                "where blocks meet, predictions jump by %s standard deviations (median of %lld points; at most %s)",
                number_of(jumps, "median", number), count_of(jumps, "points"), number_of(jumps, "largest", largest));
    }
}

/* Errors of predictions of rows before they were learned, target by target. */
static void print_prequential(const char *words, const json_t *list, const json_t *targets)
{
    for (size_t p = 0; p < json_array_size(list); p++) {
        char error[CLI_NUMBER_MAX], loss[CLI_NUMBER_MAX];
        const json_t *scores = json_array_get(list, p);
        bool labels = json_is_number(json_object_get(scores, "error_rate")), several = json_array_size(list) > 1;
        cli_row(NULL, "%s%s%s %lld rows, each predicted before it was learned: %s %s, %s %s",
                several ? text_of(json_array_get(targets, p), "name") : "", several ? ": " : "", words,
                count_of(scores, "rows"), labels ? "error rate" : "RMSE",
                number_of(scores, labels ? "error_rate" : "rmse", error), labels ? "NLP" : "NLPD",
                number_of(scores, labels ? "nlp" : "nlpd", loss));
    }
}

/* What was learned since the fit. */
static void print_stream(const json_t *stream, const json_t *targets)
{
    char number[CLI_NUMBER_MAX];
    if (stream == NULL) {
        return;
    }
    double forget = json_number_value(json_object_get(stream, "forget"));
    const json_t *time = json_object_get(stream, "time");
    if (forget > 0) {
        cli_row("stream", "%lld rows learned since the fit; about the last %s count", count_of(stream, "rows"),
                cli_short(forget, number));
    } else {
        cli_row("stream", "%lld rows learned since the fit", count_of(stream, "rows"));
    }
    if (time != NULL) {
        cli_row(NULL, "what they say counts half as much after %s by column '%s'",
                cli_short(json_number_value(json_object_get(time, "half_life")), number), text_of(time, "column"));
    }
    if (count_of(stream, "rows") > 0) {
        print_prequential("all", json_object_get(stream, "prequential"), targets);
        print_prequential("the last", json_object_get(stream, "recent"), targets);
    }
}

/* How the chains went, and whether to believe them. */
static void print_sampling(const json_t *sampling)
{
    char rhat[CLI_NUMBER_MAX], least[CLI_NUMBER_MAX], median[CLI_NUMBER_MAX], lag[CLI_NUMBER_MAX];
    double unmixed = json_number_value(json_object_get(sampling, "share_unmixed"));
    if (sampling == NULL) {
        return;
    }
    cli_row("sampling", "%s, %lld chain%s of %lld draws, %lld kept", text_of(sampling, "sampler"),
            count_of(sampling, "chains"), count_of(sampling, "chains") == 1 ? "" : "s", count_of(sampling, "draws"),
            count_of(sampling, "kept"));
    cli_row(NULL, "R-hat at most %s, lag-1 autocorrelation %s, effective draws %s (median), %s (least)",
            number_of(sampling, "rhat", rhat), number_of(sampling, "lag1", lag),
            number_of(sampling, "ess_median", median), number_of(sampling, "ess_least", least));
    if (!json_is_number(json_object_get(sampling, "rhat"))) {
        cli_row("warning", "too few draws to tell whether the chains agree: use more --draws");
    } else if (unmixed > 0) {
        cli_row("warning", "the chains did not mix at %.3g%% of the rows: use more --draws, or another sampler",
                100.0 * unmixed);
    }
    if (count_of(sampling, "divergences") > 0) {
        cli_row("warning", "%lld moves of hmc diverged: use a smaller --step", count_of(sampling, "divergences"));
    }
}

/* What the fit took, and what speaks for it: "by ..., ...", folded between words. */
static void print_choice(const json_t *json, const char *field)
{
    enum { ROOM = 65 };
    const char *why = json_string_value(json_object_get(json, field)), *before = "chosen ";
    while (why != NULL && *why != '\0') {
        size_t length = strlen(why), room = ROOM - strlen(before);
        for (size_t cut = room; length > room && cut > 0; cut--) {
            length = why[cut] == ' ' ? cut : length;
            room = why[cut] == ' ' ? length : room;
        }
        cli_row(NULL, "%s%.*s", before, (int)length, why);
        why += length + strspn(why + length, " ");
        before = "";
    }
}

static void report_one(const json_t *json)
{
    char number[CLI_NUMBER_MAX];
    cli_row("method", "%s: %s", text_of(json, "method"), text_of(json, "why"));
    cli_row("likelihood", "%s (expectations: %s)", text_of(json, "likelihood"), text_of(json, "expectation"));
    print_choice(json, "noise_why");
    cli_row("kernel", "%s", text_of(json, "kernel"));
    print_choice(json, "kernel_why");
    cli_row("mean", "%s", text_of(json, "mean"));
    cli_row("rows", "%lld", count_of(json, "rows"));
    print_sparse(json_object_get(json, "sparse"));
    print_blocks(json_object_get(json, "blocks"));
    print_contents(json);
    print_stream(json_object_get(json, "stream"), json_object_get(json_object_get(json, "columns"), "targets"));
    print_sampling(json_object_get(json, "sampling"));
    print_columns(json_object_get(json, "columns"));
    print_relevance(json_object_get(json, "relevance"));
    print_parameters(json_object_get(json, "parameters"));
    print_made_with(json);
    print_origin(json);
    print_evidence(json);
    if (json_number_value(json_object_get(json, "jitter")) > 0) {
        cli_row("jitter", "%s added to the diagonal to factorise it", number_of(json, "jitter", number));
    }
    bool blocks = json_object_get(json, "blocks") != NULL;
    cli_row("search",
            blocks ? "%s (%lld iterations or steps, %lld evaluations of blocks)"
                   : "%s (%lld iterations on all rows, %lld evaluations in all phases)",
            stop_words(text_of(json, "stop"), json_object_get(json, "sampling") != NULL), count_of(json, "iterations"),
            count_of(json, "evaluations"));
    print_summary("leave-one-out", json_object_get(json, "loo"));
    print_holdout(json);
    if (!is_scored(json)) {
        cli_row("how good", "not measured: score other rows (thiele score), or fit with --holdout 0.2");
    }
    print_worst(json_object_get(json, "worst"));
    print_tails(json);
    print_calibration(json);
}

/* Targets that have a model each follow each other. */
int cli_report(const char *description)
{
    json_t *json = json_loads(description, 0, NULL);
    if (json == NULL) {
        return cli_fail("the model's description cannot be read: out of memory");
    }
    const json_t *parts = json_object_get(json, "parts");
    for (size_t p = 0; p < json_array_size(parts); p++) {
        const json_t *part = json_array_get(parts, p);
        const json_t *targets = json_object_get(json_object_get(part, "columns"), "targets");
        cli_row("model", "%zu of %zu: %s", p + 1, json_array_size(parts), text_of(json_array_get(targets, 0), "name"));
        report_one(part);
        putchar('\n');
    }
    if (parts == NULL) {
        report_one(json);
    }
    json_decref(json);
    return CLI_DONE;
}
