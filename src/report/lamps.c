/*
 * Lamps: what a reader should look at first. Each judges by numbers of the document alone. A lamp needs both a
 * deviation that chance explains with probability below SURE, and a size that matters: the first keeps small tables
 * from false alarms, the second keeps large ones from alarms about nothing. With some ten tests a report, sound models
 * have one such deviation in a thousand reports.
 */
#include <math.h>
#include <string.h>

#include "fit/diagnostics.h"
#include "likelihood/special.h"
#include "report/report.h"
#include "report/statistic.h"

static const double SURE = 1e-4;

typedef enum state { NONE, GREEN, AMBER, RED } state;
static const char *const state_name[] = {"none", "green", "amber", "red"};

enum { WORDS = 400 };
typedef struct lamp {
    state state;
    double number;
    char says[WORDS];
    const char *what; /* to do; NULL: nothing */
} lamp;

typedef struct lamp_kind {
    const char *name, *question;
    void (*judge)(const json_t *report, lamp *lamp);
} lamp_kind;

static void raise(lamp *l, state to)
{
    l->state = to > l->state ? to : l->state;
}

/* The state that a deviation of this size stands for, where it is no chance. */
static state by_size(double size, double p, double amber, double red)
{
    return !(p < SURE) || !(size >= amber) ? GREEN : size >= red ? RED : AMBER;
}

static void say(lamp *l, const char *format, ...) THI_PRINTF(2, 3);
static void say(lamp *l, const char *format, ...)
{
    size_t length = strlen(l->says);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->says + length, sizeof l->says - length, format, arguments);
    va_end(arguments);
}

/* --- calibrated -----------------------------------------------------------------------------------------------------
 */

/* Of coverages: what matters is a tenth too many or too few, what can be seen in a picture is three hundredths. */
static const double SEEN = 0.03, MATTERS = 0.10;

/* mixed: some intervals hold too many rows, others too few. */
static const char *remedy(double gap, bool mixed)
{
    return mixed ? "The law has another shape than the model's: fit with --calibrate; was all of the signal found?"
           : gap < 0.0 ? "Intervals are too narrow: fit with --calibrate; is noise fixed too low, or are there fewer "
                         "inducing inputs than the function needs?"
                       : "Intervals are too wide: fit with --calibrate; do a few rows far off decide the noise "
                         "(--likelihood student-t)?";
}

static void judge_tails(const json_t *report, lamp *l)
{
    static const double MANY = 3.0, FAR_TOO_MANY = 20.0;
    double beyond = thi_number_at(report, "calibration.tails.beyond");
    double expected = thi_number_at(report, "calibration.tails.expected");
    state own = by_size(beyond / expected, thi_number_at(report, "calibration.tails.p"), MANY, FAR_TOO_MANY);
    if (own > GREEN) {
        say(l, " %.0f row%s beyond three standard deviations, where about %.2g %s expected.", beyond,
            beyond == 1.0 ? " lies" : "s lie", expected, expected == 1.0 ? "is" : "are");
        l->what = l->what != NULL
                      ? l->what
                      : "Tails are heavier than the model's: fit with --likelihood student-t, and look at the "
                        "worst rows.";
    }
    raise(l, own);
}

static void judge_numbers(const json_t *report, lamp *l)
{
    static const struct {
        const char *path;
        double level;
    } levels[] = {{"calibration.coverage90", 0.9}, {"calibration.coverage50", 0.5}, {"calibration.coverage95", 0.95}};
    double gap = 0.0, least = 0.0, most = 0.0, p = thi_number_at(report, "calibration.p");
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++) {
        double own = thi_number_at(report, levels[k].path) - levels[k].level;
        gap = fabs(own) > fabs(gap) ? own : gap;
        least = fmin(least, own);
        most = fmax(most, own);
    }
    l->number = thi_number_at(report, "calibration.coverage90");
    say(l, "90%% intervals hold %.3g%% of the rows, those of 50%% hold %.3g%%.", 100.0 * l->number,
        100.0 * thi_number_at(report, "calibration.coverage50"));
    raise(l, by_size(fabs(gap), p, SEEN, MATTERS));
    double off = thi_number_at(report, "calibration.median") - 0.5;
    if (l->state > GREEN) {
        l->what = remedy(gap, least < -SEEN && most > SEEN);
    } else if (by_size(fabs(off), p, MATTERS, 1.0) > GREEN) {
        raise(l, AMBER);
        say(l, " More than half of the rows lie %s their predictions.", off > 0.0 ? "above" : "below");
        l->what = "Predictions are off to one side: have the rows changed since training?";
    }
    judge_tails(report, l);
}

static void judge_labels(const json_t *report, lamp *l)
{
    const json_t *labels = thi_value_at(report, "classes.labels");
    const json_t *worst = NULL;
    double most = 0.0, p = 1.0, n = (double)json_array_size(labels);
    for (size_t c = 0; c < json_array_size(labels); c++) {
        const json_t *own = json_array_get(labels, c);
        double gap = fabs(thi_number_at(own, "observed") - thi_number_at(own, "predicted"));
        if (gap > most) {
            most = gap;
            worst = own;
            double z = thi_number_at(own, "z");
            p = isnan(z) ? 0.0 : fmin(1.0, n * 2.0 * thi_normal_cdf(-fabs(z)));
        }
    }
    double gap = thi_number_at(report, "classes.reliability.gap");
    state shares = by_size(most, p, SEEN, MATTERS);
    state bins = by_size(gap, thi_number_at(report, "classes.reliability.p"), SEEN, MATTERS);
    l->number = gap;
    say(l, "Probabilities are off by %.2g on average.", gap);
    if (worst != NULL && shares > GREEN) {
        say(l, " %.60s: %.3g%% of the rows, where %.3g%% are predicted.",
            json_string_value(json_object_get(worst, "label")), 100.0 * thi_number_at(worst, "observed"),
            100.0 * thi_number_at(worst, "predicted"));
        l->what = "Labels come in other proportions than in training: fit to rows in the proportions to be predicted.";
    } else if (bins > GREEN) {
        l->what = "Probabilities are too bold or too timid: fit with --calibrate.";
    }
    raise(l, shares);
    raise(l, bins);
}

/* Rows of the training table that were held out or left out. */
static void judge_own(const json_t *report, lamp *l)
{
    const json_t *scores = json_array_get(thi_value_at(report, "model.holdout"), 0);
    const char *what = "held out";
    if (!(thi_number_at(scores, "rows") > 0.0)) {
        scores = thi_value_at(report, "inference.loo.scores");
        what = "left out one by one";
    }
    double rows = thi_number_at(scores, "rows"), inside = thi_number_at(scores, "coverage90");
    if (!(rows > 0.0) || isnan(inside)) {
        say(l, "Not known: give new rows with their targets.");
        return;
    }
    int64_t n = (int64_t)rows, in = llround(inside * rows);
    double p = 2.0 * fmin(thi_binomial_lower(n, in, 0.9), thi_binomial_upper(n, in, 0.9));
    l->number = inside;
    raise(l, GREEN);
    raise(l, by_size(fabs(inside - 0.9), p, SEEN, MATTERS));
    say(l, "90%% intervals hold %.3g%% of %.0f training rows that were %s.", 100.0 * inside, rows, what);
    l->what = l->state > GREEN ? remedy(inside - 0.9, false) : NULL;
}

static void judge_calibrated(const json_t *report, lamp *l)
{
    if (json_is_number(thi_value_at(report, "calibration.p"))) {
        raise(l, GREEN);
        judge_numbers(report, l);
    } else if (thi_value_at(report, "classes.labels") != NULL) {
        raise(l, GREEN);
        judge_labels(report, l);
    } else {
        judge_own(report, l);
    }
}

/* --- converged ------------------------------------------------------------------------------------------------------
 */

/*
 * R-hat: Gelman and Rubin (1992) ask for less than 1.1, later work for less; here it is the largest of many numbers.
 * Draws worth 100 independent ones give a mean to a tenth of a standard deviation.
 */
static void judge_chains(const json_t *chains, lamp *l)
{
    static const double NOT_MIXED = 1.1, FEW = 100.0;
    double rhat = thi_number_at(chains, "rhat"), least = thi_number_at(chains, "effective_least");
    l->number = rhat;
    say(l, "R-hat is %.4g at most, and draws are worth %.0f independent ones at least.", rhat, least);
    raise(l, !(rhat < NOT_MIXED) ? RED : rhat >= THI_RHAT_MIXED || least < FEW ? AMBER : GREEN);
    if (l->state > GREEN) {
        l->what = "Chains have not met: draw more (--draws), and longer before the first (--burn-in).";
    } else if (thi_number_at(chains, "divergences") > 0.0) {
        raise(l, AMBER);
        say(l, " %.0f steps of the sampler diverged.", thi_number_at(chains, "divergences"));
        l->what = "Steps are too long for this posterior: give a shorter --step.";
    }
}

static void judge_converged(const json_t *report, lamp *l)
{
    static const struct {
        const char *stop, *says;
        state state;
    } stops[] = {
        {"converged", "The search ended because nothing more was to be gained.", GREEN},
        {"fixed", "There was nothing left to search for: values were given, or chosen before.", GREEN},
        {"iterations", "The search ended at its limit of iterations.", AMBER},
        {"deadline", "The search ended at its deadline.", AMBER},
        {"cancelled", "The search was cancelled.", RED},
    };
    const json_t *chains = thi_value_at(report, "inference.chains");
    const char *stop = json_string_value(thi_value_at(report, "inference.stop"));
    l->number = thi_number_at(report, "inference.iterations");
    if (chains != NULL) {
        judge_chains(chains, l);
    }
    for (size_t k = 0; k < sizeof stops / sizeof *stops && stop != NULL; k++) {
        if (strcmp(stop, stops[k].stop) == 0) {
            say(l, "%s%s", *l->says != '\0' ? " " : "", stops[k].says);
            raise(l, stops[k].state);
            if (stops[k].state > GREEN) {
                l->what = "Give it more time (--deadline, --effort high), or go on from it.";
            }
        }
    }
}

/* --- enough inducing inputs -----------------------------------------------------------------------------------------
 */

/*
 * What inducing inputs leave of f, against the noise: below a tenth it widens an interval by less than a twentieth; as
 * large as the noise, it halves what a row tells. Of other likelihoods against f itself.
 */
static void judge_unexplained(const json_t *report, lamp *l)
{
    double noise = thi_number_at(report, "inference.inducing.unexplained_noise");
    double prior = thi_number_at(report, "inference.inducing.unexplained");
    bool gaussian = !isnan(noise);
    l->number = gaussian ? noise : prior;
    if (gaussian && noise < 1e6) {
        raise(l, noise >= 1.0 ? RED : noise >= 0.1 ? AMBER : GREEN);
        say(l, "%.0f inducing inputs leave a variance of %.2g times the noise unexplained.",
            thi_number_at(report, "inference.inducing.inducing"), noise);
    } else {
        raise(l, prior >= 0.5 ? RED : prior >= 0.1 ? AMBER : GREEN);
        say(l, "%.0f inducing inputs leave %.3g%% of the function's variance unexplained.",
            thi_number_at(report, "inference.inducing.inducing"), 100.0 * prior);
    }
}

/* Residuals of neighbours that are more alike than the uncertainty of f explains: a correlation of 0.1 is what pictures
 * show, at 0.3 a tenth of the variance of the noise is signal that was missed. */
static void judge_neighbours(const json_t *report, lamp *l)
{
    double excess = thi_number_at(report, "errors.neighbours.excess");
    state own = by_size(excess, thi_number_at(report, "errors.neighbours.p"), 0.1, 0.3);
    if (isnan(excess)) {
        return;
    }
    raise(l, own);
    if (own > GREEN) {
        const char *input = json_string_value(thi_value_at(report, "errors.neighbours.along"));
        say(l, "%sResiduals of neighbouring rows%s%.60s are alike: correlation %.2g, where %.2g is expected.",
            *l->says != '\0' ? " " : "", input != NULL ? " along " : "", input != NULL ? input : "",
            thi_number_at(report, "errors.neighbours.correlation"),
            thi_number_at(report, "errors.neighbours.expected"));
    } else if (*l->says == '\0') {
        say(l, "Residuals of neighbouring rows are no more alike than they should be.");
    }
}

static void judge_inducing(const json_t *report, lamp *l)
{
    if (thi_value_at(report, "inference.inducing") != NULL) {
        judge_unexplained(report, l);
    }
    judge_neighbours(report, l);
    if (*l->says == '\0') {
        say(l, "Every row counts: there are no inducing inputs that could be too few.");
    } else if (l->state > GREEN) {
        l->what =
            "There is more to be learned from these inputs: more inducing inputs (--inducing), the default method, "
            "or another kernel (--kernel auto).";
    }
}

/* --- well conditioned -----------------------------------------------------------------------------------------------
 */

/* A condition number of 1e15 leaves no digit of a double; jitter counts as noise. */
static void judge_condition(const json_t *report, lamp *l)
{
    double number = thi_number_at(report, "inference.condition.number");
    double jitter = thi_number_at(report, "inference.condition.jitter");
    double noise = thi_number_at(report, "inference.condition.jitter_noise");
    l->number = number;
    if (isnan(number)) {
        say(l, "There is no matrix to invert.");
        return;
    }
    raise(l, number >= 1e15 ? RED : number >= 1e13 ? AMBER : GREEN);
    say(l,
        number < 1e4 ? "The condition number is %.0f at least, and jitter was %s."
                     : "The condition number is %.1e at least, and jitter was %s.",
        number, jitter > 0.0 ? "added" : "not needed");
    if (jitter > 0.0) {
        raise(l, noise >= 1.0 ? RED : noise >= 0.01 ? AMBER : GREEN);
        if (!isnan(noise)) {
            say(l, " It is %.1e of the noise.", noise);
        }
    }
    if (l->state > GREEN) {
        l->what =
            "Rows or inducing inputs are nearly the same to the kernel: use fewer inducing inputs, a rougher kernel "
            "(matern52), or drop repeated columns.";
    }
}

/* --- data like the training data ------------------------------------------------------------------------------------
 */

static void judge_domain(const json_t *report, lamp *l)
{
    static const double TENTH = 0.1, QUARTER = 0.25, HALF = 0.5;
    double distance = thi_number_at(report, "domain.distance"), alone = thi_number_at(report, "domain.alone");
    double seen = thi_number_at(report, "domain.seen");
    if (thi_value_at(report, "domain") == NULL) {
        say(l, "Not known: there are no new rows.");
        return;
    }
    l->number = isnan(distance) ? alone : distance;
    raise(l, by_size(distance, thi_number_at(report, "domain.p"), TENTH, QUARTER));
    raise(l, alone >= TENTH ? AMBER : GREEN);
    if (l->state > GREEN && distance >= TENTH) {
        say(l, "At least %.3g%% of the rows lie elsewhere than those of training, by column %.60s.", 100.0 * distance,
            json_string_value(thi_value_at(report, "domain.furthest")));
        l->what = "Look at the columns that moved; fit again with rows from there.";
    } else {
        say(l, "Columns are spread as in training.");
    }
    if (alone >= 0.0005) {
        say(l, " The training rows tell nothing of %.3g%% of the rows.", 100.0 * alone);
    }
    if (alone >= TENTH && l->what == NULL) {
        l->what = "Predictions there are those of the prior: do not use them, or fit with rows from there.";
    }
    if (seen >= HALF) {
        raise(l, AMBER);
        say(l, " %.3g%% of them are rows of the training table.", 100.0 * seen);
        l->what = "What a model says of rows that it has learned from is too good: report on rows it has not seen.";
    }
}

/* --- nothing gives the target away ----------------------------------------------------------------------------------
 */

static void judge_leak(const json_t *report, lamp *l)
{
    static const double NEARLY_ALL = 0.98;
    double most = thi_number_at(report, "domain.given_away");
    if (isnan(most)) {
        say(l, "Not known: %s.",
            thi_value_at(report, "domain") == NULL ? "there are no new rows" : "there is one input");
        return;
    }
    l->number = most;
    raise(l, most >= NEARLY_ALL ? AMBER : GREEN);
    say(l, "No input explains more than %.3g%% of the target alone (%.60s).", 100.0 * fmax(most, 0.0),
        json_string_value(thi_value_at(report, "domain.given_away_by")));
    if (l->state > GREEN) {
        *l->says = '\0';
        say(l, "%.60s alone explains %.4g%% of the target.",
            json_string_value(thi_value_at(report, "domain.given_away_by")), 100.0 * most);
        l->what = "Is that column known before the target is? If it was made from it, leave it out (--ignore).";
    }
}

/* --- all of them ----------------------------------------------------------------------------------------------------
 */

static const lamp_kind kinds[] = {
    {"calibrated", "Are the probabilities right?", judge_calibrated},
    {"converged", "Did the search end?", judge_converged},
    {"inducing", "Was all of the signal found?", judge_inducing},
    {"conditioned", "Are the numbers exact?", judge_condition},
    {"domain", "Are the rows like those of training?", judge_domain},
    {"leak", "Is it free of inputs that give the target away?", judge_leak},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* "a, b and c" of the lamps of this state. */
static void add_names(char *text, size_t capacity, const lamp *lamps, state of)
{
    int left = 0;
    for (int k = 0; k < KINDS; k++) {
        left += lamps[k].state == of;
    }
    for (int k = 0, first = 1; k < KINDS; k++) {
        if (lamps[k].state == of) {
            size_t length = strlen(text);
            snprintf(text + length, capacity - length, "%s%s",
                     first         ? ""
                     : --left == 1 ? " and "
                                   : ", ",
                     kinds[k].name);
            first = 0;
        }
    }
}

static void put_verdict(thi_report *r, const lamp *lamps, bool rows)
{
    char text[WORDS] = "";
    state worst = NONE;
    for (int k = 0; k < KINDS; k++) {
        worst = lamps[k].state > worst ? lamps[k].state : worst;
    }
    if (worst == RED) {
        snprintf(text, sizeof text, "Do not trust it as it is: see ");
    } else if (worst == AMBER) {
        snprintf(text, sizeof text, "Use it with care: see ");
    } else {
        snprintf(text, sizeof text, "Nothing speaks against trusting it%s",
                 rows ? "" : ", as far as the model alone can tell");
    }
    if (worst >= AMBER) {
        add_names(text, sizeof text, lamps, worst);
    }
    strncat(text, ".", sizeof text - strlen(text) - 1);
    thi_put_text(r, r->json, "verdict", text);
    thi_put_text(r, r->json, "state", state_name[worst]);
}

void thi_report_lamps(thi_report *r)
{
    lamp lamps[KINDS] = {{0}};
    json_t *list = thi_put_list(r, r->json, "lamps");
    for (int k = 0; k < KINDS; k++) {
        lamps[k].number = NAN;
        kinds[k].judge(r->json, &lamps[k]);
        json_t *own = thi_append_object(r, list);
        thi_put_text(r, own, "name", kinds[k].name);
        thi_put_text(r, own, "question", kinds[k].question);
        thi_put_text(r, own, "state", state_name[lamps[k].state]);
        thi_put_number(r, own, "number", lamps[k].number);
        thi_put_text(r, own, "says", lamps[k].says);
        thi_put_text(r, own, "do", lamps[k].what);
    }
    put_verdict(r, lamps, r->rows != NULL);
}
