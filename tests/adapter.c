/* adapter.c - LoRA adapters: what they make of a checkpoint's tensors, and what is refused. */
#include "base/store/adapter.h"
#include "tests/box.h"

#include <math.h>

#define CONFIG(more) "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4" more "}"

enum { MAX = 8 };

/* Files of tensors that are filled with small whole numbers, so that every sum is exact. */
struct maker {
    struct tec_tensor_entry entries[MAX];
    float values[MAX][64];
    size_t n;
};

static void put(struct maker *m, const char *name, int rank, int a, int b, int c, int d)
{
    struct tec_tensor_entry *e = &m->entries[m->n];
    const int shape[4] = {a, b, c, d};
    int count = 1;
    *e = (struct tec_tensor_entry){.name = name, .dtype = TEC_F32, .rank = rank};
    for (int i = 0; i < rank; i++) {
        e->shape[i] = shape[i];
        count *= shape[i];
    }
    for (int i = 0; i < count; i++)
        m->values[m->n][i] = (float)((i * 7 + (int)m->n * 5) % 9 - 4);
    e->data = m->values[m->n++];
}

static void put_matrix(struct maker *m, const char *name, int rows, int cols)
{
    put(m, name, 2, rows, cols, 0, 0);
}

static void store(struct box *b, const char *name, const struct maker *m)
{
    struct tec_heap heap = {0};
    box_path(b, name);
    REQUIRE(tec_tensors_write(b->path, m->entries, m->n, &heap, NULL) == TEC_OK);
}

static const float *values_of(const struct maker *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->entries[i].name, name) == 0)
            return m->values[i];
    return NULL;
}

/* A base with one tensor of each kind. */
static void make_base(struct box *b, struct maker *m)
{
    box_make(b);
    put_matrix(m, "a.q.weight", 3, 5);
    put_matrix(m, "a.v.weight", 4, 3);
    put(m, "a.q.bias", 1, 3, 0, 0, 0);
    put_matrix(m, "embed.weight", 6, 4);
    put(m, "patch.weight", 4, 3, 2, 2, 2);
    put_matrix(m, "head.weight", 2, 3);
    store(b, "model.safetensors", m);
}

/* Open with the adapter of folder "lora"; NULL, and the message in err. */
static struct tec_checkpoint *opened(const struct box *b, struct tec_heap *heap,
                                     enum tec_status want, struct tec_error *err)
{
    char path[200], adapter[200];
    struct tec_checkpoint *c = NULL;
    snprintf(path, sizeof path, "%s/model.safetensors", b->dir);
    snprintf(adapter, sizeof adapter, "%s/lora", b->dir);
    const struct tec_checkpoint_source from = {.path = path, .adapter = adapter};
    CHECK_INT(tec_checkpoint_open_source(&c, &from, heap, err), ==, want);
    return c;
}

static void read_all(const struct tec_checkpoint *c, const char *name, float out[64])
{
    const struct tec_stored *s = tec_checkpoint_tensor(c, name);
    REQUIRE(s);
    CHECK_INT(tec_checkpoint_read_f32(c, s, 0, out, (size_t)tec_stored_count(s), NULL), ==, TEC_OK);
}

/* What w [rows, cols] + scale * left [rows, rank] right [rank, cols] is, by the strides of both. */
static void check_product(const struct tec_checkpoint *c, const char *name, const float *w,
                          const float *left, const int ls[2], const float *right, const int rs[2],
                          const int size[3], float scale)
{
    float got[64];
    int wrong = 0;
    read_all(c, name, got);
    for (int i = 0; i < size[0]; i++)
        for (int j = 0; j < size[1]; j++) {
            float sum = 0.0F;
            for (int k = 0; k < size[2]; k++)
                sum += left[i * ls[0] + k * ls[1]] * right[k * rs[0] + j * rs[1]];
            wrong += got[i * size[1] + j] != w[i * size[1] + j] + scale * sum;
        }
    CHECK_INT(wrong, ==, 0);
}

TEST(products_are_added_and_tensors_replaced)
{
    struct box b;
    struct maker base = {0}, lora = {0};
    struct tec_heap heap = {0};
    struct tec_error err;
    float got[64], part[64];
    make_base(&b, &base);
    put_matrix(&lora, "base_model.model.a.q.lora_A.weight", 2, 5);
    put_matrix(&lora, "base_model.model.a.q.lora_B.weight", 3, 2);
    put(&lora, "base_model.model.a.q.lora_B.bias", 1, 3, 0, 0, 0);
    put_matrix(&lora, "base_model.model.embed.lora_embedding_A", 2, 6);
    put_matrix(&lora, "base_model.model.embed.lora_embedding_B", 4, 2);
    put(&lora, "base_model.model.patch.lora_A.weight", 4, 2, 2, 2, 2);
    put(&lora, "base_model.model.patch.lora_B.weight", 4, 3, 2, 1, 1);
    put_matrix(&lora, "base_model.model.head.modules_to_save.weight", 2, 3);
    store(&b, "lora/adapter_model.safetensors", &lora);
    box_put(&b, "lora/adapter_config.json",
            CONFIG(", \"alpha_pattern\": {\"q\": 1, \"embed\": 8}"));
    struct tec_checkpoint *c = opened(&b, &heap, TEC_OK, &err);
    REQUIRE(c && c->adapter);
    const float *q = values_of(&base, "a.q.weight"), *bias = values_of(&base, "a.q.bias");
    check_product(c, "a.q.weight", q, lora.values[1], (int[]){2, 1}, lora.values[0], (int[]){5, 1},
                  (int[]){3, 5, 2}, 0.5F);
    check_product(c, "embed.weight", values_of(&base, "embed.weight"), lora.values[3],
                  (int[]){1, 6}, lora.values[4], (int[]){1, 2}, (int[]){6, 4, 2}, 4.0F);
    check_product(c, "patch.weight", values_of(&base, "patch.weight"), lora.values[6],
                  (int[]){2, 1}, lora.values[5], (int[]){8, 1}, (int[]){3, 8, 2}, 2.0F);
    read_all(c, "a.q.bias", got);
    for (int i = 0; i < 3; i++)
        CHECK(got[i] == bias[i] + 0.5F * lora.values[2][i]);
    read_all(c, "head.weight", got);
    CHECK(memcmp(got, lora.values[7], 6 * sizeof *got) == 0);
    read_all(c, "a.v.weight", got);
    CHECK(memcmp(got, values_of(&base, "a.v.weight"), 12 * sizeof *got) == 0);
    read_all(c, "a.q.weight", got);
    for (size_t at = 0; at < 15; at++) /* a part of a tensor has the values of the whole */
        for (size_t n = 0; at + n <= 15; n++) {
            const struct tec_stored *s = tec_checkpoint_tensor(c, "a.q.weight");
            CHECK_INT(tec_checkpoint_read_f32(c, s, at, part, n, NULL), ==, TEC_OK);
            CHECK(memcmp(part, got + at, n * sizeof *part) == 0);
        }
    const struct tec_adapter_facts facts = tec_adapter_facts(c->adapter);
    CHECK(facts.changed == 4 && facts.replaced == 1 && facts.rank == 2);
    CHECK(tec_adapter_changes(c->adapter, "head.weight"));
    CHECK(!tec_adapter_changes(c->adapter, "a.v.weight"));
    CHECK(strlen(c->hash) == 32 && strcmp(c->hash, facts.hash) != 0);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&b);
}

/* The name by content: a factor and the scale are in it, that it lies in another folder is not. */
TEST(an_adapter_is_named_by_its_content)
{
    static const char *const configs[] = {CONFIG(""), CONFIG(""), CONFIG(", \"use_rslora\": true"),
                                          CONFIG("")};
    struct box b;
    struct maker base = {0}, lora = {0};
    struct tec_heap heap = {0};
    struct tec_error err;
    char text[4][TEC_HASH_TEXT];
    for (int i = 0; i < 4; i++) {
        base.n = lora.n = 0;
        make_base(&b, &base);
        put_matrix(&lora, "a.v.lora_A.weight", 2, 3);
        put_matrix(&lora, "a.v.lora_B.weight", 4, 2);
        lora.values[1][5] += i == 3 ? 1.0F : 0.0F;
        store(&b, "lora/adapter_model.safetensors", &lora);
        box_put(&b, "lora/adapter_config.json", configs[i]);
        struct tec_checkpoint *c = opened(&b, &heap, TEC_OK, &err);
        REQUIRE(c);
        CHECK(tec_checkpoint_content(c, text[i], &err) == TEC_OK);
        tec_checkpoint_close(c);
        box_remove(&b);
    }
    CHECK(strcmp(text[0], text[1]) == 0);
    CHECK(strcmp(text[0], text[2]) != 0 && strcmp(text[0], text[3]) != 0);
    CHECK_INT(heap.live, ==, 0);
}

TEST(scales_and_ranks_are_those_of_the_configuration)
{
    struct box b;
    struct maker base = {0}, lora = {0};
    struct tec_heap heap = {0};
    struct tec_error err;
    make_base(&b, &base);
    put_matrix(&lora, "a.v.lora_A.default.weight", 4, 4); /* weights are [in, out]: in is 4 */
    put_matrix(&lora, "a.v.lora_B.default.weight", 3, 4);
    store(&b, "lora/adapter_model.safetensors", &lora);
    box_put(&b, "lora/adapter_config.json",
            CONFIG(", \"rank_pattern\": {\"a.v\": 4, \"v\": 9}, \"use_rslora\": true, "
                   "\"fan_in_fan_out\": true"));
    struct tec_checkpoint *c = opened(&b, &heap, TEC_OK, &err);
    REQUIRE(c);
    check_product(c, "a.v.weight", values_of(&base, "a.v.weight"), lora.values[0], (int[]){1, 4},
                  lora.values[1], (int[]){1, 4}, (int[]){4, 3, 4}, 2.0F);
    tec_checkpoint_close(c);
    box_remove(&b);
}

/* Values that are not exact differ from those of a product in double by its roundings alone. */
TEST(roundings_are_those_of_float32)
{
    enum { ROWS = 3, COLS = 700, RANK = 16 };
    static float w[ROWS * COLS], a[RANK * COLS], left[ROWS * RANK], got[ROWS * COLS];
    struct box b;
    struct tec_heap heap = {0};
    struct tec_error err;
    uint32_t seed = 1;
    float *const all[] = {w, a, left};
    const size_t counts[] = {ROWS * COLS, RANK * COLS, ROWS * RANK};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < counts[t]; i++) {
            seed = seed * 1664525U + 1013904223U;
            all[t][i] = (float)(int32_t)seed * 0x1p-33F;
        }
    const struct tec_tensor_entry base = {"x.weight", TEC_F32, 2, {ROWS, COLS}, w},
                                  pair[] = {
                                      {"x.lora_A.weight", TEC_F32, 2, {RANK, COLS}, a},
                                      {"x.lora_B.weight", TEC_F32, 2, {ROWS, RANK}, left},
                                  };
    box_make(&b);
    box_path(&b, "model.safetensors");
    REQUIRE(tec_tensors_write(b.path, &base, 1, &heap, NULL) == TEC_OK);
    box_path(&b, "lora/adapter_model.safetensors");
    REQUIRE(tec_tensors_write(b.path, pair, 2, &heap, NULL) == TEC_OK);
    box_put(&b, "lora/adapter_config.json",
            "{\"peft_type\": \"LORA\", \"r\": 16, \"lora_alpha\": 11}");
    struct tec_checkpoint *c = opened(&b, &heap, TEC_OK, &err);
    REQUIRE(c);
    REQUIRE(tec_checkpoint_read_f32(c, tec_checkpoint_tensor(c, "x.weight"), 0, got, ROWS * COLS,
                                    NULL) == TEC_OK);
    double worst = 0.0;
    for (int i = 0; i < ROWS * COLS; i++) {
        double sum = 0.0, size = 0.0;
        for (int k = 0; k < RANK; k++) {
            double x = (double)left[i / COLS * RANK + k] * (double)a[k * COLS + i % COLS];
            sum += x;
            size += fabs(x);
        }
        double want = (double)w[i] + 0.6875 * sum, bound = 0x1p-24 * (fabs(want) + 18.0 * size);
        worst = fmax(worst, fabs((double)got[i] - want) / bound);
    }
    CHECK(worst > 0.0 && worst <= 1.0);
    tec_checkpoint_close(c);
    box_remove(&b);
}

static void check_refused(const char *config, const char *first, int rank, int in,
                          const char *second, int out, enum tec_status want, const char *piece)
{
    struct box b;
    struct maker base = {0}, lora = {0};
    struct tec_heap heap = {0};
    struct tec_error err = {0};
    make_base(&b, &base);
    put_matrix(&lora, first, rank, in);
    if (second)
        put_matrix(&lora, second, out, rank);
    store(&b, "lora/adapter_model.safetensors", &lora);
    box_put(&b, "lora/adapter_config.json", config);
    struct tec_checkpoint *c = opened(&b, &heap, want, &err);
    if (!strstr(err.message, piece))
        CHECK_STR(err.message, piece);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&b);
}

TEST(what_does_not_fit_is_named)
{
    static const char a[] = "base_model.model.a.q.lora_A.weight";
    static const char b[] = "base_model.model.a.q.lora_B.weight";
    check_refused(CONFIG(""), "model.a.q.lora_A.weight", 2, 5, "model.a.q.lora_B.weight", 3,
                  TEC_NOT_FOUND, "lacks; its nearest name is 'a.q.weight'");
    check_refused(CONFIG(""), a, 2, 4, b, 3, TEC_SHAPE,
                  "do not make a change of tensor 'a.q.weight' [3, 5]");
    check_refused(CONFIG(""), a, 4, 5, b, 3, TEC_SHAPE, "has rank 4, adapter_config.json says 2");
    check_refused(CONFIG(""), a, 2, 5, NULL, 0, TEC_MALFORMED,
                  "has no partner '....lora_B.weight'");
    check_refused(CONFIG(""), "base_model.model.a.q.weight", 2, 5, NULL, 0, TEC_SHAPE,
                  "[2, 5] replaces tensor 'a.q.weight' [3, 5]");
    check_refused(CONFIG(""), "a.q.lora_magnitude_vector", 2, 5, NULL, 0, TEC_UNSUPPORTED,
                  "'a.q.lora_magnitude_vector' is no factor that is merged");
    check_refused(CONFIG(", \"use_dora\": true"), a, 2, 5, b, 3, TEC_UNSUPPORTED,
                  "use_dora is set");
    check_refused(CONFIG(", \"init_lora_weights\": \"pissa_niter_4\""), a, 2, 5, b, 3,
                  TEC_UNSUPPORTED, "'pissa_niter_4', which changed the base's weights");
    check_refused(CONFIG(", \"rank_pattern\": {\".*q\": 2}"), a, 2, 5, b, 3, TEC_UNSUPPORTED,
                  "'.*q' is a regular expression");
    check_refused(CONFIG(", \"alpha_pattern\": {\"q\": \"x\"}"), a, 2, 5, b, 3, TEC_MALFORMED,
                  "'q' is no number from 0");
    check_refused("{\"peft_type\": \"IA3\"}", a, 2, 5, b, 3, TEC_UNSUPPORTED,
                  "peft_type is 'IA3'; only LORA");
    check_refused("{\"peft_type\": \"LORA\", \"lora_alpha\": 1}", a, 2, 5, b, 3, TEC_MALFORMED,
                  "r must be a whole number");
    check_refused("{\"peft_type\": \"LORA\", \"r\": 2}", a, 2, 5, b, 3, TEC_MALFORMED,
                  "lora_alpha must be a number");
}

TEST(a_factor_without_values_may_have_any_shape)
{
    struct box b;
    struct maker base = {0}, lora = {0};
    struct tec_heap heap = {0};
    struct tec_error err;
    make_base(&b, &base);
    put(&lora, "a.q.lora_A.weight", 3, 0, 0, 0, 0);
    lora.entries[0].shape[1] = INT64_MAX / 2;
    lora.entries[0].shape[2] = 8;
    put_matrix(&lora, "a.q.lora_B.weight", 3, 2);
    store(&b, "lora/adapter_model.safetensors", &lora);
    box_put(&b, "lora/adapter_config.json", CONFIG(""));
    CHECK(!opened(&b, &heap, TEC_SHAPE, &err));
    CHECK(strstr(err.message, "do not make a change of tensor 'a.q.weight' [3, 5]"));
    box_remove(&b);
}

TEST(a_tensor_is_changed_once)
{
    struct box b;
    struct maker base = {0}, lora = {0};
    struct tec_heap heap = {0};
    struct tec_error err;
    make_base(&b, &base);
    put_matrix(&lora, "a.q.weight", 3, 5);
    put_matrix(&lora, "a.q.lora_A.weight", 2, 5);
    put_matrix(&lora, "a.q.lora_B.weight", 3, 2);
    store(&b, "lora/adapter_model.safetensors", &lora);
    box_put(&b, "lora/adapter_config.json", CONFIG(""));
    CHECK(!opened(&b, &heap, TEC_MALFORMED, &err));
    CHECK(strstr(err.message, "'a.q.weight' of the base is changed twice"));
    bool done = false;
    lora.n = 0;
    put_matrix(&lora, "a.q.lora_A.weight", 2, 5);
    put_matrix(&lora, "a.q.lora_B.weight", 3, 2);
    store(&b, "lora/adapter_model.safetensors", &lora);
    for (int64_t at = 1; at < 1000 && !done; at++) { /* each allocation that may fail */
        struct tec_heap small = {.fail_at = at};
        struct tec_checkpoint *c = NULL;
        char path[200], adapter[200];
        snprintf(path, sizeof path, "%s/model.safetensors", b.dir);
        snprintf(adapter, sizeof adapter, "%s/lora", b.dir);
        const struct tec_checkpoint_source from = {.path = path, .adapter = adapter};
        enum tec_status status = tec_checkpoint_open_source(&c, &from, &small, &err);
        done = status == TEC_OK;
        CHECK(done || (status == TEC_NO_MEMORY && *err.message));
        tec_checkpoint_close(c);
        CHECK_INT(small.live, ==, 0);
    }
    CHECK(done);
    box_remove(&b);
}

TAP_MAIN
