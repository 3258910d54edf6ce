/* emulated_warp.h - barriers, shuffles and votes. */
#pragma once

#include <emulated_thread.h>
#include <type_traits>

enum { warpSize = 32 };

static inline void __syncthreads(EMULATOR_HERE)
{
    cuda_emulator::meet_block(0, file, line);
}
static inline int __syncthreads_count(int vote, EMULATOR_HERE)
{
    return cuda_emulator::meet_block(vote, file, line).count;
}
static inline int __syncthreads_and(int vote, EMULATOR_HERE)
{
    return cuda_emulator::meet_block(vote, file, line).all;
}
static inline int __syncthreads_or(int vote, EMULATOR_HERE)
{
    return cuda_emulator::meet_block(vote, file, line).any;
}

/* Blocks run one after the other and memory has one order. */
static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline void __threadfence_system()
{
}
static inline void __nanosleep(unsigned)
{
}
[[noreturn]] static inline void __trap()
{
    cuda_emulator::fail("__trap()");
}

namespace cuda_emulator
{
inline void complete_nothing(void *const[32], unsigned)
{
}
inline constexpr operation syncwarp = {"__syncwarp", complete_nothing};

/* Every lane gets the value of another one. */
template <class T> struct shuffle {
    T value, result;
    int from; /* a lane, or -1: its own */
};
template <class T> void complete_shuffle(void *const deposits[32], unsigned lanes)
{
    for (unsigned left = lanes; left; left &= left - 1) {
        shuffle<T> *own = (shuffle<T> *)deposits[__builtin_ctz(left)];
        if (own->from < 0)
            own->result = own->value;
        else if (lanes >> own->from & 1U)
            own->result = ((const shuffle<T> *)deposits[own->from])->value;
        else
            fail("a shuffle among lanes %08x reads lane %d", lanes, own->from);
    }
}
template <class T> inline constexpr operation shuffle_of = {"a shuffle", complete_shuffle<T>};

template <class T>
static inline T exchange(unsigned lanes, T value, int from, const char *file, int line)
{
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "not for a shuffle");
    shuffle<T> own = {value, value, from};
    meet(&shuffle_of<T>, lanes, &own, file, line);
    return own.result;
}

/* Votes and sums of 32 bits: `result` is the same for all. */
struct vote {
    unsigned value, result;
};
template <unsigned (*F)(unsigned so_far, unsigned value, int lane)>
void complete_vote(void *const deposits[32], unsigned lanes)
{
    unsigned result = 0;
    for (unsigned left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        unsigned value = ((const vote *)deposits[lane])->value;
        result = left == lanes ? F(0, value, ~lane) : F(result, value, lane);
    }
    for (unsigned left = lanes; left; left &= left - 1)
        ((vote *)deposits[__builtin_ctz(left)])->result = result;
}
/* `lane` is ~lane for the first one, whose `so_far` means nothing. */
inline unsigned vote_ballot(unsigned so_far, unsigned value, int lane)
{
    return so_far | (value ? 1U << (lane < 0 ? ~lane : lane) : 0);
}
inline unsigned vote_add(unsigned so_far, unsigned value, int)
{
    return so_far + value;
}
inline unsigned vote_min(unsigned so_far, unsigned value, int lane)
{
    return lane < 0 || value < so_far ? value : so_far;
}
inline unsigned vote_max(unsigned so_far, unsigned value, int lane)
{
    return lane < 0 || value > so_far ? value : so_far;
}
template <unsigned (*F)(unsigned, unsigned, int)>
inline constexpr operation vote_of = {"a vote", complete_vote<F>};

template <unsigned (*F)(unsigned, unsigned, int)>
static inline unsigned collect(unsigned lanes, unsigned value, const char *file, int line)
{
    vote own = {value, 0};
    meet(&vote_of<F>, lanes, &own, file, line);
    return own.result;
}
} // namespace cuda_emulator

static inline void __syncwarp(unsigned lanes = ~0U, EMULATOR_HERE)
{
    cuda_emulator::meet(&cuda_emulator::syncwarp, lanes, nullptr, file, line);
}

/* Lanes exchange within groups of `width`, a power of two. */
template <class T>
static inline T __shfl_sync(unsigned lanes, T v, int from, int width = 32, EMULATOR_HERE)
{
    int own = (int)cuda_emulator::current->lane;
    return cuda_emulator::exchange(lanes, v, (own & ~(width - 1)) | (from & (width - 1)), file,
                                   line);
}
template <class T>
static inline T __shfl_xor_sync(unsigned lanes, T v, int bits, int width = 32, EMULATOR_HERE)
{
    int own = (int)cuda_emulator::current->lane, from = own ^ bits;
    bool inside = (from & ~(width - 1)) <= (own & ~(width - 1));
    return cuda_emulator::exchange(lanes, v, inside ? from : -1, file, line);
}
template <class T>
static inline T __shfl_down_sync(unsigned lanes, T v, unsigned by, int width = 32, EMULATOR_HERE)
{
    int own = (int)cuda_emulator::current->lane;
    bool inside = (own & (width - 1)) + (int)by < width;
    return cuda_emulator::exchange(lanes, v, inside ? own + (int)by : -1, file, line);
}
template <class T>
static inline T __shfl_up_sync(unsigned lanes, T v, unsigned by, int width = 32, EMULATOR_HERE)
{
    int own = (int)cuda_emulator::current->lane;
    bool inside = (own & (width - 1)) >= (int)by;
    return cuda_emulator::exchange(lanes, v, inside ? own - (int)by : -1, file, line);
}

static inline unsigned __ballot_sync(unsigned lanes, int vote, EMULATOR_HERE)
{
    return cuda_emulator::collect<cuda_emulator::vote_ballot>(lanes, vote != 0, file, line);
}
static inline int __any_sync(unsigned lanes, int vote, EMULATOR_HERE)
{
    return __ballot_sync(lanes, vote, file, line) != 0;
}
static inline int __all_sync(unsigned lanes, int vote, EMULATOR_HERE)
{
    return __ballot_sync(lanes, vote, file, line) == lanes;
}
static inline unsigned __reduce_add_sync(unsigned lanes, unsigned value, EMULATOR_HERE)
{
    return cuda_emulator::collect<cuda_emulator::vote_add>(lanes, value, file, line);
}
static inline unsigned __reduce_min_sync(unsigned lanes, unsigned value, EMULATOR_HERE)
{
    return cuda_emulator::collect<cuda_emulator::vote_min>(lanes, value, file, line);
}
static inline unsigned __reduce_max_sync(unsigned lanes, unsigned value, EMULATOR_HERE)
{
    return cuda_emulator::collect<cuda_emulator::vote_max>(lanes, value, file, line);
}
