/* What is fitted, from what the user said: likelihood, columns, rows, kernels. methods.c chooses the method. */
#include "model/specify.h"

#include <math.h>
#include <string.h>

#include "model/choose.h"
#include "model/options.h"
#include "model/units.h"

/* --- lists of settings -----------------------------------------------------------------------------------------------
 */

typedef struct repeats {
    thiele_context *ctx;
    const char *list, *option;
    const char *name; /* looked for now */
    size_t length;
    int count;
} repeats;

/* Of "name=value", "name~value" or "name prior"; '=' and blanks inside brackets belong to it:
 * "lengthscale[site=north]".
 */
static size_t name_length(const char *part, size_t length)
{
    size_t at = 0;
    for (int depth = 0; at < length && (depth > 0 || strchr("=~ \t", part[at]) == NULL); at++) {
        depth += (part[at] == '[') - (part[at] == ']');
    }
    return at;
}

static thiele_status count_name(void *arg, const char *part, size_t length)
{
    repeats *r = arg;
    r->count += name_length(part, length) == r->length && memcmp(part, r->name, r->length) == 0;
    return THIELE_OK;
}

static thiele_status check_once(void *arg, const char *part, size_t length)
{
    repeats *r = arg;
    r->name = part;
    r->length = name_length(part, length);
    r->count = 0;
    thiele_status status = thi_split_list(r->list, count_name, r);
    if (status == THIELE_OK && r->count > 1) {
        status = thi_fail(r->ctx, THIELE_ERROR_ARGUMENT, "%s names '%.*s' %d times: once is enough", r->option,
                          (int)r->length, part, r->count);
    }
    return status;
}

/* Of two values for one name neither is what the user meant. */
static thiele_status check_settings_once(thiele_context *ctx, const thiele_fit_options *options)
{
    repeats set = {.ctx = ctx, .list = options->prior.set, .option = "`set`"};
    repeats prior = {.ctx = ctx, .list = options->prior.prior, .option = "`prior`"};
    thiele_status status = thi_split_list(set.list, check_once, &set);
    return status == THIELE_OK ? thi_split_list(prior.list, check_once, &prior) : status;
}

int thi_missing_of(const thiele_fit_options *options)
{
    static const char *const names[] = {
        [THI_MISSING_REFUSE] = "refuse", [THI_MISSING_MEAN] = "mean", [THI_MISSING_DROP] = "drop"};
    for (size_t how = 0; options->columns.missing_inputs != NULL && how < sizeof names / sizeof *names; how++) {
        if (strcmp(options->columns.missing_inputs, names[how]) == 0) {
            return (int)how;
        }
    }
    return options->columns.missing_inputs == NULL ? THI_MISSING_MEAN : -1;
}

double thi_effort(const char *name)
{
    static const struct {
        const char *name;
        double effort;
    } efforts[] = {{"low", 0.2}, {"normal", 1.0}, {"high", 5.0}};
    for (size_t i = 0; name != NULL && i < sizeof efforts / sizeof *efforts; i++) {
        if (strcmp(name, efforts[i].name) == 0) {
            return efforts[i].effort;
        }
    }
    return name == NULL ? 1.0 : 0.0;
}

/* --- options ---------------------------------------------------------------------------------------------------------
 */

thiele_status thi_check_fit_options(thiele_context *ctx, const thiele_table *table, const thiele_fit_options *options)
{
    if (table == NULL || options->columns.target == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a fit needs a table and the name of its target column (`target`)");
    }
    if (options->model.own != NULL && options->model.likelihood != NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "give a likelihood as text or as an object, not both");
    }
    if (!thi_is_auto(options->model.noise) && (options->model.own != NULL || options->model.likelihood != NULL)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "a noise is a likelihood: give only one of `noise` and `likelihood`");
    }
    if (!thi_is_auto(options->model.noise) && !thi_is_noise(options->model.noise)) {
        return thi_fit_option_no_word(ctx, "noise", options->model.noise);
    }
    if (thi_effort(options->stopping.effort) == 0.0) {
        return thi_fit_option_no_word(ctx, "effort", options->stopping.effort);
    }
    if (thi_missing_of(options) < 0) {
        return thi_fit_option_no_word(ctx, "missing_inputs", options->columns.missing_inputs);
    }
    return check_settings_once(ctx, options);
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

int thi_count_targets(const thiele_table *table, const char *text)
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
                             .ordered = ops->ordered,
                             .exposure = ops->log_link};
}

static int64_t rare_of(const thiele_fit_options *options)
{
    return options->columns.rare_levels == 0  ? THI_RARE_AUTO
           : options->columns.rare_levels < 0 ? 0
                                              : options->columns.rare_levels;
}

thi_column_options thi_columns_of(const thiele_fit_options *o)
{
    return (thi_column_options){.target = o->columns.target,
                                .inputs = o->columns.inputs,
                                .ignore = o->columns.ignore,
                                .categorical = o->columns.categorical,
                                .exposure = o->columns.exposure,
                                .weights = o->columns.weights,
                                .partition = o->columns.partition,
                                .classes = o->columns.classes,
                                .drop_missing = o->columns.drop_missing != 0,
                                .raw = o->columns.raw != 0,
                                .one_scale = o->columns.level_scales == 0,
                                .rare = rare_of(o),
                                .missing = thi_missing_of(o)};
}

static thiele_status learn_columns(thi_fitting *f, const thiele_table *table, thi_target_rule *rule)
{
    if (f->spec.lik != NULL && !rule->labels) {
        rule->refuses = refuses;
        rule->user = f->spec.lik;
    }
    thi_column_options columns = thi_columns_of(f->options);
    columns.partial = f->partial;
    thi_watch watch = thi_driver_watch(f->driver, thi_table_source(table));
    thiele_status status = thi_encoder_learn(&f->model->encoder, f->ctx, table, &columns, rule);
    thi_watch_end(f->ctx, watch);
    return status;
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
        THI_TRY(thiele_likelihood_parse(&f->model->lik, f->ctx, text,
                                        thi_count_targets(table, f->options->columns.target), 0));
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
    if (rule.labels && !rule.signs && encoder->target->levels != lik->classes) {
        return thi_fail(f->ctx, THIELE_ERROR_DATA,
                        "column '%s' has %d labels, but likelihood '%s' has %d classes (`classes` names them all)",
                        encoder->target->name, encoder->target->levels, rule.likelihood, lik->classes);
    }
    return THIELE_OK;
}

static thi_reading reading_of(const thi_fitting *f)
{
    return (thi_reading){.target = true,
                         .weighted = true,
                         .drop_missing = f->options->columns.drop_missing != 0,
                         .drop_inputs = thi_missing_of(f->options) == THI_MISSING_DROP,
                         .likelihood = thiele_likelihood_name(f->spec.lik),
                         .refuses = thi_model_has_classes(f->model) ? NULL : refuses,
                         .user = f->spec.lik};
}

static thiele_status read_rows(thi_fitting *f, const thiele_table *table)
{
    thi_reader reader = {0};
    thi_reading how = reading_of(f);
    thi_watch watch = thi_driver_watch(f->driver, thi_table_source(table));
    thiele_status status = thi_reader_open(&reader, f->ctx, &f->model->encoder, table, &how);
    if (status == THIELE_OK) {
        status = thi_read_all(f->ctx, &reader, &f->rows, &f->row);
    }
    thi_watch_end(f->ctx, watch);
    thi_reader_close(&reader);
    return status;
}

/* A table that would take more than this share of the memory is streamed. */
static const double STREAMED_SHARE = 0.25;

static bool is_large(const thi_fitting *f, const thiele_table *table)
{
    const thi_encoder *encoder = &f->model->encoder;
    double bytes = 8.0 * (double)table->rows * (encoder->dims + encoder->targets + 2);
    return bytes > STREAMED_SHARE * (double)thi_memory_limit(f->ctx);
}

static thiele_status open_stream(thi_fitting *f, const thiele_table *table)
{
    thi_reading how = reading_of(f);
    if (f->options->result.holdout > 0.0 || f->options->result.calibrate) {
        return thi_fail(f->ctx, THIELE_ERROR_LIMIT,
                        "%lld rows do not fit into the memory allowed and are read in portions: none can be held "
                        "out (score some of them afterwards, or allow more with `memory`)",
                        (long long)table->rows);
    }
    if (f->each) {
        return thi_fail(
            f->ctx, THIELE_ERROR_LIMIT,
            "%lld rows do not fit into the memory allowed, and method '%s' fits each target separately: use "
            "`method` variational, or allow more with `memory`",
            (long long)table->rows, f->model->method);
    }
    f->streamed = true;
    return thi_table_stream_open(&f->stream, f->ctx, &f->model->encoder, table, &how);
}

/* A few rows in a child process, so that one that crashes gives a sentence. */
static thiele_status try_own(thi_fitting *f)
{
    enum { TRIED = 16 };
    int64_t first[TRIED];
    const thi_source *source = &f->stream.source;
    thi_rows rows = f->rows;
    thiele_status status = THIELE_OK;
    if (f->spec.lik->library == NULL) {
        return THIELE_OK;
    }
    if (f->streamed) {
        for (int i = 0; i < TRIED; i++) {
            first[i] = i;
        }
        THI_TRY(thi_rows_alloc(&rows, f->ctx, TRIED, source->dims, source->outputs, source->beside));
        THI_TRY(source->fetch(source->arg, f->ctx, source->n < TRIED ? source->n : TRIED, first, &rows));
    }
    THI_TRY(thiele_likelihood_try(f->spec.lik, f->ctx, rows.n < TRIED ? rows.n : TRIED, rows.y));
out:
    if (f->streamed) {
        thi_rows_free(&rows);
    }
    return status;
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
                              "column '%s', row %s: %g: likelihood '%s' gives it zero probability for every f",
                              target->name, THI_ROW(table, f->row[i]), y[0], thiele_likelihood_name(lik));
        }
    }
    thi_free(latents);
    return status;
}

static thiele_status mentions_noise(void *found, const char *part, size_t length)
{
    static const char noise[] = "noise";
    *(bool *)found = *(bool *)found || (length >= strlen(noise) && memcmp(part, noise, strlen(noise)) == 0);
    return THIELE_OK;
}

/* Whether nothing that was asked for is about Gaussian noise. */
static bool leaves_open(const thiele_fit_options *options)
{
    bool noise = false;
    thi_split_list(options->prior.set, mentions_noise, &noise);
    thi_split_list(options->prior.prior, mentions_noise, &noise);
    return options->model.own == NULL && options->model.likelihood == NULL && thi_is_auto(options->model.noise) &&
           !noise && (options->model.method == NULL || !thi_method_is_gaussian(options->model.method));
}

bool thi_is_auto(const char *option)
{
    return option == NULL || strcmp(option, "auto") == 0;
}

/* A target that has two values, written as numbers. */
static thiele_status take_two_values(thi_fitting *f, const thiele_table *table, int column, const char **text)
{
    double value[2];
    char shown[2][THI_NUMBER_MAX];
    bool two;
    thiele_status status = thi_has_two_values(f->ctx, table, column, value, &two);
    if (status == THIELE_OK && two) {
        *text = "bernoulli";
        thi_format_number(shown[0], fmin(value[0], value[1]));
        thi_format_number(shown[1], fmax(value[0], value[1]));
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "the target '%s' has only the values %s and %s, and is fitted as two classes (likelihood bernoulli): "
                "use `likelihood` gaussian to fit it as a number",
                table->name[column], shown[0], shown[1]);
    }
    return status;
}

/* A target that looks like counts stays a number: others do too. */
static thiele_status mention_counts(thi_fitting *f, const thiele_table *table, int column)
{
    bool counts;
    thiele_status status = thi_has_counts(f->ctx, table, column, &counts);
    if (status == THIELE_OK && counts) {
        thi_log(f->ctx, THIELE_LOG_WARNING,
                "the target '%s' holds whole numbers from 0 up and is fitted as a number: for counts use `likelihood` "
                "poisson or negative-binomial",
                table->name[column]);
    }
    return status;
}

/* A target of texts. */
static thiele_status take_labels(thi_fitting *f, const thiele_table *table, int column, const char **text)
{
    int classes;
    thiele_status status = thi_count_classes(f->ctx, table, column, &classes);
    if (status == THIELE_OK && classes > 0) {
        *text = classes == 2 ? "bernoulli" : "softmax";
        thi_log(f->ctx, THIELE_LOG_INFO, "the target '%s' is text and is fitted as %d classes (likelihood %s)",
                table->name[column], classes, *text);
    }
    return status;
}

/* Where nobody said: Gaussian noise, for now, or, of a target of labels, their classes. */
static thiele_status default_likelihood(thi_fitting *f, const thiele_table *table, const char **text)
{
    const char *target = f->options->columns.target;
    int column;
    *text = thi_is_auto(f->options->model.noise) ? "gaussian" : f->options->model.noise;
    if (!leaves_open(f->options) || thi_count_targets(table, target) != 1) {
        return THIELE_OK;
    }
    f->open_noise = true;
    if (thiele_table_find_column(table, f->ctx, target, &column) != THIELE_OK) {
        thi_recover(f->ctx); /* the encoder says so */
        return THIELE_OK;
    }
    thi_watch watch = thi_driver_watch(f->driver, thi_table_source(table));
    thiele_status status = take_two_values(f, table, column, text);
    status = status == THIELE_OK ? take_labels(f, table, column, text) : status;
    if (status == THIELE_OK && strcmp(*text, "gaussian") == 0) {
        status = mention_counts(f, table, column);
    }
    thi_watch_end(f->ctx, watch);
    return status;
}

thiele_status thi_specify_columns(thi_fitting *f, const thiele_table *table)
{
    static const char plugin[] = "plugin:";
    const char *text = f->options->model.likelihood;
    thiele_status status = text == NULL ? default_likelihood(f, table, &text) : THIELE_OK;
    if (status != THIELE_OK) {
        return status;
    }
    bool loaded = strncmp(text, plugin, strlen(plugin)) == 0;
    if (f->options->model.own != NULL) {
        THI_TRY(thi_likelihood_copy(&f->model->lik, f->ctx, f->options->model.own));
    } else if (loaded) {
        THI_TRY(thiele_likelihood_load(&f->model->lik, f->ctx, text + strlen(plugin)));
    }
    f->spec.lik = f->model->lik;
    THI_TRY(f->spec.lik != NULL ? learn_own(f, table) : learn_built_in(f, table, text));
    f->spec.lik = f->model->lik;
out:
    return status;
}

thiele_status thi_specify_rows(thi_fitting *f, const thiele_table *table)
{
    bool large = (f->method->can & THI_CAN_STREAM) != 0 && is_large(f, table);
    thiele_status status;
    THI_TRY(large ? open_stream(f, table) : read_rows(f, table));
    if (f->spec.lik->spec != NULL) {
        THI_TRY(try_own(f));
        THI_TRY(check_own_rows(f, table));
    }
    THI_TRY(thi_report_far(f, table));
out:
    return status;
}

/* --- prior -----------------------------------------------------------------------------------------------------------
 */

/*
 * Standardised targets have mean zero; the classes of a softmax and the cuts of an ordinal likelihood take up any
 * constant. Whatever else (the log of a rate, of a variance, of odds) gets one; so do the weights of a network, whose
 * signs nothing would tell apart around zero. A function that might have either sign gets none: its modes on both
 * sides are then equally likely.
 */
static const char *default_mean(const thiele_likelihood *lik, bool even)
{
    bool absorbed = lik->classes > 0 && lik->ops->support == THI_SUPPORT_CLASS;
    bool zero = absorbed || (lik->ops->standardise && lik->ops->log_variance == 0 && !thi_is_network(lik));
    return zero || even ? "zero" : "constant";
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
    THI_TRY(list.status);
    THI_TRY(same ? thi_strdup(ctx, out, first) : thi_text_take(&list, out));
out:
    thi_text_clear(&list);
    thi_free(first);
    thi_free(text);
    return status;
}

/* Inducing inputs from a table that has the input columns. */
static thiele_status read_basis_file(thi_fitting *f, const char *path)
{
    thiele_table *table = NULL;
    thi_reader reader = {0};
    thi_rows rows = {0};
    thi_reading how = {.target = false};
    thiele_status status;
    THI_TRY(thiele_table_open(&table, f->ctx, path, NULL));
    THI_TRY(thi_reader_open(&reader, f->ctx, &f->model->encoder, table, &how));
    THI_TRY(thi_read_all(f->ctx, &reader, &rows, NULL));
    f->Z = rows.X;
    rows.X = NULL;
    f->settings.Z = f->Z;
    f->settings.Z_count = rows.n;
out:
    thi_rows_free(&rows);
    thi_reader_close(&reader);
    thiele_table_destroy(table);
    return status;
}

static thiele_status read_basis(thi_fitting *f)
{
    static const char *const names[] = {"kmeans", "random", "greedy"};
    const char *basis = f->options->inducing.inducing_from;
    for (size_t i = 0; basis != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(basis, names[i]) == 0) {
            f->settings.basis = basis;
            return THIELE_OK;
        }
    }
    return basis != NULL ? read_basis_file(f, basis) : THIELE_OK;
}

thiele_status thi_make_prior(thi_fitting *f, const char *kernels)
{
    thiele_context *ctx = f->ctx;
    const thiele_fit_options *options = f->options;
    const thi_encoder *encoder = &f->model->encoder;
    bool family = (f->method->takes & THI_TAKES_FAMILY) != 0;
    f->settings.even = family && thi_is_even(f->spec.lik, f->rows.n, f->rows.y);
    const char *mean = options->prior.mean != NULL ? options->prior.mean : default_mean(f->spec.lik, f->settings.even);
    thi_latents *latents = &f->spec.latents;
    thi_kernel_columns columns = {0};
    thiele_status status;
    THI_TRY(thi_kernel_columns_make(&columns, ctx, encoder));
    THI_TRY(thi_latents_make(latents, ctx, kernels, mean, &columns.view, f->spec.lik->latents,
                             f->shared_kernel || options->prior.share_kernel != 0));
    for (int g = 0; g < latents->groups; g++) {
        thi_kernel_fix_redundant(latents->kernel[g]);
    }
    /* The own bound of several latent functions, by quadrature over all of them, takes too long to learn by. */
    bool costly = f->steps != NULL && f->spec.lik->latents > 1 && f->spec.lik->ops->expectation == NULL;
    f->spec.expectation = costly ? f->steps : f->steps == NULL ? options->model.expectation : NULL;
    f->spec.steps = costly ? NULL : f->steps;
    THI_TRY(thi_hypers_make(&f->hypers, ctx, &f->spec, encoder, options->prior.set, options->prior.prior));
out:
    thi_kernel_columns_clear(&columns);
    return status;
}

/* A rival begins where it and its like were learned before. */
static thiele_status begin_prior(thi_fitting *f)
{
    thiele_status status = thi_make_candidate(f, f->kernels);
    if (status == THIELE_OK) {
        thi_named_load(f->begins, &f->hypers);
        for (int i = 0; i < f->hypers.count; i++) {
            f->hypers.hyper[i].given = true;
        }
        status = thi_hypers_apply(&f->hypers, f->ctx, &f->spec);
    }
    return status;
}

thiele_status thi_specify_prior(thi_fitting *f)
{
    thiele_status status;
    f->kernels = f->options->prior.kernel;
    if (f->begins != NULL) {
        THI_TRY(begin_prior(f));
    } else {
        THI_TRY(thi_is_auto(f->kernels) ? thi_choose_kernel(f) : thi_make_prior(f, f->kernels));
        if (thi_has_network(f)) {
            THI_TRY(thi_choose_for_network(f));
        }
        THI_TRY(thi_choose_noise(f));
    }
    THI_TRY(print_kernels(&f->spec.latents, f->ctx, &f->model->kernel));
    THI_TRY(thi_units_take(f));
    THI_TRY(read_basis(f));
out:
    return status;
}
