/*
 * Random draws from the discrete and positive laws, by counter: a draw reads at most THI_DRAW indices of its stream
 * from `first` on, so that numbers of draws never overlap.
 */
#ifndef THI_DRAWS_H
#define THI_DRAWS_H

#include "base/base.h"

enum { THI_DRAW = 64 };

double thi_draw_poisson(thi_stream stream, uint64_t first, double mean);
/* p <= 1/2: swap successes and failures otherwise. */
double thi_draw_binomial(thi_stream stream, uint64_t first, double trials, double p);
/* The log of a Gamma(shape, 1) variable, which itself may underflow for small shapes. */
double thi_draw_log_gamma(thi_stream stream, uint64_t first, double shape);
/* The variable itself. */
double thi_draw_gamma_one(thi_stream stream, uint64_t first, double shape);

#endif
