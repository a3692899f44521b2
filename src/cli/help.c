/* Help, printed from the tables that the parser reads: the two can't disagree. */
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

void cli_help(const cli_command *command)
{
    printf("Usage: thiele %s %s\n\n", command->name, command->usage);
    print_folded(command->about, 0, 0);
    const cli_group *group;
    for (int g = 0; (group = cli_group_at(command, g)) != NULL; g++) {
        print_group(group);
    }
    printf("\nExamples:\n%s", command->examples);
}

void cli_overview(FILE *stream, const cli_command *const *commands)
{
    fputs("Usage: thiele COMMAND [OPTIONS] ...\n\n"
          "Gaussian-process inference: a table in, a calibrated prediction out.\n\nCommands:\n",
          stream);
    for (int i = 0; commands[i] != NULL; i++) {
        fprintf(stream, "  %-10s%s\n", commands[i]->name, commands[i]->summary);
    }
    fputs("\nOptions:\n"
          "  --help    this page; 'thiele COMMAND --help' says more about a command\n"
          "  --version\n"
          "\nExamples:\n"
          "  thiele generate -n 500 -o train.csv\n"
          "  thiele fit train.csv --target strength --ignore row -o model.thiele\n"
          "  thiele predict model.thiele new.csv --quantiles 0.05,0.95 -o out.csv\n"
          "  thiele score model.thiele test.csv --json\n"
          "  thiele info model.thiele\n"
          "\nExit status: 0 done, 1 failed, 2 misused.\n",
          stream);
}
