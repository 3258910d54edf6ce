/* tectum_skills.c - tests of texts through the public interface: rankings, texts that no prompt can
 * be made of. */
#include "tests/box.h"

#include "tectum.h"

#include <math.h>
#include <string.h>

enum { SKILLS = 214 };

static struct tectum_error err;
static struct tectum_ranked ranked[SKILLS];
static const int64_t patience = 60000000000;

static int64_t submit(struct tectum *t, const char *task)
{
    const struct tectum_value v = {"prompt", TECTUM_TYPE_TEXT, 0, {0}, task, strlen(task)};
    int64_t number = -1;
    REQUIRE(tectum_submit(t, &v, 1, 0, &number, &err) == TECTUM_OK);
    return number;
}

/* The likeliest candidate comes first, and every candidate appears once. */
static void check_ranking(const struct tectum *t)
{
    bool seen[SKILLS] = {false};
    for (int i = 0; i < SKILLS; i++) {
        REQUIRE(ranked[i].index >= 0 && ranked[i].index < SKILLS);
        CHECK(!seen[ranked[i].index]);
        seen[ranked[i].index] = true;
        CHECK(isfinite(ranked[i].log_likelihood) && ranked[i].log_likelihood < 0.0);
        CHECK(i == 0 || ranked[i].log_likelihood <= ranked[i - 1].log_likelihood);
    }
    CHECK_STR(tectum_candidate(t, "choose", 0), " done");
    CHECK_STR(tectum_candidate(t, NULL, SKILLS - 1), " turn off the microwave");
    CHECK(tectum_candidate(t, "choose", SKILLS) == NULL);
    CHECK(tectum_candidate(t, "choose", -1) == NULL);
    CHECK(tectum_candidate(t, "say", 0) == NULL);
}

/* The pieces of the request are the tokens of the likeliest text; without a tokenizer these are
 * bytes. */
static void check_pieces(struct tectum *t, int64_t request)
{
    static struct tectum_piece piece;
    const char *best = tectum_candidate(t, "choose", ranked[0].index);
    size_t n = 0;
    for (;; n++) {
        REQUIRE(tectum_read(t, patience, &piece, &err) == TECTUM_OK);
        CHECK_INT(piece.request, ==, request);
        CHECK_STR(piece.node, "choose");
        if (piece.token < 0)
            break;
        REQUIRE(n < strlen(best));
        CHECK_INT(piece.token, ==, 3 + (unsigned char)best[n] % (512 - 3));
    }
    CHECK_INT(n, ==, strlen(best));
    CHECK_STR(piece.reason, "ranked");
}

TEST(rankings)
{
    struct tectum *t = NULL;
    struct tectum_ranking ranking = {.n = 0};
    const struct tectum_options o = {.pipeline = "pipelines/qwen_skills.lua",
                                     .root = ".",
                                     .random_weights = 1,
                                     .size = "tiny",
                                     .device = "cpu",
                                     .threads = 1};
    enum tectum_status status = tectum_open(&t, &o, &err);
    if (status != TECTUM_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TECTUM_OK);
    CHECK_INT(tectum_ranking(t, NULL, 0, 0, ranked, SKILLS, &ranking, &err), ==, TECTUM_TIME);
    CHECK_INT(tectum_ranking(t, "say", 0, 0, ranked, SKILLS, &ranking, &err), ==, TECTUM_NOT_FOUND);
    CHECK_INT(tectum_ranking(t, NULL, 0, 0, ranked, SKILLS, NULL, &err), ==, TECTUM_INVALID);
    int64_t first = submit(t, "put a mug on the desk");
    REQUIRE(tectum_ranking(t, "choose", 0, patience, ranked, SKILLS, &ranking, &err) == TECTUM_OK);
    CHECK_INT(ranking.observation, ==, first);
    CHECK_INT(ranking.n, ==, SKILLS);
    check_ranking(t);
    check_pieces(t, ranking.request);
    CHECK_INT(tectum_ranking(t, NULL, 0, 0, ranked, 3, &ranking, &err), ==, TECTUM_INVALID);
    CHECK_INT(ranking.n, ==, SKILLS);
    int64_t before = ranking.request, second = submit(t, "bring me a book");
    REQUIRE(tectum_ranking(t, NULL, before + 1, patience, ranked, SKILLS, &ranking, &err) ==
            TECTUM_OK);
    CHECK_INT(ranking.observation, ==, second);
    check_ranking(t);
    tectum_close(&t);
}

/* The bundled tokenizer with one piece more, which the model has no row for: "to the", as
 * the model says it. */
static void put_tokenizer(struct box *b)
{
    static const char more[] = "\n\x11\n\x08to\xe2\x96\x81"
                               "the\x15\0\0\0\0\x18\x04";
    static char old[65536];
    FILE *from = fopen("pipelines/checkpoints/metaworld/tokenizer.model", "rb");
    REQUIRE(from);
    size_t n = fread(old, 1, sizeof old, from);
    fclose(from);
    box_path(b, "more.model");
    FILE *to = fopen(b->path, "wb");
    REQUIRE(to && n < sizeof old);
    fwrite(old, 1, n, to);
    fwrite(more, 1, sizeof more - 1, to);
    CHECK(fclose(to) == 0);
}

TEST(a_text_that_is_no_prompt_is_counted_and_told)
{
    static uint8_t picture[64 * 64 * 3];
    static double actions[64 * 32];
    const float state[4] = {0.0F, 0.6F, 0.2F, 0.1F};
    const struct tectum_value v[] = {
        {"observation/image", TECTUM_TYPE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/wrist_image", TECTUM_TYPE_U8, 3, {64, 64, 3}, picture, sizeof picture},
        {"observation/state", TECTUM_TYPE_F32, 1, {4}, state, sizeof state},
        {"prompt", TECTUM_TYPE_TEXT, 0, {0}, "open the drawer", 15}};
    struct box b;
    struct tectum *t = NULL;
    struct tectum_chunk chunk;
    struct tectum_error why = {.status = TECTUM_TIME};
    box_make(&b);
    put_tokenizer(&b);
    const struct tectum_options options = {.pipeline = "tests/pipelines/said_demo.lua",
                                           .root = ".",
                                           .tokenizer = b.path,
                                           .threads = 1};
    REQUIRE(tectum_open(&t, &options, &err) == TECTUM_OK);
    CHECK_INT(tectum_unread(t, &why), ==, 0);
    CHECK(why.status == TECTUM_OK && !why.message[0]);
    for (int i = 0; i < 3; i++) {
        int64_t number = -1;
        REQUIRE(tectum_submit(t, v, 4, 0, &number, &err) == TECTUM_OK);
        REQUIRE(tectum_wait(t, number, patience, actions, 64 * 32, &chunk, &err) == TECTUM_OK);
        CHECK_INT(chunk.observation, ==, number);
        CHECK(chunk.rows > 0);
        CHECK_INT(tectum_unread(t, NULL), ==, i + 1);
    }
    CHECK_INT(tectum_unread(t, &why), ==, 3);
    CHECK_INT(why.status, ==, TECTUM_INVALID);
    CHECK(strstr(why.message, "frame 0: ") == why.message);
    CHECK(
        strstr(why.message, "no prompt is made of the text of 'narration', the one before stays"));
    CHECK_INT(tectum_unread(NULL, &why), ==, 0);
    tectum_close(&t);
    box_remove(&b);
}

TAP_MAIN
