/* fields.h - the constructors of pipeline files and their fields as tables (fields.def). */
#ifndef TEC_GRAPH_LOAD_FIELDS_H
#define TEC_GRAPH_LOAD_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

enum tec_constructor {
    TEC_CON_NONE,
#define PLAIN(id, word, strct, doc) TEC_CON_##id,
#define KIND(id, word, strct, value, doc) TEC_CON_##id,
#define CALL(id, word, usage, doc) TEC_CON_##id,
#define FIELD(...)
#define THINGS(...)
#include "graph/load/fields.def"
#undef PLAIN
#undef KIND
#undef CALL
#undef FIELD
#undef THINGS
    TEC_CONSTRUCTORS
};

/* Type of the member that a field fills. */
enum tec_field_type {
    TEC_FIELD_NAME,   /* const char *: letters, digits and _ - . / */
    TEC_FIELD_STRING, /* const char * */
    TEC_FIELD_INT,    /* int */
    TEC_FIELD_INT64,  /* int64_t */
    TEC_FIELD_NUMBER, /* double */
    TEC_FIELD_BOOL,   /* bool */
    TEC_FIELD_BYTES,  /* int64_t: an integer, or "9GiB" */
    TEC_FIELD_WORD,   /* int: value of a word */
    TEC_FIELD_REF,    /* struct tec_ref */
    TEC_FIELD_REFS,   /* struct tec_refs */
    TEC_FIELD_TEXTS,  /* struct tec_texts, min to max of them */
    TEC_FIELD_STOPS,  /* the same, or one text */
    TEC_FIELD_SHAPE,  /* struct tec_ints, 1 to TEC_MAX_RANK */
    TEC_FIELD_AXIS,   /* struct tec_ints, ascending, at most TEC_MAX_POINTS */
    TEC_FIELD_RATIOS, /* struct tec_numbers, ascending, at most TEC_MAX_POINTS */
    TEC_FIELD_ONE,    /* the struct of a constructor */
    TEC_FIELD_OUT,    /* struct tec_decl_out */
    TEC_FIELD_SPAWN,  /* struct tec_decl_spawn */
    TEC_FIELD_WHEN,   /* bool: given as policy() */
    TEC_FIELD_OBJECT, /* json_t * */
    TEC_FIELD_ROBOT,  /* robots of the pipeline: the only one */
    TEC_FIELD_ROBOTS, /* the same, by name */
    TEC_FIELD_THINGS  /* array of a struct; its count beside it */
};

enum { TEC_MAX_POINTS = 64 }; /* of an axis: what policies can see */

/* An allowed word and its value, of which the first word is written and later ones are understood;
 * or a constructor's word and its enum tec_constructor. */
struct tec_word {
    const char *word;
    int value;
};

struct tec_field {
    enum tec_constructor owner;
    enum tec_field_type type;
    const char *name;
    size_t offset;       /* of the member */
    size_t count_offset; /* THINGS: of the int that counts */
    double min, max;
    const char *standard;         /* NULL: must be given; "": may be absent */
    const struct tec_word *words; /* ends with a NULL word */
    const char *doc;
};

struct tec_constructor_info {
    const char *word, *doc;
    const char *usage; /* of a CALL, else NULL */
    size_t size;       /* of the struct it fills; 0 for calls */
    size_t where;      /* offset of its struct tec_where */
    int kind;          /* value of member `kind`; -1 without one */
    size_t kind_offset;
};

/* Indexed by enum tec_constructor. */
extern const struct tec_constructor_info tec_constructors[TEC_CONSTRUCTORS];
extern const struct tec_field tec_fields[];
extern const int tec_n_fields;

/* The first field of a constructor; the following ones are consecutive while the owner is equal.
 * NULL when it has none. */
const struct tec_field *tec_load_fields_of(enum tec_constructor owner);
const struct tec_field *tec_field_find(enum tec_constructor owner, const char *name);
bool tec_field_more(const struct tec_field *field, enum tec_constructor owner);

/* By word, "kv.frame"; TEC_CON_NONE when there is no such table constructor or call. */
enum tec_constructor tec_constructor_find(const char *word);

/* The word of a value, or NULL; the value of a word, or -1. */
const char *tec_load_word_of(const struct tec_word *words, int value);
int tec_load_word_value(const struct tec_word *words, const char *word);

#endif
