/* run.c - variants of a cell take turns: sequential and rotating on one ring, the gathering ones on
 * another, the others on rings of their own. At full size one ring is open at a time, since each
 * has the weights. */
#include "tests/experiments/actionflow/by_call.h"
#include "tests/experiments/actionflow/engines.h"

#include "tools/measure/bandwidth.h"
#include "tools/measure/machine.h"
#include "tools/measure/peak_gemm.h"

#include <math.h>
#include <string.h>

enum { READ_BYTES = 512 << 20, READ_TIMES = 5, GEMM_TIMES = 40 };

/* What hears the events of a frame. */
struct block {
    struct tec_actionflow_cell *cell;
    struct tec_actionflow_row *row;
    int frame, depth; /* counted from the block's first */
    bool counting;
    int64_t copied, launches, cpu_ns; /* of a frame */
};

struct cell_run {
    struct tec_actionflow *suite;
    struct tec_actionflow_cell *cell;
    struct block block;
    struct tec_actionflow_engine engine[TEC_ACTIONFLOW_VARIANTS];
};

/* --- what a frame did ------------------------------------------------------------------------ */

static void push(struct tec_samples *s, int64_t ns)
{
    if (s->n < s->room)
        s->ns[s->n++] = ns;
}

/* The first to say something of an observation is right; the others must agree. */
static void compare(struct block *b, const struct tec_event *e)
{
    struct tec_actionflow_cell *c = b->cell;
    int64_t entered = b->frame - e->frames;
    if (entered < 0)
        return;
    int input = (int)(entered % TEC_BENCH_INPUTS);
    size_t size = (size_t)c->stages * sizeof(float);
    if (!c->known[input])
        memcpy(c->said[input], e->chunk, size);
    c->known[input] = true;
    b->row->equal = b->row->equal && memcmp(c->said[input], e->chunk, size) == 0;
    b->row->compared++;
}

static void listen(void *self, const struct tec_event *e)
{
    struct block *b = self;
    if (!b->row || !e->ring)
        return;
    if (e->kind == TEC_EVENT_KV && (strcmp(e->what, "copy") == 0 || strcmp(e->what, "gather") == 0))
        b->copied += e->ring->bytes;
    if (e->kind == TEC_EVENT_RELEASE)
        compare(b, e);
}

static enum tec_status choose(void *self, const struct tec_frame_view *view,
                              struct tec_decision *decision, struct tec_error *err)
{
    const struct block *b = self;
    (void)view, (void)err;
    decision->depth[0] = b->depth;
    return TEC_OK;
}

static void count(struct block *b, const struct tec_frame_record *r)
{
    struct tec_actionflow_row *row = b->row;
    row->frames++;
    row->copied += b->copied;
    row->launches += b->launches;
    push(&row->frame, r->end_ns - r->start_ns);
    push(&row->cpu, b->cpu_ns);
    if (r->actions[0].release_ns >= 0) {
        row->actions++;
        push(&row->age, r->actions[0].age_us * 1000);
    }
    for (int i = 0; b->depth == 1 && i < r->n_launches; i++) {
        const struct tec_launch_record *l = &r->launches[i];
        push(strcmp(l->node, "packed") == 0 ? &row->prefill : &row->decode,
             l->end_ns - l->start_ns);
    }
}

/* --- turns ----------------------------------------------------------------------------------- */

static int frames_of(const struct tec_actionflow *s)
{
    int frames = s->frames ? s->frames : s->full ? 4 : s->quick ? 6 : 24;
    return (frames + s->rounds - 1) / s->rounds;
}

static enum tec_actionflow_variant ring_of(enum tec_actionflow_variant v)
{
    return v == TEC_ACTIONFLOW_SEQUENTIAL ? TEC_ACTIONFLOW_ROTATE
           : v == TEC_ACTIONFLOW_NAIVE    ? TEC_ACTIONFLOW_GATHER
                                          : v;
}

static bool has_ring(int v)
{
    return (int)ring_of((enum tec_actionflow_variant)v) == v;
}

/* As many forwards of warm-up for each: 2 K, or those that fill a full model's ring. */
static int warmup_of(const struct cell_run *run, int depth)
{
    int forwards = run->suite->full ? run->cell->stages : 2 * run->cell->stages;
    return depth == 1 ? forwards / run->cell->stages : forwards;
}

static enum tec_status run_block(struct cell_run *run, enum tec_actionflow_variant v,
                                 struct tec_error *err)
{
    struct tec_actionflow_engine *e = &run->engine[ring_of(v)];
    struct tec_engine *engine = e->base.opened.engine;
    struct block *b = &run->block;
    int depth = v == TEC_ACTIONFLOW_SEQUENTIAL ? 1 : run->cell->stages;
    const struct tec_planner planner = {.name = "depth", .self = b, .plan = choose};
    int warmup = warmup_of(run, depth), frames = warmup + frames_of(run->suite);
    *b = (struct block){.cell = run->cell, .row = &run->cell->rows[v], .depth = depth};
    e->steps.apart = v == TEC_ACTIONFLOW_NAIVE;
    tec_loop_restart(engine->loop);
    tec_loop_set_planner(engine->loop, &planner);
    for (b->frame = 0; b->frame < frames; b->frame++) {
        struct tec_frame_input input = e->input[b->frame % TEC_BENCH_INPUTS];
        int64_t launches = e->steps.launches, cpu = tec_clock_process();
        b->copied = 0;
        const struct tec_frame_record *r = tec_suite_ask(engine->loop, &input, NULL);
        TEC_TRY(tec_device_failure(engine->device, err));
        b->launches = e->steps.launches - launches;
        b->cpu_ns = tec_clock_process() - cpu;
        if (b->frame >= warmup)
            count(b, r);
    }
    tec_loop_set_planner(engine->loop, &tec_default_planner);
    b->row->ran = true;
    b->row->moved = tec_actionflow_moved(run->cell, v);
    b->row->plan_bytes = engine->plan->bytes.total;
    b->row = NULL;
    return TEC_OK;
}

static enum tec_status open_ring(struct cell_run *run, enum tec_actionflow_variant v,
                                 struct tec_error *err)
{
    struct tec_actionflow *s = run->suite;
    const struct tec_event_sink events = {listen, &run->block};
    TEC_TRY(tec_actionflow_open(&run->engine[v], s, run->cell, v, events, err));
    if (!s->machine)
        s->machine = tec_machine_json(run->engine[v].base.opened.engine->device);
    return s->machine ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a machine");
}

/* The rings of the variants from `first` on, before `end`, are open at once; all variants on them
 * take turns. */
static enum tec_status run_variants(struct cell_run *run, int first, int end, struct tec_error *err)
{
    struct tec_actionflow *s = run->suite;
    bool by_call = run->cell == &s->cells[s->by_call];
    for (int v = first; v < end; v++)
        if (has_ring(v))
            TEC_TRY(open_ring(run, (enum tec_actionflow_variant)v, err));
    for (int round = 0; round < s->rounds; round++)
        for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
            int ring = (int)ring_of((enum tec_actionflow_variant)v);
            if (ring >= first && ring < end)
                TEC_TRY(run_block(run, (enum tec_actionflow_variant)v, err));
        }
    for (int v = first; by_call && v < end; v++)
        if (has_ring(v) && tec_actionflow_has_pieces((enum tec_actionflow_variant)v))
            TEC_TRY(
                tec_actionflow_time_calls(s, &run->engine[v], (enum tec_actionflow_variant)v, err));
    for (int v = first; v < end; v++)
        tec_actionflow_close(&run->engine[v]);
    return TEC_OK;
}

static enum tec_status make_room(struct tec_actionflow *s, struct tec_actionflow_cell *c,
                                 struct tec_error *err)
{
    int frames = s->rounds * frames_of(s);
    for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
        struct tec_actionflow_row *r = &c->rows[v];
        bool alone = v == TEC_ACTIONFLOW_SEQUENTIAL;
        r->frame.room = r->age.room = r->cpu.room = frames;
        r->prefill.room = alone ? frames : 0;
        r->decode.room = alone ? frames * (c->stages - 1) : 0;
        struct tec_samples *const all[] = {&r->frame, &r->age, &r->cpu, &r->prefill, &r->decode};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
            all[k]->ns = TEC_NEW(s->call->arena, (size_t)all[k]->room + 1, int64_t);
            if (!all[k]->ns)
                return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of %d frames", frames);
        }
        r->equal = true;
    }
    return TEC_OK;
}

static enum tec_status run_cell(struct cell_run *run, struct tec_error *err)
{
    enum tec_status status = make_room(run->suite, run->cell, err);
    if (!run->suite->full && status == TEC_OK)
        status = run_variants(run, 0, TEC_ACTIONFLOW_VARIANTS, err);
    for (int v = TEC_ACTIONFLOW_VARIANTS - 1; run->suite->full && status == TEC_OK && v >= 0; v--)
        if (has_ring(v))
            status = run_variants(run, v, v + 1, err);
    for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++)
        tec_actionflow_close(&run->engine[v]);
    return status;
}

/* A device that does not read host memory has ceilings of its own: only its products are measured.
 */
static enum tec_status measure_ceilings(struct tec_actionflow *s, struct tec_error *err)
{
    struct tec_device_options options;
    struct tec_device *device;
    TEC_TRY(tec_cli_device_choice(s->call, &options, err));
    TEC_TRY(tec_device_open(&device, &options, s->call->heap, err));
    bool host = tec_device_reads_host(device);
    const struct tec_peak_gemm of = {.kernel = TEC_KERNEL_gemm_bf16,
                                     .rows = host ? 512 : 4096,
                                     .side = host ? 1024 : 8192,
                                     .times = GEMM_TIMES};
    enum tec_status status = tec_peak_gemm_measure(&s->flop_s, device, &of, s->call->heap, err);
    if (status == TEC_OK && host)
        status = tec_bandwidth_read(&s->read_s, tec_device_lanes(device), READ_BYTES, READ_TIMES,
                                    s->call->heap, err);
    tec_device_close(device);
    return status;
}

static void show(const struct tec_actionflow *s, int cell)
{
    if (s->call->progress)
        fprintf(stderr, "\r\033[Kbench: cell %d of %d: K %d, a prompt of %d tokens", cell + 1,
                s->n_cells, s->cells[cell].stages, s->cells[cell].text);
}

enum tec_status tec_actionflow_run(struct tec_actionflow *s, struct tec_error *err)
{
    struct cell_run *run = TEC_NEW(s->call->arena, 1, struct cell_run);
    if (!run)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the suite's rings");
    s->read_s = s->flop_s = (double)NAN;
    s->load_before = tec_machine_load();
    TEC_TRY(measure_ceilings(s, err));
    TEC_TRY(tec_actionflow_vision(&s->vision, s, err));
    for (int i = 0; i < s->n_cells; i++) {
        show(s, i);
        memset(run, 0, sizeof *run);
        run->suite = s;
        run->cell = &s->cells[i];
        TEC_TRY(run_cell(run, err));
        tec_actionflow_sum(s);
        TEC_TRY(tec_actionflow_write_json(s, err)); /* a long run leaves what it has */
    }
    s->load_after = tec_machine_load();
    if (s->call->progress)
        fputs("\r\033[K", stderr);
    return TEC_OK;
}
