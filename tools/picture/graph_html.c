/* graph_html.c - a drawing as one HTML page that needs nothing else: laid out here, in layers from
 * left to right, each item near the middle of what it is linked to. */
#include "tools/cli/bytes.h"
#include "tools/picture/drawing.h"
#include "tools/picture/svg.h"

#include <string.h>

enum { ROW = 16, HEAD = 20, PAD = 10, GAP_X = 70, GAP_Y = 22, MARGIN = 30, ROUNDS = 12 };

static const char css[] =
    "text{font:12px system-ui,sans-serif;fill:#222}.n{font-weight:600;font-size:13px}"
    ".d{fill:#555;font-size:11px}.input{fill:#f4f4f1;stroke:#b4b2a7}"
    ".node{fill:#dfeafb;stroke:#3f6fb5}.kv{fill:#e5f3e4;stroke:#4f8f54}"
    ".buffer,.stream{fill:#fdf3d7;stroke:#b08d2e}.hard{fill:pink;stroke:#b8325f;stroke-width:1.8}"
    ".culled{fill:#eee;stroke:#999;stroke-dasharray:4 3}"
    ".l{fill:none;stroke:#777;stroke-width:1.2}.w{stroke:#444;stroke-width:2}"
    ".prev{stroke-dasharray:8 5}.shared{stroke:#4f8f54;stroke-width:1.8;stroke-dasharray:2 3}"
    ".a{fill:#555;stroke:none}.rim{fill:none;stroke:#4f8f54}";

struct box {
    double x, y, w, h;
};

static struct box measure_item(const struct tec_item *item)
{
    size_t widest = tec_svg_columns(item->name) * 8;
    for (int i = 0; i < item->n_lines; i++)
        if (tec_svg_columns(item->lines[i]) * 6 > widest)
            widest = tec_svg_columns(item->lines[i]) * 6;
    double lift = item->kind == TEC_ITEM_KV ? 8.0 : 0.0;
    return (struct box){0, 0, (double)widest + 2.0 * PAD,
                        HEAD + ROW * (double)item->n_lines + PAD + lift};
}

/* The preferred height of an item's middle: the mean of its neighbours'. */
static double wish(const struct tec_drawing *d, const struct box *boxes, int item)
{
    double sum = 0.0;
    int n = 0;
    for (int i = 0; i < d->n_links; i++) {
        const struct tec_link *l = &d->links[i];
        int other = l->from == item ? l->to : l->to == item ? l->from : -1;
        if (other < 0)
            continue;
        sum += boxes[other].y + boxes[other].h / 2.0;
        n++;
    }
    return n ? sum / n : boxes[item].y + boxes[item].h / 2.0;
}

/* Order the items of a layer by their preferred heights, and place them as near to these as they
 * fit. */
static void settle(const struct tec_drawing *d, struct box *boxes, const int *items, int n,
                   double *wishes, int *order)
{
    double total = 0.0, middle = 0.0, y;
    for (int i = 0; i < n; i++) {
        wishes[i] = wish(d, boxes, items[i]);
        int at = i;
        for (; at > 0 && wishes[order[at - 1]] > wishes[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        total += boxes[items[i]].h + (i ? GAP_Y : 0);
        middle += wishes[i] / n;
    }
    y = middle - total / 2.0;
    for (int i = 0; i < n; i++) {
        struct box *b = &boxes[items[order[i]]];
        b->y = y;
        y += b->h + GAP_Y;
    }
}

struct layout {
    struct box *boxes;
    int *members, *first; /* members of layer l: members[first[l] .. first[l + 1] - 1] */
    int layers;
    double width, height;
};

static void place_layers(const struct tec_drawing *d, struct layout *l, double *wishes, int *order)
{
    double x = MARGIN;
    for (int layer = 0; layer < l->layers; layer++) {
        double widest = 0.0, y = 0.0;
        for (int i = l->first[layer]; i < l->first[layer + 1]; i++) {
            struct box *b = &l->boxes[l->members[i]];
            b->x = x;
            b->y = y;
            y += b->h + GAP_Y;
            widest = b->w > widest ? b->w : widest;
        }
        x += widest > 0.0 ? widest + GAP_X : 0.0;
    }
    l->width = x - GAP_X + MARGIN;
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < l->layers; k++) {
            int layer = round % 2 ? l->layers - 1 - k : k;
            int first = l->first[layer];
            settle(d, l->boxes, l->members + first, l->first[layer + 1] - first, wishes, order);
        }
    double top = 1e9, bottom = -1e9;
    for (int i = 0; i < d->n_items; i++) {
        top = l->boxes[i].y < top ? l->boxes[i].y : top;
        bottom = l->boxes[i].y + l->boxes[i].h > bottom ? l->boxes[i].y + l->boxes[i].h : bottom;
    }
    for (int i = 0; i < d->n_items; i++)
        l->boxes[i].y += MARGIN - top;
    l->height = d->n_items ? bottom - top + 2.0 * MARGIN : 2.0 * MARGIN;
}

static enum tec_status make_layout(const struct tec_drawing *d, struct layout *l,
                                   struct tec_arena *arena, struct tec_error *err)
{
    size_t n = (size_t)d->n_items + 2;
    double *wishes = TEC_NEW(arena, n, double);
    int *order = TEC_NEW(arena, n, int);
    *l = (struct layout){.boxes = TEC_NEW(arena, n, struct box),
                         .members = TEC_NEW(arena, n, int),
                         .first = TEC_NEW(arena, n + 1, int)};
    if (!wishes || !order || !l->boxes || !l->members || !l->first)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
    for (int i = 0; i < d->n_items; i++) {
        l->boxes[i] = measure_item(&d->items[i]);
        if (d->items[i].layer + 1 > l->layers)
            l->layers = d->items[i].layer + 1;
    }
    int at = 0;
    for (int layer = 0; layer < l->layers; layer++) {
        l->first[layer] = at;
        for (int i = 0; i < d->n_items; i++)
            if (d->items[i].layer == layer)
                l->members[at++] = i;
    }
    l->first[l->layers] = at;
    place_layers(d, l, wishes, order);
    return TEC_OK;
}

static void draw_link(struct tec_svg *svg, const struct layout *layout, const struct tec_link *l)
{
    enum { POINTS = 24 };
    static const char *const classes[] = {"l", "l w", "l prev", "l shared",
                                          "l", "l",   "l prev", "l prev"};
    const struct box *a = &layout->boxes[l->from], *b = &layout->boxes[l->to];
    double x1 = a->x + a->w, y1 = a->y + a->h / 2.0, x2 = b->x, y2 = b->y + b->h / 2.0;
    double points[2 * POINTS];
    if (x2 <= a->x) { /* backwards, or within a layer: from below to below */
        x1 = a->x + a->w / 2.0;
        x2 = b->x + b->w / 2.0;
        y1 = a->y + a->h;
        y2 = b->y + b->h;
    }
    bool below = b->x <= a->x;
    double bend = below ? 50.0 : (x2 - x1) * 0.5, reach = below ? 0.0 : 7.0;
    for (int i = 0; i < POINTS; i++) {
        double t = (double)i / (POINTS - 1), u = 1.0 - t;
        double c1 = 3 * u * u * t, c2 = 3 * u * t * t;
        points[(size_t)i * 2] = u * u * u * x1 + t * t * t * (x2 - reach) +
                                c1 * (x1 + (below ? 0.0 : bend)) +
                                c2 * (x2 - reach - (below ? 0.0 : bend));
        points[(size_t)i * 2 + 1] = u * u * u * y1 + t * t * t * (y2 + (below ? 7.0 : 0.0)) +
                                    c1 * (y1 + (below ? bend : 0.0)) +
                                    c2 * (y2 + (below ? bend : 0.0));
    }
    double right[] = {x2, y2, x2 - 8, y2 - 4, x2 - 8, y2 + 4};
    double up[] = {x2, y2, x2 - 4, y2 + 8, x2 + 4, y2 + 8};
    tec_svg_group(svg, NULL, tec_link_word(l->kind));
    tec_svg_path(svg, points, POINTS, false, classes[l->kind]);
    tec_svg_path(svg, below ? up : right, 3, true, "a");
    tec_svg_group_end(svg);
}

static void draw_item(struct tec_svg *svg, const struct tec_item *item, const struct box *b)
{
    const char *look = item->culled ? "culled" : item->hard ? "hard" : tec_item_word(item->kind);
    bool round = item->kind == TEC_ITEM_INPUT || item->kind == TEC_ITEM_STREAM;
    bool kv = item->kind == TEC_ITEM_KV;
    double y = b->y + HEAD - 4 + (kv ? 8.0 : 0.0);
    tec_svg_group(svg, NULL, item->word);
    tec_svg_rect(svg, b->x, b->y, b->w, b->h, kv || round ? 10.0 : 3.0, look);
    if (kv) { /* the rim of a cylinder */
        double rim[2 * 13];
        for (int i = 0; i < 13; i++) {
            double t = i / 6.0 - 1.0;
            rim[(size_t)i * 2] = b->x + b->w * (t + 1.0) / 2.0;
            rim[(size_t)i * 2 + 1] = b->y + 4.0 + 8.0 * (1.0 - t * t);
        }
        tec_svg_path(svg, rim, 13, false, "rim");
    }
    tec_svg_text(svg, b->x + PAD, y, "n", item->name);
    for (int i = 0; i < item->n_lines; i++)
        tec_svg_text(svg, b->x + PAD, y + ROW * (i + 1), "d", item->lines[i]);
    tec_svg_group_end(svg);
}

static void print_compiled(const struct tec_measured *m, FILE *out)
{
    char text[24];
    fputs("<h2>Compiled</h2>\n<table><tr><th>part<th>commands<th>barriers<th>activations</tr>\n",
          out);
    for (int i = 0; i < m->parts; i++) {
        fputs("<tr><td>", out);
        tec_graph_escape(m->part_names[i], out);
        fprintf(out, "<td>%d<td>%d<td>%s</tr>\n", m->commands[i], m->barriers[i],
                tec_cli_bytes_text(text, (int64_t)m->activations[i]));
    }
    fputs("</table>\n<table><tr><th>memory<th>bytes</tr>\n", out);
    fprintf(out, "<tr><td>weights<td>%s</tr>\n", tec_cli_bytes_text(text, m->bytes.weights));
    fprintf(out, "<tr><td>KV<td>%s</tr>\n", tec_cli_bytes_text(text, m->bytes.kv));
    fprintf(out, "<tr><td>activations<td>%s</tr>\n",
            tec_cli_bytes_text(text, m->bytes.activations));
    fprintf(out, "<tr><td>all on the device<td>%s</tr>\n</table>\n",
            tec_cli_bytes_text(text, m->bytes.total));
}

enum tec_status tec_graph_html(const struct tec_drawing *d, struct tec_arena *arena, FILE *out,
                               struct tec_error *err)
{
    struct layout layout;
    struct tec_svg svg = {0};
    const char *text = NULL;
    size_t n = 0;
    TEC_TRY(make_layout(d, &layout, arena, err));
    tec_svg_begin(&svg, arena, layout.width, layout.height, css);
    for (int i = 0; i < d->n_links; i++)
        draw_link(&svg, &layout, &d->links[i]);
    for (int i = 0; i < d->n_items; i++)
        draw_item(&svg, &d->items[i], &layout.boxes[i]);
    TEC_TRY(tec_svg_end(&svg, &text, &n, err));
    const char *start = strstr(text, "<svg"); /* an XML declaration is not for HTML */
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", out);
    tec_graph_escape(d->title, out);
    fputs("</title>\n<style>body{font:14px system-ui,sans-serif;margin:24px;color:#222;"
          "background:#fff}h1{font-size:20px;margin:0}h2{font-size:15px}p{color:#555;margin:4px 0}"
          "table{border-collapse:collapse;margin:8px 0}td,th{border:1px solid #ccc;"
          "padding:3px 9px;text-align:right}td:first-child,th:first-child{text-align:left}"
          "svg{max-width:100%;height:auto}</style></head><body>\n<h1>",
          out);
    tec_graph_escape(d->title, out);
    fputs("</h1>\n<p>", out);
    tec_graph_escape(d->subtitle, out);
    fputs("</p>\n", out);
    fputs(start ? start : text, out);
    fputs(
        "\n<p>Pink: hard deadline. Dashed: reads the previous frame. Dotted: a shared prefix, not "
        "copied. Thick: writes.</p>\n",
        out);
    if (d->measured)
        print_compiled(d->measured, out);
    fputs("</body></html>\n", out);
    return TEC_OK;
}
