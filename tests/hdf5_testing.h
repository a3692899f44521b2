/* HDF5 files that the HDF5 library itself writes (found at run time, as ours does), for tests. */
#ifndef THI_HDF5_TESTING_H
#define THI_HDF5_TESTING_H

#include <dlfcn.h>
#include <hdf5.h>

#include "testing.h"

#define WRITERS(X)                                                                                                     \
    X(H5open)                                                                                                          \
    X(H5Fcreate)                                                                                                       \
    X(H5Fclose)                                                                                                        \
    X(H5Gcreate2)                                                                                                      \
    X(H5Gclose)                                                                                                        \
    X(H5Screate_simple)                                                                                                \
    X(H5Sclose)                                                                                                        \
    X(H5Dcreate2)                                                                                                      \
    X(H5Dget_space)                                                                                                    \
    X(H5Pset_external)                                                                                                 \
    X(H5Pset_virtual)                                                                                                  \
    X(H5Lcreate_external)                                                                                              \
    X(H5Lcreate_soft)                                                                                                  \
    X(H5Dwrite)                                                                                                        \
    X(H5Dclose)                                                                                                        \
    X(H5Pcreate)                                                                                                       \
    X(H5Pset_chunk)                                                                                                    \
    X(H5Pset_deflate)                                                                                                  \
    X(H5Pclose)                                                                                                        \
    X(H5Acreate2)                                                                                                      \
    X(H5Awrite)                                                                                                        \
    X(H5Aclose)                                                                                                        \
    X(H5Tcopy)                                                                                                         \
    X(H5Tset_size)                                                                                                     \
    X(H5Tset_cset)                                                                                                     \
    X(H5Tclose)

static struct {
#define POINTER(name) __typeof__(name) *name;
    WRITERS(POINTER)
    hid_t real, single, integer, string, creation;
} h5;

static thiele_context *ctx;
static char folder[] = "/tmp/thiele-test-XXXXXX";
static char path[64];

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
    h5.single = *(hid_t *)dlsym(library, "H5T_IEEE_F32BE_g");
    h5.integer = *(hid_t *)dlsym(library, "H5T_STD_I16BE_g");
    h5.string = *(hid_t *)dlsym(library, "H5T_C_S1_g");
    h5.creation = *(hid_t *)dlsym(library, "H5P_CLS_DATASET_CREATE_ID_g");
    dlclose(library);
    return true;
}

static hid_t create_file(void)
{
    hid_t file = h5.H5Fcreate(path, 2u /* truncate */, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* A dataset of numbers, stored as `type`, in packed chunks when it has two dimensions. */
static hid_t add_dataset(hid_t where, const char *name, hid_t type, int rank, hsize_t rows, hsize_t columns,
                         const double *data)
{
    const hsize_t size[3] = {rows, columns, 1}, chunk[2] = {rows < 100 ? rows : 100, columns < 2 ? columns : 2};
    hid_t space = h5.H5Screate_simple(rank, size, NULL);
    hid_t properties = h5.H5Pcreate(h5.creation);
    if (rank == 2) {
        h5.H5Pset_chunk(properties, 2, chunk);
        h5.H5Pset_deflate(properties, 6);
    }
    hid_t dataset = h5.H5Dcreate2(where, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(dataset >= 0);
    assert_true(h5.H5Dwrite(dataset, h5.real, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    h5.H5Pclose(properties);
    h5.H5Sclose(space);
    return dataset;
}

static void add_and_close(hid_t where, const char *name, hid_t type, int rank, hsize_t rows, hsize_t columns,
                          const double *data)
{
    h5.H5Dclose(add_dataset(where, name, type, rank, rows, columns, data));
}

#endif
