/*
 * Rows that are equal in all that a fit reads become one with the sum of their weights, and rows of weight 0 none: what
 * is learned from them is the same, for less work. The order is that of a hash of what a row holds, so that it depends
 * on the rows alone and not on where they stood: a row twice and a row of weight 2 lead to the same fit, bit for bit.
 * Where nothing is merged and all weights are 1 rows keep their order.
 *
 * Cells are compared as numbers or, in columns that have texts, by two hashes of 64 bits. O(n log n) comparisons; 8
 * bytes for each cell.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/encoder.h"

/* --- the table -------------------------------------------------------------------------------------------------------
 */

typedef struct merged {
    thiele_table base;
    int64_t *row; /* of the other table, for each row of this one */
    double *weight;
    int column; /* of the weights */
} merged;

static thiele_status merged_numbers(const thiele_table *table, thiele_context *ctx, int64_t first, int64_t count,
                                    const int *column, int columns, double *out)
{
    const merged *m = (const merged *)table;
    thiele_status status = THIELE_OK;
    for (int64_t at = 0, run; at < count && status == THIELE_OK; at += run) {
        const int64_t *row = m->row + first + at;
        for (run = 1; run < count - at && row[run] == row[0] + run; run++) {
        }
        status = table->from->ops->numbers(table->from, ctx, row[0], run, column, columns, out + at * columns);
    }
    for (int c = 0; c < columns && status == THIELE_OK; c++) {
        for (int64_t i = 0; i < count && column[c] == m->column; i++) {
            out[i * columns + c] = m->weight[first + i];
        }
    }
    return status;
}

static thiele_status merged_cell(const thiele_table *table, thiele_context *ctx, int64_t row, int column,
                                 thi_text *buffer, const char **text, size_t *length)
{
    return thi_table_cell(table->from, ctx, ((const merged *)table)->row[row], column, buffer, text, length);
}

static const thiele_table *merged_part(const thiele_table *table, int64_t *row)
{
    *row = ((const merged *)table)->row[*row];
    return table->from;
}

static void merged_destroy(thiele_table *table)
{
    thi_free(((merged *)table)->row);
    thi_free(((merged *)table)->weight);
    thi_free(table);
}

static const thi_table_ops merged_ops = {
    .numbers = merged_numbers,
    .cell = merged_cell,
    .part = merged_part,
    .destroy = merged_destroy,
};

/* --- what rows hold --------------------------------------------------------------------------------------------------
 */

/* A row that has a weight: hash and words are of its cells. */
typedef struct sort_key {
    uint64_t hash;
    const uint64_t *word;
    int words;
    int64_t row;
    double weight;
} sort_key;

typedef struct search {
    thiele_context *ctx;
    const thiele_table *table;
    int *number, numbers; /* columns that are read as numbers; the last one has the weights */
    int *text, texts;     /* and as texts */
    uint64_t *word;
    double *scratch;
    sort_key *key;
    int64_t keys;
} search;

static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

static uint64_t number_word(double value)
{
    uint64_t bits;
    value = isnan(value) ? NAN : value + 0.0; /* one zero, one missing value */
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void text_words(const char *text, size_t length, uint64_t word[2])
{
    word[0] = UINT64_C(0x9e3779b97f4a7c15) + length;
    word[1] = UINT64_C(0xbf58476d1ce4e5b9);
    for (size_t i = 0; i < length; i++) {
        word[0] = mix(word[0] ^ (unsigned char)text[i]);
        word[1] = (word[1] ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
}

static thiele_status add_row(search *s, thi_text *buffer, int64_t row, const double *number)
{
    int words = s->numbers - 1 + 2 * s->texts;
    uint64_t *word = s->word + s->keys * words, hash = 0;
    double weight = number[s->numbers - 1];
    if (!thi_is_weight(weight)) {
        return thi_weight_refused(s->ctx, s->table, row, s->number[s->numbers - 1], weight);
    }
    if (weight == 0.0) {
        return THIELE_OK;
    }
    for (int c = 0; c < s->numbers - 1; c++) {
        word[c] = number_word(number[c]);
    }
    for (int c = 0; c < s->texts; c++) {
        const char *text;
        size_t length;
        thiele_status status = thi_table_cell(s->table, s->ctx, row, s->text[c], buffer, &text, &length);
        if (status != THIELE_OK) {
            return status;
        }
        thi_trim(&text, &length);
        text_words(text, length, word + s->numbers - 1 + 2 * (ptrdiff_t)c);
    }
    for (int w = 0; w < words; w++) {
        hash = mix(hash + UINT64_C(0x9e3779b97f4a7c15) + word[w]);
    }
    s->key[s->keys++] = (sort_key){hash, word, words, row, weight};
    return THIELE_OK;
}

static thiele_status read_rows(search *s)
{
    int64_t rows = s->table->rows, block = thi_table_block(s->table, s->numbers);
    thi_text buffer;
    thiele_status status;
    thi_text_init(&buffer, s->ctx);
    THI_TRY(thi_alloc(s->ctx, &s->scratch, (size_t)block, (size_t)s->numbers * sizeof *s->scratch));
    for (int64_t first = 0; first < rows; first += block) {
        int64_t count = thi_least(block, rows - first);
        THI_TRY(s->table->ops->numbers(s->table, s->ctx, first, count, s->number, s->numbers, s->scratch));
        for (int64_t i = 0; i < count; i++) {
            THI_TRY(add_row(s, &buffer, first + i, s->scratch + i * s->numbers));
        }
        THI_TRY(thi_look_up(s->ctx, first, rows));
    }
    if (s->keys == 0) {
        status = thi_fail(s->ctx, THIELE_ERROR_DATA, "column '%s': all weights are zero, so that no row is left",
                          s->table->name[s->number[s->numbers - 1]]);
    }
out:
    thi_text_clear(&buffer);
    return status;
}

/* Columns with a text anywhere are texts throughout. */
static void add_column(search *s, int column)
{
    int64_t texts, missing;
    if (column < 0) {
        return;
    }
    thi_table_census(s->table, column, &texts, &missing);
    if (texts > 0) {
        s->text[s->texts++] = column;
    } else {
        s->number[s->numbers++] = column;
    }
}

static thiele_status choose(search *s, const thi_choice *c)
{
    const size_t most = (size_t)c->table->columns + 1;
    thiele_status status;
    THI_TRY(thi_alloc(s->ctx, &s->number, most, sizeof *s->number));
    THI_TRY(thi_alloc(s->ctx, &s->text, most, sizeof *s->text));
    for (int p = 0; p < c->targets; p++) {
        add_column(s, c->target[p]);
    }
    for (int i = 0; i < c->inputs; i++) {
        add_column(s, c->input[i]);
    }
    add_column(s, c->exposure);
    add_column(s, c->key);
    s->number[s->numbers++] = c->weights;
out:
    return status;
}

/* --- merging ---------------------------------------------------------------------------------------------------------
 */

static int compare_cells(const sort_key *a, const sort_key *b)
{
    return a->hash != b->hash ? (a->hash > b->hash) - (a->hash < b->hash)
                              : memcmp(a->word, b->word, (size_t)a->words * sizeof *a->word);
}

/* By cells, and among equals by weight, so that their sum has one order too. */
static int compare(const void *left, const void *right)
{
    const sort_key *a = left, *b = right;
    int order = compare_cells(a, b);
    order = order != 0 ? order : (a->weight > b->weight) - (a->weight < b->weight);
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

/* The first of equal keys gets the sum; returns how many are left. */
static int64_t merge_keys(sort_key *key, int64_t keys)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < keys; i++) {
        if (kept > 0 && compare_cells(&key[kept - 1], &key[i]) == 0) {
            key[kept - 1].weight += key[i].weight;
            key[kept - 1].row = thi_least(key[kept - 1].row, key[i].row);
        } else {
            key[kept++] = key[i];
        }
    }
    return kept;
}

static int compare_rows(const void *left, const void *right)
{
    const sort_key *a = left, *b = right;
    return (a->row > b->row) - (a->row < b->row);
}

/* Sorted and merged; whether all weights are 1. */
static bool settle(search *s)
{
    bool equal = true;
    qsort(s->key, (size_t)s->keys, sizeof *s->key, compare);
    s->keys = merge_keys(s->key, s->keys);
    for (int64_t i = 0; i < s->keys; i++) {
        equal = equal && s->key[i].weight == 1.0;
    }
    if (equal) {
        qsort(s->key, (size_t)s->keys, sizeof *s->key, compare_rows);
    }
    return equal;
}

static thiele_status make(const search *s, bool equal, thiele_table **out)
{
    merged *m = NULL;
    thiele_status status;
    THI_TRY(thi_alloc(s->ctx, &m, 1, sizeof *m));
    m->base = *s->table; /* source, columns and names are borrowed */
    m->base.ops = &merged_ops;
    m->base.rows = s->keys;
    m->base.from = s->table;
    m->base.equal = equal;
    m->column = s->number[s->numbers - 1];
    THI_TRY(thi_alloc(s->ctx, &m->row, (size_t)s->keys, sizeof *m->row));
    THI_TRY(thi_alloc(s->ctx, &m->weight, (size_t)s->keys, sizeof *m->weight));
    for (int64_t i = 0; i < s->keys; i++) {
        m->row[i] = s->key[i].row;
        m->weight[i] = s->key[i].weight;
    }
    *out = &m->base;
    return THIELE_OK;
out:
    if (m != NULL) {
        merged_destroy(&m->base);
    }
    return status;
}

static bool is_large(const search *s)
{
    static const double SHARE = 0.25; /* of the memory */
    double words = s->numbers + 2.0 * s->texts;
    return (double)s->table->rows * (8.0 * words + sizeof *s->key) > SHARE * (double)thi_memory_limit(s->ctx);
}

thiele_status thi_table_merge(thiele_table **out, thiele_context *ctx, const thiele_table *table,
                              const thi_column_options *options)
{
    thi_choice c = {.table = table, .ctx = ctx};
    search s = {.ctx = ctx, .table = table};
    thiele_status status = THIELE_OK;
    *out = NULL;
    if (options->weights == NULL) {
        return THIELE_OK;
    }
    THI_TRY(thi_choose_columns(&c, options));
    THI_TRY(choose(&s, &c));
    if (is_large(&s)) {
        goto out;
    }
    THI_TRY(thi_alloc(ctx, &s.key, (size_t)table->rows, sizeof *s.key));
    THI_TRY(thi_alloc(ctx, &s.word, (size_t)table->rows, ((size_t)s.numbers + 2 * (size_t)s.texts) * sizeof *s.word));
    THI_TRY(read_rows(&s));
    bool equal = settle(&s);
    THI_TRY(make(&s, equal, out));
    thi_log(ctx, THIELE_LOG_INFO, "%lld of %lld rows are different and have a weight", (long long)s.keys,
            (long long)table->rows);
out:
    thi_choice_free(&c);
    thi_free(s.number);
    thi_free(s.text);
    thi_free(s.word);
    thi_free(s.scratch);
    thi_free(s.key);
    return status;
}
