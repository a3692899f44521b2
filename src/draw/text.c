/* Text in pictures: escaping, and a guess of how much room it takes, since no font is at hand. */
#include <string.h>

#include "draw/draw.h"

/* Bytes of the well-formed UTF-8 character at c that may stand in XML; 0: it is none. */
static int character(const unsigned char *c)
{
    int length = *c < 0x80                 ? 1
                 : *c >= 0xc2 && *c < 0xe0 ? 2
                 : *c >= 0xe0 && *c < 0xf0 ? 3
                 : *c >= 0xf0 && *c < 0xf5 ? 4
                                           : 0;
    for (int i = 1; i < length; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90);
    bool outside = (*c == 0xed && c[1] > 0x9f) || (*c == 0xf4 && c[1] > 0x8f);
    bool control = *c < ' ' || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0);
    bool noncharacter = *c == 0xef && c[1] == 0xbf && c[2] >= 0xbe;
    return overlong || outside || control || noncharacter ? 0 : length;
}

void draw_put(FILE *stream, const char *text, int bytes)
{
    static const char marked[] = "&<>\"", *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (int i = 0; i < bytes && text[i] != '\0';) {
        int length = character((const unsigned char *)text + i);
        const char *found = strchr(marked, text[i]);
        if (length == 0 || length > bytes - i) {
            fputs("\xef\xbf\xbd", stream);
            length = 1;
        } else if (found != NULL) {
            fputs(entities[found - marked], stream);
        } else {
            fwrite(text + i, 1, (size_t)length, stream);
        }
        i += length;
    }
}

/* At 13 pixels, by DejaVu Sans, which is wider than most. */
double draw_text_width(const char *text, int bytes)
{
    static const double NARROW = 4.7, USUAL = 8.3, WIDE = 11.6, IDEOGRAPH = 13.5;
    double width = 0.0;
    for (int i = 0; i < bytes && text[i] != '\0';) {
        int length = character((const unsigned char *)text + i);
        char c = text[i];
        width += length == 1 && strchr("ijlI.,:;'|! ()[]ftr1", c) != NULL ? NARROW
                 : length == 1 && strchr("mMwW@%=+<>~", c) != NULL        ? WIDE
                 : length > 2                                             ? IDEOGRAPH
                                                                          : USUAL;
        i += length > 0 ? length : 1;
    }
    return width;
}

int draw_fit(const char *text, double width, int *next)
{
    int fits = 0, space = 0;
    double used = 0.0;
    while (text[fits] != '\0') {
        int length = character((const unsigned char *)text + fits);
        length = length > 0 ? length : 1;
        used += draw_text_width(text + fits, length);
        if (used > width && fits > 0) {
            break;
        }
        space = text[fits] == ' ' ? fits : space;
        fits += length;
    }
    int cut = text[fits] == '\0' || space == 0 ? fits : space;
    *next = cut + (text[cut] == ' ');
    return cut;
}
