/* canary_view.c - the status that a canary publishes: the frame thread writes it and the loader
 * reads it, through three places, so that neither waits. */
#include "policies/host/canary_state.h"

#include <string.h>

static void name_of(char name[64], int *version, const struct tec_planner *planner)
{
    const struct tec_policy *policy = planner->self;
    name[0] = '\0';
    *version = policy ? tec_policy_version(policy) : 0;
    if (policy)
        memccpy(name, tec_policy_name(policy), '\0', 64);
}

void tec_canary_show(struct tec_canary *h)
{
    struct tec_canary_status *s = &h->views[h->newest.writing];
    const struct tec_policy *policy = h->active.self;
    const struct tec_param *param;
    s->frame = h->frame;
    name_of(s->policy, &s->version, &h->active);
    name_of(s->previous, &s->previous_version, &h->previous);
    name_of(s->candidate, &s->candidate_version, &h->candidate);
    memccpy(s->decides, tec_planner_name(&h->active), '\0', sizeof s->decides);
    s->report = *tec_policy_report(policy);
    s->trial = h->trial;
    s->trial_frames = h->o.trial_frames;
    for (s->n_params = 0; (param = tec_policy_param(policy, s->n_params)); s->n_params++)
        s->params[s->n_params] = *param;
    tec_triple_post(&h->newest);
}

const struct tec_canary_status *tec_canary_look(struct tec_canary *h)
{
    tec_triple_take(&h->newest);
    return &h->views[h->newest.reading];
}
