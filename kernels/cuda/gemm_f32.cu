/* gemm_f32.cu - y (+)= gate * (x W^T + bias), W float32, sums in float64 in the order of k.
 *
 * The checking path and the small exact projections. A product of two float32 is exact in float64,
 * so the sums are those of the reference, bit by bit, whatever the tile. */
#include "kernels/cuda/gemm_choice.h"
#include "kernels/cuda/lang.cuh"

/* A block's COLUMNS x ROWS outputs, M x N of them a thread, K of the inner length at a time. */
template <int COLUMNS_, int ROWS_, int M_, int N_, int K_> struct tile {
    enum : int {
        COLUMNS = COLUMNS_,
        ROWS = ROWS_,
        M = M_,
        N = N_,
        K = K_,
        ACROSS = COLUMNS / M,
        DOWN = ROWS / N,
        THREADS = ACROSS * DOWN,
        LD = K + 1, /* doubles: lanes on neighbouring rows meet no bank conflict */
        OF_W = COLUMNS * K / THREADS,
        OF_X = ROWS * K / THREADS
    };
};

/* COUNT elements a thread of rows first .. of a matrix, columns k0 .. k0 + K - 1; zero outside. */
template <class T, int COUNT>
static __device__ __forceinline__ void load(float (&to)[COUNT], const float *from, int ld,
                                            int first, int rows, int k0, int k)
{
    TEC_UNROLL
    for (int i = 0; i < COUNT; i++) {
        int at = i * T::THREADS + (int)threadIdx.x, r = first + at / T::K, c = k0 + at % T::K;
        to[i] = r < rows && c < k ? from[(size_t)r * (size_t)ld + (size_t)c] : 0.0F;
    }
}

template <class T, int COUNT>
static __device__ __forceinline__ void store(double *to, const float (&from)[COUNT])
{
    TEC_UNROLL
    for (int i = 0; i < COUNT; i++) {
        int at = i * T::THREADS + (int)threadIdx.x;
        to[at / T::K * T::LD + at % T::K] = (double)from[i];
    }
}

template <class T>
static __device__ __forceinline__ void multiply(double (&c)[T::M][T::N], const double *w,
                                                const double *x)
{
    w += (int)threadIdx.x % T::ACROSS * T::LD;
    x += (int)threadIdx.x / T::ACROSS * T::LD;
    TEC_UNROLL
    for (int k = 0; k < T::K; k++) {
        TEC_UNROLL
        for (int i = 0; i < T::M; i++) {
            TEC_UNROLL
            for (int j = 0; j < T::N; j++)
                c[i][j] = fma(x[j * T::DOWN * T::LD + k], w[i * T::ACROSS * T::LD + k], c[i][j]);
        }
    }
}

static __device__ __forceinline__ void finish(const tec_gemm_args &a, int r, int column, double sum,
                                              bool fixed)
{
    float v = (float)sum;
    if (a.bias)
        v = __fadd_rn(v, a.bias[column]);
    const float *gate = fixed ? a.fixed_gate : a.gate;
    if (gate)
        v = __fmul_rn(v, gate[column]);
    float *y = a.y + (size_t)r * (size_t)a.ldy + (size_t)column;
    *y = a.add ? __fadd_rn(*y, v) : v;
}

template <class T>
static __global__ void __launch_bounds__(T::THREADS) gemm_kernel(struct tec_gemm_args a)
{
    __shared__ double w[T::COLUMNS * T::LD], x[T::ROWS * T::LD];
    const float *weights = static_cast<const float *>(a.w);
    int first = (int)blockIdx.x * T::ROWS, column = (int)blockIdx.y * T::COLUMNS;
    float next_w[T::OF_W], next_x[T::OF_X];
    load<T>(next_w, weights, a.k, column, a.n, 0, a.k);
    wait_previous();
    release_next();
    int live = live_count(a.rows, a.max_rows), fixed = a.fixed ? *a.fixed : 0;
    if (first >= live)
        return;
    load<T>(next_x, a.x, a.ldx, first, live, 0, a.k);
    double c[T::M][T::N] = {};
    for (int k = 0; k < a.k; k += T::K) {
        __syncthreads();
        store<T>(w, next_w);
        store<T>(x, next_x);
        __syncthreads();
        load<T>(next_w, weights, a.k, column, a.n, k + T::K, a.k);
        load<T>(next_x, a.x, a.ldx, first, live, k + T::K, a.k);
        multiply<T>(c, w, x);
    }
    TEC_UNROLL
    for (int i = 0; i < T::M; i++) {
        TEC_UNROLL
        for (int j = 0; j < T::N; j++) {
            int r = first + (int)threadIdx.x / T::ACROSS + j * T::DOWN;
            int to = column + (int)threadIdx.x % T::ACROSS + i * T::ACROSS;
            if (r < live && to < a.n)
                finish(a, r, to, c[i][j], r < fixed);
        }
    }
}

template <class T> static void start(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    dim3 grid((unsigned)ceil_div(a->max_rows, T::ROWS), (unsigned)ceil_div(a->n, T::COLUMNS));
    tec_cuda_start(launch, gemm_kernel<T>, grid, dim3(T::THREADS), 0, *a);
}

#define F32_TILE(name, columns, rows, m, n, k, ...) typedef tile<columns, rows, m, n, k> name;
#include "kernels/cuda/gemm_tiles.def"

void tec_cuda_gemm_f32(const struct tec_gemm_args *a, struct tec_cuda_launch *launch)
{
    struct tec_cuda_facts facts = tec_cuda_facts_of(launch);
    if (f32_choose(a->n, a->max_rows, &facts) == GEMM_f32_large)
        start<f32_large>(a, launch);
    else
        start<f32_small>(a, launch);
}
