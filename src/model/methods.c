/* Which method is used: the one that was asked for, or what suits the table and the likelihood; and its settings. */
#include <math.h>
#include <string.h>

#include "fit/dense.h"
#include "model/specify.h"

/* Rows that methods are chosen for by themselves: up to there a fit takes a few minutes at most on two cores. */
enum { EXACT_AUTO_MAX = 4000, COLLAPSED_AUTO_MAX = 20000, DENSE_AUTO_MAX = 1500 };

static double exact_bytes(int64_t n, int latents)
{
    (void)latents;
    return thi_exact_bytes(n);
}

/* What may be asked for, in the order in which it is chosen where nothing is. */
static const struct {
    const char *name;
    const thi_method *method; /* NULL: sparse */
    bool gaussian;            /* plain Gaussian noise and one target only */
    int64_t most;             /* rows that it is chosen for by itself */
    const char *why;
    double (*bytes)(int64_t n, int latents);
} methods[] = {
    {"exact", &thi_method_exact, true, EXACT_AUTO_MAX, "the table is small and the noise Gaussian", exact_bytes},
    {"collapsed", NULL, true, COLLAPSED_AUTO_MAX, "the table is of medium size and the noise Gaussian", NULL},
    {"dense", &thi_method_dense, false, DENSE_AUTO_MAX, "the table is small and the noise not Gaussian",
     thi_dense_fit_bytes},
    {"variational", NULL, false, INT64_MAX, "the table is large", NULL},
};
enum { METHODS = sizeof methods / sizeof *methods };

/* Options that only sparse methods understand. */
static bool asks_for_sparse(const thiele_fit_options *o)
{
    return o->posterior != NULL || o->inducing > 0 || o->basis != NULL || o->optimizer != NULL || o->batch > 0 ||
           o->epochs > 0 || o->plain || o->fixed_basis;
}

static int find_method(const thi_fitting *f, const char *name, int64_t n)
{
    bool gaussian = thi_is_gaussian(f->spec.lik);
    bool any = strcmp(name, "auto") == 0;
    for (int i = 0; i < METHODS; i++) {
        bool suits = (gaussian || !methods[i].gaussian) && n <= methods[i].most &&
                     (methods[i].method == NULL || !asks_for_sparse(f->options)) &&
                     (i + 1 == METHODS || methods[i].gaussian == gaussian) &&
                     (strcmp(methods[i].name, "collapsed") != 0 || f->options->posterior == NULL);
        if (any ? suits : strcmp(name, methods[i].name) == 0) {
            return i;
        }
    }
    return -1;
}

static thiele_status check_method(const thi_fitting *f, int chosen, int64_t n)
{
    thiele_context *ctx = f->ctx;
    const char *name = methods[chosen].name;
    if (methods[chosen].gaussian && !thi_is_gaussian(f->spec.lik)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "method '%s' is for Gaussian noise; likelihood '%s' needs another",
                        name, thiele_likelihood_name(f->spec.lik));
    }
    if (methods[chosen].method != NULL && asks_for_sparse(f->options)) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' has no inducing inputs, posterior family, batches or choice of optimizer: those "
                        "are for the methods collapsed and variational",
                        name);
    }
    if (f->options->expectation != NULL && methods[chosen].gaussian) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' computes no expectations: --expectation is for the methods dense and variational",
                        name);
    }
    double bytes = methods[chosen].bytes != NULL ? methods[chosen].bytes(n, f->spec.lik->latents) : 0.0;
    if (bytes > (double)(thi_memory_limit(ctx) - thi_memory_held(ctx))) {
        return thi_fail(
            ctx, THIELE_ERROR_LIMIT,
            "%lld rows are too many for method %s: it would take %.3g GB of memory and %.2g floating point "
            "operations for each of about 50 evaluations; use --method variational, or a sample of the rows",
            (long long)n, name, bytes * 1e-9, pow((double)n, 3.0));
    }
    return THIELE_OK;
}

/* "mixture-full:3" */
static thiele_status read_posterior(thi_fitting *f)
{
    static const struct {
        const char *name;
        bool diagonal, mixture;
    } families[] = {
        {"full", false, false}, {"diag", true, false}, {"mixture", true, true}, {"mixture-full", false, true}};
    enum { COMPONENTS_MAX = 100 };
    const char *text = f->options->posterior != NULL ? f->options->posterior : "full";
    size_t length = strcspn(text, ":");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strlen(families[i].name) != length || strncmp(text, families[i].name, length) != 0) {
            continue;
        }
        double count = 1.0;
        const char *number = text + length + (text[length] == ':');
        bool given = text[length] == ':';
        if (given != families[i].mixture ||
            (given && (!thi_parse_number(number, strlen(number), &count) || !(count >= 1 && count <= COMPONENTS_MAX) ||
                       count != floor(count)))) {
            break;
        }
        f->settings.components = (int)count;
        f->settings.diagonal = families[i].diagonal;
        f->settings.plain = f->options->plain != 0;
        return THIELE_OK;
    }
    return thi_fail(
        f->ctx, THIELE_ERROR_ARGUMENT,
        "'%s' is no posterior: there are full, diag, mixture:K (of diagonal Gaussians) and mixture-full:K, K "
        "from 1 to %d",
        text, COMPONENTS_MAX);
}

static thiele_status check_settings(const thi_fitting *f)
{
    const thiele_fit_options *o = f->options;
    if (o->inducing < 0 || o->batch < 0 || o->epochs < 0 || !(o->rate >= 0.0) || !(o->tolerance >= 0.0)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "inducing inputs, batch, epochs, rate and tolerance must not be negative");
    }
    return THIELE_OK;
}

thiele_status thi_specify_method(thi_fitting *f, const thiele_table *table)
{
    const char *name = f->options->method != NULL ? f->options->method : "auto";
    const thiele_fit_options *o = f->options;
    int chosen = find_method(f, name, table->rows);
    thiele_status status;
    if (chosen < 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "no method '%s' in this version: it has auto, exact, dense, collapsed and variational", name);
    }
    THI_TRY(check_settings(f));
    THI_TRY(check_method(f, chosen, table->rows));
    f->method = methods[chosen].method;
    f->settings = (thi_variational_settings){.inducing = o->inducing,
                                             .fixed_Z = o->fixed_basis != 0,
                                             .optimizer = o->optimizer,
                                             .collapsed = strcmp(methods[chosen].name, "collapsed") == 0,
                                             .batch = o->batch,
                                             .rate = o->rate,
                                             .epochs = o->epochs,
                                             .iterations = o->iterations,
                                             .tolerance = o->tolerance,
                                             .restarts = o->restarts};
    THI_TRY(read_posterior(f));
    THI_TRY(thi_strdup(f->ctx, &f->model->method, methods[chosen].name));
    bool asked = strcmp(name, "auto") != 0;
    bool implied = asks_for_sparse(o);
    const char *why = asked ? "it was asked for" : implied ? "inducing inputs were asked for" : methods[chosen].why;
    THI_TRY(thi_strdup(f->ctx, &f->model->why, why));
out:
    return status;
}
