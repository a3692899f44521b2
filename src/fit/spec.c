/* Rows, latent functions and units of a fit. */
#include "fit/spec.h"

#include <math.h>
#include <string.h>

bool thi_is_gaussian(const thiele_likelihood *lik)
{
    return strcmp(lik->ops->name, "gaussian") == 0;
}

/* --- rows ------------------------------------------------------------------------------------------------------------
 */

thi_aside thi_rows_aside(const thi_rows *rows)
{
    return (thi_aside){.offset = rows->offset != NULL, .weight = rows->weight != NULL};
}

thiele_status thi_rows_alloc(thi_rows *rows, thiele_context *ctx, int64_t n, int dims, int outputs, thi_aside beside)
{
    *rows = (thi_rows){.n = n, .dims = dims, .outputs = outputs};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &rows->X, (size_t)n * (size_t)dims, sizeof *rows->X));
    THI_TRY(thi_alloc(ctx, &rows->y, (size_t)n * (size_t)outputs, sizeof *rows->y));
    if (beside.offset) {
        THI_TRY(thi_alloc(ctx, &rows->offset, (size_t)n, sizeof *rows->offset));
    }
    if (beside.weight) {
        THI_TRY(thi_alloc(ctx, &rows->weight, (size_t)n, sizeof *rows->weight));
    }
out:
    if (status != THIELE_OK) {
        thi_rows_free(rows);
    }
    return status;
}

void thi_rows_free(thi_rows *rows)
{
    thi_free(rows->X);
    thi_free(rows->y);
    thi_free(rows->offset);
    thi_free(rows->weight);
    *rows = (thi_rows){0};
}

void thi_rows_copy(thi_rows *rows, int64_t to, const thi_rows *others, int64_t from)
{
    int64_t D = rows->dims, P = rows->outputs;
    memcpy(rows->X + to * D, others->X + from * D, (size_t)D * sizeof *rows->X);
    memcpy(rows->y + to * P, others->y + from * P, (size_t)P * sizeof *rows->y);
    if (rows->offset != NULL && others->offset != NULL) {
        rows->offset[to] = others->offset[from];
    }
    if (rows->weight != NULL && others->weight != NULL) {
        rows->weight[to] = others->weight[from];
    }
}

double thi_rows_count(const thi_rows *rows)
{
    double sum = 0.0;
    for (int64_t i = 0; i < rows->n && rows->weight != NULL; i++) {
        sum += rows->weight[i];
    }
    return rows->weight != NULL ? sum : (double)rows->n;
}

thiele_status thi_rows_take(thi_rows *out, thiele_context *ctx, const thi_rows *rows, int64_t count,
                            const int64_t *order)
{
    thiele_status status = thi_rows_alloc(out, ctx, count, rows->dims, rows->outputs, thi_rows_aside(rows));
    for (int64_t i = 0; status == THIELE_OK && i < count; i++) {
        thi_rows_copy(out, i, rows, order[i]);
    }
    return status;
}

thiele_status thi_rows_sample(thi_rows *out, thiele_context *ctx, const thi_rows *rows, int64_t count)
{
    int64_t *order;
    *out = (thi_rows){0};
    thiele_status status = thi_alloc(ctx, &order, (size_t)rows->n, sizeof *order);
    if (status == THIELE_OK) {
        thi_random_permutation((thi_stream){ctx->seed, THI_RANDOM_SUBSET, 0}, rows->n, order);
        status = thi_rows_take(out, ctx, rows, count < rows->n ? count : rows->n, order);
    }
    thi_free(order);
    return status;
}

/* --- latent functions ------------------------------------------------------------------------------------------------
 */

typedef struct kernel_list {
    thiele_context *ctx;
    thi_latents *latents;
    const thi_columns *columns;
    int parts;
} kernel_list;

static thiele_status parse_kernel(kernel_list *list, const char *text, size_t length)
{
    thi_latents *latents = list->latents;
    char *part = NULL;
    thiele_status status = THIELE_OK;
    if (list->parts < latents->groups) {
        status = thi_strndup(list->ctx, &part, text, length);
        if (status == THIELE_OK) {
            status = thi_kernel_parse(&latents->kernel[list->parts], list->ctx, part, list->columns);
        }
        thi_free(part);
    }
    list->parts++;
    return status;
}

/* One kernel for all, or one for each with ';' between them. */
static thiele_status parse_kernels(kernel_list *list, const char *text)
{
    thi_latents *latents = list->latents;
    for (const char *at = text; at != NULL;) {
        const char *end = strchr(at, ';');
        size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        thiele_status status = parse_kernel(list, at, length);
        if (status != THIELE_OK) {
            return status;
        }
        at = end != NULL ? end + 1 : NULL;
    }
    if (list->parts != 1 && list->parts != latents->groups) {
        return thi_fail(list->ctx, THIELE_ERROR_ARGUMENT,
                        "%d kernels were given for %d latent function%s: give one for all, or one for each, "
                        "separated by ';'",
                        list->parts, latents->groups, latents->groups == 1 ? "" : "s");
    }
    thiele_status status = THIELE_OK;
    for (int g = 1; list->parts == 1 && g < latents->groups && status == THIELE_OK; g++) {
        status = thi_kernel_copy(&latents->kernel[g], list->ctx, latents->kernel[0]);
    }
    return status;
}

static thiele_status alloc_latents(thi_latents *latents, thiele_context *ctx, int dims)
{
    size_t groups = (size_t)latents->groups;
    latents->mean_parameters = thi_mean_parameters(latents->mean, dims);
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &latents->group, (size_t)latents->count, sizeof *latents->group));
    THI_TRY(thi_alloc(ctx, &latents->kernel, groups, sizeof(thiele_kernel *)));
    THI_TRY(thi_alloc(ctx, &latents->mean_parameter, groups * (size_t)latents->mean_parameters,
                      sizeof *latents->mean_parameter));
    THI_TRY(thi_alloc(ctx, &latents->prior, groups, sizeof *latents->prior));
out:
    return status;
}

thiele_status thi_latents_make(thi_latents *latents, thiele_context *ctx, const char *kernels, const char *mean,
                               const thi_columns *columns, int count, bool shared)
{
    *latents = (thi_latents){.count = count, .groups = shared ? 1 : count};
    kernel_list list = {ctx, latents, columns, 0};
    thiele_status status;
    THI_TRY(thi_mean_find(ctx, mean, &latents->mean));
    THI_TRY(alloc_latents(latents, ctx, columns->dims));
    THI_TRY(parse_kernels(&list, kernels));
    for (int j = 0; j < count; j++) {
        latents->group[j] = shared ? 0 : j;
    }
    for (int g = 0; g < latents->groups; g++) {
        latents->prior[g] =
            (thi_prior){latents->kernel[g], latents->mean, latents->mean_parameter + g * latents->mean_parameters};
    }
out:
    if (status != THIELE_OK) {
        thi_latents_clear(latents);
    }
    return status;
}

void thi_latents_clear(thi_latents *latents)
{
    for (int g = 0; latents->kernel != NULL && g < latents->groups; g++) {
        thiele_kernel_destroy(latents->kernel[g]);
    }
    thi_free(latents->kernel);
    thi_free(latents->group);
    thi_free(latents->mean_parameter);
    thi_free(latents->prior);
    *latents = (thi_latents){0};
}

thi_latents thi_latents_view(const thi_latents *latents, int latent)
{
    int g = latents->group[latent];
    return (thi_latents){.count = 1,
                         .groups = 1,
                         .group = &latents->group[0], /* 0 */
                         .mean = latents->mean,
                         .mean_parameters = latents->mean_parameters,
                         .kernel = &latents->kernel[g],
                         .mean_parameter = latents->mean_parameter + g * latents->mean_parameters,
                         .prior = &latents->prior[g]};
}

static bool is_seen(const thiele_likelihood *lik, const double *y)
{
    for (int p = 0; p < lik->outputs; p++) {
        if (!isnan(y[p])) {
            return true;
        }
    }
    return false;
}

bool thi_signs_open(const thiele_likelihood *lik, int64_t n, const double *y, bool *open)
{
    enum { ENOUGH = 8 };
    int seen = 0, left = 0;
    if (lik->ops->even == NULL || lik->latents > THI_SIGNS) {
        return false;
    }
    for (int64_t i = 0; i < n && seen < ENOUGH; i++) {
        const double *row = y + i * lik->outputs;
        double own[THI_SIGNS];
        if (!is_seen(lik, row)) {
            continue;
        }
        if (!lik->ops->even(lik, row, own)) {
            return false;
        }
        left = 0;
        for (int q = 0; q < lik->latents; q++) {
            open[q] = own[q] > 0.0 && (seen == 0 || open[q]);
            left += open[q];
        }
        seen++;
    }
    return left > 0;
}

bool thi_is_even(const thiele_likelihood *lik, int64_t n, const double *y)
{
    bool open[THI_SIGNS];
    return lik->latents == 1 && thi_signs_open(lik, n, y, open);
}

/*
 * The mode of log p(y | f) + log N(f; prior, diag v) in the latents that are open, from f = prior, by coordinates: each
 * goes to the top of the parabola through three values, which is that of the density where latents are multiplied.
 */
static void climb_from_prior(const thiele_likelihood *lik, const double *y, const double *prior, const double *v,
                             const bool *open, double *f)
{
    enum { ROUNDS = 6 };
    for (int k = 0; k < ROUNDS * lik->latents; k++) {
        int q = k % lik->latents;
        double here = f[q], step = 0.1 * sqrt(v[q]), l[3];
        if (!open[q] || !(v[q] > 0.0)) {
            continue;
        }
        for (int side = 0; side < 3; side++) {
            f[q] = here + (side - 1) * step;
            lik->ops->log_density(lik, 1, y, f, &l[side]);
        }
        double g = (l[2] - l[0]) / (2.0 * step), h = (l[2] - 2.0 * l[1] + l[0]) / (step * step);
        f[q] = here + (g - (here - prior[q]) / v[q]) / (1.0 / v[q] + fmax(-h, 0.0));
    }
}

/* f of a user's density with signs that are open, where there are means to begin at; false: it is not of that kind. */
static bool guess_near(const thiele_likelihood *lik, const double *y, const double *prior, const double *v, double *f)
{
    bool open[THI_SIGNS], means = false;
    for (int q = 0; q < lik->latents; q++) {
        means = means || prior[q] != 0.0;
    }
    if (lik->spec == NULL || lik->latents == 1 || !means || !thi_signs_open(lik, 1, y, open)) {
        return false;
    }
    climb_from_prior(lik, y, prior, v, open, f);
    return true;
}

void thi_first_guess(const thiele_likelihood *lik, const double *y, const double *prior, double *f, double *v)
{
    static const double SHARE = 0.1, MOST = 0.25, MOST_OF_PRODUCTS = 0.01;
    int varying = lik->ops->log_variance;
    memcpy(f, prior, (size_t)lik->latents * sizeof *f);
    bool products = guess_near(lik, y, prior, v, f);
    if (!products && lik->ops->guess != NULL) {
        lik->ops->guess(lik, y, f);
    }
    products = products || thi_is_network(lik);
    for (int q = 0; q < lik->latents; q++) {
        f[q] = isfinite(f[q]) ? f[q] : prior[q];
        bool logarithm = !lik->ops->standardise || (varying > 0 && q == varying);
        v[q] = logarithm ? fmin(SHARE * v[q], MOST) : SHARE * v[q];
        /* What nodes leave open would be taken for a reason to have no weights. */
        v[q] = products ? fmin(v[q], MOST_OF_PRODUCTS) : v[q];
    }
    if (varying > 0) { /* a function that is as far from y as the noise says speaks for that noise */
        f[varying] = prior[varying];
        v[0] = exp(prior[varying]);
    }
}

void thi_latent_unit(const thiele_likelihood *lik, const thi_encoder *encoder, int latent, double *unit, double *offset)
{
    const thi_target *target = encoder->target + (lik->ops->separate ? latent : 0);
    *unit = 1.0;
    *offset = 0.0;
    if (lik->ops->log_variance == latent && latent > 0) {
        *offset = 2.0 * log(target->scale);
    } else if (lik->ops->separate ||
               (lik->ops->standardise && lik->outputs == 1 && (lik->latents == 1 || lik->ops->log_variance > 0))) {
        *unit = target->scale;
        *offset = target->center;
    }
}
