/* packed.c - matrices of 4-bit weights from files that lie: every index and scale is looked at. And
 * what becomes 4-bit weights as it is loaded. */
#include "graph/model/packer.h"
#include "graph/model/weights.h"
#include "kernels/device.h"
#include "kernels/int4.h"
#include "tests/box.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPTQ "tests/golden/qwen/gptq_g64_actorder_odd/checkpoint"
#define AWQ "tests/golden/qwen/awq_g32_odd/checkpoint"
#define BF16 "tests/golden/text/smollm2_tiny/checkpoint"

static struct tec_heap heap;
static struct tec_error err;

struct scratch {
    char dir[64], path[2][128];
};

static void copy_file(const char *from, const char *to, const char *old, const char *new)
{
    static char bytes[1 << 20];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    REQUIRE(in && out);
    size_t n = fread(bytes, 1, sizeof bytes - 1, in), length = old ? strlen(old) : 0;
    bytes[n] = '\0';
    char *at = old ? strstr(bytes, old) : NULL;
    CHECK(!old || (at && strlen(new) == length));
    if (at)
        memcpy(at, new, length);
    CHECK(fwrite(bytes, 1, n, out) == n);
    fclose(in);
    fclose(out);
}

/* The checkpoint `from` with `old` replaced in its configuration by as many bytes. */
static void make(struct scratch *s, const char *from, const char *old, const char *new)
{
    char name[200], dir[64];
    box_folder(dir, sizeof dir);
    memcpy(s->dir, dir, sizeof dir);
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%s", from, files[i]);
        snprintf(s->path[i], sizeof s->path[i], "%s/%s", dir, files[i]);
        copy_file(name, s->path[i], i ? NULL : old, new);
    }
}

static void drop(struct scratch *s)
{
    unlink(s->path[0]);
    unlink(s->path[1]);
    CHECK(rmdir(s->dir) == 0);
}

/* Two bytes of a tensor's data become `value`. */
static void patch(struct scratch *s, const char *tensor, size_t at, uint16_t value)
{
    struct tec_checkpoint *c = NULL;
    REQUIRE(tec_checkpoint_open(&c, s->dir, &heap, &err) == TEC_OK);
    const struct tec_stored *t = tec_checkpoint_tensor(c, tensor);
    REQUIRE(t && at + 2 <= t->bytes);
    FILE *f = fopen(s->path[1], "r+b");
    REQUIRE(f);
    CHECK(fseek(f, (long)(t->begin + at), SEEK_SET) == 0);
    CHECK(fwrite(&value, sizeof value, 1, f) == 1);
    fclose(f);
    tec_checkpoint_close(c);
}

static enum tec_status load(const char *dir)
{
    struct tec_checkpoint *c = NULL;
    struct tec_model *model = NULL;
    struct tec_device *device = NULL;
    struct tec_weights *weights = NULL;
    const struct tec_device_options options = {.kind = "cpu", .threads = 1};
    REQUIRE(tec_checkpoint_open(&c, dir, &heap, &err) == TEC_OK);
    REQUIRE(tec_device_open(&device, &options, &heap, &err) == TEC_OK);
    const struct tec_model_choice choice = {.root = "pipelines/models", .checkpoint = c};
    enum tec_status status = tec_model_open(&model, &choice, &heap, &err);
    if (status == TEC_OK) {
        const struct tec_weights_options w = {.model = model,
                                              .source = {.checkpoint = c},
                                              .device = device,
                                              .bf16 = true,
                                              .language = true};
        status = tec_weights_load(&weights, &w, &heap, &err);
    }
    tec_weights_close(weights);
    tec_model_close(model);
    tec_device_close(device);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

static void refused(const struct scratch *s, enum tec_status status, const char *says)
{
    CHECK_INT(load(s->dir), ==, status);
    if (!strstr(err.message, says))
        fprintf(stderr, "# %s\n", err.message);
    CHECK(strstr(err.message, says) != NULL);
}

TEST(good_files_load)
{
    CHECK_INT(load(GPTQ), ==, TEC_OK);
    CHECK_INT(load(AWQ), ==, TEC_OK);
}

TEST(groups_that_are_not_there_are_refused)
{
    static const char index[] = "model.layers.1.mlp.up_proj.g_idx";
    struct scratch s;
    make(&s, GPTQ, NULL, NULL);
    patch(&s, index, 8, 2);
    refused(&s, TEC_MALFORMED, "element 2 is 2; must be 0 .. 1");
    patch(&s, index, 8, 0xffff);
    refused(&s, TEC_MALFORMED, "element 2 is 65535; must be 0 .. 1");
    patch(&s, index, 8, 0);
    patch(&s, index, 12, 0);
    patch(&s, index, 16, 0); /* one of these was 1: group 0 is now too large */
    patch(&s, index, 20, 0);
    patch(&s, index, 24, 0);
    refused(&s, TEC_UNSUPPORTED, "gives group 0 not the 64 rows");
    drop(&s);
}

TEST(an_order_that_is_not_announced_is_refused)
{
    struct scratch s;
    make(&s, GPTQ, "\"desc_act\": true", "\"desc_act\":false");
    refused(&s, TEC_MALFORMED, "desc_act = false");
    drop(&s);
}

TEST(scales_that_are_no_numbers_are_refused)
{
    struct scratch s;
    make(&s, AWQ, NULL, NULL);
    patch(&s, "model.layers.0.self_attn.k_proj.scales", 6, 0x7c00);
    refused(&s, TEC_MALFORMED, "scale 3 of 'model.layers.0.self_attn.k_proj.weight'");
    drop(&s);
}

TEST(layouts_that_look_alike_are_refused)
{
    static const struct {
        const char *from, *old, *new, *says;
    } cases[] = {
        {AWQ, "\"version\": \"gemm\"", "\"version\": \"gemv\"", "version: 'gemv' is not supported"},
        {AWQ, "\"bits\": 4", "\"bits\": 8", "bits: 8 is not supported"},
        {AWQ, "\"group_size\": 32", "\"group_size\": 30", "groups of 30; must be a multiple of 8"},
        {AWQ, "\"group_size\": 32", "\"group_size\": 48", "qzeros' must be I32 [2"},
        {GPTQ, "\"gptq\",\n    \"d", "\"marl\",\n    \"d", "checkpoint_format: 'marl' is not"},
        {GPTQ, "\"hidden_size\": 96", "\"hidden_size\": 90", "side of 90; must be a multiple of 8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scratch s;
        make(&s, cases[i].from, cases[i].old, cases[i].new);
        CHECK(load(s.dir) != TEC_OK);
        if (!strstr(err.message, cases[i].says))
            fprintf(stderr, "# %s\n", err.message);
        CHECK(strstr(err.message, cases[i].says) != NULL);
        drop(&s);
    }
}

/* Packs columns of a matrix [120, 72] to 4 bits. */
static enum tec_status pack(const struct scratch *s, int from, int cols, int turn)
{
    static unsigned char to[1 << 16];
    const struct tec_expected e = {.names = {"model.layers.0.mlp.up_proj.weight"},
                                   .n_names = 1,
                                   .rank = 2,
                                   .shape = {120, 72}};
    const struct tec_device_options options = {.kind = "cpu", .threads = 1};
    struct tec_weight_source source = {0};
    struct tec_checkpoint *c = NULL;
    struct tec_device *device = NULL;
    struct tec_packer packer;
    struct tec_found found;
    REQUIRE(tec_checkpoint_open(&c, s->dir, &heap, &err) == TEC_OK);
    REQUIRE(tec_device_open(&device, &options, &heap, &err) == TEC_OK);
    source.checkpoint = c;
    REQUIRE(tec_weight_find(&source, &e, &found, &err) == TEC_OK);
    const struct tec_packed_columns kept = {from, cols, TEC_FORM_INT4, turn};
    REQUIRE(tec_packed_size(tec_device_layout(device), kept.form, 120, cols) <= sizeof to);
    memset(to, 0, sizeof to);
    tec_packer_open(&packer, &source, device, &heap);
    enum tec_status status = tec_packer_rows(&packer, &found, kept, to, &err);
    tec_packer_close(&packer);
    tec_device_close(device);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

/* Columns that read a time's row stay float32 beside those that are kept in 4 bits. */
TEST(what_is_not_kept_in_4_bits_may_be_large)
{
    static const char matrix[] = "model.layers.0.mlp.up_proj.weight";
    static const char says[] = "element 760 is 999424; what is kept in 4 bits";
    struct scratch s;
    make(&s, BF16, NULL, NULL);
    patch(&s, matrix, 2 * (10 * 72 + 40), 0x4974); /* row 10, column 40 */
    CHECK_INT(pack(&s, 0, 40, 0), ==, TEC_OK);
    CHECK_INT(pack(&s, 48, 24, 0), ==, TEC_OK);
    static const struct {
        int from, cols, turn;
    } with[] = {{0, 72, 0}, {40, 8, 0}, {32, 16, 0}, {0, 72, 8}, {0, 24, 8}};
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        CHECK_INT(pack(&s, with[i].from, with[i].cols, with[i].turn), ==, TEC_UNSUPPORTED);
        CHECK(strstr(err.message, says) != NULL);
    }
    drop(&s);
}

TAP_MAIN
