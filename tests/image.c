/* image.c - pictures: golden cases, refusals, memory, plans that run without allocation. */
#include "base/image/image.h"
#include "base/image/reshape.h"
#include "tests/judge/verify.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

#define FILES "tests/golden/images/decode/files/"

static void judge(const char *dir, int checks)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err = {0};
    tec_arena_init(&arena, &heap);
    struct tec_verify v = {.dtype = "f32", .heap = &heap, .arena = &arena};
    CHECK_INT(tec_verify_case(&v, dir, &err), ==, TEC_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(v.failed, ==, 0);
    CHECK_INT(v.checks, ==, checks);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(golden_decode)
{
    judge("tests/golden/images/decode", 98);
}

TEST(golden_resize)
{
    judge("tests/golden/images/resize", 140);
}

TEST(golden_preprocess)
{
    judge("tests/golden/images/preprocess", 46);
}

struct file {
    unsigned char bytes[32768];
    size_t n;
};

static struct file read_file(const char *path)
{
    struct file file = {.n = 0};
    FILE *f = fopen(path, "rb");
    REQUIRE(f);
    file.n = fread(file.bytes, 1, sizeof file.bytes, f);
    fclose(f);
    REQUIRE(file.n > 0 && file.n < sizeof file.bytes);
    return file;
}

/* Decode from a block of exactly n bytes, so that reads past the end are seen. */
static enum tec_status decode(const void *bytes, size_t n, int64_t *peak, struct tec_error *err)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_image image;
    tec_arena_init(&arena, &heap);
    unsigned char *copy = malloc(n ? n : 1);
    REQUIRE(copy);
    memcpy(copy, bytes, n);
    enum tec_status status = tec_image_decode(&image, copy, n, TEC_IMAGE_PIXELS, &arena, err);
    free(copy);
    CHECK((status == TEC_OK) == (image.pixels != NULL));
    if (status != TEC_OK)
        CHECK_INT(tec_arena_mark(&arena).used, ==, 0);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    if (peak)
        *peak = heap.peak;
    return status;
}

static void check_look(const char *bytes, size_t n, const char *what)
{
    struct tec_error err = {0};
    CHECK_INT(decode(bytes, n, NULL, &err), ==, TEC_UNSUPPORTED);
    if (!strstr(err.message, what))
        CHECK_STR(err.message, what);
}

TEST(says_what_else_it_looks_like)
{
    check_look("", 0, "empty");
    check_look("GIF89a\1\0", 8, "GIF");
    check_look("RIFF\0\0\0\0WEBPVP8 ", 16, "WebP");
    check_look("\0\0\0\x20"
               "ftypavif",
               12, "AVIF");
    check_look("\x93NUMPY\1\0", 8, "NumPy");
    check_look("hello, robot\n", 13, "text");
    check_look("\x89PNG\n\x1a\n", 7, "text-mode");
    check_look("\xff\xd8", 2, "JPEG picture cut");
    check_look("\1\2\3\4", 4, "nothing known");
}

TEST(every_prefix_is_refused)
{
    static const char *const names[] = {FILES "odd_420.jpg", FILES "progressive_444.jpg",
                                        FILES "interlaced_small.png", FILES "gray1.png"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct file file = read_file(names[i]);
        int accepted = 0;
        for (size_t n = 0; n < file.n; n++)
            accepted += decode(file.bytes, n, NULL, NULL) == TEC_OK;
        CHECK_INT(accepted, ==, 0);
        CHECK_INT(decode(file.bytes, file.n, NULL, NULL), ==, TEC_OK);
    }
}

TEST(bombs_take_no_memory)
{
    static const char *const names[] = {FILES "bomb.jpg", FILES "giant.png", FILES "large.png",
                                        FILES "zero_width.jpg"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int64_t peak = 0;
        struct tec_error err = {0};
        struct file file = read_file(names[i]);
        CHECK(decode(file.bytes, file.n, &peak, &err) != TEC_OK);
        CHECK_INT(peak, <, 200000);
    }
}

/* Height and width of the frame header that follows the tables. */
static void set_jpeg_size(struct file *file, unsigned height, unsigned width)
{
    for (size_t i = 2; i + 9 < file->n; i += 2u + file->bytes[i + 2] * 256u + file->bytes[i + 3]) {
        REQUIRE(file->bytes[i] == 0xff);
        if (file->bytes[i + 1] != 0xc0 && file->bytes[i + 1] != 0xc2)
            continue;
        file->bytes[i + 5] = (unsigned char)(height >> 8);
        file->bytes[i + 6] = (unsigned char)height;
        file->bytes[i + 7] = (unsigned char)(width >> 8);
        file->bytes[i + 8] = (unsigned char)width;
        return;
    }
    REQUIRE(file->n == 0); /* no frame header */
}

static void set_png_size(struct file *file, unsigned height, unsigned width)
{
    uint32_t crc = 0xffffffffu;
    for (unsigned i = 0; i < 4; i++) {
        file->bytes[16 + i] = (unsigned char)(width >> (24 - 8 * i));
        file->bytes[20 + i] = (unsigned char)(height >> (24 - 8 * i));
    }
    for (size_t i = 12; i < 29; i++) {
        crc ^= file->bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1u ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    for (unsigned i = 0; i < 4; i++)
        file->bytes[29 + i] = (unsigned char)(~crc >> (24 - 8 * i));
}

TEST(headers_that_promise_more_than_the_file_holds)
{
    static const char *const names[] = {FILES "odd_420.jpg", FILES "progressive_444.jpg",
                                        FILES "rgb8.png", FILES "gray1.png"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct file file = read_file(names[i]);
        struct tec_error err = {0};
        int64_t peak = 0;
        if (i < 2)
            set_jpeg_size(&file, 8000, 8000);
        else
            set_png_size(&file, 8000, 8000);
        CHECK_INT(decode(file.bytes, file.n, &peak, &err), ==, TEC_MALFORMED);
        CHECK(strstr(err.message, "8000 x 8000: the file is too short"));
        CHECK_INT(peak, <, 200000);
    }
}

TEST(pixel_cap)
{
    struct file file = read_file(FILES "rgb8.png");
    struct tec_error err = {0};
    set_png_size(&file, 8193, 8192);
    CHECK_INT(decode(file.bytes, file.n, NULL, &err), ==, TEC_UNSUPPORTED);
    CHECK(strstr(err.message, "8192 x 8193"));
    set_png_size(&file, 1, 65536);
    CHECK_INT(decode(file.bytes, file.n, NULL, &err), ==, TEC_UNSUPPORTED);
}

/* A valid progressive file whose last scan is repeated: each costs few bytes and a whole walk. */
TEST(scans_are_bounded)
{
    struct file file = read_file(FILES "gray_progressive.jpg");
    size_t scan = 0, n = file.n - 2;
    for (size_t i = 2; i + 1 < file.n; i++)
        if (file.bytes[i] == 0xff && file.bytes[i + 1] == 0xda)
            scan = i;
    REQUIRE(scan > 0);
    unsigned char *many = malloc(file.n + 200 * (n - scan));
    REQUIRE(many);
    memcpy(many, file.bytes, n);
    size_t used = n;
    for (int i = 0; i < 200; i++, used += n - scan)
        memcpy(many + used, file.bytes + scan, n - scan);
    many[used] = 0xff;
    many[used + 1] = 0xd9;
    struct tec_error err = {0};
    CHECK_INT(decode(many, used + 2, NULL, &err), ==, TEC_MALFORMED);
    free(many);
}

/* A pixel of 7FFF with an alpha of 1, and one without: the second is a depth, which has no high
 * byte that means anything. */
TEST(gray_of_16_bits_is_a_picture_with_alpha_alone)
{
    static const unsigned char with[] = {
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0,    0,    0,    0x0D, 0x49, 0x48, 0x44,
        0x52, 0,    0,    0,    1,    0,    0,    0,    1,    0x10, 4,    0,    0,    0,    0xE5,
        0x8C, 0xD0, 0x41, 0,    0,    0,    0x10, 0x49, 0x44, 0x41, 0x54, 0x78, 1,    1,    5,
        0,    0xFA, 0xFF, 0,    0x7F, 0xFF, 0,    1,    4,    0xFF, 1,    0x80, 0x0A, 0xCB, 0x96,
        0x22, 0,    0,    0,    0,    0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
    static const unsigned char alone[] = {
        0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0,    0,    0,    0x0D, 0x49, 0x48, 0x44,
        0x52, 0,    0,    0,    1,    0,    0,    0,    1,    0x10, 0,    0,    0,    0,    0x6A,
        0xEE, 0x47, 0x16, 0,    0,    0,    0x0E, 0x49, 0x44, 0x41, 0x54, 0x78, 1,    1,    3,
        0,    0xFC, 0xFF, 0,    0x7F, 0xFF, 2,    0,    1,    0x7F, 0x9C, 0xFE, 0x86, 0xCE, 0,
        0,    0,    0,    0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_image image;
    struct tec_error err;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_image_decode(&image, with, sizeof with, TEC_IMAGE_PIXELS, &arena, &err) == TEC_OK);
    CHECK_INT(image.pixels[0], ==, 0x7F);
    CHECK_INT(image.pixels[2], ==, 0x7F);
    tec_arena_finish(&arena);
    CHECK_INT(decode(alone, sizeof alone, NULL, &err), ==, TEC_UNSUPPORTED);
    CHECK(strstr(err.message, "16-bit gray"));
}

TEST(load_names_the_file)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_image image;
    struct tec_error err = {0};
    tec_arena_init(&arena, &heap);
    CHECK_INT(tec_image_load(&image, "tests/golden/none.jpg", &arena, &err), ==, TEC_NOT_FOUND);
    CHECK(strstr(err.message, "tests/golden/none.jpg: cannot be opened: No such file"));
    CHECK_INT(tec_image_load(&image, "tests/golden", &arena, &err), ==, TEC_IO);
    CHECK_INT(tec_image_load(&image, FILES "cmyk.jpg", &arena, &err), ==, TEC_UNSUPPORTED);
    CHECK(strstr(err.message, FILES "cmyk.jpg: JPEG picture, 53 x 37"));
    CHECK_INT(heap.live, ==, 0);
    CHECK_INT(tec_image_load(&image, FILES "jpeg_inside.png", &arena, &err), ==, TEC_OK);
    CHECK_INT(image.height, ==, 37);
    CHECK_INT(image.width, ==, 53);
    tec_arena_finish(&arena);
}

static enum tec_status load_and_resize(const char *path, int64_t fail_at)
{
    struct tec_heap heap = {.fail_at = fail_at};
    struct tec_arena arena;
    struct tec_image image, small;
    struct tec_resize_spec spec = {
        .height = 20, .width = 30, .fit = TEC_FIT_CENTRED, .filter = TEC_FILTER_BILINEAR};
    tec_arena_init(&arena, &heap);
    enum tec_status status = tec_image_load(&image, path, &arena, NULL);
    if (status == TEC_OK)
        status = tec_image_resize(&small, &image, spec, &arena, NULL);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

TEST(every_allocation_may_fail)
{
    static const char *const names[] = {FILES "progressive_420.jpg", FILES "interlaced_pal4.png"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        enum tec_status status = TEC_NO_MEMORY;
        int64_t n = 0;
        while (status == TEC_NO_MEMORY && n < 1000)
            status = load_and_resize(names[i], ++n);
        CHECK_INT(status, ==, TEC_OK);
        CHECK_INT(n, >, 4);
    }
}

static enum tec_status plan_of(struct tec_resize_spec spec, struct tec_error *err)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    const struct tec_resize *plan = NULL;
    tec_arena_init(&arena, &heap);
    enum tec_status status = tec_resize_plan(&plan, &spec, &arena, err);
    tec_arena_finish(&arena);
    return status;
}

TEST(plans_that_cannot_be)
{
    struct tec_error err = {0};
    struct tec_resize_spec good = {.in_height = 480,
                                   .in_width = 640,
                                   .channels = 3,
                                   .height = 224,
                                   .width = 224,
                                   .fit = TEC_FIT_CENTRED,
                                   .filter = TEC_FILTER_BILINEAR},
                           bad;
    CHECK_INT(plan_of(good, &err), ==, TEC_OK);
    bad = good;
    bad.in_height = 1;
    bad.in_width = 500;
    CHECK_INT(plan_of(bad, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "500 x 1"));
    bad = good;
    bad.width = 0;
    CHECK_INT(plan_of(bad, &err), ==, TEC_INVALID);
    bad = good;
    bad.in_width = -5;
    CHECK_INT(plan_of(bad, &err), ==, TEC_INVALID);
    bad = good;
    bad.height = bad.width = 65535;
    CHECK_INT(plan_of(bad, &err), ==, TEC_INVALID);
    bad = good;
    bad.sharp = true;
    bad.filter = TEC_FILTER_LANCZOS;
    CHECK_INT(plan_of(bad, &err), ==, TEC_INVALID);
    bad = good;
    bad.channels = 4;
    CHECK_INT(plan_of(bad, &err), ==, TEC_INVALID);
}

/* Runs of one plan: no allocation, nothing outside the buffers (the sanitizers watch), the same
 * floats from bytes and from floats, gray and colour agree. */
static void check_plan(struct tec_resize_spec spec)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    const struct tec_resize *plan = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_resize_plan(&plan, &spec, &arena, NULL) == TEC_OK);
    size_t n_in = (size_t)spec.in_height * (size_t)spec.in_width * (size_t)spec.channels;
    size_t n_out = (size_t)spec.height * (size_t)spec.width * (size_t)spec.channels;
    unsigned char *in = malloc(n_in), *out = malloc(n_out), *again = malloc(n_out);
    float *values = malloc(n_in * sizeof *values), lut[256];
    float *a = malloc(n_out * sizeof *a), *b = malloc(n_out * sizeof *b);
    void *scratch = malloc(tec_resize_scratch(plan));
    REQUIRE(in && out && again && values && a && b && scratch);
    tec_lut_signed(lut);
    for (size_t i = 0; i < n_in; i++) {
        in[i] = (unsigned char)(i * 2654435761u >> 13);
        values[i] = lut[in[i]];
    }
    memset(out, 1, n_out);
    memset(again, 2, n_out);
    int64_t calls = heap.calls;
    tec_resize_run_u8(plan, out, in, scratch);
    tec_resize_run_u8(plan, again, in, scratch);
    tec_resize_run_f32(plan, a, values, scratch);
    tec_resize_run_u8_f32(plan, b, in, lut, scratch);
    CHECK_INT(heap.calls, ==, calls);
    CHECK(memcmp(out, again, n_out) == 0);
    CHECK(memcmp(a, b, n_out * sizeof *a) == 0);
    free(in), free(out), free(again), free(values), free(a), free(b), free(scratch);
    tec_arena_finish(&arena);
}

TEST(plans_run_without_allocation)
{
    static const int sizes[][4] = {{48, 64, 22, 22}, {22, 22, 22, 22}, {9, 130, 40, 50},
                                   {1, 1, 7, 3},     {64, 64, 1, 1},   {5, 7, 60, 7}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int kind = 0; kind < 3 * 8; kind++) {
            int filter = kind % 8;
            struct tec_resize_spec spec = {.in_height = sizes[i][0],
                                           .in_width = sizes[i][1],
                                           .channels = (kind + (int)i) % 2 ? 1 : 3,
                                           .height = sizes[i][2],
                                           .width = sizes[i][3],
                                           .fit = (enum tec_fit)(kind / 8),
                                           .filter = (enum tec_filter)filter,
                                           .pad = 0.0F};
            if (filter > TEC_FILTER_LANCZOS) {
                spec.sharp = true;
                spec.filter = filter == 6 ? TEC_FILTER_BILINEAR : TEC_FILTER_BICUBIC;
            }
            check_plan(spec);
        }
}

TEST(places_and_pads)
{
    static const unsigned char in[2] = {200, 100};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    const struct tec_resize *plan = NULL;
    unsigned char out[8];
    _Alignas(4) unsigned char scratch[256];
    struct tec_resize_spec spec = {.in_height = 1,
                                   .in_width = 2,
                                   .channels = 1,
                                   .height = 4,
                                   .width = 2,
                                   .fit = TEC_FIT_CENTRED,
                                   .filter = TEC_FILTER_BILINEAR,
                                   .pad = 7.0F};
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_resize_plan(&plan, &spec, &arena, NULL) == TEC_OK);
    REQUIRE(tec_resize_scratch(plan) <= sizeof scratch);
    tec_resize_run_u8(plan, out, in, scratch);
    CHECK(memcmp(out, ((unsigned char[]){7, 7, 200, 100, 7, 7, 7, 7}), 8) == 0);
    spec.fit = TEC_FIT_CORNER;
    REQUIRE(tec_resize_plan(&plan, &spec, &arena, NULL) == TEC_OK);
    tec_resize_run_u8(plan, out, in, scratch);
    CHECK(memcmp(out, ((unsigned char[]){7, 7, 7, 7, 7, 7, 200, 100}), 8) == 0);
    tec_arena_finish(&arena);
}

TEST(turned_pictures_and_bytes)
{
    unsigned char hwc[] = {1, 2, 3, 4, 5, 6}, bytes[6];
    float values[] = {NAN, -0.5F, 2.0F, 0.999F, 1.0F, 0.5F};
    struct tec_image image = {1, 2, 3, hwc};
    tec_image_rotate180(&image);
    CHECK(memcmp(hwc, ((unsigned char[]){4, 5, 6, 1, 2, 3}), 6) == 0);
    tec_u8_from_unit(bytes, values, 6);
    CHECK(memcmp(bytes, ((unsigned char[]){0, 0, 255, 254, 255, 127}), 6) == 0);
    float plain[] = {NAN, -3.0F, 300.0F, 0.5F, 1.5F, 254.6F};
    tec_u8_from_plain(bytes, plain, 6);
    CHECK(memcmp(bytes, ((unsigned char[]){0, 0, 255, 0, 2, 255}), 6) == 0);
}

static enum tec_status plan_reshape(struct tec_reshape_spec spec, struct tec_error *err)
{
    const struct tec_reshape *plan = NULL;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    enum tec_status status = tec_reshape_plan(&plan, &spec, &arena, err);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

TEST(reshapes_are_refused)
{
    struct tec_error err;
    struct tec_reshape_spec spec = {
        .kind = TEC_RESHAPE_CROP, .in_height = 5, .in_width = 7, .height = 4, .width = 3};
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "resize-crop makes squares, not 3 x 4"));
    spec.kind = TEC_RESHAPE_STRETCH;
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_OK);
    spec.in_width = 0;
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "from 0 x 5 to 3 x 4"));
    spec = (struct tec_reshape_spec){
        .kind = TEC_RESHAPE_BOX, .in_height = 65535, .in_width = 3, .height = 224, .width = 224};
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_INVALID); /* a square of 4 Gi pixels */
    spec.kind = TEC_N_RESHAPES;
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "of kind 7"));
    spec.kind = TEC_RESHAPE_AREA;
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "the middle 0 of an edge of 0 pixels"));
    spec.edge = 256;
    spec.middle = 0.95;
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "a square of 65535 x 65535 pixels"));
    spec.in_height = 300;
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_OK);
    spec = (struct tec_reshape_spec){.kind = TEC_RESHAPE_MIDDLE,
                                     .in_height = 65535,
                                     .in_width = 3,
                                     .height = 224,
                                     .width = 224,
                                     .edge = 4096,
                                     .middle = 0.95};
    CHECK_INT(plan_reshape(spec, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "65535 lines of 4096 pixels between two resizes"));
}

TEST(shorter_edge_truncates)
{
    int height = 37, width = 53;
    tec_resize_shorter_edge(&height, &width, 40);
    CHECK_INT(height, ==, 40);
    CHECK_INT(width, ==, 57);
    tec_resize_shorter_edge(&width, &height, 2000000000);
    CHECK_INT(width, ==, INT32_MAX);
}

TAP_MAIN
