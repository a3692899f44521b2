/*
 * metrics: regression, binary and multi-class scores. The mean and variance of the training targets come from the
 * encoder, as they do in a fitted model.
 */
#include "oracle.h"

#include "data/data.h"
#include <thiele/metrics.h>

/* Population mean and variance of y_train, learned from a table of it and a column of row numbers. */
static thiele_status training_moments(oracle_case *c, double *mean, double *variance)
{
    thi_matrix y = {0}, table_rows = {0};
    thiele_table *table = NULL;
    thi_encoder encoder = {0};
    thi_column_options options = {0};
    options.target = "y";
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "y_train", ORACLE_VECTOR, &y));
    THI_TRY(thi_matrix_alloc(&table_rows, c->ctx, 2, y.rows));
    for (int64_t i = 0; i < y.rows; i++) {
        table_rows.data[2 * i] = (double)i;
        table_rows.data[2 * i + 1] = y.data[i];
    }
    THI_TRY(thiele_table_from_rows(&table, c->ctx, y.rows, 2, table_rows.data, (const char *const[]){"row", "y"}));
    THI_TRY(thi_encoder_learn(&encoder, c->ctx, table, &options, NULL));
    *mean = encoder.target[0].mean;
    *variance = encoder.target[0].variance;
out:
    thi_encoder_clear(&encoder);
    thiele_table_destroy(table);
    thi_free(table_rows.data);
    thi_free(y.data);
    return status;
}

static thiele_status check_scores(oracle_case *c, const thiele_scores *s)
{
    const struct {
        const char *field;
        double got;
    } rows[] = {
        {"rmse", s->rmse}, {"mse", s->rmse * s->rmse},
        {"mae", s->mae},   {"smse", s->smse},
        {"nlpd", s->nlpd}, {"nlpd_sum", s->nlpd * (double)s->rows},
        {"mnlp", s->nlpd}, {"coverage90", s->coverage90},
        {"crps", s->crps}, {"msll", s->msll},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == THIELE_OK; i++) {
        status = oracle_check_number(c, rows[i].field, rows[i].got);
    }
    return status;
}

static thiele_status check_regression(oracle_case *c)
{
    thi_matrix y = {0}, mean = {0}, variance = {0}, crps = {0};
    thiele_scores scores;
    double train_mean = 0.0, train_variance = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "y", ORACLE_VECTOR, &y));
    THI_TRY(oracle_read(c, c->inputs, "mean", ORACLE_VECTOR, &mean));
    THI_TRY(oracle_read(c, c->inputs, "var", ORACLE_VECTOR, &variance));
    THI_TRY(oracle_expect_shape(c, "mean", mean, y.rows, 1));
    THI_TRY(oracle_expect_shape(c, "var", variance, y.rows, 1));
    THI_TRY(training_moments(c, &train_mean, &train_variance));
    THI_TRY(
        thiele_score_gaussian(c->ctx, y.rows, y.data, mean.data, variance.data, train_mean, train_variance, &scores));
    THI_TRY(check_scores(c, &scores));
    THI_TRY(thi_matrix_alloc(&crps, c->ctx, y.rows, 1));
    for (int64_t i = 0; i < y.rows; i++) {
        crps.data[i] = thiele_crps_gaussian(y.data[i], mean.data[i], variance.data[i]);
    }
    THI_TRY(oracle_check(c, "crps_each", ORACLE_VECTOR, crps));
out:
    thi_free(y.data);
    thi_free(mean.data);
    thi_free(variance.data);
    thi_free(crps.data);
    return status;
}

/* Labels as small integers; those of a binary case, -1 and +1, become the classes 0 and 1. */
static thiele_status read_labels(oracle_case *c, const char *field, bool binary, int64_t n, int **out)
{
    thi_matrix label = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, field, ORACLE_VECTOR, &label));
    THI_TRY(oracle_expect_shape(c, field, label, n, 1));
    THI_TRY(thi_alloc(c->ctx, out, (size_t)n, sizeof **out));
    for (int64_t i = 0; i < n; i++) {
        double value = label.data[i];
        bool good = binary ? value == -1.0 || value == 1.0 : value >= 0.0 && value <= 1e6 && value == (int)value;
        if (!good) {
            status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "%s[%lld]: %g is no label", field, (long long)i, value);
            goto out;
        }
        (*out)[i] = binary ? value > 0.0 : (int)value;
    }
out:
    thi_free(label.data);
    return status;
}

/* probability: classes x n. */
static thiele_status check_labels(oracle_case *c, const char *field, bool binary, thi_matrix probability,
                                  const char *error_field, const char *nlp_field)
{
    int *label = NULL;
    double error_rate = 0.0, nlp = 0.0;
    thiele_status status = THIELE_OK;
    THI_TRY(read_labels(c, field, binary, probability.cols, &label));
    THI_TRY(thiele_score_classes(c->ctx, probability.cols, (int)probability.rows, label, probability.data, &error_rate,
                                 &nlp));
    THI_TRY(oracle_check_number(c, error_field, error_rate));
    THI_TRY(oracle_check_number(c, nlp_field, nlp));
out:
    thi_free(label);
    return status;
}

static thiele_status check_binary(oracle_case *c)
{
    thi_matrix plus = {0}, both = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read(c, c->inputs, "prob_plus", ORACLE_VECTOR, &plus));
    THI_TRY(thi_matrix_alloc(&both, c->ctx, 2, plus.rows));
    for (int64_t i = 0; i < plus.rows; i++) {
        both.data[2 * i] = 1.0 - plus.data[i];
        both.data[2 * i + 1] = plus.data[i];
    }
    THI_TRY(check_labels(c, "label", true, both, "error_rate", "nlp"));
out:
    thi_free(plus.data);
    thi_free(both.data);
    return status;
}

static thiele_status check_classes(oracle_case *c)
{
    thi_matrix probability = {0};
    thiele_status status = oracle_read(c, c->inputs, "class_prob", ORACLE_ROWS, &probability);
    if (status == THIELE_OK) {
        status = check_labels(c, "class_label", false, probability, "class_error_rate", "class_nlp");
    }
    thi_free(probability.data);
    return status;
}

thiele_status oracle_metrics(oracle_case *c)
{
    thiele_status status = check_regression(c);
    if (status == THIELE_OK) {
        status = check_binary(c);
    }
    return status == THIELE_OK ? check_classes(c) : status;
}
