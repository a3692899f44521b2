/* A mixture that learns from rows once: its components by themselves, then their weights. See online_mixture.h. */
#include "fit/online_mixture.h"

#include <math.h>

/* Component k of a predictor. */
static thi_predictor view_of(const thi_predictor *p, int k)
{
    thi_predictor view = *p;
    view.components = 1;
    view.a = p->a + k * (p->mean_basis != NULL ? p->mean_n : p->n);
    view.R = p->R + k;
    return view;
}

thiele_status thi_online_mixture_open(thi_online_mixture *m, thiele_context *ctx, int latents, thi_predictor *latent,
                                      double *weight, const thiele_likelihood *lik, const thi_online_settings *settings)
{
    int K = latent->components;
    thi_online_settings own = *settings;
    thiele_status status;
    own.weighs = K > 1;
    *m = (thi_online_mixture){.latents = latents, .weight = weight};
    THI_TRY(thi_alloc(ctx, &m->view, (size_t)(K * latents), sizeof *m->view));
    THI_TRY(thi_alloc(ctx, &m->of, (size_t)K, sizeof *m->of));
    for (int k = 0; k < K; k++) {
        for (int j = 0; j < latents; j++) {
            m->view[k * latents + j] = view_of(&latent[j], k);
        }
        THI_TRY(thi_online_open(&m->of[k], ctx, latents, m->view + k * latents, lik, &own));
        m->components = k + 1;
    }
out:
    if (status != THIELE_OK) {
        thi_online_mixture_close(m);
    }
    return status;
}

void thi_online_mixture_close(thi_online_mixture *m)
{
    for (int k = 0; k < m->components; k++) {
        thi_online_close(&m->of[k]);
    }
    thi_free(m->of);
    thi_free(m->view);
    *m = (thi_online_mixture){0};
}

thiele_status thi_online_mixture_predict(thi_online_mixture *m, thiele_context *ctx, int64_t n, const double *X,
                                         const double *offset, double *mu, double *v)
{
    thiele_status status = THIELE_OK;
    for (int k = 0; k < m->components && status == THIELE_OK; k++) {
        int64_t at = k * n * m->latents;
        status = thi_online_predict(&m->of[k], ctx, n, X, offset, mu + at, v + at);
    }
    return status;
}

/* By what each component made of the batch. */
static void weigh(thi_online_mixture *m, double keep)
{
    double largest = -INFINITY, sum = 0.0;
    for (int k = 0; k < m->components; k++) {
        m->weight[k] = keep * log(m->weight[k]) + m->of[k].bound;
        largest = fmax(largest, m->weight[k]);
    }
    for (int k = 0; k < m->components; k++) {
        m->weight[k] = exp(m->weight[k] - largest);
        sum += m->weight[k];
    }
    for (int k = 0; k < m->components; k++) {
        m->weight[k] /= sum;
    }
}

thiele_status thi_online_mixture_learn(thi_online_mixture *m, thiele_context *ctx, double lasting, const double *y,
                                       int64_t row)
{
    int done = 0;
    double keep;
    thiele_status status = THIELE_OK;
    if (m->of[0].n == 0) {
        return THIELE_OK;
    }
    for (int k = 0; k < m->components; k++) {
        m->of[k].lasting = lasting;
    }
    keep = thi_online_share(&m->of[0]);
    while (done < m->components && status == THIELE_OK) {
        status = thi_online_weigh(&m->of[done++], ctx, y, row);
    }
    for (int k = 0; k < done; k++) {
        thi_online_settle(&m->of[k], ctx, status == THIELE_OK);
    }
    if (status == THIELE_OK && m->components > 1) {
        weigh(m, keep);
    }
    return status;
}

void thi_online_mixture_freeze(thi_online_mixture *m)
{
    for (int i = 0; i < m->components * m->latents; i++) {
        thi_online_freeze(&m->of[i / m->latents], i % m->latents, &m->view[i]);
    }
}
