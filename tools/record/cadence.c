/* cadence.c - counts rate, misses and headroom of a robot's newest frames. */
#include "tools/record/cadence.h"

#include "tools/measure/bench.h"
#include "tools/record/explain.h"

#include <stdlib.h>
#include <string.h>

enum { SECOND_NS = 1000000000, MOST_SECONDS = 4096 };

/* The frames of the window: their index, and room for numbers of each. */
struct window {
    const struct tec_flight *f;
    size_t first, n; /* frames [first, first + n) that have ended */
    int64_t from_ns, end_ns;
    int64_t *numbers; /* [most of frames and launches] */
};

/* A quantile of the first n numbers, which are sorted; 0 of none. */
static int64_t at(struct window *w, size_t n, double q)
{
    const struct tec_samples all = {.n = (int)n, .ns = w->numbers};
    return tec_samples_at(&all, q);
}

static void sort(struct window *w, size_t n)
{
    struct tec_samples all = {.n = (int)n, .ns = w->numbers};
    tec_samples_sort(&all);
}

static void find_window(struct window *w, double last_s)
{
    const struct tec_flight *f = w->f;
    size_t end = f->n_frames;
    while (end > 0 && f->frames[end - 1].end_ns < 0)
        end--;
    w->end_ns = end ? f->frames[end - 1].end_ns : 0;
    w->from_ns = last_s > 0.0 ? w->end_ns - (int64_t)(last_s * 1e9) : INT64_MIN;
    w->first = 0;
    while (w->first < end && f->frames[w->first].start_ns < w->from_ns)
        w->first++;
    w->n = end - w->first;
    if (w->n)
        w->from_ns = f->frames[w->first].start_ns;
}

static void count_frames(struct tec_cadence *c, struct window *w)
{
    const struct tec_flight_frame *frames = w->f->frames + w->first;
    int64_t tokens = 0;
    for (size_t i = 0; i < w->n; i++) {
        tokens += frames[i].tokens;
        c->missed += frames[i].missed;
        for (int k = 0; k < TEC_CAUSES && frames[i].missed; k++)
            c->causes[k] += strcmp(frames[i].cause, tec_cause_name((enum tec_cause)k)) == 0;
        w->numbers[i] = (frames[i].end_ns - frames[i].start_ns) / 1000;
    }
    sort(w, w->n);
    c->frames = w->n;
    c->frame_p50_us = at(w, w->n, 0.5);
    c->frame_p99_us = at(w, w->n, 0.99);
    c->frame_max_us = at(w, w->n, 1.0);
    c->seconds = (double)(w->end_ns - w->from_ns) / 1e9;
    double span = w->n > 1 ? (double)(frames[w->n - 1].start_ns - frames[0].start_ns) / 1e9 : 0.0;
    c->hz = span > 0.0 ? (double)(w->n - 1) / span : 0.0;
    c->tokens_s = c->seconds > 0.0 ? (double)tokens / c->seconds : 0.0;
    c->newest = frames[w->n - 1].frame;
    c->in_flight = frames[w->n - 1].in_flight;
    c->policy = tec_flight_policy(w->f, &frames[w->n - 1]);
}

/* Frames that began in each whole second: the fewest. */
static void find_worst_second(struct tec_cadence *c, const struct window *w)
{
    const struct tec_flight_frame *frames = w->f->frames + w->first;
    size_t in_second[MOST_SECONDS] = {0};
    int64_t seconds = (frames[w->n - 1].start_ns - frames[0].start_ns) / SECOND_NS;
    seconds = seconds < MOST_SECONDS ? seconds : MOST_SECONDS;
    for (size_t i = 0; i < w->n; i++) {
        int64_t second = (frames[i].start_ns - frames[0].start_ns) / SECOND_NS;
        if (second >= 0 && second < seconds)
            in_second[second]++;
    }
    c->worst_hz = c->hz;
    for (int64_t i = 0; i < seconds; i++)
        if (i == 0 || (double)in_second[i] < c->worst_hz)
            c->worst_hz = (double)in_second[i];
}

static void count_figures(struct tec_cadence *c, struct window *w)
{
    const struct tec_flight_frame *frames = w->f->frames + w->first;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (frames[i].deadline_us >= 0 && frames[i].age_us >= 0)
            w->numbers[n++] = frames[i].slack_us;
    sort(w, n);
    c->headroom_us = n ? at(w, n, 0.5) : INT64_MIN;
    for (size_t i = 0; i < w->n; i++)
        w->numbers[i] = frames[i].planner_us;
    sort(w, w->n);
    c->policy_p50_us = at(w, w->n, 0.5);
    c->policy_max_us = at(w, w->n, 1.0);
    for (size_t i = 0; i < w->n; i++)
        w->numbers[i] = frames[i].host_us;
    sort(w, w->n);
    c->host_p50_us = at(w, w->n, 0.5);
}

static void count_node(struct tec_cadence *c, struct window *w, int node)
{
    struct tec_cadence_node *out = &c->nodes[node];
    int64_t sum = 0;
    for (size_t i = 0; i < w->f->n_launches; i++) {
        const struct tec_flight_launch *l = &w->f->launches[i];
        if (l->node != node || l->start_ns < w->from_ns)
            continue;
        w->numbers[out->launches++] = (l->end_ns - l->start_ns) / 1000;
        sum += l->end_ns - l->start_ns;
    }
    sort(w, out->launches);
    out->p50_us = at(w, out->launches, 0.5);
    out->p99_us = at(w, out->launches, 0.99);
    out->max_us = at(w, out->launches, 1.0);
    out->hz = c->seconds > 0.0 ? (double)out->launches / c->seconds : 0.0;
    out->share = c->seconds > 0.0 ? (double)sum / 1e9 / c->seconds : 0.0;
}

static void count_actions(struct tec_cadence *c, const struct window *w)
{
    size_t left = 0;
    for (size_t i = 0; i < w->f->n_events; i++) {
        const struct tec_flight_event *e = &w->f->events[i];
        left += e->kind == TEC_EVENT_RELEASE && e->t_ns >= w->from_ns;
        c->left_out += e->kind == TEC_EVENT_LEFT_OUT && e->t_ns >= w->from_ns;
    }
    c->action_hz = c->seconds > 0.0 ? (double)left / c->seconds : 0.0;
}

enum tec_status tec_cadence_of(struct tec_cadence *c, const struct tec_flight *f, double last_s,
                               struct tec_error *err)
{
    size_t most = f->n_frames > f->n_launches ? f->n_frames : f->n_launches;
    struct window w = {.f = f, .numbers = malloc((most + 1) * sizeof(int64_t))};
    int64_t period = json_integer_value(json_object_get(f->about, "period_us"));
    *c = (struct tec_cadence){.newest = -1, .headroom_us = INT64_MIN, .policy = ""};
    if (!w.numbers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for figures");
    find_window(&w, last_s);
    const char *mode = json_string_value(json_object_get(f->about, "mode"));
    bool paced = mode && strcmp(mode, "frames") != 0;
    c->wanted_hz = period > 0 && paced ? 1e6 / (double)period : 0.0;
    if (w.n) {
        count_frames(c, &w);
        find_worst_second(c, &w);
        count_figures(c, &w);
        count_actions(c, &w);
        for (int i = 0; i < f->n_nodes; i++)
            count_node(c, &w, i);
    }
    free(w.numbers);
    return TEC_OK;
}

/* --- as text and JSON ------------------------------------------------------------------------- */

void tec_cadence_line(const struct tec_cadence *c, char *text, size_t room)
{
    char wanted[40] = "", headroom[48] = "";
    if (c->wanted_hz > 0.0)
        snprintf(wanted, sizeof wanted, " of %.4g", c->wanted_hz);
    if (c->headroom_us != INT64_MIN)
        snprintf(headroom, sizeof headroom, ", headroom %.1f ms", (double)c->headroom_us / 1e3);
    snprintf(text, room, "%.2f Hz%s, %zu of %zu over, worst second %.4g Hz%s", c->hz, wanted,
             c->missed, c->frames, c->worst_hz, headroom);
}

static double ms(int64_t us)
{
    return (double)us / 1e3;
}

void tec_cadence_print(FILE *out, const struct tec_flight *f, const struct tec_cadence *c)
{
    char line[200];
    const char *name = json_string_value(json_object_get(f->about, "pipeline"));
    tec_cadence_line(c, line, sizeof line);
    fprintf(out, "%s  policy %s  frame %lld  %s\n", name ? name : "", c->policy,
            (long long)c->newest, line);
    fprintf(out, "%-14s %9s %9s %9s %9s %7s\n", "NODE", "HZ", "p50 ms", "p99 ms", "MAX ms",
            "DEVICE");
    for (int i = 0; i < f->n_nodes; i++)
        if (c->nodes[i].launches)
            fprintf(out, "%-14.14s %9.2f %9.2f %9.2f %9.2f %6.1f%%\n", f->nodes[i], c->nodes[i].hz,
                    ms(c->nodes[i].p50_us), ms(c->nodes[i].p99_us), ms(c->nodes[i].max_us),
                    100.0 * c->nodes[i].share);
    fprintf(out, "%-14s %9.2f %9.2f %9.2f %9.2f\n", "frame", c->hz, ms(c->frame_p50_us),
            ms(c->frame_p99_us), ms(c->frame_max_us));
    fprintf(out,
            "actions %.2f Hz  language %.1f tokens/s, %d in flight  policy p50 %.0f us max "
            "%.0f us  host p50 %.0f us\n",
            c->action_hz, c->tokens_s, c->in_flight, (double)c->policy_p50_us,
            (double)c->policy_max_us, (double)c->host_p50_us);
    fprintf(out, "missed %zu of %zu in %.1f s", c->missed, c->frames, c->seconds);
    if (c->left_out)
        fprintf(out, "  left out by the policy %zu", c->left_out);
    for (int i = 1; i < TEC_CAUSES; i++)
        if (c->causes[i])
            fprintf(out, "  %s %zu", tec_cause_name((enum tec_cause)i), c->causes[i]);
    fputc('\n', out);
}

json_t *tec_cadence_json(const struct tec_flight *f, const struct tec_cadence *c)
{
    json_t *nodes = json_array(), *causes = json_object();
    char line[200];
    tec_cadence_line(c, line, sizeof line);
    for (int i = 0; i < f->n_nodes; i++)
        json_array_append_new(
            nodes,
            json_pack("{s:s, s:I, s:f, s:I, s:I, s:I, s:f}", "node", f->nodes[i], "launches",
                      (json_int_t)c->nodes[i].launches, "hz", c->nodes[i].hz, "p50_us",
                      (json_int_t)c->nodes[i].p50_us, "p99_us", (json_int_t)c->nodes[i].p99_us,
                      "max_us", (json_int_t)c->nodes[i].max_us, "share", c->nodes[i].share));
    for (int i = 1; i < TEC_CAUSES; i++)
        json_object_set_new(causes, tec_cause_name((enum tec_cause)i),
                            json_integer((json_int_t)c->causes[i]));
    const json_t *name = json_object_get(f->about, "pipeline");
    return json_pack(
        "{s:O?, s:s, s:I, s:s, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:o, s:o, s:{s:I, s:I, s:I}, "
        "s:f, s:i, "
        "s:{s:I, s:I}, s:f, s:o}",
        "pipeline", name, "policy", c->policy, "frame", (json_int_t)c->newest, "cadence", line,
        "hz", c->hz, "wanted_hz", c->wanted_hz, "worst_hz", c->worst_hz, "action_hz", c->action_hz,
        "frames", (json_int_t)c->frames, "missed", (json_int_t)c->missed, "left_out",
        (json_int_t)c->left_out, "causes", causes, "headroom_us",
        c->headroom_us == INT64_MIN ? json_null() : json_integer(c->headroom_us), "frame_us", "p50",
        (json_int_t)c->frame_p50_us, "p99", (json_int_t)c->frame_p99_us, "max",
        (json_int_t)c->frame_max_us, "tokens_s", c->tokens_s, "in_flight", c->in_flight,
        "policy_us", "p50", (json_int_t)c->policy_p50_us, "max", (json_int_t)c->policy_max_us,
        "seconds", c->seconds, "nodes", nodes);
}
