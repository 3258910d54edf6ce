/* store_renew.c - makes the vectors of a file anew where another encoder has made them, counts
 * tokens where a tokenizer of other rules has, and leaves out keys and values where they are of
 * other weights or rules.
 *
 * Runs while a store is opened, before anybody else has it. Vectors of two encoders do not compare,
 * so every text gets one of the store's own encoder, or the file is not taken. Which texts are a
 * group stays: keys and values depend on texts alone, and are worth more than a better group. The
 * file is written anew, so that a crash leaves the old vectors under the old name or the new ones
 * under the new. Where all vectors were those of this encoder after all, only the name is new, and
 * a file that cannot be written may keep the old one: the next open looks again. Keys and values of
 * other weights or rules never may: what is appended behind them would be taken for theirs. */
#include "graph/memory/store_own.h"

#include <string.h>

/* Whether two vectors are of one encoder. The same one on another processor differs in the last
 * bits, an encoder that was trained on in far more. */
static bool alike(const float *a, const float *b, uint32_t dim)
{
    double apart = 0, length = 0;
    for (uint32_t i = 0; i < dim; i++) {
        double d = (double)a[i] - (double)b[i];
        apart += d * d;
        length += (double)b[i] * (double)b[i];
    }
    return apart <= 1e-6 * length;
}

static const char *path_of(const struct tec_store *s)
{
    return s->options.path ? s->options.path : s->options.begins;
}

static bool is_own(const struct tec_store *s)
{
    const struct tec_log_encoder *is = &s->options.key.encoder;
    return memcmp(s->was.id, is->id, sizeof is->id) == 0 && s->was_dim == s->options.key.dim;
}

static void say(const struct tec_store *s, const struct tec_store_vectors *what)
{
    if (s->options.vectors)
        s->options.vectors(s->options.user, what);
}

static enum tec_status renew(struct tec_store *s, uint32_t segment, float *vector,
                             uint32_t *changed, struct tec_error *err)
{
    const struct tec_store_segment *u = &s->segments[segment];
    uint32_t dim = s->options.key.dim;
    enum tec_status status = s->options.embed(s->options.user, u->text, u->text_bytes, vector, err);
    if (status == TEC_OK && s->was_dim == dim &&
        alike(vector, tec_groups_embedding(s->groups, segment), dim))
        return TEC_OK;
    ++*changed;
    if (status == TEC_OK)
        status = tec_groups_embed(s->groups, segment, vector, err);
    return tec_context(err, status, "%s: a vector of segment '%.60s'", path_of(s), u->id);
}

static enum tec_status renew_all(struct tec_store *s, uint32_t *changed, struct tec_error *err)
{
    float *vector = tec_heap_get(s->heap, s->options.key.dim * sizeof *vector);
    enum tec_status status =
        vector ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "memory: no room for a vector");
    for (uint32_t i = 0; status == TEC_OK && i < s->options.max_segments; i++)
        if (s->segments[i].id)
            status = renew(s, i, vector, changed, err);
    tec_heap_put(s->heap, vector);
    return status;
}

/* KV of other weights leaves its segments, which have none then. Returns of how many. */
static uint32_t drop_kv(struct tec_store *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->options.max_segments; i++)
        if (s->segments[i].id && s->segments[i].kv) {
            tec_store_kv_leave(s, &s->segments[i]);
            n++;
        }
    return n;
}

static enum tec_status count_one(struct tec_store *s, uint32_t segment, uint32_t *changed,
                                 struct tec_error *err)
{
    struct tec_store_segment *u = &s->segments[segment];
    uint32_t n = 0;
    enum tec_status status = s->options.count(s->options.user, u->text, u->text_bytes, &n, err);
    if (status == TEC_OK && (n < 1 || tec_log_piece_bytes(&s->options.key, n) > TEC_LOG_MAX_PIECE))
        status = tec_fail(err, TEC_INVALID, "%u tokens, which no segment has", n);
    if (status != TEC_OK)
        return tec_context(err, status, "%s: the tokens of segment '%.60s'", path_of(s), u->id);
    *changed += n != u->tokens;
    u->tokens = n;
    return tec_groups_count(s->groups, segment, n, err);
}

/* How many tokens the texts have is this tokenizer's. */
static enum tec_status count_all(struct tec_store *s, uint32_t *changed, struct tec_error *err)
{
    bool counts = s->options.count && (s->other_rules || !s->options.path);
    for (uint32_t i = 0; counts && i < s->options.max_segments; i++)
        if (s->segments[i].id)
            TEC_TRY(count_one(s, i, changed, err));
    return TEC_OK;
}

/* `needed`: wider vectors may take the room of KV, which can be computed again. */
static enum tec_status write_anew(struct tec_store *s, bool needed, struct tec_error *why)
{
    pthread_mutex_lock(&s->lock);
    enum tec_status status = tec_store_compact_locked(s, why);
    if (status == TEC_NO_MEMORY && needed && s->options.log.max_bytes > 0)
        status = tec_store_make_room(s, 0, why);
    pthread_mutex_unlock(&s->lock);
    return status;
}

enum tec_status tec_store_renew(struct tec_store *s, struct tec_error *err)
{
    bool others = s->other_weights || s->other_rules;
    struct tec_store_vectors what = {
        .was = &s->was, .texts = s->counts.segments, .kv_stay = !others};
    struct tec_error why;
    uint32_t recounted = 0;
    bool own = !s->options.embed || is_own(s);
    TEC_TRY(count_all(s, &recounted, err));
    if (own && !others && !recounted)
        return TEC_OK;
    uint32_t dropped = others ? drop_kv(s) : 0;
    if (!own) {
        say(s, &what);
        TEC_TRY(renew_all(s, &what.changed, err));
    }
    bool needed = what.changed > 0 || s->was_dim != s->options.key.dim;
    enum tec_status status = write_anew(s, needed, &why);
    if (status != TEC_OK && (needed || others))
        return tec_fail(err, status, "%s: its %s, and it cannot be written anew: %s", path_of(s),
                        s->other_weights ? "keys and values are those of other weights or roundings"
                        : others         ? "tokens are those of a tokenizer of other rules"
                                         : "vectors are those of another encoder",
                        why.message);
    if (dropped && s->other_weights && s->options.weights)
        s->options.weights(s->options.user, dropped);
    if ((recounted || (dropped && !s->other_weights)) && s->options.counted)
        s->options.counted(s->options.user, what.texts, recounted, dropped);
    what.done = true;
    what.unwritten = status != TEC_OK ? why.message : NULL;
    if (!own && (s->log || what.changed > 0))
        say(s, &what);
    return TEC_OK;
}
