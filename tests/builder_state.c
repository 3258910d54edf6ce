/* builder_state.c - tests of the words that make a row of the robot's state in front of a prompt,
 * chunk.state: its size, and what does not fit is refused with its line. */
#include "graph/model/program.h"
#include "tests/described.h"
#include "tests/tap.h"
#include "tests/text_words.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

/* Opens a model whose chunk has `state`, which begins in line 2. */
static enum tec_status open_state(struct tec_model **out, const char *state)
{
    return described(
        out, &heap, &err,
        TEXT_WORDS TOWER_WORDS
        "local state =\n"
        "%s\n"
        "return { name = 't', slots = { 'a' }, ignored = {},\n"
        "  vision = { project = project, towers = {\n"
        "    tower { image_size = 8, mean = { 0, 0, 0 }, std = { 1, 1, 1 } } } },\n"
        "  text = text(1, { vocab = 32, scale = 1.0, round_logits = true, mask = 'bidir', bos = "
        "1, eos = 2, max_tokens = 8, embed = { 'e' }, head = { 'h' } }),\n"
        "  chunk = { horizon = 5, dim = 3, state = state },\n"
        "  action = function(g) return g:linear(g:side_by_side(g:hidden { rows = 15, cols = 8 "
        "}, { rows = 3 }), { weight = 'a', out = 3 }) end }\n",
        state);
}

static void refused(const char *state, int line, const char *says)
{
    struct tec_model *model = NULL;
    CHECK(open_state(&model, state) != TEC_OK);
    described_says(&err, line, says);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

static int opened(const char *state)
{
    struct tec_model *model = NULL;
    enum tec_status status = open_state(&model, state);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    CHECK(!model->head.program == !model->head.state);
    int entries = model->head.state;
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
    return entries;
}

TEST(a_chunk_may_have_a_row_of_the_state)
{
    CHECK_INT(opened("nil"), ==, 0);
    CHECK_INT(opened("function(g) return g:linear(g:state { entries = 7 }, { weight = 's', out = 8 "
                     "}) end"),
              ==, 7);
    CHECK_INT(
        opened("function(g) local x = g:linear(g:state { entries = 20 }, { weight = 's', out = "
               "12 }) "
               "x = g:norm(g:activation(x, { kind = 'silu' }), { eps = 1e-5 }) "
               "return g:linear(x, { weight = 't', bias = 'b', out = 8 }) end"),
        ==, 20);
}

TEST(a_row_of_the_state_fits_the_text)
{
    refused("{ entries = 8 }", 0,
            "chunk.state: must be a function, which makes a row of the robot");
    refused("function(g) return 3 end", 2, "chunk.state: must return rows that a word of it has");
    refused("function(g) return g:zeros { rows = 1, cols = 8 } end", 2,
            "zeros: is no word of chunk.state; its words are norm linear activation state");
    refused("function(g) return g:linear(g:state { entries = 7 }, { weight = 's', out = 5 }) end",
            2, "chunk.state returns 1 rows of 5 columns; must be one of the text's 8");
    refused("function(g) return g:state { entries = 1025 } end", 2,
            "state: entries must be 1 .. 1024, is 1025");
    refused(
        "function(g) g:state { entries = 2 } return g:linear(g:state { entries = 2 }, { weight = "
        "'s', out = 8 }) end",
        2, "state: nobody reads its value");
}

TAP_MAIN
