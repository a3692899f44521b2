/* Models side by side on the same rows. */
#ifndef THIELE_COMPARE_H
#define THIELE_COMPARE_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A mean over rows and its standard error, of rows that are independent; 0 and 0 of a model beside itself. */
typedef struct thiele_difference {
    double mean, error;
} thiele_difference;

typedef struct thiele_comparison {
    thiele_scores scores; /* of all rows that this model predicts */
    int64_t rows;         /* that all of the models predict: differences are of these */
    int best;             /* 1: its mean loss on them is the lowest (the first such model) */
    /* Minus the best model's, row by row: of -log p(y) (labels: -log p(class)), and of the squared error in the units
     * of the target (labels: the Brier score). */
    thiele_difference loss, square;
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
