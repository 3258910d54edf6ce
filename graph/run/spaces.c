/* spaces.c - the chains of a loop: the frames' and, where there are, secondary ones. */
#include "graph/run/state.h"

#include <string.h>

static int view_of(const struct tec_loop *l, const char *name, int otherwise)
{
    for (int i = 0; name && i < l->o.topology->n_kv; i++)
        if (strcmp(l->o.topology->kv[i], name) == 0)
            return i;
    return otherwise;
}

/* Its first decode node. */
static int language_of(const struct tec_loop *l, int model)
{
    for (int i = 0; i < l->o.n_decoders; i++)
        if (l->o.decoders[i].model == model && !l->o.decoders[i].tree)
            return l->o.decoders[i].node;
    return -1;
}

static struct tec_loop_space space_of(struct tec_loop *l, int model)
{
    struct tec_loop_model *f = model ? &l->o.secondary[model - 1] : NULL;
    struct tec_loop_space s = {
        .plan = f ? f->plan : l->o.plan,
        .executor = f ? &f->executor : &l->o.executor,
        .costs = f ? &l->secondary_costs[model - 1] : &l->costs,
        .first_request_slot = l->request_slots,
        .slices = 1,
        .kv_frame = view_of(l, f ? f->kv_frame : l->o.kv_frame, 0),
        .kv_requests = view_of(l, f ? f->kv_requests : l->o.kv_requests, l->o.n_secondary ? -1 : 1),
        .prefill_node = f ? f->prefill_node : l->o.prefill_node,
        .language = language_of(l, model)};
    if (f)
        s.slices = tec_part_slices(tec_plan_part(s.plan, TEC_PART_PREFIX, 0));
    return s;
}

static enum tec_status make_pending(struct tec_loop *l, struct tec_error *err)
{
    size_t most = 1, pixels = 0;
    for (int m = 1; m <= l->o.n_secondary; m++) {
        const struct tec_plan *plan = l->spaces[m].plan;
        size_t side = (size_t)plan->model->vision.image_size;
        size_t all = (size_t)plan->spec.pictures * side * side * 3;
        most = (size_t)plan->spec.text_tokens > most ? (size_t)plan->spec.text_tokens : most;
        pixels = all > pixels ? all : pixels;
    }
    l->pending = TEC_NEW(&l->arena, TEC_MAX_ROWS, struct tec_pending_prefill);
    for (int i = 0; l->pending && i < TEC_MAX_ROWS; i++) {
        struct tec_pending_prefill *a = &l->pending[i];
        a->ids = i < l->request_slots ? TEC_NEW(&l->arena, most, int) : l->pending[0].ids;
        a->pixels = !pixels                ? NULL
                    : i < l->request_slots ? tec_arena_push(&l->arena, pixels, 1, 64)
                                           : l->pending[0].pixels;
        if (!a->ids || (pixels && !a->pixels))
            l->pending = NULL;
    }
    return l->pending ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for prompts");
}

enum tec_status tec_spaces_init(struct tec_loop *l, struct tec_error *err)
{
    size_t secondary = (size_t)l->o.n_secondary;
    l->secondary_costs = secondary ? TEC_NEW(&l->arena, secondary, struct tec_costs) : NULL;
    if (secondary && !l->secondary_costs)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for costs");
    for (int m = 0; m <= l->o.n_secondary; m++) {
        struct tec_loop_space *s = &l->spaces[m];
        *s = space_of(l, m);
        const struct tec_plan_spec *spec = &s->plan->spec;
        l->request_slots += spec->request_slots;
        l->max_k = spec->max_k > l->max_k ? spec->max_k : l->max_k;
        l->new_tokens = spec->new_tokens > l->new_tokens ? spec->new_tokens : l->new_tokens;
        if (l->request_slots > TEC_MAX_ROWS)
            return tec_fail(err, TEC_INVALID, "%d request slots; this release handles %d",
                            l->request_slots, TEC_MAX_ROWS);
        TEC_TRY(tec_costs_init(s->costs, spec, &l->arena, err));
    }
    return l->o.n_secondary ? make_pending(l, err) : TEC_OK;
}

void tec_loop_prior(struct tec_loop *l, const struct tec_cost_table *table)
{
    for (int m = 0; m <= l->o.n_secondary; m++)
        tec_costs_prior(l->spaces[m].costs, table, l->o.topology, m);
}

/* --- views ----------------------------------------------------------------------------------- */

static void view_space(struct tec_loop *l, int model)
{
    const struct tec_loop_space *s = &l->spaces[model];
    const struct tec_kv_pool *prefixes = &s->plan->prefixes;
    struct tec_kv_view *frame = &l->kv[s->kv_frame], none,
                       *requests = s->kv_requests < 0 ? &none : &l->kv[s->kv_requests];
    int64_t oldest = 0, made = 0, stored = 0, token = tec_kv_token_bytes(&s->plan->space.shape);
    for (int i = 0; i < l->n_live; i++) {
        const struct tec_request *r = &l->requests[i];
        int64_t age = l->tick->frame - r->born_frame;
        if (tec_model_of(l, r) != model)
            continue;
        oldest = age > oldest ? age : oldest;
        made += r->prompt_tokens + r->made;
        stored += r->stored;
    }
    frame->used = (int64_t)prefixes->in_use * prefixes->tokens;
    frame->pinned = (stored < prefixes->in_use ? stored : prefixes->in_use) * prefixes->tokens;
    requests->used = requests->pinned = made;
    frame->oldest = requests->oldest = oldest;
    frame->bytes = frame->used * token;
    requests->bytes = requests->used * token;
}

void tec_spaces_view(struct tec_loop *l)
{
    for (int m = l->o.ring ? 1 : 0; m <= l->o.n_secondary; m++)
        view_space(l, m);
}

/* --- warm-up --------------------------------------------------------------------------------- */

static void warm_slices(struct tec_loop *l, int model, int region,
                        const struct tec_prefix_input *prompt)
{
    struct tec_loop_space *s = &l->spaces[model];
    for (int i = 0; i < s->slices; i++) {
        struct tec_replay replay = {0};
        s->executor->slice(s->executor->self, i, region, prompt, &replay);
        tec_loop_measure(l, model, TEC_COST_PREFILL, 0, 1, 1, replay.end_ns - replay.start_ns);
    }
}

static void warm_decodes(struct tec_loop *l, int model, int region, int prefix)
{
    struct tec_loop_space *s = &l->spaces[model];
    const struct tec_plan_spec *spec = &s->plan->spec;
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS];
    for (int b = 0; b < spec->n_batches; b++) {
        int n = spec->batches[b] < spec->request_slots ? spec->batches[b] : spec->request_slots;
        struct tec_replay replay = {0};
        for (int r = 0; r < n; r++) {
            tec_row_start(&rows[r], s->plan, region, prefix, 0, r, spec->new_tokens, -1);
            list[r] = &rows[r];
        }
        s->executor->decode(s->executor->self, list, n, 1, l->tokens, l->made, &replay);
        tec_loop_measure(l, model, TEC_COST_DECODE, spec->batches[b], 1, 1,
                         replay.end_ns - replay.start_ns);
    }
}

static void warm_scores(struct tec_loop *l, int model, int region, int prefix)
{
    struct tec_loop_space *s = &l->spaces[model];
    struct tec_row_state row;
    tec_row_start(&row, s->plan, region, prefix, 0, 0, 1, -1);
    for (int d = 0; d < l->o.n_decoders; d++) {
        struct tec_replay replay = {0};
        if (!l->o.decoders[d].tree || l->o.decoders[d].model != model)
            continue;
        s->executor->score(s->executor->self, l->o.decoders[d].tree, &row, l->likely, &replay);
        tec_loop_measure(l, model, TEC_COST_SCORE, 0, 1, 1, replay.end_ns - replay.start_ns);
    }
}

void tec_spaces_warm(struct tec_loop *l, int times)
{
    for (int m = 1; m <= l->o.n_secondary; m++) {
        struct tec_loop_space *s = &l->spaces[m];
        int n = s->plan->spec.text_tokens, region = tec_kv_pool_take(&s->plan->prefixes);
        int *ids = l->pending[0].ids;
        memset(ids, 0, (size_t)n * sizeof *ids);
        struct tec_prefix_input prompt = {
            .n_pictures = s->plan->spec.pictures, .n_text = n, .ids = ids};
        for (int i = 0; i < prompt.n_pictures; i++) /* black: what they show takes no time */
            prompt.picture[i] = l->pending[0].pixels;
        for (int i = 0; i < times; i++) {
            warm_slices(l, m, region, &prompt);
            warm_decodes(l, m, region, tec_prefix_rows(s->plan, &prompt));
            warm_scores(l, m, region, tec_prefix_rows(s->plan, &prompt));
        }
        tec_kv_pool_drop(&s->plan->prefixes, region);
    }
}
