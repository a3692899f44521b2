/* The list of hyperparameters, `set` and `prior`. */
#include "fit/parameters.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

double thi_hyper_number(const thi_hyper *hyper)
{
    if (hyper->fixed) {
        return hyper->number;
    }
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

void thi_hyper_limits(const thi_hyper *hyper, double base, double *low, double *high)
{
    static const double FURTHEST = 25.0, LARGEST = 1e99; /* likelihoods refuse numbers beyond 1e100 */
    bool given_above = hyper->given && base > hyper->ceiling;
    *low = hyper->log ? base - FURTHEST : -LARGEST;
    *high = hyper->log ? base + FURTHEST : LARGEST;
    if (!given_above) {
        *high = fmin(*high, hyper->ceiling);
    }
}

void thi_hypers_confine(const thi_hypers *hypers, const double *base, double *x)
{
    for (int i = 0; i < hypers->count; i++) {
        double low, high;
        if (!hypers->hyper[i].fixed) {
            thi_hyper_limits(&hypers->hyper[i], base[i], &low, &high);
            *x = fmin(fmax(*x, low), high);
            x++;
        }
    }
}

bool thi_hypers_in_bounds(const thi_hypers *hypers, const double *base)
{
    for (int i = 0; i < hypers->count; i++) {
        const thi_hyper *h = &hypers->hyper[i];
        double low;
        double high;
        thi_hyper_limits(h, base[i], &low, &high);
        if (!h->fixed && !(h->value >= low && h->value <= high)) {
            return false;
        }
    }
    return true;
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

void thi_hypers_keep(const thi_hypers *hypers, double *value)
{
    for (int i = 0; i < hypers->count; i++) {
        value[i] = hypers->hyper[i].value;
    }
}

void thi_hypers_load(thi_hypers *hypers, const double *value)
{
    for (int i = 0; i < hypers->count; i++) {
        hypers->hyper[i].value = value[i];
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

void thi_hypers_chain(const thi_hypers *hypers, double *gradient)
{
    for (int i = 0; i < hypers->count; i++) {
        if (hypers->hyper[i].floor > 0.0) {
            gradient[i] *= thi_hyper_slope(&hypers->hyper[i]);
        }
    }
}

thiele_status thi_hypers_apply(const thi_hypers *hypers, thiele_context *ctx, thi_spec *spec)
{
    thi_latents *latents = &spec->latents;
    for (int g = 0; g < hypers->groups; g++) {
        const thi_hyper *h = hypers->hyper + hypers->first[g];
        thiele_kernel *kernel = latents->kernel[g];
        for (int i = 0; i < kernel->parameters; i++, h++) {
            kernel->parameter[i].fixed = h->fixed;
            thi_kernel_set_one(kernel, i, h->value);
        }
        for (int i = 0; i < latents->mean_parameters; i++, h++) {
            latents->mean_parameter[g * latents->mean_parameters + i] = thi_hyper_number(h);
        }
    }
    const thi_hyper *phi = hypers->hyper + hypers->first[hypers->groups];
    for (int i = 0; i < spec->lik->parameters; i++) {
        thiele_status status = thi_likelihood_set_phi(spec->lik, ctx, i, thi_hyper_number(&phi[i]));
        if (status != THIELE_OK) {
            return status;
        }
    }
    return THIELE_OK;
}

/* --- names -----------------------------------------------------------------------------------------------------------
 */

/* "a.b[c]" without "[c]" */
static size_t bare_length(const char *name)
{
    return strcspn(name, "[");
}

static bool matches_from(const char *name, const char *pattern, size_t length)
{
    return (strlen(name) == length || bare_length(name) == length) && memcmp(name, pattern, length) == 0;
}

/*
 * A pattern names a parameter when it is its whole name, or that without the column, with or without the parts before
 * the dots: "f2.matern52.lengthscale[age]", "lengthscale[age]", "matern52.lengthscale", "lengthscale".
 */
static bool matches(const char *name, const char *pattern, size_t length)
{
    /* "f2." of a latent function stands before what else may be left out. */
    size_t group = name[0] == 'f' ? 1 + strspn(name + 1, "0123456789") : 0;
    if (group > 1 && name[group] == '.' && length > group + 1 && memcmp(name, pattern, group + 1) == 0) {
        return matches(name + group + 1, pattern + group + 1, length - group - 1);
    }
    const char *end = name + bare_length(name);
    for (const char *at = name; at < end; at++) {
        if ((at == name || at[-1] == '.') && matches_from(at, pattern, length)) {
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

/* --- `set` -----------------------------------------------------------------------------------------------------------
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
    h->number = number;
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

/* --- `prior` ---------------------------------------------------------------------------------------------------------
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
            "'%.*s' is not a prior: write 'name lognormal(mean of log, sd of log)' or 'name gamma(shape, rate)'",
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

/* "f2." where there are several groups of latent functions. */
static void add_group(thi_text *text, const thi_latents *latents, int group)
{
    if (latents->groups > 1) {
        thi_text_add(text, "f%d.", group + 1);
    }
}

static thiele_status name_mean(thiele_context *ctx, const thi_latents *latents, int group, const thi_encoder *encoder,
                               int index, char **name)
{
    thi_text text;
    thi_text_init(&text, ctx);
    add_group(&text, latents, group);
    thi_text_add(&text, index == 0 ? "mean.constant" : "mean.slope[");
    if (index > 0) {
        thi_encoder_dim_name(encoder, index - 1, &text);
        thi_text_add(&text, "]");
    }
    return thi_text_take(&text, name);
}

static thiele_status name_kernel(thiele_context *ctx, const thi_latents *latents, int group, int index, char **name)
{
    thi_text text;
    thi_text_init(&text, ctx);
    add_group(&text, latents, group);
    thi_text_add(&text, "%s", latents->kernel[group]->parameter[index].name);
    return thi_text_take(&text, name);
}

/* What is being filled. */
typedef struct list_maker {
    thi_hypers *hypers;
    thiele_context *ctx;
    thi_spec *spec;
    const thi_encoder *encoder;
    int next;
} list_maker;

static void append(list_maker *maker, thi_hyper hyper)
{
    hyper.name = maker->hypers->name[maker->next];
    hyper.ceiling = INFINITY;
    hyper.number = hyper.log ? exp(hyper.value) : hyper.value;
    maker->hypers->hyper[maker->next++] = hyper;
}

/* Whether targets of different units share a kernel, whose variance then is of standardised ones. */
static bool is_mixed(const thi_spec *spec)
{
    return spec->lik->ops->separate && spec->latents.groups < spec->latents.count;
}

static thiele_status list_kernel(list_maker *maker, int group, double unit)
{
    const thiele_kernel *kernel = maker->spec->latents.kernel[group];
    const double *scale = maker->encoder->scale;
    bool mixed = is_mixed(maker->spec);
    thiele_status status = THIELE_OK;
    for (int i = 0; i < kernel->parameters && status == THIELE_OK; i++) {
        const thi_parameter *p = &kernel->parameter[i];
        double factor = thi_kernel_unit(kernel, i, scale, unit);
        bool of_target = factor != thi_kernel_unit(kernel, i, scale, 2.0 * unit);
        double value = kernel->log_value[i] - (p->given ? log(factor) : 0.0);
        status = name_kernel(maker->ctx, &maker->spec->latents, group, i, &maker->hypers->name[maker->next]);
        append(maker, (thi_hyper){.log = true,
                                  .value = value,
                                  .unit = factor,
                                  .fixed = p->fixed,
                                  .given = p->given,
                                  .standardised = !thi_kernel_has_unit(kernel, i, scale) || (mixed && of_target)});
    }
    return status;
}

static thiele_status list_mean(list_maker *maker, int group, double unit, double offset)
{
    const thi_latents *latents = &maker->spec->latents;
    const thi_encoder *encoder = maker->encoder;
    thiele_status status = THIELE_OK;
    for (int i = 0; i < latents->mean_parameters && status == THIELE_OK; i++) {
        bool key = encoder->key.name != NULL && i == encoder->key.first + 1;
        status = name_mean(maker->ctx, latents, group, maker->encoder, i, &maker->hypers->name[maker->next]);
        append(maker, (thi_hyper){.unit = i == 0 ? unit : unit / encoder->scale[i - 1],
                                  .offset = i == 0 ? offset : 0.0,
                                  .fixed = key});
    }
    return status;
}

/* Targets of several scales leave a parameter with a unit in standard deviations. */
static bool same_scales(const thi_encoder *encoder)
{
    for (int p = 1; p < encoder->targets; p++) {
        if (encoder->target[p].scale != encoder->target[0].scale) {
            return false;
        }
    }
    return true;
}

static thiele_status list_phi(list_maker *maker)
{
    const thiele_likelihood *lik = maker->spec->lik;
    bool all_same = same_scales(maker->encoder);
    thiele_status status = THIELE_OK;
    for (int i = 0; i < lik->parameters && status == THIELE_OK; i++) {
        const thi_phi *phi = &lik->phi[i];
        const thi_target *target = maker->encoder->target + (phi->output > 0 ? phi->output - 1 : 0);
        bool same = all_same || phi->output > 0;
        double scale = lik->ops->standardise && same ? target->scale : 1.0;
        double center = lik->ops->standardise && same ? target->center : 0.0;
        double unit = phi->shifted ? scale : pow(scale, phi->power);
        double offset = phi->shifted ? -center : 0.0;
        double number = phi->given ? (phi->value - offset) / unit : phi->value;
        status = thi_strdup(maker->ctx, &maker->hypers->name[maker->next], phi->name);
        append(maker, (thi_hyper){.log = phi->positive,
                                  .value = phi->positive ? log(number) : number,
                                  .unit = unit,
                                  .offset = offset,
                                  .fixed = phi->fixed,
                                  .given = phi->given,
                                  .standardised = !same && phi->power != 0});
        maker->hypers->hyper[maker->next - 1].number = number;
    }
    return status;
}

static thiele_status fill_list(list_maker *maker)
{
    thi_hypers *hypers = maker->hypers;
    const thi_latents *latents = &maker->spec->latents;
    thiele_status status = THIELE_OK;
    for (int g = 0; g < latents->groups && status == THIELE_OK; g++) {
        double unit;
        double offset;
        thi_latent_unit(maker->spec->lik, maker->encoder, g, &unit, &offset);
        if (is_mixed(maker->spec)) {
            unit = 1.0;
            offset = 0.0;
        }
        hypers->first[g] = maker->next;
        status = list_kernel(maker, g, unit);
        if (status == THIELE_OK) {
            status = list_mean(maker, g, unit, offset);
        }
    }
    hypers->first[latents->groups] = maker->next;
    return status == THIELE_OK ? list_phi(maker) : status;
}

static int count_hypers(const thi_spec *spec)
{
    int count = spec->lik->parameters;
    for (int g = 0; g < spec->latents.groups; g++) {
        count += spec->latents.kernel[g]->parameters + spec->latents.mean_parameters;
    }
    return count;
}

/* Likelihood parameters that are learned from their own first guess stay between their least and their most. */
static void keep_between(thi_hypers *hypers, const thiele_likelihood *lik)
{
    for (int i = 0; i < lik->parameters; i++) {
        thi_hyper *h = &hypers->hyper[hypers->first[hypers->groups] + i];
        double least = lik->phi[i].least, most = lik->phi[i].most;
        if (least > 0.0 && !h->fixed && !h->given) {
            h->floor = least;
            h->value = log(exp(h->value) - least);
        }
        if (most > 0.0) {
            h->ceiling = log(most - h->floor);
        }
    }
}

/*
 * Values that the user gave, which kernels and likelihoods take from 1e-100 to 1e100 in the units of the model: said in
 * those of the data.
 */
static thiele_status check_given(const thi_hypers *hypers, thiele_context *ctx)
{
    static const double LEAST = 1e-100, MOST = 1e100;
    for (int i = 0; i < hypers->count; i++) {
        const thi_hyper *h = &hypers->hyper[i];
        bool inside = !h->log || (h->number >= LEAST && h->number <= MOST);
        if ((h->given || h->fixed) && !inside) {
            return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "parameter '%s' cannot be %g: its range here is %g to %g",
                            h->name, h->unit * h->number, h->unit * LEAST, h->unit * MOST);
        }
    }
    return THIELE_OK;
}

thiele_status thi_hypers_make(thi_hypers *hypers, thiele_context *ctx, thi_spec *spec, const thi_encoder *encoder,
                              const char *set, const char *prior)
{
    int count = count_hypers(spec);
    int groups = spec->latents.groups;
    *hypers = (thi_hypers){.groups = groups, .noise = -1};
    list_reader reader = {ctx, hypers};
    list_maker maker = {hypers, ctx, spec, encoder, 0};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &hypers->hyper, (size_t)count, sizeof *hypers->hyper));
    THI_TRY(thi_alloc(ctx, &hypers->name, (size_t)count, sizeof(char *)));
    THI_TRY(thi_alloc(ctx, &hypers->first, (size_t)groups + 1, sizeof *hypers->first));
    hypers->count = count;
    THI_TRY(fill_list(&maker));
    if (thi_is_gaussian(spec->lik)) {
        hypers->noise = count - 1;
    }
    THI_TRY(thi_split_list(set, set_one, &reader));
    THI_TRY(thi_split_list(prior, prior_one, &reader));
    THI_TRY(check_given(hypers, ctx));
    keep_between(hypers, spec->lik);
    THI_TRY(thi_hypers_apply(hypers, ctx, spec));
out:
    if (status != THIELE_OK) {
        thi_hypers_clear(hypers);
    }
    return status;
}

void thi_hypers_clear(thi_hypers *hypers)
{
    for (int i = 0; hypers->name != NULL && i < hypers->count; i++) {
        thi_free(hypers->name[i]);
    }
    thi_free(hypers->name);
    thi_free(hypers->hyper);
    thi_free(hypers->first);
    *hypers = (thi_hypers){0};
}
