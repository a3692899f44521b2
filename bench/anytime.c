/*
 * bench-anytime: sparse regression by blocks, exact and anytime (Hoang, Hoang and Low 2015, figures 1 to 5), as lines
 * of JSON for bench/anytime_figures.py. Tables have the target last; everything is standardised by the training rows,
 * and scores are in the units of the data, those of y: the noise is in the MNLP.
 *
 *   bench-anytime learn TRAIN FORM [NAME=VALUE...]       hyperparameters, as a fit by blocks learns them
 *   bench-anytime run TRAIN TEST FORM [NAME=VALUE...]    with those of hypers=FILE, a line of learn, or learned here
 *
 * FORM: pic, fitc, dtc or what else there is. A run chooses Z, cuts the rows into blocks, takes one pass over all of
 * them (exact) and then steps of one block each, without replacement, scored after 1, 2, 5, ... of them.
 *
 *   sum    q is that of the blocks so far, which is what a fit does without a schedule
 *   snga   natural parameters move by rho_t = rho_0/(1 + tau rho_0 t)^kappa towards P times what the block says
 *
 * Seconds are those of factoring Kzz, of the steps (or the pass) and of making one q of the natural parameters; what
 * predictions take is not in them. Both variants need the same sums over a block, so one walk serves both.
 *
 *   inducing=100 blocks=2000 seed=0 threads=1 most=0 (steps at most; 0: P) rho_0=1 tau=1 kappa=1 kernel=se(ard)
 *   deadline=0 (seconds for learning; 0: none)
 */
#include <string.h>

#include "anytime.h"
#include "data/batches.h"

#define LOG_2PI 1.837877066409345483561

enum { CHUNK = 4096, SUM = 0, SNGA, VARIANTS };
static const char *const variant_name[VARIANTS] = {"sum", "snga"};

typedef struct options {
    double inducing, blocks, seed, threads, most, rho_0, tau, kappa, deadline;
    const char *kernel, *hypers;
} options;

static const struct {
    const char *name;
    size_t at;
} numbers[] = {{"inducing", offsetof(options, inducing)}, {"blocks", offsetof(options, blocks)},
               {"seed", offsetof(options, seed)},         {"threads", offsetof(options, threads)},
               {"most", offsetof(options, most)},         {"rho_0", offsetof(options, rho_0)},
               {"tau", offsetof(options, tau)},           {"kappa", offsetof(options, kappa)},
               {"deadline", offsetof(options, deadline)}};

/* Everything of one invocation. */
typedef struct study {
    thiele_context *ctx;
    options o;
    thi_rows train, test;
    double *center, *scale; /* D + 1: inputs, then the target */
    thi_spec spec;
    thi_hypers hypers;
    thi_source source;
    thi_driver driver;
    thi_variational_settings sparse;
    thi_blocks_settings settings;
    thi_blocks_result result;
    thi_bfit fit; /* of one latent function: */
    thi_sparse engine;
    thi_natural sums, step;
    thi_local *local;
    double basis_seconds, partition_seconds, prepare_seconds;
    /* Of the test rows, whatever q is: mean = base_mean + B'm, var = base_variance + b'S b. */
    thi_matrix B, work;
    double *base_mean, *base_variance;
} study;

static void read_option(options *o, const char *text)
{
    size_t length = strcspn(text, "=");
    const char *value = text[length] == '=' ? text + length + 1 : "";
    if (length == 6 && strncmp(text, "kernel", length) == 0) {
        o->kernel = value;
        return;
    }
    if (length == 6 && strncmp(text, "hypers", length) == 0) {
        o->hypers = value;
        return;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double *number = (double *)(void *)((char *)o + numbers[i].at);
        if (strlen(numbers[i].name) == length && strncmp(text, numbers[i].name, length) == 0 &&
            thi_parse_number(value, strlen(value), number)) {
            return;
        }
    }
    fprintf(stderr, "bench-anytime: '%s' is none of its settings\n", text);
    exit(2);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void standardise(const study *s, thi_rows *rows)
{
    int D = rows->dims;
    for (int64_t i = 0; i < rows->n; i++) {
        for (int d = 0; d < D; d++) {
            rows->X[i * D + d] = (rows->X[i * D + d] - s->center[d]) / s->scale[d];
        }
        rows->y[i] = (rows->y[i] - s->center[D]) / s->scale[D];
    }
}

static void read_train(study *s, const char *path)
{
    read_rows(s->ctx, path, &s->train);
    int D = s->train.dims;
    check(s->ctx, thi_alloc(s->ctx, &s->center, (size_t)(D + 1), sizeof *s->center));
    check(s->ctx, thi_alloc(s->ctx, &s->scale, (size_t)(D + 1), sizeof *s->scale));
    for (int d = 0; d < D; d++) {
        moments(s->train.n, s->train.X + d, D, &s->center[d], &s->scale[d]);
    }
    moments(s->train.n, s->train.y, 1, &s->center[D], &s->scale[D]);
    standardise(s, &s->train);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static void open_model(study *s, const char *form)
{
    thiele_context *ctx = s->ctx;
    int D = s->train.dims;
    double *one;
    check(ctx, thi_alloc(ctx, &one, (size_t)D, sizeof *one));
    for (int d = 0; d < D; d++) {
        one[d] = 1.0;
    }
    thi_target target = {.scale = 1.0};
    thi_encoder encoder = {.dims = D, .scale = one, .targets = 1, .target = &target};
    thi_columns columns = {.dims = D, .columns = D};
    check(ctx, thiele_likelihood_parse(&s->spec.lik, ctx, "gaussian", 1, 0));
    check(ctx, thi_latents_make(&s->spec.latents, ctx, s->o.kernel, "zero", &columns, 1, false));
    check(ctx, thi_hypers_make(&s->hypers, ctx, &s->spec, &encoder, NULL, NULL));
    thi_source_of_rows(&s->source, &s->train);
    thi_driver_start(&s->driver, ctx, 0.0);
    s->sparse = (thi_variational_settings){.inducing = (int64_t)s->o.inducing};
    s->settings = (thi_blocks_settings){.blocks = (int64_t)s->o.blocks};
    check(ctx, thi_blocks_form_parse(&s->settings.form, ctx, form));
    s->fit = (thi_bfit){.problem = {ctx, &s->driver, &s->spec, &s->source, &s->hypers},
                        .sparse = &s->sparse,
                        .settings = &s->settings,
                        .result = &s->result,
                        .latents = 1,
                        .closed = true,
                        .engine = &s->engine,
                        .sums = &s->sums,
                        .step = &s->step,
                        .local = &s->local};
    thi_free(one);
}

static void open_engine(study *s, bool gradients)
{
    thi_bfit *fit = &s->fit;
    thi_sparse_shape shape = {
        .M = fit->M, .largest = s->result.largest, .penalty = THI_PENALTY_TRACE, .gradients = gradients};
    memcpy(shape.weight, s->settings.form.weight, sizeof shape.weight);
    thi_sparse_close(fit->engine);
    check(s->ctx, thi_sparse_open(fit->engine, s->ctx, &shape, s->train.dims));
}

static void choose_basis(study *s)
{
    thi_bfit *fit = &s->fit;
    double started = now(s->ctx);
    thi_free(fit->Z);
    fit->Z = NULL;
    check(s->ctx, thi_first_basis(&(thi_problem){s->ctx, &s->driver, &s->spec, &s->source, &s->hypers}, &s->sparse,
                                  s->sparse.inducing, &fit->Z, &fit->M, NULL));
    s->basis_seconds = now(s->ctx) - started;
    if (fit->sums->t == NULL) {
        check(s->ctx, thi_natural_open(fit->sums, s->ctx, fit->M));
        check(s->ctx, thi_natural_open(fit->step, s->ctx, fit->M));
    }
}

static void cut(study *s)
{
    double started = now(s->ctx);
    check(s->ctx, thi_bfit_partition(&s->fit));
    s->partition_seconds = now(s->ctx) - started;
}

/* The phases of thi_fit_blocks up to the hyperparameters, which stay in spec and hypers. */
static void learn(study *s, const char *form)
{
    thi_bfit *fit = &s->fit;
    double started = now(s->ctx);
    thi_driver_start(&s->driver, s->ctx, s->o.deadline);
    check(s->ctx, thi_first_explore(&(thi_problem){s->ctx, &s->driver, &s->spec, &s->source, &s->hypers},
                                    &thi_objective_exact, &s->sparse, &s->result.fit, &fit->starts));
    double explored = now(s->ctx) - started;
    choose_basis(s);
    thi_bfit_plan(fit);
    cut(s);
    open_engine(s, true);
    double opened = now(s->ctx);
    check(s->ctx, thi_bfit_learn(fit));
    double learned = now(s->ctx) - opened;
    thi_driver_start(&s->driver, s->ctx, 0.0);
    printf("{\"what\": \"learn\", \"form\": \"%s\", \"names\": [", form);
    for (int i = 0; i < s->hypers.count; i++) {
        printf("%s\"%s\"", i > 0 ? ", " : "", s->hypers.hyper[i].name);
    }
    printf("], \"values\": [");
    for (int i = 0; i < s->hypers.count; i++) {
        printf("%s%.17g", i > 0 ? ", " : "", thi_hyper_number(&s->hypers.hyper[i]));
    }
    printf("]");
    print_number("iterations", s->result.fit.iterations);
    print_number("explore_seconds", explored);
    print_number("basis_seconds", s->basis_seconds);
    print_number("partition_seconds", s->partition_seconds);
    print_number("learn_seconds", learned + explored);
    printf("}\n");
    fflush(stdout);
}

/* The numbers after "values": of a line that `learn` wrote. */
static void take_hypers(study *s, const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    if (file == NULL || getline(&text, &room, file) < 0) {
        perror(path);
        exit(1);
    }
    const char *at = strstr(text, "\"values\": [");
    at = at != NULL ? at + strlen("\"values\": [") : text + strlen(text);
    for (int i = 0; i < s->hypers.count; i++) {
        thi_hyper *hyper = &s->hypers.hyper[i];
        size_t length = strcspn(at, ",]");
        double number;
        if (!thi_parse_number(at, length, &number) || !(number > hyper->floor)) {
            fprintf(stderr, "bench-anytime: %s has no %d hyperparameters of this kernel\n", path, s->hypers.count);
            exit(1);
        }
        hyper->value = log(number - hyper->floor);
        at += length + strspn(at + length, ", ");
    }
    check(s->ctx, thi_hypers_apply(&s->hypers, s->ctx, &s->spec));
    free(text);
    fclose(file);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

static void prepare(study *s)
{
    double started = now(s->ctx);
    check(s->ctx, thi_bfit_prepare(&s->fit));
    s->prepare_seconds = now(s->ctx) - started;
}

/* V = L^-1 k(Z, X*) of the test rows, and what is left of their variance. */
static void project_plain(study *s)
{
    const thi_sparse *e = s->fit.engine;
    thi_inputs inputs = {0};
    int64_t M = s->fit.M, n = s->test.n;
    check(s->ctx, thi_inputs_make(&inputs, s->ctx, e->prior.kernel, n, s->test.X));
    check(s->ctx, thi_kernel_fill(e->prior.kernel, s->ctx, &e->inputs, &inputs, s->B, false));
    check(s->ctx, thi_kernel_fill_diagonal(e->prior.kernel, s->ctx, &inputs, s->base_variance));
    check(s->ctx, thi_tri_solve(s->ctx, THI_N, e->L, s->B));
    for (int64_t i = 0; i < n; i++) {
        const double *b = s->B.data + i * M;
        double left = s->base_variance[i] - thi_blas_dot(M, b, b);
        s->base_variance[i] = s->settings.form.conditional == THI_CONDITIONAL_NONE ? 0.0 : fmax(0.0, left);
    }
    thi_inputs_clear(&inputs);
}

/* By the local part of a predictor, of which only what does not depend on q is used. */
static void project_local(study *s)
{
    thi_bfit *fit = &s->fit;
    thi_predictor predictor = {0};
    thi_natural_zero(fit->sums);
    check(s->ctx, thi_sparse_set(fit->engine, s->ctx, fit->sums));
    check(s->ctx, thi_sparse_freeze(fit->engine, s->ctx, s->settings.form.conditional, &predictor));
    thi_local_renew(fit->local[0], fit->engine->noise);
    predictor.local = fit->local[0];
    check(s->ctx,
          thi_local_project(&predictor, s->ctx, s->test.n, s->test.X, NULL, s->base_mean, s->B, s->base_variance));
    predictor.local = NULL;
    thi_predictor_clear(&predictor);
}

static double project(study *s)
{
    double started = now(s->ctx);
    int64_t n = s->test.n, M = s->fit.M;
    check(s->ctx, thi_matrix_alloc(&s->B, s->ctx, M, n));
    check(s->ctx, thi_matrix_alloc(&s->work, s->ctx, M, CHUNK));
    check(s->ctx, thi_alloc(s->ctx, &s->base_mean, (size_t)n, sizeof *s->base_mean));
    check(s->ctx, thi_alloc(s->ctx, &s->base_variance, (size_t)n, sizeof *s->base_variance));
    if (s->settings.form.local) {
        project_local(s);
    } else {
        project_plain(s);
    }
    return now(s->ctx) - started;
}

/* RMSE and MNLP of the present q of the engine. */
static void score(study *s, double *rmse, double *mnlp)
{
    const thi_sparse *e = s->fit.engine;
    int64_t M = s->fit.M, n = s->test.n;
    double square = 0.0, total = 0.0, unit = s->scale[s->test.dims];
    for (int64_t first = 0; first < n; first += CHUNK) {
        int64_t count = n - first < CHUNK ? n - first : CHUNK;
        thi_matrix work = thi_matrix_view(s->work.data, M, count, M);
        memcpy(work.data, s->B.data + first * M, (size_t)(M * count) * sizeof(double));
        check(s->ctx, thi_tri_solve(s->ctx, THI_N, e->root, work));
        for (int64_t i = 0; i < count; i++) {
            int64_t row = first + i;
            const double *b = s->B.data + row * M, *w = work.data + i * M;
            double gap = s->test.y[row] - s->base_mean[row] - thi_blas_dot(M, b, e->m);
            double variance = fmax(0.0, s->base_variance[row]) + thi_blas_dot(M, w, w) + e->noise;
            square += gap * gap;
            total += 0.5 * (gap * gap / variance + log(variance) + LOG_2PI);
        }
    }
    *rmse = unit * sqrt(square / (double)n);
    *mnlp = total / (double)n + log(unit);
}

/* Makes q of the sums and prints a line; what lines begin with is printed before. */
static void report(study *s, const thi_natural *sums, double seconds)
{
    double rmse, mnlp, started = now(s->ctx);
    check(s->ctx, thi_sparse_set(s->fit.engine, s->ctx, sums));
    double set = now(s->ctx) - started;
    score(s, &rmse, &mnlp);
    print_number("seconds", s->prepare_seconds + seconds + set);
    print_number("set_seconds", set);
    print_number("rmse", rmse);
    print_number("mnlp", mnlp);
    printf("}\n");
    fflush(stdout);
}

/* The mean and variance of the training targets for all rows. */
static void report_constant(const study *s)
{
    double square = 0.0, unit = s->scale[s->test.dims];
    for (int64_t i = 0; i < s->test.n; i++) {
        square += s->test.y[i] * s->test.y[i];
    }
    square /= (double)s->test.n;
    printf("{\"what\": \"constant\"");
    print_number("rmse", unit * sqrt(square));
    print_number("mnlp", 0.5 * (square + LOG_2PI) + log(unit));
    printf("}\n");
}

/* --- exact and anytime -------------------------------------------------------------------------------------------- */

static void run_exact(study *s)
{
    double started = now(s->ctx);
    thi_bfit *fit = &s->fit;
    int64_t P = fit->partition.blocks, rows, block[THI_SPARSE_LANES];
    thi_natural_zero(fit->sums);
    for (int64_t done = 0; done < P; done += THI_SPARSE_LANES) {
        int64_t lanes = P - done < THI_SPARSE_LANES ? P - done : THI_SPARSE_LANES;
        for (int64_t i = 0; i < lanes; i++) {
            block[i] = done + i;
        }
        check(s->ctx, thi_bfit_load(fit, lanes, block, &rows));
        check(s->ctx, thi_sparse_sum(fit->engine, s->ctx, lanes, fit->block, 1.0, fit->sums));
    }
    double seconds = now(s->ctx) - started;
    printf("{\"what\": \"exact\"");
    report(s, fit->sums, seconds);
}

static bool is_looked_at(int64_t t, int64_t last)
{
    static const int64_t at[] = {1, 2, 5, 10, 20, 30, 40, 60, 100, 200, 500, 1000};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        if (t == at[i]) {
            return true;
        }
    }
    return t == last;
}

static double rho_at(const options *o, int64_t t)
{
    return fmin(1.0, o->rho_0 / pow(1.0 + o->tau * o->rho_0 * (double)t, o->kappa));
}

/* The step of each variant from the sums over one block; returns its seconds. */
static double move(const study *s, int variant, int64_t t, thi_natural *sums)
{
    double started = now(s->ctx), P = (double)s->fit.partition.blocks;
    double rho = rho_at(&s->o, t);
    if (variant == SUM) {
        thi_natural_mix(sums, 1.0, s->fit.step, 1.0);
    } else {
        thi_natural_mix(sums, 1.0 - rho, s->fit.step, rho * P);
    }
    return now(s->ctx) - started;
}

static void run_anytime(study *s)
{
    thi_bfit *fit = &s->fit;
    int64_t P = fit->partition.blocks, last = s->o.most > 0.0 && s->o.most < (double)P ? (int64_t)s->o.most : P, rows;
    thi_natural sums[VARIANTS];
    double seconds[VARIANTS] = {0.0};
    thi_shuffle order;
    thi_shuffle_open(&order, (thi_stream){s->ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_BLOCKS + 1}, P);
    for (int v = 0; v < VARIANTS; v++) {
        check(s->ctx, thi_natural_open(&sums[v], s->ctx, fit->M));
    }
    for (int64_t t = 0; t < last; t++) {
        double started = now(s->ctx);
        int64_t block = thi_shuffle_at(&order, t);
        check(s->ctx, thi_bfit_load(fit, 1, &block, &rows));
        thi_natural_zero(fit->step);
        check(s->ctx, thi_sparse_sum(fit->engine, s->ctx, 1, fit->block, 1.0, fit->step));
        double both = now(s->ctx) - started;
        for (int v = 0; v < VARIANTS; v++) {
            seconds[v] += both + move(s, v, t, &sums[v]);
        }
        for (int v = 0; v < VARIANTS && is_looked_at(t + 1, last); v++) {
            printf("{\"what\": \"anytime\", \"variant\": \"%s\"", variant_name[v]);
            print_number("iterations", (double)(t + 1));
            report(s, &sums[v], seconds[v]);
        }
    }
    for (int v = 0; v < VARIANTS; v++) {
        thi_natural_close(&sums[v]);
    }
}

static void run(study *s, const char *form)
{
    thi_bfit *fit = &s->fit;
    choose_basis(s);
    cut(s);
    open_engine(s, false);
    prepare(s);
    double gather = now(s->ctx);
    if (s->settings.form.local) {
        check(s->ctx, thi_bfit_gather(fit));
    }
    gather = now(s->ctx) - gather;
    double projected = project(s);
    printf("{\"what\": \"setup\", \"form\": \"%s\", \"clock\": \"%s\"", form, s->o.threads > 1.0 ? "wall" : "cpu");
    print_number("rows", (double)s->train.n);
    print_number("test_rows", (double)s->test.n);
    print_number("dims", s->train.dims);
    print_number("inducing", (double)fit->M);
    print_number("blocks", (double)fit->partition.blocks);
    print_number("largest", (double)s->result.largest);
    print_number("threads", thiele_context_threads(s->ctx));
    print_number("seed", s->o.seed);
    print_number("basis_seconds", s->basis_seconds);
    print_number("partition_seconds", s->partition_seconds);
    print_number("gather_seconds", gather);
    print_number("project_seconds", projected);
    printf("}\n");
    report_constant(s);
    run_exact(s);
    run_anytime(s);
}

static void close_study(study *s)
{
    thi_bfit *fit = &s->fit;
    thi_partition_clear(&fit->partition);
    thi_sparse_close(fit->engine);
    thi_natural_close(fit->sums);
    thi_natural_close(fit->step);
    thi_rows_free(&fit->buffer);
    thi_local_destroy(fit->local[0]);
    thi_free(fit->Z);
    thi_free(s->B.data);
    thi_free(s->work.data);
    thi_free(s->base_mean);
    thi_free(s->base_variance);
    thi_free(s->center);
    thi_free(s->scale);
    thi_rows_free(&s->train);
    thi_rows_free(&s->test);
    thi_hypers_clear(&s->hypers);
    thi_latents_clear(&s->spec.latents);
    thiele_likelihood_destroy(s->spec.lik);
    thiele_context_destroy(s->ctx);
}

int main(int argc, char **argv)
{
    study s = {
        .o = {.inducing = 100, .blocks = 2000, .threads = 1, .rho_0 = 1, .tau = 1, .kappa = 1, .kernel = "se(ard)"}};
    thiele_context_options context = THIELE_CONTEXT_OPTIONS_INIT;
    bool learns = argc >= 4 && strcmp(argv[1], "learn") == 0, runs = argc >= 5 && strcmp(argv[1], "run") == 0;
    if (!learns && !runs) {
        fprintf(stderr, "Usage: bench-anytime learn TRAIN FORM [NAME=VALUE...]\n"
                        "       bench-anytime run TRAIN TEST FORM [NAME=VALUE...]\n");
        return 2;
    }
    int after = runs ? 5 : 4;
    const char *form = argv[after - 1];
    for (int i = after; i < argc; i++) {
        read_option(&s.o, argv[i]);
    }
    context.threads = (int)s.o.threads;
    context.seed = (uint64_t)s.o.seed;
    check(NULL, thiele_context_create(&s.ctx, &context));
    read_train(&s, argv[2]);
    open_model(&s, form);
    if (s.o.hypers != NULL) {
        take_hypers(&s, s.o.hypers);
    } else {
        learn(&s, form);
    }
    if (runs) {
        read_rows(s.ctx, argv[3], &s.test);
        standardise(&s, &s.test);
        run(&s, form);
    }
    close_study(&s);
    return 0;
}
