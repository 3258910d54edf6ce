/* memory.cu - addresses that are wrong, memory that nobody wrote, launches that do not fit. */
#include "tests/cuda_emulator/self_test/self_test.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_SANITIZED 1
#endif

enum mistake {
    NONE,
    COPY_TO_MISALIGNED,
    COPY_FROM_MISALIGNED,
    COPY_PAST_SHARED,
    COPY_TO_GLOBAL,
    COPY_NOT_COMMITTED,
    COPY_NOT_AWAITED,
    LOAD_MISALIGNED,
    LOAD_PAST_SHARED,
    UNSET_DYNAMIC,
    UNSET_STATIC,
    PAST_DYNAMIC,
    PAST_STATIC,
    PAST_GLOBAL,
    MISALIGNED_VECTOR,
    BLOCK_TOO_LARGE,
    GRID_TOO_HIGH,
    GRID_EMPTY,
    SHARED_TOO_LARGE
};

enum { BYTES = 1024 };

template <int M> static __device__ void copies(unsigned char *s, const unsigned char *x)
{
    unsigned char *to = s + threadIdx.x * 16;
    const unsigned char *from = x + threadIdx.x * 16;
    if (M == COPY_TO_MISALIGNED)
        to += 8;
    if (M == COPY_FROM_MISALIGNED)
        from += 4;
    if (M == COPY_PAST_SHARED)
        to += BYTES - 31 * 16;
    if (M == COPY_TO_GLOBAL)
        to = const_cast<unsigned char *>(from);
    copy16_async(to, from, true);
    if (M != COPY_NOT_COMMITTED)
        copy_commit();
    if (M != COPY_NOT_AWAITED)
        copy_wait<0>();
    __syncwarp();
}

template <int M> static __global__ void memory_kernel(const unsigned char *x, float *y)
{
    wait_previous();
    release_next();
    TEC_SHARED(unsigned char, s);
    __shared__ float own[WARP];
    int t = (int)threadIdx.x;
    copies<M>(s, x);
    unsigned r[2];
    load_matrices_x2(r, s + t % 16 * 16 +
                            (M == LOAD_MISALIGNED    ? 8
                             : M == LOAD_PAST_SHARED ? BYTES
                                                     : 0));
    if (M != UNSET_STATIC)
        own[t] = (float)r[0];
    __syncwarp();
    float v = own[(t + 1) % WARP];
    if (M == UNSET_DYNAMIC)
        v = reinterpret_cast<float *>(s)[BYTES / 8 + t];
    if (M == PAST_DYNAMIC)
        s[BYTES + t] = 1;
    if (M == PAST_STATIC)
        *(volatile float *)(own + t + 4) = v;
    if (M == MISALIGNED_VECTOR)
        v += reinterpret_cast<const float4 *>(x + 4 * t)->x;
    y[t + (M == PAST_GLOBAL ? 4 : 0)] = v;
}

template <int M> static bool memory(bool broken)
{
    alignas(16) unsigned char x[BYTES];
    float y[WARP] = {};
    dim3 grid(1), block(WARP);
    size_t shared = BYTES;
    for (int i = 0; i < BYTES; i++)
        x[i] = (unsigned char)(i * 7);
    if (broken && M == BLOCK_TOO_LARGE)
        block = dim3(32, 33);
    if (broken && M == GRID_TOO_HIGH)
        grid = dim3(1, 65536);
    if (broken && M == GRID_EMPTY)
        grid = dim3(0);
    if (broken && M == SHARED_TOO_LARGE)
        shared = 227 * 1024 + 16;
    run_kernel(broken ? memory_kernel<M> : memory_kernel<NONE>, grid, block, shared,
               (const unsigned char *)x, (float *)y);
    for (int t = 0; t < WARP; t++) {
        unsigned bits;
        memcpy(&bits, x + (t + 1) % WARP * 4, sizeof bits);
        if (y[t] != (float)bits)
            return false;
    }
    return true;
}

const emulator_case memory_cases[] = {
    {"a copy to an address that is no multiple of 16", memory<COPY_TO_MISALIGNED>, BY_FINDING,
     "multiple of 16"},
    {"a copy from an address that is no multiple of 16", memory<COPY_FROM_MISALIGNED>, BY_FINDING,
     "multiple of 16"},
    {"a copy past the end of shared memory", memory<COPY_PAST_SHARED>, BY_FINDING,
     "bytes of shared memory"},
    {"a matrix row that is misaligned", memory<LOAD_MISALIGNED>, BY_FINDING, "multiple of 16"},
    {"a matrix row past the end of shared memory", memory<LOAD_PAST_SHARED>, BY_FINDING,
     "bytes of shared memory"},
    {"a copy to global memory", memory<COPY_TO_GLOBAL>, BY_FINDING, "not in one array"},
    {"a thread that ends with a copy of no group", memory<COPY_NOT_COMMITTED>, BY_FINDING,
     "ends without waiting for its copy at memory.cu:"},
    {"a thread that ends with a copy it has not waited for", memory<COPY_NOT_AWAITED>, BY_FINDING,
     "ends without waiting for its copy at memory.cu:"},
    {"dynamic shared memory that nobody wrote", memory<UNSET_DYNAMIC>, BY_VALUE, ""},
    {"static shared memory that nobody wrote", memory<UNSET_STATIC>, BY_VALUE, ""},
#ifdef EMULATOR_SANITIZED
    {"a write past the end of dynamic shared memory", memory<PAST_DYNAMIC>, BY_SANITIZER, ""},
    {"a write past the end of static shared memory", memory<PAST_STATIC>, BY_SANITIZER, ""},
    {"a write past the end of global memory", memory<PAST_GLOBAL>, BY_SANITIZER, ""},
    {"a float4 at an address that is no multiple of 16", memory<MISALIGNED_VECTOR>, BY_SANITIZER,
     ""},
#else
    {"a write past the end of dynamic shared memory", memory<PAST_DYNAMIC>, BY_FINDING,
     "past the end"},
#endif
    {"a block that is too large", memory<BLOCK_TOO_LARGE>, BY_FINDING, "1024 threads"},
    {"a grid that is too high", memory<GRID_TOO_HIGH>, BY_FINDING, "65535"},
    {"a grid without blocks", memory<GRID_EMPTY>, BY_FINDING, "65535"},
    {"too much shared memory", memory<SHARED_TOO_LARGE>, BY_FINDING, "232448"},
};
const int n_memory_cases = sizeof memory_cases / sizeof memory_cases[0];
