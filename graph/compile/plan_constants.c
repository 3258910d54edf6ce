/* plan_constants.c - what a plan uploads once: tables of pixels, of patches, of lists and of
 * angles.
 *
 * Runs at load; captures hold the addresses. */
#include "graph/compile/plan.h"
#include "graph/model/program.h"

#include <math.h>
#include <string.h>

enum tec_status tec_plan_constant(struct tec_plan *p, size_t size, void *out, struct tec_error *err)
{
    void *block = tec_device_get(p->device, size);
    if (!block)
        return tec_fail(err, TEC_NO_MEMORY, "constants need %zu bytes", size);
    p->bytes.constants += (int64_t)size;
    memcpy(out, &block, sizeof block);
    return TEC_OK;
}

/* Room for `rows` rows of cos and sin of the pairs of a head; *line is room for one of them on the
 * host. */
static enum tec_status take_angles(struct tec_plan *p, int rows, int head_dim, float **out,
                                   float **line, struct tec_error *err)
{
    size_t row = (size_t)head_dim * sizeof(float);
    TEC_TRY(tec_plan_constant(p, (size_t)rows * row, out, err));
    *line = TEC_NEW(&p->arena, (size_t)head_dim, float);
    return *line ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a rotation table");
}

static void put_angles(const struct tec_plan *p, float *out, int at, const float *line,
                       int head_dim)
{
    tec_device_upload(p->device, TEC_STREAM_MAIN, out + (size_t)at * (size_t)head_dim, line,
                      (size_t)head_dim * sizeof *line);
}

/* cos and sin of pair i of a row. Angles are float64, or float32 step by step where the model's
 * published code computes them so. */
static void put_pair(const struct tec_rotation *r, double turn, int at, int i, float *line)
{
    double angle = r->f32 ? (double)((float)at * (float)turn) : at * turn;
    line[(ptrdiff_t)i * 2] = (float)cos(angle);
    line[(ptrdiff_t)i * 2 + 1] = (float)sin(angle);
}

/* A row for every position; with sections also rows for those of pictures, which each prefill
 * fills. */
static enum tec_status fill_rotation(struct tec_plan *p, const struct tec_rotation *r, float **out,
                                     struct tec_error *err)
{
    int dim = p->model->text.stack.head_dim, pictures = 0;
    float *line = NULL;
    if (r->sections[0])
        pictures = tec_vision_tokens(&p->model->vision, p->spec.pictures);
    TEC_TRY(take_angles(p, p->positions + pictures, dim, out, &line, err));
    for (int at = 0; at < p->positions; at++) {
        for (int i = 0; i < dim / 2; i++)
            put_pair(r, tec_model_angle(r, dim, i), at, i, line);
        put_angles(p, *out, at, line, dim);
    }
    return TEC_OK;
}

/* A row for every patch of a picture, or of those of all slots: half of a head's pairs turn by the
 * line, half by the column. */
static enum tec_status fill_tower(struct tec_plan *p, int tower, struct tec_error *err)
{
    const struct tec_vision *v = &p->model->vision;
    const struct tec_rotation *r = &v->towers[tower].program->rotations[0];
    float **out = &p->cos_sin[TEC_MAX_ROTATIONS + tower], *line = NULL;
    int dim = v->towers[tower].stack.head_dim, half = dim / 2, pictures = v->n_sizes;
    int first = 0, rows = pictures ? tec_vision_patches(v, pictures) : v->patches;
    TEC_TRY(take_angles(p, rows, dim, out, &line, err));
    for (int s = 0; s < (pictures ? pictures : 1); s++) {
        struct tec_picture_size size = tec_vision_picture(v, s);
        int wide = size.w / v->patch, n = size.h / v->patch * wide;
        for (int at = 0; at < n; at++) {
            for (int i = 0; i < half; i++)
                put_pair(r, tec_model_angle(r, half, i % (half / 2)),
                         i < half / 2 ? at / wide : at % wide, i, line);
            put_angles(p, *out, first + at, line, dim);
        }
        first += n;
    }
    return TEC_OK;
}

/* Make the tables of angles, one for each way in which layers of the text turn. */
static enum tec_status make_rotation(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_plan_spec *s = &p->spec;
    if (tec_model_asks(p->model)) /* whose rows are not rotated */
        return TEC_OK;
    int positions = s->frame_tokens + s->prompt_tokens + s->new_tokens +
                    2 * tec_suffix_rows(p->model) + 1 + s->trees.rows;
    positions = s->segment_tokens > positions ? s->segment_tokens : positions;
    p->positions = s->positions > positions ? s->positions : positions;
    const struct tec_model_program *text = p->model->text.program;
    for (int i = 0; i < text->n_rotations; i++)
        TEC_TRY(fill_rotation(p, &text->rotations[i], &p->cos_sin[i], err));
    for (int i = 0; i < p->model->vision.n_towers; i++)
        if (p->model->vision.towers[i].program->n_rotations)
            TEC_TRY(fill_tower(p, i, err));
    return TEC_OK;
}

/* Make the tables that map a byte of a channel to the normalised value that each tower reads, or a
 * program of each slot's picture. */
static enum tec_status make_luts(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_model *m = p->model;
    int n = tec_model_asks(m) ? m->n_slots : m->vision.n_towers;
    float lut[3][256];
    if (!n || m->vision.floats)
        return TEC_OK;
    TEC_TRY(tec_plan_constant(p, sizeof lut * (size_t)n, &p->lut, err));
    for (int t = 0; t < n; t++) {
        const float *mean, *std;
        tec_model_picture_norm(m, t, &mean, &std);
        for (int c = 0; c < 3; c++)
            for (int b = 0; b < 256; b++)
                lut[c][b] = ((float)b / 255.0F - mean[c]) / std[c];
        tec_device_upload(p->device, TEC_STREAM_MAIN, p->lut + (ptrdiff_t)t * 3 * 256, lut,
                          sizeof lut);
    }
    return TEC_OK;
}

/* Allocate the lists that requests choose from; n nodes have at most n - 1 entries that lead to
 * others. Until tec_planner_choose fills them they are empty, and a request ends at once. */
static enum tec_status make_trie(struct tec_plan *p, struct tec_error *err)
{
    size_t n = (size_t)p->spec.trie_nodes;
    int *all = NULL, *empty = TEC_NEW(&p->arena, 3 * n + 1, int);
    if (!empty)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu trie nodes", n);
    TEC_TRY(tec_plan_constant(p, (3 * n + 1) * sizeof(int), &all, err));
    tec_device_upload(p->device, TEC_STREAM_MAIN, all, empty, (3 * n + 1) * sizeof(int));
    p->trie =
        (struct tec_trie){.n = (int)n, .first = all, .id = all + n + 1, .next = all + 2 * n + 1};
    return TEC_OK;
}

/* Which patches stand side by side in each row: squares of them, row-major in all three orders. */
static enum tec_status make_shuffle(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_vision *v = &p->model->vision;
    int s = v->shuffle, group = s * s, n = tec_vision_patches(v, p->spec.pictures);
    if (s <= 1 || n <= 0)
        return TEC_OK;
    int *list = TEC_NEW(&p->arena, (size_t)n, int);
    if (!list)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the order of %d patches", n);
    TEC_TRY(tec_plan_constant(p, (size_t)n * sizeof *list, &p->shuffle, err));
    for (int picture = 0; picture < p->spec.pictures; picture++) {
        int across = tec_vision_picture(v, picture).w / v->patch, wide = across / s;
        int first = tec_vision_patches(v, picture), end = tec_vision_patches(v, picture + 1);
        for (int i = first; i < end; i++) {
            int token = (i - first) / group, at = (i - first) % group;
            int y = token / wide * s + at / s, x = token % wide * s + at % s;
            list[i] = first + y * across + x;
        }
    }
    tec_device_upload(p->device, TEC_STREAM_MAIN, p->shuffle, list, (size_t)n * sizeof *list);
    return TEC_OK;
}

enum tec_status tec_plan_constants(struct tec_plan *p, struct tec_error *err)
{
    TEC_TRY(make_luts(p, err));
    TEC_TRY(make_shuffle(p, err));
    int zero = 0;
    TEC_TRY(tec_plan_constant(p, sizeof zero, &p->zero, err));
    tec_device_upload(p->device, TEC_STREAM_MAIN, p->zero, &zero, sizeof zero);
    const struct tec_text *text = &p->model->text;
    size_t ends = (size_t)text->n_ends * sizeof(int);
    if (ends) {
        TEC_TRY(tec_plan_constant(p, ends, &p->ends, err));
        tec_device_upload(p->device, TEC_STREAM_MAIN, p->ends, text->ends, ends);
    }
    if (p->spec.trie_nodes)
        TEC_TRY(make_trie(p, err));
    return make_rotation(p, err);
}
