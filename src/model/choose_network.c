/*
 * Where a regression network of as many nodes as outputs, or more, begins: at independent regressions, coupled where
 * that predicts better. Outputs are taken in the order of how many rows have them, and of each
 *   y_k = sum_j b_kj y_j + r_k
 * by those before it, b by generalised least squares in the metric of r's kernel, on half of some rows. It is kept
 * where its evidence is higher by Schwarz's criterion and the other half, of which no output is seen, is predicted
 * better by a standard error; else b = 0. The nodes are the r_k, each learned by the method of the fit as if it were a
 * target by itself; the weights begin at (I - b)^-1, nearly constant (a linear model of coregionalisation,
 * autoregressive as in Kennedy and O'Hagan 2000). With b = 0 that is where independent fits end. Costs three exact
 * searches an output on some rows, and its fit.
 */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/explore.h"
#include "fit/start.h"
#include "model/choose.h"

enum { ROWS = 700, LEAST = 60, CLIMBS = 3, ROUNDS = 2, MOST_OUTPUTS = 32 };
/* The prior variance of a weight around its loading. */
static const double WEIGHT_VARIANCE = 1e-4;
/* Of least squares, relative to the diagonal: means of outputs may be multiples of each other. */
static const double RIDGE = 1e-6;
/* Of a node that has no output of its own: its weight at the output that it follows. */
static const double SPARE_WEIGHT = 0.1;

/* What is known of the outputs at some rows: outputs x n, the mean where one is not seen. */
typedef struct start {
    thi_fitting *f;
    int outputs, nodes;
    int *order;       /* of the outputs: those that most rows have first */
    thi_rows half[2]; /* of some rows: to learn from, and to predict */
    double *known[2]; /* their outputs, seen or predicted; those of the second half are all predicted */
    double *b;        /* outputs x outputs, row by row */
    thiele_likelihood *gaussian;
} start;

/* --- one output at a time ----------------------------------------------------------------------------------------- */

static double explained(const start *s, int p, const double *known)
{
    double sum = 0.0;
    for (int j = 0; j < s->outputs; j++) {
        sum += s->b[p * s->outputs + j] * known[j];
    }
    return sum;
}

/* The rows that have output p, less what the others explain; index (may be NULL): which they are. */
static thiele_status rows_with(const start *s, const thi_rows *rows, const double *known, int p, thi_rows *own,
                               int64_t *index)
{
    int64_t count = 0;
    const thi_aside beside = {.weight = rows->weight != NULL};
    thiele_status status = thi_rows_alloc(own, s->f->ctx, rows->n, rows->dims, 1, beside);
    for (int64_t i = 0; i < rows->n && status == THIELE_OK; i++) {
        double y = rows->y[i * rows->outputs + p] - explained(s, p, known + i * s->outputs);
        if (!isnan(y)) {
            memcpy(own->X + count * rows->dims, rows->X + i * rows->dims, (size_t)rows->dims * sizeof *own->X);
            own->y[count] = y;
            if (rows->weight != NULL) {
                own->weight[count] = rows->weight[i];
            }
            if (index != NULL) {
                index[count] = i;
            }
            count++;
        }
    }
    own->n = count;
    return status;
}

/* The exact posterior of these rows at the present values. */
static thiele_status condition(const start *s, const thi_rows *rows, thi_predictor *out)
{
    thi_fitted fitted = {.latent = out};
    return thi_freeze(s->f->ctx, &thi_objective_exact, &s->f->spec, rows, &fitted);
}

/* What a posterior of r_p and the others' outputs say of output p at some rows. */
static thiele_status predict(const start *s, const thi_predictor *rest, const thi_rows *rows, const double *known,
                             int p, double *out)
{
    thiele_status status = thi_predictor_marginals(rest, s->f->ctx, rows->n, rows->X, out, NULL, NULL);
    for (int64_t i = 0; i < rows->n && status == THIELE_OK; i++) {
        out[i] += explained(s, p, known + i * s->outputs);
    }
    return status;
}

/* Output p takes its place among what is known; seen values (NULL: none is) come before predictions. */
static void take_known(const start *s, int64_t n, const double *predicted, const double *seen, int p, double *known)
{
    for (int64_t i = 0; i < n; i++) {
        double y = seen != NULL ? seen[i * s->outputs + p] : NAN;
        known[i * s->outputs + p] = isnan(y) ? predicted[i] : y;
    }
}

/* --- coupling ------------------------------------------------------------------------------------------------------
 */

/*
 * b of the place-th output += (M' C M)^-1 M' C r by those before it, M what is known of them, C = (K + noise)^-1 at
 * the present values and r what is left so far.
 */
static thiele_status regress(start *s, int place, const thi_rows *own, const int64_t *index)
{
    double A[MOST_OUTPUTS * MOST_OUTPUTS], x[MOST_OUTPUTS];
    thi_rows column = *own;
    thiele_status status = THIELE_OK;
    column.y = NULL;
    THI_TRY(thi_alloc(s->f->ctx, &column.y, (size_t)own->n, sizeof *column.y));
    for (int a = 0; a < place; a++) {
        thi_predictor weighted = {0};
        for (int64_t i = 0; i < own->n; i++) {
            column.y[i] = s->known[0][index[i] * s->outputs + s->order[a]];
        }
        status = condition(s, &column, &weighted);
        x[a] = 0.0;
        memset(A + a * place, 0, (size_t)place * sizeof *A);
        for (int64_t i = 0; i < own->n && status == THIELE_OK; i++) {
            x[a] += weighted.a[i] * own->y[i];
            for (int c = 0; c < place; c++) {
                A[a * place + c] += weighted.a[i] * s->known[0][index[i] * s->outputs + s->order[c]];
            }
        }
        A[a * place + a] *= 1.0 + RIDGE;
        thi_predictor_clear(&weighted);
        THI_TRY(status);
    }
    thi_matrix L = thi_matrix_view(A, place, place, place);
    THI_TRY(thi_chol(s->f->ctx, L));
    thi_blas_trsv(THI_N, L, x);
    thi_blas_trsv(THI_T, L, x);
    for (int a = 0; a < place; a++) {
        s->b[s->order[place] * s->outputs + s->order[a]] += x[a];
    }
out:
    thi_free(column.y);
    return status;
}

/* How well an output is explained: evidence less Schwarz's penalty, and what it predicts of rows that were not seen. */
typedef struct trial {
    thi_named values;
    double evidence;
    double *at[2]; /* predictions at the halves */
} trial;

static thiele_status trial_open(trial *t, const start *s)
{
    thiele_status status = THIELE_OK;
    *t = (trial){0};
    for (int h = 0; h < 2 && status == THIELE_OK; h++) {
        status = thi_alloc(s->f->ctx, &t->at[h], (size_t)s->half[h].n, sizeof *t->at[h]);
    }
    return status;
}

static void trial_close(trial *t)
{
    thi_named_clear(&t->values);
    thi_free(t->at[0]);
    thi_free(t->at[1]);
}

/* Learns the place-th output from what t->values has, its b too where it is coupled. */
static thiele_status climb(start *s, int place, bool coupled, trial *t)
{
    thi_fitting *f = s->f;
    thi_rows own = {0};
    thi_predictor rest = {0};
    int64_t *index = NULL;
    int p = s->order[place];
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &index, (size_t)s->half[0].n, sizeof *index));
    THI_TRY(thi_make_candidate(f, f->kernels));
    thi_named_load(&t->values, &f->hypers);
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
    for (int round = 0; round < (coupled ? ROUNDS : 1); round++) {
        thi_rows_free(&own);
        THI_TRY(rows_with(s, &s->half[0], s->known[0], p, &own, index));
        if (coupled) {
            THI_TRY(regress(s, place, &own, index));
            thi_rows_free(&own);
            THI_TRY(rows_with(s, &s->half[0], s->known[0], p, &own, index));
        }
        THI_TRY(thi_climb_exact(f, &own, &t->values, &t->evidence));
        THI_TRY(thi_named_keep(&t->values, f->ctx, &f->hypers));
    }
    t->evidence -= coupled ? 0.5 * place * log((double)own.n) : 0.0;
    THI_TRY(condition(s, &own, &rest));
    for (int h = 0; h < 2; h++) {
        THI_TRY(predict(s, &rest, &s->half[h], s->known[h], p, t->at[h]));
    }
out:
    thi_forget_prior(f);
    thi_predictor_clear(&rest);
    thi_rows_free(&own);
    thi_free(index);
    return status;
}

/*
 * Whether squared errors at rows that were not seen are smaller by more than a standard error of their mean difference:
 * of two models as good as each other the simpler one is taken, since what b adds is not free of errors either.
 */
static bool predicts_better(const start *s, int p, const trial *alone, const trial *coupled)
{
    double count = 0.0, mean = 0.0, square = 0.0;
    for (int64_t i = 0; i < s->half[1].n; i++) {
        double y = s->half[1].y[i * s->outputs + p], a = y - alone->at[1][i], c = y - coupled->at[1][i];
        if (!isnan(y)) {
            double gain = a * a - c * c, step = gain - mean;
            count += 1.0;
            mean += step / count;
            square += step * (gain - mean);
        }
    }
    return mean > 0.0 && mean * count > sqrt(square);
}

/* Values and b of the place-th output; no b where that explains no more. */
static thiele_status couple(start *s, int place)
{
    int p = s->order[place];
    trial alone, coupled = {0};
    const trial *best = &alone;
    bool better = false;
    thiele_status status;
    THI_TRY(trial_open(&alone, s));
    THI_TRY(climb(s, place, false, &alone));
    if (place > 0) {
        THI_TRY(trial_open(&coupled, s));
        THI_TRY(thi_named_copy(&coupled.values, s->f->ctx, &alone.values));
        THI_TRY(climb(s, place, true, &coupled));
        better = coupled.evidence > alone.evidence && predicts_better(s, p, &alone, &coupled);
        best = better ? &coupled : best;
    }
    take_known(s, s->half[0].n, best->at[0], s->half[0].y, p, s->known[0]);
    take_known(s, s->half[1].n, best->at[1], NULL, p, s->known[1]);
out:
    if (!better) { /* nor where it could not be found out */
        memset(s->b + p * s->outputs, 0, (size_t)s->outputs * sizeof *s->b);
    }
    trial_close(&alone);
    trial_close(&coupled);
    return status;
}

static thiele_status find_couplings(start *s)
{
    thi_fitting *f = s->f;
    thiele_likelihood *lik = f->spec.lik;
    double deadline = thi_budget_lend(f->driver, THI_SHARE_COUPLE);
    thiele_status status = THIELE_OK;
    f->spec.lik = s->gaussian;
    for (int h = 0; h < 2; h++) {
        THI_TRY(thi_alloc(f->ctx, &s->known[h], (size_t)(s->half[h].n * s->outputs), sizeof *s->known[h]));
    }
    for (int a = 0; a < s->outputs; a++) {
        THI_TRY(couple(s, a));
    }
out:
    f->spec.lik = lik;
    thi_budget_restore(f->driver, deadline);
    if (status == THIELE_ERROR_NUMERIC) { /* nothing is lost but a coupling */
        thi_recover(f->ctx);
        status = THIELE_OK;
    }
    return status;
}

/* --- nodes ---------------------------------------------------------------------------------------------------------
 */

/* Each node by itself, from all rows; what outputs before it are predicted to be is taken off. */
static thiele_status learn_nodes(start *s)
{
    thi_fitting *f = s->f;
    const thi_rows *rows = &f->rows;
    thi_rows node = {0};
    double *mean = NULL, *all = NULL, deadline = thi_budget_lend(f->driver, THI_SHARE_NODES);
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &mean, (size_t)rows->n, sizeof *mean));
    THI_TRY(thi_alloc(f->ctx, &all, (size_t)(rows->n * s->outputs), sizeof *all));
    for (int a = 0; a < s->outputs; a++) {
        int p = s->order[a];
        thi_predictor alone = {0};
        thi_fitted fitted = {.latent = &alone};
        THI_TRY(rows_with(s, rows, all, p, &node, NULL));
        status = thi_run_target(f, &node, p, s->outputs - a, &fitted);
        if (status == THIELE_OK) {
            status = predict(s, &alone, rows, all, p, mean);
        }
        thi_predictor_clear(&alone);
        thi_rows_free(&node);
        THI_TRY(status);
        take_known(s, rows->n, mean, NULL, p, all);
    }
out:
    thi_budget_restore(f->driver, deadline);
    thi_rows_free(&node);
    thi_free(mean);
    thi_free(all);
    return status;
}

/* Row p of (I - b)^-1, by those of the outputs before it; spare nodes follow an output each. */
static void fill_weights(const start *s, double *W)
{
    for (int a = 0; a < s->outputs; a++) {
        int p = s->order[a];
        double *row = W + p * s->nodes;
        row[p] = 1.0;
        for (int j = 0; j < s->outputs; j++) {
            for (int q = 0; q < s->outputs && s->b[p * s->outputs + j] != 0.0; q++) {
                row[q] += s->b[p * s->outputs + j] * W[j * s->nodes + q];
            }
        }
    }
    for (int q = s->outputs; q < s->nodes; q++) {
        W[q % s->outputs * s->nodes + q] = SPARE_WEIGHT;
    }
}

static void set(thi_hyper *h, double value)
{
    if (!h->fixed) {
        h->value = value;
    }
}

/* Of a latent function: its variance in all, and the constant of its mean. */
static void set_weight(thi_fitting *f, int latent, double loading)
{
    const thiele_kernel *kernel = f->spec.latents.kernel[latent];
    thi_hyper *own = f->hypers.hyper + f->hypers.first[latent];
    for (int l = 0; l < kernel->leaves; l++) {
        const thi_leaf *leaf = &kernel->leaf[l];
        set(&own[leaf->first + leaf->lengthscales], log(WEIGHT_VARIANCE / kernel->leaves));
    }
    set(&own[kernel->parameters], loading);
}

/* Spare nodes have the kernel of an output's node; weights are latent functions, or (mixing) parameters. */
static void place_weights(const start *s, const double *W)
{
    thi_fitting *f = s->f;
    thi_hypers *hypers = &f->hypers;
    for (int q = s->outputs; q < s->nodes; q++) {
        int from = hypers->first[q % s->outputs], to = hypers->first[q];
        for (int i = 0; to + i < hypers->first[q + 1]; i++) {
            set(&hypers->hyper[to + i], hypers->hyper[from + i].value);
        }
    }
    bool latent = thi_is_network(f->spec.lik);
    for (int k = 0; k < s->outputs * s->nodes; k++) {
        if (latent) {
            set_weight(f, s->nodes + k, W[k]);
        } else {
            set(&hypers->hyper[hypers->first[hypers->groups] + s->outputs + k], W[k]);
        }
    }
}

/* --- all of it -----------------------------------------------------------------------------------------------------
 */

/* Outputs that more rows have come first. */
static void sort_outputs(start *s)
{
    const thi_rows *rows = &s->f->rows;
    int64_t seen[MOST_OUTPUTS] = {0};
    for (int64_t k = 0; k < rows->n * s->outputs; k++) {
        seen[k % s->outputs] += !isnan(rows->y[k]);
    }
    for (int p = 0; p < s->outputs; p++) {
        int at = p;
        for (; at > 0 && seen[p] > seen[s->order[at - 1]]; at--) {
            s->order[at] = s->order[at - 1];
        }
        s->order[at] = p;
    }
}

/*
 * Half of the rows are to learn from; half of those that are taken lie close together, since outputs that go together
 * slowly may not do so where only near rows tell. The rest is to predict.
 */
static thiele_status take_halves(start *s, int64_t count)
{
    const thi_rows *rows = &s->f->rows;
    thi_source source;
    thi_rows every = {0};
    int64_t *row = NULL, half = rows->n / 2;
    thiele_status status;
    THI_TRY(thi_alloc(s->f->ctx, &row, (size_t)rows->n, sizeof *row));
    thi_random_permutation((thi_stream){s->f->ctx->seed, THI_RANDOM_SPLIT, 2}, rows->n, row);
    for (int h = 0; h < 2; h++) {
        THI_TRY(thi_rows_take(&every, s->f->ctx, rows, half, row + h * half));
        thi_source_of_rows(&source, &every);
        THI_TRY(h == 0 ? thi_sample_near(s->f->ctx, &source, count, THI_CHOICE_ANCHORS, &s->half[h])
                       : thi_source_sample(&source, s->f->ctx, count, THI_SAMPLE_JUDGE, &s->half[h]));
        thi_rows_free(&every);
    }
out:
    thi_free(row);
    thi_rows_free(&every);
    return status;
}

static thiele_status begin(start *s, int64_t count)
{
    thi_fitting *f = s->f;
    double spread, *W = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &s->order, (size_t)s->outputs, sizeof *s->order));
    THI_TRY(thi_alloc(f->ctx, &s->b, (size_t)(s->outputs * s->outputs), sizeof *s->b));
    THI_TRY(thi_alloc(f->ctx, &W, (size_t)(s->outputs * s->nodes), sizeof *W));
    THI_TRY(thiele_likelihood_parse(&s->gaussian, f->ctx, "gaussian", 1, 0));
    sort_outputs(s);
    thi_forget_prior(f);
    if (count >= LEAST) {
        THI_TRY(take_halves(s, count));
        THI_TRY(find_couplings(s));
    }
    THI_TRY(thi_make_prior(f, f->kernels));
    THI_TRY(thi_start_guess(&f->hypers, f->ctx, &f->spec, &f->rows, &spread));
    THI_TRY(learn_nodes(s));
    fill_weights(s, W);
    place_weights(s, W);
    for (int i = 0; i < f->hypers.count; i++) {
        f->hypers.hyper[i].given = true; /* searches go on from here */
    }
    THI_TRY(thi_hypers_apply(&f->hypers, f->ctx, &f->spec));
out:
    thi_free(W);
    return status;
}

/* Whether outputs are weighted sums of nodes, as many as they or more, and nothing that was asked for is in the way. */
bool thi_has_network(const thi_fitting *f)
{
    const thiele_likelihood *lik = f->spec.lik;
    const thiele_fit_options *o = f->options;
    bool network = lik->spec == NULL && lik->ops->several && !lik->ops->separate && lik->nodes >= lik->outputs;
    bool given = o->prior.set != NULL || o->prior.prior != NULL || o->stopping.iterations != 0 ||
                 o->prior.mean != NULL || o->prior.share_kernel;
    return network && !given && lik->outputs > 1 && lik->outputs <= MOST_OUTPUTS && !f->streamed &&
           f->rows.offset == NULL && strchr(f->kernels, ';') == NULL && f->rows.n >= LEAST;
}

/*
 * Inducing inputs and blocks as the node of most rows had by itself: smaller ones would predict worse than independent
 * fits.
 */
static void take_sizes(const start *s)
{
    thi_fitting *f = s->f;
    const thi_blocks_result *node = &f->block_outcome;
    int64_t seen = 0;
    for (int64_t i = 0; i < f->rows.n; i++) {
        seen += !isnan(f->rows.y[i * s->outputs + s->order[0]]);
    }
    if (f->settings.inducing == 0) {
        f->settings.inducing = node->inducing;
    }
    if (f->block_settings.blocks == 0 && seen > 0) {
        f->block_settings.blocks = (node->blocks * f->rows.n + seen / 2) / seen;
    }
}

thiele_status thi_choose_for_network(thi_fitting *f)
{
    start s = {.f = f, .outputs = f->spec.lik->outputs, .nodes = f->spec.lik->nodes};
    int64_t count = thi_least(thi_choice_rows(f, CLIMBS * s.outputs, ROWS), f->rows.n / 2);
    thiele_status status = begin(&s, count);
    /* Blocks learn no values of several functions themselves that would be better. */
    if (status == THIELE_OK && f->block_settings.form.weight[THI_RESIDUAL_BLOCK] > 0.0) {
        f->settings.iterations = -1;
        take_sizes(&s);
    }
    thi_free(s.order);
    thi_free(s.b);
    thi_free(s.known[0]);
    thi_free(s.known[1]);
    thi_rows_free(&s.half[0]);
    thi_rows_free(&s.half[1]);
    thiele_likelihood_destroy(s.gaussian);
    return status;
}
