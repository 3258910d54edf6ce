/* wordpiece.c - WordPiece encoding of one word: the longest piece first, from left to right.
 *
 * Inside a word pieces have a prefix ("##"). The index walk through that prefix is made once for
 * each word and continued from there for each of its inner pieces. */
#include "base/text/wordpiece.h"

#include "base/text/utf8.h"

static size_t count_characters(struct tec_text_span word, size_t most)
{
    size_t n = 0;
    for (size_t at = 0; at < word.n && n <= most; n++)
        at += tec_utf8_length(word.at[at]);
    return n;
}

/* Walk the index through the prefix of inner pieces; false if no piece has that prefix. */
static bool walk_inside(const struct tec_wordpiece *w, struct tec_walk *walk)
{
    *walk = tec_trie_start(&w->pieces);
    for (size_t i = 0; i < w->inside.n; i++)
        if (!tec_trie_step(&w->pieces, walk, w->inside.at[i]))
            return false;
    return true;
}

void tec_wordpiece_encode(const struct tec_wordpiece *w, struct tec_text_span word,
                          struct tec_ids *ids)
{
    struct tec_walk inside;
    struct tec_ids before = *ids;
    bool any = walk_inside(w, &inside);
    bool known = count_characters(word, (size_t)w->longest) <= (size_t)w->longest;
    for (size_t at = 0; known && at < word.n;) {
        struct tec_walk from = at ? inside : tec_trie_start(&w->pieces);
        const struct tec_prefix_key *key =
            at && !any ? NULL : tec_trie_longest(&w->pieces, from, word.at + at, word.n - at);
        known = key != NULL;
        if (known) {
            tec_ids_add(ids, key->value);
            at += key->text.n - (at ? w->inside.n : 0);
        }
    }
    if (known)
        return;
    *ids = before;
    tec_ids_add(ids, w->unk);
}
