/* weight_cache.c - packed weights from a file: the same bytes as from the checkpoint, for every
 * kind of model and precision; and whatever the file is, the weights are there. */
#include "graph/model/weight_cache.h"
#include "base/store/dtype.h"
#include "kernels/device_kind.h"
#include "kernels/int8.h"
#include "tests/box.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <xxhash.h>

#define BUNDLED "pipelines/checkpoints/metaworld"

/* A checkpoint, its model and a device, made ready to load. */
struct loading {
    struct tec_checkpoint *checkpoint;
    struct tec_model *model;
    struct tec_device *device;
    struct tec_weight_cache cache;
    struct tec_weights_options options;
    int fits;
    char said[4096];
};

static struct tec_heap heap;

static void hear(void *self, const char *line)
{
    struct loading *l = self;
    size_t n = strlen(l->said);
    snprintf(l->said + n, sizeof l->said - n, "%s\n", line);
}

static void begin(struct loading *l, const char *path, const char *arch, bool bf16,
                  const char *folder)
{
    struct tec_error err = {0};
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    *l = (struct loading){.fits = 0};
    REQUIRE(tec_checkpoint_open(&l->checkpoint, path, &heap, &err) == TEC_OK);
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = arch, .checkpoint = l->checkpoint};
    enum tec_status status = tec_model_open(&l->model, &choice, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    REQUIRE(tec_device_open(&l->device, &d, &heap, &err) == TEC_OK);
    l->cache = (struct tec_weight_cache){.written = true,
                                         .folder = folder,
                                         .program = "1",
                                         .say = hear,
                                         .self = l,
                                         .fits = &l->fits};
    l->options = (struct tec_weights_options){.model = l->model,
                                              .source = {.checkpoint = l->checkpoint},
                                              .device = l->device,
                                              .bf16 = bf16,
                                              .language = true,
                                              .cache = &l->cache};
}

static void end(struct loading *l)
{
    tec_device_close(l->device);
    tec_model_close(l->model);
    tec_checkpoint_close(l->checkpoint);
}

static struct tec_weights *load(struct loading *l)
{
    struct tec_error err = {0};
    struct tec_weights *w = NULL;
    l->said[0] = '\0';
    enum tec_status status = tec_weights_load(&w, &l->options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    return w;
}

/* All that a plan reads of weights, as a number. */
static uint64_t sum_of(const struct tec_weights *w)
{
    uint64_t of[4] = {(uint64_t)w->n_blocks, (uint64_t)w->bytes, w->tied, 0};
    for (int i = 0; i < w->n_blocks; i++) {
        of[3] ^= XXH3_64bits_withSeed(w->blocks[i], w->sizes[i], (uint64_t)i);
        of[3] = of[3] << 7 | of[3] >> 57;
    }
    return XXH3_64bits(of, sizeof of);
}

static uint64_t loaded(struct loading *l, bool from_file)
{
    struct tec_weights *w = load(l);
    uint64_t sum = sum_of(w);
    CHECK((w->kept != NULL) == from_file);
    tec_weights_close(w);
    return sum;
}

/* The file that a loading has made is the only one in its folder. */
static void find_file(struct box *b)
{
    char command[500], name[300] = "";
    snprintf(command, sizeof command, "ls %s", b->dir);
    FILE *list = popen(command, "r");
    REQUIRE(list && fgets(name, sizeof name, list));
    pclose(list);
    name[strcspn(name, "\n")] = '\0';
    snprintf(b->path, sizeof b->path, "%s/%s", b->dir, name);
}

static void same_bytes_of(const char *path, const char *arch, bool bf16, enum tec_quantize head)
{
    struct box b;
    struct loading l;
    box_make(&b);
    begin(&l, path, arch, bf16, b.dir);
    l.options.quantize_head = head;
    l.options.cache = NULL;
    uint64_t plain = loaded(&l, false);
    l.options.cache = &l.cache;
    CHECK(loaded(&l, false) == plain);
    CHECK(strstr(l.said, "weights: kept as "));
    CHECK(loaded(&l, true) == plain);
    CHECK(strstr(l.said, ", checked in "));
    CHECK_INT(l.fits, ==, 2);
    end(&l);
    box_remove(&b);
    CHECK_INT(heap.live, ==, 0);
}

static void same_bytes(const char *path, const char *arch, bool bf16)
{
    same_bytes_of(path, arch, bf16, TEC_QUANTIZE_NONE);
}

TEST(every_kind_of_model_has_the_same_bytes)
{
    static const struct {
        const char *path, *arch;
    } kinds[] = {{BUNDLED, NULL},
                 {"pipelines/checkpoints/metaworld_act", NULL},
                 {"tests/golden/pi/pi0_odd/checkpoint", NULL},
                 {"tests/golden/pi/pi05_odd_lerobot/checkpoint", NULL},
                 {"tests/golden/act/dilated/checkpoint", NULL},
                 {"tests/golden/openvla/odd/checkpoint", NULL},
                 {"tests/golden/smolvla/odd/checkpoint", NULL},
                 {"tests/golden/groot/n15_tiny_lerobot/checkpoint", NULL},
                 {"tests/golden/groot/n15_options/checkpoint", NULL},
                 {"tests/golden/text/gemma2_tiny/checkpoint", NULL},
                 {"tests/golden/qwen/odd/checkpoint", NULL}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        same_bytes(kinds[i].path, kinds[i].arch, false);
        same_bytes(kinds[i].path, kinds[i].arch, true);
    }
}

TEST(weights_of_4_bits_have_the_same_bytes)
{
    same_bytes("tests/golden/qwen/awq_g32_odd/checkpoint", NULL, true);
    same_bytes("tests/golden/qwen/gptq_g64_actorder_odd/checkpoint", NULL, true);
    same_bytes("tests/golden/qwen/gptq_g128/checkpoint", NULL, false);
}

/* Tied to the embedding, and a tensor of its own. */
TEST(heads_of_8_bits_have_the_same_bytes)
{
    same_bytes_of(BUNDLED, NULL, true, TEC_QUANTIZE_INT8);
    same_bytes_of(BUNDLED, NULL, false, TEC_QUANTIZE_INT8);
    same_bytes_of("tests/golden/openvla/odd/checkpoint", NULL, true, TEC_QUANTIZE_INT8);
}

/* The embedding is as it was, and the head beside it is a matrix of its own with a scale for each
 * token. Where no tokens are made there is none, and the file is that of any such plan. */
TEST(a_head_of_8_bits_is_beside_the_embedding)
{
    struct box b;
    struct loading l;
    box_make(&b);
    begin(&l, BUNDLED, NULL, true, b.dir);
    struct tec_weights *plain = load(&l);
    l.options.quantize_head = TEC_QUANTIZE_INT8;
    struct tec_weights *w = load(&l);
    CHECK(strstr(l.said, "kept as")); /* a file of its own */
    CHECK(plain->tied && plain->head.w == plain->embed.w);
    CHECK(w->tied && w->head.w != w->embed.w);
    CHECK_INT(w->head.form, ==, TEC_FORM_INT8);
    CHECK_INT(w->embed.form, ==, TEC_FORM_BF16);
    CHECK(w->head.n == w->embed.n && w->head.k == w->embed.k && w->head.cols == w->embed.cols);
    size_t rows = (size_t)w->embed.n * (size_t)w->embed.k;
    CHECK(memcmp(w->embed.w, plain->embed.w, 2 * rows) == 0);
    CHECK_INT(w->bytes - plain->bytes, ==, (int64_t)tec_int8_size(w->head.n, w->head.k));
    tec_weights_close(plain);
    tec_weights_close(w);

    l.options.language = false;
    l.options.quantize_head = TEC_QUANTIZE_NONE;
    uint64_t silent = loaded(&l, false);
    l.options.quantize_head = TEC_QUANTIZE_INT8;
    CHECK(loaded(&l, true) == silent);
    end(&l);
    box_remove(&b);
    CHECK_INT(heap.live, ==, 0);
}

/* A device that does not read host memory has a copy, and the file is closed. */
TEST(a_device_of_its_own_memory_has_a_copy)
{
    static struct tec_device_kind copies;
    struct box b;
    struct loading l;
    box_make(&b);
    begin(&l, BUNDLED, NULL, true, b.dir);
    l.options.cache = NULL;
    uint64_t plain = loaded(&l, false);
    l.options.cache = &l.cache;
    copies = *l.device->kind;
    copies.reads_host = false;
    l.device->kind = &copies;
    CHECK(loaded(&l, false) == plain);
    CHECK(strstr(l.said, "kept as"));
    CHECK(loaded(&l, false) == plain);
    CHECK(strstr(l.said, "checked in"));
    CHECK_INT(l.device->memory.live, ==, 0);
    CHECK_INT(l.device->memory.bytes, ==, 0);
    end(&l);
    box_remove(&b);
    CHECK_INT(heap.live, ==, 0);
}

/* Files of other settings lie side by side; a checkpoint, a version that have changed are noticed.
 */
TEST(a_file_is_used_by_its_own_checkpoint_alone)
{
    struct box b, copy;
    struct loading l;
    char command[1200], path[500];
    box_make(&b);
    box_make(&copy);
    snprintf(path, sizeof path, "%s/checkpoint", copy.dir);
    snprintf(command, sizeof command, "cp -r " BUNDLED " %s && chmod -R u+w %s", path, path);
    REQUIRE(system(command) == 0);
    begin(&l, path, NULL, true, b.dir);
    uint64_t bf16 = loaded(&l, false);
    l.options.bf16 = false;
    uint64_t f32 = loaded(&l, false);
    CHECK(f32 != bf16);
    CHECK(loaded(&l, true) == f32);
    l.options.bf16 = true;
    CHECK(loaded(&l, true) == bf16);
    l.cache.program = "2";
    l.cache.written = false;
    CHECK(loaded(&l, false) == bf16);
    CHECK(
        strstr(l.said, "is of another checkpoint, description or version; the checkpoint is read"));
    end(&l);

    snprintf(command, sizeof command, "touch %s/model.safetensors", path);
    REQUIRE(system(command) == 0);
    begin(&l, path, NULL, true, b.dir);
    l.cache.written = false;
    CHECK(loaded(&l, false) == bf16);
    CHECK(strstr(l.said, "is of another checkpoint"));
    l.cache.written = true;
    CHECK(loaded(&l, false) == bf16);
    CHECK(loaded(&l, true) == bf16);
    end(&l);
    box_remove(&b);
    box_remove(&copy);
}

/* Damage of any kind is a line, and then the checkpoint is read. */
static void damaged(struct box *b, struct loading *l, uint64_t plain, const char *words)
{
    l->cache.written = false;
    CHECK(loaded(l, false) == plain);
    if (!strstr(l->said, words))
        fprintf(stderr, "# said: %s", l->said);
    CHECK(strstr(l->said, words));
    l->cache.written = true;
    CHECK(loaded(l, false) == plain);
    CHECK(strstr(l->said, "kept as"));
    CHECK(loaded(l, true) == plain);
    find_file(b);
}

TEST(a_damaged_file_is_told_and_made_again)
{
    struct box b;
    struct loading l;
    box_make(&b);
    begin(&l, BUNDLED, NULL, true, b.dir);
    uint64_t plain = loaded(&l, false);
    find_file(&b);
    struct stat st;
    REQUIRE(stat(b.path, &st) == 0);
    REQUIRE(truncate(b.path, st.st_size / 2) == 0);
    damaged(&b, &l, plain, " is cut short; the checkpoint is read instead");
    REQUIRE(truncate(b.path, 0) == 0);
    damaged(&b, &l, plain, " is too short");
    int fd = open(b.path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0 && pwrite(fd, "x", 1, st.st_size - 100) == 1);
    close(fd);
    damaged(&b, &l, plain, " is damaged");
    fd = open(b.path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0 && pwrite(fd, "x", 1, 40) == 1);
    close(fd);
    damaged(&b, &l, plain, " has a damaged header");
    fd = open(b.path, O_RDWR | O_TRUNC | O_CLOEXEC);
    REQUIRE(fd >= 0 && ftruncate(fd, st.st_size) == 0);
    close(fd);
    damaged(&b, &l, plain, " is something else");
    end(&l);
    box_remove(&b);
    CHECK_INT(heap.live, ==, 0);
}

/* Where nothing can be kept, a line says why, and weights are there. */
TEST(a_folder_that_cannot_be_written_is_no_failure)
{
    struct loading l;
    begin(&l, BUNDLED, NULL, true, "/proc/none/here");
    l.options.cache = NULL;
    uint64_t plain = loaded(&l, false);
    l.options.cache = &l.cache;
    CHECK(loaded(&l, false) == plain);
    CHECK(strstr(l.said, "weights: not kept: "));
    CHECK_INT(l.fits, ==, 0);
    end(&l);
}

/* Random weights, and a start that only measures, neither look for a file nor make one. */
TEST(only_checkpoints_have_files)
{
    struct loading l;
    struct box b;
    box_make(&b);
    begin(&l, BUNDLED, NULL, true, b.dir);
    l.options.source = (struct tec_weight_source){.seed = 3};
    tec_weights_close(load(&l));
    CHECK_STR(l.said, "");
    CHECK_INT(rmdir(b.dir), ==, 0);
    end(&l);
}

/* Several processes at once: each has its weights, and one file is left, which is whole. */
TEST(processes_may_start_at_once)
{
    enum { N = 4 };
    struct box b;
    struct loading l;
    pid_t child[N];
    box_make(&b);
    begin(&l, BUNDLED, NULL, true, b.dir);
    l.options.cache = NULL;
    uint64_t plain = loaded(&l, false);
    l.options.cache = &l.cache;
    for (int i = 0; i < N; i++)
        if ((child[i] = fork()) == 0) {
            struct tec_error err;
            struct tec_weights *w = NULL;
            bool ok = true;
            for (int k = 0; k < 5 && ok; k++) {
                ok = tec_weights_load(&w, &l.options, &heap, &err) == TEC_OK && sum_of(w) == plain;
                tec_weights_close(ok ? w : NULL);
            }
            _exit(!ok);
        }
    for (int i = 0; i < N; i++) {
        int status = 1;
        CHECK(waitpid(child[i], &status, 0) == child[i] && status == 0);
    }
    CHECK(loaded(&l, true) == plain);
    find_file(&b);
    CHECK_INT(unlink(b.path), ==, 0);
    CHECK_INT(rmdir(b.dir), ==, 0); /* nothing else is left */
    end(&l);
}

/* What loading makes of the bundled checkpoint, by layout: whoever changes it raises
 * TEC_WEIGHT_PACKING, so that files of before are not taken, and puts the new numbers here. */
TEST(what_is_packed_is_what_this_version_packs)
{
    static const struct {
        enum tec_quantize quantize, head;
        uint64_t sum;
    } of[] = {{TEC_QUANTIZE_NONE, TEC_QUANTIZE_NONE, 0x337287116f2d8a57},
              {TEC_QUANTIZE_INT8, TEC_QUANTIZE_NONE, 0x2fc22447f13e2c66},
              {TEC_QUANTIZE_INT4, TEC_QUANTIZE_NONE, 0x8d74766d98cba395},
              {TEC_QUANTIZE_INT8, TEC_QUANTIZE_INT8, 0xc40b18388c1d91e5}};
    struct loading l;
    begin(&l, BUNDLED, NULL, true, NULL);
    l.options.cache = NULL;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        l.options.quantize = of[i].quantize;
        l.options.quantize_head = of[i].head;
        uint64_t sum = loaded(&l, false);
        if (tec_device_layout(l.device) == TEC_MATRIX_PANELS) {
            CHECK_INT(TEC_WEIGHT_PACKING, ==, 5);
            CHECK_INT((int64_t)sum, ==, (int64_t)of[i].sum);
        }
    }
    end(&l);
}

TAP_MAIN
