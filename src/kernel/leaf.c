/*
 * One tile of one leaf: values by a GEMM of features and a vectorised profile, adjoints by two more GEMMs (math.md
 * section 12: a kernel fills K, and pulls Kbar back to its parameters and inputs). With W = Kbar . dk/dt, entry by
 * entry, t = |u_i - u'_j|^2:  ubar'_j = 2 (sum_i W_ij) u'_j - 2 sum_i W_ij u_i,   and the same for u_i over j; t =
 * <u_i, u'_j>:     ubar'_j = sum_i W_ij u_i. Distances are taken from features shifted to the tile's centre, and those
 * that cancellation has spoiled are computed again: near and equal rows keep full accuracy whatever the offset of the
 * data. Cost: 2 F flops and one exp an entry to fill, 4 F flops and one exp to pull (6 F where the map is not linear, 2
 * F and no exp for a squared exponential whose values are at hand).
 */
#include <string.h>

#include "kernel/kernel.h"

/* Features of a tile, U is F x rows and V is F x cols: as they are, and shifted to the tile's centre for distances. */
typedef struct tile_features {
    int F;
    const thi_leaf *leaf;
    const thi_tile *tile;
    const double *raw_u, *raw_v;
    const double *U, *V;
    double *norm_u, *norm_v;
} tile_features;

size_t thi_leaf_scratch(const thi_leaf *leaf, int max_rows, int max_cols)
{
    size_t F = (size_t)leaf->features;
    size_t rows = (size_t)max_rows;
    size_t cols = (size_t)max_cols;
    /* centre; U, V and their adjoints, V's twice; norms; T; columns of t, k, dk, dshape; row and column sums */
    return F + F * (2 * rows + 3 * cols) + (rows + cols) + rows * cols + 4 * rows + (rows + cols);
}

/* out = u - centre and its squared norms; four sums at a time, so that they need not wait for each other. */
static void shift(int F, int64_t n, const double *u, const double *centre, double *out, double *norm)
{
    for (int64_t i = 0; i < n; i++) {
        double sum[4] = {0.0};
        int f = 0;
        for (; f + 4 <= F; f += 4) {
            for (int k = 0; k < 4; k++) {
                double v = u[i * F + f + k] - centre[f + k];
                out[i * F + f + k] = v;
                sum[k] += v * v;
            }
        }
        for (; f < F; f++) {
            double v = u[i * F + f] - centre[f];
            out[i * F + f] = v;
            sum[0] += v * v;
        }
        norm[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* Takes the tile's features into scratch; returns the first free double of it. */
static double *take_features(const thi_leaf *leaf, int index, const thi_tile *tile, tile_features *out)
{
    int F = leaf->features;
    const double *U = tile->A->leaf[index] + tile->row * F;
    const double *V = tile->B->leaf[index] + tile->col * F;
    double *next = tile->scratch;
    *out = (tile_features){.F = F, .leaf = leaf, .tile = tile, .raw_u = U, .raw_v = V, .U = U, .V = V};
    if (leaf->kind->family != THI_DISTANCE) {
        return next;
    }
    double *centre = next;
    double *shifted_u = centre + F;
    double *shifted_v = shifted_u + (size_t)F * (size_t)tile->max_rows;
    out->norm_u = shifted_v + (size_t)F * (size_t)tile->max_cols;
    out->norm_v = out->norm_u + tile->max_rows;
    memset(centre, 0, (size_t)F * sizeof *centre);
    for (int j = 0; j < tile->cols; j++) {
        for (int f = 0; f < F; f++) {
            centre[f] += V[(size_t)j * F + f] / tile->cols;
        }
    }
    shift(F, tile->rows, U, centre, shifted_u, out->norm_u);
    shift(F, tile->cols, V, centre, shifted_v, out->norm_v);
    out->U = shifted_u;
    out->V = shifted_v;
    return out->norm_v + tile->max_cols;
}

/* Whether r^2 of rows i and j has lost digits to cancellation, or would have, or is not a number. */
static bool is_near(const tile_features *features, int64_t i, int64_t j, double r2)
{
    return !(r2 >= THI_DISTANCE_LOSS * (features->norm_u[i] + features->norm_v[j]));
}

/* u_i - v_j of feature f; of scaled inputs by subtracting before scaling, which is exact where they are near. */
static double difference(const tile_features *features, int64_t i, int64_t j, int f)
{
    const thi_tile *tile = features->tile;
    int D = tile->kernel->dims;
    if (!features->leaf->kind->map->linear) {
        return features->raw_u[i * features->F + f] - features->raw_v[j * features->F + f];
    }
    int64_t d = features->leaf->dim[f];
    double apart = tile->A->X[(tile->row + i) * D + d] - tile->B->X[(tile->col + j) * D + d];
    return apart * (1.0 / thi_leaf_lengthscale(features->leaf, f));
}

/* Computes again the distances of a column that lost digits. */
static void repair(const tile_features *features, int rows, int j, double *r2)
{
    for (int i = 0; i < rows; i++) {
        if (is_near(features, i, j, r2[i])) {
            double sum = 0.0;
            for (int f = 0; f < features->F; f++) {
                double apart = difference(features, i, j, f);
                sum += apart * apart;
            }
            r2[i] = sum;
        }
    }
}

/* T = t_ij: inner products, or squared distances; near[j] (unless NULL) tells whether column j has spoiled ones. */
static void arguments(const thi_leaf *leaf, const tile_features *features, thi_matrix T, bool *near)
{
    int F = features->F;
    thi_matrix U = thi_matrix_view((double *)features->U, F, T.rows, F);
    thi_matrix V = thi_matrix_view((double *)features->V, F, T.cols, F);
    thi_blas_gemm(THI_T, THI_N, 1.0, U, V, 0.0, T);
    if (leaf->kind->family != THI_DISTANCE) {
        return;
    }
    const thi_vector_ops *vector = thi_vector();
    for (int j = 0; j < T.cols; j++) {
        double *column = T.data + j * T.ld;
        bool spoiled = vector->distance(T.rows, features->norm_u, features->norm_v[j], column);
        if (spoiled) {
            repair(features, (int)T.rows, j, column);
        }
        if (near != NULL) {
            near[j] = spoiled;
        }
    }
}

static thi_profile_args profile_args(const thi_leaf *leaf)
{
    return (thi_profile_args){thi_leaf_variance(leaf), thi_leaf_extra(leaf), leaf->degree};
}

/* The tile's entries with equal row and column, for the white kernel: those (i, i - offset) inside it. */
static int64_t diagonal_offset(const thi_tile *tile)
{
    return tile->row - tile->col;
}

static void fill_white(const thi_leaf *leaf, const thi_tile *tile, thi_matrix K)
{
    int64_t offset = diagonal_offset(tile);
    for (int j = 0; j < tile->cols; j++) {
        memset(K.data + j * K.ld, 0, (size_t)tile->rows * sizeof *K.data);
        int64_t i = j - offset;
        if (tile->same && i >= 0 && i < tile->rows) {
            K.data[i + j * K.ld] = thi_leaf_variance(leaf);
        }
    }
}

void thi_leaf_fill(const thi_leaf *leaf, int index, const thi_tile *tile, thi_matrix K)
{
    if (leaf->kind->family == THI_WHITE) {
        fill_white(leaf, tile, K);
        return;
    }
    tile_features features;
    take_features(leaf, index, tile, &features);
    arguments(leaf, &features, K, NULL);
    thi_profile_args args = profile_args(leaf);
    const thi_profile_ops *profiles = thi_profiles();
    for (int j = 0; j < tile->cols; j++) {
        double *column = K.data + j * K.ld;
        profiles->fill[leaf->kind->profile](tile->rows, args, column, column);
    }
}

/* What a tile's pull collects. */
typedef struct tile_adjoint {
    double *row_sum, *col_sum; /* of W */
    double *ubar, *vbar;       /* F x rows, F x cols */
    double *far;               /* F x cols: vbar without the near pairs */
    double *k, *dk, *dshape;   /* one column each */
} tile_adjoint;

/*
 * The share of near pairs of column j in the feature adjoints, by differences: W is huge where Matern-1/2 rows nearly
 * meet, and the sums of the GEMM form would cancel. They are left out of W by setting dk to zero.
 */
static void pull_near(const tile_features *features, int rows, int j, const double *r2, const double *kbar,
                      tile_adjoint *adjoint)
{
    int F = features->F;
    for (int i = 0; i < rows; i++) {
        if (!is_near(features, i, j, r2[i])) {
            continue;
        }
        double twice = 2.0 * kbar[i] * adjoint->dk[i];
        for (int f = 0; f < F; f++) {
            double push = twice * difference(features, i, j, f);
            adjoint->ubar[(size_t)i * F + f] += push;
            adjoint->vbar[(size_t)j * F + f] -= push;
        }
        adjoint->dk[i] = 0.0;
    }
}

/* T becomes W = Kbar . dk/dt; its row and column sums; the adjoints of the variance and the extra parameter. */
static void weigh(const thi_leaf *leaf, const tile_features *features, const bool *near, thi_matrix Kbar, thi_matrix T,
                  tile_adjoint *adjoint, double *theta_bar)
{
    thi_profile_args args = profile_args(leaf);
    const thi_vector_ops *vector = thi_vector();
    const thi_profile_ops *profiles = thi_profiles();
    bool extra = leaf->kind->extra != NULL;
    double variance_bar = 0.0;
    double shape_bar = 0.0;
    for (int j = 0; j < T.cols; j++) {
        double *t = T.data + j * T.ld;
        const double *kbar = Kbar.data + j * Kbar.ld;
        profiles->adjoint[leaf->kind->profile](T.rows, args, t, adjoint->k, adjoint->dk, adjoint->dshape);
        variance_bar += thi_blas_dot(T.rows, kbar, adjoint->k);
        shape_bar += extra ? thi_blas_dot(T.rows, kbar, adjoint->dshape) : 0.0;
        if (near[j]) {
            pull_near(features, (int)T.rows, j, t, kbar, adjoint);
        }
        adjoint->col_sum[j] = vector->weigh(T.rows, 1.0, kbar, adjoint->dk, t, adjoint->row_sum);
    }
    theta_bar[leaf->lengthscales] += variance_bar;
    if (extra) {
        theta_bar[leaf->lengthscales + 1] += shape_bar;
    }
}

/* The same from the values of a squared exponential, dk/dt = -k/2: no distances, no exp; near pairs are harmless. */
static void weigh_known(const thi_leaf *leaf, thi_matrix K, thi_matrix Kbar, thi_matrix W, tile_adjoint *adjoint,
                        double *theta_bar)
{
    const thi_vector_ops *vector = thi_vector();
    for (int j = 0; j < W.cols; j++) {
        adjoint->col_sum[j] = vector->weigh(W.rows, -0.5, Kbar.data + j * Kbar.ld, K.data + j * K.ld, W.data + j * W.ld,
                                            adjoint->row_sum);
        theta_bar[leaf->lengthscales] -= 2.0 * adjoint->col_sum[j];
    }
}

/* ubar += W' u (dot) or 2 (sum . v - W' u) (distance), for either side; W enters as is or transposed. */
static void feature_adjoint(const thi_leaf *leaf, thi_trans tw, thi_matrix W, int F, const double *other,
                            const double *own, const double *sum, int64_t n, double *ubar)
{
    bool distance = leaf->kind->family == THI_DISTANCE;
    int64_t m = tw == THI_N ? W.rows : W.cols;
    thi_blas_gemm(THI_N, tw, distance ? -2.0 : 1.0, thi_matrix_view((double *)other, F, m, F), W, 1.0,
                  thi_matrix_view(ubar, F, n, F));
    for (int64_t i = 0; distance && i < n; i++) {
        for (int f = 0; f < F; f++) {
            ubar[i * F + f] += 2.0 * sum[i] * own[i * F + f];
        }
    }
}

/* Lays the collected sums out in scratch, zeroed. */
static tile_adjoint start_adjoint(const thi_tile *tile, int F, double *next)
{
    size_t rows = (size_t)tile->rows;
    size_t cols = (size_t)tile->cols;
    memset(next, 0, ((rows + cols) * (size_t)(F + 1) + cols * (size_t)F) * sizeof *next);
    tile_adjoint adjoint = {.row_sum = next, .col_sum = next + rows, .ubar = next + rows + cols};
    adjoint.vbar = adjoint.ubar + rows * (size_t)F;
    adjoint.far = adjoint.vbar + cols * (size_t)F;
    adjoint.k = adjoint.far + cols * (size_t)F;
    adjoint.dk = adjoint.k + rows;
    adjoint.dshape = adjoint.dk + rows;
    return adjoint;
}

static void pull_white(const thi_leaf *leaf, const thi_tile *tile, thi_matrix Kbar, double *theta_bar)
{
    int64_t offset = diagonal_offset(tile);
    for (int j = 0; tile->same && j < tile->cols; j++) {
        int64_t i = j - offset;
        if (i >= 0 && i < tile->rows) {
            theta_bar[leaf->first] += thi_leaf_variance(leaf) * Kbar.data[i + j * Kbar.ld];
        }
    }
}

/*
 * What the rows' side of a distance between scaled inputs gives to the length-scales, without ubar: from vbar, with
 * sum_i ubar_i . u_i = 2 sum_i (sum_j W_ij) u_i^2 - 2 sum_j (sum_i W_ij) v_j^2 + sum_j vbar_j . v_j (feature by
 * feature), vbar without the near pairs. They left their own sum in ubar.
 */
static void pull_scales(const thi_leaf *leaf, const thi_tile *tile, const tile_features *features,
                        const tile_adjoint *adjoint, double *theta_bar)
{
    enum { SOME = 64 };
    int F = features->F;
    for (int first = 0; first < F; first += SOME) {
        int count = F - first < SOME ? F - first : SOME;
        double sum[SOME] = {0.0};
        for (int64_t i = 0; i < tile->rows; i++) {
            const double *u = features->U + i * F + first, *bar = adjoint->ubar + i * F + first;
            double twice = 2.0 * adjoint->row_sum[i];
            for (int f = 0; f < count; f++) {
                sum[f] += u[f] * (twice * u[f] + bar[f]);
            }
        }
        for (int64_t j = 0; j < tile->cols; j++) {
            const double *v = features->V + j * F + first, *far = adjoint->far + j * F + first;
            double twice = 2.0 * adjoint->col_sum[j];
            for (int f = 0; f < count; f++) {
                sum[f] += v[f] * (far[f] - twice * v[f]);
            }
        }
        for (int f = 0; f < count; f++) {
            theta_bar[leaf->scale[first + f]] -= sum[f];
        }
    }
}

/* W, and its sums, from values where they are given and are enough. */
static void make_weights(const thi_leaf *leaf, const thi_tile *tile, const tile_features *features, thi_matrix Kbar,
                         thi_matrix W, tile_adjoint *adjoint, double *theta_bar)
{
    if (tile->K.data != NULL) {
        weigh_known(leaf, tile->K, Kbar, W, adjoint, theta_bar);
        return;
    }
    bool near[THI_TILE_COLS] = {false};
    arguments(leaf, features, W, near);
    weigh(leaf, features, near, Kbar, W, adjoint, theta_bar);
}

void thi_leaf_pull(const thi_leaf *leaf, int index, const thi_tile *tile, thi_matrix Kbar, double *theta_bar,
                   double *Bbar)
{
    if (leaf->kind->family == THI_WHITE) {
        pull_white(leaf, tile, Kbar, theta_bar);
        return;
    }
    tile_features features;
    double *next = take_features(leaf, index, tile, &features);
    int F = features.F;
    int D = tile->kernel->dims;
    double *own_bar = theta_bar + leaf->first;
    thi_matrix W = thi_matrix_view(next, tile->rows, tile->cols, tile->rows);
    tile_adjoint adjoint = start_adjoint(tile, F, next + (size_t)tile->rows * (size_t)tile->cols);
    make_weights(leaf, tile, &features, Kbar, W, &adjoint, own_bar);
    if (F == 0) {
        return;
    }
    feature_adjoint(leaf, THI_N, W, F, features.U, features.V, adjoint.col_sum, tile->cols, adjoint.far);
    for (int64_t i = 0; i < (int64_t)F * tile->cols; i++) {
        adjoint.vbar[i] += adjoint.far[i];
    }
    /* A linear map's adjoint takes the shifted features, for accuracy; others need the true ones. */
    bool linear = leaf->kind->map->linear;
    if (linear && leaf->kind->family == THI_DISTANCE) {
        pull_scales(leaf, tile, &features, &adjoint, own_bar);
    } else {
        feature_adjoint(leaf, THI_T, W, F, features.V, features.U, adjoint.row_sum, tile->rows, adjoint.ubar);
        leaf->kind->map->adjoint(leaf, tile->rows, D, tile->A->X + tile->row * D, linear ? features.U : features.raw_u,
                                 adjoint.ubar, own_bar, NULL);
    }
    leaf->kind->map->adjoint(leaf, tile->cols, D, tile->B->X + tile->col * D, linear ? features.V : features.raw_v,
                             adjoint.vbar, own_bar, Bbar);
}

/* t_ii of the tile's rows: |u|^2, or 0 for distances. */
static void diagonal_arguments(const thi_leaf *leaf, int index, const thi_tile *tile, double *t)
{
    int F = leaf->features;
    const double *U = tile->A->leaf[index] + tile->row * F;
    for (int i = 0; i < tile->rows; i++) {
        t[i] = leaf->kind->family == THI_DOT ? thi_blas_dot(F, U + (size_t)i * F, U + (size_t)i * F) : 0.0;
    }
}

void thi_leaf_diagonal(const thi_leaf *leaf, int index, const thi_tile *tile, double *diagonal)
{
    diagonal_arguments(leaf, index, tile, diagonal);
    thi_profiles()->fill[leaf->kind->profile](tile->rows, profile_args(leaf), diagonal, diagonal);
}

void thi_leaf_pull_diagonal(const thi_leaf *leaf, int index, const thi_tile *tile, const double *kbar,
                            double *theta_bar, double *Abar)
{
    int F = leaf->features;
    int D = tile->kernel->dims;
    const double *U = tile->A->leaf[index] + tile->row * F;
    double *t = tile->scratch;
    double *k = t + tile->rows;
    double *dk = k + tile->rows;
    double *dshape = dk + tile->rows;
    double *ubar = dshape + tile->rows;
    double *own_bar = theta_bar + leaf->first;
    diagonal_arguments(leaf, index, tile, t);
    thi_profiles()->adjoint[leaf->kind->profile](tile->rows, profile_args(leaf), t, k, dk, dshape);
    own_bar[leaf->lengthscales] += thi_blas_dot(tile->rows, kbar, k);
    if (leaf->kind->family != THI_DOT) {
        return;
    }
    if (leaf->kind->extra != NULL) {
        own_bar[leaf->lengthscales + 1] += thi_blas_dot(tile->rows, kbar, dshape);
    }
    for (int i = 0; i < tile->rows; i++) {
        for (int f = 0; f < F; f++) {
            ubar[i * F + f] = 2.0 * kbar[i] * dk[i] * U[(size_t)i * F + f];
        }
    }
    leaf->kind->map->adjoint(leaf, tile->rows, D, tile->A->X + tile->row * D, U, ubar, own_bar, Abar);
}
