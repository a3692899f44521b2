/*
 * The step rules of rules.h: a table of kinds, each a loop over a stretch of the vector with two numbers of state an
 * element, over blocks on all threads. A step is bound by memory, not by arithmetic: a first pass looks for gradients
 * that are not finite, so that a refused step leaves no trace.
 */
#include "optim/rules.h"

#include <math.h>
#include <string.h>

/* Elements a task works on: with x, gradient and state 256 KiB, inside a core's own cache. */
enum { BLOCK = 8192 };

/* --- Schedules -------------------------------------------------------------------------------------------------- */

static double constant(const thi_schedule *s, double t)
{
    (void)t;
    return s->rate;
}

static double decay(const thi_schedule *s, double t)
{
    return s->rate * pow(1.0 + s->tau * s->rate * t, -s->kappa);
}

static double power(const thi_schedule *s, double t)
{
    return s->rate * pow(s->tau + t, -s->kappa);
}

static double root(const thi_schedule *s, double t)
{
    return s->rate / (1.0 + 0.1 * sqrt(t));
}

static const struct {
    const char *name;
    double (*at)(const thi_schedule *schedule, double t);
} schedules[] = {{"constant", constant}, {"decay", decay}, {"power", power}, {"sqrt", root}};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static bool usable(double value, bool zero_too)
{
    return isfinite(value) && (value > 0.0 || (zero_too && value == 0.0));
}

thiele_status thi_schedule_make(thi_schedule *schedule, thiele_context *ctx, const char *name, double rate, double tau,
                                double kappa)
{
    int found = 0;
    while (found < SCHEDULES && strcmp(schedules[found].name, name) != 0) {
        found++;
    }
    if (found == SCHEDULES) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "there is no schedule '%.40s': use constant, decay, power or sqrt",
                        name);
    }
    *schedule = (thi_schedule){schedules[found].at, rate, tau, kappa};
    if (!usable(rate, false)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the rate of a step rule must be positive, not %g", rate);
    }
    if (!usable(tau, schedule->at != power) || !usable(kappa, true)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "the schedule '%s' needs tau %s 0 and kappa >= 0, not tau = %g, kappa = %g", name,
                        schedule->at == power ? ">" : ">=", tau, kappa);
    }
    return THIELE_OK;
}

double thi_schedule_rate(const thi_schedule *schedule, int64_t t)
{
    return schedule->at(schedule, (double)t);
}

/* --- Rules ------------------------------------------------------------------------------------------------------ */

/* What the elements of one segment share in a step; t counts from 1 here. */
typedef struct pace {
    double rate, t;
} pace;

static void adam(int64_t n, pace p, const double *g, double *x, double *m, double *v)
{
    const double b1 = 0.9;
    const double b2 = 0.999;
    const double rate = p.rate / (1.0 - pow(b1, p.t));
    const double correction = 1.0 / (1.0 - pow(b2, p.t));
    for (int64_t i = 0; i < n; i++) {
        m[i] = b1 * m[i] + (1.0 - b1) * g[i];
        v[i] = b2 * v[i] + (1.0 - b2) * (g[i] * g[i]);
        x[i] -= rate * m[i] / (sqrt(v[i] * correction) + 1e-8);
    }
}

static void adadelta(int64_t n, pace p, const double *g, double *x, double *G, double *D)
{
    const double rho = 0.95;
    const double epsilon = 1e-6;
    for (int64_t i = 0; i < n; i++) {
        G[i] = rho * G[i] + (1.0 - rho) * (g[i] * g[i]);
        double d = sqrt((D[i] + epsilon) / (G[i] + epsilon)) * g[i];
        D[i] = rho * D[i] + (1.0 - rho) * (d * d);
        x[i] -= p.rate * d;
    }
}

static void momentum(int64_t n, pace p, const double *g, double *x, double *v, double *unused)
{
    (void)unused;
    for (int64_t i = 0; i < n; i++) {
        v[i] = 0.9 * v[i] + g[i];
        x[i] -= p.rate * v[i];
    }
}

struct thi_rule_kind {
    const char *name;
    void (*update)(int64_t n, pace p, const double *g, double *x, double *first, double *second);
};

static const thi_rule_kind kinds[] = {{"adam", adam}, {"adadelta", adadelta}, {"momentum", momentum}};
enum { KINDS = sizeof kinds / sizeof *kinds };

thiele_status thi_rule_open(thi_rule *rule, thiele_context *ctx, const char *name, const thi_schedule *schedule,
                            int segments, const int64_t *length)
{
    *rule = (thi_rule){.schedule = *schedule, .factor = 1.0, .segments = segments};
    for (int k = 0; k < KINDS; k++) {
        rule->kind = strcmp(kinds[k].name, name) == 0 ? &kinds[k] : rule->kind;
    }
    if (rule->kind == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "there is no step rule '%.40s': use adam, adadelta or momentum",
                        name);
    }
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &rule->first, (size_t)segments + 1, sizeof *rule->first));
    THI_TRY(thi_alloc(ctx, &rule->taken, (size_t)segments, sizeof *rule->taken));
    for (int s = 0; s < segments; s++) {
        rule->first[s + 1] = rule->first[s] + length[s];
    }
    THI_TRY(thi_alloc(ctx, &rule->state, 2 * (size_t)rule->first[segments], sizeof *rule->state));
out:
    if (status != THIELE_OK) {
        thi_rule_close(rule);
    }
    return status;
}

void thi_rule_close(thi_rule *rule)
{
    thi_free(rule->first);
    thi_free(rule->taken);
    thi_free(rule->state);
    *rule = (thi_rule){0};
}

/* --- One step by blocks of the vector --------------------------------------------------------------------------- */

typedef struct task {
    const thi_rule *rule;
    double *x;
    const double *g;
    const bool *active;
} task;

/* True when one of n numbers is not finite: 0 x is 0 else. Eight sums, so that the loop becomes vector instructions. */
static bool any_not_finite(int64_t n, const double *g)
{
    double sum[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; k++) {
            sum[k] += 0.0 * g[i + k];
        }
    }
    for (; i < n; i++) {
        sum[0] += 0.0 * g[i];
    }
    for (int k = 1; k < 8; k++) {
        sum[0] += sum[k];
    }
    return sum[0] != 0.0;
}

static bool check(const task *t, int segment, int64_t from, int64_t count)
{
    (void)segment;
    return !any_not_finite(count, t->g + from);
}

static bool update(const task *t, int segment, int64_t from, int64_t count)
{
    const thi_rule *rule = t->rule;
    int64_t taken = rule->taken[segment];
    double *state = rule->state;
    pace p = {rule->factor * thi_schedule_rate(&rule->schedule, taken), (double)taken + 1.0};
    rule->kind->update(count, p, t->g + from, t->x + from, state + from, state + rule->first[rule->segments] + from);
    return true;
}

/* Does something to the active stretches of one block; NUMERIC as soon as it says false. */
static thiele_status walk(const task *t, int64_t block, bool (*visit)(const task *, int, int64_t, int64_t))
{
    int64_t begin = block * BLOCK;
    int64_t end = begin + BLOCK;
    for (int s = 0; s < t->rule->segments && t->rule->first[s] < end; s++) {
        int64_t from = t->rule->first[s] > begin ? t->rule->first[s] : begin;
        int64_t to = t->rule->first[s + 1] < end ? t->rule->first[s + 1] : end;
        if (from < to && (t->active == NULL || t->active[s]) && !visit(t, s, from, to - from)) {
            return THIELE_ERROR_NUMERIC;
        }
    }
    return THIELE_OK;
}

static thiele_status check_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    return walk(arg, block, check);
}

static thiele_status update_block(void *arg, int64_t block, int thread)
{
    (void)thread;
    return walk(arg, block, update);
}

thiele_status thi_rule_step(thi_rule *rule, thiele_context *ctx, double *x, const double *gradient, const bool *active)
{
    task t = {rule, x, gradient, active};
    int64_t blocks = (rule->first[rule->segments] + BLOCK - 1) / BLOCK;
    double numbers = 0.0;
    for (int s = 0; s < rule->segments; s++) {
        numbers += active == NULL || active[s] ? (double)(rule->first[s + 1] - rule->first[s]) : 0.0;
    }
    /* In units of thi_parallel_work a number costs about 8 to read and 64 to update: measured in time. */
    thiele_status status = thi_parallel_work(ctx, blocks, 8.0 * numbers, check_block, &t);
    if (status != THIELE_OK) {
        return thi_fail(ctx, status, "the gradient is not finite: the step was not taken");
    }
    status = thi_parallel_work(ctx, blocks, 64.0 * numbers, update_block, &t);
    for (int s = 0; s < rule->segments; s++) {
        rule->taken[s] += active == NULL || active[s];
    }
    return status;
}
