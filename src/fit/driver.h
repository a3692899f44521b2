/* What fits, learners and predictions share: the deadline, progress, cancellation, and the reason why they ended. */
#ifndef THI_DRIVER_H
#define THI_DRIVER_H

#include "base/base.h"
#include <thiele/model.h>

typedef struct thi_driver {
    thiele_context *ctx;
    double started, deadline; /* seconds; deadline 0: none */
    const char *phase;
    double phase_started;
    int64_t done, total; /* evaluations, or rows; total 0: not known */
    double value;        /* best objective of this phase, NaN before the first */
    int64_t rows;        /* that steps of this phase have worked on */
    double held_out;     /* root mean square error on rows that were held out, units of the model; NaN: none */
    double unit;         /* of the target: held_out is shown in the units of the data */
    double effort;       /* of work that no deadline limits, beside the normal (budget.h); 0: normal */
    double speed;        /* flops a second, as the fit has seen them (budget.h); 0: nothing was measured yet */
    bool stopped;
    thiele_stop reason; /* when stopped */
} thi_driver;

void thi_driver_start(thi_driver *driver, thiele_context *ctx, double deadline);
/* A new phase with at most `total` evaluations. */
void thi_driver_phase(thi_driver *driver, const char *phase, int64_t total);
/* After an evaluation: reports progress. */
void thi_driver_report(thi_driver *driver, double value);

/* One step of a variational method. */
typedef struct thi_step {
    double value;                /* to be shown: a running average of the bound */
    double expected, divergence; /* the bound of this step is their difference */
    double size;                 /* of the step */
    int64_t rows;                /* that it worked on */
} thi_step;
void thi_driver_step(thi_driver *driver, const thi_step *step);
/* A step of so many rows that is not worth showing: only asks whether to go on. */
void thi_driver_count(thi_driver *driver, int64_t rows);
/* For phases that are counted in rows: so many more are done. */
void thi_driver_rows(thi_driver *driver, int64_t rows);
/* As things stand: what the callback would be told. */
thiele_progress thi_driver_progress(const thi_driver *driver);
/* Reading a table until the deadline (thi_watch_end ends it): there is no result yet that it could leave. */
thi_watch thi_driver_watch(const thi_driver *driver, const char *what);
/* True once the deadline has passed or the progress callback asked to stop. */
bool thi_driver_stopped(thi_driver *driver);
/* The same in the midst of an evaluation that may be long: asks the callback as well. */
bool thi_driver_ask(thi_driver *driver);

#endif
