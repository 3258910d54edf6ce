/* streams.c - edges of text: a prefill reads the stream of a decode or score node by its name.
 *
 * To its readers a stream is a text input that does not come from outside: it stands behind the
 * inputs and says which node writes it. A reader takes the newest text that is finished when its
 * observation is prepared, so such an edge leads from an earlier version and makes no circle of a
 * frame; unless the reader waits for that node (`after`), whose text of the same frame it then
 * takes (text_keys.c). */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

void tec_make_streams(struct tec_loader *ld)
{
    struct tec_pipeline *p = ld->pipeline;
    size_t n = (size_t)(p->n_inputs + p->n_nodes) + 1;
    struct tec_decl_input *inputs = TEC_NEW(ld->arena, n, struct tec_decl_input);
    if (!tec_loader_has(ld, inputs))
        return;
    if (p->n_inputs > 0)
        memcpy(inputs, p->inputs, (size_t)p->n_inputs * sizeof *inputs);
    p->inputs = ld->lists[TEC_INPUTS] = inputs;
}

/* The rest of stream { }: the value that it has before there is a text. */
void tec_set_stream(struct tec_loader *ld, const struct tec_decl_entry *e,
                    struct tec_decl_out *place)
{
    static const char *const fields[] = {"name", "default"};
    for (int i = 0; i < e->value->n; i++) {
        const struct tec_decl_entry *field = &e->value->entries[i];
        bool initial = strcmp(field->key, "default") == 0;
        if (strcmp(field->key, "name") == 0)
            continue;
        if (!initial)
            tec_diagnostics_meant(
                ld->d,
                tec_diagnostics_add(ld->d, TEC_E010, tec_where_key(ld, field),
                                    "unknown field '%.80s' in stream: it has name and default",
                                    field->key),
                field->key, fields, 2);
        else if (field->value->kind == TEC_VALUE_STRING)
            place->initial = field->value->string;
        if (initial && !place->initial) {
            place->initial = ""; /* what is wrong is said once */
            tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, field),
                                "default must be a text in quotes, is %s",
                                tec_decl_value_describe(ld, field->value));
        }
    }
}

static bool has_stream(const struct tec_decl_node *n, const char *name)
{
    return n->out.stream && n->out.name && strcmp(n->out.name, name) == 0;
}

/* The stream of node `writer` as a value that is read; at most one a node. */
static int value_of(struct tec_loader *ld, int writer)
{
    struct tec_pipeline *p = ld->pipeline;
    struct tec_decl_input *inputs = ld->lists[TEC_INPUTS];
    for (int i = p->n_inputs; i < p->n_inputs + p->n_streams; i++)
        if (inputs[i].writer == writer + 1)
            return i;
    const struct tec_decl_node *n = &p->nodes[writer];
    int at = p->n_inputs + p->n_streams++;
    inputs[at] = (struct tec_decl_input){.where = n->where,
                                         .kind = TEC_INPUT_TEXT,
                                         .name = n->out.name,
                                         .initial = n->out.initial,
                                         .writer = writer + 1};
    return at;
}

/* Report a second node or an input of that name: which one is read? */
static void check_name(struct tec_loader *ld, int writer, const struct tec_decl_entry *e)
{
    const struct tec_pipeline *p = ld->pipeline;
    const char *name = p->nodes[writer].out.name;
    const struct tec_where *other = NULL;
    enum tec_code code = TEC_E022;
    for (int i = writer + 1; i < p->n_nodes; i++)
        if (has_stream(&p->nodes[i], name))
            other = &p->nodes[i].where;
    for (int i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].name && strcmp(p->inputs[i].name, name) == 0) {
            other = &p->inputs[i].where;
            code = TEC_E020;
        }
    if (!other)
        return;
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, code, tec_where_value(ld, e), "'%s' is read, but %s is called so, too", name,
        code == TEC_E020 ? "an input" : "the stream of a second node");
    tec_diagnostics_also(ld->d, d, p->nodes[writer].where, "the node whose stream it is");
    tec_diagnostics_also(ld->d, d, *other, "the other one");
}

bool tec_load_stream(struct tec_loader *ld, struct tec_ref *ref, const struct tec_decl_entry *e)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; ref->name && !ld->out_of_memory && i < p->n_nodes; i++) {
        if (!has_stream(&p->nodes[i], ref->name))
            continue;
        ref->index = value_of(ld, i);
        check_name(ld, i, e);
        return true;
    }
    return false;
}

/* The room of a value is what the kv.frame of its reader holds: of several the smallest. Pictures
 * beside it are taken off where the model is known. */
static void take_room(struct tec_decl_input *in, const struct tec_pipeline *p,
                      const struct tec_decl_node *reader)
{
    int tokens = reader->writes.index < 0 ? 0 : p->resources[reader->writes.index].tokens;
    if (tokens > 0 && (in->max_tokens == 0 || tokens < in->max_tokens))
        in->max_tokens = tokens;
}

/* Has every frame a text that the reader waits for? */
static bool always_said(const struct tec_pipeline *p, const struct tec_decl_node *reader,
                        const struct tec_decl_node *writer)
{
    return tec_pipeline_waits_for(p, reader) == writer && writer->spawn.kind == TEC_SPAWN_EVERY &&
           writer->spawn.frames == 1;
}

/* One entry of a node's list, which means a stream. */
static void check_read(struct tec_loader *ld, int reader, int entry)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[reader];
    struct tec_decl_input *in =
        (struct tec_decl_input *)ld->lists[TEC_INPUTS] + n->reads.item[entry].index;
    const struct tec_decl_node *writer = &p->nodes[in->writer - 1];
    const struct tec_decl_entry *list = tec_decl_value_find(ld->nodes[reader].value, "reads");
    struct tec_where where = tec_where_value(ld, &list->value->entries[entry]);
    bool ring = writer->kv.index >= 0 && p->resources[writer->kv.index].kind == TEC_RESOURCE_RING;
    struct tec_diagnostic *d;
    if (n->kind != TEC_DECL_PREFILL)
        return; /* reported where kinds are */
    take_room(in, p, n);
    if (!tec_decl_makes_text(writer) || ring) {
        d = tec_diagnostics_add(ld->d, TEC_E024, where,
                                "'%s' is no text that is finished: its node makes actions",
                                in->name);
        tec_diagnostics_also(ld->d, d, writer->where, "its node");
    } else if (!in->initial && tec_pipeline_in_frames(p, n) && !always_said(p, n, writer)) {
        d = tec_diagnostics_add(ld->d, TEC_E027, where,
                                "'%s' runs in every frame, but stream '%s' has no text before node "
                                "'%s' has finished one",
                                n->name ? n->name : "prefill", in->name,
                                writer->name ? writer->name : "its node");
        tec_diagnostics_also(ld->d, d, writer->where, "'%s' is written here", in->name);
        tec_diagnostics_help(ld->d, d, "out = stream { name = \"%s\", default = \"...\" }",
                             in->name);
    }
}

/* A prefill reads an earlier version of a stream, so `prev` says what is so anyway; of other values
 * that nodes list nothing is kept. */
static void check_prev(struct tec_loader *ld, int node, const struct tec_refs *refs)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_entry *list = tec_decl_value_find(ld->nodes[node].value, "reads");
    for (int k = 0; k < refs->n; k++) {
        const struct tec_ref *ref = &refs->item[k];
        bool stream = p->nodes[node].kind == TEC_DECL_PREFILL && ref->index >= p->n_inputs;
        if (ref->prev && ref->index >= 0 && !stream)
            tec_diagnostics_add(ld->d, TEC_E024, tec_where_value(ld, &list->value->entries[k]),
                                "prev is for streams that a prefill reads, '%s' is read as it is",
                                ref->name);
    }
}

void tec_check_streams(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_nodes - p->n_drafts; i++) { /* a draft reads what was looked at */
        check_prev(ld, i, &p->nodes[i].reads);
        check_prev(ld, i, &p->nodes[i].streams);
        for (int k = 0; k < p->nodes[i].reads.n; k++)
            if (p->nodes[i].reads.item[k].index >= p->n_inputs)
                check_read(ld, i, k);
    }
}
