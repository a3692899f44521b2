/*
 * What the files of a learner (include/thiele/stream.h) share.
 *
 *   learner.c              tables batch by batch, snapshots, models
 *   learner_open.c         opening and closing
 *   learner_batch.c        one batch: read, predicted, scored, learned
 *   learner_clock.c        what the time between rows takes away
 *   learner_prior.c        a fitted model's specification, and its parameters learned further
 *   learner_parameters.c   kernel, likelihood and inducing inputs, learned again now and then
 */
#ifndef THI_LEARNER_H
#define THI_LEARNER_H

#include "fit/blocks_online.h"
#include "fit/online_mixture.h"
#include "model/model.h"
#include "model/score.h"
#include "model/specify.h"
#include <thiele/stream.h>

struct thiele_learner {
    thiele_model *model; /* a copy; its posterior is that of the last refresh */
    int parts;           /* targets that have a model, and then a learner, each; 0: this is one learner */
    thiele_learner **of;
    thiele_update_options options;
    char *snapshot;
    int64_t batch, window;
    thi_online_mixture online;
    thi_blocks_online *blocks; /* in its place where the model has local parts, which are then always those of now */
    thi_scorer scorer;
    thi_rows rows; /* of a batch, as are the arrays below */
    int64_t *row;
    double *mu, *v;
    thiele_scores *part, *filling; /* of a batch, and of the window that is being filled; one a target */
    bool filled;                   /* there was a whole window */
    int64_t learned, unsaved;      /* rows since the opening; since the last snapshot */
    int64_t bad;                   /* the table's row that the last batch ended before */
    double lasting;                /* what time leaves, in the next batch, of what was learned before it */
    double saved;
    thi_driver driver;
};

/* --- learner_batch.c --- */
/* Reads so many rows of a table; those before the first that cannot be used are there after an error. */
thiele_status thi_learner_read(thiele_learner *learner, thiele_context *ctx, thi_reader *reader, int64_t first,
                               int64_t count);
/* Predicts the batch that was read, scores it, learns it. */
thiele_status thi_learner_take(thiele_learner *learner, thiele_context *ctx, const thiele_table *table);

/* "standard input, line 1042" before a message about a row. */
thiele_status thi_learner_name_line(thiele_context *ctx, thiele_status status, const thiele_table *table, int64_t row);

/* --- learner_clock.c --- */
/* From where the model's clock stood, if it was of the same column. */
thiele_status thi_learner_set_clock(thiele_learner *learner, thiele_context *ctx);
/*
 * Looks at the times of so many rows, which become fewer where they span much; *left: what the time that passed leaves
 * of what was learned before them. DATA, naming the row: the first of them has no time.
 */
thiele_status thi_learner_clock(thiele_learner *learner, thiele_context *ctx, const thiele_table *table, int64_t first,
                                int64_t *count, double *left);

/* --- learner_prior.c --- */
/* Whether a model's parameters can be learned while rows arrive. */
bool thi_learner_has_parameters(const thiele_model *model);
/* The specification and the hyperparameters of f->model as they are now; q's noise, where predictions have another. */
thiele_status thi_learner_specify(thi_fitting *f);
/* How far a search goes on these rows. */
typedef struct thi_learner_effort {
    int iterations;
    double tolerance; /* nats a row that five iterations must gain */
    bool anew;        /* from inducing inputs that are chosen anew, too */
    bool guess;       /* and from first guesses of all that is learned */
} thi_learner_effort;
/* The noise of predictions by rows that a search held out, where it did: the hyperparameter, and a factor
 * (predictive.h).
 */
typedef struct thi_learner_noise {
    bool known;
    double value, tau;
} thi_learner_noise;
/*
 * These rows alone say how kernels, means, likelihood and bases go on; fresh: a predictor for each latent function,
 * prepared to learn online, with the noise of q as that of predictions.
 */
thiele_status thi_learner_prior(thi_fitting *f, const thi_rows *rows, const thi_learner_effort *how,
                                thi_predictor *fresh, thi_learner_noise *noise);

/* --- learner_parameters.c --- */
/* Room for kept rows and, of those of the fit, their sites; none are kept where parameters stay. */
thiele_status thi_learner_open_kept(thiele_learner *learner, thiele_context *ctx);
/* Keeps the batch that was learned, and learns parameters where they are due. */
thiele_status thi_learner_keep(thiele_learner *learner, thiele_context *ctx);
/* Parameters once more where many of the kept rows have come since: these were all rows. */
thiele_status thi_learner_settle(thiele_learner *learner, thiele_context *ctx);

#endif
