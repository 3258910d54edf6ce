/* timeline.c - timelines as SVG: well-formed XML for any label, places, refusals. */
#include "tools/picture/timeline.h"

#include "tests/tap.h"
#include "tools/picture/svg.h"
#include "tools/picture/timeline_layout.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A small XML reader: tags nest and match, attributes are quoted, '&' begins an entity, no control
 * characters. Enough to see a label break out of its place. */
struct xml {
    const char *at;
    char stack[16][32];
    int depth, roots;
};

static bool entity(struct xml *x)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(x->at, known[i], strlen(known[i])) == 0) {
            x->at += strlen(known[i]);
            return true;
        }
    return false;
}

static bool text_until(struct xml *x, char stop)
{
    while (*x->at && *x->at != stop) {
        if (*x->at == '<' || ((unsigned char)*x->at < 0x20 && *x->at != '\n'))
            return false;
        if (*x->at != '&')
            x->at++;
        else if (!entity(x))
            return false;
    }
    return true;
}

static size_t name_at(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '-')
        n++;
    return n;
}

static bool open_tag(struct xml *x)
{
    size_t n = name_at(x->at);
    if (n == 0 || n >= sizeof x->stack[0] || x->depth == 16)
        return false;
    memcpy(x->stack[x->depth], x->at, n);
    x->stack[x->depth++][n] = '\0';
    x->at += n;
    while (*x->at == ' ') {
        n = name_at(++x->at);
        if (n == 0 || x->at[n] != '=' || x->at[n + 1] != '"')
            return false;
        x->at += n + 2;
        if (!text_until(x, '"') || *x->at++ != '"')
            return false;
    }
    if (strncmp(x->at, "/>", 2) == 0) {
        x->depth--;
        x->at += 2;
        return true;
    }
    return *x->at++ == '>';
}

static bool close_tag(struct xml *x)
{
    size_t n = name_at(x->at);
    if (x->depth == 0 || strncmp(x->stack[x->depth - 1], x->at, n) != 0 ||
        x->stack[x->depth - 1][n] != '\0' || x->at[n] != '>')
        return false;
    x->at += n + 1;
    x->depth--;
    return true;
}

static bool well_formed(const char *text)
{
    struct xml x = {.at = text};
    while (*x.at) {
        bool ok = true;
        if (x.at[0] == '<' && x.at[1] == '/') {
            x.at += 2;
            ok = close_tag(&x);
        } else if (x.at[0] == '<') {
            x.roots += x.depth == 0;
            x.at++;
            ok = open_tag(&x);
        } else if (x.depth == 0) {
            ok = *x.at++ == '\n';
        } else {
            ok = text_until(&x, '<');
        }
        if (!ok)
            return false;
    }
    return x.depth == 0 && x.roots == 1;
}

TEST(the_reader_itself_sees_faults)
{
    CHECK(well_formed("<a b=\"c\"><d/>&lt;</a>\n"));
    CHECK(!well_formed("<a><b></a></b>"));
    CHECK(!well_formed("<a>&</a>"));
    CHECK(!well_formed("<a b=c/>"));
    CHECK(!well_formed("<a>\1</a>"));
    CHECK(!well_formed("<a/><b/>"));
    CHECK(!well_formed("<a>"));
}

static const char *const two_lanes[] = {"frame thread", "device"};

static const struct tec_timeline_span frame_spans[] = {
    {1, TEC_SPAN_HARD, "prefix", 2000, 30000},    {0, TEC_SPAN_HOST, "observe", 100, 1900},
    {1, TEC_SPAN_SOFT, "language", 20000, 60000}, {1, TEC_SPAN_HARD, "step", 30000, 30500},
    {1, TEC_SPAN_HARD, "step", 30500, 31000},
};

static const struct tec_timeline_mark frame_marks[] = {
    {TEC_MARK_DEADLINE, "deadline", 50000},
    {TEC_MARK_RELEASE, "frame 0", 0},
};

static const struct tec_timeline frame = {"one frame", "a test", two_lanes,   2,
                                          frame_spans, 5,        frame_marks, 2};

/* Draw, check the XML, and hand the text out (to be freed), or NULL. */
static char *draw(const struct tec_timeline *timeline, struct tec_error *err)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    const char *text = NULL;
    char *copy = NULL;
    size_t n = 0;
    tec_arena_init(&arena, &heap);
    if (tec_timeline_svg(timeline, &text, &n, &arena, err) == TEC_OK) {
        CHECK_INT(strlen(text), ==, n);
        CHECK(well_formed(text));
        copy = strdup(text);
    }
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    return copy;
}

static bool draws_nothing(const struct tec_timeline *timeline, struct tec_error *err)
{
    char *text = draw(timeline, err);
    free(text);
    return text == NULL;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
        n++;
    return n;
}

TEST(draws_every_part)
{
    char *text = draw(&frame, NULL), *again = draw(&frame, NULL);
    REQUIRE(text && again);
    CHECK_STR(text, again);
    CHECK_INT(count(text, ">one frame<"), ==, 1);
    CHECK_INT(count(text, ">device<"), ==, 2); /* the name, and its title */
    CHECK_INT(count(text, "prefix: 28.000 ms, from 2.000 to 30.000 (hard)"), ==, 1);
    CHECK_INT(count(text, "language: 40.000 ms"), ==, 1);
    CHECK_INT(count(text, "deadline: deadline at 50.000 ms"), ==, 1);
    CHECK_INT(count(text, "release: frame 0 at 0.000 ms"), ==, 1);
    CHECK_INT(count(text, "hard: has a deadline"), ==, 1);
    CHECK_INT(count(text, "soft: fills the rest"), ==, 1);
    CHECK_INT(count(text, "host: outside the graph"), ==, 1);
    free(text);
    free(again);
}

TEST(labels_cannot_break_out)
{
    static const char *const labels[] = {"</text><script>alert(1)</script>",
                                         "\" onload=\"x",
                                         "a & b < c > d 'e'",
                                         "]]>",
                                         "\1\2\x1f\x7f",
                                         "\xff\xfe cut \xe2\x82",
                                         "\xed\xa0\x80 surrogate",
                                         "\xc0\xaf overlong",
                                         "\xef\xbf\xbf noncharacter",
                                         "",
                                         "\xe4\xbd\xa0\xe5\xa5\xbd wide",
                                         "%s%n%1000000d"};
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        const char *const lanes[] = {labels[i], labels[i]};
        struct tec_timeline_span spans[] = {{0, TEC_SPAN_HARD, labels[i], 0, 1000},
                                            {0, TEC_SPAN_HOST, labels[i], 1, 2}};
        struct tec_timeline_mark marks[] = {{TEC_MARK_DEADLINE, labels[i], 900}};
        struct tec_timeline t = {labels[i], labels[i], lanes, 2, spans, 2, marks, 1};
        char *text = draw(&t, NULL);
        REQUIRE(text);
        CHECK_INT(count(text, "<script"), ==, 0);
        CHECK_INT(count(text, " onload=\""), ==, 0);
        free(text);
    }
}

TEST(overlaps_are_stacked)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_timeline_layout l;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_timeline_place(&l, &frame, &arena, NULL) == TEC_OK);
    CHECK_STR(l.bars[0].span->label, "observe");
    CHECK_STR(l.bars[1].span->label, "prefix");
    CHECK_STR(l.bars[2].span->label, "language");
    CHECK_INT(l.bars[1].row, ==, 0);
    CHECK_INT(l.bars[2].row, ==, 1);
    CHECK_INT(l.bars[3].row, ==, 0);
    CHECK(l.bars[1].free_x == l.bars[3].x);
    CHECK(l.bars[1].x >= l.left && l.bars[2].x + l.bars[2].width <= l.right);
    CHECK(l.lanes[1].y == l.lanes[0].y + l.lanes[0].height);
    CHECK(l.lanes[1].height > l.lanes[0].height);
    tec_arena_finish(&arena);
}

TEST(extremes_are_drawn)
{
    struct tec_timeline_span spans[] = {{0, TEC_SPAN_HARD, "a", 5, 5},
                                        {1, TEC_SPAN_SOFT, "b", -3e12, 4e12}};
    struct tec_timeline nothing = {.lanes = NULL},
                        one = {NULL, NULL, two_lanes, 2, spans, 1, NULL, 0};
    char *text = draw(&nothing, NULL);
    REQUIRE(text);
    CHECK_INT(count(text, "nothing ran"), ==, 1);
    free(text);
    text = draw(&one, NULL);
    REQUIRE(text);
    CHECK_INT(count(text, "nan") + count(text, "inf"), ==, 0);
    free(text);
    one.n_spans = 2;
    free(draw(&one, NULL));
}

TEST(many_spans)
{
    enum { N = 3000 };
    struct tec_timeline_span *spans = calloc(N, sizeof *spans);
    struct tec_timeline_mark *marks = calloc(N, sizeof *marks);
    unsigned seed = 1;
    REQUIRE(spans && marks);
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        double start = seed >> 8;
        spans[i] = (struct tec_timeline_span){(int)(seed >> 30) % 2, (enum tec_span_kind)(i % 3),
                                              "s", start, start + i * 100};
        marks[i] = (struct tec_timeline_mark){(enum tec_mark_kind)(i % 2), "m", start};
    }
    struct tec_timeline t = {NULL, "many", two_lanes, 2, spans, N, marks, N};
    char *text = draw(&t, NULL);
    REQUIRE(text);
    CHECK_INT(count(text, "<rect"), >=, N);
    free(text);
    free(spans);
    free(marks);
}

TEST(refuses_what_cannot_be_drawn)
{
    static const struct tec_timeline_span bad[] = {
        {2, TEC_SPAN_HARD, "lane", 0, 1},
        {-1, TEC_SPAN_HARD, "lane", 0, 1},
        {0, TEC_SPAN_HARD, "back", 2, 1},
        {0, TEC_SPAN_HARD, "nan", (double)NAN, 1},
        {0, TEC_SPAN_HARD, "inf", 0, (double)INFINITY},
        {0, (enum tec_span_kind)9, "kind", 0, 1},
        {0, TEC_SPAN_HARD, NULL, 0, 1},
    };
    struct tec_timeline_mark mark = {TEC_MARK_RELEASE, "nan", (double)NAN};
    struct tec_timeline t = {NULL, NULL, two_lanes, 2, bad, 1, NULL, 0};
    struct tec_error err = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        t.spans = &bad[i];
        CHECK(draws_nothing(&t, &err));
        CHECK_INT(err.status, ==, TEC_INVALID);
        CHECK(strstr(err.message, "span 0"));
    }
    t = frame;
    t.marks = &mark;
    t.n_marks = 1;
    CHECK(draws_nothing(&t, &err));
    CHECK(strstr(err.message, "mark 0"));
}

TEST(every_allocation_may_fail)
{
    enum tec_status status = TEC_NO_MEMORY;
    int64_t n = 0;
    while (status == TEC_NO_MEMORY && n < 1000) {
        struct tec_heap heap = {.fail_at = ++n};
        struct tec_arena arena;
        const char *text = NULL;
        size_t size = 0;
        tec_arena_init(&arena, &heap);
        status = tec_timeline_svg(&frame, &text, &size, &arena, NULL);
        tec_arena_finish(&arena);
        CHECK_INT(heap.live, ==, 0);
    }
    CHECK_INT(status, ==, TEC_OK);
    CHECK_INT(n, >, 2);
}

TEST(writes_a_file)
{
    char path[] = "/tmp/tectum-timeline-XXXXXX";
    struct tec_heap heap = {0};
    struct tec_error err = {0};
    int fd = mkstemp(path);
    struct stat st;
    REQUIRE(fd >= 0);
    close(fd);
    CHECK_INT(tec_timeline_write(&frame, path, &heap, &err), ==, TEC_OK);
    char *text = draw(&frame, NULL);
    REQUIRE(text);
    CHECK(stat(path, &st) == 0 && st.st_size == (off_t)strlen(text));
    free(text);
    unlink(path);
    CHECK_INT(tec_timeline_write(&frame, "/tmp/no/such/folder/x.svg", &heap, &err), ==, TEC_IO);
    CHECK(strstr(err.message, "/tmp/no/such/folder/x.svg: cannot be written: No such file"));
    CHECK_INT(heap.live, ==, 0);
}

TEST(numbers_and_columns)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_svg svg;
    const char *text = NULL;
    size_t n = 0;
    tec_arena_init(&arena, &heap);
    tec_svg_begin(&svg, &arena, 10, 20.5, "");
    tec_svg_line(&svg, -0.25, 1e300, (double)NAN, 0.004, "a\"b");
    REQUIRE(tec_svg_end(&svg, &text, &n, NULL) == TEC_OK);
    CHECK(strstr(text, "width=\"10\" height=\"20.5\""));
    CHECK(strstr(text, "class=\"a&quot;b\" x1=\"-0.25\" y1=\"1000000000\" x2=\"0\" y2=\"0\""));
    CHECK(well_formed(text));
    CHECK_INT(tec_svg_columns("ab\xc3\xa9"), ==, 3);
    CHECK_INT(tec_svg_columns("\xe4\xbd\xa0"), ==, 2);
    tec_arena_finish(&arena);
}

TAP_MAIN
