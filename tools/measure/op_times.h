/* op_times.h - the calls of a captured part timed one by one, beside what each computes and moves.
 *
 * On a CPU the part's commands are recorded again with a mark behind each, so that every call ends
 * for all lanes before the next one begins; what a mark takes is measured and taken off. On
 * another device a second capture writes its clock behind each (tec_capture_stamped): of calls that
 * are one kernel the first one has the time and the others 0. */
#ifndef TEC_TOOLS_MEASURE_OP_TIMES_H
#define TEC_TOOLS_MEASURE_OP_TIMES_H

#include "graph/compile/work.h"

enum { TEC_OP_TIMES_ROOM = 48 };

/* Calls of one stage and label. */
struct tec_op_time {
    enum tec_stage stage;
    char label[24]; /* of the program */
    int64_t calls;
    double ns; /* of its calls, of each the median over passes */
    struct tec_cost cost;
};

struct tec_op_times {
    int n;
    struct tec_op_time items[TEC_OP_TIMES_ROOM]; /* a last one takes what is more */
    double launch_ns; /* of whole launches, taken in between: the lowest tenth of passes is below */
    double sum_ns;    /* the same of all calls of a pass; of a branch that runs beside others the
                       * longer of both */
};

/* One call: its layer counts how often its label came before in the same turn of its stage. */
struct tec_op_call {
    enum tec_stage stage;
    const char *label;
    int layer;
    double ns; /* median over passes */
    struct tec_cost cost;
    enum tec_kernel_id kernel; /* on a CPU: the command's; elsewhere TEC_KERNEL_COUNT */
    bool rounded;              /* of a product: its rows hold bf16 values */
};

/* The part to time, and the callback that launches it. One call of `launch` runs the part once as
 * it is, which also fills its tables. */
struct tec_op_times_of {
    const struct tec_plan *plan;
    const struct tec_plan_part *part;
    struct tec_work_size size;
    int passes;
    void (*launch)(void *user, struct tec_replay *replay);
    void (*each)(void *user, const struct tec_op_call *call); /* every call, behind all; or NULL */
    void *user;
};

/* TEC_UNSUPPORTED where the device cannot. */
enum tec_status tec_op_times_measure(struct tec_op_times *out, const struct tec_op_times_of *of,
                                     struct tec_heap *heap, struct tec_error *err);

#endif
