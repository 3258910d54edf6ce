/* verify.h - runs a golden case and reports each comparison; one file a kind. */
#ifndef TEC_TESTS_JUDGE_VERIFY_H
#define TEC_TESTS_JUDGE_VERIFY_H

#include "base/arena.h"
#include "base/error.h"
#include "graph/model/weights.h"
#include "kernels/device.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* One case being judged. Owned by the caller of tec_verify_case. */
struct tec_verify {
    const char *dir;      /* folder of the case, without a trailing slash */
    json_t *json;         /* its case.json, an object */
    const char *dtype;    /* "f32" or "bf16" */
    enum tec_round round; /* these three as the fields of a pipeline's model */
    enum tec_quantize quantize, quantize_head;
    const char *root;    /* holds pipelines/; NULL: the current folder */
    const char *adapter; /* merged into the case's checkpoint; NULL: none */
    struct tec_device_options device;
    struct tec_heap *heap;
    struct tec_arena *arena;       /* lives as long as the case */
    FILE *out;                     /* JSON lines; NULL prints nothing */
    bool text;                     /* human lines in place of JSON lines */
    int checks, failed;            /* counted by the report functions */
    int unjudged;                  /* lines of tec_verify_unjudged */
    int not_compared;              /* tensors that the table of expected.c passes over */
    int in_part;                   /* tensors of which a part was compared */
    json_t *compared;              /* names of expected tensors whose values were compared */
    struct tec_stage_times *times; /* of launches, see stage_times.h; NULL: they are not kept */
};

/* Path of a shipped file or folder below pipelines/, such as "models/prompts.lua"; "" without
 * memory. */
const char *tec_verify_shipped(const struct tec_verify *v, const char *name);

/* One result line. For token, byte and event checks max_abs counts differences, rms and bound are
 * 0. `note` (may be NULL) is added as "note"; a tap taken from unfused ops passes tap = "unfused".
 */
void tec_verify_report(struct tec_verify *v, const char *check, double max_abs, double rms,
                       double bound, bool ok, const char *tap, const char *note);

/* What a dtype is not held to, by the rules of the case: a line with ok = true and why; no check.
 * A tensor of that name counts as compared. */
void tec_verify_unjudged(struct tec_verify *v, const char *check, const char *why);

/* Something could not be judged at all: a line with ok = false and the reason. A tensor of that
 * name counts as compared. */
void tec_verify_cannot(struct tec_verify *v, const char *check, const struct tec_error *err);

/* Compare n float values with float32 `want` by the rule of tests/golden/README.md: `tensor` is the
 * entry of case.json with err_fp32 and err_bf16 (and rms). Reports one line. */
void tec_verify_floats(struct tec_verify *v, const char *check, const float *got, const float *want,
                       size_t n, const json_t *tensor, const char *tap);

/* Count differing ids and report. A length difference counts each missing id. */
void tec_verify_ids(struct tec_verify *v, const char *check, const int *got, size_t n_got,
                    const int *want, size_t n_want);

/* The values of this tensor of the case's expected.safetensors were compared. Whoever reads them to
 * compare them says so: what nobody says so of fails the case. */
void tec_verify_compared(struct tec_verify *v, const char *tensor);

/* Of this tensor's `of` values `n` are compared, by a check of its own or one of many tensors: a
 * line with ok = true, how many and why not the others; no check. Nothing where n is `of`. The
 * tensor counts as compared. */
void tec_verify_part(struct tec_verify *v, const char *tensor, size_t n, size_t of,
                     const char *why);

/* A tensor that the engine does not make: a line with ok = true and why; no check. */
void tec_verify_not_compared(struct tec_verify *v, const char *tensor, const char *why);

/* Goes over the tensors of the case's expected.safetensors, where it has one: each was compared, or
 * the table not_compared.def says why not and it is counted as such, or a check fails with "nobody
 * compares NAME". */
void tec_verify_expected(struct tec_verify *v);

/* Judges everything the case names, reporting through `v`. A failure returned means that the case
 * could not be run; it is reported as not ok by the caller. */
#define VERIFY(family, kind, run) \
    enum tec_status tec_verify_##run(struct tec_verify *v, struct tec_error *err);
#include "tests/judge/verify.def"
#undef VERIFY

/* Runs the case in folder `dir`: reads case.json, finds family and kind, calls the function. An
 * unknown kind or a missing file is reported as not ok. */
enum tec_status tec_verify_case(struct tec_verify *v, const char *dir, struct tec_error *err);

#endif
