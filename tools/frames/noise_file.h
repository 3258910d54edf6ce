/* noise_file.h - recorded noise: what the actions of each frame start from. */
#ifndef TEC_TOOLS_FRAMES_NOISE_FILE_H
#define TEC_TOOLS_FRAMES_NOISE_FILE_H

#include "base/store/safetensors.h"
#include "graph/model/model.h"

/* Zeroed: none. */
struct tec_noise_file {
    struct tec_tensors *tensors;
    const struct tec_stored *stored;
    const char *name; /* "file#tensor", borrowed */
    size_t chunk;     /* horizon * dim */
    int64_t frames;   /* -1: one chunk for all of them */
    float *values;    /* of the newest frame */
    struct tec_heap *heap;
};

/* `name` is "@file.safetensors#tensor" (the @ may be left out): [horizon, dim], the same in every
 * frame, or [frames, horizon, dim]. */
enum tec_status tec_frame_noise_file_open(struct tec_noise_file *noise, const char *name,
                                          const struct tec_flow *flow, struct tec_heap *heap,
                                          struct tec_error *err);
void tec_frame_noise_file_close(struct tec_noise_file *noise);

/* The chunk of a frame, valid until the next call; NULL when nothing is open. TEC_NOT_FOUND past
 * the last one. */
enum tec_status tec_frame_noise_file_at(struct tec_noise_file *noise, int64_t frame,
                                        const float **out, struct tec_error *err);

#endif
