/*
 * Fits by blocks through identities: steps over one pass, or one step over all blocks, end at the exact q*; steps by a
 * schedule come nearer to it; DTC's steps are the natural gradients of stochastic variational inference; FITC with the
 * rows as inducing inputs is exact regression. What is learned is what the data were made with.
 */
#include "blocks_testing.h"

#include "basis/partition.h"
#include "data/batches.h"
#include "posterior/exact.h"
#include "posterior/variational.h"

/* --- names -----------------------------------------------------------------------------------------------------------
 */

static thi_blocks_form parsed(const char *text)
{
    thi_blocks_form form;
    assert_ok(ctx, thi_blocks_form_parse(&form, ctx, text));
    return form;
}

static void expect_weights(const char *text, double none, double diagonal, double block)
{
    thi_blocks_form form = parsed(text);
    const double want[THI_RESIDUAL_KINDS] = {none, diagonal, block};
    assert_all_near(form.weight, want, THI_RESIDUAL_KINDS, 0.0, 1e-15);
}

static void test_forms(void **state)
{
    (void)state;
    expect_weights("sor", 1.0, 0.0, 0.0);
    expect_weights("dtc", 1.0, 0.0, 0.0);
    expect_weights("fitc", 0.0, 1.0, 0.0);
    expect_weights("fic", 0.0, 1.0, 0.0);
    expect_weights("pitc", 0.0, 0.0, 1.0);
    expect_weights("pic", 0.0, 0.0, 1.0);
    expect_weights("0.3 fitc + 0.7 dtc", 0.7, 0.3, 0.0);
    expect_weights(" 0.3  fitc+0.5   pitc+ 0.2 dtc ", 0.2, 0.3, 0.5);
    expect_weights("0.25 dtc + 0.5 dtc + .25 dtc", 1.0, 0.0, 0.0);
    assert_true(parsed("pic").local && !parsed("pitc").local);
    assert_int_equal(parsed("sor").conditional, THI_CONDITIONAL_NONE);
    assert_int_equal(parsed("fic").conditional, THI_CONDITIONAL_DIAGONAL);
    assert_int_equal(parsed("0.3 fitc + 0.7 dtc").conditional, THI_CONDITIONAL_FULL);
}

static void test_no_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"0.5 fitc + 0.6 dtc", "sum to 1.1"},
        {"fitc + dtc", "sum to 2"},
        {"0.5 fitc", "sum to 0.5"},
        {"0.5 pic + 0.5 fitc", "fitc predicts differently"},
        {"0.5 fitc + 0.5 pic", "pic predicts differently"},
        {"0.5 fic + 0.5 fitc", "fitc predicts differently"},
        {"0.5 sor + 0.5 dtc", "dtc predicts differently"},
        {"1.5 fitc + -0.5 dtc", "weight 1.5"},
        {"-0.5 fitc + 1.5 dtc", "weight -0.5"},
        {"nan fitc + 0.5 dtc", "weight nan"},
        {"0.5 fitc +", "'' is not part"},
        {"+", "'' is not part"},
        {"", "'' is not part"},
        {"0.5 fitc + 0.5 nonsense", "' 0.5 nonsense' is not part"},
        {"half fitc + 0.5 dtc", "'half fitc ' is not part"},
        {"0.5fitc + 0.5dtc", "'0.5fitc ' is not part"},
        {"fitc dtc", "'fitc dtc' is not part"},
        {"FITC", "'FITC' is not part"},
    };
    thi_blocks_form form;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(ctx, thi_blocks_form_parse(&form, ctx, bad[i].text), THIELE_ERROR_ARGUMENT, bad[i].part);
    }
    assert_true(thi_blocks_is_form("pic") && thi_blocks_is_form("0.5 fitc + 0.6 dtc"));
    assert_false(thi_blocks_is_form("exact") || thi_blocks_is_form("") || thi_blocks_is_form("picc"));
}

/* --- q* --------------------------------------------------------------------------------------------------------------
 */

enum { N = 400, M = 20 };
static const thi_variational_settings few = {.inducing = M, .condition = true};

/* Steps over one pass end at what one pass has, whether or not the blocks of a step divide those of the pass. */
static void test_one_pass(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++) {
        setting s;
        open_setting(&s, ctx, "matern32", N, fixed);
        double value = fit(&s, every_form[f], few, (thi_blocks_settings){.blocks = 10});
        answer exact = ask(&s);
        assert_int_equal(s.result.blocks, 10);
        assert_int_equal(s.result.inducing, M);
        assert_near(s.result.passes, 1.0, 0.0, 0.0);
        for (int64_t step = 1; step <= 8; step += 1 + (step > 2)) {
            double got =
                fit(&s, every_form[f], few, (thi_blocks_settings){.blocks = 10, .anytime = true, .step_blocks = step});
            answer anytime = ask(&s);
            assert_near(s.result.passes, 1.0, 0.0, 0.0);
            assert_int_equal(s.result.fit.evaluations, 10);
            assert_near(got, value, 1e-10, 0.0);
            assert_same_answer(&anytime, &exact, 1e-9);
        }
        close_setting(&s);
    }
}

/* Without a schedule a block counts once, however many steps are asked for. */
static void test_no_block_twice(void **state)
{
    (void)state;
    setting s;
    open_setting(&s, ctx, "se", N, fixed);
    double value = fit(&s, "fitc", few, (thi_blocks_settings){.blocks = 10});
    const thi_variational_settings more[] = {{.inducing = M, .condition = true, .iterations = 100},
                                             {.inducing = M, .condition = true, .epochs = 3}};
    for (int i = 0; i < 2; i++) {
        double got = fit(&s, "fitc", more[i], (thi_blocks_settings){.blocks = 10, .anytime = true, .step_blocks = 3});
        assert_near(got, value, 1e-10, 0.0);
        assert_near(s.result.passes, 1.0, 0.0, 0.0);
    }
    close_setting(&s);
}

/* Fewer steps than a pass has: q is that of the blocks so far, surer with each. */
static void test_part_of_pass(void **state)
{
    (void)state;
    setting s;
    answer before, after;
    open_setting(&s, ctx, "se", N, fixed);
    for (int steps = 1; steps <= 10; steps++) {
        thi_variational_settings some = {.inducing = M, .condition = true, .iterations = steps};
        fit(&s, "dtc", some, (thi_blocks_settings){.blocks = 10, .anytime = true, .step_blocks = 1});
        after = ask(&s);
        assert_near(s.result.passes, 0.1 * steps, 1e-12, 0.0);
        for (int i = 0; steps > 1 && i < TESTS; i++) {
            assert_true(after.variance[i] <= before.variance[i] * (1.0 + 1e-9));
        }
        before = after;
    }
    close_setting(&s);
}

/* One step of size 1 over all blocks. */
static void test_one_step(void **state)
{
    (void)state;
    thi_variational_settings one = {.inducing = M, .condition = true, .iterations = 1};
    for (int f = 0; f < FORMS; f++) {
        setting s;
        open_setting(&s, ctx, "se", N, fixed);
        double value = fit(&s, every_form[f], few, (thi_blocks_settings){.blocks = 8});
        answer exact = ask(&s);
        double got = fit(&s, every_form[f], one,
                         (thi_blocks_settings){
                             .blocks = 8, .anytime = true, .step_blocks = 8, .rho_0 = 1.0, .tau = 1.0, .kappa = 1.0});
        answer anytime = ask(&s);
        assert_near(got, value, 1e-10, 0.0);
        assert_same_answer(&anytime, &exact, 1e-9);
        close_setting(&s);
    }
}

/* By a schedule of Robbins and Monro: ten times as many steps end nearer. */
static void test_schedule(void **state)
{
    (void)state;
    static const char *const forms[] = {"dtc", "fitc", "pic"};
    for (int f = 0; f < 3; f++) {
        setting s;
        double gap[3];
        open_setting(&s, ctx, "se", N, fixed);
        fit(&s, forms[f], few, (thi_blocks_settings){.blocks = 20});
        answer exact = ask(&s);
        for (int i = 0, steps = 4; i < 3; i++, steps *= 10) {
            thi_variational_settings some = {.inducing = M, .condition = true, .iterations = steps};
            fit(&s, forms[f], some,
                (thi_blocks_settings){
                    .blocks = 20, .anytime = true, .step_blocks = 1, .rho_0 = 0.9, .tau = 1.0, .kappa = 0.9});
            answer anytime = ask(&s);
            gap[i] = distance(&anytime, &exact);
        }
        assert_true(gap[2] < 0.3 * gap[0] && gap[2] < gap[1] && gap[2] < 0.02);
        close_setting(&s);
    }
}

/* --- the plain gradient ----------------------------------------------------------------------------------------------
 */

/* The bound of FITC over all rows at a predictor's q, by its own Ls and weights: m = L'a. */
static double bound_at(setting *s)
{
    const thi_predictor *p = &s->latent;
    int64_t n = s->rows.n, size = p->n, clipped = 0;
    double noise = s->spec.lik->value[0], total = 0.0;
    double *mean = malloc((size_t)n * sizeof *mean), *variance = malloc((size_t)n * sizeof *variance);
    double *bare = malloc((size_t)n * sizeof *bare);
    double *m = malloc((size_t)size * sizeof *m);
    thi_predictor none = *p;
    none.conditional = THI_CONDITIONAL_NONE;
    assert_ok(s->ctx, thi_predictor_marginals(p, s->ctx, n, s->rows.X, mean, variance, &clipped));
    assert_ok(s->ctx, thi_predictor_marginals(&none, s->ctx, n, s->rows.X, mean, bare, &clipped));
    for (int64_t i = 0; i < n; i++) {
        double gamma = noise + variance[i] - bare[i], gap = s->rows.y[i] - mean[i];
        total -= 0.5 * (log(2.0 * 3.14159265358979324 * gamma) + (gap * gap + bare[i]) / gamma);
    }
    for (int64_t i = 0; i < size; i++) {
        double sum = 0.0;
        for (int64_t j = i; j < size; j++) {
            sum += p->L.data[j + i * p->L.ld] * p->a[j];
        }
        m[i] = sum;
    }
    double kl = 0.0;
    thi_matrix R;
    assert_ok(s->ctx, thi_predictor_invert_root(p, s->ctx, 0, &R));
    for (int64_t j = 0; j < size; j++) {
        kl += 0.5 * (m[j] * m[j] - 1.0) - log(R.data[j + j * R.ld]);
        for (int64_t i = j; i < size; i++) {
            kl += 0.5 * R.data[i + j * R.ld] * R.data[i + j * R.ld];
        }
    }
    free(mean);
    free(variance);
    free(bare);
    free(m);
    thi_free(R.data);
    return total - kl;
}

/* Raises the bound from the prior on, stays proper, and never exceeds the evidence. */
static void test_gradient(void **state)
{
    (void)state;
    setting s;
    double last = -INFINITY;
    open_setting(&s, ctx, "se", N, fixed);
    double evidence = fit(&s, "fitc", few, (thi_blocks_settings){.blocks = 8});
    ask(&s);
    assert_near(bound_at(&s), evidence, 1e-8, 0.0);
    for (int steps = 1; steps <= 81; steps *= 3) {
        thi_variational_settings some = {.inducing = M, .condition = true, .iterations = steps};
        double value = fit(&s, "fitc", some,
                           (thi_blocks_settings){.blocks = 8,
                                                 .anytime = true,
                                                 .gradient = true,
                                                 .step_blocks = 8,
                                                 .rho_0 = 1.0,
                                                 .tau = 0.01,
                                                 .kappa = 1.0});
        ask(&s);
        double bound = bound_at(&s);
        assert_true(bound > last && bound < evidence);
        assert_near(value, bound, 1e-8, 0.0); /* all blocks in each step: no estimate */
        last = bound;
    }
    close_setting(&s);
}

/* --- stochastic variational inference --------------------------------------------------------------------------------
 */

enum { BATCHES = 10, STEPS = 7 };

/* A step of the engine of variational.h on some rows that stand for `scale` times as many. */
static void svi_step(setting *s, thi_variational *v, thi_sites *sites, const double *Z, int64_t n, const int64_t *row,
                     double scale, double rho)
{
    double X[D * N], y[N], mu[N], var[N], g[N], h[N], kl, noise = s->spec.lik->value[0];
    thi_rows part = {.n = n, .dims = D, .outputs = 1, .X = X, .y = y};
    assert_ok(ctx, s->source.fetch(s->source.arg, ctx, n, row, &part));
    assert_ok(ctx, thi_variational_begin(v, ctx, s->spec.latents.prior, &Z, NULL, sites, true));
    assert_ok(ctx, thi_variational_marginals(v, ctx, n, X, mu, var));
    for (int64_t i = 0; i < n; i++) {
        g[i] = scale * (y[i] - mu[i]) / noise;
        h[i] = -0.5 * scale / noise;
    }
    assert_ok(ctx, thi_variational_pull(v, ctx, g, h));
    assert_ok(ctx, thi_variational_end(v, ctx, NULL, &kl, NULL));
    thi_variational_step(v, rho, sites);
}

/* DTC's steps are natural gradients of the uncollapsed bound on minibatches. */
static void test_svi(void **state)
{
    (void)state;
    setting s;
    thi_partition batches;
    thi_shuffle order;
    thi_variational *v = NULL;
    thi_sites sites = {0};
    double Z[D * M];
    const double *z = Z;
    test_normals(D * M, 9, Z);
    open_setting(&s, ctx, "matern52", N, fixed);
    thi_variational_settings some = {.Z = Z, .Z_count = M, .condition = true, .iterations = STEPS};
    thi_blocks_settings how = {
        .blocks = BATCHES, .anytime = true, .step_blocks = 1, .rho_0 = 0.8, .tau = 0.5, .kappa = 0.7};
    fit(&s, "dtc", some, how);
    answer dtc = ask(&s), svi;
    thi_shape shape = {.latents = 1,
                       .components = 1,
                       .dims = D,
                       .inducing = M,
                       .capacity = N,
                       .whitened = true,
                       .fixed_Z = true,
                       .steps = true};
    assert_ok(ctx, thi_variational_open(&v, ctx, &shape));
    assert_ok(ctx, thi_sites_alloc(&sites, ctx, M));
    assert_ok(ctx, thi_partition_random(&batches, ctx, N, BATCHES));
    thi_shuffle_open(&order, (thi_stream){ctx->seed, THI_RANDOM_SUBSET, THI_SAMPLE_BLOCKS + 1}, BATCHES);
    for (int t = 0; t < STEPS; t++) {
        int64_t b = thi_shuffle_at(&order, t), first = batches.start[b];
        double rho = 0.8 / pow(1.0 + 0.5 * 0.8 * t, 0.7);
        svi_step(&s, v, &sites, Z, batches.start[b + 1] - first, batches.order + first, BATCHES, rho);
    }
    assert_ok(ctx, thi_variational_begin(v, ctx, s.spec.latents.prior, &z, NULL, &sites, true));
    double m[2][M], S[2][M * M];
    thi_predictor mine = s.latent, theirs;
    assert_ok(ctx, thi_variational_freeze(v, ctx, 0, &theirs));
    s.latent = theirs;
    svi = ask(&s);
    assert_same_answer(&dtc, &svi, 1e-8);
    thi_predictor *both[2] = {&mine, &s.latent};
    assert_ok(ctx, thi_predictor_to_precision(both[1], ctx));
    for (int k = 0; k < 2; k++) {
        const thi_matrix *L = &both[k]->L;
        thi_matrix R;
        assert_ok(ctx, thi_predictor_invert_root(both[k], ctx, 0, &R));
        for (int i = 0; i < M; i++) {
            m[k][i] = 0.0;
            for (int j = i; j < M; j++) {
                m[k][i] += L->data[j + i * L->ld] * both[k]->a[j];
            }
            for (int j = 0; j < M; j++) {
                S[k][i + j * M] = thi_blas_dot(M, R.data + i * M, R.data + j * M);
            }
        }
        thi_free(R.data);
    }
    assert_all_near(m[0], m[1], M, 1e-8, 1e-8);
    assert_all_near(S[0], S[1], M * M, 1e-8, 1e-8);
    thi_predictor_clear(&mine);
    thi_sites_free(&sites);
    thi_variational_close(v);
    thi_partition_clear(&batches);
    close_setting(&s);
}

/* --- exact regression ------------------------------------------------------------------------------------------------
 */

enum { SMALL = 80 };

static answer regress(setting *s, double *value)
{
    thi_exact exact;
    const thi_prior *prior = s->spec.latents.prior;
    assert_ok(ctx, thi_exact_open(&exact, ctx, s->rows.n, s->rows.X, s->rows.y));
    assert_ok(ctx, thi_exact_condition(&exact, ctx, prior, s->spec.lik->value[0]));
    *value = exact.log_marginal;
    thi_predictor_clear(&s->latent);
    assert_ok(ctx, thi_predictor_freeze(&s->latent, ctx, &exact, prior));
    return ask(s);
}

/* With every row an inducing input all models but SoR are exact; PIC with one block is with any. */
static void test_exact(void **state)
{
    (void)state;
    setting s;
    double value;
    open_setting(&s, ctx, "matern32", SMALL, fixed);
    thi_variational_settings all = {.Z = s.rows.X, .Z_count = SMALL, .condition = true};
    fit(&s, "fitc", all, (thi_blocks_settings){.blocks = 1});
    answer want = regress(&s, &value);
    for (int f = 1; f < FORMS; f++) {
        for (int blocks = 1; blocks <= 7; blocks += 3) {
            double got = fit(&s, every_form[f], all, (thi_blocks_settings){.blocks = blocks});
            answer a = ask(&s);
            assert_near(got, value, 1e-7, 0.0);
            assert_same_answer(&a, &want, 1e-7);
        }
    }
    thi_variational_settings some = {.inducing = 5, .condition = true};
    fit(&s, "pic", some, (thi_blocks_settings){.blocks = 1});
    answer a = ask(&s);
    assert_same_answer(&a, &want, 1e-8);
    close_setting(&s);
}

/* --- learning --------------------------------------------------------------------------------------------------------
 */

/* The noise that the data have, 0.09, is found from far off, exact and anytime. */
static void test_learned(void **state)
{
    (void)state;
    static const char *const forms[] = {"dtc", "fitc", "pitc", "pic", "0.5 fitc + 0.5 dtc"};
    thi_variational_settings learn = {.inducing = 40};
    for (int f = 0; f < 5; f++) {
        for (int anytime = 0; anytime < 2; anytime++) {
            setting s;
            open_setting(&s, ctx, "se", 3000, "lengthscale~0.6, variance~1, noise~0.4");
            fit(&s, forms[f], learn, (thi_blocks_settings){.blocks = 12, .anytime = anytime != 0});
            answer a = ask(&s);
            double sum = 0.0;
            for (int i = 0; i < TESTS; i++) {
                double gap = a.mean[i] - wave(s.Xtest + i * D);
                sum += gap * gap;
            }
            assert_near(s.spec.lik->value[0], 0.09, 0.15, 0.0);
            assert_near(s.hypers.hyper[s.hypers.noise].value, log(s.spec.lik->value[0]), 1e-7, 0.0);
            assert_true(sqrt(sum / TESTS) < 0.1);
            assert_true(s.result.learn_seconds > 0.0 && s.result.largest >= 250);
            close_setting(&s);
        }
    }
}

/* By sites: the bound of all rows is above that of the first guesses, and most signs are right. */
static void test_learned_sites(void **state)
{
    (void)state;
    static const char *const forms[] = {"fitc", "pic"};
    for (int f = 0; f < 2; f++) {
        setting s;
        int right = 0;
        open_setting_of(&s, ctx, "bernoulli", "se", 1500, "lengthscale~0.3, variance~0.3");
        thi_variational_settings first = {.inducing = 40, .condition = true}, learn = {.inducing = 40};
        double before = fit(&s, forms[f], first, (thi_blocks_settings){.blocks = 6});
        double after = fit(&s, forms[f], learn, (thi_blocks_settings){.blocks = 6});
        answer a = ask(&s);
        for (int i = 0; i < TESTS; i++) {
            right += (a.mean[i] > 0.0) == (wave(s.Xtest + i * D) > 0.0);
        }
        assert_true(after > before + 20.0);
        assert_true(right >= TESTS * 9 / 10);
        assert_int_equal(s.result.blocks, 6);
        close_setting(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),        cmocka_unit_test(test_no_forms),
        cmocka_unit_test(test_one_pass),     cmocka_unit_test(test_no_block_twice),
        cmocka_unit_test(test_part_of_pass), cmocka_unit_test(test_one_step),
        cmocka_unit_test(test_schedule),     cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_svi),          cmocka_unit_test(test_exact),
        cmocka_unit_test(test_learned),      cmocka_unit_test(test_learned_sites),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
