/*
 * Sums over rows as bytes and files. Little-endian: magic, the model's fingerprint, how many latent functions; of each
 * the size of its basis and its tally; a CRC-32 of all that.
 */
#include "model/sums_bytes.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>
#include <zlib.h>

static const char MAGIC[8] = "thisum2";
enum { HEAD = 24, TAIL = 4, SIZE = 8 };

/* --- whose they are ------------------------------------------------------------------------------------------------
 */

static uint64_t mark_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ from[i]) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

static uint64_t mark_numbers(uint64_t hash, const double *numbers, int64_t count)
{
    return numbers != NULL ? mark_bytes(hash, numbers, (size_t)count * sizeof *numbers) : hash;
}

/* L stands for the kernel: its numbers depend on all parameters. */
static uint64_t mark_latent(uint64_t hash, const thi_predictor *p, double noise)
{
    int64_t D = p->kernel->dims;
    hash = mark_numbers(hash, p->basis, D * p->n);
    hash = mark_numbers(hash, p->log_c, D * p->n);
    hash = mark_numbers(hash, p->L.data, p->n * p->n);
    hash = mark_bytes(hash, &p->mean, sizeof p->mean);
    hash = mark_numbers(hash, p->mean_parameter, thi_mean_parameters(p->mean, (int)D));
    return mark_numbers(hash, &noise, 1);
}

thiele_status thi_sums_mark(thiele_sums *sums, thiele_context *ctx)
{
    const thiele_model *model = sums->model;
    json_t *json = thi_encoder_to_json(&model->encoder);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text == NULL) {
        return thi_fail(ctx, THIELE_ERROR_MEMORY, "out of memory while sums were opened");
    }
    uint64_t hash = mark_bytes(UINT64_C(0xcbf29ce484222325), text, strlen(text));
    free(text);
    hash = mark_numbers(hash, sums->online.settings.weight, THI_RESIDUAL_KINDS);
    for (int j = 0; j < model->latents; j++) {
        hash = mark_latent(hash, &model->latent[j], thi_online_noise(&sums->online, j));
    }
    sums->mark = hash;
    return THIELE_OK;
}

thiele_status thi_sums_refuse_mark(thiele_context *ctx)
{
    return thi_fail(ctx, THIELE_ERROR_DATA, "these sums were made with another model, or with it before it changed");
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const thiele_sums *sums)
{
    size_t bytes = HEAD + TAIL;
    for (int j = 0; j < sums->model->latents; j++) {
        bytes += SIZE + thi_tally_bytes(sums->tally[j].M);
    }
    return bytes;
}

static uint32_t checksum(const unsigned char *bytes, size_t length)
{
    return (uint32_t)crc32_z(0, bytes, length - TAIL);
}

thiele_status thiele_sums_pack(const thiele_sums *sums, thiele_context *ctx, unsigned char **bytes, size_t *length)
{
    THI_NEED_OUT(bytes, ctx, sums && ctx && length);
    int64_t latents = sums->model->latents;
    *length = bytes_of(sums);
    thiele_status status = thi_alloc(ctx, bytes, *length, 1);
    if (status != THIELE_OK) {
        return status;
    }
    unsigned char *to = *bytes;
    memcpy(to, MAGIC, sizeof MAGIC);
    memcpy(to + 8, &sums->mark, 8);
    memcpy(to + 16, &latents, 8);
    to += HEAD;
    for (int j = 0; j < latents; j++) {
        memcpy(to, &sums->tally[j].M, SIZE);
        thi_tally_pack(&sums->tally[j], to + SIZE);
        to += SIZE + thi_tally_bytes(sums->tally[j].M);
    }
    uint32_t sum = checksum(*bytes, *length);
    memcpy(to, &sum, TAIL);
    return THIELE_OK;
}

static thiele_status unpack_latents(const thiele_sums *sums, thiele_context *ctx, const unsigned char *from,
                                    thi_tally *tally)
{
    thiele_status status = THIELE_OK;
    for (int j = 0; j < sums->model->latents; j++) {
        int64_t M;
        memcpy(&M, from, SIZE);
        if (M != sums->tally[j].M) {
            return thi_sums_refuse_mark(ctx);
        }
        THI_TRY(thi_tally_open(&tally[j], ctx, M, sums->tally[j].unit, sums->tally[j].target));
        THI_TRY(thi_tally_unpack(&tally[j], ctx, from + SIZE));
        from += SIZE + thi_tally_bytes(M);
    }
out:
    return status;
}

thiele_status thiele_sums_unpack(thiele_sums *sums, thiele_context *ctx, const unsigned char *bytes, size_t length)
{
    THI_NEED(ctx, sums && ctx && bytes);
    int64_t latents = 0;
    uint64_t mark = 0;
    uint32_t sum = 0;
    thi_tally *tally = NULL;
    thiele_status status;
    if (length >= HEAD + TAIL) {
        memcpy(&mark, bytes + 8, 8);
        memcpy(&latents, bytes + 16, 8);
        memcpy(&sum, bytes + length - TAIL, TAIL);
    }
    if (length < HEAD + TAIL || memcmp(bytes, MAGIC, sizeof MAGIC) != 0 || sum != checksum(bytes, length)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "these are not sums over rows, or they are damaged");
    }
    if (mark != sums->mark || latents != sums->model->latents) {
        return thi_sums_refuse_mark(ctx);
    }
    if (length != bytes_of(sums)) {
        return thi_fail(ctx, THIELE_ERROR_FORMAT, "sums over rows are cut short, or forged");
    }
    THI_TRY(thi_alloc(ctx, &tally, (size_t)latents, sizeof *tally));
    THI_TRY(unpack_latents(sums, ctx, bytes + HEAD, tally));
    THI_TRY(thi_sums_join(sums, ctx, tally));
out:
    for (int j = 0; tally != NULL && j < latents; j++) {
        thi_tally_close(&tally[j]);
    }
    thi_free(tally);
    return status;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

thiele_status thiele_sums_save(const thiele_sums *sums, thiele_context *ctx, const char *path)
{
    THI_NEED(ctx, sums && ctx && path);
    unsigned char *bytes = NULL;
    size_t length;
    thi_file file = {0};
    thiele_status status;
    THI_TRY(thiele_sums_pack(sums, ctx, &bytes, &length));
    THI_TRY(thi_file_begin(&file, ctx, path));
    status =
        fwrite(bytes, 1, length, file.stream) == length ? thi_file_commit(&file, ctx) : thi_file_failed(&file, ctx);
out:
    thi_file_abandon(&file);
    thi_free(bytes);
    return status;
}

static thiele_status read_file(thiele_context *ctx, const char *path, FILE *stream, unsigned char **bytes,
                               size_t *length)
{
    struct stat info;
    if (fstat(fileno(stream), &info) != 0 || !S_ISREG(info.st_mode)) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read sums %s: it is not a file", path);
    }
    *length = (size_t)info.st_size;
    thiele_status status = thi_alloc_bare(ctx, bytes, *length, 1);
    if (status == THIELE_OK && fread(*bytes, 1, *length, stream) != *length) {
        status = thi_fail(ctx, THIELE_ERROR_IO, "cannot read sums %s: it is shorter than it was a moment ago", path);
    }
    return status;
}

thiele_status thiele_sums_load(thiele_sums *sums, thiele_context *ctx, const char *path)
{
    THI_NEED(ctx, sums && ctx && path);
    unsigned char *bytes = NULL;
    size_t length = 0;
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return thi_fail(ctx, THIELE_ERROR_IO, "cannot read sums %s: %s", path, strerror(errno));
    }
    thiele_status status = read_file(ctx, path, stream, &bytes, &length);
    fclose(stream);
    if (status == THIELE_OK) {
        status = thiele_sums_unpack(sums, ctx, bytes, length);
        status = status == THIELE_OK ? status : thi_fail_in(ctx, status, "%s", path);
    }
    thi_free(bytes);
    return status;
}
