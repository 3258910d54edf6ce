/* rounded.c - a product is told when what it reads holds bf16 values, and only then. */
#include "kernels/device_kind.h"
#include "ops/program.h"
#include "tests/tap.h"

enum { ROWS = 4, COLS = 16 };

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_program program;
static float some[COLS * COLS];
static int live = ROWS;

static int tensor(void)
{
    return tec_program_tensor(&program, "t", ROWS, COLS, &live);
}

static void begin(void)
{
    tec_arena_init(&arena, &heap);
    tec_program_init(&program, &arena, "test");
}

static void norm(int x, int y, int round)
{
    struct tec_call call = tec_call_of(TEC_OP_rms_norm, "norm");
    call.in[0] = x;
    call.out[0] = y;
    call.args.norm.weight = some;
    call.args.norm.eps = 1e-6F;
    call.args.norm.round = round;
    tec_program_call(&program, &call);
}

static void linear(int x, int y, bool bf16)
{
    struct tec_call call = tec_call_of(TEC_OP_linear, "linear");
    call.in[0] = x;
    call.out[0] = y;
    call.bf16 = bf16;
    call.args.gemm = (struct tec_gemm_args){.w = some, .n = COLS, .k = COLS};
    tec_program_call(&program, &call);
}

static void activation(enum tec_op_id op, int x, int y, int round)
{
    struct tec_call call = tec_call_of(op, "act");
    call.in[0] = x;
    call.out[0] = y;
    if (op == TEC_OP_gelu_mul)
        call.args.gated = (struct tec_gated_args){.up_at = 0, .round = round};
    else
        call.args.map.round = round;
    tec_program_call(&program, &call);
}

static unsigned char place[64];

/* Of each product in the list, '1' where it is told, '0' where not. */
static const char *told(void)
{
    static char letters[8];
    int n = 0;
    struct tec_error err;
    struct tec_device *device = NULL;
    struct tec_capture *capture = NULL;
    const struct tec_device_options options = {.kind = "cpu", .threads = 1, .tier = TEC_TIER_ref};
    REQUIRE(program.status == TEC_OK);
    REQUIRE(tec_device_open(&device, &options, &heap, &err) == TEC_OK);
    for (int i = 0; i < program.n_tensors; i++) /* recorded, never run */
        program.tensors[i].at = place;
    REQUIRE(tec_capture_begin(&capture, device, TEC_STREAM_MAIN, &arena, &err) == TEC_OK);
    tec_program_record_piece(&program, 0, program.n_steps, capture);
    for (int i = 0; i < capture->n && n < 7; i++) {
        const struct tec_capture_step *c = &capture->commands[i];
        if (c->kind == TEC_RUN && c->kernel <= TEC_KERNEL_gemm_bf16)
            letters[n++] = ((const struct tec_gemm_args *)c->args)->rounded ? '1' : '0';
    }
    letters[n] = '\0';
    tec_arena_finish(&arena);
    tec_device_close(device);
    CHECK_INT(heap.live, ==, 0);
    return letters;
}

TEST(what_a_norm_or_an_activation_has_rounded)
{
    begin();
    int x = tensor(), n = tensor(), plain = tensor(), y = tensor();
    norm(x, n, 1);
    linear(n, y, true);
    norm(x, plain, 0);
    linear(plain, y, true);
    activation(TEC_OP_gelu, plain, x, 1);
    linear(x, y, true);
    linear(x, y, false); /* in float64: nothing to gain */
    CHECK_STR(told(), "1010");
}

TEST(what_somebody_else_writes_as_well_is_not)
{
    begin();
    int x = tensor(), n = tensor(), y = tensor();
    norm(x, n, 1);
    linear(n, y, true); /* a loop may come back to it */
    linear(x, n, true);
    linear(y, x, true);
    CHECK_STR(told(), "000");
}

TEST(what_is_kept_elsewhere_is_not)
{
    begin();
    int x = tensor(), y = tensor();
    int fixed = tec_program_fixed(&program, "fixed", some, sizeof some, ROWS, COLS, COLS, &live);
    norm(x, fixed, 1);
    linear(fixed, y, true);
    CHECK_STR(told(), "0");
}

TAP_MAIN
