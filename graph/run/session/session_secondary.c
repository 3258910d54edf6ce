/* session_secondary.c - reads the prompts of secondary chains, and which pictures of an observation
 * they see.
 *
 * Runs on the session's thread. Each text has a key, so that the loop notices a change without
 * comparing texts. */
#include "graph/run/session/session_secondary.h"

#include "graph/load/pipeline_texts.h"
#include "graph/run/recall/memory.h"
#include "graph/run/session/session_robot.h"
#include "graph/run/session/session_state.h"

#include <string.h>

static enum tec_status refuse(const struct tec_secondary_reader *r, enum tec_status status,
                              const char *what, const char *name, struct tec_error *err)
{
    const struct tec_where *w = &r->node->where;
    return tec_where_fail(err, status, w, "'%s' reads %s '%s'", r->node->name, what, name);
}

/* Whose states are in its prompt, in the order of its reads. A draft's prefill reads a state where
 * it is in the prompt that it proposes to. */
static void find_states(struct tec_secondary_reader *r, const struct tec_session *s)
{
    const struct tec_pipeline *p = s->options.pipeline;
    r->n_states = 0;
    for (int i = 0; i < r->node->reads.n; i++) {
        int input = r->node->reads.item[i].index, k = 0;
        const struct tec_session *whose = tec_session_whose(s, input);
        while (k < r->n_states && r->states[k] != whose)
            k++;
        if (p->inputs[input].kind == TEC_INPUT_TENSOR && k == r->n_states &&
            (!r->node->proposes || whose->robot->state_in_prompt))
            r->states[r->n_states++] = whose;
    }
}

/* The template that the prefill names; else for one that reads a state the first robot's, else
 * "plain". */
static enum tec_status find_template(struct tec_secondary_reader *r,
                                     const struct tec_session_options *o, struct tec_arena *arena,
                                     struct tec_error *err)
{
    bool state = r->n_states > 0;
    const char *name = r->node->template                      ? r->node->template
                       : !state                               ? "plain"
                       : r->states[0]->robot->prompt_template ? r->states[0]->robot->prompt_template
                                                              : "with_state";
    struct tec_template *t = NULL;
    TEC_TRY(tec_session_read_template(&t, o->root, name, arena, err));
    r->prompt.template = t;
    if (t->memory && !tec_pipeline_remembers(o->pipeline, r->of->chain))
        return refuse(r, TEC_MALFORMED, "no memory, which is in its prompt template", name, err);
    if (t->state && !state)
        return refuse(r, TEC_MALFORMED, "no state: {state} is in prompt template", name, err);
    if (!t->state && state)
        return refuse(r, TEC_MALFORMED, "the state: there is no {state} in prompt template", name,
                      err);
    const char *wrong = tec_template_misplaces(t, r->prompt.texts.n, arena);
    if (wrong)
        return tec_where_fail(err, TEC_MALFORMED, &r->node->where_template,
                              "'%s': prompt template '%s' %s", r->node->name, name, wrong);
    for (int i = 0; i < r->n_states; i++)
        if (!r->states[i]->robot->state_in_prompt)
            return refuse(r, TEC_MALFORMED,
                          "the state, but the robot's prompt does not say state = true: robot",
                          r->states[i]->robot->name, err);
    return TEC_OK;
}

/* The pictures it reads, of which a pipeline names TEC_MAX_CAMERAS at most: those of a robot in the
 * order of its slots, behind those of the robots that it reads before. */
static enum tec_status find_views(struct tec_secondary_reader *r, const struct tec_session *s,
                                  struct tec_arena *arena, struct tec_error *err)
{
    r->n_views = 0;
    for (int i = 0; i < r->node->reads.n; i++) {
        int input = r->node->reads.item[i].index, at = r->n_views;
        const struct tec_decl_input *in = &s->options.pipeline->inputs[input];
        if (in->kind != TEC_INPUT_IMAGE)
            continue;
        struct tec_session_view v = {.of = tec_session_whose(s, input)};
        v.slot = tec_observer_slot(v.of->observer, in->name, in->slot);
        if (v.slot < 0)
            return refuse(r, TEC_MALFORMED, "a picture that the robot has no camera for:", in->name,
                          err);
        for (int k = r->n_views - 1; k >= 0; k--)
            if (r->views[k].of == v.of && r->views[k].slot > v.slot)
                at = k;
            else if (r->views[k].of == v.of && at == r->n_views)
                at = k + 1;
        memmove(&r->views[at + 1], &r->views[at], (size_t)(r->n_views++ - at) * sizeof v);
        r->views[at] = v;
    }
    for (int i = 0; i < r->n_views; i++)
        TEC_TRY(tec_session_view_init(&r->views[i], r->of->model, i, arena, err));
    return TEC_OK;
}

void tec_secondary_drop_prompts(struct tec_secondary_inputs *secondary)
{
    for (int i = 0; i < secondary->n; i++)
        tec_session_prompt_drop(&secondary->readers[i].prompt);
}

void tec_secondary_drop(struct tec_secondary_inputs *secondary)
{
    tec_secondary_drop_prompts(secondary);
    for (int i = 0; i < secondary->n; i++)
        for (int k = 0; k < secondary->readers[i].n_views; k++)
            tec_session_view_drop(&secondary->readers[i].views[k]);
}

/* Tokens of a prompt: what its plan allows, and no more than its texts say that they have. A stream
 * has what pictures leave. */
static int room_of(const struct tec_secondary_reader *r, const struct tec_pipeline *p)
{
    const struct tec_session_texts *texts = &r->prompt.texts;
    int64_t room = 0;
    int pictures = tec_pipeline_reads(p, r->node, TEC_INPUT_IMAGE);
    for (int i = 0; i < texts->n; i++) {
        room += texts->each[i].input->max_tokens;
        if (texts->each[i].stream >= 0)
            room -= (int64_t)pictures * tec_vision_rows(&r->of->model->vision);
    }
    bool all = texts->n == 0 || room > r->of->max_text;
    return all ? r->of->max_text : room > 0 ? (int)room : 0;
}

/* Room for the states of several robots together. */
static enum tec_status take_bins(struct tec_secondary_reader *r, struct tec_arena *arena,
                                 struct tec_error *err)
{
    size_t n = 0;
    for (int i = 0; i < r->n_states; i++)
        n += (size_t)tec_model_state(r->states[i]->options.model);
    r->bins = TEC_NEW(arena, n, int);
    return r->bins ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->node->name);
}

static enum tec_status init_reader(struct tec_secondary_reader *r, struct tec_session *s,
                                   const struct tec_session_model *of, struct tec_error *err)
{
    const struct tec_session_options *o = &s->options;
    const struct tec_decl_chain *chain = &o->pipeline->chains[of->chain];
    r->node = chain->prefill < 0 ? NULL : &o->pipeline->nodes[chain->prefill];
    if (!r->node)
        return tec_fail(err, TEC_INVALID, "session: '%s' has no prefill", chain->name);
    r->of = of;
    r->prompt = (struct tec_chain_prompt){.model = of->model,
                                          .tokenizer = of->tokenizer,
                                          .streams = &s->streams,
                                          .memory = of->memory,
                                          .session = o->index,
                                          .allows = "pipeline",
                                          .frame = of->max_text};
    tec_texts_init(&r->prompt.texts, s, of->chain, of->tokenizer);
    r->prompt.longest = tec_texts_longest(&r->prompt.texts);
    r->prompt.most = room_of(r, o->pipeline);
    find_states(r, s);
    if (r->n_states > 1)
        TEC_TRY(take_bins(r, &s->arena, err));
    if (!of->follows)
        TEC_TRY(find_template(r, o, &s->arena, err));
    TEC_TRY(find_views(r, s, &s->arena, err));
    return tec_session_prompt_init(&r->prompt, &s->arena, err);
}

enum tec_status tec_secondary_init(struct tec_session *s, struct tec_error *err)
{
    struct tec_secondary_inputs *secondary = &s->secondary;
    const struct tec_session_options *o = &s->options;
    secondary->n = 0;
    for (int i = 0; i < o->n_secondary; i++)
        if (o->secondary[i].reads)
            TEC_TRY(init_reader(&secondary->readers[secondary->n++], s, &o->secondary[i], err));
    return tec_session_others(&secondary->others, o, s->observer, &s->arena, err);
}

size_t tec_secondary_longest(const struct tec_secondary_inputs *secondary)
{
    size_t most = 0;
    for (int i = 0; i < secondary->n; i++) {
        size_t bytes = tec_texts_longest(&secondary->readers[i].prompt.texts);
        most = bytes > most ? bytes : most;
    }
    return most;
}

enum tec_status tec_secondary_take(const struct tec_secondary_inputs *secondary,
                                   int *ids[TEC_MAX_CHAINS], struct tec_arena *arena,
                                   struct tec_error *err)
{
    for (int i = 0; i < secondary->n; i++) {
        const struct tec_chain_prompt *p = &secondary->readers[i].prompt;
        ids[i] = TEC_NEW(arena, (size_t)tec_session_prompt_room(p), int);
        if (!ids[i])
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", p->name);
    }
    return TEC_OK;
}

/* The pictures of an observation that it reads. */
static enum tec_status see(struct tec_secondary_reader *r, const struct tec_value *values,
                           size_t n_values, int turn, struct tec_prefix_input *out,
                           struct tec_error *err)
{
    for (int k = 0; k < r->n_views; k++)
        if (tec_session_view_valid(&r->views[k], turn))
            TEC_TRY(tec_session_view_make(&r->views[k], values, n_values, turn,
                                          &out->picture[out->n_pictures++], err));
    return TEC_OK;
}

static int count_pictures(const struct tec_secondary_reader *r, int turn)
{
    int n = 0;
    for (int k = 0; k < r->n_views; k++)
        n += tec_session_view_valid(&r->views[k], turn);
    return n;
}

/* The bins of the states that it reads. */
static void read_states(const struct tec_secondary_reader *r, int turn,
                        struct tec_template_values *said)
{
    for (int i = 0; i < r->n_states; i++) {
        const struct tec_observation *seen = &r->states[i]->sets[turn].seen;
        if (r->bins)
            memcpy(r->bins + said->n_bins, seen->bins, (size_t)seen->n_bins * sizeof *r->bins);
        said->bins = r->bins ? r->bins : seen->bins;
        said->n_bins += seen->n_bins;
    }
}

enum tec_status tec_secondary_read(struct tec_session *s, const struct tec_value *values,
                                   size_t n_values, struct tec_chain_input out[TEC_MAX_CHAINS],
                                   struct tec_error *err)
{
    for (int i = 0; i < s->secondary.n; i++) {
        struct tec_secondary_reader *r = &s->secondary.readers[i];
        struct tec_chain_prompt *p = &r->prompt;
        struct tec_chain_input *in = &out[r->of->chain];
        struct tec_chain_prompt_parts parts = {.values = values,
                                               .n_values = n_values,
                                               .pictures = count_pictures(r, s->turn),
                                               .turn = s->turn};
        int *ids = s->sets[s->turn].secondary[i];
        read_states(r, s->turn, &parts.said);
        in->prefix = (struct tec_prefix_input){.ids = ids};
        TEC_TRY(tec_texts_read(&p->texts, p->streams, values, n_values, &parts.said, in,
                               &parts.whole, err));
        if (!r->of->follows)
            TEC_TRY(tec_session_prompt_make(p, &parts, ids, &in->prefix.n_text, &s->scratch, err));
        if (in->prefix.n_text == 0 && !r->of->follows)
            continue; /* there is no text yet */
        in->memory = p->memory ? &p->remembered[s->turn] : NULL;
        TEC_TRY(see(r, values, n_values, s->turn, &in->prefix, err));
    }
    return TEC_OK;
}

/* Of one that is longer than its own may be, the end. */
void tec_secondary_follow(const struct tec_secondary_inputs *secondary,
                          struct tec_chain_input chains[TEC_MAX_CHAINS])
{
    for (int i = 0; i < secondary->n; i++) {
        const struct tec_session_model *of = secondary->readers[i].of;
        struct tec_prefix_input *own = &chains[of->chain].prefix;
        const struct tec_prefix_input *its = &chains[of->follows ? of->follows - 1 : 0].prefix;
        if (!of->follows)
            continue;
        own->n_text = its->n_text < of->max_text ? its->n_text : of->max_text;
        own->ids = its->ids + (its->n_text - own->n_text);
    }
}
