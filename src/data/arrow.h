/*
 * Arrays of the Arrow C data interface, read as numbers and texts (arrow_type.c, arrow_read.c), for tables of them
 * (arrow.c). Nothing of an array is used before it was compared with its type.
 */
#ifndef THI_ARROW_H
#define THI_ARROW_H

#include "data/data.h"
#include "data/texts.h"
#include <thiele/arrow.h>

typedef enum thi_arrow_layout {
    THI_ARROW_NULLS,   /* nothing is there */
    THI_ARROW_BITS,    /* booleans */
    THI_ARROW_NUMBERS, /* of a fixed width */
    THI_ARROW_TEXTS,   /* bytes, and where each text begins in 32 bits */
    THI_ARROW_LARGE,   /* in 64 bits */
    THI_ARROW_VIEWS,   /* short texts in place, long ones in one of several buffers */
} thi_arrow_layout;

/* What a format string says. */
typedef struct thi_arrow_type {
    thi_arrow_layout layout;
    int bytes;                          /* of each element: NUMBERS and VIEWS */
    double (*number)(const void *at);   /* NUMBERS */
    double per;                         /* by which the numbers are divided: units to a day, a power of ten */
    thi_date_form dates;                /* numbers that are days */
    bool whole;                         /* numbers that can be indices of a dictionary */
    bool plain;                         /* 64-bit floats */
    const struct ArrowSchema *category; /* of the values of a dictionary; NULL: none */
} thi_arrow_type;

/* `name` is for messages, as in "column 'x'". Errors: FORMAT, UNSUPPORTED with advice. */
thiele_status thi_arrow_read_type(thi_arrow_type *type, thiele_context *ctx, const char *name,
                                  const struct ArrowSchema *schema);

/* Elements of an array, checked. */
typedef struct thi_arrow_part {
    const thi_arrow_type *type;
    const char *name;
    int64_t offset, length;
    const uint8_t *valid;      /* a bit for each; NULL: nothing is missing */
    const void *values;        /* numbers, bits, where texts begin, or views */
    const char *bytes;         /* of texts; NULL: there are none */
    const char *const *buffer; /* of views, with their sizes */
    const int64_t *size;
    int64_t buffers;
    const struct ArrowArray *dictionary;
} thi_arrow_part;

/* Elements first to first + length of an array of this type. Error: FORMAT. */
thiele_status thi_arrow_open_part(thi_arrow_part *part, thiele_context *ctx, const char *name,
                                  const thi_arrow_type *type, const struct ArrowArray *array, int64_t first,
                                  int64_t length);
/* Whether numbers can be used where they lie. */
bool thi_arrow_is_plain(const thi_arrow_part *part);
/* NaN where missing. Not for texts and dictionaries. */
void thi_arrow_numbers(const thi_arrow_part *part, double *out);
/* The numbers of their texts among `texts`, -1 where missing. Errors: FORMAT, DATA (a zero character), MEMORY. */
thiele_status thi_arrow_codes(const thi_arrow_part *part, thiele_context *ctx, thi_texts *texts, int32_t *out);

#endif
