/*
 * Formulas of one row or one entry have one text, in headers that C, C++ and CUDA compile: no compound literals, no
 * designated initialisers, nothing global. THI_POINTWISE declares such a function; THI_POINTWISE_CALL one that the host
 * calls, because its text amid another's was measured to be slower.
 */
#ifndef THI_POINTWISE_H
#define THI_POINTWISE_H

#ifdef __CUDACC__
#define THI_POINTWISE      static __host__ __device__ inline
#define THI_POINTWISE_CALL THI_POINTWISE
#else
#define THI_POINTWISE      static inline
#define THI_POINTWISE_CALL static __attribute__((noinline, unused))
#endif

#endif
