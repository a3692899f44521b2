/* One evaluation of a bound over rows: see pass.h. */
#include "fit/pass.h"

#include <math.h>
#include <string.h>

const thi_part thi_all_rows = {0, NULL, 0};

/* --- opening ------------------------------------------------------------------------------------------------------ */

static thiele_status open_vectors(thi_pass *p)
{
    int64_t members = p->capacity * p->latents * p->components;
    const thi_problem *problem = p->problem;
    const struct {
        double **vector;
        int64_t length;
    } vectors[] = {
        {&p->mu, members},
        {&p->v, members},
        {&p->g, members},
        {&p->h, members},
        {&p->E, p->capacity},
        {&p->residual, p->tight ? p->capacity * p->latents : 0},
        {&p->narrowed, p->tight ? members : 0},
        {&p->spared, p->tight ? members : 0},
        {&p->precision, p->latents},
        {&p->dphi, p->capacity * problem->spec->lik->parameters},
        {&p->hyper_bar, problem->hypers->count},
        {&p->expected_of, p->components},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors && status == THIELE_OK; i++) {
        status = thi_alloc(problem->ctx, vectors[i].vector, (size_t)vectors[i].length, sizeof(double));
    }
    return status;
}

bool thi_pass_is_tight(const thi_spec *spec, const thi_engine *engine)
{
    return spec->lik->ops->precision != NULL && engine->residual != NULL;
}

thiele_status thi_pass_open(thi_pass *p, const thi_problem *problem, const thi_engine *engine, const void *shape,
                            const thi_pass_shape *size)
{
    const thi_source *source = problem->source;
    const thi_spec *spec = problem->spec;
    p->problem = problem;
    p->engine = engine;
    p->latents = size->latents;
    p->components = size->components;
    p->capacity = size->capacity;
    p->tight = thi_pass_is_tight(spec, engine);
    p->leads = p->leading = spec->steps != NULL;
    p->providers = (thi_providers){.lik = spec->lik, .method = spec->expectation};
    p->first = (thi_providers){.lik = spec->lik, .method = spec->steps};
    thiele_status status;
    THI_TRY(open_vectors(p));
    THI_TRY(thi_rows_alloc(&p->rows, problem->ctx, p->capacity, source->dims, source->outputs, source->beside));
    THI_TRY(thi_alloc(problem->ctx, &p->row, (size_t)p->capacity, sizeof *p->row));
    THI_TRY(engine->open(&p->self, problem->ctx, shape));
    p->inside = !p->leads && engine->expects != NULL && engine->expects(p->self, spec->lik, spec->expectation);
out:
    return status;
}

void thi_pass_close(thi_pass *p)
{
    void *const blocks[] = {p->mu,       p->v,        p->g,      p->h,         p->E,         p->dphi,       p->row,
                            p->residual, p->narrowed, p->spared, p->precision, p->hyper_bar, p->expected_of};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        thi_free(blocks[i]);
    }
    thi_rows_free(&p->rows);
    thi_subtotals_close(&p->subtotals);
    thi_free(p->total);
    thi_providers_close(&p->providers);
    thi_providers_close(&p->first);
    if (p->engine != NULL) {
        p->engine->close(p->self);
    }
    *p = (thi_pass){0};
}

/* --- expectations ------------------------------------------------------------------------------------------------- */

/*
 * Marginals become what the likelihood takes each row to be, with moderate odds or rates where f is a logarithm; shift
 * (Q x n) is by how much the means moved. One component.
 */
static void take_guesses(thi_pass *p, double *shift)
{
    const thiele_likelihood *lik = p->problem->spec->lik;
    int64_t n = p->rows.n, Q = p->latents;
    for (int64_t i = 0; i < n; i++) {
        double *mu = p->mu + i * Q, *v = p->v + i * Q;
        memcpy(shift + i * Q, mu, (size_t)Q * sizeof *mu);
        thi_first_guess(lik, p->rows.y + i * p->rows.outputs, shift + i * Q, mu, v);
        for (int64_t q = 0; q < Q; q++) {
            shift[i * Q + q] = mu[q] - shift[i * Q + q];
        }
    }
}

/* (E, g, h) at the guesses, with g of a step from the present means. */
static thiele_status ask_guesses(thi_pass *p, thi_providers *providers, const thi_asked *asked)
{
    int64_t numbers = p->rows.n * p->latents;
    double *shift;
    thiele_status status = thi_alloc(p->problem->ctx, &shift, (size_t)numbers, sizeof *shift);
    if (status != THIELE_OK) {
        return status;
    }
    take_guesses(p, shift);
    status = thi_providers_expect(providers, p->problem->ctx, asked);
    for (int64_t i = 0; i < numbers && status == THIELE_OK; i++) {
        p->g[i] -= 2.0 * p->h[i] * shift[i];
    }
    thi_free(shift);
    return status;
}

static double weight_of(const thi_pass *p, int64_t row)
{
    return p->rows.weight != NULL ? p->rows.weight[row] : 1.0;
}

/* r of the rows, times their weights: a row of weight w has the noise s2/w. */
static void take_residual(thi_pass *p)
{
    int64_t Q = p->latents;
    p->engine->residual(p->self, p->residual);
    for (int64_t j = 0; j < p->rows.n * Q && p->rows.weight != NULL; j++) {
        p->residual[j] *= p->rows.weight[j / Q];
    }
}

/* v of a component as the likelihood sees it in the tighter bound. */
static const double *narrow(thi_pass *p, int64_t at)
{
    const thiele_likelihood *lik = p->problem->spec->lik;
    int64_t Q = p->latents;
    lik->ops->precision(lik, p->precision);
    for (int64_t j = 0; j < p->rows.n * Q; j++) {
        double r = p->residual[j] / weight_of(p, j / Q), ratio = p->precision[j % Q] * p->residual[j];
        p->narrowed[at + j] = p->v[at + j] - r * ratio / (1.0 + ratio);
    }
    return p->narrowed + at;
}

/* What the narrower q(f | u) costs, and the adjoint of r beyond h. An output that is missing has h = 0. */
static void pay(thi_pass *p, int64_t at)
{
    int64_t Q = p->latents;
    for (int64_t j = 0; j < p->rows.n * Q; j++) {
        double ratio = p->precision[j % Q] * p->residual[j], less = ratio / (1.0 + ratio);
        bool there = p->h[at + j] != 0.0;
        p->E[j / Q] -= there ? 0.5 * (log1p(ratio) - less) : 0.0;
        p->spared[at + j] = -less * p->h[at + j];
    }
}

static double *phi_bar(const thi_pass *p)
{
    return p->hyper_bar + p->problem->hypers->first[p->problem->hypers->groups];
}

static double share_of(const thi_pass *p, int component)
{
    return p->engine->weights != NULL ? p->engine->weights(p->self)[component] : 1.0;
}

/* Component k at the present marginals: its E is added up, its g and h are weighted. */
static thiele_status ask(thi_pass *p, thi_providers *providers, int component, double weight, uint64_t draws, bool phi)
{
    int64_t n = p->rows.n, Q = p->latents, parameters = phi ? p->problem->spec->lik->parameters : 0;
    int64_t at = component * n * Q;
    bool tight = p->tight && !p->guessing;
    thi_asked asked = {(int64_t)draws,
                       n,
                       p->rows.y,
                       p->mu + at,
                       tight ? narrow(p, at) : p->v + at,
                       p->E,
                       p->g + at,
                       p->h + at,
                       parameters > 0 ? p->dphi : NULL,
                       p->rows.weight};
    thiele_status status =
        p->guessing ? ask_guesses(p, providers, &asked) : thi_providers_expect(providers, p->problem->ctx, &asked);
    if (status != THIELE_OK) {
        return status;
    }
    if (tight) {
        pay(p, at);
    }
    double share = weight * share_of(p, component), sum = 0.0, *bar = phi_bar(p);
    for (int64_t i = 0; i < n; i++) {
        sum += p->E[i];
        for (int64_t k = 0; k < parameters; k++) {
            bar[k] += share * p->dphi[k + i * parameters];
        }
    }
    for (int64_t i = at; i < at + n * Q; i++) {
        p->g[i] *= share;
        p->h[i] *= share;
    }
    for (int64_t i = at; tight && i < at + n * Q; i++) {
        p->spared[i] *= share;
    }
    p->expected_of[component] += weight * sum;
    p->at.expected += share * sum;
    return THIELE_OK;
}

/* The same inside the engine, for all components. */
static thiele_status ask_inside(thi_pass *p, double weight, uint64_t draws, bool phi)
{
    double before = 0.0, after = 0.0;
    thi_engine_question question = {p->problem->spec->lik,  p->rows.y, draws, weight, p->expected_of,
                                    phi ? phi_bar(p) : NULL};
    for (int k = 0; k < p->components; k++) {
        before += share_of(p, k) * p->expected_of[k];
    }
    thiele_status status = p->engine->expect(p->self, p->problem->ctx, &question);
    for (int k = 0; k < p->components; k++) {
        after += share_of(p, k) * p->expected_of[k];
    }
    p->at.expected += after - before;
    return status;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

thiele_status thi_pass_fetch(thi_pass *p, int64_t count, const int64_t *row)
{
    return p->problem->source->fetch(p->problem->source->arg, p->problem->ctx, count, row, &p->rows);
}

static thiele_status take_outside(thi_pass *p, double weight, uint64_t draws, thi_wanted wanted)
{
    bool first = p->leading && wanted.step && !wanted.q && !wanted.prior && !wanted.phi;
    int64_t n = p->rows.n;
    thiele_status status;
    THI_TRY(p->engine->marginals(p->self, p->problem->ctx, n, p->rows.X, p->mu, p->v));
    for (int64_t i = 0; p->problem->source->beside.offset && i < n * p->components; i++) {
        p->mu[i * p->latents] += p->rows.offset[i % n];
    }
    if (p->tight) {
        take_residual(p);
    }
    if (p->tight && p->spread != NULL) {
        thi_spread_add(p->spread, n * p->latents, p->residual);
    }
    for (int k = 0; k < p->components; k++) {
        THI_TRY(ask(p, first ? &p->first : &p->providers, k, weight, draws, wanted.phi));
    }
out:
    return status;
}

static thiele_status take_inside(thi_pass *p, double weight, uint64_t draws, thi_wanted wanted)
{
    thiele_status status = p->engine->marginals(p->self, p->problem->ctx, p->rows.n, p->rows.X, NULL, NULL);
    return status == THIELE_OK ? ask_inside(p, weight, draws, wanted.phi) : status;
}

/* Offsets and weights of the rows and guesses of f are known on the host alone. */
static bool is_inside(const thi_pass *p)
{
    const thi_aside beside = p->problem->source->beside;
    return p->inside && !p->guessing && !beside.offset && !beside.weight;
}

thiele_status thi_pass_take(thi_pass *p, double weight, uint64_t draws, thi_wanted wanted)
{
    bool inside = is_inside(p), pull = wanted.step || wanted.q || wanted.prior;
    thiele_status status;
    if (p->rows.n == 0) {
        return THIELE_OK;
    }
    THI_TRY((inside ? take_inside : take_outside)(p, weight, draws, wanted));
    if (pull && p->tight && !inside && !p->guessing) {
        p->engine->relieve(p->self, p->spared);
    }
    if (pull) {
        THI_TRY(p->engine->pull(p->self, p->problem->ctx, inside ? NULL : p->g, inside ? NULL : p->h, p->bar));
    }
    p->at.seen += p->rows.n;
    p->at.weight += thi_rows_count(&p->rows);
out:
    return status;
}

thiele_status thi_pass_batch(thi_pass *p, int64_t count, const int64_t *row, double weight, uint64_t draws,
                             thi_wanted wanted)
{
    thiele_status status = thi_pass_fetch(p, count, row);
    return status == THIELE_OK ? thi_pass_take(p, weight, draws, wanted) : status;
}

/* --- all rows, by blocks in a tree --------------------------------------------------------------------------------
 */

/* A number, or several, that blocks add to. */
typedef struct sums {
    double *at;
    int64_t count;
} sums;
enum { SUMS = 5 };

/* What a block adds to beside the engine's own; `seen` is the number of rows for as long. */
static void list_sums(thi_pass *p, double *seen, sums list[SUMS])
{
    list[0] = (sums){p->hyper_bar, p->problem->hypers->count};
    list[1] = (sums){p->expected_of, p->components};
    list[2] = (sums){&p->at.expected, 1};
    list[3] = (sums){seen, 1};
    list[4] = (sums){p->spread != NULL ? &p->spread->sum : NULL, p->spread != NULL ? THI_SPREAD_NUMBERS : 0};
}

static int64_t sums_of_block(thi_pass *p)
{
    sums list[SUMS];
    int64_t length = p->engine->sums(p->self);
    list_sums(p, NULL, list);
    for (int i = 0; i < SUMS; i++) {
        length += list[i].count;
    }
    return length;
}

/* Out of the pass, which is then as before its first block; and back. */
static void take_sums(thi_pass *p, double *to)
{
    double seen = (double)p->at.seen;
    sums list[SUMS];
    p->engine->take(p->self, to);
    to += p->engine->sums(p->self);
    list_sums(p, &seen, list);
    for (int i = 0; i < SUMS; to += list[i++].count) {
        if (list[i].count > 0) {
            memcpy(to, list[i].at, (size_t)list[i].count * sizeof *to);
            memset(list[i].at, 0, (size_t)list[i].count * sizeof *to);
        }
    }
    p->at.seen = 0;
}

static void put_sums(thi_pass *p, const double *from)
{
    double seen;
    sums list[SUMS];
    p->engine->put(p->self, from);
    from += p->engine->sums(p->self);
    list_sums(p, &seen, list);
    for (int i = 0; i < SUMS; from += list[i++].count) {
        if (list[i].count > 0) {
            memcpy(list[i].at, from, (size_t)list[i].count * sizeof *from);
        }
    }
    p->at.seen = (int64_t)seen;
}

static thiele_status take_block(thi_pass *p, int64_t block, thi_wanted wanted)
{
    int64_t first = block * p->capacity, count = thi_least(p->problem->source->n - first, p->capacity);
    for (int64_t i = 0; i < count; i++) {
        p->row[i] = first + i;
    }
    if (p->may_stop && !thi_ranks_many(p->problem->ctx) && thi_driver_stopped(p->problem->driver)) {
        return thi_fail(p->problem->ctx, THIELE_ERROR_NUMERIC,
                        "the fit was stopped in the middle of a pass over the rows");
    }
    return thi_pass_batch(p, count, p->row, 1.0, (uint64_t)first, wanted);
}

static thiele_status in_turn(thi_pass *p, int64_t blocks, thi_wanted wanted)
{
    thiele_status status = THIELE_OK;
    for (int64_t block = 0; block < blocks && status == THIELE_OK; block++) {
        status = take_block(p, block, wanted);
    }
    return status;
}

/* This process's blocks. */
static thiele_status own_blocks(thi_pass *p, int64_t blocks, thi_wanted wanted)
{
    int64_t first, end;
    double *numbers;
    thiele_status status = THIELE_OK;
    thi_subtotals_range(p->problem->ctx, blocks, &first, &end);
    for (int64_t block = first; block < end; block++) {
        THI_TRY(take_block(p, block, wanted));
        THI_TRY(thi_subtotals_next(&p->subtotals, p->problem->ctx, block, &numbers));
        take_sums(p, numbers);
    }
out:
    return status;
}

static thiele_status open_subtotals(thi_pass *p)
{
    int64_t length = sums_of_block(p);
    if (p->total != NULL && p->subtotals.length == length) {
        return THIELE_OK;
    }
    thi_subtotals_close(&p->subtotals);
    thi_free(p->total);
    p->total = NULL;
    thi_subtotals_open(&p->subtotals, length);
    return thi_alloc(p->problem->ctx, &p->total, (size_t)length, sizeof *p->total);
}

static thiele_status all_blocks(thi_pass *p, thi_wanted wanted)
{
    int64_t n = p->problem->source->n, blocks = (n + p->capacity - 1) / p->capacity;
    thiele_status status;
    if (p->engine->sums == NULL || blocks < 2) {
        return in_turn(p, blocks, wanted);
    }
    THI_TRY(open_subtotals(p));
    status = own_blocks(p, blocks, wanted);
    THI_TRY(thi_subtotals_total(&p->subtotals, p->problem->ctx, status, p->total));
    put_sums(p, p->total);
out:
    return status;
}

static thiele_status some_blocks(thi_pass *p, const thi_part *part, thi_wanted wanted)
{
    double weight = (double)p->problem->source->n / (double)part->count;
    thiele_status status = THIELE_OK;
    for (int64_t first = 0; first < part->count && status == THIELE_OK; first += p->capacity) {
        int64_t count = thi_least(part->count - first, p->capacity);
        status = thi_pass_batch(p, count, part->row + first, weight, part->draws + (uint64_t)first, wanted);
    }
    return status;
}

thiele_status thi_pass_over(thi_pass *p, const thi_part *part, thi_wanted wanted)
{
    bool all = part->row == NULL;
    int64_t rows = all ? p->problem->source->n : part->count;
    thiele_status status = all ? all_blocks(p, wanted) : some_blocks(p, part, wanted);
    if (status != THIELE_OK) {
        return status;
    }
    p->rows_done += (double)rows;
    p->at.empty = p->at.seen == 0;
    return p->at.empty ? thi_fail(p->problem->ctx, all ? THIELE_ERROR_DATA : THIELE_ERROR_NUMERIC,
                                  "every one of the %lld rows examined has a missing value", (long long)rows)
                       : THIELE_OK;
}

/* --- the evaluation ----------------------------------------------------------------------------------------------- */

static void clear_sums(thi_pass *p)
{
    p->at.expected = 0.0;
    memset(p->hyper_bar, 0, (size_t)p->problem->hypers->count * sizeof *p->hyper_bar);
    memset(p->expected_of, 0, (size_t)p->components * sizeof *p->expected_of);
}

/* The gradient in hyperparameters, with that of log p(theta). */
static void give_hypers(thi_pass *p, double *to)
{
    const thi_hypers *hypers = p->problem->hypers;
    thi_hypers_chain(p->problem->hypers, p->hyper_bar);
    p->at.log_prior = thi_hypers_log_prior(hypers, p->hyper_bar);
    thi_scales_tie(hypers, &p->problem->spec->latents, p->hyper_bar);
    for (int i = 0; to != NULL && i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed) {
            *to++ = p->hyper_bar[i];
        }
    }
}

thiele_status thi_pass_ready(thi_pass *p, const void *q)
{
    return p->engine->begin(p->self, p->problem->ctx, p->problem->spec->latents.prior, q);
}

thiele_status thi_pass_begin(thi_pass *p, const void *q, const void *bar)
{
    p->evaluations++;
    p->at.seen = 0;
    p->at.weight = 0.0;
    p->at.empty = false;
    p->bar = bar;
    clear_sums(p);
    return thi_pass_ready(p, q);
}

thiele_status thi_pass_end(thi_pass *p, double *hypers)
{
    thiele_status status = p->engine->end(p->self, p->problem->ctx, p->expected_of, &p->at.kl, p->bar);
    if (status != THIELE_OK) {
        return status;
    }
    p->at.bound = p->at.expected - p->at.kl;
    give_hypers(p, hypers);
    return isfinite(p->at.bound + p->at.log_prior)
               ? THIELE_OK
               : thi_fail(p->problem->ctx, THIELE_ERROR_NUMERIC, "the bound is not finite");
}

thiele_status thi_pass_again(thi_pass *p, double *hypers)
{
    double weight = (double)p->problem->source->n / (double)p->rows.n;
    thiele_status status = THIELE_OK;
    clear_sums(p);
    if (is_inside(p)) {
        status = ask_inside(p, weight, 0, true);
    }
    for (int k = 0; k < p->components && !is_inside(p) && status == THIELE_OK; k++) {
        status = ask(p, &p->providers, k, weight, 0, true);
    }
    give_hypers(p, hypers);
    return status;
}

void thi_pass_step(thi_pass *p, double rho, const void *q)
{
    p->engine->step(p->self, rho, q);
}
