/* builder_flow.c - tests of flows that are programs: what does not fit is refused with its line. */
#include "graph/model/timed.h"
#include "graph/model/weights.h"
#include "tests/built_chunk.h"
#include "tests/flow_bodies.h"
#include "tests/text_words.h"

#include <math.h>
#include <string.h>

/* A text of width 8 and what the bodies may use; 26 lines, the body of prefill is in line 27. */
static const char *prelude = TEXT_WORDS
    "local e = {}\n"
    "for _, r in ipairs { 'q', 'k', 'v', 'o', 'gate', 'up', 'down', 'norm1', 'norm2' } do\n"
    "  e[r] = r ~= 'gate' and 'e' .. r .. '{}' or nil\n"
    "end\n\n\n\n\n" TOWER_WORDS "local v = tower { image_size = 8, mean = { 0, 0, 0 },\n"
    "  std = { 1, 1, 1 },\n"
    "\n"
    "  }\n"
    "local function lin(g, x, w, out) return g:linear(x, { weight = w, bias = w .. 'b', out = out "
    "}) "
    "end\n"
    "local function ask(g, x, o)\n"
    "  o.heads, o.head_dim, o.q, o.k, o.v = o.heads or 2, o.head_dim or 4, 'aq', 'ak', 'av'\n"
    "  return g:attention(x, o)\n"
    "end\n"
    "local d = { name = 't', slots = { 'a' }, ignored = {},\n"
    "  vision = { towers = {\n"
    "    v },\n"
    "    project = project },\n"
    "  text = text(1, { vocab = 32, scale = 1.0, round_logits = true, mask = 'causal_all', bos = "
    "1,\n"
    "           eos = 2, max_tokens = 8, embed = { 'e' }, head = { 'h' } }) }\n"
    "d.flow = { horizon = 5, dim = 3, steps = 4 }\n"
    "d.prefill = function(g)\n"
    "\n";

static const char features[] = "return g:hidden { cols = 8 }";
static const char plain[] = "return lin(g, ask(g, lin(g, x, 'in', 8), { over = seen }), 'out', 3)";

enum { PREFILL = 27, ACTION = 30, FUNCTION = 29 };

static void action_refused(const char *body, const char *says)
{
    refused(features, body, "", ACTION, says);
}

static void prefill_refused(const char *body, const char *says)
{
    refused(body, plain, "", PREFILL, says);
}

static void flow_refused(const char *more, const char *says)
{
    refused(features, plain, more, 0, says);
}

TEST(a_flow_of_words_opens)
{
    struct tec_model *model = NULL;
    enum tec_status status = open_bodies(&model, features, plain, "");
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    CHECK(tec_model_denoises(model) && !tec_model_asks(model) && !tec_model_flows(model));
    CHECK_INT(model->flow.horizon, ==, 5);
    CHECK_INT(model->flow.steps, ==, 4);
    CHECK_INT(tec_model_kept(model)->layers, ==, 1);
    CHECK_INT(tec_model_state(model), ==, 1);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

/* What t alone decides is known at load; what reads it, or x, is made in each step; the rest once.
 */
TEST(what_a_value_depends_on_is_found)
{
    struct tec_model *model = NULL;
    REQUIRE(open_bodies(&model, features,
                        "local w = lin(g, g:waves(t, { cols = 4, period = 9.0 }), 'w', 8)\n"
                        "local s = lin(g, g:state { entries = 2 }, 's', 8)\n"
                        "local n = g:norm(s, { eps = 1e-5, scale = w })\n"
                        "local y = g:concat { s, lin(g, x, 'in', 8), n }\n"
                        "y = g:take(ask(g, y, { over = seen }), { first = 1, rows = 5 })\n"
                        "return lin(g, y, 'out', 3)",
                        "") == TEC_OK);
    const struct tec_model_program *p = model->program;
    int timed = 0, once = 0, moves = 0;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        timed += p->calls[i].timed;
        moves += p->calls[i].moves;
        once += !p->calls[i].timed && !p->calls[i].moves;
    }
    CHECK_INT(timed, ==, 3); /* t, waves, linear */
    CHECK_INT(once, ==, 2);  /* state, linear */
    CHECK_INT(moves, ==, 7); /* x, norm, linear, concat, attention, take, linear */
    CHECK_INT(p->seeing, ==, 7);
    tec_model_close(model);
}

TEST(rows_of_the_time_stay_among_themselves)
{
    action_refused("return g:waves(x, { cols = 4, period = 9.0 })", "waves: reads the time alone");
    action_refused("return g:waves(t, { cols = 5, period = 9.0 })",
                   "waves: cols 5 must be even and at least 4");
    action_refused("return g:waves(t, { cols = 4, period = 1.0 })",
                   "waves: period 1 must be above 1");
    action_refused("return g:waves(t, { cols = 4 })", "waves: period 0 must be above 1");
    action_refused("return g:waves(t, { cols = 4, shortest = 1.0 })",
                   "waves: shortest 1 must be at least 1e-6, and longest 0 above it, at most 1e9");
    action_refused("return g:waves(t, { cols = 4, shortest = 2.0, longest = 2.0 })",
                   "waves: shortest 2 must be at least 1e-6");
    action_refused("return g:waves(t, { cols = 4, period = 9.0, shortest = 1.0, longest = 2.0 })",
                   "waves: has period, or shortest and longest, not both");
    action_refused("return g:columns(x, { cols = 2 })", "columns: reads rows of the time alone");
    action_refused("return g:columns(t, { first = 1, cols = 1 })",
                   "columns: 1 columns from 1 on, of 1");
    action_refused("return g:beside(x, x)", "beside: the second value must be a row of the time");
    action_refused("return g:beside(t, t)", "beside: reads a row of the time");
    action_refused("return g:activation(g:beside(x, t), { kind = 'silu' })",
                   "activation: reads columns beside each other: linear alone does");
    action_refused("return g:add(x, t)", "add: reads a row of the time");
    action_refused("return g:concat { x, t }",
                   "concat: value 2 has 1 columns, the first one has 3");
    refused(features, "return ask(g, t, { over = seen })", "", 16,
            "attention: reads a row of the time");
    action_refused(
        "for i = 1, 5 do g:waves(t, { cols = 1 << 20, period = 9.0 }) end",
        "waves: 1048576 columns: the rows of the time have more than 4194304 in a model");
    action_refused("return g:noise {}", "the builder has no word 'noise'");
}

TEST(norms_are_scaled_by_rows_of_the_time)
{
    action_refused("return g:norm(x, { eps = 1e-5, scale = x })",
                   "norm: scale must be a row of the time");
    action_refused("return g:norm(x, { eps = 1e-5, scale = t })",
                   "norm: scale has 1 columns, the rows have 3");
    action_refused("return g:norm(x, { eps = 1e-5, shift = lin(g, t, 'r', 3) })",
                   "norm: has weight, and perhaps bias, or scale, and perhaps shift");
    action_refused("return g:norm(x, { eps = 1e-5, bias = 'b' })",
                   "norm: has weight, and perhaps bias");
    action_refused("return g:norm(x, { eps = 1e-5, scale = 3 })",
                   "norm: scale must be a value that a word has made");
}

TEST(categories_are_counted)
{
    action_refused("return g:linear(x, { weight = 'w', bias = 'b', out = 3, category = 1 })",
                   "linear: category 1 of 0");
    action_refused(
        "return g:linear(x, { weight = 'w', bias = 'b', out = 3, categories = 2, category = 2 })",
        "linear: category 2 of 2");
    action_refused("return g:linear(x, { weight = 'w', out = 2, gate = lin(g, t, 'r', 3) })",
                   "linear: gate has 3 columns, the rows have 2");
    action_refused("return g:linear(t, { weight = 'w', out = 2, gate = lin(g, t, 'r', 2) })",
                   "linear: gate and factor are for rows, and not for those of the time");
    action_refused("return g:linear(t, { weight = 'w', out = 2, factor = 'f' })",
                   "linear: gate and factor are for rows, and not for those of the time");
    action_refused(
        "return g:linear(x, { weight = 'w', out = 2, factor = 'f', gate = lin(g, t, 'r', 2) })",
        "linear: has gate, factor or times, one of them");
    action_refused("return g:linear(x, { weight = 'w', out = 3, gate = x })",
                   "linear: gate must be a row of the time");
    action_refused("return g:gated(x, { gate = 'a', up = 'b', out = 3, kind = 'relu' })",
                   "gated: kind must be gelu or silu");
    action_refused("return g:gated(t, { gate = 'a', up = 'b', out = 3, kind = 'gelu' })",
                   "gated: reads a row of the time");
    action_refused("return g:linear(x, { weight = 'w', out = 3, categories = 2 })",
                   "linear: lacks bias");
    action_refused(
        "return g:linear(x, { weight = 'w', bias = 'b', out = 3, categories = 2, bf16 = true })",
        "linear: matrices of categories stay float32");
}

TEST(attention_has_rows_and_heads_that_fit)
{
    action_refused(
        "return g:attention(x, { heads = 3, kv_heads = 2, head_dim = 1, q = 'q', k = 'k',"
        " v = 'v' })",
        "attention: 3 heads of 1 over 2 kv_heads");
    action_refused(
        "return g:attention(x, { heads = 1024, head_dim = 4096, q = 'q', k = 'k', v = 'v' "
        "})",
        "attention: 1024 heads of 4096");
    action_refused("return g:attention(x, { heads = 1, head_dim = 1, q = 'q', k = 'k', v = 'v',\n"
                   "q_norm = 'n' })",
                   "attention: norms of heads and an eps above 0 come together");
    action_refused("return g:attention(x, { heads = 1, head_dim = 1, q = 'q', k = 'k' })",
                   "attention: has q, k and v, each");
    refused(features, "return g:attention(x, { heads = 2, head_dim = 4, qkv = 'a', over = seen })",
            "", 30, "attention: qkv reads rows of 3 columns; over has 8");
    refused(features, "return ask(g, x, { sees = 'rest' })", "", 16,
            "attention: sees and over_position are of over: it has none");
    refused(features, "return ask(g, x, { over = x })", "", 16,
            "attention: over must be what prefill has made");
    refused(features, "return ask(g, x, { over = seen, sees = 'text' })", "", 16,
            "attention: sees must be all, pictures or rest");
    refused(features, "ask(g, x, {}); return ask(g, x, { heads = 1, over = seen })", "", 16,
            "attention: keys of 1 heads of 4; those of the first attention are 2 of 4");
    refused(features, "ask(g, x, {}); return ask(g, g:take(x, { rows = 2 }), { over = seen })", "",
            16, "attention: of 2 rows; an action has attention of equally many rows, here 5");
    refused(features, "return lin(g, ask(g, x, { over = seen, sees = 'rest' }), 'out', 3)", "", 16,
            "attention: sees rows of pictures apart: it needs text.picture");
}

TEST(rows_that_are_taken_are_there)
{
    action_refused("return g:take(x, { first = 3, rows = 3 })", "take: 3 rows from 3 on, of 5");
    action_refused("return g:take(x, { first = 1 << 20, rows = 1 << 20 })",
                   "take: 1048576 rows from");
    action_refused("return g:take(x, { first = -1, rows = 3 })",
                   "take: first must be a whole number");
    action_refused("return g:take(g:zeros { rows = 3, cols = 3 }, { rows = 4 })",
                   "take: 4 rows from 0 on, of 3");
    prefill_refused("return g:take(g:hidden { cols = 8 }, { rows = 1 })",
                    "take: reads constants, or rows of a flow's action");
    prefill_refused("return g:concat { g:hidden { cols = 8 } }",
                    "concat: value 1 has as many rows as the prompt");
}

TEST(a_prefill_reads_the_prompt)
{
    prefill_refused("return g:hidden { rows = 4, cols = 8 }",
                    "hidden: rows are as many as the prompt has");
    prefill_refused("return g:hidden { cols = 9 }", "hidden: 9 columns; rows of the text have 8");
    prefill_refused("return g:state { entries = 2 }",
                    "state: belongs to a flow's action, or behind a prompt");
    prefill_refused("return g:picture { slot = 'a', height = 8, width = 8, mean = { 0, 0, 0 },\n"
                    "std = { 1, 1, 1 } }",
                    "picture: pictures of a model with a text are its vision's");
    action_refused("return g:hidden { cols = 8 }", "hidden: the prompt is read already");
    refused("return g:zeros { rows = 1, cols = 8 }", plain, "", 0, "over must be what prefill");
}

TEST(a_flow_is_whole)
{
    refused(features, "return lin(g, x, 'out', 3)", "", 0,
            "action: has attention neither over what prefill has made of hidden rows, nor");
    refused("local x = g:hidden { cols = 8 }; lin(g, x, 'p', 8); return x",
            "return lin(g, ask(g, lin(g, x, 'in', 8), { over = seen }), 'out', 3)", "", 13,
            "linear: nobody reads its value");
    refused(features, "return lin(g, ask(g, lin(g, x, 'in', 8), { over = seen }), 'out', 4)", "",
            13, "linear: 5 rows of 4 columns; what x moves by is 5 of 3");
    refused(features, "ask(g, x, { over = seen }); return g:zeros { rows = 5, cols = 3 }", "", 30,
            "zeros: 5 rows of 3 columns; what x moves by is 5 of 3");
    refused(features, "ask(g, x, { over = seen }); return x", "", FUNCTION,
            "x: 5 rows of 3 columns; what x moves by is 5 of 3, and not x");
    refused(features,
            "local s = lin(g, g:state { entries = 2 }, 's', 8)\n"
            "local y = lin(g, g:beside(g:concat { s, s, s, s, s }, t), 'm', 8)\n"
            "return lin(g, ask(g, y, { over = seen }), 'out', 3)",
            "", FUNCTION, "x: nobody reads its value");
    flow_refused("d.flow = { horizon = 0, dim = 3, steps = 4 }", "flow: horizon must be 1 ..");
    flow_refused("d.flow = { horizon = 1 << 40, dim = 3, steps = 4 }", "flow: ");
    flow_refused("d.flow = { horizon = 5000, dim = 3, steps = 4 }",
                 "flow: 5000 actions of 3 values");
    flow_refused("d.flow = { horizon = 5, dim = 3, steps = 0 }", "flow: 0 steps and 0 buckets");
    flow_refused("d.flow = { horizon = 5, dim = 3, steps = 4, buckets = -1 }", "-1 buckets");
    flow_refused("d.flow = { horizon = 5, dim = 3 }", "flow: ");
    flow_refused("d.flow = { horizon = 5, dim = 3, steps = 4, bucket = 3 }", "flow: ");
    flow_refused("d.flow = 7", "flow: ");
    flow_refused("d.prefill = nil", "flow needs the functions prefill and action");
    flow_refused("d.prefill = nil; d.action = nil", "flow needs the functions prefill and action");
    flow_refused("d.tokens = { most = 3, vocab = 32, bins = 4 }",
                 "a flow stands beside text and vision");
    flow_refused("d.vision = nil", "a flow stands beside text and vision");
    flow_refused("d.text = nil", "");
}

enum { CHUNK = 15 };

/* The chunk that a body makes of one picture, four tokens and noise, in bf16. */
static void run(const char *action, float chunk[CHUNK])
{
    static uint8_t pixels[8 * 8 * 3];
    static const int ids[] = {30, 3, 4, 5};
    float noise[CHUNK], state[2] = {0.5F, -1.0F};
    struct built_chunk b = {
        .bf16 = true,
        .spec = {.frame_tokens = 16, .text_tokens = 8, .n_actions = 1, .actions = {{.steps = 3}}},
        .seen = {.n_pictures = 1, .picture = {pixels}, .ids = ids, .n_text = 4},
        .start = {.noise = noise, .state = state}};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 % 251);
    for (int i = 0; i < CHUNK; i++)
        noise[i] = (float)(i % 7) / 7.0F - 0.5F;
    (void)open_bodies(&b.model, features, action, "d.text.picture = 30");
    built_chunk(&b, &heap, &err, chunk);
}

/* Both bodies make this chunk, but for the order of sums in float32. */
static void same_chunk(const char *one, const char *other)
{
    float a[CHUNK], b[CHUNK], most = 0.0F;
    run(one, a);
    run(other, b);
    for (int i = 0; i < CHUNK; i++) {
        CHECK(isfinite(a[i]) && fabsf(a[i] - b[i]) < 1e-5F);
        most = fmaxf(most, fabsf(a[i]));
    }
    CHECK(most > 0.01F);
}

/* The rows of attention may be those of the chunk; a sum is the same in any order, and so are
 * rows that are taken and joined again. */
TEST(one_computation_has_one_result)
{
    same_chunk(
        plain,
        "local y = ask(g, lin(g, x, 'in', 8), { over = seen })\n"
        "local z = g:concat { g:take(y, { rows = 2 }), g:take(y, { first = 2, rows = 3 }) }\n"
        "return lin(g, z, 'out', 3)");
    same_chunk("local y = lin(g, x, 'in', 8)\n"
               "y = g:add(lin(g, ask(g, y, { over = seen }), 'o', 8), y)\n"
               "return lin(g, y, 'out', 3)",
               "local y = lin(g, x, 'in', 8)\n"
               "y = g:add(y, lin(g, ask(g, y, { over = seen }), 'o', 8))\n"
               "return lin(g, y, 'out', 3)");
    same_chunk("local s = lin(g, g:state { entries = 2 }, 's', 8)\n"
               "local y = g:concat { s, lin(g, x, 'in', 8), lin(g, t, 't', 8) }\n"
               "y = lin(g, ask(g, ask(g, y, {}), { over = seen }), 'o', 8)\n"
               "return lin(g, g:take(y, { first = 1, rows = 5 }), 'out', 3)",
               "local y = g:concat { lin(g, x, 'in', 8), lin(g, t, 't', 8),\n"
               "                     lin(g, g:state { entries = 2 }, 's', 8) }\n"
               "y = lin(g, ask(g, ask(g, y, {}), { over = seen }), 'o', 8)\n"
               "return lin(g, g:take(y, { rows = 5 }), 'out', 3)");
}

/* A flow with every way to read the time, and one row of it at step 1 of 4. */
static enum tec_status load(struct tec_heap *of, float row[8])
{
    static const char action[] =
        "local w = g:waves(t, { cols = 4, period = 9.0, cosines = true, closed = true })\n"
        "local c = lin(g, g:activation(lin(g, w, 'w', 16), { kind = 'silu' }), 'c', 16)\n"
        "local m = g:linear(w, { weight = 'm', bias = 'mb', out = 8, categories = 2, category = 1 "
        "})\n"
        "m = g:add(m, g:columns(c, { first = 8, cols = 8 }), { name = 'sum' })\n"
        "local y = g:norm(lin(g, x, 'in', 8), { eps = 1e-5, scale = m })\n"
        "y = lin(g, g:beside(ask(g, y, { over = seen }), c), 'b', 8)\n"
        "return g:linear(y, { weight = 'out', out = 3, gate = lin(g, w, 'g', 3) })";
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    struct tec_model *model = NULL;
    struct tec_device *device = NULL;
    struct tec_weights *weights = NULL;
    struct tec_timed *timed = NULL;
    enum tec_status status = open_in(of, &model, features, action, "");
    if (status == TEC_OK)
        status = tec_device_open(&device, &d, of, &err);
    const struct tec_weights_options w = {.model = model, .source = {.seed = 7}, .device = device};
    if (status == TEC_OK)
        status = tec_weights_load(&weights, &w, of, &err);
    if (status == TEC_OK)
        status = tec_timed_create(&timed, model->program, &w.source,
                                  &(struct tec_timed_options){.steps = 4}, device, of, &err);
    for (int i = 0; status == TEC_OK && i < model->program->n; i++) {
        const char *name = model->program->calls[i].name;
        if (name && strcmp(name, "sum") == 0)
            memcpy(row, tec_timed_row(timed, i, 1), 8 * sizeof *row);
    }
    tec_timed_destroy(timed);
    tec_weights_close(weights);
    tec_device_close(device);
    tec_model_close(model);
    return status;
}

TEST(every_allocation_may_fail)
{
    enum tec_status status = TEC_NO_MEMORY;
    float row[8] = {0};
    int at = 0;
    while (status != TEC_OK && at < 20000) {
        struct tec_heap of = {.fail_at = ++at};
        status = load(&of, row);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
        CHECK_INT(of.live, ==, 0);
    }
    CHECK(status == TEC_OK && at > 100);
}

/* Tensors are the same for the same seed and name, so the row can be computed a second time. */
TEST(rows_of_the_time_are_what_their_words_say)
{
    const struct tec_weight_source source = {.seed = 7};
    const struct tec_dense w = {"w", "wb", 16, 4}, c = {"c", "cb", 16, 16}, m = {"m", "mb", 8, 4};
    const double t = 0.25, waves[4] = {cos(t), cos(t / 9.0), sin(t), sin(t / 9.0)};
    float row[8] = {0}, a[64], ab[16], b[256], bb[16], k[32], kb[8];
    double hidden[16];
    struct tec_found found;
    REQUIRE(load(&heap, row) == TEC_OK);
    struct tec_expected e = {.names = {"w"}, .n_names = 1, .rank = 2, .shape = {16, 4}};
    REQUIRE(tec_weight_find(&source, &e, &found, &err) == TEC_OK);
    tec_weight_rows(&source, &found, 0, 16, a, &err);
    tec_weight_vector(&source, w.bias, 16, 0.0F, ab, &err);
    e = (struct tec_expected){.names = {"c"}, .n_names = 1, .rank = 2, .shape = {16, 16}};
    REQUIRE(tec_weight_find(&source, &e, &found, &err) == TEC_OK);
    tec_weight_rows(&source, &found, 0, 16, b, &err);
    tec_weight_vector(&source, c.bias, 16, 0.0F, bb, &err);
    const struct tec_category second = {1, 2};
    REQUIRE(tec_weight_category(&source, &m, second, &found, &err) == TEC_OK);
    tec_weight_rows(&source, &found, 0, 4, k, &err);
    REQUIRE(tec_weight_category_bias(&source, &m, second, kb, &err) == TEC_OK);
    for (int r = 0; r < 16; r++) {
        double x = (double)ab[r];
        for (int i = 0; i < 4; i++)
            x += (double)a[4 * r + i] * waves[i];
        hidden[r] = x / (1.0 + exp(-x));
    }
    for (int r = 0; r < 8; r++) {
        double x = (double)bb[8 + r] + (double)kb[r];
        for (int i = 0; i < 16; i++)
            x += (double)b[16 * (8 + r) + i] * hidden[i];
        for (int i = 0; i < 4; i++)
            x += (double)k[8 * i + r] * waves[i];
        CHECK(fabs((double)row[r] - x) < 1e-6);
    }
}

TAP_MAIN
