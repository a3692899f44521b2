/* thiele examples: whole sequences of commands, by task, that can be pasted as they are. tests/cli runs them. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct example {
    const char *task, *what, *commands;
} example;

#define ROWS "thiele generate -n 300 --seed 1 -o rows.csv\n"

static const example examples[] = {
    {"regression", "a column of numbers: fit, score, predict, look",
     ROWS "thiele generate -n 100 --seed 2 -o test.csv\n"
          "thiele fit rows.csv --target strength --ignore row -o model.thiele\n"
          "thiele score model.thiele test.csv\n"
          "thiele predict model.thiele test.csv --quantiles 0.05,0.95 --id row -o out.csv\n"
          "thiele plot model.thiele rows.csv --over x1 -o strength.svg\n"},
    {"deadline", "the best model that three seconds allow, with intervals that hold",
     "thiele generate -n 5000 --seed 1 -o many.csv\n"
     "thiele fit many.csv --target strength --ignore row --deadline 3 --calibrate\n"},
    {"classes", "a column of labels: probabilities, AUC, who is taken for whom",
     ROWS "awk -F, 'NR == 1 {print \"x1,x2,size\"}\n"
          "    NR > 1 {print $2 \",\" $3 \",\" ($5 > 45 ? \"large\" : $5 > 35 ? \"middle\" : \"small\")}' \\\n"
          "    rows.csv > sizes.csv\n"
          "thiele fit sizes.csv --target size --holdout 0.2 -o sizes.thiele\n"
          "thiele score sizes.thiele sizes.csv\n"},
    {"counts", "how many, in how many hours",
     ROWS "awk -F, 'NR == 1 {print \"x,hours,visits\"}\n"
          "    NR > 1 {h = 1 + $1 % 4; print $2 \",\" h \",\" int(h * exp($2 / 2) + $1 % 3)}' \\\n"
          "    rows.csv > visits.csv\n"
          "thiele fit visits.csv --target visits --likelihood poisson --exposure hours\n"},
    {"outliers", "noise that is now and then far off",
     "thiele generate -n 150 --seed 1 -o rows.csv\n"
     "awk -F, 'NR == 1 {print \"x,y\"}\n"
     "    NR > 1 {print $2 \",\" $2 * $2 + $1 % 7 / 7 + ($1 % 20 ? 0 : 15)}' rows.csv > sensor.csv\n"
     "thiele fit sensor.csv --target y -o sensor.thiele\n"
     "thiele plot sensor.thiele sensor.csv -o sensor.svg\n"},
    {"compare", "two kernels, on rows that neither saw",
     "thiele generate -n 120 --seed 1 -o rows.csv\n"
     "thiele cv rows.csv --target strength --ignore row --kernel 'se(ard)' --folds 3\n"
     "thiele cv rows.csv --target strength --ignore row --kernel 'matern32(ard)' --folds 3\n"},
    {"stream", "rows that arrive: learn them once each, and go on later",
     "thiele generate -n 3000 --seed 1 -o rows.csv\n"
     "cat rows.csv | thiele fit - --stream --warm 1500 --inducing 40 --effort low \\\n"
     "    --target strength --ignore row -o live.thiele\n"
     "thiele generate -n 500 --seed 2 -o new.csv\n"
     "thiele update live.thiele new.csv --freeze\n"},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static int run(cli_settings *settings)
{
    const char *task = settings->operand[0], *guess = NULL;
    for (int i = 0; i < EXAMPLES; i++) {
        if (task == NULL) {
            printf("%s# %s: %s\n%s", i > 0 ? "\n" : "", examples[i].task, examples[i].what, examples[i].commands);
        } else if (strcmp(task, examples[i].task) == 0) {
            printf("# %s\n%s", examples[i].what, examples[i].commands);
            return CLI_DONE;
        } else {
            cli_guess(&guess, task, examples[i].task);
        }
    }
    if (task != NULL && guess != NULL) {
        return cli_misuse("there is no example '%s': did you mean '%s'?", task, guess);
    }
    return task == NULL ? CLI_DONE : cli_misuse("there is no example '%s' ('thiele examples' lists them all)", task);
}

static const cli_group groups[] = {{0}};

const cli_command cmd_examples = {
    .name = "examples",
    .usage = "[TASK]",
    .summary = "show examples by task, ready to run",
    .about = "Prints sequences of commands by task: regression, deadline, classes, counts, outliers, compare, stream. "
             "Each makes its own data, writes to the current folder, and can be pasted as is or piped into a shell.",
    .operand = {"TASK"},
    .optional = 1,
    .groups = groups,
    .examples = "  thiele examples\n"
                "  thiele examples classes | sh -e\n",
    .run = run,
};
