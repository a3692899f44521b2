/*
 * Opens HDF5 tables: finds the dataset or group that is meant, checks that it holds a table of numbers, names the
 * columns. Datasets of a group stand in the order of their names. What the file says is not trusted; above all it may
 * not name other files, whose bytes would be read with the rights of whoever opens this one.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "data/hdf5.h"

enum { LISTED = 10, NAME_MAX_BYTES = 4096 };

static const char how_to_choose[] = "name a dataset or group with `dataset`";

typedef struct shape {
    int rank;
    int64_t size[2];
    size_t bytes; /* of a number in the file */
} shape;

/* False when the object is no dataset of numbers in one or two dimensions. */
static bool get_shape(const thi_hdf5 *api, hid_t object, shape *out)
{
    hsize_t size[2] = {0, 1};
    if (api->H5Iget_type(object) != H5I_DATASET) {
        return false;
    }
    hid_t type = api->H5Dget_type(object);
    hid_t space = api->H5Dget_space(object);
    H5T_class_t kind = type >= 0 ? api->H5Tget_class(type) : H5T_NO_CLASS;
    out->bytes = type >= 0 ? api->H5Tget_size(type) : 0;
    out->rank = space >= 0 ? api->H5Sget_simple_extent_ndims(space) : 0;
    bool fine = (kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM) && out->rank >= 1 && out->rank <= 2 &&
                api->H5Sget_simple_extent_dims(space, size, NULL) >= 0 && size[0] <= INT64_MAX && size[1] <= INT64_MAX;
    if (type >= 0) {
        api->H5Tclose(type);
    }
    if (space >= 0) {
        api->H5Sclose(space);
    }
    out->size[0] = (int64_t)size[0];
    out->size[1] = (int64_t)size[1];
    return fine;
}

/* --- other files -------------------------------------------------------------------------------------------------- */

/* Called where a link leads into another file, before that is opened: it is not. */
static herr_t stay_inside(const char *parent, const char *group, const char *other, const char *object, unsigned *flags,
                          hid_t access, void *outside)
{
    (void)parent, (void)group, (void)other, (void)object, (void)flags, (void)access;
    *(bool *)outside = true;
    return -1;
}

static hid_t open_object(thi_hdf5_table *hdf5, hid_t where, const char *name)
{
    return hdf5->api.H5Oopen(where, name, hdf5->links);
}

/* Refuses a dataset that keeps its numbers elsewhere; asked before anything else of it is. */
static thiele_status check_storage(const thi_hdf5_table *hdf5, thiele_context *ctx, hid_t object, const char *path,
                                   const char *name)
{
    const thi_hdf5 *api = &hdf5->api;
    const char *where = NULL;
    if (api->H5Iget_type(object) != H5I_DATASET) {
        return THIELE_OK;
    }
    hid_t properties = api->H5Dget_create_plist(object);
    if (properties < 0) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s: '%s' does not say how it is stored: the file is damaged", path,
                        name);
    }
    if (api->H5Pget_layout(properties) == H5D_VIRTUAL) {
        where = "is a virtual dataset, put together from other datasets and files";
    } else if (api->H5Pget_external_count(properties) != 0) {
        where = "keeps its numbers in other files (external storage)";
    }
    api->H5Pclose(properties);
    return where == NULL ? THIELE_OK
                         : thi_fail(ctx, THIELE_ERROR_UNSUPPORTED,
                                    "%s: '%s' %s, and a table reads only its own file: copy the numbers into one "
                                    "file",
                                    path, name, where);
}

static thiele_status linked_outside(thiele_context *ctx, const char *path, const char *name)
{
    return thi_fail(
        ctx, THIELE_ERROR_UNSUPPORTED,
        "%s: '%s' is reached by a link into another file (an external link), and a table reads only its own "
        "file: copy the numbers into one file",
        path, name);
}

/*
 * Refuses a size that the file cannot hold: chunks that were never written take no room, and would be read for years as
 * zeros. Packed numbers take a thousandth at the least (deflate packs 1032 bytes into one).
 */
static thiele_status check_size(const thi_hdf5_table *hdf5, thiele_context *ctx, const char *path, const char *name,
                                const shape *extent)
{
    static const double MOST = 4096.0;
    double bytes = (double)extent->size[0] * (double)extent->size[1] * (double)extent->bytes;
    if (bytes <= MOST * hdf5->length) {
        return THIELE_OK;
    }
    return thi_fail(ctx, THIELE_ERROR_FORMAT,
                    "%s: '%s' claims %lld rows and %lld column%s (%.3g bytes) in a file of %.0f bytes: most of it was "
                    "never written",
                    path, name, (long long)extent->size[0], (long long)extent->size[1], extent->size[1] == 1 ? "" : "s",
                    bytes, hdf5->length);
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

static int64_t count_links(const thi_hdf5 *api, hid_t group)
{
    H5G_info_t info;
    return api->H5Gget_info(group, &info) >= 0 && info.nlinks <= INT_MAX ? (int64_t)info.nlinks : -1;
}

/* The name of a group's i-th member, cut at capacity; "?" when it can't be told. */
static void member_name(const thi_hdf5 *api, hid_t group, int64_t i, char *name, size_t capacity)
{
    if (api->H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i, name, capacity, H5P_DEFAULT) < 0) {
        strcpy(name, "?");
    }
}

/* Refuses a group, listing what is in it. */
static thiele_status no_table(const thi_hdf5_table *hdf5, thiele_context *ctx, hid_t group, const char *path,
                              const char *reason)
{
    thi_text list;
    thi_text_init(&list, ctx);
    int64_t links = count_links(&hdf5->api, group);
    for (int64_t i = 0; i < links && i < LISTED; i++) {
        char name[64];
        member_name(&hdf5->api, group, i, name, sizeof name);
        thi_text_add(&list, "%s'%s'", i > 0 ? ", " : "", name);
    }
    thi_text_add(&list, "%s", links > LISTED ? ", ..." : "");
    thiele_status status = list.status;
    if (status == THIELE_OK) {
        status = thi_fail(ctx, THIELE_ERROR_FORMAT, "%s holds %s, %s: %s", path, list.data, reason, how_to_choose);
    }
    thi_text_clear(&list);
    return status;
}

/* Opens the i-th member as a column; *rows is the length that all must have, -1 before the first. */
static thiele_status open_column(thi_hdf5_table *hdf5, thiele_context *ctx, hid_t group, int64_t i, const char *path,
                                 int64_t *rows)
{
    const thi_hdf5 *api = &hdf5->api;
    char name[NAME_MAX_BYTES];
    shape extent;
    member_name(api, group, i, name, sizeof name);
    hid_t object = open_object(hdf5, group, name);
    hdf5->dataset[i] = object > 0 ? object : 0;
    if (hdf5->outside) {
        return linked_outside(ctx, path, name);
    }
    thiele_status status = object >= 0 ? check_storage(hdf5, ctx, object, path, name) : THIELE_OK;
    if (status != THIELE_OK) {
        return status;
    }
    if (object < 0 || !get_shape(api, object, &extent) || extent.rank != 1) {
        return no_table(hdf5, ctx, group, path, "which are not all columns of numbers");
    }
    if (*rows >= 0 && extent.size[0] != *rows) {
        return no_table(hdf5, ctx, group, path, "which are not all of the same length");
    }
    *rows = extent.size[0];
    return check_size(hdf5, ctx, path, name, &extent);
}

static thiele_status open_group(thi_hdf5_table *hdf5, thiele_context *ctx, hid_t group, const char *path)
{
    int64_t links = count_links(&hdf5->api, group);
    int64_t rows = -1;
    thiele_status status;
    if (links < 1) {
        return thi_fail(ctx, THIELE_ERROR_DATA, "%s holds no columns: %s", path, how_to_choose);
    }
    THI_TRY(thi_alloc(ctx, &hdf5->dataset, (size_t)links, sizeof *hdf5->dataset));
    hdf5->datasets = (int)links;
    hdf5->grouped = true;
    for (int64_t i = 0; i < links; i++) {
        THI_TRY(open_column(hdf5, ctx, group, i, path, &rows));
    }
    THI_TRY(thi_table_init(&hdf5->base, ctx, path, rows, links));
    for (int64_t i = 0; i < links; i++) {
        char name[NAME_MAX_BYTES];
        member_name(&hdf5->api, group, i, name, sizeof name);
        THI_TRY(thi_strdup(ctx, &hdf5->base.name[i], name));
    }
out:
    return status;
}

/* --- one dataset ------------------------------------------------------------------------------------------------ */

/* The strings of an attribute in memory: pointers, or text of a fixed size each. */
typedef struct strings {
    bool variable;
    size_t size;
    char *data;
} strings;

static const char *string_at(const strings *list, int i)
{
    char *pointer;
    if (!list->variable) {
        return list->data + (size_t)i * list->size;
    }
    memcpy(&pointer, list->data + (size_t)i * sizeof pointer, sizeof pointer);
    return pointer != NULL ? pointer : "";
}

static thiele_status take_names(thi_hdf5_table *hdf5, thiele_context *ctx, const strings *list)
{
    thiele_status status = THIELE_OK;
    for (int c = 0; c < hdf5->base.columns && status == THIELE_OK; c++) {
        const char *name = string_at(list, c);
        if (*name != '\0') {
            thi_free(hdf5->base.name[c]);
            status = thi_strdup(ctx, &hdf5->base.name[c], name);
        }
    }
    return status;
}

/* Reads one string for each column from an attribute of the given type. HDF5 adds the zero at the end of fixed ones. */
static thiele_status read_names(thi_hdf5_table *hdf5, thiele_context *ctx, hid_t attribute, hid_t type, hid_t space)
{
    const thi_hdf5 *api = &hdf5->api;
    const bool variable = api->H5Tis_variable_str(type) > 0;
    const size_t size = variable ? sizeof(char *) : api->H5Tget_size(type) + 1;
    if (size > NAME_MAX_BYTES) {
        return THIELE_OK;
    }
    strings list = {variable, size, NULL};
    thiele_status status = thi_alloc(ctx, &list.data, (size_t)hdf5->base.columns, size);
    hid_t memory = status == THIELE_OK ? api->H5Tcopy(api->c_string) : -1;
    if (memory >= 0 && api->H5Tset_size(memory, variable ? H5T_VARIABLE : size) >= 0 &&
        api->H5Tset_cset(memory, api->H5Tget_cset(type)) >= 0 && api->H5Aread(attribute, memory, list.data) >= 0) {
        status = take_names(hdf5, ctx, &list);
        if (variable) {
            api->H5Dvlen_reclaim(memory, space, H5P_DEFAULT, list.data);
        }
    }
    if (memory >= 0) {
        api->H5Tclose(memory);
    }
    thi_free(list.data);
    return status;
}

/* Names columns by the dataset's attribute "columns"; they keep the names they have when it is of no use. */
static thiele_status name_by_attribute(thi_hdf5_table *hdf5, thiele_context *ctx)
{
    const thi_hdf5 *api = &hdf5->api;
    thiele_status status = THIELE_OK;
    if (api->H5Aexists(hdf5->dataset[0], "columns") <= 0) {
        return status;
    }
    hid_t attribute = api->H5Aopen(hdf5->dataset[0], "columns", H5P_DEFAULT);
    hid_t type = attribute >= 0 ? api->H5Aget_type(attribute) : -1;
    hid_t space = attribute >= 0 ? api->H5Aget_space(attribute) : -1;
    if (type >= 0 && space >= 0 && api->H5Tget_class(type) == H5T_STRING &&
        api->H5Sget_simple_extent_npoints(space) == hdf5->base.columns) {
        status = read_names(hdf5, ctx, attribute, type, space);
    } else {
        thi_log(ctx, THIELE_LOG_WARNING, "%s: the attribute 'columns' does not hold one name for each column",
                hdf5->base.source);
    }
    if (space >= 0) {
        api->H5Sclose(space);
    }
    if (type >= 0) {
        api->H5Tclose(type);
    }
    if (attribute >= 0) {
        api->H5Aclose(attribute);
    }
    return status;
}

/* Owns the object from here on. A dataset of one dimension is a column of the dataset's name. */
static thiele_status open_dataset(thi_hdf5_table *hdf5, thiele_context *ctx, hid_t object, const char *path,
                                  const char *name)
{
    shape extent;
    thiele_status status = thi_alloc(ctx, &hdf5->dataset, 1, sizeof *hdf5->dataset);
    if (status != THIELE_OK) {
        hdf5->api.H5Oclose(object);
        return status;
    }
    hdf5->dataset[0] = object;
    hdf5->datasets = 1;
    THI_TRY(check_storage(hdf5, ctx, object, path, name));
    if (!get_shape(&hdf5->api, object, &extent)) {
        return thi_fail(ctx, THIELE_ERROR_UNSUPPORTED, "%s: '%s' is not a dataset of numbers in one or two dimensions",
                        path, name);
    }
    THI_TRY(check_size(hdf5, ctx, path, name, &extent));
    THI_TRY(thi_table_init(&hdf5->base, ctx, path, extent.size[0], extent.size[1]));
    THI_TRY(thi_table_number_names(&hdf5->base, ctx));
    if (extent.rank == 1) {
        const char *slash = strrchr(name, '/');
        thi_free(hdf5->base.name[0]);
        THI_TRY(thi_strdup(ctx, &hdf5->base.name[0], slash != NULL ? slash + 1 : name));
    }
    THI_TRY(name_by_attribute(hdf5, ctx));
    THI_TRY(thi_table_check_names(&hdf5->base, ctx));
out:
    return status;
}

/* --- the file --------------------------------------------------------------------------------------------------- */

/* Opens the object that is meant and copies its name: the chosen one, the only one in the root, or the root itself. */
static hid_t find_object(thi_hdf5_table *hdf5, const char *chosen, char name[NAME_MAX_BYTES])
{
    const thi_hdf5 *api = &hdf5->api;
    snprintf(name, NAME_MAX_BYTES, "%s", chosen != NULL ? chosen : "/");
    hid_t object = open_object(hdf5, hdf5->file, name);
    if (chosen == NULL && object >= 0 && count_links(api, object) == 1) {
        member_name(api, object, 0, name, NAME_MAX_BYTES);
        api->H5Oclose(object);
        object = open_object(hdf5, hdf5->file, name);
    }
    return object;
}

/* With room for the large chunks that packed tables have: one that does not fit is unpacked anew for each slab. */
static hid_t open_with_cache(const thi_hdf5 *api, const char *path)
{
    enum { SLOTS = 521, CACHE = 1 << 25 };
    const unsigned read_only = 0; /* H5F_ACC_RDONLY would call the library by name */
    hid_t access = api->H5Pcreate(api->file_access);
    if (access < 0) {
        return -1;
    }
    api->H5Pset_cache(access, 0, SLOTS, CACHE, 1.0);
    hid_t file = api->H5Fopen(path, read_only, access);
    api->H5Pclose(access);
    return file;
}

static thiele_status open_file(thi_hdf5_table *hdf5, thiele_context *ctx, const char *path, const char *chosen)
{
    char name[NAME_MAX_BYTES];
    struct stat info;
    hdf5->length = stat(path, &info) == 0 ? (double)info.st_size : 0.0;
    hdf5->links = hdf5->api.H5Pcreate(hdf5->api.link_access);
    bool bound = hdf5->links > 0 && hdf5->api.H5Pset_elink_cb(hdf5->links, stay_inside, &hdf5->outside) >= 0;
    hdf5->file = bound ? open_with_cache(&hdf5->api, path) : -1;
    if (hdf5->file < 0) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT,
                        "%s begins as an HDF5 file, but cannot be read: it is damaged or cut off", path);
    }
    hid_t object = find_object(hdf5, chosen, name);
    if (hdf5->outside) {
        return linked_outside(ctx, path, name);
    }
    if (object < 0 && chosen == NULL) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "%s is an HDF5 file whose contents cannot be read: it is damaged",
                        path);
    }
    if (object < 0) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "%s holds no dataset or group '%s'", path, name);
    }
    if (hdf5->api.H5Iget_type(object) != H5I_GROUP) {
        return open_dataset(hdf5, ctx, object, path, name);
    }
    thiele_status status = open_group(hdf5, ctx, object, path);
    hdf5->api.H5Oclose(object);
    return status;
}

thiele_status thi_table_open_hdf5(thiele_table **out, thiele_context *ctx, const char *path,
                                  const thiele_table_options *options)
{
    *out = NULL;
    thi_hdf5_table *hdf5;
    thiele_status status = thi_alloc(ctx, &hdf5, 1, sizeof *hdf5);
    if (status != THIELE_OK) {
        return status;
    }
    hdf5->base.ops = &thi_hdf5_ops;
    status = thi_hdf5_load(&hdf5->api, ctx, path);
    if (status == THIELE_OK) {
        thi_hdf5_quiet old = thi_hdf5_quiet_begin(&hdf5->api);
        status = open_file(hdf5, ctx, path, options->dataset);
        thi_hdf5_quiet_end(&hdf5->api, old);
    }
    if (status != THIELE_OK) {
        thiele_table_destroy(&hdf5->base);
        return status;
    }
    *out = &hdf5->base;
    return THIELE_OK;
}
