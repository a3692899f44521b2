/* Room for a decoupled fit, growing bases, and the way between the optimiser's vector and the model. */
#include "fit/decoupled_state.h"

#include <math.h>
#include <string.h>

static int64_t lengths(const thi_dfit *fit, int64_t length[THI_DPARTS])
{
    int64_t Q = fit->latents->count, each = (int64_t)fit->problem.source->dims * fit->latents->groups;
    bool general = fit->settings->generalised;
    length[THI_DPART_A] = fit->most_alpha * Q;
    length[THI_DPART_L] = fit->orthogonal ? 0 : fit->most_beta * fit->most_beta * Q;
    length[THI_DPART_HYPER] = fit->learn ? thi_hypers_free(fit->problem.hypers) : 0;
    length[THI_DPART_ALPHA] = each * fit->most_alpha;
    length[THI_DPART_C_ALPHA] = general ? each * fit->most_alpha : 0;
    length[THI_DPART_BETA] = each * fit->most_beta;
    length[THI_DPART_C_BETA] = general ? each * fit->most_beta : 0;
    int64_t total = 0;
    for (int p = 0; p < THI_DPARTS; p++) {
        total += length[p];
    }
    return total;
}

static thiele_status open_vectors(thi_dfit *fit)
{
    thi_dfit_vector *v = &fit->vector;
    size_t Q = (size_t)fit->latents->count, G = (size_t)fit->latents->groups;
    const struct {
        double **vector;
        int64_t length;
    } vectors[] = {
        {&v->x, v->whole},
        {&v->before, v->whole},
        {&v->bar, v->size},
        {&v->scale_a, fit->most_alpha * (int64_t)G},
        {&v->scale_L, fit->most_beta * (int64_t)G},
        {&v->base, fit->problem.hypers->count},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        THI_TRY(thi_alloc(fit->problem.ctx, vectors[i].vector, (size_t)vectors[i].length, sizeof(double)));
    }
    THI_TRY(thi_alloc(fit->problem.ctx, &v->sites, Q, sizeof *v->sites));
    THI_TRY(thi_alloc(fit->problem.ctx, &v->L_bar, Q, sizeof *v->L_bar));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->q, G, sizeof *fit->q));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->bar, G, sizeof *fit->bar));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->left_out, Q, sizeof *fit->left_out));
    THI_TRY(thi_alloc(fit->problem.ctx, &fit->column, (size_t)fit->columns, sizeof *fit->column));
out:
    return status;
}

thiele_status thi_dfit_open(thi_dfit *fit)
{
    int64_t length[THI_DPARTS], Q = fit->latents->count;
    thi_decoupled_family family = {.shape = {.D = fit->problem.source->dims,
                                             .latents = fit->latents->count,
                                             .orthogonal = fit->orthogonal,
                                             .beta = fit->most_beta,
                                             .rows = fit->batches.largest,
                                             .columns = fit->columns},
                                   .groups = fit->latents->groups,
                                   .group = fit->latents->group};
    thiele_status status;
    fit->vector.size = lengths(fit, length);
    for (int p = 0; p < THI_DPARTS; p++) {
        fit->vector.first[p + 1] = fit->vector.first[p] + length[p];
    }
    fit->vector.whole = fit->vector.size + (fit->orthogonal ? fit->most_beta * (fit->most_beta + 1) * Q : 0);
    THI_TRY(open_vectors(fit));
    for (int q = 0; q < Q && fit->orthogonal; q++) {
        fit->vector.sites[q] = thi_dfit_sites(fit, fit->vector.x, q);
    }
    for (int i = 0; i < fit->problem.hypers->count; i++) {
        fit->vector.base[i] = fit->problem.hypers->hyper[i].value;
    }
    if (fit->learn) {
        thi_hypers_pack(fit->problem.hypers, thi_dfit_part(fit, THI_DPART_HYPER));
    }
    THI_TRY(thi_pass_open(&fit->pass, &fit->problem, &thi_engine_decoupled, &family,
                          &(thi_pass_shape){Q, 1, fit->batches.largest}));
out:
    return status;
}

void thi_dfit_close(thi_dfit *fit)
{
    thi_dfit_vector *v = &fit->vector;
    double *numbers[] = {v->x, v->before, v->bar, v->scale_a, v->scale_L, v->base, fit->explored.value};
    thi_pass_close(&fit->pass);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        thi_free(numbers[i]);
    }
    for (int q = 0; q < fit->latents->count; q++) {
        if (fit->found != NULL) {
            thi_predictor_clear(&fit->found[q]);
        }
        if (fit->left_out != NULL) {
            thi_free(fit->left_out[q].error2);
            thi_free(fit->left_out[q].v);
        }
    }
    thi_free(v->sites);
    thi_free(v->L_bar);
    thi_free(fit->q);
    thi_free(fit->bar);
    thi_free(fit->column);
    thi_free(fit->found);
    thi_free(fit->left_out);
}

thi_natural thi_dfit_sites(const thi_dfit *fit, double *whole, int latent)
{
    int64_t M = fit->most_beta;
    double *T = whole + fit->vector.size + latent * M * (M + 1);
    return (thi_natural){.T = thi_matrix_view(T, M, M, M), .t = T + M * M};
}

double *thi_dfit_part(thi_dfit *fit, int part)
{
    return fit->vector.x + fit->vector.first[part];
}

double *thi_dfit_of(const thi_dfit *fit, int part, int which)
{
    const int64_t *first = fit->vector.first;
    int parts = part <= THI_DPART_L ? fit->latents->count : fit->latents->groups;
    return fit->vector.x + first[part] + which * ((first[part + 1] - first[part]) / parts);
}

int thi_dfit_first(const thi_dfit *fit, int group)
{
    int q = 0;
    while (q < fit->latents->count && fit->latents->group[q] < group) {
        q++;
    }
    return q;
}

const thi_decoupled_q *thi_dfit_q(thi_dfit *fit)
{
    bool general = fit->settings->generalised;
    int64_t M = fit->n_beta;
    for (int q = 0; q < fit->latents->count && !fit->orthogonal; q++) {
        fit->vector.sites[q].T = thi_matrix_view(thi_dfit_of(fit, THI_DPART_L, q), M, M, fit->most_beta);
    }
    for (int q = 0; q < fit->latents->count && fit->orthogonal; q++) {
        fit->vector.sites[q].T.rows = fit->vector.sites[q].T.cols = M;
    }
    for (int g = 0; g < fit->latents->groups; g++) {
        int first = thi_dfit_first(fit, g);
        fit->q[g] = (thi_decoupled_q){
            .alpha = {fit->n_alpha, thi_dfit_of(fit, THI_DPART_ALPHA, g),
                      general ? thi_dfit_of(fit, THI_DPART_C_ALPHA, g) : NULL},
            .beta = {M, thi_dfit_of(fit, THI_DPART_BETA, g), general ? thi_dfit_of(fit, THI_DPART_C_BETA, g) : NULL},
            .a = thi_matrix_view(thi_dfit_of(fit, THI_DPART_A, first), fit->n_alpha, thi_dfit_first(fit, g + 1) - first,
                                 fit->most_alpha > 0 ? fit->most_alpha : 1),
            .sites = fit->vector.sites + first};
    }
    return fit->q;
}

/* A new function of the mean has the weight 0; one of the covariance leaves the prior (T = 0), or half of it (plain: at
 * L = 0 there is no slope). */
static thiele_status add_to_group(thi_dfit *fit, int group, bool alpha, int64_t count, const double *X)
{
    int64_t D = fit->problem.source->dims, n = alpha ? fit->n_alpha : fit->n_beta;
    double *points = thi_dfit_of(fit, alpha ? THI_DPART_ALPHA : THI_DPART_BETA, group) + n * D;
    double *scale =
        alpha ? fit->vector.scale_a + group * fit->most_alpha : fit->vector.scale_L + group * fit->most_beta;
    thi_functions f = {0};
    thiele_status status;
    scale += n;
    memcpy(points, X, (size_t)(count * D) * sizeof *points);
    THI_TRY(thi_functions_make(&f, fit->problem.ctx, fit->latents->kernel[group], count, points, NULL));
    THI_TRY(thi_functions_diagonal(&f, fit->problem.ctx, scale));
    for (int64_t i = 0; i < count; i++) {
        scale[i] = scale[i] > 0.0 ? scale[i] : 1.0;
    }
    for (int q = thi_dfit_first(fit, group); q < thi_dfit_first(fit, group + 1) && !alpha && !fit->orthogonal; q++) {
        double *L = thi_dfit_of(fit, THI_DPART_L, q);
        for (int64_t i = 0; i < count; i++) {
            L[(n + i) * (fit->most_beta + 1)] = 1.0 / sqrt(scale[i]);
        }
    }
out:
    thi_functions_clear(&f);
    return status;
}

thiele_status thi_dfit_add(thi_dfit *fit, bool alpha, int64_t count, const double *X, int64_t stride)
{
    thiele_status status = THIELE_OK;
    for (int g = 0; g < fit->latents->groups && status == THIELE_OK; g++) {
        status = add_to_group(fit, g, alpha, count, X + g * stride);
    }
    fit->n_alpha += alpha ? count : 0;
    fit->n_beta += alpha ? 0 : count;
    return status;
}

thiele_status thi_dfit_apply(thi_dfit *fit)
{
    static const int stretches[] = {THI_DPART_C_ALPHA, THI_DPART_C_BETA};
    for (int k = 0; k < 2; k++) {
        for (int64_t i = fit->vector.first[stretches[k]]; i < fit->vector.first[stretches[k] + 1]; i++) {
            fit->vector.x[i] = fmin(fmax(fit->vector.x[i], -THI_STRETCH_MAX), THI_STRETCH_MAX);
        }
    }
    if (!fit->learn) {
        return THIELE_OK;
    }
    double *x = thi_dfit_part(fit, THI_DPART_HYPER);
    thi_hypers_confine(fit->problem.hypers, fit->vector.base, x);
    thi_hypers_unpack(fit->problem.hypers, x);
    return thi_hypers_apply(fit->problem.hypers, fit->problem.ctx, fit->problem.spec);
}
