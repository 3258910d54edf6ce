/* chain.c - the pass that says which results only the next step reads, and how long what a chain of
 * such steps reads must live. */
#include "graph/compile/plan.h"
#include "tests/tap.h"

enum { TENSORS = 12, STEPS = 16 };

static struct tec_tensor tensors[TENSORS];
static struct tec_step steps[STEPS];
static int n_steps;

static struct tec_step *add(enum tec_step_kind kind)
{
    struct tec_step *s = &steps[n_steps++];
    *s = (struct tec_step){.kind = kind};
    for (int i = 0; i < TEC_OP_INPUTS; i++)
        s->call.in[i] = -1;
    for (int i = 0; i < TEC_OP_OUTPUTS; i++)
        s->call.out[i] = -1;
    return s;
}

static void use(int tensor)
{
    struct tec_tensor *t = &tensors[tensor];
    t->first = t->first < 0 ? n_steps - 1 : t->first;
    t->last = n_steps - 1;
}

static void call(int in, int out)
{
    struct tec_step *s = add(TEC_STEP_CALL);
    s->call.in[0] = in;
    s->call.out[0] = out;
    use(in);
    use(out);
}

static void begin(void)
{
    n_steps = 0;
    for (int i = 0; i < TENSORS; i++)
        tensors[i] = (struct tec_tensor){.first = -1, .last = -1};
}

/* The steps that pass, one letter each. */
static const char *passing(void)
{
    static struct tec_plan plan;
    static char letters[STEPS + 1];
    struct tec_error err;
    plan.n_parts = 1;
    plan.parts[0].program = (struct tec_program){
        .tensors = tensors, .n_tensors = TENSORS, .steps = steps, .n_steps = n_steps};
    REQUIRE(tec_pass_chain(&plan, &err) == TEC_OK);
    for (int i = 0; i < n_steps; i++)
        letters[i] = steps[i].call.passes ? 'p' : '-';
    letters[n_steps] = '\0';
    return letters;
}

TEST(what_the_next_step_alone_reads_passes)
{
    begin();
    call(0, 1);
    call(1, 2);
    call(2, 3);
    CHECK_STR(passing(), "pp-");
    CHECK_INT(tensors[0].last, ==, 2); /* the last of the chain may be where it is read */
    CHECK_INT(tensors[1].last, ==, 2);
    CHECK_INT(tensors[2].last, ==, 2);
}

TEST(what_is_read_again_does_not)
{
    begin();
    call(0, 1);
    call(1, 2);
    call(1, 3);
    CHECK_STR(passing(), "---");
    CHECK_INT(tensors[0].last, ==, 0);
}

/* A sum that two steps make. */
TEST(what_was_there_before_does_not)
{
    begin();
    call(0, 2);
    call(1, 2);
    call(2, 3);
    CHECK_STR(passing(), "---");
}

TEST(what_outlives_the_program_does_not)
{
    begin();
    call(0, 1);
    call(1, 2);
    tensors[1].fixed = true;
    CHECK_STR(passing(), "--");
}

TEST(one_of_two_results_does_not)
{
    begin();
    call(0, 1);
    steps[0].call.out[1] = 2;
    use(2);
    call(1, 3);
    CHECK_STR(passing(), "--");
}

TEST(nothing_passes_a_mark_or_a_loop)
{
    static const enum tec_step_kind kinds[] = {TEC_STEP_MARK, TEC_STEP_REPEAT, TEC_STEP_REPEAT_END};
    for (int i = 0; i < 3; i++) {
        begin();
        call(0, 1);
        (void)add(kinds[i]);
        call(1, 2);
        CHECK_STR(passing(), "---");
    }
}

TAP_MAIN
