/* Opening and closing a variational fit, and the way from the optimiser's vector to kernels, likelihood and Z. */
#include "fit/variational_state.h"

#include <string.h>

int64_t thi_vfit_size(const thi_vfit *fit)
{
    return fit->vector.first[THI_PARTS];
}

/* Free hyperparameters before and from the likelihood's first on. */
static void count_free(const thi_hypers *hypers, int64_t *kernel, int64_t *phi)
{
    *kernel = *phi = 0;
    for (int i = 0; i < hypers->count; i++) {
        int64_t *count = i < hypers->first[hypers->groups] ? kernel : phi;
        *count += !hypers->hyper[i].fixed;
    }
}

static void lay_out(thi_vfit *fit, bool learn_prior)
{
    int64_t size[THI_PARTS] = {0};
    size[THI_PART_Q] = fit->natural ? 0 : thi_variational_size(&fit->shape);
    if (learn_prior) {
        count_free(fit->problem.hypers, &size[THI_PART_KERNEL], &size[THI_PART_PHI]);
        size[THI_PART_Z] =
            fit->settings->fixed_Z ? 0 : fit->shape.dims * fit->shape.inducing * fit->problem.spec->latents.groups;
    }
    fit->vector.first[0] = 0;
    for (int p = 0; p < THI_PARTS; p++) {
        fit->vector.first[p + 1] = fit->vector.first[p] + size[p];
    }
}

static thiele_status open_vectors(thi_vfit *fit)
{
    int64_t Z = fit->shape.dims * fit->shape.inducing * fit->problem.spec->latents.groups;
    const struct {
        double **vector;
        int64_t length;
    } vectors[] = {
        {&fit->vector.x, thi_vfit_size(fit)},
        {&fit->vector.bar, thi_vfit_size(fit)},
        {&fit->vector.base, fit->problem.hypers->count},
        {&fit->Z, Z},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors && status == THIELE_OK; i++) {
        status = thi_alloc(fit->problem.ctx, vectors[i].vector, (size_t)vectors[i].length, sizeof(double));
    }
    return status;
}

static thiele_status open_pointers(thi_vfit *fit)
{
    size_t groups = (size_t)fit->problem.spec->latents.groups;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->Z_of, groups, sizeof *fit->Z_of));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->bars.theta, groups, sizeof *fit->bars.theta));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->bars.mean, groups, sizeof *fit->bars.mean));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->bars.Z, groups, sizeof *fit->bars.Z));
    bool learned = fit->vector.first[THI_PART_Z] < fit->vector.first[THI_PARTS];
    for (size_t g = 0; g < groups; g++) {
        size_t at = g * (size_t)(fit->shape.dims * fit->shape.inducing);
        fit->Z_of[g] = fit->Z + at;
        fit->bars.theta[g] = fit->pass.hyper_bar + fit->problem.hypers->first[g];
        fit->bars.mean[g] = fit->bars.theta[g] + fit->problem.spec->latents.kernel[g]->parameters;
        fit->bars.Z[g] = learned ? fit->vector.bar + fit->vector.first[THI_PART_Z] + at : NULL;
    }
out:
    return status;
}

/* Values as they are now, into x and base. */
static void take_values(thi_vfit *fit, const double *Z)
{
    int64_t size = fit->shape.dims * fit->shape.inducing;
    for (int g = 0; g < fit->problem.spec->latents.groups; g++) {
        memcpy(fit->Z + g * size, Z + (fit->settings->all_Z ? g * size : 0), (size_t)size * sizeof *Z);
    }
    for (int i = 0; i < fit->problem.hypers->count; i++) {
        fit->vector.base[i] = fit->problem.hypers->hyper[i].value;
    }
    if (fit->vector.first[THI_PART_KERNEL] < fit->vector.first[THI_PART_Z]) {
        thi_hypers_pack(fit->problem.hypers, fit->vector.x + fit->vector.first[THI_PART_KERNEL]);
    }
    if (fit->vector.first[THI_PART_Z] < fit->vector.first[THI_PARTS]) {
        memcpy(fit->vector.x + fit->vector.first[THI_PART_Z], fit->Z,
               (size_t)(fit->vector.first[THI_PARTS] - fit->vector.first[THI_PART_Z]) * sizeof *Z);
    }
    fit->fresh = true;
    fit->applied = true;
}

static thiele_status open_sites(thi_vfit *fit)
{
    int64_t M = fit->shape.inducing;
    int latents = fit->problem.spec->latents.count,
        groups = fit->shape.whitened ? 0 : fit->problem.spec->latents.groups;
    thiele_status status;
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->sites, (size_t)latents, sizeof *fit->sites));
    for (int j = 0; j < latents; j++) {
        THI_TRY(thi_sites_alloc(&fit->sites[j], fit->problem.ctx, M));
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->whitened.q, (size_t)thi_variational_size(&fit->shape),
                      sizeof *fit->whitened.q));
    THI_TRY(thi_matrix_alloc(&fit->whitened.work, fit->problem.ctx, M, M));
    if (groups > 0) {
        THI_TRY(thi_alloc(fit->problem.ctx, &fit->whitened.L, (size_t)groups, sizeof *fit->whitened.L));
    }
    for (int g = 0; g < groups; g++) {
        THI_TRY(thi_matrix_alloc(&fit->whitened.L[g], fit->problem.ctx, M, M));
    }
out:
    return status;
}

/* Rows an inducing point from which products with Kzz^-1 are worth their M^3 flops. */
enum { QUICK_ROWS = 2 };
/* Of a block at least, if there are as many: passes over all rows gain by it where steps are of few. */
enum { LEAST_CAPACITY = 1024 };

thiele_status thi_vfit_open(thi_vfit *fit, int64_t M, const double *Z, int64_t batch, bool learn_prior)
{
    const thi_latents *latents = &fit->problem.spec->latents;
    int64_t least = fit->problem.source->n < LEAST_CAPACITY ? fit->problem.source->n : LEAST_CAPACITY;
    int64_t capacity = batch > least ? batch : least;
    fit->batch = batch;
    fit->shape = (thi_shape){.latents = latents->count,
                             .components = fit->settings->components,
                             .dims = fit->problem.source->dims,
                             .inducing = M,
                             .capacity = capacity,
                             .diagonal = fit->settings->diagonal && !fit->natural,
                             /* A full family is the same in both, and better searched in w. */
                             .whitened = !(fit->settings->plain && fit->settings->diagonal),
                             .jensen = fit->settings->jensen,
                             .fixed_Z = fit->settings->fixed_Z,
                             .steps = fit->natural,
                             .spares = thi_pass_is_tight(fit->problem.spec, &thi_engine_variational),
                             .quick = fit->quick && batch >= QUICK_ROWS * M,
                             .group = latents->group};
    lay_out(fit, learn_prior);
    thiele_status status;
    THI_TRY(open_vectors(fit));
    THI_TRY(thi_pass_open(&fit->pass, &fit->problem, &thi_engine_variational, &fit->shape,
                          &(thi_pass_shape){fit->shape.latents, fit->shape.components, capacity}));
    THI_TRY(open_pointers(fit));
    if (fit->natural) {
        THI_TRY(open_sites(fit));
    }
    take_values(fit, Z);
out:
    return status;
}

void thi_vfit_close(thi_vfit *fit)
{
    void *const blocks[] = {fit->vector.x, fit->vector.bar, fit->vector.base, fit->Z,
                            fit->Z_of,     fit->bars.theta, fit->bars.mean,   fit->bars.Z};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        thi_free(blocks[i]);
    }
    for (int j = 0; fit->sites != NULL && j < fit->shape.latents; j++) {
        thi_sites_free(&fit->sites[j]);
    }
    thi_free(fit->sites);
    thi_free(fit->whitened.q);
    thi_free(fit->whitened.work.data);
    for (int g = 0; fit->whitened.L != NULL && g < fit->problem.spec->latents.groups; g++) {
        thi_free(fit->whitened.L[g].data);
    }
    thi_free(fit->whitened.L);
    thi_pass_close(&fit->pass);
}

/* Hypers and Z of fit->vector.x to the model. */
static thiele_status apply(thi_vfit *fit)
{
    int64_t kernel = fit->vector.first[THI_PART_KERNEL], Z = fit->vector.first[THI_PART_Z];
    fit->applied = false;
    if (kernel < Z) {
        thi_hypers_unpack(fit->problem.hypers, fit->vector.x + kernel);
        if (!thi_hypers_in_bounds(fit->problem.hypers, fit->vector.base)) {
            return thi_fail(fit->problem.ctx, THIELE_ERROR_NUMERIC, "the search diverged from its first guesses");
        }
        thiele_status status = thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec);
        if (status != THIELE_OK) {
            return status;
        }
    }
    if (Z < fit->vector.first[THI_PARTS]) {
        memcpy(fit->Z, fit->vector.x + Z, (size_t)(fit->vector.first[THI_PARTS] - Z) * sizeof *fit->Z);
    }
    fit->applied = true;
    return THIELE_OK;
}

/* Whether a part of x is as it was when it was last applied. */
static bool is_same(const thi_vfit *fit, const double *x, int part)
{
    int64_t from = fit->vector.first[part], to = fit->vector.first[part + 1];
    return x != fit->vector.x && fit->applied &&
           memcmp(x + from, fit->vector.x + from, (size_t)(to - from) * sizeof *x) == 0;
}

thiele_status thi_vfit_take(thi_vfit *fit, const double *x)
{
    bool prior = is_same(fit, x, THI_PART_KERNEL) && is_same(fit, x, THI_PART_Z);
    bool same = prior && is_same(fit, x, THI_PART_PHI);
    if (x != fit->vector.x) {
        memcpy(fit->vector.x, x, (size_t)thi_vfit_size(fit) * sizeof *x);
    }
    if (same || fit->vector.first[THI_PART_KERNEL] == fit->vector.first[THI_PARTS]) {
        return THIELE_OK;
    }
    fit->fresh = fit->fresh || !prior;
    return apply(fit);
}

void thi_vfit_confine(const thi_vfit *fit, double *x)
{
    if (fit->vector.first[THI_PART_KERNEL] < fit->vector.first[THI_PART_Z]) {
        thi_hypers_confine(fit->problem.hypers, fit->vector.base, x + fit->vector.first[THI_PART_KERNEL]);
    }
}
