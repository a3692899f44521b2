/* A ring of rows. See kept.h. */
#include "fit/kept.h"

#include <math.h>
#include <string.h>

int64_t thi_kept_default(int64_t numbers)
{
    enum { ROWS = 4096, NUMBERS = 1 << 20 };
    return thi_least(ROWS, thi_most(1, NUMBERS / numbers));
}

static thiele_status open_rows(thi_kept *k, thiele_context *ctx, int64_t most, int dims, int outputs)
{
    *k = (thi_kept){.most = most};
    thiele_status status = thi_rows_alloc(&k->rows, ctx, most, dims, outputs, (thi_aside){.offset = true});
    k->rows.n = 0;
    return status == THIELE_OK ? thi_alloc(ctx, &k->weight, (size_t)most, sizeof *k->weight) : status;
}

static thiele_status open_sites(thi_kept *k, thiele_context *ctx, int latents)
{
    size_t sites = (size_t)k->most * (size_t)latents;
    thiele_status status = thi_alloc(ctx, &k->lambda, sites, sizeof *k->lambda);
    k->latents = latents;
    return status == THIELE_OK ? thi_alloc(ctx, &k->nu, sites, sizeof *k->nu) : status;
}

void thi_kept_close(thi_kept *k)
{
    thi_rows_free(&k->rows);
    thi_free(k->weight);
    thi_free(k->lambda);
    thi_free(k->nu);
    *k = (thi_kept){0};
}

static void copy_numbers(double *to, int64_t at, const double *from, int64_t i, int width)
{
    memcpy(to + at * width, from + i * width, (size_t)width * sizeof *to);
}

static bool is_whole(const thi_rows *rows, int64_t i)
{
    bool whole = true;
    for (int p = 0; p < rows->outputs; p++) {
        whole = whole && !isnan(rows->y[i * rows->outputs + p]);
    }
    return whole;
}

/* weight NULL: 1 */
static void add(thi_kept *k, const thi_rows *rows, const double *weight, const double *lambda, const double *nu)
{
    for (int64_t i = 0; k->most > 0 && i < rows->n; i++) {
        int64_t at = k->next;
        if (!is_whole(rows, i)) {
            continue;
        }
        copy_numbers(k->rows.X, at, rows->X, i, rows->dims);
        copy_numbers(k->rows.y, at, rows->y, i, rows->outputs);
        k->rows.offset[at] = rows->offset != NULL ? rows->offset[i] : 0.0;
        k->weight[at] = weight != NULL ? weight[i] : 1.0;
        if (k->lambda != NULL && lambda != NULL) {
            copy_numbers(k->lambda, at, lambda, i, k->latents);
            copy_numbers(k->nu, at, nu, i, k->latents);
        }
        k->next = (at + 1) % k->most;
        k->rows.n = thi_most(k->rows.n, at + 1);
    }
}

void thi_kept_add(thi_kept *k, const thi_rows *rows, const double *lambda, const double *nu)
{
    add(k, rows, NULL, lambda, nu);
}

thiele_status thi_kept_take(thi_kept *k, thiele_context *ctx, const thi_rows *rows, int64_t most)
{
    thiele_status status = open_rows(k, ctx, thi_least(most, rows->n), rows->dims, rows->outputs);
    if (status == THIELE_OK) {
        thi_kept_add(k, rows, NULL, NULL);
    }
    return status;
}

thiele_status thi_kept_resize(thi_kept *k, thiele_context *ctx, int64_t most, int dims, int outputs, int latents)
{
    thi_kept larger = {0};
    thiele_status status;
    THI_TRY(thi_kept_sort(k, ctx));
    THI_TRY(open_rows(&larger, ctx, most, dims, outputs));
    THI_TRY(open_sites(&larger, ctx, latents));
    add(&larger, &k->rows, k->weight, k->lambda, k->nu);
    larger.fixed_basis = k->fixed_basis;
    thi_kept_close(k);
    *k = larger;
    return THIELE_OK;
out:
    thi_kept_close(&larger);
    return status;
}

thiele_status thi_kept_copy(thi_kept *out, thiele_context *ctx, const thi_kept *k)
{
    thiele_status status;
    *out = (thi_kept){0};
    if (k->most == 0) {
        return THIELE_OK;
    }
    THI_TRY(open_rows(out, ctx, k->most, k->rows.dims, k->rows.outputs));
    if (k->lambda != NULL) {
        THI_TRY(open_sites(out, ctx, k->latents));
    }
    add(out, &k->rows, k->weight, k->lambda, k->nu);
    out->next = k->next;
    out->fixed_basis = k->fixed_basis;
out:
    return status;
}

void thi_kept_fade(thi_kept *k, double factor)
{
    for (int64_t i = 0; factor < 1.0 && i < k->rows.n; i++) {
        k->weight[i] *= factor;
    }
    for (int64_t i = 0; factor < 1.0 && i < k->rows.n * k->latents; i++) {
        k->lambda[i] *= factor;
        k->nu[i] *= factor;
    }
}

/* The numbers that rows have, so many each. */
typedef struct column {
    double *numbers; /* NULL: not known */
    int64_t width;
} column;
enum { COLUMNS = 6 };

static void list_columns(const thi_kept *k, column all[COLUMNS])
{
    const column list[COLUMNS] = {{k->rows.X, k->rows.dims}, {k->rows.y, k->rows.outputs},
                                  {k->rows.offset, 1},       {k->weight, 1},
                                  {k->lambda, k->latents},   {k->nu, k->latents}};
    memcpy(all, list, sizeof list);
}

/* The part from `next` on comes before the other one. */
static thiele_status turn(const thi_kept *k, thiele_context *ctx, double *numbers, int64_t width)
{
    size_t first = (size_t)k->next * (size_t)width, rest = (size_t)(k->rows.n - k->next) * (size_t)width;
    double *kept = NULL;
    thiele_status status = thi_alloc(ctx, &kept, first, sizeof *kept);
    if (status == THIELE_OK) {
        memcpy(kept, numbers, first * sizeof *kept);
        memmove(numbers, numbers + first, rest * sizeof *kept);
        memcpy(numbers + rest, kept, first * sizeof *kept);
    }
    thi_free(kept);
    return status;
}

thiele_status thi_kept_sort(thi_kept *k, thiele_context *ctx)
{
    column all[COLUMNS];
    thiele_status status = THIELE_OK;
    list_columns(k, all);
    if (k->next == 0 || k->rows.n < k->most) {
        return status;
    }
    for (int i = 0; i < COLUMNS && status == THIELE_OK; i++) {
        status = all[i].numbers != NULL ? turn(k, ctx, all[i].numbers, all[i].width) : THIELE_OK;
    }
    k->next = 0;
    return status;
}

double thi_kept_oldest(const thi_kept *k)
{
    bool full = k->rows.n == k->most;
    return k->rows.n == 0 || k->weight == NULL ? 1.0 : k->weight[full ? k->next : 0];
}

void thi_kept_drop(thi_kept *k, double weight, int64_t least)
{
    int64_t gone = 0;
    while (gone < k->rows.n - least && k->weight[gone] < weight) {
        gone++;
    }
    column all[COLUMNS];
    list_columns(k, all);
    k->rows.n -= gone;
    for (int i = 0; gone > 0 && i < COLUMNS; i++) {
        if (all[i].numbers != NULL) {
            memmove(all[i].numbers, all[i].numbers + gone * all[i].width,
                    (size_t)(k->rows.n * all[i].width) * sizeof *all[i].numbers);
        }
    }
    k->next = gone > 0 ? k->rows.n : k->next;
}
