/* builder_tower.c - tests of picture towers that are programs: what does not fit is refused with
 * its line, and what a layer is made of is free. */
#include "graph/model/program.h"
#include "graph/model/weights.h"
#include "tests/described.h"
#include "tests/tap.h"
#include "tests/text_words.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

/* Opens a model whose tower has one layer; `body` is that of its layer, in line 2, `more` changes
 * the tower t, and the list of towers, before. */
static enum tec_status open_tower(struct tec_model **out, const char *body, const char *more)
{
    return described(
        out, &heap, &err,
        TEXT_WORDS TOWER_WORDS
        "local usual = tower({}).layer; local function made(g, x, i)\n"
        "%s\n"
        "end local t = tower { image_size = 8, mean = { 0, 0, 0 },\n"
        "  std = { 1, 1, 1 }, made = made }\n"
        "local towers = { t } %s\n"
        "return { name = 't', slots = { 'a' }, ignored = {},\n"
        "  vision = { towers = towers, project = project },\n"
        "  text = text(1, { vocab = 32, scale = 1.0, round_logits = true, bos = 1, eos = 2,\n"
        "    mask = 'causal_all', picture = 3, max_tokens = 8, embed = { 'e' }, head = { 'h' } "
        "}) }\n",
        body, more);
}

static void refused_with(const char *body, const char *more, int line, const char *says)
{
    struct tec_model *model = NULL;
    CHECK(open_tower(&model, body, more) != TEC_OK);
    described_says(&err, line, says);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

/* An attention with these options and a product behind it. */
static void attention_refused(const char *options, const char *says)
{
    char body[400];
    snprintf(body, sizeof body,
             "local o = { heads = 2, head_dim = 4, %s } "
             "return g:linear(g:attention(x, o), { weight = 'w', out = 8 })",
             options);
    refused_with(body, "", 2, says);
}

static struct tec_model *opened(const char *body, const char *more)
{
    struct tec_model *model = NULL;
    if (open_tower(&model, body, more) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(model);
    return model;
}

TEST(a_tower_opens)
{
    struct tec_model *m = opened("return usual(g, x, i)", "");
    const struct tec_tower *t = &m->vision.towers[0];
    const struct tec_stack *s = &t->stack;
    CHECK(t->program->tower && t->program->leaves && tec_model_program_rounds(t->program));
    CHECK(!m->text.program->tower);
    CHECK_INT(s->layers * 1000 + s->width * 100 + s->heads * 10 + s->kv_heads, ==, 1822);
    CHECK_INT(s->head_dim * 100 + s->mlp, ==, 416);
    tec_model_close(m);
    m = opened(
        "local o = { heads = 4, kv_heads = 2, head_dim = 3, qkv = 'a', q_norm = 'b', eps = 1e-6 } "
        "local y = g:gated(x, { gate = 'c', up = 'd', out = 12, kind = 'silu' }) "
        "x = g:linear(g:attention(x, o), { weight = 'w', out = 8, factor = 'f' }) "
        "return g:add(g:linear(y, { weight = 'z', out = 8 }), x)",
        "local enter = t.enter; t.leave = nil; "
        "t.enter = function(g, x) return g:norm(enter(g, x), { eps = 1e-5 }) end");
    s = &m->vision.towers[0].stack;
    CHECK(!m->vision.towers[0].program->leaves);
    CHECK(!tec_model_program_rounds(m->vision.towers[0].program));
    CHECK_INT(s->heads * 1000 + s->kv_heads * 100 + s->head_dim * 10 + s->mlp, ==, 4242);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(rows_of_a_picture_have_no_order)
{
    static const char qkv[] = "q = 'q', k = 'k', v = 'v'";
    static const char relative[] = "relative = { name = 'r', rows = 8, buckets = 8, distance = 9 }";
    const char *const options[] = {"window = 3", relative};
    char body[300];
    for (int i = 0; i < 2; i++) {
        snprintf(body, sizeof body, "%s, %s", qkv, options[i]);
        attention_refused(body, "attention: window and relative are of a text: rows of a picture");
    }
    snprintf(body, sizeof body, "%s, over = x", qkv);
    attention_refused(body, "attention: over and sees are of a flow's action");
    refused_with("return g:linear(usual(g, x, i), { weight = 'a.weight', out = 8, packing = { kind "
                 "= 'awq', group = 8 } })",
                 "", 2, "linear: packing is for layers of a text");
}

/* Lines and columns turn queries and keys, of all layers alike. */
TEST(a_tower_has_one_rotation)
{
    static const char turned[] =
        "local o = { heads = 2, head_dim = 4, qkv = 'a' .. i, rotation = { theta = 1e4 %s } } "
        "return g:linear(g:attention(x, o), { weight = 'w' .. i, out = 8 })";
    static const char front[] = "local enter = t.enter; t.enter = function(g, x) return g:concat { "
                                "g:tensor { tensor = 'c', rows = 1, cols = 8 }, enter(g, x) } end";
    static const char only[] = "attention: a tower's rotation has theta and f32, and no rows stand";
    char body[300];
    snprintf(body, sizeof body, turned, "");
    struct tec_model *m = opened(body, "t.layers = 2");
    const struct tec_model_program *p = m->vision.towers[0].program;
    CHECK_INT(p->n_rotations, ==, 1);
    CHECK_INT(p->calls[p->layers[1].attention].attend.turn, ==, TEC_MAX_ROTATIONS);
    tec_model_close(m);
    refused_with(body, front, 2, only);
    snprintf(body, sizeof body, turned, ", sections = { 1, 1, 1 }");
    refused_with(body, "", 2, only);
    snprintf(body, sizeof body, turned, ", stretch = { kind = 'linear', factor = 2.0 }");
    refused_with(body, "", 2, only);
    snprintf(body, sizeof body, turned, "+ i");
    refused_with(body, "t.layers = 2", 2, "attention: a tower has one rotation");
    attention_refused("head_dim = 6, qkv = 'a', rotation = { theta = 1e4 }",
                      "attention: a tower's rotation needs a head_dim of fours, is 6");
}

/* Rows that leave a layer go to project, and what this makes of them to layers of the text. */
TEST(rows_of_layers_are_kept)
{
    static const char body[] = "return usual(g, x, i)";
    static const char twice[] =
        "t.keeps = { 0 }; local one = project; project = function(g, x, kept) return one(g, x), %s "
        "end";
    char more[300];
    refused_with(body, "t.keeps = 3", 0, "vision.towers: keeps must be a list of 8 layers at most");
    refused_with(body, "t.keeps = { 1 }", 0,
                 "vision.towers: keeps: layer 1 must be a number, 0 ..");
    refused_with(body, "t.layers = 1; t.keeps = { 0, 0 }", 0, "keeps: layer 2 must be a number, 1");
    refused_with(body, "t.keeps = { 0 }; towers[2] = t", 0, "keeps is of one tower");
    refused_with(body,
                 "t.keeps = { 0 }; local one = project; project = function(g, x) return one(g, x) "
                 "end",
                 0, "x: nobody reads its value");
    snprintf(more, sizeof more, twice, "g:linear(kept, { weight = 'd', out = 8 })");
    refused_with(body, more, 0, "need text.picture and a flow over the text's rows");
    snprintf(more, sizeof more, twice, "g:linear(kept, { weight = 'd', out = 9 })");
    refused_with(body, more, 0,
                 "project returns 4 rows of 9 columns for layer 0 of the text; must");
    snprintf(more, sizeof more, twice, "g:norm(kept, { eps = 1e-5 })");
    refused_with(body, more, 0, "it must be a linear that nobody else reads");
    snprintf(more, sizeof more, twice, "kept");
    refused_with(body, more, 0, "project: must return rows that a word of it has made");
}

TEST(a_tower_begins_with_patches)
{
    static const char body[] = "return usual(g, x, i)";
    static const char enter[] =
        "t.enter = function(g, x) x = g:conv(x, { weight = 'p', out = 8, side = 4, stride = 4, "
        "frames = %d }) return g:add(x, g:grid(x, { tensor = 'pos', side = 3, corners = true, "
        "smooth = %s })) end";
    char more[400];
    snprintf(more, sizeof more, enter, 3, "false");
    struct tec_model *m = opened(body, more);
    const struct tec_expected e =
        tec_model_conv_expected(&m->vision.towers[0].program->calls[1], 3);
    CHECK_INT(e.rank, ==, 5);
    CHECK_INT(e.shape[0] * 10000 + e.shape[1] * 1000 + e.shape[2] * 100 + e.shape[3] * 10 +
                  e.shape[4],
              ==, 83344);
    tec_model_close(m);
    snprintf(more, sizeof more, enter, 17, "false");
    refused_with(body, more, 0, "conv: frames 17; 1 .. 16");
    snprintf(more, sizeof more, enter, 1, "true");
    refused_with(body, more, 0, "grid: has smooth or corners, not both");
}

TEST(projections_are_three_tensors_or_one)
{
    static const char says[] = "attention: has q, k and v, each perhaps with a bias, or qkv";
    attention_refused("q = 'q', k = 'k'", says);
    attention_refused("q_bias = 'q'", says);
    attention_refused("q = 'q', k = 'k', v = 'v', qkv = 'a'", says);
    attention_refused("qkv = 'a', v_bias = 'b'", says);
    attention_refused("q = 'q', k = 'k', v = 'v', qkv_bias = 'b'", says);
    attention_refused("qkv = 'a.weight', packing = { kind = 'awq', group = 8 }",
                      "attention: qkv beside packing");
}

TEST(a_tower_has_its_functions_and_sizes)
{
    static const char body[] = "return usual(g, x, i)";
    refused_with(body, "t.layer = nil", 0, "vision.towers: lacks the function layer");
    refused_with(body, "t.enter = nil", 0, "vision.towers: lacks the function enter");
    refused_with(body, "t.image_size = nil", 0, "vision.towers: image_size must be a whole number");
    refused_with(body, "project = nil", 0, "vision: lacks the function project");
    refused_with(body, "t.layers = nil", 0, "vision.towers: layers must be a whole number, 1 ..");
    refused_with(body, "t.width = 0", 0, "vision.towers: width must be a whole number, 1 ..");
    refused_with(body, "towers[2] = {}", 0, "vision.towers: lacks the function layer");
    refused_with(body, "towers = { 3 }", 0, "vision.towers");
    refused_with(body, "towers = { t, t, t }", 0, "towers must be 1 .. 2");
    refused_with(body, "t.stack = {}", 0, "stack");
    refused_with("return x", "", 1, "layer: layer 0 has no attention");
    refused_with("return g:linear(usual(g, x, i), { weight = 'w', out = 5 })", "", 1,
                 "layer: returns rows of 5 columns; those of the tower have 8");
    refused_with("return g:add(usual(g, x, i), g:zeros { rows = 1, cols = 8 })", "", 2,
                 "zeros: is no word of a layer; its words are norm linear");
    refused_with("local o = { heads = 2 + 2 * i, kv_heads = 2, head_dim = 4, qkv = 'a' .. i } "
                 "return g:linear(g:attention(x, o), { weight = 'w' .. i, out = 8 })",
                 "t.layers = 2", 2, "attention: 4 heads; the first layer has 2");
    refused_with("return g:linear(usual(g, x, i), { weight = 'w', out = 8, factor = 'f' .. i })",
                 "t.layers = 2", 2, "linear: 'w' is another tensor in line 2");
}

/* One table may be two towers, and each reads it. */
TEST(towers_may_be_alike)
{
    struct tec_model *m = opened("return usual(g, x, i)", "towers[2] = t");
    CHECK_INT(m->vision.n_towers, ==, 2);
    CHECK(m->vision.towers[0].program != m->vision.towers[1].program);
    CHECK_INT(m->vision.project->calls[2].cols, ==, 16);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

static enum tec_status count(void *user, const struct tec_expected *expected, struct tec_error *e)
{
    int *counts = user;
    (void)e;
    counts[0] += strcmp(expected->names[0], "a") == 0 && expected->shape[0] == 24;
    counts[1] += strcmp(expected->names[0], "b") == 0 && expected->shape[0] == 24;
    counts[2] += strcmp(expected->names[0], "f") == 0 && expected->shape[0] == 8;
    return TEC_OK;
}

TEST(tensors_of_a_tower_are_expected)
{
    struct tec_model *m =
        opened("local o = { heads = 2, head_dim = 4, qkv = 'a', qkv_bias = 'b' } "
               "return g:linear(g:attention(x, o), { weight = 'w', out = 8, factor = 'f' })",
               "");
    int counts[3] = {0, 0, 0};
    CHECK(tec_model_visit(m, count, counts, &err) == TEC_OK);
    CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == 1);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
