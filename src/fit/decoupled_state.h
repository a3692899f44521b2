/* What the files of the decoupled fit share. */
#ifndef THI_DECOUPLED_STATE_H
#define THI_DECOUPLED_STATE_H

#include "data/batches.h"
#include "fit/decoupled.h"
#include "fit/explore.h"
#include "fit/pass.h"
#include "fit/predictive.h"
#include "optim/rules.h"
#include "posterior/decoupled.h"

/* Exponent of rho = (8 + t)^-kappa, as the variational fit has it. */
#define THI_DECOUPLED_DECAY 0.51

/* Parts of the optimiser's vector: each has room for the largest bases, one latent or group after the other. */
enum {
    THI_DPART_A,     /* of each latent */
    THI_DPART_L,     /* plain: M_beta x M_beta of each latent */
    THI_DPART_HYPER, /* the free ones */
    THI_DPART_ALPHA, /* of each group: points, where they are learned; then log c */
    THI_DPART_C_ALPHA,
    THI_DPART_BETA,
    THI_DPART_C_BETA,
    THI_DPARTS
};

/* Everything that a step moves, in one piece: x, then T, t of the sites of each latent. Bases that are not learned are
 * moved by no step. */
typedef struct thi_dfit_vector {
    int64_t first[THI_DPARTS + 1];
    int64_t size;  /* of x */
    int64_t whole; /* of x, T and t */
    double *x;
    thi_natural
        *sites;  /* of each latent and all functions that there may be: views; plain: T is L, of those there are */
    double *bar; /* of x */
    thi_matrix *L_bar; /* plain: of each latent; views */
    double *before;    /* all of it before the last step */
    double *scale_a;   /* k of each function with itself, of each group: Jacobi */
    double *scale_L;
    double *base; /* first guesses of the hyperparameters */
} thi_dfit_vector;

typedef struct thi_dfit {
    thi_problem problem;
    const thi_variational_settings *sparse;
    const thi_decoupled_settings *settings;
    thi_decoupled_result *result;
    const thi_latents *latents;
    bool learn; /* hyperparameters */
    /* Of each latent, by a variational fit: its basis is beta, and its q the first one; NULL, or n = 0: there was none.
     */
    thi_predictor *found;
    bool orthogonal;
    int64_t most_alpha, most_beta; /* the limits, for each group */
    int64_t n_alpha, n_beta;       /* functions so far */
    int64_t added, columns;
    thi_dfit_vector vector;
    int64_t *column; /* of K_alpha */
    thi_pass pass;
    thi_decoupled_q *q;     /* of each group */
    thi_decoupled_bar *bar; /* the same, of the present evaluation */
    thi_batches batches;
    thi_starts explored;    /* values by exact regression on some rows, where a variational fit found others */
    double floor;           /* the bound of the variational fit that this one began with; -infinity: there was none */
    int64_t held;           /* rows that were left out; 0: none */
    thi_left_out *left_out; /* of each latent: those rows as predictions without them see them */
    double next_snapshot;   /* seconds */
    double kl_alpha;        /* the quadratic term of the KL where it is known: a holds still; NaN: it is estimated */
} thi_dfit;

/* --- decoupled_init.c --- */
/* Sweeps find the weights, and nothing else is learned. */
bool thi_dfit_only_fills(const thi_dfit *fit);
/* The hyperparameters that a fit begins with, or those that it ends with where it only fills the bases. */
thiele_status thi_dfit_first_values(thi_dfit *fit);
/* Orthogonal: all of beta at once, where a variational fit had it or chosen among some rows. One that is shared grows.
 */
thiele_status thi_dfit_first_beta(thi_dfit *fit);

/* --- decoupled_state.c --- */
/* Room for everything; the limits and the form are set before. */
thiele_status thi_dfit_open(thi_dfit *fit);
void thi_dfit_close(thi_dfit *fit);
double *thi_dfit_part(thi_dfit *fit, int part);
/* A part of a latent, or of a group. */
double *thi_dfit_of(const thi_dfit *fit, int part, int which);
/* The sites of a latent in a vector, or in a copy of all of it. */
thi_natural thi_dfit_sites(const thi_dfit *fit, double *whole, int latent);
/* fit->q, at the present bases. */
const thi_decoupled_q *thi_dfit_q(thi_dfit *fit);
/* The first latent of a group, which the others follow; of the group after the last one: how many there are. */
int thi_dfit_first(const thi_dfit *fit, int group);
/* Adds `count` functions to alpha, or to beta: at the columns of X, which of each group are `stride` numbers further.
 */
thiele_status thi_dfit_add(thi_dfit *fit, bool alpha, int64_t count, const double *X, int64_t stride);
/* Hands the hyperparameters of x to kernels and likelihood, confined to where they may be. */
thiele_status thi_dfit_apply(thi_dfit *fit);

/* --- decoupled_pass.c --- */
/* Batch number t into fit->pass.rows; there may be none without missing values. */
thiele_status thi_dfit_fetch(thi_dfit *fit, int64_t t);
/*
 * The bound and what is wanted: begin, then the rows at hand as often as there are others, each with the weight given,
 * then end. t names the draws of Monte Carlo and the columns of K_alpha. wanted.prior: hyperparameters, and points
 * where they are learned.
 */
thiele_status thi_dfit_begin(thi_dfit *fit, int64_t t, thi_wanted wanted);
thiele_status thi_dfit_rows(thi_dfit *fit, int64_t t, double weight, thi_wanted wanted);
thiele_status thi_dfit_end(thi_dfit *fit);
/* The engine at the present q: for freezing, and for marginals. */
thiele_status thi_dfit_ready(thi_dfit *fit);
/* A natural step of T and t with what was pulled. */
void thi_dfit_step(thi_dfit *fit, double rho);
/* fit->kl_alpha after a begin, from all columns, or those there is time for: M_alpha^2 covariances, once a fit. */
thiele_status thi_dfit_know_kl(thi_dfit *fit);
/* All of it for the rows at hand, which stand for all. */
thiele_status thi_dfit_evaluate(thi_dfit *fit, int64_t t, thi_wanted wanted);

/* --- decoupled_finish.c --- */
/* Whether a snapshot is due; then one of the present q, whose bound is about `value`. The engine begins anew. */
bool thi_dfit_due(const thi_dfit *fit);
thiele_status thi_dfit_save(thi_dfit *fit, double value);

/* --- decoupled_steps.c --- */
/* Steps with the rate gamma_0, from t = 0 on; *last: the mean bound of the last quarter of them. trial: they are taken
 * back. */
thiele_status thi_dfit_steps(thi_dfit *fit, double rate, int64_t steps, bool trial, double *last);
/* --- decoupled_sweeps.c --- */
/* Weights of the mean at their optimum, by blocks of functions; hyperparameters on the way to those explored. */
thiele_status thi_dfit_sweeps(thi_dfit *fit, int sweeps);
/* Flops of sweeps at a few sets of values. */
double thi_dfit_sweep_flops(const thi_dfit *fit);
/* Functions of the mean that some of them have time for. */
int64_t thi_dfit_swept(const thi_dfit *fit);

/* --- decoupled_finish.c --- */
/* Flops of what follows. */
double thi_dfit_last_flops(const thi_dfit *fit);
/* Sites at their optimum, and the bound. */
thiele_status thi_dfit_last(thi_dfit *fit);

#endif
