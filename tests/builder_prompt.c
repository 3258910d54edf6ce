/* builder_prompt.c - tests of flows whose action reads the prompt's keys: what does not fit is
 * refused with its line, what follows from the words, and one computation said in several ways. */
#include "graph/model/timed.h"
#include "graph/model/weights.h"
#include "kernels/matrix.h"
#include "tests/built_chunk.h"
#include "tests/flow_bodies.h"
#include "tests/text_words.h"

#include <math.h>
#include <string.h>

/* A text of two layers of width 8, an expert of two of width 6, whose attention is in line
 * ATTENTION; the body of prefill is in line PREFILL. */
static const char *prelude = TEXT_WORDS
    "local function norm(g, x, name, time)\n"
    "  if not time then return g:norm(x, { weight = 'e' .. name, rms = true, eps = 1e-5 }) end\n"
    "  local r = g:linear(time, { weight = 'a' .. name, out = 18 })\n"
    "  local function part(i) return g:columns(r, { first = 6 * i, cols = 6 }) end\n"
    "  local y = g:norm(x, { rms = true, eps = 1e-5, scale = part(0), shift = part(1) })\n"
    "  return y, name ~= 'final' and part(2) or nil\n"
    "end\n"
    "local function half(g, x, name, gate)\n"
    "  return g:linear(x, { weight = name, out = 6, bf16 = true, gate = gate })\n"
    "end\n"
    "local function attend(g, x, seen, i, more)\n"
    "  local o = { heads = 2, kv_heads = 1, head_dim = 4, over = seen, layer = i, bf16 = true }\n"
    "  for _, r in ipairs { 'q', 'k', 'v' } do o[r] = 'e' .. r .. i end\n"
    "  for key, value in pairs(more or {}) do o[key] = value end\n"
    "  return g:attention(x, o)\n"
    "end\n"
    "local function expert(g, x, seen, more, time)\n"
    "  for i = 0, 1 do\n"
    "    local y, gate = norm(g, x, 'norm1' .. i, time)\n"
    "    x = g:add(half(g, attend(g, y, seen, i, more), 'eo' .. i, gate), x)\n"
    "    y, gate = norm(g, x, 'norm2' .. i, time)\n"
    "    y = g:gated(y, { gate = 'eg' .. i, up = 'eu' .. i, out = 16, kind = 'silu', bf16 = true "
    "})\n"
    "    x = g:add(half(g, y, 'ed' .. i, gate), x)\n"
    "  end\n"
    "  return (norm(g, x, 'final', time))\n"
    "end\n" TOWER_WORDS "local v = tower { image_size = 8, mean = { 0, 0, 0 },\n"
    "  std = { 1, 1, 1 },\n"
    "\n"
    "  }\n"
    "local function lin(g, x, w, out) return g:linear(x, { weight = w, bias = w .. 'b', out = out "
    "}) "
    "end\n"
    "local d = { name = 't', slots = { 'a' }, ignored = {},\n"
    "  vision = { towers = {\n"
    "    v },\n"
    "    project = project },\n"
    "  text = text(2, { vocab = 32, scale = 1.0, round_logits = true, mask = 'bidir', bos = 1, eos "
    "= 2,\n"
    "           max_tokens = 8, embed = { 'em' }, head = { 'h' } }, { kv_heads = 1 }) }\n"
    "d.flow = { horizon = 5, dim = 3, steps = 4, falls = true }\n"
    "d.prefill = function(g)\n"
    "\n";

static const char prompt[] = "return g:prompt()";
static const char plain[] =
    "local y = expert(g, lin(g, x, 'in', 6), seen); return lin(g, y, 'out', 3)";
static const char adaptive[] =
    "local c = g:waves(t, { cols = 6, shortest = 0.1, longest = 2.0, name = 'c' })\n"
    "return lin(g, expert(g, lin(g, x, 'in', 6), seen, {}, c), 'out', 3)";
/* A row of the state in front, which sees no action. */
static const char led[] = "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
                          "local y = g:concat { s, lin(g, x, 'in', 6) }\n"
                          "y = expert(g, y, seen, { lead = 1 })\n"
                          "return lin(g, g:take(y, { first = 1, rows = 5 }), 'out', 3)";
static const char behind[] = "return g:prompt { behind = lin(g, g:state { entries = 2 }, 's', 8) }";

static struct tec_model *opened(const char *prefill, const char *action, const char *more)
{
    struct tec_model *model = NULL;
    if (open_bodies(&model, prefill, action, more) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(model);
    return model;
}

enum { ATTENTION = 15, LINEAR = 31, PREFILL = 41, ACTION = 44 };

/* An attention over the prompt with these options. */
static void attention_refused(const char *options, const char *says)
{
    char body[512];
    snprintf(body, sizeof body,
             "return lin(g, expert(g, lin(g, x, 'in', 6), seen, { %s }), 'out', 3)", options);
    refused(prompt, body, "", ATTENTION, says);
}

TEST(a_flow_over_the_prompt_opens)
{
    struct tec_model *m = opened(prompt, led, "");
    CHECK(tec_model_flows(m) && !tec_model_denoises(m) && !tec_model_asks(m));
    CHECK_INT(m->flow.horizon, ==, 5);
    CHECK_INT(tec_suffix_rows(m), ==, 6);
    CHECK_INT(tec_suffix_front(m), ==, 1);
    CHECK_INT(tec_model_state(m), ==, 2);
    CHECK_INT(m->program->lead, ==, 1);
    CHECK(tec_model_kept(m) == &m->text.stack);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

/* What the words of a flow let a pipeline do with it. */
static void can(const char *prefill, const char *action, bool fixes, bool batches, bool stands)
{
    struct tec_model *m = opened(prefill, action, "");
    CHECK(tec_model_fixes(m) == fixes);
    CHECK(tec_model_batches(m) == batches);
    CHECK(tec_model_behind(m) == stands);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(what_a_flow_can_do_is_found)
{
    can(prompt, plain, false, true, false);
    can(prompt, adaptive, true, true, false);
    can(prompt, led, false, true, false);
    can(behind, plain, false, false, true);
    /* A row that reads the time beside the norms, or that moves, cannot have a time of its own. */
    can(prompt,
        "local y = lin(g, g:beside(lin(g, x, 'in', 6), t), 'mid', 6)\n"
        "y = expert(g, y, seen, {}, g:waves(t, { cols = 6, period = 9.0 }))\n"
        "return lin(g, y, 'out', 3)",
        false, true, false);
    can(prompt,
        "local y = lin(g, x, 'in', 6)\n"
        "y = g:concat { g:take(y, { first = 1, rows = 4 }), g:take(y, { rows = 1 }) }\n"
        "y = expert(g, y, seen, {}, g:waves(t, { cols = 6, period = 9.0 }))\n"
        "return lin(g, y, 'out', 3)",
        false, false, false);
    /* Constants are those of one observation, and so is the order of rows. */
    can(prompt,
        "local y = g:add(lin(g, x, 'in', 6), g:tensor { tensor = 'places', rows = 5, cols = 6 })\n"
        "y = expert(g, y, seen)\n"
        "return lin(g, y, 'out', 3)",
        false, false, false);
    can(prompt,
        "local y = g:concat { lin(g, x, 'in', 6), lin(g, g:state { entries = 2 }, 's', 6) }\n"
        "y = expert(g, y, seen)\n"
        "return lin(g, g:take(y, { rows = 5 }), 'out', 3)",
        false, false, false);
    struct tec_model *m =
        opened("return g:prompt(), g:tensor { tensor = 'tok', rows = 1, cols = 6 }", plain,
               "d.action = function(g, seen, row, x, t)\n"
               "  local y = g:concat { row, lin(g, x, 'in', 6) }\n"
               "  y = expert(g, y, seen)\n"
               "  return lin(g, g:take(y, { first = 1, rows = 5 }), 'out', 3)\nend");
    CHECK(!tec_model_batches(m)); /* also where prefill has made the constant */
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(attention_over_the_prompt_is_of_the_steps)
{
    refused(prompt,
            "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
            "local y = expert(g, g:concat { s, s, s, s, s }, seen)\n"
            "return g:add(lin(g, x, 'in', 3), lin(g, y, 'out', 3))",
            "", ATTENTION, "attention: over a prompt reads neither the noisy actions nor the time");
}

TEST(attention_fits_the_prompt)
{
    attention_refused("layer = 2", "layer 2; the text has 2, counted from 0");
    attention_refused("layer = 511", "layer 511; the text has 2, counted from 0");
    attention_refused("layer = 512", "layer 512; the text has 2, counted from 0");
    attention_refused("layer = 1 << 20", "layer 1048576; the text has 2, counted from 0");
    attention_refused("layer = -1", "layer must be a whole number");
    attention_refused("heads = 4", "4/1 heads of 4 cannot read the text's");
    attention_refused("head_dim = 6", "2/1 heads of 6 cannot read");
    attention_refused("lead = 6", "lead 6 of 5 rows");
    refused(prompt,
            "local y = expert(g, lin(g, x, 'in', 6), seen, { lead = 1 })\n"
            "return lin(g, expert(g, y, seen), 'out', 3)",
            "", ATTENTION, "lead 0; the first attention over the prompt has 1");
    attention_refused("position = g:zeros { rows = 5, cols = 6 }", "over a prompt has neither");
    attention_refused("sees = 'rest'", "over a prompt has neither position");
    attention_refused("rotation = { theta = 1e4 }", "relative and packing are of a text's layers");
    attention_refused("projected = true, q_norm = 'n', eps = 1e-5", "projected has q, k and v");
    attention_refused("projected = 1", "projected must be true or false");
    refused(prompt, plain, "d.text = text(2, d.text, { kv_heads = 1, cap = 3.0 })", ATTENTION,
            "attention: layer 0 of the text has scores of its own");
    refused("return g:hidden { cols = 8 }", "return attend(g, x, seen, 1)", "", ATTENTION,
            "attention: layer, lead and projected are of attention over a prompt");
    refused("return attend(g, g:hidden { cols = 8 }, nil, 0, { lead = 1 })", plain, "", ATTENTION,
            "attention: layer, lead and projected are of attention over a prompt");
    refused(prompt, plain,
            "local own = d.text.layer\n"
            "d.text.layer = function(g, x, i)\n"
            "  return own(g, g:attention(x, { heads = 2, head_dim = 4, lead = 1 }), i)\n"
            "end",
            0, "layer, lead and projected are of attention over a prompt");
}

TEST(a_prompt_is_read_by_attention_alone)
{
    refused("return g:prompt(), g:prompt()", plain, "", PREFILL,
            "prompt: the prompt is read already");
    refused("return g:hidden { cols = 8 }, g:prompt()", plain, "", PREFILL,
            "prompt: the prompt is read already");
    refused("return lin(g, g:prompt(), 'w', 8)", plain, "", LINEAR, "linear: reads a prompt");
    refused("return g:concat { g:prompt() }", plain, "", PREFILL, "concat: reads a prompt");
    refused(prompt, "g:prompt(); return x", "", ACTION, "prompt: belongs to the prefill of a flow");
    refused(prompt, "return lin(g, lin(g, x, 'in', 6), 'out', 3)", "", 0,
            "action: has no attention over the prompt");
    refused(prompt,
            "local o = { heads = 2, kv_heads = 1, head_dim = 4, q = 'aq', k = 'ak', v = 'av' }\n"
            "return lin(g, expert(g, lin(g, g:attention(x, o), 'in', 6), seen), 'out', 3)",
            "", ACTION + 1, "attention: of a flow over a prompt belongs to its action");
    refused("local s = lin(g, g:state { entries = 2 }, 's', 8)\n"
            "local o = { heads = 2, kv_heads = 1, head_dim = 4, q = 'aq', k = 'ak', v = 'av' }\n"
            "local y = g:attention(g:concat { s, s }, o)\n"
            "return g:prompt { behind = lin(g, y, 'u', 8) }",
            plain, "", PREFILL + 3, "prompt: 2 rows behind it; must be one");
    refused(prompt, plain, "d.flow = nil", PREFILL, "prompt: belongs to the prefill of a flow");
    refused(prompt, plain, "d.text.picture = 30; d.text.mask = 'causal_all'", 0,
            "text.picture: of");
}

TEST(a_row_behind_the_prompt_is_one_of_the_state)
{
    refused("return g:prompt { behind = lin(g, g:state { entries = 2 }, 's', 7) }", plain, "",
            LINEAR, "linear: 7 columns; rows of the text have 8");
    refused("return g:prompt { behind = g:zeros { rows = 1, cols = 8 } }", plain, "", PREFILL,
            "prompt: reads a constant");
    refused("local s = lin(g, g:state { entries = 2 }, 's', 8)\n"
            "return g:prompt { behind = g:concat { s, s } }",
            plain, "", PREFILL + 1, "prompt: 2 rows behind it; must be one");
    refused(behind, plain, "d.text.mask = 'causal_all'", PREFILL,
            "prompt: a row behind it needs a text with mask bidir");
    refused(behind, led, "", ACTION, "state: prefill has made a row of the state");
    refused("lin(g, g:state { entries = 2 }, 's', 8); return g:prompt()", plain, "", LINEAR,
            "linear: nobody reads its value");
}

TEST(times_fall_as_they_are_said_to)
{
    refused(prompt, plain, "d.flow.buckets = 1000", 0, "flow: whole numbers of buckets that fall");
    struct tec_program_flow f = {.steps = 4};
    CHECK(tec_model_time(&f, 1, 4) == 0.25);
    f.falls = true;
    for (int s = 0; s <= 10; s++)
        CHECK(tec_model_time(&f, s, 10) == 1.0 - s / 10.0);
    f.f32 = true;
    CHECK(tec_model_time(&f, 3, 10) == (double)(float)(1.0 + 3 * -0.1));
    CHECK(tec_model_time(&f, 3, 10) != 1.0 + 3 * -0.1);
}

/* Angle i is 2 pi t over a period; the periods grow by the same factor. */
TEST(waves_have_periods_between_two)
{
    const struct tec_model_call c = {.cols = 10, .shortest = 0.5, .longest = 8.0},
                                r = {.cols = 10, .shortest = 0.5, .longest = 8.0, .f32 = true};
    double out[10], rounded[10];
    tec_model_call_waves(&c, 0.3, out);
    tec_model_call_waves(&r, 0.3, rounded);
    for (int i = 0; i < 5; i++) {
        double angle = 2.0 * 3.14159265358979323846 * 0.3 / (0.5 * pow(2.0, i));
        CHECK(fabs(out[i] - sin(angle)) < 1e-12 && fabs(out[5 + i] - cos(angle)) < 1e-12);
        CHECK(rounded[i] == (double)(float)out[i]);
    }
}

/* The columns of a dense layer of waves, at every time: its rows from `first` on. */
static void check_columns(const struct tec_timed *timed, const struct tec_weight_source *source,
                          const char *layer, int first, int call)
{
    struct tec_expected e = {.names = {layer}, .n_names = 1, .rank = 2, .shape = {18, 6}};
    const struct tec_model_program *p = timed->program;
    const struct tec_model_call *waves = p->calls;
    struct tec_found found;
    float w[18 * 6];
    while (waves->word != TEC_WORD_waves)
        waves++;
    REQUIRE(tec_weight_find(source, &e, &found, &err) == TEC_OK);
    tec_weight_rows(source, &found, 0, 18, w, &err);
    for (int s = 0; s < timed->times; s++) {
        double c[6];
        tec_model_call_waves(waves, 1.0 - s / 4.0, c);
        for (int r = 0; r < 6; r++) {
            double x = 0.0;
            for (int i = 0; i < 6; i++)
                x += (double)w[6 * (first + r) + i] * c[i];
            CHECK(fabs((double)tec_timed_row(timed, call, s)[r] - x) < 1e-6);
        }
    }
}

/* Tensors are the same for the same seed and name, so what norms read can be computed twice. */
TEST(norms_read_layers_of_a_row_of_the_time)
{
    struct tec_model *m = opened(prompt, adaptive, "");
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    const struct tec_weight_source source = {.seed = 7};
    const struct tec_timed_options four = {.steps = 4, .actions = true};
    struct tec_device *device = NULL;
    struct tec_timed *timed = NULL;
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    REQUIRE(tec_timed_create(&timed, m->program, &source, &four, device, &heap, &err) == TEC_OK);
    CHECK_INT(timed->times, ==, 5);
    static const char *const names[] = {"anorm10", "anorm20", "anorm11", "anorm21", "afinal"};
    int norms = 0, gates = 0;
    for (int i = 0; i < m->program->n; i++) {
        const struct tec_model_call *c = &m->program->calls[i];
        if (c->gate >= 0)
            check_columns(timed, &source, names[gates++], 12, c->gate);
        if (c->scale < 0)
            continue;
        check_columns(timed, &source, names[norms], 0, c->scale);
        check_columns(timed, &source, names[norms++], 6, c->shift);
    }
    CHECK_INT(norms, ==, 5);
    CHECK_INT(gates, ==, 4);
    tec_timed_destroy(timed);
    tec_device_close(device);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(rows_of_the_time_alone_are_rounded_to_float32)
{
    refused(prompt,
            "local y = g:activation(lin(g, x, 'in', 6), { kind = 'silu', f32 = true })\n"
            "return lin(g, expert(g, y, seen), 'out', 3)",
            "", ACTION, "activation: f32 is for rows of the time");
}

/* What norms read of the time, made in memory that may end at any allocation. */
static enum tec_status load(struct tec_heap *of)
{
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    const struct tec_weight_source source = {.seed = 7};
    const struct tec_timed_options four = {.steps = 4};
    struct tec_model *model = NULL;
    struct tec_device *device = NULL;
    struct tec_timed *timed = NULL;
    enum tec_status status = open_in(of, &model, behind, adaptive, "");
    if (status == TEC_OK)
        status = tec_device_open(&device, &d, of, &err);
    if (status == TEC_OK)
        status = tec_timed_create(&timed, model->program, &source, &four, device, of, &err);
    tec_timed_destroy(timed);
    tec_device_close(device);
    tec_model_close(model);
    return status;
}

TEST(every_allocation_may_fail)
{
    enum tec_status status = TEC_NO_MEMORY;
    int at = 0;
    while (status != TEC_OK && at < 20000) {
        struct tec_heap of = {.fail_at = ++at};
        status = load(&of);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
        CHECK_INT(of.live, ==, 0);
    }
    CHECK(status == TEC_OK && at > 100);
}

enum { CHUNK = 15 };

/* The chunk that a body makes of one picture, four tokens and noise, whose first rows may be given
 * actions: `room` of them, of which `fixed` are. */
static void run_given(const char *prefill, const char *action, int room, int fixed,
                      float chunk[CHUNK])
{
    static uint8_t pixels[8 * 8 * 3];
    static const int ids[] = {7, 3, 4, 5};
    float noise[CHUNK], state[3] = {0.5F, -1.0F, 0.25F};
    struct built_chunk b = {
        .model = opened(prefill, action, ""),
        .spec = {.frame_tokens = 16,
                 .text_tokens = 8,
                 .n_actions = 1,
                 .actions = {{.steps = 3, .fixed = room}}},
        .seen = {.n_pictures = 1, .picture = {pixels}, .ids = ids, .n_text = 4, .state = state},
        .start = {.noise = noise, .state = state, .n_fixed = fixed}};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 % 251);
    for (int i = 0; i < CHUNK; i++)
        noise[i] = (float)(i % 7) / 7.0F - 0.5F;
    built_chunk(&b, &heap, &err, chunk);
}

static void run(const char *prefill, const char *action, float chunk[CHUNK])
{
    run_given(prefill, action, 0, 0, chunk);
}

/* How far the chunks of two descriptions are apart. */
static float between(const char *prefill, const char *one, const char *other)
{
    float a[CHUNK], b[CHUNK], most = 0.0F;
    run(prefill, one, a);
    run(prefill, other, b);
    for (int i = 0; i < CHUNK; i++) {
        CHECK(isfinite(a[i]) && isfinite(b[i]));
        most = fmaxf(most, fabsf(a[i] - b[i]));
    }
    return most;
}

/* Rows in front that lead are not changed by the actions; those that do not are. */
TEST(rows_see_what_they_are_said_to)
{
    static const char all[] = "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
                              "local y = expert(g, g:concat { s, lin(g, x, 'in', 6) }, seen)\n"
                              "return lin(g, g:take(y, { first = 1, rows = 5 }), 'out', 3)";
    static const char causal[] =
        "return lin(g, expert(g, lin(g, x, 'in', 6), seen, { lead = 5 }), 'out', "
        "3)";
    static const char almost[] =
        "return lin(g, expert(g, lin(g, x, 'in', 6), seen, { lead = 4 }), 'out', "
        "3)";
    CHECK(between(prompt, led, all) > 1e-4F);
    CHECK(between(prompt, plain, causal) > 1e-4F);
    CHECK(between(prompt, causal, almost) == 0.0F); /* the last row sees all in any case */
}

/* Rows are multiplied before or after the others are left out, with the same gate. */
TEST(rows_that_are_taken_have_their_gate)
{
    static const char front[] =
        "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
        "local y = g:concat { s, lin(g, x, 'in', 6) }\n"
        "y = expert(g, y, seen, { lead = 1 })\n"
        "local r = g:linear(g:waves(t, { cols = 6, period = 9.0 }), { weight = 'r', out = 3 })\n";
    char taken[700], left[700];
    snprintf(taken, sizeof taken,
             "%sreturn g:linear(g:take(y, { first = 1, rows = 5 }), "
             "{ weight = 'out', bias = 'outb', out = 3, gate = r })",
             front);
    snprintf(left, sizeof left,
             "%sreturn g:take(g:linear(y, { weight = 'out', bias = 'outb', out = 3, gate = r }), "
             "{ first = 1, rows = 5 })",
             front);
    CHECK(between(prompt, taken, left) == 0.0F);
    CHECK(between(prompt, led, taken) > 1e-4F);
}

/* The state is read in pieces or whole, and several rows may stand in front. */
TEST(states_have_their_places)
{
    static const char apart[] = "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
                                "local u = lin(g, g:state { entries = 1 }, 'u', 6)\n"
                                "local y = g:concat { s, u, lin(g, x, 'in', 6) }\n"
                                "y = expert(g, y, seen, { lead = 2 })\n"
                                "return lin(g, g:take(y, { first = 2, rows = 5 }), 'out', 3)";
    static const char activated[] =
        "local s = g:activation(lin(g, g:state { entries = 2 }, 's', 6), { kind = 'relu' })\n"
        "local y = g:concat { s, lin(g, x, 'in', 6) }\n"
        "y = expert(g, y, seen, { lead = 1 })\n"
        "return lin(g, g:take(y, { first = 1, rows = 5 }), 'out', 3)";
    CHECK(between(prompt, led, apart) > 1e-4F);
    CHECK(between(prompt, led, activated) > 1e-6F);
}

/* The row behind the prompt is the last word's value, whatever the word. */
TEST(a_row_behind_is_seen)
{
    static const char twice[] =
        "local s = g:activation(lin(g, g:state { entries = 2 }, 's', 8), { kind = 'relu' })\n"
        "return g:prompt { behind = g:activation(s, { kind = 'relu' }) }";
    static const char once[] = "local s = lin(g, g:state { entries = 2 }, 's', 8)\n"
                               "return g:prompt { behind = g:activation(s, { kind = 'relu' }) }";
    float a[CHUNK], b[CHUNK], c[CHUNK], d[CHUNK];
    run(prompt, plain, a);
    run(behind, plain, b);
    run(once, plain, c);
    run(twice, plain, d);
    CHECK(memcmp(a, b, sizeof a) != 0);
    CHECK(memcmp(b, c, sizeof b) != 0);
    CHECK(memcmp(c, d, sizeof c) == 0);
}

/* Given rows come back as they are, at the time of actions: what others become depends on it. */
TEST(first_actions_are_given)
{
    float none[CHUNK], room[CHUNK], given[CHUNK];
    run(prompt, adaptive, none);
    run_given(prompt, adaptive, 3, 0, room);
    run_given(prompt, adaptive, 3, 2, given);
    CHECK(memcmp(none, room, sizeof none) == 0);
    for (int i = 0; i < CHUNK; i++) {
        CHECK((i < 6) == (given[i] == (float)(i % 7) / 7.0F - 0.5F));
        CHECK(given[i] != none[i]);
    }
}

TAP_MAIN
