/* The state of sweeps over the weights of a decoupled mean (decoupled_solve.c). */
#ifndef THI_DECOUPLED_SWEEP_H
#define THI_DECOUPLED_SWEEP_H

#include "basis/partition.h"
#include "fit/decoupled_state.h"

enum { THI_SWEEP_DIRECTIONS = 16, THI_SWEEP_BLOCK = 256, THI_SWEEP_PORTION = 1024 };

/*
 * Gaussian noise, orthogonal form: what the rows and beta make of the bound whatever the mean (decoupled_noise.c), for
 * each latent, which is the function of the target of the same number.
 */
typedef struct thi_dcover {
    double weight;   /* of a row */
    int64_t n;       /* rows */
    const double *y; /* latents x n, NaN: that target is missing; borrowed */
    double *r;       /* latents x n: what beta leaves of k(x, x) */
    int latents;
    thi_natural *sum; /* T: G = sum of V V' over the rows that have the target, weighted */
    thi_matrix work;
    /* What the covariance costs: of other likelihoods, at q as sweeps found it, its part of the KL; of Gaussian noise
     */
    double lost; /* (log|I + G/s2| + sum of log(1 + r/s2)) / 2 of all of them at the present noise */
} thi_dcover;

/* Latents of one group whose weights are found together. */
typedef struct thi_turn {
    int group, first, count;
} thi_turn;

typedef struct thi_sweep {
    thi_dfit *fit;
    thi_rows rows, held; /* that are learned from; that are not */
    int latents, groups;
    /* Of each group. */
    thi_inputs *inputs;
    thi_functions *alpha, *beta;
    int64_t n_alpha, n_beta;
    thi_partition partition;
    int64_t most;  /* functions of the largest block */
    double weight; /* of a row */
    /* What a sweep changes, in one piece, a column a latent: f of the rows, <psi, f> and w of alpha and of beta. */
    int64_t size;
    double *state, *f, *at_alpha, *at_beta, *a, *b;
    double *before, *at_turn;             /* the same before a sweep, and before the present turn of it */
    double *change[THI_SWEEP_DIRECTIONS]; /* of the state, by the last sweeps; the first `changes` of them */
    int changes;
    bool covered;     /* the bound is that of Gaussian noise, with */
    thi_dcover cover; /* and v = 0 here; */
    bool alike;       /* all rows have one curvature, so that K_I,x K_x,I stays, of each group and block: */
    double *gram;     /* one block after the other */
    bool known;       /* after the first sweep */
    struct {
        double *v, *mu, *slope, *bend; /* latents x rows, as likelihoods have them: v, f, g, h */
        double *E;                     /* rows */
        double *g, *h, *root, *along;  /* rows x latents: h > 0 is the curvature */
    } at;
    struct {
        double *squares, *more, *kept; /* of each target: squared errors, how many of them are guessed, its noise */
    } noise;
    thi_matrix K, G, own, part;
    double *d; /* block x latents */
} thi_sweep;

/* What sweeps are over. */
typedef struct thi_course {
    int64_t rows, held; /* so many, the latter of which only judge what comes of it */
    int sweeps;         /* at most */
    double unseen;      /* share of all rows that is not learned from */
    double least;       /* a bound that no sweep can reach any more, at the pace of the last one, is none to wait for */
    double after;       /* flops of what must follow it */
    double ratio;       /* of the noise that the mean is made with to that of the bound; 1 where that is given */
} thi_course;

/* --- decoupled_solve.c --- */
/* (E, g, h) at the present f; *value: the bound. */
thiele_status thi_sweep_look(thi_sweep *s, double *value);
/* One sweep after a look; *value is the bound before and after it. */
thiele_status thi_sweep_once(thi_sweep *s, double *value);

/* --- decoupled_sweeps.c --- */
/* *value: the bound. */
thiele_status thi_sweep_course(thi_dfit *fit, const thi_course *c, double *value);
/* Whether there is time for another one, and for what follows. */
bool thi_sweep_has_time(const thi_dfit *fit, const thi_course *c);

/* --- decoupled_values.c --- */
/* Hyperparameters that are better by the bound of such a course, where there are others to go to. */
thiele_status thi_dfit_climb(thi_dfit *fit, const thi_course *c);
/* A ratio that is better; value: the bound where things stand. */
thiele_status thi_dfit_loosen(thi_dfit *fit, thi_course *c, double value);

/* --- decoupled_sweep.c --- */
/* Over some rows, `held` of them left out. May be closed after an error. */
thiele_status thi_sweep_open(thi_sweep *s, thi_dfit *fit, int64_t rows, int64_t held);
void thi_sweep_close(thi_sweep *s);
/* Blocks of functions; those of one; weights and <psi, f> of them for each latent of a turn. beta is the last one. */
int64_t thi_sweep_blocks(const thi_sweep *s);
thi_functions thi_sweep_block(const thi_sweep *s, int group, int64_t i);
void thi_sweep_columns(const thi_sweep *s, const thi_turn *turn, int64_t i, thi_matrix *w, thi_matrix *own);
/* The turns of a sweep: groups where all rows have one curvature and one latent does not change that of others. */
int thi_sweep_turns(const thi_sweep *s);
thi_turn thi_sweep_turn(const thi_sweep *s, int i);
/* K_I,x K_x,I of a block, where it stays. */
thi_matrix thi_sweep_gram(const thi_sweep *s, int group, int64_t i);
/* <psi, f> of all functions += those of the block's with weights d, a column for each latent of the turn. */
thiele_status thi_sweep_follow(thi_sweep *s, const thi_turn *turn, const thi_functions *block, thi_matrix d);
/* What was found, to the fit, whose engine has it then. */
thiele_status thi_sweep_keep(thi_sweep *s);

/* --- decoupled_noise.c --- */
thiele_status thi_dcover_open(thi_dcover *cover, const thi_dfit *fit, const thi_rows *rows, double weight);
void thi_dcover_close(thi_dcover *cover);
/* The rows from `first` on whose marginals the engine was just asked for; then, after all of them, the end. */
thiele_status thi_dcover_add(thi_dcover *cover, const thi_dfit *fit, int64_t first, int64_t count);
void thi_dcover_end(thi_dcover *cover, thi_dfit *fit);
/* cover->lost at the present noise. */
thiele_status thi_dcover_look(thi_dcover *cover, const thi_dfit *fit);
/* The noises, unless given, at their optimum where the squared errors of each target sum to so much; then a look. */
thiele_status thi_dcover_profile(thi_dcover *cover, thi_dfit *fit, const double *squares);
/* The hyperparameter that is the noise of a target. */
thi_hyper *thi_dfit_noise(const thi_dfit *fit, int target);

#endif
