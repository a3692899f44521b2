/* Help on commands, options and groups of them, from the tables that the parser reads: the two can't disagree. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { HELP_WIDTH = 79, HELP_INDENT = 24 };

/* Prints words from `column` on, folding lines at HELP_WIDTH and indenting those that follow. */
static void print_folded(const char *text, int column, int indent)
{
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > HELP_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(const cli_option *option)
{
    char left[64], letter[8] = "", help[CLI_HELP_MAX];
    if (option->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    bool takes_value = option->parse != NULL;
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, takes_value ? " " : "",
             takes_value ? option->value : "");
    if ((int)strlen(left) + 2 > HELP_INDENT) {
        printf("%s\n%*s", left, HELP_INDENT, "");
    } else {
        printf("%-*s", HELP_INDENT, left);
    }
    print_folded(cli_option_help(option, help), HELP_INDENT, HELP_INDENT);
}

static void print_group(const cli_group *group)
{
    printf("\n%s:\n", group->title);
    for (const cli_option *option = group->options; option->name != NULL; option++) {
        print_option(option);
    }
}

void cli_print_fit_options(void)
{
    for (int g = 0; g < cli_fit_groups(); g++) {
        print_group(cli_fit_group(g));
    }
}

/* Groups of options that are no part of a fit, as topics of their own. */
static const struct {
    const char *topic;
    cli_group group;
} other_topics[] = {
    {"streams", {"While rows arrive", cli_stream_options}},
    {"table", {"Reading the table", cli_table_options}},
    {"machine", {"Machine", cli_machine_options}},
};
enum { OTHER_TOPICS = sizeof other_topics / sizeof *other_topics };

/* The index-th topic: its name, or NULL after the last; *group: its options. */
static const char *topic_at(int index, const cli_group **group)
{
    if (index < cli_fit_groups()) {
        *group = cli_fit_group(index);
        return cli_fit_group_facts(*group)->name;
    }
    index -= cli_fit_groups();
    *group = index < OTHER_TOPICS ? &other_topics[index].group : NULL;
    return index < OTHER_TOPICS ? other_topics[index].topic : NULL;
}

void cli_help(const cli_command *command)
{
    printf("Usage: thiele %s %s\n\n", command->name, command->usage);
    print_folded(command->about, 0, 0);
    if (cli_takes_fit_options(command)) {
        putchar('\n');
        print_folded("'thiele help TOPIC' says more about a group of options, such as model, prior or stopping, and "
                     "'thiele help OPTION' about one.",
                     0, 0);
    }
    const cli_group *group;
    for (int g = 0; (group = cli_group_at(command, g)) != NULL; g++) {
        print_group(group);
    }
    printf("\nExamples:\n%s", command->examples);
}

/* --- more about a group of options, or one ------------------------------------------------------------------------ */

/* A text of the library with its marks made into what is typed. */
static void print_marked(const char *text, int indent)
{
    char *plain = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&plain, &size);
    if (memory != NULL) {
        cli_put_marked(memory, text, CLI_PLAIN);
    }
    bool made = memory != NULL && fclose(memory) == 0;
    printf("%*s", indent, "");
    print_folded(made ? plain : text, indent, indent);
    free(plain);
}

/* All that there is to say of an option. */
static void print_full(const cli_option *option)
{
    enum { INDENT = 6 };
    char letter[8] = "", help[CLI_HELP_MAX];
    const thiele_option *fit = cli_fit_option(option);
    if (option->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    }
    printf("\n  %s--%s%s%s\n", letter, option->name, option->parse != NULL ? " " : "",
           option->parse != NULL ? option->value : "");
    printf("%*s", INDENT, "");
    print_folded(cli_option_help(option, help), INDENT, INDENT);
    if (fit != NULL && fit->more[0] != '\0') {
        print_marked(fit->more, INDENT);
    }
}

static void print_topic(const cli_group *group)
{
    const thiele_option_group *facts = cli_fit_group_facts(group);
    printf("%s\n", group->title);
    if (facts != NULL) {
        print_marked(facts->about, 0);
    }
    for (const cli_option *option = group->options; option->name != NULL; option++) {
        print_full(option);
    }
}

/* The option of a command by its name; NULL: it has none. */
static const cli_option *option_of(const cli_command *command, const char *name)
{
    const cli_group *group;
    for (int g = 0; (group = cli_group_at(command, g)) != NULL; g++) {
        for (const cli_option *option = group->options; option->name != NULL; option++) {
            if (strcmp(option->name, name) == 0) {
                return option;
            }
        }
    }
    return cli_takes_fit_options(command) ? cli_fit_alias(name, strlen(name)) : NULL;
}

/* An option as the first command has it, and which commands have one of that name. */
static bool help_option(const char *name)
{
    const cli_option *found = NULL;
    for (int c = 0; cli_commands[c] != NULL; c++) {
        const cli_option *option = option_of(cli_commands[c], name);
        if (option != NULL) {
            printf("%s%s", found == NULL ? "An option of thiele " : ", ", cli_commands[c]->name);
            found = found != NULL ? found : option;
        }
    }
    if (found != NULL) {
        putchar('\n');
        print_full(found);
    }
    return found != NULL;
}

bool cli_help_about(const char *word)
{
    const char *name = word + strspn(word, "-"), *topic;
    const cli_group *group;
    for (int i = 0; (topic = topic_at(i, &group)) != NULL; i++) {
        if (strcmp(topic, word) == 0) {
            print_topic(group);
            return true;
        }
    }
    return help_option(name);
}

void cli_guess_topic(const char **guess, const char *word)
{
    const cli_group *group;
    const char *topic;
    for (int i = 0; (topic = topic_at(i, &group)) != NULL; i++) {
        cli_guess(guess, word, topic);
        for (const cli_option *option = group->options; option->name != NULL; option++) {
            cli_guess(guess, word, option->name);
        }
    }
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

void cli_overview(FILE *stream, const cli_command *const *commands)
{
    fputs("Usage: thiele COMMAND [OPTIONS] ...\n\n"
          "Gaussian-process inference: a table in, a calibrated prediction out.\n\n"
          "To begin with:\n"
          "  thiele fit train.csv --target COLUMN -o model.thiele      learn to predict a column\n"
          "  thiele predict model.thiele new.csv -o predictions.csv    mean and standard deviation\n"
          "  thiele score model.thiele test.csv                        how good, how sure\n"
          "  thiele plot model.thiele train.csv --over INPUT           a picture of what it learned\n"
          "  thiele examples                                           more, by task, ready to run\n"
          "\nCommands:\n",
          stream);
    for (int i = 0; commands[i] != NULL; i++) {
        fprintf(stream, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
    }
    fputs("\nHelp:\n"
          "  thiele COMMAND --help    the options of a command; 'man thiele-COMMAND' in full\n"
          "  thiele help OPTION       one option, such as kernel or deadline\n"
          "  thiele help TOPIC        a group of options of a fit:\n",
          stream);
    const cli_group *group;
    const char *topic;
    int column = 0;
    for (int i = 0; (topic = topic_at(i, &group)) != NULL; i++) {
        bool fold = column == 0 || column + 2 + (int)strlen(topic) > HELP_WIDTH;
        fputs(column == 0 ? "                           " : fold ? ",\n                           " : ", ", stream);
        column = (fold ? 27 : column + 2) + (int)strlen(topic);
        fputs(topic, stream);
    }
    fputs("\n  thiele --version\n\nExit status: 0 done, 1 failed, 2 misused.\n", stream);
}
