/* Options that several commands share. Names and meanings follow the option structs of the library. */
#include <stddef.h>

#include "cli.h"

enum { INT_MOST = 2147483647 };

const cli_option cli_column_options[] = {
    {"target", 0, cli_parse_list, CLI_AT(fit.target), "COL",
     "column to predict, by name or position (-1: the last); several with commas between them (gaussian, gprn, mixing)",
     0, 0},
    {"inputs", 0, cli_parse_list, CLI_AT(fit.inputs), "COLS",
     "comma-separated columns to predict from (default: all others)", 0, 0},
    {"ignore", 0, cli_parse_list, CLI_AT(fit.ignore), "COLS", "columns that are not inputs", 0, 0},
    {"id", 0, cli_parse_list, CLI_AT(fit.ignore), "COLS", "the same as --ignore", 0, 0},
    {"categorical", 0, cli_parse_list, CLI_AT(fit.categorical), "COLS",
     "columns whose numbers are names of categories (text columns always are)", 0, 0},
    {"classes", 0, cli_parse_list, CLI_AT(fit.classes), "LABELS",
     "labels of a class target in their order, such as low,mid,high (default: those found, sorted)", 0, 0},
    {"exposure", 0, cli_parse_text, CLI_AT(fit.exposure), "COL",
     "column of exposures (time, area, people) that rates of counts are multiplied by", 0, 0},
    {"partition", 0, cli_parse_text, CLI_AT(fit.partition), "COL",
     "of pitc and pic: column each value of which is a block of rows (site, patient); no input unless --inputs lists "
     "it",
     0, 0},
    {"drop-missing", 0, NULL, CLI_AT(fit.drop_missing), NULL,
     "leave out rows with missing values (default: refuse them)", 0, 0},
    {"drop-constant", 0, NULL, CLI_AT(fit.drop_constant), NULL,
     "accepted for old scripts: input columns that are the same in every row are left out, with a line", 0, 0},
    {"replicates", 0, NULL, CLI_AT(fit.replicates), NULL,
     "accepted for old scripts: rows with equal inputs and different targets are taken as repeated measurements", 0, 0},
    {"raw", 0, NULL, CLI_AT(fit.raw), NULL, "do not standardise the columns", 0, 0},
    {0},
};

const cli_option cli_model_options[] = {
    {"likelihood", 0, cli_parse_text, CLI_AT(fit.likelihood), "TEXT",
     "how targets scatter around the function: gaussian, student-t, laplace, matern32, heteroscedastic, warped, "
     "bernoulli, bernoulli-probit, svm, softmax, ordinal, poisson, negative-binomial, binomial(trials=N), gamma, "
     "exponential, beta, sigmoid-poisson, logistic-softmax, gprn, mixing, or your own: plugin:FILE.so; of several "
     "targets one for all, "
     "or one for each with ';' between them (default: gaussian; bernoulli where the only target has two values or "
     "texts, softmax where it has more texts)",
     0, 0},
    {"noise", 0, cli_parse_text, CLI_AT(fit.noise), "NAME",
     "of a target that is a number: gaussian, student-t (some rows far off) or heteroscedastic (more noise here than "
     "there) (default: auto, what some of the rows ask for)",
     0, 0},
    {"expectation", 0, cli_parse_text, CLI_AT(fit.expectation), "HOW",
     "of log p(y | f): closed, augmented, quadrature:20, mc:2000 or qmc:512 (default: the best that the likelihood "
     "offers)",
     0, 0},
    {"method", 0, cli_parse_text, CLI_AT(fit.method), "NAME",
     "exact and collapsed (Gaussian noise), dense and variational (any likelihood); the second of each is for more "
     "rows; augmented (auxiliary variables: bernoulli, student-t, laplace and others, any number of rows); to sample "
     "the posterior at learned values: gibbs, ess, hmc, mh; sparse regression by blocks: sor, dtc, fitc, fic, pitc, "
     "pic, or a sum such as '0.3 fitc + 0.7 dtc'; decoupled: a large basis for the mean; incremental: a basis that "
     "grows "
     "(default: auto)",
     0, 0},
    {"kernel", 0, cli_parse_text, CLI_AT(fit.kernel), "TEXT",
     "covariance function, one for each latent function with ';' between them or one for all: sums and products of se, "
     "matern12, matern32, matern52, rq, periodic, cosine, linear, "
     "polynomial, constant, white (default: auto, the best of a few such as matern52(ard) + matern12(ard) on some of "
     "the rows); linear and polynomial are of inputs less their means, "
     "unless --raw",
     0, 0},
    {"mean", 0, cli_parse_text, CLI_AT(fit.mean), "NAME",
     "mean function: zero, constant or linear: mean.constant + mean.slope x (default: what suits the likelihood)", 0,
     0},
    {"set", 0, cli_parse_list, CLI_AT(fit.set), "LIST",
     "name=value fixes a parameter, name~value is a first guess; units of the data", 0, 0},
    {"prior", 0, cli_parse_list, CLI_AT(fit.prior), "LIST",
     "priors such as 'lengthscale lognormal(0, 1), noise gamma(2, 0.5)'", 0, 0},
    {0},
};

const cli_option cli_sparse_options[] = {
    {"compact", 0, NULL, CLI_AT(fit.compact), NULL,
     "a small model that can be updated: inducing inputs alone, where auto would keep all rows", 0, 0},
    {"inducing", 0, cli_parse_or_none, CLI_AT(fit.inducing), "M",
     "number of inducing inputs (default: 500, fewer with several latent functions; 0: decoupled alone)", 0, 1e6},
    {"inducing-from", 0, cli_parse_text, CLI_AT(fit.basis), "HOW",
     "kmeans, random, greedy, or a table that has them (default: kmeans)", 0, 0},
    {"fix-inducing", 0, NULL, CLI_AT(fit.fixed_basis), NULL, "do not learn where they are", 0, 0},
    {"posterior", 0, cli_parse_text, CLI_AT(fit.posterior), "FAMILY",
     "full, diag, mixture:K (of diagonal Gaussians) or mixture-full:K (default: full)", 0, 0},
    {"entropy", 0, cli_parse_text, CLI_AT(fit.entropy), "BOUND",
     "on the entropy of a mixture: pairwise, or jensen, which loses more (default: pairwise)", 0, 0},
    {"plain", 0, NULL, CLI_AT(fit.plain), NULL, "a diagonal posterior in plain and not in whitened coordinates", 0, 0},
    {"share-kernel", 0, NULL, CLI_AT(fit.shared_kernel), NULL, "one kernel for all latent functions", 0, 0},
    {"optimizer", 0, cli_parse_text, CLI_AT(fit.optimizer), "NAME",
     "natural, lbfgs, alternate, adam, adadelta or momentum; by blocks: natural or gradient (default: auto)", 0, 0},
    {"batch", 0, cli_parse_int64, CLI_AT(fit.batch), "B", "rows a step (default: all of up to 4096, else 1024)", 1,
     1e9},
    {"epochs", 0, cli_parse_int, CLI_AT(fit.epochs), "N",
     "passes over the rows, at most; an evaluation of all rows is one", 1, INT_MOST},
    {"rate", 0, cli_parse_real, CLI_AT(fit.rate), "R", "step length of adam, adadelta or momentum", 0, 1e6},
    {"tolerance", 0, cli_parse_real, CLI_AT(fit.tolerance), "NATS",
     "stop when fewer nats a row are gained (default: 1e-5)", 0, 1e6},
    {0},
};

const cli_option cli_decoupled_options[] = {
    {"mean-inducing", 0, cli_parse_int64, CLI_AT(fit.mean_inducing), "M",
     "basis functions of the mean; --inducing has those of the covariance (default: 4096)", 1, 1e8},
    {"growth", 0, cli_parse_int64, CLI_AT(fit.growth), "N", "new ones a step (default: 128)", 1, 1e8},
    {"decoupled", 0, cli_parse_text, CLI_AT(fit.decoupled), "FORM",
     "plain, or orthogonal, whose steps are stable (default: orthogonal)", 0, 0},
    {"own-scales", 0, NULL, CLI_AT(fit.own_scales), NULL,
     "basis functions with length-scales of their own, which are learned (se, matern)", 0, 0},
    {0},
};

const cli_option cli_block_options[] = {
    {"blocks", 0, cli_parse_int64, CLI_AT(fit.blocks), "P",
     "blocks of rows of sor, dtc, fitc, fic, pitc and pic (default: some 500 rows each)", 1, 1e9},
    {"anytime", 0, NULL, CLI_AT(fit.anytime), NULL, "steps on single blocks, with a complete model after each", 0, 0},
    {"step-blocks", 0, cli_parse_int64, CLI_AT(fit.step_blocks), "N", "blocks a step (default: what suits them)", 1, 8},
    {"schedule", 0, cli_parse_text, CLI_AT(fit.schedule), "RHO,TAU,KAPPA",
     "steps rho/(1 + tau rho t)^kappa towards what a few blocks say of all (default: q is that of the blocks so far)",
     0, 0},
    {0},
};

const cli_option cli_stream_options[] = {
    {"follow", 0, NULL, CLI_AT(feed.follow), NULL,
     "DATA is a CSV file that grows: wait for more rows until Ctrl-C, SIGTERM or the deadline", 0, 0},
    {"forget", 0, cli_parse_real, CLI_AT(update.forget), "ROWS",
     "about how many of the last rows count; older ones fade (default: all count)", 1, 1e15},
    {"freeze", 0, NULL, CLI_AT(update.freeze), NULL,
     "kernel, likelihood and inducing inputs stay as they were fitted (default: they are learned too)", 0, 0},
    {"window", 0, cli_parse_int64, CLI_AT(update.window), "ROWS", "rows that the recent errors are of (default: 10000)",
     1, 1e15},
    {"skip-bad", 0, NULL, CLI_AT(update.skip_bad), NULL,
     "leave out and count rows that cannot be used (default: stop, with what was learned saved)", 0, 0},
    {0},
};

const cli_option cli_sampling_options[] = {
    {"chains", 0, cli_parse_int, CLI_AT(fit.chains), "N", "independent chains (default: 4)", 1, 64},
    {"draws", 0, cli_parse_int64, CLI_AT(fit.draws), "N", "of each chain (default: 1000)", 4, 1e9},
    {"burn-in", 0, cli_parse_or_none, CLI_AT(fit.burn_in), "N",
     "steps before the first draw (default: half as many as follow)", 0, 1e9},
    {"thin", 0, cli_parse_int64, CLI_AT(fit.thin), "N", "steps from draw to draw (default: 1)", 1, 1e6},
    {"step", 0, cli_parse_real, CLI_AT(fit.step), "E", "of hmc and mh (default: found during burn-in)", 0, 1e6},
    {"leaps", 0, cli_parse_int, CLI_AT(fit.leaps), "N", "of hmc, a step (default: what suits it)", 1, 10000},
    {0},
};

const cli_option cli_search_options[] = {
    {"restarts", 0, cli_parse_int, CLI_AT(fit.restarts), "N", "further random starting points (default: 0)", 0, 1000},
    {"iterations", 0, cli_parse_iterations, CLI_AT(fit.iterations), "N",
     "of the optimiser, at most (default: 200, lbfgs 500); 0 keeps the first guesses", 0, INT_MOST},
    {"deadline", 0, cli_parse_real, CLI_AT(fit.deadline), "SECONDS",
     "keep the best model found by then (default: 0, none)", 0, 1e9},
    {"effort", 0, cli_parse_text, CLI_AT(fit.effort), "NAME",
     "how much work is worth it where no deadline decides: low (a fifth), normal or high (five times) (default: "
     "normal, "
     "a minute at most for 50,000 rows of 20 columns on two cores)",
     0, 0},
    {0},
};

const cli_option cli_log_options[] = {
    {"log", 0, cli_parse_text, CLI_AT(log), "FILE", "write a line of JSON for every evaluation or step", 0, 0},
    {0},
};

const cli_option cli_table_options[] = {
    {"missing", 0, cli_parse_list, CLI_AT(table.missing), "TOKENS",
     "texts that mean 'no value', beside the empty field, NA, NaN, nan and null", 0, 0},
    {"header", 0, cli_parse_choice, CLI_AT(table.header), "auto|yes|no",
     "whether the first row has the names (default: auto: unless it is all numbers)", 0, 0},
    {"delimiter", 0, cli_parse_delimiter, CLI_AT(table.delimiter), "CHAR",
     "between fields; 'tab' for a tab (default: comma, semicolon or tab, as found)", 0, 0},
    {"dataset", 0, cli_parse_text, CLI_AT(table.dataset), "PATH", "dataset or group in an HDF5 file", 0, 0},
    {0},
};

const cli_option cli_machine_options[] = {
    {"threads", 0, cli_parse_int, CLI_AT(context.threads), "N",
     "default: one per processor; results do not depend on it", 0, 1024},
    {"seed", 0, cli_parse_seed, CLI_AT(context.seed), "N", "of every random draw (default: 0)", 0, 0},
    {"memory", 0, cli_parse_size, CLI_AT(context.memory_limit), "SIZE",
     "most memory to use, such as 4G (default: nine tenths of the machine's)", 0, 0},
    {0},
};

const cli_option cli_own_options[] = {
    {"likelihood", 0, cli_parse_text, CLI_AT(fit.likelihood), "plugin:FILE.so",
     "the likelihood of a model that was fitted with your own", 0, 0},
    {0},
};

const cli_option cli_output_options[] = {
    {"json", 0, NULL, CLI_AT(json), NULL, "JSON for programs, in full precision", 0, 0},
    {"quiet", 0, NULL, CLI_AT(quiet), NULL, "no progress line and no warnings", 0, 0},
    {0},
};
