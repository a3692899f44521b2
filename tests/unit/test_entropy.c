/*
 * Bounds on the entropy of mixtures (posterior/variational_kl.c), got as KL(q || p) without rows less the cross term:
 * never above the entropy by quadrature; the pairwise one is exact for equal components at any M and for components far
 * apart.
 */
#include "testing.h"

#include "posterior/variational.h"

static const double LOG_2PI = 1.837877066409345483561;

enum { MOST_K = 5 };

/* KL of q over M inducing variables of one latent, whitened, without rows. */
static double divergence(thiele_context *ctx, thi_shape shape, const double *q)
{
    thi_variational *v = NULL;
    thiele_kernel *kernel = NULL;
    double *Z = calloc((size_t)shape.inducing, sizeof *Z), kl;
    const double *Z_of = Z;
    assert_non_null(Z);
    for (int64_t i = 0; i < shape.inducing; i++) {
        Z[i] = (double)i;
    }
    assert_ok(ctx, thiele_kernel_parse(&kernel, ctx, "se(lengthscale=0.5)", 1, NULL));
    thi_prior prior = {kernel, THI_MEAN_ZERO, NULL};
    shape.latents = shape.dims = 1;
    shape.capacity = 1;
    shape.whitened = true;
    assert_ok(ctx, thi_variational_open(&v, ctx, &shape));
    assert_ok(ctx, thi_variational_begin(v, ctx, &prior, &Z_of, q, NULL, true));
    assert_ok(ctx, thi_variational_end(v, ctx, NULL, &kl, NULL));
    thi_variational_close(v);
    thiele_kernel_destroy(kernel);
    free(Z);
    return kl;
}

/* A mixture in one or two dimensions: weights, means, packed factors with logs on the diagonal. */
typedef struct mixture {
    int K, M;
    double q[MOST_K * 6], weight[MOST_K];
} mixture;

static const double *member(const mixture *x, int k)
{
    int each = x->M + x->M * (x->M + 1) / 2;
    return x->q + x->K + k * each;
}

static mixture draw(int number, int M)
{
    mixture x = {.K = 2 + number % (MOST_K - 1), .M = M};
    double z[64], spread = exp(0.02 * (number % 200) - 2.0), sum = 0.0;
    int each = M + M * (M + 1) / 2;
    test_normals(64, (uint64_t)(1000 + number), z);
    for (int k = 0; k < x.K; k++) {
        x.q[k] = z[k];
        sum += exp(z[k]);
        double *own = x.q + x.K + k * each;
        for (int i = 0; i < each; i++) {
            own[i] = (i < M ? spread : 0.7) * z[x.K + k * each + i];
        }
    }
    for (int k = 0; k < x.K; k++) {
        x.weight[k] = exp(x.q[k]) / sum;
    }
    return x;
}

static double density(const mixture *x, const double *at)
{
    double sum = 0.0;
    for (int k = 0; k < x->K; k++) {
        const double *m = member(x, k), *L = m + x->M;
        double e0 = (at[0] - m[0]) * exp(-L[0]), square = e0 * e0, log_det = L[0];
        if (x->M == 2) {
            double e1 = (at[1] - m[1] - L[1] * e0) * exp(-L[2]);
            square += e1 * e1;
            log_det += L[2];
        }
        sum += x->weight[k] * exp(-0.5 * square - log_det - 0.5 * x->M * LOG_2PI);
    }
    return sum;
}

/* -int p log p by an even grid over ten deviations around all means. */
static double entropy(const mixture *x)
{
    int steps = x->M == 1 ? 4000 : 500;
    double low[2] = {0}, width[2] = {0}, sum = 0.0, cell = 1.0, shortest = INFINITY;
    for (int i = 0; i < x->M; i++) {
        double high = -INFINITY;
        low[i] = INFINITY;
        for (int k = 0; k < x->K; k++) {
            const double *m = member(x, k), *L = m + x->M;
            double sd = i == 0 ? exp(L[0]) : hypot(L[1], exp(L[2]));
            low[i] = fmin(low[i], m[i] - 9.0 * sd);
            high = fmax(high, m[i] + 9.0 * sd);
            shortest = fmin(shortest, i == 0 ? exp(L[0]) : exp(L[2]));
        }
        width[i] = (high - low[i]) / steps;
        cell *= width[i];
    }
    if (fmax(width[0], width[1]) > 0.7 * shortest) {
        return NAN; /* the grid does not resolve it */
    }
    for (int i = 0; i <= steps; i++) {
        for (int j = 0; j <= (x->M == 2 ? steps : 0); j++) {
            double at[2] = {low[0] + i * width[0], low[1] + j * width[1]}, p = density(x, at);
            sum -= p > 0.0 ? p * log(p) : 0.0;
        }
    }
    return sum * cell;
}

static double bound(thiele_context *ctx, const mixture *x, bool jensen)
{
    thi_shape shape = {.components = x->K, .inducing = x->M, .jensen = jensen};
    double cross = 0.0;
    for (int k = 0; k < x->K; k++) {
        const double *m = member(x, k), *L = m + x->M;
        double square = m[0] * m[0] + exp(2.0 * L[0]);
        if (x->M == 2) {
            square += m[1] * m[1] + L[1] * L[1] + exp(2.0 * L[2]);
        }
        cross -= 0.5 * x->weight[k] * (square + x->M * LOG_2PI);
    }
    return -divergence(ctx, shape, x->q) - cross;
}

/* A thousand mixtures that a grid resolves, from all on one heap to all apart. */
static void test_never_above(void **state)
{
    (void)state;
    enum { WANTED = 1000, PLANES = 60 };
    thiele_context *ctx = test_context(1);
    int done = 0;
    double closest = INFINITY, widest = 0.0;
    for (int number = 0; done < WANTED; number++) {
        mixture x = draw(number, done < PLANES ? 2 : 1);
        double H = entropy(&x);
        if (isnan(H)) {
            continue;
        }
        double pairwise = bound(ctx, &x, false), jensen = bound(ctx, &x, true);
        /* The grid is exact to rounding: its step is below a deviation of every component. */
        assert_true(pairwise <= H + 1e-9 && jensen <= H + 1e-9);
        closest = fmin(closest, H - pairwise);
        widest = fmax(widest, H - pairwise);
        done++;
    }
    print_message("below the entropy by %.2g to %.2g\n", closest, widest);
    thiele_context_destroy(ctx);
}

/* One component, or K copies of it with any weights; deviations from e^-8 to 1. */
static void check_equal(thiele_context *ctx, int64_t M, int K, bool diagonal)
{
    thi_shape one = {.components = 1, .inducing = M, .diagonal = diagonal, .latents = 1}, many = one;
    many.components = K;
    int64_t size = thi_variational_size(&one);
    double *q = calloc((size_t)(K + K * size), sizeof *q);
    assert_non_null(q);
    test_normals(K, 3, q);
    double *own = q + K;
    test_normals(size, 5, own);
    for (int64_t j = 0, at = M; j < M; at += diagonal ? 1 : M - j, j++) {
        double log_sd = -8.0 * (double)j / (double)M;
        own[at] = log_sd;
        for (int64_t i = 1; !diagonal && i < M - j; i++) {
            own[at + i] *= 0.3 * exp(log_sd);
        }
    }
    for (int k = 1; k < K; k++) {
        memcpy(own + k * size, own, (size_t)size * sizeof *own);
    }
    double want = divergence(ctx, one, own), got = divergence(ctx, many, q);
    assert_near(got, want, 0.0, 1e-8);
    free(q);
}

static void test_equal(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    const int64_t sizes[] = {1, 7, 64, 400};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_equal(ctx, sizes[i], 2, false);
        check_equal(ctx, sizes[i], 3, true);
    }
    check_equal(ctx, 20, 5, false);
    thiele_context_destroy(ctx);
}

/* Far apart: the entropies of the components and that of their weights. */
static void test_far(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    for (int number = 0; number < 20; number++) {
        mixture x = draw(number, 1 + number % 2);
        double want = 0.0;
        for (int k = 0; k < x.K; k++) {
            double *m = (double *)member(&x, k), *L = m + x.M;
            m[0] = 1e3 * k;
            want += x.weight[k] * (0.5 * x.M * (1.0 + LOG_2PI) + L[0] + (x.M == 2 ? L[2] : 0.0) - log(x.weight[k]));
        }
        assert_near(bound(ctx, &x, false), want, 1e-12, 1e-8); /* beside a cross term of 1e7 */
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_above),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
