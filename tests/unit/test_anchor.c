/*
 * Observations in place of rows (fit/anchor.h), kept rows and the schedule of a stream's parameters: the same basis
 * gives the same sites; a basis that holds the old one knows as much; what a change looks like; the ring.
 */
#include "sparse_testing.h"
#include "testing_context.h"

#include "fit/carry.h"
#include "fit/schedule.h"

/* A learner of the world's rows, on inducing inputs of its own or (wider) with more beside them. */
typedef struct learner {
    thi_predictor p;
    thiele_likelihood *lik;
    thi_online online;
} learner;

static void learner_open(learner *l, const world *w, int64_t M, const double *Z)
{
    const thi_online_settings settings = {.capacity = ROWS, .weight = {[THI_RESIDUAL_NONE] = 1.0}};
    thi_prior prior = world_prior(w);
    thi_inputs inputs = {0};
    double jitter;
    memset(l, 0, sizeof *l);
    assert_ok(ctx, thiele_likelihood_parse(&l->lik, ctx, "gaussian(noise=0.11)", 1, 0));
    assert_ok(ctx, thi_predictor_begin(&l->p, ctx, &prior, M, Z, 1));
    assert_ok(ctx, thi_inputs_make(&inputs, ctx, l->p.kernel, M, l->p.basis));
    assert_ok(ctx, thi_kernel_fill(l->p.kernel, ctx, &inputs, &inputs, l->p.L, true));
    assert_ok(ctx, thi_chol_jitter(ctx, l->p.L, &jitter));
    assert_ok(ctx, thi_alloc(ctx, &l->p.R, 1, sizeof *l->p.R));
    assert_ok(ctx, thi_matrix_alloc(l->p.R, ctx, M, M));
    for (int64_t i = 0; i < M; i++) {
        l->p.R->data[i + i * M] = 1.0;
    }
    l->p.plus = THI_PLUS_PRECISION;
    thi_inputs_clear(&inputs);
    assert_ok(ctx, thi_predictor_finish(&l->p, ctx));
    assert_ok(ctx, thi_online_open(&l->online, ctx, 1, &l->p, l->lik, &settings));
}

static void learner_close(learner *l)
{
    thi_online_close(&l->online);
    thi_predictor_clear(&l->p);
    thiele_likelihood_destroy(l->lik);
}

static void learn(learner *l, const world *w, int64_t n)
{
    double mu[ROWS], v[ROWS];
    assert_ok(ctx, thi_online_predict(&l->online, ctx, n, w->X, NULL, mu, v));
    assert_ok(ctx, thi_online_learn(&l->online, ctx, w->y, 0));
}

/* sites of the anchor of one learner as another sees them */
static void carry(const learner *from, const learner *to, double power, thi_natural *sum)
{
    thi_anchor anchor;
    thi_anchored seen;
    assert_ok(ctx, thi_anchor_take(&anchor, ctx, from->online.latent, &from->online.latent->sum));
    assert_ok(ctx, thi_anchored_open(&seen, ctx, &anchor, to->online.latent));
    assert_ok(ctx, thi_natural_open(sum, ctx, to->p.n));
    assert_ok(ctx, thi_anchored_sites(&seen, ctx, power, sum));
    thi_anchored_close(&seen);
    thi_anchor_close(&anchor);
}

/* Rounding goes through the inverse of a factor, twice. */
#define NEAR 1e-6

static void test_same_basis(void **state)
{
    (void)state;
    world w;
    learner l;
    thi_natural sum;
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    learner_open(&l, &w, w.M, w.Z);
    learn(&l, &w, ROWS);
    for (int k = 0; k < 3; k++) {
        double power = k == 0 ? 1.0 : k == 1 ? 0.25 : 0.0;
        carry(&l, &l, power, &sum);
        for (int64_t c = 0; c < w.M; c++) {
            for (int64_t i = c; i < w.M; i++) {
                assert_near(sum.T.data[i + c * w.M], power * l.online.latent->sum.T.data[i + c * w.M], NEAR, NEAR);
            }
            assert_near(sum.t[c], power * l.online.latent->sum.t[c], NEAR, NEAR);
        }
        thi_natural_close(&sum);
    }
    learner_close(&l);
    world_close(&w);
}

/* More inducing inputs beside the old ones: predictions at the old ones are the same. */
static void test_wider_basis(void **state)
{
    (void)state;
    world w;
    learner l, wide;
    thi_natural sum;
    double Z[DIMS * 64], mu[2][64], v[2][64];
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    memcpy(Z, w.Z, (size_t)(DIMS * w.M) * sizeof *Z);
    memcpy(Z + DIMS * w.M, w.Xtest, (size_t)(DIMS * 3) * sizeof *Z);
    learner_open(&l, &w, w.M, w.Z);
    learner_open(&wide, &w, w.M + 3, Z);
    learn(&l, &w, ROWS);
    carry(&l, &wide, 1.0, &sum);
    assert_ok(ctx, thi_online_put(&wide.online, ctx, 0, &sum));
    assert_ok(ctx, thi_online_predict(&l.online, ctx, w.M, w.Z, NULL, mu[0], v[0]));
    assert_ok(ctx, thi_online_predict(&wide.online, ctx, w.M, w.Z, NULL, mu[1], v[1]));
    assert_all_near(mu[1], mu[0], w.M, NEAR, NEAR);
    assert_all_near(v[1], v[0], w.M, NEAR, NEAR);
    thi_natural_close(&sum);
    learner_close(&l);
    learner_close(&wide);
    world_close(&w);
}

/* Rows taken out again leave what was known before them; with an anchor of that they are learned again. */
static void test_carry(void **state)
{
    (void)state;
    enum { OLD = ROWS / 2 };
    world w;
    learner l, other;
    thi_natural sum;
    thi_anchor anchor;
    double lambda[ROWS], nu[ROWS], mu[2][TESTS], v[2][TESTS];
    thi_row_sites sites = {.lambda = lambda, .nu = nu};
    world_open(&w, ctx, PIC_KERNEL, THI_MEAN_LINEAR);
    /* One function, so that the old rows have all their weight. */
    for (int64_t i = 0; i < ROWS; i++) {
        w.y[i] = 0.5 * sin(w.X[DIMS * i]);
    }
    learner_open(&l, &w, w.M, w.Z);
    learner_open(&other, &w, w.M, w.Z);
    learn(&l, &w, ROWS);
    const thi_rows rows = {.n = ROWS - OLD, .dims = DIMS, .outputs = 1, .X = w.X + DIMS * OLD, .y = w.y + OLD};
    assert_ok(ctx, thi_carry_find(&l.online, ctx, &rows, sites));
    assert_ok(ctx, thi_natural_open(&sum, ctx, w.M));
    assert_ok(ctx, thi_carry_without(&l.online, ctx, &rows, sites, &sum));
    learn(&other, &w, OLD);
    for (int64_t c = 0; c < w.M; c++) {
        assert_all_near(sum.T.data + c + c * w.M, other.online.latent->sum.T.data + c + c * w.M, w.M - c, 1e-9, 1e-9);
    }
    assert_ok(ctx, thi_anchor_take(&anchor, ctx, l.online.latent, &sum));
    assert_ok(ctx, thi_carry_learn(&other.online, ctx, &anchor, &rows, sites));
    assert_ok(ctx, thi_online_predict(&l.online, ctx, TESTS, w.Xtest, NULL, mu[0], v[0]));
    assert_ok(ctx, thi_online_predict(&other.online, ctx, TESTS, w.Xtest, NULL, mu[1], v[1]));
    assert_all_near(mu[1], mu[0], TESTS, NEAR, NEAR);
    assert_all_near(v[1], v[0], TESTS, NEAR, NEAR);
    thi_anchor_close(&anchor);
    thi_natural_close(&sum);
    learner_close(&l);
    learner_close(&other);
    world_close(&w);
}

static void test_kept(void **state)
{
    (void)state;
    thi_kept kept = {0}, copy;
    double X[7], y[7], nu[7];
    for (int i = 0; i < 7; i++) {
        X[i] = y[i] = nu[i] = i;
    }
    y[2] = NAN;
    const thi_rows rows = {.n = 7, .dims = 1, .outputs = 1, .X = X, .y = y};
    assert_ok(ctx, thi_kept_resize(&kept, ctx, 4, 1, 1, 1));
    thi_kept_add(&kept, &rows, nu, nu);
    assert_int_equal(kept.rows.n, 4);
    thi_kept_fade(&kept, 0.5);
    assert_ok(ctx, thi_kept_copy(&copy, ctx, &kept));
    assert_ok(ctx, thi_kept_sort(&copy, ctx));
    for (int i = 0; i < 4; i++) {
        assert_true(copy.rows.X[i] == 3 + i && copy.nu[i] == 0.5 * (3 + i) && copy.weight[i] == 0.5);
    }
    thi_kept_add(&copy, &(thi_rows){.n = 1, .dims = 1, .outputs = 1, .X = X, .y = y}, nu, nu);
    assert_true(thi_kept_oldest(&copy) == 0.5);
    assert_ok(ctx, thi_kept_sort(&copy, ctx));
    assert_true(copy.rows.X[0] == 4.0 && copy.rows.X[3] == 0.0 && copy.weight[3] == 1.0);
    thi_kept_drop(&copy, 0.7, 2);
    assert_true(copy.rows.n == 2 && copy.rows.X[0] == 6.0 && copy.rows.X[1] == 0.0 && copy.nu[0] == 3.0);
    thi_kept_add(&copy, &rows, nu, nu);
    assert_true(copy.rows.n == 4 && thi_kept_oldest(&copy) == 1.0);
    assert_ok(ctx, thi_kept_resize(&kept, ctx, 2, 1, 1, 1));
    assert_true(kept.rows.n == 2 && kept.rows.y[0] == 5.0 && kept.rows.y[1] == 6.0);
    thi_kept_close(&kept);
    thi_kept_close(&copy);
}

static void test_schedule(void **state)
{
    (void)state;
    thi_schedule s;
    int64_t times = 0, gap = 0;
    thi_schedule_begin(&s, 0, 0, 0);
    for (int64_t batch = 0; batch < 1000; batch++) {
        assert_false(thi_schedule_batch(&s, 1000, 0.05 * sin((double)batch)));
        if (thi_schedule_due(&s)) {
            gap = s.rows - s.last;
            times++;
            thi_schedule_done(&s);
        }
    }
    assert_true(times > 15 && times < 30 && gap > 60000 && gap < 70000);
    thi_schedule_batch(&s, 1000, 0.0);
    assert_true(thi_schedule_batch(&s, 1000, 0.5));
    assert_int_equal(s.begun, s.rows - 1000);
    thi_schedule_batch(&s, 1000, 0.5);
    assert_true(thi_schedule_due(&s));
    /* A small batch may stray further. */
    thi_schedule_done(&s);
    thi_schedule_batch(&s, 10, 0.0);
    assert_false(thi_schedule_batch(&s, 10, 1.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_basis), cmocka_unit_test(test_wider_basis), cmocka_unit_test(test_carry),
        cmocka_unit_test(test_kept),       cmocka_unit_test(test_schedule),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
