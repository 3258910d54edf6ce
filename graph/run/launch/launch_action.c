/* launch_action.c - fills what an action node reads of its frame table: the robot's state, the rows
 * of a chunk, what each of them sees, and the chunk that it is pulled to; fetches what it made.
 *
 * Runs on the thread of the launch; nothing here allocates or blocks. */
#include "graph/model/program.h"
#include "graph/run/launch/launch_rows.h"

#include <string.h>

/* The entries that each call of a program reads to their own place. */
static void scatter_state(const struct tec_model_program *p, const float *state, float *to)
{
    for (int i = 0; i < p->n_states; i++) {
        const struct tec_model_call *c = &p->calls[p->states[i]];
        memcpy(to + c->place, state + c->first, (size_t)c->cols * sizeof *to);
    }
}

void tec_fill_state(const struct tec_model *m, struct tec_prefix_table *t, int at,
                    const float *state)
{
    size_t bytes = (size_t)tec_model_state(m) * sizeof(float);
    float *row = t->state + (size_t)at * (size_t)t->ld;
    if (m->program && !m->program->alone) {
        memset(row, 0, (size_t)t->ld * sizeof *row);
        if (state)
            scatter_state(m->program, state, row);
        return;
    }
    if (state)
        memcpy(row, state, bytes);
    else
        memset(row, 0, bytes);
}

/* The keys that crossing layers read, in the order of the sequence, and the rows that read them: a
 * row of actions counts its positions from 0. */
static void fill_across(const struct tec_plan *plan, struct tec_prefix_table *t, int region,
                        int prefix, const struct tec_action_inputs *a)
{
    int n = prefix + a->text;
    if (!t->max_keys)
        return;
    for (int i = 0; i < n; i++)
        t->keys[i] = i < prefix ? plan->prefixes.first[region] + i : a->tail + i - prefix;
    *t->n_keys = n;
    t->across.spans[0] = (struct tec_span){0, n};
    for (int r = 0; r < t->across.max; r++) {
        t->across.pos[r] = r;
        t->across.visible[r] = n;
    }
}

/* Row r of what a chunk starts from, and what it is pulled to: without an earlier chunk no row is
 * pulled. */
static void fill_action(const struct tec_flow *f, struct tec_prefix_table *t, int r, size_t row,
                        const struct tec_action_inputs *a)
{
    size_t dim = (size_t)f->dim, from = (size_t)r * dim, to = row * (size_t)t->ld;
    memcpy(t->noise + to, a->noise + from, dim * sizeof *t->noise);
    if (!t->previous)
        return;
    t->pulls[row] = a->n_previous ? a->pulls[r] : 0.0F;
    memset(t->previous + to, 0, (size_t)t->ld * sizeof *t->previous);
    if (r < a->n_previous)
        memcpy(t->previous + to, a->previous + from, dim * sizeof *t->previous);
}

/* Queries see each other in their own slots, and in other attentions the prefix. */
static void fill_queries(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                         int prefix)
{
    struct tec_prefix_table *t = &part->prefix;
    int rows = t->suffix.max;
    t->suffix.seqs[0] = (struct tec_seq){0, 1};
    t->suffix.spans[0] = (struct tec_span){plan->scratch_slots[part->action], rows};
    t->asked.spans[0] = (struct tec_span){plan->prefixes.first[region], prefix};
    for (int r = 0; r < rows; r++) {
        t->suffix.visible[r] = rows;
        t->asked.visible[r] = prefix;
    }
}

/* n rows of a prefix from slot `first` on, which all rows of an action see. */
static void fill_seen(struct tec_rows *rows, int first, int n)
{
    rows->spans[0] = (struct tec_span){first, n};
    for (int r = 0; r < rows->max; r++)
        rows->visible[r] = n;
}

/* Rows of a flow's action see what a prefix has become: all of it, its pictures, or the rest. */
static void fill_flow(const struct tec_plan *plan, struct tec_prefix_table *t, struct tec_stand on)
{
    const bool *sees = plan->model->program->sees;
    int first = plan->prefixes.first[on.region], pictures = plan->pictures[on.region];
    if (sees[TEC_SEEN_ALL])
        fill_seen(&t->asked, first, on.rows);
    if (sees[TEC_SEEN_PICTURES])
        fill_seen(&t->pictured, first, pictures);
    if (sees[TEC_SEEN_REST])
        fill_seen(&t->rest, first + pictures, on.rows - pictures);
}

/* What each row of observation `at` sees: the prefix, and all rows of its own, or of these those
 * that are not behind it. */
static void fill_rows(const struct tec_plan *plan, struct tec_plan_part *part, int at,
                      struct tec_stand on, const struct tec_action_inputs *a)
{
    struct tec_prefix_table *t = &part->prefix;
    int lead = plan->model->program->lead;
    int rows = tec_suffix_rows(plan->model), front = tec_suffix_front(plan->model), spans = 0;
    int before = on.rows + a->text, slot = plan->scratch_slots[part->action] + at * rows;
    const struct tec_suffix_runs runs = tec_suffix_runs(t, plan->model->flow.horizon, at);
    struct tec_span *list = t->suffix.spans + t->suffix.seqs[at].first;
    list[spans++] = (struct tec_span){plan->prefixes.first[on.region], on.rows};
    if (a->text)
        list[spans++] = (struct tec_span){a->tail, a->text};
    list[spans++] = (struct tec_span){slot, rows};
    t->suffix.seqs[at].spans = spans;
    for (int r = 0; r < rows; r++) {
        int row = r < front ? at * front + r : front * t->most + tec_suffix_row(&runs, r - front);
        t->suffix.seq[row] = at;
        t->suffix.slot[row] = slot + r;
        t->suffix.pos[row] = before + r;
        t->suffix.visible[row] = r < lead ? before + r + 1 : before + rows;
    }
}

void tec_fill_given(struct tec_prefix_table *t, const struct tec_action_inputs *actions, int n)
{
    if (!t->n_fixed)
        return;
    *t->n_fixed = 0;
    for (int i = 0; i < n; i++) {
        *t->n_fixed += actions[i].n_fixed;
        if (t->given)
            t->given[i] = actions[i].n_fixed;
    }
}

void tec_fill_suffix(const struct tec_plan *plan, struct tec_plan_part *part, int at,
                     struct tec_stand on, const struct tec_action_inputs *a)
{
    struct tec_prefix_table *t = &part->prefix;
    const struct tec_flow *f = &plan->model->flow;
    const struct tec_suffix_runs runs = tec_suffix_runs(t, f->horizon, at);
    if (tec_model_asks(plan->model)) {
        fill_queries(plan, part, on.region, on.rows);
        return;
    }
    if (tec_model_denoises(plan->model))
        fill_flow(plan, t, on);
    else
        fill_rows(plan, part, at, on, a);
    fill_across(plan, t, on.region, on.rows, a);
    for (int r = 0; r < f->horizon; r++)
        fill_action(f, t, r, (size_t)tec_suffix_row(&runs, r), a);
    if (!tec_model_behind(plan->model))
        tec_fill_state(plan->model, t, at, a->state);
}

void tec_count_suffixes(const struct tec_model *m, struct tec_prefix_table *t, int n)
{
    int front = tec_suffix_front(m), own = tec_suffix_rows(m) - front;
    *t->n_horizon = n * m->flow.horizon;
    *t->n_states = n;
    *t->suffix.count = front * t->most + n * own;
    for (int i = n; i < t->most && front; i++) {
        struct tec_seq *seq = &t->suffix.seqs[i];
        t->suffix.spans[seq->first] = (struct tec_span){t->suffix.slot[i], 1};
        seq->spans = 1;
        t->suffix.pos[i] = 0;
        t->suffix.visible[i] = 1;
    }
}

void tec_launch_actions(struct tec_plan *plan, const struct tec_plan_part *part, float *chunk)
{
    tec_launch_actions_of(plan, part, 0, chunk);
}

/* n action rows of the device's table to the host's. */
static void fetch_actions(const struct tec_plan *plan, const struct tec_plan_part *part, int first,
                          int n)
{
    const struct tec_prefix_table *t = &part->prefix;
    size_t from = (size_t)first * (size_t)t->ld;
    if (n > 0)
        tec_device_download(plan->device, part->stream, t->noise + from,
                            part->prefix_device.noise + from,
                            (size_t)n * (size_t)t->ld * sizeof(float));
}

void tec_launch_actions_of(struct tec_plan *plan, const struct tec_plan_part *part, int at,
                           float *chunk)
{
    const struct tec_flow *f = &plan->model->flow;
    const struct tec_prefix_table *t = &part->prefix;
    if (part->choice.host) {
        tec_device_download(plan->device, part->stream, part->choice.host, part->choice.device,
                            part->choice.size);
        for (int i = 0; i < plan->model->head.rows; i++)
            chunk[i] = (float)part->decode.tokens[i];
        return;
    }
    const struct tec_suffix_runs runs = tec_suffix_runs(t, f->horizon, at);
    fetch_actions(plan, part, runs.first_given, runs.given);
    fetch_actions(plan, part, runs.first_other, f->horizon - runs.given);
    for (int i = 0; i < f->horizon; i++)
        memcpy(chunk + (size_t)i * (size_t)f->dim,
               t->noise + (size_t)tec_suffix_row(&runs, i) * (size_t)t->ld,
               (size_t)f->dim * sizeof(float));
}
