/*
 * Laws that were made from draws are kept, the last thousand of them: mean, quantiles and scores of a row ask for the
 * same one, each after it has been asked for all other rows of a block. One that is found again is the one that would
 * be made, bit for bit.
 */
#include <string.h>

#include "expect/predictive_distribution.h"

enum { PIECES = 4 };

/* What a law depends on beside its output: mu and v of its components, their weights, the likelihood's parameters. */
typedef struct piece {
    const double *number;
    size_t bytes;
} piece;

static size_t key_of(const thi_law *law, piece *pieces)
{
    const thiele_likelihood *lik = law->expect->lik;
    size_t K = (size_t)law->row.components, all = K * (size_t)lik->latents * sizeof(double), bytes = 0;
    pieces[0] = (piece){law->row.mu, all};
    pieces[1] = (piece){law->row.v, all};
    pieces[2] = (piece){law->row.weight, K > 1 ? K * sizeof(double) : 0};
    pieces[3] = (piece){lik->value, (size_t)lik->parameters * sizeof(double)};
    for (int i = 0; i < PIECES; i++) {
        bytes += pieces[i].bytes;
    }
    return bytes;
}

static bool is_of(const thi_kept_law *kept, int output, const piece *pieces, size_t bytes)
{
    const char *key = (const char *)kept->key;
    bool same = key != NULL && kept->output == output && kept->bytes == bytes;
    for (int i = 0; i < PIECES && same; i++) {
        same = pieces[i].bytes == 0 || memcmp(key, pieces[i].number, pieces[i].bytes) == 0;
        key += pieces[i].bytes;
    }
    return same;
}

bool thi_law_recall(thi_law *law)
{
    piece pieces[PIECES];
    size_t bytes = key_of(law, pieces);
    for (int i = 0; i < THI_LAWS_KEPT; i++) {
        int at = (law->asked + i) % THI_LAWS_KEPT;
        const thi_kept_law *kept = &law->kept[at];
        if (is_of(kept, law->output, pieces, bytes)) {
            law->asked = (at + 1) % THI_LAWS_KEPT;
            law->peak = kept->peak;
            law->floor = kept->floor;
            law->tail = kept->tail;
            law->mean = kept->mean;
            law->variance = kept->variance;
            law->cells = kept->cells;
            memcpy(law->cell, kept->cell, (size_t)kept->cells * sizeof *law->cell);
            return true;
        }
    }
    return false;
}

thiele_status thi_law_remember(thi_law *law)
{
    thi_kept_law *kept = &law->kept[law->next];
    piece pieces[PIECES];
    size_t bytes = key_of(law, pieces);
    thi_law_forget(kept);
    thiele_status status;
    THI_TRY(thi_alloc(law->ctx, &kept->cell, (size_t)law->cells, sizeof *kept->cell));
    THI_TRY(thi_alloc(law->ctx, &kept->key, bytes, 1));
    char *key = (char *)kept->key;
    for (int i = 0; i < PIECES; i++) {
        if (pieces[i].bytes > 0) {
            memcpy(key, pieces[i].number, pieces[i].bytes);
        }
        key += pieces[i].bytes;
    }
    memcpy(kept->cell, law->cell, (size_t)law->cells * sizeof *kept->cell);
    kept->output = law->output;
    kept->bytes = bytes;
    kept->cells = law->cells;
    kept->peak = law->peak;
    kept->floor = law->floor;
    kept->tail = law->tail;
    kept->mean = law->mean;
    kept->variance = law->variance;
    law->next = (law->next + 1) % THI_LAWS_KEPT;
out:
    return status;
}

void thi_law_forget(thi_kept_law *kept)
{
    thi_free(kept->cell);
    thi_free(kept->key);
    *kept = (thi_kept_law){0};
}
