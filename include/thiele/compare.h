/* Models side by side on the same rows. */
#ifndef THIELE_COMPARE_H
#define THIELE_COMPARE_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A mean over independent rows and its standard error; 0 and 0 where a model is compared with itself. */
typedef struct thiele_difference {
    double mean, error;
} thiele_difference;

typedef struct thiele_comparison {
    thiele_scores scores; /* on all rows that this model predicts */
    int64_t rows;         /* that all of the models predict: differences are taken over these */
    int best;             /* 1: its mean loss on them is the lowest (the first such model) */
    /* Minus the best model's, row by row: -log p(y) (labels: -log p(class)), and the squared error in the units of
     * the target (labels: the Brier score). */
    thiele_difference loss, square;
} thiele_comparison;

/*
 * Compares `count` models of the same target; comparisons has one entry per model. target: its name; NULL: the first
 * target of the first model. Errors: ARGUMENT (a model has no such target), DATA (no row that all predict),
 * UNSUPPORTED (labels against numbers: a probability is not a density), and those of thiele_model_score.
 */
THIELE_API thiele_status thiele_compare(thiele_context *ctx, int count, const thiele_model *const *models,
                                        const thiele_table *table, const thiele_predict_options *options,
                                        const char *target, thiele_comparison *comparisons);

#ifdef __cplusplus
}
#endif
#endif
