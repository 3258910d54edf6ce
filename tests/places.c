/* places.c - where tensors of a part lie: those that are live together lie apart, others share
 * room, and the pass that checks it finds a tensor in another's place. */
#include "graph/compile/plan.h"

#include "tests/tap.h"

#include <stdlib.h>

enum { TENSORS = 400, STEPS = 300 };

static struct tec_heap heap;
static struct tec_error err;
static struct tec_plan plan;
static int live = 1;

/* Tensors of random sizes that live for random spans of `STEPS` empty steps: most for a few, some
 * for most of them. */
static void begin(unsigned seed)
{
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    plan = (struct tec_plan){.heap = &heap, .n_parts = 1, .n_streams = 1};
    REQUIRE(tec_device_open(&plan.device, &d, &heap, &err) == TEC_OK);
    tec_arena_init(&plan.arena, &heap);
    struct tec_program *p = &plan.parts[0].program;
    tec_program_init(p, &plan.arena, "test");
    for (int s = 0; s < STEPS; s++)
        tec_program_mark(p, 0);
    REQUIRE(p->n_steps == STEPS);
    for (int i = 0; i < TENSORS; i++) {
        int t = tec_program_tensor(p, "t", 1, 16, &live);
        REQUIRE(t == i);
        int spans = rand_r(&seed) % 10 ? 6 : STEPS, first = rand_r(&seed) % STEPS;
        int last = first + rand_r(&seed) % spans;
        p->tensors[i].size = 4 + (size_t)(rand_r(&seed) % 5000);
        p->tensors[i].first = i % 50 ? first : -1;
        p->tensors[i].last = i % 50 ? (last < STEPS ? last : STEPS - 1) : -1;
    }
}

static void end(void)
{
    tec_device_put(plan.device, plan.activations[0]);
    tec_arena_finish(&plan.arena);
    tec_device_close(plan.device);
    CHECK_INT(heap.live, ==, 0);
}

static bool together(const struct tec_tensor *a, const struct tec_tensor *b)
{
    return a->first >= 0 && b->first >= 0 && a->first <= b->last && b->first <= a->last;
}

static bool touch(const struct tec_tensor *a, const struct tec_tensor *b)
{
    return a->at < b->at + b->size && b->at < a->at + a->size;
}

TEST(tensors_that_live_together_lie_apart)
{
    int shared = 0, wrong = 0;
    for (unsigned seed = 1; seed <= 20; seed++) {
        size_t all = 0;
        begin(seed);
        REQUIRE(tec_pass_memory(&plan, &err) == TEC_OK);
        const struct tec_tensor *t = plan.parts[0].program.tensors;
        for (int i = 0; i < TENSORS; i++) {
            all += t[i].first >= 0 ? t[i].size : 0;
            for (int j = i + 1; j < TENSORS; j++) {
                wrong += together(&t[i], &t[j]) && touch(&t[i], &t[j]);
                shared += t[i].first >= 0 && t[j].first >= 0 && touch(&t[i], &t[j]);
            }
        }
        CHECK(tec_pass_verify(&plan, &err) == TEC_OK);
        CHECK(plan.parts[0].program.planned < all / 2);
        end();
    }
    CHECK_INT(wrong, ==, 0);
    CHECK_INT(shared, >, 1000);
}

TEST(a_tensor_in_the_place_of_another_is_found)
{
    int tried = 0;
    for (unsigned seed = 1; seed <= 20; seed++) {
        begin(seed);
        REQUIRE(tec_pass_memory(&plan, &err) == TEC_OK);
        struct tec_tensor *t = plan.parts[0].program.tensors;
        for (int pair = 0; pair < 20 * TENSORS; pair++) {
            int i = pair % TENSORS, j = rand_r(&seed) % TENSORS;
            if (i == j || !together(&t[i], &t[j]) || t[i].size > t[j].size)
                continue;
            unsigned char *at = t[i].at;
            t[i].at = t[j].at;
            CHECK_INT(tec_pass_verify(&plan, &err), ==, TEC_INVALID);
            CHECK(strstr(err.message, "overlap") != NULL);
            t[i].at = at;
            tried++;
        }
        CHECK(tec_pass_verify(&plan, &err) == TEC_OK);
        end();
    }
    CHECK_INT(tried, >, 100);
}

TAP_MAIN
