/* drawing.h - a pipeline as boxes and arrows, before it is written in some picture language. */
#ifndef TEC_TOOLS_PICTURE_DRAWING_H
#define TEC_TOOLS_PICTURE_DRAWING_H

#include "graph/load/pipeline.h"
#include "graph/run/engine/engine.h"

#include <jansson.h>
#include <stdio.h>

enum tec_item_kind {
    TEC_ITEM_INPUT,
    TEC_ITEM_NODE,   /* a box */
    TEC_ITEM_KV,     /* a cylinder */
    TEC_ITEM_BUFFER, /* an output: a chunk of actions */
    TEC_ITEM_STREAM  /* an output: text */
};

enum { TEC_ITEM_LINES = 5 };

struct tec_item {
    enum tec_item_kind kind;
    char id[16];             /* "n3": unique in the drawing, safe in every language */
    const char *name, *word; /* as declared: "act", "action" */
    const char *lines[TEC_ITEM_LINES];
    int n_lines;
    bool hard, soft, culled;
    int layer; /* longest way from an input */
};

enum tec_link_kind {
    TEC_LINK_READ,
    TEC_LINK_WRITE,
    TEC_LINK_PREV,   /* reads the previous frame's value: dashed */
    TEC_LINK_SHARED, /* a prefix that is not copied: dotted */
    TEC_LINK_AFTER,  /* an order without data */
    TEC_LINK_PACKED, /* one launch for both */
    TEC_LINK_TEXT,   /* the newest finished text, of an earlier version: dashed */
    TEC_LINK_OR      /* what is read until there is such a text */
};

struct tec_link {
    int from, to; /* indices of items */
    enum tec_link_kind kind;
};

/* What a node took, measured: milliseconds, and its share of the device's time; negative = not
 * known. */
struct tec_heat {
    const char *node;
    double p50_ms, p99_ms, share;
};

struct tec_drawing {
    const struct tec_pipeline *pipeline;
    const char *title, *subtitle;
    struct tec_item *items;
    struct tec_link *links;
    int n_items, n_links;
    const struct tec_measured *measured; /* NULL = not compiled */
    const char *commands;                /* of its parts, as tec_commands_print; NULL = none */
    const struct tec_heat *heat;         /* [n_heat] */
    int n_heat;
};

/* Everything is owned by the arena, or borrowed from the pipeline. */
enum tec_status tec_drawing_make(struct tec_drawing *drawing, const struct tec_pipeline *pipeline,
                                 struct tec_arena *arena, struct tec_error *err);

/* "input", "kv", ...; "reads", "writes", ... */
const char *tec_item_word(enum tec_item_kind kind);
const char *tec_link_word(enum tec_link_kind kind);

/* Writers, one file each. Their output is complete and ends with a line end. */
void tec_graph_dot(const struct tec_drawing *drawing, FILE *out);
void tec_graph_mermaid(const struct tec_drawing *drawing, FILE *out);
enum tec_status tec_graph_json(const struct tec_drawing *drawing, FILE *out, struct tec_error *err);
enum tec_status tec_graph_html(const struct tec_drawing *drawing, struct tec_arena *arena,
                               FILE *out, struct tec_error *err);
/* Where that picture's items stand, and the ways of its links, for whoever draws them again:
 * {width, height, items: [[name, kind, x, y, w, h]], links: [[x, y, x, y, ...]]}. A new reference;
 * NULL without memory. */
json_t *tec_graph_shapes(const struct tec_drawing *drawing, struct tec_arena *arena,
                         struct tec_error *err);
/* {parts: [{part, commands, barriers, activations}], bytes: {...}} of what was measured; a new
 * reference. */
json_t *tec_graph_compiled_json(const struct tec_measured *m);
void tec_graph_text(const struct tec_drawing *drawing, FILE *out);

/* Text for XML and HTML: & < > " are escaped, control characters become spaces. */
void tec_graph_escape(const char *text, FILE *out);

#endif
