/* check_next_token.c - checks the greedy choice of the next token and the bookkeeping of requests
 * against a definition written differently. */
#include "kernels/bf16.h"
#include "tests/kernels/conform.h"

#include <math.h>

enum { TOKENS = 9, FORCED = 5 };

/* Hide the largest value anywhere, at either end, twice, below -0, among NaN, or beside
 * infinity. */
static void hide(float *row, int cols, int how)
{
    int at = conform_int(0, cols - 1), other = conform_int(0, cols - 1);
    if (how == 1)
        at = 0;
    if (how == 2)
        at = cols - 1;
    for (int c = 0; c < cols; c++) {
        if (how == 4)
            row[c] = conform_int(0, 1) ? -0.0F : 0.0F;
        if (how == 5 && conform_int(0, 2))
            row[c] = NAN;
        if (how == 6)
            row[c] = c == at ? -INFINITY : NAN;
        if (how == 7)
            row[c] = NAN;
        if (how == 8)
            row[c] = -INFINITY;
    }
    if (how < 3)
        row[at] = 50.0F;
    if (how == 3)
        row[at] = row[other] = 50.0F;
    if (how == 9) { /* equal once rounded to bf16 */
        row[at] = 50.01F;
        row[other] = 50.0F;
    }
}

/* The definition once more, written differently: find the largest value, then its first place. */
static int answer(const float *row, int cols, int round)
{
    float most = -INFINITY;
    for (int c = 0; c < cols; c++) { /* not fmaxf: gcc 12 for aarch64 fails on a loop of it */
        float x = round ? tec_bf16_round(row[c]) : row[c];
        most = x > most ? x : most;
    }
    for (int c = 0; c < cols; c++)
        if ((round ? tec_bf16_round(row[c]) : row[c]) == most)
            return c;
    return 0;
}

static int *some_ints(struct conform *c, int rows, int low, int high)
{
    int *buf = conform_ints(c, (size_t)rows, 0);
    for (int r = 0; r < rows; r++)
        buf[r] = conform_int(low, high);
    return buf;
}

/* Plant a tree in which place 1 is an end: from 0 everything leads to 2, from 2 half of it leads to
 * the end, and 3 knows no token. */
static void plant(struct conform *c, struct tec_next_token_args *a)
{
    enum { PLACES = 4 };
    int *first = conform_ints(c, PLACES + 1, 0), n = 0;
    int *id = conform_ints(c, 2 * (size_t)a->cols + 1, 0);
    int *next = conform_ints(c, 2 * (size_t)a->cols + 1, 2);
    for (int p = 0; p < PLACES; p++) {
        for (int k = 0; k < a->cols && p % 2 == 0; k++) {
            id[n] = k;
            next[n++] = p == 2 && k % 2 ? 1 : 2;
        }
        if (p == 3)
            id[n++] = a->cols;
        first[p + 1] = n;
    }
    a->trie = (struct tec_trie){.n = PLACES, .first = first, .id = id, .next = next};
    a->place = some_ints(c, a->max_rows, -1, PLACES);
}

static struct tec_next_token_args arguments(struct conform *c, int rows, int cols, int kind)
{
    int ld = conform_ld(cols);
    float *logits = conform_buf(c, (size_t)rows * (size_t)ld, sizeof *logits);
    for (int r = 0; r < rows; r++) {
        enum conform_family family = (enum conform_family)(kind % (CONFORM_DENORMAL + 1));
        conform_fill(logits + (size_t)r * (size_t)ld, (size_t)cols, family, 4.0F);
        hide(logits + (size_t)r * (size_t)ld, cols, conform_int(0, 10));
    }
    struct tec_next_token_args a = {.logits = logits,
                                    .max_rows = rows,
                                    .ld = ld,
                                    .cols = cols,
                                    .max_tokens = TOKENS,
                                    .round = conform_int(0, 1)};
    a.token = some_ints(c, rows, 0, 99);
    a.pos = some_ints(c, rows, 10, 99);
    a.slot = some_ints(c, rows, 0, 99);
    a.visible = some_ints(c, rows, 10, 99);
    a.tail = some_ints(c, rows, 100, 900);
    a.prefix = some_ints(c, rows, 1, 9);
    a.left = some_ints(c, rows, 1, 3);
    a.done = some_ints(c, rows, 0, kind % 4 == 0);
    a.produced = some_ints(c, rows, 0, TOKENS - (kind % 5 != 0));
    a.tokens = conform_ints(c, (size_t)rows * TOKENS, -7);
    a.eos = some_ints(c, rows, -1, cols < 20 ? cols : 20);
    a.stop = conform_ints(c, 1, 0);
    a.best = conform_ints(c, (size_t)rows, -7);
    a.rows = conform_live(c, rows);
    if (kind % 4 == 1 && cols < 3000)
        plant(c, &a);
    if (kind % 3)
        return a;
    a.max_forced = FORCED;
    a.forced = some_ints(c, rows * FORCED, 0, 99);
    a.waiting = some_ints(c, rows, -1, FORCED + 1);
    return a;
}

/* Give room for more tokens than there are runs, so that each run searches for the largest. */
static void bench(struct conform *c, struct conform_call *call, struct tec_next_token_args a)
{
    enum { ROOM = 1000 };
    if (!c->bench || a.cols != 257152)
        return;
    a.tokens = conform_ints(c, (size_t)a.max_rows * ROOM, 0);
    a.max_tokens = ROOM;
    float *logits = conform_buf(c, (size_t)a.max_rows * (size_t)a.ld, sizeof *logits);
    conform_fill(logits, (size_t)a.max_rows * (size_t)a.ld, CONFORM_NORMAL, 4.0F);
    a.logits = logits;
    a.eos = conform_ints(c, (size_t)a.max_rows, -1);
    for (int r = 0; r < a.max_rows; r++) {
        a.done[r] = a.produced[r] = 0;
        a.left[r] = ROOM;
    }
    call->ref = call->fast = &a;
    conform_time(c, a.max_rows == 1 ? "1x257152" : "8x257152", call,
                 (double)a.max_rows * a.cols * sizeof(float), 0.0);
}

static void next_token_shape(struct conform *c, int rows, int cols, int kind)
{
    struct tec_next_token_args a = arguments(c, rows, cols, kind);
    int was_done = a.done[0], was_produced = a.produced[0];
    int was_waiting = a.max_forced ? a.waiting[0] : 0;
    int was_place = a.trie.n ? a.place[0] : -1;
    bool given = was_waiting > 0 && was_waiting <= FORCED;
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 9};
    int waits = a.max_forced > 0 ? call.outs++ : -1, goes = a.trie.n > 0 ? call.outs++ : -1;
    int *states[] = {a.token, a.pos, a.slot, a.visible, a.left, a.done, a.produced};
    for (int i = 0; i < 7; i++)
        call.out[i] = (struct conform_out){states[i], rows, 4, 4, NULL, 0, 1};
    call.out[7] =
        (struct conform_out){a.tokens, rows, (size_t)TOKENS * 4, (size_t)TOKENS * 4, NULL, 0, 1};
    call.out[8] = (struct conform_out){.at = a.stop};
    if (waits >= 0)
        call.out[waits] = (struct conform_out){a.waiting, rows, 4, 4, NULL, 0, 1};
    if (goes >= 0)
        call.out[goes] = (struct conform_out){a.place, rows, 4, 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int o = 0; o < 8; o++)
        conform_same(c, o, (size_t)rows * (o == 7 ? TOKENS * 4 : 4), "%d rows of %d", rows, cols);
    conform_same(c, 8, 4, "stop of %d rows", rows);
    int id = answer(a.logits, cols, a.round);
    if (waits >= 0)
        conform_same(c, waits, (size_t)rows * 4, "%d rows that wait", rows);
    if (goes >= 0)
        conform_same(c, goes, (size_t)rows * 4, "places of %d rows", rows);
    if (goes >= 0 && !was_done && !given && was_produced < TOKENS) {
        int went = was_place == 0 ? 2 : was_place == 2 ? 2 - id % 2 : was_place;
        conform_close(c, ((const int *)c->got[goes])[0], went, 0.0, "place of row 0");
        if (went == 1 || was_place == 3)
            conform_close(c, ((const int *)c->got[5])[0], 1, 0.0, "row 0 leaves its tree");
    }
    if (!was_done && given) {
        int next = a.forced[FORCED - was_waiting];
        conform_close(c, ((const int *)c->got[0])[0], next, 0.0, "row 0, whose next one is given");
        conform_close(c, ((const int *)c->got[6])[0], was_produced, 0.0, "row 0 makes nothing");
        conform_close(c, ((const int *)c->got[waits])[0], was_waiting - 1, 0.0, "row 0 waits");
    } else if (!was_done && was_produced < TOKENS)
        conform_close(c, ((const int *)c->got[7])[was_produced], id, 0.0, "row 0 of %d columns",
                      cols);
    bench(c, &call, a);
    conform_end(c);
}

/* If no row is live, all rows count as done. */
static void next_token_nobody(struct conform *c, const struct tec_kernels *table)
{
    struct tec_next_token_args a = arguments(c, 3, 100, 1);
    int *none = conform_ints(c, 1, 0);
    a.rows = none;
    table->next_token(&a, (struct tec_part){0, 1});
    if (*a.stop != 1)
        conform_fail(c, "no rows: stop is %d", *a.stop);
    conform_end(c);
}

void conform_next_token(struct conform *c)
{
    static const int edges[] = {1, 2, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129, 1000};
    next_token_nobody(c, c->ref);
    next_token_nobody(c, c->fast);
    for (int i = 0; i < 13; i++)
        next_token_shape(c, conform_int(1, 4), edges[i], i);
    for (int i = 0; i < conform_few(c, 60); i++)
        next_token_shape(c, conform_int(1, 9), conform_int(1, conform_int(1, 2000)), i);
    next_token_shape(c, 1, 257152, 1);
    next_token_shape(c, 8, 257152, 2);
}
