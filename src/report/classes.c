/*
 * Whether probabilities of labels can be believed. Of each class: how many rows have it against how many are predicted
 * to, sum (y - p) over its standard deviation sqrt(sum p (1 - p)); reliability, the share of rows in bins of their
 * probability, with bands that hold all bins together with probability 95%; the chi-square of Hosmer and Lemeshow
 * (1980) over those bins; ROC curves; which labels are taken for which.
 */
#include <math.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/statistic.h"

enum { BINS = 10, CURVES = 6, CURVE_POINTS = 100, LEAST = 5 };
static const double ALPHA = 0.05;

typedef struct bin {
    int64_t rows, have;
    double sum, spread;
} bin;

static double probability_of(const thi_report_rows *rows, int64_t i, int c)
{
    return rows->scorer.probability[i * thi_rows_classes(rows) + c];
}

/* Of one class; of the most probable one of each row where c is negative. */
static void fill_bins(const thi_report_rows *rows, int c, bin *bins)
{
    int classes = thi_rows_classes(rows);
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        int of = c;
        for (int k = 0; c < 0 && k < classes; k++) {
            of = of < 0 || probability_of(rows, i, k) > probability_of(rows, i, of) ? k : of;
        }
        double p = probability_of(rows, i, of);
        int at = (int)(p * BINS);
        bin *b = &bins[at < BINS ? at : BINS - 1];
        b->rows++;
        b->have += rows->scorer.label[i] == of;
        b->sum += p;
        b->spread += p * (1.0 - p);
    }
}

static void put_reliability(thi_report *r, json_t *own, const bin *bins, int filled)
{
    json_t *list = thi_put_list(r, own, "bins");
    for (int b = 0; b < BINS; b++) {
        int64_t low, high, n = bins[b].rows;
        if (n == 0) {
            continue;
        }
        json_t *one = thi_append_object(r, list);
        double mean = fmin(fmax(bins[b].sum / (double)n, 1e-12), 1.0 - 1e-12);
        thi_binomial_band(n, mean, ALPHA / filled, &low, &high);
        thi_put_count(r, one, "rows", n);
        thi_put_number(r, one, "predicted", mean);
        thi_put_number(r, one, "observed", (double)bins[b].have / (double)n);
        thi_put_number(r, one, "low", (double)low / (double)n);
        thi_put_number(r, one, "high", (double)high / (double)n);
    }
}

/* Bins in which chance is nearly normal count for the chi-square; the others for the mean gap alone. */
static void put_bins(thi_report *r, json_t *own, const thi_report_rows *rows, int c)
{
    bin bins[BINS] = {{0}};
    double gap = 0.0, square = 0.0;
    int filled = 0, df = 0;
    fill_bins(rows, c, bins);
    for (int b = 0; b < BINS; b++) {
        double off = (double)bins[b].have - bins[b].sum;
        filled += bins[b].rows > 0;
        gap += fabs(off) / (double)rows->scorer.rows;
        if (bins[b].spread >= LEAST) {
            square += off * off / bins[b].spread;
            df++;
        }
    }
    put_reliability(r, own, bins, filled);
    thi_put_number(r, own, "gap", gap);
    thi_put_number(r, own, "p", df > 0 ? thi_chi_square_tail(df, square) : NAN);
}

/* --- ROC ------------------------------------------------------------------------------------------------------------
 */

typedef struct ranked {
    double p;
    bool have;
} ranked;

static int by_probability(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->p < y->p) - (x->p > y->p);
}

/* The curve at CURVE_POINTS places of the false-positive share; ties are climbed at once. */
static thiele_status put_curve(thi_report *r, json_t *own, int c)
{
    const thi_report_rows *rows = r->rows;
    int64_t n = rows->scorer.rows, positive = 0;
    double x[CURVE_POINTS + 1], y[CURVE_POINTS + 1], auc = 0.0;
    ranked *all = NULL;
    thiele_status status = thi_alloc(r->ctx, &all, (size_t)n, sizeof *all);
    if (status != THIELE_OK) {
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        all[i] = (ranked){probability_of(rows, i, c), rows->scorer.label[i] == c};
        positive += all[i].have;
    }
    if (positive > 0 && positive < n) {
        qsort(all, (size_t)n, sizeof *all, by_probability);
        double tp = 0.0, fp = 0.0, negatives = (double)(n - positive);
        int points = 0;
        for (int64_t i = 0; i < n;) {
            double before_tp = tp, before_fp = fp, p = all[i].p;
            for (; i < n && all[i].p == p; i++) {
                tp += all[i].have / (double)positive;
                fp += !all[i].have / negatives;
            }
            auc += 0.5 * (fp - before_fp) * (tp + before_tp);
            for (; points <= CURVE_POINTS && points <= fp * CURVE_POINTS + 1e-9; points++) {
                double at = (double)points / CURVE_POINTS, step = fp - before_fp;
                x[points] = at;
                y[points] =
                    step > 0.0 ? before_tp + (tp - before_tp) * fmin(1.0, fmax(0.0, (at - before_fp) / step)) : tp;
            }
        }
        thi_put_numbers(r, own, "false_positive", points, x);
        thi_put_numbers(r, own, "true_positive", points, y);
        thi_put_number(r, own, "auc", auc);
    }
    thi_free(all);
    return status;
}

/* --- all of it ------------------------------------------------------------------------------------------------------
 */

static void put_share(thi_report *r, json_t *own, int c)
{
    const thi_report_rows *rows = r->rows;
    double have = 0.0, sum = 0.0, spread = 0.0, n = (double)rows->scorer.rows;
    for (int64_t i = 0; i < rows->scorer.rows; i++) {
        double p = probability_of(rows, i, c);
        have += rows->scorer.label[i] == c;
        sum += p;
        spread += p * (1.0 - p);
    }
    thi_put_text(r, own, "label", r->model->encoder.target->level[c]);
    thi_put_number(r, own, "observed", have / n);
    thi_put_number(r, own, "predicted", sum / n);
    thi_put_number(r, own, "z", spread > 0.0 ? (have - sum) / sqrt(spread) : have == sum ? 0.0 : INFINITY);
}

static thiele_status put_confusion(thi_report *r, json_t *section)
{
    int classes = thi_rows_classes(r->rows);
    int64_t *count = NULL;
    thiele_status status = thi_alloc(r->ctx, &count, (size_t)classes * (size_t)classes, sizeof *count);
    if (status == THIELE_OK) {
        thi_scorer_confusion(&r->rows->scorer, count);
        thi_put_counts(r, section, "confusion", (int64_t)classes * classes, count); /* [label + classes guess] */
    }
    thi_free(count);
    return status;
}

thiele_status thi_section_classes(thi_report *r, json_t *section)
{
    int classes = thi_rows_classes(r->rows);
    thiele_status status = THIELE_OK;
    if (classes == 0) {
        return THIELE_OK;
    }
    json_t *list = thi_put_list(r, section, "labels");
    for (int c = 0; c < classes; c++) {
        json_t *own = thi_append_object(r, list);
        put_share(r, own, c);
        if (c < CURVES) {
            THI_TRY(put_curve(r, own, c));
        }
    }
    json_t *own = thi_put_object(r, section, "reliability");
    put_bins(r, own, r->rows, classes == 2 ? 1 : -1);
    THI_TRY(put_confusion(r, section));
out:
    return status;
}
