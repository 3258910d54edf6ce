/* check_patchify.c - checks that pictures are cut into patches exactly: every byte has one place
 * and one value. */
#include "tests/kernels/conform.h"

#include <stdio.h>
#include <string.h>

enum { COLOURS = 3 * 256 };

/* The value of element `at` of a picture, by the kernel's definition. */
static double value_of(const struct tec_patchify_args *a, const uint8_t *picture, int at)
{
    float x;
    if (!a->floats)
        return (double)a->lut[256 * (at % 3) + picture[at]];
    memcpy(&x, picture + (size_t)at * sizeof x, sizeof x);
    return (double)((x - a->mean[at % 3]) / a->std[at % 3]);
}

static void fill_picture(const struct tec_patchify_args *a, uint8_t *bytes)
{
    for (int i = 0; i < a->height * a->width * 3; i++) {
        float x = (float)conform_int(0, 1 << 20) / (float)(1 << 20);
        if (a->floats)
            memcpy(bytes + (size_t)i * sizeof x, &x, sizeof x);
        else
            bytes[i] = (uint8_t)conform_int(0, 255);
    }
}

/* Sizes of one check; `floats`: pictures are float32. */
struct pictures {
    int n, height, width, patch, floats;
};

static void patchify_shape(struct conform *c, struct pictures p)
{
    int pictures = p.n, height = p.height, width = p.width, patch = p.patch;
    int across = width / patch, down = height / patch, patches = across * down;
    int cols = 3 * patch * patch;
    struct tec_patchify_args a = {.max_pictures = pictures,
                                  .height = height,
                                  .width = width,
                                  .patch = patch,
                                  .mean = {0.5F, 0.25F, 0.125F},
                                  .std = {0.5F, 0.75F, 0.3F},
                                  .floats = p.floats};
    const uint8_t **pointers = conform_buf(c, (size_t)pictures, sizeof *pointers);
    for (int i = 0; i < pictures; i++) {
        uint8_t *bytes = conform_buf(c, (size_t)height * (size_t)width * 3, p.floats ? 4 : 1);
        fill_picture(&a, bytes);
        pointers[i] = bytes;
    }
    float *lut = conform_buf(c, COLOURS, sizeof *lut);
    conform_fill(lut, COLOURS, CONFORM_NORMAL, 1.0F);
    a.pictures = pointers;
    a.lut = lut;
    a.ldy = conform_ld(cols);
    a.y = conform_buf(c, (size_t)pictures * (size_t)patches * (size_t)a.ldy, sizeof *a.y);
    a.count = conform_live(c, pictures);
    struct conform_call call = {.ref = &a, .fast = &a, .live = pictures, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){
        a.y, pictures * patches, (size_t)cols * 4, (size_t)a.ldy * 4, NULL, 0, patches};
    conform_run(c, &call);
    for (int i = 0; i < pictures; i++)
        for (int y = 0; y < down * patch; y++)
            for (int x = 0; x < across * patch * 3; x++) { /* each byte has one place */
                int channel = x % 3, column = x / 3;
                int row = i * patches + y / patch * across + column / patch;
                int at = (channel * patch + y % patch) * patch + column % patch;
                double want = value_of(&a, pointers[i], y * width * 3 + x);
                size_t out = (size_t)row * (size_t)a.ldy + (size_t)at;
                conform_close(c, (double)((const float *)c->got[0])[out], want, 0,
                              "picture %d byte %d,%d", i, y, x);
                conform_close(c, (double)((const float *)c->want[0])[out], want, 0,
                              "reference picture %d byte %d,%d", i, y, x);
            }
    if (width >= 224) {
        char name[40];
        snprintf(name, sizeof name, "%dx%dx%d/%d%s", pictures, height, width, patch,
                 p.floats ? " f32" : "");
        conform_time(c, name, &call, 5.0 * pictures * patches * cols, 0);
    }
    conform_end(c);
}

void conform_patchify(struct conform *c)
{
    for (int f = 0; f < 2; f++) {
        patchify_shape(c, (struct pictures){1, 1, 1, 1, f});
        patchify_shape(c, (struct pictures){2, 5, 5, 5, f});
        patchify_shape(c, (struct pictures){3, 28, 42, 14, f});
        patchify_shape(c, (struct pictures){2, 30, 45, 14, f}); /* some pixels are left out */
        patchify_shape(c, (struct pictures){3, 224, 224, 14, f});
        patchify_shape(c, (struct pictures){1, 19, 23, 1, f});
        for (int i = 0; i < 20; i++) {
            int patch = conform_int(1, 9), height = patch * conform_int(1, 6);
            patchify_shape(c, (struct pictures){conform_int(1, 3), height,
                                                patch * conform_int(1, 6), patch, f});
        }
    }
}
