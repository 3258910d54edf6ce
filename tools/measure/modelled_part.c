/* modelled_part.c - the kernels of a captured part, each with the work of its commands. */
#include "tools/measure/modelled.h"

#include <string.h>

/* What a call of a part works on. */
struct call_facts {
    bool is, in_loop, branch, joins;
    enum tec_stage stage;
    const char *label;
    struct tec_cost cost;
    struct tec_counts counts; /* those of its piece of the part */
};

struct modelling {
    struct call_facts *calls; /* by step of its program, the command of its capture */
    struct tec_counts counts; /* of the last call */
    struct tec_modelled_part *out;
    const struct tec_chip *chip;
    struct tec_arena *arena;
    bool failed;
    /* Of the commands in hand: */
    struct tec_cost cost;
    const struct call_facts *first;
    int starts; /* so far */
    /* A branch that has not ended, in a stage: us of what is beside it and of its own, and of both
     * as a share of the device that they fill; today's, and with changes. */
    bool away;
    enum tec_stage stage;
    double ways[2][2], filled[2];
};

/* Counts are the visitor's: they are copied where they are not the last call's. */
static void take_counts(struct modelling *m, const struct tec_counts *counts)
{
    size_t n = (size_t)counts->n;
    if (m->counts.items && m->counts.n == counts->n &&
        memcmp(m->counts.items, counts->items, n * sizeof *counts->items) == 0)
        return;
    struct tec_live *items = TEC_NEW(m->arena, n + 1, struct tec_live);
    m->failed |= !items;
    if (items && n)
        memcpy(items, counts->items, n * sizeof *items);
    m->counts = (struct tec_counts){items, items ? counts->n : 0};
}

static void take_call(void *user, const struct tec_call_work *work)
{
    struct modelling *m = user;
    struct call_facts *c = &m->calls[work->step];
    take_counts(m, work->counts);
    c->is = true;
    c->stage = work->stage;
    c->label = work->call->label;
    c->cost = work->cost;
    c->counts = m->counts;
    c->branch = work->branch;
    c->joins = work->joins;
}

/* The live rows of an attention, and the keys that they see. */
static void see(struct tec_grid_work *work, const struct tec_counts *counts, const int *rows,
                int max_rows)
{
    struct tec_live live = tec_counts_live(counts, rows, max_rows);
    work->rows = live.rows;
    work->keys = live.rows > 0 ? (double)live.visible / (double)live.rows : 0.0;
    work->together = live.keys > 0 ? (double)live.visible / (double)live.keys : 1.0;
}

/* The live rows and keys of a start: of products and attention alone. */
static struct tec_grid_work work_of(const struct modelling *m, const struct tec_grid *grid)
{
    const struct tec_counts *counts = &m->first->counts;
    struct tec_grid_work work = {.cost = m->cost, .in_loop = m->first->in_loop};
    if (grid->choice.tile != GEMM_NONE || grid->writes_terms) {
        const struct tec_gemm_args *a = grid->args;
        int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows) - grid->first;
        work.rows = rows < 0 ? 0 : rows < grid->rows ? rows : grid->rows;
    } else if (tec_grid_attends(grid)) {
        const struct tec_attention_args *a = grid->args;
        see(&work, counts, a->rows, a->max_rows);
    } else if (tec_grid_sums(grid)) {
        const struct tec_mass_args *a = grid->args;
        see(&work, counts, a->rows, a->max_rows);
    }
    return work;
}

static bool alike(const struct tec_modelled_kernel *k, const struct call_facts *c,
                  const struct tec_grid *g)
{
    return k->stage == c->stage && k->grid.kernel == g->kernel && k->grid.what == g->what &&
           memcmp(k->grid.blocks, g->blocks, sizeof g->blocks) == 0 &&
           strcmp(k->label, c->label) == 0;
}

/* Of 64 kinds there is room at first, then for twice as many. */
static struct tec_modelled_kernel *kernel_of(struct modelling *m, const struct tec_grid *g)
{
    enum { ROOM = 64 };
    struct tec_modelled_part *out = m->out;
    for (int i = 0; i < out->n; i++)
        if (alike(&out->kernels[i], m->first, g))
            return &out->kernels[i];
    if (out->n % ROOM == 0 && (out->n & (out->n - 1)) == 0) {
        size_t room = out->n ? (size_t)out->n * 2 : ROOM;
        struct tec_modelled_kernel *more = TEC_NEW(m->arena, room, struct tec_modelled_kernel);
        if (!more)
            return NULL;
        if (out->n)
            memcpy(more, out->kernels, (size_t)out->n * sizeof *more);
        out->kernels = more;
    }
    out->kernels[out->n] = (struct tec_modelled_kernel){
        .stage = m->first->stage, .label = m->first->label, .grid = *g};
    return &out->kernels[out->n++];
}

static void add_sum(struct tec_modelled_sum *sum, double us, double changed)
{
    sum->starts++;
    sum->us += us;
    sum->changed_us += changed;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The share of the device's places for blocks that a start fills, on average over its waves. */
static double filled(const struct modelling *m, const struct tec_grid_time *time)
{
    double places = (double)m->chip->processors * time->resident * time->waves;
    double share = places > 0.0 ? (double)time->busy / places : 1.0;
    return share < 1.0 ? share : 1.0;
}

static void take_way(struct modelling *m, const struct tec_grid_time *now,
                     const struct tec_grid_time *then)
{
    bool own = m->first->branch;
    m->ways[own][0] += now->us;
    m->ways[own][1] += then->us;
    m->filled[0] += now->us * filled(m, now);
    m->filled[1] += then->us * filled(m, then);
}

/* The branch's end: the longer of both ways, and not less than both fill the device. */
static void join(struct modelling *m)
{
    double us[2];
    for (int i = 0; i < 2; i++)
        us[i] = larger(larger(m->ways[0][i], m->ways[1][i]), m->filled[i]);
    struct tec_modelled_sum *sums[] = {&m->out->sums[m->stage], &m->out->sums[TEC_STAGE_COUNT]};
    for (int i = 0; m->away && i < 2; i++) {
        sums[i]->us += us[0];
        sums[i]->changed_us += us[1];
    }
    m->away = false;
    memset(m->ways, 0, sizeof m->ways);
    memset(m->filled, 0, sizeof m->filled);
}

static void take_grid(void *user, const struct tec_grid *grid)
{
    static const struct tec_changes none = {0}, all = {.loop_overlap = true};
    struct modelling *m = user;
    struct tec_grid_work work = work_of(m, grid);
    struct tec_grid_time now = tec_grid_time_of(m->out->peak, m->chip, grid, &work, &none);
    struct tec_grid_time then = tec_grid_time_of(m->out->peak, m->chip, grid, &work, &all);
    struct tec_modelled_kernel *k = kernel_of(m, grid);
    if (!k) {
        m->failed = true;
        return;
    }
    if (k->calls++ == 0)
        k->time = now;
    k->us += now.us;
    k->changed_us += then.us;
    if (m->away)
        take_way(m, &now, &then);
    add_sum(&m->out->sums[k->stage], m->away ? 0.0 : now.us, m->away ? 0.0 : then.us);
    add_sum(&m->out->sums[TEC_STAGE_COUNT], m->away ? 0.0 : now.us, m->away ? 0.0 : then.us);
}

/* How many commands a kernel does is known when it has been visited, so the first visit counts. */
static void take_nothing(void *user, const struct tec_grid *grid)
{
    (void)user, (void)grid;
}

static void find_loops(const struct tec_program *program, struct call_facts *calls)
{
    bool open = false;
    for (int i = 0; i < program->n_steps; i++) {
        open = program->steps[i].kind == TEC_STEP_REPEAT ||
               (open && program->steps[i].kind != TEC_STEP_REPEAT_END);
        calls[i].in_loop = open;
    }
}

/* What lies between the commands of a chain is neither written nor read again. */
static struct tec_cost cost_of(const struct call_facts *calls, int n)
{
    struct tec_cost cost = {0};
    for (int i = 0; i < n; i++)
        tec_cost_add(&cost, &calls[i].cost);
    for (int i = 0; i + 1 < n; i++) {
        int64_t between = calls[i].cost.written;
        cost.written -= between;
        cost.read -= between < cost.read ? between : cost.read;
    }
    return cost;
}

enum tec_status tec_modelled_make(struct tec_modelled_part *out, const struct tec_roofline *r,
                                  const struct tec_plan_part *part, const struct tec_peak *peak,
                                  struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_program *program = &part->program;
    struct tec_work_size size = tec_roofline_size(r, part);
    struct modelling m = {.out = out, .chip = tec_chip_of(peak), .arena = arena};
    *out = (struct tec_modelled_part){.part = part, .peak = peak};
    TEC_TRY(tec_work_check(r->plan, part, &size, err));
    if (!m.chip)
        return TEC_OK;
    m.calls = TEC_NEW(arena, (size_t)program->n_steps + 1, struct call_facts);
    if (!m.calls)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to model a part");
    tec_work_visit(r->plan, part, &size, take_call, &m);
    find_loops(program, m.calls);
    struct tec_cuda_facts facts = tec_chip_facts(m.chip);
    for (int i = 0, n; i < program->n_steps && !m.failed; i += n) {
        n = tec_grids_at(part->capture, i, &facts, take_nothing, NULL);
        m.first = &m.calls[i];
        if (!m.first->is)
            continue;
        if (m.first->joins)
            join(&m);
        if (m.first->branch && !m.away)
            m.stage = m.first->stage;
        m.away |= m.first->branch;
        m.cost = cost_of(m.first, n);
        tec_grids_at(part->capture, i, &facts, take_grid, &m);
    }
    join(&m);
    return m.failed ? tec_fail(err, TEC_NO_MEMORY, "no memory to model a part") : TEC_OK;
}
