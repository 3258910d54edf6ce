/* check_clusters.c - checks that products whose blocks add the sums of their splits together, in
 * clusters, give the bytes of those whose last block adds all of them. */
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"

#include <string.h>

static void cluster(struct conform *c, int rows, int live, int n, int k)
{
    size_t ldx = ((size_t)k + 15) / 16 * 16, size = (size_t)rows * (size_t)n;
    float *before = conform_filled(c, size, CONFORM_NORMAL, false);
    float *y[2] = {conform_buf(c, size, sizeof(float)), conform_buf(c, size, sizeof(float))};
    struct tec_gemm_args a = {.max_rows = rows, .ldx = (int)ldx, .ldy = n, .n = n, .k = k};
    a.rows = conform_ints(c, 1, live);
    a.x = conform_filled(c, (size_t)rows * ldx, CONFORM_NORMAL, false);
    a.w = conform_matrix(c, c->fast, true, n, k,
                         conform_filled(c, (size_t)n * (size_t)k, CONFORM_NORMAL, true));
    a.bias = conform_normal(c, (size_t)n);
    a.gate = conform_normal(c, (size_t)n);
    a.fixed = conform_ints(c, 1, conform_int(0, live));
    a.fixed_gate = conform_normal(c, (size_t)n);
    a.add = conform_int(0, 1);
    for (int wanted = 0; wanted < 2; wanted++) {
        cuda_tier_clusters(wanted);
        a.y = memcpy(y[wanted], before, size * sizeof *before);
        c->fast->gemm_bf16(&a, (struct tec_part){0, 1});
    }
    if (memcmp(y[0], y[1], size * sizeof *before) != 0)
        conform_fail(c, "[%dx%dx%d], %d live: in clusters a row is not the same", rows, n, k, live);
    conform_end(c);
}

/* Fewer splits than a tile has groups of 8 rows, as many, and more; two, which are no cluster, and
 * 17, which are too many for one; tiles of both sizes, the last of them without rows. */
void conform_clusters(struct conform *c)
{
    static const int rows[] = {17, 32, 33, 51, 64, 100, 128};
    static const int splits[] = {2, 3, 4, 7, 8, 9, 16, 17};
    enum { ROWS = sizeof rows / sizeof rows[0], SPLITS = sizeof splits / sizeof splits[0] };
    for (int i = 0; i < ROWS; i++)
        for (int s = i % 2; s < SPLITS; s += 2) {
            int most = rows[i], live = conform_int(0, 1) ? most : conform_int(1, most);
            cluster(c, most, live, 16 * conform_int(1, 12), splits[s] * 8 * 16 - conform_int(0, 9));
        }
    cuda_tier_clusters(true);
}
