/* Predictors of sparse regression to files and back, to the last bit, and forged ones that must be refused. */
#include "predictor_testing.h"
#include "sparse_testing.h"

static void test_round_trip(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(2);
    for (int kind = 0; kind <= THI_CONDITIONAL_KINDS; kind++) {
        world w;
        thi_predictor p, back;
        pic_answer want, got;
        double mean[2][TESTS], joint[2][TESTS * TESTS];
        thi_tensor_list list = {.ctx = ctx};
        pic_open(&w, ctx, &p);
        if (kind < THI_CONDITIONAL_KINDS) {
            thi_predictor_clear(&p);
            assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, (thi_conditional)kind, &p));
        }
        assert_ok(ctx, thi_predictor_list(&list, &p, NULL, 0));
        json_t *json = thi_predictor_to_json(&p, NULL);
        assert_ok(ctx, through_file(ctx, world_prior(&w), &list, json, &back));
        assert_int_equal(back.conditional, p.conditional);
        assert_int_equal(back.local != NULL, p.local != NULL);
        pic_predict(&p, ctx, w.Xtest, &want);
        pic_predict(&back, ctx, w.Xtest, &got);
        assert_memory_equal(&want, &got, sizeof got);
        assert_ok(ctx, thi_predictor_joint(&p, ctx, 0, TESTS, w.Xtest, mean[0], joint[0]));
        assert_ok(ctx, thi_predictor_joint(&back, ctx, 0, TESTS, w.Xtest, mean[1], joint[1]));
        assert_memory_equal(joint[0], joint[1], sizeof joint[0]);
        json_decref(json);
        thi_tensor_list_clear(&list);
        thi_predictor_clear(&p);
        thi_predictor_clear(&back);
        world_close(&w);
    }
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* The second of two latent functions has the rows of the first and sites of its own: once in memory, once in the file.
 */
static void test_two_latents(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p[2], back[2] = {0};
    thi_tensor_list list = {.ctx = ctx};
    json_t *json = json_array();
    pic_answer want, got;
    pic_open(&w, ctx, &p[0]);
    assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &p[1]));
    assert_ok(ctx, thi_local_share(&p[1].local, ctx, p[0].local));
    thi_local_renew(p[1].local, 2.0 * w.noise);
    assert_ok(ctx, thi_local_hold_sites(p[1].local, ctx));
    for (int i = 0; i < ROWS; i++) {
        p[1].local->lambda[i] = 1.0 + i % 3;
        p[1].local->nu[i] = sin(i);
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(ctx, thi_predictor_list(&list, &p[i], i > 0 ? p : NULL, i));
        assert_int_equal(json_array_append_new(json, thi_predictor_to_json(&p[i], i > 0 ? p : NULL)), 0);
    }
    const thi_tensor *tensor = thi_tensor_list_named(&list);
    for (int i = 0; i < list.count; i++) {
        assert_true(strncmp(tensor[i].name, "f2.local", 8) != 0 ||
                    strstr("f2.local.precisions f2.local.pulls", tensor[i].name));
    }
    assert_ok(ctx, through_file(ctx, world_prior(&w), &list, json, back));
    assert_ptr_equal(back[0].local->X, back[1].local->X);
    thi_predictor_clear(&p[0]); /* whoever is left holds them */
    thi_predictor_clear(&back[0]);
    pic_predict(&p[1], ctx, w.Xtest, &want);
    pic_predict(&back[1], ctx, w.Xtest, &got);
    assert_memory_equal(&want, &got, sizeof got);
    thi_predictor_clear(&p[1]);
    thi_predictor_clear(&back[1]);
    /* Shared with a first one that has none. */
    json_object_del(json_array_get(json, 0), "local");
    thi_tensor_list_clear(&list);
    list.ctx = ctx;
    for (int i = 0; i < 2; i++) {
        assert_ok(ctx, thi_sparse_freeze(&w.sparse, ctx, THI_CONDITIONAL_FULL, &p[i]));
        assert_ok(ctx, thi_local_attach(&p[i], ctx, &w.partition, w.X, w.y, w.noise));
        assert_ok(ctx, thi_predictor_list(&list, &p[i], i > 0 ? p : NULL, i));
    }
    json_object_set_new(json_object_get(json_array_get(json, 1), "local"), "sites", json_false());
    assert_fails(ctx, through_file(ctx, world_prior(&w), &list, json, back), THIELE_ERROR_FORMAT, "'shared'");
    for (int i = 0; i < 2; i++) {
        thi_predictor_clear(&p[i]);
        thi_predictor_clear(&back[i]);
    }
    thi_tensor_list_clear(&list);
    json_decref(json);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* One change to the text or the numbers, and what is said of it. */
typedef struct forgery {
    const char *change; /* merged into the text */
    const char *tensor; /* its first number becomes `value`, unless NULL */
    double value;
    const char *message;
} forgery;

static const forgery forgeries[] = {
    {"{\"conditional\": \"half\"}", NULL, 0, "'latents'"},
    {"{\"conditional\": 2}", NULL, 0, "'latents'"},
    {"{\"conditional\": \"none\"}", NULL, 0, "'local'"},
    {"{\"local\": 3}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 60, \"blocks\": 5}}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 60, \"blocks\": 5, \"noise\": 0}}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 60, \"blocks\": 5, \"noise\": -0.5}}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 60, \"blocks\": 0, \"noise\": 0.1}}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 60, \"blocks\": 61, \"noise\": 0.1}}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 6e1, \"blocks\": 5, \"noise\": 0.1}}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 9223372036854775807, \"blocks\": 5, \"noise\": 0.1}}", NULL, 0, "'local'"},
    {"{\"local\": {\"rows\": 61, \"blocks\": 5, \"noise\": 0.1}}", NULL, 0, "local.inputs"},
    {"{\"local\": {\"rows\": 60, \"blocks\": 4, \"noise\": 0.1}}", NULL, 0, "local.centres"},
    {"{}", "local.sizes", 0.0, "local.sizes"},
    {"{}", "local.sizes", -3.0, "local.sizes"},
    {"{}", "local.sizes", 2.5, "local.sizes"},
    {"{}", "local.sizes", 1e300, "local.sizes"},
    {"{}", "local.sizes", 1.0, "add up to 60 rows"},
    {"{}", "local.sizes", NAN, "local.sizes"},
    {"{}", "local.inputs", INFINITY, "local.inputs"},
    {"{}", "local.targets", NAN, "local.targets"},
    {"{}", "local.centres", -INFINITY, "local.centres"},
    {"{}", "local.scale", NAN, "local.scale"},
    {"{}", "local.marks", 1e9, "local.marks"},
    {"{}", "local.marks", NAN, "local.marks"},
};

static void test_forged(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    world w;
    thi_predictor p, back;
    pic_open(&w, ctx, &p);
    assert_ok(ctx, thi_alloc(ctx, &p.local->partition.mark, BLOCKS, sizeof(double)));
    for (int b = 0; b < BLOCKS; b++) {
        p.local->partition.mark[b] = b;
    }
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        const forgery *f = &forgeries[i];
        thi_tensor_list list = {.ctx = ctx};
        assert_ok(ctx, thi_predictor_list(&list, &p, NULL, 0));
        json_t *json = thi_predictor_to_json(&p, NULL), *change = json_loads(f->change, 0, NULL);
        json_object_update(json, change);
        double kept = 0.0, *place = NULL;
        for (int t = 0; f->tensor != NULL && t < list.count; t++) {
            if (strcmp(list.name[t], f->tensor) == 0) {
                place = (double *)list.tensor[t].data;
            }
        }
        assert_true(f->tensor == NULL || place != NULL);
        if (place != NULL) {
            kept = *place;
            *place = f->value;
        }
        assert_fails(ctx, through_file(ctx, world_prior(&w), &list, json, &back), THIELE_ERROR_FORMAT, f->message);
        if (place != NULL) {
            *place = kept;
        }
        thi_predictor_clear(&back);
        json_decref(json);
        json_decref(change);
        thi_tensor_list_clear(&list);
    }
    thi_predictor_clear(&p);
    world_close(&w);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_two_latents),
                                       cmocka_unit_test(test_forged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
