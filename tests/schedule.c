/* schedule.c - proves that a request's result never depends on the schedule: actions and texts of
 * random legal schedules and of every policy equal, byte by byte, kernels called one by one for
 * each request alone.
 *
 * The schedules vary shared and private prefills, k + k and 2k, batches, groups, request slots,
 * order, threads and partitions. */
#include "policies/host/policy.h"
#include "tests/device_facts.h"
#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <glob.h>

enum { OBSERVATIONS = 6, FRAMES = 32, SEEDS = 2, ACTIONS = TINY_HORIZON * 32, MAX_STEPS = 512 };

static struct tec_error err;

/* Emulated kernels are slow, so there are fewer frames, and no variety is demanded of them. */
static bool emulated(void)
{
    return strcmp(tap.device, "cpu") != 0;
}

static int observations(void)
{
    return emulated() ? OBSERVATIONS / 2 : OBSERVATIONS;
}

static int frames(void)
{
    return emulated() ? FRAMES / 4 : FRAMES;
}

/* The result of each observation alone. */
struct reference {
    struct tiny_observation seen;
    float chunk[ACTIONS];
    int text[TINY_NEW], n_text;
};
static struct reference references[OBSERVATIONS];
static size_t chunk_bytes;

/* --- the reference: no capture, no team, no batch -------------------------------------------- */

static void call_kernel(void *user, enum tec_kernel_id kernel, const void *args, bool barrier,
                        const char *label)
{
    (void)barrier, (void)label;
    tec_kernel_infos[kernel].run(user, args, (struct tec_part){0, 1});
}

/* Captures of one step each. */
struct steps {
    struct tec_arena arena;
    struct tec_capture *capture[MAX_STEPS];
    int n;
};

static void record_steps(struct tiny *t, const struct tec_program *program, struct steps *s)
{
    tec_arena_init(&s->arena, &tiny_heap);
    s->n = 0;
    for (int i = 0; i < program->n_steps; i++) {
        const struct tec_call *call = &program->steps[i].call;
        struct tec_capture *one;
        if (program->steps[i].kind != TEC_STEP_CALL)
            continue;
        REQUIRE(s->n < MAX_STEPS);
        REQUIRE(tec_capture_begin(&one, t->device, TEC_STREAM_MAIN, &s->arena, &err) == TEC_OK);
        tec_ops[call->op].op->record(program, call, one);
        REQUIRE(tec_capture_end(one, &err) == TEC_OK);
        s->capture[s->n++] = one;
    }
}

/* Run each step of a part's program by itself, a repeat once: through the kernel table, or as a
 * replay where there is none. */
static void run_steps(struct tiny *t, const struct steps *s)
{
    const struct tec_kernels *kernels = device_kernels_of(t->device);
    struct tec_replay replay = {0};
    for (int i = 0; i < s->n; i++) {
        if (kernels) {
            struct tec_kernels table = *kernels;
            tec_capture_visit(s->capture[i], call_kernel, &table);
        } else {
            tec_device_replay(t->device, s->capture[i], &replay);
            REQUIRE(replay.status == TEC_OK);
        }
    }
}

static void drop_steps(struct steps *s)
{
    for (int i = 0; i < s->n; i++)
        tec_capture_free(s->capture[i]);
    tec_arena_finish(&s->arena);
}

/* Write NaN wherever a launch leaves results. */
static void poison_bytes(const struct tiny *t, void *memory, size_t size)
{
    static unsigned char ones[1 << 16];
    memset(ones, 0xFF, sizeof ones);
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < sizeof ones ? size - at : sizeof ones;
        tec_device_upload(t->device, TEC_STREAM_MAIN, (unsigned char *)memory + at, ones, n);
    }
}

static void poison(const struct tiny *t)
{
    for (int i = 0; i < t->plan->n_parts; i++)
        poison_bytes(t, t->plan->activations[t->plan->parts[i].stream],
                     t->plan->parts[i].program.planned);
    for (int i = 0; i < t->plan->n_streams; i++) {
        poison_bytes(t, t->plan->towers[i][0].k[0], t->plan->towers[i][0].bytes);
        poison_bytes(t, t->plan->towers[i][0].v[0], t->plan->towers[i][0].bytes);
    }
    for (int l = 0; l < t->plan->space.shape.layers; l++) {
        poison_bytes(t, t->plan->space.k[l], t->plan->space.bytes);
        poison_bytes(t, t->plan->space.v[l], t->plan->space.bytes);
    }
}

static struct steps decode_steps, frame_steps;

static void run_text(struct tiny *t, struct reference *r, int region, int rows)
{
    struct tec_plan_part *part = tec_plan_part(t->plan, TEC_PART_DECODE, 1);
    const struct tec_prefix_input *o = &r->seen.input.chains[0].prefix;
    struct tec_decode_table *table = &part->decode;
    struct tec_row_state row, *list[1] = {&row};
    struct tec_replay replay = {0};
    int token, made;
    tec_row_start(&row, t->plan, region, rows, o->ids[o->n_text - 1], 0, TINY_NEW, -1);
    /* No step at all: only the table is filled. */
    tec_launch_decode(t->plan, part, list, 1, 0, &token, &made, &replay);
    REQUIRE(made == 0);
    for (r->n_text = 0; r->n_text < TINY_NEW; r->n_text++) {
        int at = r->n_text % table->max_tokens; /* a launch ends when its table is full */
        table->produced[0] = at;
        tec_device_upload(t->device, TEC_STREAM_MAIN, part->block.device, part->block.host,
                          part->block.size);
        run_steps(t, &decode_steps);
        tec_device_download(t->device, TEC_STREAM_MAIN, part->block.host, part->block.device,
                            part->block.size);
        REQUIRE(table->produced[0] == at + 1);
        r->text[r->n_text] = table->tokens[at];
    }
}

static void run_alone(struct tiny *t, struct reference *r)
{
    struct tec_plan_part *part = tec_plan_part(t->plan, TEC_PART_FRAME, 0);
    const struct tec_frame_input *in = &r->seen.input;
    const struct tec_action_inputs a = {.noise = in->chains[0].noise[0],
                                        .state = in->chains[0].state};
    int region = tec_kv_pool_take(&t->plan->prefixes);
    struct tec_replay replay = {0};
    tec_launch_prefix(t->plan, part, region, &in->chains[0].prefix, &a, &replay);
    poison(t);
    tec_device_upload(t->device, TEC_STREAM_MAIN, part->block.device, part->block.host,
                      part->block.size);
    run_steps(t, &frame_steps);
    tec_launch_actions(t->plan, part, r->chunk);
    run_text(t, r, region, tec_prefix_rows(t->plan, &in->chains[0].prefix));
    tec_kv_pool_drop(&t->plan->prefixes, region);
}

/* --- schedules ------------------------------------------------------------------------------- */

struct trial {
    struct tiny *t;
    int eos;
    int of_frame[FRAMES * 4]; /* the observation that opened it */
    int current;
    int released, wrong_actions, wrong_texts, finished, tokens, shed;
    int batches[TINY_SLOTS + 1], launches, private_prefills, beside;
};

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    struct trial *trial = user;
    (void)record;
    trial->released++;
    trial->wrong_actions += memcmp(chunk, references[trial->current].chunk, chunk_bytes) != 0;
}

/* The tokens that the request would have made alone. */
static int length_of(const struct reference *r, int eos, int max)
{
    for (int i = 0; i < max; i++)
        if (r->text[i] == eos)
            return i + 1;
    return max;
}

static void count_concurrent(void *self, const struct tec_event *event)
{
    struct trial *trial = self;
    trial->beside += event->kind == TEC_EVENT_START && event->lane == 1;
}

static void check_texts(struct trial *trial, const struct tec_loop *loop,
                        const struct tec_frame_record *record)
{
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        if (u->id < 0)
            continue;
        const struct reference *r = &references[trial->of_frame[u->frame]];
        int n = u->count, whole = length_of(r, trial->eos, u->decoder ? TINY_NEW - 5 : TINY_NEW);
        bool same = n <= whole && (u->done != 1 || n == whole) &&
                    memcmp(u->tokens, r->text, (size_t)n * sizeof(int)) == 0;
        trial->wrong_texts += !same;
        trial->finished += u->done == 1 && u->finished_ns >= record->start_ns;
    }
    for (int i = 0; i < record->n_launches; i++) {
        const struct tec_launch_record *l = &record->launches[i];
        trial->private_prefills += l->request >= 0;
        if (strcmp(l->node, "talk") == 0 || strcmp(l->node, "think") == 0)
            trial->batches[l->rows]++;
    }
    trial->tokens += record->tokens;
    trial->shed += record->shed;
    trial->launches += record->n_launches;
}

static enum tec_status draw(void *self, const struct tec_frame_view *view, struct tec_decision *d,
                            struct tec_error *e)
{
    static const int ks[] = {0, 1, 2, 5, 8};
    uint64_t *dice = self;
    int all = tiny_below(dice, 2) ? ks[tiny_below(dice, 5)] : -1; /* full batches, too */
    (void)e;
    for (int i = 0; i < view->n_req; i++) {
        d->rows[i].k = all >= 0 ? all : ks[tiny_below(dice, 5)];
        d->rows[i].group = all >= 0 ? 0 : tiny_below(dice, 3);
        d->rows[i].priority = tiny_below(dice, 3);
        d->rows[i].unshare = tiny_below(dice, 3) == 0;
        d->rows[i].shed = tiny_below(dice, 40) == 0;
    }
    for (int node = 2; node <= 3; node++)
        d->nodes[node].partition = tiny_below(dice, 3) - 1;
    return TEC_OK;
}

static bool admit(void *self, const struct tec_frame_view *view, const struct tec_request_view *r,
                  char reason[32])
{
    (void)view, (void)r;
    snprintf(reason, 32, "no luck");
    return tiny_below(self, 8) != 0;
}

static void run_trial(struct trial *trial, struct tec_loop *loop, uint64_t *dice)
{
    for (int f = 0; f < frames(); f++) {
        trial->current = trial->of_frame[f] = tiny_below(dice, observations());
        bool input = tiny_below(dice, 7) != 0;
        unsigned spawn = (unsigned)tiny_below(dice, 4);
        const struct tec_frame_record *record = loop_frame(
            loop, input ? &references[trial->current].seen.input : NULL, f * 1000, spawn);
        check_texts(trial, loop, record);
    }
    tec_loop_restart(loop);
    CHECK_INT(trial->t->plan->prefixes.in_use, ==, 0);
}

static void try_random(struct tiny *t, int eos, uint64_t seed, struct trial *sum)
{
    struct trial trial = {.t = t, .eos = eos};
    struct tec_loop_options o = tiny_loop(t);
    uint64_t dice = seed * 7919 + 1;
    o.chains[0].executor = tiny_executor(t);
    o.planner = (struct tec_planner){.name = "dice", .self = &dice, .admit = admit, .plan = draw};
    o.released = released;
    o.user = &trial;
    o.events = (struct tec_event_sink){.self = &trial, .emit = count_concurrent};
    struct tec_loop *loop;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    poison(t);
    run_trial(&trial, loop, &dice);
    tec_loop_destroy(loop);
    CHECK_INT(trial.wrong_actions, ==, 0);
    CHECK_INT(trial.wrong_texts, ==, 0);
    CHECK_INT(trial.released, >, frames() / 2);
    sum->finished += trial.finished;
    sum->tokens += trial.tokens;
    sum->shed += trial.shed;
    sum->private_prefills += trial.private_prefills;
    sum->beside += trial.beside;
    for (int b = 0; b <= TINY_SLOTS; b++)
        sum->batches[b] += trial.batches[b];
}

static void try_policy(struct tiny *t, int eos, const char *path)
{
    static const struct tec_policy_limits patient = {.soft_us = 100000, .hard_us = 200000};
    struct trial trial = {.t = t, .eos = eos};
    struct tec_loop_options o = tiny_loop(t);
    struct tec_policy *policy;
    enum tec_status status =
        tec_policy_open(&policy, path, ".", &t->topology, &patient, NULL, 0, &tiny_heap, &err);
    if (status != TEC_OK &&
        strstr(err.message, "needs axis")) { /* it needs an axis that this pipeline lacks */
        fprintf(stderr, "# %s\n", err.message);
        return;
    }
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    o.chains[0].executor = tiny_executor(t);
    o.planner = tec_policy_planner(policy);
    o.released = released;
    o.user = &trial;
    o.events = (struct tec_event_sink){.self = &trial, .emit = count_concurrent};
    struct tec_loop *loop;
    uint64_t dice = 99;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    run_trial(&trial, loop, &dice);
    tec_loop_destroy(loop);
    CHECK_INT(tec_policy_report(policy)->failures, ==, 0);
    tec_policy_close(policy);
    CHECK_INT(trial.wrong_actions, ==, 0);
    CHECK_INT(trial.wrong_texts, ==, 0);
    CHECK_INT(trial.released, >, frames() / 2);
    if (strstr(path, "oxygen"))
        CHECK_INT(trial.finished, >, emulated() ? 0 : 10);
    if (strstr(path, "parallel"))
        CHECK_INT(trial.beside, >=, t->partitions ? frames() / 4 : 0);
    if (!t->partitions)
        CHECK_INT(trial.beside, ==, 0);
}

static bool chosen(const struct tiny *t, const char *path)
{
    if (emulated())
        return strstr(path, t->partitions ? "parallel" : "oxygen") != NULL;
    return !t->partitions || strstr(path, "parallel") || strstr(path, "oxygen");
}

static void try_policies(struct tiny *t, int eos)
{
    glob_t found;
    REQUIRE(glob("policies/*.lua", 0, NULL, &found) == 0);
    CHECK_INT(found.gl_pathc, >=, 5);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (chosen(t, found.gl_pathv[i]))
            try_policy(t, eos, found.gl_pathv[i]);
    globfree(&found);
}

/* --- what is compared ------------------------------------------------------------------------ */

/* Find an end token that some texts reach and others do not. */
static int choose_end(void)
{
    for (int at = 3; at < TINY_NEW; at++)
        for (int i = 0; i < observations(); i++) {
            int eos = references[i].text[at], ended = 0;
            for (int j = 0; j < observations(); j++)
                ended += length_of(&references[j], eos, TINY_NEW) < TINY_NEW;
            if (ended < observations() && length_of(&references[i], eos, TINY_NEW) > 2)
                return eos;
        }
    return references[0].text[TINY_NEW - 1];
}

static void make_references(struct tiny *t)
{
    record_steps(t, &tec_plan_part(t->plan, TEC_PART_FRAME, 0)->program, &frame_steps);
    record_steps(t, &tec_plan_part(t->plan, TEC_PART_DECODE, 1)->program, &decode_steps);
    chunk_bytes = (size_t)t->model->flow.horizon * (size_t)t->model->flow.dim * sizeof(float);
    for (int i = 0; i < observations(); i++) {
        tiny_observe(&references[i].seen, t->model, (uint64_t)i + 1);
        run_alone(t, &references[i]);
        for (size_t c = 0; c < chunk_bytes / sizeof(float); c++)
            REQUIRE(references[i].chunk[c] - references[i].chunk[c] == 0.0F);
    }
    CHECK(memcmp(references[0].chunk, references[1].chunk, chunk_bytes) != 0);
    int distinct = 0;
    for (int i = 1; i < TINY_NEW; i++)
        distinct += references[0].text[i] != references[0].text[i - 1];
    CHECK_INT(distinct, >, 2); /* else texts would be no witness */
    drop_steps(&frame_steps);
    drop_steps(&decode_steps);
}

/* The number of threads has no meaning on a device other than the CPU. */
static const struct lanes {
    int threads, beside, spin_us;
    bool policies, cpu;
    int seeds;
} devices[] = {{1, 0, 0, true, false, SEEDS},
               {2, 0, 200, false, true, SEEDS},
               {2, 1, 200, true, false, SEEDS},
               {3, 2, 0, false, true, 1}};

static void check_variety(const struct trial *sum)
{
    CHECK_INT(sum->finished, >, emulated() ? 0 : 20);
    CHECK_INT(sum->beside, >, emulated() ? 0 : 20);
    CHECK_INT(sum->private_prefills, >, emulated() ? 0 : 10);
    if (emulated())
        return;
    CHECK_INT(sum->shed, >, 0);
    for (int b = 1; b <= 4; b++)
        CHECK_INT(sum->batches[b], >, 0);
}

static void compare_all(const char *arch, bool bf16)
{
    static struct tiny t;
    struct trial sum = {.t = &t};
    REQUIRE(tiny_open(&t, arch, bf16, 1, 0, &err));
    make_references(&t);
    int eos = choose_end();
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        tiny_close(&t);
        if (devices[i].cpu && emulated())
            continue;
        REQUIRE(tiny_open_split(&t, arch, bf16, devices[i].threads, devices[i].beside,
                                devices[i].spin_us, &err));
        t.model->text.eos = eos;
        for (int seed = 0; seed < (emulated() ? 1 : devices[i].seeds); seed++)
            try_random(&t, eos, (uint64_t)seed + 100 * i, &sum);
        if (devices[i].policies)
            try_policies(&t, eos);
    }
    tiny_close(&t);
    check_variety(&sum);
    CHECK_INT(tiny_heap.live, ==, 0);
    printf("# %s %s: %d texts finished, %d tokens, %d private prefills, %d launches beside\n", arch,
           bf16 ? "bf16" : "f32", sum.finished, sum.tokens, sum.private_prefills, sum.beside);
}

TEST(bytes_do_not_depend_on_the_schedule_pi05_f32)
{
    compare_all("pi05", false);
}
TEST(bytes_do_not_depend_on_the_schedule_pi05_bf16)
{
    compare_all("pi05", true);
}
TEST(bytes_do_not_depend_on_the_schedule_pi0_f32)
{
    compare_all("pi0", false);
}
TEST(bytes_do_not_depend_on_the_schedule_pi0_bf16)
{
    compare_all("pi0", true);
}

TAP_MAIN
