/* Values of the document. A number that is not finite is null. */
#include <math.h>
#include <string.h>

#include "report/report.h"

void thi_put(thi_report *r, json_t *to, const char *name, json_t *value)
{
    r->short_of_memory |= json_object_set_new(to, name, value) != 0;
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void thi_put_number(thi_report *r, json_t *to, const char *name, double value)
{
    thi_put(r, to, name, number(value));
}

void thi_put_count(thi_report *r, json_t *to, const char *name, int64_t value)
{
    thi_put(r, to, name, json_integer((json_int_t)value));
}

void thi_put_text(thi_report *r, json_t *to, const char *name, const char *value)
{
    thi_put(r, to, name, value != NULL ? json_string(value) : json_null());
}

void thi_append(thi_report *r, json_t *to, json_t *value)
{
    r->short_of_memory |= json_array_append_new(to, value) != 0;
}

void thi_put_numbers(thi_report *r, json_t *to, const char *name, int64_t n, const double *value)
{
    json_t *list = thi_put_list(r, to, name);
    for (int64_t i = 0; i < n; i++) {
        thi_append(r, list, number(value[i]));
    }
}

void thi_put_counts(thi_report *r, json_t *to, const char *name, int64_t n, const int64_t *value)
{
    json_t *list = thi_put_list(r, to, name);
    for (int64_t i = 0; i < n; i++) {
        thi_append(r, list, json_integer((json_int_t)value[i]));
    }
}

json_t *thi_put_object(thi_report *r, json_t *to, const char *name)
{
    json_t *object = json_object();
    thi_put(r, to, name, object);
    return r->short_of_memory ? NULL : object;
}

json_t *thi_put_list(thi_report *r, json_t *to, const char *name)
{
    json_t *list = json_array();
    thi_put(r, to, name, list);
    return r->short_of_memory ? NULL : list;
}

json_t *thi_append_object(thi_report *r, json_t *to)
{
    json_t *object = json_object();
    thi_append(r, to, object);
    return r->short_of_memory ? NULL : object;
}

const json_t *thi_value_at(const json_t *json, const char *path)
{
    char name[64];
    while (json != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        if (length >= sizeof name) {
            return NULL;
        }
        memcpy(name, path, length);
        name[length] = '\0';
        json = json_object_get(json, name);
        path += length + (path[length] == '.');
    }
    return json;
}

double thi_number_at(const json_t *json, const char *path)
{
    const json_t *value = thi_value_at(json, path);
    return json_is_number(value) ? json_number_value(value) : NAN;
}
