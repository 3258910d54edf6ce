/* qwen_configs.c - judges cases of kind "configs": what a description makes of configurations with
 * absent keys, windows and rotations that are not supported. */
#include "graph/model/model.h"
#include "graph/model/program.h"
#include "tests/judge/verify.h"

#include <math.h>
#include <string.h>

/* The model that the description makes of a configuration, or NULL with the failure. */
static struct tec_model *open_config(struct tec_verify *v, json_t *config, struct tec_error *err)
{
    struct tec_model *model = NULL;
    json_t *given = json_pack("{s:O}", "config", config);
    const struct tec_model_choice choice = {
        .root = tec_verify_shipped(v, "models"), .arch = "qwen2", .overrides = given};
    enum tec_status status = given ? tec_model_open(&model, &choice, v->heap, err)
                                   : tec_fail(err, TEC_MALFORMED, "the case has no config");
    json_decref(given);
    return status == TEC_OK ? model : NULL;
}

static int same(const json_t *want, const char *key, double got)
{
    const json_t *x = json_object_get(want, key);
    return json_is_number(x) && fabs(json_number_value(x) - got) <= 1e-12 * fabs(got);
}

static int wrong_sizes(const json_t *want, const struct tec_model *m)
{
    const struct tec_stack *s = &m->text.stack;
    int wrong = !same(want, "hidden_size", s->width);
    wrong += !same(want, "intermediate_size", s->mlp);
    wrong += !same(want, "num_hidden_layers", s->layers);
    wrong += !same(want, "num_attention_heads", s->heads);
    wrong += !same(want, "num_key_value_heads", s->kv_heads);
    wrong += !same(want, "head_dim", s->head_dim);
    wrong += !same(want, "vocab_size", m->text.vocab);
    wrong += !same(want, "max_position_embeddings", m->text.max_tokens);
    wrong += !same(want, "rope_theta", m->text.program->rotations[0].theta);
    for (int i = 0; i < m->text.program->n; i++)
        if (m->text.program->calls[i].word == TEC_WORD_norm)
            wrong += !same(want, "rms_norm_eps", m->text.program->calls[i].eps);
    bool tied = false; /* a head of its own comes first, where the file has one */
    for (int i = 0; i < TEC_MAX_ALIASES && m->text.head[i]; i++)
        tied |= strcmp(m->text.head[i], m->text.embed[0]) == 0;
    return wrong + (tied != json_is_true(json_object_get(want, "tie_word_embeddings")));
}

/* Tokens that end a text, and the layers with a window. */
static int wrong_lists(const json_t *want, const struct tec_model *m)
{
    const json_t *ends = json_object_get(want, "eos_token_id");
    const json_t *layers = json_object_get(want, "windowed_layers");
    int wrong = 0, n = json_is_array(ends) ? (int)json_array_size(ends) : json_is_integer(ends);
    wrong += n != m->text.n_ends;
    for (int i = 0; i < n && i < m->text.n_ends; i++) {
        const json_t *id = json_is_array(ends) ? json_array_get(ends, (size_t)i) : ends;
        wrong += json_integer_value(id) != m->text.ends[i];
    }
    wrong += n > 0 ? m->text.eos != m->text.ends[0] : m->text.eos != -1;
    int windowed = 0;
    for (int i = 0; i < m->text.stack.layers; i++) {
        int window = tec_model_attention(m, i)->attend.window;
        if (window)
            wrong += json_integer_value(json_array_get(layers, (size_t)windowed++)) != i ||
                     !same(want, "window", window);
    }
    return wrong + ((int)json_array_size(layers) != windowed);
}

/* What cannot be run must be refused: stretched rotations, heads that do not divide. */
static bool must_refuse(const json_t *want)
{
    json_int_t heads = json_integer_value(json_object_get(want, "num_attention_heads"));
    json_int_t kv = json_integer_value(json_object_get(want, "num_key_value_heads"));
    return json_is_object(json_object_get(want, "rope_scaling")) || kv < 1 || heads % kv != 0;
}

static void judge(struct tec_verify *v, const char *name, const json_t *one)
{
    struct tec_error err = {.status = TEC_OK};
    const json_t *want = json_object_get(one, "expected");
    struct tec_model *m = open_config(v, json_object_get(one, "config"), &err);
    if (must_refuse(want) || !m) {
        bool refused = !m && must_refuse(want);
        tec_verify_report(v, name, refused ? 0.0 : 1.0, 0.0, 0.0, refused, NULL,
                          m ? "was not refused" : err.message);
    } else {
        int wrong = wrong_sizes(want, m) + wrong_lists(want, m);
        tec_verify_report(v, name, wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
    }
    tec_model_close(m);
}

enum tec_status tec_verify_qwen_configs(struct tec_verify *v, struct tec_error *err)
{
    const char *name;
    json_t *one;
    int n = 0;
    json_object_foreach(v->json, name,
                        one) if (json_is_object(one) && json_object_get(one, "config"))
    {
        judge(v, name, one);
        n++;
    }
    return n ? TEC_OK : tec_fail(err, TEC_MALFORMED, "the case has no configurations");
}
