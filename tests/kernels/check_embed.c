/* check_embed.c - checks the lookup of embeddings: one product for each value and no sum, so every
 * tier must give the same bits. */
#include "kernels/matrix.h"
#include "tests/kernels/conform.h"

/* One product a value and no sum: every tier gives the same bits. */
static void embed_shape(struct conform *c, int rows, int n, int k, bool bf16)
{
    int ld = conform_ld(k), first = conform_int(0, 3), room = first + rows + 2;
    float *w = conform_buf(c, (size_t)n * (size_t)k, sizeof *w);
    conform_fill(w, (size_t)n * (size_t)k, CONFORM_NORMAL, 1.0F);
    int *ids = conform_ints(c, (size_t)rows, 0);
    for (int r = 0; r < rows; r++)
        ids[r] = conform_int(0, 9) ? conform_int(0, n - 1) : conform_int(-2, n + 40);
    ids[0] = conform_int(0, 3) ? ids[0] : -1;
    float *y = conform_buf(c, (size_t)room * (size_t)ld, sizeof *y);
    int padded = tec_padded(n);
    struct tec_embed_args a = {.ids = ids,
                               .y = y,
                               .rows = conform_live(c, rows),
                               .first = conform_ints(c, 1, first),
                               .max_rows = rows,
                               .ldy = ld,
                               .n = padded,
                               .k = k,
                               .scale = conform_float(5.0F)};
    struct tec_embed_args ref = a, fast = a;
    ref.w = conform_matrix(c, c->ref, bf16, n, k, w);
    fast.w = conform_matrix(c, c->fast, bf16, n, k, w);
    struct conform_call call = {.ref = &ref, .fast = &fast, .live = rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){y, rows, (size_t)k * 4, (size_t)ld * 4, NULL, first, 1};
    conform_run(c, &call);
    conform_same(c, 0, (size_t)room * (size_t)ld * 4, "%d rows of [%d, %d]", rows, n, k);
    for (int r = 0; r < rows; r++) {
        int id = ids[r] >= 0 && ids[r] < padded ? ids[r] : 0;
        const float *got = (const float *)c->got[0] + (size_t)(first + r) * (size_t)ld;
        for (int i = 0; i < k; i++) {
            float x = id < n ? w[(size_t)id * (size_t)k + (size_t)i] : 0.0F;
            if (bf16)
                conform_round(&x, 1);
            conform_close(c, (double)got[i], (double)(a.scale * x), 0.0, "token %d column %d", id,
                          i);
        }
    }
    conform_time(c, "embed", &call, (double)rows * k * 4.0, 0.0);
    conform_end(c);
}

static void embed(struct conform *c, bool bf16)
{
    static const int widths[] = {1, 2, 3, 15, 16, 17, 64, 2047, 2048};
    bool bench = c->bench;
    for (int i = 0; i < 30; i++) {
        int k = i < 9 ? widths[i] : conform_int(1, 600);
        c->bench = bench && k == 2048;
        embed_shape(c, k == 2048 ? 20 : conform_int(1, 20), conform_int(1, 100), k, bf16);
    }
    c->bench = bench;
}

void conform_embed_f32(struct conform *c)
{
    embed(c, false);
}

void conform_embed_bf16(struct conform *c)
{
    embed(c, true);
}
