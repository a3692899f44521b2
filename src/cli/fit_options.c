/* The options of a fit for the command line: made from the library's table, so that no name is written here. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { NAME_MAX_LENGTH = 32 };

typedef char option_name[NAME_MAX_LENGTH];

static struct {
    cli_option *option;        /* group by group, each with an end */
    const thiele_option **fit; /* of each */
    option_name *name;         /* with dashes */
    cli_group *group;
    int options, groups;
} made;

/* An option that no longer does anything. */
static const cli_option past = {.name = "", .offset = CLI_AT(past)};

static void dashed(option_name to, const char *name)
{
    snprintf(to, NAME_MAX_LENGTH, "%s", name);
    for (char *c = to; *c != '\0'; c++) {
        *c = *c == '_' ? '-' : *c;
    }
}

bool cli_fit_options_make(void)
{
    int options = thiele_fit_option_count(), groups = thiele_fit_option_groups();
    made.options = options + groups; /* with an end of each group */
    made.groups = groups;
    made.option = calloc((size_t)made.options, sizeof *made.option);
    made.fit = calloc((size_t)made.options, sizeof *made.fit);
    made.name = calloc((size_t)made.options, sizeof *made.name);
    made.group = calloc((size_t)groups, sizeof *made.group);
    if (made.option == NULL || made.fit == NULL || made.name == NULL || made.group == NULL) {
        cli_fit_options_clear();
        return false;
    }
    int at = 0;
    for (int g = 0; g < groups; g++, at++) {
        const thiele_option_group *group = thiele_fit_option_group_at(g);
        made.group[g] = (cli_group){group->title, &made.option[at]};
        for (int i = 0; i < options; i++) {
            const thiele_option *option = thiele_fit_option_at(i);
            if (option->type == THIELE_OPTION_PROGRAM || strcmp(option->group, group->name) != 0) {
                continue;
            }
            dashed(made.name[at], option->name);
            made.fit[at] = option;
            made.option[at] = (cli_option){.name = made.name[at],
                                           .parse = option->type == THIELE_OPTION_FLAG ? NULL : cli_parse_fit,
                                           .value = option->value,
                                           .help = option->meaning};
            at++;
        }
    }
    return true;
}

void cli_fit_options_clear(void)
{
    free(made.option);
    free(made.fit);
    free(made.name);
    free(made.group);
    memset(&made, 0, sizeof made);
}

int cli_fit_groups(void)
{
    return made.groups;
}

const cli_group *cli_fit_group(int index)
{
    return &made.group[index];
}

const thiele_option *cli_fit_option(const cli_option *option)
{
    for (int i = 0; i < made.options; i++) {
        if (option == &made.option[i]) {
            return made.fit[i];
        }
    }
    return NULL;
}

const thiele_option_group *cli_fit_group_facts(const cli_group *group)
{
    for (int g = 0; g < made.groups; g++) {
        if (group == &made.group[g]) {
            return thiele_fit_option_group_at(g);
        }
    }
    return NULL;
}

static const cli_option *made_of(const thiele_option *fit)
{
    int i = 0;
    while (i < made.options && made.fit[i] != fit) {
        i++;
    }
    return i < made.options ? &made.option[i] : NULL;
}

const cli_option *cli_fit_alias(const char *name, size_t length)
{
    const char *of, *other;
    option_name shown;
    for (int i = 0; (other = thiele_fit_option_alias(i, &of)) != NULL; i++) {
        dashed(shown, other);
        if (strlen(shown) == length && memcmp(shown, name, length) == 0) {
            return of != NULL ? made_of(thiele_fit_option_find(of)) : &past;
        }
    }
    return NULL;
}

/* --- setting ---------------------------------------------------------------------------------------------------------
 */

static int index_of(const thiele_option *fit)
{
    int i = 0;
    while (thiele_fit_option_at(i) != fit) {
        i++;
    }
    return i;
}

/* A list that is given again goes on. NULL: out of memory. */
static const char *joined(cli_settings *settings, const thiele_option *fit, const char *text)
{
    if (settings->given == NULL) {
        size_t bytes = (size_t)thiele_fit_option_count() * sizeof *settings->given;
        settings->given = cli_own(settings, bytes);
        if (settings->given == NULL) {
            return NULL;
        }
        memset(settings->given, 0, bytes);
    }
    const char **before = &settings->given[index_of(fit)];
    if (*before != NULL) {
        size_t capacity = strlen(*before) + strlen(text) + 2;
        char *both = cli_own(settings, capacity);
        if (both == NULL) {
            return NULL;
        }
        snprintf(both, capacity, "%s,%s", *before, text);
        text = both;
    }
    *before = text;
    return text;
}

bool cli_parse_fit(cli_settings *settings, const cli_option *option, const char *text)
{
    const thiele_option *fit = cli_fit_option(option);
    text = text == NULL ? "yes" : fit->type == THIELE_OPTION_LIST ? joined(settings, fit, text) : text;
    if (text == NULL) {
        return false;
    }
    thiele_context *ctx = NULL;
    if (thiele_fit_options_set(&settings->fit, NULL, fit->name, text) == THIELE_OK) {
        return true;
    }
    /* Only a context has the sentence. */
    if (thiele_context_create(&ctx, NULL) == THIELE_OK) {
        thiele_fit_options_set(&settings->fit, ctx, fit->name, text);
    }
    cli_misuse("%s", thiele_context_message(ctx));
    thiele_context_destroy(ctx);
    return false;
}

/* --- help ------------------------------------------------------------------------------------------------------------
 */

static void add(char buffer[CLI_HELP_MAX], const char *before, const char *text)
{
    size_t length = strlen(buffer);
    snprintf(buffer + length, CLI_HELP_MAX - length, "%s%s", before, text);
}

/* Its words, unless the sentence has them. */
static bool add_words(char buffer[CLI_HELP_MAX], const thiele_option *fit)
{
    const char *word = thiele_fit_option_choice(fit, 0);
    if (word == NULL || strstr(fit->meaning, word) != NULL) {
        return false;
    }
    for (int i = 0; word != NULL; word = thiele_fit_option_choice(fit, ++i)) {
        add(buffer, i == 0 ? " (" : ", ", word);
    }
    return true;
}

/* "what it means (one, two; default: one)" */
const char *cli_option_help(const cli_option *option, char buffer[CLI_HELP_MAX])
{
    const thiele_option *fit = cli_fit_option(option);
    snprintf(buffer, CLI_HELP_MAX, "%s", option->help);
    if (fit == NULL) {
        return buffer;
    }
    bool open = add_words(buffer, fit);
    bool flag = fit->type == THIELE_OPTION_FLAG, required = strcmp(fit->initially, "required") == 0;
    const char *initial = fit->initially[0] != '\0' ? fit->initially : flag ? NULL : fit->initial;
    if (initial != NULL) {
        add(buffer, open ? "; " : " (", required ? "" : "default: ");
        add(buffer, "", initial);
    }
    add(buffer, open || initial != NULL ? ")" : "", "");
    return buffer;
}
