/* What a model file holds of the table that it was fitted to: who hands one on should know. */
#include "model/describe.h"
#include "posterior/local.h"

/* Numbers of the training rows that the latent functions hold: PIC has inputs, targets and sites. */
static double local_numbers(const thiele_model *model)
{
    const thi_local *local = model->latent->local;
    double each = (double)local->partition.D + 1.0;
    for (int j = 0; j < model->latents; j++) {
        each += model->latent[j].local->lambda != NULL ? 2.0 : 0.0;
    }
    return each * (double)local->partition.n;
}

/* The same of rows that are kept for updates. */
static double kept_numbers(const thi_kept *kept)
{
    double each =
        (double)kept->rows.dims + kept->rows.outputs + 1.0 + (kept->lambda != NULL ? 2.0 * kept->latents : 0.0);
    return each * (double)kept->rows.n;
}

int thi_contents_to_json(const thiele_model *model, json_t *json)
{
    const thi_predictor *p = model->latent;
    const thi_kept *kept = &model->kept;
    bool all = p->local == NULL && model->optimizer == NULL && model->blocks.blocks == 0; /* they are the basis */
    int failed = 0;
    if (p->local != NULL || all || kept->rows.n > 0) {
        int64_t rows = all ? p->n : p->local != NULL ? p->local->partition.n : kept->rows.n;
        double numbers = all                ? (double)p->n * p->kernel->dims
                         : p->local != NULL ? local_numbers(model)
                                            : kept_numbers(kept);
        failed =
            json_object_set_new(json, "training_rows",
                                json_pack("{s:I, s:i, s:b, s:I}", "rows", (json_int_t)rows, "inputs", p->kernel->dims,
                                          "targets", (int)!all, "bytes", (json_int_t)(sizeof(double) * numbers)));
    }
    return failed;
}
