/*
 * The work space of integrals: buffers for one call's points and one block's rows, allocated once, and the rules of the
 * ladder, made when a row first asks for them.
 */
#include <math.h>
#include <string.h>

#include "expect/integrate.h"
#include "expect/predictive_distribution.h"

static thiele_status open_copy(thi_space *space, thiele_context *ctx)
{
    const thiele_likelihood *lik = space->lik;
    space->copy = *lik;
    space->copy.phi = NULL;
    space->copy.value = NULL;
    thiele_status status = thi_alloc(ctx, &space->copy.phi, (size_t)lik->parameters, sizeof *lik->phi);
    if (status == THIELE_OK) {
        status = thi_alloc(ctx, &space->copy.value, (size_t)lik->parameters, sizeof *lik->value);
    }
    return status;
}

static thiele_status open_buffers(thi_space *s, thiele_context *ctx)
{
    const struct {
        double **buffer;
        int64_t count;
    } rows[] = {
        {&s->y, s->points * s->P},
        {&s->f, s->points * s->Q},
        {&s->value, s->points * s->values},
        {&s->z, s->points * s->Q},
        {&s->w, s->points},
        {&s->scratch, s->points},
        {&s->sd, THI_EXPECT_BLOCK * s->Q},
        {&s->centre, THI_EXPECT_BLOCK * s->values},
        {&s->result, THI_EXPECT_BLOCK * s->results},
        {&s->before, THI_EXPECT_BLOCK * s->results},
        {&s->now, THI_EXPECT_BLOCK * s->results},
        {&s->label, THI_EXPECT_BLOCK * s->P},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == THIELE_OK; i++) {
        status = thi_alloc(ctx, rows[i].buffer, (size_t)rows[i].count, sizeof(double));
    }
    int **const lists[] = {&s->row, &s->pending, &s->group, &s->level};
    for (size_t i = 0; i < sizeof lists / sizeof *lists && status == THIELE_OK; i++) {
        status = thi_alloc(ctx, lists[i], THI_EXPECT_BLOCK, sizeof(int));
    }
    return status;
}

thiele_status thi_space_open(thi_space **out, thiele_context *ctx, const thiele_likelihood *lik)
{
    thi_space *space = NULL;
    thiele_status status = thi_alloc(ctx, &space, 1, sizeof *space);
    *out = space;
    if (status != THIELE_OK) {
        return status;
    }
    int64_t P = lik->outputs, Q = lik->latents, classes = thi_most(lik->classes, 2),
            extra = thi_most(lik->parameters, classes);
    space->lik = lik;
    space->floor = -INFINITY;
    space->points = thi_likelihood_is_batched(lik) ? THI_POINTS_OF_OWN : THI_POINTS;
    space->P = lik->outputs;
    space->Q = lik->latents;
    space->values = thi_most(thi_most(1 + 2 * Q, 2 * P), extra);
    space->results = thi_most(thi_most(1 + THI_CONTROL_SUMS * Q, 3 * P), extra);
    status = open_copy(space, ctx);
    return status == THIELE_OK ? open_buffers(space, ctx) : status;
}

void thi_space_close(thi_space *s)
{
    if (s == NULL) {
        return;
    }
    void *const blocks[] = {s->y,        s->f,          s->value,  s->z,        s->w,      s->scratch,
                            s->sd,       s->centre,     s->result, s->before,   s->now,    s->label,
                            s->row,      s->pending,    s->group,  s->level,    s->stack,  s->border,
                            s->copy.phi, s->copy.value, s->mixed,  s->gathered, s->coupled};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        thi_free(blocks[i]);
    }
    for (int level = 0; level < THI_LEVELS; level++) {
        thi_rule_clear(&s->ladder[level]);
    }
    thi_law_destroy(s->law);
    thi_rule_clear(&s->fixed);
    for (int i = 0; i < THI_DESIGNS; i++) {
        thi_design_clear(&s->designs[i]);
        thi_design_clear(&s->brief[i]);
    }
    thi_rule_clear(&s->sobol);
    thi_rule_clear(&s->few);
    thi_rule_clear(&s->many);
    thi_free(s);
}

int64_t thi_space_rows(thi_space *space, int64_t n, const double *y)
{
    int64_t live = 0;
    for (int64_t i = 0; i < n; i++) {
        bool seen = y == NULL;
        for (int p = 0; p < space->P && !seen; p++) {
            seen = !isnan(y[i * space->P + p]);
        }
        if (seen) {
            space->row[live++] = (int)i;
        }
    }
    return live;
}

thiele_status thi_space_spread(thi_space *space, thiele_context *ctx, int64_t n, const double *mu, const double *v)
{
    for (int64_t i = 0; i < n * space->Q; i++) {
        if (!isfinite(mu[i]) || !(v[i] >= 0.0) || isinf(v[i])) {
            return thi_fail(ctx, THIELE_ERROR_NUMERIC, "a marginal with mean %g and variance %g is not a Gaussian",
                            mu[i], v[i]);
        }
        space->sd[i] = sqrt(v[i]);
    }
    return THIELE_OK;
}

/* Rows with one value each go together. */
void thi_space_centre(thi_space *space, const thi_integrand *in, const thi_block_rows *rows, double *centre)
{
    int64_t P = space->P, Q = space->Q, count = in->values, together = count == 1 ? rows->count : 1;
    for (int64_t first = 0; first < rows->count; first += together) {
        const int *row = rows->row + first;
        for (int64_t r = 0; r < together; r++) {
            memcpy(space->f + r * Q, rows->mu + row[r] * Q, (size_t)Q * sizeof *space->f);
            if (rows->y != NULL) {
                memcpy(space->y + r * P, rows->y + row[r] * P, (size_t)P * sizeof *space->y);
            }
        }
        in->evaluate(in, together, rows->y != NULL ? space->y : NULL, space->f, space->value);
        for (int64_t r = 0; r < together; r++) {
            memcpy(centre + row[r] * count, space->value + r * count, (size_t)count * sizeof *centre);
        }
    }
}
