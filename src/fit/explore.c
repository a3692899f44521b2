/* Exploring hyperparameters and choosing inducing inputs on samples of the rows. */
#include "fit/explore.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "basis/basis.h"
#include "data/batches.h"
#include "fit/budget.h"
#include "fit/judge.h"
#include "fit/start.h"

enum { BASIS_ROWS = 20000, EXPLORE_ITERATIONS = 50, JUDGED = 500 };
static const double FURTHEST = 10.0, TOLERANCE = 0.1;

static bool all_given(const thi_hypers *hypers)
{
    for (int i = 0; i < hypers->count; i++) {
        if (!hypers->hyper[i].fixed && !hypers->hyper[i].given) {
            return false;
        }
    }
    return true;
}

/*
 * A few hundred rows may not see what a column does and let its length-scale run away, where all rows have no slope to
 * bring it back by: such ones begin at FURTHEST times their first guess.
 */
static void hold_lengthscales(const thi_spec *spec, thi_hypers *hypers, const double *guess)
{
    for (int g = 0; g < hypers->groups; g++) {
        const thiele_kernel *kernel = spec->latents.kernel[g];
        for (int i = 0; i < kernel->parameters; i++) {
            const thi_leaf *leaf = thi_kernel_leaf_of(kernel, i);
            int at = hypers->first[g] + i;
            thi_hyper *h = &hypers->hyper[at];
            bool lengthscale = leaf->kind->family == THI_DISTANCE && i - leaf->first < leaf->lengthscales;
            if (lengthscale && !h->fixed && !h->given) {
                h->value = fmin(h->value, guess[at] + log(FURTHEST));
            }
        }
    }
}

/*
 * Rows that can be explored before the share of the time is over, as many evaluations of so many cubes as a search
 * takes; 0: too few to be worth it, first guesses must do.
 */
static int64_t explored_rows(const thi_driver *driver, const thi_objective *objective, int latents)
{
    enum { EVALUATIONS = 60, LEAST = 100 };
    double most = (double)objective->subset / sqrt((double)latents);
    double rows = cbrt(thi_budget_flops(driver, THI_SHARE_EXPLORE) / (2 * EVALUATIONS * objective->cubes * latents));
    return rows < LEAST && rows < most ? 0 : (int64_t)fmin(rows, most);
}

/* The search on these rows, from the values that hypers have. */
static thiele_status search(const thi_problem *problem, const thi_objective *objective, const thi_rows *rows,
                            const thi_variational_settings *s, thi_fit_result *result)
{
    thi_fit_settings settings = {s->restarts, EXPLORE_ITERATIONS, TOLERANCE};
    double begun = thi_seconds(), before = (double)result->evaluations;
    problem->hypers->most_scales = thi_scales_apart((double)rows->n);
    problem->hypers->alike = thi_latents_alike(&problem->spec->latents, problem->spec->lik);
    thiele_status status = thi_search(problem, objective, rows, &settings, result, NULL);
    problem->hypers->most_scales = 0;
    problem->hypers->alike = false;
    if (status == THIELE_OK) {
        double evaluations = (double)result->evaluations - before;
        thi_budget_took(problem->driver, evaluations * objective->cubes * pow((double)rows->n, 3.0),
                        thi_seconds() - begun);
    }
    result->iterations = 0; /* those of the fit itself are counted */
    return status;
}

/* --- samples ---------------------------------------------------------------------------------------------------------
 */

typedef struct near_row {
    double distance;
    int64_t row;
} near_row;

static int by_distance(const void *a, const void *b)
{
    const near_row *x = a, *y = b;
    return x->distance != y->distance ? (x->distance > y->distance) - (x->distance < y->distance)
                                      : (x->row > y->row) - (x->row < y->row);
}

/* Marks the rows of the pool that are nearest to one of them, as many as are not marked yet. */
static void mark_near(const thi_rows *pool, int64_t anchor, int64_t count, near_row *near, bool *marked)
{
    for (int64_t i = 0; i < pool->n; i++) {
        near[i] = (near_row){0.0, i};
        for (int d = 0; d < pool->dims; d++) {
            double gap = pool->X[i * pool->dims + d] - pool->X[anchor * pool->dims + d];
            near[i].distance += gap * gap;
        }
    }
    qsort(near, (size_t)pool->n, sizeof *near, by_distance);
    for (int64_t i = 0; i < pool->n && count > 0; i++) {
        count -= !marked[near[i].row];
        marked[near[i].row] = true;
    }
}

/* --- rows that decide alone ------------------------------------------------------------------------------------------
 */

/* Whether one y that is far too large decides what all rows can be explained by. */
static bool can_be_decided(const thiele_likelihood *lik)
{
    return lik->ops->log_link && lik->ops->guess != NULL && lik->latents == 1;
}

/* The row with the largest guess of f, without its offset. */
static int64_t furthest_row(const thiele_likelihood *lik, const thi_rows *rows, double *value)
{
    int64_t found = 0;
    *value = -INFINITY;
    for (int64_t i = 0; i < rows->n; i++) {
        double f;
        lik->ops->guess(lik, rows->y + i * rows->outputs, &f);
        f -= rows->offset != NULL ? rows->offset[i] : 0.0;
        found = f > *value ? i : found;
        *value = fmax(*value, f);
    }
    return found;
}

/* Values that a sample without the furthest row leads to cannot live with it: it takes the last one's place. */
static thiele_status add_furthest(const thi_problem *problem, thi_rows *sample)
{
    enum { POOL = 20000 };
    const thiele_likelihood *lik = problem->spec->lik;
    thi_rows pool = {0};
    double here, there;
    if (!can_be_decided(lik) || sample->n < 2) {
        return THIELE_OK;
    }
    thiele_status status = thi_source_sample(problem->source, problem->ctx, POOL, THI_SAMPLE_NEAR, &pool);
    if (status == THIELE_OK) {
        int64_t row = furthest_row(lik, &pool, &there);
        furthest_row(lik, sample, &here);
        if (there > here) {
            thi_rows_copy(sample, sample->n - 1, &pool, row);
        }
    }
    thi_rows_free(&pool);
    return status;
}

/* And its density would drown those of all others: it judges nothing. */
static void drop_furthest(const thiele_likelihood *lik, thi_rows *rows)
{
    double value;
    if (can_be_decided(lik) && rows->n > 1) {
        int64_t row = furthest_row(lik, rows, &value);
        thi_rows_copy(rows, row, rows, rows->n - 1);
        rows->n--;
    }
}

thiele_status thi_sample_near(thiele_context *ctx, const thi_source *source, int64_t count, int anchors, thi_rows *out)
{
    enum { POOL = 20000 };
    thi_rows pool = {0};
    near_row *near = NULL;
    int64_t *order = NULL, taken = 0;
    bool *marked = NULL;
    thi_shuffle shuffle;
    thiele_status status;
    THI_TRY(thi_source_sample(source, ctx, POOL, THI_SAMPLE_NEAR, &pool));
    THI_TRY(thi_alloc(ctx, &near, (size_t)pool.n, sizeof *near));
    THI_TRY(thi_alloc(ctx, &order, (size_t)pool.n, sizeof *order));
    THI_TRY(thi_alloc(ctx, &marked, (size_t)pool.n, sizeof *marked));
    thi_shuffle_open(&shuffle, (thi_stream){ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_NEAR + 1}, pool.n);
    /* Half of them anywhere, unless all are to be near the first one. */
    for (int64_t i = 0; anchors > 1 && i < count / 2 && i < pool.n; i++) {
        marked[thi_shuffle_at(&shuffle, i)] = true;
    }
    for (int a = 0; a < anchors && a < pool.n; a++) {
        int64_t anchor = anchors > 1 ? thi_shuffle_at(&shuffle, a) : 0;
        mark_near(&pool, anchor, anchors > 1 ? count / 2 / anchors : count, near, marked);
    }
    for (int64_t i = 0; i < pool.n; i++) {
        if (marked[i]) {
            order[taken++] = i;
        }
    }
    THI_TRY(thi_rows_take(out, ctx, &pool, taken, order));
out:
    thi_rows_free(&pool);
    thi_free(near);
    thi_free(order);
    thi_free(marked);
    return status;
}

/* --- exploring -------------------------------------------------------------------------------------------------------
 */

static thiele_status set(const thi_problem *problem, const double *value)
{
    thi_hypers_load(problem->hypers, value);
    return thi_hypers_apply(problem->hypers, problem->ctx, problem->spec);
}

enum { VALUES = 4 };

/*
 * Values from two samples, a random one and one of rows that are near to each other, and the first guesses: of the
 * three those are taken with which a posterior of the random sample predicts other rows best. A sample that is too
 * small for its parameters, or blind to what changes quickly, is found out so; and whether length-scales that it cannot
 * tell apart had better be those of columns in one unit.
 */
typedef struct exploration {
    thi_rows sample[2], judged;
    double *value[VALUES]; /* all hypers: first guesses, what each sample led to, the best of these in one unit */
    double score[VALUES];
    int values; /* that there are */
} exploration;

static thiele_status open_exploration(exploration *e, const thi_problem *problem, int64_t rows)
{
    thiele_context *ctx = problem->ctx;
    const thi_source *source = problem->source;
    size_t count = (size_t)problem->hypers->count;
    thiele_status status;
    *e = (exploration){0};
    THI_TRY(thi_alloc(ctx, &e->value[0], VALUES * count, sizeof *e->value[0]));
    for (int k = 1; k < VALUES; k++) {
        e->value[k] = e->value[k - 1] + count;
    }
    THI_TRY(thi_source_sample(source, ctx, rows, THI_SAMPLE_EXPLORE, &e->sample[0]));
    THI_TRY(thi_source_sample(source, ctx, JUDGED, THI_SAMPLE_JUDGE, &e->judged));
    drop_furthest(problem->spec->lik, &e->judged);
    /* Where the sample is all rows it has no equal. */
    if (e->sample[0].n < source->n) {
        THI_TRY(thi_sample_near(ctx, source, rows, 1, &e->sample[1]));
        THI_TRY(add_furthest(problem, &e->sample[0]));
        THI_TRY(add_furthest(problem, &e->sample[1]));
    }
out:
    return status;
}

static void close_exploration(exploration *e)
{
    thi_rows_free(&e->sample[0]);
    thi_rows_free(&e->sample[1]);
    thi_rows_free(&e->judged);
    thi_free(e->value[0]);
}

/* Values number k become the best if a posterior with them predicts other rows better. */
static thiele_status judge(exploration *e, const thi_problem *problem, const thi_objective *objective, int k, int *best)
{
    thiele_status status = set(problem, e->value[k]);
    if (status == THIELE_OK) {
        status = thi_judge_objective(problem->ctx, problem->spec, objective, &e->sample[0], &e->judged, &e->score[k]);
    }
    *best = k == 0 || e->score[k] > e->score[*best] ? k : *best;
    return status;
}

static thiele_status explore(exploration *e, const thi_problem *problem, const thi_objective *objective,
                             const thi_variational_settings *settings, thi_fit_result *result)
{
    thi_driver *driver = problem->driver;
    thi_hypers *hypers = problem->hypers;
    int best = 1;
    thiele_status status = THIELE_OK;
    thi_hypers_keep(hypers, e->value[0]);
    for (int k = 0; k < 2 && e->sample[k].n > 1; k++) {
        double deadline = k == 0 && e->sample[1].n > 1 ? thi_budget_split(driver, 2) : driver->deadline;
        THI_TRY(set(problem, e->value[0]));
        THI_TRY(search(problem, objective, &e->sample[k], settings, result));
        thi_budget_restore(driver, deadline);
        hold_lengthscales(problem->spec, hypers, e->value[0]);
        thi_hypers_keep(hypers, e->value[k + 1]);
    }
    for (; e->values < 3 && e->sample[1].n > 1; e->values++) {
        THI_TRY(judge(e, problem, objective, e->values, &best));
    }
    THI_TRY(set(problem, e->value[best]));
    int apart = thi_scales_apart((double)e->sample[0].n);
    if (e->values > 0 && thi_scales_share_unit(hypers, &problem->spec->latents, apart)) {
        thi_hypers_keep(hypers, e->value[e->values++]);
        THI_TRY(judge(e, problem, objective, VALUES - 1, &best));
        THI_TRY(set(problem, e->value[best]));
    }
out:
    return status;
}

/* The values that hypers have, and then all others of the exploration. */
static thiele_status hand_over(const exploration *e, thiele_context *ctx, const thi_hypers *hypers, bool explored,
                               thi_starts *starts)
{
    enum { MOST = 3 };
    size_t count = (size_t)hypers->count;
    thiele_status status = thi_alloc(ctx, &starts->value, MOST * count, sizeof *starts->value);
    if (status != THIELE_OK) {
        return status;
    }
    thi_hypers_keep(hypers, starts->value);
    starts->count = 1;
    for (int k = 0; explored && k < e->values && starts->count < MOST; k++) {
        if (memcmp(e->value[k], starts->value, count * sizeof *starts->value) != 0) {
            memcpy(starts->value + (size_t)starts->count++ * count, e->value[k], count * sizeof *starts->value);
        }
    }
    return THIELE_OK;
}

thiele_status thi_first_explore(const thi_problem *problem, const thi_objective *objective,
                                const thi_variational_settings *settings, thi_fit_result *result, thi_starts *starts)
{
    thiele_context *ctx = problem->ctx;
    thi_hypers *hypers = problem->hypers;
    thi_spec *spec = problem->spec;
    bool wanted = !all_given(hypers) && settings->iterations >= 0;
    int64_t rows = wanted ? explored_rows(problem->driver, objective, spec->latents.count) : 0;
    exploration e;
    double spread, deadline = thi_budget_lend(problem->driver, THI_SHARE_EXPLORE);
    thiele_status status;
    THI_TRY(open_exploration(&e, problem, rows > 0 ? rows : objective->subset));
    THI_TRY(thi_start_guess(hypers, ctx, spec, &e.sample[0], &spread));
    THI_TRY(rows > 0 ? explore(&e, problem, objective, settings, result) : thi_hypers_apply(hypers, ctx, spec));
    if (starts != NULL) {
        THI_TRY(hand_over(&e, ctx, hypers, rows > 0, starts));
    }
out:
    thi_budget_restore(problem->driver, deadline);
    close_exploration(&e);
    return status;
}

thiele_status thi_keep_better(const thi_problem *problem, const thi_objective *objective, const thi_starts *starts,
                              bool *others)
{
    enum { TRAIN = 300 };
    static const double BETTER = 1.0; /* nats a row: more than chance makes of as many rows */
    thiele_context *ctx = problem->ctx;
    size_t count = (size_t)problem->hypers->count;
    thi_rows train = {0}, judged = {0};
    double *learned = NULL, best, score;
    thiele_status status = THIELE_OK;
    *others = false;
    if (!can_be_decided(problem->spec->lik)) {
        return THIELE_OK;
    }
    THI_TRY(thi_alloc(ctx, &learned, count, sizeof *learned));
    THI_TRY(thi_source_sample(problem->source, ctx, TRAIN, THI_SAMPLE_EXPLORE, &train));
    THI_TRY(thi_source_sample(problem->source, ctx, JUDGED, THI_SAMPLE_JUDGE, &judged));
    THI_TRY(add_furthest(problem, &train));
    drop_furthest(problem->spec->lik, &judged);
    thi_hypers_keep(problem->hypers, learned);
    THI_TRY(thi_judge_objective(ctx, problem->spec, objective, &train, &judged, &best));
    const double *chosen = learned;
    best += BETTER;
    for (int k = 0; k < starts->count; k++) {
        const double *value = starts->value + (size_t)k * count;
        THI_TRY(set(problem, value));
        THI_TRY(thi_judge_objective(ctx, problem->spec, objective, &train, &judged, &score));
        chosen = score > best ? value : chosen;
        best = fmax(best, score);
    }
    *others = chosen != learned;
    THI_TRY(set(problem, chosen));
out:
    thi_free(learned);
    thi_rows_free(&train);
    thi_rows_free(&judged);
    return status;
}

/* Flops of learning with M inducing inputs for each member: steps on minibatches, Z among what they move. */
static double learning_flops(double M, double D, double members)
{
    enum { STEPS = 300, BATCH = 1024 };
    double batch = fmax(BATCH, 2.0 * M);
    return STEPS * members * (5.0 * batch * M * M + 4.0 * M * M * M + 6.0 * batch * M * D);
}

int64_t thi_first_inducing(const thi_driver *driver, const thi_source *source, int latents)
{
    enum { MOST = 500, LEAST = 100 };
    double M = fmax(LEAST, MOST / sqrt((double)latents)), n = (double)source->n;
    double learning = thi_budget_flops(driver, THI_SHARE_VALUES), pass = thi_budget_flops(driver, THI_SHARE_PASS);
    while (M > LEAST && (learning_flops(M, source->dims, latents) > learning || 4.0 * latents * n * M * M > pass)) {
        M = fmax(LEAST, 0.95 * M);
    }
    return (int64_t)M;
}

/*
 * Rows to choose among: fewer when a deadline is near, of which k-means with its 20 rounds takes a share, and where
 * there are hundreds of columns.
 */
static int64_t basis_rows(const thi_driver *driver, int64_t M, int D)
{
    static const double MOST_FLOPS = 5e10;
    double flops = 2.0 * (double)M * D * 20.0;
    double rows = fmin(BASIS_ROWS, fmin(MOST_FLOPS, thi_budget_flops(driver, THI_SHARE_BASIS)) / flops);
    return (int64_t)fmax(rows, 4.0 * (double)M);
}

thiele_status thi_first_basis(const thi_problem *problem, const thi_variational_settings *s, int64_t wanted, double **Z,
                              int64_t *M, bool *complete)
{
    thiele_context *ctx = problem->ctx;
    const thi_source *source = problem->source;
    const thi_spec *spec = problem->spec;
    int D = source->dims;
    thi_rows sample = {0};
    thiele_status status;
    bool all = false;
    size_t sets = s->Z != NULL && s->all_Z ? (size_t)spec->latents.groups : 1;
    wanted = s->Z != NULL ? s->Z_count : wanted > source->n ? source->n : wanted;
    THI_TRY(thi_alloc(ctx, Z, (size_t)wanted * (size_t)D * sets, sizeof **Z));
    if (s->Z != NULL) {
        *M = wanted;
        memcpy(*Z, s->Z, (size_t)wanted * (size_t)D * sets * sizeof **Z);
        goto out;
    }
    int64_t rows = basis_rows(problem->driver, wanted, D);
    THI_TRY(thi_source_sample(source, ctx, rows, THI_SAMPLE_BASIS, &sample));
    thi_basis_source from = {D, sample.n, sample.X, spec->latents.kernel[0]};
    wanted = wanted > sample.n ? sample.n : wanted;
    thi_driver_phase(problem->driver, "basis", 1);
    THI_TRY(thi_basis_choose(ctx, s->basis != NULL ? s->basis : "kmeans", &from, wanted, *Z, M));
    all = rows >= source->n && (*M < wanted || wanted == sample.n);
out:
    if (complete != NULL) {
        *complete = all;
    }
    thi_rows_free(&sample);
    return status;
}
