/* Sums of natural parameters, their tree, and their bytes. */
#include "posterior/natural.h"

#include <math.h>
#include <string.h>

#include <zlib.h>

thiele_status thi_natural_open(thi_natural *sum, thiele_context *ctx, int64_t M)
{
    *sum = (thi_natural){0};
    thiele_status status = thi_matrix_alloc(&sum->T, ctx, M, M);
    return status == THIELE_OK ? thi_alloc(ctx, &sum->t, (size_t)M, sizeof *sum->t) : status;
}

void thi_natural_close(thi_natural *sum)
{
    thi_free(sum->T.data);
    thi_free(sum->t);
    *sum = (thi_natural){0};
}

void thi_natural_zero(thi_natural *sum)
{
    int64_t M = sum->T.rows;
    memset(sum->T.data, 0, (size_t)(M * M) * sizeof(double));
    memset(sum->t, 0, (size_t)M * sizeof(double));
    sum->constant = sum->rows = 0.0;
}

void thi_natural_mix(thi_natural *sum, double keep, const thi_natural *other, double gain)
{
    int64_t M = sum->T.rows;
    for (int64_t j = 0; j < M; j++) {
        double *own = sum->T.data + j * M;
        const double *added = other->T.data + j * M;
        for (int64_t i = j; i < M; i++) {
            own[i] = keep * own[i] + gain * added[i];
        }
        sum->t[j] = keep * sum->t[j] + gain * other->t[j];
    }
    sum->constant = keep * sum->constant + gain * other->constant;
    sum->rows = keep * sum->rows + gain * other->rows;
}

void thi_natural_copy(thi_natural *sum, const thi_natural *other)
{
    int64_t M = sum->T.rows;
    memcpy(sum->T.data, other->T.data, (size_t)(M * M) * sizeof(double));
    memcpy(sum->t, other->t, (size_t)M * sizeof(double));
    sum->constant = other->constant;
    sum->rows = other->rows;
    sum->basis = other->basis;
}

thiele_status thi_natural_root(const thi_natural *sum, thiele_context *ctx, thi_matrix C)
{
    thi_tri_copy(sum->T, C);
    for (int64_t i = 0; i < C.rows; i++) {
        C.data[i + i * C.ld] += 1.0;
    }
    return thi_chol(ctx, C);
}

thiele_status thi_natural_take(thi_natural *sum, thiele_context *ctx, thi_matrix C, const double *m)
{
    int64_t M = C.rows;
    thi_matrix T = thi_matrix_view(sum->T.data, M, M, sum->T.ld), t = thi_matrix_view(sum->t, M, 1, M);
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = 0; i < M; i++) {
            T.data[i + j * T.ld] = i <= j ? C.data[j + i * C.ld] : 0.0;
        }
    }
    thiele_status status = thi_tri_multiply(ctx, THI_N, C, T);
    for (int64_t i = 0; i < M; i++) {
        T.data[i + i * T.ld] -= 1.0;
    }
    memcpy(sum->t, m, (size_t)M * sizeof *m);
    thi_blas_trmm(THI_LEFT, THI_T, 1.0, C, t);
    thi_blas_trmm(THI_LEFT, THI_N, 1.0, C, t);
    return status;
}

/* --- the tree --------------------------------------------------------------------------------------------------------
 */

enum { LEVELS = 62 };

static int64_t first_block(const thi_natural_node *node)
{
    return node->index << node->level;
}

static int64_t end_block(const thi_natural_node *node)
{
    return (node->index + 1) << node->level;
}

void thi_natural_tree_open(thi_natural_tree *tree, int64_t M, uint64_t basis)
{
    *tree = (thi_natural_tree){.M = M, .basis = basis};
}

void thi_natural_tree_close(thi_natural_tree *tree)
{
    for (int i = 0; i < tree->count; i++) {
        thi_natural_close(&tree->node[i].sum);
    }
    thi_free(tree->node);
    *tree = (thi_natural_tree){0};
}

/* Siblings: the left one has an even number. */
static bool are_siblings(const thi_natural_node *a, const thi_natural_node *b)
{
    return a->level == b->level && a->index % 2 == 0 && b->index == a->index + 1;
}

/* Nodes i and i + 1 become their parent. */
static void join(thi_natural_tree *tree, int i)
{
    thi_natural_node *left = &tree->node[i], *right = left + 1;
    thi_natural_mix(&left->sum, 1.0, &right->sum, 1.0);
    thi_natural_close(&right->sum);
    left->level++;
    left->index /= 2;
    tree->count--;
    memmove(right, right + 1, (size_t)(tree->count - i - 1) * sizeof *right);
}

static void join_all(thi_natural_tree *tree, int i)
{
    for (bool joined = true; joined;) {
        joined = false;
        if (i + 1 < tree->count && are_siblings(&tree->node[i], &tree->node[i + 1])) {
            join(tree, i);
            joined = true;
        } else if (i > 0 && are_siblings(&tree->node[i - 1], &tree->node[i])) {
            join(tree, --i);
            joined = true;
        }
    }
}

/* Takes the sum of a node, which must overlap no other. */
static thiele_status insert(thi_natural_tree *tree, thiele_context *ctx, thi_natural_node *node)
{
    int at = 0;
    while (at < tree->count && first_block(&tree->node[at]) < first_block(node)) {
        at++;
    }
    if ((at > 0 && end_block(&tree->node[at - 1]) > first_block(node)) ||
        (at < tree->count && first_block(&tree->node[at]) < end_block(node))) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "block %lld was added before", (long long)first_block(node));
    }
    if (tree->count == tree->room) {
        int room = 2 * tree->room + 8;
        thiele_status status = thi_grow(ctx, &tree->node, (size_t)room, sizeof *tree->node);
        if (status != THIELE_OK) {
            return status;
        }
        tree->room = room;
    }
    memmove(tree->node + at + 1, tree->node + at, (size_t)(tree->count - at) * sizeof *tree->node);
    tree->node[at] = *node;
    tree->count++;
    node->sum = (thi_natural){0};
    join_all(tree, at);
    return THIELE_OK;
}

thiele_status thi_natural_tree_add(thi_natural_tree *tree, thiele_context *ctx, int64_t block, const thi_natural *sum)
{
    thi_natural_node node = {.index = block};
    thiele_status status;
    if (block < 0 || sum->T.rows != tree->M || sum->basis != tree->basis) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a sum over rows has a different basis from those before it");
    }
    THI_TRY(thi_natural_open(&node.sum, ctx, tree->M));
    thi_natural_copy(&node.sum, sum);
    THI_TRY(insert(tree, ctx, &node));
out:
    thi_natural_close(&node.sum);
    return status;
}

/*
 * From the last node to the first: what lies right of a node is complete by then, and joins it from the right, as it
 * would in a tree whose missing blocks are left out.
 */
thiele_status thi_natural_tree_sum(const thi_natural_tree *tree, thiele_context *ctx, thi_natural *sum)
{
    if (sum->T.rows != tree->M) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a sum over rows has a different basis from those before it");
    }
    thi_natural_zero(sum);
    sum->basis = tree->basis;
    for (int i = tree->count - 1; i >= 0; i--) {
        thi_natural_mix(sum, 1.0, &tree->node[i].sum, 1.0);
    }
    return THIELE_OK;
}

/* --- bytes -----------------------------------------------------------------------------------------------------------
 */

/* Little-endian, as the tensors of model files are: magic, M, basis, nodes; of each its level, index, rows, constant, t
 * and the lower triangle of T by columns; a CRC-32 of all that at the end. */
static const char MAGIC[8] = "thisum1";
enum { HEAD = 32, TAIL = 4, NODE_HEAD = 32 };

static double numbers_of(int64_t M)
{
    return (double)M + 0.5 * (double)M * ((double)M + 1.0);
}

static void put(unsigned char **to, const void *from, size_t length)
{
    memcpy(*to, from, length);
    *to += length;
}

static void take(const unsigned char **from, void *to, size_t length)
{
    memcpy(to, *from, length);
    *from += length;
}

static uint32_t checksum(const unsigned char *bytes, size_t length)
{
    return (uint32_t)crc32_z(0, bytes, length);
}

thiele_status thi_natural_tree_pack(const thi_natural_tree *tree, thiele_context *ctx, unsigned char **bytes,
                                    size_t *length)
{
    int64_t M = tree->M, nodes = tree->count;
    size_t each = NODE_HEAD + 8 * (size_t)numbers_of(M);
    *length = HEAD + (size_t)nodes * each + TAIL;
    thiele_status status = thi_alloc(ctx, bytes, *length, 1);
    if (status != THIELE_OK) {
        return status;
    }
    unsigned char *to = *bytes;
    put(&to, MAGIC, 8);
    put(&to, &M, 8);
    put(&to, &tree->basis, 8);
    put(&to, &nodes, 8);
    for (int i = 0; i < tree->count; i++) {
        const thi_natural_node *node = &tree->node[i];
        int64_t level = node->level;
        put(&to, &level, 8);
        put(&to, &node->index, 8);
        put(&to, &node->sum.rows, 8);
        put(&to, &node->sum.constant, 8);
        put(&to, node->sum.t, 8 * (size_t)M);
        for (int64_t j = 0; j < M; j++) {
            put(&to, node->sum.T.data + j + j * M, 8 * (size_t)(M - j));
        }
    }
    uint32_t sum = checksum(*bytes, *length - TAIL);
    put(&to, &sum, TAIL);
    return THIELE_OK;
}

static bool is_finite(const double *x, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        finite = finite && isfinite(x[i]);
    }
    return finite;
}

static thiele_status unpack_node(thi_natural_tree *tree, thiele_context *ctx, const unsigned char **from)
{
    int64_t M = tree->M, level;
    thi_natural_node node = {0};
    thi_natural *sum = &node.sum;
    thiele_status status;
    THI_TRY(thi_natural_open(sum, ctx, M));
    sum->basis = tree->basis;
    take(from, &level, 8);
    take(from, &node.index, 8);
    take(from, &sum->rows, 8);
    take(from, &sum->constant, 8);
    take(from, sum->t, 8 * (size_t)M);
    bool good = level >= 0 && level < LEVELS && node.index >= 0 && node.index < (INT64_C(1) << (LEVELS - level)) - 1 &&
                sum->rows >= 0.0 && isfinite(sum->rows) && isfinite(sum->constant) && is_finite(sum->t, M);
    for (int64_t j = 0; j < M; j++) {
        double *column = sum->T.data + j + j * M;
        take(from, column, 8 * (size_t)(M - j));
        good = good && is_finite(column, M - j) && column[0] >= 0.0;
    }
    if (!good) {
        status = thi_fail(ctx, THIELE_ERROR_FORMAT, "sums over rows make no sense: they are damaged or forged");
        goto out;
    }
    node.level = (int)level;
    THI_TRY(insert(tree, ctx, &node));
out:
    thi_natural_close(&node.sum);
    return status;
}

thiele_status thi_natural_tree_unpack(thi_natural_tree *tree, thiele_context *ctx, const unsigned char *bytes,
                                      size_t length)
{
    const unsigned char *from = bytes + 8;
    int64_t M = 0, nodes = 0;
    uint64_t basis = 0;
    uint32_t sum = 0;
    if (length >= HEAD + TAIL) {
        take(&from, &M, 8);
        take(&from, &basis, 8);
        take(&from, &nodes, 8);
        memcpy(&sum, bytes + length - TAIL, TAIL);
    }
    if (length < HEAD + TAIL || memcmp(bytes, MAGIC, 8) != 0 || sum != checksum(bytes, length - TAIL)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "these are not sums over rows, or they are damaged");
    }
    if (M != tree->M || basis != tree->basis) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "sums over rows have a different basis from those before them");
    }
    double wanted = HEAD + TAIL + (double)nodes * (NODE_HEAD + 8.0 * numbers_of(M));
    if (nodes < 0 || wanted != (double)length) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "sums over rows are cut short, or forged");
    }
    thiele_status status = THIELE_OK;
    for (int64_t i = 0; i < nodes && status == THIELE_OK; i++) {
        status = unpack_node(tree, ctx, &from);
    }
    return status;
}
