/* clusters.cu - blocks of a cluster that meet. */
#include "tests/cuda_emulator/self_test/self_test.h"

#include <emulated_groups.h>

enum mistake {
    NONE,
    NOT_MET,   /* the other blocks */
    MET_ONCE,  /* of two times */
    SOME_MEET, /* a warp has ended before */
    ONE_ENDS,  /* while the others wait */
    ELSEWHERE, /* a warp meets at another place */
    ONE_WAITS, /* for its own block, which waits for the cluster */
    TOO_LARGE, /* more blocks than a cluster has */
    NOT_WHOLE, /* a grid of one cluster and a half */
    NEIGHBOUR  /* reads shared memory as if it were that of the block before */
};

enum { SIZE = 4, MOST = 20, TILES = 3, THREADS = 64, ROUNDS = 2 };

/* Each block leaves a number, and adds those of all of its cluster, twice: what it keeps in shared
 * memory and in registers meanwhile is still its own. */
template <int M> static __global__ void cluster_kernel(int *left, int *sums)
{
    wait_previous();
    release_next();
    TEC_SHARED(int, kept);
    __shared__ int same[THREADS];
    int t = (int)threadIdx.x, part = (int)blockIdx.z, tile = (int)blockIdx.x, n = cluster_blocks();
    kept[t] = same[t] = part * 100 + t;
    if (M == SOME_MEET && part == 1 && t < WARP)
        return;
    for (int round = 0; round < ROUNDS; round++) {
        int *own = left + ((round * TILES + tile) * n + part) * THREADS, sum = 0;
        own[t] = part * 10 + t + round;
        if (M == ONE_ENDS && part == 2 && t == 5)
            return;
        if (M == ONE_WAITS && part == 0 && t == 0)
            __syncthreads();
        else if (M == ELSEWHERE && part == 3 && t >= WARP)
            meet_cluster();
        else if (M != NOT_MET && (M != MET_ONCE || round == 0))
            meet_cluster();
        for (int i = 0; i < n; i++)
            sum += left[((round * TILES + tile) * n + i) * THREADS + t];
        bool whole = kept[t] == (M == NEIGHBOUR ? part - 1 : part) * 100 + t && same[t] == kept[t];
        sums[((round * TILES + tile) * n + part) * THREADS + t] = whole ? sum : -1;
    }
}

template <int M> static bool clusters(bool broken)
{
    int left[ROUNDS * TILES * MOST * THREADS], sums[ROUNDS * TILES * MOST * THREADS];
    unsigned size = broken && M == TOO_LARGE ? MOST : SIZE;
    unsigned blocks = broken && M == NOT_WHOLE ? SIZE + SIZE / 2 : size;
    memset(left, 0x11, sizeof left);
    run_clusters(broken ? cluster_kernel<M> : cluster_kernel<NONE>, dim3(TILES, 1, blocks),
                 dim3(THREADS), THREADS * sizeof(int), size, (int *)left, (int *)sums);
    for (int i = 0; i < ROUNDS * TILES * SIZE * THREADS; i++) {
        int t = i % THREADS, round = i / THREADS / SIZE / TILES;
        if (sums[i] != SIZE * (t + round) + 10 * (SIZE * (SIZE - 1) / 2))
            return false;
    }
    return true;
}

const emulator_case cluster_cases[] = {
    {"blocks that do not meet", clusters<NOT_MET>, BY_VALUE, ""},
    {"blocks that meet once of two times", clusters<MET_ONCE>, BY_VALUE, ""},
    {"a warp that ends before the others meet", clusters<SOME_MEET>, BY_FINDING, "meet_cluster"},
    {"a thread that ends while others wait", clusters<ONE_ENDS>, BY_FINDING, "meet_cluster"},
    {"a warp that meets elsewhere", clusters<ELSEWHERE>, BY_FINDING, "meets meet_cluster"},
    {"a thread that waits for its block", clusters<ONE_WAITS>, BY_FINDING, "nobody can run"},
    {"a cluster of too many blocks", clusters<TOO_LARGE>, BY_FINDING, "1 .. 16 blocks"},
    {"a grid that is no whole clusters", clusters<NOT_WHOLE>, BY_FINDING, "whole clusters"},
    {"another block's shared memory", clusters<NEIGHBOUR>, BY_VALUE, ""},
};
const int n_cluster_cases = sizeof cluster_cases / sizeof cluster_cases[0];
