/* plot.c - charts as SVG: what is drawn for each value, axes, refusals. */
#include "tools/picture/plot.h"

#include "tests/tap.h"
#include "tools/picture/plot_panel.h"

#include <math.h>
#include <stdlib.h>

static struct tec_heap heap;
static struct tec_arena arena;

/* A chart of one panel with two series of three values, one of them missing. */
static struct tec_plot make(enum tec_plot_kind kind)
{
    struct tec_plot plot = {.title = "speed & \"size\"", .columns = 2, .n_panels = 1};
    plot.panels[0] =
        (struct tec_plot_panel){.kind = kind,
                                .title = "panel",
                                .x_label = "N",
                                .y_label = "Hz",
                                .n_x = 3,
                                .n_series = 2,
                                .decimals = 1,
                                .x = {"5", "10", "<30>"},
                                .series = {{"ours", TEC_PLOT_BLUE, false, {1, 2, 4}},
                                           {"other", TEC_PLOT_RED, false, {3, (double)NAN, 1}}}};
    return plot;
}

static const char *draw(const struct tec_plot *plot)
{
    const char *text = NULL;
    size_t n = 0;
    struct tec_error err = {0};
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_plot_svg(plot, &text, &n, &arena, &err) == TEC_OK);
    CHECK_INT(strlen(text), ==, n);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

TEST(lines_have_a_point_a_value_and_no_line_over_a_gap)
{
    struct tec_plot plot = make(TEC_PLOT_LINES);
    const char *text = draw(&plot);
    CHECK_INT(count(text, "rx=\"3\""), ==, 5);
    CHECK(count(text, "class=\"c0\"") > 0);
    /* two lines of the first series, none of the second */
    CHECK_INT(count(text, "class=\"c0\"") - count(text, "class=\"c3\""), ==, 3);
    CHECK(strstr(text, "&lt;30&gt;"));
    CHECK(!strstr(text, "<30>"));
    CHECK(strstr(text, "speed &amp; &quot;size&quot;"));
    tec_arena_finish(&arena);
}

TEST(bars_are_as_many_as_values)
{
    struct tec_plot plot = make(TEC_PLOT_BARS);
    CHECK_INT(count(draw(&plot), "class=\"bar\""), ==, 5);
    tec_arena_finish(&arena);
}

TEST(cells_say_their_values)
{
    struct tec_plot plot = make(TEC_PLOT_HEAT);
    const char *text = draw(&plot);
    CHECK_INT(count(text, "class=\"none\""), ==, 1);
    CHECK(strstr(text, ">4.0<"));
    CHECK(strstr(text, "class=\"h8\""));
    CHECK(strstr(text, "class=\"h0\""));
    tec_arena_finish(&arena);
}

TEST(equal_values_make_equal_cells)
{
    struct tec_plot plot = make(TEC_PLOT_HEAT);
    for (int i = 0; i < 3; i++)
        plot.panels[0].series[0].value[i] = plot.panels[0].series[1].value[i] = 2.0;
    CHECK_INT(count(draw(&plot), "class=\"h0\""), ==, 6);
    tec_arena_finish(&arena);
}

TEST(axes_end_at_round_numbers)
{
    static const struct {
        double most, top, step;
    } cases[] = {{4, 4, 1},       {5.1, 6, 2},      {70, 80, 20},       {0.3, 0.3, 0.1},
                 {12, 12.5, 2.5}, {999, 1000, 200}, {1e-3, 1e-3, 2e-4}, {0, 1, 0.2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double step, top = tec_plot_axis(cases[i].most, &step);
        CHECK(fabs(top / cases[i].top - 1.0) < 1e-9);
        CHECK(fabs(step / cases[i].step - 1.0) < 1e-9);
        CHECK(top >= cases[i].most * (1.0 - 1e-9));
    }
    char text[32];
    tec_plot_number(text, 3.14159, 2);
    CHECK_STR(text, "3.14");
    tec_plot_number(text, 2.5, 0);
    CHECK_STR(text, "3");
}

TEST(what_cannot_be_drawn_is_refused_with_its_panel)
{
    const char *text;
    size_t n;
    struct tec_plot plot = make(TEC_PLOT_LINES);
    struct tec_error err = {0};
    tec_arena_init(&arena, &heap);
    plot.panels[0].series[1].value[2] = -1.0;
    CHECK_INT(tec_plot_svg(&plot, &text, &n, &arena, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "panel") && strstr(err.message, "other"));
    plot.panels[0].series[1].value[2] = HUGE_VAL;
    CHECK_INT(tec_plot_svg(&plot, &text, &n, &arena, &err), ==, TEC_INVALID);
    plot = make(TEC_PLOT_LINES);
    plot.panels[0].n_x = TEC_PLOT_POINTS + 1;
    CHECK_INT(tec_plot_svg(&plot, &text, &n, &arena, &err), ==, TEC_INVALID);
    plot = make(TEC_PLOT_LINES);
    plot.n_panels = 0;
    CHECK_INT(tec_plot_svg(&plot, &text, &n, &arena, &err), ==, TEC_INVALID);
    plot = make(TEC_PLOT_LINES);
    CHECK_INT(tec_plot_write(&plot, "/nonexistent/x.svg", &heap, &err), ==, TEC_IO);
    tec_arena_finish(&arena);
    CHECK_INT(atomic_load(&heap.live), ==, 0);
}

TEST(no_memory_is_said)
{
    struct tec_plot plot = make(TEC_PLOT_BARS);
    for (int at = 1; at < 3; at++) {
        struct tec_heap small = {.fail_at = at};
        const char *text;
        size_t n;
        tec_arena_init(&arena, &small);
        enum tec_status status = tec_plot_svg(&plot, &text, &n, &arena, NULL);
        CHECK(status == TEC_NO_MEMORY || at > 1);
        tec_arena_finish(&arena);
        CHECK_INT(atomic_load(&small.live), ==, 0);
    }
}

TAP_MAIN
