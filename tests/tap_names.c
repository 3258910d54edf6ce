/* tap_names.c - the judge's tables of names: which tap holds a tensor of a golden case. */
#include "tests/judge/taps.h"
#include "tests/tap.h"

static const struct tec_tap_name names[] = {
    {"embed", "prefix.embeds", NULL, TEC_TAP_ROWS},
    {"layer#.out", "prefix.layer#.hidden", "decode.layer#.hidden", TEC_TAP_TEXT_ROWS},
    {"step#.layer#.mod", "", NULL, TEC_TAP_INPUT_NORM},
    {"every_#th", "logits", NULL, TEC_TAP_EVERY},
    {"vision.*", "camera.*", NULL, TEC_TAP_PICTURE},
    {"vision.out", "never", NULL, TEC_TAP_ROWS}};

static bool find(const char *name, struct tec_tap_found *found)
{
    return tec_tap_find(names, sizeof names / sizeof names[0], name, found);
}

TEST(names_are_found_whole_and_numbers_go_over)
{
    struct tec_tap_found found;
    REQUIRE(find("embed", &found));
    CHECK_STR(found.ours, "prefix.embeds");
    CHECK_STR(found.step, "");
    CHECK_INT(found.form, ==, TEC_TAP_ROWS);
    REQUIRE(find("layer17.out", &found));
    CHECK_STR(found.ours, "prefix.layer17.hidden");
    CHECK_STR(found.step, "decode.layer17.hidden");
    CHECK_INT(found.number[0], ==, 17);
    REQUIRE(find("step9.layer12.mod", &found));
    CHECK_INT(found.number[0], ==, 9);
    CHECK_INT(found.number[1], ==, 12);
    REQUIRE(find("every_97th", &found));
    CHECK_INT(found.number[0], ==, 97);
}

TEST(a_star_is_any_rest_and_the_first_line_counts)
{
    struct tec_tap_found found;
    REQUIRE(find("vision.left.layer0.hidden", &found));
    CHECK_STR(found.ours, "camera.left.layer0.hidden");
    REQUIRE(find("vision.", &found));
    CHECK_STR(found.ours, "camera.");
    REQUIRE(find("vision.out", &found));
    CHECK_STR(found.ours, "camera.out");
}

TEST(other_names_are_not_found)
{
    static const char *const strange[] = {"",
                                          "embe",
                                          "embeds",
                                          "layer.out",
                                          "layer-1.out",
                                          "layerx.out",
                                          "layer1.out2",
                                          "layer12345678901.out",
                                          "step1.layer.mod",
                                          "visio"};
    struct tec_tap_found found;
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        CHECK(!find(strange[i], &found));
}

TEST(a_name_that_does_not_fit_is_not_found)
{
    char name[TEC_TAP_BYTES + 8] = "vision.";
    struct tec_tap_found found;
    for (size_t i = 7; i + 1 < sizeof name; i++)
        name[i] = 'x';
    CHECK(!find(name, &found));
    name[TEC_TAP_BYTES - 1] = '\0'; /* "camera." is as long as "vision." */
    REQUIRE(find(name, &found));
    CHECK_STR(found.ours + 7, name + 7);
    name[TEC_TAP_BYTES - 1] = 'x';
    name[TEC_TAP_BYTES] = '\0';
    CHECK(!find(name, &found));
}

TAP_MAIN
