/*
 * The options of a fit as data: for programs that read them from text, list them, or explain them. A name is the same
 * here, in thiele_fit_options, in the command (--fix-inducing for fix_inducing) and in its JSON (thiele options
 * --json); messages put it between backquotes.
 */
#ifndef THIELE_OPTIONS_H
#define THIELE_OPTIONS_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum thiele_option_type {
    THIELE_OPTION_FLAG = 0, /* "1", "0", "yes", "no", "true", "false" */
    THIELE_OPTION_INTEGER,
    THIELE_OPTION_NUMBER,
    THIELE_OPTION_TEXT,
    THIELE_OPTION_LIST,   /* texts with commas between them */
    THIELE_OPTION_PROGRAM /* not a text: only a program sets it */
} thiele_option_type;

typedef struct thiele_option {
    const char *group, *name;
    thiele_option_type type;
    const char *initial;   /* the default as thiele_fit_options_set takes it; NULL: none */
    const char *initially; /* the default in words; "": initial says it */
    double low, high;      /* the range of a number */
    const char *unit;      /* of a number; "": none */
    const char *value;     /* what help calls the value, such as "COLS"; "": a flag, which has none */
    const char *meaning;   /* a sentence or less without a full stop; backquotes as in messages, `=word` for values */
    const char *more;      /* further sentences, or "" */
} thiele_option;

typedef struct thiele_option_group {
    const char *name;  /* as in thiele_fit_options */
    const char *title; /* "Inducing inputs" */
    const char *about; /* a sentence or more */
} thiele_option_group;

/* All options, those of a group together, in the order of help. NULL when out of range. */
THIELE_API int thiele_fit_option_count(void);
THIELE_API const thiele_option *thiele_fit_option_at(int index);
THIELE_API int thiele_fit_option_groups(void);
THIELE_API const thiele_option_group *thiele_fit_option_group_at(int index);
/* An option by its name or an alias, with dashes or underscores; NULL: none. */
THIELE_API const thiele_option *thiele_fit_option_find(const char *name);
/* Words that an option takes, besides "auto" if that is its default: the index-th, or NULL after the last. */
THIELE_API const char *thiele_fit_option_choice(const thiele_option *option, int index);
/* Aliases of options, and options that no longer do anything: the index-th, or NULL. name: whose, or NULL. */
THIELE_API const char *thiele_fit_option_alias(int index, const char **name);

/*
 * Sets an option from text: "auto" leaves the choice to the fit where it has one. Texts are borrowed, not copied:
 * they must outlive the options. ctx may be NULL: then there is no message. Errors: ARGUMENT (no such option,
 * with near names; not a number, out of range, not one of its words).
 */
THIELE_API thiele_status thiele_fit_options_set(thiele_fit_options *options, thiele_context *ctx, const char *name,
                                                const char *text);

/*
 * For other languages, which do not know the struct: options with their defaults, freed with thiele_free, and the
 * counterpart of options->model.own (NULL: none). Errors: MEMORY; ARGUMENT.
 */
THIELE_API thiele_status thiele_fit_options_create(thiele_fit_options **out, thiele_context *ctx);
THIELE_API thiele_status thiele_fit_options_set_own(thiele_fit_options *options, thiele_context *ctx,
                                                    const thiele_likelihood *own);

#ifdef __cplusplus
}
#endif
#endif
