/* lua_suite.c - runs Lua's own test files under the limits of a policy: what passes, where it stops
 * and why.
 *
 * tools/setup.sh --test puts the files into build/lua-tests. The sandbox has no pcall and no load,
 * so a file would end at its first line; therefore each statement at the outermost level is a chunk
 * of its own (the fewest lines that parse). So that chunks see each other, globals go to a table in
 * front of the sandbox, and `local` at the beginning of a chunk is left out. The report names, for
 * each file, the causes in order of the first line, and the line of every failed assertion. It must
 * equal tests/lua_suite.expected, where lines with # explain; build/lua_suite.out is the new
 * one. */
#include "base/lua.h"
#include "tests/tap.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FOLDER "build/lua-tests/"

enum { ROOM = 1 << 20, MAX_CAUSES = 200, MAX_LINES = 4000, CAUSE = 100, WHERE = 200 };

/* Instructions are limited instead of time, so that the report is the same on every machine. */
static const struct tec_lua_limits limits = {
    .heap = 1 << 19, .block = 1 << 16, .string = 4096, .instructions = 2000000};

/* The files that need neither other files nor a shell, C functions or the standard interpreter. */
static const char *const names[] = {"bitwise",   "bwcoercion", "calls",   "closure", "constructs",
                                    "coroutine", "errors",     "events",  "goto",    "literals",
                                    "locals",    "math",       "nextvar", "pm",      "sort",
                                    "strings",   "tpack",      "utf8",    "vararg"};

struct cause {
    char what[CAUSE];
    int count, first;
    char lines[WHERE]; /* of failed assertions */
};

struct run {
    struct tec_lua *lua;
    char *lines[MAX_LINES];
    int n_lines, chunks, passed, n_causes;
    struct cause causes[MAX_CAUSES];
};

static struct tec_heap heap;
static struct tec_error err;
static char report[ROOM], expected[ROOM], source[ROOM], chunk[ROOM];

/* Read the whole file; false if it cannot be read. */
static bool slurp(const char *path, char *text, size_t room)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(text, 1, room - 1, f);
    fclose(f);
    text[n] = '\0';
    return true;
}

static int print_nothing(lua_State *L)
{
    (void)L;
    return 0;
}

/* Put a table that keeps globals in front of the sandbox. print and the three names are what the
 * files expect of the program that runs them: no progress, portable tests only, no internal
 * functions. */
static const char globals_key = 'g';

static void make_globals(struct tec_lua *lua)
{
    lua_State *L = tec_lua_state(lua);
    lua_newtable(L);
    lua_newtable(L);
    tec_lua_push_env(lua);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_pushcfunction(L, print_nothing);
    lua_setfield(L, -2, "print");
    for (int i = 0; i < 3; i++) {
        static const char *const given[] = {"T", "_soft", "_port"};
        lua_pushboolean(L, i > 0);
        lua_setfield(L, -2, given[i]);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &globals_key);
}

/* Rewrite `local a <const>, b = 1, 2` as `a, b = 1, 2`. */
static char *add_bare(char *at, const char *line)
{
    for (line += strlen("local "); *line;) {
        if (strncmp(line, "<const>", 7) == 0)
            line += 7;
        else
            *at++ = *line++;
    }
    *at++ = '\n';
    return at;
}

/* Make a chunk of the lines first..last with their line numbers, without `local` in front. */
static void make_chunk(const struct run *r, int first, int last)
{
    char *at = chunk;
    memset(at, '\n', (size_t)first);
    at += first;
    const char *line = r->lines[first];
    bool bare = strncmp(line, "local ", 6) == 0 && !strstr(line, "<close>");
    bool valued = bare && (strchr(line, '=') || strncmp(line + 6, "function ", 9) == 0);
    if (bare)
        at = add_bare(at, line);
    for (int i = first + bare; i <= last; i++)
        at += sprintf(at, "%s\n", r->lines[i]);
    *at = '\0';
    if (bare && !valued)
        sprintf(at, "= nil\n");
}

static void note(struct run *r, int line, const char *what)
{
    const char *colon = strstr(what, ".lua:");
    colon = colon ? strstr(colon, ": ") : NULL;
    what = colon ? colon + 2 : what;
    bool memory = strncmp(what, "more memory", 11) == 0; /* how much is in use may vary */
    int i = 0, n = (int)(memory ? strcspn(what, "(") - 1 : strlen(what));
    n = n < CAUSE ? n : CAUSE - 1;
    while (i < r->n_causes && strncmp(r->causes[i].what, what, (size_t)n) != 0)
        i++;
    if (i == MAX_CAUSES)
        return;
    struct cause *c = &r->causes[i];
    if (i == r->n_causes) {
        r->n_causes++;
        snprintf(c->what, sizeof c->what, "%.*s", n, what);
        c->first = line;
    }
    c->count++;
    size_t used = strlen(c->lines);
    if (strstr(what, "assertion failed"))
        snprintf(c->lines + used, sizeof c->lines - used, " %d", line);
}

/* Run the chunk that begins at line `first`; return the line after it. */
static int run_chunk(struct run *r, int first, const char *name)
{
    lua_State *L = tec_lua_state(r->lua);
    int last = first;
    enum tec_status status;
    for (;; last++) {
        make_chunk(r, first, last);
        status = tec_lua_load(r->lua, name, chunk, strlen(chunk), &err);
        if (status == TEC_OK || !strstr(err.message, "near <eof>") || last + 1 == r->n_lines)
            break;
    }
    if (status != TEC_OK && strstr(err.message, "near <eof>"))
        last = first;
    r->chunks++;
    if (status == TEC_OK) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &globals_key);
        lua_setupvalue(L, -2, 1);
        status = tec_lua_call(r->lua, 0, 0, &err);
    }
    lua_settop(L, 0);
    if (status == TEC_OK)
        r->passed++;
    else
        note(r, first + 1, err.message);
    return last + 1;
}

static bool blank(const char *line)
{
    line += strspn(line, " \t;");
    return *line == '\0' || (line[0] == '-' && line[1] == '-' && line[2] != '[');
}

static char *add_report(const struct run *r, const char *name, char *at)
{
    at += sprintf(at, "%s.lua: %d of %d chunks pass\n", name, r->passed, r->chunks);
    for (int i = 0; i < r->n_causes; i++) {
        const struct cause *c = &r->causes[i];
        at += sprintf(at, "    line %d, %d times: %s%s%s\n", c->first, c->count, c->what,
                      c->lines[0] ? " at" : "", c->lines);
    }
    return at;
}

static char *run_file(const char *name, char *at)
{
    static struct run r;
    char path[100];
    memset(&r, 0, sizeof r);
    snprintf(path, sizeof path, FOLDER "%s.lua", name);
    REQUIRE(slurp(path, source, sizeof source));
    REQUIRE(tec_lua_create(&r.lua, &limits, &heap, &err) == TEC_OK);
    make_globals(r.lua);
    for (char *line = source; line && r.n_lines < MAX_LINES; r.n_lines++) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        r.lines[r.n_lines] = line;
        line = end ? end + 1 : NULL;
    }
    snprintf(path, sizeof path, "%s.lua", name);
    for (int i = 0; i < r.n_lines;)
        i = blank(r.lines[i]) ? i + 1 : run_chunk(&r, i, path);
    tec_lua_destroy(r.lua);
    return add_report(&r, name, at);
}

/* Leave out the lines that explain. */
static void strip(char *text)
{
    char *to = text;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        size_t n = end ? (size_t)(end - line) + 1 : strlen(line);
        if (*line != '#') {
            memmove(to, line, n);
            to += n;
        }
        line += n;
    }
    *to = '\0';
}

/* Print the lines that only one of the two has. */
static void show_difference(const char *a, const char *b, const char *sign)
{
    char line[400];
    for (; *a; a += strcspn(a, "\n"), a += *a == '\n') {
        snprintf(line, sizeof line, "%.*s\n", (int)strcspn(a, "\n"), a);
        if (!strstr(b, line))
            fprintf(stderr, "# %s %s", sign, line);
    }
}

TEST(the_files_of_lua_end_where_expected)
{
    struct stat info;
    if (stat(FOLDER "constructs.lua", &info) != 0)
        SKIP("no " FOLDER ": tools/setup.sh --test fetches it");
    if (strcmp(LUA_VERSION_RELEASE, "4") != 0)
        SKIP("the expected list is for Lua 5.4.4");
    char *at = report;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        at = run_file(names[i], at);
    FILE *f = fopen("build/lua_suite.out", "w");
    if (f) {
        fputs(report, f);
        fclose(f);
    }
    REQUIRE(slurp("tests/lua_suite.expected", expected, sizeof expected));
    strip(expected);
    bool same = strcmp(report, expected) == 0;
    if (!same) {
        show_difference(report, expected, "new");
        show_difference(expected, report, "gone");
    }
    CHECK(same);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
