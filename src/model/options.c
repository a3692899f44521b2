/* The options of a fit as data, and setting them from text. Everything comes from options.def. */
#include "model/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <thiele/options.h>

#include "base/base.h"
#include "fit/method.h"
#include "kernel/kernel.h"
#include "likelihood/likelihood.h"
#include "model/methods.h"

/* --- the table -------------------------------------------------------------------------------------------------------
 */

typedef struct entry {
    thiele_option option;
    size_t offset; /* in thiele_fit_options, of eight bytes: int64_t, double or a pointer */
    const char *const *words;
    unsigned takes; /* what a method must understand */
} entry;

/* Words that are in tables of their own. */
static const char *const NO_WORDS[] = {NULL}, *const METHODS[] = {NULL}, *const LIKELIHOODS[] = {NULL},
                         *const KERNELS[] = {NULL};

#define WORDS(...)                                                                                                     \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }
#define NONE        NULL
#define AUTO        "auto"
#define OFF         "0"
#define IS(x)       #x
#define WORD(x)     x
#define TYPE_FLAG   THIELE_OPTION_FLAG
#define TYPE_COUNT  THIELE_OPTION_INTEGER
#define TYPE_REAL   THIELE_OPTION_NUMBER
#define TYPE_TEXT   THIELE_OPTION_TEXT
#define TYPE_LIST   THIELE_OPTION_LIST
#define TYPE_OBJECT THIELE_OPTION_PROGRAM
#define TYPE_PATH   THIELE_OPTION_PROGRAM

static const entry entries[] = {
#define THI_OPTION(group, name, type, initial, words, low, high, unit, value, choices, takes, meaning, more)           \
    {{#group, #name, TYPE_##type, initial, words, low, high, unit, value, meaning, more},                              \
     offsetof(thiele_fit_options, group.name),                                                                         \
     choices,                                                                                                          \
     takes},
#include THI_OPTIONS
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static const thiele_option_group groups[] = {
#define THI_OPTION_GROUP(name, title, about) {#name, title, about},
#include THI_OPTIONS
};
enum { GROUPS = sizeof groups / sizeof *groups };

/* What is reserved at the end of each group. */
static const struct {
    size_t offset, bytes;
} rooms[] = {
#define THI_OPTION_GROUP(name, title, about)                                                                           \
    {offsetof(thiele_fit_options, name.reserved), sizeof((thiele_fit_options *)NULL)->name.reserved},
#include THI_OPTIONS
};

/* Other names; without a name of its own: an option that is not needed any more. */
static const struct {
    const char *other, *name;
} aliases[] = {
#define THI_OPTION_ALIAS(other, name) {#other, #name},
#define THI_OPTION_PAST(name, why)    {#name, NULL},
#include THI_OPTIONS
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

int thiele_fit_option_count(void)
{
    return ENTRIES;
}

const thiele_option *thiele_fit_option_at(int index)
{
    return index >= 0 && index < ENTRIES ? &entries[index].option : NULL;
}

int thiele_fit_option_groups(void)
{
    return GROUPS;
}

const thiele_option_group *thiele_fit_option_group_at(int index)
{
    return index >= 0 && index < GROUPS ? &groups[index] : NULL;
}

const char *thiele_fit_option_alias(int index, const char **name)
{
    bool known = index >= 0 && index < ALIASES;
    if (name != NULL) {
        *name = known ? aliases[index].name : NULL;
    }
    return known ? aliases[index].other : NULL;
}

/* --- names -----------------------------------------------------------------------------------------------------------
 */

/* A dash is as good as an underscore. */
static bool is_same_name(const char *name, const char *text)
{
    for (; *name != '\0' && (*name == *text || (*name == '_' && *text == '-')); name++) {
        text++;
    }
    return *name == *text;
}

static const entry *find(const char *name)
{
    for (int i = 0; i < ENTRIES; i++) {
        if (is_same_name(entries[i].option.name, name)) {
            return &entries[i];
        }
    }
    for (int i = 0; i < ALIASES; i++) {
        if (aliases[i].name != NULL && is_same_name(aliases[i].other, name)) {
            return find(aliases[i].name);
        }
    }
    return NULL;
}

static bool is_past(const char *name)
{
    for (int i = 0; i < ALIASES; i++) {
        if (aliases[i].name == NULL && is_same_name(aliases[i].other, name)) {
            return true;
        }
    }
    return false;
}

const thiele_option *thiele_fit_option_find(const char *name)
{
    const entry *found = name != NULL ? find(name) : NULL;
    return found != NULL ? &found->option : NULL;
}

/* --- words -----------------------------------------------------------------------------------------------------------
 */

static const char *method_word(int index)
{
    for (int i = 0; i < thi_method_count; i++) {
        if (thi_method_is_first(i) && index-- == 0) {
            return thi_methods[i]->name;
        }
    }
    return NULL;
}

/* One Gaussian for each of several targets is asked for as one. */
static const char *likelihood_word(int index)
{
    for (int i = 0; thi_family_entries[i].ops != NULL; i++) {
        if (!thi_family_entries[i].ops->separate && index-- == 0) {
            return thi_family_entries[i].ops->name;
        }
    }
    return NULL;
}

static const char *kernel_word(int index)
{
    for (int i = 0; thi_kinds[i].name != NULL; i++) {
        if (i == index) {
            return thi_kinds[i].name;
        }
    }
    return NULL;
}

const char *thiele_fit_option_choice(const thiele_option *option, int index)
{
    const entry *e = option != NULL ? find(option->name) : NULL;
    if (e == NULL || index < 0) {
        return NULL;
    }
    if (e->words == METHODS || e->words == LIKELIHOODS || e->words == KERNELS) {
        return e->words == METHODS       ? method_word(index)
               : e->words == LIKELIHOODS ? likelihood_word(index)
                                         : kernel_word(index);
    }
    int count = 0;
    while (e->words[count] != NULL) {
        count++;
    }
    return index < count ? e->words[index] : NULL;
}

/* --- setting ---------------------------------------------------------------------------------------------------------
 */

static thiele_status refuse(thiele_context *ctx, const char *format, ...) THI_PRINTF(2, 3);
static thiele_status refuse(thiele_context *ctx, const char *format, ...)
{
    char message[THI_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return ctx != NULL ? thi_fail(ctx, THIELE_ERROR_ARGUMENT, "%s", message) : THIELE_ERROR_ARGUMENT;
}

/* With the names that are nearest, where some are near. */
static thiele_status unknown(thiele_context *ctx, const char *name)
{
    enum { LIMIT = 3, SHOWN = 3 };
    char near[256] = "";
    int best = LIMIT + 1, shown = 0;
    int limit = (int)strlen(name) / 3 + 1;
    for (int i = 0; i < ENTRIES; i++) {
        int distance = thi_edit_distance(name, entries[i].option.name, LIMIT);
        best = distance < best ? distance : best;
    }
    for (int i = 0; i < ENTRIES && best <= LIMIT && best <= limit && shown < SHOWN; i++) {
        if (thi_edit_distance(name, entries[i].option.name, LIMIT) == best) {
            size_t length = strlen(near);
            snprintf(near + length, sizeof near - length, "%s`%s`", shown++ == 0 ? ": did you mean " : " or ",
                     entries[i].option.name);
        }
    }
    return refuse(ctx, "a fit has no option '%.64s'%s%s", name, near,
                  shown > 0 ? "?" : " (thiele_fit_option_at, or thiele options, lists them)");
}

static thiele_status not_a(thiele_context *ctx, const entry *e, const char *text, const char *what)
{
    bool free = e->option.initial != NULL && strcmp(e->option.initial, AUTO) == 0;
    return refuse(ctx, "`%s`: '%.64s' is not %s%s", e->option.name, text, what, free ? " or 'auto'" : "");
}

thiele_status thi_fit_option_no_word(thiele_context *ctx, const char *name, const char *text)
{
    const entry *e = find(name);
    bool free = e->option.initial != NULL && strcmp(e->option.initial, AUTO) == 0;
    char words[256] = "";
    const char *word;
    for (int i = 0; (word = thiele_fit_option_choice(&e->option, i)) != NULL; i++) {
        bool last = !free && thiele_fit_option_choice(&e->option, i + 1) == NULL;
        size_t length = strlen(words);
        snprintf(words + length, sizeof words - length, "%s%s", i == 0 ? "" : last ? " or " : ", ", word);
    }
    return not_a(ctx, e, text, words);
}

static bool is_auto(const entry *e, const char *text)
{
    return e->option.initial != NULL && strcmp(e->option.initial, AUTO) == 0 && strcmp(text, AUTO) == 0;
}

/* Whether a text is written as a decimal number: no spaces, no hexadecimal, no names. */
static bool read_number(const char *text, bool whole, double *value)
{
    size_t sign = *text == '-' || *text == '+';
    const char *allowed = whole ? "0123456789" : "+-.eE0123456789";
    return text[sign] != '\0' && text[sign + strspn(text + sign, allowed)] == '\0' &&
           thi_parse_number(text, strlen(text), value) && isfinite(*value);
}

static thiele_status out_of_range(thiele_context *ctx, const thiele_option *o, const char *text)
{
    char low[THI_NUMBER_MAX], high[THI_NUMBER_MAX];
    thi_format_number(low, o->low);
    thi_format_number(high, o->high);
    return refuse(ctx, "`%s`: %.64s is out of range (%s to %s%s%s)", o->name, text, low, high,
                  o->unit[0] != '\0' ? ", in " : "", o->unit);
}

static thiele_status set_number(void *at, const entry *e, thiele_context *ctx, const char *text)
{
    const thiele_option *o = &e->option;
    double value = 0.0;
    if (!is_auto(e, text)) {
        bool whole = o->type == THIELE_OPTION_INTEGER;
        if (!read_number(text, whole, &value)) {
            return not_a(ctx, e, text, whole ? "a whole number" : "a number");
        }
        if (!(value >= o->low && value <= o->high)) {
            return out_of_range(ctx, o, text);
        }
        value = value == 0.0 && o->low == 0.0 && strcmp(o->initial, AUTO) == 0 ? -1.0 : value;
    }
    if (o->type == THIELE_OPTION_INTEGER) {
        *(int64_t *)at = (int64_t)value;
    } else {
        *(double *)at = value;
    }
    return THIELE_OK;
}

static thiele_status set_flag(void *at, const entry *e, thiele_context *ctx, const char *text)
{
    static const struct {
        const char *word;
        int64_t value;
    } words[] = {{"1", 1}, {"0", 0}, {"yes", 1}, {"no", 0}, {"true", 1}, {"false", 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].word, text) == 0) {
            *(int64_t *)at = words[i].value;
            return THIELE_OK;
        }
    }
    return not_a(ctx, e, text, "yes or no");
}

thiele_status thiele_fit_options_set(thiele_fit_options *options, thiele_context *ctx, const char *name,
                                     const char *text)
{
    if (options == NULL || name == NULL || text == NULL) {
        return thi_fail_null(ctx, "thiele_fit_options_set");
    }
    const entry *e = find(name);
    if (e == NULL) {
        return is_past(name) ? THIELE_OK : unknown(ctx, name);
    }
    if (e->offset + sizeof(int64_t) > options->size) {
        return refuse(ctx,
                      "`%s` is not in these options: they have no INIT macro, or the program was compiled with an "
                      "older header that does not know it",
                      e->option.name);
    }
    void *at = (char *)options + e->offset;
    switch (e->option.type) {
    case THIELE_OPTION_FLAG:
        return set_flag(at, e, ctx, text);
    case THIELE_OPTION_INTEGER:
    case THIELE_OPTION_NUMBER:
        return set_number(at, e, ctx, text);
    case THIELE_OPTION_TEXT:
    case THIELE_OPTION_LIST:
        *(const char **)at = is_auto(e, text) ? NULL : text;
        return *text != '\0' ? THIELE_OK : not_a(ctx, e, text, "a text: it is empty");
    case THIELE_OPTION_PROGRAM:
        break;
    }
    return refuse(ctx, "`%s` is not set from text: a program gives it in thiele_fit_options", e->option.name);
}

thiele_status thiele_fit_options_create(thiele_fit_options **out, thiele_context *ctx)
{
    THI_NEED_OUT(out, ctx, ctx);
    static const thiele_fit_options defaults = THIELE_FIT_OPTIONS_INIT;
    thiele_status status = thi_alloc(ctx, out, 1, sizeof **out);
    if (status == THIELE_OK) {
        **out = defaults;
    }
    return status;
}

thiele_status thiele_fit_options_set_own(thiele_fit_options *options, thiele_context *ctx, const thiele_likelihood *own)
{
    THI_NEED(ctx, options);
    options->model.own = own;
    return THIELE_OK;
}

/* --- taking ----------------------------------------------------------------------------------------------------------
 */

/* A program may have set any number. 0 is the default, and -1 is 0 where that is another. */
static thiele_status check_number(thiele_context *ctx, const entry *e, const void *at)
{
    const thiele_option *o = &e->option;
    bool whole = o->type == THIELE_OPTION_INTEGER;
    double value = whole ? (double)*(const int64_t *)at : *(const double *)at;
    bool zero = value == -1.0 && o->low == 0.0 && strcmp(o->initial, AUTO) == 0;
    char text[THI_NUMBER_MAX];
    if (value == 0.0 || zero || (value >= o->low && value <= o->high)) {
        return THIELE_OK;
    }
    thi_format_number(text, value);
    return out_of_range(ctx, o, text);
}

thiele_status thi_fit_options_take(thiele_context *ctx, const thiele_fit_options *given, thiele_fit_options *out)
{
    if (given == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a fit needs options, which begin with THIELE_FIT_OPTIONS_INIT");
    }
    thiele_status status = thi_take_options(ctx, "thiele_fit_options", out, sizeof *out, given);
    for (int g = 0; g < GROUPS && status == THIELE_OK; g++) {
        static const unsigned char zeros[sizeof(thiele_fit_options)];
        bool known = memcmp((const char *)out + rooms[g].offset, zeros, rooms[g].bytes) == 0;
        status = known ? THIELE_OK : thi_newer_options(ctx, "thiele_fit_options");
    }
    for (int i = 0; i < ENTRIES && status == THIELE_OK; i++) {
        thiele_option_type type = entries[i].option.type;
        if (type == THIELE_OPTION_INTEGER || type == THIELE_OPTION_NUMBER) {
            status = check_number(ctx, &entries[i], (const char *)out + entries[i].offset);
        }
    }
    return status;
}

/* --- what was given --------------------------------------------------------------------------------------------------
 */

static bool is_given(const thiele_fit_options *options, const entry *e)
{
    static const unsigned char zeros[sizeof(int64_t)];
    return memcmp((const char *)options + e->offset, zeros, sizeof zeros) != 0;
}

unsigned thi_fit_options_asked(const thiele_fit_options *options)
{
    unsigned asked = 0;
    for (int i = 0; i < ENTRIES; i++) {
        asked |= is_given(options, &entries[i]) ? entries[i].takes : 0;
    }
    return asked;
}

const thiele_option *thi_fit_option_asked(const thiele_fit_options *options, unsigned takes)
{
    for (int i = 0; i < ENTRIES; i++) {
        if ((entries[i].takes & takes) != 0 && is_given(options, &entries[i])) {
            return &entries[i].option;
        }
    }
    return NULL;
}
