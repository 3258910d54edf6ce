/* cmd_bench.c - runs of policies or settings that take turns, reported by quantiles. */
#include "base/json_text.h"
#include "tools/measure/bandwidth.h"
#include "tools/measure/bench.h"
#include "tools/measure/bench_compare.h"
#include "tools/measure/machine.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FRAMES = 10000000, READ_BYTES = 512 << 20, READ_TIMES = 5, WARMUP = 10 };

struct bench_options {
    const char *sweep, *inputs, *out, *node, *html;
    int frames, warmup, rounds, prompt, clock, dtype;
    bool compare, apart;
    double fail; /* percent; 0 = never */
};

#define AT(member) offsetof(struct bench_options, member)
static const struct tec_option options[] = {
    {"sweep", 0, TEC_OPTION_TEXT, "NAME=v1,v2", "a row for each value of a policy's parameter",
     AT(sweep), 0, 0},
    {"clock", 0, TEC_OPTION_WORD, "saturated|paced",
     "a frame after the other, or one each period of the pipeline", AT(clock), 0, 0},
    {"frames", 'n', TEC_OPTION_INT, "N", "measured frames of each row; 30", AT(frames), 1,
     MAX_FRAMES},
    {"warmup", 0, TEC_OPTION_INT, "N",
     "frames before them in each turn; 10, or as many as a turn measures", AT(warmup), 1,
     MAX_FRAMES},
    {"rounds", 0, TEC_OPTION_INT, "N", "turns of each row; 3", AT(rounds), 1, 1000},
    {"inputs", 0, TEC_OPTION_TEXT, "FILE.jsonl", "one object of inputs a frame; else random ones",
     AT(inputs), 0, 0},
    {"prompt-tokens", 0, TEC_OPTION_INT, "N", "of random inputs; 20", AT(prompt), 1, 4096},
    {"node", 0, TEC_OPTION_TEXT, "NAME", "print the times of this node, too", AT(node), 0, 0},
    {"dtype", 0, TEC_OPTION_WORD, "pipeline|bf16|f32",
     "what weights and caches are rounded to; as the pipeline says", AT(dtype), 0, 0},
    {"out", 'o', TEC_OPTION_TEXT, "DIR", "bench.json and a histogram of 1 us a row", AT(out), 0, 0},
    {"apart", 0, TEC_OPTION_FLAG, NULL,
     "of a frame of several sessions: rows whose frames follow each other, too", AT(apart), 0, 0},
    {"compare", 0, TEC_OPTION_FLAG, NULL, "measure nothing: FILE and a second one are reports",
     AT(compare), 0, 0},
    {"html", 0, TEC_OPTION_TEXT, "FILE", "with --compare: both reports as one page to look at, too",
     AT(html), 0, 0},
    {"fail", 0, TEC_OPTION_NUMBER, "PERCENT",
     "with --compare: exit 1 where a p50 or p99 of frames or actions got slower by more", AT(fail),
     0.001, 10000},
};

/* Note when each step of opening the engine began. */
static void note_progress(void *user, const char *what, int64_t done, int64_t total)
{
    struct tec_bench *b = user;
    const struct tec_clock clock = {NULL};
    int64_t now = tec_clock_now(&clock);
    if (strcmp(what, "weights") == 0 && !b->weights_ns)
        b->weights_ns = now;
    if (strcmp(what, "captures") == 0 && !b->captures_ns)
        b->captures_ns = now;
    if (strcmp(what, "warm-up") == 0 && !b->warm_ns)
        b->warm_ns = now;
    if (b->call->progress)
        fprintf(stderr, "\r\033[Kbench: %s %.0f %%", what,
                total > 0 ? 100.0 * (double)done / (double)total : 0.0);
}

/* A file's line is one object, or a list of one each session. */
static enum tec_status open_inputs(struct tec_bench *b, const char *path, struct tec_error *err)
{
    for (int i = 0; i < b->n_sessions; i++) {
        TEC_TRY(tec_inputs_open(&b->inputs[i], b->opened.engine->sessions[i], b->opened.pipeline,
                                &(struct tec_words){0}, path, b->call->heap, err));
        tec_inputs_pick(b->inputs[i], i, b->n_sessions);
    }
    return TEC_OK;
}

static enum tec_status open_bench(struct tec_bench *b, const struct bench_options *o,
                                  struct tec_error *err)
{
    static const char *const dtypes[] = {NULL, "bf16", "f32"};
    const struct tec_clock clock = {NULL};
    struct tec_engine_options options_of;
    const struct tec_engine_options more = {
        .dtype = dtypes[o->dtype], .saturated = !b->paced, .forgets = true};
    b->start_ns = tec_clock_now(&clock);
    TEC_TRY(
        tec_cli_open_options(&b->opened, &options_of, b->call, b->call->args.item[0], &more, err));
    options_of.progress = note_progress;
    options_of.released = tec_bench_released;
    options_of.user = b;
    TEC_TRY(tec_opened_status(tec_engine_open(&b->opened.engine, &options_of, b->call->heap, err)));
    b->opened_ns = tec_clock_now(&clock);
    if (b->call->progress)
        fputs("\r\033[K", stderr);
    b->n_sessions = b->opened.engine->n_sessions;
    b->apart = o->apart;
    if (b->apart && b->n_sessions < 2)
        return tec_fail(err, TEC_INVALID, "--apart: the frame has one session");
    TEC_TRY(tec_bench_make_rows(b, b->call->shared.policy, o->sweep, err));
    if (o->inputs)
        return open_inputs(b, o->inputs, err);
    return tec_bench_random(b, b->call->shared.seed.given ? b->call->shared.seed.value : 1, err);
}

/* The words of this call, as they could be typed again. */
static const char *command_of(const struct tec_invocation *call, const struct bench_options *o)
{
    const struct tec_shared *s = &call->shared;
    const char *text = tec_arena_printf(
        call->arena, "tectum bench %s --policy %s --clock %s --frames %d --warmup %d --rounds %d",
        call->args.item[0], s->policy ? s->policy : "(pipeline)", o->clock ? "paced" : "saturated",
        o->frames, o->warmup, o->rounds);
    if (text && o->apart)
        text = tec_arena_printf(call->arena, "%s --apart", text);
    if (text && o->sweep)
        text = tec_arena_printf(call->arena, "%s --sweep %s", text, o->sweep);
    if (text && o->inputs)
        text = tec_arena_printf(call->arena, "%s --inputs %s", text, o->inputs);
    if (text && s->costs)
        text = tec_arena_printf(call->arena, "%s --costs %s", text, s->costs);
    text = tec_cli_typed(call, text);
    return text ? text : "";
}

static enum tec_status report(struct tec_bench *b, const struct bench_options *o,
                              struct tec_error *err)
{
    json_t *json = tec_bench_json(b, command_of(b->call, o));
    enum tec_status status = o->out ? tec_bench_write(b, json, o->out, err) : TEC_OK;
    if (b->call->shared.format != TEC_FORMAT_JSON)
        tec_bench_print(b, o->node, b->call->out);
    else if (status == TEC_OK)
        status = tec_json_print(b->call->out, json, JSON_INDENT(1), "a report", err);
    json_decref(json);
    return status;
}

static enum tec_status measure(struct tec_bench *b, const struct bench_options *o,
                               struct tec_error *err)
{
    TEC_TRY(open_bench(b, o, err));
    bool known = !o->node;
    for (int i = 0; i < b->n_nodes; i++)
        known = known || strcmp(b->nodes[i], o->node) == 0;
    if (!known)
        return tec_fail(err, TEC_INVALID, "--node: no node is named '%s'", o->node);
    b->load_before = tec_machine_load();
    TEC_TRY(tec_bench_run(b, err));
    b->load_after = tec_machine_load();
    b->peak = atomic_load(&b->call->heap->peak);
    const struct tec_device *device = b->opened.engine->device;
    if (tec_device_reads_host(device)) /* a GPU's weights are not in the memory of the host */
        TEC_TRY(tec_bandwidth_read(&b->read_s, tec_device_lanes(device), READ_BYTES, READ_TIMES,
                                   b->call->heap, err));
    return report(b, o, err);
}

static enum tec_status compare(struct tec_invocation *call, struct tec_error *err)
{
    const struct bench_options *o = call->options;
    json_t *comparison;
    if (call->args.n != 2)
        return tec_fail(err, TEC_INVALID, "--compare takes two reports: BEFORE.json AFTER.json");
    TEC_TRY(
        tec_bench_compare(&comparison, call->args.item[0], call->args.item[1], call->heap, err));
    double worst = json_number_value(json_object_get(comparison, "worst"));
    call->wrong = o->fail > 0.0 && worst > 1.0 + o->fail / 100.0;
    enum tec_status status = TEC_OK;
    if (o->html)
        status = tec_context(err, tec_bench_compare_page(comparison, o->html, err), "--html");
    if (status != TEC_OK) {
        json_decref(comparison);
        return status;
    }
    if (call->shared.format == TEC_FORMAT_JSON)
        status = tec_json_print(call->out, comparison, JSON_INDENT(1), "the comparison", err);
    else
        tec_bench_compare_print(comparison, call->out);
    json_decref(comparison);
    return status;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    struct bench_options *o = call->options;
    if (o->compare)
        return compare(call, err);
    if (o->fail > 0.0)
        return tec_fail(err, TEC_INVALID, "--fail: only with --compare");
    if (o->html)
        return tec_fail(err, TEC_INVALID, "--html: only with --compare");
    if (call->args.n != 1)
        return tec_fail(err, TEC_INVALID, "one argument too many: '%s'; two are for --compare",
                        call->args.item[1]);
    o->frames = o->frames ? o->frames : 30;
    o->rounds = o->rounds ? o->rounds : 3;
    if (o->rounds > o->frames)
        o->rounds = o->frames;
    int turn = o->frames / o->rounds; /* no more frames are run than are asked for, twice */
    o->warmup = o->warmup ? o->warmup : turn < WARMUP ? turn : WARMUP;
    struct tec_bench *b = TEC_NEW(call->arena, 1, struct tec_bench);
    if (!b)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a measurement");
    b->call = call;
    b->frames = o->frames;
    b->warmup = o->warmup;
    b->rounds = o->rounds;
    b->paced = o->clock == 1;
    b->prompt_tokens = o->prompt ? o->prompt : 20;
    enum tec_status status = measure(b, o, err);
    for (int i = 0; i < TEC_MAX_SESSIONS; i++)
        tec_inputs_close(b->inputs[i]);
    tec_bench_close_rows(b);
    tec_energy_card_close(&b->card);
    tec_close_engine(&b->opened);
    return status;
}

const struct tec_command tec_command_bench = {
    .usage = "bench [options] FILE | bench --compare BEFORE.json AFTER.json",
    .about =
        "Quantiles and the worst frame of each row, with what took longer in it. Rows are\n"
        "policies (--policy A,B) and values of a parameter (--sweep); they take turns on one\n"
        "engine: reset, warm-up, frames, then the next row, several rounds. --compare puts two\n"
        "reports (--format json, or bench.json of -o) side by side. Where joules are counted,\n"
        "JSON has energy of a frame and of an action. tok/s is - where no text was live.\n",
    .example =
        "  tectum bench pipelines/pi05_droid.lua --random-weights 1 --policy oxygen,isolated\n"
        "  tectum bench pipelines/demo_metaworld.lua --policy oxygen --sweep k=2,4,6\n"
        "  tectum bench --compare before/bench.json after/bench.json --fail 5\n"
        "  tectum bench --compare before/bench.json after/bench.json --html both.html\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET |
             TEC_TAKES_POLICY | TEC_TAKES_COSTS | TEC_TAKES_CACHE | TEC_TAKES_SEED,
    .format = TEC_FORMAT_TEXT,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct bench_options),
    .min_args = 1,
    .max_args = 2,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = run,
};
