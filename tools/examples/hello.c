/* hello.c - one observation in, actions and text out, over tectum.h alone.
 *
 *     hello [ROOT]    ROOT holds pipelines/, policies/ and the demo's checkpoint; "." */
#include "tectum.h"

#include <stdio.h>

static int failed(const char *what, const struct tectum_error *err)
{
    fprintf(stderr, "hello: %s: %s\n", what, err->message);
    return 1;
}

int main(int argc, char **argv)
{
    static uint8_t scene[64 * 64 * 3], wrist[64 * 64 * 3];
    static double actions[64 * 32];
    static struct tectum_piece piece;
    const float state[4] = {0.0F, 0.6F, 0.2F, 1.0F};
    const char prompt[] = "press the button";
    const char *root = argc > 1 ? argv[1] : ".";
    const struct tectum_options options = {.pipeline = "pipelines/demo_metaworld.lua",
                                           .root = root};
    struct tectum *engine = NULL;
    struct tectum_chunk chunk;
    struct tectum_error err;
    int64_t seen;

    for (int i = 0; i < 64 * 64 * 3; i++) /* a camera would stand here */
        scene[i] = wrist[i] = (uint8_t)(i / 192 * 4);
    const struct tectum_value values[] = {
        {"observation/image", TECTUM_TYPE_U8, 3, {64, 64, 3}, scene, sizeof scene},
        {"observation/wrist_image", TECTUM_TYPE_U8, 3, {64, 64, 3}, wrist, sizeof wrist},
        {"observation/state", TECTUM_TYPE_F32, 1, {4}, state, sizeof state},
        {"prompt", TECTUM_TYPE_TEXT, 0, {0}, prompt, sizeof prompt - 1}};

    if (tectum_open(&engine, &options, &err) != TECTUM_OK)
        return failed("open", &err);
    if (tectum_submit(engine, values, 4, tectum_now(), &seen, &err) != TECTUM_OK)
        return failed("submit", &err);
    if (tectum_wait(engine, seen, 60000000000, actions, sizeof actions / sizeof *actions, &chunk,
                    &err) != TECTUM_OK)
        return failed("wait", &err);
    for (int c = 0; c < chunk.columns; c++)
        printf("%s%.4f", c ? " " : "first action: ", actions[c]);
    printf("\ntext: ");
    do {
        if (tectum_read(engine, 60000000000, &piece, &err) != TECTUM_OK)
            return failed("read", &err);
        fputs(piece.text, stdout);
    } while (piece.token >= 0);
    printf(" (%s)\n", piece.reason);
    tectum_close(&engine);
    return 0;
}
