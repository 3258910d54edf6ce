/* replay_page.c - gathers the frames of a replay and writes them as a page. */
#include "tools/record/replay_page.h"

#include "base/json_text.h"
#include "base/out_file.h"
#include "tools/picture/sides.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 500, FURTHEST = 20 };

enum tec_status tec_replay_page_open(struct tec_replay_page *p, struct tec_heap *heap,
                                     struct tec_error *err)
{
    *p = (struct tec_replay_page){
        .frames = {.heap = heap}, .rows = json_array(), .facts = json_array()};
    return p->rows && p->facts ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
}

void tec_replay_page_close(struct tec_replay_page *p)
{
    if (p->frames.heap)
        tec_buffer_finish(&p->frames);
    json_decref(p->rows);
    json_decref(p->facts);
    *p = (struct tec_replay_page){.rows = NULL};
}

void tec_replay_page_fact(struct tec_replay_page *p, const char *what, json_t *was, json_t *is)
{
    bool known = was && is && !json_is_null(was) && !json_is_null(is);
    bool mark = known && !json_equal(was, is);
    int refused = json_array_append_new(
        p->facts, json_pack("[s, {s:o, s:b}, {s:o, s:b}]", what, "text", was ? was : json_null(),
                            "mark", (int)mark, "text", is ? is : json_null(), "mark", (int)mark));
    p->frames.failed |= refused != 0;
}

/* --- a frame that differs --------------------------------------------------------------------- */

/* Launches in words: "see, act, talk 4 x 8", rows and steps where there are several. */
static json_t *plan_text(const json_t *plan)
{
    char text[1100] = "";
    const json_t *launch;
    size_t i, n = 0;
    if (!json_is_array(plan))
        return json_string("no frame");
    json_array_foreach(plan, i, launch)
    {
        const char *node = json_string_value(json_array_get(launch, 0));
        long long rows = (long long)json_integer_value(json_array_get(launch, 1));
        long long k = (long long)json_integer_value(json_array_get(launch, 2));
        char one[200];
        if (rows > 1 || k > 1)
            snprintf(one, sizeof one, "%.150s %lld x %lld", node ? node : "?", rows, k);
        else
            snprintf(one, sizeof one, "%.150s", node ? node : "?");
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", one);
        if (n >= sizeof text - sizeof one) {
            memcpy(text + n, " ...", 5);
            break;
        }
    }
    return tec_json_shown(n ? text : "nothing");
}

/* {key: value} as "key value, ..."; "" where there are none. */
static json_t *notes_text(json_t *notes)
{
    char text[600] = "";
    const char *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach(notes, key, value)
    {
        const char *word = json_string_value(value);
        char number[40];
        snprintf(number, sizeof number, "%g", json_number_value(value));
        if (n < sizeof text - 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.60s %.100s", n ? ", " : "", key,
                                  word ? word : number);
    }
    return tec_json_shown(text);
}

static json_t *ms_of(const json_t *line, const char *key)
{
    const json_t *us = json_object_get(line, key);
    return json_is_number(us) ? json_real(json_number_value(us) / 1e3) : json_null();
}

static json_t *missed_text(const json_t *line, const char *missed, const char *cause)
{
    const char *why = json_string_value(json_object_get(line, cause));
    bool late = json_is_true(json_object_get(line, missed));
    return json_string(!late ? "" : why ? why : "yes");
}

static void add_row(struct tec_replay_page *p, const json_t *line)
{
    const json_t *was = json_object_get(line, "was"), *is = json_object_get(line, "is");
    const json_t *actions = json_object_get(line, "actions_equal");
    int refused = json_array_append_new(
        p->rows,
        json_pack("[O, O, o, {s:o, s:b}, {s:s, s:b}, o, o, o, o, o, o]",
                  json_object_get(line, "frame"), json_object_get(line, "session"), plan_text(was),
                  "text", plan_text(is), "mark", (int)!json_equal(was, is), "text",
                  json_is_false(actions)  ? "not the same"
                  : json_is_true(actions) ? "the same"
                                          : "not made",
                  "mark", (int)json_is_false(actions), ms_of(line, "was_us"), ms_of(line, "is_us"),
                  missed_text(line, "was_missed", "was_cause"),
                  missed_text(line, "is_missed", "is_cause"),
                  notes_text(json_object_get(line, "was_notes")),
                  notes_text(json_object_get(line, "is_notes"))));
    p->frames.failed |= refused != 0;
}

void tec_replay_page_add(struct tec_replay_page *p, const json_t *line, bool differs)
{
    const json_t *is_us = json_object_get(line, "is_us");
    const struct tec_sides_frame frame = {
        .number = json_integer_value(json_object_get(line, "frame")),
        .before_ms = json_number_value(json_object_get(line, "was_us")) / 1e3,
        .after_ms = json_is_number(is_us) ? json_number_value(is_us) / 1e3 : -1.0,
        .differs = differs};
    tec_buffer_bytes(&p->frames, &frame, sizeof frame);
    p->missed[0] += json_is_true(json_object_get(line, "was_missed"));
    p->missed[1] += json_is_true(json_object_get(line, "is_missed"));
    p->differ += differs;
    p->frames.failed |= !line; /* for want of memory */
    if (differs && json_array_size(p->rows) < MOST_ROWS)
        add_row(p, line);
}

/* --- the page --------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile of sorted numbers by nearest rank; null without any. */
static json_t *quantile(const double *sorted, size_t n, double q)
{
    size_t rank = (size_t)(q * (double)n + 0.9999999);
    return n ? json_real(sorted[rank > n ? n - 1 : rank > 0 ? rank - 1 : 0]) : json_null();
}

/* Sort the times of one side into `room`; how many frames have one. */
static size_t sort_side(double *room, const struct tec_sides_frame *frames, size_t n, bool after)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        double ms = after ? frames[i].after_ms : frames[i].before_ms;
        if (ms >= 0.0)
            room[k++] = ms;
    }
    if (k)
        qsort(room, k, sizeof *room, by_number);
    return k;
}

static void put_figures(const struct tec_replay_page *p, const struct tec_sides_frame *frames,
                        size_t n, double *room, FILE *out)
{
    static const double at[] = {0.5, 0.99, 1.0};
    static const char *const names[] = {"frame p50, ms", "frame p99, ms", "frame max, ms"};
    json_t *heads = json_pack("[s, s, s]", "", "was", "is"), *rows = json_array(), *side[2][3];
    size_t have[2];
    for (int s = 0; s < 2; s++) {
        have[s] = sort_side(room, frames, n, s == 1);
        for (int q = 0; q < 3; q++)
            side[s][q] = quantile(room, have[s], at[q]);
    }
    for (int q = 0; q < 3; q++)
        json_array_append_new(rows, json_pack("[s, o, o]", names[q], side[0][q], side[1][q]));
    json_array_append_new(
        rows, json_pack("[s, I, I]", "frames", (json_int_t)have[0], (json_int_t)have[1]));
    json_array_append_new(
        rows, json_pack("[s, I, I]", "missed", (json_int_t)p->missed[0], (json_int_t)p->missed[1]));
    json_array_extend(rows, p->facts);
    tec_sides_table(out, "Side by side", heads, rows, "");
    json_decref(heads);
    json_decref(rows);
}

static int by_distance(const void *a, const void *b)
{
    const struct tec_sides_frame *x = a, *y = b;
    double of_x = x->after_ms < 0.0 ? -1.0 : fabs(x->after_ms - x->before_ms);
    double of_y = y->after_ms < 0.0 ? -1.0 : fabs(y->after_ms - y->before_ms);
    return of_x != of_y ? (of_x < of_y ? 1 : -1)
                        : (x->number > y->number) - (x->number < y->number);
}

/* Sorts the frames: the last that looks at them. */
static void put_furthest(struct tec_sides_frame *frames, size_t n, FILE *out)
{
    json_t *heads = json_pack("[s, s, s, s]", "frame", "was ms", "is ms", "is - was ms");
    json_t *rows = json_array();
    if (n)
        qsort(frames, n, sizeof *frames, by_distance);
    for (size_t i = 0; i < n && i < FURTHEST && frames[i].after_ms >= 0.0; i++)
        if (frames[i].after_ms != frames[i].before_ms)
            json_array_append_new(rows, json_pack("[I, f, f, f]", (json_int_t)frames[i].number,
                                                  frames[i].before_ms, frames[i].after_ms,
                                                  frames[i].after_ms - frames[i].before_ms));
    tec_sides_table(out, "Times that are furthest apart", heads, rows,
                    "Every frame took what it took.");
    json_decref(heads);
    json_decref(rows);
}

static void put_page(const struct tec_replay_page *p, struct tec_sides_frame *frames, size_t n,
                     double *room, const char *title, FILE *out)
{
    char words[200];
    json_t *heads =
        json_pack("[s, s, s, s, s, s, s, s, s, s, s]", "frame", "session", "ran", "runs", "actions",
                  "was ms", "is ms", "was late", "is late", "notes then", "notes now");
    snprintf(words, sizeof words, "%zu frames, of which %lld ran or gave something else%s.", n,
             (long long)p->differ,
             p->differ > MOST_ROWS ? "; the first 500 of these are listed" : "");
    tec_sides_begin(out, title, words);
    put_figures(p, frames, n, room, out);
    tec_sides_timeline(out, "Frames", frames, n);
    tec_sides_table(out, "Frames that differ", heads, p->rows,
                    "Every frame ran and gave the same.");
    put_furthest(frames, n, out);
    tec_sides_end(out);
    json_decref(heads);
}

enum tec_status tec_replay_page_write(const struct tec_replay_page *p, const char *path,
                                      const char *title, struct tec_error *err)
{
    struct tec_out_file out = {0};
    size_t n = p->frames.n / sizeof(struct tec_sides_frame);
    double *room = tec_heap_get(p->frames.heap, (n + 1) * sizeof *room);
    if (!room || p->frames.failed) {
        tec_heap_put(p->frames.heap, room);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
    }
    enum tec_status status = tec_outfile_file_open(&out, path, err);
    if (status == TEC_OK) {
        put_page(p, (struct tec_sides_frame *)(void *)p->frames.data, n, room, title, out.file);
        if (tec_json_refused()) {
            tec_outfile_file_drop(&out);
            status = tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
        } else {
            status = tec_outfile_file_keep(&out, err);
        }
    }
    tec_heap_put(p->frames.heap, room);
    return status;
}
