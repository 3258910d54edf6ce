/* self_test.c - tests the harness itself: each kernel here is wrong on purpose, and the harness
 * must catch it. */
#include "kernels/bf16.h"
#include "tests/kernels/conform.h"

#include <stdio.h>

typedef void embed_fn(const struct tec_embed_args *a, struct tec_part part);

static embed_fn *right; /* the reference */

static float *row_of(const struct tec_embed_args *a, int r)
{
    return a->y + ((size_t)*a->first + (size_t)r) * (size_t)a->ldy;
}

static void tail_dropped(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_embed_args b = *a;
    float keep = row_of(a, 0)[a->k - 1];
    right(&b, part);
    if (part.lane == 0 && tec_live(a->rows, a->max_rows) > 0)
        row_of(a, 0)[a->k - 1] = keep;
}

/* Address sanitizer would stop the test here, so the fences must catch this without it. */
__attribute__((no_sanitize_address)) static void past_the_end(const struct tec_embed_args *a,
                                                              struct tec_part part)
{
    right(a, part);
    row_of(a, a->max_rows + 1)[a->ldy] = 1.0F; /* the buffer has two rows more than max_rows */
}

static void rounded_wrong(const struct tec_embed_args *a, struct tec_part part)
{
    right(a, part);
    struct tec_range rows = tec_share(part, tec_live(a->rows, a->max_rows), 1);
    for (int r = rows.first; r < rows.last; r++)
        row_of(a, r)[0] = tec_bf16_round(row_of(a, r)[0]);
}

static void lanes_matter(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_embed_args b = *a;
    b.scale += (float)(part.lanes - 1);
    right(&b, part);
}

static void lanes_overlap(const struct tec_embed_args *a, struct tec_part part)
{
    right(a, part);
    if (part.lane == 0 && part.lanes > 2 && tec_live(a->rows, a->max_rows) > 0)
        row_of(a, tec_live(a->rows, a->max_rows) - 1)[0] = 0.0F;
}

static void rows_matter(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_embed_args b = *a;
    b.scale += tec_live(a->rows, a->max_rows) == 1 ? 1.0F : 0.0F;
    right(&b, part);
}

static void dead_row(const struct tec_embed_args *a, struct tec_part part)
{
    right(a, part);
    row_of(a, tec_live(a->rows, a->max_rows))[0] = 0.0F;
}

static void padding_column(const struct tec_embed_args *a, struct tec_part part)
{
    right(a, part);
    if (a->k < a->ldy)
        row_of(a, 0)[a->k] = 0.0F;
}

static void not_clamped(const struct tec_embed_args *a, struct tec_part part)
{
    struct tec_embed_args b = *a;
    b.max_rows = *a->rows > a->max_rows ? a->max_rows + 1 : a->max_rows;
    int ids[32] = {0};
    for (int r = 0; r < a->max_rows && r < 32; r++)
        ids[r] = a->ids[r];
    b.ids = ids;
    right(&b, part);
}

static void in_order(const struct tec_embed_args *a, struct tec_part part)
{
    right(a, part);
}

static const struct {
    const char *name;
    embed_fn *kernel;
    bool wrong;
} mutants[] = {
    {"the reference itself passes", in_order, false},
    {"a dropped tail", tail_dropped, true},
    {"a write past the end", past_the_end, true},
    {"a wrong rounding", rounded_wrong, true},
    {"a result that depends on the lanes", lanes_matter, true},
    {"a lane that writes another's row", lanes_overlap, true},
    {"a row that depends on the number of rows", rows_matter, true},
    {"a write to a row that does not live", dead_row, true},
    {"a write to a padding column", padding_column, true},
    {"a count that is not clamped", not_clamped, true},
};

int conform_self_test(int *number)
{
    const struct tec_kernels ref = tec_kernels_for(TEC_TIER_ref);
    right = ref.embed_bf16;
    int failed = 0;
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++) {
        struct tec_kernels wrong = ref;
        wrong.embed_bf16 = mutants[i].kernel;
        struct conform c = {.kernel = "embed_bf16",
                            .tier = "wrong",
                            .id = TEC_KERNEL_embed_bf16,
                            .ref = &ref,
                            .fast = &wrong,
                            .quiet = true};
        conform_embed_bf16(&c);
        bool ok = c.failed == mutants[i].wrong;
        printf("%sok %d - harness: %s%s\n", ok ? "" : "not ", ++*number, mutants[i].name,
               mutants[i].wrong ? " is caught" : "");
        failed += !ok;
    }
    return failed;
}
