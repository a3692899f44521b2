/* The list of methods, what each can do and why not the rest; for messages and for docs/methods.md. */
#include <string.h>

#include "fit/blocks.h"
#include "model/methods.h"

const thi_method *const thi_methods[] = {
#define THI_METHOD(name) &thi_method_##name,
#include THI_METHODS
#undef THI_METHOD
};
const int thi_method_count = sizeof thi_methods / sizeof *thi_methods;

/* A sum goes by the rules of a part whose evidence is no bound, where it has one. */
static const thi_method *part_of_sum(const char *text)
{
    const thi_method *found = NULL;
    for (int i = 0; i < thi_method_count; i++) {
        const thi_method *method = thi_methods[i];
        bool part = (method->takes & THI_TAKES_BLOCKS) != 0 && strstr(text, method->name) != NULL;
        found = part && (found == NULL || strcmp(found->evidence, "bound") == 0) ? method : found;
    }
    return found;
}

const thi_method *thi_method_named(const char *name)
{
    for (int i = 0; i < thi_method_count; i++) {
        if (strcmp(name, thi_methods[i]->name) == 0) {
            return thi_methods[i];
        }
    }
    return strpbrk(name, "+ ") != NULL && thi_blocks_is_form(name) ? part_of_sum(name) : NULL;
}

bool thi_method_is_first(int i)
{
    return i == 0 || strcmp(thi_methods[i]->name, thi_methods[i - 1]->name) != 0;
}

/* What a name can do, by any of its rows. */
static bool name_has(int i, unsigned can, unsigned takes)
{
    unsigned own = 0, options = 0;
    for (int k = i; k < thi_method_count && (k == i || !thi_method_is_first(k)); k++) {
        own |= thi_methods[k]->can;
        options |= thi_methods[k]->takes;
    }
    return (own & can) != 0 || (options & takes) != 0;
}

thiele_status thi_methods_listed(thiele_context *ctx, unsigned can, unsigned takes, char **out)
{
    bool all = can == 0 && takes == 0;
    int count = 0, shown = 0;
    thi_text text;
    thi_text_init(&text, ctx);
    for (int i = 0; i < thi_method_count; i++) {
        count += thi_method_is_first(i) && (all || name_has(i, can, takes));
    }
    for (int i = 0; i < thi_method_count; i++) {
        if (thi_method_is_first(i) && (all || name_has(i, can, takes))) {
            thi_text_add(&text, "%s%s", shown == 0 ? "" : shown + 1 == count ? " and " : ", ", thi_methods[i]->name);
            shown++;
        }
    }
    return thi_text_take(&text, out);
}

/* --- what works with what --------------------------------------------------------------------------------------------
 */

static const char *const reasons[THI_REASONS] = {
    [THI_WHY_CLOSED] = "its posterior and evidence are in closed form for Gaussian noise only",
    [THI_WHY_VARIATIONAL] = "with any other likelihood it becomes the method variational",
    [THI_WHY_ONE_FUNCTION] = "a target with Gaussian noise has a single function",
    [THI_WHY_APART] = "targets share nothing, kernels included: fitting each separately gives the same",
    [THI_WHY_PAIRS] = "it holds a matrix of all pairs of rows in memory",
    [THI_WHY_ROWS] = "it keeps its training rows, not inducing inputs (fit with `inducing` M instead)",
    [THI_WHY_DRAWS] = "its posterior is a set of draws (fit by `method` variational or augmented instead)",
    [THI_WHY_LAST] = "there is no model before the end, which `deadline` brings forward",
    [THI_WHY_OPTIMUM] = "it ends at an optimum, which more time does not change",
    [THI_WHY_EXACT] = "only exact regression has them (use `holdout` or thiele cv instead)",
    [THI_WHY_ONCE] = "it counts each row once (use `method` exact, collapsed or variational instead)",
    [THI_WHY_ONE_PROCESS] =
        "its passes over the rows are not shared between processes yet (those of `method` collapsed are)",
};

static thi_reason reason_of(const thi_method *method, unsigned can)
{
    for (const thi_lack *lack = method->lacks; lack != NULL && lack->can != 0; lack++) {
        if ((lack->can & can) != 0 && (method->can & can) == 0) {
            return lack->why;
        }
    }
    return THI_WHY_UNKNOWN;
}

const char *thi_method_lacks(const thi_method *method, unsigned can)
{
    const char *reason = reasons[reason_of(method, can)];
    return reason != NULL ? reason : "it was not made for that";
}

/* "yes", or the letter of the reason why not; of two rows of a name, the second's. */
static void add_cell(thi_text *text, int i, unsigned can)
{
    int last = i;
    while (last + 1 < thi_method_count && !thi_method_is_first(last + 1)) {
        last++;
    }
    thi_reason why = reason_of(thi_methods[last], can);
    if (name_has(i, can, 0)) {
        thi_text_add(text, " yes |");
    } else if (why == THI_WHY_UNKNOWN) {
        thi_text_add(text, "  |");
    } else {
        thi_text_add(text, " %c |", 'a' + (int)why - 1);
    }
}

thiele_status thi_methods_matrix(thiele_context *ctx, char **out)
{
    static const char *const abilities[THI_ABILITIES] = {
        "any likelihood", "several latents", "targets together",  "tables beyond memory",
        "update",         "snapshots",       "joint predictions", "until a deadline",
        "leave-one-out",  "weights",         "several processes"};
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, "| method | what it is |");
    for (int a = 0; a < THI_ABILITIES; a++) {
        thi_text_add(&text, " %s |", abilities[a]);
    }
    thi_text_add(&text, "\n|---|---|");
    for (int a = 0; a < THI_ABILITIES; a++) {
        thi_text_add(&text, ":-:|");
    }
    thi_text_add(&text, "\n");
    for (int i = 0; i < thi_method_count; i++) {
        if (thi_method_is_first(i)) {
            thi_text_add(&text, "| `%s` | %s |", thi_methods[i]->name, thi_methods[i]->words);
            for (int a = 0; a < THI_ABILITIES; a++) {
                add_cell(&text, i, 1U << a);
            }
            thi_text_add(&text, "\n");
        }
    }
    thi_text_add(&text, "\n");
    for (int why = THI_WHY_UNKNOWN + 1; why < THI_REASONS; why++) {
        thi_text_add(&text, "- %c: %s\n", 'a' + why - 1, reasons[why]);
    }
    return thi_text_take(&text, out);
}
