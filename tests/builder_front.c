/* builder_front.c - tests of the words of a picture tower's front and of what makes rows of a
 * prompt of what leaves towers: their shapes, and what does not fit is refused with its line. */
#include "graph/model/program.h"
#include "tests/described.h"
#include "tests/tap.h"
#include "tests/text_words.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

/* Opens a model whose tower's pixels x go through `front` in line 2, and whose features x and y
 * through `behind` in line 4; `more` changes the towers before. */
static enum tec_status open_front(struct tec_model **out, const char *front, const char *behind,
                                  const char *more)
{
    return described(
        out, &heap, &err,
        TEXT_WORDS TOWER_WORDS
        "local kept; local function front(g, x)\n"
        "%s\n"
        "end local function behind(g, x, y)\n"
        "%s\n"
        "end local t = tower { image_size = 16, mean = { 0, 0, 0 }, std = { 1, 1, 1 } }\n"
        "t.enter = front local towers, sizes = { t }, nil %s\n"
        "return { name = 't', slots = { 'a' }, ignored = {},\n"
        "  vision = { towers = towers, project = behind, sizes = sizes },\n"
        "  text = text(1, { vocab = 32, scale = 1.0, round_logits = true, bos = 1, eos = 2,\n"
        "    mask = 'causal_all', picture = 3, max_tokens = 8, embed = { 'e' }, head = { 'h' } "
        "}) }\n",
        front, behind, more);
}

#define PATCHES "local p = g:conv(x, { weight = 'p', out = 8, side = 4, stride = 4 }) "
#define CLASS "g:concat { g:tensor { tensor = 'c', rows = 3, cols = 8 }, p }"
#define ROWS "return g:linear(x, { weight = 'pr', out = 8 })"

static void refused(const char *front, const char *behind, const char *more, int line,
                    const char *says)
{
    struct tec_model *model = NULL;
    CHECK(open_front(&model, front, behind, more) != TEC_OK);
    described_says(&err, line, says);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

static struct tec_model *opened(const char *front, const char *behind, const char *more)
{
    struct tec_model *model = NULL;
    if (open_front(&model, front, behind, more) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(model);
    return model;
}

TEST(sizes_of_pictures_are_those_of_the_words)
{
    struct tec_model *m = opened(PATCHES "return " CLASS,
                                 "return g:linear(g:take(x, { first = 3, rows = 16 }), { weight = "
                                 "'pr', out = 8, times = 2.5 })",
                                 "");
    const struct tec_vision *v = &m->vision;
    CHECK_INT(v->image_size * 100 + v->patch * 10 + v->shuffle, ==, 1641);
    CHECK_INT(v->patches * 100 + v->tokens, ==, 1616);
    CHECK_INT(v->towers[0].prefix_rows, ==, 3);
    tec_model_close(m);
    m = opened("return g:linear(g:patches(x, { side = 7 }), { weight = 'p', out = 8 })",
               "return g:linear(g:squares(x, { side = 2 }), { weight = 'pr', out = 8 })", "");
    v = &m->vision;
    CHECK_INT(v->patch * 1000 + v->patches * 100 + v->shuffle * 10 + v->tokens, ==, 7421);
    tec_model_close(m);
    CHECK_INT(heap.live, ==, 0);
}

TEST(pixels_become_patches_once)
{
    refused("return x", ROWS, "", 1, "enter: returns rows of 3 columns");
    refused(PATCHES "g:add(p, p) return g:tensor { tensor = 'c', rows = 16, cols = 8 }", ROWS, "",
            2, "add: adds a value to itself");
    refused("return g:tensor { tensor = 'c', rows = 16, cols = 8 }", ROWS, "", 1,
            "enter: must return the picture's patches");
    refused("return g:linear(x, { weight = 'p', out = 8 })", ROWS, "", 2, "linear: reads pixels");
    refused(PATCHES "local q = g:patches(x, { side = 4 }) return g:add(p, q)", ROWS, "", 2,
            "patches: reads pixels that have become patches already");
    refused("return g:patches(x, { side = 17 })", ROWS, "", 2,
            "patches: patches of 17 pixels a side of pictures of 16");
    refused(PATCHES "return g:conv(p, { weight = 'q', out = 8 })", ROWS, "", 2,
            "conv: reads the pixels of a tower's picture alone");
    refused("return g:conv(x, { weight = 'p', out = 8, side = 4, stride = 2 })", ROWS, "", 2,
            "conv: in a tower windows are patches: stride 2 must be side 4");
    refused("return g:conv(x, { weight = 'p', out = 8, side = 4, stride = 4, pad = 1 })", ROWS, "",
            2, "there is no pad, dilation or norm");
    refused(PATCHES "return g:attention(p, { heads = 2, head_dim = 4, qkv = 'a' })", ROWS, "", 2,
            "attention: is no word of a tower's enter; its words are norm linear");
    refused(PATCHES "return g:linear(p, { weight = 'w', out = 5 })", ROWS, "", 1,
            "enter: returns rows of 5 columns; those of the tower have 8");
}

TEST(positions_and_rows_in_front_fit_their_patches)
{
    refused("return g:grid(x, { tensor = 'o', side = 2 })", ROWS, "", 2,
            "grid: reads rows that are no patches");
    refused(PATCHES "return g:add(p, g:grid(p, { tensor = 'o', side = 1025 }))", ROWS, "", 2,
            "grid: side must be 1 .. 1024, is 1025");
    refused(PATCHES "return g:add(p, g:tensor { tensor = 'o', rows = 4, cols = 8 })", ROWS, "", 2,
            "add: 16 rows of 8 columns and 4 rows of 8");
    refused(PATCHES "local o = g:tensor { tensor = 'o', rows = 19, cols = 8 } return g:add(" CLASS
                    ", o)",
            ROWS, "", 2, "add: a constant is added to patches, before other rows");
    refused(PATCHES "return g:concat { p, g:tensor { tensor = 'c', rows = 3, cols = 8 } }", ROWS,
            "", 2, "concat: in a tower joins one constant and the patches behind it");
    refused(PATCHES "return g:concat { g:tensor { tensor = 'c', rows = 5000, cols = 8 }, p }", ROWS,
            "", 2, "concat: 5000 rows in front of patches; 4096 at most");
    refused("local q = g:patches(x, { side = 4 }) return g:add(q, g:grid(q, { tensor = 'o', side = "
            "4 }))",
            ROWS, "", 2, "reads columns in another order");
    refused(PATCHES "return g:add(p, g:grid(p, { tensor = 'o', side = 4 }))", ROWS,
            "sizes = { { 8, 16 } }", 0, "sizes");
}

TEST(what_leaves_towers_becomes_rows_of_the_prompt)
{
    static const char take[] = "take: takes the patches of a tower that has rows in front of them";
    refused(PATCHES "return p", "return x", "", 3, "project: must return rows that a word");
    refused(PATCHES "return p", "return g:linear(x, { weight = 'pr', out = 5 })", "", 4,
            "project returns 16 rows of 5 columns; a picture has 16, and the text's have 8");
    refused(PATCHES "return " CLASS, ROWS, "", 4, "linear: reads patches behind other rows");
    refused(PATCHES "return " CLASS, "return g:take(x, { first = 2, rows = 16 })", "", 4, take);
    refused(PATCHES "return p", "return g:take(x, { first = 0, rows = 16 })", "", 4, take);
    refused(PATCHES "return " CLASS,
            "return g:norm(g:take(x, { first = 3, rows = 16 }), { eps = 1e-5 })", "", 4,
            "norm: reads rows among others");
    refused(PATCHES "return p", "return g:squares(x, { side = 3 })", "", 4,
            "squares: side 3; must be 2 .. 16, everywhere the same, and divide a side of");
    refused(PATCHES "return p", "return g:squares(x, { side = 1 })", "", 4, "squares: side 1");
    refused(PATCHES "return p", "return g:squares(g:squares(x, { side = 2 }), { side = 2 })", "", 4,
            "squares: reads what leaves the only tower");
    refused(PATCHES "return p", "return g:linear(x, { weight = 'a', out = 8, times = 2e6 })", "", 4,
            "linear: times 2e+06 is for rows, and at most 1e6");
    refused(PATCHES "return p",
            "return g:gated(x, { gate = 'a', up = 'b', out = 8, kind = 'silu' })", "", 4,
            "gated: is no word of project; its words are norm linear activation");
}

/* A tower of rows of so many columns, one attention of one head. */
#define NARROW(columns)                                                                         \
    "t.width, t.leave = " columns ", nil t.enter = function(g, x) return g:conv(x, { weight = " \
    "'p', out = " columns ", side = 4, stride = 4 }) end t.layer = function(g, x) return "      \
    "g:attention(x, { heads = 1, head_dim = " columns ", q = 'q', k = 'k', v = 'v' }) end "

TEST(rows_that_only_a_product_can_read_are_not_returned)
{
    refused(PATCHES "return " CLASS, "return g:take(x, { first = 3, rows = 16 })", "", 4,
            "take: project returns rows that only a product can read");
    refused(PATCHES "return p", "return g:squares(x, { side = 2, planes = true })", NARROW("2"), 4,
            "squares: project returns rows that only a product can read");
    refused(PATCHES "return p",
            "return g:activation(g:squares(x, { side = 2, planes = true }), { kind = 'gelu' })",
            NARROW("2"), 4, "activation: project returns rows that only a product can read");
    refused(PATCHES "return p", "return g:beside(x, y)", NARROW("4") "towers[2] = t", 4,
            "beside: project returns rows that only a product can read");
    tec_model_close(opened(PATCHES "return p", "return g:squares(x, { side = 2 })", NARROW("2")));
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_matrix_of_columns_in_another_order_is_packed_for_them)
{
    struct tec_model *m = opened(
        PATCHES "return p",
        "x = g:linear(g:squares(x, { side = 2, planes = true }), { weight = 'w', out = 32 }) "
        "x = g:linear(g:linear(x, { weight = 'w', out = 32 }), { weight = 'w', out = 32 }) "
        "return g:linear(x, { weight = 'pr', out = 8 })",
        "");
    const struct tec_model_call *calls = m->vision.project->calls;
    CHECK_INT(calls[2].same, ==, -1);
    CHECK_INT(calls[3].same, ==, -1);
    CHECK_INT(calls[4].same, ==, 3);
    tec_model_close(m);
    refused(PATCHES "return p",
            "return g:linear(g:squares(x, { side = 2, planes = true }), { weight = 'w', bias = "
            "'b', out = 8, categories = 2 })",
            "", 4, "linear: reads columns in another order, or beside others, with a matrix of");
    refused(PATCHES "return p",
            "return g:linear(g:beside(x, y), { weight = 'w', bias = 'b', out = 8, categories = 2 "
            "})",
            "towers[2] = t", 4, "linear: reads columns in another order, or beside others, with");
    CHECK_INT(heap.live, ==, 0);
}

TEST(towers_stand_beside_each_other)
{
    static const char two[] = "towers[2] = t";
    refused(PATCHES "return p", ROWS, two, 3, "x: nobody reads its value");
    refused(PATCHES "return p", "return g:norm(g:beside(x, y), { eps = 1e-5 })", two, 4,
            "norm: reads columns beside each other: linear alone does");
    refused(PATCHES "return p", "return g:linear(g:beside(x, x), { weight = 'pr', out = 8 })", two,
            4, "beside: 16 rows beside 16");
    refused(PATCHES "return p", "return g:squares(x, { side = 2 })", two, 4,
            "squares: reads what leaves the only tower");
    refused(PATCHES "return p", "return g:linear(g:beside(x, y), { weight = 'pr', out = 8 })",
            "local u = {} for k, value in pairs(t) do u[k] = value end u.image_size = 20 towers[2] "
            "= u",
            4, "beside: 16 rows beside 25 of another tower");
    refused(PATCHES "if kept then return g:add(p, kept) end kept = p return p", ROWS, two, 2,
            "add: operand 2 must be a value");
}

TAP_MAIN
