/* stages.c - tests the arithmetic of a ring against the golden tables: volumes in tokens, forwards
 * and rows. */
#include "graph/kv/stages.h"
#include "tests/tap.h"

#include <jansson.h>

static json_t *open_tables(void)
{
    return json_load_file("tests/golden/schedules/ring_tables.json", JSON_REJECT_DUPLICATES, NULL);
}

static int64_t number(const json_t *from, const char *field)
{
    const json_t *value = json_object_get(from, field);
    REQUIRE(json_is_integer(value));
    return json_integer_value(value);
}

/* The microseconds of a steady frame by the rows that it runs. */
static int64_t frame_us(const json_t *table, int stages, int depth)
{
    int64_t packed = number(table, "packed_us"), row = number(table, "packed_row_us");
    int64_t decode = number(table, "decode_us"), more = number(table, "decode_row_us");
    int64_t us = packed + row * tec_stages_rows(stages, depth, 0);
    for (int i = 1; i < tec_stages_forwards(stages, depth); i++)
        us += decode + more * (tec_stages_rows(stages, depth, i) - 1);
    return us;
}

static void check_depth(const json_t *table, int stages, const json_t *row)
{
    int depth = (int)number(row, "depth"), frames = tec_stages_frames(stages, depth);
    CHECK_INT(tec_stages_forwards(stages, depth), ==, number(row, "forwards"));
    CHECK_INT(frames - 1, ==, number(row, "age_frames"));
    CHECK_INT(frames, ==, number(row, "in_flight"));
    CHECK_INT(frame_us(table, stages, depth), ==, number(row, "frame_us"));
}

TEST(volumes_are_those_of_the_tables)
{
    json_t *all = open_tables(), *table, *row;
    size_t i, j;
    REQUIRE(all);
    json_array_foreach(json_object_get(all, "tables"), i, table)
    {
        int prefix = (int)number(table, "prefix_tokens");
        int64_t bytes = number(table, "kv_bytes_per_token");
        json_array_foreach(json_object_get(table, "stages"), j, row)
        {
            int stages = (int)number(row, "K");
            int64_t shifted = tec_stages_shifted(stages, prefix);
            int64_t visible = tec_stages_visible(stages, prefix);
            CHECK_INT(shifted, ==, number(row, "shift_tokens"));
            CHECK_INT(tec_stages_moved(stages, stages, 0, prefix), ==, shifted);
            CHECK_INT(shifted * bytes, ==, number(row, "shift_bytes"));
            CHECK_INT(visible, ==, number(row, "gather_tokens"));
            CHECK_INT(visible * bytes, ==, number(row, "gather_bytes"));
            CHECK_INT(visible, ==, number(row, "ring_tokens"));
            CHECK_INT(frame_us(table, stages, stages), ==,
                      number(json_object_get(row, "ring"), "frame_us"));
        }
        CHECK(j > 0);
    }
    CHECK(i > 0);
    json_decref(all);
}

TEST(depths_are_those_of_the_tables)
{
    json_t *all = open_tables(), *table, *rows, *row;
    size_t i, j, k, n = 0;
    REQUIRE(all);
    json_array_foreach(json_object_get(all, "tables"), i, table)
    {
        json_array_foreach(json_object_get(table, "depths"), j, rows)
        {
            int stages = (int)number(rows, "K");
            json_array_foreach(json_object_get(rows, "rows"), k, row)
            {
                check_depth(table, stages, row);
                n++;
            }
        }
    }
    CHECK(n > 0);
    json_decref(all);
}

TAP_MAIN
