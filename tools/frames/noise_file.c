/* noise_file.c - reads recorded noise, the values that each frame's actions start from. */
#include "tools/frames/noise_file.h"

#include "graph/run/launch/noise.h"

#include <stdio.h>
#include <string.h>

static enum tec_status check_shape(struct tec_noise_file *noise, const struct tec_flow *flow,
                                   struct tec_error *err)
{
    const struct tec_stored *s = noise->stored;
    int lead = s->rank - 2;
    if (lead < 0 || lead > 1 || s->shape[lead] != flow->horizon || s->shape[lead + 1] != flow->dim)
        return tec_fail(err, TEC_SHAPE,
                        "--noise %s: must be [%d, %d] or [frames, %d, %d], has rank %d",
                        noise->name, flow->horizon, flow->dim, flow->horizon, flow->dim, s->rank);
    noise->chunk = (size_t)flow->horizon * (size_t)flow->dim;
    noise->frames = lead ? s->shape[0] : -1;
    noise->values = tec_heap_get(noise->heap, noise->chunk * sizeof(float));
    return noise->values ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for noise");
}

static enum tec_status open_tensor(struct tec_noise_file *noise, const struct tec_flow *flow,
                                   struct tec_error *err)
{
    const char *hash = strstr(noise->name, ".safetensors#");
    char path[4096];
    if (!hash)
        return tec_fail(err, TEC_MALFORMED, "--noise %s: expected @file.safetensors#tensor",
                        noise->name);
    hash += strlen(".safetensors");
    if (snprintf(path, sizeof path, "%.*s", (int)(hash - noise->name), noise->name) >=
        (int)sizeof path)
        return tec_fail(err, TEC_MALFORMED, "--noise: the path is too long");
    TEC_TRY(tec_context(err, tec_tensors_open(&noise->tensors, path, noise->heap, err), "--noise"));
    noise->stored = tec_tensors_find(noise->tensors, hash + 1);
    if (!noise->stored)
        return tec_fail(err, TEC_NOT_FOUND, "--noise: %s has no tensor '%s'", path, hash + 1);
    return check_shape(noise, flow, err);
}

enum tec_status tec_frame_noise_file_open(struct tec_noise_file *noise, const char *name,
                                          const struct tec_flow *flow, struct tec_heap *heap,
                                          struct tec_error *err)
{
    *noise = (struct tec_noise_file){.name = name[0] == '@' ? name + 1 : name, .heap = heap};
    enum tec_status status = open_tensor(noise, flow, err);
    if (status != TEC_OK)
        tec_frame_noise_file_close(noise);
    return status;
}

void tec_frame_noise_file_close(struct tec_noise_file *noise)
{
    if (noise->tensors)
        tec_heap_put(noise->heap, noise->values);
    tec_tensors_close(noise->tensors);
    *noise = (struct tec_noise_file){.tensors = NULL};
}

enum tec_status tec_frame_noise_file_at(struct tec_noise_file *noise, int64_t frame,
                                        const float **out, struct tec_error *err)
{
    *out = NULL;
    if (!noise->tensors)
        return TEC_OK;
    if (noise->frames >= 0 && frame >= noise->frames)
        return tec_fail(err, TEC_NOT_FOUND, "--noise %s: has %lld frames, frame %lld is asked for",
                        noise->name, (long long)noise->frames, (long long)frame);
    uint64_t first = noise->frames >= 0 ? (uint64_t)frame * noise->chunk : 0;
    TEC_TRY(tec_tensors_read_f32(noise->tensors, noise->stored, first, noise->values, noise->chunk,
                                 err));
    TEC_TRY(tec_context(err, tec_noise_check(noise->values, noise->chunk, err),
                        "--noise %.200s: frame %lld", noise->name, (long long)frame));
    *out = noise->values;
    return TEC_OK;
}
