/* fields.h - strict reading of JSON objects: each field known, of its type, in its range. */
#ifndef TEC_GRAPH_TRANSFORM_FIELDS_H
#define TEC_GRAPH_TRANSFORM_FIELDS_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* jansson's iterators want a pointer that is not const, though they do not write through it. */
static inline json_t *tec_json_iterable(const json_t *json)
{
    union {
        const json_t *given;
        json_t *wanted;
    } pointer = {json};
    return pointer.wanted;
}

/* One object being read. Every message begins with `where`; the first failure is kept and later
 * reads do nothing, so a reader asks for all fields and looks at `status` once. */
struct tec_fields {
    const json_t *object;
    const char *where;       /* "robots/aloha.lua: state.ops[2]" */
    struct tec_arena *arena; /* of strings and arrays given out */
    enum tec_status status;
    struct tec_error *err;
};

/* Begin. NULL and an empty array (an empty table of a script) are an empty object; anything else
 * that is no object fails. `names` are the n fields there may be: another one fails, with the
 * nearest. */
struct tec_fields tec_fields_open(const json_t *object, const char *const *names, size_t n,
                                  const char *where, struct tec_arena *arena,
                                  struct tec_error *err);

/* The field's value, or NULL when it is absent. */
const json_t *tec_fields_get(const struct tec_fields *f, const char *name);

/* A copy in the arena; `otherwise` (may be NULL) when absent. Refused: not a string, empty. */
const char *tec_fields_string(struct tec_fields *f, const char *name, const char *otherwise);

/* A whole number in low .. high, a finite number, a boolean; `otherwise` when absent. A number that
 * must be there is asked for with tec_fields_need before. */
int tec_fields_int(struct tec_fields *f, const char *name, int low, int high, int otherwise);
double tec_fields_number(struct tec_fields *f, const char *name, double otherwise);
bool tec_fields_bool(struct tec_fields *f, const char *name, bool otherwise);

/* One of n words: its index; `otherwise` when absent. */
int tec_fields_word(struct tec_fields *f, const char *name, const char *const *words, size_t n,
                    int otherwise);

/* An array, copied: *n gets its length, at most `most`. NULL and *n = 0 when absent. */
const double *tec_fields_numbers(struct tec_fields *f, const char *name, int most, int *n);
const char **tec_fields_strings(struct tec_fields *f, const char *name, int most, int *n);

/* The array itself, checked to be one of at most `most` elements; NULL when absent. */
const json_t *tec_fields_list(struct tec_fields *f, const char *name, int most);

/* Fail unless the field is there. */
void tec_fields_need(struct tec_fields *f, const char *name);

/* Record a failure of this object's meaning; the text follows "<where>: ". */
void tec_fields_fail(struct tec_fields *f, enum tec_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
