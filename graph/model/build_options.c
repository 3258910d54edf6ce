/* build_options.c - the options of a word, from a Lua table to the members of its call, by the
 * lines of words.def. */
#include "base/nearest.h"
#include "graph/model/build_own.h"
#include "graph/model/parse_words.h"
#include "graph/model/unpack.h"

#include <lauxlib.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MAX_NAME = 200 };

/* The kinds of options: each sets a member from the value at an index, or says what it must be. */
struct option {
    lua_State *L;
    struct tec_builder *b;
    int index;
    void *to;
    struct tec_error *err;
};

static const char *copy_text(const struct option *o)
{
    size_t n;
    const char *text =
        lua_type(o->L, o->index) == LUA_TSTRING ? lua_tolstring(o->L, o->index, &n) : NULL;
    if (!text || n < 1 || n > MAX_NAME || strlen(text) != n)
        return NULL;
    return tec_arena_strdup(o->b->program->arena, text);
}

static const char *set_TEXT(const struct option *o)
{
    const char **to = o->to;
    *to = copy_text(o);
    return *to ? NULL : "a name of 1 .. 200 bytes";
}

static bool whole(const struct option *o, lua_Integer least)
{
    int exact = 0;
    lua_Integer n =
        lua_type(o->L, o->index) == LUA_TNUMBER ? lua_tointegerx(o->L, o->index, &exact) : 0;
    *(int *)o->to = exact && n >= least && n <= TEC_PARSE_MAX ? (int)n : 0;
    return exact && n >= least && n <= TEC_PARSE_MAX;
}

static const char *set_WHOLE(const struct option *o)
{
    return whole(o, 1) ? NULL : "a whole number, 1 .. 1048576";
}

static const char *set_COUNT(const struct option *o)
{
    return whole(o, 0) ? NULL : "a whole number, 0 .. 1048576";
}

static const char *set_REAL(const struct option *o)
{
    double *to = o->to;
    *to = lua_tonumber(o->L, o->index);
    return lua_type(o->L, o->index) == LUA_TNUMBER && isfinite(*to) ? NULL : "a number";
}

static const char *set_FLAG(const struct option *o)
{
    *(bool *)o->to = lua_toboolean(o->L, o->index);
    return lua_isboolean(o->L, o->index) ? NULL : "true or false";
}

/* Three numbers of float32; above 0 where something is divided by them. */
static bool three(const struct option *o, bool divides)
{
    float *to = o->to;
    bool good = lua_istable(o->L, o->index) && lua_rawlen(o->L, o->index) == 3;
    for (int i = 0; i < 3 && good; i++) {
        lua_rawgeti(o->L, o->index, i + 1);
        good = lua_type(o->L, -1) == LUA_TNUMBER && fabs(lua_tonumber(o->L, -1)) < 1e30;
        to[i] = good ? (float)lua_tonumber(o->L, -1) : 0.0F;
        good &= !divides || to[i] > 0.0F;
        lua_pop(o->L, 1);
    }
    return good;
}

static const char *set_CHANNELS(const struct option *o)
{
    return three(o, false) ? NULL : "three numbers";
}

static const char *set_POSITIVES(const struct option *o)
{
    return three(o, true) ? NULL : "three positive numbers";
}

static const char *set_ACTIVATION(const struct option *o)
{
    const char *name = lua_type(o->L, o->index) == LUA_TSTRING ? lua_tostring(o->L, o->index) : "";
    return tec_parse_activation(o->to, name, "", NULL) == TEC_OK ? NULL
                                                                 : "gelu, gelu_erf, silu or relu";
}

static const char *set_SEES(const struct option *o)
{
    static const char *const names[TEC_SEEN_KINDS] = {"all", "pictures", "rest"};
    const char *name = lua_type(o->L, o->index) == LUA_TSTRING ? lua_tostring(o->L, o->index) : "";
    int i = 0;
    while (i < TEC_SEEN_KINDS && strcmp(names[i], name) != 0)
        i++;
    *(enum tec_seen *)o->to = (enum tec_seen)(i % TEC_SEEN_KINDS);
    return i < TEC_SEEN_KINDS ? NULL : "all, pictures or rest";
}

static const char *set_VALUE(const struct option *o)
{
    int *to = o->to;
    *to = tec_builder_value(o->L, o->index);
    return *to >= 0 ? NULL : "a value that a word has made";
}

/* Copies a string of a JSON value that is about to go; false without memory. */
static bool keep(struct tec_arena *arena, const char **text)
{
    if (!*text)
        return true;
    *text = tec_arena_strdup(arena, *text);
    return *text != NULL;
}

/* What a table means, read from its JSON, which is there while `parse` runs. */
static const char *from_json(const struct option *o,
                             enum tec_status (*parse)(const struct option *o, json_t *json))
{
    json_t *json = NULL;
    enum tec_status status = tec_lua_to_json(o->b->lua, o->index, &json, o->err);
    if (status == TEC_OK)
        status = parse(o, json);
    json_decref(json);
    return status == TEC_OK ? NULL : o->err->message;
}

static enum tec_status parse_NORM(const struct option *o, json_t *json)
{
    struct tec_fixed_norm *n = o->to;
    struct tec_error *err = o->err;
    n->eps = 1e-5;
    TEC_UNPACK(json, "norm", "{s:s, s:s, s:s, s:s, s?F}", "weight", &n->weight, "bias", &n->bias,
               "mean", &n->mean, "var", &n->var, "eps", &n->eps);
    if (!(n->eps > 0.0))
        return tec_fail(err, TEC_MALFORMED, "norm.eps must be above 0");
    const char **const names[] = {&n->weight, &n->bias, &n->mean, &n->var};
    for (int i = 0; i < 4; i++)
        if (strlen(*names[i]) > MAX_NAME || !keep(o->b->program->arena, names[i]))
            return tec_fail(err, TEC_MALFORMED, "norm: names have at most %d bytes", MAX_NAME);
    return TEC_OK;
}

static enum tec_status parse_PACKING(const struct option *o, json_t *json)
{
    return tec_parse_packing(o->to, json, o->err);
}

static enum tec_status parse_ROTATION(const struct option *o, json_t *json)
{
    return tec_parse_rotation(o->to, json, o->err);
}

static enum tec_status parse_RELATIVE(const struct option *o, json_t *json)
{
    struct tec_relative *r = o->to;
    TEC_TRY(tec_parse_relative(r, json, o->err));
    return strlen(r->name) <= MAX_NAME && keep(o->b->program->arena, &r->name)
               ? TEC_OK
               : tec_fail(o->err, TEC_MALFORMED, "relative: name has at most %d bytes", MAX_NAME);
}

#define FROM_JSON(kind)                                   \
    static const char *set_##kind(const struct option *o) \
    {                                                     \
        return from_json(o, parse_##kind);                \
    }
FROM_JSON(NORM)
FROM_JSON(PACKING)
FROM_JSON(ROTATION)
FROM_JSON(RELATIVE)

struct field {
    enum tec_model_word word;
    const char *key;
    const char *(*set)(const struct option *o);
    size_t at;
    bool needed;
};

/* The first one is an option of every word. */
static const struct field fields[] = {
    {TEC_WORD_COUNT, "name", set_TEXT, offsetof(struct tec_model_call, name), false},
#define WORD(word, operands, text)
#define VALUE(word, operands, text)
#define GIVEN(word, name, text)
#define FIELD(word, key, kind, member, needed, text) \
    {TEC_WORD_##word, #key, set_##kind, offsetof(struct tec_model_call, member), needed},
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

static const struct field *find_field(enum tec_model_word word, const char *key)
{
    for (int i = 0; i < FIELDS; i++)
        if ((!i || fields[i].word == word) && strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

static int unknown_option(lua_State *L, enum tec_model_word word, const char *key)
{
    const char *names[FIELDS];
    int n = 0;
    for (int i = 0; i < FIELDS; i++)
        if (!i || fields[i].word == word)
            names[n++] = fields[i].key;
    const char *near = tec_nearest(key, names, n);
    return luaL_error(L, "%s: has no option '%s'%s", tec_word_kinds[word].name, key,
                      tec_meant(';', near).text);
}

void tec_builder_options(lua_State *L, struct tec_builder *b, struct tec_model_call *c, int index)
{
    struct tec_error err = {TEC_OK, ""};
    const char *word = tec_word_kinds[c->word].name;
    bool given[FIELDS] = {false};
    luaL_checkstack(L, 8, "options");
    lua_pushnil(L);
    while (lua_istable(L, index) && lua_next(L, index)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        const struct field *f = find_field(c->word, key);
        if (!f) {
            unknown_option(L, c->word, key);
            return;
        }
        const struct option o = {L, b, lua_gettop(L), (char *)c + f->at, &err};
        const char *must = f->set(&o);
        if (must == err.message)
            luaL_error(L, "%s: %s", word, must);
        if (must)
            luaL_error(L, "%s: %s must be %s", word, key, must);
        given[f - fields] = true;
        lua_pop(L, 1);
    }
    for (int i = 0; i < FIELDS; i++)
        if (fields[i].word == c->word && fields[i].needed && !given[i])
            luaL_error(L, "%s: lacks %s", word, fields[i].key);
}
