/* builder.c - tests of models that are programs: what does not fit is refused with its line, and
 * one computation has one result, however its description is written. */
#include "graph/model/program.h"
#include "tests/box.h"
#include "tests/built_chunk.h"
#include "tests/tap.h"
#include "tests/text_words.h"

#include <math.h>
#include <string.h>

enum { HORIZON = 5, DIM = 3, CHUNK = HORIZON * DIM, SIDE = 12, STATE = 4 };

static struct tec_heap heap;
static struct tec_error err;

/* What the bodies of the functions may use; 32 lines, the body of prefill is in line 33. */
static const char prelude[] =
    "local function norm(g, x, w) return g:norm(x, { weight = w, eps = 1e-5 }) end\n"
    "local function attend(g, x, name, o)\n"
    "  o.heads, o.head_dim, o.qkv, o.bf16 = 2, 4, name .. 'qkv', true\n"
    "  return g:linear(g:attention(x, o), { weight = name .. 'o', out = 8, bf16 = true })\n"
    "end\n"
    "local function forward(g, x, name)\n"
    "  local y = g:linear(x, { weight = name .. 'up', out = 16, bf16 = true })\n"
    "  return g:linear(g:activation(y, { kind = 'relu' }), { weight = name .. 'down', out = 8 })\n"
    "end\n"
    "local function layer(g, x, name, o) x = norm(g, g:add(attend(g, x, name, o or {}), x), 'n')\n"
    "  return norm(g, g:add(forward(g, x, name), x), name .. 'n') end\n"
    "local function picture(g)\n"
    "  return g:picture { slot = 'a', height = 12, width = 12, mean = { 0.5, 0.5, 0.5 },\n"
    "                     std = { 1, 1, 1 } }\n"
    "end\n"
    "local function conv(g, x, w) return g:conv(x, { weight = w, out = 8, side = 3, pad = 1 }) "
    "end\n"
    "local function relu(g, x) return g:activation(x, { kind = 'relu' }) end\n"
    "local function encode(g, rows) return layer(g, rows, 'e') end\n"
    "local function ask(g, seen, more)\n"
    "  local x = g:start(g:zeros { rows = 5, cols = 8 })\n"
    "  x = norm(g, g:add(attend(g, x, 'd', {}), x), 'dn')\n"
    "  return norm(g, g:add(attend(g, x, 'c', more or { over = seen }), x), 'cn')\n"
    "end\n"
    "local function chunk(g, x)\n"
    "  return g:linear(x, { weight = 'head', bias = 'head_bias', out = 3 })\n"
    "end\n"
    "local function plain(g, x) return chunk(g, ask(g, x)) end\n"
    "\n"
    "return {\n"
    "  name = 'test', slots = { 'a' }, float32 = true, ignored = {},\n"
    "  prefill = function(g)\n"
    "\n";

static const char encoded[] = "return encode(g, conv(g, picture(g), 'w'))";
static const char asked[] = "return plain(g, seen)";

/* Opens the description whose functions have these bodies. */
static enum tec_status open_bodies(struct tec_model **out, const char *prefill, const char *action)
{
    char folder[] = "/tmp/tectum_builder_XXXXXX", path[64];
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.lua", folder);
    FILE *file = fopen(path, "w");
    REQUIRE(file);
    fprintf(file, "%s    %s\n  end,\n  action = function(g, seen, place)\n    %s\n  end,\n}\n",
            prelude, prefill, action);
    fclose(file);
    const struct tec_model_choice choice = {.root = folder, .arch = "t", .size = "tiny"};
    enum tec_status status = tec_model_open(out, &choice, &heap, &err);
    remove(path);
    remove(folder);
    return status;
}

/* Refused with the line (33: prefill, 36: action; 0: none) and these words. */
static void refused(const char *prefill, const char *action, int line, const char *says)
{
    struct tec_model *model = NULL;
    char place[32] = "";
    if (line)
        snprintf(place, sizeof place, "t.lua:%d: ", line);
    CHECK(open_bodies(&model, prefill, action) != TEC_OK);
    if (!strstr(err.message, says) || !strstr(err.message, place))
        fprintf(stderr, "# wanted '%s%s', is '%s'\n", place, says, err.message);
    CHECK(strstr(err.message, says) && strstr(err.message, place));
    CHECK_INT(heap.live, ==, 0);
}

static void prefill_refused(const char *body, int line, const char *says)
{
    refused(body, asked, line, says);
}

static void action_refused(const char *body, int line, const char *says)
{
    refused(encoded, body, line, says);
}

TEST(words_and_options_are_known)
{
    prefill_refused("return g:cnv(picture(g))", 33,
                    "the builder has no word 'cnv'; did you mean 'conv'?");
    prefill_refused("return g:conv(picture(g), { wieght = 'w', out = 8 })", 33,
                    "conv: has no option 'wieght'; did you mean 'weight'?");
    prefill_refused("return g:conv(picture(g), { out = 8 })", 33, "conv: lacks weight");
    prefill_refused("return g:conv(picture(g), { weight = 'w', out = 0 })", 33,
                    "conv: out must be a whole number, 1 ..");
    prefill_refused("return g:conv(picture(g), { weight = 'w', out = 1 << 40 })", 33,
                    "conv: out must be a whole number, 1 ..");
    prefill_refused("local w = 'wwwww'; for i = 1, 6 do w = w .. w end\n"
                    "return g:conv(picture(g), { weight = w, out = 8 })",
                    34, "conv: weight must be a name of 1 .. 200 bytes");
    prefill_refused("return g.conv(picture(g), { weight = 'w', out = 8 })", 33,
                    "write g:conv(...), with a colon");
    prefill_refused("return g:conv(picture(g), { weight = 'w', out = 8 }, 3)", 33,
                    "conv: takes a value and a table of options");
    prefill_refused("return g:activation(picture(g), { kind = 'tanh' })", 33,
                    "activation: kind must be gelu, gelu_erf, silu or relu");
    prefill_refused("local x = picture(g); return x.channels", 33, "and no 'channels'");
}

TEST(operands_are_values)
{
    prefill_refused("return g:conv(nil, { weight = 'w', out = 8 })", 33,
                    "conv: operand 1 must be a value that a word has made, is nil");
    prefill_refused("return g:add(picture(g), 3)", 33, "add: operand 2 must be a value");
    prefill_refused("return g:concat(picture(g))", 33, "concat: takes a list of 1 .. 64 values");
    prefill_refused("return g:concat {}", 33, "concat: takes a list of 1 .. 64 values");
    prefill_refused("return g:concat { 'x' }", 33, "concat: operand 1 must be a value");
    prefill_refused("picture(g)", 0, "prefill: returns 0 values");
    prefill_refused("return 7", 0, "prefill: result 1 must be a value");
    action_refused("return 7", 0, "action: result 1 must be a value");
    action_refused("return seen, seen", 0, "action: returns 2 values");
    action_refused("return chunk(g, seen)", 25,
                   "linear: operand 1 is a value of prefill; an action asks those");
}

TEST(shapes_fit_together)
{
    prefill_refused("local x = picture(g); return g:add(x, conv(g, x, 'w'))", 33,
                    "add: 144 rows of 3 columns and 144 rows of 8 columns");
    prefill_refused("local x = conv(g, picture(g), 'w'); return g:add(x, x)", 33,
                    "add: adds a value to itself");
    prefill_refused("return encode(g, picture(g))", 10,
                    "add: 144 rows of 8 columns and 144 rows of 3 columns");
    prefill_refused("return g:concat { picture(g), conv(g, picture(g), 'w') }", 33,
                    "concat: value 2 has 8 columns, the first one has 3");
    prefill_refused("return conv(g, g:state { entries = 4 }, 'w')", 16,
                    "conv: reads rows that are no picture");
    prefill_refused("return g:max_pool(picture(g), { side = 20 })", 33,
                    "max_pool: nothing is left of 12 x 12");
    prefill_refused("return g:max_pool(picture(g), { side = 3, pad = 2 })", 33,
                    "max_pool: pad 2 is more than half of side 3");
    prefill_refused("return g:sines(picture(g), { cols = 7, period = 100.0 })", 33,
                    "sines: period 100 must be above 1, and cols 7 even");
    prefill_refused("local x = conv(g, picture(g), 'w')\n"
                    "return layer(g, x, 'e', { position = g:zeros { rows = 3, cols = 8 } })",
                    4, "attention: position is 3 rows of 8 columns, the rows are 144 of 8");
    prefill_refused("local x = conv(g, picture(g), 'w')\n"
                    "return layer(g, x, 'e', { position = x })",
                    4, "attention: position must be a constant");
    prefill_refused("local x = conv(g, picture(g), 'w')\n"
                    "return layer(g, x, 'e', { over_position = g:zeros { rows = 3, cols = 8 } })",
                    4, "attention: sees and over_position are of over: it has none");
    action_refused("return chunk(g, ask(g, seen, { over = seen, over_position = g:zeros {\n"
                   "rows = 2, cols = 8 } }))",
                   4, "attention: over_position is 2 rows of 8 columns, the rows are 144 of 8");
}

TEST(hostile_sizes_are_refused)
{
    prefill_refused("return g:picture { slot = 'a', height = 1 << 20, width = 1 << 20,\n"
                    "mean = { 0, 0, 0 }, std = { 1, 1, 1 } }",
                    33, "picture: 1048576 x 1048576; sides are 1 to 4096");
    prefill_refused("return g:picture { slot = 'a', height = 9, width = 9, mean = { 0, 0, 0 },\n"
                    "std = { 1, 0, 1 } }",
                    33, "picture: std must be three positive numbers");
    prefill_refused("local x = picture(g); for i = 1, 9000 do x = relu(g, x) end; return x", 17,
                    "a model makes more than 8192 calls");
    prefill_refused("local function f(x) return 1 + f(x) end; return f(1)", 33,
                    "more memory than allowed");
    prefill_refused("while true do end", 33, "");
    prefill_refused(
        "local t = {}; for i = 1, 9 do t[i] = g:zeros { rows = 1 << 20, cols = 8 } end\n"
        "return g:concat(t)",
        34, "concat: 9437184 rows are more than 1048576");
    prefill_refused("return g:zeros { rows = 1 << 20, cols = 1 << 20 }", 33,
                    "zeros: 1048576 rows of 1048576 columns: the constants of a model are more "
                    "than 134217728 numbers");
    prefill_refused("for i = 1, 17 do g:state { entries = 1 } end; return picture(g)", 33,
                    "state: a model reads its state in 16 rows at most");
    prefill_refused("return g:conv(picture(g), { weight = 'w', out = 8, side = 40 })", 33,
                    "conv: side, stride, pad and dilation are at most 31");
    prefill_refused("return g:attention(picture(g), { heads = 0, head_dim = 4, qkv = 'q' })", 33,
                    "attention: heads must be a whole number, 1 ..");
    prefill_refused("return g:attention(picture(g), { heads = 4000, head_dim = 4, qkv = 'q' })", 33,
                    "attention: 4000 heads of 4 over 4000 kv_heads");
}

TEST(a_program_is_whole)
{
    prefill_refused("local x = picture(g); conv(g, x, 'v'); return encode(g, conv(g, x, 'w'))", 16,
                    "conv: nobody reads its value");
    prefill_refused("local x = picture(g)\n"
                    "return encode(g, g:add(conv(g, x, 'w'), conv(g, picture(g), 'v')))",
                    13, "picture: 'a' is read twice");
    prefill_refused("local s = g:linear(g:state { entries = 4 }, { weight = 's', out = 8 })\n"
                    "return encode(g, g:concat { s, g:zeros { rows = 2, cols = 8 } })",
                    0, "prefill reads no picture of the slot 'a'");
    prefill_refused("local x = picture(g)\n"
                    "local y = g:conv(x, { weight = 'w', out = 8 })\n"
                    "return encode(g, g:concat { y, conv(g, x, 'w') })",
                    16, "conv: 'w' is another tensor in line 34");
    prefill_refused("local x = picture(g)\n"
                    "local function f(eps)\n"
                    "  return g:conv(x, { weight = 'w', out = 8, norm = {\n"
                    "    weight = 'a', bias = 'b', mean = 'm', var = 'v', eps = eps } })\n"
                    "end\n"
                    "return encode(g, g:concat { f(1e-5), f(1e-3) })",
                    35, "conv: 'w' is another tensor in line 35");
    static const char none[] = "action: has no attention over what prefill has made";
    action_refused("return g:zeros { rows = 5, cols = 3 }", 0, none);
    action_refused("return chunk(g, ask(g, seen, {}))", 0, none);
    action_refused("return plain(g, g:zeros { rows = 5, cols = 8 })", 4,
                   "attention: over must be what prefill has made");
    action_refused("return chunk(g, encode(g, g:zeros { rows = 5, cols = 8 }))", 4,
                   "attention: reads a constant");
    action_refused("return chunk(g, ask(g, seen, { over = seen, sees = 'rest' }))", 4,
                   "attention: sees is of a flow");
    action_refused("return g:concat { ask(g, seen) }", 36, "concat: an action joins constants");
    action_refused("local x = g:start(g:zeros { rows = 4, cols = 8 })\n"
                   "return chunk(g, g:add(ask(g, seen), attend(g, x, 'x', { over = seen })))",
                   4, "attention: of 4 rows; an action has attention of equally many rows, here 5");
    prefill_refused("return layer(g, conv(g, picture(g), 'w'), 'e', { over = picture(g) })", 4,
                    "attention: over belongs to the action");
    prefill_refused("local t = {}\n"
                    "for i = 1, 3 do\n"
                    "  local x = g:max_pool(conv(g, picture(g), 'w'), { side = i + 1 })\n"
                    "  t[i] = layer(g, x, 'e' .. i)\n"
                    "end\n"
                    "return g:concat(t)",
                    4, "attention: a prefill has attention of rows of 2 kinds");
    prefill_refused("return g:start(g:zeros { rows = 2, cols = 8 })", 33,
                    "start: reads a constant, in an action");
    action_refused("return g:linear(ask(g, seen), { weight = 'head', out = 2000 })", 36,
                   "linear: a chunk of 5 actions of 2000 values");
    action_refused("return picture(g)", 13, "picture: belongs to prefill");
}

/* A head: an action alone, which reads a text's hidden rows. Refused with these words. */
static void head_refused(const char *body, const char *says)
{
    struct tec_model *model = NULL;
    struct box box;
    box_make(&box);
    box_path(&box, "t.lua");
    FILE *file = fopen(box.path, "w");
    REQUIRE(file);
    fprintf(
        file,
        TEXT_WORDS
        "\n" TOWER_WORDS "local v = tower { image_size = 8, mean = { 0, 0, 0 },\n"
        "  std = { 1, 1, 1 },\n"
        "\n"
        "  }\n"
        "return { name = 't', slots = { 'a' }, ignored = {},\n"
        "  vision = { towers = {\n"
        "    v },\n"
        "    project = project },\n"
        "  text = text(1, { vocab = 32, scale = 1.0, round_logits = true, mask = 'bidir', bos = "
        "1,\n"
        "           eos = 2, max_tokens = 8, embed = { 'e' }, head = { 'h' } }),\n"
        "  chunk = { horizon = 5, dim = 3 },\n"
        "  action = function(g) %s end }\n",
        body);
    fclose(file);
    const struct tec_model_choice choice = {.root = box.dir, .arch = "t", .size = "tiny"};
    CHECK(tec_model_open(&model, &choice, &heap, &err) == (*says ? TEC_MALFORMED : TEC_OK));
    if (*says && !strstr(err.message, says))
        fprintf(stderr, "# wanted '%s', is '%s'\n", says, err.message);
    CHECK(!*says || strstr(err.message, says));
    tec_model_close(model);
    box_remove(&box);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_head_is_a_function_of_hidden_rows)
{
    static const char out[] = "{ weight = 'w', out = 3 })";
    char body[400];
    snprintf(body, sizeof body,
             "return g:linear(g:side_by_side(g:hidden { rows = 15, cols = 8 }, { rows = 3 }), %s",
             out);
    head_refused(body, "");
    snprintf(body, sizeof body,
             "return g:linear(g:side_by_side(g:hidden { rows = 16, cols = 8 }, { rows = 4 }), %s",
             out);
    head_refused(body, "t.lua:13: hidden: 16 rows of 8 columns; a chunk has 15 of 8");
    snprintf(body, sizeof body,
             "return g:linear(g:side_by_side(g:hidden { rows = 15, cols = 8 }, { rows = 4 }), %s",
             out);
    head_refused(body, "t.lua:13: side_by_side: 15 rows of 8 columns in groups of 4");
    head_refused("return g:linear(g:hidden { rows = 15, cols = 8 }, { weight = 'w', out = 3 })",
                 "t.lua:13: linear: 15 rows of 3 columns; the chunk is 5 of 3");
    head_refused("return g:norm(g:hidden { rows = 15, cols = 8 }, { weight = 'n', eps = 0 })",
                 "t.lua:13: norm: eps must be above 0");
    head_refused(
        "local h = g:hidden { rows = 15, cols = 8 }; return g:hidden { rows = 1, cols = 1 }",
        "t.lua:13: hidden: the prompt is read already");
    head_refused("return g:state { entries = 3 }", "t.lua:13: state: belongs to prefill");
    head_refused("return g:zeros { rows = 5, cols = 3 }", "its value cannot be the chunk");
    prefill_refused("return g:hidden { rows = 15, cols = 8 }", 33, "hidden: there is no text");
}

/* The chunk that these bodies make of one picture and a state. */
static void run(const char *prefill, const char *action, float chunk[CHUNK])
{
    static uint8_t pixels[SIDE * SIDE * 3];
    const float state[STATE] = {0.5F, -0.25F, 1.0F, 0.125F};
    struct built_chunk b = {.spec = {.n_actions = 1, .actions = {{.steps = 1}}},
                            .seen = {.n_pictures = 1, .picture = {pixels}},
                            .start = {.state = state}};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 % 251);
    if (open_bodies(&b.model, prefill, action) == TEC_OK)
        b.spec.frame_tokens = tec_model_encoded(b.model);
    built_chunk(&b, &heap, &err, chunk);
}

/* Both bodies of prefill make this chunk, but for the order of sums in float32. */
static void same_chunk(const char *one, const char *other)
{
    float a[CHUNK], b[CHUNK], most = 0.0F;
    run(one, asked, a);
    run(other, asked, b);
    for (int i = 0; i < CHUNK; i++) {
        CHECK(isfinite(a[i]) && fabsf(a[i] - b[i]) < 1e-5F);
        most = fmaxf(most, fabsf(a[i]));
    }
    CHECK(most > 0.01F);
}

TEST(a_sum_is_the_same_wherever_it_is_made)
{
    static const char in_place[] = "local x = picture(g)\n"
                                   "local s, t = conv(g, x, 's'), conv(g, x, 's')\n"
                                   "local y = relu(g, g:add(conv(g, x, 'w'), s))\n"
                                   "return encode(g, g:add(conv(g, y, 'v'), t))";
    static const char copied[] = "local x = picture(g)\n"
                                 "local s = conv(g, x, 's')\n"
                                 "local y = relu(g, g:add(conv(g, x, 'w'), s))\n"
                                 "return encode(g, g:add(s, conv(g, y, 'v')))";
    same_chunk(in_place, copied);
}

/* Convolutions of 16 channels, and of 8 behind them. */
#define WIDE                                                                                 \
    "local function wide(x, w, stride)\n"                                                    \
    "  return g:conv(x, { weight = w, out = 16, side = 3, pad = 1, stride = stride }) end\n" \
    "local function narrow(x) return g:conv(x, { weight = 'd', out = 8 }) end\n"

/* Squares of windows read pixels after others are written: not those of the sum. */
TEST(what_is_added_to_its_own_picture_is_made_apart)
{
    same_chunk(WIDE "local x = wide(picture(g), 's')\n"
                    "return encode(g, narrow(g:add(wide(x, 'w'), x)))",
               WIDE "local p = picture(g)\n"
                    "local y = g:add(wide(wide(p, 's'), 'w'), wide(p, 's'))\n"
                    "return encode(g, narrow(y))");
}

/* One tensor in two forms: for squares of windows, and for windows that lie apart. */
TEST(a_tensor_of_two_kinds_of_windows_is_loaded_for_each)
{
    same_chunk(WIDE "local x = wide(picture(g), 's')\n"
                    "local y, z = wide(x, 'w'), wide(x, 'w', 2)\n"
                    "return encode(g, g:concat { narrow(y), narrow(z) })",
               WIDE "local y = wide(wide(picture(g), 's'), 'w')\n"
                    "local z = g:max_pool(y, { side = 1, stride = 2 })\n"
                    "return encode(g, g:concat { narrow(y), narrow(z) })");
}

/* A product that waits for its sum still reads what it was given. */
TEST(what_a_product_reads_is_not_overwritten_before)
{
    same_chunk("local x = conv(g, picture(g), 's')\n"
               "local y = conv(g, x, 'w')\n"
               "return encode(g, g:add(y, relu(g, x)))",
               "local p = picture(g)\n"
               "local y = conv(g, conv(g, p, 's'), 'w')\n"
               "return encode(g, g:add(relu(g, conv(g, p, 's')), y))");
}

TEST(values_that_are_read_again_stay)
{
    same_chunk("local x = conv(g, picture(g), 's')\n"
               "local a = g:activation(x, { kind = 'gelu' })\n"
               "return encode(g, g:add(a, x))",
               "local p = picture(g)\n"
               "local a = g:activation(conv(g, p, 's'), { kind = 'gelu' })\n"
               "return encode(g, g:add(a, conv(g, p, 's')))");
}

/* Constants among rows, values joined twice, two stacks one behind the other. */
TEST(rows_are_joined_in_their_order)
{
    static const char once[] =
        "local x = g:max_pool(conv(g, picture(g), 's'), { side = 3, stride = 4 })\n"
        "local s = g:linear(g:state { entries = 4 }, { weight = 'st', bias = 'b', out = 8 })\n"
        "local c = g:tensor { tensor = 'c', rows = 3, cols = 8 }\n"
        "local all = g:concat { s, c, x, g:tensor { tensor = 'v', cols = 8 } }\n"
        "return layer(g, encode(g, all), 'f')";
    static const char twice[] =
        "local x = g:max_pool(conv(g, picture(g), 's'), { side = 3, stride = 4 })\n"
        "local s = g:linear(g:state { entries = 4 }, { weight = 'st', bias = 'b', out = 8 })\n"
        "local c = g:tensor { tensor = 'c', rows = 3, cols = 8 }\n"
        "local v = g:tensor { tensor = 'v', cols = 8 }\n"
        "local all = g:concat { s, g:concat { c, x }, g:concat { v } }\n"
        "return layer(g, encode(g, all), 'f')";
    same_chunk(once, twice);
}

TEST(an_action_may_end_with_something_else_than_a_product)
{
    float a[CHUNK], b[CHUNK];
    run(encoded, asked, a);
    run(encoded, "return g:activation(plain(g, seen), { kind = 'relu' })", b);
    for (int i = 0; i < CHUNK; i++)
        CHECK(b[i] == fmaxf(a[i], 0.0F));
}

TAP_MAIN
