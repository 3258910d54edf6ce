/* decode_png.c - PNG through libpng: every colour type to RGB8, alpha and gamma ignored. */
#include "base/image/decode.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

/* Deflate never expands by more (258 bytes from two bits). */
enum { MOST_EXPANSION = 1032 };

struct job {
    png_structp png;
    png_infop info;
    const unsigned char *bytes;
    size_t n, used, most;
    bool refused; /* the heap had no more */
    char limit[40];
    struct tec_arena *arena;
    struct tec_image *out;
    struct tec_error *err;
    enum tec_status status;
    jmp_buf stop;
};

_Noreturn static void on_error(png_structp png, png_const_charp text)
{
    struct job *job = png_get_error_ptr(png);
    if (job->refused)
        job->status = tec_fail(job->err, TEC_NO_MEMORY, "PNG picture: out of memory in decoding");
    else
        job->status =
            tec_fail(job->err, TEC_MALFORMED, "PNG picture of %zu bytes: %s", job->n, text);
    longjmp(job->stop, 1);
}

/* libpng's warnings concern chunks that are not needed. */
static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t size)
{
    struct job *job = png_get_mem_ptr(png);
    void *p = tec_heap_get(job->arena->heap, size);
    job->refused |= !p;
    return p;
}

static void on_free(png_structp png, png_voidp p)
{
    const struct job *job = png_get_mem_ptr(png);
    tec_heap_put(job->arena->heap, p);
}

static void on_read(png_structp png, png_bytep dst, size_t n)
{
    struct job *job = png_get_io_ptr(png);
    if (n > job->n - job->used)
        png_error(png, "the file ends early");
    memcpy(dst, job->bytes + job->used, n);
    job->used += n;
}

_Noreturn static void refuse(struct job *job, enum tec_status status, const char *what)
{
    job->status = tec_fail(job->err, status, "PNG picture, %u x %u: %s",
                           png_get_image_width(job->png, job->info),
                           png_get_image_height(job->png, job->info), what);
    longjmp(job->stop, 1);
}

static void check_header(struct job *job)
{
    uint64_t width = png_get_image_width(job->png, job->info);
    uint64_t height = png_get_image_height(job->png, job->info);
    unsigned depth = png_get_bit_depth(job->png, job->info);
    unsigned bits = depth * png_get_channels(job->png, job->info);
    if (width > TEC_IMAGE_SIDE || height > TEC_IMAGE_SIDE)
        refuse(job, TEC_UNSUPPORTED, "a side above 65535");
    snprintf(job->limit, sizeof job->limit, "more than %zu pixels", job->most);
    if (width * height > job->most)
        refuse(job, TEC_UNSUPPORTED, job->limit);
    if (depth == 16 && png_get_color_type(job->png, job->info) == PNG_COLOR_TYPE_GRAY)
        refuse(job, TEC_UNSUPPORTED, "16-bit gray (depth?) has no 8-bit meaning; convert it first");
    if (width * height * bits / 8 / MOST_EXPANSION > job->n)
        refuse(job, TEC_MALFORMED, "the file is too short for so many pixels");
}

/* Everything to 8-bit RGB without blending or colour correction. */
static int set_transforms(struct job *job)
{
    png_structp png = job->png;
    png_byte type = png_get_color_type(png, job->info);
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    else if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, job->info) < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (!(type & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->info);
    return passes;
}

static void decode(struct job *job)
{
    job->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, job, on_error, on_warning, job,
                                        on_malloc, on_free);
    job->info = job->png ? png_create_info_struct(job->png) : NULL;
    if (!job->info) {
        job->status = tec_fail(job->err, TEC_NO_MEMORY, "PNG picture: libpng cannot be started");
        return;
    }
    png_structp png = job->png;
    png_set_read_fn(png, job, on_read);
    /* Known ancillary chunks too: their parsers are the larger part of what could go wrong. */
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_user_limits(png, 0x7fffffff, 0x7fffffff); /* check_header says it better */
    png_read_info(png, job->info);
    check_header(job);
    int height = (int)png_get_image_height(png, job->info);
    int width = (int)png_get_image_width(png, job->info);
    job->status = tec_image_new(job->out, height, width, 3, job->arena, job->err);
    if (job->status != TEC_OK)
        return;
    int passes = set_transforms(job);
    size_t stride = (size_t)width * 3;
    if (png_get_rowbytes(png, job->info) != stride)
        png_error(png, "rows are not RGB");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < height; y++)
            png_read_row(png, job->out->pixels + (size_t)y * stride, NULL);
    png_read_end(png, NULL);
}

/* In a function of its own, so that no local of the caller changes between setjmp and longjmp. */
static void attempt(struct job *job)
{
    if (setjmp(job->stop) == 0)
        decode(job);
}

enum tec_status tec_image_decode_png(struct tec_image *out, const unsigned char *bytes, size_t n,
                                     size_t most, struct tec_arena *arena, struct tec_error *err)
{
    struct job job;
    memset(&job, 0, sizeof job);
    job.bytes = bytes;
    job.n = n;
    job.most = most;
    job.arena = arena;
    job.out = out;
    job.err = err;
    attempt(&job);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    return job.status;
}
