/*
 * Minibatches, drawn without replacement epoch by epoch, each standing for all rows with the weight N/B. natural: a
 * step of the sites (math.md section 3; savigp-jmlr Theorem 2, Hensman et al. 2013 for Gaussian noise), Adam for
 * hyperparameters and Z by the gradient at fixed sites; at the end the sites go to their fixed point over all rows,
 * which takes the noise of the batches out of q. Else one rule for q and the rest together. A step that fails is taken
 * back and all further ones are shorter; monitor.h lowers the rate and ends the run.
 */
#include "fit/variational_state.h"

#include <math.h>
#include <string.h>

#include "data/batches.h"
#include "fit/budget.h"
#include "optim/monitor.h"
#include "optim/rules.h"

enum {
    STEPS = 5000,
    LEAST_EPOCHS = 10,
    MOST_EPOCHS = 100, /* or LEAST_STEPS, where an epoch has few */
    LEAST_STEPS = 2000,
    HOLD = 10,       /* steps before hyperparameters and Z begin to move */
    RISE = 50,       /* steps until the rate is the whole one */
    FAILURES = 30,   /* in a row */
    IN_W_AFTER = 2,  /* of them: sites stay in w */
    LAST_STEPS = 20, /* natural ones over all rows */
    ESTIMATE_BATCHES = 8,
    WINDOW = 50, /* steps that are judged together; where they may be few: */
    SHORT_WINDOW = 10
};
/* rho = (8 + t)^-DECAY: slower than 1/t, so that what old batches said under other kernels is forgotten. */
static const double DECAY = 0.51;
static const double EAGER = 5.0, EAGER_STEPS = 20.0;
/* Of the caution after a failed step, by every good one. */
static const double RECOVERY = 1.01;
/* What the end over all rows takes, in passes of steps. */
static const double LAST_PASSES = 1.0;
/* The last part of a run, over which the rate falls. */
static const double COOLING = 0.5;

typedef struct loop {
    thi_vfit *fit;
    thi_batches batches;
    int64_t *row;
    thi_rule rule;
    thi_monitor monitor;
    thi_sites_work work;
    double *before;  /* x before the last step */
    double *best;    /* x and the sites at the end of the best window of steps */
    bool known;      /* there was one */
    double *descent; /* minus the gradient, scaled */
    double scale;
    double rate;
    double slowed;  /* factor of the rate that the monitor asks for */
    double caution; /* factor of rho and of the rate: halved by a step that failed, and slowly back to 1 */
    double floor;   /* a bound below it is the end of a step that was too long */
    double started; /* seconds */
    int64_t t, most;
    double progress; /* part of the steps, or of the time, that is over */
    int failures;
} loop;

/* The gradient of the bound of one row, on average; AdaDelta's constants were chosen for the sum (savigp-jmlr 9.1). */
static double gradient_scale(const thi_vfit *fit, const char *rule)
{
    return strcmp(rule, "adadelta") == 0 ? 1.0 : 1.0 / (double)fit->problem.source->n;
}

static thiele_status loop_open(loop *l, thi_vfit *fit, const char *rule, double rate)
{
    int64_t length[THI_PARTS], size = thi_vfit_size(fit);
    thi_schedule schedule;
    thiele_status status;
    *l = (loop){.fit = fit, .scale = gradient_scale(fit, rule), .rate = rate, .slowed = 1.0, .caution = 1.0};
    for (int p = 0; p < THI_PARTS; p++) {
        length[p] = fit->vector.first[p + 1] - fit->vector.first[p];
    }
    /* Epoch by epoch another order; other uses of this purpose number their streams from 0. */
    thi_batches_open(&l->batches, (thi_stream){fit->problem.ctx->seed, THI_RANDOM_SUBSET, UINT64_C(1) << 40},
                     fit->problem.source->n, fit->batch, fit->problem.source->run);
    int64_t epoch = l->batches.per_epoch, window = epoch >= 20 && epoch <= 100 ? epoch : WINDOW;
    thi_monitor_open(&l->monitor, fit->problem.driver->deadline > 0.0 ? SHORT_WINDOW : window,
                     fit->tolerance * (double)fit->problem.source->n);
    THI_TRY(thi_schedule_make(&schedule, fit->problem.ctx, "constant", rate, 0.0, 0.0));
    THI_TRY(thi_rule_open(&l->rule, fit->problem.ctx, rule, &schedule, THI_PARTS, length));
    THI_TRY(thi_alloc(fit->problem.ctx, &l->row, (size_t)l->batches.largest, sizeof *l->row));
    THI_TRY(thi_alloc(fit->problem.ctx, &l->before, (size_t)size, sizeof *l->before));
    THI_TRY(thi_alloc(fit->problem.ctx, &l->best, (size_t)(size + (fit->natural ? thi_sites_size(&fit->shape) : 0)),
                      sizeof *l->best));
    THI_TRY(thi_alloc(fit->problem.ctx, &l->descent, (size_t)size, sizeof *l->descent));
    if (fit->natural) {
        THI_TRY(thi_sites_work_open(&l->work, fit));
    }
out:
    return status;
}

static void loop_close(loop *l)
{
    thi_rule_close(&l->rule);
    thi_free(l->row);
    thi_free(l->before);
    thi_free(l->best);
    thi_free(l->descent);
    thi_sites_work_close(&l->work);
}

static thi_part next_batch(loop *l)
{
    int64_t count = thi_batches_rows(&l->batches, l->t, l->row);
    return (thi_part){count, l->row, (uint64_t)(l->t * l->batches.largest)};
}

static int64_t most_steps(const loop *l)
{
    const thi_vfit *fit = l->fit;
    int64_t epoch = l->batches.per_epoch, given = fit->settings->iterations;
    if (given > 0 || !isinf(fit->passes)) {
        double left = (fit->passes - fit->pass.rows_done / (double)fit->problem.source->n) * (double)epoch;
        return (int64_t)fmax(1.0, given > 0 ? fmin((double)given, left) : left);
    }
    if (fit->problem.driver->deadline > 0.0) {
        return INT64_MAX / 2;
    }
    int64_t most = MOST_EPOCHS * epoch > LEAST_STEPS ? MOST_EPOCHS * epoch : LEAST_STEPS;
    int64_t steps = (int64_t)thi_budget_work(fit->problem.driver, (double)thi_least(STEPS, most));
    return steps > LEAST_EPOCHS * epoch ? steps : LEAST_EPOCHS * epoch;
}

/* --- one step ----------------------------------------------------------------------------------------------------- */

static double rho_of(const loop *l)
{
    return l->fit->natural ? l->caution * pow(8.0 + (double)l->t, -DECAY) : 0.0;
}

/*
 * The rate rises at first: Adam's first steps are of full length in every direction, whatever the gradient. Beside
 * natural steps it falls to nothing over the last part of the run, however long that is: so a longer one ends nearer to
 * the optimum, and none ends with the noise of its last batches.
 */
static double pace(const loop *l)
{
    double risen = ((double)l->t - HOLD) / RISE;
    double left = l->fit->natural ? (1.0 - l->progress) / COOLING : 1.0;
    return l->slowed * l->caution * fmin(1.0, fmax(risen, 1.0 / RISE)) * fmin(1.0, left);
}

/* Hyperparameters and Z are held until q has seen something. */
static bool moves_prior(const loop *l)
{
    const int64_t *first = l->fit->vector.first;
    return first[THI_PART_KERNEL] < first[THI_PARTS] && l->t >= HOLD;
}

/*
 * Hyperparameters, which are few and whose gradients are clear at first, begin with steps EAGER times as long, down to
 * the rate itself as (t/EAGER_STEPS)^-1/2; Z does not, nor anything where the user chose the rate.
 */
static void stretch_steps(const loop *l)
{
    const thi_vfit *fit = l->fit;
    double factor = EAGER / sqrt(1.0 + fmax(0.0, (double)l->t - HOLD) / EAGER_STEPS);
    bool own = fit->natural && !(fit->settings->rate > 0.0);
    for (int64_t i = fit->vector.first[THI_PART_KERNEL]; own && factor > 1.0 && i < fit->vector.first[THI_PART_Z];
         i++) {
        fit->vector.x[i] = l->before[i] + factor * (fit->vector.x[i] - l->before[i]);
    }
}

static thiele_status move(loop *l)
{
    thi_vfit *fit = l->fit;
    int64_t size = thi_vfit_size(fit);
    bool prior = moves_prior(l), active[THI_PARTS] = {!fit->natural, prior, prior, prior};
    memcpy(l->before, fit->vector.x, (size_t)size * sizeof *l->before);
    if (fit->natural) {
        thi_sites_keep(fit, l->work.from);
        thi_vfit_step(fit, rho_of(l));
    }
    for (int64_t i = 0; i < size; i++) {
        l->descent[i] = -l->scale * fit->vector.bar[i];
    }
    l->rule.factor = pace(l);
    thiele_status status = thi_rule_step(&l->rule, fit->problem.ctx, fit->vector.x, l->descent, active);
    if (status == THIELE_OK && (prior || !fit->natural)) {
        stretch_steps(l);
        thi_vfit_confine(fit, fit->vector.x);
        status = thi_vfit_take(fit, fit->vector.x);
    }
    return status;
}

static bool usable(const loop *l, thiele_status status)
{
    return status == THIELE_OK && l->fit->pass.at.bound + l->fit->pass.at.log_prior >= l->floor;
}

/* Back to before the last step. */
static thiele_status take_back(loop *l)
{
    thi_vfit *fit = l->fit;
    thi_recover(fit->problem.ctx);
    l->failures++;
    l->caution *= 0.5;
    memcpy(fit->vector.x, l->before, (size_t)thi_vfit_size(fit) * sizeof *fit->vector.x);
    thiele_status status;
    THI_TRY(thi_vfit_take(fit, fit->vector.x));
    if (fit->natural) {
        THI_TRY(thi_sites_return(fit, l->work.from));
        fit->white = fit->white || l->failures >= IN_W_AFTER;
    }
out:
    return status;
}

/* The present state becomes the best one that is known, or that one the present state. */
static void keep_best(loop *l)
{
    const thi_vfit *fit = l->fit;
    int64_t size = thi_vfit_size(fit);
    memcpy(l->best, fit->vector.x, (size_t)size * sizeof *l->best);
    if (fit->natural) {
        thi_sites_keep(fit, l->best + size);
    }
    l->known = true;
}

static thiele_status return_to_best(loop *l)
{
    thi_vfit *fit = l->fit;
    int64_t size = thi_vfit_size(fit);
    memcpy(fit->vector.x, l->best, (size_t)size * sizeof *l->best);
    thiele_status status = thi_vfit_take(fit, fit->vector.x);
    if (status == THIELE_OK && fit->natural) {
        status = thi_sites_return(fit, l->best + size);
    }
    memcpy(l->before, fit->vector.x, (size_t)size * sizeof *l->before);
    return status;
}

/*
 * Windows of steps are compared with each other. One that is surely worse than the best so far is taken back with all
 * that led to it, and further steps are shorter: a rate that was too high must not have the last word.
 */
static thiele_status judge(loop *l, double value, bool *ended, bool *returned)
{
    thi_monitor *m = &l->monitor;
    double best = m->best.mean;
    int64_t windows = m->windows;
    thi_signal signal = thi_monitor_add(m, value);
    l->slowed *= signal == THI_SIGNAL_SLOWER ? 0.5 : 1.0;
    *ended = signal == THI_SIGNAL_STOP;
    if (m->windows > windows && (windows == 0 || m->best.mean != best)) {
        keep_best(l);
    }
    *returned = signal == THI_SIGNAL_SLOWER && l->known && thi_monitor_is_worse(m);
    return *returned ? return_to_best(l) : THIELE_OK;
}

/* One batch; *ended when the monitor has seen enough. */
static thiele_status step(loop *l, bool *ended)
{
    thi_vfit *fit = l->fit;
    thi_part part = next_batch(l);
    bool prior = moves_prior(l);
    double size = fit->natural ? rho_of(l) : l->rate * pace(l);
    thiele_status status = thi_vfit_evaluate(fit, &part, (thi_wanted){fit->natural, !fit->natural, prior, prior});
    if (status != THIELE_OK && status != THIELE_ERROR_NUMERIC) {
        return status;
    }
    l->t++;
    if (status != THIELE_OK && fit->pass.at.empty) {
        thi_recover(fit->problem.ctx);
        return THIELE_OK;
    }
    if (!usable(l, status)) {
        return take_back(l);
    }
    l->failures = 0;
    l->caution = fmin(1.0, RECOVERY * l->caution);
    fit->white = fit->white || (fit->natural && thi_white_needed(fit));
    double log_p = fit->pass.at.bound + fit->pass.at.log_prior;
    bool returned;
    status = judge(l, -log_p, ended, &returned);
    thi_vfit_report(fit, -l->monitor.smoothed, size, part.count);
    if (status != THIELE_OK || returned) {
        return status;
    }
    status = move(l);
    return status == THIELE_ERROR_NUMERIC ? take_back(l) : status;
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

/* Sites stay in u from here on, unless Kzz forbids it. */
static thiele_status settle_sites(loop *l)
{
    thi_vfit *fit = l->fit;
    thi_sites_keep(fit, l->work.from);
    fit->white = false;
    thiele_status status = thi_sites_return(fit, l->work.from);
    fit->white = status == THIELE_OK && thi_white_needed(fit);
    return status;
}

/* The first batch that has rows: a bound that no later step should fall below. */
static thiele_status begin(loop *l)
{
    thi_vfit *fit = l->fit;
    thiele_status status = THIELE_ERROR_NUMERIC;
    fit->pass.at.empty = true;
    for (int64_t tried = 0; status == THIELE_ERROR_NUMERIC && fit->pass.at.empty && tried < l->batches.per_epoch;
         tried++) {
        l->t = tried;
        thi_part part = next_batch(l);
        status = thi_vfit_evaluate(fit, &part, (thi_wanted){0});
        if (status == THIELE_ERROR_NUMERIC && !fit->pass.at.empty && fit->natural) {
            /* The sites of other rows may be of no use for these. */
            thi_sites_clear(fit);
            status = thi_vfit_evaluate(fit, &part, (thi_wanted){0});
        }
    }
    l->t = 0;
    if (status != THIELE_OK) {
        return status;
    }
    thi_recover(fit->problem.ctx);
    l->floor = fit->pass.at.bound + fit->pass.at.log_prior - fabs(fit->pass.at.bound) - (double)fit->problem.source->n;
    memcpy(l->before, fit->vector.x, (size_t)thi_vfit_size(fit) * sizeof *l->before);
    return fit->natural ? settle_sites(l) : THIELE_OK;
}

/* What the last step led to has not been looked at yet; nor whether the last window was any good. */
static thiele_status settle(loop *l)
{
    if (l->known && thi_monitor_is_worse(&l->monitor)) {
        return return_to_best(l);
    }
    thi_part part = next_batch(l);
    thiele_status status = thi_vfit_evaluate(l->fit, &part, (thi_wanted){0});
    if (status != THIELE_OK && status != THIELE_ERROR_NUMERIC) {
        return status;
    }
    bool good = usable(l, status) || l->fit->pass.at.empty;
    thi_recover(l->fit->problem.ctx);
    return good ? THIELE_OK : take_back(l);
}

/* The bound from a few batches, when there is no time for all rows. */
static thiele_status estimate(loop *l)
{
    thi_vfit *fit = l->fit;
    double expected = 0.0;
    int64_t rows = 0;
    for (int b = 0; b < ESTIMATE_BATCHES; b++, l->t++) {
        thi_part part = next_batch(l);
        thiele_status status = thi_vfit_evaluate(fit, &part, (thi_wanted){0});
        if (status != THIELE_OK && !fit->pass.at.empty) {
            return status;
        }
        expected += fit->pass.at.expected / ESTIMATE_BATCHES;
        rows += part.count;
    }
    thi_recover(fit->problem.ctx);
    fit->pass.at.bound = expected - fit->pass.at.kl;
    fit->result->bound_rows = rows;
    return THIELE_OK;
}

/* Batches of one epoch, as many as there is time for. */
typedef struct last_rows {
    loop *l;
    int64_t t, end;
} last_rows;

static int64_t next_rows(void *arg, int64_t most, int64_t *row)
{
    last_rows *last = arg;
    const thi_batches *batches = &last->l->batches;
    int64_t count = 0;
    bool late = last->l->fit->pass.at.seen > 0 && thi_driver_stopped(last->l->fit->problem.driver);
    while (!late && last->t < last->end && count + batches->largest <= most) {
        count += thi_batches_rows(batches, last->t++, row + count);
    }
    return count;
}

/*
 * A natural step over one more epoch, or over what there is time for of it. The sites are an average of steps over the
 * last batches, as good as one over B (2 - rho)/rho rows if nothing else had moved: the two are weighted by their rows.
 */
static thiele_status last_step(loop *l)
{
    thi_vfit *fit = l->fit;
    int64_t epoch = l->batches.per_epoch, first = (l->t + epoch - 1) / epoch * epoch;
    last_rows last = {l, first, first + epoch};
    double rho = rho_of(l), averaged = (double)l->batches.largest * (2.0 - rho) / rho;
    thiele_status status = thi_vfit_pull_some(fit, next_rows, &last);
    if (status != THIELE_OK || fit->pass.at.seen == 0) {
        return status;
    }
    double seen = (double)fit->pass.at.seen;
    thi_sites_keep(fit, l->work.from);
    thi_vfit_step(fit, 1.0);
    thi_sites_scale(fit, (double)fit->problem.source->n / seen);
    thi_sites_mix(fit, &l->work, last.t == last.end ? 1.0 : seen / (seen + averaged));
    return THIELE_OK;
}

/* The same; what it leads to is looked at, and taken back when it is of no use. */
static thiele_status try_last_step(loop *l)
{
    thi_vfit *fit = l->fit;
    thi_sites_keep(fit, l->work.from);
    thiele_status status = last_step(l);
    if (status == THIELE_OK) {
        thi_part part = next_batch(l);
        status = thi_vfit_evaluate(fit, &part, (thi_wanted){0});
    }
    if (status == THIELE_ERROR_NUMERIC || (status == THIELE_OK && !usable(l, status))) {
        thi_recover(fit->problem.ctx);
        thi_sites_put(fit, l->work.from);
        status = THIELE_OK;
    }
    return status;
}

/* Sites at their fixed point over all rows, as long as there is time, and the bound there. */
static thiele_status all_rows(loop *l)
{
    thi_vfit *fit = l->fit;
    thiele_status status = THIELE_OK;
    if (fit->natural) {
        THI_TRY(thi_sites_converge(fit, &thi_all_rows, &l->work, 1e-6 * (double)fit->problem.source->n, LAST_STEPS));
    }
    THI_TRY(thi_vfit_evaluate(fit, &thi_all_rows, (thi_wanted){0}));
    fit->result->bound_rows = fit->problem.source->n;
out:
    return status;
}

static thiele_status finish(loop *l)
{
    thi_vfit *fit = l->fit;
    thiele_status status = settle(l);
    if (status == THIELE_OK && fit->natural && fit->conjugate) {
        fit->passes = INFINITY;
        return thi_vfit_profile(fit, fit->vector.first[THI_PART_PHI] < fit->vector.first[THI_PART_Z]);
    }
    bool few = fit->problem.source->n <= ESTIMATE_BATCHES * fit->batch;
    if (status != THIELE_OK) {
        return status;
    }
    fit->white = fit->natural;
    fit->passes = INFINITY; /* `epochs` are those of the steps */
    if (!few && fit->natural) {
        status = try_last_step(l);
    }
    if (status != THIELE_OK) {
        return status;
    }
    if (!few && thi_driver_stopped(fit->problem.driver)) {
        return estimate(l);
    }
    fit->pass.may_stop = !few;
    status = all_rows(l);
    fit->pass.may_stop = false;
    if (status == THIELE_ERROR_NUMERIC && fit->problem.driver->stopped) {
        thi_recover(fit->problem.ctx);
        status = estimate(l);
    }
    return status;
}

/*
 * Seconds that the end over all rows takes, or that it may take: it is worth more than the last steps before a
 * deadline. A pass takes at most as long as as many rows in steps did.
 */
static double end_seconds(const loop *l, double spent)
{
    double rows = (double)l->t * (double)l->batches.largest;
    double needed = l->t > 0 ? LAST_PASSES * spent * (double)l->fit->problem.source->n / rows : 0.0;
    double most = thi_budget_share(THI_SHARE_END) * (spent + thi_budget_left(l->fit->problem.driver));
    return l->fit->natural ? fmin(needed, most) : 0.0;
}

/* Where the run stands; true when it is time to end it. */
static bool look_at_clock(loop *l)
{
    double spent = thi_seconds() - l->started, left = thi_budget_left(l->fit->problem.driver) - end_seconds(l, spent);
    l->progress = fmax((double)l->t / (double)l->most, spent / (spent + fmax(left, 0.0)));
    return left <= 0.0 || thi_driver_stopped(l->fit->problem.driver);
}

/*
 * What the monitor has seen enough of is no end yet where the rate has yet to fall, nor where there is time left: what
 * is left of the run is then as long as the fall takes, or goes on to the deadline.
 */
static bool is_end(loop *l, bool *settled)
{
    bool cooled = l->progress >= 1.0 - COOLING;
    if (!l->fit->natural || !isinf(thi_budget_left(l->fit->problem.driver))) {
        return !l->fit->natural;
    }
    if (!cooled) {
        l->most = (int64_t)fmin((double)l->most, ceil((double)l->t / (1.0 - COOLING)));
        *settled = true;
    }
    return false;
}

thiele_status thi_vfit_stochastic(thi_vfit *fit, const char *rule, double rate)
{
    loop l;
    bool ended = false, late = false, settled = false;
    thiele_status status;
    fit->pass.leading = false;
    THI_TRY(loop_open(&l, fit, rule, rate));
    l.most = most_steps(&l);
    thi_driver_phase(fit->problem.driver, "fit", l.most);
    THI_TRY(begin(&l));
    l.started = thi_seconds();
    while (!ended && !late && l.t < l.most && l.failures <= FAILURES) {
        THI_TRY(step(&l, &ended));
        late = look_at_clock(&l);
        ended = ended && is_end(&l, &settled);
    }
    fit->result->fit.iterations += (int)l.t;
    fit->result->fit.stop = ended || settled ? THIELE_STOP_CONVERGED
                            : late           ? THIELE_STOP_DEADLINE
                                             : THIELE_STOP_ITERATIONS;
    THI_TRY(finish(&l));
out:
    loop_close(&l);
    return status;
}
