/* A predictor's numbers as tensors: matrices as they are, triangles packed by columns. */
#include "model/predictors.h"

#include <math.h>
#include <string.h>

#include "posterior/local.h"

static int64_t packed_size(int64_t n)
{
    return n * (n + 1) / 2;
}

static const char *const plus_names[] = {"none", "triangle", "white", "kernel"};
enum { PLUS_KINDS = sizeof plus_names / sizeof *plus_names };
static const char *const conditional_names[THI_CONDITIONAL_KINDS] = {"full", "none", "diagonal"};

/* "inputs" of the first latent function, "f2.inputs" of the second. */
enum { NAME_MAX_LENGTH = 48 };
static void make_name(char name[NAME_MAX_LENGTH], int latent, const char *part)
{
    if (latent <= 0) {
        snprintf(name, NAME_MAX_LENGTH, "%s", part);
    } else {
        snprintf(name, NAME_MAX_LENGTH, "f%d.%s", latent + 1, part);
    }
}

/* --- writing ---------------------------------------------------------------------------------------------------------
 */

thiele_status thi_tensor_add(thi_tensor_list *list, int latent, const char *name, thi_tensor tensor)
{
    size_t next = (size_t)list->count + 1;
    char whole[NAME_MAX_LENGTH];
    thiele_status status;
    make_name(whole, latent, name);
    THI_TRY(thi_grow(list->ctx, &list->tensor, next, sizeof *list->tensor));
    THI_TRY(thi_grow(list->ctx, &list->name, next, sizeof(char *)));
    THI_TRY(thi_grow(list->ctx, &list->kept, next, sizeof(double *)));
    THI_TRY(thi_strdup(list->ctx, &list->name[list->count], whole));
    list->tensor[list->count++] = tensor;
out:
    return status;
}

const thi_tensor *thi_tensor_list_named(thi_tensor_list *list)
{
    for (int i = 0; i < list->count; i++) {
        list->tensor[i].name = list->name[i];
    }
    return list->tensor;
}

void thi_tensor_list_clear(thi_tensor_list *list)
{
    for (int i = 0; i < list->count; i++) {
        thi_free(list->name[i]);
        thi_free(list->kept[i]);
    }
    thi_free(list->name);
    thi_free(list->kept);
    thi_free(list->tensor);
    *list = (thi_tensor_list){0};
}

static bool same_numbers(const double *a, const double *b, int64_t count)
{
    return a == b || (a != NULL && b != NULL && memcmp(a, b, (size_t)count * sizeof *a) == 0);
}

static bool same_triangle(thi_matrix A, thi_matrix B)
{
    bool same = true;
    for (int64_t j = 0; j < A.cols && same; j++) {
        same = same_numbers(A.data + j + j * A.ld, B.data + j + j * B.ld, A.rows - j);
    }
    return same;
}

static thiele_status list_plus(thi_tensor_list *list, const thi_predictor *p, int latent)
{
    thiele_status status = THIELE_OK;
    for (int k = 0; p->plus != THI_PLUS_NONE && k < p->components && status == THIELE_OK; k++) {
        char name[32];
        thi_matrix R = p->R[k];
        snprintf(name, sizeof name, "plus.%d", k + 1);
        thi_tensor tensor = p->plus == THI_PLUS_TRIANGLE
                                ? (thi_tensor){.dims = 1, .shape = {packed_size(p->n)}, .lower = R}
                                : (thi_tensor){.dims = 2, .shape = {p->n, R.rows}, .data = R.data};
        status = thi_tensor_add(list, latent, name, tensor);
    }
    return status;
}

/* Rows of each block as numbers, which the list keeps. */
static thiele_status list_sizes(thi_tensor_list *list, const thi_partition *partition, int latent)
{
    int64_t P = partition->blocks;
    double *sizes = NULL;
    thiele_status status = thi_alloc(list->ctx, &sizes, (size_t)P, sizeof *sizes);
    for (int64_t i = 0; status == THIELE_OK && i < P; i++) {
        sizes[i] = (double)(partition->start[i + 1] - partition->start[i]);
    }
    if (status == THIELE_OK) {
        status = thi_tensor_add(list, latent, "local.sizes", (thi_tensor){.dims = 1, .shape = {P}, .data = sizes});
    }
    if (status != THIELE_OK) {
        thi_free(sizes);
        return status;
    }
    list->kept[list->count - 1] = sizes;
    return THIELE_OK;
}

static thiele_status list_local(thi_tensor_list *list, const thi_local *local, int latent)
{
    const thi_partition *partition = &local->partition;
    int64_t N = partition->n, D = partition->D, P = partition->blocks;
    const struct {
        const char *name;
        thi_tensor tensor;
    } all[] = {
        {"local.inputs", {.dims = 2, .shape = {N, D}, .data = local->X}},
        {"local.targets", {.dims = 1, .shape = {N}, .data = local->y}},
        {"local.centres", {.dims = 2, .shape = {P, D}, .data = partition->centre}},
        {"local.scale", {.dims = 1, .shape = {D}, .data = partition->scale}},
    };
    thiele_status status = list_sizes(list, partition, latent);
    for (size_t i = 0; status == THIELE_OK && i < sizeof all / sizeof *all; i++) {
        status = thi_tensor_add(list, latent, all[i].name, all[i].tensor);
    }
    return status;
}

/* What a decoupled posterior has beyond the others: the basis of its mean, and length-scales of basis functions. */
static thiele_status list_decoupled(thi_tensor_list *list, const thi_predictor *p, int latent)
{
    int64_t D = p->kernel->dims;
    const struct {
        const char *name;
        thi_tensor tensor;
    } all[] = {
        {"mean_inputs", {.dims = 2, .shape = {p->mean_n, D}, .data = p->mean_basis}},
        {"mean_stretch", {.dims = 2, .shape = {p->mean_n, D}, .data = p->mean_log_c}},
        {"stretch", {.dims = 2, .shape = {p->n, D}, .data = p->log_c}},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; status == THIELE_OK && i < sizeof all / sizeof *all; i++) {
        if (all[i].tensor.data != NULL && all[i].tensor.shape[0] > 0) {
            status = thi_tensor_add(list, latent, all[i].name, all[i].tensor);
        }
    }
    return status;
}

thiele_status thi_predictor_list(thi_tensor_list *list, const thi_predictor *p, const thi_predictor *first, int latent)
{
    int64_t D = p->kernel->dims;
    int64_t n = p->n, weights = p->mean_basis != NULL ? p->mean_n : n;
    bool basis = n == 0 || (first != NULL && first->n == n);
    thiele_status status;
    if (!basis || (n > 0 && !same_numbers(p->basis, first->basis, n * D))) {
        THI_TRY(thi_tensor_add(list, latent, "inputs", (thi_tensor){.dims = 2, .shape = {n, D}, .data = p->basis}));
    }
    THI_TRY(thi_tensor_add(list, latent, "weights",
                           (thi_tensor){.dims = 2, .shape = {p->components, weights}, .data = p->a}));
    if (!basis || (n > 0 && !same_triangle(p->L, first->L))) {
        THI_TRY(
            thi_tensor_add(list, latent, "factor", (thi_tensor){.dims = 1, .shape = {packed_size(n)}, .lower = p->L}));
    }
    if (p->scale != NULL && (!basis || !same_numbers(p->scale, first->scale, n))) {
        THI_TRY(thi_tensor_add(list, latent, "scale", (thi_tensor){.dims = 1, .shape = {n}, .data = p->scale}));
    }
    THI_TRY(thi_tensor_add(list, latent, "theta",
                           (thi_tensor){.dims = 1, .shape = {p->kernel->parameters}, .data = p->kernel->log_value}));
    THI_TRY(thi_tensor_add(
        list, latent, "mean",
        (thi_tensor){.dims = 1, .shape = {thi_mean_parameters(p->mean, (int)D)}, .data = p->mean_parameter}));
    THI_TRY(list_plus(list, p, latent));
    if (p->mean_basis != NULL) {
        THI_TRY(list_decoupled(list, p, latent));
    }
    if (p->local != NULL) {
        THI_TRY(list_local(list, p->local, latent));
    }
out:
    return status;
}

static json_t *local_to_json(const thi_local *local)
{
    return json_pack("{s:I, s:I, s:f}", "rows", (json_int_t)local->partition.n, "blocks",
                     (json_int_t)local->partition.blocks, "noise", local->noise);
}

json_t *thi_predictor_to_json(const thi_predictor *p)
{
    json_t *rows = json_array();
    int failed = rows == NULL;
    for (int k = 0; p->R != NULL && k < p->components; k++) {
        failed |= json_array_append_new(rows, json_integer(p->R[k].rows));
    }
    if (failed) {
        json_decref(rows);
        return NULL;
    }
    json_t *json = json_pack("{s:I, s:s, s:o, s:b}", "basis", (json_int_t)p->n, "plus", plus_names[p->plus],
                             "plus_rows", rows, "scaled", (int)(p->scale != NULL));
    failed = json == NULL;
    if (!failed && p->conditional != THI_CONDITIONAL_FULL) {
        failed = json_object_set_new(json, "conditional", json_string(conditional_names[p->conditional]));
    }
    if (!failed && p->mean_basis != NULL) {
        failed = json_object_set_new(json, "mean_basis", json_integer(p->mean_n)) ||
                 json_object_set_new(json, "stretched", json_boolean(p->mean_log_c != NULL));
    }
    if (!failed && p->noise > 0.0) {
        failed = json_object_set_new(json, "noise", json_real(p->noise)) ||
                 json_object_set_new(json, "tau", json_real(thi_predictor_tau(p)));
    }
    if (!failed && p->local != NULL) {
        failed = json_object_set_new(json, "local", local_to_json(p->local));
    }
    if (failed) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* --- reading ---------------------------------------------------------------------------------------------------------
 */

/* The tensor of this latent function or, where the file has none, that of the first one. */
static void find_name(char name[NAME_MAX_LENGTH], const thi_tensors *tensors, int latent, const char *part)
{
    make_name(name, latent, part);
    if (!thi_tensors_have(tensors, name)) {
        make_name(name, 0, part);
    }
}

static thiele_status take(const thi_tensors *tensors, thiele_context *ctx, int latent, const char *part, int dims,
                          const int64_t *shape, double **out)
{
    char name[NAME_MAX_LENGTH];
    find_name(name, tensors, latent, part);
    return thi_tensors_take(tensors, ctx, name, dims, shape, out);
}

/* The same borrowed. */
static thiele_status view(const thi_tensors *tensors, thiele_context *ctx, int latent, const char *part, int dims,
                          const int64_t *shape, const double **out)
{
    char name[NAME_MAX_LENGTH];
    find_name(name, tensors, latent, part);
    return thi_tensors_view(tensors, ctx, name, dims, shape, out);
}

static thiele_status read_triangle(thiele_context *ctx, const thi_tensors *tensors, int latent, const char *part,
                                   int64_t n, thi_matrix *L)
{
    const double *packed = NULL;
    int64_t size = packed_size(n);
    char name[NAME_MAX_LENGTH];
    thiele_status status;
    find_name(name, tensors, latent, part);
    THI_TRY(thi_tensors_view(tensors, ctx, name, 1, &size, &packed));
    THI_TRY(thi_matrix_alloc(L, ctx, n, n));
    for (int64_t j = 0; j < n; j++) {
        memcpy(L->data + j + j * L->ld, packed, (size_t)(n - j) * sizeof *packed);
        packed += n - j;
        if (!(L->data[j + j * L->ld] > 0.0)) {
            THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor '%s' has a diagonal that is not positive", name));
        }
    }
out:
    return status;
}

static thiele_status read_theta(thi_predictor *p, thiele_context *ctx, const thi_tensors *tensors, int latent)
{
    char name[NAME_MAX_LENGTH];
    const double *theta = NULL;
    int64_t count = p->kernel->parameters;
    make_name(name, latent, "theta");
    thiele_status status = thi_tensors_view(tensors, ctx, name, 1, &count, &theta);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < count; i++) {
        if (fabs(theta[i]) > 300.0) {
            return thi_fail(ctx, THIELE_ERROR_FORMAT, "its kernel parameters are out of all proportion");
        }
    }
    thiele_kernel_set(p->kernel, theta);
    return THIELE_OK;
}

static thiele_status read_plus(thi_predictor *p, thiele_context *ctx, const thi_tensors *tensors, int latent,
                               const json_t *rows)
{
    thiele_status status = THIELE_OK;
    if (p->plus == THI_PLUS_NONE) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(ctx, &p->R, (size_t)p->components, sizeof *p->R));
    for (int k = 0; k < p->components; k++) {
        char part[32];
        int64_t shape[2] = {p->n, json_integer_value(json_array_get(rows, (size_t)k))};
        snprintf(part, sizeof part, "plus.%d", k + 1);
        if (p->plus == THI_PLUS_TRIANGLE) {
            THI_TRY(read_triangle(ctx, tensors, latent, part, p->n, &p->R[k]));
            continue;
        }
        if (shape[1] < 1 || shape[1] > p->n) {
            THI_TRY(thi_fail(ctx, THIELE_ERROR_FORMAT, "its field 'plus_rows' makes no sense"));
        }
        p->R[k] = (thi_matrix){.rows = shape[1], .cols = p->n, .ld = shape[1]};
        THI_TRY(take(tensors, ctx, latent, part, 2, shape, &p->R[k].data));
    }
out:
    return status;
}

/* start (P + 1 numbers) from the sizes of blocks, which must be whole and add up to N. */
static thiele_status read_sizes(thiele_context *ctx, const thi_tensors *tensors, int latent, const thi_partition *p)
{
    char name[NAME_MAX_LENGTH];
    const double *sizes = NULL;
    find_name(name, tensors, latent, "local.sizes");
    thiele_status status = thi_tensors_view(tensors, ctx, name, 1, &p->blocks, &sizes);
    for (int64_t i = 0; status == THIELE_OK && i < p->blocks; i++) {
        if (!(sizes[i] >= 1.0 && sizes[i] <= (double)(p->n - p->start[i]) && floor(sizes[i]) == sizes[i])) {
            return thi_fail(ctx, THIELE_ERROR_FORMAT, "its tensor '%s' holds no sizes of blocks", name);
        }
        p->start[i + 1] = p->start[i] + (int64_t)sizes[i];
    }
    if (status == THIELE_OK && p->start[p->blocks] != p->n) {
        status = thi_fail(ctx, THIELE_ERROR_FORMAT, "the blocks of its tensor '%s' do not add up to %lld rows", name,
                          (long long)p->n);
    }
    return status;
}

static thiele_status read_local(thi_predictor *p, thiele_context *ctx, const thi_tensors *tensors, int latent,
                                const json_t *json)
{
    const json_t *rows = json_object_get(json, "rows"), *blocks = json_object_get(json, "blocks");
    int64_t N = json_integer_value(rows), P = json_integer_value(blocks), D = p->kernel->dims;
    double noise = json_number_value(json_object_get(json, "noise"));
    bool fits = p->components == 1 && p->plus == THI_PLUS_TRIANGLE && p->conditional == THI_CONDITIONAL_FULL;
    thi_partition partition = {.D = (int)D, .n = N, .blocks = P};
    int64_t inputs[2] = {N, D}, centres[2] = {P, D};
    const double *X = NULL, *y = NULL;
    thiele_status status;
    if (!fits || P < 1 || P > N || N > INT32_MAX || !isfinite(noise) || !(noise > 0.0)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field 'local' makes no sense");
    }
    THI_TRY(view(tensors, ctx, latent, "local.inputs", 2, inputs, &X));
    THI_TRY(view(tensors, ctx, latent, "local.targets", 1, &N, &y));
    THI_TRY(take(tensors, ctx, latent, "local.centres", 2, centres, &partition.centre));
    THI_TRY(take(tensors, ctx, latent, "local.scale", 1, &D, &partition.scale));
    THI_TRY(thi_alloc(ctx, &partition.start, (size_t)P + 1, sizeof *partition.start));
    THI_TRY(read_sizes(ctx, tensors, latent, &partition));
    THI_TRY(thi_local_attach(p, ctx, &partition, X, y, noise));
out:
    thi_partition_clear(&partition);
    return status;
}

/* Files of before there were conditionals have no such field. */
static bool read_conditional(thi_predictor *p, const json_t *json)
{
    const json_t *field = json_object_get(json, "conditional");
    const char *name = json_string_value(field);
    int kind = 0;
    while (name != NULL && kind < THI_CONDITIONAL_KINDS && strcmp(name, conditional_names[kind]) != 0) {
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
           (p->n > 0 || p->plus == THI_PLUS_NONE) && json_object_get(json, "local") == NULL;
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
    const json_t *basis = json_object_get(json, "basis");
    const char *plus = json_string_value(json_object_get(json, "plus"));
    int kind = 0;
    while (plus != NULL && kind < PLUS_KINDS && strcmp(plus, plus_names[kind]) != 0) {
        kind++;
    }
    p->n = json_integer_value(basis);
    p->plus = (thi_plus)kind;
    *scaled = json_is_true(json_object_get(json, "scaled"));
    return plus != NULL && kind < PLUS_KINDS && json_is_integer(basis) && p->n <= INT32_MAX &&
           read_mean_basis(p, json) && read_conditional(p, json) && read_predictive(p, json);
}

/* Length-scales of basis functions: logs of factors, none of them out of all proportion. */
static thiele_status read_stretch(thiele_context *ctx, const thi_tensors *tensors, int latent, const char *part,
                                  const int64_t *shape, double **out)
{
    thiele_status status = take(tensors, ctx, latent, part, 2, shape, out);
    for (int64_t i = 0; status == THIELE_OK && i < shape[0] * shape[1]; i++) {
        if (fabs((*out)[i]) > THI_STRETCH_MAX) {
            status =
                thi_fail(ctx, THIELE_ERROR_FORMAT, "its length-scales of basis functions are out of all proportion");
        }
    }
    return status;
}

static thiele_status read_decoupled(thi_predictor *p, thiele_context *ctx, const thi_tensors *tensors, int latent,
                                    const json_t *json)
{
    int64_t mean[2] = {p->mean_n, p->kernel->dims}, own[2] = {p->n, p->kernel->dims};
    thiele_status status;
    THI_TRY(take(tensors, ctx, latent, "mean_inputs", 2, mean, &p->mean_basis));
    if (!json_is_true(json_object_get(json, "stretched"))) {
        return THIELE_OK;
    }
    if (!thi_functions_may_stretch(p->kernel)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its basis functions have length-scales that its kernel has not");
    }
    THI_TRY(read_stretch(ctx, tensors, latent, "mean_stretch", mean, &p->mean_log_c));
    if (p->n > 0) {
        THI_TRY(read_stretch(ctx, tensors, latent, "stretch", own, &p->log_c));
    } else {
        THI_TRY(thi_alloc(ctx, &p->log_c, 0, sizeof *p->log_c));
    }
out:
    return status;
}

/* The basis of the covariance; there may be none. */
static thiele_status read_basis(thi_predictor *p, thiele_context *ctx, const thi_tensors *tensors, int latent,
                                const int64_t *shape)
{
    if (p->n == 0) {
        return thi_alloc(ctx, &p->basis, 0, sizeof *p->basis);
    }
    thiele_status status = take(tensors, ctx, latent, "inputs", 2, shape, &p->basis);
    return status == THIELE_OK ? read_triangle(ctx, tensors, latent, "factor", p->n, &p->L) : status;
}

thiele_status thi_predictor_read(thi_predictor *p, thiele_context *ctx, const thi_tensors *tensors, int latent,
                                 const thi_prior *prior, int components, const json_t *json)
{
    int D = prior->kernel->dims;
    int64_t means = thi_mean_parameters(prior->mean, D);
    bool scaled;
    *p = (thi_predictor){.mean = prior->mean, .components = components};
    if (!read_facts(p, json, &scaled)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "its field 'latents' is absent or makes no sense");
    }
    int64_t shape[2] = {p->n, D};
    int64_t weights[2] = {components, p->mean_n > 0 ? p->mean_n : p->n};
    thiele_status status;
    THI_TRY(read_basis(p, ctx, tensors, latent, shape));
    THI_TRY(take(tensors, ctx, latent, "weights", 2, weights, &p->a));
    THI_TRY(take(tensors, ctx, latent, "mean", 1, &means, &p->mean_parameter));
    if (scaled) {
        THI_TRY(take(tensors, ctx, latent, "scale", 1, shape, &p->scale));
    }
    THI_TRY(thi_kernel_copy(&p->kernel, ctx, prior->kernel));
    THI_TRY(read_theta(p, ctx, tensors, latent));
    if (p->mean_n > 0) {
        THI_TRY(read_decoupled(p, ctx, tensors, latent, json));
    }
    THI_TRY(read_plus(p, ctx, tensors, latent, json_object_get(json, "plus_rows")));
    THI_TRY(thi_predictor_finish(p, ctx));
    if (json_object_get(json, "local") != NULL) {
        THI_TRY(read_local(p, ctx, tensors, latent, json_object_get(json, "local")));
    }
out:
    return status;
}
