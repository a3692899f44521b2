/* The table of a fit's options. */
#ifndef THI_OPTIONS_H
#define THI_OPTIONS_H

/* The list of them: tests have one of their own. */
#ifndef THI_OPTIONS
#define THI_OPTIONS "model/options.def"
#endif

#include <thiele/options.h>

/*
 * The options of a call of the API: of whatever header, with numbers in their ranges. Errors: ARGUMENT (no options, no
 * INIT macro, an option that only a newer library knows, a number out of its range).
 */
thiele_status thi_fit_options_take(thiele_context *ctx, const thiele_fit_options *given, thiele_fit_options *out);

/* What a method must understand (THI_TAKES_...) for the options that were given; and the first of them that needs it.
 * Of options that were taken. */
unsigned thi_fit_options_asked(const thiele_fit_options *options);
const thiele_option *thi_fit_option_asked(const thiele_fit_options *options, unsigned takes);

/* Refuses a text that is none of the words of an option, which the sentence lists. Error: ARGUMENT, always. */
thiele_status thi_fit_option_no_word(thiele_context *ctx, const char *name, const char *text);

#endif
