/* loop.c - runs one frame: requests in and out, the decision, the hard nodes, then language.
 *
 * Frame thread; after create nothing allocates, locks or blocks. On the lanes that they share, hard
 * nodes run before language and their chunk leaves as soon as it is there, so language costs time
 * only after the actions. The frame holds a reference to its prefix region until its end, so a
 * request that pins it never finds it overwritten. What runs is in schedule.c, the rest of a frame
 * in decide.c, requests.c and account.c. */
#include "graph/run/loop/loop.h"
#include "graph/run/loop/account.h"
#include "graph/run/loop/acting.h"
#include "graph/run/loop/decide.h"
#include "graph/run/loop/kept_chunks.h"
#include "graph/run/loop/loop_chains.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/pending_prefill.h"
#include "graph/run/loop/prefix.h"
#include "graph/run/loop/rank.h"
#include "graph/run/loop/requests.h"
#include "graph/run/loop/ring.h"
#include "graph/run/loop/ring_facts.h"
#include "graph/run/loop/schedule.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/text_keys.h"
#include "graph/run/loop/texts.h"
#include "graph/run/loop/view.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The row of the first action is there in a pipeline without actions, too. */
static void open_actions(struct tec_loop *l, const struct tec_tick *tick)
{
    l->record.n_actions = l->o.n_actions;
    for (int a = 0; a == 0 || a < l->o.n_actions; a++) {
        int64_t after = l->o.actions[a].deadline_ns;
        int64_t due = a == 0 ? tick->deadline_ns : after ? tick->tick_ns + after : -1;
        l->record.actions[a] = (struct tec_action_record){
            .release_ns = -1, .deadline_ns = due, .seen = -1, .captured_ns = -1, .age_us = -1};
    }
}

/* What is a session's own. */
static void open_session(struct tec_loop *l)
{
    struct tec_frame_record *r = &l->record;
    r->frame = l->tick->frame;
    r->tick_ns = l->tick->tick_ns;
    r->session = l->tick->session;
    r->place = l->turn;
    open_actions(l, l->tick);
    r->overrun_us = r->text_late_ns = 0;
    r->missed = r->filling = false;
    r->cause = TEC_CAUSE_NONE;
    r->to_come = r->n_reads = 0;
    for (int i = 0; i < l->o.n_chains; i++)
        if (!l->chains[i].keeps)
            l->chains[i].prefix.region = -1;
    tec_loop_tell(l, (struct tec_event){
                         .kind = TEC_EVENT_FRAME, .node = -1, .request = -1, .t_ns = r->start_ns});
    for (int i = 0; i < l->o.n_chains && l->input; i++) /* nothing acts on an earlier episode */
        if (l->chains[i].keeps && l->chains[i].prefix.episode != l->input->episode)
            tec_loop_drop_prefix(l, &l->chains[i]);
    if (l->input)
        tec_rings_begin(l, l->input->episode);
}

static void open_frame(struct tec_loop *l)
{
    struct tec_frame_record *r = &l->record;
    l->n_opened++;
    r->start_ns = tec_loop_now(l);
    r->end_ns = -1;
    r->n_sessions = l->n_own;
    r->failed = r->cut = false;
    r->tokens = r->rows = r->snapped = r->refused = r->shed = r->n_launches = 0;
    r->drafted = r->kept = r->depth = 0;
    for (int i = 0; i < l->o.n_chains; i++)
        l->chains[i].parted = l->chains[i].said = l->chains[i].behind = false;
    for (int i = 0; i < l->n_rings * l->sessions; i++)
        l->rings[i].ran = false;
    l->n_jobs = l->n_order = l->lane = 0;
    l->pending_ns = 0;
    tec_loop_account_open(l);
    for (int i = 0; i < l->n_own; i++) {
        tec_loop_turn(l, i);
        open_session(l);
    }
}

static void refuse_asks(struct tec_tick *tick)
{
    for (int i = 0; i < tick->n_asks; i++) {
        tick->asks[i].id = -1;
        tick->asks[i].refused = true;
        snprintf(tick->asks[i].reason, sizeof tick->asks[i].reason, "no observation");
    }
}

static unsigned on_change(const struct tec_loop *l, int chain, unsigned news)
{
    unsigned spawn = 0;
    for (int d = 0; d < l->o.n_decoders; d++) {
        const struct tec_decoder *o = &l->o.decoders[d];
        if (o->on_change && o->chain == chain && (news >> o->on_text & 1U))
            spawn |= 1U << d;
    }
    return spawn;
}

/* A prefill that reads a stream that has no text yet does not start. */
static bool waits_for_text(const struct tec_loop *l, int chain)
{
    const struct tec_chain_input *in = &l->input->chains[chain];
    return in->reads[0].stream && in->prefix.n_text == 0;
}

/* Apply cancellations and deadlines, then admit this tick's new requests. */
static void change_requests(struct tec_loop *l, const struct tec_frame_input *input,
                            struct tec_tick *tick)
{
    for (int i = 0; i < tick->n_cancels; i++) {
        bool live = tec_requests_cancel(l, tick->cancels[i]);
        if (tick->cancelled)
            tick->cancelled[i] = live;
    }
    tec_requests_expire(l);
    tec_requests_sweep(l);
    unsigned spawn = tick->spawn;
    int session = tick->session >= 0 && tick->session < TEC_MAX_TICKING ? tick->session : 0;
    for (int m = 0; input && m < l->o.n_chains; m++) {
        struct tec_ring_state *ring = l->chains[m].ring;
        unsigned news =
            tec_loop_news(&l->chains[m].given[session], &input->chains[m], input->episode);
        if ((news & 1U) && ring && ring->flushes && !l->chains[m].late)
            tec_ring_flush(l, tec_ring_own(l, ring));
        spawn |= on_change(l, m, news) & ~tick->mute;
    }
    if (!input || !l->request_slots) {
        refuse_asks(tick);
        return;
    }
    tec_pending_prefills_begin(l);
    for (int d = 0; d < l->o.n_decoders; d++)
        if ((spawn >> d & 1U) && !waits_for_text(l, l->o.decoders[d].chain))
            tec_requests_spawn(l, d, NULL);
    for (int i = 0; i < tick->n_asks; i++) {
        tick->asks[i].refused = false;
        tick->asks[i].reason[0] = '\0';
        tec_requests_spawn(l, tick->asks[i].decoder, &tick->asks[i]);
    }
}

static void await_input(struct tec_loop *l, const struct tec_tick *tick)
{
    if (tick->late_ns <= 0)
        return;
    const struct tec_executor *e = l->chains->executor;
    if (e->await) {
        int64_t before = tec_loop_now(l);
        e->await(e->self, tick->tick_ns + tick->late_ns);
        l->pending_ns += tec_loop_now(l) - before;
    }
    tec_loop_tell(l,
                  (struct tec_event){
                      .kind = TEC_EVENT_INPUT, .node = -1, .request = -1, .t_ns = tec_loop_now(l)});
}

/* Counts the chunks that each session's hard nodes have to make; those that the decision leaves out
 * are told at once. */
static void open_hard(struct tec_loop *l)
{
    for (int s = 0; s < l->n_own; s++) {
        tec_loop_turn(l, s);
        l->actions_due = 0;
        for (int i = 0; l->input && i < l->n_hard; i++)
            if (!l->chains[l->hard[i]].ring)
                l->actions_due += tec_loop_actions_due(l, &l->chains[l->hard[i]]);
        if (l->input)
            tec_loop_leave_actions_out(l);
    }
}

static void drop_prefixes(struct tec_loop *l)
{
    for (int s = 0; s < l->n_own; s++) {
        tec_loop_turn(l, s);
        for (int i = 0; i < l->o.n_chains; i++)
            if (!l->chains[i].keeps || l->record.failed)
                tec_loop_drop_prefix(l, &l->chains[i]);
    }
    tec_loop_turn(l, 0);
}

/* Run the frame's hard nodes, then language; then the frame's own prefixes end. */
static void run_nodes(struct tec_loop *l)
{
    if (tec_loop_failed(l))
        return;
    open_hard(l);
    tec_schedule_run(l);
    drop_prefixes(l);
}

/* The frame is over: until the next one, of any loop, there is time for other work. */
static void idle(const struct tec_loop *l)
{
    int64_t next = tec_loop_others_next(l, tec_loop_now(l));
    if (tec_loop_yields(l))
        return;
    for (int i = 0; i < l->n_own; i++)
        next = l->own[i].tick->next_ns < next ? l->own[i].tick->next_ns : next;
    for (int i = 0; !l->record.failed && i < l->o.n_chains; i++)
        if (l->chains[i].executor->idle)
            l->chains[i].executor->idle(l->chains[i].executor->memory, next);
}

/* What prefills read of streams, and each session's requests. */
static void begin_sessions(struct tec_loop *l)
{
    for (int s = 0; s < l->n_own; s++) {
        tec_loop_turn(l, s);
        tec_loop_tell_unread(l);
        for (const struct tec_chain *c = l->chains; c < l->chains + l->o.n_chains; c++)
            if (c->in_frames && !c->late && tec_loop_prefills(l, c))
                tec_loop_read_text(l, c);
    }
    int64_t before = tec_loop_now(l);
    for (int s = 0; s < l->n_own; s++) {
        tec_loop_turn(l, s);
        change_requests(l, l->input, l->tick);
    }
    l->record.planner_ns = tec_loop_now(l) - before;
    for (int s = 0; s < l->n_own; s++) {
        tec_loop_turn(l, s);
        await_input(l, l->tick);
    }
    tec_loop_turn(l, 0);
}

/* Bytes of a record up to its last launch: most of it is room for launches. */
static size_t used_of(const struct tec_frame_record *r)
{
    return offsetof(struct tec_frame_record, launches) +
           (size_t)r->n_launches * sizeof *r->launches;
}

static void end_sessions(struct tec_loop *l)
{
    for (int s = 0; s < l->n_own; s++) {
        tec_loop_turn(l, s);
        tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_FRAME_END,
                                            .node = -1,
                                            .request = -1,
                                            .t_ns = l->record.end_ns,
                                            .since_ns = l->record.start_ns,
                                            .record = &l->record});
        if (l->n_own > 1)
            memcpy(&l->own[s].record, &l->record, used_of(&l->record));
    }
    tec_loop_turn(l, 0);
}

void tec_loop_run_sessions(struct tec_loop *l, const struct tec_frame_input *const *inputs,
                           struct tec_tick *ticks, int n)
{
    l->n_own = n;
    l->turn = 0;
    for (int i = 0; i < n; i++) {
        l->own[i].input = inputs[i];
        l->own[i].tick = &ticks[i];
    }
    l->input = inputs[0];
    l->tick = ticks;
    tec_loop_take_prefixes(l, ticks->session);
    open_frame(l);
    begin_sessions(l);
    int64_t before = tec_loop_now(l);
    tec_loop_view(l);
    tec_loop_plan(l);
    l->record.planner_ns += tec_loop_now(l) - before;
    run_nodes(l);
    tec_requests_sweep(l);
    l->record.end_ns = tec_loop_now(l);
    tec_loop_account(l);
    end_sessions(l);
    if (l->o.planner.observe)
        l->o.planner.observe(l->o.planner.self, &l->view, &l->result);
    idle(l);
    l->frame = ticks->frame + 1;
}

const struct tec_frame_record *tec_loop_run(struct tec_loop *l, const struct tec_frame_input *input,
                                            struct tec_tick *tick)
{
    tec_loop_run_sessions(l, &input, tick, 1);
    return &l->record;
}

const struct tec_frame_record *tec_loop_record(const struct tec_loop *l, int i)
{
    return l->n_own > 1 ? &l->own[i].record : &l->record;
}

unsigned tec_loop_spawns(const struct tec_loop *l, int64_t number)
{
    unsigned spawn = 0;
    for (int d = 0; d < l->o.n_decoders; d++)
        if (l->o.decoders[d].every && number % l->o.decoders[d].every == 0)
            spawn |= 1U << d;
    return spawn;
}

void tec_loop_count(const struct tec_loop *l, struct tec_counted *counted,
                    const struct tec_frame_input *input, struct tec_tick *tick)
{
    if (input && counted->episode != input->episode)
        *counted = (struct tec_counted){.episode = input->episode};
    counted->n += input != NULL;
    tick->counted = counted->n - 1;
    tick->spawn = input ? tec_loop_spawns(l, tick->counted) : 0;
}

const struct tec_loop_options *tec_loop_settings(const struct tec_loop *l)
{
    return &l->o;
}

struct tec_tick tec_loop_tick(const struct tec_loop *l, int64_t tick_ns, unsigned spawn)
{
    int64_t after = l->o.n_actions ? l->o.actions[0].deadline_ns : 0;
    spawn |= tec_loop_spawns(l, l->frame);
    return (struct tec_tick){.frame = l->frame,
                             .tick_ns = tick_ns,
                             .deadline_ns = after ? tick_ns + after : -1,
                             .next_ns = l->o.period_ns ? tick_ns + l->o.period_ns : INT64_MAX,
                             .counted = l->frame,
                             .spawn = spawn};
}

void tec_loop_restart(struct tec_loop *l)
{
    struct tec_tick none = {.next_ns = INT64_MAX};
    tec_loop_turn(l, 0);
    l->n_own = 1;
    l->tick = l->own->tick = &none;
    for (int i = 0; i < l->n_live; i++) {
        none.session = l->requests[i].session;
        tec_requests_end(l, &l->requests[i], "reset", 2, tec_loop_now(l));
    }
    tec_requests_sweep(l);
    for (none.session = 0; none.session < TEC_MAX_TICKING; none.session++)
        tec_pending_prefills_drop(l);
    tec_kept_chunks_reset(l);
    for (int s = 0; s < l->sessions; s++) {
        none.session = s;
        tec_loop_text_keys_reset(l);
        tec_loop_take_prefixes(l, s);
        for (int i = 0; i < l->o.n_chains; i++)
            if (l->chains[i].in_frames)
                tec_loop_drop_prefix(l, &l->chains[i]);
        tec_rings_empty(l, s);
    }
    l->tick = l->own->tick = NULL;
    l->n_recent = 0;
    l->frame = 0;
    l->next_id = 0;
    memset(l->next_of, 0, sizeof l->next_of);
    if (l->o.edges)
        tec_text_edges_restart(l->o.edges);
    for (int i = 0; i < l->o.n_chains; i++)
        memset(l->chains[i].given, 0, sizeof l->chains[i].given);
    memset(&l->result, 0, sizeof l->result);
}

static enum tec_status take_memory(struct tec_loop *l, struct tec_error *err)
{
    size_t request_slots = (size_t)l->request_slots + 1;
    l->requests = TEC_NEW(&l->arena, request_slots, struct tec_request);
    l->request_slot_taken = TEC_NEW(&l->arena, request_slots, bool);
    l->n_texts = 2 * (int)request_slots;
    l->texts = TEC_NEW(&l->arena, (size_t)l->n_texts, struct tec_utterance);
    l->view_rows = TEC_NEW(&l->arena, request_slots, struct tec_request_view);
    l->tokens = TEC_NEW(&l->arena, request_slots * ((size_t)l->max_k + 1), int);
    l->made = TEC_NEW(&l->arena, request_slots, int);
    l->text_ended = TEC_NEW(&l->arena, (size_t)l->n_texts, int64_t);
    l->prompts = TEC_NEW(&l->arena, request_slots * (size_t)l->prompt_tokens + 1, int);
    l->late_us = TEC_NEW(&l->arena, (size_t)l->o.topology->n_inputs + 1, int64_t);
    bool ok = l->prompts && l->late_us && l->requests && l->request_slot_taken && l->texts &&
              l->view_rows && l->tokens && l->made && l->text_ended;
    for (int i = 0; ok && i < l->n_texts; i++) {
        l->texts[i].id = -1;
        l->texts[i].tokens = TEC_NEW(&l->arena, (size_t)l->new_tokens + 1, int);
        ok = l->texts[i].tokens != NULL;
    }
    ok = ok && tec_rank_memory(l);
    return ok ? tec_schedule_create(l, err)
              : tec_fail(err, TEC_NO_MEMORY, "no memory for a frame loop");
}

enum tec_status tec_loop_create(struct tec_loop **out, const struct tec_loop_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_loop *l = tec_heap_get(heap, sizeof *l);
    if (!l)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a frame loop");
    l->o = *options;
    l->heap = heap;
    tec_arena_init(&l->arena, heap);
    enum tec_status status = tec_chains_init(l, err);
    if (status == TEC_OK)
        status = take_memory(l, err);
    if (status != TEC_OK) {
        tec_loop_destroy(l);
        return status;
    }
    tec_rings_open(l);
    tec_loop_prepare_view(l);
    *out = l;
    return TEC_OK;
}

void tec_loop_destroy(struct tec_loop *l)
{
    if (!l)
        return;
    tec_rings_close(l);
    tec_arena_finish(&l->arena);
    tec_heap_put(l->heap, l);
}

void tec_loop_set_planner(struct tec_loop *l, const struct tec_planner *planner)
{
    l->o.planner = *planner;
}

void tec_loop_set_table(struct tec_loop *l, const struct tec_cost_table *table)
{
    l->table = table;
}

int tec_loop_requests(const struct tec_loop *l)
{
    return l->n_live;
}

int tec_loop_live(const struct tec_loop *l)
{
    return l->n_live + tec_rings_in_flight(l);
}

int tec_loop_in_flight(const struct tec_loop *l, int session)
{
    return tec_rings_of_session(l, session);
}

void tec_loop_empty_rings(struct tec_loop *l, int session)
{
    tec_rings_empty(l, session);
}

int tec_loop_utterances(const struct tec_loop *l)
{
    return l->n_texts;
}

const struct tec_utterance *tec_loop_utterance(const struct tec_loop *l, int i)
{
    return &l->texts[i];
}

struct tec_costs *tec_loop_costs(struct tec_loop *l)
{
    return l->chains->costs;
}
