/* Filling, factoring and solving; exact.h says how, exact_pull.cu has the gradient. */
#include "cuda/exact.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cuda/plugin.h"

/* Threads of a block, one row each, and the columns that each walks through. */
enum { ROWS = 128, COLUMNS = 16 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static unsigned blocks_of(int64_t n, int64_t size)
{
    return (unsigned)((n + size - 1) / size);
}

int64_t thi_cuda_width(int64_t n)
{
    int64_t width = (n / 8 + TILE - 1) / TILE * TILE;
    return width < TILE ? (int64_t)TILE : least(width, PANEL);
}

/* --- workspace ---------------------------------------------------------------------------------------------------- */

static thiele_status allocate(thi_cuda_exact *e, thi_device_said *said)
{
    size_t n = (size_t)e->n, width = (size_t)thi_cuda_width(e->n), most = (size_t)e->targets;
    most = most > width ? most : width; /* columns that are solved with at a time */
    THI_CUDA_TRY(thi_cuda_doubles(&e->L, n * n, said));
    THI_CUDA_TRY(thi_cuda_doubles(&e->T, (n + TILE) * TILE, said));
    THI_CUDA_TRY(thi_cuda_doubles(&e->alpha, n * (size_t)e->targets, said));
    THI_CUDA_TRY(thi_cuda_doubles(&e->panel, n * width, said));
    THI_CUDA_TRY(thi_cuda_doubles(&e->room, (n > TILE ? n : (size_t)TILE) * most, said));
    return THIELE_OK;
}

thiele_status thi_cuda_exact_open(void **self, void *session, int64_t n, int targets, thi_device_said *said)
{
    thi_cuda_exact *e = new (std::nothrow) thi_cuda_exact();
    *self = NULL;
    if (e == NULL) {
        CUDA_TRY(cudaErrorMemoryAllocation);
    }
    e->session = (thi_session *)session;
    e->n = n;
    e->targets = targets;
    thiele_status status = allocate(e, said);
    if (status != THIELE_OK) {
        thi_cuda_exact_close(e);
        return status;
    }
    *self = e;
    return THIELE_OK;
}

void thi_cuda_exact_close(void *self)
{
    thi_cuda_exact *e = (thi_cuda_exact *)self;
    if (e != NULL) {
        double *const held[] = {e->L, e->T, e->alpha, e->u, e->panel, e->room};
        for (double *block : held) {
            cudaFree(block);
        }
        delete e;
    }
}

/* --- K and L ------------------------------------------------------------------------------------------------------ */

/* The lower triangle of K + add I; a block that lies above it ends at once. */
__global__ void fill(thi_entry_kernel kernel, thi_entry_rows rows, double add, double *K)
{
    int64_t i = (int64_t)blockIdx.x * ROWS + threadIdx.x, first = (int64_t)blockIdx.y * COLUMNS;
    int64_t end = first + COLUMNS < i + 1 ? first + COLUMNS : i + 1;
    if (i >= rows.n) {
        return;
    }
    for (int64_t j = first; j < end; j++) {
        double k = thi_entry_value(&kernel, &rows, i, j, -1, NULL, NULL);
        K[i + j * rows.n] = i == j ? k + add : k;
    }
}

__global__ void take_diagonal(int64_t n, const double *A, double *diagonal)
{
    int64_t i = (int64_t)blockIdx.x * ROWS + threadIdx.x;
    if (i < n) {
        diagonal[i] = A[i + i * n];
    }
}

/* Zeros above the diagonal, for predictors; a column for each block. */
__global__ void clear_above(int64_t n, double *A)
{
    int64_t j = blockIdx.x;
    for (int64_t i = threadIdx.x; i < j; i += ROWS) {
        A[i + j * n] = 0.0;
    }
}

/* Tiles of the identity, side by side. */
__global__ void fill_identities(int64_t n, double *T)
{
    int64_t j = blockIdx.x;
    for (int64_t i = threadIdx.x; i < TILE; i += ROWS) {
        T[i + j * TILE] = i == j % TILE ? 1.0 : 0.0;
    }
}

static thiele_status take_features(thi_cuda_exact *e, const thi_entry_kernel *kernel, const double *u,
                                   thi_device_said *said)
{
    int features = 0;
    for (int l = 0; l < kernel->leaves; l++) {
        features += kernel->leaf[l].features;
    }
    size_t count = (size_t)e->n * (size_t)features;
    if (e->u == NULL || features != e->features) {
        cudaFree(e->u);
        e->u = NULL;
        THI_CUDA_TRY(thi_cuda_doubles(&e->u, count, said));
        e->features = features;
    }
    CUDA_TRY(cudaMemcpy(e->u, u, count * sizeof *u, cudaMemcpyHostToDevice));
    return THIELE_OK;
}

/* What cuSOLVER works in. */
struct workspace {
    double *device;
    void *host;
    int *info;
};

static thiele_status factor_in(thi_cuda_exact *e, workspace *w, int64_t *bad, thi_device_said *said)
{
    thi_session *s = e->session;
    size_t device, host;
    int info;
    CUDA_TRY(cusolverDnXpotrf_bufferSize(s->solver, s->params, CUBLAS_FILL_MODE_LOWER, e->n, CUDA_R_64F, e->L, e->n,
                                         CUDA_R_64F, &device, &host));
    THI_CUDA_TRY(thi_cuda_doubles(&w->device, device / sizeof(double) + 1, said));
    CUDA_TRY(cudaMalloc((void **)&w->info, sizeof *w->info));
    w->host = malloc(host + 1);
    if (w->host == NULL) {
        CUDA_TRY(cudaErrorMemoryAllocation);
    }
    CUDA_TRY(cusolverDnXpotrf(s->solver, s->params, CUBLAS_FILL_MODE_LOWER, e->n, CUDA_R_64F, e->L, e->n, CUDA_R_64F,
                              w->device, device, w->host, host, w->info));
    CUDA_TRY(cudaMemcpy(&info, w->info, sizeof info, cudaMemcpyDeviceToHost));
    *bad = info;
    return THIELE_OK;
}

static thiele_status factor(thi_cuda_exact *e, int64_t *bad, thi_device_said *said)
{
    workspace w = workspace();
    thiele_status status = factor_in(e, &w, bad, said);
    cudaFree(w.device);
    cudaFree(w.info);
    free(w.host);
    return status;
}

/* The inverse of every diagonal tile. */
static thiele_status invert_tiles(thi_cuda_exact *e, thi_device_said *said)
{
    const double one = 1.0;
    fill_identities<<<blocks_of(e->n, TILE) * TILE, ROWS>>>(e->n, e->T);
    CUDA_TRY(cudaGetLastError());
    for (int64_t at = 0; at < e->n; at += TILE) {
        int rows = (int)least(TILE, e->n - at);
        CUDA_TRY(cublasDtrsm_64(e->session->blas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                                CUBLAS_DIAG_NON_UNIT, rows, rows, &one, e->L + at + at * e->n, e->n, e->T + at * TILE,
                                TILE));
    }
    return THIELE_OK;
}

/* log|L L'| from its diagonal, which the panel has room for. */
static thiele_status take_log_det(thi_cuda_exact *e, double *log_det, thi_device_said *said)
{
    double *diagonal = (double *)malloc((size_t)e->n * sizeof *diagonal);
    if (diagonal == NULL) {
        CUDA_TRY(cudaErrorMemoryAllocation);
    }
    take_diagonal<<<blocks_of(e->n, ROWS), ROWS>>>(e->n, e->L, e->panel);
    cudaError_t error = cudaMemcpy(diagonal, e->panel, (size_t)e->n * sizeof *diagonal, cudaMemcpyDeviceToHost);
    *log_det = 0.0;
    for (int64_t i = 0; i < e->n; i++) {
        *log_det += 2.0 * log(diagonal[i]);
    }
    free(diagonal);
    CUDA_TRY(error);
    return THIELE_OK;
}

thiele_status thi_cuda_exact_factor(void *self, const thi_entry_kernel *kernel, const double *u, double add,
                                    int64_t *bad, double *log_det, thi_device_said *said)
{
    thi_cuda_exact *e = (thi_cuda_exact *)self;
    CUDA_TRY(cudaSetDevice(e->session->card));
    THI_CUDA_TRY(take_features(e, kernel, u, said));
    dim3 grid(blocks_of(e->n, ROWS), blocks_of(e->n, COLUMNS));
    fill<<<grid, ROWS>>>(*kernel, thi_entry_rows{e->n, e->u}, add, e->L);
    CUDA_TRY(cudaGetLastError());
    THI_CUDA_TRY(factor(e, bad, said));
    if (*bad != 0) {
        return THIELE_OK;
    }
    THI_CUDA_TRY(invert_tiles(e, said));
    return take_log_det(e, log_det, said);
}

/* --- solves ------------------------------------------------------------------------------------------------------- */

/* X's rows of a tile = T or T' times them; room keeps them too. */
static thiele_status apply_tile(thi_cuda_exact *e, cublasOperation_t op, int64_t at, double *X, int64_t ld,
                                int64_t columns, double *room, thi_device_said *said)
{
    const double one = 1.0, zero = 0.0;
    int64_t rows = least(TILE, e->n - at);
    CUDA_TRY(cublasDgemm_64(e->session->blas, op, CUBLAS_OP_N, rows, columns, rows, &one, e->T + at * TILE, TILE, X, ld,
                            &zero, room, TILE));
    CUDA_TRY(cudaMemcpy2DAsync(X, (size_t)ld * sizeof *X, room, TILE * sizeof *room, (size_t)rows * sizeof *X,
                               (size_t)columns, cudaMemcpyDeviceToDevice));
    return THIELE_OK;
}

thiele_status thi_cuda_forward(thi_cuda_exact *e, int64_t first, double *X, int64_t ld, int64_t columns, double *room,
                               thi_device_said *said)
{
    const double one = 1.0, minus = -1.0;
    for (int64_t at = first; at < e->n; at += TILE) {
        int64_t rows = least(TILE, e->n - at), below = e->n - at - rows;
        THI_CUDA_TRY(apply_tile(e, CUBLAS_OP_N, at, X + at - first, ld, columns, room, said));
        if (below > 0) {
            CUDA_TRY(cublasDgemm_64(e->session->blas, CUBLAS_OP_N, CUBLAS_OP_N, below, columns, rows, &minus,
                                    e->L + at + rows + at * e->n, e->n, room, TILE, &one, X + at + rows - first, ld));
        }
    }
    return THIELE_OK;
}

thiele_status thi_cuda_backward(thi_cuda_exact *e, int64_t first, double *X, int64_t ld, int64_t columns, double *room,
                                thi_device_said *said)
{
    const double one = 1.0, minus = -1.0;
    for (int64_t at = (e->n - 1) / TILE * TILE; at >= first; at -= TILE) {
        int64_t rows = least(TILE, e->n - at);
        THI_CUDA_TRY(apply_tile(e, CUBLAS_OP_T, at, X + at - first, ld, columns, room, said));
        if (at > first) {
            CUDA_TRY(cublasDgemm_64(e->session->blas, CUBLAS_OP_T, CUBLAS_OP_N, at - first, columns, rows, &minus,
                                    e->L + at + first * e->n, e->n, room, TILE, &one, X, ld));
        }
    }
    return THIELE_OK;
}

thiele_status thi_cuda_exact_solve(void *self, double *alpha, double *fit, thi_device_said *said)
{
    thi_cuda_exact *e = (thi_cuda_exact *)self;
    size_t count = (size_t)e->n * (size_t)e->targets, bytes = count * sizeof *alpha;
    CUDA_TRY(cudaSetDevice(e->session->card));
    CUDA_TRY(cudaMemcpy(e->alpha, alpha, bytes, cudaMemcpyHostToDevice));
    THI_CUDA_TRY(thi_cuda_forward(e, 0, e->alpha, e->n, e->targets, e->room, said));
    CUDA_TRY(cudaMemcpy(alpha, e->alpha, bytes, cudaMemcpyDeviceToHost));
    *fit = 0.0;
    for (size_t i = 0; i < count; i++) {
        *fit += alpha[i] * alpha[i];
    }
    THI_CUDA_TRY(thi_cuda_backward(e, 0, e->alpha, e->n, e->targets, e->room, said));
    CUDA_TRY(cudaMemcpy(alpha, e->alpha, bytes, cudaMemcpyDeviceToHost));
    return THIELE_OK;
}

thiele_status thi_cuda_exact_factor_out(void *self, double *L, thi_device_said *said)
{
    thi_cuda_exact *e = (thi_cuda_exact *)self;
    CUDA_TRY(cudaSetDevice(e->session->card));
    clear_above<<<(unsigned)e->n, ROWS>>>(e->n, e->L);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaMemcpy(L, e->L, (size_t)e->n * (size_t)e->n * sizeof *L, cudaMemcpyDeviceToHost));
    return THIELE_OK;
}
