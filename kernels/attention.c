/* attention.c - the size of the scratch memory that attention needs for each lane, on every
 * tier. */
#include "kernels/attention.h"
#include "kernels/kernels.h"

/* Floats for a transposed key block, a value block, the accumulators and the scores of a tile, and
 * four numbers for each of its queries. */
size_t tec_attention_scratch(int head_dim)
{
    size_t width = (size_t)tec_attention_width(head_dim);
    size_t keys = TEC_ATTENTION_KEYS, tile = TEC_ATTENTION_TILE;
    return 2 * keys * width + tile * width + tile * keys + 4 * tile;
}
