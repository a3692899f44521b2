/*
 * A report on a model: numbers first, as a JSON document, then a page that is drawn from that document alone. Each
 * diagnostic is a section of the document and a row of the table in report.c; each lamp a row of that in lamps.c, which
 * judges by the numbers in the document.
 */
#ifndef THI_REPORT_H
#define THI_REPORT_H

#include <jansson.h>

#include "model/relevance.h"
#include "report/rows.h"

typedef struct thi_report {
    const thiele_model *model; /* of the target: a part, where there are parts */
    thiele_context *ctx;
    int target;                /* of that model */
    const thiele_table *table; /* NULL likewise */
    thi_report_rows *rows;     /* NULL: the report is about the model alone */
    const char *command;       /* NULL: not said */
    json_t *json;              /* all of it */
    json_t *describe;          /* borrowed: the model's description in it */
    bool short_of_memory;      /* a value could not be made */
} thi_report;

/* A diagnostic: fills the object that stands under its name. */
typedef struct thi_section {
    const char *name;
    bool data; /* needs rows */
    thiele_status (*fill)(thi_report *report, json_t *section);
} thi_section;

/* --- values.c: values of the document; what memory has no room for is noted in the report --- */
void thi_put(thi_report *report, json_t *to, const char *name, json_t *value);
void thi_put_number(thi_report *report, json_t *to, const char *name, double value);
void thi_put_count(thi_report *report, json_t *to, const char *name, int64_t value);
void thi_put_text(thi_report *report, json_t *to, const char *name, const char *value);
void thi_put_numbers(thi_report *report, json_t *to, const char *name, int64_t n, const double *value);
void thi_put_counts(thi_report *report, json_t *to, const char *name, int64_t n, const int64_t *value);
void thi_append(thi_report *report, json_t *to, json_t *value);
/* A new object or list in another; NULL when memory is out, which the functions above take. */
json_t *thi_put_object(thi_report *report, json_t *to, const char *name);
json_t *thi_put_list(thi_report *report, json_t *to, const char *name);
/* A new object at the end of a list. */
json_t *thi_append_object(thi_report *report, json_t *to);
/* Of a document; NaN where there is no such number, at a path such as "calibration.coverage90". */
double thi_number_at(const json_t *json, const char *path);
const json_t *thi_value_at(const json_t *json, const char *path);

/* --- the sections --- */
thiele_status thi_section_scores(thi_report *report, json_t *section);
thiele_status thi_section_calibration(thi_report *report, json_t *section);
thiele_status thi_section_classes(thi_report *report, json_t *section);
thiele_status thi_section_counts(thi_report *report, json_t *section);
thiele_status thi_section_errors(thi_report *report, json_t *section);
thiele_status thi_section_effects(thi_report *report, json_t *section);
thiele_status thi_section_domain(thi_report *report, json_t *section);
thiele_status thi_section_inference(thi_report *report, json_t *section);

/* --- neighbours.c: a part of the errors --- */
thiele_status thi_put_neighbours(thi_report *report, json_t *section);

/* --- lamps.c --- */
/* "lamps" and "verdict" of a document whose other sections are there. */
void thi_report_lamps(thi_report *report);

/* --- held.c: rows that the model holds --- */
/*
 * Squared distances of n columns of X to the nearest held one, in standard deviations of the columns. least (n), which
 * (n): NULL: not wanted. O(n held D).
 */
thiele_status thi_held_nearest(const thiele_model *model, thiele_context *ctx, int64_t n, const double *X,
                               double *least, int64_t *which);

/* --- inputs.c: input columns in a report --- */
enum { THI_REPORT_INPUTS = 20 };
/* Which inputs are shown: those that matter most first, at most THI_REPORT_INPUTS. Returns how many. */
int thi_report_inputs(const thi_report *report, int shown[THI_REPORT_INPUTS]);
/* The value of an input in a column of X, in the units of the data; of a category the number of its level. */
double thi_input_value(const thi_encoder *encoder, int input, const double *x);
/* The reverse, into a column of X. */
void thi_input_place(const thi_encoder *encoder, int input, double value, double *x);

/* --- page.c --- */
/* The page of a document, one file of HTML. */
void thi_report_page(const json_t *report, FILE *stream);

#endif
