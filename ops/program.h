/* program.h - a list of op calls over tensors: what nodes lower to and captures are made of.
 * Tensors and calls are ids in arrays. Not thread-safe; built and compiled by one owner. */
#ifndef TEC_OPS_PROGRAM_H
#define TEC_OPS_PROGRAM_H

#include "base/arena.h"
#include "ops/op.h"

/* float32 [rows, ld], row-major; `cols` columns are real. Planned tensors get their address from
 * the memory plan; fixed ones live elsewhere and only take part in the search for hazards. */
struct tec_tensor {
    const char *name;
    int rows, cols, ld;
    const int *live;   /* live rows, in device memory */
    unsigned char *at; /* fixed: given; planned: set by the plan */
    size_t size;       /* bytes */
    bool fixed;
    bool rounded, plain; /* some call rounds what it writes here; some call does not */
    int first, last;     /* calls that use it first and last; -1 = unused */
};

enum tec_step_kind { TEC_STEP_CALL, TEC_STEP_MARK, TEC_STEP_REPEAT, TEC_STEP_REPEAT_END };

struct tec_step {
    enum tec_step_kind kind;
    int mark;
    bool cut;                /* a piece of the program may begin here */
    bool branch;             /* it may run concurrently to the steps behind that are not of it */
    bool joins;              /* the branch ends in front of it; set by the pass `branch` */
    const int *count, *stop; /* repeat */
    struct tec_call call;
};

struct tec_program {
    struct tec_arena *arena; /* borrowed */
    const char *name;
    struct tec_tensor *tensors;
    struct tec_step *steps;
    int n_tensors, n_steps, tensor_room, step_room;
    bool cuts, branches;    /* the next step is a cut; next steps are of the branch */
    size_t planned;         /* bytes of the activation arena it needs, after the plan */
    enum tec_status status; /* the first failure while building; kept with its message */
    struct tec_error err;
};

void tec_program_init(struct tec_program *program, struct tec_arena *arena, const char *name);

/* A planned tensor; its id, or -1 with the failure remembered. `name` is not copied: it must live
 * as long as the program. `live` is a device pointer. */
int tec_program_tensor(struct tec_program *program, const char *name, int rows, int cols,
                       const int *live);

/* A tensor that lives elsewhere: `at` in device memory, `size` bytes. */
int tec_program_fixed(struct tec_program *program, const char *name, void *at, size_t size,
                      int rows, int cols, int ld, const int *live);

/* Append a call; its infer runs at once. `label` is copied into the arena. */
void tec_program_call(struct tec_program *program, const struct tec_call *call);

void tec_program_mark(struct tec_program *program, int mark);
void tec_program_repeat(struct tec_program *program, const int *count, const int *stop);
void tec_program_repeat_end(struct tec_program *program);

/* The first failure while building, with its message in *err (NULL is allowed). */
enum tec_status tec_program_status(const struct tec_program *program, struct tec_error *err);

/* The program may be recorded in pieces, one of which begins with the next step: never inside a
 * repeat. What lives from one piece to the next stays where it is. */
void tec_program_cut(struct tec_program *program);

/* Steps from now on are of the branch (tec_capture_branch), or not. */
void tec_program_branch(struct tec_program *program, bool branch);

/* Append the steps from `from` to before `to` to a capture; tensors must have addresses. */
void tec_program_record_piece(const struct tec_program *program, int from, int to,
                              struct tec_capture *capture);

/* A call with no tensors yet: all ids -1. */
struct tec_call tec_call_of(enum tec_op_id op, const char *label);

#endif
