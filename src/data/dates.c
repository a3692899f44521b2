/*
 * Reads and writes dates of the proleptic Gregorian calendar (ISO 8601 and the few usual notations that cannot be
 * misread). Days are counted by years that begin in March, so that the leap day is the last of its year.
 */
#include "data/dates.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <thiele/table.h>

const char *const thi_date_form_names[THI_DATE_FORMS] = {NULL, "year-month-day", "day-month-year", "month-day-year",
                                                         "time"};

/* A text that is being read. */
typedef struct cursor {
    const char *at, *end;
} cursor;

static bool accept(cursor *c, char wanted)
{
    bool there = c->at < c->end && *c->at == wanted;
    c->at += there;
    return there;
}

/* A run of digits as a number; how many there are, 0: none or more than nine. */
static int take_digits(cursor *c, int *value)
{
    enum { MOST = 9 };
    int digits = 0;
    *value = 0;
    for (; c->at < c->end && isdigit((unsigned char)*c->at) && digits <= MOST; c->at++) {
        *value = digits < MOST ? 10 * *value + (*c->at - '0') : 0;
        digits++;
    }
    return digits <= MOST ? digits : 0;
}

/* "Mar", "march": 3; 0: no month. */
static int take_month(cursor *c)
{
    static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                         "july",    "august",   "september", "october", "november", "december"};
    char word[10] = "";
    size_t length = 0;
    for (; c->at < c->end && isalpha((unsigned char)*c->at); c->at++, length++) {
        if (length < sizeof word - 1) {
            word[length] = (char)tolower((unsigned char)*c->at);
        }
    }
    for (int m = 0; m < 12 && length >= 3 && length < sizeof word; m++) {
        if (strncmp(word, months[m], length) == 0) {
            return m + 1;
        }
    }
    return 0;
}

/* --- the calendar ------------------------------------------------------------------------------------------------ */

static bool is_day(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (leap && month == 2);
}

enum { YEARS_400 = 146097 /* days */, MARCH_0 = 719468 /* days from there to 1970-01-01 */ };

static long days_of(long year, int month, int day)
{
    year -= month <= 2;
    long era = (year >= 0 ? year : year - 399) / 400;
    long in_era = year - era * 400;
    long in_year = (153L * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * YEARS_400 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - MARCH_0;
}

static void date_of(long days, long *year, int *month, int *day)
{
    days += MARCH_0;
    long era = (days >= 0 ? days : days - (YEARS_400 - 1)) / YEARS_400;
    long in_era = days - era * YEARS_400;
    long years = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    long in_year = in_era - (365 * years + years / 4 - years / 100);
    long m = (5 * in_year + 2) / 153;
    *day = (int)(in_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = years + era * 400 + (*month <= 2);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* "+02:00", "-0530", "Z" or nothing: what is to be taken from the time, in minutes. */
static bool take_zone(cursor *c, int *minutes)
{
    int hour, minute = 0;
    *minutes = 0;
    if (c->at == c->end || accept(c, 'Z')) {
        return true;
    }
    int sign = accept(c, '+') ? 1 : accept(c, '-') ? -1 : 0;
    int digits = take_digits(c, &hour);
    if (digits == 4) {
        minute = hour % 100;
        hour /= 100;
    } else if (digits == 2 && accept(c, ':') && take_digits(c, &minute) != 2) {
        return false;
    }
    *minutes = sign * (60 * hour + minute);
    return sign != 0 && (digits == 2 || digits == 4) && hour <= 18 && minute < 60;
}

/* ".25": a fraction of a second, to as many digits as a double tells apart. */
static double take_fraction(cursor *c)
{
    double value = 0.0, unit = 1.0;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++) {
        unit /= 10.0;
        value += unit * (*c->at - '0');
    }
    return value;
}

/* The rest of the text as a time, in days. */
static bool take_time(cursor *c, double *days)
{
    int hour, minute, second = 0, zone = 0;
    double fraction = 0.0;
    int digits = take_digits(c, &hour);
    if (digits < 1 || digits > 2 || !accept(c, ':') || take_digits(c, &minute) != 2) {
        return false;
    }
    if (accept(c, ':')) {
        if (take_digits(c, &second) != 2) {
            return false;
        }
        fraction = accept(c, '.') ? take_fraction(c) : 0.0;
    }
    bool fits = take_zone(c, &zone) && c->at == c->end && minute < 60 && second < 60 &&
                (hour < 24 || (hour == 24 && minute == 0 && second == 0 && fraction == 0.0));
    *days = ((60.0 * (60.0 * hour + minute - zone) + second) + fraction) / 86400.0;
    return fits;
}

/* The three parts of a date with the same separator between them; a named month may be the first or the second. */
static bool take_parts(cursor *c, int part[3], int digits[3], int *named, char *separator)
{
    *named = -1;
    *separator = 0;
    for (int i = 0; i < 3; i++) {
        if (i > 0) {
            if (c->at == c->end || strchr("-/. ,", *c->at) == NULL) {
                return i == 2 && *separator == '-' && digits[0] == 4 && digits[1] == 2; /* 2024-01 */
            }
            bool comma = accept(c, ',');
            bool same = comma ? accept(c, ' ') : i == 1 || *c->at == *separator;
            *separator = comma ? ' ' : *c->at;
            c->at += !comma;
            if (!same || (comma && *named < 0)) {
                return false;
            }
        }
        if (i < 2 && *named < 0 && c->at < c->end && isalpha((unsigned char)*c->at)) {
            *named = i;
            part[i] = take_month(c);
            digits[i] = part[i] > 0 ? 2 : 0;
        } else {
            digits[i] = take_digits(c, &part[i]);
        }
        if (digits[i] == 0) {
            return false;
        }
    }
    return true;
}

/* Year, month and day of a date of this form. */
static bool take_date(cursor *c, thi_date_form form, int *year, int *month, int *day)
{
    int part[3] = {0, 0, 1}, digits[3] = {0, 0, 1};
    int named;
    char separator;
    if (!take_parts(c, part, digits, &named, &separator)) {
        return false;
    }
    bool year_first = digits[0] == 4 && named < 0 && separator != ' ';
    bool day_first = form == THI_DAY_FIRST && separator != ' ';
    bool month_first = form == THI_MONTH_FIRST && separator != ' ' && separator != '.';
    bool year_last = digits[2] == 4 && (named >= 0 || day_first || month_first);
    int months_place = named >= 0 ? named : month_first ? 0 : 1;
    *year = year_first ? part[0] : part[2];
    *month = year_first ? part[1] : part[months_place];
    *day = year_first ? part[2] : part[1 - months_place];
    int days_digits = year_first ? digits[2] : digits[1 - months_place];
    int months_digits = year_first ? digits[1] : digits[months_place];
    return (year_first || year_last) && days_digits <= 2 && months_digits <= 2 && is_day(*year, *month, *day);
}

bool thi_date_read(const char *text, size_t length, thi_date_form form, double *days)
{
    cursor c = {text, text + length};
    int year, month, day;
    double time = 0.0;
    *days = 0.0;
    if (form == THI_TIME_OF_DAY) {
        return take_time(&c, days);
    }
    if (form == THI_NO_DATE || !take_date(&c, form, &year, &month, &day)) {
        return false;
    }
    *days = (double)days_of(year, month, day);
    if (c.at == c.end) {
        return true;
    }
    bool parted = accept(&c, 'T') || accept(&c, ' ') || (accept(&c, ',') && (accept(&c, ' ') || true));
    bool read = parted && take_time(&c, &time);
    *days += time;
    return read;
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

void thi_date_write(double days, thi_date_form form, char text[THI_DATE_MAX])
{
    long year;
    int month, day, length = 0;
    double whole = floor(days);
    long thousandths = lround((days - whole) * 86400e3);
    whole += thousandths >= 86400000;
    thousandths %= 86400000;
    if (form != THI_TIME_OF_DAY) {
        /* Beyond the years that are written with four digits nothing is read either. */
        date_of((long)fmin(fmax(whole, -719528.0), 2932896.0), &year, &month, &day);
        length = snprintf(text, THI_DATE_MAX, "%04ld-%02d-%02d", year, month, day);
    }
    if (thousandths > 0 || form == THI_TIME_OF_DAY) {
        length += snprintf(text + length, THI_DATE_MAX - (size_t)length, "%s%02ld:%02ld:%02ld",
                           form == THI_TIME_OF_DAY ? "" : "T", thousandths / 3600000, thousandths / 60000 % 60,
                           thousandths / 1000 % 60);
    }
    if (thousandths % 1000 > 0) {
        snprintf(text + length, THI_DATE_MAX - (size_t)length, ".%03ld", thousandths % 1000);
    }
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

thi_date_form thi_date_form_named(const char *name)
{
    for (int form = THI_YEAR_FIRST; form < THI_DATE_FORMS; form++) {
        if (strcmp(name, thi_date_form_names[form]) == 0) {
            return (thi_date_form)form;
        }
    }
    return THI_NO_DATE;
}

int thiele_date_read(const char *text, const char *form, double *days)
{
    double found;
    thi_date_form how = form != NULL ? thi_date_form_named(form) : THI_YEAR_FIRST;
    if (text == NULL || days == NULL || !thi_date_read(text, strlen(text), how, &found)) {
        return 0;
    }
    *days = found;
    return 1;
}

int thiele_date_write(double days, const char *form, char *text, size_t capacity)
{
    char whole[THI_DATE_MAX];
    thi_date_form how = form != NULL ? thi_date_form_named(form) : THI_YEAR_FIRST;
    if (text == NULL || capacity == 0 || how == THI_NO_DATE || !isfinite(days)) {
        return 0;
    }
    thi_date_write(days, how, whole);
    snprintf(text, capacity, "%s", whole);
    return 1;
}
