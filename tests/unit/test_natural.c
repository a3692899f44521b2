/* Sums over rows: adding and taking away, the tree's bits, bytes and forged bytes, failing allocations. */
#include "posterior/natural.h"
#include "testing.h"

enum { M = 7, BLOCKS = 37 };

static void fill(thi_natural *sum, int64_t block, uint64_t basis)
{
    thi_stream stream = {1, 2, (uint64_t)block};
    for (int64_t j = 0; j < M; j++) {
        for (int64_t i = j; i < M; i++) {
            sum->T.data[i + j * M] = thi_random_normal(stream, (uint64_t)(i + j * M)) + (i == j ? 10.0 : 0.0);
        }
        sum->t[j] = thi_random_normal(stream, (uint64_t)(1000 + j));
    }
    sum->constant = thi_random_normal(stream, 2000);
    sum->rows = (double)(10 + block);
    sum->basis = basis;
}

static void add_block(thi_natural_tree *tree, thiele_context *ctx, int64_t block)
{
    thi_natural one;
    assert_ok(ctx, thi_natural_open(&one, ctx, M));
    fill(&one, block, 5);
    assert_ok(ctx, thi_natural_tree_add(tree, ctx, block, &one));
    thi_natural_close(&one);
}

static void assert_same(const thi_natural *a, const thi_natural *b)
{
    for (int64_t j = 0; j < M; j++) {
        assert_memory_equal(a->T.data + j + j * M, b->T.data + j + j * M, (size_t)(M - j) * sizeof(double));
    }
    assert_memory_equal(a->t, b->t, M * sizeof(double));
    assert_true(a->constant == b->constant && a->rows == b->rows && a->basis == b->basis);
}

/* The sum over blocks 0 .. BLOCKS - 1 in their order. */
static void in_order(thiele_context *ctx, thi_natural *sum)
{
    thi_natural_tree tree;
    thi_natural_tree_open(&tree, M, 5);
    for (int64_t b = 0; b < BLOCKS; b++) {
        add_block(&tree, ctx, b);
        assert_true(tree.count <= 6);
    }
    assert_ok(ctx, thi_natural_tree_sum(&tree, ctx, sum));
    thi_natural_tree_close(&tree);
}

static void test_adds_and_subtracts(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_natural a, b, c;
    assert_ok(ctx, thi_natural_open(&a, ctx, M));
    assert_ok(ctx, thi_natural_open(&b, ctx, M));
    assert_ok(ctx, thi_natural_open(&c, ctx, M));
    fill(&a, 0, 0);
    fill(&b, 1, 0);
    thi_natural_mix(&c, 0.0, &a, 1.0);
    thi_natural_mix(&c, 1.0, &b, 1.0);
    assert_near(c.rows, 21.0, 0.0, 0.0);
    thi_natural_mix(&c, 1.0, &b, -1.0);
    for (int64_t i = 0; i < M; i++) {
        assert_near(c.t[i], a.t[i], 1e-14, 1e-14);
        assert_near(c.T.data[i], a.T.data[i], 1e-13, 1e-13);
    }
    thi_natural_close(&a);
    thi_natural_close(&b);
    thi_natural_close(&c);
    thiele_context_destroy(ctx);
}

/* Halves of any kind, packed and unpacked, have the bits of one run. */
static void test_same_bits(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_natural whole, sum;
    assert_ok(ctx, thi_natural_open(&whole, ctx, M));
    assert_ok(ctx, thi_natural_open(&sum, ctx, M));
    in_order(ctx, &whole);
    for (int kind = 0; kind < 3; kind++) {
        thi_natural_tree half[2], tree;
        unsigned char *bytes[2];
        size_t length[2];
        thi_natural_tree_open(&half[0], M, 5);
        thi_natural_tree_open(&half[1], M, 5);
        thi_natural_tree_open(&tree, M, 5);
        for (int64_t i = 0; i < BLOCKS; i++) {
            int64_t b = kind == 2 ? BLOCKS - 1 - i : i;
            add_block(&half[kind == 0 ? b >= BLOCKS / 2 : b % 2], ctx, b);
        }
        for (int k = 0; k < 2; k++) {
            assert_ok(ctx, thi_natural_tree_pack(&half[k], ctx, &bytes[k], &length[k]));
            thi_natural_tree_close(&half[k]);
        }
        for (int k = 1; k >= 0; k--) {
            assert_ok(ctx, thi_natural_tree_unpack(&tree, ctx, bytes[k], length[k]));
            thi_free(bytes[k]);
        }
        assert_ok(ctx, thi_natural_tree_sum(&tree, ctx, &sum));
        assert_same(&sum, &whole);
        thi_natural_tree_close(&tree);
    }
    thi_natural_close(&whole);
    thi_natural_close(&sum);
    thiele_context_destroy(ctx);
}

static void test_refusals(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_natural_tree tree, other;
    thi_natural one;
    unsigned char *bytes;
    size_t length;
    assert_ok(ctx, thi_natural_open(&one, ctx, M));
    thi_natural_tree_open(&tree, M, 5);
    add_block(&tree, ctx, 0);
    add_block(&tree, ctx, 1);
    add_block(&tree, ctx, 5);
    fill(&one, 1, 5);
    assert_fails(ctx, thi_natural_tree_add(&tree, ctx, 1, &one), THIELE_ERROR_ARGUMENT, "added before");
    one.basis = 6;
    assert_fails(ctx, thi_natural_tree_add(&tree, ctx, 9, &one), THIELE_ERROR_ARGUMENT, "a different basis");
    assert_ok(ctx, thi_natural_tree_pack(&tree, ctx, &bytes, &length));
    assert_fails(ctx, thi_natural_tree_unpack(&tree, ctx, bytes, length), THIELE_ERROR_ARGUMENT, "added before");
    thi_natural_tree_open(&other, M, 7);
    assert_fails(ctx, thi_natural_tree_unpack(&other, ctx, bytes, length), THIELE_ERROR_ARGUMENT, "a different basis");
    thi_natural_tree_open(&other, M, 5);
    for (size_t cut = 0; cut < length; cut++) {
        assert_int_equal(thi_natural_tree_unpack(&other, ctx, bytes, cut), THIELE_ERROR_FORMAT);
    }
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 16;
        assert_int_equal(thi_natural_tree_unpack(&other, ctx, bytes, length), THIELE_ERROR_FORMAT);
        bytes[i] ^= 16;
    }
    thi_free(bytes);
    thi_natural_close(&one);
    thi_natural_tree_close(&tree);
    thi_natural_tree_close(&other);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adds_and_subtracts),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
