/* gemm_tiles.c - the AVX-512 gemm_bf16 kernel where the processor has a tile unit (AMX): products
 * whose x may be read as bf16 terms.
 *
 * kernels/panels/gemm_tiles.inc has the algorithm. Products that read all of x go the other way, so
 * their bytes are those of every vector tier. */
#include "kernels/avx512/avx512.h"

#if defined(__x86_64__)
#include "kernels/avx512/panels.h"
#include "kernels/avx512/tiles.h"
#include "kernels/panels/gemm_tiles.inc"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

void tec_tiles_gemm_bf16_avx512(const struct tec_gemm_args *a, struct tec_part part)
{
    if (a->rounded || a->terms == 2)
        run_tiles(a, part, a->rounded ? 1 : 2);
    else
        tec_gemm_bf16_avx512(a, part);
}

/* Whether the system keeps the unit's registers when it changes threads. */
static bool is_enabled(void)
{
    enum { OSXSAVE = 1 << 27, TILES = 3 << 17 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & TILES) == TILES;
}

bool tec_tiles_permitted(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    enum { PRODUCTS = 1 << 22, UNIT = 1 << 24, BYTES = 1 << 25, ALL = PRODUCTS | UNIT | BYTES };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & ALL) == ALL && is_enabled() &&
           syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

#endif
