/* frame.c - one frame of an experiment. */
#include "tests/experiments/oxygen/frame.h"

#include <string.h>

static bool is_kind(const struct tec_topology *t, const char *node, const char *kind)
{
    for (int n = 0; n < t->n_nodes; n++)
        if (strcmp(t->nodes[n].name, node) == 0)
            return strcmp(t->nodes[n].kind, kind) == 0;
    return false;
}

static void add_record(struct tec_oxygen_block *b, struct tec_oxygen_frame *f,
                       const struct tec_frame_record *r)
{
    const struct tec_topology *t = &b->engine->base.opened.engine->topology;
    f->ns += r->end_ns - r->start_ns;
    f->host_ns += r->host_ns;
    f->tokens += r->tokens;
    for (int i = 0; i < r->n_launches; i++) {
        const struct tec_launch_record *l = &r->launches[i];
        int64_t ns = l->end_ns - l->start_ns;
        if (is_kind(t, l->node, "prefill")) {
            *(l->request >= 0 ? &f->private_ns : &f->prefill_ns) += ns;
        } else if (is_kind(t, l->node, "action")) {
            f->act_ns += ns;
        } else {
            f->decode_ns += ns;
            f->rows += l->rows;
            f->launches++;
        }
    }
    b->point->refused += r->refused;
    b->point->shed += r->shed;
}

/* When the last action of a session left, from the frame's beginning on. */
static void note_release(struct tec_oxygen_frame *f, const struct tec_frame_record *r)
{
    int64_t at = r->actions[0].release_ns;
    if (at >= 0 && f->ns + at - r->start_ns > f->action_ns)
        f->action_ns = f->ns + at - r->start_ns;
}

static void finish(struct tec_oxygen_block *b, int at, int frame, int64_t now)
{
    struct tec_oxygen_point *p = b->point;
    const struct tec_oxygen_open_request *o = &b->open[at];
    if (p->n_requests < p->request_room)
        p->request[p->n_requests++] =
            (struct tec_oxygen_request){o->id, o->arrival, frame, o->born_ns, now};
    b->open[at] = b->open[--b->n_open];
}

static void note_request(struct tec_oxygen_block *b, const struct tec_ask *ask, int frame,
                         int64_t born_ns)
{
    if (!ask->refused && b->n_open < TEC_OXYGEN_OPEN_REQUESTS)
        b->open[b->n_open++] = (struct tec_oxygen_open_request){ask->id, frame, born_ns};
}

/* Who has ended. Texts of an earlier block ended before anything of this one was asked for. */
static void follow_requests(struct tec_oxygen_block *b, int frame)
{
    const struct tec_loop *loop = b->engine->base.opened.engine->loop;
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        for (int o = 0; atomic_load(&u->done) && o < b->n_open; o++)
            if (b->open[o].id == u->id && u->finished_ns >= b->open[o].born_ns) {
                finish(b, o, frame, u->finished_ns);
                break;
            }
    }
}

/* Each arrival a frame of the loop. */
static void run_apart(struct tec_oxygen_block *b, int index, const struct tec_arrival *came,
                      struct tec_oxygen_frame *f)
{
    struct tec_loop *loop = b->engine->base.opened.engine->loop;
    for (int i = 0; i < f->n_new || i == 0; i++) {
        struct tec_frame_input input = b->engine->input[(index + i) % TEC_BENCH_INPUTS];
        struct tec_ask ask = {.max_tokens = f->n_new ? came[i].max_tokens : 0};
        bool last = i + 1 >= f->n_new;
        tec_loop_set_planner(loop, last ? &b->planner : &tec_default_planner);
        const struct tec_frame_record *record =
            tec_suite_ask(loop, f->n_new ? &input : NULL, f->n_new ? &ask : NULL);
        note_release(f, record);
        add_record(b, f, record);
        if (f->n_new)
            note_request(b, &ask, index, record->start_ns);
        follow_requests(b, index);
    }
}

/* Arrivals that one frame of the loop takes: each is a session's of its own, in turn, so that they
 * all have as many slots. */
static void run_sessions(struct tec_oxygen_block *b, int index, const struct tec_arrival *came,
                         int n, struct tec_oxygen_frame *f)
{
    const struct tec_clock clock = {NULL};
    struct tec_loop *loop = b->engine->base.opened.engine->loop;
    struct tec_frame_input inputs[TEC_OXYGEN_SESSIONS];
    const struct tec_frame_input *given[TEC_OXYGEN_SESSIONS];
    struct tec_tick ticks[TEC_OXYGEN_SESSIONS];
    struct tec_ask asks[TEC_OXYGEN_SESSIONS];
    int64_t now = tec_clock_now(&clock);
    for (int i = 0; i < n; i++) {
        inputs[i] = b->engine->input[(index + i) % TEC_BENCH_INPUTS];
        inputs[i].captured_ns = now;
        given[i] = &inputs[i];
        asks[i] = (struct tec_ask){.max_tokens = came[i].max_tokens};
        ticks[i] = tec_loop_tick(loop, now, 0);
        ticks[i].session = b->next_session++ % TEC_OXYGEN_SESSIONS;
        ticks[i].asks = &asks[i];
        ticks[i].n_asks = 1;
    }
    tec_loop_run_sessions(loop, given, ticks, n);
    for (int i = 0; i < n; i++)
        note_release(f, tec_loop_record(loop, i));
    add_record(b, f, tec_loop_record(loop, 0));
    for (int i = 0; i < n; i++)
        note_request(b, &asks[i], index, now);
    follow_requests(b, index);
}

static void run_together(struct tec_oxygen_block *b, int index, const struct tec_arrival *came,
                         struct tec_oxygen_frame *f)
{
    struct tec_loop *loop = b->engine->base.opened.engine->loop;
    for (int at = 0; at < f->n_new; at += TEC_OXYGEN_SESSIONS) {
        int left = f->n_new - at, n = left < TEC_OXYGEN_SESSIONS ? left : TEC_OXYGEN_SESSIONS;
        tec_loop_set_planner(loop, n == left ? &b->planner : &tec_default_planner);
        run_sessions(b, index, came + at, n, f);
    }
}

void tec_oxygen_run_frame(struct tec_oxygen_block *b, int index, bool warmup)
{
    struct tec_oxygen_point *p = b->point;
    struct tec_arrival came[TEC_MAX_ARRIVALS];
    struct tec_oxygen_frame f = {.warmup = warmup, .action_ns = -1};
    f.n_resumed = tec_loop_live(b->engine->base.opened.engine->loop);
    f.n_new = tec_arrivals_at(&b->arrivals, index, came);
    if (p->together && f.n_new)
        run_together(b, index, came, &f);
    else
        run_apart(b, index, came, &f);
    if (p->n < p->room)
        p->frame[p->n++] = f;
}
