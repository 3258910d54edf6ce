/* figures.c - counts what the frame loop tells, for monitoring. */
#include "graph/live/figures.h"

#include "graph/run/loop/loop.h"

const double tec_figure_buckets[TEC_FIGURE_BUCKET_COUNT] = TEC_FIGURE_BUCKETS;

/* The frame thread alone writes: no number needs to be locked for it. */
static void add(_Atomic int64_t *number, int64_t n)
{
    int64_t now = atomic_load_explicit(number, memory_order_relaxed);
    atomic_store_explicit(number, now + n, memory_order_relaxed);
}

static void add_time(struct tec_figure_times *times, int64_t ns)
{
    int at = 0;
    while (at < TEC_FIGURE_BUCKET_COUNT && (double)ns > tec_figure_buckets[at] * 1e9)
        at++;
    add(&times->counts[at], 1);
    add(&times->sum_ns, ns);
}

static void end_launch(struct tec_figures *f, const struct tec_event *e)
{
    if (e->node >= 0 && e->node < TEC_MAX_NODES)
        add_time(&f->nodes[e->node], e->t_ns - e->since_ns);
}

static void start_launch(struct tec_figures *f, const struct tec_event *e)
{
    if (e->requests)
        atomic_store_explicit(&f->batch, e->rows, memory_order_relaxed);
}

static void release(struct tec_figures *f, const struct tec_event *e)
{
    add(&f->released, 1);
    add(&f->late, e->flag);
    add_time(&f->age, e->t_ns - e->since_ns);
}

static void leave_out(struct tec_figures *f, const struct tec_event *e)
{
    (void)e;
    add(&f->left_out, 1);
}

static void keep_prompt(struct tec_figures *f, const struct tec_event *e)
{
    (void)e;
    /* Whoever sees the count may read what was written of the text (tec_runtime_unread). */
    atomic_fetch_add_explicit(&f->unread, 1, memory_order_release);
}

static void take_input(struct tec_figures *f, const struct tec_event *e)
{
    add_time(&f->wait, e->tick->late_ns);
}

static void end_frame(struct tec_figures *f, const struct tec_event *e)
{
    const struct tec_frame_record *r = e->record;
    add(&f->frames, 1);
    add(&f->snapped, r->snapped);
    if (r->missed)
        add(&f->missed[r->cause], 1);
    atomic_store_explicit(&f->in_flight, r->in_flight, memory_order_relaxed);
    add_time(&f->frame, r->end_ns - r->start_ns);
    add_time(&f->policy, r->planner_ns);
    add_time(&f->host, r->host_ns);
}

static void count_tokens(struct tec_figures *f, const struct tec_event *e)
{
    add(&f->tokens, e->tokens);
}

static void count_arrival(struct tec_figures *f, const struct tec_event *e)
{
    (void)e;
    add(&f->arrived, 1);
}

static void count_admission(struct tec_figures *f, const struct tec_event *e)
{
    (void)e;
    add(&f->admitted, 1);
}

static void count_refusal(struct tec_figures *f, const struct tec_event *e)
{
    (void)e;
    add(&f->refused, 1);
}

static void count_shed(struct tec_figures *f, const struct tec_event *e)
{
    (void)e;
    add(&f->shed, 1);
}

static void count_finish(struct tec_figures *f, const struct tec_event *e)
{
    (void)e;
    add(&f->finished, 1);
}

static void count_cancel(struct tec_figures *f, const struct tec_event *e)
{
    add(&f->cancelled, e->flag);
}

static void (*const counts[TEC_EVENTS])(struct tec_figures *f, const struct tec_event *e) = {
    [TEC_EVENT_CANCEL] = count_cancel,  [TEC_EVENT_SHED] = count_shed,
    [TEC_EVENT_ARRIVE] = count_arrival, [TEC_EVENT_ADMIT] = count_admission,
    [TEC_EVENT_REFUSE] = count_refusal, [TEC_EVENT_INPUT] = take_input,
    [TEC_EVENT_START] = start_launch,   [TEC_EVENT_END] = end_launch,
    [TEC_EVENT_RELEASE] = release,      [TEC_EVENT_TOKENS] = count_tokens,
    [TEC_EVENT_FINISH] = count_finish,  [TEC_EVENT_FRAME_END] = end_frame,
    [TEC_EVENT_UNREAD] = keep_prompt,   [TEC_EVENT_LEFT_OUT] = leave_out};

void tec_figures_count(struct tec_figures *f, const struct tec_event *event)
{
    if (counts[event->kind])
        counts[event->kind](f, event);
}
