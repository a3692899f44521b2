/* JSON texts that nobody vouches for, within the context's memory. */
#ifndef THI_JSON_H
#define THI_JSON_H

#include <jansson.h>

#include "base/base.h"

/* A document whose memory, which jansson has from malloc, is counted in the context. */
typedef struct thi_json {
    thiele_context *ctx;
    json_t *root;
    size_t counted;
} thi_json;
/* Errors: FORMAT ("WHAT is damaged"), MEMORY, LIMIT. */
thiele_status thi_json_parse(thi_json *json, thiele_context *ctx, const char *text, size_t length, const char *what);
void thi_json_clear(thi_json *json);
/* As compact text, numbers with all their digits; json NULL: memory was out when it was made. */
thiele_status thi_json_text(thiele_context *ctx, const json_t *json, size_t flags, char **text);
/* Appends a text as JSON writes it, with its quotes. */
void thi_json_quote(thi_text *text, const char *string);
/* Refuses a member of `json`, or of what is in it, whose name is not there in `known`. Error: FORMAT, naming it. */
thiele_status thi_json_known(thiele_context *ctx, const json_t *json, const json_t *known);

#endif
