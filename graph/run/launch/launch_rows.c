/* launch_rows.c - writes the row of one request into a decode table, and reads it back after a
 * launch.
 *
 * Runs on the thread of the launch. The device advances a row by itself for up to k steps, so all
 * of its state (token, position, slot, what is left, its place in a list) goes there and comes
 * back. */
#include "graph/run/launch/launch_rows.h"

#include <stddef.h>
#include <string.h>

void tec_fill_row(const struct tec_plan *plan, struct tec_decode_table *t, int i,
                  const struct tec_row_state *row)
{
    t->token[i] = row->token;
    t->rows.pos[i] = row->pos;
    t->rows.slot[i] = row->slot;
    t->rows.visible[i] = row->visible;
    struct tec_span *spans = t->rows.spans + (ptrdiff_t)i * 2;
    spans[0] = (struct tec_span){plan->prefixes.first[row->region], row->prefix};
    spans[1] = (struct tec_span){row->tail, plan->spec.prompt_tokens + plan->spec.new_tokens};
    t->tail[i] = row->tail;
    t->prefix[i] = row->prefix;
    t->left[i] = row->left;
    t->done[i] = row->done;
    t->produced[i] = 0;
    t->eos[i] = row->eos;
    if (t->temperature) {
        t->temperature[i] = row->sampling.temperature;
        t->top_p[i] = row->sampling.top_p;
        t->top_k[i] = row->sampling.top_k;
        t->seed[2 * (ptrdiff_t)i] = (unsigned)row->sampling.seed;
        t->seed[2 * (ptrdiff_t)i + 1] = (unsigned)(row->sampling.seed >> 32);
    }
    if (t->place)
        t->place[i] = row->place;
    size_t words = (size_t)t->words;
    if (t->used && row->used)
        memcpy(t->used + (size_t)i * words, row->used, words * sizeof *t->used);
    if (!t->forced)
        return;
    t->waiting[i] = row->waiting;
    if (row->waiting > 0)
        memcpy(t->forced + (size_t)(i + 1) * (size_t)t->max_forced - (size_t)row->waiting,
               row->prompt, (size_t)row->waiting * sizeof *row->prompt);
}

void tec_read_row(const struct tec_decode_table *t, int i, struct tec_row_state *row)
{
    row->token = t->token[i];
    row->pos = t->rows.pos[i];
    row->slot = t->rows.slot[i];
    row->visible = t->rows.visible[i];
    row->left = t->left[i];
    row->done = t->done[i];
    row->steps = t->produced[i];
    if (t->place)
        row->place = t->place[i];
    size_t words = (size_t)t->words;
    if (t->used && row->used)
        memcpy(row->used, t->used + (size_t)i * words, words * sizeof *t->used);
    if (!t->forced || row->waiting == 0)
        return;
    int read = row->waiting - t->waiting[i];
    row->prompt += read;
    row->waiting -= read;
    row->steps += read;
}

int tec_fill_move(const struct tec_plan *plan, struct tec_moves *moves, struct tec_rows *rows,
                  int i, const struct tec_row_state *row, int at)
{
    int first = plan->prefixes.first[row->region];
    moves->list[i] = (struct tec_move){first, at, row->visible};
    *moves->count = i + 1;
    rows->seqs[i].spans = 1;
    rows->spans[rows->seqs[i].first] = (struct tec_span){at, row->visible};
    return at + row->visible;
}

void tec_launch_upload(const struct tec_plan *plan, const struct tec_plan_part *part,
                       const struct tec_table_block *table)
{
    tec_device_upload(plan->device, part->stream, table->device, table->host, table->size);
}

struct tec_replay_table tec_launch_table(const struct tec_table_block *block)
{
    return (struct tec_replay_table){block->device, block->host, block->size};
}

void tec_launch_rows(const struct tec_plan *plan, const struct tec_plan_part *part,
                     const struct tec_table_block *rows, struct tec_replay *replay)
{
    tec_launch_upload(plan, part, &part->block);
    if (rows != &part->block)
        tec_launch_upload(plan, part, rows);
    replay->tables[0] = tec_launch_table(&part->block);
    replay->tables[1] = tec_launch_table(rows);
    tec_device_replay(plan->device, part->capture, replay);
    tec_device_download(plan->device, part->stream, rows->host, rows->device, rows->size);
    if (replay->status == TEC_OK)
        replay->status = tec_device_failure(plan->device, NULL);
}
