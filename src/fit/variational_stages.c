/*
 * Gaussian noise: L-BFGS over hyperparameters and Z on samples of the rows that grow, four times as many rows each
 * time, until they are all rows or the time is up; then q, and the noise once more, by one pass over all rows. A sample
 * of some thousand rows leads most of the way in the time of a few evaluations over all of them, every stage begins
 * where the one before it ended, and the best point of a stage is known at any moment, which steps on minibatches never
 * know. Each stage begins at the noise that is best for its rows and this basis (variational_noise.c).
 */
#include <math.h>

#include "fit/budget.h"
#include "fit/explore.h"
#include "fit/variational_state.h"

enum {
    FIRST_ROWS = 2048,
    ROWS_AN_INPUT = 4, /* of the first stage, for each inducing input */
    GROWTH = 4,
    MOST_ROWS = 65536, /* of the last one, without a deadline: the last pass is over all rows whatever their number */
    EVALUATIONS = 15,  /* that a further stage must have time for */
    ITERATIONS = 200,
    ENDLESS = 1000000 /* iterations, where there is a deadline */
};
/* Nats a row that five iterations must gain for a stage to go on, where a larger one follows. */
static const double COARSE = 1e-3;
/* What the last pass takes beside as many rows in evaluations, each of which has two passes; and for want of certainty.
 */
static const double LAST_PASS = 0.6;

typedef struct stages {
    thi_vfit *fit;
    const thi_source *all;
    double a_row; /* seconds that a row takes in one of the two passes of an evaluation; 0: not known yet */
    bool converged;
} stages;

static double closing(const stages *s)
{
    return LAST_PASS * 2.0 * s->a_row * (double)s->all->n;
}

/* Rows of the next stage after `rows` of them; the same number: there is no time for more. */
static int64_t next_rows(const stages *s, int64_t rows)
{
    double n = (double)s->all->n,
           most = s->fit->problem.driver->deadline > 0.0
                      ? n
                      : fmin(n, fmax(thi_budget_work(s->fit->problem.driver, MOST_ROWS), (double)rows));
    double left = thi_budget_left(s->fit->problem.driver) - closing(s);
    double affordable = s->a_row > 0.0 ? left / (EVALUATIONS * 2.0 * s->a_row) : (double)INFINITY;
    double next = fmin(fmin(GROWTH * (double)rows, most), affordable);
    return next < 1.5 * (double)rows && next < most ? rows : (int64_t)fmax(next, (double)rows);
}

static int iterations_of(const thi_vfit *fit)
{
    int given = fit->settings->iterations;
    return given > 0 ? given : fit->problem.driver->deadline > 0.0 ? ENDLESS : ITERATIONS;
}

/* One stage. last: no larger one follows. */
static thiele_status climb(stages *s, int64_t rows, bool last)
{
    thi_vfit *fit = s->fit;
    thi_rows sample = {0};
    thi_source some;
    thi_driver *driver = fit->problem.driver;
    double deadline = thi_budget_keep(driver, closing(s)), tolerance = fit->tolerance, done = fit->pass.rows_done;
    double begun = thi_seconds();
    thiele_status status;
    if (!last) {
        thi_budget_lend(driver, THI_SHARE_STAGE);
        fit->tolerance = fmax(tolerance, COARSE);
    }
    if (rows < s->all->n) {
        THI_TRY(thi_source_sample(s->all, fit->problem.ctx, rows, THI_SAMPLE_WARM, &sample));
        thi_source_of_rows(&some, &sample);
        fit->problem.source = &some;
    }
    THI_TRY(thi_vfit_profile(fit, true));
    THI_TRY(thi_vfit_nested(fit, last ? "fit" : "warm", iterations_of(fit), false));
    s->a_row = (thi_seconds() - begun) / (fit->pass.rows_done - done);
    s->converged = fit->result->fit.stop == THIELE_STOP_CONVERGED && !driver->stopped;
out:
    fit->problem.source = s->all;
    fit->tolerance = tolerance;
    thi_budget_restore(driver, deadline);
    thi_rows_free(&sample);
    return status;
}

thiele_status thi_vfit_stages(thi_vfit *fit)
{
    stages s = {.fit = fit, .all = fit->problem.source};
    double n = (double)fit->problem.source->n, first = fmax(FIRST_ROWS, ROWS_AN_INPUT * (double)fit->shape.inducing);
    /* `epochs` counts passes over all rows. */
    int64_t rows = isinf(fit->passes) ? (int64_t)fmin(first, n) : fit->problem.source->n, next;
    bool learn = thi_vfit_size(fit) > 0, last = !learn;
    thiele_status status = THIELE_OK;
    while (!last) {
        /* Until it is known what a row takes, a stage that is not of all rows is taken for one on the way. */
        last = rows == fit->problem.source->n || (s.a_row > 0.0 && next_rows(&s, rows) == rows);
        THI_TRY(climb(&s, rows, last));
        next = next_rows(&s, rows);
        last = rows == fit->problem.source->n || thi_driver_stopped(fit->problem.driver) || (last && next == rows);
        rows = last ? rows : next; /* those of the last stage, whatever ended it */
    }
    bool whole = learn && rows == fit->problem.source->n;
    fit->result->fit.stop = whole && s.converged ? THIELE_STOP_CONVERGED : THIELE_STOP_ITERATIONS;
    if (!whole) {
        THI_TRY(thi_vfit_profile(fit, learn));
        fit->result->fit.stop = learn ? fit->result->fit.stop : THIELE_STOP_FIXED;
    }
out:
    return status;
}
