/* The kernel object: its parameters, copies, units, and the public functions over plain arrays. */
#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

static void node_destroy(thi_node *node)
{
    if (node == NULL) {
        return;
    }
    for (int c = 0; c < node->children; c++) {
        node_destroy(node->child[c]);
    }
    thi_free(node->child);
    thi_free(node);
}

void thiele_kernel_destroy(thiele_kernel *kernel)
{
    if (kernel == NULL) {
        return;
    }
    node_destroy(kernel->root);
    for (int leaf = 0; leaf < kernel->leaves; leaf++) {
        thi_free(kernel->leaf[leaf].dim);
        thi_free(kernel->leaf[leaf].scale);
    }
    for (int p = 0; kernel->parameter != NULL && p < kernel->parameters; p++) {
        thi_free(kernel->parameter[p].name);
    }
    thi_free(kernel->parameter);
    thi_free(kernel->column);
    thi_free(kernel->joined);
    thi_free(kernel->value);
    thi_free(kernel->log_value);
    thi_free(kernel);
}

thiele_status thi_kernel_copy(thiele_kernel **out, thiele_context *ctx, const thiele_kernel *kernel)
{
    char *text = NULL;
    *out = NULL;
    thiele_status status = thiele_kernel_print(kernel, ctx, 1, &text);
    if (status == THIELE_OK) {
        thi_columns columns = {
            .dims = kernel->dims, .columns = kernel->columns, .column = kernel->column, .joined = kernel->joined};
        status = thi_kernel_parse(out, ctx, text, &columns);
    }
    thi_free(text);
    for (int p = 0; status == THIELE_OK && p < kernel->parameters; p++) {
        thi_parameter *to = &(*out)->parameter[p];
        const thi_parameter *from = &kernel->parameter[p];
        thi_free(to->name);
        to->fixed = from->fixed;
        to->given = from->given;
        status = thi_strdup(ctx, &to->name, from->name);
        (*out)->value[p] = kernel->value[p];
        (*out)->log_value[p] = kernel->log_value[p];
    }
    if (status != THIELE_OK) {
        thiele_kernel_destroy(*out);
        *out = NULL;
    }
    return status;
}

static bool same_nodes(const thi_node *a, const thi_node *b)
{
    bool same = a->type == b->type && a->leaf == b->leaf && a->children == b->children;
    for (int i = 0; same && i < a->children; i++) {
        same = same_nodes(a->child[i], b->child[i]);
    }
    return same;
}

static bool same_leaves(const thi_leaf *a, const thi_leaf *b)
{
    return a->kind == b->kind && a->dims == b->dims && a->degree == b->degree && a->lengthscales == b->lengthscales &&
           a->first == b->first && memcmp(a->dim, b->dim, (size_t)a->dims * sizeof *a->dim) == 0 &&
           memcmp(a->scale, b->scale, (size_t)a->dims * sizeof *a->scale) == 0;
}

bool thi_kernel_is_same(const thiele_kernel *a, const thiele_kernel *b)
{
    bool same = a->dims == b->dims && a->leaves == b->leaves && a->parameters == b->parameters &&
                same_nodes(a->root, b->root) &&
                memcmp(a->value, b->value, (size_t)a->parameters * sizeof *a->value) == 0;
    for (int i = 0; same && i < a->leaves; i++) {
        same = same_leaves(&a->leaf[i], &b->leaf[i]);
    }
    return same;
}

int thiele_kernel_dims(const thiele_kernel *kernel)
{
    THI_NEED_OR(0, kernel);
    return kernel->dims;
}

int thiele_kernel_parameters(const thiele_kernel *kernel)
{
    THI_NEED_OR(0, kernel);
    return kernel->parameters;
}

const char *thiele_kernel_parameter_name(const thiele_kernel *kernel, int index)
{
    THI_NEED_OR(NULL, kernel);
    return index >= 0 && index < kernel->parameters ? kernel->parameter[index].name : NULL;
}

void thiele_kernel_get(const thiele_kernel *kernel, double *log_theta)
{
    THI_NEED_OR(, kernel && log_theta);
    memcpy(log_theta, kernel->log_value, (size_t)kernel->parameters * sizeof *log_theta);
}

void thi_kernel_set_one(thiele_kernel *kernel, int parameter, double log_theta)
{
    /* A value that was written down stays as it was written: exp(log(7)) is not 7. */
    if (kernel->log_value[parameter] != log_theta) {
        kernel->log_value[parameter] = log_theta;
        kernel->value[parameter] = exp(log_theta);
    }
}

void thiele_kernel_set(thiele_kernel *kernel, const double *log_theta)
{
    THI_NEED_OR(, kernel && log_theta);
    for (int p = 0; p < kernel->parameters; p++) {
        thi_kernel_set_one(kernel, p, log_theta[p]);
    }
}

const thi_leaf *thi_kernel_leaf_of(const thiele_kernel *kernel, int parameter)
{
    const thi_leaf *leaf = kernel->leaf;
    while (parameter >= leaf->first + leaf->parameters) {
        leaf++;
    }
    return leaf;
}

/* Marks the leaves that stand in a product behind its first part: their variances carry no unit of the target. */
static void mark_unitless(const thi_node *node, bool unitless, bool *mark)
{
    if (node->type == THI_NODE_LEAF) {
        mark[node->leaf] = unitless;
        return;
    }
    for (int c = 0; c < node->children; c++) {
        mark_unitless(node->child[c], unitless || (node->type == THI_NODE_PRODUCT && c > 0), mark);
    }
}

/*
 * Marks the leaves whose variance can be absorbed by another: a product has one scale too many for each part behind the
 * first, and a sum among those parts gives up that of its first term only.
 */
static void mark_redundant(const thi_node *node, bool redundant, bool *mark)
{
    if (node->type == THI_NODE_LEAF) {
        mark[node->leaf] = redundant;
        return;
    }
    for (int c = 0; c < node->children; c++) {
        bool product = node->type == THI_NODE_PRODUCT;
        mark_redundant(node->child[c], product ? redundant || c > 0 : redundant && c == 0, mark);
    }
}

/* Whether all of a leaf's columns have the same scale. */
int thi_leaf_dim_of(const thi_leaf *leaf, int own)
{
    int d = 0;
    while (leaf->scale[d] != own) {
        d++;
    }
    return leaf->dim[d];
}

static bool same_scales(const thi_leaf *leaf, const double *scale)
{
    for (int d = 1; d < leaf->dims; d++) {
        if (scale[leaf->dim[d]] != scale[leaf->dim[0]]) {
            return false;
        }
    }
    return true;
}

bool thi_kernel_has_unit(const thiele_kernel *kernel, int parameter, const double *scale)
{
    const thi_leaf *leaf = thi_kernel_leaf_of(kernel, parameter);
    int own = parameter - leaf->first;
    bool circle = leaf->kind->map == &thi_features_circle;
    /* On the circle a length-scale has no unit, and the period is shared. */
    bool shared = own < leaf->lengthscales ? !leaf->ard && !circle : own > leaf->lengthscales && circle;
    return !shared || same_scales(leaf, scale);
}

double thi_kernel_unit(const thiele_kernel *kernel, int parameter, const double *scale, double target)
{
    bool unitless[THI_KERNEL_NODES_MAX];
    mark_unitless(kernel->root, false, unitless);
    const thi_leaf *leaf = thi_kernel_leaf_of(kernel, parameter);
    int own = parameter - leaf->first;
    bool circle = leaf->kind->map == &thi_features_circle;
    if (own == leaf->lengthscales) {
        return unitless[leaf - kernel->leaf] ? 1.0 : target * target;
    }
    bool length = own < leaf->lengthscales ? !circle : circle;
    if (!length || !thi_kernel_has_unit(kernel, parameter, scale)) {
        return 1.0;
    }
    return scale[own < leaf->lengthscales ? thi_leaf_dim_of(leaf, own) : leaf->dim[0]];
}

void thi_kernel_rescale(thiele_kernel *kernel, const double *scale, double target, int direction)
{
    for (int p = 0; p < kernel->parameters; p++) {
        double unit = thi_kernel_unit(kernel, p, scale, target);
        if (unit != 1.0) {
            kernel->value[p] = direction > 0 ? kernel->value[p] * unit : kernel->value[p] / unit;
            kernel->log_value[p] = log(kernel->value[p]);
        }
    }
}

static void fix_unless_given(thi_parameter *parameter)
{
    if (!parameter->given) {
        parameter->fixed = true;
    }
}

void thi_kernel_fix_redundant(thiele_kernel *kernel)
{
    bool redundant[THI_KERNEL_NODES_MAX];
    mark_redundant(kernel->root, false, redundant);
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        thi_parameter *lengthscale = &kernel->parameter[leaf->first];
        thi_parameter *variance = lengthscale + leaf->lengthscales;
        bool scale_free = leaf->kind->family == THI_DOT && leaf->kind->map->linear;
        if (scale_free && !leaf->ard) {
            fix_unless_given(lengthscale);
        }
        if (redundant[l] || (scale_free && leaf->ard)) {
            fix_unless_given(variance);
        }
    }
}

/* The two sets of inputs of a matrix; X2 == NULL: the same rows twice. */
typedef struct input_pair {
    thi_inputs A, B;
    bool symmetric;
} input_pair;

static thiele_status open_pair(input_pair *pair, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                               const double *X, int64_t n2, const double *X2)
{
    *pair = (input_pair){.symmetric = X2 == NULL};
    int64_t cols = pair->symmetric ? n : n2;
    if (n < 0 || cols < 0 || n > INT32_MAX || cols > INT32_MAX) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a kernel matrix can have 0 to %d rows and columns", INT32_MAX);
    }
    thiele_status status = thi_inputs_make(&pair->A, ctx, kernel, n, X);
    if (status == THIELE_OK && !pair->symmetric) {
        status = thi_inputs_make(&pair->B, ctx, kernel, cols, X2);
    }
    return status;
}

static const thi_inputs *second(const input_pair *pair)
{
    return pair->symmetric ? &pair->A : &pair->B;
}

static void close_pair(input_pair *pair)
{
    thi_inputs_clear(&pair->A);
    thi_inputs_clear(&pair->B);
}

thiele_status thiele_kernel_matrix(const thiele_kernel *kernel, thiele_context *ctx, int64_t n, const double *X,
                                   int64_t n2, const double *X2, double *K)
{
    THI_NEED(ctx, kernel && ctx && (n < 1 || (X && K)));
    input_pair pair;
    thiele_status status = open_pair(&pair, ctx, kernel, n, X, n2, X2);
    if (status == THIELE_OK) {
        thi_matrix view = thi_matrix_view(K, n, second(&pair)->n, n);
        status = thi_kernel_fill(kernel, ctx, &pair.A, second(&pair), view, pair.symmetric);
        if (status == THIELE_OK && pair.symmetric) {
            thi_symmetrise(view);
        }
    }
    close_pair(&pair);
    return status;
}

thiele_status thiele_kernel_diagonal(const thiele_kernel *kernel, thiele_context *ctx, int64_t n, const double *X,
                                     double *diagonal)
{
    THI_NEED(ctx, kernel && ctx && (n < 1 || (X && diagonal)));
    thi_inputs A;
    thiele_status status = thi_inputs_make(&A, ctx, kernel, n, X);
    if (status == THIELE_OK) {
        status = thi_kernel_fill_diagonal(kernel, ctx, &A, diagonal);
    }
    thi_inputs_clear(&A);
    return status;
}

thiele_status thiele_kernel_adjoint(const thiele_kernel *kernel, thiele_context *ctx, int64_t n, const double *X,
                                    int64_t n2, const double *X2, const double *Kbar, double *theta_bar, double *X2_bar)
{
    THI_NEED(ctx, kernel && ctx && theta_bar && (n < 1 || (X && Kbar)));
    input_pair pair;
    thiele_status status = open_pair(&pair, ctx, kernel, n, X, n2, X2);
    if (status == THIELE_OK) {
        thi_matrix view = thi_matrix_view((double *)Kbar, n, second(&pair)->n, n);
        status = thi_kernel_pull(kernel, ctx, &pair.A, second(&pair), view, pair.symmetric, theta_bar, X2_bar);
    }
    close_pair(&pair);
    return status;
}
