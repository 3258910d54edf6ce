/* int4_lanes.c - 4-bit weights are the same bytes whoever makes their panels. */
#include "graph/model/int4.h"
#include "kernels/int4.h"
#include "kernels/matrix.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 1032, K = 520, GROUP = 128 };

static struct tec_heap heap;
static struct tec_error err;

static unsigned char *make(int lanes)
{
    const struct tec_weight_source source = {.seed = 7};
    const struct tec_packing packing = {.kind = TEC_PACKING_GPTQ, .group = GROUP};
    const struct tec_int4_piece piece = {"w", &packing, ROWS, K, GROUP};
    static int order[K], panel[(ROWS + 15) / 16];
    const struct tec_orders orders = {order, panel, 0};
    unsigned char *to = calloc(1, tec_int4_size(tec_padded(ROWS), K, GROUP));
    struct tec_team *team = NULL;
    REQUIRE(to);
    REQUIRE(lanes == 0 || tec_team_create(&team, lanes, 0, &heap, &err) == TEC_OK);
    CHECK_INT(tec_packed_read(&source, &piece, to, &orders, team, &heap, &err), ==, TEC_OK);
    tec_team_destroy(team);
    return to;
}

TEST(lanes_make_the_bytes_of_one)
{
    size_t size = tec_int4_size(tec_padded(ROWS), K, GROUP), last = size / 16 * 16 - 64;
    unsigned char *alone = make(0);
    for (int lanes = 1; lanes < 5; lanes++) {
        unsigned char *many = make(lanes);
        CHECK(memcmp(alone, many, size) == 0);
        free(many);
    }
    unsigned char nothing[64] = {0};
    CHECK(memcmp(alone + last, nothing, sizeof nothing) != 0); /* the last panel was made */
    free(alone);
}

TAP_MAIN
