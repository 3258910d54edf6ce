/* adapter_config.c - reads adapter_config.json: ranks and scales by module, and refusals of what is
 * no plain product of two matrices. */
#include "base/store/adapter_config.h"

#include "base/store/file.h"

#include <math.h>
#include <string.h>

enum { MAX_RANK = 65536 };

/* Settings that change what the factors mean. Null, false and empty values leave it as it is. */
static const struct {
    const char *key, *what;
} refused[] = {
    {"use_dora", "DoRA, whose magnitudes are not a product of two matrices"},
    {"use_qalora", "QALoRA, which pools the inputs"},
    {"alora_invocation_tokens", "activated LoRA, which acts on some tokens only"},
    {"layer_replication", "layers that are there several times"},
    {"target_parameters", "changes of parameters that are no layer's weight"},
    {"trainable_token_indices", "changes of single rows of an embedding"},
    {"arrow_config", "a choice of adapters for each token"},
};

/* Ways to begin that subtract the first product from the base's weights. */
static const char *const beginnings[] = {"pissa", "olora", "corda", "loftq"};

static bool is_empty(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_object(v) && json_object_size(v) == 0);
}

static enum tec_status check_kind(const json_t *json, const char *path, struct tec_error *err)
{
    const char *type = json_string_value(json_object_get(json, "peft_type"));
    const char *begin = json_string_value(json_object_get(json, "init_lora_weights"));
    if (!type || strcmp(type, "LORA") != 0)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s: peft_type is '%.60s'; only LORA adapters are merged", path,
                        type ? type : "missing");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (!is_empty(json_object_get(json, refused[i].key)))
            return tec_fail(err, TEC_UNSUPPORTED,
                            "%s: %s is set: %s; merge the adapter where it was trained and give "
                            "the merged checkpoint",
                            path, refused[i].key, refused[i].what);
    for (size_t i = 0; begin && i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(begin, beginnings[i], strlen(beginnings[i])) == 0)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "%s: init_lora_weights is '%.40s', which changed the base's weights "
                            "when training began; convert the adapter to plain LoRA, or merge it "
                            "where it was trained",
                            path, begin);
    return TEC_OK;
}

/* Keys are modules' names or their ends; other regular expressions are refused. */
static enum tec_status check_pattern(const json_t *json, const char *field, double low,
                                     const char *path, struct tec_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    json_t *pattern = json_object_get(json, field), *value;
    const char *key;
    if (is_empty(pattern))
        return TEC_OK;
    if (!json_is_object(pattern))
        return tec_fail(err, TEC_MALFORMED, "%s: %s is no object", path, field);
    json_object_foreach(pattern, key, value)
    {
        if (!*key || key[strspn(key, plain)])
            return tec_fail(err, TEC_UNSUPPORTED,
                            "%s: %s: '%.80s' is a regular expression; write the modules' names, "
                            "or their last words, out",
                            path, field, key);
        if (!json_is_number(value) || !(json_number_value(value) >= low) ||
            json_number_value(value) > MAX_RANK)
            return tec_fail(err, TEC_MALFORMED, "%s: %s: '%.80s' is no number from %g to %d", path,
                            field, key, low, MAX_RANK);
    }
    return TEC_OK;
}

static enum tec_status parse(struct tec_adapter_config *c, const char *path, struct tec_error *err)
{
    const json_t *rank = json_object_get(c->json, "r");
    const json_t *alpha = json_object_get(c->json, "lora_alpha");
    TEC_TRY(check_kind(c->json, path, err));
    if (!json_is_integer(rank) || json_integer_value(rank) < 1 ||
        json_integer_value(rank) > MAX_RANK)
        return tec_fail(err, TEC_MALFORMED, "%s: r must be a whole number from 1 to %d", path,
                        MAX_RANK);
    if (!json_is_number(alpha) || !isfinite(json_number_value(alpha)))
        return tec_fail(err, TEC_MALFORMED, "%s: lora_alpha must be a number", path);
    c->rank = json_integer_value(rank);
    c->alpha = json_number_value(alpha);
    c->root_scaled = json_is_true(json_object_get(c->json, "use_rslora"));
    c->transposed = json_is_true(json_object_get(c->json, "fan_in_fan_out"));
    TEC_TRY(check_pattern(c->json, "rank_pattern", 1.0, path, err));
    return check_pattern(c->json, "alpha_pattern", 0.0, path, err);
}

enum tec_status tec_adapter_config_read(struct tec_adapter_config *c, const char *path,
                                        struct tec_heap *heap, struct tec_error *err)
{
    *c = (struct tec_adapter_config){0};
    TEC_TRY(tec_checkpoint_json_load(&c->json, path, heap, err));
    return parse(c, path, err);
}

void tec_adapter_config_finish(struct tec_adapter_config *c)
{
    json_decref(c->json);
    c->json = NULL;
}

/* The value of the first key that is the module's name, or its end after a dot; NULL: none is. */
static const json_t *of_module(const struct tec_adapter_config *c, const char *field,
                               const char *module)
{
    json_t *value;
    const char *key;
    size_t n = strlen(module);
    json_object_foreach(json_object_get(c->json, field), key, value)
    {
        size_t m = strlen(key);
        bool ends = m <= n && strcmp(module + n - m, key) == 0;
        if (ends && (m == n || module[n - m - 1] == '.'))
            return value;
    }
    return NULL;
}

int64_t tec_adapter_config_rank(const struct tec_adapter_config *c, const char *module)
{
    const json_t *own = of_module(c, "rank_pattern", module);
    return own ? (int64_t)json_number_value(own) : c->rank;
}

double tec_adapter_config_scale(const struct tec_adapter_config *c, const char *module)
{
    const json_t *own = of_module(c, "alpha_pattern", module);
    double alpha = own ? json_number_value(own) : c->alpha;
    double rank = (double)tec_adapter_config_rank(c, module);
    return alpha / (c->root_scaled ? sqrt(rank) : rank);
}
