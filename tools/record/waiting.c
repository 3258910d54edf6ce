/* waiting.c - adds up where the time of each node went, between the edges of launches, frames and
 * inputs. */
#include "tools/record/waiting.h"

#include "base/json_text.h"

#include <stdlib.h>
#include <string.h>

/* What begins or ends at an edge. */
enum edge_kind { LAUNCH, FRAME, DUE, INPUT, EDGES };

struct edge {
    int64_t t_ns;
    int node, step; /* node: of a launch; step: 1 it begins, -1 it ends */
    enum edge_kind kind;
};

struct sweep {
    struct edge *edges;
    size_t n;
    int64_t from_ns, to_ns; /* of the span */
    int open[EDGES];        /* how many of a kind there are now */
    int running[TEC_MAX_NODES];
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

/* What lies between two moments, as far as it lies in the span. */
static void put(struct sweep *s, enum edge_kind kind, int node, int64_t from_ns, int64_t to_ns)
{
    from_ns = from_ns < s->from_ns ? s->from_ns : from_ns;
    to_ns = to_ns > s->to_ns ? s->to_ns : to_ns;
    if (to_ns <= from_ns)
        return;
    s->edges[s->n++] = (struct edge){from_ns, node, 1, kind};
    s->edges[s->n++] = (struct edge){to_ns, node, -1, kind};
}

/* A frame that is due waits for its inputs last, right before it begins. */
static void put_frame(struct sweep *s, const struct tec_flight_frame *frame)
{
    int64_t input_ns = frame->start_ns - (frame->late_ns > 0 ? frame->late_ns : 0);
    put(s, FRAME, 0, frame->start_ns, frame->end_ns);
    put(s, DUE, 0, frame->tick_ns, frame->start_ns);
    put(s, INPUT, 0, input_ns > frame->tick_ns ? input_ns : frame->tick_ns, frame->start_ns);
}

static void find_span(struct sweep *s, size_t *frames, const struct tec_flight *f)
{
    for (size_t i = 0; i < f->n_frames; i++) {
        const struct tec_flight_frame *frame = &f->frames[i];
        int64_t from = frame->tick_ns < frame->start_ns ? frame->tick_ns : frame->start_ns;
        if (frame->end_ns < 0)
            continue;
        s->from_ns = *frames == 0 || from < s->from_ns ? from : s->from_ns;
        s->to_ns = frame->end_ns > s->to_ns ? frame->end_ns : s->to_ns;
        ++*frames;
    }
}

static enum tec_waiting_kind idle_kind(const struct sweep *s)
{
    if (s->open[FRAME] == 0 && s->open[INPUT] > 0)
        return TEC_WAITING_INPUT;
    return s->open[FRAME] > 0 || s->open[DUE] > 0 ? TEC_WAITING_HOST : TEC_WAITING_NO_WORK;
}

static void add(struct tec_waiting *w, const struct sweep *s, int n_nodes, int64_t ns)
{
    bool any = s->open[LAUNCH] > 0;
    enum tec_waiting_kind idle = idle_kind(s);
    for (int i = 0; i < n_nodes; i++)
        w->nodes[i][s->running[i] > 0 ? TEC_WAITING_RUNS : any ? TEC_WAITING_OTHER : idle] += ns;
    w->all[any ? TEC_WAITING_RUNS : idle] += ns;
}

enum tec_status tec_waiting_of(struct tec_waiting *out, struct tec_flight *f, struct tec_error *err)
{
    struct sweep s = {.n = 0};
    memset(out, 0, sizeof *out);
    find_span(&s, &out->frames, f);
    if (out->frames == 0)
        return tec_fail(err, TEC_MALFORMED, "no frame of the recording is whole");
    s.edges = TEC_NEW(&f->arena, 2 * f->n_launches + 6 * f->n_frames, struct edge);
    if (!s.edges)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of nodes");
    for (size_t i = 0; i < f->n_launches; i++)
        if (f->launches[i].node >= 0 && f->launches[i].node < f->n_nodes)
            put(&s, LAUNCH, f->launches[i].node, f->launches[i].start_ns, f->launches[i].end_ns);
    for (size_t i = 0; i < f->n_frames; i++)
        if (f->frames[i].end_ns >= 0)
            put_frame(&s, &f->frames[i]);
    qsort(s.edges, s.n, sizeof *s.edges, by_time);
    int64_t at_ns = s.from_ns;
    for (size_t i = 0; i < s.n; i++) {
        const struct edge *e = &s.edges[i];
        add(out, &s, f->n_nodes, e->t_ns - at_ns);
        at_ns = e->t_ns;
        s.open[e->kind] += e->step;
        if (e->kind == LAUNCH)
            s.running[e->node] += e->step;
    }
    add(out, &s, f->n_nodes, s.to_ns - at_ns);
    out->span_ns = s.to_ns - s.from_ns;
    return TEC_OK;
}

/* --- reports ---------------------------------------------------------------------------------- */

static void print_row(FILE *out, const char *name, const int64_t ns[TEC_WAITING_KINDS],
                      int64_t span_ns)
{
    fprintf(out, "%-16.16s", name);
    for (int k = 0; k < TEC_WAITING_KINDS; k++)
        fprintf(out, " %9.2f%%", span_ns > 0 ? 100.0 * (double)ns[k] / (double)span_ns : 0.0);
    fputc('\n', out);
}

void tec_waiting_print(FILE *out, const struct tec_flight *f, const struct tec_waiting *w)
{
    fprintf(out, "%zu frames in %.2f s\n%-16s %10s %10s %10s %10s %10s\n", w->frames,
            (double)w->span_ns / 1e9, "NODE", "RUNS", "OTHER NODE", "INPUT", "HOST", "NO WORK");
    for (int i = 0; i < f->n_nodes; i++)
        print_row(out, tec_flight_node(f, i), w->nodes[i], w->span_ns);
    print_row(out, "(machine)", w->all, w->span_ns);
}

static json_t *row_json(const char *name, const int64_t ns[TEC_WAITING_KINDS])
{
    static const char *const fields[] = {"runs_us", "other_node_us", "input_us", "host_us",
                                         "no_work_us"};
    json_t *row = json_object();
    if (name)
        json_object_set_new(row, "node", tec_json_shown(name));
    for (int k = 0; k < TEC_WAITING_KINDS; k++)
        json_object_set_new(row, fields[k], json_real((double)ns[k] / 1e3));
    return row;
}

json_t *tec_waiting_json(const struct tec_flight *f, const struct tec_waiting *w)
{
    json_t *nodes = json_array();
    for (int i = 0; i < f->n_nodes; i++)
        json_array_append_new(nodes, row_json(tec_flight_node(f, i), w->nodes[i]));
    return json_pack("{s:f, s:I, s:o, s:o}", "span_us", (double)w->span_ns / 1e3, "frames",
                     (json_int_t)w->frames, "machine", row_json(NULL, w->all), "nodes", nodes);
}
