/*
 * Sums over rows in whole numbers: they are those of the rows, whatever the order, the cut and the number of threads;
 * joining, leaving, bytes; rows that are too far out; forged bytes; failing allocations.
 */
#include "posterior/tally.h"
#include "testing.h"

enum { M = 37, ROWS = 500 };

typedef struct world {
    double V[M * ROWS], weight[ROWS], residual[ROWS], unexplained[ROWS];
} world;
static world w;

static void make_world(void)
{
    for (int64_t i = 0; i < ROWS; i++) {
        thi_stream s = {3, THI_RANDOM_DEMO, (uint64_t)i};
        for (int64_t k = 0; k < M; k++) {
            w.V[k + i * M] = 0.3 * thi_random_normal(s, (uint64_t)k) * pow(10.0, -(double)(k % 5));
        }
        w.weight[i] = i % 9 == 0 ? 0.0 : thi_random_uniform(s, 1000);
        w.residual[i] = thi_random_normal(s, 1001);
        w.unexplained[i] = thi_random_uniform(s, 1002);
    }
}

static thi_tally_rows rows_of(int64_t first, int64_t n)
{
    return (thi_tally_rows){n, thi_matrix_view(w.V + first * M, M, n, M), w.weight + first, w.residual + first,
                            w.unexplained + first};
}

static void add(thi_tally *tally, thiele_context *ctx, int64_t first, int64_t n)
{
    thi_tally_desk desk;
    thi_tally_rows rows = rows_of(first, n);
    int64_t bad;
    assert_ok(ctx, thi_tally_desk_open(&desk, ctx, M, n));
    assert_ok(ctx, thi_tally_add(tally, ctx, &desk, &rows, &bad));
    thi_tally_desk_close(&desk);
}

static void assert_same(const thi_tally *a, const thi_tally *b)
{
    size_t bytes = thi_tally_bytes(M);
    unsigned char *one = malloc(bytes), *two = malloc(bytes);
    thi_tally_pack(a, one);
    thi_tally_pack(b, two);
    assert_memory_equal(one, two, bytes);
    free(one);
    free(two);
}

static void test_is_the_sum(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_tally tally;
    thi_natural sum;
    double spared, want_spared = 0.0, constant = 0.0, noise = 0.25;
    assert_ok(ctx, thi_tally_open(&tally, ctx, M, 1.0, 1.3));
    assert_ok(ctx, thi_natural_open(&sum, ctx, M));
    add(&tally, ctx, 0, ROWS);
    thi_tally_natural(&tally, noise, &sum, &spared);
    int64_t rows = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        if (w.weight[i] > 0.0) {
            double r = w.residual[i];
            constant -= 0.5 * (w.weight[i] * r * r / noise + log(2.0 * M_PI * noise / w.weight[i]));
            want_spared += log1p(w.unexplained[i]);
            rows++;
        }
    }
    assert_int_equal(tally.rows, rows);
    assert_near(sum.constant, constant, 1e-10, 0.0);
    assert_near(spared, want_spared, 1e-10, 0.0);
    for (int64_t j = 0; j < M; j++) {
        double t = 0.0;
        for (int64_t i = 0; i < ROWS; i++) {
            t += w.weight[i] * w.V[j + i * M] * w.residual[i] / noise;
        }
        assert_near(sum.t[j], t, 1e-9, 1e-9);
        for (int64_t k = j; k < M; k++) {
            double T = 0.0;
            for (int64_t i = 0; i < ROWS; i++) {
                T += w.weight[i] * w.V[j + i * M] * w.V[k + i * M] / noise;
            }
            assert_near(sum.T.data[k + j * M], T, 1e-9, 1e-9);
        }
    }
    thi_natural_close(&sum);
    thi_tally_close(&tally);
    thiele_context_destroy(ctx);
}

/* Cuts of all kinds, from the last rows to the first, on three threads; x beyond the scale, where there is a third
 * digit, too. */
static void test_any_cut(void **state)
{
    (void)state;
    thiele_context *one = test_context(1), *three = test_context(3);
    for (int scale = 0; scale < 2; scale++) {
        double unit = scale == 0 ? 1.0 : 1.0 / 32.0;
        for (int64_t width = 1; width <= ROWS; width = 3 * width + 1) {
            thi_tally whole, parts, joined;
            assert_ok(one, thi_tally_open(&whole, one, M, unit, 1.0));
            assert_ok(three, thi_tally_open(&parts, three, M, unit, 1.0));
            assert_ok(three, thi_tally_open(&joined, three, M, unit, 1.0));
            add(&whole, one, 0, ROWS);
            for (int64_t end = ROWS; end > 0; end -= width) {
                int64_t first = thi_most(0, end - width);
                thi_tally part;
                add(&parts, three, first, end - first);
                assert_ok(three, thi_tally_open(&part, three, M, unit, 1.0));
                add(&part, three, first, end - first);
                assert_ok(three, thi_tally_join(&joined, three, &part));
                thi_tally_close(&part);
            }
            assert_same(&whole, &parts);
            assert_same(&whole, &joined);
            thi_tally_leave(&joined, &parts);
            thi_tally_zero(&parts);
            assert_same(&joined, &parts);
            thi_tally_close(&whole);
            thi_tally_close(&parts);
            thi_tally_close(&joined);
        }
    }
    thiele_context_destroy(one);
    thiele_context_destroy(three);
}

static void test_far_rows(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    const double far[] = {1e9, 1e300, NAN, INFINITY};
    thi_tally tally;
    thi_tally_desk desk;
    assert_ok(ctx, thi_tally_open(&tally, ctx, M, 1.0, 1.0));
    assert_ok(ctx, thi_tally_desk_open(&desk, ctx, M, ROWS));
    for (int k = 0; k < 8; k++) {
        thi_tally_rows rows = rows_of(0, 20);
        int64_t bad = -1;
        double *at = k < 4 ? &w.V[M * 13 + 5] : &w.residual[13], old = *at;
        *at = far[k % 4];
        assert_fails(ctx, thi_tally_add(&tally, ctx, &desk, &rows, &bad), THIELE_ERROR_DATA, "too far out");
        assert_int_equal(bad, 13);
        *at = old;
        thi_tally_zero(&tally);
    }
    tally.rows = THI_TALLY_MOST;
    thi_tally_rows rows = rows_of(0, 20);
    int64_t bad;
    assert_fails(ctx, thi_tally_add(&tally, ctx, &desk, &rows, &bad), THIELE_ERROR_LIMIT, "at most");
    thi_tally_desk_close(&desk);
    thi_tally_close(&tally);
    thiele_context_destroy(ctx);
}

static void test_bytes(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    size_t length = thi_tally_bytes(M);
    unsigned char *bytes = malloc(length);
    thi_tally tally, back;
    assert_ok(ctx, thi_tally_open(&tally, ctx, M, 1.0, 1.0));
    assert_ok(ctx, thi_tally_open(&back, ctx, M, 1.0, 1.0));
    add(&tally, ctx, 0, ROWS);
    thi_tally_pack(&tally, bytes);
    assert_ok(ctx, thi_tally_unpack(&back, ctx, bytes));
    assert_same(&tally, &back);
    /* More rows than there can be; sums that so many rows cannot have. */
    const size_t forged[] = {7, 8 + 15, 8 + 31, 8 + 47, 8 + 16 * (3 + M) + 15, 8 + 16 * (3 + M + 1) + 14};
    for (size_t k = 0; k < sizeof forged / sizeof *forged; k++) {
        bytes[forged[k]] ^= 0x40;
        assert_fails(ctx, thi_tally_unpack(&back, ctx, bytes), THIELE_ERROR_FORMAT, "damaged or forged");
        bytes[forged[k]] ^= 0x40;
    }
    thi_tally_close(&tally);
    thi_tally_close(&back);
    free(bytes);
    thiele_context_destroy(ctx);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thiele_status status = THIELE_ERROR_MEMORY;
    for (int64_t nth = 1; status != THIELE_OK; nth++) {
        thi_tally tally;
        thi_tally_desk desk;
        thi_fail_allocation(ctx, nth, false);
        status = thi_tally_open(&tally, ctx, M, 1.0, 1.0);
        thiele_status second = thi_tally_desk_open(&desk, ctx, M, 20);
        thi_fail_allocation(ctx, 0, false);
        status = status == THIELE_OK ? second : status;
        assert_true(status == THIELE_OK || status == THIELE_ERROR_MEMORY);
        thi_tally_close(&tally);
        thi_tally_desk_close(&desk);
        assert_int_equal(thi_memory_held(ctx), 0);
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    make_world();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_the_sum),
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_far_rows),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
