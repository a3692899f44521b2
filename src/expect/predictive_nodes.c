/*
 * The density of y along its axis, and the nodes of a cell: Gauss-Legendre nodes, or, for counts, whole numbers near
 * those, with the weights that add up polynomials exactly (from the discrete Chebyshev polynomials, which are
 * orthogonal on 0, ..., m - 1).
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "expect/predictive_distribution.h"
#include "likelihood/special.h"

enum { N = THI_CELL_NODES };
/* Beyond these y is 0, 1 or infinite in doubles. */
#define LOG_REACH   700.0
#define COUNT_REACH 0x1p52

/* --- the axis ----------------------------------------------------------------------------------------------------- */

double thi_to_support(thi_support support, double x)
{
    if (support == THI_SUPPORT_POSITIVE) {
        return fmin(fmax(exp(x), DBL_MIN), DBL_MAX);
    }
    return support == THI_SUPPORT_UNIT ? fmin(fmax(thi_sigmoid(x), DBL_MIN), 1 - 0.5 * DBL_EPSILON) : x;
}

double thi_from_support(thi_support support, double y)
{
    return support == THI_SUPPORT_POSITIVE ? log(y) : support == THI_SUPPORT_UNIT ? log(y / (1 - y)) : y;
}

double thi_support_slope(thi_support support, double y)
{
    return support == THI_SUPPORT_POSITIVE ? y : support == THI_SUPPORT_UNIT ? y * (1 - y) : 1;
}

void thi_support_ends(thi_support support, double *low, double *high)
{
    static const double ends[THI_SUPPORTS][2] = {
        [THI_SUPPORT_REAL] = {-DBL_MAX, DBL_MAX},          [THI_SUPPORT_POSITIVE] = {-LOG_REACH, LOG_REACH},
        [THI_SUPPORT_UNIT] = {-LOG_REACH, THI_UNIT_REACH}, [THI_SUPPORT_COUNT] = {0, COUNT_REACH},
        [THI_SUPPORT_BINARY] = {-DBL_MAX, DBL_MAX},        [THI_SUPPORT_CLASS] = {-DBL_MAX, DBL_MAX}};
    *low = ends[support][0];
    *high = ends[support][1];
}

static bool on_axis(thi_support support, double x)
{
    double low, high;
    thi_support_ends(support, &low, &high);
    return x >= low && x <= high;
}

static double log_slope(thi_support support, double x)
{
    if (support == THI_SUPPORT_POSITIVE) {
        return x;
    }
    return support == THI_SUPPORT_UNIT ? thi_log_sigmoid(x) + thi_log_sigmoid(-x) : 0;
}

/* Where the latents are known there is nothing to integrate. */
static thiele_status densities_given(thi_law *law, int count)
{
    const thiele_likelihood *lik = law->expect->lik;
    lik->ops->log_density(lik, count, law->points, law->mu, law->log_p);
    for (int i = 0; i < count; i++) {
        if (isnan(law->log_p[i])) {
            return thi_fail(law->ctx, THIELE_ERROR_NUMERIC,
                            "likelihood '%s': log p(y | f) is not a number at y = %g, f = %g",
                            thiele_likelihood_name(lik), law->points[i * lik->outputs + law->output], law->mu[0]);
        }
    }
    return THIELE_OK;
}

static bool all_known(int64_t Q, const double *v)
{
    bool known = true;
    for (int64_t q = 0; q < Q; q++) {
        known = known && v[q] == 0;
    }
    return known;
}

/* Component k at all points; log_p += pi_k times its density. */
static thiele_status add_component(thi_law *law, int k, int count, double *log_p)
{
    const thi_marginals *row = &law->row;
    int64_t Q = law->expect->lik->latents;
    thi_repeat(Q, row->mu + k * Q, count, law->mu);
    thi_repeat(Q, row->v + k * Q, count, law->v);
    thiele_status status =
        all_known(Q, row->v + k * Q)
            ? densities_given(law, count)
            : thi_log_predictive_block(law->expect, law->ctx, count, law->points, law->mu, law->v, law->log_p);
    double log_pi = row->components > 1 ? log(row->weight[k]) : 0;
    for (int i = 0; i < count && status == THIELE_OK; i++) {
        double one = law->log_p[i] + log_pi;
        log_p[i] = k == 0 ? one : thi_log_add(log_p[i], one);
    }
    return status;
}

thiele_status thi_law_densities(thi_law *law, int count, const double *x, double *log_p)
{
    int64_t P = law->expect->lik->outputs;
    thi_repeat(P, law->y, count, law->points);
    double far = 0;
    for (int i = 0; i < count; i++) {
        double y = on_axis(law->support, x[i]) ? thi_to_support(law->support, x[i]) : 1;
        law->points[i * P + law->output] = y;
        far = fmax(far, fabs(y));
    }
    thiele_status status = THIELE_OK;
    law->expect->space->floor = law->floor - (law->moments ? 2 * log1p(far) : 0);
    law->expect->space->coarse = true;
    for (int k = 0; k < law->row.components && status == THIELE_OK; k++) {
        status = add_component(law, k, count, log_p);
    }
    law->expect->space->floor = -INFINITY;
    law->expect->space->coarse = false;
    for (int i = 0; i < count; i++) {
        log_p[i] = on_axis(law->support, x[i]) ? log_p[i] + log_slope(law->support, x[i]) : -INFINITY;
    }
    return status;
}

/* --- nodes and weights of a cell ---------------------------------------------------------------------------------- */

/*
 * w with sum_j w_j u_i(x_j) = m for i = 0 and 0 for i = 1, ..., N - 1: u_i are the discrete Chebyshev polynomials over
 * 0, ..., m - 1 divided by m^i, (i + 1) u_{i+1} = (2i + 1) (2x - m + 1)/m u_i - i (1 - i^2/m^2) u_{i-1}. By
 * elimination.
 */
static void count_weights(double m, const double *x, double *w)
{
    double A[N][N + 1];
    for (int j = 0; j < N; j++) {
        double s = (2 * x[j] - m + 1) / m, last = 0, now = 1;
        for (int i = 0; i < N; i++) {
            A[i][j] = now;
            double next = ((2 * i + 1) * s * now - i * (1 - i * i / (m * m)) * last) / (i + 1);
            last = now;
            now = next;
        }
    }
    for (int i = 0; i < N; i++) {
        A[i][N] = i == 0 ? m : 0;
    }
    for (int c = 0; c < N; c++) {
        int pivot = c;
        for (int i = c + 1; i < N; i++) {
            pivot = fabs(A[i][c]) > fabs(A[pivot][c]) ? i : pivot;
        }
        for (int j = c; j <= N; j++) {
            double held = A[c][j];
            A[c][j] = A[pivot][j];
            A[pivot][j] = held;
        }
        for (int i = 0; i < N; i++) {
            double factor = i == c ? 0 : A[i][c] / A[c][c];
            for (int j = c; j <= N && factor != 0; j++) {
                A[i][j] -= factor * A[c][j];
            }
        }
    }
    for (int c = 0; c < N; c++) {
        w[c] = A[c][N] / A[c][c];
    }
}

static void continuous_rule(thi_cell_rule *r, double low, double high)
{
    double middle = 0.5 * (low + high), half = 0.5 * (high - low);
    r->count = N;
    for (int j = 0; j < N; j++) {
        const double *node = thi_legendre[j < N / 2 ? j : N - 1 - j];
        r->x[j] = middle + (j < N / 2 ? -half : half) * node[0];
        r->w[j] = half * node[1];
    }
}

static void count_rule(thi_cell_rule *r, double low, double high)
{
    double m = high - low;
    r->count = m < N ? (int)m : N;
    for (int j = 0; j < r->count; j++) {
        double side = j < N / 2 ? -thi_legendre[j][0] : thi_legendre[N - 1 - j][0];
        r->x[j] = m > N ? floor(0.5 * (1 + side) * m) : j;
        r->w[j] = 1;
    }
    if (m > N) {
        count_weights(m, r->x, r->w);
    }
    for (int j = 0; j < r->count; j++) {
        r->x[j] += low;
    }
}

void thi_cell_rule_make(thi_cell_rule *r, thi_support support, double low, double high)
{
    if (support == THI_SUPPORT_COUNT) {
        count_rule(r, low, high);
    } else {
        continuous_rule(r, low, high);
    }
}

bool thi_cell_exact(const thi_law *law, const thi_cell *cell)
{
    return law->support == THI_SUPPORT_COUNT && cell->high - cell->low <= N;
}

thiele_status thi_law_evaluate(thi_law *law, int count, thi_cell *cell)
{
    thi_cell_rule r[THI_CELL_BATCH];
    double x[THI_EXPECT_BLOCK] = {0}, log_p[THI_EXPECT_BLOCK];
    int points = 0;
    for (int c = 0; c < count; c++) {
        thi_cell_rule_make(&r[c], law->support, cell[c].low, cell[c].high);
        memcpy(x + points, r[c].x, (size_t)r[c].count * sizeof *x);
        points += r[c].count;
    }
    thiele_status status = thi_law_densities(law, points, x, log_p);
    double centre = thi_to_support(law->support, law->peak.at);
    points = 0;
    for (int c = 0; c < count && status == THIELE_OK; c++) {
        memset(cell[c].sum, 0, sizeof cell[c].sum);
        for (int j = 0; j < r[c].count; j++, points++) {
            double y = thi_to_support(law->support, x[points]) - centre, p = exp(log_p[points] - law->peak.top);
            cell[c].value[j] = p;
            cell[c].sum[0] += r[c].w[j] * p;
            cell[c].sum[1] += r[c].w[j] * p * y;
            cell[c].sum[2] += r[c].w[j] * p * y * y;
        }
    }
    return status;
}
