/* What is fitted, from what the user said: likelihood, columns, method, kernels. */
#include "model/specify.h"

#include <math.h>
#include <string.h>

#include "posterior/dense.h"

/*
 * Above these many rows a dense method is not chosen by itself: an evaluation of exact regression takes minutes, and
 * one by sites some ten times as long.
 */
enum { EXACT_AUTO_MAX = 10000, DENSE_AUTO_MAX = 4000, RESTARTS_MAX = 1000 };

thiele_status thi_check_fit_options(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options)
{
    if (options == NULL || options->size != sizeof *options) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "fit options must be initialised with THIELE_FIT_OPTIONS_INIT");
    }
    if (table == NULL || options->target == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a fit needs a table and the name of its target column (--target)");
    }
    if (!(options->holdout >= 0.0 && options->holdout <= 0.9)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the held-out fraction must be between 0 and 0.9");
    }
    if (!(options->deadline >= 0.0)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "the deadline must be a number of seconds, 0 for none");
    }
    if (options->restarts < 0 || options->restarts > RESTARTS_MAX || options->iterations < -1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "restarts must be 0 to %d, iterations at least -1", RESTARTS_MAX);
    }
    if (options->own != NULL && options->likelihood != NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a likelihood is given by text or as an object, not both");
    }
    return THIELE_OK;
}

bool thi_is_gaussian(const thiele_likelihood *lik)
{
    return strcmp(lik->ops->name, "gaussian") == 0;
}

/* --- likelihood and table --------------------------------------------------------------------------------------------
 */

static const char *refuses(const void *lik, double y)
{
    return thi_likelihood_refuses(lik, y);
}

static thiele_status count_target(void *count, const char *part, size_t length)
{
    (void)part;
    *(int *)count += length > 0;
    return THIELE_OK;
}

/* How many columns the text names; a text that is itself the name of a column names one. */
static int count_targets(const thiele_table *table, const char *text)
{
    int count = 0;
    if (thi_table_column(table, text) >= 0) {
        return 1;
    }
    thi_split_list(text, count_target, &count);
    return count;
}

static thi_target_rule rule_of(const thi_likelihood_ops *ops, thi_support support, const char *name)
{
    bool labels = support == THI_SUPPORT_CLASS || support == THI_SUPPORT_BINARY;
    return (thi_target_rule){.likelihood = name,
                             .standardise = ops->standardise,
                             .labels = labels,
                             .signs = support == THI_SUPPORT_BINARY,
                             .ordered = strcmp(ops->name, "ordinal") == 0,
                             .exposure = ops->log_link};
}

static thiele_status learn_columns(thi_fitting *f, const thiele_table *table, thi_target_rule *rule)
{
    if (f->spec.lik != NULL && !rule->labels) {
        rule->refuses = refuses;
        rule->user = f->spec.lik;
    }
    return thi_encoder_learn(&f->model->encoder, f->ctx, table, f->options, rule);
}

/* A built-in likelihood over classes is made when the table has said how many there are; any other before it is read.
 */
static thiele_status learn_built_in(thi_fitting *f, const thiele_table *table, const char *text)
{
    const thi_likelihood_ops *ops;
    thiele_status status;
    THI_TRY(thi_likelihood_find(f->ctx, text, &ops));
    thi_target_rule rule = rule_of(ops, ops->support, ops->name);
    if (!rule.labels) {
        THI_TRY(thiele_likelihood_parse(&f->model->lik, f->ctx, text, count_targets(table, f->options->target), 0));
        f->spec.lik = f->model->lik;
    }
    THI_TRY(learn_columns(f, table, &rule));
    if (rule.labels) {
        THI_TRY(thiele_likelihood_parse(&f->model->lik, f->ctx, text, 1, f->model->encoder.target->levels));
    }
out:
    return status;
}

/* The user's own: its numbers of outputs and classes are what it says. */
static thiele_status learn_own(thi_fitting *f, const thiele_table *table)
{
    const thiele_likelihood *lik = f->spec.lik;
    const thi_encoder *encoder = &f->model->encoder;
    thi_target_rule rule = rule_of(lik->ops, lik->ops->support, thiele_likelihood_name(lik));
    thiele_status status = learn_columns(f, table, &rule);
    if (status != THIELE_OK) {
        return status;
    }
    if (encoder->targets != lik->outputs) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "likelihood '%s' has %d output%s, but %d target column%s given",
                        rule.likelihood, lik->outputs, lik->outputs == 1 ? "" : "s", encoder->targets,
                        encoder->targets == 1 ? " is" : "s are");
    }
    if (rule.labels && !rule.signs && encoder->target->levels > lik->classes) {
        return thi_fail(f->ctx, THIELE_ERROR_DATA, "column '%s' has %d labels, but likelihood '%s' has %d classes",
                        encoder->target->name, encoder->target->levels, rule.likelihood, lik->classes);
    }
    return THIELE_OK;
}

static thiele_status read_rows(thi_fitting *f, const thiele_table *table)
{
    const thi_encoder *encoder = &f->model->encoder;
    thi_reader reader = {0};
    thi_reading how = {.target = true,
                       .drop_missing = f->options->drop_missing != 0,
                       .refuses = thi_model_has_classes(f->model) ? NULL : refuses,
                       .user = f->spec.lik};
    thiele_status status = thi_reader_open(&reader, f->ctx, encoder, table, &how);
    if (status == THIELE_OK) {
        status = thi_read_all(f->ctx, &reader, &f->rows, &f->row);
    }
    thi_reader_close(&reader);
    return status;
}

/* A few rows in a child process, so that one that crashes gives a sentence. */
static thiele_status try_own(thi_fitting *f)
{
    enum { TRIED = 16 };
    return f->spec.lik->library == NULL
               ? THIELE_OK
               : thiele_likelihood_try(f->spec.lik, f->ctx, f->rows.n < TRIED ? f->rows.n : TRIED, f->rows.y);
}

/* A row whose density is zero wherever it was looked at is outside the range that only the likelihood knows. */
static thiele_status check_own_rows(thi_fitting *f, const thiele_table *table)
{
    static const double places[] = {0.0, 1.0, -1.0, 4.0, -4.0, 20.0, -20.0};
    enum { PLACES = sizeof places / sizeof *places };
    const thiele_likelihood *lik = f->spec.lik;
    const thi_target *target = f->model->encoder.target;
    double *latents;
    thiele_status status = thi_alloc(f->ctx, &latents, (size_t)lik->latents, sizeof *latents);
    for (int64_t i = 0; status == THIELE_OK && i < f->rows.n; i++) {
        const double *y = f->rows.y + i * lik->outputs;
        bool possible = false;
        for (int p = 0; p < PLACES && !possible; p++) {
            double density;
            for (int j = 0; j < lik->latents; j++) {
                latents[j] = places[p];
            }
            lik->ops->log_density(lik, 1, y, latents, &density);
            possible = density > -INFINITY;
        }
        if (!possible) {
            status = thi_fail(f->ctx, THIELE_ERROR_DATA,
                              "column '%s', row %lld: %g: likelihood '%s' gives it no probability, whatever f is",
                              target->name, (long long)thi_table_row_number(table, f->row[i]), y[0],
                              thiele_likelihood_name(lik));
        }
    }
    thi_free(latents);
    return status;
}

thiele_status thi_specify_data(thi_fitting *f, const thiele_table *table)
{
    static const char plugin[] = "plugin:";
    const char *text = f->options->likelihood != NULL ? f->options->likelihood : "gaussian";
    bool loaded = strncmp(text, plugin, strlen(plugin)) == 0;
    thiele_status status;
    if (f->options->own != NULL) {
        THI_TRY(thi_likelihood_copy(&f->model->lik, f->ctx, f->options->own));
    } else if (loaded) {
        THI_TRY(thiele_likelihood_load(&f->model->lik, f->ctx, text + strlen(plugin)));
    }
    f->spec.lik = f->model->lik;
    THI_TRY(f->spec.lik != NULL ? learn_own(f, table) : learn_built_in(f, table, text));
    f->spec.lik = f->model->lik;
    THI_TRY(read_rows(f, table));
    THI_TRY(try_own(f));
    if (f->spec.lik->spec != NULL) {
        THI_TRY(check_own_rows(f, table));
    }
out:
    return status;
}

/* --- method ----------------------------------------------------------------------------------------------------------
 */

/* What may be asked for, and what it takes. */
static const struct {
    const thi_method *method;
    bool gaussian; /* plain Gaussian noise and one target only */
    double (*bytes)(int64_t n);
    int64_t most; /* rows that it is chosen for by itself */
    const char *why;
    int passes; /* over an n x n matrix that an evaluation takes */
} methods[] = {
    {&thi_method_exact, true, thi_exact_bytes, EXACT_AUTO_MAX, "the table is small and the noise Gaussian", 1},
    {&thi_method_dense, false, thi_dense_bytes, DENSE_AUTO_MAX, "the table is small and the noise not Gaussian", 10},
};
enum { METHODS = sizeof methods / sizeof *methods };

static int find_method(const thi_fitting *f, const char *name)
{
    bool gaussian = thi_is_gaussian(f->spec.lik);
    for (int i = 0; i < METHODS; i++) {
        bool asked = strcmp(name, methods[i].method->name) == 0;
        if (asked || (strcmp(name, "auto") == 0 && methods[i].gaussian == gaussian)) {
            return i;
        }
    }
    return -1;
}

thiele_status thi_specify_method(thi_fitting *f)
{
    const char *name = f->options->method != NULL ? f->options->method : "auto";
    bool asked = strcmp(name, "auto") != 0;
    thiele_context *ctx = f->ctx;
    int chosen = find_method(f, name);
    int64_t n = f->rows.n;
    if (chosen < 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no method '%s' in this version: it has auto, exact and dense",
                        name);
    }
    if (methods[chosen].gaussian && !thi_is_gaussian(f->spec.lik)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "method '%s' is for Gaussian noise; likelihood '%s' needs another",
                        name, thiele_likelihood_name(f->spec.lik));
    }
    double bytes = methods[chosen].bytes(n) * (methods[chosen].gaussian ? 1 : f->spec.lik->latents);
    if (bytes > (double)(thi_memory_limit(ctx) - thi_memory_held(ctx)) || (!asked && n > methods[chosen].most)) {
        return thi_fail(
            ctx, THIELE_ERROR_LIMIT,
            "%lld rows are too many for method %s: it would take %.3g GB of memory and %.2g floating point "
            "operations for each of about 50 evaluations%s%s; fit to a sample of the rows, or use a sparse method "
            "(variational, fitc, pic) in a version that has them",
            (long long)n, methods[chosen].method->name, bytes * 1e-9,
            pow((double)n, 3.0) * methods[chosen].passes * f->spec.lik->latents,
            asked ? "" : " (--method would insist where the memory is there: --method ",
            asked         ? ""
            : chosen == 0 ? "exact)"
                          : "dense)");
    }
    f->method = methods[chosen].method;
    thiele_status status = thi_strdup(ctx, &f->model->method, f->method->name);
    return status == THIELE_OK ? thi_strdup(ctx, &f->model->why, asked ? "it was asked for" : methods[chosen].why)
                               : status;
}

/* --- prior -----------------------------------------------------------------------------------------------------------
 */

/*
 * Standardised targets have mean zero; the classes of a softmax and the cuts of an ordinal likelihood take up any
 * constant. Whatever else (the log of a rate, of a variance, of odds) gets one.
 */
static const char *default_mean(const thiele_likelihood *lik)
{
    bool absorbed = lik->classes > 0 && lik->ops->support == THI_SUPPORT_CLASS;
    bool zero = absorbed || (lik->ops->standardise && lik->ops->log_variance == 0);
    return zero ? "zero" : "constant";
}

/* The kernels' texts without values: one when they are all the same, else with "; " between them. */
static thiele_status print_kernels(const thi_latents *latents, thiele_context *ctx, char **out)
{
    thi_text list;
    thi_text_init(&list, ctx);
    bool same = true;
    char *first = NULL;
    char *text = NULL;
    thiele_status status;
    THI_TRY(thiele_kernel_print(latents->kernel[0], ctx, 0, &first));
    thi_text_add(&list, "%s", first);
    for (int g = 1; g < latents->groups; g++) {
        THI_TRY(thiele_kernel_print(latents->kernel[g], ctx, 0, &text));
        same = same && strcmp(text, first) == 0;
        thi_text_add(&list, "; %s", text);
        thi_free(text);
        text = NULL;
    }
    THI_TRY(same ? thi_strdup(ctx, out, first) : thi_text_take(&list, out));
out:
    thi_text_clear(&list);
    thi_free(first);
    thi_free(text);
    return status;
}

thiele_status thi_specify_prior(thi_fitting *f)
{
    thiele_context *ctx = f->ctx;
    const thiele_fit_options *options = f->options;
    const thi_encoder *encoder = &f->model->encoder;
    const char *kernels = options->kernel != NULL ? options->kernel : "matern52(ard)";
    const char *mean = options->mean != NULL ? options->mean : default_mean(f->spec.lik);
    thi_latents *latents = &f->spec.latents;
    thi_kernel_columns columns = {0};
    thiele_status status;
    THI_TRY(thi_kernel_columns_make(&columns, ctx, encoder));
    THI_TRY(thi_latents_make(latents, ctx, kernels, mean, &columns.view, f->spec.lik->latents, false));
    THI_TRY(print_kernels(latents, ctx, &f->model->kernel));
    for (int g = 0; g < latents->groups; g++) {
        thi_kernel_fix_redundant(latents->kernel[g]);
    }
    f->spec.expectation = options->expectation;
    THI_TRY(thi_hypers_make(&f->hypers, ctx, &f->spec, encoder, options->set, options->prior));
out:
    thi_kernel_columns_clear(&columns);
    return status;
}
