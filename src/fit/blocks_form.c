/* Which sparse model: the six by name, and weighted sums of those that share their test conditional. */
#include <math.h>
#include <string.h>

#include "fit/blocks.h"

static const struct {
    const char *name;
    thi_residual residual;
    thi_conditional conditional;
    bool local;
} forms[] = {
    {"sor", THI_RESIDUAL_NONE, THI_CONDITIONAL_NONE, false},
    {"dtc", THI_RESIDUAL_NONE, THI_CONDITIONAL_FULL, false},
    {"fitc", THI_RESIDUAL_DIAGONAL, THI_CONDITIONAL_FULL, false},
    {"fic", THI_RESIDUAL_DIAGONAL, THI_CONDITIONAL_DIAGONAL, false},
    {"pitc", THI_RESIDUAL_BLOCK, THI_CONDITIONAL_FULL, false},
    {"pic", THI_RESIDUAL_BLOCK, THI_CONDITIONAL_FULL, true},
};
enum { FORMS = sizeof forms / sizeof *forms };

static int find(const char *name, size_t length)
{
    for (int i = 0; i < FORMS; i++) {
        if (strlen(forms[i].name) == length && strncmp(forms[i].name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

/* The length of a term without the blanks around it; *term is moved past those before. */
static size_t trim(const char **term, size_t length)
{
    while (length > 0 && **term == ' ') {
        (*term)++;
        length--;
    }
    while (length > 0 && (*term)[length - 1] == ' ') {
        length--;
    }
    return length;
}

/* "0.3 fitc" or "fitc". False: neither. */
static bool read_term(const char *term, size_t length, double *weight, int *form)
{
    length = trim(&term, length);
    size_t number = 0;
    while (number < length && term[number] != ' ') {
        number++;
    }
    *weight = 1.0;
    if (number < length) {
        const char *name = term + number;
        size_t rest = trim(&name, length - number);
        *form = find(name, rest);
        return *form >= 0 && thi_parse_number(term, number, weight);
    }
    *form = find(term, length);
    return *form >= 0;
}

bool thi_blocks_is_form(const char *text)
{
    double weight;
    int form;
    return read_term(text, strcspn(text, "+"), &weight, &form);
}

static thiele_status add_term(thi_blocks_form *form, thiele_context *ctx, const char *term, size_t length, bool first)
{
    double weight;
    int i;
    if (!read_term(term, length, &weight, &i)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "'%.*s' is not part of a sparse method: write sor, dtc, fitc, fic, pitc or pic, or a sum such "
                        "as '0.3 fitc + 0.7 dtc'",
                        (int)length, term);
    }
    if (!(weight >= 0.0 && weight <= 1.0)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the weight %g of %s must be between 0 and 1", weight,
                        forms[i].name);
    }
    if (!first && (form->conditional != forms[i].conditional || form->local != forms[i].local)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "%s predicts differently from the models before it: only dtc, fitc and pitc, which share a "
                        "test conditional, can be summed",
                        forms[i].name);
    }
    form->conditional = forms[i].conditional;
    form->local = forms[i].local;
    form->weight[forms[i].residual] += weight;
    return THIELE_OK;
}

thiele_status thi_blocks_form_parse(thi_blocks_form *form, thiele_context *ctx, const char *text)
{
    *form = (thi_blocks_form){0};
    bool first = true;
    for (const char *term = text;; first = false) {
        size_t length = strcspn(term, "+");
        thiele_status status = add_term(form, ctx, term, length, first);
        if (status != THIELE_OK) {
            return status;
        }
        if (term[length] == '\0') {
            break;
        }
        term += length + 1;
    }
    double total = 0.0;
    for (int r = 0; r < THI_RESIDUAL_KINDS; r++) {
        total += form->weight[r];
    }
    return fabs(total - 1.0) < 1e-9
               ? THIELE_OK
               : thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the weights in '%s' sum to %g and must sum to 1", text, total);
}
