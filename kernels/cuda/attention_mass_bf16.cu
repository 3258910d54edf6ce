/* attention_mass_bf16.cu - weights of attention over bf16 keys added up over ranges, on tensor
 * cores.
 *
 * A block has a tile of M = 16 * MG packed rows: MASS_HEADS heads of one key-value head at most,
 * for one row or more. It goes through all heads of its rows, so that a row's result is written by
 * it alone. Keys are walked once, 64 at a time, MASS_STAGES such blocks ahead; a query enters as
 * three bf16 terms, which are all of its 24 bits.
 *
 * One walk is enough because a weight is e^(score - top) with a `top` that need not be the largest
 * score: that of the first keys is kept until a score passes it by RAISE. Then what was added up
 * before is made smaller. The sums of ranges wait in device memory until the walk has the sum of
 * all weights, by which they are divided.
 *
 * One order of sums for every row, whatever the tile: the keys of a range within a block in four
 * chains, blocks in order; heads of a row in order, MASS_HEADS at a time. */
#include "kernels/cuda/attention_mma_scores.cuh"
#include "kernels/cuda/attention_mass.cuh"

/* RAISE: e^40 times 2^31 keys are far from infinity. */
enum { P_ROW = KEYS + 1, CHAINS = 4, RAISE = 40 };

/* v as three terms, the largest first. */
static __device__ __forceinline__ void split_three(float v, bf16 *high, bf16 *middle, bf16 *low)
{
    *high = __float2bfloat16(v);
    split(plus(v, -__bfloat162float(*high)), middle, low);
}

/* What one start works on. */
struct mass_job {
    const int *ends, *count;
    int max_ranges, rows, heads; /* rows of a tile; heads that it has of a row */
    float *places;               /* [blocks][max_ranges][M] sums of ranges */
};

/* The heads of a run that a block has at a time. */
struct mass_part {
    struct attention_run run;
    int kv_head, head, heads, count; /* count = run.rows * heads */
    int begin;                       /* the first key that is walked to */
};

template <int MG> struct mass_terms_tile {
    enum { M = 16 * MG, CG = WARPS / MG, SN = KEYS / 8 / CG, LANES = THREADS / M };
    bf16 *q, *k; /* q: [MASS_TERMS][M] */
    float *p, *sums, *top, *total, *carry, *factor;
    int *first, *end, *range;
    unsigned *starts; /* of keys that begin a range */
    float *place;
    int ld, dim, ranges;
    int group, part, g, t;
    int mine; /* the range of this thread's key of the block */
    struct key_walk walk;

    __device__ __forceinline__ mass_terms_tile(const struct tec_attention_args &a,
                                               const struct mass_job &job, unsigned char *shared)
    {
        int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
        dim = a.head_dim;
        ld = bf16_row_stride(dim);
        q = reinterpret_cast<bf16 *>(shared);
        k = q + MASS_TERMS * M * ld;
        p = reinterpret_cast<float *>(k + MASS_STAGES * KEYS * ld);
        sums = p + M * P_ROW;
        top = sums + M * 8;
        total = top + M;
        carry = total + M;
        factor = carry + 2 * M;
        first = reinterpret_cast<int *>(factor + M);
        end = first + M;
        range = end + M;
        starts = reinterpret_cast<unsigned *>(range + KEYS);
        place = job.places + (size_t)blockIdx.x * (size_t)job.max_ranges * M;
        group = warp / CG;
        part = warp % CG;
        g = lane / 4;
        t = lane % 4;
    }

    __device__ __forceinline__ int row_of(int half) const
    {
        return group * 16 + half * 8 + g;
    }

    /* The keys that each query sees; its softmax starts empty. */
    __device__ __forceinline__ void begin_queries(const struct tec_attention_args &a,
                                                  const struct mass_part &y)
    {
        int i = (int)threadIdx.x;
        if (i >= M)
            return;
        int row = y.run.row + (i < y.count ? i / y.heads : 0);
        first[i] = first_seen(a, a.visible[row]);
        end[i] = i < y.count ? keys_visible(a, row, y.run.length) : 0;
        top[i] = -INFINITY;
        total[i] = carry[i] = carry[M + i] = 0.0F;
    }

    /* A warp takes a query at a time. */
    __device__ __forceinline__ void load_queries(const struct tec_attention_args &a,
                                                 const struct mass_part &y)
    {
        ROLLED
        for (int i = (int)threadIdx.x / WARP; i < M; i += WARPS) {
            bool real = i < y.count;
            const float *from = a.q +
                                (size_t)(y.run.row + (real ? i / y.heads : 0)) * (size_t)a.ldq +
                                (size_t)(y.head + (real ? i % y.heads : 0)) * (size_t)dim;
            ROLLED
            for (int d = (int)threadIdx.x % WARP; d < ld - 8; d += WARP) {
                bf16 *to = q + i * ld + d;
                split_three(real && d < dim ? from[d] : 0.0F, to, to + M * ld, to + 2 * M * ld);
            }
        }
    }

    /* Columns of keys that instructions read and no copy writes. */
    __device__ __forceinline__ void clear_padding()
    {
        for (int i = (int)threadIdx.x; i < MASS_STAGES * KEYS; i += THREADS)
            for (int d = dim; d < ld - 8; d++)
                k[i * ld + d] = __float2bfloat16(0.0F);
    }

    /* This thread's quarter of a key's head, or of zeros: pieces of 16 bytes where heads are whole
     * ones. */
    __device__ __forceinline__ void load_key(bf16 *to, const bf16 *from, bool real) const
    {
        int quarter = (int)threadIdx.x % 4, step = dim % 8 == 0 ? 8 : 1;
        ROLLED
        for (int d = quarter * step; d < dim; d += 4 * step) {
            if (step == 8)
                copy16_async(to + d, from + d, real);
            else
                to[d] = real ? from[d] : __float2bfloat16(0.0F);
        }
    }

    /* Four threads for each key of the block that begins at `at`. */
    __device__ __forceinline__ void load_keys(const struct tec_attention_args &a,
                                              const struct mass_part &y, int at, int stage)
    {
        if (at < y.run.most) {
            int key = at + (int)threadIdx.x / 4;
            int slot = key < y.run.most ? slot_of_key(a, &walk, key) : -1;
            size_t from_key = (size_t)(slot < 0 ? 0 : slot) * (size_t)a.kv_heads;
            const bf16 *from =
                static_cast<const bf16 *>(a.k) + (from_key + (size_t)y.kv_head) * (size_t)dim;
            load_key(k + (stage * KEYS + (int)threadIdx.x / 4) * ld, from, slot >= 0);
        }
        copy_commit();
    }

    /* Scores of this warp's keys: the largest term of a query, and the other two, in chains. */
    __device__ __forceinline__ void score(const struct tec_attention_args &a, float s[SN][4],
                                          const bf16 *keys)
    {
        float low[SN][4];
        TEC_UNROLL
        for (int n = 0; n < SN; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            s[n][i] = low[n][i] = 0.0F;
        const bf16 *row = lane_row(q + group * 16 * ld, ld);
        int lane = (int)threadIdx.x % WARP;
        const bf16 *key = keys + (part * SN * 8 + lane % 8) * ld + lane / 8 % 2 * 8;
        ROLLED
        for (int d = 0; d < dim; d += 16) {
            unsigned terms[MASS_TERMS][4];
            TEC_UNROLL
            for (int i = 0; i < MASS_TERMS; i++)
                load_matrices_x4(terms[i], row + i * M * ld + d);
            TEC_UNROLL
            for (int n = 0; n < SN; n++) {
                unsigned b[2];
                load_matrices_x2(b, key + n * 8 * ld + d);
                mma_bf16(s[n], terms[0], b);
                mma_bf16(low[n], terms[2], b);
                mma_bf16(low[n], terms[1], b);
            }
        }
        TEC_UNROLL
        for (int n = 0; n < SN; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            s[n][i] = capped(a, times(a.scale, plus(s[n][i], low[n][i])));
    }

    /* Whether the query of element i of tile n sees its key, in the block that begins at `at`. */
    __device__ __forceinline__ bool sees(int n, int i, int at) const
    {
        int key = at + (part * SN + n) * 8 + 2 * t + i % 2, row = row_of(i / 2);
        return key >= first[row] && key < end[row];
    }

    /* Which range each key of the block is of, and whether it is the first one of that. */
    __device__ __forceinline__ void find_ranges(const struct mass_job &job, int at)
    {
        if (threadIdx.x >= KEYS)
            return;
        int key = at + (int)threadIdx.x;
        if (mine < ranges && job.ends[mine] <= key)
            mine = range_of(job.ends, ranges, key);
        range[threadIdx.x] = mine;
        bool begins = key == (mine > 0 ? job.ends[mine - 1] : 0);
        unsigned all = __ballot_sync(ALL_LANES, begins);
        if (threadIdx.x % WARP == 0)
            starts[threadIdx.x / WARP] = all;
    }

    /* Whether any score that is seen passes its query's top by RAISE. */
    __device__ __forceinline__ bool passes(const float s[SN][4], int at) const
    {
        bool any = false;
        TEC_UNROLL
        for (int n = 0; n < SN; n++)
            TEC_UNROLL
        for (int i = 0; i < 4; i++)
            any = any || (sees(n, i, at) && plus(s[n][i], -top[row_of(i / 2)]) > (float)RAISE);
        return any;
    }

    /* Whether range s has any of the keys least .. last - 1. */
    __device__ __forceinline__ bool has_keys(const struct mass_job &job, int s, int least,
                                             int last) const
    {
        int from = s > 0 ? job.ends[s - 1] : 0;
        return job.ends[s] > least && from < last && from < job.ends[s];
    }

    /* e^(old - new) is subnormal where tops are 88 apart, so it is applied by its root, twice. */
    static __device__ __forceinline__ float shrunk(float v, float root)
    {
        return times(times(v, root), root);
    }

    /* Raise the tops that are passed, and make smaller what was added up with the old ones. */
    __device__ __forceinline__ void raise(const float s[SN][4], const struct mass_job &job,
                                          const struct mass_part &y, int at)
    {
        TEC_UNROLL
        for (int h = 0; h < 2; h++) {
            float most = -INFINITY;
            TEC_UNROLL
            for (int n = 0; n < SN; n++)
                TEC_UNROLL
            for (int i = 2 * h; i < 2 * h + 2; i++)
                most = sees(n, i, at) ? fmaxf(most, s[n][i]) : most;
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
            most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
            if (t == 0)
                sums[row_of(h) * 8 + part] = most;
        }
        __syncthreads();
        if (threadIdx.x < M) {
            int i = (int)threadIdx.x;
            float most = -INFINITY, old = top[i];
            for (int c = 0; c < CG; c++)
                most = fmaxf(most, sums[i * 8 + c]);
            bool higher = plus(most, -old) > (float)RAISE;
            factor[i] = higher ? expf(times(plus(old, -most), 0.5F)) : 1.0F;
            if (higher) {
                float *waits = &carry[(at / KEYS & 1) * M + i];
                top[i] = most;
                total[i] = shrunk(total[i], factor[i]);
                *waits = shrunk(*waits, factor[i]);
            }
        }
        __syncthreads();
        int done = range[0] * M;
        for (int j = (int)threadIdx.x; at > y.begin && j < done; j += THREADS)
            if (factor[j % M] != 1.0F && has_keys(job, j / M, y.begin, at))
                place[j] = shrunk(place[j], factor[j % M]);
    }

    /* Weights of the block's keys into shared memory, and their sum for each tile of eight. */
    __device__ __forceinline__ void weigh(const float s[SN][4], int at)
    {
        TEC_UNROLL
        for (int n = 0; n < SN; n++) {
            TEC_UNROLL
            for (int h = 0; h < 2; h++) {
                float v[2];
                int row = row_of(h);
                TEC_UNROLL
                for (int i = 0; i < 2; i++) {
                    v[i] = sees(n, 2 * h + i, at) ? expf(plus(s[n][2 * h + i], -top[row])) : 0.0F;
                    p[row * P_ROW + (part * SN + n) * 8 + 2 * t + i] = v[i];
                }
                float sum = plus(v[0], v[1]);
                sum = plus(sum, __shfl_xor_sync(ALL_LANES, sum, 1));
                sum = plus(sum, __shfl_xor_sync(ALL_LANES, sum, 2));
                if (t == 0)
                    sums[row * 8 + part * SN + n] = sum;
            }
        }
    }

    __device__ __forceinline__ float add_keys(const float *weights, int from, int to) const
    {
        float sum[CHAINS] = {};
        ROLLED
        for (int c = from / CHAINS * CHAINS; c < to; c += CHAINS) {
            TEC_UNROLL
            for (int i = 0; i < CHAINS; i++)
                if (c + i >= from && c + i < to)
                    sum[i] = plus(sum[i], weights[c + i]);
        }
        return plus(plus(sum[0], sum[1]), plus(sum[2], sum[3]));
    }

    /* The weights of a block to the sums of their ranges. A range that goes on in the next block
     * waits in `carry`, of which there are two: one thread reads, another one writes. */
    __device__ __forceinline__ void add_ranges(int at)
    {
        int query = (int)threadIdx.x % M, lane = (int)threadIdx.x / M, from = 0;
        const float *old = carry + (at / KEYS & 1) * M;
        float *next = carry + ((at / KEYS + 1) & 1) * M;
        unsigned long long rest = (unsigned long long)starts[1] << 32 | starts[0];
        bool goes_on = (rest & 1) == 0;
        rest &= ~1ULL;
        ROLLED
        for (int i = 0; from < KEYS; i++) {
            int to = rest ? __ffsll((long long)rest) - 1 : (int)KEYS;
            rest &= rest - 1;
            if (i % LANES == lane) {
                float sum = add_keys(p + query * P_ROW, from, to);
                if (i == 0 && goes_on)
                    sum = plus(old[query], sum);
                if (to == KEYS)
                    next[query] = sum;
                if (range[from] < ranges)
                    place[range[from] * M + query] = sum;
            }
            from = to;
        }
        if (threadIdx.x < M) {
            float sum = 0.0F;
            TEC_UNROLL
            for (int i = 0; i < 8; i++)
                sum = plus(sum, sums[query * 8 + i]);
            total[query] = plus(total[query], sum);
        }
    }

    /* The sums of ranges, over those of all weights, to the rows' results. */
    __device__ __forceinline__ void write(const struct tec_attention_args &a,
                                          const struct mass_job &job, const struct mass_part &y)
    {
        for (int j = (int)threadIdx.x; j < y.run.rows * ranges; j += THREADS) {
            int row = j % y.run.rows, s = j / y.run.rows;
            float *out = a.out + (size_t)(y.run.row + row) * (size_t)a.ldo + (size_t)s;
            float sum = 0.0F;
            int i = row * y.heads, last = i + y.heads;
            bool any = has_keys(job, s, first[i], end[i]); /* else nothing, not even a NaN */
            for (; any && i < last; i++)
                sum = plus(sum, place[s * M + i] / total[i]);
            *out = y.head > 0 ? plus(*out, sum) : sum;
        }
    }

    __device__ __forceinline__ void attend(const struct tec_attention_args &a,
                                           const struct mass_job &job, const struct mass_part &y)
    {
        __syncthreads(); /* what came before is written */
        walk = {y.run.span, y.run.end, 0};
        mine = 0;
        begin_queries(a, y);
        TEC_UNROLL
        for (int i = 0; i < MASS_STAGES; i++)
            load_keys(a, y, y.begin + i * KEYS, i);
        load_queries(a, y);
        ROLLED
        for (int at = y.begin, stage = 0; at < y.run.most; at += KEYS) {
            float s[SN][4];
            copy_wait<MASS_STAGES - 1>();
            __syncthreads();
            find_ranges(job, at);
            score(a, s, k + stage * KEYS * ld);
            if (__syncthreads_or(passes(s, at)))
                raise(s, job, y, at);
            load_keys(a, y, at + MASS_STAGES * KEYS, stage);
            stage = stage + 1 < MASS_STAGES ? stage + 1 : 0;
            weigh(s, at);
            __syncthreads();
            add_ranges(at);
        }
        copy_wait<0>();
        __syncthreads();
        write(a, job, y);
    }

    /* The rows of a tile: runs of one sequence, and of each the heads in order. */
    __device__ __forceinline__ void attend_rows(const struct tec_attention_args &a,
                                                const struct mass_job &job, int row, int last)
    {
        int heads = a.heads / a.kv_heads;
        struct mass_part y;
        ROLLED
        for (; row < last; row += y.run.rows) {
            y.run = find_run(a, row, last);
            y.begin = first_seen(a, y.run.least) / KEYS * KEYS;
            ROLLED
            for (int head = 0; head < a.heads; head += y.heads) {
                int left = heads - head % heads;
                y.kv_head = head / heads;
                y.head = head;
                y.heads = left < job.heads ? left : job.heads;
                y.count = y.run.rows * y.heads;
                attend(a, job, y);
            }
        }
    }
};

template <int MG>
static __global__ void __launch_bounds__(THREADS, 2)
    attention_mass_terms_kernel(struct tec_attention_args a, struct mass_job job)
{
    TEC_SHARED(unsigned char, shared);
    release_next();
    mass_terms_tile<MG> y(a, job, shared);
    y.clear_padding();
    wait_previous();
    y.ranges = live_count(job.count, job.max_ranges);
    int live = live_count(a.rows, a.max_rows);
    ROLLED
    for (int row = (int)blockIdx.x * job.rows; y.ranges > 0 && row < live;
         row += (int)gridDim.x * job.rows)
        y.attend_rows(a, job, row, row + job.rows < live ? row + job.rows : live);
}

bool tec_cuda_mass_terms(const struct tec_mass_args *m, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    struct mass_choice c = mass_choose(m, &facts);
    if (c.m == 0)
        return false;
    void *places = mass_among_terms(&facts) ? (void *)launch->terms : (void *)launch->partials;
    struct mass_job job = {m->ends, m->n_ranges, m->max_ranges,
                           c.rows,  c.heads,     static_cast<float *>(places)};
    tec_cuda_start(launch,
                   c.m == 64 ? attention_mass_terms_kernel<4> : attention_mass_terms_kernel<1>,
                   dim3((unsigned)c.blocks), dim3(THREADS), c.shared, attention_of(m), job);
    return true;
}
