/*
 * Step rules for stochastic gradients over one flat vector, and schedules of their rate. All of them minimise, like
 * thi_lbfgs: the gradient is that of what is to be lowered (minus the bound).
 *
 *   name      step                                                                  paper
 *   adam      x -= rate mhat / (sqrt(vhat) + 1e-8),  m, v: means of g, g^2          Kingma and Ba 2015
 *             with decay 0.9, 0.999; mhat, vhat: corrected for their start at 0
 *   adadelta  x -= rate d,  d = sqrt((D + 1e-6)/(G + 1e-6)) g,  G, D: means of      Zeiler 2012
 *             g^2, d^2 with decay 0.95; the paper's rate is 1, which ends in a
 *             cycle around a minimum: let it fall, by a schedule or a monitor
 *   momentum  v = 0.9 v + g,  x -= rate v: in the long run 10 rate g                Polyak 1964
 *
 *   schedule  rate of step t = 0, 1, ...
 *   constant  rate
 *   decay     rate / (1 + tau rate t)^kappa                                         Bottou 2012 (kappa = 3/4)
 *   power     rate (tau + t)^-kappa, tau > 0; usually with rate 1                   Robbins and Monro 1951
 *   sqrt      rate / (1 + 0.1 sqrt t)                                               Cheng and Boots 2017
 */
#ifndef THI_RULES_H
#define THI_RULES_H

#include "base/base.h"

typedef struct thi_schedule {
    double (*at)(const struct thi_schedule *schedule, double t);
    double rate, tau, kappa;
} thi_schedule;

/* tau and kappa >= 0 are used where the formula has them. Error: ARGUMENT (no such name, a number out of range). */
thiele_status thi_schedule_make(thi_schedule *schedule, thiele_context *ctx, const char *name, double rate, double tau,
                                double kappa);
/* The rate of step t, from 0. */
double thi_schedule_rate(const thi_schedule *schedule, int64_t t);

typedef struct thi_rule_kind thi_rule_kind;

typedef struct thi_rule {
    const thi_rule_kind *kind;
    thi_schedule schedule;
    double factor; /* multiplies the scheduled rate; 1 at first. The caller's to lower when told to (monitor.h) */
    int segments;
    int64_t *first; /* where each segment begins; first[segments] = n */
    int64_t *taken; /* steps that each has taken: its t */
    double *state;  /* 2 n numbers, zero at first */
} thi_rule;

/*
 * The vector is made of `segments` parts of the given lengths, each of which may be held fixed for a step. Errors:
 * ARGUMENT (no such rule), MEMORY; the rule is then closed.
 */
thiele_status thi_rule_open(thi_rule *rule, thiele_context *ctx, const char *name, const thi_schedule *schedule,
                            int segments, const int64_t *length);
void thi_rule_close(thi_rule *rule);
/*
 * One step of every segment with active[segment] (NULL: all). A held segment is not touched: neither x, nor its state,
 * nor its t; its gradient is not read. NUMERIC when an active gradient is not finite: nothing has changed then, and the
 * caller may lower the factor, or leave the batch out. Reads 4 n numbers and writes 3 n; the same bits on any number of
 * threads.
 */
thiele_status thi_rule_step(thi_rule *rule, thiele_context *ctx, double *x, const double *gradient, const bool *active);

#endif
