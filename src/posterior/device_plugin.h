/*
 * What a library for another device offers: one function by a fixed name returns this table. C that is C++ too, and
 * nothing of the main library but formulas: the two are built apart and meet when the library is loaded (device.h).
 * Nothing here calls back.
 */
#ifndef THI_DEVICE_PLUGIN_H
#define THI_DEVICE_PLUGIN_H

#include <stddef.h>
#include <thiele/status.h>

#include "posterior/device_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever this file or device_entry.h changes. */
enum { THI_DEVICE_INTERFACE = 1 };
#define THI_DEVICE_SYMBOL "thiele_device_plugin"

enum { THI_DEVICE_SAID_MAX = 400 };

/* A failure, as a sentence without a period. */
typedef struct thi_device_said {
    char text[THI_DEVICE_SAID_MAX];
} thi_device_said;

typedef struct thi_device_card {
    char model[128];
    uint64_t memory, available; /* bytes */
    int major, minor;           /* of what it can do */
    int driver, runtime;        /* versions: 13000 is 13.0 */
    int double_slowdown;        /* single precision is so many times as fast; 0: not known */
} thi_device_card;

/* Every function that can fail returns OK, or UNSUPPORTED and says why. Matrices are column-major. */
typedef struct thi_device_ops {
    int interface_version;
    const char *version; /* of the release that it belongs to */
    /* How many cards there are: 0 with a reason. */
    int (*count)(thi_device_said *said);
    thiele_status (*describe)(int card, thi_device_card *out, thi_device_said *said);
    /* Work on one card by one thread at a time: what all workspaces share. */
    thiele_status (*begin)(void **session, int card, thi_device_said *said);
    void (*end)(void *session);

    /* Exact regression (exact.h): an n x n matrix on the card that holds K, then L for as long as it is not refilled.
     */
    thiele_status (*exact_open)(void **self, void *session, int64_t n, int targets, thi_device_said *said);
    void (*exact_close)(void *self); /* NULL does nothing */
    /*
     * L of k(X, X) + add I. u: the features of all leaves, n x their number. *bad: 0, or 1 + the pivot that is not
     * positive; *log_det: of K. n^3/3 flops.
     */
    thiele_status (*exact_factor)(void *self, const thi_entry_kernel *kernel, const double *u, double add, int64_t *bad,
                                  double *log_det, thi_device_said *said);
    /* alpha (n x targets): y - m becomes K^-1 (y - m); *fit: the sum of |L^-1 (y - m)|^2. */
    thiele_status (*exact_solve)(void *self, double *alpha, double *fit, thi_device_said *said);
    /*
     * Adjoints of log p(y), with the alpha of the solve: of the features (as u), of each leaf's log variance and log
     * shape (2 x leaves), of what was added to the diagonal. L stays. 2 n^3/3 flops.
     */
    thiele_status (*exact_pull)(void *self, const thi_entry_kernel *kernel, double *u_bar, double *leaf_bar,
                                double *add_bar, thi_device_said *said);
    /* The diagonal of K^-1. n^3/3 flops. */
    thiele_status (*exact_diagonal)(void *self, double *diagonal, thi_device_said *said);
    /* The lower triangle of L (n x n), zeros above it. */
    thiele_status (*exact_factor_out)(void *self, double *L, thi_device_said *said);
} thi_device_ops;

typedef const thi_device_ops *(*thi_device_plugin_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
