/* graph_html.c - a drawing as one HTML page that needs nothing else: the picture with its layout
 * found here, the fields of its items as data, and a script that pans, zooms, searches and shows.
 */
#include "base/byte_text.h"
#include "base/json_text.h"
#include "tools/picture/drawing.h"
#include "tools/picture/layout.h"
#include "tools/picture/page.h"
#include "tools/picture/svg.h"

#include <stdlib.h>
#include <string.h>

enum { ROW = 16, HEAD = 20, PAD = 10, HEAT = 5 };

/* Colours are the page's. */
static const char css[] =
    "text{font:12px system-ui,sans-serif}.n{font-weight:600;font-size:13px}.d{font-size:11px}";

static const struct tec_heat *heat_of(const struct tec_drawing *d, const struct tec_item *item)
{
    for (int i = 0; i < d->n_heat && item->kind == TEC_ITEM_NODE; i++)
        if (strcmp(d->heat[i].node, item->name) == 0)
            return &d->heat[i];
    return NULL;
}

static double hottest(const struct tec_drawing *d)
{
    double most = 0.0;
    for (int i = 0; i < d->n_heat; i++)
        most = d->heat[i].p50_ms > most ? d->heat[i].p50_ms : most;
    return most;
}

static const char *heat_text(char text[64], const struct tec_heat *heat)
{
    snprintf(text, 64, heat->share >= 0.0 ? "%.2f ms, %.0f %%" : "%.2f ms", heat->p50_ms,
             100.0 * heat->share);
    return text;
}

static struct tec_item_box measure_item(const struct tec_drawing *d, const struct tec_item *item)
{
    size_t widest = tec_svg_columns(item->name) * 9;
    const struct tec_heat *heat = heat_of(d, item);
    char text[64];
    if (heat && tec_svg_columns(heat_text(text, heat)) * 8 > widest) /* it is bold */
        widest = tec_svg_columns(text) * 8;
    for (int i = 0; i < item->n_lines; i++)
        if (tec_svg_columns(item->lines[i]) * 7 > widest)
            widest = tec_svg_columns(item->lines[i]) * 7;
    double lift = item->kind == TEC_ITEM_KV ? 8.0 : 0.0;
    return (struct tec_item_box){0, 0, (double)widest + 2.0 * PAD,
                                 HEAD + ROW * ((double)item->n_lines + (heat != NULL)) + PAD +
                                     lift + (heat ? HEAT : 0)};
}

json_t *tec_graph_shapes(const struct tec_drawing *d, struct tec_arena *arena,
                         struct tec_error *err)
{
    struct tec_item_box *boxes = TEC_NEW(arena, (size_t)d->n_items + 1, struct tec_item_box);
    struct tec_placing layout;
    json_t *items = json_array(), *links = json_array();
    for (int i = 0; boxes && i < d->n_items; i++)
        boxes[i] = measure_item(d, &d->items[i]);
    if (!boxes || tec_placing_make(&layout, d, boxes, arena, err) != TEC_OK) {
        json_decref(items);
        json_decref(links);
        return NULL;
    }
    for (int i = 0; i < d->n_items; i++) {
        const struct tec_item_box *b = &layout.boxes[i];
        json_array_append_new(items,
                              json_pack("[o, s, f, f, f, f]", tec_json_shown(d->items[i].name),
                                        tec_item_word(d->items[i].kind), b->x, b->y, b->w, b->h));
    }
    for (int i = 0; i < d->n_links; i++) {
        json_t *points = json_array();
        for (size_t k = 0; k < 2 * layout.routes[i].n; k++)
            json_array_append_new(points, json_real(layout.routes[i].points[k]));
        json_array_append_new(links, points);
    }
    return json_pack("{s:f, s:f, s:o, s:o}", "width", layout.width, "height", layout.height,
                     "items", items, "links", links);
}

static void draw_link(struct tec_svg *svg, const struct tec_link *l, const struct tec_route *r)
{
    static const char *const classes[] = {"l", "l w", "l prev", "l shared",
                                          "l", "l",   "l prev", "l prev"};
    double x = r->points[2 * r->n - 2] + 7.0, y = r->points[2 * r->n - 1];
    const double head[] = {x, y, x - 8, y - 4, x - 8, y + 4};
    tec_svg_group(svg, "link", tec_link_word(l->kind));
    tec_svg_path(svg, r->points, r->n, false, classes[l->kind]);
    tec_svg_path(svg, head, 3, true, "a");
    tec_svg_group_end(svg);
}

/* A bar below the item's lines, as long as the node took of the one that took longest. */
static void draw_heat(struct tec_svg *svg, const struct tec_drawing *d, const struct tec_heat *heat,
                      const struct tec_item_box *b, double y)
{
    char text[64];
    double most = hottest(d);
    tec_svg_text(svg, b->x + PAD, y, "d hot", heat_text(text, heat));
    if (most > 0.0)
        tec_svg_rect(svg, b->x + 2, b->y + b->h - HEAT - 2, (b->w - 4) * heat->p50_ms / most, HEAT,
                     1, "heat");
}

static void draw_item(struct tec_svg *svg, const struct tec_drawing *d, const struct tec_item *item,
                      const struct tec_item_box *b)
{
    const struct tec_heat *heat = heat_of(d, item);
    const char *look = item->culled ? "culled" : item->hard ? "hard" : tec_item_word(item->kind);
    bool round = item->kind == TEC_ITEM_INPUT || item->kind == TEC_ITEM_STREAM;
    bool kv = item->kind == TEC_ITEM_KV;
    double y = b->y + HEAD - 4 + (kv ? 8.0 : 0.0);
    tec_svg_item(svg, "item", item->id, item->word);
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
    if (heat)
        draw_heat(svg, d, heat, b, y + ROW * (item->n_lines + 1));
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
        fprintf(out, "<td>%d", m->commands[i]);
        if (m->branch[i])
            fprintf(out, ", of them %d in branches", m->branch[i]);
        fprintf(out, "<td>%d<td>%s</tr>\n", m->barriers[i],
                tec_byte_text(text, (int64_t)m->activations[i]));
    }
    fputs("</table>\n<table><tr><th>memory<th>bytes</tr>\n", out);
    fprintf(out, "<tr><td>weights<td>%s</tr>\n", tec_byte_text(text, m->bytes.weights));
    fprintf(out, "<tr><td>KV<td>%s</tr>\n", tec_byte_text(text, m->bytes.kv));
    fprintf(out, "<tr><td>activations<td>%s</tr>\n", tec_byte_text(text, m->bytes.activations));
    fprintf(out, "<tr><td>all on the device<td>%s</tr>\n</table>\n",
            tec_byte_text(text, m->bytes.total));
}

/* --- data ------------------------------------------------------------------------------------- */

/* The entry of that name in one of the canonical form's lists: an item's fields. */
static json_t *fields_of(const json_t *form, const char *name)
{
    static const char *const lists[] = {"inputs", "resources", "nodes"};
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        const json_t *list = json_object_get(form, lists[l]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            json_t *one = json_array_get(list, i);
            const char *called = json_string_value(json_object_get(one, "name"));
            if (called && strcmp(called, name) == 0)
                return json_deep_copy(one);
        }
    }
    return json_object();
}

static json_t *item_json(const struct tec_drawing *d, const struct tec_item *item,
                         const json_t *form)
{
    const struct tec_heat *heat = heat_of(d, item);
    json_t *lines = json_array();
    for (int i = 0; i < item->n_lines; i++)
        json_array_append_new(lines, tec_json_shown(item->lines[i]));
    json_t *one =
        json_pack("{s:s, s:o, s:s, s:o, s:o}", "id", item->id, "name", tec_json_shown(item->name),
                  "word", item->word, "lines", lines, "fields", fields_of(form, item->name));
    if (!heat)
        return one;
    json_object_set_new(one, "p50_ms", json_real(heat->p50_ms));
    if (heat->p99_ms >= 0.0)
        json_object_set_new(one, "p99_ms", json_real(heat->p99_ms));
    if (heat->share >= 0.0)
        json_object_set_new(one, "share", json_real(heat->share));
    return one;
}

/* JSON inside a script element: "<" would end it. */
static void print_data(const char *json, FILE *out)
{
    fputs("<script type=\"application/json\" id=\"data\">", out);
    for (; *json; json++)
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    fputs("</script>\n", out);
}

static enum tec_status put_data(const struct tec_drawing *d, FILE *out, struct tec_error *err)
{
    json_t *form = NULL, *items = json_array(), *links = json_array();
    TEC_TRY(tec_pipeline_expand(&form, d->pipeline, err));
    for (int i = 0; i < d->n_items; i++)
        json_array_append_new(items, item_json(d, &d->items[i], form));
    for (int i = 0; i < d->n_links; i++)
        json_array_append_new(
            links, json_pack("{s:s, s:s, s:s}", "from", d->items[d->links[i].from].id, "to",
                             d->items[d->links[i].to].id, "word", tec_link_word(d->links[i].kind)));
    json_decref(form);
    json_t *all = json_pack("{s:o, s:o}", "items", items, "links", links);
    char *text = tec_json_whole(all, JSON_COMPACT);
    json_decref(all);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
    print_data(text, out);
    free(text);
    return TEC_OK;
}

/* Commands by part, folded: a line "part NAME ..." begins each. */
static void print_commands(const char *text, FILE *out)
{
    bool open = false;
    fputs("<h2>Commands</h2>\n", out);
    while (*text) {
        const char *end = strchr(text, '\n');
        size_t n = end ? (size_t)(end - text) : strlen(text);
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)(n < 500 ? n : 500), text);
        bool part = strncmp(line, "part ", 5) == 0;
        if (part)
            fputs(open ? "</pre></details>\n<details class=\"part\"><summary>"
                       : "<details class=\"part\"><summary>",
                  out);
        if (part || open)
            tec_graph_escape(line, out);
        fputs(part ? "</summary><pre>" : open ? "\n" : "", out);
        open |= part;
        text += n + (end != NULL);
    }
    fputs(open ? "</pre></details>\n" : "", out);
}

/* --- the page --------------------------------------------------------------------------------- */

static enum tec_status draw(const struct tec_drawing *d, struct tec_arena *arena, const char **text,
                            struct tec_error *err)
{
    struct tec_item_box *boxes = TEC_NEW(arena, (size_t)d->n_items + 1, struct tec_item_box);
    struct tec_placing layout;
    struct tec_svg svg = {0};
    size_t n = 0;
    if (!boxes)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
    for (int i = 0; i < d->n_items; i++)
        boxes[i] = measure_item(d, &d->items[i]);
    TEC_TRY(tec_placing_make(&layout, d, boxes, arena, err));
    tec_svg_begin(&svg, arena, layout.width, layout.height, css);
    for (int i = 0; i < d->n_links; i++)
        draw_link(&svg, &d->links[i], &layout.routes[i]);
    for (int i = 0; i < d->n_items; i++)
        draw_item(&svg, d, &d->items[i], &layout.boxes[i]);
    TEC_TRY(tec_svg_end(&svg, text, &n, err));
    const char *start = strstr(*text, "<svg"); /* an XML declaration is not for HTML */
    *text = start ? start : *text;
    return TEC_OK;
}

enum tec_status tec_graph_html(const struct tec_drawing *d, struct tec_arena *arena, FILE *out,
                               struct tec_error *err)
{
    const char *picture = NULL;
    TEC_TRY(draw(d, arena, &picture, err));
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>",
          out);
    tec_graph_escape(d->title, out);
    fprintf(out, "</title>\n<style>%s</style></head><body>\n<header><h1>", tec_page_style);
    tec_graph_escape(d->title, out);
    fputs("</h1><p>", out);
    tec_graph_escape(d->subtitle, out);
    fputs("</p><div class=\"tools\"><input id=\"search\" type=\"search\" placeholder=\"Search /\" "
          "aria-label=\"Search\"><button data-do=\"in\" aria-label=\"Zoom in\">+</button>"
          "<button data-do=\"out\" aria-label=\"Zoom out\">-</button>"
          "<button data-do=\"fit\">Fit</button></div></header>\n<main><div id=\"view\">",
          out);
    fputs(picture, out);
    fputs(
        "</div><aside aria-live=\"polite\"></aside></main>\n<section><p>Thick rim: hard deadline. "
        "Thick line: writes. Dashed: reads an earlier version. Dotted: a shared prefix, not "
        "copied. "
        "Click an item for its fields; drag and wheel, or arrows, + - 0, move the picture; / "
        "searches.</p>\n",
        out);
    if (d->measured)
        print_compiled(d->measured, out);
    if (d->commands)
        print_commands(d->commands, out);
    fputs("</section>\n", out);
    TEC_TRY(put_data(d, out, err));
    fprintf(out, "<script>%s</script>\n</body></html>\n", tec_page_script);
    return TEC_OK;
}
