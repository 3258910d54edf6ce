/* tokenizer.c - queries of an open tokenizer: its size, kind, pieces, ids and special tokens. */
#include "base/text/tokenizer.h"

#include "base/text/parts.h"

int tec_tokenizer_size(const struct tec_tokenizer *t)
{
    return t->vocab.size;
}

const char *tec_tokenizer_kind(const struct tec_tokenizer *t)
{
    return t->kind;
}

uint64_t tec_tokenizer_identity(const struct tec_tokenizer *t)
{
    return t->identity;
}

int tec_tokenizer_id(const struct tec_tokenizer *t, const char *piece, size_t n)
{
    const struct tec_vocab_entry *e = tec_vocab_find(&t->vocab, piece, n);
    return e ? e->id : -1;
}

const char *tec_tokenizer_piece(const struct tec_tokenizer *t, int id, size_t *n)
{
    const struct tec_vocab_entry *e = tec_vocab_entry(&t->vocab, id);
    if (!e)
        return NULL;
    *n = e->text.n;
    return e->text.at;
}

bool tec_tokenizer_special(const struct tec_tokenizer *t, int id)
{
    return id >= 0 && id < t->vocab.size && t->vocab.special[id];
}

int tec_tokenizer_bos(const struct tec_tokenizer *t)
{
    return t->bos;
}

int tec_tokenizer_eos(const struct tec_tokenizer *t)
{
    return t->eos;
}

int tec_tokenizer_pad(const struct tec_tokenizer *t)
{
    return t->pad;
}

int tec_tokenizer_unk(const struct tec_tokenizer *t)
{
    return t->unk;
}

int tec_tokenizer_around(const struct tec_tokenizer *t, bool after, const int **ids)
{
    *ids = after ? t->after : t->before;
    return after ? t->n_after : t->n_before;
}
