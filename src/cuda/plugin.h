/* The functions of the table, by the file that has them. */
#ifndef THI_CUDA_PLUGIN_H
#define THI_CUDA_PLUGIN_H

#include "posterior/device_plugin.h"

/* --- card.cu --- */
int thi_cuda_count(thi_device_said *said);
thiele_status thi_cuda_describe(int card, thi_device_card *out, thi_device_said *said);
thiele_status thi_cuda_begin(void **session, int card, thi_device_said *said);
void thi_cuda_end(void *session);

/* --- exact.cu --- */
thiele_status thi_cuda_exact_open(void **self, void *session, int64_t n, int targets, thi_device_said *said);
void thi_cuda_exact_close(void *self);
thiele_status thi_cuda_exact_factor(void *self, const thi_entry_kernel *kernel, const double *u, double add,
                                    int64_t *bad, double *log_det, thi_device_said *said);
thiele_status thi_cuda_exact_solve(void *self, double *alpha, double *fit, thi_device_said *said);
thiele_status thi_cuda_exact_factor_out(void *self, double *L, thi_device_said *said);

/* --- exact_pull.cu --- */
thiele_status thi_cuda_exact_pull(void *self, const thi_entry_kernel *kernel, double *u_bar, double *leaf_bar,
                                  double *add_bar, thi_device_said *said);
thiele_status thi_cuda_exact_diagonal(void *self, double *diagonal, thi_device_said *said);

#endif
