/* Kernels of one input against many, leaf by leaf over all points; sums and products in one buffer a level. */
#include "kernel/anchors.h"

#include <string.h>

/* Leaves of distances between scaled inputs: differences are taken before they are scaled. */
static bool takes_inputs(const thi_leaf *leaf)
{
    return leaf->kind->family == THI_DISTANCE && leaf->kind->map->linear;
}

/* Z (stride x features, zeroed) and s of one leaf; u: features x n. */
static void lay_out(const thi_anchors *anchors, const thi_leaf *leaf, const double *X, double *u, double *Z, double *s)
{
    int D = anchors->kernel->dims, F = leaf->features;
    leaf->kind->map->forward(leaf, anchors->n, D, X, u);
    for (int f = 0; f < F; f++) {
        bool inputs = takes_inputs(leaf);
        s[f] = inputs ? 1.0 / thi_leaf_lengthscale(leaf, f) : 1.0;
        for (int64_t i = 0; i < anchors->n; i++) {
            Z[f * anchors->stride + i] = inputs ? X[i * D + leaf->dim[f]] : u[i * F + f];
        }
    }
}

thiele_status thi_anchors_make(thi_anchors *anchors, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                               const double *X)
{
    int64_t stride = thi_panel_length(n > 0 ? n : 1);
    int64_t features = 0, most = 0, levels = kernel->depth + 1;
    double *u = NULL;
    thiele_status status;
    *anchors = (thi_anchors){.kernel = kernel, .n = n, .stride = stride};
    for (int leaf = 0; leaf < kernel->leaves; leaf++) {
        features += kernel->leaf[leaf].features;
        most = kernel->leaf[leaf].features > most ? kernel->leaf[leaf].features : most;
    }
    size_t size = (size_t)(stride * (features + levels) + features + most);
    THI_TRY(thi_alloc(ctx, &anchors->own, size, sizeof(double)));
    THI_TRY(thi_alloc(ctx, &u, (size_t)(most * n), sizeof *u));
    double *Z = anchors->own, *s = Z + stride * (features + levels);
    anchors->buffer = Z + stride * features;
    anchors->features = s + features;
    for (int index = 0; index < kernel->leaves; index++) {
        const thi_leaf *leaf = &kernel->leaf[index];
        lay_out(anchors, leaf, X, u, Z, s);
        anchors->Z[index] = Z;
        anchors->s[index] = s;
        Z += stride * leaf->features;
        s += leaf->features;
    }
out:
    thi_free(u);
    if (status != THIELE_OK) {
        thi_anchors_clear(anchors);
    }
    return status;
}

void thi_anchors_clear(thi_anchors *anchors)
{
    thi_free(anchors->own);
    *anchors = (thi_anchors){0};
}

/* The features of x, or the inputs that a leaf looks at. */
static void take_point(const thi_anchors *anchors, const thi_leaf *leaf, const double *x)
{
    if (!takes_inputs(leaf)) {
        leaf->kind->map->forward(leaf, 1, anchors->kernel->dims, x, anchors->features);
        return;
    }
    for (int f = 0; f < leaf->features; f++) {
        anchors->features[f] = x[leaf->dim[f]];
    }
}

static void apply_profile(const thi_leaf *leaf, int64_t n, double *k)
{
    thi_profile_args args = {thi_leaf_variance(leaf), thi_leaf_extra(leaf), leaf->degree};
    thi_profiles()->fill[leaf->kind->profile](n, args, k, k);
}

/* Whether k(x, x) is wanted, and not k(points, x). */
typedef struct point {
    const double *x;
    bool diagonal;
} point;

static void leaf_fill(const thi_anchors *anchors, int index, point at, double *k)
{
    const thi_leaf *leaf = &anchors->kernel->leaf[index];
    const thi_vector_ops *vector = thi_vector();
    if (at.diagonal) {
        double *u = anchors->features;
        take_point(anchors, leaf, at.x);
        k[0] = leaf->kind->family == THI_DOT ? thi_blas_dot(leaf->features, u, u) : 0.0;
        apply_profile(leaf, 1, k);
        return;
    }
    if (leaf->kind->family == THI_WHITE) {
        memset(k, 0, (size_t)anchors->stride * sizeof *k);
        return;
    }
    take_point(anchors, leaf, at.x);
    if (leaf->kind->family == THI_DISTANCE) {
        vector->point_distances(anchors->stride, leaf->features, anchors->stride, anchors->Z[index], anchors->features,
                                anchors->s[index], k);
    } else {
        vector->point_products(anchors->stride, leaf->features, anchors->stride, anchors->Z[index], anchors->features,
                               k);
    }
    apply_profile(leaf, anchors->stride, k);
}

static void node_fill(const thi_anchors *anchors, const thi_node *node, point at, double *k, double *buffer)
{
    int64_t n = at.diagonal ? 1 : anchors->stride;
    if (node->type == THI_NODE_LEAF) {
        leaf_fill(anchors, node->leaf, at, k);
        return;
    }
    node_fill(anchors, node->child[0], at, k, buffer + anchors->stride);
    for (int c = 1; c < node->children; c++) {
        node_fill(anchors, node->child[c], at, buffer, buffer + anchors->stride);
        for (int64_t i = 0; i < n; i++) {
            k[i] = node->type == THI_NODE_SUM ? k[i] + buffer[i] : k[i] * buffer[i];
        }
    }
}

void thi_anchors_fill(const thi_anchors *anchors, const double *x, double *k)
{
    if (anchors->n == 0) {
        return;
    }
    node_fill(anchors, anchors->kernel->root, (point){x, false}, k, anchors->buffer);
    for (int64_t i = anchors->n; i < anchors->stride; i++) {
        k[i] = 0.0;
    }
}

double thi_anchors_diagonal(const thi_anchors *anchors, const double *x)
{
    double k;
    node_fill(anchors, anchors->kernel->root, (point){x, true}, &k, anchors->buffer);
    return k;
}
