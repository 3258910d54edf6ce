/* recall.c - runs a prompt of remembered segments layer by layer: places kept KV, computes the
 * other rows.
 *
 * Runs on the frame thread in place of a prefill. Each layer is two captured pieces with the host
 * in between: the first places and computes keys and sums attention, then the selection chooses the
 * rows that go on, and the second piece computes only those. The choice is data in the row tables,
 * so no set of segments needs a capture of its own. Where the device runs branches a layer is one
 * piece, and the host chooses beside its second half, for the layer behind (doc/decisions/050).
 * Query rows come first in a table: a rule that scores by the query alone then sums the attention
 * of the first rows only. */
#include "graph/run/recall/recall.h"

#include "base/clock.h"
#include "graph/run/launch/launch_rows.h"
#include "graph/run/launch/text_input.h"
#include "graph/run/recall/recall_pieces.h"
#include "graph/run/recall/selections.h"

#include <stddef.h>
#include <string.h>

static const struct tec_clock real = {NULL};

static int picture_rows(const struct tec_recall *r)
{
    return r->in.n_pictures * r->plan->model->vision.tokens;
}

/* Pictures are tokens of the prompt without an id. */
static int id_of(const struct tec_recall *r, int token)
{
    return r->in.ids[token < tec_lead_rows(r->plan->model) ? token : token - picture_rows(r)];
}

static bool is_picture(const struct tec_recall *r, int token)
{
    int first = tec_lead_rows(r->plan->model);
    return token >= first && token < first + picture_rows(r);
}

static enum tec_status take(struct tec_recall *r, struct tec_arena *arena, struct tec_error *err)
{
    size_t tokens = (size_t)r->plan->spec.frame_tokens, layers = (size_t)r->layers;
    size_t segments = (size_t)r->max_segments + 1;
    bool **const flags[] = {&r->live, &r->go_on, &r->resident};
    int **const ints[] = {&r->token[0], &r->token[1], &r->at};
    bool whole = true;
    for (int i = 0; i < 3; i++) {
        *flags[i] = TEC_NEW(arena, tokens, bool);
        *ints[i] = TEC_NEW(arena, tokens, int);
        whole = whole && *flags[i] && *ints[i];
    }
    r->alive = TEC_NEW(arena, segments, bool);
    r->sets = TEC_NEW(arena, layers * segments, unsigned char);
    r->counts = TEC_NEW(arena, layers * TEC_MAX_MEMORIES, int);
    r->scores = TEC_NEW(arena, segments, double);
    r->scored = TEC_NEW(arena, segments, bool);
    r->rows = TEC_NEW(arena, layers, int);
    r->worst = TEC_NEW(arena, tokens, double);
    r->line = TEC_NEW(arena, tec_kv_row_bytes(&r->plan->space.shape) / sizeof(float) + 1, float);
    r->mass = tec_device_reads_host(r->plan->device)
                  ? r->part->recall.mass
                  : TEC_NEW(arena, tokens * (size_t)r->part->recall.ld_mass, float);
    if (!whole || !r->alive || !r->sets || !r->counts || !r->rows || !r->worst || !r->line ||
        !r->mass || !r->scores || !r->scored)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to recall %zu tokens", tokens);
    return tec_recall_pieces_take(r, arena, err);
}

enum tec_status tec_recall_create(struct tec_recall *out, struct tec_plan *plan,
                                  struct tec_arena *arena, struct tec_error *err)
{
    *out = (struct tec_recall){.plan = plan,
                               .part = tec_plan_part(plan, TEC_PART_RECALL, 0),
                               .branch = tec_plan_part(plan, TEC_PART_RECALL_BRANCH, 0),
                               .layers = plan->model->text.stack.layers,
                               .max_segments = plan->spec.segments - 1};
    if (!out->part)
        return tec_fail(err, TEC_INVALID, "the plan has no memory");
    TEC_TRY(tec_importance_create(&out->importance, out->max_segments, 8, arena, err));
    return take(out, arena, err);
}

void tec_recall_finish(struct tec_recall *recall)
{
    if (recall->plan)
        tec_recall_pieces_finish(recall);
}

static enum tec_status check_segments(const struct tec_recall *r, const struct tec_recall_input *in,
                                      struct tec_error *err)
{
    int at = 0;
    if (in->n_segments < 0 || in->n_segments > r->max_segments)
        return tec_fail(err, TEC_INVALID, "%d segments; a prompt has room for %d", in->n_segments,
                        r->max_segments);
    for (int u = 0; u < in->n_segments; at = in->segments[u++].end)
        if (in->segments[u].begin < at || in->segments[u].end <= in->segments[u].begin ||
            (u > 0 && in->segments[u].begin != at))
            return tec_fail(err, TEC_INVALID, "segment %d is tokens %d .. %d behind token %d", u,
                            in->segments[u].begin, in->segments[u].end, at);
    if (in->query < at || (in->n_segments && in->query != at) || in->query >= in->n)
        return tec_fail(err, TEC_INVALID,
                        "the query begins at %d of %d tokens, the segments end at %d", in->query,
                        in->n, at);
    return TEC_OK;
}

static enum tec_status check(const struct tec_recall *r, const struct tec_recall_input *in,
                             struct tec_error *err)
{
    const struct tec_plan *p = r->plan;
    int rows = in->n_pictures * p->model->vision.tokens;
    if (in->n_pictures < 0 || in->n_pictures > p->spec.pictures)
        return tec_fail(err, TEC_INVALID, "%d pictures; the frame has room for %d", in->n_pictures,
                        p->spec.pictures);
    if (in->n < 1 + rows || in->n > p->spec.frame_tokens)
        return tec_fail(err, TEC_INVALID, "a prompt of %d tokens; there is room for %d", in->n,
                        p->spec.frame_tokens);
    TEC_TRY(tec_text_check("prompt", in->ids, in->n - rows, p->model->text.vocab, "", err));
    for (int t = 0; in->pos && t < in->n; t++)
        if (in->pos[t] < 0 || in->pos[t] >= p->positions)
            return tec_fail(err, TEC_INVALID, "token %d has position %d; there are %d", t,
                            in->pos[t], p->positions);
    for (int g = 0; g < in->n_groups; g++)
        if (in->n_groups > TEC_MAX_MEMORIES || in->ends[g] < (g ? in->ends[g - 1] : 0) ||
            in->ends[g] > in->n_segments)
            return tec_fail(err, TEC_INVALID, "group %d of segments ends at %d of %d", g,
                            in->ends[g], in->n_segments);
    return check_segments(r, in, err);
}

static int position(const struct tec_recall *r, int token)
{
    return r->in.pos ? r->in.pos[token] : token;
}

/* Append the rows of tokens from .. to that are in `set`; those of pictures, or all others. */
static int list_rows(struct tec_recall *r, int which, const bool *set, struct tec_segment_range p,
                     bool pictures, int n)
{
    for (int t = p.begin; t < p.end; t++)
        if (set[t] && is_picture(r, t) == pictures)
            r->token[which][n++] = t;
    return n;
}

/* Fill row table `which` with the tokens that are in `set`, those of the query first; in front of
 * them the pictures, whose rows are made in one place. */
static void fill_rows(struct tec_recall *r, int which, const bool *set, bool masked)
{
    struct tec_rows *rows = &r->part->recall.rows[which];
    const struct tec_text *text = &r->plan->model->text;
    int first = r->plan->prefixes.first[r->in.region], query = r->in.query;
    int lead = tec_lead_rows(r->plan->model), seen = lead + picture_rows(r);
    const struct tec_segment_range before = {0, query}, last = {query, r->in.n};
    int ahead = list_rows(r, which, set, before, true, 0);
    int behind = list_rows(r, which, set, last, false, ahead);
    int n = list_rows(r, which, set, before, false, behind);
    for (int i = 0; i < n; i++) {
        int t = r->token[which][i];
        /* Rows in order of tokens: the query's are the last. */
        int rank = i < ahead ? i : i < behind ? n - behind + i : i - behind + ahead;
        rows->pos[i] = position(r, t);
        rows->slot[i] = first + t;
        rows->seq[i] = 0;
        rows->visible[i] =
            masked ? r->in.n - n + rank + 1 : tec_prefix_visible(text, t, lead, seen, r->in.n);
    }
    *rows->count = r->n_rows[which] = n;
    r->ahead = ahead;
    r->part->recall.rows[0].spans[0] = (struct tec_span){first, r->in.n};
}

static void fill_take(struct tec_recall *r, int from, int to)
{
    for (int i = 0; i < r->n_rows[from]; i++)
        r->at[r->token[from][i]] = i;
    for (int i = 0; i < r->n_rows[to]; i++)
        r->part->recall.take[i] = r->at[r->token[to][i]];
}

/* Segments without kept pieces are computed at every layer. */
static bool is_fresh(const struct tec_recall *r, int u)
{
    return r->in.fresh && r->in.fresh[u];
}

static void add_fresh(struct tec_recall *r, bool *tokens)
{
    for (int u = 0; u <= r->in.n_segments; u++) {
        struct tec_segment_range p = tec_recall_place(r, u);
        for (int t = p.begin; is_fresh(r, u) && t < p.end; t++)
            tokens[t] = !r->resident[t];
    }
}

/* Whether the kept piece of a segment has to be placed. */
static bool placed(const struct tec_recall *r, struct tec_segment_range p)
{
    for (int t = p.begin; t < p.end; t++)
        if (!r->live[t] && !r->resident[t])
            return true;
    return false;
}

static const struct tec_selection_kind *kind_of(const struct tec_recall *r, int group)
{
    return tec_selection_kinds[r->rules[group].selection];
}

/* Record which segments a layer computes anew, given its rows r->live, and which are placed; tell
 * the source. */
static void note_set(struct tec_recall *r, int layer)
{
    unsigned char *set = r->sets + (size_t)layer * ((size_t)r->max_segments + 1);
    bool needs[TEC_MAX_MEMORIES] = {false};
    /* A layer that compares needs the kept pieces, and sets only shrink. */
    for (int g = 0; g < r->n_groups; g++)
        for (int i = 0; i <= layer; i++)
            needs[g] |= kind_of(r, g)->compares && kind_of(r, g)->compares(r, g, i);
    for (int u = 0; u <= r->in.n_segments; u++) {
        struct tec_segment_range p = tec_recall_place(r, u);
        r->lacks[u] = placed(r, p);
        bool kept = r->lacks[u] || needs[tec_recall_group(r, u)];
        set[u] = p.end == p.begin || is_fresh(r, u) || !kept;
    }
    if (r->source.known)
        r->source.known(r->source.self, layer, set);
}

static enum tec_status replay(struct tec_recall *r, const struct tec_capture *piece,
                              void (*marked)(void *user, int mark, int64_t now_ns),
                              struct tec_error *err)
{
    struct tec_plan *plan = r->plan;
    struct tec_replay run = {.marked = marked, .user = r};
    tec_device_upload(plan->device, r->part->stream, r->part->block.device, r->part->block.host,
                      r->part->block.size);
    tec_device_replay(plan->device, piece, &run);
    if (r->times.start == 0)
        r->times.start = run.start_ns;
    r->times.end = run.end_ns;
    return run.status != TEC_OK ? tec_device_failure(plan->device, err) : TEC_OK;
}

static void fill_sums(struct tec_recall *r, int layer)
{
    struct tec_recall_table *t = &r->part->recall;
    bool hops = false;
    r->sums = false;
    for (int g = 0; g < r->n_groups; g++) {
        if (!kind_of(r, g)->sums || !kind_of(r, g)->sums(r, g, layer))
            continue; /* it needs none to choose */
        r->sums = true;
        hops |= tec_scoring_hops(r->rules[g].scoring);
    }
    *t->n_summed = !r->sums ? 0 : hops ? r->n_rows[layer % 2] : r->ahead + r->in.n - r->in.query;
    *t->n_ranges = TEC_SEGMENT_RANGES * r->in.n_segments;
}

/* Before a layer: what it places has come, and is listed. */
static enum tec_status begin_layer(struct tec_recall *r, int layer, struct tec_error *err)
{
    tec_recall_pieces_begin(r, layer);
    int64_t begin = tec_clock_now(&real);
    bool came = !r->source.wait || r->source.wait(r->source.self, layer);
    r->times.waited += tec_clock_now(&real) - begin;
    if (!came)
        return tec_fail(err, TEC_NOT_FOUND, "kept keys of layer %d did not come", layer);
    TEC_TRY(tec_recall_pieces_place(r, layer, err));
    tec_recall_pieces_ahead(r, layer);
    fill_sums(r, layer);
    r->rows[layer] = r->n_rows[layer % 2];
    if (r->source.started)
        r->source.started(r->source.self, layer);
    return TEC_OK;
}

static void read_sums(struct tec_recall *r, size_t bytes)
{
    const struct tec_recall_table *t = &r->part->recall;
    if (r->branches)
        tec_device_fetch(r->plan->device, r->mass, t->mass, bytes);
    else
        tec_device_download(r->plan->device, r->part->stream, r->mass, t->mass, bytes);
}

/* Select the rows that continue past the keys of this layer. */
static enum tec_status choose(struct tec_recall *r, int layer, struct tec_error *err)
{
    const struct tec_recall_table *t = &r->part->recall;
    int64_t begin = tec_clock_now(&real);
    if (r->sums && r->mass != t->mass)
        read_sums(r, (size_t)*t->n_summed * (size_t)t->ld_mass * sizeof(float));
    memset(r->go_on, 0, (size_t)r->in.n * sizeof *r->go_on);
    memset(r->go_on + r->in.query, true, (size_t)(r->in.n - r->in.query));
    for (int g = 0; g < r->n_groups; g++) {
        struct tec_segment_range p = tec_recall_tokens(r, g);
        if (kind_of(r, g)->choose)
            TEC_TRY(kind_of(r, g)->choose(r, g, layer, err));
        else
            memcpy(r->go_on + p.begin, r->live + p.begin, (size_t)(p.end - p.begin));
    }
    add_fresh(r, r->go_on);
    memcpy(r->live, r->go_on, (size_t)r->in.n * sizeof *r->live);
    if (layer + 1 < r->layers)
        note_set(r, layer + 1);
    r->times.choose += tec_clock_now(&real) - begin;
    return TEC_OK;
}

/* Choose, and list the rows that go on. */
static enum tec_status go_on(struct tec_recall *r, int layer, struct tec_error *err)
{
    int from = layer % 2, to = (layer + 1) % 2;
    bool masked = r->rules->code_mask && r->rules->selection == TEC_SELECTION_cacheblend &&
                  layer >= r->rules->check;
    TEC_TRY(choose(r, layer, err));
    fill_rows(r, to, r->live, masked);
    fill_take(r, from, to);
    tec_recall_pieces_ahead(r, layer);
    return TEC_OK;
}

static void tell_keys(const struct tec_recall *r, int layer)
{
    if (r->watch)
        r->watch(r->user, r, layer, false);
}

/* Keys, the choice, the other half of the layer. */
static enum tec_status run_halves(struct tec_recall *r, int layer, struct tec_error *err)
{
    struct tec_capture *const *halves = r->part->slices + (ptrdiff_t)2 * layer;
    TEC_TRY(replay(r, halves[0], NULL, err));
    tell_keys(r, layer);
    if (layer + 1 == r->layers && !r->plan->spec.whole)
        return TEC_OK;
    TEC_TRY(go_on(r, layer, err));
    return replay(r, halves[1], NULL, err);
}

/* In the middle of a layer that branches: its sums are there, its tables were uploaded. */
static void sums_are_there(void *user, int mark, int64_t now_ns)
{
    struct tec_recall *r = user;
    (void)mark, (void)now_ns;
    tell_keys(r, r->choosing);
    r->chosen = go_on(r, r->choosing, r->why);
}

static enum tec_status run_branching(struct tec_recall *r, int layer, struct tec_error *err)
{
    r->choosing = layer;
    r->chosen = TEC_OK;
    r->why = err;
    TEC_TRY(replay(r, r->branch->slices[layer], sums_are_there, err));
    if (layer + 1 == r->layers)
        tell_keys(r, layer);
    return r->chosen;
}

enum tec_status tec_recall_layer(struct tec_recall *r, int layer, struct tec_error *err)
{
    TEC_TRY(begin_layer(r, layer, err));
    TEC_TRY(r->branches ? run_branching(r, layer, err) : run_halves(r, layer, err));
    tec_recall_pieces_end(r, layer);
    if (r->source.ended)
        r->source.ended(r->source.self, layer);
    return TEC_OK;
}

/* The first layer's rows: pictures, and ids of the others behind them. */
static void fill_ids(struct tec_recall *r)
{
    struct tec_plan_part *part = r->part;
    struct tec_prefix_input o = {.n_pictures = r->in.n_pictures};
    int ahead = r->ahead, n = r->n_rows[0] - ahead;
    for (int i = 0; i < n; i++)
        part->recall.ids[i] = id_of(r, r->token[0][ahead + i]);
    if (r->plan->spec.pictures < 1)
        return;
    for (int i = 0; i < o.n_pictures; i++)
        o.picture[i] = r->in.picture[i];
    tec_fill_pictures(r->plan, part, &o);
    *part->prefix.n_text = n;
    *part->prefix.first_text = ahead;
    tec_device_upload(r->plan->device, part->stream, part->seen.device, part->seen.host,
                      part->seen.size);
}

static void open_groups(struct tec_recall *r, const struct tec_recall_rule *rules)
{
    r->n_groups = r->in.n_groups ? r->in.n_groups : 1;
    memcpy(r->rules, rules, (size_t)r->n_groups * sizeof *rules);
    for (int g = 0; g < r->n_groups; g++)
        r->ends[g] = g < r->n_groups - 1 ? r->in.ends[g] : r->in.n_segments;
}

static enum tec_status begin(struct tec_recall *r, struct tec_error *err)
{
    size_t n = (size_t)r->in.n, segments = (size_t)r->max_segments + 1;
    memset(r->live, 0, n * sizeof *r->live);
    memset(r->resident, 0, n * sizeof *r->resident);
    memset(r->alive, 0, segments * sizeof *r->alive);
    memset(r->scored, 0, segments * sizeof *r->scored);
    memset(r->live + r->in.query, true, n - (size_t)r->in.query);
    for (int g = 0; g < r->n_groups; g++)
        TEC_TRY(kind_of(r, g)->start(r, g, err));
    add_fresh(r, r->live);
    fill_rows(r, 0, r->live, false);
    fill_ids(r);
    tec_importance_ranges(r->in.segments, r->in.n_segments, r->part->recall.ends);
    note_set(r, 0);
    return TEC_OK;
}

enum tec_status tec_recall_start(struct tec_recall *r, const struct tec_recall_input *input,
                                 const struct tec_recall_rule *rules,
                                 const struct tec_recall_source *source, struct tec_error *err)
{
    TEC_TRY(check(r, input, err));
    r->in = *input;
    open_groups(r, rules);
    r->source = *source;
    r->times = (struct tec_recall_times){0};
    r->importance.n_hops = 0;
    tec_recall_pieces_start(r);
    r->branches = r->branch != NULL;
    for (int g = 0; g < r->n_groups; g++) /* one that compares goes on with fewer rows at once */
        r->branches &= !kind_of(r, g)->compares;
    return begin(r, err);
}

enum tec_status tec_recall_run(struct tec_recall *r, const struct tec_recall_input *input,
                               const struct tec_recall_rule *rules,
                               const struct tec_recall_source *source, struct tec_error *err)
{
    TEC_TRY(tec_recall_start(r, input, rules, source, err));
    for (int layer = 0; layer < r->layers; layer++)
        TEC_TRY(tec_recall_layer(r, layer, err));
    return tec_device_failure(r->plan->device, err);
}
