/* lists.h - what members of a declaration are made of: references, lists, and where fields are
 * written. */
#ifndef TEC_GRAPH_LOAD_LISTS_H
#define TEC_GRAPH_LOAD_LISTS_H

#include "graph/load/diagnostics.h"

#include <stdbool.h>

/* A name that refers to something declared. */
struct tec_ref {
    const char *name; /* NULL = not given */
    int index;        /* into the array of what is referred to; -1 = not given */
    bool prev;        /* kv = prev "ring": the state the previous frame left */
};

struct tec_refs {
    int n;
    struct tec_ref *item;
};

struct tec_ints {
    int n;
    const int *item;
};

struct tec_texts {
    int n;
    const char *const *item;
};

struct tec_numbers {
    int n;
    const double *item;
};

/* Where the fields that a thing was given are written: in a file, in another one that changes it,
 * or on the command line. */
struct tec_decl_places {
    int n;
    const struct tec_decl_place {
        const char *name;
        struct tec_where where;
    } * item;
};
/* Of the field; `whole` where it was not given. */
struct tec_where tec_decl_place(const struct tec_decl_places *places, const char *field,
                                struct tec_where whole);

#endif
