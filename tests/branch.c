/* branch.c - the pass that says where a branch of a program ends and what lives until then, the
 * memory that is planned with it, and the check that finds a plan without it. */
#include "graph/compile/plan.h"
#include "tests/tap.h"

#include <string.h>

enum { TENSORS = 8, ROWS = 4, COLS = 16 };

static struct tec_heap heap;
static struct tec_error err;
static struct tec_arena arena;
static struct tec_device *device;
static struct tec_plan *plan;
static struct tec_program *program;
static int count = ROWS, t[TENSORS];
static float given[2][ROWS * COLS];

/* --- a program ------------------------------------------------------------------------------- */

static void begin(void)
{
    const struct tec_device_options options = {.kind = "cpu", .threads = 1};
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_device_open(&device, &options, &heap, &err) == TEC_OK);
    plan = TEC_NEW(&arena, 1, struct tec_plan);
    REQUIRE(plan);
    plan->device = device;
    plan->heap = &heap;
    tec_arena_init(&plan->arena, &heap);
    plan->n_parts = plan->n_streams = 1;
    program = &plan->parts[0].program;
    tec_program_init(program, &plan->arena, "test");
    for (int i = 0; i < TENSORS; i++)
        t[i] = i < 2 ? tec_program_fixed(program, "given", given[i], sizeof given[i], ROWS, COLS,
                                         COLS, &count)
                     : tec_program_tensor(program, "made", ROWS, COLS, &count);
}

static void end(void)
{
    tec_device_put(device, plan->activations[0]);
    tec_arena_finish(&plan->arena);
    tec_arena_finish(&arena);
    tec_device_close(device);
}

static void copy(int from, int to)
{
    struct tec_call call = tec_call_of(TEC_OP_copy, "copy");
    call.in[0] = t[from];
    call.out[0] = t[to];
    tec_program_call(program, &call);
    REQUIRE(tec_program_status(program, &err) == TEC_OK);
}

static void branch(int from, int to)
{
    tec_program_branch(program, true);
    copy(from, to);
    tec_program_branch(program, false);
}

/* The step that ends the branch; -1: none. */
static int joined(void)
{
    int at = -1, n = 0;
    REQUIRE(tec_pass_branch(plan, &err) == TEC_OK);
    for (int s = 0; s < program->n_steps; s++)
        if (program->steps[s].joins) {
            at = s;
            n++;
        }
    CHECK_INT(n, <=, 1);
    return at;
}

/* --- where it ends --------------------------------------------------------------------------- */

TEST(a_branch_ends_where_its_result_is_read)
{
    begin();
    copy(0, 2);
    branch(2, 3);
    copy(2, 4);
    copy(4, 5);
    copy(3, 6);
    CHECK_INT(joined(), ==, 4);
    CHECK_INT(program->tensors[t[2]].last, ==, 3); /* until the join begins */
    CHECK_INT(program->tensors[t[4]].last, ==, 3);
    end();
}

TEST(a_branch_ends_where_what_it_reads_is_written)
{
    begin();
    copy(0, 2);
    branch(2, 3);
    copy(0, 4);
    copy(4, 2);
    CHECK_INT(joined(), ==, 3);
    end();
}

/* Memory that is given is told apart by where it lies. */
TEST(a_branch_ends_where_memory_that_is_given_meets)
{
    begin();
    copy(0, 2);
    branch(2, 1);
    copy(2, 4);
    struct tec_call call = tec_call_of(TEC_OP_copy, "again");
    call.in[0] = tec_program_fixed(program, "half", given[1] + COLS, sizeof given[1] / 2, 2, COLS,
                                   COLS, &count);
    call.out[0] = tec_program_tensor(program, "made", 2, COLS, &count);
    tec_program_call(program, &call);
    CHECK_INT(joined(), ==, 3);
    end();
}

TEST(a_branch_ends_at_cuts_marks_and_other_branches)
{
    for (int how = 0; how < 4; how++) {
        begin();
        copy(0, 2);
        branch(2, 3);
        copy(2, 4);
        if (how == 0)
            tec_program_cut(program);
        else if (how == 1)
            tec_program_mark(program, 1);
        if (how == 2)
            branch(2, 5);
        else
            copy(2, 5);
        copy(2, 6);
        CHECK_INT(joined(), ==, how < 3 ? 3 : -1);
        CHECK_INT(program->tensors[t[2]].last, ==, how == 1 ? 5 : 4);
        end();
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

static enum tec_status place(bool with_the_pass)
{
    if (with_the_pass)
        TEC_TRY(tec_pass_branch(plan, &err));
    TEC_TRY(tec_pass_memory(plan, &err));
    return tec_pass_verify(plan, &err);
}

/* What a branch reads is read last by it in the list, and what it writes is read by nobody: beside
 * it others are made, which must not lie there. */
static void beside(void)
{
    copy(0, 2);
    branch(2, 3);
    copy(0, 4);
    copy(4, 5);
    copy(5, 1);
}

static bool apart(int a, int b)
{
    const struct tec_tensor *x = &program->tensors[t[a]], *y = &program->tensors[t[b]];
    return x->at + x->size <= y->at || y->at + y->size <= x->at;
}

TEST(nothing_beside_a_branch_lies_where_it_reads_or_writes)
{
    begin();
    beside();
    REQUIRE(place(true) == TEC_OK);
    for (int made = 4; made <= 5; made++)
        for (int of = 2; of <= 3; of++)
            CHECK(apart(made, of));
    end();
}

TEST(a_plan_that_overlays_a_branch_is_found)
{
    begin();
    beside();
    CHECK_INT(place(false), ==, TEC_INVALID);
    CHECK(strstr(err.message, "'copy' beside 'copy' touches its tensor 'made'") != NULL);
    end();
}

/* One that ends too late is found as well. */
TEST(a_branch_that_is_read_before_it_ends_is_found)
{
    begin();
    copy(0, 2);
    branch(2, 3);
    copy(3, 4);
    copy(4, 1);
    REQUIRE(tec_pass_branch(plan, &err) == TEC_OK);
    REQUIRE(program->steps[2].joins);
    program->steps[2].joins = false;
    REQUIRE(tec_pass_memory(plan, &err) == TEC_OK);
    CHECK_INT(tec_pass_verify(plan, &err), ==, TEC_INVALID);
    end();
}

TAP_MAIN
