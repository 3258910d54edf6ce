/* worker_pictures.c - pictures that a request sends as JPEG or PNG files: decoded before anybody
 * reads them, for they are a tenth of the bytes on a robot's radio link. */
#include "base/image/image.h"
#include "tools/serve/worker_own.h"

#include <string.h>

/* Pixels of one picture (1920 x 1088 fit) and of a request's pictures together: a file of a few
 * kilobytes may decode to very many, and the other robots wait meanwhile. */
enum { MOST_PIXELS = 1 << 21, MOST_TOGETHER = 1 << 22 };

/* Bytes of any kind, or the array that cv2.imencode returns: [n] or [n, 1]. */
static bool is_file(const struct tec_value *v)
{
    bool array = v->kind == TEC_VALUE_U8 && (v->rank == 1 || (v->rank == 2 && v->shape[1] == 1));
    return (array || (v->kind == TEC_VALUE_TEXT && v->rank == 0)) &&
           tec_image_begins(v->data, v->bytes);
}

static bool is_camera(const struct tec_robot *robot, const char *name)
{
    for (int i = 0; robot && i < robot->n_cameras; i++)
        if (robot->cameras[i].input && strcmp(robot->cameras[i].input, name) == 0)
            return true;
    return false;
}

static bool takes_picture(const struct tec_opened *opened, const char *name)
{
    const struct tec_pipeline *p = opened->pipeline;
    for (int i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].kind == TEC_INPUT_IMAGE && strcmp(p->inputs[i].name, name) == 0)
            return true;
    for (const struct tec_session *s = opened->engine->session; s; s = tec_session_next(s))
        if (is_camera(tec_session_robot(s), name))
            return true;
    return false;
}

enum tec_status tec_worker_pictures(struct tec_worker *w, struct tec_error *err)
{
    struct tec_request_message *m = &w->request;
    size_t left = MOST_TOGETHER;
    for (size_t i = 0; i < m->n; i++) {
        struct tec_value *v = &m->values[i];
        struct tec_image image;
        if (!is_file(v) || !takes_picture(&w->opened, v->name))
            continue;
        size_t most = left < MOST_PIXELS ? left : MOST_PIXELS;
        TEC_TRY(tec_context(err, tec_image_decode(&image, v->data, v->bytes, most, &w->moment, err),
                            "%.80s", v->name));
        left -= (size_t)image.height * (size_t)image.width;
        *v = (struct tec_value){.name = v->name,
                                .kind = TEC_VALUE_U8,
                                .rank = 3,
                                .shape = {image.height, image.width, image.channels},
                                .data = image.pixels,
                                .bytes = (size_t)image.height * (size_t)image.width *
                                         (size_t)image.channels};
    }
    return TEC_OK;
}
