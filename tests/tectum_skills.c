/* tectum_skills.c - tests of rankings through the public interface. */
#include "tests/tap.h"

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

TAP_MAIN
