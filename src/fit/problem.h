/* What every fit works on: rows, a specification, its hyperparameters; and who says when it is over. */
#ifndef THI_PROBLEM_H
#define THI_PROBLEM_H

#include "fit/driver.h"
#include "fit/parameters.h"
#include "fit/source.h"

typedef struct thi_problem {
    thiele_context *ctx;
    thi_driver *driver;
    thi_spec *spec;
    const thi_source *source; /* NULL: the rows are handed over one set at a time */
    thi_hypers *hypers;
} thi_problem;

#endif
