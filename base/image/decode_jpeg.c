/* decode_jpeg.c - JPEG through libjpeg-turbo at its defaults: slow integer DCT, triangle chroma.
 *
 * Corrupt data that the library would only warn of is an error here: it paints gray where data is
 * missing, and a robot would act on it. */
#include "base/image/decode.h"

#include <jerror.h>
#include <setjmp.h>
#include <string.h>

/* A scan may cost ten bytes and walk over the whole picture; real files have at most a dozen. */
enum { MOST_SCANS = 100 };

struct job {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct tec_jpeg_memory memory;
    struct jpeg_memory_mgr *own_memory; /* the library's; holds what its create call took */
    struct tec_arena scratch;
    struct tec_arena *arena; /* of the pixels */
    struct tec_image *out;
    struct tec_error *err;
    size_t n, most;
    char limit[40];
    enum tec_status status;
    jmp_buf stop;
};

static struct job *job_of(j_common_ptr cinfo)
{
    struct tec_jpeg_memory *memory = cinfo->client_data;
    return (struct job *)(void *)((char *)memory - offsetof(struct job, memory));
}

_Noreturn static void on_error(j_common_ptr cinfo)
{
    struct job *job = job_of(cinfo);
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    if (job->memory.refused)
        job->status = tec_fail(job->err, TEC_NO_MEMORY, "JPEG picture: out of memory in decoding");
    else
        job->status =
            tec_fail(job->err, TEC_MALFORMED, "JPEG picture of %zu bytes: %s", job->n, text);
    longjmp(job->stop, 1);
}

/* Cameras pad between segments and write odd JFIF versions; every other warning means lost pixels.
 */
static void on_message(j_common_ptr cinfo, int level)
{
    int code = cinfo->err->msg_code;
    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR)
        on_error(cinfo);
}

static void on_output(j_common_ptr cinfo)
{
    (void)cinfo;
}

_Noreturn static void refuse(struct job *job, enum tec_status status, const char *what)
{
    job->status = tec_fail(job->err, status, "JPEG picture, %u x %u: %s", job->cinfo.image_width,
                           job->cinfo.image_height, what);
    longjmp(job->stop, 1);
}

static void on_progress(j_common_ptr cinfo)
{
    struct job *job = job_of(cinfo);
    if (job->cinfo.input_scan_number > MOST_SCANS)
        refuse(job, TEC_MALFORMED, "more than 100 scans");
}

static void source_idle(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

static boolean source_fill(j_decompress_ptr cinfo)
{
    ERREXIT(cinfo, JERR_INPUT_EOF);
    return FALSE;
}

static void source_skip(j_decompress_ptr cinfo, long n)
{
    if (n <= 0)
        return;
    if ((size_t)n > cinfo->src->bytes_in_buffer)
        ERREXIT(cinfo, JERR_INPUT_EOF);
    cinfo->src->next_input_byte += n;
    cinfo->src->bytes_in_buffer -= (size_t)n;
}

/* A coded block takes at least one bit, so a small file cannot ask for a large buffer. */
static void check_header(struct job *job)
{
    const struct jpeg_decompress_struct *c = &job->cinfo;
    if (c->num_components != 3 && c->num_components != 1)
        refuse(job, TEC_UNSUPPORTED, "neither gray nor 3 colours (CMYK?); convert it to RGB");
    if (c->arith_code)
        refuse(job, TEC_UNSUPPORTED, "arithmetic coding is not supported; use Huffman coding");
    if (c->data_precision != 8)
        refuse(job, TEC_UNSUPPORTED, "more than 8 bits a sample are not supported");
    uint64_t blocks = 0;
    for (int i = 0; i < c->num_components; i++)
        blocks += (uint64_t)c->comp_info[i].width_in_blocks * c->comp_info[i].height_in_blocks;
    snprintf(job->limit, sizeof job->limit, "more than %zu pixels", job->most);
    if ((uint64_t)c->image_width * c->image_height > job->most)
        refuse(job, TEC_UNSUPPORTED, job->limit);
    if (blocks / 8 > job->n)
        refuse(job, TEC_MALFORMED, "the file is too short for so many pixels");
}

static void set_up(struct job *job, const unsigned char *bytes)
{
    struct jpeg_decompress_struct *c = &job->cinfo;
    c->err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    job->errors.output_message = on_output;
    c->client_data = &job->memory;
    jpeg_create_decompress(c);
    job->own_memory = c->mem;
    c->mem = &job->memory.methods;
    job->source = (struct jpeg_source_mgr){
        .next_input_byte = bytes,
        .bytes_in_buffer = job->n,
        .init_source = source_idle,
        .fill_input_buffer = source_fill,
        .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = source_idle,
    };
    c->src = &job->source;
    job->progress.progress_monitor = on_progress;
    c->progress = &job->progress;
}

static void decode(struct job *job, const unsigned char *bytes)
{
    struct jpeg_decompress_struct *c = &job->cinfo;
    set_up(job, bytes);
    (void)jpeg_read_header(c, TRUE);
    check_header(job);
    c->out_color_space = JCS_RGB;
    job->status =
        tec_image_new(job->out, (int)c->image_height, (int)c->image_width, 3, job->arena, job->err);
    if (job->status != TEC_OK)
        return;
    (void)jpeg_start_decompress(c);
    size_t stride = (size_t)c->image_width * 3;
    while (c->output_scanline < c->output_height) {
        JSAMPROW row = job->out->pixels + c->output_scanline * stride;
        (void)jpeg_read_scanlines(c, &row, 1);
    }
    (void)jpeg_finish_decompress(c);
}

/* In a function of its own, so that no local of the caller changes between setjmp and longjmp. */
static void attempt(struct job *job, const unsigned char *bytes)
{
    if (setjmp(job->stop) == 0)
        decode(job, bytes);
}

enum tec_status tec_image_decode_jpeg(struct tec_image *out, const unsigned char *bytes, size_t n,
                                      size_t most, struct tec_arena *arena, struct tec_error *err)
{
    struct job job;
    memset(&job, 0, sizeof job);
    job.arena = arena;
    job.out = out;
    job.err = err;
    job.n = n;
    job.most = most;
    tec_arena_init(&job.scratch, arena->heap);
    tec_jpeg_memory_init(&job.memory, &job.scratch);
    attempt(&job, bytes);
    job.cinfo.mem = job.own_memory ? job.own_memory : job.cinfo.mem;
    jpeg_destroy_decompress(&job.cinfo);
    tec_arena_finish(&job.scratch);
    return job.status;
}
