/* Prediction in blocks, from the form that every posterior is frozen into. */
#include "posterior/predictor_internal.h"

#include <string.h>

#include "posterior/local.h"

static thiele_status copy_doubles(thiele_context *ctx, double **out, size_t count, const double *from)
{
    thiele_status status = thi_alloc(ctx, out, count, sizeof **out);
    if (status == THIELE_OK && count > 0) {
        memcpy(*out, from, count * sizeof **out);
    }
    return status;
}

/* What every predictor copies from its prior and its basis. */
static thiele_status copy_prior(thi_predictor *p, thiele_context *ctx, const thi_prior *prior, const double *basis)
{
    size_t D = (size_t)prior->kernel->dims;
    size_t means = (size_t)thi_mean_parameters(prior->mean, prior->kernel->dims);
    thiele_status status;
    THI_TRY(copy_doubles(ctx, &p->basis, D * (size_t)p->n, basis));
    THI_TRY(copy_doubles(ctx, &p->mean_parameter, means, prior->mean_parameter));
    THI_TRY(thi_kernel_copy(&p->kernel, ctx, prior->kernel));
    THI_TRY(thi_predictor_finish(p, ctx));
out:
    return status;
}

thiele_status thi_predictor_freeze(thi_predictor *predictor, thiele_context *ctx, thi_exact *exact,
                                   const thi_prior *prior)
{
    *predictor =
        (thi_predictor){.mean = prior->mean, .n = exact->shape.n, .components = 1, .L = exact->L, .a = exact->alpha};
    exact->L = (thi_matrix){0};
    exact->alpha = NULL;
    thiele_status status = copy_prior(predictor, ctx, prior, exact->shape.X);
    thi_exact_close(exact);
    if (status != THIELE_OK) {
        thi_predictor_clear(predictor);
    }
    return status;
}

thiele_status thi_predictor_begin(thi_predictor *predictor, thiele_context *ctx, const thi_prior *prior, int64_t n,
                                  const double *basis, int components)
{
    *predictor = (thi_predictor){.mean = prior->mean, .n = n, .components = components};
    thiele_status status;
    THI_TRY(copy_prior(predictor, ctx, prior, basis));
    THI_TRY(thi_alloc(ctx, &predictor->a, (size_t)n * (size_t)components, sizeof *predictor->a));
    THI_TRY(thi_matrix_alloc(&predictor->L, ctx, n, n));
out:
    if (status != THIELE_OK) {
        thi_predictor_clear(predictor);
    }
    return status;
}

static void clear_derived(thi_predictor *p)
{
    thi_inputs_clear(&p->inputs);
    thi_functions_clear(&p->functions);
    thi_functions_clear(&p->mean_functions);
}

thiele_status thi_predictor_finish(thi_predictor *predictor, thiele_context *ctx)
{
    thi_predictor *p = predictor;
    thiele_status status;
    clear_derived(p);
    if (p->mean_basis == NULL) {
        return thi_inputs_make(&p->inputs, ctx, p->kernel, p->n, p->basis);
    }
    THI_TRY(thi_functions_make(&p->functions, ctx, p->kernel, p->n, p->basis, p->log_c));
    THI_TRY(thi_functions_make(&p->mean_functions, ctx, p->kernel, p->mean_n, p->mean_basis, p->mean_log_c));
out:
    return status;
}

void thi_predictor_clear(thi_predictor *predictor)
{
    thi_local_destroy(predictor->local);
    clear_derived(predictor);
    thiele_kernel_destroy(predictor->kernel);
    thi_free(predictor->mean_parameter);
    thi_free(predictor->basis);
    thi_free(predictor->log_c);
    thi_free(predictor->mean_basis);
    thi_free(predictor->mean_log_c);
    thi_free(predictor->a);
    thi_free(predictor->scale);
    thi_free(predictor->L.data);
    for (int k = 0; predictor->R != NULL && k < predictor->components; k++) {
        thi_free(predictor->R[k].data);
    }
    thi_free(predictor->R);
    *predictor = (thi_predictor){0};
}

/* R of one component. */
static thiele_status invert_covariance(thi_predictor *p, thiele_context *ctx, int component)
{
    thi_matrix R = p->R[component], B = {0}, N = {0};
    thiele_status status;
    THI_TRY(thi_matrix_alloc(&B, ctx, p->n, p->n));
    if (p->plus == THI_PLUS_TRIANGLE) {
        THI_TRY(thi_matrix_alloc(&N, ctx, p->n, p->n));
        thi_tri_copy(R, N);
        THI_TRY(thi_tri_inverse(ctx, N));
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, N, N, 0.0, B, true));
    } else {
        THI_TRY(thi_multiply(ctx, THI_T, THI_N, 1.0, R, R, 0.0, B, true));
        THI_TRY(thi_chol(ctx, B));
        THI_TRY(thi_chol_inverse(ctx, B));
    }
    THI_TRY(thi_chol(ctx, B));
    thi_free(R.data);
    p->R[component] = B;
    B = (thi_matrix){0};
out:
    thi_free(B.data);
    thi_free(N.data);
    return status == THIELE_ERROR_NUMERIC
               ? thi_fail_in(ctx, status, "the posterior over the %lld inducing inputs", (long long)p->n)
               : status;
}

thiele_status thi_predictor_to_precision(thi_predictor *p, thiele_context *ctx)
{
    thiele_status status = THIELE_OK;
    for (int k = 0; k < p->components && status == THIELE_OK; k++) {
        status = invert_covariance(p, ctx, k);
    }
    p->plus = status == THIELE_OK ? THI_PLUS_PRECISION : p->plus;
    return status;
}

/* --- a block of rows -------------------------------------------------------------------------------------------------
 */

/* Of the second matrix: of R, and of k where each of several triangles overwrites a copy. */
static int64_t most_rows(const thi_predictor *p)
{
    int64_t rows = p->components > 1 ? p->n : 0;
    for (int k = 0; p->R != NULL && k < p->components; k++) {
        rows = p->R[k].rows > rows ? p->R[k].rows : rows;
    }
    return rows;
}

thiele_status thi_rows_space_open(thi_rows_space *s, thiele_context *ctx, const thi_predictor *p, int64_t columns,
                                  bool variance)
{
    *s = (thi_rows_space){0};
    thiele_status status = thi_matrix_alloc(&s->K, ctx, p->n, columns);
    if (status == THIELE_OK && variance && p->plus != THI_PLUS_NONE) {
        status = thi_matrix_alloc(&s->R, ctx, most_rows(p), columns);
    }
    if (status == THIELE_OK && p->mean_basis != NULL) {
        status = thi_matrix_alloc(&s->portion, ctx, columns, THI_PREDICT_PORTION);
    }
    return status;
}

void thi_rows_space_close(thi_rows_space *s)
{
    thi_free(s->K.data);
    thi_free(s->R.data);
    thi_free(s->portion.data);
}

static thi_matrix first_columns(thi_matrix A, int64_t rows, int64_t n)
{
    return thi_matrix_view(A.data, rows, n, A.ld);
}

static void copy_columns(thi_matrix from, thi_matrix to)
{
    for (int64_t j = 0; j < from.cols; j++) {
        memcpy(to.data + j * to.ld, from.data + j * from.ld, (size_t)from.rows * sizeof(double));
    }
}

/* variance (columns of U) += sign |u|^2 */
static void add_norms(thi_matrix U, double sign, double *variance)
{
    for (int64_t j = 0; j < U.cols; j++) {
        const double *u = U.data + j * U.ld;
        variance[j] += sign * thi_blas_dot(U.rows, u, u);
    }
}

thiele_status thi_predictor_apply_root(const thi_predictor *p, thiele_context *ctx, int component, thi_matrix U)
{
    thi_matrix R = p->R[component];
    return p->plus == THI_PLUS_TRIANGLE ? thi_tri_multiply(ctx, THI_T, R, U) : thi_tri_solve(ctx, THI_N, R, U);
}

thiele_status thi_predictor_invert_root(const thi_predictor *p, thiele_context *ctx, int component, thi_matrix *R)
{
    thiele_status status = thi_matrix_alloc(R, ctx, p->n, p->n);
    if (status == THIELE_OK) {
        thi_tri_copy(p->R[component], *R);
        status = thi_tri_inverse(ctx, *R);
    }
    return status;
}

/* Ru = R_k u for the columns u of K (k(basis, x), or w where R takes that); a view of the work space. */
static thiele_status apply_plus(const thi_predictor *p, thiele_context *ctx, int component, const thi_rows_space *s,
                                thi_matrix *Ru)
{
    thi_matrix R = p->R[component];
    *Ru = first_columns(s->R, R.rows, s->K.cols);
    if (!thi_plus_is_triangle(p->plus)) {
        return thi_multiply(ctx, THI_N, THI_N, 1.0, R, s->K, 0.0, *Ru, false);
    }
    copy_columns(s->K, *Ru);
    return thi_predictor_apply_root(p, ctx, component, *Ru);
}

/* variance (n x components) += |R u|^2 */
static thiele_status add_plus(const thi_predictor *p, thiele_context *ctx, const thi_rows_space *s, double *variance)
{
    int64_t n = s->K.cols;
    for (int k = 0; k < p->components; k++) {
        thi_matrix Ru;
        thiele_status status = apply_plus(p, ctx, k, s, &Ru);
        if (status != THIELE_OK) {
            return status;
        }
        add_norms(Ru, 1.0, variance + k * n);
    }
    return THIELE_OK;
}

/* Overwrites K = k(basis, x) by w = L^-1 (scale . K). */
static thiele_status whiten(const thi_predictor *p, thiele_context *ctx, thi_matrix K)
{
    for (int64_t j = 0; p->scale != NULL && j < K.cols; j++) {
        for (int64_t i = 0; i < p->n; i++) {
            K.data[i + j * K.ld] *= p->scale[i];
        }
    }
    return thi_tri_solve(ctx, THI_N, p->L, K);
}

/* variance (n x components) -= |w|^2 */
static void subtract_explained(const thi_predictor *p, thi_matrix K, double *variance)
{
    for (int64_t j = 0; j < K.cols; j++) {
        const double *w = K.data + j * K.ld;
        double explained = thi_blas_dot(p->n, w, w);
        for (int k = 0; k < p->components; k++) {
            variance[k * K.cols + j] -= explained;
        }
    }
}

/* variance (n x components) = what is kept of k(x, x) before the basis is asked */
static thiele_status prior_variances(const thi_predictor *p, thiele_context *ctx, const thi_inputs *inputs,
                                     double *variance)
{
    int64_t n = inputs->n;
    thiele_status status = THIELE_OK;
    if (p->conditional != THI_CONDITIONAL_NONE) {
        status = thi_kernel_fill_diagonal(p->kernel, ctx, inputs, variance);
    } else {
        memset(variance, 0, (size_t)n * sizeof *variance);
    }
    for (int k = 1; k < p->components && status == THIELE_OK; k++) {
        memcpy(variance + k * n, variance, (size_t)n * sizeof *variance);
    }
    return status;
}

/* variance (n x components) += |R u|^2 - |w|^2; K is overwritten by w. */
static thiele_status add_by_both(const thi_predictor *p, thiele_context *ctx, const thi_rows_space *s, double *variance)
{
    bool on_kernel = p->plus == THI_PLUS_KERNEL;
    thiele_status status = THIELE_OK;
    if (on_kernel) {
        THI_TRY(add_plus(p, ctx, s, variance));
    }
    THI_TRY(whiten(p, ctx, s->K));
    if (p->conditional != THI_CONDITIONAL_NONE) {
        subtract_explained(p, s->K, variance);
    }
    if (p->plus != THI_PLUS_NONE && !on_kernel) {
        THI_TRY(add_plus(p, ctx, s, variance));
    }
out:
    return status;
}

/* variance (n x components) -= |C k|^2, or += where nothing else is kept; K is overwritten. */
static thiele_status add_by_one(const thi_predictor *p, thiele_context *ctx, const thi_matrix *C,
                                const thi_rows_space *s, double *variance)
{
    int64_t n = s->K.cols;
    for (int k = 0; k < p->components; k++) {
        thi_matrix u = s->K;
        if (k + 1 < p->components) {
            u = first_columns(s->R, p->n, n);
            copy_columns(s->K, u);
        }
        thiele_status status = thi_tri_multiply(ctx, THI_N, C[k], u);
        if (status != THIELE_OK) {
            return status;
        }
        add_norms(u, p->conditional == THI_CONDITIONAL_NONE ? 1.0 : -1.0, variance + k * n);
    }
    return THIELE_OK;
}

thiele_status thi_predictor_add_mean(const thi_predictor *p, thiele_context *ctx, int64_t count, const double *a,
                                     const thi_inputs *inputs, double *room, double *mean)
{
    for (int64_t first = 0; first < count; first += THI_PREDICT_PORTION) {
        thi_functions part =
            thi_functions_part(&p->mean_functions, first, thi_least(count - first, THI_PREDICT_PORTION));
        thi_matrix K = thi_matrix_view(room, inputs->n, part.n, inputs->n);
        thiele_status status = thi_functions_fill(&part, ctx, inputs, K);
        if (status != THIELE_OK) {
            return status;
        }
        thi_blas_gemv(THI_N, 1.0, K, a + first, 1.0, mean);
    }
    return THIELE_OK;
}

/* mean (n): m(x_j) + k_j'a, with k(basis, x) in s->K. */
static thiele_status one_mean(const thi_predictor *p, thiele_context *ctx, int component, const thi_inputs *inputs,
                              const thi_rows_space *s, double *mean)
{
    thi_mean_fill(p->mean, p->mean_parameter, inputs->n, p->kernel->dims, inputs->X, mean);
    if (p->mean_basis != NULL) {
        return thi_predictor_add_mean(p, ctx, p->mean_n, p->a + component * p->mean_n, inputs, s->portion.data, mean);
    }
    thi_blas_gemv(THI_T, 1.0, s->K, p->a + component * p->n, 1.0, mean);
    return THIELE_OK;
}

thiele_status thi_predictor_fill(const thi_predictor *p, thiele_context *ctx, const thi_inputs *inputs, double *room,
                                 thi_matrix K)
{
    int64_t n = inputs->n;
    if (p->mean_basis == NULL) {
        return thi_kernel_fill(p->kernel, ctx, &p->inputs, inputs, K, false);
    }
    for (int64_t first = 0; first < p->n; first += THI_PREDICT_PORTION) {
        thi_functions part = thi_functions_part(&p->functions, first, thi_least(p->n - first, THI_PREDICT_PORTION));
        thiele_status status = thi_functions_fill(&part, ctx, inputs, thi_matrix_view(room, n, part.n, n));
        if (status != THIELE_OK) {
            return status;
        }
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = 0; i < part.n; i++) {
                K.data[first + i + j * K.ld] = room[j + i * n];
            }
        }
    }
    return THIELE_OK;
}

thiele_status thi_predictor_block(const thi_predictor *p, thiele_context *ctx, int64_t n, const double *X,
                                  const thi_rows_space *space, const thi_matrix *C, double *mean, double *variance)
{
    thi_rows_space s = {first_columns(space->K, p->n, n), space->R, space->portion};
    thi_inputs inputs;
    thiele_status status = thi_inputs_make(&inputs, ctx, p->kernel, n, X);
    if (status != THIELE_OK) {
        return status;
    }
    THI_TRY(thi_predictor_fill(p, ctx, &inputs, s.portion.data, s.K));
    for (int k = 0; k < p->components; k++) {
        THI_TRY(one_mean(p, ctx, k, &inputs, &s, mean + k * n));
    }
    if (variance != NULL) {
        THI_TRY(prior_variances(p, ctx, &inputs, variance));
    }
    if (variance != NULL && p->n > 0) {
        THI_TRY(C != NULL ? add_by_one(p, ctx, C, &s, variance) : add_by_both(p, ctx, &s, variance));
    }
out:
    thi_inputs_clear(&inputs);
    return status;
}

/* --- rows together --------------------------------------------------------------------------------------------------
 */

/* C (lower triangle) += (R u)'(R u) */
static thiele_status joint_plus(const thi_predictor *p, thiele_context *ctx, int component, const thi_rows_space *s,
                                thi_matrix C)
{
    thi_matrix Ru;
    thiele_status status = apply_plus(p, ctx, component, s, &Ru);
    return status == THIELE_OK ? thi_multiply(ctx, THI_T, THI_N, 1.0, Ru, Ru, 1.0, C, true) : status;
}

/* C (lower triangle) = what the conditional keeps of k(x, x'). */
static thiele_status joint_prior(const thi_predictor *p, thiele_context *ctx, const thi_inputs *inputs, thi_matrix C)
{
    int64_t n = C.rows;
    if (p->conditional == THI_CONDITIONAL_FULL) {
        return thi_kernel_fill(p->kernel, ctx, inputs, inputs, C, true);
    }
    memset(C.data, 0, (size_t)(n * n) * sizeof *C.data);
    if (p->conditional == THI_CONDITIONAL_NONE) {
        return THIELE_OK;
    }
    /* The first column holds the diagonal until each number is in its place. */
    thiele_status status = thi_kernel_fill_diagonal(p->kernel, ctx, inputs, C.data);
    for (int64_t j = 1; j < n && status == THIELE_OK; j++) {
        C.data[j + j * n] = C.data[j];
        C.data[j] = 0.0;
    }
    return status;
}

/* C (lower triangle) -= what it keeps of w'w. */
static thiele_status joint_explained(const thi_predictor *p, thiele_context *ctx, thi_matrix w, thi_matrix C)
{
    if (p->conditional == THI_CONDITIONAL_FULL) {
        return thi_multiply(ctx, THI_T, THI_N, -1.0, w, w, 1.0, C, true);
    }
    for (int64_t j = 0; p->conditional == THI_CONDITIONAL_DIAGONAL && j < C.cols; j++) {
        C.data[j + j * C.ld] -= thi_blas_dot(p->n, w.data + j * w.ld, w.data + j * w.ld);
    }
    return THIELE_OK;
}

static void scale_joint(const thi_predictor *p, int64_t n, double *covariance)
{
    for (int64_t i = 0; i < n * n; i++) {
        covariance[i] *= thi_predictor_tau(p);
    }
}

thiele_status thi_predictor_joint(const thi_predictor *predictor, thiele_context *ctx, int component, int64_t n,
                                  const double *X, double *mean, double *covariance)
{
    thi_rows_space s = {0};
    thi_inputs inputs = {0};
    thi_matrix C = thi_matrix_view(covariance, n, n, n);
    bool on_kernel = predictor->plus == THI_PLUS_KERNEL;
    thiele_status status;
    if (predictor->local != NULL) {
        THI_TRY(thi_local_joint(predictor, ctx, n, X, mean, covariance));
        scale_joint(predictor, n, covariance);
        return THIELE_OK;
    }
    THI_TRY(thi_inputs_make(&inputs, ctx, predictor->kernel, n, X));
    THI_TRY(thi_rows_space_open(&s, ctx, predictor, n, true));
    THI_TRY(thi_predictor_fill(predictor, ctx, &inputs, s.portion.data, s.K));
    THI_TRY(one_mean(predictor, ctx, component, &inputs, &s, mean));
    THI_TRY(joint_prior(predictor, ctx, &inputs, C));
    if (predictor->n > 0 && on_kernel) {
        THI_TRY(joint_plus(predictor, ctx, component, &s, C));
    }
    if (predictor->n > 0) {
        THI_TRY(whiten(predictor, ctx, s.K));
        THI_TRY(joint_explained(predictor, ctx, s.K, C));
    }
    if (predictor->n > 0 && predictor->plus != THI_PLUS_NONE && !on_kernel) {
        THI_TRY(joint_plus(predictor, ctx, component, &s, C));
    }
    thi_symmetrise(C);
    scale_joint(predictor, n, covariance);
out:
    thi_inputs_clear(&inputs);
    thi_rows_space_close(&s);
    return status;
}
