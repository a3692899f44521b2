/*
 * The gradient of the log evidence without a second matrix: columns of K^-1 a panel at a time, of which the rows from
 * the panel down are enough, and Kbar = (alpha alpha' - K^-1)/2 pulled back to features there and then, with k computed
 * again. 2 n^3/3 flops in products; all sums are taken in one order, so that bits are the same from run to run.
 */
#include "cuda/exact.h"

#include <cstring>

#include "cuda/plugin.h"

/* Threads of a block; the columns that a thread of `weigh` walks through; features that are summed at a time. */
enum { THREADS = 128, WALK = 16, SOME = 8 };
/* What `weigh` sums: adjoints of log variance and log shape of a leaf, and of what was added to the diagonal. */
enum { VARIANCE, SHAPE, ADDED, SUMS };

/* A panel: columns first .. first + columns - 1 of the inverse, rows from `first` on, of which there are `rows`. */
struct panel {
    int64_t first, rows, columns;
    double *inverse, *weight; /* rows x columns each */
};

/* Room for sums, on the card. */
struct sums {
    double *part;  /* SUMS for each block of `weigh` */
    double *leaf;  /* SUMS for each leaf */
    double *u_bar; /* as u */
};

static unsigned blocks_of(int64_t n, int64_t size)
{
    return (unsigned)((n + size - 1) / size);
}

/* The identity at the top, zeros below. */
__global__ void fill_unit(panel p)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t j = blockIdx.y;
    if (i < p.rows) {
        p.inverse[i + j * p.rows] = i == j ? 1.0 : 0.0;
    }
}

/* The sum over a block's threads, by a tree. */
__device__ static double sum_of_block(double mine)
{
    __shared__ double part[THREADS];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
        __syncthreads();
    }
    double sum = part[0];
    __syncthreads();
    return sum;
}

struct problem {
    thi_entry_rows rows;
    int targets;
    const double *alpha;
};

/* weight = dF/dt of the leaf's argument, entry by entry of the lower triangle, and the block's sums. */
__global__ void weigh(thi_entry_kernel kernel, int which, problem of, panel p, double *part)
{
    double sum[SUMS] = {0.0, 0.0, 0.0};
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = p.first + at;
    int64_t first = (int64_t)blockIdx.y * WALK, end = first + WALK < p.columns ? first + WALK : p.columns;
    for (int64_t c = first; at < p.rows && c < end; c++) {
        int64_t j = p.first + c, to = at + c * p.rows;
        thi_jet jet = thi_jet_of(0.0, 0.0, 0.0);
        double slope;
        if (i < j) {
            p.weight[to] = 0.0;
            continue;
        }
        double kbar = thi_entry_adjoint(of.rows.n, of.targets, of.alpha, p.inverse[to], i, j);
        thi_entry_value(&kernel, &of.rows, i, j, which, &jet, &slope);
        p.weight[to] = kbar * slope * jet.dk;
        sum[VARIANCE] += kbar * slope * jet.k;
        sum[SHAPE] += kbar * slope * jet.dshape;
        sum[ADDED] += i == j ? kbar : 0.0;
    }
    int64_t block = blockIdx.x + (int64_t)blockIdx.y * gridDim.x;
    for (int s = 0; s < SUMS; s++) {
        double whole = sum_of_block(sum[s]);
        if (threadIdx.x == 0) {
            part[s + block * SUMS] = whole;
        }
    }
}

/* Adds the sums of all blocks to those of the leaf. */
__global__ void add_parts(int64_t blocks, const double *part, double *leaf)
{
    for (int s = 0; s < SUMS; s++) {
        double sum = 0.0;
        for (int64_t b = threadIdx.x; b < blocks; b += THREADS) {
            sum += part[s + b * SUMS];
        }
        sum = sum_of_block(sum);
        if (threadIdx.x == 0) {
            leaf[s] += sum;
        }
    }
}

/* dt/du_i of a pair over the feature of the other row: 2 (u_i - u_j) of a distance, u_j of a product. */
__device__ static double push(bool distance, double own, double other)
{
    return distance ? 2.0 * (own - other) : other;
}

/* u_bar of the panel's rows, which the columns push: a row for each thread, `some` features from u on. */
__global__ void pull_rows(panel p, bool distance, int some, int64_t n, const double *u, double *u_bar)
{
    double sum[SOME] = {0.0}, own[SOME] = {0.0};
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, i = p.first + at;
    if (at >= p.rows) {
        return;
    }
    for (int f = 0; f < SOME; f++) {
        own[f] = f < some ? u[i + f * n] : 0.0;
    }
    int64_t end = at + 1 < p.columns ? at + 1 : p.columns;
    for (int64_t c = 0; c < end; c++) {
        double weight = p.weight[at + c * p.rows];
        for (int f = 0; f < SOME; f++) {
            double other = f < some ? u[p.first + c + f * n] : 0.0;
            sum[f] += weight * push(distance, own[f], other);
        }
    }
    for (int f = 0; f < SOME; f++) {
        if (f < some) {
            u_bar[i + f * n] += sum[f];
        }
    }
}

/* The same of the panel's columns, which the rows push: a column for each block. */
__global__ void pull_columns(panel p, bool distance, int some, int64_t n, const double *u, double *u_bar)
{
    double sum[SOME] = {0.0}, own[SOME] = {0.0};
    int64_t c = blockIdx.x, j = p.first + c;
    for (int f = 0; f < SOME; f++) {
        own[f] = f < some ? u[j + f * n] : 0.0;
    }
    for (int64_t at = c + threadIdx.x; at < p.rows; at += THREADS) {
        double weight = p.weight[at + c * p.rows];
        for (int f = 0; f < SOME; f++) {
            double other = f < some ? u[p.first + at + f * n] : 0.0;
            sum[f] += weight * push(distance, own[f], other);
        }
    }
    for (int f = 0; f < some; f++) {
        double whole = sum_of_block(sum[f]);
        if (threadIdx.x == 0) {
            u_bar[j + f * n] += whole;
        }
    }
}

/* The squares of the panel's columns. */
__global__ void square_columns(panel p, double *squares)
{
    int64_t c = blockIdx.x;
    double sum = 0.0;
    for (int64_t at = threadIdx.x; at < p.rows; at += THREADS) {
        double x = p.inverse[at + c * p.rows];
        sum += x * x;
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) {
        squares[c] = sum;
    }
}

static panel panel_at(const thi_cuda_exact *e, int64_t first)
{
    int64_t width = thi_cuda_width(e->n), rows = e->n - first;
    panel p = {first, rows, rows < width ? rows : width, e->panel, e->room};
    return p;
}

/* Columns of L^-1. */
static thiele_status solve_panel(thi_cuda_exact *e, const panel *p, thi_device_said *said)
{
    dim3 grid(blocks_of(p->rows, THREADS), (unsigned)p->columns);
    fill_unit<<<grid, THREADS>>>(*p);
    CUDA_TRY(cudaGetLastError());
    return thi_cuda_forward(e, p->first, p->inverse, p->rows, p->columns, e->room, said);
}

static thiele_status pull_leaf(thi_cuda_exact *e, const thi_entry_kernel *kernel, int which, const panel *p,
                               const sums *to, thi_device_said *said)
{
    const thi_entry_leaf *leaf = &kernel->leaf[which];
    problem of = {{e->n, e->u}, e->targets, e->alpha};
    dim3 grid(blocks_of(p->rows, THREADS), blocks_of(p->columns, WALK));
    bool distance = leaf->family == THI_DISTANCE;
    weigh<<<grid, THREADS>>>(*kernel, which, of, *p, to->part);
    add_parts<<<1, THREADS>>>((int64_t)grid.x * grid.y, to->part, to->leaf + SUMS * which);
    for (int f = 0; f < leaf->features; f += SOME) {
        int some = leaf->features - f < SOME ? leaf->features - f : SOME;
        int64_t at = (leaf->first + f) * e->n;
        pull_rows<<<grid.x, THREADS>>>(*p, distance, some, e->n, e->u + at, to->u_bar + at);
        pull_columns<<<(unsigned)p->columns, THREADS>>>(*p, distance, some, e->n, e->u + at, to->u_bar + at);
    }
    CUDA_TRY(cudaGetLastError());
    return THIELE_OK;
}

static thiele_status pull_panels(thi_cuda_exact *e, const thi_entry_kernel *kernel, sums *to, thi_device_said *said)
{
    int64_t width = thi_cuda_width(e->n);
    size_t blocks = (size_t)blocks_of(e->n, THREADS) * blocks_of(width, WALK);
    size_t features = (size_t)e->n * (size_t)e->features, leaves = SUMS * (size_t)kernel->leaves;
    THI_CUDA_TRY(thi_cuda_doubles(&to->part, SUMS * blocks, said));
    THI_CUDA_TRY(thi_cuda_doubles(&to->leaf, leaves, said));
    THI_CUDA_TRY(thi_cuda_doubles(&to->u_bar, features, said));
    CUDA_TRY(cudaMemset(to->leaf, 0, leaves * sizeof(double)));
    CUDA_TRY(cudaMemset(to->u_bar, 0, features * sizeof(double)));
    for (int64_t first = 0; first < e->n; first += width) {
        panel p = panel_at(e, first);
        THI_CUDA_TRY(solve_panel(e, &p, said));
        THI_CUDA_TRY(thi_cuda_backward(e, first, p.inverse, p.rows, p.columns, e->room, said));
        for (int l = 0; l < kernel->leaves; l++) {
            THI_CUDA_TRY(pull_leaf(e, kernel, l, &p, to, said));
        }
    }
    return THIELE_OK;
}

thiele_status thi_cuda_exact_pull(void *self, const thi_entry_kernel *kernel, double *u_bar, double *leaf_bar,
                                  double *add_bar, thi_device_said *said)
{
    thi_cuda_exact *e = (thi_cuda_exact *)self;
    double own[SUMS * THI_ENTRY_LEAVES] = {0.0};
    sums to = {NULL, NULL, NULL};
    CUDA_TRY(cudaSetDevice(e->session->card));
    thiele_status status = pull_panels(e, kernel, &to, said);
    cudaError_t error = cudaSuccess;
    if (status == THIELE_OK) {
        size_t bytes = (size_t)e->n * (size_t)e->features * sizeof *u_bar;
        error = cudaMemcpy(own, to.leaf, SUMS * (size_t)kernel->leaves * sizeof *own, cudaMemcpyDeviceToHost);
        error = error == cudaSuccess ? cudaMemcpy(u_bar, to.u_bar, bytes, cudaMemcpyDeviceToHost) : error;
    }
    cudaFree(to.part);
    cudaFree(to.leaf);
    cudaFree(to.u_bar);
    CUDA_TRY(error);
    for (int l = 0; status == THIELE_OK && l < kernel->leaves; l++) {
        leaf_bar[2 * l] = own[SUMS * l + VARIANCE];
        leaf_bar[2 * l + 1] = own[SUMS * l + SHAPE];
    }
    *add_bar = own[ADDED];
    return status;
}

thiele_status thi_cuda_exact_diagonal(void *self, double *diagonal, thi_device_said *said)
{
    thi_cuda_exact *e = (thi_cuda_exact *)self;
    CUDA_TRY(cudaSetDevice(e->session->card));
    for (int64_t first = 0; first < e->n; first += thi_cuda_width(e->n)) {
        panel p = panel_at(e, first);
        THI_CUDA_TRY(solve_panel(e, &p, said));
        square_columns<<<(unsigned)p.columns, THREADS>>>(p, e->room);
        CUDA_TRY(cudaMemcpy(diagonal + first, e->room, (size_t)p.columns * sizeof *diagonal, cudaMemcpyDeviceToHost));
    }
    return THIELE_OK;
}
