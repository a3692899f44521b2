/* The methods there are. */
#ifndef THI_METHODS_H
#define THI_METHODS_H

#include "fit/method.h"

/* The list of them: tests have one of their own. */
#ifndef THI_METHODS
#define THI_METHODS "model/methods.def"
#endif

/* In the order in which auto considers them; a name may have two rows, of which the second is for large tables. */
extern const thi_method *const thi_methods[];
extern const int thi_method_count;

#define THI_METHOD(name) extern const thi_method thi_method_##name;
#include THI_METHODS
#undef THI_METHOD

/* Whether row i is the first of its name. */
bool thi_method_is_first(int i);
/* By its name, or for a sum of methods that of the part whose rules hold for the whole; NULL: none. */
const thi_method *thi_method_named(const char *name);
/* "sor, dtc and pic": those with one of the abilities, or that understand one of the groups of options. */
thiele_status thi_methods_listed(thiele_context *ctx, unsigned can, unsigned takes, char **out);
/* Why a method has not one of the abilities, a clause for messages. */
const char *thi_method_lacks(const thi_method *method, unsigned can);
/* What works with what, as a table of Markdown with the reasons for what does not. */
thiele_status thi_methods_matrix(thiele_context *ctx, char **out);

#endif
