/* Frozen predictors to and from the tensors of a model file. */
#ifndef THI_PREDICTORS_H
#define THI_PREDICTORS_H

#include <jansson.h>

#include "model/tensors.h"
#include "posterior/predictor.h"

/* Words of the file. */
enum { THI_PLUS_KINDS = THI_PLUS_PRECISION + 1 };
extern const char *const thi_plus_names[THI_PLUS_KINDS];
extern const char *const thi_conditional_names[THI_CONDITIONAL_KINDS];
/* Parts that a later latent function may have from the first. */
enum { THI_SHARED_INPUTS, THI_SHARED_FACTOR, THI_SHARED_SCALE, THI_SHARED_LOCAL, THI_SHARED_KINDS };
extern const char *const thi_shared_names[THI_SHARED_KINDS];
/* "inputs" of the first latent function, "f2.inputs" of the second. */
enum { THI_PART_NAME_MAX = 48 };
void thi_part_name(char name[THI_PART_NAME_MAX], int latent, const char *part);

static inline int64_t thi_packed_size(int64_t n)
{
    return n * (n + 1) / 2;
}

/* Tensors on their way to a file. */
typedef struct thi_tensor_list {
    thiele_context *ctx;
    const char *prefix; /* before the names of those that are added; NULL: none */
    int count;
    thi_tensor *tensor;
    char **name;   /* owned */
    double **kept; /* numbers that are freed with the list; NULL where the tensor's are borrowed */
} thi_tensor_list;
/* Adds a tensor under its name, which is that of latent function `latent` (from 0; -1: of none). */
thiele_status thi_tensor_add(thi_tensor_list *list, int latent, const char *name, thi_tensor tensor);
/* The tensors with their names set. */
const thi_tensor *thi_tensor_list_named(thi_tensor_list *list);
void thi_tensor_list_clear(thi_tensor_list *list);

/* Adds what a predictor needs; what equals that of `first` (NULL: there is none) is left out. */
thiele_status thi_predictor_list(thi_tensor_list *list, const thi_predictor *predictor, const thi_predictor *first,
                                 int latent);
/* What the tensors alone do not say; first: as above. NULL when memory is out. */
json_t *thi_predictor_to_json(const thi_predictor *predictor, const thi_predictor *first);

/* --- predictors_read.c --- */
/*
 * Predictor number `latent` of a list, those before it read, from tensors and JSON that nobody vouches for; prior: the
 * kernel's structure and the mean. Of tensors that were reread, which have no bytes, everything is checked and only
 * kernel and mean are there. Error: FORMAT.
 */
thiele_status thi_predictor_read(thi_predictor *list, thiele_context *ctx, thi_tensors *tensors, int latent,
                                 const thi_prior *prior, int components, const json_t *json);

#endif
