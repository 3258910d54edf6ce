/* launch_ring.c - launches the parts of a ring: a prefill packed with rows of the other sequences,
 * and moves.
 *
 * Frame thread; nothing allocates or blocks. A forward takes one sequence in and advances all
 * others by a token in the same matrix products, so the weights are read once for both. Sequences
 * differ by their spans only; with `gather` the spans point to a copy of what all rows see, with
 * `device_copy` a launch of its own moves each sequence up by a stage. */
#include "graph/run/launch_ring.h"

#include "graph/run/launch_rows.h"

/* Add the row of another sequence behind the prefix: its token, its place, its own span of keys. */
static void fill_packed_row(const struct tec_plan *plan, struct tec_plan_part *part, int i,
                            int prompt, const struct tec_row_state *row)
{
    struct tec_prefix_table *t = &part->prefix;
    struct tec_rows *rows = &t->prefix;
    int at = (*rows->count)++, span = rows->seqs[i].first;
    t->ids[prompt + i - 1] = row->token;
    rows->pos[at] = row->pos;
    rows->slot[at] = row->slot;
    rows->visible[at] = row->visible;
    rows->seq[at] = i;
    rows->seqs[i].spans = 1;
    rows->spans[span] = (struct tec_span){plan->prefixes.first[row->region], row->visible};
}

/* Fill the table of each sequence's last row, the only rows that continue past the last layer's
 * keys. */
static void fill_last(struct tec_prefix_table *t, int first, int n)
{
    *t->last.count = n;
    for (int i = 0; i < n; i++) {
        int at = first + i;
        t->last_row[i] = at;
        t->last.pos[i] = t->prefix.pos[at];
        t->last.slot[i] = t->prefix.slot[at];
        t->last.visible[i] = t->prefix.visible[at];
        t->last.seq[i] = t->prefix.seq[at];
    }
}

/* Fill the moves that gather all visible KV, for a plan that reads such a copy. */
static void fill_moves(const struct tec_plan *plan, struct tec_prefix_table *t,
                       const struct tec_ring_rows *in)
{
    int at = tec_fill_move(plan, &t->moves, &t->prefix, 0, in->entering, 0);
    for (int i = 0; i < in->n; i++)
        at = tec_fill_move(plan, &t->moves, &t->prefix, 1 + i, in->rows[i], at);
}

static void fill(struct tec_plan *plan, struct tec_plan_part *part, const struct tec_ring_rows *in)
{
    struct tec_prefix_table *t = &part->prefix;
    struct tec_decode_table *choice = &part->decode;
    int prefix = tec_prefix_rows(plan, in->prefix), prompt;
    tec_fill_prefix(plan, part, in->entering->region, in->prefix);
    prompt = *t->n_text;
    *t->n_text += in->n;
    *choice->rows.count = 1 + in->n;
    tec_fill_row(plan, choice, 0, in->entering);
    for (int i = 0; i < in->n; i++) {
        fill_packed_row(plan, part, 1 + i, prompt, in->rows[i]);
        tec_fill_row(plan, choice, 1 + i, in->rows[i]);
    }
    fill_last(t, prefix - 1, 1 + in->n);
    if (plan->spec.gathers)
        fill_moves(plan, t, in);
}

void tec_launch_packed(struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_ring_rows *in, int *tokens, struct tec_replay *replay)
{
    struct tec_decode_table *choice = &part->decode;
    fill(plan, part, in);
    tec_device_upload(plan->device, part->stream, part->block.device, part->block.host,
                      part->block.size);
    tec_device_upload(plan->device, part->stream, part->choice.device, part->choice.host,
                      part->choice.size);
    tec_device_replay(plan->device, part->capture, replay);
    tec_device_download(plan->device, part->stream, part->choice.host, part->choice.device,
                        part->choice.size);
    if (replay->status == TEC_OK)
        replay->status = tec_device_failure(plan->device, NULL);
    replay->mark_ns[TEC_MARK_SHIFT] = replay->start_ns; /* of copies inside it */
    for (int i = 0; i <= in->n; i++) {
        tec_read_row(choice, i, i ? in->rows[i - 1] : in->entering);
        tokens[i] = choice->tokens[i];
    }
}

void tec_launch_shift(struct tec_plan *plan, struct tec_plan_part *part,
                      const struct tec_ring_move *moves, int n, struct tec_replay *replay)
{
    struct tec_moves *t = &part->moves;
    *t->count = n;
    for (int i = 0; i < n; i++)
        t->list[i] = (struct tec_move){plan->prefixes.first[moves[i].from],
                                       plan->prefixes.first[moves[i].to], moves[i].tokens};
    tec_device_upload(plan->device, part->stream, part->block.device, part->block.host,
                      part->block.size);
    tec_device_replay(plan->device, part->capture, replay);
}

struct tec_row_state tec_ring_entering(const struct tec_plan *plan, int prefix)
{
    int end = plan->prefixes.first[0] + prefix;
    return (struct tec_row_state){.prefix = prefix,
                                  .tail = end,
                                  .slot = end,
                                  .visible = prefix,
                                  .pos = prefix - 1,
                                  .left = plan->spec.stages + 1,
                                  .eos = -1};
}

void tec_ring_full(const struct tec_plan *plan, int prefix, int n, struct tec_row_state *rows,
                   struct tec_row_state **list)
{
    for (int i = 0; i < n; i++) {
        int region = i + 1, first = plan->prefixes.first[region];
        rows[i] = (struct tec_row_state){.region = region,
                                         .prefix = prefix,
                                         .tail = first + prefix,
                                         .pos = prefix + i,
                                         .slot = first + prefix + i,
                                         .visible = prefix + i + 1,
                                         .left = plan->spec.stages,
                                         .eos = -1};
        list[i] = &rows[i];
    }
}

void tec_ring_moves_full(int prefix, int n, struct tec_ring_move *moves)
{
    for (int i = 0; i < n; i++) {
        int stage = n - 1 - i;
        moves[i] = (struct tec_ring_move){stage, stage + 1, prefix + stage};
    }
}
