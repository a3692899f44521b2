/* How well each row of a table is predicted, and models side by side on the same rows. */
#ifndef THIELE_COMPARE_H
#define THIELE_COMPARE_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows in the order of the table; rows that are left out, or lack the target, have none. */
typedef struct thiele_losses {
    int64_t rows;
    int64_t *row;   /* of the table, from 0 */
    double *loss;   /* -log p(y), nats; of a class target -log p(class) */
    double *square; /* (y - mean)^2 in the squared units of the target; of a class target the Brier score */
} thiele_losses;

/*
 * The losses of one target (from 0), and its scores (NULL: not wanted). options may be NULL. The caller clears what it
 * gets. Errors as thiele_model_score.
 */
THIELE_API thiele_status thiele_model_losses(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                             const thiele_predict_options *options, int target, thiele_losses *losses,
                                             thiele_scores *scores);
THIELE_API void thiele_losses_clear(thiele_losses *losses);

/* A mean over rows and its standard error, of rows that are independent; 0 and 0 of a model beside itself. */
typedef struct thiele_difference {
    double mean, error;
} thiele_difference;

typedef struct thiele_comparison {
    thiele_scores scores;           /* of all rows that this model predicts */
    int64_t rows;                   /* that all of the models predict: differences are of these */
    int best;                       /* 1: its mean loss on them is the lowest (the first such model) */
    thiele_difference loss, square; /* minus the best model's, row by row */
} thiele_comparison;

/*
 * Models of the same target beside each other, `count` of them; comparisons: one of each. target: its name; NULL: the
 * first one of the first model. Errors: ARGUMENT (a model has no such target), DATA (no row that all predict),
 * UNSUPPORTED (labels beside numbers: a probability is not a density), and as thiele_model_score.
 */
THIELE_API thiele_status thiele_compare(thiele_context *ctx, int count, const thiele_model *const *models,
                                        const thiele_table *table, const thiele_predict_options *options,
                                        const char *target, thiele_comparison *comparisons);

#ifdef __cplusplus
}
#endif
#endif
