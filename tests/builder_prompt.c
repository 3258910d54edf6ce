/* builder_prompt.c - tests of flows whose stack reads the prompt's keys: what does not fit is
 * refused with its line, what follows from the words, and one computation said in several ways. */
#include "graph/model/timed.h"
#include "graph/model/weights.h"
#include "kernels/matrix.h"
#include "tests/built_chunk.h"
#include "tests/flow_bodies.h"
#include "tests/text_words.h"

#include <math.h>
#include <string.h>

/* A text of two layers of width 8, an expert e of width 6; the body of prefill is in line 28. */
static const char *prelude = TEXT_WORDS
    "local e, a = {}, {}\n"
    "for _, r in ipairs { 'q', 'k', 'v', 'o', 'gate', 'up', 'down', 'norm1', 'norm2' } do\n"
    "  e[r], a[r] = 'e' .. r .. '{}', 'e' .. r .. '{}'\n"
    "end\n"
    "e.final, a.final = 'efinal', 'afinal'\n"
    "for _, r in ipairs { 'norm1', 'norm2' } do a[r] = 'a' .. r .. '{}' end\n"
    "local function stack(width, norm, tensors, more)\n"
    "  local s = { layers = 2, width = width, heads = 2, kv_heads = 1, head_dim = 4, mlp = 16,\n"
    "    norm = norm, norm_offset = 0.0, eps = 1e-5, theta = 1e4, activation = 'silu',\n"
    "    tensors = tensors }\n"
    "  for key, value in pairs(more or {}) do s[key] = value end\n"
    "  return s\n"
    "end\n" TOWER_WORDS "local v = tower { image_size = 8, patch = 4, mean = { 0, 0, 0 },\n"
    "  std = { 1, 1, 1 },\n"
    "  patch_embed = { weight = 'p' },\n"
    "  position = 'pos' }\n"
    "local function lin(g, x, w, out) return g:linear(x, { weight = w, bias = w .. 'b', out = out "
    "}) "
    "end\n"
    "local d = { name = 't', slots = { 'a' }, ignored = {},\n"
    "  vision = { towers = {\n"
    "    v },\n"
    "    projector = { { weight = 'pr' } } },\n"
    "  text = text(2, { vocab = 32, scale = 1.0, round_logits = true, mask = 'bidir', bos = 1, eos "
    "= 2,\n"
    "           max_tokens = 8, embed = { 'em' }, head = { 'h' } }, { kv_heads = 1 }) }\n"
    "d.flow = { horizon = 5, dim = 3, steps = 4, falls = true }\n"
    "d.prefill = function(g)\n"
    "\n";

static const char prompt[] = "return g:prompt()";
static const char plain[] = "local y = g:stack(lin(g, x, 'in', 6), { stack = stack(6, 'rms', e), "
                            "over = seen }); return lin(g, y, 'out', 3)";
static const char adaptive[] =
    "local c = g:waves(t, { cols = 6, shortest = 0.1, longest = 2.0, name = 'c' })\n"
    "local y = g:stack(lin(g, x, 'in', 6), { stack = stack(6, 'adaptive', a), over = seen,\n"
    "                                        time = c })\n"
    "return lin(g, y, 'out', 3)";
/* A row of the state in front, which sees no action. */
static const char led[] = "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
                          "local y = g:concat { s, lin(g, x, 'in', 6) }\n"
                          "y = g:stack(y, { stack = stack(6, 'rms', e), over = seen, lead = 1 })\n"
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

enum { PREFILL = 28, ACTION = 31 };

/* A stack over the prompt with these options. */
static void stack_refused(const char *of, const char *options, const char *says)
{
    char body[512];
    snprintf(
        body, sizeof body,
        "local y = g:stack(lin(g, x, 'in', 6), { stack = %s, over = seen, %s }); return lin(g, "
        "y, 'out', 3)",
        of, options);
    refused(prompt, body, "", ACTION, says);
}

TEST(a_flow_over_the_prompt_opens)
{
    struct tec_model *m = opened(prompt, led, "");
    const struct tec_model_call *expert = tec_model_expert(m);
    CHECK(tec_model_flows(m) && !tec_model_denoises(m) && !tec_model_asks(m));
    CHECK_INT(m->flow.horizon, ==, 5);
    CHECK_INT(tec_suffix_rows(m), ==, 6);
    CHECK_INT(tec_suffix_front(m), ==, 1);
    CHECK_INT(tec_model_state(m), ==, 2);
    CHECK_INT(expert->lead, ==, 1);
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
        "y = g:stack(y, { stack = stack(6, 'adaptive', a), over = seen,\n"
        "                 time = g:waves(t, { cols = 6, period = 9.0 }) })\n"
        "return lin(g, y, 'out', 3)",
        false, true, false);
    can(prompt,
        "local y = lin(g, x, 'in', 6)\n"
        "y = g:concat { g:take(y, { first = 1, rows = 4 }), g:take(y, { rows = 1 }) }\n"
        "y = g:stack(y, { stack = stack(6, 'adaptive', a), over = seen,\n"
        "                 time = g:waves(t, { cols = 6, period = 9.0 }) })\n"
        "return lin(g, y, 'out', 3)",
        false, false, false);
    /* Constants are those of one observation, and so is the order of rows. */
    can(prompt,
        "local y = g:add(lin(g, x, 'in', 6), g:tensor { tensor = 'places', rows = 5, cols = 6 })\n"
        "y = g:stack(y, { stack = stack(6, 'rms', e), over = seen })\n"
        "return lin(g, y, 'out', 3)",
        false, false, false);
    can(prompt,
        "local y = g:concat { lin(g, x, 'in', 6), lin(g, g:state { entries = 2 }, 's', 6) }\n"
        "y = g:stack(y, { stack = stack(6, 'rms', e), over = seen })\n"
        "return lin(g, g:take(y, { rows = 5 }), 'out', 3)",
        false, false, false);
    struct tec_model *m =
        opened("return g:prompt(), g:tensor { tensor = 'tok', rows = 1, cols = 6 }", plain,
               "d.action = function(g, seen, row, x, t)\n"
               "  local y = g:concat { row, lin(g, x, 'in', 6) }\n"
               "  y = g:stack(y, { stack = stack(6, 'rms', e), over = seen })\n"
               "  return lin(g, g:take(y, { first = 1, rows = 5 }), 'out', 3)\nend");
    CHECK(!tec_model_batches(m)); /* also where prefill has made the constant */
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_stack_over_the_prompt_is_of_the_steps)
{
    refused(prompt,
            "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
            "local y = g:stack(g:concat { s, s, s, s, s }, { stack = stack(6, 'rms', e), over = "
            "seen })\n"
            "return g:add(lin(g, x, 'in', 3), lin(g, y, 'out', 3))",
            "", ACTION + 1, "stack: over a prompt reads neither the noisy actions nor the time");
}

TEST(a_stack_fits_the_prompt)
{
    stack_refused("stack(6, 'rms', e, { layers = 1 })", "every = 1", "every 1; 1 layers");
    stack_refused("stack(6, 'rms', e, { layers = 1 })", "every = 3", "every 3; 1 layers");
    stack_refused("stack(6, 'rms', e, { heads = 4 })", "", "4/1 heads of 4 cannot read the text's");
    stack_refused("stack(6, 'rms', e, { head_dim = 6 })", "", "2/1 heads of 6 cannot read");
    stack_refused("stack(6, 'rms', e, { theta = 0.0 })", "", "theta 0 cannot read keys that are");
    stack_refused("stack(6, 'rms', e, { scores = { cap = 3.0 } })", "", "scores");
    stack_refused("stack(6, 'rms', e, { after = true })", "", "norms behind the halves");
    stack_refused("stack(6, 'rms', e)", "lead = 6", "lead 6 of 5 rows");
    stack_refused("stack(6, 'rms', e)", "every = 0", "every must be a whole number");
    stack_refused("stack(6, 'rms', e)", "position = g:zeros { rows = 5, cols = 6 }",
                  "over a prompt has no position");
    stack_refused("stack(6, 'rms', e)", "time = g:waves(t, { cols = 6, period = 9.0 })",
                  "time and adaptive norms come together");
    stack_refused("stack(6, 'adaptive', a)", "", "time and adaptive norms come together");
    stack_refused("stack(6, 'adaptive', a)", "time = t", "time has 1 columns, the rows have 6");
    stack_refused("stack(6, 'adaptive', a)", "time = x", "time must be a row of the time");
    stack_refused("stack(5, 'rms', e)", "", "rows of 6 columns in a stack of width 5");
    stack_refused("stack(6, 'rms', e, { activation = 'tanh' })", "", "'tanh' is not gelu");
    stack_refused("stack(6, 'rms', e, { activation = 'gelu_erf' })", "", "silu, not gelu_erf");
    stack_refused("stack(6, 'rms', e, { crossed = { true } })", "", "must be a list of 2 true or");
    stack_refused("stack(6, 'rms', e, { crossed = { true, 1 } })", "", "entry 1 must be true");
    stack_refused("stack(6, 'layer', e, { crossed = { true, true } })", "", "other than rms");
    stack_refused("stack(6, 'rms', { qkv = 'a', q = 'b', o = 'c', up = 'd', down = 'e', norm1 = "
                  "'f', norm2 = 'g' }, { activation = 'relu' })",
                  "", "has both 'qkv' and 'q'");
    stack_refused("stack(6, 'rms', { k = 'a', v = 'b' })", "", "stack.tensors: lacks 'q'");
    stack_refused("stack(6, 'rms', { q = 'a', k = 'b', v = 'c', o = 'd', up = 'e', down = 'f', "
                  "norm1 = 'g', norm2 = 'h', q_norm = 'i' }, { activation = 'relu' })",
                  "", "q_norm and k_norm come together");
    refused(prompt, plain, "d.text = text(2, d.text, { kv_heads = 1, cap = 3.0 })", ACTION,
            "stack: the text has scores of its own");
    refused("return g:hidden { cols = 8 }",
            "return lin(g, g:stack(x, { stack = stack(3, 'layer', e), over = seen }), 'o', 3)", "",
            ACTION, "stack: a flow's action is made of attention and linear, or of a stack over");
    refused("return g:stack(g:hidden { cols = 8 }, { stack = stack(8, 'layer', e), lead = 1 })",
            plain, "", PREFILL, "stack: time, lead and every are of a stack over a prompt");
}

TEST(a_prompt_is_read_by_a_stack_alone)
{
    refused("return g:prompt(), g:prompt()", plain, "", PREFILL,
            "prompt: the prompt is read already");
    refused("return g:hidden { cols = 8 }, g:prompt()", plain, "", PREFILL,
            "prompt: the prompt is read already");
    refused("return lin(g, g:prompt(), 'w', 8)", plain, "", 18, "linear: reads a prompt");
    refused("return g:concat { g:prompt() }", plain, "", PREFILL, "concat: reads a prompt");
    refused(prompt, "g:prompt(); return x", "", ACTION, "prompt: belongs to the prefill of a flow");
    refused(prompt, "return lin(g, lin(g, x, 'in', 6), 'out', 3)", "", 0,
            "action: has no stack over the prompt");
    refused(prompt,
            "local o = { heads = 1, head_dim = 4, q = 'aq', k = 'ak', v = 'av', over = seen }\n"
            "return lin(g, g:attention(x, o), 'out', 3)",
            "", ACTION + 1, "attention: keys of a prompt are for a stack");
    refused(prompt,
            "local o = { heads = 1, head_dim = 4, q = 'aq', k = 'ak', v = 'av' }\n"
            "local y = g:stack(g:attention(x, o), { stack = stack(4, 'rms', e), over = seen })\n"
            "return lin(g, y, 'out', 3)",
            "", ACTION + 1, "attention: an action over a prompt has a stack instead");
    refused(prompt,
            "local y = lin(g, x, 'in', 6)\n"
            "for i = 1, 2 do y = g:stack(y, { stack = stack(6, 'rms', e), over = seen }) end\n"
            "return lin(g, y, 'out', 3)",
            "", ACTION + 1, "stack: is a second one; an action has one stack");
    refused(prompt, plain, "d.flow = nil", PREFILL, "prompt: belongs to the prefill of a flow");
    refused(prompt, plain, "d.text.picture = 30; d.text.mask = 'causal_all'", 0,
            "text.picture: of");
}

TEST(a_row_behind_the_prompt_is_one_of_the_state)
{
    refused("return g:prompt { behind = lin(g, g:state { entries = 2 }, 's', 7) }", plain, "", 18,
            "linear: 7 columns; rows of the text have 8");
    refused("return g:prompt { behind = g:zeros { rows = 1, cols = 8 } }", plain, "", PREFILL,
            "prompt: reads a constant");
    refused("local s = lin(g, g:state { entries = 2 }, 's', 8)\n"
            "return g:prompt { behind = g:concat { s, s } }",
            plain, "", PREFILL + 1, "prompt: 2 rows behind it; must be one");
    refused(behind, plain, "d.text.mask = 'causal_all'", PREFILL,
            "prompt: a row behind it needs a text with mask bidir");
    refused(behind, led, "", ACTION, "state: prefill has made a row of the state");
    refused("lin(g, g:state { entries = 2 }, 's', 8); return g:prompt()", plain, "", 18,
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

/* Tensors are the same for the same seed and name, so what norms read can be computed twice. */
TEST(norms_of_a_stack_are_layers_of_a_row_of_the_time)
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
    const struct tec_model_call *expert = tec_model_expert(m);
    const char *const names[] = {"anorm10", "anorm20", "anorm11", "anorm21", "afinal"};
    struct tec_found found;
    float w[18 * 6];
    for (int norm = 0; norm < 5; norm++) {
        struct tec_expected e = {.names = {names[norm]}, .n_names = 1, .rank = 2, .shape = {18, 6}};
        REQUIRE(tec_weight_find(&source, &e, &found, &err) == TEC_OK);
        tec_weight_rows(&source, &found, 0, 18, w, &err);
        for (int s = 0; s < 5; s++) {
            const float *got = tec_timed_norms(timed, m->program->asks, s) + norm * 3 * 16;
            double c[6];
            tec_model_call_waves(&m->program->calls[expert->time], 1.0 - s / 4.0, c);
            for (int r = 0; r < 18; r++) {
                double x = 0.0;
                for (int i = 0; i < 6; i++)
                    x += (double)w[6 * r + i] * (double)(float)c[i];
                CHECK(fabs((double)got[r / 6 * 16 + r % 6] - x) < 1e-6);
            }
        }
    }
    tec_timed_destroy(timed);
    tec_device_close(device);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
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
    static const char all[] =
        "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
        "local y = g:stack(g:concat { s, lin(g, x, 'in', 6) }, { stack = stack(6, 'rms', e),\n"
        "                                                        over = seen })\n"
        "return lin(g, g:take(y, { first = 1, rows = 5 }), 'out', 3)";
    static const char causal[] = "local y = g:stack(lin(g, x, 'in', 6), { stack = stack(6, 'rms', "
                                 "e), over = seen, lead = 5 }); return lin(g, y, 'out', 3)";
    static const char almost[] = "local y = g:stack(lin(g, x, 'in', 6), { stack = stack(6, 'rms', "
                                 "e), over = seen, lead = 4 }); return lin(g, y, 'out', 3)";
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
        "y = g:stack(y, { stack = stack(6, 'rms', e), over = seen, lead = 1 })\n"
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
    static const char apart[] =
        "local s = lin(g, g:state { entries = 2 }, 's', 6)\n"
        "local u = lin(g, g:state { entries = 1 }, 'u', 6)\n"
        "local y = g:concat { s, u, lin(g, x, 'in', 6) }\n"
        "y = g:stack(y, { stack = stack(6, 'rms', e), over = seen, lead = 2 })\n"
        "return lin(g, g:take(y, { first = 2, rows = 5 }), 'out', 3)";
    static const char activated[] =
        "local s = g:activation(lin(g, g:state { entries = 2 }, 's', 6), { kind = 'relu' })\n"
        "local y = g:concat { s, lin(g, x, 'in', 6) }\n"
        "y = g:stack(y, { stack = stack(6, 'rms', e), over = seen, lead = 1 })\n"
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
