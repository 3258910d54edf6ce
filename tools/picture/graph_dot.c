/* graph_dot.c - a drawing for Graphviz. */
#include "base/byte_text.h"
#include "tools/picture/drawing.h"

static void print_item(const struct tec_item *item, FILE *out)
{
    static const char *const looks[] = {
        [TEC_ITEM_INPUT] = ("shape=box, style=\"rounded,filled\", fillcolor=\"#f4f4f1\", "
                            "color=\"#b4b2a7\""),
        [TEC_ITEM_NODE] = "shape=box, style=filled, fillcolor=\"#dfeafb\", color=\"#3f6fb5\"",
        [TEC_ITEM_KV] = "shape=cylinder, style=filled, fillcolor=\"#e5f3e4\", color=\"#4f8f54\"",
        [TEC_ITEM_BUFFER] = "shape=note, style=filled, fillcolor=\"#fdf3d7\", color=\"#b08d2e\"",
        [TEC_ITEM_STREAM] = ("shape=cds, margin=\"0.3,0.16\", style=filled, fillcolor=\"#fdf3d7\", "
                             "color=\"#b08d2e\""),
    };
    const char *look = looks[item->kind];
    if (item->hard)
        look = "shape=box, style=filled, fillcolor=pink, color=\"#b8325f\", penwidth=1.6";
    if (item->culled)
        look = "shape=box, style=\"filled,dashed\", fillcolor=\"#eeeeee\", color=\"#999999\", "
               "fontcolor=\"#888888\"";
    fprintf(out, "  %s [%s, tooltip=\"%s\", label=<<b>", item->id, look, item->word);
    tec_graph_escape(item->name, out);
    fputs("</b>", out);
    for (int i = 0; i < item->n_lines; i++) {
        fputs("<br/><font point-size=\"10\" color=\"#555555\">", out);
        tec_graph_escape(item->lines[i], out);
        fputs("</font>", out);
    }
    fputs(">];\n", out);
}

static void print_link(const struct tec_drawing *d, const struct tec_link *l, FILE *out)
{
    static const char *const looks[] = {
        [TEC_LINK_READ] = "",
        [TEC_LINK_WRITE] = " [penwidth=2]",
        [TEC_LINK_PREV] = " [style=dashed, label=\"previous frame\", constraint=false]",
        [TEC_LINK_SHARED] = " [style=dotted, penwidth=1.6, label=\"shared prefix\"]",
        [TEC_LINK_AFTER] = " [color=\"#999999\", arrowhead=open, label=\"then\"]",
        [TEC_LINK_PACKED] = (" [color=\"#999999\", dir=both, arrowhead=dot, arrowtail=dot, "
                             "label=\"one launch\", constraint=false]"),
        [TEC_LINK_TEXT] = " [style=dashed, label=\"newest text\", constraint=false]",
        [TEC_LINK_OR] = " [style=dashed, label=\"until a text\"]",
    };
    fprintf(out, "  %s -> %s%s;\n", d->items[l->from].id, d->items[l->to].id, looks[l->kind]);
}

static void print_row(const char *a, const char *b, const char *c, const char *d, FILE *out)
{
    fprintf(out,
            "<tr><td align=\"left\">%s</td><td align=\"right\">%s</td><td align=\"right\">%s</td>"
            "<td align=\"right\">%s</td></tr>",
            a, b, c, d);
}

/* Print the compiled parts as a table beside the picture. */
static void print_compiled(const struct tec_measured *m, FILE *out)
{
    char b[48], c[24], d[24];
    fputs("  compiled [shape=plain, fontsize=10, label=<<table border=\"0\" cellborder=\"1\" "
          "cellspacing=\"0\" cellpadding=\"4\" color=\"#b4b2a7\">",
          out);
    print_row("<b>part</b>", "<b>commands</b>", "<b>barriers</b>", "<b>activations</b>", out);
    for (int i = 0; i < m->parts; i++) {
        snprintf(b, sizeof b, m->branch[i] ? "%d, of them %d in branches" : "%d", m->commands[i],
                 m->branch[i]);
        snprintf(c, sizeof c, "%d", m->barriers[i]);
        print_row(m->part_names[i], b, c, tec_byte_text(d, (int64_t)m->activations[i]), out);
    }
    print_row("<b>weights</b>", "", "", tec_byte_text(d, m->bytes.weights), out);
    print_row("<b>KV</b>", "", "", tec_byte_text(d, m->bytes.kv), out);
    print_row("<b>device</b>", "", "", tec_byte_text(d, m->bytes.total), out);
    fputs("</table>>];\n", out);
}

void tec_graph_dot(const struct tec_drawing *d, FILE *out)
{
    fputs("digraph pipeline {\n"
          "  graph [rankdir=LR, bgcolor=white, fontname=\"Helvetica\", fontsize=12, labelloc=t,\n"
          "         nodesep=0.28, ranksep=0.55, pad=0.25, label=<<b>",
          out);
    tec_graph_escape(d->title, out);
    fputs("</b><br/><font point-size=\"10\" color=\"#555555\">", out);
    tec_graph_escape(d->subtitle, out);
    fputs("</font>>];\n"
          "  node [fontname=\"Helvetica\", fontsize=12, margin=\"0.16,0.09\"];\n"
          "  edge [fontname=\"Helvetica\", fontsize=9, fontcolor=\"#666666\", color=\"#555555\", "
          "arrowsize=0.7];\n",
          out);
    for (int i = 0; i < d->n_items; i++)
        print_item(&d->items[i], out);
    fputs("  { rank=source;", out);
    for (int i = 0; i < d->n_items; i++)
        if (d->items[i].kind == TEC_ITEM_INPUT)
            fprintf(out, " %s;", d->items[i].id);
    fputs(" }\n", out);
    for (int i = 0; i < d->n_links; i++)
        print_link(d, &d->links[i], out);
    if (d->measured)
        print_compiled(d->measured, out);
    fputs("}\n", out);
}
