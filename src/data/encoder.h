/* What the files of the encoder and its reader share. */
#ifndef THI_ENCODER_H
#define THI_ENCODER_H

#include "data/data.h"

/* Makes room for `inputs` inputs in an encoder that has none. */
thiele_status thi_encoder_alloc(thi_encoder *encoder, thiele_context *ctx, int inputs);
/* The same for targets, whose scales are 1. */
thiele_status thi_encoder_alloc_targets(thi_encoder *encoder, thiele_context *ctx, int targets);
/* Places the inputs' dimensions one behind the other, and makes center 0 and scale 1 for each. */
thiele_status thi_encoder_place(thi_encoder *encoder, thiele_context *ctx);

/* --- encode_row.c ------------------------------------------------------------------------------------------------- */

/* What stands for a missing value of an input that fills in, in a column of X that is zero there. */
void thi_encode_missing(const thi_encoder *encoder, const thi_input *input, double *x);

/* --- reader.c ------------------------------------------------------------------------------------------------------
 */

/* Error: DATA; the weight in this column and row is missing, negative or infinite. */
thiele_status thi_weight_refused(thiele_context *ctx, const thiele_table *table, int64_t row, int column, double value);

/* --- choose.c: which columns are what ---------------------------------------------------------------------------- */

typedef struct thi_choice {
    const thiele_table *table;
    thiele_context *ctx;
    int *target, targets;       /* columns, as listed */
    int exposure, weights, key; /* -1: none */
    int *input, inputs;
    bool listed;                 /* the inputs are the user's */
    bool *ignored, *categorical; /* of each column */
    unsigned char *role;         /* of each column */
    thi_dates *dates;            /* of each column: how its dates are read */
} thi_choice;
/* Errors: ARGUMENT, COLUMN, DATA (no inputs left). To be freed in any case. */
thiele_status thi_choose_columns(thi_choice *choice, const thi_column_options *options);
void thi_choice_free(thi_choice *choice);
/* A copy of a column's name. Error: DATA when it is not UTF-8. */
thiele_status thi_choice_name(const thi_choice *choice, int column, char **out);

/* --- leave_out.c: what text columns are --------------------------------------------------------------------------- */

/*
 * Finds dates among the inputs, and drops texts that nothing can be learned from unless inputs are listed; with a line
 * to the log each. Error: DATA when none is left.
 */
thiele_status thi_judge_texts(thi_choice *choice);

/* --- levels.c: the distinct texts of a column -------------------------------------------------------------------- */

/* For loops over single rows: asks the clock every so many of them only. */
static inline thiele_status thi_look_up_row(thiele_context *ctx, int64_t row, int64_t rows)
{
    enum { EVERY = 256 };
    return row % EVERY == 0 ? thi_look_up(ctx, row, rows) : THIELE_OK;
}

/* JSON and the model file hold UTF-8 only. */
bool thi_is_utf8(const char *text, size_t length);
/* Where a text is or belongs among sorted ones; *found says which. */
int thi_level_place(char *const *level, int levels, const char *text, size_t length, bool *found);
/* Puts one there; the input has room for it. */
thiele_status thi_level_insert(thi_input *input, thiele_context *ctx, int place, const char *text, size_t length);
void thi_levels_free(char **level, int levels);
/* Appends "'a', 'b' and 57 more". */
void thi_text_add_names(thi_text *text, char *const *name, int count);
/* Appends the first ten: "a, b, c, ...". */
void thi_text_add_levels(thi_text *text, char *const *level, int levels);
/* Error: DATA when the first text of a column is a number with a decimal comma: it was meant to be one. */
thiele_status thi_check_commas(thiele_context *ctx, const thiele_table *table, int column);
/*
 * The levels of one column of a table; of more than `most` those with the most rows, with a line to the log. Errors:
 * DATA (more than THI_KEYS_MAX, not UTF-8).
 */
thiele_status thi_learn_levels(thi_input *input, thiele_context *ctx, const thiele_table *table, int column, int most);

/* --- labels.c: the classes of a target --------------------------------------------------------------------------- */

/*
 * The labels of a column of a table, or those of a list. Errors: ARGUMENT (the list), DATA (more than THI_LEVELS_MAX, a
 * third of two, texts where the order matters, not UTF-8).
 */
thiele_status thi_learn_labels(thi_target *target, thiele_context *ctx, const thiele_table *table, int column,
                               const char *list, const thi_target_rule *rule);
/* The encoder's labels sorted for lookup, and the place of one there; NULL when it is none of them. */
thiele_status thi_label_index(thi_label **out, thiele_context *ctx, const thi_encoder *encoder);
const thi_label *thi_find_label_text(const thi_label *label, int labels, const char *text, size_t length);
const thi_label *thi_find_label_value(const thi_label *label, int labels, double value);

/* --- moments.c: how the kept rows of a table spread -------------------------------------------------------------- */

typedef struct thi_column_spread {
    int dims;
    int64_t *count;        /* values that are there */
    double *mass;          /* the sum of their weights: of how many rows they are */
    double *mean, *square; /* square: sum of squared distances from the mean */
    double *low, *high;
} thi_column_spread;

typedef struct thi_moments {
    int64_t rows;
    double mass;                  /* their weights */
    thi_column_spread inputs;     /* D dimensions */
    thi_column_spread targets;    /* P; of labels: of their codes */
    double label[THI_LEVELS_MAX]; /* the weights of those with each label */
} thi_moments;
/*
 * Reads the whole table with its targets through an encoder that centres and scales nothing. labels_given: the labels
 * are the user's, which a message about another one says.
 */
thiele_status thi_learn_moments(thi_moments *moments, thiele_context *ctx, const thi_encoder *encoder,
                                const thiele_table *table, const thi_reading *how, bool labels_given);
void thi_moments_clear(thi_moments *moments);
/*
 * The mean and standard deviation of dimension d, which must be numbers to be divided by. Error: DATA, naming the
 * column.
 */
thiele_status thi_find_spread(const thi_column_spread *spread, thiele_context *ctx, int d, const char *name,
                              double *mean, double *deviation);

/* --- target.c: what is learned of the targets -------------------------------------------------------------------- */

/* Names, labels and exposure: all that is known before the pass over the rows. */
thiele_status thi_learn_targets(thi_encoder *encoder, const thi_choice *choice, const thi_column_options *options,
                                const thi_target_rule *rule);
/* Centres, scales and which labels are there, after it. */
thiele_status thi_set_targets(thi_encoder *encoder, const thi_choice *choice, const thi_moments *moments,
                              const thi_column_options *options, const thi_target_rule *rule);

#endif
