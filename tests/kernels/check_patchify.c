/* check_patchify.c - checks that pictures are cut into patches exactly: every byte has one place
 * and one value. */
#include "tests/kernels/conform.h"

#include <stdio.h>

enum { COLOURS = 3 * 256 };

static void patchify_shape(struct conform *c, int pictures, int height, int width, int patch)
{
    int across = width / patch, down = height / patch, patches = across * down;
    int cols = 3 * patch * patch;
    struct tec_patchify_args a = {
        .max_pictures = pictures, .height = height, .width = width, .patch = patch};
    const uint8_t **pointers = conform_buf(c, (size_t)pictures, sizeof *pointers);
    for (int i = 0; i < pictures; i++) {
        uint8_t *bytes = conform_buf(c, (size_t)height * (size_t)width * 3, 1);
        for (int j = 0; j < height * width * 3; j++)
            bytes[j] = (uint8_t)conform_int(0, 255);
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
                double want = (double)lut[256 * channel + pointers[i][y * width * 3 + x]];
                size_t out = (size_t)row * (size_t)a.ldy + (size_t)at;
                conform_close(c, (double)((const float *)c->got[0])[out], want, 0,
                              "picture %d byte %d,%d", i, y, x);
                conform_close(c, (double)((const float *)c->want[0])[out], want, 0,
                              "reference picture %d byte %d,%d", i, y, x);
            }
    if (width >= 224) {
        char name[40];
        snprintf(name, sizeof name, "%dx%dx%d/%d", pictures, height, width, patch);
        conform_time(c, name, &call, 5.0 * pictures * patches * cols, 0);
    }
    conform_end(c);
}

void conform_patchify(struct conform *c)
{
    patchify_shape(c, 1, 1, 1, 1);
    patchify_shape(c, 2, 5, 5, 5);
    patchify_shape(c, 3, 28, 42, 14);
    patchify_shape(c, 2, 30, 45, 14); /* some pixels are left that no patch covers */
    patchify_shape(c, 3, 224, 224, 14);
    patchify_shape(c, 1, 19, 23, 1);
    for (int i = 0; i < 20; i++) {
        int patch = conform_int(1, 9);
        patchify_shape(c, conform_int(1, 3), patch * conform_int(1, 6), patch * conform_int(1, 6),
                       patch);
    }
}
