/* graph_mermaid.c - a drawing as a Mermaid flow chart, for documents. */
#include "base/byte_text.h"
#include "base/escape.h"
#include "tools/picture/drawing.h"

/* Inside "...": Mermaid has entities of its own, with # for &. */
static void print_text(const char *text, FILE *out)
{
    char shown[4096]; /* names and titles are far shorter */
    tec_escape(shown, sizeof shown, text);
    for (const char *c = shown; *c; c++) {
        if (*c == '"')
            fputs("#quot;", out);
        else if (*c == '<')
            fputs("#lt;", out);
        else if (*c == '>')
            fputs("#gt;", out);
        else if (*c == '#')
            fputs("#35;", out);
        else
            fputc(*c, out);
    }
}

static void print_item(const struct tec_item *item, FILE *out)
{
    static const char *const open[] = {"([\"", "[\"", "[(\"", "[/\"", ">\""};
    static const char *const close[] = {"\"])", "\"]", "\")]", "\"/]", "\"]"};
    static const char *const classes[] = {"input", "node", "kv", "out", "out"};
    const char *look = item->culled ? "culled" : item->hard ? "hard" : classes[item->kind];
    fprintf(out, "  %s%s<b>", item->id, open[item->kind]);
    print_text(item->name, out);
    fputs("</b>", out);
    for (int i = 0; i < item->n_lines; i++) {
        fputs("<br>", out);
        print_text(item->lines[i], out);
    }
    fprintf(out, "%s:::%s\n", close[item->kind], look);
}

void tec_graph_mermaid(const struct tec_drawing *d, FILE *out)
{
    static const char *const arrows[] = {
        "-->",
        "==>",
        "-. previous frame .->",
        "-. shared prefix .->",
        "-- then -->",
        "<-- one launch -->",
        "-. newest text .->",
        "-. until a text .->",
    };
    fputs("flowchart LR\n", out);
    for (int i = 0; i < d->n_items; i++)
        print_item(&d->items[i], out);
    for (int i = 0; i < d->n_links; i++)
        fprintf(out, "  %s %s %s\n", d->items[d->links[i].from].id, arrows[d->links[i].kind],
                d->items[d->links[i].to].id);
    for (int i = 0; i < d->n_links; i++)
        if (d->links[i].kind == TEC_LINK_PREV || d->links[i].kind == TEC_LINK_TEXT ||
            d->links[i].kind == TEC_LINK_OR)
            fprintf(out, "  linkStyle %d stroke-dasharray: 8 5\n", i);
        else if (d->links[i].kind == TEC_LINK_SHARED)
            fprintf(out, "  linkStyle %d stroke-dasharray: 2 3\n", i);
    const struct tec_measured *m = d->measured;
    if (m)
        fputs("  subgraph compiled\n", out);
    for (int i = 0; m && i < m->parts; i++) {
        char branch[32] = "";
        if (m->branch[i])
            snprintf(branch, sizeof branch, ", %d in branches", m->branch[i]);
        fprintf(out, "    p%d[\"%s<br>%d commands%s, %d barriers\"]:::node\n", i, m->part_names[i],
                m->commands[i], branch, m->barriers[i]);
    }
    if (m)
        fputs("  end\n", out);
    fputs("  classDef input fill:#f4f4f1,stroke:#b4b2a7,color:#222\n"
          "  classDef node fill:#dfeafb,stroke:#3f6fb5,color:#222\n"
          "  classDef hard fill:pink,stroke:#b8325f,stroke-width:2px,color:#222\n"
          "  classDef kv fill:#e5f3e4,stroke:#4f8f54,color:#222\n"
          "  classDef out fill:#fdf3d7,stroke:#b08d2e,color:#222\n"
          "  classDef culled fill:#eee,stroke:#999,stroke-dasharray:4 3,color:#888\n",
          out);
}
