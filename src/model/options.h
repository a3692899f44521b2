/* The table of a fit's options. */
#ifndef THI_OPTIONS_H
#define THI_OPTIONS_H

/* The list of them: tests have one of their own. */
#ifndef THI_OPTIONS
#define THI_OPTIONS "model/options.def"
#endif

#endif
