/*
 * Predictors from the tensors of a model file that nobody vouches for. First every part is looked up and checked, its
 * shape and its numbers, without keeping any; then they are copied. Of a file that is being written the first half is
 * all: what it refuses is not saved.
 */
#include <math.h>
#include <string.h>

#include "model/predictors.h"
#include "posterior/local.h"

/* Where the parts of one latent function are. */
typedef struct parts {
    thiele_context *ctx;
    thi_tensors *tensors;
    int latent;
    bool shared[THI_SHARED_KINDS]; /* with the first one */
} parts;

static void name_of(const parts *from, const char *part, char name[THI_PART_NAME_MAX])
{
    int latent = from->latent;
    for (int i = 0; i < THI_SHARED_KINDS; i++) {
        latent = from->shared[i] && strcmp(part, thi_shared_names[i]) == 0 ? 0 : latent;
    }
    thi_part_name(name, latent, part);
}

static thiele_status find(const parts *from, const char *part, int dims, const int64_t *shape, const thi_tensor **out)
{
    char name[THI_PART_NAME_MAX];
    name_of(from, part, name);
    return thi_tensors_find(from->tensors, from->ctx, name, dims, shape, out);
}

static thiele_status take(const parts *from, const char *part, int dims, const int64_t *shape, double **out)
{
    char name[THI_PART_NAME_MAX];
    name_of(from, part, name);
    return thi_tensors_take(from->tensors, from->ctx, name, dims, shape, out);
}

/* --- facts -------------------------------------------------------------------------------------------------------- */

/* Files of before there were conditionals have no such field. */
static bool read_conditional(thi_predictor *p, const json_t *json)
{
    const json_t *field = json_object_get(json, "conditional");
    const char *name = json_string_value(field);
    int kind = 0;
    while (name != NULL && kind < THI_CONDITIONAL_KINDS && strcmp(name, thi_conditional_names[kind]) != 0) {
        kind++;
    }
    p->conditional = (thi_conditional)kind;
    bool bare = p->plus == THI_PLUS_NONE && kind != THI_CONDITIONAL_FULL;
    return field == NULL || (name != NULL && kind < THI_CONDITIONAL_KINDS && !bare);
}

/* A mean with a basis of its own, which the covariance may then do without; other predictors have no such field. */
static bool read_mean_basis(thi_predictor *p, const json_t *json)
{
    const json_t *field = json_object_get(json, "mean_basis");
    if (field == NULL) {
        return p->n >= 1;
    }
    p->mean_n = json_integer_value(field);
    return json_is_integer(field) && p->mean_n >= 1 && p->mean_n <= INT32_MAX && p->n >= 0 && p->components == 1 &&
           (p->n > 0 || p->plus == THI_PLUS_NONE) && json_object_get(json, "local") == NULL &&
           json_is_boolean(json_object_get(json, "stretched"));
}

/* The noise that it was made with and the factor of its variances, where rows showed others to be better. */
static bool read_predictive(thi_predictor *p, const json_t *json)
{
    const json_t *noise = json_object_get(json, "noise"), *tau = json_object_get(json, "tau");
    p->noise = json_number_value(noise);
    p->tau = json_number_value(tau);
    return (noise == NULL && tau == NULL) || (json_is_number(noise) && isfinite(p->noise) && p->noise > 0.0 &&
                                              json_is_number(tau) && p->tau > 0.0 && p->tau <= 1.0);
}

/* The fields that JSON gives. */
static bool read_facts(thi_predictor *p, const json_t *json, bool *scaled)
{
    const json_t *basis = json_object_get(json, "basis"), *field = json_object_get(json, "scaled");
    const char *plus = json_string_value(json_object_get(json, "plus"));
    int kind = 0;
    while (plus != NULL && kind < THI_PLUS_KINDS && strcmp(plus, thi_plus_names[kind]) != 0) {
        kind++;
    }
    p->n = json_integer_value(basis);
    p->plus = (thi_plus)kind;
    *scaled = json_is_true(field);
    return plus != NULL && kind < THI_PLUS_KINDS && json_is_boolean(field) && json_is_integer(basis) &&
           p->n <= INT32_MAX && read_mean_basis(p, json) && read_conditional(p, json) && read_predictive(p, json);
}

/* Which parts are the first one's: in version 1 those that are absent, else those that the file says. */
static bool read_shared(parts *from, const json_t *list)
{
    size_t known = 0;
    for (int i = 0; i < THI_SHARED_KINDS; i++) {
        char name[THI_PART_NAME_MAX];
        thi_part_name(name, from->latent, thi_shared_names[i]);
        bool listed = false;
        for (size_t k = 0; k < json_array_size(list); k++) {
            const char *word = json_string_value(json_array_get(list, k));
            listed = listed || (word != NULL && strcmp(word, thi_shared_names[i]) == 0);
        }
        known += listed;
        bool absent = i != THI_SHARED_LOCAL && !thi_tensors_have(from->tensors, name);
        from->shared[i] = from->tensors->version == 1 ? absent : listed;
    }
    bool wanted = from->latent > 0 && from->tensors->version > 1;
    return wanted ? json_is_array(list) && known == json_array_size(list) : list == NULL;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static thiele_status check_triangle(const parts *from, const char *part, int64_t n)
{
    const thi_tensor *tensor = NULL;
    int64_t size = thi_packed_size(n);
    thiele_status status = find(from, part, 1, &size, &tensor);
    for (int64_t j = 0; status == THIELE_OK && j < n; j++) {
        if (!(thi_tensor_diagonal(tensor, n, j) > 0.0)) {
            char name[THI_PART_NAME_MAX];
            name_of(from, part, name);
            status =
                thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its tensor '%s' has a diagonal that is not positive", name);
        }
    }
    return status;
}

/* The length of each is as said, and no number is larger than that. */
static thiele_status check_bounded(const parts *from, const char *part, int dims, const int64_t *shape, double most,
                                   const char *what)
{
    const thi_tensor *tensor = NULL;
    thiele_status status = find(from, part, dims, shape, &tensor);
    int64_t count = shape[0] * (dims > 1 ? shape[1] : 1);
    for (int64_t i = 0; status == THIELE_OK && i < count; i++) {
        if (fabs(tensor->data[i]) > most) {
            status = thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its %s are out of all proportion", what);
        }
    }
    return status;
}

static thiele_status check_plus(const thi_predictor *p, const parts *from, const json_t *rows)
{
    thiele_status status = THIELE_OK;
    for (int k = 0; p->plus != THI_PLUS_NONE && k < p->components && status == THIELE_OK; k++) {
        char part[32];
        const thi_tensor *tensor = NULL;
        int64_t shape[2] = {p->n, json_integer_value(json_array_get(rows, (size_t)k))};
        snprintf(part, sizeof part, "plus.%d", k + 1);
        if (thi_plus_is_triangle(p->plus)) {
            status = check_triangle(from, part, p->n);
        } else if (shape[1] < 1 || shape[1] > p->n) {
            status = thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its field 'plus_rows' makes no sense");
        } else {
            status = find(from, part, 2, shape, &tensor);
        }
    }
    return status;
}

/* Sizes of blocks are whole and add up to N. */
static thiele_status check_sizes(const parts *from, int64_t N, int64_t P)
{
    const thi_tensor *sizes = NULL;
    int64_t sum = 0;
    thiele_status status = find(from, "local.sizes", 1, &P, &sizes);
    for (int64_t i = 0; status == THIELE_OK && i < P; i++) {
        double size = sizes->data[i];
        if (!(size >= 1.0 && size <= (double)(N - sum) && floor(size) == size)) {
            return thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its tensor 'local.sizes' holds no sizes of blocks");
        }
        sum += (int64_t)size;
    }
    if (status == THIELE_OK && sum != N) {
        status = thi_fail(from->ctx, THIELE_ERROR_FORMAT,
                          "the blocks of its tensor 'local.sizes' do not add up to %lld rows", (long long)N);
    }
    return status;
}

/* Where the rows of the local part are, and their blocks; the sites are with the latent function. */
static parts rows_of(const parts *from)
{
    parts rows = *from;
    rows.latent = from->shared[THI_SHARED_LOCAL] ? 0 : from->latent;
    return rows;
}

/* Marks of blocks ascend. */
static thiele_status check_marks(const parts *from, int64_t P)
{
    const thi_tensor *marks = NULL;
    thiele_status status = find(from, "local.marks", 1, &P, &marks);
    for (int64_t i = 1; status == THIELE_OK && i < P; i++) {
        if (!(marks->data[i] > marks->data[i - 1])) {
            status = thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its tensor 'local.marks' is not in order");
        }
    }
    return status;
}

static thiele_status check_local(const thi_predictor *p, const parts *from, const json_t *json)
{
    const parts rows = rows_of(from);
    int64_t N = json_integer_value(json_object_get(json, "rows")), D = p->kernel->dims;
    int64_t P = json_integer_value(json_object_get(json, "blocks"));
    double noise = json_number_value(json_object_get(json, "noise"));
    bool fits = p->components == 1 && thi_plus_is_triangle(p->plus) && p->conditional == THI_CONDITIONAL_FULL;
    const thi_tensor *tensor;
    thiele_status status;
    if (!fits || P < 1 || P > N || N > INT32_MAX || !isfinite(noise) || !(noise > 0.0)) {
        return thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its field 'local' makes no sense");
    }
    THI_TRY(find(&rows, "local.inputs", 2, (int64_t[]){N, D}, &tensor));
    THI_TRY(find(&rows, "local.targets", 1, &N, &tensor));
    if (json_is_true(json_object_get(json, "sites"))) {
        THI_TRY(find(from, "local.precisions", 1, &N, &tensor));
        THI_TRY(find(from, "local.pulls", 1, &N, &tensor));
    }
    THI_TRY(find(&rows, "local.centres", 2, (int64_t[]){P, D}, &tensor));
    THI_TRY(find(&rows, "local.scale", 1, &D, &tensor));
    if (json_is_true(json_object_get(json, "marked"))) {
        THI_TRY(check_marks(&rows, P));
    }
    THI_TRY(check_sizes(&rows, N, P));
out:
    return status;
}

static thiele_status check_decoupled(const thi_predictor *p, const parts *from, const json_t *json)
{
    static const char what[] = "length-scales of basis functions";
    int64_t mean[2] = {p->mean_n, p->kernel->dims}, own[2] = {p->n, p->kernel->dims};
    const thi_tensor *tensor;
    thiele_status status;
    THI_TRY(find(from, "mean_inputs", 2, mean, &tensor));
    if (!json_is_true(json_object_get(json, "stretched"))) {
        return THIELE_OK;
    }
    if (!thi_functions_may_stretch(p->kernel)) {
        return thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its basis functions have length-scales that its kernel lacks");
    }
    THI_TRY(check_bounded(from, "mean_stretch", 2, mean, THI_STRETCH_MAX, what));
    if (p->n > 0) {
        THI_TRY(check_bounded(from, "stretch", 2, own, THI_STRETCH_MAX, what));
    }
out:
    return status;
}

/* Every part, in the order of the file. */
static thiele_status check_parts(const thi_predictor *p, const parts *from, const json_t *json, bool scaled)
{
    static const double THETA_MAX = 300.0;
    int64_t D = p->kernel->dims, inputs[2] = {p->n, D}, means = thi_mean_parameters(p->mean, (int)D);
    int64_t weights[2] = {p->components, p->mean_n > 0 ? p->mean_n : p->n}, parameters = p->kernel->parameters;
    const thi_tensor *tensor;
    thiele_status status;
    if (p->n > 0) {
        THI_TRY(find(from, "inputs", 2, inputs, &tensor));
    }
    THI_TRY(find(from, "weights", 2, weights, &tensor));
    if (p->n > 0) {
        THI_TRY(check_triangle(from, "factor", p->n));
    }
    if (scaled) {
        THI_TRY(find(from, "scale", 1, inputs, &tensor));
    }
    THI_TRY(check_bounded(from, "theta", 1, &parameters, THETA_MAX, "kernel parameters"));
    THI_TRY(find(from, "mean", 1, &means, &tensor));
    THI_TRY(check_plus(p, from, json_object_get(json, "plus_rows")));
    if (p->mean_n > 0) {
        THI_TRY(check_decoupled(p, from, json));
    }
    if (json_object_get(json, "local") != NULL) {
        THI_TRY(check_local(p, from, json_object_get(json, "local")));
    }
out:
    return status;
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static thiele_status take_triangle(const parts *from, const char *part, int64_t n, thi_matrix *L)
{
    const thi_tensor *tensor = NULL;
    int64_t size = thi_packed_size(n);
    thiele_status status;
    THI_TRY(find(from, part, 1, &size, &tensor));
    THI_TRY(thi_matrix_alloc(L, from->ctx, n, n));
    const double *packed = tensor->data;
    for (int64_t j = 0; j < n; j++) {
        memcpy(L->data + j + j * L->ld, packed, (size_t)(n - j) * sizeof *packed);
        packed += n - j;
    }
out:
    return status;
}

static thiele_status take_plus(thi_predictor *p, const parts *from, const json_t *rows)
{
    thiele_status status = THIELE_OK;
    if (p->plus == THI_PLUS_NONE) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(from->ctx, &p->R, (size_t)p->components, sizeof *p->R));
    for (int k = 0; k < p->components; k++) {
        char part[32];
        int64_t shape[2] = {p->n, json_integer_value(json_array_get(rows, (size_t)k))};
        snprintf(part, sizeof part, "plus.%d", k + 1);
        if (thi_plus_is_triangle(p->plus)) {
            THI_TRY(take_triangle(from, part, p->n, &p->R[k]));
            continue;
        }
        p->R[k] = (thi_matrix){.rows = shape[1], .cols = p->n, .ld = shape[1]};
        THI_TRY(take(from, part, 2, shape, &p->R[k].data));
    }
out:
    return status;
}

/* The rows of a local part and their blocks. */
static thiele_status take_rows(thi_predictor *p, const parts *from, const json_t *json, int64_t N, double noise)
{
    int64_t P = json_integer_value(json_object_get(json, "blocks")), D = p->kernel->dims;
    thi_partition partition = {.D = (int)D, .n = N, .blocks = P};
    const thi_tensor *X = NULL, *y = NULL, *sizes = NULL;
    thiele_status status;
    THI_TRY(find(from, "local.sizes", 1, &P, &sizes));
    THI_TRY(find(from, "local.inputs", 2, (int64_t[]){N, D}, &X));
    THI_TRY(find(from, "local.targets", 1, &N, &y));
    THI_TRY(take(from, "local.centres", 2, (int64_t[]){P, D}, &partition.centre));
    THI_TRY(take(from, "local.scale", 1, &D, &partition.scale));
    if (json_is_true(json_object_get(json, "marked"))) {
        THI_TRY(take(from, "local.marks", 1, &P, &partition.mark));
    }
    THI_TRY(thi_alloc(from->ctx, &partition.start, (size_t)P + 1, sizeof *partition.start));
    for (int64_t i = 0; i < P; i++) {
        partition.start[i + 1] = partition.start[i] + (int64_t)sizes->data[i];
    }
    THI_TRY(thi_local_attach(p, from->ctx, &partition, X->data, y->data, noise));
out:
    thi_partition_clear(&partition);
    return status;
}

/* first: the latent function whose rows may be this one's. */
static thiele_status take_local(thi_predictor *p, const thi_predictor *first, const parts *from, const json_t *json)
{
    int64_t N = json_integer_value(json_object_get(json, "rows"));
    double noise = json_number_value(json_object_get(json, "noise"));
    const thi_tensor *lambda = NULL, *nu = NULL;
    thiele_status status;
    if (!from->shared[THI_SHARED_LOCAL]) {
        THI_TRY(take_rows(p, from, json, N, noise));
    } else if (first->local == NULL) {
        return thi_fail(from->ctx, THIELE_ERROR_FORMAT, "its field 'shared' has rows that the first function lacks");
    } else {
        THI_TRY(thi_local_share(&p->local, from->ctx, first->local));
        thi_local_renew(p->local, noise);
    }
    if (json_is_true(json_object_get(json, "sites"))) {
        THI_TRY(find(from, "local.precisions", 1, &N, &lambda));
        THI_TRY(find(from, "local.pulls", 1, &N, &nu));
        THI_TRY(thi_local_hold_sites(p->local, from->ctx));
        memcpy(p->local->lambda, lambda->data, (size_t)N * sizeof *lambda->data);
        memcpy(p->local->nu, nu->data, (size_t)N * sizeof *nu->data);
    }
out:
    return status;
}

static thiele_status take_decoupled(thi_predictor *p, const parts *from, const json_t *json)
{
    int64_t mean[2] = {p->mean_n, p->kernel->dims}, own[2] = {p->n, p->kernel->dims};
    thiele_status status;
    THI_TRY(take(from, "mean_inputs", 2, mean, &p->mean_basis));
    if (!json_is_true(json_object_get(json, "stretched"))) {
        return THIELE_OK;
    }
    THI_TRY(take(from, "mean_stretch", 2, mean, &p->mean_log_c));
    if (p->n > 0) {
        THI_TRY(take(from, "stretch", 2, own, &p->log_c));
    } else {
        THI_TRY(thi_alloc(from->ctx, &p->log_c, 0, sizeof *p->log_c));
    }
out:
    return status;
}

/* The basis of the covariance; there may be none. */
static thiele_status take_basis(thi_predictor *p, const parts *from, const int64_t *shape)
{
    if (p->n == 0) {
        return thi_alloc(from->ctx, &p->basis, 0, sizeof *p->basis);
    }
    thiele_status status = take(from, "inputs", 2, shape, &p->basis);
    return status == THIELE_OK ? take_triangle(from, "factor", p->n, &p->L) : status;
}

static thiele_status take_parts(thi_predictor *p, const thi_predictor *first, const parts *from, const json_t *json,
                                bool scaled)
{
    int64_t shape[2] = {p->n, p->kernel->dims};
    int64_t weights[2] = {p->components, p->mean_n > 0 ? p->mean_n : p->n};
    thiele_status status;
    THI_TRY(take_basis(p, from, shape));
    THI_TRY(take(from, "weights", 2, weights, &p->a));
    if (scaled) {
        THI_TRY(take(from, "scale", 1, shape, &p->scale));
    }
    if (p->mean_n > 0) {
        THI_TRY(take_decoupled(p, from, json));
    }
    THI_TRY(take_plus(p, from, json_object_get(json, "plus_rows")));
    THI_TRY(thi_predictor_finish(p, from->ctx));
    if (json_object_get(json, "local") != NULL) {
        THI_TRY(take_local(p, first, from, json_object_get(json, "local")));
    }
out:
    return status;
}

/* The kernel's values and the mean's. */
static thiele_status take_prior(thi_predictor *p, const parts *from)
{
    int64_t parameters = p->kernel->parameters, means = thi_mean_parameters(p->mean, p->kernel->dims);
    const thi_tensor *theta = NULL;
    thiele_status status;
    THI_TRY(find(from, "theta", 1, &parameters, &theta));
    thiele_kernel_set(p->kernel, theta->data);
    THI_TRY(take(from, "mean", 1, &means, &p->mean_parameter));
out:
    return status;
}

thiele_status thi_predictor_read(thi_predictor *list, thiele_context *ctx, thi_tensors *tensors, int latent,
                                 const thi_prior *prior, int components, const json_t *json)
{
    thi_predictor *p = &list[latent];
    parts from = {.ctx = ctx, .tensors = tensors, .latent = latent};
    bool scaled;
    thiele_status status;
    *p = (thi_predictor){.mean = prior->mean, .components = components};
    if (!read_facts(p, json, &scaled) || !read_shared(&from, json_object_get(json, "shared"))) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field 'latents' is absent or makes no sense");
    }
    THI_TRY(thi_kernel_copy(&p->kernel, ctx, prior->kernel));
    THI_TRY(check_parts(p, &from, json, scaled));
    THI_TRY(take_prior(p, &from));
    if (tensors->values != NULL) {
        THI_TRY(take_parts(p, list, &from, json, scaled));
    }
out:
    return status;
}
