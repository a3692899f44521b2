/*
 * A table larger than the memory that is allowed: two million rows of an HDF5 file, 144 MB as numbers, fitted under a
 * limit of 100 MB, which the allocator enforces: a fit that held the rows would fail. Skipped where there is no HDF5
 * library.
 */
#include <dlfcn.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <unistd.h>

#include "testing.h"
#include <thiele/thiele.h>

#if defined(__SANITIZE_ADDRESS__)
enum { ROWS = 400000 }; /* the sanitizers take twenty times as long; so many are still streamed */
#else
enum { ROWS = 2000000 };
#endif
enum { COLUMNS = 9, BLOCK = 20000 };

static char folder[] = "/tmp/thiele-test-XXXXXX";
static char path[64];

#define WRITERS(X)                                                                                                     \
    X(H5open)                                                                                                          \
    X(H5Fcreate)                                                                                                       \
    X(H5Fclose)                                                                                                        \
    X(H5Screate_simple)                                                                                                \
    X(H5Sselect_hyperslab)                                                                                             \
    X(H5Sclose)                                                                                                        \
    X(H5Dcreate2)                                                                                                      \
    X(H5Dwrite)                                                                                                        \
    X(H5Dclose)
static struct {
#define POINTER(name) __typeof__(name) *name;
    WRITERS(POINTER)
    hid_t real;
} h5;

static bool load_writers(void)
{
    void *library = dlopen("libhdf5_serial.so.103", RTLD_NOW | RTLD_NODELETE);
    library = library != NULL ? library : dlopen("libhdf5_serial.so.310", RTLD_NOW | RTLD_NODELETE);
    if (library == NULL) {
        return false;
    }
#define LOAD(name) *(void **)&h5.name = dlsym(library, #name);
    WRITERS(LOAD)
    h5.H5open();
    h5.real = *(hid_t *)dlsym(library, "H5T_NATIVE_DOUBLE_g");
    dlclose(library);
    return true;
}

/* Eight inputs in (-1, 1) by a fixed rule, and y = sin(3 x1) + x2 + noise of variance 0.01. */
static void fill_rows(int64_t first, int64_t count, double *rows)
{
    uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)first;
    for (int64_t i = 0; i < count; i++) {
        double *row = rows + i * COLUMNS;
        double noise = 0.0;
        for (int d = 0; d < COLUMNS - 1; d++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            row[d] = (double)(state >> 11) * 0x1p-52 - 1.0;
            noise += row[d] * (d > 1);
        }
        row[COLUMNS - 1] = sin(3.0 * row[0]) + row[1] + 0.1 * sin(1e4 * noise) * M_SQRT2;
    }
}

static void write_table(void)
{
    static double rows[BLOCK * COLUMNS];
    hsize_t shape[2] = {ROWS, COLUMNS}, part[2] = {BLOCK, COLUMNS};
    hid_t file = h5.H5Fcreate(path, 2u /* truncate */, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = h5.H5Screate_simple(2, shape, NULL), memory = h5.H5Screate_simple(2, part, NULL);
    hid_t data = h5.H5Dcreate2(file, "table", h5.real, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int64_t first = 0; first < ROWS; first += BLOCK) {
        hsize_t offset[2] = {(hsize_t)first, 0};
        fill_rows(first, BLOCK, rows);
        h5.H5Sselect_hyperslab(space, H5S_SELECT_SET, offset, NULL, part, NULL);
        assert_true(h5.H5Dwrite(data, h5.real, memory, space, H5P_DEFAULT, rows) >= 0);
    }
    h5.H5Dclose(data);
    h5.H5Sclose(space);
    h5.H5Sclose(memory);
    h5.H5Fclose(file);
}

static void test_two_million_rows(void **state)
{
    (void)state;
    thiele_context_options settings = THIELE_CONTEXT_OPTIONS_INIT;
    thiele_context *ctx;
    thiele_table *table;
    thiele_model *model;
    settings.memory_limit = 100000000;
    assert_int_equal(thiele_context_create(&ctx, &settings), THIELE_OK);
    write_table();
    assert_ok(ctx, thiele_table_open(&table, ctx, path, NULL));
    assert_int_equal(thiele_table_rows(table), ROWS);
    thiele_fit_options options = THIELE_FIT_OPTIONS_INIT;
    options.columns.target = "9";
    options.inducing.inducing = 60;
    options.optimiser.batch = 2000;
    options.stopping.iterations = 60;
    assert_ok(ctx, thiele_model_fit(&model, ctx, table, &options));
    /* Rows that no step has seen: another rule for their first number. */
    static double rows[100 * COLUMNS], x[100 * (COLUMNS - 1)], mean[100], variance[100];
    fill_rows(ROWS + 1, 100, rows);
    double squared = 0.0;
    for (int i = 0; i < 100; i++) {
        memcpy(x + i * (COLUMNS - 1), rows + i * COLUMNS, (COLUMNS - 1) * sizeof *x);
    }
    assert_ok(ctx, thiele_model_predict_rows(model, ctx, 100, x, 0, mean, variance));
    for (int i = 0; i < 100; i++) {
        double error = mean[i] - rows[i * COLUMNS + COLUMNS - 1];
        squared += error * error / 100.0;
    }
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    print_message("mean squared error %.4f (noise 0.01), most memory of the process %ld MB\n", squared,
                  use.ru_maxrss / 1000);
    assert_true(squared < 0.02);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_million_rows)};
    if (!load_writers()) {
        print_message("skipped: there is no HDF5 library\n");
        return 0;
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/rows.h5", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(folder);
    return failed;
}
