/* session_secondary.c - reads the prompts of secondary chains, and which pictures of an observation
 * they see.
 *
 * Runs on the session's thread. Each text has a key, so that the loop notices a change without
 * comparing texts. */
#include "graph/run/session/session_secondary.h"

#include "graph/load/pipeline_texts.h"
#include "graph/run/recall/memory.h"
#include "graph/run/session/session_robot.h"

#include <string.h>

static enum tec_status refuse(const struct tec_secondary_reader *r, enum tec_status status,
                              const char *what, const char *name, struct tec_error *err)
{
    const struct tec_where *w = &r->node->where;
    return tec_where_fail(err, status, w, "'%s' reads %s '%s'", r->node->name, what, name);
}

/* The template that the prefill names; else the robot's for one that reads the state, else "plain".
 * A draft's prefill reads the state where it is in the prompt that it proposes to. */
static enum tec_status find_template(struct tec_secondary_reader *r,
                                     const struct tec_session_options *o,
                                     const struct tec_robot *robot, struct tec_arena *arena,
                                     struct tec_error *err)
{
    bool state = tec_pipeline_reads(o->pipeline, r->node, TEC_INPUT_TENSOR) > 0 &&
                 (!r->node->proposes || robot->state_in_prompt);
    const char *name = r->node->template        ? r->node->template
                       : !state                 ? "plain"
                       : robot->prompt_template ? robot->prompt_template
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
    if (state && !robot->state_in_prompt)
        return refuse(r, TEC_MALFORMED,
                      "the state, but the robot's prompt does not say state = true: robot",
                      robot->name, err);
    return TEC_OK;
}

/* The pictures it reads, in the order of the frames' slots. */
static enum tec_status find_views(struct tec_secondary_reader *r,
                                  const struct tec_session_options *o,
                                  const struct tec_observer *observer, struct tec_arena *arena,
                                  struct tec_error *err)
{
    int slots[TEC_MAX_CAMERAS] = {0};
    r->n_views = 0;
    for (int i = 0; i < r->node->reads.n; i++) {
        const struct tec_decl_input *in = &o->pipeline->inputs[r->node->reads.item[i].index];
        if (in->kind != TEC_INPUT_IMAGE)
            continue;
        int slot = tec_observer_slot(observer, in->name, in->slot), at = r->n_views;
        if (slot < 0)
            return refuse(r, TEC_MALFORMED, "a picture that the robot has no camera for:", in->name,
                          err);
        for (; at > 0 && slots[at - 1] > slot; at--)
            slots[at] = slots[at - 1];
        slots[at] = slot;
        r->n_views++;
    }
    for (int i = 0; i < r->n_views; i++)
        TEC_TRY(tec_session_view_init(&r->views[i], slots[i], r->of->model, i, o->model, observer,
                                      arena, err));
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

static enum tec_status
init_reader(struct tec_secondary_reader *r, const struct tec_session_options *o,
            const struct tec_session_model *of, const struct tec_robot *robot,
            const struct tec_session_streams *streams, const struct tec_observer *observer,
            struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_decl_chain *chain = &o->pipeline->chains[of->chain];
    r->node = chain->prefill < 0 ? NULL : &o->pipeline->nodes[chain->prefill];
    if (!r->node)
        return tec_fail(err, TEC_INVALID, "session: '%s' has no prefill", chain->name);
    r->of = of;
    r->prompt = (struct tec_chain_prompt){.model = of->model,
                                          .tokenizer = of->tokenizer,
                                          .streams = streams,
                                          .memory = of->memory,
                                          .session = o->index,
                                          .allows = "pipeline",
                                          .frame = of->max_text};
    tec_texts_init(&r->prompt.texts, o, of->chain, of->tokenizer, robot);
    r->prompt.longest = tec_texts_longest(&r->prompt.texts);
    r->prompt.most = room_of(r, o->pipeline);
    if (!of->follows)
        TEC_TRY(find_template(r, o, robot, arena, err));
    TEC_TRY(find_views(r, o, observer, arena, err));
    return tec_session_prompt_init(&r->prompt, arena, err);
}

enum tec_status tec_secondary_init(struct tec_secondary_inputs *secondary,
                                   const struct tec_session_options *options,
                                   const struct tec_robot *robot,
                                   const struct tec_session_streams *streams,
                                   const struct tec_observer *observer, struct tec_arena *arena,
                                   struct tec_error *err)
{
    secondary->n = 0;
    for (int i = 0; i < options->n_secondary; i++)
        if (options->secondary[i].reads)
            TEC_TRY(init_reader(&secondary->readers[secondary->n++], options,
                                &options->secondary[i], robot, streams, observer, arena, err));
    return tec_session_others(&secondary->others, options, observer, arena, err);
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
                           size_t n_values, const struct tec_observation *seen, int turn,
                           struct tec_prefix_input *out, struct tec_error *err)
{
    for (int k = 0; k < r->n_views; k++)
        if (seen->valid[r->views[k].slot])
            TEC_TRY(tec_session_view_make(&r->views[k], values, n_values, seen, turn,
                                          &out->picture[out->n_pictures++], err));
    return TEC_OK;
}

static int count_pictures(const struct tec_secondary_reader *r, const struct tec_observation *seen)
{
    int n = 0;
    for (int k = 0; k < r->n_views; k++)
        n += seen->valid[r->views[k].slot];
    return n;
}

enum tec_status tec_secondary_read(struct tec_secondary_inputs *secondary,
                                   const struct tec_value *values, size_t n_values,
                                   const struct tec_observation *seen, int turn,
                                   int *const ids[TEC_MAX_CHAINS],
                                   struct tec_chain_input out[TEC_MAX_CHAINS],
                                   struct tec_arena *scratch, struct tec_error *err)
{
    for (int i = 0; i < secondary->n; i++) {
        struct tec_secondary_reader *r = &secondary->readers[i];
        struct tec_chain_prompt *p = &r->prompt;
        struct tec_chain_input *in = &out[r->of->chain];
        struct tec_chain_prompt_parts parts = {.values = values,
                                               .n_values = n_values,
                                               .said = {.bins = seen->bins, .n_bins = seen->n_bins},
                                               .pictures = count_pictures(r, seen),
                                               .turn = turn};
        in->prefix = (struct tec_prefix_input){.ids = ids[i]};
        TEC_TRY(tec_texts_read(&p->texts, p->streams, values, n_values, &parts.said, in,
                               &parts.whole, err));
        if (!r->of->follows)
            TEC_TRY(tec_session_prompt_make(p, &parts, ids[i], &in->prefix.n_text, scratch, err));
        if (in->prefix.n_text == 0 && !r->of->follows)
            continue; /* there is no text yet */
        in->memory = p->memory ? &p->remembered[turn] : NULL;
        TEC_TRY(see(r, values, n_values, seen, turn, &in->prefix, err));
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
