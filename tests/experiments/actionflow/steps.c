/* steps.c - counts the launches of a variant, and runs packed forwards command by command.
 *
 * Taken apart, every command is a capture of its own: nothing is fused, and the host waits for each
 * before it launches the next. In front of a layer's gathers it writes their list to the device
 * once more, as a host does that coordinates them. */
#include "tests/experiments/actionflow/steps.h"

#include "graph/run/launch/launch_rows.h"

#include <string.h>

/* Behind the last command: what became of the rows. */
static void read_rows(const struct tec_plan *plan, const struct tec_plan_part *part,
                      const struct tec_ring_launch *l)
{
    const struct tec_table_block *block = &part->choice;
    tec_device_download(plan->device, part->stream, block->host, block->device, block->size);
    for (int i = 0; i < l->in.entering + l->in.n; i++) {
        tec_read_row(&part->decode, i, l->in.rows[i]);
        l->tokens[i] = part->decode.tokens[i];
    }
}

/* The plan's own executor fills the tables and runs the first command. */
static void run_apart(const struct tec_actionflow_steps *s, struct tec_launch *launch)
{
    struct tec_plan_part *part = tec_plan_part(s->plan, TEC_PART_PACKED, 0);
    struct tec_capture *whole = part->capture;
    struct tec_replay *all = &launch->replay;
    part->capture = s->commands[0];
    tec_executor_launch(&s->own, launch);
    part->capture = whole;
    for (int i = 1; i < s->n && all->status == TEC_OK; i++) {
        struct tec_replay one = {.start_ns = 0};
        if (s->lists[i])
            tec_launch_upload(s->plan, part, &part->block);
        tec_device_replay(s->plan->device, s->commands[i], &one);
        all->end_ns = all->mark_ns[TEC_MARK_PACKED] = one.end_ns;
        all->status = one.status;
    }
    if (all->status == TEC_OK)
        read_rows(s->plan, part, &launch->packed);
}

static void launch(void *self, struct tec_launch *launch)
{
    struct tec_actionflow_steps *s = self;
    const struct tec_ring_rows *in = &launch->packed.in;
    bool packed = launch->kind == TEC_LAUNCH_packed, apart = packed && in->entering && s->apart;
    s->launches += apart && s->n                       ? s->n
                   : packed && s->plan->spec.interpret ? in->entering + in->n
                                                       : 1;
    if (apart && s->n)
        run_apart(s, launch);
    else
        tec_executor_launch(&s->own, launch);
}

static void chunk(void *self, const struct tec_launch *launch, int i, float *values)
{
    const struct tec_actionflow_steps *s = self;
    s->own.chunk(s->own.self, launch, i, values);
}

struct tec_executor tec_actionflow_steps_executor(struct tec_actionflow_steps *s,
                                                  struct tec_plan *plan,
                                                  const struct tec_executor *own)
{
    struct tec_executor e = *own;
    *s = (struct tec_actionflow_steps){.own = *own, .plan = plan};
    e.self = s;
    e.launch = launch;
    e.chunk = chunk;
    return e;
}

static bool is_gather(const struct tec_step *step)
{
    return step->kind == TEC_STEP_CALL && strcmp(step->call.label, "gather") == 0;
}

enum tec_status tec_actionflow_steps_record(struct tec_actionflow_steps *s, struct tec_arena *arena,
                                            struct tec_error *err)
{
    const struct tec_plan_part *part = tec_plan_part(s->plan, TEC_PART_PACKED, 0);
    const struct tec_program *program = &part->program;
    s->commands = TEC_NEW(arena, (size_t)program->n_steps + 1, struct tec_capture *);
    s->lists = TEC_NEW(arena, (size_t)program->n_steps + 1, bool);
    if (!s->commands || !s->lists)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d commands", program->n_steps);
    for (int i = 0; i < program->n_steps; i++) {
        if (program->steps[i].kind != TEC_STEP_CALL)
            continue;
        struct tec_capture **c = &s->commands[s->n];
        s->lists[s->n++] = is_gather(&program->steps[i]) && !is_gather(&program->steps[i - 1]);
        TEC_TRY(tec_capture_begin(c, s->plan->device, part->stream, arena, err));
        tec_program_record_piece(program, i, i + 1, *c);
        TEC_TRY(tec_capture_end(*c, err));
    }
    return TEC_OK;
}

void tec_actionflow_steps_close(struct tec_actionflow_steps *s)
{
    for (int i = 0; i < s->n; i++)
        tec_capture_free(s->commands[i]);
    s->n = 0;
}
