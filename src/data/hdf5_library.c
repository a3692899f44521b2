/* Finds the HDF5 library at run time and its functions by name. See hdf5.h. */
#include "data/hdf5.h"

#include <dlfcn.h>
#include <string.h>

/* By the names that Debian gives it (versions 12 and 13, development files), then by its own. */
static void *load_library(void)
{
    static const char *const names[] = {"libhdf5_serial.so.103", "libhdf5_serial.so.310", "libhdf5_serial.so",
                                        "libhdf5.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && library == NULL; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    }
    return library;
}

/* By copying: C has no cast between pointers to data and to functions. */
static bool find_function(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_id(void *library, const char *name, hid_t *id)
{
    const hid_t *symbol = dlsym(library, name);
    *id = symbol != NULL ? *symbol : -1;
    return symbol != NULL;
}

thiele_status thi_hdf5_load(thi_hdf5 *api, thiele_context *ctx, const char *path)
{
    api->library = load_library();
    if (api->library == NULL) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "%s is an HDF5 file, but the HDF5 library is not installed (on Debian 12: apt install "
                        "libhdf5-103-1)",
                        path);
    }
    bool found = true;
#define FIND(name) found = found && find_function(api->library, #name, &api->name);
    THI_HDF5_FUNCTIONS(FIND)
    /* The ids of types exist once the library has started. */
    found = found && api->H5open() >= 0 && find_id(api->library, "H5T_NATIVE_DOUBLE_g", &api->native_double) &&
            find_id(api->library, "H5T_C_S1_g", &api->c_string) &&
            find_id(api->library, "H5P_CLS_FILE_ACCESS_ID_g", &api->file_access) &&
            find_id(api->library, "H5P_CLS_LINK_ACCESS_ID_g", &api->link_access);
    if (!found) {
        thi_hdf5_unload(api);
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                        "%s is an HDF5 file, but the installed HDF5 library cannot read it", path);
    }
    return THIELE_OK;
}

void thi_hdf5_unload(thi_hdf5 *api)
{
    if (api->library != NULL) {
        dlclose(api->library);
        api->library = NULL;
    }
}

thi_hdf5_quiet thi_hdf5_quiet_begin(const thi_hdf5 *api)
{
    thi_hdf5_quiet old = {0};
    api->H5Eget_auto2(H5E_DEFAULT, &old.print, &old.data);
    api->H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return old;
}

void thi_hdf5_quiet_end(const thi_hdf5 *api, thi_hdf5_quiet old)
{
    api->H5Eset_auto2(H5E_DEFAULT, old.print, old.data);
}
