/*
 * Reads a command line against a command's tables of options: --name value, --name=value, -o value, -ovalue, operands
 * anywhere, "--" before operands that look like options. Every mistake gets one sentence, with the nearest name where
 * an option is misspelt.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct cli_cursor {
    int count, next;
    char **argument;
} cli_cursor;

static const cli_option help_options[] = {
    {.name = "help", .letter = 'h', .offset = CLI_AT(help)},
    {0},
};

/* The number of edits (insert, delete, replace, swap neighbours) between two words; words beyond MAX are never near. */
static int edit_distance(const char *a, const char *b)
{
    enum { MAX = 31 };
    int rows = (int)strlen(a), columns = (int)strlen(b);
    int d[MAX + 1][MAX + 1];
    if (rows > MAX || columns > MAX) {
        return MAX;
    }
    for (int i = 0; i <= rows; i++) {
        for (int j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            int differ = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
            int best = d[i - 1][j - 1] + differ;
            best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
            best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best) {
                best = d[i - 2][j - 2] + 1;
            }
            d[i][j] = best;
        }
    }
    return d[rows][columns];
}

void cli_guess(const char **guess, const char *word, const char *candidate)
{
    size_t shorter = strlen(word) < strlen(candidate) ? strlen(word) : strlen(candidate);
    int limit = *guess != NULL ? edit_distance(word, *guess) - 1 : shorter < 4 ? 1 : 2;
    bool prefix = *guess == NULL && shorter >= 3 && strncmp(word, candidate, shorter) == 0;
    if (prefix || edit_distance(word, candidate) <= limit) {
        *guess = candidate;
    }
}

const cli_group *cli_group_at(const cli_command *command, int index)
{
    for (const cli_group *group = command->groups; group->title != NULL; group++) {
        if (group->options != NULL) {
            if (index-- == 0) {
                return group;
            }
            continue;
        }
        for (int g = 0; g < cli_fit_groups(); g++) {
            bool left_out =
                command->without != NULL && strcmp(command->without, cli_fit_group_facts(cli_fit_group(g))->name) == 0;
            if (!left_out && index-- == 0) {
                return cli_fit_group(g);
            }
        }
    }
    return NULL;
}

/* The groups of a command, then --help, which all have: the last. */
static const cli_option *group_options(const cli_command *command, int index, bool *last)
{
    const cli_group *group = cli_group_at(command, index);
    *last = group == NULL;
    return *last ? help_options : group->options;
}

bool cli_takes_fit_options(const cli_command *command)
{
    for (const cli_group *group = command->groups; group->title != NULL; group++) {
        if (group->options == NULL) {
            return true;
        }
    }
    return false;
}

static const cli_option *find_option(const cli_command *command, const char *name, size_t length, char letter)
{
    bool last = false;
    for (int g = 0; !last; g++) {
        for (const cli_option *option = group_options(command, g, &last); option->name != NULL; option++) {
            bool named = strlen(option->name) == length && strncmp(option->name, name, length) == 0;
            if (letter != 0 ? option->letter == letter : named) {
                return option;
            }
        }
    }
    return letter == 0 && cli_takes_fit_options(command) ? cli_fit_alias(name, length) : NULL;
}

/* Names are told apart by their letters alone. */
static bool is_same_name(const char *dashed, const char *name, size_t length)
{
    size_t i = 0;
    while (i < length && dashed[i] != '\0' && (dashed[i] == name[i] || (dashed[i] == '-' && name[i] == '_'))) {
        i++;
    }
    return i == length && dashed[i] == '\0';
}

bool cli_has_option(const char *name, size_t length)
{
    for (int c = 0; cli_commands[c] != NULL; c++) {
        const cli_group *group;
        for (int g = 0; (group = cli_group_at(cli_commands[c], g)) != NULL; g++) {
            for (const cli_option *option = group->options; option->name != NULL; option++) {
                if (is_same_name(option->name, name, length)) {
                    return true;
                }
            }
        }
    }
    return false;
}

static bool unknown_option(const cli_command *command, const char *argument, size_t length)
{
    const char *guess = NULL;
    char word[64];
    bool last = false;
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), argument);
    for (int g = 0; !last; g++) {
        for (const cli_option *option = group_options(command, g, &last); option->name != NULL; option++) {
            cli_guess(&guess, word + strspn(word, "-"), option->name);
        }
    }
    if (guess != NULL) {
        cli_misuse("%s has no option %s: did you mean --%s? ('thiele %s --help' lists them)", command->name, word,
                   guess, command->name);
    } else {
        cli_misuse("%s has no option %s ('thiele %s --help' lists them)", command->name, word, command->name);
    }
    return false;
}

/* The value of an option: after its "=" or letter, or the next argument unless that looks like a long option. */
static const char *take_value(cli_cursor *cursor, const cli_option *option, const char *attached)
{
    if (attached != NULL) {
        return attached;
    }
    if (cursor->next >= cursor->count) {
        cli_misuse("--%s needs a value: --%s %s", option->name, option->name, option->value);
        return NULL;
    }
    const char *value = cursor->argument[cursor->next];
    if (strncmp(value, "--", 2) == 0) {
        cli_misuse("--%s needs a value but is followed by %s (write --%s=%s if that is the value)", option->name, value,
                   option->name, value);
        return NULL;
    }
    cursor->next++;
    return value;
}

static bool apply(cli_settings *settings, cli_cursor *cursor, const cli_option *option, const char *attached)
{
    if (option->parse == NULL) {
        if (attached != NULL) {
            cli_misuse("--%s takes no value, but '%s' was given", option->name, attached);
            return false;
        }
        if (cli_fit_option(option) != NULL) {
            return cli_parse_fit(settings, option, NULL);
        }
        memcpy((char *)settings + option->offset, &(int){1}, sizeof(int));
        return true;
    }
    const char *value = take_value(cursor, option, attached);
    if (value == NULL) {
        return false;
    }
    if (*value == '\0') {
        cli_misuse("--%s needs a value, not an empty text", option->name);
        return false;
    }
    return option->parse(settings, option, value);
}

static bool parse_option(cli_settings *settings, const cli_command *command, cli_cursor *cursor, const char *argument)
{
    bool is_long = argument[1] == '-';
    const char *name = argument + 2;
    size_t length = is_long ? strcspn(name, "=") : 0;
    const cli_option *option = find_option(command, name, length, is_long ? '\0' : argument[1]);
    if (option == NULL) {
        return unknown_option(command, argument, is_long ? length + 2 : strlen(argument));
    }
    const char *attached = NULL;
    if (is_long && name[length] == '=') {
        attached = name + length + 1;
    } else if (!is_long && argument[2] != '\0') {
        attached = argument + 2;
    }
    return apply(settings, cursor, option, attached);
}

static bool add_operand(cli_settings *settings, const cli_command *command, const char *argument)
{
    enum { MAX = sizeof command->operand / sizeof *command->operand };
    if (command->many > 0 && settings->operands == command->many) {
        int others = 0;
        for (int i = 0; i < MAX && command->operand[i] != NULL; i++) {
            others += strcmp(command->operand[i], command->repeated) != 0;
        }
        cli_misuse("%s takes at most %d of %s", command->name, command->many - others, command->repeated);
        return false;
    }
    bool taken = command->many > 0 || (settings->operands < MAX && command->operand[settings->operands] != NULL);
    if (!taken) {
        cli_misuse("%s does not know what to do with '%s' (usage: thiele %s %s)", command->name, argument,
                   command->name, command->usage);
        return false;
    }
    settings->operand[settings->operands++] = argument;
    return true;
}

static bool check_operands(const cli_settings *settings, const cli_command *command)
{
    enum { MAX = sizeof command->operand / sizeof *command->operand };
    int required = 0;
    while (required < MAX && command->operand[required] != NULL) {
        required++;
    }
    if (settings->operands < required - command->optional) {
        cli_misuse("%s needs %s (usage: thiele %s %s)", command->name, command->operand[settings->operands],
                   command->name, command->usage);
        return false;
    }
    return true;
}

bool cli_parse(cli_settings *settings, const cli_command *command, int count, char **arguments)
{
    cli_cursor cursor = {count, 0, arguments};
    bool options_ended = false;
    settings->command = command;
    while (cursor.next < count) {
        const char *argument = arguments[cursor.next++];
        if (!options_ended && strcmp(argument, "--") == 0) {
            options_ended = true;
        } else if (options_ended || argument[0] != '-' || argument[1] == '\0') {
            if (!add_operand(settings, command, argument)) {
                return false;
            }
        } else if (!parse_option(settings, command, &cursor, argument)) {
            return false;
        }
        if (settings->help) {
            return true;
        }
    }
    return check_operands(settings, command);
}
