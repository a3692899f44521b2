/*
 * Tables behind the public API, and the encoder that turns a table's columns into the numbers a model sees.
 *
 * A table is reached through a short table of operations, one file per kind (csv.c, npy.c, hdf5.c, memory.c, columns.c,
 * select.c, join.c, apart.c; arrow.c makes tables of columns.c); nothing above this folder knows which kind it has.
 * Rows count from 0 here and from 1 in messages.
 */
#ifndef THI_DATA_H
#define THI_DATA_H

#include <jansson.h>

#include "base/base.h"
#include "data/dates.h"
#include <thiele/table.h>

/* Rows read at a time, at most, by everything that passes over a table. */
enum { THI_TABLE_BLOCK = 4096 };

typedef struct thi_table_ops {
    /*
     * Required. out (columns x count, column-major: a row of the table is a column) = the numbers of the given rows and
     * columns, NaN where missing. Error: DATA for a cell that is not a number, naming column, row and remedy.
     */
    thiele_status (*numbers)(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                             const int *column, int columns, double *out);
    /*
     * Optional (default: every column holds numbers). How a column's cells look: how many are not numbers, how many are
     * missing.
     */
    void (*census)(const thiele_table *table, int column, int64_t *text, int64_t *missing);
    /*
     * Optional (default: the number, formatted). The text of one cell as it stood in the file, borrowed when it needs
     * no unquoting, else written to `buffer`. *length 0: missing.
     */
    thiele_status (*cell)(const thiele_table *table, thiele_context *ctx, int64_t row, int column, thi_text *buffer,
                          const char **text, size_t *length);
    /* Optional (default: the row itself). The row of the file that a row came from, for messages. */
    int64_t (*origin)(const thiele_table *table, int64_t row);
    /* Optional (default: the table itself). The table that a row was taken from, and in *row its row there. */
    const thiele_table *(*part)(const thiele_table *table, int64_t *row);
    /* Optional (default: there are none). The line of the text that a row begins in, from 1. */
    int64_t (*line)(const thiele_table *table, int64_t row);
    /* Optional (default: it does not). Whether a column holds categories even where they look like numbers. */
    bool (*category)(const thiele_table *table, int column);
    bool written; /* every cell is a text as it stood in a file */
    /* Required. Frees all but what thi_table_clear frees, which it calls where the names are the table's own. */
    void (*destroy)(thiele_table *table);
} thi_table_ops;

struct thiele_table {
    const thi_table_ops *ops;
    char *source;  /* file name for messages, "" when there is none */
    char *missing; /* tokens that mean "no value" beside the usual ones; NULL: none */
    int64_t rows;
    int columns;
    char **name;
    const thiele_table *whole; /* what a selection of rows was made from; NULL for all others */
    const thiele_table *from;  /* of a table whose equal rows were merged (merge.c): the one they stand in */
    bool equal;                /* and all its rows have the weight 1 */
};

/* Openers of one kind each; `path` has been recognised already. */
typedef thiele_status thi_table_open_fn(thiele_table **out, thiele_context *ctx, const char *path,
                                        const thiele_table_options *options);
thiele_status thi_table_open_csv(thiele_table **out, thiele_context *ctx, const char *path,
                                 const thiele_table_options *options);
thiele_status thi_table_open_npy(thiele_table **out, thiele_context *ctx, const char *path,
                                 const thiele_table_options *options);
thiele_status thi_table_open_hdf5(thiele_table **out, thiele_context *ctx, const char *path,
                                  const thiele_table_options *options);
/* What the opener finds, read in a process of its own (apart.c); a table of numbers. Errors: the opener's, IO, FORMAT.
 */
thiele_status thi_table_open_apart(thiele_table **out, thiele_context *ctx, const char *path,
                                   const thiele_table_options *options, thi_table_open_fn *open_table);
/* CSV from memory (for fuzzing and tests); the bytes are copied. */
thiele_status thi_table_parse_csv(thiele_table **out, thiele_context *ctx, const char *bytes, size_t length,
                                  const char *source, const thiele_table_options *options);

/* --- columns.c --------------------------------------------------------------------------------------------------- */

/* A column in memory, with what thiele_column does not say. */
typedef struct thi_memory_column {
    thiele_column column;
    thi_date_form dates; /* its values are days, and its cells texts of this form */
    bool category;
} thi_memory_column;
/*
 * As thiele_table_from_columns. The table releases `owner`, which owns the memory, when it is destroyed; where it could
 * not be made the owner stays the caller's.
 */
thiele_status thi_table_over_columns(thiele_table **out, thiele_context *ctx, int64_t rows, int columns,
                                     const thi_memory_column *column, void (*release)(void *owner), void *owner);

/* --- table.c: the operations with their defaults, and what the kinds share -------------------------------------- */

/*
 * Of a selection of rows the whole table is looked at: whether a column counts as text must not depend on which rows a
 * fold of a cross-validation happens to hold.
 */
void thi_table_census(const thiele_table *table, int column, int64_t *text, int64_t *missing);
thiele_status thi_table_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column, thi_text *buffer,
                             const char **text, size_t *length);
/* Whether a column (of a selection: of the whole table) has missing values: one pass where no census was taken. */
thiele_status thi_table_lacks(const thiele_table *table, thiele_context *ctx, int column, bool *lacks);
/* Whether a column's cells are texts as somebody wrote them, dates among them; numbers are no dates. */
bool thi_table_is_written(const thiele_table *table, int column);
/* Whether a column (of a selection: of the whole table) says of itself that it holds categories. */
bool thi_table_is_category(const thiele_table *table, int column);
/* Whether more than half of what is there in a column is no number. */
bool thi_table_is_text(const thiele_table *table, int column);
/* The column of this very name, or -1. */
int thi_table_column(const thiele_table *table, const char *name);
/* The same, looked for from column `first` on: at once where columns are asked for in their order. */
int thi_table_column_from(const thiele_table *table, const char *name, int first);
/* Rows to read at a time where each takes so many numbers: fewer of wide ones, so that a block has 16 MB at most. */
int64_t thi_table_block(const thiele_table *table, int64_t numbers);
/* The 1-based row to name in messages. */
long long thi_table_row_number(const thiele_table *table, int64_t row);
/* The file that a row stands in, for messages, or "the table". */
const char *thi_table_row_source(const thiele_table *table, int64_t row);
/* The row to name in messages, with its file where the table has several: "17", "17 of part-2.csv". */
enum { THI_ROW_MAX = 160 };
const char *thi_table_name_row(const thiele_table *table, int64_t row, char name[THI_ROW_MAX]);
#define THI_ROW(table, row) thi_table_name_row(table, row, (char[THI_ROW_MAX]){0})
/* The file's name for messages, or "the table". */
const char *thi_table_source(const thiele_table *table);
/* The start of a text for a message: one line, at most 40 bytes of whole characters, "..." where something was cut. */
#define THI_SHOWN_MAX 48
void thi_show_text(char shown[THI_SHOWN_MAX], const char *text, size_t length);
/* "1,5": a number in the notation of half of Europe. */
bool thi_has_decimal_comma(const char *text, size_t length);
/* Cuts blanks and tabs off both ends. */
void thi_trim(const char **text, size_t *length);
/*
 * Fills in a zeroed table: a copy of source, and columns names, NULL as yet (then thi_table_number_names: x1, x2, ...).
 */
thiele_status thi_table_init(thiele_table *table, thiele_context *ctx, const char *source, int64_t rows,
                             int64_t columns);
thiele_status thi_table_number_names(thiele_table *table, thiele_context *ctx);
/* Error: FORMAT, naming a column name that appears twice. */
thiele_status thi_table_check_names(const thiele_table *table, thiele_context *ctx);
void thi_table_clear(thiele_table *table);

/* The tokens of the table (or the one it selects from) that mean "no value", beside the usual ones; NULL: none. */
const char *thi_table_missing(const thiele_table *table);
/* Appends a field to a line of CSV, in quotes where it must be (RFC 4180). */
void thi_csv_add_field(thi_text *line, const char *text, size_t length);

/* --- merge.c -------------------------------------------------------------------------------------------------------
 */

typedef struct thi_column_options thi_column_options;
/*
 * A table for a fit by these options, with weights: rows that are equal there are one, which has the sum of their
 * weights in the column of weights, and those of weight 0 are gone. Their order depends on what they hold alone, unless
 * all have the weight 1 (`equal`). The other table is borrowed. NULL: there are no weights, or the table is too large
 * for memory. Errors: those of thi_encoder_learn's choice of columns; DATA (a weight that is missing, negative or
 * infinite).
 */
thiele_status thi_table_merge(thiele_table **out, thiele_context *ctx, const thiele_table *table,
                              const thi_column_options *options);

/* --- encoder.c: from columns to the matrix X -------------------------------------------------------------------- */

/* How the dates of a column become numbers: days since `from`, which is days since 1970-01-01 (or midnight). */
typedef struct thi_dates {
    thi_date_form form; /* THI_NO_DATE: they are none */
    double from;
} thi_dates;

/*
 * One input column. A categorical one with L levels becomes L indicator dimensions and, where it has others, one for
 * all values that are none of its levels (rare in training, or never seen); a numeric one a single dimension. Of a
 * column that lacked values in training the last dimension says where: there a number is `fill` and a category no
 * level.
 */
typedef struct thi_input {
    char *name;
    int levels;      /* 0: numeric */
    char **level;    /* sorted bytewise */
    bool others;     /* values that are no level are a level of their own, behind these */
    int rare;        /* how many values of training are such */
    bool one_scale;  /* its dimensions share a length-scale where inputs have their own */
    thi_dates dates; /* of a numeric one that is written as dates */
    bool fills;      /* missing values are filled in, and its last dimension is 1 there */
    double fill;     /* by this number: the mean of the others */
    int first;       /* its first dimension in X */
} thi_input;

/*
 * One target column: a number, standardised or as it is, or a label. Labels are numbered 0, 1, ... in the order of
 * `level` (of two: -1 and +1 where the encoder's `signs` is set).
 */
typedef struct thi_target {
    char *name;
    double center, scale;  /* y = (value - center) / scale; 0 and 1 unless standardised */
    double mean, variance; /* of the training values (population), standardised or not; of labels: of their codes */
    int levels;            /* 0: a number */
    char **level;
    double *level_value; /* what the labels are as numbers, ascending unless the user gave the order; NULL: texts */
} thi_target;

typedef struct thi_encoder {
    int inputs;
    thi_input *input;
    int dims;               /* D, the rows of X */
    double *center, *scale; /* D each: X = (x - center) / scale; 0 and 1 for indicators and for raw models */
    char *missing;          /* tokens that meant "no value" in the training table; NULL: none */
    int targets;            /* P; 0: none */
    thi_target *target;
    bool signs;     /* labels are -1 and +1 */
    bool partial;   /* of several targets some may be missing; also where each has an encoder of its own */
    char *exposure; /* column whose log is added to the first latent function; NULL: none */
    char *weights;  /* of training rows: the column of how many rows each stands for; NULL: one */
    /*
     * The column whose values are the blocks of a block method; name NULL: none. It has the last dimension of X, which
     * no kernel sees: the number of its level, -1 for one that training never saw, over THI_KEY_SCALE.
     */
    thi_input key;
    int dropped; /* columns that were left out because every row has the same there */
    char **dropped_name;
} thi_encoder;

/* What becomes of rows whose inputs lack values: filled in, where the column has learned how. */
typedef enum thi_missing { THI_MISSING_REFUSE, THI_MISSING_MEAN, THI_MISSING_DROP } thi_missing;

/* Which columns play which part, and how they are taken: lists of names as in thiele_fit_options; NULL: not said. */
struct thi_column_options {
    const char *target, *inputs, *ignore, *categorical, *exposure, *weights, *partition;
    const char *classes; /* of the target, in order */
    bool drop_missing, raw;
    bool partial; /* rows without the only target are left out: it is one of several */
    /*
     * Categories have one length-scale each, and a level for other values. Levels of fewer rows than `rare` are no
     * levels; THI_RARE_AUTO: of fewer than five rows that are less than a hundredth of all.
     */
    bool one_scale;
    int64_t rare;
    thi_missing missing; /* inputs that have no value */
};
enum { THI_RARE_AUTO = -1 };

/* What a likelihood asks of the target columns. A NULL rule stands for standardised numbers (gaussian). */
typedef struct thi_target_rule {
    const char *likelihood; /* its name, for messages; required */
    bool standardise;       /* unless options->raw */
    bool labels;            /* classes by text or number; options->classes may list them in order */
    bool signs;             /* exactly two labels, -1 and +1 */
    bool ordered;           /* the order of the labels matters: that of numbers, or the one that was given */
    bool exposure;          /* an exposure column makes sense */
    /* Of numbers: why a value (units of the data) cannot be, or NULL. May be NULL. */
    const char *(*refuses)(const void *user, double y);
    const void *user;
} thi_target_rule;

/* One label of a target, for looking it up. */
typedef struct thi_label {
    const char *text; /* borrowed from the encoder */
    double value;     /* what it is as a number; 0 of texts */
    double code;      /* what it becomes in y */
} thi_label;

/*
 * Chooses the columns, learns levels, means and standard deviations in one pass (levels, dates and labels in another
 * before it), leaves out constant columns and, unless they were listed, texts that nothing can be learned from
 * (leave_out.c), each with a line to the log, and refuses what cannot be used: an unknown column, text in a column of
 * numbers, missing or infinite values, a text column with more than THI_LEVELS_MAX levels, fewer than two rows, a
 * constant target where the rule standardises, labels where the rule wants numbers, a value that the rule refuses, a
 * third label of two, one label only. A selection of rows knows the labels of the whole table, so that no fold of a
 * cross-validation meets one it never heard of; only where there are two by the rule and the selection has both, others
 * elsewhere do not count.
 */
enum { THI_LEVELS_MAX = 100, THI_KEYS_MAX = 10000 };
/* Numbers of blocks are so small in X that whatever looks at distances there, or at sums, does not notice them. */
#define THI_KEY_SCALE 1099511627776.0 /* 2^40: division is exact */
/* An encoded input larger than this is refused: its square must not overflow. */
#define THI_INPUT_MAX 1e100
thiele_status thi_encoder_learn(thi_encoder *encoder, thiele_context *ctx, const thiele_table *table,
                                const thi_column_options *options, const thi_target_rule *rule);
void thi_encoder_clear(thi_encoder *encoder);
/* How many dimensions of X an input has. */
int thi_input_width(const thi_input *input);
/* "age", "site=north": the name of one dimension of X, appended to text. */
void thi_encoder_dim_name(const thi_encoder *encoder, int dim, thi_text *text);
/* As a JSON object and back. A read one is checked as untrusted data. */
json_t *thi_encoder_to_json(const thi_encoder *encoder);
thiele_status thi_encoder_from_json(thi_encoder *encoder, thiele_context *ctx, const json_t *json);

/*
 * Whether a column of numbers (of a selection: in the whole table) has exactly two values, each in more than one row:
 * labels that were written as numbers. Cheap where it has more.
 */
thiele_status thi_has_two_values(thiele_context *ctx, const thiele_table *table, int column, double value[2],
                                 bool *two);
/* Likewise whether it has whole numbers from 0 up alone, 0 among them: what counts look like. */
thiele_status thi_has_counts(thiele_context *ctx, const thiele_table *table, int column, bool *counts);
/*
 * How many classes a target column of texts (of a selection: in the whole table) can stand for: its distinct texts, if
 * they are few; else, and where it has numbers or dates, *classes is 0.
 */
enum { THI_CLASSES_MOST = 30 };
thiele_status thi_count_classes(thiele_context *ctx, const thiele_table *table, int column, int *classes);

/* How a table is read. */
typedef struct thi_reading {
    bool target;       /* with the target columns */
    bool weighted;     /* and the weights, where the encoder has such a column: rows of weight 0 are left out */
    bool unseen_zero;  /* a level that training never saw, where there are no others: all zeros; else an error */
    bool unseen_error; /* an error in any case */
    bool drop_missing; /* leave out rows with missing values; else an error, but for inputs that can be filled in */
    bool drop_inputs;  /* leave out those with missing inputs */
    bool keep_missing; /* missing inputs are NaN in X, in their first dimension */
    /* Why a target that is a number (units of the data) cannot be, or NULL; may be NULL. */
    const char *(*refuses)(const void *user, double y);
    const void *user;
    const char *likelihood; /* whose refusal it is, for the message; may be NULL */
} thi_reading;

/* How rows of one particular table are encoded. */
typedef struct thi_reader {
    const thi_encoder *encoder;
    const thiele_table *table;
    int *column; /* the table's column of each input */
    thi_reading how;
    int exposure;           /* the table's column of the exposure; -1: none, or not in this table */
    int weights;            /* likewise of the weights */
    int key;                /* likewise of the partition */
    bool *dates_as_text;    /* of each input: dates are read from texts; in a column of numbers they are days already */
    int numerics;           /* how many inputs are read as numbers */
    int *numeric;           /* which ones */
    int targets;            /* how many targets are read as numbers */
    int width;              /* how many numbers are read of a row */
    int *source;            /* their columns: the numeric inputs', the targets', the weights', the exposure's */
    int64_t block;          /* rows that are read at a time: those of thi_table_block */
    double *scratch;        /* their numbers */
    bool *told;             /* of each input: it had a value that training never saw, and a line said so */
    int label_column;       /* the table's column of labels that are read as texts; -1: none */
    int labels;             /* how many labels the target has */
    thi_label *label;       /* sorted by value, or by text where they are texts */
    const char *known_from; /* where they come from, for messages */
} thi_reader;

/*
 * Matches the encoder's columns to the table's by name. Error: COLUMN, naming all that are absent. An exposure column
 * that is absent when the targets are not read counts as 1 in every row, with a warning to the log; one of the
 * partition as a value that was never seen.
 */
thiele_status thi_reader_open(thi_reader *reader, thiele_context *ctx, const thi_encoder *encoder,
                              const thiele_table *table, const thi_reading *how);
/*
 * Encodes rows first .. first+count-1, looking up between blocks: X is D x count, y P x count (NULL when without
 * target; NaN where one of several targets is missing), offset count logs of the exposure (0 without; may be NULL), row
 * the table's row of each kept one. *kept <= count. Infinite and missing values, an exposure that is not positive, a
 * target that is refused, a label that training never saw: DATA, naming column and row.
 */
thiele_status thi_reader_read(thi_reader *reader, thiele_context *ctx, int64_t first, int64_t count, double *X,
                              double *y, double *offset, int64_t *row, int64_t *kept);
/* Where rows go; all but X may be NULL. */
typedef struct thi_room {
    double *X, *y, *offset;
    double *weight; /* 1 where there is no such column */
    int64_t *row;
} thi_room;
/* The same with weights: finite, not negative, or DATA. */
thiele_status thi_reader_fill(thi_reader *reader, thiele_context *ctx, int64_t first, int64_t count,
                              const thi_room *room, int64_t *kept);
void thi_reader_close(thi_reader *reader);
/*
 * One row given as numbers, one per input column (level index for a categorical one; -1: another value, where it has
 * others) and, where there is a partition, the level index of that (-1: none of them). Error: ARGUMENT (not finite, no
 * such level).
 */
static inline int thi_row_numbers(const thi_encoder *encoder)
{
    return encoder->inputs + (encoder->key.name != NULL);
}
thiele_status thi_encode_row(const thi_encoder *encoder, thiele_context *ctx, const double *x, double *X);

#endif
