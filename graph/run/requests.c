/* requests.c - language requests: born, stored, advanced, finished, and the text they leave. */
#include "graph/run/state.h"

#include <stdio.h>
#include <string.h>

static int free_seat(const struct tec_loop *l)
{
    for (int i = 0; i < l->o.plan->spec.seats; i++)
        if (!l->seat_taken[i])
            return i;
    return -1;
}

static bool text_in_use(const struct tec_loop *l, int text)
{
    for (int i = 0; i < l->n_live; i++)
        if (l->requests[i].text == text)
            return true;
    return false;
}

/* Of the records that no live request writes to, the one that ended first: a text stays readable
 * until seats + 1 others have ended after it. There are more records than live requests. */
static int take_text(const struct tec_loop *l)
{
    int oldest = -1;
    for (int i = 0; i < l->n_texts; i++)
        if (!text_in_use(l, i) && (oldest < 0 || l->text_ended[i] < l->text_ended[oldest]))
            oldest = i;
    return oldest;
}

static void give_text(struct tec_loop *l, struct tec_request *r)
{
    r->text = take_text(l);
    struct tec_utterance *t = &l->texts[r->text];
    atomic_store_explicit(&t->count, 0, memory_order_relaxed);
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    t->id = r->id;
    t->decoder = r->decoder;
    t->frame = l->frame;
    t->reason = "";
    t->finished_ns = -1;
}

static struct tec_request_view view_of(const struct tec_loop *l, const struct tec_request *r)
{
    int64_t now = tec_loop_now(l);
    bool limited = r->deadline_ns != INT64_MAX;
    return (struct tec_request_view){
        .id = r->id,
        .node = l->o.decoders[r->decoder].node,
        .left = r->max - r->made,
        .done = r->made,
        .max = r->max,
        .age_frames = (int)(l->frame - r->born_frame),
        .born_us = r->born_ns / 1000,
        .deadline_us = limited ? r->deadline_ns / 1000 : INT64_MAX,
        .slack_us = limited ? (r->deadline_ns - now) / 1000 : INT64_MAX,
        .prio = r->prio,
        .kv_bytes = (int64_t)(r->row.prefix + r->made) * l->o.plan->space.shape.layers * 2 *
                    l->o.plan->space.shape.kv_heads * l->o.plan->space.shape.head_dim *
                    (l->o.plan->space.shape.bf16 ? 2 : 4),
        .shared = r->shared,
        .fresh = !r->stored};
}

/* All seats taken: the planner may name a row of the view to give up. */
static void make_room(struct tec_loop *l)
{
    int victim = l->o.planner.evict ? l->o.planner.evict(l->o.planner.self, &l->view, 1) : -1;
    if (victim < 0 || victim >= l->n_live || victim >= l->view.n_req ||
        l->requests[victim].id != l->view.req[victim].id)
        return;
    tec_requests_finish(l, victim, "evicted", 2);
    l->record.shed++;
    tec_loop_view(l);
}

void tec_requests_spawn(struct tec_loop *l, int decoder)
{
    const struct tec_decoder *d = &l->o.decoders[decoder];
    int64_t now = tec_loop_now(l);
    if (l->n_live == l->o.plan->spec.seats)
        make_room(l);
    struct tec_request r = {.id = l->next_id++,
                            .decoder = decoder,
                            .seat = free_seat(l),
                            .max = d->max_tokens,
                            .born_ns = now,
                            .deadline_ns = d->deadline_us ? now + d->deadline_us * 1000 : INT64_MAX,
                            .born_frame = l->frame,
                            .shared = true,
                            .row = {.region = -1}};
    struct tec_request_view v = view_of(l, &r);
    char reason[32] = "";
    bool yes = r.seat >= 0;
    if (yes && l->o.planner.admit)
        yes = l->o.planner.admit(l->o.planner.self, &l->view, &v, reason);
    if (!yes) {
        l->record.refused++;
        return;
    }
    l->seat_taken[r.seat] = true;
    give_text(l, &r);
    l->requests[l->n_live++] = r;
}

void tec_requests_store(struct tec_loop *l, struct tec_request *r, int region)
{
    tec_row_start(&r->row, l->o.plan, region, l->prefix_rows, l->last_token, r->seat, r->max,
                  l->o.plan->model->text.eos);
    r->stored = true;
}

void tec_requests_update(struct tec_loop *l, struct tec_request *r, const int *tokens, int n)
{
    struct tec_utterance *t = &l->texts[r->text];
    memcpy(t->tokens + r->made, tokens, (size_t)n * sizeof *tokens);
    r->made += n;
    atomic_store_explicit(&t->count, r->made, memory_order_release);
    l->record.tokens += n;
}

void tec_requests_finish(struct tec_loop *l, int index, const char *reason, int how)
{
    struct tec_request *r = &l->requests[index];
    struct tec_utterance *t = &l->texts[r->text];
    if (r->stored)
        tec_kv_pool_drop(&l->o.plan->prefixes, r->row.region);
    l->seat_taken[r->seat] = false;
    t->reason = reason;
    t->finished_ns = tec_loop_now(l);
    l->text_ended[r->text] = ++l->n_ended;
    atomic_store_explicit(&t->done, how, memory_order_release);
    memmove(r, r + 1, (size_t)(l->n_live - index - 1) * sizeof *r);
    l->n_live--;
}

void tec_requests_expire(struct tec_loop *l)
{
    int64_t now = tec_loop_now(l);
    for (int i = l->n_live - 1; i >= 0; i--)
        if (l->requests[i].deadline_ns < now) {
            tec_requests_finish(l, i, "deadline", 2);
            l->record.shed++;
        }
}

void tec_requests_sweep(struct tec_loop *l)
{
    int eos = l->o.plan->model->text.eos;
    for (int i = l->n_live - 1; i >= 0; i--) {
        const struct tec_request *r = &l->requests[i];
        if (!r->stored || !r->row.done)
            continue;
        bool ended = r->made > 0 && l->texts[r->text].tokens[r->made - 1] == eos;
        tec_requests_finish(l, i, ended ? "eos" : "length", 1);
    }
}

/* Filled here because it is the requests' own view. */
void tec_loop_view(struct tec_loop *l)
{
    const struct tec_plan *p = l->o.plan;
    for (int i = 0; i < l->n_live; i++)
        l->view_rows[i] = view_of(l, &l->requests[i]);
    l->kv[0].used = (int64_t)p->prefixes.in_use * p->prefixes.tokens;
    l->kv[1].used = 0;
    for (int i = 0; i < l->n_live; i++)
        l->kv[1].used += l->requests[i].made;
    l->view.n_req = l->n_live;
    l->view.index = l->frame;
    l->view.now_us = tec_loop_now(l) / 1000;
    l->view.deadline_us = l->record.deadline_ns >= 0 ? l->record.deadline_ns / 1000 : INT64_MAX;
    l->view.budget_us = l->view.deadline_us - l->view.now_us;
    l->view.last = l->result;
}
