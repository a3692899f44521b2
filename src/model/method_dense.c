/* Methods on all rows at once: exact regression, sites at the rows for any likelihood, and chains that start there. */
#include <math.h>

#include "fit/chains.h"
#include "fit/dense.h"
#include "model/methods.h"
#include "model/specify.h"

/* Rows that auto takes them for: up to there a fit takes a few minutes at most on two cores. */
enum { EXACT_MOST = 2000, DENSE_MOST = 1500, ITERATIONS = 200 };

static double exact_bytes(const thi_fitting *f, int64_t n)
{
    int more = f->spec.lik->outputs - 1; /* each keeps its factor and its rows */
    return thi_exact_bytes(n) + more * (double)n * ((double)n + f->model->encoder.dims + 2) * sizeof(double);
}

static double dense_bytes(const thi_fitting *f, int64_t n)
{
    return thi_dense_fit_bytes(n, f->spec.lik->latents);
}

/* Chains follow once the sites are done with their matrices. */
static double chain_bytes(const thi_fitting *f, int64_t n)
{
    thi_chains_settings settings = {.sampler = f->method->sampler, .chains = (int)f->options->sampling.chains};
    return fmax(dense_bytes(f, n), thi_chains_bytes(n, f->spec.lik->latents, &settings));
}

static thiele_status run(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted)
{
    const thi_objective *objective = f->method->objective;
    thi_problem problem = thi_fitting_problem(f, NULL);
    thi_fit_settings settings = {.restarts = (int)f->options->optimiser.restarts,
                                 .iterations = f->settings.iterations == 0 ? ITERATIONS : f->settings.iterations};
    return learn ? thi_search(&problem, objective, rows, &settings, &f->result, fitted)
                 : thi_freeze(f->ctx, objective, &f->spec, rows, fitted);
}

static thiele_status configure_chains(thi_fitting *f)
{
    f->goes_on = true;
    return THIELE_OK;
}

enum {
    DENSE = THI_CAN_LIKELIHOODS | THI_CAN_LATENTS | THI_CAN_TARGETS | THI_CAN_WEIGHTS,
    CHAINS = DENSE | THI_CAN_JOINT | THI_CAN_DEADLINE,
    CHAIN_OPTIONS = THI_TAKES_CHAINS | THI_TAKES_EXPECTATION
};

static const thi_lack dense_lacks[] = {{THI_CAN_LIKELIHOODS, THI_WHY_CLOSED}, {THI_CAN_LATENTS, THI_WHY_ONE_FUNCTION},
                                       {THI_CAN_TARGETS, THI_WHY_APART},      {THI_CAN_STREAM, THI_WHY_PAIRS},
                                       {THI_CAN_UPDATE, THI_WHY_ROWS},        {THI_CAN_SNAPSHOT, THI_WHY_LAST},
                                       {THI_CAN_DEADLINE, THI_WHY_OPTIMUM},   {THI_CAN_LEAVE_OUT, THI_WHY_EXACT},
                                       {THI_CAN_RANKS, THI_WHY_ONE_PROCESS},  {0}};
static const thi_lack chain_lacks[] = {{THI_CAN_STREAM, THI_WHY_PAIRS},
                                       {THI_CAN_UPDATE, THI_WHY_DRAWS},
                                       {THI_CAN_SNAPSHOT, THI_WHY_LAST},
                                       {THI_CAN_LEAVE_OUT, THI_WHY_EXACT},
                                       {THI_CAN_WEIGHTS, THI_WHY_ONCE},
                                       {THI_CAN_RANKS, THI_WHY_ONE_PROCESS},
                                       {0}};

const thi_method thi_method_exact = {.name = "exact",
                                     .words = "all rows, Gaussian noise, no approximation",
                                     .can = THI_CAN_JOINT | THI_CAN_LEAVE_OUT | THI_CAN_WEIGHTS,
                                     .lacks = dense_lacks,
                                     .most = EXACT_MOST,
                                     .why = "the table is small and the noise Gaussian",
                                     .evidence = "log_marginal_likelihood",
                                     .objective = &thi_objective_exact,
                                     .bytes = exact_bytes,
                                     .run = run};
const thi_method thi_method_dense = {.name = "dense",
                                     .words = "a Gaussian posterior at all rows, by expectations of any kind",
                                     .can = DENSE | THI_CAN_JOINT,
                                     .lacks = dense_lacks,
                                     .takes = THI_TAKES_EXPECTATION,
                                     .most = DENSE_MOST,
                                     .why = "the table is small and the noise not Gaussian",
                                     .evidence = "bound",
                                     .objective = &thi_objective_dense,
                                     .bytes = dense_bytes,
                                     .run = run};
const thi_method thi_method_augmented_dense = {
    .name = "augmented",
    .words = "auxiliary variables make the likelihood Gaussian; all rows, or inducing inputs",
    .can = DENSE | THI_CAN_JOINT,
    .lacks = dense_lacks,
    .takes = THI_TAKES_EXPECTATION,
    .most = DENSE_MOST,
    .why = "the table is small and auxiliary variables make the likelihood Gaussian",
    .evidence = "bound",
    .objective = &thi_objective_dense,
    .steps = "augmented",
    .bytes = dense_bytes,
    .run = run};
const thi_method thi_method_gibbs = {.name = "gibbs",
                                     .words =
                                         "draws by turns of f and auxiliary variables; all rows, or inducing inputs",
                                     .can = CHAINS & ~(unsigned)THI_CAN_WEIGHTS,
                                     .lacks = chain_lacks,
                                     .takes = CHAIN_OPTIONS,
                                     .evidence = "bound",
                                     .objective = &thi_objective_dense,
                                     .steps = "augmented",
                                     .sampler = "gibbs",
                                     .bytes = chain_bytes,
                                     .configure = configure_chains,
                                     .run = run};
const thi_method thi_method_ess = {.name = "ess",
                                   .words = "draws by elliptical slices",
                                   .can = CHAINS,
                                   .lacks = chain_lacks,
                                   .takes = CHAIN_OPTIONS,
                                   .evidence = "bound",
                                   .objective = &thi_objective_dense,
                                   .sampler = "ess",
                                   .bytes = chain_bytes,
                                   .configure = configure_chains,
                                   .run = run};
const thi_method thi_method_hmc = {.name = "hmc",
                                   .words = "draws by Hamiltonian moves",
                                   .can = CHAINS,
                                   .lacks = chain_lacks,
                                   .takes = CHAIN_OPTIONS | THI_TAKES_STEP | THI_TAKES_LEAPS,
                                   .evidence = "bound",
                                   .objective = &thi_objective_dense,
                                   .sampler = "hmc",
                                   .bytes = chain_bytes,
                                   .configure = configure_chains,
                                   .run = run};
const thi_method thi_method_mh = {.name = "mh",
                                  .words = "draws by random steps, for comparison",
                                  .can = CHAINS,
                                  .lacks = chain_lacks,
                                  .takes = CHAIN_OPTIONS | THI_TAKES_STEP,
                                  .evidence = "bound",
                                  .objective = &thi_objective_dense,
                                  .sampler = "mh",
                                  .bytes = chain_bytes,
                                  .configure = configure_chains,
                                  .run = run};
