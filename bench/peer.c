/*
 * bench-peer NAME=VALUE...: whole steps of a sparse variational fit by Adam (value, gradients in q, kernel, likelihood
 * and Z, Adam) beside other libraries and for growth curves; bench/harness asks. Names: B rows a step, N rows, M
 * inducing inputs, D inputs, K components (0: one full Gaussian, else K diagonal ones), classes of softmax (one latent
 * each), threads, likelihood, expectation, and the files
 *
 *   problem   doubles: X (D x N), y (N), length-scales (D), variance, what the likelihood learns, Z (D x M), q as in
 *             posterior/variational.h. Without it the numbers are generated, and a step's cost is all there is to see.
 *   answer    gets the bound from the first B rows, its gradient in q, the logs of the hyperparameters and Z, and mean
 *             and variance of f at these rows.
 *
 * Then each line of standard input is a question with one number as the answer: "step n", the seconds of n steps;
 * "product n", the GF/s of the bare matrix product, the best of n; "memory 0", the most bytes the process has held.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit/variational_state.h"
#include "optim/rules.h"
#include "product.h"

/* --- what is asked for -------------------------------------------------------------------------------------------- */

typedef struct request {
    int64_t B, N, M;
    int D, K, classes, threads;
    const char *likelihood, *expectation, *problem, *answer;
} request;

static const char *value_of(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') {
            return argv[i] + length + 1;
        }
    }
    return NULL;
}

static int64_t count_of(int argc, char **argv, const char *name, int64_t otherwise)
{
    const char *text = value_of(argc, argv, name);
    return text == NULL ? otherwise : atoll(text);
}

static request read_request(int argc, char **argv)
{
    request r = {.B = count_of(argc, argv, "B", 1000),
                 .M = count_of(argc, argv, "M", 200),
                 .D = (int)count_of(argc, argv, "D", 8),
                 .K = (int)count_of(argc, argv, "K", 0),
                 .classes = (int)count_of(argc, argv, "classes", 0),
                 .threads = (int)count_of(argc, argv, "threads", 1),
                 .likelihood = value_of(argc, argv, "likelihood"),
                 .expectation = value_of(argc, argv, "expectation"),
                 .problem = value_of(argc, argv, "problem"),
                 .answer = value_of(argc, argv, "answer")};
    r.N = count_of(argc, argv, "N", r.B);
    if (r.likelihood == NULL) {
        r.likelihood = "gaussian";
    }
    if (r.B < 1 || r.N < r.B || r.M < 1 || r.D < 1 || r.K < 0) {
        fprintf(stderr, "bench-peer: sizes must be positive, and N at least B\n");
        exit(2);
    }
    return r;
}

/* --- the fit, opened as src/fit opens it -------------------------------------------------------------------------- */

typedef struct peer {
    thiele_context *ctx;
    thi_spec spec;
    thi_hypers hypers;
    thi_rows rows;
    thi_source source;
    thi_driver driver;
    thi_variational_settings settings;
    thi_variational_result result;
    thi_vfit fit;
    thi_rule rule;
    thi_part part; /* the minibatch: the first B rows */
    int64_t *row;
    double *descent;
} peer;

/* The next n numbers of the problem, or of a sequence of normal ones. */
static void take(FILE *file, uint64_t what, int64_t n, double *to)
{
    if (file == NULL) {
        for (int64_t i = 0; i < n; i++) {
            to[i] = thi_random_normal((thi_stream){1, THI_RANDOM_DEMO, what}, (uint64_t)i);
        }
    } else if (fread(to, sizeof *to, (size_t)n, file) != (size_t)n) {
        fprintf(stderr, "the problem is cut off\n");
        exit(1);
    }
}

/* Generated targets that a likelihood over classes, signs or counts can have. */
static void make_targets(const peer *p, int classes)
{
    thi_support support = p->spec.lik->ops->support;
    for (int64_t i = 0; i < p->rows.n; i++) {
        double *y = &p->rows.y[i];
        if (support == THI_SUPPORT_CLASS) {
            *y = (double)(i % classes);
        } else if (support == THI_SUPPORT_BINARY) {
            *y = *y > 0.0 ? 1.0 : -1.0;
        } else if (support == THI_SUPPORT_COUNT) {
            *y = floor(fabs(2.0 * *y));
        }
    }
}

static void open_model(peer *p, const request *r)
{
    thi_target target = {.scale = 1.0};
    double *scale;
    check(p->ctx, thi_alloc(p->ctx, &scale, (size_t)r->D, sizeof *scale));
    for (int d = 0; d < r->D; d++) {
        scale[d] = 1.0;
    }
    thi_encoder encoder = {.dims = r->D, .scale = scale, .targets = 1, .target = &target};
    thi_columns columns = {.dims = r->D, .columns = r->D};
    check(p->ctx, thiele_likelihood_parse(&p->spec.lik, p->ctx, r->likelihood, 1, r->classes));
    check(p->ctx, thi_latents_make(&p->spec.latents, p->ctx, "se(ard)", "zero", &columns, p->spec.lik->latents, false));
    check(p->ctx, thi_hypers_make(&p->hypers, p->ctx, &p->spec, &encoder, NULL, NULL));
    p->spec.expectation = r->expectation;
    thi_free(scale);
}

/* Generated inputs are far from each other: length-scales of sqrt D keep correlations the same for every D. */
static void read_hypers(peer *p, FILE *file, const request *r)
{
    for (int i = 0; i < p->hypers.count; i++) {
        thi_hyper *hyper = &p->hypers.hyper[i];
        double number = strstr(hyper->name, "lengthscale") != NULL ? sqrt((double)r->D) : 1.0;
        if (hyper->fixed) {
            continue;
        }
        if (file != NULL) {
            take(file, 0, 1, &number);
        }
        hyper->value = log(number - hyper->floor);
    }
    check(p->ctx, thi_hypers_apply(&p->hypers, p->ctx, &p->spec));
}

static void open_rule(peer *p)
{
    thi_schedule schedule;
    int64_t length[THI_PARTS];
    for (int part = 0; part < THI_PARTS; part++) {
        length[part] = p->fit.vector.first[part + 1] - p->fit.vector.first[part];
    }
    check(p->ctx, thi_schedule_make(&schedule, p->ctx, "constant", 1e-3, 0.0, 0.0));
    check(p->ctx, thi_rule_open(&p->rule, p->ctx, "adam", &schedule, THI_PARTS, length));
}

static void open_fit(peer *p, FILE *file, const request *r)
{
    double *Z;
    check(p->ctx, thi_alloc(p->ctx, &Z, (size_t)(r->D * r->M), sizeof *Z));
    take(file, 1, r->D * r->M, Z);
    thi_source_of_rows(&p->source, &p->rows);
    thi_driver_start(&p->driver, p->ctx, 0.0);
    p->settings =
        (thi_variational_settings){.components = r->K > 0 ? r->K : 1, .diagonal = r->K > 0, .optimizer = "adam"};
    p->fit = (thi_vfit){.problem = {p->ctx, &p->driver, &p->spec, &p->source, &p->hypers},
                        .settings = &p->settings,
                        .quick = true,
                        .result = &p->result};
    check(p->ctx, thi_vfit_open(&p->fit, r->M, Z, r->B, true));
    p->fit.pass.tight = false; /* the peers have the bound of 2009 */
    int64_t size = p->fit.vector.first[THI_PART_KERNEL];
    take(file, 2, size, p->fit.vector.x);
    for (int64_t i = 0; file == NULL && i < size; i++) {
        p->fit.vector.x[i] *= 0.01;
    }
    thi_free(Z);
}

static void open_peer(peer *p, const request *r)
{
    FILE *file = r->problem == NULL ? NULL : fopen(r->problem, "rb");
    if (r->problem != NULL && file == NULL) {
        perror(r->problem);
        exit(1);
    }
    open_model(p, r);
    check(p->ctx, thi_rows_alloc(&p->rows, p->ctx, r->N, r->D, 1, (thi_aside){0}));
    take(file, 3, r->D * r->N, p->rows.X);
    take(file, 4, r->N, p->rows.y);
    if (file == NULL) {
        make_targets(p, r->classes);
    }
    read_hypers(p, file, r);
    open_fit(p, file, r);
    if (file != NULL) {
        fclose(file);
    }
    open_rule(p);
    check(p->ctx, thi_alloc(p->ctx, &p->row, (size_t)r->B, sizeof *p->row));
    check(p->ctx, thi_alloc(p->ctx, &p->descent, (size_t)thi_vfit_size(&p->fit), sizeof *p->descent));
    for (int64_t i = 0; i < r->B; i++) {
        p->row[i] = i;
    }
    p->part = (thi_part){r->B, p->row, 0};
}

static void close_peer(peer *p)
{
    thi_rule_close(&p->rule);
    thi_free(p->row);
    thi_free(p->descent);
    thi_vfit_close(&p->fit);
    thi_rows_free(&p->rows);
    thi_hypers_clear(&p->hypers);
    thi_latents_clear(&p->spec.latents);
    thiele_likelihood_destroy(p->spec.lik);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void evaluate(peer *p)
{
    check(p->ctx, thi_vfit_evaluate(&p->fit, &p->part, (thi_wanted){.q = true, .prior = true, .phi = true}));
}

/* As src/fit/variational_stochastic.c does it. */
static void adam_step(peer *p)
{
    thi_vfit *fit = &p->fit;
    int64_t size = thi_vfit_size(fit);
    evaluate(p);
    for (int64_t i = 0; i < size; i++) {
        p->descent[i] = -fit->vector.bar[i] / (double)p->source.n;
    }
    check(p->ctx, thi_rule_step(&p->rule, p->ctx, fit->vector.x, p->descent, NULL));
    thi_vfit_confine(fit, fit->vector.x);
    check(p->ctx, thi_vfit_take(fit, fit->vector.x));
}

static void put(FILE *file, const char *path, const double *x, int64_t n)
{
    if (file == NULL || fwrite(x, sizeof *x, (size_t)n, file) != (size_t)n) {
        perror(path);
        exit(1);
    }
}

static void write_answer(peer *p, const request *r)
{
    const thi_vfit *fit = &p->fit;
    FILE *file = fopen(r->answer, "wb");
    evaluate(p);
    double *bar = fit->vector.bar + fit->vector.first[THI_PART_KERNEL];
    for (int i = 0; i < p->hypers.count; i++) {
        if (!p->hypers.hyper[i].fixed) {
            *bar++ /= thi_hyper_slope(&p->hypers.hyper[i]);
        }
    }
    put(file, r->answer, &fit->pass.at.bound, 1);
    put(file, r->answer, fit->vector.bar, thi_vfit_size(fit));
    put(file, r->answer, fit->pass.mu, r->B);
    put(file, r->answer, fit->pass.v, r->B);
    if (fclose(file) != 0) {
        perror(r->answer);
        exit(1);
    }
}

/* --- questions ---------------------------------------------------------------------------------------------------- */

static double gemm_rate(thiele_context *ctx, int runs)
{
    product p = product_open(ctx);
    double rate = product_rate(&p, runs);
    product_close(&p);
    return rate;
}

static double answer(peer *p, const char *question, int n)
{
    if (strcmp(question, "product") == 0) {
        return gemm_rate(p->ctx, n);
    }
    if (strcmp(question, "memory") == 0) {
        return most_memory();
    }
    double start = thi_seconds();
    for (int i = 0; i < n; i++) {
        adam_step(p);
    }
    return thi_seconds() - start;
}

int main(int argc, char **argv)
{
    request r = read_request(argc, argv);
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    peer p = {0};
    char question[16];
    int n;
    options.threads = r.threads;
    check(NULL, thiele_context_create(&p.ctx, &options));
    open_peer(&p, &r);
    if (r.answer != NULL) {
        write_answer(&p, &r);
    }
    printf("ready\n");
    fflush(stdout);
    while (scanf("%15s %d", question, &n) == 2) {
        printf("%.9g\n", answer(&p, question, n));
        fflush(stdout);
    }
    close_peer(&p);
    thiele_context_destroy(p.ctx);
    return 0;
}
