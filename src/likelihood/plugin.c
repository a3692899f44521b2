/*
 * Likelihoods from shared libraries, and a first try of any likelihood, both in a child process first: a library or a
 * density that crashes or hangs takes only the child with it, and the parent says what happened.
 */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "likelihood/child.h"
#include "likelihood/custom.h"

/* Loading and a few hundred evaluations are a matter of milliseconds: ten seconds are enough for anything. */
static const double SECONDS = 10.0;
/* Of an augmentation, phi is looked at for so many y. */
enum { EXAMINED = 8 };

/* --- loading ---------------------------------------------------------------------------------------------------------
 */

/* "mine.so(rate~2)" is the path "./mine.so" and the arguments "(rate~2)". */
static thiele_status split_path(thiele_context *ctx, const char *text, char **path, const char **arguments)
{
    size_t length = strlen(text);
    *arguments = text + length;
    if (length > 0 && text[length - 1] == ')' && strrchr(text, '(') != NULL) {
        *arguments = strrchr(text, '(');
    }
    if (*arguments == text) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "name a plug-in by the path of its file");
    }
    thi_text whole;
    thi_text_init(&whole, ctx);
    thi_text_add(&whole, "%s", memchr(text, '/', (size_t)(*arguments - text)) == NULL ? "./" : "");
    thi_text_add_bytes(&whole, text, (size_t)(*arguments - text));
    return thi_text_take(&whole, path);
}

/* Loads the library and asks for its likelihood, which runs code of its own twice. */
static const thiele_likelihood_spec *load(const char *path, void **library, bool *has_function)
{
    thiele_likelihood_plugin_fn plugin = NULL;
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *(void **)&plugin = *library != NULL ? dlsym(*library, THIELE_LIKELIHOOD_PLUGIN_SYMBOL) : NULL;
    *has_function = plugin != NULL;
    return plugin != NULL ? plugin() : NULL;
}

/* In a child: that what is there can be read is all that is found. */
static void probe(const void *path, void *found)
{
    void *library;
    bool has_function;
    const thiele_likelihood_spec *spec = load(path, &library, &has_function);
    bool readable = spec != NULL && thi_spec_is_known(spec) && spec->name != NULL && spec->name[0] != '\0';
    *(bool *)found = readable;
}

/* A library that crashes while it is loaded must not take the program with it. */
static thiele_status try_loading(thiele_context *ctx, const char *path)
{
    bool found;
    thi_fate fate;
    char words[160];
    thiele_status status = thi_child_run(ctx, probe, path, &found, sizeof found, SECONDS, &fate, words, sizeof words);
    if (status != THIELE_OK || fate == THI_CHILD_RETURNED) {
        return status;
    }
    return thi_fail(ctx, THIELE_ERROR_FORMAT, "plug-in '%.300s': loading it %s", path, words);
}

static thiele_status open_library(thiele_context *ctx, const char *path, void **library,
                                  const thiele_likelihood_spec **spec)
{
    if (access(path, R_OK) != 0) {
        return thi_fail(ctx, THIELE_ERROR_IO, "plug-in '%.300s': %s", path, strerror(errno));
    }
    thiele_status status = try_loading(ctx, path);
    if (status != THIELE_OK) {
        return status;
    }
    bool has_function;
    *spec = load(path, library, &has_function);
    if (*library == NULL) {
        const char *why = dlerror();
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "plug-in '%.200s' cannot be loaded: %.400s", path,
                        why != NULL ? why : "no reason given");
    }
    if (!has_function) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "plug-in '%.300s' has no function '%s': it is not a likelihood", path,
                        THIELE_LIKELIHOOD_PLUGIN_SYMBOL);
    }
    return *spec != NULL ? THIELE_OK
                         : thi_fail(ctx, THIELE_ERROR_FORMAT, "plug-in '%.300s' returned no likelihood (NULL)", path);
}

thiele_status thiele_likelihood_load(thiele_likelihood **out, thiele_context *ctx, const char *path)
{
    THI_NEED_OUT(out, ctx, ctx && path);
    char *file = NULL;
    const char *arguments;
    void *library = NULL;
    const thiele_likelihood_spec *spec = NULL;
    thiele_likelihood *lik = NULL;
    thiele_status status;
    THI_TRY(split_path(ctx, path, &file, &arguments));
    THI_TRY(open_library(ctx, file, &library, &spec));
    status = thiele_likelihood_custom(&lik, ctx, spec);
    if (status != THIELE_OK) {
        thi_fail_in(ctx, status, "plug-in '%.300s'", file);
        goto out;
    }
    lik->library = library;
    lik->path = file;
    library = NULL;
    file = NULL;
    THI_TRY(thi_likelihood_arguments(lik, ctx, arguments));
    *out = lik;
    lik = NULL;
out:
    thiele_likelihood_destroy(lik);
    if (library != NULL) {
        dlclose(library);
    }
    thi_free(file);
    return status;
}

/* --- trying out ------------------------------------------------------------------------------------------------------
 */

/* What the child tells the parent: the first thing that is wrong, if any. */
typedef enum verdict { FINE, BAD_DENSITY, BAD_BATCH, BAD_MOMENT, BAD_AUGMENTATION } verdict;
typedef struct finding {
    verdict verdict;
    int64_t row;
    double f, value;
    thi_flaw flaw;
} finding;

typedef struct trial {
    const thiele_likelihood *lik;
    int64_t n;
    const double *y;
    double *f, *mean, *variance; /* work space, made before the child is; f: for two points */
} trial;

/* Two points in one call, the row and the row after it, are what they are in two. */
static finding try_batch(const trial *t, int64_t row)
{
    const thiele_likelihood *lik = t->lik;
    const thiele_likelihood_spec *spec = lik->spec;
    const double *y = t->y + row * lik->outputs;
    double together[2], apart[2];
    for (int q = 0; q < 2 * lik->latents; q++) {
        t->f[q] = 0.5 - 0.3 * (q % 4);
    }
    lik->ops->log_density(lik, 2, y, t->f, together);
    for (int i = 0; i < 2; i++) {
        const double *own = y + i * lik->outputs, *f = t->f + i * lik->latents;
        lik->ops->log_density(lik, 1, own, f, &apart[i]);
        if (spec->log_density != NULL && together[i] == apart[i]) {
            apart[i] = isnan(own[0]) ? apart[i] : spec->log_density(own, f, lik->value, spec->user);
        }
        if (fabs(together[i] - apart[i]) > 1e-9 * (1.0 + fabs(apart[i]))) {
            return (finding){.verdict = BAD_BATCH, .row = row + i, .f = f[0], .value = together[i]};
        }
    }
    return (finding){.verdict = FINE};
}

/* All latents at one value. */
static finding try_row(const trial *t, int64_t row, double f)
{
    const thi_likelihood_ops *ops = t->lik->ops;
    const double *y = t->y + row * t->lik->outputs;
    for (int q = 0; q < t->lik->latents; q++) {
        t->f[q] = f;
    }
    double value;
    ops->log_density(t->lik, 1, y, t->f, &value);
    if (isnan(value) || value == INFINITY) {
        return (finding){.verdict = BAD_DENSITY, .row = row, .f = f, .value = value};
    }
    if (ops->conditional != NULL) {
        ops->conditional(t->lik, 1, t->f, t->mean, t->variance);
        for (int p = 0; p < t->lik->outputs; p++) {
            if (isnan(t->mean[p]) || isnan(t->variance[p]) || t->variance[p] < 0) {
                double wrong = isnan(t->mean[p]) ? t->mean[p] : t->variance[p];
                return (finding){.verdict = BAD_MOMENT, .row = row, .f = f, .value = wrong};
            }
        }
    }
    return (finding){.verdict = FINE};
}

static finding try_augmentation(const trial *t, int64_t row)
{
    finding found = {.verdict = FINE, .row = row};
    const double *y = t->y + row * t->lik->outputs;
    if (thi_spec_is_augmented(t->lik->spec) && !isnan(y[0]) &&
        thi_custom_examine(t->lik, y, row < EXAMINED, &found.flaw)) {
        found.verdict = BAD_AUGMENTATION;
    }
    return found;
}

static void try_all(const void *arg, void *found)
{
    static const double at[] = {0, 0.5, -0.5, 2, -2, 10, -10, 50, -50};
    const trial *t = arg;
    finding *to = found;
    *to = (finding){.verdict = FINE};
    for (int64_t row = 0; row < t->n && to->verdict == FINE; row++) {
        for (size_t i = 0; i < sizeof at / sizeof at[0] && to->verdict == FINE; i++) {
            *to = try_row(t, row, at[i]);
        }
        if (to->verdict == FINE && t->lik->spec != NULL) {
            *to = try_augmentation(t, row);
        }
        if (to->verdict == FINE && row + 1 < t->n && thi_spec_is_batched(t->lik->spec)) {
            *to = try_batch(t, row);
        }
    }
}

static thiele_status report(const trial *t, thiele_context *ctx, const finding *found)
{
    if (found->verdict == FINE) {
        return THIELE_OK;
    }
    if (found->verdict == BAD_AUGMENTATION) {
        return thi_custom_refuse(ctx, t->lik, &found->flaw);
    }
    const char *what = found->verdict == BAD_DENSITY ? "log_density" : "moments";
    char value[THI_NUMBER_MAX];
    thi_format_number(value, found->value);
    if (found->verdict == BAD_BATCH) {
        return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                        "likelihood '%.100s': its log_densities gave %s for y = %g (row %lld), f = %g as one of two "
                        "points, but a different number for it alone (or its log_density did)",
                        thiele_likelihood_name(t->lik), value, t->y[found->row * t->lik->outputs],
                        (long long)found->row + 1, found->f);
    }
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "likelihood '%.100s': its %s gave %s for y = %g (row %lld) and f = %g; log densities are finite or "
                    "minus infinity, moments are numbers",
                    thiele_likelihood_name(t->lik), what, isnan(found->value) ? "NaN" : value,
                    t->y[found->row * t->lik->outputs], (long long)found->row + 1, found->f);
}

thiele_status thi_likelihood_try(const thiele_likelihood *lik, thiele_context *ctx, int64_t n, const double *y,
                                 double seconds)
{
    trial t = {.lik = lik, .n = n, .y = y};
    finding found;
    thi_fate fate;
    char words[160];
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &t.f, 2 * (size_t)lik->latents, sizeof *t.f));
    THI_TRY(thi_alloc(ctx, &t.mean, (size_t)lik->outputs, sizeof *t.mean));
    THI_TRY(thi_alloc(ctx, &t.variance, (size_t)lik->outputs, sizeof *t.variance));
    THI_TRY(thi_child_run(ctx, try_all, &t, &found, sizeof found, seconds, &fate, words, sizeof words));
    status = fate == THI_CHILD_RETURNED ? report(&t, ctx, &found)
                                        : thi_fail(ctx, THIELE_ERROR_NUMERIC, "likelihood '%.100s': its functions %s",
                                                   thiele_likelihood_name(lik), words);
out:
    thi_free(t.f);
    thi_free(t.mean);
    thi_free(t.variance);
    return status;
}

thiele_status thiele_likelihood_try(const thiele_likelihood *likelihood, thiele_context *ctx, int64_t n,
                                    const double *y)
{
    THI_NEED(ctx, likelihood && ctx && (n < 1 || y));
    return thi_likelihood_try(likelihood, ctx, n, y, SECONDS);
}
