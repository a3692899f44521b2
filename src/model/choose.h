/* What a fit chooses by the rows, where nobody said: the kernel, and then the noise. */
#ifndef THI_CHOOSE_H
#define THI_CHOOSE_H

#include "model/specify.h"

enum { THI_CHOICE_ANCHORS = 4 }; /* half of the rows are near to so many of them: explore.h */

/* Whether nothing that was asked for would be lost on other kernels or noise. */
bool thi_has_choice(const thi_fitting *f);
/* Kernels from text, with weak priors on length-scales and noise where nobody gave any. */
thiele_status thi_make_candidate(thi_fitting *f, const char *kernels);
/* Before others are made. */
void thi_forget_prior(thi_fitting *f);

/* Values of all hyperparameters, with their names. */
thiele_status thi_named_keep(thi_named *values, thiele_context *ctx, const thi_hypers *hypers);
thiele_status thi_named_copy(thi_named *to, thiele_context *ctx, const thi_named *from);
/* Of those with the same name; others stay. */
void thi_named_load(const thi_named *values, thi_hypers *hypers);
void thi_named_clear(thi_named *values);

/* How others did beside what was taken, in words. */
typedef struct thi_beside {
    thi_text text;
    int count;
} thi_beside;
/* by: "the evidence of 500 rows" */
void thi_beside_begin(thi_beside *choice, thiele_context *ctx, const char *by, int64_t rows);
/* beside: nats per row. */
void thi_beside_add(thi_beside *choice, const char *name, double beside);
thiele_status thi_beside_end(thi_beside *choice, char **out);

/* --- choose_kernel.c --- */
/* Kernels, means and hyperparameters by the kernel that suits the rows best of a few. */
thiele_status thi_choose_kernel(thi_fitting *f);
/* Its parts: rows, at most so many, that so many searches can learn from in their share of the time. */
int64_t thi_choice_rows(const thi_fitting *f, int climbs, int64_t most);
/* All kernels on these rows, each from where the first ended. f->kernels: the best; winner: its values. */
thiele_status thi_compare_kernels(thi_fitting *f, const thi_rows *rows, thi_named *winner);
/* Learns by the exact evidence from these values; what has none begins at its guess. */
thiele_status thi_climb_exact(thi_fitting *f, const thi_rows *rows, const thi_named *base, double *value);
/* f has the prior of f->kernels, with these values. */
thiele_status thi_take_kernels(thi_fitting *f, const thi_named *winner);

/* --- choose_scales.c --- */
enum { THI_SCALES_ROWS = 1 /* times those that kernels are compared on */, THI_SCALES_CLIMBS = 4 };
/* Whether inputs are so many that one length-scale for all of them may be better. */
bool thi_has_many_scales(const thi_fitting *f);
/*
 * Whether it is, for f->kernels, by predictions of a third of `all` after learning from the others; winner: then the
 * values that `rows` have taught it. labels: of numbers that stand for them only the squares that they are off by
 * count. Nothing where inputs or rows are few. Where f->tied is set before, only which one is asked.
 */
thiele_status thi_choose_scales(thi_fitting *f, bool labels, const thi_rows *all, const thi_rows *rows,
                                thi_named *winner);

/* --- choose_labels.c --- */
/* Whether the only target is a label of several classes. */
bool thi_has_labels(const thi_fitting *f);
/* The same as thi_choose_kernel for them, with so many rows to compare kernels on. */
thiele_status thi_choose_for_labels(thi_fitting *f, const thi_source *source, int64_t count);

/* --- choose_network.c --- */
bool thi_has_network(const thi_fitting *f);
/* After the kernel: where such a network begins, or (by blocks) all that it learns. */
thiele_status thi_choose_for_network(thi_fitting *f);

/* --- choose_noise.c --- */
/* Whether it is one that may be asked for by `noise`. */
bool thi_is_noise(const char *name);
/* After the kernel: the rivals of Gaussian noise, where nobody said that it should be. */
thiele_status thi_choose_noise(thi_fitting *f);
/* --- rival.c --- */
/*
 * f->loss: minus the log density of rows that are held out in turn, at the present values. Five posteriors of most of
 * the rows, or one of some of them where they are many.
 */
thiele_status thi_find_losses(thi_fitting *f);
/* Whether a rival, whose losses are there, is surely better than its favourite. */
bool thi_is_better(const thi_fitting *rival);
/* Inducing inputs and blocks of a rival by blocks, so that its passes stay within their share of the work. */
void thi_rival_sizes(thi_fitting *f);
/* Fits the rivals of a fit that has ended; f->model becomes the best of all. */
thiele_status thi_try_rivals(thi_fitting *f, const thiele_table *table);

#endif
