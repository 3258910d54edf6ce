/* sides.c - a page of two sides as HTML: tables of cells, bars as SVG. */
#include "tools/picture/sides.h"

#include "tools/picture/drawing.h"
#include "tools/picture/page.h"

enum { COLUMNS = 500, LANE = 60, GAP = 16 }; /* of the timeline; heights in its own units */

void tec_sides_begin(FILE *out, const char *title, const char *words)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>",
          out);
    tec_graph_escape(title, out);
    fprintf(out, "</title>\n<style>%s</style></head><body>\n<header><h1>", tec_sides_style);
    tec_graph_escape(title, out);
    fputs("</h1><p>", out);
    tec_graph_escape(words, out);
    fputs("</p></header>\n<main>\n", out);
}

void tec_sides_end(FILE *out)
{
    fputs("</main>\n</body></html>\n", out);
}

/* --- tables ----------------------------------------------------------------------------------- */

static void put_value(FILE *out, const json_t *value)
{
    if (json_is_string(value))
        tec_graph_escape(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.3f", json_real_value(value));
    else
        fputs(json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-", out);
}

static void put_cell(FILE *out, const json_t *cell)
{
    const json_t *text = json_is_object(cell) ? json_object_get(cell, "text") : cell;
    const json_t *bar = json_object_get(cell, "bar");
    bool mark = json_is_true(json_object_get(cell, "mark"));
    fprintf(out, "<td%s>%s", json_is_string(text) ? "" : " class=\"n\"", mark ? "<b>" : "");
    put_value(out, text);
    fputs(mark ? "</b>" : "", out);
    if (bar)
        fprintf(out,
                "<svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\">"
                "<rect width=\"%.2f\" height=\"6\"/></svg>",
                100.0 * json_number_value(bar));
    fputs("</td>", out);
}

void tec_sides_table(FILE *out, const char *heading, const json_t *heads, const json_t *rows,
                     const char *none)
{
    const json_t *row, *cell;
    size_t i, k;
    fputs("<section><h2>", out);
    tec_graph_escape(heading, out);
    fputs("</h2>\n", out);
    if (json_array_size(rows) == 0) {
        fprintf(out, "<p>%s</p></section>\n", none);
        return;
    }
    fputs("<div class=\"wide\"><table><thead><tr>", out);
    json_array_foreach(heads, i, cell)
    {
        fputs("<th scope=\"col\">", out);
        tec_graph_escape(json_string_value(cell), out);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
    json_array_foreach(rows, i, row)
    {
        fputs("<tr>", out);
        json_array_foreach(row, k, cell) put_cell(out, cell);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div></section>\n", out);
}

/* --- the timeline ----------------------------------------------------------------------------- */

/* Frames that share a column of the timeline, as one. */
static struct tec_sides_frame longest(const struct tec_sides_frame *frames, size_t n)
{
    struct tec_sides_frame all = frames[0];
    for (size_t i = 1; i < n; i++) {
        const struct tec_sides_frame *f = &frames[i];
        all.before_ms = f->before_ms > all.before_ms ? f->before_ms : all.before_ms;
        all.after_ms = f->after_ms > all.after_ms ? f->after_ms : all.after_ms;
        all.differs |= f->differs;
    }
    return all;
}

static void put_title(FILE *out, const struct tec_sides_frame *all, int64_t last)
{
    fprintf(out, "<title>frame %lld", (long long)all->number);
    if (last != all->number)
        fprintf(out, " to %lld", (long long)last);
    if (all->before_ms >= 0.0)
        fprintf(out, ", was %.3f ms", all->before_ms);
    if (all->after_ms >= 0.0)
        fprintf(out, ", is %.3f ms", all->after_ms);
    fprintf(out, "%s</title>", all->differs ? ", differs" : "");
}

/* One column: the one at x = `at`. */
static void put_column(FILE *out, const struct tec_sides_frame *all, int64_t last, size_t at,
                       double most)
{
    fputs("<g>", out);
    put_title(out, all, last);
    if (all->before_ms >= 0.0 && most > 0.0)
        fprintf(out, "<rect class=\"was\" x=\"%zu.1\" y=\"%.2f\" width=\".8\" height=\"%.2f\"/>",
                at, LANE * (1.0 - all->before_ms / most), LANE * all->before_ms / most);
    if (all->after_ms >= 0.0 && most > 0.0)
        fprintf(out, "<rect class=\"is\" x=\"%zu.1\" y=\"%d\" width=\".8\" height=\"%.2f\"/>", at,
                LANE + GAP, LANE * all->after_ms / most);
    if (all->differs)
        fprintf(out, "<rect class=\"mark\" x=\"%zu\" y=\"%d\" width=\"1\" height=\"%d\"/>", at,
                LANE + 4, GAP - 8);
    fputs("</g>\n", out);
}

void tec_sides_timeline(FILE *out, const char *heading, const struct tec_sides_frame *frames,
                        size_t n)
{
    size_t columns = n < COLUMNS ? n : COLUMNS;
    double most = 0.0;
    for (size_t i = 0; i < n; i++) {
        most = frames[i].before_ms > most ? frames[i].before_ms : most;
        most = frames[i].after_ms > most ? frames[i].after_ms : most;
    }
    fputs("<section><h2>", out);
    tec_graph_escape(heading, out);
    fprintf(out,
            "</h2>\n<p>Above: what was. Below, downwards: what is. A mark between them: not the "
            "same. The longest bar is %.3f ms.</p>\n<svg class=\"time\" role=\"img\" "
            "aria-label=\"Frames on both sides\" viewBox=\"0 0 %zu %d\" "
            "preserveAspectRatio=\"none\">\n",
            most, columns ? columns : 1, 2 * LANE + GAP);
    for (size_t c = 0; c < columns; c++) {
        size_t from = c * n / columns, to = (c + 1) * n / columns;
        const struct tec_sides_frame all = longest(&frames[from], to - from);
        put_column(out, &all, frames[to - 1].number, c, most);
    }
    fputs("</svg></section>\n", out);
}
