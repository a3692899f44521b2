/*
 * Kernels for labels of several classes. The labels are numbers at first: one column per class, 1 where it is the row's
 * and 0 elsewhere, less its mean and all in one unit. Regression of them with one kernel has a closed evidence, from
 * which kernels and length-scales are learned in a fraction of the time that the likelihood's own bound takes, and
 * better: that bound favours functions so flat that it is tight. (Rifkin and Klautau 2004 show how well such regression
 * tells classes apart.) Only the scale of f is the likelihood's: the one by which some rows predict others best.
 */
#include <math.h>

#include "fit/budget.h"
#include "fit/explore.h"
#include "fit/judge.h"
#include "model/choose.h"

enum { ROWS = 1500, MORE = 2 /* times those that kernels are compared on, or not worth it */ };
/*
 * Variances of f beside those of its columns, each so many times the one before, the largest that gains a share of the
 * loss on the one before. Classes that do not overlap gain without end, less and less, from functions that are harder
 * and harder to find. FIRST is taken where there is no time to try any: as numbers, labels vary by about one, and f
 * that varies by so little cannot be sure of any class.
 */
enum { SCALES = 7, FIRST = 2 };
static const double TIMES = 4.0, GAIN = 0.1;

/* Several classes whose likelihood does not take long to try scales with, or two of many inputs. */
bool thi_has_labels(const thi_fitting *f)
{
    const thiele_likelihood *lik = f->spec.lik;
    bool several = lik->latents > 1 && lik->ops->support == THI_SUPPORT_CLASS && lik->ops->expectation != NULL;
    bool two =
        lik->latents == 1 && lik->ops->support == THI_SUPPORT_BINARY && lik->parameters == 0 && thi_has_many_scales(f);
    return lik->outputs == 1 && lik->spec == NULL && (several || two);
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* Less its mean; returns the sum of squares. */
static double centre(thi_rows *rows, int column)
{
    double mean = 0.0, squares = 0.0;
    for (int64_t i = 0; i < rows->n; i++) {
        mean += rows->y[i * rows->outputs + column] / (double)rows->n;
    }
    for (int64_t i = 0; i < rows->n; i++) {
        double *y = &rows->y[i * rows->outputs + column];
        *y -= mean;
        squares += *y * *y;
    }
    return squares;
}

/* The labels of some rows become numbers, one target per class; of two classes they are numbers already. */
static thiele_status code(thiele_context *ctx, int classes, thi_rows *rows)
{
    double squares = 0.0, *label = rows->y, *number;
    int64_t numbers = rows->n * classes;
    thiele_status status = thi_alloc(ctx, &number, (size_t)numbers, sizeof *number);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t k = 0; k < numbers; k++) {
        number[k] = classes == 1 ? label[k] : label[k / classes] == (double)(k % classes) ? 1.0 : 0.0;
    }
    rows->y = number;
    rows->outputs = classes;
    thi_free(label);
    for (int p = 0; p < classes; p++) {
        squares += centre(rows, p);
    }
    double unit = squares > 0.0 ? sqrt(squares / (double)numbers) : 1.0;
    for (int64_t k = 0; k < numbers; k++) {
        rows->y[k] /= unit;
    }
    return THIELE_OK;
}

static thiele_status take_coded(thi_fitting *f, const thi_source *source, int classes, int64_t count, thi_rows *rows)
{
    thiele_status status = thi_sample_near(f->ctx, source, count, THI_CHOICE_ANCHORS, rows);
    return status == THIELE_OK ? code(f->ctx, classes, rows) : status;
}

/* The winner learns from more rows, where there is time for that. */
static thiele_status learn_more(thi_fitting *f, const thi_source *source, int classes, int64_t seen, thi_named *winner)
{
    int64_t count = thi_least(thi_choice_rows(f, 1, ROWS), source->n);
    thi_rows rows = {0};
    double value;
    thiele_status status = THIELE_OK;
    if (count < MORE * seen) {
        return THIELE_OK;
    }
    THI_TRY(take_coded(f, source, classes, count, &rows));
    THI_TRY(thi_make_candidate(f, f->kernels));
    THI_TRY(thi_climb_exact(f, &rows, winner, &value));
    THI_TRY(thi_named_keep(winner, f->ctx, &f->hypers));
out:
    thi_rows_free(&rows);
    thi_forget_prior(f);
    return status;
}

/* All that the numbers say, by one kernel for all classes; of two classes whether inputs have one length-scale. */
static thiele_status regress(thi_fitting *f, const thi_source *source, int64_t count, thi_named *winner)
{
    thiele_likelihood *lik = f->spec.lik, *gaussian = NULL;
    thi_rows rows = {0}, all = {0};
    bool several = lik->latents > 1;
    /* A kernel that suits best is of no use with length-scales that few rows made up, or f on another scale. */
    double deadline = several ? thi_budget_split(f->driver, 2) : f->driver->deadline;
    thiele_status status;
    THI_TRY(thiele_likelihood_parse(&gaussian, f->ctx, "gaussian", 1, 0));
    THI_TRY(take_coded(f, source, lik->latents, count, &rows));
    THI_TRY(thi_source_sample(source, f->ctx, THI_SCALES_ROWS * count, THI_SAMPLE_JUDGE, &all));
    THI_TRY(code(f->ctx, lik->latents, &all));
    f->spec.lik = gaussian;
    f->shared_kernel = several;
    if (several) {
        /* More length-scales than rows say nothing, and finding them takes the time of all else. */
        f->tied = f->model->encoder.dims > rows.n;
        THI_TRY(thi_compare_kernels(f, &rows, winner));
        /* Half of what is left is for the scale of f. */
        thi_budget_restore(f->driver, deadline);
        thi_budget_split(f->driver, 2);
    }
    THI_TRY(thi_choose_scales(f, true, &all, &rows, winner));
    if (several) {
        THI_TRY(learn_more(f, source, lik->latents, rows.n, winner));
    }
out:
    thi_budget_restore(f->driver, deadline);
    f->spec.lik = lik;
    thiele_likelihood_destroy(gaussian);
    thi_rows_free(&all);
    thi_rows_free(&rows);
    return status;
}

/* --- the scale of f ----------------------------------------------------------------------------------------------- */

/* All variances times exp(log_scale), beside those of the columns. */
static thiele_status scale_to(thi_fitting *f, const double *column, double log_scale)
{
    thi_hypers_load(&f->hypers, column);
    for (int g = 0; g < f->hypers.groups; g++) {
        const thiele_kernel *kernel = f->spec.latents.kernel[g];
        for (int l = 0; l < kernel->leaves; l++) {
            const thi_leaf *leaf = &kernel->leaf[l];
            f->hypers.hyper[f->hypers.first[g] + leaf->first + leaf->lengthscales].value += log_scale;
        }
    }
    return thi_hypers_apply(&f->hypers, f->ctx, &f->spec);
}

/* Scales that are tried: rows that learn and those that they predict. */
typedef struct trial {
    thi_fitting *f;
    const double *column;
    const thi_rows *train, *others;
} trial;

/* f at the k-th scale; *score: how it predicts. */
static thiele_status try_scale(const trial *t, int k, double *score)
{
    thiele_status status = scale_to(t->f, t->column, k * log(TIMES));
    return status == THIELE_OK
               ? thi_judge_objective(t->f->ctx, &t->f->spec, &thi_objective_dense, t->train, t->others, score)
               : status;
}

static bool is_worth(double score, double less)
{
    return isfinite(score) && (!isfinite(less) || score > less + GAIN * fabs(less));
}

/* From FIRST up (by = 1) or down while the larger of two scales is worth it, or is not; best: what `*at` scores. */
static thiele_status walk(const trial *t, int by, int *at, double *best)
{
    double score;
    thiele_status status = THIELE_OK;
    for (int k = *at + by; k >= 0 && k < SCALES && !thi_driver_stopped(t->f->driver); k += by) {
        THI_TRY(try_scale(t, k, &score));
        if (by > 0 ? !is_worth(score, *best) : is_worth(*best, score)) {
            break;
        }
        *at = k;
        *best = score;
    }
out:
    return status;
}

/* That by which `train` predicts the others best. */
static thiele_status scale(thi_fitting *f, const thi_rows *train, const thi_rows *others)
{
    double *column = NULL, best;
    int at = FIRST;
    thiele_status status;
    THI_TRY(thi_alloc(f->ctx, &column, (size_t)f->hypers.count, sizeof *column));
    thi_hypers_keep(&f->hypers, column);
    const trial t = {f, column, train, others};
    if (!thi_driver_stopped(f->driver)) {
        THI_TRY(try_scale(&t, FIRST, &best));
        THI_TRY(walk(&t, 1, &at, &best));
        if (at == FIRST) {
            THI_TRY(walk(&t, -1, &at, &best));
        }
    }
    THI_TRY(scale_to(f, column, at * log(TIMES)));
out:
    thi_free(column);
    return status;
}

/* A view of some of the rows, which have no offsets. */
static thi_rows part(const thi_rows *rows, int64_t first, int64_t count)
{
    thi_rows view = *rows;
    view.n = count;
    view.X = rows->X + first * rows->dims;
    view.y = rows->y + first * rows->outputs;
    view.weight = rows->weight != NULL ? rows->weight + first : NULL;
    return view;
}

/*
 * Two classes learn by their own bound, which is quick and as good, but whether each input has a length-scale of its
 * own is not for a bound to say: where they have one together, learning goes on from it.
 */
static thiele_status begin_two(thi_fitting *f, const thi_named *winner)
{
    thi_forget_prior(f);
    return f->tied ? thi_take_kernels(f, winner) : thi_make_candidate(f, f->kernels);
}

thiele_status thi_choose_for_labels(thi_fitting *f, const thi_source *source, int64_t count)
{
    thi_rows all = {0};
    thi_named winner = {0};
    thiele_status status;
    THI_TRY(regress(f, source, count, &winner));
    if (f->spec.lik->latents == 1) {
        THI_TRY(begin_two(f, &winner));
        goto out;
    }
    THI_TRY(thi_take_kernels(f, &winner));
    THI_TRY(thi_source_sample(source, f->ctx, 2 * count, THI_SAMPLE_JUDGE, &all));
    thi_rows train = part(&all, 0, all.n / 2), others = part(&all, train.n, all.n - train.n);
    THI_TRY(scale(f, &train, &others));
    f->settings.iterations = -1; /* that is all that is learned */
out:
    thi_rows_free(&all);
    thi_named_clear(&winner);
    return status;
}
