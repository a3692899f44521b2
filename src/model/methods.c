/* Which method is used: the one that was asked for, or what suits the table and the likelihood; and its settings. */
#include <math.h>
#include <string.h>

#include "fit/chains.h"
#include "fit/dense.h"
#include "likelihood/augment.h"
#include "model/specify.h"

/* Rows that methods are chosen for by themselves: up to there a fit takes a few minutes at most on two cores. */
enum { EXACT_AUTO_MAX = 4000, COLLAPSED_AUTO_MAX = 20000, DENSE_AUTO_MAX = 1500 };

static double exact_bytes(const thi_fitting *f, const char *sampler, int64_t n)
{
    (void)sampler;
    int more = f->spec.lik->outputs - 1; /* each keeps its factor and its rows */
    return thi_exact_bytes(n) + more * (double)n * ((double)n + f->model->encoder.dims + 2) * sizeof(double);
}

/* Chains follow once the dense method is done with its matrices. */
static double dense_bytes(const thi_fitting *f, const char *sampler, int64_t n)
{
    int latents = f->spec.lik->latents;
    thi_chains_settings settings = {.sampler = sampler, .chains = f->options->chains};
    double own = thi_dense_fit_bytes(n, latents);
    return sampler != NULL ? fmax(own, thi_chains_bytes(n, latents, &settings)) : own;
}

/* What may be asked for, in the order in which it is chosen where nothing is. */
static const struct {
    const char *name;
    const thi_method *method; /* NULL: sparse */
    bool gaussian;            /* plain Gaussian noise only */
    int64_t most;             /* rows that it is chosen for by itself */
    const char *why;
    double (*bytes)(const thi_fitting *f, const char *sampler, int64_t n);
    const char *expectation; /* NULL: as asked for */
    const char *sampler;     /* NULL: none */
} methods[] = {
    {"exact", &thi_method_exact, true, EXACT_AUTO_MAX, "the table is small and the noise Gaussian", exact_bytes, NULL,
     NULL},
    {"collapsed", NULL, true, COLLAPSED_AUTO_MAX, "the table is of medium size and the noise Gaussian", NULL, NULL,
     NULL},
    {"augmented", &thi_method_dense, false, DENSE_AUTO_MAX,
     "the table is small and auxiliary variables make the likelihood Gaussian", dense_bytes, "augmented", NULL},
    {"augmented", NULL, false, INT64_MAX, "the table is large and auxiliary variables make the likelihood Gaussian",
     NULL, "augmented", NULL},
    {"dense", &thi_method_dense, false, DENSE_AUTO_MAX, "the table is small and the noise not Gaussian", dense_bytes,
     NULL, NULL},
    {"gibbs", &thi_method_dense, false, 0, NULL, dense_bytes, "augmented", "gibbs"},
    {"ess", &thi_method_dense, false, 0, NULL, dense_bytes, NULL, "ess"},
    {"hmc", &thi_method_dense, false, 0, NULL, dense_bytes, NULL, "hmc"},
    {"mh", &thi_method_dense, false, 0, NULL, dense_bytes, NULL, "mh"},
    {"sor", NULL, true, 0, NULL, NULL, NULL, NULL},
    {"dtc", NULL, true, 0, NULL, NULL, NULL, NULL},
    {"fitc", NULL, true, 0, NULL, NULL, NULL, NULL},
    {"fic", NULL, true, 0, NULL, NULL, NULL, NULL},
    {"pitc", NULL, true, 0, NULL, NULL, NULL, NULL},
    {"pic", NULL, true, 0, NULL, NULL, NULL, NULL},
    {"decoupled", NULL, false, 0, NULL, NULL, NULL, NULL},
    {"incremental", NULL, false, 0, NULL, NULL, NULL, NULL},
    {"variational", NULL, false, INT64_MAX, "the table is large", NULL, NULL, NULL},
};
enum { METHODS = sizeof methods / sizeof *methods };

/* Whether the noise is Gaussian around one function, or around one for each target. */
static bool has_gaussian_noise(const thi_fitting *f)
{
    return thi_is_gaussian(f->spec.lik) || f->spec.lik->ops->separate;
}

/* Options that only sparse methods understand. */
static bool asks_for_sparse(const thiele_fit_options *o)
{
    return o->posterior != NULL || o->inducing > 0 || o->basis != NULL || o->optimizer != NULL || o->batch > 0 ||
           o->epochs > 0 || o->plain || o->fixed_basis;
}

static bool suits(const thi_fitting *f, int i, int64_t n)
{
    bool gaussian = has_gaussian_noise(f) && (f->spec.lik->latents == 1 || !f->options->shared_kernel);
    if (methods[i].expectation != NULL && (!thi_is_augmented(f->spec.lik) || f->options->expectation != NULL)) {
        return false;
    }
    return (gaussian || !methods[i].gaussian) && n <= methods[i].most &&
           (methods[i].method == NULL || !asks_for_sparse(f->options)) &&
           (i + 1 == METHODS || methods[i].gaussian == gaussian) &&
           (strcmp(methods[i].name, "collapsed") != 0 || f->options->posterior == NULL);
}

bool thi_method_is_gaussian(const char *name)
{
    bool gaussian = thi_blocks_is_form(name);
    for (int i = 0; i < METHODS; i++) {
        gaussian = gaussian || (methods[i].gaussian && strcmp(methods[i].name, name) == 0);
    }
    return gaussian;
}

static double bytes_needed(const thi_fitting *f, int i, int64_t n)
{
    return methods[i].bytes != NULL ? methods[i].bytes(f, methods[i].sampler, n) : 0.0;
}

static double bytes_left(const thi_fitting *f)
{
    size_t limit = thi_memory_limit(f->ctx);
    size_t held = thi_memory_held(f->ctx);
    return limit > held ? (double)(limit - held) : 0.0;
}

/* Whether a method leaves such a table to the next one of its name, which is sparse. */
static bool passes_on(const thi_fitting *f, int i, int64_t n)
{
    return i + 1 < METHODS && strcmp(methods[i].name, methods[i + 1].name) == 0 &&
           (n > methods[i].most || asks_for_sparse(f->options));
}

/* "0.3 fitc + 0.7 dtc" goes by the rules of fitc. */
static bool is_sum_of(const char *text, const char *method)
{
    return strpbrk(text, "+ ") != NULL && strcmp(method, "fitc") == 0 && thi_blocks_is_form(text);
}

/* *crowded: the first one that suits the table, which memory forbids; NULL: none. */
static int find_method(const thi_fitting *f, const char *name, int64_t n, const char **crowded)
{
    bool any = strcmp(name, "auto") == 0;
    *crowded = NULL;
    for (int i = 0; i < METHODS; i++) {
        bool named = strcmp(name, methods[i].name) == 0 || is_sum_of(name, methods[i].name);
        bool wanted = any ? suits(f, i, n) : named && !passes_on(f, i, n);
        if (wanted && any && bytes_needed(f, i, n) > bytes_left(f)) {
            *crowded = *crowded == NULL ? methods[i].name : *crowded;
        } else if (wanted) {
            return i;
        }
    }
    return -1;
}

/* "123 MB", "4.56 GB" */
static void show_bytes(double bytes, char *text, size_t capacity)
{
    bool large = bytes >= 1e9;
    snprintf(text, capacity, large || bytes < 1e8 ? "%.3g %s" : "%.0f %s", bytes * (large ? 1e-9 : 1e-6),
             large ? "GB" : "MB");
}

static thiele_status too_many(const thi_fitting *f, int chosen, int64_t n)
{
    char needed[32];
    char left[32];
    char limit[32];
    show_bytes(bytes_needed(f, chosen, n), needed, sizeof needed);
    show_bytes(bytes_left(f), left, sizeof left);
    show_bytes((double)thi_memory_limit(f->ctx), limit, sizeof limit);
    return thi_fail(f->ctx, THIELE_ERROR_LIMIT,
                    "%lld rows are too many for method %s: it would take %s of memory, and %s are left of the %s that "
                    "it may use (--memory); use %s, or a sample of the rows",
                    (long long)n, methods[chosen].name, needed, left, limit,
                    methods[chosen].gaussian          ? "a sparse method, --method collapsed or --method variational"
                    : methods[chosen].sampler != NULL ? "fewer --chains, the sparse method, --method variational"
                                                      : "the sparse method, --method variational");
}

/* What auxiliary variables and samplers need. */
static thiele_status check_augmented(const thi_fitting *f, int chosen)
{
    const thiele_fit_options *o = f->options;
    const char *name = methods[chosen].name, *way = methods[chosen].expectation;
    if (way != NULL && !thi_is_augmented(f->spec.lik)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' needs a likelihood with an augmentation, and '%s' has none: use %s", name,
                        thiele_likelihood_name(f->spec.lik),
                        methods[chosen].sampler != NULL ? "--method ess or hmc" : "--method dense or variational");
    }
    if (way != NULL && o->expectation != NULL && strcmp(o->expectation, way) != 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "method '%s' has its own expectations: leave out --expectation",
                        name);
    }
    const char *sampler = methods[chosen].sampler;
    bool hmc = sampler != NULL && strcmp(sampler, "hmc") == 0, mh = sampler != NULL && strcmp(sampler, "mh") == 0;
    if (sampler != NULL && ((o->step != 0 && !hmc && !mh) || (o->leaps != 0 && !hmc))) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "method '%s' has no %s", name,
                        o->leaps != 0 && !hmc ? "leaps: they are hmc's" : "step: it is for hmc and mh");
    }
    bool sampling = o->chains != 0 || o->draws != 0 || o->burn_in != 0 || o->thin != 0 || o->step != 0 || o->leaps != 0;
    if (sampling && methods[chosen].sampler == NULL) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' draws no samples: chains, draws, burn-in, thinning, step and leaps are for the "
                        "methods gibbs, ess, hmc and mh",
                        name);
    }
    return THIELE_OK;
}

/* What is for methods by blocks alone, and what is not for them. */
static thiele_status check_blocks(const thi_fitting *f, int chosen)
{
    const thiele_fit_options *o = f->options;
    const char *name = methods[chosen].name;
    if (!thi_blocks_is_form(name)) {
        bool asked =
            o->blocks > 0 || o->anytime != 0 || o->step_blocks > 0 || o->schedule != NULL || o->snapshot != NULL;
        return asked ? thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                                "method '%s' has no blocks: blocks, anytime, their schedule and snapshots are for the "
                                "methods sor, dtc, fitc, fic, pitc and pic",
                                name)
                     : THIELE_OK;
    }
    const char *extra = o->posterior != NULL || o->plain ? "posterior families"
                        : o->batch > 0                   ? "batches but blocks (--blocks)"
                                                         : NULL;
    return extra == NULL ? THIELE_OK : thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "method '%s' has no %s", name, extra);
}

static bool grows(int chosen)
{
    return strcmp(methods[chosen].name, "decoupled") == 0 || strcmp(methods[chosen].name, "incremental") == 0;
}

/* Several targets by a method that knows one. */
static bool fits_each(const thi_fitting *f, int chosen)
{
    const thiele_likelihood *lik = f->spec.lik;
    return lik->ops->separate && lik->outputs > 1 && (methods[chosen].gaussian || grows(chosen));
}

static thiele_status check_each(const thi_fitting *f, int chosen)
{
    const thiele_fit_options *o = f->options;
    const char *what = !fits_each(f, chosen) ? NULL
                       : o->shared_kernel    ? "share a kernel (that is for the methods dense and variational)"
                       : o->snapshot != NULL ? "save snapshots before all of them are there"
                                             : NULL;
    return what == NULL ? THIELE_OK
                        : thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                                   "method '%s' fits each target by itself, and cannot %s", methods[chosen].name, what);
}

/* What is for bases that grow alone, decoupled ones or one that is shared, and what is not for them. */
static thiele_status check_decoupled(const thi_fitting *f, int chosen)
{
    const thiele_fit_options *o = f->options;
    const char *name = methods[chosen].name;
    bool decoupled = strcmp(name, "decoupled") == 0;
    if (!decoupled && (o->mean_inducing > 0 || o->decoupled != NULL)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' has one basis: basis functions of the mean and their form are for the method "
                        "decoupled (--method decoupled)",
                        name);
    }
    if (!grows(chosen)) {
        return o->growth > 0 || o->own_scales != 0
                   ? thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                              "method '%s' has a basis of points that does not grow: growth and scales of their own "
                              "are for the methods decoupled and incremental",
                              name)
                   : THIELE_OK;
    }
    const char *extra = o->posterior != NULL || o->plain ? "posterior families"
                        : o->optimizer != NULL           ? "choice of optimizer"
                        : o->epochs > 0                  ? "epochs but iterations (--iterations)"
                                                         : NULL;
    return extra == NULL ? THIELE_OK : thi_fail(f->ctx, THIELE_ERROR_ARGUMENT, "method '%s' has no %s", name, extra);
}

static thiele_status check_method(const thi_fitting *f, int chosen, int64_t n)
{
    thiele_context *ctx = f->ctx;
    const char *name = methods[chosen].name;
    thiele_status status = check_augmented(f, chosen);
    if (status != THIELE_OK) {
        return status;
    }
    if (methods[chosen].gaussian && !has_gaussian_noise(f)) {
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
    status = check_blocks(f, chosen);
    if (status == THIELE_OK) {
        status = check_decoupled(f, chosen);
    }
    if (status == THIELE_OK) {
        status = check_each(f, chosen);
    }
    if (status != THIELE_OK) {
        return status;
    }
    return bytes_needed(f, chosen, n) > bytes_left(f) ? too_many(f, chosen, n) : THIELE_OK;
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

/* Samplers of any likelihood learn as auto would: by its augmentation, unless other expectations were asked for. */
static const char *expectation_of(const thi_fitting *f, int chosen)
{
    bool preferred =
        methods[chosen].sampler != NULL && f->options->expectation == NULL && thi_is_augmented(f->spec.lik);
    return preferred ? "augmented" : methods[chosen].expectation;
}

/* Steps of a given length are those of minibatches and of the optimizers that follow a gradient. */
static bool has_rate(const thi_fitting *f, int chosen)
{
    const char *optimizer = f->options->optimizer != NULL ? f->options->optimizer : "auto";
    bool searches = strcmp(optimizer, "lbfgs") == 0 || strcmp(optimizer, "alternate") == 0;
    return methods[chosen].method == NULL && !searches && strcmp(methods[chosen].name, "collapsed") != 0 &&
           !thi_blocks_is_form(methods[chosen].name);
}

static thiele_status check_settings(const thi_fitting *f, int chosen)
{
    const thiele_fit_options *o = f->options;
    if (o->rate > 0.0 && !has_rate(f, chosen)) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "method '%s' has no steps of a given length here: leave the rate out, or ask for method "
                        "variational with the optimizer adam, adadelta or momentum",
                        methods[chosen].name);
    }
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
    const char *crowded;
    int chosen = find_method(f, name, table->rows, &crowded);
    thiele_status status;
    if (chosen < 0) {
        return thi_fail(
            f->ctx, THIELE_ERROR_ARGUMENT,
            "no method '%s' in this version: it has auto, exact, collapsed, dense, variational, augmented, gibbs, "
            "ess, hmc, mh, sor, dtc, fitc, fic, pitc, pic, decoupled and incremental",
            name);
    }
    THI_TRY(check_settings(f, chosen));
    THI_TRY(check_method(f, chosen, table->rows));
    f->method = methods[chosen].method;
    f->sampler = methods[chosen].sampler;
    f->expectation = expectation_of(f, chosen);
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
    bool shared = strcmp(methods[chosen].name, "incremental") == 0;
    f->is_decoupled = grows(chosen);
    f->each = fits_each(f, chosen);
    if (f->is_decoupled) {
        THI_TRY(thi_specify_decoupled(f, shared));
    }
    f->by_blocks = thi_blocks_is_form(name);
    if (f->by_blocks) {
        THI_TRY(thi_specify_blocks(f, name));
    }
    THI_TRY(thi_strdup(f->ctx, &f->model->method, f->by_blocks ? name : methods[chosen].name));
    bool asked = strcmp(name, "auto") != 0;
    bool implied = asks_for_sparse(o);
    bool together = has_gaussian_noise(f) && o->shared_kernel && f->spec.lik->outputs > 1;
    const char *why = asked      ? "it was asked for"
                      : implied  ? "inducing inputs were asked for"
                      : together ? "targets that share a kernel are fitted together"
                                 : methods[chosen].why;
    thi_text reason;
    thi_text_init(&reason, f->ctx);
    thi_text_add(&reason, crowded != NULL ? "method %s would take more memory than is allowed" : "%s",
                 crowded != NULL ? crowded : why);
    THI_TRY(thi_text_take(&reason, &f->model->why));
out:
    return status;
}
