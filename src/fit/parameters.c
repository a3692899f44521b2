/* The list of hyperparameters, --set and --prior. */
#include "fit/parameters.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

double thi_hyper_number(const thi_hyper *hyper)
{
    return hyper->log ? hyper->floor + exp(hyper->value) : hyper->value;
}

double thi_hyper_data_value(const thi_hyper *hyper)
{
    return hyper->offset + hyper->unit * thi_hyper_number(hyper);
}

double thi_hyper_slope(const thi_hyper *hyper)
{
    return exp(hyper->value) / thi_hyper_number(hyper);
}

int thi_hypers_free(const thi_hypers *hypers)
{
    int count = 0;
    for (int i = 0; i < hypers->count; i++) {
        count += !hypers->hyper[i].fixed;
    }
    return count;
}

void thi_hypers_pack(const thi_hypers *hypers, double *x)
{
    for (int i = 0; i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed) {
            *x++ = hypers->hyper[i].value;
        }
    }
}

void thi_hypers_unpack(thi_hypers *hypers, const double *x)
{
    for (int i = 0; i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed) {
            hypers->hyper[i].value = *x++;
        }
    }
}

double thi_hypers_log_prior(const thi_hypers *hypers, double *gradient)
{
    double sum = 0.0;
    for (int i = 0; i < hypers->count; i++) {
        const thi_hyper *h = &hypers->hyper[i];
        if (h->prior == THI_PRIOR_NONE || h->fixed) {
            continue;
        }
        double log_value = log(h->unit * thi_hyper_number(h));
        double derivative;
        if (h->prior == THI_PRIOR_LOGNORMAL) {
            double z = (log_value - h->prior_a) / h->prior_b;
            sum -= log_value + 0.5 * z * z;
            derivative = -1.0 - z / h->prior_b;
        } else {
            sum += (h->prior_a - 1.0) * log_value - h->prior_b * exp(log_value);
            derivative = h->prior_a - 1.0 - h->prior_b * exp(log_value);
        }
        gradient[i] += derivative * thi_hyper_slope(h);
    }
    return sum;
}

void thi_hypers_apply(const thi_hypers *hypers, thiele_kernel *kernel, thi_mean mean, double *mean_parameter,
                      thi_prior *prior)
{
    for (int i = 0; i < hypers->kernel; i++) {
        kernel->parameter[i].fixed = hypers->hyper[i].fixed;
        thi_kernel_set_one(kernel, i, hypers->hyper[i].value);
    }
    for (int i = 0; i < hypers->mean; i++) {
        mean_parameter[i] = hypers->hyper[hypers->kernel + i].value;
    }
    *prior = (thi_prior){kernel, mean, mean_parameter, thi_hyper_number(&hypers->hyper[hypers->count - 1])};
}

/* --- names -----------------------------------------------------------------------------------------------------------
 */

/* "a.b[c]" without "[c]" */
static size_t bare_length(const char *name)
{
    return strcspn(name, "[");
}

/*
 * A pattern names a parameter when it is its whole name, or that without the column, with or without the part before
 * the dot: "matern52.lengthscale[age]", "lengthscale[age]", "matern52.lengthscale", "lengthscale".
 */
static bool matches(const char *name, const char *pattern, size_t length)
{
    const char *dot = strchr(name, '.');
    const char *start[2] = {name, dot != NULL ? dot + 1 : name};
    for (int i = 0; i < 2; i++) {
        bool whole = strlen(start[i]) == length && memcmp(start[i], pattern, length) == 0;
        bool bare = bare_length(start[i]) == length && memcmp(start[i], pattern, length) == 0;
        if (whole || bare) {
            return true;
        }
    }
    return false;
}

static thiele_status no_match(thiele_context *ctx, const thi_hypers *hypers, const char *pattern, size_t length)
{
    thi_text names;
    thi_text_init(&names, ctx);
    for (int i = 0; i < hypers->count && i < 12; i++) {
        thi_text_add(&names, "%s%s", i > 0 ? ", " : "", hypers->name[i]);
    }
    char *list = NULL;
    thiele_status status = thi_text_take(&names, &list);
    if (status == THIELE_OK) {
        status = thi_fail(ctx, THIELE_ERROR_ARGUMENT, "no parameter '%.*s': this model has %s%s", (int)length, pattern,
                          list, hypers->count > 12 ? ", ..." : "");
    }
    thi_free(list);
    return status;
}

/* --- --set -----------------------------------------------------------------------------------------------------------
 */

typedef struct list_reader {
    thiele_context *ctx;
    thi_hypers *hypers;
} list_reader;

static thiele_status set_value(thiele_context *ctx, thi_hyper *h, double value, bool fixed)
{
    double number = (value - h->offset) / h->unit;
    if (h->log && !(value > 0.0)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "parameter '%s' must be positive", h->name);
    }
    h->value = h->log ? log(number) : number;
    h->fixed = fixed;
    h->given = true;
    return THIELE_OK;
}

static size_t trimmed(const char *text, size_t length)
{
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        length--;
    }
    return length;
}

static thiele_status set_one(void *arg, const char *part, size_t length)
{
    list_reader *reader = arg;
    size_t name = 0;
    /* A name may hold '=' inside its brackets: "lengthscale[site=north]". */
    for (int depth = 0; name < length && (depth > 0 || (part[name] != '=' && part[name] != '~')); name++) {
        depth += (part[name] == '[') - (part[name] == ']');
    }
    double value = 0.0;
    size_t at = name + 1;
    while (at < length && isspace((unsigned char)part[at])) {
        at++;
    }
    if (name >= length || !thi_parse_number(part + at, length - at, &value) || !isfinite(value)) {
        return thi_fail(reader->ctx, THIELE_ERROR_ARGUMENT,
                        "'%.*s' is not name=value (fixed) or name~value (first guess)", (int)length, part);
    }
    size_t name_length = trimmed(part, name);
    bool found = false;
    for (int i = 0; i < reader->hypers->count; i++) {
        thi_hyper *h = &reader->hypers->hyper[i];
        if (matches(h->name, part, name_length)) {
            found = true;
            thiele_status status = set_value(reader->ctx, h, value, part[name] == '=');
            if (status != THIELE_OK) {
                return status;
            }
        }
    }
    return found ? THIELE_OK : no_match(reader->ctx, reader->hypers, part, name_length);
}

/* --- --prior ---------------------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    thi_prior_kind kind;
} prior_kinds[] = {{"lognormal", THI_PRIOR_LOGNORMAL}, {"gamma", THI_PRIOR_GAMMA}};

/* "gamma(2, 0.5)" */
static bool read_prior(const char *text, size_t length, thi_prior_kind *kind, double *a, double *b)
{
    for (size_t k = 0; k < sizeof prior_kinds / sizeof *prior_kinds; k++) {
        size_t name = strlen(prior_kinds[k].name);
        if (length < name + 2 || memcmp(text, prior_kinds[k].name, name) != 0 || text[name] != '(' ||
            text[length - 1] != ')') {
            continue;
        }
        const char *first = text + name + 1;
        const char *comma = memchr(first, ',', length - name - 2);
        if (comma == NULL) {
            return false;
        }
        const char *second = comma + 1;
        while (isspace((unsigned char)*second)) {
            second++;
        }
        *kind = prior_kinds[k].kind;
        bool read = thi_parse_number(first, trimmed(first, (size_t)(comma - first)), a) &&
                    thi_parse_number(second, trimmed(second, (size_t)(text + length - 1 - second)), b);
        return read && isfinite(*a) && *b > 0.0 && isfinite(*b) && (*kind != THI_PRIOR_GAMMA || *a > 0.0);
    }
    return false;
}

static thiele_status prior_one(void *arg, const char *part, size_t length)
{
    list_reader *reader = arg;
    size_t name = 0;
    for (int depth = 0; name < length && (depth > 0 || !isspace((unsigned char)part[name])); name++) {
        depth += (part[name] == '[') - (part[name] == ']');
    }
    size_t at = name;
    while (at < length && isspace((unsigned char)part[at])) {
        at++;
    }
    thi_prior_kind kind = THI_PRIOR_NONE;
    double a = 0.0;
    double b = 0.0;
    if (!read_prior(part + at, length - at, &kind, &a, &b)) {
        return thi_fail(
            reader->ctx, THIELE_ERROR_ARGUMENT,
            "'%.*s' is no prior: write 'name lognormal(mean of log, sd of log)' or 'name gamma(shape, rate)'",
            (int)length, part);
    }
    bool found = false;
    for (int i = 0; i < reader->hypers->count; i++) {
        thi_hyper *h = &reader->hypers->hyper[i];
        if (h->log && matches(h->name, part, name)) {
            found = true;
            h->prior = kind;
            h->prior_a = a;
            h->prior_b = b;
        }
    }
    return found ? THIELE_OK : no_match(reader->ctx, reader->hypers, part, name);
}

/* --- the list --------------------------------------------------------------------------------------------------------
 */

static thiele_status name_mean(thiele_context *ctx, const thi_encoder *encoder, int index, char **name)
{
    thi_text text;
    thi_text_init(&text, ctx);
    thi_text_add(&text, index == 0 ? "mean.constant" : "mean.slope[");
    if (index > 0) {
        thi_encoder_dim_name(encoder, index - 1, &text);
        thi_text_add(&text, "]");
    }
    return thi_text_take(&text, name);
}

static thiele_status fill_list(thi_hypers *hypers, thiele_context *ctx, const thiele_kernel *kernel,
                               const thi_encoder *encoder)
{
    double target = encoder->target_scale;
    for (int i = 0; i < hypers->count; i++) {
        thi_hyper *h = &hypers->hyper[i];
        int mean = i - hypers->kernel;
        thiele_status status;
        if (mean < 0) {
            const thi_parameter *p = &kernel->parameter[i];
            double unit = thi_kernel_unit(kernel, i, encoder->scale, target);
            double value = kernel->log_value[i] - (p->given ? log(unit) : 0.0);
            *h = (thi_hyper){.log = true, .value = value, .unit = unit, .fixed = p->fixed, .given = p->given};
            status = thi_strdup(ctx, &hypers->name[i], p->name);
        } else if (mean < hypers->mean) {
            *h = (thi_hyper){.unit = mean == 0 ? target : target / encoder->scale[mean - 1],
                             .offset = mean == 0 ? encoder->target_center : 0.0};
            status = name_mean(ctx, encoder, mean, &hypers->name[i]);
        } else {
            *h = (thi_hyper){.log = true, .value = log(0.1), .unit = target * target};
            status = thi_strdup(ctx, &hypers->name[i], "noise");
        }
        if (status != THIELE_OK) {
            return status;
        }
        h->name = hypers->name[i];
        h->ceiling = INFINITY;
    }
    return THIELE_OK;
}

thiele_status thi_hypers_make(thi_hypers *hypers, thiele_context *ctx, thiele_kernel *kernel, thi_mean mean,
                              const thi_encoder *encoder, const char *set, const char *prior)
{
    *hypers = (thi_hypers){.kernel = kernel->parameters, .mean = thi_mean_parameters(mean, encoder->dims)};
    int count = hypers->kernel + hypers->mean + 1;
    list_reader reader = {ctx, hypers};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &hypers->hyper, (size_t)count, sizeof *hypers->hyper));
    THI_TRY(thi_alloc(ctx, &hypers->name, (size_t)count, sizeof *hypers->name));
    hypers->count = count;
    THI_TRY(fill_list(hypers, ctx, kernel, encoder));
    THI_TRY(thi_split_list(set, set_one, &reader));
    THI_TRY(thi_split_list(prior, prior_one, &reader));
out:
    if (status != THIELE_OK) {
        thi_hypers_clear(hypers);
    }
    return status;
}

void thi_hypers_clear(thi_hypers *hypers)
{
    for (int i = 0; i < hypers->count; i++) {
        thi_free(hypers->name[i]);
    }
    thi_free(hypers->name);
    thi_free(hypers->hyper);
    *hypers = (thi_hypers){0};
}
