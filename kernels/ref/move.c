/* move.c - the reference move_kv kernel: copies rows of keys or values from slots to slots.
 *
 * A lane copies its rows of a move in one piece, so a faster tier has nothing to add to memmove. */
#include "kernels/ref/ref.h"

#include <string.h>

static int tokens_of(const struct tec_move_args *a, int i)
{
    return tec_live(&a->moves[i].tokens, a->max_tokens);
}

void tec_move_kv_ref(const struct tec_move_args *a, struct tec_part part)
{
    int count = tec_live(a->count, a->max_moves), most = 0;
    for (int i = 0; i < count; i++)
        most = tokens_of(a, i) > most ? tokens_of(a, i) : most;
    struct tec_range own = tec_share(part, most, 1); /* each lane has the same rows of every move */
    size_t row = (size_t)a->row;
    for (int i = 0; i < count; i++) {
        int last = tokens_of(a, i) < own.last ? tokens_of(a, i) : own.last;
        if (own.first >= last)
            continue;
        size_t to = (size_t)a->moves[i].to + (size_t)own.first,
               from = (size_t)a->moves[i].from + (size_t)own.first;
        memmove((unsigned char *)a->to + to * row, (const unsigned char *)a->from + from * row,
                (size_t)(last - own.first) * row);
    }
}
