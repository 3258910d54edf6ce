/* sizes.c - checks the sizes that a plan is asked for against its model, before any memory is
 * taken. */
#include "graph/compile/plan.h"

#include "graph/kv/stages.h"

#include <limits.h>

/* Check the sizes of a memory's segments, of the trees of texts that are scored, and of drafts. */
static enum tec_status check_texts(const struct tec_plan_spec *s, const struct tec_model *m,
                                   struct tec_error *err)
{
    if (s->segments < 0 || s->segments > TEC_PLAN_SEGMENTS || s->segment_tokens < 0 ||
        s->segment_tokens > 1 << 20 ||
        (s->segments && (s->segment_tokens < 1 || (s->stages && !s->apart) || tec_head_rows(m) ||
                         m->text.keys_f32 || m->vision.n_before + m->vision.n_behind > 0)))
        return tec_fail(err, TEC_INVALID,
                        "a memory of %d segments a prompt, %d tokens computed together, cannot be "
                        "planned for this model",
                        s->segments - (s->segments > 0), s->segment_tokens);
    if (s->draft_tokens < 0 || s->draft_tokens > TEC_MAX_DRAFT || s->unread < 0 ||
        s->unread > TEC_MAX_DRAFT)
        return tec_fail(err, TEC_INVALID, "a draft proposes 1 to %d tokens, not %d", TEC_MAX_DRAFT,
                        s->draft_tokens);
    if (s->trees.rows && (!m->text.causal || !s->request_slots || s->trees.chains < 1 ||
                          s->trees.rows > TEC_SCORE_ROWS * TEC_SCORE_CHUNKS))
        return tec_fail(
            err, TEC_INVALID,
            "texts are scored by requests of a model with causal text, at most %d tokens "
            "that others follow; there are %d",
            TEC_SCORE_ROWS * TEC_SCORE_CHUNKS, s->trees.rows);
    return TEC_OK;
}

static bool good_actions(const struct tec_plan_spec *s)
{
    bool good = s->n_actions >= 0 && s->n_actions <= TEC_MAX_ACTIONS && s->frame_action >= -1 &&
                (s->frame_action < s->n_actions || s->n_actions == 0);
    for (int i = 0; good && i < s->n_actions; i++)
        good = s->actions[i].steps >= 1 && s->actions[i].steps <= 1000;
    return good;
}

static enum tec_status check_rings(struct tec_plan_spec *s, struct tec_error *err)
{
    s->rings = !s->stages ? 0 : s->rings < 1 ? 1 : s->rings;
    if (s->stages < 0 || s->stages > TEC_MAX_STAGES || s->rings * s->stages > TEC_MAX_STAGES ||
        (s->stages && s->ring_tokens < s->frame_tokens + s->stages))
        return tec_fail(err, TEC_INVALID, "%d rings of %d stages of %d tokens cannot be planned",
                        s->rings, s->stages, s->ring_tokens);
    return TEC_OK;
}

/* A model without a text has all of its rows in every frame, and nothing else. */
static enum tec_status check_encoded(struct tec_plan_spec *s, const struct tec_model *m,
                                     struct tec_error *err)
{
    int rows = tec_model_encoded(m);
    s->pictures = m->n_slots;
    if (s->text_tokens || s->request_slots || s->stages || s->segments || s->trees.rows)
        return tec_fail(err, TEC_INVALID,
                        "model '%s' has no text: it neither reads nor decodes any", m->name);
    if (s->frame_tokens < rows || s->frame_tokens > rows + 4096)
        return tec_fail(err, TEC_INVALID,
                        "a frame of %d tokens; model '%s' has %d rows, those of its pictures among "
                        "them",
                        s->frame_tokens, m->name, rows);
    return good_actions(s) ? TEC_OK : tec_fail(err, TEC_INVALID, "actions out of range");
}

enum tec_status tec_plan_check(struct tec_plan_spec *s, const struct tec_model *m,
                               struct tec_error *err)
{
    int picture = s->pictures != TEC_NO_PICTURES ? tec_vision_rows(&m->vision) : 0;
    int pictures = m->n_slots * picture;
    if (tec_model_asks(m))
        return check_encoded(s, m, err);
    if (tec_model_encodes(m))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "model '%s' makes one vector of a text: it embeds memory, and has neither "
                        "tokens nor actions for a pipeline's nodes",
                        m->name);
    if (s->text_tokens < 1)
        return tec_fail(err, TEC_INVALID, "a prompt needs at least 1 token, is given %d",
                        s->text_tokens);
    int added = tec_head_rows(m);
    if (s->frame_tokens < picture + s->text_tokens + added)
        return tec_fail(err, TEC_INVALID,
                        "a frame of %d tokens cannot hold a picture of %d and a prompt of %d",
                        s->frame_tokens, picture, s->text_tokens + added);
    int room = picture ? (s->frame_tokens - s->text_tokens - added) / picture : 0;
    if (s->pictures <= 0 || s->pictures > room)
        s->pictures = room < m->n_slots ? room : m->n_slots;
    if (s->frame_tokens > pictures + s->text_tokens + added + 4096)
        return tec_fail(err, TEC_INVALID, "a frame of %d tokens is more than %d pictures fill",
                        s->frame_tokens, m->n_slots);
    if (s->n_actions && !tec_model_acts(m))
        return tec_fail(err, TEC_INVALID, "model '%s' makes its actions as tokens: it has no flow",
                        m->name);
    if ((s->request_slots || s->stages) && tec_model_heads(m))
        return tec_fail(err, TEC_INVALID,
                        "model '%s' makes its actions in one forward: it does not decode", m->name);
    if ((s->request_slots || s->stages) && tec_model_behind(m))
        return tec_fail(err, TEC_INVALID,
                        "model '%s' ends its prompt with a row of its own, such as the robot's "
                        "state: it does not decode",
                        m->name);
    if ((s->request_slots || s->stages || s->segments || s->secondary) && tec_model_denoises(m))
        return tec_fail(err, TEC_INVALID,
                        "model '%s' reads its prompt to act alone: it does not decode, and takes "
                        "no memory",
                        m->name);
    if (s->beside && !s->request_slots)
        return tec_fail(err, TEC_INVALID, "no requests: nothing can run beside the frame");
    if (s->n_batches < 0 || s->n_batches > TEC_MAX_BATCHES || !good_actions(s) ||
        s->request_slots < 0 || s->request_slots > 4096 || s->new_tokens < 0 ||
        s->new_tokens > 65536 || s->prompt_tokens < 0 || s->prompt_tokens > 65536 ||
        s->positions < 0 || s->positions > 1 << 20)
        return tec_fail(err, TEC_INVALID, "request slots, batches, steps or tokens out of range");
    if (s->prompt_tokens && !m->text.causal)
        return tec_fail(err, TEC_INVALID, "a prompt of its own needs a model with causal text");
    TEC_TRY(check_rings(s, err));
    TEC_TRY(check_texts(s, m, err));
    int64_t slots = (int64_t)(s->request_slots + 1 + s->sessions + s->rings * s->stages) *
                    ((int64_t)s->frame_tokens + s->new_tokens + s->prompt_tokens + 32);
    if (slots + (int64_t)tec_suffix_rows(m) * TEC_MAX_SESSIONS > INT_MAX / 2)
        return tec_fail(err, TEC_INVALID, "%d requests of %d tokens and a frame of %d are too many",
                        s->request_slots, s->new_tokens, s->frame_tokens);
    return TEC_OK;
}
