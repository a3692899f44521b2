/*
 * A method of inference as one row: what it is called, when auto takes it and why, what it can do, which options it
 * understands, and how it goes about a fit. A row lives in the file of its method (model/method_*.c) and is listed once
 * (model/methods.def); auto, messages, docs and everything that depends on the method read the rows, and nothing else
 * knows a method by its name.
 */
#ifndef THI_METHOD_H
#define THI_METHOD_H

#include "fit/search.h"

/* What a method can do. */
typedef enum thi_ability {
    THI_CAN_LIKELIHOODS = 1 << 0, /* any of them: else Gaussian noise alone */
    THI_CAN_LATENTS = 1 << 1,     /* several latent functions */
    THI_CAN_TARGETS = 1 << 2,     /* several targets together: else each by itself */
    THI_CAN_STREAM = 1 << 3,      /* tables that memory does not hold */
    THI_CAN_UPDATE = 1 << 4,      /* further rows, afterwards */
    THI_CAN_SNAPSHOT = 1 << 5,    /* a whole model while it runs */
    THI_CAN_JOINT = 1 << 6,       /* joint predictions of several rows */
    THI_CAN_DEADLINE = 1 << 7,    /* uses all of the time that it is given */
    THI_CAN_LEAVE_OUT = 1 << 8,   /* predictions of each training row without it */
    THI_CAN_WEIGHTS = 1 << 9,     /* rows that count more than once, or less */
    THI_CAN_RANKS = 1 << 10,      /* passes over the rows by several processes together */
    THI_ABILITIES = 11
} thi_ability;

/* Why a method cannot do something: a clause that refusals and docs/methods.md share (model/method_list.c). */
typedef enum thi_reason {
    THI_WHY_UNKNOWN,
    THI_WHY_CLOSED,
    THI_WHY_VARIATIONAL,
    THI_WHY_ONE_FUNCTION,
    THI_WHY_APART,
    THI_WHY_PAIRS,
    THI_WHY_ROWS,
    THI_WHY_DRAWS,
    THI_WHY_LAST,
    THI_WHY_OPTIMUM,
    THI_WHY_EXACT,
    THI_WHY_ONCE,
    THI_WHY_ONE_PROCESS,
    THI_REASONS
} thi_reason;

typedef struct thi_lack {
    unsigned can; /* thi_ability */
    thi_reason why;
} thi_lack;

/* Groups of options; those that a method does not understand are refused (the table is in model/methods.c). */
typedef enum thi_option_group {
    THI_TAKES_BASIS = 1 << 0,
    THI_TAKES_FAMILY = 1 << 1,
    THI_TAKES_BATCHES = 1 << 2,
    THI_TAKES_OPTIMIZER = 1 << 3,
    THI_TAKES_EPOCHS = 1 << 4,
    THI_TAKES_RATE = 1 << 5,
    THI_TAKES_EXPECTATION = 1 << 6,
    THI_TAKES_BLOCKS = 1 << 7,
    THI_TAKES_GROWTH = 1 << 8,
    THI_TAKES_MEAN = 1 << 9,
    THI_TAKES_CHAINS = 1 << 10,
    THI_TAKES_STEP = 1 << 11,
    THI_TAKES_LEAPS = 1 << 12,
    THI_TAKES_SNAPSHOT = 1 << 13
} thi_option_group;

typedef struct thi_fitting thi_fitting; /* all that a fit holds: model/specify.h */

typedef struct thi_method {
    const char *name;
    const char *words;   /* what it is, in a line of the docs */
    unsigned can, takes; /* thi_ability, thi_option_group */
    /* Why it cannot do the rest, to an entry of no ability; methods that share a list have what they can do on it too.
     */
    const thi_lack *lacks;
    int64_t most;         /* rows that auto takes it for; 0: never */
    const char *why;      /* says auto */
    const char *evidence; /* what its value is called in JSON */
    /* Of methods on all rows at once: what is maximised. NULL: sparse, by steps or passes over the rows. */
    const thi_objective *objective;
    const char *steps;   /* expectations that its steps go by; NULL: as asked for */
    const char *sampler; /* draws from the posterior once the rest was learned; NULL: none */
    bool partial;        /* a posterior that was stopped halfway knows some of the rows only */
    bool limited;        /* its own limit of steps is where it always ends */
    bool apart;          /* targets that share nothing are fitted each by itself, though it can fit them together */
    /* Memory for n rows. NULL: little. */
    double (*bytes)(const thi_fitting *f, int64_t n);
    /* Settings from the options; refuses what makes no sense. NULL: there are none. */
    thiele_status (*configure)(thi_fitting *f);
    /* Learns from the rows or, at the values that were learned before, only conditions on them. */
    thiele_status (*run)(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted);
    /* What the model says of the fit. NULL: nothing of its own. */
    thiele_status (*report)(thi_fitting *f);
} thi_method;

#endif
