/* launch_ring.c - launches the parts of rings: prefills packed with rows of the other sequences,
 * and moves.
 *
 * Frame thread; nothing allocates or blocks. A forward takes a sequence of each ring in and
 * advances all others by a token in the same matrix products, so the weights are read once for all.
 * Sequences differ by their spans only; with `gather` the spans point to a copy of what all rows
 * see, with `device_copy` each layer moves the sequences up by a stage behind its attention: the
 * list of moves is in the forward's table. */
#include "graph/run/launch/launch_ring.h"

#include "graph/run/launch/launch_rows.h"

/* Add the row of another sequence behind the prefixes: its token, its place, its own span of
 * keys. */
static void fill_packed_row(const struct tec_plan *plan, struct tec_plan_part *part, int seq,
                            const struct tec_row_state *row)
{
    struct tec_prefix_table *t = &part->prefix;
    struct tec_rows *rows = &t->prefix;
    int at = (*rows->count)++, span = rows->seqs[seq].first;
    t->ids[(*t->n_text)++] = row->token;
    rows->pos[at] = row->pos;
    rows->slot[at] = row->slot;
    rows->visible[at] = row->visible;
    rows->seq[at] = seq;
    rows->seqs[seq].spans = 1;
    rows->spans[span] = (struct tec_span){plan->prefixes.first[row->region], row->visible};
    t->last_row[seq] = at;
}

static void fill_moves(const struct tec_plan *plan, struct tec_moves *t,
                       const struct tec_ring_move *moves, int n)
{
    *t->count = n;
    for (int i = 0; i < n; i++)
        t->list[i] = (struct tec_move){plan->prefixes.first[moves[i].from],
                                       plan->prefixes.first[moves[i].to], moves[i].tokens};
}

static void fill(struct tec_plan *plan, struct tec_plan_part *part, const struct tec_ring_rows *in)
{
    struct tec_prefix_table *t = &part->prefix;
    struct tec_prefix_place places[TEC_MAX_STAGES];
    int n = in->entering + in->n, at = 0;
    for (int i = 0; i < in->entering; i++)
        places[i] =
            (struct tec_prefix_place){.region = in->rows[i]->region, .input = in->prefixes[i]};
    tec_fill_prefixes(plan, part, places, in->entering);
    for (int i = in->entering; i < n; i++)
        fill_packed_row(plan, part, i, in->rows[i]);
    *part->decode.rows.count = n;
    for (int i = 0; i < n; i++)
        tec_fill_row(plan, &part->decode, i, in->rows[i]);
    *t->last.count = n;
    for (int i = 0; i < n; i++)
        tec_fill_last(t, i, t->last_row[i]);
    for (int i = 0; plan->spec.gathers && i < n; i++)
        at = tec_fill_move(plan, &t->moves, &t->prefix, i, in->rows[i], at);
    if (t->shifts.list)
        fill_moves(plan, &t->shifts, in->moves, in->n_moves);
}

void tec_launch_packed(struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_ring_rows *in, int *tokens, struct tec_replay *replay)
{
    struct tec_decode_table *choice = &part->decode;
    fill(plan, part, in);
    tec_launch_rows(plan, part, &part->choice, replay);
    replay->mark_ns[TEC_MARK_SHIFT] = replay->start_ns; /* of copies inside it */
    for (int i = 0; i < in->entering + in->n; i++) {
        tec_read_row(choice, i, in->rows[i]);
        tokens[i] = choice->tokens[i];
    }
}

/* Requests decode in the same part, and move nothing: between launches the list is empty. */
void tec_launch_advance(struct tec_plan *plan, struct tec_plan_part *part,
                        const struct tec_ring_rows *in, int *tokens, struct tec_replay *replay)
{
    struct tec_moves *shifts = &part->decode.shifts;
    int made[TEC_MAX_STAGES];
    if (shifts->list)
        fill_moves(plan, shifts, in->moves, in->n_moves);
    tec_launch_decode(plan, part, in->rows, in->n, 1, tokens, made, replay);
    if (shifts->list)
        *shifts->count = 0;
}

void tec_launch_shift(struct tec_plan *plan, struct tec_plan_part *part,
                      const struct tec_ring_move *moves, int n, struct tec_replay *replay)
{
    fill_moves(plan, &part->moves, moves, n);
    tec_launch_upload(plan, part, &part->block);
    tec_device_replay(plan->device, part->capture, replay);
}

int tec_launch_ring_point(const struct tec_plan_spec *s, int entering, int others)
{
    if (entering == 0)
        return others - (s->rings * s->stages + 1);
    return others + (entering - 1) * (s->rings * (s->stages - 1) + 1);
}

int tec_launch_ring_rows_of(const struct tec_plan_spec *s, int point)
{
    return point - tec_launch_ring_point(s, 0, 0);
}

static struct tec_row_state entering(const struct tec_plan *plan, int region, int prefix)
{
    int end = plan->prefixes.first[region] + prefix;
    return (struct tec_row_state){.region = region,
                                  .prefix = prefix,
                                  .tail = end,
                                  .slot = end,
                                  .visible = prefix,
                                  .pos = prefix - 1,
                                  .left = plan->spec.stages + 1,
                                  .eos = -1,
                                  .place = -1};
}

static struct tec_row_state in_flight(const struct tec_plan *plan, int region, int prefix, int made)
{
    int first = plan->prefixes.first[region];
    return (struct tec_row_state){.region = region,
                                  .prefix = prefix,
                                  .tail = first + prefix,
                                  .pos = prefix + made,
                                  .slot = first + prefix + made,
                                  .visible = prefix + made + 1,
                                  .left = plan->spec.stages,
                                  .eos = -1,
                                  .place = -1};
}

void tec_launch_ring_full(const struct tec_plan *plan, int prefix, int enter, int n,
                          struct tec_row_state *rows, struct tec_row_state **list)
{
    int stages = plan->spec.stages, first = !plan->spec.apart, others = stages - first;
    for (int i = 0; i < enter + n; i++) {
        int made = i < enter ? 0 : (i - enter) % others,
            ring = i < enter ? i : (i - enter) / others;
        rows[i] = i < enter ? entering(plan, ring * stages, prefix)
                            : in_flight(plan, ring * stages + made + first, prefix, made);
        list[i] = &rows[i];
    }
}

int tec_launch_ring_moves(const struct tec_plan *plan, struct tec_row_state *const *rows, int n,
                          struct tec_ring_move *moves)
{
    int stages = plan->spec.stages, count = 0;
    for (int i = n - 1; i >= 0; i--)
        if (rows[i]->region % stages + 1 < stages)
            moves[count++] =
                (struct tec_ring_move){rows[i]->region, rows[i]->region + 1, rows[i]->visible};
    return count;
}
