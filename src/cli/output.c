/*
 * Numbers, scores and JSON on their way out: for people five significant digits in aligned columns, for programs the
 * shortest text that reads back as the same double.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

char *cli_short(double value, char buffer[CLI_NUMBER_MAX])
{
    snprintf(buffer, CLI_NUMBER_MAX, isnan(value) ? "-" : "%.5g", value);
    return buffer;
}

char *cli_exact(double value, char buffer[CLI_NUMBER_MAX])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, CLI_NUMBER_MAX, "%.*g", digits, value);
        if (strtod(buffer, NULL) == value) {
            break;
        }
    }
    return buffer;
}

/* --- text ----------------------------------------------------------------------------------------------------------
 */

/* The length of the well-formed UTF-8 sequence at c, 0 when there is none. */
static int utf8_length(const unsigned char *c)
{
    int length = *c < 0x80                 ? 1
                 : *c >= 0xc2 && *c < 0xe0 ? 2
                 : *c >= 0xe0 && *c < 0xf0 ? 3
                 : *c >= 0xf0 && *c < 0xf5 ? 4
                                           : 0;
    for (int i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    bool surrogate = *c == 0xed && c[1] > 0x9f;
    bool beyond = *c == 0xf4 && c[1] > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

/* A control character at c, of one byte or two, which a terminal would obey. */
static bool is_control(const unsigned char *c)
{
    return *c < ' ' || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0);
}

/* "`fix_inducing`", as the library has it, is --fix-inducing here: writes it, and returns the bytes that it took. */
static int put_option(FILE *stream, const char *text)
{
    size_t length = strspn(text + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (text[length + 1] != '`' || !cli_has_option(text + 1, length)) {
        return 0;
    }
    fputs("--", stream);
    for (size_t i = 1; i <= length; i++) {
        fputc(text[i] == '_' ? '-' : text[i], stream);
    }
    return (int)length + 2;
}

void cli_put(FILE *stream, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        int marked = *c == '`' ? put_option(stream, (const char *)c) : 0;
        c += marked;
        if (marked > 0) {
            continue;
        }
        int length = is_control(c) ? 0 : utf8_length(c);
        if (length > 0) {
            fwrite(c, 1, (size_t)length, stream);
        } else {
            fprintf(stream, "\\x%02X", *c);
        }
        c += length > 0 ? length : 1;
    }
}

void cli_put_format(FILE *stream, const char *format, va_list arguments)
{
    char *text;
    if (vasprintf(&text, format, arguments) >= 0) {
        cli_put(stream, text);
        free(text);
    }
}

void cli_row(const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%-14s", label != NULL ? label : "");
    cli_put_format(stdout, format, arguments);
    putchar('\n');
    va_end(arguments);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

/* Bytes that are no UTF-8 become the replacement character: the document stays JSON whatever the names in a table. */
static void write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        int length = utf8_length(c);
        if (length == 0) {
            fputs("\\ufffd", stream);
        } else if (*c == '"' || *c == '\\') {
            fprintf(stream, "\\%c", *c);
        } else if (is_control(c)) {
            fprintf(stream, "\\u%04x", length == 1 ? *c : c[1]);
        } else {
            fwrite(c, 1, (size_t)length, stream);
        }
        c += length > 0 ? length : 1;
    }
    fputc('"', stream);
}

void cli_put_json(FILE *stream, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        bool between = *c == '\n' || *c == '\t' || *c == '\r'; /* inside strings they are written as escapes */
        if (!between && is_control(c)) {
            c += *c == 0xc2;
            fprintf(stream, "\\u%04x", *c);
        } else {
            fputc(*c, stream);
        }
    }
}

static void new_line(cli_json *json)
{
    if (json->depth < json->inline_from && json->depth > 0) {
        fprintf(json->stream, "\n%*s", 2 * json->depth, "");
    }
}

/* What stands before a member: comma, line, key. */
static void next_member(cli_json *json, const char *key)
{
    if (json->started) {
        fputs(json->depth < json->inline_from ? "," : ", ", json->stream);
    }
    new_line(json);
    if (key != NULL) {
        write_text(json->stream, key);
        fputs(": ", json->stream);
    }
    json->started = true;
}

void cli_json_open(cli_json *json, const char *key, char bracket)
{
    next_member(json, key);
    fputc(bracket, json->stream);
    json->depth++;
    json->started = false;
}

void cli_json_close(cli_json *json, char bracket)
{
    bool breaks = json->started && json->depth < json->inline_from;
    json->depth--;
    if (breaks) {
        fprintf(json->stream, "\n%*s", 2 * json->depth, "");
    }
    fputc(bracket, json->stream);
    if (json->depth == 0) {
        fputc('\n', json->stream);
    }
    json->started = true;
}

void cli_json_text(cli_json *json, const char *key, const char *text)
{
    next_member(json, key);
    write_text(json->stream, text);
}

void cli_json_integer(cli_json *json, const char *key, int64_t value)
{
    next_member(json, key);
    fprintf(json->stream, "%lld", (long long)value);
}

void cli_json_number(cli_json *json, const char *key, double value)
{
    char buffer[CLI_NUMBER_MAX];
    next_member(json, key);
    fputs(isfinite(value) ? cli_exact(value, buffer) : "null", json->stream);
}

void cli_json_raw(cli_json *json, const char *key, const char *text)
{
    next_member(json, key);
    cli_put_json(json->stream, text);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *label, *note;
    size_t offset;
    bool compared; /* of models beside each other */
} score_fields[] = {
    {"rmse", "RMSE", "root of the mean squared error", offsetof(thiele_scores, rmse), true},
    {"mae", "MAE", "mean absolute error", offsetof(thiele_scores, mae), false},
    {"smse", "SMSE", "1 is no better than the mean of the targets", offsetof(thiele_scores, smse), false},
    {"nlpd", "NLPD", "nats per row; lower is better", offsetof(thiele_scores, nlpd), true},
    {"msll", "MSLL", "below 0 beats a Gaussian guess", offsetof(thiele_scores, msll), false},
    {"crps", "CRPS", "in the units of the target", offsetof(thiele_scores, crps), true},
    {"coverage50", "in 50%", "fraction inside the central 50% interval", offsetof(thiele_scores, coverage50), false},
    {"coverage90", "in 90%", "should be near 0.9", offsetof(thiele_scores, coverage90), true},
    {"coverage95", "in 95%", "should be near 0.95", offsetof(thiele_scores, coverage95), false},
    {"error_rate", "error rate", "fraction of wrong labels", offsetof(thiele_scores, error_rate), true},
    {"nlp", "NLP", "nats per row; lower is better", offsetof(thiele_scores, nlp), true},
    {"brier", "Brier score", "from 0 to 2; lower is better", offsetof(thiele_scores, brier), true},
    {"auc", "AUC", "how well labels are ranked: 0.5 by chance, 1 at best", offsetof(thiele_scores, auc), true},
};
enum { SCORE_FIELDS = sizeof score_fields / sizeof *score_fields };

enum { FIRST_OF_CLASSES = SCORE_FIELDS - 4, FIRST_COVERAGE = SCORE_FIELDS - 7 };

static double score_value(const thiele_scores *scores, int field)
{
    double value;
    memcpy(&value, (const char *)scores + score_fields[field].offset, sizeof value);
    return value;
}

/* Scores that are undefined for this kind of target are left out. */
void cli_json_scores(cli_json *json, const char *key, const thiele_scores *scores)
{
    cli_json_model_scores(json, key, scores, 0, &(cli_confusion){NULL, NULL});
}

void cli_json_model_scores(cli_json *json, const char *key, const thiele_scores *scores, int64_t by,
                           const cli_confusion *confusion)
{
    cli_json_open(json, key, '{');
    cli_json_integer(json, "rows", scores->rows);
    if (by > 0) {
        cli_json_integer(json, "calibrated_by", by);
    }
    for (int i = 0; i < SCORE_FIELDS; i++) {
        bool of_classes = i >= FIRST_OF_CLASSES, there = !isnan(score_value(scores, i));
        if (there || of_classes == !isnan(scores->error_rate)) { /* the mean over targets of both kinds has both */
            cli_json_number(json, score_fields[i].name, score_value(scores, i));
        }
    }
    if (confusion->rows != NULL) {
        cli_json_confusion(json, confusion);
    }
    cli_json_close(json, '}');
}

void cli_print_scores(const thiele_scores *scores)
{
    char number[CLI_NUMBER_MAX];
    cli_row("rows", "%lld", (long long)scores->rows);
    for (int i = 0; i < SCORE_FIELDS; i++) {
        double value = score_value(scores, i);
        if (!isnan(value)) {
            cli_row(score_fields[i].label, "%-12s%s", cli_short(value, number), score_fields[i].note);
        }
    }
}

/* Which columns a table of folds has: those of its kind of target. */
static bool shown(const thiele_scores *overall, int field)
{
    return !isnan(score_value(overall, field));
}

static bool is_coverage(int field)
{
    return field >= FIRST_COVERAGE && field < FIRST_OF_CLASSES;
}

static void print_fold(const char *label, const thiele_scores *scores, const thiele_scores *overall)
{
    printf("%-4s%6lld", label, (long long)scores->rows);
    for (int i = 0; i < SCORE_FIELDS; i++) {
        double value = score_value(scores, i);
        if (shown(overall, i)) {
            printf(is_coverage(i) ? "%4.0f%%" : " %10.4g", is_coverage(i) ? 100 * value : value);
        }
    }
    putchar('\n');
}

void cli_print_folds(const thiele_scores *each, int count, const thiele_scores *overall)
{
    char label[16];
    printf("%-4s%6s", "fold", "rows");
    for (int i = 0; i < SCORE_FIELDS; i++) {
        if (shown(overall, i)) {
            printf(is_coverage(i) ? " %4.4s" : " %10s",
                   is_coverage(i) ? score_fields[i].label + 3 : score_fields[i].label);
        }
    }
    putchar('\n');
    for (int i = 0; i < count; i++) {
        snprintf(label, sizeof label, "%d", i + 1);
        print_fold(label, &each[i], overall);
    }
    print_fold("all", overall, overall);
}

/* --- models beside each other --------------------------------------------------------------------------------------
 */

/* Columns of a comparison: those that the kind of target has. */
static bool is_compared(const thiele_comparison *each, int field)
{
    return score_fields[field].compared && !isnan(score_value(&each->scores, field));
}

/* "0.031 +- 0.004": how far behind the best, and how sure that is. */
static void print_behind(const thiele_comparison *comparison)
{
    if (comparison->best) {
        printf("  best\n");
    } else if (isnan(comparison->loss.error)) { /* of a single row */
        printf("  %.3g\n", comparison->loss.mean);
    } else {
        printf("  %.3g +- %.2g\n", comparison->loss.mean, comparison->loss.error);
    }
}

void cli_print_comparisons(int count, const char *const *name, const thiele_comparison *each)
{
    int width = 5;
    for (int k = 0; k < count; k++) {
        width = (int)strlen(name[k]) > width ? (int)strlen(name[k]) : width;
    }
    printf("%-*s", width, "model");
    for (int i = 0; i < SCORE_FIELDS; i++) {
        if (is_compared(each, i)) {
            printf("  %11s", score_fields[i].label);
        }
    }
    printf("  %s above the best\n", isnan(each->scores.error_rate) ? "NLPD" : "NLP");
    for (int k = 0; k < count; k++) {
        printf("%-*s", width, name[k]);
        for (int i = 0; i < SCORE_FIELDS; i++) {
            if (is_compared(each, i)) {
                printf("  %11.4g", score_value(&each[k].scores, i));
            }
        }
        print_behind(&each[k]);
    }
}

void cli_json_comparison(cli_json *json, const char *name, const thiele_comparison *comparison)
{
    bool classes = !isnan(comparison->scores.error_rate);
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "model", name);
    cli_json_integer(json, "common_rows", comparison->rows);
    cli_json_open(json, "behind", '{');
    cli_json_number(json, classes ? "nlp" : "nlpd", comparison->loss.mean);
    cli_json_number(json, classes ? "nlp_se" : "nlpd_se", comparison->loss.error);
    cli_json_number(json, classes ? "brier" : "squared_error", comparison->square.mean);
    cli_json_number(json, classes ? "brier_se" : "squared_error_se", comparison->square.error);
    cli_json_close(json, '}');
    cli_json_scores(json, "scores", &comparison->scores);
    cli_json_close(json, '}');
}
