/* simulated.c - what launches take by a table of costs, and what a simulated robot observes. */
#include "tools/simulate/simulated.h"

#include "graph/load/pipeline_texts.h"
#include "graph/run/session/session_texts.h"

#include <math.h>
#include <string.h>

/* The node of a launch; `at`: which of the chain's action nodes. */
static int node_of(const struct tec_topology *t, int model, int mark, int at)
{
    static const char *const kinds[] = {[TEC_MARK_PREFILL] = "prefill",
                                        [TEC_MARK_ACTION] = "action",
                                        [TEC_MARK_DECODE] = "decode",
                                        [TEC_MARK_SCORE] = "score"};
    if (mark == TEC_MARK_PACKED || mark == TEC_MARK_SHIFT)
        return 0;
    for (int i = 0; i < t->n_nodes; i++)
        if (t->nodes[i].model == model && strcmp(t->nodes[i].kind, kinds[mark]) == 0 &&
            (mark != TEC_MARK_DECODE || !t->nodes[i].ring) &&
            (mark != TEC_MARK_ACTION || at-- == 0))
            return i;
    return 0;
}

/* The time to copy tokens once, which reads and writes their bytes, in whole microseconds. */
static int64_t copied(const struct tec_engine *e, const struct tec_cost_table *costs, int tokens)
{
    double bytes = (double)tokens * (double)tec_kv_token_bytes(&e->plan->space.shape);
    return llround(ceil(2.0 * bytes / costs->copy_bytes_per_us - 1e-9)) * 1000;
}

int64_t tec_simulated_took(const struct tec_engine *e, const struct tec_cost_table *costs,
                           int model, int mark, int rows, int k, const char **name)
{
    const struct tec_topology *t = &e->topology;
    const struct tec_plan_spec *spec = &e->chains[model].plan->spec;
    int at = node_of(t, model, mark, rows), slices = t->nodes[at].slices;
    const struct tec_loop_chain *c = &tec_loop_settings(e->loop)->chains[model];
    bool forward = mark == TEC_MARK_PACKED, alone = forward && rows < 0;
    *name = alone ? c->alone : forward ? c->packed : t->nodes[at].name;
    int batch = alone                     ? tec_launch_ring_rows_of(spec, rows)
                : mark != TEC_MARK_DECODE ? rows
                                          : tec_snap_up(spec->batches, spec->n_batches, rows);
    if (mark == TEC_MARK_SHIFT) {
        *name = "";
        return copied(e, costs, rows);
    }
    int observations = mark == TEC_MARK_PREFILL ? rows : mark == TEC_MARK_ACTION ? k : 0;
    if (mark < TEC_MARK_DECODE || mark == TEC_MARK_SCORE)
        batch = observations > 1 ? observations : 0;
    const struct tec_cost_row *row = mark == TEC_MARK_PREFILL && !batch
                                         ? tec_costs_prompt_row(costs, t, model, *name, 0)
                                         : tec_costs_table_row(costs, *name, batch);
    *name = row && !forward ? row->node : *name; /* of a recall the memory's */
    double us = tec_costs_row_us(row, 0.5) * (mark == TEC_MARK_DECODE ? k : 1);
    if (mark == TEC_MARK_PREFILL && slices)
        us *= tec_costs_row_share(row, slices);
    return llround(us * 1000.0);
}

/* Check that the costs have rows for a ring's launches and copies, and for the prefill of a request
 * that shares nothing. */
static enum tec_status check_ring_costs(const struct tec_loop_chain *c, const char *prefill,
                                        const struct tec_cost_table *costs, struct tec_error *err)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    const char *const names[] = {c->packed, c->alone};
    for (int i = s->apart; i < (s->apart || s->stages > 1 ? 2 : 1); i++)
        if (!tec_costs_table_row(costs, names[i], 1))
            return tec_fail(err, TEC_MALFORMED, "the costs have no row '%s', a launch of the ring",
                            names[i]);
    if (s->request_slots && !tec_costs_table_row(costs, prefill, 1))
        return tec_fail(err, TEC_MALFORMED, "the costs have no row for node '%s'", prefill);
    if ((s->shifts || s->gathers) && !(costs->copy_bytes_per_us > 0.0))
        return tec_fail(err, TEC_MALFORMED,
                        "the ring copies, and the costs do not say copy_bytes_per_us");
    return TEC_OK;
}

enum tec_status tec_simulated_check(const struct tec_engine *e, const struct tec_cost_table *costs,
                                    struct tec_error *err)
{
    const struct tec_topology *t = &e->topology;
    const struct tec_loop_options *loop = tec_loop_settings(e->loop);
    for (int i = 0; i < loop->n_chains; i++)
        if (loop->chains[i].ring)
            TEC_TRY(check_ring_costs(&loop->chains[i], t->nodes[loop->chains[i].prefill_node].name,
                                     costs, err));
    for (int i = 0; i < t->n_nodes; i++)
        if (tec_node_timed(t->nodes[i].kind) && !t->nodes[i].ring &&
            !tec_costs_table_row(costs, t->nodes[i].name, 1))
            return tec_fail(err, TEC_MALFORMED, "the costs have no row for node '%s'",
                            t->nodes[i].name);
    return TEC_OK;
}

/* The newest version of a stream as a chain reads it. False: there is none yet. */
static bool read_stream(const struct tec_engine *e, int stream, int session,
                        struct tec_text_read *read, uint64_t *key)
{
    const struct tec_pipeline *p = e->options.pipeline;
    const struct tec_text_version *v = tec_text_edges_newest(e->edges, stream, session, 0);
    *read = (struct tec_text_read){.stream = 1 + stream,
                                   .request = v ? v->request : -1,
                                   .frame = v ? v->frame : 0,
                                   .born_ns = v ? v->born_ns : 0};
    *key = v ? (uint64_t)v->number : 0;
    return v || p->inputs[p->n_inputs + stream].initial;
}

void tec_simulated_texts(const struct tec_engine *e, int session, uint64_t instruction,
                         struct tec_frame_input *input)
{
    const struct tec_pipeline *p = e->options.pipeline;
    for (int m = 0; m < e->n_chains; m++) {
        struct tec_chain_input *in = &input->chains[m];
        int at[TEC_MAX_TEXTS], n = tec_pipeline_texts(p, m, at), n_reads = 0;
        bool whole = true;
        in->keys[1] = 0; /* of a prompt that has no text */
        for (int i = 0; i < n; i++) {
            in->keys[1 + i] = instruction;
            if (e->edges && at[i] >= p->n_inputs)
                whole &= read_stream(e, at[i] - p->n_inputs, session, &in->reads[n_reads++],
                                     &in->keys[1 + i]);
        }
        tec_texts_key(in, n > 1 ? n : 1);
        if (n_reads && e->chains[m].plan->spec.secondary)
            in->prefix.n_text = whole ? e->chains[m].plan->spec.text_tokens : 0;
    }
}

enum tec_status tec_simulated_input(struct tec_frame_input *input, const struct tec_engine *e,
                                    struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_pipeline *p = e->options.pipeline;
    for (int i = 0; i < p->n_nodes; i++) {
        int at = tec_pipeline_prompt_of(p, &p->nodes[i]);
        int n = at < 0 ? 0 : p->inputs[p->nodes[i].prompt.index].max_tokens;
        if (at < 0 || input->prompts[at].ids)
            continue;
        input->prompts[at] = (struct tec_request_prompt){TEC_NEW(arena, (size_t)n, int), n};
        if (!input->prompts[at].ids)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for an observation");
    }
    for (int i = 0; i < e->n_chains; i++) {
        const struct tec_plan_spec *of = &e->chains[i].plan->spec;
        input->chains[i].prefix =
            (struct tec_prefix_input){.n_pictures = of->pictures,
                                      .n_text = of->text_tokens,
                                      .ids = TEC_NEW(arena, (size_t)of->text_tokens, int)};
        if (!input->chains[i].prefix.ids)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for an observation");
    }
    return TEC_OK;
}
