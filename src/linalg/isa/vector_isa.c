/*
 * The loops of linalg/vector.h for one instruction set (the build compiles this file once for each). A tail shorter
 * than a vector is copied into one, so that every element goes through the same instructions.
 */
#include <math.h>

#include "linalg/isa/lanes.h"
#include "linalg/vector.h"

#define LOG_SQRT_2PI 0.918938533204672741780

/* y_i = f(x_i) for a vector function f. */
#define MAP(name, f)                                                                                                   \
    static void name(int64_t n, const double *x, double *y)                                                            \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; i + W <= n; i += W) {                                                                                   \
            store(y + i, f(load(x + i)));                                                                              \
        }                                                                                                              \
        if (i < n) {                                                                                                   \
            store_part(y + i, f(load_part(x + i, n - i)), n - i);                                                      \
        }                                                                                                              \
    }

/* y_i = f(x_i, &z_i) for a vector function f with two results. */
#define MAP_BOTH(name, f)                                                                                              \
    static void name(int64_t n, const double *x, double *y, double *z)                                                 \
    {                                                                                                                  \
        vd second;                                                                                                     \
        int64_t i = 0;                                                                                                 \
        for (; i + W <= n; i += W) {                                                                                   \
            store(y + i, f(load(x + i), &second));                                                                     \
            store(z + i, second);                                                                                      \
        }                                                                                                              \
        if (i < n) {                                                                                                   \
            store_part(y + i, f(load_part(x + i, n - i), &second), n - i);                                             \
            store_part(z + i, second, n - i);                                                                          \
        }                                                                                                              \
    }

/* exp(-|x|) */
static inline vd exp_down(vd x)
{
    return VEXP((vd)((vi)x | INT64_MIN));
}

/*
 * log(1 + e) for 0 <= e <= 1 as 2 atanh(s), s = e/(2 + e) <= 1/3; (atanh(s)/s - 1)/s^2 is a polynomial in s^2 through
 * the ten Chebyshev points of [0, 1/9], off by 5e-18. Half the time of a log1p for any argument.
 */
static inline vd log_one_more(vd e)
{
    static const double c[] = {0.333333333333333293,  0.200000000000072913,  0.142857142835543786,
                               0.111111113587139315,  0.0909089471806642908, 0.0769278503247931155,
                               0.0665707210482746808, 0.0600053640479535627, 0.0440036924307233694,
                               0.0808202280597176611};
    vd s = e / (2.0 + e);
    vd t = s * s;
    vd p = splat(c[9]);
    for (int k = 8; k >= 0; k--) {
        p = c[k] + t * p;
    }
    return 2.0 * (s + s * t * p);
}

static inline vd log_sigmoid(vd x)
{
    return where((vi)(x < 0.0), x) - log_one_more(exp_down(x));
}

MAP(map_exp, VEXP)
MAP(map_log, VLOG)
MAP(map_log_sigmoid, log_sigmoid)

static inline vd sigmoid(vd x, vd *slope)
{
    vd e = exp_down(x);
    vd over = 1.0 / (1.0 + e);
    vi left = (vi)(x < 0.0);
    *slope = e * over * over;
    return over * (where(left, e) + where(~left, splat(1.0)));
}

MAP_BOTH(map_sigmoid, sigmoid)

static inline bool any(vi mask)
{
    int64_t found = 0;
    for (int j = 0; j < W; j++) {
        found |= mask[j];
    }
    return found != 0;
}

/* 1/(t + 2/(t + 3/(t + ...))), t >= FAR: 24 terms give full precision. */
#define FAR 6.0
static inline vd far_excess(vd t)
{
    vd tail = t;
    for (int k = 24; k >= 2; k--) {
        tail = t + (double)k / tail;
    }
    return 1.0 / tail;
}

/* Below -FAR: Phi(x) = phi(x)/(-x + excess). */
static inline vd log_phi(vd x)
{
    vd tail = 0.5 * VERFC((vd)((vi)x & INT64_MAX) * M_SQRT1_2);
    vi positive = (vi)(x > 0.0), far = (vi)(x < -FAR);
    vd near = choose(positive, VLOG1P(-tail), VLOG(choose(far, splat(1.0), tail)));
    if (any(far)) {
        vd t = choose(far, -x, splat(FAR));
        near = choose(far, -0.5 * t * t - LOG_SQRT_2PI - VLOG(t + far_excess(t)), near);
    }
    return near;
}

static inline vd mills(vd x, vd *excess)
{
    vd tail = 0.5 * VERFC((vd)((vi)x & INT64_MAX) * M_SQRT1_2);
    vi positive = (vi)(x > 0.0), far = (vi)(x < -FAR);
    vd density = VEXP(-0.5 * x * x - LOG_SQRT_2PI);
    vd m = density / choose(positive, 1.0 - tail, choose(far, splat(1.0), tail));
    *excess = x + m;
    if (any(far)) {
        vd t = choose(far, -x, splat(FAR));
        *excess = choose(far, far_excess(t), *excess);
        m = choose(far, t + *excess, m);
    }
    return m;
}

MAP(map_log_phi, log_phi)

MAP_BOTH(map_mills, mills)

static inline vd polar(vd u, vd v, vd *other)
{
    VPAIR turn = VTURN(2.0 * v);
    vd radius = (vd)VSQRT(-2.0 * (vd)VLOG(u));
    *other = radius * (vd)turn.x;
    return radius * (vd)turn.y;
}

static void map_normals(int64_t n, const double *u, const double *v, double *x, double *y)
{
    vd second;
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        store(x + i, polar(load(u + i), load(v + i), &second));
        store(y + i, second);
    }
    if (i < n) {
        store_part(x + i, polar(load_part(u + i, n - i), load_part(v + i, n - i), &second), n - i);
        store_part(y + i, second, n - i);
    }
}

static inline vd squared(vd a, double b, vd g, vi *lost)
{
    vd sum = a + b;
    vd r2 = sum - 2.0 * g;
    *lost |= ~(vi)(r2 >= THI_DISTANCE_LOSS * sum); /* true for NaN too: |u|^2 may have overflowed */
    return where(~(vi)(r2 < 0.0), r2);
}

static bool distance(int64_t n, const double *a, double b, double *g)
{
    vi lost = {0};
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        store(g + i, squared(load(a + i), b, load(g + i), &lost));
    }
    if (i < n) {
        vi ignored = {0};
        vd r2 = squared(load_part(a + i, n - i), b, load_part(g + i, n - i), &ignored);
        store_part(g + i, r2, n - i);
        for (int64_t j = 0; j < n - i; j++) {
            lost[0] |= ignored[j];
        }
    }
    int64_t any = 0;
    for (int j = 0; j < W; j++) {
        any |= lost[j];
    }
    return any != 0;
}

static void times(int64_t n, const double *x, const double *h, double *y)
{
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        store(y + i, load(x + i) * load(h + i));
    }
    for (; i < n; i++) {
        y[i] = x[i] * h[i];
    }
}

static void add_times(int64_t n, const double *x, const double *h, double *sum)
{
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        store(sum + i, load(sum + i) + load(x + i) * load(h + i));
    }
    for (; i < n; i++) {
        sum[i] += x[i] * h[i];
    }
}

static void combine(int64_t n, double a, const double *g, const double *x, const double *h, bool add, double *y)
{
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        vd own = a * load(g + i) + load(x + i) * load(h + i);
        store(y + i, add ? load(y + i) + own : own);
    }
    for (; i < n; i++) {
        double own = a * g[i] + x[i] * h[i];
        y[i] = add ? y[i] + own : own;
    }
}

static double weigh(int64_t n, double scale, const double *a, const double *b, double *w, double *sum)
{
    vd total = {0};
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        vd product = scale * load(a + i) * load(b + i);
        store(w + i, product);
        store(sum + i, load(sum + i) + product);
        total += product;
    }
    if (i < n) {
        vd product = scale * load_part(a + i, n - i) * load_part(b + i, n - i);
        store_part(w + i, product, n - i);
        store_part(sum + i, load_part(sum + i, n - i) + product, n - i);
        total += product;
    }
    double all = 0.0;
    for (int j = 0; j < W; j++) {
        all += total[j];
    }
    return all;
}

static inline vd apart_squared(double x, vd z, double s)
{
    vd apart = (x - z) * s;
    return apart * apart;
}

/*
 * t_i = sum_f term(x_f, Z_if, s_f), SOME vectors at a time, so that their sums need not wait for each other, and then
 * one by one.
 */
enum { SOME = 4 };
#define POINT_SUMS(count, term)                                                                                        \
    for (; i + (count)*W <= n; i += (count)*W) {                                                                       \
        vd sum[SOME] = {{0}};                                                                                          \
        for (int f = 0; f < F; f++) {                                                                                  \
            const double *z = Z + f * stride + i;                                                                      \
            for (int k = 0; k < (count); k++) {                                                                        \
                sum[k] += term;                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        for (int k = 0; k < (count); k++) {                                                                            \
            store(t + i + k * W, sum[k]);                                                                              \
        }                                                                                                              \
    }

static void point_distances(int64_t n, int F, int64_t stride, const double *Z, const double *x, const double *s,
                            double *t)
{
    int64_t i = 0;
    POINT_SUMS(SOME, apart_squared(x[f], load(z + k * W), s[f]))
    POINT_SUMS(1, apart_squared(x[f], load(z + k * W), s[f]))
}

static void point_products(int64_t n, int F, int64_t stride, const double *Z, const double *x, double *t)
{
    int64_t i = 0;
    POINT_SUMS(SOME, x[f] * load(z + k * W))
    POINT_SUMS(1, x[f] * load(z + k * W))
}

/* Four sums of every fourth column. */
static void panel(int64_t columns, const double *A, const double *x, double *y)
{
    enum { CHAINS = 4, PARTS = THI_PANEL / W };
    vd sum[CHAINS][PARTS] = {{{0}}};
    for (int64_t j = 0; j < columns; j += CHAINS) {
        for (int c = 0; c < CHAINS; c++) {
            for (int k = 0; k < PARTS; k++) {
                sum[c][k] += x[j + c] * load(A + (j + c) * THI_PANEL + k * W);
            }
        }
    }
    for (int k = 0; k < PARTS; k++) {
        store(y + k * W, (sum[0][k] + sum[1][k]) + (sum[2][k] + sum[3][k]));
    }
}

#define NAME_(x) #x
#define NAME(x)  NAME_(x)

extern const thi_vector_ops PASTE(thi_vector_, THI_ISA);
const thi_vector_ops PASTE(thi_vector_, THI_ISA) = {
    .name = NAME(THI_ISA),
    .exp = map_exp,
    .log = map_log,
    .log_sigmoid = map_log_sigmoid,
    .sigmoid = map_sigmoid,
    .log_phi = map_log_phi,
    .mills = map_mills,
    .normals = map_normals,
    .distance = distance,
    .times = times,
    .add_times = add_times,
    .combine = combine,
    .weigh = weigh,
    .point_distances = point_distances,
    .point_products = point_products,
    .panel = panel,
};
