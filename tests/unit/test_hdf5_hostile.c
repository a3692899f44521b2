/*
 * HDF5 files that mean harm or are damaged: those that lead into other files are refused with the reason and nothing
 * of the other file is read, sizes that were never written are refused, and whatever the HDF5 library does to its
 * process, the caller gets a table or a sentence, in time. Skipped where there is no HDF5 library.
 */
#include <signal.h>
#include <sys/stat.h>

#include "data/data.h"
#include "hdf5_testing.h"

static const double secret = 12345.678;
static char other[64];

/* Another file with four numbers as bytes, as external storage has them. */
static void write_secret(void)
{
    const double data[4] = {secret, secret, secret, secret};
    FILE *stream = fopen(other, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, sizeof *data, 4, stream), 4);
    assert_int_equal(fclose(stream), 0);
}

/* The same as an HDF5 file of its own. */
static void write_secret_hdf5(void)
{
    const double data[4] = {secret, secret, secret, secret};
    char kept[sizeof path];
    memcpy(kept, path, sizeof path);
    snprintf(path, sizeof path, "%s", other);
    hid_t file = create_file();
    add_and_close(file, "secret", h5.real, 1, 4, 1, data);
    h5.H5Fclose(file);
    memcpy(path, kept, sizeof path);
}

/* A dataset of four numbers with these properties, which are closed. */
static void add_with(hid_t file, const char *name, hid_t properties)
{
    const hsize_t size[2] = {4, 1};
    hid_t space = h5.H5Screate_simple(2, size, NULL);
    hid_t dataset = h5.H5Dcreate2(file, name, h5.real, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(dataset >= 0);
    h5.H5Dclose(dataset);
    h5.H5Sclose(space);
    h5.H5Pclose(properties);
}

static void add_external(hid_t file)
{
    hid_t properties = h5.H5Pcreate(h5.creation);
    assert_true(h5.H5Pset_external(properties, other, 0, 32) >= 0);
    add_with(file, "external", properties);
}

static void add_virtual(hid_t file, const char *from)
{
    const hsize_t size[2] = {4, 1};
    hid_t properties = h5.H5Pcreate(h5.creation);
    hid_t space = h5.H5Screate_simple(2, size, NULL), source = h5.H5Screate_simple(1, size, NULL);
    assert_true(h5.H5Pset_virtual(properties, space, from, "secret", source) >= 0);
    add_with(file, "virtual", properties);
    h5.H5Sclose(space);
    h5.H5Sclose(source);
}

static void refuse(const char *dataset, const char *reason)
{
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    thiele_table *table;
    options.dataset = dataset;
    assert_fails(ctx, thiele_table_open(&table, ctx, path, &options), THIELE_ERROR_UNSUPPORTED, reason);
    assert_null(table);
    assert_null(strstr(thiele_context_message(ctx), "12345"));
}

static void test_external_storage(void **state)
{
    (void)state;
    write_secret();
    hid_t file = create_file();
    add_external(file);
    h5.H5Fclose(file);
    refuse(NULL, "other files (external storage)");
    refuse("external", "other files (external storage)");
}

static void test_virtual(void **state)
{
    (void)state;
    static const char *const sources[] = {other, "/tmp/thiele-test-absent", "."};
    write_secret_hdf5();
    for (int i = 0; i < 3; i++) {
        hid_t file = create_file();
        add_virtual(file, sources[i]);
        h5.H5Fclose(file);
        refuse(NULL, "virtual dataset");
    }
}

/* By name, as the only member, as one of a group's columns, and through a link inside the file. */
static void test_external_links(void **state)
{
    (void)state;
    const double data[4] = {1, 2, 3, 4};
    write_secret_hdf5();
    hid_t file = create_file();
    assert_true(h5.H5Lcreate_external(other, "secret", file, "link", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    h5.H5Fclose(file);
    refuse(NULL, "link into another file");
    refuse("/link", "link into another file");
    file = create_file();
    add_and_close(file, "a", h5.real, 1, 4, 1, data);
    assert_true(h5.H5Lcreate_external(other, "/", file, "z", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(h5.H5Lcreate_soft("/z/secret", file, "b", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    h5.H5Fclose(file);
    refuse(NULL, "link into another file");
    refuse("z/secret", "link into another file");
    refuse("b", "link into another file");
    thiele_table_options options = THIELE_TABLE_OPTIONS_INIT;
    thiele_table *table;
    options.dataset = "a";
    assert_ok(ctx, thiele_table_open(&table, ctx, path, &options));
    thiele_table_destroy(table);
}

/* 2^50 rows that were never written, in a file of some 1,400 bytes. */
static void test_unwritten(void **state)
{
    (void)state;
    const hsize_t size[1] = {(hsize_t)1 << 50}, chunk[1] = {1 << 20};
    hid_t file = create_file();
    hid_t space = h5.H5Screate_simple(1, size, NULL), properties = h5.H5Pcreate(h5.creation);
    h5.H5Pset_chunk(properties, 1, chunk);
    hid_t dataset = h5.H5Dcreate2(file, "y", h5.real, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    h5.H5Dclose(dataset);
    h5.H5Pclose(properties);
    h5.H5Sclose(space);
    h5.H5Fclose(file);
    thiele_table *table;
    assert_fails(ctx, thiele_table_open(&table, ctx, path, NULL), THIELE_ERROR_FORMAT, "never written");
}

static void write_good(void)
{
    double data[400];
    test_normals(400, 1, data);
    hid_t file = create_file();
    add_and_close(file, "data", h5.real, 2, 100, 4, data);
    h5.H5Fclose(file);
}

/* Every so many bytes one is changed: a table or a sentence. Some of these crash the library. */
static void test_damaged(void **state)
{
    (void)state;
    enum { STEP = 23 };
    static unsigned char bytes[1 << 16];
    write_good();
    FILE *stream = fopen(path, "rb");
    size_t length = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    for (size_t at = 8; at < length; at += STEP) {
        thiele_table *table;
        unsigned char kept = bytes[at];
        bytes[at] ^= (unsigned char)(1 + thi_random_bits((thi_stream){1, THI_RANDOM_DEMO, at}, 0) % 255);
        stream = fopen(path, "wb");
        fwrite(bytes, 1, length, stream);
        fclose(stream);
        bytes[at] = kept;
        thiele_status status = thiele_table_open(&table, ctx, path, NULL);
        for (int64_t row = 0; status == THIELE_OK && row < table->rows && row < 1000; row += 100) {
            const int column = 0;
            double value;
            status = table->ops->numbers(table, ctx, row, 1, &column, 1, &value);
        }
        assert_true(status == THIELE_OK || *thiele_context_message(ctx) != '\0');
        thiele_table_destroy(table);
        thi_recover(ctx);
    }
}

/* The child of this process that reads the table. */
static pid_t find_child(void)
{
    char name[64];
    int pid = 0;
    snprintf(name, sizeof name, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(name, "r");
    if (file == NULL || fscanf(file, "%d", &pid) != 1) {
        pid = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return pid;
}

static void test_crash(void **state)
{
    (void)state;
    thiele_table *table;
    const int column = 0;
    double value;
    write_good();
    assert_ok(ctx, thiele_table_open(&table, ctx, path, NULL));
    pid_t child = find_child();
    if (child == 0) {
        thiele_table_destroy(table);
        skip();
    }
    kill(child, SIGSEGV);
    assert_fails(ctx, table->ops->numbers(table, ctx, 0, 1, &column, 1, &value), THIELE_ERROR_FORMAT, "crashed on it");
    assert_fails(ctx, table->ops->numbers(table, ctx, 0, 1, &column, 1, &value), THIELE_ERROR_IO, "no longer");
    thiele_table_destroy(table);
    assert_int_equal(find_child(), 0);
}

static int stop(const thiele_progress *progress, void *user)
{
    (void)user;
    assert_string_equal(progress->phase, "read");
    return 1;
}

/* A library that does not answer: the callback and the deadline are heard. */
static void test_stopped(void **state)
{
    (void)state;
    const int column = 0;
    double value;
    write_good();
    for (int deadline = 0; deadline < 2; deadline++) {
        thiele_table *table;
        assert_ok(ctx, thiele_table_open(&table, ctx, path, NULL));
        pid_t child = find_child();
        if (child == 0) {
            thiele_table_destroy(table);
            skip();
        }
        kill(child, SIGSTOP);
        double start = thi_seconds();
        ctx->progress = deadline ? NULL : stop;
        thi_watch old = thi_watch_begin(ctx, "t.h5", deadline ? start + 0.2 : 0.0);
        assert_fails(ctx, table->ops->numbers(table, ctx, 0, 1, &column, 1, &value), THIELE_ERROR_CANCELLED,
                     deadline ? "the deadline came while t.h5 was being read" : "stopped while t.h5 was being read");
        thi_watch_end(ctx, old);
        ctx->progress = NULL;
        assert_true(thi_seconds() - start < 2.0);
        thiele_table_destroy(table);
    }
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    assert_int_equal(thi_memory_held(ctx), 0);
    thiele_context_destroy(ctx);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_external_storage), cmocka_unit_test(test_virtual), cmocka_unit_test(test_external_links),
        cmocka_unit_test(test_unwritten),        cmocka_unit_test(test_damaged), cmocka_unit_test(test_crash),
        cmocka_unit_test(test_stopped),
    };
    if (!load_writers()) {
        printf("there is no HDF5 library here: nothing to test\n");
        return 0;
    }
    ctx = test_context(1);
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/t.h5", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
