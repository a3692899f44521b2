/* Minibatches: each epoch is a permutation for every n, positions and neighbours are uniform, batches are even. */
#include "testing.h"

#include "data/batches.h"

/* Each of 0..n-1 once. */
static void assert_permutation(const int64_t *row, int64_t n)
{
    char *seen = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++) {
        assert_in_range(row[i], 0, n - 1);
        assert_int_equal(seen[row[i]]++, 0);
    }
    free(seen);
}

static void assert_shuffle_is_permutation(int64_t n, uint64_t seed)
{
    int64_t *row = malloc((size_t)n * sizeof *row);
    thi_shuffle shuffle;
    thi_shuffle_open(&shuffle, (thi_stream){seed, THI_RANDOM_SPLIT, 3}, n);
    for (int64_t i = 0; i < n; i++) {
        row[i] = thi_shuffle_at(&shuffle, i);
    }
    assert_permutation(row, n);
    free(row);
}

static void test_bijection(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 300; n++) {
        assert_shuffle_is_permutation(n, (uint64_t)n);
    }
    for (int bits = 9; bits <= 18; bits++) {
        for (int64_t n = (INT64_C(1) << bits) - 1; n <= (INT64_C(1) << bits) + 1; n++) {
            assert_shuffle_is_permutation(n, 5);
        }
    }
}

/* Numbers so large that no table could hold them: still inside, and different. */
static void test_huge(void **state)
{
    (void)state;
    const int64_t sizes[] = {(INT64_C(1) << 40) + 1, INT64_MAX};
    for (size_t s = 0; s < 2; s++) {
        thi_shuffle shuffle;
        thi_shuffle_open(&shuffle, (thi_stream){1, THI_RANDOM_SPLIT, 0}, sizes[s]);
        int64_t drawn[64];
        for (int i = 0; i < 64; i++) {
            drawn[i] = thi_shuffle_at(&shuffle, i % 2 == 0 ? i : sizes[s] - i);
            assert_true(drawn[i] >= 0 && drawn[i] < sizes[s]);
            for (int j = 0; j < i; j++) {
                assert_true(drawn[j] != drawn[i]);
            }
        }
    }
}

/* Pearson's statistic of counts that should all be `expected`, as standard deviations from its mean. */
static double chi_square_score(const int64_t *count, int64_t cells, double expected, double freedom)
{
    double sum = 0.0;
    for (int64_t i = 0; i < cells; i++) {
        double off = (double)count[i] - expected;
        sum += off * off / expected;
    }
    return (sum - freedom) / sqrt(2.0 * freedom);
}

/* Where each number stands, and which number follows which, over many orders. Seeds are fixed; 4 sd is 1 in 30,000. */
static void test_uniform(void **state)
{
    (void)state;
    const int64_t sizes[] = {2, 3, 5, 8, 17, 31, 64, 65};
    enum { ORDERS = 40000, MOST = 65 };
    static int64_t position[MOST * MOST], follows[MOST * MOST];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        memset(position, 0, sizeof position);
        memset(follows, 0, sizeof follows);
        for (int64_t order = 0; order < ORDERS; order++) {
            thi_shuffle shuffle;
            thi_shuffle_open(&shuffle, (thi_stream){11, THI_RANDOM_SPLIT, (uint64_t)order}, n);
            int64_t before = -1;
            for (int64_t i = 0; i < n; i++) {
                int64_t value = thi_shuffle_at(&shuffle, i);
                position[i * n + value]++;
                if (before >= 0) {
                    /* The pairs (a, b), a != b, numbered without gaps. */
                    follows[before * (n - 1) + value - (value > before)]++;
                }
                before = value;
            }
        }
        double freedom = (double)((n - 1) * (n - 1));
        double score = chi_square_score(position, n * n, (double)ORDERS / (double)n, freedom);
        assert_true(fabs(score) < 4.0);
        if (n > 2) {
            /* Each order has n - 1 of the n (n - 1) pairs. They are not independent: the score is only about normal. */
            score = chi_square_score(follows, n * (n - 1), (double)ORDERS / (double)n, (double)(n * (n - 1)));
            assert_true(score < 6.0);
        }
    }
}

/* The share of pairs of rows that are together in a batch: what the noise of a minibatch gradient depends on. */
static void test_together(void **state)
{
    (void)state;
    enum { N = 40, B = 10, EPOCHS = 20000 };
    static int64_t together[N * N];
    memset(together, 0, sizeof together);
    thi_batches batches;
    thi_batches_open(&batches, (thi_stream){3, THI_RANDOM_SPLIT, 0}, N, B, 1);
    int64_t row[B];
    for (int64_t step = 0; step < EPOCHS * batches.per_epoch; step++) {
        int64_t count = thi_batches_rows(&batches, step, row);
        for (int64_t i = 0; i < count; i++) {
            for (int64_t j = 0; j < count; j++) {
                together[row[i] * N + row[j]] += i != j;
            }
        }
    }
    /* A binomial of EPOCHS trials, 9/39 each: the worst of 780 pairs stays within 4.5 sd. */
    double p = (B - 1.0) / (N - 1.0);
    double sd = sqrt(EPOCHS * p * (1.0 - p));
    for (int i = 0; i < N; i++) {
        assert_int_equal(together[i * N + i], 0);
        for (int j = 0; j < i; j++) {
            assert_true(fabs((double)together[i * N + j] - EPOCHS * p) < 4.5 * sd);
        }
    }
}

/* One epoch of batches as a list; sizes are even. */
static void read_epoch(const thi_batches *batches, int64_t epoch, int64_t *row)
{
    int64_t filled = 0;
    for (int64_t b = 0; b < batches->per_epoch; b++) {
        int64_t count = thi_batches_rows(batches, epoch * batches->per_epoch + b, row + filled);
        assert_true(count == batches->largest || count == batches->rows / batches->per_epoch);
        filled += count;
    }
    assert_int_equal(filled, batches->rows);
}

static void test_epochs(void **state)
{
    (void)state;
    const int64_t sizes[][3] = {{1000, 100, 1}, {1000, 300, 1}, {1001, 1000, 1}, {7, 3, 1},    {1000, 999, 1},
                                {1000, 100, 8}, {1003, 64, 10}, {50, 7, 49},     {50, 7, 500}, {3, 1, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s][0];
        thi_batches batches;
        thi_batches_open(&batches, (thi_stream){1, THI_RANDOM_SPLIT, 0}, n, sizes[s][1], sizes[s][2]);
        assert_true(batches.largest <= sizes[s][1]);
        assert_int_equal(batches.per_epoch, (n + sizes[s][1] - 1) / sizes[s][1]);
        int64_t *first = malloc((size_t)n * sizeof *first);
        int64_t *second = malloc((size_t)n * sizeof *second);
        read_epoch(&batches, 0, first);
        read_epoch(&batches, 1, second);
        assert_permutation(first, n);
        assert_permutation(second, n);
        assert_true(n < 10 || memcmp(first, second, (size_t)n * sizeof *first) != 0);
        /* A batch does not depend on those asked for before it. */
        int64_t *again = malloc((size_t)batches.largest * sizeof *again);
        int64_t count = thi_batches_rows(&batches, 0, again);
        assert_memory_equal(again, first, (size_t)count * sizeof *again);
        free(again);
        free(second);
        free(first);
    }
}

static void test_whole(void **state)
{
    (void)state;
    int64_t row[5];
    for (int64_t batch = 5; batch <= 5000; batch *= 10) {
        thi_batches batches;
        thi_batches_open(&batches, (thi_stream){1, THI_RANDOM_SPLIT, 0}, 5, batch, 1);
        assert_int_equal(batches.largest, 5);
        for (int64_t step = 0; step < 3; step++) {
            assert_int_equal(thi_batches_rows(&batches, step, row), 5);
            for (int i = 0; i < 5; i++) {
                assert_int_equal(row[i], i);
            }
        }
    }
    thi_batches one;
    thi_batches_open(&one, (thi_stream){1, THI_RANDOM_SPLIT, 0}, 1, 1, 1);
    assert_int_equal(thi_batches_rows(&one, 9, row), 1);
    assert_int_equal(row[0], 0);
}

/* Rows of a run follow each other, on the ring of rows; their borders move from epoch to epoch. */
static void test_runs(void **state)
{
    (void)state;
    enum { N = 1003, RUN = 10 };
    thi_batches batches;
    thi_batches_open(&batches, (thi_stream){1, THI_RANDOM_SPLIT, 0}, N, 100, RUN);
    int64_t row[N];
    int64_t starts[4];
    for (int64_t epoch = 0; epoch < 4; epoch++) {
        read_epoch(&batches, epoch, row);
        for (int64_t i = 0; i < N; i++) {
            assert_true(i % RUN == 0 || row[i] == (row[i - 1] + 1) % N);
        }
        starts[epoch] = row[0] % RUN;
    }
    assert_true(starts[0] != starts[1] || starts[1] != starts[2] || starts[2] != starts[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bijection), cmocka_unit_test(test_huge),   cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_together),  cmocka_unit_test(test_epochs), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
