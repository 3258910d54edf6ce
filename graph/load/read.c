/* read.c - Lua values as values of a load: bounded, each table once, with its place. */
#include "graph/load/script.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct tec_loader *ld;
    lua_State *L;
    int depth;
};

static struct tec_decl_value *read_value(struct reader *r);

static int compare_entries(const void *a, const void *b)
{
    const struct tec_decl_entry *x = a, *y = b;
    if (x->key && y->key)
        return strcmp(x->key, y->key);
    if (!x->key && !y->key)
        return x->item - y->item;
    return x->key ? 1 : -1;
}

/* Push the hidden field of the table on top. */
static void push_hidden(lua_State *L, const char *key)
{
    lua_pushstring(L, key);
    lua_rawget(L, -2);
}

static lua_Integer hidden(lua_State *L, const char *key)
{
    push_hidden(L, key);
    lua_Integer value = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return value;
}

static struct tec_decl_value *complain(struct reader *r, const struct tec_decl_value *at,
                                       const char *what)
{
    struct tec_decl_entry e = {.source = at->source, .open = at->open, .item = -1};
    tec_diagnostics_add(r->ld->d, TEC_E011, tec_where_value(r->ld, &e), "%s", what);
    return tec_decl_value_new(r->ld, TEC_VALUE_BAD);
}

/* The entry whose key and value are on top; pops the value. */
static bool read_entry(struct reader *r, struct tec_decl_value *table, int *n_list)
{
    lua_State *L = r->L;
    struct tec_decl_entry *e = &table->entries[table->n];
    *e = (struct tec_decl_entry){.source = table->source, .open = table->open, .item = -1};
    if (lua_isinteger(L, -2)) {
        lua_Integer i = lua_tointeger(L, -2);
        e->item = i > 0 && i <= TEC_MAX_VALUES ? (int)i - 1 : TEC_MAX_VALUES;
        (*n_list)++;
    } else if (lua_type(L, -2) == LUA_TSTRING) {
        const char *key = lua_tostring(L, -2);
        if (key[0] > 0 && key[0] < ' ') {
            lua_pop(L, 1);
            return true;
        }
        e->key = tec_arena_strdup(r->ld->arena, key);
    } else {
        lua_pop(L, 1);
        return complain(r, table, "a key that is neither a name nor a number of a list") != NULL;
    }
    if (!e->key && e->item < 0)
        return false;
    e->value = read_value(r);
    if (!e->value)
        return false;
    table->weight += e->value->weight;
    if (e->value->kind == TEC_VALUE_BAD && e->value->flag)
        tec_diagnostics_add(r->ld->d, TEC_E011, tec_where_value(r->ld, e), "%s", e->value->string);
    table->n++;
    return true;
}

static struct tec_decl_value *finish_table(struct reader *r, struct tec_decl_value *table,
                                           int n_list)
{
    if (table->n > 1)
        qsort(table->entries, (size_t)table->n, sizeof *table->entries, compare_entries);
    if (table->weight > TEC_MAX_VALUES)
        return complain(r, table, "more than 100000 values in one table");
    if (n_list > 0 && n_list < table->n)
        return complain(r, table, "a table with both named fields and a list in it");
    bool list = n_list > 0 || (table->n == 0 && !table->tag);
    table->kind = list ? TEC_VALUE_LIST : TEC_VALUE_TABLE;
    for (int i = 0; i < n_list; i++)
        if (table->entries[i].item != i)
            return complain(r, table, "a list with a hole: one of its values is nil");
    return table;
}

static struct tec_decl_value *read_entries(struct reader *r, struct tec_decl_value *table)
{
    lua_State *L = r->L;
    int size = 0, n_list = 0;
    if (r->depth > TEC_MAX_DEPTH)
        return complain(r, table, "tables are nested more than 32 deep");
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        size++;
    if (size > TEC_MAX_VALUES)
        return complain(r, table, "more than 100000 values in one table");
    table->entries = TEC_NEW(r->ld->scratch, (size_t)size + 1, struct tec_decl_entry);
    if (!table->entries)
        return NULL;
    for (lua_pushnil(L); lua_next(L, -2);)
        if (!read_entry(r, table, &n_list))
            return NULL;
    return finish_table(r, table, n_list);
}

/* The table on top. One that is used in several places is read once. */
static struct tec_decl_value *read_table(struct reader *r)
{
    lua_State *L = r->L;
    struct tec_loader *ld = r->ld;
    lua_Integer mark = hidden(L, TEC_MARK);
    struct tec_decl_value *table = tec_decl_value_new(ld, TEC_VALUE_TABLE);
    if (!table)
        return NULL;
    table->tag = (enum tec_constructor)hidden(L, TEC_TAG);
    if (mark >= TEC_SOURCE_STEP && mark / TEC_SOURCE_STEP <= ld->n_sources) {
        table->source = (int)(mark / TEC_SOURCE_STEP) - 1;
        table->open = (int)(mark % TEC_SOURCE_STEP);
    }
    push_hidden(L, TEC_READ);
    struct tec_decl_value *known = lua_touserdata(L, -1);
    bool reading = lua_isboolean(L, -1);
    lua_pop(L, 1);
    if (reading)
        return complain(r, table, "a table that contains itself");
    if (known)
        return known;
    lua_pushstring(L, TEC_READ);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    int top = lua_gettop(L);
    bool extends = table->tag == TEC_CON_extend;
    struct tec_decl_value *v = read_entries(r, table);
    if (v && extends) {
        push_hidden(L, TEC_BASE);
        struct tec_decl_value *base = read_value(r);
        v = base ? tec_overlay(ld, base, v) : NULL;
    }
    lua_settop(L, top); /* without memory a key and a value are left over */
    if (!v)
        return NULL;
    lua_pushstring(L, TEC_READ);
    lua_pushlightuserdata(L, v);
    lua_rawset(L, -3);
    return v;
}

static struct tec_decl_value *read_scalar(struct reader *r, int type)
{
    lua_State *L = r->L;
    struct tec_decl_value *v = tec_decl_value_new(r->ld, TEC_VALUE_BAD);
    if (!v)
        return NULL;
    if (type == LUA_TBOOLEAN) {
        v->kind = TEC_VALUE_BOOL;
        v->flag = lua_toboolean(L, -1);
    } else if (type == LUA_TNUMBER && lua_isinteger(L, -1)) {
        v->kind = TEC_VALUE_INT;
        v->integer = lua_tointeger(L, -1);
    } else if (type == LUA_TNUMBER) {
        v->kind = TEC_VALUE_NUMBER;
        v->number = lua_tonumber(L, -1);
    } else if (type == LUA_TSTRING) {
        size_t n;
        const char *s = lua_tolstring(L, -1, &n);
        v->kind = strlen(s) == n ? TEC_VALUE_STRING : TEC_VALUE_BAD;
        v->flag = strlen(s) != n;
        v->string = v->flag ? "a text with a zero byte in it" : tec_arena_strdup(r->ld->arena, s);
        return v->string ? v : NULL;
    } else if (type == LUA_TFUNCTION) {
        v->flag = true;
        v->string = "a function where a value is expected: call it?";
    }
    return v;
}

/* Pops the value on top. NULL only without memory. */
static struct tec_decl_value *read_value(struct reader *r)
{
    int type = lua_type(r->L, -1);
    luaL_checkstack(r->L, 8, NULL);
    r->depth++;
    struct tec_decl_value *v = type == LUA_TTABLE ? read_table(r) : read_scalar(r, type);
    r->depth--;
    lua_pop(r->L, 1);
    return v;
}

struct tec_decl_value *tec_script_read(struct tec_loader *ld, lua_State *L)
{
    struct reader r = {.ld = ld, .L = L};
    return read_value(&r);
}
