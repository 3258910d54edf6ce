/* verify_keep.c - the rule of speculation: of proposed tokens the longest beginning is kept that
 * the model made itself, and one more; every limit of a request holds at its border. */
#include "graph/run/launch/launch_verify.h"
#include "tests/tap.h"

static struct tec_model model = {.text = {.eos = 9, .ends = {9, 8}, .n_ends = 2}};
static struct tec_plan plan = {.model = &model};

static struct tec_row_state row_with(int left)
{
    return (struct tec_row_state){.token = 5,
                                  .pos = 9,
                                  .visible = 10,
                                  .prefix = 10,
                                  .tail = 100,
                                  .slot = 77,
                                  .left = left,
                                  .eos = 9,
                                  .place = -1};
}

TEST(a_beginning_is_kept_and_one_token_more)
{
    const int drafts[] = {1, 2, 3, 4};
    const struct {
        int said[5], made;
    } cases[] = {{{7, 0, 0, 0, 0}, 1}, /* the first is wrong: its place is the model's */
                 {{1, 7, 3, 4, 6}, 2}, /* what is right behind a wrong one is not */
                 {{1, 2, 3, 7, 6}, 4},
                 {{1, 2, 3, 4, 6}, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tec_row_state row = row_with(50);
        struct tec_verify_row v = {.n = 4, .drafts = drafts};
        int tokens[5], made;
        memcpy(v.said, cases[i].said, sizeof cases[i].said);
        made = tec_verify_keep(&plan, &row, &v, tokens);
        CHECK(made == cases[i].made && row.left == 50 - made && !row.done);
        CHECK(memcmp(tokens, v.said, (size_t)made * sizeof *tokens) == 0);
        CHECK(row.token == v.said[made - 1] && row.pos == 9 + made && row.visible == 10 + made);
        CHECK(row.slot == 100 + made - 1);
    }
}

TEST(an_end_token_and_the_last_token_end_a_request)
{
    const int drafts[] = {1, 8, 3, 4};
    struct tec_verify_row v = {.n = 4, .drafts = drafts, .said = {1, 8, 3, 4, 6}};
    struct tec_row_state row = row_with(50);
    int tokens[5];
    CHECK(tec_verify_keep(&plan, &row, &v, tokens) == 2 && row.done && tokens[1] == 8);
    const int more[] = {1, 2};
    row = row_with(3);
    v = (struct tec_verify_row){.n = 2, .drafts = more, .said = {1, 2, 3}};
    CHECK(tec_verify_keep(&plan, &row, &v, tokens) == 3 && row.done && row.left == 0);
}

TEST(a_prompt_of_its_own_is_read_instead)
{
    const int prompt[] = {41, 42};
    struct tec_row_state row = row_with(50);
    struct tec_verify_row v = {.said = {7}};
    int tokens[1];
    row.prompt = prompt;
    row.waiting = 2;
    CHECK(tec_verify_keep(&plan, &row, &v, tokens) == 0 && row.token == 41 && row.waiting == 1);
    CHECK(tec_verify_keep(&plan, &row, &v, tokens) == 0 && row.token == 42 && row.waiting == 0);
    CHECK(tec_verify_keep(&plan, &row, &v, tokens) == 1 && row.token == 7 && row.left == 49);
}

TEST(what_was_read_counts_as_used)
{
    const int drafts[] = {33, 2};
    unsigned used[2] = {0};
    struct tec_plan with = plan;
    struct tec_row_state row = row_with(50);
    struct tec_verify_row v = {.n = 2, .drafts = drafts, .said = {33, 6, 0}};
    int tokens[3];
    with.used_words = 2;
    row.used = used;
    CHECK(tec_verify_keep(&with, &row, &v, tokens) == 2);
    CHECK(used[0] == 1U << 5 && used[1] == 1U << 1); /* 6 is when it has been read */
}

TAP_MAIN
