/* launch_features.c - fills the frame table of a prompt whose rows become features.
 *
 * Runs on the thread of the launch; nothing here allocates or blocks. In memory the rows of
 * pictures stand before those of the text; in the sequence they stand where the prompt has a token
 * for each picture. What the frame keeps is in the order of memory. */
#include "graph/model/program.h"
#include "graph/run/launch/launch_rows.h"

void tec_prefix_mark(const struct tec_model *model, int *ids, int n, int pictures)
{
    int token = tec_model_mark(model);
    for (int i = 0; i < n && token >= 0; i++)
        if (i < pictures || ids[i] == token)
            ids[i] = i < pictures ? token : token == 0;
}

enum tec_status tec_prefix_check_marks(const struct tec_model *model,
                                       const struct tec_prefix_input *o, struct tec_error *err)
{
    int token = tec_model_mark(model), marks = 0;
    for (int i = 0; i < o->n_text && token >= 0; i++)
        marks += o->ids[i] == token;
    if (marks != (token >= 0 ? o->n_pictures : 0))
        return tec_fail(err, TEC_INVALID,
                        "%d pictures; the prompt has %d tokens %d, which stand for a picture each",
                        o->n_pictures, marks, token);
    if (marks && !tec_model_denoises(model) && o->ids[o->n_text - 1] == token)
        return tec_fail(err, TEC_INVALID,
                        "the prompt ends with a picture; an answer begins behind a token of text");
    bool alone = o->n_pictures == 0 || marks == o->n_text;
    const struct tec_model_program *p = model->program;
    bool apart =
        tec_model_denoises(model) && (p->sees[TEC_SEEN_PICTURES] || p->sees[TEC_SEEN_REST]);
    if (apart && alone)
        return tec_fail(err, TEC_INVALID, "model '%s' needs a picture and a text beside it",
                        model->name);
    return TEC_OK;
}

/* Positions of the next picture's rows, n of them, the first of which is row `at` of all pictures':
 * `start` is its time, and its lines and columns count from there. Returns the first position
 * behind the picture. */
static int fill_turns(const struct tec_plan *plan, struct tec_prefix_table *t,
                      const struct tec_rotation *r, int slot, int at, int n, int start)
{
    const struct tec_vision *v = &plan->model->vision;
    struct tec_picture_size size = tec_vision_picture(v, slot);
    int wide = size.w / v->patch / v->shuffle, high = n / wide;
    int half = plan->model->text.stack.head_dim / 2;
    for (int row = 0; row < n; row++) {
        const int positions[] = {start, start + row / wide, start + row % wide};
        int *turns = t->turns + (ptrdiff_t)(at + row) * half;
        for (int i = 0; i < half; i++)
            turns[i] = positions[tec_model_axis(r, i)] * half + i;
        t->prefix.pos[at + row] = plan->positions + at + row;
    }
    *t->n_turns = (at + n) * half;
    return start + (high > wide ? high : wide);
}

void tec_fill_features(const struct tec_plan *plan, struct tec_plan_part *part, int region,
                       const struct tec_prefix_input *o)
{
    struct tec_prefix_table *t = &part->prefix;
    const struct tec_model *m = plan->model;
    int pictures =
        tec_give_pictures(plan, part, &(struct tec_prefix_place){.region = region, .input = o}, 1);
    int rows = tec_prefix_rows(plan, o), first = plan->prefixes.first[region];
    const struct tec_rotation *sections = tec_sections(m);
    int picture = 0, text = 0, pos = 0, place = 0, seen = 0;
    if (sections)
        *t->n_turns = 0; /* a text without a picture */
    for (int i = 0; i < o->n_text; i++) {
        bool mark = o->ids[i] == tec_model_mark(m);
        seen += mark;
        int n = mark ? tec_vision_tokens(&m->vision, seen) - picture : 1;
        int at = mark ? picture : pictures + text;
        for (int r = 0; r < n; r++)
            t->features.pos[at + r] = place++;
        if (mark && sections)
            pos = fill_turns(plan, t, sections, seen - 1, at, n, pos);
        for (int r = 0; r < n && !(mark && sections); r++)
            t->prefix.pos[at + r] = pos++;
        if (!mark)
            t->ids[text++] = o->ids[i];
        picture += mark ? n : 0;
    }
    for (int r = 0; r < rows; r++) {
        t->prefix.slot[r] = first + r;
        t->prefix.seq[r] = t->features.seq[r] = 0;
        t->prefix.visible[r] = t->features.pos[r] + 1;
        t->features.visible[r] = rows;
    }
    *t->prefix.count = *t->features.count = rows;
    t->features.spans[0] = (struct tec_span){0, rows};
    *t->first_text = pictures;
    *t->n_text = text;
    plan->pictures[region] = pictures;
}
