/*
 * The smallest library for another device: the table of posterior/device_plugin.h by plain loops on the host, with the
 * same formulas of one entry. Tests load it in place of libthiele-cuda. TOY_DEVICE of the environment says what is
 * wrong with it: "version", "none" (no card), "full" (no room for a matrix), "slow" (in double), "breaks:N" (the N-th
 * gradient fails).
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "posterior/device_plugin.h"
#include <thiele/version.h>

typedef struct toy {
    int64_t n;
    int targets, features;
    double *L, *V, *alpha, *u; /* V: columns of K^-1, or of L^-1 */
} toy;

static bool is(const char *wrong)
{
    const char *text = getenv("TOY_DEVICE");
    return text != NULL && strncmp(text, wrong, strlen(wrong)) == 0;
}

static thiele_status refuse(thi_device_said *said, const char *why)
{
    snprintf(said->text, sizeof said->text, "%s", why);
    return THIELE_ERROR_UNSUPPORTED;
}

static int count(thi_device_said *said)
{
    refuse(said, "there is no toy");
    return is("none") ? 0 : 1;
}

static thiele_status describe(int card, thi_device_card *out, thi_device_said *said)
{
    (void)card, (void)said;
    *out = (thi_device_card){.model = "Toy",
                             .memory = 1 << 30,
                             .available = 1 << 29,
                             .major = 1,
                             .minor = 2,
                             .driver = 13000,
                             .double_slowdown = is("slow") ? 32 : 2};
    return THIELE_OK;
}

static thiele_status begin(void **session, int card, thi_device_said *said)
{
    (void)said;
    *session = calloc(1, sizeof card);
    return *session != NULL ? THIELE_OK : refuse(said, "no memory");
}

static void exact_close(void *self)
{
    toy *e = self;
    if (e != NULL) {
        free(e->L);
        free(e->V);
        free(e->alpha);
        free(e->u);
        free(e);
    }
}

static thiele_status exact_open(void **self, void *session, int64_t n, int targets, thi_device_said *said)
{
    toy *e = calloc(1, sizeof *e);
    (void)session;
    *self = NULL;
    if (e == NULL || is("full")) {
        free(e);
        return refuse(said, "the toy has no room");
    }
    *e = (toy){.n = n, .targets = targets};
    e->L = calloc((size_t)(n * n), sizeof(double));
    e->V = calloc((size_t)(n * n), sizeof(double));
    e->alpha = calloc((size_t)(n * targets), sizeof(double));
    *self = e;
    return e->L != NULL && e->V != NULL && e->alpha != NULL ? THIELE_OK : refuse(said, "no memory");
}

/* Returns 0 or 1 + the pivot that is not positive. */
static int64_t factor(int64_t n, double *A)
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            for (int64_t k = 0; k < j; k++) {
                A[i + j * n] -= A[i + k * n] * A[j + k * n];
            }
            if (i == j && !(A[i + j * n] > 0.0)) {
                return j + 1;
            }
            A[i + j * n] = i == j ? sqrt(A[i + j * n]) : A[i + j * n] / A[j + j * n];
        }
    }
    return 0;
}

static thiele_status exact_factor(void *self, const thi_entry_kernel *kernel, const double *u, double add, int64_t *bad,
                                  double *log_det, thi_device_said *said)
{
    toy *e = self;
    int features = 0;
    for (int l = 0; l < kernel->leaves; l++) {
        features += kernel->leaf[l].features;
    }
    size_t bytes = (size_t)(e->n * features) * sizeof *u;
    free(e->u);
    e->features = features;
    e->u = malloc(bytes + 1);
    if (e->u == NULL) {
        return refuse(said, "no memory");
    }
    memcpy(e->u, u, bytes);
    const thi_entry_rows rows = {e->n, e->u};
    for (int64_t j = 0; j < e->n; j++) {
        for (int64_t i = j; i < e->n; i++) {
            e->L[i + j * e->n] = thi_entry_value(kernel, &rows, i, j, -1, NULL, NULL) + (i == j ? add : 0.0);
        }
    }
    *bad = factor(e->n, e->L);
    *log_det = 0.0;
    for (int64_t i = 0; *bad == 0 && i < e->n; i++) {
        *log_det += 2.0 * log(e->L[i + i * e->n]);
    }
    return THIELE_OK;
}

static void forward(const toy *e, double *x)
{
    for (int64_t i = 0; i < e->n; i++) {
        for (int64_t k = 0; k < i; k++) {
            x[i] -= e->L[i + k * e->n] * x[k];
        }
        x[i] /= e->L[i + i * e->n];
    }
}

static void backward(const toy *e, double *x)
{
    for (int64_t i = e->n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < e->n; k++) {
            x[i] -= e->L[k + i * e->n] * x[k];
        }
        x[i] /= e->L[i + i * e->n];
    }
}

static thiele_status exact_solve(void *self, double *alpha, double *fit, thi_device_said *said)
{
    toy *e = self;
    (void)said;
    *fit = 0.0;
    for (int p = 0; p < e->targets; p++) {
        double *x = alpha + p * e->n;
        forward(e, x);
        for (int64_t i = 0; i < e->n; i++) {
            *fit += x[i] * x[i];
        }
        backward(e, x);
    }
    memcpy(e->alpha, alpha, (size_t)(e->n * e->targets) * sizeof *alpha);
    return THIELE_OK;
}

/* Columns of L^-1 into V. */
static void invert(toy *e)
{
    memset(e->V, 0, (size_t)(e->n * e->n) * sizeof *e->V);
    for (int64_t j = 0; j < e->n; j++) {
        e->V[j + j * e->n] = 1.0;
        forward(e, e->V + j * e->n);
    }
}

static void pull_entry(const toy *e, const thi_entry_kernel *kernel, int which, int64_t i, int64_t j, double *u_bar,
                       double *leaf_bar)
{
    const thi_entry_leaf *leaf = &kernel->leaf[which];
    const thi_entry_rows rows = {e->n, e->u};
    thi_jet jet = thi_jet_of(0.0, 0.0, 0.0);
    double slope, kbar = thi_entry_adjoint(e->n, e->targets, e->alpha, e->V[i + j * e->n], i, j);
    thi_entry_value(kernel, &rows, i, j, which, &jet, &slope);
    leaf_bar[0] += kbar * slope * jet.k;
    leaf_bar[1] += kbar * slope * jet.dshape;
    for (int f = leaf->first; f < leaf->first + leaf->features; f++) {
        double weight = kbar * slope * jet.dk, a = e->u[i + f * e->n], b = e->u[j + f * e->n];
        bool distance = leaf->family == THI_DISTANCE;
        u_bar[i + f * e->n] += weight * (distance ? 2.0 * (a - b) : b);
        u_bar[j + f * e->n] += weight * (distance ? 2.0 * (b - a) : a);
    }
}

static thiele_status exact_pull(void *self, const thi_entry_kernel *kernel, double *u_bar, double *leaf_bar,
                                double *add_bar, thi_device_said *said)
{
    static int pulls;
    toy *e = self;
    if (is("breaks:") && ++pulls == atoi(getenv("TOY_DEVICE") + strlen("breaks:"))) {
        return refuse(said, "the toy broke");
    }
    memset(u_bar, 0, (size_t)(e->n * e->features) * sizeof *u_bar);
    memset(leaf_bar, 0, (size_t)(2 * kernel->leaves) * sizeof *leaf_bar);
    *add_bar = 0.0;
    invert(e);
    for (int64_t j = 0; j < e->n; j++) {
        backward(e, e->V + j * e->n);
        *add_bar += thi_entry_adjoint(e->n, e->targets, e->alpha, e->V[j + j * e->n], j, j);
        for (int64_t i = j; i < e->n; i++) {
            for (int l = 0; l < kernel->leaves; l++) {
                pull_entry(e, kernel, l, i, j, u_bar, leaf_bar + 2 * l);
            }
        }
    }
    return THIELE_OK;
}

static thiele_status exact_diagonal(void *self, double *diagonal, thi_device_said *said)
{
    toy *e = self;
    (void)said;
    invert(e);
    for (int64_t j = 0; j < e->n; j++) {
        diagonal[j] = 0.0;
        for (int64_t i = j; i < e->n; i++) {
            diagonal[j] += e->V[i + j * e->n] * e->V[i + j * e->n];
        }
    }
    return THIELE_OK;
}

static thiele_status exact_factor_out(void *self, double *L, thi_device_said *said)
{
    const toy *e = self;
    (void)said;
    memcpy(L, e->L, (size_t)(e->n * e->n) * sizeof *L);
    return THIELE_OK;
}

const thi_device_ops *thiele_device_plugin(void);

const thi_device_ops *thiele_device_plugin(void)
{
    static thi_device_ops operations = {
        THI_DEVICE_INTERFACE, THIELE_VERSION, count,        describe,    begin,      free,
        exact_open,           exact_close,    exact_factor, exact_solve, exact_pull, exact_diagonal,
        exact_factor_out};
    operations.version = is("version") ? "0.0.1" : THIELE_VERSION;
    return &operations;
}
