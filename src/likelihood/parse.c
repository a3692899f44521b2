/*
 * Likelihoods from text, and back:
 *   likelihood = name [ '(' [argument {',' argument}] ')' ]      argument = word ('='|'~') values
 *   values     = number | '[' number {',' number} ']'
 * `=` fixes a parameter, `~` gives a first guess. A list goes to the parameters that are numbered behind its word:
 * a=[1,2] to a1 and a2, cuts=[-1,0,1] to the first cut and the gaps behind it; a single number to all of them. The text
 * may come from a file nobody vouches for: all counts are bounded.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/cursor.h"
#include "likelihood/families.h"

enum { NAME_MAX_LENGTH = 40, ARGUMENTS_MAX = 4096, VALUES_MAX = 65536, SIZE_MAX_COUNT = 1024, OUTPUTS_MAX = 65536 };

typedef struct given {
    const char *word;
    size_t length;
    bool fixed, list, used;
    bool exact;       /* the word is the name of a parameter, and means that one alone */
    bool chain;       /* the first value, and then the steps from each to the next */
    int first, count; /* where its values are */
} given;

typedef struct parser {
    thi_cursor cursor;
    given argument[ARGUMENTS_MAX];
    int arguments;
    double *value;
    int values;
} parser;

/* The same for a place that was passed. */
static thiele_status fail_at(const parser *p, const char *at, const char *why)
{
    thi_cursor there = p->cursor;
    there.at = at;
    return thi_cursor_fail(&there, why);
}

static bool same(const given *argument, const char *word)
{
    return thi_word_is(argument->word, argument->length, word);
}

/* --- the arguments, as they were written -----------------------------------------------------------------------------
 */

static thiele_status read_values(parser *p, given *argument)
{
    argument->list = thi_cursor_accept(&p->cursor, '[');
    argument->first = p->values;
    do {
        if (p->values == VALUES_MAX) {
            return fail_at(p, p->cursor.at, "there are too many values");
        }
        thiele_status status = thi_grow(p->cursor.ctx, &p->value, (size_t)p->values + 1, sizeof *p->value);
        if (status != THIELE_OK) {
            return status;
        }
        status = thi_cursor_number(&p->cursor, &p->value[p->values]);
        if (status != THIELE_OK) {
            return status;
        }
        p->values++;
    } while (argument->list && thi_cursor_accept(&p->cursor, ','));
    argument->count = p->values - argument->first;
    return !argument->list || thi_cursor_accept(&p->cursor, ']') ? THIELE_OK
                                                                 : fail_at(p, p->cursor.at, "',' or ']' was expected");
}

/* A word of letters, digits, underscores and hyphens. */
static const char *read_word(thi_cursor *cursor, size_t *length)
{
    thi_cursor_peek(cursor);
    const char *start = cursor->at;
    while (isalnum((unsigned char)*cursor->at) || *cursor->at == '_' || *cursor->at == '-') {
        cursor->at++;
    }
    *length = (size_t)(cursor->at - start);
    return start;
}

static thiele_status read_argument(parser *p)
{
    if (p->arguments == ARGUMENTS_MAX) {
        return fail_at(p, p->cursor.at, "there are too many arguments");
    }
    given *argument = &p->argument[p->arguments++];
    argument->word = read_word(&p->cursor, &argument->length);
    argument->fixed = thi_cursor_peek(&p->cursor) == '=';
    if (argument->length == 0 || (!thi_cursor_accept(&p->cursor, '=') && !thi_cursor_accept(&p->cursor, '~'))) {
        return fail_at(p, p->cursor.at, "a parameter with '=value' (fixed) or '~value' (first guess) was expected");
    }
    for (int i = 0; i < p->arguments - 1; i++) {
        if (p->argument[i].length == argument->length &&
            memcmp(p->argument[i].word, argument->word, argument->length) == 0) {
            return fail_at(p, argument->word, "this parameter is given twice");
        }
    }
    return read_values(p, argument);
}

static thiele_status read_arguments(parser *p)
{
    if (thi_cursor_accept(&p->cursor, '(') && !thi_cursor_accept(&p->cursor, ')')) {
        do {
            thiele_status status = read_argument(p);
            if (status != THIELE_OK) {
                return status;
            }
        } while (thi_cursor_accept(&p->cursor, ','));
        if (!thi_cursor_accept(&p->cursor, ')')) {
            return fail_at(p, p->cursor.at, "',' or ')' was expected");
        }
    }
    return thi_cursor_peek(&p->cursor) == '\0' ? THIELE_OK : fail_at(p, p->cursor.at, "nothing more was expected here");
}

/* --- parameters ------------------------------------------------------------------------------------------------------
 */

/* Of "cut" in cut1, of "w" in w_1_1. */
static size_t stem_length(const char *name)
{
    size_t stem = strcspn(name, "0123456789");
    while (stem > 0 && (name[stem - 1] == '_' || name[stem - 1] == '-')) {
        stem--;
    }
    return stem;
}

/* "cut" or "cuts" for cut1, cut2, ... */
static bool numbered_behind(const given *argument, const char *name)
{
    size_t stem = stem_length(name);
    bool plural = argument->length == stem + 1 && argument->word[stem] == 's';
    return name[stem] != '\0' && (argument->length == stem || plural) && memcmp(name, argument->word, stem) == 0;
}

/* The cut points of an ordinal likelihood are kept as the first one and the gaps between them. */
static const char CHAIN_FIRST[] = "cut1", CHAIN_STEP[] = "gap";

static bool meant(const given *argument, const char *name)
{
    if (argument->chain) {
        return strcmp(name, CHAIN_FIRST) == 0 || strncmp(name, CHAIN_STEP, strlen(CHAIN_STEP)) == 0;
    }
    return argument->exact ? same(argument, name) : numbered_behind(argument, name);
}

static bool is_name(const thiele_likelihood *lik, const given *argument)
{
    for (int i = 0; i < lik->parameters; i++) {
        if (same(argument, lik->phi[i].name)) {
            return true;
        }
    }
    return false;
}

static thiele_status no_such(const parser *p, const thiele_likelihood *lik, const given *argument)
{
    char known[300] = "none";
    size_t length = 0;
    for (int i = 0; i < lik->parameters && length + 60 < sizeof known; i++) {
        length +=
            (size_t)snprintf(known + length, sizeof known - length, "%s%.40s", i > 0 ? ", " : "", lik->phi[i].name);
    }
    return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT,
                    "likelihood '%.200s', position %d: no parameter has that name; there are: %s", p->cursor.text,
                    (int)(argument->word - p->cursor.text) + 1, known);
}

/* set: which parameters were given by the arguments before this one. */
static thiele_status apply(const parser *p, thiele_likelihood *lik, given *argument, bool *set)
{
    int found = 0;
    argument->exact = is_name(lik, argument);
    for (int i = 0; i < lik->parameters; i++) {
        bool here = meant(argument, lik->phi[i].name);
        found += here;
        if (here && set[i]) {
            return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT,
                            "likelihood '%.200s', position %d: parameter '%.60s' is given twice", p->cursor.text,
                            (int)(argument->word - p->cursor.text) + 1, lik->phi[i].name);
        }
    }
    if (found == 0) {
        return no_such(p, lik, argument);
    }
    if (argument->count != found && (argument->chain || argument->count != 1)) {
        return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%.200s', position %d: %d values are needed, not %d", p->cursor.text,
                        (int)(argument->word - p->cursor.text) + 1, found, argument->count);
    }
    const double *value = p->value + argument->first;
    for (int i = 0; i < lik->parameters; i++) {
        if (meant(argument, lik->phi[i].name)) {
            set[i] = true;
            thiele_status status = thi_likelihood_set_phi(lik, p->cursor.ctx, i, *value);
            if (status != THIELE_OK) {
                return status;
            }
            lik->phi[i].fixed = argument->fixed;
            lik->phi[i].given = true;
            value += argument->count > 1;
        }
    }
    return THIELE_OK;
}

static thiele_status apply_all(parser *p, thiele_likelihood *lik)
{
    bool *set = NULL;
    thiele_status status = thi_alloc(p->cursor.ctx, &set, (size_t)lik->parameters, sizeof *set);
    for (int i = 0; i < p->arguments && status == THIELE_OK; i++) {
        status = p->argument[i].used ? THIELE_OK : apply(p, lik, &p->argument[i], set);
    }
    thi_free(set);
    return status == THIELE_OK ? thi_likelihood_check(lik, p->cursor.ctx) : status;
}

thiele_status thi_likelihood_arguments(thiele_likelihood *lik, thiele_context *ctx, const char *text)
{
    parser p = {.cursor = {ctx, "likelihood", text, text}};
    thiele_status status = read_arguments(&p);
    if (status == THIELE_OK) {
        status = apply_all(&p, lik);
    }
    thi_free(p.value);
    return status;
}

/* --- sizes -----------------------------------------------------------------------------------------------------------
 */

/* Words that say how large a likelihood is, not what a parameter is; or lists whose length says it. */
static const struct size_word {
    const char *family, *word;
    bool classes; /* or else nodes */
    bool counted; /* the length of the list counts, and it is a parameter as well */
    int more;     /* than its length; such a list is a chain */
} size_words[] = {
    {"softmax", "classes", true, false, 0},  {"logistic-softmax", "classes", true, false, 0},
    {"ordinal", "classes", true, false, 0},  {"ordinal", "cuts", true, true, 1},
    {"ordinal", "cutpoints", true, true, 1}, {"warped", "terms", false, false, 0},
    {"warped", "a", false, true, 0},         {"gprn", "nodes", false, false, 0},
    {"mixing", "latents", false, false, 0},
};
enum { SIZE_WORDS = sizeof size_words / sizeof size_words[0] };

static thiele_status make_chain(const parser *p, given *argument)
{
    double *value = p->value + argument->first;
    for (int i = argument->count - 1; i > 0; i--) {
        value[i] -= value[i - 1];
        if (!(value[i] > 0)) {
            return fail_at(p, argument->word, "these values must increase");
        }
    }
    argument->chain = true;
    return THIELE_OK;
}

static thiele_status take_size(const parser *p, thiele_likelihood *lik, given *argument, const struct size_word *word)
{
    int *target = word->classes ? &lik->classes : &lik->nodes;
    if (word->counted) {
        /* A number by itself is for all of them, however many there are. */
        bool counts = argument->list || word->more > 0;
        *target = *target == 0 && counts ? argument->count + word->more : *target;
        return word->more == 0 ? THIELE_OK : make_chain(p, argument);
    }
    double value = p->value[argument->first];
    if (argument->count != 1 || !argument->fixed || !(value >= 1 && value <= SIZE_MAX_COUNT) || value != floor(value)) {
        return fail_at(p, argument->word, "this takes '=' and a whole number from 1 to 1024");
    }
    if (*target != 0 && *target != (int)value) {
        return fail_at(p, argument->word, "this is not the number that the target column has");
    }
    argument->used = true;
    *target = (int)value;
    return THIELE_OK;
}

static thiele_status take_sizes(parser *p, thiele_likelihood *lik)
{
    /* What is said counts before what is to be counted, whatever their order. */
    for (int i = 0; i < 2 * SIZE_WORDS * p->arguments; i++) {
        const struct size_word *word = &size_words[i % SIZE_WORDS];
        given *argument = &p->argument[i / SIZE_WORDS % p->arguments];
        if (word->counted != (i >= SIZE_WORDS * p->arguments)) {
            continue;
        }
        if (strcmp(word->family, lik->ops->name) == 0 && same(argument, word->word)) {
            thiele_status status = take_size(p, lik, argument, word);
            if (status != THIELE_OK) {
                return status;
            }
        }
    }
    return THIELE_OK;
}

/* --- names -----------------------------------------------------------------------------------------------------------
 */

static const char *const aliases[][2] = {
    {"normal", "gaussian"},         {"logistic", "bernoulli"},     {"bernoulli-logit", "bernoulli"},
    {"probit", "bernoulli-probit"}, {"bayesian-svm", "svm"},       {"categorical", "softmax"},
    {"ordinal-probit", "ordinal"},  {"warped-gaussian", "warped"},
};

/* The name in lower case with hyphens, its other names resolved; empty when it is too long. */
static void read_name(parser *p, char *name)
{
    thi_cursor_peek(&p->cursor);
    size_t length = 0;
    const char *start = p->cursor.at;
    while (isalnum((unsigned char)*p->cursor.at) || *p->cursor.at == '_' || *p->cursor.at == '-') {
        p->cursor.at++;
    }
    if ((size_t)(p->cursor.at - start) < NAME_MAX_LENGTH) {
        for (; start + length < p->cursor.at; length++) {
            name[length] = start[length] == '_' ? '-' : (char)tolower((unsigned char)start[length]);
        }
    }
    name[length] = '\0';
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcmp(name, aliases[i][0]) == 0) {
            strcpy(name, aliases[i][1]);
        }
    }
}

/* Words for which there is a likelihood to suggest. */
static const thi_synonym synonyms[] = {
    {"logit", "bernoulli"},
    {"binary", "bernoulli"},
    {"binomial-logit", "binomial"},
    {"t", "student-t"},
    {"robust", "student-t"},
    {"huber", "laplace"},
    {"negbin", "negative-binomial"},
    {"nb", "negative-binomial"},
    {"multinomial", "softmax"},
    {"multiclass", "softmax"},
    {"classification", "softmax"},
    {"regression", "gaussian"},
    {"lognormal", "warped"},
    {"log-normal", "warped"},
    {"count", "poisson"},
    {"counts", "poisson"},
    {"hetero", "heteroscedastic"},
    {NULL, NULL},
};

static thiele_status unknown_name(parser *p, const char *name)
{
    if (strcmp(name, "plugin") == 0 && *p->cursor.at == ':') {
        return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT,
                        "'%.200s' names a plug-in, which is loaded from its path and not made from text",
                        p->cursor.text);
    }
    thi_near near;
    char known[400];
    size_t length = 0;
    thi_near_begin(&near, name, strlen(name), synonyms);
    for (const thi_family_entry *entry = thi_family_entries; entry->ops != NULL; entry++) {
        thi_near_try(&near, entry->ops->name);
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s",
                                   entry == thi_family_entries ? "" : ", ", entry->ops->name);
        length = length < sizeof known ? length : sizeof known - 1;
    }
    if (near.name != NULL) {
        return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT, "there is no likelihood '%s'; did you mean '%s'?", name,
                        near.name);
    }
    return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT, "there is no likelihood '%.40s'; there are: %s",
                    p->cursor.text, known);
}

static thiele_status find_family(parser *p, const thi_family_entry **family)
{
    char name[NAME_MAX_LENGTH];
    read_name(p, name);
    for (*family = thi_family_entries; (*family)->ops != NULL; (*family)++) {
        if (strcmp(name, (*family)->ops->name) == 0) {
            return THIELE_OK;
        }
    }
    return unknown_name(p, name);
}

thiele_status thi_likelihood_find(thiele_context *ctx, const char *text, const thi_likelihood_ops **ops)
{
    parser p = {.cursor = {ctx, "likelihood", text, text}};
    const thi_family_entry *family;
    *ops = NULL;
    if (thi_cursor_peek(&p.cursor) == 'p' && strncmp(p.cursor.at, "plugin:", 7) == 0) {
        return THIELE_OK;
    }
    thiele_status status = find_family(&p, &family);
    if (status == THIELE_OK && thi_cursor_peek(&p.cursor) != '(' && thi_cursor_peek(&p.cursor) != '\0') {
        return fail_at(&p, p.cursor.at, "a name, then '(' or nothing, was expected");
    }
    *ops = status == THIELE_OK ? family->ops : NULL;
    return status;
}

/* Gaussian noise around several outputs is that of each, whichever name it has. */
static const thi_family_entry *for_outputs(const thi_family_entry *family, int outputs)
{
    const thi_family_entry *entry = thi_family_entries;
    if (family->ops != &thi_lik_gaussian && family->ops != &thi_lik_gaussians) {
        return family;
    }
    while (entry->ops != (outputs == 1 ? &thi_lik_gaussian : &thi_lik_gaussians)) {
        entry++;
    }
    return entry;
}

static thiele_status check_outputs(const parser *p, const thiele_likelihood *lik, int outputs)
{
    if (lik->outputs == outputs) {
        return THIELE_OK;
    }
    return thi_fail(
        p->cursor.ctx, THIELE_ERROR_ARGUMENT,
        "likelihood '%s' has %d output%s, but there are %d target columns (gaussian, gprn and mixing take several)",
        lik->ops->name, lik->outputs, lik->outputs == 1 ? "" : "s", outputs);
}

thiele_status thiele_likelihood_parse(thiele_likelihood **out, thiele_context *ctx, const char *text, int outputs,
                                      int classes)
{
    THI_NEED_OUT(out, ctx, ctx && text);
    if (outputs < 1 || outputs > OUTPUTS_MAX || classes < 0 || classes > OUTPUTS_MAX) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "a likelihood takes 1 to %d target columns and at most as many classes", OUTPUTS_MAX);
    }
    parser p = {.cursor = {ctx, "likelihood", text, text}};
    const thi_family_entry *family;
    thiele_likelihood *lik = NULL;
    thiele_status status;
    THI_TRY(find_family(&p, &family));
    THI_TRY(read_arguments(&p));
    family = for_outputs(family, outputs);
    THI_TRY(thi_alloc(ctx, &lik, 1, sizeof *lik));
    *lik = (thiele_likelihood){.ops = family->ops, .outputs = outputs, .latents = 1, .classes = classes};
    THI_TRY(take_sizes(&p, lik));
    THI_TRY(family->make(lik, ctx));
    THI_TRY(check_outputs(&p, lik, outputs));
    THI_TRY(apply_all(&p, lik));
    *out = lik;
    lik = NULL;
out:
    thi_free(p.value);
    thiele_likelihood_destroy(lik);
    return status;
}

/* How many parameters from `first` on can be written as one list: all that are numbered behind the same word. */
static int list_length(const thiele_likelihood *lik, int first, given *word)
{
    *word = (given){.word = lik->phi[first].name, .length = stem_length(lik->phi[first].name)};
    word->exact = is_name(lik, word);
    int last = first, all = 0;
    while (last < lik->parameters && numbered_behind(word, lik->phi[last].name) &&
           lik->phi[last].fixed == lik->phi[first].fixed) {
        last++;
    }
    for (int i = 0; i < lik->parameters; i++) {
        all += meant(word, lik->phi[i].name);
    }
    return all > 1 && all == last - first ? all : 1;
}

static void print_values(const thiele_likelihood *lik, int first, int count, const given *word, thi_text *text)
{
    if (count == 1) {
        thi_text_add(text, "%s%c", lik->phi[first].name, lik->phi[first].fixed ? '=' : '~');
        thi_text_add_number(text, lik->value[first]);
        return;
    }
    thi_text_add(text, "%.*s%c[", (int)word->length, word->word, lik->phi[first].fixed ? '=' : '~');
    for (int i = 0; i < count; i++) {
        thi_text_add(text, "%s", i > 0 ? "," : "");
        thi_text_add_number(text, lik->value[first + i]);
    }
    thi_text_add(text, "]");
}

void thi_likelihood_print(const thiele_likelihood *lik, thi_text *text)
{
    const char *comma = "(";
    thi_text_add(text, "%s", thiele_likelihood_name(lik));
    for (int i = 0; i < SIZE_WORDS; i++) {
        const struct size_word *word = &size_words[i];
        if (!word->classes && !word->counted && strcmp(word->family, lik->ops->name) == 0) {
            thi_text_add(text, "%s%s=%d", comma, word->word, lik->nodes);
            comma = ", ";
        }
    }
    int count;
    for (int i = 0; i < lik->parameters; i += count) {
        given word;
        count = list_length(lik, i, &word);
        thi_text_add(text, "%s", comma);
        print_values(lik, i, count, &word, text);
        comma = ", ";
    }
    thi_text_add(text, "%s", comma[0] == ',' ? ")" : "");
}
