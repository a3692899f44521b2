/* A predictor's numbers as tensors on their way to a file: matrices as they are, triangles packed by columns. */
#include "model/predictors.h"

#include <math.h>
#include <string.h>

#include "posterior/local.h"

const char *const thi_plus_names[THI_PLUS_KINDS] = {"none", "triangle", "white", "kernel", "precision"};
const char *const thi_conditional_names[THI_CONDITIONAL_KINDS] = {"full", "none", "diagonal"};
const char *const thi_shared_names[THI_SHARED_KINDS] = {"inputs", "factor", "scale", "local"};

void thi_part_name(char name[THI_PART_NAME_MAX], int latent, const char *part)
{
    if (latent <= 0) {
        snprintf(name, THI_PART_NAME_MAX, "%s", part);
    } else {
        snprintf(name, THI_PART_NAME_MAX, "f%d.%s", latent + 1, part);
    }
}

thiele_status thi_tensor_add(thi_tensor_list *list, int latent, const char *name, thi_tensor tensor)
{
    size_t next = (size_t)list->count + 1;
    char own[THI_PART_NAME_MAX], whole[2 * THI_PART_NAME_MAX];
    thiele_status status;
    thi_part_name(own, latent, name);
    snprintf(whole, sizeof whole, "%s%s", list->prefix != NULL ? list->prefix : "", own);
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

/* The rows and their blocks, not their sites. */
static bool same_rows(const thi_local *a, const thi_local *b)
{
    const thi_partition *p = &a->partition, *q = &b->partition;
    if (a->holders == b->holders) {
        return true;
    }
    return p->n == q->n && p->blocks == q->blocks &&
           memcmp(p->start, q->start, (size_t)p->blocks * sizeof *p->start) == 0 &&
           same_numbers(a->X, b->X, p->n * p->D) && same_numbers(a->y, b->y, p->n) &&
           same_numbers(p->centre, q->centre, p->blocks * p->D) && same_numbers(p->scale, q->scale, p->D);
}

/* What is the first latent function's too, and stands in the file once; first NULL: nothing is. */
static void find_shared(const thi_predictor *p, const thi_predictor *first, bool shared[THI_SHARED_KINDS])
{
    bool alike = first != NULL && p->n > 0 && first->n == p->n;
    shared[THI_SHARED_INPUTS] = alike && same_numbers(p->basis, first->basis, p->n * p->kernel->dims);
    shared[THI_SHARED_FACTOR] = alike && same_triangle(p->L, first->L);
    shared[THI_SHARED_SCALE] = alike && p->scale != NULL && same_numbers(p->scale, first->scale, p->n);
    shared[THI_SHARED_LOCAL] =
        first != NULL && p->local != NULL && first->local != NULL && same_rows(p->local, first->local);
}

static thiele_status list_plus(thi_tensor_list *list, const thi_predictor *p, int latent)
{
    thiele_status status = THIELE_OK;
    for (int k = 0; p->plus != THI_PLUS_NONE && k < p->components && status == THIELE_OK; k++) {
        char name[32];
        thi_matrix R = p->R[k];
        snprintf(name, sizeof name, "plus.%d", k + 1);
        thi_tensor tensor = thi_plus_is_triangle(p->plus)
                                ? (thi_tensor){.dims = 1, .shape = {thi_packed_size(p->n)}, .lower = R}
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

/* shared: the rows are the first latent function's, the sites its own. */
static thiele_status list_local(thi_tensor_list *list, const thi_local *local, int latent, bool shared)
{
    const thi_partition *partition = &local->partition;
    int64_t N = partition->n, D = partition->D, P = partition->blocks;
    const struct {
        const char *name;
        bool wanted;
        thi_tensor tensor;
    } all[] = {
        {"local.inputs", !shared, {.dims = 2, .shape = {N, D}, .data = local->X}},
        {"local.targets", !shared, {.dims = 1, .shape = {N}, .data = local->y}},
        {"local.precisions", local->lambda != NULL, {.dims = 1, .shape = {N}, .data = local->lambda}},
        {"local.pulls", local->nu != NULL, {.dims = 1, .shape = {N}, .data = local->nu}},
        {"local.centres", !shared, {.dims = 2, .shape = {P, D}, .data = partition->centre}},
        {"local.scale", !shared, {.dims = 1, .shape = {D}, .data = partition->scale}},
        {"local.marks", !shared && partition->mark != NULL, {.dims = 1, .shape = {P}, .data = partition->mark}},
    };
    thiele_status status = shared ? THIELE_OK : list_sizes(list, partition, latent);
    for (size_t i = 0; status == THIELE_OK && i < sizeof all / sizeof *all; i++) {
        if (all[i].wanted) {
            status = thi_tensor_add(list, latent, all[i].name, all[i].tensor);
        }
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
    bool shared[THI_SHARED_KINDS];
    thiele_status status;
    find_shared(p, first, shared);
    if (n > 0 && !shared[THI_SHARED_INPUTS]) {
        THI_TRY(thi_tensor_add(list, latent, "inputs", (thi_tensor){.dims = 2, .shape = {n, D}, .data = p->basis}));
    }
    THI_TRY(thi_tensor_add(list, latent, "weights",
                           (thi_tensor){.dims = 2, .shape = {p->components, weights}, .data = p->a}));
    if (n > 0 && !shared[THI_SHARED_FACTOR]) {
        THI_TRY(thi_tensor_add(list, latent, "factor",
                               (thi_tensor){.dims = 1, .shape = {thi_packed_size(n)}, .lower = p->L}));
    }
    if (p->scale != NULL && !shared[THI_SHARED_SCALE]) {
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
        THI_TRY(list_local(list, p->local, latent, shared[THI_SHARED_LOCAL]));
    }
out:
    return status;
}

static json_t *local_to_json(const thi_local *local)
{
    return json_pack("{s:I, s:I, s:f, s:b, s:b}", "rows", (json_int_t)local->partition.n, "blocks",
                     (json_int_t)local->partition.blocks, "noise", local->noise, "sites", local->lambda != NULL,
                     "marked", local->partition.mark != NULL);
}

/* The names of the parts that are the first latent function's. NULL when memory is out. */
static json_t *shared_to_json(const thi_predictor *p, const thi_predictor *first)
{
    bool shared[THI_SHARED_KINDS];
    json_t *list = json_array();
    int failed = list == NULL;
    find_shared(p, first, shared);
    for (int i = 0; i < THI_SHARED_KINDS; i++) {
        failed |= shared[i] && json_array_append_new(list, json_string(thi_shared_names[i])) != 0;
    }
    if (failed) {
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *thi_predictor_to_json(const thi_predictor *p, const thi_predictor *first)
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
    json_t *json = json_pack("{s:I, s:s, s:o, s:b}", "basis", (json_int_t)p->n, "plus", thi_plus_names[p->plus],
                             "plus_rows", rows, "scaled", (int)(p->scale != NULL));
    failed = json == NULL;
    if (!failed && first != NULL) {
        failed = json_object_set_new(json, "shared", shared_to_json(p, first));
    }
    if (!failed && p->conditional != THI_CONDITIONAL_FULL) {
        failed = json_object_set_new(json, "conditional", json_string(thi_conditional_names[p->conditional]));
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
