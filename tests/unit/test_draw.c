/*
 * Pictures: ticks lie in their range, are round and keep their labels apart; text comes out as XML whatever it was;
 * marks stand where the axes say, with gaps where numbers are missing; and the whole is well-formed.
 */
#include "testing.h"

#include "draw/draw.h"

/* What is drawn, as text; to be freed. */
typedef struct drawing {
    char *text;
    size_t length;
    draw_picture picture;
} drawing;

static const draw_panel panel = {.left = 100.0,
                                 .top = 50.0,
                                 .width = 200.0,
                                 .height = 100.0,
                                 .x = {.label = "a < b", .from = 0.0, .to = 2.0},
                                 .y = {.label = "y", .from = -1.0, .to = 1.0}};

static void begin(drawing *d)
{
    FILE *stream = open_memstream(&d->text, &d->length);
    assert_non_null(stream);
    draw_begin(&d->picture, stream, 400.0, 200.0, "title", "words");
    draw_open(&d->picture, &panel);
}

static void end(drawing *d)
{
    draw_close(&d->picture);
    draw_end(&d->picture);
    assert_int_equal(fclose(d->picture.stream), 0);
}

static void assert_drawn(const drawing *d, const char *part)
{
    if (strstr(d->text, part) == NULL) {
        fail_msg("'%s' is not in the picture:\n%s", part, d->text);
    }
}

static void ticks_are_round_and_inside(void **state)
{
    (void)state;
    double span[300];
    test_normals(300, 7, span);
    for (int i = 0; i < 300; i++) {
        double width = pow(10.0, 3.0 * span[i]), from = span[299 - i] * width, to = from + width;
        for (int most = 2; most <= 12; most += 5) {
            draw_ticks ticks = draw_choose_ticks(from, to, most);
            double digit = ticks.step / pow(10.0, floor(log10(ticks.step) + 1e-9));
            assert_true(ticks.count <= most);
            /* A step is at most 5 times what would do, after rounding up to 1, 2 or 5 twice. */
            assert_true(ticks.count >= 1 || 5.0 * (to - from) / most >= 0.99 * (to - from));
            assert_true(fabs(digit - 1.0) < 1e-6 || fabs(digit - 2.0) < 1e-6 || fabs(digit - 5.0) < 1e-6);
            for (int t = 0; t < ticks.count; t++) {
                double at = draw_tick(&ticks, t), multiple = at / ticks.step;
                assert_true(at >= from - 1e-8 * ticks.step && at <= to + 1e-8 * ticks.step);
                assert_near(multiple, round(multiple), 0.0, 1e-6 * fmax(1.0, fabs(multiple)));
            }
        }
    }
}

/* The numbers at two neighbours differ, and zero is "0". */
static void ticks_have_their_own_texts(void **state)
{
    (void)state;
    const double ends[][2] = {{0, 1}, {-3, 3}, {1e6, 1e6 + 3}, {1e-7, 9e-7}, {-2e9, 2e9}, {1990, 2026}, {0.1, 0.13}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        draw_ticks ticks = draw_choose_ticks(ends[i][0], ends[i][1], 8);
        char before[DRAW_NUMBER_MAX] = "", text[DRAW_NUMBER_MAX];
        assert_true(ticks.count >= 2);
        for (int t = 0; t < ticks.count; t++) {
            draw_tick_text(&ticks, t, text);
            assert_string_not_equal(text, before);
            assert_true(draw_tick(&ticks, t) != 0.0 || strtod(text, NULL) == 0.0);
            assert_true(text[0] != '-' || strtod(text, NULL) < 0.0);
            assert_near(strtod(text, NULL), draw_tick(&ticks, t), 1e-9, 1e-9 * ticks.step);
            strcpy(before, text);
        }
    }
    draw_ticks none = draw_choose_ticks(1.0, -1.0, 5);
    assert_int_equal(none.count, 0);
    none = draw_choose_ticks(NAN, 1.0, 5);
    assert_int_equal(none.count, 0);
}

static void widened(void **state)
{
    (void)state;
    double from = 2.0, to = 4.0;
    draw_widen(&from, &to, 0.1);
    assert_near(from, 1.8, 1e-15, 0.0);
    assert_near(to, 4.2, 1e-15, 0.0);
    for (double value = -5.0; value <= 5.0; value += 5.0) {
        from = to = value;
        draw_widen(&from, &to, 0.1);
        assert_true(from < value && value < to);
    }
}

/* What is no UTF-8, and what a document may not hold, becomes the replacement character. */
static void text_is_xml(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"a<b>&\"c\"", "a&lt;b&gt;&amp;&quot;c&quot;"},
        {"d\xc3\xa9j\xc3\xa0 \xe2\x82\xac \xf0\x9f\x98\x80", "d\xc3\xa9j\xc3\xa0 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"x\001y\x1b[1m", "x\xef\xbf\xbdy\xef\xbf\xbd[1m"},
        {"\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\xaf\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xef\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t length = 0;
        FILE *stream = open_memstream(&text, &length);
        draw_put(stream, cases[i][0], (int)strlen(cases[i][0]));
        fclose(stream);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

/* The pieces are the text again but for the spaces between them, and each fits unless it is one character. */
static void folding_loses_nothing(void **state)
{
    (void)state;
    const char *text = "one two three fourteen-letter-words and \xc3\xa9t\xc3\xa9 again";
    for (double width = 1.0; width < 400.0; width += 13.0) {
        char joined[128] = "";
        for (const char *rest = text; *rest != '\0';) {
            int next = 0, bytes = draw_fit(rest, width, &next);
            assert_true(bytes >= 1 && next >= bytes && next <= bytes + 1);
            assert_true(bytes <= 2 || draw_text_width(rest, bytes) <= width);
            strncat(joined, rest, (size_t)bytes);
            strcat(joined, next > bytes ? " " : "");
            rest += next;
        }
        assert_string_equal(joined, text);
    }
}

static void marks_stand_where_axes_say(void **state)
{
    (void)state;
    drawing d = {0};
    const double x[] = {0.0, 1.0, 2.0}, y[] = {-1.0, 0.0, 1.0}, high[] = {0.0, 1.0, 1.0}, edge[] = {0.0, 1.0, 2.0};
    const double count[] = {1.0, 0.0};
    begin(&d);
    draw_line(&d.picture, &panel, 0, 3, x, y);
    draw_band(&d.picture, &panel, 1, 3, x, y, high);
    draw_points(&d.picture, &panel, 2, 1, x + 1, y + 1);
    draw_dots(&d.picture, &panel, 2 + DRAW_COLOURS, 1, x, y);
    draw_whiskers(&d.picture, &panel, 3, false, 1, x + 1, y, high + 1);
    draw_bars(&d.picture, &panel, 4, 2, edge, count);
    draw_cells(&d.picture, &panel, 5, 2, 1, count);
    end(&d);
    assert_drawn(&d, "<path class=\"l s0\" d=\"M100 150L200 100L300 50\"/>");
    assert_drawn(&d, "<path class=\"b c1\" d=\"M100 100L200 50L300 50L300 50L200 100L100 150z\"/>");
    assert_drawn(&d, "<path class=\"p s2\" d=\"M200 100h0\"/>");
    assert_drawn(&d, "<path class=\"d s2\" d=\"M100 150h0\"/>");
    assert_drawn(&d, "<path class=\"w s3\" d=\"M200 150V50\"/>");
    assert_drawn(&d, "<path class=\"h c4\" d=\"M100 100V50H200V100z\"/>");
    assert_drawn(&d, "<path class=\"c5\" fill-opacity=\"1.00\" d=\"M100 50H200V150H100z\"/>");
    assert_drawn(&d, "a &lt; b");
    free(d.text);
}

/* Pictures of one page have names of their own, and no style sheet. */
static void parts_of_a_page(void **state)
{
    (void)state;
    drawing d = {0};
    FILE *stream = open_memstream(&d.text, &d.length);
    assert_non_null(stream);
    draw_begin_part(&d.picture, stream, 7, 400.0, 200.0, "title", "words");
    draw_open(&d.picture, &panel);
    end(&d);
    assert_drawn(&d, "aria-labelledby=\"title7 description7\"");
    assert_drawn(&d, "<title id=\"title7\">title</title>");
    assert_drawn(&d, "url(#panel70)");
    assert_null(strstr(d.text, "<style>"));
    free(d.text);
}

static void missing_numbers_leave_gaps(void **state)
{
    (void)state;
    drawing d = {0};
    const double x[] = {0.0, 0.5, 1.0, 1.5, 2.0}, y[] = {0.0, 0.0, NAN, 0.0, 0.0}, none[] = {NAN, NAN, NAN, NAN, NAN};
    begin(&d);
    draw_line(&d.picture, &panel, 0, 5, x, y);
    draw_band(&d.picture, &panel, 0, 5, x, y, none);
    draw_points(&d.picture, &panel, 0, 5, x, none);
    end(&d);
    assert_drawn(&d, "\"l s0\" d=\"M100 100L150 100M250 100L300 100\"");
    assert_drawn(&d, "\"b c0\" d=\"\"");
    assert_drawn(&d, "\"p s0\" d=\"\"");
    assert_null(strstr(d.text, "nan"));
    free(d.text);
}

/* What is infinite or far outside is a coordinate all the same. */
static void far_away(void **state)
{
    (void)state;
    drawing d = {0};
    const double x[] = {0.0, 1.0}, y[] = {INFINITY, -1e300};
    begin(&d);
    draw_line(&d.picture, &panel, 0, 2, x, y);
    end(&d);
    assert_drawn(&d, "M100 -100000L200 100000");
    free(d.text);
}

/* Both colour schemes, a title and a description, and as many ends as beginnings. */
static void whole_pictures(void **state)
{
    (void)state;
    drawing d = {0};
    const draw_entry entries[] = {{DRAW_LINE, 0, "mean"},
                                  {DRAW_BAND, 0, "90%"},
                                  {DRAW_POINT, 1, "rows & more"},
                                  {DRAW_BAR, 5, "counts"},
                                  {DRAW_WHISKER, 0, "law"}};
    begin(&d);
    int lines = draw_legend(&d.picture, 0.0, 0.0, 150.0, entries, 5);
    assert_int_equal(lines, draw_legend_lines(150.0, entries, 5));
    assert_true(lines > 1 && draw_legend_lines(1e6, entries, 5) == 1 && draw_legend_lines(1e6, entries, 0) == 0);
    assert_int_equal(draw_note(&d.picture, 0.0, 0.0, 90.0, "a note of some words"),
                     draw_note_lines(90.0, "a note of some words"));
    end(&d);
    assert_drawn(&d, "role=\"img\"");
    assert_drawn(&d, "<title id=\"title\">title</title>");
    assert_drawn(&d, "<desc id=\"description\">words</desc>");
    assert_drawn(&d, "@media screen and (prefers-color-scheme:dark)");
    assert_drawn(&d, "rows &amp; more");
    int depth = 0;
    for (const char *c = d.text; *c != '\0'; c++) {
        depth += *c == '<' && c[1] != '/';
        depth -= (*c == '<' && c[1] == '/') || (*c == '/' && c[1] == '>');
        assert_true(depth >= 0);
    }
    assert_int_equal(depth, 0);
    free(d.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round_and_inside),
        cmocka_unit_test(ticks_have_their_own_texts),
        cmocka_unit_test(widened),
        cmocka_unit_test(text_is_xml),
        cmocka_unit_test(folding_loses_nothing),
        cmocka_unit_test(marks_stand_where_axes_say),
        cmocka_unit_test(parts_of_a_page),
        cmocka_unit_test(missing_numbers_leave_gaps),
        cmocka_unit_test(far_away),
        cmocka_unit_test(whole_pictures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
