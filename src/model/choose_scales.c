/*
 * Whether the inputs of a kernel have length-scales of their own or one together. Where inputs are many the evidence
 * favours those of their own, each of which fits itself a little to the rows that it was learned from: images of digits
 * (64 inputs, 1,000 rows) gain 0.1 nats per number, and four times as many other rows get the wrong label. So a length
 * for all inputs, in their standard deviations or in the units of the data, competes by rows that nothing was learned
 * from: their leave-one-out predictions among all rows, in the same closed form for one target and for several.
 */
#include <math.h>
#include <string.h>

#include "fit/start.h"
#include "model/choose.h"

enum { MANY = 10 /* inputs */, EVERY = 3 /* row is held out */, LEAST = 60 /* rows in all */ };
typedef enum way { APART, IN_DEVIATIONS, IN_UNITS, WAYS } way;
static const char *const said[WAYS] = {"", "one length-scale for all inputs in standard deviations",
                                       "one length-scale for all inputs"};
static const double ERRORS = 2.0; /* standard errors by which one together must be better */

bool thi_has_many_scales(const thi_fitting *f)
{
    return f->model->encoder.dims >= MANY;
}

static bool is_held_out(int64_t row)
{
    return row % EVERY == EVERY - 1;
}

static thiele_status take_others(thiele_context *ctx, const thi_rows *all, thi_rows *train)
{
    const thi_aside beside = {.weight = all->weight != NULL};
    thiele_status status = thi_rows_alloc(train, ctx, all->n, all->dims, all->outputs, beside);
    train->n = 0;
    for (int64_t i = 0; i < all->n && status == THIELE_OK; i++) {
        if (!is_held_out(i)) {
            thi_rows_copy(train, train->n++, all, i);
        }
    }
    return status;
}

/* f has the prior of f->kernels that way, learned from these rows; values: what it learned. */
static thiele_status learn(thi_fitting *f, way how, const thi_rows *rows, thi_named *values)
{
    double spread, value;
    thiele_status status;
    thi_forget_prior(f);
    f->tied = how != APART;
    THI_TRY(thi_make_candidate(f, f->kernels));
    THI_TRY(thi_start_guess(&f->hypers, f->ctx, &f->spec, rows, &spread));
    if (how == IN_UNITS) {
        thi_scales_share_unit(&f->hypers, &f->spec.latents, 1);
    }
    THI_TRY(thi_named_keep(values, f->ctx, &f->hypers));
    THI_TRY(thi_climb_exact(f, rows, values, &value));
    THI_TRY(thi_named_keep(values, f->ctx, &f->hypers));
out:
    return status;
}

/* What a way loses on each row that is held out. */
typedef struct losses {
    double *squares; /* that it is off by */
    double *density; /* minus its log; of numbers that stand for labels the same as squares */
    double sum;      /* of these */
} losses;

static void lose(bool labels, const thi_rows *all, int64_t row, const double *mean, double variance, losses *to)
{
    int P = all->outputs;
    const double *y = all->y + row * P;
    double squares = 0.0;
    for (int p = 0; p < P; p++) {
        squares += (y[p] - mean[p]) * (y[p] - mean[p]);
    }
    to->squares[row / EVERY] = squares;
    to->density[row / EVERY] = labels ? squares : 0.5 * (log(variance) + squares / variance);
    to->sum += to->density[row / EVERY];
}

/* Losses of the rows that are held out, at what f has learned from the others. */
static thiele_status find_losses(thi_fitting *f, bool labels, const thi_rows *all, losses *to)
{
    const thi_exact_shape shape = {all->n, all->outputs, all->X, all->y, all->weight};
    int P = all->outputs;
    thi_exact exact = {0};
    double *mean = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &mean, (size_t)(all->n * (P + 1)), sizeof *mean));
    double *variance = mean + all->n * P;
    THI_TRY(thi_exact_open_shape(&exact, f->ctx, &shape));
    THI_TRY(thi_exact_condition(&exact, f->ctx, f->spec.latents.prior,
                                thi_hyper_number(&f->hypers.hyper[f->hypers.noise])));
    THI_TRY(thi_exact_loo(&exact, f->ctx, mean, variance));
    for (int64_t i = EVERY - 1; i < all->n; i += EVERY) {
        lose(labels, all, i, mean + i * P, variance[i], to);
    }
out:
    thi_exact_close(&exact);
    thi_free(mean);
    return status;
}

/* By how many of its standard errors the mean of the differences is above zero. */
static double gain_in_errors(int64_t n, const double *apart, const double *loss)
{
    double mean = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n; i++) {
        mean += (apart[i] - loss[i]) / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        double gap = apart[i] - loss[i] - mean;
        squares += gap * gap;
    }
    return squares > 0.0 ? mean / sqrt(squares / (double)(n * (n - 1))) : 0.0;
}

/* The losses of one way; an infinite sum where it has none. */
static thiele_status try_way(thi_fitting *f, bool labels, way how, const thi_rows *train, const thi_rows *all,
                             losses *to)
{
    thi_named values = {0};
    thiele_status status = learn(f, how, train, &values);
    to->sum = 0.0;
    status = status == THIELE_OK ? find_losses(f, labels, all, to) : status;
    thi_named_clear(&values);
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(f->ctx);
        to->sum = INFINITY;
        status = THIELE_OK;
    }
    return status;
}

/* Surely better predictions, and a mean that is not surely worse. */
static bool is_better(int64_t n, const losses *apart, const losses *other)
{
    return isfinite(other->sum) &&
           (!isfinite(apart->sum) || (gain_in_errors(n, apart->density, other->density) > ERRORS &&
                                      gain_in_errors(n, apart->squares, other->squares) > -1.0));
}

static thiele_status compare(thi_fitting *f, bool labels, const thi_rows *all, way first, way *best)
{
    int64_t n = all->n / EVERY;
    losses lost[WAYS];
    double *numbers = NULL;
    thi_rows train = {0};
    thiele_status status;
    *best = first;
    THI_TRY(thi_alloc(f->ctx, &numbers, (size_t)(2 * n * WAYS), sizeof *numbers));
    THI_TRY(take_others(f->ctx, all, &train));
    for (way how = first; how < WAYS; how++) {
        lost[how] = (losses){.squares = numbers + 2 * how * n, .density = numbers + (2 * how + 1) * n};
        THI_TRY(try_way(f, labels, how, &train, all, &lost[how]));
        *best = lost[how].sum < lost[*best].sum && is_better(n, &lost[first], &lost[how]) ? how : *best;
    }
out:
    thi_rows_free(&train);
    thi_free(numbers);
    return status;
}

static thiele_status say(thi_fitting *f, int64_t rows, way how)
{
    char **why = &f->model->kernel_why;
    thi_text text;
    thi_text_init(&text, f->ctx);
    thi_text_add(&text, "%s%s", *why != NULL ? *why : "", *why != NULL ? "; " : "");
    thi_text_add(&text, "with %s, by predictions of %lld rows", said[how], (long long)(rows / EVERY));
    thi_free(*why);
    *why = NULL;
    return thi_text_take(&text, why);
}

thiele_status thi_choose_scales(thi_fitting *f, bool labels, const thi_rows *all, const thi_rows *rows,
                                thi_named *winner)
{
    const way first = f->tied ? IN_DEVIATIONS : APART;
    way best = first;
    thi_named tied = {0};
    thiele_status status = THIELE_OK;
    if (!thi_has_many_scales(f) || all->n < LEAST || thi_driver_stopped(f->driver)) {
        return THIELE_OK;
    }
    THI_TRY(compare(f, labels, all, first, &best));
    if (best != first) {
        status = learn(f, best, rows, &tied);
    }
    if (status == THIELE_ERROR_NUMERIC) {
        thi_recover(f->ctx);
        best = first;
        status = THIELE_OK;
    }
    THI_TRY(status);
    if (best != first) {
        THI_TRY(thi_named_copy(winner, f->ctx, &tied));
        THI_TRY(say(f, all->n, best));
    }
    f->tied = best != APART;
out:
    thi_named_clear(&tied);
    thi_forget_prior(f);
    return status;
}
