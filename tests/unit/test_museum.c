/*
 * The models in tests/museum, one of each kind and format version: they load and predict what they did when they were
 * made; damaged in any bit of their header, or made up in part, they are refused.
 */
#include "model_testing.h"

#include <dirent.h>
#include <thiele/stream.h>
#include <zlib.h>

#include "model/json.h"
#include "model/tensors_internal.h"

#define MUSEUM TESTS_FOLDER "/museum"

static bool is_model(const char *name)
{
    size_t length = strlen(name);
    return length > 7 && strcmp(name + length - 7, ".thiele") == 0;
}

/* Calls fn for every model whose name begins with `version`; returns how many there were. */
static int each_model(thiele_context *ctx, const char *version, void (*fn)(thiele_context *ctx, const char *path))
{
    DIR *museum = opendir(MUSEUM);
    int count = 0;
    assert_non_null(museum);
    for (const struct dirent *entry = readdir(museum); entry != NULL; entry = readdir(museum)) {
        if (is_model(entry->d_name) && strncmp(entry->d_name, version, strlen(version)) == 0) {
            char path[600];
            snprintf(path, sizeof path, "%s/%s", MUSEUM, entry->d_name);
            fn(ctx, path);
            count++;
        }
    }
    closedir(museum);
    return count;
}

/* --- predictions -------------------------------------------------------------------------------------------------- */

/* Numbers to 1e-6: other processors and libraries round differently. */
static void assert_same_tables(thiele_context *ctx, const char *got_path, const char *want_path)
{
    thiele_table *got = NULL, *want = NULL;
    assert_ok(ctx, thiele_table_open(&got, ctx, got_path, NULL));
    assert_ok(ctx, thiele_table_open(&want, ctx, want_path, NULL));
    assert_int_equal(got->rows, want->rows);
    assert_int_equal(got->columns, want->columns);
    for (int c = 0; c < want->columns; c++) {
        for (int64_t r = 0; r < want->rows; r++) {
            double a, b;
            bool number = want->ops->numbers(want, ctx, r, 1, &c, 1, &b) == THIELE_OK;
            if (number && got->ops->numbers(got, ctx, r, 1, &c, 1, &a) == THIELE_OK) {
                if (!(fabs(a - b) <= 1e-6 * (1.0 + fabs(b)))) {
                    fail_msg("%s, row %lld: %.17g, not %.17g", want_path, (long long)r, a, b);
                }
            } else {
                assert_int_equal(number, false);
            }
        }
    }
    thiele_table_destroy(got);
    thiele_table_destroy(want);
}

static void predicts_as_ever(thiele_context *ctx, const char *path)
{
    thiele_model *model = NULL;
    thiele_table *rows = NULL;
    char want[600];
    char *text = NULL;
    thiele_predict_options options = THIELE_PREDICT_OPTIONS_INIT;
    options.own_block = 1; /* as all of them were predicted once */
    snprintf(want, sizeof want, "%.*scsv", (int)strlen(path) - 6, path);
    assert_ok(ctx, thiele_model_load(&model, ctx, path));
    assert_ok(ctx, thiele_model_describe(model, ctx, &text));
    assert_ok(ctx, thiele_table_open(&rows, ctx, MUSEUM "/rows.csv", NULL));
    assert_ok(ctx, thiele_model_predict_file(model, ctx, rows, &options, in_folder("got.csv")));
    assert_same_tables(ctx, in_folder("got.csv"), want);
    /* And again after a save in the present format. */
    assert_ok(ctx, thiele_model_save(model, ctx, in_folder("again.thiele")));
    thiele_model_destroy(model);
    assert_ok(ctx, thiele_model_load(&model, ctx, in_folder("again.thiele")));
    assert_ok(ctx, thiele_model_predict_file(model, ctx, rows, &options, in_folder("got.csv")));
    assert_same_tables(ctx, in_folder("got.csv"), want);
    thiele_free(text);
    thiele_table_destroy(rows);
    thiele_model_destroy(model);
}

static void test_predictions(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    assert_true(each_model(ctx, "v1-", predicts_as_ever) >= 30);
    assert_true(each_model(ctx, "v2-", predicts_as_ever) >= 30);
    assert_true(each_model(ctx, "v3-", predicts_as_ever) >= 30);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

static int updated;

/* What a posterior of its kind can learn, one that was kept in any format can. */
static void goes_on_learning(thiele_context *ctx, const char *path)
{
    thiele_model *model = NULL, *newer = NULL;
    thiele_table *rows = NULL;
    assert_ok(ctx, thiele_model_load(&model, ctx, path));
    assert_ok(ctx, thiele_table_open(&rows, ctx, MUSEUM "/train.csv", NULL));
    thiele_status status = thiele_model_update(&newer, ctx, model, rows, NULL);
    assert_true(status == THIELE_OK || status == THIELE_ERROR_UNSUPPORTED);
    updated += status == THIELE_OK;
    thiele_table_destroy(rows);
    thiele_model_destroy(model);
    thiele_model_destroy(newer);
}

static void test_updates(void **state)
{
    (void)state;
    static const char *const versions[] = {"v1-", "v2-", "v3-"};
    thiele_context *ctx = test_context(1);
    int first = 0;
    for (int i = 0; i < 3; i++) {
        updated = 0;
        each_model(ctx, versions[i], goes_on_learning);
        first = i == 0 ? updated : first;
        assert_true(updated >= first); /* later versions have more kinds */
    }
    assert_true(first >= 15);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
}

/* --- damage ------------------------------------------------------------------------------------------------------- */

typedef struct whole {
    _Alignas(64) unsigned char bytes[50000];
    size_t length, header; /* of the file; of its header */
} whole;
static whole file;

static void read_whole(const char *path)
{
    FILE *stream = fopen(path, "rb");
    uint64_t header;
    assert_non_null(stream);
    file.length = fread(file.bytes, 1, sizeof file.bytes, stream);
    fclose(stream);
    assert_true(file.length < sizeof file.bytes);
    memcpy(&header, file.bytes, sizeof header);
    file.header = (size_t)header;
}

static void assert_refused(thiele_context *ctx, const char *path, size_t at, int bit)
{
    thiele_model *model = NULL;
    if (thi_model_parse(&model, ctx, "museum", file.bytes, file.length) != THIELE_ERROR_FORMAT) {
        fail_msg("%s: bit %d of byte %zu went unnoticed: %s", path, bit, at, thiele_context_message(ctx));
    }
}

/* Every bit of the header and its length, and of every 61st byte of the data. */
static void flips_are_noticed(thiele_context *ctx, const char *path)
{
    read_whole(path);
    for (size_t at = 0; at < file.length; at += at < 8 + file.header ? 1 : 61) {
        for (int bit = 0; bit < 8; bit++) {
            file.bytes[at] ^= (unsigned char)(1 << bit);
            assert_refused(ctx, path, at, bit);
            file.bytes[at] ^= (unsigned char)(1 << bit);
        }
    }
}

/* A checksum that fits the bytes as they are now. */
static void sign_again(void)
{
    char digits[16];
    char *header = (char *)file.bytes + 8;
    uLong crc = thi_header_crc(header, file.header);
    crc = crc32_z(crc, file.bytes + 8 + file.header, file.length - 8 - file.header);
    snprintf(digits, sizeof digits, "%08lx", (unsigned long)crc);
    memcpy(header + strlen(THI_HEADER_START), digits, 8);
}

/* Whether a tensor's name begins here, after its quote. */
static bool name_begins(size_t at)
{
    static const char next[] = "\":{\"dtype\"";
    const char *text = (const char *)file.bytes + at;
    size_t length = strcspn(text, "\"\\{}");
    return text[-1] == '"' && length > 0 && strncmp(text + length, next, strlen(next)) == 0;
}

/* The same under the right checksum: a tensor by another name is unknown, and its own is missing. */
static void names_are_checked(thiele_context *ctx, const char *path)
{
    int names = 0;
    read_whole(path);
    for (size_t at = 9; at < 8 + file.header; at++) {
        if (!name_begins(at)) {
            continue;
        }
        names++;
        for (size_t end = at + strcspn((const char *)file.bytes + at, "\""); at < end; at++) {
            for (int bit = 0; bit < 8; bit++) {
                file.bytes[at] ^= (unsigned char)(1 << bit);
                sign_again();
                assert_refused(ctx, path, at, bit);
                file.bytes[at] ^= (unsigned char)(1 << bit);
            }
        }
    }
    assert_true(names >= 4);
}

/* A bit of every third byte of the header under the right checksum: refused or not, nothing breaks and nothing leaks.
 */
static void flips_break_nothing(thiele_context *ctx, const char *path)
{
    size_t held = thi_memory_held(ctx);
    read_whole(path);
    for (size_t at = 8; at < 8 + file.header; at += 3) {
        unsigned char bit = (unsigned char)(1 << at % 8);
        thiele_model *model = NULL;
        file.bytes[at] ^= bit;
        sign_again();
        thiele_status status = thi_model_parse(&model, ctx, "museum", file.bytes, file.length);
        assert_true(status == THIELE_OK || status == THIELE_ERROR_FORMAT);
        thiele_model_destroy(model);
        assert_int_equal(thi_memory_held(ctx), held);
        file.bytes[at] ^= bit;
    }
}

/* Puts text in place of what begins at `mark` in the header, and blanks at its end for what it is shorter. */
static void replace(const char *mark, const char *by)
{
    char *header = (char *)file.bytes + 8;
    char *end = header + file.header;
    char *at = memmem(header, file.header, mark, strlen(mark));
    assert_non_null(at);
    size_t old = strlen(mark), new = strlen(by), blanks = 0;
    while (end[-1 - (ptrdiff_t)blanks] == ' ') {
        blanks++;
    }
    assert_true(new <= old + blanks);
    memmove(at + new, at + old, (size_t)(end - at) - old - (new > old ? new - old : 0));
    memcpy(at, by, new);
    memset(end - (old > new ? old - new : 0), ' ', old > new ? old - new : 0);
    sign_again();
}

static void test_damage(void **state)
{
    (void)state;
    thiele_context *ctx = test_context(1);
    assert_true(each_model(ctx, "v3-", flips_are_noticed) >= 30);
    assert_true(each_model(ctx, "v3-", names_are_checked) >= 30);
    assert_true(each_model(ctx, "v3-", flips_break_nothing) >= 30);
    thiele_context_destroy(ctx);
}

/* Files that somebody made up, whole and with the right checksum. */
static void test_made_up(void **state)
{
    (void)state;
    static const struct {
        const char *file, *mark, *by, *message;
    } cases[] = {
        {"v3-exact", "\\\"jitter\\\":", "\\\"jitxer\\\":", "'jitter'"},
        {"v3-exact", "\\\"redundant\\\":false", "\\\"redundanu\\\":false", "'redundant'"},
        {"v3-stream", "\\\"prequential\\\":", "\\\"prequentiak\\\":", "'stream'"},
        {"v3-mixture", "\\\"sparse\\\":", "\\\"sparxe\\\":", "this version does not know its field 'sparxe'"},
        {"v3-pic", "\\\"local\\\":", "\\\"lobal\\\":", "tensor 'local.sizes' is not one of this model's"},
        {"v3-holdout", "\\\"loo\\\":{\\\"rows\\\":18", "\\\"loo\\\":{\\\"rows\\\":0", "'loo.mean'"},
        {"v3-mixing", "\\\"shared\\\":[\\\"inputs\\\"", "\\\"shared\\\":[\\\"inputz\\\"", "'latents'"},
        {"v3-mixing", "\\\"shared\\\":", "\\\"xhared\\\":", "'latents'"},
        {"v3-dense", "\"F64\",\"shape\"", "\"F64\",\"shapf\"", "table of its tensors"},
        {"v3-dense", "\"version\":\"3\"", "\"version\":\"4\"", "format version 4"},
        {"v3-dense", "\"version\":\"3\"", "\"version\":\"1\"", "checksum"},
        {"v3-dense", "\"format\":\"thiele\"", "\"format\":\"thiela\"", "not one that thiele writes"},
    };
    thiele_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        thiele_model *model = NULL;
        char path[600];
        snprintf(path, sizeof path, "%s/%s.thiele", MUSEUM, cases[i].file);
        read_whole(path);
        replace(cases[i].mark, cases[i].by);
        assert_fails(ctx, thi_model_parse(&model, ctx, "made-up", file.bytes, file.length), THIELE_ERROR_FORMAT,
                     cases[i].message);
        assert_null(model);
    }
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predictions),
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_made_up),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
