/*
 * A model of several targets whose likelihoods are not one of all of them: each target has a model of its own, a part,
 * fitted to the rows that have it. The whole holds the parts and, gathered from them, what is asked for target by
 * target.
 */
#ifndef THI_PARTS_H
#define THI_PARTS_H

#include "data/encoder.h"
#include "model/model.h"

/* --- fit.c --- */
/* One model of all targets of the options; partial: rows without the only target are left out. */
thiele_status thi_fit_one(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                          const thiele_fit_options *options, bool partial);

/* --- parts.c --- */
/* Into how many parts a fit falls; 0: it is one model. Error: ARGUMENT (as many likelihoods as targets, or one). */
thiele_status thi_parts_count(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options,
                              int *parts);
/* Fits them, each with its share of the time that is left. */
thiele_status thi_parts_fit(thiele_model **out, thiele_context *ctx, const thiele_table *table,
                            const thiele_fit_options *options, int parts);
/* A whole with room for so many parts, none of which is there. */
thiele_status thi_parts_alloc(thiele_model **out, thiele_context *ctx, int parts);
/* What the whole has from its parts, when all are there or have changed. */
thiele_status thi_parts_gather(thiele_model *model, thiele_context *ctx);
/* Refuses what is of a single model. */
thiele_status thi_parts_refuse(const thiele_model *model, thiele_context *ctx, const char *what);

/* --- part_options.c --- */
/* The options of one part, with the texts that are its own. */
typedef struct thi_part_options {
    thiele_fit_options fit;
    char *likelihood, *kernel, *classes, *ignore, *set, *prior;
} thi_part_options;
thiele_status thi_part_options_make(thi_part_options *part, const thi_choice *choice, const thiele_fit_options *options,
                                    int target);
void thi_part_options_clear(thi_part_options *part);
/* How many texts a list with ';' between them has, and the one at index without blanks around it. */
int thi_count_texts(const char *list);
thiele_status thi_take_text(thiele_context *ctx, const char *list, int index, char **out);

#endif
