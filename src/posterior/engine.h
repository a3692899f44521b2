/*
 * What computes with a posterior: one table of operations for each family of q, over a workspace that the engine owns.
 * A back end fills the same table; nothing above it looks into the workspace, and numbers come out when they are asked
 * for. One evaluation of a bound (math.md sections 1 and 2) is
 *   begin        takes q: factors what belongs to it
 *   marginals    (mu, v) of some rows, at most the capacity
 *   expect       E, g and h of those rows inside the engine, where it has the likelihood's formulas; else fit/pass.c
 *                asks the likelihood on the host
 *   residual     the part of v that no q changes, where the family has one, for bounds that know better than to
 *                average a likelihood over it; `relieve` takes its adjoint back
 *   pull         takes (g, h) of those rows back; then marginals of others
 *   end          KL(q || p), and the rest of the gradient
 * after which `step` moves natural parameters with what was pulled and `freeze` copies q into a predictor. What q, its
 * adjoints and the shape of a workspace look like is said in the header of each family, and known to its fits alone. An
 * operation that a family does not have is NULL. Results are the same bits on any number of threads.
 */
#ifndef THI_ENGINE_H
#define THI_ENGINE_H

#include "posterior/predictor.h"

/* The list of rows; a test has one more. */
#ifndef THI_ENGINES
#define THI_ENGINES "posterior/engines.def"
#endif

/* What `expect` is asked for the rows of the last marginals. */
typedef struct thi_engine_question {
    const struct thiele_likelihood *lik;
    const double *y;  /* P x n */
    uint64_t draws;   /* the number of the first row, for draws */
    double weight;    /* of these rows */
    double *expected; /* K: the sum of E of each component is added, weighted */
    double *phi_bar;  /* parameters of the likelihood: likewise; NULL: not wanted */
} thi_engine_question;

typedef struct thi_engine {
    const char *name, *words;
    /* Whether this machine has what it works on; NULL: every machine has. */
    bool (*ready)(thiele_context *ctx);
    /* Bytes of a workspace. */
    double (*bytes)(const void *shape, int threads);
    thiele_status (*open)(void **self, thiele_context *ctx, const void *shape);
    void (*close)(void *self); /* NULL does nothing */
    /* prior: one for each kernel; borrowed, as is q, until the next begin. NUMERIC where there is no such q. */
    thiele_status (*begin)(void *self, thiele_context *ctx, const thi_prior *prior, const void *q);
    /* mu, v: Q x n x K, component slowest; NULL: they stay inside. X (D x n) is borrowed until the pull. */
    thiele_status (*marginals)(void *self, thiele_context *ctx, int64_t n, const double *X, double *mu, double *v);
    /* Whether `expect` knows this likelihood and this way to its expectations. */
    bool (*expects)(const void *self, const struct thiele_likelihood *lik, const char *method);
    thiele_status (*expect)(void *self, thiele_context *ctx, const thi_engine_question *question);
    /* r = k(x, x) - k(x, Z) Kzz^-1 k(Z, x) of each latent at those rows, Q x n. */
    void (*residual)(const void *self, double *r);
    /* dF/dr beyond dF/dv of those rows, Q x n x K, weights folded in; for the next pull, borrowed until then. */
    void (*relieve)(void *self, const double *c);
    /*
     * dF/dmu and dF/dv of those rows, weights folded in, borrowed until the next marginals or begin; NULL: those of
     * `expect`. bar: adjoints, added to; or NULL.
     */
    thiele_status (*pull)(void *self, thiele_context *ctx, const double *g, const double *h, const void *bar);
    /*
     * What the pulls since begin have summed, as numbers that those of other rows can be added to: how many, how they
     * leave the workspace, which is then as if nothing had been pulled, and how sums come back. NULL: they stay.
     */
    int64_t (*sums)(const void *self);
    void (*take)(void *self, double *to);
    void (*put)(void *self, const double *from);
    /* expected: K, the sums of E without the weights of components. bar: as given to every pull of the evaluation. */
    thiele_status (*end)(void *self, thiele_context *ctx, const double *expected, double *kl, const void *bar);
    /* A natural step of size rho of what q refers to, with what was pulled since begin. Before the next begin.
     */
    void (*step)(void *self, double rho, const void *q);
    /* Each latent once, after begin or end. It may take along what the workspace holds: begin or close come next. */
    thiele_status (*freeze)(void *self, thiele_context *ctx, int latent, thi_predictor *out);
    /* After begin: predictions of y at each row from all others (P x n, noise included), and their variances. */
    thiele_status (*leave_out)(void *self, thiele_context *ctx, double *mean, double *variance);
    /* After begin: weights of the components, NULL for one; the largest jitter that a factor needed. */
    const double *(*weights)(const void *self);
    double (*jitter)(const void *self);
} thi_engine;

#define THI_ENGINE(name) extern const thi_engine thi_engine_##name;
#include THI_ENGINES
#undef THI_ENGINE

/* All of them, NULL last. */
extern const thi_engine *const thi_engines[];

#endif
