/*
 * The hyperparameters of a fit as one list: those of each group of latent functions, the kernel's and then the mean's;
 * and those of the likelihood. Each knows its name, whether it is handled as a log, how to turn it into the units of
 * the data, whether it is fixed, and its prior. The optimiser sees the free ones.
 */
#ifndef THI_PARAMETERS_H
#define THI_PARAMETERS_H

#include "fit/spec.h"

/* Priors are on the value in the units of the data; log densities without their constants. */
typedef enum thi_prior_kind { THI_PRIOR_NONE, THI_PRIOR_LOGNORMAL, THI_PRIOR_GAMMA } thi_prior_kind;

typedef struct thi_hyper {
    const char *name;    /* "matern52.lengthscale[age]", "f2.mean.slope[age]", "noise"; owned by the set */
    bool log;            /* value is the log of a positive number */
    double value;        /* in the model's units, log (of what is above the floor) where `log` */
    double floor;        /* number = floor + exp(value): keeps a learned noise off zero */
    double unit, offset; /* data units = offset + unit * number */
    double ceiling;      /* of value while it is learned */
    bool fixed, given;
    bool apart; /* of a noise: predictions have this one, and q was made with the value `made` (predictive.h) */
    double made;
    bool standardised; /* of columns with different units: reported in their standard deviations */
    double number;     /* of a fixed one: to the last bit */
    thi_prior_kind prior;
    double prior_a, prior_b; /* lognormal: mean, sd of the log; gamma: shape, rate */
    bool assumed;            /* nobody asked for that prior */
} thi_hyper;

typedef struct thi_hypers {
    int count;
    thi_hyper *hyper;
    char **name; /* owned */
    int groups;
    int *first;      /* of each group; the last one ends where the likelihood's begin, at first[groups] */
    int noise;       /* which is the noise variance of a Gaussian likelihood; -1: none */
    int most_scales; /* length-scales of a kernel that may go apart; more keep their proportions. 0: any number */
    bool tied;       /* those of each kernel keep their proportions, however few they are */
    bool alike;      /* the kernels of all latent functions move together */
} thi_hypers;

/*
 * From a specification whose given values are in the units of the data (the kernels' and the likelihood's become the
 * model's), and the options' `set` and `prior`.
 */
thiele_status thi_hypers_make(thi_hypers *hypers, thiele_context *ctx, thi_spec *spec, const thi_encoder *encoder,
                              const char *set, const char *prior);
void thi_hypers_clear(thi_hypers *hypers);
/* The number itself, in the model's units and in those of the data. */
double thi_hyper_number(const thi_hyper *hyper);
double thi_hyper_data_value(const thi_hyper *hyper);
/* d log number / d value */
double thi_hyper_slope(const thi_hyper *hyper);
int thi_hypers_free(const thi_hypers *hypers);
/*
 * Where a learned value may go: a positive number no further than a factor 1e11 from `base`, its first guess (beyond,
 * it has run away), and not above its ceiling unless the user put it there.
 */
void thi_hyper_limits(const thi_hyper *hyper, double base, double *low, double *high);
/* Moves free values (the optimiser's vector) that are beyond their limits back to them. */
void thi_hypers_confine(const thi_hypers *hypers, const double *base, double *x);
/* base: the first guesses of all. */
bool thi_hypers_in_bounds(const thi_hypers *hypers, const double *base);
/* Free values to and from the optimiser's vector. */
void thi_hypers_pack(const thi_hypers *hypers, double *x);
void thi_hypers_unpack(thi_hypers *hypers, const double *x);
/* All values to and from a list. */
void thi_hypers_keep(const thi_hypers *hypers, double *value);
void thi_hypers_load(thi_hypers *hypers, const double *value);
/* The sum of log priors; gradient (all hypers, in `value`) += its derivative. */
double thi_hypers_log_prior(const thi_hypers *hypers, double *gradient);
/* Turns a gradient in the numbers (logs of positive ones) into one in `value`. */
void thi_hypers_chain(const thi_hypers *hypers, double *gradient);
/* Hands the values to kernels, means and likelihood. Error: ARGUMENT for one that the likelihood refuses. */
thiele_status thi_hypers_apply(const thi_hypers *hypers, thiele_context *ctx, thi_spec *spec);

/* --- scales.c --- */
/* As many length-scales as so many rows can tell apart. */
int thi_scales_apart(double rows);
/*
 * Of each kernel with more length-scales than `most`: makes them one length in the units of the data, as suits columns
 * that are of one kind (pixels), whose rare ones would have too much weight otherwise. False: there is none.
 */
bool thi_scales_share_unit(thi_hypers *hypers, const thi_latents *latents, int most);
/* Whether the latent functions play one part each of the same kind, and have kernels of the same form. */
bool thi_latents_alike(const thi_latents *latents, const thiele_likelihood *lik);
/* Slopes of the hypers such that length-scales beyond hypers->most_scales, and kernels that are alike, move together.
 */
void thi_scales_tie(const thi_hypers *hypers, const thi_latents *latents, double *gradient);

#endif
