/* loader.h - what the files of graph/load share; others include graph/load/pipeline.h.
 *
 * A load goes: script.c or json.c read the sources into values; overlay.c applies --set; build.c
 * and set.c fill the structs by the field tables; resolve.c turns names into indices; check.c
 * judges the graph. Every step reports into one list and goes on. */
#ifndef TEC_GRAPH_LOAD_LOADER_H
#define TEC_GRAPH_LOAD_LOADER_H

#include "base/arena.h"
#include "graph/load/fields.h"
#include "graph/load/pipeline.h"
#include "graph/load/source.h"

#include <jansson.h>

enum { TEC_MAX_SOURCES = 32, TEC_MAX_VALUES = 100000, TEC_MAX_DEPTH = 32 };

enum tec_decl_value_kind {
    TEC_VALUE_BAD, /* something was reported about it already: leave it alone */
    TEC_VALUE_BOOL,
    TEC_VALUE_INT,
    TEC_VALUE_NUMBER,
    TEC_VALUE_STRING,
    TEC_VALUE_LIST,
    TEC_VALUE_TABLE
};

/* The lists of things. */
enum { TEC_MODELS, TEC_INPUTS, TEC_RESOURCES, TEC_NODES, TEC_PARTITIONS, TEC_SCOPES };

/* A value of a file as it was written, before it is checked. */
struct tec_decl_value {
    enum tec_decl_value_kind kind;
    enum tec_constructor tag; /* of the constructor it went through */
    int source, open;         /* a table: its brace; open = -1 when unknown */
    struct tec_where at;      /* a table of a JSON form: where it was first written */
    bool flag;                /* of a BOOL; of a BAD one: `string` says why, nothing was reported */
    int64_t integer;
    double number;
    const char *string;
    int n;          /* entries */
    int64_t weight; /* entries of all tables below, each time they are used */
    struct tec_decl_entry *entries;
};

/* A member of a table, or of a list (key NULL). It keeps the table that it was written in, since
 * overlays mix entries of several. */
struct tec_decl_entry {
    const char *key;
    struct tec_decl_value *value;
    int source, open;
    int item;             /* which one without a key, from 0 */
    struct tec_where set; /* given by --set; file NULL = not */
};

struct tec_loader {
    const struct tec_load_options *options;
    struct tec_heap *heap;
    struct tec_arena *arena;   /* the pipeline's */
    struct tec_arena *scratch; /* of this load */
    struct tec_diagnostics *d;
    struct tec_source sources[TEC_MAX_SOURCES];
    int n_sources;
    int n_values;
    bool out_of_memory;
    struct tec_pipeline *pipeline;
    /* the values behind the things of the pipeline, by index */
    const struct tec_decl_entry *models, *inputs, *resources, *nodes, *partitions;
    void *lists[TEC_SCOPES]; /* the same arrays as in the pipeline, to be written to */
    struct tec_decl_value *root;
    /* Mistakes that were reported already and whose consequences are not reported again. */
    const struct tec_field *misspelt[16]; /* fields that an unknown one probably meant */
    int n_misspelt;
    bool torn[TEC_SCOPES]; /* by list: some of its things are not there, or have no name */
    bool broken;           /* errors were found before the graph was looked at */
};

/* Is the memory there that was asked for? Else the load fails at its end. */
static inline bool tec_loader_has(struct tec_loader *ld, bool memory)
{
    ld->out_of_memory |= !memory;
    return memory;
}

/* --- sources (files.c) --- */

/* Read options->path or take options->text as the first source; of a checkpoint folder the text
 * that derive.h makes of it. */
enum tec_status tec_loader_open(struct tec_loader *ld, struct tec_error *err);
/* Find `path` beside the file or under the root and add it; *index is its source, -1 on failure.
 * TEC_NOT_FOUND: there is no such file there. */
enum tec_status tec_loader_add(struct tec_loader *ld, const char *path, int *index,
                               struct tec_error *err);
/* Read the robot description at `path`: sets description, file, path and root. A description that
 * needs a checkpoint is left unread. */
enum tec_status tec_loader_robot(struct tec_loader *ld, struct tec_decl_robot *out,
                                 const char *path, struct tec_error *err);

/* Where in the robot's own file that stands which `message`, behind the file's name, tells of; the
 * variant's own words before those outside. False: no place is known (robot_place.c). */
bool tec_loader_robot_place(struct tec_loader *ld, const struct tec_decl_robot *robot,
                            const char *message, const char *variant, struct tec_where *where);

/* --- values (value.c) --- */

struct tec_decl_value *tec_decl_value_new(struct tec_loader *ld, enum tec_decl_value_kind kind);
/* A boolean, a number or a string; BAD for anything else and NULL. NULL when memory ends. */
struct tec_decl_value *tec_decl_value_from_scalar(struct tec_loader *ld, const json_t *json);
/* Copy with room for `n` entries; NULL without memory. */
struct tec_decl_value *tec_decl_value_copy(struct tec_loader *ld, const struct tec_decl_value *v,
                                           int n);
const struct tec_decl_entry *tec_decl_value_find(const struct tec_decl_value *table,
                                                 const char *key);
const char *tec_decl_value_string(const struct tec_decl_value *table,
                                  const char *key); /* or NULL */
/* As JSON without tags and places; NULL without memory. */
json_t *tec_decl_value_to_json(const struct tec_decl_value *v);
/* "a string", "the number 3", for messages. */
const char *tec_decl_value_describe(struct tec_loader *ld, const struct tec_decl_value *v);

/* These return the place where an entry's value, its key, or a table is written. */
struct tec_where tec_where_value(const struct tec_loader *ld, const struct tec_decl_entry *e);
struct tec_where tec_where_key(const struct tec_loader *ld, const struct tec_decl_entry *e);
struct tec_where tec_where_thing(const struct tec_loader *ld, const struct tec_decl_entry *e);
/* Returns the place of the value of a field of a thing; without such a field, of the thing. */
struct tec_where tec_where_field(const struct tec_loader *ld, const struct tec_decl_entry *thing,
                                 const char *field);

/* --- steps --- */

/* Evaluate source 0 and everything it includes. NULL when there is nothing to go on with. */
struct tec_decl_value *tec_load_script(struct tec_loader *ld, enum tec_status *status,
                                       struct tec_error *err);
struct tec_decl_value *tec_load_json(struct tec_loader *ld, int source);
/* Changes on top of a base; both stay as they are. */
struct tec_decl_value *tec_overlay(struct tec_loader *ld, struct tec_decl_value *base,
                                   struct tec_decl_value *overlay);
struct tec_decl_value *tec_overlay_set(struct tec_loader *ld, struct tec_decl_value *root);
/* Fill ld->pipeline; sets ld->root when there is something to check. */
void tec_build(struct tec_loader *ld, struct tec_decl_value *root);
/* Set the member of one field of the struct `out`, which is no struct itself. */
void tec_set_field(struct tec_loader *ld, const struct tec_field *f, const struct tec_decl_entry *e,
                   void *out);
/* expected.c: reports E011 for a value (NULL when it was reported before); what it must be, for
 * messages. */
struct tec_diagnostic *tec_set_wrong(struct tec_loader *ld, const struct tec_field *f,
                                     const struct tec_decl_entry *e);
const char *tec_set_expected(struct tec_loader *ld, const struct tec_field *f);
/* Did an unknown field look like this one? */
bool tec_build_misspelt(const struct tec_loader *ld, enum tec_constructor con, const char *field);
void tec_resolve(struct tec_loader *ld);
/* streams.c: streams of text that nodes read. The default of stream { }. Room for them behind the
 * inputs; whether a name that a node reads is such a stream; and, of the resolved pipeline, what is
 * wrong with them. */
void tec_set_stream(struct tec_loader *ld, const struct tec_decl_entry *e,
                    struct tec_decl_out *place);
void tec_make_streams(struct tec_loader *ld);
bool tec_load_stream(struct tec_loader *ld, struct tec_ref *ref, const struct tec_decl_entry *e);
void tec_check_streams(struct tec_loader *ld);
void tec_check_memory(struct tec_loader *ld); /* check_memory.c: where memories are */
void tec_check_spawns(struct tec_loader *ld); /* spawns.c: triggers */
/* text_keys.c: actions on keys of texts, of a graph whose triggers are known. */
void tec_check_text_keys(struct tec_loader *ld);
/* robots.c: fields `robot` and `robots`; inputs that are of no robot; the robots of chains. */
void tec_set_robot(struct tec_loader *ld, const struct tec_field *f, const struct tec_decl_entry *e,
                   void *out);
void tec_set_robots(struct tec_loader *ld, const struct tec_field *f,
                    const struct tec_decl_entry *e, void *out);
void tec_check_robots(struct tec_loader *ld);
void tec_bind_robots(struct tec_loader *ld, struct tec_decl_chain *chains);
void tec_check_graph(struct tec_loader *ld);
/* drafts.c: what a draft may be, and its prefill behind the file's nodes. */
void tec_check_drafts(struct tec_loader *ld);
void tec_add_drafts(struct tec_loader *ld);
/* Fill the pipeline's chains; of a pipeline without errors. */
void tec_divide_chains(struct tec_loader *ld);
void tec_check_remember(struct tec_loader *ld, int node); /* of a remember node, else nothing */
void tec_keep_places(struct tec_loader *ld); /* places.c: what is judged after the load */
void tec_check_sizes(struct tec_loader *ld);
void tec_check_superseded(struct tec_loader *ld); /* of a pipeline whose chains are made */
void tec_check_devices(struct tec_loader *ld);    /* devices.c: `where` of models */
void tec_check_round_int8(struct tec_loader *ld); /* round_int8.c: 8 bits of activations */
/* refusals.c: graphs that mean nothing (E071) or are too large (E072). Reports all of them, of a
 * pipeline whose chains are known. */
void tec_refuse(struct tec_loader *ld);

#endif
