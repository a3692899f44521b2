/*
 * Which of a table's columns are targets, exposure, weights, partition and inputs, by the lists of the fit's options. A
 * column plays one part only, but that of the partition may be listed among the inputs.
 */
#include <string.h>

#include "data/encoder.h"

enum { ROLE_NONE, ROLE_TARGET, ROLE_EXPOSURE, ROLE_INPUT, ROLE_PARTITION, ROLE_WEIGHTS };

static thiele_status find_part(const thi_choice *c, const char *part, size_t length, int *column)
{
    char *name;
    thiele_status status = thi_strndup(c->ctx, &name, part, length);
    if (status == THIELE_OK) {
        status = thiele_table_find_column(c->table, c->ctx, name, column);
        thi_free(name);
    }
    return status;
}

static thiele_status mark_part(const thi_choice *c, const char *part, size_t length, bool *mark)
{
    int column;
    thiele_status status = length > 0 ? find_part(c, part, length, &column) : THIELE_OK;
    if (status == THIELE_OK && length > 0) {
        mark[column] = true;
    }
    return status;
}

static thiele_status ignore_part(void *arg, const char *part, size_t length)
{
    return mark_part(arg, part, length, ((thi_choice *)arg)->ignored);
}

static thiele_status categorical_part(void *arg, const char *part, size_t length)
{
    return mark_part(arg, part, length, ((thi_choice *)arg)->categorical);
}

/* Gives a column its part, unless it has one already. */
static thiele_status cast(thi_choice *c, int column, unsigned char role)
{
    static const char *const one[] = {"", "a target", "the exposure", "an input", "the partition", "the weights"};
    static const char *const all[] = {"", "targets", "exposures", "inputs", "partitions", "weights"};
    const char *name = c->table->name[column];
    if (c->role[column] == role) {
        return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "column '%s' is listed twice among the %s", name, all[role]);
    }
    if (c->role[column] != ROLE_NONE) {
        return thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "column '%s' is already %s and cannot also be %s", name,
                        one[c->role[column]], one[role]);
    }
    c->role[column] = role;
    return THIELE_OK;
}

static thiele_status target_part(void *arg, const char *part, size_t length)
{
    thi_choice *c = arg;
    int column;
    thiele_status status = THIELE_OK;
    if (length > 0) {
        THI_TRY(find_part(c, part, length, &column));
        THI_TRY(cast(c, column, ROLE_TARGET));
        c->target[c->targets++] = column;
    }
out:
    return status;
}

static thiele_status input_part(void *arg, const char *part, size_t length)
{
    thi_choice *c = arg;
    int column;
    thiele_status status = THIELE_OK;
    if (length > 0) {
        THI_TRY(find_part(c, part, length, &column));
        THI_TRY(cast(c, column, ROLE_INPUT));
        c->input[c->inputs++] = column;
    }
out:
    return status;
}

/* A text that is a column's name as it stands means that column, commas and all. */
static thiele_status choose_targets(thi_choice *c, const char *list)
{
    thiele_status status;
    if (list != NULL && thi_table_column(c->table, list) >= 0) {
        return target_part(c, list, strlen(list));
    }
    status = thi_split_list(list, target_part, c);
    if (status == THIELE_OK && c->targets == 0) {
        status = thi_fail(c->ctx, THIELE_ERROR_ARGUMENT, "no target column was named");
    }
    return status;
}

static thiele_status choose_one(thi_choice *c, const char *name, unsigned char role, int *column)
{
    thiele_status status = thiele_table_find_column(c->table, c->ctx, name, column);
    return status == THIELE_OK ? cast(c, *column, role) : status;
}

/* It is no input unless it is listed among them. */
static thiele_status choose_partition(thi_choice *c, const char *name, bool listed)
{
    thiele_status status;
    THI_TRY(thiele_table_find_column(c->table, c->ctx, name, &c->key));
    THI_TRY(cast(c, c->key, ROLE_PARTITION));
    if (listed) {
        c->role[c->key] = ROLE_NONE;
    }
out:
    return status;
}

/* The inputs in the order they are listed or, without a list, as they stand in the table. */
static thiele_status choose_inputs(thi_choice *c, const char *list)
{
    thiele_status status = THIELE_OK;
    if (list != NULL) {
        status = thi_split_list(list, input_part, c);
    } else {
        for (int column = 0; column < c->table->columns; column++) {
            if (c->role[column] == ROLE_NONE) {
                c->input[c->inputs++] = column;
            }
        }
    }
    int kept = 0;
    for (int i = 0; i < c->inputs; i++) {
        if (!c->ignored[c->input[i]]) {
            c->input[kept++] = c->input[i];
        }
    }
    c->inputs = kept;
    if (status == THIELE_OK && kept == 0) {
        return thi_fail(c->ctx, THIELE_ERROR_DATA, "no input columns are left in %s", thi_table_source(c->table));
    }
    return status;
}

thiele_status thi_choose_columns(thi_choice *choice, const thi_column_options *options)
{
    thi_choice *c = choice;
    const size_t columns = (size_t)c->table->columns;
    thiele_status status;
    c->exposure = c->weights = c->key = -1;
    THI_TRY(thi_alloc(c->ctx, &c->target, columns, sizeof *c->target));
    THI_TRY(thi_alloc(c->ctx, &c->input, columns, sizeof *c->input));
    THI_TRY(thi_alloc(c->ctx, &c->ignored, columns, sizeof *c->ignored));
    THI_TRY(thi_alloc(c->ctx, &c->categorical, columns, sizeof *c->categorical));
    THI_TRY(thi_alloc(c->ctx, &c->role, columns, sizeof *c->role));
    THI_TRY(thi_alloc(c->ctx, &c->dates, columns, sizeof *c->dates));
    for (int column = 0; column < c->table->columns; column++) {
        c->categorical[column] = thi_table_is_category(c->table, column);
    }
    c->listed = options->inputs != NULL;
    THI_TRY(choose_targets(c, options->target));
    if (options->exposure != NULL) {
        THI_TRY(choose_one(c, options->exposure, ROLE_EXPOSURE, &c->exposure));
    }
    if (options->weights != NULL) {
        THI_TRY(choose_one(c, options->weights, ROLE_WEIGHTS, &c->weights));
    }
    if (options->partition != NULL) {
        THI_TRY(choose_partition(c, options->partition, options->inputs != NULL));
    }
    THI_TRY(thi_split_list(options->ignore, ignore_part, c));
    THI_TRY(thi_split_list(options->categorical, categorical_part, c));
    THI_TRY(choose_inputs(c, options->inputs));
out:
    return status;
}

void thi_choice_free(thi_choice *choice)
{
    thi_free(choice->target);
    thi_free(choice->input);
    thi_free(choice->ignored);
    thi_free(choice->categorical);
    thi_free(choice->role);
    thi_free(choice->dates);
}

thiele_status thi_choice_name(const thi_choice *choice, int column, char **out)
{
    const char *name = choice->table->name[column];
    if (!thi_is_utf8(name, strlen(name))) {
        return thi_fail(choice->ctx, THIELE_ERROR_DATA,
                        "the name of column %d is not UTF-8: convert the file, as with iconv -f latin1 -t utf-8",
                        column + 1);
    }
    return thi_strdup(choice->ctx, out, name);
}
