/* How much each input matters to what a model predicts. */
#ifndef THI_RELEVANCE_H
#define THI_RELEVANCE_H

#include <jansson.h>

#include "model/model.h"

/* Encoded inputs that the model holds, D x n, borrowed. training: they are rows of its table, not points among them. */
typedef struct thi_held {
    int64_t n;
    const double *X;
    const char *what;
    bool training;
} thi_held;
thi_held thi_find_held(const thiele_model *model);

/*
 * An input's relevance is its share of V_1 + ... + V_D, where
 *   V_i = 1/2 sum_o E (g_o(x) - g_o(x with input i of x'))^2 / s_o^2
 * over pairs of different rows x, x' that the model holds: kept rows, training rows or, where it has none of them,
 * basis inputs. g: the predicted means (standard deviation s_o of the target), or the probabilities of classes (s_o =
 * 1); of a model whose own likelihood is not attached the means of its latent functions. V_i is how far predictions
 * move when one input takes the value it has in another row: the total effect of Sobol
 * (Jansen 1999), but for a factor. The pairs are always the same ones.
 *
 * share: one of each input; *pairs: how many there were. 0 of them: it would take too long, or the model holds fewer
 * than two rows or predictions that are not finite, and nothing is known; shares that are all 0: predictions never
 * move.
 */
thiele_status thi_relevance(const thiele_model *model, thiele_context *ctx, double *share, int64_t *pairs);

/* Sets "relevance" in a description, inputs in order of their share; nothing where it is not known. */
thiele_status thi_relevance_to_json(const thiele_model *model, thiele_context *ctx, json_t *json);

#endif
