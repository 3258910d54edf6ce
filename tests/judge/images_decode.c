/* images_decode.c - judges images/decode: each file to its pixels, or a refusal. */
#include "tests/judge/images.h"

#include <string.h>

static void judge_pixels(struct tec_verify *v, const struct tec_tensors *expected, const char *name,
                         const struct tec_image *got)
{
    struct tec_error err;
    struct tec_image want;
    enum tec_status status = tec_images_picture(&want, v, expected, name, &err);
    if (status == TEC_OK && (want.height != got->height || want.width != got->width))
        status = tec_fail(&err, TEC_SHAPE, "%s decodes to %d x %d, expected %d x %d", name,
                          got->width, got->height, want.width, want.height);
    if (status != TEC_OK) {
        tec_verify_cannot(v, name, &err);
        return;
    }
    tec_verify_compared(v, name);
    tec_images_bytes(v, name, got->pixels, want.pixels,
                     (size_t)want.height * (size_t)want.width * 3);
}

/* "either": a refusal, or a picture of the size that the case knows. */
static void judge_either(struct tec_verify *v, const json_t *file, const char *name,
                         enum tec_status status, const struct tec_image *got,
                         const struct tec_error *err)
{
    const json_t *height = json_object_get(file, "height"), *width = json_object_get(file, "width");
    bool sized = !height || (json_integer_value(height) == got->height &&
                             json_integer_value(width) == got->width);
    bool ok = status != TEC_OK || sized;
    tec_verify_report(v, name, ok ? 0.0 : 1.0, 0.0, 0.0, ok, NULL,
                      status != TEC_OK ? err->message
                      : ok             ? "decodes"
                                       : "decodes to another size");
}

static void judge_file(struct tec_verify *v, const struct tec_tensors *expected, const json_t *file)
{
    struct tec_error err = {0};
    struct tec_image got = {0};
    const char *name = json_string_value(json_object_get(file, "file"));
    const char *expect = json_string_value(json_object_get(file, "expect"));
    if (!name || !expect || strchr(name, '/')) {
        tec_fail(&err, TEC_MALFORMED, "a file without a plain name or without 'expect'");
        tec_verify_cannot(v, name ? name : "file", &err);
        return;
    }
    const char *path = tec_arena_printf(v->arena, "%s/files/%s", v->dir, name);
    enum tec_status status = path ? tec_image_load(&got, path, v->arena, &err)
                                  : tec_fail(&err, TEC_NO_MEMORY, "no memory for a path");
    bool ok = strcmp(expect, "ok") == 0;
    /* The first two say nothing about the picture. */
    if (status == TEC_IO || status == TEC_NO_MEMORY || (ok && status != TEC_OK))
        tec_verify_cannot(v, name, &err);
    else if (ok)
        judge_pixels(v, expected, name, &got);
    else if (strcmp(expect, "reject") == 0)
        tec_verify_report(v, name, status == TEC_OK, 0.0, 0.0, status != TEC_OK, NULL,
                          status == TEC_OK ? "accepted, must be refused" : err.message);
    else if (strcmp(expect, "either") == 0)
        judge_either(v, file, name, status, &got, &err);
    else {
        tec_fail(&err, TEC_UNSUPPORTED, "unknown expectation '%s'", expect);
        tec_verify_cannot(v, name, &err);
    }
}

enum tec_status tec_verify_images_decode(struct tec_verify *v, struct tec_error *err)
{
    struct tec_tensors *expected = NULL;
    const json_t *files = json_object_get(v->json, "files"), *file;
    size_t i;
    if (json_array_size(files) == 0)
        return tec_fail(err, TEC_MALFORMED, "%s/case.json: no files", v->dir);
    TEC_TRY(tec_images_open(&expected, v, "expected.safetensors", err));
    json_array_foreach(files, i, file)
    {
        struct tec_arena_mark mark = tec_arena_mark(v->arena);
        judge_file(v, expected, file);
        tec_arena_rewind(v->arena, mark);
    }
    tec_tensors_close(expected);
    return TEC_OK;
}
