/*
 * Courses of sweeps over the weights of a decoupled mean (decoupled_solve.c): over which rows, how many of them held
 * out, until when; Gaussian noise by turns with them.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/decoupled_sweep.h"

enum {
    LEAST_ROWS = 65536,
    ROWS_A_FUNCTION = 4,
    FEWEST_SWEEPS = 6,
    COURSES = 8,
    HELD = 2000,
    FEW_ROWS = 16384, /* that hyperparameters are compared by */
    HELD_SHARE = 10
};
/* Nats a row: a sweep that gains less is the last one. */
static const double TOLERANCE = 1e-4;

/* Squared errors of a target over the rows that have it; *count of them. */
static double squares_of(const thi_sweep *s, int64_t q, double *count)
{
    const double *f = s->f + q * s->rows.n;
    double squares = 0.0;
    *count = 0.0;
    for (int64_t i = 0; i < s->rows.n; i++) {
        double gap = s->rows.y[q + i * s->latents] - f[i];
        squares += isnan(gap) ? 0.0 : gap * gap;
        *count += !isnan(gap);
    }
    return squares;
}

/* Gaussian noise at its optimum for the present errors, or those of all rows where `unseen` is the share of others. */
static thiele_status renew_noise(thi_sweep *s, double unseen)
{
    for (int q = 0; q < s->latents && s->covered; q++) {
        double count, seen = squares_of(s, q, &count);
        double held = unseen > 0.0 ? count * thi_left_out_error(&s->fit->left_out[q]) : seen;
        s->noise.more[q] = unseen * (held - seen);
        s->noise.squares[q] = seen + s->noise.more[q];
    }
    return s->covered ? thi_dcover_profile(&s->cover, s->fit, s->noise.squares) : THIELE_OK;
}

/* --- by the clock ----------------------------------------------------------------------------------------------------
 */

/* Flops of some sweeps over a row: with Gaussian noise products of functions are those of the first one, and of a
 * group. */
static double flops_a_row(const thi_dfit *fit, int64_t functions, int sweeps)
{
    static const double EXP = 40.0;
    bool tight = thi_pass_is_tight(fit->problem.spec, &thi_engine_decoupled);
    int turns = tight ? fit->latents->groups : fit->latents->count, products = tight ? 1 : sweeps;
    return turns * (double)functions * (sweeps * (2.0 * fit->problem.source->dims + EXP) + products * THI_SWEEP_BLOCK);
}

int64_t thi_dfit_swept(const thi_dfit *fit)
{
    double flops =
        thi_budget_flops(fit->problem.driver, THI_SHARE_STEPS) / (ROWS_A_FUNCTION * flops_a_row(fit, 1, FEWEST_SWEEPS));
    return (int64_t)fmin((double)fit->most_alpha, sqrt(flops));
}

static int64_t most_rows(const thi_dfit *fit, int64_t functions)
{
    return thi_least(fit->problem.source->n, thi_most(ROWS_A_FUNCTION * functions, LEAST_ROWS));
}

double thi_dfit_sweep_flops(const thi_dfit *fit)
{
    return COURSES * (double)most_rows(fit, fit->most_alpha) *
           flops_a_row(fit, fit->most_alpha + fit->most_beta, FEWEST_SWEEPS);
}

/* As many rows as some sweeps have time for; 0: fewer than would tell the functions apart. */
static int64_t rows_of(const thi_dfit *fit, int64_t most)
{
    double seconds =
        thi_budget_seconds(fit->problem.driver, flops_a_row(fit, fit->n_alpha + fit->n_beta, FEWEST_SWEEPS));
    double rows = fmin((double)most, thi_budget_left(fit->problem.driver) / seconds);
    return rows < fmin(ROWS_A_FUNCTION * (double)fit->n_alpha, (double)most) ? 0 : (int64_t)rows;
}

/* A block of rows that were held out, as the present q predicts them, joins what is known of each target. */
static void judge_rows(const thi_sweep *s, int64_t first, int64_t count)
{
    thi_dfit *fit = s->fit;
    int64_t Q = s->latents;
    for (int64_t i = 0; i < count * Q; i++) {
        thi_left_out *out = &fit->left_out[i % Q];
        double offset = s->held.offset != NULL && i % Q == 0 ? s->held.offset[first + i / Q] : 0.0;
        double gap = s->held.y[first * Q + i] - fit->pass.mu[i] - offset;
        if (!isnan(gap)) {
            out->error2[out->n] = gap * gap;
            out->v[out->n++] = fit->pass.v[i];
        }
    }
}

static thiele_status judge(const thi_sweep *s)
{
    thi_dfit *fit = s->fit;
    int64_t most = fit->batches.largest, D = s->rows.dims;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < s->latents; q++) {
        fit->left_out[q].n = 0;
    }
    for (int64_t first = 0; first < s->held.n; first += most) {
        int64_t count = thi_least(most, s->held.n - first);
        THI_TRY(fit->pass.engine->marginals(fit->pass.self, fit->problem.ctx, count, s->held.X + first * D,
                                            fit->pass.mu, fit->pass.v));
        judge_rows(s, first, count);
    }
    fit->held = s->held.n;
out:
    return status;
}

/* The noise that the mean is made with: a part of the bound's, which is kept. */
static thiele_status lower_noise(thi_sweep *s, double ratio)
{
    thi_dfit *fit = s->fit;
    for (int q = 0; q < s->latents && ratio < 1.0; q++) {
        thi_hyper *noise = thi_dfit_noise(fit, q);
        s->noise.kept[q] = noise->value;
        noise->value = log(fmax(ratio * thi_hyper_number(noise) - noise->floor, 1e-3 * noise->floor));
    }
    return ratio < 1.0 ? thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec) : THIELE_OK;
}

static thiele_status raise_noise(thi_sweep *s, double ratio)
{
    thi_dfit *fit = s->fit;
    for (int q = 0; q < s->latents && ratio < 1.0; q++) {
        thi_dfit_noise(fit, q)->value = s->noise.kept[q];
    }
    return ratio < 1.0 ? thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec) : THIELE_OK;
}

/* Sweeps until they gain little; returns how many by *count. */
static thiele_status sweep_on(thi_sweep *s, const thi_course *c, int *count)
{
    thi_dfit *fit = s->fit;
    double value, before, gained = INFINITY;
    double enough =
        (fit->sparse->tolerance > 0.0 ? fit->sparse->tolerance : TOLERANCE) * (double)fit->problem.source->n;
    thiele_status status = THIELE_OK;
    for (; *count < c->sweeps && gained >= enough && !thi_driver_stopped(fit->problem.driver); ++*count) {
        THI_TRY(lower_noise(s, c->ratio));
        THI_TRY(thi_sweep_look(s, &before));
        value = before;
        THI_TRY(thi_sweep_once(s, &value));
        gained = value - before;
        THI_TRY(raise_noise(s, c->ratio));
        THI_TRY(renew_noise(s, 0.0));
        THI_TRY(thi_sweep_look(s, &value));
        thi_driver_report(fit->problem.driver, value);
        if (!isfinite(c->least) && thi_dfit_due(fit)) { /* no trial of other values */
            THI_TRY(thi_sweep_keep(s));
            THI_TRY(thi_dfit_save(fit, value));
        }
        bool hopeless = *count >= FEWEST_SWEEPS / 2 && value + (c->sweeps - *count - 1) * gained < c->least;
        gained = hopeless ? 0.0 : gained;
    }
out:
    return status;
}

/* Rows that are not learned from have the errors of those held out: the noise and the bound with them. */
static thiele_status count_unseen(thi_sweep *s, double unseen, double *value)
{
    thiele_status status;
    THI_TRY(renew_noise(s, unseen));
    THI_TRY(thi_sweep_look(s, value));
    for (int q = 0; q < s->latents; q++) {
        *value -= 0.5 * s->weight * s->noise.more[q] / s->fit->problem.spec->lik->value[q];
    }
    THI_TRY(thi_sweep_keep(s));
out:
    return status;
}

thiele_status thi_sweep_course(thi_dfit *fit, const thi_course *c, double *value)
{
    thi_sweep s;
    double began = thi_seconds();
    int sweeps = 0;
    thiele_status status;
    THI_TRY(thi_sweep_open(&s, fit, c->rows, c->held));
    THI_TRY(sweep_on(&s, c, &sweeps));
    if (!thi_driver_stopped(fit->problem.driver)) {
        double flops = (double)s.rows.n * flops_a_row(fit, fit->n_alpha + fit->n_beta, sweeps + 1);
        thi_budget_took(fit->problem.driver, flops, thi_seconds() - began);
    }
    THI_TRY(thi_sweep_look(&s, value));
    THI_TRY(thi_sweep_keep(&s));
    if (c->held > 0) {
        THI_TRY(judge(&s));
        THI_TRY(count_unseen(&s, c->unseen, value));
    }
out:
    thi_sweep_close(&s);
    return status;
}

/* Whether there is time for so many of them, and for what must follow. */
static bool has_time(const thi_dfit *fit, const thi_course *c, int courses)
{
    double flops = courses * (double)c->rows * flops_a_row(fit, fit->n_alpha + fit->n_beta, c->sweeps + 1) + c->after;
    return !thi_driver_stopped(fit->problem.driver) &&
           thi_budget_left(fit->problem.driver) > thi_budget_seconds(fit->problem.driver, flops);
}

bool thi_sweep_has_time(const thi_dfit *fit, const thi_course *c)
{
    return has_time(fit, c, 2);
}

/* Rows to hold out, where a noise of predictions is to be found, and room for what they say. */
static thiele_status hold_rows(thi_dfit *fit, int64_t *held)
{
    bool wanted = false;
    thiele_status status = THIELE_OK;
    for (int q = 0; q < fit->latents->count && fit->pass.tight; q++) {
        wanted = wanted || (!thi_dfit_noise(fit, q)->fixed && fit->orthogonal && fit->n_alpha > 0);
    }
    *held = wanted ? thi_least(HELD, fit->problem.source->n / HELD_SHARE) : 0;
    for (int q = 0; q<fit->latents->count && * held> 0; q++) {
        thi_left_out *out = &fit->left_out[q];
        THI_TRY(thi_alloc(fit->problem.ctx, &out->error2, (size_t)*held, sizeof *out->error2));
        THI_TRY(thi_alloc(fit->problem.ctx, &out->v, (size_t)*held, sizeof *out->v));
    }
out:
    return status;
}

/* What hyperparameters are compared by, before the weights of those that are taken. */
static thi_course few_rows(const thi_dfit *fit, int64_t held, int sweeps)
{
    int64_t n = fit->problem.source->n, rows = thi_least(n, FEW_ROWS + held), functions = fit->n_alpha + fit->n_beta;
    return (thi_course){.rows = rows,
                        .held = held,
                        .sweeps = sweeps < FEWEST_SWEEPS ? sweeps : FEWEST_SWEEPS,
                        .unseen = 1.0 - (double)(rows - held) / (double)n,
                        .least = -INFINITY,
                        .after = (double)most_rows(fit, fit->n_alpha) * flops_a_row(fit, functions, FEWEST_SWEEPS),
                        .ratio = 1.0};
}

/* Where all rows are swept, those that were held out join the others in the end. */
thiele_status thi_dfit_sweeps(thi_dfit *fit, int sweeps)
{
    int64_t n = fit->problem.source->n, most = most_rows(fit, fit->n_alpha), rows = 0, held;
    thi_course c = {.sweeps = sweeps, .least = -INFINITY, .ratio = 1.0};
    double value;
    thiele_status status;
    thi_driver_phase(fit->problem.driver, "sweeps", sweeps);
    THI_TRY(hold_rows(fit, &held));
    c.held = held;
    int64_t beyond = n - most >= held ? held : 0;
    thi_course few = few_rows(fit, held, sweeps);
    if (held > 0 && has_time(fit, &few, 1)) {
        THI_TRY(thi_dfit_climb(fit, &few));
    }
    while (fit->n_alpha > 0 && rows < most && !thi_driver_stopped(fit->problem.driver)) {
        int64_t next = rows_of(fit, most);
        if (next < most && next < 2 * rows + 1) {
            break;
        }
        rows = next;
        c.rows = rows + beyond;
        c.unseen = 1.0 - (double)(c.rows - held) / (double)n;
        THI_TRY(thi_sweep_course(fit, &c, &value));
    }
    if (rows > 0 && held > 0) {
        THI_TRY(thi_dfit_loosen(fit, &c, value));
    }
    if (rows > 0 && beyond < held && !thi_driver_stopped(fit->problem.driver)) {
        c.rows = rows;
        c.held = 0;
        THI_TRY(thi_sweep_course(fit, &c, &value));
    }
out:
    return status;
}
