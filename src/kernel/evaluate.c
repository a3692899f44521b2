/*
 * Kernel matrices and their adjoints, by tiles of at most THI_TILE_ROWS x THI_TILE_COLS: a task is a block of columns,
 * its tiles are walked in order, and the tasks' shares of theta_bar are summed by a fixed tree. Composites are
 * evaluated a tile at a time, in buffers that stay in cache. A product of c parts pulls with c (c - 1) extra fills.
 */
#include <string.h>

#include "kernel/kernel.h"

thiele_status thi_inputs_make(thi_inputs *inputs, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                              const double *X)
{
    *inputs = (thi_inputs){.n = n, .X = X};
    size_t features = 0;
    for (int leaf = 0; leaf < kernel->leaves; leaf++) {
        features += (size_t)kernel->leaf[leaf].features;
    }
    thiele_status status = thi_alloc_bare(ctx, &inputs->features, features * (size_t)n, sizeof(double));
    if (status != THIELE_OK) {
        return status;
    }
    double *next = inputs->features;
    for (int index = 0; index < kernel->leaves; index++) {
        const thi_leaf *leaf = &kernel->leaf[index];
        leaf->kind->map->forward(leaf, n, kernel->dims, X, next);
        inputs->leaf[index] = next;
        next += (size_t)leaf->features * (size_t)n;
    }
    return THIELE_OK;
}

void thi_inputs_clear(thi_inputs *inputs)
{
    thi_free(inputs->features);
    *inputs = (thi_inputs){0};
}

/* What the tasks of one call share. */
typedef struct task {
    const thiele_kernel *kernel;
    const thi_inputs *A, *B;
    thi_matrix K;     /* filled, or Kbar */
    thi_matrix known; /* K beside Kbar, where it is known */
    bool symmetric;
    double *part;     /* task x parameters, or NULL */
    double *Bbar;     /* D x B.n, or NULL */
    double *diagonal; /* filled, or kbar */
    double *workspace;
    size_t per_thread, leaf_scratch;
    int tile_rows, tile_cols; /* of the largest tile of this call */
} task;

/* Doubles of one buffer. */
static size_t area(const thi_tile *tile)
{
    return (size_t)tile->max_rows * (size_t)tile->max_cols;
}

static thiele_status task_open(task *t, thiele_context *ctx, int64_t tasks, bool pull)
{
    const thiele_kernel *kernel = t->kernel;
    t->tile_rows = (int)thi_least(t->A->n, THI_TILE_ROWS);
    t->tile_cols = (int)thi_least(t->B->n, THI_TILE_COLS);
    for (int leaf = 0; leaf < kernel->leaves; leaf++) {
        size_t need = thi_leaf_scratch(&kernel->leaf[leaf], t->tile_rows, t->tile_cols);
        t->leaf_scratch = need > t->leaf_scratch ? need : t->leaf_scratch;
    }
    /* Pulling takes a buffer a level, and two more to weigh Kbar and to fill the other parts of a product. */
    t->per_thread = t->leaf_scratch + (size_t)t->tile_rows * (size_t)t->tile_cols * (size_t)(2 * kernel->depth + 2);
    thiele_status status = thi_alloc_bare(ctx, &t->workspace, t->per_thread * (size_t)ctx->threads, sizeof(double));
    if (status == THIELE_OK && pull) {
        status = thi_alloc(ctx, &t->part, (size_t)tasks * (size_t)kernel->parameters, sizeof(double));
    }
    return status;
}

static void task_close(task *t)
{
    thi_free(t->workspace);
    thi_free(t->part);
}

/* K of a node's tile. `buffer` has a tile for every level below. */
static void node_fill(const thi_node *node, const thi_tile *tile, thi_matrix K, double *buffer)
{
    if (node->type == THI_NODE_LEAF) {
        thi_leaf_fill(&tile->kernel->leaf[node->leaf], node->leaf, tile, K);
        return;
    }
    thi_matrix part = thi_matrix_view(buffer, tile->rows, tile->cols, tile->rows);
    node_fill(node->child[0], tile, K, buffer + area(tile));
    for (int c = 1; c < node->children; c++) {
        node_fill(node->child[c], tile, part, buffer + area(tile));
        for (int j = 0; j < tile->cols; j++) {
            double *to = K.data + j * K.ld;
            const double *from = part.data + j * part.ld;
            for (int i = 0; i < tile->rows; i++) {
                to[i] = node->type == THI_NODE_SUM ? to[i] + from[i] : to[i] * from[i];
            }
        }
    }
}

/* to = Kbar . product of all children but one */
static void product_without(const thi_node *node, int without, const thi_tile *tile, thi_matrix Kbar, thi_matrix to,
                            double *buffer)
{
    thi_matrix part = thi_matrix_view(buffer, tile->rows, tile->cols, tile->rows);
    for (int j = 0; j < tile->cols; j++) {
        memcpy(to.data + j * to.ld, Kbar.data + j * Kbar.ld, (size_t)tile->rows * sizeof *to.data);
    }
    for (int c = 0; c < node->children; c++) {
        if (c == without) {
            continue;
        }
        node_fill(node->child[c], tile, part, buffer + area(tile));
        for (int64_t i = 0; i < (int64_t)tile->rows * tile->cols; i++) {
            to.data[i] *= part.data[i];
        }
    }
}

static void node_pull(const thi_node *node, const thi_tile *tile, thi_matrix Kbar, double *theta_bar, double *Bbar,
                      double *buffer)
{
    if (node->type == THI_NODE_LEAF) {
        thi_leaf_pull(&tile->kernel->leaf[node->leaf], node->leaf, tile, Kbar, theta_bar, Bbar);
        return;
    }
    thi_matrix own = thi_matrix_view(buffer, tile->rows, tile->cols, tile->rows);
    for (int c = 0; c < node->children; c++) {
        if (node->type == THI_NODE_SUM) {
            node_pull(node->child[c], tile, Kbar, theta_bar, Bbar, buffer);
        } else {
            product_without(node, c, tile, Kbar, own, buffer + area(tile));
            node_pull(node->child[c], tile, own, theta_bar, Bbar, buffer + area(tile));
        }
    }
}

/* Flops of a fill of rows x cols entries: the GEMM, and a profile that counts as some 40; pulling takes three times
 * that. */
static double fill_flops(const thiele_kernel *kernel, int64_t rows, int64_t cols)
{
    double flops = 0.0;
    for (int leaf = 0; leaf < kernel->leaves; leaf++) {
        flops += 2.0 * kernel->leaf[leaf].features + 40.0;
    }
    return flops * (double)rows * (double)cols;
}

static int64_t blocks_of(int64_t n, int size)
{
    return (n + size - 1) / size;
}

static thi_tile tile_at(const task *t, int thread, int64_t row, int64_t col)
{
    return (thi_tile){.kernel = t->kernel,
                      .A = t->A,
                      .B = t->B,
                      .row = row,
                      .col = col,
                      .rows = (int)thi_least(t->A->n - row, THI_TILE_ROWS),
                      .cols = (int)thi_least(t->B->n - col, THI_TILE_COLS),
                      .max_rows = t->tile_rows,
                      .max_cols = t->tile_cols,
                      .same = t->symmetric,
                      .scratch = t->workspace + (size_t)thread * t->per_thread};
}

static thiele_status fill_columns(void *arg, int64_t block, int thread)
{
    const task *t = arg;
    int64_t col = block * THI_TILE_COLS;
    for (int64_t row = t->symmetric ? col : 0; row < t->A->n; row += THI_TILE_ROWS) {
        thi_tile tile = tile_at(t, thread, row, col);
        node_fill(t->kernel->root, &tile, thi_matrix_block(t->K, row, col, tile.rows, tile.cols),
                  tile.scratch + t->leaf_scratch);
    }
    return THIELE_OK;
}

thiele_status thi_kernel_fill(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                              const thi_inputs *B, thi_matrix K, bool symmetric)
{
    task t = {.kernel = kernel, .A = A, .B = B, .K = K, .symmetric = symmetric};
    int64_t tasks = blocks_of(B->n, THI_TILE_COLS);
    thiele_status status = task_open(&t, ctx, tasks, false);
    if (status == THIELE_OK) {
        status = thi_parallel_work(ctx, tasks, fill_flops(kernel, A->n, B->n), fill_columns, &t);
    }
    task_close(&t);
    return status;
}

/*
 * The tile of a symmetric Kbar of which the lower triangle is given. Without input gradients only tiles on and below
 * the diagonal are visited, so entries below it count twice and those above not at all; with them all tiles are.
 */
static thi_matrix symmetric_tile(const task *t, const thi_tile *tile, double *buffer)
{
    bool mirror = t->Bbar != NULL;
    for (int j = 0; j < tile->cols; j++) {
        for (int i = 0; i < tile->rows; i++) {
            int64_t r = tile->row + i;
            int64_t c = tile->col + j;
            double below = t->K.data[r >= c ? r + c * t->K.ld : c + r * t->K.ld];
            double weight = r > c ? 2.0 : (r == c ? 1.0 : 0.0);
            buffer[i + j * tile->rows] = mirror ? below : weight * below;
        }
    }
    return thi_matrix_view(buffer, tile->rows, tile->cols, tile->rows);
}

/* The values of a tile of a squared exponential, where they are known; of symmetric ones those above the diagonal. */
static thi_matrix known_tile(const task *t, const thi_tile *tile, double *buffer)
{
    thi_matrix K = t->known;
    const thi_node *root = t->kernel->root;
    const thi_leaf *leaf = &t->kernel->leaf[root->type == THI_NODE_LEAF ? root->leaf : 0];
    if (K.data == NULL || root->type != THI_NODE_LEAF || leaf->kind->profile != THI_PROFILE_SE) {
        return (thi_matrix){0};
    }
    if (!t->symmetric) {
        return thi_matrix_block(K, tile->row, tile->col, tile->rows, tile->cols);
    }
    for (int j = 0; j < tile->cols; j++) {
        int64_t c = tile->col + j;
        for (int i = 0; i < tile->rows; i++) {
            int64_t r = tile->row + i;
            buffer[i + j * tile->rows] = r == c ? thi_leaf_variance(leaf) : K.data[r < c ? r + c * K.ld : c + r * K.ld];
        }
    }
    return thi_matrix_view(buffer, tile->rows, tile->cols, tile->rows);
}

static thiele_status pull_columns(void *arg, int64_t block, int thread)
{
    const task *t = arg;
    int D = t->kernel->dims;
    int64_t col = block * THI_TILE_COLS;
    double *theta_bar = t->part + block * t->kernel->parameters;
    double *Bbar = t->Bbar != NULL ? t->Bbar + col * D : NULL;
    int64_t first = t->symmetric && Bbar == NULL ? col : 0;
    for (int64_t row = first; row < t->A->n; row += THI_TILE_ROWS) {
        thi_tile tile = tile_at(t, thread, row, col);
        double *buffer = tile.scratch + t->leaf_scratch;
        tile.K = known_tile(t, &tile, buffer + area(&tile));
        thi_matrix Kbar =
            t->symmetric ? symmetric_tile(t, &tile, buffer) : thi_matrix_block(t->K, row, col, tile.rows, tile.cols);
        node_pull(t->kernel->root, &tile, Kbar, theta_bar, Bbar, buffer + area(&tile));
    }
    return THIELE_OK;
}

static thiele_status pull(task t, thiele_context *ctx, double *theta_bar, double *Bbar)
{
    const thiele_kernel *kernel = t.kernel;
    const thi_inputs *A = t.A, *B = t.B;
    int64_t tasks = blocks_of(B->n, THI_TILE_COLS);
    size_t size = (size_t)kernel->dims * (size_t)B->n;
    thiele_status status = task_open(&t, ctx, tasks, true);
    if (status == THIELE_OK && Bbar != NULL) {
        status = thi_alloc(ctx, &t.Bbar, size, sizeof(double));
    }
    if (status == THIELE_OK) {
        status = thi_parallel_work(ctx, tasks, 3.0 * fill_flops(kernel, A->n, B->n), pull_columns, &t);
    }
    if (status == THIELE_OK) {
        thi_reduce(tasks, kernel->parameters, t.part, theta_bar);
        /* Both arguments move together, and Kbar is symmetric: twice the share of the second one. */
        for (size_t i = 0; Bbar != NULL && i < size; i++) {
            Bbar[i] += (t.symmetric ? 2.0 : 1.0) * t.Bbar[i];
        }
    }
    thi_free(t.Bbar);
    task_close(&t);
    return status;
}

thiele_status thi_kernel_pull(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                              const thi_inputs *B, thi_matrix Kbar, bool symmetric, double *theta_bar, double *Bbar)
{
    return pull((task){.kernel = kernel, .A = A, .B = B, .K = Kbar, .symmetric = symmetric}, ctx, theta_bar, Bbar);
}

thiele_status thi_kernel_pull_known(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                                    const thi_inputs *B, thi_matrix Kbar, thi_matrix K, bool symmetric,
                                    double *theta_bar, double *Bbar)
{
    task t = {.kernel = kernel, .A = A, .B = B, .K = Kbar, .symmetric = symmetric, .known = K};
    return pull(t, ctx, theta_bar, Bbar);
}

static void node_diagonal(const thi_node *node, const thi_tile *tile, double *diagonal, double *buffer)
{
    if (node->type == THI_NODE_LEAF) {
        thi_leaf_diagonal(&tile->kernel->leaf[node->leaf], node->leaf, tile, diagonal);
        return;
    }
    node_diagonal(node->child[0], tile, diagonal, buffer + area(tile));
    for (int c = 1; c < node->children; c++) {
        node_diagonal(node->child[c], tile, buffer, buffer + area(tile));
        for (int i = 0; i < tile->rows; i++) {
            diagonal[i] = node->type == THI_NODE_SUM ? diagonal[i] + buffer[i] : diagonal[i] * buffer[i];
        }
    }
}

static void node_pull_diagonal(const thi_node *node, const thi_tile *tile, const double *kbar, double *theta_bar,
                               double *Abar, double *buffer)
{
    if (node->type == THI_NODE_LEAF) {
        thi_leaf_pull_diagonal(&tile->kernel->leaf[node->leaf], node->leaf, tile, kbar, theta_bar, Abar);
        return;
    }
    for (int c = 0; c < node->children; c++) {
        if (node->type == THI_NODE_SUM) {
            node_pull_diagonal(node->child[c], tile, kbar, theta_bar, Abar, buffer);
            continue;
        }
        double *own = buffer;
        double *part = buffer + area(tile);
        memcpy(own, kbar, (size_t)tile->rows * sizeof *own);
        for (int other = 0; other < node->children; other++) {
            if (other != c) {
                node_diagonal(node->child[other], tile, part, part + area(tile));
                for (int i = 0; i < tile->rows; i++) {
                    own[i] *= part[i];
                }
            }
        }
        node_pull_diagonal(node->child[c], tile, own, theta_bar, Abar, buffer + area(tile));
    }
}

static thiele_status diagonal_rows(void *arg, int64_t block, int thread)
{
    const task *t = arg;
    thi_tile tile = tile_at(t, thread, block * THI_TILE_ROWS, 0);
    node_diagonal(t->kernel->root, &tile, t->diagonal + tile.row, tile.scratch + t->leaf_scratch);
    return THIELE_OK;
}

thiele_status thi_kernel_fill_diagonal(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                                       double *diagonal)
{
    task t = {.kernel = kernel, .A = A, .B = A, .symmetric = true, .diagonal = diagonal};
    int64_t tasks = blocks_of(A->n, THI_TILE_ROWS);
    thiele_status status = task_open(&t, ctx, tasks, false);
    if (status == THIELE_OK) {
        status = thi_parallel_work(ctx, tasks, fill_flops(kernel, A->n, 1), diagonal_rows, &t);
    }
    task_close(&t);
    return status;
}

static thiele_status pull_diagonal_rows(void *arg, int64_t block, int thread)
{
    const task *t = arg;
    thi_tile tile = tile_at(t, thread, block * THI_TILE_ROWS, 0);
    double *Abar = t->Bbar != NULL ? t->Bbar + tile.row * t->kernel->dims : NULL;
    node_pull_diagonal(t->kernel->root, &tile, t->diagonal + tile.row, t->part + block * t->kernel->parameters, Abar,
                       tile.scratch + t->leaf_scratch);
    return THIELE_OK;
}

thiele_status thi_kernel_pull_diagonal(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                                       const double *kbar, double *theta_bar, double *Abar)
{
    task t = {.kernel = kernel, .A = A, .B = A, .symmetric = true, .diagonal = (double *)kbar, .Bbar = Abar};
    int64_t tasks = blocks_of(A->n, THI_TILE_ROWS);
    thiele_status status = task_open(&t, ctx, tasks, true);
    if (status == THIELE_OK) {
        status = thi_parallel_work(ctx, tasks, 3.0 * fill_flops(kernel, A->n, 1), pull_diagonal_rows, &t);
    }
    if (status == THIELE_OK) {
        thi_reduce(tasks, kernel->parameters, t.part, theta_bar);
    }
    task_close(&t);
    return status;
}
