/* parse_stack.c - the description of a stack of layers as a struct, every number checked. */
#include "graph/model/parse.h"

#include <string.h>

static const char *const role_names[TEC_ROLE_COUNT] = {
#define ROLE(name) [TEC_ROLE_##name] = #name,
#include "graph/model/roles.def"
#undef ROLE
};

/* q, k and v each, or all in one. */
static bool lacks_qkv(const struct tec_stack *stack, enum tec_role role)
{
    bool joined = stack->names[TEC_ROLE_qkv] != NULL;
    bool part = role == TEC_ROLE_q || role == TEC_ROLE_k || role == TEC_ROLE_v;
    return !stack->names[role] && !(part && joined);
}

static enum tec_status parse_tensors(struct tec_stack *stack, json_t *tensors, const char *where,
                                     struct tec_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(tensors, key, value)
    {
        int role = 0;
        while (role < TEC_ROLE_COUNT && strcmp(role_names[role], key) != 0)
            role++;
        const char *name = json_string_value(value);
        if (role == TEC_ROLE_COUNT || !name || strlen(name) > 200)
            return tec_fail(err, TEC_MALFORMED, "%s.tensors: '%s' is no tensor of a layer", where,
                            key);
        stack->names[role] = name;
    }
    static const enum tec_role needed[] = {TEC_ROLE_q,     TEC_ROLE_k,    TEC_ROLE_v,
                                           TEC_ROLE_o,     TEC_ROLE_up,   TEC_ROLE_down,
                                           TEC_ROLE_norm1, TEC_ROLE_norm2};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (lacks_qkv(stack, needed[i]))
            return tec_fail(err, TEC_MALFORMED, "%s.tensors: lacks '%s'", where,
                            role_names[needed[i]]);
    if (stack->names[TEC_ROLE_qkv] && stack->names[TEC_ROLE_q])
        return tec_fail(err, TEC_MALFORMED, "%s.tensors: has both 'qkv' and 'q'", where);
    stack->gated = stack->names[TEC_ROLE_gate] != NULL;
    return TEC_OK;
}

/* A second attention has all of its tensors but biases, and its heads have keys of their own. */
static enum tec_status check_cross(const struct tec_stack *s, const char *where,
                                   struct tec_error *err)
{
    const char *const *n = s->names;
    bool any = n[TEC_ROLE_cross] || n[TEC_ROLE_cross_bias] || n[TEC_ROLE_cross_o] ||
               n[TEC_ROLE_cross_o_bias] || n[TEC_ROLE_cross_norm] || n[TEC_ROLE_cross_norm_bias];
    bool all = n[TEC_ROLE_cross] && n[TEC_ROLE_cross_o] && n[TEC_ROLE_cross_norm];
    return !any || all ? TEC_OK
                       : tec_fail(err, TEC_MALFORMED,
                                  "%s.tensors: cross, cross_o and cross_norm come together", where);
}

/* Refuses combinations of attributes that no op computes. */
static enum tec_status check_kinds(const struct tec_stack *stack, const char *where,
                                   struct tec_error *err)
{
    if (stack->gated && stack->activation != TEC_ACTIVATION_GELU &&
        stack->activation != TEC_ACTIVATION_SILU)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: a gated feed-forward has activation gelu or silu, not %s", where,
                        stack->activation == TEC_ACTIVATION_RELU ? "relu" : "gelu_erf");
    TEC_TRY(check_cross(stack, where, err));
    bool heads = stack->names[TEC_ROLE_q_norm] || stack->names[TEC_ROLE_k_norm];
    if (!stack->names[TEC_ROLE_q_norm] != !stack->names[TEC_ROLE_k_norm])
        return tec_fail(err, TEC_MALFORMED, "%s.tensors: q_norm and k_norm come together", where);
    if (heads && stack->norm != TEC_BLOCK_RMS_NORM)
        return tec_fail(err, TEC_MALFORMED, "%s: q_norm and k_norm are rms norms: norm must be rms",
                        where);
    bool scaled = stack->names[TEC_ROLE_scale1] || stack->names[TEC_ROLE_scale2];
    if (stack->norm == TEC_BLOCK_ADAPTIVE_NORM && (scaled || stack->after))
        return tec_fail(
            err, TEC_MALFORMED,
            "%s: scale1, scale2 or norms behind the halves in a stack whose norms are adaptive",
            where);
    return TEC_OK;
}

static enum tec_status parse_norm(struct tec_stack *stack, const char *norm, const char *where,
                                  struct tec_error *err)
{
    static const char *const names[] = {"layer", "rms", "adaptive"};
    for (int i = 0; i < 3; i++)
        if (strcmp(norm, names[i]) == 0) {
            stack->norm = (enum tec_norm_kind)i;
            return TEC_OK;
        }
    return tec_fail(err, TEC_MALFORMED, "%s.norm: '%s' is not layer, rms or adaptive", where, norm);
}

static enum tec_status parse_set(unsigned char *set, const struct tec_stack *stack, json_t *list,
                                 const char *where, const char *what, struct tec_error *err)
{
    if (list && json_array_size(list) != (size_t)stack->layers)
        return tec_fail(err, TEC_MALFORMED, "%s.%s: must be a list of %d true or false", where,
                        what, stack->layers);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (!json_is_boolean(one))
            return tec_fail(err, TEC_MALFORMED, "%s.%s: entry %zu must be true or false", where,
                            what, i);
        set[i / 8] |= (unsigned char)(json_is_true(one) << (i % 8));
    }
    return TEC_OK;
}

/* Layers that read another stack's keys: nothing but projections of them. */
static enum tec_status parse_crossed(struct tec_stack *stack, json_t *list, const char *where,
                                     struct tec_error *err)
{
    TEC_TRY(parse_set(stack->crossed, stack, list, where, "crossed", err));
    for (int i = 0; i < stack->layers; i++)
        stack->crosses |= stack->crossed[i / 8] >> (i % 8) & 1;
    bool other = stack->names[TEC_ROLE_qkv] || stack->names[TEC_ROLE_q_norm] || stack->after;
    if (stack->crosses && (other || stack->norm != TEC_BLOCK_RMS_NORM))
        return tec_fail(err, TEC_MALFORMED,
                        "%s.crossed: beside q, k and v in one tensor, norms of heads or norms "
                        "other than rms",
                        where);
    return TEC_OK;
}

static enum tec_status check_sizes(const struct tec_stack *stack, const char *where,
                                   struct tec_error *err)
{
    const struct {
        const char *name;
        int value;
    } sizes[] = {{"layers", stack->layers},     {"width", stack->width},
                 {"heads", stack->heads},       {"kv_heads", stack->kv_heads},
                 {"head_dim", stack->head_dim}, {"mlp", stack->mlp}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        TEC_TRY(tec_parse_positive(sizes[i].value, where, sizes[i].name, err));
    if (stack->layers > TEC_MAX_STACK_LAYERS || stack->head_dim > 4096 || stack->heads > 1024)
        return tec_fail(err, TEC_MALFORMED, "%s: %d layers of %d heads of %d are too many", where,
                        stack->layers, stack->heads, stack->head_dim);
    if (stack->heads % stack->kv_heads != 0)
        return tec_fail(err, TEC_MALFORMED, "%s: %d heads over %d kv_heads", where, stack->heads,
                        stack->kv_heads);
    if (stack->theta != 0.0 && (!(stack->theta > 1.0) || stack->head_dim % 2 != 0))
        return tec_fail(err, TEC_MALFORMED, "%s: theta %g needs an even head_dim, is %d", where,
                        stack->theta, stack->head_dim);
    return stack->eps > 0.0F ? TEC_OK
                             : tec_fail(err, TEC_MALFORMED, "%s: eps must be positive", where);
}

enum tec_status tec_parse_stack(struct tec_stack *stack, json_t *json, const char *where,
                                struct tec_error *err)
{
    json_t *tensors;
    const char *norm, *activation = NULL;
    double offset, eps;
    int after = 0;
    json_t *crossed = NULL;
    TEC_UNPACK(json, where,
               "{s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:F, s:F, s:F, s?s, s:o, s?b, s?o}", "layers",
               &stack->layers, "width", &stack->width, "heads", &stack->heads, "kv_heads",
               &stack->kv_heads, "head_dim", &stack->head_dim, "mlp", &stack->mlp, "norm", &norm,
               "norm_offset", &offset, "eps", &eps, "theta", &stack->theta, "activation",
               &activation, "tensors", &tensors, "after", &after, "crossed", &crossed);
    stack->after = after != 0;
    stack->norm_offset = (float)offset;
    stack->eps = (float)eps;
    TEC_TRY(parse_norm(stack, norm, where, err));
    TEC_TRY(tec_parse_activation(&stack->activation, activation, where, err));
    TEC_TRY(check_sizes(stack, where, err));
    TEC_TRY(parse_tensors(stack, tensors, where, err));
    TEC_TRY(parse_crossed(stack, crossed, where, err));
    return check_kinds(stack, where, err);
}
