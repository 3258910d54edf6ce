/* unigram.c - cuts a word into its likeliest pieces by dynamic programming (Viterbi).
 *
 * best[end] is the best way to cut the first `end` bytes. The pieces that start at a position are
 * found by one walk through the index of pieces, so the time is linear for pieces of bounded
 * length. For tokenizer.model sums are rounded to float, as SentencePiece does, because they decide
 * between ways that are nearly equal. */
#include "base/text/unigram.h"

#include "base/text/utf8.h"

#define UNKNOWN_PENALTY 10.0 /* below the lowest score of a piece, as in SentencePiece */

/* The best way to a position: its score, and the piece that ends there (its entry, -1 for
 * unknown). */
struct best {
    double score;
    size_t start;
    int entry;
    bool reached;
};

struct lattice {
    const struct tec_unigram *u;
    struct tec_text_span word;
    struct best *best; /* word.n + 1 of them */
};

static void offer(struct lattice *l, size_t start, size_t end, double score, int entry)
{
    struct best *b = &l->best[end];
    double sum = l->best[start].score + score;
    if (l->u->single)
        sum = (double)(float)sum; /* one rounding, as adding two floats gives */
    if (!b->reached || sum > b->score)
        *b = (struct best){sum, start, entry, true};
}

/* The score of a piece. That of a user-defined piece is above those of others, which are negative,
 * and grows with its bytes: what SentencePiece 0.2.3 is seen to do. */
static double score_of(const struct tec_vocab_entry *e)
{
    if (e->type != TEC_PIECE_USER)
        return e->score;
    return (double)(float)(0.1 * (double)(e->text.n - 1));
}

static void fill(struct lattice *l)
{
    const struct tec_unigram *u = l->u;
    for (size_t start = 0, bytes; start < l->word.n; start += bytes) {
        struct tec_walk walk = tec_trie_start(&u->pieces);
        bool whole = false;
        bytes = tec_utf8_length(l->word.at[start]);
        for (size_t at = start; at < l->word.n; at++) {
            if (!tec_trie_step(&u->pieces, &walk, l->word.at[at]))
                break;
            const struct tec_prefix_key *key = tec_trie_here(&u->pieces, &walk);
            const struct tec_vocab_entry *e = key ? &u->vocab->entries[key->value] : NULL;
            if (!e || e->type == TEC_PIECE_UNUSED)
                continue;
            offer(l, start, at + 1, score_of(e), key->value);
            whole |= walk.depth == bytes;
        }
        double unknown = u->single ? (double)((float)u->lowest - (float)UNKNOWN_PENALTY)
                                   : u->lowest - UNKNOWN_PENALTY;
        if (!whole)
            offer(l, start, start + bytes, unknown, -1);
    }
}

/* Reverse the links, so that best[start].start is the end of the piece that starts there. */
static void turn(struct lattice *l)
{
    size_t end = l->word.n, next = end;
    int entry = -1;
    for (;;) {
        struct best here = l->best[end];
        l->best[end].start = next;
        l->best[end].entry = entry;
        if (end == 0)
            return;
        next = end;
        entry = here.entry;
        end = here.start;
    }
}

static void emit(const struct lattice *l, struct tec_ids *ids)
{
    const struct tec_unigram *u = l->u;
    bool unknown = false;
    for (size_t at = 0; at < l->word.n; at = l->best[at].start) {
        int entry = l->best[at].entry;
        bool was = unknown;
        unknown = entry < 0 || u->vocab->entries[entry].id == u->unk;
        if (!unknown) {
            tec_ids_add(ids, u->vocab->entries[entry].id);
            continue;
        }
        for (size_t i = at; u->byte_fallback && i < l->best[at].start; i++)
            tec_ids_add(ids, u->byte_id[(unsigned char)l->word.at[i]]);
        if (!u->byte_fallback && !was)
            tec_ids_add(ids, u->unk);
    }
}

enum tec_status tec_unigram_encode(const struct tec_unigram *u, struct tec_text_span word,
                                   struct tec_ids *ids, struct tec_arena *scratch,
                                   struct tec_error *err)
{
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    struct lattice l = {u, word, TEC_NEW(scratch, word.n + 1, struct best)};
    if (!l.best)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to encode %zu bytes", word.n);
    l.best[0].reached = true;
    fill(&l);
    turn(&l);
    bool stuck = u->unk < 0 && !u->byte_fallback;
    for (size_t at = 0; stuck && at < word.n; at = l.best[at].start)
        if (l.best[at].entry < 0) {
            tec_arena_rewind(scratch, mark);
            return tec_fail(err, TEC_MALFORMED,
                            "text has a character without a piece, and the tokenizer no unknown");
        }
    emit(&l, ids);
    tec_arena_rewind(scratch, mark);
    return TEC_OK;
}
