/* Fits with decoupled bases: their settings from the options, and what is said of them. */
#include <string.h>

#include "model/specify.h"

thiele_status thi_specify_decoupled(thi_fitting *f)
{
    static const char *const forms[] = {"auto", "plain", "orthogonal"};
    const thiele_fit_options *o = f->options;
    const char *text = o->decoupled != NULL ? o->decoupled : "auto";
    int form = 0;
    while (form < 3 && strcmp(text, forms[form]) != 0) {
        form++;
    }
    if (form == 3) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "'%s' is no form of decoupled bases: plain or orthogonal", text);
    }
    if (o->mean_inducing < 0 || o->growth < 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "numbers of basis functions must not be negative");
    }
    f->decoupled_settings = (thi_decoupled_settings){.alpha = o->mean_inducing,
                                                     .beta = o->inducing,
                                                     .batch = o->batch,
                                                     .added = o->growth,
                                                     .form = (thi_decoupled_form)form,
                                                     .generalised = o->own_scales != 0,
                                                     .learn_basis = o->own_scales != 0,
                                                     .sweeps = form == THI_DECOUPLED_PLAIN || o->own_scales ? -1 : 0,
                                                     .rate = o->rate};
    return THIELE_OK;
}

thiele_status thi_run_decoupled(thi_fitting *f, const thi_source *source, bool learn, thi_fitted *fitted)
{
    thi_variational_settings sparse = f->settings;
    thi_decoupled_result outcome;
    sparse.condition = !learn;
    thiele_status status = thi_fit_decoupled(f->ctx, &f->driver, &f->spec, source, &f->hypers, &sparse,
                                             &f->decoupled_settings, &outcome, fitted);
    if (status == THIELE_OK && (learn || f->driver.stopped)) {
        f->result = outcome.fit;
        f->outcome = (thi_variational_result){.fit = outcome.fit,
                                              .batch = outcome.batch,
                                              .optimizer = outcome.orthogonal ? "natural" : "adam",
                                              .epochs = (double)outcome.fit.iterations * (double)outcome.batch /
                                                        (double)source->n};
    }
    return status;
}
