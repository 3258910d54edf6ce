/* gemm_int8.c - the AVX2 gemm_int8 kernel: its instructions and tile shapes for the shared body.
 *
 * kernels/panels/gemm_int8.inc has the algorithm. Sums over a group are whole numbers, hence exact,
 * so this tier gives the same bits as every other CPU tier, whatever its tile shapes. */
#include "kernels/avx2/avx2.h"

#if defined(__x86_64__)
#include "kernels/avx2/panels.h"

#define INT8_TARGET VEC_TARGET
#define INT8_INLINE VEC_INLINE

/* Numbers of x have 16 bits, in one digit too; of eight columns, four have their sums in one
 * vector, two each. */
enum { INT8_BYTES = 0, INT8_SUMS = 2, INT8_MOST = 12 };

typedef __m256i int8_ints;
typedef struct {
    __m256i low, high; /* four k of columns 0-3, of columns 4-7 */
} int8_weights;

#include "kernels/panels/rows_x86.inc"

INT8_INLINE void int8_begin(int8_ints *sums, const unsigned char *head, const int digits)
{
    (void)head;
    (void)digits;
    sums[0] = sums[1] = _mm256_setzero_si256();
}
INT8_INLINE int8_weights int8_load(const char *at)
{
    const __m128i *half = (const __m128i *)(const void *)at;
    return (int8_weights){_mm256_cvtepi8_epi16(_mm_loadu_si128(half)),
                          _mm256_cvtepi8_epi16(_mm_loadu_si128(half + 1))};
}
INT8_INLINE void int8_dot(int8_ints *sums, int8_weights w, const unsigned char *x, const int digits)
{
    (void)digits;
    long long four;
    memcpy(&four, x, sizeof four);
    __m256i all = _mm256_set1_epi64x(four);
    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(w.low, all));
    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(w.high, all));
}
INT8_INLINE vec int8_total(const int8_ints *sums, const int digits)
{
    (void)digits;
    __m256i pairs = _mm256_hadd_epi32(sums[0], sums[1]); /* columns 0 1 4 5 2 3 6 7 */
    return _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(pairs, 0xd8));
}

#include "kernels/panels/gemm_int8.inc"

/* clang-format off */
INT8(1, 4, 2) INT8(2, 2, 2) INT8(3, 2, 2)
INT8(1, 1, 2) INT8(2, 1, 2) INT8(3, 1, 2) INT8(4, 1, 2) INT8(5, 1, 2)

static const struct int8_tiles tiles[] = {
    {4, int8_1_4_2, int8_1_1_2}, {2, int8_2_2_2, int8_2_1_2}, {2, int8_3_2_2, int8_3_1_2},
    {1, NULL, int8_4_1_2}, {1, NULL, int8_5_1_2}};
/* clang-format on */
static const struct int8_shapes shapes[] = {{5, tiles}, {5, tiles}};

void tec_gemm_int8_avx2(const struct tec_gemm_args *a, struct tec_part part)
{
    run_int8(a, part, shapes);
}

#endif
