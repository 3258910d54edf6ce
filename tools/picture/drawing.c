/* drawing.c - lays a pipeline out as boxes and arrows in layers, before it is written in a picture
 * language. */
#include "tools/picture/drawing.h"

#include "base/byte_text.h"
#include "base/escape.h"
#include "graph/load/pipeline_texts.h"

#include <stdarg.h>
#include <string.h>

const char *tec_item_word(enum tec_item_kind kind)
{
    static const char *const words[] = {"input", "node", "kv", "buffer", "stream"};
    return words[kind];
}

const char *tec_link_word(enum tec_link_kind kind)
{
    static const char *const words[] = {"reads", "writes",      "previous frame", "shares",
                                        "after", "packed with", "newest text",    "until a text"};
    return words[kind];
}

struct maker {
    struct tec_drawing *d;
    struct tec_arena *arena;
    int inputs, resources, nodes; /* index of the first item of each kind */
    bool full;
};

static struct tec_item *add_item(struct maker *m, enum tec_item_kind kind, const char *name,
                                 const char *word)
{
    static const char letters[] = "inrbs";
    struct tec_item *item = &m->d->items[m->d->n_items];
    *item = (struct tec_item){.kind = kind, .name = name, .word = word};
    snprintf(item->id, sizeof item->id, "%c%d", letters[kind], m->d->n_items++);
    return item;
}

static void add_line(struct maker *m, struct tec_item *item, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_line(struct maker *m, struct tec_item *item, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *line = tec_arena_strdup(m->arena, text);
    m->full |= line == NULL;
    if (line && item->n_lines < TEC_ITEM_LINES)
        item->lines[item->n_lines++] = line;
}

static void link_items(struct maker *m, int from, int to, enum tec_link_kind kind)
{
    m->d->links[m->d->n_links++] = (struct tec_link){from, to, kind};
}

static void shape_text(char text[96], const struct tec_ints *shape, int dtype)
{
    size_t n = 0;
    for (int i = 0; i < shape->n; i++)
        n += (size_t)snprintf(text + n, 96 - n, "%s%d", i ? " x " : "", shape->item[i]);
    snprintf(text + n, 96 - n, " %s", tec_decl_dtype_word(dtype));
}

static void add_input(struct maker *m, const struct tec_decl_input *in)
{
    char shape[96];
    struct tec_item *item = add_item(m, TEC_ITEM_INPUT, in->name, tec_load_input_word(in->kind));
    switch (in->kind) {
    case TEC_INPUT_IMAGE:
        add_line(m, item, "image %d x %d %s", in->w, in->h, tec_decl_dtype_word(in->dtype));
        if (in->optional)
            add_line(m, item, "optional");
        return;
    case TEC_INPUT_TENSOR:
        shape_text(shape, &in->shape, in->dtype);
        add_line(m, item, "%s", shape);
        return;
    case TEC_INPUT_TEXT:
        add_line(m, item, "text, at most %d tokens", in->max_tokens);
        return;
    case TEC_INPUT_SEGMENTS:
        add_line(m, item, "%d segments of %d tokens", in->max_segments, in->tokens_each);
        return;
    }
}

static void add_resource(struct maker *m, const struct tec_decl_resource *r)
{
    char shape[96];
    bool buffer = r->kind == TEC_RESOURCE_BUFFER;
    struct tec_item *item =
        add_item(m, buffer ? TEC_ITEM_BUFFER : TEC_ITEM_KV, r->name, tec_resource_word(r->kind));
    switch (r->kind) {
    case TEC_RESOURCE_BUFFER:
        shape_text(shape, &r->shape, r->dtype);
        add_line(m, item, "%s", shape);
        return;
    case TEC_RESOURCE_REQUESTS:
        add_line(m, item, "%d slots of %d tokens", r->slots, r->tokens);
        return;
    case TEC_RESOURCE_RING:
        add_line(m, item, "%d stages of %d tokens", r->stages, r->tokens);
        add_line(m, item, "%s",
                 r->shift == TEC_SHIFT_DEVICE_COPY ? "shift: copied on in each forward"
                                                   : "rotates: slots stay");
        if (r->pack == TEC_PACK_GATHER)
            add_line(m, item, "attention reads a copy");
        return;
    case TEC_RESOURCE_FRAME:
    case TEC_RESOURCE_SEGMENTS:
        add_line(m, item, "%d tokens", r->tokens);
        return;
    }
}

/* Nothing takes the place of a late text beside actions. */
static void add_deadline(struct maker *m, struct tec_item *item, const struct tec_decl_node *node)
{
    static const char *const words[] = {"hold", "decay", "last chunk", "zeros",
                                        "stop", "shed",  "continue"};
    const struct tec_decl_deadline *deadline = &node->deadline;
    if (deadline->kind == TEC_DEADLINE_NONE)
        return;
    item->hard = deadline->kind == TEC_DEADLINE_HARD;
    item->soft = !item->hard;
    if (item->hard && tec_pipeline_awaited(m->d->pipeline, node))
        add_line(m, item, "hard %g ms", deadline->ms);
    else
        add_line(m, item, "%s %g ms, else %s", item->hard ? "hard" : "soft", deadline->ms,
                 words[deadline->on_miss]);
}

static bool is_ring(const struct tec_pipeline *p, const struct tec_decl_node *node)
{
    return node->kind == TEC_DECL_DECODE && node->kv.index >= 0 &&
           p->resources[node->kv.index].kind == TEC_RESOURCE_RING;
}

static void add_node(struct maker *m, const struct tec_decl_node *node)
{
    struct tec_item *item = add_item(m, TEC_ITEM_NODE, node->name, tec_decl_node_word(node->kind));
    if (node->kind == TEC_DECL_ACTION && node->steps)
        add_line(m, item, "action, %d steps", node->steps);
    else if (is_ring(m->d->pipeline, node))
        add_line(m, item, "decode, a token a forward of %d", node->max_tokens);
    else if (node->kind == TEC_DECL_DECODE)
        add_line(m, item, "decode, at most %d tokens", node->max_tokens);
    else if (node->kind == TEC_DECL_SCORE)
        add_line(m, item, "score, %d texts", node->choices.n);
    else if (node->kind == TEC_DECL_REMEMBER)
        add_line(m, item, "segment '%s'", tec_pipeline_key(node));
    else
        add_line(m, item, "%s", item->word);
    if (m->d->pipeline->n_models > 1 && node->model.name)
        add_line(m, item, "model %s", node->model.name);
    bool acts = node->kind == TEC_DECL_ACTION;
    if ((acts || node->kind == TEC_DECL_PREFILL) && node->spawn.kind == TEC_SPAWN_EVERY)
        add_line(m, item, "every %d frames", node->spawn.frames);
    else if (acts && node->spawn.kind == TEC_SPAWN_ON_CHANGE)
        add_line(m, item, "when %s is new", node->spawn.value);
    else if (node->kind == TEC_DECL_PREFILL && node->spawn.kind == TEC_SPAWN_ON_CHANGE)
        add_line(m, item, "when its text changes");
    else if (node->spawn.kind == TEC_SPAWN_ON_CHANGE && node->spawn.value)
        add_line(m, item, "a request when %s is new", node->spawn.value);
    else if (node->spawn.kind == TEC_SPAWN_EVERY && node->spawn.frames == 1)
        add_line(m, item, "a request every frame");
    else if (node->spawn.kind == TEC_SPAWN_EVERY)
        add_line(m, item, "a request every %d frames", node->spawn.frames);
    else if (node->spawn.kind == TEC_SPAWN_ON_CHANGE)
        add_line(m, item, "a request when the instruction changes");
    else if (node->spawn.kind == TEC_SPAWN_ON_REQUEST)
        add_line(m, item, "a request when asked");
    if (node->supersede)
        add_line(m, item, "it ends the older ones");
    add_deadline(m, item, node);
    if (node->partition.index >= 0) {
        const struct tec_decl_partition *p = &m->d->pipeline->partitions[node->partition.index];
        add_line(m, item, "partition %s, %.0f %%", p->name, 100.0 * p->share);
    }
    item->culled = node->culled;
    if (node->culled)
        add_line(m, item, "left out: reaches no output");
}

/* The item that a reference means, or -1 if the reference is not given. */
static int item_of(int first, const struct tec_ref *ref)
{
    return ref->name && ref->index >= 0 ? first + ref->index : -1;
}

/* How a node reads keys: an action on texts that it does not wait for takes the newest. */
static enum tec_link_kind keys_link(const struct tec_pipeline *p, const struct tec_decl_node *node)
{
    const struct tec_decl_node *first = tec_pipeline_waits_for(p, node);
    if (tec_pipeline_on_text(p, node) && !(first && tec_pipeline_acts_on(p, node, first)))
        return TEC_LINK_TEXT;
    return node->kv.prev ? TEC_LINK_PREV : TEC_LINK_READ;
}

static void link_node(struct maker *m, const struct tec_decl_node *node, int self)
{
    int inputs = m->d->pipeline->n_inputs;
    for (int i = 0; i < node->reads.n; i++)
        if (node->reads.item[i].index < inputs && item_of(m->inputs, &node->reads.item[i]) >= 0)
            link_items(m, item_of(m->inputs, &node->reads.item[i]), self, TEC_LINK_READ);
    const struct {
        int other;
        bool out; /* whether the arrow points from self to the other */
        enum tec_link_kind kind;
    } ends[] = {
        {item_of(m->inputs, &node->prefix), false, TEC_LINK_READ},
        {item_of(m->inputs, &node->prompt), false, TEC_LINK_READ},
        {item_of(m->resources, &node->from), false, TEC_LINK_READ},
        {item_of(m->resources, &node->kv), false, keys_link(m->d->pipeline, node)},
        {item_of(m->resources, &node->or_kv), false, TEC_LINK_OR},
        {item_of(m->resources, &node->writes), true, TEC_LINK_WRITE},
        {item_of(m->resources, &node->into), true, TEC_LINK_WRITE},
        {item_of(m->resources, &node->memory), true, TEC_LINK_PREV},
        {item_of(m->nodes, &node->after), false, TEC_LINK_AFTER},
        {item_of(m->nodes, &node->pack_with), false, TEC_LINK_PACKED},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends[i].other >= 0)
            link_items(m, ends[i].out ? self : ends[i].other, ends[i].out ? ends[i].other : self,
                       ends[i].kind);
    if (node->out.name && node->out.stream) {
        struct tec_item *stream = add_item(m, TEC_ITEM_STREAM, node->out.name, "stream");
        add_line(m, stream, "text");
        if (node->out.initial)
            add_line(m, stream, "at first \"%.60s\"", node->out.initial);
        link_items(m, self, m->d->n_items - 1, TEC_LINK_WRITE);
    } else if (node->out.name && node->out.buffer >= 0)
        link_items(m, self, m->resources + node->out.buffer, TEC_LINK_WRITE);
}

/* Link the streams that a node keeps in a memory, once all streams are drawn. */
static void link_kept(struct maker *m, const struct tec_decl_node *node, int self)
{
    for (int k = 0; k < node->streams.n; k++)
        for (int i = 0; i < m->d->n_items; i++)
            if (m->d->items[i].kind == TEC_ITEM_STREAM && node->streams.item[k].name &&
                strcmp(m->d->items[i].name, node->streams.item[k].name) == 0)
                link_items(m, i, self, TEC_LINK_READ);
}

/* Readers of streams, once all streams are drawn: they read an earlier version, or wait for the
 * text of their frame. */
static void link_streams(struct maker *m, int reader)
{
    const struct tec_pipeline *p = m->d->pipeline;
    const struct tec_refs *reads = &p->nodes[reader].reads;
    for (int i = 0; i < reads->n; i++)
        for (int at = 0; reads->item[i].index >= p->n_inputs && at < m->d->n_items; at++)
            if (m->d->items[at].kind == TEC_ITEM_STREAM &&
                strcmp(m->d->items[at].name, reads->item[i].name) == 0)
                link_items(m, at, m->nodes + reader,
                           tec_pipeline_waits_for(p, &p->nodes[reader]) ? TEC_LINK_READ
                                                                        : TEC_LINK_TEXT);
}

/* Give each item the length of the longest path from an input as its layer, over edges within one
 * frame; a graph without cycles needs at most n_items rounds. */
static void find_layers(struct tec_drawing *d)
{
    bool moved = true;
    for (int round = 0; moved && round < d->n_items; round++) {
        moved = false;
        for (int i = 0; i < d->n_links; i++) {
            const struct tec_link *l = &d->links[i];
            int least = d->items[l->from].layer + (l->kind != TEC_LINK_PACKED);
            if (l->kind == TEC_LINK_PREV || l->kind == TEC_LINK_TEXT ||
                d->items[l->to].layer >= least)
                continue;
            d->items[l->to].layer = least;
            moved = true;
        }
    }
}

static const char *subtitle(const struct tec_pipeline *p, struct tec_arena *arena)
{
    char budget[24];
    const char *models = p->n_models ? "" : "no model";
    for (int i = 0; i < p->n_models && models; i++)
        models = tec_arena_printf(arena, "%s%s%s %s", models, i ? ", " : "", p->models[i].arch,
                                  tec_decl_dtype_word(p->models[i].dtype));
    return tec_arena_printf(arena, "%g ms a frame; %s; policy %s%s%s", p->frame.period_ms,
                            models ? models : "", p->policy.name ? p->policy.name : "default",
                            p->memory.device ? "; device memory at most " : "",
                            p->memory.device ? tec_byte_text(budget, p->memory.device) : "");
}

enum tec_status tec_drawing_make(struct tec_drawing *d, const struct tec_pipeline *pipeline,
                                 struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_pipeline *p = pipeline;
    int links = p->n_resources, items = p->n_inputs + p->n_resources + 2 * p->n_nodes + 1;
    for (int i = 0; i < p->n_nodes; i++)
        links += p->nodes[i].reads.n + p->nodes[i].streams.n * p->n_nodes + 9;
    *d = (struct tec_drawing){.pipeline = p,
                              .title = p->name,
                              .subtitle = subtitle(p, arena),
                              .items = TEC_NEW(arena, (size_t)items, struct tec_item),
                              .links = TEC_NEW(arena, (size_t)links + 1, struct tec_link)};
    if (!d->items || !d->links || !d->subtitle)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
    struct maker m = {.d = d, .arena = arena};
    for (int i = 0; i < p->n_inputs; i++)
        add_input(&m, &p->inputs[i]);
    m.resources = d->n_items;
    for (int i = 0; i < p->n_resources; i++)
        add_resource(&m, &p->resources[i]);
    m.nodes = d->n_items;
    for (int i = 0; i < p->n_nodes; i++)
        add_node(&m, &p->nodes[i]);
    for (int i = 0; i < p->n_resources; i++)
        if (item_of(m.resources, &p->resources[i].share_prefix) >= 0)
            link_items(&m, item_of(m.resources, &p->resources[i].share_prefix), m.resources + i,
                       TEC_LINK_SHARED);
    for (int i = 0; i < p->n_nodes; i++)
        link_node(&m, &p->nodes[i], m.nodes + i);
    for (int i = 0; i < p->n_nodes; i++)
        link_kept(&m, &p->nodes[i], m.nodes + i);
    for (int i = 0; i < p->n_nodes; i++)
        link_streams(&m, i);
    find_layers(d);
    return m.full ? tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing") : TEC_OK;
}

void tec_graph_escape(const char *text, FILE *out)
{
    char shown[4096]; /* names and titles are far shorter than this */
    tec_escape(shown, sizeof shown, text);
    for (const char *c = shown; *c; c++) {
        if (*c == '&')
            fputs("&amp;", out);
        else if (*c == '<')
            fputs("&lt;", out);
        else if (*c == '>')
            fputs("&gt;", out);
        else if (*c == '"')
            fputs("&quot;", out);
        else
            fputc(*c, out);
    }
}
