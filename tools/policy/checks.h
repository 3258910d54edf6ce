/* checks.h - a list of checks, each ok or not with a sentence, and how it is printed. */
#ifndef TEC_TOOLS_POLICY_CHECKS_H
#define TEC_TOOLS_POLICY_CHECKS_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

enum { TEC_MAX_CHECKS = 100000 };

struct tec_check {
    const char *name, *detail; /* owned by the arena; detail may be "" */
    bool ok;
    struct tec_check *next;
};

/* Zero-initialise, then set `arena`. */
struct tec_checks {
    struct tec_arena *arena; /* borrowed */
    struct tec_check *first, *last;
    int n, failed;
};

/* Append one. TEC_NO_MEMORY when the arena is full; TEC_INVALID beyond TEC_MAX_CHECKS. */
enum tec_status tec_checks_add(struct tec_checks *checks, bool ok, const char *name,
                               const char *detail, struct tec_error *err);

/* A line each: "ok    name  detail", or only those that are not ok. */
void tec_checks_print(const struct tec_checks *checks, bool failed_only, FILE *out);

/* One line: {"ok": ..., "checks": [{"name": ..., "ok": ..., "detail": ...}]}. */
enum tec_status tec_checks_json(const struct tec_checks *checks, FILE *out, struct tec_error *err);

#endif
