/*
 * Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018; Modrák et al. 2023): f is drawn
 * from the prior, y from the likelihood given f, and a method conditions on y at the same parameters. Where its
 * posterior is exact, the rank of what was drawn among draws of the posterior is uniform.
 */
#ifndef THI_SBC_H
#define THI_SBC_H

#include "fit/method.h"

enum {
    THI_SBC_PLACES = 5,                      /* rows whose f is ranked */
    THI_SBC_QUANTITIES = THI_SBC_PLACES + 2, /* and the mean of f, and log p(y | f) */
    THI_SBC_DRAWS = 99                       /* of each posterior: ranks are from 0 to so many */
};

typedef struct thi_sbc {
    const thi_method *method;
    const thi_spec *truth; /* what f and y are drawn from */
    const thi_spec *spec;  /* what is conditioned by: the same, unless something is wrong on purpose */
    thi_rows *rows;        /* at most THI_EXPECT_BLOCK, without weights; y is overwritten */
    int64_t simulations;
    int *rank; /* THI_SBC_QUANTITIES x simulations, the caller's */
} thi_sbc;

/* The quantity's name, such as "f[12]" for the row of this number, counted from 1. */
void thi_sbc_name(const thi_sbc *sbc, int quantity, char name[32]);
/* Whether a method can be checked: on all rows, or by chains over them. */
bool thi_sbc_can(const thi_method *method);
/*
 * The seed of the context decides. simulations x (one conditioning, and n^3/3 + THI_SBC_DRAWS n^2 flops a latent).
 * Errors: CANCELLED (the progress callback, phase "check", asked to stop), and those of the method.
 */
thiele_status thi_sbc_run(const thi_sbc *sbc, thiele_context *ctx);

#endif
