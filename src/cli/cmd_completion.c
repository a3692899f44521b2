/*
 * thiele completion: what a shell needs to complete a command line, from the same tables as the help. The scripts of
 * bash and zsh are a list of lines "COMMAND OPTION words" in a function that looks them up; fish has a line for each.
 */
#include <string.h>

#include "cli.h"

/* What may follow an option: its words, or files and whatever else. */
static void put_words(const cli_option *option)
{
    const thiele_option *fit = cli_fit_option(option);
    if (fit != NULL) {
        const char *word = thiele_fit_option_choice(fit, 0), *first = fit->initial != NULL ? fit->initial : "";
        printf("%s", word != NULL ? first : "");
        for (int i = 0; word != NULL; word = thiele_fit_option_choice(fit, ++i)) {
            if (strcmp(word, first) != 0) {
                printf(" %s", word);
            }
        }
    } else if (option->parse == cli_parse_choice) {
        for (const char *c = option->value; *c != '\0'; c++) {
            putchar(*c == '|' ? ' ' : *c);
        }
    }
}

typedef void (*put_option_fn)(const cli_command *command, const cli_option *option);

static void each_option(put_option_fn put)
{
    static const cli_option help = {.name = "help", .letter = 'h', .help = "say more about the command"};
    for (int c = 0; cli_commands[c] != NULL; c++) {
        const cli_group *group;
        for (int g = 0; (group = cli_group_at(cli_commands[c], g)) != NULL; g++) {
            for (const cli_option *option = group->options; option->name != NULL; option++) {
                put(cli_commands[c], option);
            }
        }
        put(cli_commands[c], &help);
    }
}

static void put_line(const cli_command *command, const cli_option *option)
{
    printf("%s --%s%s ", command->name, option->name, option->parse != NULL ? "=" : "");
    put_words(option);
    putchar('\n');
}

static void put_commands(void)
{
    for (int c = 0; cli_commands[c] != NULL; c++) {
        printf("%s%s", c > 0 ? " " : "", cli_commands[c]->name);
    }
}

static void put_table(void)
{
    fputs("_thiele_options() {\n    cat <<'END'\n", stdout);
    each_option(put_line);
    fputs("END\n}\n", stdout);
}

static void bash(void)
{
    fputs("# Completion of thiele for bash; written by: thiele completion bash\n", stdout);
    put_table();
    fputs("_thiele() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W \"help --help --version ",
          stdout);
    put_commands();
    fputs("\" -- \"$word\"))\n"
          "    elif [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$(_thiele_options | awk -v c=\"$command\" '$1 == c { sub(/=$/, \"\", $2); "
          "print $2 "
          "}')\" -- \"$word\"))\n"
          "    else\n"
          "        local words\n"
          "        words=$(_thiele_options | awk -v c=\"$command\" -v o=\"$before=\" '$1 == c && $2 == o { $1 = $2 = "
          "\"\"; "
          "print }')\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "        [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _thiele thiele\n",
          stdout);
}

static void zsh(void)
{
    fputs("#compdef thiele\n# Completion of thiele for zsh; written by: thiele completion zsh\n", stdout);
    put_table();
    fputs("_thiele() {\n"
          "    local -a found\n"
          "    local command=${words[2]} before=${words[CURRENT-1]}\n"
          "    if (( CURRENT == 2 )); then\n"
          "        compadd -- help --help --version ",
          stdout);
    put_commands();
    fputs(
        "\n"
        "    elif [[ ${words[CURRENT]} == -* ]]; then\n"
        "        found=(${(f)\"$(_thiele_options | awk -v c=$command '$1 == c { sub(/=$/, \"\", $2); print $2 }')\"})\n"
        "        compadd -- $found\n"
        "    else\n"
        "        found=(${=\"$(_thiele_options | awk -v c=$command -v o=$before= '$1 == c && $2 == o { $1 = $2 = \"\"; "
        "print "
        "}')\"})\n"
        "        if (( $#found )); then compadd -- $found; else _files; fi\n"
        "    fi\n"
        "}\n"
        "compdef _thiele thiele\n",
        stdout);
}

static void put_quoted(const char *text)
{
    putchar('\'');
    for (const char *c = text; *c != '\0'; c++) {
        fputs(*c == '\'' || *c == '\\' ? "\\" : "", stdout);
        putchar(*c);
    }
    putchar('\'');
}

static void put_fish(const cli_command *command, const cli_option *option)
{
    printf("complete -c thiele -n '__fish_seen_subcommand_from %s' -l %s", command->name, option->name);
    if (option->letter != 0) {
        printf(" -s %c", option->letter);
    }
    if (option->parse != NULL) {
        bool words = option->parse == cli_parse_choice || thiele_fit_option_choice(cli_fit_option(option), 0) != NULL;
        fputs(words ? " -x -a '" : " -r", stdout);
        if (words) {
            put_words(option);
            putchar('\'');
        }
    }
    fputs(" -d ", stdout);
    put_quoted(option->help);
    putchar('\n');
}

static void fish(void)
{
    puts("# Completion of thiele for fish; written by: thiele completion fish");
    for (int c = 0; cli_commands[c] != NULL; c++) {
        printf("complete -c thiele -f -n __fish_use_subcommand -a %s -d ", cli_commands[c]->name);
        put_quoted(cli_commands[c]->summary);
        putchar('\n');
    }
    each_option(put_fish);
}

static int run(cli_settings *settings)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(settings->operand[0], shells[i].name) == 0) {
            shells[i].print();
            return CLI_DONE;
        }
    }
    return cli_misuse("no completion for '%s': there are bash, zsh and fish", settings->operand[0]);
}

static const cli_group groups[] = {{0}};

const cli_command cmd_completion = {
    .name = "completion",
    .usage = "SHELL",
    .summary = "print a script that completes command lines",
    .about = "Prints what bash, zsh or fish needs to complete commands, options and their words. An installed thiele "
             "has these scripts where the shells look for them.",
    .operand = {"SHELL"},
    .groups = groups,
    .examples = "  source <(thiele completion bash)\n"
                "  thiele completion fish > ~/.config/fish/completions/thiele.fish\n",
    .run = run,
};
