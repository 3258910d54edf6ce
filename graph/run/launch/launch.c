/* launch.c - fills the frame table of a prefill or a decode step, copies it and replays the
 * capture.
 *
 * Runs on the frame thread, or on the first of the lanes beside it. Nothing here allocates or
 * blocks. Everything that changes between frames (counts, positions, slots, spans, ids, noise) is
 * data in the table, so one capture serves every prompt length, every set of cameras and every
 * number of requests up to its batch. Rows that a head adds stand before the pictures in memory,
 * where their place is constant, and get their place in the sequence by position and slot. */
#include "graph/run/launch/launch_rows.h"
#include "graph/run/launch/text_input.h"

#include <string.h>

enum tec_status tec_prefix_check(const struct tec_plan *plan, const struct tec_prefix_input *o,
                                 struct tec_error *err)
{
    const struct tec_plan_spec *s = &plan->spec;
    if (o->n_pictures < 0 || o->n_pictures > s->pictures)
        return tec_fail(err, TEC_INVALID, "%d pictures; the frame has room for %d", o->n_pictures,
                        s->pictures);
    bool all = tec_model_asks(plan->model) || plan->model->vision.n_sizes;
    if (all && o->n_pictures < s->pictures)
        return tec_fail(err, TEC_INVALID, "%d pictures; model '%s' needs all %d", o->n_pictures,
                        plan->model->name, s->pictures);
    TEC_TRY(tec_prefix_check_around(plan, o, err));
    /* Decode repeats the last row, which is text. */
    int least = tec_model_reads(plan->model) ? 1 + tec_lead_rows(plan->model) : 0;
    if (o->n_text < least || o->n_text > s->text_tokens)
        return tec_fail(err, TEC_INVALID, "the prompt has %d tokens; the pipeline allows %d .. %d",
                        o->n_text, least, s->text_tokens);
    if (tec_prefix_rows(plan, o) > s->frame_tokens)
        return tec_fail(err, TEC_INVALID,
                        "%d pictures and %d tokens need %d rows; the frame has %d", o->n_pictures,
                        o->n_text, tec_prefix_rows(plan, o), s->frame_tokens);
    TEC_TRY(tec_text_check("prompt", o->ids, o->n_text, plan->model->text.vocab, "", err));
    return tec_prefix_check_marks(plan->model, o, err);
}

int tec_prefix_visible(const struct tec_text *model, int r, int lead, int text, int rows)
{
    if (model->mask == TEC_MASK_BIDIR)
        return rows;
    bool picture = r >= lead && r < text;
    return model->mask == TEC_MASK_CAUSAL && picture ? text : r + 1;
}

/* Rows of a prefix from row `at` of memory on, that stand at `pos` in the sequence. */
struct run {
    int at, pos, n;
};

/* Where the rows of a sequence are: its number, its first slot, how many they are, where its text
 * begins. */
struct sequence {
    int seq, first, rows, text;
};

static void fill_run(const struct tec_model *m, struct tec_prefix_table *t, struct run run,
                     struct sequence of)
{
    int lead = m->text.lead ? 1 : 0;
    bool behind = tec_model_behind(m);
    for (int i = 0; i < run.n; i++) {
        int r = run.at + i, pos = run.pos + i;
        bool unseen = behind && pos < of.rows - 1; /* the last row, by the others */
        t->prefix.pos[r] = pos;
        t->prefix.slot[r] = of.first + pos;
        t->prefix.seq[r] = of.seq;
        t->prefix.visible[r] =
            tec_prefix_visible(&m->text, pos, lead, of.text, unseen ? of.rows - 1 : of.rows);
    }
}

/* Pictures, and the tokens around each, from position `pos` on; the position behind them. */
static int fill_pictures(const struct tec_model *m, struct tec_prefix_table *t,
                         const struct tec_prefix_input *o, struct run pictures, struct sequence of)
{
    const struct tec_vision *v = &m->vision;
    int pos = pictures.pos, pairs = tec_prefix_pairs(v, o), done = 0;
    for (int i = 0; i < pairs; i++) {
        int n = tec_prefix_sees(o, i) ? v->tokens : 0, at = *t->first_around + done;
        memcpy(t->around + done, v->before, (size_t)v->n_before * sizeof *t->around);
        done += v->n_before;
        memcpy(t->around + done, v->behind, (size_t)v->n_behind * sizeof *t->around);
        done += v->n_behind;
        fill_run(m, t, (struct run){at, pos, v->n_before}, of);
        fill_run(m, t, (struct run){pictures.at, pos + v->n_before, n}, of);
        pictures.at += n;
        pos += v->n_before + n;
        fill_run(m, t, (struct run){at + v->n_before, pos, v->n_behind}, of);
        pos += v->n_behind;
    }
    if (pairs)
        return pos;
    fill_run(m, t, pictures, of);
    return pos + pictures.n;
}

/* A prompt whose tokens say where its pictures stand: their rows take the place of the token, and
 * lie in memory where those of other models do. How many rows the text has. */
static int fill_marked(const struct tec_plan *plan, struct tec_prefix_table *t,
                       const struct tec_prefix_input *o, int picture, int text, struct sequence of)
{
    const struct tec_model *m = plan->model;
    int pos = 0, n = 0;
    for (int i = 0; i < o->n_text; i++) {
        bool mark = o->ids[i] == tec_model_mark(m);
        const struct run run =
            mark ? (struct run){picture, pos, m->vision.tokens} : (struct run){text + n, pos, 1};
        fill_run(m, t, run, of);
        if (mark)
            picture += run.n;
        else
            t->ids[text - *t->first_text + n++] = o->ids[i];
        pos += run.n;
    }
    return n;
}

/* The hidden rows that a head reads: the prompt's last, then the zeros but the last one. */
static void fill_last(const struct tec_model *m, struct tec_prefix_table *t, int rows)
{
    int n = m->head.rows, zero = *t->first_zero;
    *t->last.count = n;
    for (int i = 0; i < n; i++)
        tec_fill_last(t, i, i ? zero + i - 1 : rows - 1);
}

/* The rows of one prompt among several: pictures from row `picture` of memory on, text from row
 * `text`. The leading token of the first has a place of its own, that of another stands before its
 * text. */
static void fill_sequence(const struct tec_plan *plan, struct tec_prefix_table *t,
                          const struct tec_prefix_place *place, int seq, int picture, int text)
{
    const struct tec_model *m = plan->model;
    const struct tec_prefix_input *o = place->input;
    int lead = tec_lead_rows(m), pictures = o->n_pictures * m->vision.tokens;
    int added = tec_head_rows(m), own = seq ? lead : 0;
    int before = tec_model_heads(m) ? tec_state_rows(m) : 0; /* in front of the text */
    int n = o->n_text - lead, first = plan->prefixes.first[place->region];
    const struct sequence of = {seq, first, tec_prefix_rows(plan, o), lead + pictures};
    t->prefix.seqs[seq].spans = 1;
    t->prefix.spans[t->prefix.seqs[seq].first] = (struct tec_span){first, of.rows};
    if (m->text.marks) { /* no token leads, and no row is added */
        t->last_row[seq] = text + fill_marked(plan, t, o, picture, text, of) - 1;
        return;
    }
    fill_run(m, t, (struct run){own ? text : 0, 0, lead}, of);
    int pos = fill_pictures(m, t, o, (struct run){picture, lead, pictures}, of);
    const struct run runs[] = {
        {lead, pos, before},
        {lead + before, pos + before + n, added - before},
        {text + own, pos + before, n},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        fill_run(m, t, runs[i], of);
    memcpy(t->ids + (text - *t->first_text), o->ids + lead - own,
           (size_t)(n + own) * sizeof *t->ids);
    t->last_row[seq] = text + own + n - 1;
}

void tec_fill_prefixes(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_prefix_place *places, int n)
{
    struct tec_prefix_table *t = &part->prefix;
    const struct tec_model *m = plan->model;
    int lead = tec_lead_rows(m), picture = lead + tec_head_rows(m), rows = 0;
    int text = picture + tec_give_pictures(plan, part, places, n);
    *t->lead = tec_prefix_first(places->input);
    *t->first_text = text;
    for (int i = 0; i < n; i++)
        rows += tec_prefix_rows(plan, places[i].input);
    *t->prefix.count = rows;
    if (t->max_around) { /* of the only prompt: behind its text */
        *t->n_around = tec_prefix_around(&m->vision, places->input);
        *t->first_around = text + places->input->n_text - lead;
    }
    for (int i = 0; i < n; i++) {
        const struct tec_prefix_input *o = places[i].input;
        fill_sequence(plan, t, &places[i], i, picture, text);
        picture += o->n_pictures * m->vision.tokens;
        text += o->n_text - (i ? 0 : lead) - (m->text.marks ? o->n_pictures : 0);
    }
    *t->n_text = text - *t->first_text;
    if (tec_model_heads(m))
        fill_last(m, t, rows);
    if (tec_model_behind(m))
        tec_fill_state(m, t, 0, places->input->state);
}

/* The rows of a program that its action asks: it sees all of what they become. */
static void fill_built(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                       const struct tec_prefix_input *o)
{
    struct tec_prefix_table *t = &part->prefix;
    int rows = tec_model_encoded(plan->model), first = plan->prefixes.first[region];
    for (int i = 0; i < o->n_pictures; i++)
        tec_give_picture(plan, part, i, o->picture[i]);
    *t->prefix.count = rows;
    for (int r = 0; r < rows; r++)
        t->prefix.slot[r] = first + r;
}

void tec_fill_prefix(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                     const struct tec_prefix_input *o)
{
    if (tec_model_asks(plan->model))
        fill_built(plan, part, region, o);
    else if (tec_model_denoises(plan->model))
        tec_fill_features(plan, part, region, o);
    else
        tec_fill_prefixes(plan, part, &(struct tec_prefix_place){.region = region, .input = o}, 1);
}

/* The prompt of a launch of one. */
static void fill_place(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_prefix_place *place)
{
    tec_fill_prefix(plan, part, place->region, place->input);
    if (place->known && part->prefix.n_known)
        tec_know_pictures(plan, &part->prefix);
}

/* Fill the decode table of a head that picks one token for every hidden row. */
static void fill_choice(const struct tec_plan *plan, struct tec_plan_part *part)
{
    struct tec_decode_table *t = &part->decode;
    *t->k = 1;
    *t->stop = 0;
    *t->rows.count = t->rows.max;
    for (int i = 0; i < t->rows.max; i++) {
        t->left[i] = 1;
        t->done[i] = t->produced[i] = t->token[i] = t->tail[i] = t->prefix[i] = 0;
        t->rows.pos[i] = t->rows.slot[i] = t->rows.visible[i] = 0;
        t->eos[i] = -1;
    }
    tec_launch_upload(plan, part, &part->choice);
}

/* Run a part; where each of its nodes is a launch of its own, one after the other. */
static void replay_nodes(struct tec_plan *plan, const struct tec_plan_part *part,
                         struct tec_replay *replay)
{
    if (part->kind != TEC_PART_FRAME || !part->slices) {
        tec_device_replay(plan->device, part->capture, replay);
        return;
    }
    tec_device_replay(plan->device, part->slices[0], replay);
    for (int i = 1; i < part->n_slices && replay->status == TEC_OK; i++) {
        const struct tec_replay before = *replay;
        tec_device_replay(plan->device, part->slices[i], replay);
        replay->start_ns = before.start_ns;
        for (int m = 0; m < TEC_MAX_MARKS; m++)
            if (!replay->mark_ns[m])
                replay->mark_ns[m] = before.mark_ns[m];
    }
}

void tec_launch_prefixes(struct tec_plan *plan, struct tec_plan_part *part,
                         const struct tec_prefix_place *places,
                         const struct tec_action_inputs *actions, int n, struct tec_replay *replay)
{
    if (n > 1)
        tec_fill_prefixes(plan, part, places, n);
    else
        fill_place(plan, part, places);
    bool acts =
        part->kind == TEC_PART_FRAME && plan->spec.n_actions && plan->spec.frame_action >= 0;
    bool suffix = acts && !tec_model_heads(plan->model);
    if ((acts && !suffix) || tec_model_asks(plan->model))
        tec_fill_state(plan->model, &part->prefix, 0, actions->state);
    if (suffix)
        tec_fill_given(&part->prefix, actions, n);
    for (int i = 0; i < n && suffix; i++) {
        const struct tec_stand on = {places[i].region, tec_prefix_rows(plan, places[i].input)};
        tec_fill_suffix(plan, part, i, on, &actions[i]);
    }
    if (suffix && part->batch > 1)
        tec_count_suffixes(plan->model, &part->prefix, n);
    if (part->choice.host) {
        fill_choice(plan, part);
        replay->tables[0] = tec_launch_table(&part->choice);
    }
    tec_launch_upload(plan, part, &part->block);
    replay_nodes(plan, part, replay);
}

void tec_launch_prefix(struct tec_plan *plan, struct tec_plan_part *part, int region,
                       const struct tec_prefix_input *o, const struct tec_action_inputs *actions,
                       struct tec_replay *replay)
{
    const struct tec_prefix_place place = {.region = region, .input = o};
    tec_launch_prefixes(plan, part, &place, actions, 1, replay);
}

void tec_launch_action(struct tec_plan *plan, struct tec_plan_part *part, int region, int rows,
                       const struct tec_action_inputs *actions, struct tec_replay *replay)
{
    tec_fill_given(&part->prefix, actions, 1);
    tec_fill_suffix(plan, part, 0, (struct tec_stand){region, rows}, actions);
    tec_launch_upload(plan, part, &part->block);
    tec_device_replay(plan->device, part->capture, replay);
}

int tec_part_slices(const struct tec_plan_part *part)
{
    return part->slices ? part->n_slices : 1;
}

void tec_launch_slice(struct tec_plan *plan, struct tec_plan_part *part, int at,
                      const struct tec_prefix_place *place, struct tec_replay *replay)
{
    if (at == 0) {
        fill_place(plan, part, place);
        tec_launch_upload(plan, part, &part->block);
    }
    tec_device_replay(plan->device, part->slices ? part->slices[at] : part->capture, replay);
    replay->mark_ns[TEC_MARK_PREFILL] = replay->end_ns;
}

void tec_row_start(struct tec_row_state *row, const struct tec_plan *plan, int region, int prefix,
                   int last_token, int request_slot, int max_tokens, int eos)
{
    *row = (struct tec_row_state){.token = last_token,
                                  .pos = prefix - 1,
                                  .slot = plan->trash[request_slot],
                                  .visible = prefix,
                                  .region = region,
                                  .prefix = prefix,
                                  .tail = plan->tails[request_slot],
                                  .left = max_tokens,
                                  .eos = eos,
                                  .place = -1,
                                  .used = plan->used ? plan->used[request_slot] : NULL};
    if (row->used)
        memset(row->used, 0, (size_t)plan->used_words * sizeof *row->used);
}

void tec_row_saw(struct tec_row_state *row, const struct tec_plan *plan, const int *ids, int n)
{
    for (int i = 0; row->used && i < n; i++)
        if (ids[i] >= 0 && ids[i] / 32 < plan->used_words)
            row->used[ids[i] / 32] |= 1U << (ids[i] % 32);
}

void tec_row_prompt(struct tec_row_state *row, const int *ids, int n)
{
    if (n < 1)
        return;
    row->token = ids[0];
    row->pos++;
    row->slot = row->tail;
    row->visible = row->prefix + 1;
    row->prompt = ids + 1;
    row->waiting = n - 1;
    row->prompt_tokens = n;
}

static void gather(const struct tec_plan *plan, struct tec_decode_table *t,
                   struct tec_row_state *const *rows, int n)
{
    int at = 0;
    for (int i = 0; i < n; i++)
        at = tec_fill_move(plan, &t->moves, &t->rows, i, rows[i], at);
}

void tec_launch_decode(struct tec_plan *plan, struct tec_plan_part *part,
                       struct tec_row_state *const *rows, int n, int k, int *tokens, int *made,
                       struct tec_replay *replay)
{
    struct tec_decode_table *t = &part->decode;
    *t->k = k;
    *t->stop = 0;
    *t->rows.count = n;
    for (int i = 0; i < n; i++)
        tec_fill_row(plan, t, i, rows[i]);
    if (plan->spec.gathers)
        gather(plan, t, rows, n);
    tec_launch_rows(plan, part, &part->block, replay);
    replay->mark_ns[TEC_MARK_SHIFT] = replay->start_ns; /* of copies inside it */
    for (int i = 0; i < n; i++) {
        tec_read_row(t, i, rows[i]);
        made[i] = t->produced[i];
        memcpy(tokens + (size_t)i * (size_t)k, t->tokens + (size_t)i * (size_t)t->max_tokens,
               (size_t)t->produced[i] * sizeof *tokens);
    }
}
