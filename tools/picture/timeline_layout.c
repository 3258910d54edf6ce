/* timeline_layout.c - where everything of a timeline goes. */
#include "tools/picture/timeline_layout.h"

#include "tools/picture/svg.h"

#include <math.h>
#include <stdlib.h>

/* Beyond these the pixels of a double run out. */
static const double far_us = 1e13;

double tec_timeline_text_width(const char *text)
{
    return 6.7 * (double)tec_svg_columns(text);
}

double tec_timeline_x(const struct tec_timeline_layout *l, double time_us)
{
    return l->left + (time_us - l->first_us) / (l->last_us - l->first_us) * (l->right - l->left);
}

static enum tec_status check(const struct tec_timeline *t, struct tec_error *err)
{
    for (size_t i = 0; i < t->n_spans; i++) {
        const struct tec_timeline_span *s = &t->spans[i];
        if (s->lane < 0 || s->lane >= t->n_lanes || (unsigned)s->kind > TEC_SPAN_HOST || !s->label)
            return tec_fail(err, TEC_INVALID,
                            "timeline span %zu: lane %d of %d, kind %d, or no label", i, s->lane,
                            t->n_lanes, (int)s->kind);
        if (!(fabs(s->start_us) < far_us) || !(fabs(s->end_us) < far_us) || s->end_us < s->start_us)
            return tec_fail(err, TEC_INVALID, "timeline span %zu runs from %g to %g us", i,
                            s->start_us, s->end_us);
    }
    for (size_t i = 0; i < t->n_marks; i++) {
        const struct tec_timeline_mark *m = &t->marks[i];
        if (!(fabs(m->time_us) < far_us) || (unsigned)m->kind > TEC_MARK_DEADLINE || !m->label)
            return tec_fail(err, TEC_INVALID, "timeline mark %zu: time %g us, kind %d, or no label",
                            i, m->time_us, (int)m->kind);
    }
    return TEC_OK;
}

static void set_axis(struct tec_timeline_layout *l)
{
    const struct tec_timeline *t = l->timeline;
    double first = (double)INFINITY, last = -(double)INFINITY;
    for (size_t i = 0; i < t->n_spans; i++) {
        first = fmin(first, t->spans[i].start_us);
        last = fmax(last, t->spans[i].end_us);
    }
    for (size_t i = 0; i < t->n_marks; i++) {
        first = fmin(first, t->marks[i].time_us);
        last = fmax(last, t->marks[i].time_us);
    }
    if (first > last) {
        first = 0.0;
        last = 1000.0;
    }
    double range = fmax(last - first, fmax(1.0, fmax(fabs(first), fabs(last)) * 1e-9));
    l->first_us = first;
    l->last_us = first + range * 1.015;
}

static int by_lane_and_start(const void *a, const void *b)
{
    const struct tec_timeline_span *s = ((const struct tec_timeline_bar *)a)->span;
    const struct tec_timeline_span *t = ((const struct tec_timeline_bar *)b)->span;
    if (s->lane != t->lane)
        return s->lane < t->lane ? -1 : 1;
    if (s->start_us != t->start_us)
        return s->start_us < t->start_us ? -1 : 1;
    return s < t ? -1 : s > t;
}

static int by_time(const void *a, const void *b)
{
    const struct tec_timeline_mark *m = ((const struct tec_timeline_flag *)a)->mark;
    const struct tec_timeline_mark *n = ((const struct tec_timeline_flag *)b)->mark;
    if (m->time_us != n->time_us)
        return m->time_us < n->time_us ? -1 : 1;
    return m < n ? -1 : m > n;
}

/* Rows of one lane: bars [from, to). Returns how many rows it took. */
static int place_lane(struct tec_timeline_layout *l, size_t from, size_t to)
{
    double ends[TEC_TIMELINE_ROWS], next[TEC_TIMELINE_ROWS];
    int n_rows = 0;
    for (size_t i = from; i < to; i++) {
        struct tec_timeline_bar *bar = &l->bars[i];
        int row = 0;
        while (row < n_rows && ends[row] > bar->span->start_us)
            row++;
        row = row < TEC_TIMELINE_ROWS ? row : TEC_TIMELINE_ROWS - 1;
        if (row == n_rows)
            ends[n_rows++] = bar->span->end_us;
        ends[row] = fmax(ends[row], bar->span->end_us);
        bar->row = row;
        bar->x = tec_timeline_x(l, bar->span->start_us);
        bar->width = fmax(tec_timeline_x(l, bar->span->end_us) - bar->x, 1.5);
    }
    for (int row = 0; row < TEC_TIMELINE_ROWS; row++)
        next[row] = TEC_TIMELINE_WIDTH - TEC_TIMELINE_MARGIN;
    for (size_t i = to; i-- > from;) {
        l->bars[i].free_x = next[l->bars[i].row];
        next[l->bars[i].row] = l->bars[i].x;
    }
    return n_rows;
}

static void place_bars(struct tec_timeline_layout *l)
{
    const struct tec_timeline *t = l->timeline;
    double y = l->top;
    size_t from = 0, to = 0;
    for (int lane = 0; lane < t->n_lanes; lane++, from = to) {
        while (to < t->n_spans && l->bars[to].span->lane == lane)
            to++;
        int n_rows = place_lane(l, from, to);
        l->lanes[lane].y = y;
        l->lanes[lane].height = 8.0 + TEC_TIMELINE_ROW * (n_rows > 0 ? n_rows : 1);
        for (size_t i = from; i < to; i++)
            l->bars[i].y = y + 6.0 + TEC_TIMELINE_ROW * l->bars[i].row;
        y += l->lanes[lane].height;
    }
    l->bottom = y;
}

/* Labels go right of their line, on the first line of text that is free there. Returns the lines
 * used. */
static int place_flags(struct tec_timeline_layout *l)
{
    double ends[TEC_TIMELINE_MARK_LINES];
    int n_lines = 0;
    for (size_t i = 0; i < l->timeline->n_marks; i++) {
        struct tec_timeline_flag *flag = &l->flags[i];
        flag->x = tec_timeline_x(l, flag->mark->time_us);
        double width = tec_timeline_text_width(flag->mark->label) + 14.0;
        double x = fmin(flag->x, TEC_TIMELINE_WIDTH - 4.0 - width);
        int line = 0;
        while (line < n_lines && ends[line] > x)
            line++;
        flag->line = line < TEC_TIMELINE_MARK_LINES ? line : -1;
        if (flag->line < 0)
            continue;
        n_lines = line == n_lines ? line + 1 : n_lines;
        ends[line] = x + width;
    }
    return n_lines;
}

static double gutter(const struct tec_timeline *t)
{
    double widest = 40.0;
    for (int i = 0; i < t->n_lanes; i++)
        widest = fmax(widest, tec_timeline_text_width(t->lanes[i]));
    return fmin(widest, 220.0) + 16.0;
}

enum tec_status tec_timeline_place(struct tec_timeline_layout *l,
                                   const struct tec_timeline *timeline, struct tec_arena *arena,
                                   struct tec_error *err)
{
    const struct tec_timeline *t = timeline;
    TEC_TRY(check(t, err));
    *l = (struct tec_timeline_layout){.timeline = t};
    l->bars = TEC_NEW(arena, t->n_spans, struct tec_timeline_bar);
    l->flags = TEC_NEW(arena, t->n_marks, struct tec_timeline_flag);
    l->lanes = TEC_NEW(arena, (size_t)t->n_lanes, struct tec_timeline_lane);
    if (!l->bars || !l->flags || !l->lanes)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a timeline of %zu spans", t->n_spans);
    for (size_t i = 0; i < t->n_spans; i++)
        l->bars[i].span = &t->spans[i];
    for (size_t i = 0; i < t->n_marks; i++)
        l->flags[i].mark = &t->marks[i];
    if (t->n_spans > 0)
        qsort(l->bars, t->n_spans, sizeof *l->bars, by_lane_and_start);
    if (t->n_marks > 0)
        qsort(l->flags, t->n_marks, sizeof *l->flags, by_time);
    set_axis(l);
    l->left = TEC_TIMELINE_MARGIN + gutter(t);
    l->right = TEC_TIMELINE_WIDTH - TEC_TIMELINE_MARGIN;
    l->marks_y = TEC_TIMELINE_MARGIN + (t->title ? 22.0 : 0.0) + (t->subtitle ? 18.0 : 0.0) +
                 (t->title || t->subtitle ? 8.0 : 0.0);
    int lines = place_flags(l);
    l->top = l->marks_y + (lines > 0 ? lines * TEC_TIMELINE_LINE + 6.0 : 0.0);
    place_bars(l);
    l->height = l->bottom + 76.0;
    return TEC_OK;
}
