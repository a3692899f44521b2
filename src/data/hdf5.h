/*
 * The HDF5 library as a table of functions. It is most of what a program that links it takes to start, so it is loaded
 * when an HDF5 file is opened, in the process that reads this file alone (apart.c).
 */
#ifndef THI_HDF5_H
#define THI_HDF5_H

#include <hdf5.h>

#include "data/data.h"

/* The functions used, with the types of the header. */
#define THI_HDF5_FUNCTIONS(X)                                                                                          \
    X(H5open)                                                                                                          \
    X(H5Eget_auto2)                                                                                                    \
    X(H5Eset_auto2)                                                                                                    \
    X(H5Fopen)                                                                                                         \
    X(H5Fclose)                                                                                                        \
    X(H5Oopen)                                                                                                         \
    X(H5Oclose)                                                                                                        \
    X(H5Iget_type)                                                                                                     \
    X(H5Gget_info)                                                                                                     \
    X(H5Lget_name_by_idx)                                                                                              \
    X(H5Dget_create_plist)                                                                                             \
    X(H5Pcreate)                                                                                                       \
    X(H5Pclose)                                                                                                        \
    X(H5Pset_elink_cb)                                                                                                 \
    X(H5Pset_cache)                                                                                                    \
    X(H5Pget_layout)                                                                                                   \
    X(H5Pget_external_count)                                                                                           \
    X(H5Dget_space)                                                                                                    \
    X(H5Dget_type)                                                                                                     \
    X(H5Dread)                                                                                                         \
    X(H5Dvlen_reclaim)                                                                                                 \
    X(H5Screate_simple)                                                                                                \
    X(H5Sget_simple_extent_ndims)                                                                                      \
    X(H5Sget_simple_extent_dims)                                                                                       \
    X(H5Sget_simple_extent_npoints)                                                                                    \
    X(H5Sselect_hyperslab)                                                                                             \
    X(H5Sclose)                                                                                                        \
    X(H5Tget_class)                                                                                                    \
    X(H5Tget_cset)                                                                                                     \
    X(H5Tget_size)                                                                                                     \
    X(H5Tis_variable_str)                                                                                              \
    X(H5Tset_cset)                                                                                                     \
    X(H5Tcopy)                                                                                                         \
    X(H5Tset_size)                                                                                                     \
    X(H5Tclose)                                                                                                        \
    X(H5Aexists)                                                                                                       \
    X(H5Aopen)                                                                                                         \
    X(H5Aget_space)                                                                                                    \
    X(H5Aget_type)                                                                                                     \
    X(H5Aread)                                                                                                         \
    X(H5Aclose)

typedef struct thi_hdf5 {
    void *library;
#define THI_HDF5_POINTER(name) __typeof__(name) *name;
    THI_HDF5_FUNCTIONS(THI_HDF5_POINTER)
    hid_t native_double, c_string, file_access, link_access; /* types; classes of properties */
} thi_hdf5;

/* Error: UNSUPPORTED, saying what to install; `path` is the file that needs it. */
thiele_status thi_hdf5_load(thi_hdf5 *api, thiele_context *ctx, const char *path);
void thi_hdf5_unload(thi_hdf5 *api);

/* Where HDF5 prints what fails: switched off while we are at it, and then as the embedding program had it. */
typedef struct thi_hdf5_quiet {
    H5E_auto2_t print;
    void *data;
} thi_hdf5_quiet;
thi_hdf5_quiet thi_hdf5_quiet_begin(const thi_hdf5 *api);
void thi_hdf5_quiet_end(const thi_hdf5 *api, thi_hdf5_quiet old);

typedef struct thi_hdf5_table {
    thiele_table base;
    thi_hdf5 api;
    hid_t file;     /* 0 when there is none: so that a zeroed table can be destroyed */
    hid_t links;    /* how links are followed: not out of the file; 0 as file */
    bool outside;   /* one was met that leads there */
    double length;  /* of the file, in bytes */
    hid_t *dataset; /* one of two dimensions, or one of one dimension for each column; 0 as file */
    int datasets;
    bool grouped;
} thi_hdf5_table;

extern const thi_table_ops thi_hdf5_ops;

#endif
