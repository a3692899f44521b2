/* Which labels are taken for which: rows by label and guess, for people and as JSON. */
#include <string.h>

#include "cli.h"

enum { MOST_SHOWN = 12, WIDTH = 12 };

static void print_label(const thiele_model *model, int class)
{
    const char *label = thiele_model_class(model, class);
    char text[WIDTH];
    snprintf(text, sizeof text, "%s", label);
    if (strlen(label) >= sizeof text) { /* not within a character of several bytes */
        size_t end = sizeof text - 2;
        while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80) {
            end--;
        }
        snprintf(text + end, sizeof text - end, "~");
    }
    printf("%*s", (int)(WIDTH - strlen(text)), "");
    cli_put(stdout, text);
}

void cli_print_confusion(const cli_confusion *confusion)
{
    int classes = thiele_model_classes(confusion->model);
    if (classes > MOST_SHOWN) {
        cli_row("confusion", "of %d labels: --json has it", classes);
        return;
    }
    cli_row("confusion", "rows by their label (down) and the guess (across)");
    printf("%*s", WIDTH, "");
    for (int guess = 0; guess < classes; guess++) {
        print_label(confusion->model, guess);
    }
    for (int label = 0; label < classes; label++) {
        putchar('\n');
        print_label(confusion->model, label);
        for (int guess = 0; guess < classes; guess++) {
            printf("%*lld", WIDTH, (long long)confusion->rows[label + classes * guess]);
        }
    }
    putchar('\n');
}

void cli_json_confusion(cli_json *json, const cli_confusion *confusion)
{
    int classes = thiele_model_classes(confusion->model);
    cli_json_open(json, "labels", '[');
    for (int label = 0; label < classes; label++) {
        cli_json_text(json, NULL, thiele_model_class(confusion->model, label));
    }
    cli_json_close(json, ']');
    cli_json_open(json, "confusion", '[');
    for (int label = 0; label < classes; label++) {
        cli_json_open(json, NULL, '[');
        for (int guess = 0; guess < classes; guess++) {
            cli_json_integer(json, NULL, confusion->rows[label + classes * guess]);
        }
        cli_json_close(json, ']');
    }
    cli_json_close(json, ']');
}
