/* sentencepiece.c - reads tokenizer.model, the protobuf file of SentencePiece.
 *
 * Fields of ModelProto (sentencepiece_model.proto) that are read: 1 pieces {1 piece, 2 score, 3
 * type}, 2 trainer {3 model_type, 24 treat_whitespace_as_suffix, 35 byte_fallback, 44 unk_surface,
 * 45-48 unk, bos, eos, pad piece}, 3 normalizer {2 precompiled_charsmap, 3 add_dummy_prefix, 4
 * remove_extra_whitespaces, 5 escape_whitespaces}, 5 denormalizer {2}. */
#include "base/text/parts.h"
#include "base/text/proto.h"
#include "base/text/utf8.h"

#include <math.h>
#include <string.h>

struct reading {
    struct tec_tokenizer *t;
    struct tec_proto whole;
    uint64_t seed;
    size_t n_pieces;
    uint64_t model_type; /* 1 unigram, 2 bpe, 3 word, 4 char */
    bool byte_fallback;
    struct tec_text_span unk, bos, eos, pad, surface, charsmap;
    bool dummy, extra_removed, escaped, tail, denormalizer;
};

static struct tec_text_span span_of(const struct tec_proto_field *f)
{
    return (struct tec_text_span){(const char *)f->bytes, f->n};
}

static bool read_bytes(const struct tec_proto_field *f, uint32_t number, struct tec_text_span *out)
{
    if (f->number != number || f->wire != TEC_WIRE_BYTES)
        return false;
    *out = span_of(f);
    return true;
}

static bool read_bool(const struct tec_proto_field *f, uint32_t number, bool *out)
{
    if (f->number != number || f->wire != TEC_WIRE_VARINT)
        return false;
    *out = f->value != 0;
    return true;
}

static enum tec_status read_trainer(struct reading *r, struct tec_proto p, struct tec_error *err)
{
    struct tec_proto_field f;
    bool more;
    for (;;) {
        TEC_TRY(tec_proto_next(&p, &f, &more, err));
        if (!more)
            return TEC_OK;
        if (f.number == 3 && f.wire == TEC_WIRE_VARINT)
            r->model_type = f.value;
        (void)(read_bool(&f, 24, &r->tail) || read_bool(&f, 35, &r->byte_fallback) ||
               read_bytes(&f, 44, &r->surface) || read_bytes(&f, 45, &r->unk) ||
               read_bytes(&f, 46, &r->bos) || read_bytes(&f, 47, &r->eos) ||
               read_bytes(&f, 48, &r->pad));
    }
}

static enum tec_status read_normalizer(struct reading *r, struct tec_proto p, struct tec_error *err)
{
    struct tec_proto_field f;
    bool more;
    for (;;) {
        TEC_TRY(tec_proto_next(&p, &f, &more, err));
        if (!more)
            return TEC_OK;
        (void)(read_bytes(&f, 2, &r->charsmap) || read_bool(&f, 3, &r->dummy) ||
               read_bool(&f, 4, &r->extra_removed) || read_bool(&f, 5, &r->escaped));
    }
}

static enum tec_status read_denormalizer(struct reading *r, struct tec_proto p,
                                         struct tec_error *err)
{
    struct tec_proto_field f;
    struct tec_text_span map;
    bool more;
    for (;;) {
        TEC_TRY(tec_proto_next(&p, &f, &more, err));
        if (!more)
            return TEC_OK;
        if (read_bytes(&f, 2, &map))
            r->denormalizer = map.n > 0;
    }
}

/* First pass: read everything but the pieces, which are only counted. */
static enum tec_status read_settings(struct reading *r, struct tec_error *err)
{
    struct tec_proto p = r->whole;
    struct tec_proto_field f;
    bool more;
    for (;;) {
        TEC_TRY(tec_proto_next(&p, &f, &more, err));
        if (!more)
            return TEC_OK;
        if (f.wire != TEC_WIRE_BYTES)
            continue;
        r->n_pieces += f.number == 1;
        if (f.number == 2)
            TEC_TRY(read_trainer(r, tec_proto_enter(&p, &f), err));
        if (f.number == 3)
            TEC_TRY(read_normalizer(r, tec_proto_enter(&p, &f), err));
        if (f.number == 5)
            TEC_TRY(read_denormalizer(r, tec_proto_enter(&p, &f), err));
    }
}

static enum tec_status read_piece(struct tec_proto p, struct tec_vocab_entry *e,
                                  struct tec_error *err)
{
    struct tec_proto_field f;
    uint64_t type = TEC_PIECE_NORMAL;
    bool more;
    for (;;) {
        TEC_TRY(tec_proto_next(&p, &f, &more, err));
        if (!more)
            break;
        if (f.number == 3 && f.wire == TEC_WIRE_VARINT)
            type = f.value;
        if (f.number == 2 && f.wire == TEC_WIRE_32) {
            uint32_t bits = (uint32_t)f.value;
            float score;
            memcpy(&score, &bits, sizeof score);
            e->score = (double)score;
        }
        (void)read_bytes(&f, 1, &e->text);
    }
    if (type < TEC_PIECE_NORMAL || type > TEC_PIECE_BYTE)
        return tec_fail(err, TEC_MALFORMED, "piece %d has unknown type %llu", e->id,
                        (unsigned long long)type);
    e->type = (unsigned char)type;
    if (isnan(e->score))
        return tec_fail(err, TEC_MALFORMED, "piece %d: its score is not a number", e->id);
    if (e->text.n &&
        (tec_utf8_check(e->text.at, e->text.n) != e->text.n || memchr(e->text.at, '\0', e->text.n)))
        return tec_fail(err, TEC_MALFORMED, "piece %d is not UTF-8 text", e->id);
    return TEC_OK;
}

static enum tec_status add_piece(struct reading *r, struct tec_vocab_entry e, struct tec_error *err)
{
    struct tec_tokenizer *t = r->t;
    int byte = tec_vocab_byte(e.text.at, e.text.n);
    if (e.type == TEC_PIECE_BYTE && (byte < 0 || !r->byte_fallback))
        return tec_fail(err, TEC_MALFORMED, "byte piece %d '%.*s' %s", e.id,
                        (int)(e.text.n > 40 ? 40 : e.text.n), e.text.at,
                        byte < 0 ? "is not spelt <0xNN>" : "without byte_fallback");
    if (e.type == TEC_PIECE_UNKNOWN && t->bpe.unk >= 0)
        return tec_fail(err, TEC_MALFORMED, "pieces %d and %d are both of type unknown", t->bpe.unk,
                        e.id);
    e.text.at = tec_arena_strndup(&t->arena, e.text.at ? e.text.at : "", e.text.n);
    if (!e.text.at)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for piece %d", e.id);
    TEC_TRY(tec_vocab_add(&t->vocab, e, err));
    if (e.type == TEC_PIECE_BYTE)
        t->bpe.byte_id[byte] = e.id;
    if (e.type == TEC_PIECE_UNKNOWN)
        t->bpe.unk = e.id;
    t->bpe.unused |= e.type == TEC_PIECE_UNUSED;
    t->vocab.special[e.id] = e.type == TEC_PIECE_CONTROL;
    return TEC_OK;
}

static enum tec_status read_pieces(struct reading *r, struct tec_error *err)
{
    struct tec_proto p = r->whole;
    struct tec_proto_field f;
    bool more;
    for (int id = 0;;) {
        TEC_TRY(tec_proto_next(&p, &f, &more, err));
        if (!more)
            return TEC_OK;
        if (f.number != 1 || f.wire != TEC_WIRE_BYTES)
            continue;
        struct tec_vocab_entry e = {.id = id++};
        TEC_TRY(read_piece(tec_proto_enter(&p, &f), &e, err));
        TEC_TRY(add_piece(r, e, err));
    }
}

static enum tec_status check_settings(const struct reading *r, struct tec_error *err)
{
    static const char *const names[] = {"", "unigram", "bpe", "word", "char"};
    if (r->n_pieces == 0)
        return tec_fail(err, TEC_MALFORMED, "not a SentencePiece model: no pieces");
    if (r->model_type == 3 || r->model_type == 4)
        return tec_fail(err, TEC_UNSUPPORTED, "SentencePiece model type %s; known are unigram, bpe",
                        names[r->model_type]);
    if (r->model_type < 1 || r->model_type > 4)
        return tec_fail(err, TEC_MALFORMED, "unknown SentencePiece model type %llu",
                        (unsigned long long)r->model_type);
    if (r->denormalizer)
        return tec_fail(err, TEC_UNSUPPORTED, "the model has a denormalizer map");
    if (r->surface.n > TEC_PIECE_BYTES ||
        tec_utf8_check(r->surface.at, r->surface.n) != r->surface.n)
        return tec_fail(err, TEC_MALFORMED, "unk_surface of %zu bytes is no text", r->surface.n);
    return TEC_OK;
}

static enum tec_status check_pieces(const struct reading *r, struct tec_error *err)
{
    const struct tec_bpe *bpe = &r->t->bpe;
    for (int byte = 0; r->byte_fallback && byte < 256; byte++)
        if (bpe->byte_id[byte] < 0)
            return tec_fail(err, TEC_MALFORMED, "byte_fallback, but piece <0x%02X> is missing",
                            (unsigned)byte);
    if (!r->byte_fallback && bpe->unk < 0)
        return tec_fail(err, TEC_MALFORMED, "no piece of type unknown");
    return TEC_OK;
}

/* Index the entries whose type is in the set of bits `types` by their text. */
static enum tec_status index_pieces(struct tec_tokenizer *t, unsigned types, struct tec_prefix *out,
                                    struct tec_error *err)
{
    int n = 0;
    struct tec_prefix_key *keys = TEC_NEW(&t->arena, (size_t)t->vocab.n, struct tec_prefix_key);
    for (int i = 0; keys && i < t->vocab.n; i++)
        if (types >> t->vocab.entries[i].type & 1)
            keys[n++] = (struct tec_prefix_key){t->vocab.entries[i].text, i};
    if (!keys || !tec_trie_init(out, keys, n, &t->arena))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an index of pieces");
    return TEC_OK;
}

static void set_steps(struct reading *r)
{
    struct tec_tokenizer *t = r->t;
    struct tec_normal *step = &t->normal[0];
    t->n_normal = 1;
    step->kind = TEC_NORMAL_MODEL;
    step->dummy = r->dummy;
    step->extra_removed = r->extra_removed;
    step->escaped = r->escaped;
    step->tail = r->tail;
    step->kept = t->user.n ? &t->user : NULL;
    t->decode = (struct tec_decode){.kind = TEC_DECODE_MODEL,
                                    .to = r->surface,
                                    .strip = r->dummy || r->extra_removed,
                                    .strip_all = r->extra_removed};
}

static int id_of_type(const struct tec_vocab *v, struct tec_text_span name,
                      enum tec_piece_type type)
{
    const struct tec_vocab_entry *e = tec_vocab_find(v, name.at, name.n);
    return e && e->type == type ? e->id : -1;
}

static enum tec_status set_unigram(struct reading *r, struct tec_error *err)
{
    struct tec_tokenizer *t = r->t;
    struct tec_unigram *u = &t->unigram;
    bool any = false;
    t->model = TEC_MODEL_UNIGRAM;
    t->kind = "unigram (sentencepiece)";
    *u = (struct tec_unigram){.vocab = &t->vocab, .single = true, .unk = t->bpe.unk};
    u->byte_fallback = r->byte_fallback;
    memcpy(u->byte_id, t->bpe.byte_id, sizeof u->byte_id);
    for (int i = 0; i < t->vocab.n; i++) {
        const struct tec_vocab_entry *e = &t->vocab.entries[i];
        if (e->type != TEC_PIECE_NORMAL)
            continue;
        u->lowest = !any || e->score < u->lowest ? e->score : u->lowest;
        any = true;
    }
    return index_pieces(t, 1U << TEC_PIECE_NORMAL | 1U << TEC_PIECE_USER | 1U << TEC_PIECE_UNUSED,
                        &u->pieces, err);
}

static enum tec_status set_bpe(struct reading *r, struct tec_error *err)
{
    struct tec_tokenizer *t = r->t;
    t->model = TEC_MODEL_BPE;
    t->kind = "bpe (sentencepiece)";
    t->bpe.vocab = &t->vocab;
    t->bpe.byte_fallback = r->byte_fallback;
    t->bpe.user = t->user.n ? &t->user : NULL;
    t->bpe.ranks = tec_bpe_ranks(&t->vocab, &t->arena);
    if (!t->bpe.ranks)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to order %d pieces", t->vocab.n);
    return TEC_OK;
}

enum tec_status tec_tokenizer_read_model(struct tec_tokenizer *t, const void *bytes, size_t n,
                                         uint64_t seed, struct tec_error *err)
{
    const unsigned char *from = bytes;
    struct reading r = {.t = t,
                        .whole = {from, from, from + n},
                        .seed = seed,
                        .model_type = 1,
                        .unk = {"<unk>", 5},
                        .bos = {"<s>", 3},
                        .eos = {"</s>", 4},
                        .pad = {"<pad>", 5},
                        .surface = {" \xE2\x81\x87 ", 5},
                        .dummy = true,
                        .extra_removed = true,
                        .escaped = true};
    t->bpe.unk = -1;
    memset(t->bpe.byte_id, -1, sizeof t->bpe.byte_id);
    TEC_TRY(read_settings(&r, err));
    TEC_TRY(check_settings(&r, err));
    TEC_TRY(tec_vocab_init(&t->vocab, r.n_pieces, (int64_t)r.n_pieces - 1, seed, &t->arena, err));
    TEC_TRY(read_pieces(&r, err));
    TEC_TRY(check_pieces(&r, err));
    TEC_TRY(index_pieces(t, 1U << TEC_PIECE_USER, &t->user, err));
    const char *map =
        tec_arena_strndup(&t->arena, r.charsmap.at ? r.charsmap.at : "", r.charsmap.n);
    r.surface.at = tec_arena_strndup(&t->arena, r.surface.at, r.surface.n);
    if (!map || !r.surface.at)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the normalisation map");
    set_steps(&r);
    TEC_TRY(tec_charsmap_open(&t->normal[0].map, map, r.charsmap.n, err));
    t->unk = id_of_type(&t->vocab, r.unk, TEC_PIECE_UNKNOWN);
    t->bos = id_of_type(&t->vocab, r.bos, TEC_PIECE_CONTROL);
    t->eos = id_of_type(&t->vocab, r.eos, TEC_PIECE_CONTROL);
    t->pad = id_of_type(&t->vocab, r.pad, TEC_PIECE_CONTROL);
    return r.model_type == 2 ? set_bpe(&r, err) : set_unigram(&r, err);
}
