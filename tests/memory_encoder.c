/* memory_encoder.c - tests of a store's file and the encoder of its vectors: a file of format 1, of
 * another encoder, of another width, of several; of other weights; of other rules of a tokenizer;
 * what cannot be written anew; what is refused. */
#include "graph/memory/log_own.h"
#include "tests/box.h"
#include "tests/store_inside.h"

#include <stdlib.h>

enum {
    LAYERS = 2,
    ROW = 16,
    DIM = 4,
    WIDER = 6,
    WIDEST = 60,
    TOKENS = 3,
    PIECE = 2 * TOKENS * ROW,
    MOST = 16384
};
#define FIRST TECTUM_SOURCE "/tests/fixtures/memory/version_1.memory"

static struct tec_heap heap;
static struct tec_error err;
static struct box box;
static char path[128];

/* What a store asked for and said while it was opened. */
static struct heard {
    int asked, told;
    struct tec_store_vectors last;
    struct tec_log_encoder was;
    bool unwritten;
    int retrained;    /* times that weights were others */
    uint32_t dropped; /* segments that lost KV then */
    const char *bad;  /* a text that has no vector */
    int counted;      /* times that tokens were others' */
    uint32_t texts, recounted, unkept;
    uint32_t longer; /* what a text has of tokens beyond its own */
} heard;

/* The encoder of number n counts the characters of a text by what they are, divided by n. */
static void vector_of(const char *text, size_t bytes, int n, int dim, float *out)
{
    for (int k = 0; k < dim; k++)
        out[k] = 0.0f;
    for (size_t i = 0; i < bytes; i++)
        out[(unsigned char)text[i] / n % dim] += 1.0f;
}

static enum tec_status embed(const char *text, size_t bytes, int n, int dim, float *out,
                             struct tec_error *e)
{
    heard.asked++;
    if (heard.bad && strcmp(text, heard.bad) == 0)
        return tec_fail(e, TEC_MALFORMED, "not UTF-8");
    vector_of(text, bytes, n, dim, out);
    return TEC_OK;
}

static enum tec_status embed_1(void *user, const char *text, size_t bytes, float *out,
                               struct tec_error *e)
{
    (void)user;
    return embed(text, bytes, 1, DIM, out, e);
}

static enum tec_status embed_5(void *user, const char *text, size_t bytes, float *out,
                               struct tec_error *e)
{
    (void)user;
    return embed(text, bytes, 5, DIM, out, e);
}

static enum tec_status embed_wider(void *user, const char *text, size_t bytes, float *out,
                                   struct tec_error *e)
{
    (void)user;
    return embed(text, bytes, 1, WIDER, out, e);
}

static enum tec_status embed_widest(void *user, const char *text, size_t bytes, float *out,
                                    struct tec_error *e)
{
    (void)user;
    return embed(text, bytes, 1, WIDEST, out, e);
}

static void on_vectors(void *user, const struct tec_store_vectors *what)
{
    (void)user;
    heard.told++;
    heard.last = *what;
    heard.was = *what->was;
    heard.unwritten = what->unwritten != NULL;
}

static void on_weights(void *user, uint32_t segments)
{
    (void)user;
    heard.retrained++;
    heard.dropped = segments;
}

/* A tokenizer of bytes, as the file has it, or of other rules. */
static enum tec_status count_bytes(void *user, const char *text, size_t bytes, uint32_t *tokens,
                                   struct tec_error *e)
{
    (void)user;
    if (heard.bad && strcmp(text, heard.bad) == 0)
        return tec_fail(e, TEC_MALFORMED, "not UTF-8");
    *tokens = (uint32_t)bytes + heard.longer;
    return TEC_OK;
}

static void on_counted(void *user, uint32_t texts, uint32_t changed, uint32_t dropped)
{
    (void)user;
    heard.counted++;
    heard.texts = texts;
    heard.recounted = changed;
    heard.unkept = dropped;
}

static struct tec_store_options options_of(uint64_t id, const char *name)
{
    struct tec_store_options o = {.path = path,
                                  .key = {.model = {1},
                                          .tokenizer = {2},
                                          .dtype = {3},
                                          .layers = LAYERS,
                                          .row_bytes = ROW,
                                          .dim = DIM,
                                          .encoder.id = {id}},
                                  .max_segments = 16,
                                  .threshold = 0.9,
                                  .stable_steps = 2,
                                  .ram_bytes = 1 << 20,
                                  .vectors = on_vectors,
                                  .weights = on_weights,
                                  .count = count_bytes,
                                  .counted = on_counted};
    snprintf(o.key.encoder.name, sizeof o.key.encoder.name, "%s", name);
    return o;
}

static struct tec_store_options first(void)
{
    struct tec_store_options o = options_of(11, "first");
    o.embed = embed_1;
    return o;
}

static struct tec_store_options fifth(void)
{
    struct tec_store_options o = options_of(55, "fifth");
    o.embed = embed_5;
    return o;
}

static enum tec_status try_open(struct tec_store **s, const struct tec_store_options *o)
{
    const char *bad = heard.bad;
    heard = (struct heard){.bad = bad, .longer = heard.longer};
    err = (struct tec_error){TEC_OK, ""};
    return tec_store_open(s, o, &heap, &err);
}

static struct tec_store *open_of(const struct tec_store_options *o)
{
    struct tec_store *s = NULL;
    enum tec_status status = try_open(&s, o);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    return s;
}

static size_t read_file(const char *from, unsigned char bytes[MOST])
{
    FILE *f = fopen(from, "rb");
    REQUIRE(f);
    size_t n = fread(bytes, 1, MOST, f);
    CHECK(fclose(f) == 0 && n < MOST);
    return n;
}

static void write_file(const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    REQUIRE(f);
    CHECK(fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* A copy of the file of format 1: "cup" and "mug" are a static group with its KV, "door" is alone
 * and has none. */
static size_t begin(unsigned char bytes[MOST])
{
    box_make(&box);
    snprintf(path, sizeof path, "%s/store", box.dir);
    heard = (struct heard){.bad = NULL};
    size_t n = read_file(FIRST, bytes);
    CHECK_INT(bytes[8], ==, 1);
    write_file(bytes, n);
    return n;
}

static void end(void)
{
    heard.bad = NULL;
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

static struct tec_store_segment_view view_of(struct tec_store *s, const char *id)
{
    struct tec_store_segment_view v = {.id = NULL};
    uint32_t at = 0;
    REQUIRE(store_find(s, id, &at) == TEC_OK);
    REQUIRE(tec_store_view(s, at, &v));
    return v;
}

/* KV of one of the group, as whoever wrote the file gave it. */
static void check_kv(struct tec_store *s, const char *id)
{
    uint32_t at = 0;
    struct tec_kv *kv = NULL;
    unsigned char piece[4096];
    REQUIRE(store_find(s, id, &at) == TEC_OK);
    REQUIRE(tec_store_pin(s, at, &kv, NULL) == TEC_OK);
    REQUIRE(tec_store_kv_piece_bytes(kv) <= sizeof piece);
    for (uint32_t l = 0; l < LAYERS; l++) {
        CHECK(tec_store_read(s, kv, l, piece, NULL) == TEC_OK);
        int wrong = 0;
        for (int i = 0; i < PIECE; i++)
            wrong += piece[i] != (unsigned char)(id[0] + 100 + (int)l * 7 + i);
        CHECK_INT(wrong, ==, 0);
    }
    tec_store_drop(s, kv);
}

/* All that the file of format 1 holds but vectors, keys and values. */
static void check_words(struct tec_store *s)
{
    CHECK_INT(tec_store_counts(s).segments, ==, 3);
    CHECK_INT(tec_store_counts(s).step, ==, 9);
    CHECK_INT(tec_store_counts(s).damages, ==, 0);
    CHECK(strcmp(view_of(s, "cup").text, "the cup is on the shelf") == 0);
    CHECK(strcmp(view_of(s, "mug").text, "the cup is in the shelf") == 0);
    CHECK(strcmp(view_of(s, "door").text, "zzzz is open") == 0);
    CHECK_INT(view_of(s, "door").version, ==, 2);
    CHECK(view_of(s, "cup").epoch == 6 && view_of(s, "mug").epoch == 6);
}

/* And those. */
static void check_texts(struct tec_store *s)
{
    check_words(s);
    CHECK(view_of(s, "cup").has_kv && view_of(s, "mug").has_kv && !view_of(s, "door").has_kv);
    check_kv(s, "cup");
    check_kv(s, "mug");
}

/* Every vector is that of the encoder. */
static void check_vectors(struct tec_store *s, int n, int dim)
{
    static const char *const ids[] = {"cup", "mug", "door"};
    for (int i = 0; i < 3; i++) {
        float want[WIDEST];
        uint32_t at = 0;
        REQUIRE(store_find(s, ids[i], &at) == TEC_OK);
        struct tec_store_segment_view v = view_of(s, ids[i]);
        vector_of(v.text, v.text_bytes, n, dim, want);
        CHECK(memcmp(tec_groups_embedding(s->groups, at), want, (size_t)dim * sizeof *want) == 0);
    }
}

/* What the file says of itself. */
static struct tec_log_key key_in_file(uint32_t format)
{
    struct tec_log_key key = {.layers = 0};
    uint32_t is = 0;
    CHECK(tec_log_look(path, &key, &is, &err) == TEC_OK);
    CHECK_INT(is, ==, format);
    return key;
}

TEST(a_file_of_format_1_is_read_and_keeps_its_bytes)
{
    static unsigned char before[MOST], after[MOST];
    size_t n = begin(before);
    struct tec_store_options o = options_of(0, "");
    struct tec_store *s = open_of(&o);
    check_texts(s);
    check_vectors(s, 1, DIM);
    tec_store_close(s);
    CHECK(read_file(path, after) == n && memcmp(before, after, n) == 0);
    CHECK(key_in_file(1).encoder.id[0] == 0 && heard.told == 0);
    end();
}

TEST(vectors_of_an_encoder_that_is_not_named_are_looked_at)
{
    static unsigned char bytes[MOST];
    begin(bytes);
    struct tec_store_options o = first();
    struct tec_store *s = open_of(&o);
    CHECK(heard.asked == 3 && heard.told == 2 && heard.last.done);
    CHECK(heard.last.texts == 3 && heard.last.changed == 0 && !heard.unwritten);
    CHECK(heard.was.id[0] == 0 && heard.was.name[0] == '\0');
    check_texts(s);
    check_vectors(s, 1, DIM);
    tec_store_close(s);
    CHECK(key_in_file(2).encoder.id[0] == 11 && strcmp(key_in_file(2).encoder.name, "first") == 0);
    s = open_of(&o); /* it says whose they are: nothing is asked any more */
    CHECK(heard.asked == 0 && heard.told == 0);
    check_texts(s);
    tec_store_close(s);
    end();
}

TEST(vectors_of_another_encoder_are_made_anew_and_keys_and_values_stay)
{
    static unsigned char bytes[MOST];
    begin(bytes);
    struct tec_store_options o = first(), other = fifth();
    tec_store_close(open_of(&o));
    struct tec_store *s = open_of(&other);
    CHECK(heard.asked == 3 && heard.told == 2 && heard.last.changed == 3);
    CHECK(heard.was.id[0] == 11 && strcmp(heard.was.name, "first") == 0);
    check_texts(s);
    check_vectors(s, 5, DIM);
    tec_store_close(s);
    CHECK_INT(key_in_file(2).encoder.id[0], ==, 55);
    s = open_of(&other);
    CHECK(heard.asked == 0);
    check_vectors(s, 5, DIM);
    float like_door[DIM];
    uint32_t found[16], n = 0;
    vector_of("zzzz is open", 12, 5, DIM, like_door);
    CHECK(tec_store_query(s, like_door, 1, found, &n, NULL) == TEC_OK && n == 1);
    CHECK(strcmp(view_of(s, "door").id, s->segments[found[0]].id) == 0);
    tec_store_close(s);
    end();
}

TEST(vectors_of_another_width_are_made_anew)
{
    static unsigned char bytes[MOST];
    begin(bytes);
    struct tec_store_options o = options_of(66, "wider"), back = first();
    o.embed = embed_wider;
    o.key.dim = WIDER;
    struct tec_store *s = open_of(&o);
    CHECK_INT(heard.last.changed, ==, 3);
    check_texts(s);
    check_vectors(s, 1, WIDER);
    struct tec_groups_change change;
    float v[WIDER];
    uint32_t at = 0;
    vector_of("a spoon", 7, 1, WIDER, v);
    CHECK(tec_store_put(s, "spoon", "a spoon", 7, TOKENS, v, &at, &change, NULL) == TEC_OK);
    CHECK(tec_store_remove(s, "spoon", &change, NULL) == TEC_OK);
    tec_store_close(s);
    CHECK_INT(key_in_file(2).dim, ==, WIDER);
    s = open_of(&back);
    check_texts(s);
    check_vectors(s, 1, DIM);
    tec_store_close(s);
    end();
}

/* Keys and values can be computed again, texts cannot. */
TEST(of_a_full_file_whose_vectors_grow_keys_and_values_leave)
{
    static unsigned char before[MOST], after[MOST];
    begin(before);
    struct tec_store_options o = first(), wide = options_of(77, "widest"), back = first();
    struct tec_store *s = NULL;
    tec_store_close(open_of(&o));
    size_t n = read_file(path, before);
    wide.embed = embed_widest;
    wide.key.dim = WIDEST;
    wide.log.max_bytes = 5000; /* less than texts and vectors */
    CHECK_INT(try_open(&s, &wide), ==, TEC_NO_MEMORY);
    CHECK(strstr(err.message, path) && strstr(err.message, "cannot be written anew"));
    CHECK(read_file(path, after) == n && memcmp(before, after, n) == 0);
    wide.log.max_bytes = (int64_t)n;
    s = open_of(&wide);
    CHECK(heard.last.changed == 3 && heard.last.done && !heard.unwritten);
    CHECK_INT(tec_store_counts(s).segments, ==, 3);
    CHECK(!view_of(s, "cup").has_kv || !view_of(s, "mug").has_kv);
    check_vectors(s, 1, WIDEST);
    tec_store_close(s);
    CHECK(read_file(path, after) <= n);
    wide.log.max_bytes = 0;
    s = open_of(&wide); /* and no text has left it */
    CHECK(heard.asked == 0 && tec_store_counts(s).segments == 3);
    CHECK(strcmp(view_of(s, "door").text, "zzzz is open") == 0);
    check_vectors(s, 1, WIDEST);
    tec_store_close(s);
    tec_store_close(open_of(&back));
    end();
}

TEST(of_a_file_of_several_encoders_those_of_others_are_made_anew)
{
    static unsigned char bytes[MOST];
    begin(bytes);
    struct tec_store_options unnamed = options_of(0, ""), o = first();
    struct tec_store *s = open_of(&unnamed);
    struct tec_groups_change change;
    float v[DIM];
    uint32_t at = 0;
    vector_of("zzzz is shut", 12, 5, DIM, v);
    CHECK(tec_store_put(s, "door", "zzzz is shut", 12, TOKENS, v, &at, &change, NULL) == TEC_OK);
    tec_store_close(s);
    s = open_of(&o);
    CHECK_INT(heard.last.changed, ==, 1);
    check_vectors(s, 1, DIM);
    tec_store_close(s);
    end();
}

TEST(who_makes_no_vectors_is_refused_the_file_of_another_encoder)
{
    static unsigned char before[MOST], after[MOST];
    begin(before);
    struct tec_store_options o = first(), other = options_of(55, "fifth");
    struct tec_store *s = NULL;
    tec_store_close(open_of(&o));
    size_t n = read_file(path, before);
    CHECK_INT(try_open(&s, &other), ==, TEC_INVALID);
    CHECK(strstr(err.message, path) && strstr(err.message, "'first' (000000000000000b)") &&
          strstr(err.message, "'fifth' (0000000000000037)"));
    other.key.encoder.id[0] = 11;
    other.key.dim = WIDER;
    CHECK_INT(try_open(&s, &other), ==, TEC_INVALID);
    CHECK(strstr(err.message, "embeddings of 4") != NULL);
    CHECK(read_file(path, after) == n && memcmp(before, after, n) == 0);
    end();
}

TEST(a_text_that_has_no_vector_is_named_and_the_file_stays)
{
    static unsigned char before[MOST], after[MOST];
    size_t n = begin(before);
    struct tec_store_options o = fifth();
    struct tec_store *s = NULL;
    heard.bad = "the cup is in the shelf";
    CHECK_INT(try_open(&s, &o), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, path) && strstr(err.message, "segment 'mug': not UTF-8"));
    CHECK(read_file(path, after) == n && memcmp(before, after, n) == 0);
    end();
}

TEST(a_file_that_cannot_be_written_anew_keeps_its_encoder)
{
    static unsigned char before[MOST], after[MOST];
    size_t n = begin(before);
    struct tec_store_options o = first(), other = fifth();
    struct tec_store *s = NULL;
    o.log.fail_after = other.log.fail_after = TEC_LOG_HEADER + 256;
    CHECK_INT(try_open(&s, &other), ==, TEC_IO);
    CHECK(strstr(err.message, "another encoder") && strstr(err.message, "No space"));
    CHECK(read_file(path, after) == n && memcmp(before, after, n) == 0);
    s = open_of(&o);
    CHECK(heard.told == 2 && heard.last.changed == 0 && heard.unwritten);
    check_texts(s);
    tec_store_close(s);
    CHECK_INT(key_in_file(1).encoder.id[0], ==, 0);
    end();
}

/* Options of the model that was trained on: its weights are others. */
static struct tec_store_options trained(struct tec_store_options o)
{
    o.key.model[1] = 77;
    return o;
}

static void check_trained(struct tec_store *s)
{
    check_words(s);
    CHECK(!view_of(s, "cup").has_kv && !view_of(s, "mug").has_kv);
}

TEST(keys_and_values_of_other_weights_are_left_out_and_texts_stay)
{
    static unsigned char bytes[MOST], after[MOST];
    size_t n = begin(bytes);
    struct tec_store_options unnamed = options_of(0, ""), with = trained(unnamed);
    struct tec_store_options named = trained(first());
    struct tec_store *s = open_of(&with); /* of format 1, and nobody makes vectors */
    CHECK(heard.retrained == 1 && heard.dropped == 2 && heard.told == 0);
    check_trained(s);
    check_vectors(s, 1, DIM);
    tec_store_close(s);
    CHECK(key_in_file(2).model[0] == 1 && key_in_file(2).model[1] == 77);
    s = open_of(&with); /* it names these weights: no more is said */
    CHECK_INT(heard.retrained, ==, 0);
    check_trained(s);
    tec_store_close(s);
    CHECK(read_file(path, after) < n);
    s = open_of(&unnamed); /* back again: there is nothing to leave out, but it is told apart */
    CHECK(heard.retrained == 0);
    check_trained(s);
    tec_store_close(s);
    CHECK_INT(key_in_file(2).model[1], ==, 0);
    write_file(bytes, n);
    s = open_of(&named); /* vectors and weights at once */
    CHECK(heard.retrained == 1 && heard.dropped == 2 && heard.told == 2);
    CHECK(heard.last.changed == 0 && !heard.last.kv_stay);
    check_trained(s);
    tec_store_close(s);
    CHECK(key_in_file(2).model[1] == 77 && key_in_file(2).encoder.id[0] == 11);
    end();
}

TEST(keys_and_values_of_new_weights_are_kept_with_them)
{
    static unsigned char bytes[MOST], given[LAYERS][PIECE];
    const void *pieces[LAYERS];
    begin(bytes);
    struct tec_store_options o = first(), with = trained(first());
    tec_store_close(open_of(&o));
    struct tec_store *s = open_of(&with);
    CHECK(heard.retrained == 1 && heard.told == 0); /* of format 2 */
    for (uint32_t l = 0; l < LAYERS; l++) {
        pieces[l] = given[l];
        for (int i = 0; i < PIECE; i++)
            given[l][i] = (unsigned char)('c' + 100 + (int)l * 7 + i);
    }
    struct tec_store_segment_view v = view_of(s, "cup");
    uint32_t at = 0;
    REQUIRE(store_find(s, "cup", &at) == TEC_OK);
    CHECK(tec_store_put_kv(s, at, v.version, v.epoch, pieces, NULL) == TEC_OK);
    tec_store_close(s);
    s = open_of(&with);
    CHECK(heard.retrained == 0 && view_of(s, "cup").has_kv && !view_of(s, "mug").has_kv);
    check_kv(s, "cup");
    tec_store_close(s);
    s = open_of(&o);
    CHECK(heard.retrained == 1 && heard.dropped == 1);
    check_trained(s);
    tec_store_close(s);
    end();
}

TEST(a_file_of_other_weights_that_cannot_be_written_anew_is_refused)
{
    static unsigned char before[MOST], after[MOST];
    size_t n = begin(before);
    struct tec_store_options o = trained(first());
    struct tec_store *s = NULL;
    o.log.fail_after = TEC_LOG_HEADER + 256;
    CHECK_INT(try_open(&s, &o), ==, TEC_IO);
    CHECK(strstr(err.message, "of other weights or roundings, and it cannot be written anew") !=
          NULL);
    CHECK(heard.retrained == 0 && read_file(path, after) == n && memcmp(before, after, n) == 0);
    o.key.model[0] = 2; /* another model is refused as it was */
    CHECK_INT(try_open(&s, &o), ==, TEC_INVALID);
    CHECK(strstr(err.message, "another model (") != NULL);
    CHECK(read_file(path, after) == n && memcmp(before, after, n) == 0);
    end();
}

/* A store without a file that begins with one. */
static struct tec_store_options beginning(const char *file)
{
    struct tec_store_options o = first();
    o.path = NULL;
    o.begins = file;
    o.count = NULL; /* the file's numbers are those of its own tokenizer */
    return o;
}

TEST(a_store_begins_with_what_another_one_remembers)
{
    static unsigned char before[MOST], after[MOST];
    char saved[140];
    size_t n = begin(before);
    struct tec_store_options o = first(), again = beginning(saved), of_file = beginning(path);
    struct tec_groups_change change;
    snprintf(saved, sizeof saved, "%s.saved", path);
    struct tec_store *s = open_of(&of_file); /* of format 1, too; it stays as it is */
    CHECK(read_file(path, after) == n && memcmp(before, after, n) == 0);
    struct tec_store_state is = tec_store_state(s);
    CHECK(is.segments == 3 && is.step == 9 && (is.hash[0] || is.hash[1]));
    CHECK(!view_of(s, "cup").has_kv && view_of(s, "cup").epoch != 0);
    check_vectors(s, 1, DIM);
    CHECK(tec_store_save(s, saved, &err) == TEC_OK);
    tec_store_close(s);
    tec_store_close(open_of(&o)); /* the file itself, and what was saved of it, are in one state */
    struct tec_store *a = open_of(&o), *b = open_of(&again);
    struct tec_store_state of_a = tec_store_state(a), of_b = tec_store_state(b);
    CHECK(memcmp(of_a.hash, is.hash, sizeof is.hash) == 0);
    CHECK(memcmp(of_b.hash, is.hash, sizeof is.hash) == 0);
    CHECK(tec_store_step(b, 10, &change, NULL) == TEC_OK); /* time is a part of it */
    of_b = tec_store_state(b);
    CHECK(memcmp(of_b.hash, is.hash, sizeof is.hash) != 0);
    CHECK(tec_store_remove(a, "door", &change, NULL) == TEC_OK);
    of_a = tec_store_state(a);
    CHECK(of_a.segments == 2 && memcmp(of_a.hash, is.hash, sizeof is.hash) != 0);
    tec_store_close(a);
    tec_store_close(b);
    end();
}

TEST(what_a_store_is_to_begin_with_is_not_believed)
{
    static unsigned char bytes[MOST];
    struct tec_store *s = NULL;
    size_t n = begin(bytes);
    struct tec_store_options o = beginning(path), other = beginning("/no/such");
    CHECK_INT(try_open(&s, &other), ==, TEC_NOT_FOUND);
    for (size_t at = 0; at < n;
         at += at < 96 ? 1 : 61) { /* any damage: what is left, or an error */
        bytes[at] ^= 16;
        write_file(bytes, n);
        bytes[at] ^= 16;
        enum tec_status status = try_open(&s, &o);
        CHECK(at < 96 ? status == TEC_MALFORMED : status == TEC_OK);
        tec_store_close(status == TEC_OK ? s : NULL);
    }
    for (size_t cut = 0; cut < n; cut += 997) {
        write_file(bytes, cut);
        enum tec_status status = try_open(&s, &o);
        CHECK(cut < TEC_LOG_HEADER ? status == TEC_MALFORMED : status == TEC_OK);
        tec_store_close(status == TEC_OK ? s : NULL);
    }
    end();
}

static void forge(unsigned char *bytes, size_t n, const struct tec_log_header *h)
{
    struct tec_log_header with = *h;
    with.sum = XXH3_64bits(&with, offsetof(struct tec_log_header, sum));
    memcpy(bytes, &with, sizeof with);
    write_file(bytes, n);
}

TEST(a_first_page_that_says_what_cannot_be_is_refused)
{
    static unsigned char bytes[MOST];
    struct tec_log_header h, other;
    struct tec_store *s = NULL;
    begin(bytes);
    struct tec_store_options o = first();
    tec_store_close(open_of(&o));
    size_t n = read_file(path, bytes);
    memcpy(&h, bytes, sizeof h);
    for (size_t i = 0; i < sizeof h; i++) { /* any byte of it */
        bytes[i] ^= 4;
        write_file(bytes, n);
        CHECK_INT(try_open(&s, &o), ==, TEC_MALFORMED);
        bytes[i] ^= 4;
    }
    other = h;
    memset(other.key.encoder.name, 'x', sizeof other.key.encoder.name);
    forge(bytes, n, &other);
    CHECK_INT(try_open(&s, &o), ==, TEC_MALFORMED);
    for (uint32_t dim = 0; dim <= 4097; dim += 4097) {
        other = h;
        other.key.dim = dim;
        forge(bytes, n, &other);
        CHECK_INT(try_open(&s, &o), ==, TEC_INVALID);
    }
    other = h;
    other.format = 3;
    forge(bytes, n, &other);
    CHECK_INT(try_open(&s, &o), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "no store file of format 1 or 2") != NULL);
    end();
}

TAP_MAIN

/* Options of a tokenizer with the same pieces and other rules. */
static struct tec_store_options other_rules(void)
{
    struct tec_store_options o = first();
    o.key.tokenizer[1] = 99;
    return o;
}

static uint32_t tokens_of(struct tec_store *s, const char *id)
{
    return view_of(s, id).tokens;
}

TEST(tokens_of_another_tokenizers_rules_are_counted_anew)
{
    static unsigned char bytes[MOST], after[MOST];
    size_t n = begin(bytes);
    struct tec_store_options o = first(), with = other_rules();
    struct tec_store *s = open_of(&o);
    CHECK(heard.counted == 0); /* the same rules are believed */
    uint32_t cup = tokens_of(s, "cup"), texts = tec_store_counts(s).segments;
    tec_store_close(s);
    s = open_of(&with);
    CHECK(heard.counted == 1 && heard.texts == texts && heard.unkept == 2);
    CHECK_INT(heard.retrained, ==, 0);
    check_trained(s);
    struct tec_store_segment_view v = view_of(s, "cup");
    CHECK(v.tokens == v.text_bytes);
    CHECK_INT(heard.recounted, ==, cup == v.text_bytes ? 0 : texts);
    tec_store_close(s);
    CHECK_INT(key_in_file(2).tokenizer[1], ==, 99);
    heard.longer = 3; /* the file names its rules: its numbers are believed */
    s = open_of(&with);
    CHECK(heard.counted == 0 && tokens_of(s, "cup") == v.text_bytes);
    tec_store_close(s);
    o.count = NULL; /* who cannot count takes them as they are */
    s = open_of(&o);
    CHECK(tokens_of(s, "cup") == v.text_bytes && !view_of(s, "cup").has_kv);
    tec_store_close(s);
    write_file(bytes, n); /* of rules and weights at once each is told */
    with.key.model[1] = 77;
    s = open_of(&with);
    CHECK(heard.retrained == 1 && heard.dropped == 2 && tokens_of(s, "cup") == v.text_bytes + 3);
    CHECK(heard.counted == 1 && heard.recounted == texts);
    tec_store_close(s);
    write_file(bytes, n); /* what cannot be mended stays as it is */
    with.log.fail_after = TEC_LOG_HEADER + 256;
    CHECK_INT(try_open(&s, &with), ==, TEC_IO);
    CHECK(read_file(path, after) == n && memcmp(bytes, after, n) == 0);
    end();
}

TEST(a_file_that_a_store_begins_with_is_not_believed_how_many_tokens_it_has)
{
    static unsigned char bytes[MOST];
    begin(bytes);
    struct tec_store_options o = beginning(path);
    o.count = count_bytes;
    heard.longer = 5;
    struct tec_store *s = open_of(&o);
    struct tec_store_segment_view v = view_of(s, "cup");
    CHECK(heard.counted == 1 && heard.recounted == heard.texts && heard.unkept == 0);
    CHECK_INT(v.tokens, ==, v.text_bytes + 5);
    struct tec_store_state was = tec_store_began(s), is = tec_store_state(s);
    CHECK(was.segments == is.segments && memcmp(was.hash, is.hash, sizeof is.hash) != 0);
    tec_store_close(s);
    heard.bad = "the cup is on the shelf";
    CHECK_INT(try_open(&s, &o), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "the tokens of segment 'cup'") != NULL);
    heard.bad = NULL;
    end();
}
