/* move.cu - runs of slots from one place to another, in order.
 *
 * All slots of a move are one run of pieces as wide as rows and addresses allow. A thread has the
 * same pieces of every move, MOVE_PIECES of them, and does one move after the other: what it reads
 * only it has written. Loads of a move are all on their way before its first store. */
#include "kernels/cuda/row.cuh"

enum { MOVE_PIECES = 4 };

/* `pieces` make a slot. */
template <class T>
static __global__ void __launch_bounds__(ROW_THREADS)
    move_kv_kernel(struct tec_move_args a, size_t pieces)
{
    wait_previous();
    release_next();
    int count = live_count(a.count, a.max_moves);
    size_t first = (size_t)blockIdx.x * (ROW_THREADS * MOVE_PIECES) + threadIdx.x;
    for (int i = 0; i < count; i++) {
        struct tec_move move = a.moves[i];
        const T *from = static_cast<const T *>(a.from) + (size_t)move.from * pieces;
        T *to = static_cast<T *>(a.to) + (size_t)move.to * pieces;
        size_t last = (size_t)live_count(&move.tokens, a.max_tokens) * pieces;
        T piece[MOVE_PIECES];
        TEC_UNROLL
        for (int j = 0; j < MOVE_PIECES; j++)
            if (first + j * ROW_THREADS < last)
                piece[j] = from[first + j * ROW_THREADS];
        TEC_UNROLL
        for (int j = 0; j < MOVE_PIECES; j++)
            if (first + j * ROW_THREADS < last)
                to[first + j * ROW_THREADS] = piece[j];
    }
}

template <class T>
static bool start_move(const struct tec_move_args *a, struct tec_cuda_launch *launch)
{
    size_t row = (size_t)a->row, pieces = row / sizeof(T);
    size_t block = (size_t)ROW_THREADS * MOVE_PIECES;
    if (!rows_aligned(a->from, row, sizeof(T)) || !rows_aligned(a->to, row, sizeof(T)))
        return false;
    size_t blocks = ((size_t)a->max_tokens * pieces + block - 1) / block;
    tec_cuda_start(launch, move_kv_kernel<T>, dim3((unsigned)blocks), dim3(ROW_THREADS), 0, *a,
                   pieces);
    return true;
}

void tec_cuda_move_kv(const struct tec_move_args *a, struct tec_cuda_launch *launch)
{
    (void)(start_move<uint4>(a, launch) || start_move<uint32_t>(a, launch) ||
           start_move<uint16_t>(a, launch));
}
