/* Which method is used: the one that was asked for, or what suits the table and the likelihood; and what is refused. */
#include "model/methods.h"

#include <math.h>
#include <string.h>

#include "fit/blocks.h"
#include "fit/budget.h"
#include "likelihood/augment.h"
#include "model/options.h"
#include "model/specify.h"

/* --- options ---------------------------------------------------------------------------------------------------------
 */

/* What a method has none of, that does not understand an option. */
static const struct {
    unsigned group;
    const char *none;
} groups[] = {
    {THI_TAKES_BASIS, "inducing inputs"},
    {THI_TAKES_FAMILY, "posterior families"},
    {THI_TAKES_BATCHES, "batches"},
    {THI_TAKES_OPTIMIZER, "choice of optimiser"},
    {THI_TAKES_EPOCHS, "epochs"},
    {THI_TAKES_RATE, "rate"},
    {THI_TAKES_EXPECTATION, "expectations to compute"},
    {THI_TAKES_BLOCKS, "blocks"},
    {THI_TAKES_SNAPSHOT, "snapshots"},
    {THI_TAKES_MEAN, "basis of the mean alone"},
    {THI_TAKES_GROWTH, "basis that grows"},
    {THI_TAKES_CHAINS, "chains"},
    {THI_TAKES_STEP, "step of a sampler"},
    {THI_TAKES_LEAPS, "leaps"},
};
enum {
    GROUPS = sizeof groups / sizeof *groups,
    /* By which auto looks for a method with inducing inputs. */
    SPARSE = THI_TAKES_BASIS | THI_TAKES_FAMILY | THI_TAKES_BATCHES | THI_TAKES_OPTIMIZER | THI_TAKES_EPOCHS
};

/* One that only a program can give is not named: a command may have given it. */
static thiele_status refuse_option(const thi_fitting *f, const char *none, const thiele_option *option,
                                   const char *list)
{
    const char *plural = strchr(list, ' ') != NULL ? "s" : "";
    return option->type == THIELE_OPTION_PROGRAM
               ? thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "method '%s' has no %s: they are for the method%s %s",
                          f->method->name, none, plural, list)
               : thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "method '%s' has no %s: `%s` is for the method%s %s",
                          f->method->name, none, option->name, plural, list);
}

static thiele_status check_groups(const thi_fitting *f)
{
    unsigned extra = thi_fit_options_asked(f->options) & ~f->method->takes;
    char *list = NULL;
    for (int i = 0; i < GROUPS; i++) {
        if ((extra & groups[i].group) != 0) {
            thiele_status status = thi_methods_listed(f->ctx, 0, groups[i].group, &list);
            if (status == THIELE_OK) {
                status = refuse_option(f, groups[i].none, thi_fit_option_asked(f->options, groups[i].group), list);
            }
            thi_free(list);
            return status;
        }
    }
    return THIELE_OK;
}

/* --- which one -------------------------------------------------------------------------------------------------------
 */

/* That auto takes blocks for: two latent functions, or so many rows of all of them. */
enum { BLOCK_LATENTS = 2, BLOCK_LATENT_ROWS = 400000 };

/* Whether the noise is Gaussian around one function, or around one for each target. */
static bool has_gaussian_noise(const thi_fitting *f)
{
    return thi_is_gaussian(f->spec.lik) || f->spec.lik->ops->separate;
}

static bool is_gaussian_only(const thi_method *method)
{
    return (method->can & THI_CAN_LIKELIHOODS) == 0;
}

bool thi_method_is_open(const thi_fitting *f)
{
    return thi_is_auto(f->options->model.method) && thi_fit_options_asked(f->options) == 0 &&
           !f->options->inducing.compact;
}

bool thi_method_is_gaussian(const char *name)
{
    const thi_method *method = thi_method_named(name);
    return method != NULL && is_gaussian_only(method);
}

static bool understands(const thi_fitting *f, const thi_method *method)
{
    return (thi_fit_options_asked(f->options) & SPARSE & ~method->takes) == 0;
}

/* Flops a second of a cautious card: an H200 does 40e12 of them in exact regression. */
static const double CARD_SPEED = 2e12;

/* Seconds that so many evaluations of all rows take, at the speed of one cautious thread or of a card. */
static double seconds_of(const thi_fitting *f, const thi_method *method, int64_t n, double evaluations)
{
    double cubes = method->objective != NULL ? method->objective->cubes * f->spec.lik->latents : 0.0;
    double flops = evaluations * cubes * pow((double)n, 3.0);
    bool on_card = method->objective == &thi_objective_exact && thi_exact_on_card(f->ctx, n);
    return on_card ? flops / CARD_SPEED : thi_budget_seconds(f->driver, flops);
}

/* Whether a deadline leaves a method on all rows at once time to learn anything. */
static bool has_time(const thi_fitting *f, const thi_method *method, int64_t n)
{
    enum { EVALUATIONS = 20 };
    return !(f->driver->deadline > 0.0) || seconds_of(f, method, n, EVALUATIONS) < f->driver->deadline;
}

/* Rows that auto takes a method for: on all rows at once, each latent function takes the time of one. */
static int64_t most_rows(const thi_fitting *f, const thi_method *method)
{
    bool dense = method->objective != NULL && method->most < INT64_MAX;
    double rows = thi_budget_rows(f->driver, (double)method->most) / cbrt((double)f->spec.lik->latents);
    return dense ? (int64_t)rows : method->most;
}

/* Whether auto takes a method for noise of this kind; the last one takes what no other does. */
static bool suits_noise(const thi_fitting *f, int i, int64_t n)
{
    const thi_method *method = thi_methods[i];
    bool gaussian = has_gaussian_noise(f) && (f->spec.lik->latents == 1 || !f->options->prior.share_kernel);
    bool blocks = (method->takes & THI_TAKES_BLOCKS) != 0;
    if (blocks && !gaussian) {
        /* Small tables are for dense methods, and each latent function more costs as much again. */
        int latents = f->spec.lik->latents;
        bool light = (double)latents * (double)n <= thi_budget_work(f->driver, BLOCK_LATENT_ROWS);
        return !is_gaussian_only(method) && n > most_rows(f, &thi_method_dense) && (latents <= BLOCK_LATENTS || light);
    }
    return blocks || is_gaussian_only(method) ? gaussian : !gaussian || i + 1 == thi_method_count;
}

static bool suits(const thi_fitting *f, int i, int64_t n)
{
    const thi_method *method = thi_methods[i];
    if (f->model->encoder.weights != NULL && (method->can & THI_CAN_WEIGHTS) == 0) {
        return false;
    }
    bool augments = method->steps == NULL || (thi_is_augmented(f->spec.lik) && f->options->model.expectation == NULL);
    if (f->options->columns.partition != NULL) {
        return (method->takes & THI_TAKES_BLOCKS) != 0 && method->most > 0;
    }
    /* Whoever asks for inducing inputs gets a model of them alone. */
    bool alone = f->options->inducing.compact || (thi_fit_options_asked(f->options) & THI_TAKES_BASIS) != 0;
    bool blocks = (method->takes & THI_TAKES_BLOCKS) != 0 && alone;
    return augments && !blocks && suits_noise(f, i, n) && n <= most_rows(f, method) && understands(f, method);
}

/* Whether a method leaves such a table to the next one of its name, which is sparse. */
static bool passes_on(const thi_fitting *f, int i, int64_t n)
{
    int64_t most = thi_methods[i]->most > 0 ? thi_methods[i]->most : INT64_MAX;
    return i + 1 < thi_method_count && !thi_method_is_first(i + 1) && (n > most || !understands(f, thi_methods[i]));
}

static double bytes_needed(const thi_fitting *f, const thi_method *method, int64_t n)
{
    return method->bytes != NULL ? method->bytes(f, n) : 0.0;
}

static double bytes_left(const thi_fitting *f)
{
    size_t limit = thi_memory_limit(f->ctx);
    size_t held = thi_memory_held(f->ctx);
    return limit > held ? (double)(limit - held) : 0.0;
}

/* A method that suits the table and was passed over all the same. */
typedef struct passed_over {
    const char *name, *why; /* NULL: none */
} passed_over;

static const thi_method *choose(const thi_fitting *f, int64_t n, passed_over *first)
{
    for (int i = 0; i < thi_method_count; i++) {
        const thi_method *method = thi_methods[i];
        if (!suits(f, i, n)) {
            continue;
        }
        const char *why = bytes_needed(f, method, n) > bytes_left(f) ? "take more memory than is allowed"
                          : !has_time(f, method, n)                  ? "need more time than the deadline leaves"
                                                                     : NULL;
        if (why == NULL) {
            return method;
        }
        *first = first->name == NULL ? (passed_over){method->name, why} : *first;
    }
    return NULL;
}

static const thi_method *find(const thi_fitting *f, const char *name, int64_t n)
{
    const thi_method *named = thi_method_named(name);
    for (int i = 0; i < thi_method_count; i++) {
        if (thi_methods[i] == named && passes_on(f, i, n)) {
            return thi_methods[i + 1];
        }
    }
    return named;
}

/* --- what is refused -------------------------------------------------------------------------------------------------
 */

/* "123 MB", "4.56 GB" */
static void show_bytes(double bytes, char *text, size_t capacity)
{
    bool large = bytes >= 1e9;
    snprintf(text, capacity, large || bytes < 1e8 ? "%.3g %s" : "%.0f %s", bytes * (large ? 1e-9 : 1e-6),
             large ? "GB" : "MB");
}

static thiele_status too_many(const thi_fitting *f, int64_t n)
{
    char needed[32];
    char left[32];
    char limit[32];
    show_bytes(bytes_needed(f, f->method, n), needed, sizeof needed);
    show_bytes(bytes_left(f), left, sizeof left);
    show_bytes((double)thi_memory_limit(f->ctx), limit, sizeof limit);
    return thi_fail(f->ctx, THIELE_ERROR_LIMIT,
                    "%lld rows are too many for method %s: it would take %s of memory, and %s of the %s allowed "
                    "(`memory`) are left; use %s, or a sample of the rows",
                    (long long)n, f->method->name, needed, left, limit,
                    is_gaussian_only(f->method)  ? "a sparse method, `method` collapsed or `method` variational"
                    : f->method->sampler != NULL ? "fewer `chains`, the sparse method, `method` variational"
                                                 : "the sparse method, `method` variational");
}

/* What auxiliary variables need. */
static thiele_status check_augmented(const thi_fitting *f)
{
    const thiele_fit_options *o = f->options;
    const char *name = f->method->name, *way = f->method->steps;
    if (way != NULL && !thi_is_augmented(f->spec.lik)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' needs a likelihood with auxiliary variables, which '%s' lacks: use %s", name,
                        thiele_likelihood_name(f->spec.lik),
                        f->method->sampler != NULL ? "`method` ess or hmc" : "`method` dense or variational");
    }
    if (way != NULL && o->model.expectation != NULL && strcmp(o->model.expectation, way) != 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' computes its own expectations: leave out `expectation`", name);
    }
    return THIELE_OK;
}

/* Several targets by a method that knows one. */
static bool fits_each(const thi_fitting *f)
{
    const thiele_likelihood *lik = f->spec.lik;
    bool together = (f->method->can & THI_CAN_TARGETS) != 0 && (f->options->prior.share_kernel || !f->method->apart);
    return lik->ops->separate && lik->outputs > 1 && !together;
}

static thiele_status check_each(const thi_fitting *f)
{
    const thiele_fit_options *o = f->options;
    const char *what = !fits_each(f) ? NULL
                       : o->prior.share_kernel
                           ? "share a kernel (that is for the methods dense, variational and decoupled)"
                       : o->result.snapshot_file != NULL ? "save snapshots before all of them are there"
                                                         : NULL;
    return what == NULL ? THIELE_OK
                        : thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                                   "method '%s' fits each target separately, and cannot %s", f->method->name, what);
}

static thiele_status check_method(const thi_fitting *f, int64_t n)
{
    const thiele_fit_options *o = f->options;
    thiele_status status;
    if (o->inducing.inducing < 0 && (f->method->takes & THI_TAKES_MEAN) == 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' needs inducing inputs: only decoupled bases may have none for "
                        "the covariance",
                        f->method->name);
    }
    if (is_gaussian_only(f->method) && !has_gaussian_noise(f)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' is for Gaussian noise; likelihood '%s' needs another: %s", f->method->name,
                        thiele_likelihood_name(f->spec.lik), thi_method_lacks(f->method, THI_CAN_LIKELIHOODS));
    }
    if (f->model->encoder.weights != NULL && (f->method->can & THI_CAN_WEIGHTS) == 0) {
        return thi_fail(f->ctx, THIELE_ERROR_UNSUPPORTED, "method '%s' knows no weights of rows: %s", f->method->name,
                        thi_method_lacks(f->method, THI_CAN_WEIGHTS));
    }
    if (f->spec.lik->latents > 1 && (f->method->can & THI_CAN_LATENTS) == 0 && !fits_each(f)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' is for one latent function, and likelihood '%s' has %d: %s", f->method->name,
                        thiele_likelihood_name(f->spec.lik), f->spec.lik->latents,
                        thi_method_lacks(f->method, THI_CAN_LATENTS));
    }
    THI_TRY(check_augmented(f));
    THI_TRY(check_groups(f));
    THI_TRY(check_each(f));
    double once = seconds_of(f, f->method, n, 1.0);
    if (f->driver->deadline > 0.0 && once > 5.0 * f->driver->deadline) {
        return thi_fail(
            f->ctx, THIELE_ERROR_LIMIT,
            "%lld rows are too many for method %s by this deadline: a single step takes some %.0f seconds; use "
            "a sparse method (`method` variational), or drop the deadline",
            (long long)n, f->method->name, once);
    }
    if (bytes_needed(f, f->method, n) > bytes_left(f)) {
        status = too_many(f, n);
    }
out:
    return status;
}

/* --- all of it -------------------------------------------------------------------------------------------------------
 */

/* Samplers of any likelihood learn as auto would: by its augmentation, unless other expectations were asked for. */
static const char *steps_of(const thi_fitting *f)
{
    bool preferred =
        f->method->sampler != NULL && f->options->model.expectation == NULL && thi_is_augmented(f->spec.lik);
    return preferred ? "augmented" : f->method->steps;
}

/* What the methods are called elsewhere, and what is nearest to those that are not here. */
static const thi_synonym synonyms[] = {
    {"gpr", "exact"},
    {"full", "exact"},
    {"exactgp", "exact"},
    {"sgpr", "collapsed"},
    {"vfe", "collapsed"},
    {"titsias", "collapsed"},
    {"svgp", "variational"},
    {"svi", "variational"},
    {"vi", "variational"},
    {"sparse", "variational"},
    {"vgp", "dense"},
    {"laplace", "dense"},
    {"ep", "dense"},
    {"nuts", "hmc"},
    {"mcmc", "hmc"},
    {"nystrom", "sor"},
    {"polyagamma", "augmented"},
    {"svdgp", "decoupled"},
    {NULL, NULL},
};

static thiele_status unknown(thi_fitting *f, const char *name)
{
    thi_near near;
    thi_near_begin(&near, name, strlen(name), synonyms);
    for (int i = 0; i < thi_method_count; i++) {
        thi_near_try(&near, thi_methods[i]->name);
    }
    bool found = near.name != NULL;
    char *list = NULL;
    thiele_status status = thi_methods_listed(f->ctx, 0, 0, &list);
    if (status == THIELE_OK) {
        status = thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "there is no method '%s'%s%s%s auto, %s", name,
                          found ? "; did you mean '" : "", found ? near.name : "",
                          found ? "'? There are" : ": there are", list);
    }
    thi_free(list);
    return status;
}

/* What more time would buy, of methods that use all they get. */
static void add_prospect(const thi_fitting *f, int64_t n, thi_text *reason)
{
    static const double HIGH = 5.0;
    thi_driver driver = *f->driver;
    thi_fitting more = *f;
    passed_over none = {0};
    driver.effort = HIGH;
    more.driver = &driver;
    if (f->driver->deadline > 0.0) {
        thi_text_add(reason, " (more time would learn from more of them)");
    } else if (f->driver->effort < HIGH) {
        const thi_method *other = choose(&more, n, &none);
        bool same = other == NULL || other == f->method;
        thi_text_add(reason, " (`effort` high would %s%s)", same ? "learn from more of them" : "take method ",
                     same ? "" : other->name);
    }
}

/* Why this one, for those who read the summary. */
static thiele_status give_reason(thi_fitting *f, int64_t n, bool asked, const passed_over *first)
{
    const thiele_fit_options *o = f->options;
    bool together = has_gaussian_noise(f) && o->prior.share_kernel && f->spec.lik->outputs > 1;
    const char *why = asked                                      ? "requested"
                      : (thi_fit_options_asked(o) & SPARSE) != 0 ? "options of sparse methods were given"
                      : together                                 ? "targets that share a kernel are fitted together"
                                                                 : f->method->why;
    thi_text reason;
    thi_text_init(&reason, f->ctx);
    if (first->name != NULL) {
        thi_text_add(&reason, "method %s would %s", first->name, first->why);
    } else {
        thi_text_add(&reason, "%s", why);
    }
    if (!asked && first->name == NULL && (f->method->takes & THI_TAKES_BLOCKS) != 0) {
        add_prospect(f, n, &reason);
    }
    return thi_text_take(&reason, &f->model->why);
}

thiele_status thi_specify_method(thi_fitting *f, const thiele_table *table)
{
    const thiele_fit_options *o = f->options;
    const char *name = o->model.method;
    passed_over first = {0};
    bool asked = !thi_is_auto(name);
    thiele_status status;
    f->method = asked ? find(f, name, table->rows) : choose(f, table->rows, &first);
    if (f->method == NULL) {
        return unknown(f, name);
    }
    THI_TRY(check_method(f, table->rows));
    f->steps = steps_of(f);
    f->each = fits_each(f);
    f->settings = (thi_variational_settings){.inducing = o->inducing.inducing > 0 ? o->inducing.inducing : 0,
                                             .fixed_Z = o->inducing.fix_inducing != 0,
                                             .optimizer = o->optimiser.optimiser,
                                             .components = 1,
                                             .batch = o->optimiser.batch,
                                             .rate = o->optimiser.rate,
                                             .epochs = (int)o->stopping.epochs,
                                             .iterations = (int)o->stopping.iterations,
                                             .tolerance = o->stopping.tolerance,
                                             .restarts = (int)o->optimiser.restarts};
    if (f->method->configure != NULL) {
        THI_TRY(f->method->configure(f));
    }
    THI_TRY(thi_strdup(f->ctx, &f->model->method, asked ? name : f->method->name));
    THI_TRY(give_reason(f, table->rows, asked, &first));
out:
    return status;
}
