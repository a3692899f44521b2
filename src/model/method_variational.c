/* Inducing inputs and a Gaussian or a mixture over them: collapsed, by augmentation, or by any expectations; and chains
 * that start there. */
#include <math.h>
#include <string.h>

#include "fit/budget.h"
#include "fit/dense.h"
#include "fit/explore.h"
#include "fit/predictive.h"
#include "model/methods.h"
#include "model/specify.h"

enum { COLLAPSED_MOST = 20000 };

/* "mixture-full:3" */
static thiele_status read_posterior(thi_fitting *f)
{
    static const struct {
        const char *name;
        bool diagonal, mixture;
    } families[] = {
        {"full", false, false}, {"diag", true, false}, {"mixture", true, true}, {"mixture-full", false, true}};
    enum { COMPONENTS_MAX = 100 };
    const char *text = f->options->inducing.posterior != NULL ? f->options->inducing.posterior : "full";
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
        f->settings.plain = f->options->inducing.plain != 0;
        return THIELE_OK;
    }
    return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                    "'%s' is not a posterior: use full, diag, mixture:K (of diagonal Gaussians) or mixture-full:K, K "
                    "from 1 to %d",
                    text, COMPONENTS_MAX);
}

static thiele_status read_entropy(thi_fitting *f)
{
    const char *text = f->options->inducing.entropy;
    f->settings.jensen = text != NULL && strcmp(text, "jensen") == 0;
    if (text != NULL && !f->settings.jensen && strcmp(text, "pairwise") != 0) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "'%s' is not a bound on the entropy of a mixture: use pairwise or jensen", text);
    }
    if (text != NULL && f->settings.components == 1) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "the entropy of one Gaussian is exact: only `posterior` mixture:K and mixture-full:K "
                        "need a bound");
    }
    return THIELE_OK;
}

static thiele_status configure(thi_fitting *f)
{
    const char *optimizer = f->options->optimiser.optimiser != NULL ? f->options->optimiser.optimiser : "auto";
    bool searches = strcmp(optimizer, "lbfgs") == 0 || strcmp(optimizer, "alternate") == 0;
    f->settings.collapsed = f->method == &thi_method_collapsed;
    f->goes_on = !f->settings.collapsed;
    if (f->options->optimiser.rate > 0.0 && searches) {
        return thi_fail(f->ctx, THIELE_ERROR_ARGUMENT,
                        "optimiser '%s' has no rate: only adam, adadelta and momentum have one", optimizer);
    }
    thiele_status status = read_posterior(f);
    return status == THIELE_OK ? read_entropy(f) : status;
}

/* Where values that one row led astray give way to others, q alone is fitted again. */
static thiele_status correct(thi_fitting *f, const thi_problem *problem, thi_variational_settings settings,
                             thi_fitted *fitted)
{
    thi_variational_result again = {0};
    bool others;
    thiele_status status = thi_keep_better(problem, &thi_objective_dense, settings.explored, &others);
    if (status != THIELE_OK || !others) {
        return status;
    }
    for (int q = 0; q < f->spec.latents.count; q++) {
        thi_predictor_clear(&fitted->latent[q]);
    }
    thi_budget_extend(f->driver, THI_SHARE_REPLACE);
    settings.condition = true;
    return thi_fit_variational(problem, &settings, &again, fitted);
}

static thiele_status run(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted)
{
    thi_variational_settings settings = f->settings;
    thi_variational_result outcome = {0};
    thi_source memory;
    const thi_source *source = thi_fitting_source(f, rows, &memory);
    thi_problem problem = thi_fitting_problem(f, source);
    thi_starts explored = {0};
    thiele_status status;
    settings.condition = !learn;
    settings.explored = &explored;
    THI_TRY(thi_predictive_undo(f->ctx, &f->spec, &f->hypers));
    THI_TRY(thi_fit_variational(&problem, &settings, &outcome, fitted));
    if (learn) {
        THI_TRY(correct(f, &problem, settings, fitted));
        f->outcome = outcome;
        f->result = outcome.fit;
    }
    if (f->hypers.noise >= 0 && f->settings.components == 1) {
        THI_TRY(thi_predictive_noise(f->ctx, source, &f->spec, &f->hypers, fitted->latent));
    }
out:
    thi_free(explored.value);
    return status;
}

static thiele_status report(thi_fitting *f)
{
    thiele_status status =
        thi_report_sparse(f, f->options->inducing.posterior != NULL ? f->options->inducing.posterior : "full");
    return status == THIELE_OK && f->settings.components > 1
               ? thi_strdup(f->ctx, &f->model->entropy, f->settings.jensen ? "jensen" : "pairwise")
               : status;
}

enum {
    SPARSE = THI_CAN_STREAM | THI_CAN_UPDATE | THI_CAN_JOINT | THI_CAN_DEADLINE | THI_CAN_WEIGHTS | THI_CAN_RANKS,
    ANY = SPARSE | THI_CAN_LIKELIHOODS | THI_CAN_LATENTS | THI_CAN_TARGETS,
    OPTIONS = THI_TAKES_BASIS | THI_TAKES_FAMILY | THI_TAKES_BATCHES | THI_TAKES_OPTIMIZER | THI_TAKES_EPOCHS |
              THI_TAKES_RATE | THI_TAKES_EXPECTATION
};

static const thi_lack lacks[] = {{THI_CAN_LIKELIHOODS, THI_WHY_CLOSED}, {THI_CAN_LATENTS, THI_WHY_ONE_FUNCTION},
                                 {THI_CAN_TARGETS, THI_WHY_APART},      {THI_CAN_SNAPSHOT, THI_WHY_LAST},
                                 {THI_CAN_LEAVE_OUT, THI_WHY_EXACT},    {0}};

static const thi_lack draw_lacks[] = {
    {THI_CAN_RANKS, THI_WHY_ONE_PROCESS}, {THI_CAN_STREAM | THI_CAN_UPDATE, THI_WHY_DRAWS},
    {THI_CAN_SNAPSHOT, THI_WHY_LAST},     {THI_CAN_LEAVE_OUT, THI_WHY_EXACT},
    {THI_CAN_WEIGHTS, THI_WHY_ONCE},      {0}};

const thi_method thi_method_collapsed = {
    .name = "collapsed",
    .words = "inducing inputs, Gaussian noise, the posterior at its optimum",
    .can = SPARSE,
    .lacks = lacks,
    .takes = OPTIONS & ~(unsigned)(THI_TAKES_FAMILY | THI_TAKES_RATE | THI_TAKES_EXPECTATION),
    .most = COLLAPSED_MOST,
    .why = "the table is of medium size and the noise Gaussian",
    .evidence = "bound",
    .configure = configure,
    .run = run,
    .report = report};
const thi_method thi_method_augmented = {
    .name = "augmented",
    .words = "auxiliary variables make the likelihood Gaussian; all rows, or inducing inputs",
    .can = ANY,
    .lacks = lacks,
    .takes = OPTIONS,
    .most = INT64_MAX,
    .why = "the table is large and auxiliary variables make the likelihood Gaussian",
    .evidence = "bound",
    .steps = "augmented",
    .configure = configure,
    .run = run,
    .report = report};
const thi_method thi_method_gibbs_sparse = {
    .name = "gibbs",
    .words = "draws by turns of f and auxiliary variables; all rows, or inducing inputs",
    .can = ANY & ~(unsigned)(THI_CAN_STREAM | THI_CAN_UPDATE | THI_CAN_WEIGHTS | THI_CAN_RANKS),
    .lacks = draw_lacks,
    .takes = (OPTIONS & ~(unsigned)THI_TAKES_FAMILY) | THI_TAKES_CHAINS,
    .evidence = "bound",
    .steps = "augmented",
    .sampler = "gibbs",
    .configure = configure,
    .run = run,
    .report = report};
const thi_method thi_method_variational = {.name = "variational",
                                           .words = "inducing inputs and a Gaussian or a mixture, any likelihood",
                                           .can = ANY,
                                           .lacks = lacks,
                                           .takes = OPTIONS,
                                           .most = INT64_MAX,
                                           .why = "the table is large",
                                           .evidence = "bound",
                                           .configure = configure,
                                           .run = run,
                                           .report = report};
