/* builder_text.c - tests of texts that are programs: what does not fit is refused with its line,
 * layers are wired as their words say, and a prefill leaves out what nobody reads. */
#include "graph/model/program.h"
#include "graph/model/weights.h"
#include "tests/described.h"
#include "tests/tap.h"
#include "tests/text_words.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

/* Opens a text of two layers; `body` is that of its layer, in line 4, `more` changes the text t
 * before. */
static enum tec_status open_text(struct tec_model **out, const char *body, const char *more)
{
    return described(
        out, &heap, &err,
        TEXT_WORDS
        "local t = text(2, { vocab = 32, scale = 1.0, round_logits = true, eos = 2, bos = 1,\n"
        "  mask = 'causal_all', max_tokens = 8, embed = { 'e' }, head = { 'h' } })\n"
        "local own = t.layer; t.layer = function(g, x, i)\n"
        "%s\n"
        "end %s\n"
        "return { name = 't', ignored = {}, text = t }\n",
        body, more);
}

static void refused_with(const char *body, const char *more, int line, const char *says)
{
    struct tec_model *model = NULL;
    CHECK(open_text(&model, body, more) != TEC_OK);
    described_says(&err, line, says);
    CHECK_INT(heap.live, ==, 0);
}

static void refused(const char *body, const char *says)
{
    refused_with(body, "", 4, says);
}

/* An attention with these options in front of the layer. */
static void attention_refused(const char *options, const char *says)
{
    char body[400];
    snprintf(body, sizeof body,
             "local o = { heads = 2, head_dim = 4, q = 'q', k = 'k', v = 'v', %s } "
             "return g:linear(g:attention(x, o), { weight = 'w', out = 8 })",
             options);
    refused(body, says);
}

TEST(a_text_opens)
{
    struct tec_model *m = NULL;
    REQUIRE(open_text(&m, "return own(g, x, i)", "") == TEC_OK);
    const struct tec_model_program *p = m->text.program;
    const struct tec_stack *s = &m->text.stack;
    CHECK(!m->program && tec_model_reads(m) && p->leaves);
    CHECK_INT(p->n_layers, ==, 2);
    CHECK_INT(p->n_rotations, ==, 1);
    CHECK_INT(s->layers * 1000 + s->width * 100 + s->heads * 10 + s->kv_heads, ==, 2822);
    CHECK_INT(s->head_dim * 100 + s->mlp, ==, 416);
    CHECK_INT(tec_model_attention(m, 1)->place, ==, 1);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_layer_has_one_attention_and_gives_rows)
{
    refused_with("return x", "", 3, "layer: layer 0 has no attention");
    refused("local o = { heads = 2, head_dim = 4, q = 'q', k = 'k', v = 'v' } "
            "return g:attention(g:attention(x, o), o)",
            "attention: is a second one; a layer has one");
    refused_with("own(g, x, i)", "", 3, "layer: must return rows that a word of it has made");
    refused_with("own(g, x, i); return g", "", 3, "layer: must return rows");
    refused_with("return g:linear(own(g, x, i), { weight = 'w', out = 5 })", "", 3,
                 "layer: returns rows of 5 columns; those of the text have 8");
    refused("local y = g:norm(x, { eps = 1e-5 }); return own(g, x, i)",
            "norm: nobody reads its value");
    refused("return own(g, g:norm(x, { eps = 1e-5, offset = 1.0 }), i)",
            "norm: offset and bf16 are of weight, which it lacks");
    refused("return own(g, g:norm(x, { eps = 1e-5, bf16 = true }), i)",
            "norm: offset and bf16 are of weight, which it lacks");
    refused("return own(g, g:linear(x, { weight = 'a.weight', bias = 'b', out = 8, categories = 2, "
            "packing = { kind = 'awq', group = 8 } }), i)",
            "linear: matrices of categories stay float32");
    refused("return own(g, g:linear(x, { weight = 'a.weight', out = 9, packing = { kind = 'awq', "
            "group = 8 } }), i)",
            "linear: a 4-bit matrix with a side of 9; must be a multiple of 8");
    refused_with(
        "local o = { heads = 2, head_dim = 4, q = 'q', k = 'k', v = 'v', rotation = { "
        "theta = 1e4 + i } } return g:linear(g:attention(x, o), { weight = 'w', out = 8 })",
        "t.layers = 5", 4, "attention: a text has more than 4 rotations");
}

TEST(a_layer_reads_its_own_rows)
{
    static const char kept[] =
        "; local kept = {}; local one = t.layer; t.layer = function(g, x, i)\n"
        "kept[1] = kept[1] or x; x = one(g, x, i); return g:add(x, kept[1])"
        "\nend";
    refused("return g:add(own(g, x, i), g:zeros { rows = 1, cols = 8 })",
            "zeros: is no word of a layer; its words are norm linear gated add activation "
            "attention");
    refused_with("return own(g, x, i)", kept, 6,
                 "add: operand 2 is a value of another layer; a layer is given one");
    refused_with("return own(g, x, i)",
                 "t.leave = function(g, x) local o = { heads = 2, head_dim = 4, q = 'q', k = 'k', "
                 "v = 'v' } return g:attention(x, o) end",
                 5, "attention: belongs to a layer");
}

TEST(attentions_of_no_text_are_refused)
{
    attention_refused("cap = -1.0", "attention: scale 0 and cap -1 must not be negative");
    attention_refused("scale = -1.0", "must not be negative");
    attention_refused("window = 0", "attention: window must be a whole number");
    attention_refused("rotation = { theta = 1.0 }", "rotation: theta must be above 1, is 1");
    attention_refused("rotation = {}", "rotation");
    attention_refused("rotation = { theta = 1e4, stretch = { kind = 'yarn', factor = 2.0 } }",
                      "'yarn' is not linear or llama3");
    attention_refused("rotation = { theta = 1e4, stretch = { kind = 'llama3', factor = 2.0 } }",
                      "low 0 above 0");
    attention_refused("head_dim = 3, rotation = { theta = 1e4 }", "needs an even head_dim, is 3");
    attention_refused("rotation = { theta = 1e4 + i }, kv_heads = 3",
                      "2 heads of 4 over 3 kv_heads");
    attention_refused("q_norm = 'a'", "norms of heads and an eps above 0 come together");
    attention_refused("offset = 1.0", "offset 1 is added to weights of norms of heads");
    attention_refused("q_norm = 'a', eps = 1e-5, offset = 1e7", "must be below 1e6");
    attention_refused("head_dim = 4097", "2 heads of 4097 over 2 kv_heads");
    attention_refused("sees = 'rest'", "sees and over_position are of over: it has none");
    attention_refused("rotation = 3", "rotation");
    attention_refused("rotation = { theta = 1e4, turn = 1 }", "turn");
    attention_refused("rotation = { theta = 1e4, sections = { 1, 1 } }", "rotation.sections");
    attention_refused("rotation = { theta = 1e4, sections = { 1, 0, 1 } }",
                      "rotation.sections: each must be");
    attention_refused("rotation = { theta = 1e4, sections = { 1, 1, 1 } }",
                      "attention: sections of 3 pairs; a head of 4 has 2");
    attention_refused("head_dim = 6, rotation = { theta = 1e4 + i, sections = { 1, 1, 1 } }",
                      "attention: with sections a text has one rotation");
    attention_refused("relative = { name = 'r' }", "relative");
    attention_refused("packing = { kind = 'awq' }", "packing");
    attention_refused("over = x", "over and sees are of a flow's action");
    attention_refused("relative = { name = 'r', rows = 8, buckets = 3, distance = 9 }",
                      "relative: 3 buckets of 8 rows");
    attention_refused("relative = { name = 'r', rows = 8, buckets = 8, distance = 9 }",
                      "relative is for texts that become one vector");
    attention_refused("packing = { kind = 'gguf', group = 8 }", "'gguf' is not awq or gptq");
    attention_refused("packing = { kind = 'awq', group = 7 }", "groups of 7");
    attention_refused("packing = { kind = 'awq', group = 8 }", "packed 'q' must end with .weight");
    attention_refused("kv_heads = 1 + i % 2", "keys of 2 heads of 4; those of the first attention");
}

TEST(layers_agree_on_what_they_share)
{
    static const char relative[] =
        "local o = { heads = 2, head_dim = 4, q = 'q', k = 'k', v = 'v', relative = { name = 'r', "
        "rows = 8 + %s, buckets = 8 + %s, distance = 9 + %s } } "
        "return g:linear(g:attention(x, o), { weight = 'w' .. i, out = 8 })";
    static const char *const others[][3] = {{"i", "0", "0"}, {"4", "4 * i", "0"}, {"0", "0", "i"}};
    char body[400];
    for (int i = 0; i < 3; i++) {
        snprintf(body, sizeof body, relative, others[i][0], others[i][1], others[i][2]);
        refused_with(body, "t.pool = 'mean'", 4, "relative is the same table in all layers");
    }
    refused("local o = { heads = 2 + 2 * i, kv_heads = 2, head_dim = 4, q = 'q', k = 'k', v = 'v' "
            "} return g:linear(g:attention(x, o), { weight = 'w' .. i, out = 8 })",
            "attention: 4 heads; the first layer has 2");
    refused("return g:linear(own(g, x, i), { weight = 'a.weight', out = 8, packing = { kind = "
            "'awq', group = 8 + 8 * i } })",
            "linear: 'a.weight' is another tensor in line 4");
    refused("return g:linear(own(g, x, i), { weight = 'a.weight', out = 8, packing = { kind = "
            "'gptq', group = 8, minus = i == 0 } })",
            "linear: 'a.weight' is another tensor in line 4");
}

static enum tec_status count_q(void *user, const struct tec_expected *expected, struct tec_error *e)
{
    int *n = user;
    (void)e;
    *n += strcmp(expected->names[0], "q0") == 0 || strcmp(expected->names[0], "gate0") == 0;
    return TEC_OK;
}

/* What is named once more is there once: expected, and in the device's memory. */
TEST(layers_that_name_the_same_tensors_share_them)
{
    struct tec_model *m = NULL;
    struct tec_device *device = NULL;
    struct tec_weights *w = NULL;
    int n = 0;
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    REQUIRE(open_text(&m, "return own(g, x, 0)", "") == TEC_OK);
    const struct tec_program_layer *layers = m->text.program->layers;
    CHECK_INT(tec_model_attention(m, 1)->same, ==, layers[0].attention);
    CHECK(tec_model_visit(m, count_q, &n, &err) == TEC_OK);
    CHECK_INT(n, ==, 2);
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    const struct tec_weights_options o = {
        .model = m, .source = {.seed = 3}, .device = device, .language = true};
    REQUIRE(tec_weights_load(&w, &o, &heap, &err) == TEC_OK);
    int64_t bytes = w->bytes;
    CHECK(w->text[layers[1].attention].attention == w->text[layers[0].attention].attention);
    tec_weights_close(w);
    tec_model_close(m);
    REQUIRE(open_text(&m, "return own(g, x, i)", "") == TEC_OK);
    const struct tec_weights_options other = {
        .model = m, .source = {.seed = 3}, .device = device, .language = true};
    REQUIRE(tec_weights_load(&w, &other, &heap, &err) == TEC_OK);
    CHECK(w->bytes > bytes && tec_model_attention(m, 1)->same < 0);
    tec_weights_close(w);
    tec_device_close(device);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_window_is_for_rows_that_see_what_is_before_them)
{
    static const char body[] =
        "local o = { heads = 2, head_dim = 4, q = 'q', k = 'k', v = 'v', window = 3 } "
        "return g:linear(g:attention(x, o), { weight = 'w' .. i, out = 8 })";
    struct tec_model *m = NULL;
    refused_with(body, "t.mask = 'bidir'", 4, "with mask bidir each sees all");
    REQUIRE(open_text(&m, body, "") == TEC_OK);
    CHECK_INT(tec_model_attention(m, 1)->attend.window, ==, 3);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_text_has_its_functions_and_sizes)
{
    refused_with("return own(g, x, i)", "t.layer = nil", 0, "text: lacks the function layer");
    refused_with("return own(g, x, i)", "t.leave = nil", 0, "text: lacks the function leave");
    refused_with("return own(g, x, i)", "t.layers = 0", 0,
                 "text: layers must be a whole number, 1 ..");
    refused_with("return own(g, x, i)", "t.layers = 513", 0, "text: layers must be a whole number");
    refused_with("return own(g, x, i)", "t.width = 8.5", 0, "text: width must be a whole number");
    refused_with("return own(g, x, i)", "t.pool = 'mean'", 1,
                 "attention: a text that becomes one vector (pool) is not rotated");
    refused_with("return own(g, x, i)", "t.enter = function(g, x) return 3 end", 5,
                 "enter: must return rows that a word of it has made");
}

TAP_MAIN
