/* Predictors of decoupled posteriors to files and back, to the last bit, and forged ones that must be refused. */
#include "decoupled_testing.h"
#include "predictor_testing.h"

static void freeze(world *w, thiele_context *ctx, thi_predictor *p)
{
    thi_prior prior = world_prior(w);
    thi_decoupled_q q = world_q(w);
    assert_ok(ctx, thi_decoupled_begin(w->engine, ctx, &prior, &q));
    assert_ok(ctx, thi_decoupled_freeze(w->engine, ctx, 0, p));
}

static void test_round_trip(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (int kind = 0; kind < 8; kind++) {
        world w;
        thi_predictor p, back;
        double mean[2][TESTS], variance[2][TESTS];
        int64_t clipped = 0;
        thi_tensor_list list = {.ctx = ctx};
        world_open(&w, ctx, SE_KERNEL, kind & 1, kind & 2);
        w.n_beta = kind & 4 ? 0 : BETA;
        freeze(&w, ctx, &p);
        assert_ok(ctx, thi_predictor_list(&list, &p, NULL, 0));
        json_t *json = thi_predictor_to_json(&p, NULL);
        assert_ok(ctx, through_file(ctx, world_prior(&w), &list, json, &back));
        assert_int_equal(back.mean_n, p.mean_n);
        assert_ok(ctx, thi_predictor_marginals(&p, ctx, TESTS, w.Xtest, mean[0], variance[0], &clipped));
        assert_ok(ctx, thi_predictor_marginals(&back, ctx, TESTS, w.Xtest, mean[1], variance[1], &clipped));
        assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
        assert_memory_equal(variance[0], variance[1], sizeof variance[0]);
        json_decref(json);
        thi_tensor_list_clear(&list);
        thi_predictor_clear(&p);
        thi_predictor_clear(&back);
        world_close(&w);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* One change to the text or the numbers, and what is said of it. */
static const struct {
    const char *change; /* merged into the text */
    const char *tensor; /* its first number becomes `value`, unless NULL */
    double value;
    const char *message;
} forgeries[] = {
    {"{\"mean_basis\": 0}", NULL, 0, "'latents'"},
    {"{\"mean_basis\": -3}", NULL, 0, "'latents'"},
    {"{\"mean_basis\": \"all\"}", NULL, 0, "'latents'"},
    {"{\"mean_basis\": 9223372036854775807}", NULL, 0, "'latents'"},
    {"{\"mean_basis\": 18}", NULL, 0, "weights"},
    {"{\"basis\": -1}", NULL, 0, "'latents'"},
    {"{\"basis\": 0}", NULL, 0, "'latents'"},
    {"{\"local\": {\"rows\": 6, \"blocks\": 1, \"noise\": 1}}", NULL, 0, "'latents'"},
    {"{}", "mean_inputs", NAN, "mean_inputs"},
    {"{}", "mean_stretch", INFINITY, "mean_stretch"},
    {"{}", "mean_stretch", 101.0, "out of all proportion"},
    {"{}", "stretch", -1e9, "out of all proportion"},
};

static void test_forged(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p, back;
    world_open(&w, ctx, SE_KERNEL, true, true);
    freeze(&w, ctx, &p);
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        thi_tensor_list list = {.ctx = ctx};
        assert_ok(ctx, thi_predictor_list(&list, &p, NULL, 0));
        json_t *json = thi_predictor_to_json(&p, NULL), *change = json_loads(forgeries[i].change, 0, NULL);
        double *number = NULL, kept = 0.0;
        assert_int_equal(json_object_update(json, change), 0);
        for (int k = 0; forgeries[i].tensor != NULL && k < list.count; k++) {
            if (strcmp(list.name[k], forgeries[i].tensor) == 0) {
                number = (double *)list.tensor[k].data;
                kept = *number;
                *number = forgeries[i].value;
            }
        }
        assert_true((number != NULL) == (forgeries[i].tensor != NULL));
        assert_fails(ctx, through_file(ctx, world_prior(&w), &list, json, &back), THIELE_ERROR_FORMAT,
                     forgeries[i].message);
        thi_predictor_clear(&back);
        if (number != NULL) {
            *number = kept;
        }
        json_decref(json);
        json_decref(change);
        thi_tensor_list_clear(&list);
    }
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* A kernel that has no such length-scales. */
static void test_other_kernel(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p, back;
    thi_tensor_list list = {.ctx = ctx};
    world_open(&w, ctx, SE_KERNEL, true, true);
    freeze(&w, ctx, &p);
    assert_ok(ctx, thi_predictor_list(&list, &p, NULL, 0));
    json_t *json = thi_predictor_to_json(&p, NULL);
    thiele_kernel_destroy(w.kernel);
    assert_ok(ctx, thiele_kernel_parse(&w.kernel, ctx, "rq", DIMS, NULL));
    assert_fails(ctx, through_file(ctx, world_prior(&w), &list, json, &back), THIELE_ERROR_FORMAT,
                 "that its kernel lacks");
    thi_predictor_clear(&back);
    json_decref(json);
    thi_tensor_list_clear(&list);
    thi_predictor_clear(&p);
    world_close(&w);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_other_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
