/*
 * HDF5 tables: one dataset of two dimensions, or a group of columns, read slab by slab as rows are asked for, so that a
 * table may be larger than memory. Runs in a process of its own (apart.c).
 */
#include "data/hdf5.h"

enum { SLAB_NUMBERS = 1 << 19 }; /* read in one go: 4 MB */

/*
 * A read under way: columns low .. low+width-1 of some rows at a time go into slab, from there the asked ones to out.
 */
typedef struct request {
    const thi_hdf5_table *hdf5;
    thiele_context *ctx;
    const int *column;
    int columns, low, width;
    double *slab;
} request;

static thiele_status read_slab(const request *q, hid_t dataset, int64_t first, int64_t count)
{
    const thi_hdf5 *api = &q->hdf5->api;
    /* A dataset of one dimension looks at the first number of each only. */
    const hsize_t start[2] = {(hsize_t)first, (hsize_t)q->low}, extent[2] = {(hsize_t)count, (hsize_t)q->width};
    hid_t file_space = api->H5Dget_space(dataset);
    hid_t memory_space = api->H5Screate_simple(2, extent, NULL);
    bool fine = file_space >= 0 && memory_space >= 0 &&
                api->H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0 &&
                api->H5Dread(dataset, api->native_double, memory_space, file_space, H5P_DEFAULT, q->slab) >= 0;
    if (memory_space >= 0) {
        api->H5Sclose(memory_space);
    }
    if (file_space >= 0) {
        api->H5Sclose(file_space);
    }
    if (!fine) {
        return thi_fail(
            q->ctx, THIELE_ERROR_IO,
            "%s: rows %lld to %lld cannot be read: the file is damaged, or packed with a filter that is not "
            "installed",
            q->hdf5->base.source, (long long)first + 1, (long long)(first + count));
    }
    return THIELE_OK;
}

static thiele_status read_matrix(const request *q, int64_t first, int64_t count, double *out)
{
    thiele_status status = read_slab(q, q->hdf5->dataset[0], first, count);
    for (int64_t r = 0; r < count && status == THIELE_OK; r++) {
        for (int j = 0; j < q->columns; j++) {
            *out++ = q->slab[r * q->width + q->column[j] - q->low];
        }
    }
    return status;
}

static thiele_status read_group(const request *q, int64_t first, int64_t count, double *out)
{
    thiele_status status = THIELE_OK;
    for (int j = 0; j < q->columns && status == THIELE_OK; j++) {
        status = read_slab(q, q->hdf5->dataset[q->column[j]], first, count);
        for (int64_t r = 0; r < count && status == THIELE_OK; r++) {
            out[r * q->columns + j] = q->slab[r];
        }
    }
    return status;
}

static void set_range(request *q)
{
    int high = q->low = q->column[0];
    for (int j = 1; j < q->columns; j++) {
        q->low = q->column[j] < q->low ? q->column[j] : q->low;
        high = q->column[j] > high ? q->column[j] : high;
    }
    q->width = high - q->low + 1;
}

static thiele_status hdf5_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                  const int *column, int columns, double *out)
{
    const thi_hdf5_table *hdf5 = (const thi_hdf5_table *)table;
    request q = {.hdf5 = hdf5, .ctx = ctx, .column = column, .columns = columns, .width = 1};
    if (count < 1 || columns < 1) {
        return THIELE_OK;
    }
    if (!hdf5->grouped) {
        set_range(&q);
    }
    int64_t step = q.width < SLAB_NUMBERS ? SLAB_NUMBERS / q.width : 1;
    step = step < count ? step : count;
    thiele_status status = thi_alloc(ctx, &q.slab, (size_t)step, (size_t)q.width * sizeof *q.slab);
    if (status != THIELE_OK) {
        return status;
    }
    thi_hdf5_quiet old = thi_hdf5_quiet_begin(&hdf5->api);
    for (int64_t at = 0; at < count && status == THIELE_OK; at += step) {
        int64_t now = count - at < step ? count - at : step;
        status = (hdf5->grouped ? read_group : read_matrix)(&q, first + at, now, out + at * columns);
    }
    thi_hdf5_quiet_end(&hdf5->api, old);
    thi_free(q.slab);
    return status;
}

static void hdf5_destroy(thiele_table *table)
{
    thi_hdf5_table *hdf5 = (thi_hdf5_table *)table;
    if (hdf5->api.library != NULL) {
        thi_hdf5_quiet old = thi_hdf5_quiet_begin(&hdf5->api);
        for (int i = 0; i < hdf5->datasets; i++) {
            if (hdf5->dataset[i] > 0) {
                hdf5->api.H5Oclose(hdf5->dataset[i]);
            }
        }
        if (hdf5->links > 0) {
            hdf5->api.H5Pclose(hdf5->links);
        }
        if (hdf5->file > 0) {
            hdf5->api.H5Fclose(hdf5->file);
        }
        thi_hdf5_quiet_end(&hdf5->api, old);
        thi_hdf5_unload(&hdf5->api);
    }
    thi_free(hdf5->dataset);
    thi_table_clear(table);
    thi_free(hdf5);
}

const thi_table_ops thi_hdf5_ops = {.numbers = hdf5_numbers, .destroy = hdf5_destroy};
