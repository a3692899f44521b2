/*
 * Between the units of the model and what the user writes and reads. The line of a linear mean is kept about the mean
 * of each input; in the units of the data mean.constant is its value at 0.
 */
#ifndef THI_UNITS_H
#define THI_UNITS_H

#include "model/specify.h"

/*
 * Remembers the fixed values as they were written, and turns given intercepts into the model's. Error: ARGUMENT for one
 * whose slopes are not known: it would have to move with them.
 */
thiele_status thi_units_take(thi_fitting *f);
/*
 * Least squares over some of the rows, as a first guess of what the user did not say of the line: without it, constant
 * and slope of inputs far from 0 trade against each other and the search ends early. O(rows D^2 + D^3).
 */
thiele_status thi_line_guess(thi_fitting *f, const thi_rows *rows);
/* A hyperparameter as the user writes and reads it. */
double thi_units_value(const thi_fitting *f, int hyper);
/*
 * To 15 digits, which undoes a change of units and back of a value with no more of them: 6.999999999999999 is 7. Fewer
 * where it is the difference of numbers of a larger magnitude.
 */
double thi_as_written(double value, double magnitude);

#endif
