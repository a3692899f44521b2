/*
 * Formulas of one row or one entry have one text, in headers that C, C++ and CUDA compile: no compound literals, no
 * designated initialisers, nothing global. THI_POINTWISE declares such a function.
 */
#ifndef THI_POINTWISE_H
#define THI_POINTWISE_H

#ifdef __CUDACC__
#define THI_POINTWISE static __host__ __device__ inline
#else
#define THI_POINTWISE static inline
#endif

#endif
