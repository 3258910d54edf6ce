/* check_move.c - checks the moves of slots between regions of KV memory, byte by byte. */
#include "tests/kernels/conform.h"

#include <stdio.h>
#include <string.h>

/* The slots lie in regions of `tokens`, and moves go from one region to another. */
struct shape {
    int regions, tokens, moves, row;
    bool apart;   /* `from` is another array */
    size_t shift; /* bytes by which the arrays are out of line, a multiple of 2 */
};

static unsigned char *slots(struct conform *c, struct shape s)
{
    size_t size = (size_t)s.regions * (size_t)s.tokens * (size_t)s.row + s.shift;
    unsigned char *at = conform_buf(c, size, 1);
    for (size_t i = 0; i < size; i++)
        at[i] = (unsigned char)conform_int(0, 255);
    return at;
}

/* Make the moves: each region takes the slots of the one before, oldest first, as a ring of regions
 * shifts; or any slot goes to any. */
static struct tec_move *moves(struct conform *c, struct shape s, bool any)
{
    struct tec_move *m = conform_buf(c, (size_t)s.moves, sizeof *m);
    int steps = s.regions - 1;
    if (steps < 1) {
        conform_fail(c, "%d regions: none has a next", s.regions);
        return m;
    }
    for (int i = 0; i < s.moves; i++) {
        int from = steps - 1 - i % steps, to = from + 1;
        if (any) {
            from = conform_int(0, s.regions - 1);
            to = conform_int(0, s.regions - 1);
        }
        m[i] = (struct tec_move){from * s.tokens, to * s.tokens, s.tokens};
        if (any && conform_int(0, 2) == 0)
            m[i].tokens = conform_int(-1, s.tokens + 2);
    }
    return m;
}

/* Compute the expected bytes one by one. */
static void expected(unsigned char *to, const unsigned char *from, const struct tec_move_args *a,
                     int count)
{
    count = count < 0 ? 0 : count < a->max_moves ? count : a->max_moves;
    for (int i = 0; i < count; i++)
        for (int t = 0; t < a->moves[i].tokens && t < a->max_tokens; t++)
            for (int b = 0; b < a->row; b++)
                to[(a->moves[i].to + t) * a->row + b] = from[(a->moves[i].from + t) * a->row + b];
}

static void compare(struct conform *c, const struct tec_move_args *a, const unsigned char *right,
                    size_t size)
{
    for (int which = 0; which < 2; which++)
        if (memcmp(which ? c->want[0] : c->got[0], right, size) != 0)
            conform_fail(c, "%s%d moves of at most %d slots of %d bytes",
                         which ? "reference: " : "", a->max_moves, a->max_tokens, a->row);
}

static void move_shape(struct conform *c, struct shape s, bool any, int live)
{
    struct tec_move_args a = {.max_moves = s.moves, .max_tokens = s.tokens, .row = s.row};
    unsigned char *to = slots(c, s), *from = s.apart ? slots(c, s) : to;
    size_t size = (size_t)s.regions * (size_t)s.tokens * (size_t)s.row + s.shift;
    unsigned char *right = memcpy(conform_buf(c, size, 1), to, size);
    a.from = from + s.shift;
    a.to = to + s.shift;
    a.moves = moves(c, s, any);
    a.count = conform_ints(c, 1, live);
    expected(right + s.shift, (s.apart ? from : right) + s.shift, &a, live);
    struct conform_call call = {.ref = &a, .fast = &a, .live = live, .outs = 1};
    call.out[0] = (struct conform_out){.at = to}; /* the whole memory, whatever the moves touch */
    conform_run(c, &call);
    compare(c, &a, right, size);
    if (size >= 1 << 20) {
        char name[40];
        snprintf(name, sizeof name, "%dx%dx%d", s.moves, s.tokens, s.row);
        conform_time(c, name, &call, 2.0 * s.moves * s.tokens * s.row, 0);
    }
    conform_end(c);
}

void conform_move_kv(struct conform *c)
{
    static const int rows[] = {2, 4, 6, 16, 18, 20, 32, 34, 512, 1040};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int shift = 0; shift < 3; shift++) {
            static const size_t shifts[] = {0, 2, 8};
            struct shape s = {conform_int(2, 6), conform_int(1, 40), 0, rows[i], false,
                              shifts[shift]};
            s.moves = s.regions - 1;
            move_shape(c, s, false, s.moves);
            s.moves = conform_int(1, 9);
            move_shape(c, s, true, conform_int(-1, s.moves + 2));
            s.apart = true;
            move_shape(c, s, true, s.moves);
        }
    move_shape(c, (struct shape){4, conform_scale(c, 272, 70), 3, 8192, false, 0}, false, 3);
}
