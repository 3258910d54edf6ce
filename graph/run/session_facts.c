/* session_facts.c - what a session is asked about its robot, its model and its last observation. */
#include "graph/run/session.h"
#include "graph/run/session_state.h"

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

const struct tec_template *tec_session_template(const struct tec_session *session)
{
    return session->template;
}

int tec_session_picture_side(const struct tec_session *session)
{
    return session->options.model->vision.image_size;
}

const struct tec_robot *tec_session_robot(const struct tec_session *session)
{
    return session->plain ? NULL : session->robot;
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
