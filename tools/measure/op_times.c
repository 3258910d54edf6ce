/* op_times.c - times the calls of a captured part one by one, beside what each of them computes and
 * moves: on a CPU by marks behind each, elsewhere by stamps of the device's clock. */
#include "tools/measure/op_times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS = TEC_MAX_MARKS - 4, SECOND = MARKS /* a mark right behind that of the first call */ };

/* One call: the item that it counts for, and its times. */
struct timed {
    int item, layer;
    int step; /* of the program: the command of the part's capture */
    enum tec_stage stage;
    const char *label;
    struct tec_cost cost;
    enum tec_kernel_id kernel;
    bool rounded;
    bool branch, joins; /* of a branch; behind its end */
    int64_t *ns;        /* one time for each pass */
};

struct work {
    struct tec_op_times *out;
    struct tec_arena arena;
    struct timed *calls;
    int n, room, n_commands;
    bool differs; /* the commands do not match the calls */
    struct tec_capture **captures;
    int n_captures;
    struct tec_capture *stamped; /* all of them, on a device with a clock; else NULL */
    int64_t *stamped_ns;         /* by command */
    /* Of each pass: the launch, all calls, and what a mark itself takes (0 where there are none).
     */
    int64_t *launch_ns, *sum_ns, *mark_ns;
};

static bool is_item(const struct tec_op_time *item, enum tec_stage stage, const char *label)
{
    return item->stage == stage && strncmp(item->label, label, sizeof item->label - 1) == 0;
}

static int item_of(struct tec_op_times *t, enum tec_stage stage, const char *label)
{
    for (int i = 0; i < t->n; i++)
        if (is_item(&t->items[i], stage, label))
            return i;
    if (t->n == TEC_OP_TIMES_ROOM)
        return TEC_OP_TIMES_ROOM - 1;
    bool last = t->n == TEC_OP_TIMES_ROOM - 1;
    t->items[t->n] = (struct tec_op_time){.stage = stage};
    snprintf(t->items[t->n].label, sizeof t->items[t->n].label, "%s", last ? "others" : label);
    return t->n++;
}

static void count_call(void *user, const struct tec_call_work *c)
{
    struct work *w = user;
    (void)c;
    w->room++;
}

/* How often the label came before in this turn of its stage, which begins where the stage's first
 * label comes again: steps of an action are unrolled. */
static int layer_of(const struct work *w, enum tec_stage stage, const char *label)
{
    const char *first = NULL;
    int n = 0;
    for (int i = 0; i < w->n - 1; i++) {
        const struct timed *c = &w->calls[i];
        if (c->stage != stage)
            continue;
        first = first ? first : c->label;
        n = strcmp(c->label, first) == 0 ? 0 : n; /* another turn */
        n += strcmp(c->label, label) == 0;
    }
    return first && strcmp(first, label) == 0 ? 0 : n;
}

static void take_call(void *user, const struct tec_call_work *c)
{
    struct work *w = user;
    struct timed *call = &w->calls[w->n++];
    call->step = c->step;
    call->label = c->call->label;
    call->stage = c->stage;
    call->cost = c->cost;
    call->kernel = TEC_KERNEL_COUNT;
    call->branch = c->branch;
    call->joins = c->joins;
    call->layer = layer_of(w, c->stage, c->call->label);
    call->item = item_of(w->out, c->stage, c->call->label);
    struct tec_op_time *item = &w->out->items[call->item];
    item->calls++;
    tec_cost_add(&item->cost, &c->cost);
}

static bool is_rounded(enum tec_kernel_id kernel, const void *args)
{
    const struct tec_gemm_args *gemm = args;
    if (kernel == TEC_KERNEL_gemm_int8)
        return gemm->digits == 1;
    return kernel == TEC_KERNEL_gemm_bf16 && gemm->rounded;
}

static void add_command(void *user, enum tec_kernel_id kernel, const void *args, bool barrier,
                        const char *label)
{
    struct work *w = user;
    int at = w->n_commands++;
    (void)barrier;
    if (at >= w->n || strcmp(w->calls[at].label, label) != 0) {
        w->differs = true;
        return;
    }
    w->calls[at].kernel = kernel;
    w->calls[at].rounded = is_rounded(kernel, args);
    struct tec_capture *c = w->captures[at / MARKS];
    tec_capture_add(c, kernel, args, true, label);
    tec_capture_mark(c, at % MARKS);
    if (at == 0)
        tec_capture_mark(c, SECOND);
}

static enum tec_status list_calls(struct work *w, const struct tec_op_times_of *of,
                                  struct tec_error *err)
{
    TEC_TRY(tec_work_check(of->plan, of->part, &of->size, err));
    tec_work_visit(of->plan, of->part, &of->size, count_call, w);
    w->calls = TEC_NEW(&w->arena, (size_t)w->room + 1, struct timed);
    w->n_captures = (w->room + MARKS - 1) / MARKS;
    w->captures = TEC_NEW(&w->arena, (size_t)w->n_captures + 1, struct tec_capture *);
    if (!w->calls || !w->captures)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of %d calls", w->room);
    tec_work_visit(of->plan, of->part, &of->size, take_call, w);
    for (int i = 0; i < w->n; i++) {
        w->calls[i].ns = TEC_NEW(&w->arena, (size_t)of->passes, int64_t);
        if (!w->calls[i].ns)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of %d calls", w->n);
    }
    return TEC_OK;
}

static enum tec_status record_stamped(struct work *w, const struct tec_op_times_of *of,
                                      struct tec_error *err)
{
    int n = tec_capture_commands(of->part->capture);
    w->stamped_ns = TEC_NEW(&w->arena, (size_t)n + 1, int64_t);
    if (!w->stamped_ns)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of %d commands", n);
    return tec_capture_stamped(&w->stamped, of->part->capture, &w->arena, err);
}

static enum tec_status record(struct work *w, const struct tec_op_times_of *of,
                              struct tec_error *err)
{
    for (int i = 0; i < w->n_captures; i++)
        TEC_TRY(
            tec_capture_begin(&w->captures[i], of->plan->device, of->part->stream, &w->arena, err));
    tec_capture_visit(of->part->capture, add_command, w);
    if (w->differs || w->n_commands != w->n)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: %d commands are not its %d calls",
                        of->part->name, w->n_commands, w->n);
    for (int i = 0; i < w->n_captures; i++)
        TEC_TRY(tec_capture_end(w->captures[i], err));
    return TEC_OK;
}

/* All calls of a pass; of a branch and what is beside it the longer one. */
static int64_t sum_of(const struct work *w, const struct tec_op_times_of *of, int pass)
{
    bool branches = tec_device_branches(of->plan->device) && of->part->stream == TEC_STREAM_MAIN;
    int64_t sum = 0, ways[2] = {0, 0};
    bool away = false;
    for (int c = 0; c < w->n; c++) {
        const struct timed *t = &w->calls[c];
        if (away && t->joins) {
            sum += ways[1] > ways[0] ? ways[1] : ways[0];
            ways[0] = ways[1] = 0;
            away = false;
        }
        away |= t->branch && branches;
        *(away ? &ways[t->branch] : &sum) += t->ns[pass];
    }
    return sum + (ways[1] > ways[0] ? ways[1] : ways[0]);
}

static enum tec_status pass_stamped(struct work *w, const struct tec_op_times_of *of, int at,
                                    struct tec_error *err)
{
    struct tec_replay replay = {.start_ns = 0};
    of->launch(of->user, &replay);
    w->launch_ns[at] = replay.end_ns - replay.start_ns;
    replay = (struct tec_replay){.start_ns = 0};
    tec_device_replay(of->plan->device, w->stamped, &replay);
    TEC_TRY(tec_device_failure(of->plan->device, err));
    TEC_TRY(tec_capture_times(w->stamped, w->stamped_ns, err));
    for (int c = 0; c < w->n; c++)
        w->calls[c].ns[at] = w->stamped_ns[w->calls[c].step];
    w->sum_ns[at] = sum_of(w, of, at);
    return TEC_OK;
}

static enum tec_status pass(struct work *w, const struct tec_op_times_of *of, int at,
                            struct tec_error *err)
{
    struct tec_replay replay = {.start_ns = 0};
    of->launch(of->user, &replay);
    w->launch_ns[at] = replay.end_ns - replay.start_ns;
    for (int i = 0; i < w->n_captures; i++) {
        int first = i * MARKS, n = w->n - first < MARKS ? w->n - first : MARKS;
        replay = (struct tec_replay){.start_ns = 0};
        tec_device_replay(of->plan->device, w->captures[i], &replay);
        TEC_TRY(replay.status);
        int64_t from = replay.start_ns;
        for (int c = 0; c < n; c++) {
            w->sum_ns[at] += w->calls[first + c].ns[at] = replay.mark_ns[c] - from;
            from = replay.mark_ns[c];
            if (first + c > 0)
                continue;
            w->mark_ns[at] = replay.mark_ns[SECOND] - from;
            from = replay.mark_ns[SECOND];
        }
    }
    return tec_device_failure(of->plan->device, err);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double median(int64_t *ns, int n)
{
    qsort(ns, (size_t)n, sizeof *ns, ascending);
    int64_t middle = ns[n / 2];
    return (double)middle;
}

/* Of passes of milliseconds, half of which lose their processor for a while on a busy machine. */
static double undisturbed(int64_t *ns, int n)
{
    qsort(ns, (size_t)n, sizeof *ns, ascending);
    int tenth = n / 10;
    return (double)ns[tenth];
}

/* What a mark takes if nothing else comes in between. */
static double least(const int64_t *ns, int n)
{
    int64_t x = ns[0];
    for (int i = 1; i < n; i++)
        x = ns[i] < x ? ns[i] : x;
    return (double)x;
}

/* A time without that of the marks in it. */
static double less(double ns, double marks)
{
    return ns > marks ? ns - marks : 0.0;
}

static enum tec_status run(struct work *w, const struct tec_op_times_of *of, struct tec_error *err)
{
    bool cpu = strcmp(tec_device_kind(of->plan->device), "cpu") == 0;
    TEC_TRY(list_calls(w, of, err));
    TEC_TRY(cpu ? record(w, of, err) : record_stamped(w, of, err));
    w->launch_ns = TEC_NEW(&w->arena, (size_t)of->passes, int64_t);
    w->sum_ns = TEC_NEW(&w->arena, (size_t)of->passes, int64_t);
    w->mark_ns = TEC_NEW(&w->arena, (size_t)of->passes, int64_t);
    if (!w->launch_ns || !w->sum_ns || !w->mark_ns)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d passes", of->passes);
    for (int i = 0; i < of->passes; i++)
        TEC_TRY((cpu ? pass : pass_stamped)(w, of, i, err));
    double mark = least(w->mark_ns, of->passes);
    for (int i = 0; i < w->n; i++) {
        const struct timed *c = &w->calls[i];
        const struct tec_op_call call = {.stage = c->stage,
                                         .label = c->label,
                                         .layer = c->layer,
                                         .ns = less(median(c->ns, of->passes), mark),
                                         .cost = c->cost,
                                         .kernel = c->kernel,
                                         .rounded = c->rounded};
        w->out->items[c->item].ns += call.ns;
        if (of->each)
            of->each(of->user, &call);
    }
    w->out->sum_ns = less(undisturbed(w->sum_ns, of->passes), mark * w->n);
    w->out->launch_ns = undisturbed(w->launch_ns, of->passes);
    return TEC_OK;
}

enum tec_status tec_op_times_measure(struct tec_op_times *out, const struct tec_op_times_of *of,
                                     struct tec_heap *heap, struct tec_error *err)
{
    struct work w = {.out = out};
    *out = (struct tec_op_times){.n = 0};
    tec_arena_init(&w.arena, heap);
    enum tec_status status = run(&w, of, err);
    for (int i = 0; i < w.n_captures && w.captures; i++)
        tec_capture_free(w.captures[i]);
    tec_capture_free(w.stamped);
    tec_arena_finish(&w.arena);
    return status;
}
