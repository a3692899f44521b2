/* Dates and times of day as numbers: days since 1970-01-01, or since midnight. Zones count, leap seconds do not. */
#ifndef THI_DATES_H
#define THI_DATES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * How the dates of a column are read. Year first (2024-01-31, 2024/1/31, 2024-01) and named months (31-Jan-2024, Jan
 * 31, 2024) are read in each form of dates; a day before or behind its month (31/01/2024, 1/31/2024) needs one of its
 * own.
 */
typedef enum thi_date_form {
    THI_NO_DATE,
    THI_YEAR_FIRST,
    THI_DAY_FIRST,   /* 31/01/2024, 31-1-2024, 31.1.2024 */
    THI_MONTH_FIRST, /* 1/31/2024, 01-31-2024 */
    THI_TIME_OF_DAY, /* 13:05, 13:05:59.25 */
    THI_DATE_FORMS
} thi_date_form;
/* What a model file calls them; NULL for THI_NO_DATE. */
extern const char *const thi_date_form_names[THI_DATE_FORMS];
/* THI_NO_DATE: none has that name. */
thi_date_form thi_date_form_named(const char *name);

/*
 * Whether a text is a date of this form, and which. A date may have a time behind a T, a comma or a blank: hours and
 * minutes, seconds with a fraction, and a zone (Z, +02:00). Years have four digits.
 */
bool thi_date_read(const char *text, size_t length, thi_date_form form, double *days);
/* "2024-01-31", "2024-01-31T06:30:00", "2024-01-31T06:30:00.250"; of a time of day what stands behind the T. */
enum { THI_DATE_MAX = 48 };
void thi_date_write(double days, thi_date_form form, char text[THI_DATE_MAX]);

#endif
