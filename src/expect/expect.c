/*
 * The choice of a provider for (E, g, h) and blocks of rows through it: closed form, else quadrature (up to 3 latents),
 * else quasi-random points, unless a method is asked for. math.md section 1.
 */
#include "expect/expect.h"

#include <math.h>
#include <string.h>

#include "expect/integrate.h"
#include "expect/parallel.h"
#include "likelihood/augment.h"

enum { MOST_TENSOR = 1 << 21, MOST_DRAWS = 1 << 20 };

/* --- the choice --------------------------------------------------------------------------------------------------- */

const char *thiele_likelihood_best_method(const thiele_likelihood *likelihood)
{
    THI_NEED_OR(NULL, likelihood);
    if (likelihood->ops->expectation != NULL) {
        return "closed";
    }
    return likelihood->latents <= 3 ? "quadrature" : "qmc:512";
}

/* Without derivatives, so many quasi-random points a coefficient of 1, z_q and z_q^2. */
enum { LEAST_POINTS = 3 };
/* Scores up to the fourth Hermite polynomial must be told apart by the nodes. */
enum { SCORE_NODES = 5 };

static const struct method {
    const char *name;
    thi_provider provider;
    int least, most; /* of the number after the colon; 0, 0: there is none */
    bool needs_count;
} methods[] = {
    {"closed", THI_CLOSED, 0, 0, false},
    {"augmented", THI_AUGMENTED, 0, 0, false},
    {"quadrature", THI_QUADRATURE, 1, 512, false},
    {"mc", THI_MONTE_CARLO, 2, MOST_DRAWS, true},
    {"qmc", THI_QUASI_MONTE_CARLO, 2, MOST_DRAWS, true},
};

static const struct method *find_method(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (strlen(methods[i].name) == length && memcmp(methods[i].name, text, length) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}

static thiele_status parse_count(thi_expect *expect, thiele_context *ctx, const struct method *method, const char *text,
                                 const char *colon)
{
    double count = 0;
    if (colon == NULL && !method->needs_count) {
        return THIELE_OK;
    }
    if (colon == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "expectation '%s': give the number of draws, as in %s:2000", text,
                        method->name);
    }
    if (!thi_parse_number(colon + 1, strlen(colon + 1), &count) || count != floor(count) || count < method->least ||
        count > method->most) {
        return method->most == 0
                   ? thi_fail(ctx, THIELE_ERROR_ARGUMENT, "expectation '%s': '%s' takes no number", text, method->name)
                   : thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                              "expectation '%s': the number after the colon must be from %d to %d", text, method->least,
                              method->most);
    }
    expect->count = (int)count;
    return THIELE_OK;
}

static thiele_status choose(thi_expect *expect, thiele_context *ctx, const char *text)
{
    const char *colon = strchr(text, ':');
    const struct method *method = find_method(text, colon == NULL ? strlen(text) : (size_t)(colon - text));
    if (method == NULL) {
        return thi_fail(
            ctx, THIELE_ERROR_ARGUMENT,
            "expectation '%s' is not known: use closed, augmented, quadrature, quadrature:20, mc:2000 or qmc:512",
            text);
    }
    expect->provider = method->provider;
    return parse_count(expect, ctx, method, text, colon);
}

/* Draws with weights by least squares, where there are enough; switched off only to see what they are worth. */
static bool by_designs(const thi_expect *expect)
{
    bool draws = expect->provider == THI_MONTE_CARLO ? expect->antithetic : expect->provider == THI_QUASI_MONTE_CARLO;
    return draws && expect->control && thi_designs_fit(expect->count, expect->lik->latents);
}

/*
 * Least squares need no derivatives, which take longer than they are worth: unless there is one latent and so many
 * draws that nothing but accuracy is wanted.
 */
static bool do_without(const thi_expect *expect)
{
    return expect->lik->latents > 1 || expect->count <= THI_POINTS;
}

static thiele_status refuse(const thi_expect *expect, thiele_context *ctx)
{
    const thiele_likelihood *lik = expect->lik;
    if (expect->provider == THI_CLOSED && lik->ops->expectation == NULL) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%s' has no expectation in closed form: use %s, or leave the choice to the fit",
                        thiele_likelihood_name(lik), thiele_likelihood_best_method(lik));
    }
    if (expect->provider == THI_AUGMENTED && !thi_is_augmented(lik)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%s' has no augmentation: use %s, or leave the choice to the fit",
                        thiele_likelihood_name(lik), thiele_likelihood_best_method(lik));
    }
    if (expect->provider == THI_QUADRATURE && lik->latents > 3) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%s' has %d latents, and quadrature handles at most 3: use qmc:512 or mc:2000",
                        thiele_likelihood_name(lik), lik->latents);
    }
    if (expect->provider == THI_QUADRATURE && pow(expect->count, lik->latents) > MOST_TENSOR) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "%d quadrature nodes for each of %d latents are %.3g in all: use fewer, at most %d in all",
                        expect->count, lik->latents, pow(expect->count, lik->latents), MOST_TENSOR);
    }
    bool quadrature = expect->provider == THI_QUADRATURE && expect->count > 0 && expect->count < SCORE_NODES;
    bool quasi = expect->provider == THI_QUASI_MONTE_CARLO && expect->count < LEAST_POINTS * (1 + 2 * lik->latents);
    if (lik->ops->derivatives == NULL && (quadrature || quasi)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "likelihood '%s' has no derivatives and %d points are too few to do without them: use %s",
                        thiele_likelihood_name(lik), expect->count, quadrature ? "quadrature:5 or more" : "qmc:512");
    }
    return THIELE_OK;
}

bool thi_expect_is_drawn(const thiele_likelihood *lik, const char *method)
{
    const char *way = method != NULL ? method : thiele_likelihood_best_method(lik);
    return strncmp(way, "mc:", 3) == 0 || strncmp(way, "qmc:", 4) == 0;
}

/* Points of their own are for what designs do not do. */
static thiele_status open_quasi(thi_expect *expect, thiele_context *ctx)
{
    int Q = expect->lik->latents;
    return thi_designs_fit(expect->count, Q)
               ? THIELE_OK
               : thi_rule_sobol(&expect->space->fixed, ctx, expect->seed, 0, expect->count, Q);
}

/* Predictions have as many draws as expectations, within reason; few latents that are not drawn have none. */
static int64_t predictive_draws(const thi_expect *expect)
{
    enum { LEAST = 256, MOST = 2048 };
    bool drawn = expect->provider == THI_MONTE_CARLO || expect->provider == THI_QUASI_MONTE_CARLO;
    int64_t draws = drawn && expect->count < MOST ? thi_most(expect->count, LEAST) : MOST;
    return expect->lik->latents > 3 || (drawn && expect->lik->latents > 1) ? draws : 0;
}

thiele_status thi_expect_open(thi_expect *expect, thiele_context *ctx, const thiele_likelihood *lik, const char *method)
{
    *expect = (thi_expect){.lik = lik, .seed = ctx->seed, .antithetic = true, .control = true};
    thiele_status status = THIELE_OK;
    THI_TRY(choose(expect, ctx, method != NULL ? method : thiele_likelihood_best_method(lik)));
    expect->reparameterised = lik->ops->derivatives != NULL && !(by_designs(expect) && do_without(expect));
    THI_TRY(refuse(expect, ctx));
    THI_TRY(thi_space_open(&expect->space, ctx, lik));
    expect->space->scattered = predictive_draws(expect);
    if (expect->provider == THI_QUADRATURE && expect->count > 0) {
        THI_TRY(thi_rule_hermite(&expect->space->fixed, ctx, expect->count, lik->latents));
    } else if (expect->provider == THI_QUASI_MONTE_CARLO) {
        THI_TRY(open_quasi(expect, ctx));
    } else if (expect->provider == THI_MONTE_CARLO) {
        expect->count += expect->count % 2;
    }
out:
    if (status != THIELE_OK) {
        thi_expect_close(expect);
    }
    return status;
}

void thi_expect_close(thi_expect *expect)
{
    thi_space_close(expect->space);
    expect->space = NULL;
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

static thi_draws draws_of(const thi_expect *expect, int64_t first)
{
    return (thi_draws){expect->seed, first, expect->count, expect->antithetic,
                       expect->provider == THI_QUASI_MONTE_CARLO};
}

/* Averages an integrand over the nodes or draws of the provider; `again`: over those that served the last time. */
static thiele_status average(thi_expect *expect, thiele_context *ctx, int64_t first, const thi_integrand *in,
                             const thi_block_rows *rows, double *result, bool again)
{
    thi_space *space = expect->space;
    thi_draws draws = draws_of(expect, first);
    if (by_designs(expect)) {
        return thi_design_sweep(space, ctx, in, &draws, rows, result);
    }
    if (expect->provider == THI_MONTE_CARLO) {
        thi_draw_sweep(space, in, &draws, rows, result);
        return THIELE_OK;
    }
    if (space->fixed.count > 0) {
        thi_sweep(space, in, &space->fixed, rows, result);
        return THIELE_OK;
    }
    return thi_ladder(space, ctx, in, rows, result, space->level, again);
}

/* A row that failed is gone through again by this integrand, which looks for the point to blame. */
typedef struct culprit {
    double y, f, l;
    bool found;
} culprit;

static void evaluate_suspicious(const thi_integrand *in, int64_t n, const double *y, const double *f, double *value)
{
    culprit *c = in->extra;
    in->lik->ops->log_density(in->lik, n, y, f, value);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(value[i]) ? !c->found || !isnan(c->l) : isinf(value[i]) && !c->found) {
            *c = (culprit){y[i * in->lik->outputs], f[i * in->lik->latents], value[i], true};
        }
    }
}

static void reduce_nothing(const thi_integrand *in, const thi_points *points, double *result)
{
    (void)in;
    (void)points;
    (void)result;
}

static bool settled_never(const thi_integrand *in, double tolerance, const double *centre, const double *before,
                          const double *now)
{
    (void)in;
    (void)tolerance;
    (void)centre;
    return before == now;
}

static thiele_status explain(thi_expect *expect, thiele_context *ctx, int64_t first, const thi_block_rows *rows,
                             int row, double v)
{
    const thiele_likelihood *lik = expect->lik;
    culprit c = {0, 0, 0, false};
    thi_integrand in = {.lik = lik, .values = 1, .results = 1, .extra = &c, .evaluate = evaluate_suspicious};
    in.reduce = reduce_nothing;
    in.settled = settled_never;
    thi_block_rows one = *rows;
    one.count = 1;
    one.row = &row;
    one.centre = NULL;
    thiele_status status = THIELE_OK;
    if (expect->provider > THI_AUGMENTED) {
        status = average(expect, ctx, first, &in, &one, expect->space->result, false);
    }
    double y = rows->y[(int64_t)row * lik->outputs], mu = rows->mu[(int64_t)row * lik->latents];
    if (status != THIELE_OK) {
        return status;
    }
    if (!c.found) {
        return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                        "likelihood '%s': the expected log density at y = %g, mean %g, variance %g is not finite",
                        thiele_likelihood_name(lik), y, mu, v);
    }
    return thi_fail(ctx, THIELE_ERROR_NUMERIC,
                    "likelihood '%s': log p(y | f) is %s at y = %g, f = %g%s, within reach of mean %g, variance %g",
                    thiele_likelihood_name(lik), isnan(c.l) ? "not a number" : "infinite", c.y, c.f,
                    lik->outputs + lik->latents > 2 ? ", ..." : "", mu, v);
}

typedef struct answer {
    double *E, *g, *h, *dphi;
} answer;

static bool all_finite(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * 0.0; /* NaN as soon as one is not finite */
    }
    return sum == 0.0;
}

static thiele_status check(thi_expect *expect, thiele_context *ctx, int64_t first, const thi_block_rows *rows,
                           const double *v, answer to)
{
    int64_t Q = expect->lik->latents, p = expect->lik->parameters;
    for (int64_t r = 0; r < rows->count; r++) {
        int i = rows->row[r];
        if (!isfinite(to.E[i]) || !all_finite(Q, to.g + i * Q) || !all_finite(Q, to.h + i * Q) ||
            (to.dphi != NULL && !all_finite(p, to.dphi + i * p))) {
            return explain(expect, ctx, first, rows, i, v[i * Q]);
        }
    }
    return THIELE_OK;
}

/* Spreads below what differences of a black box can resolve are raised; true when there are such rows. */
static bool raise_spread(thi_space *space, const thi_block_rows *rows)
{
    int64_t P = space->P, Q = space->Q;
    bool narrow = false;
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t i = rows->row[r];
        for (int64_t j = i * Q; j < (i + 1) * Q; j++) {
            double sd = space->sd[j];
            space->sd[j] = thi_score_spread(space->lik, rows->y + i * P, rows->mu[j], sd);
            narrow = narrow || space->sd[j] > sd;
        }
    }
    return narrow;
}

/* Derivatives where there are any; scores by quadrature, or controlled. */
static thi_integrand choose_integrand(const thi_expect *expect, bool narrow)
{
    const thi_space *space = expect->space;
    if (expect->reparameterised) {
        return thi_integrand_slopes(space);
    }
    if (expect->provider == THI_QUADRATURE) {
        return thi_integrand_scores(space, narrow);
    }
    thi_integrand in = thi_integrand_control(space);
    in.control = expect->control;
    in.pairs = expect->antithetic && expect->provider == THI_MONTE_CARLO;
    return in;
}

static thiele_status average_phi(thi_expect *expect, thiele_context *ctx, int64_t first, thi_block_rows rows,
                                 double *dphi)
{
    if (dphi == NULL || expect->lik->parameters == 0) {
        return THIELE_OK;
    }
    thi_integrand in = thi_integrand_phi(expect->space);
    rows.centre = NULL;
    return average(expect, ctx, first, &in, &rows, dphi, true);
}

static thiele_status by_points(thi_expect *expect, thiele_context *ctx, int64_t first, thi_block_rows *rows,
                               const double *v, answer to)
{
    thi_space *space = expect->space;
    int64_t P = space->P, Q = space->Q;
    bool narrow = !expect->reparameterised && raise_spread(space, rows);
    thi_integrand in = choose_integrand(expect, narrow);
    if (in.centred) {
        thi_space_centre(space, &in, rows, space->centre);
        rows->centre = space->centre;
    }
    thiele_status status = average(expect, ctx, first, &in, rows, space->result, false);
    for (int64_t r = 0; r < rows->count && status == THIELE_OK; r++) {
        int64_t i = rows->row[r];
        thi_moments row = {rows->y + i * P,
                           rows->mu + i * Q,
                           v + i * Q,
                           space->sd + i * Q,
                           space->centre + i * in.values,
                           space->result + i * in.results};
        to.E[i] = in.finish(&in, &row, to.g + i * Q, to.h + i * Q);
    }
    return status == THIELE_OK ? average_phi(expect, ctx, first, *rows, to.dphi) : status;
}

static thiele_status by_regression(thi_expect *expect, thiele_context *ctx, int64_t first, thi_block_rows *rows,
                                   const double *v, answer to)
{
    thi_draws draws = draws_of(expect, first);
    raise_spread(expect->space, rows);
    thiele_status status = thi_regress(expect->space, ctx, &draws, rows, v, to.E, to.g, to.h);
    return status == THIELE_OK ? average_phi(expect, ctx, first, *rows, to.dphi) : status;
}

/* Rows without any output say nothing. */
static void clear_missing(const thi_space *space, int64_t n, const thi_block_rows *rows, answer to)
{
    int64_t Q = space->Q, parameters = space->lik->parameters, r = 0;
    for (int64_t i = 0; i < n && rows->count < n; i++) {
        if (r < rows->count && rows->row[r] == i) {
            r++;
            continue;
        }
        to.E[i] = 0;
        memset(to.g + i * Q, 0, (size_t)Q * sizeof *to.g);
        memset(to.h + i * Q, 0, (size_t)Q * sizeof *to.h);
        if (to.dphi != NULL) {
            memset(to.dphi + i * parameters, 0, (size_t)parameters * sizeof *to.dphi);
        }
    }
}

thiele_status thi_expect_block(thi_expect *expect, thiele_context *ctx, int64_t row, int64_t n, const double *y,
                               const double *mu, const double *v, double *E, double *g, double *h, double *dphi)
{
    thi_space *space = expect->space;
    thiele_status status = thi_space_spread(space, ctx, n, mu, v);
    if (status != THIELE_OK) {
        return status;
    }
    answer to = {E, g, h, dphi};
    thi_block_rows rows = {thi_space_rows(space, n, y), space->row, y, mu, space->sd, NULL};
    if (expect->provider == THI_CLOSED) {
        expect->lik->ops->expectation(expect->lik, n, y, mu, v, E, g, h, dphi);
    } else if (expect->provider == THI_AUGMENTED) {
        thi_augmented_expectation(expect->lik, n, y, mu, v, E, g, h, dphi);
    } else {
        status = by_designs(expect) && !expect->reparameterised ? by_regression(expect, ctx, row, &rows, v, to)
                                                                : by_points(expect, ctx, row, &rows, v, to);
    }
    if (status != THIELE_OK) {
        return status;
    }
    clear_missing(space, n, &rows, to);
    return check(expect, ctx, row, &rows, v, to);
}

/* --- all rows ----------------------------------------------------------------------------------------------------- */

thiele_status thiele_likelihood_expect(const thiele_likelihood *likelihood, thiele_context *ctx, const char *method,
                                       int64_t n, const double *y, const double *mu, const double *v, double *E,
                                       double *g, double *h, double *dphi)
{
    THI_NEED(ctx, likelihood && ctx && (n < 1 || (y && mu && v && E && g && h)));
    thi_providers providers = {.lik = likelihood, .method = method};
    thiele_status status = thi_providers_expect(&providers, ctx, &(thi_asked){0, n, y, mu, v, E, g, h, dphi, NULL});
    thi_providers_close(&providers);
    return status;
}
