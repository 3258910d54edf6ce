/* inspect.c - reports what is in a checkpoint (tensors, statistics, tokenizer), and compares it
 * with the model that it is for. */
#include "tools/measure/inspect.h"

#include "base/json_text.h"
#include "base/store/adapter.h"
#include "base/text/tokenizer.h"
#include "graph/model/program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum tec_status no_memory(struct tec_error *err)
{
    return tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
}

static json_t *shape_json(int rank, const int64_t *shape)
{
    json_t *array = json_array();
    for (int i = 0; i < rank; i++)
        json_array_append_new(array, json_integer(shape[i]));
    return array;
}

static json_t *list_tensors(const struct tec_tensors *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < tec_tensors_count(t); i++) {
        const struct tec_stored *s = tec_tensors_at(t, i);
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I, s:o}", "name", s->name, "dtype",
                                              tec_dtype_name(s->dtype), "shape",
                                              shape_json(s->rank, s->shape), "bytes",
                                              (json_int_t)s->bytes, "file",
                                              tec_json_shown(tec_tensors_file(t, s->file))));
    }
    return list;
}

/* Count the tensors by type, as {"BF16": {"tensors": 3, "bytes": 1024}}, and their elements. */
static json_t *count_dtypes(const struct tec_tensors *t, int64_t *elements)
{
    int64_t n[TEC_N_DTYPES] = {0}, bytes[TEC_N_DTYPES] = {0};
    json_t *all = json_object();
    *elements = 0;
    for (size_t i = 0; i < tec_tensors_count(t); i++) {
        const struct tec_stored *s = tec_tensors_at(t, i);
        n[s->dtype]++;
        bytes[s->dtype] += (int64_t)s->bytes;
        *elements += tec_stored_count(s);
    }
    for (int d = 0; d < TEC_N_DTYPES; d++)
        if (n[d])
            json_object_set_new(all, tec_dtype_name((enum tec_dtype)d),
                                json_pack("{s:I, s:I}", "tensors", (json_int_t)n[d], "bytes",
                                          (json_int_t)bytes[d]));
    return all;
}

/* Append one vector's statistics, {"asset", "key", "size", "modes": [...]}, if there are any. */
static void add_norm(json_t *list, const char *asset, const char *key, const struct tec_norm *norm)
{
    json_t *has = json_array();
    if (norm->mean && norm->std)
        json_array_append_new(has, json_string("mean_std"));
    if (norm->q01 && norm->q99)
        json_array_append_new(has, json_string("quantile"));
    if (norm->min && norm->max)
        json_array_append_new(has, json_string("min_max"));
    if (norm->q10 && norm->q90)
        json_array_append_new(has, json_string("quantile10"));
    json_array_append_new(list, json_pack("{s:o, s:s, s:I, s:o}", "asset",
                                          asset ? tec_json_shown(asset) : json_null(), "key", key,
                                          "size", (json_int_t)norm->n, "modes", has));
}

static json_t *norms(const struct tec_checkpoint *c, struct tec_arena *arena)
{
    static const char *const openpi[] = {"state", "actions"};
    static const char *const lerobot[] = {"observation.state", "action"};
    static const char *const dataset[] = {"proprio", "action"};
    static const enum tec_norm_mode modes[] = {TEC_NORM_QUANTILE, TEC_NORM_MIN_MAX};
    bool hf = c->layout == TEC_LAYOUT_HF;
    json_t *list = json_array();
    struct tec_norm norm;
    for (size_t a = 0; hf && a < c->n_assets; a++)
        for (size_t k = 0; k < 2; k++)
            for (size_t m = 0; m < 2; m++)
                if (tec_checkpoint_norm_dataset(c, &norm, c->assets[a], dataset[k], modes[m], 0.0,
                                                arena, NULL) == TEC_OK) {
                    add_norm(list, c->assets[a], dataset[k], &norm);
                    break;
                }
    for (size_t a = 0; !hf && a < c->n_assets; a++)
        for (int k = 0; k < 2; k++)
            if (tec_checkpoint_norm_openpi(c, &norm, c->assets[a], openpi[k], TEC_NORM_MEAN_STD,
                                           arena, NULL) == TEC_OK)
                add_norm(list, c->assets[a], openpi[k], &norm);
    for (int k = 0; k < 2 && c->layout == TEC_LAYOUT_LEROBOT; k++)
        if (tec_checkpoint_norm_lerobot(c, &norm, lerobot[k], arena, NULL) == TEC_OK && norm.n > 0)
            add_norm(list, NULL, lerobot[k], &norm);
    return list;
}

enum tec_status tec_inspect_tokenizer(json_t *report, const char *path, struct tec_heap *heap,
                                      struct tec_error *err)
{
    struct tec_tokenizer *t = NULL;
    TEC_TRY(tec_tokenizer_open(&t, path, heap, err));
    json_t *facts = json_pack("{s:o, s:s, s:i, s:i, s:i, s:i, s:i}", "path", tec_json_shown(path),
                              "kind", tec_tokenizer_kind(t), "size", tec_tokenizer_size(t), "bos",
                              tec_tokenizer_bos(t), "eos", tec_tokenizer_eos(t), "pad",
                              tec_tokenizer_pad(t), "unk", tec_tokenizer_unk(t));
    tec_tokenizer_close(t);
    return json_object_set_new(report, "tokenizer", facts) ? no_memory(err) : TEC_OK;
}

enum tec_status tec_inspect_tokenizer_alone(json_t *report, const char *path, struct tec_heap *heap,
                                            struct tec_error *err)
{
    struct stat st;
    bool file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    json_t *fields = json_pack("{s:s, s:n, s:i, s:I, s:[], s:[], s:n}", "layout", "tokenizer",
                               "model", "tensors", 0, "bytes", (json_int_t)(file ? st.st_size : 0),
                               "missing", "unexpected", "hash");
    int bad = fields ? json_object_update(report, fields) : -1;
    json_decref(fields);
    return bad ? no_memory(err) : tec_inspect_tokenizer(report, path, heap, err);
}

/* A tokenizer that cannot be read is a finding about the checkpoint, not a failure of the
 * inspection. */
static enum tec_status add_tokenizer(json_t *report, const struct tec_checkpoint *c,
                                     struct tec_error *err)
{
    struct tec_error mine;
    if (!c->tokenizer)
        return json_object_set_new(report, "tokenizer", json_null()) ? no_memory(err) : TEC_OK;
    if (tec_inspect_tokenizer(report, c->tokenizer, c->heap, &mine) == TEC_OK)
        return TEC_OK;
    json_t *bad =
        json_pack("{s:o, s:s}", "path", tec_json_shown(c->tokenizer), "error", mine.message);
    return json_object_set_new(report, "tokenizer", bad) ? no_memory(err) : TEC_OK;
}

static json_t *adapter_json(const struct tec_adapter *a)
{
    const struct tec_adapter_facts facts = tec_adapter_facts(a);
    return json_pack("{s:o, s:I, s:I, s:I}", "path", tec_json_shown(facts.path), "changed",
                     (json_int_t)facts.changed, "replaced", (json_int_t)facts.replaced, "rank",
                     (json_int_t)facts.rank);
}

enum tec_status tec_inspect_checkpoint(json_t *report, const struct tec_checkpoint *c, bool list,
                                       struct tec_arena *arena, struct tec_error *err)
{
    int64_t elements = 0;
    json_t *assets = json_array();
    for (size_t i = 0; i < c->n_assets; i++)
        json_array_append_new(assets, tec_json_shown(c->assets[i]));
    int bad = json_object_set_new(report, "path", tec_json_shown(c->path));
    bad |= json_object_set_new(report, "layout", json_string(tec_layout_name(c->layout)));
    bad |= json_object_set_new(report, "model", json_null());
    bad |= json_object_set_new(report, "tensors",
                               json_integer((json_int_t)tec_tensors_count(c->tensors)));
    bad |= json_object_set_new(report, "bytes",
                               json_integer((json_int_t)tec_tensors_bytes(c->tensors)));
    bad |= json_object_set_new(report, "dtypes", count_dtypes(c->tensors, &elements));
    bad |= json_object_set_new(report, "parameters", json_integer(elements));
    bad |= json_object_set_new(report, "missing", json_array());
    bad |= json_object_set_new(report, "unexpected", json_array());
    bad |= json_object_set_new(report, "mismatched", json_array());
    bad |= json_object_set_new(report, "hash", json_string(c->hash));
    bad |= json_object_set_new(report, "prefix", json_string(c->prefix));
    bad |= json_object_set_new(report, "assets", assets);
    bad |= json_object_set_new(report, "norm", norms(c, arena));
    if (c->adapter)
        bad |= json_object_set_new(report, "adapter", adapter_json(c->adapter));
    if (list)
        bad |= json_object_set_new(report, "list", list_tensors(c->tensors));
    return bad ? no_memory(err) : add_tokenizer(report, c, err);
}

/* The findings of the visit of a model's tensors. */
struct compare {
    const struct tec_checkpoint *c;
    json_t *missing, *mismatched;
    bool *used; /* one flag for each tensor of the checkpoint */
};

static enum tec_status visit(void *user, const struct tec_expected *e, struct tec_error *err)
{
    struct compare *x = user;
    const struct tec_stored *first = tec_tensors_at(x->c->tensors, 0), *found = NULL;
    (void)err;
    for (int i = 0; i < e->n_names; i++) {
        const struct tec_stored *s = tec_checkpoint_tensor(x->c, e->names[i]);
        if (s)
            x->used[s - first] = true; /* a second name for the same tensor is no surplus */
        found = found ? found : s;
    }
    if (e->rank == 0)
        return TEC_OK;
    if (!found && !e->optional)
        json_array_append_new(x->missing, json_string(e->names[0]));
    if (found && !tec_expected_shape(e, found->rank, found->shape))
        json_array_append_new(x->mismatched, json_pack("{s:s, s:o, s:o}", "name", found->name, "is",
                                                       shape_json(found->rank, found->shape),
                                                       "must", shape_json(e->rank, e->shape)));
    return TEC_OK;
}

static json_t *stack_json(const struct tec_stack *s)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "layers", s->layers, "width", s->width,
                     "heads", s->heads, "kv_heads", s->kv_heads, "head_dim", s->head_dim, "mlp",
                     s->mlp);
}

/* The attentions of a part of a program, the columns of the first one's rows and of the first
 * feed-forward behind it. */
static json_t *part_json(const struct tec_model_program *p, enum tec_model_part part)
{
    const struct tec_model_call *first = NULL;
    int n = 0, mlp = 0;
    for (int i = p->parts[part]; i < p->parts[part + 1]; i++) {
        const struct tec_model_call *c = &p->calls[i];
        bool within = c->word == TEC_WORD_gated || (c->word == TEC_WORD_activation && !c->timed);
        n += c->word == TEC_WORD_attention;
        first = !first && n ? c : first;
        mlp = !mlp && n && within ? c->cols : mlp;
    }
    if (!first)
        return json_object();
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "attentions", n, "rows", first->rows,
                     "width", p->calls[first->in[0]].cols, "heads", first->attend.heads, "kv_heads",
                     first->attend.kv_heads, "head_dim", first->attend.head_dim, "mlp", mlp);
}

/* What a program of pictures and state computes by, and what goes in and comes out. */
static void add_program(json_t *sizes, const struct tec_model *m)
{
    const struct tec_model_program *p = m->program;
    json_object_set_new(sizes, "prefill", part_json(p, TEC_PART_OF_PREFILL));
    json_object_set_new(sizes, "action", part_json(p, TEC_PART_OF_ACTION));
    json_object_set_new(sizes, "calls", json_integer(p->n));
    json_object_set_new(sizes, "state", json_integer(p->n_entries));
    json_object_set_new(sizes, "horizon", json_integer(m->flow.horizon));
    json_object_set_new(sizes, "dim", json_integer(m->flow.dim));
}

static json_t *sizes_json(const struct tec_model *m)
{
    json_t *sizes = json_object();
    if (tec_model_asks(m))
        add_program(sizes, m);
    for (int i = 0; i < m->vision.n_towers; i++) {
        json_t *vision = stack_json(&m->vision.towers[i].stack);
        json_object_set_new(vision, "image_size", json_integer(m->vision.image_size));
        json_object_set_new(vision, "patch", json_integer(m->vision.patch));
        json_object_set_new(vision, "tokens", json_integer(m->vision.tokens));
        json_object_set_new(sizes, i ? "vision2" : "vision", vision);
    }
    if (m->text.stack.layers > 0) {
        json_t *text = stack_json(&m->text.stack);
        json_object_set_new(text, "vocab", json_integer(m->text.vocab));
        json_object_set_new(text, "max_tokens", json_integer(m->text.max_tokens));
        json_object_set_new(sizes, "text", text);
    }
    if (tec_model_flows(m)) {
        json_t *flow = part_json(m->program, TEC_PART_OF_ACTION);
        json_object_set_new(flow, "horizon", json_integer(m->flow.horizon));
        json_object_set_new(flow, "dim", json_integer(m->flow.dim));
        json_object_set_new(flow, "steps", json_integer(m->flow.steps));
        json_object_set_new(sizes, "flow", flow);
    }
    if (tec_model_heads(m))
        json_object_set_new(sizes, "chunk",
                            json_pack("{s:i, s:i, s:i}", "horizon", m->flow.horizon, "dim",
                                      m->flow.dim, "state", m->head.state));
    if (m->tokens.vocab > 0)
        json_object_set_new(sizes, "tokens",
                            json_pack("{s:i, s:i, s:i}", "count", m->tokens.count, "vocab",
                                      m->tokens.vocab, "bins", m->tokens.bins));
    return sizes;
}

static const char *name_in_model(const struct tec_checkpoint *c, const struct tec_stored *t)
{
    size_t skip = strlen(c->prefix);
    return strncmp(t->name, c->prefix, skip) == 0 ? t->name + skip : t->name;
}

enum tec_status tec_inspect_model(json_t *report, const struct tec_checkpoint *c,
                                  const struct tec_model *model, struct tec_arena *arena,
                                  struct tec_error *err)
{
    size_t n = tec_tensors_count(c->tensors);
    struct compare x = {.c = c,
                        .missing = json_object_get(report, "missing"),
                        .mismatched = json_object_get(report, "mismatched"),
                        .used = TEC_NEW(arena, n + 1, bool)};
    json_t *unexpected = json_object_get(report, "unexpected");
    if (!x.used)
        return no_memory(err);
    TEC_TRY(tec_model_visit(model, visit, &x, err));
    for (size_t i = 0; i < n; i++)
        if (!x.used[i] &&
            !tec_model_ignores(model, name_in_model(c, tec_tensors_at(c->tensors, i))))
            json_array_append_new(unexpected, json_string(tec_tensors_at(c->tensors, i)->name));
    int bad = json_object_set_new(report, "model", json_string(model->name));
    bad |= json_object_set_new(report, "sizes", sizes_json(model));
    return bad ? no_memory(err) : TEC_OK;
}
