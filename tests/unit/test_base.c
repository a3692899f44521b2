/* The ground: messages, allocation, sums in a fixed order, random streams and their distribution, text, files. */
#include "testing.h"

#include <fcntl.h>
#include <sys/file.h>

#include <errno.h>
#include <locale.h>
#include <sys/stat.h>
#include <thiele/version.h>

/* Headers and library are of one version, as text and as a number. */
static void test_version(void **state)
{
    (void)state;
    assert_string_equal(thiele_version(), THIELE_VERSION);
    char text[40];
    snprintf(text, sizeof text, "%d.%d.%d", THIELE_VERSION_MAJOR, THIELE_VERSION_MINOR, THIELE_VERSION_PATCH);
    assert_string_equal(text, THIELE_VERSION);
    assert_true(THIELE_VERSION_NUMBER < THIELE_MAKE_VERSION(THIELE_VERSION_MAJOR, THIELE_VERSION_MINOR + 1, 0));
    assert_true(THIELE_VERSION_NUMBER >= THIELE_MAKE_VERSION(THIELE_VERSION_MAJOR, THIELE_VERSION_MINOR, 0));
}

static void test_messages(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    assert_non_null(thiele_context_message(ctx));
    assert_non_null(thiele_context_message(NULL));
    assert_int_equal(thi_fail(ctx, THIELE_ERROR_IO, "file %d", 7), THIELE_ERROR_IO);
    assert_string_equal(thiele_context_message(ctx), "file 7");
    thi_fail_in(ctx, THIELE_ERROR_IO, "fold %d", 2);
    assert_string_equal(thiele_context_message(ctx), "fold 2: file 7");
    char longer[3000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    thi_fail(ctx, THIELE_ERROR_IO, "%s", longer);
    thi_fail_in(ctx, THIELE_ERROR_IO, "%s", longer);
    assert_true(strlen(thiele_context_message(ctx)) < THI_MESSAGE_MAX);
#define CHECK_NAME(name, value, meaning)                                                                               \
    assert_string_equal(thiele_status_name(name), #name);                                                              \
    assert_string_equal(thiele_status_meaning(name), meaning);                                                         \
    assert_int_equal(name, value);
    THIELE_STATUS_LIST(CHECK_NAME)
    assert_non_null(thiele_status_name((thiele_status)-99));
    thiele_context_destroy(ctx);
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.threads = -1;
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_ERROR_ARGUMENT);
    options = (thiele_context_options)THIELE_CONTEXT_OPTIONS_INIT;
    options.size = 3;
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_ERROR_ARGUMENT);
    assert_null(ctx);
    thiele_context_destroy(NULL);
}

static void test_allocation(void **state)
{
    (void)state;
    thiele_context_options options = THIELE_CONTEXT_OPTIONS_INIT;
    options.memory_limit = 10000;
    thiele_context *ctx = NULL;
    char *block = NULL;
    char *more = NULL;
    assert_int_equal(thiele_context_create(&ctx, &options), THIELE_OK);
    assert_ok(ctx, thi_alloc(ctx, &block, 100, 7));
    assert_int_equal((uintptr_t)block % 64, 0);
    for (int i = 0; i < 700; i++) {
        assert_int_equal(block[i], 0);
    }
    /* The block's header counts too, and what a dependency holds. */
    assert_int_equal(thi_memory_held(ctx), 764);
    assert_ok(ctx, thi_count(ctx, 9000));
    assert_fails(ctx, thi_count(ctx, 9000), THIELE_ERROR_LIMIT, "limit");
    thi_uncount(ctx, 9000);
    assert_int_equal(thi_memory_held(ctx), 764);
    memset(block, 1, 700);
    assert_ok(ctx, thi_grow(ctx, &block, 100, 9));
    assert_true(block[699] == 1 && block[700] == 0);
    assert_fails(ctx, thi_alloc(ctx, &more, 1, 9999), THIELE_ERROR_LIMIT, "limit");
    assert_null(more);
    assert_fails(ctx, thi_alloc(ctx, &more, SIZE_MAX / 2, 8), THIELE_ERROR_LIMIT, "addressed");
    assert_fails(ctx, thi_alloc(ctx, &more, SIZE_MAX / 2, 1), THIELE_ERROR_LIMIT, "");
    assert_ok(ctx, thi_alloc(ctx, &more, 0, 8));
    assert_non_null(more);
    thi_free(more);
    thi_fail_allocation(ctx, 2, false);
    assert_ok(ctx, thi_alloc(ctx, &more, 1, 1));
    thi_free(more);
    assert_fails(ctx, thi_alloc(ctx, &more, 1, 1), THIELE_ERROR_MEMORY, "out of memory");
    assert_ok(ctx, thi_alloc(ctx, &more, 1, 1));
    thi_free(more);
    thi_free(NULL);
    /* A block may outlive its context. */
    thiele_context_destroy(ctx);
    assert_int_equal(block[0], 1);
    thi_free(block);
}

static thiele_status mark(void *arg, int64_t block, int thread)
{
    (void)thread;
    ((int *)arg)[block]++;
    return block == 77 || block == 33 ? (block == 33 ? THIELE_ERROR_DATA : THIELE_ERROR_IO) : THIELE_OK;
}

static void test_blocks(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(4);
    int seen[200] = {0};
    assert_int_equal(thi_parallel(ctx, 200, mark, seen), THIELE_ERROR_DATA);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(seen[i], 1);
    }
    assert_int_equal(thi_parallel(ctx, 0, mark, seen), THIELE_OK);
    thiele_context_destroy(ctx);
    for (int blocks = 1; blocks < 40; blocks++) {
        double part[40 * 2];
        double out[2] = {100.0, 0.0};
        for (int b = 0; b < blocks; b++) {
            part[2 * b] = b + 1;
            part[2 * b + 1] = 1.0;
        }
        thi_reduce(blocks, 2, part, out);
        assert_true(out[0] == 100.0 + blocks * (blocks + 1) / 2 && out[1] == blocks);
    }
}

/* Moments and a chi-square of 64 cells over 200,000 draws, at fixed seeds; five standard errors. */
static void test_random(void **state)
{
    (void)state;
    enum { N = 200000, CELLS = 64 };
    for (uint64_t row = 0; row < 3; row++) {
        thi_stream stream = {5, THI_RANDOM_SAMPLE, row};
        double moment[5] = {0};
        double cell[CELLS] = {0};
        double previous = 0.0;
        double lag = 0.0;
        for (uint64_t i = 0; i < N; i++) {
            double z = thi_random_normal(stream, i);
            double power = z;
            for (int m = 1; m < 5; m++) {
                moment[m] += power / N;
                power *= z;
            }
            lag += z * previous / N;
            previous = z;
            double u = thi_random_uniform(stream, i);
            assert_true(u > 0.0 && u < 1.0);
            cell[(int)(u * CELLS)] += 1.0;
        }
        double se = 1.0 / sqrt(N);
        assert_near(moment[1], 0.0, 0.0, 5.0 * se);
        assert_near(moment[2], 1.0, 0.0, 5.0 * sqrt(2.0) * se);
        assert_near(moment[3], 0.0, 0.0, 5.0 * sqrt(15.0) * se);
        assert_near(moment[4], 3.0, 0.0, 5.0 * sqrt(96.0) * se);
        assert_near(lag, 0.0, 0.0, 5.0 * se);
        double chi2 = 0.0;
        for (int c = 0; c < CELLS; c++) {
            double expected = (double)N / CELLS;
            chi2 += (cell[c] - expected) * (cell[c] - expected) / expected;
        }
        assert_near(chi2, CELLS - 1, 0.0, 5.0 * sqrt(2.0 * (CELLS - 1)));
    }
    /* Streams differ in every part of their name. */
    uint64_t base = thi_random_bits((thi_stream){1, 1, 1}, 1);
    assert_true(base != thi_random_bits((thi_stream){2, 1, 1}, 1) && base != thi_random_bits((thi_stream){1, 2, 1}, 1));
    assert_true(base != thi_random_bits((thi_stream){1, 1, 2}, 1) && base != thi_random_bits((thi_stream){1, 1, 1}, 2));
}

/* Every permutation of four is as likely as any other. */
static void test_permutation(void **state)
{
    (void)state;
    enum { N = 48000 };
    double count[256] = {0};
    for (uint64_t i = 0; i < N; i++) {
        int64_t order[4];
        thi_random_permutation((thi_stream){9, THI_RANDOM_SPLIT, i}, 4, order);
        int key = 0;
        int seen = 0;
        for (int k = 0; k < 4; k++) {
            key = 4 * key + (int)order[k];
            seen |= 1 << order[k];
        }
        assert_int_equal(seen, 15);
        count[key] += 1.0;
    }
    double chi2 = 0.0;
    int kinds = 0;
    for (int k = 0; k < 256; k++) {
        kinds += count[k] > 0.0;
        chi2 += count[k] > 0.0 ? (count[k] - N / 24.0) * (count[k] - N / 24.0) / (N / 24.0) : 0.0;
    }
    assert_int_equal(kinds, 24);
    assert_near(chi2, 23.0, 0.0, 5.0 * sqrt(46.0));
}

static thiele_status gather(void *arg, const char *part, size_t length)
{
    thi_text *text = arg;
    thi_text_add_bytes(text, part, length);
    thi_text_add(text, "|");
    return THIELE_OK;
}

static void test_text(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    thi_text text;
    char *out = NULL;
    thi_text_init(&text, ctx);
    thi_split_list(" a, b c ,d(1, 2), e[x,y]=3", gather, &text);
    thi_text_add_number(&text, 0.1);
    thi_text_add(&text, " ");
    thi_text_add_number(&text, -1e300);
    assert_ok(ctx, thi_text_take(&text, &out));
    assert_string_equal(out, "a|b c|d(1, 2)|e[x,y]=3|0.1 -1e+300");
    thi_free(out);
    assert_ok(ctx, thi_text_take(&text, &out));
    assert_string_equal(out, "");
    thi_free(out);
    assert_int_equal(thi_edit_distance("strenght", "strength", 3), 2);
    assert_int_equal(thi_edit_distance("Age", "age", 3), 0);
    assert_int_equal(thi_edit_distance("abc", "xyz", 1), 2);
    /* Numbers read back as the same double, also where the locale writes a comma. */
    const char *old = setlocale(LC_NUMERIC, NULL);
    char *kept = strdup(old);
    (void)setlocale(LC_NUMERIC, "de_DE.UTF-8");
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = thi_random_bits((thi_stream){1, 1, 1}, i);
        double value;
        double back;
        char buffer[THI_NUMBER_MAX];
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) {
            int length = thi_format_number(buffer, value);
            assert_true(thi_parse_number(buffer, (size_t)length, &back));
            assert_true(back == value);
        }
    }
    (void)setlocale(LC_NUMERIC, kept);
    free(kept);
    thiele_context_destroy(ctx);
}

static void test_files(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    char folder[] = "/tmp/thiele-test-base-XXXXXX";
    char path[128];
    char line[32] = "";
    thi_file file;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    for (int round = 0; round < 2; round++) {
        assert_ok(ctx, thi_file_begin(&file, ctx, path));
        fprintf(file.stream, "round %d\n", round);
        assert_ok(ctx, thi_file_commit(&file, ctx));
        thi_file_abandon(&file);
        assert_int_equal(chmod(path, 0600), 0);
    }
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_ok(ctx, thi_file_begin(&file, ctx, path));
    fprintf(file.stream, "never seen");
    thi_file_abandon(&file);
    FILE *stream = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, stream));
    fclose(stream);
    assert_string_equal(line, "round 1\n");
    assert_fails(ctx, thi_file_begin(&file, ctx, folder), THIELE_ERROR_IO, "cannot write");
    assert_fails(ctx, thi_file_begin(&file, ctx, "/nowhere/at/all"), THIELE_ERROR_IO, "/nowhere/at/all");
    if (access("/dev/full", W_OK) == 0) {
        assert_ok(ctx, thi_file_begin(&file, ctx, "/dev/full"));
        fprintf(file.stream, "too much");
        assert_fails(ctx, thi_file_commit(&file, ctx), THIELE_ERROR_IO, strerror(ENOSPC));
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* empty: no temporary file was left */
    thiele_context_destroy(ctx);
}

static void make_file(const char *path)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fclose(stream);
}

/* What killed processes left of the same file goes; what a living one has locked, and what is of other files, stays. */
static void test_left_over(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool locked, stays;
    } cases[] = {
        {"out.1-0.tmp", false, false},  {"out.987654-12.tmp", false, false}, {"out.2-0.tmp", true, true},
        {"out.3-0.tmpx", false, true},  {"out.-0.tmp", false, true},         {"out.4.tmp", false, true},
        {"outer.1-0.tmp", false, true}, {"ou.1-0.tmp", false, true},         {"out.5-0x.tmp", false, true},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    thiele_context *ctx = test_context(1);
    char folder[] = "/tmp/thiele-test-left-XXXXXX";
    char path[CASES][128], out[128];
    int locked = -1;
    thi_file file;
    assert_non_null(mkdtemp(folder));
    snprintf(out, sizeof out, "%s/out", folder);
    for (int i = 0; i < CASES; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s", folder, cases[i].name);
        make_file(path[i]);
        if (cases[i].locked) {
            locked = open(path[i], O_RDONLY);
            assert_int_equal(flock(locked, LOCK_EX), 0);
        }
    }
    assert_ok(ctx, thi_file_begin(&file, ctx, out));
    assert_ok(ctx, thi_file_commit(&file, ctx));
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(access(path[i], F_OK) == 0, cases[i].stays);
        unlink(path[i]);
    }
    close(locked);
    assert_int_equal(unlink(out), 0);
    assert_int_equal(rmdir(folder), 0);
    thiele_context_destroy(ctx);
}

/* Of two who know the same file only the first replaces it. */
static void test_stamps(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    char path[] = "/tmp/thiele-test-stamp-XXXXXX";
    int handle = mkstemp(path);
    thi_stamp first, second;
    thi_file file;
    assert_true(thi_stamp_take(&first, handle));
    close(handle);
    second = first;
    for (int round = 0; round < 3; round++) {
        assert_ok(ctx, thi_file_begin(&file, ctx, path));
        fprintf(file.stream, "round %d", round);
        file.stamp = &first;
        assert_ok(ctx, thi_file_commit(&file, ctx));
    }
    assert_ok(ctx, thi_file_begin(&file, ctx, path));
    file.stamp = &second;
    assert_fails(ctx, thi_file_commit(&file, ctx), THIELE_ERROR_IO, "replaced by another program");
    FILE *stream = fopen(path, "r");
    char line[32] = "";
    assert_non_null(fgets(line, sizeof line, stream));
    fclose(stream);
    assert_string_equal(line, "round 2");
    assert_int_equal(unlink(path), 0);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version), cmocka_unit_test(test_messages), cmocka_unit_test(test_allocation),
        cmocka_unit_test(test_blocks),  cmocka_unit_test(test_random),   cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_text),    cmocka_unit_test(test_files),    cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_stamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
