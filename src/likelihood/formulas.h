/* All pointwise formulas of the built-in likelihoods with one latent, for other compilers. */
#ifndef THI_FORMULAS_H
#define THI_FORMULAS_H

#include "likelihood/formulas/augmented.h"
#include "likelihood/formulas/binary.h"
#include "likelihood/formulas/counts.h"
#include "likelihood/formulas/gaussian.h"
#include "likelihood/formulas/ordinal.h"
#include "likelihood/formulas/positive.h"
#include "likelihood/formulas/robust.h"
#include "likelihood/formulas/warped.h"

#endif
