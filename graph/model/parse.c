/* parse.c - an evaluated description as structs, every number checked. */
#include "graph/model/parse.h"
#include "graph/model/parse_head.h"
#include "graph/model/parse_vision.h"
#include "graph/model/parse_words.h"
#include "graph/model/program.h"
#include "graph/model/unpack.h"

#include <string.h>

static enum tec_status parse_names(const char **names, size_t most, json_t *json, const char *where,
                                   struct tec_error *err)
{
    size_t n = json_array_size(json);
    bool list = !json || json_is_array(json) || (json_is_object(json) && !json_object_size(json));
    if (n > most)
        return tec_fail(err, TEC_MALFORMED, "%s: more than %zu names", where, most);
    for (size_t i = 0; i < n || !list; i++) {
        names[i] = json_string_value(json_array_get(json, i));
        if (!names[i])
            return tec_fail(err, TEC_MALFORMED, "%s: must be a list of names", where);
    }
    return TEC_OK;
}

static enum tec_status parse_mask(struct tec_text *text, const char *mask, struct tec_error *err)
{
    static const char *const names[] = {"bidir", "causal", "causal_all"};
    for (int i = 0; i < 3; i++)
        if (strcmp(mask, names[i]) == 0) {
            text->mask = (enum tec_mask)i;
            text->causal = text->mask != TEC_MASK_BIDIR;
            return TEC_OK;
        }
    return tec_fail(err, TEC_MALFORMED, "text.mask: '%s' is not bidir, causal or causal_all", mask);
}

static enum tec_status parse_ends(struct tec_text *t, json_t *ends, struct tec_error *err)
{
    size_t n = json_array_size(ends);
    if (n > TEC_MAX_ENDS)
        return tec_fail(err, TEC_MALFORMED, "text.ends: more than %d tokens", TEC_MAX_ENDS);
    for (size_t i = 0; i < n; i++) {
        json_int_t id = json_integer_value(json_array_get(ends, i));
        if (!json_is_integer(json_array_get(ends, i)) || id < 0 || id >= t->vocab)
            return tec_fail(err, TEC_MALFORMED, "text.ends: must be tokens 0 .. %d", t->vocab - 1);
        t->ends[t->n_ends++] = (int)id;
    }
    return TEC_OK;
}

/* Parses the tables that are added to embedding rows, and the use of the last rows. */
static enum tec_status parse_sums(struct tec_text *t, json_t *position, json_t *types,
                                  const char *pool, struct tec_error *err)
{
    struct tec_positions *p = &t->position;
    p->skip = -1;
    if (position)
        TEC_UNPACK(position, "text.position", "{s:s, s:i, s:i, s?i}", "name", &p->name, "rows",
                   &p->rows, "first", &p->first, "skip", &p->skip);
    if (types)
        TEC_UNPACK(types, "text.types", "{s:s, s:i}", "name", &t->types.name, "rows",
                   &t->types.rows);
    if (position && (p->rows < 1 || p->rows > TEC_PARSE_MAX || p->first < 0 ||
                     p->first >= p->rows || (p->skip >= 0 && p->first == 0)))
        return tec_fail(err, TEC_MALFORMED,
                        "text.position: %d rows of which the first position is %d; a token that is "
                        "skipped needs a row before it",
                        p->rows, p->first);
    if (types)
        TEC_TRY(tec_parse_positive(t->types.rows, "text.types", "rows", err));
    if (pool && strcmp(pool, "mean") != 0)
        return tec_fail(err, TEC_MALFORMED, "text.pool: '%s' is not mean", pool);
    t->pool = pool ? TEC_POOL_MEAN : TEC_POOL_NONE;
    return pool || !(position || types)
               ? TEC_OK
               : tec_fail(err, TEC_UNSUPPORTED,
                          "text: positions and types are for texts that become one vector (pool)");
}

static enum tec_status parse_text(struct tec_model *model, json_t *json, struct tec_error *err)
{
    struct tec_text *t = &model->text;
    json_t *embed, *head, *ends = NULL, *position = NULL, *types = NULL;
    const char *mask, *pool = NULL;
    double scale, penalty = 1.0, cap = 0.0;
    int round, lead = 0, keys_f32 = 0;
    t->picture = -1;
    TEC_UNPACK(json, "text",
               "{s:i, s:F, s:b, s:s, s?b, s:i, s:i, s?o, s?F, s:i, s:o, s:o, "
               "s?o, s?o, s?s, s?F, s?b, s?i}",
               "vocab", &t->vocab, "scale", &scale, "round_logits", &round, "mask", &mask, "lead",
               &lead, "bos", &t->bos, "eos", &t->eos, "ends", &ends, "penalty", &penalty,
               "max_tokens", &t->max_tokens, "embed", &embed, "head", &head, "position", &position,
               "types", &types, "pool", &pool, "cap", &cap, "keys_f32", &keys_f32, "picture",
               &t->picture);
    TEC_TRY(tec_parse_positive(t->vocab, "text", "vocab", err));
    TEC_TRY(tec_parse_positive(t->max_tokens, "text", "max_tokens", err));
    TEC_TRY(parse_mask(t, mask, err));
    if (t->bos < -1 || t->bos >= t->vocab || t->eos < -1 || t->eos >= t->vocab)
        return tec_fail(err, TEC_MALFORMED,
                        "text: bos %d and eos %d must be tokens 0 .. %d, or -1 for none", t->bos,
                        t->eos, t->vocab - 1);
    if (t->picture < -1 || t->picture >= t->vocab ||
        (t->picture >= 0 && (t->mask != TEC_MASK_CAUSAL_ALL || lead)))
        return tec_fail(err, TEC_MALFORMED,
                        "text.picture: %d must be a token 0 .. %d, of a text with mask causal_all "
                        "and no token that leads",
                        t->picture, t->vocab - 1);
    t->marks = t->picture >= 0;
    TEC_TRY(parse_ends(t, ends, err));
    t->penalty = (float)penalty;
    if (!(t->penalty > 0.0F) || t->penalty > 1e6F)
        return tec_fail(err, TEC_MALFORMED, "text.penalty: must be above 0, is %g", penalty);
    if (!(cap >= 0.0) || cap > 1e6)
        return tec_fail(err, TEC_MALFORMED, "text.cap: must not be negative, is %g", cap);
    t->cap = (float)cap;
    t->scale = (float)scale;
    t->round = round != 0;
    t->lead = lead != 0;
    t->keys_f32 = keys_f32 != 0;
    TEC_TRY(parse_names(t->embed, TEC_MAX_ALIASES, embed, "text.embed", err));
    if (!t->embed[0])
        return tec_fail(err, TEC_MALFORMED, "text.embed: must name a tensor");
    TEC_TRY(parse_names(t->head, TEC_MAX_ALIASES, head, "text.head", err));
    TEC_TRY(parse_sums(t, position, types, pool, err));
    return tec_model_text_check(model, err);
}

/* Actions that are tokens: the last `bins` of `vocab` ids, `count` of them an action. */
static enum tec_status parse_action_tokens(struct tec_model *model, json_t *json,
                                           struct tec_error *err)
{
    struct tec_action_tokens *t = &model->tokens;
    TEC_UNPACK(json, "tokens", "{s?i, s:i, s:i, s:i}", "count", &t->count, "most", &t->most,
               "vocab", &t->vocab, "bins", &t->bins);
    if (t->most < 1 || t->most > 1024 || t->count < 0 || t->count > t->most)
        return tec_fail(err, TEC_MALFORMED,
                        "tokens: an action of %d tokens, at most %d; must be 1 .. 1024", t->count,
                        t->most);
    if (t->vocab < 1 || t->vocab > model->text.vocab)
        return tec_fail(err, TEC_MALFORMED, "tokens: vocab must be 1 .. %d as the text's, is %d",
                        model->text.vocab, t->vocab);
    if (t->bins < 2 || t->bins > t->vocab)
        return tec_fail(err, TEC_MALFORMED, "tokens: bins must be 2 .. %d, is %d", t->vocab,
                        t->bins);
    model->flow.horizon = 1;
    model->flow.dim = t->count ? t->count : t->most;
    return TEC_OK;
}

static enum tec_status parse_slots(struct tec_model *model, json_t *slots, struct tec_error *err)
{
    size_t n = json_array_size(slots);
    if (n < 1 || n > TEC_MAX_CAMERAS)
        return tec_fail(err, TEC_MALFORMED, "slots: must name 1 .. %d cameras", TEC_MAX_CAMERAS);
    for (size_t i = 0; i < n; i++) {
        model->slots[i] = json_string_value(json_array_get(slots, i));
        if (!model->slots[i])
            return tec_fail(err, TEC_MALFORMED, "slots: must be names");
    }
    model->n_slots = (int)n;
    return TEC_OK;
}

/* The parts of a description; NULL = it has none such. */
struct parts {
    json_t *slots, *vision, *text, *tokens, *chunk;
};

/* What a model with a text and one whose functions say what it computes must have. */
static enum tec_status check_parts(const struct tec_model *model, const struct parts *p,
                                   struct tec_error *err)
{
    bool functions = tec_model_asks(model);
    if (!p->text != functions)
        return tec_fail(err, TEC_MALFORMED,
                        "description: must have text, or the functions prefill and action");
    if (functions && (p->vision || p->tokens || p->chunk))
        return tec_fail(err, TEC_MALFORMED,
                        "description: functions say all that it computes; it has no vision, "
                        "tokens or chunk beside them");
    bool flow = tec_model_denoises(model) || tec_model_flows(model);
    if (flow && (!p->vision || p->tokens || p->chunk))
        return tec_fail(err, TEC_MALFORMED,
                        "description: a flow stands beside text and vision, in place of tokens or "
                        "chunk");
    if (functions)
        return TEC_OK;
    if (model->program && !flow && !p->chunk)
        return tec_fail(err, TEC_MALFORMED,
                        "description: the function action alone makes a chunk: it needs chunk");
    if (!p->vision != !p->slots || (!p->vision && (p->tokens || p->chunk)))
        return tec_fail(err, TEC_MALFORMED,
                        "description: a model of text alone has neither slots nor vision, tokens "
                        "or chunk; others have both slots and vision");
    if (p->vision && json_object_get(p->text, "pool"))
        return tec_fail(err, TEC_MALFORMED,
                        "description: a text that becomes one vector (pool) "
                        "beside pictures");
    bool speaks = json_object_get(p->text, "picture") != NULL;
    if (p->vision && !flow && !p->tokens && !p->chunk && !speaks)
        return tec_fail(err, TEC_MALFORMED,
                        "description: must have flow, or tokens, chunk or both, or text.picture "
                        "where its answers are texts");
    return TEC_OK;
}

/* Rows of pictures with positions of their own, or to which something is added between layers, are
 * those of a text that a flow's program reads whole. */
static enum tec_status check_between(const struct tec_model *model, struct tec_error *err)
{
    const struct tec_model_program *project = model->vision.project, *text = model->text.program;
    int deep = project ? project->n_deep : 0;
    bool sections = text->n_rotations && text->rotations[0].sections[0];
    if ((deep || sections) && !(tec_model_denoises(model) && model->text.marks))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "rotation.sections, and rows that project returns for layers of the text, "
                        "need text.picture and a flow over the text's rows");
    if (deep >= text->n_layers)
        return tec_fail(err, TEC_MALFORMED,
                        "vision.project: returns rows for %d layers; the text has %d, and behind "
                        "the last one none are added",
                        deep, text->n_layers);
    return TEC_OK;
}

enum tec_status tec_model_parse(struct tec_model *model, struct tec_error *err)
{
    struct parts p = {0};
    json_t *ignored = NULL, *prompts = NULL;
    int float32 = 0;
    TEC_UNPACK(model->json, "description", "{s:s, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?b}", "name",
               &model->name, "slots", &p.slots, "vision", &p.vision, "text", &p.text, "tokens",
               &p.tokens, "chunk", &p.chunk, "ignored", &ignored, "prompts", &prompts, "float32",
               &float32);
    model->float32 = float32 != 0;
    TEC_TRY(check_parts(model, &p, err));
    if (p.slots)
        TEC_TRY(parse_slots(model, p.slots, err));
    TEC_TRY(parse_names(model->ignored, TEC_MAX_IGNORED, ignored, "ignored", err));
    if (!p.text)
        return tec_model_program_check(model, err);
    TEC_TRY(parse_text(model, p.text, err));
    if (p.vision)
        TEC_TRY(tec_parse_vision(model, p.vision, err));
    TEC_TRY(check_between(model, err));
    if (model->text.marks && !tec_model_denoises(model) &&
        (!p.vision || tec_model_flows(model) || p.tokens || p.chunk || model->vision.n_sizes))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "text.picture: of a model with pictures of one size whose product is texts "
                        "or, by a flow over them, actions");
    if (tec_model_denoises(model) || tec_model_flows(model))
        return tec_model_program_check(model, err);
    if (p.tokens)
        TEC_TRY(parse_action_tokens(model, p.tokens, err));
    return p.chunk ? tec_parse_head(model, p.chunk, err) : TEC_OK;
}
