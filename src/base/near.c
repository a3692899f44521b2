/* What a reader may have meant by a name that is not there: what other libraries call it, or the nearest spelling. */
#include "base/base.h"

#include <ctype.h>
#include <string.h>

/* The letters and digits of both are the same, in either case. */
static bool reads_alike(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "-_ ");
        b += strspn(b, "-_ ");
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) {
            return false;
        }
        if (*a == '\0') {
            return true;
        }
    }
}

void thi_near_begin(thi_near *near, const char *word, size_t length, const thi_synonym *synonyms)
{
    *near = (thi_near){.distance = THI_NEAR_MOST + 1};
    if (length >= sizeof near->word) {
        return; /* nothing is near to that */
    }
    memcpy(near->word, word, length);
    for (; synonyms->word != NULL; synonyms++) {
        if (reads_alike(near->word, synonyms->word)) {
            near->name = synonyms->name;
            near->distance = 0;
        }
    }
}

void thi_near_try(thi_near *near, const char *candidate)
{
    size_t shorter = strlen(near->word) < strlen(candidate) ? strlen(near->word) : strlen(candidate);
    int limit = shorter < 4 ? 1 : THI_NEAR_MOST; /* of short words nearly all are near each other */
    int distance = thi_edit_distance(near->word, candidate, limit);
    if (shorter > 1 && distance <= limit && distance < near->distance) {
        near->name = candidate;
        near->distance = distance;
    }
}
