/*
 * Readers of option values. Numbers are read strictly: the whole text, in range, always with a decimal point (the
 * program never leaves the C locale).
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* A chain of what values allocated, freed together. */
struct cli_owned {
    struct cli_owned *next;
    double data[]; /* aligned for text and numbers alike */
};

void *cli_own(cli_settings *settings, size_t bytes)
{
    struct cli_owned *owned = malloc(sizeof *owned + bytes);
    if (owned == NULL) {
        cli_fail("out of memory");
        return NULL;
    }
    owned->next = settings->owned;
    settings->owned = owned;
    return owned->data;
}

void cli_settings_clear(cli_settings *settings)
{
    while (settings->owned != NULL) {
        struct cli_owned *next = settings->owned->next;
        free(settings->owned);
        settings->owned = next;
    }
}

static void store(cli_settings *settings, const cli_option *option, const void *value, size_t size)
{
    memcpy((char *)settings + option->offset, value, size);
}

static bool refuse(const cli_option *option, const char *text, const char *expected)
{
    cli_misuse("--%s: '%s' is not %s", option->name, text, expected);
    return false;
}

static bool in_range(const cli_option *option, const char *text, double value)
{
    char low[CLI_NUMBER_MAX], high[CLI_NUMBER_MAX];
    if ((option->min == 0 && option->max == 0) || (value >= option->min && value <= option->max)) {
        return true;
    }
    cli_misuse("--%s: %s is out of range (%s to %s)", option->name, text, cli_exact(option->min, low),
               cli_exact(option->max, high));
    return false;
}

bool cli_parse_text(cli_settings *settings, const cli_option *option, const char *text)
{
    store(settings, option, &text, sizeof text);
    return true;
}

bool cli_parse_list(cli_settings *settings, const cli_option *option, const char *text)
{
    const char *before;
    memcpy(&before, (char *)settings + option->offset, sizeof before);
    if (before == NULL) {
        return cli_parse_text(settings, option, text);
    }
    size_t capacity = strlen(before) + strlen(text) + 2;
    char *joined = cli_own(settings, capacity);
    if (joined == NULL) {
        return false;
    }
    snprintf(joined, capacity, "%s,%s", before, text);
    store(settings, option, &joined, sizeof joined);
    return true;
}

/* Digits with an optional sign, in the range of the option. */
static bool read_integer(const cli_option *option, const char *text, long long *value)
{
    size_t sign = *text == '-' || *text == '+';
    if (text[sign] == '\0' || text[sign + strspn(text + sign, "0123456789")] != '\0') {
        return refuse(option, text, "a whole number");
    }
    errno = 0;
    *value = strtoll(text, NULL, 10);
    if (errno != 0) {
        return refuse(option, text, "a number of a reasonable size");
    }
    return in_range(option, text, (double)*value);
}

bool cli_parse_int(cli_settings *settings, const cli_option *option, const char *text)
{
    long long value;
    if (!read_integer(option, text, &value)) {
        return false;
    }
    store(settings, option, &(int){(int)value}, sizeof(int));
    return true;
}

bool cli_parse_or_none(cli_settings *settings, const cli_option *option, const char *text)
{
    long long value;
    if (!read_integer(option, text, &value)) {
        return false;
    }
    int64_t kept = value == 0 ? -1 : value;
    store(settings, option, &kept, sizeof kept);
    return true;
}

bool cli_parse_int64(cli_settings *settings, const cli_option *option, const char *text)
{
    long long value;
    if (!read_integer(option, text, &value)) {
        return false;
    }
    store(settings, option, &(int64_t){value}, sizeof(int64_t));
    return true;
}

bool cli_parse_seed(cli_settings *settings, const cli_option *option, const char *text)
{
    if (text[strspn(text, "0123456789")] != '\0') {
        return refuse(option, text, "a whole number from 0 on");
    }
    errno = 0;
    uint64_t value = strtoull(text, NULL, 10);
    if (errno != 0) {
        return refuse(option, text, "below 2^64");
    }
    store(settings, option, &value, sizeof value);
    return true;
}

/* A finite decimal number that ends at *end; no spaces, hexadecimal or names. */
static bool read_real(const char *text, double *value, char **end)
{
    if (strchr("+-.0123456789", *text) == NULL || *text == '\0') {
        return false;
    }
    *value = strtod(text, end);
    return *end != text && isfinite(*value) && memchr(text, 'x', (size_t)(*end - text)) == NULL &&
           memchr(text, 'X', (size_t)(*end - text)) == NULL;
}

bool cli_parse_real(cli_settings *settings, const cli_option *option, const char *text)
{
    double value;
    char *end;
    if (!read_real(text, &value, &end) || *end != '\0') {
        return refuse(option, text, "a number");
    }
    if (!in_range(option, text, value)) {
        return false;
    }
    store(settings, option, &value, sizeof value);
    return true;
}

bool cli_parse_choice(cli_settings *settings, const cli_option *option, const char *text)
{
    int index = 0;
    for (const char *word = option->value; *word != '\0'; index++) {
        size_t length = strcspn(word, "|");
        if (strlen(text) == length && strncmp(text, word, length) == 0) {
            store(settings, option, &index, sizeof index);
            return true;
        }
        word += length + (word[length] == '|');
    }
    cli_misuse("--%s: '%s' is not one of %s", option->name, text, option->value);
    return false;
}

bool cli_parse_device(cli_settings *settings, const cli_option *option, const char *text)
{
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx = NULL;
    options.threads = 1;
    options.device = text;
    thiele_status status = thiele_context_create(&ctx, &options);
    thiele_context_destroy(ctx);
    return status == THIELE_ERROR_ARGUMENT ? refuse(option, text, "auto, cpu, cuda, or a card such as cuda:1")
                                           : cli_parse_text(settings, option, text);
}

bool cli_parse_size(cli_settings *settings, const cli_option *option, const char *text)
{
    static const char units[] = "KMGT";
    double value;
    char *end;
    if (!read_real(text, &value, &end) || value <= 0) {
        return refuse(option, text, "an amount of memory such as 500M or 4G");
    }
    const char *unit = isalpha((unsigned char)*end) ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit != NULL) {
        value = ldexp(value, 10 * (int)(unit - units + 1));
        end++;
    }
    if (strcmp(end, "") != 0 && strcmp(end, "B") != 0 && strcmp(end, "iB") != 0) {
        return refuse(option, text, "an amount of memory such as 500M or 4G");
    }
    if (value < 1 || value >= ldexp(1, 62)) {
        return refuse(option, text, "a reasonable amount of memory");
    }
    store(settings, option, &(size_t){(size_t)value}, sizeof(size_t));
    return true;
}

bool cli_parse_delimiter(cli_settings *settings, const cli_option *option, const char *text)
{
    static const struct {
        const char *word;
        char delimiter;
    } words[] = {{"tab", '\t'}, {"\\t", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"colon", ':'}, {"pipe", '|'}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i].word) == 0) {
            store(settings, option, &words[i].delimiter, 1);
            return true;
        }
    }
    if (text[1] != '\0' || strchr("\"\r\n", *text) != NULL) {
        return refuse(option, text, "one character, 'tab', 'comma', 'semicolon', 'colon' or 'pipe'");
    }
    store(settings, option, text, 1);
    return true;
}

bool cli_parse_quantiles(cli_settings *settings, const cli_option *option, const char *text)
{
    size_t count = 1;
    for (const char *c = text; *c != '\0'; c++) {
        count += *c == ',';
    }
    double *values = cli_own(settings, count * sizeof *values);
    if (values == NULL) {
        return false;
    }
    const char *rest = text;
    for (size_t i = 0; i < count; i++) {
        char *end;
        rest += strspn(rest, " ");
        if (!read_real(rest, &values[i], &end) || *end != (i + 1 < count ? ',' : '\0') || values[i] <= 0 ||
            values[i] >= 1) {
            return refuse(option, text, "a list of numbers between 0 and 1, such as 0.05,0.95");
        }
        rest = end + 1;
    }
    if (settings->predict.quantiles != NULL) {
        cli_misuse("--%s is given twice: give one list, such as 0.05,0.95", option->name);
        return false;
    }
    settings->predict.quantiles = values;
    settings->predict.quantile_count = (int)count;
    return true;
}
