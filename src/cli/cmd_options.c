/* thiele options: the options of a fit, for people, for programs, and as pages of the documentation. */
#include <string.h>

#include "cli.h"

static const cli_option form_options[] = {
    {.name = "json", .offset = CLI_AT(json), .help = "JSON for programs"},
    {.name = "markdown", .offset = CLI_AT(markdown), .help = "the page docs/options.md"},
    {.name = "man", .offset = CLI_AT(man), .help = "the sections of the man page thiele-fit(1)"},
    {.name = "man-cv", .offset = CLI_AT(man_cv), .help = "those of thiele-cv(1), which scores but saves nothing"},
    {0},
};

static const cli_group groups[] = {{"Form", form_options}, {0}};

static const char *const types[] = {"flag", "integer", "number", "text", "list", "program"};

/* --- JSON ------------------------------------------------------------------------------------------------------------
 */

static void put_default(cli_json *json, const thiele_option *option)
{
    bool number = option->type == THIELE_OPTION_INTEGER || option->type == THIELE_OPTION_NUMBER;
    if (option->initial == NULL) {
        cli_json_raw(json, "default", "null");
    } else if (option->type == THIELE_OPTION_FLAG) {
        cli_json_raw(json, "default", strcmp(option->initial, "0") == 0 ? "false" : "true");
    } else if (number && strcmp(option->initial, "auto") != 0) {
        cli_json_raw(json, "default", option->initial);
    } else {
        cli_json_text(json, "default", option->initial);
    }
}

static void put_words(cli_json *json, const thiele_option *option)
{
    const char *word = thiele_fit_option_choice(option, 0);
    if (word == NULL) {
        return;
    }
    cli_json_open(json, "choices", '[');
    for (int i = 0; word != NULL; word = thiele_fit_option_choice(option, ++i)) {
        cli_json_text(json, NULL, word);
    }
    cli_json_close(json, ']');
}

static void put_aliases(cli_json *json, const thiele_option *option)
{
    const char *name, *alias;
    bool open = false;
    for (int i = 0; (alias = thiele_fit_option_alias(i, &name)) != NULL; i++) {
        if (name == NULL || strcmp(name, option->name) != 0) {
            continue;
        }
        if (!open) {
            cli_json_open(json, "aliases", '[');
            open = true;
        }
        cli_json_text(json, NULL, alias);
    }
    if (open) {
        cli_json_close(json, ']');
    }
}

static void put_option(cli_json *json, const thiele_option *option)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", option->name);
    cli_json_text(json, "group", option->group);
    cli_json_text(json, "type", types[option->type]);
    put_default(json, option);
    cli_json_text(json, "default_in_words", option->initially);
    if (option->type == THIELE_OPTION_INTEGER || option->type == THIELE_OPTION_NUMBER) {
        cli_json_number(json, "low", option->low);
        cli_json_number(json, "high", option->high);
    }
    if (option->unit[0] != '\0') {
        cli_json_text(json, "unit", option->unit);
    }
    if (option->value[0] != '\0') {
        cli_json_text(json, "value", option->value);
    }
    put_words(json, option);
    put_aliases(json, option);
    cli_json_text(json, "meaning", option->meaning);
    if (option->more[0] != '\0') {
        cli_json_text(json, "more", option->more);
    }
    cli_json_close(json, '}');
}

static void print_json(void)
{
    cli_json json = {.stream = stdout, .inline_from = 3};
    cli_json_open(&json, NULL, '{');
    cli_json_open(&json, "groups", '[');
    for (int g = 0; g < thiele_fit_option_groups(); g++) {
        const thiele_option_group *group = thiele_fit_option_group_at(g);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", group->name);
        cli_json_text(&json, "title", group->title);
        cli_json_text(&json, "about", group->about);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_open(&json, "options", '[');
    for (int i = 0; i < thiele_fit_option_count(); i++) {
        put_option(&json, thiele_fit_option_at(i));
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
}

/* --- pages -----------------------------------------------------------------------------------------------------------
 */

/* "How far. At most 7." with a capital; marks as the medium has them. */
static void put_sentences(const thiele_option *option, cli_medium medium)
{
    bool capital = option->meaning[0] >= 'a' && option->meaning[0] <= 'z';
    if (capital) {
        putchar(option->meaning[0] - 'a' + 'A');
    }
    cli_put_marked(stdout, option->meaning + capital, medium);
    putchar('.');
    if (option->more[0] != '\0') {
        putchar(medium == CLI_ROFF ? '\n' : ' ');
        cli_put_marked(stdout, option->more, medium);
    }
    putchar('\n');
}

static void put_choices(const thiele_option *option, cli_medium medium)
{
    const char *word = thiele_fit_option_choice(option, 0);
    for (int i = 0; word != NULL; word = thiele_fit_option_choice(option, ++i)) {
        const char *before = i == 0 ? "One of " : ", ";
        printf(medium == CLI_ROFF ? "%s\\fB" : "%s`", before);
        for (const char *c = word; *c != '\0'; c++) {
            printf(medium == CLI_ROFF && *c == '-' ? "\\-" : "%c", *c);
        }
        fputs(medium == CLI_ROFF ? "\\fR" : "`", stdout);
    }
    puts(thiele_fit_option_choice(option, 0) != NULL ? "." : "");
}

/* "Default: auto (500). Range: 1 to 10 steps." */
static void put_facts(const thiele_option *option, cli_medium medium)
{
    char low[CLI_NUMBER_MAX], high[CLI_NUMBER_MAX];
    const char *initial = option->type == THIELE_OPTION_FLAG ? "no" : option->initial;
    if (initial != NULL) {
        printf("Default: %s%s", initial, option->initially[0] != '\0' ? " (" : "");
        cli_put_marked(stdout, option->initially, medium);
        printf("%s.", option->initially[0] != '\0' ? ")" : "");
    } else {
        fputs("Default: ", stdout);
        cli_put_marked(stdout, option->initially, medium);
        putchar('.');
    }
    if (option->type == THIELE_OPTION_INTEGER || option->type == THIELE_OPTION_NUMBER) {
        printf(" Range: %s to %s", cli_exact(option->low, low), cli_exact(option->high, high));
        printf("%s%s.", option->unit[0] != '\0' ? " " : "", option->unit);
    }
    putchar('\n');
}

static void put_man_option(const cli_option *option)
{
    const thiele_option *fit = cli_fit_option(option);
    printf(".TP\n.%s \\-\\-", option->parse != NULL ? "BI" : "B");
    for (const char *c = option->name; *c != '\0'; c++) {
        printf(*c == '-' ? "\\-" : "%c", *c);
    }
    if (option->parse != NULL) {
        printf(" \" %s\"", option->value);
    }
    putchar('\n');
    put_sentences(fit, CLI_ROFF);
    if (thiele_fit_option_choice(fit, 0) != NULL) {
        put_choices(fit, CLI_ROFF);
    }
    if (option->parse != NULL || fit->initially[0] != '\0') {
        put_facts(fit, CLI_ROFF);
    }
}

static void print_man(const cli_command *command)
{
    for (int g = 0; g < cli_fit_groups(); g++) {
        const cli_group *group = cli_fit_group(g);
        const thiele_option_group *facts = cli_fit_group_facts(group);
        if (command->without != NULL && strcmp(command->without, facts->name) == 0) {
            continue;
        }
        printf(".SS %s\n", facts->title);
        cli_put_marked(stdout, facts->about, CLI_ROFF);
        putchar('\n');
        for (const cli_option *option = group->options; option->name != NULL; option++) {
            put_man_option(option);
        }
    }
}

static void put_markdown_option(const thiele_option *option)
{
    printf("\n### `%s`\n\n", option->name);
    put_sentences(option, CLI_MARKDOWN);
    if (thiele_fit_option_choice(option, 0) != NULL) {
        put_choices(option, CLI_MARKDOWN);
    }
    putchar('\n');
    put_facts(option, CLI_MARKDOWN);
    fputs("\n- command: ", stdout);
    if (option->type == THIELE_OPTION_PROGRAM) {
        puts("none");
    } else {
        fputs("`", stdout);
        char mark[80];
        snprintf(mark, sizeof mark, "`%s`", option->name);
        cli_put_marked(stdout, mark, CLI_PLAIN);
        printf("%s%s`\n", option->value[0] != '\0' ? " " : "", option->value);
    }
    printf("- C: `options.%s.%s`\n- type: %s\n", option->group, option->name, types[option->type]);
}

static void print_markdown(void)
{
    puts("# Options of a fit\n\n"
         "<!-- Written by scripts/options from src/model/options.def: edit that. -->\n\n"
         "All options of `thiele fit`, `thiele cv` and `thiele_fit_options`. A name is the same everywhere: "
         "`fix_inducing`\n"
         "is `--fix-inducing` on the command line, `options.inducing.fix_inducing` in C, and `\"fix_inducing\"` in\n"
         "`thiele options --json` and for `thiele_fit_options_set`. Where the default is *auto*, the fit decides by "
         "the table,\n"
         "and the text in parentheses says how. Messages write an option as `` `fix_inducing` ``, which the command "
         "shows as\n"
         "`--fix-inducing`.");
    for (int g = 0; g < thiele_fit_option_groups(); g++) {
        const thiele_option_group *group = thiele_fit_option_group_at(g);
        printf("\n## %s\n\n", group->title);
        cli_put_marked(stdout, group->about, CLI_MARKDOWN);
        putchar('\n');
        for (int i = 0; i < thiele_fit_option_count(); i++) {
            if (strcmp(thiele_fit_option_at(i)->group, group->name) == 0) {
                put_markdown_option(thiele_fit_option_at(i));
            }
        }
    }
    puts("\n## Other names\n");
    const char *name, *alias;
    for (int i = 0; (alias = thiele_fit_option_alias(i, &name)) != NULL; i++) {
        printf(name != NULL ? "- `%s`: the same as `%s`\n" : "- `%s`: accepted from old programs, without effect\n",
               alias, name);
    }
}

/* --- run -------------------------------------------------------------------------------------------------------------
 */

static int run(cli_settings *settings)
{
    if (settings->json) {
        print_json();
    } else if (settings->markdown) {
        print_markdown();
    } else if (settings->man || settings->man_cv) {
        print_man(settings->man ? &cmd_fit : &cmd_cv);
    } else {
        cli_print_fit_options();
    }
    return CLI_DONE;
}

const cli_command cmd_options = {
    .name = "options",
    .usage = "[--json]",
    .summary = "list the options of a fit",
    .about = "Lists all options of fit and cv with their meanings, defaults and ranges.",
    .groups = groups,
    .examples = "  thiele options\n"
                "  thiele options --json\n",
    .run = run,
};
