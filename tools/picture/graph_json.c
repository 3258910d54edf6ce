/* graph_json.c - a drawing as JSON, and the compiled parts as JSON and lines. */
#include "base/byte_text.h"
#include "base/json_text.h"
#include "tools/frames/ring_text.h"
#include "tools/picture/drawing.h"

static json_t *item_json(const struct tec_item *item)
{
    json_t *lines = json_array();
    for (int i = 0; i < item->n_lines; i++)
        json_array_append_new(lines, json_string(item->lines[i]));
    const char *deadline = item->hard ? "hard" : item->soft ? "soft" : NULL;
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:b}", "id", item->id, "name", item->name,
                     "kind", tec_item_word(item->kind), "type", item->word, "text", lines,
                     "deadline", deadline, "culled", item->culled);
}

static json_t *bytes_json(const struct tec_measured *m)
{
    const struct tec_byte_plan *b = &m->bytes;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "total",
                     (json_int_t)b->total, "weights", (json_int_t)b->weights, "kv",
                     (json_int_t)b->kv, "activations", (json_int_t)b->activations, "tables",
                     (json_int_t)b->tables, "constants", (json_int_t)b->constants, "frames",
                     (json_int_t)b->frames, "workspace", (json_int_t)b->workspace, "captures",
                     (json_int_t)b->captures, "kv_on_its_way", (json_int_t)m->memory.staging,
                     "kv_kept", (json_int_t)m->memory.kept, "host", (json_int_t)m->host);
}

json_t *tec_graph_compiled_json(const struct tec_measured *m)
{
    json_t *parts = json_array();
    for (int i = 0; i < m->parts; i++) {
        json_t *part =
            json_pack("{s:s?, s:i, s:i, s:I}", "part", m->part_names[i], "commands", m->commands[i],
                      "barriers", m->barriers[i], "activations", (json_int_t)m->activations[i]);
        if (m->slices[i])
            json_object_set_new(part, "slices", json_integer(m->slices[i]));
        if (m->branch[i])
            json_object_set_new(part, "branch", json_integer(m->branch[i]));
        json_array_append_new(parts, part);
    }
    return json_pack("{s:o, s:o}", "parts", parts, "bytes", bytes_json(m));
}

enum tec_status tec_graph_json(const struct tec_drawing *d, FILE *out, struct tec_error *err)
{
    json_t *nodes = json_array(), *edges = json_array();
    for (int i = 0; i < d->n_items; i++)
        json_array_append_new(nodes, item_json(&d->items[i]));
    for (int i = 0; i < d->n_links; i++)
        json_array_append_new(
            edges, json_pack("{s:s, s:s, s:s}", "from", d->items[d->links[i].from].id, "to",
                             d->items[d->links[i].to].id, "kind", tec_link_word(d->links[i].kind)));
    json_t *all =
        json_pack("{s:s, s:o, s:f, s:s, s:i, s:o, s:o}", "name", d->title, "file",
                  tec_json_shown(d->pipeline->file), "period_ms", d->pipeline->frame.period_ms,
                  "policy", d->pipeline->policy.name ? d->pipeline->policy.name : "default",
                  "captures", tec_pipeline_captures(d->pipeline), "nodes", nodes, "edges", edges);
    if (all && d->measured)
        json_object_set_new(all, "compiled", tec_graph_compiled_json(d->measured));
    enum tec_status status = tec_json_print(out, all, JSON_INDENT(2), "the graph as JSON", err);
    json_decref(all);
    return status;
}

void tec_graph_text(const struct tec_drawing *d, FILE *out)
{
    const struct tec_measured *m = d->measured;
    char text[24];
    fprintf(out, "%s: %s\n", d->title, d->subtitle);
    tec_frame_ring_text(d->pipeline, m, out);
    for (int i = 0; i < d->n_heat; i++)
        fprintf(out, "  %-24s p50 %.3g ms, p99 %.3g ms\n", d->heat[i].node, d->heat[i].p50_ms,
                d->heat[i].p99_ms);
    if (!m) {
        for (int i = 0; i < d->n_links; i++)
            fprintf(out, "  %-24s %-14s -> %s\n", d->items[d->links[i].from].name,
                    tec_link_word(d->links[i].kind), d->items[d->links[i].to].name);
        return;
    }
    fprintf(out, "\n%-24s %9s %9s %12s\n", "part", "commands", "barriers", "activations");
    for (int i = 0; i < m->parts; i++) {
        fprintf(out, "%-24s %9d %9d %12s", m->part_names[i], m->commands[i], m->barriers[i],
                tec_byte_text(text, (int64_t)m->activations[i]));
        if (m->slices[i])
            fprintf(out, "  in %d slices", m->slices[i]);
        if (m->branch[i])
            fprintf(out, ", %d commands in branches", m->branch[i]);
        fputc('\n', out);
    }
    const struct {
        const char *name;
        int64_t bytes;
    } rows[] = {
        {"weights", m->bytes.weights},
        {"KV", m->bytes.kv},
        {"activations (overlaid)", m->bytes.activations},
        {"tables", m->bytes.tables},
        {"constants", m->bytes.constants},
        {"frames", m->bytes.frames},
        {"workspace", m->bytes.workspace},
        {"device, all", m->bytes.total},
        {"captures (host)", m->bytes.captures},
        {"KV on its way (host)", m->memory.staging},
        {"KV kept (host, most)", m->memory.kept},
        {"host, all", m->host},
    };
    fprintf(out, "\n%-24s %12s\n", "memory", "bytes");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        fprintf(out, "%-24s %12s\n", rows[i].name, tec_byte_text(text, rows[i].bytes));
}
