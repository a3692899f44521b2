/* The two turns of gibbs_split.h, and the directions that they are cut by: orthogonal iteration on L'Lambda L. */
#include "fit/gibbs_split.h"

#include <math.h>
#include <string.h>

/* Fewer rows are drawn densely in less than the time of the rest. */
enum { FEWEST = 64 };
/* Directions that are looked at, and heavy rows: a quarter of the rows, so that work holds four such blocks. */
enum { SHARE = 4 };
enum { SWEEPS = 4 };
/*
 * The variance of the log of a proposal's chance is about tr(R^2), R what is left of L'Lambda L: at a quarter, eight of
 * ten are accepted. Of d, that is: a moves at every turn.
 */
static const double LEFT = 0.25;
/*
 * a is drawn by this share on the other side of its mean from where it was (over-relaxation: Adler 1981; Neal 1998):
 * about what the auxiliary variables carry over from turn to turn (0.04 to 0.25 of the lag-1 autocorrelation of f in
 * table 2 of augmented-aaci), which cancels it; squares of f see its square.
 */
static const double BEYOND = 0.125;
/* A row is heavy when its square would tilt its own variance by more than this share. */
static const double HEAVY = 0.1;
/* Of a direction's length: what two passes of Gram and Schmidt still make orthogonal. */
static const double ROUNDING = 1e-10;

void thi_split_close(thi_split *split)
{
    double *const vectors[] = {split->Q.data, split->U.data, split->left, split->a,
                               split->d,      split->x,      split->z,    split->trial};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        thi_free(vectors[i]);
    }
    thi_free(split->heavy);
    *split = (thi_split){0};
}

/* --- the directions -------------------------------------------------------------------------------------------------
 */

/*
 * Columns made orthonormal from the first on, each against those before it: twice, which is enough. Returns how many
 * there are before the first of which only rounding is left.
 */
static int64_t orthonormalise(thi_matrix Y, double *c)
{
    for (int64_t j = 0; j < Y.cols; j++) {
        double *y = Y.data + j * Y.ld, before = sqrt(thi_blas_dot(Y.rows, y, y));
        thi_matrix others = thi_matrix_block(Y, 0, 0, Y.rows, j);
        for (int time = 0; time < 2 && j > 0; time++) {
            thi_blas_gemv(THI_T, 1.0, others, y, 0.0, c);
            thi_blas_gemv(THI_N, -1.0, others, c, 1.0, y);
        }
        double norm = sqrt(thi_blas_dot(Y.rows, y, y));
        if (!(norm > ROUNDING * before)) {
            return j;
        }
        for (int64_t i = 0; i < Y.rows; i++) {
            y[i] /= norm;
        }
    }
    return Y.cols;
}

static void scale_rows(thi_matrix Y, const double *scale)
{
    for (int64_t j = 0; j < Y.cols; j++) {
        for (int64_t i = 0; i < Y.rows; i++) {
            Y.data[i + j * Y.ld] *= scale[i];
        }
    }
}

/* |L'Lambda L|^2 (Frobenius) = sum_ij lambda_i lambda_j K_ij^2 */
static double square_norm(thi_matrix K, const double *lambda)
{
    double sum = 0.0;
    for (int64_t j = 0; j < K.cols; j++) {
        const double *k = K.data + j * K.ld;
        double column = 0.0;
        for (int64_t i = 0; i < K.rows; i++) {
            column += lambda[i] * k[i] * k[i];
        }
        sum += lambda[j] * column;
    }
    return sum;
}

static void copy(thi_matrix from, thi_matrix to)
{
    for (int64_t j = 0; j < from.cols; j++) {
        memcpy(to.data + j * to.ld, from.data + j * from.ld, (size_t)from.rows * sizeof(double));
    }
}

/* MY = M Y for M = L'Lambda L, by the way of LY = L Y. */
static void multiply(const thi_split *split, const double *lambda, thi_matrix Y, thi_matrix LY, thi_matrix MY)
{
    copy(Y, LY);
    thi_blas_trmm(THI_LEFT, THI_N, 1.0, split->L, LY);
    copy(LY, MY);
    scale_rows(MY, lambda);
    thi_blas_trmm(THI_LEFT, THI_T, 1.0, split->L, MY);
}

/*
 * How many columns of Y leave no more than LEFT of |M|^2; 0: all of them do not. With P = YY',
 *   |(I - P) M (I - P)|^2 = |M|^2 - 2 |M Y|^2 + |Y'M Y|^2
 */
static int64_t count_directions(double norm, thi_matrix Y, thi_matrix MY, thi_matrix G)
{
    double left = norm;
    thi_blas_gemm(THI_T, THI_N, 1.0, Y, MY, 0.0, G);
    for (int64_t j = 0; j < Y.cols; j++) {
        const double *m = MY.data + j * MY.ld, *g = G.data + j * G.ld;
        left += 2.0 * thi_blas_dot(j, g, g) + g[j] * g[j] - 2.0 * thi_blas_dot(Y.rows, m, m);
        if (left <= LEFT) {
            return j + 1;
        }
    }
    return 0;
}

/* The leading directions of M, from random ones, into the first columns of work, L times them beside them. */
static int64_t find_directions(const thi_split *split, thi_chain *chain, const double *lambda, thi_matrix work)
{
    int64_t n = split->K.rows, most = n / SHARE, cols = most;
    thi_matrix Y = thi_matrix_block(work, 0, 0, n, most), LY = thi_matrix_block(work, 0, most, n, most);
    thi_matrix MY = thi_matrix_block(work, 0, 2 * most, n, most);
    thi_chain_normals(chain, n * most, MY.data);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        cols = orthonormalise(MY, split->x);
        Y.cols = LY.cols = MY.cols = cols;
        copy(MY, Y);
        multiply(split, lambda, Y, LY, MY);
    }
    return count_directions(square_norm(split->K, lambda), Y, MY, thi_matrix_block(work, 0, 3 * most, cols, cols));
}

/* a = Q'L^-1 r and d = r - U a; left = diag(K) - the squares of U's rows. */
static void stand_at(thi_split *split, const double *r)
{
    int64_t n = split->K.rows;
    memcpy(split->x, r, (size_t)n * sizeof *r);
    thi_blas_trsv(THI_N, split->L, split->x);
    thi_blas_gemv(THI_T, 1.0, split->Q, split->x, 0.0, split->a);
    memcpy(split->d, r, (size_t)n * sizeof *r);
    thi_blas_gemv(THI_N, -1.0, split->U, split->a, 1.0, split->d);
    for (int64_t i = 0; i < n; i++) {
        split->left[i] = split->K.data[i + i * split->K.ld];
    }
    for (int64_t j = 0; j < split->rank; j++) {
        const double *u = split->U.data + j * n;
        for (int64_t i = 0; i < n; i++) {
            split->left[i] = fmax(0.0, split->left[i] - u[i] * u[i]);
        }
    }
}

static thiele_status allocate(thi_split *split, thiele_context *ctx, int64_t n)
{
    double **const vectors[] = {&split->left, &split->a, &split->d, &split->x, &split->z, &split->trial};
    thiele_status status;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        THI_TRY(thi_alloc(ctx, vectors[i], (size_t)n, sizeof(double)));
    }
    THI_TRY(thi_alloc(ctx, &split->heavy, (size_t)n, sizeof *split->heavy));
out:
    return status;
}

thiele_status thi_split_open(thi_split *split, thi_chain *chain, int q, const double *lambda, thi_matrix work)
{
    const thi_chain_model *m = chain->model;
    int64_t n = m->n;
    if (n < FEWEST) {
        return THIELE_OK;
    }
    split->K = m->K[m->group[q]];
    split->L = m->L[m->group[q]];
    thiele_status status;
    THI_TRY(allocate(split, chain->ctx, n));
    int64_t rank = find_directions(split, chain, lambda, work);
    if (rank == 0) {
        goto out;
    }
    THI_TRY(thi_matrix_alloc(&split->Q, chain->ctx, n, rank));
    THI_TRY(thi_matrix_alloc(&split->U, chain->ctx, n, rank));
    split->rank = rank;
    copy(thi_matrix_block(work, 0, 0, n, rank), split->Q);
    copy(thi_matrix_block(work, 0, n / SHARE, n, rank), split->U);
    stand_at(split, chain->r + q * n);
out:
    return status;
}

/* --- a given d ------------------------------------------------------------------------------------------------------
 */

/*
 * With U'Lambda U + I = P P', mean = P^-T P^-1 U'(nu - lambda d) and b = BEYOND,
 *   a = mean - b (a - mean) + sqrt(1 - b^2) P^-T e
 */
static thiele_status draw_a(thi_split *split, thi_chain *chain, const double *lambda, const double *nu, thi_matrix work)
{
    int64_t n = split->K.rows, rank = split->rank;
    thi_matrix scaled = thi_matrix_block(work, 0, 0, n, rank), P = thi_matrix_block(work, 0, rank, rank, rank);
    for (int64_t i = 0; i < n; i++) {
        split->x[i] = nu[i] - lambda[i] * split->d[i];
        split->z[i] = sqrt(fmax(0.0, lambda[i]));
    }
    for (int64_t j = 0; j < rank; j++) {
        const double *u = split->U.data + j * n;
        double *s = scaled.data + j * scaled.ld;
        for (int64_t i = 0; i < n; i++) {
            s[i] = split->z[i] * u[i];
        }
    }
    thi_blas_syrk(THI_T, 1.0, scaled, 0.0, P);
    for (int64_t j = 0; j < rank; j++) {
        P.data[j + j * P.ld] += 1.0;
    }
    thiele_status status = thi_chol(chain->ctx, P);
    if (status != THIELE_OK) {
        return status;
    }
    thi_blas_gemv(THI_T, 1.0 + BEYOND, split->U, split->x, 0.0, split->z);
    thi_blas_trsv(THI_N, P, split->z);
    thi_chain_normals(chain, rank, split->x);
    thi_blas_axpy(rank, sqrt(1.0 - BEYOND * BEYOND), split->x, split->z);
    thi_blas_trsv(THI_T, P, split->z);
    for (int64_t j = 0; j < rank; j++) {
        split->a[j] = split->z[j] - BEYOND * split->a[j];
    }
    return THIELE_OK;
}

/* --- d given a ------------------------------------------------------------------------------------------------------
 */

/* Rows whose squares are drawn with; where these are too many, the heaviest of them. It depends on lambda alone. */
static int64_t find_heavy(const thi_split *split, const double *lambda)
{
    int64_t n = split->K.rows, count = n;
    for (double border = HEAVY; count > n / SHARE; border *= 2.0) {
        count = 0;
        for (int64_t i = 0; i < n; i++) {
            if (lambda[i] * split->left[i] > border) {
                split->heavy[count++] = i;
            }
        }
    }
    return count;
}

/* trial = L (I - QQ')(L'nu + e): from the prior of d, tilted by nu (which is overwritten). */
static void draw_tilted(thi_split *split, thi_chain *chain, double *nu)
{
    int64_t n = split->K.rows;
    thi_lower_apply(THI_T, split->L, nu, split->z);
    thi_chain_normals(chain, n, nu);
    thi_blas_axpy(n, 1.0, nu, split->z);
    thi_blas_gemv(THI_T, 1.0, split->Q, split->z, 0.0, nu);
    thi_blas_gemv(THI_N, -1.0, split->Q, nu, 1.0, split->z);
    thi_lower_apply(THI_N, split->L, split->z, split->trial);
}

/*
 * trial -= R_H s B^-1 (s trial_H + e), B = I + s R_HH s = Lb Lb', with R = K - U U' and s = sqrt(lambda) of the heavy
 * rows H: the draw given that they were seen at zero with noise of variance 1/lambda. h = |H| rows: h^2 m + h^3/3 + 2 n
 * (h + m) flops.
 */
static thiele_status tilt_heavy(thi_split *split, thi_chain *chain, int64_t h, const double *lambda, thi_matrix work)
{
    int64_t rank = split->rank, most = split->K.rows / SHARE;
    thi_matrix rows = thi_matrix_block(work, 0, 0, h, rank), B = thi_matrix_block(work, 0, most, h, h);
    double *c = split->x, *s = split->z;
    for (int64_t k = 0; k < h; k++) {
        s[k] = sqrt(lambda[split->heavy[k]]);
        for (int64_t j = 0; j < rank; j++) {
            rows.data[k + j * rows.ld] = split->U.data[split->heavy[k] + j * split->U.ld];
        }
    }
    for (int64_t k = 0; k < h; k++) {
        const double *column = split->K.data + split->heavy[k] * split->K.ld;
        for (int64_t i = k; i < h; i++) {
            B.data[i + k * B.ld] = column[split->heavy[i]];
        }
    }
    thi_blas_syrk(THI_N, -1.0, rows, 1.0, B);
    for (int64_t k = 0; k < h; k++) {
        for (int64_t i = k; i < h; i++) {
            B.data[i + k * B.ld] *= s[i] * s[k];
        }
        B.data[k + k * B.ld] += 1.0;
    }
    thiele_status status = thi_chol(chain->ctx, B);
    if (status != THIELE_OK) {
        return status;
    }
    thi_chain_normals(chain, h, c);
    for (int64_t k = 0; k < h; k++) {
        c[k] += s[k] * split->trial[split->heavy[k]];
    }
    thi_blas_trsv(THI_N, B, c);
    thi_blas_trsv(THI_T, B, c);
    for (int64_t k = 0; k < h; k++) {
        c[k] *= s[k];
        thi_blas_axpy(split->K.rows, -c[k], split->K.data + split->heavy[k] * split->K.ld, split->trial);
    }
    thi_blas_gemv(THI_T, 1.0, rows, c, 0.0, s);
    thi_blas_gemv(THI_N, 1.0, split->U, s, 1.0, split->trial);
    return THIELE_OK;
}

/* sum lambda d^2 over the rows that are not heavy. */
static double light_squares(const thi_split *split, const double *lambda, int64_t h, const double *d)
{
    double sum = 0.0;
    for (int64_t i = 0, k = 0; i < split->K.rows; i++) {
        if (k < h && split->heavy[k] == i) {
            k++;
        } else {
            sum += lambda[i] * d[i] * d[i];
        }
    }
    return sum;
}

/* r holds U a. */
static thiele_status draw_d(thi_split *split, thi_chain *chain, const double *lambda, const double *nu, const double *r,
                            thi_matrix work, double *accepted)
{
    int64_t h = find_heavy(split, lambda);
    for (int64_t i = 0; i < split->K.rows; i++) {
        split->x[i] = nu[i] - lambda[i] * r[i];
    }
    draw_tilted(split, chain, split->x);
    thiele_status status = h > 0 ? tilt_heavy(split, chain, h, lambda, work) : THIELE_OK;
    if (status != THIELE_OK) {
        return status;
    }
    double worse = light_squares(split, lambda, h, split->trial) - light_squares(split, lambda, h, split->d);
    *accepted = log(thi_chain_uniform(chain)) < -0.5 * worse;
    if (*accepted > 0.0) {
        split->moved++;
        double *d = split->d;
        split->d = split->trial;
        split->trial = d;
    }
    return THIELE_OK;
}

thiele_status thi_split_draw(thi_split *split, thi_chain *chain, const double *lambda, const double *nu,
                             thi_matrix work, double *r, double *accepted)
{
    thiele_status status;
    THI_TRY(draw_a(split, chain, lambda, nu, work));
    thi_blas_gemv(THI_N, 1.0, split->U, split->a, 0.0, r);
    THI_TRY(draw_d(split, chain, lambda, nu, r, work, accepted));
    thi_blas_axpy(split->K.rows, 1.0, split->d, r);
out:
    return status;
}
