/* diagnostics.h - located errors and warnings about a file people write, collected and printed.
 *
 * A list grows while a file is checked, so that every error of a run is reported at once. Codes and
 * their meaning: graph/load/codes.def. Not thread-safe: one owner at a time. */
#ifndef TEC_GRAPH_LOAD_DIAGNOSTICS_H
#define TEC_GRAPH_LOAD_DIAGNOSTICS_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

/* A place in a source. Lines and columns count from 1 (columns in bytes); 0 = not known. `end` is
 * the column behind the last marked byte. */
struct tec_where {
    const char *file; /* as the user named it; "--set" for the command line; NULL = none */
    int line, col, end;
};

enum tec_severity { TEC_ERROR, TEC_WARNING };

/* CODE(name, severity, meaning): every code a check may report. */
enum tec_code {
#define CODE(name, severity, meaning) TEC_##name,
#include "graph/load/codes.def"
#undef CODE
    TEC_CODES
};

enum { TEC_MAX_ALSO = 4, TEC_MAX_DIAGNOSTICS = 200 };

struct tec_diagnostic {
    struct tec_where where;
    enum tec_severity severity;
    enum tec_code code;
    const char *message; /* one line */
    const char *help;    /* one line, or NULL */
    bool secret;         /* what stands there may hold a password: its line is not printed */
    int n_also;
    struct {
        struct tec_where where;
        const char *message;
    } also[TEC_MAX_ALSO];
};

struct tec_source_text; /* what a caret line is cut from */

/* Initialise with tec_diagnostics_init. Texts are copied into the list's own arena. */
struct tec_diagnostics {
    struct tec_arena arena;
    struct tec_diagnostic *list; /* in order of report until sorted */
    int n, n_errors, n_warnings; /* n <= TEC_MAX_DIAGNOSTICS, the other two count all */
    int capacity;
    bool out_of_memory; /* a report was lost */
    struct tec_source_text *sources;
};

void tec_diagnostics_init(struct tec_diagnostics *d, struct tec_heap *heap);
void tec_diagnostics_finish(struct tec_diagnostics *d);

/* Report. The severity is the code's. Returns the entry, to add help and places to, or NULL when
 * the list is full or memory is out (the counters are still right). Valid until the next add. */
struct tec_diagnostic *tec_diagnostics_add(struct tec_diagnostics *d, enum tec_code code,
                                           struct tec_where where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Add to an entry; NULL is allowed. */
void tec_diagnostics_help(struct tec_diagnostics *d, struct tec_diagnostic *entry,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Help: the name that was meant, which is returned; NULL and no help where none is near. */
const char *tec_diagnostics_meant(struct tec_diagnostics *d, struct tec_diagnostic *entry,
                                  const char *word, const char *const *names, int n);
void tec_diagnostics_also(struct tec_diagnostics *d, struct tec_diagnostic *entry,
                          struct tec_where where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Keep a copy of a source, so that text output can show its lines. */
void tec_diagnostics_source(struct tec_diagnostics *d, const char *file, const char *text,
                            size_t n);

/* Take the last entry of a code at a place back: another says more. */
void tec_diagnostics_take_back(struct tec_diagnostics *d, enum tec_code code,
                               struct tec_where where);

/* By file in order of appearance, then line, column, code. */
void tec_diagnostics_sort(struct tec_diagnostics *d);

enum tec_diagnostics_format { TEC_PRINT_TEXT, TEC_PRINT_JSON, TEC_PRINT_GITHUB };

/* Text: "error[E010]: ..." with the line and carets. JSON: one object a line, {file, line, col,
 * severity, code, message, help} (col 0 where only the line is known). GitHub: workflow commands.
 */
void tec_diagnostics_print(const struct tec_diagnostics *d, enum tec_diagnostics_format format,
                           FILE *out);

/* Are all errors E070, E071 or E072, if there are any? */
bool tec_only_refused(const struct tec_diagnostics *d);

/* tec_fail and tec_context of base/error.h, with the place in front: "file:line: ...". */
enum tec_status tec_where_fail(struct tec_error *err, enum tec_status status,
                               const struct tec_where *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
enum tec_status tec_where_context(struct tec_error *err, enum tec_status status,
                                  const struct tec_where *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* For callers that stop at the first error: its place and sentence, and how many there are.
 * TEC_MALFORMED; TEC_UNSUPPORTED where tec_only_refused. `path` stands where a place has no file.
 */
enum tec_status tec_diagnostics_first(const struct tec_diagnostics *d, const char *path,
                                      struct tec_error *err);

/* "E010"; a sentence on what the code means; a code by its name, TEC_CODES when unknown. */
const char *tec_code_name(enum tec_code code);
const char *tec_code_meaning(enum tec_code code);
enum tec_code tec_code_find(const char *name);

#endif
