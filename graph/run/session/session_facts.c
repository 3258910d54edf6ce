/* session_facts.c - what a session is asked about its robot, its model and its last observation. */
#include "graph/run/session/session_robot.h"
#include "graph/run/session/session_state.h"

#include <string.h>

int tec_session_rows(const struct tec_session *session)
{
    int horizon = session->options.model->flow.horizon, most = session->robot->max_rows;
    return most > 0 && most < horizon ? most : horizon;
}

int tec_session_columns(const struct tec_session *session)
{
    return session->robot->n_actions;
}

const struct tec_observation *tec_session_observation(const struct tec_session *session)
{
    return session->last ? &session->last->seen : NULL;
}

int tec_session_prompt_tokens(const struct tec_session *session,
                              const struct tec_frame_input *input)
{
    const struct tec_prefix_input *prompt = &input->chains[session->options.chain].prefix;
    for (int i = 0; i < TEC_SESSION_SETS; i++)
        if (session->sets[i].ids == prompt->ids && session->sets[i].heard > 0)
            return session->sets[i].heard;
    return prompt->n_text;
}

const struct tec_template *tec_session_template(const struct tec_session *session)
{
    return session->prompt.template;
}

int tec_session_picture_side(const struct tec_session *session)
{
    return session->options.model->vision.image_size;
}

struct tec_picture_size tec_session_picture_size(const struct tec_session *session,
                                                 const char *input)
{
    const struct tec_model *m = session->options.model;
    const struct tec_robot *robot = session->robot;
    struct tec_picture_size size = {0, 0};
    for (int i = 0; robot->resize == TEC_RESIZE_NONE && i < robot->n_cameras; i++)
        for (int s = 0; s < m->n_slots && robot->cameras[i].input; s++)
            if (strcmp(robot->cameras[i].input, input) == 0 &&
                strcmp(robot->cameras[i].slot, m->slots[s]) == 0)
                size = tec_model_picture(m, s);
    return size;
}

const struct tec_robot *tec_session_robot(const struct tec_session *session)
{
    return session->plain ? NULL : session->robot;
}

const char *tec_session_prompt_key(const struct tec_session *session)
{
    const struct tec_robot *robot = tec_session_robot(session);
    return robot && tec_model_reads(session->options.model) ? robot->prompt_input : NULL;
}

static bool spells(const struct tec_session_texts *texts, const char *input)
{
    bool any = false;
    for (int i = 0; i < texts->n && texts->tokenizer && texts->n > 1; i++)
        any |= strcmp(texts->each[i].input->name, input) == 0;
    return any;
}

bool tec_session_spells(const struct tec_session *session, const char *input)
{
    bool any = false;
    for (; session; session = session->next) {
        any |= spells(&session->prompt.texts, input);
        for (int i = 0; i < session->secondary.n; i++)
            any |= spells(&session->secondary.readers[i].prompt.texts, input);
    }
    return any;
}

const char *tec_session_dataset(const struct tec_session *session)
{
    const struct tec_checkpoint *c = session->options.checkpoint;
    if (session->plain)
        return NULL;
    return session->robot->asset   ? session->robot->asset
           : c && c->n_assets == 1 ? c->assets[0]
                                   : NULL;
}

const struct tec_limits *tec_session_limits(const struct tec_session *session)
{
    const struct tec_limits *l = &session->robot->limits;
    return l->min || l->max || l->max_step ? l : NULL;
}

int tec_session_miss_limit(const struct tec_session *session, const struct tec_decl_deadline *d)
{
    enum { MOST_RELATIVE = 3 };
    if (d && d->limit > 0)
        return d->limit;
    return session->robot->relative && tec_session_repeats(d) ? MOST_RELATIVE : 0;
}

int tec_session_executed(const struct tec_session *session)
{
    return session->robot->execute;
}

bool tec_session_ensembles(const struct tec_session *session, double *m)
{
    *m = session->robot->ensemble;
    return session->robot->ensembles;
}

/* The sessions that are joined up to s; of a robot with several the first has what their frames do
 * not read. */
const struct tec_session *tec_session_whose(const struct tec_session *s, int input)
{
    const struct tec_session *whose = s;
    if (!tec_session_mine(&s->options, input))
        for (whose = s->options.joined; whose && !tec_session_mine(&whose->options, input);)
            whose = whose->next;
    return whose ? whose : s;
}
