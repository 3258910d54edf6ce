/* svg.c - writes an SVG picture as text. */
#include "tools/picture/svg.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 16384 };

static void put(struct tec_svg *svg, const char *text, size_t n)
{
    if (svg->refused)
        return;
    if (n >= svg->size - svg->used) {
        size_t size = svg->size ? svg->size : FIRST_SIZE;
        while (size - svg->used <= n && size <= SIZE_MAX / 4)
            size *= 2;
        char *grown = TEC_NEW(svg->arena, size, char);
        svg->refused = !grown || size - svg->used <= n;
        if (svg->refused)
            return;
        if (svg->used > 0)
            memcpy(grown, svg->text, svg->used);
        svg->text = grown;
        svg->size = size;
    }
    memcpy(svg->text + svg->used, text, n);
    svg->used += n;
}

static void put_text(struct tec_svg *svg, const char *text)
{
    put(svg, text, strlen(text));
}

/* Hundredths, by hand: printf would write a comma in some locales. */
static void put_number(struct tec_svg *svg, double x)
{
    char text[32];
    if (!(fabs(x) < 1e9))
        x = x > 0.0 ? 1e9 : x < 0.0 ? -1e9 : 0.0;
    long hundredths = lround(x * 100.0), whole = labs(hundredths) / 100;
    int rest = (int)(labs(hundredths) % 100);
    const char *sign = hundredths < 0 ? "-" : "";
    if (rest == 0)
        snprintf(text, sizeof text, "%s%ld", sign, whole);
    else if (rest % 10 == 0)
        snprintf(text, sizeof text, "%s%ld.%d", sign, whole, rest / 10);
    else
        snprintf(text, sizeof text, "%s%ld.%02d", sign, whole, rest);
    put_text(svg, text);
}

/* Bytes of the UTF-8 character at `s` (`code` filled), 0 when there is none: overlong forms,
 * surrogates and cut sequences are none. */
static size_t character(const char *s, uint32_t *code)
{
    const unsigned char *b = (const unsigned char *)s;
    size_t n = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    if (n == 0 || b[0] > 0xf4)
        return 0;
    *code = n == 1 ? b[0] : b[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (b[i] & 0x3fu);
    }
    bool overlong = (n == 3 && *code < 0x800) || (n == 4 && *code < 0x10000);
    bool outside = *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff);
    return overlong || outside ? 0 : n;
}

static bool xml_allows(uint32_t code)
{
    if (code < 0x20)
        return code == '\t' || code == '\n' || code == '\r';
    return code != 0xfffe && code != 0xffff;
}

static void put_escaped(struct tec_svg *svg, const char *s)
{
    while (*s) {
        uint32_t code = 0;
        size_t n = character(s, &code);
        if (n == 0 || !xml_allows(code))
            put_text(svg, "\xef\xbf\xbd");
        else if (code == '&')
            put_text(svg, "&amp;");
        else if (code == '<')
            put_text(svg, "&lt;");
        else if (code == '>')
            put_text(svg, "&gt;");
        else if (code == '"')
            put_text(svg, "&quot;");
        else if (code == '\'')
            put_text(svg, "&#39;");
        else
            put(svg, s, n);
        s += n ? n : 1;
    }
}

size_t tec_svg_columns(const char *text)
{
    size_t columns = 0;
    while (*text) {
        uint32_t code = 0;
        size_t n = character(text, &code);
        bool wide =
            n && ((code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                  (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                  (code >= 0xff00 && code <= 0xff60) || (code >= 0x1f300 && code <= 0x3fffd));
        columns += wide ? 2 : 1;
        text += n ? n : 1;
    }
    return columns;
}

static void put_attribute(struct tec_svg *svg, const char *name, double value)
{
    put_text(svg, " ");
    put_text(svg, name);
    put_text(svg, "=\"");
    put_number(svg, value);
    put_text(svg, "\"");
}

static void put_class(struct tec_svg *svg, const char *class_name)
{
    if (!class_name)
        return;
    put_text(svg, " class=\"");
    put_escaped(svg, class_name);
    put_text(svg, "\"");
}

void tec_svg_begin(struct tec_svg *svg, struct tec_arena *arena, double width, double height,
                   const char *css)
{
    *svg = (struct tec_svg){.arena = arena};
    put_text(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    put_attribute(svg, "width", width);
    put_attribute(svg, "height", height);
    put_text(svg, " viewBox=\"0 0 ");
    put_number(svg, width);
    put_text(svg, " ");
    put_number(svg, height);
    put_text(svg, "\">\n<style>\n");
    put_text(svg, css);
    put_text(svg, "</style>\n");
}

enum tec_status tec_svg_end(struct tec_svg *svg, const char **text, size_t *n,
                            struct tec_error *err)
{
    put_text(svg, "</svg>\n");
    *n = svg->used;
    put(svg, "", 1);
    if (svg->refused)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an SVG picture beyond %zu bytes",
                        svg->used);
    *text = svg->text;
    return TEC_OK;
}

static void open_group(struct tec_svg *svg, const char *class_name, const char *id,
                       const char *title)
{
    put_text(svg, "<g");
    put_class(svg, class_name);
    if (id) {
        put_text(svg, " tabindex=\"0\" id=\"");
        put_escaped(svg, id);
        put_text(svg, "\"");
    }
    put_text(svg, ">");
    if (title) {
        put_text(svg, "<title>");
        put_escaped(svg, title);
        put_text(svg, "</title>");
    }
    put_text(svg, "\n");
}

void tec_svg_group(struct tec_svg *svg, const char *class_name, const char *title)
{
    open_group(svg, class_name, NULL, title);
}

void tec_svg_item(struct tec_svg *svg, const char *class_name, const char *id, const char *title)
{
    open_group(svg, class_name, id, title);
}

void tec_svg_group_end(struct tec_svg *svg)
{
    put_text(svg, "</g>\n");
}

void tec_svg_rect(struct tec_svg *svg, double x, double y, double width, double height,
                  double radius, const char *class_name)
{
    put_text(svg, "<rect");
    put_class(svg, class_name);
    put_attribute(svg, "x", x);
    put_attribute(svg, "y", y);
    put_attribute(svg, "width", width);
    put_attribute(svg, "height", height);
    if (radius > 0.0)
        put_attribute(svg, "rx", radius);
    put_text(svg, "/>\n");
}

void tec_svg_line(struct tec_svg *svg, double x1, double y1, double x2, double y2,
                  const char *class_name)
{
    put_text(svg, "<line");
    put_class(svg, class_name);
    put_attribute(svg, "x1", x1);
    put_attribute(svg, "y1", y1);
    put_attribute(svg, "x2", x2);
    put_attribute(svg, "y2", y2);
    put_text(svg, "/>\n");
}

void tec_svg_text(struct tec_svg *svg, double x, double y, const char *class_name, const char *text)
{
    put_text(svg, "<text");
    put_class(svg, class_name);
    put_attribute(svg, "x", x);
    put_attribute(svg, "y", y);
    put_text(svg, ">");
    put_escaped(svg, text);
    put_text(svg, "</text>\n");
}

void tec_svg_path(struct tec_svg *svg, const double *points, size_t n, bool closed,
                  const char *class_name)
{
    put_text(svg, "<path");
    put_class(svg, class_name);
    put_text(svg, " d=\"");
    for (size_t i = 0; i < n; i++) {
        put_text(svg, i == 0 ? "M" : "L");
        put_number(svg, points[2 * i]);
        put_text(svg, " ");
        put_number(svg, points[2 * i + 1]);
    }
    put_text(svg, closed ? "Z\"/>\n" : "\"/>\n");
}
